//! `warm-mcp backup`: all memories of one moment in one sealed file.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use warm_engine::{
    ArchiveKey,
    archive::ArchiveWriter,
    contract::{CopyKind, Copying, Memory as Stored},
};

use super::{
    Done, Stop, namespaces,
    output::{Output, note},
    store::{Access, archive_key, open, open_if_there, warn_of_damage},
    target::{NewFolder, Sink, safe_name},
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
    #[arg(long, conflicts_with = "all_namespaces")]
    force: bool,
    /// All namespaces: FILE is a folder to make, with a sealed file for each in it
    #[arg(long)]
    all_namespaces: bool,
}

impl Backup {
    pub fn run(&self, options: &Options) -> Done {
        if self.all_namespaces {
            return self.all(options);
        }
        let memory = open(options, Access::Existing)?;
        warn_of_damage(&*memory)?;
        let namespace = &options.namespace().name;
        let Sealed { memories, bytes, key } =
            seal(&*memory, &self.file, &self.file, self.force, namespace, options)?;
        let needed = needed(&key);
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

impl Backup {
    /// Writes a folder with a sealed file for each namespace.
    fn all(&self, options: &Options) -> Done {
        let key = archive_key(&options.vault()?)?;
        let target = NewFolder::beside(&self.file)?;
        let mut done = Vec::new();
        for name in namespaces::all(options)? {
            let Some(memory) = open_if_there(options, &name)? else { continue };
            warn_of_damage(&*memory)?;
            let file = format!("{}.age", safe_name(&name));
            let (place, told) = (target.place(&file), self.file.join(&file));
            let sealed = seal(&*memory, &place, &told, false, &name, options)?;
            done.push(format!("  {name}: {}", counted(sealed.memories)));
        }
        target.finish()?;
        let folder = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
        let mut out = Output::new();
        out.line(format_args!("Backed up to {}:", folder.display()))?;
        done.into_iter().try_for_each(|line| out.line(line))?;
        out.line(format_args!(
            "{}\n`warm-mcp restore FOLDER` puts each back in its namespace, and `warm-mcp restore FILE` one.",
            needed(&key)
        ))?;
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a person must keep to open a copy.
fn needed(key: &ArchiveKey) -> String {
    match key.identity_path() {
        Some(identity) => format!(
            "Opening it takes the identity file {}{}: keep a copy of that too, in another place.",
            identity.display(),
            match key.identities() {
                0 | 1 => String::new(),
                several => format!(", or another of the store's {several} identities"),
            }
        ),
        None => "Opening it takes the passphrase.".to_owned(),
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

/// Writes all memories of one moment to a sealed file, which the store is told will be at `told`.
pub fn seal(
    memory: &dyn Memory,
    target: &Path,
    told: &Path,
    replace: bool,
    namespace: &str,
    options: &Options,
) -> Result<Sealed, Stop> {
    let key = archive_key(&options.vault()?)?;
    let sink = Sink::open_sealed(target, replace)?;
    let blame = sink.blame();
    let mut archive = ArchiveWriter::begin(&key, sink, namespace).map_err(&blame)?;
    let copying = copying(CopyKind::Backup, told);
    let memories = dump(memory, &copying, |stored| archive.add(stored).map_err(&blame))?;
    let bytes = archive.finish().map_err(&blame)?.finish()?;
    Ok(Sealed { memories, bytes, key })
}

/// A number of memories in words.
pub fn counted(memories: u64) -> String {
    if memories == 1 { "1 memory".to_owned() } else { format!("{memories} memories") }
}

/// What the store logs of a copy that goes to a file or folder, or to stdout.
pub fn copying(kind: CopyKind, target: &Path) -> Copying {
    let place = match target.to_str() {
        Some("-") => "stdout".to_owned(),
        _ => std::path::absolute(target).unwrap_or_else(|_| target.to_owned()).display().to_string(),
    };
    Copying { kind, place }
}

/// Hands over every memory of one moment; `each` may stop it.
pub fn dump(
    memory: &dyn Memory,
    copying: &Copying,
    mut each: impl FnMut(&Stored) -> Result<(), Stop>,
) -> Result<u64, Stop> {
    let mut stopped = None;
    let dumped = memory.dump(copying, &mut |stored| {
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
