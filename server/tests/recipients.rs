//! `warm-mcp recipients` and `passphrase`: who is added opens the store, who is removed does so no more, and no
//! memory is rewritten by any of it.

mod common;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use common::{Server, finish, memories, names, owner, run, warm_mcp};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::json;

/// A store with some memories, and a second identity beside it.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        let mut server = Server::start(&home.store());
        for n in 0..20 {
            let text = format!("note {n}\n");
            let path = format!("/memories/{n}.md");
            server.memory(json!({"command": "create", "path": path, "file_text": text}));
        }
        server.call("remember", json!({"key": "door", "text": "the code is 4711"}));
        server.close();
        home
    }

    /// With a second identity, labelled `stick`.
    fn with_second() -> Self {
        let home = Self::new();
        let second = home.second();
        let second = second.to_str().expect("UTF-8");
        let said = owner(&home.store(), &["recipients", "add", "--new-identity", second, "--label", "stick"]);
        assert!(said.contains("Added stick (age1") && said.contains("make new ones"), "{said}");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("store")
    }

    fn second(&self) -> PathBuf {
        self.path("second.txt")
    }

    /// Runs a command with the second identity.
    fn by_second(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        finish(warm_mcp(&self.store()).arg("--identity").arg(self.second()).args(arguments))
    }

    /// The public key of the first identity.
    fn first_key(&self) -> String {
        let text = fs::read_to_string(self.store().join("identity.txt")).expect("an identity");
        let key = text.lines().find_map(|line| line.strip_prefix("# public key: "));
        key.expect("its public key").to_owned()
    }

    fn namespace(&self) -> PathBuf {
        let mut stores = fs::read_dir(self.store().join("stores")).expect("stores");
        stores.next().expect("one").expect("an entry").path()
    }

    /// Every sealed record of the store, with its id.
    fn records(&self) -> Vec<([u8; 16], Vec<u8>)> {
        let database = redb::Database::open(self.namespace().join("store.redb")).expect("a store");
        let transaction = database.begin_read().expect("a transaction");
        let records: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
        let records = transaction.open_table(records).expect("a table");
        let rows = records.iter().expect("rows").map(|row| row.expect("a row"));
        rows.map(|(id, row)| (*id.value(), row.value().to_vec())).collect()
    }

    /// Lets the second identity remove the first.
    fn remove_first(&self) -> String {
        let (code, stdout, stderr) = self.by_second(&["recipients", "remove", &self.first_key()]);
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("it can be copied");
    }
}

