//! Who may open the memories: identities, passphrases, the store secret and the keys under it.
//!
//! Owns every key and every seal. Does not know what a record means, nor where its bytes are kept
//! (that is [`store`](crate::store)).
//!
//! On disk, below the data directory:
//!
//! ```text
//! FORMAT                  the format version, in plain text
//! identity.txt            the age identity, unless it is kept elsewhere
//! keys/recipients.age     the keyring, wrapped for all its recipients
//! keys/passphrase-1.age   an identity that is one of them, sealed to a passphrase
//! stores/<hash>/          one directory per namespace: the store, its slot and its lock
//! ```

mod archive_key;
mod change;
#[cfg(test)]
pub(crate) mod forensic;
mod identity;
mod key_tree;
mod keyring;
mod log;
mod open;
mod operation_key;
mod padding;
mod passphrase_file;
mod proof;
mod recipients;
mod record_key;
mod seal;
mod secret;
mod session;
mod slot;
mod store_keys;

pub use archive_key::ArchiveKey;
pub(crate) use archive_key::UnopenedArchive;
pub(crate) use key_tree::{Branches, Changes, NewPiece, PieceKey, Proof, ProvenPlace, Version, leaf_of};
pub(crate) use keyring::StoreSecret;
pub(crate) use log::{ChainEnd, Copied, Erasure, LogKeys, LoggedErasure};
pub use open::{Vault, VaultOptions};
pub(crate) use operation_key::OperationKey;
pub use proof::Prover;
pub(crate) use recipients::{MOST as MOST_RECIPIENTS, MOST_PASSPHRASES, label_fault};
pub use recipients::{Recipient, RecipientKind};
pub(crate) use record_key::RecordKey;
pub(crate) use seal::encode;
pub use secret::Passphrase;
pub use session::{Opener, Sealer};
pub(crate) use slot::{SlotError, SlotMedium};
pub(crate) use store_keys::{StoreKeys, StoreKeysError, ToErase, ToLog};
