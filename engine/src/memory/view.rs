//! The `view` command: a file with line numbers, or a directory two levels deep.
//!
//! What is shown is bounded in characters and always makes progress: a note says where to go on.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::CommandError;
use super::lines::{MOST_LINES, human_size, lines, numbered};
use crate::contract::Limits;
use crate::path::check_path;
use crate::state::State;

/// Shows `path`. `max_chars` bounds the numbered lines or entries, not header and note.
pub(crate) fn view(
    state: &State,
    path: &str,
    range: Option<&[i64]>,
    limits: &Limits,
    max_chars: u64,
) -> Result<String, CommandError> {
    check_path(path, limits)?;
    let max_chars = usize::try_from(max_chars).unwrap_or(usize::MAX);
    if let Some(entry) = state.names.get(path) {
        let record = state.read(entry)?.ok_or_else(|| CommandError::NothingThere(path.into()))?;
        return view_file(path, &record.text, range, max_chars);
    }
    if state.names.is_dir(path) {
        return Ok(view_directory(state, path, max_chars));
    }
    Err(CommandError::NothingThere(path.into()))
}

fn view_file(
    path: &str,
    text: &str,
    range: Option<&[i64]>,
    max_chars: usize,
) -> Result<String, CommandError> {
    let lines = lines(text);
    if lines.len() > MOST_LINES {
        return Err(CommandError::TooManyLines(path.into()));
    }
    let (first, last) = match range {
        None => (0, lines.len()),
        Some(&[first, last]) if last >= -1 => {
            let last = if last == -1 { lines.len() } else { usize::try_from(last).unwrap_or(usize::MAX) };
            (usize::try_from(first.max(1)).unwrap_or(usize::MAX) - 1, last.min(lines.len()))
        }
        Some(_) => return Err(CommandError::ViewRange),
    };
    // What was asked for stays the end of it.
    let end = range.map_or(-1, |range| range[1]);
    let shown = lines.get(first..last).unwrap_or_default();
    let mut out = format!("Here's the content of {path} with line numbers:\n");
    let mut left = max_chars;
    for (offset, line) in shown.iter().enumerate() {
        let number = first + offset + 1;
        let line = numbered(number, line);
        let cost = line.chars().count() + usize::from(offset > 0);
        if cost <= left {
            left -= cost;
            if offset > 0 {
                out.push('\n');
            }
            out.push_str(&line);
            continue;
        }
        if offset > 0 {
            let _ = write!(
                out,
                "\n\n[Cut after {} of {} lines to stay within {max_chars} characters. \
                 To go on, view with view_range [{number}, {end}].]",
                number - 1,
                lines.len(),
            );
        } else {
            // Not even one line fits: show its beginning, so that every call shows something.
            let prefix = numbered(number, "").chars().count();
            out.extend(line.chars().take(left.max(prefix + 1)));
            let _ = write!(out, "\n\n[Line {number} was cut to stay within {max_chars} characters.");
            if number < last {
                let _ = write!(out, " To go on behind it, view with view_range [{}, {end}].", number + 1);
            }
            out.push(']');
        }
        break;
    }
    Ok(out)
}

/// A directory on the way to being shown: its size, and what is right below it.
#[derive(Default)]
struct Listing<'a> {
    bytes: u64,
    /// `None` for a file.
    below: Option<BTreeMap<&'a str, Listing<'a>>>,
}

impl<'a> Listing<'a> {
    fn add(&mut self, path: &'a str, bytes: u64) {
        self.bytes += bytes;
        let (name, rest) = path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let child = self.below.get_or_insert_default().entry(name).or_default();
        match rest {
            Some(rest) => child.add(rest, bytes),
            None => child.bytes += bytes,
        }
    }

    fn list(&self, path: &str, depth: usize, out: &mut Vec<String>) {
        for (name, child) in self.below.iter().flatten() {
            if *name == "node_modules" {
                continue;
            }
            let size = human_size(child.bytes);
            if child.below.is_none() {
                out.push(format!("{size}\t{path}/{name}"));
            } else {
                out.push(format!("{size}\t{path}/{name}/"));
                if depth < 2 {
                    child.list(&format!("{path}/{name}"), depth + 1, out);
                }
            }
        }
    }
}

