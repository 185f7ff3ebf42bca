//! Item memories: the hypervectors that stand for symbols, quantities and angles.
//!
//! Owns how they are made. Row `i` stands for item `i`. An item memory is a function of its kind, its
//! shape and its seed. Kinds that share a seed share nothing else: each draws from streams of its own.

use std::num::NonZeroUsize;

use super::{
    cleanup::Match,
    streams::{CIRCULAR, LEVEL},
};
use crate::{Codes, Error, Hypervector, HypervectorView, Kernels, MAX_ROWS, Neighbour, Result, Rng, Search};

/// `items` hypervectors of `bits` bits, and how to find one again.
///
/// | Kind | Distance of items `i` and `j`, in bits of `D` | For |
/// |---|---|---|
/// | [`random`](Self::random) | binomial: `D/2`, standard deviation `sqrt(D)/2` | symbols |
/// | [`level`](Self::level) | exactly linear in `i - j`, `D/2` for the first and the last | quantities |
/// | [`thermometer`](Self::thermometer) | exactly linear in `i - j`, `D` for the first and the last | quantities |
/// | [`circular`](Self::circular) | exactly linear in the shorter way around, `D/2` for opposites | angles, hours |
///
/// "Exactly" is up to the rounding of two positions to whole bits: one bit.
///
/// ```
/// use warm_kernels::{hamming, vsa::ItemMemory};
/// let hours = ItemMemory::circular(24, 4096, 1)?;
/// let apart = |a, b| hamming(hours.item(a)?, hours.item(b)?);
/// assert!(apart(23, 0)?.abs_diff(apart(11, 12)?) <= 1);
/// assert_eq!(apart(3, 15)?, 2048);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ItemMemory {
    codes: Codes,
}

