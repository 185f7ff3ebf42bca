//! What is wrong with a store and can be put right, and putting it right.
//!
//! Finding changes nothing. [`Flaw::mend`] does one thing, under the lock that protects what it touches,
//! and never destroys what may hold a memory: records that do not open and files of unknown worth are
//! moved aside, sealed as they are. A store file that is damaged or lost is not mended by this: it makes
//! way, so that a backup can be restored. When and whether to mend is the caller's business.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::contract::CopyKind;
use crate::files::{Made, free_name, give_name, is_temporary, make_durable, private_dir};
use crate::ledger;
use crate::lock::{Remembers, StoreLock};
use crate::open::{Mode, Opened, open_store, open_under};
use crate::open_error::OpenError;
use crate::seat::{slot_path, store_path, unfinished_path};
use crate::store::{Batch, StoreError};
use crate::time::now;
use crate::vault::{Changes, Copied, ToLog, Vault};

/// How a quarantine file begins; then come, encoded with postcard, the keys of the records in it, sealed
/// together, and the records: id and sealed record.
const QUARANTINE_HEAD: &[u8] = b"warm quarantine, format 2\n";

/// Something wrong that can be put right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// A temporary file that a start left when it was cut short. It may hold a key.
    Temporary(PathBuf),
    /// A store that was never finished, and is not needed.
    Leftover(PathBuf),
    /// A store that is whole and only lacks its name.
    Unfinished(PathBuf),
    /// The lock file holds what no warm-mcp wrote.
    LockGarbage(PathBuf),
    /// Records that do not open.
    Records {
        /// The store that holds them.
        store: PathBuf,
        /// How many.
        count: usize,
    },
    /// The file of a store is damaged.
    DamagedStore(PathBuf),
    /// The keys of a store are gone, damaged, or of another moment.
    Keyless(PathBuf),
    /// The file of a store is gone.
    LostStore(PathBuf),
}

/// What is wrong, in words.
impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Temporary(path) => {
                write!(f, "{} was left by a start that was cut short, and may hold a key", path.display())
            }
            Self::Leftover(path) => {
                write!(f, "{} was left by a start that was cut short, and is not needed", path.display())
            }
            Self::Unfinished(path) => {
                write!(f, "{} is whole and lacks its name, since a start was cut short", path.display())
            }
            Self::LockGarbage(path) => write!(f, "{} holds what no warm-mcp wrote", path.display()),
            Self::DamagedStore(path) => write!(f, "{} is damaged", path.display()),
            Self::Keyless(path) => write!(f, "{} can't be opened with the slot beside it", path.display()),
            Self::LostStore(path) => write!(f, "{} is missing although it was made", path.display()),
            Self::Records { store, count: 1 } => write!(f, "a record in {} does not open", store.display()),
            Self::Records { store, count } => write!(f, "{count} records in {} do not open", store.display()),
        }
    }
}

impl Flaw {
    /// What [`Flaw::mend`] would do, beginning with a verb.
    pub fn remedy(&self) -> String {
        match self {
            Self::Temporary(path) => format!("remove {}", path.display()),
            Self::Leftover(path) => {
                format!("rename {} to {}", path.display(), free_name(path, "set-aside").display())
            }
            Self::Unfinished(path) => {
                let named = path.with_file_name("store.redb");
                format!("rename {} to {}, once it was checked", path.display(), named.display())
            }
            Self::LockGarbage(path) => format!("put into {} what belongs there", path.display()),
            Self::DamagedStore(path) | Self::Keyless(path) => format!(
                "set {} aside as it is, as {}; the memories in it are not served until they are restored from a \
                 backup",
                path.display(),
                free_name(path, "set-aside").display()
            ),
            Self::LostStore(path) => format!(
                "forget that {} was made, so that a new one can be; the memories that were in it are not served \
                 until they are restored from a backup",
                path.display()
            ),
            Self::Records { store, count } => format!(
                "move {} that {} not open, sealed as {}, from {} to {}",
                if *count == 1 { "the record".to_owned() } else { format!("the {count} records") },
                if *count == 1 { "does" } else { "do" },
                if *count == 1 { "it is" } else { "they are" },
                store.display(),
                free_name(store, "quarantine").display(),
            ),
        }
    }

