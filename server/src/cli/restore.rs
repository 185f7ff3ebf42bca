//! `warm-mcp restore`: the memories of a backup, put back.
//!
//! The whole archive is read and checked before the first memory is written. What the store has under the same
//! name is left as it is unless told otherwise, so running it again changes nothing.

use std::{
    fs::{self, File},
    io::{self, BufReader, Seek},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use warm_engine::{
    ArchiveKey,
    archive::{ArchiveError, ArchiveReader},
    contract::{ErrorCode, Get, Memory as Stored, Restore as Batch, Restored},
};

use super::{
    Done, Stop,
    backup::counted,
    output::Output,
    store::{Access, archive_key, open_if_there, open_namespace, other_answer},
};
use crate::{
    memory::{Failure, Memory, Reply, Request},
    namespaces::options::Namespace,
    options::Options,
};

/// A batch is written once it has so many bytes of text or so many memories.
const BATCH_BYTES: usize = 1024 * 1024;
const BATCH_MEMORIES: usize = 256;

/// What to put back, and how.
#[derive(Args, Clone, PartialEq, Eq)]
#[command(
    after_help = "The memories go to the namespace that they were backed up from, unless --namespace names another.\n\
                  All of the backup is checked before the first is written."
)]
pub struct Restore {
    /// The backup, or a folder of backups; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace what the store has under the same name with other contents
    #[arg(long)]
    replace: bool,
    /// Put back also what was forgotten since the backup was made
    #[arg(long)]
    forgotten_too: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl Restore {
    pub fn run(&self, options: &Options) -> Done {
        if !self.file.is_dir() {
            return self.one(options);
        }
        if options.namespace().is_chosen() {
            return Err(Stop::Said(format!(
                "{} is a folder, whose backups go to the namespaces that they are of: leave --namespace and --project \
                 out, or name one file.",
                self.file.display()
            )));
        }
        let files = fs::read_dir(&self.file).map_err(|error| self.unreadable(&error))?;
        let files = files.flatten().map(|entry| entry.path());
        let mut files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|kind| kind == "age")).collect();
        files.sort_unstable();
        if files.is_empty() {
            return Err(self.unreadable(&io::Error::other("no .age file is in it")));
        }
        // Each is checked whole before it is written, and one that is not leaves the others as they were put back.
        for file in files {
            Self { file, ..self.clone() }.one(options)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn one(&self, options: &Options) -> Done {
        let key = archive_key(&options.vault()?)?;
        let file = self.open()?;
        let mut archive = self.reader(&key, &file, options).map_err(unchanged)?;
        while self.next(&mut archive).map_err(unchanged)?.is_some() {}
        let namespace = match options.namespace() {
            chosen if chosen.is_chosen() => chosen.clone(),
            _ => Namespace::named(archive.namespace()),
        };
        let made = archive.created_at().to_owned();
        drop(archive);
        (&file).rewind().map_err(|error| self.unreadable(&error))?;
        let mut archive = self.reader(&key, &file, options)?;
        let done = if self.dry_run {
            let memory = open_if_there(options, &namespace.name)?;
            self.look(&mut archive, memory.as_deref())?
        } else {
            let memory = open_namespace(options, &namespace, Access::Create)?;
            self.write(&mut archive, &*memory)?
        };
        self.report(&done, &namespace.name, &made)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The archive, in a file that can be read twice. What comes from stdin is kept sealed in a temporary
    /// file that has no name.
    fn open(&self) -> Result<File, Stop> {
        let opened = if self.file == Path::new("-") {
            tempfile::tempfile().and_then(|mut file| {
                io::copy(&mut io::stdin().lock(), &mut file)?;
                file.rewind()?;
                Ok(file)
            })
        } else {
            File::open(&self.file).and_then(|file| match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("it is not a file")),
            })
        };
        opened.map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> Stop {
        Stop::Said(format!(
            "{} can't be read: {error}.\nNothing was changed. Check the name.",
            self.file.display()
        ))
    }

    fn reader<'f>(
        &self,
        key: &ArchiveKey,
        file: &'f File,
        options: &Options,
    ) -> Result<ArchiveReader<BufReader<&'f File>>, Stop> {
        ArchiveReader::open(key, BufReader::new(file), options.limits()).map_err(|error| self.refused(&error))
    }

    fn next(&self, archive: &mut ArchiveReader<BufReader<&File>>) -> Result<Option<Stored>, Stop> {
        archive.next().map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &ArchiveError) -> Stop {
        Stop::Said(format!("{} can't be restored: {error}.", self.file.display()))
    }

    fn write(
        &self,
        archive: &mut ArchiveReader<BufReader<&File>>,
        memory: &dyn Memory,
    ) -> Result<Restored, Stop> {
        let mut done = Restored::default();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let next = self.next(archive)?;
            let ended = next.is_none();
            if let Some(stored) = next {
                bytes += stored.text.len();
                batch.push(stored);
            }
            if batch.len() < BATCH_MEMORIES && bytes < BATCH_BYTES && !ended {
                continue;
            }
            if !batch.is_empty() {
                let request = Batch {
                    memories: std::mem::take(&mut batch),
                    replace: self.replace,
                    forgotten_too: self.forgotten_too,
                };
                bytes = 0;
                let part = send(memory, request).map_err(|failure| {
                    Stop::Said(format!(
                        "{}.\nBefore that, {} were restored and stay. When the cause is gone, run it again: what \
                         is there already is left alone.",
                        failure.message.trim_end_matches('.'),
                        counted(done.restored)
                    ))
                })?;
                done.restored += part.restored;
                done.unchanged += part.unchanged;
                done.kept.extend(part.kept);
                done.forgotten.extend(part.forgotten);
            }
            if ended {
                return Ok(done);
            }
        }
    }

    /// What [`Self::write`] would do.
    fn look(
        &self,
        archive: &mut ArchiveReader<BufReader<&File>>,
        memory: Option<&dyn Memory>,
    ) -> Result<Restored, Stop> {
        let mut done = Restored::default();
        while let Some(stored) = self.next(archive)? {
            let there = match memory.map(|memory| memory.call(Request::Get(Get { key: stored.key.clone() })))
            {
                None => None,
                Some(Ok(Reply::Get(there))) => Some(there),
                Some(Ok(_)) => return Err(other_answer().into()),
                Some(Err(failure)) if failure.code == ErrorCode::NotFound => None,
                Some(Err(failure)) => return Err(failure.into()),
            };
            match there {
                Some(there) if there.says_the_same_as(&stored) => done.unchanged += 1,
                Some(_) if !self.replace => done.kept.push(stored.key),
                _ if !self.forgotten_too && was_forgotten(memory, &stored)? => {
                    done.forgotten.push(stored.key)
                }
                _ => done.restored += 1,
            }
        }
        Ok(done)
    }

    fn report(&self, done: &Restored, namespace: &str, made: &str) -> Result<(), Stop> {
        let mut out = Output::new();
        let doing = if self.dry_run { "Nothing was written; this would be" } else { "Done" };
        out.line(format_args!(
            "{doing}: from {}, made {made}, into the namespace {namespace}: {} restored, {} unchanged, {} kept{}.",
            self.file.display(),
            done.restored,
            done.unchanged,
            done.kept.len(),
            match done.forgotten.len() {
                0 => String::new(),
                left => format!(", {left} left forgotten"),
            }
        ))?;
        if !done.kept.is_empty() {
            out.line(
                "Kept, since the store has other contents under the name (--replace takes those of the backup):",
            )?;
            for key in &done.kept {
                out.line(format_args!("  {key}"))?;
            }
        }
        if !done.forgotten.is_empty() {
            out.line("Left out, since they were forgotten after the backup was made (--forgotten-too puts them back):")?;
            for key in &done.forgotten {
                out.line(format_args!("  {key}"))?;
            }
        }
        out.end()
    }
}

/// Whether a memory of the backup was forgotten since.
fn was_forgotten(memory: Option<&dyn Memory>, stored: &Stored) -> Result<bool, Stop> {
    let (Some(memory), Some(origin)) = (memory, &stored.origin) else { return Ok(false) };
    match memory.call(Request::Forgotten(vec![origin.clone()]))? {
        Reply::Forgotten(forgotten) => Ok(forgotten == [true]),
        _ => Err(other_answer().into()),
    }
}

fn unchanged(stop: Stop) -> Stop {
    match stop {
        Stop::Said(problem) => Stop::Said(format!("{problem}\nNothing was changed.")),
        Stop::Unheard => Stop::Unheard,
    }
}

fn send(memory: &dyn Memory, batch: Batch) -> Result<Restored, Failure> {
    match memory.call(Request::Restore(batch))? {
        Reply::Restore(restored) => Ok(restored),
        _ => Err(other_answer()),
    }
}
