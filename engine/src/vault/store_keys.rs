//! The keys of one open store: its slot, its head and its key tree, as they move on with every commit.
//!
//! The head is what the root key in the [`slot`](super::slot) seals: the namespace's name, the secret from
//! which the store's other keys come, the root of the key tree, and where the log stands. It is written anew
//! with every commit. Whoever leads commits holds this; readers need nothing of it.
//!
//! ```text
//! sealed head = format (u8) | nonce (24) | ciphertext and tag; salt and epoch are associated data
//! ```

use std::io;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::key_tree::{Changed, Changes, Root, Version, Walked};
use super::operation_key::OperationKey;
use super::seal::{UnsealError, open_with_nonce, seal_with_nonce};
use super::secret::Key;
use super::slot::{Slot, SlotError, SlotKeys, SlotMedium, SlotOpened};
use crate::sealed::FORMAT_VERSION;
use crate::store::{Batch, Snapshot, StoreError};

/// What is sealed under the root key.
#[derive(Clone, Serialize, Deserialize)]
struct Head {
    namespace: String,
    secret: Key,
    root: Root,
}

/// See the module. `Debug` shows nothing of the keys.
pub(crate) struct StoreKeys {
    slot: Slot,
    salt: [u8; 16],
    head: Head,
}

/// Why the keys of a store can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreKeysError {
    #[error(transparent)]
    Slot(#[from] SlotError),
    #[error("the slot can't be read: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The keys as they are after a commit.
pub(crate) struct Sealed {
    next: Head,
}

impl StoreKeys {
    /// The bytes of the slot of a store that is being made, and of its head as of its first commit, of epoch 1.
    pub(crate) fn create(keys: &SlotKeys, salt: &[u8; 16], namespace: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let head = Head { namespace: namespace.to_owned(), secret: Key::random(), root: Root::empty() };
        let (slot, first) = Slot::first(keys, salt, head.root.hash())?;
        Some((slot, head.seal(&first, salt, 1)?))
    }

    /// Opens the keys of the store in `snapshot`. Nothing is written.
    pub(crate) fn open(
        medium: Box<dyn SlotMedium>,
        keys: &SlotKeys,
        salt: &[u8; 16],
        snapshot: &dyn Snapshot,
    ) -> Result<Self, StoreKeysError> {
        let epoch = snapshot.epoch();
        let damaged = |what: &str| StoreError::Damaged(what.into());
        let SlotOpened { slot, current, hash } = Slot::open(medium, keys, salt, epoch)??;
        let sealed = snapshot.head()?.ok_or_else(|| damaged("its head is gone"))?;
        let opened = open_with_nonce(&current, &associated_data(salt, epoch), &sealed);
        let plain = opened.map_err(|error| match error {
            UnsealError::OtherFormat => damaged("its head is of another format version"),
            _ => damaged("its head does not open with the key in the slot: one of the two was replaced"),
        })?;
        let head: Head = postcard::from_bytes(&plain).map_err(|_| damaged("its head is malformed"))?;
        if hash.is_some_and(|hash| hash != *head.root.hash()) {
            return Err(damaged("its key tree is not the one that its slot names").into());
        }
        Ok(Self { slot, salt: *salt, head })
    }

    /// Takes the store to write to it: erases what a crash may have left in the slot.
    pub(crate) fn accept(&mut self) -> io::Result<()> {
        self.slot.renew(self.head.root.hash())
    }

    /// The name of the store's namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.head.namespace
    }

    /// The root of the key tree as it is.
    pub(crate) fn root(&self) -> &Root {
        &self.head.root
    }

    /// Every version in the store of `snapshot`, of the same commit.
    pub(crate) fn walk(&self, snapshot: &dyn Snapshot) -> Result<Walked, StoreError> {
        self.head.root.walk(snapshot, &self.salt)
    }

    /// What seals the notes on operations.
    pub(crate) fn operation_key(&self) -> OperationKey {
        OperationKey::new(self.head.secret.derive(b"warm operations\0"))
    }

    /// Seals the keys of versions that leave the store without being forgotten.
    pub(crate) fn seal_aside<'a>(&self, versions: impl Iterator<Item = &'a Version>) -> Option<Vec<u8>> {
        let mut plain = Zeroizing::new(Vec::new());
        for version in versions {
            plain.extend_from_slice(version.id.as_bytes());
            plain.extend_from_slice(&version.key.bytes().0);
        }
        seal_with_nonce(&self.head.secret.derive(b"warm quarantine\0"), b"warm quarantine", &plain)
    }

    /// Works out what a commit of this epoch does to the keys, and adds it to its batch. `snapshot` is of the
    /// commit before.
    pub(crate) fn seal(
        &self,
        snapshot: &dyn Snapshot,
        epoch: u64,
        changes: &Changes,
        batch: &mut Batch,
    ) -> Result<Sealed, StoreError> {
        let Changed { root, nodes, lost_pieces, .. } = self.head.root.change(snapshot, &self.salt, changes)?;
        let next = Head { root, ..self.head.clone() };
        batch.head = next.seal(self.slot.next_key(), &self.salt, epoch).ok_or(UNSEALABLE)?;
        batch.nodes = nodes;
        batch.pieces.extend(lost_pieces.into_iter().map(|leaf| (leaf, None)));
        Ok(Sealed { next })
    }

    /// After the commit: erases the root key of the one before it, and returns once that is durable.
    pub(crate) fn committed(&mut self, sealed: Sealed) -> io::Result<()> {
        self.head = sealed.next;
        self.slot.retire(self.head.root.hash())
    }
}

impl std::fmt::Debug for StoreKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreKeys").finish_non_exhaustive()
    }
}

const UNSEALABLE: StoreError = StoreError::Fault("the head of the store could not be sealed");

impl Head {
    fn seal(&self, key: &Key, salt: &[u8; 16], epoch: u64) -> Option<Vec<u8>> {
        let plain = Zeroizing::new(postcard::to_allocvec(self).ok()?);
        seal_with_nonce(key, &associated_data(salt, epoch), &plain)
    }
}

fn associated_data(salt: &[u8; 16], epoch: u64) -> Vec<u8> {
    [b"warm head".as_slice(), &FORMAT_VERSION.to_le_bytes(), salt, &epoch.to_le_bytes()].concat()
}
