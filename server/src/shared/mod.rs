//! One store, any number of processes.
//!
//! The first process on a store takes its seat and serves it to the others on a local socket; a later one
//! is its guest. When the owner goes, one guest takes the seat, the others join it, and the requests in
//! flight are asked again: reads run again, writes carry a name and are made once. A caller sees a
//! short delay and nothing else.
//!
//! Owns who holds the store and what happens when that changes. What is said on the socket is in
//! [`messages`], how it is framed in [`wire`], who may say it in [`handshake`], where it is in [`endpoint`].

mod endpoint;
mod guest;
mod handshake;
mod host;
mod local_socket;
mod messages;
mod wire;

use std::{
    cell::Cell,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use warm_engine::{
    Claim, Engine, OpenError, Prover, Seat, Vault,
    contract::{Changes, ChangesSince, Copying, ErrorCode, Limits, Memory as Stored, OperationId},
};

use crate::memory::{
    Caller, Expected, Failure, Listener, LocalMemory, Memory, Reply, Request, wait_for_changes,
};
use guest::{Guest, Lost};
use handshake::Refused;
use host::Host;

/// How long a process tries to own or to join a store that another one holds.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a request is asked again and again while owners come and go.
const ASKED_FOR: Duration = Duration::from_secs(30);
/// Pauses between two tries: short at first, since a hand-over takes milliseconds.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(16));
/// A store that a failed commit shut, or that could not be opened, is opened again this often at most.
const REOPENED_EVERY: Duration = Duration::from_secs(1);

/// Why a store could be neither owned nor joined.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The owner is of another release.
    #[error(
        "the warm-mcp that has this store open (process {process}, version {version}) speaks another version of \
         the protocol between the two than this one ({ours}): restart the client windows that run the older one"
    )]
    OtherProtocol {
        /// The owner.
        process: u32,
        /// Its version.
        version: String,
        /// Our version.
        ours: &'static str,
    },
    /// Another process holds the store and can't be reached.
    #[error(
        "another process has the store {store} open and can't be reached ({reason}): end it, or give this one a \
         --namespace or --data-dir of its own"
    )]
    Unreachable {
        /// Where the store is.
        store: String,
        /// What the last try met.
        reason: String,
    },
    /// This process is ending.
    #[error("this warm-mcp is ending: ask the next one")]
    Closing,
}

impl ShareError {
    /// For a caller in the middle of a session.
    pub fn failure(&self) -> Failure {
        let code = match self {
            Self::Open(OpenError::InvalidNamespace) => ErrorCode::InvalidArgument,
            _ => ErrorCode::StoreUnavailable,
        };
        Failure::new(code, self.to_string())
    }
}

/// A memory whose store this process owns, or reaches through the one that does.
pub struct SharedMemory {
    shared: Arc<Shared>,
}

struct Shared {
    /// As it was when it was last needed: the keys may be changed while nobody has the store open.
    vault: Mutex<Vault>,
    seat: Seat,
    limits: Limits,
    part: Part,
    role: RwLock<Role>,
    /// Held by the one that looks for a new role.
    election: Mutex<Election>,
    /// Whether this process made the store.
    made: AtomicBool,
    closing: AtomicBool,
    /// Names this process among the clients of a store.
    client: [u8; 16],
    counter: AtomicU64,
}

/// What is known of the last election.
#[derive(Default)]
struct Election {
    /// Whether this process ever had a role.
    settled: bool,
    /// When this process last tried to open the store.
    opened: Option<Instant>,
    /// Why the last election failed, and when: the answer to all who waited for it, too.
    failed: Option<(Instant, Arc<ShareError>)>,
}

/// What this process would be to the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    Guest,
}

/// What this process is to the store.
#[derive(Clone)]
enum Role {
    Owner(Arc<Owner>),
    Guest(Arc<Guest>),
    /// Nothing yet, or nothing any more.
    None,
}

/// Dropped in this order: guests are sent away, then the store closes and the seat is free.
struct Owner {
    _host: Option<Host>,
    memory: LocalMemory,
}

impl Role {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Owner(a), Self::Owner(b)) => Arc::ptr_eq(a, b),
            (Self::Guest(a), Self::Guest(b)) => Arc::ptr_eq(a, b),
            (Self::None, Self::None) => true,
            _ => false,
        }
    }
}

