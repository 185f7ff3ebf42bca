//! How many files this process may have open.
//!
//! Each open namespace takes some six, each client over HTTP one, and a change of the keys the lock of every namespace
//! that there is. Systems let a process begin with few, down to 256, and raise that up to a bound when it asks.

/// More than any number of namespaces and clients that is served well; some systems take no larger number.
#[cfg(unix)]
const ENOUGH: u64 = 10_240;

/// Asks for enough. What is refused is not missed until it is needed.
#[cfg(unix)]
pub fn ask_for_enough() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let wanted = now.maximum.map_or(ENOUGH, |most| most.min(ENOUGH));
    if now.current.is_some_and(|current| current < wanted)
        && let Err(error) =
            setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum })
    {
        tracing::info!(%error, "the number of open files stays as it was");
    }
}

#[cfg(not(unix))]
pub fn ask_for_enough() {}
