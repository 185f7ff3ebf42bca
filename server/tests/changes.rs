//! Clients that listen hear what changes, whoever changes it, in the form of their revision.

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
};

use common::{
    DEADLINE, Server,
    http::{Http, Session},
    modern, warm_mcp,
};
use serde_json::{Value, json};

const LIST: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn remember(server: &mut Server, key: &str, text: &str) {
    server.call("remember", json!({"key": key, "text": text}));
}

/// What was heard by the time that a later change was, which is told after it.
fn heard_until(server: &mut Server, uri: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    loop {
        let position = |message: &Value| message["params"]["uri"] == uri;
        if let Some(at) = server.heard.iter().position(position) {
            heard.extend(server.heard.drain(..=at));
            heard.pop();
            return heard;
        }
        let message = server.next();
        server.heard.push(message);
    }
}

#[test]
fn a_session_hears_that_the_list_changed_when_a_memory_comes_or_goes_and_not_when_it_is_edited() {
    let dir = home();
    let mut server = Server::start(dir.path());
    remember(&mut server, "before", "it has no list yet that could be out of date");
    server.request("resources/list", json!({}));
    remember(&mut server, "a", "text");
    server.notice(LIST);
    remember(&mut server, "a", "edited");
    // Told together with what comes soon after, so a change of another kind is waited for.
    server.request("resources/subscribe", json!({"uri": "warm://memory/a"}));
    remember(&mut server, "a", "edited again");
    assert_eq!(server.notice(UPDATED)["params"]["uri"], "warm://memory/a");
    assert!(server.heard.iter().all(|message| message["method"] != LIST), "{:?}", server.heard);
    server.call("forget", json!({"key": "a"}));
    server.notice(LIST);
    assert_eq!(server.heard, Vec::<Value>::new());
}

