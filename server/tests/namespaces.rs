//! Namespaces through the real binary: what is in one is in no other, reading makes none, any number can be used,
//! and each project has its own.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use common::{DEADLINE, Server, finish, hello, names, owner, run, warm_mcp};
use serde_json::{Value, json};

fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    (dir, store)
}

fn with(store: &Path, arguments: &[&str]) -> Command {
    let mut command = warm_mcp(store);
    command.args(arguments);
    command
}

/// How many namespaces have something on disk.
fn stores(store: &Path) -> usize {
    names(&store.join("stores")).len()
}

/// A session of either transport.
trait Session {
    /// The result of a tool call, failed or not.
    fn outcome(&mut self, tool: &str, arguments: Value) -> Value;

    fn served(&mut self, tool: &str, arguments: Value) -> Value {
        let mut outcome = self.outcome(tool, arguments);
        assert_eq!(outcome["isError"], false, "{outcome}");
        outcome["structuredContent"].take()
    }

    fn refused(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let outcome = self.outcome(tool, arguments);
        assert_eq!(outcome["isError"], true, "{outcome}");
        let said = |name: &str| outcome["structuredContent"][name].as_str().expect("a string").to_owned();
        (said("code"), said("message"))
    }
}

impl Session for Server {
    fn outcome(&mut self, tool: &str, arguments: Value) -> Value {
        Server::outcome(self, tool, arguments)
    }
}

/// A session over HTTP with a server of its own.
struct Http {
    child: Child,
    address: String,
    session: Option<String>,
}

impl Http {
    fn start(store: &Path, arguments: &[&str]) -> Self {
        let mut command = with(store, &["--transport", "http", "--bind", "127.0.0.1:0"]);
        let command =
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        said.read_line(&mut line).expect("it says where it is");
        let address = line.trim().strip_prefix("warm-mcp listening on http://").expect("an address");
        let address = address.strip_suffix("/mcp").expect("an address").to_owned();
        let mut http = Self { child, address, session: None };
        let (headers, _) = http.post(&hello());
        let id = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.to_owned())
        };
        http.session = Some(headers.lines().find_map(id).expect("a session"));
        http.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        http
    }

    fn post(&self, message: &Value) -> (String, String) {
        let body = message.to_string();
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if let Some(session) = &self.session {
            request += &format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        stream.write_all((request + "\r\n" + &body).as_bytes()).expect("it is read");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (headers, body) = answer.split_once("\r\n\r\n").expect("headers and a body");
        (headers.to_owned(), body.to_owned())
    }
}

