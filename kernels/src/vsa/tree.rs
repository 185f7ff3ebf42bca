//! Binary trees: leaves under paths, in one hypervector.
//!
//! Owns how a path is coded: the side taken at depth `i` is that side's hypervector permuted by `i`, and a
//! path is the binding of them. The tree is the bundle of each leaf bound with its path. Directions are
//! those of torchhd.
//!
//! Source: Frady, Kent, Olshausen and Sommer, "Resonator networks, 1" (Neural Computation 32(12), 2020),
//! section on tree structures. Its paths, too, can be found with a [`super::Resonator`].

use super::streams::SIDES;
use crate::{Bundler, Hypervector, HypervectorView, Kernels, Result, Rng};

/// A way to go in a binary tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// To the left.
    Left,
    /// To the right.
    Right,
}

/// Leaves, and where they are.
///
/// ```
/// use warm_kernels::vsa::{ItemMemory, Side::{Left, Right}, Tree};
/// let items = ItemMemory::random(20, 4096, 1)?;
/// let mut tree = Tree::new(4096, 1)?;
/// tree.add(&[Left, Right], items.item(3)?)?;
/// tree.add(&[Right], items.item(8)?)?;
/// let leaf = tree.get(&[Left, Right])?;
/// assert_eq!(items.cleanup(&leaf, 0.2)?.map(|found| found.item), Some(3));
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tree {
    kernels: Kernels,
    bundler: Bundler,
    left: Hypervector,
    right: Hypervector,
}

impl Tree {
    /// A tree without leaves, of hypervectors of `bits` bits; `seed` gives the two sides and decides ties.
    ///
    /// # Errors
    /// [`crate::Error::Bits`], [`crate::Error::OutOfMemory`], and those of [`Kernels::active`].
    pub fn new(bits: usize, seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, bits, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`crate::Error::Bits`], [`crate::Error::OutOfMemory`].
    pub fn on(kernels: Kernels, bits: usize, seed: u64) -> Result<Self> {
        let mut rng = Rng::stream(seed, SIDES);
        Ok(Self {
            kernels,
            bundler: Bundler::on(kernels, bits, seed)?,
            left: Hypervector::random(bits, &mut rng)?,
            right: Hypervector::random(bits, &mut rng)?,
        })
    }

    /// How many leaves there are.
    pub fn len(&self) -> usize {
        self.bundler.weight() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A side's hypervector.
    pub fn side(&self, side: Side) -> &Hypervector {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// A path by itself; all zeros, the identity of binding, for the root.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn path(&self, path: &[Side]) -> Result<Hypervector> {
        let mut out = Hypervector::zeros(self.bundler.bits())?;
        for (depth, &side) in path.iter().enumerate() {
            out = self.kernels.bind(&out, &self.kernels.permute(self.side(side), depth as i64)?)?;
        }
        Ok(out)
    }

    /// Adds a leaf.
    ///
    /// # Errors
    /// [`crate::Error::BitsDiffer`], [`crate::Error::Weight`] for too many, [`crate::Error::OutOfMemory`].
    pub fn add<'a>(&mut self, path: &[Side], leaf: impl Into<HypervectorView<'a>>) -> Result<()> {
        let leaf = self.kernels.bind(&self.path(path)?, leaf)?;
        self.bundler.add(&leaf, 1)
    }

    /// Takes a leaf out.
    ///
    /// # Errors
    /// Those of [`Bundler::remove`], which can't always tell that the leaf was never added.
    pub fn remove<'a>(&mut self, path: &[Side], leaf: impl Into<HypervectorView<'a>>) -> Result<()> {
        let leaf = self.kernels.bind(&self.path(path)?, leaf)?;
        self.bundler.remove(&leaf, 1)
    }

    /// The leaf at the end of a path, with noise: to be cleaned up.
    ///
    /// # Errors
    /// [`crate::Error::Empty`], [`crate::Error::OutOfMemory`].
    pub fn get(&self, path: &[Side]) -> Result<Hypervector> {
        self.kernels.bind(&self.tree()?, &self.path(path)?)
    }

    /// The tree: the bundle of its leaves, each bound with its path.
    ///
    /// # Errors
    /// [`crate::Error::Empty`], [`crate::Error::OutOfMemory`].
    pub fn tree(&self) -> Result<Hypervector> {
        self.bundler.bundle()
    }
}

#[cfg(test)]
mod tests {
    use super::{Side::*, *};
    use crate::{Error, vsa::ItemMemory};

    #[test]
    fn every_leaf_is_found_at_its_path_and_nowhere_else() {
        let items = ItemMemory::random(100, 8192, 1).unwrap();
        let item = |at| items.item(at).unwrap();
        let mut tree = Tree::new(8192, 1).unwrap();
        let paths: [&[Side]; 7] = [
            &[],
            &[Left],
            &[Right, Left],
            &[Left, Right],
            &[Right, Right, Right],
            &[Left, Left, Left, Left],
            &[Left, Left, Right, Left, Right],
        ];
        paths.iter().enumerate().for_each(|(at, path)| tree.add(path, item(at * 3)).unwrap());
        assert_eq!(tree.len(), 7);
        for (at, path) in paths.iter().enumerate() {
            let found = items.cleanup(&tree.get(path).unwrap(), 0.15).unwrap();
            assert_eq!(found.map(|found| found.item), Some(at * 3), "{path:?}");
        }
        for path in [&[Right][..], &[Left, Left], &[Right, Left, Left], &[Left, Right, Left, Left]] {
            assert_eq!(items.cleanup(&tree.get(path).unwrap(), 0.07).unwrap(), None, "{path:?}");
        }
        tree.remove(&[Left], item(3)).unwrap();
        assert_eq!(items.cleanup(&tree.get(&[Left]).unwrap(), 0.07).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        let mut tree = Tree::new(64, 1).unwrap();
        let (a, wide) = (Hypervector::zeros(64).unwrap(), Hypervector::zeros(128).unwrap());
        assert_eq!((tree.get(&[Left]), tree.tree()), (Err(Error::Empty), Err(Error::Empty)));
        assert_eq!(tree.remove(&[], &a), Err(Error::NotInBundle));
        assert_eq!(tree.add(&[Left], &wide), Err(Error::BitsDiffer { left: 64, right: 128 }));
        assert!(tree.is_empty());
        assert_eq!(Tree::new(63, 1).err(), Some(Error::Bits(63)));
    }
}
