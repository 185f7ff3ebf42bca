//! The engine of WARM: a sealed, searchable memory for AI agents.
#![forbid(unsafe_code)]
/// Requests and replies.
pub mod contract;
