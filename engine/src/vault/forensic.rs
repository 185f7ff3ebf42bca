//! For tests: what comes to light for someone who tries every key that they can reach on every sealed blob that
//! they have.

use std::collections::HashSet;

use super::Vault;
use super::key_tree::forensic_open;
use super::log::LogKeys;
use super::operation_key::OperationKey;
use super::seal::open_with_nonce;
use super::secret::Key;
use super::slot::Slot;
use super::store_keys::forensic_head;
use crate::sealed::{Chain, NodeId, RecordId};

/// A sealed blob, and what it is bound to that can be seen.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Blob {
    /// By the epoch of its commit.
    Head(u64, Vec<u8>),
    Node(NodeId, Vec<u8>),
    Record(RecordId, Vec<u8>),
    Piece(u64, Vec<u8>),
    Note(u64, Vec<u8>),
    Log(Chain, u64, Vec<u8>),
}

impl Blob {
    /// Tries a key; returns the keys that are inside, and what else is.
    fn open(&self, salt: &[u8; 16], key: &Key) -> Option<(Vec<Key>, Vec<u8>)> {
        use super::key_tree::PieceKey;
        use super::record_key::RecordKey;
        let plain = |plain: zeroize::Zeroizing<Vec<u8>>| (Vec::new(), plain.to_vec());
        match self {
            Self::Head(epoch, sealed) => forensic_head(salt, *epoch, key, sealed),
            Self::Node(id, sealed) => {
                let (keys, _) = forensic_open(salt, *id, key, sealed);
                (!keys.is_empty()).then_some((keys, Vec::new()))
            }
            Self::Record(id, sealed) => RecordKey::from(key.clone()).unseal(id, sealed).ok().map(plain),
            Self::Piece(leaf, sealed) => PieceKey::from(key.clone()).open(*leaf, sealed).ok().map(plain),
            Self::Note(epoch, sealed) => {
                OperationKey::new(key.clone()).unseal(*epoch, sealed).ok().map(plain)
            }
            Self::Log(chain, number, sealed) => {
                let data = LogKeys::forensic_data(*chain, *number);
                open_with_nonce(key, &data, sealed).ok().map(plain)
            }
        }
    }
}

/// Everything that opens, for someone who has the vault's keys, these slots of the store in `dir`, and these blobs.
pub(crate) fn everything_that_opens(
    vault: &Vault,
    dir: &std::path::Path,
    salt: &[u8; 16],
    slots: &[Vec<u8>],
    blobs: &HashSet<Blob>,
) -> Vec<(Blob, Vec<u8>)> {
    let slot_keys = vault.slot_keys(dir);
    let mut fresh: Vec<Key> = slots.iter().flat_map(|slot| Slot::readable(slot, &slot_keys, salt)).collect();
    let (mut tried, mut opened) = (HashSet::new(), Vec::new());
    let mut closed: HashSet<&Blob> = blobs.iter().collect();
    while let Some(key) = fresh.pop() {
        if !tried.insert(key.0) {
            continue;
        }
        let found: Vec<_> = closed.iter().filter_map(|blob| Some((*blob, blob.open(salt, &key)?))).collect();
        for (blob, (keys, plain)) in found {
            closed.remove(blob);
            fresh.extend(keys);
            opened.push((blob.clone(), plain));
        }
    }
    opened
}
