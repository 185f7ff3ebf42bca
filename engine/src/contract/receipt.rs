//! What the store says of memories that were forgotten, and of copies that were made.

use serde::{Deserialize, Serialize};

/// Says that memories were forgotten, signed by the store. Its proofs are in the [`ReceiptFile`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// A SHA-256 digest of the whole receipt, in hexadecimal.
    pub id: String,
    /// RFC 3339, UTC.
    pub erased_at: String,
    /// How many memories were forgotten.
    pub count: u64,
    /// The root of the tree of versions before, in hexadecimal.
    pub tree_before: String,
    /// The root of the tree of versions after, in hexadecimal.
    pub tree_after: String,
    /// Its number in the store's log of erasures, from 0.
    pub log_index: u64,
    /// The store's Ed25519 signature, in base64.
    pub signature: String,
    /// Copies that were made before and may still hold what was forgotten, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopyMade>,
}

/// A receipt with everything that shows it to be right, as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptFile {
    /// Version of the form of this file.
    pub warm_receipt: u64,
    /// What the store says.
    pub receipt: Receipt,
    /// The store's public key, in hexadecimal.
    pub public_key: String,
    /// The hash of the log of erasures before and after it, in hexadecimal.
    pub log_before: String,
    /// See `log_before`.
    pub log_after: String,
    /// The versions that were there and are gone.
    pub proof: ReceiptProof,
}

/// Shows that versions were in one tree and are not in the one that followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptProof {
    /// The versions, by ascending place.
    pub versions: Vec<ReceiptVersion>,
    /// What stands beside the ways to their places before.
    pub before: ReceiptBranches,
    /// And after.
    pub after: ReceiptBranches,
}

/// One version that is gone. Binary values are in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptVersion {
    /// Its place in the tree.
    pub place: u64,
    /// The id of its record, random.
    pub id: String,
    /// What its commitment is salted with.
    pub salt: String,
    /// What its place holds afterwards: nothing (zeros), or another commitment.
    pub after: String,
}

/// Hashes beside the ways from the root to some places, from left to right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptBranches {
    /// Levels of nodes, each five levels of the binary tree.
    pub levels: u8,
    /// In hexadecimal.
    pub beside: Vec<String>,
}

/// What kind of copy was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyKind {
    /// A sealed backup.
    Backup,
    /// Memories written out in the clear.
    Export,
    /// Records that did not open, set aside by a repair.
    Quarantine,
}

/// A copy that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copying {
    /// What it is.
    pub kind: CopyKind,
    /// Where it is written to, as far as that is known.
    pub place: String,
}

/// A copy of memories that left the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyMade {
    /// What it is.
    pub kind: CopyKind,
    /// Where it was written to, as far as the store was told.
    pub place: String,
    /// RFC 3339, UTC.
    pub made_at: String,
}

/// Asks for receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskReceipts {
    /// A page of them, the latest first.
    List {
        /// Those before this number in the log; the latest when absent.
        before: Option<u64>,
        /// Most of them in a page.
        limit: u64,
    },
    /// One, by its id or the first digits of it, or by its number in the log.
    One(String),
}

/// The answer to [`AskReceipts::List`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// The latest first.
    pub receipts: Vec<Receipt>,
    /// How many there are in all.
    pub total: u64,
    /// The store's public key, in hexadecimal.
    pub public_key: String,
}
