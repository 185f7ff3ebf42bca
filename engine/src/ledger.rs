//! Which namespaces were given a store, written down apart from the stores.
//!
//! An entry is a file in `namespaces`, named as the directory of the store is: by a hash. In it is the name of the
//! namespace, sealed. It is made when a store is made or opened to be written to, and serves two ends: the
//! names can be listed, which the directories don't tell; and a store that went with its directory and its lock,
//! or with all others, is known to be lost and never taken for one that is yet to be made.
//!
//! ```text
//! entry = "warm namespace, format 2\n" | sealed name; the name of the file is associated data
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{make_durable, private_dir, read_small, replace_durable};
use crate::open_error::OpenError;
use crate::vault::Vault;

const HEAD: &[u8] = b"warm namespace, format 2\n";
/// Longest entry worth reading.
const LONGEST: u64 = 4 << 10;

/// The namespaces of a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Those whose names are known, in order.
    pub names: Vec<String>,
    /// How many more there are: stores that were not opened since names are written down, or entries that can't be
    /// read.
    pub nameless: usize,
}

impl Namespaces {
    /// Lists them. Opens no store and changes nothing.
    ///
    /// # Errors
    /// [`OpenError::Io`] if a folder can't be looked into.
    pub fn of(vault: &Vault) -> Result<Self, OpenError> {
        let mut found = Self::default();
        for hash in hashes(&folder(vault))?.into_iter().filter(|hash| !is_temporary(hash)) {
            match name_in(vault, &hash) {
                Some(name) => found.names.push(name),
                None => found.nameless += 1,
            }
        }
        let stores = vault.namespace_dirs()?.into_iter();
        found.nameless += stores.filter(|dir| !matches!(knows(vault, dir), Ok(true))).count();
        found.names.sort_unstable();
        Ok(found)
    }
}

/// Whether the store in `dir` was ever written down.
pub(crate) fn knows(vault: &Vault, dir: &Path) -> Result<bool, OpenError> {
    let entry = entry(vault, dir);
    entry.try_exists().map_err(OpenError::io("look for", &entry))
}

/// Writes a namespace down, if it is not yet.
pub(crate) fn write_down(vault: &Vault, namespace: &str) -> Result<(), OpenError> {
    let dir = vault.namespace_dir(namespace);
    if knows(vault, &dir)? {
        return Ok(());
    }
    private_dir(&folder(vault))?;
    let path = entry(vault, &dir);
    let bytes = sealed(vault, &path, namespace)?;
    make_durable(&path, &bytes).map(|_| ())
}

/// Writes a namespace down under the store secret as it is now, in place of what was written before.
pub(crate) fn write_anew(vault: &Vault, namespace: &str) -> Result<(), OpenError> {
    private_dir(&folder(vault))?;
    let path = entry(vault, &vault.namespace_dir(namespace));
    let bytes = sealed(vault, &path, namespace)?;
    replace_durable(&path, &bytes)
}

/// The same for every namespace whose name is known, also where its store is lost.
pub(crate) fn write_all_anew(vault: &Vault) -> Result<(), OpenError> {
    Namespaces::of(vault)?.names.iter().try_for_each(|name| write_anew(vault, name))
}

fn sealed(vault: &Vault, path: &Path, namespace: &str) -> Result<Vec<u8>, OpenError> {
    let sealed = vault.seal_name(&hash(path), namespace);
    let sealed = sealed.ok_or_else(|| OpenError::io("seal", path)(io::ErrorKind::InvalidData.into()))?;
    Ok([HEAD, &sealed].concat())
}

/// Forgets that the store in `dir` was made.
pub(crate) fn forget(vault: &Vault, dir: &Path) -> Result<(), OpenError> {
    let entry = entry(vault, dir);
    match fs::remove_file(&entry) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(OpenError::io("remove", &entry)(error)),
        _ => Ok(()),
    }
}

