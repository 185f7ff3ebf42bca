//! Passages: a document cut into overlapping stretches, each with its terms counted.
//!
//! Owns the size and overlap of passages and what the head of a document is made of. Everything
//! here is a pure function of the document; no index, no lock.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Serialize};

use super::DocumentId;
use super::analyser::each_term;

/// Units of text (words; characters in scripts without spaces) that a passage aims at.
const PASSAGE: usize = 200;
/// Units that neighbouring passages share.
const OVERLAP: usize = 50;
/// A text of up to this many units is not cut, since its second passage would add little.
const UNCUT: usize = 300;

/// What is to be indexed of one version of a memory.
pub struct Document<'a> {
    /// Its random id.
    pub id: DocumentId,
    /// The words of its path or key; may be empty.
    pub name: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its tags.
    pub tags: &'a [String],
    /// Its text.
    pub text: &'a str,
}

/// A document ready to be inserted. `Debug` is not derived: it holds words of the memory.
#[derive(Serialize, Deserialize)]
pub struct Analysed {
    pub(super) id: DocumentId,
    /// The distinct terms; passages refer to them by position.
    pub(super) terms: Terms,
    pub(super) passages: Vec<AnalysedPassage>,
}

/// Terms one behind the other, which takes two allocations and not one for each.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Terms {
    text: String,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Terms {
    fn push(&mut self, term: &str) {
        self.text.push_str(term);
        self.ends.push(saturated(self.text.len()));
    }

    fn get(&self, number: u32) -> &str {
        let end = |number: usize| self.ends.get(number).map_or(0, |end| *end as usize);
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, end);
        self.text.get(start..end(number)).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..saturated(self.ends.len())).map(|number| self.get(number))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct AnalysedPassage {
    /// Where it lies in the text, in bytes.
    pub range: Range<u32>,
    pub body: u32,
    pub head: u32,
    pub counts: Vec<Count>,
}

/// How often a term occurs.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Count {
    /// A position in [`Analysed::terms`].
    pub term: u32,
    pub body: u16,
    pub head: u16,
}

impl Analysed {
    /// The id of the document.
    pub fn id(&self) -> &DocumentId {
        &self.id
    }
}

/// Cuts a document into passages and counts their terms. Linear in the length of the document.
pub fn analyse(document: &Document<'_>) -> Analysed {
    let mut vocabulary = Vocabulary::default();
    let head = head(document, &mut vocabulary);
    let text = Units::of(document.text, &mut vocabulary);
    let mut counter = Counter { counts: vec![[0; 2]; vocabulary.terms.len()], touched: Vec::new() };
    let passages = windows(text.starts.len())
        .map(|window| {
            let range = text.bytes(&window);
            let terms = text.terms(&window);
            for &term in terms {
                counter.count(term, 0);
            }
            for &term in &head {
                counter.count(term, 1);
            }
            AnalysedPassage {
                range,
                body: saturated(terms.len()),
                head: saturated(head.len()),
                counts: counter.take(),
            }
        })
        .collect();
    Analysed { id: document.id, terms: vocabulary.terms, passages }
}

/// The terms of title, name and tags.
fn head(document: &Document<'_>, vocabulary: &mut Vocabulary) -> Vec<u32> {
    let tags = document.tags.iter().map(String::as_str);
    let mut terms = Vec::new();
    for part in [document.name, document.title.unwrap_or_default()].into_iter().chain(tags) {
        each_term(part, |term| terms.push(vocabulary.number(term.term)));
    }
    terms
}

/// The stretches of `units` units that become passages: at least one, and of even length.
fn windows(units: usize) -> impl Iterator<Item = Range<usize>> {
    let count = if units <= UNCUT { 1 } else { (units - OVERLAP).div_ceil(PASSAGE - OVERLAP) };
    // The last one ends with the text; the others begin at even distances before it.
    let length = if count == 1 { units } else { (units + (count - 1) * OVERLAP).div_ceil(count) };
    (0..count).map(move |i| {
        let start = if count == 1 { 0 } else { i * (units - length) / (count - 1) };
        start..start + length
    })
}

fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[derive(Default)]
struct Vocabulary {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    terms: Terms,
}

