//! The keyring: the store secret, what must outlive a change of it, and who may open it.
//!
//! One age file holds it for all its recipients. age does not mix passphrases with other recipients in one
//! file, so each passphrase has an identity of its own in a [`passphrase_file`](super::passphrase_file), and
//! that is the recipient here. Inside the seal:
//!
//! ```text
//! "WARMKEYS" | format (u16, little-endian) | store secret (32)
//!            | 1 while the secret is being changed, else 0 | the secret before it, or zeros (32)
//!            | directory key (32) | the recipients (postcard)
//! ```
//!
//! The directory key names the namespaces' directories. It stays when the store secret is made anew, so that
//! directories keep their names. While that change is under way both secrets are here, and what is sealed
//! opens with one of them.

use std::io::{Read, Write};
use std::path::Path;

use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient as AgeRecipient};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::proof::Prover;
use super::recipients::{self, Recipient};
use super::secret::Key;
use super::slot::SlotKeys;
use crate::open_error::OpenError;
use crate::sealed::{FORMAT_VERSION, hex};

const MAGIC: &[u8; 8] = b"WARMKEYS";
/// All that comes before the recipients.
const HEAD: usize = 8 + 2 + 32 + 1 + 32 + 32;
/// Longer than any that is written.
const LONGEST_PLAIN: usize = 32 * 1024;
/// Longest age file that is read.
pub(super) const LONGEST: u64 = 128 * 1024;

/// The keys of one data directory.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Keyring {
    store_secret: Key,
    /// While the store secret is being changed, the one before it.
    previous: Option<Key>,
    directory: Key,
    #[zeroize(skip)]
    recipients: Vec<Recipient>,
}

/// What becomes of the store secret when a keyring is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreSecret {
    /// It stays, and so does the one before it.
    Kept,
    /// It becomes the one before, and a new one is made.
    Renewed,
    /// It stays, and nothing is sealed under the one before it any more.
    Settled,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring(..)")
    }
}

impl Keyring {
    /// A fresh store secret, for these to open.
    pub(super) fn random(recipients: Vec<Recipient>) -> Self {
        Self { store_secret: Key::random(), previous: None, directory: Key::random(), recipients }
    }

    /// The keyring that takes this one's place.
    pub(super) fn changed(&self, recipients: Vec<Recipient>, secret: StoreSecret) -> Self {
        let (store_secret, previous) = match secret {
            StoreSecret::Kept => (self.store_secret.clone(), self.previous.clone()),
            StoreSecret::Renewed => (Key::random(), Some(self.store_secret.clone())),
            StoreSecret::Settled => (self.store_secret.clone(), None),
        };
        Self { store_secret, previous, directory: self.directory.clone(), recipients }
    }

    /// Who may open it.
    pub(super) fn recipients(&self) -> &[Recipient] {
        &self.recipients
    }

    /// Whether the store secret is being changed.
    pub(super) fn is_being_changed(&self) -> bool {
        self.previous.is_some()
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
        let key = |secret| derive(secret, b"warm slot\0", directory_name);
        SlotKeys { current: key(&self.store_secret), previous: self.previous.as_ref().map(key) }
    }

    /// The keys that seal the names of namespaces.
    pub(super) fn name_keys(&self) -> SlotKeys {
        let key = |secret| derive(secret, b"warm namespace names\0", "");
        SlotKeys { current: key(&self.store_secret), previous: self.previous.as_ref().map(key) }
    }

    /// What proves to another process that this one may open the namespace.
    pub(super) fn prover(&self, namespace: &str) -> Prover {
        Prover::new(derive(&self.store_secret, b"warm local socket\0", namespace))
    }

    /// The bytes of the age file that holds this keyring for its recipients.
    pub(super) fn wrap(&self) -> Result<Vec<u8>, age::EncryptError> {
        let keys = self.recipients.iter().map(|recipient| &recipient.key as &dyn AgeRecipient);
        let encryptor = Encryptor::with_recipients(keys)?;
        let none = Key([0; 32]);
        // Room for all of it, so that no copy is left behind by growing.
        let mut head = Zeroizing::new(Vec::with_capacity(HEAD));
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        head.extend_from_slice(&self.store_secret.0);
        head.push(u8::from(self.previous.is_some()));
        head.extend_from_slice(&self.previous.as_ref().unwrap_or(&none).0);
        head.extend_from_slice(&self.directory.0);
        let list = recipients::write(&self.recipients, Vec::new())
            .map_err(|_| std::io::Error::other("its recipients could not be encoded"))?;
        let mut wrapped = Vec::new();
        let mut writer = encryptor.wrap_output(&mut wrapped)?;
        writer.write_all(&head)?;
        writer.write_all(&list)?;
        writer.finish()?;
        Ok(wrapped)
    }

