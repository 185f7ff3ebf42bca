//! Dense binary hypervectors, owned and borrowed.
//!
//! Owns the dimension: a positive multiple of 64 bits, checked once, here. Bit `i` is bit `i % 64`
//! of word `i / 64`. What is done with them is in [`crate::Kernels`] and the free functions.

use crate::{
    Error, Result, Rng,
    line::{self, Line},
};

/// The largest dimension, in bits: distances fit in 32 bits.
pub const MAX_BITS: usize = 1 << 31;

/// Words of a dimension, or why it is none.
pub(crate) fn words_of(bits: usize) -> Result<usize> {
    if bits == 0 || !bits.is_multiple_of(64) || bits > MAX_BITS {
        return Err(Error::Bits(bits));
    }
    Ok(bits / 64)
}

/// A dense binary hypervector that owns its bits, 64-byte aligned.
#[derive(Clone, PartialEq, Eq)]
pub struct Hypervector {
    lines: Vec<Line>,
    words: usize,
}

impl Hypervector {
    /// All bits zero: the identity of [`crate::bind`].
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn zeros(bits: usize) -> Result<Self> {
        let words = words_of(bits)?;
        Ok(Self { lines: line::zeroed(words)?, words })
    }

    /// All bits one.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn ones(bits: usize) -> Result<Self> {
        let mut out = Self::zeros(bits)?;
        out.words_mut().fill(u64::MAX);
        Ok(out)
    }

    /// The next `bits` bits of `rng`, each zero or one with equal chance.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn random(bits: usize, rng: &mut Rng) -> Result<Self> {
        let mut out = Self::zeros(bits)?;
        rng.fill(out.words_mut());
        Ok(out)
    }

    /// A copy of `words`; the dimension is 64 bits for each.
    ///
    /// # Errors
    /// [`Error::Bits`] for no words or too many, [`Error::OutOfMemory`].
    pub fn from_words(words: &[u64]) -> Result<Self> {
        let mut out = Self::zeros(words.len().saturating_mul(64))?;
        out.words_mut().copy_from_slice(words);
        Ok(out)
    }

    /// One bit a value: one where it is greater than zero, so that NaN and both zeros give zero.
    ///
    /// # Errors
    /// [`Error::Bits`] where the number of values is no dimension, [`Error::OutOfMemory`].
    pub fn from_signs(values: &[f32]) -> Result<Self> {
        let mut out = Self::zeros(values.len())?;
        for (word, chunk) in out.words_mut().iter_mut().zip(values.chunks_exact(64)) {
            *word =
                chunk.iter().enumerate().fold(0, |word, (at, &value)| word | u64::from(value > 0.0) << at);
        }
        Ok(out)
    }

    /// The dimension in bits.
    pub fn bits(&self) -> usize {
        self.words * 64
    }

    /// The bits, 64 a word.
    pub fn words(&self) -> &[u64] {
        &line::words(&self.lines)[..self.words]
    }

    /// The bits, to write.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut line::words_mut(&mut self.lines)[..self.words]
    }

    /// A borrowed view.
    pub fn view(&self) -> HypervectorView<'_> {
        HypervectorView { words: self.words() }
    }

    /// Bit `at`, or `None` beyond the dimension.
    pub fn get(&self, at: usize) -> Option<bool> {
        self.view().get(at)
    }

    /// Sets bit `at`.
    ///
    /// # Errors
    /// [`Error::Row`] for a bit beyond the dimension.
    pub fn set(&mut self, at: usize, value: bool) -> Result<()> {
        let bits = self.bits();
        let word = self.words_mut().get_mut(at / 64).ok_or(Error::Row { row: at, rows: bits })?;
        *word = *word & !(1 << (at % 64)) | u64::from(value) << (at % 64);
        Ok(())
    }
}

impl std::fmt::Debug for Hypervector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

/// A hypervector that someone else owns: a row of [`crate::Codes`], a slice of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HypervectorView<'a> {
    words: &'a [u64],
}

impl<'a> HypervectorView<'a> {
    /// A view of `words`; the dimension is 64 bits for each.
    ///
    /// # Errors
    /// [`Error::Bits`] for no words or too many.
    pub fn new(words: &'a [u64]) -> Result<Self> {
        words_of(words.len().saturating_mul(64))?;
        Ok(Self { words })
    }

    /// A view of words whose number has been checked.
    pub(crate) fn checked(words: &'a [u64]) -> Self {
        Self { words }
    }

    /// The dimension in bits.
    pub fn bits(self) -> usize {
        self.words.len() * 64
    }

    /// The bits, 64 a word.
    pub fn words(self) -> &'a [u64] {
        self.words
    }

    /// Bit `at`, or `None` beyond the dimension.
    pub fn get(self, at: usize) -> Option<bool> {
        self.words.get(at / 64).map(|word| word >> (at % 64) & 1 == 1)
    }

    /// An owned copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_owned(self) -> Result<Hypervector> {
        Hypervector::from_words(self.words)
    }

    /// The other operand, if it has this dimension.
    pub(crate) fn same_bits(self, other: HypervectorView<'_>) -> Result<()> {
        if self.words.len() == other.words.len() {
            Ok(())
        } else {
            Err(Error::BitsDiffer { left: self.bits(), right: other.bits() })
        }
    }
}

impl std::fmt::Debug for HypervectorView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = self.words.first().copied().unwrap_or_default();
        write!(f, "Hypervector({} bits, {first:016x}..)", self.bits())
    }
}

impl<'a> From<&'a Hypervector> for HypervectorView<'a> {
    fn from(owned: &'a Hypervector) -> Self {
        owned.view()
    }
}

impl<'a> From<&HypervectorView<'a>> for HypervectorView<'a> {
    fn from(view: &HypervectorView<'a>) -> Self {
        *view
    }
}
