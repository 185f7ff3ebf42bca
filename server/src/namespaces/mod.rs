//! Which memory a call goes to.
//!
//! Owns the opened vault and the memories opened from it, one per namespace, each opened when it is first asked
//! for. No more are kept open than was said: the one that was not used for longest is closed for the next, and
//! opened again when it is asked for. One that a call holds is never closed, so that more than that are open while
//! more than that are in use. Knows of what is asked only whether it could begin a store: whatever else is asked
//! of a namespace that has none is answered as an empty memory would, and makes nothing.

pub mod options;
mod project;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use warm_engine::{
    Engine, OpenError, Seat, Vault,
    contract::{ErrorCode, Limits},
};

use crate::{
    memory::{Failure, LocalMemory, Memory, Request},
    shared::{ShareError, SharedMemory},
};
use options::Namespace;

/// The memories that this server can reach.
pub struct Namespaces {
    vault: Vault,
    limits: Limits,
    default: Namespace,
    /// Whether a call may name its namespace.
    pub selectable: bool,
    /// How many are kept open.
    pub max_open: usize,
    slots: Mutex<Slots>,
}

/// The namespaces that are open, or on their way to or from being so.
#[derive(Default)]
struct Slots {
    by_name: HashMap<String, Listed>,
    /// How many take up what an open one does.
    open: usize,
    /// Grows with every use.
    clock: u64,
}

#[derive(Default)]
struct Listed {
    slot: Slot,
    used: u64,
}

/// Its lock is held while the memory is being opened or closed, so that two calls don't open it twice, one waits
/// until it is closed before it opens it again, and the other namespaces are served meanwhile. It is taken before
/// that of the slots, and where that is held, only tried for.
type Slot = Arc<Mutex<State>>;

#[derive(Default)]
enum State {
    /// Nobody has opened it yet.
    #[default]
    New,
    Open(Arc<dyn Memory>),
    /// This slot is no longer listed: another takes its place.
    Gone,
}

impl Namespaces {
    /// Opens the default namespace at once, so that a store that can't be served is known at start. It stays open.
    pub fn open(
        vault: Vault,
        limits: Limits,
        default: Namespace,
        selectable: bool,
        max_open: usize,
    ) -> Result<Self, Arc<ShareError>> {
        let namespaces = Self { vault, limits, default, selectable, max_open, slots: Mutex::default() };
        namespaces.open_slot(&namespaces.default.name, true)?;
        Ok(namespaces)
    }

    /// One namespace that no other process is let in to.
    pub fn alone(vault: Vault, limits: Limits, namespace: Namespace) -> Result<Self, OpenError> {
        let engine = Engine::open(&vault, &namespace.name, limits.clone())?;
        let memory: Arc<dyn Memory> = Arc::new(LocalMemory::new(engine));
        let slot = Arc::new(Mutex::new(State::Open(memory)));
        let by_name = HashMap::from([(namespace.name.clone(), Listed { slot, used: 0 })]);
        let slots = Mutex::new(Slots { by_name, open: 1, clock: 0 });
        Ok(Self { vault, limits, default: namespace, selectable: false, max_open: 1, slots })
    }

    /// The memory of a namespace, to be read; of the default one where none is named. It stays open while it is
    /// held.
    pub fn memory(&self, namespace: Option<&str>) -> Result<Arc<dyn Memory>, Failure> {
        self.find(self.name(namespace), false).map_err(|error| error.failure())
    }

    /// The same for a request, which may be the first of its namespace.
    pub fn memory_for(&self, namespace: Option<&str>, request: &Request) -> Result<Arc<dyn Memory>, Failure> {
        let namespace = self.name(namespace);
        let begins = request.begins_a_store();
        if begins && self.opened(Some(namespace)).is_none() && !self.has_store(namespace) {
            // What would be refused makes no store. An empty one refuses the rest only because nothing can be put there.
            let nothing = self.find(namespace, false).map_err(|error| error.failure())?;
            match nothing.call(request.clone()) {
                Err(refused) if refused.code != ErrorCode::StoreUnavailable => return Err(refused),
                _ => {}
            }
        }
        self.find(namespace, begins).map_err(|error| error.failure())
    }

