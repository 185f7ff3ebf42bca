//! What reaches stderr as a log line.
//!
//! Owns the one filter that decides it. rmcp's log lines below `error` print whole requests, and
//! with them memory text, so no setting lets them through; `RUST_LOG` is not read at all. A panic is
//! reported by its place alone, since its message may quote what was being worked on.

use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::options::LogLevel;

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
    let targets = Targets::new()
        .with_target("warm_mcp", own)
        .with_target("warm_engine", own)
        .with_target("rmcp", own.min(LevelFilter::ERROR));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // A second start, which only a test could make, keeps the first filter.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place = place.as_deref().unwrap_or("unknown"), "a fault in warm-mcp");
    }));
}
