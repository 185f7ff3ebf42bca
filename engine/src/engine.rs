//! The one public door: an open store of one namespace.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::anchor::Anchor;
use crate::changes::ChangeLog;
use crate::commit::{CommitState, Commits};
use crate::contract::{
    Command, CommandLimits, Copying, EncryptionStats, Export, Exported, Forget, Forgotten, Get, Limits, List,
    Listing, Memory, OperationId, Recall, RecallMode, RecallStats, Recalled, Receipt, ReceiptFile, Receipts,
    Remember, Remembered, Restore, Restored, Stats, Suggest, Suggested, Told, Write, Written,
};
use crate::draft::Ticket;
use crate::erasures::{Erasures, ReceiptsError};
use crate::error::Error;
use crate::ledger;
use crate::lock::StoreLock;
use crate::maintain::Maintainer;
use crate::memory::{Bounds, CommandError};
#[cfg(any(test, feature = "bench"))]
use crate::open::open_on;
#[cfg(feature = "bench")]
use crate::open::open_slot;
use crate::open::{Mode, Opened, open_store};
use crate::open_error::OpenError;
use crate::operations::Operations;
use crate::progress::Progress;
use crate::published::Published;
use crate::records::RecordError;
use crate::sealed::{FORMAT_VERSION, hex};
use crate::seat::{Claim, Seat, slot_path, store_path};
use crate::state::{Names, State};
use crate::store::{Store, StoreError, Vacant};
use crate::transfer::TransferError;
#[cfg(any(test, feature = "bench"))]
use crate::vault::SlotMedium;
use crate::vault::{LogKeys, StoreKeys, Vault};
use crate::{listing, memory, recall, records, suggest, transfer};

/// How long a start waits for a process that is just ending to let go of the store.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// A handle to an open memory store. All methods may be called from any number of threads at once. The store
/// closes when the last handle is dropped.
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
#[derive(Clone)]
pub struct Engine {
    open: Arc<Open>,
    limits: Limits,
}

/// An open store, shared by all handles to it.
struct Open {
    // Dropped in this order: background work ends, the store closes, the seat is given back.
    _maintainer: Maintainer,
    commits: Arc<Commits>,
    published: Arc<Published>,
    store: Arc<dyn Store>,
    _lock: Option<StoreLock>,
    namespace: String,
    opened_with: &'static str,
    damaged: Vec<String>,
    created: bool,
    log_keys: LogKeys,
    forgotten: Mutex<Known>,
}

/// What is known of the log of erasures so far.
#[derive(Default)]
struct Known {
    /// The number of the next entry.
    next: u64,
    /// Shared with those who look into it.
    origins: Arc<HashSet<u64>>,
}

/// Receipts in one answer.
const MOST_RECEIPTS: u64 = 1_000;

