//! The keyring: the store secret and what must outlive a change of it, wrapped in age files.
//!
//! One file holds it for all key recipients, and one for each passphrase, since age does not mix
//! the two in one file. Inside the seal, always the same 74 bytes:
//!
//! ```text
//! "WARMKEYS" | format (u16, little-endian) | store secret (32) | directory key (32)
//! ```
//!
//! The directory key names the namespaces' directories. It stays when the store secret is made
//! anew, so that directories keep their names.

use std::io::{Read, Write};
use std::iter;
use std::path::Path;

use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::proof::Prover;
use super::secret::{Key, Passphrase};
use super::slot::SlotKeys;
use crate::files::read_small;
use crate::open_error::OpenError;
use crate::sealed::{FORMAT_VERSION, hex};

const MAGIC: &[u8; 8] = b"WARMKEYS";
const LENGTH: usize = 8 + 2 + 32 + 32;
/// Far more than a keyring for thousands of recipients needs.
const LONGEST: u64 = 1 << 20;
/// scrypt's log2(N) for passphrases: the age tool's own choice, about a second of work.
pub(super) const WORK_FACTOR: u8 = 18;
/// A store made on a fast machine opens on a slow one; beyond this, a hostile file only burns time.
pub(super) const HIGHEST_WORK_FACTOR: u8 = 22;

/// The keys of one data directory.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Keyring {
    store_secret: Key,
    directory: Key,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring(..)")
    }
}

impl Keyring {
    /// A fresh store secret.
    pub(super) fn random() -> Self {
        Self { store_secret: Key::random(), directory: Key::random() }
    }