impl SharedMemory {
    /// Owns or joins the store of a namespace; makes an empty one where there is none.
    pub fn open(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, Arc<ShareError>> {
        let seat = Seat::of(vault, namespace).map_err(ShareError::from)?;
        Self::take_part(vault, seat, limits, Part::Any)
    }

    /// Owns or joins the store of a namespace, if there is one; makes nothing.
    pub fn open_existing(
        vault: &Vault,
        namespace: &str,
        limits: Limits,
    ) -> Result<Option<Self>, Arc<ShareError>> {
        let seat = Seat::of(vault, namespace).map_err(ShareError::from)?;
        if !seat.has_store().map_err(ShareError::from)? {
            return Ok(None);
        }
        Self::take_part(vault, seat, limits, Part::Any).map(Some)
    }

    /// Joins the process that has the store of a namespace open. Never opens it itself.
    pub fn visit(vault: &Vault, namespace: &str, limits: Limits) -> Result<Self, Arc<ShareError>> {
        let seat = Seat::of(vault, namespace).map_err(ShareError::from)?;
        Self::take_part(vault, seat, limits, Part::Guest)
    }

    fn take_part(vault: &Vault, seat: Seat, limits: Limits, part: Part) -> Result<Self, Arc<ShareError>> {
        let shared = Arc::new(Shared {
            vault: Mutex::new(vault.clone()),
            seat,
            limits,
            part,
            role: RwLock::new(Role::None),
            election: Mutex::default(),
            made: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            client: random_id(),
            counter: AtomicU64::new(0),
        });
        shared.elect(&Role::None)?;
        Ok(Self { shared })
    }

    /// Whether this process made the store, so that it was empty.
    pub fn created(&self) -> bool {
        self.shared.made.load(Ordering::Relaxed)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        let role = {
            // An election that has begun ends first, so that what it finds is given back too.
            let _election = self.shared.election.lock();
            std::mem::replace(&mut *self.shared.role.write(), Role::None)
        };
        // Nobody waits for a lock while guests are sent away.
        drop(role);
    }
}

impl Memory for SharedMemory {
    fn call_or_wait(&self, request: Request, caller: &mut Caller<'_>) -> Result<Reply, Failure> {
        let shared = &self.shared;
        let operation = request.is_write().then(|| shared.name());
        let mut tries = Tries::new();
        let mut role = shared.role();
        loop {
            match &role {
                Role::Owner(owner) => {
                    // Only one that another process may have made needs its name.
                    let outcome = match operation.filter(|_| tries.asked) {
                        Some(operation) => owner.memory.call_as(Some(operation), request, &caller.progress),
                        None => owner.memory.call_or_wait(request, caller),
                    };
                    if outcome.is_err() && owner.memory.engine().is_shut() {
                        shared.let_go(role);
                    }
                    return outcome;
                }
                Role::Guest(guest) => match guest.call(operation, &request, caller) {
                    Ok(outcome) => return outcome,
                    Err(lost) => tries.lost(&lost, request.is_write())?,
                },
                Role::None => {}
            }
            role = shared.elect(&role).map_err(|error| error.failure())?;
        }
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(SharedListener(Arc::downgrade(&self.shared)))
    }

    /// When the owner ends in the middle, so does this: what was handed over can't be taken back.
    fn dump(
        &self,
        copying: &Copying,
        each: &mut dyn FnMut(Stored) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let begun = Cell::new(false);
        let mut each = |memory| {
            begun.set(true);
            each(memory)
        };
        let mut tries = Tries::new();
        let mut role = self.shared.role();
        loop {
            match &role {
                Role::Owner(owner) => return owner.memory.dump(copying, &mut each),
                Role::Guest(guest) => match guest.dump(copying, &mut each) {
                    Ok(outcome) => return outcome,
                    Err(Lost::Gone) if begun.get() => {
                        return Err(Failure::new(
                            ErrorCode::StoreUnavailable,
                            "The warm-mcp that had the store open ended in the middle: run this again.",
                        ));
                    }
                    Err(lost) => tries.lost(&lost, false)?,
                },
                Role::None => {}
            }
            role = self.shared.elect(&role).map_err(|error| error.failure())?;
        }
    }

