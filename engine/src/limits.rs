//! How much is taken and given.

use serde::{Deserialize, Serialize};

/// Limits of an open store. Sizes are in bytes unless their name says characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Longest text of one memory.
    pub max_text_bytes: u64,
    /// Longest `view`, in characters.
    pub max_view_chars: u64,
    /// Longest path in the memory tree, and longest key.
    pub max_path_bytes: u64,
    /// Longest segment of a path.
    pub max_name_bytes: u64,
    /// Most segments below `/memories`.
    pub max_levels: u64,
    /// Longest title.
    pub max_title_bytes: u64,
    /// Most tags of one memory.
    pub max_tags: u64,
    /// Longest tag.
    pub max_tag_bytes: u64,
    /// Longest metadata, as JSON.
    pub max_metadata_bytes: u64,
    /// Largest `k` of a recall.
    pub max_top_k: u64,
    /// Largest `limit` of a list.
    pub max_page: u64,
    /// Most names in one `forget` by `keys`.
    pub max_forget: u64,
    /// Longest list of results in a `list` or `recall`, as JSON; one result always fits.
    pub max_reply_bytes: u64,
    /// Longest page of an `export`, as JSON; one memory always fits.
    pub max_export_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_text_bytes: 32 * 1024,
            max_view_chars: 16_000,
            max_path_bytes: 240,
            max_name_bytes: 128,
            max_levels: 16,
            max_title_bytes: 256,
            max_tags: 32,
            max_tag_bytes: 64,
            max_metadata_bytes: 4 * 1024,
            max_top_k: 50,
            max_page: 200,
            max_forget: 1_000,
            max_reply_bytes: 32 * 1024,
            max_export_bytes: 128 * 1024,
        }
    }
}
