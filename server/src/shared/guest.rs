//! The side of a process that reaches the store through its owner.
//!
//! Owns the connections to one owner: one request at a time on each, a bounded number at once. When the
//! owner is gone, so is the guest; finding the next is the parent module's work.

use std::{
    io::{self, ErrorKind, Read},
    net::Shutdown,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use warm_engine::{
    Prover, Seat,
    contract::{Copying, Limits, Memory as Stored, OperationId},
};

use super::{
    endpoint::{Endpoint, seat_place},
    handshake::{self, Place, Refused},
    local_socket::Stream,
    messages::{Ask, Told},
    wire::Conversation,
};
use crate::memory::{Caller, Expected, Failure, Reply, Request};

/// After so long without an answer the owner is asked whether it still lives.
const STALL: Duration = Duration::from_secs(5);
/// How often an owner that can't be asked is waited for all the same: it may be about to end.
const STALLS: u32 = 6;
/// Most requests to the owner at once; one more waits for one of them.
const MOST: usize = 32;
/// Most connections that are kept for later.
const KEPT: usize = 4;

/// Why a request got no answer.
#[derive(Debug)]
pub enum Lost {
    /// The owner is gone; whether it served the request is not known.
    Gone,
    /// The owner is there and does not answer.
    Silent { process: u32 },
    /// The owner answered, and it could not be understood.
    Garbled,
}

/// A guest of one owner.
pub struct Guest {
    socket: PathBuf,
    place: Place,
    prover: Prover,
    limits: Limits,
    /// The owner's number.
    process: u32,
    connections: Mutex<Connections>,
    freed: Condvar,
    /// Ends when the owner does. Kept to be ended with the guest.
    watch: Arc<Stream>,
    watched: AtomicBool,
    recall_ready: AtomicBool,
}

#[derive(Default)]
struct Connections {
    idle: Vec<Conversation>,
    in_use: usize,
}

/// A connection that is in use; no longer so when dropped.
struct InUse<'a> {
    guest: &'a Guest,
    conversation: Option<Conversation>,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut connections = self.guest.connections.lock();
        connections.in_use -= 1;
        if connections.idle.len() < KEPT {
            connections.idle.extend(self.conversation.take());
        }
        self.guest.freed.notify_one();
    }
}

/// A connection on which nothing is said: its end is the owner's.
pub struct Watch(Arc<Stream>);

impl Watch {
    /// Returns when the owner, or the guest, is gone.
    pub fn wait_for_end(self) {
        while matches!((&*self.0).read(&mut [0]), Err(error) if error.kind() == ErrorKind::Interrupted) {}
    }
}

