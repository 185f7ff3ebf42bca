//! Records: values under roles, in one hypervector.
//!
//! Owns the role-filler record, which torchhd calls a hash table: the bundle of each role (key) bound
//! with its filler (value). Binding it with a role gives the filler, with the others as noise.
//!
//! Sources: Plate, "Holographic reduced representations" (IEEE Transactions on Neural Networks 6(3),
//! 1995); Kanerva, "What we mean when we say 'What's the dollar of Mexico?'" (AAAI Fall Symposium 2010).

use super::batch::{Batch, same_bits};
use crate::{Bundler, Error, Hypervector, HypervectorView, Kernels, Result};

impl Kernels {
    /// A record of pairs of role and filler: the bundle of `role ^ filler`.
    ///
    /// Shapes: `n` pairs of hypervectors of `D` bits give one of `D` bits.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn hash_table<'k, 'v>(
        self,
        pairs: impl IntoIterator<Item = (impl Into<HypervectorView<'k>>, impl Into<HypervectorView<'v>>)>,
        seed: u64,
    ) -> Result<Hypervector> {
        let mut pairs = pairs.into_iter().map(|(role, filler)| (role.into(), filler.into())).peekable();
        let bits = pairs.peek().ok_or(Error::Empty)?.0.bits();
        let mut bundler = Bundler::on(self, bits, seed)?;
        let mut batch = Batch::new(&mut bundler)?;
        for (role, filler) in pairs {
            same_bits(bits, role)?;
            same_bits(bits, filler)?;
            batch.add(|out| self.bind_into(role, filler, out))?;
        }
        batch.finish()?;
        bundler.bundle()
    }
}

/// [`Kernels::hash_table`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::hash_table`] and [`Kernels::active`].
pub fn hash_table<'k, 'v>(
    pairs: impl IntoIterator<Item = (impl Into<HypervectorView<'k>>, impl Into<HypervectorView<'v>>)>,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.hash_table(pairs, seed)
}

/// A [`hash_table`] that grows and shrinks.
///
/// ```
/// use warm_kernels::vsa::{HashTable, ItemMemory};
/// let roles = ItemMemory::random(2, 4096, 1)?;
/// let words = ItemMemory::random(10, 4096, 2)?;
/// let mut record = HashTable::new(4096, 1)?;
/// record.add(roles.item(0)?, words.item(7)?)?;
/// record.add(roles.item(1)?, words.item(3)?)?;
/// record.replace(roles.item(1)?, words.item(3)?, words.item(4)?)?;
/// let found = words.cleanup(&record.get(roles.item(1)?)?, 0.2)?;
/// assert_eq!(found.map(|found| found.item), Some(4));
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HashTable {
    kernels: Kernels,
    bundler: Bundler,
}

impl HashTable {
    /// An empty record of hypervectors of `bits` bits; `seed` decides ties.
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
        Ok(Self { kernels, bundler: Bundler::on(kernels, bits, seed)? })
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.bundler.weight() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a pair. A role may have several fillers; all are found.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn add<'k, 'v>(
        &mut self,
        role: impl Into<HypervectorView<'k>>,
        filler: impl Into<HypervectorView<'v>>,
    ) -> Result<()> {
        let pair = self.kernels.bind(role, filler)?;
        self.bundler.add(&pair, 1)
    }

    /// Takes a pair out.
    ///
    /// # Errors
    /// Those of [`Bundler::remove`], which can't always tell that the pair was never added.
    pub fn remove<'k, 'v>(
        &mut self,
        role: impl Into<HypervectorView<'k>>,
        filler: impl Into<HypervectorView<'v>>,
    ) -> Result<()> {
        let pair = self.kernels.bind(role, filler)?;
        self.bundler.remove(&pair, 1)
    }

