//! One error for callers that treat all operations alike.

use std::fmt;

use serde_json::{Value, json};

use crate::contract::ErrorCode;
use crate::erasures::ReceiptsError;
use crate::memory::CommandError;
use crate::recall::RecallError;
use crate::records::RecordError;
use crate::transfer::TransferError;

/// Why an operation of the [`Engine`](crate::Engine) did nothing.
///
/// `Display` is meant for the caller and may echo what it sent; `Debug` shows the kind alone.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command of the memory tool.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Remember, get, list or forget.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Recall.
    #[error(transparent)]
    Recall(#[from] RecallError),
    /// A dump or restore.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// Receipts.
    #[error(transparent)]
    Receipts(#[from] ReceiptsError),
}

impl Error {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Command(error) => error.code(),
            Self::Record(error) => error.code(),
            Self::Recall(error) => error.code(),
            Self::Transfer(error) => error.code(),
            Self::Receipts(error) => error.code(),
        }
    }

    /// What a program may want to know beyond the message.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Command(CommandError::TooLarge { bytes, limit, .. }) => {
                Some(json!({ "size": bytes, "limit": limit }))
            }
            Self::Record(RecordError::TooLarge { size, limit, .. }) => {
                Some(json!({ "size": size, "limit": limit }))
            }
            Self::Record(RecordError::VersionConflict { current, .. }) => Some(json!({ "current": current })),
            Self::Transfer(TransferError::TextTooLarge { bytes, limit, .. }) => {
                Some(json!({ "size": bytes, "limit": limit }))
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?})", self.code())
    }
}
