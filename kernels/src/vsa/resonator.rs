//! The resonator: which items, one of each domain, a product was made of.
//!
//! Owns the search by superposition. Of `F` domains with `M` items each there are `M^F` products; none is
//! tried. Each factor has an estimate, at first the bundle of its whole domain. A step takes the other
//! estimates out of the product, compares what is left with each item of the domain, and makes the
//! items' bundle, weighted by the comparison, the new estimate.
//!
//! The original is for vectors of plus and minus one. In binary spatter codes the product is the exclusive
//! or, the inner product is `D - 2 * hamming`, and the sign of the weighted sum is the weighted majority,
//! where a negative weight adds an item's negative: the same network, bit for sign.
//!
//! How much fits grows with the square of the dimension (the second source). Of three domains of 30 random
//! items at 1,024 bits, or of 100 at 8,192, every product tried was found, in about 10 steps.
//!
//! Source: Frady, Kent, Olshausen and Sommer, "Resonator networks, 1: an efficient solution for factoring
//! high-dimensional, distributed representations of data structures" (Neural Computation 32(12), 2020;
//! doi:10.1162/neco_a_01331); Kent, Frady, Sommer and Olshausen, "Resonator networks, 2" (same volume).

use super::streams;
use crate::{Codes, Error, Hypervector, HypervectorView, Kernels, MAX_WEIGHT, Result, Rng};

/// A search for the factors of products.
///
/// Factoring a product of three:
///
/// ```
/// use warm_kernels::{bind_many, vsa::{ItemMemory, Resonator}};
///
/// let colours = ItemMemory::random(12, 2048, 1)?;
/// let shapes = ItemMemory::random(12, 2048, 2)?;
/// let places = ItemMemory::random(12, 2048, 3)?;
/// let scene = bind_many([colours.item(4)?, shapes.item(11)?, places.item(0)?])?;
///
/// // 1,728 products, of which a few steps look at all at once.
/// let resonator = Resonator::new(&[colours.codes(), shapes.codes(), places.codes()], 1)?;
/// let found = resonator.factor(&scene)?;
/// assert_eq!(found.items, [4, 11, 0]);
/// assert_eq!(found.similarity, 1.0);
/// assert!(found.converged && found.steps < 50);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Resonator<'a> {
    kernels: Kernels,
    domains: Vec<&'a Codes>,
    bits: usize,
    seed: u64,
    steps: usize,
    restarts: usize,
    accept: f64,
}

/// What a [`Resonator`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// One item, or row, of each domain, in the order of the domains.
    pub items: Vec<usize>,
    /// The similarity of the product of these items to the input, -1 to 1.
    pub similarity: f64,
    /// Whether that is similar enough: the answer is only a guess where it isn't.
    pub converged: bool,
    /// Steps taken, over all starts.
    pub steps: usize,
    /// How often the search was started anew.
    pub restarts: usize,
}

/// What one step of a [`Resonator`] did.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The best item of each domain for now.
    pub items: Vec<usize>,
    /// The similarity of their product to the input, -1 to 1.
    pub similarity: f64,
    /// Whether an estimate changed. Where none did, none ever will.
    pub changed: bool,
}