#[test]
fn an_identity_that_is_added_opens_the_store_and_one_that_is_removed_is_refused() {
    let home = Home::with_second();
    let (before, records) = (memories(&home.store()), home.records());
    assert!(before.len() == 21 && records.len() >= 21);
    let listed = owner(&home.store(), &["recipients", "list"]);
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(lines[0].contains(&home.first_key()) && lines[0].ends_with("(opened the store now)"), "{listed}");
    assert!(lines[1].starts_with("identity") && lines[1].ends_with("stick"), "{listed}");
    let report = owner(&home.store(), &["doctor"]);
    assert!(report.contains("recipients  2 can open the memories"), "{report}");

    let said = home.remove_first();
    for part in [home.first_key().as_str(), "new secret", "Backups", "\n  stick\n"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(home.records(), records, "no record is rewritten");
    let (code, _, stderr) = run(&home.store(), &["view"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("wrong key") && stderr.contains("identity.txt"), "{stderr}");
    let served = Server::spawn(warm_mcp(&home.store())).close();
    assert!(served.status.code() == Some(1) && served.stderr.contains("wrong key"), "{}", served.stderr);

    let (code, exported, stderr) = home.by_second(&["export", "-"]);
    assert_eq!((code, exported.lines().count()), (Some(0), 21), "{stderr}");
    assert!(exported.contains("the code is 4711"));
    let (code, listed, _) = home.by_second(&["recipients", "list"]);
    assert!(code == Some(0) && listed.lines().count() == 1, "{listed}");
    let (code, report, _) = home.by_second(&["doctor"]);
    assert!(code == Some(0) && report.contains("Nothing is wrong"), "{report}");
    assert_eq!(names(&home.store().join("keys")), ["lock", "recipients.age"]);
    // And it is a store like any other.
    let mut server = Server::start_with(warm_mcp(&home.store()), |command| {
        command.arg("--identity").arg(home.second());
    });
    server.call("remember", json!({"key": "after", "text": "the change"}));
    server.close();
    assert_eq!(home.by_second(&["view", "after"]).1, "the change");
}

#[test]
fn an_old_copy_of_the_keys_opens_nothing_that_is_kept() {
    let home = Home::with_second();
    let keys = home.store().join("keys");
    copy(&keys, &home.path("old keys"));
    home.remove_first();
    let current = fs::read(keys.join("recipients.age")).expect("a keyring");
    copy(&home.path("old keys"), &keys);
    // The keyring opens, since it was this identity's, and the store does not.
    for command in [&["view"][..], &["doctor"], &["export", "-"]] {
        let (code, stdout, stderr) = run(&home.store(), command);
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        let said = format!("{stdout}{stderr}");
        assert!(said.contains("store.redb") && said.contains("keys in `keys`"), "{said}");
        assert!(!said.contains("4711"), "{said}");
    }
    fs::write(keys.join("recipients.age"), current).expect("it is ours");
    assert_eq!(home.by_second(&["view", "door"]).1, "the code is 4711");
}

#[test]
fn a_change_that_can_not_be_finished_is_named_and_finished_once_it_can() {
    let home = Home::with_second();
    let file = home.namespace().join("store.redb");
    let good = fs::read(&file).expect("a store");
    fs::write(&file, &good[..10_000]).expect("it is ours");
    let (code, _, stderr) = home.by_second(&["recipients", "remove", &home.first_key()]);
    assert!(code == Some(1) && stderr.contains("not finished") && stderr.contains("store.redb"), "{stderr}");
    fs::write(&file, good).expect("it is ours");
    let (code, report, _) = home.by_second(&["doctor"]);
    assert!(code == Some(1) && report.contains("A change of the keys was cut short"), "{report}");
    assert_eq!(home.by_second(&["view", "door"]).1, "the code is 4711");
    let (code, _, stderr) = home.by_second(&["recipients", "list"]);
    assert!(code == Some(0) && stderr.contains("is finished now"), "{stderr}");
    let (code, report, _) = home.by_second(&["doctor"]);
    assert!(code == Some(0), "{report}");
    assert_eq!(home.by_second(&["view", "door"]).1, "the code is 4711");
}

#[test]
fn nobody_is_removed_while_a_server_runs_and_somebody_may_be_added() {
    let home = Home::with_second();
    let mut server = Server::start(&home.store());
    let keyring = home.store().join("keys/recipients.age");
    let before = fs::read(&keyring).expect("a keyring");
    let (code, _, stderr) = run(&home.store(), &["recipients", "remove", "stick"]);
    assert_eq!(code, Some(1));
    for part in ["a running warm-mcp has a store in", "close the clients", "nothing was changed"] {
        assert!(stderr.contains(part), "{part}\n{stderr}");
    }
    assert!(fs::read(&keyring).expect("a keyring") == before);
    let third = home.path("third.txt");
    let third = third.to_str().expect("UTF-8");
    owner(&home.store(), &["recipients", "add", "--new-identity", third]);
    // The server goes on, also with those who join it with the new key.
    server.call("remember", json!({"key": "k", "text": "meanwhile"}));
    let (code, seen, stderr) = run(&home.store(), &["--identity", third, "view", "k"]);
    assert_eq!((code, seen.as_str()), (Some(0), "meanwhile"), "{stderr}");
    server.close();
    let said = owner(&home.store(), &["recipients", "remove", "stick"]);
    assert!(said.contains("Removed stick (age1"), "{said}");
    assert_eq!(home.by_second(&["view"]).0, Some(1));
}

#[test]
fn the_own_key_goes_only_when_told_and_the_last_one_never() {
    let home = Home::with_second();
    let keyring = home.store().join("keys/recipients.age");
    let before = fs::read(&keyring).expect("a keyring");
    let (code, _, stderr) = home.by_second(&["recipients", "remove", "stick"]);
    assert!(code == Some(1) && stderr.contains("--yes") && stderr.contains(&home.first_key()), "{stderr}");
    assert!(fs::read(&keyring).expect("a keyring") == before);
    let (code, stdout, stderr) = home.by_second(&["recipients", "remove", "stick", "--yes"]);
    assert!(code == Some(0) && stdout.contains("does so no more"), "{stdout}{stderr}");
    let (code, _, stderr) = run(&home.store(), &["recipients", "remove", &home.first_key(), "--yes"]);
    assert!(code == Some(1) && stderr.contains("is the only one who can open"), "{stderr}");
    assert_eq!(memories(&home.store()).len(), 21);
}

#[test]
fn a_secret_key_in_place_of_a_public_one_is_refused_and_not_repeated() {
    let home = Home::new();
    let text = fs::read_to_string(home.store().join("identity.txt")).expect("an identity");
    let secret = text.lines().last().expect("a key");
    let (code, stdout, stderr) = run(&home.store(), &["recipients", "add", secret]);
    assert!(code == Some(1) && stderr.contains("that is a secret key"), "{stderr}");
    assert!(!format!("{stdout}{stderr}").contains(&secret[20..40]));
    let (code, _, stderr) = run(&home.store(), &["recipients", "add", "age1nobody"]);
    assert!(code == Some(1) && stderr.contains("not an age recipient"), "{stderr}");
    assert_eq!(run(&home.store(), &["recipients", "add"]).0, Some(2), "nobody was named");
    let nowhere = home.path("nowhere");
    let (code, _, stderr) = run(&nowhere, &["recipients", "list"]);
    assert!(code == Some(1) && stderr.contains("no memory store"), "{stderr}");
    assert!(!nowhere.exists());
}

#[test]
fn a_backup_opens_with_every_identity_of_the_store() {
    let home = Home::with_second();
    let file = home.path("b.age");
    let file = file.to_str().expect("UTF-8");
    let said = owner(&home.store(), &["backup", file]);
    assert!(said.contains("or another of the store's 2 identities"), "{said}");
    let fresh = home.path("fresh");
    let second = home.second();
    let arguments = [OsStr::new("restore"), OsStr::new("--identity"), second.as_os_str(), OsStr::new(file)];
    let (code, stdout, stderr) = run(&fresh, &arguments);
    assert!(code == Some(0) && stdout.contains("21 restored"), "{stdout}{stderr}");
}

#[test]
fn a_passphrase_that_was_changed_opens_nothing_and_the_new_one_does() {
    let home = Home::new();
    let records = home.records();
    let with = |variables: &[(&str, &str)], arguments: &[&str]| {
        finish(warm_mcp(&home.store()).envs(variables.iter().copied()).args(arguments))
    };
    let (old, new) = (("OLD", "correct horse"), ("NEW", "battery staple"));
    let add = ["passphrase", "add", "--new-passphrase-env", "OLD"];
    let (code, _, stderr) = with(&[("OLD", "seven c")], &add);
    assert!(code == Some(1) && stderr.contains("at least 8 characters"), "{stderr}");
    let (code, _, stderr) = with(&[old], &["passphrase", "add", "--new-passphrase-env", "correct horse"]);
    assert!(code == Some(1) && stderr.contains("takes the name") && !stderr.contains("horse"), "{stderr}");
    let change = ["passphrase", "change", "--new-passphrase-env", "NEW"];
    let (code, _, stderr) = with(&[new], &change);
    assert!(code == Some(1) && stderr.contains("has no passphrase"), "{stderr}");

    let (code, said, stderr) = with(&[old], &add);
    assert!(code == Some(0) && said.contains("Added passphrase-1 (age1"), "{said}{stderr}");
    let listed = owner(&home.store(), &["recipients", "list", "--json"]);
    let listed: Vec<serde_json::Value> =
        listed.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!((&listed[0]["kind"], &listed[0]["opened"]), (&json!("identity"), &json!(true)));
    assert_eq!((&listed[1]["name"], &listed[1]["file_missing"]), (&json!("passphrase-1"), &json!(false)));
    let (file, aside) = (home.store().join("keys/passphrase-1.age"), home.path("aside"));
    fs::rename(&file, &aside).expect("it is ours");
    let (code, report, _) = run(&home.store(), &["doctor"]);
    assert!(code == Some(1) && report.contains("passphrase-1.age is missing"), "{report}");
    fs::rename(&aside, &file).expect("it is ours");
    // With the passphrase itself: it is the one that is changed.
    let (code, said, stderr) = with(&[old, new], &[&["--passphrase-env", "OLD"], &change[..]].concat());
    assert!(code == Some(0) && said.contains("the new one is passphrase-2"), "{said}{stderr}");
    assert!(!format!("{said}{stderr}").contains("staple"));
    assert_eq!(home.records(), records, "no record is rewritten");
    assert_eq!(names(&home.store().join("keys")), ["lock", "passphrase-2.age", "recipients.age"]);
    let (code, _, stderr) = with(&[old], &["--passphrase-env", "OLD", "view"]);
    assert!(code == Some(1) && stderr.contains("wrong passphrase"), "{stderr}");
    let (code, seen, stderr) = with(&[new], &["--passphrase-env", "NEW", "view", "door"]);
    assert_eq!((code, seen.as_str()), (Some(0), "the code is 4711"), "{stderr}");
    let (code, said, stderr) = with(&[], &["passphrase", "remove"]);
    assert!(code == Some(0) && said.contains("Removed passphrase-2"), "{said}{stderr}");
    let (code, _, stderr) = with(&[new], &["--passphrase-env", "NEW", "view"]);
    assert!(code == Some(1) && stderr.contains("not to a passphrase"), "{stderr}");
    assert_eq!(memories(&home.store()).len(), 21);
}

#[test]
fn a_listing_that_may_only_read_leaves_the_keys_as_they_are() {
    let home = Home::new();
    let left_over = home.store().join("keys/passphrase-2.age");
    fs::write(&left_over, "of a change that was cut short").expect("a file");
    let listed = owner(&home.store(), &["--read-only", "recipients", "list"]);
    assert!(listed.contains(&home.first_key()) && left_over.exists(), "{listed}");
    assert_eq!(owner(&home.store(), &["recipients", "list"]), listed);
    assert!(!left_over.exists(), "one that may write puts that in order");
}
