//! Waiting for long work on behalf of a client.
//!
//! Owns what the client hears meanwhile, if it asked to: how far the work is, a few times a second, never twice the same
//! and never after the answer. One who cancels is told nothing more, and work that only reads ends early.

use std::time::Duration;

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};
use tokio::task::{JoinError, JoinHandle};
use warm_engine::Progress;

/// How often a client is told.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// Waits for the work to end.
pub async fn attend<T>(
    mut work: JoinHandle<T>,
    progress: &Progress,
    context: &RequestContext<RoleServer>,
) -> Result<T, JoinError> {
    let token = context.meta.get_progress_token();
    let mut told = 0;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = context.ct.cancelled(), if !progress.is_given_up() => progress.give_up(),
            () = tokio::time::sleep(TOLD_EVERY), if token.is_some() => {}
        }
        let news = progress.get().filter(|(done, _)| *done > told && !progress.is_given_up());
        if let (Some(token), Some((done, total))) = (&token, news) {
            told = done;
            let notice = ProgressNotificationParam::new(token.clone(), done as f64).with_total(total as f64);
            if let Err(error) = context.peer.notify_progress(notice).await {
                tracing::debug!(%error, "a client could not be told how far its request is");
            }
        }
    }
}
