//! Where the owner of a store is to be found.
//!
//! The socket is in the user's run-time directory, or else in a private one below the system's temporary
//! directory, under a hashed name: a store's own path may be longer than a socket's may be. A note beside
//! the store says where it is, so that processes with different environments meet all the same. Both are made and
//! removed by the holder of the seat alone; what a dead one left behind is replaced.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::local_socket::Listener;

/// Longest path of a socket that every system takes; the least is 104 bytes with its end.
const LONGEST_PATH: usize = 100;
/// Longest note worth reading.
const LONGEST_NOTE: u64 = 4 << 10;

/// A socket that this process made; removed when dropped.
pub struct Endpoint {
    socket: PathBuf,
    note: PathBuf,
}

/// What the note beside the store says.
#[derive(Serialize, Deserialize)]
struct Note {
    socket: PathBuf,
    /// For a person who looks.
    process: u32,
}

impl Endpoint {
    /// Makes the socket of the store in `dir`, whose seat the caller holds.
    pub fn make(dir: &Path) -> io::Result<(Self, Listener)> {
        let name = socket_name(dir);
        let mut last = io::Error::new(ErrorKind::NotFound, "there is no private directory for it");
        for home in homes() {
            let socket = home.join(&name);
            if socket.as_os_str().len() > LONGEST_PATH {
                continue;
            }
            match bind(&home, &socket) {
                Ok(listener) => {
                    let endpoint = Self { socket, note: note_path(dir) };
                    endpoint.announce(dir)?;
                    return Ok((endpoint, listener));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where the owner of the store in `dir` says it is; `None` if nobody says so.
    pub fn find(dir: &Path) -> Option<PathBuf> {
        let path = note_path(dir);
        let short = fs::metadata(&path).is_ok_and(|note| note.is_file() && note.len() <= LONGEST_NOTE);
        let note: Note = short
            .then(|| fs::read(&path).ok())
            .flatten()
            .and_then(|note| serde_json::from_slice(&note).ok())?;
        Some(note.socket)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn announce(&self, dir: &Path) -> io::Result<()> {
        let note = serde_json::to_vec(&Note { socket: self.socket.clone(), process: std::process::id() })?;
        // tempfile makes it private; a rename shows it whole.
        let mut file = tempfile::Builder::new().prefix(".warm-").suffix(".tmp").tempfile_in(dir)?;
        file.write_all(&note)?;
        file.persist(&self.note)?;
        Ok(())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // What is left is replaced by the next owner.
        let _ = fs::remove_file(&self.note);
        let _ = fs::remove_file(&self.socket);
        if let Some(home) = self.socket.parent() {
            // Goes only if no other socket is in it.
            let _ = fs::remove_dir(home);
        }
    }
}

fn note_path(dir: &Path) -> PathBuf {
    dir.join("owner")
}

fn socket_name(dir: &Path) -> String {
    let whole = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let hash = Sha256::digest(whole.as_os_str().as_encoded_bytes());
    let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    name + ".sock"
}

fn bind(home: &Path, socket: &Path) -> io::Result<Listener> {
    make_private(home)?;
    match fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Listener::bind(socket)
}

/// The directories that a socket may be in, the best first.
#[cfg(unix)]
fn homes() -> Vec<PathBuf> {
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let own = format!("warm-{}", rustix::process::geteuid().as_raw());
    let temporary = [std::env::temp_dir(), "/tmp".into()].map(|dir| dir.join(&own));
    run.map(|dir| dir.join("warm")).into_iter().chain(temporary).collect()
}

#[cfg(not(unix))]
fn homes() -> Vec<PathBuf> {
    vec![std::env::temp_dir().join("warm")]
}

/// Makes a directory that is ours alone, or checks that it is.
#[cfg(unix)]
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A link is not followed: another user may have put it there.
    let found = fs::symlink_metadata(dir)?;
    let ours =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    if ours {
        return Ok(());
    }
    let refused = format!("{} is not a directory of this user alone", dir.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, refused))
}

#[cfg(not(unix))]
fn make_private(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::{fs::PermissionsExt, net::UnixStream};

    #[test]
    fn the_owner_of_a_store_is_found_while_it_is_there_and_not_after() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Endpoint::find(dir.path()), None);
        let (endpoint, _listener) = Endpoint::make(dir.path()).unwrap();
        let found = Endpoint::find(dir.path()).unwrap();
        assert!(UnixStream::connect(&found).is_ok());
        drop(endpoint);
        assert_eq!((Endpoint::find(dir.path()), found.exists()), (None, false));
    }

    #[test]
    fn what_a_dead_owner_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (endpoint, listener) = Endpoint::make(dir.path()).unwrap();
        std::mem::forget(endpoint);
        drop(listener);
        let stale = Endpoint::find(dir.path()).unwrap();
        assert!(UnixStream::connect(&stale).is_err());
        let (_endpoint, _listener) = Endpoint::make(dir.path()).unwrap();
        assert!(UnixStream::connect(Endpoint::find(dir.path()).unwrap()).is_ok());
    }

    #[test]
    fn a_note_that_is_empty_garbage_huge_or_a_directory_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for garbage in [Vec::new(), b"12345".to_vec(), vec![0xff; 100], vec![b'{'; 10_000]] {
            fs::write(note_path(dir.path()), garbage).unwrap();
            assert_eq!(Endpoint::find(dir.path()), None);
        }
        fs::remove_file(note_path(dir.path())).unwrap();
        fs::create_dir(note_path(dir.path())).unwrap();
        assert_eq!(Endpoint::find(dir.path()), None);
    }

    #[test]
    fn only_a_directory_of_this_user_alone_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let (open, link) = (dir.path().join("open"), dir.path().join("link"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(make_private(&open).is_err());
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(make_private(&open).is_ok());
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(make_private(&link).is_err());
        assert!(make_private(&dir.path().join("new")).is_ok());
    }
}
