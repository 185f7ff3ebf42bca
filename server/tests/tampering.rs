//! Files of another moment, and blobs that someone moved, changed or put back: each is named by whoever opens the
//! store, nothing is served that is not as it was written, and nothing is changed.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{Server, owner, run};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::json;

const RECORDS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
const NODES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("nodes");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

struct Home {
    _dir: tempfile::TempDir,
    store: PathBuf,
}

impl Home {
    /// A store with some memories, of which one was changed and one forgotten.
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let home = Self { store: dir.path().join("store"), _dir: dir };
        let mut server = Server::start(&home.store);
        for number in 0..40 {
            server.call("remember", json!({"key": format!("k{number}"), "text": format!("text {number}")}));
        }
        server.close();
        home
    }

    fn file(&self, name: &str) -> PathBuf {
        let mut stores = fs::read_dir(self.store.join("stores")).expect("stores");
        stores.next().expect("one").expect("an entry").path().join(name)
    }

    /// Opens the store and forgets and changes something.
    fn go_on(&self) {
        let mut server = Server::start(&self.store);
        server.call("remember", json!({"key": "k3", "text": "changed"}));
        server.call("forget", json!({"key": "k5"}));
        server.close();
    }

    /// What a start says that is refused, with every file as it was.
    fn refused(&self) -> String {
        let files = || ["store.redb", "slot"].map(|name| fs::read(self.file(name)).ok());
        let before = files();
        let (code, _, stderr) = run(&self.store, &["list"]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(files() == before, "nothing is changed");
        stderr
    }

    /// Changes rows of the store as someone would who can write to its file.
    fn tamper(&self, change: impl FnOnce(&redb::WriteTransaction)) {
        let database = redb::Database::open(self.file("store.redb")).expect("a store");
        let transaction = database.begin_write().expect("a transaction");
        change(&transaction);
        transaction.commit().expect("it commits");
    }
}

fn row<'k, K: redb::Key + 'static>(
    path: &Path,
    table: TableDefinition<'_, K, &'static [u8]>,
    key: K::SelfType<'k>,
) -> Vec<u8> {
    let copy = tempfile::tempdir().expect("a temporary folder");
    let copied = copy.path().join("copy.redb");
    fs::copy(path, &copied).expect("it is copied");
    let database = redb::Database::open(copied).expect("a store");
    let table = database.begin_read().expect("a transaction").open_table(table).expect("a table");
    table.get(key).expect("it reads").expect("it is there").value().to_vec()
}

#[test]
fn an_older_store_file_beside_the_slot_and_an_older_slot_beside_the_store_are_named() {
    let home = Home::new();
    let (store, slot) = (home.file("store.redb"), home.file("slot"));
    let (old_store, old_slot) = (fs::read(&store).expect("it reads"), fs::read(&slot).expect("it reads"));
    home.go_on();
    let (new_store, new_slot) = (fs::read(&store).expect("it reads"), fs::read(&slot).expect("it reads"));
    fs::write(&store, &old_store).expect("it is written");
    let said = home.refused();
    assert!(said.contains("do not belong together") && said.contains("it is an older copy"), "{said}");
    fs::write(&store, &new_store).expect("it is written");
    fs::write(&slot, &old_slot).expect("it is written");
    let said = home.refused();
    assert!(said.contains("do not belong together") && said.contains("older copy"), "{said}");
    // Both of one moment open, which can't be told from a store on which nothing was done since.
    fs::write(&store, &old_store).expect("it is written");
    assert!(owner(&home.store, &["list"]).contains("k5"));
    fs::write(&store, &new_store).expect("it is written");
    fs::write(&slot, &new_slot).expect("it is written");
    assert!(!owner(&home.store, &["list"]).contains("k5"));
}

