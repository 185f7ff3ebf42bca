//! The roster: which documents a level holds, and where their passages begin and end.
//!
//! Owns the numbering of a level's documents and passages, their lengths and totals, and the mask
//! of those that were removed from a level that cannot change. Knows nothing of terms.

use std::collections::HashMap;
use std::ops::Range;

use super::DocumentId;

/// One document of a level.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub id: DocumentId,
    /// Counts up with every insertion into the index; equal scores are ordered by it.
    pub sequence: u64,
    pub first: u32,
    pub count: u32,
}

impl Entry {
    /// The numbers of its passages.
    pub fn passages(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// One passage of a level.
#[derive(Clone, Copy)]
pub(super) struct Passage {
    /// The number of its document in the level.
    pub document: u32,
    /// Where it lies in the text, in bytes.
    pub start: u32,
    pub end: u32,
    /// Terms in the text of the passage, and in the head of its document.
    pub body: u32,
    pub head: u32,
}

/// What the statistics of BM25 are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub documents: u64,
    pub passages: u64,
    pub body: u64,
    pub head: u64,
}

impl Totals {
    pub fn add(&mut self, other: &Totals) {
        self.documents += other.documents;
        self.passages += other.passages;
        self.body += other.body;
        self.head += other.head;
    }

    pub fn subtract(&mut self, other: &Totals) {
        self.documents = self.documents.saturating_sub(other.documents);
        self.passages = self.passages.saturating_sub(other.passages);
        self.body = self.body.saturating_sub(other.body);
        self.head = self.head.saturating_sub(other.head);
    }
}

/// The documents and passages of a level, numbered from 0 in the order of insertion.
#[derive(Default)]
pub(super) struct Roster {
    entries: Vec<Entry>,
    passages: Vec<Passage>,
    by_id: HashMap<DocumentId, u32>,
}

impl Roster {
    /// Adds a document whose passages get the next numbers; their `document` is filled in.
    /// None if the level is full.
    pub fn push(
        &mut self,
        id: DocumentId,
        sequence: u64,
        passages: impl IntoIterator<Item = Passage>,
    ) -> Option<Entry> {
        let document = u32::try_from(self.entries.len()).ok()?;
        let first = u32::try_from(self.passages.len()).ok()?;
        self.passages.extend(passages.into_iter().map(|passage| Passage { document, ..passage }));
        let end = u32::try_from(self.passages.len()).ok()?;
        let entry = Entry { id, sequence, first, count: end - first };
        self.entries.push(entry);
        self.by_id.insert(id, document);
        Some(entry)
    }

    /// Makes `id` unknown; its numbers stay taken.
    pub fn forget(&mut self, id: &DocumentId) -> Option<Entry> {
        self.by_id.remove(id).and_then(|document| self.entries.get(document as usize).copied())
    }

    /// Every document that has a number, with those that were made unknown.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Every passage that has a number.
    pub fn passages(&self) -> &[Passage] {
        &self.passages
    }

    pub fn passages_of(&self, entry: &Entry) -> &[Passage] {
        let range = entry.passages();
        self.passages.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    pub fn find(&self, id: &DocumentId) -> Option<&Entry> {
        self.by_id.get(id).and_then(|&document| self.entries.get(document as usize))
    }

    pub fn is_known(&self, entry: &Entry) -> bool {
        self.find(&entry.id).is_some_and(|known| known.sequence == entry.sequence)
    }

    /// What one document adds to the totals.
    pub fn share(&self, entry: &Entry) -> Totals {
        let mut share = Totals { documents: 1, ..Totals::default() };
        for passage in self.passages_of(entry) {
            share.passages += 1;
            share.body += u64::from(passage.body);
            share.head += u64::from(passage.head);
        }
        share
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for entry in self.entries.iter().filter(|entry| self.is_known(entry)) {
            totals.add(&self.share(entry));
        }
        totals
    }
}

/// The passages of an unchanging level that count as removed.
#[derive(Clone, Default)]
pub(super) struct Mask {
    bits: Vec<u64>,
    gone: Totals,
}

impl Mask {
    pub fn is_empty(&self) -> bool {
        self.gone.documents == 0
    }

    /// What was removed.
    pub fn gone(&self) -> &Totals {
        &self.gone
    }

    pub fn hides(&self, passage: u32) -> bool {
        self.bits.get(passage as usize / 64).is_some_and(|word| word >> (passage % 64) & 1 == 1)
    }

    pub fn hides_document(&self, entry: &Entry) -> bool {
        self.hides(entry.first)
    }

    /// Removes a document, which must not have been removed before.
    pub fn hide(&mut self, entry: &Entry, share: &Totals) {
        for passage in entry.passages() {
            let word = passage as usize / 64;
            if self.bits.len() <= word {
                self.bits.resize(word + 1, 0);
            }
            if let Some(word) = self.bits.get_mut(word) {
                *word |= 1 << (passage % 64);
            }
        }
        self.gone.add(share);
    }
}
