//! Opening a data directory, and setting one up at the first start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use age::{Identity, x25519};
use sha2::{Digest, Sha256};

use super::identity;
use super::keyring::{self, Keyring};
use super::passphrase_file;
use super::proof::Prover;
use super::recipients::{NUMBERS, Recipient, RecipientKind};
use super::seal::{open_with_nonce, seal_with_nonce};
use super::secret::Passphrase;
use super::slot::SlotKeys;
use crate::files::{Made, make_durable, open_private, private_dir, read_small, sweep};
use crate::open_error::OpenError;
use crate::sealed::FORMAT_VERSION;

/// Where the memories are and what opens them.
#[derive(Clone, Debug)]
pub struct VaultOptions {
    /// Everything durable is below this directory.
    pub data_dir: PathBuf,
    /// The age identity file; `identity.txt` in the data directory when absent.
    pub identity: Option<PathBuf>,
    /// Opens a store that is sealed to a passphrase.
    pub passphrase: Option<Passphrase>,
}

impl VaultOptions {
    /// The identity file that these options name.
    pub fn identity_path(&self) -> PathBuf {
        self.identity.clone().unwrap_or_else(|| self.data_dir.join("identity.txt"))
    }
}

/// An opened data directory: its keys, ready to open the stores in it.
#[derive(Clone, Debug)]
pub struct Vault {
    /// What it is opened with again.
    options: VaultOptions,
    opened_by: x25519::Recipient,
    pub(super) keyring: Keyring,
    /// Of the file that the keyring was read from, to see that another has taken its place.
    digest: [u8; 32],
    created: bool,
}

impl Vault {
    /// Opens the data directory, or sets it up if nothing is there yet.
    ///
    /// The first start makes an age identity (unless a passphrase is given or the named identity
    /// file exists) and a keyring sealed to it. Of two first starts at once, both end up with the
    /// same identity and keyring.
    ///
    /// # Errors
    /// A named [`OpenError`] for each thing that can be wrong; nothing is changed then.
    pub fn open(options: &VaultOptions) -> Result<Self, OpenError> {
        match Self::open_existing(options) {
            Err(OpenError::NoStore(_)) => Self::create(options),
            opened => opened,
        }
    }

    /// Opens the data directory; never makes anything.
    ///
    /// # Errors
    /// [`OpenError::NoStore`] if nothing has been set up here, else as [`Vault::open`].
    pub fn open_existing(options: &VaultOptions) -> Result<Self, OpenError> {
        let layout = Layout(&options.data_dir);
        // A first start in another process makes the format, then the keyring, then a store: looked for
        // the other way round, what is found never lacks what was made before it.
        if options.passphrase.is_some() && options.identity.is_some() {
            return Err(OpenError::IdentityAndPassphrase);
        }
        if options.data_dir.is_file() {
            return Err(OpenError::NotADirectory(options.data_dir.clone()));
        }
        let has_stores = layout.has_stores()?;
        let path = layout.recipients();
        let wrapped = read_small(&path, keyring::LONGEST)?;
        let format_known = layout.check_format()?;
        let Some(wrapped) = wrapped else {
            // A store without its keyring must never get a new one: it would look empty.
            return Err(if has_stores {
                OpenError::KeyringMissing { keyring: path, data_dir: options.data_dir.clone() }
            } else {
                OpenError::NoStore(options.data_dir.clone())
            });
        };
        if !format_known {
            return Err(OpenError::Damaged {
                path: layout.format(),
                reason: format!("it is missing; it holds the line `{}`", format_line().trim_end()),
            });
        }
        let (keyring, opened_by) = match &options.passphrase {
            Some(passphrase) => with_passphrase(&layout, &wrapped, passphrase)?,
            None => with_identity(&layout, &wrapped, options)?,
        };
        let digest = Sha256::digest(&wrapped).into();
        Ok(Self { options: options.clone(), opened_by, keyring, digest, created: false })
    }

