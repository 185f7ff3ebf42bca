//! A scan of prefixes first, of whole codes for those that survive, and of anything else for the last few.
//!
//! Owns [`Kernels::scan_two_stage`]. The first stage keeps the `keep` rows whose prefix is nearest to the
//! query's, exactly, by distance and then row, so that the answer depends on no thread, no
//! instruction set and no chance. What it can lose is a row whose prefix is farther than `keep` others';
//! that is the whole of its approximation, and `keep` is its budget.

use super::{Best, Neighbour, Search, in_parts, neighbours};
use crate::{Codes, Error, HypervectorView, Kernels, Result};

/// What is asked of a two-stage scan.
#[derive(Debug, Clone, Copy)]
pub struct TwoStage<'a> {
    /// What is asked of the whole.
    pub search: Search<'a>,
    /// How many rows the prefix stage keeps; at least `search.k` are kept.
    pub keep: usize,
}

/// A row that was found and rescored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Its number.
    pub row: usize,
    /// In how many bits it differs from the query.
    pub distance: u32,
    /// What the closure made of it.
    pub score: f32,
}

/// A first look takes one block of eight rows in so many.
const SAMPLE: usize = 64;

impl Kernels {
    /// The rows nearest to `query` among the `keep` whose prefix is nearest to the query's.
    ///
    /// # Errors
    /// [`Error::NoPrefix`], [`Error::BitsDiffer`], [`Error::Bitmap`], [`Error::OutOfMemory`].
    pub fn scan_two_stage<'q>(
        self,
        codes: &Codes,
        query: impl Into<HypervectorView<'q>>,
        stages: &TwoStage<'_>,
    ) -> Result<Vec<Neighbour>> {
        let query = query.into();
        codes.same_bits(query)?;
        stages.search.check(codes)?;
        let prefix = codes.prefix_bits().ok_or(Error::NoPrefix)? / 64;
        if stages.search.k == 0 {
            return Ok(Vec::new());
        }
        let kept = self.nearest_prefixes(codes, &query.words()[..prefix], stages)?;
        let rows: Vec<u64> = kept.into_iter().map(|key| key & u64::from(u32::MAX)).collect();
        let limit = stages.search.limit(codes.bits());
        let mut distances = vec![0; rows.len()];
        self.raw().hamming_rows(codes.words(), query.words(), &rows, &mut distances);
        let mut keys: Vec<u64> = rows
            .iter()
            .zip(&distances)
            .filter(|&(_, &distance)| u64::from(distance) < limit)
            .map(|(row, &distance)| u64::from(distance) << 32 | row)
            .collect();
        if keys.len() > stages.search.k {
            keys.select_nth_unstable(stages.search.k - 1);
            keys.truncate(stages.search.k);
        }
        keys.sort_unstable();
        Ok(neighbours(keys))
    }

    /// [`Kernels::scan_two_stage`], its rows rescored by `score`, the highest first (by
    /// [`f32::total_cmp`]), of equals the lower row number first, and the first `take` returned.
    ///
    /// # Errors
    /// Those of [`Kernels::scan_two_stage`].
    pub fn scan_two_stage_rescored<'q>(
        self,
        codes: &Codes,
        query: impl Into<HypervectorView<'q>>,
        stages: &TwoStage<'_>,
        take: usize,
        mut score: impl FnMut(usize) -> f32,
    ) -> Result<Vec<Scored>> {
        let found = self.scan_two_stage(codes, query, stages)?;
        let mut scored: Vec<Scored> = found
            .into_iter()
            .map(|Neighbour { row, distance }| Scored { row, distance, score: score(row) })
            .collect();
        scored.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        scored.truncate(take);
        Ok(scored)
    }

    /// Keys of the `keep` nearest prefixes, in about the order in which rows lie.
    fn nearest_prefixes(self, codes: &Codes, query: &[u64], stages: &TwoStage<'_>) -> Result<Vec<u64>> {
        let rows = codes.len();
        let keep = stages.keep.max(stages.search.k).min(rows);
        let allowed = stages.search.allowed_words();
        // A prefix is never farther than the whole, so the search's own limit is sound here too.
        let most = stages.search.limit(codes.bits()).min(query.len() as u64 * 64 + 1);
        let look = |limit: u64| {
            in_parts(
                rows,
                query.len() * 8,
                stages.search.threads,
                |from, to| {
                    let mut best = Best::new(keep, rows, limit)?;
                    if from < to {
                        self.raw().scan_blocks(codes.prefix_part(from, to)?, query, allowed, &mut best);
                    }
                    Ok(best)
                },
                Best::absorb,
            )
        };
        if let Some(guess) = self.guess(codes, query, keep, allowed, most)? {
            let best = look(guess)?;
            if best.len() >= keep {
                return best.into_arrived();
            }
        }
        look(most)?.into_arrived()
    }

    /// A limit that somewhat more than `keep` rows are below, from a sample; a wrong guess costs time, never
    /// a row. Without it the first rows of every scan would all be kept and later thrown out.
    fn guess(
        self,
        codes: &Codes,
        query: &[u64],
        keep: usize,
        allowed: Option<&[u64]>,
        most: u64,
    ) -> Result<Option<u64>> {
        let blocks = codes.len() / 8;
        if blocks < 64 * SAMPLE || keep >= codes.len() / 4 {
            return Ok(None);
        }
        let sampled = blocks / SAMPLE;
        // Half as many again as wanted, and as much more as chance may take from a small sample.
        let wanted = keep * 3 / 2 / SAMPLE + 16;
        let mut best = Best::new(wanted, sampled * 8, most)?;
        for block in 0..sampled {
            let from = block * SAMPLE * 8;
            self.raw().scan_blocks(codes.prefix_part(from, from + 8)?, query, allowed, &mut best);
        }
        let keys = best.into_sorted();
        Ok((keys.len() == wanted).then(|| (keys[wanted - 1] >> 32) + 1))
    }
}

/// [`Kernels::scan_two_stage`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::scan_two_stage`] and [`Kernels::active`].
pub fn scan_two_stage<'q>(
    codes: &Codes,
    query: impl Into<HypervectorView<'q>>,
    stages: &TwoStage<'_>,
) -> Result<Vec<Neighbour>> {
    Kernels::active()?.scan_two_stage(codes, query, stages)
}

/// [`Kernels::scan_two_stage_rescored`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::scan_two_stage_rescored`] and [`Kernels::active`].
pub fn scan_two_stage_rescored<'q>(
    codes: &Codes,
    query: impl Into<HypervectorView<'q>>,
    stages: &TwoStage<'_>,
    take: usize,
    score: impl FnMut(usize) -> f32,
) -> Result<Vec<Scored>> {
    Kernels::active()?.scan_two_stage_rescored(codes, query, stages, take, score)
}
