//! The seal of the notes that say which operations were made.
//!
//! XChaCha20-Poly1305 under a key that is derived from the store secret, the namespace and the store's
//! salt, with a random nonce; the epoch of the commit and the format version are associated data.
//!
//! ```text
//! sealed note = format (u8) | nonce (24) | ciphertext and tag
//! ```

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use super::seal::{BLOB_FORMAT, UnsealError};
use super::secret::Key;
use crate::sealed::{FORMAT_VERSION, random};

/// Seals and opens the notes of one store.
#[derive(Clone, Debug)]
pub(crate) struct OperationKey {
    key: Key,
}

impl OperationKey {
    pub(super) fn new(key: Key) -> Self {
        Self { key }
    }

    /// Seals the note of a commit. `None` if it is too long to be sealed at once.
    pub(crate) fn seal(&self, epoch: u64, note: &[u8]) -> Option<Vec<u8>> {
        let nonce: [u8; 24] = random();
        let sealed = self
            .cipher()
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: note, aad: &associated_data(epoch) })
            .ok()?;
        Some([&[BLOB_FORMAT], nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`OperationKey::seal`] made for the same epoch.
    pub(crate) fn unseal(&self, epoch: u64, sealed: &[u8]) -> Result<Vec<u8>, UnsealError> {
        let (format, rest) = sealed.split_first().ok_or(UnsealError::Seal)?;
        if *format != BLOB_FORMAT {
            return Err(UnsealError::OtherFormat);
        }
        let (nonce, sealed) = rest.split_first_chunk::<24>().ok_or(UnsealError::Seal)?;
        self.cipher()
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: &associated_data(epoch) })
            .map_err(|_| UnsealError::Seal)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&self.key.0).into())
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
        assert_eq!(key.unseal(7, &sealed).unwrap(), b"a note");
        assert_eq!(key.unseal(8, &sealed), Err(UnsealError::Seal));
        for cut in 0..sealed.len() {
            assert!(key.unseal(7, &sealed[..cut]).is_err());
        }
        assert_ne!(key.seal(7, b"a note").unwrap(), sealed, "no nonce is used twice");
    }
}
