//! The sessions of the handshake revisions: how many there are at once, and which of them makes way for a new one.
//!
//! A client need not say that it goes, and one that was left open over night should go on where it was. So a session
//! is kept long, and when there are too many the one that was not used for the longest time ends. Its client is told
//! that it is not known any more, at which clients open a new one. What a session is is rmcp's.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rmcp::{
    model::RequestId,
    transport::streamable_http_server::session::{SessionId, SessionManager, local::LocalSessionManager},
};

/// Most sessions at once. Each takes up about 50 kB.
const MOST_SESSIONS: usize = 1_024;
/// A session that nobody used for so long ends.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// See the module.
pub struct Sessions {
    pub manager: Arc<LocalSessionManager>,
    used: Mutex<HashMap<SessionId, Instant>>,
    in_progress: InProgress,
    most: usize,
}

/// Requests that are not yet answered, by their session and id.
type InProgress = Arc<Mutex<HashSet<(String, RequestId)>>>;

/// One of them; no longer so when dropped.
pub struct Begun {
    among: InProgress,
    request: (String, RequestId),
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.among.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}

impl Sessions {
    fn new(most: usize) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        Self { manager: Arc::new(manager), used: Mutex::default(), in_progress: Arc::default(), most }
    }

    /// A session was asked for something.
    pub fn used(&self, id: &str) {
        if let Some(used) = self.lock().get_mut(id) {
            *used = Instant::now();
        }
    }

    /// A request of a session begins, unless another of its id is in progress there: rmcp would answer one of the two
    /// and leave the other without an answer for ever.
    pub fn begin(&self, session: &str, id: RequestId) -> Option<Begun> {
        let request = (session.to_owned(), id);
        let new = self.in_progress.lock().unwrap_or_else(PoisonError::into_inner).insert(request.clone());
        new.then(|| Begun { among: Arc::clone(&self.in_progress), request })
    }

    /// A session was opened; if there are too many now, another ends.
    pub async fn opened(&self, id: &str) {
        self.lock().insert(id.into(), Instant::now());
        if self.lock().len() <= self.most {
            return;
        }
        // Some ended by themselves.
        let there = self.manager.sessions.read().await;
        self.lock().retain(|id, _| there.contains_key(id));
        drop(there);
        while let Some(oldest) = self.one_too_many() {
            tracing::info!(most = self.most, "a session makes way for a new one");
            if let Err(error) = self.manager.close_session(&oldest).await {
                tracing::warn!(%error, "a session did not end in order");
            }
        }
    }

    /// Whether a session is there.
    pub async fn has(&self, id: &str) -> bool {
        self.manager.sessions.read().await.contains_key(id)
    }

    fn one_too_many(&self) -> Option<SessionId> {
        let mut used = self.lock();
        if used.len() <= self.most {
            return None;
        }
        let oldest = used.iter().min_by_key(|(_, at)| **at).map(|(id, _)| Arc::clone(id))?;
        used.remove(&oldest);
        Some(oldest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Instant>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new(MOST_SESSIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn the_session_that_was_not_used_for_the_longest_time_makes_way() {
        let sessions = Sessions::new(3);
        let mut ids = Vec::new();
        let mut transports = Vec::new();
        for _ in 0..4 {
            let (id, transport) = sessions.manager.create_session().await.expect("a session");
            transports.push(transport);
            sessions.opened(&id).await;
            ids.push(id);
            // The first is in use all the time.
            sessions.used(&ids[0]);
        }
        let mut there = Vec::new();
        for id in &ids {
            there.push(sessions.has(id).await);
        }
        assert_eq!(there, [true, false, true, true]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn sessions_that_ended_by_themselves_make_room() {
        let sessions = Sessions::new(2);
        let (mut ids, mut transports) = (Vec::new(), Vec::new());
        for n in 0..3 {
            let (id, transport) = sessions.manager.create_session().await.expect("a session");
            transports.push(transport);
            sessions.opened(&id).await;
            if n == 1 {
                sessions.manager.close_session(&id).await.expect("it ends");
            }
            ids.push(id);
        }
        assert!(sessions.has(&ids[0]).await && sessions.has(&ids[2]).await);
    }
}
