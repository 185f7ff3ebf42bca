use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::sealed::{Chain, RecordId};
use crate::vault::RecordKey;

const SALT: [u8; 16] = [5; 16];

/// The nodes of a tree, as a store keeps them.
#[derive(Clone, Default)]
struct Nodes(BTreeMap<NodeId, Vec<u8>>);

impl Nodes {
    fn apply(&mut self, changed: &Changed) {
        for (id, sealed) in &changed.nodes {
            match sealed {
                Some(sealed) => drop(self.0.insert(*id, sealed.clone())),
                None => assert!(self.0.remove(id).is_some(), "only what is there is removed"),
            }
        }
    }
}

impl Snapshot for Nodes {
    fn epoch(&self) -> u64 {
        0
    }
    fn record(&self, _: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn rows_after(&self, _: &RecordId, _: usize) -> Result<Vec<(RecordId, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }
    fn head(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn node(&self, id: NodeId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.get(&id).cloned())
    }
    fn piece(&self, _: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn log(&self, _: Chain, _: u64, _: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        Ok(Vec::new())
    }
}

fn version() -> Version {
    Version { id: RecordId::random(), key: RecordKey::random() }
}

fn put(places: impl IntoIterator<Item = u64>) -> Changes {
    Changes {
        places: places.into_iter().map(|place| (place, Some(version()))).collect(),
        ..Changes::default()
    }
}

fn remove(places: impl IntoIterator<Item = u64>) -> Changes {
    Changes { places: places.into_iter().map(|place| (place, None)).collect(), ..Changes::default() }
}

/// A tree, its nodes, and what it must hold.
struct Tree {
    nodes: Nodes,
    root: Root,
    model: BTreeMap<u64, Version>,
}

impl Tree {
    fn new() -> Self {
        Self { nodes: Nodes::default(), root: Root::empty(), model: BTreeMap::new() }
    }

    fn change(&mut self, changes: &Changes) -> Changed {
        let changed = self.root.change(&self.nodes, &SALT, changes).unwrap();
        self.nodes.apply(&changed);
        self.root = changed.root.clone();
        for (place, version) in &changes.places {
            match version {
                Some(version) => drop(self.model.insert(*place, version.clone())),
                None => drop(self.model.remove(place)),
            }
        }
        changed
    }

    fn check(&self) {
        let walked = self.root.walk(&self.nodes, &SALT).unwrap();
        let found = walked.versions.iter().map(|(place, version)| (*place, version.id, version.key.clone()));
        let expected = self.model.iter().map(|(place, version)| (*place, version.id, version.key.clone()));
        assert!(found.eq(expected));
        assert_eq!(*self.root.hash() == NOTHING, self.model.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_tree_holds_what_a_plain_map_holds(
        steps in prop::collection::vec(
            prop::collection::btree_map(
                prop_oneof![0..40_u64, 0..2_000_u64, 0..70_000_u64], prop::bool::weighted(0.6), 0..8,
            ), 1..12,
        )
    ) {
        let mut tree = Tree::new();
        for step in steps {
            let version_or_none = |put: bool| put.then(version);
            let places = step.into_iter().map(|(place, put)| (place, version_or_none(put))).collect();
            tree.change(&Changes { places, ..Changes::default() });
            tree.check();
        }
        let all: Vec<u64> = tree.model.keys().copied().collect();
        tree.change(&remove(all));
        tree.check();
        prop_assert!(tree.nodes.0.is_empty(), "an empty tree has no nodes");
    }

    #[test]
    fn what_is_forgotten_is_proven_to_have_been_there_and_to_be_gone(
        there in prop::collection::btree_set(prop_oneof![0..40_u64, 0..3_000_u64], 1..40),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        also in prop::collection::btree_set(prop_oneof![0..40_u64, 0..70_000_u64], 0..4),
    ) {
        let mut tree = Tree::new();
        tree.change(&put(there.iter().copied()));
        let there: Vec<u64> = there.into_iter().collect();
        let gone: BTreeMap<_, _> =
            gone.iter().map(|index| *index.get(&there)).map(|place| (place, tree.model[&place].clone())).collect();
        let before = tree.root.clone();
        // Some of the places are taken by others in the same commit.
        let mut changes = remove(gone.keys().copied());
        changes.places.extend(put(also).places);
        let changed = tree.change(&changes);
        let proof = changed.prove(&before, &gone);
        prop_assert_eq!(proof.roots(), Some((*before.hash(), *tree.root.hash())));
        // Nothing of it can be changed and still be good for the same roots.
        let holds = |proof: &Proof| proof.roots() == Some((*before.hash(), *tree.root.hash()));
        for at in 0..proof.places.len() {
            let mut bad = proof.clone();
            bad.places[at].id[3] ^= 1;
            prop_assert!(!holds(&bad));
            let mut bad = proof.clone();
            bad.places[at].after[3] ^= 1;
            prop_assert!(!holds(&bad));
            let mut bad = proof.clone();
            bad.places.remove(at);
            prop_assert!(!holds(&bad));
        }
        let mut bad = proof.clone();
        bad.before.beside.push([1; 32]);
        prop_assert!(!holds(&bad));
        std::mem::swap(&mut bad.before, &mut bad.after);
        prop_assert!(!holds(&bad));
    }
}

#[test]
fn one_change_writes_one_node_of_each_level_however_many_memories_there_are() {
    for (memories, levels) in [(1, 1), (32, 1), (33, 2), (1_024, 2), (1_025, 3), (40_000, 4)] {
        let mut tree = Tree::new();
        tree.change(&put(0..memories));
        assert_eq!(tree.root.levels, levels, "{memories}");
        let written = tree.change(&put([memories / 2])).nodes.len();
        assert_eq!(written, usize::from(levels), "{memories}");
        tree.check();
    }
}

#[test]
fn a_batch_writes_each_node_once() {
    let mut tree = Tree::new();
    tree.change(&put(0..2_000));
    let mut written: Vec<_> = tree.change(&put(0..2_000)).nodes.into_iter().map(|(id, _)| id).collect();
    let count = written.len();
    written.sort();
    written.dedup();
    assert_eq!((written.len(), count), (63 + 2 + 1, 63 + 2 + 1));
}

#[test]
fn every_node_on_the_way_gets_a_fresh_key_and_the_old_ones_open_no_new_node() {
    let mut tree = Tree::new();
    tree.change(&put(0..1_000));
    let (old_root, old_nodes) = (tree.root.clone(), tree.nodes.clone());
    tree.change(&remove([500]));
    assert!(old_root.walk(&tree.nodes, &SALT).is_err(), "an old root opens no new node");
    assert!(tree.root.walk(&old_nodes, &SALT).is_err(), "and the new one none of the old");
}

#[test]
fn a_node_that_is_changed_cut_moved_or_older_is_named() {
    let mut tree = Tree::new();
    tree.change(&put(0..100));
    let older = tree.nodes.clone();
    tree.change(&put([40]));
    let whole = tree.nodes.clone();
    let (leaf, other) = (NodeId::new(0, 1).unwrap(), NodeId::new(0, 2).unwrap());
    let named = |nodes: &Nodes| match tree.root.walk(nodes, &SALT) {
        Err(StoreError::Damaged(what)) => assert!(what.contains("key node 0/1"), "{what}"),
        _ => panic!("it must be named"),
    };
    let replaced = |with: Option<Vec<u8>>| {
        let mut nodes = whole.clone();
        match with {
            Some(with) => drop(nodes.0.insert(leaf, with)),
            None => drop(nodes.0.remove(&leaf)),
        }
        nodes
    };
    named(&replaced(None));
    named(&replaced(Some(older.0[&leaf].clone())));
    named(&replaced(Some(whole.0[&other].clone())));
    for at in [0, 1, 200, whole.0[&leaf].len() - 1] {
        let mut bad = whole.0[&leaf].clone();
        named(&replaced(Some(bad[..at].to_vec())));
        bad[at] ^= 1;
        named(&replaced(Some(bad)));
    }
    tree.root.walk(&whole, &SALT).unwrap();
}

#[test]
fn a_piece_goes_with_the_first_change_of_what_it_was_derived_from() {
    let mut tree = Tree::new();
    tree.change(&put(0..100));
    let pieces = |tree: &Tree| -> Vec<u64> {
        tree.root.walk(&tree.nodes, &SALT).unwrap().pieces.into_iter().map(|(leaf, _)| leaf).collect()
    };
    let of = |tree: &Tree, leaf: u64| {
        let versions = tree.model.range(leaf * 32..leaf * 32 + 32);
        let ids = versions.map(|(_, version)| version.id).collect();
        (leaf, NewPiece { ids, key: PieceKey::random(), sealed: Vec::new() })
    };
    let with = |tree: &Tree, leaves: &[u64]| Changes {
        pieces: leaves.iter().map(|leaf| of(tree, *leaf)).collect(),
        ..Changes::default()
    };
    let all = with(&tree, &[0, 1, 3]);
    let changed = tree.change(&all);
    assert_eq!(
        (pieces(&tree), changed.new_pieces, changed.lost_pieces),
        (vec![0, 1, 3], vec![0, 1, 3], vec![])
    );
    let late = with(&tree, &[1]);
    let changed = tree.change(&put([33, 64]));
    assert_eq!((changed.lost_pieces, pieces(&tree)), (vec![1], vec![0, 3]));
    let changed = tree.change(&late);
    assert_eq!(
        (changed.new_pieces, pieces(&tree)),
        (vec![], vec![0, 3]),
        "what it was derived from has changed"
    );
    let again = with(&tree, &[1, 2]);
    tree.change(&again);
    assert_eq!(pieces(&tree), [0, 1, 2, 3]);
    tree.change(&remove([0]));
    assert_eq!(pieces(&tree), [1, 2, 3]);
}
