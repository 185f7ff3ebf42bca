//! What is forgotten through the server and by its owner, and the receipts for it.

mod common;

use std::fs;
use std::path::Path;

use common::{Server, owner, run};
use serde_json::{Value, json};

fn remember(server: &mut Server, key: &str) {
    server.call("remember", json!({"key": key, "text": "the code is 4711"}));
}

/// A receipt as the tools return it, which is small.
fn checked(receipt: &Value) -> &Value {
    for field in ["id", "erased_at", "count", "tree_before", "tree_after", "log_index", "signature"] {
        assert!(!receipt[field].is_null(), "{field}: {receipt}");
    }
    assert!(receipt.to_string().len() < 600, "{receipt}");
    receipt
}

fn verify(store: &Path, receipt: &Value, key: &str) {
    let file = store.with_file_name("receipt.json");
    let id = receipt["id"].as_str().expect("an id");
    fs::write(&file, owner(store, &["receipt", "show", id])).expect("it is written");
    let file = file.to_str().expect("UTF-8");
    // No store is needed, nor a key but the public one.
    let nowhere = store.with_file_name("nowhere");
    let said = owner(&nowhere, &["receipt", "verify", file, "--public-key", key]);
    assert!(
        said.starts_with("Good: ") && said.contains(&format!("forgot {} mem", receipt["count"])),
        "{said}"
    );
    assert!(!nowhere.exists(), "and none is made");
    let other = "0".repeat(64);
    let (code, _, said) = run(&nowhere, &["receipt", "verify", file, "--public-key", &other]);
    assert!(code == Some(1) && said.contains("not the one that you named"), "{said}");
    let changed = fs::read_to_string(file).expect("it is there").replacen("\"count\": 1", "\"count\": 9", 1);
    if changed.contains("\"count\": 9") {
        fs::write(file, changed).expect("it is written");
        let (code, _, said) = run(&nowhere, &["receipt", "verify", file]);
        assert!(code == Some(1) && said.contains("this receipt is not good"), "{said}");
    }
}

#[test]
fn both_ways_to_forget_return_a_receipt_that_is_checked_offline_also_through_a_guest() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut first = Server::start(&store);
    let mut guest = Server::start(&store);
    let key = first.call("stats", json!({}))["encryption"]["public_key"].as_str().expect("a key").to_owned();
    for server in [&mut first, &mut guest] {
        remember(server, "door");
        server.memory(json!({"command": "create", "path": "/memories/d/a.md", "file_text": "a\n"}));
        server.memory(json!({"command": "create", "path": "/memories/d/b.md", "file_text": "b\n"}));
        let forgotten = server.call("forget", json!({"key": "door"}));
        verify(&store, checked(&forgotten["receipt"]), &key);
        let deleted = server.call("memory", json!({"command": "delete", "path": "/memories/d"}));
        assert_eq!(deleted["result"], "Successfully deleted /memories/d");
        assert_eq!(checked(&deleted["receipt"])["count"], 2);
        verify(&store, &deleted["receipt"], &key);
        // What forgets nothing has none.
        let viewed = server.call("memory", json!({"command": "view", "path": "/memories"}));
        assert!(viewed.get("receipt").is_none(), "{viewed}");
    }
    // A client of the memory tool sees its exact string and nothing else.
    remember(&mut first, "/memories/x.md");
    let outcome = first.outcome("memory", json!({"command": "delete", "path": "/memories/x.md"}));
    assert_eq!(outcome["content"], json!([{"type": "text", "text": "Successfully deleted /memories/x.md"}]));
    let listed = owner(&store, &["receipt", "list", "--limit", "2"]);
    assert!(listed.contains(&format!("2 of 5 receipts. Public key: {key}")), "{listed}");
    let lines = owner(&store, &["receipt", "list", "--json"]);
    assert_eq!(lines.lines().count(), 5);
    let (code, _, said) = run(&store, &["receipt", "show", "ffffffffff"]);
    assert!(code == Some(1) && said.contains("no receipt ffffffffff"), "{said}");
    let (code, _, said) = run(&store, &["receipt", "verify", "/nowhere/r.json"]);
    assert!(code == Some(1) && said.contains("receipt show"), "{said}");
}

#[test]
fn a_receipt_names_the_backups_and_exports_that_may_still_hold_what_was_forgotten() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    remember(&mut server, "door");
    let (backup, export) = (dir.path().join("b.age"), dir.path().join("out"));
    owner(&store, &[Path::new("backup"), &backup]);
    owner(&store, &[Path::new("export"), &export]);
    server.call("export", json!({}));
    let forgotten = server.call("forget", json!({"key": "door"}));
    let copies = forgotten["receipt"]["copies"].as_array().expect("copies").clone();
    let named: Vec<_> =
        copies.iter().map(|copy| (copy["kind"].as_str().unwrap(), copy["place"].as_str().unwrap())).collect();
    let (backup, export) = (backup.to_str().unwrap(), export.to_str().unwrap());
    assert_eq!(named, [("export", "the export tool"), ("export", export), ("backup", backup)]);
    let said = owner(&store, &["receipt", "list"]);
    assert!(said.contains("3 copies may still hold them"), "{said}");
    // What is made after the copies is in none of them.
    remember(&mut server, "window");
    let forgotten = server.call("forget", json!({"key": "window"}));
    assert!(forgotten["receipt"].get("copies").is_none(), "{forgotten}");
}
