//! Reading the log of erasures: receipts, and which memories were forgotten.
//!
//! Writing it is part of a [`commit`](crate::commit).

use crate::contract::{ErrorCode, Receipt, ReceiptFile, Receipts};
use crate::receipt;
use crate::sealed::{Chain, hex};
use crate::store::{Snapshot, StoreError};
use crate::vault::{ChainEnd, LogKeys, LoggedErasure};

/// Entries that are read at once.
const PIECE: usize = 256;
/// So many digits of an id name a receipt; fewer, and decimal ones, are its number.
const SHORTEST_ID: usize = 8;

/// Why there is no such receipt.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptsError {
    /// None has this id or number.
    #[error("there is no receipt {0}; `warm-mcp receipt list` shows them")]
    NotFound(String),
    /// Several ids begin like this.
    #[error("several receipts begin with {0}: give more digits")]
    Ambiguous(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReceiptsError {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound(_) => ErrorCode::NotFound,
            Self::Ambiguous(_) => ErrorCode::InvalidArgument,
            Self::Store(error) => error.code(),
        }
    }
}

/// The log as of a snapshot.
pub(crate) struct Erasures<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    pub(crate) keys: &'a LogKeys,
}

impl Erasures<'_> {
    /// At most so many entries from a number on.
    fn read(&self, from: u64, most: usize) -> Result<Vec<LoggedErasure>, StoreError> {
        let entries = self.snapshot.log(Chain::Erasures, from, most)?;
        let open = |(expected, (number, sealed)): (u64, (u64, Vec<u8>))| {
            let logged = self.keys.open(Chain::Erasures, number, &sealed);
            logged.ok().filter(|_| number == expected).ok_or_else(|| damaged(expected))
        };
        (from..).zip(entries).map(open).collect()
    }

    /// Hands over every entry from a number on, until told to stop.
    fn each(&self, mut from: u64, mut see: impl FnMut(LoggedErasure) -> bool) -> Result<(), StoreError> {
        loop {
            let entries = self.read(from, PIECE)?;
            if entries.is_empty() {
                return Ok(());
            }
            from += entries.len() as u64;
            if !entries.into_iter().all(&mut see) {
                return Ok(());
            }
        }
    }

    /// The receipt of this number.
    pub(crate) fn receipt(&self, number: u64) -> Result<Receipt, ReceiptsError> {
        let logged = self.read(number, 1)?.pop();
        let LoggedErasure { erasure, signature, .. } =
            logged.ok_or_else(|| ReceiptsError::NotFound(number.to_string()))?;
        Ok(receipt::receipt(&erasure, &erasure.id(&self.keys.public()), &signature))
    }

    /// Receipts before a number, the latest first.
    pub(crate) fn list(&self, before: u64, limit: u64, total: u64) -> Result<Receipts, ReceiptsError> {
        let from = before.saturating_sub(limit);
        let most = usize::try_from(before - from).unwrap_or(usize::MAX);
        let public = self.keys.public();
        let shown = |logged: LoggedErasure| {
            receipt::receipt(&logged.erasure, &logged.erasure.id(&public), &logged.signature)
        };
        let receipts = self.read(from, most)?.into_iter().rev().map(shown).collect();
        Ok(Receipts { receipts, total, public_key: hex(&public) })
    }

    /// One receipt with its proofs, by its id, the first digits of that, or its number.
    pub(crate) fn find(&self, which: &str) -> Result<ReceiptFile, ReceiptsError> {
        let which = which.trim().to_ascii_lowercase();
        let public = self.keys.public();
        let not_found = || ReceiptsError::NotFound(which.clone());
        let mut found = Vec::new();
        if which.len() < SHORTEST_ID {
            let number = which.trim_start_matches('#').parse().map_err(|_| not_found())?;
            found = self.read(number, 1)?;
        } else {
            self.each(0, |logged| {
                if hex(&logged.erasure.id(&public)).starts_with(&which) {
                    found.push(logged);
                }
                found.len() < 2
            })?;
        }
        match (found.pop(), found.pop()) {
            (Some(logged), None) => Ok(receipt::file(&logged.erasure, &logged.signature, &public)),
            (None, _) => Err(not_found()),
            (Some(_), Some(_)) => Err(ReceiptsError::Ambiguous(which)),
        }
    }

    /// The number of the entry that comes next, and the origins of what was forgotten from a number on.
    pub(crate) fn forgotten(&self, from: u64) -> Result<(u64, Vec<u64>), StoreError> {
        let (mut next, mut origins) = (from, Vec::new());
        self.each(from, |logged| {
            next += 1;
            origins.extend(logged.origins);
            true
        })?;
        Ok((next, origins))
    }

    /// Checks that every entry is there, is signed, and stands where the head of the store says.
    pub(crate) fn check(&self, end: &ChainEnd) -> Result<(), StoreError> {
        let (public, mut reached, mut bad) = (self.keys.public(), ChainEnd::default(), None);
        self.each(0, |LoggedErasure { erasure, signature, .. }| {
            let id = erasure.id(&public);
            let good = erasure.index == reached.length
                && erasure.log_before == reached.hash
                && erasure.is_signed(&id, &signature, &public);
            if !good {
                bad = Some(reached.length);
            }
            reached = reached.with(&id);
            good
        })?;
        match bad {
            Some(number) => Err(damaged(number)),
            None if reached != *end => {
                Err(StoreError::Damaged("its log of erasures is not the one that its head names".into()))
            }
            None => Ok(()),
        }
    }
}

fn damaged(number: u64) -> StoreError {
    StoreError::Damaged(
        format!("entry {number} of its log of erasures does not open or is out of place").into(),
    )
}
