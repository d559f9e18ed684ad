//! Threads that carry frames, each with an event loop of its own.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Where links are driven: by the runtime that the node was started in, or by as many threads as there are forwarders.
///
/// A link stays on its thread, so that what its socket takes stays in one processor's cache, and no thread wakes another to
/// share out work.
#[derive(Debug)]
pub(super) struct Lanes {
    handles: Vec<Handle>,
    next: AtomicUsize,
    /// Ends the threads.
    _end: Option<DropGuard>,
}

impl Lanes {
    /// So many threads; with one, or where the system gives no more, those of the runtime that this is called in.
    pub(super) fn new(count: usize) -> Self {
        let threads = match count {
            0 | 1 => None,
            _ => threads(count)
                .inspect_err(|error| tracing::warn!(%error, "no threads for links"))
                .ok(),
        };
        let (handles, end) = match threads {
            Some((handles, end)) => (handles, Some(end)),
            None => (vec![Handle::current()], None),
        };
        Self {
            handles,
            next: AtomicUsize::new(0),
            _end: end,
        }
    }

    /// The one for the next link.
    pub(super) fn next(&self) -> &Handle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.handles[number % self.handles.len()]
    }
}

/// Event loops on threads of their own, which run until the guard is dropped.
fn threads(count: usize) -> io::Result<(Vec<Handle>, DropGuard)> {
    let end = CancellationToken::new();
    let guard = end.clone().drop_guard();
    let lane = |number| {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let end = end.clone();
        thread::Builder::new()
            .name(format!("forwarder-{number}"))
            .spawn(move || runtime.block_on(end.cancelled()))?;
        Ok(handle)
    };
    let handles: io::Result<_> = (0..count).map(lane).collect();
    Ok((handles?, guard))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn thread_of(lane: &Handle) -> Option<String> {
        let name = async { thread::current().name().map(str::to_owned) };
        lane.spawn(name).await.ok().flatten()
    }

    #[tokio::test]
    async fn links_take_turns_on_the_threads() {
        let lanes = Lanes::new(2);
        for expected in ["forwarder-0", "forwarder-1", "forwarder-0"] {
            assert_eq!(thread_of(lanes.next()).await.as_deref(), Some(expected));
        }
    }

    #[tokio::test]
    async fn one_forwarder_needs_no_threads() {
        let lanes = Lanes::new(1);
        assert_eq!(lanes.next().id(), Handle::current().id());
    }

    #[tokio::test]
    async fn threads_end_with_the_node() {
        let lanes = Lanes::new(2);
        let lane = lanes.next().clone();
        let waiting = lane.spawn(core::future::pending::<()>());
        drop(lanes);
        assert!(waiting.await.unwrap_err().is_cancelled());
    }
}