#[test]
fn a_session_hears_of_what_it_subscribed_to_until_it_does_no_longer() {
    let dir = home();
    let mut server = Server::start(dir.path());
    // One that is not there yet can be waited for; so can the figures.
    for uri in ["warm://memory/later", "warm://memory//memories/a.md", "warm://memory/end"] {
        assert_eq!(server.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    }
    remember(&mut server, "other", "text");
    remember(&mut server, "later", "text");
    assert_eq!(server.notice(UPDATED)["params"]["uri"], "warm://memory/later");
    server.memory(json!({"command": "create", "path": "/memories/a.md", "file_text": "one\n"}));
    assert_eq!(server.notice(UPDATED)["params"]["uri"], "warm://memory//memories/a.md");
    server.memory(json!({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"}));
    assert_eq!(server.notice(UPDATED)["params"]["uri"], "warm://memory//memories/a.md");
    server.request("resources/unsubscribe", json!({"uri": "warm://memory/later"}));
    remember(&mut server, "later", "changed");
    remember(&mut server, "end", "changed");
    assert_eq!(heard_until(&mut server, "warm://memory/end"), Vec::<Value>::new());
    server.request("resources/subscribe", json!({"uri": "warm://stats"}));
    server.heard.clear();
    remember(&mut server, "other", "changed");
    assert_eq!(server.notice(UPDATED)["params"]["uri"], "warm://stats");
    let refused = server.request("resources/subscribe", json!({"uri": "warm://nothing"}));
    assert_eq!(refused["error"]["code"], -32002);
}

#[test]
fn a_stream_hears_what_it_asked_for_under_its_own_number_and_ends_with_the_input() {
    let dir = home();
    let mut server = Server::spawn(warm_mcp(dir.path()));
    let filter = json!({"resourcesListChanged": true, "toolsListChanged": true,
        "resourceSubscriptions": ["warm://memory/a", "warm://strange"]});
    let id = server.send("subscriptions/listen", modern(json!({"notifications": filter})));
    let accepted = server.notice("notifications/subscriptions/acknowledged");
    let expected = json!({"resourcesListChanged": true, "resourceSubscriptions": ["warm://memory/a"]});
    assert_eq!(accepted["params"]["notifications"], expected);
    let quiet = server.send(
        "subscriptions/listen",
        modern(json!({"notifications": {"resourceSubscriptions": ["warm://memory/b"]}})),
    );
    server.notice("notifications/subscriptions/acknowledged");
    let call = |text: &str| json!({"name": "remember", "arguments": {"key": "a", "text": text}});
    server.request("tools/call", modern(call("one")));
    for method in [LIST, UPDATED] {
        let notice = server.notice(method);
        assert_eq!(notice["params"]["_meta"][SUBSCRIPTION], id, "{notice}");
    }
    // One that is cancelled is not answered and hears nothing more.
    server
        .write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    server.request("tools/list", modern(json!({})));
    server.request("tools/call", modern(call("two")));
    let b = json!({"name": "remember", "arguments": {"key": "b", "text": "x"}});
    server.request("tools/call", modern(b));
    let heard = heard_until(&mut server, "warm://memory/b");
    assert_eq!(heard, Vec::<Value>::new());
    let ended = server.close();
    assert!(ended.status.success() && !ended.stderr.contains("not answered"), "{}", ended.stderr);
    let [answer] = &ended.unread[..] else { panic!("one answer: {:?}", ended.unread) };
    assert_eq!((&answer["id"], &answer["result"]["_meta"][SUBSCRIPTION]), (&json!(quiet), &json!(quiet)));
}

#[test]
fn what_other_processes_change_is_heard_by_the_owner_and_by_its_guests() {
    let dir = home();
    let mut owner = Server::start(dir.path());
    let mut guest = Server::start(dir.path());
    let mut other = Server::start(dir.path());
    for (listener, uri) in [(&mut owner, "warm://memory/a"), (&mut guest, "warm://memory/a")] {
        listener.request("resources/list", json!({}));
        listener.request("resources/subscribe", json!({"uri": uri}));
    }
    remember(&mut other, "a", "from a guest");
    assert_eq!(owner.notice(UPDATED)["params"]["uri"], "warm://memory/a");
    assert_eq!(guest.notice(UPDATED)["params"]["uri"], "warm://memory/a");
    guest.notice(LIST);
    remember(&mut owner, "a", "from the owner");
    assert_eq!(guest.notice(UPDATED)["params"]["uri"], "warm://memory/a");
    // With another owner comes news, since something may have been missed; and what follows is heard as before.
    owner.kill();
    guest.notice(UPDATED);
    guest.heard.clear();
    remember(&mut other, "a", "after the owner went");
    assert_eq!(guest.notice(UPDATED)["params"]["uri"], "warm://memory/a");
    assert!(guest.close().status.success());
}

#[test]
fn a_namespace_of_its_own_is_listened_to_by_its_name() {
    let dir = home();
    let mut server = Server::start_with(warm_mcp(dir.path()), |command| {
        command.arg("--namespace-arg");
    });
    let uri = "warm://memory/k?namespace=team";
    server.request("resources/list", json!({}));
    server.request("resources/subscribe", json!({"uri": uri}));
    remember(&mut server, "k", "ours");
    server.notice(LIST);
    for wrong in ["warm://stats?namespace=", "warm://stats?colour=red"] {
        assert!(server.request("resources/subscribe", json!({"uri": wrong}))["error"].is_object(), "{wrong}");
    }
    server.call("remember", json!({"key": "k", "text": "theirs", "namespace": "team"}));
    assert_eq!(server.notice(UPDATED)["params"]["uri"], uri);
    assert!(server.heard.iter().all(|message| message["method"] != LIST));
}

/// The messages of a stream of events, one by one.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(http: &Http, method: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut stream = TcpStream::connect(&http.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        Self(BufReader::new(stream))
    }

    /// `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("it goes on in time") == 0 {
                return None;
            }
            if line == "0\r\n" {
                return None;
            }
            let message = line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok());
            if message.is_some() {
                return message;
            }
        }
    }
}

fn listen(http: &Http, filter: &Value) -> Events {
    let params = modern(json!({"notifications": filter}));
    let body =
        json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}).to_string();
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "subscriptions/listen")];
    Events::open(http, "POST", &headers, &body)
}

