//! Changes on the way to a commit: the names as they will be, and what is to be written.
//!
//! A draft collects the changes of several writers. Each is atomic: [`Draft::mark`] before it and
//! [`Draft::reset`] if it fails.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

use rpds::HashTrieMapSync;

use crate::changes::ChangedName;
use crate::contract::{CopyKind, OperationId, Receipt};
use crate::operations::{Done, Operations};
use crate::progress::Progress;
use crate::record::{Entry, Record};
use crate::sealed::RecordId;
use crate::state::{Names, State};
use crate::store::{Batch, StoreError};
use crate::time;
use crate::vault::{Changes, Copied, NewPiece, ToErase, ToLog, Version};

/// Copies that one receipt names at most, the latest first.
const MOST_COPIES: usize = 64;

/// See the module.
pub(crate) struct Draft<'a> {
    /// The names as they will be.
    pub(crate) names: Names,
    base: &'a State,
    before: &'a Operations,
    /// What is to be written.
    puts: HashTrieMapSync<RecordId, Put>,
    /// Versions of the base that go. Only ever grows, so that a mark is its length.
    removes: Vec<Arc<Entry>>,
    /// Named operations of this draft. Only ever grows, too.
    done: Vec<(OperationId, Done)>,
    /// What it forgets for good. Only ever grows, too.
    erasures: Vec<Erasing>,
    /// The number of the first of them in the log.
    first_erasure: u64,
    /// Copies of the memories that are to be logged.
    copies: Vec<Copied>,
    /// Derived data that is to be kept. A change that brings some does nothing else and never fails.
    pieces: BTreeMap<u64, NewPiece>,
    /// How often something was changed; and how often when the change that is being made began.
    changes: u64,
    began_at: u64,
    now: u64,
}

/// A version that is to be written.
#[derive(Clone)]
pub(crate) struct Put {
    pub(crate) entry: Arc<Entry>,
    pub(crate) record: Arc<Record>,
}

/// Memories that are forgotten together, for one receipt.
struct Erasing {
    /// How many.
    count: u64,
    /// Their versions in the base.
    entries: Vec<Arc<Entry>>,
    receipt: Arc<OnceLock<Receipt>>,
}

/// What a receipt comes by: its number in the log, and itself once the commit is made.
pub(crate) struct Ticket {
    index: u64,
    receipt: Arc<OnceLock<Receipt>>,
}

impl Ticket {
    /// Of a receipt that is in the log.
    pub(crate) fn of(index: u64) -> Self {
        Self { index, receipt: Arc::default() }
    }

    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// The receipt, if this process made it.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        self.receipt.get().cloned()
    }
}

/// A moment of a draft, to go back to.
pub(crate) struct Mark {
    names: Names,
    puts: HashTrieMapSync<RecordId, Put>,
    removes: usize,
    done: usize,
    erasures: usize,
    copies: usize,
}

impl<'a> Draft<'a> {
    /// A draft upon a state, and upon the operations and the number of erasures that led to it.
    pub(crate) fn new(base: &'a State, before: &'a Operations, erasures: u64) -> Self {
        Self {
            names: base.names.clone(),
            base,
            before,
            puts: HashTrieMapSync::default(),
            removes: Vec::new(),
            done: Vec::new(),
            erasures: Vec::new(),
            first_erasure: erasures,
            copies: Vec::new(),
            pieces: BTreeMap::new(),
            changes: 0,
            began_at: 0,
            now: time::now(),
        }
    }

