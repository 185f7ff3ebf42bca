//! The erasable slot: the one place on disk where a key is overwritten and not merely left behind.
//!
//! A small file beside the store. It holds two root keys, by turns: that of the store's current epoch, and the
//! one that the next commit will use, which is durable before that commit begins. Once a commit is durable, the
//! key of the epoch before is overwritten with a fresh one, and only then is the commit acknowledged: what the
//! old key opened can't be opened any more. A crash between leaves both keys, and the store's epoch says which
//! is current; the other is replaced when the store is taken up again.
//!
//! Each place is sealed under a key from the store secret (XChaCha20-Poly1305), has a checksum, and is kept
//! twice in 4 KiB blocks of their own, so that a block that goes bad loses nothing. A place also names the epoch
//! and the tree's hash that were current when it was written: a store file of another moment is told by that.
//!
//! ```text
//! file  = place 0 | place 1 | place 0 again | place 1 again
//! block = "WARMSLOT" | format (u16) | place (u8) | 0 (u8) | salt of the store (16)
//!       | sealed { epoch (u64) key (32) epoch before (u64) hash of its tree (32) } | zeros | SHA-256 of the rest
//! ```
//!
//! What the medium must promise: an overwrite of a block replaces it (no copy of the old one is kept where it
//! can be read), and what was synced stays. Where that does not hold, on file systems that copy on write, the
//! old key may survive beneath: see `docs/deletion.md`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::key_tree::Hash;
use super::seal::{open_with_nonce, seal_with_nonce};
use super::secret::Key;
use crate::sealed::FORMAT_VERSION;

const MAGIC: &[u8; 8] = b"WARMSLOT";
/// The unit that is overwritten.
pub(crate) const BLOCK: usize = 4_096;
const HEAD: usize = 8 + 2 + 1 + 1 + 16;
const CONTENT: usize = 8 + 32 + 8 + 32;
/// The seal's format byte, nonce and tag.
const SEALED: usize = 1 + 24 + CONTENT + 16;
const CHECKED: usize = BLOCK - 32;
/// Length of the file.
pub(crate) const LENGTH: usize = 4 * BLOCK;

/// Where a slot lies: as long as [`LENGTH`].
pub(crate) trait SlotMedium: Send {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
    /// Overwrites in place.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything that was written durable.
    fn sync(&self) -> io::Result<()>;
}

impl SlotMedium for Mutex<File> {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.lock();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.lock();
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.lock().sync_data()
    }
}

/// Where nothing is.
struct Nowhere;

impl SlotMedium for Nowhere {
    fn read(&self, _offset: u64, _bytes: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn write(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The keys that may seal a slot: the store secret's, and while that is being changed, the one before.
pub(crate) struct SlotKeys {
    pub(super) current: Key,
    pub(super) previous: Option<Key>,
}

/// Why a slot does not open its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SlotError {
    #[error("none of its blocks is whole")]
    Damaged,
    #[error("the block that holds the current key is damaged, and so is its copy")]
    KeyLost,
    #[error("it is of format version {0}")]
    OtherFormat(u16),
    #[error("it is sealed under another store secret")]
    Foreign,
    #[error("it belongs to another store file")]
    OtherStore,
    #[error(
        "the store file is of commit {store}, and its keys were erased at commit {slot}: it is an older copy"
    )]
    OlderStore { store: u64, slot: u64 },
    #[error("the key in the slot is not that of the store's last commit: one of the two is an older copy")]
    OtherKey,
    #[error("the store file is of commit {store}, and the keys are of commit {slot}: they are an older copy")]
    OlderSlot { store: u64, slot: u64 },
}

/// What stands in one block.
struct Place {
    epoch: u64,
    key: Key,
    epoch_before: u64,
    hash_before: Hash,
}

/// See the module. `Debug` shows nothing of the keys.
pub(crate) struct Slot {
    medium: Box<dyn SlotMedium>,
    key: Key,
    salt: [u8; 16],
    /// The key of the next commit, and that commit's epoch.
    next: (u64, Key),
}

/// What a slot says of the store beside it.
pub(crate) struct SlotOpened {
    pub(crate) slot: Slot,
    /// The key of the store's current epoch. Several only where one of the copies was put back from another time.
    pub(crate) current: Vec<Key>,
    /// The hash that the tree of that epoch must have, if that was written down before a crash.
    pub(crate) hash: Option<Hash>,
}

