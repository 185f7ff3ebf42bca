//! Who may open the memories, and changing that.
//!
//! Owns the order of steps in which a change is made, so that it can be cut short after any of them: the store
//! opens then, and the next [`Keys::finish`] completes what was begun. Writes no key itself (that is the
//! [vault](crate::vault)'s).
//!
//! Whoever is added needs the keyring wrapped anew, and nothing else. Whoever is removed has seen the store
//! secret, so a new one is made, and the one before it stays in the keyring until nothing is sealed under it:
//!
//! 1. The seats of all stores are taken; a store that is open somewhere ends it here.
//! 2. The file of a new passphrase is made, if there is one.
//! 3. The keyring is replaced: a new secret, the one before it, the new recipients.
//! 4. Each store is sealed under the new secret.
//! 5. The keyring is replaced: without the secret before.
//! 6. The files of passphrases that open nothing any more are removed.
//!
//! No record is read or written by any of this.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use age::x25519;

use crate::files::Made;
use crate::ledger;
use crate::lock::{Remembers, StoreLock};
use crate::open::reseal;
use crate::open_error::OpenError;
use crate::seat::{store_path, unfinished_path};
use crate::vault::{MOST_PASSPHRASES, MOST_RECIPIENTS, Passphrase, StoreSecret, Vault, label_fault};
pub use crate::vault::{Recipient, RecipientKind};

/// Why the recipients were not changed, or not to the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipientError {
    /// A process has a store open.
    #[error(
        "a running warm-mcp has a store in {} open, and what it holds would keep the old keys: close the clients that \
         use it, then run this again; nothing was changed",
        .0.display()
    )]
    InUse(PathBuf),

    /// The new secret is in force, and not all stores are sealed under it yet.
    #[error(
        "the change is made but not finished: {0}\n\
         Until it is, what was there before may still open with the old keys. Nothing is lost, and every memory can be \
         read; once that is mended, `warm-mcp recipients list` finishes it"
    )]
    Unfinished(Box<OpenError>),

    /// Not a key that can be added.
    #[error(
        "that is not an age recipient: give a public key that starts with age1, as age-keygen shows it, or \
         --identity-file FILE"
    )]
    NotAKey,

    /// A secret key was given where its public key was needed.
    #[error(
        "that is a secret key, and whoever saw this command line has it now: don't use it, make another; to add an \
         identity name its file with --identity-file, or give its public key, which starts with age1"
    )]
    SecretKey,

    /// The file to be made is there.
    #[error("{} is there already: add it with --identity-file, or choose another name", .0.display())]
    FileExists(PathBuf),

    /// It is a recipient already.
    #[error("{0} is a recipient already")]
    AlreadyThere(String),

    /// A label that is not usable.
    #[error("the label {0}: give up to 64 bytes of plain text")]
    Label(&'static str),

    /// A label that another has.
    #[error("the label {0} is taken: choose another")]
    LabelTaken(String),

    /// Nobody goes by that name.
    #[error(
        "no recipient goes by that name: `warm-mcp recipients list` shows them; give a label, a public key or \
         passphrase-N"
    )]
    Unknown,

    /// The passphrase that is meant is not clear.
    #[error(
        "the store has {0} passphrases: say which one is meant, as passphrase-N; `warm-mcp recipients list` shows them"
    )]
    WhichPassphrase(usize),

    /// There is no passphrase.
    #[error("the store has no passphrase: `warm-mcp passphrase add` sets one")]
    NoPassphrase,

    /// Nobody would be left.
    #[error(
        "{0} is the only one who can open the memories: add another recipient first, or nothing would open them"
    )]
    LastOne(String),

    /// It opened the store.
    #[error(
        "{name} is what opened the store just now, and would not open it again; that could still be opened by:\n\
         {others}\nTo remove it all the same, add --yes"
    )]
    OwnKey {
        /// Its name.
        name: String,
        /// The names of the others, a line each.
        others: String,
    },

    /// More than a keyring holds.
    #[error(
        "a store has at most {MOST_RECIPIENTS} recipients, {MOST_PASSPHRASES} of them passphrases: remove one first"
    )]
    TooMany,

    /// What the files or the system say.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The keys of a data directory, held so that nobody else changes them.
