//! A set of rows, one bit each.
//!
//! Owns which rows a search may return.

use crate::{Error, MAX_ROWS, Result};

/// A set of row numbers below a length.
#[derive(Clone, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// No row of `len`.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn none(len: usize) -> Result<Self> {
        if len > MAX_ROWS {
            return Err(Error::TooLarge);
        }
        let words = len.div_ceil(64);
        let mut out = Vec::new();
        out.try_reserve_exact(words).map_err(|_| Error::OutOfMemory(words.saturating_mul(8)))?;
        out.resize(words, 0);
        Ok(Self { words: out, len })
    }

    /// Every row of `len`.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn all(len: usize) -> Result<Self> {
        let mut out = Self::none(len)?;
        for row in 0..len {
            out.words[row / 64] |= 1 << (row % 64);
        }
        Ok(out)
    }

    /// These rows of `len`.
    ///
    /// # Errors
    /// [`Error::Row`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn of(len: usize, rows: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut out = Self::none(len)?;
        for row in rows {
            out.set(row, true)?;
        }
        Ok(out)
    }

    /// The length: rows that the bitmap speaks about, in it or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many rows are in it.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether `row` is in it.
    pub fn contains(&self, row: usize) -> bool {
        row < self.len && self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Puts `row` in, or takes it out.
    ///
    /// # Errors
    /// [`Error::Row`].
    pub fn set(&mut self, row: usize, is_in: bool) -> Result<()> {
        if row >= self.len {
            return Err(Error::Row { row, rows: self.len });
        }
        let word = &mut self.words[row / 64];
        *word = *word & !(1 << (row % 64)) | u64::from(is_in) << (row % 64);
        Ok(())
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}

impl std::fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bitmap({} of {} rows)", self.count(), self.len)
    }
}
