//! Derived data that is kept between two runs: the words of memories, ready for the index.
//!
//! A piece holds what was derived from the records of one leaf of the key tree, sealed under a key in that leaf.
//! The commit that changes any of those records drops the key with theirs, so that a piece never outlives what
//! it was derived from, and whoever forgets a memory forgets what was derived from it. A piece that is missing
//! or not of its leaf costs time and nothing else: the records say the same.
//!
//! Small stores keep none: to look at their records takes no longer than to look at pieces.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::index::text::Analysed;
use crate::published::analyse_record;
use crate::record::Entry;
use crate::state::{Names, State};
use crate::store::StoreError;
use crate::vault::{NewPiece, PieceKey, encode, leaf_of};

/// Stores of fewer memories keep no pieces.
pub(crate) const FEWEST_MEMORIES: u64 = 4_096;

/// What is in a piece.
#[derive(Serialize, Deserialize)]
struct Piece {
    documents: Vec<Analysed>,
}

/// The memories of one leaf, each with its number in the order of age, by place.
pub(crate) type Leaf = Vec<(u64, Arc<Entry>)>;

/// All memories by leaf.
pub(crate) fn leaves(names: &Names) -> BTreeMap<u64, Leaf> {
    let mut entries: Vec<_> = names.iter().cloned().collect();
    // Results that score alike are ordered by age, as if the memories had just been written.
    entries.sort_by(|a, b| (a.updated_at, &a.key).cmp(&(b.updated_at, &b.key)));
    let mut leaves: BTreeMap<u64, Leaf> = BTreeMap::new();
    for (number, entry) in (0..).zip(entries) {
        leaves.entry(leaf_of(entry.place)).or_default().push((number, entry));
    }
    leaves.values_mut().for_each(|leaf| leaf.sort_by_key(|(_, entry)| entry.place));
    leaves
}

/// What is derived from a leaf, each with its number; and whether it came from the leaf's piece.
pub(crate) struct Derived {
    pub(crate) documents: Vec<(u64, Analysed)>,
    pub(crate) was_kept: bool,
}

/// Reads what is derived from a leaf from its piece, or else from the records themselves. `done` is called for each
/// record.
pub(crate) fn derive(
    state: &State,
    keys: &HashMap<u64, PieceKey>,
    number: u64,
    leaf: &Leaf,
    done: &(dyn Fn() + Sync),
) -> Derived {
    if let Some(documents) = keys.get(&number).and_then(|key| kept(state, key, number, leaf)) {
        documents.iter().for_each(|_| done());
        return Derived { documents, was_kept: true };
    }
    let mut documents = Vec::with_capacity(leaf.len());
    for (sequence, entry) in leaf {
        match state.read(entry) {
            Ok(Some(record)) => documents.push((*sequence, analyse_record(&entry.id, &record))),
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "a record could not be indexed"),
        }
        done();
    }
    Derived { documents, was_kept: false }
}

/// The contents of a piece, if they are of these very versions.
fn kept(state: &State, key: &PieceKey, number: u64, leaf: &Leaf) -> Option<Vec<(u64, Analysed)>> {
    let sealed = state.piece(number).ok()??;
    let opened = key.open(number, &sealed);
    let piece = opened.ok().and_then(|plain| postcard::from_bytes::<Piece>(&plain).ok());
    if piece.is_none() {
        tracing::warn!(leaf = number, "a piece of derived data does not open and is made again");
    }
    let documents = piece?.documents;
    let same = documents.iter().map(Analysed::id).eq(leaf.iter().map(|(_, entry)| entry.id.as_bytes()));
    same.then(|| leaf.iter().map(|(sequence, _)| *sequence).zip(documents).collect())
}

/// The memories of these leaves, found by looking at all.
pub(crate) fn some_leaves(names: &Names, numbers: &[u64]) -> Vec<(u64, Vec<Arc<Entry>>)> {
    let mut leaves: BTreeMap<u64, Vec<Arc<Entry>>> =
        numbers.iter().map(|number| (*number, Vec::new())).collect();
    for entry in names.iter() {
        if let Some(leaf) = leaves.get_mut(&leaf_of(entry.place)) {
            leaf.push(Arc::clone(entry));
        }
    }
    leaves.values_mut().for_each(|leaf| leaf.sort_by_key(|entry| entry.place));
    leaves.into_iter().collect()
}

