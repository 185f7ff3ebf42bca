//! The `export` tool: every memory once, in each format, within its bound.

mod common;

use std::{collections::BTreeSet, fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use common::{Server, finish, warm_mcp};
use serde_json::{Value, json};

const LIMIT: usize = 16_384;

fn filled(store: &Path) -> Server {
    let mut server = Server::start_with(warm_mcp(store), |command| {
        command.args(["--max-export-bytes", &LIMIT.to_string()]);
    });
    for n in 0..60 {
        let arguments = json!({"key": format!("k{n:02}"), "text": format!("Fact {n}: {}", "ü\"\n".repeat(200)),
            "tags": ["fact"], "metadata": {"n": n}, "title": "A fact"});
        server.call("remember", arguments);
    }
    server.memory(
        json!({"command": "create", "path": "/memories/a.md", "file_text": "# A file\nwithout an end"}),
    );
    server
}

/// Every page of an export, while something happens between them.
fn pages(server: &mut Server, format: &str, mut between: impl FnMut(&mut Server, usize)) -> Vec<Value> {
    let (mut pages, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = server.call("export", json!({"format": format, "cursor": cursor}));
        assert_eq!(page["format"], format);
        assert_eq!(page["truncated"], page["next_cursor"].is_string());
        cursor = page["next_cursor"].clone();
        pages.push(page);
        if cursor.is_null() {
            return pages;
        }
        between(server, pages.len());
    }
}

fn contents(pages: &[Value]) -> impl Iterator<Item = &str> {
    pages.iter().map(|page| {
        let content = page["content"].as_str().expect("a string");
        assert!(content.len() <= LIMIT, "{}", content.len());
        content
    })
}

#[test]
fn json_pages_hold_every_memory_once_while_others_come_and_go() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = filled(&dir.path().join("store"));
    let pages = pages(&mut server, "json", |server, number| {
        server.call("remember", json!({"key": format!("/memories/new{number}"), "text": "in front"}));
        server.call("forget", json!({"key": format!("k{:02}", number - 1)}));
    });
    assert!(pages.len() > 2);
    let memories: Vec<&Value> =
        pages.iter().flat_map(|page| page["memories"].as_array().expect("memories")).collect();
    let keys: Vec<&str> = memories.iter().map(|memory| memory["key"].as_str().expect("a key")).collect();
    let unique: BTreeSet<&str> = keys.iter().copied().collect();
    assert_eq!((keys.len(), unique.len()), (61, 61));
    assert!(memories[1]["text"].as_str().is_some_and(|text| text.starts_with("Fact 0")));
    assert_eq!(memories[1]["metadata"], json!({"n": 0}));
    for page in &pages {
        assert!(page["memories"].to_string().len() <= LIMIT);
        assert_eq!(page["returned"], page["memories"].as_array().expect("memories").len());
    }
}

#[test]
fn jsonl_and_markdown_pages_can_be_put_together_also_by_a_process_that_shares_the_store() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let _owner = filled(&store);
    let mut server = Server::start_with(warm_mcp(&store), |command| {
        command.args(["--max-export-bytes", &LIMIT.to_string()]);
    });
    let jsonl = pages(&mut server, "jsonl", |_, _| {});
    let lines: String = contents(&jsonl).collect();
    let keys: BTreeSet<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["key"].to_string())
        .collect();
    assert_eq!((lines.lines().count(), keys.len()), (61, 61));
    let markdown = pages(&mut server, "markdown", |_, _| {});
    let text: Vec<&str> = contents(&markdown).collect();
    assert!(text[0].starts_with("# /memories/a.md\n\n# A file\nwithout an end\n\n# k00\n\nFact 0: "));
    assert_eq!(text.join("\n").lines().filter(|line| line.starts_with("# k")).count(), 60);
    let sealed = pages(&mut server, "age", |_, _| {});
    assert!(contents(&sealed).count() > 2);
}

#[test]
fn each_sealed_page_is_a_backup_that_restore_takes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = filled(&store);
    let pages = pages(&mut server, "age", |_, _| {});
    assert!(pages.len() > 2);
    server.close();
    let other = dir.path().join("other");
    let identity = store.join("identity.txt");
    for (number, content) in contents(&pages).enumerate() {
        let sealed = STANDARD.decode(content).expect("base64");
        assert!(!sealed.windows(4).any(|bytes| bytes == b"Fact"));
        let file = dir.path().join(format!("{number}.age"));
        fs::write(&file, sealed).expect("a file");
        let (status, _, stderr) =
            finish(warm_mcp(&other).arg("restore").arg(&file).arg("--identity").arg(&identity));
        assert_eq!(status, Some(0), "{number}: {stderr}");
    }
    let mut command = warm_mcp(&other);
    command.arg("--identity").arg(&identity);
    let mut restored = Server::start_with(command, |_| {});
    assert_eq!(restored.call("stats", json!({}))["memories"], 61);
    assert_eq!(restored.call("get", json!({"key": "k07"}))["metadata"], json!({"n": 7}));
}

#[test]
fn what_is_not_a_format_or_a_cursor_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start(&dir.path().join("store"));
    let empty = server.call("export", json!({}));
    assert_eq!((&empty["memories"], &empty["truncated"]), (&json!([]), &json!(false)));
    for arguments in
        [json!({"format": "zip"}), json!({"cursor": "?"}), json!({"colour": 1}), json!({"format": 5})]
    {
        assert_eq!(server.refusal("export", arguments.clone()).0, "invalid_argument", "{arguments}");
    }
}
