//! The memory tree: files below `/memories`, and the six commands of Anthropic's memory tool.
//!
//! Owns the path rules and the exact strings of every result. Files are ordinary records whose
//! name is a path; a directory exists while a file is below it. How an edit becomes durable is
//! [`commit`](crate::commit)'s concern.
//!
//! The strings are those of the memory tool's documentation and of
//! `BetaLocalFilesystemMemoryTool` in Anthropic's SDKs. Chosen differences: rename and delete of a
//! directory are one transaction, a directory is as large as the files below it, a trailing newline
//! shows no extra line, an empty `old_str` and a malformed `view_range` are refused, long views and
//! snippets are cut, at most 100 lines are named for a text that occurs too often, and the path rules
//! are stricter.

mod edit;
mod error;
mod lines;
mod view;

pub(crate) use edit::{Bounds, edit};
pub use error::CommandError;
pub(crate) use view::view;
