//! The keys of a store against a plain map, with a crash at every step of every commit, and whoever has the
//! identity, the slot and every block that was ever written against what was forgotten.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;

use super::super::key_tree::FAN_OUT;
use super::super::record_key::RecordKey;
use super::super::slot::{BLOCK, LENGTH};
use super::*;
use crate::sealed::{NodeId, RecordId};

const SALT: [u8; 16] = [4; 16];

/// A store's nodes and head, committed whole.
#[derive(Clone, Default)]
struct Rows {
    epoch: u64,
    head: Vec<u8>,
    nodes: BTreeMap<NodeId, Vec<u8>>,
}

impl Rows {
    fn with(&self, batch: &Batch) -> Self {
        let mut rows = self.clone();
        rows.epoch += 1;
        rows.head.clone_from(&batch.head);
        for (id, sealed) in &batch.nodes {
            match sealed {
                Some(sealed) => drop(rows.nodes.insert(*id, sealed.clone())),
                None => drop(rows.nodes.remove(id)),
            }
        }
        rows
    }
}

impl Snapshot for Rows {
    fn epoch(&self) -> u64 {
        self.epoch
    }
    fn record(&self, _: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn rows_after(&self, _: &RecordId, _: usize) -> Result<Vec<(RecordId, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }
    fn head(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(Some(self.head.clone()))
    }
    fn node(&self, id: NodeId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.nodes.get(&id).cloned())
    }
    fn piece(&self, _: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn log(&self, _: Chain, _: u64, _: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }
}

/// A slot of which the process may die after so many more writes, the last of them torn.
#[derive(Clone)]
struct Medium(Arc<Mutex<(Vec<u8>, Option<u32>)>>);

impl SlotMedium for Medium {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(&self.0.lock().0[offset as usize..][..bytes.len()]);
        Ok(())
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (held, left) = &mut *self.0.lock();
        let reached = match left {
            Some(0) => return Err(io::Error::other("dead")),
            Some(left) => {
                *left -= 1;
                if *left == 0 { 2_048 } else { BLOCK }
            }
            None => BLOCK,
        };
        held[offset as usize..][..reached].copy_from_slice(&bytes[..reached]);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        match self.0.lock().1 {
            Some(0) => Err(io::Error::other("dead")),
            _ => Ok(()),
        }
    }
}

fn slot_keys() -> SlotKeys {
    SlotKeys { current: Key([1; 32]), previous: None }
}

/// Where the process dies in a commit.
#[derive(Clone, Copy, Debug)]
enum Dies {
    No,
    BeforeTheCommit,
    /// After the commit and so many writes to the slot, of which the last is torn.
    InTheSlot(u32),
}

fn dies() -> impl Strategy<Value = Dies> {
    prop_oneof![3 => Just(Dies::No), 1 => Just(Dies::BeforeTheCommit), 3 => (0..3_u32).prop_map(Dies::InTheSlot)]
}

struct World {
    rows: Rows,
    medium: Medium,
    keys: StoreKeys,
    model: BTreeMap<u64, Version>,
    /// Everything that was ever on the disk beside the slot.
    heads: Vec<(u64, Vec<u8>)>,
    nodes: HashSet<(NodeId, Vec<u8>)>,
    slots: Vec<Vec<u8>>,
}

impl World {
    fn new() -> Self {
        let (slot, head) = StoreKeys::create(&slot_keys(), &SALT, "n").unwrap();
        assert_eq!(slot.len(), LENGTH);
        let medium = Medium(Arc::new(Mutex::new((slot, None))));
        let rows = Rows::default().with(&Batch { head, ..Batch::default() });
        let mut keys = StoreKeys::open(Box::new(medium.clone()), &slot_keys(), &SALT, &rows).unwrap();
        keys.accept().unwrap();
        let (model, heads, nodes, slots) = Default::default();
        Self { rows, medium, keys, model, heads, nodes, slots }
    }

