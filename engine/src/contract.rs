//! Requests and replies of the engine, as plain serialisable values.
//!
//! Owns the shapes that cross the door of [`Engine`](crate::Engine), so that a caller in the same
//! process and one at the other end of a socket say the same thing. Holds no behaviour beyond
//! construction; the rules live where each request is served.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod receipt;

pub use receipt::{
    AskReceipts, CopyKind, CopyMade, Copying, Receipt, ReceiptBranches, ReceiptFile, ReceiptProof,
    ReceiptVersion, Receipts,
};

pub use crate::limits::Limits;

/// One command of Anthropic's memory tool (`memory_20250818`), with its documented fields.
///
/// `Debug` is not derived: fields hold memory text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Show a file with line numbers, or a directory two levels deep.
    View {
        /// A file, a directory, or `/memories` itself.
        path: String,
        /// `[first, last]`, 1-based and inclusive; `-1` as `last` means the end of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        view_range: Option<Vec<i64>>,
    },
    /// Make a new file; an existing one is never overwritten.
    Create {
        /// Where to make it.
        path: String,
        /// What it holds, kept byte for byte.
        file_text: String,
    },
    /// Replace the one occurrence of `old_str`.
    StrReplace {
        /// The file to edit.
        path: String,
        /// What to replace; it must occur exactly once.
        old_str: String,
        /// What to put there, taken literally; absent deletes `old_str`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_str: Option<String>,
    },
    /// Put lines after line `insert_line`.
    Insert {
        /// The file to edit.
        path: String,
        /// 0 is the top of the file.
        insert_line: i64,
        /// The lines to put there.
        insert_text: String,
    },
    /// Remove a file or a whole directory.
    Delete {
        /// What to delete.
        path: String,
    },
    /// Give a file or directory another path, which must be free.
    Rename {
        /// What to move.
        old_path: String,
        /// Where to.
        new_path: String,
    },
}

/// Per-call limits of a [`Command`]; each can only lower the engine's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Longest `view`, in characters.
    pub max_view_chars: Option<u64>,
    /// Largest file, in bytes.
    pub max_file_bytes: Option<u64>,
}

/// Stores or replaces one memory. `Debug` is not derived: fields hold memory text.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// What to remember.
    pub text: String,
    /// Its name; made up when absent. A name under `/memories/` is a file of the memory tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A short title, searched at a lower weight than the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Labels to filter by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Anything else, kept with the memory and returned by [`Get`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Replace only if the current version is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<String>,
    /// Fail if the key exists.
    #[serde(default)]
    pub create_only: bool,
}

/// What [`Remember`] did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The memory's name.
    pub key: String,
    /// Opaque; changes on every write.
    pub version: String,
    /// False when an earlier memory was replaced.
    pub created: bool,
    /// Length of the text in bytes.
    pub bytes: u64,
}

/// How [`Recall`] searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecallMode {
    /// By the words of the query (BM25).
    #[default]
    Lexical,
    /// By words and meaning.
    Hybrid,
    /// By meaning alone.
    Semantic,
}

/// Searches the memories. `Debug` is not derived: a query tells what its owner thinks of.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// Plain language; there is no query syntax.
    pub query: String,
    /// How many memories to return at most; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// Only memories at or below this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// Only memories that carry all of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Only memories whose metadata fits; see [`List::filter`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Map<String, Value>>,
    /// Only memories that were last written at this time or later; see [`List::since`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only memories that were last written before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Most characters of all excerpts together. There is always one result, with its excerpt cut if it must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u64>,
    /// Only results that score at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// How to search; the store's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RecallMode>,
}

/// One memory that [`Recall`] found. `Debug` is not derived: it holds memory text.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RecallHit {
    /// The memory's name.
    pub key: String,
    /// What results are ordered by.
    pub score: f64,
    /// The part of the score that words give.
    pub lexical_score: Option<f64>,
    /// The part of the score that meaning gives; none in lexical mode.
    pub semantic_score: Option<f64>,
    /// From the best passage, cut at character boundaries.
    pub excerpt: String,
    /// First and last line of that passage, 1-based.
    pub lines: [u64; 2],
    /// The memory's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The memory's tags.
    pub tags: Vec<String>,
    /// The version that was searched.
    pub version: String,
    /// RFC 3339, UTC.
    pub updated_at: String,
}

