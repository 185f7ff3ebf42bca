//! `warm-mcp export`: all memories of one moment, for people and other programs to read.
//!
//! Owns the shapes of a copy. A target is whole or not there; that is [`target`](super::target)'s business.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use warm_engine::contract::{CopyKind, List, Memory as Stored};

use super::{
    Done, Stop,
    backup::{copying, counted, dump, seal},
    namespaces,
    output::{Output, note},
    store::{Access, open, open_if_there, other_answer, warn_of_damage},
    target::{NewFolder, Sink, safe_name},
};
use crate::{
    markdown,
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
    /// All namespaces: the target is a folder to make, with a folder or file for each in it
    #[arg(long)]
    all_namespaces: bool,
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

    fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "",
            Self::Jsonl => ".jsonl",
            Self::Json => ".json",
            Self::Age => ".age",
        }
    }
}

impl Export {
    pub fn run(&self, options: &Options) -> Done {
        let named = Format::of_name(&self.target);
        let to_stdout = self.target == Path::new("-");
        let default = if to_stdout { Format::Jsonl } else { Format::Markdown };
        if self.all_namespaces {
            return self.all(self.format.unwrap_or(default), options);
        }
        let chosen = self.format.or(named);
        if chosen.is_none() && !to_stdout && self.looks_like_a_file() {
            return Err(Stop::Said(format!(
                "{} ends in no form that is known: .md, .jsonl, .json or .age.\nName one of these, choose a --format, \
                 or end it with / for a folder.",
                self.target.display()
            )));
        }
        let format = chosen.unwrap_or(default);
        let memory = open(options, Access::Existing)?;
        warn_of_damage(&*memory)?;
        let memories = if format == Format::Markdown && named.is_none() && !to_stdout {
            folder(&*memory, &self.target, &self.target)?
        } else {
            self.file(&*memory, (&self.target, &self.target), format, &options.namespace().name, options)?
        };
        if !to_stdout {
            let target = std::path::absolute(&self.target).unwrap_or_else(|_| self.target.clone());
            let mut out = Output::new();
            out.line(format_args!("Exported {} to {}.", counted(memories), target.display()))?;
            out.end()?;
        }
        warn_of_the_copy(format);
        Ok(ExitCode::SUCCESS)
    }

    /// Whether the target was named as a file is, and is not a folder that is there.
    fn looks_like_a_file(&self) -> bool {
        let ends_as_folder = self.target.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
        self.target.extension().is_some() && !ends_as_folder && !self.target.is_dir()
    }

    /// Writes a folder with a folder or file for each namespace.
    fn all(&self, format: Format, options: &Options) -> Done {
        let target = NewFolder::beside(&self.target)?;
        let mut done = Vec::new();
        for name in namespaces::all(options)? {
            let Some(memory) = open_if_there(options, &name)? else { continue };
            warn_of_damage(&*memory)?;
            let file = safe_name(&name) + format.extension();
            let (place, told) = (target.place(&file), self.target.join(&file));
            let memories = match format {
                Format::Markdown => folder(&*memory, &place, &told)?,
                format => self.file(&*memory, (&place, &told), format, &name, options)?,
            };
            done.push(format!("  {name}: {}", counted(memories)));
        }
        target.finish()?;
        let target = std::path::absolute(&self.target).unwrap_or_else(|_| self.target.clone());
        let mut out = Output::new();
        out.line(format_args!("Exported to {}:", target.display()))?;
        done.into_iter().try_for_each(|line| out.line(line))?;
        out.end()?;
        warn_of_the_copy(format);
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a file, which the store is told will be at `told`.
    fn file(
        &self,
        memory: &dyn Memory,
        (target, told): (&Path, &Path),
        format: Format,
        namespace: &str,
        options: &Options,
    ) -> Result<u64, Stop> {
        if format == Format::Age {
            return Ok(seal(memory, target, told, self.force, namespace, options)?.memories);
        }
        let mut sink = Sink::open(target, self.force)?;
        let blame = sink.blame();
        let mut first = true;
        let memories = dump(memory, &copying(CopyKind::Export, told), |stored| {
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

fn warn_of_the_copy(format: Format) {
    if format != Format::Age {
        note(
            "warm-mcp: the exported copy is outside the seal: whoever has it can read it, and what an agent \
             forgets stays in it. Delete it when you no longer need it.",
        );
    }
}

/// Writes one memory of several in one file.
fn write(out: &mut impl Write, format: Format, stored: &Stored, first: bool) -> std::io::Result<()> {
    match format {
        Format::Json => {
            out.write_all(if first { b"[\n" } else { b",\n" })?;
            Ok(serde_json::to_writer(out, stored)?)
        }
        Format::Markdown => out.write_all(markdown::section(stored, first).as_bytes()),
        Format::Jsonl | Format::Age => {
            serde_json::to_writer(&mut *out, stored)?;
            out.write_all(b"\n")
        }
    }
}

/// Writes each memory as a file of its own: those of the tree at their paths, others in a folder beside them.
fn folder(memory: &dyn Memory, target: &Path, told: &Path) -> Result<u64, Stop> {
    let others = folder_for_others(memory)?;
    let folder = NewFolder::beside(target)?;
    let memories = dump(memory, &copying(CopyKind::Export, told), |stored| {
        let name = match stored.key.strip_prefix("/memories/") {
            Some(path) => PathBuf::from(path),
            None => Path::new(&others).join(safe_name(&stored.key) + ".md"),
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
