//! Memories by name: remember, get and forget, over the same records as the memory tree.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::contract::{ErrorCode, Forget, Forgotten, Get, Limits, Memory, OperationId, Remember, Remembered};
use crate::draft::{Draft, Ticket};
use crate::operations::{Done, NAMED_TWICE};
use crate::path::PathError;
use crate::path::{check_key, is_tree_key};
use crate::progress::Progress;
use crate::record::{Entry, FILE_TAG, Record};
use crate::sealed::{RecordId, hex};
use crate::state::{Names, State};
use crate::store::StoreError;
use crate::time::rfc3339;

/// Far below the depth at which readers of JSON give up, so that what is stored can be read by all.
const DEEPEST_METADATA: usize = 32;

/// Why remember, get, list, export or forget did nothing.
///
/// `Display` is meant for the caller and may echo a name it gave; `Debug` shows the kind alone.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The key breaks a rule.
    #[error(transparent)]
    Key(#[from] PathError),
    /// A file stands where a directory would have to be.
    #[error("Cannot write {key}: {file} is a file, not a directory")]
    UnderAFile {
        /// What was to be written.
        key: String,
        /// The file in the way.
        file: String,
    },
    /// The name of a directory.
    #[error("{0} is a directory; name a file below it, or list and forget with it as prefix")]
    IsADirectory(String),
    /// An argument breaks a rule.
    #[error("{0}")]
    Argument(String),
    /// An argument is over a limit.
    #[error(
        "{what} is {size} {unit}, over the limit of {limit} {unit}; split it into several memories or send less"
    )]
    TooLarge {
        /// Which argument.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The limit in force.
        limit: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// No memory has this name.
    #[error("there is no memory with the key {0}; list or recall finds the keys that there are")]
    NotFound(String),
    /// `create_only`, and the name is taken.
    #[error("a memory with the key {0} already exists; leave create_only out to replace it")]
    AlreadyExists(String),
    /// `if_version` is not the current version.
    #[error("{key} has changed: if_version is not its current version; get it again and decide anew")]
    VersionConflict {
        /// The memory.
        key: String,
        /// Its current version; `None` if there is no such memory.
        current: Option<String>,
    },
    /// Nobody waits for the answer any longer.
    #[error("the request was given up")]
    GivenUp,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RecordError {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Key(_) | Self::UnderAFile { .. } | Self::IsADirectory(_) | Self::Argument(_) => {
                ErrorCode::InvalidArgument
            }
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::NotFound(_) => ErrorCode::NotFound,
            Self::AlreadyExists(_) => ErrorCode::AlreadyExists,
            Self::VersionConflict { .. } => ErrorCode::VersionConflict,
            Self::GivenUp => ErrorCode::Cancelled,
            Self::Store(error) => error.code(),
        }
    }
}

impl fmt::Debug for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordError({:?})", self.code())
    }
}

fn at_most(what: &'static str, unit: &'static str, size: usize, limit: u64) -> Result<(), RecordError> {
    let size = size as u64;
    if size > limit { Err(RecordError::TooLarge { what, size, limit, unit }) } else { Ok(()) }
}

/// Checks a request against the limits before anything is read or written.
pub(crate) fn check_remember(request: &Remember, limits: &Limits) -> Result<(), RecordError> {
    if let Some(key) = &request.key {
        check_key(key, limits)?;
    }
    if request.text.is_empty() {
        return Err(RecordError::Argument("text is empty; say what to remember".into()));
    }
    at_most("text", "bytes", request.text.len(), limits.max_text_bytes)?;
    at_most("title", "bytes", request.title.as_ref().map_or(0, String::len), limits.max_title_bytes)?;
    check_tags(&request.tags, limits)?;
    if let Some(metadata) = &request.metadata {
        let size = serde_json::to_vec(metadata).map_or(usize::MAX, |json| json.len());
        at_most("metadata", "bytes", size, limits.max_metadata_bytes)?;
        if metadata.values().any(|value| deeper_than(value, DEEPEST_METADATA - 1)) {
            return Err(RecordError::Argument(format!(
                "metadata is nested more than {DEEPEST_METADATA} levels deep; flatten it"
            )));
        }
    }
    if request.if_version.is_some() && request.key.is_none() {
        return Err(RecordError::Argument(
            "if_version needs key: say which memory it is the version of".into(),
        ));
    }
    if request.create_only && request.if_version.is_some() {
        return Err(RecordError::Argument("give create_only or if_version, not both".into()));
    }
    Ok(())
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    let mut below: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => return false,
    };
    levels == 0 || below.any(|value| deeper_than(value, levels - 1))
}

