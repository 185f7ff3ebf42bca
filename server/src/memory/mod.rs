//! The one door to a memory: requests and replies as plain values.
//!
//! Owns the [`Memory`] trait and its values, which can cross a socket as they are, and the
//! implementation in this process. Knows nothing of MCP.

#[cfg(test)]
pub mod contract;

use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use warm_engine::{
    ChangeLog, Engine, Progress,
    contract::{
        AskReceipts, Changes, ChangesSince, Command, CommandLimits, CopyKind, Copying, ErrorCode, Export,
        Exported, Forget, Forgotten, Get, List, ListOrder, Listing, Memory as Stored, OperationId, Recall,
        Recalled, ReceiptFile, Receipts, Remember, Remembered, Restore, Restored, Stats, Suggest, Suggested,
        Told, Write, Written,
    },
};

/// What can be asked of a memory. `Debug` is not derived: requests hold memory text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "operation", content = "request", rename_all = "snake_case")]
pub enum Request {
    Command(Command, CommandLimits),
    Remember(Remember),
    Recall(Recall),
    Get(Get),
    List(List),
    Export(Export),
    Forget(Forget),
    Restore(Restore),
    Stats,
    /// Which records can't be opened.
    Damaged,
    Suggest(Suggest),
    /// Receipts for what was forgotten.
    Receipts(AskReceipts),
    /// Which of these origins are of memories that were forgotten.
    Forgotten(Vec<String>),
    /// What changed since then; waited for as long as is said, in milliseconds, within [`LONGEST_WAIT`].
    Changes(ChangesSince, u64),
}

impl Request {
    /// Whether it may change something.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Command(Command::View { .. }, _)
            | Self::Recall(_)
            | Self::Get(_)
            | Self::List(_)
            | Self::Export(_)
            | Self::Stats
            | Self::Damaged
            | Self::Suggest(_)
            | Self::Receipts(_)
            | Self::Forgotten(_)
            | Self::Changes(..) => false,
            Self::Command(..) | Self::Remember(_) | Self::Forget(_) | Self::Restore(_) => true,
        }
    }

    /// Whether it can be the first of a store that is not there yet. What changes only what is there finds nothing
    /// in it, and makes nothing.
    pub fn begins_a_store(&self) -> bool {
        matches!(self, Self::Command(Command::Create { .. }, _) | Self::Remember(_) | Self::Restore(_))
    }

    /// How soon it can be answered by a store whose index is filled or not, and whose last write was prompt
    /// or not.
    pub fn expect(&self, recall_ready: bool, writes_are_prompt: bool) -> Expected {
        let soon = match self {
            Self::Command(Command::View { .. }, _) | Self::Get(_) | Self::Stats | Self::Damaged => true,
            Self::Recall(_) if !recall_ready => return Expected::OnceIndexed,
            // What is chosen by metadata or time is looked for among all memories.
            Self::Recall(recall) => {
                let chosen = recall.filter.is_some() || recall.since.is_some() || recall.until.is_some();
                recall.query.len() <= PROMPT_BYTES && !chosen
            }
            Self::List(list) => {
                let chosen = list.filter.is_some() || list.since.is_some() || list.until.is_some();
                list.order != Some(ListOrder::Recent) && !chosen
            }
            // These may touch any number of memories.
            Self::Command(Command::Delete { .. } | Command::Rename { .. }, _)
            | Self::Export(_)
            | Self::Forget(_)
            | Self::Restore(_)
            | Self::Suggest(_)
            | Self::Receipts(_)
            | Self::Forgotten(_)
            | Self::Changes(..) => false,
            Self::Command(..) | Self::Remember(_) => writes_are_prompt,
        };
        if soon { Expected::Soon } else { Expected::Later }
    }
}

/// What a memory answers. `Debug` is not derived: replies hold memory text.
#[derive(Serialize, Deserialize)]
#[serde(tag = "operation", content = "reply", rename_all = "snake_case")]
pub enum Reply {
    Command(Told),
    Remember(Remembered),
    Recall(Recalled),
    Get(Box<Stored>),
    List(Listing),
    Export(Exported),
    Forget(Forgotten),
    Restore(Restored),
    Stats(Box<Stats>),
    Damaged(Vec<String>),
    Suggest(Suggested),
    Receipts(Receipts),
    Receipt(Box<ReceiptFile>),
    Forgotten(Vec<bool>),
    Changes(Changes),
}

