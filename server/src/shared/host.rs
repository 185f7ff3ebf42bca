//! The side of the process that owns the store: it serves the others.
//!
//! Owns the socket, a thread that meets guests and a thread for each connection. Guests are met from the
//! moment that this process holds the seat, and wait while it opens the store. Each request is served
//! whole by the engine, as if it came from this process. When the owner is about to end, requests in progress
//! are answered, and those that can't be are left to the next owner.

use std::{
    collections::HashMap,
    io,
    net::Shutdown,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use warm_engine::{
    Engine, Progress, Prover, Seat,
    contract::{Copying, ErrorCode, Limits},
};

use super::{
    endpoint::{Endpoint, seat_place},
    handshake::{self, Place, STILL},
    local_socket::{self, Listener, Stream, Waited},
    messages::{Asked, Told},
    wire::Conversation,
};
use crate::memory::{Failure, LocalMemory, Memory, Reply};

/// How long requests in progress may keep the owner from ending.
const PARTING: Duration = Duration::from_secs(5);
/// Most connections at once; one more is sent away, and tries again.
const MOST: usize = 256;
/// How often it is looked whether socket and note are still there.
const MENDED_EVERY: Duration = Duration::from_secs(5);
/// How often a guest hears how far long work is.
const TOLD_EVERY: Duration = Duration::from_millis(100);
/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves guests until it is dropped.
pub struct Host {
    meeting: Option<JoinHandle<()>>,
    /// Ends the meeting when it is dropped.
    wake: Option<Stream>,
    guests: Arc<Guests>,
}

/// Told that a failed commit shut the store.
pub type WhenShut = Box<dyn Fn() + Send + Sync>;

/// The connections that are open, and what they are served from.
struct Guests {
    prover: Prover,
    place: Place,
    when_shut: WhenShut,
    closing: AtomicBool,
    warned: AtomicBool,
    store: Mutex<Store>,
    opened: Condvar,
    connections: Mutex<Connections>,
    closed: Condvar,
}

/// What guests wait for.
enum Store {
    Opening,
    Open(Engine),
    /// The host closes: what is left of a connection then must not keep the store open.
    Closed,
}

#[derive(Default)]
struct Connections {
    next: u64,
    streams: HashMap<u64, Arc<Stream>>,
}

impl Host {
    /// Meets guests of a seat that this process holds.
    pub fn start(seat: &Seat, prover: Prover, when_shut: WhenShut) -> io::Result<Self> {
        let place = seat_place(seat.dir()).ok_or(io::ErrorKind::NotFound)?;
        let guests = Arc::new(Guests {
            prover,
            place,
            when_shut,
            closing: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            store: Mutex::new(Store::Opening),
            opened: Condvar::new(),
            connections: Mutex::default(),
            closed: Condvar::new(),
        });
        let (wake, woken) = local_socket::pair()?;
        let (dir, of_thread) = (seat.dir().to_owned(), Arc::clone(&guests));
        let (made, was_made) = mpsc::channel();
        let meeting = thread::Builder::new().name("warm-host".into());
        let meeting = meeting.spawn(move || meet(&dir, &of_thread, &woken, &made))?;
        // Who comes next is to find the socket, and not what the last owner left.
        let _ = was_made.recv();
        Ok(Self { meeting: Some(meeting), wake: Some(wake), guests })
    }

    /// Serves them from now on.
    pub fn open(&self, engine: Engine) {
        *self.guests.store.lock() = Store::Open(engine);
        self.guests.opened.notify_all();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let guests = &self.guests;
        guests.closing.store(true, Ordering::SeqCst);
        let store = std::mem::replace(&mut *guests.store.lock(), Store::Closed);
        guests.opened.notify_all();
        if let Store::Open(engine) = store {
            engine.retire();
        }
        drop(self.wake.take());
        if let Some(meeting) = self.meeting.take()
            && meeting.join().is_err()
        {
            tracing::error!("the thread that meets other processes panicked");
        }
        let mut connections = guests.connections.lock();
        // Nothing more is read; what is being answered is answered.
        shut(&connections, Shutdown::Read);
        let until = Instant::now() + PARTING;
        while !connections.streams.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                tracing::warn!("a request of another process took too long; it is left to the next owner");
                shut(&connections, Shutdown::Both);
                break;
            }
            guests.closed.wait_for(&mut connections, left);
        }
    }
}

fn shut(connections: &Connections, how: Shutdown) {
    for stream in connections.streams.values() {
        // One that is gone already needs nothing.
        let _ = stream.shutdown(how);
    }
}

impl Guests {
    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// The store with a guest's limits, once it is open; the guest hears meanwhile that it is to wait. `None`
    /// if it never will be.
    fn store(&self, met: &mut Conversation, limits: Limits) -> io::Result<Option<LocalMemory>> {
        let mut store = self.store.lock();
        loop {
            match &*store {
                Store::Open(engine) => return Ok(Some(LocalMemory::new(engine.with_limits(limits)))),
                Store::Closed => return Ok(None),
                Store::Opening => {}
            }
            if self.opened.wait_for(&mut store, STILL).timed_out() {
                drop(store);
                handshake::enter(met, false)?;
                store = self.store.lock();
            }
        }
    }

    fn turned_away(&self, error: &io::Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "another process could not be met; it tries again");
        }
    }
}

