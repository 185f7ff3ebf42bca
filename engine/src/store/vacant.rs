//! The store of a namespace that has none: nothing is in it, nothing can be put there, nothing is on disk.

use super::{Batch, Snapshot, Store, StoreError};
use crate::sealed::{Chain, NodeId, RecordId};

/// See the module.
pub(crate) struct Vacant;

impl Store for Vacant {
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        Ok(Box::new(Self))
    }

    fn salt(&self) -> &[u8; 16] {
        // Nothing is sealed with it.
        &[0; 16]
    }

    fn next_epoch(&self) -> u64 {
        1
    }

    fn notes(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }

    fn commit(&self, _batch: &Batch) -> Result<(), StoreError> {
        Err(StoreError::OnlyLookedAt)
    }

    fn bytes(&self) -> u64 {
        0
    }
}

impl Snapshot for Vacant {
    fn epoch(&self) -> u64 {
        0
    }

    fn record(&self, _id: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn rows_after(&self, _after: &RecordId, _most: usize) -> Result<Vec<(RecordId, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }

    fn head(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn node(&self, _id: NodeId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn piece(&self, _leaf: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn log(&self, _chain: Chain, _from: u64, _most: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }
}
