//! The analyser: the terms of a unit of text.
//!
//! Owns folding a word to its stem, taking compounds and camelCase apart, pairing the characters of
//! scripts without spaces, and bounding the length of a term. The same terms are made for a memory
//! and for a query; what a query leaves out is decided in `query`.
//!
//! Stems are those of the English Snowball stemmer (Porter, "Snowball: a language for stemming
//! algorithms", 2001).

use std::ops::Range;

use rust_stemmers::{Algorithm, Stemmer};
use sha2::{Digest, Sha256};

use super::fold::fold_into;
use super::irregular::base_of;
use super::scan::{Kind, Unit, is_connector, is_han, units};

/// Longest term that is kept as it is, in bytes.
const LONGEST_TERM: usize = 64;
/// How much of a longer one is kept, in bytes, before the hash of the whole.
const KEPT_OF_LONG: usize = 24;

/// How a term came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A plain word, or a compound as a whole.
    Word,
    /// A part of a compound.
    Part,
    /// One character of a script without spaces that may well be a word: a Han, or one that has no
    /// neighbours.
    Alone,
    /// Any other character of such a script.
    Single,
    /// Two neighbours in a script without spaces.
    Pair,
    /// An emoji or another symbol.
    Symbol,
}

/// One term of a text.
pub(super) struct Term<'a> {
    /// What is indexed and looked up.
    pub term: &'a str,
    /// The folded word before stemming.
    pub word: &'a str,
    pub origin: Origin,
    /// The unit that it belongs to, in bytes of the text.
    pub unit: Range<usize>,
}

