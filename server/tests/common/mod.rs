//! A client of the real `warm-mcp`, over its stdin and stdout.
//!
//! Owns starting and ending the process, requests and replies, and the rule that everything on stdout is
//! a message of the protocol: a line that is not one fails the test that sees it.
#![allow(dead_code)] // Each test file uses its own part of it.

pub mod http;

use std::{
    collections::HashMap,
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// A test that waits longer for anything has found a hang.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// `warm-mcp` with an environment that says nothing to it, and the store in `dir`.
pub fn warm_mcp(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warm-mcp"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WARM_MCP_") {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_LOG").env("WARM_MCP_DATA_DIR", dir);
    command
}

/// A running server and the session with it.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    next_id: i64,
    /// Replies that arrived while another was waited for.
    early: HashMap<i64, Value>,
    /// Notifications that arrived while a reply was waited for.
    pub heard: Vec<Value>,
}

/// How a server ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stderr: String,
    /// Messages that nobody had waited for.
    pub unread: Vec<Value>,
}

impl Server {
    /// Starts a server on the store in `dir` and opens a session.
    pub fn start(dir: &Path) -> Self {
        Self::start_with(warm_mcp(dir), |_| {})
    }

    pub fn start_with(mut command: Command, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut command);
        let mut server = Self::spawn(command);
        server.initialize("2025-11-25");
        server
    }

    /// Starts a server without a word.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("warm-mcp starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.expect("stdout is UTF-8")).is_err() {
                    break;
                }
            }
        });
        let mut pipe = child.stderr.take().expect("a pipe");
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).expect("stderr can be read");
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            input: child.stdin.take(),
            child,
            messages,
            stderr: Some(stderr),
            next_id: 1,
            early: HashMap::new(),
            heard: Vec::new(),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn initialize(&mut self, revision: &str) -> Value {
        let reply = self.request(
            "initialize",
            json!({
                "protocolVersion": revision, "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        reply
    }

    pub fn write(&mut self, message: &Value) {
        self.write_line(message.to_string());
    }

    pub fn write_line(&mut self, line: impl AsRef<[u8]>) {
        let line = [line.as_ref(), b"\n"].concat();
        let input = self.input.as_mut().expect("the session is open");
        if let Err(error) = input.write_all(&line) {
            panic!("the server does not read ({error}): {}", self.last_words());
        }
    }

    /// Sends a request without waiting for its reply.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message, whatever it is.
    pub fn next(&mut self) -> Value {
        match self.messages.recv_timeout(DEADLINE) {
            Ok(line) => message(&line),
            Err(RecvTimeoutError::Timeout) => panic!("no message within {DEADLINE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server ended: {}", self.last_words()),
        }
    }

    /// The next message, unless none comes for so long.
    pub fn next_within(&mut self, patience: Duration) -> Option<Value> {
        self.messages.recv_timeout(patience).ok().map(|line| message(&line))
    }

    /// The reply to a request that was sent.
    pub fn reply(&mut self, id: i64) -> Value {
        loop {
            if let Some(reply) = self.early.remove(&id) {
                return reply;
            }
            let message = self.next();
            if message["method"].is_string() {
                self.heard.push(message);
                continue;
            }
            let other = message["id"].as_i64().expect("a reply has the id of its request");
            self.early.insert(other, message);
        }
    }

    /// The next notification of this kind, whether it has arrived or not.
    pub fn notice(&mut self, method: &str) -> Value {
        let wanted = |message: &Value| message["method"] == method;
        if let Some(at) = self.heard.iter().position(wanted) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.next();
            if wanted(&message) {
                return message;
            }
            match message["id"].as_i64() {
                Some(id) => drop(self.early.insert(id, message)),
                None => self.heard.push(message),
            }
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.reply(id)
    }

    pub fn send_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The result of a tool call, failed or not.
    pub fn outcome(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        self.reply(id)["result"].take()
    }

    /// The structured content of a tool call that must be served.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut outcome = self.outcome(tool, arguments);
        assert_eq!(outcome["isError"], false, "{outcome}");
        outcome["structuredContent"].take()
    }

    /// Code and message of a tool call that must fail.
    pub fn refusal(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let outcome = self.outcome(tool, arguments);
        assert_eq!(outcome["isError"], true, "{outcome}");
        let structured = &outcome["structuredContent"];
        let text = |name: &str| structured[name].as_str().expect("an error has it").to_owned();
        assert_eq!(outcome["content"][0]["text"], structured["message"]);
        (text("code"), text("message"))
    }

    /// One command of the memory tool that must be served.
    pub fn memory(&mut self, arguments: Value) -> String {
        let result = self.call("memory", arguments)["result"].take();
        result.as_str().expect("a string").to_owned()
    }

    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Ends the input and waits for the server to end.
    pub fn close(mut self) -> Ended {
        self.input.take();
        self.wait()
    }

    /// Waits for the server to end by itself.
    pub fn wait(mut self) -> Ended {
        let status = ended(&mut self.child);
        let unread = std::iter::from_fn(|| self.messages.recv_timeout(DEADLINE).ok());
        let unread = unread.map(|line| message(&line)).collect();
        Ended { status, stderr: self.last_words(), unread }
    }

    /// Ends the server without notice. Returns the messages that it had said and nobody had waited for.
    pub fn kill(mut self) -> Vec<Value> {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child can be waited for");
        // A line without an end was never said.
        self.messages.iter().filter_map(|line| serde_json::from_str(&line).ok()).collect()
    }

    fn last_words(&mut self) -> String {
        self.stderr.take().map_or_else(String::new, |words| words.join().expect("stderr was read"))
    }
}

/// What `initialize` asks for in a revision.
pub fn opening(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

/// Parameters in the form of 2026-07-28, which say themselves what revision they are of.
pub fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    params
}

/// The opening message of a client that this file does not play.
pub fn hello() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(status.expect("kill starts").success());
}