impl Slot {
    /// The bytes of the slot of a store that is about to make its first commit, of epoch 1, and the key of that.
    pub(crate) fn first(keys: &SlotKeys, salt: &[u8; 16], hash: &Hash) -> Option<(Vec<u8>, Key)> {
        let place = |epoch| Place { epoch, key: Key::random(), epoch_before: 0, hash_before: *hash };
        let (zero, one) = (place(0), place(1));
        let blocks = [zero.block(&keys.current, salt)?, one.block(&keys.current, salt)?].concat();
        Some(([&blocks[..], &blocks].concat(), one.key))
    }

    /// The slot of no store.
    pub(crate) fn nowhere() -> Self {
        Self { medium: Box::new(Nowhere), key: Key::random(), salt: [0; 16], next: (1, Key::random()) }
    }

    /// Reads the slot of a store of this salt and epoch. Writes nothing; before the first commit,
    /// [`Slot::renew`] must be called.
    pub(crate) fn open(
        medium: Box<dyn SlotMedium>,
        keys: &SlotKeys,
        salt: &[u8; 16],
        epoch: u64,
    ) -> io::Result<Result<SlotOpened, SlotError>> {
        let mut blocks = vec![0; LENGTH];
        for (number, block) in blocks.chunks_mut(BLOCK).enumerate() {
            match medium.read((number * BLOCK) as u64, block) {
                // The others may be whole.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => block.fill(0),
                read => read?,
            }
        }
        let mut places = Vec::new();
        let mut worst = SlotError::Damaged;
        for (number, block) in blocks.chunks(BLOCK).enumerate() {
            match Place::read(block, number % 2, keys, salt) {
                Ok(place) => places.push(place),
                // What is whole and not ours says more than what is damaged.
                Err(SlotError::Damaged) => {}
                Err(error) => worst = error,
            }
        }
        let Some(newest) = places.iter().max_by_key(|place| place.epoch) else { return Ok(Err(worst)) };
        if newest.epoch > epoch + 1 {
            return Ok(Err(SlotError::OlderStore { store: epoch, slot: newest.epoch - 1 }));
        }
        if newest.epoch < epoch {
            return Ok(Err(SlotError::OlderSlot { store: epoch, slot: newest.epoch }));
        }
        let hash = (newest.epoch == epoch + 1 && newest.epoch_before == epoch).then_some(newest.hash_before);
        let current = places.iter().filter(|place| place.epoch == epoch);
        let mut current: Vec<Key> = current.map(|place| place.key.clone()).collect();
        current.dedup_by(|one, other| one.0 == other.0);
        if current.is_empty() {
            return Ok(Err(SlotError::KeyLost));
        }
        let next = (epoch + 1, Key::random());
        let slot = Self { medium, key: keys.current.clone(), salt: *salt, next };
        Ok(Ok(SlotOpened { slot, current, hash }))
    }

    /// Makes the key of the next commit durable, in place of whatever stands where it belongs. After a crash
    /// that is the key of the epoch before, which is gone with this.
    pub(crate) fn renew(&mut self, hash: &Hash) -> io::Result<()> {
        let (epoch, key) = (self.next.0, self.next.1.clone());
        self.put(&Place { epoch, key, epoch_before: epoch - 1, hash_before: *hash })
    }

    /// The key that the next commit is sealed under. It is durable.
    pub(crate) fn next_key(&self) -> &Key {
        &self.next.1
    }

    /// After the commit that used the next key: erases the key of the epoch before it. `hash` is that of the
    /// tree that was committed.
    pub(crate) fn retire(&mut self, hash: &Hash) -> io::Result<()> {
        self.next = (self.next.0 + 1, Key::random());
        self.renew(hash)
    }

    /// Every key that can be read in the bytes of a slot, as whoever has the keys can read it.
    #[cfg(test)]
    pub(super) fn readable(bytes: &[u8], keys: &SlotKeys, salt: &[u8; 16]) -> Vec<Key> {
        let blocks = bytes.chunks(BLOCK).enumerate();
        blocks
            .filter_map(|(at, block)| Place::read(block, at % 2, keys, salt).ok())
            .map(|place| place.key.clone())
            .collect()
    }

