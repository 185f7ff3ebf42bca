//! How the server starts and ends, and what it says on the way.

mod common;

use std::fs;

use common::{Server, damage_a_record, run, warm_mcp};
use serde_json::json;

#[cfg(unix)]
#[test]
fn signals_and_the_end_of_input_end_it_cleanly_with_every_write_answered() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for end in ["-TERM", "-INT", "end of input"] {
        let store = dir.path().join(end);
        let mut server = Server::start(&store);
        for number in 0..20 {
            server.send_call("remember", json!({"key": format!("k{number}"), "text": "kept"}));
        }
        // The last reply tells that all were read: replies come in the order of the calls.
        let stats = server.call("stats", json!({}));
        assert_eq!(stats["memories"], 20);
        server.send_call("remember", json!({"key": "last", "text": "kept"}));
        let ended = if end.starts_with('-') {
            server.signal(end);
            server.wait()
        } else {
            server.close()
        };
        assert_eq!(ended.status.code(), Some(0), "{end}: {}", ended.stderr);
        let answered = ended.unread.iter().any(|reply| reply["result"]["structuredContent"]["key"] == "last");
        let mut restarted = Server::start(&store);
        let memories = restarted.call("stats", json!({}))["memories"].as_u64();
        // A signal may overtake the last call, but an answer is a promise.
        assert!(memories == Some(21) || (memories == Some(20) && !answered && end.starts_with('-')));
    }
}

/// Node starts its children with sockets, not pipes, as stdin and stdout.
#[cfg(unix)]
#[test]
fn it_serves_and_ends_on_sockets_as_well() {
    use std::{
        io::{BufRead, BufReader, Write},
        os::{fd::OwnedFd, unix::net::UnixStream},
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    for end in ["signal", "end of input"] {
        let (input, theirs_in) = UnixStream::pair().expect("sockets");
        let (output, theirs_out) = UnixStream::pair().expect("sockets");
        let mut command = warm_mcp(&dir.path().join("store"));
        let mut child = command
            .stdin(OwnedFd::from(theirs_in))
            .stdout(OwnedFd::from(theirs_out))
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("warm-mcp starts");
        drop(command); // It holds the server's ends open.
        output.set_read_timeout(Some(common::DEADLINE)).expect("a socket");
        writeln!(&input, "{}", common::hello()).expect("the server reads");
        let mut reply = String::new();
        BufReader::new(&output).read_line(&mut reply).expect("a reply");
        assert!(reply.contains("\"protocolVersion\":\"2025-11-25\""), "{reply}");
        if end == "signal" {
            common::signal(child.id(), "-TERM");
        } else {
            drop(input);
        }
        assert_eq!(common::ended(&mut child).code(), Some(0), "{end}");
    }
}

/// A client that hangs must not keep the server from ending.
#[cfg(unix)]
#[test]
fn a_signal_ends_it_even_when_the_client_does_not_read() {
    use std::{io::Write, process::Stdio};
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut child = warm_mcp(&dir.path().join("store"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("warm-mcp starts");
    let mut input = child.stdin.take().expect("a pipe");
    writeln!(input, "{}", common::hello()).expect("the server reads");
    // The replies to this many lists are more than any pipe holds.
    for id in 2..60 {
        let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        writeln!(input, "{list}").expect("the server reads");
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    common::signal(child.id(), "-TERM");
    assert_eq!(common::ended(&mut child).code(), Some(0));
}

#[test]
fn a_client_that_goes_before_it_says_a_word_is_no_fault() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::spawn(warm_mcp(&dir.path().join("store")));
    let ended = server.close();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.unread.is_empty());
}

#[test]
fn the_first_start_says_once_where_the_key_is_and_what_losing_it_means() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let first = Server::start(&store).close().stderr;
    assert!(first.contains("identity.txt") && first.contains("without it the memories are lost"), "{first}");
    assert_eq!(Server::start(&store).close().stderr, "");
}

#[test]
fn first_starts_at_once_agree_on_one_identity() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = dir.path().join("store");
        let command = |namespace: &str| {
            let mut command = warm_mcp(&store);
            command.args(["--namespace", namespace]);
            command
        };
        let servers = ["a", "b", "c"].map(|namespace| Server::spawn(command(namespace)));
        let mut notices = 0;
        for (mut server, namespace) in servers.into_iter().zip(["a", "b", "c"]) {
            server.initialize("2025-11-25");
            server.call("remember", json!({"key": "k", "text": namespace}));
            notices += server.close().stderr.matches("made a new sealed store").count();
        }
        assert_eq!(notices, 1);
        for namespace in ["a", "b", "c"] {
            let mut server = Server::start_with(command(namespace), |_| {});
            assert_eq!(server.call("get", json!({"key": "k"}))["text"], namespace);
        }
    }
}

