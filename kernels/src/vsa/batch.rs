//! Made-up hypervectors, handed to a bundle eight at a time.
//!
//! Owns the buffers that n-grams, records and edges are made in before they are counted: as many as
//! [`Bundler::add_all`] takes in one pass, used again and again.

use crate::{Bundler, Error, Hypervector, HypervectorView, Result};

const LEN: usize = 8;

/// Whether an input has the dimension of those before it.
pub(super) fn same_bits(bits: usize, input: HypervectorView<'_>) -> Result<()> {
    if input.bits() == bits { Ok(()) } else { Err(Error::BitsDiffer { left: bits, right: input.bits() }) }
}

pub(super) struct Batch<'b> {
    bundler: &'b mut Bundler,
    made: Vec<Hypervector>,
    used: usize,
}

impl<'b> Batch<'b> {
    pub(super) fn new(bundler: &'b mut Bundler) -> Result<Self> {
        let made = (0..LEN).map(|_| Hypervector::zeros(bundler.bits())).collect::<Result<_>>()?;
        Ok(Self { bundler, made, used: 0 })
    }

    /// Adds what `make` writes.
    pub(super) fn add(&mut self, make: impl FnOnce(&mut Hypervector) -> Result<()>) -> Result<()> {
        if self.used == LEN {
            self.flush()?;
        }
        make(&mut self.made[self.used])?;
        self.used += 1;
        Ok(())
    }

    /// Counts what is still waiting. Without this call it is lost.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let views: [HypervectorView<'_>; LEN] = std::array::from_fn(|at| self.made[at].view());
        self.bundler.add_all(&views[..self.used])?;
        self.used = 0;
        Ok(())
    }
}
