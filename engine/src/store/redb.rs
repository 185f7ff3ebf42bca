//! The store in one redb file.
//!
//! Commits are made with quick repair on, and so in two phases: one that was acknowledged stays, and
//! each costs two syncs. A file is checked page by page when it is opened, so that damage is named and
//! never built on; until the store is [accepted](RedbStore::accept), nothing of it is changed.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | `format` and `epoch` (u64, little-endian), `salt` (16 bytes), `head` (sealed) |
//! | `records` | record id | sealed record |
//! | `nodes` | level and number of a key node (u64) | sealed node |
//! | `pieces` | number of a leaf of the key tree (u64) | sealed piece of derived data |
//! | `erasures`, `copies` | number (u64) | sealed entry of the log |
//! | `operations` | epoch (u64) | sealed note |

use std::fs::File;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{
    AccessGuard, Builder, Database, DatabaseError, ReadOnlyTable, ReadTransaction, ReadableDatabase,
    ReadableTable, StorageBackend, TableDefinition, WriteTransaction,
};

use super::overlay::Overlay;
use super::{Batch, Snapshot, Store, StoreError};
use crate::sealed::{Chain, FORMAT_VERSION, NodeId, RecordId, random};

const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
const RECORDS: TableDefinition<'static, &[u8; 16], &[u8]> = TableDefinition::new("records");
const NODES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("nodes");
const PIECES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("pieces");
const ERASURES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("erasures");
const COPIES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("copies");
const OPERATIONS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("operations");

/// redb's page cache. Records are small and read once, so a larger one only costs memory.
const CACHE_BYTES: usize = 8 << 20;

/// See the module.
pub(crate) struct RedbStore {
    database: Database,
    disk: Overlay,
    accepted: bool,
    epoch: AtomicU64,
    salt: [u8; 16],
}

impl RedbStore {
    /// Makes an empty store in `file`, which must be empty.
    pub(crate) fn create(file: File) -> Result<Self, StoreError> {
        let mut store = Self::attach(disk(file)?)?;
        store.accept()?;
        store.salt = random();
        let transaction = store.begin()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert("format", u64::from(FORMAT_VERSION).to_le_bytes().as_slice())?;
            meta.insert("epoch", 0u64.to_le_bytes().as_slice())?;
            meta.insert("salt", store.salt.as_slice())?;
            transaction.open_table(RECORDS)?;
            for table in [NODES, PIECES, ERASURES, COPIES, OPERATIONS] {
                transaction.open_table(table)?;
            }
        }
        transaction.commit()?;
        Ok(store)
    }

    /// Looks at the store in `file`: nothing is written to it until it is [accepted](Self::accept).
    pub(crate) fn open(file: File) -> Result<Self, StoreError> {
        Self::open_on(disk(file)?)
    }

    /// Looks at the store on a disk. An empty one is a damaged store: one that is made is never empty
    /// under its name.
    pub(crate) fn open_on(disk: Box<dyn StorageBackend>) -> Result<Self, StoreError> {
        if disk.len().map_err(|e| medium(&e))? == 0 {
            return Err(damaged("it is empty"));
        }
        let mut store = Self::attach(disk)?;
        let format = u64::from_le_bytes(store.meta("format")?);
        if format != u64::from(FORMAT_VERSION) {
            return Err(StoreError::OtherFormat(format));
        }
        store.salt = store.meta("salt")?;
        let epoch = u64::from_le_bytes(store.meta("epoch")?);
        if epoch == u64::MAX {
            return Err(damaged("its epoch is out of range"));
        }
        store.epoch.store(epoch, Ordering::Release);
        Ok(store)
    }

    /// Takes the store as it is, to write to it from now on.
    pub(crate) fn accept(&mut self) -> Result<(), StoreError> {
        self.disk.accept().map_err(|e| medium(&e))?;
        self.accepted = true;
        Ok(())
    }

    /// Writes the head of the file anew and syncs it: what the file shows is on the medium then, also where an
    /// earlier sync had failed and the system only showed it from its cache.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        let epoch = self.epoch.load(Ordering::Acquire);
        transaction.open_table(META)?.insert("epoch", epoch.to_le_bytes().as_slice())?;
        Ok(transaction.commit()?)
    }

    fn attach(disk: Box<dyn StorageBackend>) -> Result<Self, StoreError> {
        let disk = Overlay::over(disk);
        let database = Builder::new()
            .set_cache_size(CACHE_BYTES)
            // A page that does not match its checksum is named here, and never trusted later.
            .set_check_integrity_on_open(true)
            .create_with_backend(disk.clone())?;
        Ok(Self { database, disk, accepted: false, epoch: AtomicU64::new(0), salt: [0; 16] })
    }

    fn meta<const N: usize>(&self, name: &str) -> Result<[u8; N], StoreError> {
        let value = self.database.begin_read()?.open_table(META)?.get(name)?;
        let value = value.and_then(|value| value.value().try_into().ok());
        value.ok_or_else(|| damaged(&format!("it names no {name}")))
    }

    fn begin(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_quick_repair(true);
        Ok(transaction)
    }
}

