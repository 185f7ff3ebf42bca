//! Looking at a file without touching it, until it is known to be good.
//!
//! redb writes to a file as soon as it opens it, also to one that is then refused. An [`Overlay`] between
//! the two notes every change down in its order and lays it over what it reads; the file stays byte for
//! byte as it was. Once the file is [accepted](Overlay::accept) the changes are made, each sync where it
//! was asked for, so that a crash on the way leaves what a crash of redb itself would leave; from then on
//! everything passes straight through.
//!
//! Locks are the file's own at all times. What makes a file good is not decided here.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use redb::{BackendError, StorageBackend};

/// A change that waits to be made.
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

/// See the module. Clones are of one overlay.
#[derive(Clone)]
pub(crate) struct Overlay(Arc<Layers>);

struct Layers {
    disk: Box<dyn StorageBackend>,
    /// Set once `changes` is `None`, and then for good: what every later call looks at.
    accepted: AtomicBool,
    changes: RwLock<Option<Vec<Change>>>,
}

impl Overlay {
    pub(crate) fn over(disk: Box<dyn StorageBackend>) -> Self {
        let changes = RwLock::new(Some(Vec::new()));
        Self(Arc::new(Layers { disk, accepted: AtomicBool::new(false), changes }))
    }

    /// Makes the changes so far, and every later one at once.
    ///
    /// # Errors
    /// The disk's; some changes may be made then, in their order, and no later one is.
    pub(crate) fn accept(&self) -> io::Result<()> {
        let Layers { disk, accepted, changes } = &*self.0;
        let mut waiting = changes.write();
        for change in waiting.iter().flatten() {
            match change {
                Change::Write(at, bytes) => disk.write(*at, bytes)?,
                Change::SetLen(length) => disk.set_len(*length)?,
                Change::Sync => disk.sync_data()?,
            }
        }
        *waiting = None;
        accepted.store(true, Ordering::Release);
        Ok(())
    }

    /// Notes a change down, or does it where the file is accepted.
    fn change(
        &self,
        change: impl FnOnce() -> Change,
        through: impl FnOnce(&dyn StorageBackend) -> io::Result<()>,
    ) -> io::Result<()> {
        let Layers { disk, accepted, changes } = &*self.0;
        if accepted.load(Ordering::Acquire) {
            return through(&**disk);
        }
        let mut waiting = changes.write();
        match &mut *waiting {
            Some(waiting) => waiting.push(change()),
            None => through(&**disk)?,
        }
        Ok(())
    }
}

/// How long the file is with these changes made.
fn length(disk: &dyn StorageBackend, waiting: &[Change]) -> io::Result<u64> {
    let before = disk.len()?;
    Ok(waiting.iter().fold(before, |length, change| match change {
        Change::Write(at, bytes) => length.max(at.saturating_add(bytes.len() as u64)),
        Change::SetLen(length) => *length,
        Change::Sync => length,
    }))
}

