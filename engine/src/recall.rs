//! Recall: from a question to the memories that answer it, with an excerpt of each.

use std::fmt;

use crate::contract::{ErrorCode, Limits, Recall, RecallHit, RecallMode, Recalled};
use crate::index::text::{DocumentId, Found, Query, excerpt};
use crate::path::PathError;
use crate::path::{ROOT, check_key};
use crate::progress::Progress;
use crate::published::Published;
use crate::record::Entry;
use crate::records::{RecordError, check_tags};
use crate::sealed::RecordId;
use crate::selection::Selection;
use crate::store::StoreError;
use crate::time::rfc3339;

/// How many memories are returned when the caller does not say.
const DEFAULT_K: u64 = 5;
/// Scores are given to four decimals: more only cost a reader.
const SCORE_SCALE: f64 = 1e4;
/// Longest excerpt, in characters.
const EXCERPT_CHARS: usize = 300;

/// Why recall found out nothing.
///
/// `Display` is meant for the caller; `Debug` shows the kind alone.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// `under` breaks a rule.
    #[error(transparent)]
    Under(#[from] PathError),
    /// The tags break a rule.
    #[error(transparent)]
    Tags(RecordError),
    /// An argument breaks a rule.
    #[error("{0}")]
    Argument(String),
    /// The query is too long.
    #[error("the query is {bytes} bytes, over the limit of {limit} bytes; ask in fewer words")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The limit in force.
        limit: u64,
    },
    /// The index could not be filled.
    #[error(
        "the index could not be built, by a fault of warm-mcp: start it again, and report it if that does not help; the memories are safe, and list and get find them"
    )]
    NoIndex,
    /// Nobody waits for the answer any longer.
    #[error("the recall was given up")]
    GivenUp,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RecallError {
    /// The kind of failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Under(_) | Self::Argument(_) => ErrorCode::InvalidArgument,
            Self::Tags(error) => error.code(),
            Self::TooLong { .. } => ErrorCode::TooLarge,
            Self::NoIndex => ErrorCode::Internal,
            Self::GivenUp => ErrorCode::Cancelled,
            Self::Store(error) => error.code(),
        }
    }
}

impl fmt::Debug for RecallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecallError({:?})", self.code())
    }
}

fn check_key_or_root(under: &str, limits: &Limits) -> Result<(), PathError> {
    if under == ROOT { Ok(()) } else { check_key(under, limits) }
}

type Allowed<'a> = dyn Fn(&DocumentId) -> bool + 'a;

/// Which memories a recall may return.
struct Wanted<'a> {
    under: Option<&'a str>,
    tags: &'a [String],
    selection: Selection,
}

impl<'a> Wanted<'a> {
    fn new(request: &'a Recall, limits: &Limits) -> Result<Self, RecallError> {
        let under = request.under.as_deref().map(|under| under.trim_end_matches('/'));
        if let Some(under) = under {
            if under.is_empty() {
                return Err(RecallError::Argument(
                    "under is empty; leave it out to search everything".into(),
                ));
            }
            check_key_or_root(under, limits)?;
        }
        check_tags(&request.tags, limits).map_err(RecallError::Tags)?;
        let (since, until) = (request.since.as_deref(), request.until.as_deref());
        let selection = Selection::read(request.filter.as_ref(), since, until);
        Ok(Self { under, tags: &request.tags, selection: selection.map_err(RecallError::Argument)? })
    }

    fn passes_all(&self) -> bool {
        self.under.is_none() && self.tags.is_empty() && self.selection.is_everything()
    }

    fn passes(&self, entry: &Entry) -> bool {
        self.under.is_none_or(|under| {
            entry.key.strip_prefix(under).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }) && self.tags.iter().all(|tag| entry.has_tag(tag))
            && self.selection.holds(entry)
    }
}

/// Searches, waiting for the index if it is still being filled.
pub(crate) fn recall(
    published: &Published,
    request: &Recall,
    limits: &Limits,
    progress: &Progress,
) -> Result<Recalled, RecallError> {
    let k = request.k.unwrap_or(DEFAULT_K.min(limits.max_top_k));
    if k == 0 || k > limits.max_top_k {
        return Err(RecallError::Argument(format!("k must be from 1 to {}", limits.max_top_k)));
    }
    if request.mode.is_some_and(|mode| mode != RecallMode::Lexical) {
        return Err(RecallError::Argument(
            "only the mode `lexical` is available in this version; leave mode out".into(),
        ));
    }
    if request.max_chars == Some(0) {
        return Err(RecallError::Argument("max_chars must be at least 1; leave it out for no bound".into()));
    }
    let bytes = request.query.len() as u64;
    if bytes > limits.max_text_bytes {
        return Err(RecallError::TooLong { bytes, limit: limits.max_text_bytes });
    }
    let wanted = Wanted::new(request, limits)?;
    if !published.wait_filled(progress) {
        if progress.is_given_up() {
            return Err(RecallError::GivenUp);
        }
        let closing = published.stopping();
        return Err(if closing { StoreError::Closing.into() } else { RecallError::NoIndex });
    }
    let query = Query::new(&request.query);
    let (found, state): (Found, _) = published.search(|index, state| {
        let allowed = |id: &DocumentId| {
            state.names.by_id(&RecordId::from_bytes(*id)).is_some_and(|entry| wanted.passes(entry))
        };
        let allowed: Option<&Allowed<'_>> = if wanted.passes_all() { None } else { Some(&allowed) };
        index.search(&query, usize::try_from(k).unwrap_or(usize::MAX), request.min_score, allowed)
    })?;
    let max_reply_bytes = usize::try_from(limits.max_reply_bytes).unwrap_or(usize::MAX);
    let (mut results, mut reply_bytes): (Vec<RecallHit>, usize) = (Vec::new(), 0);
    let mut chars_left =
        request.max_chars.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let mut cut = false;
    for hit in found.hits {
        let Some(entry) = state.names.by_id(&RecordId::from_bytes(hit.id)) else {
            continue;
        };
        let record = match state.read(entry) {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            // One record that went bad must not hide the others.
            Err(error @ StoreError::Record { .. }) => {
                tracing::error!(%error, "a record that recall found could not be read");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let shown = |most: usize| excerpt(&record.text, hit.passage.clone(), &query, most);
        let (mut text, lines) = shown(EXCERPT_CHARS);
        if text.chars().count() > chars_left {
            // A few characters more of another memory would tell little, but nothing at all tells less.
            if !results.is_empty() {
                break;
            }
            (text, _) = shown(chars_left);
            cut = true;
        }
        let chars = text.chars().count();
        let score = (hit.score * SCORE_SCALE).round() / SCORE_SCALE;
        let hit = RecallHit {
            key: entry.key.to_string(),
            score,
            lexical_score: Some(score),
            semantic_score: None,
            excerpt: text,
            lines,
            title: entry.title.clone(),
            tags: entry.tags.clone(),
            version: entry.id.version(),
            updated_at: rfc3339(entry.updated_at),
        };
        let size = serde_json::to_vec(&hit).map_or(0, |json| json.len());
        if !results.is_empty() && reply_bytes + size > max_reply_bytes {
            break;
        }
        reply_bytes += size;
        chars_left -= chars;
        results.push(hit);
    }
    let returned = results.len() as u64;
    Ok(Recalled {
        results,
        mode: RecallMode::Lexical,
        total: found.matched,
        returned,
        truncated: cut || returned < found.matched,
    })
}
