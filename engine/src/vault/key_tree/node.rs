//! One node of the key tree: what it holds, its bytes and its seal.
//!
//! A leaf holds the ids and keys of [`FAN_OUT`] places, an inner node the keys and hashes of as many nodes
//! below it. A node that is written is sealed under a fresh key, which its parent holds: the key seals one
//! message, so the nonce is zero (ChaCha20-Poly1305, RFC 8439). The store's salt and the node's name are
//! associated data.
//!
//! ```text
//! sealed node = format (u8) | ciphertext and tag
//! leaf        = which places are taken (u32) | piece: 0, or 1 and its key (32)
//!             | for each that is: id (16) key (32)
//! inner node  = which children there are (u32) | for each: key (32) hash (32)
//! ```

use zeroize::Zeroizing;

use super::merkle::{self, Hash, NOTHING, commitment};
use crate::sealed::{NodeId, RecordId};
use crate::vault::record_key::RecordKey;
use crate::vault::seal::{UnsealError, open_once, seal_once};
use crate::vault::secret::Key;

/// Children of a node, and places of a leaf.
pub(crate) const FAN_OUT: usize = 32;

/// The version at a place.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) id: RecordId,
    pub(crate) key: RecordKey,
}

/// The key of a piece of derived data: of one piece, as it was written once. `Debug` shows nothing of it.
#[derive(Clone, Debug)]
pub(crate) struct PieceKey(Key);

impl PieceKey {
    /// A fresh key.
    pub(crate) fn random() -> Self {
        Self(Key::random())
    }

    /// Seals the one piece that this key is for. `None` if it is too long to be sealed at once.
    pub(crate) fn seal(&self, leaf: u64, plain: &[u8]) -> Option<Vec<u8>> {
        seal_once(&self.0, &Self::associated_data(leaf), plain)
    }

    /// Opens what [`PieceKey::seal`] made for the same leaf.
    pub(crate) fn open(&self, leaf: u64, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        open_once(&self.0, &Self::associated_data(leaf), sealed)
    }

    fn associated_data(leaf: u64) -> Vec<u8> {
        [b"warm piece".as_slice(), &leaf.to_le_bytes()].concat()
    }
}

#[cfg(test)]
impl PieceKey {
    pub(super) fn forensic_key(&self) -> Key {
        self.0.clone()
    }
}

#[cfg(test)]
impl From<Key> for PieceKey {
    fn from(key: Key) -> Self {
        Self(key)
    }
}

/// A node of level 0.
#[derive(Clone, Default)]
pub(super) struct Leaf {
    pub(super) places: [Option<Version>; FAN_OUT],
    /// The key of what was derived from the records of these places.
    pub(super) piece: Option<PieceKey>,
}

/// A node of a level above.
#[derive(Clone, Default)]
pub(super) struct Inner {
    pub(super) children: [Option<Child>; FAN_OUT],
}

/// A node as its parent knows it.
#[derive(Clone)]
pub(super) struct Child {
    pub(super) key: Key,
    pub(super) hash: Hash,
}

impl Leaf {
    pub(super) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    pub(super) fn hashes(&self) -> [Hash; FAN_OUT] {
        std::array::from_fn(|at| {
            self.places[at].as_ref().map_or(NOTHING, |version| commitment(&version.key.salt(), &version.id))
        })
    }

    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(4 + 33 + FAN_OUT * 48));
        bytes.extend_from_slice(&taken(&self.places).to_le_bytes());
        match &self.piece {
            None => bytes.push(0),
            Some(key) => {
                bytes.push(1);
                bytes.extend_from_slice(&key.0.0);
            }
        }
        for version in self.places.iter().flatten() {
            bytes.extend_from_slice(version.id.as_bytes());
            bytes.extend_from_slice(&version.key.bytes().0);
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let taken = u32::from_le_bytes(take(&mut rest)?);
        let piece = match take::<1>(&mut rest)? {
            [0] => None,
            [1] => Some(PieceKey(Key(take(&mut rest)?))),
            _ => return None,
        };
        let mut leaf = Self { piece, ..Self::default() };
        for at in members(taken) {
            let id = RecordId::from_bytes(take(&mut rest)?);
            leaf.places[at] = Some(Version { id, key: RecordKey::from(Key(take(&mut rest)?)) });
        }
        rest.is_empty().then_some(leaf)
    }
}

impl Inner {
    pub(super) fn is_empty(&self) -> bool {
        self.children.iter().all(Option::is_none)
    }

    pub(super) fn hashes(&self) -> [Hash; FAN_OUT] {
        std::array::from_fn(|at| self.children[at].as_ref().map_or(NOTHING, |child| child.hash))
    }

    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(4 + FAN_OUT * 64));
        bytes.extend_from_slice(&taken(&self.children).to_le_bytes());
        for child in self.children.iter().flatten() {
            bytes.extend_from_slice(&child.key.0);
            bytes.extend_from_slice(&child.hash);
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let taken = u32::from_le_bytes(take(&mut rest)?);
        let mut inner = Self::default();
        for at in members(taken) {
            inner.children[at] = Some(Child { key: Key(take(&mut rest)?), hash: take(&mut rest)? });
        }
        rest.is_empty().then_some(inner)
    }
}

fn taken<T>(places: &[Option<T>; FAN_OUT]) -> u32 {
    (0..FAN_OUT).filter(|at| places[*at].is_some()).fold(0, |taken, at| taken | 1 << at)
}

fn members(taken: u32) -> impl Iterator<Item = usize> {
    (0..FAN_OUT).filter(move |at| taken & (1 << at) != 0)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

/// Seals a node under a fresh key, and returns it as its parent will know it.
pub(super) fn seal(
    salt: &[u8; 16],
    node: NodeId,
    plain: &[u8],
    children: &[Hash; FAN_OUT],
) -> Option<(Child, Vec<u8>)> {
    let key = Key::random();
    let sealed = seal_once(&key, &associated_data(salt, node), plain)?;
    Some((Child { key, hash: merkle::over(children) }, sealed))
}

/// Opens what [`seal`] made for the same node.
pub(super) fn unseal(
    salt: &[u8; 16],
    node: NodeId,
    key: &Key,
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
    open_once(key, &associated_data(salt, node), sealed)
}

fn associated_data(salt: &[u8; 16], node: NodeId) -> Vec<u8> {
    [b"warm key node".as_slice(), salt, &node.get().to_le_bytes()].concat()
}
