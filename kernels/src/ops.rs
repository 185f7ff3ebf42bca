//! The operations of binary spatter codes on one or two hypervectors.
//!
//! Owns bind, permute, Hamming distance and similarity (Kanerva, "The spatter code for encoding
//! concepts at many levels", 1994, and "Hyperdimensional computing", 2009). `bundle` is in
//! [`crate::bundle`]. Each is a method of [`Kernels`], and a free function that runs on
//! [`Kernels::active`] and can therefore also fail with its errors.

use crate::{Codes, Error, Hypervector, HypervectorView, Kernels, Result};

impl Kernels {
    /// The exclusive or of both: unlike either, and its own inverse.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn bind<'a, 'b>(
        self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<Hypervector> {
        let (a, b) = (a.into(), b.into());
        a.same_bits(b)?;
        let mut out = Hypervector::zeros(a.bits())?;
        self.raw().xor(a.words(), b.words(), out.words_mut());
        Ok(out)
    }

    /// [`Kernels::bind`] into a hypervector that there is already.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`].
    pub fn bind_into<'a, 'b>(
        self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
        out: &mut Hypervector,
    ) -> Result<()> {
        let (a, b) = (a.into(), b.into());
        a.same_bits(b)?;
        a.same_bits(out.view())?;
        self.raw().xor(a.words(), b.words(), out.words_mut());
        Ok(())
    }

    /// The exclusive or of all.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn bind_many<'a>(
        self,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    ) -> Result<Hypervector> {
        let mut inputs = inputs.into_iter().map(Into::into);
        let mut out = inputs.next().ok_or(Error::Empty)?.to_owned()?;
        let mut next = Hypervector::zeros(out.bits())?;
        for input in inputs {
            self.bind_into(&out, input, &mut next)?;
            std::mem::swap(&mut out, &mut next);
        }
        Ok(out)
    }

    /// Every row bound with `key`.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`]; `out` has as many rows as `rows`, or it is [`Error::Row`].
    pub fn bind_rows<'a>(
        self,
        rows: &Codes,
        key: impl Into<HypervectorView<'a>>,
        out: &mut Codes,
    ) -> Result<()> {
        let key = key.into();
        rows.same_bits(key)?;
        out.same_shape(rows)?;
        self.raw().xor_rows(rows.words(), key.words(), out.words_mut());
        out.refresh_prefix();
        Ok(())
    }

    /// A cyclic shift: bit `i` becomes bit `i + by`, around the end. `-by` undoes it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn permute<'a>(self, a: impl Into<HypervectorView<'a>>, by: i64) -> Result<Hypervector> {
        let a = a.into();
        let mut out = Hypervector::zeros(a.bits())?;
        self.permute_into(a, by, &mut out)?;
        Ok(out)
    }

    /// [`Kernels::permute`] into a hypervector that there is already.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`].
    pub fn permute_into<'a>(
        self,
        a: impl Into<HypervectorView<'a>>,
        by: i64,
        out: &mut Hypervector,
    ) -> Result<()> {
        let a = a.into();
        a.same_bits(out.view())?;
        self.raw().rotate_rows(a.words(), a.words().len(), turn(by, a.bits()), out.words_mut());
        Ok(())
    }

    /// Every row permuted.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`]; `out` has as many rows as `rows`, or it is [`Error::Row`].
    pub fn permute_rows(self, rows: &Codes, by: i64, out: &mut Codes) -> Result<()> {
        out.same_shape(rows)?;
        let width = rows.bits() / 64;
        self.raw().rotate_rows(rows.words(), width, turn(by, rows.bits()), out.words_mut());
        out.refresh_prefix();
        Ok(())
    }

    /// How many bits are one.
    pub fn popcount<'a>(self, a: impl Into<HypervectorView<'a>>) -> u32 {
        self.raw().popcount(a.into().words()) as u32
    }

    /// How many bits differ.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`].
    pub fn hamming<'a, 'b>(
        self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<u32> {
        let (a, b) = (a.into(), b.into());
        a.same_bits(b)?;
        Ok(self.raw().hamming(a.words(), b.words()) as u32)
    }

    /// `1 - 2 * hamming / bits`: 1 for equal, about 0 for unrelated, -1 for opposite. It is the
    /// cosine of the two as vectors of plus and minus one.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`].
    pub fn similarity<'a, 'b>(
        self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<f64> {
        let a = a.into();
        let differ = self.hamming(a, b)?;
        Ok(1.0 - 2.0 * f64::from(differ) / a.bits() as f64)
    }

    /// Every bit the other way: the point that is farthest from `a`. In binary spatter codes it is
    /// the negative for [`crate::bundle`]; for [`crate::bind`] each hypervector is its own inverse.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn negative<'a>(self, a: impl Into<HypervectorView<'a>>) -> Result<Hypervector> {
        let a = a.into();
        self.bind(a, &Hypervector::ones(a.bits())?)
    }
}

/// `by` around a ring of `bits`, upwards.
fn turn(by: i64, bits: usize) -> usize {
    by.rem_euclid(bits as i64) as usize
}

/// [`Kernels::bind`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::bind`] and [`Kernels::active`].
pub fn bind<'a, 'b>(
    a: impl Into<HypervectorView<'a>>,
    b: impl Into<HypervectorView<'b>>,
) -> Result<Hypervector> {
    Kernels::active()?.bind(a, b)
}

/// [`Kernels::bind_many`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::bind_many`] and [`Kernels::active`].
pub fn bind_many<'a>(
    inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
) -> Result<Hypervector> {
    Kernels::active()?.bind_many(inputs)
}

/// [`Kernels::permute`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::permute`] and [`Kernels::active`].
pub fn permute<'a>(a: impl Into<HypervectorView<'a>>, by: i64) -> Result<Hypervector> {
    Kernels::active()?.permute(a, by)
}

/// [`Kernels::popcount`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::active`].
pub fn popcount<'a>(a: impl Into<HypervectorView<'a>>) -> Result<u32> {
    Ok(Kernels::active()?.popcount(a))
}

/// [`Kernels::hamming`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::hamming`] and [`Kernels::active`].
pub fn hamming<'a, 'b>(a: impl Into<HypervectorView<'a>>, b: impl Into<HypervectorView<'b>>) -> Result<u32> {
    Kernels::active()?.hamming(a, b)
}

/// [`Kernels::similarity`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::similarity`] and [`Kernels::active`].
pub fn similarity<'a, 'b>(
    a: impl Into<HypervectorView<'a>>,
    b: impl Into<HypervectorView<'b>>,
) -> Result<f64> {
    Kernels::active()?.similarity(a, b)
}

/// [`Kernels::negative`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::negative`] and [`Kernels::active`].
pub fn negative<'a>(a: impl Into<HypervectorView<'a>>) -> Result<Hypervector> {
    Kernels::active()?.negative(a)
}