impl Engine {
    /// Opens the store of a namespace, or makes an empty one.
    ///
    /// Waits up to two seconds for another process to let go of it.
    ///
    /// # Errors
    /// [`OpenError`] names what is wrong and the next step; an existing store is left as it was.
    pub fn open(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, OpenError> {
        Self::open_claimed(vault, Seat::of(vault, namespace)?.claim(LOCK_PATIENCE)?, limits)
    }

    /// Opens the store of a seat that this process holds, or makes an empty one.
    ///
    /// # Errors
    /// As [`Engine::open`]; the seat is given back then.
    pub fn open_claimed(vault: &Vault, claim: Claim, limits: Limits) -> Result<Self, OpenError> {
        Self::open_in(vault, &claim.seat, Some(claim.lock), limits, Mode::Create)
    }

    /// Opens the store of a namespace to look at it; never makes or changes anything, and does not wait
    /// for another process. Every write is refused.
    ///
    /// # Errors
    /// [`OpenError::NoStore`] if there is none, [`OpenError::Unfinished`] if it lacks its name, else as
    /// [`Engine::open`].
    pub fn open_existing(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, OpenError> {
        let seat = Seat::of(vault, namespace)?;
        if !seat.is_there()? {
            return Err(OpenError::NoStore(seat.dir().to_owned()));
        }
        let lock = StoreLock::take_existing(seat.dir())?;
        Self::open_in(vault, &seat, lock, limits, Mode::Look)
    }

    /// Answers for a namespace that has no store as an empty one would. Makes nothing, and takes no write that would
    /// change anything.
    ///
    /// # Errors
    /// [`OpenError::InvalidNamespace`], and [`OpenError::Store`] if the system has no thread for it.
    pub fn vacant(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, OpenError> {
        let seat = Seat::of(vault, namespace)?;
        let keys = StoreKeys::vacant(namespace);
        let opened = Opened {
            created: false,
            operations: Operations::load(keys.operation_key(), Vec::new()),
            keys,
            store: Arc::new(Vacant),
            names: Names::default(),
            epoch: 0,
            copies: Vec::new(),
            pieces: HashMap::new(),
            damaged: Vec::new(),
            lock: None,
        };
        Self::on(opened, Vec::new(), vault, &seat, limits)
    }

    fn open_in(
        vault: &Vault,
        seat: &Seat,
        lock: Option<StoreLock>,
        limits: Limits,
        mode: Mode,
    ) -> Result<Self, OpenError> {
        let opened = open_store(vault, seat.namespace(), seat.dir(), lock, mode)?;
        if mode == Mode::Create
            && let Err(error) = ledger::write_down(vault, seat.namespace())
        {
            tracing::warn!(%error, "the name of the namespace could not be written down; the next start tries again");
        }
        let path = store_path(seat.dir());
        let anchor = |path: &Path| Anchor::at(path).map_err(OpenError::io("look for", path));
        let anchors = vec![anchor(&path)?, anchor(&slot_path(seat.dir()))?];
        Self::on(opened, anchors, vault, seat, limits)
    }

    /// Opens a store on a disk other than its file.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn open_on(
        vault: &Vault,
        namespace: &str,
        limits: Limits,
        disk: Box<dyn redb::StorageBackend>,
        slot: Box<dyn SlotMedium>,
    ) -> Result<Self, OpenError> {
        let seat = Seat::of(vault, namespace)?;
        let opened = open_on(vault, namespace, &store_path(seat.dir()), disk, slot)?;
        Self::on(opened, Vec::new(), vault, &seat, limits)
    }

    /// For measurements: [`Engine::open`], with every sync counted in `syncs` and made to take longer.
    #[cfg(feature = "bench")]
    #[doc(hidden)]
    pub fn open_slowed(
        vault: &Vault,
        namespace: &str,
        limits: Limits,
        sync_takes: Duration,
        syncs: Arc<std::sync::atomic::AtomicU64>,
    ) -> Result<Self, OpenError> {
        use crate::store::slow_disk::{SlowDisk, SlowSlot};
        drop(Self::open(vault, namespace, limits.clone())?);
        let path = store_path(Seat::of(vault, namespace)?.dir());
        let file = crate::files::open_private(&path).map_err(OpenError::io("open", &path))?;
        let slot = open_slot(&slot_path(Seat::of(vault, namespace)?.dir()), &path)?;
        let slot = Box::new(SlowSlot { slot, sync_takes, syncs: Arc::clone(&syncs) });
        let disk = redb::backends::FileBackend::new(file)
            .map_err(|error| OpenError::Store { path, source: error.into() })?;
        let disk = Box::new(SlowDisk::over(Box::new(disk), sync_takes, syncs));
        Self::open_on(vault, namespace, limits, disk, slot)
    }

    fn on(
        opened: Opened,
        anchors: Vec<Anchor>,
        vault: &Vault,
        seat: &Seat,
        limits: Limits,
    ) -> Result<Self, OpenError> {
        let Opened { created, store, keys, names, epoch, operations, copies, pieces, damaged, lock } = opened;
        let log_keys = keys.log_keys().clone();
        let damaged = damaged.into_iter().map(|record| format!("record {}: {}", record.id, record.reason));
        let damaged = damaged.collect();
        let published = Arc::new(Published::new(State::new(names, Arc::clone(&store), epoch)));
        let state = CommitState { operations, keys, copies };
        let commits =
            Arc::new(Commits::new(Arc::clone(&store), Arc::clone(&published), state).anchored(anchors));
        let maintainer = Maintainer::start(Arc::clone(&published), Arc::clone(&commits), pieces)
            .map_err(|source| OpenError::Store { path: store_path(seat.dir()), source })?;
        let open = Open {
            _maintainer: maintainer,
            commits,
            published,
            store,
            _lock: lock,
            namespace: seat.namespace().to_owned(),
            opened_with: vault.opened_with(),
            damaged,
            created,
            log_keys,
            forgotten: Mutex::default(),
        };
        Ok(Self { open: Arc::new(open), limits })
    }

    /// Another handle to the same open store, with limits of its own.
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { open: Arc::clone(&self.open), limits }
    }

    /// Makes a change. One that comes again under the same `operation` is made once, also when another
    /// process has opened the store meanwhile, and is answered alike.
    ///
    /// # Errors
    /// Those of [`Engine::command`], [`Engine::remember`], [`Engine::forget`] and [`Engine::restore`].
    pub fn write(&self, write: Write, operation: Option<OperationId>) -> Result<Written, Error> {
        self.write_watched(write, operation, &Arc::default())
    }

    /// The same, for one who wants to know how far it is. Only forgetting counts, in memories.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub fn write_watched(
        &self,
        write: Write,
        operation: Option<OperationId>,
        progress: &Arc<Progress>,
    ) -> Result<Written, Error> {
        Ok(match write {
            Write::Command(command, lower) => Written::Command(self.tell(command, lower, operation)?),
            Write::Remember(request) => Written::Remember(self.store(request, operation)?),
            Write::Forget(request) => {
                Written::Forget(self.drop_memories(request, operation, Arc::clone(progress))?)
            }
            Write::Restore(request) => Written::Restore(self.put_back(request, operation)?),
        })
    }

