//! `warm-mcp forget`: what its owner names is gone, after a yes, and nothing else.

mod common;

use std::path::Path;

use common::{Server, owner, run};
use serde_json::json;

fn filled(store: &Path) {
    let mut server = Server::start(store);
    for path in ["a/one.md", "a/two.md", "b.md"] {
        server
            .memory(json!({"command": "create", "path": format!("/memories/{path}"), "file_text": "text\n"}));
    }
    server.call(
        "remember",
        json!({"key": "k", "text": "tea", "title": "T", "tags": ["x"], "metadata": {"n": 1}}),
    );
    server.close();
}

fn keys(store: &Path) -> Vec<String> {
    let listed = owner(store, &["list", "--json"]);
    let key = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["key"].to_string();
    listed.lines().map(key).collect()
}

#[test]
fn nothing_is_forgotten_without_a_yes_and_then_what_was_named_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    filled(&store);
    let before = keys(&store);
    for line in [&["forget", "k"][..], &["forget", "--prefix", "/memories/a/"]] {
        let (code, _, stderr) = run(&store, line);
        assert!(code == Some(1) && stderr.contains("--yes"), "{stderr}");
    }
    let (code, _, stderr) = run(&store, &["forget", "k", "none", "--yes"]);
    assert!(code == Some(1) && stderr.contains("no memory none"), "{stderr}");
    assert_eq!(run(&store, &["forget", "--yes"]).0, Some(2), "nothing was named");
    assert_eq!(keys(&store), before);

    assert!(
        owner(&store, &["forget", "k", "/memories/b.md", "--yes"])
            .starts_with("Forgotten: 2 memories.\nReceipt ")
    );
    assert_eq!(keys(&store), [r#""/memories/a/one.md""#, r#""/memories/a/two.md""#]);
    assert!(
        owner(&store, &["forget", "--prefix", "/memories/a/", "--yes"])
            .starts_with("Forgotten: 2 memories.\nReceipt ")
    );
    assert!(
        owner(&store, &["forget", "--prefix", "/memories/a/", "--yes"]).contains("Nothing was forgotten")
    );
    assert!(keys(&store).is_empty());
}

#[test]
fn a_command_that_would_write_is_forbidden_where_only_reading_is_allowed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    filled(&store);
    let before = keys(&store);
    let backup = dir.path().join("b.age");
    let backup = backup.to_str().expect("UTF-8");
    owner(&store, &["--read-only", "backup", backup]);
    for line in [
        &["forget", "k", "--yes"][..],
        &["edit", "k"],
        &["import", backup],
        &["restore", backup],
        &["doctor", "--repair", "--yes"],
    ] {
        let (code, _, stderr) = run(&store, &[&["--read-only"], line].concat());
        assert!(code == Some(1) && stderr.contains("--read-only"), "{line:?}: {stderr}");
    }
    owner(&store, &["--read-only", "restore", backup, "--dry-run"]);
    assert_eq!(keys(&store), before);
}

#[test]
fn tags_titles_and_metadata_are_shown_and_chosen_by() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    filled(&store);
    let details = owner(&store, &["view", "k", "--details"]);
    assert!(details.contains(r#""metadata":{"n":1}"#) && details.contains(r#""tags":["x"]"#), "{details}");
    assert!(!details.contains(r#""text""#), "{details}");
    for filter in [r#"{"n": 1}"#, r#"{"n": {"lt": 2}}"#] {
        let listed = owner(&store, &["list", "--filter", filter, "--long"]);
        let lines: Vec<_> = listed.lines().map(str::trim).collect();
        assert!(lines.len() == 3 && lines[0].ends_with(" k") && lines[1..] == ["T", "x"], "{listed}");
        let found = owner(&store, &["recall", "tea", "text", "--filter", filter]);
        assert!(
            found.starts_with("1. k ") && found.contains("   tags: x\n") && !found.contains("2. "),
            "{found}"
        );
    }
    assert_eq!(owner(&store, &["list", "--filter", r#"{"n": 2}"#]), "");
    let found = owner(&store, &["recall", "text", "--max-chars", "2", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!((&found["returned"], &found["results"][0]["excerpt"]), (&json!(1), &json!("te")));
    for command in ["list", "recall"] {
        let line = [command, "--filter", "n = 1", "q"];
        let line = if command == "list" { &line[..3] } else { &line[..] };
        let (code, _, stderr) = run(&store, line);
        assert!(code == Some(1) && stderr.contains("JSON object"), "{stderr}");
    }
}
