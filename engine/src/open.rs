//! Opening the store of one namespace: its file, and the names in it.
//!
//! Makes an empty store where there is none. A file is only looked at until its keys, its format and
//! every name in it are known to be good: one that is refused is left as it was. What is then done with
//! the store is the [`engine`](crate::engine)'s business.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::files::{free_name, give_name, make_durable, open_private};
use crate::ledger;
use crate::load::{Damaged, load_names};
use crate::lock::{Remembers, StoreLock};
use crate::open_error::OpenError;
use crate::operations::Operations;
use crate::sealed::FORMAT_VERSION;
use crate::seat::{slot_path, store_path, unfinished_path};
use crate::state::Names;
use crate::store::{Batch, RedbStore, Store, StoreError};
use crate::vault::{
    Changes, Copied, PieceKey, SlotError, SlotMedium, StoreKeys, StoreKeysError, ToLog, Vault,
};

/// A process that is killed lets go of the lock beside the store an instant before it lets go of the
/// store itself.
const HAND_OVER: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// An open store and what is kept in memory of it.
pub(crate) struct Opened {
    /// Whether this call made the store.
    pub(crate) created: bool,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: StoreKeys,
    pub(crate) names: Names,
    pub(crate) epoch: u64,
    pub(crate) operations: Operations,
    /// Copies that were made of what is in the store, the earliest first.
    pub(crate) copies: Vec<Copied>,
    /// The keys of derived data that was kept, by the leaf that it was derived from.
    pub(crate) pieces: HashMap<u64, PieceKey>,
    /// Records that do not open.
    pub(crate) damaged: Vec<Damaged>,
    /// Held for as long as the store is open.
    pub(crate) lock: Option<StoreLock>,
}

impl Opened {
    /// Commits something while nobody else has the store.
    pub(crate) fn commit(
        &mut self,
        mut batch: Batch,
        changes: &Changes,
        log: ToLog,
    ) -> Result<(), StoreError> {
        let epoch = self.store.next_epoch();
        let sealed = self.keys.seal(&*self.store.snapshot()?, epoch, changes, log, &mut batch)?;
        self.store.commit(&batch)?;
        self.keys.committed(&sealed).map_err(|error| StoreError::Unsettled(error.to_string().into()))
    }
}

/// What to do where there is no store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Make an empty one.
    Create,
    /// Make and change nothing. What is opened takes no writes.
    Look,
}

/// Opens the store in `dir`, whose lock the caller holds; when looking, there may be none to hold.
pub(crate) fn open_store(
    vault: &Vault,
    namespace: &str,
    dir: &Path,
    mut lock: Option<StoreLock>,
    mode: Mode,
) -> Result<Opened, OpenError> {
    let opened = open_under(vault, namespace, dir, lock.as_mut(), mode)?;
    Ok(Opened { lock, ..opened })
}

/// As [`open_store`], under a lock that stays with the caller.
pub(crate) fn open_under(
    vault: &Vault,
    namespace: &str,
    dir: &Path,
    lock: Option<&mut StoreLock>,
    mode: Mode,
) -> Result<Opened, OpenError> {
    // redb checks every page when it opens a file; what slips through makes it panic.
    let opened = catch_unwind(AssertUnwindSafe(|| open_in(vault, namespace, dir, lock, mode)));
    opened.unwrap_or_else(|_| {
        let reason = "its pages contradict each other".into();
        Err(OpenError::StoreDamaged { path: store_path(dir), reason })
    })
}

fn open_in(
    vault: &Vault,
    namespace: &str,
    dir: &Path,
    mut lock: Option<&mut StoreLock>,
    mode: Mode,
) -> Result<Opened, OpenError> {
    let remembers = lock.as_mut().map_or(Ok(Remembers::Nothing), |lock| lock.remembers());
    let made = remembers.map_err(OpenError::io("read the lock in", dir))? == Remembers::StoreMade
        || ledger::knows(vault, dir)?;
    let (path, unfinished) = (store_path(dir), unfinished_path(dir));
    let exists = |path: &Path| path.try_exists().map_err(OpenError::io("look for", path));
    let there = exists(&path)?;
    let created = !there && !made;
    // A store that was made and has no name yet lacks nothing else.
    let file = if there { &path } else { &unfinished };
    if made && !exists(file)? {
        return Err(OpenError::StoreMissing(path));
    }
    // The store is ours now, and whoever had it may have changed the keys since they were read.
    let mut vault = vault.renewed()?;
    let mut keys_lock = None;
    if created && mode == Mode::Create {
        // A change of the keys would miss a store that is made meanwhile.
        keys_lock = Some(vault.lock_keys()?);
        vault = vault.renewed()?;
    }
    let vault = &vault;
    if created {
        match (mode, &mut lock) {
            (Mode::Create, Some(lock)) => create_store(vault, namespace, &unfinished, lock)?,
            _ => return Err(OpenError::NoStore(dir.to_owned())),
        }
        drop(keys_lock);
    }
    let mut store = look_at(file)?;
    let mut loaded = load(vault, namespace, file, &store, open_slot(&slot_path(dir), file)?)?;
    if mode == Mode::Look {
        return if there { Ok(loaded.with(store, created)) } else { Err(OpenError::Unfinished(path)) };
    }
    take(&mut store, &mut loaded.keys, file)?;
    if let Some(lock) = &mut lock {
        lock.remember_store().map_err(OpenError::io("write the lock in", dir))?;
    }
    if !there {
        give_name(&unfinished, &path)?;
    }
    Ok(loaded.with(store, created))
}