    fn create(options: &VaultOptions) -> Result<Self, OpenError> {
        if let Some(passphrase) = &options.passphrase {
            passphrase.check_new()?;
        }
        let layout = Layout(&options.data_dir);
        private_dir(&layout.keys())?;
        // Two first starts with different options must not make two secrets, so one waits here.
        let _lock = lock_keys(&layout)?;
        match Self::open_existing(options) {
            Err(OpenError::NoStore(_)) => {}
            opened => return opened,
        }
        sweep(&options.data_dir);
        sweep(&layout.keys());
        make_durable(&layout.format(), format_line().as_bytes())?;
        let recipients = match &options.passphrase {
            Some(passphrase) => vec![first_passphrase(&layout, passphrase)?],
            None => first_identities(options)?,
        };
        // What opens it was made before, so that it is never there and closed to everyone.
        let path = layout.recipients();
        let wrapped = Keyring::random(recipients).wrap().map_err(|e| wrap_failed(&path, &e))?;
        let made = make_durable(&path, &wrapped)?;
        let opened = Self::open_existing(options)?;
        Ok(Self { created: made == Made::ByUs, ..opened })
    }

    /// Opens it again, with what it was opened with.
    ///
    /// # Errors
    /// As [`Vault::open_existing`]: who opened it then may not open it any more.
    pub fn reload(&self) -> Result<Self, OpenError> {
        Ok(Self { created: self.created, ..Self::open_existing(&self.options)? })
    }

    /// This vault, or the one that has taken its place on disk. Whoever opens a store asks for it once the store is
    /// theirs: the keys may have been changed since this one was opened.
    ///
    /// # Errors
    /// [`OpenError::KeyringMissing`] if the keyring is gone, else as [`Vault::reload`].
    pub fn renewed(&self) -> Result<Self, OpenError> {
        let path = self.layout().recipients();
        match read_small(&path, keyring::LONGEST)? {
            Some(wrapped) if self.digest == *Sha256::digest(&wrapped) => Ok(self.clone()),
            Some(_) => self.reload(),
            None => Err(OpenError::KeyringMissing { keyring: path, data_dir: self.options.data_dir.clone() }),
        }
    }

    /// The same vault with the keyring that was written to disk as `wrapped`.
    pub(super) fn with(&self, keyring: Keyring, wrapped: &[u8]) -> Self {
        Self { keyring, digest: Sha256::digest(wrapped).into(), ..self.clone() }
    }

    /// Whether this call set the data directory up.
    pub fn created(&self) -> bool {
        self.created
    }

    /// The identity file that opened it; `None` if a passphrase did.
    pub fn identity_path(&self) -> Option<PathBuf> {
        self.options.passphrase.is_none().then(|| self.options.identity_path())
    }

    /// The recipient that opened it, unless it has been removed since.
    pub fn opened_by(&self) -> Option<&Recipient> {
        self.recipients().iter().find(|recipient| recipient.key == self.opened_by)
    }