    /// Opens what [`Keyring::wrap`] made with one of `identities`, or says with `None` that none fits. `path` is
    /// where it was read from.
    pub(super) fn unwrap<'a>(
        wrapped: &[u8],
        path: &Path,
        identities: impl Iterator<Item = &'a dyn Identity>,
    ) -> Result<Option<Self>, OpenError> {
        let damaged = |reason: &str| OpenError::Damaged { path: path.to_owned(), reason: reason.into() };
        let opened = Decryptor::new(wrapped).and_then(|decryptor| decryptor.decrypt(identities));
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(
                DecryptError::NoMatchingKeys
                | DecryptError::KeyDecryptionFailed
                | DecryptError::DecryptionFailed,
            ) => return Ok(None),
            Err(error) => return Err(damaged(damage(&error))),
        };
        let mut plain = Zeroizing::new(Vec::with_capacity(LONGEST_PLAIN));
        let read = reader.by_ref().take(LONGEST_PLAIN as u64).read_to_end(&mut plain);
        read.map_err(|_| damaged("its seal is broken"))?;
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
        let (keys, list) =
            rest.split_first_chunk::<{ HEAD - 10 }>().ok_or_else(|| damaged("it is too short"))?;
        let key = |at: usize| {
            let mut key = Key([0; 32]);
            key.0.copy_from_slice(&keys[at..at + 32]);
            key
        };
        let previous = match keys[32] {
            0 => None,
            1 => Some(key(33)),
            _ => return Err(damaged("it says neither that its secret is being changed nor that it is not")),
        };
        let recipients = recipients::read(list).ok_or_else(|| damaged("its list of recipients is wrong"))?;
        Ok(Some(Self { store_secret: key(0), previous, directory: key(65), recipients }))
    }
}

/// What is wrong with an age file that did not open, other than that it takes another key.
pub(super) fn damage(error: &DecryptError) -> &'static str {
    match error {
        DecryptError::InvalidHeader => "its age header is invalid",
        DecryptError::InvalidMac => "its age header was changed",
        DecryptError::UnknownFormat => "it is not an age file of a known version",
        DecryptError::ExcessiveWork { .. } => "its passphrase work factor is out of range",
        _ => "it can't be read as an age file",
    }
}

