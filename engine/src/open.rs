//! Opening the store of one namespace: its file, and the names in it.
//!
//! Makes an empty store where there is none. A file is only looked at until its keys, its format and
//! every name in it are known to be good: one that is refused is left as it was. What is then done with
//! the store is the [`engine`](crate::engine)'s business.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::files::{give_name, open_private};
use crate::load::{Damaged, load_names};
use crate::lock::{Remembers, StoreLock};
use crate::open_error::OpenError;
use crate::operations::Operations;
use crate::sealed::{FORMAT_VERSION, RecordId};
use crate::seat::{store_path, unfinished_path};
use crate::state::Names;
use crate::store::{Batch, RedbStore, Store, StoreError};
use crate::vault::{RecordKeys, UnsealError, Vault};

/// A process that is killed lets go of the lock beside the store an instant before it lets go of the
/// store itself.
const HAND_OVER: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// An open store and what is kept in memory of it.
pub(crate) struct Opened {
    /// Whether this call made the store.
    pub(crate) created: bool,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: RecordKeys,
    pub(crate) names: Names,
    pub(crate) epoch: u64,
    pub(crate) operations: Operations,
    /// Records that do not open.
    pub(crate) damaged: Vec<Damaged>,
    /// Held for as long as the store is open.
    pub(crate) lock: Option<StoreLock>,
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
    let made = remembers.map_err(OpenError::io("read the lock in", dir))? == Remembers::StoreMade;
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
    let loaded = load(vault, namespace, file, &store)?;
    if mode == Mode::Look {
        return if there { Ok(loaded.with(store, created)) } else { Err(OpenError::Unfinished(path)) };
    }
    store.accept().map_err(failed_at(file))?;
    if let Some(lock) = &mut lock {
        lock.remember_store().map_err(OpenError::io("write the lock in", dir))?;
    }
    if !there {
        give_name(&unfinished, &path)?;
    }
    Ok(loaded.with(store, created))
}

/// Opens the store on a disk other than its file, and takes it.
#[cfg(any(test, feature = "bench"))]
pub(crate) fn open_on(
    vault: &Vault,
    namespace: &str,
    path: &Path,
    disk: Box<dyn redb::StorageBackend>,
) -> Result<Opened, OpenError> {
    let mut store = RedbStore::open_on(disk).map_err(failed_at(path))?;
    let loaded = load(vault, namespace, path, &store)?;
    store.accept().map_err(failed_at(path))?;
    Ok(loaded.with(store, false))
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

/// What is read from a store to open it.
struct Loaded {
    keys: RecordKeys,
    names: Names,
    epoch: u64,
    operations: Operations,
    damaged: Vec<Damaged>,
}

impl Loaded {
    fn with(self, store: RedbStore, created: bool) -> Opened {
        let Self { keys, names, epoch, operations, damaged } = self;
        Opened { created, store: Arc::new(store), keys, names, epoch, operations, damaged, lock: None }
    }
}

/// Checks that the keys are the store's and reads its names.
fn load(vault: &Vault, namespace: &str, path: &Path, store: &RedbStore) -> Result<Loaded, OpenError> {
    let failed = failed_at(path);
    let keys = vault.record_keys(namespace, store.salt());
    let snapshot = store.snapshot().map_err(&failed)?;
    let header = snapshot.record(&RecordId::HEADER).map_err(&failed)?;
    let header = header.ok_or_else(|| failed(StoreError::Damaged("its header is missing".into())))?;
    match keys.unseal(&RecordId::HEADER, &header) {
        Ok(name) if name.as_slice() == namespace.as_bytes() => {}
        Ok(_) | Err(UnsealError::Key) => return Err(OpenError::ForeignStore(path.to_owned())),
        Err(error) => return Err(failed(StoreError::Damaged(format!("its header: {error}").into()))),
    }
    let (names, damaged) = load_names(&*snapshot, &keys).map_err(&failed)?;
    let epoch = snapshot.epoch();
    let notes = store.notes().map_err(&failed)?;
    let operations = Operations::load(vault.operation_key(namespace, store.salt()), notes);
    Ok(Loaded { keys, names, epoch, operations, damaged })
}

/// Makes an empty store under its unfinished name. It gets its real one only once it is whole and on
/// disk, so that a store that is found empty or cut is known to be damaged; and the lock file remembers
/// it, so that a store that is not found is known to be lost.
///
/// It begins with a header record that holds the namespace's name: if that opens, the keys are the
/// right ones.
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
    let header = vault
        .record_keys(namespace, store.salt())
        .seal(&RecordId::HEADER, store.next_epoch(), namespace.as_bytes())
        .ok_or_else(|| failed(StoreError::Fault("the header could not be sealed")))?;
    store.commit(&Batch { puts: vec![(RecordId::HEADER, header)], ..Batch::default() }).map_err(failed)?;
    lock.remember_store().map_err(OpenError::io("write the lock beside", unfinished))
}
