//! MCP over a pair of byte streams: one JSON-RPC message a line.
//!
//! Owns reading and writing of messages, the longest line that is read, and the end of a session: when
//! the input ends or the server is told to stop, no more is read, and the session closes once every
//! request that was read is answered. rmcp's own transport would drop a line that is too long without a
//! word, so that its sender waits for ever, and gives up on answers after a few seconds.

use std::{collections::HashSet, io, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex, Notify, watch},
};
use tokio_util::sync::CancellationToken;

/// Why a request is refused that has the id of one in progress, on any transport.
pub const SAME_ID: &str = "A request with this id is not yet answered: give each an id of its own.";

/// What is wrong with a message that can't be read, on any transport.
pub const PARSE_ERROR: &str = "The message can't be read as JSON: it must be UTF-8, without half a surrogate pair in a \
                           string, a number out of range, or values nested more than 128 deep.";

/// Longest wait, after the end of input, for the next answer to a request that was read.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest wait, at the very end, for a client that does not read.
const LAST_FLUSH: Duration = Duration::from_secs(1);

/// Most requests that are read and not yet answered. What a client sends beyond that waits in the pipe.
const MOST_UNANSWERED: usize = 4_096;

/// How much of an overlong line is kept from each end, to find its request id.
const KEPT: usize = 256;

/// A session over `R` and `W`.
pub struct LineTransport<R, W> {
    lines: Lines<R>,
    output: Arc<Mutex<W>>,
    unanswered: Arc<Unanswered>,
    stop: watch::Receiver<bool>,
    gave_up: Arc<Notify>,
    /// Cancelled when nothing more is read.
    ending: CancellationToken,
    ended: bool,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads no line longer than `max_line` bytes, and nothing more once `stop` says true.
    ///
    /// `ending` is cancelled then, and `gave_up` is notified when the client will not read what is left to say to it.
    pub fn new(
        input: R,
        output: W,
        max_line: usize,
        stop: watch::Receiver<bool>,
        gave_up: Arc<Notify>,
        ending: CancellationToken,
    ) -> Self {
        Self {
            lines: Lines::new(input, max_line),
            output: Arc::new(Mutex::new(output)),
            unanswered: Arc::default(),
            stop,
            gave_up,
            ending,
            ended: false,
        }
    }

    async fn next_line(&mut self) -> Option<Line> {
        if self.ended {
            return None;
        }
        let line = tokio::select! {
            biased;
            // An error means that nobody is left to say stop.
            Ok(_) = self.stop.wait_for(|stop| *stop) => None,
            line = async {
                self.unanswered.room().await;
                self.lines.next().await
            } => line,
        };
        self.ended = line.is_none();
        line
    }

    /// Answers on the side: `receive` may be dropped at any await, and the answer with it.
    fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        tokio::spawn(write(Arc::clone(&self.output), ServerJsonRpcMessage::error(error, id)));
    }

    /// What a line means to the session; nothing for one that was refused or passed over.
    fn read(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let message = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(_) => {
                self.refuse_line(line);
                return None;
            }
        };
        match &message {
            JsonRpcMessage::Request(request) if !self.unanswered.add(request.id.clone()) => {
                // Two requests of one id can't both be answered; neither is lost without a word.
                self.refuse(Some(request.id.clone()), ErrorData::invalid_request(SAME_ID, None));
                return None;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // rmcp does not answer a request that was cancelled.
                    self.unanswered.remove(id);
                }
            }
            _ => {}
        }
        Some(message)
    }

    fn refuse_line(&self, line: &[u8]) {
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(message)) if message.contains_key("id") => {
                let id = message.get("id").and_then(request_id);
                self.refuse(id, ErrorData::invalid_request("Invalid request", None));
            }
            // A notification is never answered, however wrong it is.
            Ok(Value::Object(message)) if message.contains_key("method") => {}
            Ok(_) => self.refuse(None, ErrorData::invalid_request("Invalid request", None)),
            Err(_) => self.refuse(id_beside(line), ErrorData::parse_error(PARSE_ERROR, None)),
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let output = Arc::clone(&self.output);
        let unanswered = Arc::clone(&self.unanswered);
        let gave_up = Arc::clone(&self.gave_up);
        async move {
            let written = write(output, message).await;
            if let Some(id) = answered {
                unanswered.remove(&id);
            }
            if written.is_err() {
                // Nobody reads any more, so nothing that is asked can be answered.
                gave_up.notify_one();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while let Some(line) = self.next_line().await {
            match line {
                Line::Whole(line) => {
                    if let Some(message) = self.read(&line) {
                        return Some(message);
                    }
                }
                Line::TooLong { head, tail } => {
                    tracing::warn!(limit = self.lines.max_line, "dropped a message that is too long");
                    let message = format!(
                        "The message is longer than {} bytes, the most that this server reads. \
                         Split it, or start warm-mcp with a larger --max-text-bytes.",
                        self.lines.max_line
                    );
                    self.refuse(
                        id_at_head(&head).or_else(|| id_at_tail(&tail)),
                        ErrorData::new(ErrorCode::INVALID_REQUEST, message, None),
                    );
                }
            }
        }
        self.ending.cancel();
        if !self.unanswered.drained().await {
            tracing::error!("closing with requests that are not answered");
            self.gave_up.notify_one();
        }
        None
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        let flush = async { self.output.lock().await.flush().await };
        tokio::time::timeout(LAST_FLUSH, flush).await.unwrap_or_else(|late| Err(late.into()))
    }
}

/// The request id of a message of which another part can't be read, so that its sender does not wait for
/// ever. Ignored values are skipped, not decoded, so what is wrong in them does not matter.
pub fn id_beside(line: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct OnlyId {
        id: Value,
    }
    serde_json::from_slice::<OnlyId>(line).ok().and_then(|message| request_id(&message.id))
}

