//! Reading the names of all memories when a store is opened.
//!
//! Rows are read in the order of their ids, a piece at a time. The seals of one piece are opened on all
//! cores while the names of the piece before are entered: whoever takes over a store keeps others
//! waiting meanwhile. Texts are looked through and not kept.

use rayon::prelude::*;

use crate::record::Entry;
use crate::sealed::{RecordId, SealedRecord};
use crate::state::Names;
use crate::store::{Snapshot, StoreError};
use crate::vault::RecordKeys;

/// Rows in a piece: few enough to hold in memory with their texts, enough to share out.
const PIECE: usize = 2_048;

/// A record that does not open, and why.
pub(crate) struct Damaged {
    pub(crate) id: RecordId,
    pub(crate) reason: String,
}

type Opened = Result<Entry, Damaged>;

/// Reads the names of all memories. A record that does not open is left out and named.
pub(crate) fn load_names(
    snapshot: &dyn Snapshot,
    keys: &RecordKeys,
) -> Result<(Names, Vec<Damaged>), StoreError> {
    let (mut names, mut damaged) = (Names::default(), Vec::new());
    // The least of all ids, and the one record that is no memory.
    let mut last = RecordId::HEADER;
    let mut piece: Vec<Opened> = Vec::new();
    loop {
        let enter = || {
            for opened in piece {
                match opened {
                    Ok(entry) => drop(names.insert(entry)),
                    Err(record) => damaged.push(record),
                }
            }
        };
        let open = || -> Result<_, StoreError> {
            let rows = snapshot.rows_after(&last, PIECE)?;
            let last = rows.last().map(|(id, _)| *id);
            let opened = rows.into_par_iter().map(|(id, sealed)| open(keys, id, &sealed)).collect();
            Ok((last, opened))
        };
        let ((), next) = rayon::join(enter, open);
        let (reached, opened): (_, Vec<Opened>) = next?;
        match reached {
            Some(id) => (last, piece) = (id, opened),
            None => return Ok((names, damaged)),
        }
    }
}

fn open(keys: &RecordKeys, id: RecordId, sealed: &SealedRecord) -> Opened {
    Entry::unseal(keys, id, sealed).map_err(|reason| {
        tracing::error!(record = %id, %reason, "a record can't be opened; the others are served");
        Damaged { id, reason }
    })
}
