//! The text index: lexical recall.
//!
//! Owns two levels under one scorer. Recent passages are in a memory level, where insertion and
//! removal take effect at once; a large one is set aside and rewritten in the background into a
//! compressed segment. What is removed from a level that cannot change is masked at once, and gone
//! with the next rewriting.
//!
//! The index holds no text, only terms and positions of passages; it is never written to disk and
//! is built again from the records, or from what was analysed of them before. Who may see a document is decided by the caller.
//!
//! # Background work
//!
//! ```text
//! while let Some(job) = index.read().flush_due() {
//!     let segment = job.run()?;        // slow; no lock held
//!     let retired = index.write().install(segment);  // quick
//!     drop(retired);               // the lock is free again
//! }
//! ```
//!
//! At most one such loop may run at a time (a second one would do the same work in vain).

mod analyser;
mod bm25;
mod excerpt;
mod fold;
mod irregular;
mod maintenance;
mod memory_level;
mod passages;
mod query;
mod roster;
mod scan;
mod search;
mod segment;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

pub use bm25::Bm25Params;
pub use excerpt::excerpt;
pub use maintenance::{FlushError, FlushJob, FlushedSegment, Retired};
pub use passages::{Analysed, Document, analyse};
pub use query::Query;
pub use search::{Found, Hit};

use maintenance::{Level, Settled};
use memory_level::{MemoryLevel, Posting};
use roster::{Mask, Roster, Totals};
use search::{Searched, Wanted};

/// A random id of one version of a memory; never used for another.
pub type DocumentId = [u8; 16];

/// How many passages the memory level holds before it is set aside for the background.
const LARGE_LEVEL: u64 = 8_192;

/// The words of all memories, and which memories they are in.
pub struct TextIndex {
    params: Bm25Params,
    large_level: u64,
    recent: MemoryLevel,
    settled: Vec<Settled>,
    totals: Totals,
    next_sequence: u64,
    next_key: u64,
}

impl Default for TextIndex {
    fn default() -> Self {
        Self::new(Bm25Params::default())
    }
}

impl TextIndex {
    /// An empty index. Parameters without meaning are replaced by the nearest that have one.
    pub fn new(params: Bm25Params) -> Self {
        Self {
            params: params.sane(),
            large_level: LARGE_LEVEL,
            recent: MemoryLevel::default(),
            settled: Vec::new(),
            totals: Totals::default(),
            next_sequence: 0,
            next_key: 0,
        }
    }

    /// Adds a document, which the very next search finds. One of the same id is replaced.
    pub fn insert(&mut self, document: Analysed) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.insert_as(document, sequence);
    }

    /// Sets so many numbers aside for documents that are older than every one that is inserted later.
    pub fn reserve(&mut self, documents: u64) {
        self.next_sequence += documents;
    }

    /// Adds a document under a number that was set aside: of results that score alike, the one with the lower
    /// number comes first.
    pub fn insert_as(&mut self, document: Analysed, sequence: u64) {
        self.remove(&document.id);
        let before = *self.recent.totals();
        self.recent.insert(document, sequence);
        self.totals.subtract(&before);
        self.totals.add(self.recent.totals());
        self.set_aside_if_large();
    }

    /// Removes a document from results and statistics at once; false if there is none of this id.
    pub fn remove(&mut self, id: &DocumentId) -> bool {
        let before = *self.recent.totals();
        if self.recent.remove(id) {
            self.totals.subtract(&before);
            self.totals.add(self.recent.totals());
            return true;
        }
        let Some(share) = self.settled.iter_mut().find_map(|level| level.remove(id)) else {
            return false;
        };
        self.totals.subtract(&share);
        true
    }

    /// The `k` documents whose best passage matches the words of `query` best.
    ///
    /// Only documents that score at least `min_score` and that `allowed` lets pass are found or
    /// counted. Every query is valid; one without any word finds nothing.
    pub fn search(
        &self,
        query: &Query,
        k: usize,
        min_score: Option<f64>,
        allowed: Option<&dyn Fn(&DocumentId) -> bool>,
    ) -> Found {
        let settled = self.settled.iter().map(|level| level as &dyn Searched);
        let levels: Vec<&dyn Searched> = settled.chain([&self.recent as &dyn Searched]).collect();
        search::search(&levels, &self.totals, self.params, query.terms(), &Wanted { k, min_score, allowed })
    }

    /// How many passages the documents were cut into.
    pub fn passages(&self) -> u64 {
        self.totals.passages
    }

    /// How many documents there are.
    pub fn documents(&self) -> u64 {
        self.totals.documents
    }

    /// How many passages wait to be written to a segment.
    pub fn unwritten(&self) -> u64 {
        let waiting = self.settled.iter().filter(|level| matches!(*level.level, Level::Memory(_)));
        self.recent.totals().passages + waiting.map(|level| level.level.totals().passages).sum::<u64>()
    }

    /// How many segments have been written and not been merged into others.
    pub fn segments(&self) -> u64 {
        self.settled.iter().filter(|level| matches!(*level.level, Level::Segment(_))).count() as u64
    }

    fn set_aside_if_large(&mut self) {
        let one_is_waiting = self.settled.iter().any(|level| matches!(*level.level, Level::Memory(_)));
        if self.recent.totals().passages >= self.large_level && !one_is_waiting {
            self.set_aside();
        }
    }

    fn set_aside(&mut self) {
        if self.recent.totals().documents > 0 {
            let level = Level::Memory(std::mem::take(&mut self.recent));
            self.settle(level, Mask::default());
        }
    }

    fn settle(&mut self, level: Level, mask: Mask) {
        self.settled.push(Settled { key: self.next_key, level: Arc::new(level), mask });
        self.next_key += 1;
    }
}

impl Searched for MemoryLevel {
    fn roster(&self) -> &Roster {
        self.roster()
    }

    fn live_postings(&self, term: &str) -> Cow<'_, [Posting]> {
        self.postings(term).into()
    }
}

impl Searched for Settled {
    fn roster(&self) -> &Roster {
        self.level.roster()
    }

    fn live_postings(&self, term: &str) -> Cow<'_, [Posting]> {
        match &*self.level {
            Level::Segment(segment) => segment.postings(term, &self.mask).into(),
            Level::Memory(level) if self.mask.is_empty() => level.postings(term).into(),
            Level::Memory(level) => {
                let live = level.postings(term).iter().filter(|posting| !self.mask.hides(posting.passage));
                live.copied().collect()
            }
        }
    }
}
