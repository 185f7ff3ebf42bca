//! A growable matrix of hypervectors.
//!
//! Owns the layout: rows one after the other without gaps, row-major, the first on a 64-byte
//! boundary, so that a row is a slice, the whole is castable, and a survivor of a first stage costs as few
//! cache lines as it has. A scan of one query reads it as it lies; a scan of many interleaves a few rows at
//! a time as it goes, which costs nothing beside the comparisons. Beside it lies an optional
//! prefix plane: the first bits of each row, in blocks of eight rows, line `w` of a block holding word
//! `w` of each. The two are always in step.

use crate::{
    Error, HypervectorView, Result,
    arch::{Blocks, Rows},
    hypervector::words_of,
    line::{self, LINE, Line},
};

/// The most rows that a matrix may have: a row number fits in 32 bits.
pub const MAX_ROWS: usize = u32::MAX as usize;

/// The most bits of a prefix plane: a prefix distance fits in 16 bits, with room to spare.
pub const MAX_PREFIX: usize = 1 << 15;

/// A matrix of hypervectors of one dimension, a row each.
#[derive(Clone, PartialEq, Eq)]
pub struct Codes {
    lines: Vec<Line>,
    width: usize,
    rows: usize,
    prefix: Option<Prefix>,
}

/// The first `width` words of each row, in blocks of eight rows.
#[derive(Clone, PartialEq, Eq)]
struct Prefix {
    lines: Vec<Line>,
    width: usize,
}

impl Codes {
    /// An empty matrix for hypervectors of `bits` bits.
    ///
    /// # Errors
    /// [`Error::Bits`].
    pub fn new(bits: usize) -> Result<Self> {
        Ok(Self { lines: Vec::new(), width: words_of(bits)?, rows: 0, prefix: None })
    }

