//! What a session gives, as a stream of octets that somebody else reads.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Octets and frames that wait to be read: seconds of a picture of high quality.
const MAX_OCTETS: usize = 16 << 20;
const MAX_FRAMES: usize = 1_024;

/// The writing end, which never waits.
#[derive(Debug)]
pub(super) struct Writer {
    frames: mpsc::Sender<Bytes>,
    waiting: Arc<AtomicUsize>,
}

/// The reading end.
#[derive(Debug)]
pub(super) struct Reader {
    frames: mpsc::Receiver<Bytes>,
    waiting: Arc<AtomicUsize>,
    current: Bytes,
}

pub(super) fn channel() -> (Writer, Reader) {
    let (sender, receiver) = mpsc::channel(MAX_FRAMES);
    let waiting = Arc::new(AtomicUsize::new(0));
    let reader = Reader {
        frames: receiver,
        waiting: Arc::clone(&waiting),
        current: Bytes::new(),
    };
    let writer = Writer {
        frames: sender,
        waiting,
    };
    (writer, reader)
}

impl Writer {
    /// Hands over one frame. Returns false if nobody reads, or not fast enough.
    pub(super) fn put(&self, frame: Bytes) -> bool {
        let length = frame.len();
        let waiting = self.waiting.fetch_add(length, Ordering::Relaxed);
        waiting + length <= MAX_OCTETS && self.frames.try_send(frame).is_ok()
    }

    /// Waits until nobody reads any more.
    pub(super) async fn closed(&self) {
        self.frames.closed().await;
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            let Some(next) = ready!(self.frames.poll_recv(cx)) else {
                return Poll::Ready(Ok(()));
            };
            self.waiting.fetch_sub(next.len(), Ordering::Relaxed);
            self.current = next;
        }
        let length = self.current.len().min(buffer.remaining());
        buffer.put_slice(&self.current[..length]);
        self.current.advance(length);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn frames_are_read_as_one_stream() {
        let (writer, mut reader) = channel();
        assert!(writer.put(Bytes::from_static(b"abc")) && writer.put(Bytes::from_static(b"de")));
        drop(writer);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"abcde");
    }

    #[tokio::test]
    async fn what_waits_is_bounded() {
        let (writer, mut reader) = channel();
        let frame = Bytes::from(vec![1; MAX_OCTETS / 2]);
        assert!(writer.put(frame.clone()) && writer.put(frame));
        assert!(!writer.put(Bytes::from_static(b"x")));
        let mut read = vec![0; MAX_OCTETS / 2];
        reader.read_exact(&mut read).await.unwrap();
        assert!(writer.put(Bytes::from_static(b"x")));
        drop(reader);
        writer.closed().await;
        assert!(!writer.put(Bytes::from_static(b"x")));
    }
}