    /// What opened it: `identity` or `passphrase`.
    pub fn opened_with(&self) -> &'static str {
        if self.options.passphrase.is_none() { "identity" } else { "passphrase" }
    }

    /// Everything durable is below this directory.
    pub fn data_dir(&self) -> &Path {
        &self.options.data_dir
    }

    pub(super) fn layout(&self) -> Layout<'_> {
        Layout(&self.options.data_dir)
    }

    /// The directory of a namespace.
    pub(crate) fn namespace_dir(&self, namespace: &str) -> PathBuf {
        self.layout().stores().join(self.keyring.directory_name(namespace))
    }

    /// The directories of all namespaces that have one. One that can't be seen is an error: it would be left out
    /// of what concerns all.
    pub(crate) fn namespace_dirs(&self) -> Result<Vec<PathBuf>, OpenError> {
        let stores = self.layout().stores();
        let entries = match fs::read_dir(&stores) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(OpenError::io("look into", &stores))?,
        };
        let mut dirs = Vec::new();
        for entry in entries {
            let path = entry.map_err(OpenError::io("look into", &stores))?.path();
            if fs::metadata(&path).map_err(OpenError::io("look at", &path))?.is_dir() {
                dirs.push(path);
            }
        }
        Ok(dirs)
    }

    /// Where this module makes files.
    pub(crate) fn places(&self) -> [PathBuf; 2] {
        [self.options.data_dir.clone(), self.layout().keys()]
    }

    /// Keeps first starts from making files until it is dropped.
    pub(crate) fn lock_keys(&self) -> Result<fs::File, OpenError> {
        lock_keys(&self.layout())
    }

    /// The keys that seal the slot of the store in this directory.
    pub(crate) fn slot_keys(&self, dir: &Path) -> SlotKeys {
        self.keyring.slot_keys(&dir.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Seals the name of the namespace whose directory has this name.
    pub(crate) fn seal_name(&self, directory_name: &str, namespace: &str) -> Option<Vec<u8>> {
        let keys = self.keyring.name_keys();
        seal_with_nonce(&keys.current, &name_data(directory_name), namespace.as_bytes())
    }

    /// Opens what [`Vault::seal_name`] made.
    pub(crate) fn open_name(&self, directory_name: &str, sealed: &[u8]) -> Option<String> {
        let keys = self.keyring.name_keys();
        let opened = std::iter::once(&keys.current)
            .chain(&keys.previous)
            .find_map(|key| open_with_nonce(key, &name_data(directory_name), sealed).ok())?;
        String::from_utf8(opened.to_vec()).ok()
    }

    /// What proves to another process on this machine that this one may open the namespace.
    pub fn prover(&self, namespace: &str) -> Prover {
        self.keyring.prover(namespace)
    }
}

fn name_data(directory_name: &str) -> Vec<u8> {
    [b"warm namespace name\0", directory_name.as_bytes()].concat()
}

/// Opens the keyring with a passphrase: whichever file it opens holds the identity that opens the keyring.
fn with_passphrase(
    layout: &Layout<'_>,
    wrapped: &[u8],
    passphrase: &Passphrase,
) -> Result<(Keyring, x25519::Recipient), OpenError> {
    let files = layout.passphrases()?;
    if files.is_empty() {
        return Err(OpenError::NoPassphraseSet(layout.0.to_owned()));
    }
    let (mut damage, tried) = (None, files.len());
    for (_, path) in files {
        let identity = match passphrase_file::open(&path, passphrase) {
            Ok(Some(identity)) => identity,
            Ok(None) => continue,
            // Another may open it yet.
            Err(damaged @ OpenError::Damaged { .. }) => {
                damage.get_or_insert(damaged);
                continue;
            }
            Err(error) => return Err(error),
        };
        let with = std::iter::once(&identity as &dyn Identity);
        if let Some(keyring) = Keyring::unwrap(wrapped, &layout.recipients(), with)? {
            return Ok((keyring, identity.to_public()));
        }
        // It was a recipient, and is none any more.
    }
    Err(damage.unwrap_or(OpenError::WrongPassphrase { keys: layout.keys(), tried }))
}

fn with_identity(
    layout: &Layout<'_>,
    wrapped: &[u8],
    options: &VaultOptions,
) -> Result<(Keyring, x25519::Recipient), OpenError> {
    let path = options.identity_path();
    let has_passphrase = || layout.passphrases().map(|files| !files.is_empty());
    let identities = match identity::load(&path)? {
        Some(identities) => identities,
        None if options.identity.is_none() && has_passphrase()? => {
            return Err(OpenError::PassphraseNeeded(options.data_dir.clone()));
        }
        None => {
            let data_dir = options.data_dir.clone();
            return Err(OpenError::IdentityMissing { identity: path, data_dir });
        }
    };
    for identity in &identities {
        let with = std::iter::once(identity as &dyn Identity);
        if let Some(keyring) = Keyring::unwrap(wrapped, &layout.recipients(), with)? {
            return Ok((keyring, identity.to_public()));
        }
    }
    Err(OpenError::WrongIdentity {
        identity: path,
        keyring: layout.recipients(),
        passphrase: has_passphrase()?,
    })
}

/// The recipients of a store that is made for identities; makes one where there is none.
fn first_identities(options: &VaultOptions) -> Result<Vec<Recipient>, OpenError> {
    let path = options.identity_path();
    if !is_there(&path)? {
        identity::create(&path)?;
    }
    let identities = identity::load(&path)?.ok_or_else(|| OpenError::IdentityMissing {
        identity: path.clone(),
        data_dir: options.data_dir.clone(),
    })?;
    let mut recipients: Vec<Recipient> = Vec::new();
    for key in identities.iter().map(x25519::Identity::to_public) {
        if !recipients.iter().any(|recipient| recipient.key == key) {
            recipients.push(Recipient::new(RecipientKind::Identity, key, String::new()));
        }
    }
    Ok(recipients)
}

/// The recipient of a store that is made for a passphrase.
fn first_passphrase(layout: &Layout<'_>, passphrase: &Passphrase) -> Result<Recipient, OpenError> {
    // Left by a first start that was cut short: there is no keyring that they could open.
    for (_, path) in layout.passphrases()? {
        fs::remove_file(&path).map_err(OpenError::io("remove", &path))?;
    }
    let path = layout.passphrase(1);
    let (key, sealed) = passphrase_file::make(passphrase).map_err(|e| wrap_failed(&path, &e))?;
    make_durable(&path, &sealed)?;
    Ok(Recipient::new(RecipientKind::Passphrase(1), key, String::new()))
}

/// The names below a data directory.
pub(super) struct Layout<'a>(&'a Path);