/// The answer to [`Recall`].
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// Best first.
    pub results: Vec<RecallHit>,
    /// How it was searched.
    pub mode: RecallMode,
    /// How many memories matched.
    pub total: u64,
    /// How many of them are in `results`.
    pub returned: u64,
    /// Whether some that matched are not in `results`, or `max_chars` cut an excerpt short.
    pub truncated: bool,
}

/// Reads one memory whole.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// The memory's name.
    pub key: String,
}

/// One memory, whole. `Debug` is not derived: it holds memory text.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The memory's name.
    pub key: String,
    /// What was remembered, byte for byte.
    pub text: String,
    /// Its title.
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata.
    pub metadata: Option<Map<String, Value>>,
    /// Opaque; changes on every write.
    pub version: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// RFC 3339, UTC.
    pub updated_at: String,
    /// Length of the text in bytes.
    pub bytes: u64,
    /// In copies: a random number that the memory keeps through all its versions, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// The order of a [`List`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListOrder {
    /// By name, `/` before every other character.
    #[default]
    Name,
    /// The last written first. A memory that is written while pages are read moves to the front, and so past
    /// a reader who has not come to it; every other one is seen once.
    Recent,
}

/// Lists memories, a page at a time.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Only names that start with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only memories that carry this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only memories whose metadata fits: `{"team": "ops"}`, `{"n": {"gte": 1, "lt": 5}}`,
    /// `{"k": {"in": [1, 2]}}`, `{"k": {"exists": true}}`, `{"or": [.., ..]}`, `{"and": [.., ..]}`,
    /// `{"not": {..}}`. Several fields must all fit; a dot leads into an object (`"source.page"`), and of a
    /// list one item has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Map<String, Value>>,
    /// Only memories that were last written at this time or later: RFC 3339, with or without fraction and
    /// offset (UTC then), or a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only memories that were last written before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// By name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ListOrder>,
    /// How many to return at most; 50 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// `next_cursor` of the page before, which was asked for with the same order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One memory in a [`Listing`], without its text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The memory's name.
    pub key: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Opaque; changes on every write.
    pub version: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// RFC 3339, UTC.
    pub updated_at: String,
    /// Length of the text in bytes.
    pub bytes: u64,
}

/// The answer to [`List`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// This page.
    pub memories: Vec<Listed>,
    /// How many memories match in all.
    pub total: u64,
    /// How many are on this page.
    pub returned: u64,
    /// Whether more follow.
    pub truncated: bool,
    /// Pass it as `cursor` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Reads memories whole, a page at a time, in the order of their names. Every memory that stays is on exactly
/// one page, whatever is written meanwhile; each page shows its own moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Most bytes of a page as JSON; can only lower the engine's own limit. One memory always fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// The answer to [`Export`]. `Debug` is not derived: it holds memory text.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// This page.
    pub memories: Vec<Memory>,
    /// How many memories there are in all.
    pub total: u64,
    /// How many are on this page.
    pub returned: u64,
    /// Whether more follow.
    pub truncated: bool,
    /// Pass it as `cursor` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Forgets memories for good: exactly one of `key`, `keys` and `prefix`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// One memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Several memories, in one transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Every memory whose name starts with this, in one transaction; needs `confirm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Must be true with `prefix`.
    #[serde(default)]
    pub confirm: bool,
}

/// The answer to [`Forget`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// How many memories were forgotten.
    pub forgotten: u64,
    /// Names in `keys` that no memory had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What the store says of it, signed; absent when nothing was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// What a name or a tag that was begun may become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggest {
    /// What is asked for.
    pub what: SuggestWhat,
    /// How it begins; may be empty.
    pub begun: String,
    /// How many to suggest at most.
    pub most: u64,
}

/// What can be suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuggestWhat {
    /// Names of memories.
    Keys,
    /// Folders, up to their `/`, and names of memories that are in none.
    Prefixes,
    /// Tags that some memory carries.
    Tags,
}

/// The answer to [`Suggest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggested {
    /// The likeliest first.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: u64,
}

/// From when on changes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesSince {
    /// Nanoseconds since 1970, UTC, by the clock of the machine that both are on.
    Time(u64),
    /// Those that follow an earlier answer.
    Mark(ChangeMark),
}

