//! A page of an export, in the form that was asked for.
//!
//! Every page is whole by itself: an array, some lines, some Markdown, or one sealed archive that
//! `warm-mcp restore` takes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::Value;
use warm_engine::{
    ArchiveKey,
    archive::ArchiveWriter,
    contract::{ErrorCode, Exported, Memory as Stored},
};

use super::fields::quoted;
use crate::{markdown, memory::Failure};

/// How memories are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Json,
    Jsonl,
    Markdown,
    Age,
}

/// What an archive adds to its memories: header, trailer, and the age file's own.
const ARCHIVE_BYTES: u64 = 2_048;

impl Format {
    pub const NAMES: [&str; 4] = ["json", "jsonl", "markdown", "age"];

    pub fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "json" => Ok(Self::Json),
            "jsonl" => Ok(Self::Jsonl),
            "markdown" => Ok(Self::Markdown),
            "age" => Ok(Self::Age),
            _ => Err(Failure::invalid(format!(
                "export has no format {}. It has: {}.",
                quoted(name),
                Self::NAMES.join(", ")
            ))),
        }
    }

    /// How many bytes of memories may be on a page that is to have at most `limit` bytes in this form.
    pub fn room(self, limit: u64) -> u64 {
        match self {
            Self::Json | Self::Jsonl | Self::Markdown => limit,
            // base64 makes four bytes of three.
            Self::Age => (limit / 4 * 3).saturating_sub(ARCHIVE_BYTES),
        }
    }
}

/// One page as a client reads it.
#[derive(Serialize)]
pub struct Page {
    format: Format,
    /// The memories, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    memories: Option<Vec<Stored>>,
    /// The memories in another form; base64 where they are sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    total: u64,
    returned: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Page {
    /// Writes a page. The key is asked for where it is needed.
    pub fn new(
        page: Exported,
        format: Format,
        namespace: &str,
        key: impl FnOnce() -> Result<ArchiveKey, Failure>,
    ) -> Result<Self, Failure> {
        let Exported { memories, total, returned, truncated, next_cursor } = page;
        let (memories, content) = match format {
            Format::Json => (Some(memories), None),
            Format::Jsonl => (None, Some(lines(&memories)?)),
            Format::Markdown => (None, Some(texts(&memories))),
            Format::Age => (None, Some(sealed(&memories, namespace, &key()?)?)),
        };
        Ok(Self { format, memories, content, total, returned, truncated, next_cursor })
    }
}

fn lines(memories: &[Stored]) -> Result<String, Failure> {
    let mut lines = String::new();
    for memory in memories {
        lines += &serde_json::to_string(memory).map_err(|_| unwritten())?;
        lines.push('\n');
    }
    Ok(lines)
}

fn texts(memories: &[Stored]) -> String {
    memories.iter().enumerate().map(|(place, memory)| markdown::section(memory, place == 0)).collect()
}

fn sealed(memories: &[Stored], namespace: &str, key: &ArchiveKey) -> Result<String, Failure> {
    let write = || {
        let mut archive = ArchiveWriter::begin(key, Vec::new(), namespace)?;
        memories.iter().try_for_each(|memory| archive.add(memory))?;
        archive.finish()
    };
    write().map(|bytes| STANDARD.encode(bytes)).map_err(|_: std::io::Error| unwritten())
}

fn unwritten() -> Failure {
    Failure::new(
        ErrorCode::Internal,
        "The page could not be written. Take another format, and report this as a fault of warm-mcp.",
    )
}

/// For the schema.
pub fn names() -> Value {
    serde_json::json!(Format::NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_that_is_described_is_taken() {
        for name in Format::NAMES {
            let format = Format::named(name).unwrap_or_else(|failure| panic!("{}", failure.message));
            assert_eq!(serde_json::json!(format), *name);
        }
        let refused = Format::named("zip").err().map(|failure| failure.message);
        assert_eq!(
            refused.as_deref(),
            Some("export has no format `zip`. It has: json, jsonl, markdown, age.")
        );
    }
}
