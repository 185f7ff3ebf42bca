//! Excerpts: the part of a passage that is shown.
//!
//! Owns where an excerpt is cut and which lines a passage is on. An excerpt is always a piece of
//! the text as it was written, never normalised or marked up.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::analyser::each_term;
use super::query::Query;

/// Occurrences that are weighed; those after them change nothing a reader would notice.
const MOST_OCCURRENCES: usize = 512;

/// At most `max_chars` characters of `passage` around the words of `query`, and the first and the
/// last line of the whole passage, counted from 1.
///
/// `passage` is a byte range of `text` as in [`Hit::passage`](super::Hit::passage); one that is out
/// of bounds or splits a character is narrowed. Cuts are made between words where that is possible,
/// else between grapheme clusters, and inside a cluster only if it alone is too long.
pub fn excerpt(text: &str, passage: Range<usize>, query: &Query, max_chars: usize) -> (String, [u64; 2]) {
    let whole = slice(text, passage);
    let passage = whole.trim();
    let before = whole.len() - whole.trim_start().len();
    let start = offset_in(text, whole) + before;
    let first = line_of(text, start);
    let last = first + newlines(passage);
    let shown = passage.get(window(passage, query, max_chars)).unwrap_or_default();
    (shown.trim().to_owned(), [first, last])
}

/// Where `part` begins in `text`, of which it is a slice.
fn offset_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn slice(text: &str, range: Range<usize>) -> &str {
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.get(floor(range.start)..floor(range.end)).unwrap_or_default()
}

fn line_of(text: &str, at: usize) -> u64 {
    1 + text.get(..at).map_or(0, newlines)
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|&b| b == b'\n').count() as u64
}

/// The bytes of `passage` to show.
fn window(passage: &str, query: &Query, max_chars: usize) -> Range<usize> {
    if passage.chars().nth(max_chars).is_none() {
        return 0..passage.len();
    }
    let clusters = Clusters::of(passage);
    let focus = focus(passage, query, &clusters, max_chars);
    // What the words leave free is given to the words after them rather than before.
    let lead = max_chars.saturating_sub(clusters.chars_in(&focus)) / 3;
    let begin = clusters.begin(&focus, lead);
    let begin = at_word_start(passage, begin, focus.start);
    let end = clusters.end(begin, max_chars);
    if end == begin {
        // A single cluster is longer than the limit.
        let rest = passage.get(begin..).unwrap_or_default();
        return begin..begin + rest.char_indices().nth(max_chars).map_or(rest.len(), |(at, _)| at);
    }
    begin..at_word_end(passage, end, focus.end.min(end).max(begin))
}

/// The shortest of the stretches of at most `max_chars` that hold the most different query terms.
fn focus(passage: &str, query: &Query, clusters: &Clusters, max_chars: usize) -> Range<usize> {
    let mut occurrences: Vec<(usize, Range<usize>)> = Vec::new();
    each_term(passage, |term| {
        if occurrences.len() < MOST_OCCURRENCES
            && let Some(which) = query.place(term.term)
        {
            occurrences.push((which, term.unit.clone()));
        }
    });
    let mut best = (0, usize::MAX, 0..0);
    for (i, (_, first)) in occurrences.iter().enumerate() {
        let mut seen = Vec::new();
        for (which, unit) in occurrences.iter().skip(i) {
            if seen.contains(which) {
                continue;
            }
            let chars = clusters.chars_in(&(first.start..unit.end));
            if chars > max_chars && !seen.is_empty() {
                break;
            }
            seen.push(*which);
            if seen.len() > best.0 || (seen.len() == best.0 && chars < best.1) {
                best = (seen.len(), chars, first.start..unit.end);
            }
        }
    }
    best.2
}

/// The first start of a word from `begin` on, up to `limit`.
fn at_word_start(passage: &str, begin: usize, limit: usize) -> usize {
    let inside_word = passage.get(..begin).and_then(|before| before.chars().next_back());
    if inside_word.is_none_or(char::is_whitespace) {
        return begin;
    }
    let skipped = passage.get(begin..limit).unwrap_or_default();
    skipped.char_indices().find(|(_, c)| c.is_whitespace()).map_or(begin, |(at, c)| begin + at + c.len_utf8())
}

/// The last end of a word up to `end`, but not before `limit`.
fn at_word_end(passage: &str, end: usize, limit: usize) -> usize {
    let next = passage.get(end..).and_then(|after| after.chars().next());
    if next.is_none_or(char::is_whitespace) {
        return end;
    }
    passage.get(limit..end).and_then(|kept| kept.rfind(char::is_whitespace)).map_or(end, |at| {
        // An excerpt that begins with white space only is no better than one cut inside a word.
        if at == 0 { end } else { limit + at }
    })
}

/// The boundaries of grapheme clusters, with the number of characters before each.
struct Clusters {
    /// `(byte, characters before it)`, with the end of the text as the last.
    starts: Vec<(usize, usize)>,
}

