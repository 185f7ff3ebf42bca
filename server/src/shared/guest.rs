//! The side of a process that reaches the store through its owner.
//!
//! Owns the connections to one owner: one request at a time on each, as many as there are requests at
//! once. When the owner is gone, so is the guest; finding the next is the parent module's work.

use std::{
    io::{self, Read},
    net::Shutdown,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use warm_engine::{
    Prover, Seat,
    contract::{Limits, Memory as Stored, OperationId},
};

use super::{
    endpoint::Endpoint,
    handshake::{self, OwnerIs, Refused},
    local_socket::Stream,
    wire::{self, LONGEST},
};
use crate::memory::{Expected, Failure, Reply, Request, is_prompt};

/// After so long without an answer the owner is asked whether it still lives.
const STALL: Duration = Duration::from_secs(5);

/// A question to the owner.
#[derive(Serialize)]
pub enum Ask<'a> {
    /// Answered by one [`Told::Outcome`].
    Request { operation: Option<OperationId>, request: &'a Request },
    /// Answered by a [`Told::Memory`] for each, and [`Told::Dumped`] at the end.
    Dump,
}

/// The same, as the owner reads it.
#[derive(Deserialize)]
pub enum Asked {
    Request { operation: Option<OperationId>, request: Request },
    Dump,
}

/// An answer, or a part of one.
#[derive(Serialize, Deserialize)]
pub enum Told {
    Outcome {
        outcome: Result<Reply, Failure>,
        /// Whether the owner's index is filled.
        recall_ready: bool,
    },
    Memory(Box<Stored>),
    Dumped(Result<u64, Failure>),
}

/// Why a request got no answer.
#[derive(Debug)]
pub enum Lost {
    /// The owner is gone; whether it served the request is not known.
    Gone,
    /// The owner is there and does not answer.
    Silent { process: u32 },
}

/// A guest of one owner.
pub struct Guest {
    socket: PathBuf,
    prover: Prover,
    limits: Limits,
    owner: OwnerIs,
    idle: Mutex<Vec<Stream>>,
    /// Ends when the owner does. Kept to be ended with the guest.
    watch: Stream,
    watched: AtomicBool,
    recall_ready: AtomicBool,
    /// Whether the last write was answered promptly.
    writes_are_prompt: AtomicBool,
}

/// A connection on which nothing is said: its end is the owner's.
pub struct Watch(Stream);

impl Watch {
    /// Returns when the owner, or the guest, is gone.
    pub fn wait_for_end(mut self) {
        while matches!(self.0.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::Interrupted) {}
    }
}

impl Guest {
    /// Joins the owner of a seat.
    pub fn join(seat: &Seat, prover: Prover, limits: &Limits) -> Result<Self, Refused> {
        let socket = Endpoint::find(seat.dir()).ok_or(Refused::NoEndpoint)?;
        let mut watch = Stream::connect(&socket)?;
        let owner = handshake::join(&mut watch, &prover, limits)?;
        watch.set_read_timeout(None)?;
        Ok(Self {
            socket,
            prover,
            limits: limits.clone(),
            owner,
            idle: Mutex::default(),
            watch,
            watched: AtomicBool::new(false),
            recall_ready: AtomicBool::new(false),
            writes_are_prompt: AtomicBool::new(true),
        })
    }

    /// The connection to watch, the first time.
    pub fn take_watch(&self) -> Option<Watch> {
        if self.watched.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.watch.try_clone().ok().map(Watch)
    }

    /// Asks the owner.
    pub fn call(
        &self,
        operation: Option<OperationId>,
        request: &Request,
        waits: &mut dyn FnMut(),
    ) -> Result<Result<Reply, Failure>, Lost> {
        let started = Instant::now();
        if matches!(request, Request::Recall(_)) && !self.recall_ready.load(Ordering::Relaxed) {
            waits();
        }
        let mut stream = self.ask(&Ask::Request { operation, request }).map_err(|error| self.lost(&error))?;
        let Told::Outcome { outcome, recall_ready } =
            self.told(&mut stream).map_err(|error| self.lost(&error))?
        else {
            return Err(Lost::Gone);
        };
        self.idle().push(stream);
        self.recall_ready.store(recall_ready, Ordering::Relaxed);
        if request.is_write() {
            self.writes_are_prompt.store(is_prompt(started.elapsed()), Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Asks the owner for every memory of one moment.
    pub fn dump(
        &self,
        each: &mut dyn FnMut(Stored) -> Result<(), Failure>,
    ) -> Result<Result<u64, Failure>, Lost> {
        let mut stream = self.ask(&Ask::Dump).map_err(|error| self.lost(&error))?;
        loop {
            match self.told(&mut stream).map_err(|error| self.lost(&error))? {
                Told::Memory(memory) => {
                    if let Err(stop) = each(*memory) {
                        // The rest is not read, so the connection is of no more use.
                        return Ok(Err(stop));
                    }
                }
                Told::Dumped(outcome) => {
                    self.idle().push(stream);
                    return Ok(outcome);
                }
                Told::Outcome { .. } => return Err(Lost::Gone),
            }
        }
    }

    /// Sends a question, and returns where its answer comes.
    fn ask(&self, ask: &Ask<'_>) -> io::Result<Stream> {
        let idle = self.idle().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => self.connect()?,
        };
        wire::write(&mut stream, ask)?;
        Ok(stream)
    }

    fn told(&self, stream: &mut Stream) -> io::Result<Told> {
        // A slow answer is waited for as long as the owner meets others.
        let stalled = || match self.connect() {
            Ok(_) => Ok(()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        wire::read(stream, LONGEST, stalled)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn connect(&self) -> io::Result<Stream> {
        let mut stream = Stream::connect(&self.socket)?;
        handshake::join(&mut stream, &self.prover, &self.limits).map_err(|refused| match refused {
            Refused::Io(error) => error,
            other => io::Error::other(other.to_string()),
        })?;
        stream.set_read_timeout(Some(STALL))?;
        stream.set_write_timeout(Some(STALL))?;
        Ok(stream)
    }

    fn lost(&self, error: &io::Error) -> Lost {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                Lost::Silent { process: self.owner.process }
            }
            _ => Lost::Gone,
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Stream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How soon the owner can be expected to answer.
    pub fn expect(&self, request: &Request) -> Expected {
        let ready = self.recall_ready.load(Ordering::Relaxed);
        match request.expect(ready, self.writes_are_prompt.load(Ordering::Relaxed)) {
            // The next owner may have to fill its index first.
            Expected::Soon if matches!(request, Request::Recall(_)) => Expected::Later,
            expected => expected,
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.watch.shutdown(Shutdown::Both);
    }
}
