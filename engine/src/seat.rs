//! The place of one namespace's store, which one process at a time holds.
//!
//! Whoever holds the [`lock`](crate::lock) beside the store has the seat. Nothing is opened here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::private_dir;
use crate::ledger;
use crate::lock::{Remembers, StoreLock, remembered_in};
use crate::open_error::OpenError;
use crate::vault::Vault;

/// Longest name of a namespace, in bytes.
const LONGEST_NAMESPACE: usize = 128;

/// Where the store of a namespace is, or would be.
#[derive(Clone, Debug)]
pub struct Seat {
    vault: Vault,
    dir: PathBuf,
    namespace: String,
}

/// A seat that this process holds: no other has the store open. Given back when dropped.
pub struct Claim {
    pub(crate) seat: Seat,
    pub(crate) lock: StoreLock,
}

impl Seat {
    /// The seat of a namespace. Makes nothing.
    ///
    /// # Errors
    /// [`OpenError::InvalidNamespace`] unless the name is 1 to 128 bytes without control characters.
    pub fn of(vault: &Vault, namespace: &str) -> Result<Self, OpenError> {
        let usable =
            (1..=LONGEST_NAMESPACE).contains(&namespace.len()) && !namespace.chars().any(char::is_control);
        if !usable {
            return Err(OpenError::InvalidNamespace);
        }
        let (dir, namespace) = (vault.namespace_dir(namespace), namespace.to_owned());
        Ok(Self { vault: vault.clone(), dir, namespace })
    }

    /// The directory of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether anything was ever made here.
    ///
    /// # Errors
    /// [`OpenError::Io`] if that can't be seen.
    pub fn is_there(&self) -> Result<bool, OpenError> {
        Ok(exists(&self.dir)? || ledger::knows(&self.vault, &self.dir)?)
    }

    /// Whether there is a store to open: one that has its name, or one that was made, so that opening it finishes
    /// it or says that it is lost.
    ///
    /// # Errors
    /// [`OpenError::Io`] if that can't be seen.
    pub fn has_store(&self) -> Result<bool, OpenError> {
        Ok(exists(&store_path(&self.dir))?
            || remembered_in(&self.dir)? == Remembers::StoreMade
            || ledger::knows(&self.vault, &self.dir)?)
    }

    /// Takes the seat, or says with `None` that another process holds it.
    ///
    /// # Errors
    /// [`OpenError::Io`], [`OpenError::NotADirectory`], and [`OpenError::StoreMissing`] if there was a store and its
    /// whole directory is gone.
    pub fn try_claim(&self) -> Result<Option<Claim>, OpenError> {
        match self.claim(Duration::ZERO) {
            Err(OpenError::InUse(_)) => Ok(None),
            claimed => claimed.map(Some),
        }
    }

    /// Takes the seat of a store that was there before, or says with `None` that another process holds it.
    /// Makes nothing.
    ///
    /// # Errors
    /// [`OpenError::StoreMissing`] if nothing is left of it, else as [`Seat::try_claim`].
    pub fn try_reclaim(&self) -> Result<Option<Claim>, OpenError> {
        let lock = match StoreLock::take_existing(&self.dir) {
            Err(OpenError::InUse(_)) => return Ok(None),
            taken => taken?,
        };
        match lock {
            Some(lock) if self.has_store()? => Ok(Some(Claim { seat: self.clone(), lock })),
            _ => Err(OpenError::StoreMissing(store_path(&self.dir))),
        }
    }

    /// Takes the seat, waiting so long for another process to give it back.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when it does not, else as [`Seat::try_claim`].
    pub fn claim(&self, patience: Duration) -> Result<Claim, OpenError> {
        // A directory that is gone with the store in it is not made again.
        if !exists(&self.dir)? && ledger::knows(&self.vault, &self.dir)? {
            return Err(OpenError::StoreMissing(store_path(&self.dir)));
        }
        private_dir(&self.dir)?;
        let lock = StoreLock::take(&self.dir, patience)?;
        Ok(Claim { seat: self.clone(), lock })
    }
}

/// The file of the store in a directory.
pub(crate) fn store_path(dir: &Path) -> PathBuf {
    dir.join("store.redb")
}

/// The file of the keys that open the store in a directory.
pub(crate) fn slot_path(dir: &Path) -> PathBuf {
    dir.join("slot")
}

/// A store's name until it is whole.
pub(crate) fn unfinished_path(dir: &Path) -> PathBuf {
    dir.join("store.new")
}

fn exists(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(OpenError::io("look for", path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Engine;
    use crate::contract::Limits;
    use crate::vault::VaultOptions;

    #[test]
    fn a_store_that_is_lost_counts_as_one_and_is_named_when_it_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
        let vault = Vault::open(&options).unwrap();
        let seat = Seat::of(&vault, "n").unwrap();
        assert!(!seat.has_store().unwrap());
        drop(seat.claim(Duration::ZERO).unwrap());
        assert!(!seat.has_store().unwrap(), "a lock alone is no store");
        drop(Engine::open(&vault, "n", Limits::default()).unwrap());
        assert!(seat.has_store().unwrap());
        fs::remove_file(store_path(seat.dir())).unwrap();
        assert!(seat.has_store().unwrap());
        let opened = Engine::open_claimed(&vault, seat.claim(Duration::ZERO).unwrap(), Limits::default());
        assert!(matches!(opened, Err(OpenError::StoreMissing(_))));
    }
}
