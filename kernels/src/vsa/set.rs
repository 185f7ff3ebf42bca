//! Sets of hypervectors as one.
//!
//! Owns the product of two sets, the random choice and the inverse. A multiset is a bundle
//! ([`super::multiset`]; [`crate::Bundler`] where it grows and shrinks), the binding of a set is
//! [`super::multibind`].

use crate::{Error, Hypervector, HypervectorView, Kernels, Result, Rng};

impl Kernels {
    /// Every pair of an element of `a` and one of `b`: the bundle of `a` bound with the bundle of `b`.
    ///
    /// Shapes: `n` and `m` hypervectors of `D` bits give one of `D` bits.
    ///
    /// # Errors
    /// Those of [`Kernels::bundle`] and [`Kernels::bind`].
    pub fn cross_product<'a, 'b>(
        self,
        a: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
        b: impl IntoIterator<Item = impl Into<HypervectorView<'b>>>,
        seed: u64,
    ) -> Result<Hypervector> {
        self.bind(&self.bundle(a, seed)?, &self.bundle(b, seed)?)
    }
}

/// [`Kernels::cross_product`] on the active kernels.
///
/// ```
/// use warm_kernels::{bind, similarity, vsa::{ItemMemory, cross_product}};
/// let items = ItemMemory::random(6, 4096, 1)?;
/// let [colours, shapes] = [0..3, 3..6].map(|set| set.map(|at| items.item(at)));
/// let colours: Vec<_> = colours.collect::<Result<_, _>>()?;
/// let shapes: Vec<_> = shapes.collect::<Result<_, _>>()?;
/// let all = cross_product(colours.iter().copied(), shapes.iter().copied(), 1)?;
/// assert!(similarity(&all, &bind(colours[2], shapes[0])?)? > 0.15);
/// assert!(similarity(&all, &bind(colours[2], colours[0])?)? < 0.1);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
///
/// # Errors
/// Those of [`Kernels::cross_product`] and [`Kernels::active`].
pub fn cross_product<'a, 'b>(
    a: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    b: impl IntoIterator<Item = impl Into<HypervectorView<'b>>>,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.cross_product(a, b, seed)
}

/// A bundle by chance: each bit is that of one input, each input with equal chance. Of `n` unrelated
/// inputs each keeps a similarity of `1 / n`; a majority keeps more, about `sqrt(2 / (pi * n))`, but is
/// not itself an even mixture.
///
/// Shapes: `n` hypervectors of `D` bits give one of `D` bits.
///
/// # Errors
/// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::OutOfMemory`].
pub fn random_select<'a>(
    inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    seed: u64,
) -> Result<Hypervector> {
    let inputs: Vec<HypervectorView<'a>> = inputs.into_iter().map(Into::into).collect();
    let first = inputs.first().ok_or(Error::Empty)?;
    inputs.iter().try_for_each(|input| first.same_bits(*input))?;
    let mut rng = Rng::new(seed);
    let mut out = Hypervector::zeros(first.bits())?;
    for (at, word) in out.words_mut().iter_mut().enumerate() {
        for bit in 0..64 {
            let chosen = inputs[rng.below(inputs.len() as u64) as usize];
            *word |= chosen.words()[at] & 1 << bit;
        }
    }
    Ok(out)
}

