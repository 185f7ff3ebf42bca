//! The one path of every write.
//!
//! Writers queue their change and wait. Whoever has the [turn](crate::turns) takes everything that is
//! queued, runs it in order on one [`Draft`], commits the draft as one transaction and only then lets
//! any of them go: concurrent writers share the syncs of one commit, two of the store and one of the slot (group
//! commit). Each change is atomic by itself; one that fails leaves no trace and does not disturb the others.
//!
//! Readers never come here: they hold a published state and are not stopped by a commit.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::anchor::Anchor;
use crate::draft::Draft;
use crate::operations::Operations;
use crate::published::{IndexChanges, Published};
use crate::receipt;
use crate::store::{Batch, Store, StoreError};
use crate::turns::Turns;
use crate::vault::{ChainEnd, Copied, NewPiece, StoreKeys};

/// See the module.
pub(crate) struct Commits {
    store: Arc<dyn Store>,
    published: Arc<Published>,
    turns: Turns<Box<dyn Job>>,
    /// Locked by the one whose turn it is.
    state: Mutex<CommitState>,
    /// Where the store and its slot must be for a write to count; none if they are not files.
    anchors: Vec<Anchor>,
}

/// What moves on with every commit and no reader needs.
pub(crate) struct CommitState {
    pub(crate) operations: Operations,
    pub(crate) keys: StoreKeys,
    /// The copies that were made, the earliest first.
    pub(crate) copies: Vec<Copied>,
}

