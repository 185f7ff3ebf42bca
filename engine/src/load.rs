//! Reading the names of all memories when a store is opened.
//!
//! Rows are read in the order of their ids, a piece at a time. The seals of one piece are opened on all
//! cores while the names of the piece before are entered: whoever takes over a store keeps others
//! waiting meanwhile. Texts are looked through and not kept.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::places::Places;
use crate::record::Entry;
use crate::sealed::RecordId;
use crate::state::Names;
use crate::store::{Snapshot, StoreError};
use crate::vault::{RecordKey, Version};

/// Rows in a piece: few enough to hold in memory with their texts, enough to share out.
const PIECE: usize = 2_048;

/// A record that does not open, and why.
pub(crate) struct Damaged {
    pub(crate) id: RecordId,
    /// Where its key lies; none has a record whose key is gone.
    pub(crate) place: Option<u64>,
    pub(crate) reason: String,
}

type Opened = Result<Entry, Damaged>;

/// Reads the names of all memories, whose `versions` the key tree names in the order of their places. A record
/// that does not open is left out and named.
pub(crate) fn load_names(
    snapshot: &dyn Snapshot,
    versions: Vec<(u64, Version)>,
) -> Result<(Names, Vec<Damaged>), StoreError> {
    let places = Places::taken(versions.iter().map(|(place, _)| *place));
    let (mut names, mut damaged) = (Names::over(places), Vec::new());
    let count = versions.len();
    let mut keys: HashMap<_, _> =
        versions.into_iter().map(|(place, version)| (version.id, (place, version.key))).collect();
    if keys.len() != count {
        return Err(StoreError::Damaged("its key tree names a record twice".into()));
    }
    let mut last = RecordId::LEAST;
    let mut piece: Vec<Opened> = Vec::new();
    loop {
        let enter = || {
            for opened in piece {
                match opened {
                    Ok(entry) => drop(names.insert(Arc::new(entry))),
                    Err(record) => damaged.push(record),
                }
            }
        };
        let open = || -> Result<_, StoreError> {
            let rows = snapshot.rows_after(&last, PIECE)?;
            let last = rows.last().map(|(id, _)| *id);
            let rows: Vec<_> = rows.into_iter().map(|(id, sealed)| (keys.remove(&id), id, sealed)).collect();
            let opened = rows.into_par_iter().map(|(key, id, sealed)| open(key, id, &sealed)).collect();
            Ok((last, opened))
        };
        let ((), next) = rayon::join(enter, open);
        let (reached, opened): (_, Vec<Opened>) = next?;
        match reached {
            Some(id) => (last, piece) = (id, opened),
            None => break,
        }
    }
    damaged.extend(keys.into_iter().map(|(id, (place, _))| named(id, Some(place), "it is gone".to_owned())));
    Ok((names, damaged))
}

fn open(key: Option<(u64, RecordKey)>, id: RecordId, sealed: &[u8]) -> Opened {
    let (place, key) = key.ok_or_else(|| named(id, None, "its key is gone".to_owned()))?;
    Entry::unseal(id, place, key, sealed).map_err(|reason| named(id, Some(place), reason))
}

fn named(id: RecordId, place: Option<u64>, reason: String) -> Damaged {
    tracing::error!(record = %id, %reason, "a record can't be opened; the others are served");
    Damaged { id, place, reason }
}
