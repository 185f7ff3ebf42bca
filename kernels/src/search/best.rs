//! The k nearest rows seen so far.
//!
//! Owns the order: nearer first, and of equals the lower row first. A row is one 64-bit key, the
//! distance above the row's number, so that the order of keys is that order, and the k smallest
//! keys are the same whoever saw which rows when.

use crate::{Error, Result};

/// Keys that a kernel may write at once beyond those that are kept.
pub(crate) const SPARE: usize = 64;

/// A bounded collection of keys. It keeps up to twice as many as asked for and then drops the
/// worse half, which costs a constant time per key for every k.
#[derive(Debug)]
pub(crate) struct Best {
    /// The first `len` are keys; the rest is room.
    keys: Vec<u64>,
    len: usize,
    k: usize,
    /// Only keys below this can still matter.
    below: u64,
}

impl Best {
    /// Keeps the `k` nearest of `rows` rows at a distance below `limit`.
    pub(crate) fn new(k: usize, rows: usize, limit: u64) -> Result<Self> {
        let k = k.min(rows);
        let room = k.saturating_mul(2).min(rows) + 2 * SPARE;
        let mut keys = Vec::new();
        keys.try_reserve_exact(room).map_err(|_| Error::OutOfMemory(room.saturating_mul(8)))?;
        keys.resize(room, 0);
        Ok(Self { keys, len: 0, k, below: if k == 0 { 0 } else { limit << 32 } })
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
            let key = sums[at].wrapping_add(limit) << 32 | (first + at) as u64;
            if key < self.below {
                self.spare()[0] = key;
                self.take(1);
            }
        }
    }

    /// Room for [`SPARE`] keys or more. What is written there counts once it is taken.
    #[inline(always)]
    pub(crate) fn spare(&mut self) -> &mut [u64] {
        if self.keys.len() - self.len < SPARE {
            self.drop_worse();
        }
        &mut self.keys[self.len..]
    }

    /// Takes the first `count` keys that were written to [`Best::spare`].
    #[inline(always)]
    pub(crate) fn take(&mut self, count: usize) {
        self.len = (self.len + count).min(self.keys.len());
    }

    #[cold]
    #[inline(never)]
    fn drop_worse(&mut self) {
        // There are more than k keys: the room is k and two spares at least, unless every row fits.
        if self.k > 0 && self.len > self.k {
            let (_, &mut worst, _) = self.keys[..self.len].select_nth_unstable(self.k - 1);
            self.len = self.k;
            // Of equal distances only lower rows still matter, in whatever order rows come.
            self.below = self.below.min(worst);
        }
    }

    /// Adds what another has seen.
    pub(crate) fn absorb(&mut self, other: Self) -> Result<()> {
        let more = other.len;
        self.keys.truncate(self.len);
        self.keys.try_reserve(more).map_err(|_| Error::OutOfMemory(more.saturating_mul(8)))?;
        self.keys.extend_from_slice(&other.keys[..more]);
        self.len += more;
        Ok(())
    }

    /// How many keys there are, at most k of which will be kept.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The k smallest keys, in the order in which they came. They may be fewer.
    pub(crate) fn into_arrived(mut self) -> Result<Vec<u64>> {
        self.keys.truncate(self.len);
        let more = self.keys.len();
        if more > self.k && self.k > 0 {
            let mut copy = Vec::new();
            copy.try_reserve_exact(more).map_err(|_| Error::OutOfMemory(more.saturating_mul(8)))?;
            copy.extend_from_slice(&self.keys);
            let (_, &mut worst, _) = copy.select_nth_unstable(self.k - 1);
            self.keys.retain(|key| *key <= worst);
        }
        Ok(self.keys)
    }

    /// The k smallest keys, ascending.
    pub(crate) fn into_sorted(mut self) -> Vec<u64> {
        self.keys.truncate(self.len);
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
