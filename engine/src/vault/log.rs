//! The log of what was forgotten and what was copied out, and the store's signature on it.
//!
//! Two chains of entries, each sealed: *erasures*, one for every receipt, and *copies*, one for every backup and
//! export. Each entry's digest goes into the chain's hash, and the head of the store holds length and hash of
//! both chains, so that no entry can be left out or changed unseen. An erasure's digest is the id of its receipt.
//! Signatures are Ed25519 (RFC 8032). What is hashed and signed is written down in `docs/format.md`.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::key_tree::{Hash, Proof};
use super::seal::{UnsealError, open_with_nonce, seal_with_nonce};
use super::secret::Key;
use crate::contract::CopyKind;
use crate::sealed::Chain;

/// Where a chain stands.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainEnd {
    pub(crate) length: u64,
    pub(crate) hash: Hash,
}

impl ChainEnd {
    /// Where it stands once an entry of this digest is added.
    pub(crate) fn with(&self, digest: &Hash) -> Self {
        let hash = Sha256::new().chain_update(b"warm chain\0").chain_update(self.hash).chain_update(digest);
        // A receipt that is checked may name any length.
        Self { length: self.length.saturating_add(1), hash: hash.finalize().into() }
    }
}

/// What a receipt says, as it is hashed and signed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Erasure {
    /// Milliseconds since 1970, UTC.
    pub(crate) at: u64,
    /// How many memories were forgotten.
    pub(crate) count: u64,
    /// Its number in the chain of erasures, and the chain's hash before it.
    pub(crate) index: u64,
    pub(crate) log_before: Hash,
    pub(crate) tree_before: Hash,
    pub(crate) tree_after: Hash,
    pub(crate) proof: Proof,
    /// Copies that may still hold what was forgotten.
    pub(crate) copies: Vec<Copied>,
}

/// An entry of the chain of erasures.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LoggedErasure {
    pub(crate) erasure: Erasure,
    pub(crate) signature: Vec<u8>,
    /// Which memories were forgotten, by numbers that mean nothing else: `restore` knows them again.
    pub(crate) origins: Vec<u64>,
}

/// An entry of the chain of copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// Milliseconds since 1970, UTC.
    pub(crate) at: u64,
    pub(crate) kind: CopyKind,
    /// Where it was written to, as far as that is known.
    pub(crate) place: String,
}

impl Copied {
    pub(crate) fn digest(&self) -> Hash {
        let place = Sha256::digest(&self.place);
        let hash = Sha256::new().chain_update(b"warm copy\0").chain_update(self.at.to_le_bytes());
        hash.chain_update([self.kind as u8]).chain_update(place).finalize().into()
    }
}

impl Erasure {
    /// The receipt's id: a digest of all of it, and of the store's public key.
    pub(crate) fn id(&self, public: &[u8; 32]) -> Hash {
        let mut copies = Sha256::new();
        self.copies.iter().for_each(|copy| copies.update(copy.digest()));
        let hash = Sha256::new().chain_update(b"warm receipt\0").chain_update(public);
        let hash = hash.chain_update(self.index.to_le_bytes()).chain_update(self.log_before);
        let hash = hash.chain_update(self.at.to_le_bytes()).chain_update(self.count.to_le_bytes());
        let hash = hash.chain_update(self.tree_before).chain_update(self.tree_after);
        hash.chain_update(self.proof.digest()).chain_update(copies.finalize()).finalize().into()
    }

    /// What the store signs: the fields that every receipt shows.
    fn message(&self, id: &Hash) -> Vec<u8> {
        [
            b"warm receipt signature\0".as_slice(),
            id,
            &self.at.to_le_bytes(),
            &self.count.to_le_bytes(),
            &self.tree_before,
            &self.tree_after,
            &self.index.to_le_bytes(),
        ]
        .concat()
    }

    /// Whether `signature` on this, under `id`, is that of the store with this public key.
    pub(crate) fn is_signed(&self, id: &Hash, signature: &[u8], public: &[u8; 32]) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(public) else { return false };
        let Ok(signature) = Signature::from_slice(signature) else { return false };
        key.verify_strict(&self.message(id), &signature).is_ok()
    }
}

/// Seals and opens the log of one store, and signs for it. `Debug` shows nothing of the keys.
#[derive(Clone)]
pub(crate) struct LogKeys {
    sealing: Key,
    signing: SigningKey,
}

impl LogKeys {
    /// The keys that follow from the secret in the store's head.
    pub(super) fn of(secret: &Key) -> Self {
        let signing = SigningKey::from_bytes(&secret.derive(b"warm signing\0").0);
        Self { sealing: secret.derive(b"warm log\0"), signing }
    }

    /// What others check the store's signatures with.
    pub(crate) fn public(&self) -> [u8; 32] {
        self.signing.verifying_key().to_bytes()
    }

    #[cfg(test)]
    pub(super) fn forensic_data(chain: Chain, number: u64) -> Vec<u8> {
        associated_data(chain, number)
    }

    /// Signs an erasure; returns the receipt's id with the signature.
    pub(crate) fn sign(&self, erasure: &Erasure) -> (Hash, Vec<u8>) {
        let id = erasure.id(&self.public());
        (id, self.signing.sign(&erasure.message(&id)).to_bytes().to_vec())
    }

    /// Seals an entry. `None` if it is too long to be sealed at once.
    pub(crate) fn seal(&self, chain: Chain, number: u64, entry: &impl Serialize) -> Option<Vec<u8>> {
        let plain = postcard::to_allocvec(entry).ok()?;
        seal_with_nonce(&self.sealing, &associated_data(chain, number), &plain)
    }

    /// Opens what [`LogKeys::seal`] made for the same number of the same chain.
    pub(crate) fn open<T: for<'a> Deserialize<'a>>(
        &self,
        chain: Chain,
        number: u64,
        sealed: &[u8],
    ) -> Result<T, UnsealError> {
        let plain = open_with_nonce(&self.sealing, &associated_data(chain, number), sealed)?;
        postcard::from_bytes(&plain).map_err(|_| UnsealError::Contents)
    }
}

impl std::fmt::Debug for LogKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogKeys(..)")
    }
}

fn associated_data(chain: Chain, number: u64) -> Vec<u8> {
    let name = match chain {
        Chain::Erasures => b"warm erasures\0".as_slice(),
        Chain::Copies => b"warm copies\0",
    };
    [name, &number.to_le_bytes()].concat()
}

#[test]
fn a_chain_of_any_length_that_a_receipt_may_name_goes_on() {
    let end = ChainEnd { length: u64::MAX, hash: [0; 32] };
    assert_ne!(end.with(&[1; 32]).hash, end.with(&[2; 32]).hash);
}