    /// Whether a namespace has a store. If that can't be told, it may have.
    pub fn has_store(&self, namespace: &str) -> bool {
        Seat::of(&self.vault, namespace).and_then(|seat| seat.has_store()).unwrap_or(true)
    }

    /// The memory of a namespace, if it is open.
    pub fn opened(&self, namespace: Option<&str>) -> Option<Arc<dyn Memory>> {
        let slot = {
            let mut slots = self.slots.lock();
            slots.clock += 1;
            let used = slots.clock;
            let listed = slots.by_name.get_mut(self.name(namespace))?;
            listed.used = used;
            Arc::clone(&listed.slot)
        };
        match &*slot.try_lock()? {
            State::Open(memory) => Some(Arc::clone(memory)),
            State::New | State::Gone => None,
        }
    }

    /// How many are open.
    pub fn count_open(&self) -> usize {
        self.slots.lock().open
    }

    /// Closes what is open beyond the number that was said and no longer in use. For whoever opened one, at the
    /// end of the call.
    pub fn trim(&self) {
        let mut idle: Vec<_> = {
            let slots = self.slots.lock();
            if slots.open <= self.max_open {
                return;
            }
            let others = slots.by_name.iter().filter(|(name, _)| **name != self.default.name);
            others.map(|(name, listed)| (listed.used, name.clone(), Arc::clone(&listed.slot))).collect()
        };
        idle.sort_unstable_by_key(|(used, ..)| *used);
        for (_, name, slot) in idle {
            if self.count_open() <= self.max_open {
                return;
            }
            self.close(&name, &slot);
        }
    }

    fn find(&self, namespace: &str, make: bool) -> Result<Arc<dyn Memory>, Arc<ShareError>> {
        let absent = || -> Result<bool, OpenError> {
            // Asked before anything is closed to make room for it.
            Ok(!make
                && self.opened(Some(namespace)).is_none()
                && !Seat::of(&self.vault, namespace)?.has_store()?)
        };
        let found = if absent().map_err(ShareError::from)? { None } else { self.open_slot(namespace, make)? };
        match found {
            Some(memory) => Ok(memory),
            None => {
                let nothing = Engine::vacant(&self.vault, namespace, self.limits.clone());
                Ok(Arc::new(LocalMemory::new(nothing.map_err(ShareError::from)?)))
            }
        }
    }

    /// The memory of a namespace, or `None` if it has no store and none is to be made.
    fn open_slot(&self, namespace: &str, make: bool) -> Result<Option<Arc<dyn Memory>>, Arc<ShareError>> {
        loop {
            let slot = self.slot(namespace);
            let mut state = slot.lock();
            match &*state {
                State::Open(memory) => return Ok(Some(Arc::clone(memory))),
                // It was closed while this waited.
                State::Gone => continue,
                State::New => {}
            }
            self.slots.lock().open += 1;
            self.trim();
            let opened = self.share(namespace, make);
            match &opened {
                Ok(Some(memory)) => *state = State::Open(Arc::clone(memory)),
                Ok(None) | Err(_) => self.discard(namespace, &mut state),
            }
            return opened;
        }
    }

    fn share(&self, namespace: &str, make: bool) -> Result<Option<Arc<dyn Memory>>, Arc<ShareError>> {
        let limits = self.limits.clone();
        let memory = if make {
            SharedMemory::open(&self.vault, namespace, limits)?
        } else {
            match SharedMemory::open_existing(&self.vault, namespace, limits)? {
                Some(memory) => memory,
                None => return Ok(None),
            }
        };
        if memory.created() && !self.vault.created() {
            eprintln!(
                "warm-mcp: made an empty store for the namespace {namespace}; the others are as they were."
            );
            if *namespace == self.default.name
                && let Some(hint) = self.default.when_moved()
            {
                eprintln!("{hint}");
            }
        }
        Ok(Some(Arc::new(memory)))
    }

