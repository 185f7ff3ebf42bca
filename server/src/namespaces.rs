//! Which memory a call goes to.
//!
//! Owns the opened vault and the memories opened from it, one per namespace, each opened when it is
//! first asked for and kept open. Knows nothing of what is asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use warm_engine::{Engine, OpenError, Vault, contract::Limits};

use crate::{
    memory::{Failure, LocalMemory, Memory},
    shared::{ShareError, SharedMemory},
};

/// The memories that this server can reach.
pub struct Namespaces {
    vault: Vault,
    limits: Limits,
    default: String,
    /// Whether a call may name its namespace.
    pub selectable: bool,
    slots: Mutex<HashMap<String, Slot>>,
}

/// A memory, once it is open. Held while it is being opened, so that two calls don't open it twice and the
/// other namespaces are served meanwhile.
type Slot = Arc<Mutex<Option<Arc<dyn Memory>>>>;

impl Namespaces {
    /// Opens the default namespace at once, so that a store that can't be served is known at start.
    pub fn open(
        vault: Vault,
        limits: Limits,
        default: String,
        selectable: bool,
    ) -> Result<Self, Arc<ShareError>> {
        let namespaces = Self { vault, limits, default, selectable, slots: Mutex::default() };
        namespaces.open_slot(&namespaces.default)?;
        Ok(namespaces)
    }

    /// One namespace that no other process is let in to.
    pub fn alone(vault: Vault, limits: Limits, namespace: String) -> Result<Self, OpenError> {
        let engine = Engine::open(&vault, &namespace, limits.clone())?;
        let memory: Arc<dyn Memory> = Arc::new(LocalMemory::new(engine));
        let slots = HashMap::from([(namespace.clone(), Arc::new(Mutex::new(Some(memory))))]);
        Ok(Self { vault, limits, default: namespace, selectable: false, slots: Mutex::new(slots) })
    }

    /// The memory of a namespace; of the default one where none is named.
    pub fn memory(&self, namespace: Option<&str>) -> Result<Arc<dyn Memory>, Failure> {
        self.open_slot(self.name(namespace)).map_err(|error| error.failure())
    }

    /// The memory of a namespace, if it is open.
    pub fn opened(&self, namespace: Option<&str>) -> Option<Arc<dyn Memory>> {
        let slot = self.slots().get(self.name(namespace)).cloned()?;
        slot.try_lock().ok()?.clone()
    }

    fn open_slot(&self, namespace: &str) -> Result<Arc<dyn Memory>, Arc<ShareError>> {
        let slot = Arc::clone(self.slots().entry(namespace.to_owned()).or_default());
        let mut open = unpoisoned(&slot);
        if let Some(memory) = &*open {
            return Ok(Arc::clone(memory));
        }
        let opened = SharedMemory::open(&self.vault, namespace, self.limits.clone());
        let memory = opened.inspect_err(|_| self.discard(namespace, &slot))?;
        if memory.created() && !self.vault.created() {
            eprintln!(
                "warm-mcp: made an empty store for the namespace {namespace}; the others are as they were."
            );
        }
        let memory: Arc<dyn Memory> = Arc::new(memory);
        *open = Some(Arc::clone(&memory));
        Ok(memory)
    }

    /// Drops the slot of a namespace that could not be opened, unless another has taken its place.
    fn discard(&self, namespace: &str, slot: &Slot) {
        let mut slots = self.slots();
        if slots.get(namespace).is_some_and(|there| Arc::ptr_eq(there, slot)) {
            slots.remove(namespace);
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        unpoisoned(&self.slots)
    }

    /// The name of the namespace that a call means.
    pub fn name<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(&self.default)
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

/// A panic while it is held leaves what it guards as it was, so a poisoned lock is still good.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
