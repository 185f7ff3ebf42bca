//! The seal of the notes that say which operations were made.
//!
//! XChaCha20-Poly1305 under a key that is derived from the secret in the store's head, with a random nonce;
//! the epoch of the commit and the format version are associated data.

use zeroize::Zeroizing;

use super::seal::{UnsealError, open_with_nonce, seal_with_nonce};
use super::secret::Key;
use crate::sealed::FORMAT_VERSION;

/// Seals and opens the notes of one store.
#[derive(Clone, Debug)]
pub(crate) struct OperationKey {
    key: Key,
}

impl OperationKey {
    pub(super) fn new(key: Key) -> Self {
        Self { key }
    }

    #[cfg(test)]
    pub(crate) fn random() -> Self {
        Self::new(Key::random())
    }

    /// Seals the note of a commit. `None` if it is too long to be sealed at once.
    pub(crate) fn seal(&self, epoch: u64, note: &[u8]) -> Option<Vec<u8>> {
        seal_with_nonce(&self.key, &associated_data(epoch), note)
    }

    /// Opens what [`OperationKey::seal`] made for the same epoch.
    pub(crate) fn unseal(&self, epoch: u64, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        open_with_nonce(&self.key, &associated_data(epoch), sealed)
    }
}

fn associated_data(epoch: u64) -> Vec<u8> {
    [b"warm operations".as_slice(), &FORMAT_VERSION.to_le_bytes(), &epoch.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_opens_for_its_epoch_and_whole_alone() {
        let key = OperationKey::new(Key([3; 32]));
        let sealed = key.seal(7, b"a note").unwrap();
        assert_eq!(key.unseal(7, &sealed).unwrap().as_slice(), b"a note");
        assert_eq!(key.unseal(8, &sealed), Err(UnsealError::Seal));
        for cut in 0..sealed.len() {
            assert!(key.unseal(7, &sealed[..cut]).is_err());
        }
        assert_ne!(key.seal(7, b"a note").unwrap(), sealed, "no nonce is used twice");
    }
}
