//! Whether the files of an open store are still where they were opened.
//!
//! A file that was renamed, deleted or replaced takes writes as before, and no later start finds them. So it is
//! looked for before and after each commit, which costs a few microseconds beside its syncs. Reads go on:
//! what was opened can still be read, and saved.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// A file of a store, as the system numbers files.
pub(crate) struct Anchor {
    path: PathBuf,
    file: FileId,
}

impl Anchor {
    /// Remembers which file stands at a path.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        // The working directory may change.
        Ok(Self { path: std::path::absolute(path)?, file: file_id(&fs::metadata(path)?) })
    }

    /// Errors unless the same file stands there now.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match fs::metadata(&self.path) {
            Ok(found) if file_id(&found) == self.file => Ok(()),
            _ => Err(StoreError::Moved(self.path.display().to_string().into())),
        }
    }
}

#[cfg(unix)]
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(file: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Other systems don't let an open file go, or number files in no stable way: that there is one has to do.
#[cfg(not(unix))]
type FileId = bool;

#[cfg(not(unix))]
fn file_id(file: &Metadata) -> FileId {
    file.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_renamed_deleted_or_replaced_is_missed_and_known_again_when_it_is_back() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("store"), dir.path().join("other"));
        fs::write(&path, "store").unwrap();
        let anchor = Anchor::at(&path).unwrap();
        assert!(anchor.check().is_ok());
        fs::rename(&path, &other).unwrap();
        assert!(matches!(anchor.check(), Err(StoreError::Moved(_))));
        fs::copy(&other, &path).unwrap();
        assert!(anchor.check().is_err(), "a copy is another file");
        fs::rename(&other, &path).unwrap();
        assert!(anchor.check().is_ok());
        fs::remove_file(&path).unwrap();
        assert!(anchor.check().is_err_and(|error| error.to_string().contains(&*path.to_string_lossy())));
    }
}
