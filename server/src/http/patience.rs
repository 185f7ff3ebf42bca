//! A connection whose client must read what it is answered.
//!
//! hyper bounds how long a client may take to send its headers, and waits for ever for one that does not read. Such
//! clients would keep the places of connections, and what they were answered in memory, for as long as they like. Owns
//! how long nothing of an answer may be taken before the connection fails. A stream on which there is nothing to send
//! waits as long as its client does.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// See the module.
pub struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Since nothing was taken.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waits: None }
    }

    /// What a write came to; an error if the client has taken nothing for too long.
    fn unless_late<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_late(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.unless_late(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_does_not_read_is_left() {
        let (mut client, server) = duplex(16);
        let mut server = Patient::new(server, SOON);
        let left = server.write_all(&[7; 64]).await.map_err(|error| error.kind());
        assert_eq!(left, Err(io::ErrorKind::TimedOut));
        drop(server);
        let mut taken = Vec::new();
        client.read_to_end(&mut taken).await.expect("it was left");
        assert_eq!(taken, [7; 16]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_reads_a_little_at_a_time_gets_all() {
        let (mut client, server) = duplex(16);
        let mut server = Patient::new(server, 20 * SOON);
        let (sent, taken) = tokio::join!(server.write_all(&[7; 160]), async {
            let mut taken = 0;
            // All together takes longer than the patience with one of them.
            while taken < 160 {
                sleep(3 * SOON).await;
                taken += client.read(&mut [0; 16]).await.expect("there is more");
            }
            taken
        });
        assert!(sent.is_ok() && taken == 160);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn with_nothing_to_send_it_waits_for_its_client() {
        let (mut client, server) = duplex(16);
        let mut server = Patient::new(server, SOON);
        let asked = async {
            sleep(4 * SOON).await;
            client.write_all(b"late").await
        };
        let mut heard = [0; 4];
        let (asked, heard_all) = tokio::join!(asked, server.read_exact(&mut heard));
        assert!(asked.is_ok() && heard_all.is_ok());
        assert!(server.write_all(b"answer").await.is_ok());
    }
}