    /// Runs a command of the memory tool; returns its exact result string.
    ///
    /// # Errors
    /// [`Error::Command`], whose `Display` is the exact message of the memory tool.
    pub fn command(&self, command: Command, lower: CommandLimits) -> Result<String, Error> {
        Ok(self.tell(command, lower, None)?.result)
    }

    fn tell(
        &self,
        command: Command,
        lower: CommandLimits,
        operation: Option<OperationId>,
    ) -> Result<Told, Error> {
        let max_view_chars = lower.max_view_chars.unwrap_or(u64::MAX).min(self.limits.max_view_chars);
        let max_file_bytes = lower.max_file_bytes.unwrap_or(u64::MAX).min(self.limits.max_text_bytes);
        let done: Result<_, CommandError> = match command {
            Command::View { path, view_range } => {
                let state = self.open.published.state().map_err(CommandError::from)?;
                let view = memory::view(&state, &path, view_range.as_deref(), &self.limits, max_view_chars);
                view.map(|view| (view, None))
            }
            command => {
                let limits = self.limits.clone();
                let bounds = Bounds { max_view_chars, max_file_bytes };
                self.open.commits.write(move |draft| memory::edit(draft, command, &limits, bounds, operation))
            }
        };
        let (result, ticket) = done?;
        let receipt =
            ticket.map(|ticket| self.receipt_of(&ticket)).transpose().map_err(CommandError::from)?;
        Ok(Told { result, receipt })
    }