impl Session for Http {
    fn outcome(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let (_, body) =
            self.post(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
        let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut message = messages.find(|message| message["id"] == 7).unwrap_or_else(|| panic!("{body}"));
        message["result"].take()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Case 16: what exists only in one namespace can't be seen, changed or taken from another.
fn check_kept_apart(session: &mut dyn Session) {
    let text = "only in a\n";
    session.served(
        "memory",
        json!({"command": "create", "path": "/memories/a/f.md", "file_text": text, "namespace": "a"}),
    );
    session.served("remember", json!({"key": "k", "text": "only in a", "tags": ["t"], "namespace": "a"}));
    let commands = [
        json!({"command": "view", "path": "/memories/a/f.md"}),
        json!({"command": "view", "path": "/memories/a"}),
        json!({"command": "str_replace", "path": "/memories/a/f.md", "old_str": "only", "new_str": "not only"}),
        json!({"command": "insert", "path": "/memories/a/f.md", "insert_line": 0, "insert_text": "x"}),
        json!({"command": "delete", "path": "/memories/a/f.md"}),
        json!({"command": "delete", "path": "/memories/a"}),
        json!({"command": "rename", "old_path": "/memories/a/f.md", "new_path": "/memories/mine.md"}),
        json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/mine"}),
    ];
    // While b has no store, and once it has one; and from the default namespace.
    for made in [false, true] {
        if made {
            session.served("remember", json!({"key": "other", "text": "in b", "namespace": "b"}));
        }
        for namespace in [json!("b"), Value::Null] {
            for command in &commands {
                let mut command = command.clone();
                command["namespace"] = namespace.clone();
                assert_eq!(session.refused("memory", command.clone()).0, "not_found", "{command}");
            }
            for tool in ["get", "forget"] {
                let (code, _) = session.refused(tool, json!({"key": "k", "namespace": namespace}));
                assert_eq!(code, "not_found", "{tool}");
            }
            let forgotten = session
                .served("forget", json!({"prefix": "/memories/a", "confirm": true, "namespace": namespace}));
            assert_eq!(forgotten["forgotten"], 0);
            let found = session
                .served("recall", json!({"query": "only in a", "tags": ["t"], "namespace": namespace}));
            assert_eq!(found["total"], 0);
            assert_eq!(session.served("list", json!({"tag": "t", "namespace": namespace}))["total"], 0);
            let listed = session
                .served("memory", json!({"command": "view", "path": "/memories", "namespace": namespace}));
            assert!(!listed["result"].to_string().contains("f.md"), "{listed}");
        }
    }
    let viewed =
        session.served("memory", json!({"command": "view", "path": "/memories/a/f.md", "namespace": "a"}));
    assert!(viewed["result"].to_string().contains("only in a"), "{viewed}");
    assert_eq!(session.served("get", json!({"key": "k", "namespace": "a"}))["text"], "only in a");
    assert_eq!(session.served("list", json!({"namespace": "a"}))["total"], 2);
}

#[test]
fn what_exists_in_one_namespace_is_not_found_in_another_and_stays_as_it_was() {
    let (_dir, store) = home();
    check_kept_apart(&mut Server::start_with(with(&store, &["--namespace-arg"]), |_| {}));
    let (_dir, store) = home();
    check_kept_apart(&mut Http::start(&store, &["--namespace-arg"]));
}

/// What reads, and what changes only what is there.
fn without_a_first_write() -> [(&'static str, Value); 11] {
    [
        ("memory", json!({"command": "view", "path": "/memories"})),
        ("recall", json!({"query": "anything", "filter": {"n": {"gt": 1}}})),
        ("list", json!({"order": "recent"})),
        ("export", json!({})),
        ("export", json!({"format": "age"})),
        ("stats", json!({})),
        ("get", json!({"key": "k"})),
        ("forget", json!({"keys": ["k"]})),
        ("forget", json!({"prefix": "k", "confirm": true})),
        ("memory", json!({"command": "delete", "path": "/memories/a"})),
        ("memory", json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"})),
    ]
}

fn check_reading_makes_nothing(session: &mut dyn Session, store: &Path) {
    let mut answers = Vec::new();
    for (tool, mut arguments) in without_a_first_write() {
        arguments["namespace"] = json!("new");
        answers.push(session.outcome(tool, arguments));
    }
    assert_eq!(stores(store), 1, "only the default namespace has a store");
    assert_eq!(session.served("stats", json!({"namespace": "new"}))["memories"], 0);
    // An empty memory answers the same.
    session.served("remember", json!({"key": "k", "text": "t", "namespace": "new"}));
    session.served("forget", json!({"key": "k", "namespace": "new"}));
    assert_eq!(stores(store), 2);
    for ((tool, mut arguments), before) in without_a_first_write().into_iter().zip(answers) {
        arguments["namespace"] = json!("new");
        let sealed = arguments["format"] == "age";
        if tool != "stats" && !sealed {
            assert_eq!(session.outcome(tool, arguments.clone()), before, "{tool} {arguments}");
        }
    }
}

#[test]
fn reading_a_namespace_that_has_no_store_answers_as_an_empty_one_and_makes_none() {
    let (_dir, store) = home();
    check_reading_makes_nothing(&mut Server::start_with(with(&store, &["--namespace-arg"]), |_| {}), &store);
    let (_dir, store) = home();
    check_reading_makes_nothing(&mut Http::start(&store, &["--namespace-arg"]), &store);
}

#[test]
fn a_namespace_with_an_unusable_name_is_an_invalid_argument() {
    let (_dir, store) = home();
    let mut server = Server::start_with(with(&store, &["--namespace-arg"]), |_| {});
    for name in [json!(""), json!("a\nb"), json!("x".repeat(129)), json!(7)] {
        for (tool, arguments) in [("get", json!({"key": "k"})), ("remember", json!({"text": "t"}))] {
            let mut arguments = arguments;
            arguments["namespace"] = name.clone();
            assert_eq!(server.refusal(tool, arguments).0, "invalid_argument", "{name}");
        }
    }
    assert_eq!(stores(&store), 1);
}

#[test]
fn a_burst_of_more_namespaces_than_may_be_open_is_served_and_few_are_open_after_it() {
    let (_dir, store) = home();
    let arguments = ["--namespace-arg", "--max-open-namespaces", "3"];
    let mut server = Server::start_with(with(&store, &arguments), |_| {});
    let mut other = Server::start_with(with(&store, &arguments), |_| {});
    for round in 0..2 {
        let sent: Vec<i64> = (0..24)
            .map(|n| {
                let namespace = format!("n{}", n % 12);
                server.send_call(
                    "remember",
                    json!({"key": format!("{round}-{n}"), "text": "t", "namespace": namespace}),
                )
            })
            .collect();
        for n in 0..12 {
            // What the one closes the other has open, or opens.
            let key = format!("other-{round}-{n}");
            other.call("remember", json!({"key": key, "text": "t", "namespace": format!("n{n}")}));
        }
        for id in sent {
            let reply = server.reply(id);
            assert_eq!(reply["result"]["isError"], false, "{reply}");
        }
    }
    for n in 0..12 {
        for server in [&mut server, &mut other] {
            assert_eq!(server.call("list", json!({"namespace": format!("n{n}")}))["total"], 6);
        }
    }
    let stats = server.call("stats", json!({}));
    assert_eq!(
        (&stats["server"]["open_namespaces"], &stats["server"]["max_open_namespaces"]),
        (&json!(3), &json!(3))
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_files_of_a_server_do_not_grow_with_the_namespaces_that_it_has_served() {
    let (_dir, store) = home();
    let arguments = ["--namespace-arg", "--max-open-namespaces", "4"];
    let mut server = Server::start_with(with(&store, &arguments), |_| {});
    let mut files = Vec::new();
    for n in 0..30 {
        server.call("remember", json!({"text": "t", "namespace": format!("n{n}")}));
        files.push(names(Path::new(&format!("/proc/{}/fd", server.id()))).len());
    }
    assert!(files[29] <= files[9], "{files:?}");
}

#[cfg(unix)]
#[test]
fn a_low_bound_on_open_files_that_can_be_raised_is() {
    let (_dir, store) = home();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 60 && exec \"$0\" --namespace-arg", env!("CARGO_BIN_EXE_warm-mcp")]);
    limited.env("WARM_MCP_DATA_DIR", &store);
    let mut server = Server::start_with(limited, |_| {});
    for n in 0..30 {
        server.call("remember", json!({"text": "t", "namespace": format!("n{n}")}));
    }
    assert_eq!(server.call("stats", json!({}))["server"]["open_namespaces"], 31);
}

fn project(dir: &Path, name: &str) -> PathBuf {
    let project = dir.join(name);
    fs::create_dir_all(project.join("src/deep")).expect("folders");
    fs::create_dir(project.join(".git")).expect("a folder");
    project
}

fn in_folder(store: &Path, folder: &Path, arguments: &[&str]) -> Server {
    let mut command = with(store, arguments);
    command.current_dir(folder);
    Server::start_with(command, |_| {})
}

#[test]
fn each_project_has_its_own_memories_and_all_its_folders_share_them() {
    let (dir, store) = home();
    let (one, two) = (project(&dir.path().join("x"), "app"), project(&dir.path().join("y"), "app"));
    let by_project = ["--namespace-strategy", "project"];
    let mut server = in_folder(&store, &one, &by_project);
    server.call("remember", json!({"key": "k", "text": "of one"}));
    let stats = server.call("stats", json!({}));
    let namespace = stats["namespace"].as_str().expect("a name").to_owned();
    assert!(namespace.starts_with("project:app-"), "{namespace}");
    let why = stats["server"]["namespace_is"].as_str().expect("a reason").to_owned();
    let folder = one.canonicalize().expect("it is there");
    assert!(why.contains(&*folder.to_string_lossy()) && why.contains("--namespace-strategy"), "{why}");
    server.close();

    let mut server = in_folder(&store, &one.join("src/deep"), &by_project);
    assert_eq!(server.call("get", json!({"key": "k"}))["text"], "of one");
    server.close();
    let mut server = in_folder(&store, &two, &by_project);
    assert_eq!(
        server.refusal("get", json!({"key": "k"})).0,
        "not_found",
        "the name alone is not the project"
    );
    server.close();

    // Named, by its folder and by what its namespace says, from anywhere.
    let name = namespace.strip_prefix("project:").expect("it is a project's");
    for named in [&*one.to_string_lossy(), name] {
        assert_eq!(owner(&store, &["view", "k", "--project", named]), "of one", "{named}");
    }
    assert_eq!(owner(&store, &["view", "k", "--namespace", &namespace]), "of one");
    let mut command = with(&store, &["view", "k"]);
    command.current_dir(&one).env("WARM_MCP_NAMESPACE_STRATEGY", "project");
    assert_eq!(finish(&mut command).1, "of one");

    // Moved: the start says how to keep what was remembered.
    let moved = dir.path().join("moved");
    fs::rename(&one, &moved).expect("it moves");
    let mut server = in_folder(&store, &moved, &by_project);
    assert_eq!(server.refusal("get", json!({"key": "k"})).0, "not_found");
    let stderr = server.close().stderr;
    assert!(stderr.contains("moved") && stderr.contains("--project NAME"), "{stderr}");
    let mut server = in_folder(&store, &moved, &["--project", name]);
    assert_eq!(server.call("get", json!({"key": "k"}))["text"], "of one");
}

#[test]
fn options_that_contradict_each_other_stop_every_command_and_a_server() {
    let (dir, store) = home();
    for contradiction in [
        &["--namespace", "a", "--namespace-strategy", "project"][..],
        &["--namespace", "a", "--project", "b"],
        &["--namespace-strategy", "global", "--project", "b"],
        &["--project", "./not/there"],
        &["--namespace-strategy", "folder"],
    ] {
        for command in [&["list"][..], &["doctor"], &[]] {
            let (code, stdout, stderr) = run(&store, &[command, contradiction].concat());
            assert_ne!(code, Some(0), "{contradiction:?}");
            assert!(stdout.is_empty() && stderr.contains(contradiction[0]), "{stdout}{stderr}");
        }
    }
    let mut command = with(&store, &["list", "--project", "b"]);
    command.env("WARM_MCP_NAMESPACE", "a");
    let (_, _, stderr) = finish(&mut command);
    assert!(stderr.contains("WARM_MCP_NAMESPACE"), "{stderr}");
    assert_eq!(names(dir.path()).len(), 0, "nothing was made");
}

#[test]
fn doctor_says_which_namespace_it_looks_at_and_why() {
    let (_dir, store) = home();
    Server::start_with(with(&store, &["--project", "app"]), |_| {}).close();
    let said = owner(&store, &["doctor", "--project", "app"]);
    assert!(said.contains("project:app") && said.contains("named by --project"), "{said}");
}

/// A store with memories in three namespaces.
fn filled(store: &Path) {
    let mut server = Server::start_with(with(store, &["--namespace-arg"]), |_| {});
    for namespace in ["default", "work", "project:a/b"] {
        server
            .call("remember", json!({"key": "k", "text": format!("in {namespace}"), "namespace": namespace}));
        server.memory(
            json!({"command": "create", "path": "/memories/f.md", "file_text": "f\n", "namespace": namespace}),
        );
    }
    server.close();
}

#[test]
fn all_namespaces_are_listed_by_name_and_the_doctor_looks_at_each() {
    let (_dir, store) = home();
    assert_eq!(run(&store, &["namespaces"]), (Some(0), String::new(), String::new()));
    filled(&store);
    let listed = owner(&store, &["namespaces", "--json"]);
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> =
        listed.iter().map(|line| (line["namespace"].as_str(), line["memories"].as_u64())).collect();
    assert_eq!(told, ["default", "project:a/b", "work"].map(|name| (Some(name), Some(2))));
    assert!(owner(&store, &["namespaces"]).lines().all(|line| line.contains("2 memories")));
    let said = owner(&store, &["doctor"]);
    for name in ["default", "project:a/b", "work"] {
        assert!(said.contains(&format!("namespace {name}: 2 memories")), "{said}");
    }
    let said = owner(&store, &["doctor", "--namespace", "work"]);
    assert!(said.contains("namespace work: 2") && !said.contains("namespace default: 2"), "{said}");
}

#[test]
fn a_store_whose_folder_is_lost_is_named_by_every_start_and_not_made_anew() {
    for all in [false, true] {
        let (_dir, store) = home();
        Server::start(&store).close();
        let folder = store.join("stores");
        let lost = if all { folder.clone() } else { folder.join(&names(&folder)[0]) };
        fs::remove_dir_all(&lost).expect("it is there");
        for line in [&["list"][..], &["doctor"], &["import", "."]] {
            let (code, stdout, stderr) = run(&store, line);
            assert!(code == Some(1) && (stdout + &stderr).contains("missing although"), "{line:?}: {stderr}");
        }
        let ended = Server::spawn(warm_mcp(&store)).close();
        assert!(
            ended.status.code() == Some(1) && ended.stderr.contains("missing although"),
            "{}",
            ended.stderr
        );
        assert!(!lost.exists(), "nothing was made in its place");
        owner(&store, &["doctor", "--repair", "--yes"]);
        Server::start(&store).close();
    }
}

#[test]
fn a_backup_and_an_export_of_all_namespaces_have_one_of_each() {
    let (dir, store) = home();
    filled(&store);
    let backup = dir.path().join("backup");
    let backup = backup.to_str().expect("UTF-8");
    let said = owner(&store, &["backup", backup, "--all-namespaces"]);
    assert!(said.contains("work: 2 memories") && said.contains("warm-mcp restore FOLDER"), "{said}");
    assert_eq!(names(Path::new(backup)), ["default.age", "project%3Aa%2Fb.age", "work.age"]);
    let identity = store.join("identity.txt");
    let fresh = dir.path().join("fresh");
    let identity = identity.to_str().expect("UTF-8");
    owner(&fresh, &["restore", backup, "--identity", identity]);
    for namespace in ["default", "project:a/b", "work"] {
        let line = ["view", "k", "--namespace", namespace, "--identity", identity];
        assert_eq!(owner(&fresh, &line), format!("in {namespace}"));
    }
    let (code, _, stderr) = run(&store, &["restore", backup, "--namespace", "work"]);
    assert!(code == Some(1) && stderr.contains("is a folder"), "{stderr}");

    let texts = dir.path().join("texts");
    owner(&store, &["export", texts.to_str().expect("UTF-8"), "--all-namespaces"]);
    assert_eq!(names(&texts), ["default", "project%3Aa%2Fb", "work"]);
    assert_eq!(fs::read_to_string(texts.join("work/other-memories/k.md")).expect("a file"), "in work");
    let lines = dir.path().join("lines");
    owner(&store, &["export", lines.to_str().expect("UTF-8"), "--all-namespaces", "--format", "jsonl"]);
    assert_eq!(names(&lines), ["default.jsonl", "project%3Aa%2Fb.jsonl", "work.jsonl"]);
}

#[test]
fn an_export_to_an_unknown_kind_of_file_is_refused_with_the_known_ones_unless_a_folder_is_meant() {
    let (dir, store) = home();
    filled(&store);
    let target = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (code, _, stderr) = run(&store, &["export", &target("all.txt")]);
    assert!(code == Some(1) && stderr.contains(".jsonl") && stderr.contains("--format"), "{stderr}");
    assert!(!Path::new(&target("all.txt")).exists());
    owner(&store, &["export", &target("v1.2/")]);
    assert!(dir.path().join("v1.2/f.md").is_file());
    owner(&store, &["export", &target("all.txt"), "--format", "json"]);
    assert!(dir.path().join("all.txt").is_file());
}

#[test]
fn a_first_write_that_is_refused_makes_no_namespace() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start_with(warm_mcp(dir.path()), |command| {
        command.arg("--namespace-arg");
    });
    let stores = || std::fs::read_dir(dir.path().join("stores")).expect("stores").count();
    let before = stores();
    for (tool, arguments) in [
        ("remember", json!({"text": "", "namespace": "new"})),
        ("remember", json!({"text": "x", "key": "/memories/../x", "namespace": "new"})),
        ("remember", json!({"text": "x", "key": "k", "if_version": "1", "namespace": "new"})),
        ("memory", json!({"command": "create", "path": "/etc/x", "file_text": "x", "namespace": "new"})),
    ] {
        assert_ne!(server.refusal(tool, arguments).0, "store_unavailable");
        assert_eq!(stores(), before);
    }
    server.call("remember", json!({"text": "x", "key": "k", "create_only": true, "namespace": "new"}));
    assert_eq!(stores(), before + 1);
}
