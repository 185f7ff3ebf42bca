//! What the store keeps and the vault opens: ids and sealed bytes.
//!
//! The words that both speak. Neither seals nor stores anything itself.

use std::fmt;

/// Version of everything that is written to disk.
pub const FORMAT_VERSION: u16 = 1;

/// Length of a version token.
pub(crate) const VERSION_DIGITS: usize = 16;

/// Names one version of one memory: 128 random bits, used once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RecordId([u8; 16]);

impl RecordId {
    /// The header of a store: the one record that is no memory.
    pub(crate) const HEADER: Self = Self([0; 16]);

    pub(crate) fn random() -> Self {
        Self(random())
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The version token that callers see: half of the id, in hexadecimal.
    pub(crate) fn version(&self) -> String {
        hex(&self.0[..VERSION_DIGITS / 2])
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordId({self})")
    }
}

/// What the store keeps of one record version.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SealedRecord {
    /// The record, sealed under its own key.
    pub(crate) blob: Vec<u8>,
    /// That key, sealed under the store's.
    pub(crate) key: Vec<u8>,
}

/// Random bytes from the operating system.
///
/// # Panics
/// If the operating system has no randomness to give: no key or id may be made then.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
