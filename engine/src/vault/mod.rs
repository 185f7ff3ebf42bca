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
//! stores/<hash>/          one directory per namespace
//! ```

mod archive_key;
mod change;
mod identity;
mod keyring;
mod open;
mod operation_key;
mod padding;
mod passphrase_file;
mod proof;
mod recipients;
mod record_keys;
mod seal;
mod secret;
mod session;

pub use archive_key::ArchiveKey;
pub(crate) use archive_key::UnopenedArchive;
pub(crate) use keyring::StoreSecret;
pub use open::{Vault, VaultOptions};
pub(crate) use operation_key::OperationKey;
pub use proof::Prover;
pub(crate) use recipients::{MOST as MOST_RECIPIENTS, MOST_PASSPHRASES, label_fault};
pub use recipients::{Recipient, RecipientKind};
pub(crate) use record_keys::RecordKeys;
pub(crate) use seal::UnsealError;
pub use secret::Passphrase;
pub use session::{Opener, Sealer};