    /// Puts the filler `new` in the place of `old`.
    ///
    /// # Errors
    /// Those of [`HashTable::remove`].
    pub fn replace<'k, 'o, 'n>(
        &mut self,
        role: impl Into<HypervectorView<'k>>,
        old: impl Into<HypervectorView<'o>>,
        new: impl Into<HypervectorView<'n>>,
    ) -> Result<()> {
        let role = role.into();
        let (old, new) = (self.kernels.bind(role, old)?, self.kernels.bind(role, new)?);
        self.bundler.remove(&old, 1)?;
        self.bundler.add(&new, 1)
    }

    /// The filler of `role`, with the others as noise: to be cleaned up. Of `n` pairs it has the similarity
    /// to the filler that a bundle of `n` has to each input. The record is made anew for each question; for
    /// many, keep [`HashTable::record`] and [`crate::bind`] it with the roles.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn get<'k>(&self, role: impl Into<HypervectorView<'k>>) -> Result<Hypervector> {
        self.kernels.bind(&self.record()?, role)
    }

    /// The record: [`hash_table`] of its pairs, to the bit.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::OutOfMemory`].
    pub fn record(&self) -> Result<Hypervector> {
        self.bundler.bundle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{similarity, vsa::ItemMemory};

    #[test]
    fn each_filler_is_recovered_and_no_other() {
        let bits = 8192;
        let words = ItemMemory::random(1000, bits, 1).unwrap();
        for n in [1, 2, 7, 16, 33] {
            let roles = ItemMemory::random(n + 1, bits, 2 + n as u64).unwrap();
            let pairs = |range: std::ops::Range<usize>| {
                range.map(|at| (roles.item(at).unwrap(), words.item(at * 29).unwrap()))
            };
            let mut table = HashTable::new(bits, 3).unwrap();
            pairs(0..n).for_each(|(role, filler)| table.add(role, filler).unwrap());
            assert_eq!(table.len(), n);
            assert_eq!(table.record().unwrap(), hash_table(pairs(0..n), 3).unwrap());
            for at in 0..n {
                let found = words.cleanup(&table.get(roles.item(at).unwrap()).unwrap(), 0.1).unwrap();
                assert_eq!(found.map(|found| found.item), Some(at * 29), "{n} pairs");
            }
            // A role that isn't there has no filler, and no word is in the record by itself.
            let missing = table.get(roles.item(n).unwrap()).unwrap();
            assert_eq!(words.cleanup(&missing, 0.06).unwrap(), None);
            assert_eq!(words.cleanup(&table.record().unwrap(), 0.06).unwrap(), None);
        }
    }

    #[test]
    fn removal_undoes_addition_to_the_bit() {
        let items = ItemMemory::random(12, 1024, 5).unwrap();
        let item = |at| items.item(at).unwrap();
        let mut table = HashTable::new(1024, 3).unwrap();
        (0..4).for_each(|at| table.add(item(at), item(at + 6)).unwrap());
        let before = table.record().unwrap();
        table.add(item(4), item(10)).unwrap();
        assert_ne!(table.record().unwrap(), before);
        table.replace(item(4), item(10), item(11)).unwrap();
        assert!(similarity(&table.get(item(4)).unwrap(), item(11)).unwrap() > 0.2);
        table.remove(item(4), item(11)).unwrap();
        assert_eq!(table.record().unwrap(), before);
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        let (a, b) = (Hypervector::zeros(64).unwrap(), Hypervector::zeros(128).unwrap());
        let none: [(&Hypervector, &Hypervector); 0] = [];
        let differ = |left, right| Err(Error::BitsDiffer { left, right });
        assert_eq!(hash_table(none, 1), Err(Error::Empty));
        assert_eq!(hash_table([(&a, &b)], 1), Err(Error::BitsDiffer { left: 64, right: 128 }));
        assert_eq!(hash_table([(&a, &a), (&b, &b)], 1), Err(Error::BitsDiffer { left: 64, right: 128 }));
        let mut table = HashTable::new(64, 1).unwrap();
        assert_eq!((table.get(&a), table.record()), (Err(Error::Empty), Err(Error::Empty)));
        assert_eq!(table.remove(&a, &a), Err(Error::NotInBundle));
        assert_eq!(table.add(&b, &b), differ(64, 128));
        table.add(&a, &a).unwrap();
        assert_eq!(table.replace(&a, &a, &b), differ(64, 128));
        assert_eq!((table.len(), table.get(&a)), (1, Ok(a.clone())));
        assert_eq!(table.get(&b), Err(Error::BitsDiffer { left: 64, right: 128 }));
    }
}
