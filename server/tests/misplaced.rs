//! Options where they mean nothing: typed, they are errors; from the environment, a server says that they are
//! without effect.

mod common;

use common::{Server, finish, names, run, warm_mcp};

#[test]
fn an_option_that_means_nothing_where_it_was_typed_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    for (line, option) in [
        (&["--bind", "127.0.0.1:0"][..], "--bind"),
        (&["--allow-host", "memory.example"], "--allow-host"),
        (&["--allow-origin", "https://example.com"], "--allow-origin"),
        (&["--allow-remote"], "--allow-remote"),
        (&["list", "--namespace-arg"], "--namespace-arg"),
        (&["list", "--transport", "http"], "--transport"),
        (&["--bind", "127.0.0.1:0", "doctor"], "--bind"),
        (&["--tools", "recall", "list"], "--tools"),
        (&["--tools", ""], "--tools"),
        (&["list", "--max-open-namespaces", "3"], "--max-open-namespaces"),
    ] {
        let (code, stdout, stderr) = run(&store, line);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{line:?}");
        assert!(stderr.contains(option), "{line:?}: {stderr}");
    }
    assert!(names(dir.path()).is_empty(), "nothing was made");
}

#[test]
fn the_environment_is_for_all_that_is_started_there() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = warm_mcp(&store);
    server.env("WARM_MCP_BIND", "127.0.0.1:0").env("WARM_MCP_ALLOW_HOST", "memory.example");
    let stderr = Server::start_with(server, |_| {}).close().stderr;
    assert!(stderr.contains("WARM_MCP_BIND, WARM_MCP_ALLOW_HOST are without effect"), "{stderr}");
    // What a form leaves empty was not chosen.
    let mut server = warm_mcp(&store);
    for name in ["BIND", "TRANSPORT", "ALLOW_HOST", "ALLOW_REMOTE", "TOOLS", "NAMESPACE_STRATEGY", "PROJECT"]
    {
        server.env(format!("WARM_MCP_{name}"), "");
    }
    let stderr = Server::start_with(server, |_| {}).close().stderr;
    assert_eq!(stderr, "");
    let mut command = warm_mcp(&store);
    command.arg("list").env("WARM_MCP_NAMESPACE_ARG", "1").env("WARM_MCP_BIND", "127.0.0.1:0");
    let (code, _, stderr) = finish(&mut command);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
}

#[test]
fn an_address_that_is_taken_is_found_out_before_a_store_is_made() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, _, stderr) = run(&dir.path().join("store"), &["--transport", "http", "--bind", &address]);
    assert!(code == Some(1) && stderr.contains(&address) && stderr.contains("--bind"), "{stderr}");
    assert!(names(dir.path()).is_empty(), "nothing was made");
}

#[test]
fn a_short_passphrase_makes_no_store() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut command = warm_mcp(&dir.path().join("store"));
    command.args(["--passphrase-env", "SECRET"]).env("SECRET", "x");
    let (code, _, stderr) = finish(&mut command);
    assert!(code == Some(1) && stderr.contains("too short") && stderr.contains("8 characters"), "{stderr}");
    assert!(names(dir.path()).is_empty(), "nothing was made");
}
