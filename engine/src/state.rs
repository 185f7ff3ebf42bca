//! A moment of the memory: which names exist, and the snapshot that holds what they name.
//!
//! Names are cheap to clone and to change (persistent maps), so that readers keep the moment they
//! started with while writers prepare the next one.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use rpds::{HashTrieMapSync, RedBlackTreeMapSync};

use crate::path::{ROOT, parents};
use crate::places::Places;
use crate::record::{Entry, Record};
use crate::sealed::RecordId;
use crate::store::{Snapshot, Store, StoreError};

/// A name in the order of the tree: `/` comes before every other character, so that a directory's
/// files follow each other. Held with `/` as the least byte, so that comparing is comparing bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderedName(Box<[u8]>);

impl OrderedName {
    pub(crate) fn new(name: &str) -> Self {
        // No name has a NUL; what is asked for may, and must not be taken for a `/`.
        let held = |byte| match byte {
            b'/' => 0,
            0 => 0xff,
            byte => byte,
        };
        Self(name.bytes().map(held).collect())
    }

    fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

/// All names with their entries, and sums over them.
#[derive(Clone, Default)]
pub(crate) struct Names {
    places: Places,
    by_name: RedBlackTreeMapSync<OrderedName, Arc<Entry>>,
    by_id: HashTrieMapSync<RecordId, Arc<Entry>>,
    files: u64,
    text_bytes: u64,
}

impl Names {
    /// No names yet, and these places taken.
    pub(crate) fn over(places: Places) -> Self {
        Self { places, ..Self::default() }
    }

    /// Where the next version of the memory of this name is to lie.
    pub(crate) fn place_for(&mut self, name: &str) -> u64 {
        match self.get(name) {
            Some(entry) => entry.place,
            None => self.places.take(),
        }
    }

    /// Adds an entry, or replaces the one of its name and returns that. Its place is taken already.
    pub(crate) fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let name = OrderedName::new(&entry.key);
        let replaced = self.by_name.get(&name).cloned();
        if let Some(replaced) = &replaced {
            self.by_id.remove_mut(&replaced.id);
            self.discount(replaced);
        }
        self.files += u64::from(entry.is_file());
        self.text_bytes += entry.bytes;
        self.by_id.insert_mut(entry.id, Arc::clone(&entry));
        self.by_name.insert_mut(name, entry);
        replaced
    }

    fn discount(&mut self, gone: &Entry) {
        self.files -= u64::from(gone.is_file());
        self.text_bytes -= gone.bytes;
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<Entry>> {
        let name = OrderedName::new(name);
        let entry = Arc::clone(self.by_name.get(&name)?);
        self.by_name.remove_mut(&name);
        self.by_id.remove_mut(&entry.id);
        self.discount(&entry);
        self.places.give_back(entry.place);
        Some(entry)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(&OrderedName::new(name))
    }

    pub(crate) fn by_id(&self, id: &RecordId) -> Option<&Arc<Entry>> {
        self.by_id.get(id)
    }

    /// Every entry, in the order of names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_name.values()
    }

    /// The entries whose name starts with `prefix`, in the order of names.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &str) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        let prefix = OrderedName::new(prefix);
        self.by_name
            .range((Bound::Included(prefix.clone()), Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .map(|(_, entry)| entry)
    }

    /// The entries whose name starts with `prefix` and follows `after`, in the order of names.
    pub(crate) fn with_prefix_after<'a>(
        &'a self,
        prefix: &str,
        after: &str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        let (prefix, after) = (OrderedName::new(prefix), OrderedName::new(after));
        let from = if after < prefix { Bound::Included(prefix.clone()) } else { Bound::Excluded(after) };
        self.by_name
            .range((from, Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(&prefix))
            .map(|(_, entry)| entry)
    }

    /// The files below a directory, in the order of names.
    pub(crate) fn under<'a>(&'a self, directory: &str) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
        self.with_prefix(&format!("{directory}/"))
    }

    /// Whether there is such a directory: the root, or one with a file below it.
    pub(crate) fn is_dir(&self, path: &str) -> bool {
        path == ROOT || self.under(path).next().is_some()
    }

    /// The file that stands where a directory above `path` would have to be.
    pub(crate) fn file_above<'p>(&self, path: &'p str) -> Option<&'p str> {
        parents(path).find(|parent| self.get(parent).is_some())
    }

    /// How many memories there are.
    pub(crate) fn len(&self) -> u64 {
        self.by_name.size() as u64
    }

    /// How many of them are files of the tree.
    pub(crate) fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of text in all of them.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.text_bytes
    }
}