    /// Closes a memory, unless it is in use. The store goes back to whoever else has it open, or to the next call.
    fn close(&self, namespace: &str, slot: &Slot) {
        let Some(mut state) = slot.try_lock() else { return };
        // Whoever has it got it under this lock, and whoever wants it waits for this lock.
        if matches!(&*state, State::Open(memory) if Arc::strong_count(memory) == 1) {
            *state = State::New;
            self.discard(namespace, &mut state);
        }
    }

    /// Takes a slot off the list, whose memory is closed.
    fn discard(&self, namespace: &str, state: &mut State) {
        *state = State::Gone;
        let mut slots = self.slots.lock();
        slots.by_name.remove(namespace);
        slots.open -= 1;
    }

    /// The slot of a namespace, which is used now.
    fn slot(&self, namespace: &str) -> Slot {
        let mut slots = self.slots.lock();
        slots.clock += 1;
        let used = slots.clock;
        let listed = slots.by_name.entry(namespace.to_owned()).or_default();
        listed.used = used;
        Arc::clone(&listed.slot)
    }

    /// The name of the namespace that a call means.
    pub fn name<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(&self.default.name)
    }

    /// Why a call goes to the namespace that it goes to.
    pub fn why(&self, named: Option<&str>) -> String {
        named.map_or_else(|| self.default.why(), |_| "named in the call".to_owned())
    }

    /// The limits of every namespace.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Longest request worth reading: one that is over the text limit still gets a proper answer.
    pub fn max_request_bytes(&self) -> usize {
        const ENVELOPE: u64 = 1024 * 1024;
        // str_replace carries two texts, and JSON may write one byte as six ("\u001f").
        let texts =
            self.limits.max_text_bytes.saturating_mul(2).saturating_add(self.limits.max_metadata_bytes);
        let keys = self.limits.max_forget.saturating_mul(self.limits.max_path_bytes);
        let bytes = texts.max(keys).saturating_mul(6).saturating_add(ENVELOPE).max(16 * ENVELOPE);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    use tempfile::TempDir;
    use warm_engine::{
        VaultOptions,
        contract::{CopyKind, Copying, Get, List, Remember},
    };

    use super::*;
    use crate::memory::Reply;

    fn vault(dir: &TempDir) -> Vault {
        let options = VaultOptions { data_dir: dir.path().join("data"), identity: None, passphrase: None };
        Vault::open(&options).expect("a vault")
    }

    fn open(dir: &TempDir, max_open: usize) -> Namespaces {
        let default = Namespace::default();
        Namespaces::open(vault(dir), Limits::default(), default, true, max_open).expect("namespaces")
    }

    fn remember(namespaces: &Namespaces, namespace: &str, key: &str) -> Result<Reply, Failure> {
        let request = Request::Remember(Remember {
            key: Some(key.into()),
            text: namespace.into(),
            create_only: true,
            ..Remember::default()
        });
        let memory = namespaces.memory_for(Some(namespace), &request)?;
        let reply = memory.call(request);
        drop(memory);
        namespaces.trim();
        reply
    }

    fn text(namespaces: &Namespaces, namespace: &str, key: &str) -> Option<String> {
        let memory = namespaces.memory(Some(namespace)).expect("it opens");
        match memory.call(Request::Get(Get { key: key.into() })) {
            Ok(Reply::Get(memory)) => Some(memory.text),
            _ => None,
        }
    }

    fn stores(dir: &TempDir) -> usize {
        std::fs::read_dir(dir.path().join("data/stores")).map_or(0, Iterator::count)
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_is_closed_and_opened_again_when_asked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let namespaces = open(&dir, 3);
        for name in ["a", "b"] {
            assert!(remember(&namespaces, name, "k").is_ok());
        }
        assert!(text(&namespaces, "a", "k").is_some());
        assert!(remember(&namespaces, "c", "k").is_ok());
        let is_open = |name: &str| namespaces.opened(Some(name)).is_some();
        assert_eq!(["a", "b", "c", "default"].map(is_open), [true, false, true, true]);
        assert_eq!(text(&namespaces, "b", "k").as_deref(), Some("b"));
        assert_eq!(namespaces.count_open(), 3);
    }

    #[test]
    fn one_in_use_is_not_closed_and_more_than_the_cap_may_be_in_use_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let namespaces = open(&dir, 2);
        let held: Vec<_> = (0..6)
            .map(|n| {
                let name = n.to_string();
                assert!(remember(&namespaces, &name, "k").is_ok());
                namespaces.memory(Some(&name)).expect("it opens")
            })
            .collect();
        assert_eq!(namespaces.count_open(), 7);
        for memory in &held {
            assert!(memory.call(Request::Get(Get { key: "k".into() })).is_ok());
        }
        drop(held);
        namespaces.trim();
        assert_eq!(namespaces.count_open(), 2);
    }

    #[test]
    fn calls_on_more_namespaces_than_the_cap_from_many_threads_all_succeed_and_are_kept() {
        const THREADS: usize = 8;
        let dir = tempfile::tempdir().expect("a folder");
        let namespaces = open(&dir, 3);
        let (begin, failed) = (Barrier::new(THREADS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (namespaces, begin, failed) = (&namespaces, &begin, &failed);
                scope.spawn(move || {
                    begin.wait();
                    for n in 0..30 {
                        // Each thread meets the others in each namespace, as it is opened or closed.
                        let name = ((n + thread / 2) % 6).to_string();
                        let key = format!("{thread}-{n}");
                        let made = remember(namespaces, &name, &key).is_ok();
                        if !made || text(namespaces, &name, &key).is_none() {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(failed.load(Ordering::Relaxed), 0);
        namespaces.trim();
        assert_eq!(namespaces.count_open(), 3);
        let listed = |name: &str| {
            let memory = namespaces.memory(Some(name)).expect("it opens");
            match memory.call(Request::List(List::default())) {
                Ok(Reply::List(listing)) => listing.total,
                _ => panic!("it lists"),
            }
        };
        assert_eq!((0..6).map(|n| listed(&n.to_string())).sum::<u64>(), 30 * THREADS as u64);
    }

    #[test]
    fn what_closes_here_is_taken_over_by_another_process_without_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let (one, other) = (open(&dir, 2), open(&dir, 10));
        assert!(remember(&one, "a", "0").is_ok());
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..60 {
                    assert!(remember(&other, "a", &n.to_string()).is_ok(), "write {n}");
                }
            });
            for n in 0..20 {
                // Closes a, whose owner this may be, and opens it again.
                assert!(remember(&one, &format!("b{}", n % 3), &format!("k{n}")).is_ok());
                assert!(text(&one, "a", "0").is_some());
            }
        });
        assert!((0..60).all(|n| text(&one, "a", &n.to_string()).is_some()));
    }

    #[test]
    fn what_reads_a_namespace_without_a_store_finds_nothing_and_makes_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let namespaces = open(&dir, 4);
        assert_eq!(text(&namespaces, "b", "k"), None);
        let memory = namespaces.memory(Some("b")).expect("it answers");
        let Ok(Reply::Stats(stats)) = memory.call(Request::Stats) else { panic!("it has figures") };
        assert_eq!((stats.namespace.as_str(), stats.memories, stats.store_bytes), ("b", 0, 0));
        let copying = Copying { kind: CopyKind::Export, place: "-".into() };
        assert!(matches!(memory.dump(&copying, &mut |_| Ok(())), Ok(0)));
        assert_eq!((stores(&dir), namespaces.count_open()), (1, 1));
        assert!(remember(&namespaces, "b", "k").is_ok());
        assert_eq!((stores(&dir), text(&namespaces, "b", "k").as_deref()), (2, Some("b")));
    }

    #[test]
    fn a_name_that_is_not_usable_is_an_invalid_argument_and_takes_up_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let namespaces = open(&dir, 4);
        for name in ["", "a\u{1}b", &"x".repeat(129)] {
            let refused = namespaces.memory(Some(name)).err().map(|failure| failure.code);
            assert_eq!(refused, Some(warm_engine::contract::ErrorCode::InvalidArgument));
            assert!(remember(&namespaces, name, "k").is_err());
        }
        assert_eq!(namespaces.count_open(), 1);
    }
}
