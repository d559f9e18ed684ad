//! Standard error, written by a thread of its own: a full disk, or a reader that left or sleeps, ends and delays nothing.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that wait to be written; more are lost.
const MAX_WAITING: usize = 4_096;

/// Lines that the system did not take.
static UNWRITTEN: AtomicU64 = AtomicU64::new(0);
static WRITER: OnceLock<NonBlocking> = OnceLock::new();

/// Starts the thread. Dropping the guard writes the lines that wait; after a second they are lost.
pub(crate) fn start() -> WorkerGuard {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING);
    let (writer, guard) = builder.thread_name("log").finish(Counted);
    // The second one of a process, in tests, writes as the first one does.
    let _ = WRITER.set(writer);
    guard
}

/// Returns a writer that never waits; before [`start`], standard error itself.
pub(crate) fn writer() -> Box<dyn Write> {
    match WRITER.get() {
        Some(writer) => Box::new(writer.clone()),
        None => Box::new(io::stderr()),
    }
}

/// Returns the number of lines, of logs and for people, that could not be written.
pub fn lines_lost() -> u64 {
    let waiting = WRITER.get().map(|it| it.error_counter().dropped_lines());
    UNWRITTEN.load(Ordering::Relaxed) + waiting.unwrap_or(0) as u64
}

/// Counts failed writes and reports success.
struct Counted;

impl Write for Counted {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if io::stderr().write_all(octets).is_err() {
            UNWRITTEN.fetch_add(1, Ordering::Relaxed);
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
