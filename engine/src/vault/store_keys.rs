//! The keys of one open store: its slot, its head and its key tree, as they move on with every commit.
//!
//! The head is what the root key in the [`slot`](super::slot) seals: the namespace's name, the secret from
//! which the store's other keys come, the root of the key tree, and where the log stands. It is written anew
//! with every commit. Whoever leads commits holds this; readers need nothing of it.
//!
//! ```text
//! sealed head = format (u8) | nonce (24) | ciphertext and tag; salt and epoch are associated data
//! ```

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::key_tree::{Changed, Changes, Hash, Root, Version, Walked};
use super::log::{ChainEnd, Copied, Erasure, LogKeys, LoggedErasure};
use super::operation_key::OperationKey;
use super::seal::{encode, open_with_nonce, seal_with_nonce};
use super::secret::Key;
use super::slot::{Slot, SlotError, SlotKeys, SlotMedium, SlotOpened};
use crate::sealed::{Chain, FORMAT_VERSION};
use crate::store::{Batch, Snapshot, StoreError};

/// What is sealed under the root key.
#[derive(Clone, Serialize, Deserialize)]
struct Head {
    namespace: String,
    secret: Key,
    root: Root,
    erasures: ChainEnd,
    copies: ChainEnd,
}

/// What a commit adds to the logs.
#[derive(Default)]
pub(crate) struct ToLog {
    /// Milliseconds since 1970, UTC.
    pub(crate) at: u64,
    pub(crate) erasures: Vec<ToErase>,
    pub(crate) copies: Vec<Copied>,
}

/// Memories that a commit forgets, and for which there is to be a receipt.
pub(crate) struct ToErase {
    /// How many.
    pub(crate) count: u64,
    /// Their versions in the store, by place.
    pub(crate) versions: BTreeMap<u64, Version>,
    pub(crate) origins: Vec<u64>,
    /// Copies that may hold them.
    pub(crate) copies: Vec<Copied>,
}

/// See the module. `Debug` shows nothing of the keys.
pub(crate) struct StoreKeys {
    slot: Slot,
    salt: [u8; 16],
    head: Head,
    log: LogKeys,
    /// Whether the last commit did not get as far as to erase the key of the one before.
    interrupted: bool,
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

/// The keys as they are after a commit, and what it logs of its erasures, in their order, with the receipts' ids.
pub(crate) struct Sealed {
    next: Head,
    pub(crate) erased: Vec<(Hash, LoggedErasure)>,
}

impl StoreKeys {
    /// The bytes of the slot of a store that is being made, and of its head as of its first commit, of epoch 1.
    pub(crate) fn create(keys: &SlotKeys, salt: &[u8; 16], namespace: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let head = Head::first(namespace);
        let (slot, first) = Slot::first(keys, salt, head.root.hash())?;
        Some((slot, head.seal(&first, salt, 1)?))
    }

    /// The keys of a namespace that has no store. Nothing is ever sealed with them.
    pub(crate) fn vacant(namespace: &str) -> Self {
        let head = Head::first(namespace);
        Self {
            slot: Slot::nowhere(),
            salt: [0; 16],
            log: LogKeys::of(&head.secret),
            head,
            interrupted: false,
        }
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
        let data = associated_data(salt, epoch);
        let plain = current.iter().find_map(|key| open_with_nonce(key, &data, &sealed).ok());
        let plain = plain.ok_or(SlotError::OtherKey)?;
        let head: Head = postcard::from_bytes(&plain).map_err(|_| damaged("its head is malformed"))?;
        if hash.is_some_and(|hash| hash != *head.root.hash()) {
            return Err(damaged("its key tree is not the one that its slot names").into());
        }
        let log = LogKeys::of(&head.secret);
        Ok(Self { slot, salt: *salt, head, log, interrupted: hash.is_none() })
    }

    /// Takes the store to write to it: erases what a crash may have left in the slot.
    pub(crate) fn accept(&mut self) -> io::Result<()> {
        self.interrupted = false;
        self.slot.renew(self.head.root.hash())
    }

    /// Whether the key of the commit before the last one is still there. It must not be erased until the last commit
    /// is known to be on the medium, and not only in the cache of a system whose sync failed.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The name of the store's namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.head.namespace
    }

    /// Every version in the store of `snapshot`, of the same commit.
    pub(crate) fn walk(&self, snapshot: &dyn Snapshot) -> Result<Walked, StoreError> {
        self.head.root.walk(snapshot, &self.salt)
    }

    /// What seals and signs the logs.
    pub(crate) fn log_keys(&self) -> &LogKeys {
        &self.log
    }

    /// Where the log of erasures stands.
    pub(crate) fn erasures_end(&self) -> &ChainEnd {
        &self.head.erasures
    }

