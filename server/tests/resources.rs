//! Memories as resources: what is listed, what is read, and what a server that offers less leaves out.

mod common;

use std::path::Path;

use common::{
    Server,
    http::{Http, Session},
    modern, warm_mcp,
};
use serde_json::{Value, json};

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn start(store: &Path, arguments: &[&str]) -> Server {
    Server::start_with(warm_mcp(store), |command| {
        command.args(arguments);
    })
}

fn fill(server: &mut Server) {
    server.memory(
        json!({"command": "create", "path": "/memories/notes/a b.md", "file_text": "# Tea\nGreen.\n"}),
    );
    server.call("remember", json!({"key": "naïve 50%?#", "title": "Odd", "text": "odd", "tags": ["x"]}));
}

fn error(reply: &Value) -> i64 {
    reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("it is refused: {reply}"))
}

fn uris(reply: &Value) -> Vec<String> {
    let resources = reply["result"]["resources"].as_array().unwrap_or_else(|| panic!("a page: {reply}"));
    resources.iter().map(|resource| resource["uri"].as_str().expect("a URI").to_owned()).collect()
}

#[test]
fn every_memory_is_listed_with_what_is_known_of_it_and_read_by_its_uri() {
    let dir = home();
    let mut server = start(dir.path(), &[]);
    fill(&mut server);
    let page = server.request("resources/list", json!({}));
    let found = uris(&page);
    assert_eq!(
        found,
        [
            "warm://stats",
            "warm://memory/%2Fmemories%2Fnotes%2Fa%20b.md",
            "warm://memory/na%C3%AFve%2050%25%3F%23"
        ]
    );
    let [_, file, odd] = &page["result"]["resources"].as_array().expect("resources")[..] else {
        panic!("three")
    };
    assert_eq!(
        (&file["name"], &file["mimeType"]),
        (&json!("/memories/notes/a b.md"), &json!("text/markdown"))
    );
    assert_eq!(
        (&file["size"], &odd["title"], &odd["mimeType"]),
        (&json!(13), &json!("Odd"), &json!("text/plain"))
    );
    let listed = server.call("list", json!({}))["memories"][1]["updated_at"].take();
    assert_eq!(odd["annotations"]["lastModified"], listed);
    for (uri, text, mime) in [
        (found[1].as_str(), "# Tea\nGreen.\n", "text/markdown"),
        ("warm://memory//memories/notes/a%20b.md", "# Tea\nGreen.\n", "text/markdown"),
        (found[2].as_str(), "odd", "text/plain"),
    ] {
        let read = server.request("resources/read", json!({"uri": uri}))["result"]["contents"][0].take();
        assert_eq!(read, json!({"uri": uri, "text": text, "mimeType": mime}));
    }
    let read =
        server.request("resources/read", json!({"uri": "warm://stats"}))["result"]["contents"][0].take();
    assert_eq!(read["mimeType"], "application/json");
    let figures: Value = serde_json::from_str(read["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!((&figures["memories"], &figures["server"]["read_only"]), (&json!(2), &json!(false)));
    let templates =
        server.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].take();
    assert_eq!(templates[0]["uriTemplate"], "warm://memory/{key}");
}

#[test]
fn pages_are_bounded_and_visit_each_memory_once() {
    let dir = home();
    let mut server = start(dir.path(), &["--max-page", "7"]);
    for n in 0..20 {
        server.send_call("remember", json!({"key": format!("k{n:02}"), "text": "t"}));
    }
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = server.request("resources/list", params);
        let found = uris(&page);
        assert!(!found.is_empty() && found.len() <= 8);
        all.extend(found);
        match page["result"]["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    let expected: Vec<_> = (0..20).map(|n| format!("warm://memory/k{n:02}")).collect();
    assert_eq!(all[0], "warm://stats");
    assert_eq!(all[1..], expected);
    assert_eq!(error(&server.request("resources/list", json!({"cursor": "?"}))), -32602);
}

#[test]
fn what_is_not_there_gets_the_number_of_the_revision_that_asks() {
    let dir = home();
    let mut server = start(dir.path(), &[]);
    let strange = [
        "warm://memory/nothing",
        "warm://other",
        "file:///etc/passwd",
        "warm://memory/",
        "warm://memory/%ff",
    ];
    for uri in strange {
        let refused = server.request("resources/read", json!({"uri": uri}));
        assert_eq!((error(&refused), &refused["error"]["data"]["uri"]), (-32002, &json!(uri)));
        assert_eq!(error(&server.request("resources/read", modern(json!({"uri": uri})))), -32602, "{uri}");
    }
    for uri in ["warm://memory/%2Fmemories%2F..%2Fx", "warm://memory/k?namespace=other"] {
        assert_eq!(error(&server.request("resources/read", json!({"uri": uri}))), -32602, "{uri}");
    }
    assert_eq!(error(&server.request("resources/read", json!({"uri": 5}))), -32602);
}

#[test]
fn a_read_sees_the_write_that_was_sent_before_it() {
    let dir = home();
    let mut server = start(dir.path(), &[]);
    for n in 0..20 {
        let text = format!("text {n}");
        server.send_call("remember", json!({"key": "k", "text": text}));
        let read = server.request("resources/read", json!({"uri": "warm://memory/k"}));
        assert_eq!(read["result"]["contents"][0]["text"], text.as_str());
    }
}

#[test]
fn a_resource_is_there_only_if_the_tool_that_tells_the_same_is_offered() {
    let dir = home();
    let mut server = start(dir.path(), &[]);
    fill(&mut server);
    server.close();
    let memory = json!({"uri": "warm://memory/na%C3%AFve%2050%25%3F%23"});

    let mut server = start(dir.path(), &["--tools", "remember,stats"]);
    assert_eq!(uris(&server.request("resources/list", json!({}))), ["warm://stats"]);
    assert_eq!(error(&server.request("resources/read", memory.clone())), -32002);
    assert_eq!(
        server.request("resources/templates/list", json!({}))["result"]["resourceTemplates"],
        json!([])
    );
    server.close();

    let mut server = Server::spawn({
        let mut command = warm_mcp(dir.path());
        command.args(["--tools", "recall"]);
        command
    });
    assert_eq!(server.initialize("2025-11-25")["result"]["capabilities"]["resources"], Value::Null);
    server.close();

    let mut server = start(dir.path(), &["--read-only"]);
    assert_eq!(uris(&server.request("resources/list", json!({}))).len(), 3);
    assert_eq!(server.request("resources/read", memory)["result"]["contents"][0]["text"], "odd");
}

#[test]
fn a_namespace_is_named_only_where_calls_may_name_one() {
    let dir = home();
    let mut server = start(dir.path(), &["--namespace-arg"]);
    server.call("remember", json!({"key": "k", "text": "theirs", "namespace": "team"}));
    let templates =
        server.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].take();
    let templates: Vec<_> =
        templates.as_array().expect("templates").iter().map(|one| &one["uriTemplate"]).collect();
    assert_eq!(templates, ["warm://memory/{key}", "warm://memory/{key}{?namespace}"]);
    let mut read = |uri: &str| server.request("resources/read", json!({"uri": uri}));
    assert_eq!(read("warm://memory/k?namespace=team")["result"]["contents"][0]["text"], "theirs");
    assert_eq!(error(&read("warm://memory/k")), -32002);
    let figures = read("warm://stats?namespace=team")["result"]["contents"][0]["text"].take();
    assert!(figures.as_str().is_some_and(|text| text.contains("\"namespace\":\"team\"")), "{figures}");
}

#[test]
fn over_http_they_are_the_same_in_a_session_and_without_one() {
    let dir = home();
    let http = Http::start(dir.path());
    let mut session = Session::open(&http, None);
    session.call("remember", json!({"key": "k", "text": "kept"}));
    assert_eq!(
        uris(&session.send("resources/list", &json!({})).message()),
        ["warm://stats", "warm://memory/k"]
    );
    let read = json!({"uri": "warm://memory/k"});
    assert_eq!(session.send("resources/read", &read).message()["result"]["contents"][0]["text"], "kept");
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "resources/read"),
        ("Mcp-Name", "warm://memory/k"),
    ];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": modern(read)});
    let answer = http.post(&headers, &message).message();
    assert_eq!(answer["result"]["contents"][0]["text"], "kept");
    assert_eq!(answer["result"]["cacheScope"], "private");
}
