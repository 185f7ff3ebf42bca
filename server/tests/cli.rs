//! What a person reads: the demo, the doctor, help and errors.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use common::{Server, run, warm_mcp};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_warm-mcp");

/// Output with what differs from run to run replaced.
fn settled(text: &str, dir: &Path) -> String {
    text.replace(&dir.display().to_string(), "DIR").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn the_demo_plays_a_session_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    let store = dir.path().join("store");
    let output = warm_mcp(&store).arg("demo").env("TMPDIR", &temporary).output().expect("warm-mcp starts");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for said in [
        "File created successfully at: /memories/customers/acme.md",
        "The memory file has been edited.",
        "/memories/customers/acme.md (score ",
        "by email, never on Mondays",
        "Nothing: none of these words is in any file.",
        "No results.",
        "claude mcp add --scope user warm",
    ] {
        assert!(shown.contains(said), "{said}\n{shown}");
    }
    assert_eq!(shown.matches(" ms").count(), 9, "each step says how long it took\n{shown}");
    let widest = shown
        .lines()
        // Paths are as long as they are.
        .filter(|line| !line.contains(&temporary.display().to_string()) && !line.contains(PROGRAM))
        .map(|line| line.chars().count())
        .max();
    assert!(widest <= Some(80), "{shown}");
    assert!(!shown.contains('\x1b'), "no colour where there is no terminal");
    assert_eq!(fs::read_dir(&temporary).expect("it is there").count(), 0);
    assert!(!store.exists(), "the demo does not touch the user's store");
}

#[test]
fn the_doctor_says_that_nothing_is_set_up_yet_and_makes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let (code, stdout, stderr) = run(&store, &["doctor"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(
        settled(&stdout, dir.path()),
        "warm-mcp doctor\n\n\
         version     VERSION\n\
         data folder DIR/store\n\
         store       nothing is set up yet: it is made when a client first starts warm-mcp\n\n\
         Nothing is wrong.\n"
    );
    assert!(!store.exists());
}

#[test]
fn the_doctor_describes_a_healthy_store_and_makes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    server.call("remember", json!({"key": "k", "text": "marmalade"}));
    server.memory(json!({"command": "create", "path": "/memories/a.md", "file_text": "jam"}));
    server.close();
    let before = files(&store);
    let (code, stdout, stderr) = run(&store, &["doctor"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for said in [
        "identity    DIR/store/identity.txt\n            Keep a copy in a safe place: without it the memories are lost.\n",
        "store       namespace default: 2 memories (1 of them files), 12 bytes of text in ",
        "damaged     0\n",
        "opened with the identity\n",
        "recall      lexical, 2 passages, index ready\n",
        "device      cpu, ",
        "\nNothing is wrong.\n",
    ] {
        assert!(settled(&stdout, dir.path()).contains(said), "{said}\n{stdout}");
    }
    assert!(!stdout.contains("marmalade") && !stdout.contains("AGE-SECRET-KEY"));
    assert!(files(&store) == before, "not a byte is changed");

    let (code, stdout, _) = run(&store, &["doctor", "--namespace", "other"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("namespace other: nothing is stored yet"), "{stdout}");
    assert!(files(&store) == before, "not a byte is changed");
}

#[test]
fn the_doctor_asks_the_server_that_has_the_store_open() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    server.call("remember", json!({"text": "kept"}));
    let (code, stdout, _) = run(&store, &["doctor"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("a running warm-mcp, which was asked") && stdout.contains(" 1 memories"),
        "{stdout}"
    );
    assert_eq!(server.call("stats", json!({}))["memories"], 1);
}

#[cfg(unix)]
#[test]
fn the_doctor_names_what_others_may_read_and_how_to_close_it() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    Server::start(&store).close();
    let identity = store.join("identity.txt");
    fs::set_permissions(&identity, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let (code, stdout, _) = run(&store, &["doctor"]);
    assert_eq!(code, Some(1));
    let said = "One thing is wrong:\n\
                - DIR/store/identity.txt is open to other users of this machine (mode 644).\n  \
                Close it: chmod 600 DIR/store/identity.txt\n\n\
                To see how --repair would put things right, add it; it asks before it acts.\n";
    assert!(settled(&stdout, dir.path()).ends_with(said), "{stdout}");
}

#[test]
fn the_doctor_names_a_missing_identity() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    Server::start(&store).close();
    fs::rename(store.join("identity.txt"), dir.path().join("elsewhere")).expect("it is there");
    let (code, stdout, _) = run(&store, &["doctor"]);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("identity.txt is missing"), "{stdout}");
    let elsewhere = dir.path().join("elsewhere");
    let named = [Path::new("doctor"), Path::new("--identity"), &elsewhere];
    assert_eq!(run(&store, &named.map(Path::as_os_str)).0, Some(0));
}

#[test]
fn errors_say_what_happened_and_what_to_do_next() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let output = warm_mcp(dir.path())
        .env_remove("WARM_MCP_DATA_DIR")
        .env_remove("HOME")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("warm-mcp starts");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "warm-mcp: there is no folder to keep the store in, since HOME is not set.\n\
         Name one with --data-dir DIR or WARM_MCP_DATA_DIR.\n"
    );

    let (code, stdout, stderr) = run(dir.path(), &["--max-text-bytes", "0"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("--max-text-bytes") && stderr.contains("--help"), "{stderr}");

    let (code, _, stderr) = run(dir.path(), &["--data-dri", "x"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("'--data-dir'"), "{stderr}");

    let file = dir.path().join("file");
    fs::write(&file, "").expect("a file");
    let (code, _, stderr) = run(&file, &["--log", "off"]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("warm-mcp: ") && stderr.contains("file"), "{stderr}");
}

#[test]
fn help_names_every_option_with_its_variable() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (code, stdout, _) = run(dir.path(), &["--help"]);
    assert_eq!(code, Some(0));
    for option in
        ["data-dir", "identity", "passphrase-env", "max-text-bytes", "namespace", "namespace-arg", "log"]
    {
        let variable = format!("WARM_MCP_{}", option.to_uppercase().replace('-', "_"));
        assert!(stdout.contains(&format!("--{option}")) && stdout.contains(&variable), "{option}");
    }
}

/// `script` gives the server a terminal; it is part of every Linux distribution's base.
#[cfg(target_os = "linux")]
#[test]
fn started_at_a_terminal_it_says_how_to_connect_a_client_and_ends() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store").display().to_string();
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &format!("'{PROGRAM}'"), "/dev/null"])
        .env("WARM_MCP_DATA_DIR", &store)
        .output()
        .expect("script starts");
    let shown = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success(), "{shown}");
    for said in [
        "It is an MCP server",
        &format!("claude mcp add --scope user warm -- {PROGRAM} --data-dir {store}\n"),
        &json!({"mcpServers": {"warm": {"args": ["--data-dir", store], "command": PROGRAM}}}).to_string(),
        &format!("{PROGRAM} demo\n"),
        &format!("{PROGRAM} doctor --data-dir {store}\n"),
    ] {
        assert!(shown.contains(said), "{said}\n{shown}");
    }
    assert!(!dir.path().join("store").exists(), "looking makes nothing");
}

/// Every file below `dir`, with its bytes.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut ahead = vec![dir.to_owned()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                ahead.push(path)
            } else {
                let bytes = fs::read(&path).expect("a file");
                found.push((path, bytes))
            }
        }
    }
    found.sort();
    found
}
