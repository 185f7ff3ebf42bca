//! The place of one namespace's store, which one process at a time holds.
//!
//! Whoever holds the [`lock`](crate::lock) beside the store has the seat. Nothing is opened here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::private_dir;
use crate::lock::StoreLock;
use crate::open_error::OpenError;
use crate::vault::Vault;

/// Longest name of a namespace, in bytes.
const LONGEST_NAMESPACE: usize = 128;

/// Where the store of a namespace is, or would be.
#[derive(Clone, Debug)]
pub struct Seat {
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
        Ok(Self { dir: vault.namespace_dir(namespace), namespace: namespace.to_owned() })
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
        exists(&self.dir)
    }

    /// Whether there is a store to open: a whole one, or one that a start did not finish.
    ///
    /// # Errors
    /// [`OpenError::Io`] if that can't be seen.
    pub fn has_store(&self) -> Result<bool, OpenError> {
        Ok(exists(&self.dir.join("store.redb"))? || exists(&self.dir.join("store.new"))?)
    }

    /// Takes the seat, or says with `None` that another process holds it.
    ///
    /// # Errors
    /// [`OpenError::Io`] and [`OpenError::NotADirectory`].
    pub fn try_claim(&self) -> Result<Option<Claim>, OpenError> {
        match self.claim(Duration::ZERO) {
            Err(OpenError::InUse(_)) => Ok(None),
            claimed => claimed.map(Some),
        }
    }

    /// Takes the seat, waiting so long for another process to give it back.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when it does not, else as [`Seat::try_claim`].
    pub fn claim(&self, patience: Duration) -> Result<Claim, OpenError> {
        private_dir(&self.dir)?;
        let lock = StoreLock::take(&self.dir, patience)?;
        Ok(Claim { seat: self.clone(), lock })
    }
}

fn exists(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(OpenError::io("look for", path))
}
