//! Lines, line numbers and sizes, as the SDK's file-system memory tool writes them.

/// Width of a line number.
const NUMBER_WIDTH: usize = 6;
/// The highest number of that width.
pub(super) const MOST_LINES: usize = 999_999;

/// The lines of a text, split at LF alone (a CR stays), without the empty one behind a final LF.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

/// The 1-based number of the line that holds byte `at`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// A line behind its number.
pub(super) fn numbered(number: usize, line: &str) -> String {
    format!("{number:>NUMBER_WIDTH$}\t{line}")
}

/// A size as `5.5K`: powers of 1,024, one decimal unless it is whole.
pub(super) fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "K", "M", "G"];
    let power = bytes.checked_ilog2().map_or(0, |log| (log / 10).min(3));
    let unit = UNITS[power as usize];
    let scale = 1u64 << (10 * power);
    if bytes.is_multiple_of(scale) {
        format!("{}{unit}", bytes / scale)
    } else {
        format!("{:.1}{unit}", bytes as f64 / scale as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_at_lf_alone_and_a_final_one_adds_none() {
        assert_eq!(lines(""), [""; 0]);
        assert_eq!(lines("\n"), [""]);
        assert_eq!(lines("a"), ["a"]);
        assert_eq!(lines("a\n"), ["a"]);
        assert_eq!(lines("a\n\n"), ["a", ""]);
        assert_eq!(lines("a\r\nb\u{2028}c\rd\n"), ["a\r", "b\u{2028}c\rd"]);
    }

    #[test]
    fn sizes_are_formatted_as_the_sdk_does() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1536, "1.5K"),
            (5632, "5.5K"),
            (1_048_575, "1024.0K"),
            (1 << 20, "1M"),
            (5 << 30, "5G"),
            (3 << 40, "3072G"),
        ] {
            assert_eq!(human_size(bytes), text);
        }
    }
}
