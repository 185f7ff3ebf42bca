//! Every tool over the wire: what it returns, and how it refuses.

mod common;

use common::{Server, warm_mcp};
use serde_json::{Value, json};

fn start() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("store"));
    (dir, server)
}

fn note(server: &mut Server, path: &str, text: &str) -> String {
    server.memory(json!({"command": "create", "path": path, "file_text": text}))
}

#[test]
fn the_text_of_a_memory_command_is_the_result_string_and_nothing_else() {
    let (_dir, mut server) = start();
    let outcome = server
        .outcome("memory", json!({"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n"}));
    let result = "File created successfully at: /memories/a.md";
    assert_eq!(outcome["content"], json!([{"type": "text", "text": result}]));
    assert_eq!(outcome["structuredContent"], json!({"result": result}));
    assert_eq!(
        server.memory(json!({"command": "view", "path": "/memories/a.md"})),
        "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo"
    );
}

#[test]
fn the_text_of_every_other_tool_is_the_json_of_its_structured_content() {
    let (_dir, mut server) = start();
    server.call("remember", json!({"key": "tea", "text": "Ann drinks green tea."}));
    for (tool, arguments) in [
        ("remember", json!({"key": "k", "text": "t"})),
        ("recall", json!({"query": "tea"})),
        ("get", json!({"key": "tea"})),
        ("list", json!({})),
        ("forget", json!({"key": "k"})),
        ("export", json!({})),
        ("stats", json!({})),
    ] {
        let outcome = server.outcome(tool, arguments);
        assert_eq!(outcome["isError"], false, "{tool}: {outcome}");
        let text = outcome["content"][0]["text"].as_str().expect("text");
        let parsed: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(parsed, outcome["structuredContent"], "{tool}");
        assert_eq!(outcome["content"].as_array().map(Vec::len), Some(1), "{tool}");
    }
}

#[test]
fn the_six_commands_do_their_work() {
    let (_dir, mut server) = start();
    note(&mut server, "/memories/d/a.md", "one\ntwo\n");
    server.memory(
        json!({"command": "str_replace", "path": "/memories/d/a.md", "old_str": "two", "new_str": "2"}),
    );
    server.memory(
        json!({"command": "insert", "path": "/memories/d/a.md", "insert_line": 1, "insert_text": "1.5\n"}),
    );
    server.memory(json!({"command": "rename", "old_path": "/memories/d/a.md", "new_path": "/memories/b.md"}));
    assert_eq!(server.call("get", json!({"key": "/memories/b.md"}))["text"], "one\n1.5\n2\n");
    server.memory(json!({"command": "delete", "path": "/memories/b.md"}));
    let (code, message) = server.refusal("memory", json!({"command": "view", "path": "/memories/b.md"}));
    assert_eq!(code, "not_found");
    assert!(message.contains("/memories/b.md"));
}

#[test]
fn the_limits_of_a_call_lower_those_of_the_server() {
    let (_dir, mut server) = start();
    let create = |limit: u64| json!({"command": "create", "path": "/memories/a.md", "file_text": "12345", "max_file_bytes": limit});
    assert_eq!(server.refusal("memory", create(4)).0, "too_large");
    server.memory(create(5));
    let lines = "a line of text\n".repeat(100);
    note(&mut server, "/memories/long.md", &lines);
    let view = json!({"command": "view", "path": "/memories/long.md", "max_view_chars": 200});
    let short = server.memory(view);
    let whole = server.memory(json!({"command": "view", "path": "/memories/long.md"}));
    assert!(short.len() < whole.len() / 2);
}

#[test]
fn memories_are_stored_found_listed_and_forgotten() {
    let (_dir, mut server) = start();
    let stored = server.call(
        "remember",
        json!({"text": "Ann drinks green tea.", "title": "Tea", "tags": ["ann"],
            "metadata": {"source": {"page": 3}}}),
    );
    let key = stored["key"].as_str().expect("a key was made up").to_owned();
    assert_eq!((&stored["created"], &stored["bytes"]), (&json!(true), &json!(21)));

    let got = server.call("get", json!({"key": key}));
    assert_eq!(got["text"], "Ann drinks green tea.");
    assert_eq!((&got["title"], &got["tags"]), (&json!("Tea"), &json!(["ann"])));
    assert_eq!(got["metadata"], json!({"source": {"page": 3}}));
    assert_eq!(got["version"], stored["version"]);

    let found = server.call("recall", json!({"query": "what does Ann drink?", "tags": ["ann"]}));
    assert_eq!((&found["results"][0]["key"], &found["mode"]), (&json!(key), &json!("lexical")));
    assert_eq!(server.call("list", json!({"tag": "ann"}))["memories"][0]["key"], json!(key));

    assert_eq!(server.call("forget", json!({"key": key}))["forgotten"], 1);
    assert_eq!(server.refusal("get", json!({"key": key})).0, "not_found");
    assert_eq!(server.call("recall", json!({"query": "Ann"}))["results"], json!([]));
}

