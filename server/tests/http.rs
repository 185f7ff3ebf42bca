//! The server over HTTP: the same tools for any number of clients, and nothing for those it does not know.

mod common;

use std::{
    io::{self, Read, Write},
    process::{Command, Stdio},
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
fn a_client_that_says_nothing_or_not_enough_is_sent_away_and_others_are_served_meanwhile() {
    let home = home();
    let http = Http::start(home.path());
    let beginnings: [&[u8]; 4] =
        [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n", b"PRI * HT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
    let silent = beginnings.map(|beginning| {
        let crowd: Vec<_> = (0..25).map(|_| http.connect()).collect();
        for mut stream in &crowd {
            // One that is no HTTP/1.1 may be sent away before it is through.
            let _ = stream.write_all(beginning);
        }
        crowd
    });
    Session::open(&http, None).call("remember", json!({"text": "x"}));
    for mut stream in silent.into_iter().flatten() {
        let ended = stream.read_to_end(&mut Vec::new());
        let waited =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        assert!(!ended.is_err_and(|error| waited(&error)), "it is still there");
    }
}

#[test]
fn a_body_in_chunks_that_is_too_long_is_refused_as_soon_as_it_is() {
    let home = home();
    let http = Http::start(home.path());
    let mut stream = http.connect();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it reads");
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    // Without an end: it takes 16 MiB.
    for _ in 0..300 {
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).expect("an answer");
    assert_eq!(Answer::of(&answer[..read]).status, 413);
    assert_eq!(http.status("GET", "/ready", &[]), 200);
}

#[test]
fn few_bodies_of_unknown_length_are_read_at_once_and_short_ones_beside_them() {
    let home = home();
    let http = Http::start(home.path());
    let hello = common::hello().to_string();
    let chunked = |body: &str| {
        let mut stream = http.connect();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    };
    let whole = format!("{:x}\r\n{hello}\r\n0\r\n\r\n", hello.len());
    let slow: Vec<_> = (0..8).map(|_| chunked("1\r\n \r\n")).collect();
    // They are read once their first bytes are.
    thread::sleep(Duration::from_millis(100));
    let mut waiting = chunked(&whole);
    waiting.set_read_timeout(Some(Duration::from_millis(200))).expect("a time-out");
    assert!(waiting.read(&mut [0; 64]).is_err(), "it is answered while as many are read as may be");
    Session::open(&http, None).call("remember", json!({"text": "x"}));
    drop(slow);
    waiting.set_read_timeout(Some(DEADLINE)).expect("a time-out");
    let mut answer = Vec::new();
    waiting.read_to_end(&mut answer).expect("an answer");
    assert_eq!(Answer::of(&answer).status, 200);
}

#[test]
fn requests_sent_at_once_on_one_connection_are_answered_in_their_order() {
    let home = home();
    let http = Http::start(home.path());
    let mut stream = http.connect();
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let all = [get("/health", ""), get("/nothing", ""), get("/ready", "Connection: close\r\n")].concat();
    stream.write_all(all.as_bytes()).expect("it reads");
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("answers");
    let statuses: Vec<_> = answers.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    assert_eq!(statuses, ["HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK"]);
}

#[test]
fn sessions_that_nobody_ends_make_way_for_new_ones_and_the_one_in_use_stays() {
    let home = home();
    let http = Http::start(home.path());
    let (mut used, left) = (Session::open(&http, None), Session::open(&http, None));
    let hello = common::hello();
    for n in 0..1_050 {
        assert_eq!(http.post(&[], &hello).status, 200);
        if n % 100 == 0 {
            used.send("ping", &json!({}));
        }
    }
    used.call("remember", json!({"text": "still here"}));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(left.post(&ping).status, 404);
    assert_eq!(Session::open(&http, None).call("list", json!({}))["total"], 1);
}

#[test]
fn streams_that_wait_for_notices_leave_room_for_requests() {
    let home = home();
    let http = Http::start(home.path());
    let sessions: Vec<_> = (0..20).map(|_| Session::open(&http, None)).collect();
    let mut open: Vec<_> = (0..512).map(|n| sessions[n % sessions.len()].listen()).collect();
    assert!(open.iter().all(|(status, _)| *status == 200));
    assert_eq!(sessions[0].listen().0, 503);
    Session::open(&http, None).call("remember", json!({"text": "x"}));
    open.pop();
    let started = Instant::now();
    while sessions[0].listen().0 != 200 {
        assert!(started.elapsed() < DEADLINE, "a stream that ended makes no room");
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn more_connections_than_files_are_open_by_default_are_served() {
    let home = home();
    let server = warm_mcp(home.path());
    // The same server, where few files may be open unless more are asked for.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 64; exec \"$0\" \"$@\""]).arg(server.get_program());
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let http = Http::start_with(command);
    let sessions: Vec<_> = (0..6).map(|_| Session::open(&http, None)).collect();
    let open: Vec<_> = (0..150).map(|n| sessions[n % sessions.len()].listen()).collect();
    assert!(open.iter().all(|(status, _)| *status == 200));
}

#[test]
fn a_session_that_ends_while_it_is_asked_is_answered_as_one_that_is_there_or_is_gone() {
    let home = home();
    let http = Http::start(home.path());
    for _ in 0..20 {
        let mut session = Session::open(&http, None);
        session.call("remember", json!({"key": "k", "text": "x"}));
        let headers: Vec<_> = session.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let call = |id: u64| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "get", "arguments": {"key": "k"}}})
        };
        let (headers, call) = (&headers, &call);
        let statuses: Vec<u16> = thread::scope(|scope| {
            let http = &http;
            let ask = |client: u64| {
                (0..5).map(|n| http.post(headers, &call(10 * client + n)).status).collect::<Vec<_>>()
            };
            let asking: Vec<_> = (1..4).map(|client| scope.spawn(move || ask(client))).collect();
            let end = || vec![http.status("DELETE", "/mcp", headers)];
            let ending: Vec<_> = (0..2).map(|_| scope.spawn(end)).collect();
            asking.into_iter().chain(ending).flat_map(|thread| thread.join().expect("it ends")).collect()
        });
        assert!(statuses.iter().all(|status| matches!(status, 200 | 204 | 404)), "{statuses:?}");
        assert_eq!(http.post(headers, &call(7)).status, 404);
    }
}

