//! `warm-mcp view`, `recall` and `list`: what a person and a script read of the memories.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use common::{Server, owner, run, warm_mcp};
use serde_json::{Value, json};

#[test]
fn view_shows_what_the_memory_tool_shows_and_another_memorys_text_as_it_is() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    server.memory(json!({"command": "create", "path": "/memories/a/b.md", "file_text": "one\ntwo\nthree\n"}));
    server.call("remember", json!({"key": "key", "text": "no end\r\nsecond"}));
    let views: Vec<String> = ["/memories", "/memories/a/b.md"]
        .map(|path| server.memory(json!({"command": "view", "path": path})))
        .to_vec();
    server.close();
    assert_eq!(owner(&store, &["view"]), format!("{}\n", views[0]));
    assert_eq!(owner(&store, &["view", "/memories/"]), format!("{}\n", views[0]));
    assert_eq!(owner(&store, &["view", "/memories/a/b.md"]), format!("{}\n", views[1]));
    let from = owner(&store, &["view", "/memories/a/b.md", "--from", "2"]);
    assert!(from.ends_with("     2\ttwo\n     3\tthree\n") && !from.contains("one"), "{from}");
    assert_eq!(owner(&store, &["view", "key"]), "no end\r\nsecond");
    assert_eq!(owner(&store, &["view", "key", "--from", "2"]), "second");
    for missing in ["/memories/none.md", "none", "/memories/../x"] {
        let (code, stdout, stderr) = run(&store, &["view", missing]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        assert!(stderr.starts_with("warm-mcp: ") && stderr.contains(missing), "{stderr}");
    }
}

#[test]
fn recall_shows_score_lines_and_excerpt_and_gives_json_to_a_script() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    for (key, text, tag) in
        [("tea", "Ann likes\ngreen tea.", "drinks"), ("/memories/x/cup.md", "a tea cup", "")]
    {
        let tags = if tag.is_empty() { vec![] } else { vec![tag] };
        server.call("remember", json!({"key": key, "text": text, "tags": tags, "title": "About tea"}));
    }
    server.close();
    let shown = owner(&store, &["recall", "which", "green", "tea?", "--tag", "drinks"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("1. tea (score ") && lines[0].ends_with(", lines 1 to 2)"), "{shown}");
    assert_eq!(lines[1..], ["   About tea", "   tags: drinks", "   Ann likes", "   green tea."]);
    let shown = owner(&store, &["recall", "tea", "--under", "/memories/x", "--json"]);
    let found: Value = serde_json::from_str(&shown).expect("one JSON object");
    assert_eq!((&found["total"], &found["results"][0]["key"]), (&json!(1), &json!("/memories/x/cup.md")));
    let shown = owner(&store, &["recall", "tea", "-k", "1"]);
    assert!(shown.contains("1 of 2 that match"), "{shown}");
    assert!(owner(&store, &["recall", "zebra"]).starts_with("Nothing was found"));
    assert_eq!(run(&store, &["recall", "tea", "-k", "0"]).0, Some(1));
}

#[test]
fn list_goes_through_all_pages_and_stops_quietly_when_nobody_reads_on() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, notes) = (dir.path().join("store"), dir.path().join("notes"));
    fs::create_dir(&notes).expect("a folder");
    let count = 450;
    for number in 0..count {
        fs::write(notes.join(format!("{number:03}-{}.md", "x".repeat(100))), "text").expect("a file");
    }
    owner(&store, &["import", notes.to_str().expect("UTF-8")]);
    let listed = owner(&store, &["list", "--json"]);
    let keys: Vec<String> = listed
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["key"].as_str().expect("a key").to_owned()
        })
        .collect();
    assert_eq!(keys.len(), count);
    assert!(keys.is_sorted());
    assert_eq!(owner(&store, &["list"]).lines().count(), count);
    assert_eq!(owner(&store, &["list", "--prefix", "/memories/00"]).lines().count(), 10);
    assert_eq!(owner(&store, &["list", "--tag", "none"]), "");

    for arguments in [&["list", "--json"][..], &["export", "-"]] {
        let mut child = warm_mcp(&store)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("warm-mcp starts");
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("a line");
        let ended = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && stderr.is_empty(), "{stderr}");
    }
}

#[test]
fn looking_never_makes_a_store() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    for arguments in [
        &["view"][..],
        &["list"],
        &["recall", "x"],
        &["export", "-"],
        &["backup", "-"],
        &["import", "--dry-run", "."],
    ] {
        let (code, _, stderr) = run(&store, arguments);
        if arguments[0] != "import" {
            assert_eq!(code, Some(1), "{arguments:?}");
            assert!(stderr.contains("nothing is stored yet in") && stderr.contains("--data-dir"), "{stderr}");
        }
        assert!(!store.exists(), "{arguments:?}");
    }
    Server::start(&store).close();
    let (code, _, stderr) = run(&store, &["list", "--namespace", "other"]);
    assert!(code == Some(1) && stderr.contains("namespace other"), "{stderr}");
    assert_eq!(fs::read_dir(store.join("stores")).expect("a folder").count(), 1);
}

#[test]
fn list_and_recall_take_times_and_list_shows_the_last_changed_first() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    for key in ["a", "b", "c"] {
        server.call("remember", json!({"key": key, "text": "a word"}));
    }
    // Beyond the millisecond in which the others were written.
    std::thread::sleep(std::time::Duration::from_millis(5));
    server.call("remember", json!({"key": "b", "text": "another word"}));
    let changed = server.call("get", json!({"key": "b"}))["updated_at"].as_str().expect("a time").to_owned();
    let keys = |arguments: &[&str]| -> Vec<String> {
        let listed = owner(&store, arguments);
        listed.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect()
    };
    assert_eq!(keys(&["list"]), ["a", "b", "c"]);
    assert_eq!(keys(&["list", "--recent"])[0], "b");
    assert_eq!(keys(&["list", "--since", &changed]), ["b"]);
    assert_eq!(keys(&["list", "--until", &changed, "--max-page", "1"]), ["a", "c"]);
    let found = owner(&store, &["recall", "word", "--since", &changed, "--json"]);
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!((&found["total"], &found["results"][0]["key"]), (&json!(1), &json!("b")));
    let (status, _, stderr) = run(&store, &["list", "--since", "yesterday"]);
    assert!(status == Some(1) && stderr.contains("since must be a time like"), "{stderr}");
}