impl Store for RedbStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let transaction = self.database.begin_read()?;
        let epoch = transaction.open_table(META)?.get("epoch")?;
        let epoch = epoch.and_then(|epoch| epoch.value().try_into().ok()).map_or(0, u64::from_le_bytes);
        let records = transaction.open_table(RECORDS)?;
        Ok(Box::new(RedbSnapshot { epoch, records, transaction }))
    }

    fn salt(&self) -> &[u8; 16] {
        &self.salt
    }

    fn next_epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire) + 1
    }

    fn notes(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let note = |row: Result<(AccessGuard<'_, u64>, AccessGuard<'_, &[u8]>), redb::StorageError>| {
            let (epoch, note) = row?;
            Ok((epoch.value(), note.value().to_vec()))
        };
        self.database.begin_read()?.open_table(OPERATIONS)?.iter()?.map(note).collect()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if !self.accepted {
            return Err(StoreError::OnlyLookedAt);
        }
        let epoch = self.next_epoch();
        let transaction = self.begin()?;
        {
            let mut records = transaction.open_table(RECORDS)?;
            for id in &batch.removes {
                records.remove(id.as_bytes())?;
            }
            for (id, sealed) in &batch.puts {
                records.insert(id.as_bytes(), sealed.as_slice())?;
            }
            let mut meta = transaction.open_table(META)?;
            meta.insert("epoch", epoch.to_le_bytes().as_slice())?;
            meta.insert("head", batch.head.as_slice())?;
            // A table that is not touched costs the commit no page.
            replace(
                &transaction,
                NODES,
                batch.nodes.iter().map(|(id, sealed)| (id.get(), sealed.as_deref())),
            )?;
            replace(
                &transaction,
                PIECES,
                batch.pieces.iter().map(|(leaf, piece)| (*leaf, piece.as_deref())),
            )?;
            for logged in [Chain::Erasures, Chain::Copies] {
                let entries = batch.log.iter().filter(|(chain, ..)| *chain == logged);
                replace(
                    &transaction,
                    log(logged),
                    entries.map(|(_, number, entry)| (*number, Some(&entry[..]))),
                )?;
            }
            if batch.note.is_some() || !batch.stale_notes.is_empty() {
                let mut operations = transaction.open_table(OPERATIONS)?;
                for epoch in &batch.stale_notes {
                    operations.remove(epoch)?;
                }
                if let Some(note) = &batch.note {
                    operations.insert(epoch, note.as_slice())?;
                }
            }
        }
        transaction.commit().map_err(|error| match error.into() {
            StoreError::Medium(reason) => StoreError::Unsettled(reason),
            other => other,
        })?;
        self.epoch.store(epoch, Ordering::Release);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.disk.len().unwrap_or(0)
    }
}

fn log(chain: Chain) -> TableDefinition<'static, u64, &'static [u8]> {
    match chain {
        Chain::Erasures => ERASURES,
        Chain::Copies => COPIES,
    }
}

/// Writes the rows that are given, and removes those that are given as nothing.
fn replace<'a>(
    transaction: &WriteTransaction,
    table: TableDefinition<'static, u64, &'static [u8]>,
    rows: impl Iterator<Item = (u64, Option<&'a [u8]>)>,
) -> Result<(), StoreError> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut table = transaction.open_table(table)?;
    for (key, row) in rows {
        match row {
            Some(row) => drop(table.insert(key, row)?),
            None => drop(table.remove(key)?),
        }
    }
    Ok(())
}

struct RedbSnapshot {
    epoch: u64,
    records: ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    transaction: ReadTransaction,
}

impl RedbSnapshot {
    fn row(
        &self,
        table: TableDefinition<'static, u64, &'static [u8]>,
        key: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.transaction.open_table(table)?.get(key)?.map(|row| row.value().to_vec()))
    }
}

