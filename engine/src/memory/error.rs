//! Why a command of the memory tool was refused, in the words that a model expects.

use std::fmt;

use crate::contract::ErrorCode;
use crate::path::PathError;
use crate::store::StoreError;

/// Why a [`Command`](crate::contract::Command) did nothing.
///
/// `Display` is what the model reads and echoes what it asked for; `Debug` shows the kind alone.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The path breaks a rule.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing to view or edit.
    #[error("The path {0} does not exist. Please provide a valid path.")]
    NothingThere(String),
    /// Nothing to delete or rename there.
    #[error("The path {0} does not exist")]
    Missing(String),
    /// A directory where a file is needed.
    #[error("The path {0} is not a file.")]
    NotAFile(String),
    /// `create` never overwrites.
    #[error("File {0} already exists")]
    FileExists(String),
    /// `rename` never overwrites.
    #[error("The destination {0} already exists")]
    DestinationExists(String),
    /// A file stands where a directory would have to be.
    #[error("Cannot write {path}: {file} is a file, not a directory")]
    UnderAFile {
        /// What was to be written.
        path: String,
        /// The file in the way.
        file: String,
    },
    /// A directory can't be moved below itself.
    #[error("Cannot move {old_path} into itself: {new_path} is inside it")]
    IntoItself {
        /// The directory.
        old_path: String,
        /// Where it was to go.
        new_path: String,
    },
    /// The root stays.
    #[error("Cannot {0} the /memories directory itself")]
    Root(&'static str),
    /// `old_str` is not in the file.
    #[error("No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")]
    NoMatch {
        /// What was looked for.
        old_str: String,
        /// Where.
        path: String,
    },
    /// `old_str` is in the file more than once.
    #[error(
        "No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}. Please ensure it is unique"
    )]
    ManyMatches {
        /// What was looked for.
        old_str: String,
        /// The line of each occurrence, separated by commas.
        lines: String,
    },
    /// `old_str` is empty.
    #[error("No replacement was performed. old_str must not be empty; use insert to add text to {0}.")]
    EmptyOldStr(String),
    /// `insert_line` is beyond the file.
    #[error("Invalid `insert_line` parameter: {line}. It should be within the range [0, {lines}].")]
    InsertLine {
        /// What was asked for.
        line: i64,
        /// How many lines the file has.
        lines: usize,
    },
    /// `view_range` is not a range.
    #[error(
        "Invalid `view_range` parameter: use [start, end] with lines counted from 1, or [start, -1] to view to the end."
    )]
    ViewRange,
    /// The file would be over the limit.
    #[error(
        "File {path} would be {bytes} bytes, over the limit of {limit} bytes. Split the content into several files."
    )]
    TooLarge {
        /// The file.
        path: String,
        /// How large it would be.
        bytes: u64,
        /// The limit in force.
        limit: u64,
    },
    /// More lines than line numbers have digits.
    #[error("File {0} exceeds maximum line limit of 999,999 lines.")]
    TooManyLines(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommandError {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Path(_)
            | Self::NotAFile(_)
            | Self::UnderAFile { .. }
            | Self::IntoItself { .. }
            | Self::ManyMatches { .. }
            | Self::EmptyOldStr(_)
            | Self::Root(_)
            | Self::InsertLine { .. }
            | Self::ViewRange => ErrorCode::InvalidArgument,
            Self::NothingThere(_) | Self::Missing(_) | Self::NoMatch { .. } => ErrorCode::NotFound,
            Self::FileExists(_) | Self::DestinationExists(_) => ErrorCode::AlreadyExists,
            Self::TooLarge { .. } | Self::TooManyLines(_) => ErrorCode::TooLarge,
            Self::Store(error) => error.code(),
        }
    }
}

impl fmt::Debug for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandError({:?})", self.code())
    }
}
