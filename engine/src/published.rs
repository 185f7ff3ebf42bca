//! What readers see: the current state and the index over it, always of the same moment.
//!
//! A commit is published by changing both while no search runs, so that a search never finds a
//! memory that is gone, nor misses one that stays. Lock order: index, then state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::changes::{ChangeLog, ChangedName};
use crate::draft::Draft;
use crate::index::text::{Analysed, Document, DocumentId, TextIndex, analyse};
use crate::path::ROOT;
use crate::progress::Progress as Told;
use crate::record::Record;
use crate::sealed::RecordId;
use crate::state::{Names, State};
use crate::store::StoreError;
use crate::vault::leaf_of;

/// See the module.
pub(crate) struct Published {
    state: RwLock<Arc<State>>,
    index: RwLock<TextIndex>,
    phase: Mutex<Phase>,
    phase_changed: Condvar,
    progress: Mutex<Progress>,
    progressed: Condvar,
    /// How many records are in the index since opening, while it is filled.
    filled_with: AtomicU64,
    changes: ChangeLog,
}

/// How the store stands to what is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// They are of the same commit.
    Settled,
    /// The store may be one commit ahead, which is about to be published.
    Committing,
    /// A commit failed: the store may be ahead for good.
    Broken,
}

/// What the [`maintainer`](crate::maintain) and those who wait for it tell each other.
#[derive(Default)]
struct Progress {
    filled: Filled,
    /// The index may have work to do in the background.
    due: bool,
    /// When words of forgotten memories are to be gone from the index's memory too.
    erase_at: Option<Instant>,
    /// Leaves whose derived data is not kept as it is.
    stale: BTreeSet<u64>,
    stop: bool,
    /// Whether derived data is kept at all.
    keeps: bool,
}

/// Whether every record of the store is in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Filled {
    #[default]
    NotYet,
    Yes,
    Failed,
}

/// Why the background thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Flush,
    Erase,
    /// Many leaves are stale.
    Keep,
    Stop,
}

/// So many stale leaves are worth a commit in the background.
const MANY_STALE: usize = 256;
/// How often one who waits for the index hears how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(50);

/// Forgotten words are in no result at once, and in no level of the index after this.
const ERASE_AFTER: Duration = Duration::from_secs(30);

/// The words of a record, ready for the index.
pub(crate) fn analyse_record(id: &RecordId, record: &Record) -> Analysed {
    let name = match record.key.strip_prefix(ROOT) {
        Some(below) => below,
        None if record.key_made_up => "",
        None => &record.key,
    };
    // The tag that every file has is not among them: it tells nothing.
    let (title, tags) = (record.title.as_deref(), record.tags.as_slice());
    analyse(&Document { id: *id.as_bytes(), name, title, tags, text: &record.text })
}

/// What a draft changes in the index: worked out before the commit, so that publishing is quick.
pub(crate) struct IndexChanges {
    added: Vec<Analysed>,
    removed: Vec<DocumentId>,
    leaves: BTreeSet<u64>,
    names: Vec<ChangedName>,
}

impl IndexChanges {
    pub(crate) fn of(draft: &Draft<'_>) -> Self {
        let (puts, removes) = draft.changes();
        let mut puts: Vec<_> = puts.collect();
        puts.sort_by(|a, b| a.entry.key.cmp(&b.entry.key));
        let changed = puts.iter().map(|put| &put.entry).chain(removes);
        Self {
            leaves: changed.map(|entry| leaf_of(entry.place)).collect(),
            names: draft.changed_names(),
            added: puts.into_iter().map(|put| analyse_record(&put.entry.id, &put.record)).collect(),
            removed: removes.iter().map(|entry| *entry.id.as_bytes()).collect(),
        }
    }
}

/// A commit under way. Dropped without [`Commit::publish`], it leaves the store shut.
pub(crate) struct Commit<'a> {
    published: &'a Published,
    after: Phase,
}

