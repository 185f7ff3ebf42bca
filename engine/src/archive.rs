//! Archives: the memories of a store in one age file, to keep elsewhere and to restore from.
//!
//! Owns the format, its writer and its reader, both a memory at a time. It is here and not with the
//! commands, since what is written must open for years: it belongs to the formats on disk.
//!
//! An archive is an age file for the [`ArchiveKey`]. Inside are lines of JSON:
//!
//! ```text
//! {"warm_backup":1,"namespace":"default","created_at":"2026-01-31T12:00:00Z"}
//! {"key":"/memories/a.md","text":"...", ...}                one per memory, a `contract::Memory`
//! {"end":true,"memories":1,"sha256":"..."}                  over all bytes of the lines before
//! ```
//!
//! The last line makes a cut visible that falls between two lines, also in a copy that was opened with
//! the age tool and sealed again.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use age::stream::{StreamReader, StreamWriter};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::contract::{Limits, Memory};
use crate::sealed::hex;
use crate::time::{now, rfc3339};
use crate::transfer::{self, TransferError};
use crate::vault::{ArchiveKey, UnopenedArchive};

/// Version of the format of archives.
pub const ARCHIVE_VERSION: u64 = 1;

/// Longest line that is read: more than JSON can make of the longest text and what goes with it.
const LONGEST_LINE: u64 = 512 * 1024 * 1024;

