//! Where watched frames go: a file, a pipe, or an ffmpeg that wraps them.
//!
//! A thread of its own writes, so that a slow reader holds nobody up: frames it has no room for are left out, up to the
//! next key frame.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use anyhow::Context;
use namecast_apps::live::watcher::Frame;
use namecast_stream::{Catalogue, Rung, StreamInfo, StreamKind};
use namecast_units::Timestamp;

use crate::ingest::ffmpeg::{Process, words};
use crate::nut::writer;

/// Frames that wait to be written: about three seconds.
const QUEUE: usize = 256;
/// The recording's time starts this long before its first frame, in microseconds, since sound may lie before it.
const HEAD_START: u64 = 500_000;

/// How frames are wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrapping {
    /// Not at all: the video alone.
    Bare,
    /// In NUT.
    Nut,
    /// By an ffmpeg, as the file's name says.
    Ffmpeg,
}

fn wrapping(path: &Path) -> Wrapping {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("h264" | "264") => Wrapping::Bare,
        Some("nut") | None => Wrapping::Nut,
        Some(_) => Wrapping::Ffmpeg,
    }
}

/// Writes watched frames.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    wrapping: Wrapping,
    frames: Option<SyncSender<Frame>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
    has_video: bool,
    has_ended: bool,
    /// Set while frames are left out up to the next key frame.
    waits_for_key: bool,
    /// Frames that were left out since the reader was too slow.
    pub left_out: u64,
}

impl Recorder {
    /// Will write to `path`, `-` for standard output, once it knows what there is.
    pub fn new(path: PathBuf) -> Self {
        let wrapping = wrapping(&path);
        Self {
            path,
            wrapping,
            frames: None,
            thread: None,
            has_video: false,
            has_ended: false,
            waits_for_key: true,
            left_out: 0,
        }
    }

    /// Opens the output for the streams of `catalogue`; does nothing if it is open.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&mut self, catalogue: &Catalogue, audio: bool) -> anyhow::Result<()> {
        if self.thread.is_some() {
            return Ok(());
        }
        let of_kind = |kind| {
            catalogue
                .streams
                .iter()
                .find(move |stream| stream.kind == kind)
        };
        let mut streams: Vec<StreamInfo> =
            of_kind(StreamKind::Video).cloned().into_iter().collect();
        self.has_video = !streams.is_empty();
        if audio && self.wrapping != Wrapping::Bare {
            streams.extend(of_kind(StreamKind::Audio).cloned());
        }
        let output = Output::open(&self.path, self.wrapping)?;
        let (sender, frames) = sync_channel(QUEUE);
        let writer = Writer {
            output,
            wrapping: self.wrapping,
            streams,
            began: None,
        };
        self.frames = Some(sender);
        self.thread = Some(std::thread::spawn(move || writer.run(&frames)));
        Ok(())
    }

    /// Hands over one frame.
    ///
    /// # Errors
    /// If writing has failed, or the reader of the pipe has left.
    pub fn write(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let Some(frames) = &self.frames else {
            return Ok(());
        };
        let is_video = frame.stream == StreamKind::Video;
        if is_video && frame.key {
            self.waits_for_key = false;
        }
        // Sound alone would make a player wait for pictures.
        if self.has_video && self.waits_for_key {
            return Ok(());
        }
        match frames.try_send(frame.clone()) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                self.left_out += 1;
                self.waits_for_key |= is_video;
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => self.finish(),
        }
    }

    /// Whether whoever reads the output is still there.
    pub const fn is_open(&self) -> bool {
        !self.has_ended
    }

    /// Writes what is left, and closes the output.
    ///
    /// # Errors
    /// If writing failed.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        self.frames = None;
        self.has_ended = true;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => anyhow::bail!("the recorder failed"),
            None => Ok(()),
        }
    }
}

/// What frames are written to.
#[derive(Debug)]
enum Output {
    Standard(io::Stdout),
    File(File),
    Ffmpeg {
        process: Process,
        stdin: std::process::ChildStdin,
    },
}

