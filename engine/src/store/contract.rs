//! What every [`Store`] promises, as a suite that each implementation runs.

use super::{Batch, Snapshot, Store};
use crate::sealed::{Chain, NodeId, RecordId};

/// Runs the suite; `open` opens the same store again each time, an empty one at first.
pub(super) fn check(open: &dyn Fn() -> Box<dyn Store>) {
    let sealed = |text: &str| text.as_bytes().to_vec();
    let (a, b, c) = (RecordId::random(), RecordId::random(), RecordId::random());

    let store = open();
    assert_eq!(store.next_epoch(), 1, "epochs start at one");
    let salt = *store.salt();
    assert_ne!(salt, [0; 16]);
    let empty = store.snapshot().unwrap();
    assert_eq!((empty.epoch(), ids(&*empty)), (0, vec![]));
    assert!(empty.record(&a).unwrap().is_none());

    store.commit(&Batch { puts: vec![(a, sealed("a")), (b, sealed("b"))], ..Batch::default() }).unwrap();
    assert_eq!(store.next_epoch(), 2);
    assert!(ids(&*empty).is_empty(), "a snapshot does not move");
    let two = store.snapshot().unwrap();
    assert_eq!((empty.epoch(), two.epoch()), (0, 1), "a snapshot is of one epoch");
    let mut expected = vec![a, b];
    expected.sort();
    assert_eq!(ids(&*two), expected);
    assert_eq!(two.record(&a).unwrap().unwrap(), b"a");

    store
        .commit(&Batch {
            puts: vec![(c, sealed("c"))],
            removes: vec![a],
            note: Some(b"note".into()),
            ..Batch::default()
        })
        .unwrap();
    assert!(two.record(&a).unwrap().is_some(), "an older snapshot keeps what was removed since");
    let now = store.snapshot().unwrap();
    assert!(now.record(&a).unwrap().is_none());
    assert!(now.record(&c).unwrap().is_some());
    assert_eq!(store.notes().unwrap(), [(2, b"note".to_vec())], "a note is kept under its epoch");
    assert!(store.bytes() > 0);

    drop((empty, two, now, store));
    let again = open();
    assert_eq!(again.next_epoch(), 3, "the epoch is durable");
    assert_eq!(*again.salt(), salt, "and so is the salt");
    let mut expected = vec![b, c];
    expected.sort();
    assert_eq!(ids(&*again.snapshot().unwrap()), expected);
    assert_eq!(again.notes().unwrap().len(), 1, "and notes are");
    again.commit(&Batch { removes: vec![a], stale_notes: vec![2, 99], ..Batch::default() }).unwrap();
    assert!(again.notes().unwrap().is_empty());
    assert_eq!(ids(&*again.snapshot().unwrap()).len(), 2, "removing what is not there is no error");

    let (leaf, inner) = (NodeId::new(0, 7).unwrap(), NodeId::new(1, 7).unwrap());
    let (row, gone) = (|text: &str| Some(text.as_bytes().to_vec()), None::<Vec<u8>>);
    let before = again.snapshot().unwrap();
    again
        .commit(&Batch {
            head: b"head".to_vec(),
            nodes: vec![(leaf, row("leaf")), (inner, row("inner"))],
            pieces: vec![(7, row("piece"))],
            log: vec![
                (Chain::Erasures, 0, b"first".to_vec()),
                (Chain::Copies, 0, b"other".to_vec()),
                (Chain::Erasures, 1, b"second".to_vec()),
            ],
            ..Batch::default()
        })
        .unwrap();
    let now = again.snapshot().unwrap();
    assert_eq!((before.node(leaf).unwrap(), before.log(Chain::Erasures, 0, 9).unwrap()), (None, vec![]));
    assert_eq!((now.head().unwrap(), now.node(leaf).unwrap()), (row("head"), row("leaf")));
    assert_eq!((now.node(inner).unwrap(), now.piece(7).unwrap()), (row("inner"), row("piece")));
    assert_eq!(now.log(Chain::Erasures, 1, 9).unwrap(), [(1, b"second".to_vec())]);
    assert_eq!(now.log(Chain::Copies, 0, 9).unwrap(), [(0, b"other".to_vec())]);
    assert_eq!(now.log(Chain::Erasures, 0, 1).unwrap().len(), 1);
    let without =
        Batch { nodes: vec![(leaf, gone.clone())], pieces: vec![(7, gone.clone())], ..Batch::default() };
    again.commit(&without).unwrap();
    let now = again.snapshot().unwrap();
    assert_eq!((now.node(leaf).unwrap(), now.piece(7).unwrap()), (gone.clone(), gone));
    assert_eq!((now.node(inner).unwrap(), now.log(Chain::Erasures, 0, 9).unwrap().len()), (row("inner"), 2));
}

/// All ids, read in pieces of one and of two.
fn ids(snapshot: &dyn Snapshot) -> Vec<RecordId> {
    let read = |most: usize| {
        let (mut ids, mut after) = (Vec::new(), RecordId::LEAST);
        loop {
            let rows = snapshot.rows_after(&after, most).unwrap();
            assert!(rows.len() <= most);
            let Some((last, _)) = rows.last() else { return ids };
            after = *last;
            for (id, sealed) in rows {
                assert!(snapshot.record(&id).unwrap().is_some_and(|one| one == sealed));
                ids.push(id);
            }
        }
    };
    assert_eq!(read(1), read(2));
    read(2)
}