/// Why an archive could not be read. Messages name what is wrong, never what is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Not an age file, or cut off in its first bytes.
    #[error(
        "it is not a backup of warm-mcp, or cut off at its beginning: check the name, or take another copy"
    )]
    NotAnArchive,
    /// Sealed to another identity.
    #[error("wrong key: no identity in {} opens it; name the file that it was sealed to with --identity", .0.display())]
    WrongIdentity(PathBuf),
    /// Sealed to another passphrase.
    #[error("wrong passphrase: check the variable that --passphrase-env names")]
    WrongPassphrase,
    /// Sealed to a passphrase, and an identity was given.
    #[error(
        "it is sealed to a passphrase: put that in an environment variable and name the variable with --passphrase-env"
    )]
    NeedsPassphrase,
    /// Sealed to an identity, and a passphrase was given.
    #[error(
        "it is sealed to an identity, not to a passphrase: name the identity file with --identity, without --passphrase-env"
    )]
    NeedsIdentity,
    /// Of a later version.
    #[error(
        "it is of backup version {0}, and this warm-mcp reads version {ARCHIVE_VERSION}: use the warm-mcp that wrote it, or a newer one"
    )]
    OtherVersion(u64),
    /// Changed or cut.
    #[error("it is damaged or cut short ({0}): take another copy of it")]
    Damaged(String),
    /// A memory in it breaks a rule or limit of this store.
    #[error(transparent)]
    Refused(#[from] TransferError),
    /// It can't be read.
    #[error("it can't be read: {0}")]
    Io(io::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    warm_backup: u64,
    namespace: String,
    created_at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trailer {
    end: bool,
    memories: u64,
    sha256: String,
}

/// How the last line begins, and no other.
const TRAILER: &[u8] = br#"{"end":"#;

/// Writes an archive. One that is not [finished](ArchiveWriter::finish) does not open.
pub struct ArchiveWriter<W: Write> {
    sealed: StreamWriter<W>,
    digest: Sha256,
    memories: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive of a namespace.
    ///
    /// # Errors
    /// Whatever the writer returns.
    pub fn begin(key: &ArchiveKey, writer: W, namespace: &str) -> io::Result<Self> {
        let mut archive = Self { sealed: key.seal(writer)?, digest: Sha256::new(), memories: 0 };
        archive.line(&Header {
            warm_backup: ARCHIVE_VERSION,
            namespace: namespace.to_owned(),
            created_at: rfc3339(now()),
        })?;
        Ok(archive)
    }

    /// Adds a memory.
    ///
    /// # Errors
    /// Whatever the writer returns.
    pub fn add(&mut self, memory: &Memory) -> io::Result<()> {
        self.line(memory)?;
        self.memories += 1;
        Ok(())
    }

    /// Ends the archive and returns what was written to.
    ///
    /// # Errors
    /// Whatever the writer returns.
    pub fn finish(mut self) -> io::Result<W> {
        let sha256 = hex(&self.digest.clone().finalize());
        let memories = self.memories;
        self.line(&Trailer { end: true, memories, sha256 })?;
        self.sealed.finish()
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = Zeroizing::new(serde_json::to_vec(value)?);
        line.push(b'\n');
        self.digest.update(&*line);
        self.sealed.write_all(&line)
    }
}

/// Reads an archive, a memory at a time. That it is whole is known once [`next`](ArchiveReader::next) has
/// returned `None`.
pub struct ArchiveReader<R: Read> {
    lines: BufReader<StreamReader<R>>,
    digest: Sha256,
    memories: u64,
    namespace: String,
    created_at: String,
    limits: Limits,
    ended: bool,
}

impl<R: Read> ArchiveReader<R> {
    /// Opens an archive and reads its header. Its memories are held to `limits`.
    ///
    /// # Errors
    /// [`ArchiveError`] names what is wrong.
    pub fn open(key: &ArchiveKey, reader: R, limits: Limits) -> Result<Self, ArchiveError> {
        let opened = key.open(reader).map_err(|why| match why {
            UnopenedArchive::WrongIdentity(path) => ArchiveError::WrongIdentity(path),
            UnopenedArchive::WrongPassphrase => ArchiveError::WrongPassphrase,
            UnopenedArchive::NeedsPassphrase => ArchiveError::NeedsPassphrase,
            UnopenedArchive::NeedsIdentity => ArchiveError::NeedsIdentity,
            UnopenedArchive::NotAge => ArchiveError::NotAnArchive,
            UnopenedArchive::Damaged(reason) => ArchiveError::Damaged(reason.into()),
            UnopenedArchive::Io(error) => ArchiveError::Io(error),
        })?;
        let mut archive = Self {
            lines: BufReader::new(opened),
            digest: Sha256::new(),
            memories: 0,
            namespace: String::new(),
            created_at: String::new(),
            limits,
            ended: false,
        };
        let line = archive.line()?.ok_or_else(|| damaged("it is empty"))?;
        let version = serde_json::from_slice::<serde_json::Value>(&line)
            .ok()
            .and_then(|header| header.get("warm_backup")?.as_u64())
            .ok_or(ArchiveError::NotAnArchive)?;
        if version != ARCHIVE_VERSION {
            return Err(ArchiveError::OtherVersion(version));
        }
        let header: Header =
            serde_json::from_slice(&line).map_err(|_| damaged("its first line is malformed"))?;
        archive.digest.update(&*line);
        archive.namespace = header.namespace;
        archive.created_at = header.created_at;
        Ok(archive)
    }

    /// The namespace whose memories these are.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// When it was made: RFC 3339, UTC.
    pub fn created_at(&self) -> &str {
        &self.created_at
    }

    /// The next memory, or `None` at the end of an archive that is whole.
    ///
    /// # Errors
    /// [`ArchiveError`] names what is wrong.
    #[allow(clippy::should_implement_trait)] // An iterator could be dropped before the end is known.
    pub fn next(&mut self) -> Result<Option<Memory>, ArchiveError> {
        if self.ended {
            return Ok(None);
        }
        let number = self.memories + 2;
        let line = self.line()?.ok_or_else(|| damaged("its last line is missing"))?;
        if line.starts_with(TRAILER) {
            return self.end(&line).map(|()| None);
        }
        let malformed = |_| damaged(&format!("line {number} is malformed"));
        let memory: Memory = serde_json::from_slice(&line).map_err(malformed)?;
        transfer::check(&memory, &self.limits)?;
        self.digest.update(&*line);
        self.memories += 1;
        Ok(Some(memory))
    }

    fn end(&mut self, line: &[u8]) -> Result<(), ArchiveError> {
        let trailer: Trailer =
            serde_json::from_slice(line).map_err(|_| damaged("its last line is malformed"))?;
        let sha256 = hex(&self.digest.clone().finalize());
        if !trailer.end || trailer.memories != self.memories || trailer.sha256 != sha256 {
            return Err(damaged("its last line does not fit the lines before"));
        }
        if self.line()?.is_some() {
            return Err(damaged("something follows its last line"));
        }
        self.ended = true;
        Ok(())
    }

    /// The next line with its end, or `None` where the archive ends.
    fn line(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, ArchiveError> {
        let mut line = Zeroizing::new(Vec::new());
        let read = self.lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => Ok(None),
            Ok(_) if line.ends_with(b"\n") => Ok(Some(line)),
            Ok(_) => Err(damaged("a line has no end")),
            Err(error) => match error.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                    Err(damaged("its seal is broken or its end is missing"))
                }
                _ => Err(ArchiveError::Io(error)),
            },
        }
    }
}

fn damaged(reason: &str) -> ArchiveError {
    ArchiveError::Damaged(reason.into())
}
