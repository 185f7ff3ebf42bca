//! Bundling: the hypervector that is most like all of its inputs.
//!
//! Owns the counters behind `bundle` and [`Bundler`]. There is one counter a bit, held as planes
//! (bit `p` of every counter in plane `p`), so that adders work on whole registers. A bit of the
//! result is one where the weight of the inputs with a one is more than half of all weight. Where it is
//! exactly half, the bit is that of `Hypervector::random` with the seed xor a digest of the counters. The
//! result thus depends on what was added, its weights and the seed, never on the order; equal contents give
//! equal bundles, and bundles of other contents break their ties independently, under one seed too.
//!
//! The digest is the wrapping sum, over each word `w` that isn't zero of each plane `p`, of the first word
//! of `Rng::new(w ^ (p << 32 | i) * 0x9e3779b97f4a7c15)`, where `i` is the word's place in the plane.

use crate::{
    Error, Hypervector, HypervectorView, Kernels, Result, Rng, arch::BATCH, hypervector::words_of, line,
    line::Line,
};

/// The largest sum of the sizes of all weights in a bundle.
pub const MAX_WEIGHT: u64 = u32::MAX as u64;

/// A bundle that can grow and shrink.
///
/// ```
/// use warm_kernels::{Bundler, Hypervector, Rng, similarity};
/// let mut rng = Rng::new(1);
/// let items: Vec<_> = (0..5).map(|_| Hypervector::random(4096, &mut rng)).collect::<Result<_, _>>()?;
/// let mut bundler = Bundler::new(4096, 7)?;
/// for item in &items {
///     bundler.add(item, 1)?;
/// }
/// assert!(similarity(&bundler.bundle()?, &items[0])? > 0.2);
/// bundler.remove(&items[0], 1)?;
/// assert!(similarity(&bundler.bundle()?, &items[0])? < 0.1);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Clone)]
pub struct Bundler {
    kernels: Kernels,
    planes: Vec<Line>,
    count: usize,
    words: usize,
    total: u64,
    seed: u64,
}

impl Bundler {
    /// An empty bundle of `bits` bits on the active kernels; `seed` decides ties.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`], and those of [`Kernels::active`].
    pub fn new(bits: usize, seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, bits, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn on(kernels: Kernels, bits: usize, seed: u64) -> Result<Self> {
        let mut out = Self { kernels, planes: Vec::new(), count: 0, words: words_of(bits)?, total: 0, seed };
        out.reserve(BATCH as u64)?;
        Ok(out)
    }

    /// The dimension in bits.
    pub fn bits(&self) -> usize {
        self.words * 64
    }

    /// The sum of the sizes of all weights: the number of inputs, where all weigh one.
    pub fn weight(&self) -> u64 {
        self.total
    }

    /// Adds an input. A negative weight adds its negative, with the weight's size.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Weight`], [`Error::OutOfMemory`].
    pub fn add<'a>(&mut self, input: impl Into<HypervectorView<'a>>, weight: i32) -> Result<()> {
        let input = input.into();
        self.check(input, weight)?;
        self.reserve(weight.unsigned_abs().into())?;
        self.apply(input, weight, |this, plane, words, complement| {
            let stride = this.stride();
            this.kernels.raw().count_up(line::words_mut(&mut this.planes), stride, plane, words, complement);
            false
        });
        self.total += u64::from(weight.unsigned_abs());
        Ok(())
    }

    /// Adds each input with weight one, eight at a time: the fastest way. It adds none if it fails.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Weight`], [`Error::OutOfMemory`].
    pub fn add_all(&mut self, inputs: &[HypervectorView<'_>]) -> Result<()> {
        for input in inputs {
            self.check(*input, 1)?;
        }
        self.reserve(inputs.len() as u64)?;
        let stride = self.stride();
        let kernel = self.kernels.raw();
        let planes = line::words_mut(&mut self.planes);
        let mut batches = inputs.chunks_exact(BATCH);
        for batch in &mut batches {
            kernel.count_batch(planes, stride, &std::array::from_fn(|at| batch[at].words()));
        }
        for input in batches.remainder() {
            kernel.count_up(planes, stride, 0, input.words(), false);
        }
        self.total += inputs.len() as u64;
        Ok(())
    }

    /// Takes out what [`Bundler::add`] put in with the same weight.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Weight`]; [`Error::NotInBundle`] where the counters show that
    /// it can't have been added. They can't show it always: what is removed must have been added.
    pub fn remove<'a>(&mut self, input: impl Into<HypervectorView<'a>>, weight: i32) -> Result<()> {
        let input = input.into();
        HypervectorView::checked(&line::words(&self.planes)[..self.words]).same_bits(input)?;
        let size = u64::from(weight.unsigned_abs());
        if size == 0 {
            return Err(Error::Weight);
        }
        if size > self.total {
            return Err(Error::NotInBundle);
        }
        let below = self.apply(input, weight, |this, plane, words, complement| {
            let stride = this.stride();
            this.kernels.raw().count_down(line::words_mut(&mut this.planes), stride, plane, words, complement)
        });
        if below {
            // Counters wrap, so that adding again restores every one of them.
            self.apply(input, weight, |this, plane, words, complement| {
                let stride = this.stride();
                let planes = line::words_mut(&mut this.planes);
                this.kernels.raw().count_up(planes, stride, plane, words, complement);
                false
            });
            return Err(Error::NotInBundle);
        }
        self.total -= size;
        Ok(())
    }

