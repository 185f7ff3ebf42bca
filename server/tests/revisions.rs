//! Every revision of the protocol, over stdin and stdout and over HTTP, for clients that keep to one and for those that
//! mix them.

mod common;

use common::{
    Server,
    http::{Answer, Http, Session},
    modern, opening, warm_mcp,
};
use serde_json::{Value, json};

const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const NO_HANDSHAKE: [&str; 3] = ["2026-07-28", "1999-01-01", "2999-01-01"];

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn error(reply: &Value) -> i64 {
    reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("it is refused: {reply}"))
}

fn negotiated(reply: &Value) -> &str {
    reply["result"]["protocolVersion"].as_str().unwrap_or_else(|| panic!("a success: {reply}"))
}

fn post(http: &Http, headers: &[(&str, &str)], method: &str, params: &Value) -> Answer {
    http.post(headers, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

/// A request in the form of 2026-07-28, with the headers that it needs.
fn post_modern(http: &Http, method: &str, name: Option<&str>, params: Value) -> Answer {
    let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    post(http, &headers, method, &modern(params))
}

#[test]
fn a_discover_answers_and_an_initialize_of_any_revision_after_it_works_on_the_same_pipe() {
    for revision in HANDSHAKES.into_iter().chain(NO_HANDSHAKE) {
        let dir = home();
        let mut server = Server::spawn(warm_mcp(dir.path()));
        let supported =
            server.request("server/discover", modern(json!({})))["result"]["supportedVersions"].take();
        assert!(supported.as_array().is_some_and(|all| all.len() == 5), "{supported}");
        let reply = server.initialize(revision);
        let expected = if HANDSHAKES.contains(&revision) { revision } else { "2025-11-25" };
        assert_eq!(negotiated(&reply), expected);
        assert_eq!(server.call("stats", json!({}))["memories"], 0);
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn a_client_that_goes_from_one_form_to_the_other_and_back_is_served_in_each() {
    let dir = home();
    let mut server = Server::spawn(warm_mcp(dir.path()));
    let remember = json!({"name": "remember", "arguments": {"key": "k", "text": "kept"}});
    assert_eq!(server.request("tools/call", modern(remember))["result"]["resultType"], "complete");
    assert_eq!(negotiated(&server.initialize("2025-06-18")), "2025-06-18");
    let mut get = || server.request("tools/call", json!({"name": "get", "arguments": {"key": "k"}}));
    let got = get();
    assert_eq!(got["result"]["structuredContent"]["text"], "kept");
    assert_eq!(got["result"]["resultType"], Value::Null);
    assert_eq!(server.request("tools/list", modern(json!({})))["result"]["resultType"], "complete");
    assert_eq!(server.request("server/discover", modern(json!({})))["result"]["resultType"], "complete");
    assert_eq!(negotiated(&server.initialize("2024-11-05")), "2024-11-05");
    assert_eq!(server.call("get", json!({"key": "k"}))["text"], "kept");
}

#[test]
fn what_2026_07_28_left_out_is_kept_only_for_those_who_opened_an_older_session() {
    let dir = home();
    let mut server = Server::spawn(warm_mcp(dir.path()));
    for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let reply = server.request(method, modern(json!({"uri": "warm://stats", "level": "info"})));
        assert_eq!(error(&reply), -32601, "{method}");
    }
    let http = Http::start(dir.path());
    for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let name = method.starts_with("resources/").then_some("warm://stats");
        let answer = post_modern(&http, method, name, json!({"uri": "warm://stats", "level": "info"}));
        assert_eq!((answer.status, error(&answer.message())), (404, -32601), "{method}");
    }
    // However they are asked, and a handshake that is none too.
    for method in ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(error(&server.request(method, modern(json!({})))), -32601, "{method}");
        let answer = post_modern(&http, method, None, json!({}));
        assert_eq!((answer.status, error(&answer.message())), (404, -32601), "{method}");
    }
    server.initialize("2025-11-25");
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    assert_eq!(error(&server.request("subscriptions/listen", json!({"notifications": {}}))), -32601);
    assert_eq!(Session::open(&http, None).send("ping", &json!({})).message()["result"], json!({}));
}

#[test]
fn a_request_of_no_revision_or_an_unknown_one_gets_the_code_for_it_and_the_next_is_served() {
    let dir = home();
    let mut server = Server::spawn(warm_mcp(dir.path()));
    assert_eq!(error(&server.request("tools/list", json!({}))), -32602);
    assert_eq!(error(&server.request("server/discover", json!({}))), -32602);
    let mut incomplete = modern(json!({}));
    incomplete["_meta"]
        .as_object_mut()
        .expect("an object")
        .remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(error(&server.request("tools/list", incomplete.clone())), -32602);
    let mut unknown = modern(json!({}));
    unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    for method in ["tools/list", "server/discover"] {
        let reply = server.request(method, unknown.clone());
        assert_eq!(error(&reply), -32022);
        assert_eq!(reply["error"]["data"]["requested"], "2031-01-01");
        assert!(
            reply["error"]["data"]["supported"]
                .as_array()
                .is_some_and(|all| all.contains(&json!("2026-07-28")))
        );
    }
    assert_eq!(error(&server.request("initialize", json!({"protocolVersion": 5}))), -32602);
    assert!(server.request("tools/list", modern(json!({})))["result"]["tools"].is_array());

    let http = Http::start(dir.path());
    let version = |version| ("MCP-Protocol-Version", version);
    let list = ("Mcp-Method", "tools/list");
    for (headers, params, code) in [
        (vec![version("2031-01-01"), list], &unknown, -32022),
        (vec![version("2031-01-01")], &json!({}), -32022),
        (vec![version("2026-07-28"), list], &json!({}), -32602),
        (vec![version("2026-07-28"), list], &incomplete, -32602),
        (vec![], &modern(json!({})), -32020),
        (vec![version("2025-06-18"), list], &modern(json!({})), -32020),
        (vec![version("2026-07-28")], &modern(json!({})), -32020),
        (vec![version("2026-07-28"), ("Mcp-Method", "tools/call")], &modern(json!({})), -32020),
    ] {
        let answer = post(&http, &headers, "tools/list", params);
        assert_eq!((answer.status, error(&answer.message())), (400, code), "{headers:?} {params}");
    }
    let call = json!({"name": "stats", "arguments": {}});
    assert_eq!(error(&post_modern(&http, "tools/call", None, call.clone()).message()), -32020);
    assert_eq!(error(&post_modern(&http, "tools/call", Some("get"), call.clone()).message()), -32020);
    assert_eq!(post_modern(&http, "tools/call", Some("stats"), call).status, 200);
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    for (body, code) in [("{not json", -32700), (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600)] {
        let answer = http.ask("POST", "/mcp", &headers, body);
        assert_eq!((answer.status, error(&answer.message())), (400, code));
    }
}

#[test]
fn over_http_every_revision_with_a_handshake_is_echoed_and_any_other_gets_one_that_has() {
    let dir = home();
    let http = Http::start(dir.path());
    for revision in HANDSHAKES.into_iter().chain(NO_HANDSHAKE) {
        let expected = if HANDSHAKES.contains(&revision) { revision } else { "2025-11-25" };
        for headers in
            [vec![], vec![("MCP-Protocol-Version", revision)], vec![("MCP-Protocol-Version", "2026-07-28")]]
        {
            let answer = post(&http, &headers, "initialize", &opening(revision));
            assert_eq!(answer.status, 200, "{revision} {headers:?}: {}", answer.body);
            assert_eq!(negotiated(&answer.message()), expected);
            let session = answer.header("mcp-session-id").expect("a session").to_owned();
            let in_session = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", expected)];
            assert_eq!(post(&http, &in_session, "ping", &json!({})).message()["result"], json!({}));
        }
    }
    // A header that says that it is another method is not to be believed.
    let lies = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    assert_eq!(post(&http, &lies, "initialize", &opening("2025-11-25")).status, 400);
}

#[test]
fn over_http_a_client_may_discover_call_and_then_open_a_session_on_the_same_endpoint() {
    let dir = home();
    let http = Http::start(dir.path());
    let discovered = post_modern(&http, "server/discover", None, json!({}));
    assert_eq!(discovered.status, 200);
    let supported = discovered.message()["result"]["supportedVersions"].take();
    assert!(
        HANDSHAKES
            .iter()
            .all(|revision| supported.as_array().is_some_and(|all| all.contains(&json!(revision))))
    );
    let remember = json!({"name": "remember", "arguments": {"key": "k", "text": "kept"}});
    assert_eq!(
        post_modern(&http, "tools/call", Some("remember"), remember).message()["result"]["isError"],
        false
    );
    let mut session = Session::open(&http, None);
    assert_eq!(session.call("get", json!({"key": "k"}))["text"], "kept");
    // And one that has a session may go on asking in the other form.
    let id = session.headers.iter().find(|(name, _)| *name == "Mcp-Session-Id").expect("a session").1.clone();
    let headers = [
        ("Mcp-Session-Id", id.as_str()),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "server/discover"),
    ];
    assert_eq!(post(&http, &headers, "server/discover", &modern(json!({}))).status, 200);
    assert_eq!(session.call("get", json!({"key": "k"}))["text"], "kept");
}

