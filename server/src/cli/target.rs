//! Where a command writes a copy of the memories: a new file, a new folder, or stdout.
//!
//! Owns the promise that a target is whole or not there: what is written goes to a private temporary place
//! beside it, is synced, and gets its name at the end. A run that fails removes that place; what one left that was
//! killed is removed by the next run in the same folder.

use std::{
    error::Error,
    ffi::OsStr,
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempDir};
use walkdir::WalkDir;

use super::{Stop, output::stopped};

/// How the name of a temporary place begins and ends.
const UNFINISHED: (&str, &str) = (".warm-unfinished-", ".tmp");

/// One file, or stdout.
pub enum Sink {
    File(NewFile),
    Stdout(BufWriter<Stdout>),
}

impl Sink {
    /// `-` is stdout. An existing file is replaced only if `replace`, and only once the new one is whole.
    pub fn open(target: &Path, replace: bool) -> Result<Self, Stop> {
        if target == Path::new("-") {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        }
        NewFile::beside(target, replace).map(Self::File)
    }

    /// As [`Sink::open`], for bytes that are of no use on a terminal.
    pub fn open_sealed(target: &Path, replace: bool) -> Result<Self, Stop> {
        if target == Path::new("-") && io::stdout().is_terminal() {
            return Err(Stop::Said(
                "a sealed file is not shown on a terminal: name a file, or pipe it on.".into(),
            ));
        }
        Self::open(target, replace)
    }

    /// Says where a failed write was going. To be had before the sink is given away.
    pub fn blame(&self) -> impl Fn(io::Error) -> Stop + use<> {
        let path = match self {
            Self::File(file) => Some(file.path.clone()),
            Self::Stdout(_) => None,
        };
        move |error| match &path {
            Some(path) => cant_write(path, &error),
            None => stopped(error),
        }
    }

    /// Gives a file its name, durably. Returns its length in bytes; nothing for stdout.
    pub fn finish(self) -> Result<Option<u64>, Stop> {
        match self {
            Self::File(file) => file.finish().map(Some),
            Self::Stdout(mut out) => out.flush().map(|()| None).map_err(stopped),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.out.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.out.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}

/// A file on its way to being whole.
pub struct NewFile {
    out: BufWriter<NamedTempFile>,
    path: PathBuf,
    replace: bool,
}

impl NewFile {
    fn beside(path: &Path, replace: bool) -> Result<Self, Stop> {
        match fs::symlink_metadata(path) {
            Ok(there) if !there.is_file() => {
                return Err(Stop::Said(format!(
                    "{} is there and is not a file: choose another name, or - for stdout.",
                    path.display()
                )));
            }
            Ok(_) if !replace => return Err(exists(path)),
            Ok(_) | Err(_) => {}
        }
        let dir = folder_of(path)?;
        sweep(dir);
        let temporary = tempfile::Builder::new()
            .prefix(UNFINISHED.0)
            .suffix(UNFINISHED.1)
            .tempfile_in(dir)
            .map_err(|error| cant_write(path, &error))?;
        // Held while this runs, so that another run knows that it is not left over.
        let _ = temporary.as_file().try_lock();
        Ok(Self { out: BufWriter::new(temporary), path: path.to_owned(), replace })
    }

    fn finish(self) -> Result<u64, Stop> {
        let path = self.path;
        let failed = |error: io::Error| cant_write(&path, &error);
        let temporary = self.out.into_inner().map_err(|error| failed(error.into_error()))?;
        temporary.as_file().sync_all().map_err(failed)?;
        let bytes = temporary.as_file().metadata().map_err(failed)?.len();
        let named = if self.replace { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        match named {
            Ok(_) => {}
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists(&path));
            }
            // Some file systems can't name a file without replacing.
            Err(refused) if fs::symlink_metadata(&path).is_err() => {
                refused.file.persist(&path).map_err(|refused| failed(refused.error))?;
            }
            Err(refused) => return Err(failed(refused.error)),
        }
        // It is there and whole: at worst its name is lost with the power.
        let _ = sync_folder(folder_of(&path)?);
        Ok(bytes)
    }
}

/// A folder on its way to being whole.
pub struct NewFolder {
    temporary: TempDir,
    path: PathBuf,
    /// Its lock is held while this runs.
    _lock: Option<File>,
}

impl NewFolder {
    /// The folder must not be there yet, or be empty.
    pub fn beside(path: &Path) -> Result<Self, Stop> {
        folder_of(path)?;
        let path = match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(Stop::Said(format!(
                        "{} is not empty: name a folder that is empty or not there yet.",
                        path.display()
                    )));
                }
                fs::canonicalize(path).map_err(|error| cant_write(path, &error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(Stop::Said(format!(
                    "{} is a file: name a folder that is empty or not there yet, or choose a --format.",
                    path.display()
                )));
            }
            Err(error) => return Err(cant_write(path, &error)),
        };
        let dir = folder_of(&path)?;
        sweep(dir);
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED.0).suffix(UNFINISHED.1);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let temporary = builder.tempdir_in(dir).map_err(|error| cant_write(&path, &error))?;
        let lock = File::open(temporary.path()).ok().filter(|lock| lock.try_lock().is_ok());
        Ok(Self { temporary, path, _lock: lock })
    }

    /// Where something in it is made.
    pub fn place(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Writes a file; `name` is relative. A name that is there already is refused.
    pub fn write(&self, name: &Path, contents: &[u8]) -> Result<(), Stop> {
        let at = self.temporary.path().join(name);
        let write = || -> io::Result<()> {
            if let Some(dir) = at.parent() {
                fs::create_dir_all(dir)?;
            }
            let mut options = File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&at)?;
            file.write_all(contents)?;
            // A folder that has its name is whole, whenever the power goes.
            file.sync_all()
        };
        write().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Stop::Said(format!(
                "{} would be written twice, since this disk takes two names for one; export to a .jsonl file.",
                self.path.join(name).display()
            )),
            _ => cant_write(&self.path.join(name), &error),
        })
    }

    /// Gives the folder its name, durably.
    pub fn finish(self) -> Result<(), Stop> {
        let failed = |error: io::Error| cant_write(&self.path, &error);
        for entry in WalkDir::new(self.temporary.path()) {
            let entry = entry.map_err(|error| failed(error.into()))?;
            if entry.file_type().is_dir() {
                sync_folder(entry.path()).map_err(failed)?;
            }
        }
        if cfg!(windows) && self.path.is_dir() {
            fs::remove_dir(&self.path).map_err(failed)?;
        }
        fs::rename(self.temporary.path(), &self.path).map_err(failed)?;
        let _ = self.temporary.keep();
        // It is there and whole: at worst its name is lost with the power.
        let _ = sync_folder(folder_of(&self.path)?);
        Ok(())
    }
}