/// Seals the slot of the store in `dir`, whose lock the caller holds, under the vault's present store secret
/// alone: both its places are written anew, the one that holds the next key and, after a commit that changes
/// nothing, the other.
pub(crate) fn reseal(vault: &Vault, dir: &Path) -> Result<(), OpenError> {
    let resealed = catch_unwind(AssertUnwindSafe(|| {
        let path = store_path(dir);
        let there = path.try_exists().map_err(OpenError::io("look for", &path))?;
        let file = if there { path } else { unfinished_path(dir) };
        let failed = failed_at(&file);
        let mut store = look_at(&file)?;
        let snapshot = store.snapshot().map_err(&failed)?;
        let slot = open_slot(&slot_path(dir), &file)?;
        let keys = StoreKeys::open(slot, &vault.slot_keys(dir), store.salt(), &*snapshot);
        let mut keys = keys.map_err(|error| no_keys(error, dir, &file))?;
        take(&mut store, &mut keys, &file)?;
        let slot = slot_path(dir);
        let mut batch = Batch::default();
        let sealed =
            keys.seal(&*snapshot, store.next_epoch(), &Changes::default(), ToLog::default(), &mut batch);
        let sealed = sealed.map_err(&failed)?;
        drop(snapshot);
        store.commit(&batch).map_err(&failed)?;
        keys.committed(&sealed).map_err(OpenError::io("write", &slot))?;
        ledger::write_anew(vault, keys.namespace())
    }));
    resealed.unwrap_or_else(|_| {
        let reason = "its pages contradict each other".into();
        Err(OpenError::StoreDamaged { path: store_path(dir), reason })
    })
}

/// Opens the store on a disk other than its file, and takes it.
#[cfg(any(test, feature = "bench"))]
pub(crate) fn open_on(
    vault: &Vault,
    namespace: &str,
    path: &Path,
    disk: Box<dyn redb::StorageBackend>,
    slot: Box<dyn SlotMedium>,
) -> Result<Opened, OpenError> {
    let mut store = RedbStore::open_on(disk).map_err(failed_at(path))?;
    let mut loaded = load(vault, namespace, path, &store, slot)?;
    take(&mut store, &mut loaded.keys, path)?;
    Ok(loaded.with(store, false))
}

/// Takes the store in a file that was looked at, to write to it, and then its slot: what a crash left there is erased
/// only once the store's last commit is known to be on the medium.
fn take(store: &mut RedbStore, keys: &mut StoreKeys, path: &Path) -> Result<(), OpenError> {
    store.accept().map_err(failed_at(path))?;
    if keys.was_interrupted() {
        store.settle().map_err(failed_at(path))?;
    }
    keys.accept().map_err(OpenError::io("write", &slot_path(path.parent().unwrap_or(path))))
}

fn failed_at(path: &Path) -> impl Fn(StoreError) -> OpenError {
    let path = path.to_owned();
    move |source| match source {
        StoreError::Damaged(reason) => {
            OpenError::StoreDamaged { path: path.clone(), reason: reason.to_string() }
        }
        StoreError::OtherFormat(found) => {
            OpenError::OtherFormat { path: path.clone(), found: found.to_string(), supported: FORMAT_VERSION }
        }
        StoreError::InUse => OpenError::InUse(path.clone()),
        source => OpenError::Store { path: path.clone(), source },
    }
}

fn look_at(path: &Path) -> Result<RedbStore, OpenError> {
    let started = Instant::now();
    loop {
        let file = File::options().read(true).write(true).open(path).map_err(OpenError::io("open", path))?;
        match RedbStore::open(file) {
            Err(StoreError::InUse) if started.elapsed() < HAND_OVER => thread::sleep(PAUSE),
            opened => return opened.map_err(failed_at(path)),
        }
    }
}

