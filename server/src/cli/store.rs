//! From the options to a memory.
//!
//! Owns how a command gets at its memory, and which commands may make a store: looking never does.

use std::sync::Arc;

use warm_engine::{ArchiveKey, OpenError, Vault, VaultOptions, contract::Stats};

use super::{Stop, output::note};
use crate::{
    memory::{Failure, Memory, Reply, Request},
    namespaces::{Namespaces, options::Namespace},
    options::Options,
    serve::first_start,
    shared::SharedMemory,
};

/// What to do where there is no store yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Say so.
    Existing,
    /// Make one.
    Create,
}

/// The memory of the namespace that the options name.
pub fn open(options: &Options, access: Access) -> Result<Arc<dyn Memory>, String> {
    open_namespace(options, options.namespace(), access)
}

/// The memory of a namespace.
pub fn open_namespace(
    options: &Options,
    namespace: &Namespace,
    access: Access,
) -> Result<Arc<dyn Memory>, String> {
    match access {
        Access::Existing => {
            let memory = open_if_there(options, &namespace.name)?;
            memory.map_or_else(|| Err(nothing_stored(options, namespace)), Ok)
        }
        Access::Create => {
            let vault = Vault::open(&options.vault()?).map_err(|error| error.to_string())?;
            if vault.created() {
                note(first_start(&vault));
            }
            let opened = Namespaces::open(vault, options.limits(), namespace.clone(), false, 1);
            let namespaces = opened.map_err(|error| error.to_string())?;
            namespaces.memory(None).map_err(|failure| failure.message)
        }
    }
}

/// The memory of a namespace, or `None` where nothing is stored yet. Makes nothing.
pub fn open_if_there(options: &Options, namespace: &str) -> Result<Option<Arc<dyn Memory>>, String> {
    let vault = match Vault::open_existing(&options.vault()?) {
        Err(OpenError::NoStore(_)) => return Ok(None),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let opened = SharedMemory::open_existing(&vault, namespace, options.limits());
    let memory = opened.map_err(|error| error.to_string())?;
    Ok(memory.map(|memory| Arc::new(memory) as Arc<dyn Memory>))
}

fn nothing_stored(options: &Options, namespace: &Namespace) -> String {
    let dir = options.data_dir().map_or_else(|problem| problem, |dir| dir.display().to_string());
    format!(
        "nothing is stored yet in {dir}, namespace {} ({}): a store is made when a client first starts \
         warm-mcp, and by import, restore and edit.\nIf there should be one, check --data-dir and --namespace.{}",
        namespace.name,
        namespace.why(),
        namespace.when_moved().map_or_else(String::new, |hint| format!("\n{hint}.")),
    )
}

/// The key that seals and opens archives. A store that is there must open with it.
pub fn archive_key(options: &VaultOptions) -> Result<ArchiveKey, String> {
    match Vault::open_existing(options) {
        Ok(vault) => ArchiveKey::of(options).map(|key| key.for_all_of(&vault)),
        Err(OpenError::NoStore(_)) => ArchiveKey::of(options),
        Err(error) => Err(error),
    }
    .map_err(|error| error.to_string())
}

/// Sizes and limits of a memory.
pub fn stats(memory: &dyn Memory) -> Result<Stats, Failure> {
    match memory.call(Request::Stats)? {
        Reply::Stats(stats) => Ok(*stats),
        _ => Err(other_answer()),
    }
}

/// Says on stderr which part of a store is not in a copy of it.
pub fn warn_of_damage(memory: &dyn Memory) -> Result<(), Stop> {
    match stats(memory)?.damaged_records {
        0 => {}
        damaged => note(format_args!(
            "warm-mcp: {damaged} of the store's records can't be opened, and the copy will lack them: \
             `warm-mcp doctor` lists them. Keep older copies."
        )),
    }
    Ok(())
}

/// An answer that does not fit its request.
pub fn other_answer() -> Failure {
    Failure::new(
        warm_engine::contract::ErrorCode::Internal,
        "The memory gave the answer to another request. Report this as a fault of warm-mcp.",
    )
}