/// Checks tags, whether they are stored or filtered by.
pub(crate) fn check_tags(tags: &[String], limits: &Limits) -> Result<(), RecordError> {
    at_most("tags", "tags", tags.len(), limits.max_tags)?;
    for tag in tags {
        at_most("a tag", "bytes", tag.len(), limits.max_tag_bytes)?;
        if tag.is_empty() || tag.chars().any(char::is_control) {
            return Err(RecordError::Argument(
                "a tag needs at least one character and no control characters".into(),
            ));
        }
    }
    Ok(())
}

/// Stores or replaces a memory that [`check_remember`] has passed. Under the name of an operation that was
/// made before, it changes nothing and returns the same again.
pub(crate) fn remember(
    draft: &mut Draft<'_>,
    request: Remember,
    operation: Option<OperationId>,
) -> Result<Remembered, RecordError> {
    match draft.made(operation) {
        Some(Done::Remembered { made_up, version, created, bytes }) => {
            let key = made_up.or(request.key).unwrap_or_default();
            return Ok(Remembered { key, version, created, bytes });
        }
        Some(_) => return Err(StoreError::Fault(NAMED_TWICE).into()),
        None => {}
    }
    let key_made_up = request.key.is_none();
    let key = request.key.unwrap_or_else(|| made_up_key(draft));
    let current = draft.names.get(&key).cloned();
    if request.create_only && current.is_some() {
        return Err(RecordError::AlreadyExists(key));
    }
    if let Some(expected) = request.if_version {
        let current = current.as_ref().map(|entry| entry.id.version());
        if current.as_ref() != Some(&expected) {
            return Err(RecordError::VersionConflict { key, current });
        }
    }
    check_place(&draft.names, &key)?;
    let tags = own_tags(&key, request.tags);
    let bytes = request.text.len() as u64;
    let now = draft.now();
    let created_at = current.as_ref().map_or(now, |entry| entry.created_at);
    let mut record = Record::new(key.clone(), request.text, created_at, now);
    record.key_made_up = key_made_up;
    if let Some(current) = &current {
        record.origin = current.origin;
    }
    record.title = request.title;
    record.tags = tags;
    record.metadata = request.metadata.map(|metadata| serde_json::Value::Object(metadata).to_string());
    let version = draft.put(record).version();
    let created = current.is_none();
    let made_up = key_made_up.then(|| key.clone());
    draft.note(operation, Done::Remembered { made_up, version: version.clone(), created, bytes });
    Ok(Remembered { key, version, created, bytes })
}

/// Checks that a memory of this name has its place in the tree: a file can't be a directory too.
pub(crate) fn check_place(names: &Names, key: &str) -> Result<(), RecordError> {
    if is_tree_key(key) {
        if names.is_dir(key) {
            return Err(RecordError::IsADirectory(key.into()));
        }
        if let Some(file) = names.file_above(key) {
            return Err(RecordError::UnderAFile { file: file.into(), key: key.into() });
        }
    }
    Ok(())
}

/// The tags that are stored: each once, and without the one that follows from the name.
pub(crate) fn own_tags(key: &str, tags: Vec<String>) -> Vec<String> {
    let mut own: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        let implied = tag == FILE_TAG && is_tree_key(key);
        if !implied && !own.contains(&tag) {
            own.push(tag);
        }
    }
    own
}

/// There is no memory of this name: perhaps it is a directory's.
fn not_found(names: &Names, key: &str) -> RecordError {
    if is_tree_key(key) && names.is_dir(key) {
        return RecordError::IsADirectory(key.into());
    }
    RecordError::NotFound(key.into())
}

/// How a key begins that was made up.
pub(crate) const MADE_UP: &str = "memory-";

/// A key that no memory has.
fn made_up_key(draft: &Draft<'_>) -> String {
    loop {
        let key = format!("{MADE_UP}{}", RecordId::random().version());
        if draft.names.get(&key).is_none() {
            return key;
        }
    }
}

/// Reads a memory whole.
pub(crate) fn get(state: &State, request: &Get, limits: &Limits) -> Result<Memory, RecordError> {
    check_key(&request.key, limits)?;
    let missing = || not_found(&state.names, &request.key);
    let entry = state.names.get(&request.key).ok_or_else(missing)?;
    let record = state.read(entry)?.ok_or_else(missing)?;
    Ok(whole(entry, &record))
}