    fn commit(&mut self, changes: &Changes, dies: Dies) {
        let epoch = self.rows.epoch + 1;
        let mut batch = Batch::default();
        let sealed = self.keys.seal(&self.rows, epoch, changes, ToLog::default(), &mut batch).unwrap();
        // What was written may be on the disk, whether it was committed or not.
        self.heads.push((epoch, batch.head.clone()));
        self.nodes.extend(batch.nodes.iter().filter_map(|(id, sealed)| Some((*id, sealed.clone()?))));
        let committed = !matches!(dies, Dies::BeforeTheCommit);
        if committed {
            self.rows = self.rows.with(&batch);
            for (place, version) in &changes.places {
                match version {
                    Some(version) => drop(self.model.insert(*place, version.clone())),
                    None => drop(self.model.remove(place)),
                }
            }
        }
        match dies {
            Dies::No => self.keys.committed(&sealed).unwrap(),
            Dies::BeforeTheCommit => self.start_again(),
            Dies::InTheSlot(writes) => {
                self.medium.0.lock().1 = Some(writes);
                assert!(self.keys.committed(&sealed).is_err(), "nothing is acknowledged");
                self.medium.0.lock().1 = None;
                self.start_again();
            }
        }
        self.slots.push(self.medium.0.lock().0.clone());
    }

    fn start_again(&mut self) {
        self.keys = StoreKeys::open(Box::new(self.medium.clone()), &slot_keys(), &SALT, &self.rows).unwrap();
        self.keys.accept().unwrap();
    }

    fn check(&self) {
        let found = self.keys.walk(&self.rows).unwrap().versions;
        let found: Vec<_> = found.into_iter().map(|(place, version)| (place, version.id)).collect();
        let expected: Vec<_> = self.model.iter().map(|(place, version)| (*place, version.id)).collect();
        assert_eq!(found, expected);
    }

    /// The versions whose keys come to light for whoever has the slot keys, these slots, and everything that was
    /// ever on the disk.
    fn reachable(&self, slots: &[Vec<u8>]) -> HashSet<RecordId> {
        let mut fresh: Vec<Key> =
            slots.iter().flat_map(|slot| Slot::readable(slot, &slot_keys(), &SALT)).collect();
        let (mut tried, mut found) = (HashMap::new(), HashSet::new());
        while let Some(key) = fresh.pop() {
            if tried.insert(key.0, ()).is_some() {
                continue;
            }
            for (epoch, head) in &self.heads {
                if let Ok(plain) = open_with_nonce(&key, &associated_data(&SALT, *epoch), head) {
                    let head: Head = postcard::from_bytes(&plain).unwrap();
                    fresh.extend(head.root.forensic_key());
                }
            }
            for (id, sealed) in &self.nodes {
                let (keys, versions) = super::super::key_tree::forensic_open(&SALT, *id, &key, sealed);
                fresh.extend(keys);
                found.extend(versions);
            }
        }
        found
    }
}

fn steps() -> impl Strategy<Value = Vec<(BTreeMap<u64, bool>, Dies)>> {
    let places = prop_oneof![0..20_u64, 0..FAN_OUT as u64 * 40];
    let step = prop::collection::btree_map(places, prop::bool::weighted(0.6), 0..6);
    prop::collection::vec((step, dies()), 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_crash_a_store_holds_what_was_committed_and_nobody_can_open_what_was_forgotten(
        steps in steps()
    ) {
        let mut world = World::new();
        for (places, dies) in steps {
            let version = || Version { id: RecordId::random(), key: RecordKey::random() };
            let places = places.into_iter().map(|(place, put)| (place, put.then(version))).collect();
            world.commit(&Changes { places, ..Changes::default() }, dies);
            world.check();
            let current: HashSet<_> = world.model.values().map(|version| version.id).collect();
            let slot = world.slots.last().cloned();
            prop_assert_eq!(world.reachable(slot.as_slice()), current, "with the slot as it is now");
        }
        // The search finds what there is to find: whoever kept the old slots opens what was committed then.
        let committed = world.reachable(&world.slots);
        prop_assert!(world.model.values().all(|version| committed.contains(&version.id)));
    }
}

#[test]
fn whoever_kept_the_old_slots_opens_what_was_forgotten_since() {
    let mut world = World::new();
    let version = Version { id: RecordId::random(), key: RecordKey::random() };
    let put = |version| Changes { places: [(0, version)].into(), ..Changes::default() };
    world.commit(&put(Some(version.clone())), Dies::No);
    world.commit(&put(None), Dies::No);
    assert!(world.reachable(&world.slots[1..]).is_empty());
    assert_eq!(world.reachable(&world.slots), HashSet::from([version.id]));
}