fn derive(secret: &Key, purpose: &[u8], name: &str) -> Key {
    let mut key = Key([0; 32]);
    Hkdf::<Sha256>::new(None, &secret.0)
        .expand_multi_info(&[purpose, name.as_bytes()], &mut key.0)
        .expect("32 bytes are within HKDF's reach");
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::RecipientKind;
    use age::x25519;

    fn keyring() -> (Keyring, x25519::Identity) {
        let identity = x25519::Identity::generate();
        let recipient = Recipient::new(RecipientKind::Identity, identity.to_public(), "identity.txt".into());
        (Keyring::random(vec![recipient]), identity)
    }

    fn open(wrapped: &[u8], identities: &[&x25519::Identity]) -> Result<Option<Keyring>, OpenError> {
        let identities = identities.iter().map(|identity| *identity as &dyn Identity);
        Keyring::unwrap(wrapped, Path::new("recipients.age"), identities)
    }

    #[test]
    fn any_of_its_recipients_opens_the_keyring_and_nobody_else() {
        let (mut keyring, identity) = keyring();
        let (second, other) = (x25519::Identity::generate(), x25519::Identity::generate());
        keyring.recipients.push(Recipient::new(
            RecipientKind::Passphrase(1),
            second.to_public(),
            String::new(),
        ));
        let wrapped = keyring.wrap().unwrap();
        assert!(open(&wrapped, &[&other, &identity]).unwrap().unwrap() == keyring);
        assert!(open(&wrapped, &[&second]).unwrap().unwrap() == keyring);
        assert!(open(&wrapped, &[&other]).unwrap().is_none());
        assert_eq!(format!("{keyring:?}"), "Keyring(..)");
    }

    #[test]
    fn any_flipped_or_missing_byte_is_refused() {
        let (keyring, identity) = keyring();
        let good = keyring.wrap().unwrap();
        let opens = |bytes: &[u8]| matches!(open(bytes, &[&identity]), Ok(Some(_)));
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert!(!opens(&bad), "byte {i}");
            assert!(!opens(&good[..i]), "cut at {i}");
        }
        assert!(!opens(&[&good[..], b"x"].concat()));
        assert!(opens(&good));
    }

    #[test]
    fn what_is_no_keyring_is_named_even_under_a_whole_seal() {
        let (keyring, identity) = keyring();
        let sealed = |plain: &[u8]| {
            let encryptor =
                Encryptor::with_recipients(std::iter::once(&identity.to_public() as &dyn AgeRecipient))
                    .unwrap();
            let mut sealed = Vec::new();
            let mut writer = encryptor.wrap_output(&mut sealed).unwrap();
            writer.write_all(plain).unwrap();
            writer.finish().unwrap();
            sealed
        };
        let mut plain = Vec::new();
        let wrapped = keyring.wrap().unwrap();
        let decryptor = Decryptor::new(&wrapped[..]).unwrap();
        let mut reader = decryptor.decrypt(std::iter::once(&identity as &dyn Identity)).unwrap();
        reader.read_to_end(&mut plain).unwrap();
        assert!(open(&sealed(&plain), &[&identity]).unwrap().unwrap() == keyring);
        for cut in 0..plain.len() {
            let error = open(&sealed(&plain[..cut]), &[&identity]).unwrap_err();
            assert!(matches!(error, OpenError::Damaged { .. }), "cut at {cut}: {error}");
        }
        let changed = |at: usize, to: u8| {
            let mut bad = plain.clone();
            bad[at] = to;
            open(&sealed(&bad), &[&identity]).unwrap_err()
        };
        assert!(matches!(changed(0, b'w'), OpenError::Damaged { .. }));
        assert!(matches!(changed(9, 0xff), OpenError::OtherFormat { .. }));
        assert!(matches!(changed(42, 2), OpenError::Damaged { .. }));
        let long = [&plain[..], &[0; LONGEST_PLAIN]].concat();
        assert!(matches!(open(&sealed(&long), &[&identity]), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn a_changed_secret_is_known_with_the_one_before_until_it_is_settled() {
        let (keyring, identity) = keyring();
        let list = keyring.recipients.to_vec();
        let keys = |keyring: &Keyring| keyring.slot_keys("00ff");
        let renewed = keyring.changed(list.clone(), StoreSecret::Renewed);
        assert!(renewed.is_being_changed() && !keyring.is_being_changed());
        assert_ne!(keys(&renewed).current, keys(&keyring).current);
        assert_eq!(keys(&renewed).previous, Some(keys(&keyring).current));
        assert_eq!(renewed.directory_name("n"), keyring.directory_name("n"));
        let renewed = open(&renewed.wrap().unwrap(), &[&identity]).unwrap().unwrap();
        let kept = renewed.changed(list.clone(), StoreSecret::Kept);
        assert!(kept == renewed, "adding somebody meanwhile loses nothing");
        let settled = kept.changed(list, StoreSecret::Settled);
        assert_eq!(keys(&settled).current, keys(&renewed).current);
        assert_eq!(keys(&settled).previous, None);
        assert_ne!(keys(&settled).current, settled.slot_keys("00fe").current);
        let proof = |keyring: &Keyring| keyring.prover("n").prove("owner", b"said");
        assert!(proof(&settled) == proof(&renewed) && proof(&settled) != proof(&keyring));
    }

    #[test]
    fn names_and_keys_differ_by_namespace_and_by_keyring() {
        let ((a, _), (b, _)) = (keyring(), keyring());
        assert_eq!(a.directory_name("x"), a.directory_name("x"));
        assert_ne!(a.directory_name("x"), a.directory_name("y"));
        assert_ne!(a.directory_name("x"), b.directory_name("x"));
        assert!(a.slot_keys("x").current == a.slot_keys("x").current);
        assert!(a.slot_keys("x").current != a.slot_keys("y").current);
        assert!(a.slot_keys("x").current != b.slot_keys("x").current);
    }
}