/// What a caller sees of a memory.
pub(crate) fn whole(entry: &Entry, record: &Record) -> Memory {
    Memory {
        key: record.key.clone(),
        title: record.title.clone(),
        tags: entry.tags.clone(),
        metadata: record.metadata.as_ref().and_then(|json| serde_json::from_str(json).ok()),
        version: entry.id.version(),
        created_at: rfc3339(entry.created_at),
        updated_at: rfc3339(entry.updated_at),
        bytes: entry.bytes,
        origin: None,
        text: record.text.clone(),
    }
}

/// A memory as it is copied out: with the number by which it is known again once it was forgotten.
pub(crate) fn copied(entry: &Entry, record: &Record) -> Memory {
    Memory { origin: Some(hex(&entry.origin.to_be_bytes())), ..whole(entry, record) }
}

pub(crate) fn check_prefix(prefix: &str, limits: &Limits) -> Result<(), RecordError> {
    at_most("prefix", "bytes", prefix.len(), limits.max_path_bytes)
}

/// Forgets memories, all in one transaction; the receipt comes with the commit. Under the name of an operation
/// that was made before, it changes nothing and returns the same again.
pub(crate) fn forget(
    draft: &mut Draft<'_>,
    request: Forget,
    limits: &Limits,
    operation: Option<OperationId>,
    progress: &Progress,
) -> Result<(Forgotten, Option<Ticket>), RecordError> {
    let told = |forgotten, missing| Forgotten { forgotten, missing, receipt: None };
    match draft.made(operation) {
        Some(Done::Forgotten { forgotten, missing, receipt }) => {
            let keys = request.keys.unwrap_or_default();
            let named = |place: u64| usize::try_from(place).ok().and_then(|place| keys.get(place)).cloned();
            let missing = missing.into_iter().filter_map(named).collect();
            return Ok((told(forgotten, missing), receipt.map(Ticket::of)));
        }
        Some(_) => return Err(StoreError::Fault(NAMED_TWICE).into()),
        None => {}
    }
    let (doomed, missing) = match (request.key, request.keys, request.prefix) {
        (Some(key), None, None) => {
            check_key(&key, limits)?;
            let entry = draft.names.get(&key).cloned().ok_or_else(|| not_found(&draft.names, &key))?;
            (vec![entry], Vec::new())
        }
        (None, Some(keys), None) => doomed_keys(draft, keys, limits)?,
        (None, None, Some(prefix)) => (doomed_prefix(draft, &prefix, request.confirm, limits)?, Vec::new()),
        _ => return Err(RecordError::Argument("give exactly one of key, keys and prefix".into())),
    };
    let forgotten = doomed.len() as u64;
    let ticket = draft.erase(doomed, progress);
    let places = missing.iter().map(|(place, _)| *place).collect();
    let receipt = ticket.as_ref().map(Ticket::index);
    draft.note(operation, Done::Forgotten { forgotten, missing: places, receipt });
    Ok((told(forgotten, missing.into_iter().map(|(_, key)| key).collect()), ticket))
}

/// What is to be forgotten, and which keys have no memory, with their places.
type Doomed = (Vec<Arc<Entry>>, Vec<(u64, String)>);

fn doomed_keys(draft: &Draft<'_>, keys: Vec<String>, limits: &Limits) -> Result<Doomed, RecordError> {
    at_most("keys", "keys", keys.len(), limits.max_forget)?;
    keys.iter().try_for_each(|key| check_key(key, limits))?;
    let (mut doomed, mut missing, mut named) = (Vec::new(), Vec::new(), HashSet::new());
    for (place, key) in (0..).zip(keys) {
        match draft.names.get(&key) {
            Some(entry) if named.insert(entry.id) => doomed.push(Arc::clone(entry)),
            _ => missing.push((place, key)),
        }
    }
    Ok((doomed, missing))
}

fn doomed_prefix(
    draft: &Draft<'_>,
    prefix: &str,
    confirm: bool,
    limits: &Limits,
) -> Result<Vec<Arc<Entry>>, RecordError> {
    check_prefix(prefix, limits)?;
    if prefix.is_empty() {
        return Err(RecordError::Argument(
            "prefix is empty, which would forget everything; name the prefixes one by one".into(),
        ));
    }
    let doomed: Vec<_> = draft.names.with_prefix(prefix).cloned().collect();
    if !confirm {
        let first: Vec<_> = doomed.iter().take(3).map(|entry| &*entry.key).collect();
        return Err(RecordError::Argument(format!(
            "this would forget {} memories for good, the first of them {}; send confirm: true to do it",
            doomed.len(),
            if first.is_empty() { "none".to_owned() } else { first.join(", ") },
        )));
    }
    Ok(doomed)
}