impl Output {
    fn open(path: &Path, wrapping: Wrapping) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard(io::stdout()));
        }
        if wrapping == Wrapping::Ffmpeg {
            let mut arguments: Vec<_> = words("-y -f nut -i pipe:0 -map 0 -c copy").collect();
            arguments.push(path.into());
            let (mut process, _) = Process::start(&arguments, 0)?;
            let stdin = process.stdin();
            return Ok(Self::Ffmpeg { process, stdin });
        }
        let file = File::create(path);
        let file = file.with_context(|| {
            format!(
                "cannot write to {}: name another file with --output",
                path.display()
            )
        })?;
        Ok(Self::File(file))
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        let writer: &mut dyn Write = match self {
            Self::Standard(stdout) => stdout,
            Self::File(file) => file,
            Self::Ffmpeg { stdin, .. } => stdin,
        };
        writer.write_all(octets)?;
        writer.flush()
    }

    fn close(self) -> anyhow::Result<()> {
        if let Self::Ffmpeg { mut process, stdin } = self {
            drop(stdin);
            let (success, said) = process.finish();
            anyhow::ensure!(success, "ffmpeg could not write the recording: {said}");
        }
        Ok(())
    }
}

struct Writer {
    output: Output,
    wrapping: Wrapping,
    streams: Vec<StreamInfo>,
    /// Where the recording's time starts, once it does.
    began: Option<Timestamp>,
}

impl Writer {
    fn run(mut self, frames: &Receiver<Frame>) -> anyhow::Result<()> {
        let result = frames.iter().try_for_each(|frame| self.write(&frame));
        let closed = self.output.close();
        match result {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => closed,
            Err(error) => Err(error).context("cannot write the recording"),
            Ok(()) => closed,
        }
    }

    fn write(&mut self, frame: &Frame) -> io::Result<()> {
        let stream = self
            .streams
            .iter()
            .position(|stream| stream.kind == frame.stream);
        let Some(stream) = stream else {
            return Ok(());
        };
        if self.wrapping == Wrapping::Bare {
            return self.output.write(&frame.payload);
        }
        let mut octets = Vec::with_capacity(frame.payload.len() + 64);
        let began = match self.began {
            Some(began) => began,
            None => {
                let at = frame.captured_at.as_micros().saturating_sub(HEAD_START);
                let streams = self.rungs(&frame.rung);
                let streams = streams.into_iter();
                let streams: Vec<_> = streams
                    .map(|(stream, rung)| writer::published(stream, rung, &frame.payload))
                    .collect();
                octets = writer::file_header(&streams);
                *self.began.insert(Timestamp::from_micros(at))
            }
        };
        let micros = u64::try_from(frame.captured_at.micros_since(began)).unwrap_or(0);
        writer::put_frame(&mut octets, stream, micros, frame.key, &frame.payload);
        self.output.write(&octets)
    }

    /// The streams, each with the rung that is recorded; pictures of a later rung say their own size.
    fn rungs(&self, watched: &str) -> Vec<(&StreamInfo, &Rung)> {
        let rung = |stream: &StreamInfo| {
            let named = stream.rungs.iter().position(|rung| rung.name == watched);
            named.unwrap_or(0)
        };
        self.streams
            .iter()
            .filter(|stream| !stream.rungs.is_empty())
            .map(|stream| (stream, &stream.rungs[rung(stream)]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_name_says_how_it_is_wrapped() {
        let of = |path: &str| wrapping(Path::new(path));
        assert_eq!(of("-"), Wrapping::Nut);
        assert_eq!(of("a.nut"), Wrapping::Nut);
        assert_eq!(of("a.h264"), Wrapping::Bare);
        assert_eq!(of("a.mkv"), Wrapping::Ffmpeg);
        assert_eq!(of("dir.d/a.mp4"), Wrapping::Ffmpeg);
    }
}
