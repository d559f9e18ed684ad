//! Every packet of a node in a file, as the simulator writes them.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;

use anyhow::Context;
use namecast_command::report::print_error;
use namecast_net::{Clock, Node, TracedFrame};
use namecast_sim::trace::{Event, EventKind, ParquetConfig, ParquetTrace, Sink};
use namecast_units::{ByteSize, Duration, Instant};
use serde_json::{Value, json};

/// How often the thread looks whether it is to end.
const PAUSE: Duration = Duration::from_millis(50);

/// Bounds of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceConfig {
    /// Frames that wait for the thread that writes, which is slower than a node for moments only.
    pub(super) max_waiting: usize,
    /// Size after which no more is written, but for the row group that was begun.
    pub(super) max_size: ByteSize,
    /// Frames go into the file at the latest so long after they came, or after a hundredth of the trace's time, so that there are a thousand
    /// row groups a year.
    pub(super) max_delay: Duration,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            max_waiting: 8_192,
            max_size: ByteSize::mebibytes(1_024),
            max_delay: Duration::from_secs(5),
        }
    }
}

/// What became of the frames of a node.
#[derive(Debug, Default)]
pub(super) struct TraceCounts {
    written: AtomicU64,
    /// Those that came when the file was full.
    beyond: AtomicU64,
    /// Those for which the thread was too slow.
    missed: AtomicU64,
    /// Those that the system did not write.
    failed: AtomicU64,
}

impl TraceCounts {
    pub(super) fn figures(&self) -> Value {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        json!({
            "written": count(&self.written),
            "beyond": count(&self.beyond),
            "missed": count(&self.missed),
            "failed": count(&self.failed),
        })
    }
}