/// The slot beside a store.
pub(crate) fn open_slot(path: &Path, store: &Path) -> Result<Box<dyn SlotMedium>, OpenError> {
    match File::options().read(true).write(true).open(path) {
        Ok(file) => Ok(Box::new(Mutex::new(file))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(OpenError::SlotMissing { slot: path.to_owned(), store: store.to_owned() })
        }
        Err(error) => Err(OpenError::io("open", path)(error)),
    }
}

/// What is read from a store to open it.
struct Loaded {
    keys: StoreKeys,
    names: Names,
    epoch: u64,
    operations: Operations,
    copies: Vec<Copied>,
    pieces: HashMap<u64, PieceKey>,
    damaged: Vec<Damaged>,
}

impl Loaded {
    fn with(self, store: RedbStore, created: bool) -> Opened {
        let Self { keys, names, epoch, operations, copies, pieces, damaged } = self;
        Opened {
            created,
            store: Arc::new(store),
            keys,
            names,
            epoch,
            operations,
            copies,
            pieces,
            damaged,
            lock: None,
        }
    }
}

/// Checks that the keys are the store's and reads its names.
fn load(
    vault: &Vault,
    namespace: &str,
    path: &Path,
    store: &RedbStore,
    slot: Box<dyn SlotMedium>,
) -> Result<Loaded, OpenError> {
    let failed = failed_at(path);
    let snapshot = store.snapshot().map_err(&failed)?;
    let dir = path.parent().unwrap_or(path);
    let keys = StoreKeys::open(slot, &vault.slot_keys(dir), store.salt(), &*snapshot);
    let keys = keys.map_err(|error| no_keys(error, dir, path))?;
    if keys.namespace() != namespace {
        return Err(OpenError::ForeignStore(path.to_owned()));
    }
    let walked = keys.walk(&*snapshot).map_err(&failed)?;
    let (names, damaged) = load_names(&*snapshot, walked.versions).map_err(&failed)?;
    let operations = Operations::load(keys.operation_key(), store.notes().map_err(&failed)?);
    let copies = keys.copies(&*snapshot).map_err(&failed)?;
    let pieces = walked.pieces.into_iter().collect();
    Ok(Loaded { keys, names, epoch: snapshot.epoch(), operations, copies, pieces, damaged })
}

fn no_keys(error: StoreKeysError, dir: &Path, store: &Path) -> OpenError {
    let (slot, store) = (slot_path(dir), store.to_owned());
    match error {
        StoreKeysError::Store(error) => failed_at(&store)(error),
        StoreKeysError::Io(error) => OpenError::io("read", &slot)(error),
        StoreKeysError::Slot(SlotError::Foreign | SlotError::OtherStore) => OpenError::ForeignStore(store),
        StoreKeysError::Slot(SlotError::OtherFormat(found)) => {
            OpenError::OtherFormat { path: slot, found: found.to_string(), supported: FORMAT_VERSION }
        }
        StoreKeysError::Slot(why @ (SlotError::Damaged | SlotError::KeyLost)) => {
            OpenError::SlotDamaged { slot, store, reason: why.to_string() }
        }
        StoreKeysError::Slot(why) => OpenError::SlotOfAnotherMoment { slot, store, reason: why.to_string() },
    }
}

/// Makes an empty store under its unfinished name, and its slot. It gets its real name only once it is whole
/// and on disk, so that a store that is found empty or cut is known to be damaged; and the lock file
/// remembers it, so that a store that is not found is known to be lost.
fn create_store(
    vault: &Vault,
    namespace: &str,
    unfinished: &Path,
    lock: &mut StoreLock,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::Store { path: unfinished.to_owned(), source };
    let file = open_private(unfinished).map_err(OpenError::io("make", unfinished))?;
    // Left by a start that was cut short.
    file.set_len(0).map_err(OpenError::io("empty", unfinished))?;
    let store = RedbStore::create(file).map_err(failed)?;
    let dir = unfinished.parent().unwrap_or(unfinished);
    let made = StoreKeys::create(&vault.slot_keys(dir), store.salt(), namespace);
    let (slot, head) = made.ok_or_else(|| failed(StoreError::Fault("the keys could not be sealed")))?;
    let path = slot_path(dir);
    // It may open a store that someone has moved away.
    if path.try_exists().map_err(OpenError::io("look for", &path))? {
        give_name(&path, &free_name(&path, "slot-set-aside"))?;
    }
    make_durable(&path, &slot)?;
    store.commit(&Batch { head, ..Batch::default() }).map_err(failed)?;
    lock.remember_store().map_err(OpenError::io("write the lock beside", unfinished))
}
