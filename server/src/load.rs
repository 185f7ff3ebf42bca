//! How much is done at once.
//!
//! Owns two bounds over all sessions of this process: how many calls are served at a time, and how many may
//! wait for that. A call over the second is told so at once, so that a client that sends faster than it is
//! served hears of it. The order of the calls of one session is the session's business.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use warm_engine::contract::ErrorCode;

use crate::memory::Failure;

/// Served at a time, unless told otherwise. Most calls are short, and writes share their syncs.
pub const MAX_CONCURRENT: usize = 64;

/// Waiting at a time, unless told otherwise: as many as a session on stdin reads ahead, so that such a client
/// may send what it likes and is slowed down rather than refused.
pub const MAX_PENDING: usize = 4_096;

/// See the module.
pub struct Load {
    pub max_concurrent: usize,
    pub max_pending: usize,
    slots: Arc<Semaphore>,
    pending: Arc<AtomicUsize>,
}

impl Load {
    pub fn new(max_concurrent: usize, max_pending: usize) -> Self {
        let slots = max_concurrent.clamp(1, Semaphore::MAX_PERMITS);
        Self { max_concurrent, max_pending, slots: Arc::new(Semaphore::new(slots)), pending: Arc::default() }
    }

    /// Lets a call wait, or refuses it.
    pub fn arrive(&self) -> Result<Waiting, Failure> {
        let waiting = Waiting(Arc::clone(&self.pending));
        if self.pending.fetch_add(1, Ordering::Relaxed) < self.max_pending {
            return Ok(waiting);
        }
        Err(Failure::new(
            ErrorCode::Busy,
            format!(
                "{} calls are waiting already, the most that this server lets wait (--max-pending), so this one \
                 was not begun. Send it again when some of them are answered.",
                self.max_pending
            ),
        ))
    }

    /// Waits until another call may be served. In the order of asking.
    pub async fn slot(&self) -> Slot {
        // It is never closed; if it were, serving would be better than not.
        Slot { _permit: Arc::clone(&self.slots).acquire_owned().await.ok() }
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::new(MAX_CONCURRENT, MAX_PENDING)
    }
}

/// A call that waits; no longer so when dropped.
pub struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The right to be served; given back when dropped.
pub struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_wait_do_and_one_more_is_refused_until_one_is_gone() {
        let load = Load::new(1, 2);
        let first = load.arrive().expect("there is room");
        let _second = load.arrive().expect("there is room");
        for _ in 0..3 {
            let refused = load.arrive().err().expect("there is no room");
            assert_eq!(refused.code, ErrorCode::Busy);
            assert!(refused.message.contains("--max-pending"), "{}", refused.message);
        }
        drop(first);
        assert!(load.arrive().is_ok());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn no_more_than_a_stated_number_are_served_at_a_time() {
        let load = Load::new(2, 10);
        let (one, _two) = (load.slot().await, load.slot().await);
        let mut third = Box::pin(load.slot());
        let soon = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, &mut third).await.is_err());
        drop(one);
        assert!(tokio::time::timeout(soon, &mut third).await.is_ok());
    }
}
