//! A scan of prefixes first, of whole codes for those that survive, and of anything else for the last few.
//!
//! Owns [`Kernels::scan_two_stage`] and its model of what is lost, which is at [`TwoStage`]. Every row's
//! prefix is compared once, and the distances, two bytes a row, are kept. From them come the few rows whose
//! full distances say how near the k-th best is, then the limit below which a prefix is worth a look,
//! then the rows within it. All of it is counted and never drawn: the answer depends on no thread, no
//! instruction set and no chance.

use std::{cell::Cell, ops::RangeInclusive};

use rayon::prelude::*;

use super::{Best, Neighbour, Search, Threads, neighbours};
use crate::{
    Codes, Error, HypervectorView, Kernels, Result,
    arch::{Look, ROOM},
};

/// What is asked of a two-stage scan.
///
/// # What is found, and what may be lost
///
/// If no bit of a code is worth more than another, as with random projections and with bundles of
/// random hypervectors, the first `p` of `D` bits are a sample of all. A row in whose code a share `s` of the
/// bits differs is then at a prefix distance with mean `p s` and variance `v(s) = p s (1 - s) (D - p) / (D - 1)`.
/// The scan finds some near rows, of which the k-th is at the share `s`, never nearer than the true
/// k-th, and looks at every row whose prefix distance is at most `p s + margin * sqrt(v(s))`. The k-th row
/// is thus kept with the probability that a normal deviate is at most `margin`, and rows nearer than it with
/// a higher one:
///
/// | margin | the k-th row is kept, at least | of the ten nearest kept, measured |
/// |---|---|---|
/// | 1.5 | 0.933 | 0.982 to 0.984 |
/// | 2.0 | 0.977 | 0.992 to 0.997 |
/// | 2.5 | 0.994 | 0.994 to 0.999 |
///
/// (Measured on 250,000 short texts, a prefix of 192 of 1,024 bits and a `keep` of a sixteenth of the rows, which
/// is what limits the last line.)
///
/// Where a row is long, its first bits, at least twice the prefix, are compared before the rest is
/// read, with half a standard deviation more of margin. `keep` bounds the budget: where more rows than that
/// are within the limit, those with the nearest prefixes are looked at (of equals the lower row numbers),
/// and the recall is lower. A query whose neighbours are near costs little, one that has none near costs
/// `keep` rows.
#[derive(Debug, Clone, Copy)]
pub struct TwoStage<'a> {
    /// What is asked of the whole.
    pub search: Search<'a>,
    /// The most rows whose full codes are looked at; at least `search.k` are.
    pub keep: usize,
    /// How many standard deviations of a prefix distance are allowed for; infinity allows for all.
    pub margin: f64,
}

impl<'a> TwoStage<'a> {
    /// A margin of 2.5, and as many rows as that takes.
    pub fn new(search: Search<'a>) -> Self {
        Self { search, keep: usize::MAX, margin: 2.5 }
    }

    /// The `keep` rows with the nearest prefixes, however far they are.
    pub fn keeping(search: Search<'a>, keep: usize) -> Self {
        Self { search, keep, margin: f64::INFINITY }
    }

    /// At most `keep` rows.
    pub fn at_most(self, keep: usize) -> Self {
        Self { keep, ..self }
    }

    /// With this margin.
    pub fn margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }
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

/// At least so many near rows say how near the k-th best is.
const FIRST: usize = 256;

/// Prefix distances that a sample takes for each guess of how many rows are how near.
const SAMPLE: usize = 128 * 64;

/// Rows of a part that is worth a thread.
const PART: usize = 16 << 10;

/// No row's prefix distance: rows that aren't allowed, and those beyond the last.
const NONE: u16 = u16::MAX;

thread_local! {
    /// The distances of a thread's last search, to be overwritten by those of its next: to ask for memory
    /// and to clear it took a tenth of a search. Two bytes a row stay with the thread.
    static NUMBERS: Cell<Vec<u16>> = const { Cell::new(Vec::new()) };
}

