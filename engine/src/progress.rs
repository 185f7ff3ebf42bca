//! How far a long piece of work has come, and whether anyone still waits for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by the one who works and the one who waits. What is counted, and whether it can be given up, is said where
/// the work is done.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    given_up: AtomicBool,
}

impl Progress {
    /// Says how far the work has come, of how much.
    pub(crate) fn set(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// As heard from another process that does the work.
    pub fn hear(&self, done: u64, total: u64) {
        self.set(done, total);
    }

    /// How far it has come, of how much; nothing before it began to count.
    pub fn get(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed).min(total), total))
    }

    /// Lets a long read end early with an error. A write that began is finished all the same.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits any longer.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}
