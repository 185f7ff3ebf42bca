//! Cleaning up: from a noisy hypervector to the item that it was.
//!
//! Owns the search with a threshold, and the memory of anything under hypervectors as keys.
//!
//! Source: Plate, "Holographic reduced representations" (1995); the threshold is torchhd's.

use crate::{Codes, Error, HypervectorView, Kernels, Result, Search};

/// An item that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// Its number, or row.
    pub item: usize,
    /// In how many bits it differs from the query.
    pub distance: u32,
    /// The same as a similarity, -1 to 1; see [`crate::similarity`].
    pub similarity: f64,
}

impl Kernels {
    /// The item most like `query`, of equals the one with the lower number; `None` if that is less
    /// similar than `min_similarity`, on a scale of -1 (opposite) by 0 (unrelated) to 1 (equal). At least
    /// -1 always finds one, more than 1 or NaN never does. Of `n` unrelated items of `D` bits, the nearest
    /// has about `sqrt(2 ln n / D)`: a threshold is best well above that.
    ///
    /// Shapes: `n` rows of `D` bits and a query of `D` bits.
    ///
    /// # Errors
    /// [`Error::Empty`] for no items, [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn cleanup<'q>(
        self,
        items: &Codes,
        query: impl Into<HypervectorView<'q>>,
        min_similarity: f64,
    ) -> Result<Option<Match>> {
        let found = self.scan(items, query, &Search::nearest(1))?;
        let nearest = found.first().ok_or(Error::Empty)?;
        let found = matched(nearest.row, nearest.distance, items.bits());
        Ok((found.similarity >= min_similarity).then_some(found))
    }
}

/// A row at a distance, with the similarity that is the same.
pub(super) fn matched(item: usize, distance: u32, bits: usize) -> Match {
    Match { item, distance, similarity: 1.0 - 2.0 * f64::from(distance) / bits as f64 }
}

/// [`Kernels::cleanup`] on the active kernels.
///
/// ```
/// use warm_kernels::vsa::{ItemMemory, cleanup, multiset};
/// let items = ItemMemory::random(100, 2048, 1)?;
/// let noisy = multiset([items.item(42)?, items.item(7)?, items.item(42)?, items.item(9)?], 1)?;
/// assert_eq!(cleanup(items.codes(), &noisy, 0.3)?.map(|found| found.item), Some(42));
/// let unknown = ItemMemory::random(1, 2048, 2)?;
/// assert_eq!(cleanup(items.codes(), unknown.item(0)?, 0.3)?, None);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
///
/// # Errors
/// Those of [`Kernels::cleanup`] and [`Kernels::active`].
pub fn cleanup<'q>(
    items: &Codes,
    query: impl Into<HypervectorView<'q>>,
    min_similarity: f64,
) -> Result<Option<Match>> {
    Kernels::active()?.cleanup(items, query, min_similarity)
}

/// Anything under hypervectors as keys, found by keys that are near enough.
///
/// ```
/// use warm_kernels::vsa::{ItemMemory, Memory};
/// let keys = ItemMemory::random(2, 1024, 1)?;
/// let mut memory = Memory::new(1024, 0.5)?;
/// memory.insert(keys.item(0)?, "letter")?;
/// memory.insert(keys.item(1)?, "digit")?;
/// assert_eq!(memory.get(keys.item(1)?)?.map(|(value, _)| *value), Some("digit"));
/// assert_eq!(memory.remove(keys.item(1)?)?, Some("digit"));
/// assert_eq!(memory.get(keys.item(1)?)?, None);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Memory<V> {
    kernels: Kernels,
    keys: Codes,
    values: Vec<V>,
    min_similarity: f64,
}

