//! The seal of one record version: padded, encrypted and bound to its place.
//!
//! ChaCha20-Poly1305 (RFC 8439). Every record version has a random key of its own that seals
//! exactly one message, so the nonce is zero. Its id, its epoch and the format version are
//! associated data: a blob that is moved to another id or given another epoch does not open.
//!
//! ```text
//! sealed record = format (u8) | epoch (u64, little-endian) | ciphertext and tag
//! ```

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use zeroize::Zeroizing;

use super::padding::{pad, unpad};
use super::secret::Key;
use crate::sealed::{FORMAT_VERSION, RecordId};

/// The first byte of every sealed blob.
pub(super) const BLOB_FORMAT: u8 = {
    assert!(FORMAT_VERSION <= 0xff, "the version fits the first byte of a blob");
    FORMAT_VERSION as u8
};
const HEAD: usize = 1 + 8;

/// Why a sealed record could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnsealError {
    #[error("it is of another format version")]
    OtherFormat,
    #[error("its key does not open")]
    Key,
    #[error("its seal is broken")]
    Seal,
    #[error("its contents are malformed")]
    Contents,
}

/// Everything that a blob is bound to.
pub(super) fn associated_data(domain: &[u8], id: &RecordId, epoch: u64) -> Vec<u8> {
    [domain, &FORMAT_VERSION.to_le_bytes(), id.as_bytes(), &epoch.to_le_bytes()].concat()
}

/// Seals `payload` under `key`, which must be fresh. `None` if it is 4 GiB or longer.
pub(super) fn seal(key: &Key, id: &RecordId, epoch: u64, payload: &[u8]) -> Option<Vec<u8>> {
    let padded = pad(payload)?;
    let aad = associated_data(b"warm record", id, epoch);
    let sealed = ChaCha20Poly1305::new((&key.0).into())
        .encrypt(&Nonce::default(), Payload { msg: &padded, aad: &aad })
        .ok()?;
    let mut blob = Vec::with_capacity(HEAD + sealed.len());
    blob.push(BLOB_FORMAT);
    blob.extend_from_slice(&epoch.to_le_bytes());
    blob.extend_from_slice(&sealed);
    Some(blob)
}

/// The epoch at the head of a blob, not yet authenticated.
pub(super) fn epoch_of(blob: &[u8]) -> Result<u64, UnsealError> {
    let (format, rest) = blob.split_first().ok_or(UnsealError::Seal)?;
    if *format != BLOB_FORMAT {
        return Err(UnsealError::OtherFormat);
    }
    let (epoch, _) = rest.split_first_chunk::<8>().ok_or(UnsealError::Seal)?;
    Ok(u64::from_le_bytes(*epoch))
}

/// Opens what [`seal`] made.
pub(super) fn unseal(key: &Key, id: &RecordId, blob: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
    let epoch = epoch_of(blob)?;
    let aad = associated_data(b"warm record", id, epoch);
    let sealed = blob.get(HEAD..).ok_or(UnsealError::Seal)?;
    let padded = ChaCha20Poly1305::new((&key.0).into())
        .decrypt(&Nonce::default(), Payload { msg: sealed, aad: &aad })
        .map(Zeroizing::new)
        .map_err(|_| UnsealError::Seal)?;
    unpad(&padded).map(|payload| Zeroizing::new(payload.to_vec())).ok_or(UnsealError::Contents)
}