    fn expect(&self, request: &Request) -> Expected {
        match self.shared.role() {
            Role::Owner(owner) => owner.memory.expect(request),
            Role::Guest(guest) => guest.expect(request),
            Role::None => Expected::Later,
        }
    }
}

/// Hears what changes in the store, from its owner. Holds nothing of either while it waits, so that both can end.
struct SharedListener(Weak<Shared>);

impl Listener for SharedListener {
    fn next(&self, since: ChangesSince, wait: Duration) -> Result<Changes, Failure> {
        let closed = || ShareError::Closing.failure();
        let shared =
            self.0.upgrade().filter(|shared| !shared.closing.load(Ordering::SeqCst)).ok_or_else(closed)?;
        let role = match shared.role() {
            Role::None => shared.elect(&Role::None).map_err(|error| error.failure())?,
            role => role,
        };
        drop(shared);
        match role {
            Role::Owner(owner) => {
                let log = owner.memory.engine().changes();
                drop(owner);
                wait_for_changes(&log, since, wait)
            }
            Role::Guest(guest) => {
                let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let mut caller = Caller { waits: &mut || {}, progress: Arc::default() };
                match guest.call(None, &Request::Changes(since, millis), &mut caller) {
                    Ok(Ok(Reply::Changes(changes))) => Ok(changes),
                    Ok(Err(failure)) => Err(failure),
                    Ok(Ok(_)) => Err(Failure::fault()),
                    Err(_) => Err(closed()),
                }
            }
            Role::None => Err(closed()),
        }
    }
}

/// How often a request was asked while owners came and went.
struct Tries {
    started: Instant,
    asked: bool,
    pause: Duration,
}

impl Tries {
    fn new() -> Self {
        Self { started: Instant::now(), asked: false, pause: Duration::ZERO }
    }

    /// Whether to ask again, which may be another owner or the same.
    fn lost(&mut self, lost: &Lost, write: bool) -> Result<(), Failure> {
        let said = match lost {
            Lost::Gone if self.started.elapsed() < ASKED_FOR => {
                self.asked = true;
                thread::sleep(self.pause);
                self.pause = (self.pause * 2).clamp(PAUSES.0, PAUSES.1);
                return Ok(());
            }
            Lost::Gone => "The processes on this store kept ending before one could answer.".to_owned(),
            Lost::Silent { process } => format!(
                "The warm-mcp that has the store open (process {process}) does not answer: let it go on, or end \
                 it, and this one takes over."
            ),
            Lost::Garbled => {
                let said = "The answer of the warm-mcp that has the store open could not be read. Report this as a \
                            fault of warm-mcp.";
                return Err(Failure::new(ErrorCode::Internal, said.to_owned() + unknown(write)));
            }
        };
        Err(Failure::new(ErrorCode::StoreUnavailable, said + unknown(write)))
    }
}

fn unknown(write: bool) -> &'static str {
    if write { " Whether the change was made is not known: look before trying again." } else { "" }
}

impl Shared {
    fn role(&self) -> Role {
        self.role.read().clone()
    }

    /// A name for a write, never used again.
    fn name(&self) -> OperationId {
        OperationId { client: self.client, counter: self.counter.fetch_add(1, Ordering::Relaxed) }
    }

    /// Gives up a store that a failed commit shut, so that the next call opens it again.
    fn let_go(self: &Arc<Self>, shut: Role) {
        if self.election.lock().opened.is_some_and(|at| at.elapsed() < REOPENED_EVERY) {
            return;
        }
        {
            let mut role = self.role.write();
            if !role.is(&shut) {
                return;
            }
            *role = Role::None;
        }
        // Sending guests away may take a while, which nobody here need wait for.
        let gone = thread::Builder::new().name("warm-let-go".into()).spawn(move || drop(shut));
        if let Err(error) = gone {
            tracing::warn!(%error, "the store was given up at once");
        }
    }

    /// Finds the role that follows `stale`; of several callers one does it and all get it.
    fn elect(self: &Arc<Self>, stale: &Role) -> Result<Role, Arc<ShareError>> {
        let came = Instant::now();
        let mut election = self.election.lock();
        let now = self.role();
        if !now.is(stale) && !matches!(now, Role::None) {
            return Ok(now);
        }
        if let Some((at, error)) = &election.failed
            && (*at >= came || at.elapsed() < REOPENED_EVERY)
        {
            return Err(Arc::clone(error));
        }
        // What is held of the old role must be gone, or this process would wait for itself.
        drop(now);
        *self.role.write() = Role::None;
        let role = self.seek(&mut election).map_err(|error| {
            let error = Arc::new(error);
            election.failed = Some((Instant::now(), Arc::clone(&error)));
            error
        })?;
        election.failed = None;
        election.settled = true;
        *self.role.write() = role.clone();
        if let Role::Guest(guest) = &role {
            self.watch(guest);
        }
        Ok(role)
    }

