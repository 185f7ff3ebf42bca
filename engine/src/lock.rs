//! The lock file beside a store: who has the store open, and whether one was ever made.
//!
//! The lock is the operating system's and goes with its process; what stands in the file is never read
//! as a process or a date, so that a file left behind by anyone holds nobody up. The exact words
//! [`STORE_MADE`] are a memory that a store was made here, so that one that is missing is known to be
//! lost; anything else in the file counts as nothing.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::files::open_private;
use crate::open_error::OpenError;

/// What the lock file holds once there is a store.
const STORE_MADE: &[u8] = b"a store was made here\n";

const PAUSE: Duration = Duration::from_millis(5);

/// What the lock file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remembers {
    Nothing,
    StoreMade,
    /// Something that no warm-mcp wrote.
    Garbage,
}

/// A lock that is held until this is dropped.
pub(crate) struct StoreLock(File);

impl StoreLock {
    /// Takes the lock in `dir`, making its file if there is none, and waits for a while for one who has it.
    pub(crate) fn take(dir: &Path, patience: Duration) -> Result<Self, OpenError> {
        let path = dir.join("lock");
        let file = open_private(&path).map_err(OpenError::io("open", &path))?;
        Self::acquire(file, dir, patience)
    }

    /// Takes the lock in `dir` without waiting; `None` if its file is not there.
    pub(crate) fn take_existing(dir: &Path) -> Result<Option<Self>, OpenError> {
        let path = dir.join("lock");
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => Self::acquire(file, dir, Duration::ZERO).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OpenError::io("open", &path)(error)),
        }
    }

    fn acquire(file: File, dir: &Path, patience: Duration) -> Result<Self, OpenError> {
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if started.elapsed() < patience => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(dir.join("store.redb"))),
                Err(TryLockError::Error(source)) => {
                    return Err(OpenError::io("lock", &dir.join("lock"))(source));
                }
            }
        }
    }

    pub(crate) fn remembers(&mut self) -> io::Result<Remembers> {
        self.0.rewind()?;
        read(&self.0)
    }

    /// Forgets what the file holds, so that a store can be made here.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.sync_all()
    }

    /// Remembers durably that a store was made here.
    pub(crate) fn remember_store(&mut self) -> io::Result<()> {
        if self.remembers()? == Remembers::StoreMade {
            return Ok(());
        }
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(STORE_MADE)?;
        self.0.sync_all()
    }
}

/// What the lock file in `dir` holds, whoever has the lock; nothing if there is none.
pub(crate) fn remembered_in(dir: &Path) -> Result<Remembers, OpenError> {
    let path = dir.join("lock");
    match File::open(&path).and_then(|file| read(&file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Remembers::Nothing),
        remembers => remembers.map_err(OpenError::io("read", &path)),
    }
}

fn read(file: &File) -> io::Result<Remembers> {
    let mut found = Vec::new();
    file.take(STORE_MADE.len() as u64 + 1).read_to_end(&mut found)?;
    Ok(match found.as_slice() {
        [] => Remembers::Nothing,
        STORE_MADE => Remembers::StoreMade,
        _ => Remembers::Garbage,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_exact_words_are_a_memory_of_a_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let take = || StoreLock::take(dir.path(), Duration::ZERO).unwrap();
        assert!(StoreLock::take_existing(dir.path()).unwrap().is_none());
        assert_eq!(remembered_in(dir.path()).unwrap(), Remembers::Nothing);
        assert!(!path.exists(), "looking makes nothing");
        assert_eq!(take().remembers().unwrap(), Remembers::Nothing);
        for garbage in [&b"4711\n"[..], b"a store was made", b"a store was made here\n\n", &[0xff; 100_000]] {
            fs::write(&path, garbage).unwrap();
            assert_eq!(take().remembers().unwrap(), Remembers::Garbage);
        }
        take().remember_store().unwrap();
        assert_eq!(fs::read(&path).unwrap(), STORE_MADE);
        let held = take();
        assert_eq!(remembered_in(dir.path()).unwrap(), Remembers::StoreMade, "whoever has the lock");
        drop(held);
        let mut lock = StoreLock::take_existing(dir.path()).unwrap().unwrap();
        assert_eq!(lock.remembers().unwrap(), Remembers::StoreMade);
        lock.remember_store().unwrap();
    }

    #[test]
    fn a_lock_that_is_held_is_waited_for_as_long_as_asked_and_then_named() {
        let dir = tempfile::tempdir().unwrap();
        let held = StoreLock::take(dir.path(), Duration::ZERO).unwrap();
        assert!(matches!(StoreLock::take(dir.path(), Duration::ZERO), Err(OpenError::InUse(_))));
        assert!(matches!(StoreLock::take_existing(dir.path()), Err(OpenError::InUse(_))));
        let path = dir.path().to_owned();
        let waiting = thread::spawn(move || StoreLock::take(&path, Duration::from_secs(30)).map(|_| ()));
        drop(held);
        waiting.join().unwrap().unwrap();
    }
}
