//! Which writes were made already, so that one that is sent again is made once.
//!
//! A process that reaches the store through another one names each of its writes. When that other
//! process dies, the write is sent again under the same name, and either it was made, or it is made
//! now. The note that it was made is committed with the write itself. A note holds no memory text and
//! no name: who asks again has the request, and the answer is told anew from both.
//!
//! Notes are kept for a while (see [`KEPT`] and [`MOST`]), far longer than anyone goes on asking.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::contract::OperationId;
use crate::store::{Batch, StoreError};
use crate::vault::OperationKey;

/// How long a note is kept at least, unless there are too many.
const KEPT: Duration = Duration::from_secs(600);
/// How many operations are remembered; beyond that, the oldest are dropped early.
const MOST: usize = 16_384;
/// No note is dropped so soon after it was made or taken up, whatever the clock says and however many there
/// are: nobody asks again for so long. A machine that slept wakes with old notes that are needed.
const GRACE: Duration = Duration::from_secs(60);
/// How many notes one commit drops at most, so that none is slow.
const DROPPED_AT_ONCE: usize = 64;

/// What is wrong when a name comes again with another kind of write.
pub(crate) const NAMED_TWICE: &str = "two different writes came under one name";

/// What a write did, as far as the request does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Done {
    /// A command of the memory tool; the line that it changed, where the answer shows it, and the number of its
    /// receipt in the log, where there is one.
    Command { line: Option<u64>, receipt: Option<u64> },
    /// A memory was stored.
    Remembered {
        /// The key, if it was made up: random, so that it tells nothing.
        made_up: Option<String>,
        version: String,
        created: bool,
        bytes: u64,
    },
    /// Memories were forgotten; which of the `keys` asked for had none, by their places, and the number of the
    /// receipt in the log.
    Forgotten { forgotten: u64, missing: Vec<u64>, receipt: Option<u64> },
    /// Memories were put back; which were kept as they were and which were left out as forgotten, by their places.
    Restored { restored: u64, unchanged: u64, kept: Vec<u64>, forgotten: Vec<u64> },
}

/// The note of one commit.
#[derive(Serialize, Deserialize)]
struct Note {
    /// Milliseconds since 1970, UTC.
    at: u64,
    done: Vec<(OperationId, Done)>,
}

/// The operations of the last while. Changed by the one that leads a commit.
pub(crate) struct Operations {
    key: OperationKey,
    done: HashMap<OperationId, Done>,
    /// Oldest first.
    commits: VecDeque<Noted>,
}

/// The note of one commit, as it is kept in mind.
struct Noted {
    epoch: u64,
    /// Milliseconds since 1970, UTC.
    at: u64,
    /// When this process made it or took it up.
    since: Instant,
    ids: Vec<OperationId>,
}

impl Operations {
    /// Takes up the notes of a store. One that does not open is of no use and is dropped in time.
    pub(crate) fn load(key: OperationKey, notes: Vec<(u64, Vec<u8>)>) -> Self {
        let mut operations = Self { key, done: HashMap::new(), commits: VecDeque::new() };
        for (epoch, sealed) in notes {
            let opened = operations.key.unseal(epoch, &sealed).ok();
            match opened.and_then(|note| postcard::from_bytes(&note).ok()) {
                Some(Note { at, done }) => operations.add(epoch, at, done),
                None => {
                    tracing::warn!(
                        epoch,
                        "a note on operations can't be opened; the memories are not affected"
                    );
                    operations.add(epoch, 0, Vec::new());
                }
            }
        }
        operations
    }

    /// What an operation did, if it was made.
    pub(crate) fn get(&self, id: &OperationId) -> Option<&Done> {
        self.done.get(id)
    }

    /// Adds the note of a commit to its batch, and drops some that are no longer needed.
    pub(crate) fn note(
        &self,
        batch: &mut Batch,
        epoch: u64,
        now: u64,
        done: &[(OperationId, Done)],
    ) -> Result<(), StoreError> {
        if done.is_empty() {
            return Ok(());
        }
        let note = Note { at: now, done: done.to_vec() };
        let sealed = postcard::to_allocvec(&note).ok().and_then(|note| self.key.seal(epoch, &note));
        batch.note = Some(sealed.ok_or(StoreError::Fault("a note on operations could not be sealed"))?);
        batch.stale_notes = self.stale(now);
        Ok(())
    }