    fn put(&self, place: &Place) -> io::Result<()> {
        let block =
            place.block(&self.key, &self.salt).ok_or_else(|| io::Error::other("it can't be sealed"))?;
        let at = (place.epoch % 2) * BLOCK as u64;
        self.medium.write(at, &block)?;
        self.medium.write(at + 2 * BLOCK as u64, &block)?;
        self.medium.sync()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot(next epoch {})", self.next.0)
    }
}

impl Place {
    fn block(&self, key: &Key, salt: &[u8; 16]) -> Option<Vec<u8>> {
        let mut content = zeroize::Zeroizing::new(Vec::with_capacity(CONTENT));
        content.extend_from_slice(&self.epoch.to_le_bytes());
        content.extend_from_slice(&self.key.0);
        content.extend_from_slice(&self.epoch_before.to_le_bytes());
        content.extend_from_slice(&self.hash_before);
        let mut block = Vec::with_capacity(BLOCK);
        block.extend_from_slice(&head((self.epoch % 2) as u8, salt));
        let sealed = seal_with_nonce(key, &block, &content)?;
        block.extend_from_slice(&sealed);
        block.resize(CHECKED, 0);
        let sum = Sha256::digest(&block);
        block.extend_from_slice(&sum);
        Some(block)
    }

    fn read(block: &[u8], number: usize, keys: &SlotKeys, salt: &[u8; 16]) -> Result<Self, SlotError> {
        let (checked, sum) = block.split_at_checked(CHECKED).ok_or(SlotError::Damaged)?;
        if Sha256::digest(checked).as_slice() != sum || !checked.starts_with(MAGIC) {
            return Err(SlotError::Damaged);
        }
        let format = u16::from_le_bytes([checked[8], checked[9]]);
        if format != FORMAT_VERSION {
            return Err(SlotError::OtherFormat(format));
        }
        let head = head(number as u8, salt);
        if checked[12..HEAD] != *salt {
            return Err(SlotError::OtherStore);
        }
        let sealed = &checked[HEAD..HEAD + SEALED];
        let content = std::iter::once(&keys.current)
            .chain(&keys.previous)
            .find_map(|key| open_with_nonce(key, &head, sealed).ok())
            .ok_or(SlotError::Foreign)?;
        let word = |at: usize| {
            content.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
        };
        let hash = |at: usize| content.get(at..at + 32).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let place = || {
            Some(Self {
                epoch: word(0)?,
                key: Key(hash(8)?),
                epoch_before: word(40)?,
                hash_before: hash(48)?,
            })
        };
        place().filter(|place| place.epoch % 2 == number as u64).ok_or(SlotError::Damaged)
    }
}

