//! How two processes meet: each proves that it holds the store secret before a word of data is said.
//!
//! ```text
//! guest -> owner   protocol, nonce
//! owner -> guest   protocol, version, process, nonce, proof of the owner
//! guest -> owner   proof of the guest, the guest's limits
//! owner -> guest   ready
//! ```
//!
//! A proof is an HMAC over the protocol and both nonces under a key that only the store secret gives, so
//! that a process without the key neither learns nor serves anything, and no proof is good twice. Processes
//! of different protocols part at the second message, each knowing the other's version.

use std::{io, process, time::Duration};

use serde::{Deserialize, Serialize};
use warm_engine::{Prover, contract::Limits};

use super::{
    local_socket::Stream,
    random_id,
    wire::{self, LONGEST_GREETING},
};

/// Goes up with every change of what is said on the socket.
pub const PROTOCOL: u32 = 1;
/// One that says nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(2);

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
struct Ready {}

/// Why two processes did not meet.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("it speaks another version of the protocol")]
    OtherProtocol { process: u32, version: String },
    #[error("it does not hold this store's key")]
    NoProof,
    #[error("it says on no socket where it is")]
    NoEndpoint,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Who the owner is.
#[derive(Clone, Debug)]
pub struct OwnerIs {
    pub process: u32,
}

/// The guest's side.
pub fn join(stream: &mut Stream, prover: &Prover, limits: &Limits) -> Result<OwnerIs, Refused> {
    patiently(stream)?;
    let nonce = random_id();
    wire::write(stream, &Hello { protocol: PROTOCOL, nonce })?;
    let welcome: Welcome = next(stream)?;
    if welcome.protocol != PROTOCOL {
        return Err(Refused::OtherProtocol { process: welcome.process, version: welcome.version });
    }
    let said = said(&nonce, &welcome.nonce);
    if !prover.check("owner", &said, &welcome.proof) {
        return Err(Refused::NoProof);
    }
    let proof = prover.prove("guest", &said).to_vec();
    wire::write(stream, &Answer { proof, limits: limits.clone() })?;
    let Ready {} = next(stream)?;
    Ok(OwnerIs { process: welcome.process })
}

/// The owner's side; returns the guest's limits.
pub fn admit(stream: &mut Stream, prover: &Prover) -> Result<Limits, Refused> {
    patiently(stream)?;
    let hello: Hello = next(stream)?;
    let nonce = random_id();
    let said = said(&hello.nonce, &nonce);
    let ours = hello.protocol == PROTOCOL;
    let proof = if ours { prover.prove("owner", &said).to_vec() } else { Vec::new() };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    wire::write(stream, &Welcome { protocol: PROTOCOL, version, process: process::id(), nonce, proof })?;
    if !ours {
        return Err(Refused::OtherProtocol { process: 0, version: format!("protocol {}", hello.protocol) });
    }
    let answer: Answer = next(stream)?;
    if !prover.check("guest", &said, &answer.proof) {
        return Err(Refused::NoProof);
    }
    wire::write(stream, &Ready {})?;
    Ok(answer.limits)
}

fn patiently(stream: &Stream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

fn next<T: serde::de::DeserializeOwned>(stream: &mut Stream) -> io::Result<T> {
    let silent = || Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"));
    let message = wire::read(stream, LONGEST_GREETING, silent)?;
    message.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up"))
}

fn said(guest: &Nonce, owner: &Nonce) -> Vec<u8> {
    [PROTOCOL.to_le_bytes().as_slice(), guest, owner].concat()
}
