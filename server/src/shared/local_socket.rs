//! Streams between processes of one machine.
//!
//! Unix domain sockets. Where there are none, each of these is an error, and one process at a time serves
//! a store.

#[cfg(unix)]
pub use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};

#[cfg(not(unix))]
pub use absent::{Listener, Stream};

#[cfg(not(unix))]
mod absent {
    use std::{
        convert::Infallible,
        io::{self, ErrorKind, Read, Write},
        net::Shutdown,
        path::Path,
        time::Duration,
    };

    fn none<T>() -> io::Result<T> {
        Err(io::Error::new(ErrorKind::Unsupported, "processes can't share a store on this system"))
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
        pub fn try_clone(&self) -> io::Result<Self> {
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

    impl Read for Stream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            none()
        }
    }

    impl Write for Stream {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            none()
        }
        fn flush(&mut self) -> io::Result<()> {
            none()
        }
    }
}