async fn write<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    message: ServerJsonRpcMessage,
) -> Result<(), io::Error> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// Requests that were read and not yet answered.
#[derive(Default)]
struct Unanswered {
    ids: parking_lot::Mutex<HashSet<RequestId>>,
    fewer: Notify,
}

impl Unanswered {
    fn ids(&self) -> parking_lot::MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock()
    }

    /// False if a request of this id is there already.
    fn add(&self, id: RequestId) -> bool {
        self.ids().insert(id)
    }

    /// Waits until there is room for one more.
    async fn room(&self) {
        while self.ids().len() >= MOST_UNANSWERED {
            self.fewer.notified().await;
        }
    }

    fn remove(&self, id: &RequestId) {
        self.ids().remove(id);
        self.fewer.notify_one();
    }

    /// Whether all are answered, after a wait that lasts as long as answers keep coming.
    async fn drained(&self) -> bool {
        while !self.ids().is_empty() {
            if tokio::time::timeout(PATIENCE, self.fewer.notified()).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// One line of input.
enum Line {
    Whole(Vec<u8>),
    /// Both ends of a line that was too long to keep.
    TooLong {
        head: Vec<u8>,
        tail: Vec<u8>,
    },
}

/// Splits input into lines. Keeps its place when a read is dropped half-way.
struct Lines<R> {
    input: BufReader<R>,
    max_line: usize,
    line: Vec<u8>,
    /// The last bytes of the current line, once it is too long.
    tail: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(input: R, max_line: usize) -> Self {
        Self { input: BufReader::new(input), max_line, line: Vec::new(), tail: None }
    }

    /// The next line without its end; nothing at the end of input, or when input fails.
    async fn next(&mut self) -> Option<Line> {
        loop {
            // Nothing is awaited between the read and `consume`, so no byte is lost or taken twice.
            let available = self.input.fill_buf().await.unwrap_or_default();
            if available.is_empty() {
                // A last line without an end still counts.
                return (!self.line.is_empty()).then(|| self.take());
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if self.tail.is_none() && self.line.len() + part.len() > self.max_line {
                self.line.extend_from_slice(&part[..part.len().min(KEPT)]);
                self.tail = Some(self.line.split_off(self.line.len().min(KEPT)));
            }
            match &mut self.tail {
                Some(tail) => {
                    tail.extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
                    tail.drain(..tail.len().saturating_sub(KEPT));
                    self.line.shrink_to(KEPT);
                }
                None => self.line.extend_from_slice(part),
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Some(self.take());
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match self.tail.take() {
            None => Line::Whole(line),
            Some(tail) => Line::TooLong { head: line, tail },
        }
    }
}

/// The id of a message that begins like this, if its members before `params` tell.
fn id_at_head(head: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let before = head.split("\"params\"").next()?;
    let (_, after) = before.split_once("\"id\"")?;
    scalar(after)?.0
}

/// The id of a message that ends like this, if its last member is the id. Quotes inside a text are
/// written `\"`, so no text can look like it.
fn id_at_tail(tail: &[u8]) -> Option<RequestId> {
    let tail = String::from_utf8_lossy(tail);
    let (_, after) = tail.rsplit_once("\"id\"")?;
    let (id, rest) = scalar(after)?;
    id.filter(|_| rest.trim() == "}")
}

/// The value after a colon as an id, and what follows it.
fn scalar(after: &str) -> Option<(Option<RequestId>, &str)> {
    let value = after.trim_start().strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
    let id = request_id(&values.next()?.ok()?);
    Some((id, value.get(values.byte_offset()..)?))
}

fn request_id(id: &Value) -> Option<RequestId> {
    serde_json::from_value(id.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], max_line: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, max_line);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_line_at_the_limit_is_read_and_one_byte_more_is_not() {
        let all = lines(b"12345678\n123456789\nabc", 8).await;
        let [Line::Whole(first), Line::TooLong { head, .. }, Line::Whole(last)] = &all[..] else {
            panic!("three lines, the second too long")
        };
        assert_eq!((&first[..], &head[..], &last[..]), (&b"12345678"[..], &b"123456789"[..], &b"abc"[..]));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn both_ends_of_an_overlong_line_are_kept_and_no_more() {
        let input = format!("start{}end\nnext\n", "x".repeat(100_000));
        let all = lines(input.as_bytes(), 1_000).await;
        let [Line::TooLong { head, tail }, Line::Whole(next)] = &all[..] else {
            panic!("two lines, the first too long")
        };
        assert!(head.starts_with(b"start") && tail.ends_with(b"xend"));
        assert!(head.len() <= KEPT && tail.len() <= KEPT);
        assert_eq!(next, b"next");
    }

    #[test]
    fn the_id_of_an_overlong_message_is_found_at_either_end() {
        let number = Some(RequestId::Number(7));
        assert_eq!(id_at_head(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x"#), number);
        assert_eq!(id_at_tail(br#"xx"}},"jsonrpc":"2.0","id": 7 } "#), number);
        assert_eq!(id_at_tail(br#"xx"}},"id":"call-1"}"#), Some(RequestId::String("call-1".into())));
    }

    #[test]
    fn an_id_inside_the_arguments_is_not_taken_for_the_messages_own() {
        assert_eq!(id_at_head(br#"{"method":"tools/call","params":{"arguments":{"id":7,"#), None);
        assert_eq!(id_at_tail(br#""arguments":{"text":"x","id":7}}}"#), None);
        assert_eq!(id_at_tail(br#""arguments":{"text":"\"id\":7}"}}}"#), None);
    }
}