    /// Stores or replaces one memory.
    ///
    /// # Errors
    /// [`Error::Record`] when an argument breaks a rule or limit, `create_only` or `if_version`
    /// does not hold, or the store fails.
    pub fn remember(&self, request: Remember) -> Result<Remembered, Error> {
        self.store(request, None)
    }

    fn store(&self, request: Remember, operation: Option<OperationId>) -> Result<Remembered, Error> {
        records::check_remember(&request, &self.limits)?;
        Ok(self.open.commits.write(move |draft| records::remember(draft, request, operation))?)
    }

    /// Forgets memories for good.
    ///
    /// # Errors
    /// [`Error::Record`] when a single `key` does not exist, `prefix` comes without `confirm`, or
    /// the store fails; nothing is forgotten then.
    pub fn forget(&self, request: Forget) -> Result<Forgotten, Error> {
        self.drop_memories(request, None, Arc::default())
    }

    fn drop_memories(
        &self,
        request: Forget,
        operation: Option<OperationId>,
        progress: Arc<Progress>,
    ) -> Result<Forgotten, Error> {
        let limits = self.limits.clone();
        let (told, ticket) = self
            .open
            .commits
            .write(move |draft| records::forget(draft, request, &limits, operation, &progress))?;
        let receipt = ticket.map(|ticket| self.receipt_of(&ticket)).transpose().map_err(RecordError::from)?;
        Ok(Forgotten { receipt, ..told })
    }

    fn receipt_of(&self, ticket: &Ticket) -> Result<Receipt, StoreError> {
        match ticket.receipt() {
            Some(receipt) => Ok(receipt),
            // The operation was made before, by this process or another.
            None => {
                self.with_erasures(|erasures| erasures.receipt(ticket.index())).map_err(|error| match error {
                    ReceiptsError::Store(error) => error,
                    _ => StoreError::Damaged("its log of erasures lacks a receipt".into()),
                })
            }
        }
    }

