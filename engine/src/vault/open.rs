//! Opening a data directory, and setting one up at the first start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use age::Recipient;

use super::identity;
use super::keyring::Keyring;
use super::proof::Prover;
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
    data_dir: PathBuf,
    /// `None` when a passphrase opened it.
    identity: Option<PathBuf>,
    keyring: Keyring,
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
        let (for_keys, for_passphrase) = (layout.recipients(), layout.passphrase());
        let (has_keys, has_passphrase) = (is_there(&for_keys)?, is_there(&for_passphrase)?);
        let format_known = layout.check_format()?;
        if !has_keys && !has_passphrase {
            // A store without its keyring must never get a new one: it would look empty.
            return Err(if has_stores {
                OpenError::KeyringMissing { keyring: for_keys, data_dir: options.data_dir.clone() }
            } else {
                OpenError::NoStore(options.data_dir.clone())
            });
        }
        if !format_known {
            return Err(OpenError::Damaged {
                path: layout.format(),
                reason: format!("it is missing; it holds the line `{}`", format_line().trim_end()),
            });
        }
        let opened = |keyring, identity| {
            Ok(Self { data_dir: options.data_dir.clone(), identity, keyring, created: false })
        };
        match &options.passphrase {
            Some(passphrase) if has_passphrase => {
                opened(Keyring::open_with_passphrase(&for_passphrase, passphrase)?, None)
            }
            Some(_) => Err(OpenError::NoPassphraseSet(options.data_dir.clone())),
            None if has_keys => {
                let path = options.identity_path();
                let identities = identity::load(&path)?.ok_or_else(|| OpenError::IdentityMissing {
                    identity: path.clone(),
                    data_dir: options.data_dir.clone(),
                })?;
                opened(Keyring::open_with_identities(&for_keys, &identities, &path)?, Some(path))
            }
            None => Err(OpenError::PassphraseNeeded(options.data_dir.clone())),
        }
    }

    fn create(options: &VaultOptions) -> Result<Self, OpenError> {
        if options.passphrase.as_ref().is_some_and(Passphrase::is_empty) {
            return Err(OpenError::EmptyPassphrase);
        }
        if options.passphrase.as_ref().is_some_and(Passphrase::is_short) {
            return Err(OpenError::ShortPassphrase);
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
        let keyring = Keyring::random();
        let made = match &options.passphrase {
            Some(passphrase) => {
                let path = layout.passphrase();
                let wrapped = keyring.wrap_for_passphrase(passphrase).map_err(|e| wrap_failed(&path, &e))?;
                make_durable(&path, &wrapped)?
            }
            None => {
                let identity_path = options.identity_path();
                if !is_there(&identity_path)? {
                    identity::create(&identity_path)?;
                }
                let identities =
                    identity::load(&identity_path)?.ok_or_else(|| OpenError::IdentityMissing {
                        identity: identity_path.clone(),
                        data_dir: options.data_dir.clone(),
                    })?;
                let recipients: Vec<_> = identities.iter().map(|identity| identity.to_public()).collect();
                let path = layout.recipients();
                let wrapped = keyring
                    .wrap_for_recipients(recipients.iter().map(|recipient| recipient as &dyn Recipient))
                    .map_err(|e| wrap_failed(&path, &e))?;
                make_durable(&path, &wrapped)?
            }
        };
        let opened = Self::open_existing(options)?;
        Ok(Self { created: made == Made::ByUs, ..opened })
    }

    /// Checks that the keyring is still there: without it, what is written can't be read by any later start.
    ///
    /// # Errors
    /// [`OpenError::KeyringMissing`] if it is not, [`OpenError::Io`] if that can't be seen.
    pub fn check_still_there(&self) -> Result<(), OpenError> {
        let layout = Layout(&self.data_dir);
        if is_there(&layout.recipients())? || is_there(&layout.passphrase())? {
            return Ok(());
        }
        Err(OpenError::KeyringMissing { keyring: layout.recipients(), data_dir: self.data_dir.clone() })
    }

    /// Whether this call set the data directory up.
    pub fn created(&self) -> bool {
        self.created
    }

    /// The identity file that opened it; `None` if a passphrase did.
    pub fn identity_path(&self) -> Option<&Path> {
        self.identity.as_deref()
    }

    /// What opened it: `identity` or `passphrase`.
    pub fn opened_with(&self) -> &'static str {
        if self.identity.is_some() { "identity" } else { "passphrase" }
    }

    /// Everything durable is below this directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The directory of a namespace.
    pub(crate) fn namespace_dir(&self, namespace: &str) -> PathBuf {
        Layout(&self.data_dir).stores().join(self.keyring.directory_name(namespace))
    }

    /// The directories of all namespaces that have one.
    pub(crate) fn namespace_dirs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(Layout(&self.data_dir).stores()).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// Where this module makes files.
    pub(crate) fn places(&self) -> [PathBuf; 2] {
        [self.data_dir.clone(), Layout(&self.data_dir).keys()]
    }

    /// Keeps first starts from making files until it is dropped.
    pub(crate) fn lock_keys(&self) -> Result<fs::File, OpenError> {
        lock_keys(&Layout(&self.data_dir))
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

/// The names below a data directory.
struct Layout<'a>(&'a Path);

impl Layout<'_> {
    fn format(&self) -> PathBuf {
        self.0.join("FORMAT")
    }

    fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    fn recipients(&self) -> PathBuf {
        self.keys().join("recipients.age")
    }

    fn passphrase(&self) -> PathBuf {
        self.keys().join("passphrase-1.age")
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

fn wrap_failed(path: &Path, error: &age::EncryptError) -> OpenError {
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
        assert!(matches!(Vault::open(&with("sevenäö")), Err(OpenError::ShortPassphrase)));
        assert!(!bare.data_dir.exists(), "nothing is made");
        let made = Vault::open(&with("correct horse")).unwrap();
        assert!(made.created() && made.opened_with() == "passphrase");
        assert!(!bare.data_dir.join("identity.txt").exists());
        assert!(Vault::open(&with("correct horse")).unwrap().keyring == made.keyring);
        assert!(matches!(Vault::open(&with("wrong")), Err(OpenError::WrongPassphrase(_))));
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