/// Why a request was not served. `Debug` shows the kind alone: a message may quote what was sent.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub code: ErrorCode,
    /// For a person or a model to read: what happened, then what to do next.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Failure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    /// What a call is answered that panicked. Where, the panic hook says on stderr.
    pub fn fault() -> Self {
        Self::new(
            ErrorCode::Internal,
            "warm-mcp failed at this call, which changed nothing or was applied whole. \
             Look at what is stored before trying again, and report the fault.",
        )
    }

    /// Nobody waits for the answer any longer.
    pub fn given_up() -> Self {
        Self::new(ErrorCode::Cancelled, "The request was given up.")
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }
}

impl std::fmt::Debug for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Failure({:?})", self.code)
    }
}

impl From<warm_engine::Error> for Failure {
    fn from(error: warm_engine::Error) -> Self {
        Self { code: error.code(), message: error.to_string(), details: error.details() }
    }
}

/// How soon a request is expected to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Within a few milliseconds: to wait costs less than to hand it to another thread.
    Soon,
    /// It may take a while.
    Later,
    /// Not before the index of a store that was just opened is filled.
    OnceIndexed,
}

/// One who waits for an answer.
pub struct Caller<'a> {
    /// Called before a recall waits for an index to be filled, for a caller that has others behind it.
    pub waits: &'a mut dyn FnMut(),
    /// How far long work is; a read that is given up there ends early.
    pub progress: Arc<Progress>,
}

/// A memory that can be asked. Calls block until they are answered.
pub trait Memory: Send + Sync {
    /// Serves one request whole, or not at all.
    fn call(&self, request: Request) -> Result<Reply, Failure> {
        self.call_or_wait(request, &mut Caller { waits: &mut || {}, progress: Arc::default() })
    }

