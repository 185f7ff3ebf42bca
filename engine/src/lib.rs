//! The engine of WARM: a sealed, searchable memory for AI agents.
//!
//! [`Vault`] opens a data directory with the owner's key, and [`Engine`] serves the memories of
//! one namespace in it: the memory tool's file commands, memories by name, and recall. What is
//! kept on disk is sealed records and their sealed keys, and nothing else: names and index are made
//! from them when a store is opened.
//!
//! Dependencies inside the crate point one way, from left to right:
//!
//! ```text
//! engine, repair, recipients -> open, memory, transfer, archive, listing -> records, recall -> commit, maintain -> published
//!        -> draft -> operations, state -> selection -> record, seat -> vault -> lock, files -> open_error -> store -> sealed
//! commit -> turns
//! ```
#![forbid(unsafe_code)]

pub mod archive;
mod commit;
pub mod contract;
mod draft;
mod engine;
mod error;
mod files;
mod filter;
pub mod index;
mod limits;
mod listing;
mod load;
mod lock;
mod maintain;
mod memory;
mod open;
mod open_error;
mod operations;
mod path;
#[cfg(test)]
mod power_loss;
mod published;
mod recall;
pub mod recipients;
mod record;
mod records;
pub mod repair;
mod sealed;
mod seat;
mod selection;
mod state;
mod store;
mod time;
mod transfer;
mod turns;
mod vault;

pub use engine::Engine;
pub use error::Error;
pub use memory::CommandError;
pub use open_error::OpenError;
pub use path::PathError;
pub use recall::RecallError;
pub use records::RecordError;
pub use sealed::FORMAT_VERSION;
pub use seat::{Claim, Seat};
pub use store::StoreError;
pub use transfer::TransferError;
pub use vault::{ArchiveKey, Opener, Passphrase, Prover, Sealer, Vault, VaultOptions};
