//! The side of the process that owns the store: it serves the others.
//!
//! Owns the socket, a thread that meets guests and a thread for each connection. Each request is served whole
//! by the engine, as if it came from this process. When the owner is about to end, requests in progress
//! are answered, and those that can't be are left to the next owner.

use std::{
    collections::HashMap,
    io,
    net::Shutdown,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use warm_engine::{Engine, Prover, Seat, contract::ErrorCode};

use super::{
    endpoint::Endpoint,
    guest::{Asked, Told},
    handshake,
    local_socket::{Listener, Stream},
    wire::{self, LONGEST},
};
use crate::{
    handler::fault,
    memory::{Failure, LocalMemory, Memory},
};

/// How long a request in progress may keep the owner from ending.
const PARTING: Duration = Duration::from_secs(5);
/// Most connections at once; one more is met and sent away, and tries again.
const MOST: usize = 1_024;
/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves guests until it is dropped.
pub struct Host {
    endpoint: Option<Endpoint>,
    meeting: Option<JoinHandle<()>>,
    rooms: Arc<Rooms>,
}

/// The connections that are open.
struct Rooms {
    /// None once the host closes: what is left of a connection then must not keep the store open.
    engine: Mutex<Option<Engine>>,
    prover: Prover,
    closing: AtomicBool,
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    next: u64,
    streams: HashMap<u64, Stream>,
}

impl Host {
    /// Serves `engine`, whose seat this process holds.
    pub fn start(seat: &Seat, prover: Prover, engine: Engine) -> io::Result<Self> {
        let (endpoint, listener) = Endpoint::make(seat.dir())?;
        let rooms = Rooms {
            engine: Mutex::new(Some(engine)),
            prover,
            closing: AtomicBool::new(false),
            open: Mutex::default(),
            changed: Condvar::new(),
        };
        let rooms = Arc::new(rooms);
        let of_thread = Arc::clone(&rooms);
        let meeting = thread::Builder::new().name("warm-host".into());
        let meeting = meeting.spawn(move || meet(&listener, &of_thread))?;
        Ok(Self { endpoint: Some(endpoint), meeting: Some(meeting), rooms })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let rooms = &self.rooms;
        rooms.closing.store(true, Ordering::SeqCst);
        let engine = rooms.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(engine) = engine {
            engine.retire();
        }
        if let Some(endpoint) = self.endpoint.take()
            // Wakes the thread that meets guests.
            && Stream::connect(endpoint.socket()).is_ok()
            && let Some(meeting) = self.meeting.take()
            && meeting.join().is_err()
        {
            tracing::error!("the thread that meets other processes panicked");
        }
        let mut open = rooms.open();
        for stream in open.streams.values() {
            // Nothing more is read; what is being answered is answered.
            let _ = stream.shutdown(Shutdown::Read);
        }
        while !open.streams.is_empty() {
            let (guard, timeout) =
                rooms.changed.wait_timeout(open, PARTING).unwrap_or_else(PoisonError::into_inner);
            open = guard;
            if timeout.timed_out() {
                tracing::warn!("a request of another process took too long; it is left to the next owner");
                break;
            }
        }
    }
}

impl Rooms {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }
}

fn meet(listener: &Listener, rooms: &Arc<Rooms>) {
    loop {
        let accepted = listener.accept();
        if rooms.is_closing() {
            return;
        }
        match accepted {
            Ok((stream, _)) => {
                if let Err(error) = receive(stream, rooms) {
                    tracing::warn!(%error, "another process could not be received");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "another process could not be met");
                thread::sleep(PAUSE);
            }
        }
    }
}

fn receive(stream: Stream, rooms: &Arc<Rooms>) -> io::Result<()> {
    let handle = stream.try_clone()?;
    let number = {
        let mut open = rooms.open();
        if open.streams.len() >= MOST {
            return Err(io::Error::other("there are too many connections"));
        }
        open.next += 1;
        let number = open.next;
        open.streams.insert(number, handle);
        number
    };
    let room = Room { rooms: Arc::clone(rooms), number };
    thread::Builder::new().name("warm-guest".into()).spawn(move || {
        let mut stream = stream;
        // Bound to the thread, so that the connection counts as open until it ends.
        let room = room;
        if let Err(error) = serve(&mut stream, &room.rooms) {
            tracing::debug!(%error, "a connection to another process ended");
        }
        let _ = stream.shutdown(Shutdown::Both);
    })?;
    Ok(())
}

/// One open connection; no longer so when dropped.
struct Room {
    rooms: Arc<Rooms>,
    number: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.rooms.open().streams.remove(&self.number);
        self.rooms.changed.notify_all();
    }
}

fn serve(stream: &mut Stream, rooms: &Rooms) -> io::Result<()> {
    let limits =
        handshake::admit(stream, &rooms.prover).map_err(|refused| io::Error::other(refused.to_string()))?;
    stream.set_read_timeout(None)?;
    // A guest that does not take its answer holds up nobody but its own thread, and not for ever.
    stream.set_write_timeout(Some(PARTING))?;
    let engine = rooms
        .engine
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .map(|engine| engine.with_limits(limits));
    let Some(engine) = engine else { return Ok(()) };
    let memory = LocalMemory::new(engine);
    let never = || Ok(());
    while let Some(asked) = wire::read(stream, LONGEST, never)? {
        let told = match asked {
            Asked::Request { operation, request } => {
                let served = catch_unwind(AssertUnwindSafe(|| memory.call_as(operation, request)));
                let outcome = served.unwrap_or_else(|_| Err(fault()));
                if outcome.is_err() && rooms.is_closing() {
                    // It may have failed for that reason alone: the next owner is asked again.
                    return Ok(());
                }
                Told::Outcome { outcome, recall_ready: memory.engine().recall_is_ready() }
            }
            Asked::Dump => Told::Dumped(dump(stream, &memory)?),
        };
        wire::write(stream, &told)?;
    }
    Ok(())
}

/// Sends every memory. The outer error is the connection's.
fn dump(stream: &mut Stream, memory: &LocalMemory) -> io::Result<Result<u64, Failure>> {
    let mut broken = None;
    let outcome = memory.dump(&mut |memory| {
        wire::write(stream, &Told::Memory(Box::new(memory))).map_err(|error| {
            broken = Some(error);
            Failure::new(ErrorCode::Internal, "The connection ended.")
        })
    });
    broken.map_or(Ok(outcome), Err)
}
