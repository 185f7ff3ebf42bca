//! Memories a page at a time: `list`, which shows no texts, and `export`, which shows everything.
//!
//! A cursor says after which memory the next page begins, and not how many were shown, so that paging is steady
//! while memories come and go.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::contract::{Export, Exported, Limits, List, ListOrder, Listed, Listing, Memory};
use crate::progress::Progress;
use crate::record::Entry;
use crate::records::{RecordError, check_prefix, copied};
use crate::selection::Selection;
use crate::state::{OrderedName, State};
use crate::store::StoreError;

/// How many memories a page of a list holds when the caller does not say.
const DEFAULT_PAGE: u64 = 50;

/// One page of the memories that a request asks for.
pub(crate) fn list(state: &State, request: &List, limits: &Limits) -> Result<Listing, RecordError> {
    let limit = request.limit.unwrap_or(DEFAULT_PAGE.min(limits.max_page));
    if limit == 0 || limit > limits.max_page {
        return Err(RecordError::Argument(format!("limit must be from 1 to {}", limits.max_page)));
    }
    let prefix = request.prefix.as_deref().unwrap_or_default();
    check_prefix(prefix, limits)?;
    let (since, until) = (request.since.as_deref(), request.until.as_deref());
    let selection = Selection::read(request.filter.as_ref(), since, until).map_err(RecordError::Argument)?;
    let wanted = |entry: &&Arc<Entry>| {
        request.tag.as_ref().is_none_or(|tag| entry.has_tag(tag)) && selection.holds(entry)
    };
    let order = request.order.unwrap_or_default();
    let after = request.cursor.as_deref().map(|cursor| Place::read(cursor, order)).transpose()?;
    let page = Page { limit, max_bytes: usize::try_from(limits.max_reply_bytes).unwrap_or(usize::MAX) };
    match order {
        ListOrder::Name => {
            let all = prefix.is_empty() && request.tag.is_none() && selection.is_everything();
            let total = if all {
                state.names.len()
            } else {
                state.names.with_prefix(prefix).filter(wanted).count() as u64
            };
            Ok(match after {
                Some(after) => {
                    page.fill(total, order, state.names.with_prefix_after(prefix, &after.name).filter(wanted))
                }
                None => page.fill(total, order, state.names.with_prefix(prefix).filter(wanted)),
            })
        }
        ListOrder::Recent => {
            let all: Vec<_> = state.names.with_prefix(prefix).filter(wanted).collect();
            let total = all.len() as u64;
            // Those that were written at one moment keep the order of their names.
            let mut rest: Vec<_> = match &after {
                None => all,
                Some(after) => {
                    let at = after.updated_at;
                    let name = OrderedName::new(&after.name);
                    let follows = |entry: &&Arc<Entry>| {
                        entry.updated_at < at || entry.updated_at == at && OrderedName::new(&entry.key) > name
                    };
                    all.into_iter().filter(follows).collect()
                }
            };
            rest.sort_by_key(|entry| std::cmp::Reverse(entry.updated_at));
            Ok(page.fill(total, order, rest.into_iter()))
        }
    }
}

/// How much is put on a page.
struct Page {
    limit: u64,
    max_bytes: usize,
}

impl Page {
    fn fill<'a>(
        &self,
        total: u64,
        order: ListOrder,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
    ) -> Listing {
        let mut rest = entries.peekable();
        let (mut memories, mut bytes, mut last): (Vec<Listed>, usize, _) = (Vec::new(), 0, None);
        while let Some(entry) = rest.peek() {
            let listed = entry.listed();
            let size = serde_json::to_vec(&listed).map_or(0, |json| json.len());
            if memories.len() as u64 == self.limit || (!memories.is_empty() && bytes + size > self.max_bytes)
            {
                break;
            }
            bytes += size;
            memories.push(listed);
            last = rest.next();
        }
        let truncated = rest.peek().is_some();
        let next_cursor = last.filter(|_| truncated).map(|last| Place::of(last).cursor(order));
        Listing { total, returned: memories.len() as u64, truncated, next_cursor, memories }
    }
}

/// The last memory of a page.
struct Place {
    name: String,
    updated_at: u64,
}

impl Place {
    fn of(entry: &Entry) -> Self {
        Self { name: entry.key.to_string(), updated_at: entry.updated_at }
    }

    /// No name has a NUL, so a cursor by time is told from one by name.
    fn cursor(&self, order: ListOrder) -> String {
        match order {
            ListOrder::Name => URL_SAFE_NO_PAD.encode(&self.name),
            ListOrder::Recent => URL_SAFE_NO_PAD.encode(format!("\0{}\0{}", self.updated_at, self.name)),
        }
    }

    fn read(cursor: &str, order: ListOrder) -> Result<Self, RecordError> {
        let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let place = text.and_then(|text| match (text.strip_prefix('\0'), order) {
            (None, ListOrder::Name) => Some(Self { name: text, updated_at: 0 }),
            (Some(by_time), ListOrder::Recent) => {
                let (at, name) = by_time.split_once('\0')?;
                Some(Self { name: name.to_owned(), updated_at: at.parse().ok()? })
            }
            _ => None,
        });
        place.ok_or_else(|| {
            RecordError::Argument(
                "cursor is not one that a page of this order returned; start without it".into(),
            )
        })
    }
}

/// One page of whole memories, in the order of their names.
///
/// Progress is counted in bytes of text.
pub(crate) fn export(
    state: &State,
    request: &Export,
    limits: &Limits,
    progress: &Progress,
) -> Result<Exported, RecordError> {
    let max_bytes = request.max_bytes.unwrap_or(u64::MAX).min(limits.max_export_bytes);
    let after = request.cursor.as_deref().map(|cursor| Place::read(cursor, ListOrder::Name)).transpose()?;
    let after = after.map(|after| after.name).unwrap_or_default();
    let (mut memories, mut bytes): (Vec<Memory>, u64) = (Vec::new(), 0);
    let (mut truncated, mut read) = (false, 0);
    // What is on earlier pages is not taken off: to count it would take longer than it is worth.
    let expected = state.names.text_bytes().clamp(1, max_bytes.max(1));
    for entry in state.names.with_prefix_after("", &after) {
        // A text is never shorter as JSON than it is, so one that does not fit need not be read.
        if !memories.is_empty() && bytes.saturating_add(entry.bytes) > max_bytes {
            truncated = true;
            break;
        }
        if progress.is_given_up() {
            return Err(RecordError::GivenUp);
        }
        progress.set(read, expected);
        read += entry.bytes;
        let record = state.read(entry)?.ok_or(StoreError::Fault("a memory could not be read"))?;
        let memory = copied(entry, &record);
        let size = serde_json::to_vec(&memory).map_or(0, |json| json.len() as u64 + 1);
        if !memories.is_empty() && bytes.saturating_add(size) > max_bytes {
            truncated = true;
            break;
        }
        bytes = bytes.saturating_add(size);
        memories.push(memory);
    }
    let last = memories.last().filter(|_| truncated);
    let next_cursor = last.map(|last| URL_SAFE_NO_PAD.encode(&last.key));
    let returned = memories.len() as u64;
    Ok(Exported { memories, total: state.names.len(), returned, truncated, next_cursor })
}