#[test]
fn a_record_that_does_not_open_is_named_on_stderr_and_the_others_are_served() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    for n in 0..100 {
        server.call("remember", json!({"key": format!("k{n}"), "text": format!("marmalade number {n}")}));
    }
    server.close();
    damage_a_record(&store);

    let mut server = Server::start_with(warm_mcp(&store), |command| {
        command.args(["--log", "trace"]).env("RUST_LOG", "trace");
    });
    let stats = server.call("stats", json!({}));
    assert_eq!((&stats["memories"], &stats["damaged_records"]), (&json!(99), &json!(1)));
    assert_eq!(server.call("recall", json!({"query": "marmalade"}))["total"], 99);
    let ended = server.close();
    assert!(
        ended.stderr.contains("can't be opened") && !ended.stderr.contains("marmalade"),
        "{}",
        ended.stderr
    );
    let (code, doctor, _) = run(&store, &["doctor"]);
    assert_eq!(code, Some(1));
    assert!(doctor.contains("its seal is broken; the other memories are served without it"), "{doctor}");
}

#[test]
fn stdout_carries_messages_alone_and_stderr_no_word_of_a_memory() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start_with(warm_mcp(&dir.path().join("store")), |command| {
        command.args(["--log", "trace"]).env("RUST_LOG", "trace");
    });
    let path = "/memories/folder-zebra/file-zebra.md";
    server.memory(json!({"command": "create", "path": path, "file_text": "text-zebra\nold-zebra\n"}));
    server.memory(
        json!({"command": "str_replace", "path": path, "old_str": "old-zebra", "new_str": "new-zebra"}),
    );
    server.memory(json!({"command": "view", "path": path}));
    server.call(
        "remember",
        json!({"key": "key-zebra", "text": "zebra", "tags": ["tag-zebra"], "metadata": {"m": "zebra"}}),
    );
    server.call("recall", json!({"query": "zebra text"}));
    server.refusal("get", json!({"key": "missing-zebra"}));
    server.refusal("recall", json!({"zebra": 1}));
    server.request("tools/call", json!({"name": "zebra"}));
    server.request("zebra/method", json!({"text": "zebra"}));
    server.write_line("zebra, which is no message");
    assert_eq!(server.next()["error"]["code"], -32700);
    server.call("forget", json!({"keys": ["key-zebra", path]}));
    let ended = server.close();
    assert!(ended.status.success());
    assert!(ended.stderr.contains("remember"), "the log is on: {}", ended.stderr);
    assert!(!ended.stderr.contains("zebra"), "{}", ended.stderr);
}

#[test]
fn a_client_that_speaks_no_mcp_gets_a_plain_error_that_does_not_quote_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::spawn(warm_mcp(&dir.path().join("store")));
    let reply = server.request("tools/call", json!({"name": "get", "arguments": {"key": "zebra"}}));
    assert!(reply["error"]["message"].is_string());
    assert!(server.initialize("2025-11-25")["result"].is_object());
    assert!(!server.close().stderr.contains("zebra"));
}