/// A queued change.
trait Job: Send {
    /// Makes the change, or leaves the draft as it was.
    fn run(&mut self, draft: &mut Draft<'_>);
    /// Tells the writer how it ended.
    fn settle(self: Box<Self>, committed: &Result<(), StoreError>);
}

type Outcome<R, E> = Arc<Mutex<Option<Result<R, E>>>>;

struct Change<F, R, E> {
    change: Option<F>,
    result: Option<Result<R, E>>,
    outcome: Outcome<R, E>,
}

impl<F, R, E> Job for Change<F, R, E>
where
    F: FnOnce(&mut Draft<'_>) -> Result<R, E> + Send,
    R: Send,
    E: From<StoreError> + Send,
{
    fn run(&mut self, draft: &mut Draft<'_>) {
        let Some(change) = self.change.take() else { return };
        let mark = draft.mark();
        // A fault in one change is that writer's alone.
        let result = catch_unwind(AssertUnwindSafe(|| change(draft)))
            .unwrap_or_else(|_| Err(StoreError::Fault("the change could not be made").into()));
        if result.is_err() {
            draft.reset(mark);
        }
        self.result = Some(result);
    }

    fn settle(self: Box<Self>, committed: &Result<(), StoreError>) {
        let result = match committed {
            Ok(()) => self.result,
            // Even a refusal may rest on a change that did not happen after all.
            Err(error) => Some(Err(error.clone().into())),
        };
        *self.outcome.lock() = result;
    }
}

impl Commits {
    pub(crate) fn new(store: Arc<dyn Store>, published: Arc<Published>, state: CommitState) -> Self {
        Self { store, published, turns: Turns::new(), state: Mutex::new(state), anchors: Vec::new() }
    }

    /// The same, for a store that is a file.
    pub(crate) fn anchored(self, anchors: Vec<Anchor>) -> Self {
        Self { anchors, ..self }
    }

    /// Errors while the file of the store is not where it was opened.
    pub(crate) fn check_place(&self) -> Result<(), StoreError> {
        self.anchors.iter().try_for_each(Anchor::check)
    }

    /// Makes a change and returns once it is durable and every later read sees it.
    ///
    /// Changes are made in the order in which they are queued.
    pub(crate) fn write<R, E>(
        &self,
        change: impl FnOnce(&mut Draft<'_>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let outcome: Outcome<R, E> = Arc::default();
        let job = Change { change: Some(change), result: None, outcome: Arc::clone(&outcome) };
        self.turns.run(Box::new(job), |jobs| self.commit(jobs));
        // Empty only if the one whose turn it was panicked, which shuts the store.
        let settled = outcome.lock().take();
        settled.unwrap_or_else(|| Err(StoreError::Shut.into()))
    }

    /// Runs, commits and publishes; called by the one whose turn it is.
    fn commit(&self, mut jobs: Vec<Box<dyn Job>>) {
        let mut state = self.state.lock();
        let CommitState { operations, keys, copies } = &mut *state;
        let base = self.published.latest();
        let mut draft = Draft::new(&base, operations, keys.erasures_end().length);
        for job in &mut jobs {
            job.run(&mut draft);
        }
        let durable = if draft.is_empty() {
            Ok(None)
        } else {
            self.check_place().and_then(|()| self.make_durable(&mut draft, keys, copies)).map(Some)
        };
        let now = draft.now();
        let (done, copied) = draft.into_parts();
        let committed = durable.and_then(|durable| {
            let Some((batch, epoch)) = durable else { return Ok(()) };
            operations.committed(&batch, epoch, now, done);
            copies.extend(copied);
            // What went into a file that went away meanwhile does not count as kept.
            self.check_place().map_err(|moved| StoreError::Unsettled(moved.to_string().into()))
        });
        drop(state);
        for job in jobs {
            job.settle(&committed);
        }
    }

    fn make_durable(
        &self,
        draft: &mut Draft<'_>,
        keys: &mut StoreKeys,
        copies: &[Copied],
    ) -> Result<(Batch, u64), StoreError> {
        if self.published.is_broken() {
            return Err(StoreError::Shut);
        }
        let epoch = self.store.next_epoch();
        let (mut batch, key_changes) = draft.seal(epoch)?;
        let sealed =
            keys.seal(&*self.store.snapshot()?, epoch, &key_changes, draft.log(copies), &mut batch)?;
        let changes = IndexChanges::of(draft);
        // From here until it is published, the store may be ahead of what readers see; if this ends
        // in any other way than the last line, nothing may be built on that.
        let commit = self.published.begin_commit()?;
        let shut = |error: StoreError| {
            tracing::error!(%error, "a commit failed; the store is shut until it is opened again");
            error
        };
        self.store.commit(&batch).map_err(shut)?;
        // Until the keys of what was replaced are erased, nobody is told that it is gone.
        keys.committed(&sealed).map_err(|error| shut(StoreError::Unsettled(error.to_string().into())))?;
        draft.hand_out(
            sealed.erased.iter().map(|(id, logged)| receipt::receipt(&logged.erasure, id, &logged.signature)),
        );
        commit.publish(draft.names.clone(), epoch, changes);
        Ok((batch, epoch))
    }

    /// Keeps derived data, as far as it is still true when its turn comes.
    pub(crate) fn keep(&self, pieces: BTreeMap<u64, NewPiece>) -> Result<(), StoreError> {
        self.write(move |draft| {
            draft.keep(pieces);
            Ok(())
        })
    }

    /// Where the log of erasures stands. Waits for a commit under way.
    pub(crate) fn erasures(&self) -> ChainEnd {
        self.state.lock().keys.erasures_end().clone()
    }

    /// Size of the store on disk in bytes.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.store.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::contract::OperationId;
    use crate::erasures::Erasures;
    use crate::lock::StoreLock;
    use crate::open::{Mode, Opened, open_store};
    use crate::operations::Done;
    use crate::progress::Progress;
    use crate::record::Record;
    use crate::sealed::RecordId;
    use crate::state::State;
    use crate::store::Snapshot;
    use crate::vault::{Vault, VaultOptions};

    /// A store whose commits can be counted, held up and made to fail.
    struct Harness {
        inner: Arc<dyn Store>,
        commits: AtomicU64,
        fail_from: AtomicU64,
        /// Taken for each commit.
        gate: Mutex<()>,
    }

    impl Store for Harness {
        fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
            self.inner.snapshot()
        }

        fn salt(&self) -> &[u8; 16] {
            self.inner.salt()
        }

        fn next_epoch(&self) -> u64 {
            self.inner.next_epoch()
        }

        fn notes(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
            self.inner.notes()
        }

        fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
            drop(self.gate.lock());
            let number = self.commits.fetch_add(1, Ordering::SeqCst);
            self.inner.commit(batch)?;
            if number >= self.fail_from.load(Ordering::SeqCst) {
                // As when the sync after the last write fails: the batch may be there all the same.
                return Err(StoreError::Medium("made to fail".into()));
            }
            Ok(())
        }

        fn bytes(&self) -> u64 {
            self.inner.bytes()
        }
    }

    struct Setup {
        _dir: tempfile::TempDir,
        store: Arc<Harness>,
        published: Arc<Published>,
        commits: Commits,
    }

    fn setup() -> Setup {
        let dir = tempfile::tempdir().unwrap();
        let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
        let vault = Vault::open(&options).unwrap();
        let at = dir.path();
        let opened =
            open_store(&vault, "n", at, Some(StoreLock::take(at, Duration::ZERO).unwrap()), Mode::Create);
        let Opened { store, keys, names, operations, copies, .. } = opened.unwrap();
        let store = Arc::new(Harness {
            inner: store,
            commits: AtomicU64::new(0),
            fail_from: AtomicU64::new(u64::MAX),
            gate: Mutex::new(()),
        });
        let published = Arc::new(Published::new(State::new(names, Arc::clone(&store) as _, 1)));
        let commits = Commits::new(
            Arc::clone(&store) as _,
            Arc::clone(&published),
            CommitState { operations, keys, copies },
        );
        Setup { _dir: dir, store, published, commits }
    }

    fn put(commits: &Commits, key: &str) -> Result<RecordId, StoreError> {
        let key = key.to_owned();
        commits.write(move |draft| Ok(draft.put(Record::new(key, "text".into(), 0, 0))))
    }

    fn keys(setup: &Setup) -> Vec<String> {
        setup.published.latest().names.iter().map(|entry| entry.key.to_string()).collect()
    }

    #[test]
    fn writers_that_wait_together_share_one_commit_in_their_order() {
        let setup = setup();
        let held = setup.store.gate.lock();
        thread::scope(|scope| {
            let first = scope.spawn(|| put(&setup.commits, "first"));
            // The first is held up at its commit; the others queue behind it.
            while setup.commits.turns.waiting() != Some(0) {
                thread::yield_now();
            }
            let others: Vec<_> = (0..8)
                .map(|n| {
                    let setup = &setup;
                    let writer = scope.spawn(move || put(&setup.commits, &format!("other {n}")));
                    while setup.commits.turns.waiting() != Some(n + 1) {
                        thread::yield_now();
                    }
                    writer
                })
                .collect();
            assert!(keys(&setup).is_empty(), "nothing is seen before it is durable");
            drop(held);
            first.join().unwrap().unwrap();
            for other in others {
                other.join().unwrap().unwrap();
            }
        });
        assert_eq!(setup.store.commits.load(Ordering::SeqCst), 2);
        assert_eq!(keys(&setup).len(), 9);
    }

    #[test]
    fn named_writes_that_cancel_each_other_out_are_noted_all_the_same() {
        let setup = setup();
        let name = |counter| Some(OperationId { client: [1; 16], counter });
        let done = || Done::Command { line: None, receipt: None };
        let made = |counter| {
            let made: Result<_, StoreError> = setup.commits.write(move |draft| Ok(draft.made(name(counter))));
            made.unwrap()
        };
        let held = setup.store.gate.lock();
        thread::scope(|scope| {
            let first = scope.spawn(|| put(&setup.commits, "first"));
            while setup.commits.turns.waiting() != Some(0) {
                thread::yield_now();
            }
            // These two wait for the same turn.
            let create = scope.spawn(|| {
                setup.commits.write(move |draft| -> Result<(), StoreError> {
                    draft.put(Record::new("short-lived".into(), "text".into(), 0, 0));
                    draft.note(name(1), done());
                    Ok(())
                })
            });
            while setup.commits.turns.waiting() != Some(1) {
                thread::yield_now();
            }
            let delete = scope.spawn(|| {
                setup.commits.write(move |draft| -> Result<(), StoreError> {
                    draft.remove("short-lived");
                    draft.note(name(2), done());
                    Ok(())
                })
            });
            while setup.commits.turns.waiting() != Some(2) {
                thread::yield_now();
            }
            drop(held);
            first.join().unwrap().unwrap();
            create.join().unwrap().unwrap();
            delete.join().unwrap().unwrap();
        });
        assert_eq!(keys(&setup), ["first"]);
        assert_eq!((made(1), made(2), made(3)), (Some(done()), Some(done()), None));
        assert_eq!(setup.store.notes().unwrap().len(), 1, "and durably so");
    }

    #[test]
    fn what_is_written_and_forgotten_before_it_was_ever_stored_has_a_receipt_all_the_same() {
        let setup = setup();
        let forget = || {
            let forgotten: Result<_, StoreError> = setup.commits.write(|draft| {
                draft.put(Record::new("short-lived".into(), "text".into(), 0, 0));
                let doomed = draft.names.get("short-lived").cloned();
                Ok(draft.erase(doomed.into_iter().collect(), &Progress::default()))
            });
            forgotten.unwrap().and_then(|ticket| ticket.receipt()).map(|receipt| receipt.log_index)
        };
        assert_eq!(forget(), Some(0), "in an empty store");
        put(&setup.commits, "kept").unwrap();
        assert_eq!(forget(), Some(1), "beside others");
        let keys = setup.commits.state.lock().keys.log_keys().clone();
        let snapshot = setup.store.snapshot().unwrap();
        let erasures = Erasures { snapshot: &*snapshot, keys: &keys };
        for number in ["0", "1"] {
            receipt::verify(&erasures.find(number).unwrap(), None).unwrap();
        }
    }

    #[test]
    fn a_change_that_fails_or_panics_leaves_no_trace_and_disturbs_no_other() {
        let setup = setup();
        put(&setup.commits, "kept").unwrap();
        let refused: Result<(), StoreError> = setup.commits.write(|draft| {
            draft.put(Record::new("half".into(), "text".into(), 0, 0));
            draft.remove("kept");
            Err(StoreError::InUse)
        });
        assert!(matches!(refused, Err(StoreError::InUse)));
        let panicked: Result<(), StoreError> = setup.commits.write(|draft| {
            draft.remove("kept");
            panic!("a fault on purpose")
        });
        assert!(matches!(panicked, Err(StoreError::Fault(_))));
        put(&setup.commits, "later").unwrap();
        assert_eq!(keys(&setup), ["kept", "later"]);
        assert_eq!(setup.store.commits.load(Ordering::SeqCst), 2, "what changes nothing is not committed");
    }

    #[test]
    fn after_a_failed_commit_nothing_is_acknowledged_and_no_reader_waits_for_ever() {
        let setup = setup();
        put(&setup.commits, "acknowledged").unwrap();
        setup.store.fail_from.store(1, Ordering::SeqCst);
        assert!(matches!(put(&setup.commits, "lost"), Err(StoreError::Medium(_))));
        assert!(matches!(put(&setup.commits, "later"), Err(StoreError::Shut)));
        assert_eq!(keys(&setup), ["acknowledged"]);
        // The store is ahead of what is published: a reader is told so, since it can't be served.
        let (answer, answered) = mpsc::channel();
        let published = Arc::clone(&setup.published);
        thread::spawn(move || answer.send(published.state().map(|_| ())));
        let told = answered.recv_timeout(std::time::Duration::from_secs(10)).expect("readers do not hang");
        assert!(matches!(told, Err(StoreError::Shut)));
    }

    #[test]
    fn readers_go_on_while_a_commit_waits_for_the_disk() {
        let setup = setup();
        put(&setup.commits, "before").unwrap();
        let held = setup.store.gate.lock();
        thread::scope(|scope| {
            let writer = scope.spawn(|| put(&setup.commits, "during"));
            while setup.commits.turns.waiting() != Some(0) {
                thread::yield_now();
            }
            let state = setup.published.state().unwrap();
            let entry = state.names.get("before").unwrap();
            assert!(state.read(entry).unwrap().is_some());
            drop(held);
            writer.join().unwrap().unwrap();
            assert!(state.read(entry).unwrap().is_some(), "a moment stays while it is held");
        });
        assert_eq!(keys(&setup), ["before", "during"]);
    }
}
