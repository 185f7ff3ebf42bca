//! The seal of one record version: padded, encrypted and bound to its place.
//!
//! ChaCha20-Poly1305 (RFC 8439). Every record version has a random key of its own that seals
//! exactly one message, so the nonce is zero. Its id, its epoch and the format version are
//! associated data: a blob that is moved to another id or given another epoch does not open.
//!
//! ```text
//! sealed record = format (u8) | epoch (u64, little-endian) | ciphertext and tag
//! ```
//!
//! Also the two plain ways to seal anything else: under a key of its own ([`seal_once`]), or as one of many
//! under a key that stays, with a random nonce of 192 bits ([`seal_with_nonce`]).

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, XChaCha20Poly1305, XNonce};
use postcard::ser_flavors::Size;
use serde::Serialize;
use zeroize::Zeroizing;

use super::padding::{pad, unpad};
use super::secret::Key;
use crate::sealed::{FORMAT_VERSION, RecordId, random};

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

/// Encodes a value that is to be sealed, without leaving parts of it behind in memory that was outgrown.
pub(crate) fn encode(value: &impl Serialize) -> Option<Zeroizing<Vec<u8>>> {
    let size = postcard::serialize_with_flavor(value, Size::default()).ok()?;
    // There is room for all of it, so that it is never moved while it grows.
    postcard::to_extend(value, Vec::with_capacity(size)).ok().map(Zeroizing::new)
}

/// Seals one message under a key that seals no other. `None` if it is too long to be sealed at once.
pub(super) fn seal_once(key: &Key, aad: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let sealed = ChaCha20Poly1305::new((&key.0).into())
        .encrypt(&Nonce::default(), Payload { msg: plain, aad })
        .ok()?;
    Some([&[BLOB_FORMAT], sealed.as_slice()].concat())
}

/// Opens what [`seal_once`] made.
pub(super) fn open_once(key: &Key, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
    let opened = ChaCha20Poly1305::new((&key.0).into())
        .decrypt(&Nonce::default(), Payload { msg: of_our_format(sealed)?, aad });
    opened.map(Zeroizing::new).map_err(|_| UnsealError::Seal)
}

/// Seals one of many messages under a key. `None` if it is too long to be sealed at once.
pub(super) fn seal_with_nonce(key: &Key, aad: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let nonce: [u8; 24] = random();
    let sealed = XChaCha20Poly1305::new((&key.0).into())
        .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad })
        .ok()?;
    Some([&[BLOB_FORMAT], nonce.as_slice(), &sealed].concat())
}

/// Opens what [`seal_with_nonce`] made.
pub(super) fn open_with_nonce(
    key: &Key,
    aad: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
    let (nonce, sealed) = of_our_format(sealed)?.split_first_chunk::<24>().ok_or(UnsealError::Seal)?;
    let opened = XChaCha20Poly1305::new((&key.0).into())
        .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad });
    opened.map(Zeroizing::new).map_err(|_| UnsealError::Seal)
}

fn of_our_format(sealed: &[u8]) -> Result<&[u8], UnsealError> {
    match sealed.split_first().ok_or(UnsealError::Seal)? {
        (&BLOB_FORMAT, rest) => Ok(rest),
        _ => Err(UnsealError::OtherFormat),
    }
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