/// The pieces of these leaves, made from the records of a state. One that has changed since its memories were looked
/// for is left out, or its piece is dropped by the commit.
pub(crate) fn make(
    state: &State,
    leaves: &[(u64, Vec<Arc<Entry>>)],
) -> Result<BTreeMap<u64, NewPiece>, StoreError> {
    let piece = |(number, leaf): &(u64, Vec<Arc<Entry>>)| -> Result<Option<(u64, NewPiece)>, StoreError> {
        let mut documents = Vec::with_capacity(leaf.len());
        for entry in leaf {
            match state.read(entry)? {
                Some(record) => documents.push(analyse_record(&entry.id, &record)),
                None => return Ok(None),
            }
        }
        let key = PieceKey::random();
        let sealed = encode(&Piece { documents }).and_then(|plain| key.seal(*number, &plain));
        let sealed = sealed.ok_or(StoreError::Fault("derived data could not be sealed"))?;
        let ids = leaf.iter().map(|entry| entry.id).collect();
        Ok(Some((*number, NewPiece { ids, key, sealed })))
    };
    let whole = leaves.iter().filter(|(_, leaf)| !leaf.is_empty());
    whole.filter_map(|leaf| piece(leaf).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Engine;
    use crate::contract::{Forget, Limits, Recall, Remember};
    use crate::lock::StoreLock;
    use crate::open::{Mode, Opened, open_store};
    use crate::vault::{Vault, VaultOptions};

    fn remember(engine: &Engine, number: usize, text: &str) {
        let (key, text) = (Some(format!("k{number}")), text.to_owned());
        engine.remember(Remember { key, text, ..Remember::default() }).unwrap();
    }

    fn found(engine: &Engine, query: &str) -> Vec<String> {
        let recalled =
            engine.recall(&Recall { query: query.into(), k: Some(50), ..Recall::default() }).unwrap();
        recalled.results.into_iter().map(|found| found.key).collect()
    }

    #[test]
    fn what_is_kept_gives_the_same_index_and_goes_with_the_records_that_it_was_derived_from() {
        let dir = tempfile::tempdir().unwrap();
        let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
        let vault = Vault::open(&options).unwrap();
        let at = vault.namespace_dir("n");
        let open = || Engine::open(&vault, "n", Limits::default()).unwrap();
        // The store as it lies there, with the leaves that come from pieces.
        let look = || {
            let lock = StoreLock::take(&at, Duration::from_secs(9)).unwrap();
            let Opened { store, names, pieces, epoch, .. } =
                open_store(&vault, "n", &at, Some(lock), Mode::Look).unwrap();
            let state = State::new(names, store, epoch);
            assert!(state.pin().unwrap());
            let kept = leaves(&state.names).into_iter().filter(|(number, leaf)| {
                let derived = derive(&state, &pieces, *number, leaf, &|| {});
                assert_eq!(derived.documents.len(), leaf.len());
                derived.was_kept
            });
            let kept: Vec<_> = kept.map(|(number, _)| number).collect();
            let rows = (0..9).filter(|leaf| state.piece(*leaf).unwrap().is_some()).collect::<Vec<_>>();
            assert_eq!(kept, rows, "no piece lies there that is not of its leaf");
            kept
        };
        let engine = open();
        (0..70).for_each(|number| remember(&engine, number, &format!("word{} shared", number % 7)));
        let before = (found(&engine, "word3"), found(&engine, "shared"));
        engine.keep_derived();
        drop(engine);
        assert_eq!(look(), [0, 1, 2]);
        let engine = open();
        assert_eq!((found(&engine, "word3"), found(&engine, "shared")), before, "in the same order");
        remember(&engine, 33, "another text");
        drop(engine);
        assert_eq!(look(), [0, 2]);
        let engine = open();
        engine.forget(Forget { key: Some("k69".into()), ..Forget::default() }).unwrap();
        assert_eq!(found(&engine, "another"), ["k33"]);
        drop(engine);
        assert_eq!(look(), [0]);
    }
}