#[test]
fn a_lost_or_ruined_slot_is_named_and_one_good_block_of_each_place_is_enough() {
    let home = Home::new();
    let slot = home.file("slot");
    let whole = fs::read(&slot).expect("it reads");
    fs::remove_file(&slot).expect("it is there");
    let said = home.refused();
    assert!(said.contains("slot is missing") && said.contains("backup"), "{said}");
    fs::write(&slot, vec![0; whole.len()]).expect("it is written");
    let said = home.refused();
    assert!(said.contains("slot is damaged") && said.contains("backup"), "{said}");
    let mut half = whole.clone();
    half[..8_192].fill(7);
    fs::write(&slot, half).expect("it is written");
    assert!(owner(&home.store, &["list"]).contains("k5"), "the copies are enough");
}

#[test]
fn a_key_node_or_head_that_was_put_back_swapped_cut_or_flipped_is_named() {
    let home = Home::new();
    let store = home.file("store.redb");
    let old_leaf = row(&store, NODES, 0);
    let old_head = row(&store, META, "head");
    home.go_on();
    let whole = fs::read(&store).expect("it reads");
    let leaf = row(&store, NODES, 0);
    let other = row(&store, NODES, 1);
    let flipped = leaf.iter().enumerate().map(|(at, byte)| if at == 99 { byte ^ 1 } else { *byte }).collect();
    for bad in [old_leaf, other, leaf[..leaf.len() - 1].to_vec(), flipped, Vec::new()] {
        home.tamper(|transaction| {
            let mut nodes = transaction.open_table(NODES).expect("a table");
            nodes.insert(0, bad.as_slice()).expect("it is written");
        });
        let said = home.refused();
        assert!(said.contains("key node 0/0 does not open"), "{said}");
        fs::write(&store, &whole).expect("it is written");
    }
    home.tamper(|transaction| {
        let mut nodes = transaction.open_table(NODES).expect("a table");
        nodes.remove(0).expect("it is there");
    });
    assert!(home.refused().contains("key node 0/0 is gone"));
    fs::write(&store, &whole).expect("it is written");
    home.tamper(|transaction| {
        let mut meta = transaction.open_table(META).expect("a table");
        meta.insert("head", old_head.as_slice()).expect("it is written");
    });
    let said = home.refused();
    assert!(said.contains("do not belong together"), "{said}");
}

#[test]
fn a_record_that_was_put_back_swapped_cut_or_flipped_is_named_and_the_others_are_served() {
    let home = Home::new();
    let store = home.file("store.redb");
    let whole = fs::read(&store).expect("it reads");
    let rows: Vec<([u8; 16], Vec<u8>)> = {
        let copy = tempfile::tempdir().expect("a temporary folder");
        let copied = copy.path().join("copy.redb");
        fs::copy(&store, &copied).expect("it is copied");
        let database = redb::Database::open(copied).expect("a store");
        let records = database.begin_read().expect("a transaction").open_table(RECORDS).expect("a table");
        let rows = records.iter().expect("rows").take(2);
        rows.map(|row| row.map(|(id, sealed)| (*id.value(), sealed.value().to_vec())).expect("a row"))
            .collect()
    };
    let [(id, sealed), (_, other)] = &rows[..] else { panic!("two rows") };
    let mut flipped = sealed.clone();
    *flipped.last_mut().expect("it is not empty") ^= 1;
    for bad in [other.clone(), sealed[..sealed.len() - 1].to_vec(), flipped] {
        home.tamper(|transaction| {
            let mut records = transaction.open_table(RECORDS).expect("a table");
            records.insert(id, bad.as_slice()).expect("it is written");
        });
        let (code, stdout, stderr) = run(&home.store, &["list"]);
        assert_eq!(
            (code, stdout.lines().filter(|line| line.contains(" k")).count()),
            (Some(0), 39),
            "{stdout}"
        );
        assert!(stderr.contains("can't be opened"), "{stderr}");
        fs::write(&store, &whole).expect("it is written");
        // The slot has moved on with the start that served the others.
        let (code, _, said) = run(&home.store, &["doctor"]);
        assert_eq!(code, Some(0), "{said}");
    }
}
