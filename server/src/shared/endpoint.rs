//! Where the owner of a store is to be found.
//!
//! The socket is in the user's run-time directory, or else in a private one below the system's temporary
//! directory, under a hashed name: a store's own path may be longer than a socket's may be. A note beside
//! the store says where it is, so that processes with different environments meet all the same; without the
//! note it is looked for where it would be. Both are made and removed by the holder of the seat alone; what a
//! dead one left behind is replaced, and what others remove is made again.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{handshake::Place, local_socket::Listener};

/// Longest path of a socket that every system takes; the least is 104 bytes with its end.
const LONGEST_PATH: usize = 100;
/// Longest note worth reading.
const LONGEST_NOTE: u64 = 4 << 10;

/// A socket that this process made; removed when dropped.
pub struct Endpoint {
    dir: PathBuf,
    place: Place,
    socket: PathBuf,
    /// The file of the socket: one that is not this one is another's.
    file: Place,
}

/// What the note beside the store says.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    socket: PathBuf,
    /// For a person who looks.
    process: u32,
}

impl Endpoint {
    /// Makes the socket of the store in `dir`, whose seat the caller holds.
    pub fn make(dir: &Path, place: Place) -> io::Result<(Self, Listener)> {
        let mut last = io::Error::new(ErrorKind::NotFound, "there is no private directory for it");
        for socket in candidates(place) {
            match bind(&socket).and_then(|listener| Ok((listener, place_of(&socket)?))) {
                Ok((listener, file)) => {
                    let endpoint = Self { dir: dir.to_owned(), place, socket, file };
                    endpoint.announce();
                    return Ok((endpoint, listener));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Makes again what others have removed; a new listener if the socket had to be.
    pub fn mend(&mut self) -> io::Result<Option<Listener>> {
        if seat_place(&self.dir).is_none_or(|place| place != self.place) {
            // The store was moved, or another stands where it was: there is nowhere to say anything.
            return Ok(None);
        }
        if place_of(&self.socket).is_ok_and(|file| file == self.file) {
            if read_note(&self.dir).as_ref() != Some(&self.note()) {
                self.announce();
            }
            return Ok(None);
        }
        let (endpoint, listener) = Self::make(&self.dir, self.place)?;
        // What is left of the old one is not this one's to remove: it is not there.
        *self = endpoint;
        Ok(Some(listener))
    }

    /// Where the owner of the store in `dir` may be, the likeliest first.
    pub fn find(dir: &Path, place: Place) -> Vec<PathBuf> {
        let noted = read_note(dir).map(|note| note.socket);
        let others = candidates(place).into_iter().filter(|socket| noted.as_ref() != Some(socket));
        noted.clone().into_iter().chain(others).filter(|socket| socket.exists()).collect()
    }

    fn note(&self) -> Note {
        Note { socket: self.socket.clone(), process: std::process::id() }
    }

    /// Says where the socket is. Without the note it is found all the same by most.
    fn announce(&self) {
        let write = || -> io::Result<()> {
            let note = serde_json::to_vec(&self.note())?;
            let path = note_path(&self.dir);
            if path.is_dir() {
                fs::remove_dir(&path)?;
            }
            let mut options = File::options();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path)?.write_all(&note)
        };
        if let Err(error) = write() {
            tracing::warn!(%error, "the note that says where this store's socket is could not be written");
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // What is left is replaced by the next owner.
        if read_note(&self.dir).as_ref() == Some(&self.note()) {
            let _ = fs::remove_file(note_path(&self.dir));
        }
        if place_of(&self.socket).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.socket);
            if let Some(home) = self.socket.parent() {
                // Goes only if no other socket is in it.
                let _ = fs::remove_dir(home);
            }
        }
    }
}

/// Which file a path leads to, as the system numbers files: another for a copy, the same by every path.
#[cfg(unix)]
fn place_of(path: &Path) -> io::Result<Place> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::metadata(path)?;
    Ok(Place([file.dev(), file.ino()]))
}

#[cfg(not(unix))]
fn place_of(path: &Path) -> io::Result<Place> {
    fs::metadata(path)?;
    Ok(Place([0, 0]))
}

/// The place of the store in `dir`: that of its lock.
pub fn seat_place(dir: &Path) -> Option<Place> {
    place_of(&dir.join("lock")).ok()
}

fn note_path(dir: &Path) -> PathBuf {
    dir.join("owner")
}

fn read_note(dir: &Path) -> Option<Note> {
    let path = note_path(dir);
    let short = fs::metadata(&path).is_ok_and(|note| note.is_file() && note.len() <= LONGEST_NOTE);
    let note: Note = serde_json::from_slice(&short.then(|| fs::read(&path).ok()).flatten()?).ok()?;
    note.socket.is_absolute().then_some(note)
}

fn bind(socket: &Path) -> io::Result<Listener> {
    if let Some(home) = socket.parent() {
        make_private(home)?;
    }
    match fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Listener::bind(socket)
}

/// Where the socket of a store may be, the best first.
fn candidates(place: Place) -> Vec<PathBuf> {
    let [device, file] = place.0.map(u64::to_le_bytes);
    let hash = Sha256::new().chain_update(b"warm socket").chain_update(device).chain_update(file).finalize();
    let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let sockets = homes().into_iter().map(|home| home.join(format!("{name}.sock")));
    sockets.filter(|socket| socket.as_os_str().len() <= LONGEST_PATH).collect()
}

#[cfg(unix)]
fn homes() -> Vec<PathBuf> {
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = format!("warm-{}", rustix::process::geteuid().as_raw());
    let temporary = [std::env::temp_dir(), "/tmp".into()].map(|dir| dir.join(&own));
    let homes = run.map(|dir| dir.join("warm")).into_iter().chain(temporary);
    homes.filter(|home| home.is_absolute()).collect()
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

    struct Store(tempfile::TempDir);

    impl Store {
        fn new() -> Self {
            let store = Self(tempfile::tempdir().unwrap());
            fs::write(store.dir().join("lock"), "").unwrap();
            store
        }

        fn dir(&self) -> &Path {
            self.0.path()
        }

        fn make(&self) -> (Endpoint, Listener) {
            Endpoint::make(self.dir(), seat_place(self.dir()).unwrap()).unwrap()
        }

        fn found(&self) -> Option<PathBuf> {
            let found = Endpoint::find(self.dir(), seat_place(self.dir()).unwrap());
            found.into_iter().find(|socket| UnixStream::connect(socket).is_ok())
        }
    }

    #[test]
    fn the_owner_of_a_store_is_found_while_it_is_there_and_not_after() {
        let store = Store::new();
        assert_eq!(store.found(), None);
        let (endpoint, _listener) = store.make();
        let found = store.found().unwrap();
        drop(endpoint);
        assert_eq!((store.found(), found.exists(), note_path(store.dir()).exists()), (None, false, false));
    }

    #[test]
    fn what_a_dead_owner_left_is_replaced() {
        let store = Store::new();
        let (endpoint, listener) = store.make();
        std::mem::forget(endpoint);
        drop(listener);
        assert_eq!(store.found(), None);
        let (_endpoint, _listener) = store.make();
        assert!(store.found().is_some());
    }

    #[test]
    fn a_note_that_is_lost_or_garbage_hides_no_owner_and_is_written_again() {
        let store = Store::new();
        let (mut endpoint, _listener) = store.make();
        let note = note_path(store.dir());
        let relative = br#"{"socket": "s", "process": 1}"#.to_vec();
        for garbage in [Vec::new(), b"12345".to_vec(), vec![0xff; 100], vec![b'{'; 10_000], relative] {
            fs::write(&note, garbage).unwrap();
            assert!(store.found().is_some());
            assert!(endpoint.mend().unwrap().is_none());
            assert!(read_note(store.dir()).is_some());
        }
        fs::remove_file(&note).unwrap();
        fs::create_dir(&note).unwrap();
        assert!(store.found().is_some());
        assert!(endpoint.mend().unwrap().is_none());
        assert!(read_note(store.dir()).is_some());
    }

    #[test]
    fn a_socket_that_is_lost_is_made_again_and_that_of_another_is_left_alone() {
        let store = Store::new();
        let (mut endpoint, _listener) = store.make();
        let socket = store.found().unwrap();
        fs::remove_file(&socket).unwrap();
        assert_eq!(store.found(), None);
        let _new = endpoint.mend().unwrap().expect("a new listener");
        assert!(store.found().is_some());
        fs::remove_file(&socket).unwrap();
        let _other = Listener::bind(&socket).unwrap();
        drop(endpoint);
        assert!(socket.exists());
        fs::remove_file(socket).unwrap();
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