    fn with_erasures<R, E: From<StoreError>>(
        &self,
        read: impl FnOnce(Erasures<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let snapshot = self.open.store.snapshot()?;
        read(Erasures { snapshot: &*snapshot, keys: &self.open.log_keys })
    }

    /// Receipts, the latest first: at most `limit` of them, before this number in the log.
    ///
    /// # Errors
    /// [`Error::Receipts`] when the store fails.
    pub fn receipts(&self, before: Option<u64>, limit: u64) -> Result<Receipts, Error> {
        let total = self.open.commits.erasures().length;
        let before = before.unwrap_or(total).min(total);
        Ok(self.with_erasures(|erasures| erasures.list(before, limit.min(MOST_RECEIPTS), total))?)
    }

    /// One receipt with its proofs, by its id, the first eight or more digits of that, or its number in the log.
    ///
    /// # Errors
    /// [`Error::Receipts`] when there is none, or the store fails.
    pub fn receipt(&self, which: &str) -> Result<ReceiptFile, Error> {
        Ok(self.with_erasures(|erasures| erasures.find(which))?)
    }

    /// Checks that the log of erasures is whole and signed; returns how many there are.
    ///
    /// # Errors
    /// [`Error::Receipts`] names what is wrong.
    pub fn check_receipts(&self) -> Result<u64, Error> {
        let end = self.open.commits.erasures();
        let checked: Result<(), ReceiptsError> =
            self.with_erasures(|log| log.check(&end).map_err(Into::into));
        checked?;
        Ok(end.length)
    }

    /// What receipts of this store are checked with: its Ed25519 public key, in hexadecimal.
    pub fn public_key(&self) -> String {
        hex(&self.open.log_keys.public())
    }

    /// Notes that a copy of the memories is made: receipts name it from now on.
    ///
    /// # Errors
    /// [`Error::Receipts`] when the store fails.
    pub fn note_copy(&self, copying: &Copying) -> Result<(), Error> {
        let Copying { kind, place } = copying.clone();
        let noted: Result<(), ReceiptsError> = self.open.commits.write(move |draft| {
            draft.copied(kind, place);
            Ok(())
        });
        Ok(noted?)
    }

    /// Reads one memory whole.
    ///
    /// # Errors
    /// [`Error::Record`] when there is no such memory or the store fails.
    pub fn get(&self, request: &Get) -> Result<Memory, Error> {
        Ok(records::get(&*self.open.published.state().map_err(RecordError::from)?, request, &self.limits)?)
    }

    /// Lists memories, a page at a time.
    ///
    /// # Errors
    /// [`Error::Record`] when an argument is not usable.
    pub fn list(&self, request: &List) -> Result<Listing, Error> {
        Ok(listing::list(&self.open.published.latest(), request, &self.limits)?)
    }

    /// Reads memories whole, a page at a time, in the order of their names.
    ///
    /// # Errors
    /// [`Error::Record`] when `cursor` is not usable, or a memory can't be read.
    pub fn export(&self, request: &Export) -> Result<Exported, Error> {
        self.export_watched(request, &Progress::default())
    }

    /// The same, for one who wants to know how far it is, in bytes of text, and may give it up.
    ///
    /// # Errors
    /// As [`Engine::export`], and [`RecordError::GivenUp`].
    pub fn export_watched(&self, request: &Export, progress: &Progress) -> Result<Exported, Error> {
        let state = self.open.published.state().map_err(RecordError::from)?;
        Ok(listing::export(&state, request, &self.limits, progress)?)
    }

    /// Completes a name or a tag.
    ///
    /// # Errors
    /// [`Error::Record`] when what was begun is too long.
    pub fn suggest(&self, request: &Suggest) -> Result<Suggested, Error> {
        Ok(suggest::suggest(&self.open.published.latest().names, request, &self.limits)?)
    }

    /// What changes from now on. Closed when the store is; does not keep it open.
    pub fn changes(&self) -> ChangeLog {
        self.open.published.changes().clone()
    }

    /// Hands every memory of one moment to `each`, in the order of names, and returns how many. Writes go
    /// on meanwhile and are not seen. `each` may stop it with an error of its own. What the memories are handed
    /// out for is logged before this returns.
    ///
    /// # Errors
    /// [`Error::Transfer`] when a memory can't be read, or whatever `each` returns.
    pub fn dump<E: From<Error>>(
        &self,
        copying: &Copying,
        mut each: impl FnMut(Memory) -> Result<(), E>,
    ) -> Result<u64, E> {
        let failed = |error: StoreError| E::from(Error::from(TransferError::from(error)));
        let state = self.open.published.state().map_err(failed)?;
        let mut handed_over = false;
        let dumped = transfer::dump(&state, failed, &mut |memory| {
            handed_over = true;
            each(memory)
        });
        // Even a copy that was cut short may hold some. What can't be written to can still be saved.
        if handed_over && let Err(error) = self.note_copy(copying) {
            tracing::warn!(%error, "the copy could not be logged: receipts will not name it");
        }
        dumped
    }

    /// Puts memories back, all in one transaction.
    ///
    /// # Errors
    /// [`Error::Transfer`] when a memory breaks a rule or limit, or the store fails; nothing is changed then.
    pub fn restore(&self, request: Restore) -> Result<Restored, Error> {
        self.put_back(request, None)
    }

    fn put_back(&self, request: Restore, operation: Option<OperationId>) -> Result<Restored, Error> {
        request.memories.iter().try_for_each(|memory| transfer::check(memory, &self.limits))?;
        let forgotten = match request.forgotten_too {
            true => Arc::default(),
            false => self.forgotten().map_err(TransferError::from)?,
        };
        Ok(self.open.commits.write(move |draft| transfer::restore(draft, request, &forgotten, operation))?)
    }

    /// Which of these origins, as copies have them, are those of memories that were forgotten with a receipt.
    ///
    /// # Errors
    /// [`Error::Transfer`] when the store fails.
    pub fn were_forgotten(&self, origins: &[String]) -> Result<Vec<bool>, Error> {
        let forgotten = self.forgotten().map_err(TransferError::from)?;
        let was =
            |origin: &String| transfer::origin(origin).is_some_and(|origin| forgotten.contains(&origin));
        Ok(origins.iter().map(was).collect())
    }

    /// The origins of everything that was ever forgotten with a receipt.
    fn forgotten(&self) -> Result<Arc<HashSet<u64>>, StoreError> {
        let mut known = self.open.forgotten.lock();
        let (next, new) = self.with_erasures(|erasures| erasures.forgotten(known.next))?;
        known.next = next;
        if !new.is_empty() {
            Arc::make_mut(&mut known.origins).extend(new);
        }
        Ok(Arc::clone(&known.origins))
    }

    /// Searches. Waits while the index is still being filled after opening.
    ///
    /// # Errors
    /// [`Error::Recall`] when an argument is not usable; no query text is an error.
    pub fn recall(&self, request: &Recall) -> Result<Recalled, Error> {
        self.recall_watched(request, &Progress::default())
    }

    /// The same, for one who wants to know how far the index is, in memories, while it is waited for, and may give
    /// it up.
    ///
    /// # Errors
    /// As [`Engine::recall`], and [`RecallError::GivenUp`](crate::RecallError::GivenUp).
    pub fn recall_watched(&self, request: &Recall, progress: &Progress) -> Result<Recalled, Error> {
        Ok(recall::recall(&self.open.published, request, &self.limits, progress)?)
    }

    /// Whether a recall would be answered without waiting for the index.
    pub fn recall_is_ready(&self) -> bool {
        self.open.published.is_filled()
    }

    /// Lets no recall wait for the index any longer: this process is about to give the store back.
    pub fn retire(&self) {
        self.open.published.stop();
    }

    /// Counts, sizes and limits.
    pub fn stats(&self) -> Stats {
        let (passages, segments) = self.open.published.index(|index| (index.passages(), index.segments()));
        let state = self.open.published.latest();
        Stats {
            version: env!("CARGO_PKG_VERSION").into(),
            namespace: self.open.namespace.clone(),
            memories: state.names.len(),
            files: state.names.files(),
            text_bytes: state.names.text_bytes(),
            store_bytes: self.open.commits.store_bytes(),
            damaged_records: self.open.damaged.len() as u64,
            recall: RecallStats {
                mode: RecallMode::Lexical,
                ready: self.open.published.is_filled(),
                passages,
                segments,
            },
            encryption: EncryptionStats {
                format: FORMAT_VERSION,
                cipher: "ChaCha20-Poly1305, one key per version".into(),
                opened_with: self.open.opened_with.into(),
                public_key: (state.epoch() > 0).then(|| self.public_key()),
            },
            device: "cpu".into(),
            kernel: "bm25 (scalar)".into(),
            refuses_writes: self.open.commits.check_place().err().map(|error| error.to_string()),
            limits: self.limits.clone(),
        }
    }

    /// Keeps what is derived from all memories, as a large store does.
    #[cfg(test)]
    pub(crate) fn keep_derived(&self) {
        let names = &self.open.published.latest().names;
        self.open.published.keep_from_now_on(names.iter().map(|entry| crate::vault::leaf_of(entry.place)));
    }

    /// Whether a commit failed, so that every write is refused until the store is opened again.
    ///
    /// What was acknowledged is on disk. Drop the engine and open the store anew: writes are taken again
    /// as soon as the disk takes them.
    pub fn is_shut(&self) -> bool {
        self.open.published.is_broken()
    }

    /// Whether opening made the store, so that it is empty.
    pub fn created(&self) -> bool {
        self.open.created
    }

    /// Records that could not be opened, by id, each with the reason. The others are served.
    pub fn damaged(&self) -> &[String] {
        &self.open.damaged
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
