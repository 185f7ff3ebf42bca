//! `warm-mcp export`: all memories of one moment, for people and other programs to read.
//!
//! Owns the shapes of a copy. A target is whole or not there; that is [`target`](super::target)'s business.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use warm_engine::contract::{List, Memory as Stored};

use super::{
    Done, Stop,
    backup::{counted, dump, seal},
    output::{Output, note},
    store::{Access, open, other_answer, warn_of_damage},
    target::{NewFolder, Sink},
};
use crate::{
    memory::{Memory, Reply, Request},
    options::Options,
};

/// What to write, and where.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Export {
    /// A folder to make, a file to make (.md, .jsonl, .json, .age), or - for stdout
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// How to write it [default: as the target's name says; jsonl for stdout]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Format>,
    /// Replace a file if it exists, once the new one is whole
    #[arg(long)]
    force: bool,
}

/// How memories are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The texts alone: a file per memory in a folder, or one below the other in a .md file
    Markdown,
    /// A JSON object a line, with title, tags, metadata and times
    Jsonl,
    /// The same as one JSON array
    Json,
    /// Sealed as a backup is; restore reads it
    Age,
}

impl Format {
    fn of_name(target: &Path) -> Option<Self> {
        match target.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "md" => Some(Self::Markdown),
            "jsonl" => Some(Self::Jsonl),
            "json" => Some(Self::Json),
            "age" => Some(Self::Age),
            _ => None,
        }
    }
}

impl Export {
    pub fn run(&self, options: &Options) -> Done {
        let named = Format::of_name(&self.target);
        let to_stdout = self.target == Path::new("-");
        let default = if to_stdout { Format::Jsonl } else { Format::Markdown };
        let format = self.format.or(named).unwrap_or(default);
        let memory = open(options, Access::Existing)?;
        warn_of_damage(&*memory)?;
        let memories = if format == Format::Markdown && named.is_none() && !to_stdout {
            folder(&*memory, &self.target)?
        } else {
            self.file(&*memory, format, options)?
        };
        if !to_stdout {
            let target = std::path::absolute(&self.target).unwrap_or_else(|_| self.target.clone());
            let mut out = Output::new();
            out.line(format_args!("Exported {} to {}.", counted(memories), target.display()))?;
            out.end()?;
        }
        if format != Format::Age {
            note(
                "warm-mcp: the exported copy is outside the seal: whoever has it can read it, and what an agent \
                 forgets stays in it. Delete it when you no longer need it.",
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn file(&self, memory: &dyn Memory, format: Format, options: &Options) -> Result<u64, Stop> {
        if format == Format::Age {
            return Ok(seal(memory, &self.target, self.force, options)?.memories);
        }
        let mut sink = Sink::open(&self.target, self.force)?;
        let blame = sink.blame();
        let mut first = true;
        let memories = dump(memory, |stored| {
            let first = std::mem::take(&mut first);
            write(&mut sink, format, stored, first).map_err(&blame)
        })?;
        if format == Format::Json {
            sink.write_all(if memories == 0 { b"[]\n" } else { b"\n]\n" }).map_err(&blame)?;
        }
        sink.finish()?;
        Ok(memories)
    }
}

/// Writes one memory of several in one file.
fn write(out: &mut impl Write, format: Format, stored: &Stored, first: bool) -> std::io::Result<()> {
    match format {
        Format::Json => {
            out.write_all(if first { b"[\n" } else { b",\n" })?;
            Ok(serde_json::to_writer(out, stored)?)
        }
        Format::Markdown => {
            let between = if first { "" } else { "\n" };
            let newline = if stored.text.ends_with('\n') { "" } else { "\n" };
            write!(out, "{between}# {}\n\n{}{newline}", stored.key, stored.text)
        }
        Format::Jsonl | Format::Age => {
            serde_json::to_writer(&mut *out, stored)?;
            out.write_all(b"\n")
        }
    }
}

/// Writes each memory as a file of its own: those of the tree at their paths, others in a folder beside them.
fn folder(memory: &dyn Memory, target: &Path) -> Result<u64, Stop> {
    let others = folder_for_others(memory)?;
    let folder = NewFolder::beside(target)?;
    let memories = dump(memory, |stored| {
        let name = match stored.key.strip_prefix("/memories/") {
            Some(path) => PathBuf::from(path),
            None => Path::new(&others).join(file_name(&stored.key)),
        };
        folder.write(&name, stored.text.as_bytes())
    })?;
    folder.finish()?;
    Ok(memories)
}

/// A name that nothing in the tree has.
fn folder_for_others(memory: &dyn Memory) -> Result<String, Stop> {
    let mut number = 1;
    loop {
        let name = if number == 1 { "other-memories".to_owned() } else { format!("other-memories-{number}") };
        let taken = List { prefix: Some(format!("/memories/{name}")), limit: Some(1), ..List::default() };
        match memory.call(Request::List(taken))? {
            Reply::List(listing) if listing.total == 0 => return Ok(name),
            Reply::List(_) => number += 1,
            _ => return Err(other_answer().into()),
        }
    }
}

/// Longest name that is written whole: file systems take 255 bytes.
const LONGEST_NAME: usize = 200;

/// A file name for a key: what a file system may not take is percent-encoded.
fn file_name(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for (at, c) in key.char_indices() {
        if c.is_control() || "/\\%:*?\"<>|".contains(c) || (at == 0 && c == '.') {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| name += &format!("%{byte:02X}"));
        } else {
            name.push(c);
        }
    }
    if name.len() > LONGEST_NAME {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let cut = (0..=LONGEST_NAME).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        name.truncate(cut);
        name += &format!("~{:016x}", hasher.finish());
    }
    name + ".md"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_one_name_that_every_file_system_takes() {
        assert_eq!(file_name("plain key"), "plain key.md");
        assert_eq!(file_name("ü/a%b:c"), "ü%2Fa%25b%3Ac.md");
        assert_eq!(file_name(".hidden.."), "%2Ehidden...md");
        let long = |last: char| file_name(&format!("{}{last}", "/".repeat(239)));
        assert!(long('a').len() < 255 && long('a') != long('b'));
        assert!(file_name(&"語".repeat(80)).len() < 255);
    }
}