#[test]
fn over_http_a_stream_hears_what_it_asked_for_and_a_session_what_it_subscribed_to() {
    let dir = home();
    let http = Http::start(dir.path());
    let filter = json!({"resourcesListChanged": true, "resourceSubscriptions": ["warm://memory/a"]});
    let mut stream = listen(&http, &filter);
    let accepted = stream.next().expect("it is acknowledged");
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(accepted["params"]["notifications"], filter);

    let mut session = Session::open(&http, None);
    let headers: Vec<_> = session.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut notices = Events::open(&http, "GET", &headers, "");
    session.send("resources/list", &json!({}));
    session.send("resources/subscribe", &json!({"uri": "warm://memory/a"}));
    // A process of its own makes the change.
    remember(&mut Server::start(dir.path()), "a", "text");
    for method in [LIST, UPDATED] {
        let notice = stream.next().expect("it goes on");
        assert_eq!(
            (&notice["method"], &notice["params"]["_meta"][SUBSCRIPTION]),
            (&json!(method), &json!(7))
        );
        let notice = notices.next().expect("it goes on");
        assert_eq!((&notice["method"], &notice["params"]["_meta"]), (&json!(method), &Value::Null));
    }
}

#[test]
fn many_may_listen_and_keep_no_request_from_being_served() {
    let dir = home();
    let http = Http::start(dir.path());
    // More than may be in progress at once.
    let mut streams: Vec<_> =
        (0..300).map(|_| listen(&http, &json!({"resourcesListChanged": true}))).collect();
    for stream in &mut streams {
        assert!(stream.next().is_some());
    }
    Session::open(&http, None).call("remember", json!({"key": "a", "text": "t"}));
    for stream in &mut streams {
        assert_eq!(stream.next().expect("it goes on")["method"], LIST);
    }
}

#[test]
fn more_namespaces_than_may_be_listened_to_are_refused_and_the_servers_own_is_heard_all_the_same() {
    let dir = home();
    let mut server = Server::start_with(warm_mcp(dir.path()), |command| {
        command.arg("--namespace-arg");
    });
    let of = |n: u64| format!("warm://memory/a?namespace=n{n}");
    for n in 0..256 {
        assert_eq!(server.request("resources/subscribe", json!({"uri": of(n)}))["result"], json!({}), "{n}");
    }
    let refused = server.request("resources/subscribe", json!({"uri": of(256)}));
    assert_eq!(refused["error"]["data"]["code"], "busy", "{refused}");
    // Of a stream the same are left out. What is listened to already is one more listener's to hear.
    let filter = json!({"resourceSubscriptions": [of(257), of(0), "warm://memory/a"]});
    server.send("subscriptions/listen", modern(json!({"notifications": filter})));
    let accepted = server.notice("notifications/subscriptions/acknowledged");
    let accepted = &accepted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*accepted, json!([of(0), "warm://memory/a"]));
    remember(&mut server, "a", "text");
    assert_eq!(server.notice(UPDATED)["params"]["uri"], "warm://memory/a");
}

#[cfg(unix)]
#[test]
fn over_http_a_stream_is_told_that_it_ends_when_the_server_does() {
    let dir = home();
    let mut http = Http::start(dir.path());
    let mut stream = listen(&http, &json!({"resourcesListChanged": true}));
    stream.next().expect("it is acknowledged");
    common::signal(http.child.id(), "-TERM");
    let last = stream.next().expect("an answer");
    assert_eq!((&last["id"], &last["result"]["_meta"][SUBSCRIPTION]), (&json!(7), &json!(7)));
    assert!(common::ended(&mut http.child).success());
}

#[test]
fn a_server_that_somebody_listened_to_ends_at_once() {
    fn ends_soon(mut server: Server, store: &Path) {
        server.request("resources/subscribe", json!({"uri": "warm://stats"}));
        assert!(server.close().status.success());
        // It closed the store: nothing is left in the way of the next.
        assert_eq!(Server::start(store).call("stats", json!({}))["memories"], 0);
    }
    let dir = home();
    ends_soon(Server::start(dir.path()), dir.path());
    let owner = Server::start(dir.path());
    ends_soon(Server::start(dir.path()), dir.path());
    assert!(owner.close().status.success());
}