/// A published moment. Once it is [pinned](State::pin), everything in it stays readable for as long
/// as it is held.
///
/// The store's snapshot is taken when the first reader comes: a snapshot that nobody reads would
/// only keep the store from using freed pages again.
pub(crate) struct State {
    pub(crate) names: Names,
    store: Arc<dyn Store>,
    epoch: u64,
    snapshot: OnceLock<Box<dyn Snapshot>>,
}

impl State {
    /// The names as of a commit of the store.
    pub(crate) fn new(names: Names, store: Arc<dyn Store>, epoch: u64) -> Self {
        Self { names, store, epoch, snapshot: OnceLock::new() }
    }

    /// The state that follows this one.
    pub(crate) fn next(&self, names: Names, epoch: u64) -> Self {
        Self::new(names, Arc::clone(&self.store), epoch)
    }

    /// The epoch of the commit that it is of; 0 before the first.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes the store's snapshot, unless it is taken. False if the store has moved on since, so
    /// that this state is about to be replaced.
    pub(crate) fn pin(&self) -> Result<bool, StoreError> {
        if self.snapshot.get().is_some() {
            return Ok(true);
        }
        let snapshot = self.store.snapshot()?;
        if snapshot.epoch() != self.epoch {
            return Ok(false);
        }
        // Another reader may have been quicker, with the same snapshot.
        let _ = self.snapshot.set(snapshot);
        Ok(true)
    }

    /// The sealed piece that was derived from a leaf, if there is one.
    pub(crate) fn piece(&self, leaf: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self.snapshot.get() {
            Some(snapshot) => snapshot.piece(leaf),
            None => Ok(None),
        }
    }

    /// The record of an entry, or `None` if the entry is not of this moment.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Option<Record>, StoreError> {
        if !self.pin()? {
            return Ok(None);
        }
        match self.snapshot.get() {
            Some(snapshot) => Record::read(&**snapshot, entry),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_directory_comes_before_names_that_only_begin_like_it() {
        let mut names = Names::default();
        for key in ["/memories/a-b", "/memories/a.txt", "/memories/a/z", "/memories/a/b/c"] {
            names.insert(Arc::new(Entry::named(key, 1)));
        }
        let under: Vec<_> = names.under("/memories/a").map(|e| e.key.to_string()).collect();
        assert_eq!(under, ["/memories/a/b/c", "/memories/a/z"]);
        assert!(
            names.is_dir("/memories/a/b") && !names.is_dir("/memories/a.txt") && !names.is_dir("/memories/x")
        );
    }

    proptest! {
        #[test]
        fn names_equal_a_plain_map(steps in prop::collection::vec(("[ab/.\u{1}]{1,4}", 0u64..9, any::<bool>()), 0..60)) {
            let (mut names, mut plain) = (Names::default(), BTreeMap::new());
            for (key, bytes, insert) in steps {
                if insert {
                    prop_assert_eq!(names.insert(Arc::new(Entry::named(&key, bytes))).map(|e| e.bytes), plain.insert(key, bytes));
                } else {
                    prop_assert_eq!(names.remove(&key).map(|e| e.bytes), plain.remove(&key));
                }
            }
            prop_assert_eq!(names.len(), plain.len() as u64);
            prop_assert_eq!(names.text_bytes(), plain.values().sum::<u64>());
            for prefix in ["", "a", "a/", "/"] {
                let mut expected: Vec<_> = plain.keys().filter(|k| k.starts_with(prefix)).cloned().collect();
                expected.sort_by_key(|k| k.chars().map(|c| (c != '/', c)).collect::<Vec<_>>());
                let got: Vec<_> = names.with_prefix(prefix).map(|e| e.key.to_string()).collect();
                prop_assert_eq!(&got, &expected);
                for after in &expected {
                    let rest: Vec<_> = names.with_prefix_after(prefix, after).map(|e| e.key.to_string()).collect();
                    let at = expected.iter().position(|k| k == after).unwrap();
                    prop_assert_eq!(&rest, &expected[at + 1..]);
                }
            }
            for e in names.iter() {
                prop_assert!(Arc::ptr_eq(names.by_id(&e.id).unwrap(), e));
            }
        }
    }
}
