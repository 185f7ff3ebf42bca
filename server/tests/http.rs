//! The server over HTTP: the same tools for any number of clients, and nothing for those it does not know.

mod common;

use std::{
    io::{Read, Write},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use common::{
    DEADLINE, Server, ended,
    http::{Answer, Http, Session},
    run, signal, warm_mcp,
};
use serde_json::{Value, json};

const TOKEN: &str = "a token of more than sixteen characters"; // Spaces are refused; see below.
const GOOD_TOKEN: &str = "a-token-of-more-than-sixteen";

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn clients_over_http_and_on_stdin_share_one_memory() {
    let home = home();
    let http = Http::start(home.path());
    let (mut one, mut other) = (Session::open(&http, None), Session::open(&http, None));
    let mut window = Server::start(home.path());
    one.call("remember", json!({"key": "a", "text": "The boiler man comes on Tuesday."}));
    window.call("remember", json!({"key": "b", "text": "The plumber comes on Friday."}));
    assert_eq!(other.call("get", json!({"key": "b"}))["text"], "The plumber comes on Friday.");
    assert_eq!(other.call("recall", json!({"query": "boiler"}))["results"][0]["key"], "a");
    assert_eq!(window.call("list", json!({}))["total"], 2);
}

#[test]
fn a_session_that_is_ended_is_gone() {
    let home = home();
    let http = Http::start(home.path());
    let session = Session::open(&http, None);
    let headers: Vec<_> = session.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(http.status("DELETE", "/mcp", &headers), 204);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(http.post(&headers, &ping).status, 404);
}

#[test]
fn requests_without_a_session_are_served_in_the_current_revision() {
    let home = home();
    let http = Http::start(home.path());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let ask = |method: &str, name: Option<&str>, mut params: Value| {
        params["_meta"] = meta.clone();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        http.post(&headers, &message)
    };
    let discovered = ask("server/discover", None, json!({}));
    assert_eq!(discovered.status, 200, "{}", discovered.body);
    assert!(discovered.body.contains("2026-07-28"), "{}", discovered.body);
    assert_eq!(discovered.header("mcp-session-id"), None);
    let stored = ask(
        "tools/call",
        Some("remember"),
        json!({"name": "remember", "arguments": {"key": "k", "text": "kept"}}),
    );
    assert_eq!(stored.message()["result"]["isError"], false, "{}", stored.body);
    let got = ask("tools/call", Some("get"), json!({"name": "get", "arguments": {"key": "k"}}));
    assert_eq!(got.message()["result"]["structuredContent"]["text"], "kept");
    // One that asked first and opens a session then gets one.
    let mut session = Session::open(&http, None);
    assert_eq!(session.call("get", json!({"key": "k"}))["text"], "kept");
}

#[test]
fn hosts_and_origins_that_are_not_known_get_nothing_on_any_route() {
    let home = home();
    let mut command = warm_mcp(home.path());
    command.args(["--allow-host", "memory.example", "--allow-origin", "https://app.example"]);
    let http = Http::start_with(command);
    for path in ["/mcp", "/health", "/ready", "/", "/other"] {
        for method in ["GET", "POST"] {
            let refused = |headers: &[(&str, &str)]| http.status(method, path, headers);
            assert_eq!(refused(&[("Host", "evil.example")]), 403, "{method} {path}");
            assert_eq!(refused(&[("Origin", "http://evil.example")]), 403, "{method} {path}");
            assert_eq!(refused(&[("Origin", "null")]), 403, "{method} {path}");
        }
    }
    let port = http.address.rsplit_once(':').expect("a port").1.to_owned();
    for (host, origin) in [
        (format!("localhost:{port}"), format!("http://localhost:{port}")),
        (format!("127.0.0.1:{port}"), "http://127.0.0.1:5173".into()),
        ("memory.example".into(), "https://app.example".into()),
    ] {
        assert_eq!(
            http.status("GET", "/health", &[("Host", &host), ("Origin", &origin)]),
            200,
            "{host} {origin}"
        );
    }
}

#[test]
fn a_token_that_is_set_is_demanded_of_everyone_who_asks_for_memories() {
    let home = home();
    let mut command = warm_mcp(home.path());
    command.env("WARM_MCP_TOKEN", GOOD_TOKEN);
    let http = Http::start_with(command);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for wrong in [None, Some("Bearer wrong-token-of-enough-letters"), Some("Basic YTpi"), Some(GOOD_TOKEN)] {
        let headers: Vec<_> = wrong.map(|value| ("Authorization", value)).into_iter().collect();
        let answer = http.post(&headers, &ping);
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
    }
    assert_eq!(http.status("GET", "/health", &[]), 200);
    assert_eq!(http.status("GET", "/ready", &[]), 200);
    Session::open(&http, Some(GOOD_TOKEN)).call("remember", json!({"text": "x"}));
}

#[test]
fn what_would_not_be_safe_does_not_start_and_says_what_to_do() {
    let home = home();
    let start = |bind: &str, token: Option<&str>, more: &[&str]| {
        let mut command = warm_mcp(home.path());
        command.args(["--transport", "http", "--bind", bind]).args(more).stdin(Stdio::null());
        if let Some(token) = token {
            command.env("WARM_MCP_TOKEN", token);
        }
        let output = command.output().expect("it ends");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(start("0.0.0.0:0", Some(GOOD_TOKEN), &[]).contains("--allow-remote"));
    assert!(start("0.0.0.0:0", None, &["--allow-remote"]).contains("WARM_MCP_TOKEN"));
    let refused = start("127.0.0.1:0", Some(TOKEN), &[]);
    assert!(refused.contains("16 characters") && !refused.contains(TOKEN), "{refused}");
    let taken = Http::start(home.path());
    assert!(start(&taken.address, None, &[]).contains("--bind"));
    let (code, _, _) = run(home.path(), &["--transport", "http", "--bind", "nowhere"]);
    assert_eq!(code, Some(2));
}

#[test]
fn what_is_not_there_or_too_much_is_answered_as_such_and_the_next_request_is_served() {
    let home = home();
    let http = Http::start(home.path());
    assert_eq!(http.status("GET", "/nothing", &[]), 404);
    assert_eq!(http.status("POST", "/health", &[]), 405);
    assert_eq!(http.status("HEAD", "/health", &[]), 200);
    let json = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let mut stream = http.connect();
    let huge =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100000000\r\n\r\n";
    stream.write_all(huge.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(Answer::of(&answer).status, 413);
    let long_header = "x".repeat(100_000);
    assert!(matches!(http.status("GET", "/health", &[("X-Long", &long_header)]), 431 | 400 | 0));
    assert!((400..500).contains(&http.ask("POST", "/mcp", &json, "{not json").status));
    assert_eq!(http.status("GET", "/ready", &[]), 200);
}

#[test]
fn a_client_that_says_nothing_is_sent_away_and_others_are_served_meanwhile() {
    let home = home();
    let http = Http::start(home.path());
    let mut silent: Vec<_> = (0..50).map(|_| http.connect()).collect();
    for stream in &mut silent {
        stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n").expect("it reads");
    }
    Session::open(&http, None).call("remember", json!({"text": "x"}));
    let mut first = silent.remove(0);
    let started = Instant::now();
    let _ = first.read(&mut [0; 64]);
    assert!(started.elapsed() < DEADLINE);
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_answers_what_is_in_progress_and_ends() {
    let home = home();
    let mut http = Http::start(home.path());
    let waiting = http.connect();
    let session = Session::open(&http, None);
    let headers: Vec<_> =
        session.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "remember", "arguments": {"key": "last", "text": "kept"}}})
    .to_string();
    let mut stream = http.connect();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{}Content-Length: {}\r\n\r\n{body}",
        headers.concat(),
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    thread::sleep(Duration::from_millis(50));
    signal(http.child.id(), "-TERM");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(Answer::of(&answer).message()["result"]["isError"] == false);
    assert!(ended(&mut http.child).success());
    drop(waiting);
    assert_eq!(Server::start(home.path()).call("get", json!({"key": "last"}))["text"], "kept");
}

#[test]
fn many_clients_at_once_are_all_answered() {
    let home = home();
    let http = Http::start(home.path());
    thread::scope(|scope| {
        for client in 0..24 {
            let http = &http;
            scope.spawn(move || {
                let mut session = Session::open(http, None);
                for n in 0..10 {
                    session.call("remember", json!({"key": format!("{client}-{n}"), "text": "some text"}));
                    assert_eq!(
                        session.call("get", json!({"key": format!("{client}-{n}")}))["text"],
                        "some text"
                    );
                }
            });
        }
    });
    assert_eq!(Session::open(&http, None).call("list", json!({"limit": 1}))["total"], 240);
}
