//! Values that must not be shown and do not outlive their use.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::open_error::OpenError;
use crate::sealed::random;

/// Least characters of a passphrase that is set.
const SHORTEST: usize = 8;

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

    /// Whether it may be set. One that was set before opens its store however short it is.
    pub(crate) fn check_new(&self) -> Result<(), OpenError> {
        match self.0.chars().count() {
            0 => Err(OpenError::EmptyPassphrase),
            characters if characters < SHORTEST => Err(OpenError::ShortPassphrase),
            _ => Ok(()),
        }
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
    fn a_passphrase_is_counted_in_characters_when_it_is_set() {
        let set = |text: &str| Passphrase::new(text.into()).check_new();
        assert!(matches!(set(""), Err(OpenError::EmptyPassphrase)));
        assert!(matches!(set("séven d"), Err(OpenError::ShortPassphrase)));
        set("éééééééé").unwrap();
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(format!("{:?}", Key([7; 32])), "Key(..)");
        assert_eq!(format!("{:?}", Passphrase::new("hunter2".into())), "Passphrase(..)");
    }
}
