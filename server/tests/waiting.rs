//! Calls that take long: what their clients hear meanwhile, and what becomes of those that are cancelled.

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
};

use common::{
    DEADLINE, Server,
    http::{Http, Session},
    owner, warm_mcp,
};
use serde_json::{Value, json};

const PROGRESS: &str = "notifications/progress";
const MEMORIES: usize = 200;

/// A store whose index takes a while to fill when it is opened, and whose memories take a while to read.
fn large() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let notes = dir.path().join("notes");
    std::fs::create_dir(&notes).expect("a folder");
    for n in 0..MEMORIES {
        let words: String = (0..120).map(|word| format!("word{} ", (n * 131 + word * 17) % 5_000)).collect();
        let text = format!("note {n} {words}\n{}\n", "x".repeat(20_000));
        std::fs::write(notes.join(format!("n{n:03}.md")), text).expect("a file");
    }
    owner(&store(&dir), &["import".as_ref(), notes.as_os_str()]);
    dir
}

fn store(dir: &tempfile::TempDir) -> std::path::PathBuf {
    dir.path().join("store")
}

fn send(server: &mut Server, tool: &str, arguments: Value, token: &str) -> i64 {
    server
        .send("tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}}))
}

/// Every notice of progress under a token, which must grow and come before the answer.
fn progress(server: &mut Server, id: i64, token: &str) -> Vec<f64> {
    let mut told = Vec::new();
    loop {
        let message = server.next();
        if message["id"] == id {
            assert_eq!(message["result"]["isError"], false, "{message}");
            return told;
        }
        assert_eq!(
            (&message["method"], &message["params"]["progressToken"]),
            (&json!(PROGRESS), &json!(token))
        );
        let done = message["params"]["progress"].as_f64().expect("a number");
        assert!(told.last().is_none_or(|last| done > *last), "{told:?} {done}");
        assert!(message["params"]["total"].as_f64().is_some_and(|total| total >= done));
        told.push(done);
    }
}

fn nothing_more(server: &mut Server) {
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    assert!(server.heard.is_empty(), "{:?}", server.heard);
}

fn start(store: &Path) -> Server {
    Server::start_with(warm_mcp(store), |command| {
        command.args(["--max-export-bytes", "60000000"]);
    })
}

#[test]
fn a_recall_that_waits_for_the_index_and_an_export_say_how_far_they_are_in_the_owner_and_in_a_guest() {
    let dir = large();
    let mut owner = start(&store(&dir));
    let mut guest = start(&store(&dir));
    let of_owner = send(&mut owner, "recall", json!({"query": "note 7"}), "mine");
    let of_guest = send(&mut guest, "recall", json!({"query": "note 7"}), "theirs");
    assert!(!progress(&mut owner, of_owner, "mine").is_empty());
    assert!(!progress(&mut guest, of_guest, "theirs").is_empty());
    for server in [&mut owner, &mut guest] {
        nothing_more(server);
        // One that nobody asked about, and one that is prompt, say nothing.
        server.call("recall", json!({"query": "note 8"}));
        let id = send(server, "recall", json!({"query": "note 9"}), "prompt");
        assert_eq!(progress(server, id, "prompt"), Vec::<f64>::new());
    }
    for (server, token) in [(&mut owner, "one"), (&mut guest, "two")] {
        let id = send(server, "export", json!({}), token);
        assert!(!progress(server, id, token).is_empty());
        nothing_more(server);
        let id = send(server, "export", json!({}), "cancelled");
        server.write(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
        // The next is served, so the one that was cancelled has ended; it is never answered.
        server.call("stats", json!({}));
        nothing_more(server);
    }
    for server in [guest, owner] {
        let ended = server.close();
        assert!(ended.status.success() && ended.unread.is_empty(), "{:?}", ended.unread);
    }
}

#[test]
fn a_cancelled_recall_lets_go_of_its_wait_and_a_cancelled_write_that_began_is_finished() {
    let dir = large();
    let mut owner = start(&store(&dir));
    let mut guest = start(&store(&dir));
    for server in [&mut owner, &mut guest] {
        let ids: Vec<_> = (0..5).map(|_| send(server, "recall", json!({"query": "note 7"}), "t")).collect();
        for id in ids {
            server.write(
                &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
            );
        }
    }
    for server in [&mut owner, &mut guest] {
        server.heard.clear();
        assert!(
            server.call("recall", json!({"query": "note 7"}))["total"]
                .as_u64()
                .is_some_and(|total| total > 0)
        );
    }
    for (server, prefix) in [(&mut guest, "/memories/n1"), (&mut owner, "/memories/n0")] {
        let id = send(server, "forget", json!({"prefix": prefix, "confirm": true}), "t");
        // It is at work once what was sent after it waits for it.
        let next = server.send_call("list", json!({"prefix": prefix}));
        server.write(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
        let left = server.reply(next)["result"]["structuredContent"]["total"].take();
        // Whole or not begun: the cancellation may have come before its turn.
        assert!(left == 0 || left == 100, "{left}");
    }
    let ended = guest.close();
    assert!(ended.status.success() && !ended.stderr.contains("not answered"), "{}", ended.stderr);
}

#[test]
fn over_http_progress_comes_on_the_stream_of_its_request_and_before_the_answer() {
    let dir = large();
    let mut command = warm_mcp(&store(&dir));
    command.args(["--max-export-bytes", "60000000"]);
    let http = Http::start_with(command);
    let session = Session::open(&http, None);
    let in_session: Vec<_> = session.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let modern =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "export")];
    let meta = json!({"progressToken": "t"});
    let params = json!({"name": "export", "arguments": {}, "_meta": meta});
    for (headers, params) in [(&in_session[..], params.clone()), (&modern[..], common::modern(params))] {
        let mut stream = TcpStream::connect(&http.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).to_string();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let lines = BufReader::new(stream).lines().map(|line| line.expect("it goes on in time"));
        // The answer is long and comes in pieces; the notices are short.
        let kinds: Vec<_> = lines
            .filter(|line| line.starts_with("data: {"))
            .map(|line| if line.contains(PROGRESS) { "progress" } else { "answer" })
            .collect();
        assert!(
            kinds.len() > 1 && kinds.iter().rposition(|kind| *kind == "progress") == Some(kinds.len() - 2)
        );
        assert_eq!(kinds.last(), Some(&"answer"));
    }
}
