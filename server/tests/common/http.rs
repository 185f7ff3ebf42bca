//! A client of the real `warm-mcp` over HTTP.
//!
//! Owns starting and ending the process, the few lines of HTTP that are asked of it, and a session.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::{DEADLINE, warm_mcp};

/// A running server over HTTP.
pub struct Http {
    pub child: Child,
    pub address: String,
}

impl Http {
    pub fn start(dir: &Path) -> Self {
        Self::start_with(warm_mcp(dir))
    }

    pub fn start_with(mut command: Command) -> Self {
        command.stderr(Stdio::null());
        Self::start_logging(command)
    }

    /// One whose log goes where the command says.
    pub fn start_logging(mut command: Command) -> Self {
        let command = command.args(["--transport", "http", "--bind", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("it says where it is");
        let address = line.trim().strip_prefix("warm-mcp listening on http://").expect("it says where it is");
        let address = address.strip_suffix("/mcp").expect("it says where it is").to_owned();
        Self { child, address }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        stream
    }

    /// Sends a request of these headers besides `Host`, and reads the whole answer.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.ask_on(self.connect(), method, path, headers, body)
    }

    fn ask_on(
        &self,
        mut stream: TcpStream,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let host = self.address.clone();
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !has_host {
            request += &format!("Host: {host}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        // Of what is too long the rest may not be read.
        let _ = stream.write_all((request + "\r\n" + body).as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    pub fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.try_post(headers, message).expect("it listens")
    }

    /// An error where nobody listens any more.
    pub fn try_post(&self, headers: &[(&str, &str)], message: &Value) -> io::Result<Answer> {
        let always =
            [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(self.ask_on(stream, "POST", "/mcp", &[&always, headers].concat(), &message.to_string()))
    }

    pub fn status(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        self.ask(method, path, headers, "").status
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, headers: headers.to_owned(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The message with a result in it, whether alone or in a stream of events, chunked or not.
    pub fn message(&self) -> Value {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .find(|message| message["jsonrpc"] == "2.0")
            .unwrap_or_else(|| panic!("no message: {}", self.body))
    }
}

/// A session in the form of the handshake revisions.
pub struct Session<'a> {
    http: &'a Http,
    pub headers: Vec<(&'static str, String)>,
    next: u64,
}

impl<'a> Session<'a> {
    pub fn open(http: &'a Http, token: Option<&str>) -> Self {
        let bearer = token.map(|token| ("Authorization", format!("Bearer {token}")));
        let mut session = Self { http, headers: bearer.into_iter().collect(), next: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = session.send("initialize", &hello);
        let id = answer.header("mcp-session-id").expect("a session").to_owned();
        assert_eq!(answer.message()["result"]["protocolVersion"], "2025-11-25");
        session.headers.push(("Mcp-Session-Id", id));
        session.headers.push(("MCP-Protocol-Version", "2025-11-25".into()));
        let noted = session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(noted.status, 202);
        session
    }

    pub fn post(&self, message: &Value) -> Answer {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.http.post(&headers, message)
    }

    pub fn send(&mut self, method: &str, params: &Value) -> Answer {
        self.next += 1;
        let answer =
            self.post(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
    }

    /// Opens a stream that waits for notices.
    pub fn listen(&self) -> (u16, TcpStream) {
        let mut stream = self.http.connect();
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{}\r\n",
            headers.concat()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = [0; 64];
        let read = stream.read(&mut answer).expect("an answer");
        (Answer::of(&answer[..read]).status, stream)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut message = self.send("tools/call", &json!({"name": tool, "arguments": arguments})).message();
        assert_eq!(message["result"]["isError"], false, "{message}");
        message["result"]["structuredContent"].take()
    }
}