    /// Puts it right.
    ///
    /// # Errors
    /// [`OpenError::InUse`] if a process has the store open; else what stood in the way. What is wrong
    /// stays as it is then.
    pub fn mend(&self, vault: &Vault, namespace: &str) -> Result<(), OpenError> {
        let dir = vault.namespace_dir(namespace);
        match self {
            Self::Temporary(path) => {
                // Whoever makes temporary files holds one of these.
                let _keys = vault.lock_keys()?;
                let _store = StoreLock::take_existing(&dir)?;
                fs::remove_file(path).map_err(OpenError::io("remove", path))
            }
            Self::Leftover(path) => {
                let _lock = StoreLock::take(&dir, Duration::ZERO)?;
                give_name(path, &free_name(path, "set-aside"))
            }
            Self::Unfinished(_) => open(vault, namespace, &dir).map(|_| ()),
            Self::LockGarbage(path) => {
                let mut lock = StoreLock::take(&dir, Duration::ZERO)?;
                let store = store_path(&dir);
                let there = store.try_exists().map_err(OpenError::io("look for", &store))?;
                let mended = if there { lock.remember_store() } else { lock.empty() };
                mended.map_err(OpenError::io("write", path))
            }
            Self::DamagedStore(_) | Self::Keyless(_) | Self::LostStore(_) => make_way(vault, namespace, &dir),
            Self::Records { store, .. } => quarantine(&mut open(vault, namespace, &dir)?, store),
        }
    }
}

/// Whether a process has any store below the vault's data directory open.
///
/// # Errors
/// When that can't be told.
pub fn in_use(vault: &Vault) -> Result<bool, OpenError> {
    for dir in vault.namespace_dirs()? {
        match StoreLock::take_existing(&dir) {
            Err(OpenError::InUse(_)) => return Ok(true),
            other => drop(other?),
        }
    }
    Ok(false)
}

/// Everything that is wrong with the store of a namespace and can be put right. Changes nothing.
///
/// # Errors
/// [`OpenError::InUse`] if a process has the store open, or what kept this from looking. That the store
/// does not open is no error here.
pub fn find(vault: &Vault, namespace: &str) -> Result<Vec<Flaw>, OpenError> {
    let dir = vault.namespace_dir(namespace);
    let mut flaws = Vec::new();
    for place in vault.places().iter().chain([&ledger::folder(vault), &dir]) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            if is_temporary(&entry.file_name()) {
                flaws.push(Flaw::Temporary(entry.path()));
            }
        }
    }
    flaws.sort_by_key(|flaw| flaw.to_string());
    if !dir.is_dir() && !ledger::knows(vault, &dir)? {
        return Ok(flaws);
    }
    let remembers = match StoreLock::take_existing(&dir)? {
        Some(mut lock) => lock.remembers().map_err(OpenError::io("read the lock in", &dir))?,
        None => Remembers::Nothing,
    };
    let (store, unfinished) = (store_path(&dir), unfinished_path(&dir));
    if remembers == Remembers::Garbage {
        flaws.push(Flaw::LockGarbage(dir.join("lock")));
    }
    if unfinished.exists() && (store.exists() || remembers != Remembers::StoreMade) {
        flaws.push(Flaw::Leftover(unfinished.clone()));
    }
    match open_store(vault, namespace, &dir, StoreLock::take_existing(&dir)?, Mode::Look) {
        Ok(opened) if opened.damaged.is_empty() => {}
        Ok(opened) => flaws.push(Flaw::Records { store, count: opened.damaged.len() }),
        Err(OpenError::Unfinished(_)) => flaws.push(Flaw::Unfinished(unfinished)),
        Err(OpenError::StoreDamaged { path, .. }) => flaws.push(Flaw::DamagedStore(path)),
        Err(
            OpenError::SlotMissing { store, .. }
            | OpenError::SlotDamaged { store, .. }
            | OpenError::SlotOfAnotherMoment { store, .. },
        ) => flaws.push(Flaw::Keyless(store)),
        Err(OpenError::StoreMissing(path)) => flaws.push(Flaw::LostStore(path)),
        // Another key or format: the store is whole, and named by whoever opens it.
        Err(_) => {}
    }
    Ok(flaws)
}

fn open(vault: &Vault, namespace: &str, dir: &Path) -> Result<Opened, OpenError> {
    open_store(vault, namespace, dir, Some(StoreLock::take(dir, Duration::ZERO)?), Mode::Create)
}

