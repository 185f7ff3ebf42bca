//! Streams between processes of one machine.
//!
//! Unix domain sockets. Where there are none, each of these is an error, and one process at a time serves
//! a store.

#[cfg(not(unix))]
pub use absent::{Listener, Stream, pair, wait};
#[cfg(unix)]
pub use unix::{Listener, Stream, pair, wait};

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is someone to accept.
    Guest,
    /// The other end of the stream to be woken by is gone.
    Woken,
    TimedOut,
}

#[cfg(unix)]
mod unix {
    use std::{io, time::Duration};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::Waited;

    pub use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};

    /// Two ends of one stream.
    pub fn pair() -> io::Result<(Stream, Stream)> {
        Stream::pair()
    }

    /// Waits for someone to accept, for the other end of `woken` to be dropped, or for so long.
    pub fn wait(listener: Option<&Listener>, woken: &Stream, at_most: Duration) -> Waited {
        let mut watched = vec![PollFd::new(woken, PollFlags::IN)];
        watched.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let at_most = Timespec::try_from(at_most).ok();
        // A signal that interrupts it is as good as no one.
        let ready = poll(&mut watched, at_most.as_ref()).unwrap_or_default();
        match watched.as_slice() {
            [woken, ..] if !woken.revents().is_empty() => Waited::Woken,
            [_, listener] if ready > 0 && !listener.revents().is_empty() => Waited::Guest,
            _ => Waited::TimedOut,
        }
    }
}

#[cfg(not(unix))]
mod absent {
    use std::{
        convert::Infallible,
        io::{self, ErrorKind, Read, Write},
        net::Shutdown,
        path::Path,
        time::Duration,
    };

    use super::Waited;

    fn none<T>() -> io::Result<T> {
        Err(io::Error::new(ErrorKind::Unsupported, "processes can't share a store on this system"))
    }

    pub fn pair() -> io::Result<(Stream, Stream)> {
        none()
    }

    pub fn wait(_: Option<&Listener>, _: &Stream, _: Duration) -> Waited {
        Waited::Woken
    }

    pub struct Listener(Infallible);
    pub struct Stream(Infallible);

    impl Listener {
        pub fn bind(_: impl AsRef<Path>) -> io::Result<Self> {
            none()
        }
        pub fn accept(&self) -> io::Result<(Stream, ())> {
            none()
        }
    }

    impl Stream {
        pub fn connect(_: impl AsRef<Path>) -> io::Result<Self> {
            none()
        }
        pub fn shutdown(&self, _: Shutdown) -> io::Result<()> {
            none()
        }
        pub fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            none()
        }
        pub fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            none()
        }
    }

    impl Read for &Stream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            none()
        }
    }

    impl Write for &Stream {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            none()
        }
        fn flush(&mut self) -> io::Result<()> {
            none()
        }
    }
}
