//! A store file that is renamed, deleted or replaced while a server has it open: no write is acknowledged that no
//! later start would find, and what was opened can still be read.
#![cfg(unix)]

mod common;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Stdio,
};

use common::{DEADLINE, Server, owner, run, warm_mcp};
use serde_json::{Value, json};

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The file of the one store of a data folder.
fn store_file(home: &Path) -> PathBuf {
    let mut stores = fs::read_dir(home.join("stores")).expect("stores");
    stores.next().expect("one").expect("an entry").path().join("store.redb")
}

fn create(name: &str) -> Value {
    json!({"command": "create", "path": format!("/memories/{name}"), "file_text": "a note\n"})
}

fn keys(server: &mut Server) -> Vec<String> {
    let listed = server.call("list", json!({}));
    let memories = listed["memories"].as_array().expect("a list");
    memories.iter().map(|memory| memory["key"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn a_store_file_that_goes_away_takes_no_writes_until_it_is_back() {
    takes_no_writes_without("store.redb");
}

#[test]
fn nor_does_a_store_whose_slot_goes_away() {
    takes_no_writes_without("slot");
}

fn takes_no_writes_without(name: &str) {
    let home = home();
    let mut owns = Server::start(home.path());
    let mut guest = Server::start(home.path());
    owns.memory(create("before.md"));
    let (file, away) = (store_file(home.path()).with_file_name(name), home.path().join("away"));
    fs::rename(&file, &away).expect("it moves");
    for server in [&mut owns, &mut guest] {
        let (code, message) = server.refusal("memory", create("lost.md"));
        assert_eq!(code, "store_unavailable");
        assert!(
            message.contains(&*file.to_string_lossy()) && message.contains("put the file back"),
            "{message}"
        );
        let said = server.call("stats", json!({}))["refuses_writes"].take();
        assert!(said.as_str().is_some_and(|said| said.contains("moved, deleted or replaced")), "{said}");
        assert_eq!(keys(server), ["/memories/before.md"], "what was opened can be read");
    }
    let (code, report, _) = run(home.path(), &["doctor"]);
    assert!(code == Some(1) && report.contains("moved, deleted or replaced"), "{report}");
    fs::copy(&away, &file).expect("it is copied");
    assert_eq!(guest.refusal("memory", create("lost.md")).0, "store_unavailable", "a copy is another file");
    fs::rename(&away, &file).expect("it moves back");
    guest.memory(create("after.md"));
    assert_eq!(owns.call("stats", json!({}))["refuses_writes"], Value::Null);
    owns.close();
    assert_eq!(keys(&mut guest), ["/memories/after.md", "/memories/before.md"]);
}

#[test]
fn what_was_in_a_store_file_that_was_deleted_can_be_backed_up_from_the_running_server() {
    let home = home();
    let mut server = Server::start(home.path());
    server.memory(create("a.md"));
    fs::remove_file(store_file(home.path())).expect("it is there");
    assert_eq!(server.refusal("memory", create("lost.md")).0, "store_unavailable");
    let backup = home.path().join("backup.age");
    let backup = backup.to_str().expect("UTF-8");
    owner(home.path(), &["backup", backup]);
    server.close();
    owner(home.path(), &["doctor", "--repair", "--yes"]);
    owner(home.path(), &["restore", backup]);
    assert_eq!(keys(&mut Server::start(home.path())), ["/memories/a.md"]);
}

#[test]
fn ready_says_that_writes_are_not_taken() {
    let home = home();
    let mut command = warm_mcp(home.path());
    command.args(["--transport", "http", "--bind", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    said.read_line(&mut line).expect("it says where it is");
    let address = line.trim().strip_prefix("warm-mcp listening on http://").expect("an address");
    let address = address.strip_suffix("/mcp").expect("an address");
    let ready = || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        let request = format!("GET /ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it is read");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    let (file, away) = (store_file(home.path()), home.path().join("away.redb"));
    let before = ready();
    fs::rename(&file, &away).expect("it moves");
    let gone = ready();
    fs::rename(&away, &file).expect("it moves back");
    let back = ready();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!([before, gone, back], ["200", "503", "200"]);
}
