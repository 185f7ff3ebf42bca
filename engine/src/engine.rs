//! The one public door: an open store of one namespace.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::commit::Commits;
use crate::contract::{
    Command, CommandLimits, EncryptionStats, Forget, Forgotten, Get, Limits, List, Listing, Memory, Recall,
    RecallMode, RecallStats, Recalled, Remember, Remembered, Restore, Restored, Stats,
};
use crate::error::Error;
use crate::files::private_dir;
use crate::maintain::Maintainer;
use crate::memory::{Bounds, CommandError};
use crate::open::{Mode, Opened, open_store, store_path};
use crate::open_error::OpenError;
use crate::published::Published;
use crate::records::RecordError;
use crate::sealed::FORMAT_VERSION;
use crate::state::State;
use crate::store::StoreError;
use crate::transfer::TransferError;
use crate::vault::Vault;
use crate::{memory, recall, records, transfer};

/// How long a start waits for a process that is just ending to let go of the store.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// Longest name of a namespace, in bytes.
const LONGEST_NAMESPACE: usize = 128;

/// An open memory store. All methods may be called from any number of threads at once.
///
/// Reads see one moment of the store and do not wait for the disk work of a write. A write returns
/// once it is durable; every read that starts afterwards sees it.
///
/// ```
/// use warm_engine::contract::{Limits, Recall, Remember};
/// use warm_engine::{Engine, Vault, VaultOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let data_dir = dir.path().join("memories");
/// let vault = Vault::open(&VaultOptions { data_dir, identity: None, passphrase: None })?;
/// let engine = Engine::open(&vault, "default", Limits::default())?;
/// engine.remember(Remember { text: "The side door's code is 4711.".into(), ..Remember::default() })?;
/// let found = engine.recall(&Recall { query: "door code".into(), ..Recall::default() })?;
/// assert_eq!(found.results[0].excerpt, "The side door's code is 4711.");
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    // Dropped in this order: background work ends, the store closes, the lock is let go.
    _maintainer: Maintainer,
    commits: Commits,
    published: Arc<Published>,
    _lock: File,
    namespace: String,
    opened_with: &'static str,
    limits: Limits,
    damaged: Vec<String>,
    created: bool,
}