impl Vocabulary {
    fn number(&mut self, term: &str) -> u32 {
        let Self { numbers, hasher, terms } = self;
        let hash = hasher.hash_one(term);
        let entry = numbers.entry(
            hash,
            |known| terms.get(*known) == term,
            |known| hasher.hash_one(terms.get(*known)),
        );
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let number = saturated(terms.len());
                place.insert(number);
                terms.push(term);
                number
            }
        }
    }
}

/// A text as a sequence of units, each with its terms.
struct Units {
    /// Per unit: where it starts in the text, and which of `terms` is its first.
    starts: Vec<(u32, u32)>,
    terms: Vec<u32>,
    /// Length of the text in bytes.
    end: u32,
}

impl Units {
    fn of(text: &str, vocabulary: &mut Vocabulary) -> Self {
        let mut units = Self { starts: Vec::new(), terms: Vec::new(), end: saturated(text.len()) };
        each_term(text, |term| {
            let start = saturated(term.unit.start);
            if units.starts.last().is_none_or(|&(last, _)| last != start) {
                units.starts.push((start, saturated(units.terms.len())));
            }
            units.terms.push(vocabulary.number(term.term));
        });
        units
    }

    /// From the first unit of `window` to the unit after it; the first and the last passage take
    /// what is left of the text.
    fn bytes(&self, window: &Range<usize>) -> Range<u32> {
        let at = |unit: usize| self.starts.get(unit).map_or(self.end, |&(start, _)| start);
        let start = if window.start == 0 { 0 } else { at(window.start) };
        start..at(window.end)
    }

    fn terms(&self, window: &Range<usize>) -> &[u32] {
        let at = |unit: usize| self.starts.get(unit).map_or(self.terms.len(), |&(_, first)| first as usize);
        self.terms.get(at(window.start)..at(window.end)).unwrap_or_default()
    }
}

/// Counts the terms of one passage after the other.
struct Counter {
    counts: Vec<[u16; 2]>,
    touched: Vec<u32>,
}

impl Counter {
    fn count(&mut self, term: u32, field: usize) {
        let Some(counts) = self.counts.get_mut(term as usize) else {
            return;
        };
        if *counts == [0; 2] {
            self.touched.push(term);
        }
        if let Some(count) = counts.get_mut(field) {
            *count = count.saturating_add(1);
        }
    }

    fn take(&mut self) -> Vec<Count> {
        let counts = &mut self.counts;
        self.touched
            .drain(..)
            .filter_map(|term| {
                let [body, head] = std::mem::take(counts.get_mut(term as usize)?);
                Some(Count { term, body, head })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document<'a>(text: &'a str, tags: &'a [String]) -> Document<'a> {
        Document { id: [1; 16], name: "notes/plan.md", title: Some("The Plan"), tags, text }
    }

    #[test]
    fn passages_cover_the_text_and_overlap() {
        for words in [0, 1, 200, 300, 301, 350, 351, 1_000, 5_003] {
            let text = "word ".repeat(words);
            let passages = analyse(&document(&text, &[])).passages;
            let mut end = 0;
            for (i, passage) in passages.iter().enumerate() {
                assert!(passage.range.start <= end, "{words} words leave a hole");
                assert!(passage.body <= 300 && (i == 0 || passage.body >= 150), "{words}: {}", passage.body);
                end = passage.range.end;
            }
            assert_eq!(end as usize, text.len());
            assert_eq!(passages.first().map(|p| p.range.start), Some(0));
        }
    }

    #[test]
    fn the_head_is_counted_apart() {
        let tags = ["urgent".to_owned()];
        let analysed = analyse(&document("plan of the day", &tags));
        let count_of = |wanted: &str| {
            let term = analysed.terms.iter().position(|term| term == wanted)? as u32;
            let count = analysed.passages.first()?.counts.iter().find(|count| count.term == term)?;
            Some((count.body, count.head))
        };
        assert_eq!(count_of("plan"), Some((1, 2)));
        assert_eq!(count_of("urgent"), Some((0, 1)));
        assert_eq!(count_of("file"), None);
    }

    #[test]
    fn a_text_without_words_is_still_one_passage() {
        assert_eq!(analyse(&document("", &[])).passages.len(), 1);
        assert_eq!(analyse(&document("?!", &[])).passages.len(), 1);
    }

    #[test]
    fn long_unspaced_texts_are_cut_too() {
        assert!(analyse(&document(&"東京都".repeat(1_000), &[])).passages.len() > 10);
    }
}
