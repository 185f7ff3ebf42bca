//! Memories on their way out of a store and back into one, with everything that belongs to them.
//!
//! Owns what a backup reads, all memories of one moment, and what it is to put memories back: times,
//! titles, tags and metadata come with the text, and what is there already is not touched unless that is
//! asked for. How memories are written to a file is the [`archive`](crate::archive)'s business.

use std::collections::HashSet;
use std::fmt;

use crate::contract::{ErrorCode, Limits, Memory, OperationId, Remember, Restore, Restored};
use crate::draft::Draft;
use crate::operations::{Done, NAMED_TWICE};
use crate::path::is_tree_key;
use crate::record::Record;
use crate::records::{self, RecordError, own_tags};
use crate::sealed::VERSION_DIGITS;
use crate::state::State;
use crate::store::StoreError;
use crate::time::millis;

/// Why memories were not handed over or put back.
///
/// `Display` is meant for the caller and names the memory; `Debug` shows the kind alone.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A memory breaks a rule or is over a limit of this store.
    #[error("the memory {key} can't be restored, and nothing that was sent with it was: {reason}")]
    Refused {
        /// The memory.
        key: String,
        /// The rule.
        reason: RecordError,
    },
    /// A memory is longer than this store allows.
    #[error(
        "the memory {key} can't be restored, and nothing that was sent with it was: its text is {bytes} bytes, over \
         the limit of {limit} bytes; start warm-mcp with --max-text-bytes {bytes} or more"
    )]
    TextTooLarge {
        /// The memory.
        key: String,
        /// The length of its text.
        bytes: u64,
        /// The limit in force.
        limit: u64,
    },
    /// A time is not one.
    #[error(
        "the memory {0} can't be restored, and nothing that was sent with it was: created_at and updated_at are \
         not both times like 2026-01-31T12:00:00Z"
    )]
    Time(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TransferError {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused { reason, .. } => reason.code(),
            Self::TextTooLarge { .. } => ErrorCode::TooLarge,
            Self::Time(_) => ErrorCode::InvalidArgument,
            Self::Store(error) => error.code(),
        }
    }
}

impl fmt::Debug for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransferError({:?})", self.code())
    }
}

impl Memory {
    /// Whether another memory says the same: text, title, tags and metadata. Times and versions may differ.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        self.text == other.text
            && self.title == other.title
            && self.metadata == other.metadata
            && own_tags(&self.key, self.tags.clone()) == own_tags(&other.key, other.tags.clone())
    }
}

/// Hands over every memory of `state`, in the order of names; `each` may stop it. `failed` turns a failure
/// of the store into the caller's error.
pub(crate) fn dump<E>(
    state: &State,
    failed: impl Fn(StoreError) -> E,
    each: &mut dyn FnMut(Memory) -> Result<(), E>,
) -> Result<u64, E> {
    let mut handed_over = 0;
    for entry in state.names.iter() {
        let record = state.read(entry).map_err(&failed)?;
        let record = record.ok_or_else(|| failed(StoreError::Fault("a memory could not be read")))?;
        each(records::copied(entry, &record))?;
        handed_over += 1;
    }
    Ok(handed_over)
}

/// Checks a memory that is to be put back against the rules that need no store.
pub(crate) fn check(memory: &Memory, limits: &Limits) -> Result<(), TransferError> {
    let key = || memory.key.clone();
    let bytes = memory.text.len() as u64;
    if bytes > limits.max_text_bytes {
        return Err(TransferError::TextTooLarge { key: key(), bytes, limit: limits.max_text_bytes });
    }
    // A file may be empty, which `remember` refuses; the length was looked at.
    let text = if memory.text.is_empty() && !is_tree_key(&memory.key) { "" } else { " " };
    let as_new = Remember {
        text: text.to_owned(),
        key: Some(key()),
        title: memory.title.clone(),
        tags: own_tags(&memory.key, memory.tags.clone()),
        metadata: memory.metadata.clone(),
        ..Remember::default()
    };
    records::check_remember(&as_new, limits)
        .map_err(|reason| TransferError::Refused { key: key(), reason })?;
    times(memory).map(|_| ())
}

/// Puts memories back that [`check`] has passed. Under the name of an operation that was made before, it changes
/// nothing and returns the same again.
pub(crate) fn restore(
    draft: &mut Draft<'_>,
    request: Restore,
    forgotten_since: &HashSet<u64>,
    operation: Option<OperationId>,
) -> Result<Restored, TransferError> {
    match draft.made(operation) {
        Some(Done::Restored { restored, unchanged, kept, forgotten }) => {
            let named = |place: u64| {
                let memory = usize::try_from(place).ok().and_then(|place| request.memories.get(place));
                memory.map(|memory| memory.key.clone())
            };
            let named = |places: Vec<u64>| places.into_iter().filter_map(named).collect();
            return Ok(Restored { restored, unchanged, kept: named(kept), forgotten: named(forgotten) });
        }
        Some(_) => return Err(StoreError::Fault(NAMED_TWICE).into()),
        None => {}
    }
    let (mut done, mut kept, mut forgotten) = (Restored::default(), Vec::new(), Vec::new());
    for (place, memory) in (0..).zip(request.memories) {
        let origin = memory.origin.as_deref().and_then(self::origin);
        if let Some(entry) = draft.names.get(&memory.key).cloned() {
            let record = draft.read(&entry)?.ok_or(StoreError::Fault("a memory could not be read"))?;
            if records::whole(&entry, &record).says_the_same_as(&memory) {
                done.unchanged += 1;
                continue;
            }
            if !request.replace {
                kept.push(place);
                done.kept.push(memory.key);
                continue;
            }
        }
        let here = draft.names.get(&memory.key).map(|entry| entry.origin);
        if origin.is_some_and(|origin| here != Some(origin) && forgotten_since.contains(&origin)) {
            forgotten.push(place);
            done.forgotten.push(memory.key);
            continue;
        }
        records::check_place(&draft.names, &memory.key)
            .map_err(|reason| TransferError::Refused { key: memory.key.clone(), reason })?;
        let (created_at, updated_at) = times(&memory)?;
        let mut record = Record::new(memory.key.clone(), memory.text, created_at, updated_at);
        record.key_made_up = looks_made_up(&memory.key);
        record.origin = origin.or(here).unwrap_or(record.origin);
        record.title = memory.title;
        record.tags = own_tags(&memory.key, memory.tags);
        record.metadata = memory.metadata.map(|metadata| serde_json::Value::Object(metadata).to_string());
        draft.put(record);
        done.restored += 1;
    }
    let Restored { restored, unchanged, .. } = done;
    draft.note(operation, Done::Restored { restored, unchanged, kept, forgotten });
    Ok(done)
}

/// The number that a memory keeps through all its versions, as copies have it.
pub(crate) fn origin(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16)
}

/// Whether a key is of the kind that is made up where none was given.
fn looks_made_up(key: &str) -> bool {
    key.strip_prefix(records::MADE_UP).is_some_and(|rest| {
        rest.len() == VERSION_DIGITS && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// When the memory was made and last written, in milliseconds since 1970.
fn times(memory: &Memory) -> Result<(u64, u64), TransferError> {
    millis(&memory.created_at)
        .zip(millis(&memory.updated_at))
        .ok_or_else(|| TransferError::Time(memory.key.clone()))
}
