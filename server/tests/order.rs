//! A client may send many calls without waiting: what they leave is what they would leave one by one.

mod common;

use std::path::Path;

use common::Server;
use serde_json::{Value, json};

const FILES: [&str; 5] =
    ["/memories/a.txt", "/memories/b.txt", "/memories/d/c.txt", "/memories/d/e.txt", "/memories/f.txt"];

/// Calls whose outcome depends on their order, many of them failing where another came before.
fn calls(seed: u64, count: usize) -> Vec<Value> {
    let mut state = seed;
    let mut below = move |limit: usize| {
        // Knuth's MMIX generator; its high bits are good enough to mix calls.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    (0..count)
        .map(|number| {
            let path = FILES[below(FILES.len())];
            match below(8) {
                0..=2 => json!({"command": "create", "path": path,
                    "file_text": format!("mark\nmade by {number}\n")}),
                3 | 4 => json!({"command": "insert", "path": path, "insert_line": 0,
                    "insert_text": format!("inserted by {number}\n")}),
                5 => json!({"command": "str_replace", "path": path, "old_str": "mark",
                    "new_str": format!("mark {number} mark2")}),
                6 => json!({"command": "delete", "path": path}),
                _ => json!({"command": "rename", "old_path": path, "new_path": FILES[below(FILES.len())]}),
            }
        })
        .collect()
}

fn said(reply: &Value) -> String {
    reply["result"]["content"][0]["text"].as_str().expect("a tool's reply").to_owned()
}

/// Every file with its text, and the listing.
fn tree(server: &mut Server) -> Vec<String> {
    let listing = server.memory(json!({"command": "view", "path": "/memories"}));
    let texts = FILES.map(|path| {
        let text = server.outcome("get", json!({"key": path}))["structuredContent"]["text"].take();
        format!("{path}: {text}")
    });
    [listing].into_iter().chain(texts).collect()
}

fn store(dir: &tempfile::TempDir, name: &str) -> std::path::PathBuf {
    dir.path().join(name)
}

fn one_by_one(store: &Path, calls: &[Value]) -> (Vec<String>, Vec<String>) {
    let mut server = Server::start(store);
    let replies = calls
        .iter()
        .map(|call| {
            let id = server.send_call("memory", call.clone());
            said(&server.reply(id))
        })
        .collect();
    (replies, tree(&mut server))
}

#[test]
fn calls_sent_without_waiting_equal_a_serial_replay_and_survive_a_restart() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for seed in 1..=4 {
        let calls = calls(seed, 50);
        let (expected, expected_tree) = one_by_one(&store(&dir, &format!("serial-{seed}")), &calls);

        let pipelined = store(&dir, &format!("pipelined-{seed}"));
        let mut server = Server::start(&pipelined);
        let ids: Vec<i64> = calls.iter().map(|call| server.send_call("memory", call.clone())).collect();
        let replies: Vec<String> = ids.into_iter().map(|id| said(&server.reply(id))).collect();
        assert_eq!(replies, expected, "seed {seed}");
        assert_eq!(tree(&mut server), expected_tree, "seed {seed}");
        assert!(server.close().status.success());

        let mut restarted = Server::start(&pipelined);
        assert_eq!(tree(&mut restarted), expected_tree, "seed {seed}, after a restart");
    }
}

#[test]
fn a_call_sees_the_write_that_was_sent_before_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start(&store(&dir, "store"));
    for number in 0..20 {
        let text = format!("marmalade{number}");
        server.send_call("remember", json!({"key": "jam", "text": text}));
        let got = server.call("get", json!({"key": "jam"}));
        assert_eq!(got["text"], text);
        let found = server.call("recall", json!({"query": text}));
        assert_eq!(found["results"][0]["key"], "jam");
    }
}

#[test]
fn calls_sent_before_the_input_ends_are_all_answered() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = store(&dir, "store");
    let mut server = Server::start(&path);
    for number in 0..200 {
        server.send_call("remember", json!({"key": format!("k{number}"), "text": "kept"}));
    }
    let ended = server.close();
    assert!(ended.status.success(), "{}", ended.stderr);
    let kept = ended.unread.iter().filter(|reply| reply["result"]["isError"] == false);
    assert_eq!(kept.count(), 200);
    assert_eq!(Server::start(&path).call("stats", json!({}))["memories"], 200);
}

#[test]
fn a_call_that_is_cancelled_before_its_turn_is_never_begun() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start(&store(&dir, "store"));
    let call = |id: u64, key: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "remember", "arguments": {"key": key, "text": "t"}}})
    };
    // In one write, so that all is read while the first calls are at work.
    let mut lines: Vec<Value> = (100..120).map(|id| call(id, &format!("k{id}"))).collect();
    lines.push(call(120, "unwanted"));
    lines.push(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 120}}));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    server.write_line(lines.join("\n"));
    assert_eq!(server.call("stats", json!({}))["memories"], 20);
    assert_eq!(server.refusal("get", json!({"key": "unwanted"})).0, "not_found");
    // Nothing is waited for at the end.
    let ended = server.close();
    assert!(ended.status.success() && !ended.stderr.contains("not answered"), "{}", ended.stderr);
}
