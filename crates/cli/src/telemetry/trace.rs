//! Every packet of a node in a file, as the simulator writes them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;

use anyhow::Context;
use namecast_command::report::print_error;
use namecast_net::{Node, TracedFrame};
use namecast_sim::trace::{Event, EventKind, ParquetConfig, ParquetTrace, Sink};
use namecast_units::{Duration, Instant};
use serde_json::{Value, json};

/// Frames that wait for the thread that writes, which is slower than a node for moments only.
const CAPACITY: usize = 8_192;
/// Size after which no more is written, but for the row group that was begun, in octets.
const MAX_SIZE: u64 = 1 << 30;
/// How often the thread looks whether it is to end.
const PAUSE: Duration = Duration::from_millis(50);

/// What became of the frames of a node.
#[derive(Debug, Default)]
pub(super) struct TraceCounts {
    written: AtomicU64,
    /// Those that came when the file was full.
    beyond: AtomicU64,
    /// Those for which the thread was too slow.
    missed: AtomicU64,
}

impl TraceCounts {
    pub(super) fn figures(&self) -> Value {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        json!({
            "written": count(&self.written),
            "beyond": count(&self.beyond),
            "missed": count(&self.missed),
        })
    }
}

/// A file of packets, which is complete when this was dropped.
pub(super) struct TraceFile {
    path: PathBuf,
    file: Option<File>,
    counts: Arc<TraceCounts>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl TraceFile {
    /// Makes the file.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let file = File::create(path).with_context(|| {
            format!("cannot write packets to {shown}: name another file with --trace")
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            counts: Arc::default(),
            stop: Arc::default(),
            thread: None,
        })
    }

    pub(super) fn counts(&self) -> Arc<TraceCounts> {
        Arc::clone(&self.counts)
    }

    /// Begins to write what `node` takes and sends.
    pub(super) fn start(&mut self, node: &Node) {
        let (Some(frames), Some(file)) = (node.trace(CAPACITY), self.file.take()) else {
            return;
        };
        let writing = Writing {
            zero: node.clock().wall_at_zero().as_micros() * 1_000,
            last: 0,
            max_size: MAX_SIZE,
            counts: self.counts(),
        };
        let (stop, node) = (Arc::clone(&self.stop), node.clone());
        let work = move || writing.run(&frames, &stop, file, &|| node.untraced());
        self.thread = Some(std::thread::spawn(work));
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A panic of the thread has been printed.
        if let Ok(Err(error)) = thread.join() {
            let path = self.path.display();
            print_error(format_args!("namecast: {path} is not complete: {error}"));
        }
    }
}

/// What the thread knows.
struct Writing {
    /// When the node's clock was zero, in nanoseconds since 1970.
    zero: u64,
    /// Time of the newest row, which none after it precedes.
    last: u64,
    max_size: u64,
    counts: Arc<TraceCounts>,
}

impl Writing {
    /// Writes frames until it is to stop and none waits.
    fn run(
        mut self,
        frames: &Receiver<TracedFrame>,
        stop: &AtomicBool,
        file: File,
        missed: &dyn Fn() -> u64,
    ) -> io::Result<()> {
        let size = Arc::default();
        let file = Counted {
            file: BufWriter::new(file),
            size: Arc::clone(&size),
        };
        let mut trace = ParquetTrace::new(file, vec![host_name()], ParquetConfig::default());
        loop {
            let received = frames.recv_timeout(PAUSE);
            self.counts.missed.store(missed(), Ordering::Relaxed);
            match received {
                Ok(frame) if size.load(Ordering::Relaxed) < self.max_size => {
                    self.record(&mut trace, &frame);
                    self.counts.written.fetch_add(1, Ordering::Relaxed);
                }
                Ok(_) => {
                    self.counts.beyond.fetch_add(1, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
                Err(_) => break,
            }
        }
        trace.finish()?.file.flush()
    }

    fn record(&mut self, trace: &mut impl Sink, traced: &TracedFrame) {
        // Threads of a node may pass each other.
        self.last = self.last.max(self.zero + traced.at.as_nanos());
        let frame = &traced.frame;
        trace.record(&Event {
            at: Instant::from_nanos(self.last),
            node: 0,
            face: traced.face.number(),
            kind: match traced.is_sent {
                true => EventKind::Sent(frame),
                false => EventKind::Received(frame),
            },
        });
    }
}

/// The machine's name, which tells its rows from those of others.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "node".to_owned(),
        name => name.to_owned(),
    }
}

/// A file that knows how long it is.
struct Counted {
    file: BufWriter<File>,
    size: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.file.write(octets)?;
        self.size.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use bytes::Bytes;
    use namecast_net::FaceId;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    /// Three frames, the last of which a thread recorded late, in a file that takes them, and in one that takes nothing.
    #[test]
    fn frames_are_rows_in_the_order_of_time_until_the_file_is_full() {
        for (max_size, counted) in [(1_000, [3, 0, 7]), (0, [0, 3, 7])] {
            let place = tempfile::NamedTempFile::new().unwrap();
            let (sender, receiver) = sync_channel(3);
            for (nanos, is_sent) in [(1, false), (5, true), (3, false)] {
                let at = Instant::from_nanos(nanos);
                let frame = Bytes::from_static(b"\x05\x00");
                let traced = TracedFrame {
                    at,
                    face: FaceId::CONTENT_STORE,
                    is_sent,
                    frame,
                };
                sender.send(traced).unwrap();
            }
            drop(sender);
            let counts = Arc::<TraceCounts>::default();
            let writing = Writing {
                zero: 1_000,
                last: 0,
                max_size,
                counts: Arc::clone(&counts),
            };
            let file = place.reopen().unwrap();
            writing
                .run(&receiver, &AtomicBool::new(false), file, &|| 7)
                .unwrap();
            let figures = counts.figures();
            let seen = ["written", "beyond", "missed"].map(|it| figures[it].as_u64().unwrap());
            assert_eq!(seen, counted);
            let reader = SerializedFileReader::new(place.reopen().unwrap()).unwrap();
            let rows: Vec<_> = reader
                .get_row_iter(None)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            let seen: Vec<_> = rows
                .iter()
                .map(|row| {
                    (
                        row.get_ulong(0).unwrap(),
                        row.get_string(3).unwrap().as_str(),
                    )
                })
                .collect();
            let expected = [(1_001, "received"), (1_005, "sent"), (1_005, "received")];
            assert_eq!(seen, &expected[..counted[0] as usize]);
        }
    }
}
