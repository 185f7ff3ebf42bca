//! What was written in the format of today opens for as long as that format is read. See `fixtures/README.md`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use warm_engine::archive::ArchiveReader;
use warm_engine::contract::{Get, Limits, Recall, ReceiptFile};
use warm_engine::receipt::verify;
use warm_engine::{ArchiveKey, Engine, FORMAT_VERSION, Namespaces, OpenError, Vault, VaultOptions};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format-{FORMAT_VERSION}"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// A copy of the fixture's data directory, since opening a store writes to it.
fn options(dir: &Path) -> VaultOptions {
    let data_dir = dir.join("data");
    copy(&fixture().join("data"), &data_dir);
    VaultOptions { data_dir, identity: None, passphrase: None }
}

#[test]
fn a_store_of_this_format_opens_with_all_that_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::open_existing(&options(dir.path())).unwrap();
    assert_eq!(Namespaces::of(&vault).unwrap().names, ["default", "work"]);
    let open = |namespace| Engine::open(&vault, namespace, Limits::default()).unwrap();
    let engine = open("default");
    assert!(engine.damaged().is_empty());
    let get = |engine: &Engine, key: &str| engine.get(&Get { key: key.into() }).unwrap();
    assert_eq!(get(&engine, "/memories/notes/door.md").text, "The side door's code is 0815.\n");
    let tea = get(&engine, "tea");
    assert_eq!((tea.text.as_str(), tea.title.as_deref()), ("Ann drinks green tea.", Some("Tea")));
    assert_eq!((tea.tags, tea.metadata.unwrap()["team"].as_str()), (vec!["people".to_owned()], Some("ops")));
    assert!(engine.get(&Get { key: "gone".into() }).is_err());
    let found = engine.recall(&Recall { query: "side door".into(), ..Recall::default() }).unwrap();
    assert_eq!(found.results[0].key, "/memories/notes/door.md");
    assert_eq!(engine.check_receipts().unwrap(), 1);
    assert_eq!(get(&open("work"), "other").text, "In a namespace of its own.");
}

#[test]
fn a_backup_and_a_receipt_of_this_format_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let key = ArchiveKey::of(&options(dir.path())).unwrap();
    let file = File::open(fixture().join("backup.age")).unwrap();
    let mut archive = ArchiveReader::open(&key, file, Limits::default()).unwrap();
    let mut keys = Vec::new();
    while let Some(memory) = archive.next().unwrap() {
        assert!(memory.origin.is_some());
        keys.push(memory.key);
    }
    assert_eq!(keys, ["/memories/notes/door.md", "tea"]);
    let receipt = fs::read_to_string(fixture().join("receipt.json")).unwrap();
    let receipt: ReceiptFile = serde_json::from_str(&receipt).unwrap();
    let engine =
        Engine::open(&Vault::open_existing(&options(dir.path())).unwrap(), "default", Limits::default());
    verify(&receipt, Some(&engine.unwrap().public_key())).unwrap();
}

#[test]
fn a_data_directory_of_another_format_is_named_with_both_versions_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let format = options.data_dir.join("FORMAT");
    fs::write(&format, "warm data directory, format 1\n").unwrap();
    let before = fs::read(&format).unwrap();
    match Vault::open(&options) {
        Err(OpenError::OtherFormat { found, supported, .. }) => {
            assert_eq!((found.as_str(), supported), ("1", FORMAT_VERSION));
        }
        _ => panic!("it is refused by name"),
    }
    assert_eq!(fs::read(&format).unwrap(), before);
}
