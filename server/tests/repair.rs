//! `warm-mcp doctor --repair`: nothing is touched unless it is told, and then the trouble is gone.
#![cfg(unix)]

mod common;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use common::{Server, finish, memories, owner, run};
use serde_json::json;

/// A store that holds one memory, in a folder of its own.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        let mut server = Server::start(&home.store());
        server.call("remember", json!({"key": "k", "text": "marmalade"}));
        server.close();
        home
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// The folder of the one namespace.
    fn namespace(&self) -> PathBuf {
        let mut stores = fs::read_dir(self.store().join("stores")).expect("stores");
        stores.next().expect("one").expect("an entry").path()
    }

    /// Everything below the store: path, mode and bytes.
    fn everything(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut ahead = vec![self.store()];
        while let Some(path) = ahead.pop() {
            let mode = fs::metadata(&path).expect("it is there").permissions().mode();
            let bytes = if path.is_dir() {
                ahead.extend(
                    fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()),
                );
                Vec::new()
            } else {
                fs::read(&path).expect("a file")
            };
            found.push((path, mode, bytes));
        }
        found.sort();
        found
    }

    fn doctor(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let (code, stdout, stderr) = run(&self.store(), &[&["doctor", "--log", "off"], arguments].concat());
        assert_eq!(stderr, "", "{stdout}");
        (code, stdout)
    }

    /// Holds a repair to its promise: looking and planning change nothing, and doing it helps.
    fn repairs(&self, problem: &str, plan: &str) {
        let before = self.everything();
        let (code, said) = self.doctor(&[]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(problem) && said.contains("--repair"), "{problem}\n{said}");
        let (code, said) = self.doctor(&["--repair"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("1. {plan}")), "{plan}\n{said}");
        assert!(
            said.contains("Nothing was changed. To have it done:\n") && said.contains("--repair --yes"),
            "{said}"
        );
        assert!(self.everything() == before, "nothing is changed without --yes");

        let (code, said) = self.doctor(&["--repair", "--yes"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("\n1. done\n") && said.ends_with("Nothing is wrong.\n"), "{said}");
        assert_eq!(self.doctor(&[]).0, Some(0));
        let mut server = Server::start(&self.store());
        assert_eq!(server.call("get", json!({"key": "k"}))["text"], "marmalade");
        assert_eq!(server.close().stderr, "");
    }
}

