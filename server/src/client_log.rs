//! The server's own log, told to clients of the handshake revisions that ask for it.
//!
//! Owns the layer that hands log lines on, and what one session wants of them. 2026-07-28 has no such thing any more, so
//! the capability is named in the answer to `initialize` alone. The lines are those of stderr, from `info` up: they hold
//! no memory text either.

#![expect(deprecated, reason = "the handshake revisions have it")]

use std::{
    fmt::Debug,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam, SetLevelRequestParams},
};
use serde_json::{Map, Value};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    task::JoinSet,
};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

/// How much of the log a client asks for.
pub type SetLevel = SetLevelRequestParams;

/// How many lines may wait for one client; one that falls behind misses the oldest.
const BEHIND: usize = 64;

static LINES: LazyLock<broadcast::Sender<Arc<Line>>> = LazyLock::new(|| broadcast::channel(BEHIND).0);

/// One line of the log.
struct Line {
    level: Level,
    logger: &'static str,
    data: Value,
}

/// Hands lines on to those who listen.
pub struct ToClients;

impl<S: Subscriber> Layer<S> for ToClients {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if LINES.receiver_count() == 0 {
            return;
        }
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let line =
            Line { level: *metadata.level(), logger: metadata.target(), data: Value::Object(fields.0) };
        // Those who listened may just have gone.
        let _ = LINES.send(Arc::new(line));
    }
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}

/// What one session hears of the log. Nothing until it says how much.
#[derive(Default)]
pub struct ClientLog(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    from: Arc<Mutex<Option<LoggingLevel>>>,
    /// The task that tells it, once there is one. Ends with the session.
    telling: JoinSet<()>,
}

impl ClientLog {
    /// Tells the client lines of a level and above.
    pub fn set_level(&self, asked: SetLevel, peer: &Peer<RoleServer>) {
        let mut heard = unpoisoned(&self.0);
        *unpoisoned(&heard.from) = Some(asked.level);
        if heard.telling.is_empty() {
            let told = tell(LINES.subscribe(), Arc::clone(&heard.from), peer.clone());
            heard.telling.spawn(told);
        }
    }
}

async fn tell(
    mut lines: broadcast::Receiver<Arc<Line>>,
    from: Arc<Mutex<Option<LoggingLevel>>>,
    peer: Peer<RoleServer>,
) {
    loop {
        let line = match lines.recv().await {
            Ok(line) => line,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let level = match line.level {
            Level::ERROR => LoggingLevel::Error,
            Level::WARN => LoggingLevel::Warning,
            _ => LoggingLevel::Info,
        };
        let wanted = unpoisoned(&from).as_ref().is_some_and(|from| rank(&level) >= rank(from));
        if wanted {
            let notice =
                LoggingMessageNotificationParam::new(level, line.data.clone()).with_logger(line.logger);
            if peer.notify_logging_message(notice).await.is_err() {
                return;
            }
        }
    }
}

fn rank(level: &LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

fn unpoisoned<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