impl Clusters {
    fn of(text: &str) -> Self {
        let mut chars = 0;
        let mut starts = Vec::with_capacity(text.len() / 2 + 1);
        for (at, cluster) in text.grapheme_indices(true) {
            starts.push((at, chars));
            chars += cluster.chars().count();
        }
        starts.push((text.len(), chars));
        Self { starts }
    }

    fn chars(&self) -> usize {
        self.starts.last().map_or(0, |&(_, chars)| chars)
    }

    /// Characters before the first cluster that starts at or after byte `at`.
    fn chars_before(&self, at: usize) -> usize {
        let next = self.starts.partition_point(|&(start, _)| start < at);
        self.starts.get(next).map_or(self.chars(), |&(_, chars)| chars)
    }

    fn chars_in(&self, range: &Range<usize>) -> usize {
        self.chars_before(range.end).saturating_sub(self.chars_before(range.start))
    }

    /// The boundary at most `lead` characters before the start of `focus`.
    fn begin(&self, focus: &Range<usize>, lead: usize) -> usize {
        let earliest = self.chars_before(focus.start).saturating_sub(lead);
        let at = self.starts.partition_point(|&(_, chars)| chars < earliest);
        self.starts.get(at).map_or(0, |&(start, _)| start)
    }

    /// The last boundary at most `max_chars` characters after `begin`.
    fn end(&self, begin: usize, max_chars: usize) -> usize {
        let most = self.chars_before(begin).saturating_add(max_chars);
        let after = self.starts.partition_point(|&(_, chars)| chars <= most);
        after.checked_sub(1).and_then(|last| self.starts.get(last)).map_or(begin, |&(end, _)| end.max(begin))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HARD: [&str; 6] = [
        "東京都庁は新宿にあります。天気が良い日には富士山が見えます。",
        "“Curly quotes” and ‘single ones’ — with dashes… everywhere",
        "Съешь же ещё этих мягких французских булок, да выпей чаю",
        "Z\u{351}\u{36B}\u{343}a\u{334}l\u{341}g\u{308}o\u{30A} e\u{301}e\u{301}e\u{301} combining",
        "👩\u{200D}👩\u{200D}👧\u{200D}👦 family 👩🏽\u{200D}💻 works 🏳\u{FE0F}\u{200D}🌈 flag 🇯🇵🇫🇷",
        "한국어 ภาษาไทย हिन्दी العربية",
    ];

    #[test]
    fn every_width_gives_that_many_characters_at_most() {
        for text in HARD {
            for width in 0..=200 {
                for query in ["", "富士山", "dashes", "выпей", "💻", "combining"] {
                    let (shown, lines) = excerpt(text, 0..text.len(), &Query::new(query), width);
                    assert!(shown.chars().count() <= width && text.contains(&shown));
                    assert_eq!(shown.is_empty(), width == 0, "{width} of {text}");
                    assert_eq!(lines, [1, 1]);
                }
            }
        }
    }

    #[test]
    fn clusters_stay_whole_where_they_fit() {
        let family = "👩\u{200D}👩\u{200D}👧\u{200D}👦";
        let text = format!("{family}{family}");
        assert_eq!(excerpt(&text, 0..text.len(), &Query::new(""), 10).0, family);
        assert_eq!(excerpt(&text, 0..text.len(), &Query::new(""), 3).0.chars().count(), 3);
    }

    #[test]
    fn the_words_of_the_query_are_shown() {
        let text = format!("{}the needle is here {}", "hay stack ".repeat(50), "more hay ".repeat(50));
        let (shown, _) = excerpt(&text, 0..text.len(), &Query::new("where is the needle?"), 40);
        assert!(shown.contains("needle is here"), "{shown}");
        assert!(!shown.starts_with("ck") && text.contains(&format!(" {shown} ")), "{shown}");
    }

    #[test]
    fn lines_are_those_of_the_passage() {
        let text = "one\ntwo\n\nfour five\nsix\n";
        let at = |word: &str| text.find(word).unwrap_or_default();
        assert_eq!(excerpt(text, at("two")..at("six"), &Query::new("five"), 4), ("five".to_owned(), [2, 4]));
        assert_eq!(excerpt(text, 0..text.len(), &Query::new(""), 100).1, [1, 5]);
        assert_eq!(excerpt("", 0..0, &Query::new(""), 100), (String::new(), [1, 1]));
    }

    proptest! {
        #[test]
        fn any_text_range_and_width_is_served(
            text in "(?s).{0,80}", query in "(?s).{0,20}", a in 0usize..400, b in 0usize..400, width in 0usize..60
        ) {
            let (shown, [first, last]) = excerpt(&text, a..b, &Query::new(&query), width);
            prop_assert!(shown.chars().count() <= width && text.contains(&shown));
            prop_assert!(1 <= first && first <= last);
        }
    }
}
