//! Searches for the rows nearest to a query.
//!
//! Owns what is asked for ([`Search`]) and what is returned ([`Neighbour`]), and how rows are
//! divided among threads. `exact` holds the scans that compare every row, `two_stage` the one that
//! compares a prefix first, `best` the bounded collection of the nearest.

mod best;
mod exact;
mod two_stage;

pub(crate) use best::Best;
pub use exact::{scan, scan_many};
pub use two_stage::{Scored, TwoStage, scan_two_stage, scan_two_stage_rescored};

use crate::{Bitmap, Codes, Error, Result};
use rayon::prelude::*;

/// A row that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Neighbour {
    /// Its number.
    pub row: usize,
    /// In how many bits it differs from the query.
    pub distance: u32,
}

/// Who does the work. The answer is the same for any number of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread.
    #[default]
    One,
    /// The rayon pool that the caller is in, or the global one.
    Pool,
}

/// What is asked of a search.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// At most so many rows, the nearest first; of equals the lower row number first.
    pub k: usize,
    /// Only rows in this bitmap, whose length is the number of rows.
    pub allowed: Option<&'a Bitmap>,
    /// Only rows at this distance or nearer.
    pub max_distance: Option<u32>,
    /// Who does the work.
    pub threads: Threads,
}

impl<'a> Search<'a> {
    /// The `k` nearest of all rows, on the calling thread.
    pub fn nearest(k: usize) -> Self {
        Self { k, allowed: None, max_distance: None, threads: Threads::One }
    }

    /// Only rows in `allowed`.
    pub fn among(self, allowed: &'a Bitmap) -> Self {
        Self { allowed: Some(allowed), ..self }
    }

    /// Only rows at `distance` or nearer.
    pub fn within(self, distance: u32) -> Self {
        Self { max_distance: Some(distance), ..self }
    }

    /// On these threads.
    pub fn threads(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// The distance that rows must stay below.
    fn limit(&self, bits: usize) -> u64 {
        self.max_distance.map_or(bits as u64 + 1, |most| u64::from(most) + 1).min(bits as u64 + 1)
    }

    fn check(&self, codes: &Codes) -> Result<()> {
        match self.allowed {
            Some(bitmap) if bitmap.len() != codes.len() => {
                Err(Error::Bitmap { rows: codes.len(), bits: bitmap.len() })
            }
            _ => Ok(()),
        }
    }

    fn allowed_words(&self) -> Option<&'a [u64]> {
        self.allowed.map(Bitmap::words)
    }
}

/// Below so many bytes a part isn't worth a thread.
const PART_BYTES: usize = 256 << 10;

/// Does `work` on parts of `rows` rows, `row_bytes` each, and joins what comes back, first part first. A
/// part starts on a multiple of eight rows.
fn in_parts<T: Send>(
    rows: usize,
    row_bytes: usize,
    threads: Threads,
    work: impl Fn(usize, usize) -> Result<T> + Sync,
    join: impl Fn(&mut T, T) -> Result<()>,
) -> Result<T> {
    let pool = match threads {
        Threads::One => 1,
        Threads::Pool => rayon::current_num_threads(),
    };
    // A few parts a thread, so that one that is held up doesn't hold up the rest.
    let parts = (rows.saturating_mul(row_bytes) / PART_BYTES).clamp(1, 4 * pool);
    if pool == 1 || parts == 1 {
        return work(0, rows);
    }
    let size = rows.div_ceil(parts).next_multiple_of(64);
    let done: Vec<Result<T>> = (0..rows.div_ceil(size))
        .into_par_iter()
        .with_max_len(1)
        .map(|part| work(part * size, rows.min((part + 1) * size)))
        .collect();
    let mut done = done.into_iter();
    let mut all = done.next().unwrap_or_else(|| work(0, 0))?;
    for part in done {
        join(&mut all, part?)?;
    }
    Ok(all)
}

fn neighbours(keys: Vec<u64>) -> Vec<Neighbour> {
    keys.into_iter()
        .map(|key| Neighbour { row: (key & u64::from(u32::MAX)) as usize, distance: (key >> 32) as u32 })
        .collect()
}
