//! What the protocol asks of the server, whatever its tools do.

mod common;

use common::{Server, modern, warm_mcp};
use serde_json::json;

const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn spawn() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::spawn(warm_mcp(&dir.path().join("store")));
    (dir, server)
}

#[test]
fn every_revision_with_a_handshake_is_echoed() {
    for revision in HANDSHAKES {
        let (_dir, mut server) = spawn();
        let reply = server.initialize(revision);
        assert_eq!(reply["result"]["protocolVersion"], revision);
        assert_eq!(reply["result"]["serverInfo"]["name"], "warm-mcp");
        let instructions = reply["result"]["instructions"].as_str().expect("instructions");
        assert!(instructions.contains("recall") && instructions.len() < 1_000);
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
        assert_eq!(server.call("stats", json!({}))["memories"], 0);
    }
}

#[test]
fn a_revision_without_a_handshake_or_unknown_gets_a_supported_one() {
    for revision in ["1999-01-01", "2026-07-28", "2999-01-01", ""] {
        let (_dir, mut server) = spawn();
        let reply = server.initialize(revision);
        let answered = reply["result"]["protocolVersion"].as_str().expect("a success");
        assert!(HANDSHAKES.contains(&answered), "{revision}: {answered}");
        assert_eq!(server.call("stats", json!({}))["memories"], 0);
    }
}

#[test]
fn discover_answers_and_an_initialize_after_it_still_works() {
    let (_dir, mut server) = spawn();
    let reply = server.request("server/discover", modern(json!({})));
    let supported = reply["result"]["supportedVersions"].as_array().expect("a success");
    assert!(supported.contains(&json!("2026-07-28")));
    assert!(HANDSHAKES.iter().all(|revision| supported.contains(&json!(revision))));
    assert_eq!(server.initialize("2025-06-18")["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(server.call("stats", json!({}))["memories"], 0);
}

#[test]
fn requests_that_carry_their_revision_need_no_handshake() {
    let (_dir, mut server) = spawn();
    let list = server.request("tools/list", modern(json!({})));
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(8));
    assert_eq!(list["result"]["resultType"], "complete");
    let arguments = json!({"command": "create", "path": "/memories/a.txt", "file_text": "x\n"});
    let reply = server.request("tools/call", modern(json!({"name": "memory", "arguments": arguments})));
    assert_eq!(reply["result"]["isError"], false, "{reply}");
}

#[test]
fn the_tools_are_listed_with_schemas_and_hints_in_less_than_nine_kilobytes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start_with(warm_mcp(&dir.path().join("store")), |command| {
        command.arg("--namespace-arg");
    });
    let reply = server.request("tools/list", json!({}));
    assert!(reply.to_string().len() < 9_000);
    let tools = reply["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["memory", "remember", "recall", "get", "list", "forget", "export", "stats"]);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["namespace"]["type"], "string");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()));
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint} of {tool}");
        }
    }
}

#[test]
fn what_can_not_be_routed_is_an_error_of_the_protocol() {
    let (_dir, mut server) = spawn();
    server.initialize("2025-11-25");
    let unknown = server.request("tools/call", json!({"name": "nope", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    let shapeless = server.request("tools/call", json!({"name": 5}));
    assert_eq!(shapeless["error"]["code"], -32602);
    let listed = server.request("tools/call", json!({"name": "get", "arguments": ["a"]}));
    assert_eq!(listed["error"]["code"], -32602);
    let method = server.request("memory/read", json!({}));
    assert_eq!(method["error"]["code"], -32601);
}

#[test]
fn lines_that_are_no_messages_are_refused_and_the_session_goes_on() {
    let (_dir, mut server) = spawn();
    server.initialize("2025-11-25");
    server.write_line("{not json");
    assert_eq!(server.next()["error"]["code"], -32700);
    server.write_line(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    assert_eq!(server.next()["error"]["code"], -32700);
    server.write_line("[1, 2]");
    assert_eq!(server.next()["error"]["code"], -32600);
    server.write_line(r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#);
    let refused = server.next();
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &json!("x")));
    // A sender whose message can't be read is told by its id, wherever that stands.
    let nested = format!(r#"{{"params":{}{},"id":8}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for line in [r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"x":"half \ud800"}}"#, &nested] {
        server.write_line(line);
        let refused = server.next();
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &json!(8)));
    }
    // Neither an empty line nor a notification is ever answered.
    server.write_line("");
    server.write_line(r#"{"jsonrpc":"2.0","method":"notifications/strange","params":5}"#);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_request_whose_id_is_not_yet_answered_is_refused_and_not_served() {
    let (_dir, mut server) = spawn();
    server.initialize("2025-11-25");
    for n in 0..20 {
        server.write(&json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call",
            "params": {"name": "remember", "arguments": {"key": format!("k{n}"), "text": "x"}}}));
    }
    let answers: Vec<_> = (0..20).map(|_| server.next()).collect();
    assert!(answers.iter().all(|answer| answer["id"] == "same"));
    let served = answers.iter().filter(|answer| answer["result"].is_object()).count();
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
    assert_eq!(served + refused, 20);
    assert_eq!(server.call("stats", json!({}))["memories"], served);
}

#[test]
fn a_notification_before_the_handshake_does_not_end_the_session() {
    let (_dir, mut server) = spawn();
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(server.initialize("2025-11-25")["result"].is_object());
}

#[test]
fn a_message_that_is_too_long_is_refused_by_its_id_and_the_next_ping_succeeds() {
    let (_dir, mut server) = spawn();
    server.initialize("2025-11-25");
    let text = "x".repeat(17 * 1024 * 1024);
    // The id first, as most clients write it, and last, as the official Python client does.
    server.write_line(format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"remember","arguments":{{"text":"{text}"}}}}}}"#
    ));
    let first = server.next();
    assert_eq!((&first["id"], &first["error"]["code"]), (&json!(77), &json!(-32600)));
    server.write_line(format!(
        r#"{{"method":"tools/call","params":{{"name":"remember","arguments":{{"text":"{text}"}}}},"jsonrpc":"2.0","id":78}}"#
    ));
    assert_eq!(server.next()["id"], 78);
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_text_over_the_limit_is_refused_by_the_tool_and_the_next_ping_succeeds() {
    let (_dir, mut server) = spawn();
    server.initialize("2025-11-25");
    for bytes in [32 * 1024 + 1, 2 * 1024 * 1024] {
        let (code, _) = server.refusal("remember", json!({"text": "\u{1}".repeat(bytes)}));
        assert_eq!(code, "too_large");
    }
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
}