fn head(place: u8, salt: &[u8; 16]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    head[10] = place;
    head[12..].copy_from_slice(salt);
    head
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SALT: [u8; 16] = [9; 16];

    /// A slot in memory. Clones are of the same one.
    #[derive(Clone)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl SlotMedium for Memory {
        fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
            let held = self.0.lock();
            bytes.copy_from_slice(
                held.get(offset as usize..)
                    .and_then(|rest| rest.get(..bytes.len()))
                    .ok_or(io::ErrorKind::UnexpectedEof)?,
            );
            Ok(())
        }
        fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.0.lock()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn keys() -> SlotKeys {
        SlotKeys { current: Key([1; 32]), previous: None }
    }

    /// A slot after the commit of this epoch, with the hash of its tree, and the key of that epoch.
    fn after(epoch: u64) -> (Memory, Key) {
        let (bytes, mut key) = Slot::first(&keys(), &SALT, &[0; 32]).unwrap();
        let memory = Memory(Arc::new(Mutex::new(bytes)));
        for done in 1..=epoch {
            let mut slot = if done == 1 {
                opened(&memory, 1).unwrap().slot
            } else {
                opened(&memory, done - 1).unwrap().slot
            };
            if done > 1 {
                slot.renew(&[(done - 1) as u8; 32]).unwrap();
                key = slot.next_key().clone();
                slot.retire(&[done as u8; 32]).unwrap();
            } else {
                slot.renew(&[1; 32]).unwrap();
            }
        }
        (memory, key)
    }

    fn opened(memory: &Memory, epoch: u64) -> Result<SlotOpened, SlotError> {
        Slot::open(Box::new(memory.clone()), &keys(), &SALT, epoch).unwrap()
    }

    fn refused(memory: &Memory, epoch: u64) -> SlotError {
        opened(memory, epoch).err().expect("it is refused")
    }

    #[test]
    fn the_key_of_the_stores_epoch_opens_it_and_the_one_before_is_nowhere() {
        let (memory, key) = after(5);
        let found = opened(&memory, 5).unwrap();
        assert!(found.current == [key.clone()] && found.hash == Some([5; 32]));
        let mut slot = found.slot;
        slot.renew(&[5; 32]).unwrap();
        let next = slot.next_key().clone();
        slot.retire(&[6; 32]).unwrap();
        let readable = Slot::readable(&memory.0.lock(), &keys(), &SALT);
        assert!(readable.contains(&next) && !readable.contains(&key));
        assert_eq!(readable.len(), 4);
    }

    #[test]
    fn a_crash_between_commit_and_erasure_leaves_both_keys_and_taking_the_store_up_again_erases_the_old_one()
    {
        let (memory, old) = after(4);
        let mut slot = opened(&memory, 4).unwrap().slot;
        slot.renew(&[4; 32]).unwrap();
        let new = slot.next_key().clone();
        // The store is of epoch 5 now, and the process dies here.
        let found = opened(&memory, 5).unwrap();
        assert!(found.current == [new.clone()] && found.hash.is_none());
        assert!(Slot::readable(&memory.0.lock(), &keys(), &SALT).contains(&old));
        let mut slot = found.slot;
        slot.renew(&[5; 32]).unwrap();
        assert!(!Slot::readable(&memory.0.lock(), &keys(), &SALT).contains(&old));
        assert_eq!(opened(&memory, 5).unwrap().hash, Some([5; 32]));
    }

    #[test]
    fn a_place_that_was_torn_while_it_was_overwritten_costs_nothing() {
        let (whole, key) = after(4);
        let bytes = whole.0.lock().clone();
        // The key of epoch 5 lies in the odd place.
        for torn in [[1, 3].as_slice(), &[1], &[3]] {
            let mut bytes = bytes.clone();
            torn.iter().for_each(|block| bytes[block * BLOCK + 100..][..1_000].fill(7));
            let memory = Memory(Arc::new(Mutex::new(bytes)));
            assert!(opened(&memory, 4).unwrap().current == [key.clone()], "{torn:?}");
        }
    }

    #[test]
    fn a_block_that_goes_bad_is_read_from_its_copy_and_both_are_named() {
        let (whole, key) = after(4);
        let bytes = whole.0.lock().clone();
        for bad in [[0].as_slice(), &[2], &[0, 2]] {
            let mut bytes = bytes.clone();
            bad.iter().for_each(|block| bytes[block * BLOCK + 40] ^= 1);
            let memory = Memory(Arc::new(Mutex::new(bytes)));
            match bad.len() {
                1 => assert!(opened(&memory, 4).unwrap().current == [key.clone()]),
                _ => assert_eq!(refused(&memory, 4), SlotError::KeyLost),
            }
        }
        let short = Memory(Arc::new(Mutex::new(bytes[..LENGTH - 1].to_vec())));
        assert!(opened(&short, 4).unwrap().current == [key.clone()], "what is left of it is enough");
        for bytes in [vec![], vec![0; 100], vec![0; LENGTH]] {
            assert_eq!(refused(&Memory(Arc::new(Mutex::new(bytes))), 4), SlotError::Damaged);
        }
    }

    #[test]
    fn a_store_or_a_slot_of_another_moment_another_store_or_another_secret_is_named() {
        let (memory, _) = after(4);
        assert_eq!(refused(&memory, 3), SlotError::OlderStore { store: 3, slot: 4 });
        assert_eq!(refused(&memory, 1), SlotError::OlderStore { store: 1, slot: 4 });
        assert_eq!(refused(&memory, 6), SlotError::OlderSlot { store: 6, slot: 5 });
        let open = |keys: &SlotKeys, salt| Slot::open(Box::new(memory.clone()), keys, salt, 4).unwrap().err();
        assert_eq!(open(&keys(), &[8; 16]), Some(SlotError::OtherStore));
        assert_eq!(
            open(&SlotKeys { current: Key([2; 32]), previous: None }, &SALT),
            Some(SlotError::Foreign)
        );
        let changing = SlotKeys { current: Key([2; 32]), previous: Some(Key([1; 32])) };
        assert_eq!(open(&changing, &SALT), None, "while the store secret is being changed");
    }
}