    /// Reads the log of copies and checks that it is whole.
    pub(crate) fn copies(&self, snapshot: &dyn Snapshot) -> Result<Vec<Copied>, StoreError> {
        let damaged = || StoreError::Damaged("its log of copies is not whole".into());
        let (mut copies, mut end) = (Vec::new(), ChainEnd::default());
        for (number, sealed) in snapshot.log(Chain::Copies, 0, usize::MAX)? {
            let copied: Copied = self.log.open(Chain::Copies, number, &sealed).map_err(|_| damaged())?;
            end = end.with(&copied.digest());
            copies.push(copied);
        }
        if end == self.head.copies { Ok(copies) } else { Err(damaged()) }
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
        log: ToLog,
        batch: &mut Batch,
    ) -> Result<Sealed, StoreError> {
        let changed = self.head.root.change(snapshot, &self.salt, changes)?;
        let mut next = Head { root: changed.root.clone(), ..self.head.clone() };
        let erased = self.log(&mut next, &changed, log, batch)?;
        batch.head = next.seal(self.slot.next_key(), &self.salt, epoch).ok_or(UNSEALABLE)?;
        batch.nodes = changed.nodes;
        let taken = changed.new_pieces.iter().filter_map(|leaf| Some((*leaf, changes.pieces.get(leaf)?)));
        batch.pieces.extend(taken.map(|(leaf, piece)| (leaf, Some(piece.sealed.clone()))));
        batch.pieces.extend(changed.lost_pieces.into_iter().map(|leaf| (leaf, None)));
        Ok(Sealed { next, erased })
    }

    /// Adds to the logs what a commit adds to them; returns the erasures.
    fn log(
        &self,
        next: &mut Head,
        changed: &Changed,
        log: ToLog,
        batch: &mut Batch,
    ) -> Result<Vec<(Hash, LoggedErasure)>, StoreError> {
        for copied in log.copies {
            let number = next.copies.length;
            let sealed = self.log.seal(Chain::Copies, number, &copied).ok_or(UNSEALABLE)?;
            batch.log.push((Chain::Copies, number, sealed));
            next.copies = next.copies.with(&copied.digest());
        }
        let mut erased = Vec::new();
        for ToErase { count, versions, origins, copies } in log.erasures {
            let before = &self.head.root;
            let erasure = Erasure {
                at: log.at,
                count,
                index: next.erasures.length,
                log_before: next.erasures.hash,
                tree_before: *before.hash(),
                tree_after: *changed.root.hash(),
                proof: changed.prove(before, &versions),
                copies,
            };
            let (id, signature) = self.log.sign(&erasure);
            let number = erasure.index;
            next.erasures = next.erasures.with(&id);
            let logged = LoggedErasure { erasure, signature, origins };
            let sealed = self.log.seal(Chain::Erasures, number, &logged).ok_or(UNSEALABLE)?;
            batch.log.push((Chain::Erasures, number, sealed));
            erased.push((id, logged));
        }
        Ok(erased)
    }

    /// After the commit: erases the root key of the one before it, and returns once that is durable.
    pub(crate) fn committed(&mut self, sealed: &Sealed) -> io::Result<()> {
        self.head = sealed.next.clone();
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
    fn first(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            secret: Key::random(),
            root: Root::empty(),
            erasures: ChainEnd::default(),
            copies: ChainEnd::default(),
        }
    }

    fn seal(&self, key: &Key, salt: &[u8; 16], epoch: u64) -> Option<Vec<u8>> {
        let plain = encode(self)?;
        seal_with_nonce(key, &associated_data(salt, epoch), &plain)
    }
}

fn associated_data(salt: &[u8; 16], epoch: u64) -> Vec<u8> {
    [b"warm head".as_slice(), &FORMAT_VERSION.to_le_bytes(), salt, &epoch.to_le_bytes()].concat()
}

/// The keys in a head and the rest of it, for whoever holds this key.
#[cfg(test)]
pub(super) fn forensic_head(
    salt: &[u8; 16],
    epoch: u64,
    key: &Key,
    sealed: &[u8],
) -> Option<(Vec<Key>, Vec<u8>)> {
    let plain = open_with_nonce(key, &associated_data(salt, epoch), sealed).ok()?;
    let head: Head = postcard::from_bytes(&plain).ok()?;
    let purposes = [b"warm operations\0".as_slice(), b"warm log\0", b"warm quarantine\0", b"warm signing\0"];
    let mut keys: Vec<Key> = purposes.iter().map(|purpose| head.secret.derive(purpose)).collect();
    keys.extend(head.root.forensic_key());
    Some((keys, plain.to_vec()))
}

#[cfg(test)]
#[path = "store_keys_tests.rs"]
mod tests;
