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
//! engine, repair, recipients -> open, memory, transfer, archive, listing, suggest -> records, recall -> maintain
//!        -> commit, pieces -> published, erasures, receipt -> changes, draft -> operations, state -> places, selection
//!        -> record, seat -> ledger -> vault -> lock, files -> open_error -> store -> sealed
//! commit -> turns
//! ```
#![forbid(unsafe_code)]

mod anchor;
pub mod archive;
mod changes;
mod commit;
pub mod contract;
mod draft;
mod engine;
mod erasures;
mod error;
mod files;
mod filter;
#[cfg(test)]
mod forensics;
pub mod index;
mod ledger;
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
mod pieces;
mod places;
#[cfg(test)]
mod power_loss;
mod progress;
mod published;
mod recall;
pub mod receipt;
pub mod recipients;
mod record;
mod records;
pub mod repair;
mod sealed;
mod seat;
mod selection;
mod state;
mod store;
mod suggest;
mod time;
mod transfer;
mod turns;
mod vault;

pub use changes::ChangeLog;
pub use engine::Engine;
pub use erasures::ReceiptsError;
pub use error::Error;
pub use ledger::Namespaces;
pub use memory::CommandError;
pub use open_error::OpenError;
pub use path::PathError;
pub use progress::Progress;
pub use recall::RecallError;
pub use records::RecordError;
pub use sealed::FORMAT_VERSION;
pub use seat::{Claim, Seat};
pub use store::StoreError;
pub use transfer::TransferError;
pub use vault::{ArchiveKey, Opener, Passphrase, Prover, Sealer, Vault, VaultOptions};