impl ItemMemory {
    /// Unrelated items: each bit of each is zero or one with equal chance. Item `i` depends on `bits`,
    /// `seed` and `i` alone, so a larger memory begins with the items of a smaller one.
    ///
    /// Source: Kanerva, "Hyperdimensional computing" (Cognitive Computation 1, 2009).
    ///
    /// # Errors
    /// [`Error::Empty`] for no items, [`Error::Bits`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn random(items: usize, bits: usize, seed: u64) -> Result<Self> {
        let mut codes = shape(items, bits)?;
        for item in 0..items {
            codes.set(item, &Hypervector::random(bits, &mut Rng::stream(seed, item as u64))?)?;
        }
        Ok(Self { codes })
    }

    /// Items along a line: from a random first item, the bits of a random half are turned one after
    /// the other, so that the last item is unrelated to the first.
    ///
    /// Sources: Rahimi, Kanerva and Rabaey, "A robust and energy-efficient classifier using
    /// brain-inspired hyperdimensional computing" (ISLPED 2016); Nunes, Heddes, Givargis and Nicolau,
    /// "An extension to basis-hypervectors for learning from circular data in hyperdimensional
    /// computing" (arXiv:2205.07920), whose levels have this distance in expectation.
    ///
    /// # Errors
    /// Those of [`ItemMemory::random`]; [`Error::TooLarge`] also for more than `bits / 2 + 1` items,
    /// which could not all differ.
    pub fn level(items: usize, bits: usize, seed: u64) -> Result<Self> {
        let span = NonZeroUsize::new(items.saturating_sub(1)).unwrap_or(NonZeroUsize::MIN);
        Self::level_spans(items, bits, span, seed)
    }

    /// Items along a line that are alike over `span` steps and unrelated from there on: level items
    /// where `span` is `items - 1`, random ones where it is 1.
    ///
    /// Source: Nunes et al. (arXiv:2205.07920), whose parameter is
    /// `r = 1 - (span - 1) / (items - 2)`.
    ///
    /// # Errors
    /// Those of [`ItemMemory::random`]; [`Error::TooLarge`] also for a span beyond `bits / 2`.
    pub fn level_spans(items: usize, bits: usize, span: NonZeroUsize, seed: u64) -> Result<Self> {
        let mut codes = shape(items, bits)?;
        let (half, span) = (bits / 2, span.get());
        if span > half {
            return Err(Error::TooLarge);
        }
        let mut rng = Rng::stream(seed, LEVEL);
        let mut item = Hypervector::random(bits, &mut rng)?;
        let mut order = shuffled(bits, &mut rng)?;
        let mut turned = 0;
        for at in 0..items {
            let step = at % span;
            if at > 0 && step == 0 {
                turn(&mut item, &order[turned..half]);
                shuffle(&mut order, &mut rng);
                turned = 0;
            }
            let upto = position(step, half, span);
            turn(&mut item, &order[turned..upto]);
            turned = upto;
            codes.set(at, &item)?;
        }
        Ok(Self { codes })
    }

    /// Items along a line without chance: item `i` begins with `i * bits / (items - 1)` ones (rounded),
    /// and zeros follow. The first is all zeros, the last all ones.
    ///
    /// Source: Rachkovskij, Slipchenko, Kussul and Baidyk, "Sparse binary distributed encoding of
    /// scalars" (Journal of Automation and Information Sciences 37(6), 2005).
    ///
    /// # Errors
    /// Those of [`ItemMemory::random`]; [`Error::TooLarge`] also for more than `bits + 1` items, which
    /// could not all differ.
    pub fn thermometer(items: usize, bits: usize) -> Result<Self> {
        let mut codes = shape(items, bits)?;
        let steps = (items - 1).max(1);
        if steps > bits {
            return Err(Error::TooLarge);
        }
        let mut item = Hypervector::zeros(bits)?;
        for at in 0..items {
            let ones = position(at, bits, steps);
            for (word, value) in item.words_mut().iter_mut().enumerate() {
                *value = match ones.saturating_sub(word * 64) {
                    64.. => u64::MAX,
                    some => (1 << some) - 1,
                };
            }
            codes.set(at, &item)?;
        }
        Ok(Self { codes })
    }

    /// Items around a circle: from a random first item, the bits of a random half are turned one after
    /// the other on the first half of the way, and turned back in the same order on the second.
    ///
    /// Source: Nunes et al. (arXiv:2205.07920), whose items have this distance in expectation.
    ///
    /// # Errors
    /// Those of [`ItemMemory::random`]; [`Error::TooLarge`] also for more than `bits` items, which
    /// could not all differ.
    pub fn circular(items: usize, bits: usize, seed: u64) -> Result<Self> {
        let mut codes = shape(items, bits)?;
        if items > bits {
            return Err(Error::TooLarge);
        }
        let mut rng = Rng::stream(seed, CIRCULAR);
        let mut item = Hypervector::random(bits, &mut rng)?;
        let mut order = shuffled(bits, &mut rng)?;
        order.truncate(bits / 2);
        let mut turned = 0;
        for at in 0..items {
            // The way around is `bits` turns long: through `order` once, and once more.
            let upto = position(at, bits, items);
            for step in turned..upto {
                let bit = order[step % order.len()] as usize;
                item.words_mut()[bit / 64] ^= 1 << (bit % 64);
            }
            turned = upto;
            codes.set(at, &item)?;
        }
        Ok(Self { codes })
    }

    /// An item memory of hypervectors that there are already, a row an item.
    ///
    /// # Errors
    /// [`Error::Empty`] for no rows.
    pub fn from_codes(codes: Codes) -> Result<Self> {
        if codes.is_empty() { Err(Error::Empty) } else { Ok(Self { codes }) }
    }

    /// The dimension in bits.
    pub fn bits(&self) -> usize {
        self.codes.bits()
    }

    /// How many items there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always an item")]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Item `item`.
    ///
    /// # Errors
    /// [`Error::Row`].
    pub fn item(&self, item: usize) -> Result<HypervectorView<'_>> {
        self.codes.row(item).ok_or(Error::Row { row: item, rows: self.codes.len() })
    }

    /// The items, a row each.
    pub fn codes(&self) -> &Codes {
        &self.codes
    }

    /// The items, a row each.
    pub fn into_codes(self) -> Codes {
        self.codes
    }

    /// The item most like `query`, if it is at least so similar; see [`super::cleanup`].
    ///
    /// # Errors
    /// Those of [`super::cleanup`].
    pub fn cleanup<'q>(
        &self,
        query: impl Into<HypervectorView<'q>>,
        min_similarity: f64,
    ) -> Result<Option<Match>> {
        super::cleanup(&self.codes, query, min_similarity)
    }

    /// The `k` items most like `query`, the nearest first, of equals the lower number first.
    ///
    /// # Errors
    /// Those of [`Kernels::scan`] and [`Kernels::active`].
    pub fn nearest<'q>(&self, query: impl Into<HypervectorView<'q>>, k: usize) -> Result<Vec<Neighbour>> {
        Kernels::active()?.scan(&self.codes, query, &Search::nearest(k))
    }
}