    /// Takes up what was committed.
    pub(crate) fn committed(&mut self, batch: &Batch, epoch: u64, now: u64, done: Vec<(OperationId, Done)>) {
        for _ in &batch.stale_notes {
            if let Some(Noted { ids, .. }) = self.commits.pop_front() {
                for id in ids {
                    self.done.remove(&id);
                }
            }
        }
        if !done.is_empty() {
            self.add(epoch, now, done);
        }
    }

    fn add(&mut self, epoch: u64, at: u64, done: Vec<(OperationId, Done)>) {
        let ids = done.iter().map(|(id, _)| *id).collect();
        self.commits.push_back(Noted { epoch, at, since: Instant::now(), ids });
        self.done.extend(done);
    }

    /// The oldest epochs whose notes may go.
    fn stale(&self, now: u64) -> Vec<u64> {
        let kept = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let mut over = self.done.len().saturating_sub(MOST);
        let stale = self.commits.iter().take(DROPPED_AT_ONCE).take_while(|noted| {
            let crowded = over > 0;
            over = over.saturating_sub(noted.ids.len());
            noted.since.elapsed() >= GRACE && (crowded || now.saturating_sub(noted.at) > kept)
        });
        stale.map(|noted| noted.epoch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> OperationKey {
        OperationKey::random()
    }

    fn id(counter: u64) -> OperationId {
        OperationId { client: [9; 16], counter }
    }

    const DONE: Done = Done::Command { line: None, receipt: None };

    /// Commits one operation, as a leader does.
    fn commit(operations: &mut Operations, epoch: u64, now: u64) -> Batch {
        let mut batch = Batch::default();
        let done = vec![(id(epoch), DONE)];
        operations.note(&mut batch, epoch, now, &done).unwrap();
        operations.committed(&batch, epoch, now, done);
        batch
    }

    #[test]
    fn what_was_noted_is_known_after_opening_again() {
        let key = key();
        let mut operations = Operations::load(key.clone(), Vec::new());
        let notes = (1..=3).map(|epoch| (epoch, commit(&mut operations, epoch, 1_000).note.unwrap()));
        let notes: Vec<_> = notes.collect();
        let again = Operations::load(key.clone(), notes.clone());
        assert_eq!((again.get(&id(3)), again.get(&id(4))), (Some(&DONE), None));
        // Moved to another epoch, a note is no longer one.
        let moved = notes.into_iter().map(|(epoch, note)| (epoch + 1, note)).collect();
        assert_eq!(Operations::load(key, moved).get(&id(3)), None);
    }

    #[test]
    fn notes_are_kept_for_a_while_and_then_dropped_oldest_first() {
        let mut operations = Operations::load(key(), Vec::new());
        let long = u64::try_from(KEPT.as_millis()).unwrap() + 1;
        commit(&mut operations, 1, 0);
        assert!(
            commit(&mut operations, 2, long).stale_notes.is_empty(),
            "not so soon, whatever the clock says"
        );
        age(&mut operations);
        assert!(commit(&mut operations, 3, 10).stale_notes.is_empty(), "not while it is young");
        assert_eq!(commit(&mut operations, 4, long).stale_notes, [1]);
        assert_eq!((operations.get(&id(1)), operations.get(&id(2))), (None, Some(&DONE)));
    }

    fn age(operations: &mut Operations) {
        let long_ago = Instant::now().checked_sub(GRACE).unwrap();
        operations.commits.iter_mut().for_each(|noted| noted.since = long_ago);
    }

    #[test]
    fn more_than_a_stated_number_are_kept_for_as_long_as_they_may_be_needed() {
        let mut operations = Operations::load(key(), Vec::new());
        for epoch in 0..MOST as u64 + 99 {
            commit(&mut operations, epoch, 0);
        }
        assert_eq!(operations.done.len(), MOST + 99);
        age(&mut operations);
        commit(&mut operations, MOST as u64 + 99, 0);
        commit(&mut operations, MOST as u64 + 100, 0);
        assert!(operations.done.len() <= MOST + 2);
        assert!(operations.get(&id(MOST as u64 + 99)).is_some());
    }
}
