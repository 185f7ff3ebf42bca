//! The key that seals archives and opens them: the store's own, as an age file takes it.
//!
//! An archive is sealed to identities or to the passphrase, and not under the store secret, so that `age -d`
//! opens it when nothing else is left. For the same reason the key is had without a data directory: an archive
//! is opened before there is anything to restore it into.
//!
//! Where there is a vault, an archive is sealed to all identities that may open it. The identity of a passphrase
//! is not among them: its secret lies in `keys`, and an archive must open when that is lost. age takes a
//! passphrase alone, so an archive under the passphrase is under that only.

use std::io::{self, Read, Write};
use std::iter;
use std::path::PathBuf;

use age::stream::{StreamReader, StreamWriter};
use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient as AgeRecipient, x25519};

use super::identity;
use super::open::{Vault, VaultOptions};
use super::passphrase_file::{HIGHEST_WORK_FACTOR, WORK_FACTOR};
use super::recipients::{Recipient, RecipientKind};
use super::secret::Passphrase;
use crate::open_error::OpenError;

/// What seals an archive and opens it. `Debug` shows nothing of it.
pub struct ArchiveKey(Kind);

enum Kind {
    Identities {
        identities: Vec<x25519::Identity>,
        /// To whom it is sealed.
        recipients: Vec<x25519::Recipient>,
        path: PathBuf,
    },
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
            Some(identities) => {
                let recipients = identities.iter().map(x25519::Identity::to_public).collect();
                Ok(Self(Kind::Identities { identities, recipients, path }))
            }
            None => Err(OpenError::NoIdentity(path)),
        }
    }

    /// The same key, which seals to every identity that may open the vault.
    #[must_use]
    pub fn for_all_of(mut self, vault: &Vault) -> Self {
        if let Kind::Identities { recipients, .. } = &mut self.0 {
            let is_identity = |recipient: &&Recipient| recipient.kind() == RecipientKind::Identity;
            let all = vault.recipients().iter().filter(is_identity);
            *recipients = all.map(|recipient| recipient.key.clone()).collect();
        }
        self
    }

    /// How many identities open what it seals; none for a passphrase.
    pub fn identities(&self) -> usize {
        match &self.0 {
            Kind::Identities { recipients, .. } => recipients.len(),
            Kind::Passphrase(_) => 0,
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
            Kind::Identities { recipients, .. } => {
                Encryptor::with_recipients(recipients.iter().map(|recipient| recipient as &dyn AgeRecipient))
            }
            Kind::Passphrase(passphrase) => {
                let mut recipient = age::scrypt::Recipient::new(passphrase.to_age());
                recipient.set_work_factor(WORK_FACTOR);
                Encryptor::with_recipients(iter::once(&recipient as &dyn AgeRecipient))
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
