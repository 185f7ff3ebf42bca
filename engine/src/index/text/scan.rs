//! Scanning: a text cut into the units that terms are made of.
//!
//! Owns the classes of characters and the cuts between units. A unit is a word with everything that
//! is glued to it (`GB/s`, `user@host.com`), one character of a script that is written without
//! spaces, or one symbol. What terms a unit gives is the analyser's business.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::fold::is_ignorable;

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters and digits, with the connectors between and around them.
    Word,
    /// One character of a script without spaces between words.
    Dense,
    /// An emoji or another symbol, with its modifiers.
    Symbol,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Where it starts in the text, in bytes.
    pub start: usize,
}

impl Unit<'_> {
    /// Where it lies in the text, in bytes.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// The units of `text`, in order. Linear in the length of the text.
pub(super) fn units(text: &str) -> impl Iterator<Item = Unit<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let first = rest.chars().next()?;
            let (kind, length) = match class(first) {
                Class::Letter | Class::Connector => (Kind::Word, chunk(rest)),
                Class::Dense => (Kind::Dense, cluster(rest)),
                Class::Symbol => (Kind::Symbol, cluster(rest)),
                Class::Gap | Class::Inner => {
                    at += first.len_utf8();
                    continue;
                }
            };
            let start = at;
            at += length;
            let unit = rest.get(..length)?;
            if kind == Kind::Word && !unit.chars().any(|c| class(c) == Class::Letter) {
                continue;
            }
            return Some(Unit { kind, text: unit, start });
        }
    })
}

/// Whether `c` holds the parts of a word together rather than being one.
pub(super) fn is_connector(c: char) -> bool {
    matches!(c, '/' | '.' | '_' | '-' | '@' | ':' | '#' | '+' | '\'' | '&' | '\\' | '~' | '%' | '$' | ',')
        || matches!(c, '\u{2010}' | '\u{2011}' | '\u{2019}')
}

/// Whether a single character of its script is often a whole word.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Dense,
    Connector,
    /// Belongs to whatever stands before it.
    Inner,
    Symbol,
    Gap,
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() {
            Class::Letter
        } else if c != ',' && is_connector(c) {
            Class::Connector
        } else {
            Class::Gap
        };
    }
    if is_dense(c) {
        Class::Dense
    } else if is_ignorable(c) || is_combining_mark(c) {
        Class::Inner
    } else if c.is_alphanumeric() {
        Class::Letter
    } else if is_connector(c) {
        Class::Connector
    } else if c.is_whitespace() || c.is_control() || is_punctuation(c) {
        Class::Gap
    } else {
        Class::Symbol
    }
}

fn is_dense(c: char) -> bool {
    is_han(c)
        || (matches!(c, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1100}'..='\u{11FF}'
            | '\u{1780}'..='\u{17FF}' | '\u{3041}'..='\u{318F}' | '\u{31A0}'..='\u{31BF}'
            | '\u{31F0}'..='\u{31FF}' | '\u{A000}'..='\u{A48F}' | '\u{A960}'..='\u{A97F}'
            | '\u{AC00}'..='\u{D7FF}' | '\u{FF66}'..='\u{FFDC}' | '\u{1B000}'..='\u{1B16F}')
            && c.is_alphanumeric())
}

/// Punctuation that parts words; the ASCII ones are gaps by default.
fn is_punctuation(c: char) -> bool {
    matches!(c, '\u{A1}' | '\u{A7}' | '\u{AB}' | '\u{B6}' | '\u{B7}' | '\u{BB}' | '\u{BF}'
        | '\u{37E}' | '\u{387}' | '\u{55A}'..='\u{55F}' | '\u{589}' | '\u{58A}' | '\u{5BE}' | '\u{5C0}'
        | '\u{5C3}' | '\u{5C6}' | '\u{5F3}' | '\u{5F4}' | '\u{60C}' | '\u{60D}' | '\u{61B}'
        | '\u{61D}'..='\u{61F}' | '\u{66A}'..='\u{66D}' | '\u{6D4}' | '\u{964}' | '\u{965}' | '\u{E2F}'
        | '\u{E4F}' | '\u{E5A}' | '\u{E5B}' | '\u{F04}'..='\u{F14}' | '\u{104A}'..='\u{104F}'
        | '\u{1361}'..='\u{1368}' | '\u{17D4}'..='\u{17DA}' | '\u{1801}'..='\u{180A}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}' | '\u{2E00}'..='\u{2E7F}'
        | '\u{3000}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301F}' | '\u{3030}'
        | '\u{303D}' | '\u{30A0}' | '\u{30FB}' | '\u{FE10}'..='\u{FE19}' | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF01}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}' | '\u{FF3B}'..='\u{FF40}'
        | '\u{FF5B}'..='\u{FF65}' | '\u{FFF9}'..='\u{FFFD}')
}

/// Length in bytes of the word, with its connectors, that `rest` starts with.
fn chunk(rest: &str) -> usize {
    let mut characters = rest.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = characters.next() {
        let goes_on = match class(c) {
            Class::Letter | Class::Connector | Class::Inner => true,
            // A comma inside a number is a part of it.
            Class::Gap => {
                c == ','
                    && before.is_ascii_digit()
                    && characters.peek().is_some_and(|&(_, next)| next.is_ascii_digit())
            }
            Class::Dense | Class::Symbol => false,
        };
        if !goes_on {
            return at;
        }
        before = c;
    }
    rest.len()
}

/// Length in bytes of the grapheme cluster that `rest` starts with.
fn cluster(rest: &str) -> usize {
    rest.graphemes(true).next().map_or(rest.len(), str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        units(text).map(|unit| unit.text).collect()
    }

    #[test]
    fn words_keep_what_is_glued_to_them() {
        assert_eq!(texts("runs at 12 GB/s, (v1.2.3)!"), ["runs", "at", "12", "GB/s", "v1.2.3"]);
        assert_eq!(
            texts("mail user@host.com: 1,000 times, twice"),
            ["mail", "user@host.com:", "1,000", "times", "twice"]
        );
        assert_eq!(texts("a,b"), ["a", "b"]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_at_every_character() {
        assert_eq!(texts("東京v2です。"), ["東", "京", "v2", "で", "す"]);
        assert_eq!(texts("ก่อน"), ["ก่", "อ", "น"]);
        assert_eq!(texts("한국어"), ["한", "국", "어"]);
    }

    #[test]
    fn symbols_stand_alone_with_their_modifiers() {
        assert_eq!(texts("go🚀!👩\u{200D}💻👍🏽"), ["go", "🚀", "👩\u{200D}💻", "👍🏽"]);
    }

    #[test]
    fn punctuation_alone_gives_nothing() {
        assert_eq!(texts("... -- !? «» 、。 \u{301}\u{200D}"), Vec::<&str>::new());
    }

    #[test]
    fn ranges_point_into_the_text() {
        let text = "naïve 東京 🚀 x";
        for unit in units(text) {
            assert_eq!(text.get(unit.range()), Some(unit.text));
        }
    }
}
