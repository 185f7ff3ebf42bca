//! What all sessions of this process share, whatever their transport: the memories, what is offered of them,
//! and how much is done at once.

use tokio_util::sync::CancellationToken;
use warm_engine::{ArchiveKey, OpenError, Vault, VaultOptions, contract::ErrorCode};

use crate::{changes::Feeds, load::Load, memory::Failure, namespaces::Namespaces, tools::Offer};

/// See the module.
pub struct Service {
    pub namespaces: Namespaces,
    pub offer: Offer,
    pub load: Load,
    pub feeds: Feeds,
    /// Cancelled when this process is about to end, so that those who only listen are let go.
    pub ending: CancellationToken,
    /// What opens the store also seals an export.
    vault: VaultOptions,
}

impl Service {
    pub fn new(namespaces: Namespaces, vault: VaultOptions, offer: Offer, load: Load) -> Self {
        Self { namespaces, offer, load, feeds: Feeds::default(), ending: CancellationToken::new(), vault }
    }

    /// The key that seals an export. An identity is read anew, and not kept where the store needs it no more: it
    /// must still be the one that opens the store.
    pub fn archive_key(&self) -> Result<ArchiveKey, Failure> {
        let key = || {
            let key = ArchiveKey::of(&self.vault)?;
            match self.vault.passphrase {
                None => Ok(key.for_all_of(&Vault::open_existing(&self.vault)?)),
                Some(_) => Ok(key),
            }
        };
        key().map_err(|error: OpenError| Failure::new(ErrorCode::StoreUnavailable, error.to_string()))
    }
}