impl Commit<'_> {
    /// Makes what was committed what readers see from now on.
    pub(crate) fn publish(mut self, names: Names, epoch: u64, changes: IndexChanges) {
        let published = self.published;
        let mut index = published.index.write();
        for id in &changes.removed {
            index.remove(id);
        }
        for document in changes.added {
            index.insert(document);
        }
        let due = index.flush_due().is_some();
        let next = published.state.read().next(names, epoch);
        *published.state.write() = Arc::new(next);
        drop(index);
        self.after = Phase::Settled;
        published.changes.note(changes.names);
        if due || !changes.leaves.is_empty() {
            published.signal(|progress| {
                progress.due |= due;
                progress.stale.extend(changes.leaves);
                if !changes.removed.is_empty() {
                    progress.erase_at.get_or_insert_with(|| Instant::now() + ERASE_AFTER);
                }
            });
        }
    }
}

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        *self.published.phase.lock() = self.after;
        self.published.phase_changed.notify_all();
    }
}

impl Published {
    /// Publishes a loaded state with an index that is still empty.
    pub(crate) fn new(state: State) -> Self {
        Self {
            state: RwLock::new(Arc::new(state)),
            index: RwLock::default(),
            phase: Mutex::new(Phase::Settled),
            phase_changed: Condvar::new(),
            progress: Mutex::default(),
            progressed: Condvar::new(),
            filled_with: AtomicU64::new(0),
            changes: ChangeLog::new(),
        }
    }