impl Kernels {
    /// The rows nearest to `query` among those whose prefix is near enough; see [`TwoStage`].
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
        let prefix = codes.prefix_bits().ok_or(Error::NoPrefix)?;
        if stages.search.k == 0 || codes.is_empty() {
            return Ok(Vec::new());
        }
        let numbers = self.prefix_distances(codes, &query.words()[..prefix / 64], &stages.search)?;
        let run = Run { kernels: self, codes, query, stages, prefix, numbers };
        let best = run.search();
        NUMBERS.set(run.numbers);
        Ok(neighbours(best?.into_sorted()))
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

    /// The distance of each row's prefix, for a multiple of 64 rows; [`NONE`] for those that don't count.
    fn prefix_distances(self, codes: &Codes, query: &[u64], search: &Search<'_>) -> Result<Vec<u16>> {
        let rows = codes.len();
        let room = rows.next_multiple_of(64);
        let mut numbers = NUMBERS.take();
        numbers.truncate(room);
        let more = room - numbers.len();
        numbers.try_reserve_exact(more).map_err(|_| Error::OutOfMemory(more.saturating_mul(2)))?;
        numbers.resize(room, NONE);
        let part = part_of(rows, search.threads);
        let fill = |(at, numbers): (usize, &mut [u16])| {
            let (from, to) = (at * part, rows.min(at * part + part));
            self.raw().distances(codes.prefix_part(from, to)?, query, numbers);
            Ok(())
        };
        if part < rows {
            numbers.par_chunks_mut(part).enumerate().try_for_each(fill)?;
        } else {
            fill((0, &mut numbers))?;
        }
        numbers[rows..].fill(NONE);
        if let Some(allowed) = search.allowed_words() {
            for (numbers, &word) in numbers.chunks_exact_mut(64).zip(allowed) {
                for (bit, number) in numbers.iter_mut().enumerate() {
                    if word >> bit & 1 == 0 {
                        *number = NONE;
                    }
                }
            }
        }
        Ok(numbers)
    }
}

/// Rows of a part: all where one thread does the work, else a multiple of 64.
fn part_of(rows: usize, threads: Threads) -> usize {
    let pool = match threads {
        Threads::One => 1,
        Threads::Pool => rayon::current_num_threads(),
    };
    if pool == 1 { rows.max(1) } else { rows.div_ceil(4 * pool).max(PART).next_multiple_of(64) }
}

/// One search, once the distances of the prefixes are there.
struct Run<'a> {
    kernels: Kernels,
    codes: &'a Codes,
    query: HypervectorView<'a>,
    stages: &'a TwoStage<'a>,
    prefix: usize,
    numbers: Vec<u16>,
}

