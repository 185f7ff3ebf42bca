//! One client: a connection that is kept, and a session on it.

use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

const REVISION: &str = "2025-11-25";

/// Why a call was not served.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error("no connection: {0}")]
    Connection(String),
    #[error("HTTP {0}")]
    Status(u16),
    #[error("no answer in the reply")]
    NoAnswer,
    #[error("error {0} of the protocol")]
    Protocol(i64),
    #[error("{0} of the tool")]
    Tool(String),
}

/// See the module.
pub struct Client {
    address: String,
    sender: Option<SendRequest<Full<Bytes>>>,
    session: Option<String>,
    next: u64,
}

impl Client {
    /// Connects and opens a session.
    pub async fn open(address: &str) -> Result<Self, Failed> {
        let mut client = Self { address: address.to_owned(), sender: None, session: None, next: 0 };
        let hello = json!({"protocolVersion": REVISION, "capabilities": {},
            "clientInfo": {"name": "warm-bench", "version": env!("CARGO_PKG_VERSION")}});
        client.ask("initialize", &hello).await?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(ready.to_string()).await?;
        Ok(client)
    }

    /// Calls a tool, which must succeed.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), Failed> {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments})).await?;
        if answer["result"]["isError"] == true {
            let code = answer["result"]["structuredContent"]["code"].as_str().unwrap_or("a failure");
            return Err(Failed::Tool(code.to_owned()));
        }
        Ok(())
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failed> {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let body = self.post(request.to_string()).await?;
        let body = String::from_utf8_lossy(&body);
        // A message stands alone or in a line of a stream of events.
        let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answer = messages.find(|message| message["id"] == self.next).ok_or(Failed::NoAnswer)?;
        match answer["error"]["code"].as_i64() {
            Some(code) => Err(Failed::Protocol(code)),
            None => Ok(answer),
        }
    }

    /// Sends one message and reads the whole answer.
    async fn post(&mut self, message: String) -> Result<Bytes, Failed> {
        let lost = |error: hyper::Error| Failed::Connection(error.to_string());
        let mut request = Request::post("/mcp")
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", REVISION);
        }
        let request = request.body(Full::from(message));
        let request = request.map_err(|error| Failed::Connection(error.to_string()))?;
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        sender.ready().await.map_err(lost)?;
        let answer = sender.send_request(request).await.map_err(lost)?;
        let status = answer.status();
        if let Some(session) = answer.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()) {
            self.session = Some(session.to_owned());
        }
        let body = answer.into_body().collect().await.map_err(lost)?.to_bytes();
        // Kept only when all is well, so that the next request finds a new connection where it is not.
        self.sender = Some(sender);
        if status.is_success() { Ok(body) } else { Err(Failed::Status(status.as_u16())) }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failed> {
        let failed = |error: std::io::Error| Failed::Connection(error.to_string());
        let stream = TcpStream::connect(&self.address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| Failed::Connection(error.to_string()))?;
        // It ends with the sender; how is said by the request that it was lost with.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}
