//! Why a data directory or a store in it could not be opened, each with the next step.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// Why a [`Vault`](super::Vault) or an [`Engine`](crate::Engine) could not be opened.
///
/// Messages name files and lines, never what is in them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Nothing has been set up here yet, and the caller asked not to.
    #[error("there is no memory store in {} yet: it is made when a client first starts warm-mcp; or check --data-dir", .0.display())]
    NoStore(PathBuf),

    /// The store exists, the identity file does not.
    #[error(
        "the identity file {} is missing, and without it the memories in {} can't be opened: \
         put it back from your backup, or name it with --identity; if it is lost for good, nothing opens \
         them: name another --data-dir to start anew",
        identity.display(), data_dir.display()
    )]
    IdentityMissing {
        /// Where the identity was looked for.
        identity: PathBuf,
        /// The data directory that needs it.
        data_dir: PathBuf,
    },

    /// There is no identity file to open an archive with.
    #[error(
        "the identity file {} is missing, and without it the backup can't be opened: name the file that it was \
         sealed to with --identity",
        .0.display()
    )]
    NoIdentity(PathBuf),

    /// The identity file can't be read as one.
    #[error(
        "the identity file {} is malformed ({reason}): it must hold a line that starts with \
         AGE-SECRET-KEY-1, as age-keygen writes it; restore it from your backup",
        path.display()
    )]
    IdentityMalformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, without its contents.
        reason: String,
    },

    /// The identity is well-formed and not one that the store is sealed to.
    #[error(
        "wrong key: no identity in {} opens {}: name the right file with --identity{}",
        identity.display(), keyring.display(),
        if *passphrase { ", or give the store's passphrase with --passphrase-env" } else { "" }
    )]
    WrongIdentity {
        /// The identity file that was tried.
        identity: PathBuf,
        /// The file that it does not open.
        keyring: PathBuf,
        /// Whether the store may have a passphrase too.
        passphrase: bool,
    },

    /// The passphrase does not open the store.
    #[error(
        "wrong passphrase for {}{}: check the variable that --passphrase-env names",
        keys.display(),
        if *tried > 1 { format!(", which has {tried} of them, none of them this") } else { String::new() }
    )]
    WrongPassphrase {
        /// The folder of the keys.
        keys: PathBuf,
        /// How many passphrases it has.
        tried: usize,
    },

    /// The store has no passphrase.
    #[error(
        "the store in {} is sealed to an identity, not to a passphrase: start without --passphrase-env, or let a \
         passphrase open it too with `warm-mcp passphrase add`",
        .0.display()
    )]
    NoPassphraseSet(PathBuf),

    /// The store opens with a passphrase only.
    #[error(
        "the store in {} is sealed to a passphrase: put it in an environment variable and name that \
         variable with --passphrase-env",
        .0.display()
    )]
    PassphraseNeeded(PathBuf),

    /// An identity and a passphrase were both given.
    #[error(
        "a store is opened either by an identity or by a passphrase: give one of --identity and \
         --passphrase-env"
    )]
    IdentityAndPassphrase,

    /// The passphrase is empty.
    #[error(
        "the passphrase is empty: put at least one character in the variable that --passphrase-env names"
    )]
    EmptyPassphrase,

    /// A passphrase that is to be set is too short.
    #[error(
        "the passphrase is too short to protect anything: give it at least 8 characters, better five words; nothing \
         was made"
    )]
    ShortPassphrase,

    /// Stores are there, the files that open them are not.
    #[error(
        "{} is missing although {} holds memories: restore the directory `keys` from a copy of yours; no new key was \
         made. Without such a copy, memories come back from what `warm-mcp backup` made: name an empty --data-dir, \
         and the identity or passphrase of the backup, and run `warm-mcp restore FILE`",
        keyring.display(), data_dir.display()
    )]
    KeyringMissing {
        /// The file that should be there.
        keyring: PathBuf,
        /// The data directory.
        data_dir: PathBuf,
    },

    /// A file is of another format version.
    #[error(
        "{} is of format version {found}, and this warm-mcp reads version {supported}: use the warm-mcp \
         that wrote it; nothing was changed",
        path.display()
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that this build reads.
        supported: u16,
    },

    /// A file other than a store is damaged.
    #[error(
        "{} is damaged ({reason}): restore it from a copy of yours; without one, name an empty --data-dir and the \
         identity or passphrase of a backup, and run `warm-mcp restore FILE`",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, without its contents.
        reason: String,
    },

    /// The file of a store is damaged.
    #[error(
        "{} is damaged ({reason}): see what `warm-mcp doctor` says, and restore the memories from a backup",
        path.display()
    )]
    StoreDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, without its contents.
        reason: String,
    },

    /// The slot beside a store is gone.
    #[error(
        "{} is missing, and without the key in it {} can't be opened: put it back if it was moved; if it is lost, \
         restore the memories from a backup: `warm-mcp doctor` says how",
        slot.display(), store.display()
    )]
    SlotMissing {
        /// The file that should be there.
        slot: PathBuf,
        /// The store that it opens.
        store: PathBuf,
    },

    /// The slot beside a store is damaged, and its copies too.
    #[error(
        "{} is damaged ({reason}), and without the key in it {} can't be opened: restore the memories from a \
         backup, `warm-mcp doctor` says how",
        slot.display(), store.display()
    )]
    SlotDamaged {
        /// The slot.
        slot: PathBuf,
        /// The store that it opens.
        store: PathBuf,
        /// What is wrong, without its contents.
        reason: String,
    },

    /// The store and its slot are not of one moment.
    #[error(
        "{} and {} do not belong together ({reason}): put back both files as they were at one moment, or restore \
         the memories from a backup; nothing was changed",
        store.display(), slot.display()
    )]
    SlotOfAnotherMoment {
        /// The slot.
        slot: PathBuf,
        /// The store.
        store: PathBuf,
        /// What tells.
        reason: String,
    },

    /// The store was sealed under another store secret.
    #[error(
        "{} does not open with the keys in `keys`: it belongs to another data directory, or the keys are an older \
         copy; put the file and its keys back together",
        .0.display()
    )]
    ForeignStore(PathBuf),

    /// Another process has the store open.
    #[error(
        "another warm-mcp has the store {} open: close that one first, or give this one a --namespace or \
         --data-dir of its own",
        .0.display()
    )]
    InUse(PathBuf),

    /// A store was made here, and is gone.
    #[error(
        "{} is missing although it was made: see what `warm-mcp doctor` says, and restore the memories from a \
         backup",
        .0.display()
    )]
    StoreMissing(PathBuf),

    /// A start was cut short after it had made a store and before it had given it its name.
    #[error("{} is whole and lacks its name, since a start was cut short: the next start gives it", .0.display())]
    Unfinished(PathBuf),

    /// The name of a namespace breaks its rules.
    #[error("the namespace name is not usable: give 1 to 128 bytes without control characters")]
    InvalidNamespace,

    /// Something else stands where a directory is needed.
    #[error("{} is not a directory: move it away, or choose another --data-dir", .0.display())]
    NotADirectory(PathBuf),

    /// The operating system refused.
    #[error("can't {action} {}: {source}; check that the path is right, that it is yours, and that the disk has room", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The reason given.
        source: io::Error,
    },

    /// The store's file could not be opened or read.
    #[error("can't open {}: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: StoreError,
    },
}

impl OpenError {
    /// For `map_err`: an [`OpenError::Io`] that says what was tried on which path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