/// A place in the log of changes of one opening of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeMark {
    pub(crate) log: u64,
    pub(crate) next: u64,
}

/// Which memories changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Where to go on.
    pub mark: ChangeMark,
    /// In the order of the changes; a name may come more than once.
    pub changed: Vec<Changed>,
    /// Whether some may be missing from `changed`.
    pub missed: bool,
}

/// A memory that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Its name.
    pub key: String,
    /// Whether it came or went, and was not only changed.
    pub listed: bool,
}

/// A change of the memories, as one value.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Write {
    /// A command of the memory tool other than `view`.
    Command(Command, CommandLimits),
    /// Stores or replaces one memory.
    Remember(Remember),
    /// Forgets memories.
    Forget(Forget),
    /// Puts memories back.
    Restore(Restore),
}

/// The answer to a [`Write`].
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Written {
    /// What the command said.
    Command(Told),
    /// What was stored.
    Remember(Remembered),
    /// What was forgotten.
    Forget(Forgotten),
    /// What was put back.
    Restore(Restored),
}

/// The answer to a [`Command`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The exact result string of the memory tool.
    pub result: String,
    /// For `delete`: what the store says of it, signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// Names one [`Write`] of one client for good, so that sent twice it is made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OperationId {
    /// Random; made by the client when it starts.
    pub client: [u8; 16],
    /// Never used twice by that client.
    pub counter: u64,
}

/// Puts memories back as they were, all in one transaction: key, text, title, tags, metadata and times.
/// Their `version` and `bytes` are not looked at. `Debug` is not derived: it holds memory text.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// What is to be in the store.
    pub memories: Vec<Memory>,
    /// Whether a memory of the store gives way to one of the same name with other contents.
    #[serde(default)]
    pub replace: bool,
    /// Whether memories that were forgotten since are put back too.
    #[serde(default)]
    pub forgotten_too: bool,
}

/// The answer to [`Restore`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// How many memories were written.
    pub restored: u64,
    /// How many were there already, with the same contents.
    pub unchanged: u64,
    /// Names under which the store has other contents, which were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Names of memories that were forgotten since and were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
}

/// Sizes and limits of an open store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Version of the engine.
    pub version: String,
    /// The open namespace.
    pub namespace: String,
    /// How many memories there are.
    pub memories: u64,
    /// How many of them are files under `/memories`.
    pub files: u64,
    /// Bytes of text in all memories.
    pub text_bytes: u64,
    /// Bytes of the store's file on disk.
    pub store_bytes: u64,
    /// Records that could not be opened; `warm-mcp doctor` names them.
    pub damaged_records: u64,
    /// Recall: mode and index.
    pub recall: RecallStats,
    /// How the store is sealed.
    pub encryption: EncryptionStats,
    /// What computes: `cpu` until a device is in use.
    pub device: String,
    /// The search kernel in use.
    pub kernel: String,
    /// Why no write is taken now: the store's file is not where it was opened. Absent while all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses_writes: Option<String>,
    /// The limits in force.
    pub limits: Limits,
}

/// The state of the index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecallStats {
    /// The mode of a recall that names none.
    pub mode: RecallMode,
    /// False while the index is being rebuilt; recall waits for it.
    pub ready: bool,
    /// Passages in the index.
    pub passages: u64,
    /// Compressed segments that hold the older passages; none in a small store.
    pub segments: u64,
}

/// How a store is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncryptionStats {
    /// Version of the format on disk.
    pub format: u16,
    /// The cipher of the records.
    pub cipher: String,
    /// How the store secret was opened: `identity` or `passphrase`.
    pub opened_with: String,
    /// The store's Ed25519 public key, in hexadecimal: what its receipts are checked with. Absent where there is no
    /// store yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
}

/// The kind of a failure, as every door of WARM names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request breaks a rule; sending it again changes nothing.
    InvalidArgument,
    /// Over a limit.
    TooLarge,
    /// No such memory, file or directory.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// `if_version` names another version than the current one.
    VersionConflict,
    /// The store can't serve; the message says why.
    StoreUnavailable,
    /// Too much at once; try again.
    Busy,
    /// Not allowed on this server.
    Forbidden,
    /// Given up, since nobody waits for it any longer.
    Cancelled,
    /// A fault of WARM's own.
    Internal,
}
