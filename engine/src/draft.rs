//! Changes on the way to a commit: the names as they will be, and what is to be written.
//!
//! A draft collects the changes of several writers. Each is atomic: [`Draft::mark`] before it and
//! [`Draft::reset`] if it fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use rpds::HashTrieMapSync;

use crate::changes::ChangedName;
use crate::contract::OperationId;
use crate::operations::{Done, Operations};
use crate::record::{Entry, Record};
use crate::sealed::RecordId;
use crate::state::{Names, State};
use crate::store::{Batch, StoreError};
use crate::time;

/// See the module.
pub(crate) struct Draft<'a> {
    /// The names as they will be.
    pub(crate) names: Names,
    base: &'a State,
    before: &'a Operations,
    /// What is to be written.
    puts: HashTrieMapSync<RecordId, Arc<Record>>,
    /// Records of the base that go. Only ever grows, so that a mark is its length.
    removes: Vec<RecordId>,
    /// Named operations of this draft. Only ever grows, too.
    done: Vec<(OperationId, Done)>,
    /// How often something was changed; and how often when the change that is being made began.
    changes: u64,
    began_at: u64,
    now: u64,
}

/// A moment of a draft, to go back to.
pub(crate) struct Mark {
    names: Names,
    puts: HashTrieMapSync<RecordId, Arc<Record>>,
    removes: usize,
    done: usize,
}

impl<'a> Draft<'a> {
    /// A draft upon a state, and upon the operations that led to it.
    pub(crate) fn new(base: &'a State, before: &'a Operations) -> Self {
        Self {
            names: base.names.clone(),
            base,
            before,
            puts: HashTrieMapSync::default(),
            removes: Vec::new(),
            done: Vec::new(),
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
            Some(record) => Ok(Some(Arc::clone(record))),
            None => Ok(self.base.read(entry)?.map(Arc::new)),
        }
    }

    /// Writes a record under its name, in place of the one that has it. Returns the new version's id.
    pub(crate) fn put(&mut self, record: Record) -> RecordId {
        self.changes += 1;
        let id = RecordId::random();
        let replaced = self.names.insert(Entry::of(id, &record));
        self.puts.insert_mut(id, Arc::new(record));
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
            self.removes.push(entry.id);
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
        }
    }

    pub(crate) fn reset(&mut self, mark: Mark) {
        self.names = mark.names;
        self.puts = mark.puts;
        self.removes.truncate(mark.removes);
        self.done.truncate(mark.done);
    }

    /// Whether nothing would be written. Changes that cancel each other out may still have to be noted.
    pub(crate) fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.removes.is_empty() && self.done.is_empty()
    }

    /// What is to be written and removed.
    pub(crate) fn changes(&self) -> (impl Iterator<Item = (&RecordId, &Arc<Record>)>, &[RecordId]) {
        (self.puts.iter(), &self.removes)
    }

    /// Each name that is changed, and whether its memory comes or goes.
    pub(crate) fn changed_names(&self) -> Vec<ChangedName> {
        let put = self.puts.values().map(|record| record.key.as_str());
        let removed = self.removes.iter().filter_map(|id| self.base.names.by_id(id)).map(|entry| &*entry.key);
        let names: BTreeSet<&str> = put.chain(removed).collect();
        let listed = |name: &str| self.base.names.get(name).is_some() != self.names.get(name).is_some();
        names.into_iter().map(|name| (name.into(), listed(name))).collect()
    }

    /// Seals the changes for the store.
    pub(crate) fn seal(&self, epoch: u64) -> Result<Batch, StoreError> {
        let puts = self
            .puts
            .iter()
            .map(|(id, record)| Ok((*id, record.seal(&self.base.keys, id, epoch)?)))
            .collect::<Result<_, StoreError>>()?;
        let mut batch = Batch { puts, removes: self.removes.clone(), ..Batch::default() };
        self.before.note(&mut batch, epoch, self.now, &self.done)?;
        Ok(batch)
    }

    /// The named operations of this draft.
    pub(crate) fn into_operations(self) -> Vec<(OperationId, Done)> {
        self.done
    }
}
