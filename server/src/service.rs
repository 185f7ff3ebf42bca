//! What all sessions of this process share, whatever their transport: the memories, what is offered of them,
//! and how much is done at once.

use warm_engine::{ArchiveKey, VaultOptions, contract::ErrorCode};

use crate::{load::Load, memory::Failure, namespaces::Namespaces, tools::Offer};

/// See the module.
pub struct Service {
    pub namespaces: Namespaces,
    pub offer: Offer,
    pub load: Load,
    /// What opens the store also seals an export.
    vault: VaultOptions,
}

impl Service {
    pub fn new(namespaces: Namespaces, vault: VaultOptions, offer: Offer, load: Load) -> Self {
        Self { namespaces, offer, load, vault }
    }

    /// The key that seals an export.
    pub fn archive_key(&self) -> Result<ArchiveKey, Failure> {
        ArchiveKey::of(&self.vault)
            .map_err(|error| Failure::new(ErrorCode::StoreUnavailable, error.to_string()))
    }
}
