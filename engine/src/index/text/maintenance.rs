//! Maintenance: rewriting levels in the background.
//!
//! Owns when a level is rewritten, and how the result takes the place of its sources although
//! documents were removed meanwhile. Starts no thread: the caller runs the jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::memory_level::MemoryLevel;
use super::roster::{Mask, Roster, Totals};
use super::segment::{Segment, survivors};
use super::{DocumentId, TextIndex};

/// So many segments of about the same size are merged into one.
const MERGED_AT_ONCE: usize = 4;
/// A segment is rewritten when one in so many of its passages has been removed.
const REWRITTEN_WHEN_ONE_IN: u64 = 5;

/// A level that no longer changes, and what was removed from it since.
pub(super) struct Settled {
    /// Never used for another level.
    pub key: u64,
    pub level: Arc<Level>,
    pub mask: Mask,
}

pub(super) enum Level {
    /// Set aside and waiting to be flushed.
    Memory(MemoryLevel),
    Segment(Segment),
}

impl Level {
    pub fn roster(&self) -> &Roster {
        match self {
            Self::Memory(level) => level.roster(),
            Self::Segment(segment) => segment.roster(),
        }
    }

    pub fn totals(&self) -> &Totals {
        match self {
            Self::Memory(level) => level.totals(),
            Self::Segment(segment) => segment.totals(),
        }
    }
}

impl Settled {
    /// Masks a document; returns what it takes from the totals, or none if it is not here.
    pub fn remove(&mut self, id: &DocumentId) -> Option<Totals> {
        let roster = self.level.roster();
        let entry = roster.find(id).filter(|entry| !self.mask.hides_document(entry))?;
        let share = roster.share(entry);
        self.mask.hide(entry, &share);
        Some(share)
    }

    fn live_passages(&self) -> u64 {
        self.level.totals().passages.saturating_sub(self.mask.gone().passages)
    }

    fn needs_rewriting(&self) -> bool {
        self.mask.gone().passages * REWRITTEN_WHEN_ONE_IN >= self.level.totals().passages
    }

    fn source(&self) -> Source {
        Source { key: self.key, level: Arc::clone(&self.level), mask: self.mask.clone() }
    }
}

/// A level as it was when a job was made.
struct Source {
    key: u64,
    level: Arc<Level>,
    mask: Mask,
}

/// Work for the background: levels to be rewritten as one segment. Needs no lock while it runs.
#[must_use]
pub struct FlushJob {
    sources: Vec<Source>,
}

/// A segment that is ready to take the place of the levels that it was made from.
#[must_use]
pub struct FlushedSegment {
    sources: Vec<Source>,
    /// None if nothing was left.
    segment: Option<Segment>,
}

/// What an installed segment took the place of. Dropping it can take milliseconds: do so after the
/// lock of the index was released.
pub struct Retired {
    _levels: Vec<Arc<Level>>,
}

/// A segment could not be written. The index is as it was and goes on answering in full; only its
/// footprint is larger than it should be. Running the job again later may succeed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write a segment of the text index: {0}")]
pub struct FlushError(#[from] tantivy::TantivyError);

impl FlushJob {
    /// Writes the segment. Takes one or two seconds of one core for each 100,000 short passages.
    ///
    /// # Errors
    /// [`FlushError`] if tantivy fails, which in memory it has no reason to.
    pub fn run(self) -> Result<FlushedSegment, FlushError> {
        let mut segments = Vec::with_capacity(self.sources.len());
        let mut flushed = None;
        for source in &self.sources {
            match &*source.level {
                Level::Segment(segment) => segments.push((segment, &source.mask)),
                Level::Memory(level) => flushed = Segment::write(level, &source.mask)?,
            }
        }
        // A job is either one memory level or any number of segments.
        let segment = if segments.is_empty() { flushed } else { Segment::merge(&segments)? };
        Ok(FlushedSegment { sources: self.sources, segment })
    }
}

impl FlushedSegment {
    fn retire(self) -> Retired {
        let unused = self.segment.map(|segment| Arc::new(Level::Segment(segment)));
        Retired { _levels: self.sources.into_iter().map(|source| source.level).chain(unused).collect() }
    }
}

impl TextIndex {
    /// The next job that is worth its while: flushing a large memory level, merging segments of
    /// about the same size, or rewriting a segment of which a fifth has been removed. Cheap.
    pub fn flush_due(&self) -> Option<FlushJob> {
        let waiting = self.settled.iter().find(|level| matches!(*level.level, Level::Memory(_)));
        if let Some(level) = waiting {
            return Some(FlushJob { sources: vec![level.source()] });
        }
        let mut sizes: BTreeMap<u32, Vec<&Settled>> = BTreeMap::new();
        for level in &self.settled {
            let levels = level.live_passages() / self.large_level.max(1);
            sizes.entry(levels.max(1).ilog2() / 2).or_default().push(level);
        }
        let merged = sizes.into_values().find(|alike| alike.len() >= MERGED_AT_ONCE);
        if let Some(alike) = merged {
            return Some(FlushJob { sources: alike.into_iter().map(Settled::source).collect() });
        }
        let worn = self.settled.iter().find(|level| level.needs_rewriting())?;
        Some(FlushJob { sources: vec![worn.source()] })
    }

    /// The next job that is needed so that no term of a removed document is left in any level.
    ///
    /// A document that is removed while recent leaves nothing behind. One that is removed later is
    /// hidden at once, and its terms are gone from this process's memory (as far as dropping them
    /// goes; they are not overwritten) when `erase_due` returns none after jobs were run and installed.
    pub fn erase_due(&self) -> Option<FlushJob> {
        let holding = self.settled.iter().find(|level| !level.mask.is_empty())?;
        Some(FlushJob { sources: vec![holding.source()] })
    }

    /// Puts a written segment in the place of its sources, without what was removed meanwhile. Does
    /// nothing if they are gone, as when the same job was run twice.
    pub fn install(&mut self, mut flushed: FlushedSegment) -> Retired {
        let mut removed = Vec::new();
        let mut number = 0;
        for source in &flushed.sources {
            let Some(now) = self.settled.iter().find(|level| level.key == source.key) else {
                return flushed.retire();
            };
            if now.mask.gone() == source.mask.gone() {
                number += (source.level.totals().documents - source.mask.gone().documents) as usize;
                continue;
            }
            // The segment numbers the documents as `survivors` yields them, source after source.
            for entry in survivors(source.level.roster(), &source.mask) {
                if now.mask.hides_document(entry) {
                    removed.push(number);
                }
                number += 1;
            }
        }
        self.settled.retain(|level| flushed.sources.iter().all(|source| source.key != level.key));
        if let Some(segment) = flushed.segment.take() {
            let mut mask = Mask::default();
            let roster = segment.roster();
            for entry in removed.into_iter().filter_map(|number| roster.entries().get(number)) {
                mask.hide(entry, &roster.share(entry));
            }
            self.settle(Level::Segment(segment), mask);
        }
        self.set_aside_if_large();
        flushed.retire()
    }
}
