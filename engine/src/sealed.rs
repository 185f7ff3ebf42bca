//! What the store keeps and the vault opens: ids and sealed bytes.
//!
//! The words that both speak. Neither seals nor stores anything itself.

use std::fmt;

/// Version of everything that is written to disk.
pub const FORMAT_VERSION: u16 = 2;

/// Length of a version token.
pub(crate) const VERSION_DIGITS: usize = 16;

/// Names one version of one memory: 128 random bits, used once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RecordId([u8; 16]);

impl RecordId {
    /// Less than every id that is used.
    pub(crate) const LEAST: Self = Self([0; 16]);

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

/// Names one node of a key tree: its level, from 0 for the leaves, and its number among those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u64);

impl NodeId {
    const INDEX_BITS: u32 = 56;

    /// `None` if the number is out of range.
    pub(crate) fn new(level: u8, index: u64) -> Option<Self> {
        (index >> Self::INDEX_BITS == 0).then_some(Self(u64::from(level) << Self::INDEX_BITS | index))
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

/// One of the two logs of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Chain {
    /// Of what was forgotten.
    Erasures,
    /// Of what was copied out.
    Copies,
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
