//! The file that a passphrase opens: an age identity of its own, sealed with scrypt.
//!
//! The identity's public key is one of the keyring's recipients. So the keyring is wrapped anew for everyone
//! without anybody's passphrase, and a passphrase is changed without the others. What is sealed is an identity
//! file as `age-keygen` writes it: `age -d -i passphrase-1.age recipients.age` opens the keyring.

use std::io::Read;
use std::iter;
use std::path::Path;

use age::secrecy::ExposeSecret;
use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient, x25519};
use zeroize::Zeroizing;

use super::identity;
use super::keyring::damage;
use super::secret::Passphrase;
use crate::files::read_small;
use crate::open_error::OpenError;

/// scrypt's log2(N) for passphrases: the age tool's own choice, about a second of work.
pub(super) const WORK_FACTOR: u8 = 18;
/// A store made on a fast machine opens on a slow one; beyond this, a hostile file only burns time.
pub(super) const HIGHEST_WORK_FACTOR: u8 = 22;
/// Far more than one sealed identity needs.
const LONGEST: u64 = 8 * 1024;

/// A new identity, and the bytes of the file that holds it for a passphrase.
pub(super) fn make(passphrase: &Passphrase) -> Result<(x25519::Recipient, Vec<u8>), age::EncryptError> {
    let identity = x25519::Identity::generate();
    let secret = identity.to_string();
    let plain = Zeroizing::new(format!("{}\n", secret.expose_secret()));
    let mut recipient = age::scrypt::Recipient::new(passphrase.to_age());
    recipient.set_work_factor(WORK_FACTOR);
    let encryptor = Encryptor::with_recipients(iter::once(&recipient as &dyn Recipient))?;
    let mut sealed = Vec::new();
    let mut writer = encryptor.wrap_output(&mut sealed)?;
    std::io::Write::write_all(&mut writer, plain.as_bytes())?;
    writer.finish()?;
    Ok((identity.to_public(), sealed))
}

/// The identity in the file at `path`, or `None` if it is another passphrase's or gone.
pub(super) fn open(path: &Path, passphrase: &Passphrase) -> Result<Option<x25519::Identity>, OpenError> {
    let damaged = |reason: &str| OpenError::Damaged { path: path.to_owned(), reason: reason.into() };
    let Some(sealed) = read_small(path, LONGEST)? else {
        return Ok(None);
    };
    let mut with = age::scrypt::Identity::new(passphrase.to_age());
    with.set_max_work_factor(HIGHEST_WORK_FACTOR);
    let opened = Decryptor::new(&sealed[..])
        .and_then(|decryptor| decryptor.decrypt(iter::once(&with as &dyn Identity)));
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(
            DecryptError::NoMatchingKeys | DecryptError::KeyDecryptionFailed | DecryptError::DecryptionFailed,
        ) => return Ok(None),
        Err(error) => return Err(damaged(damage(&error))),
    };
    let mut plain = Zeroizing::new(Vec::with_capacity(LONGEST as usize));
    let read = reader.by_ref().take(LONGEST).read_to_end(&mut plain);
    read.map_err(|_| damaged("its seal is broken"))?;
    match identity::parse(&plain).ok().as_deref() {
        Some([identity]) => Ok(Some(identity.clone())),
        _ => Err(damaged("it does not hold an identity")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_right_passphrase_opens_it_and_damage_is_named_without_work() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passphrase-1.age");
        // Shorter than one that may be set: it opens what it sealed.
        let right = Passphrase::new("horse".into());
        let (key, sealed) = make(&right).unwrap();
        let text = String::from_utf8_lossy(&sealed);
        assert!(text.starts_with("age-encryption.org/v1\n-> scrypt ") && text.contains(" 18\n"));
        fs::write(&path, &sealed).unwrap();
        assert_eq!(open(&path, &right).unwrap().unwrap().to_public(), key);
        // The rest of the file is age's: cut in its head or dearer than allowed, it is refused before scrypt.
        let header = text.find("---").unwrap();
        for bad in [&sealed[..0], &sealed[..header], b"hello", &[0; 9_000]] {
            fs::write(&path, bad).unwrap();
            assert!(matches!(open(&path, &right), Err(OpenError::Damaged { .. })));
        }
        let dear = sealed.windows(4).position(|part| part == b" 18\n").unwrap();
        let mut bad = sealed.clone();
        bad[dear + 1..dear + 3].copy_from_slice(b"23");
        fs::write(&path, bad).unwrap();
        let error = open(&path, &right).err().unwrap().to_string();
        assert!(error.contains("work factor"), "{error}");
        // After it: one whose seal is cut.
        fs::write(&path, &sealed[..sealed.len() - 1]).unwrap();
        assert!(matches!(open(&path, &right), Err(OpenError::Damaged { .. })));
        fs::remove_file(&path).unwrap();
        assert!(open(&path, &right).unwrap().is_none());
    }
}