impl Guest {
    /// Joins the owner of a seat; waits while that one opens the store.
    pub fn join(seat: &Seat, prover: Prover, limits: &Limits) -> Result<Self, Refused> {
        let place = seat_place(seat.dir()).ok_or(Refused::NoEndpoint)?;
        let mut refused = Refused::NoEndpoint;
        for socket in Endpoint::find(seat.dir(), place) {
            let stream = Stream::connect(&socket).map_err(Refused::from);
            match stream.and_then(|stream| handshake::join(stream, &prover, place, limits)) {
                Ok((watch, process)) => {
                    return Self::of(socket, place, prover, limits, watch.stream, process)
                        .map_err(Refused::from);
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn of(
        socket: PathBuf,
        place: Place,
        prover: Prover,
        limits: &Limits,
        watch: Arc<Stream>,
        process: u32,
    ) -> io::Result<Self> {
        watch.set_read_timeout(None)?;
        Ok(Self {
            socket,
            place,
            prover,
            limits: limits.clone(),
            process,
            connections: Mutex::default(),
            freed: Condvar::new(),
            watch,
            watched: AtomicBool::new(false),
            recall_ready: AtomicBool::new(false),
        })
    }

    /// The connection to watch, the first time.
    pub fn take_watch(&self) -> Option<Watch> {
        if self.watched.swap(true, Ordering::Relaxed) {
            return None;
        }
        Some(Watch(Arc::clone(&self.watch)))
    }

    /// Asks the owner.
    pub fn call(
        &self,
        operation: Option<OperationId>,
        request: &Request,
        caller: &mut Caller<'_>,
    ) -> Result<Result<Reply, Failure>, Lost> {
        if matches!(request, Request::Recall(_)) && !self.recall_ready.load(Ordering::Relaxed) {
            (caller.waits)();
        }
        let mut asked = self.ask(&Ask::Request { operation, request, watched: self.takes_long(request) })?;
        loop {
            match self.told(&mut asked)? {
                (Told::Outcome { outcome, recall_ready }, conversation) => {
                    asked.conversation = Some(conversation);
                    self.recall_ready.store(recall_ready, Ordering::Relaxed);
                    return Ok(outcome);
                }
                (Told::Progress { done, total }, conversation) => {
                    if caller.progress.is_given_up() && !request.is_write() {
                        // The owner finds the connection gone, and ends too.
                        return Ok(Err(Failure::given_up()));
                    }
                    caller.progress.hear(done, total);
                    asked.conversation = Some(conversation);
                }
                _ => return Err(Lost::Garbled),
            }
        }
    }

    /// Whether it is worth hearing how far the owner is with it.
    fn takes_long(&self, request: &Request) -> bool {
        match request {
            Request::Recall(_) => !self.recall_ready.load(Ordering::Relaxed),
            Request::Export(_) | Request::Forget(_) => true,
            _ => false,
        }
    }

    /// Asks the owner for every memory of one moment.
    pub fn dump(
        &self,
        copying: &Copying,
        each: &mut dyn FnMut(Stored) -> Result<(), Failure>,
    ) -> Result<Result<u64, Failure>, Lost> {
        let mut asked = self.ask(&Ask::Dump(copying))?;
        loop {
            match self.told(&mut asked)? {
                (Told::Memory(memory), conversation) => {
                    if let Err(stop) = each(*memory) {
                        // The rest is not read, so the connection is of no more use.
                        return Ok(Err(stop));
                    }
                    asked.conversation = Some(conversation);
                }
                (Told::Dumped(outcome), conversation) => {
                    asked.conversation = Some(conversation);
                    return Ok(outcome);
                }
                (Told::Outcome { .. } | Told::Progress { .. }, _) => return Err(Lost::Garbled),
            }
        }
    }

    /// Sends a question, and returns where its answer comes.
    fn ask(&self, ask: &Ask<'_>) -> Result<InUse<'_>, Lost> {
        let idle = {
            let mut connections = self.connections.lock();
            while connections.in_use >= MOST {
                self.freed.wait(&mut connections);
            }
            connections.in_use += 1;
            connections.idle.pop()
        };
        let mut asked = InUse { guest: self, conversation: None };
        let mut conversation = match idle {
            Some(conversation) => conversation,
            None => self.connect().map_err(|error| self.lost(&error))?,
        };
        conversation.write(ask).map_err(|error| self.lost(&error))?;
        asked.conversation = Some(conversation);
        Ok(asked)
    }

    /// The next part of an answer. The connection comes with it, and is given up when there is none.
    fn told(&self, asked: &mut InUse<'_>) -> Result<(Told, Conversation), Lost> {
        let mut conversation = asked.conversation.take().ok_or(Lost::Gone)?;
        let mut stalls = 0;
        // A slow answer is waited for as long as the owner meets others.
        let stalled = || match self.connect() {
            Ok(_) => Ok(()),
            Err(error) if is_silence(&error) => Err(error),
            // It may be ending, which its answer, or the end of the connection, will tell.
            Err(_) => {
                stalls += 1;
                if stalls < STALLS { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
            }
        };
        match conversation.read(stalled) {
            Ok(Some(told)) => Ok((told, conversation)),
            Ok(None) => Err(Lost::Gone),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn connect(&self) -> io::Result<Conversation> {
        let stream = Stream::connect(&self.socket)?;
        let joined =
            handshake::join(stream, &self.prover, self.place, &self.limits).map_err(
                |refused| match refused {
                    Refused::Io(error) => error,
                    other => io::Error::other(other.to_string()),
                },
            );
        let (conversation, _) = joined?;
        conversation.stream.set_read_timeout(Some(STALL))?;
        conversation.stream.set_write_timeout(Some(STALL))?;
        Ok(conversation)
    }

    fn lost(&self, error: &io::Error) -> Lost {
        match error.kind() {
            _ if is_silence(error) => Lost::Silent { process: self.process },
            ErrorKind::InvalidData => Lost::Garbled,
            _ => Lost::Gone,
        }
    }

    /// How soon the owner can be expected to answer. It may stop, or end, at any time, and what waits for the
    /// next must not keep a session from hearing its client.
    pub fn expect(&self, request: &Request) -> Expected {
        match request.expect(self.recall_ready.load(Ordering::Relaxed), true) {
            Expected::OnceIndexed => Expected::OnceIndexed,
            Expected::Soon | Expected::Later => Expected::Later,
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.watch.shutdown(Shutdown::Both);
    }
}
