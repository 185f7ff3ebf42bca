//! The key tree: every record version's key, each node sealed under a key that its parent holds.
//!
//! Owns the keys of versions and what forgetting one of them takes. A version lies at a *place*, a number that
//! a memory keeps through all its versions; places are the leaves of a tree of fan-out [`FAN_OUT`], so that the
//! way to a place is its digits, and what a memory's new version costs is one way from leaf to root. Every node
//! on the way is written anew under a fresh key, up to the root, whose key the head of the store holds; that one
//! is sealed under the key in the [`slot`](super::slot). Once that key is erased, nothing that was sealed above a dropped
//! key opens any more, whatever copies of the file there are. See Reardon, Ritzdorf, Basin and Capkun, "Secure
//! Data Deletion from Persistent Media" (CCS 2013), section 4: their B-tree is a tree of fixed fan-out here,
//! since the places are ours to give.
//!
//! Nodes are read from the store when a commit needs them and are not kept.

mod merkle;
mod node;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub(crate) use self::merkle::{Branches, Hash, Proof, ProvenPlace};
use self::merkle::{MOST_LEVELS, NOTHING};
use self::node::{Child, Inner, Leaf};
pub(crate) use self::node::{FAN_OUT, PieceKey, Version};
use super::secret::Key;
use crate::sealed::{NodeId, RecordId};
use crate::store::{Snapshot, StoreError};

/// What the head of a store holds of its tree.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Root {
    /// Levels of nodes; 0 while no version was ever stored.
    levels: u8,
    /// The key of the topmost node; of none while there is none.
    key: Key,
    hash: Hash,
}

/// What a commit does to the versions.
#[derive(Default)]
pub(crate) struct Changes {
    /// What each of these places holds from now on.
    pub(crate) places: BTreeMap<u64, Option<Version>>,
    /// Pieces of derived data, by the leaf that each was derived from.
    pub(crate) pieces: BTreeMap<u64, NewPiece>,
}

/// What was derived from the records of a leaf.
pub(crate) struct NewPiece {
    /// The versions that it was derived from, in the order of their places. If the leaf holds others by now, the
    /// piece is dropped.
    pub(crate) ids: Vec<RecordId>,
    pub(crate) key: PieceKey,
    pub(crate) sealed: Vec<u8>,
}

/// The tree as a commit makes it.
pub(crate) struct Changed {
    pub(crate) root: Root,
    /// Nodes to write, or to remove.
    pub(crate) nodes: Vec<(NodeId, Option<Vec<u8>>)>,
    /// Leaves that lost the piece that was derived from them.
    pub(crate) lost_pieces: Vec<u64>,
    /// Leaves whose new piece was taken.
    pub(crate) new_pieces: Vec<u64>,
    touched: Touched,
}

/// Everything in a tree.
pub(crate) struct Walked {
    /// In the order of places.
    pub(crate) versions: Vec<(u64, Version)>,
    /// Leaves that have a derived piece, with its key.
    pub(crate) pieces: Vec<(u64, PieceKey)>,
}

/// The children's hashes of the nodes on the way, before and after.
#[derive(Default)]
struct Touched {
    before: HashMap<NodeId, [Hash; FAN_OUT]>,
    after: HashMap<NodeId, [Hash; FAN_OUT]>,
}

/// The leaf that holds a place.
pub(crate) fn leaf_of(place: u64) -> u64 {
    place / FAN_OUT as u64
}

impl Root {
    pub(crate) fn empty() -> Self {
        Self { levels: 0, key: Key([0; 32]), hash: NOTHING }
    }

    /// Tells which versions there are, without telling anything of them.
    pub(crate) fn hash(&self) -> &Hash {
        &self.hash
    }

    fn child(&self) -> Option<Child> {
        (self.hash != NOTHING).then(|| Child { key: self.key.clone(), hash: self.hash })
    }

