//! A connection that is closed when its client no longer reads.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// Writes fail if the client accepts nothing for `patience`.
pub(super) struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// Runs while a write waits.
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl Patient {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        Patient { stream, patience, timer: Box::pin(sleep(patience)), is_waiting: false }
    }

    /// `TimedOut` instead of `Pending` if the client has read nothing for too long.
    fn judge<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let end = Instant::now() + self.patience;
            self.timer.as_mut().reset(end);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // a socket has no buffer of its own to flush
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    /// 64 MiB to a client that reads a piece after each `pause`, for ever or `pieces` times.
    async fn write(pause: Duration, pieces: usize) -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut server = Patient::new(listener.accept().await.unwrap().0, PATIENCE);
        let reading = tokio::spawn(async move {
            let mut piece = vec![0; 8 << 20];
            for _ in 0..pieces {
                tokio::time::sleep(pause).await;
                if client.read_exact(&mut piece).await.is_err() {
                    break;
                }
            }
            client
        });
        let written = server.write_all(&vec![0; 64 << 20]).await;
        drop(server);
        drop(reading.await.unwrap());
        written
    }

    #[test]
    fn a_client_may_be_slow_but_has_to_read() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert!(write(PATIENCE / 20, 8).await.is_ok());
            assert_eq!(write(PATIENCE / 20, 2).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
