//! Private files and directories: owner-only from their creation, and durable once made.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::open_error::OpenError;

/// Makes a directory and its missing parents, readable by their owner alone, and durable.
pub(crate) fn private_dir(path: &Path) -> Result<(), OpenError> {
    let missing: Vec<_> =
        path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made.map_err(OpenError::io("make the directory", dir))?,
        }
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match sync_dir(parent) {
            // A directory that may be written but not read can't be opened to be synced.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(OpenError::io("sync the directory", parent))?,
        }
    }
    if path.is_dir() { Ok(()) } else { Err(OpenError::NotADirectory(path.to_owned())) }
}

/// Whether a file was made by this call, or was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    ByUs,
    Before,
}

/// How a temporary file's name begins and ends.
const TEMPORARY: (&str, &str) = (".warm-", ".tmp");

/// Whether a file of this name is a temporary one of ours.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)
}

/// Removes temporary files that were left by starts that were cut short: one may hold a key. Nobody
/// else may be making files in `dir` meanwhile.
pub(crate) fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name()) {
            // What can't be removed is of no use to anyone who can't read it either.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes `path` hold `contents`, whole and on disk, unless it exists already.
///
/// The contents go to a temporary file (owner-only), which is synced and then given its name
/// without replacing: of two callers at once one wins, and no reader ever sees half a file. The
/// parent directory is synced in either case, so that what is found is also durable.
pub(crate) fn make_durable(path: &Path, contents: &[u8]) -> Result<Made, OpenError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<Made> {
        let mut temporary =
            tempfile::Builder::new().prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(dir)?;
        temporary.write_all(contents)?;
        temporary.as_file().sync_all()?;
        let made = match temporary.persist_noclobber(path) {
            Ok(_) => Made::ByUs,
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => Made::Before,
            Err(refused) => return Err(refused.error),
        };
        sync_dir(dir)?;
        Ok(made)
    };
    write().map_err(OpenError::io("write", path))
}

/// Makes `path` hold `contents` in place of what it holds: whoever reads it, at any time and after any end of
/// the process, has all of the one or all of the other.
pub(crate) fn replace_durable(path: &Path, contents: &[u8]) -> Result<(), OpenError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut temporary =
            tempfile::Builder::new().prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(dir)?;
        temporary.write_all(contents)?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|refused| refused.error)?;
        sync_dir(dir)
    };
    write().map_err(OpenError::io("write", path))
}

/// Gives a whole and synced file its name, durably and without replacing one that is there. A file that
/// does not get it stays where it is.
pub(crate) fn give_name(unfinished: &Path, path: &Path) -> Result<(), OpenError> {
    let named = tempfile::TempPath::try_from_path(unfinished).and_then(|unfinished| {
        unfinished.persist_noclobber(path).map_err(|refused| {
            // Dropped as it is, the old path would be removed as a temporary one.
            let _ = refused.path.keep();
            refused.error
        })
    });
    named.map_err(OpenError::io("make", path))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    sync_dir(dir).map_err(OpenError::io("sync the directory", dir))
}

/// The first name beside `path` that nothing has.
pub(crate) fn free_name(path: &Path, kind: &str) -> PathBuf {
    let named = |n: u32| path.with_file_name(format!("{kind}-{n}"));
    (1..).map(named).find(|name| fs::symlink_metadata(name).is_err()).unwrap_or_else(|| named(0))
}

/// Makes the names in `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    // Windows has no way to sync a directory, and needs none.
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Opens a file to read and write, making it private if it is new.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Reads a small file, or `None` if it does not exist. A file beyond `limit` bytes, or one that is not
/// a regular file, is refused.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, OpenError> {
    let refused = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(OpenError::io("read", path)(e)),
        Ok(meta) if !meta.is_file() => return Err(refused("it is not a regular file".into())),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(OpenError::io("read", path))?;
    if bytes.len() as u64 > limit {
        return Err(refused(format!("it is longer than {limit} bytes")));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert_eq!(make_durable(&path, b"first").unwrap(), Made::ByUs);
        assert_eq!(make_durable(&path, b"second").unwrap(), Made::Before);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_file_that_is_replaced_is_private_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"first").unwrap();
        replace_durable(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let nowhere = dir.path().join("no/f");
        assert!(matches!(replace_durable(&nowhere, b"x"), Err(OpenError::Io { .. })));
    }

    #[test]
    fn a_file_that_can_not_get_its_name_stays_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (old, taken) = (dir.path().join("old"), dir.path().join("taken"));
        fs::write(&old, "old").unwrap();
        fs::write(&taken, "taken").unwrap();
        assert!(give_name(&old, &taken).is_err());
        assert!(give_name(&old, &dir.path().join("no/folder")).is_err());
        assert_eq!((fs::read(&old).unwrap(), fs::read(&taken).unwrap()), (b"old".into(), b"taken".into()));
        give_name(&old, &dir.path().join("new")).unwrap();
        assert!(!old.exists() && dir.path().join("new").exists());
    }

    #[cfg(unix)]
    #[test]
    fn files_and_directories_are_private_from_their_creation() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let nested = dir.path().join("a/b");
        private_dir(&nested).unwrap();
        make_durable(&nested.join("f"), b"x").unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        assert_eq!(mode(&nested), 0o700);
        assert_eq!(mode(&nested.join("f")), 0o600);
    }

    #[test]
    fn what_a_start_that_was_cut_short_left_is_swept_away_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".warm-x1.tmp", "identity.txt", ".warm-notes", "x.tmp"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        sweep(dir.path());
        assert!(!dir.path().join(".warm-x1.tmp").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_over_the_limit_is_refused_and_a_missing_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert!(read_small(&path, 4).unwrap().is_none());
        fs::write(&path, b"12345").unwrap();
        assert!(matches!(read_small(&path, 4), Err(OpenError::Damaged { .. })));
        assert_eq!(read_small(&path, 5).unwrap().unwrap(), b"12345");
        assert!(
            matches!(read_small(dir.path(), 5), Err(OpenError::Damaged { .. })),
            "a directory is no file"
        );
    }
}