/// A file of packets, which is complete when this was dropped.
pub(super) struct TraceFile {
    path: PathBuf,
    file: Option<File>,
    config: TraceConfig,
    counts: Arc<TraceCounts>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TraceFile {
    /// Makes the file.
    pub(super) fn create(path: &Path, config: TraceConfig) -> anyhow::Result<Self> {
        let shown = path.display();
        let file = File::create(path).with_context(|| {
            format!("cannot write packets to {shown}: name another file with --trace")
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            config,
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
        let (Some(trace), Some(file)) = (node.trace(self.config.max_waiting), self.file.take())
        else {
            return;
        };
        let zero = node.clock().wall_at_zero().as_micros() * 1_000;
        let counts = self.counts();
        let mut writing = Writing::new(self.path.clone(), file, zero, self.config, counts);
        let stop = Arc::clone(&self.stop);
        let work = move || writing.run(&trace.frames, &stop, &|| trace.missed());
        self.thread = Some(std::thread::spawn(work));
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// What the thread knows.
struct Writing {
    path: PathBuf,
    file: Growing,
    /// `None` once the file cannot be written.
    trace: Option<ParquetTrace<Vec<u8>>>,
    /// When the node's clock was zero, in nanoseconds since 1970.
    zero: u64,
    /// Time of the newest row, which none after it precedes.
    last: u64,
    /// Rows that are not in the file.
    pending: u64,
    started_at: Instant,
    /// When rows go into the file at the latest.
    due_at: Instant,
    config: TraceConfig,
    counts: Arc<TraceCounts>,
}

impl Writing {
    fn new(
        path: PathBuf,
        file: File,
        zero: u64,
        config: TraceConfig,
        counts: Arc<TraceCounts>,
    ) -> Self {
        let now = Clock::new().now();
        let config_of_rows = ParquetConfig::default();
        Self {
            path,
            file: Growing {
                file,
                groups: 0,
                len: 0,
            },
            trace: Some(ParquetTrace::new(
                Vec::new(),
                vec![host_name()],
                config_of_rows,
            )),
            zero,
            last: 0,
            pending: 0,
            started_at: now,
            due_at: now + config.max_delay,
            config,
            counts,
        }
    }

    /// Writes frames until it is to stop and none waits.
    fn run(&mut self, frames: &Receiver<TracedFrame>, stop: &AtomicBool, missed: &dyn Fn() -> u64) {
        // Without packets it is a file, too.
        self.commit();
        loop {
            let received = frames.recv_timeout(PAUSE);
            self.counts.missed.store(missed(), Ordering::Relaxed);
            match received {
                Ok(frame) => self.take(&frame),
                Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
                Err(_) => break,
            }
            if self.pending > 0 && Clock::new().now() >= self.due_at {
                self.commit();
            }
        }
        self.commit();
    }

    fn take(&mut self, traced: &TracedFrame) {
        let Some(trace) = &mut self.trace else {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if self.file.len >= self.config.max_size.as_bytes() {
            self.counts.beyond.fetch_add(1, Ordering::Relaxed);
            return;
        }
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
        self.pending += 1;
        if trace
            .output_mut()
            .is_none_or(|groups| groups.len() > MAGIC.len())
        {
            self.commit();
        }
    }

    /// Puts all rows into the file, which is whole then: what happens to the process after it is no matter.
    fn commit(&mut self) {
        let now = Clock::new().now();
        let delay = (now.since(self.started_at) / 100).max(self.config.max_delay);
        self.due_at = now + delay;
        let Some(trace) = &mut self.trace else {
            return;
        };
        let footer = trace.footer();
        let groups = trace.output_mut().map(core::mem::take).unwrap_or_default();
        let rows = core::mem::take(&mut self.pending);
        match footer.and_then(|footer| self.file.append(&groups, &footer)) {
            Ok(()) => self.counts.written.fetch_add(rows, Ordering::Relaxed),
            Err(error) => {
                let path = self.path.display();
                print_error(format_args!(
                    "namecast: no more packets are written to {path}, all else goes on: {error}"
                ));
                self.trace = None;
                self.counts.failed.fetch_add(rows, Ordering::Relaxed)
            }
        };
    }
}

/// What a Parquet file begins with: no row group yet.
const MAGIC: &[u8] = b"PAR1";

/// A file of row groups, with a footer behind the last that is overwritten by the next.
struct Growing {
    file: File,
    /// Where the footer begins.
    groups: u64,
    len: u64,
}

impl Growing {
    /// Appends row groups, and the footer behind them, which is longer than the one before.
    ///
    /// # Errors
    /// If they are not written: then the file is as it was, as far as the system permits.
    fn append(&mut self, groups: &[u8], footer: &[u8]) -> io::Result<()> {
        let octets = [groups, footer].concat();
        let overwritten = usize::try_from(self.len - self.groups).map_err(io::Error::other)?;
        let (over, behind) = octets.split_at(overwritten.min(octets.len()));
        // Only what is behind its end needs room that the disk may lack.
        let written = self.write_at(self.len, behind);
        let written = written.and_then(|()| self.write_at(self.groups, over));
        if let Err(error) = written {
            // What no footer is behind is no part of the file; where that stays, nothing helps.
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.groups += groups.len() as u64;
        self.len = self.groups + footer.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, position: u64, octets: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(position))?;
        self.file.write_all(octets)
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use bytes::Bytes;
    use namecast_net::FaceId;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    fn writing(path: &Path, config: TraceConfig) -> Writing {
        let file = File::create(path).unwrap();
        Writing::new(path.to_owned(), file, 1_000, config, Arc::default())
    }

    fn frame(nanos: u64, is_sent: bool) -> TracedFrame {
        TracedFrame {
            at: Instant::from_nanos(nanos),
            face: FaceId::CONTENT_STORE,
            is_sent,
            frame: Bytes::from_static(b"\x05\x00"),
        }
    }

    /// Times and events of the rows.
    fn rows(path: &Path) -> Vec<(u64, String)> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let row = |row: parquet::record::Row| {
            let event = row.get_string(3).unwrap();
            (row.get_ulong(0).unwrap(), event.clone())
        };
        rows.map(row).collect()
    }

    #[track_caller]
    fn assert_counts(writing: &Writing, expected: [u64; 4]) {
        let figures = writing.counts.figures();
        let seen = ["written", "beyond", "missed", "failed"];
        assert_eq!(seen.map(|it| figures[it].as_u64().unwrap()), expected);
    }

    /// Three frames, the last of which a thread recorded late, in a file that takes them, and in one that takes nothing.
    #[test]
    fn frames_are_rows_in_the_order_of_time_until_the_file_is_full() {
        for (max_size, counted) in [(1_000, [3, 0, 7, 0]), (0, [0, 3, 7, 0])] {
            let place = tempfile::NamedTempFile::new().unwrap();
            let (sender, receiver) = sync_channel(3);
            for (nanos, is_sent) in [(1, false), (5, true), (3, false)] {
                sender.send(frame(nanos, is_sent)).unwrap();
            }
            drop(sender);
            let config = TraceConfig {
                max_size: ByteSize::bytes(max_size),
                ..TraceConfig::default()
            };
            let mut writing = writing(place.path(), config);
            writing.run(&receiver, &AtomicBool::new(false), &|| 7);
            assert_counts(&writing, counted);
            let expected = [(1_001, "received"), (1_005, "sent"), (1_005, "received")];
            let expected = expected.map(|(time, event)| (time, event.to_owned()));
            assert_eq!(rows(place.path()), &expected[..counted[0] as usize]);
        }
    }

    /// A process may be killed after any step: the file has what was put into it, and all of it.
    #[test]
    fn the_file_is_whole_whenever_rows_were_put_into_it() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let mut writing = writing(place.path(), TraceConfig::default());
        let mut written = 0;
        for nanos in 1..=200 {
            writing.take(&frame(nanos, false));
            if nanos % 7 == 0 {
                writing.commit();
                written = nanos;
            }
            if written > 0 {
                let times: Vec<_> = rows(place.path()).into_iter().map(|row| row.0).collect();
                assert!(times.into_iter().eq(1_001..=1_000 + written));
            }
        }
        assert_counts(&writing, [written, 0, 0, 0]);
    }

    /// A disk without room: what comes is counted, and nobody has to end.
    #[test]
    fn frames_that_the_system_does_not_write_are_counted() {
        let mut writing = writing(Path::new("/dev/full"), TraceConfig::default());
        writing.take(&frame(1, false));
        writing.commit();
        writing.take(&frame(2, false));
        writing.commit();
        assert_counts(&writing, [0, 0, 0, 2]);
    }
}
