//! A disk for measurements: a file whose syncs are counted and made to take longer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use redb::StorageBackend;

use crate::vault::SlotMedium;

/// See the module. It is used by one process alone, so it takes no lock.
#[derive(Debug)]
pub(crate) struct SlowDisk {
    disk: Box<dyn StorageBackend>,
    sync_takes: Duration,
    syncs: Arc<AtomicU64>,
}

impl SlowDisk {
    /// `syncs` counts from where it stands.
    pub(crate) fn over(disk: Box<dyn StorageBackend>, sync_takes: Duration, syncs: Arc<AtomicU64>) -> Self {
        Self { disk, sync_takes, syncs }
    }
}

impl StorageBackend for SlowDisk {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        thread::sleep(self.sync_takes);
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write(offset, data)
    }
}

/// A slot whose syncs take longer, as its disk's do.
pub(crate) struct SlowSlot {
    pub(crate) slot: Box<dyn SlotMedium>,
    pub(crate) sync_takes: Duration,
    pub(crate) syncs: Arc<AtomicU64>,
}

impl SlotMedium for SlowSlot {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.slot.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.slot.write(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        thread::sleep(self.sync_takes);
        self.slot.sync()
    }
}