#[test]
fn over_http_a_request_of_a_handshake_revision_needs_no_session() {
    let dir = home();
    let http = Http::start(dir.path());
    for headers in [vec![], vec![("MCP-Protocol-Version", "2025-06-18")]] {
        let call = json!({"name": "remember", "arguments": {"key": "k", "text": "kept"}});
        let answer = post(&http, &headers, "tools/call", &call);
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
        let mut message = answer.message();
        assert_eq!(message["result"]["isError"], false);
        assert_eq!(message["result"]["resultType"].take(), Value::Null);
        assert_eq!(post(&http, &headers, "ping", &json!({})).message()["result"], json!({}));
    }
    let unreadable = post(&http, &[], "initialize", &json!({"protocolVersion": 5}));
    assert_eq!(error(&unreadable.message()), -32602);
    // A session that is gone is still said to be.
    let gone = [("Mcp-Session-Id", "no-such-session"), ("MCP-Protocol-Version", "2025-06-18")];
    assert_eq!(post(&http, &gone, "ping", &json!({})).status, 404);
}

#[test]
fn the_log_is_told_to_a_client_of_a_handshake_revision_that_asks_for_it_and_to_no_other() {
    let dir = home();
    let owner = Server::start(dir.path());
    let mut asks = Server::spawn(warm_mcp(dir.path()));
    let discovered = asks.request("server/discover", modern(json!({})));
    assert_eq!(discovered["result"]["capabilities"]["logging"], Value::Null);
    assert_eq!(asks.initialize("2025-11-25")["result"]["capabilities"]["logging"], json!({}));
    let mut silent = Server::start(dir.path());
    assert_eq!(asks.request("logging/setLevel", json!({"level": "info"}))["result"], json!({}));
    assert_eq!(error(&asks.request("logging/setLevel", json!({"level": "loud"}))), -32602);
    owner.kill();
    let told = asks.notice("notifications/message");
    assert_eq!(told["params"]["level"], "info");
    assert!(told["params"]["logger"].as_str().is_some_and(|name| name.starts_with("warm_mcp")), "{told}");
    assert!(told["params"]["data"]["message"].is_string(), "{told}");
    assert_eq!(silent.call("stats", json!({}))["memories"], 0);
    assert!(silent.heard.is_empty(), "{:?}", silent.heard);
    // Over HTTP there is none to hear in without a session.
    let http = Http::start(dir.path());
    for (method, params) in [
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "warm://stats"})),
    ] {
        assert_eq!(error(&post(&http, &[], method, &params).message()), -32600);
        assert_eq!(Session::open(&http, None).send(method, &params).message()["result"], json!({}));
    }
}