    /// The time of this commit.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The record of an entry of this draft.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Option<Arc<Record>>, StoreError> {
        match self.puts.get(&entry.id) {
            Some(put) => Ok(Some(Arc::clone(&put.record))),
            None => Ok(self.base.read(entry)?.map(Arc::new)),
        }
    }

    /// Writes a record under its name, in place of the one that has it. Returns the new version's id.
    pub(crate) fn put(&mut self, record: Record) -> RecordId {
        self.changes += 1;
        let id = RecordId::random();
        let entry = Arc::new(Entry::of(id, self.names.place_for(&record.key), &record));
        let replaced = self.names.insert(Arc::clone(&entry));
        self.puts.insert_mut(id, Put { entry, record: Arc::new(record) });
        self.drop_version(replaced);
        id
    }

    /// Removes the record of a name, if there is one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let removed = self.names.remove(name);
        let existed = removed.is_some();
        self.changes += u64::from(existed);
        self.drop_version(removed);
        existed
    }

    /// Forgets memories for good. What comes back is for their receipt; nothing if there are none.
    pub(crate) fn erase(&mut self, doomed: Vec<Arc<Entry>>, progress: &Progress) -> Option<Ticket> {
        if doomed.is_empty() {
            return None;
        }
        let count = doomed.len() as u64;
        let mut entries = Vec::with_capacity(doomed.len());
        for (done, entry) in (0..).zip(doomed) {
            // The last step is the commit.
            progress.set(done, count + 1);
            self.remove(&entry.key);
            entries.extend(self.stored(&entry));
        }
        let ticket = Ticket::of(self.first_erasure + self.erasures.len() as u64);
        self.erasures.push(Erasing { count, entries, receipt: Arc::clone(&ticket.receipt) });
        Some(ticket)
    }

    /// The version in the base of a memory that is being forgotten. One that this draft wrote was never stored;
    /// what it took the place of was, perhaps under another name.
    fn stored(&self, entry: &Entry) -> Option<Arc<Entry>> {
        if let Some(stored) = self.base.names.by_id(&entry.id) {
            return Some(Arc::clone(stored));
        }
        let named: HashSet<_> =
            self.erasures.iter().flat_map(|erasing| &erasing.entries).map(|e| e.id).collect();
        let same = |gone: &&Arc<Entry>| gone.origin == entry.origin && !named.contains(&gone.id);
        self.removes.iter().find(same).cloned()
    }

    /// Notes that a copy of the memories is being made.
    pub(crate) fn copied(&mut self, kind: CopyKind, place: String) {
        self.copies.push(Copied { at: self.now, kind, place });
    }

    /// Keeps derived data, as far as what it was derived from is still there when this is committed.
    pub(crate) fn keep(&mut self, pieces: BTreeMap<u64, NewPiece>) {
        self.pieces.extend(pieces);
    }

    /// What an operation did, if it was made before.
    pub(crate) fn made(&self, operation: Option<OperationId>) -> Option<Done> {
        let operation = operation?;
        let here = self.done.iter().find(|(id, _)| *id == operation).map(|(_, done)| done);
        here.or_else(|| self.before.get(&operation)).cloned()
    }

    /// Notes what an operation did. One that changed nothing needs no note: made again, it does the same.
    pub(crate) fn note(&mut self, operation: Option<OperationId>, done: Done) {
        if self.changes > self.began_at {
            self.done.extend(operation.map(|id| (id, done)));
        }
    }

    fn drop_version(&mut self, entry: Option<Arc<Entry>>) {
        if let Some(entry) = entry
            && !self.puts.remove_mut(&entry.id)
        {
            self.removes.push(entry);
        }
    }

    /// Marks the moment before a change.
    pub(crate) fn mark(&mut self) -> Mark {
        self.began_at = self.changes;
        Mark {
            names: self.names.clone(),
            puts: self.puts.clone(),
            removes: self.removes.len(),
            done: self.done.len(),
            erasures: self.erasures.len(),
            copies: self.copies.len(),
        }
    }

    pub(crate) fn reset(&mut self, mark: Mark) {
        self.names = mark.names;
        self.puts = mark.puts;
        self.removes.truncate(mark.removes);
        self.done.truncate(mark.done);
        self.erasures.truncate(mark.erasures);
        self.copies.truncate(mark.copies);
    }

    /// Whether nothing would be written. Changes that cancel each other out may still have to be noted, and what was
    /// forgotten among them has its receipt.
    pub(crate) fn is_empty(&self) -> bool {
        let nothing_changes = self.puts.is_empty() && self.removes.is_empty() && self.pieces.is_empty();
        nothing_changes && self.done.is_empty() && self.erasures.is_empty() && self.copies.is_empty()
    }

    /// What is to be written and removed.
    pub(crate) fn changes(&self) -> (impl Iterator<Item = &Put>, &[Arc<Entry>]) {
        (self.puts.values(), &self.removes)
    }

    /// Each name that is changed, and whether its memory comes or goes.
    pub(crate) fn changed_names(&self) -> Vec<ChangedName> {
        let put = self.puts.values().map(|put| &*put.entry.key);
        let removed = self.removes.iter().map(|entry| &*entry.key);
        let names: BTreeSet<&str> = put.chain(removed).collect();
        let listed = |name: &str| self.base.names.get(name).is_some() != self.names.get(name).is_some();
        names.into_iter().map(|name| (name.into(), listed(name))).collect()
    }

    /// Seals the changes for the store. What they do to the keys is to be worked into the batch.
    pub(crate) fn seal(&mut self, epoch: u64) -> Result<(Batch, Changes), StoreError> {
        let pieces = std::mem::take(&mut self.pieces);
        let (mut batch, mut changes) = (Batch::default(), Changes { pieces, ..Changes::default() });
        for entry in &self.removes {
            batch.removes.push(entry.id);
            changes.places.insert(entry.place, None);
        }
        for Put { entry, record } in self.puts.values() {
            batch.puts.push((entry.id, record.seal(&entry.version_key, &entry.id, epoch)?));
            let version = Version { id: entry.id, key: entry.version_key.clone() };
            changes.places.insert(entry.place, Some(version));
        }
        self.before.note(&mut batch, epoch, self.now, &self.done)?;
        Ok((batch, changes))
    }

    /// What is to be logged, where `copies` were made before.
    pub(crate) fn log(&self, copies: &[Copied]) -> ToLog {
        let erasure = |erasing: &Erasing| {
            let entries = &erasing.entries;
            let oldest = entries.iter().map(|entry| entry.created_at).min();
            // What was made after the oldest of them may hold it, whatever it was called then.
            let may_hold = |copied: &&Copied| oldest.is_none_or(|oldest| copied.at >= oldest);
            let version =
                |entry: &Arc<Entry>| (entry.place, Version { id: entry.id, key: entry.version_key.clone() });
            ToErase {
                count: erasing.count,
                versions: entries.iter().map(version).collect(),
                origins: entries.iter().map(|entry| entry.origin).collect(),
                copies: self
                    .copies
                    .iter()
                    .rev()
                    .chain(copies.iter().rev())
                    .filter(may_hold)
                    .take(MOST_COPIES)
                    .cloned()
                    .collect(),
            }
        };
        let erasures = self.erasures.iter().map(erasure).collect();
        ToLog { at: self.now, erasures, copies: self.copies.clone() }
    }

    /// Hands each erasure its receipt, in their order.
    pub(crate) fn hand_out(&self, receipts: impl Iterator<Item = Receipt>) {
        for (erasing, receipt) in self.erasures.iter().zip(receipts) {
            let _ = erasing.receipt.set(receipt);
        }
    }

    /// The named operations of this draft, and the copies that it logs.
    pub(crate) fn into_parts(self) -> (Vec<(OperationId, Done)>, Vec<Copied>) {
        (self.done, self.copies)
    }
}