/// Waits for a process to end by itself.
pub fn ended(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        match child.try_wait().expect("a child can be waited for") {
            Some(status) => return status,
            None if started.elapsed() > DEADLINE => {
                let _ = child.kill();
                panic!("the server does not end")
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed leaves its server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn message(line: &str) -> Value {
    let message: Value = serde_json::from_str(line)
        .unwrap_or_else(|error| panic!("stdout carries what is no message ({error}): {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}

/// Runs `warm-mcp` to its end and returns status, stdout and stderr.
pub fn run(dir: &Path, arguments: &[impl AsRef<OsStr>]) -> (Option<i32>, String, String) {
    finish(warm_mcp(dir).args(arguments))
}

/// Runs a command to its end, which must come in time, and returns status, stdout and stderr.
pub fn finish(command: &mut Command) -> (Option<i32>, String, String) {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let read = |mut pipe: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).expect("UTF-8");
            text
        })
    };
    let stdout = read(Box::new(child.stdout.take().expect("a pipe")));
    let stderr = read(Box::new(child.stderr.take().expect("a pipe")));
    let status = ended(&mut child);
    (status.code(), stdout.join().expect("it was read"), stderr.join().expect("it was read"))
}

/// Runs a command of the owner that must succeed; returns what it prints.
pub fn owner(dir: &Path, arguments: &[impl AsRef<OsStr>]) -> String {
    let (code, stdout, stderr) = run(dir, arguments);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    stdout
}

/// Every memory of the store in `dir`, whole, without what changes with every write.
pub fn memories(dir: &Path) -> Vec<Value> {
    let exported = owner(dir, &["export", "-"]);
    let memory = |line: &str| {
        let mut memory: Value = serde_json::from_str(line).expect("a line of JSON");
        memory.as_object_mut().expect("an object").remove("version").expect("a memory has one");
        memory
    };
    exported.lines().map(memory).collect()
}

/// Makes one memory of the only store in `store` impossible to open.
pub fn damage_a_record(store: &Path) {
    use redb::{ReadableTable, TableDefinition};
    let file =
        std::fs::read_dir(store.join("stores")).expect("stores").next().expect("one").expect("an entry");
    let database = redb::Database::open(file.path().join("store.redb")).expect("a store");
    let transaction = database.begin_write().expect("a transaction");
    {
        let records: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
        let mut records = transaction.open_table(records).expect("a table");
        let (id, mut row) = {
            let row = records.iter().expect("rows").nth(7).expect("a row").expect("it reads");
            (*row.0.value(), row.1.value().to_vec())
        };
        *row.last_mut().expect("it is not empty") ^= 1;
        records.insert(&id, row.as_slice()).expect("it is written");
    }
    transaction.commit().expect("it commits");
}

/// What lies in a folder, by name.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