    /// Works out what `changes` make of the tree in `snapshot`, whose root this is.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] names a node that is gone or does not open.
    pub(crate) fn change(
        &self,
        snapshot: &dyn Snapshot,
        salt: &[u8; 16],
        changes: &Changes,
    ) -> Result<Changed, StoreError> {
        let mut work = Work::new(snapshot, salt);
        let highest = changes.places.last_key_value().map(|(place, _)| leaf_of(*place));
        let highest = highest.max(changes.pieces.last_key_value().map(|(leaf, _)| *leaf));
        let Some(highest) = highest else {
            // Nothing is forgotten, so no key has to change but that of the head.
            return Ok(work.done(self.clone()));
        };
        let mut levels = self.levels.max(1);
        while leaf_of_subtree(highest, levels) != 0 {
            levels += 1;
        }
        if levels > MOST_LEVELS {
            return Err(OUT_OF_RANGE);
        }
        let top = self.child().map_or(Source::Nothing, |top| Source::Stored(top).raised(self.levels, levels));
        let changed = work.rewrite(levels - 1, 0, top, changes)?;
        let root = match changed {
            Some(Child { key, hash }) => Self { levels, key, hash },
            None => Self { levels, ..Self::empty() },
        };
        Ok(work.done(root))
    }

    /// Reads the whole tree in `snapshot`, whose root this is.
    ///
    /// # Errors
    /// As [`Root::change`].
    pub(crate) fn walk(&self, snapshot: &dyn Snapshot, salt: &[u8; 16]) -> Result<Walked, StoreError> {
        let mut nodes: Vec<(u64, Child)> = self.child().map(|child| (0, child)).into_iter().collect();
        for level in (1..self.levels).rev() {
            let read = nodes.par_iter().map(|(index, child)| {
                let (inner, _) = read_inner(snapshot, salt, level, *index, child)?;
                let below =
                    |(at, child): (usize, Option<Child>)| Some((index * FAN_OUT as u64 + at as u64, child?));
                Ok(inner.children.into_iter().enumerate().filter_map(below).collect::<Vec<_>>())
            });
            nodes = read.collect::<Result<Vec<_>, StoreError>>()?.into_iter().flatten().collect();
        }
        let leaves =
            nodes.par_iter().map(|(index, child)| Ok((*index, read_leaf(snapshot, salt, *index, child)?.0)));
        let mut walked = Walked { versions: Vec::new(), pieces: Vec::new() };
        for (index, leaf) in leaves.collect::<Result<Vec<_>, StoreError>>()? {
            walked.pieces.extend(leaf.piece.map(|key| (index, key)));
            let versions = leaf.places.into_iter().enumerate();
            walked.versions.extend(
                versions.filter_map(|(at, version)| Some((index * FAN_OUT as u64 + at as u64, version?))),
            );
        }
        Ok(walked)
    }
}

impl Changed {
    /// Shows that these versions were in the tree `before` this change, and are not in what it made of it.
    pub(crate) fn prove(&self, before: &Root, versions: &BTreeMap<u64, Version>) -> Proof {
        let places: Vec<u64> = versions.keys().copied().collect();
        let among = |nodes: &HashMap<NodeId, [Hash; FAN_OUT]>, level, node, at: usize| {
            NodeId::new(level, node).and_then(|id| nodes.get(&id)).map_or(NOTHING, |hashes| hashes[at])
        };
        let proven = versions.iter().map(|(place, version)| ProvenPlace {
            place: *place,
            id: *version.id.as_bytes(),
            salt: version.key.salt(),
            after: among(&self.touched.after, 0, leaf_of(*place), (*place % FAN_OUT as u64) as usize),
        });
        Proof {
            places: proven.collect(),
            before: Branches::collect(before.levels, &before.hash, &places, &|level, node, at| {
                among(&self.touched.before, level, node, at)
            }),
            after: Branches::collect(self.root.levels, &self.root.hash, &places, &|level, node, at| {
                among(&self.touched.after, level, node, at)
            }),
        }
    }
}

/// The number of the node `levels` above that holds this leaf.
fn leaf_of_subtree(leaf: u64, levels: u8) -> u64 {
    leaf.checked_shr((u32::from(levels) - 1) * FAN_OUT.ilog2()).unwrap_or(0)
}