/// Meets guests until it is woken. What others remove is made again; a socket that can't be made is tried for
/// again and again.
fn meet(dir: &Path, guests: &Arc<Guests>, woken: &Stream, made: &mpsc::Sender<()>) {
    let mut endpoint: Option<(Endpoint, Listener)> = None;
    loop {
        let mended = match &mut endpoint {
            Some((endpoint, listener)) => endpoint.mend().map(|new| {
                if let Some(new) = new {
                    *listener = new;
                }
            }),
            None => Endpoint::make(dir, guests.place).map(|made| endpoint = Some(made)),
        };
        if let Err(error) = mended {
            guests.turned_away(&error);
        }
        // Only the first time does anyone wait for it.
        let _ = made.send(());
        let listener = endpoint.as_ref().map(|(_, listener)| listener);
        match local_socket::wait(listener, woken, MENDED_EVERY) {
            Waited::Woken => return,
            Waited::TimedOut => {}
            Waited::Guest => {
                let Some(listener) = listener else { continue };
                match listener.accept().and_then(|(stream, _)| receive(stream, guests)) {
                    Ok(()) => {}
                    Err(error) => {
                        guests.turned_away(&error);
                        thread::sleep(PAUSE);
                    }
                }
            }
        }
    }
}

fn receive(stream: Stream, guests: &Arc<Guests>) -> io::Result<()> {
    let stream = Arc::new(stream);
    let number = {
        let mut connections = guests.connections.lock();
        if connections.streams.len() >= MOST {
            return Err(io::Error::other("there are too many connections"));
        }
        connections.next += 1;
        let number = connections.next;
        connections.streams.insert(number, Arc::clone(&stream));
        number
    };
    let connection = Connection { guests: Arc::clone(guests), number };
    thread::Builder::new().name("warm-guest".into()).spawn(move || {
        // Bound to the thread, so that the connection counts as open until it ends.
        let connection = connection;
        if let Err(error) = serve(stream, &connection.guests) {
            tracing::debug!(%error, "a connection to another process ended");
        }
    })?;
    Ok(())
}

/// One open connection; no longer so when dropped.
struct Connection {
    guests: Arc<Guests>,
    number: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let stream = self.guests.connections.lock().streams.remove(&self.number);
        if let Some(stream) = stream {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.guests.closed.notify_all();
    }
}

fn serve(stream: Arc<Stream>, guests: &Guests) -> io::Result<()> {
    let admitted = handshake::admit(stream, &guests.prover, guests.place);
    let (mut met, limits) = admitted.map_err(|refused| io::Error::other(refused.to_string()))?;
    let Some(memory) = guests.store(&mut met, limits)? else { return Ok(()) };
    handshake::enter(&mut met, true)?;
    // From here on a guest may take its time: a reader who pauses in the middle of an export, say. It holds up
    // nobody but its own thread, and its end ends the connection.
    met.stream.set_read_timeout(None)?;
    met.stream.set_write_timeout(None)?;
    let never = || Ok(());
    while let Some(asked) = met.read(never)? {
        let told = match asked {
            Asked::Request { operation, request, watched } => {
                let progress = Arc::default();
                let work = || {
                    let served =
                        catch_unwind(AssertUnwindSafe(|| memory.call_as(operation, *request, &progress)));
                    served.unwrap_or_else(|_| Err(Failure::fault()))
                };
                let outcome = if watched { watch(&mut met, work, &progress)? } else { work() };
                if outcome.is_err() && memory.engine().is_shut() {
                    (guests.when_shut)();
                } else if outcome.is_err() && guests.is_closing() {
                    // It may have failed for that reason alone: the next owner is asked again.
                    return Ok(());
                }
                Told::Outcome { outcome, recall_ready: memory.engine().recall_is_ready() }
            }
            Asked::Dump(copying) => Told::Dumped(dump(&mut met, &memory, &copying)?),
        };
        met.write(&told)?;
    }
    Ok(())
}

/// Works, and says all the time how far it is. A guest that is gone has given it up.
fn watch(
    met: &mut Conversation,
    work: impl FnOnce() -> Result<Reply, Failure> + Send,
    progress: &Progress,
) -> io::Result<Result<Reply, Failure>> {
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        let working = thread::Builder::new().name("warm-work".into());
        // It hears of the outcome, or is gone.
        working.spawn_scoped(scope, move || drop(done.send(work())))?;
        loop {
            match is_done.recv_timeout(TOLD_EVERY) {
                Ok(outcome) => return Ok(outcome),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(Err(Failure::fault())),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let (done, total) = progress.get().unwrap_or_default();
                    met.write(&Told::Progress { done, total }).inspect_err(|_| progress.give_up())?;
                }
            }
        }
    })
}

/// Sends every memory. The outer error is the connection's.
fn dump(met: &mut Conversation, memory: &LocalMemory, copying: &Copying) -> io::Result<Result<u64, Failure>> {
    let mut broken = None;
    let outcome = memory.dump(copying, &mut |memory| {
        met.write(&Told::Memory(Box::new(memory))).map_err(|error| {
            broken = Some(error);
            Failure::new(ErrorCode::Internal, "The connection ended.")
        })
    });
    broken.map_or(Ok(outcome), Err)
}