    /// Announces a commit. It is the caller's turn.
    pub(crate) fn begin_commit(&self) -> Result<Commit<'_>, StoreError> {
        let mut phase = self.phase.lock();
        if *phase == Phase::Broken {
            return Err(StoreError::Shut);
        }
        *phase = Phase::Committing;
        Ok(Commit { published: self, after: Phase::Broken })
    }

    /// Whether a commit failed, so that no later one is made.
    pub(crate) fn is_broken(&self) -> bool {
        *self.phase.lock() == Phase::Broken
    }

    /// The current state, to be read: it stays as it is for as long as it is held.
    pub(crate) fn state(&self) -> Result<Arc<State>, StoreError> {
        loop {
            let state = self.latest();
            if state.pin()? {
                return Ok(state);
            }
            self.wait_published(&state)?;
        }
    }

    /// The current state as it is, for its names and as the base of the next.
    pub(crate) fn latest(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// Runs a search on the index, and returns with it the state of the same moment.
    pub(crate) fn search<R>(
        &self,
        search: impl FnOnce(&TextIndex, &State) -> R,
    ) -> Result<(R, Arc<State>), StoreError> {
        loop {
            let index = self.index.read();
            let state = self.latest();
            if state.pin()? {
                return Ok((search(&index, &state), state));
            }
            drop(index);
            self.wait_published(&state)?;
        }
    }

    /// Waits until `stale` is replaced by the state of the commit that has just happened.
    fn wait_published(&self, stale: &Arc<State>) -> Result<(), StoreError> {
        let mut phase = self.phase.lock();
        while Arc::ptr_eq(&self.latest(), stale) {
            match *phase {
                Phase::Committing => self.phase_changed.wait(&mut phase),
                Phase::Settled | Phase::Broken => return Err(StoreError::Shut),
            }
        }
        Ok(())
    }

    /// What changes from now on.
    pub(crate) fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// Looks at the index.
    pub(crate) fn index<R>(&self, look: impl FnOnce(&TextIndex) -> R) -> R {
        look(&self.index.read())
    }

    /// Sets numbers aside for the records that the index lacks.
    pub(crate) fn reserve(&self, documents: u64) {
        self.index.write().reserve(documents);
    }

    /// Counts a record that is ready for the index.
    pub(crate) fn count_filled(&self) {
        self.filled_with.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds records that the index lacks, each under its number, unless they are no longer current.
    pub(crate) fn index_existing(&self, documents: Vec<(u64, Analysed)>) {
        let mut index = self.index.write();
        let state = Arc::clone(&self.state.read());
        for (number, document) in documents {
            if state.names.by_id(&RecordId::from_bytes(*document.id())).is_some() {
                index.insert_as(document, number);
            }
        }
    }

    /// Does the index's slow work, piece by piece, until none is due or it is time to stop.
    ///
    /// With `erase`, that also rewrites every level that still holds words of forgotten memories.
    pub(crate) fn maintain_index(&self, erase: bool) {
        while !self.stopping() {
            let job = self
                .index(|index| index.flush_due().or_else(|| if erase { index.erase_due() } else { None }));
            let Some(job) = job else { return };
            match job.run() {
                Ok(segment) => {
                    // Bound, so that what is replaced is dropped after the lock is let go.
                    let retired = self.index.write().install(segment);
                    drop(retired);
                }
                Err(error) => {
                    // The passages stay where they are, and are found just as well.
                    tracing::error!(%error, "an index segment could not be written");
                    return;
                }
            }
        }
    }

    /// Says whether every record is in the index, or that it could not be filled.
    pub(crate) fn set_filled(&self, ok: bool) {
        self.signal(|progress| progress.filled = if ok { Filled::Yes } else { Filled::Failed });
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.progress.lock().filled == Filled::Yes
    }

    /// Waits until every record is in the index, and says meanwhile how many are. False if that failed, the store
    /// is about to close, or nobody waits any longer.
    pub(crate) fn wait_filled(&self, told: &Told) -> bool {
        let mut progress = self.progress.lock();
        while progress.filled == Filled::NotYet && !progress.stop && !told.is_given_up() {
            let indexed = self.filled_with.load(Ordering::Relaxed);
            told.set(indexed, self.latest().names.len().max(indexed + 1));
            self.progressed.wait_for(&mut progress, TOLD_EVERY);
        }
        progress.filled == Filled::Yes
    }

    /// Waits for background work.
    pub(crate) fn wait_due(&self) -> Due {
        let mut progress = self.progress.lock();
        loop {
            if progress.stop {
                return Due::Stop;
            }
            if std::mem::take(&mut progress.due) {
                return Due::Flush;
            }
            if progress.stale.len() >= MANY_STALE && progress.keeps {
                return Due::Keep;
            }
            match progress.erase_at {
                Some(at) if at <= Instant::now() => {
                    progress.erase_at = None;
                    return Due::Erase;
                }
                Some(at) => drop(self.progressed.wait_until(&mut progress, at)),
                None => self.progressed.wait(&mut progress),
            }
        }
    }

    /// Whether something else is due than to keep derived data.
    pub(crate) fn is_awaited(&self) -> bool {
        let progress = self.progress.lock();
        progress.stop || progress.due || progress.erase_at.is_some_and(|at| at <= Instant::now())
    }

    /// From now on derived data is kept; these leaves have none yet.
    pub(crate) fn keep_from_now_on(&self, stale: impl IntoIterator<Item = u64>) {
        self.signal(|progress| {
            progress.keeps = true;
            progress.stale.extend(stale);
        });
    }

    /// Takes at most so many stale leaves.
    pub(crate) fn take_stale(&self, most: usize) -> Vec<u64> {
        let mut progress = self.progress.lock();
        if !progress.keeps {
            return Vec::new();
        }
        let rest = progress.stale.iter().nth(most).copied();
        let rest = rest.map(|first| progress.stale.split_off(&first)).unwrap_or_default();
        std::mem::replace(&mut progress.stale, rest).into_iter().collect()
    }

    /// Ends the background work.
    pub(crate) fn stop(&self) {
        self.changes.close();
        self.signal(|progress| progress.stop = true);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.progress.lock().stop
    }

    fn signal(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress.lock());
        self.progressed.notify_all();
    }
}