fn open_to_others(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn what_others_may_read_is_closed_to_them() {
    let home = Home::new();
    open_to_others(&home.store().join("identity.txt"), 0o644);
    home.repairs("is open to other users", "close ");
    open_to_others(&home.namespace(), 0o755);
    home.repairs("is open to other users", "close ");
}

#[test]
fn a_temporary_file_that_may_hold_a_key_is_removed() {
    let home = Home::new();
    let left = home.store().join("keys/.warm-abcdef.tmp");
    fs::write(&left, "half a key").expect("it is written");
    open_to_others(&left, 0o600);
    home.repairs("was left by a start that was cut short, and may hold a key", "remove ");
    assert!(!left.exists());
}

#[test]
fn a_store_that_was_never_finished_is_set_aside_and_not_removed() {
    let home = Home::new();
    let left = home.namespace().join("store.new");
    fs::write(&left, "half a store").expect("it is written");
    open_to_others(&left, 0o600);
    home.repairs("and is not needed", "rename ");
    assert_eq!(fs::read(home.namespace().join("set-aside-1")).expect("it is there"), b"half a store");
}

#[test]
fn a_store_that_only_lacks_its_name_gets_it() {
    let home = Home::new();
    let store = home.namespace().join("store.redb");
    fs::rename(&store, store.with_extension("new")).expect("it is there");
    home.repairs("is whole and lacks its name", "rename ");
    assert!(store.exists());
}

#[test]
fn garbage_in_a_lock_file_makes_way_for_what_belongs_there() {
    let home = Home::new();
    let lock = home.namespace().join("lock");
    let good = fs::read(&lock).expect("it is there");
    fs::write(&lock, "4194305\n").expect("it is written");
    home.repairs("holds what no warm-mcp wrote", "put into ");
    assert_eq!(fs::read(&lock).expect("it is there"), good);
}

#[test]
fn records_that_do_not_open_are_moved_aside_as_they_are() {
    use redb::{ReadableTable, TableDefinition};
    let home = Home::new();
    let database = redb::Database::open(home.namespace().join("store.redb")).expect("a store");
    let transaction = database.begin_write().expect("a transaction");
    let sealed: Vec<u8> = (0..=255).collect();
    {
        let records: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
        let mut records = transaction.open_table(records).expect("a table");
        records.insert(&[7; 16], sealed.as_slice()).expect("it is written");
        assert_eq!(records.iter().expect("rows").count(), 2);
    }
    transaction.commit().expect("it commits");
    drop(database);
    home.repairs("record 07070707", "move the record that does not open, sealed as it is, from ");
    let quarantine = home.namespace().join("quarantine-1");
    let kept = fs::read(&quarantine).expect("it is there");
    assert!(kept.windows(sealed.len()).any(|window| window == sealed), "byte for byte");
    assert_eq!(fs::metadata(&quarantine).expect("it is there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn several_things_are_done_in_one_go() {
    let home = Home::new();
    open_to_others(&home.store(), 0o750);
    fs::write(home.namespace().join("lock"), "garbage").expect("it is written");
    let (_, said) = home.doctor(&["--repair"]);
    assert!(said.contains("1. close ") && said.contains("2. put into "), "{said}");
    let (code, said) = home.doctor(&["--repair", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = home.doctor(&["--repair", "--yes"]);
    assert_eq!(code, Some(0));
    assert!(said.ends_with("There is nothing here that --repair can put right.\n"), "{said}");
}

#[test]
fn a_store_that_is_damaged_or_lost_comes_back_from_a_backup_by_what_the_doctor_says() {
    for damaged in [true, false] {
        let home = Home::new();
        let (path, backup) = (home.namespace().join("store.redb"), home.dir.path().join("b.age"));
        owner(&home.store(), &[Path::new("backup"), &backup]);
        let before = memories(&home.store());
        let mut bytes = fs::read(&path).expect("it is there");
        bytes.truncate(10_000);
        let fact = if damaged { "is damaged" } else { "is missing although it was made" };
        if damaged {
            fs::write(&path, &bytes).expect("it is written");
        } else {
            fs::remove_file(&path).expect("it is there");
        }
        // Nobody takes it for an empty store, or makes a new one over it.
        let everything = home.everything();
        let backup = backup.to_str().expect("UTF-8");
        for arguments in [
            &["view"][..],
            &["list"],
            &["recall", "marmalade"],
            &["export", "-"],
            &["backup", "-"],
            &["import", backup, "--dry-run"],
            &["import", backup],
            &["restore", backup, "--dry-run"],
            &["restore", backup],
        ] {
            let (code, stdout, stderr) = run(&home.store(), arguments);
            assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?}: {stderr}");
            assert!(stderr.contains(fact) && stderr.contains("warm-mcp doctor"), "{arguments:?}: {stderr}");
        }
        let (code, said) = home.doctor(&["--repair"]);
        assert_eq!(code, Some(1));
        assert!(said.contains(fact) && said.contains("not served until they are restored"), "{said}");
        assert!(home.everything() == everything, "nothing is changed without --yes");

        // Each line that the doctor indents as a command, as it stands.
        let (_, said) = home.doctor(&[]);
        let commands: Vec<&str> = said.lines().filter(|line| line.contains("--data-dir")).collect();
        assert_eq!(commands.len(), 2, "{said}");
        for line in commands {
            let line = line.trim().replace("FILE", &format!("'{backup}'"));
            let (code, stdout, stderr) = finish(std::process::Command::new("sh").args(["-c", &line]));
            assert_eq!(code, Some(0), "{line}\n{stdout}{stderr}");
            let repaired =
                stdout.contains("\n1. done; now put a backup back") && stdout.contains(" restore FILE");
            assert!(repaired || line.contains(" restore "), "{stdout}");
        }
        assert_eq!(memories(&home.store()), before);
        let aside = home.namespace().join("set-aside-1");
        assert_eq!(aside.exists(), damaged);
        if damaged {
            assert!(fs::read(&aside).expect("it is there") == bytes);
            assert_eq!(fs::metadata(&aside).expect("it is there").permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(home.doctor(&[]).0, Some(0));
    }
}

#[test]
fn a_store_of_another_key_is_no_damaged_one() {
    let (home, other) = (Home::new(), Home::new());
    let foreign = fs::read(other.namespace().join("store.redb")).expect("it is there");
    fs::write(home.namespace().join("store.redb"), foreign).expect("it is written");
    let before = home.everything();
    let (code, said) = home.doctor(&["--repair", "--yes"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("belongs to another data directory"), "{said}");
    assert!(said.ends_with("There is nothing here that --repair can put right.\n"), "{said}");
    assert!(home.everything() == before);
}

#[test]
fn while_a_server_has_the_store_open_nothing_is_touched() {
    let home = Home::new();
    let identity = home.store().join("identity.txt");
    open_to_others(&identity, 0o644);
    let mut server = Server::start(&home.store());
    let (code, said) = home.doctor(&["--repair", "--yes"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("nothing is touched.\nClose the clients that use it, then run this again.\n"),
        "{said}"
    );
    assert_eq!(fs::metadata(&identity).expect("it is there").permissions().mode() & 0o777, 0o644);
    assert_eq!(server.call("get", json!({"key": "k"}))["text"], "marmalade");
    server.close();
    assert_eq!(home.doctor(&["--repair", "--yes"]).0, Some(0));
}

/// `script` gives it a terminal; it is part of every Linux distribution's base.
#[cfg(target_os = "linux")]
#[test]
fn at_a_terminal_it_asks_and_does_it_only_after_a_yes() {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };
    let home = Home::new();
    let identity = home.store().join("identity.txt");
    let answered = |answer: &str| {
        open_to_others(&identity, 0o644);
        let command = format!("'{}' doctor --repair", env!("CARGO_BIN_EXE_warm-mcp"));
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("WARM_MCP_DATA_DIR", home.store())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script starts");
        child.stdin.take().expect("a pipe").write_all(answer.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Do it? [y/N]"), "{said}");
        fs::metadata(&identity).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(answered("n\n"), 0o644);
    assert_eq!(answered("\n"), 0o644);
    assert_eq!(answered("y\n"), 0o600);
}
