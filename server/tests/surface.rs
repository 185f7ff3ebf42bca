//! What an owner can choose: which tools there are, what they may do, and how much of everything.

mod common;

use std::path::PathBuf;

use common::{Server, finish, warm_mcp};
use serde_json::{Value, json};

fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    (dir, store)
}

fn start(store: &std::path::Path, arguments: &[&str]) -> Server {
    Server::start_with(warm_mcp(store), |command| {
        command.args(arguments);
    })
}

fn names(server: &mut Server) -> Vec<String> {
    let tools = server.request("tools/list", json!({}))["result"]["tools"].take();
    let tools = tools.as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn only_the_tools_that_were_named_are_listed_and_served() {
    let (_dir, store) = home();
    let mut server = start(&store, &["--tools", "recall,remember"]);
    assert_eq!(names(&mut server), ["remember", "recall"]);
    server.call("remember", json!({"text": "Ann drinks green tea."}));
    assert_eq!(server.call("recall", json!({"query": "tea"}))["total"], 1);
    for tool in ["memory", "forget", "stats", "nope"] {
        let refused = server.request("tools/call", json!({"name": tool, "arguments": {}}));
        assert_eq!(refused["error"]["code"], -32602, "{tool}");
        let message = refused["error"]["message"].as_str().expect("a message");
        assert!(message.contains("remember, recall"), "{message}");
    }
    server.close();

    let mut command = warm_mcp(&store);
    command.env("WARM_MCP_TOOLS", "stats");
    assert_eq!(names(&mut Server::start_with(command, |_| {})), ["stats"]);
    let (status, _, stderr) = finish(warm_mcp(&store).args(["--tools", "recal"]));
    assert!(status != Some(0) && stderr.contains("`recal`") && stderr.contains("recall"), "{stderr}");
}

#[test]
fn a_server_that_only_reads_forbids_every_write_and_says_so() {
    let (_dir, store) = home();
    let mut server = start(&store, &[]);
    server.call("remember", json!({"key": "tea", "text": "Ann drinks green tea."}));
    server.memory(json!({"command": "create", "path": "/memories/a.md", "file_text": "x\n"}));
    server.close();

    let mut server = Server::spawn({
        let mut command = warm_mcp(&store);
        command.env("WARM_MCP_READ_ONLY", "1");
        command
    });
    let greeting = server.initialize("2025-11-25");
    let instructions = greeting["result"]["instructions"].as_str().expect("instructions").to_owned();
    assert!(instructions.contains("not change it") && !instructions.contains("`remember`"), "{instructions}");
    assert_eq!(names(&mut server), ["memory", "recall", "get", "list", "export", "stats"]);
    let memory = server.request("tools/list", json!({}))["result"]["tools"][0].take();
    assert!(memory["description"].as_str().is_some_and(|text| text.contains("only reads")));
    assert_eq!(memory["inputSchema"]["properties"]["command"]["enum"], json!(["view"]));
    assert_eq!(memory["annotations"]["readOnlyHint"], true);
    for (tool, arguments) in [
        ("remember", json!({"text": "t"})),
        ("forget", json!({"key": "tea"})),
        ("forget", json!({"colour": 1})),
        ("memory", json!({"command": "create", "path": "/memories/b.md", "file_text": "x"})),
        ("memory", json!({"command": "str_replace", "path": "/memories/a.md", "old_str": "x"})),
        (
            "memory",
            json!({"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "x"}),
        ),
        ("memory", json!({"command": "delete", "path": "/memories/a.md"})),
        ("memory", json!({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"})),
    ] {
        let (code, message) = server.refusal(tool, arguments.clone());
        assert_eq!(code, "forbidden", "{tool} {arguments}");
        assert!(message.contains("--read-only") && message.contains(tool), "{message}");
    }
    assert_eq!(server.call("get", json!({"key": "tea"}))["text"], "Ann drinks green tea.");
    assert!(server.memory(json!({"command": "view", "path": "/memories/a.md"})).contains('x'));
    let stats = server.call("stats", json!({}));
    assert_eq!((&stats["memories"], &stats["server"]["read_only"]), (&json!(2), &json!(true)));
}

#[test]
fn every_limit_can_be_raised_and_is_shown_by_stats() {
    let (_dir, store) = home();
    let key = "k".repeat(300);
    let metadata = json!({"note": "n".repeat(5_000)});
    let tags: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
    let keys: Vec<String> = (0..1_500).map(|n| format!("k{n}")).collect();
    let calls = [
        ("remember", json!({"text": "x".repeat(40_000)}), "max_text_bytes", 50_000),
        ("remember", json!({"text": "t", "key": key}), "max_path_bytes", 400),
        ("remember", json!({"text": "t", "metadata": metadata}), "max_metadata_bytes", 8_000),
        ("remember", json!({"text": "t", "tags": tags}), "max_tags", 50),
        ("recall", json!({"query": "t", "k": 80}), "max_top_k", 100),
        ("list", json!({"limit": 300}), "max_page", 400),
        ("forget", json!({"keys": keys}), "max_forget", 2_000),
    ];
    let mut server = start(&store, &[]);
    for (tool, arguments, limit, _) in &calls {
        let (code, message) = server.refusal(tool, arguments.clone());
        assert!(code == "too_large" || code == "invalid_argument", "{limit}: {message}");
    }
    server.close();
    let options: Vec<String> = calls
        .iter()
        .flat_map(|(_, _, limit, value)| [format!("--{}", limit.replace('_', "-")), value.to_string()])
        .chain(["--max-export-bytes", "200000", "--max-reply-bytes", "65536"].map(str::to_owned))
        .chain(["--max-concurrent", "3", "--max-pending", "77"].map(str::to_owned))
        .collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut server = start(&store, &options);
    for (tool, arguments, _, _) in &calls {
        server.call(tool, arguments.clone());
    }
    let stats = server.call("stats", json!({}));
    for (_, _, limit, value) in &calls {
        assert_eq!(stats["limits"][limit], *value, "{limit}");
    }
    assert_eq!(stats["limits"]["max_export_bytes"], 200_000);
    assert_eq!(stats["limits"]["max_reply_bytes"], 65_536);
    assert_eq!(stats["server"]["max_concurrent"], 3);
    assert_eq!(stats["server"]["max_pending"], 77);
}

#[test]
fn calls_over_the_pending_bound_are_busy_at_once_and_the_others_keep_their_order() {
    let (_dir, store) = home();
    let mut server = start(&store, &["--max-pending", "4"]);
    // A forget is given a thread of its own, so that the calls behind it wait.
    let ids: Vec<(i64, bool)> = (0..120)
        .map(|n| match n % 2 {
            0 => (server.send_call("remember", json!({"key": "k", "text": format!("number {n}")})), false),
            _ => (server.send_call("forget", json!({"keys": ["k"]})), true),
        })
        .collect();
    let (mut busy, mut last) = (0, None);
    for (number, (id, forgets)) in ids.into_iter().enumerate() {
        let result = server.reply(id)["result"].take();
        if result["isError"] == true {
            assert_eq!(result["structuredContent"]["code"], "busy");
            let message = result["structuredContent"]["message"].as_str().expect("a message");
            assert!(message.contains("Send it again"), "{message}");
            busy += 1;
        } else if forgets {
            assert_eq!(result["structuredContent"]["forgotten"], u64::from(last.is_some()), "call {number}");
            last = None;
        } else {
            assert_eq!(result["structuredContent"]["created"], last.is_none(), "call {number}");
            last = Some(format!("number {number}"));
        }
    }
    assert!(busy > 0, "120 calls at once are more than 4 that wait");
    match last {
        Some(text) => assert_eq!(server.call("get", json!({"key": "k"}))["text"], text),
        None => assert_eq!(server.refusal("get", json!({"key": "k"})).0, "not_found"),
    }
}

#[test]
fn filters_times_order_and_budgets_work_over_the_wire() {
    let (_dir, store) = home();
    let mut server = start(&store, &[]);
    for n in 0..12 {
        let team = if n % 3 == 0 { "ops" } else { "dev" };
        let metadata = json!({"team": team, "n": n, "source": {"page": n}});
        let text = format!("Release notes of build {n}. {}", "More words of it. ".repeat(30));
        server.call("remember", json!({"key": format!("k{n:02}"), "text": text, "metadata": metadata}));
    }
    let keys = |reply: &Value, list: &str| -> Vec<String> {
        let items = reply[list].as_array().expect("a list");
        items.iter().map(|item| item["key"].as_str().expect("a key").to_owned()).collect()
    };
    let filter = json!({"team": "ops", "source.page": {"gte": 3, "lt": 9}});
    let listed = server.call("list", json!({"filter": filter}));
    assert_eq!(keys(&listed, "memories"), ["k03", "k06"]);
    let found = server.call("recall", json!({"query": "release notes", "filter": filter, "k": 1}));
    assert_eq!(
        (&found["total"], &found["returned"], &found["truncated"]),
        (&json!(2), &json!(1), &json!(true))
    );
    let (code, message) = server.refusal("list", json!({"filter": {"or": [{"n": {"over": 1}}]}}));
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("filter.or[0].n.over"), "{message}");
    assert_eq!(server.refusal("recall", json!({"query": "q", "filter": []})).0, "invalid_argument");

    let now = server.call("get", json!({"key": "k11"}))["updated_at"].take();
    let since = server.call("list", json!({"since": now}));
    assert!(keys(&since, "memories").contains(&"k11".to_owned()));
    assert_eq!(server.call("list", json!({"until": "2020-01-01"}))["total"], 0);
    assert_eq!(server.refusal("list", json!({"since": "last week"})).0, "invalid_argument");

    server.call("remember", json!({"key": "k05", "text": "changed last"}));
    let recent = server.call("list", json!({"order": "recent", "limit": 3}));
    assert_eq!(keys(&recent, "memories")[0], "k05");
    assert!(recent["next_cursor"].is_string());
    let (code, message) = server.refusal("list", json!({"order": "newest"}));
    assert!(code == "invalid_argument" && message.contains("name, recent"), "{message}");

    for most in [10, 400] {
        let found = server.call("recall", json!({"query": "release notes", "max_chars": most}));
        let excerpts = found["results"].as_array().expect("results").iter();
        let chars: usize = excerpts.map(|hit| hit["excerpt"].as_str().expect("text").chars().count()).sum();
        assert!((1..=most).contains(&chars) && found["truncated"] == true, "{found}");
    }
}
