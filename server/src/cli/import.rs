//! `warm-mcp import`: Markdown and text files become files of the memory tree.
//!
//! A file that can't be taken is named and the rest goes on. What is there already with the same text is passed
//! over, and with another text left as it is unless told otherwise, so running it again changes nothing.

use std::{
    collections::HashSet,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use walkdir::WalkDir;
use warm_engine::contract::{self, CommandLimits, ErrorCode, Get, Limits, Memory as Stored, Remember};

use super::{
    Done, Stop,
    output::{Output, note},
    store::{Access, open, open_if_there, other_answer, stats},
};
use crate::{
    memory::{Failure, Memory, Reply, Request},
    options::Options,
};

/// Files of these kinds are taken.
const KINDS: [&str; 4] = ["md", "markdown", "txt", "text"];

/// What to take in, and where it goes.
#[derive(Args, Clone, PartialEq, Eq)]
#[command(
    after_help = "Hidden files, links in a folder and other kinds of files are skipped. Running it again changes nothing.\n\
                  Ends with status 1 if a file was not imported."
)]
pub struct Import {
    /// Folders, with all folders in them, and files: .md, .markdown, .txt and .text, in UTF-8
    #[arg(value_name = "DIR|FILE", required = true)]
    sources: Vec<PathBuf>,
    /// Where they go below /memories
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    under: String,
    /// Replace memories of the same name that have another text
    #[arg(long)]
    replace: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// A file to take in, and the memory that it becomes.
struct Candidate {
    file: PathBuf,
    key: Result<String, &'static str>,
}

/// What was found and what became of it.
#[derive(Default)]
struct Report {
    imported: u64,
    replaced: u64,
    unchanged: u64,
    hidden: u64,
    other_kinds: u64,
    /// Files whose memory has another text.
    kept: Vec<String>,
    /// What could not be taken, and why.
    problems: Vec<String>,
}

impl Report {
    fn problem(&mut self, file: &Path, why: impl std::fmt::Display) {
        self.problems.push(format!("{}: {why}", file.display()));
    }
}

/// What became of one file.
enum Outcome {
    Imported,
    Replaced,
    Unchanged,
    Kept,
    Refused(String),
}

impl Import {
    pub fn run(&self, options: &Options) -> Done {
        let mut report = Report::default();
        let candidates = self.candidates(&mut report);
        let memory = open_if_there(options, &options.namespace().name)?;
        let limits = match &memory {
            Some(memory) => stats(&**memory)?.limits,
            None => options.limits(),
        };
        let importer = Importer { import: self, options, memory, limits, planned: HashSet::new() };
        let failed = importer.run(candidates, &mut report);
        self.print(&report)?;
        failed?;
        let complete = report.kept.is_empty() && report.problems.is_empty();
        Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The files that are to be taken, in the order of their names. Links in a folder are not followed.
    fn candidates(&self, report: &mut Report) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for source in &self.sources {
            let mut walk = WalkDir::new(source).sort_by_file_name().into_iter();
            while let Some(entry) = walk.next() {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        let why = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                        report.problem(error.path().unwrap_or(source), why);
                        continue;
                    }
                };
                let named = entry.depth() == 0;
                if !named && entry.file_name().to_string_lossy().starts_with('.') {
                    report.hidden += 1;
                    if entry.file_type().is_dir() {
                        walk.skip_current_dir();
                    }
                    continue;
                }
                // A link that was named is followed.
                if named && source.is_dir() || entry.file_type().is_dir() {
                    continue;
                }
                let kind = entry.path().extension().map(|kind| kind.to_string_lossy().to_lowercase());
                let taken = kind.is_some_and(|kind| KINDS.contains(&kind.as_str()));
                let regular = if named { source.is_file() } else { entry.file_type().is_file() };
                match (regular && taken, named) {
                    (true, _) => {
                        let below = if named {
                            Path::new(entry.file_name())
                        } else {
                            entry.path().strip_prefix(source).unwrap_or(entry.path())
                        };
                        candidates.push(Candidate { key: self.key(below), file: entry.path().to_owned() });
                    }
                    (false, true) => report.problem(source, "not a .md, .markdown, .txt or .text file"),
                    (false, false) => report.other_kinds += 1,
                }
            }
        }
        candidates
    }

    /// The memory that a file becomes, by its path within the folder that was named.
    fn key(&self, below: &Path) -> Result<String, &'static str> {
        let under = self.under.strip_prefix("/memories").unwrap_or(&self.under);
        let mut key = String::from("/memories");
        let folders = under.split('/').filter(|name| !name.is_empty()).map(Some);
        for name in folders.chain(below.iter().map(|name| name.to_str())) {
            key.push('/');
            key.push_str(name.ok_or("its name is not UTF-8; rename it")?);
        }
        Ok(key)
    }

    fn print(&self, report: &Report) -> Result<(), Stop> {
        let mut out = Output::new();
        let doing = if self.dry_run { "Nothing was written; this would be" } else { "Done" };
        out.line(format_args!(
            "{doing}: {} imported, {} replaced, {} unchanged; skipped: {} hidden, {} of other kinds.",
            report.imported, report.replaced, report.unchanged, report.hidden, report.other_kinds
        ))?;
        out.end()?;
        if !report.kept.is_empty() {
            note("Not imported, since the memory has another text (--replace replaces it):");
            report.kept.iter().for_each(|kept| note(format_args!("  {kept}")));
        }
        if !report.problems.is_empty() {
            note("Not imported:");
            report.problems.iter().for_each(|problem| note(format_args!("  {problem}")));
        }
        Ok(())
    }
}

