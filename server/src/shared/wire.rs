//! Messages between the processes of one store: how they are framed and sealed, and how they are read
//! from a stream that may stall or end.
//!
//! ```text
//! message = length of the body in bytes (u32, little-endian) | body
//! ```
//!
//! A body is JSON; once two processes have met, sealed for the two of them alone.

use std::{
    io::{self, ErrorKind, Read, Write},
    sync::Arc,
    time::Instant,
};

use serde::{Serialize, de::DeserializeOwned};
use warm_engine::{Opener, Sealer};
use zeroize::Zeroizing;

use super::local_socket::Stream;

/// Longest message: far more than the largest reply.
pub const LONGEST: usize = 1 << 30;
/// Longest message of a handshake.
pub const LONGEST_GREETING: usize = 4 << 10;

/// What is read at once, so that a false length costs no memory.
const PIECE: usize = 64 << 10;

/// Two processes that have met.
pub struct Conversation {
    pub stream: Arc<Stream>,
    pub sealer: Sealer,
    pub opener: Opener,
    /// When what is being said must have been heard whole; never, if `None`.
    pub until: Option<Instant>,
}

impl Conversation {
    /// Says one message.
    pub fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        let body = Zeroizing::new(serde_json::to_vec(message)?);
        let sealed = self.sealer.seal(&body).ok_or_else(|| invalid("the message is too long"))?;
        frame(&mut &*self.stream, &sealed)
    }

    /// Hears one message; `None` if the other ended before it began. As [`read`].
    pub fn read<T: DeserializeOwned>(
        &mut self,
        stalled: impl FnMut() -> io::Result<()>,
    ) -> io::Result<Option<T>> {
        let longest = if self.until.is_some() { LONGEST_GREETING } else { LONGEST };
        let Some(sealed) = body(&mut &*self.stream, longest, self.until, stalled)? else { return Ok(None) };
        let opened = self.opener.open(&sealed).map(Zeroizing::new);
        understood(&opened.ok_or_else(|| invalid("the message's seal is broken"))?).map(Some)
    }
}

/// Writes one message in the clear.
pub fn write(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    frame(stream, &serde_json::to_vec(message)?)
}

/// Reads one message in the clear; `None` if the stream ended before it began.
///
/// It must be there whole by `until`. `stalled` is called whenever the stream's time-out passes; its error ends
/// the reading.
pub fn read<T: DeserializeOwned>(
    stream: &mut impl Read,
    longest: usize,
    until: Option<Instant>,
    stalled: impl FnMut() -> io::Result<()>,
) -> io::Result<Option<T>> {
    body(stream, longest, until, stalled)?.map(|body| understood(&body)).transpose()
}

/// The error itself would quote what was sent.
fn understood<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    serde_json::from_slice(body).map_err(|_| invalid("the message can't be understood"))
}

fn frame(stream: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).ok().filter(|length| *length as usize <= LONGEST);
    let length = length.ok_or_else(|| invalid("the message is too long"))?;
    // In one piece: a piece more is a wake-up more.
    stream.write_all(&[&length.to_le_bytes(), body].concat())
}

fn body(
    stream: &mut impl Read,
    longest: usize,
    until: Option<Instant>,
    mut stalled: impl FnMut() -> io::Result<()>,
) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::with_capacity(4);
    if !fill(stream, &mut head, 4, until, &mut stalled)? {
        return if head.is_empty() { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
    }
    let length = head.try_into().map_or(0, u32::from_le_bytes) as usize;
    if length > longest {
        return Err(invalid("the message is too long"));
    }
    let mut body = Vec::new();
    if !fill(stream, &mut body, length, until, &mut stalled)? {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

/// False if the stream ends first.
fn fill(
    stream: &mut impl Read,
    bytes: &mut Vec<u8>,
    length: usize,
    until: Option<Instant>,
    stalled: &mut impl FnMut() -> io::Result<()>,
) -> io::Result<bool> {
    while bytes.len() < length {
        // One that says a byte at a time keeps no connection for longer than one that says nothing.
        if until.is_some_and(|until| Instant::now() > until) {
            return Err(ErrorKind::TimedOut.into());
        }
        let filled = bytes.len();
        bytes.resize(length.min(filled + PIECE), 0);
        let read = stream.read(&mut bytes[filled..]);
        bytes.truncate(filled + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => stalled()?,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> io::Result<()> {
        panic!("nothing stalls")
    }

    #[test]
    fn messages_come_back_one_by_one_and_the_end_is_seen() {
        let mut bytes = Vec::new();
        let long = "x".repeat(3 * PIECE);
        write(&mut bytes, &"first").unwrap();
        write(&mut bytes, &long).unwrap();
        let mut stream = bytes.as_slice();
        assert_eq!(read::<String>(&mut stream, LONGEST, None, never).unwrap().as_deref(), Some("first"));
        assert_eq!(read::<String>(&mut stream, LONGEST, None, never).unwrap(), Some(long));
        assert_eq!(read::<String>(&mut stream, LONGEST, None, never).unwrap(), None);
    }

    #[test]
    fn a_message_that_is_cut_too_long_or_garbage_is_an_error() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"message").unwrap();
        for cut in 1..bytes.len() {
            assert!(read::<String>(&mut &bytes[..cut], LONGEST, None, never).is_err(), "cut at {cut}");
        }
        assert!(read::<String>(&mut &bytes[..], 3, None, never).is_err());
        assert!(read::<String>(&mut &[255; 8][..], LONGEST, None, never).is_err());
        assert!(read::<String>(&mut &[1, 0, 0, 0, b'{'][..], LONGEST, None, never).is_err());
    }

    #[test]
    fn what_comes_a_byte_at_a_time_is_waited_for_until_then_and_no_longer() {
        let mut bytes = Vec::new();
        write(&mut bytes, &7).unwrap();
        let past = Instant::now().checked_sub(std::time::Duration::from_secs(1));
        let late = read::<u8>(&mut bytes.as_slice(), LONGEST, past, never).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_stall_is_waited_out_for_as_long_as_it_is_told_to() {
        struct Slow(Vec<Option<u8>>);
        impl Read for Slow {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                match self.0.pop() {
                    None => Ok(0),
                    Some(None) => Err(ErrorKind::WouldBlock.into()),
                    Some(Some(byte)) => {
                        bytes[0] = byte;
                        Ok(1)
                    }
                }
            }
        }
        let mut bytes = Vec::new();
        write(&mut bytes, &7).unwrap();
        let slow = || Slow(bytes.iter().rev().flat_map(|byte| [Some(*byte), None]).collect());
        assert_eq!(read::<u8>(&mut slow(), LONGEST, None, || Ok(())).unwrap(), Some(7));
        let give_up = || Err(ErrorKind::TimedOut.into());
        assert_eq!(read::<u8>(&mut slow(), LONGEST, None, give_up).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