#[cfg(unix)]
#[test]
fn told_to_stop_in_the_middle_of_much_it_loses_nothing_that_it_answered() {
    let home = home();
    let mut http = Http::start(home.path());
    let child = http.child.id();
    let answered: Vec<String> = thread::scope(|scope| {
        let http = &http;
        let write = |client: usize| {
            let session = Session::open(http, None);
            let mut answered = Vec::new();
            for n in 0.. {
                let key = format!("{client}-{n}");
                let call = json!({"jsonrpc": "2.0", "id": n + 10, "method": "tools/call",
                    "params": {"name": "remember", "arguments": {"key": key, "text": "kept"}}});
                let headers: Vec<_> =
                    session.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let Ok(answer) = http.try_post(&headers, &call) else { break };
                if !answer.body.contains("\"isError\":false") {
                    break;
                }
                answered.push(key);
            }
            answered
        };
        let writers: Vec<_> = (0..8).map(|client| scope.spawn(move || write(client))).collect();
        thread::sleep(Duration::from_millis(300));
        signal(child, "-TERM");
        writers.into_iter().flat_map(|writer| writer.join().expect("it ends")).collect()
    });
    assert!(ended(&mut http.child).success());
    let mut after = Server::start(home.path());
    for key in &answered {
        assert_eq!(after.call("get", json!({"key": key}))["text"], "kept");
    }
    assert!(answered.len() > 8, "{} were answered", answered.len());
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

#[cfg(unix)]
#[test]
fn told_to_stop_with_nothing_in_progress_it_waits_for_nothing() {
    let home = home();
    let log = home.path().join("log");
    let mut command = warm_mcp(home.path());
    command.stderr(std::fs::File::create(&log).expect("a file"));
    let mut http = Http::start_logging(command);
    let _idle = Session::open(&http, None);
    signal(http.child.id(), "-TERM");
    assert!(ended(&mut http.child).success());
    let said = std::fs::read_to_string(&log).expect("a log");
    assert!(!said.contains("WARN"), "{said}");
}

#[test]
fn what_is_json_but_no_message_is_refused_as_json_with_its_id() {
    let home = home();
    let http = Http::start(home.path());
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    for (body, code, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}"#.to_owned(), -32600, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":5}}"#.into(),
            -32600,
            json!("a"),
        ),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.into(), -32600, Value::Null),
        (r#"{"id":7,"method":"ping"}"#.into(), -32600, json!(7)),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\ud800"}}"#.into(),
            -32700,
            json!(7),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":1e999}}"#.into(), -32700, json!(7)),
        (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{deep}}}"#), -32700, json!(7)),
        (
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"_meta":{deep}}}}}"#),
            -32700,
            json!(7),
        ),
        ("{not json".into(), -32700, Value::Null),
    ] {
        let headers =
            [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let answer = http.ask("POST", "/mcp", &headers, &body);
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{body}");
        let error = answer.message();
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &id), "{body}");
    }
    // One of another type is refused for that.
    let headers = [("Content-Type", "text/plain"), ("Accept", "application/json, text/event-stream")];
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    assert_eq!(http.ask("POST", "/mcp", &headers, ping).status, 415);
}

#[test]
fn requests_of_one_session_that_share_an_id_are_each_answered_or_refused() {
    let home = home();
    let http = Http::start(home.path());
    let session = Session::open(&http, None);
    let headers: Vec<_> = session.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let same = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": {"name": "remember", "arguments": {"text": "some text"}}});
    let served = thread::scope(|scope| {
        let ask = || {
            let answer = http.post(&headers, &same);
            match answer.status {
                200 => assert_eq!(answer.message()["result"]["isError"], false, "{}", answer.body),
                400 => assert_eq!(answer.message()["error"]["code"], -32600, "{}", answer.body),
                other => panic!("{other}: {}", answer.body),
            }
            answer.status == 200
        };
        let asked: Vec<_> = (0..20).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|asked| asked.join().expect("it is answered")).filter(|served| *served).count()
    });
    assert!(served > 0);
    // One that is answered gives its id free.
    assert_eq!(http.post(&headers, &same).message()["result"]["isError"], false);
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