    /// The same with a plane of the first `prefix` bits of each row, for
    /// [`crate::Kernels::scan_two_stage`].
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::PrefixBits`].
    pub fn with_prefix(bits: usize, prefix: usize) -> Result<Self> {
        let mut out = Self::new(bits)?;
        out.set_prefix(prefix)?;
        Ok(out)
    }

    /// `rows` rows of zeros.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn zeros(bits: usize, rows: usize) -> Result<Self> {
        let mut out = Self::new(bits)?;
        out.resize(rows)?;
        Ok(out)
    }

    /// A copy of stored words, row after row.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::TooLarge`], [`Error::Words`] where there aren't rows x words of a
    /// row, all before anything is allocated; [`Error::OutOfMemory`].
    pub fn from_words(bits: usize, rows: usize, words: &[u64]) -> Result<Self> {
        let expected = Self::size(words_of(bits)?, rows)?;
        if words.len() != expected {
            return Err(Error::Words { expected, found: words.len() });
        }
        let mut out = Self::zeros(bits, rows)?;
        out.words_mut().copy_from_slice(words);
        Ok(out)
    }

    /// Builds, resizes or replaces the prefix plane.
    ///
    /// # Errors
    /// [`Error::PrefixBits`], [`Error::OutOfMemory`].
    pub fn set_prefix(&mut self, bits: usize) -> Result<()> {
        if bits == 0 || !bits.is_multiple_of(64) || bits / 64 > self.width || bits > MAX_PREFIX {
            return Err(Error::PrefixBits { prefix: bits, bits: self.bits() });
        }
        let width = bits / 64;
        let lines = line::zeroed(self.rows.div_ceil(8) * width * LINE)?;
        self.prefix = Some(Prefix { lines, width });
        self.refresh_prefix();
        Ok(())
    }

    /// Bits of the prefix plane, if there is one.
    pub fn prefix_bits(&self) -> Option<usize> {
        self.prefix.as_ref().map(|prefix| prefix.width * 64)
    }

    /// The dimension of a row in bits.
    pub fn bits(&self) -> usize {
        self.width * 64
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Row `row`, or `None` beyond the last.
    pub fn row(&self, row: usize) -> Option<HypervectorView<'_>> {
        (row < self.rows)
            .then(|| HypervectorView::checked(&self.words()[row * self.width..(row + 1) * self.width]))
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = HypervectorView<'_>> {
        self.words().chunks_exact(self.width).map(HypervectorView::checked)
    }

    /// All rows, row after row, 64 bits a word: what [`Codes::from_words`] takes.
    pub fn words(&self) -> &[u64] {
        &line::words(&self.lines)[..self.rows * self.width]
    }

    /// The same as bytes, in the machine's own byte order.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.words())
    }

    /// Bytes that the matrix and its prefix plane hold in memory.
    pub fn memory(&self) -> usize {
        let prefix = self.prefix.as_ref().map_or(0, |prefix| prefix.lines.capacity());
        (self.lines.capacity() + prefix) * size_of::<Line>()
    }

    /// Appends a row and returns its number.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn push<'a>(&mut self, row: impl Into<HypervectorView<'a>>) -> Result<usize> {
        let row = row.into();
        self.same_bits(row)?;
        let at = self.rows;
        self.resize(at.checked_add(1).ok_or(Error::TooLarge)?)?;
        self.write(at, row);
        Ok(at)
    }

    /// Overwrites row `at`.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Row`].
    pub fn set<'a>(&mut self, at: usize, row: impl Into<HypervectorView<'a>>) -> Result<()> {
        let row = row.into();
        self.same_bits(row)?;
        self.check(at)?;
        self.write(at, row);
        Ok(())
    }

    /// Removes row `at`: the last row takes its place and its number. The number that the moved row had
    /// is returned, `None` if `at` was the last.
    ///
    /// # Errors
    /// [`Error::Row`].
    pub fn swap_remove(&mut self, at: usize) -> Result<Option<usize>> {
        self.check(at)?;
        let last = self.rows - 1;
        let width = self.width;
        if at != last {
            let words = line::words_mut(&mut self.lines);
            words.copy_within(last * width..(last + 1) * width, at * width);
            self.copy_to_prefix(at);
        }
        self.truncate(last);
        Ok((at != last).then_some(last))
    }

    /// Drops the rows from `rows` on. What they held is overwritten with zeros.
    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.rows {
            return;
        }
        let from = rows * self.width;
        let to = self.rows * self.width;
        line::words_mut(&mut self.lines)[from..to].fill(0);
        if let Some(prefix) = &mut self.prefix {
            let words = line::words_mut(&mut prefix.lines);
            for row in rows..self.rows {
                for word in 0..prefix.width {
                    words[(row / 8 * prefix.width + word) * LINE + row % 8] = 0;
                }
            }
        }
        self.rows = rows;
        self.lines.truncate((rows * self.width).div_ceil(LINE));
        if let Some(prefix) = &mut self.prefix {
            prefix.lines.truncate(rows.div_ceil(8) * prefix.width);
        }
    }

    /// Makes it `rows` rows; new ones are zero.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn resize(&mut self, rows: usize) -> Result<()> {
        let words = Self::size(self.width, rows)?;
        if rows < self.rows {
            self.truncate(rows);
            return Ok(());
        }
        line::grow(&mut self.lines, words)?;
        if let Some(prefix) = &mut self.prefix {
            line::grow(&mut prefix.lines, rows.div_ceil(8) * prefix.width * LINE)?;
        }
        self.rows = rows;
        Ok(())
    }

    /// Words of `rows` rows.
    fn size(width: usize, rows: usize) -> Result<usize> {
        let words = width.checked_mul(rows).ok_or(Error::TooLarge)?;
        // The prefix plane rounds up to eight rows; both in bytes must be addressable.
        let most = rows.checked_next_multiple_of(8).and_then(|rows| rows.checked_mul(width * 8));
        if rows > MAX_ROWS || most.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(Error::TooLarge);
        }
        Ok(words)
    }

    fn check(&self, row: usize) -> Result<()> {
        if row < self.rows { Ok(()) } else { Err(Error::Row { row, rows: self.rows }) }
    }

    fn write(&mut self, at: usize, row: HypervectorView<'_>) {
        let from = at * self.width;
        line::words_mut(&mut self.lines)[from..from + self.width].copy_from_slice(row.words());
        self.copy_to_prefix(at);
    }

    fn copy_to_prefix(&mut self, row: usize) {
        if let Some(prefix) = &mut self.prefix {
            let from = &line::words(&self.lines)[row * self.width..];
            let words = line::words_mut(&mut prefix.lines);
            for (word, &value) in from[..prefix.width].iter().enumerate() {
                words[(row / 8 * prefix.width + word) * LINE + row % 8] = value;
            }
        }
    }

    pub(crate) fn refresh_prefix(&mut self) {
        if self.prefix.is_some() {
            for row in 0..self.rows {
                self.copy_to_prefix(row);
            }
        }
    }

    /// All rows, to write; `refresh_prefix` must follow.
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        let words = self.rows * self.width;
        &mut line::words_mut(&mut self.lines)[..words]
    }

    pub(crate) fn same_bits(&self, other: HypervectorView<'_>) -> Result<()> {
        if self.bits() == other.bits() {
            Ok(())
        } else {
            Err(Error::BitsDiffer { left: self.bits(), right: other.bits() })
        }
    }

    pub(crate) fn same_shape(&self, other: &Self) -> Result<()> {
        if self.width != other.width {
            return Err(Error::BitsDiffer { left: self.bits(), right: other.bits() });
        }
        if self.rows != other.rows {
            return Err(Error::Row { row: other.rows, rows: self.rows });
        }
        Ok(())
    }

    /// Rows `from..to`; `from` is a multiple of eight.
    pub(crate) fn part(&self, from: usize, to: usize) -> Rows<'_> {
        Rows { words: &self.words()[from * self.width..to * self.width], width: self.width, first: from }
    }

    /// Rows `from..to` of the prefix plane; `from` is a multiple of eight.
    pub(crate) fn prefix_part(&self, from: usize, to: usize) -> Result<Blocks<'_>> {
        let Prefix { lines, width } = self.prefix.as_ref().ok_or(Error::NoPrefix)?;
        let lines = &lines[from / 8 * width..to.div_ceil(8) * width];
        Ok(Blocks { lines, width: *width, rows: to - from })
    }
}