    /// The majority of what has been added.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::OutOfMemory`].
    pub fn bundle(&self) -> Result<Hypervector> {
        if self.total == 0 {
            return Err(Error::Empty);
        }
        let mut out = Hypervector::zeros(self.bits())?;
        // Half of an odd weight is no counter's value, and then nothing ties: the comparison is
        // with the half rounded down, and an equal one is on the losing side.
        let ties = if self.total.is_multiple_of(2) {
            Hypervector::random(self.bits(), &mut Rng::new(self.seed ^ self.digest()))?
        } else {
            Hypervector::zeros(self.bits())?
        };
        let planes = line::words(&self.planes);
        self.kernels.raw().compare(planes, self.stride(), self.total / 2, ties.words(), out.words_mut());
        Ok(out)
    }

    /// For each bit, the weight of the inputs with a one there.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn counts(&self) -> Result<Vec<u32>> {
        let mut counts = Vec::new();
        counts
            .try_reserve_exact(self.bits())
            .map_err(|_| Error::OutOfMemory(self.bits().saturating_mul(4)))?;
        let (planes, stride) = (line::words(&self.planes), self.stride());
        counts.extend((0..self.bits()).map(|bit| {
            (0..self.count)
                .map(|plane| ((planes[plane * stride + bit / 64] >> (bit % 64) & 1) as u32) << plane)
                .sum::<u32>()
        }));
        Ok(counts)
    }

    /// A number that counters which differ do not share, but for an unlikely accident. Planes that only a larger
    /// weight would need are zero and do not count.
    fn digest(&self) -> u64 {
        let planes = line::words(&self.planes).chunks_exact(self.stride());
        planes.zip(0u64..).fold(0, |sum, (plane, p)| {
            plane[..self.words].iter().zip(0u64..).filter(|(word, _)| **word != 0).fold(
                sum,
                |sum: u64, (word, i)| {
                    let place = (p << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    sum.wrapping_add(Rng::new(word ^ place).next_u64())
                },
            )
        })
    }

    /// Words of a plane: whole lines.
    fn stride(&self) -> usize {
        self.words.next_multiple_of(line::LINE)
    }

    fn check(&self, input: HypervectorView<'_>, weight: i32) -> Result<()> {
        if input.words().len() != self.words {
            return Err(Error::BitsDiffer { left: self.bits(), right: input.bits() });
        }
        if weight == 0 {
            return Err(Error::Weight);
        }
        Ok(())
    }

    /// Makes planes for `more` weight.
    fn reserve(&mut self, more: u64) -> Result<()> {
        let total = self.total.saturating_add(more);
        if total > MAX_WEIGHT {
            return Err(Error::Weight);
        }
        let count = (64 - total.leading_zeros()) as usize;
        if count > self.count {
            let words = self.stride().checked_mul(count).ok_or(Error::TooLarge)?;
            line::grow(&mut self.planes, words)?;
            self.count = count;
        }
        Ok(())
    }

    /// One step for each one in the weight's size; true if any said so.
    fn apply(
        &mut self,
        input: HypervectorView<'_>,
        weight: i32,
        step: impl Fn(&mut Self, usize, &[u64], bool) -> bool,
    ) -> bool {
        let size = weight.unsigned_abs();
        let mut any = false;
        for plane in (0..32).filter(|plane| size >> plane & 1 == 1) {
            any |= step(self, plane, input.words(), weight < 0);
        }
        any
    }
}

impl std::fmt::Debug for Bundler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bundler({} bits, weight {})", self.bits(), self.total)
    }
}

impl Kernels {
    /// The majority of the inputs, bit by bit; `seed` decides ties.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn bundle<'a>(
        self,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
        seed: u64,
    ) -> Result<Hypervector> {
        let inputs: Vec<HypervectorView<'a>> = inputs.into_iter().map(Into::into).collect();
        let mut bundler = Bundler::on(self, inputs.first().ok_or(Error::Empty)?.bits(), seed)?;
        bundler.add_all(&inputs)?;
        bundler.bundle()
    }

    /// The weighted majority of the inputs; see [`Bundler::add`].
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::Weight`], [`Error::OutOfMemory`].
    pub fn bundle_weighted<'a>(
        self,
        inputs: impl IntoIterator<Item = (impl Into<HypervectorView<'a>>, i32)>,
        seed: u64,
    ) -> Result<Hypervector> {
        let mut inputs = inputs.into_iter().map(|(input, weight)| (input.into(), weight));
        let (first, weight) = inputs.next().ok_or(Error::Empty)?;
        let mut bundler = Bundler::on(self, first.bits(), seed)?;
        bundler.add(first, weight)?;
        for (input, weight) in inputs {
            bundler.add(input, weight)?;
        }
        bundler.bundle()
    }
}

/// [`Kernels::bundle`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::bundle`] and [`Kernels::active`].
pub fn bundle<'a>(
    inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.bundle(inputs, seed)
}

/// [`Kernels::bundle_weighted`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::bundle_weighted`] and [`Kernels::active`].
pub fn bundle_weighted<'a>(
    inputs: impl IntoIterator<Item = (impl Into<HypervectorView<'a>>, i32)>,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.bundle_weighted(inputs, seed)
}