/// Sets a damaged store file aside, and lets lock file and ledger forget that there was a store: the next start
/// makes a new one. Does nothing to a store that is well by now.
fn make_way(vault: &Vault, namespace: &str, dir: &Path) -> Result<(), OpenError> {
    private_dir(dir)?;
    let mut lock = StoreLock::take(dir, Duration::ZERO)?;
    match open_under(vault, namespace, dir, Some(&mut lock), Mode::Look) {
        Err(
            OpenError::StoreDamaged { .. }
            | OpenError::SlotMissing { .. }
            | OpenError::SlotDamaged { .. }
            | OpenError::SlotOfAnotherMoment { .. },
        ) => {
            let files = [(store_path(dir), "set-aside"), (unfinished_path(dir), "set-aside")];
            for (file, kind) in files.into_iter().chain([(slot_path(dir), "slot-set-aside")]) {
                if file.try_exists().map_err(OpenError::io("look for", &file))? {
                    give_name(&file, &free_name(&file, kind))?;
                }
            }
        }
        Err(OpenError::StoreMissing(_)) => {}
        other => return other.map(|_| ()),
    }
    // Cut short before this, the store counts as lost, which is mended the same way.
    ledger::forget(vault, dir)?;
    lock.empty().map_err(OpenError::io("write the lock in", dir))
}

