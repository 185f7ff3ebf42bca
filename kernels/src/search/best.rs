//! The k nearest rows seen so far.
//!
//! Owns the order: nearer first, and of equals the lower row first. A row is one 64-bit key, the
//! distance above the row's number, so that the order of keys is that order, and the k smallest
//! keys are the same whoever saw which rows when.

use crate::{Error, Result};

/// A bounded collection of keys. It keeps up to twice as many as asked for and then drops the
/// worse half, which costs a constant time per key for every k.
#[derive(Debug)]
pub(crate) struct Best {
    keys: Vec<u64>,
    k: usize,
    /// Only keys below this can still matter.
    below: u64,
}

impl Best {
    /// Keeps the `k` nearest of `rows` rows at a distance below `limit`.
    pub(crate) fn new(k: usize, rows: usize, limit: u64) -> Result<Self> {
        let k = k.min(rows);
        let room = k.saturating_mul(2).min(rows);
        let mut keys = Vec::new();
        keys.try_reserve_exact(room).map_err(|_| Error::OutOfMemory(room.saturating_mul(8)))?;
        Ok(Self { keys, k, below: if k == 0 { 0 } else { limit << 32 } })
    }

    /// Only rows at a distance below this can still matter.
    #[inline(always)]
    pub(crate) fn limit(&self) -> u64 {
        (self.below + u64::from(u32::MAX)) >> 32
    }

    /// Takes rows `first + i` for each bit `i` of `which`, at distance `sums[i] + limit`.
    #[cold]
    #[inline(never)]
    pub(crate) fn offer(&mut self, first: usize, sums: &[u64; 8], limit: u64, which: u8) {
        let mut which = which;
        while which != 0 {
            let at = which.trailing_zeros() as usize;
            which &= which - 1;
            self.offer_one((first + at) as u32, sums[at].wrapping_add(limit));
        }
    }

    /// Takes one row.
    #[inline]
    pub(crate) fn offer_one(&mut self, row: u32, distance: u64) {
        let key = distance << 32 | u64::from(row);
        if key < self.below {
            if self.keys.len() == self.keys.capacity() {
                self.drop_worse();
            }
            self.keys.push(key);
        }
    }

    /// Drops all but the k nearest. The distance of the last of them, if there are so many.
    pub(crate) fn worst(&mut self) -> Option<u32> {
        self.drop_worse();
        (self.k > 0 && self.keys.len() == self.k).then(|| {
            let worst = self.keys.iter().max().copied().unwrap_or(0);
            self.below = self.below.min(worst);
            (worst >> 32) as u32
        })
    }

    /// An empty one that takes only what this one still would.
    pub(crate) fn sibling(&self, rows: usize) -> Result<Self> {
        let mut other = Self::new(self.k, rows, 0)?;
        other.below = self.below;
        Ok(other)
    }

    #[cold]
    #[inline(never)]
    fn drop_worse(&mut self) {
        if self.k > 0 && self.keys.len() > self.k {
            let (_, &mut worst, _) = self.keys.select_nth_unstable(self.k - 1);
            self.keys.truncate(self.k);
            // Of equal distances only lower rows still matter, in whatever order rows come.
            self.below = self.below.min(worst);
        }
    }

    /// Adds what another has seen.
    pub(crate) fn absorb(&mut self, other: Self) -> Result<()> {
        let more = other.keys.len();
        self.keys.try_reserve(more).map_err(|_| Error::OutOfMemory(more.saturating_mul(8)))?;
        self.keys.extend_from_slice(&other.keys);
        Ok(())
    }

    /// The k smallest keys, ascending.
    pub(crate) fn into_sorted(mut self) -> Vec<u64> {
        if self.keys.len() > self.k {
            if self.k > 0 {
                self.keys.select_nth_unstable(self.k - 1);
            }
            self.keys.truncate(self.k);
        }
        self.keys.sort_unstable();
        self.keys
    }
}
