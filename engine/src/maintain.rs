//! The one background thread of an open store: fills the index, then keeps it tidy, and keeps what was derived.
//!
//! Files are served from the first moment; recall waits until the index is filled.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rayon::prelude::*;

use crate::commit::Commits;
use crate::index::text::TextIndex;
use crate::pieces::{self, FEWEST_MEMORIES, Leaf};
use crate::published::{Due, Published};
use crate::state::State;
use crate::store::StoreError;
use crate::vault::PieceKey;

/// Leaves that are filled into the index at once.
const LEAVES_AT_ONCE: usize = 32;
/// Passages that are held in the index's memory level while it is filled: about a hundred megabytes.
const MOST_UNWRITTEN: u64 = 131_072;
/// Leaves of which the derived data is kept by one commit.
const KEPT_AT_ONCE: usize = 64;
/// Leaves whose memories are looked for at once, which takes a look at all names.
const LOOKED_FOR_AT_ONCE: usize = 4_096;
/// Leaves of which the derived data is still kept when the store closes: few, since others may wait for it.
const KEPT_AT_THE_END: usize = 64;

/// Ends its thread when dropped.
pub(crate) struct Maintainer {
    published: Arc<Published>,
    thread: Option<JoinHandle<()>>,
}

impl Maintainer {
    /// Starts with the index empty and `published` as the store was loaded, before the first commit. `keys` are
    /// those of the pieces that are there.
    pub(crate) fn start(
        published: Arc<Published>,
        commits: Arc<Commits>,
        keys: HashMap<u64, PieceKey>,
    ) -> Result<Self, StoreError> {
        let loaded = published.latest();
        published.reserve(loaded.names.len());
        // What is to be read must stay readable through the commits that come meanwhile.
        if loaded.names.len() > 0 {
            loaded.pin()?;
        }
        let of_thread = Arc::clone(&published);
        let run = move || {
            let filled = catch_unwind(AssertUnwindSafe(|| fill(&of_thread, &loaded, &keys)));
            let filled = filled.unwrap_or(None);
            drop((loaded, keys));
            of_thread.set_filled(filled.is_some());
            of_thread.maintain_index(false);
            if let Some(stale) = filled {
                keep_if_large(&of_thread, stale);
            }
            loop {
                match of_thread.wait_due() {
                    Due::Flush => of_thread.maintain_index(false),
                    Due::Erase => {
                        of_thread.maintain_index(true);
                        keep(&of_thread, &commits, KEPT_AT_ONCE);
                    }
                    Due::Keep => keep(&of_thread, &commits, LOOKED_FOR_AT_ONCE),
                    Due::Stop => {
                        keep(&of_thread, &commits, KEPT_AT_THE_END);
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("warm-index".into()).spawn(run);
        let thread = thread.map_err(|error| StoreError::Medium(error.to_string().into()))?;
        Ok(Self { published, thread: Some(thread) })
    }
}

/// Fills the index. Returns the leaves of which nothing is kept; nothing if it was told to stop before every
/// record was in.
fn fill(published: &Published, loaded: &State, keys: &HashMap<u64, PieceKey>) -> Option<Vec<u64>> {
    let leaves: Vec<(u64, Leaf)> = pieces::leaves(&loaded.names).into_iter().collect();
    let (mut stale, mut derived) = (Vec::new(), Vec::new());
    let mut chunks = leaves.chunks(LEAVES_AT_ONCE);
    loop {
        let insert = || {
            for documents in derived {
                published.index_existing(documents);
            }
            // To write segments takes longer than to fill the index, and nobody has to wait for it.
            if published.index(TextIndex::unwritten) > MOST_UNWRITTEN {
                published.maintain_index(false);
            }
        };
        let derive = || {
            let chunk = chunks.next()?;
            let derive = |(number, leaf): &(u64, Leaf)| {
                (*number, pieces::derive(loaded, keys, *number, leaf, &|| published.count_filled()))
            };
            Some(chunk.par_iter().map(derive).collect::<Vec<_>>())
        };
        // What was derived is entered while the next is.
        let ((), next) = rayon::join(insert, derive);
        if published.stopping() {
            return None;
        }
        let Some(next) = next else { return Some(stale) };
        stale.extend(next.iter().filter(|(_, derived)| !derived.was_kept).map(|(number, _)| *number));
        derived = next.into_iter().map(|(_, derived)| derived.documents).collect();
    }
}

fn keep_if_large(published: &Published, stale: Vec<u64>) {
    if published.latest().names.len() >= FEWEST_MEMORIES {
        published.keep_from_now_on(stale);
    }
}

/// Keeps what is derived from at most so many stale leaves, or from fewer if something else is due meanwhile.
fn keep(published: &Published, commits: &Commits, most: usize) {
    let stale = published.take_stale(most);
    if stale.is_empty() || published.is_broken() {
        return;
    }
    let leaves = pieces::some_leaves(&published.latest().names, &stale);
    let mut chunks = leaves.chunks(KEPT_AT_ONCE);
    while let Some(chunk) = chunks.next() {
        let kept = published.state().and_then(|state| commits.keep(pieces::make(&state, chunk)?));
        if let Err(error) = kept {
            // The records say the same.
            tracing::warn!(%error, "derived data could not be kept");
            return;
        }
        if published.is_awaited() {
            return published.keep_from_now_on(chunks.flatten().map(|(number, _)| *number));
        }
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::commit::CommitState;
    use crate::lock::StoreLock;
    use crate::open::{Mode, Opened, open_store};
    use crate::record::Record;
    use crate::vault::{Vault, VaultOptions};

    #[test]
    fn what_is_due_meanwhile_is_not_kept_waiting_and_the_rest_is_kept_later() {
        let dir = tempfile::tempdir().unwrap();
        let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
        let vault = Vault::open(&options).unwrap();
        let lock = StoreLock::take(dir.path(), Duration::ZERO).unwrap();
        let opened = open_store(&vault, "n", dir.path(), Some(lock), Mode::Create).unwrap();
        let Opened { store, keys, names, operations, copies, lock: _lock, .. } = opened;
        let published = Arc::new(Published::new(State::new(names, Arc::clone(&store), 1)));
        let commits = Commits::new(store, Arc::clone(&published), CommitState { operations, keys, copies });
        let written: Result<(), StoreError> = commits.write(|draft| {
            for n in 0..70 {
                draft.put(Record::new(format!("k{n}"), "text".into(), 0, 0));
            }
            Ok(())
        });
        written.unwrap();
        let kept = || {
            let state = published.state().unwrap();
            (0..3).filter(|leaf| state.piece(*leaf).unwrap().is_some()).collect::<Vec<_>>()
        };
        // So many that one commit does not do; of most nothing is left.
        let many: Vec<u64> = (0..KEPT_AT_ONCE as u64).map(|n| n + 1_000).collect();
        published.keep_from_now_on(many.iter().copied().chain([0, 1]));
        assert!(!published.is_awaited());
        keep(&published, &commits, LOOKED_FOR_AT_ONCE);
        assert_eq!((kept(), published.take_stale(9)), (vec![0, 1, 2], vec![]));
        published.keep_from_now_on(many);
        published.keep_from_now_on([0]);
        published.stop();
        assert!(published.is_awaited());
        keep(&published, &commits, LOOKED_FOR_AT_ONCE);
        assert_eq!(published.take_stale(9), [1_000 + KEPT_AT_ONCE as u64 - 1]);
    }
}