impl<'a> Resonator<'a> {
    /// A resonator for products of one item of each domain. `seed` decides ties and later starts. At most
    /// 100 steps a start, up to 9 starts anew, and only the product itself is accepted.
    ///
    /// # Errors
    /// [`Error::Empty`] for no domains or one without items, [`Error::BitsDiffer`], and those of
    /// [`Kernels::active`].
    pub fn new(domains: &[&'a Codes], seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, domains, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Empty`] for no domains or one without items, [`Error::BitsDiffer`].
    pub fn on(kernels: Kernels, domains: &[&'a Codes], seed: u64) -> Result<Self> {
        let bits = domains.first().ok_or(Error::Empty)?.bits();
        for domain in domains {
            if domain.is_empty() {
                return Err(Error::Empty);
            }
            if domain.bits() != bits {
                return Err(Error::BitsDiffer { left: bits, right: domain.bits() });
            }
        }
        Ok(Self { kernels, domains: domains.to_vec(), bits, seed, steps: 100, restarts: 9, accept: 1.0 })
    }

    /// At most so many steps a start, and at least one.
    pub fn steps(self, steps: usize) -> Self {
        Self { steps: steps.max(1), ..self }
    }

    /// At most so many starts anew, from random estimates, after a start that found no product.
    pub fn restarts(self, restarts: usize) -> Self {
        Self { restarts, ..self }
    }

    /// Accepts a product that is so similar to the input, -1 to 1: less than 1 for an input with noise. With
    /// a share `p` of its bits turned, the input's similarity to its product is `1 - 2 p`; that of a wrong
    /// product is about 0, or up to `sqrt(2 F ln M / D)` for the luckiest of `M^F`.
    pub fn accepting(self, similarity: f64) -> Self {
        Self { accept: similarity, ..self }
    }

    /// The estimates of the first start: the bundle of each domain.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn start(&self) -> Result<Vec<Hypervector>> {
        let ties = |factor| self.seed.wrapping_add(factor as u64);
        let domains = self.domains.iter().enumerate();
        domains.map(|(factor, domain)| self.kernels.bundle(domain.iter(), ties(factor))).collect()
    }

    /// Renews each estimate, in order and in place, the later ones with the earlier ones already new.
    ///
    /// Shapes: an input of `D` bits and `F` estimates of `D` bits.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`] where there isn't an estimate a domain; [`Error::BitsDiffer`];
    /// [`Error::OutOfMemory`], after which some may be new.
    pub fn step<'q>(
        &self,
        input: impl Into<HypervectorView<'q>>,
        estimates: &mut [Hypervector],
    ) -> Result<Step> {
        let input = input.into();
        if estimates.len() != self.domains.len() {
            return Err(Error::LengthsDiffer { left: self.domains.len(), right: estimates.len() });
        }
        let widths = estimates.iter().map(Hypervector::bits).chain([input.bits()]);
        if let Some(right) = widths.into_iter().find(|&bits| bits != self.bits) {
            return Err(Error::BitsDiffer { left: self.bits, right });
        }
        // What the product has that all estimates together don't explain.
        let mut open = self.kernels.bind_many(estimates.iter().map(Hypervector::view).chain([input]))?;
        let mut product = input.to_owned()?;
        let mut rest = Hypervector::zeros(self.bits)?;
        let mut step =
            Step { items: Vec::with_capacity(self.domains.len()), similarity: 0.0, changed: false };
        for (factor, (domain, estimate)) in self.domains.iter().zip(estimates).enumerate() {
            self.kernels.bind_into(&open, &*estimate, &mut rest)?;
            let alike = self.compare(domain, &rest)?;
            let best = best(&alike);
            if let Some(row) = domain.row(best) {
                product = self.kernels.bind(&product, row)?;
            }
            step.items.push(best);
            // Where nothing speaks for or against any item, the estimate stays.
            if let Some(new) = self.weighted(domain, &alike, factor)?
                && new != *estimate
            {
                *estimate = new;
                step.changed = true;
            }
            self.kernels.bind_into(&rest, &*estimate, &mut open)?;
        }
        step.similarity = 1.0 - 2.0 * f64::from(self.kernels.popcount(&product)) / self.bits as f64;
        Ok(step)
    }

    /// The factors of `input`: of the products met on the way, the one most like it.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn factor<'q>(&self, input: impl Into<HypervectorView<'q>>) -> Result<Factors> {
        let input = input.into();
        let mut found =
            Factors { items: Vec::new(), similarity: -1.0, converged: false, steps: 0, restarts: 0 };
        for start in 0..=self.restarts {
            found.restarts = start;
            let mut estimates = if start == 0 { self.start()? } else { self.random_start(start)? };
            for _ in 0..self.steps {
                let step = self.step(input, &mut estimates)?;
                found.steps += 1;
                if found.items.is_empty() || step.similarity > found.similarity {
                    found.items = step.items;
                    found.similarity = step.similarity;
                }
                if found.similarity >= self.accept {
                    found.converged = true;
                    return Ok(found);
                }
                if !step.changed {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn random_start(&self, start: usize) -> Result<Vec<Hypervector>> {
        let mut rng = Rng::stream(self.seed, streams::start(start));
        self.domains.iter().map(|_| Hypervector::random(self.bits, &mut rng)).collect()
    }

    /// The inner product of `rest` with each item, as vectors of plus and minus one.
    fn compare(&self, domain: &Codes, rest: &Hypervector) -> Result<Vec<i64>> {
        domain
            .iter()
            .map(|item| Ok(self.bits as i64 - 2 * i64::from(self.kernels.hamming(item, rest)?)))
            .collect()
    }

    /// The weighted majority of the items; `None` where all weights are zero.
    fn weighted(&self, domain: &Codes, alike: &[i64], factor: usize) -> Result<Option<Hypervector>> {
        // What is too heavy for a bundle is weighed coarser: all weights are divided by one number.
        let sum = alike.iter().map(|alike| u128::from(alike.unsigned_abs())).sum::<u128>();
        let most = alike.iter().map(|alike| alike.unsigned_abs()).max().unwrap_or(0);
        let scale = sum.div_ceil(u128::from(MAX_WEIGHT)).max(u128::from(most.div_ceil(i32::MAX as u64)));
        let scale = i64::try_from(scale.max(1)).map_err(|_| Error::TooLarge)?;
        let weights = alike.iter().map(|&alike| (alike / scale) as i32);
        let pairs: Vec<_> = domain.iter().zip(weights).filter(|&(_, weight)| weight != 0).collect();
        match self.kernels.bundle_weighted(pairs, self.seed.wrapping_add(factor as u64)) {
            Ok(new) => Ok(Some(new)),
            Err(Error::Empty) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The item most strongly spoken for, or against: two estimates that are negatives of their items have the
/// same product as the items.
fn best(alike: &[i64]) -> usize {
    let mut best = 0;
    for (at, alike_at) in alike.iter().enumerate() {
        if alike_at.unsigned_abs() > alike[best].unsigned_abs() {
            best = at;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bind_many, negative, similarity, vsa::ItemMemory};

    /// Domains, and the product of a random item of each.
    fn problem(
        factors: usize,
        items: usize,
        bits: usize,
        seed: u64,
    ) -> (Vec<ItemMemory>, Vec<usize>, Hypervector) {
        let mut rng = Rng::new(seed);
        let domains: Vec<_> =
            (0..factors).map(|_| ItemMemory::random(items, bits, rng.next_u64()).unwrap()).collect();
        let truth: Vec<_> = (0..factors).map(|_| rng.below(items as u64) as usize).collect();
        let product =
            bind_many(domains.iter().zip(&truth).map(|(domain, &item)| domain.item(item).unwrap())).unwrap();
        (domains, truth, product)
    }

    fn codes(domains: &[ItemMemory]) -> Vec<&Codes> {
        domains.iter().map(ItemMemory::codes).collect()
    }

    #[test]
    fn products_are_factored_for_nearly_every_seed() {
        for (factors, items, bits, most) in
            [(1, 50, 256, 40), (2, 30, 512, 80), (3, 15, 1024, 160), (4, 6, 1024, 320)]
        {
            let (mut first, mut all, mut steps) = (0, 0, 0);
            for seed in 0..40 {
                let (domains, truth, product) = problem(factors, items, bits, seed);
                let found = Resonator::new(&codes(&domains), seed).unwrap().factor(&product).unwrap();
                assert_eq!(found.converged, found.items == truth, "no product but the true one is equal");
                assert_eq!(found.converged, found.similarity == 1.0);
                first += usize::from(found.converged && found.restarts == 0);
                all += usize::from(found.converged);
                steps += found.steps;
            }
            let shape = format!("{factors} factors of {items} items, {bits} bits");
            assert!(first >= 36, "{shape}: {first} of 40 from the first start");
            assert!(steps <= most, "{shape}: {steps} steps for 40");
            assert_eq!(all, 40, "{shape}: {all} of 40, {steps} steps");
        }
    }

    #[test]
    fn starting_anew_helps_where_one_start_is_not_enough() {
        let (mut once, mut again) = (0, 0);
        for seed in 1000..1020 {
            let (domains, truth, product) = problem(4, 8, 512, seed);
            let resonator = Resonator::new(&codes(&domains), seed - 1000).unwrap().steps(30);
            again += usize::from(resonator.factor(&product).unwrap().items == truth);
            once += usize::from(resonator.restarts(0).factor(&product).unwrap().items == truth);
        }
        assert!((12..20).contains(&once), "{once} of 20 from one start");
        assert_eq!(again, 20);
    }

    #[test]
    fn a_step_is_what_its_formula_says() {
        let (domains, _, product) = problem(3, 7, 512, 5);
        let resonator = Resonator::new(&codes(&domains), 1).unwrap();
        let mut estimates = resonator.start().unwrap();
        for _ in 0..3 {
            // One factor after the other; the inner product is counted over bits as plus and minus one.
            let mut expected = estimates.clone();
            for factor in 0..3 {
                let others = (0..3).filter(|&other| other != factor).map(|other| expected[other].view());
                let rest = bind_many(others.chain([product.view()])).unwrap();
                let weights = domains[factor].codes().iter().map(|item| {
                    let sign = |at| (item.get(at) == rest.get(at)) as i32 * 2 - 1;
                    (0..512).map(sign).sum::<i32>()
                });
                let pairs = domains[factor].codes().iter().zip(weights).filter(|&(_, weight)| weight != 0);
                let pairs: Vec<_> = pairs.collect();
                expected[factor] = crate::bundle_weighted(pairs, 1 + factor as u64).unwrap();
            }
            let step = resonator.step(&product, &mut estimates).unwrap();
            assert_eq!(estimates, expected);
            assert_eq!(step.items.len(), 3);
        }
    }

    #[test]
    fn noise_is_factored_away() {
        let mut right = 0;
        for seed in 0..20 {
            let (domains, truth, mut product) = problem(3, 10, 1024, 100 + seed);
            let mut rng = Rng::new(seed);
            for bit in 0..1024 {
                let turn = rng.unit() < 0.15;
                product.set(bit, product.get(bit).unwrap() ^ turn).unwrap();
            }
            let found =
                Resonator::new(&codes(&domains), seed).unwrap().accepting(0.5).factor(&product).unwrap();
            right += usize::from(found.items == truth);
            assert!(!found.converged || found.items == truth && found.similarity < 1.0);
        }
        assert!(right >= 19, "{right} of 20");
    }

    #[test]
    fn one_domain_may_be_used_twice() {
        let items = ItemMemory::random(12, 1024, 1).unwrap();
        let mut right = 0;
        for seed in 0..20 {
            let (a, b) = (seed % 12, (seed * 5 + 1) % 12);
            let shifted = crate::permute(items.item(b).unwrap(), 1).unwrap();
            let mut other = Codes::zeros(1024, 12).unwrap();
            Kernels::active().unwrap().permute_rows(items.codes(), 1, &mut other).unwrap();
            let product = crate::bind(items.item(a).unwrap(), &shifted).unwrap();
            let resonator = Resonator::new(&[items.codes(), &other], seed as u64).unwrap();
            right += usize::from(resonator.factor(&product).unwrap().items == [a, b]);
        }
        assert_eq!(right, 20);
    }

    #[test]
    fn what_has_no_factors_does_not_converge() {
        let (domains, _, _) = problem(3, 8, 1024, 1);
        let stranger = Hypervector::random(1024, &mut Rng::new(9)).unwrap();
        let resonator = Resonator::new(&codes(&domains), 1).unwrap().steps(20).restarts(2);
        let found = resonator.factor(&stranger).unwrap();
        assert!(!found.converged && found.similarity < 0.25, "{found:?}");
        assert!(found.restarts == 2 && (3..=60).contains(&found.steps));
        let product = bind_many(domains.iter().zip(&found.items).map(|(d, &item)| d.item(item).unwrap()));
        assert_eq!(found.similarity, similarity(&product.unwrap(), &stranger).unwrap());
        assert_eq!(resonator.factor(&stranger).unwrap(), found, "it is reproducible");
        assert_eq!(resonator.clone().steps(0).restarts(0).factor(&stranger).unwrap().steps, 1);
    }

    #[test]
    fn the_solution_is_a_fixed_point_and_so_are_two_negatives() {
        let (domains, truth, product) = problem(3, 10, 1024, 7);
        let resonator = Resonator::new(&codes(&domains), 1).unwrap();
        let solution: Vec<_> =
            domains.iter().zip(&truth).map(|(d, &item)| d.item(item).unwrap().to_owned().unwrap()).collect();
        let mut negatives = solution.clone();
        negatives[0] = negative(&solution[0]).unwrap();
        negatives[2] = negative(&solution[2]).unwrap();
        for mut estimates in [solution, negatives] {
            let before = estimates.clone();
            let step = resonator.step(&product, &mut estimates).unwrap();
            assert_eq!((step.items, step.similarity), (truth.clone(), 1.0));
            for (new, old) in estimates.iter().zip(&before) {
                assert!(similarity(new, old).unwrap() > 0.95);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let items = ItemMemory::random(2, 64, 1).unwrap();
        let (wide, none) = (ItemMemory::random(2, 128, 1).unwrap(), Codes::new(64).unwrap());
        let differ = Error::BitsDiffer { left: 64, right: 128 };
        assert_eq!(Resonator::new(&[], 1).err(), Some(Error::Empty));
        assert_eq!(Resonator::new(&[items.codes(), &none], 1).err(), Some(Error::Empty));
        assert_eq!(Resonator::new(&[items.codes(), wide.codes()], 1).err(), Some(differ.clone()));
        let resonator = Resonator::new(&[items.codes(), items.codes()], 1).unwrap();
        assert_eq!(resonator.factor(wide.item(0).unwrap()), Err(differ.clone()));
        let mut estimates = resonator.start().unwrap();
        assert_eq!(resonator.step(wide.item(0).unwrap(), &mut estimates), Err(differ.clone()));
        estimates[1] = Hypervector::zeros(128).unwrap();
        assert_eq!(resonator.step(items.item(0).unwrap(), &mut estimates), Err(differ));
        estimates.pop();
        let lengths = Error::LengthsDiffer { left: 2, right: 1 };
        assert_eq!(resonator.step(items.item(0).unwrap(), &mut estimates), Err(lengths));
    }
}