/// Where the node to be rewritten comes from.
enum Source {
    Nothing,
    Stored(Child),
    /// It is put on top of a tree that has grown too low, with so many levels between it and the old top.
    Above(u8, Child),
}

impl Source {
    /// The top of a tree of so many `levels` that was stored as one of `from` levels.
    fn raised(self, from: u8, levels: u8) -> Self {
        match self {
            Self::Stored(top) if levels > from => Self::Above(levels - from - 1, top),
            source => source,
        }
    }
}

/// The children of a node that has the first one alone.
fn first(child: Child) -> [Option<Child>; FAN_OUT] {
    let mut child = Some(child);
    std::array::from_fn(|_| child.take())
}

const OUT_OF_RANGE: StoreError = StoreError::Fault("a store holds more memories than it can");
const UNSEALABLE: StoreError = StoreError::Fault("a key node could not be sealed");

impl Changes {
    /// Whether something changes below this node.
    fn touch(&self, level: u8, index: u64) -> bool {
        let below = u32::from(level) * FAN_OUT.ilog2();
        let (first, end) = (index << below, (index + 1) << below);
        let bits = FAN_OUT.ilog2();
        self.pieces.range(first..end).next().is_some()
            || self.places.range(first << bits..end << bits).next().is_some()
    }
}

/// A node and the hashes of its children.
type Read<N> = (N, [Hash; FAN_OUT]);

fn read_leaf(
    snapshot: &dyn Snapshot,
    salt: &[u8; 16],
    index: u64,
    child: &Child,
) -> Result<Read<Leaf>, StoreError> {
    read(snapshot, salt, 0, index, child, Leaf::decode, Leaf::hashes)
}

fn read_inner(
    snapshot: &dyn Snapshot,
    salt: &[u8; 16],
    level: u8,
    index: u64,
    child: &Child,
) -> Result<Read<Inner>, StoreError> {
    read(snapshot, salt, level, index, child, Inner::decode, Inner::hashes)
}

/// Reads a node and checks that it is the one that its parent means.
fn read<N>(
    snapshot: &dyn Snapshot,
    salt: &[u8; 16],
    level: u8,
    index: u64,
    child: &Child,
    decode: fn(&[u8]) -> Option<N>,
    hashes: fn(&N) -> [Hash; FAN_OUT],
) -> Result<Read<N>, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("key node {level}/{index} {what}").into());
    let id = NodeId::new(level, index).ok_or(OUT_OF_RANGE)?;
    let sealed = snapshot.node(id)?.ok_or_else(|| damaged("is gone"))?;
    let plain: Zeroizing<Vec<u8>> = node::unseal(salt, id, &child.key, &sealed)
        .map_err(|_| damaged("does not open: it was replaced or changed"))?;
    let node = decode(&plain).ok_or_else(|| damaged("is malformed"))?;
    let hashes = hashes(&node);
    if merkle::over(&hashes) != child.hash {
        return Err(damaged("does not match its hash"));
    }
    Ok((node, hashes))
}

/// A change under way.
struct Work<'a> {
    snapshot: &'a dyn Snapshot,
    salt: &'a [u8; 16],
    nodes: Vec<(NodeId, Option<Vec<u8>>)>,
    lost_pieces: Vec<u64>,
    new_pieces: Vec<u64>,
    touched: Touched,
}

impl<'a> Work<'a> {
    fn new(snapshot: &'a dyn Snapshot, salt: &'a [u8; 16]) -> Self {
        let (nodes, lost_pieces, new_pieces) = Default::default();
        Self { snapshot, salt, nodes, lost_pieces, new_pieces, touched: Touched::default() }
    }

    fn done(self, root: Root) -> Changed {
        let Self { nodes, lost_pieces, new_pieces, touched, .. } = self;
        Changed { root, nodes, lost_pieces, new_pieces, touched }
    }