/// Reads what is there with these changes made.
fn read(disk: &dyn StorageBackend, waiting: &[Change], at: u64, out: &mut [u8]) -> io::Result<()> {
    let end = at.saturating_add(out.len() as u64);
    if end > length(disk, waiting)? {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let on_disk = within(out, at, 0, disk.len()?);
    out.fill(0);
    if !on_disk.is_empty() {
        disk.read(at + on_disk.start as u64, &mut out[on_disk])?;
    }
    for change in waiting {
        match change {
            Change::Write(from, bytes) => {
                let to = from.saturating_add(bytes.len() as u64);
                let part = within(out, at, *from, to);
                if !part.is_empty() {
                    let skipped = (at + part.start as u64 - from) as usize;
                    let written = &bytes[skipped..skipped + part.len()];
                    out[part].copy_from_slice(written);
                }
            }
            // What is cut off is zero if the file grows again.
            Change::SetLen(length) => {
                let cut = within(out, at, *length, u64::MAX);
                out[cut].fill(0);
            }
            Change::Sync => {}
        }
    }
    Ok(())
}

/// The part of `out`, which starts at `at` in the file, that lies from `from` to `to`.
fn within(out: &[u8], at: u64, from: u64, to: u64) -> std::ops::Range<usize> {
    let inside = |position: u64| position.saturating_sub(at).min(out.len() as u64) as usize;
    let (start, end) = (inside(from), inside(to));
    start..end.max(start)
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").finish_non_exhaustive()
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.changes.read() {
            Some(waiting) => length(&*self.0.disk, waiting),
            None => self.0.disk.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let Layers { disk, accepted, changes } = &*self.0;
        if accepted.load(Ordering::Acquire) {
            return disk.read(offset, out);
        }
        match &*changes.read() {
            Some(waiting) => read(&**disk, waiting, offset, out),
            None => disk.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|| Change::SetLen(len), |disk| disk.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|| Change::Sync, |disk| disk.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(|| Change::Write(offset, data.to_vec()), |disk| disk.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.0.disk.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.disk.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.disk.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.disk.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.disk.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.disk.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.disk.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Sync,
        Accept,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..80, prop::collection::vec(1u8.., 1..20)).prop_map(|(at, bytes)| Step::Write(at, bytes)),
            2 => (0u64..100).prop_map(Step::SetLen),
            1 => Just(Step::Sync),
            1 => Just(Step::Accept),
        ]
    }

    fn holding(bytes: &[u8]) -> InMemoryBackend {
        let disk = InMemoryBackend::new();
        disk.set_len(bytes.len() as u64).unwrap();
        disk.write(0, bytes).unwrap();
        disk
    }

    fn all(disk: &dyn StorageBackend) -> Vec<u8> {
        let mut bytes = vec![0; disk.len().unwrap() as usize];
        disk.read(0, &mut bytes).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn it_reads_as_if_every_change_were_made_and_makes_them_once_accepted(
            before in prop::collection::vec(1u8.., 0..60),
            steps in prop::collection::vec(step(), 0..12),
        ) {
            let overlay = Overlay::over(Box::new(holding(&before)));
            let (mut expected, mut accepted) = (before.clone(), false);
            for step in steps {
                match step {
                    Step::Write(at, bytes) => {
                        let end = at as usize + bytes.len();
                        let longer = end.max(expected.len());
                        expected.resize(longer, 0);
                        expected[at as usize..end].copy_from_slice(&bytes);
                        overlay.set_len(longer as u64).unwrap();
                        overlay.write(at, &bytes).unwrap();
                    }
                    Step::SetLen(length) => {
                        expected.resize(length as usize, 0);
                        overlay.set_len(length).unwrap();
                    }
                    Step::Sync => overlay.sync_data().unwrap(),
                    Step::Accept => {
                        overlay.accept().unwrap();
                        accepted = true;
                    }
                }
                prop_assert_eq!(&all(&overlay), &expected);
                for at in (0..expected.len()).step_by(7) {
                    let mut piece = vec![0; (expected.len() - at).min(5)];
                    overlay.read(at as u64, &mut piece).unwrap();
                    prop_assert_eq!(&piece[..], &expected[at..at + piece.len()]);
                }
                prop_assert!(overlay.read(expected.len() as u64, &mut [0]).is_err());
                let below = all(&*overlay.0.disk);
                prop_assert_eq!(&below, if accepted { &expected } else { &before });
            }
        }
    }

    /// A disk that counts, and refuses every call but reads from the n-th on.
    #[derive(Debug)]
    struct Refusing(InMemoryBackend, std::sync::Mutex<u32>);

    impl Refusing {
        fn count(&self) -> io::Result<()> {
            let mut left = self.1.lock().unwrap();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(())
        }
    }

    impl StorageBackend for Refusing {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.0.read(offset, out)
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.count()?;
            self.0.set_len(len)
        }
        fn sync_data(&self) -> io::Result<()> {
            self.count()
        }
        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.count()?;
            self.0.write(offset, data)
        }
    }

    #[test]
    fn when_the_disk_refuses_on_the_way_the_changes_before_it_are_made_and_none_after_it() {
        let refusing = Refusing(holding(b"aaaa"), std::sync::Mutex::new(2));
        let overlay = Overlay::over(Box::new(refusing));
        overlay.write(0, b"1").unwrap();
        overlay.sync_data().unwrap();
        overlay.write(1, b"2").unwrap();
        assert_eq!(overlay.accept().unwrap_err().kind(), io::ErrorKind::StorageFull);
        overlay.write(2, b"3").unwrap();
        assert_eq!(all(&*overlay.0.disk), b"1aaa");
    }
}
