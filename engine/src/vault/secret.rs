//! Values that must not be shown and do not outlive their use.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::sealed::random;

/// A 256-bit key. Wiped when dropped; `Debug` shows nothing of it.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl Key {
    /// A fresh key from the operating system's generator.
    pub(crate) fn random() -> Self {
        Self(random())
    }

    /// Another key for a purpose, from which this one can't be had. A purpose is no other's beginning.
    pub(super) fn derive(&self, purpose: &[u8]) -> Self {
        Self(Sha256::new().chain_update(purpose).chain_update(self.0).finalize().into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Fewest characters of a passphrase for a new store.
pub(crate) const SHORTEST_PASSPHRASE: usize = 8;

/// A passphrase that opens a store. Wiped when dropped; `Debug` shows nothing of it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(String);

impl Passphrase {
    /// Takes the passphrase as it is, spaces included.
    pub fn new(passphrase: String) -> Self {
        Self(passphrase)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is too easily guessed to seal a new store.
    pub(crate) fn is_short(&self) -> bool {
        self.0.chars().count() < SHORTEST_PASSPHRASE
    }

    pub(crate) fn to_age(&self) -> age::secrecy::SecretString {
        age::secrecy::SecretString::from(self.0.clone())
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(format!("{:?}", Key([7; 32])), "Key(..)");
        assert_eq!(format!("{:?}", Passphrase::new("hunter2".into())), "Passphrase(..)");
    }
}
