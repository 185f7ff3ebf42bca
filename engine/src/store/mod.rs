//! Where sealed blobs are kept, and the promise that what was committed stays.
//!
//! Owns the [`Store`] trait and its redb implementation. Sees ids, epochs and sealed bytes only:
//! what is inside a record, and the keys that open it, belong to others. A shared store can be
//! another implementation; [`contract`] is the suite that each must pass.

#[cfg(test)]
mod contract;
mod overlay;
mod redb;
#[cfg(test)]
pub(crate) mod simulated_disk;
#[cfg(feature = "bench")]
pub(crate) mod slow_disk;
mod vacant;

use std::sync::Arc;

pub(crate) use self::redb::RedbStore;
pub(crate) use self::vacant::Vacant;
use crate::contract::ErrorCode;
use crate::sealed::{Chain, FORMAT_VERSION, NodeId, RecordId};

/// Changes that are committed together or not at all.
#[derive(Default)]
pub(crate) struct Batch {
    /// Sealed records to add, each under an id of its own.
    pub(crate) puts: Vec<(RecordId, Vec<u8>)>,
    /// Records to remove.
    pub(crate) removes: Vec<RecordId>,
    /// The sealed head of the store as of this commit.
    pub(crate) head: Vec<u8>,
    /// Sealed nodes of the key tree to write, or to remove.
    pub(crate) nodes: Vec<(NodeId, Option<Vec<u8>>)>,
    /// Sealed pieces of derived data to write, or to remove, by the leaf that they are derived from.
    pub(crate) pieces: Vec<(u64, Option<Vec<u8>>)>,
    /// Sealed entries to add to the logs.
    pub(crate) log: Vec<(Chain, u64, Vec<u8>)>,
    /// The sealed note on the operations in this commit, kept under the commit's epoch.
    pub(crate) note: Option<Vec<u8>>,
    /// Epochs whose notes are no longer needed.
    pub(crate) stale_notes: Vec<u64>,
}

/// A store of sealed records.
pub(crate) trait Store: Send + Sync {
    /// Everything committed so far, unmoved by later commits.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError>;

    /// Random bytes that were made with the store: no two stores have the same.
    fn salt(&self) -> &[u8; 16];

    /// The epoch that the next commit will have. It grows by one with each commit.
    fn next_epoch(&self) -> u64;

    /// The notes on operations with their epochs, in ascending order.
    fn notes(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError>;

    /// Makes a batch durable as a whole. When this returns `Ok`, it survives a crash.
    ///
    /// # Errors
    /// Whether the batch is on disk is not known then. After a failure of the medium the store
    /// stays shut until it is opened again, for what is not in memory also to readers.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Size of the store on disk in bytes.
    fn bytes(&self) -> u64;
}

/// A moment of a [`Store`].
pub(crate) trait Snapshot: Send + Sync {
    /// The epoch of the last commit in it; 0 before the first.
    fn epoch(&self) -> u64;

    /// One sealed record, or `None` if there is none of that id.
    fn record(&self, id: &RecordId) -> Result<Option<Vec<u8>>, StoreError>;

    /// At most so many sealed records with the ids that follow `after`, in ascending order.
    fn rows_after(&self, after: &RecordId, most: usize) -> Result<Vec<(RecordId, Vec<u8>)>, StoreError>;

    /// The sealed head of the store; `None` before the first commit.
    fn head(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// A sealed node of the key tree, or `None` if there is none of that name.
    fn node(&self, id: NodeId) -> Result<Option<Vec<u8>>, StoreError>;

    /// The sealed piece that was derived from a leaf, or `None` if there is none.
    fn piece(&self, leaf: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// At most so many sealed entries of a log from number `from` on.
    fn log(&self, chain: Chain, from: u64, most: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError>;
}

/// Why the store could not read or write.
///
/// Cloneable, since one failed commit is the answer to every writer in it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file of the store is damaged.
    #[error(
        "the store is damaged ({0}): see what `warm-mcp doctor` says, and restore the memories from a backup"
    )]
    Damaged(Arc<str>),
    /// The medium failed: a full disk, a lost device.
    #[error("the store can't be read or written ({0}): free space or mend the disk, then ask again")]
    Medium(Arc<str>),
    /// The medium failed while a change was being made durable.
    #[error(
        "the store can't be written ({0}), and whether the change was made is not known: free space or mend the \
         disk, and look before trying again"
    )]
    Unsettled(Arc<str>),
    /// The file of the open store was moved, deleted or replaced.
    #[error(
        "{0} is not the file any more that was opened: it was moved, deleted or replaced while it was in use. \
         Nothing is written until it is back in its place. What was opened can still be read: make a backup now, \
         or put the file back; to go on with another file, end every warm-mcp on this store first"
    )]
    Moved(Arc<str>),
    /// An earlier failure shut the store.
    #[error(
        "the store was shut after an earlier failure, and what was acknowledged is kept: ask again, and look at \
         the disk if this persists"
    )]
    Shut,
    /// This process is giving the store back.
    #[error("the store is being closed: ask again")]
    Closing,
    /// The store was opened to be looked at, not to be written to.
    #[error("the store is only being looked at: nothing was changed")]
    OnlyLookedAt,
    /// One record does not open; the others do.
    #[error(
        "record {id} can't be opened ({reason}): the others are not affected; `warm-mcp doctor` lists such records"
    )]
    Record {
        /// The record's id, in hexadecimal.
        id: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// The store is of another format version.
    #[error("the store is of format version {0}, and this build reads version {supported}: use the warm-mcp that wrote it; nothing was changed", supported = FORMAT_VERSION)]
    OtherFormat(u64),
    /// A fault of this program; the change was not made.
    #[error("{0}, by a fault of warm-mcp: nothing was changed; please report it")]
    Fault(&'static str),
    /// Another process has the store open.
    #[error("another process has the store open: close it first")]
    InUse,
}

impl StoreError {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Fault(_) => ErrorCode::Internal,
            _ => ErrorCode::StoreUnavailable,
        }
    }
}