/// Where the entries are.
pub(crate) fn folder(vault: &Vault) -> PathBuf {
    vault.data_dir().join("namespaces")
}

fn entry(vault: &Vault, dir: &Path) -> PathBuf {
    folder(vault).join(dir.file_name().unwrap_or_default())
}

fn hash(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn hashes(folder: &Path) -> Result<Vec<PathBuf>, OpenError> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(OpenError::io("look into", folder)(error)),
    }
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_none_or(crate::files::is_temporary)
}

/// The name in an entry, unless it is damaged or another's.
fn name_in(vault: &Vault, path: &Path) -> Option<String> {
    let bytes = read_small(path, LONGEST).ok()??;
    let name = vault.open_name(&hash(path), bytes.strip_prefix(HEAD)?)?;
    // An entry that was given another's name tells of nothing.
    (vault.namespace_dir(&name).file_name() == path.file_name()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Limits;
    use crate::{Engine, VaultOptions};

    fn vault(dir: &Path) -> Vault {
        Vault::open(&VaultOptions { data_dir: dir.join("d"), identity: None, passphrase: None }).unwrap()
    }

    fn make(vault: &Vault, name: &str) {
        drop(Engine::open(vault, name, Limits::default()).unwrap());
    }

    fn listed(names: &[&str], nameless: usize) -> Namespaces {
        Namespaces { names: names.iter().map(|name| (*name).to_owned()).collect(), nameless }
    }

    #[test]
    fn every_namespace_is_listed_by_name_and_no_name_is_on_disk_in_the_clear() {
        let dir = tempfile::tempdir().unwrap();
        let vault = vault(dir.path());
        assert_eq!(Namespaces::of(&vault).unwrap(), listed(&[], 0));
        for name in ["work", "default", "project:app-1"] {
            make(&vault, name);
        }
        assert_eq!(Namespaces::of(&vault).unwrap(), listed(&["default", "project:app-1", "work"], 0));
        for entry in hashes(&folder(&vault)).unwrap() {
            let bytes = fs::read(&entry).unwrap();
            assert!(
                !["default", "project", "work"]
                    .iter()
                    .any(|name| { bytes.windows(name.len()).any(|window| window == name.as_bytes()) })
            );
        }
    }

    #[test]
    fn a_store_without_an_entry_and_a_damaged_or_misplaced_entry_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let vault = vault(dir.path());
        for name in ["a", "b", "c", "d"] {
            make(&vault, name);
        }
        let entry = |name: &str| entry(&vault, &vault.namespace_dir(name));
        fs::remove_file(entry("a")).unwrap();
        fs::write(entry("b"), "garbage").unwrap();
        fs::copy(entry("d"), entry("c")).unwrap();
        assert_eq!(Namespaces::of(&vault).unwrap(), listed(&["d"], 3));
        make(&vault, "a");
        assert_eq!(Namespaces::of(&vault).unwrap(), listed(&["a", "d"], 2), "opening it writes it down");
    }

    #[test]
    fn a_store_that_went_with_its_directory_or_with_all_others_is_lost_and_not_made_anew() {
        for all in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let vault = vault(dir.path());
            make(&vault, "a");
            let gone = vault.namespace_dir("a");
            let gone = if all { gone.parent().unwrap().to_owned() } else { gone };
            fs::remove_dir_all(&gone).unwrap();
            let opened = Engine::open(&vault, "a", Limits::default());
            assert!(matches!(opened, Err(OpenError::StoreMissing(_))));
            assert!(matches!(
                Engine::open_existing(&vault, "a", Limits::default()),
                Err(OpenError::StoreMissing(_))
            ));
            assert!(!gone.exists(), "nothing is made in its place");
            make(&vault, "b");
            let flaws = crate::repair::find(&vault, "a").unwrap();
            assert!(matches!(flaws[..], [crate::repair::Flaw::LostStore(_)]));
            flaws[0].mend(&vault, "a").unwrap();
            make(&vault, "a");
        }
    }
}