impl Layout<'_> {
    fn format(&self) -> PathBuf {
        self.0.join("FORMAT")
    }

    pub(super) fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    pub(super) fn recipients(&self) -> PathBuf {
        self.keys().join("recipients.age")
    }

    pub(super) fn passphrase(&self, number: u8) -> PathBuf {
        self.keys().join(format!("passphrase-{number}.age"))
    }

    /// The files of passphrases that are there, with their numbers.
    pub(super) fn passphrases(&self) -> Result<Vec<(u8, PathBuf)>, OpenError> {
        let mut found = Vec::new();
        for number in NUMBERS {
            let path = self.passphrase(number);
            if is_there(&path)? {
                found.push((number, path));
            }
        }
        Ok(found)
    }

    fn stores(&self) -> PathBuf {
        self.0.join("stores")
    }

    fn has_stores(&self) -> Result<bool, OpenError> {
        // Of stores that are lost, the ledger still tells.
        for dir in [self.stores(), self.0.join("namespaces")] {
            match fs::read_dir(&dir).map(|mut entries| entries.next().is_some()) {
                Ok(true) => return Ok(true),
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(OpenError::io("look into", &dir)(e));
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Whether the format file is there and names our version. Another version is an error.
    fn check_format(&self) -> Result<bool, OpenError> {
        let path = self.format();
        let Some(bytes) = read_small(&path, 1024)? else {
            return Ok(false);
        };
        let text = String::from_utf8_lossy(&bytes);
        match text.trim_end().strip_prefix("warm data directory, format ") {
            Some(version) if version == FORMAT_VERSION.to_string() => Ok(true),
            Some(version) if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) => {
                Err(OpenError::OtherFormat { path, found: version.into(), supported: FORMAT_VERSION })
            }
            _ => Err(OpenError::Damaged {
                path,
                reason: format!("it does not hold the line `{}`", format_line().trim_end()),
            }),
        }
    }
}

fn lock_keys(layout: &Layout<'_>) -> Result<fs::File, OpenError> {
    let path = layout.keys().join("lock");
    let lock = open_private(&path).map_err(OpenError::io("make", &path))?;
    lock.lock().map_err(OpenError::io("lock", &path))?;
    Ok(lock)
}

/// Whether a file is there; not to be able to tell is an error, never a no.
fn is_there(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(OpenError::io("look for", path))
}

fn format_line() -> String {
    format!("warm data directory, format {FORMAT_VERSION}\n")
}

pub(super) fn wrap_failed(path: &Path, error: &age::EncryptError) -> OpenError {
    OpenError::Io { action: "seal", path: path.to_owned(), source: io::Error::other(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dir: &Path) -> VaultOptions {
        VaultOptions { data_dir: dir.join("data"), identity: None, passphrase: None }
    }

    fn passphrase(text: &str) -> Option<Passphrase> {
        Some(Passphrase::new(text.into()))
    }

    #[test]
    fn the_first_start_makes_a_store_and_the_next_opens_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        assert!(matches!(Vault::open_existing(&options), Err(OpenError::NoStore(_))));
        assert!(!options.data_dir.exists(), "looking makes nothing");
        let first = Vault::open(&options).unwrap();
        assert!(first.created());
        let second = Vault::open(&options).unwrap();
        assert!(!second.created());
        assert!(first.keyring == second.keyring);
    }

    #[test]
    fn first_starts_at_once_agree_on_one_identity() {
        for _ in 0..10 {
            let dir = tempfile::tempdir().unwrap();
            let options = options(dir.path());
            let vaults: Vec<_> = std::thread::scope(|scope| {
                let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| Vault::open(&options).unwrap())).collect();
                starts.into_iter().map(|start| start.join().unwrap()).collect()
            });
            assert_eq!(vaults.iter().filter(|vault| vault.created()).count(), 1);
            assert!(vaults.iter().all(|vault| vault.keyring == vaults[0].keyring));
        }
    }

    #[test]
    fn a_named_identity_is_used_or_made_where_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("usb stick/key.txt");
        let options = VaultOptions { identity: Some(elsewhere.clone()), ..options(dir.path()) };
        Vault::open(&options).unwrap();
        assert!(elsewhere.exists() && !options.data_dir.join("identity.txt").exists());
        fs::remove_file(&elsewhere).unwrap();
        assert!(matches!(Vault::open(&options), Err(OpenError::IdentityMissing { .. })));
        assert!(!elsewhere.exists(), "a lost identity is never replaced by a new one");
    }

    #[test]
    fn a_wrong_identity_is_named_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        Vault::open(&options).unwrap();
        let other = dir.path().join("other.txt");
        identity::create(&other).unwrap();
        let error = Vault::open(&VaultOptions { identity: Some(other), ..options }).unwrap_err();
        assert!(matches!(error, OpenError::WrongIdentity { .. }) && error.to_string().contains("wrong key"));
    }

    #[test]
    fn a_passphrase_opens_its_store_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let bare = options(dir.path());
        let with = |text| VaultOptions { passphrase: passphrase(text), ..bare.clone() };
        assert!(matches!(Vault::open(&with("")), Err(OpenError::EmptyPassphrase)));
        assert!(matches!(Vault::open(&with("seven c")), Err(OpenError::ShortPassphrase)));
        assert!(!bare.data_dir.exists(), "nothing is made for one that is refused");
        // A start that was cut short before it wrote the keyring.
        fs::create_dir_all(bare.data_dir.join("keys")).unwrap();
        fs::write(bare.data_dir.join("keys/passphrase-3.age"), "half a start").unwrap();
        let made = Vault::open(&with("correct horse")).unwrap();
        assert!(made.created() && made.opened_with() == "passphrase");
        assert!(!bare.data_dir.join("identity.txt").exists());
        assert!(!bare.data_dir.join("keys/passphrase-3.age").exists());
        assert!(Vault::open(&with("correct horse")).unwrap().keyring == made.keyring);
        assert!(matches!(Vault::open(&with("wrong")), Err(OpenError::WrongPassphrase { tried: 1, .. })));
        assert!(matches!(Vault::open(&bare), Err(OpenError::PassphraseNeeded(_))));
    }

    #[test]
    fn a_store_sealed_to_an_identity_says_so_when_given_a_passphrase() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        Vault::open(&options).unwrap();
        let error = Vault::open(&VaultOptions { passphrase: passphrase("x"), ..options }).unwrap_err();
        assert!(matches!(error, OpenError::NoPassphraseSet(_)));
    }

    #[test]
    fn another_format_version_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        Vault::open(&options).unwrap();
        let format = options.data_dir.join("FORMAT");
        fs::write(&format, "warm data directory, format 99\n").unwrap();
        let error = Vault::open(&options).unwrap_err();
        assert!(matches!(&error, OpenError::OtherFormat { found, .. } if found == "99"), "{error}");
        assert_eq!(fs::read_to_string(&format).unwrap(), "warm data directory, format 99\n");
        fs::write(&format, "garbage").unwrap();
        assert!(matches!(Vault::open(&options), Err(OpenError::Damaged { .. })));
        fs::remove_file(&format).unwrap();
        assert!(matches!(Vault::open(&options), Err(OpenError::Damaged { .. })));
    }

    #[test]
    fn a_vault_is_read_again_only_when_its_keyring_was_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        let made = Vault::open(&options).unwrap();
        let identity = fs::read(options.identity_path()).unwrap();
        fs::remove_file(options.identity_path()).unwrap();
        assert!(made.renewed().unwrap().keyring == made.keyring, "nothing is needed for what is unchanged");
        let changed = made.rewrap(made.recipients().to_vec(), crate::vault::StoreSecret::Renewed).unwrap();
        assert!(changed.keyring != made.keyring);
        assert!(matches!(made.renewed(), Err(OpenError::IdentityMissing { .. })));
        fs::write(options.identity_path(), identity).unwrap();
        let renewed = made.renewed().unwrap();
        assert!(renewed.keyring == changed.keyring && renewed.created());
        assert_eq!(renewed.opened_by(), changed.recipients().first());
        fs::write(options.data_dir.join("keys/recipients.age"), "garbage").unwrap();
        assert!(matches!(made.renewed(), Err(OpenError::Damaged { .. })));
        fs::remove_file(options.data_dir.join("keys/recipients.age")).unwrap();
        assert!(matches!(made.renewed(), Err(OpenError::KeyringMissing { .. })));
    }

    #[test]
    fn of_several_passphrases_each_opens_the_store_whatever_became_of_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let bare = options(dir.path());
        let with = |text| VaultOptions { passphrase: passphrase(text), ..bare.clone() };
        let vault = Vault::open(&bare).unwrap();
        let second = vault.make_passphrase(&Passphrase::new("battery staple".into())).unwrap();
        let recipients = [vault.recipients(), &[second]].concat();
        vault.rewrap(recipients, crate::vault::StoreSecret::Kept).unwrap();
        let (first, other) =
            (bare.data_dir.join("keys/passphrase-1.age"), bare.data_dir.join("keys/passphrase-2.age"));
        fs::rename(&first, &other).unwrap();
        fs::write(&first, "garbage").unwrap();
        let opened = Vault::open(&with("battery staple")).unwrap();
        assert!(opened.keyring.recipients().len() == 2 && opened.identity_path().is_none());
        let error = Vault::open(&with("wrong")).unwrap_err();
        assert!(matches!(&error, OpenError::Damaged { path, .. } if *path == first), "{error}");
        fs::remove_file(bare.identity_path()).unwrap();
        assert!(matches!(Vault::open(&bare), Err(OpenError::PassphraseNeeded(_))));
        identity::create(&bare.identity_path()).unwrap();
        let error = Vault::open(&bare).unwrap_err().to_string();
        assert!(error.contains("wrong key") && error.contains("--passphrase-env"), "{error}");
    }

    #[test]
    fn a_lost_keyring_is_never_replaced_while_there_are_stores() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        let vault = Vault::open(&options).unwrap();
        private_dir(&vault.namespace_dir("default")).unwrap();
        fs::remove_file(options.data_dir.join("keys/recipients.age")).unwrap();
        assert!(matches!(Vault::open(&options), Err(OpenError::KeyringMissing { .. })));
        assert!(!options.data_dir.join("keys/recipients.age").exists());
    }
}