impl<V> Memory<V> {
    /// A memory without entries, with keys of `bits` bits; a key finds an entry whose key is at least
    /// `min_similarity` like it, -1 to 1.
    ///
    /// # Errors
    /// [`Error::Bits`], and those of [`Kernels::active`].
    pub fn new(bits: usize, min_similarity: f64) -> Result<Self> {
        Self::on(Kernels::active()?, bits, min_similarity)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Bits`].
    pub fn on(kernels: Kernels, bits: usize, min_similarity: f64) -> Result<Self> {
        Ok(Self { kernels, keys: Codes::new(bits)?, values: Vec::new(), min_similarity })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds an entry, also where there is one with a key like it: of equal keys the older is found.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::TooLarge`], [`Error::OutOfMemory`].
    pub fn insert<'k>(&mut self, key: impl Into<HypervectorView<'k>>, value: V) -> Result<()> {
        self.values.try_reserve(1).map_err(|_| Error::OutOfMemory(size_of::<V>()))?;
        self.keys.push(key)?;
        self.values.push(value);
        Ok(())
    }

    /// The entry whose key is most like `key`, and how much, if it is similar enough.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn get<'k>(&self, key: impl Into<HypervectorView<'k>>) -> Result<Option<(&V, Match)>> {
        let found = self.find(key.into())?;
        Ok(found.and_then(|found| Some((self.values.get(found.item)?, found))))
    }

    /// The same, to be changed.
    ///
    /// # Errors
    /// Those of [`Memory::get`].
    pub fn get_mut<'k>(&mut self, key: impl Into<HypervectorView<'k>>) -> Result<Option<(&mut V, Match)>> {
        let found = self.find(key.into())?;
        Ok(found.and_then(|found| Some((self.values.get_mut(found.item)?, found))))
    }

    /// Takes out the entry that [`Memory::get`] finds. The order of the others stays as it is.
    ///
    /// # Errors
    /// Those of [`Memory::get`].
    pub fn remove<'k>(&mut self, key: impl Into<HypervectorView<'k>>) -> Result<Option<V>> {
        let Some(found) = self.find(key.into())? else { return Ok(None) };
        let mut keys = Codes::new(self.keys.bits())?;
        keys.resize(self.keys.len() - 1)?;
        for (at, row) in self.keys.iter().enumerate().filter(|&(at, _)| at != found.item) {
            keys.set(at - usize::from(at > found.item), row)?;
        }
        self.keys = keys;
        Ok(Some(self.values.remove(found.item)))
    }

    fn find(&self, key: HypervectorView<'_>) -> Result<Option<Match>> {
        match self.kernels.cleanup(&self.keys, key, self.min_similarity) {
            Err(Error::Empty) => Ok(None),
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hypervector, Rng, vsa::ItemMemory};

    fn flipped(view: HypervectorView<'_>, share: f64, rng: &mut Rng) -> Hypervector {
        let mut out = view.to_owned().unwrap();
        for bit in 0..out.bits() {
            if rng.unit() < share {
                out.set(bit, !view.get(bit).unwrap()).unwrap();
            }
        }
        out
    }

    #[test]
    fn noise_is_cleaned_up_and_strangers_are_not_taken_in() {
        let items = ItemMemory::random(300, 1024, 1).unwrap();
        let mut rng = Rng::new(5);
        for item in (0..300).step_by(7) {
            let noisy = flipped(items.item(item).unwrap(), 0.35, &mut rng);
            let found = cleanup(items.codes(), &noisy, 0.15).unwrap().unwrap();
            assert_eq!(found.item, item);
            assert!((found.similarity - 0.3).abs() < 5.0 / 32.0);
            assert_eq!(found.similarity, crate::similarity(&noisy, items.item(item).unwrap()).unwrap());
            let stranger = Hypervector::random(1024, &mut rng).unwrap();
            assert_eq!(cleanup(items.codes(), &stranger, 0.17).unwrap(), None);
        }
    }

    #[test]
    fn the_threshold_is_inclusive_and_any_number_may_be_one() {
        let items = ItemMemory::random(3, 64, 1).unwrap();
        let mut query = items.item(1).unwrap().to_owned().unwrap();
        query.words_mut()[0] ^= 0b1111;
        let found = |least| cleanup(items.codes(), &query, least).unwrap().map(|found| found.item);
        let alike = 1.0 - 8.0 / 64.0;
        assert_eq!(found(alike), Some(1));
        assert_eq!(found(alike + 1e-12), None);
        assert_eq!((found(f64::NEG_INFINITY), found(-1.0)), (Some(1), Some(1)));
        assert_eq!((found(f64::NAN), found(1.5), found(f64::INFINITY)), (None, None, None));
        assert_eq!(
            cleanup(&Codes::new(64).unwrap(), &query, 0.0),
            Err(Error::Empty),
            "no items are an error, not a miss"
        );
        let wide = Hypervector::zeros(128).unwrap();
        assert_eq!(cleanup(items.codes(), &wide, 0.0), Err(Error::BitsDiffer { left: 64, right: 128 }));
    }

    #[test]
    fn a_memory_keeps_values_with_their_keys() {
        let items = ItemMemory::random(20, 512, 1).unwrap();
        let mut memory = Memory::new(512, 0.4).unwrap();
        assert_eq!(memory.get(items.item(0).unwrap()).unwrap(), None);
        assert_eq!(memory.remove(items.item(0).unwrap()).unwrap(), None);
        (0..20).for_each(|at| memory.insert(items.item(at).unwrap(), at).unwrap());
        memory.insert(items.item(3).unwrap(), 99).unwrap();
        let mut rng = Rng::new(1);
        assert_eq!(memory.remove(items.item(0).unwrap()).unwrap(), Some(0));
        for at in 1..20 {
            let noisy = flipped(items.item(at).unwrap(), 0.2, &mut rng);
            assert_eq!(*memory.get(&noisy).unwrap().unwrap().0, at, "the older of two");
        }
        *memory.get_mut(items.item(4).unwrap()).unwrap().unwrap().0 = 44;
        assert_eq!(memory.remove(items.item(3).unwrap()).unwrap(), Some(3));
        assert_eq!(memory.remove(items.item(3).unwrap()).unwrap(), Some(99));
        assert_eq!(memory.remove(items.item(3).unwrap()).unwrap(), None);
        assert_eq!(memory.remove(items.item(4).unwrap()).unwrap(), Some(44));
        assert_eq!(memory.len(), 17);
        let wide = Hypervector::zeros(64).unwrap();
        assert!(matches!(memory.insert(&wide, 1), Err(Error::BitsDiffer { .. })));
        assert!(matches!(memory.get(&wide), Err(Error::BitsDiffer { .. })));
        assert_eq!(memory.len(), 17);
    }
}