    /// Makes the changes below a node, and returns it as it is then; `None` if nothing is left in it.
    fn rewrite(
        &mut self,
        level: u8,
        index: u64,
        source: Source,
        changes: &Changes,
    ) -> Result<Option<Child>, StoreError> {
        let id = NodeId::new(level, index).ok_or(OUT_OF_RANGE)?;
        let is_stored = matches!(source, Source::Stored(_));
        let (plain, before, after) = if level == 0 {
            let (mut leaf, before) = match &source {
                Source::Stored(child) => read_leaf(self.snapshot, self.salt, index, child)?,
                Source::Nothing | Source::Above(..) => (Leaf::default(), [NOTHING; FAN_OUT]),
            };
            let first = index * FAN_OUT as u64;
            let mut changed = false;
            for (place, version) in changes.places.range(first..first + FAN_OUT as u64) {
                leaf.places[(place - first) as usize].clone_from(version);
                changed = true;
            }
            if changed && leaf.piece.take().is_some() {
                self.lost_pieces.push(index);
            }
            if let Some(piece) = changes.pieces.get(&index)
                && !leaf.is_empty()
                && leaf.places.iter().flatten().map(|version| version.id).eq(piece.ids.iter().copied())
            {
                leaf.piece = Some(piece.key.clone());
                self.new_pieces.push(index);
                self.lost_pieces.retain(|lost| *lost != index);
            }
            ((!leaf.is_empty()).then(|| leaf.encode()), before, leaf.hashes())
        } else {
            let (mut inner, before, mut above) = match source {
                Source::Stored(child) => {
                    let (inner, before) = read_inner(self.snapshot, self.salt, level, index, &child)?;
                    (inner, before, None)
                }
                Source::Nothing => (Inner::default(), [NOTHING; FAN_OUT], None),
                Source::Above(0, top) => {
                    let inner = Inner { children: first(top) };
                    let before = inner.hashes();
                    (inner, before, None)
                }
                Source::Above(between, top) => {
                    (Inner::default(), [NOTHING; FAN_OUT], Some(Source::Above(between - 1, top)))
                }
            };
            for at in 0..FAN_OUT {
                let below = index * FAN_OUT as u64 + at as u64;
                let raised = above.take();
                if raised.is_some() || changes.touch(level - 1, below) {
                    let stored = inner.children[at].take().map_or(Source::Nothing, Source::Stored);
                    inner.children[at] = self.rewrite(level - 1, below, raised.unwrap_or(stored), changes)?;
                }
            }
            ((!inner.is_empty()).then(|| inner.encode()), before, inner.hashes())
        };
        self.touched.before.insert(id, before);
        self.touched.after.insert(id, after);
        match plain {
            Some(plain) => {
                let (made, sealed) = node::seal(self.salt, id, &plain, &after).ok_or(UNSEALABLE)?;
                self.nodes.push((id, Some(sealed)));
                Ok(Some(made))
            }
            None => {
                if is_stored {
                    self.nodes.push((id, None));
                }
                Ok(None)
            }
        }
    }
}

/// The keys and versions in a node, for whoever holds this key; none if it is not the node's.
#[cfg(test)]
pub(super) fn forensic_open(
    salt: &[u8; 16],
    id: NodeId,
    key: &Key,
    sealed: &[u8],
) -> (Vec<Key>, Vec<RecordId>) {
    let Ok(plain) = node::unseal(salt, id, key, sealed) else { return Default::default() };
    if id.get() >> 56 == 0 {
        let leaf = Leaf::decode(&plain).expect("it is a leaf");
        let versions = leaf.places.iter().flatten();
        let piece = leaf.piece.iter().map(PieceKey::forensic_key);
        (
            versions.clone().map(|version| version.key.bytes().clone()).chain(piece).collect(),
            versions.map(|version| version.id).collect(),
        )
    } else {
        let inner = Inner::decode(&plain).expect("it is an inner node");
        (inner.children.iter().flatten().map(|child| child.key.clone()).collect(), Vec::new())
    }
}

#[cfg(test)]
impl Root {
    pub(super) fn forensic_key(&self) -> Option<Key> {
        self.child().map(|child| child.key)
    }
}