/// Calls `visit` with every term of `text`, in order. Linear in the length of the text.
pub(super) fn each_term(text: &str, mut visit: impl FnMut(&Term<'_>)) {
    let mut maker = Maker { stemmer: Stemmer::create(Algorithm::English), folded: String::new() };
    let mut neighbour: Option<Unit<'_>> = None;
    let mut units = units(text).peekable();
    while let Some(unit) = units.next() {
        match unit.kind {
            Kind::Word => maker.word(&unit, &mut visit),
            Kind::Dense => maker.dense(&unit, [neighbour.as_ref(), units.peek()], &mut visit),
            Kind::Symbol => maker.symbol(&unit, &mut visit),
        }
        neighbour = Some(unit);
    }
}

struct Maker {
    stemmer: Stemmer,
    folded: String,
}

impl Maker {
    fn word(&mut self, unit: &Unit<'_>, visit: &mut impl FnMut(&Term<'_>)) {
        let text = trimmed(unit.text);
        let range = unit.range();
        if !text.contains(is_connector) {
            self.plain(text, Origin::Word, &range, visit);
            return;
        }
        let apostrophe = |c| matches!(c, '\'' | '\u{2019}');
        let hyphen = |c| matches!(c, '-' | '\u{2010}' | '\u{2011}');
        let owner = without_possessive(text);
        if !owner.contains(is_connector) {
            self.plain(owner, Origin::Word, &range, visit);
            return;
        }
        let joined_by = |joint: fn(char) -> bool| owner.chars().all(|c| !is_connector(c) || joint(c));
        let hyphenated = joined_by(hyphen) && !owner.contains(char::is_numeric);
        if joined_by(apostrophe) {
            self.joined(owner, &range, visit);
            // `don't` is one word; `l'avion` and `o'brien` have one inside.
            if owner.rsplit(apostrophe).next().is_some_and(|last| last.chars().count() > 2) {
                self.parts(owner, 2, &range, visit);
            }
        } else if hyphenated || is_acronym(owner) {
            self.joined(owner, &range, visit);
            self.parts(owner, 1, &range, visit);
        } else {
            self.compound(owner, &range, visit);
            self.parts(owner, 1, &range, visit);
        }
    }

    /// A compound with its connectors; commas inside numbers are dropped.
    fn compound(&mut self, text: &str, range: &Range<usize>, visit: &mut impl FnMut(&Term<'_>)) {
        self.folded.clear();
        fold_into(text, &mut self.folded);
        self.folded.retain(|c| c != ',');
        emit(&self.folded, &self.folded, Origin::Word, range, visit);
    }

    /// A compound as if it were written in one word.
    fn joined(&mut self, text: &str, range: &Range<usize>, visit: &mut impl FnMut(&Term<'_>)) {
        self.folded.clear();
        for part in text.split(is_connector) {
            fold_into(part, &mut self.folded);
        }
        self.stemmed(Origin::Word, range, visit);
    }

    fn parts(
        &mut self,
        text: &str,
        shortest: usize,
        range: &Range<usize>,
        visit: &mut impl FnMut(&Term<'_>),
    ) {
        for part in text.split(is_connector) {
            if part.chars().nth(shortest - 1).is_some() {
                self.plain(part, Origin::Part, range, visit);
            }
        }
    }

    /// A word without connectors, and the words inside it if it is written in camelCase.
    fn plain(&mut self, text: &str, origin: Origin, range: &Range<usize>, visit: &mut impl FnMut(&Term<'_>)) {
        self.folded.clear();
        fold_into(text, &mut self.folded);
        self.stemmed(origin, range, visit);
        let humps = humps(text);
        if humps.len() < 2 {
            return;
        }
        for hump in humps {
            if hump.chars().nth(1).is_some() {
                self.folded.clear();
                fold_into(hump, &mut self.folded);
                self.stemmed(Origin::Part, range, visit);
            }
        }
    }

    fn stemmed(&self, origin: Origin, range: &Range<usize>, visit: &mut impl FnMut(&Term<'_>)) {
        let word = self.folded.as_str();
        if (3..=LONGEST_TERM).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()) {
            emit(&self.stemmer.stem(base_of(word).unwrap_or(word)), word, origin, range, visit);
        } else {
            emit(word, word, origin, range, visit);
        }
    }

    fn dense(
        &mut self,
        unit: &Unit<'_>,
        [before, after]: [Option<&Unit<'_>>; 2],
        visit: &mut impl FnMut(&Term<'_>),
    ) {
        let range = unit.range();
        let is_dense = |other: &&Unit<'_>| other.kind == Kind::Dense;
        let before = before.filter(is_dense).filter(|before| before.range().end == range.start);
        let after = after.filter(is_dense).filter(|after| after.start == range.end);
        let alone = unit.text.starts_with(is_han) || (before.is_none() && after.is_none());
        let origin = if alone { Origin::Alone } else { Origin::Single };
        self.folded.clear();
        fold_into(unit.text, &mut self.folded);
        emit(&self.folded, &self.folded, origin, &range, visit);
        if let Some(neighbour) = before {
            self.folded.clear();
            fold_into(neighbour.text, &mut self.folded);
            fold_into(unit.text, &mut self.folded);
            emit(&self.folded, &self.folded, Origin::Pair, &range, visit);
        }
    }

    /// A symbol, and each of those that it is joined from; skin tones are dropped.
    fn symbol(&mut self, unit: &Unit<'_>, visit: &mut impl FnMut(&Term<'_>)) {
        const JOINER: char = '\u{200D}';
        let tone = |c| matches!(c, '\u{1F3FB}'..='\u{1F3FF}');
        let range = unit.range();
        self.folded.clear();
        fold_into(unit.text, &mut self.folded);
        if self.folded.chars().any(|c| !tone(c)) {
            self.folded.retain(|c| !tone(c));
        }
        emit(&self.folded, &self.folded, Origin::Symbol, &range, visit);
        if unit.text.contains(JOINER) {
            for piece in unit.text.split(JOINER) {
                self.folded.clear();
                fold_into(piece, &mut self.folded);
                self.folded.retain(|c| !tone(c));
                emit(&self.folded, &self.folded, Origin::Part, &range, visit);
            }
        }
    }
}

/// Hands on one term, with the middle of an overlong one replaced by a hash of the whole, so that
/// two that differ anywhere stay two terms.
fn emit(term: &str, word: &str, origin: Origin, unit: &Range<usize>, visit: &mut impl FnMut(&Term<'_>)) {
    if term.is_empty() {
        return;
    }
    if term.len() <= LONGEST_TERM {
        visit(&Term { term, word, origin, unit: unit.clone() });
        return;
    }
    let kept = (0..=KEPT_OF_LONG).rev().find_map(|end| term.get(..end)).unwrap_or_default();
    let mut short = String::with_capacity(KEPT_OF_LONG + 34);
    short.push_str(kept);
    short.push('\u{1F}');
    for byte in Sha256::digest(term.as_bytes()).iter().take(16) {
        for nibble in [byte >> 4, byte & 15] {
            short.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    visit(&Term { term: &short, word: &short, origin, unit: unit.clone() });
}

/// Drops the connectors around a word, but for those that are part of a name (`c++`, `#12`, `$5`).
fn trimmed(text: &str) -> &str {
    text.trim_start_matches(|c: char| is_connector(c) && !matches!(c, '#' | '$'))
        .trim_end_matches(|c: char| !c.is_alphanumeric() && is_connector(c) && !matches!(c, '#' | '+' | '%'))
}

fn without_possessive(text: &str) -> &str {
    for mark in ["'", "\u{2019}"] {
        for s in ["s", "S"] {
            if let Some(owner) = text.strip_suffix(s).and_then(|rest| rest.strip_suffix(mark)) {
                return owner;
            }
        }
    }
    text
}

/// Whether every part is one letter and every connector a full stop, as in `U.S.A`.
fn is_acronym(text: &str) -> bool {
    text.chars().all(|c| !is_connector(c) || c == '.')
        && text.split('.').all(|part| part.chars().count() == 1 && part.chars().all(char::is_alphabetic))
}

/// The words inside a camelCase one; the word itself if there is only one.
fn humps(text: &str) -> Vec<&str> {
    let mut humps = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (at, c) in text.char_indices() {
        let Some(last) = before.replace(c) else { continue };
        let rises = last.is_lowercase() && c.is_uppercase();
        // `HTTPServer` is cut before its S, but the plural `GBs` is not cut.
        let leaves_capitals = last.is_uppercase() && c.is_uppercase() && {
            let mut next = text.get(at..).unwrap_or_default().chars().skip(1);
            next.next().is_some_and(char::is_lowercase) && next.next().is_some_and(char::is_lowercase)
        };
        if rises || leaves_capitals {
            humps.extend(text.get(start..at));
            start = at;
        }
    }
    humps.extend(text.get(start..));
    humps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        each_term(text, |term| terms.push(term.term.to_owned()));
        terms
    }

    #[test]
    fn words_fold_to_their_english_stem() {
        assert_eq!(terms("Running CAFÉS, naïvely"), ["run", "cafe", "naiv"]);
        assert_eq!(terms("John's dog, the dogs\u{2019} don't"), ["john", "dog", "the", "dog", "dont"]);
        assert_eq!(terms("O'Brien"), ["obrien", "brien"]);
    }

    #[test]
    fn compounds_give_the_whole_and_the_parts() {
        for (text, wanted) in [
            ("GB/s", &["gb/s", "gb", "s"][..]),
            ("v1.2.3,", &["v1.2.3", "v1", "2", "3"]),
            ("snake_case.", &["snake_case", "snake", "case"]),
            ("camelCase", &["camelcas", "camel", "case"]),
            ("HTTPServer", &["httpserver", "http", "server"]),
            ("user@host.com", &["user@host.com", "user", "host", "com"]),
            ("/src/main.rs", &["src/main.rs", "src", "main", "rs"]),
            ("e-mail", &["email", "e", "mail"]),
            ("1,000", &["1000", "1", "000"]),
            ("U.S.A.", &["usa", "u", "s", "a"]),
            ("C++", &["c++", "c"]),
            ("#42", &["#42", "42"]),
        ] {
            assert_eq!(terms(text), wanted, "{text}");
        }
    }

    #[test]
    fn scripts_without_spaces_give_characters_and_pairs() {
        assert_eq!(terms("東京都"), ["東", "京", "東京", "都", "京都"]);
        assert_eq!(terms("서울"), ["서", "울", "서울"]);
    }

    #[test]
    fn emoji_are_terms_without_their_skin_tone() {
        assert_eq!(terms("👍🏽"), terms("👍"));
        assert_eq!(terms("❤\u{FE0F}"), terms("❤"));
        assert!(terms("👩\u{200D}💻").contains(&"💻".to_owned()));
    }

    #[test]
    fn overlong_tokens_stay_short_and_apart() {
        let long = "x".repeat(70_000);
        let (a, b) = (terms(&format!("{long}a")), terms(&format!("{long}b")));
        assert_eq!((a.len(), b.len()), (1, 1));
        assert_ne!(a, b);
        assert!(a.iter().all(|term| term.len() <= LONGEST_TERM));
    }

    proptest! {
        #[test]
        fn any_text_gives_short_terms_inside_it(text in "\\PC{0,60}|(?s).{0,60}") {
            each_term(&text, |term| {
                assert!(!term.term.is_empty() && term.term.len() <= LONGEST_TERM);
                assert!(text.get(term.unit.clone()).is_some());
            });
        }
    }
}
