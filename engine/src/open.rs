//! Opening the store of one namespace: its file, and the names in it.
//!
//! Makes an empty store where there is none. What is then done with the store is the
//! [`engine`](crate::engine)'s business.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{give_name, open_private};
use crate::open_error::OpenError;
use crate::operations::Operations;
use crate::record::{Entry, Record};
use crate::sealed::{FORMAT_VERSION, RecordId};
use crate::seat::Claim;
use crate::state::Names;
use crate::store::{Batch, RedbStore, Snapshot, Store, StoreError};
use crate::vault::{RecordKeys, UnsealError, Vault};

/// An open store and what is kept in memory of it.
pub(crate) struct Opened {
    /// Whether this call made the store.
    pub(crate) created: bool,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: RecordKeys,
    pub(crate) names: Names,
    pub(crate) epoch: u64,
    pub(crate) operations: Operations,
    /// Records that do not open, each with the reason.
    pub(crate) damaged: Vec<String>,
    /// Held for as long as the store is open.
    pub(crate) lock: File,
}

/// What to do where there is no store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Make an empty one.
    Create,
    /// Make nothing.
    Existing,
}

/// Opens the store of a claimed seat.
pub(crate) fn open_store(vault: &Vault, claim: Claim, mode: Mode) -> Result<Opened, OpenError> {
    let Claim { seat, mut lock } = claim;
    let (namespace, dir) = (seat.namespace(), seat.dir());
    let made = lock.metadata().map_err(OpenError::io("look into the lock in", dir))?.len() > 0;
    let path = store_path(dir);
    let failed = |source| match source {
        StoreError::Damaged(reason) => OpenError::Damaged { path: path.clone(), reason: reason.to_string() },
        StoreError::OtherFormat(found) => {
            OpenError::OtherFormat { path: path.clone(), found: found.to_string(), supported: FORMAT_VERSION }
        }
        StoreError::InUse => OpenError::InUse(path.clone()),
        source => OpenError::Store { path: path.clone(), source },
    };
    let there = path.try_exists().map_err(OpenError::io("look for", &path))?;
    let store = if there {
        let file = open_private(&path).map_err(OpenError::io("open", &path))?;
        RedbStore::open(file).map_err(failed)?
    } else if made {
        finish_store(&path)?
    } else if mode == Mode::Create {
        create_store(vault, namespace, &path, &mut lock)?
    } else {
        return Err(OpenError::NoStore(dir.to_owned()));
    };
    let keys = vault.record_keys(namespace, store.salt());
    let snapshot = store.snapshot().map_err(failed)?;
    let header = snapshot.record(&RecordId::HEADER).map_err(failed)?;
    let header = header.ok_or_else(|| failed(StoreError::Damaged("its header is missing".into())))?;
    match keys.unseal(&RecordId::HEADER, &header) {
        Ok(name) if name.as_slice() == namespace.as_bytes() => {}
        Ok(_) | Err(UnsealError::Key) => return Err(OpenError::ForeignStore(path)),
        Err(error) => return Err(failed(StoreError::Damaged(format!("its header: {error}").into()))),
    }
    let (names, damaged) = load_names(&*snapshot, &keys).map_err(failed)?;
    let epoch = snapshot.epoch();
    let notes = store.notes().map_err(failed)?;
    let operations = Operations::load(vault.operation_key(namespace, store.salt()), notes);
    let created = !there && !made;
    Ok(Opened { created, store: Arc::new(store), keys, names, epoch, operations, damaged, lock })
}

pub(crate) fn store_path(dir: &Path) -> PathBuf {
    dir.join("store.redb")
}

/// What the lock file holds once there is a store: from then on, a missing one is lost.
const STORE_MADE: &[u8] = b"a store was made here\n";

/// Makes an empty store. It gets its name only once it is whole and on disk, so that a store that is
/// found empty or cut is known to be damaged; and the lock file remembers it, so that a store that is
/// not found is known to be lost.
///
/// It begins with a header record that holds the namespace's name: if that opens, the keys are the
/// right ones.
fn create_store(
    vault: &Vault,
    namespace: &str,
    path: &Path,
    lock: &mut File,
) -> Result<RedbStore, OpenError> {
    let unfinished = path.with_extension("new");
    let failed = |source| OpenError::Store { path: path.to_owned(), source };
    let file = open_private(&unfinished).map_err(OpenError::io("make", &unfinished))?;
    // Left by a start that was cut short.
    file.set_len(0).map_err(OpenError::io("empty", &unfinished))?;
    let store = RedbStore::create(file).map_err(failed)?;
    let header = vault
        .record_keys(namespace, store.salt())
        .seal(&RecordId::HEADER, store.next_epoch(), namespace.as_bytes())
        .ok_or_else(|| failed(StoreError::Fault("the header could not be sealed")))?;
    store.commit(&Batch { puts: vec![(RecordId::HEADER, header)], ..Batch::default() }).map_err(failed)?;
    let remember = lock.write_all(STORE_MADE).and_then(|()| lock.sync_all());
    remember.map_err(OpenError::io("write the lock beside", path))?;
    give_name(&unfinished, path)?;
    Ok(store)
}

/// Gives a store that was made its name, the only step that may be missing.
fn finish_store(path: &Path) -> Result<RedbStore, OpenError> {
    let unfinished = path.with_extension("new");
    if !unfinished.try_exists().map_err(OpenError::io("look for", &unfinished))? {
        return Err(OpenError::StoreMissing(path.to_owned()));
    }
    let file = open_private(&unfinished).map_err(OpenError::io("open", &unfinished))?;
    let store =
        RedbStore::open(file).map_err(|source| OpenError::Store { path: unfinished.clone(), source })?;
    give_name(&unfinished, path)?;
    Ok(store)
}

/// Reads the names of all memories. A record that does not open is left out and named.
fn load_names(snapshot: &dyn Snapshot, keys: &RecordKeys) -> Result<(Names, Vec<String>), StoreError> {
    let (mut names, mut damaged) = (Names::default(), Vec::new());
    for id in snapshot.ids()?.into_iter().filter(|id| *id != RecordId::HEADER) {
        match Record::read(snapshot, keys, &id) {
            Ok(Some(record)) => {
                names.insert(Entry::of(id, &record));
            }
            Ok(None) => damaged.push(format!("record {id}: it is listed and not there")),
            Err(StoreError::Record { id, reason }) => {
                tracing::error!(record = %id, %reason, "a record can't be opened; the others are served");
                damaged.push(format!("record {id}: {reason}"));
            }
            Err(other) => return Err(other),
        }
    }
    Ok((names, damaged))
}