#[test]
fn a_data_folder_with_any_name_keeps_its_memories() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let long = "x".repeat(200);
    for name in ["with spaces", "\u{8a18}\u{61b6}", "\u{1f9e0} brain", "it's", &long] {
        let store = dir.path().join(name).join("deep");
        let mut server = Server::start(&store);
        server.call("remember", json!({"key": "k", "text": "marmalade"}));
        assert_eq!(server.call("recall", json!({"query": "marmalade"}))["returned"], 1, "{name}");
        assert!(server.close().status.success());
        let mut restarted = Server::start(&store);
        assert_eq!(restarted.call("recall", json!({"query": "marmalade"}))["returned"], 1, "{name}");
    }
}

#[test]
fn a_passphrase_opens_what_it_sealed_and_never_stands_in_an_argument() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let with = |value: Option<&str>| {
        let mut command = warm_mcp(&store);
        command.args(["--passphrase-env", "MY_PASSPHRASE"]).env_remove("MY_PASSPHRASE");
        if let Some(value) = value {
            command.env("MY_PASSPHRASE", value);
        }
        command
    };
    let mut server = Server::start_with(with(Some("correct horse")), |_| {});
    server.call("remember", json!({"key": "k", "text": "t"}));
    let stderr = server.close().stderr;
    assert!(stderr.contains("passphrase") && !stderr.contains("correct horse"), "{stderr}");

    let mut again = Server::start_with(with(Some("correct horse")), |_| {});
    assert_eq!(again.call("get", json!({"key": "k"}))["text"], "t");
    again.close();

    let wrong = Server::spawn(with(Some("battery staple"))).close();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(wrong.stderr.contains("wrong passphrase"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("battery"));

    let unset = Server::spawn(with(None)).close();
    assert_eq!(unset.status.code(), Some(1));
    assert!(unset.stderr.contains("MY_PASSPHRASE, which is not set"), "{}", unset.stderr);

    let (code, _, stderr) = run(&store, &["--passphrase", "x"]);
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn what_others_left_in_lock_files_holds_no_start_up() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    server.call("remember", json!({"key": "k", "text": "kept"}));
    server.close();
    let namespace =
        fs::read_dir(store.join("stores")).expect("stores").next().expect("one").expect("an entry");
    for left in [&b""[..], b"4194305\n", b"{\"pid\": 1}", &[0xff; 10_000]] {
        for lock in [namespace.path().join("lock"), store.join("keys/lock")] {
            fs::write(lock, left).expect("it is written");
        }
        let mut server = Server::start(&store);
        assert_eq!(server.call("get", json!({"key": "k"}))["text"], "kept");
        assert_eq!(server.close().stderr, "");
    }
}

#[test]
fn lost_keys_and_a_lost_format_file_name_the_way_back_and_it_leads_there() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    server.call("remember", json!({"key": "k", "text": "t"}));
    server.close();
    let backup = dir.path().join("b.age");
    let backup = backup.to_str().expect("UTF-8");
    assert_eq!(run(&store, &["backup", backup]).0, Some(0));
    let identity = store.join("identity.txt");
    let identity = identity.to_str().expect("UTF-8");
    for (n, lost) in ["FORMAT", "keys/recipients.age"].into_iter().enumerate() {
        fs::remove_file(store.join(lost)).expect("it is there");
        let ended = Server::spawn(warm_mcp(&store)).close();
        let way = ended.stderr.contains("empty --data-dir") && ended.stderr.contains("warm-mcp restore");
        assert!(ended.status.code() == Some(1) && way, "{}", ended.stderr);
        let fresh = dir.path().join(n.to_string());
        assert_eq!(run(&fresh, &["restore", backup, "--identity", identity]).0, Some(0));
        assert_eq!(run(&fresh, &["view", "k", "--identity", identity]).1, "t");
    }
}
