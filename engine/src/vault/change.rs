//! Writing the keyring anew, for other recipients or with another store secret.
//!
//! Each of these replaces or removes one file, whole. In which order that makes a change that can be cut short
//! anywhere is the business of [`recipients`](crate::recipients). Whoever calls holds the lock of the keys.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use age::x25519;

use super::identity;
use super::keyring::StoreSecret;
use super::open::{Vault, wrap_failed};
use super::passphrase_file;
use super::recipients::{NUMBERS, Recipient, RecipientKind};
use super::secret::Passphrase;
use crate::files::{Made, make_durable, replace_durable, sweep, sync_dir};
use crate::open_error::OpenError;

impl Vault {
    /// Who may open the memories, in the order in which they were added.
    pub fn recipients(&self) -> &[Recipient] {
        self.keyring.recipients()
    }

    /// Whether a change of the store secret was begun and is not finished yet: what was sealed before may still be
    /// opened with keys of before.
    pub fn has_unfinished_change(&self) -> bool {
        self.keyring.is_being_changed()
    }

    /// The file that this recipient's passphrase would open, where it is missing.
    ///
    /// # Errors
    /// [`OpenError::Io`] if that can't be seen.
    pub fn missing_file(&self, recipient: &Recipient) -> Result<Option<PathBuf>, OpenError> {
        let RecipientKind::Passphrase(number) = recipient.kind else {
            return Ok(None);
        };
        let path = self.layout().passphrase(number);
        let there = path.try_exists().map_err(OpenError::io("look for", &path))?;
        Ok((!there).then_some(path))
    }

    /// Writes the keyring for these recipients; returns the vault that has it.
    pub(crate) fn rewrap(&self, recipients: Vec<Recipient>, secret: StoreSecret) -> Result<Self, OpenError> {
        let keyring = self.keyring.changed(recipients, secret);
        let path = self.layout().recipients();
        let wrapped = keyring.wrap().map_err(|error| wrap_failed(&path, &error))?;
        replace_durable(&path, &wrapped)?;
        Ok(self.with(keyring, &wrapped))
    }

    /// Makes the file of a passphrase, under a number that is free. It opens nothing before the recipient that
    /// is returned is one of the keyring's.
    pub(crate) fn make_passphrase(&self, passphrase: &Passphrase) -> Result<Recipient, OpenError> {
        passphrase.check_new()?;
        self.sweep_keys()?;
        let layout = self.layout();
        let taken = |number| self.recipients().iter().any(|r| r.kind == RecipientKind::Passphrase(number));
        let number = NUMBERS.clone().find(|number| !taken(*number)).unwrap_or(*NUMBERS.end());
        let path = layout.passphrase(number);
        let (key, sealed) = passphrase_file::make(passphrase).map_err(|error| wrap_failed(&path, &error))?;
        make_durable(&path, &sealed)?;
        Ok(Recipient::new(RecipientKind::Passphrase(number), key, String::new()))
    }

    /// Removes what opens nothing: files of passphrases that are no recipients, and what writing that was cut
    /// short left.
    pub(crate) fn sweep_keys(&self) -> Result<(), OpenError> {
        let layout = self.layout();
        sweep(&layout.keys());
        for (number, path) in layout.passphrases()? {
            if !self.recipients().iter().any(|r| r.kind == RecipientKind::Passphrase(number)) {
                fs::remove_file(&path).map_err(OpenError::io("remove", &path))?;
            }
        }
        sync_dir(&layout.keys()).map_err(OpenError::io("sync the directory", &layout.keys()))
    }

    /// The public keys of the identities in a file.
    pub(crate) fn keys_in(path: &Path) -> Result<Vec<x25519::Recipient>, OpenError> {
        match identity::load(path)? {
            Some(identities) => Ok(identities.iter().map(x25519::Identity::to_public).collect()),
            None => Err(OpenError::io("read", path)(io::ErrorKind::NotFound.into())),
        }
    }

    /// Makes an identity file where there is none.
    pub(crate) fn make_identity(path: &Path) -> Result<Made, OpenError> {
        identity::create(path)
    }
}