    /// The name of a namespace's directory: a keyed hash, so that it does not tell the namespace.
    pub(super) fn directory_name(&self, namespace: &str) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.directory.0).expect("HMAC takes a key of any length");
        mac.update(b"warm namespace directory\0");
        mac.update(namespace.as_bytes());
        hex(&mac.finalize().into_bytes()[..16])
    }

    /// The keys that seal the slot of the store in the directory of this name.
    pub(super) fn slot_keys(&self, directory_name: &str) -> SlotKeys {
        SlotKeys { current: self.derive(b"warm slot\0", directory_name), previous: None }
    }

    /// The keys that seal the names of namespaces.
    pub(super) fn name_keys(&self) -> SlotKeys {
        SlotKeys { current: self.derive(b"warm namespace names\0", ""), previous: None }
    }

    /// What proves to another process that this one may open the namespace.
    pub(super) fn prover(&self, namespace: &str) -> Prover {
        Prover::new(self.derive(b"warm local socket\0", namespace))
    }

    fn derive(&self, purpose: &[u8], name: &str) -> Key {
        let mut key = Key([0; 32]);
        Hkdf::<Sha256>::new(None, &self.store_secret.0)
            .expand_multi_info(&[purpose, name.as_bytes()], &mut key.0)
            .expect("32 bytes are within HKDF's reach");
        key
    }

    /// The bytes of an age file that holds this keyring for `recipients`.
    pub(super) fn wrap_for_recipients<'a>(
        &self,
        recipients: impl Iterator<Item = &'a dyn Recipient>,
    ) -> Result<Vec<u8>, age::EncryptError> {
        self.wrap(Encryptor::with_recipients(recipients)?)
    }

    /// The bytes of an age file that holds this keyring for a passphrase.
    pub(super) fn wrap_for_passphrase(&self, passphrase: &Passphrase) -> Result<Vec<u8>, age::EncryptError> {
        let mut recipient = age::scrypt::Recipient::new(passphrase.to_age());
        recipient.set_work_factor(WORK_FACTOR);
        self.wrap(Encryptor::with_recipients(iter::once(&recipient as &dyn Recipient))?)
    }

    fn wrap(&self, encryptor: Encryptor) -> Result<Vec<u8>, age::EncryptError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(LENGTH));
        plain.extend_from_slice(MAGIC);
        plain.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        plain.extend_from_slice(&self.store_secret.0);
        plain.extend_from_slice(&self.directory.0);
        let mut wrapped = Vec::new();
        let mut writer = encryptor.wrap_output(&mut wrapped)?;
        writer.write_all(&plain)?;
        writer.finish()?;
        Ok(wrapped)
    }

    /// Opens the file at `path` with one of `identities`, or says that none fits.
    pub(super) fn open_with_identities(
        path: &Path,
        identities: &[age::x25519::Identity],
        identity_path: &Path,
    ) -> Result<Self, OpenError> {
        let wrong =
            || OpenError::WrongIdentity { identity: identity_path.to_owned(), keyring: path.to_owned() };
        Self::open(path, identities.iter().map(|i| i as &dyn Identity), wrong)
    }

    /// Opens the file at `path` with a passphrase.
    pub(super) fn open_with_passphrase(path: &Path, passphrase: &Passphrase) -> Result<Self, OpenError> {
        let mut identity = age::scrypt::Identity::new(passphrase.to_age());
        identity.set_max_work_factor(HIGHEST_WORK_FACTOR);
        let wrong = || OpenError::WrongPassphrase(path.to_owned());
        Self::open(path, iter::once(&identity as &dyn Identity), wrong)
    }

    fn open<'a>(
        path: &Path,
        identities: impl Iterator<Item = &'a dyn Identity>,
        wrong: impl Fn() -> OpenError,
    ) -> Result<Self, OpenError> {
        let damaged = |reason: &str| OpenError::Damaged { path: path.to_owned(), reason: reason.into() };
        let wrapped = read_small(path, LONGEST)?.ok_or_else(|| damaged("it is gone"))?;
        let failed = |error: DecryptError| match error {
            DecryptError::NoMatchingKeys
            | DecryptError::KeyDecryptionFailed
            | DecryptError::DecryptionFailed => wrong(),
            DecryptError::InvalidHeader => damaged("its age header is invalid"),
            DecryptError::InvalidMac => damaged("its age header was changed"),
            DecryptError::UnknownFormat => damaged("it is not an age file of a known version"),
            DecryptError::ExcessiveWork { .. } => damaged("its passphrase work factor is out of range"),
            _ => damaged("it can't be read as an age file"),
        };
        let decryptor = Decryptor::new(&wrapped[..]).map_err(failed)?;
        let mut reader = decryptor.decrypt(identities).map_err(failed)?;
        let mut plain = Zeroizing::new(Vec::with_capacity(LENGTH + 1));
        reader
            .by_ref()
            .take(LENGTH as u64 + 1)
            .read_to_end(&mut plain)
            .map_err(|_| damaged("its seal is broken"))?;
        let (head, rest) = plain.split_first_chunk::<10>().ok_or_else(|| damaged("it is too short"))?;
        if &head[..8] != MAGIC {
            return Err(damaged("it does not hold a keyring"));
        }
        let version = u16::from_le_bytes([head[8], head[9]]);
        if version != FORMAT_VERSION {
            return Err(OpenError::OtherFormat {
                path: path.to_owned(),
                found: version.to_string(),
                supported: FORMAT_VERSION,
            });
        }
        let keys: &[u8; 64] = rest.try_into().map_err(|_| damaged("it has another length"))?;
        let mut keyring = Self { store_secret: Key([0; 32]), directory: Key([0; 32]) };
        keyring.store_secret.0.copy_from_slice(&keys[..32]);
        keyring.directory.0.copy_from_slice(&keys[32..]);
        Ok(keyring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn wrapped() -> (tempfile::TempDir, std::path::PathBuf, Keyring, age::x25519::Identity) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recipients.age");
        let (keyring, identity) = (Keyring::random(), age::x25519::Identity::generate());
        let recipient = identity.to_public();
        fs::write(&path, keyring.wrap_for_recipients(iter::once(&recipient as &dyn Recipient)).unwrap())
            .unwrap();
        (dir, path, keyring, identity)
    }

    #[test]
    fn the_right_identity_opens_the_keyring_and_another_is_named_wrong() {
        let (_dir, path, keyring, identity) = wrapped();
        let other = age::x25519::Identity::generate();
        let opened =
            Keyring::open_with_identities(&path, &[other.clone(), identity], Path::new("i")).unwrap();
        assert!(opened == keyring);
        let error = Keyring::open_with_identities(&path, &[other], Path::new("i")).unwrap_err();
        assert!(matches!(error, OpenError::WrongIdentity { .. }), "{error}");
    }

    #[test]
    fn any_flipped_or_missing_byte_is_a_named_error() {
        let (_dir, path, _, identity) = wrapped();
        let good = fs::read(&path).unwrap();
        let open = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            Keyring::open_with_identities(&path, std::slice::from_ref(&identity), Path::new("i"))
        };
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert!(open(&bad).is_err(), "byte {i}");
            assert!(open(&good[..i]).is_err(), "cut at {i}");
        }
        open(&good).unwrap();
    }

    #[test]
    fn names_and_keys_differ_by_namespace_and_by_keyring() {
        let (a, b) = (Keyring::random(), Keyring::random());
        assert_eq!(a.directory_name("x"), a.directory_name("x"));
        assert_ne!(a.directory_name("x"), a.directory_name("y"));
        assert_ne!(a.directory_name("x"), b.directory_name("x"));
        assert!(a.slot_keys("x").current == a.slot_keys("x").current);
        assert!(a.slot_keys("x").current != a.slot_keys("y").current);
        assert!(a.slot_keys("x").current != b.slot_keys("x").current);
    }
}
