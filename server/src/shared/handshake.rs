//! How two processes meet: each proves that it holds the store secret before a word of data is said.
//!
//! ```text
//! guest -> owner   protocol, nonce
//! owner -> guest   protocol, version, process, nonce, proof of the owner
//! guest -> owner   proof of the guest, the guest's limits
//! owner -> guest   wait (any number of times, while the store is being opened), then ready
//! ```
//!
//! A proof is an HMAC over the protocol, both nonces and the [`Place`] of the store under a key that only the store secret gives, so
//! that a process without the key neither learns nor serves anything, and no proof is good twice. From the
//! third message on everything is sealed under keys of this meeting, so that one who passes the proofs on learns
//! nothing either. Processes of different protocols part at the second message, each knowing the other's version.

use std::{
    io::{self, ErrorKind},
    process,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use warm_engine::{Prover, contract::Limits};

use super::{
    local_socket::Stream,
    random_id,
    wire::{self, Conversation, LONGEST_GREETING},
};

/// Goes up with every change of what is said on the socket.
pub const PROTOCOL: u32 = 4;
/// One that says nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the owner says that it is still opening the store.
pub const STILL: Duration = Duration::from_millis(500);
/// Longest version that is shown.
const LONGEST_VERSION: usize = 32;

type Nonce = [u8; 16];

#[derive(Serialize, Deserialize)]
struct Hello {
    protocol: u32,
    nonce: Nonce,
}

#[derive(Serialize, Deserialize)]
struct Welcome {
    protocol: u32,
    version: String,
    process: u32,
    nonce: Nonce,
    /// Empty to a guest of another protocol.
    proof: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    proof: Vec<u8>,
    limits: Limits,
}

#[derive(Serialize, Deserialize)]
enum Entry {
    Wait,
    Ready,
}

/// Which store is meant, of several that one secret opens: a copy of a data directory has the same secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub [u64; 2]);

/// Why two processes did not meet.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("it speaks another version of the protocol")]
    OtherProtocol { process: u32, version: String },
    #[error("it does not hold this store's key, or has another store open")]
    NoProof,
    #[error("it says on no socket where it is")]
    NoEndpoint,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The guest's side; returns the owner's process number too.
pub fn join(
    stream: Stream,
    prover: &Prover,
    place: Place,
    limits: &Limits,
) -> Result<(Conversation, u32), Refused> {
    let until = patiently(&stream)?;
    let nonce = random_id();
    wire::write(&mut &stream, &Hello { protocol: PROTOCOL, nonce })?;
    let welcome: Welcome = heard(wire::read(&mut &stream, LONGEST_GREETING, until, silent))?;
    let process = welcome.process;
    if welcome.protocol != PROTOCOL {
        let printable = welcome.version.chars().filter(|c| !c.is_control());
        return Err(Refused::OtherProtocol { process, version: printable.take(LONGEST_VERSION).collect() });
    }
    let said = said(&nonce, &welcome.nonce, place);
    if !prover.check("owner", &said, &welcome.proof) {
        return Err(Refused::NoProof);
    }
    let (sealer, opener) = prover.session("guest", "owner", &said);
    // How long it is to wait is the owner's to say, as long as it goes on saying so.
    let mut met = Conversation { stream: Arc::new(stream), sealer, opener, until: None };
    met.write(&Answer { proof: prover.prove("guest", &said).to_vec(), limits: limits.clone() })?;
    while let Entry::Wait = heard(met.read(silent))? {}
    Ok((met, process))
}

/// The owner's side; returns the guest's limits. The guest is kept waiting until it is told to [`enter`].
pub fn admit(stream: Arc<Stream>, prover: &Prover, place: Place) -> Result<(Conversation, Limits), Refused> {
    let until = patiently(&stream)?;
    let hello: Hello = heard(wire::read(&mut &*stream, LONGEST_GREETING, until, silent))?;
    let nonce = random_id();
    let said = said(&hello.nonce, &nonce, place);
    let ours = hello.protocol == PROTOCOL;
    let proof = if ours { prover.prove("owner", &said).to_vec() } else { Vec::new() };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    wire::write(
        &mut &*stream,
        &Welcome { protocol: PROTOCOL, version, process: process::id(), nonce, proof },
    )?;
    if !ours {
        let version = format!("protocol {}", hello.protocol);
        return Err(Refused::OtherProtocol { process: process::id(), version });
    }
    let (sealer, opener) = prover.session("owner", "guest", &said);
    let mut met = Conversation { stream, sealer, opener, until };
    let answer: Answer = heard(met.read(silent))?;
    met.until = None;
    if prover.check("guest", &said, &answer.proof) { Ok((met, answer.limits)) } else { Err(Refused::NoProof) }
}

/// Lets a guest in, or keeps it waiting a little longer.
pub fn enter(met: &mut Conversation, open: bool) -> io::Result<()> {
    met.write(if open { &Entry::Ready } else { &Entry::Wait })
}

/// By when the other must have proved itself.
fn patiently(stream: &Stream) -> io::Result<Option<Instant>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(Some(Instant::now() + PATIENCE))
}

fn silent() -> io::Result<()> {
    Err(io::Error::new(ErrorKind::TimedOut, "it does not answer"))
}

fn heard<T: DeserializeOwned>(message: io::Result<Option<T>>) -> io::Result<T> {
    message?.ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "it hung up"))
}

fn said(guest: &Nonce, owner: &Nonce, place: Place) -> Vec<u8> {
    let [device, file] = place.0.map(u64::to_le_bytes);
    [PROTOCOL.to_le_bytes().as_slice(), guest, owner, &device, &file].concat()
}