pub struct Keys {
    vault: Vault,
    _lock: File,
}

/// A step that was just made or is to be made. An error ends the change there.
enum Step<'a> {
    /// The file of a new passphrase is there.
    PassphraseMade,
    /// The new secret is in force.
    Renewed,
    /// A store is to be sealed under it, and not under the one before.
    Reseal(&'a Vault, &'a Path),
    /// The secret before is gone.
    Settled,
}

type Steps<'s> = &'s mut dyn FnMut(Step<'_>) -> Result<(), OpenError>;

/// What is done at each step.
fn work(step: Step<'_>) -> Result<(), OpenError> {
    match step {
        Step::Reseal(vault, dir) => reseal(vault, dir),
        Step::PassphraseMade | Step::Renewed | Step::Settled => Ok(()),
    }
}

impl Keys {
    /// Waits until nobody else changes the keys, and holds them.
    ///
    /// # Errors
    /// As [`Vault::renewed`]: the keys may have been changed since the vault was opened.
    pub fn hold(vault: &Vault) -> Result<Self, RecipientError> {
        let lock = vault.lock_keys()?;
        Ok(Self { vault: vault.renewed()?, _lock: lock })
    }

    /// The vault as it is now.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Completes a change that was cut short. Says whether there was one.
    ///
    /// # Errors
    /// [`RecipientError::InUse`] if a store is open, [`RecipientError::Unfinished`] if it was cut short again.
    pub fn finish(&mut self) -> Result<bool, RecipientError> {
        self.finish_by(&mut work)
    }

    fn finish_by(&mut self, steps: Steps<'_>) -> Result<bool, RecipientError> {
        if !self.vault.has_unfinished_change() {
            self.vault.sweep_keys()?;
            return Ok(false);
        }
        let stores = self.claim_stores()?;
        self.settle(stores, steps).map(|()| true)
    }

    /// Adds a recipient by its public key.
    ///
    /// # Errors
    /// What is wrong with the key or the label; nothing is changed then.
    pub fn add(&mut self, key: &str, label: &str) -> Result<Recipient, RecipientError> {
        let key = key.trim();
        if key.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") {
            return Err(RecipientError::SecretKey);
        }
        let key: x25519::Recipient = key.parse().map_err(|_| RecipientError::NotAKey)?;
        let recipient = self.new_identity(key, label)?;
        self.add_all(vec![recipient.clone()])?;
        Ok(recipient)
    }

    /// Adds those whose identities are in a file. Of several, the label is the first one's. Those that are there
    /// already stay as they are.
    ///
    /// # Errors
    /// What is wrong with the file or the label, [`RecipientError::AlreadyThere`] if no identity in it is new.
    pub fn add_file(&mut self, path: &Path, label: &str) -> Result<Vec<Recipient>, RecipientError> {
        let (mut added, mut there) = (Vec::<Recipient>::new(), None);
        for key in Vault::keys_in(path)? {
            let known = self.vault.recipients().iter().find(|known| known.public_key() == key.to_string());
            if let Some(known) = known {
                there = Some(known.name());
            } else if !added.iter().any(|other| other.public_key() == key.to_string()) {
                added.push(self.new_identity(key, if added.is_empty() { label } else { "" })?);
            }
        }
        match there {
            Some(name) if added.is_empty() => Err(RecipientError::AlreadyThere(name)),
            _ => {
                self.add_all(added.clone())?;
                Ok(added)
            }
        }
    }

    /// Makes an identity file where there is none, and adds its identity.
    ///
    /// # Errors
    /// [`RecipientError::FileExists`], and what [`Keys::add_file`] returns.
    pub fn add_new_file(&mut self, path: &Path, label: &str) -> Result<Vec<Recipient>, RecipientError> {
        self.check_label(label)?;
        if self.vault.recipients().len() >= MOST_RECIPIENTS {
            return Err(RecipientError::TooMany);
        }
        match Vault::make_identity(path)? {
            Made::ByUs => self.add_file(path, label),
            Made::Before => Err(RecipientError::FileExists(path.to_owned())),
        }
    }

    /// Sets one more passphrase.
    ///
    /// # Errors
    /// [`OpenError::ShortPassphrase`], [`RecipientError::TooMany`], or what stood in the way.
    pub fn add_passphrase(&mut self, passphrase: &Passphrase) -> Result<Recipient, RecipientError> {
        if self.passphrases().len() >= MOST_PASSPHRASES || self.vault.recipients().len() >= MOST_RECIPIENTS {
            return Err(RecipientError::TooMany);
        }
        let recipient = self.vault.make_passphrase(passphrase)?;
        self.add_all(vec![recipient.clone()])?;
        Ok(recipient)
    }

    /// Puts another passphrase in the place of one: of the one that is named, or that opened the store, or that is
    /// the only one.
    ///
    /// # Errors
    /// As [`Keys::add_passphrase`] and [`Keys::remove`].
    pub fn change_passphrase(
        &mut self,
        name: Option<&str>,
        passphrase: &Passphrase,
    ) -> Result<Recipient, RecipientError> {
        self.change_passphrase_by(name, passphrase, &mut work)
    }

    fn change_passphrase_by(
        &mut self,
        name: Option<&str>,
        passphrase: &Passphrase,
        steps: Steps<'_>,
    ) -> Result<Recipient, RecipientError> {
        self.finish_by(steps)?;
        let old = self.passphrase(name)?;
        let stores = self.claim_stores()?;
        let new = self.vault.make_passphrase(passphrase)?;
        steps(Step::PassphraseMade)?;
        let swapped = |recipient: &Recipient| if *recipient == old { new.clone() } else { recipient.clone() };
        let recipients = self.vault.recipients().iter().map(swapped).collect();
        self.renew(recipients, stores, steps)?;
        Ok(new)
    }

    /// Removes a passphrase: the one that is named, or that is the only one.
    ///
    /// # Errors
    /// As [`Keys::remove`].
    pub fn remove_passphrase(
        &mut self,
        name: Option<&str>,
        even_own: bool,
    ) -> Result<Recipient, RecipientError> {
        let name = self.passphrase(name)?.name();
        self.remove(&name, even_own)
    }

    /// Removes a recipient, by label, public key or `passphrase-N`, and makes a new store secret.
    ///
    /// # Errors
    /// [`RecipientError::InUse`] while a store is open; [`RecipientError::LastOne`]; [`RecipientError::OwnKey`]
    /// for the one that opened the vault, unless `even_own`. Nothing is changed then. After
    /// [`RecipientError::Unfinished`] it is removed, and [`Keys::finish`] does the rest.
    pub fn remove(&mut self, name: &str, even_own: bool) -> Result<Recipient, RecipientError> {
        self.remove_by(name, even_own, &mut work)
    }

    fn remove_by(
        &mut self,
        name: &str,
        even_own: bool,
        steps: Steps<'_>,
    ) -> Result<Recipient, RecipientError> {
        let named = self.vault.recipients().iter().find(|recipient| recipient.is_called(name));
        let removed = named.ok_or(RecipientError::Unknown)?.clone();
        let stay: Vec<_> =
            self.vault.recipients().iter().filter(|other| **other != removed).cloned().collect();
        if stay.is_empty() {
            return Err(RecipientError::LastOne(removed.name()));
        }
        if self.vault.opened_by() == Some(&removed) && !even_own {
            let others: Vec<_> = stay.iter().map(|other| format!("  {}", other.name())).collect();
            return Err(RecipientError::OwnKey { name: removed.name(), others: others.join("\n") });
        }
        self.finish_by(steps)?;
        let stores = self.claim_stores()?;
        self.renew(stay, stores, steps)?;
        Ok(removed)
    }

    fn renew(
        &mut self,
        recipients: Vec<Recipient>,
        stores: Vec<(PathBuf, StoreLock)>,
        steps: Steps<'_>,
    ) -> Result<(), RecipientError> {
        self.vault = self.vault.rewrap(recipients, StoreSecret::Renewed)?;
        steps(Step::Renewed).map_err(unfinished)?;
        self.settle(stores, steps)
    }

    /// Seals every store under the new secret and lets the one before it go.
    fn settle(&mut self, stores: Vec<(PathBuf, StoreLock)>, steps: Steps<'_>) -> Result<(), RecipientError> {
        for (dir, _) in &stores {
            steps(Step::Reseal(&self.vault, dir)).map_err(unfinished)?;
        }
        ledger::write_all_anew(&self.vault).map_err(unfinished)?;
        let recipients = self.vault.recipients().to_vec();
        self.vault = self.vault.rewrap(recipients, StoreSecret::Settled).map_err(unfinished)?;
        steps(Step::Settled).map_err(unfinished)?;
        self.vault.sweep_keys().map_err(unfinished)
    }

    /// The directories of all stores, with their locks, or the error that one is open.
    fn claim_stores(&self) -> Result<Vec<(PathBuf, StoreLock)>, RecipientError> {
        let mut stores = Vec::new();
        for dir in self.vault.namespace_dirs()? {
            let mut lock = match StoreLock::take(&dir, Duration::ZERO) {
                Err(OpenError::InUse(_)) => {
                    return Err(RecipientError::InUse(self.vault.data_dir().to_owned()));
                }
                taken => taken?,
            };
            let remembers = lock.remembers().map_err(OpenError::io("read the lock in", &dir))?;
            let there = |path: PathBuf| path.try_exists().map_err(OpenError::io("look for", &path));
            // One that is not finished holds nothing yet, and is made anew.
            let has_store = there(store_path(&dir))?
                || (remembers == Remembers::StoreMade && there(unfinished_path(&dir))?);
            match (has_store, remembers) {
                (true, _) => stores.push((dir, lock)),
                // Were it moved back, nothing would open it any more.
                (false, Remembers::StoreMade) => return Err(OpenError::StoreMissing(store_path(&dir)).into()),
                (false, _) => {}
            }
        }
        Ok(stores)
    }

    fn new_identity(&self, key: x25519::Recipient, label: &str) -> Result<Recipient, RecipientError> {
        self.check_label(label)?;
        let key_text = key.to_string();
        if let Some(known) = self.vault.recipients().iter().find(|known| known.public_key() == key_text) {
            return Err(RecipientError::AlreadyThere(known.name()));
        }
        Ok(Recipient::new(RecipientKind::Identity, key, label.to_owned()))
    }

    fn check_label(&self, label: &str) -> Result<(), RecipientError> {
        if let Some(fault) = label_fault(label) {
            return Err(RecipientError::Label(fault));
        }
        if !label.is_empty() && self.vault.recipients().iter().any(|known| known.label() == label) {
            return Err(RecipientError::LabelTaken(label.to_owned()));
        }
        Ok(())
    }

    fn add_all(&mut self, added: Vec<Recipient>) -> Result<(), RecipientError> {
        let recipients = [self.vault.recipients(), &added].concat();
        if recipients.len() > MOST_RECIPIENTS {
            return Err(RecipientError::TooMany);
        }
        self.vault = self.vault.rewrap(recipients, StoreSecret::Kept)?;
        Ok(())
    }

    fn passphrases(&self) -> Vec<Recipient> {
        let is_one = |recipient: &&Recipient| matches!(recipient.kind(), RecipientKind::Passphrase(_));
        self.vault.recipients().iter().filter(is_one).cloned().collect()
    }

    /// The passphrase that is meant.
    fn passphrase(&self, name: Option<&str>) -> Result<Recipient, RecipientError> {
        let all = self.passphrases();
        let own = self.vault.opened_by();
        match (name, &all[..]) {
            (_, []) => Err(RecipientError::NoPassphrase),
            (Some(name), _) => {
                all.iter().find(|one| one.is_called(name)).cloned().ok_or(RecipientError::Unknown)
            }
            (None, [only]) => Ok(only.clone()),
            (None, several) => {
                let own = several.iter().find(|one| own == Some(*one));
                own.cloned().ok_or(RecipientError::WhichPassphrase(several.len()))
            }
        }
    }
}

fn unfinished(error: OpenError) -> RecipientError {
    RecipientError::Unfinished(Box::new(error))
}

#[cfg(test)]
mod tests;