impl std::fmt::Debug for ItemMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ItemMemory({} items of {} bits)", self.codes.len(), self.bits())
    }
}

fn shape(items: usize, bits: usize) -> Result<Codes> {
    if items == 0 {
        return Err(Error::Empty);
    }
    if items > MAX_ROWS {
        return Err(Error::TooLarge);
    }
    Codes::zeros(bits, items)
}

/// `step / steps` of `length`, to the nearest whole number.
fn position(step: usize, length: usize, steps: usize) -> usize {
    let twice = step as u128 * length as u128 * 2 + steps as u128;
    (twice / (steps as u128 * 2)) as usize
}

/// The bits of a hypervector in a random order.
fn shuffled(bits: usize, rng: &mut Rng) -> Result<Vec<u32>> {
    let mut order = Vec::new();
    order.try_reserve_exact(bits).map_err(|_| Error::OutOfMemory(bits.saturating_mul(4)))?;
    order.extend(0..bits as u32);
    shuffle(&mut order, rng);
    Ok(order)
}

/// Fisher and Yates: every order has the same chance.
fn shuffle(order: &mut [u32], rng: &mut Rng) {
    for left in (2..=order.len()).rev() {
        order.swap(left - 1, rng.below(left as u64) as usize);
    }
}

fn turn(item: &mut Hypervector, bits: &[u32]) {
    let words = item.words_mut();
    for &bit in bits {
        words[bit as usize / 64] ^= 1 << (bit % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming;

    fn apart(memory: &ItemMemory, a: usize, b: usize) -> f64 {
        f64::from(hamming(memory.item(a).unwrap(), memory.item(b).unwrap()).unwrap())
    }

    #[test]
    fn random_items_are_half_the_dimension_apart() {
        let (items, bits) = (60, 4096);
        let memory = ItemMemory::random(items, bits, 11).unwrap();
        let deviation = (bits as f64).sqrt() / 2.0;
        let mut sum = 0.0;
        let mut squares = 0.0;
        let mut pairs = 0.0;
        for a in 0..items {
            for b in 0..a {
                let off = apart(&memory, a, b) - bits as f64 / 2.0;
                assert!(off.abs() < 5.0 * deviation, "items {a} and {b} are off by {off} bits");
                sum += off;
                squares += off * off;
                pairs += 1.0;
            }
        }
        let mean: f64 = sum / pairs;
        let spread: f64 = (squares / pairs).sqrt();
        assert!(mean.abs() < 4.0 * deviation / f64::sqrt(pairs), "mean off by {mean}");
        assert!((spread / deviation - 1.0).abs() < 0.1, "deviation {spread}, expected {deviation}");
        // Each bit is fair over the items, and each item over the bits.
        for item in 0..items {
            let ones = f64::from(crate::popcount(memory.item(item).unwrap()).unwrap());
            assert!((ones - bits as f64 / 2.0).abs() < 5.0 * deviation);
        }
    }

    #[test]
    fn a_memory_is_a_function_of_its_seed_and_no_kind_repeats_another() {
        let (a, b) = (ItemMemory::random(5, 1024, 3).unwrap(), ItemMemory::random(9, 1024, 3).unwrap());
        assert!((0..5).all(|item| a.item(item) == b.item(item)));
        assert_ne!(a, ItemMemory::random(5, 1024, 4).unwrap());
        let kinds = [a, ItemMemory::level(5, 1024, 3).unwrap(), ItemMemory::circular(5, 1024, 3).unwrap()];
        assert_eq!(kinds[1], ItemMemory::level(5, 1024, 3).unwrap());
        assert_eq!(kinds[2], ItemMemory::circular(5, 1024, 3).unwrap());
        for (at, kind) in kinds.iter().enumerate() {
            for other in &kinds[..at] {
                let d = hamming(kind.item(0).unwrap(), other.item(0).unwrap()).unwrap();
                assert!(d.abs_diff(512) < 80, "kinds share a first item: {d}");
            }
        }
    }

    #[test]
    fn levels_are_exactly_linear_and_their_ends_unrelated() {
        for (items, bits) in [(2, 64), (11, 1024), (33, 1024), (513, 1024), (100, 8192)] {
            let memory = ItemMemory::level(items, bits, 5).unwrap();
            assert_eq!(apart(&memory, 0, items - 1), bits as f64 / 2.0);
            for a in (0..items).step_by(items.div_ceil(20)) {
                for b in 0..items {
                    let linear = a.abs_diff(b) as f64 * bits as f64 / 2.0 / (items - 1) as f64;
                    let off = (apart(&memory, a, b) - linear).abs();
                    assert!(off <= 1.0, "{items} items, {bits} bits: {a} and {b} off by {off}");
                }
            }
        }
    }

    #[test]
    fn spans_lie_between_level_and_random() {
        let span = |span| ItemMemory::level_spans(21, 4096, NonZeroUsize::new(span).unwrap(), 9).unwrap();
        assert_eq!(span(20), ItemMemory::level(21, 4096, 9).unwrap());
        let five = span(5);
        for a in 0..21usize {
            for b in 0..21 {
                let d = apart(&five, a, b);
                if a / 5 == b / 5 {
                    assert!((d - a.abs_diff(b) as f64 * 4096.0 / 10.0).abs() <= 1.0);
                } else if a.abs_diff(b) >= 10 {
                    assert!((d - 2048.0).abs() < 5.0 * 32.0, "{a} and {b}: {d}");
                }
            }
        }
        let one = span(1);
        for b in 1..21 {
            assert!((apart(&one, 0, b) - 2048.0).abs() < 5.0 * 32.0);
        }
    }

    #[test]
    fn thermometers_are_exactly_linear_from_zeros_to_ones() {
        for (items, bits) in [(2, 64), (65, 64), (7, 128), (100, 1024)] {
            let memory = ItemMemory::thermometer(items, bits).unwrap();
            for item in 0..items {
                let ones = (item as f64 * bits as f64 / (items - 1) as f64).round();
                assert_eq!(apart(&memory, 0, item), ones, "{items} items, {bits} bits, item {item}");
                assert_eq!(apart(&memory, item, items - 1), bits as f64 - ones);
                let low = (0..bits).filter(|&bit| memory.item(item).unwrap().get(bit) == Some(true));
                assert!(low.enumerate().all(|(at, bit)| at == bit), "the ones come first");
            }
        }
    }

    #[test]
    fn circles_close_and_are_the_same_from_every_item() {
        for (items, bits) in [(2, 64), (16, 1024), (24, 4096), (7, 1024), (64, 64)] {
            let memory = ItemMemory::circular(items, bits, 2).unwrap();
            for a in 0..items {
                for b in 0..items {
                    let way = a.abs_diff(b).min(items - a.abs_diff(b));
                    let linear = way as f64 * bits as f64 / items as f64;
                    let off = (apart(&memory, a, b) - linear).abs();
                    assert!(off <= 1.0, "{items} items, {bits} bits: {a} and {b} off by {off}");
                }
            }
            if bits.is_multiple_of(items) {
                assert_eq!(apart(&memory, 0, items - 1), apart(&memory, 0, 1));
                assert_eq!(apart(&memory, 0, items / 2), bits as f64 / 2.0);
            }
        }
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        type Make = fn(usize, usize) -> Result<ItemMemory>;
        let kinds: [(Make, usize); 3] = [
            (|items, bits| ItemMemory::level(items, bits, 1), 33),
            (ItemMemory::thermometer, 65),
            (|items, bits| ItemMemory::circular(items, bits, 1), 64),
        ];
        for (make, most) in kinds {
            assert_eq!(make(0, 64), Err(Error::Empty));
            assert_eq!(make(2, 65), Err(Error::Bits(65)));
            assert_eq!(make(2, 0), Err(Error::Bits(0)));
            assert!(make(1, 64).is_ok() && make(most, 64).is_ok());
            assert_eq!(make(most + 1, 64), Err(Error::TooLarge));
            assert_eq!(make(usize::MAX, 64), Err(Error::TooLarge));
        }
        assert_eq!(ItemMemory::random(0, 64, 1), Err(Error::Empty));
        assert_eq!(ItemMemory::random(3, 100, 1), Err(Error::Bits(100)));
        assert_eq!(ItemMemory::random(usize::MAX, 64, 1), Err(Error::TooLarge));
        assert_eq!(ItemMemory::from_codes(Codes::new(64).unwrap()), Err(Error::Empty));
        let memory = ItemMemory::random(3, 64, 1).unwrap();
        assert_eq!(memory.item(3), Err(Error::Row { row: 3, rows: 3 }));
    }
}
