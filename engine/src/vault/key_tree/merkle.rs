//! What can be told of the versions in a store without telling anything else: a Merkle tree of commitments.
//!
//! A binary tree over the places of the key tree. A place that holds a version has its commitment, a salted
//! SHA-256 of the version's id; the salt comes from the version's key, so that nobody who has lost the key
//! can make it, and whoever learns the salt learns nothing of the key. An empty place, and a subtree of
//! empty places, is [`NOTHING`]. A [proof](Proof) shows what stands at some places before and after a commit.
//!
//! Domain separation follows RFC 6962, section 2.1: leaves begin with 0, inner nodes with 1.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::node::FAN_OUT;
use crate::sealed::RecordId;

/// A SHA-256 digest.
pub(crate) type Hash = [u8; 32];

/// Stands for an empty place and for a subtree without versions.
pub(crate) const NOTHING: Hash = [0; 32];

/// Depth of the binary tree within one node of the key tree.
const BITS: u32 = FAN_OUT.ilog2();

/// More levels than any store can fill; a proof that says more is refused.
pub(crate) const MOST_LEVELS: u8 = 12;

/// What a version is known by in the tree.
pub(crate) fn commitment(salt: &[u8; 16], id: &RecordId) -> Hash {
    let hash = Sha256::new().chain_update([0]).chain_update(b"warm version\0");
    hash.chain_update(salt).chain_update(id.as_bytes()).finalize().into()
}

fn join(left: &Hash, right: &Hash) -> Hash {
    if *left == NOTHING && *right == NOTHING {
        return NOTHING;
    }
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// The hash of a node from those of its children.
pub(super) fn over(children: &[Hash; FAN_OUT]) -> Hash {
    let mut level = *children;
    let mut width = FAN_OUT;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            level[at] = join(&level[2 * at], &level[2 * at + 1]);
        }
    }
    level[0]
}

/// What the places of a proof held before and hold after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProvenPlace {
    pub(crate) place: u64,
    /// The id of the version that is gone, and its salt.
    pub(crate) id: [u8; 16],
    pub(crate) salt: [u8; 16],
    /// What the place has held since: nothing, or the commitment of another version.
    pub(crate) after: Hash,
}

/// Shows that versions were in one tree and are no longer in the one that followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// In ascending order, each once.
    pub(crate) places: Vec<ProvenPlace>,
    pub(crate) before: Branches,
    pub(crate) after: Branches,
}

/// The hashes beside the way from the root to some places, in the order of a walk from left to right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Branches {
    pub(crate) levels: u8,
    pub(crate) beside: Vec<Hash>,
}

impl Branches {
    /// Collects them in a tree of this root; `child` gives the hash of a child of a node on the way (level, node,
    /// number).
    pub(super) fn collect(
        levels: u8,
        root: &Hash,
        places: &[u64],
        child: &impl Fn(u8, u64, usize) -> Hash,
    ) -> Self {
        let mut beside = Vec::new();
        if !places.is_empty() {
            collect(u32::from(levels) * BITS, 0, places, child, &mut beside);
        } else if levels > 0 {
            beside.push(*root);
        }
        Self { levels, beside }
    }

    /// The root that follows from what `held` the places, which ascend; `None` if the hashes do not fit.
    fn root(&self, held: &[(u64, Hash)]) -> Option<Hash> {
        let depth = u32::from(self.levels) * BITS;
        let fits = self.levels <= MOST_LEVELS
            && held.windows(2).all(|two| two[0].0 < two[1].0)
            && held.last().is_none_or(|(place, _)| place.checked_shr(depth).unwrap_or(0) == 0);
        if !fits {
            return None;
        }
        if self.levels == 0 {
            return (held.is_empty() && self.beside.is_empty()).then_some(NOTHING);
        }
        let mut beside = self.beside.iter();
        let root = rebuild(depth, 0, held, &mut beside)?;
        beside.next().is_none().then_some(root)
    }
}

impl Proof {
    /// A digest of all of it.
    pub(crate) fn digest(&self) -> Hash {
        let mut hash = Sha256::new();
        hash.update((self.places.len() as u64).to_le_bytes());
        for ProvenPlace { place, id, salt, after } in &self.places {
            hash.update(place.to_le_bytes());
            hash.update([id.as_slice(), salt, after].concat());
        }
        for Branches { levels, beside } in [&self.before, &self.after] {
            hash.update([*levels]);
            hash.update((beside.len() as u64).to_le_bytes());
            beside.iter().for_each(|beside| hash.update(beside));
        }
        hash.finalize().into()
    }

    /// The roots before and after that this proof is good for; `None` if it contradicts itself.
    pub(crate) fn roots(&self) -> Option<(Hash, Hash)> {
        let held = |hash: &dyn Fn(&ProvenPlace) -> Hash| -> Vec<_> {
            self.places.iter().map(|place| (place.place, hash(place))).collect()
        };
        let before = held(&|place| commitment(&place.salt, &RecordId::from_bytes(place.id)));
        let gone =
            |place: &ProvenPlace| place.after != commitment(&place.salt, &RecordId::from_bytes(place.id));
        if !self.places.iter().all(gone) {
            return None;
        }
        Some((self.before.root(&before)?, self.after.root(&held(&|place| place.after))?))
    }
}

/// How `places` part at the middle of the subtree of `depth` that begins at `first`.
fn middle(depth: u32, first: u64) -> u64 {
    first + (1 << (depth - 1))
}

fn collect(
    depth: u32,
    first: u64,
    places: &[u64],
    child: &impl Fn(u8, u64, usize) -> Hash,
    beside: &mut Vec<Hash>,
) {
    if depth == 0 {
        return;
    }
    let middle = middle(depth, first);
    let (left, right) = places.split_at(places.partition_point(|place| *place < middle));
    for (part, from) in [(left, first), (right, middle)] {
        if part.is_empty() {
            beside.push(subtree(depth - 1, from, child));
        } else {
            collect(depth - 1, from, part, child, beside);
        }
    }
}

/// The hash of the subtree of `depth` that begins at `first` and whose parent is on the way.
fn subtree(depth: u32, first: u64, child: &impl Fn(u8, u64, usize) -> Hash) -> Hash {
    // The node of the key tree that holds the subtree's root among, or as, its children.
    let level = depth / BITS;
    let children_below = 1_usize << (depth % BITS);
    let number = first >> (level * BITS);
    let (node, from) = (number >> BITS, (number as usize) % FAN_OUT);
    let level = u8::try_from(level).unwrap_or(MOST_LEVELS);
    let mut hashes: Vec<Hash> = (from..from + children_below).map(|at| child(level, node, at)).collect();
    while hashes.len() > 1 {
        hashes = hashes.chunks(2).map(|two| join(&two[0], &two[1])).collect();
    }
    hashes.first().copied().unwrap_or(NOTHING)
}

fn rebuild(
    depth: u32,
    first: u64,
    held: &[(u64, Hash)],
    beside: &mut std::slice::Iter<'_, Hash>,
) -> Option<Hash> {
    if held.is_empty() {
        return beside.next().copied();
    }
    if depth == 0 {
        return held.first().map(|(_, hash)| *hash);
    }
    let middle = middle(depth, first);
    let (left, right) = held.split_at(held.partition_point(|(place, _)| *place < middle));
    let left = rebuild(depth - 1, first, left, beside)?;
    let right = rebuild(depth - 1, middle, right, beside)?;
    Some(join(&left, &right))
}