/// What undoes binding with `a`: in binary spatter codes `a` itself, so this is a copy. (What undoes
/// bundling is the [`crate::negative`].)
///
/// ```
/// use warm_kernels::{Hypervector, bind, negative, similarity, vsa::{ItemMemory, inverse}};
/// let items = ItemMemory::random(2, 1024, 1)?;
/// let (a, b) = (items.item(0)?, items.item(1)?);
/// assert_eq!(bind(&bind(a, b)?, &inverse(a)?)?.view(), b);
/// assert_eq!(bind(a, &inverse(a)?)?, Hypervector::zeros(1024)?);
/// assert_eq!(similarity(a, &negative(a)?)?, -1.0);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn inverse<'a>(a: impl Into<HypervectorView<'a>>) -> Result<Hypervector> {
    a.into().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bind, similarity,
        vsa::{ItemMemory, multibind, multiset},
    };

    #[test]
    fn members_of_a_multiset_stand_out() {
        let bits = 8192;
        let noise = 5.0 / (bits as f64).sqrt();
        let memory = ItemMemory::random(60, bits, 4).unwrap();
        for n in [1, 2, 3, 8, 15, 30] {
            let members = memory.codes().iter().take(n);
            let set = multiset(members, 7).unwrap();
            // The share of bits in which a majority of n agrees with one of its inputs.
            // An even number ties, and a tie is worth as much as one more input by chance.
            let odd = if n % 2 == 0 { n + 1 } else { n };
            let expected: f64 = (1..=odd / 2).map(|k| (2 * k - 1) as f64 / (2 * k) as f64).product();
            for (at, item) in memory.codes().iter().enumerate() {
                let alike = similarity(&set, item).unwrap();
                let expected = if at < n { expected } else { 0.0 };
                assert!((alike - expected).abs() < noise, "{n} members, item {at}: {alike} not {expected}");
            }
        }
    }

    #[test]
    fn even_bundles_of_one_seed_break_their_ties_apart_and_equal_ones_alike() {
        let memory = ItemMemory::random(8, 8192, 4).unwrap();
        for n in [2, 4] {
            let set = |from| multiset(memory.codes().iter().skip(from).take(n), 7).unwrap();
            let alike = similarity(&set(0), &set(4)).unwrap();
            assert!(alike.abs() < 5.0 / 8192f64.sqrt(), "{n} and {n} others: {alike}");
            let members: Vec<_> = memory.codes().iter().take(n).collect();
            let turned = multiset(members.into_iter().rev(), 7).unwrap();
            assert_eq!(turned, set(0), "{n} in another order");
        }
    }

    #[test]
    fn binding_a_set_hides_each_and_gives_up_the_last() {
        let memory = ItemMemory::random(6, 4096, 8).unwrap();
        let all = multibind(memory.codes().iter()).unwrap();
        assert!(memory.codes().iter().all(|item| similarity(&all, item).unwrap().abs() < 5.0 / 64.0));
        let rest = multibind(memory.codes().iter().take(5)).unwrap();
        assert_eq!(bind(&all, &rest).unwrap().view(), memory.item(5).unwrap());
    }

    #[test]
    fn a_product_of_sets_has_every_pair_and_no_other() {
        let memory = ItemMemory::random(10, 8192, 2).unwrap();
        let item = |at| memory.item(at).unwrap();
        let product = cross_product((0..3).map(item), (3..6).map(item), 1).unwrap();
        for a in 0..10 {
            for b in 0..a {
                let alike = similarity(&product, &bind(item(a), item(b)).unwrap()).unwrap();
                let expected = if b < 3 && (3..6).contains(&a) { 0.25 } else { 0.0 };
                assert!((alike - expected).abs() < 5.0 / 8192f64.sqrt(), "{a} {b}: {alike}");
            }
        }
    }

    #[test]
    fn a_random_choice_keeps_a_fair_share_of_each() {
        let memory = ItemMemory::random(5, 8192, 3).unwrap();
        let chosen = random_select(memory.codes().iter(), 1).unwrap();
        assert_eq!(chosen, random_select(memory.codes().iter(), 1).unwrap());
        for item in memory.codes().iter() {
            let alike = similarity(&chosen, item).unwrap();
            assert!((alike - 0.2).abs() < 5.0 / 8192f64.sqrt(), "{alike}");
        }
    }

    #[test]
    fn nothing_and_widths_that_differ_are_refused() {
        let none: [HypervectorView<'_>; 0] = [];
        let (a, b) = (Hypervector::zeros(64).unwrap(), Hypervector::zeros(128).unwrap());
        let differ = Err(Error::BitsDiffer { left: 64, right: 128 });
        assert_eq!(random_select(none, 1), Err(Error::Empty));
        assert_eq!(random_select([&a, &b], 1), differ);
        assert_eq!(cross_product(none, [&a], 1), Err(Error::Empty));
        assert_eq!(cross_product([&a], none, 1), Err(Error::Empty));
        assert_eq!(cross_product([&a], [&b], 1), differ);
        assert_eq!((multiset(none, 1), multibind(none)), (Err(Error::Empty), Err(Error::Empty)));
    }
}
