//! Receipts: what the store signs when it forgets, written out, and checked by anyone who has its public key.
//!
//! [`verify`] needs no store and no key but the public one. What a receipt shows, and what it can't, is written
//! down in `docs/deletion.md`; its bytes are in `docs/format.md`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::contract::{CopyMade, Receipt, ReceiptBranches, ReceiptFile, ReceiptProof, ReceiptVersion};
use crate::sealed::hex;
use crate::time::{millis, rfc3339};
use crate::vault::{Branches, ChainEnd, Copied, Erasure, Proof, ProvenPlace};

/// Version of the form of receipt files.
const FORM: u64 = 1;

/// Why a receipt is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// It is not written as receipts are.
    #[error("it is not a receipt of warm-mcp ({0}): give a file that `warm-mcp receipt show` wrote")]
    Malformed(String),
    /// It is of a later form.
    #[error("it is a receipt of form {0}, and this warm-mcp reads form {FORM}: use a newer one")]
    OtherForm(u64),
    /// Its id is not that of what it says.
    #[error("what it says was changed: its id is not that of its contents")]
    Changed,
    /// The signature is not the store's.
    #[error("its signature is not that of the store with the public key {0}")]
    NotSigned(String),
    /// It is signed with another key than the one that was named.
    #[error("it is signed by the store with the public key {0}, which is not the one that you named")]
    AnotherStore(String),
    /// The proof does not lead from one tree to the other.
    #[error("its proof does not show that what it names was there before and is gone")]
    NotProven,
    /// It is not where it says in the log.
    #[error("its place in the log does not fit: the log's hash after it does not follow from the one before")]
    NotLogged,
}

/// Checks a receipt: that the store with its public key signed what it says, and that its proof shows the
/// versions that it names to have been in the tree before and to be gone after. With `public_key`, in
/// hexadecimal, it must be that store's.
///
/// # Errors
/// [`ReceiptError`] names the first thing that does not hold.
pub fn verify(file: &ReceiptFile, public_key: Option<&str>) -> Result<(), ReceiptError> {
    if file.warm_receipt != FORM {
        return Err(ReceiptError::OtherForm(file.warm_receipt));
    }
    let public: [u8; 32] = unhex(&file.public_key, "public_key")?;
    if public_key.is_some_and(|named| !named.trim().eq_ignore_ascii_case(&file.public_key)) {
        return Err(ReceiptError::AnotherStore(file.public_key.clone()));
    }
    let (erasure, id, signature) = read(file)?;
    if erasure.id(&public) != id {
        return Err(ReceiptError::Changed);
    }
    if !erasure.is_signed(&id, &signature, &public) {
        return Err(ReceiptError::NotSigned(file.public_key.clone()));
    }
    if erasure.proof.roots() != Some((erasure.tree_before, erasure.tree_after)) {
        return Err(ReceiptError::NotProven);
    }
    let before = ChainEnd { length: erasure.index, hash: erasure.log_before };
    if before.with(&id).hash != unhex(&file.log_after, "log_after")? {
        return Err(ReceiptError::NotLogged);
    }
    Ok(())
}

/// The receipt as everyone sees it.
pub(crate) fn receipt(erasure: &Erasure, id: &[u8; 32], signature: &[u8]) -> Receipt {
    Receipt {
        id: hex(id),
        erased_at: rfc3339(erasure.at),
        count: erasure.count,
        tree_before: hex(&erasure.tree_before),
        tree_after: hex(&erasure.tree_after),
        log_index: erasure.index,
        signature: BASE64.encode(signature),
        copies: erasure.copies.iter().map(copy_made).collect(),
    }
}

/// The receipt with its proofs.
pub(crate) fn file(erasure: &Erasure, signature: &[u8], public: &[u8; 32]) -> ReceiptFile {
    let id = erasure.id(public);
    let branches = |branches: &Branches| ReceiptBranches {
        levels: branches.levels,
        beside: branches.beside.iter().map(|hash| hex(hash)).collect(),
    };
    let version = |proven: &ProvenPlace| ReceiptVersion {
        place: proven.place,
        id: hex(&proven.id),
        salt: hex(&proven.salt),
        after: hex(&proven.after),
    };
    ReceiptFile {
        warm_receipt: FORM,
        receipt: receipt(erasure, &id, signature),
        public_key: hex(public),
        log_before: hex(&erasure.log_before),
        log_after: hex(&ChainEnd { length: erasure.index, hash: erasure.log_before }.with(&id).hash),
        proof: ReceiptProof {
            versions: erasure.proof.places.iter().map(version).collect(),
            before: branches(&erasure.proof.before),
            after: branches(&erasure.proof.after),
        },
    }
}

fn copy_made(copied: &Copied) -> CopyMade {
    CopyMade { kind: copied.kind, place: copied.place.clone(), made_at: rfc3339(copied.at) }
}

/// What a file says, with the id and the signature that it gives.
fn read(file: &ReceiptFile) -> Result<(Erasure, [u8; 32], Vec<u8>), ReceiptError> {
    let Receipt { id, erased_at, count, tree_before, tree_after, log_index, signature, copies } =
        &file.receipt;
    let time = |text: &str, what: &str| {
        millis(text).ok_or_else(|| ReceiptError::Malformed(format!("{what} is no time")))
    };
    let branches = |branches: &ReceiptBranches, what| -> Result<Branches, ReceiptError> {
        let beside = branches.beside.iter().map(|hash| unhex(hash, what)).collect::<Result<_, _>>()?;
        Ok(Branches { levels: branches.levels, beside })
    };
    let place = |version: &ReceiptVersion| -> Result<ProvenPlace, ReceiptError> {
        Ok(ProvenPlace {
            place: version.place,
            id: unhex(&version.id, "the id of a version")?,
            salt: unhex(&version.salt, "the salt of a version")?,
            after: unhex(&version.after, "what follows a version")?,
        })
    };
    let copied = |copy: &CopyMade| -> Result<Copied, ReceiptError> {
        Ok(Copied { at: time(&copy.made_at, "made_at")?, kind: copy.kind, place: copy.place.clone() })
    };
    let erasure = Erasure {
        at: time(erased_at, "erased_at")?,
        count: *count,
        index: *log_index,
        log_before: unhex(&file.log_before, "log_before")?,
        tree_before: unhex(tree_before, "tree_before")?,
        tree_after: unhex(tree_after, "tree_after")?,
        proof: Proof {
            places: file.proof.versions.iter().map(place).collect::<Result<_, _>>()?,
            before: branches(&file.proof.before, "a hash of the proof")?,
            after: branches(&file.proof.after, "a hash of the proof")?,
        },
        copies: copies.iter().map(copied).collect::<Result<_, _>>()?,
    };
    let signature =
        BASE64.decode(signature).map_err(|_| ReceiptError::Malformed("signature is not base64".into()))?;
    Ok((erasure, unhex(id, "id")?, signature))
}

fn unhex<const N: usize>(text: &str, what: &str) -> Result<[u8; N], ReceiptError> {
    let bytes = || {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let pairs = text.as_bytes().chunks(2).map(|pair| Some(digit(&pair[0])? << 4 | digit(pair.get(1)?)?));
        pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
    };
    bytes().ok_or_else(|| ReceiptError::Malformed(format!("{what} is not {N} bytes in hexadecimal")))
}