#[test]
fn a_version_guards_against_lost_updates() {
    let (_dir, mut server) = start();
    let first = server.call("remember", json!({"key": "k", "text": "1"}))["version"].take();
    let second = server.call("remember", json!({"key": "k", "text": "2", "if_version": first}));
    assert_eq!(second["created"], false);
    let late = server.refusal("remember", json!({"key": "k", "text": "3", "if_version": first}));
    assert_eq!(late.0, "version_conflict");
    let taken = server.refusal("remember", json!({"key": "k", "text": "3", "create_only": true}));
    assert_eq!(taken.0, "already_exists");
    assert_eq!(server.call("get", json!({"key": "k"}))["text"], "2");
}

#[test]
fn forgetting_by_prefix_needs_a_confirmation() {
    let (_dir, mut server) = start();
    for key in ["p/1", "p/2", "q"] {
        server.call("remember", json!({"key": key, "text": "t"}));
    }
    assert_eq!(server.refusal("forget", json!({"prefix": "p/"})).0, "invalid_argument");
    assert_eq!(server.call("forget", json!({"prefix": "p/", "confirm": true}))["forgotten"], 2);
    assert_eq!(server.call("list", json!({}))["total"], 1);
}

#[test]
fn pages_of_a_list_visit_each_memory_once() {
    let (_dir, mut server) = start();
    for number in 0..25 {
        server.call("remember", json!({"key": format!("k{number:02}"), "text": "t"}));
    }
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = server.call("list", json!({"limit": 10, "cursor": cursor}));
        assert_eq!(page["total"], 25);
        let keys = page["memories"].as_array().expect("memories");
        seen.extend(keys.iter().map(|memory| memory["key"].as_str().expect("a key").to_owned()));
        cursor = page["next_cursor"].clone();
        assert_eq!(page["truncated"], !cursor.is_null());
        if cursor.is_null() {
            break;
        }
    }
    let expected: Vec<String> = (0..25).map(|number| format!("k{number:02}")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn unknown_fields_are_refused_by_name_by_every_tool() {
    let (_dir, mut server) = start();
    for (tool, arguments) in [
        ("memory", json!({"command": "view", "path": "/memories", "colour": 1})),
        ("remember", json!({"text": "t", "colour": 1})),
        ("recall", json!({"query": "q", "colour": null})),
        ("get", json!({"key": "k", "colour": 1})),
        ("list", json!({"colour": 1})),
        ("forget", json!({"key": "k", "colour": 1})),
        ("export", json!({"colour": 1})),
        ("stats", json!({"colour": 1})),
    ] {
        let (code, message) = server.refusal(tool, arguments);
        assert_eq!(code, "invalid_argument", "{tool}");
        assert!(message.contains("`colour`"), "{tool}: {message}");
    }
    assert_eq!(server.call("stats", json!({}))["memories"], 0);
}

#[test]
fn missing_fields_and_wrong_types_are_refused_with_what_is_expected() {
    let (_dir, mut server) = start();
    for (tool, arguments, said) in [
        ("memory", json!({}), "`command`"),
        ("memory", json!({"command": "view"}), "`path`"),
        ("memory", json!({"command": "view", "path": 5}), "must be a string"),
        (
            "memory",
            json!({"command": "view", "path": "/memories", "view_range": "1-2"}),
            "must be a list of whole numbers",
        ),
        (
            "memory",
            json!({"command": "insert", "path": "/memories/a", "insert_line": "0", "insert_text": "t"}),
            "must be a whole number",
        ),
        ("remember", json!({"key": "k"}), "`text`"),
        ("remember", json!({"text": "t", "tags": "a"}), "must be a list of strings"),
        ("remember", json!({"text": "t", "metadata": []}), "must be an object"),
        ("remember", json!({"text": "t", "create_only": 1}), "must be true or false"),
        ("recall", json!({"query": null}), "`query`"),
        ("recall", json!({"query": "q", "k": 1.5}), "must be a whole number"),
        ("recall", json!({"query": "q", "mode": "fuzzy"}), "lexical, hybrid, semantic"),
        ("recall", json!({"query": "q", "mode": "semantic"}), ""),
        ("get", json!({}), "`key`"),
        ("list", json!({"limit": -1}), "not negative"),
        ("forget", json!({"keys": "k"}), "must be a list of strings"),
        ("forget", json!({}), ""),
    ] {
        let (code, message) = server.refusal(tool, arguments.clone());
        assert_eq!(code, "invalid_argument", "{tool} {arguments}");
        assert!(message.contains(said), "{tool} {arguments}: {message}");
    }
}

#[test]
fn paths_outside_the_tree_are_refused_by_every_command() {
    let (_dir, mut server) = start();
    note(&mut server, "/memories/real.txt", "x\n");
    for path in ["/memories_backup/f.txt", "/memoriesX", "/memories/../etc/x", "/memories/\0", "memories/f"] {
        for arguments in [
            json!({"command": "view", "path": path}),
            json!({"command": "create", "path": path, "file_text": "x"}),
            json!({"command": "str_replace", "path": path, "old_str": "x", "new_str": "y"}),
            json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"}),
            json!({"command": "delete", "path": path}),
            json!({"command": "rename", "old_path": path, "new_path": "/memories/new.txt"}),
            json!({"command": "rename", "old_path": "/memories/real.txt", "new_path": path}),
        ] {
            let (code, _) = server.refusal("memory", arguments.clone());
            assert_eq!(code, "invalid_argument", "{arguments}");
        }
    }
    assert_eq!(server.call("list", json!({}))["total"], 1);
}

#[test]
fn namespaces_are_chosen_per_call_only_where_the_server_allows_it() {
    let (dir, mut server) = start();
    let (code, message) = server.refusal("stats", json!({"namespace": "ann"}));
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("--namespace-arg"));
    server.close();

    let mut server = Server::start_with(warm_mcp(&dir.path().join("store")), |command| {
        command.arg("--namespace-arg");
    });
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "x", "namespace": "ann"});
    server.memory(create);
    for arguments in [
        json!({"command": "view", "path": "/memories/a.md", "namespace": "bob"}),
        json!({"command": "delete", "path": "/memories/a.md", "namespace": "bob"}),
        json!({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md", "namespace": "bob"}),
        json!({"command": "view", "path": "/memories/a.md"}),
        json!({"command": "view", "path": "/memories/a.md", "namespace": null}),
    ] {
        assert_eq!(server.refusal("memory", arguments).0, "not_found");
    }
    assert_eq!(server.call("get", json!({"key": "/memories/a.md", "namespace": "ann"}))["text"], "x");
    assert_eq!(server.call("stats", json!({"namespace": "ann"}))["namespace"], "ann");
    let (code, _) = server.refusal("stats", json!({"namespace": "a\nb"}));
    assert_eq!(code, "invalid_argument");
    let (code, _) = server.refusal("stats", json!({"namespace": 5}));
    assert_eq!(code, "invalid_argument");
}

#[test]
fn texts_come_back_byte_for_byte_in_any_locale() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start_with(warm_mcp(&dir.path().join("store")), |command| {
        command.env("LC_ALL", "C").env("LANG", "C");
    });
    let text = "Z\u{fc}rich, \u{65e5}\u{672c}\u{8a9e}, \u{1f680}, e\u{301}, \u{feff}\r\n\ttab \u{2028} end";
    note(&mut server, "/memories/\u{65e5}\u{672c}.md", text);
    assert_eq!(server.call("get", json!({"key": "/memories/\u{65e5}\u{672c}.md"}))["text"], text);
}

#[test]
fn default_replies_stay_small_however_much_is_stored() {
    let (_dir, mut server) = start();
    let text = "the quick brown fox jumps over the lazy dog; ".repeat(45);
    for number in 0..300 {
        server.send_call("remember", json!({"key": format!("note-{number:04}"), "text": text}));
    }
    for (tool, arguments) in [("recall", json!({"query": "quick fox"})), ("list", json!({}))] {
        let outcome = server.outcome(tool, arguments);
        assert!(outcome.to_string().len() < 64 * 1024, "{tool}: {}", outcome.to_string().len());
        let reply = &outcome["structuredContent"];
        assert_eq!((&reply["total"], &reply["truncated"]), (&json!(300), &json!(true)), "{tool}");
        assert!(reply["returned"].as_u64().is_some_and(|returned| returned > 0), "{tool}");
    }
}