/// Moves the records that do not open to a file of their own, which is on disk before they are gone here.
fn quarantine(opened: &mut Opened, store: &Path) -> Result<(), OpenError> {
    let failed = |source: StoreError| OpenError::Store { path: store.to_owned(), source };
    let snapshot = opened.store.snapshot().map_err(failed)?;
    let (mut records, mut changes) = (Vec::new(), Changes::default());
    for damaged in &opened.damaged {
        if let Some(sealed) = snapshot.record(&damaged.id).map_err(failed)? {
            records.push((*damaged.id.as_bytes(), sealed));
        }
        changes.places.extend(damaged.place.map(|place| (place, None)));
    }
    let versions: Vec<_> = opened.keys.walk(&*snapshot).map_err(failed)?.versions;
    let keys = versions.iter().filter(|(place, _)| changes.places.contains_key(place));
    let keys = opened.keys.seal_aside(keys.map(|(_, version)| version));
    let keys = keys.ok_or_else(|| failed(StoreError::Fault("the keys could not be sealed")))?;
    let path = free_name(store, "quarantine");
    let bytes = postcard::to_extend(&(keys, records), QUARANTINE_HEAD.to_vec())
        .map_err(|_| failed(StoreError::Fault("the records could not be encoded")))?;
    if make_durable(&path, &bytes)? == Made::Before {
        return Err(OpenError::io("make", &path)(std::io::ErrorKind::AlreadyExists.into()));
    }
    let removes = opened.damaged.iter().map(|damaged| damaged.id).collect();
    let place = path.display().to_string();
    let copied = Copied { at: now(), kind: CopyKind::Quarantine, place };
    let log = ToLog { copies: vec![copied], ..ToLog::default() };
    opened.commit(Batch { removes, ..Batch::default() }, &changes, log).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::contract::{Limits, Remember};
    use crate::sealed::RecordId;
    use crate::vault::{RecordKey, VaultOptions, Version};

    fn home() -> (tempfile::TempDir, Vault, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
        let vault = Vault::open(&options).unwrap();
        let engine = Engine::open(&vault, "n", Limits::default()).unwrap();
        engine
            .remember(Remember { key: Some("k".into()), text: "text".into(), ..Remember::default() })
            .unwrap();
        drop(engine);
        let at = vault.namespace_dir("n");
        (dir, vault, at)
    }

    fn mended(vault: &Vault) {
        for flaw in find(vault, "n").unwrap() {
            flaw.mend(vault, "n").unwrap();
        }
        assert_eq!(find(vault, "n").unwrap(), []);
        let engine = Engine::open(vault, "n", Limits::default()).unwrap();
        assert_eq!((engine.stats().memories, engine.damaged().len()), (1, 0));
    }

    #[test]
    fn records_that_do_not_open_are_moved_to_a_private_file_with_every_sealed_byte() {
        let (_dir, vault, at) = home();
        let mut opened = open(&vault, "n", &at).unwrap();
        let id = RecordId::random();
        let mut changes = Changes::default();
        changes.places.insert(1, Some(Version { id, key: RecordKey::random() }));
        opened
            .commit(Batch { puts: vec![(id, vec![7; 300])], ..Batch::default() }, &changes, ToLog::default())
            .unwrap();
        drop(opened);
        assert!(matches!(&find(&vault, "n").unwrap()[..], [Flaw::Records { count: 1, .. }]));
        mended(&vault);
        let kept = fs::read(at.join("quarantine-1")).unwrap();
        let records = kept.strip_prefix(QUARANTINE_HEAD).unwrap();
        type Kept = (Vec<u8>, Vec<([u8; 16], Vec<u8>)>);
        let (keys, records): Kept = postcard::from_bytes(records).unwrap();
        assert_eq!(records, [(*id.as_bytes(), vec![7; 300])]);
        assert!(keys.len() > 48, "with the key of the one record");
    }

    #[test]
    fn what_starts_left_when_they_were_cut_short_is_removed_or_set_aside() {
        let (_dir, vault, at) = home();
        for place in [vault.data_dir(), &vault.data_dir().join("keys"), &at] {
            fs::write(place.join(".warm-abc.tmp"), "half a key").unwrap();
        }
        fs::write(at.join("store.new"), "half a store").unwrap();
        assert_eq!(find(&vault, "n").unwrap().len(), 4);
        mended(&vault);
        assert_eq!(fs::read(at.join("set-aside-1")).unwrap(), b"half a store");
    }

    #[test]
    fn a_store_that_lacks_its_name_gets_it_and_a_lock_file_what_belongs_into_it() {
        let (_dir, vault, at) = home();
        fs::rename(at.join("store.redb"), at.join("store.new")).unwrap();
        assert_eq!(find(&vault, "n").unwrap(), [Flaw::Unfinished(at.join("store.new"))]);
        mended(&vault);
        fs::write(at.join("lock"), "garbage").unwrap();
        assert_eq!(find(&vault, "n").unwrap(), [Flaw::LockGarbage(at.join("lock"))]);
        mended(&vault);
        assert_eq!(StoreLock::take(&at, Duration::ZERO).unwrap().remembers().unwrap(), Remembers::StoreMade);
    }

    #[test]
    fn a_store_that_is_damaged_or_lost_makes_way_for_a_new_one_and_no_byte_of_it_is_lost() {
        let (_dir, vault, at) = home();
        let path = at.join("store.redb");
        let mut damaged = fs::read(&path).unwrap();
        damaged.truncate(10_000);
        for n in 1..=2 {
            fs::write(&path, &damaged).unwrap();
            let flaw = Flaw::DamagedStore(path.clone());
            assert_eq!(find(&vault, "n").unwrap(), std::slice::from_ref(&flaw));
            let held = StoreLock::take(&at, Duration::ZERO).unwrap();
            assert!(matches!(flaw.mend(&vault, "n"), Err(OpenError::InUse(_))));
            drop(held);
            flaw.mend(&vault, "n").unwrap();
            assert!(fs::read(at.join(format!("set-aside-{n}"))).unwrap() == damaged);
            assert_eq!(find(&vault, "n").unwrap(), []);
            let engine = Engine::open(&vault, "n", Limits::default()).unwrap();
            assert!(engine.created());
            drop(engine);
            // Planned before, done after someone else did it: the new store is well and stays.
            flaw.mend(&vault, "n").unwrap();
            assert!(!Engine::open(&vault, "n", Limits::default()).unwrap().created());
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(find(&vault, "n").unwrap(), [Flaw::LostStore(path.clone())]);
        find(&vault, "n").unwrap()[0].mend(&vault, "n").unwrap();
        assert_eq!(find(&vault, "n").unwrap(), []);
        assert!(Engine::open(&vault, "n", Limits::default()).unwrap().created());
    }

    #[test]
    fn a_store_of_another_key_or_format_is_never_set_aside() {
        let (_dir, vault, at) = home();
        let (_other_dir, _, other) = home();
        let foreign = fs::read(other.join("store.redb")).unwrap();
        fs::write(at.join("store.redb"), &foreign).unwrap();
        assert_eq!(find(&vault, "n").unwrap(), []);
        let flaw = Flaw::DamagedStore(at.join("store.redb"));
        assert!(matches!(flaw.mend(&vault, "n"), Err(OpenError::ForeignStore(_))));
        assert!(fs::read(at.join("store.redb")).unwrap() == foreign);
    }

    #[test]
    fn nothing_is_mended_while_the_store_is_open() {
        let (_dir, vault, at) = home();
        fs::write(at.join("lock"), "garbage").unwrap();
        assert!(!in_use(&vault).unwrap());
        let held = StoreLock::take(&at, Duration::ZERO).unwrap();
        assert!(in_use(&vault).unwrap());
        assert!(matches!(find(&vault, "n"), Err(OpenError::InUse(_))));
        let flaw = Flaw::LockGarbage(at.join("lock"));
        assert!(matches!(flaw.mend(&vault, "n"), Err(OpenError::InUse(_))));
        assert_eq!(fs::read(at.join("lock")).unwrap(), b"garbage");
        drop(held);
        mended(&vault);
    }
}