/// Removes what runs left in `dir` that were killed. One that still runs holds its lock.
fn sweep(dir: &Path) {
    let left = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1)
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| left(&entry.file_name())) {
        let path = entry.path();
        // Nothing else is ours, and to open a pipe would wait.
        if !entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir()) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            // What can't be removed is in nobody's way.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// The folder that a path is in, which must be there.
fn folder_of(path: &Path) -> Result<&Path, Stop> {
    let dir = match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() => Path::new("."),
        Some(dir) => dir,
        None => path,
    };
    if dir.is_dir() {
        Ok(dir)
    } else {
        Err(Stop::Said(format!("there is no folder {}: make it first, or name another.", dir.display())))
    }
}

/// Makes the names in a folder durable, where the system can.
fn sync_folder(dir: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(dir)?.sync_all() {
        // Some file systems sync no folder.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

fn exists(path: &Path) -> Stop {
    Stop::Said(format!("{} exists already: choose another name, or replace it with --force.", path.display()))
}

fn cant_write(path: &Path, error: &io::Error) -> Stop {
    // Without the name of the temporary place, which says nothing to a person.
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    Stop::Said(format!(
        "{} can't be written: {cause}.\nNothing was left of it, and a file that had the name is as it was. \
         Check that the folder is yours and that the disk has room, then run it again.",
        path.display()
    ))
}

/// Longest name that is written whole: file systems take 255 bytes.
const LONGEST_NAME: usize = 200;

/// A name of a file or folder for a key or a namespace: what a file system may not take is percent-encoded.
pub fn safe_name(key: &str) -> String {
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
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_one_name_that_every_file_system_takes() {
        assert_eq!(safe_name("plain key"), "plain key");
        assert_eq!(safe_name("ü/a%b:c"), "ü%2Fa%25b%3Ac");
        assert_eq!(safe_name(".hidden.."), "%2Ehidden..");
        let long = |last: char| safe_name(&format!("{}{last}", "/".repeat(239)));
        assert!(long('a').len() < 250 && long('a') != long('b'));
        assert!(safe_name(&"語".repeat(80)).len() < 250);
    }
}
