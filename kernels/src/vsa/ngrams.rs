//! N-grams: what a text is like, by which short sequences it has.
//!
//! Owns how all n-grams of a sequence are made from one another. Directions are those of torchhd.
//!
//! Source: Joshi, Halseth and Kanerva, "Language geometry using random indexing" (Quantum Interaction
//! 2016; arXiv:1412.7026). See [`super::Centroid`] for their classifier of languages.

use super::batch::{Batch, same_bits};
use crate::{Bundler, Error, Hypervector, HypervectorView, Kernels, MAX_WEIGHT, Result};

impl Kernels {
    /// The bundle of all n-grams of a sequence, each the binding of its `n` elements by place:
    /// `P^(n-1) v[i] ^ ... ^ P v[i+n-2] ^ v[i+n-1]`.
    ///
    /// Shapes: `m >= n` hypervectors of `D` bits give one of `D` bits, in two permutations and two
    /// bindings an n-gram whatever `n` is.
    ///
    /// # Errors
    /// [`Error::Empty`] where there is no n-gram: `n` is zero or beyond the number of inputs;
    /// [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn ngrams<'a>(
        self,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
        n: usize,
        seed: u64,
    ) -> Result<Hypervector> {
        let inputs: Vec<HypervectorView<'a>> = inputs.into_iter().map(Into::into).collect();
        let mut bundler = Bundler::on(self, inputs.first().ok_or(Error::Empty)?.bits(), seed)?;
        self.add_ngrams(&mut bundler, inputs, n)?;
        bundler.bundle()
    }

    /// Adds each n-gram of a sequence to a bundle, and returns how many there were.
    ///
    /// # Errors
    /// Those of [`Kernels::ngrams`]. Nothing is added then, but where memory gives out on the way.
    pub fn add_ngrams<'a>(
        self,
        bundler: &mut Bundler,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
        n: usize,
    ) -> Result<usize> {
        let inputs: Vec<HypervectorView<'a>> = inputs.into_iter().map(Into::into).collect();
        if n == 0 || n > inputs.len() {
            return Err(Error::Empty);
        }
        let bits = bundler.bits();
        inputs.iter().try_for_each(|input| same_bits(bits, *input))?;
        let count = inputs.len() - n + 1;
        if bundler.weight().saturating_add(count as u64) > MAX_WEIGHT {
            return Err(Error::Weight);
        }
        let mut gram = self.bind_sequence(inputs[..n].iter().copied())?;
        let mut batch = Batch::new(bundler)?;
        batch.add(|out| copy(&gram, out))?;
        let [mut shifted, mut oldest, mut rest] =
            [Hypervector::zeros(bits)?, Hypervector::zeros(bits)?, Hypervector::zeros(bits)?];
        for (first, next) in inputs.iter().zip(&inputs[n..]) {
            // Everything moves up by a place, and the first element, now at place n, goes.
            self.permute_into(&gram, 1, &mut shifted)?;
            self.permute_into(*first, n as i64, &mut oldest)?;
            self.bind_into(&shifted, &oldest, &mut rest)?;
            self.bind_into(&rest, *next, &mut gram)?;
            batch.add(|out| copy(&gram, out))?;
        }
        batch.finish()?;
        Ok(count)
    }
}

/// [`Kernels::ngrams`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::ngrams`] and [`Kernels::active`].
pub fn ngrams<'a>(
    inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    n: usize,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.ngrams(inputs, n, seed)
}

fn copy(from: &Hypervector, to: &mut Hypervector) -> Result<()> {
    to.words_mut().copy_from_slice(from.words());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        similarity,
        vsa::{ItemMemory, bind_sequence, multiset},
    };

    #[test]
    fn n_grams_are_what_their_formula_says() {
        let items = ItemMemory::random(30, 1024, 6).unwrap();
        let inputs: Vec<_> = items.codes().iter().collect();
        for (m, n) in [(1, 1), (5, 1), (5, 2), (9, 3), (20, 4), (7, 7), (30, 13)] {
            let grams: Vec<_> = inputs[..m]
                .windows(n)
                .map(|gram| {
                    let placed = gram
                        .iter()
                        .enumerate()
                        .map(|(at, v)| crate::permute(*v, (n - 1 - at) as i64).unwrap());
                    crate::bind_many(&placed.collect::<Vec<_>>()).unwrap()
                })
                .collect();
            let made = ngrams(inputs[..m].iter().copied(), n, 3).unwrap();
            assert_eq!(made, crate::bundle(&grams, 3).unwrap(), "{n}-grams of {m}");
        }
        assert_eq!(
            ngrams(inputs.iter().copied(), 1, 1).unwrap(),
            multiset(inputs.iter().copied(), 1).unwrap()
        );
        assert_eq!(
            ngrams(inputs.iter().copied(), 30, 1).unwrap(),
            bind_sequence(inputs.iter().copied()).unwrap()
        );
    }

    #[test]
    fn shared_n_grams_are_seen_wherever_they_are() {
        let items = ItemMemory::random(26, 8192, 6).unwrap();
        let make = |text: &str| {
            ngrams(text.bytes().map(|b| items.item(usize::from(b - b'a')).unwrap()), 3, 1).unwrap()
        };
        let base = make("hyperdimensional");
        // 14 trigrams; 8 of them in the second, none in the third, though its letters are the same.
        assert!(similarity(&base, &make("xxdimensional")).unwrap() > 0.3);
        assert!(similarity(&base, &make("lanoisnemidrepyh")).unwrap().abs() < 5.0 / 8192f64.sqrt());
    }

    #[test]
    fn what_cannot_be_is_refused_and_adds_nothing() {
        let (a, b) = (Hypervector::zeros(64).unwrap(), Hypervector::zeros(128).unwrap());
        let none: [HypervectorView<'_>; 0] = [];
        assert_eq!(ngrams(none, 1, 1), Err(Error::Empty));
        assert_eq!(ngrams([&a, &a], 0, 1), Err(Error::Empty));
        assert_eq!(ngrams([&a, &a], 3, 1), Err(Error::Empty));
        assert_eq!(ngrams([&a, &a], usize::MAX, 1), Err(Error::Empty));
        assert_eq!(ngrams([&a, &a, &b], 2, 1), Err(Error::BitsDiffer { left: 64, right: 128 }));
        let mut bundler = Bundler::new(64, 1).unwrap();
        let kernels = Kernels::active().unwrap();
        assert!(kernels.add_ngrams(&mut bundler, [&a, &a, &b], 2).is_err());
        assert_eq!(bundler.weight(), 0);
        assert_eq!(kernels.add_ngrams(&mut bundler, [&a, &a, &a], 2), Ok(2));
        bundler.add(&a, i32::MAX).unwrap();
        bundler.add(&a, i32::MAX - 2).unwrap();
        assert_eq!(bundler.weight(), MAX_WEIGHT - 1);
        assert_eq!(kernels.add_ngrams(&mut bundler, [&a, &a, &a, &a], 2), Err(Error::Weight));
        assert_eq!(bundler.weight(), MAX_WEIGHT - 1);
    }
}
