//! A disk that takes no more: every write is answered, and nothing that was acknowledged is lost.
//!
//! The disk is full for one process alone: it may not make a file longer than so many blocks, until that limit
//! is lifted.
#![cfg(target_os = "linux")]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use common::{DEADLINE, Server, run, warm_mcp};
use serde_json::json;

/// `warm-mcp` that may not make a file longer than so many blocks of 512 bytes.
fn limited(store: &Path, blocks: u64) -> Command {
    let plain = warm_mcp(store);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -S -f {blocks}; exec \"$0\"")]).arg(plain.get_program());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn store_file(store: &Path) -> PathBuf {
    let namespace =
        fs::read_dir(store.join("stores")).expect("stores").next().expect("one").expect("an entry");
    namespace.path().join("store.redb")
}

/// As long as the file is now, and so many blocks more.
fn blocks(store: &Path, more: u64) -> u64 {
    fs::metadata(store_file(store)).expect("a store").len() / 512 + more
}

fn text(n: usize) -> String {
    format!("{n} ").repeat(3_000)
}

#[test]
fn a_write_on_a_full_disk_is_an_error_with_the_next_step_and_no_acknowledged_write_is_lost() {
    for more in [0, 4_000] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = dir.path().join("store");
        let mut server = Server::start(&store);
        server.call("remember", json!({"key": "before", "text": "kept"}));
        server.close();

        let mut server = Server::start_with(limited(&store, blocks(&store, more)), |_| {});
        let mut acknowledged = 0;
        let refusal = loop {
            let path = format!("/memories/dir/{acknowledged}");
            let create = json!({"command": "create", "path": path, "file_text": text(acknowledged)});
            let outcome = server.outcome("memory", create);
            if outcome["isError"] == true {
                break outcome["structuredContent"].clone();
            }
            acknowledged += 1;
            assert!(acknowledged < 2_000, "the limit is never met");
        };
        assert_eq!(refusal["code"], "store_unavailable", "{refusal}");
        let message = refusal["message"].as_str().expect("a message");
        assert!(message.contains("free space"), "it says what to do: {message}");
        // What changes many files is refused as a whole.
        let rename = json!({"command": "rename", "old_path": "/memories/dir", "new_path": "/memories/moved"});
        let renamed = acknowledged > 0 && server.outcome("memory", rename)["isError"] == false;
        let ended = server.close();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);

        let mut server = Server::start(&store);
        assert_eq!(server.call("get", json!({"key": "before"}))["text"], "kept");
        let total = server.call("stats", json!({}))["files"].as_u64().expect("a number");
        assert!([acknowledged, acknowledged + 1].contains(&(total as usize)), "{total} of {acknowledged}");
        let root = if renamed { "/memories/moved" } else { "/memories/dir" };
        for n in 0..acknowledged {
            assert_eq!(server.call("get", json!({"key": format!("{root}/{n}")}))["text"], text(n));
        }
        server.call("remember", json!({"key": "after", "text": "there is room again"}));
        server.close();
        let (code, doctor, _) = run(&store, &["doctor"]);
        assert_eq!(code, Some(0), "{doctor}");
    }
}

#[test]
fn what_was_read_before_the_disk_was_full_is_read_after_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    Server::start(&store).close();
    let limit = blocks(&store, 4_000);
    let mut server = Server::start_with(limited(&store, limit), |_| {});
    let mut acknowledged = 0;
    loop {
        let create = json!({"command": "create", "path": format!("/memories/{acknowledged}"),
            "file_text": text(acknowledged)});
        if server.outcome("memory", create)["isError"] == true {
            break;
        }
        acknowledged += 1;
    }
    assert!(acknowledged > 0);
    let listing = server.memory(json!({"command": "view", "path": "/memories"}));
    assert!(listing.contains("/memories/0"), "{listing}");
    for n in 0..acknowledged {
        assert_eq!(server.call("get", json!({"key": format!("/memories/{n}")}))["text"], text(n), "{n}");
    }
    assert!(server.call("recall", json!({"query": "0"}))["total"].as_u64() > Some(0));
    let ended = server.close();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);

    // A start on the disk that is still full serves them too.
    let mut server = Server::start_with(limited(&store, limit), |_| {});
    for n in 0..acknowledged {
        assert_eq!(server.call("get", json!({"key": format!("/memories/{n}")}))["text"], text(n), "{n}");
    }
    server.close();
}

#[test]
fn once_there_is_room_again_the_same_process_takes_writes_and_has_lost_none() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        println!("skipped: no prlimit");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    Server::start(&store).close();
    let mut server = Server::start_with(limited(&store, blocks(&store, 2_000)), |_| {});
    let create = |n: usize| {
        let path = format!("/memories/{n}");
        json!({"command": "create", "path": path, "file_text": text(n)})
    };
    let mut acknowledged = 0;
    for _ in 0..2 {
        while server.outcome("memory", create(acknowledged))["isError"] == false {
            acknowledged += 1;
            assert!(acknowledged < 2_000, "the limit is never met");
        }
        // As long as there is no room, each write says so, also after the store was opened again.
        let full = Instant::now();
        while full.elapsed() < Duration::from_millis(1_500) {
            let (code, message) = server.refusal("memory", create(10_000));
            assert_eq!(code, "store_unavailable", "{message}");
            assert!(message.contains("disk"), "it says where to look: {message}");
            thread::sleep(Duration::from_millis(50));
        }
        // The file of the store may grow by as much as it has.
        let limit = 3 * 512 * blocks(&store, 0);
        let lifted = Command::new("prlimit")
            .args(["--pid", &server.id().to_string(), &format!("--fsize={limit}:")])
            .status();
        assert!(lifted.expect("prlimit starts").success());
        let room = Instant::now();
        loop {
            let outcome = server.outcome("memory", create(acknowledged));
            let said = outcome["structuredContent"]["message"].as_str().unwrap_or_default();
            // The one that was refused may have been made.
            if outcome["isError"] == false || said.contains("already exists") {
                break;
            }
            assert_eq!(outcome["structuredContent"]["code"], "store_unavailable", "{outcome}");
            assert!(room.elapsed() < DEADLINE, "writes are not taken again: {said}");
            thread::sleep(Duration::from_millis(50));
        }
        acknowledged += 1;
        for n in 0..acknowledged {
            assert_eq!(server.call("get", json!({"key": format!("/memories/{n}")}))["text"], text(n), "{n}");
        }
    }
    let ended = server.close();
    assert!(ended.status.success() && !ended.stderr.contains("panicked"), "{}", ended.stderr);
    let mut server = Server::start(&store);
    for n in 0..acknowledged {
        assert_eq!(server.call("get", json!({"key": format!("/memories/{n}")}))["text"], text(n), "{n}");
    }
    server.close();
    let (code, doctor, _) = run(&store, &["doctor"]);
    assert_eq!(code, Some(0), "{doctor}");
}