struct Importer<'a> {
    import: &'a Import,
    options: &'a Options,
    /// `None` until there is something to keep: an import that fails leaves no empty store.
    memory: Option<Arc<dyn Memory>>,
    limits: Limits,
    /// Memories that a dry run would have made.
    planned: HashSet<String>,
}

impl Importer<'_> {
    /// Takes the files in, one by one. An error is one that no other file would fare better with.
    fn run(mut self, candidates: Vec<Candidate>, report: &mut Report) -> Result<(), Stop> {
        let bar = progress(candidates.len() as u64);
        for Candidate { file, key } in candidates {
            let outcome = match key {
                Ok(key) => self.one(&file, key)?,
                Err(why) => Outcome::Refused(why.to_owned()),
            };
            match outcome {
                Outcome::Imported => report.imported += 1,
                Outcome::Replaced => report.replaced += 1,
                Outcome::Unchanged => report.unchanged += 1,
                Outcome::Kept => report.kept.push(file.display().to_string()),
                Outcome::Refused(why) => report.problem(&file, why),
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn one(&mut self, file: &Path, key: String) -> Result<Outcome, Stop> {
        if let Err(error) = self.limits.check_key(&key) {
            return Ok(Outcome::Refused(error.to_string()));
        }
        let text = match read(file, self.limits.max_text_bytes) {
            Ok(text) => text,
            Err(why) => return Ok(Outcome::Refused(why)),
        };
        let there = match self.get(&key) {
            Ok(there) => there,
            Err(failure) => return refused(failure),
        };
        match there {
            Some(there) if there.text == text => Ok(Outcome::Unchanged),
            Some(_) if !self.import.replace => Ok(Outcome::Kept),
            Some(there) => self.replace(*there, text),
            None => self.create(key, text),
        }
    }

    fn get(&self, key: &str) -> Result<Option<Box<Stored>>, Failure> {
        let Some(memory) = &self.memory else { return Ok(None) };
        match memory.call(Request::Get(Get { key: key.to_owned() })) {
            Ok(Reply::Get(there)) => Ok(Some(there)),
            Ok(_) => Err(other_answer()),
            Err(failure) if failure.code == ErrorCode::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn create(&mut self, path: String, file_text: String) -> Result<Outcome, Stop> {
        if self.import.dry_run {
            return self.plan(path);
        }
        let memory = match &mut self.memory {
            Some(memory) => memory,
            none => none.insert(open(self.options, Access::Create)?),
        };
        let create = contract::Command::Create { path, file_text };
        match memory.call(Request::Command(create, CommandLimits::default())) {
            Ok(_) => Ok(Outcome::Imported),
            // Another process was quicker.
            Err(failure) if failure.code == ErrorCode::AlreadyExists => Ok(Outcome::Kept),
            Err(failure) => refused(failure),
        }
    }

    /// What [`Self::create`] would come to.
    fn plan(&mut self, path: String) -> Result<Outcome, Stop> {
        for (at, _) in path.match_indices('/').skip(2) {
            let folder = &path[..at];
            // The name of a directory is refused, and a free one not found.
            if self.planned.contains(folder) || matches!(self.get(folder), Ok(Some(_))) {
                return Ok(Outcome::Refused(format!("{folder} is a file, not a directory")));
            }
        }
        Ok(if self.planned.insert(path) { Outcome::Imported } else { Outcome::Kept })
    }

    fn replace(&self, there: Stored, text: String) -> Result<Outcome, Stop> {
        if self.import.dry_run {
            return Ok(Outcome::Replaced);
        }
        let remember = Remember {
            text,
            key: Some(there.key),
            title: there.title,
            tags: there.tags,
            metadata: there.metadata,
            if_version: Some(there.version),
            create_only: false,
        };
        match self.memory.as_ref().map(|memory| memory.call(Request::Remember(remember))) {
            Some(Ok(_)) => Ok(Outcome::Replaced),
            Some(Err(failure)) => refused(failure),
            None => Err(other_answer().into()),
        }
    }
}

/// What concerns one file alone is named and the rest goes on; what concerns the store ends it.
fn refused(failure: Failure) -> Result<Outcome, Stop> {
    match failure.code {
        ErrorCode::StoreUnavailable | ErrorCode::Internal | ErrorCode::Busy | ErrorCode::Forbidden => {
            Err(Stop::Said(format!(
                "{}.\nWhat was imported before stays; when the cause is gone, run it again.",
                failure.message.trim_end_matches('.')
            )))
        }
        _ => Ok(Outcome::Refused(failure.message)),
    }
}

/// The text of a file, byte for byte.
fn read(file: &Path, limit: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is over the limit of {limit} bytes; split it, or raise --max-text-bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text; convert it first".to_owned())
}

/// A progress bar on stderr, if that is a terminal.
fn progress(files: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(files), ProgressDrawTarget::stderr());
    // A style that is not understood would only look plainer.
    if let Ok(style) = ProgressStyle::with_template("importing {bar:40} {pos} of {len} files, {eta} left") {
        bar.set_style(style);
    }
    bar
}