fn view_directory(state: &State, path: &str, max_chars: usize) -> String {
    let entries: Vec<_> = state.names.under(path).cloned().collect();
    let mut root = Listing::default();
    for entry in &entries {
        root.add(&entry.key[path.len() + 1..], entry.bytes);
    }
    let mut rows = vec![format!("{}\t{path}", human_size(root.bytes))];
    root.list(path, 1, &mut rows);
    let mut out = format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    );
    let mut left = max_chars;
    for (shown, row) in rows.iter().enumerate() {
        let cost = row.chars().count() + 1;
        if cost > left && shown > 1 {
            let _ = write!(
                out,
                "\n\n[{} more entries were cut to stay within {max_chars} characters. \
                 View a directory below {path} to see what is in it.]",
                rows.len() - shown,
            );
            break;
        }
        left = left.saturating_sub(cost);
        out.push('\n');
        out.push_str(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, range: Option<&[i64]>, max_chars: usize) -> String {
        view_file("/memories/f", text, range, max_chars).unwrap()
    }

    const HEADER: &str = "Here's the content of /memories/f with line numbers:\n";

    #[test]
    fn a_file_is_shown_with_numbers_and_without_a_phantom_line() {
        assert_eq!(file("a\nb\n", None, 100), format!("{HEADER}     1\ta\n     2\tb"));
        assert_eq!(file("a\r\n\nb", None, 100), format!("{HEADER}     1\ta\r\n     2\t\n     3\tb"));
        assert_eq!(file("", None, 100), HEADER);
    }

    #[test]
    fn a_range_shows_the_lines_that_exist() {
        let text = "a\nb\nc\n";
        let shown = |range: &[i64]| file(text, Some(range), 100);
        assert_eq!(shown(&[2, 3]), format!("{HEADER}     2\tb\n     3\tc"));
        assert_eq!(shown(&[2, -1]), format!("{HEADER}     2\tb\n     3\tc"));
        assert_eq!(shown(&[3, 99]), format!("{HEADER}     3\tc"));
        assert_eq!(shown(&[-4, 1]), format!("{HEADER}     1\ta"));
        for nothing in [[4, 9], [3, 2], [1, 0], [i64::MAX, -1]] {
            assert_eq!(shown(&nothing), HEADER);
        }
        for range in [&[1][..], &[1, 2, 3], &[], &[1, -2]] {
            assert!(matches!(view_file("/memories/f", text, Some(range), 100), Err(CommandError::ViewRange)));
        }
    }

    #[test]
    fn a_long_view_is_cut_at_a_line_and_following_its_notes_shows_everything() {
        let text: String = (0..500).map(|n| format!("line {n} with some words\n")).collect();
        let (mut seen, mut from) = (Vec::new(), 1);
        loop {
            let page = file(&text, Some(&[from, -1]), 1_000);
            let body = page.strip_prefix(HEADER).unwrap();
            let (shown, note) =
                body.split_once("\n\n[").map_or((body, None), |(shown, note)| (shown, Some(note)));
            assert!(shown.chars().count() <= 1_000);
            seen.extend(shown.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()));
            let Some(note) = note else { break };
            from = note.split_once("view_range [").unwrap().1.split_once(',').unwrap().0.parse().unwrap();
        }
        assert_eq!(seen, text.lines().collect::<Vec<_>>());
    }

    #[test]
    fn a_line_beyond_the_limit_is_cut_at_a_character_and_says_where_to_go_on() {
        let text = format!("{}\nnext\n", "é".repeat(50));
        let page = file(&text, None, 20);
        assert!(
            page.starts_with(&format!("{HEADER}     1\t{}\n\n[Line 1 was cut", "é".repeat(13))),
            "{page}"
        );
        assert!(page.contains("view_range [2, -1]"));
        for limit in 0..60 {
            assert!(file(&text, None, limit).contains("     1\té"), "something is shown at {limit}");
        }
        assert!(!file(&"x".repeat(50), None, 20).contains("view_range"), "there is nothing behind it");
    }
}
