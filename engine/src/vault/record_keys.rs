//! The keys of record versions: each random, each sealed under the store's.
//!
//! This is the one door between records and their keys. Whoever stores a record gets its key
//! sealed here, and whoever reads one has it opened here; no other module sees a record key.
//!
//! A key is sealed with XChaCha20-Poly1305 under a key derived from the store secret, the namespace
//! and the store's random salt. The 192-bit nonce is the record's id followed by its epoch: an id is
//! 128 random bits and names one version only, so no nonce is used twice. The header's id is fixed,
//! and it is sealed once in the life of a salt.
//!
//! ```text
//! sealed key = format (u8) | ciphertext and tag (48 bytes)
//! ```

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::seal::{self, BLOB_FORMAT, UnsealError, associated_data};
use super::secret::Key;
use crate::sealed::{RecordId, SealedRecord};

/// Seals and opens the records of one namespace.
#[derive(Clone, Debug)]
pub(crate) struct RecordKeys {
    wrapping: Key,
}

impl RecordKeys {
    pub(super) fn new(wrapping: Key) -> Self {
        Self { wrapping }
    }

    /// Seals `payload` under a fresh key. `None` if it is 4 GiB or longer.
    pub(crate) fn seal(&self, id: &RecordId, epoch: u64, payload: &[u8]) -> Option<SealedRecord> {
        let key = Key::random();
        let blob = seal::seal(&key, id, epoch, payload)?;
        let sealed = XChaCha20Poly1305::new((&self.wrapping.0).into())
            .encrypt(
                &nonce(id, epoch),
                Payload { msg: &key.0, aad: &associated_data(b"warm key", id, epoch) },
            )
            .ok()?;
        let mut wrapped = Vec::with_capacity(1 + sealed.len());
        wrapped.push(BLOB_FORMAT);
        wrapped.extend_from_slice(&sealed);
        Some(SealedRecord { blob, key: wrapped })
    }

    /// Opens what [`RecordKeys::seal`] made for the same id.
    pub(crate) fn unseal(
        &self,
        id: &RecordId,
        sealed: &SealedRecord,
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let epoch = seal::epoch_of(&sealed.blob)?;
        let (format, wrapped) = sealed.key.split_first().ok_or(UnsealError::Key)?;
        if *format != BLOB_FORMAT {
            return Err(UnsealError::OtherFormat);
        }
        let opened = XChaCha20Poly1305::new((&self.wrapping.0).into())
            .decrypt(
                &nonce(id, epoch),
                Payload { msg: wrapped, aad: &associated_data(b"warm key", id, epoch) },
            )
            .map(Zeroizing::new)
            .map_err(|_| UnsealError::Key)?;
        let key = Key(opened.as_slice().try_into().map_err(|_| UnsealError::Key)?);
        seal::unseal(&key, id, &sealed.blob)
    }
}

fn nonce(id: &RecordId, epoch: u64) -> XNonce {
    let mut nonce = XNonce::default();
    let (head, tail) = nonce.split_at_mut(16);
    head.copy_from_slice(id.as_bytes());
    tail.copy_from_slice(&epoch.to_le_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> RecordKeys {
        RecordKeys::new(Key([3; 32]))
    }

    #[test]
    fn what_is_sealed_opens_under_the_same_id_alone() {
        let (id, other) = (RecordId::random(), RecordId::random());
        let sealed = keys().seal(&id, 7, b"a door code").unwrap();
        assert_eq!(keys().unseal(&id, &sealed).unwrap().as_slice(), b"a door code");
        assert_eq!(keys().unseal(&other, &sealed), Err(UnsealError::Key));
        assert_eq!(RecordKeys::new(Key([4; 32])).unseal(&id, &sealed), Err(UnsealError::Key));
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let id = RecordId::random();
        let sealed = keys().seal(&id, 7, b"a door code").unwrap();
        for i in 0..sealed.blob.len() {
            let mut broken = sealed.clone();
            broken.blob[i] ^= 1;
            assert!(keys().unseal(&id, &broken).is_err(), "byte {i} of the record");
        }
        for i in 0..sealed.key.len() {
            let mut broken = sealed.clone();
            broken.key[i] ^= 1;
            assert!(keys().unseal(&id, &broken).is_err(), "byte {i} of the key");
        }
    }

    #[test]
    fn any_truncation_is_noticed() {
        let id = RecordId::random();
        let sealed = keys().seal(&id, 7, b"a door code").unwrap();
        for n in 0..sealed.blob.len() {
            let short = SealedRecord { blob: sealed.blob[..n].to_vec(), key: sealed.key.clone() };
            assert!(keys().unseal(&id, &short).is_err());
        }
    }

    #[test]
    fn two_versions_never_share_a_key() {
        let id = RecordId::random();
        let (a, b) = (keys().seal(&id, 1, b"same").unwrap(), keys().seal(&id, 2, b"same").unwrap());
        let mixed = SealedRecord { blob: a.blob, key: b.key };
        assert!(keys().unseal(&id, &mixed).is_err());
    }
}
