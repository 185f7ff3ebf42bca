//! The key of one record version.
//!
//! Random, used for one record and kept in the [`key_tree`](super::key_tree) alone: whoever stores a record
//! seals it here, and whoever reads one has it opened here. In memory a key lies with the entry of its memory
//! and is wiped with it.

use zeroize::Zeroizing;

use super::seal::{self, UnsealError};
use super::secret::Key;
use crate::sealed::RecordId;

/// See the module. `Debug` shows nothing of it.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(crate) struct RecordKey(Key);

impl RecordKey {
    /// A fresh key.
    pub(crate) fn random() -> Self {
        Self(Key::random())
    }

    /// Seals the one record that this key is for. `None` if it is 4 GiB or longer.
    pub(crate) fn seal(&self, id: &RecordId, epoch: u64, payload: &[u8]) -> Option<Vec<u8>> {
        seal::seal(&self.0, id, epoch, payload)
    }

    /// Opens what [`RecordKey::seal`] made for the same id.
    pub(crate) fn unseal(&self, id: &RecordId, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        seal::unseal(&self.0, id, sealed)
    }

    /// What the version's commitment is salted with. It tells nothing of the key.
    pub(super) fn salt(&self) -> [u8; 16] {
        let mut salt = [0; 16];
        salt.copy_from_slice(&self.0.derive(b"warm version salt\0").0[..16]);
        salt
    }

    pub(super) fn bytes(&self) -> &Key {
        &self.0
    }
}

impl From<Key> for RecordKey {
    fn from(key: Key) -> Self {
        Self(key)
    }
}
