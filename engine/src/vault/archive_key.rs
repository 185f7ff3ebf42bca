//! The key that seals archives and opens them: the store's own, as an age file takes it.
//!
//! An archive is sealed to the identity's recipients or to the passphrase, and not under the store
//! secret, so that `age -d` opens it when nothing else is left. For the same reason the key is had without a
//! data directory: an archive is opened before there is anything to restore it into.

use std::io::{self, Read, Write};
use std::iter;
use std::path::PathBuf;

use age::stream::{StreamReader, StreamWriter};
use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient, x25519};

use super::identity;
use super::keyring::{HIGHEST_WORK_FACTOR, WORK_FACTOR};
use super::open::VaultOptions;
use super::secret::Passphrase;
use crate::open_error::OpenError;

/// What seals an archive and opens it. `Debug` shows nothing of it.
pub struct ArchiveKey(Kind);

enum Kind {
    Identities { identities: Vec<x25519::Identity>, path: PathBuf },
    Passphrase(Passphrase),
}

/// Why an archive did not open.
pub(crate) enum UnopenedArchive {
    WrongIdentity(PathBuf),
    WrongPassphrase,
    NeedsPassphrase,
    NeedsIdentity,
    NotAge,
    Damaged(&'static str),
    Io(io::Error),
}

impl ArchiveKey {
    /// The key that these options name. Makes nothing and looks at no store.
    ///
    /// # Errors
    /// [`OpenError`] when the identity file is missing or malformed, or no usable passphrase was given.
    pub fn of(options: &VaultOptions) -> Result<Self, OpenError> {
        if let Some(passphrase) = &options.passphrase {
            return match () {
                () if options.identity.is_some() => Err(OpenError::IdentityAndPassphrase),
                () if passphrase.is_empty() => Err(OpenError::EmptyPassphrase),
                () => Ok(Self(Kind::Passphrase(passphrase.clone()))),
            };
        }
        let path = options.identity_path();
        match identity::load(&path)? {
            Some(identities) => Ok(Self(Kind::Identities { identities, path })),
            None => Err(OpenError::NoIdentity(path)),
        }
    }

    /// What a person needs to open an archive that this key seals: the identity file, or `None` for the
    /// passphrase.
    pub fn identity_path(&self) -> Option<&std::path::Path> {
        match &self.0 {
            Kind::Identities { path, .. } => Some(path),
            Kind::Passphrase(_) => None,
        }
    }

    /// Seals what is written to it. The stream must be finished, or what it wrote does not open.
    pub(crate) fn seal<W: Write>(&self, writer: W) -> io::Result<StreamWriter<W>> {
        let sealed = match &self.0 {
            Kind::Identities { identities, .. } => {
                let recipients: Vec<_> = identities.iter().map(x25519::Identity::to_public).collect();
                Encryptor::with_recipients(recipients.iter().map(|recipient| recipient as &dyn Recipient))
            }
            Kind::Passphrase(passphrase) => {
                let mut recipient = age::scrypt::Recipient::new(passphrase.to_age());
                recipient.set_work_factor(WORK_FACTOR);
                Encryptor::with_recipients(iter::once(&recipient as &dyn Recipient))
            }
        };
        sealed.map_err(io::Error::other)?.wrap_output(writer)
    }

    /// Opens what was sealed. What is read is authentic; that it is whole is known at its end.
    pub(crate) fn open<R: Read>(&self, reader: R) -> Result<StreamReader<R>, UnopenedArchive> {
        let decryptor = Decryptor::new(reader).map_err(|error| self.unopened(error))?;
        match (&self.0, decryptor.is_scrypt()) {
            (Kind::Identities { .. }, true) => Err(UnopenedArchive::NeedsPassphrase),
            (Kind::Passphrase(_), false) => Err(UnopenedArchive::NeedsIdentity),
            (Kind::Identities { identities, .. }, false) => {
                { decryptor.decrypt(identities.iter().map(|identity| identity as &dyn Identity)) }
                    .map_err(|error| self.unopened(error))
            }
            (Kind::Passphrase(passphrase), true) => {
                let mut identity = age::scrypt::Identity::new(passphrase.to_age());
                identity.set_max_work_factor(HIGHEST_WORK_FACTOR);
                decryptor
                    .decrypt(iter::once(&identity as &dyn Identity))
                    .map_err(|error| self.unopened(error))
            }
        }
    }

    fn unopened(&self, error: DecryptError) -> UnopenedArchive {
        match error {
            DecryptError::NoMatchingKeys
            | DecryptError::KeyDecryptionFailed
            | DecryptError::DecryptionFailed => match &self.0 {
                Kind::Identities { path, .. } => UnopenedArchive::WrongIdentity(path.clone()),
                Kind::Passphrase(_) => UnopenedArchive::WrongPassphrase,
            },
            DecryptError::InvalidMac => UnopenedArchive::Damaged("its age header was changed"),
            DecryptError::ExcessiveWork { .. } => {
                UnopenedArchive::Damaged("its passphrase work factor is out of range")
            }
            DecryptError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                UnopenedArchive::Io(error)
            }
            _ => UnopenedArchive::NotAge,
        }
    }
}

impl std::fmt::Debug for ArchiveKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ArchiveKey(..)")
    }
}