impl Run<'_> {
    fn search(&self) -> Result<Best> {
        let rows = self.codes.len();
        let k = self.stages.search.k;
        let keep = self.stages.keep.max(k).min(rows);
        let most = self.stages.search.limit(self.codes.bits());
        let mut best = Best::new(k, rows, most)?;
        // A prefix is never farther than the whole.
        let mut last = (most - 1).min(self.prefix as u64) as u16;
        let mut from = 0;
        let mut look = self.look(None);
        let mut kept = 0;
        if self.stages.margin.is_finite() {
            let (near, count) = self.near(keep.min(FIRST.max(k.saturating_mul(32))), k, last);
            if count <= keep {
                self.scan(0..=near, count, count, look, &mut best)?;
                // Too few are all that there are within the search's own distance.
                let far = best.worst().map_or(most - 1, |worst| worst.into());
                last = self.within(self.prefix, far, self.stages.margin).min(last.into()) as u16;
                look = self.look(Some(far));
                (from, kept) = (near + 1, count);
            }
        }
        if last >= from {
            let count = self.count(from..=last);
            if kept + count <= keep {
                self.scan(from..=last, count, count, look, &mut best)?;
            } else if kept < keep {
                let (cut, nearer, within) = self.cut(from..=last, count, keep - kept);
                if cut > from {
                    self.scan(from..=cut - 1, nearer, nearer, look, &mut best)?;
                }
                self.scan(cut..=cut, within - nearer, keep - kept - nearer, look, &mut best)?;
            }
        }
        Ok(best)
    }

    /// A distance within which about `wanted` prefixes are, and at least `least` if there are so many within
    /// `last`; and how many there are.
    fn near(&self, wanted: usize, least: usize, last: u16) -> (u16, usize) {
        let every = (self.numbers.len() / SAMPLE).max(1);
        let mut histogram = vec![0u32; self.prefix + 1];
        let mut sampled = 0;
        for chunk in self.numbers.chunks_exact(64).step_by(every) {
            for &number in chunk {
                if let Some(count) = histogram.get_mut(usize::from(number)) {
                    *count += 1;
                }
            }
            sampled += 64;
        }
        let wanted = (wanted * sampled).div_ceil(self.numbers.len());
        let mut seen = 0;
        let at = histogram.iter().position(|count| {
            seen += *count as usize;
            seen >= wanted
        });
        let mut near = at.map_or(last, |at| last.min(at as u16));
        let mut count = self.count(0..=near);
        while count < least && near < last {
            near += 1;
            count += self.count(near..=near);
        }
        (near, count)
    }

    /// The distance in `range`, within which there are `count` rows, at which the `keep`th of them is; how many
    /// are nearer than that, and how many at most so far.
    fn cut(&self, range: RangeInclusive<u16>, count: usize, keep: usize) -> (u16, usize, usize) {
        let (from, mut low, mut high) = (*range.start(), *range.start(), *range.end());
        let mut nearer = 0;
        let mut all = count;
        while low < high {
            let middle = low + (high - low) / 2;
            let count = self.count(from..=middle);
            if count >= keep {
                (high, all) = (middle, count);
            } else {
                (low, nearer) = (middle + 1, count);
            }
        }
        debug_assert!(nearer < keep && keep <= all);
        (low, nearer, all)
    }

    /// The prefix distance at most, in the first `bits` bits, of a row at `far` of all.
    fn within(&self, bits: usize, far: u64, margin: f64) -> u64 {
        let (p, all) = (bits as f64, self.codes.bits() as f64);
        let share = far as f64 / all;
        let variance = p * share * (1.0 - share) * (all - p) / (all - 1.0);
        (p * share + margin * variance.max(0.0).sqrt()).clamp(0.0, p) as u64
    }

    /// What of a row is compared first, once it is known how far the k-th best is at most.
    fn look(&self, far: Option<u64>) -> Look {
        let width = self.codes.bits() / 64;
        let words = (self.prefix / 32).next_multiple_of(8);
        match far {
            Some(far) if words < width => {
                Look { words, most: self.within(words * 64, far, self.stages.margin + 0.5) }
            }
            _ => Look { words: width, most: u64::MAX },
        }
    }

    fn count(&self, range: RangeInclusive<u16>) -> usize {
        self.kernels.raw().count_within(&self.numbers, range)
    }

    /// Looks at the first `take` of the `count` rows whose prefixes are in the range.
    fn scan(
        &self,
        range: RangeInclusive<u16>,
        count: usize,
        take: usize,
        look: Look,
        best: &mut Best,
    ) -> Result<()> {
        let kernel = self.kernels.raw();
        let room = count + ROOM;
        let mut which = Vec::new();
        which.try_reserve_exact(room).map_err(|_| Error::OutOfMemory(room.saturating_mul(4)))?;
        which.resize(room, 0);
        let found = kernel.find_within(&self.numbers, range, &mut which);
        which.truncate(found.min(take));
        let rows = self.codes.part(0, self.codes.len());
        let part = part_of(which.len(), self.stages.search.threads);
        if part >= which.len() {
            kernel.scan_rows(rows, self.query.words(), &which, look, best);
            return Ok(());
        }
        let found: Vec<Result<Best>> = which
            .par_chunks(part)
            .map(|which| {
                let mut best = best.sibling(self.codes.len())?;
                kernel.scan_rows(rows, self.query.words(), which, look, &mut best);
                Ok(best)
            })
            .collect();
        found.into_iter().try_for_each(|found| best.absorb(found?))
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