    fn seek(self: &Arc<Self>, election: &mut Election) -> Result<Role, ShareError> {
        let started = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            if self.closing.load(Ordering::SeqCst) {
                return Err(ShareError::Closing);
            }
            if self.part == Part::Any
                && let Some(claim) = self.try_claim(election.settled)?
            {
                election.opened = Some(Instant::now());
                return self.own(claim).map(|owner| Role::Owner(Arc::new(owner)));
            }
            let reason = match Guest::join(&self.seat, self.prover(), &self.limits) {
                Ok(guest) => {
                    tracing::info!(
                        millis = started.elapsed().as_millis(),
                        "this process joined the store's owner"
                    );
                    return Ok(Role::Guest(Arc::new(guest)));
                }
                Err(Refused::OtherProtocol { process, version }) => {
                    let ours = env!("CARGO_PKG_VERSION");
                    return Err(ShareError::OtherProtocol { process, version, ours });
                }
                Err(other) => other.to_string(),
            };
            if started.elapsed() > PATIENCE {
                let store = self.seat.dir().display().to_string();
                return Err(ShareError::Unreachable { store, reason });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Tries for the seat. Once a store was there, none is made in its place: what is gone then is the folder
    /// that it was in, which may come back.
    fn try_claim(&self, settled: bool) -> Result<Option<Claim>, OpenError> {
        if !settled {
            return self.seat.try_claim();
        }
        let claim = self.seat.try_reclaim()?;
        self.vault()?;
        Ok(claim)
    }

    /// The vault with the keys of now. Errors when they are gone, or open with something else by now.
    fn vault(&self) -> Result<Vault, OpenError> {
        let mut vault = self.vault.lock();
        *vault = vault.renewed()?;
        Ok(vault.clone())
    }

    /// Where the keys of now can't be had, the other side says whether those of before still fit.
    fn prover(&self) -> Prover {
        let vault = self.vault().unwrap_or_else(|_| self.vault.lock().clone());
        vault.prover(self.seat.namespace())
    }

    fn own(self: &Arc<Self>, claim: Claim) -> Result<Owner, ShareError> {
        let started = Instant::now();
        // Others are met at once and wait while the store is opened.
        let weak = Arc::downgrade(self);
        let when_shut = move || {
            if let Some(shared) = weak.upgrade()
                && let role @ Role::Owner(_) = shared.role()
            {
                shared.let_go(role);
            }
        };
        let host = Host::start(&self.seat, self.prover(), Box::new(when_shut)).map_err(|error| {
            tracing::warn!(%error, "other processes can't join this store: there is no place for a local socket");
        });
        let engine = Engine::open_claimed(&self.vault()?, claim, self.limits.clone())?;
        tracing::info!(millis = started.elapsed().as_millis(), "this process owns the store");
        self.made.fetch_or(engine.created(), Ordering::Relaxed);
        if let Ok(host) = &host {
            host.open(engine.clone());
        }
        Ok(Owner { _host: host.ok(), memory: LocalMemory::new(engine) })
    }

    /// Takes over, or joins the one that does, as soon as the owner is gone: not only at the next request.
    fn watch(self: &Arc<Self>, guest: &Arc<Guest>) {
        let Some(watch) = guest.take_watch() else { return };
        let (shared, guest) = (Arc::downgrade(self), Arc::downgrade(guest));
        let watching = move || {
            watch.wait_for_end();
            let Some(role) = guest.upgrade().map(Role::Guest) else { return };
            if let Some(shared) = Weak::upgrade(&shared)
                && let Err(error) = shared.elect(&role)
            {
                tracing::warn!(%error, "the store's owner is gone and its place could not be taken yet");
            }
        };
        if let Err(error) = thread::Builder::new().name("warm-watch".into()).spawn(watching) {
            // The next request finds out.
            tracing::warn!(%error, "the store's owner can't be watched");
        }
    }
}

/// Random bytes for names and nonces.
///
/// # Panics
/// If the operating system has no randomness to give: nothing could be told apart then.
fn random_id() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

#[cfg(all(test, unix))]
mod tests;
