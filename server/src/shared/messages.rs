//! What a guest and the owner say to each other once they have met.

use serde::{Deserialize, Serialize};
use warm_engine::contract::{Copying, Memory as Stored, OperationId};

use crate::memory::{Failure, Reply, Request};

/// A question to the owner.
#[derive(Serialize)]
pub enum Ask<'a> {
    /// Answered by one [`Told::Outcome`]; while it is `watched`, by any number of [`Told::Progress`] before.
    Request { operation: Option<OperationId>, request: &'a Request, watched: bool },
    /// Answered by a [`Told::Memory`] for each, and [`Told::Dumped`] at the end.
    Dump(&'a Copying),
}

/// The same, as the owner reads it.
#[derive(Deserialize)]
pub enum Asked {
    Request { operation: Option<OperationId>, request: Box<Request>, watched: bool },
    Dump(Copying),
}

/// An answer, or a part of one.
#[derive(Serialize, Deserialize)]
pub enum Told {
    Outcome {
        outcome: Result<Reply, Failure>,
        /// Whether the owner's index is filled.
        recall_ready: bool,
    },
    /// How far the work is; said all the time, so that one who gave it up is noticed by not being there.
    Progress {
        done: u64,
        total: u64,
    },
    Memory(Box<Stored>),
    Dumped(Result<u64, Failure>),
}