    /// The same, for a caller that wants to know what becomes of it.
    fn call_or_wait(&self, request: Request, caller: &mut Caller<'_>) -> Result<Reply, Failure>;

    /// Hears what changes. Keeps the memory neither open nor in use.
    fn listener(&self) -> Box<dyn Listener>;

    /// Hands every memory of one moment to `each`, in the order of names, and returns how many there
    /// were. `each` may stop it with a failure, which is then the failure of the whole. What for is logged.
    fn dump(
        &self,
        copying: &Copying,
        each: &mut dyn FnMut(Stored) -> Result<(), Failure>,
    ) -> Result<u64, Failure>;

    /// How soon the request can be answered, so that the caller can wait for it in the right place.
    fn expect(&self, request: &Request) -> Expected;
}

/// One who hears what changes in a memory.
pub trait Listener: Send {
    /// Waits until something changed since then, for so long at most, and says what. Fails while the memory can't be
    /// reached, and for good once it is closed.
    fn next(&self, since: ChangesSince, wait: Duration) -> Result<Changes, Failure>;
}

/// Longest wait for changes: less than what another process takes for a sign that this one stands still.
pub const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// A write that takes longer than this is a sign of a slow disk.
const PROMPT: Duration = Duration::from_millis(5);

/// A query of at most so many bytes is searched for at once.
const PROMPT_BYTES: usize = 1024;

/// A memory whose store this process has open.
pub struct LocalMemory {
    engine: Engine,
    /// Whether the last write was prompt; the next one is expected to be like it.
    writes_are_prompt: AtomicBool,
}

impl LocalMemory {
    pub fn new(engine: Engine) -> Self {
        Self { engine, writes_are_prompt: AtomicBool::new(true) }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Serves a request; a write that comes again under the same name is made once.
    pub fn call_as(
        &self,
        operation: Option<OperationId>,
        request: Request,
        progress: &Arc<Progress>,
    ) -> Result<Reply, Failure> {
        let engine = &self.engine;
        Ok(match request {
            Request::Command(command @ Command::View { .. }, limits) => {
                Reply::Command(Told { result: engine.command(command, limits)?, receipt: None })
            }
            Request::Command(command, limits) => {
                self.write(Write::Command(command, limits), operation, progress)?
            }
            Request::Remember(remember) => self.write(Write::Remember(remember), operation, progress)?,
            Request::Forget(forget) => self.write(Write::Forget(forget), operation, progress)?,
            Request::Restore(restore) => self.write(Write::Restore(restore), operation, progress)?,
            Request::Recall(recall) => Reply::Recall(engine.recall_watched(&recall, progress)?),
            Request::Get(get) => Reply::Get(Box::new(engine.get(&get)?)),
            Request::List(list) => Reply::List(engine.list(&list)?),
            Request::Export(export) => {
                let page = engine.export_watched(&export, progress)?;
                if export.cursor.is_none() && page.total > 0 {
                    // The pages after the first are of the same copy.
                    let place = "the export tool".to_owned();
                    engine.note_copy(&Copying { kind: CopyKind::Export, place })?;
                }
                Reply::Export(page)
            }
            Request::Stats => Reply::Stats(Box::new(engine.stats())),
            Request::Damaged => Reply::Damaged(engine.damaged().to_vec()),
            Request::Suggest(suggest) => Reply::Suggest(engine.suggest(&suggest)?),
            Request::Receipts(AskReceipts::List { before, limit }) => {
                Reply::Receipts(engine.receipts(before, limit)?)
            }
            Request::Receipts(AskReceipts::One(which)) => Reply::Receipt(Box::new(engine.receipt(&which)?)),
            Request::Forgotten(origins) => Reply::Forgotten(engine.were_forgotten(&origins)?),
            Request::Changes(since, millis) => {
                Reply::Changes(wait_for_changes(&engine.changes(), since, Duration::from_millis(millis))?)
            }
        })
    }

    fn write(
        &self,
        write: Write,
        operation: Option<OperationId>,
        progress: &Arc<Progress>,
    ) -> Result<Reply, Failure> {
        let started = Instant::now();
        let written = self.engine.write_watched(write, operation, progress);
        self.writes_are_prompt.store(started.elapsed() < PROMPT, Ordering::Relaxed);
        Ok(match written? {
            Written::Command(told) => Reply::Command(told),
            Written::Remember(remembered) => Reply::Remember(remembered),
            Written::Forget(forgotten) => Reply::Forget(forgotten),
            Written::Restore(restored) => Reply::Restore(restored),
        })
    }
}

/// Waits on the log of a store that this process has open.
pub fn wait_for_changes(log: &ChangeLog, since: ChangesSince, wait: Duration) -> Result<Changes, Failure> {
    log.next(since, wait.min(LONGEST_WAIT))
        .ok_or_else(|| Failure::new(ErrorCode::StoreUnavailable, "The store is being closed."))
}

impl Listener for ChangeLog {
    fn next(&self, since: ChangesSince, wait: Duration) -> Result<Changes, Failure> {
        wait_for_changes(self, since, wait)
    }
}

impl Memory for LocalMemory {
    fn call_or_wait(&self, request: Request, caller: &mut Caller<'_>) -> Result<Reply, Failure> {
        if matches!(request, Request::Recall(_)) && !self.engine.recall_is_ready() {
            (caller.waits)();
        }
        self.call_as(None, request, &caller.progress)
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(self.engine.changes())
    }

    fn dump(
        &self,
        copying: &Copying,
        each: &mut dyn FnMut(Stored) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        self.engine.dump(copying, each)
    }

    fn expect(&self, request: &Request) -> Expected {
        request.expect(self.engine.recall_is_ready(), self.writes_are_prompt.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_with_any_metadata_crosses_a_socket_as_it_is() {
        let memory = json!({
            "key": "k", "text": "\u{0}\r\n🚀", "title": null, "tags": ["memory-file"], "version": "v", "bytes": 8,
            "created_at": "2026-01-31T12:00:00.123Z", "updated_at": "2026-01-31T12:00:00.123Z",
            "metadata": {"float": 0.1 + 0.2, "tiny": 5e-324, "large": u64::MAX, "small": i64::MIN, "nested": [{"": null}]},
        });
        let memory: Stored = serde_json::from_value(memory).expect("a memory");
        let sent =
            Request::Restore(Restore { memories: vec![memory.clone()], replace: true, forgotten_too: false });
        let line = serde_json::to_string(&sent).expect("JSON");
        let Ok(Request::Restore(received)) = serde_json::from_str(&line) else { panic!("{line}") };
        assert!(received.replace && received.memories == [memory]);
    }
}
