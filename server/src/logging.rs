//! What reaches stderr, or a client that asks, as a log line.
//!
//! Owns the filters that decide it. rmcp's log lines below `error` print whole requests, and
//! with them memory text, so no setting lets them through; `RUST_LOG` is not read at all. A panic is
//! reported by its place alone, since its message may quote what was being worked on.

use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::{Layer, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::{client_log::ToClients, options::LogLevel};

/// Starts logging, once per process.
pub fn start(level: LogLevel) {
    let own = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let ours = |level| Targets::new().with_target("warm_mcp", level).with_target("warm_engine", level);
    let targets = ours(own).with_target("rmcp", own.min(LevelFilter::ERROR));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // What stderr shows is the owner's to choose, what a client hears the client's.
    let to_clients = ToClients.with_filter(ours(LevelFilter::INFO));
    // A second start, which only a test could make, keeps the first filter.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets)).with(to_clients).try_init();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place = place.as_deref().unwrap_or("unknown"), "a fault in warm-mcp");
    }));
}