impl Engine {
    /// Opens the store of a namespace, or makes an empty one.
    ///
    /// Waits up to two seconds for another process to let go of it.
    ///
    /// # Errors
    /// [`OpenError`] names what is wrong and the next step; an existing store is left as it was.
    pub fn open(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, OpenError> {
        let dir = Self::directory(vault, namespace)?;
        private_dir(&dir)?;
        Self::open_in(vault, namespace, limits, &dir, Mode::Create { patience: LOCK_PATIENCE })
    }

    /// Opens the store of a namespace if there is one; never makes anything, and does not wait for
    /// another process.
    ///
    /// # Errors
    /// [`OpenError::NoStore`] if there is none, else as [`Engine::open`].
    pub fn open_existing(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, OpenError> {
        let dir = Self::directory(vault, namespace)?;
        if !dir.try_exists().map_err(OpenError::io("look for", &dir))? {
            return Err(OpenError::NoStore(dir));
        }
        Self::open_in(vault, namespace, limits, &dir, Mode::Existing)
    }

    fn directory(vault: &Vault, namespace: &str) -> Result<PathBuf, OpenError> {
        let usable =
            (1..=LONGEST_NAMESPACE).contains(&namespace.len()) && !namespace.chars().any(char::is_control);
        if usable { Ok(vault.namespace_dir(namespace)) } else { Err(OpenError::InvalidNamespace) }
    }

    fn open_in(
        vault: &Vault,
        namespace: &str,
        limits: Limits,
        dir: &Path,
        mode: Mode,
    ) -> Result<Self, OpenError> {
        // redb checks every page when it opens a file; what slips through makes it panic.
        let opened = catch_unwind(AssertUnwindSafe(|| open_store(vault, namespace, dir, mode)));
        let Opened { created, store, keys, names, epoch, damaged, lock } = opened.unwrap_or_else(|_| {
            Err(OpenError::Damaged {
                path: store_path(dir),
                reason: "its pages contradict each other".into(),
            })
        })?;
        let published = Arc::new(Published::new(State::new(names, keys, Arc::clone(&store), epoch)));
        let maintainer = Maintainer::start(Arc::clone(&published))
            .map_err(|source| OpenError::Store { path: store_path(dir), source })?;
        Ok(Self {
            _maintainer: maintainer,
            commits: Commits::new(store, Arc::clone(&published)),
            published,
            _lock: lock,
            namespace: namespace.to_owned(),
            opened_with: vault.opened_with(),
            limits,
            damaged,
            created,
        })
    }

    /// Runs a command of the memory tool; returns its exact result string.
    ///
    /// # Errors
    /// [`Error::Command`], whose `Display` is the exact message of the memory tool.
    pub fn command(&self, command: Command, lower: CommandLimits) -> Result<String, Error> {
        let max_view_chars = lower.max_view_chars.unwrap_or(u64::MAX).min(self.limits.max_view_chars);
        let max_file_bytes = lower.max_file_bytes.unwrap_or(u64::MAX).min(self.limits.max_text_bytes);
        let done: Result<String, CommandError> = match command {
            Command::View { path, view_range } => {
                let state = self.published.state().map_err(CommandError::from)?;
                memory::view(&state, &path, view_range.as_deref(), &self.limits, max_view_chars)
            }
            command => {
                let limits = self.limits.clone();
                let bounds = Bounds { max_view_chars, max_file_bytes };
                self.commits.write(move |draft| memory::edit(draft, command, &limits, bounds))
            }
        };
        Ok(done?)
    }

    /// Stores or replaces one memory.
    ///
    /// # Errors
    /// [`Error::Record`] when an argument breaks a rule or limit, `create_only` or `if_version`
    /// does not hold, or the store fails.
    pub fn remember(&self, request: Remember) -> Result<Remembered, Error> {
        records::check_remember(&request, &self.limits)?;
        Ok(self.commits.write(move |draft| records::remember(draft, request))?)
    }

    /// Reads one memory whole.
    ///
    /// # Errors
    /// [`Error::Record`] when there is no such memory or the store fails.
    pub fn get(&self, request: &Get) -> Result<Memory, Error> {
        Ok(records::get(&*self.published.state().map_err(RecordError::from)?, request, &self.limits)?)
    }

    /// Lists memories in the order of their names, a page at a time.
    ///
    /// # Errors
    /// [`Error::Record`] when `limit` or `cursor` is not usable.
    pub fn list(&self, request: &List) -> Result<Listing, Error> {
        Ok(records::list(&self.published.latest(), request, &self.limits)?)
    }

    /// Forgets memories for good.
    ///
    /// # Errors
    /// [`Error::Record`] when a single `key` does not exist, `prefix` comes without `confirm`, or
    /// the store fails; nothing is forgotten then.
    pub fn forget(&self, request: Forget) -> Result<Forgotten, Error> {
        let limits = self.limits.clone();
        Ok(self.commits.write(move |draft| records::forget(draft, request, &limits))?)
    }

    /// Hands every memory of one moment to `each`, in the order of names, and returns how many. Writes go
    /// on meanwhile and are not seen. `each` may stop it with an error of its own.
    ///
    /// # Errors
    /// [`Error::Transfer`] when a memory can't be read, or whatever `each` returns.
    pub fn dump<E: From<Error>>(&self, mut each: impl FnMut(Memory) -> Result<(), E>) -> Result<u64, E> {
        let failed = |error: StoreError| E::from(Error::from(TransferError::from(error)));
        let state = self.published.state().map_err(failed)?;
        transfer::dump(&state, failed, &mut each)
    }

    /// Puts memories back, all in one transaction.
    ///
    /// # Errors
    /// [`Error::Transfer`] when a memory breaks a rule or limit, or the store fails; nothing is changed then.
    pub fn restore(&self, request: Restore) -> Result<Restored, Error> {
        request.memories.iter().try_for_each(|memory| transfer::check(memory, &self.limits))?;
        Ok(self.commits.write(move |draft| transfer::restore(draft, request))?)
    }

    /// Searches. Waits while the index is still being filled after opening.
    ///
    /// # Errors
    /// [`Error::Recall`] when an argument is not usable; no query text is an error.
    pub fn recall(&self, request: &Recall) -> Result<Recalled, Error> {
        Ok(recall::recall(&self.published, request, &self.limits)?)
    }

    /// Whether a recall would be answered without waiting for the index.
    pub fn recall_is_ready(&self) -> bool {
        self.published.is_filled()
    }

    /// Counts, sizes and limits.
    pub fn stats(&self) -> Stats {
        let (passages, segments) = self.published.index(|index| (index.passages(), index.segments()));
        let state = self.published.latest();
        Stats {
            version: env!("CARGO_PKG_VERSION").into(),
            namespace: self.namespace.clone(),
            memories: state.names.len(),
            files: state.names.files(),
            text_bytes: state.names.text_bytes(),
            store_bytes: self.commits.store_bytes(),
            damaged_records: self.damaged.len() as u64,
            recall: RecallStats {
                mode: RecallMode::Lexical,
                ready: self.published.is_filled(),
                passages,
                segments,
            },
            encryption: EncryptionStats {
                format: FORMAT_VERSION,
                cipher: "ChaCha20-Poly1305, one key per version".into(),
                opened_with: self.opened_with.into(),
            },
            device: "cpu".into(),
            kernel: "bm25 (scalar)".into(),
            limits: self.limits.clone(),
        }
    }

    /// Whether opening made the store, so that it is empty.
    pub fn created(&self) -> bool {
        self.created
    }

    /// Records that could not be opened, by id, each with the reason. The others are served.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
