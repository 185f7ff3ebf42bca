//! `warm-mcp backup`: all memories of one moment in one sealed file.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use warm_engine::{ArchiveKey, archive::ArchiveWriter, contract::Memory as Stored};

use super::{
    Done, Stop,
    output::{Output, note},
    store::{Access, archive_key, open, warn_of_damage},
    target::Sink,
};
use crate::{
    memory::{Failure, Memory},
    options::Options,
};

/// What to write, and where.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The file to make; - is stdout
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists, once the new one is whole
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        warn_of_damage(&*memory)?;
        let Sealed { memories, bytes, key } = seal(&*memory, &self.file, self.force, options)?;
        let needed = match key.identity_path() {
            Some(identity) => format!(
                "Opening it takes the identity file {}{}: keep a copy of that too, in another place.",
                identity.display(),
                match key.identities() {
                    0 | 1 => String::new(),
                    several => format!(", or another of the store's {several} identities"),
                }
            ),
            None => "Opening it takes the passphrase.".to_owned(),
        };
        let memories = counted(memories);
        match bytes {
            Some(bytes) => {
                let file = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
                let mut out = Output::new();
                out.line(format_args!(
                    "Backed up {memories} to {} ({bytes} bytes).\n{needed}",
                    file.display()
                ))?;
                out.end()?;
            }
            None => note(format_args!("Backed up {memories} to stdout.\n{needed}")),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A sealed copy that was written.
pub struct Sealed {
    pub memories: u64,
    /// Its length, unless it went to stdout.
    bytes: Option<u64>,
    /// What opens it.
    key: ArchiveKey,
}

/// Writes all memories of one moment to a sealed file.
pub fn seal(memory: &dyn Memory, target: &Path, replace: bool, options: &Options) -> Result<Sealed, Stop> {
    let key = archive_key(&options.vault()?)?;
    let sink = Sink::open_sealed(target, replace)?;
    let blame = sink.blame();
    let mut archive = ArchiveWriter::begin(&key, sink, options.namespace()).map_err(&blame)?;
    let memories = dump(memory, |stored| archive.add(stored).map_err(&blame))?;
    let bytes = archive.finish().map_err(&blame)?.finish()?;
    Ok(Sealed { memories, bytes, key })
}

/// A number of memories in words.
pub fn counted(memories: u64) -> String {
    if memories == 1 { "1 memory".to_owned() } else { format!("{memories} memories") }
}

/// Hands over every memory of one moment; `each` may stop it.
pub fn dump(memory: &dyn Memory, mut each: impl FnMut(&Stored) -> Result<(), Stop>) -> Result<u64, Stop> {
    let mut stopped = None;
    let dumped = memory.dump(&mut |stored| {
        each(&stored).map_err(|stop| {
            stopped = Some(stop);
            Failure::invalid("stopped")
        })
    });
    match stopped {
        Some(stop) => Err(stop),
        None => dumped.map_err(Stop::from),
    }
}