impl std::fmt::Debug for Codes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Codes({} rows of {} bits)", self.rows, self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hypervector, Rng};

    #[test]
    fn stored_shapes_that_cannot_be_are_refused_before_anything_is_allocated() {
        let words = [0; 8];
        let refused = |bits, rows| Codes::from_words(bits, rows, &words).expect_err("no such shape");
        assert_eq!(refused(0, 8), Error::Bits(0));
        assert_eq!(refused(100, 8), Error::Bits(100));
        assert_eq!(refused(usize::MAX - 63, 1), Error::Bits(usize::MAX - 63));
        assert_eq!(refused(64, usize::MAX), Error::TooLarge);
        assert_eq!(refused(1 << 31, MAX_ROWS), Error::Words { expected: (1 << 25) * MAX_ROWS, found: 8 });
        assert_eq!(refused(64, 0), Error::Words { expected: 0, found: 8 });
        assert_eq!(refused(64, 9), Error::Words { expected: 9, found: 8 });
        assert_eq!(Codes::zeros(64, MAX_ROWS + 1), Err(Error::TooLarge));
        let codes = Codes::from_words(128, 4, &words).expect("a shape that can be");
        assert_eq!((codes.len(), codes.bits(), codes.bytes().len()), (4, 128, 64));
    }

    #[test]
    fn rows_and_their_prefixes_stay_in_step() {
        let mut rng = Rng::new(1);
        let mut random = || Hypervector::random(320, &mut rng).expect("a dimension");
        let mut codes = Codes::with_prefix(320, 128).expect("a prefix");
        let mut model = Vec::new();
        for step in 0..200usize {
            match step % 5 {
                0..3 => {
                    model.push(random());
                    assert_eq!(codes.push(&model[model.len() - 1]), Ok(model.len() - 1));
                }
                3 => {
                    let at = step * 7 % model.len();
                    model[at] = random();
                    codes.set(at, &model[at]).expect("a row");
                }
                _ => {
                    let at = step * 11 % model.len();
                    model.swap_remove(at);
                    codes.swap_remove(at).expect("a row");
                }
            }
            assert!(codes.iter().eq(model.iter().map(Hypervector::view)));
            let mut rebuilt = codes.clone();
            rebuilt.set_prefix(128).expect("a prefix");
            assert!(rebuilt == codes, "step {step}");
        }
        assert!(codes.words().as_ptr().addr().is_multiple_of(64));
        assert_eq!(codes.row(model.len()), None);
        assert_eq!(codes.row(usize::MAX), None);
        assert!(matches!(codes.set(model.len(), &model[0]), Err(Error::Row { .. })));
        assert!(matches!(codes.swap_remove(model.len()), Err(Error::Row { .. })));
        assert!(matches!(codes.set_prefix(0), Err(Error::PrefixBits { .. })));
        assert!(matches!(codes.set_prefix(384), Err(Error::PrefixBits { .. })));
    }
}
