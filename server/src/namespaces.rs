//! Which memory a call goes to.
//!
//! Owns the opened vault and the memories opened from it, one per namespace, each opened when it is
//! first asked for and kept open. Knows nothing of what is asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use warm_engine::{
    Engine, OpenError, Vault,
    contract::{ErrorCode, Limits},
};

use crate::memory::{Failure, LocalMemory, Memory};

/// The memories that this server can reach.
pub struct Namespaces {
    vault: Vault,
    limits: Limits,
    default: String,
    /// Whether a call may name its namespace.
    pub selectable: bool,
    open: Mutex<HashMap<String, Arc<dyn Memory>>>,
}

impl Namespaces {
    /// Opens the default namespace at once, so that a store that can't be served is known at start.
    pub fn open(vault: Vault, limits: Limits, default: String, selectable: bool) -> Result<Self, OpenError> {
        let memory = open(&vault, &default, &limits)?;
        Ok(Self {
            vault,
            limits,
            open: Mutex::new(HashMap::from([(default.clone(), memory)])),
            default,
            selectable,
        })
    }

    /// The memory of a namespace; of the default one where none is named.
    pub fn memory(&self, namespace: Option<&str>) -> Result<Arc<dyn Memory>, Failure> {
        let namespace = namespace.unwrap_or(&self.default);
        // Held while opening, so that two calls don't open one store twice.
        let mut memories = self.memories();
        if let Some(memory) = memories.get(namespace) {
            return Ok(Arc::clone(memory));
        }
        let memory = open(&self.vault, namespace, &self.limits).map_err(|error| {
            let code = match error {
                OpenError::InvalidNamespace => ErrorCode::InvalidArgument,
                _ => ErrorCode::StoreUnavailable,
            };
            Failure::new(code, error.to_string())
        })?;
        memories.insert(namespace.to_owned(), Arc::clone(&memory));
        Ok(memory)
    }

    /// The memory of a namespace, if it is open.
    pub fn opened(&self, namespace: Option<&str>) -> Option<Arc<dyn Memory>> {
        self.memories().get(namespace.unwrap_or(&self.default)).cloned()
    }

    /// A panic while it is held leaves the map as it was, so a poisoned lock is still good.
    fn memories(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn Memory>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Longest request worth reading: one that is over the text limit still gets a proper answer.
    pub fn max_request_bytes(&self) -> usize {
        const ENVELOPE: u64 = 1024 * 1024;
        // str_replace carries two texts, and JSON may write one byte as six ("\u001f").
        let texts = self.limits.max_text_bytes.saturating_mul(2 * 6);
        let bytes = texts.saturating_add(ENVELOPE).max(16 * ENVELOPE);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

fn open(vault: &Vault, namespace: &str, limits: &Limits) -> Result<Arc<dyn Memory>, OpenError> {
    let engine = Engine::open(vault, namespace, limits.clone())?;
    if engine.created() && !vault.created() {
        eprintln!(
            "warm-mcp: made an empty store for the namespace {namespace}; the others are as they were."
        );
    }
    Ok(Arc::new(LocalMemory::new(engine)))
}
