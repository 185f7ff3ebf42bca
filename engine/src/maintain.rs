//! The one background thread of an open store: fills the index, then keeps it tidy.
//!
//! Files are served from the first moment; recall waits until the index is filled.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::published::{Due, Published, analyse_record};
use crate::state::State;
use crate::store::StoreError;

/// Passages are moved out of the index's memory level at least this often while it is filled.
const RECORDS_PER_PIECE: usize = 1_024;

/// Ends its thread when dropped.
pub(crate) struct Maintainer {
    published: Arc<Published>,
    thread: Option<JoinHandle<()>>,
}

impl Maintainer {
    /// Starts with the index empty and `published` as the store was loaded, before the first commit.
    pub(crate) fn start(published: Arc<Published>) -> Result<Self, StoreError> {
        let loaded = published.latest();
        // What is to be read must stay readable through the commits that come meanwhile.
        if loaded.names.len() > 0 {
            loaded.pin()?;
        }
        let of_thread = Arc::clone(&published);
        let run = move || {
            let filled = catch_unwind(AssertUnwindSafe(|| fill(&of_thread, &loaded)));
            drop(loaded);
            of_thread.set_filled(filled.unwrap_or(false));
            loop {
                match of_thread.wait_due() {
                    Due::Flush => of_thread.maintain_index(false),
                    Due::Erase => of_thread.maintain_index(true),
                    Due::Stop => return,
                }
            }
        };
        let thread = thread::Builder::new().name("warm-index".into()).spawn(run);
        let thread = thread.map_err(|error| StoreError::Medium(error.to_string().into()))?;
        Ok(Self { published, thread: Some(thread) })
    }
}

/// False if it was told to stop before every record was in.
fn fill(published: &Published, loaded: &State) -> bool {
    let mut entries: Vec<_> = loaded.names.iter().collect();
    // Results that score alike are ordered by age, as if the memories had just been written.
    entries.sort_by(|a, b| (a.updated_at, &a.key).cmp(&(b.updated_at, &b.key)));
    for piece in entries.chunks(RECORDS_PER_PIECE) {
        for entry in piece {
            if published.stopping() {
                return false;
            }
            match loaded.read(entry) {
                Ok(Some(record)) => published.index_existing(&entry.id, analyse_record(&entry.id, &record)),
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "a record could not be indexed"),
            }
        }
        published.maintain_index(false);
    }
    true
}

impl Drop for Maintainer {
    fn drop(&mut self) {
        self.published.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the index thread panicked");
        }
    }
}