impl Snapshot for RedbSnapshot {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn record(&self, id: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.records.get(id.as_bytes())?.map(|row| row.value().to_vec()))
    }

    fn rows_after(&self, after: &RecordId, most: usize) -> Result<Vec<(RecordId, Vec<u8>)>, StoreError> {
        let rows = self.records.range::<&[u8; 16]>((Bound::Excluded(after.as_bytes()), Bound::Unbounded))?;
        rows.take(most)
            .map(|row| {
                let (id, sealed) = row?;
                Ok((RecordId::from_bytes(*id.value()), sealed.value().to_vec()))
            })
            .collect()
    }

    fn head(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.transaction.open_table(META)?.get("head")?.map(|head| head.value().to_vec()))
    }

    fn node(&self, id: NodeId) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(NODES, id.get())
    }

    fn piece(&self, leaf: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(PIECES, leaf)
    }

    fn log(&self, chain: Chain, from: u64, most: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let log = self.transaction.open_table(log(chain))?;
        let entries = log.range(from..)?.take(most);
        entries
            .map(|row| {
                let (number, entry) = row?;
                Ok((number.value(), entry.value().to_vec()))
            })
            .collect()
    }
}

fn disk(file: File) -> Result<Box<dyn StorageBackend>, StoreError> {
    Ok(Box::new(FileBackend::new(file)?))
}

fn damaged(reason: &str) -> StoreError {
    StoreError::Damaged(reason.into())
}

fn medium(error: &std::io::Error) -> StoreError {
    StoreError::Medium(error.to_string().into())
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(ref e) if is_corruption(e) => damaged(&e.to_string()),
            redb::Error::Io(ref e) => medium(e),
            redb::Error::PreviousIo => Self::Shut,
            redb::Error::DatabaseAlreadyOpen => Self::InUse,
            redb::Error::UpgradeRequired(version) => Self::OtherFormat(version.into()),
            redb::Error::Corrupted(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TableDoesNotExist(_)
            | redb::Error::TypeDefinitionChanged { .. } => damaged(&error.to_string()),
            other => Self::Medium(other.to_string().into()),
        }
    }
}

/// A file that is cut short or does not begin as redb's does is damaged; the medium is well.
fn is_corruption(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof)
}

macro_rules! through_redb_error {
    ($($kind:ty),+) => {$(
        impl From<$kind> for StoreError {
            fn from(error: $kind) -> Self {
                redb::Error::from(error).into()
            }
        }
    )+};
}
through_redb_error!(
    DatabaseError,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError
);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::files::open_private;

    fn look(path: &Path) -> Result<RedbStore, StoreError> {
        RedbStore::open(open_private(path).unwrap())
    }

    fn open(path: &Path) -> RedbStore {
        let mut store = look(path).unwrap();
        store.accept().unwrap();
        store
    }

    fn create(path: &Path) -> RedbStore {
        RedbStore::create(open_private(path).unwrap()).unwrap()
    }

    #[test]
    fn redb_meets_the_contract_of_every_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        drop(create(&path));
        super::super::contract::check(&|| Box::new(open(&path)));
    }

    #[test]
    fn a_second_opener_is_told_that_the_store_is_in_use_also_while_it_is_only_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let first = create(&path);
        assert!(matches!(look(&path), Err(StoreError::InUse)));
        drop(first);
        let _looking = look(&path).unwrap();
        assert!(matches!(look(&path), Err(StoreError::InUse)));
    }

    #[test]
    fn a_store_that_is_only_looked_at_stays_as_it_is_and_takes_no_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        drop(create(&path));
        let before = std::fs::read(&path).unwrap();
        let store = look(&path).unwrap();
        assert!(matches!(store.commit(&Batch::default()), Err(StoreError::OnlyLookedAt)));
        assert!(store.snapshot().unwrap().rows_after(&RecordId::LEAST, 1).unwrap().is_empty());
        drop(store);
        assert!(std::fs::read(&path).unwrap() == before);
    }

    #[test]
    fn a_file_that_is_not_a_store_is_damaged_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        for garbage in [vec![], vec![0; 10_000], vec![0xff; 3], b"{}".to_vec()] {
            std::fs::write(&path, &garbage).unwrap();
            assert!(matches!(look(&path), Err(StoreError::Damaged(_))), "{} bytes", garbage.len());
            assert_eq!(std::fs::read(&path).unwrap(), garbage);
        }
    }

    #[test]
    fn another_format_version_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let store = create(&path);
        let transaction = store.begin().unwrap();
        transaction.open_table(META).unwrap().insert("format", 99u64.to_le_bytes().as_slice()).unwrap();
        transaction.commit().unwrap();
        drop(store);
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(look(&path), Err(StoreError::OtherFormat(99))));
        assert!(std::fs::read(&path).unwrap() == before);
    }
}
