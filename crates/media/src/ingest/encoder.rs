//! ffmpeg as encoder: raw frames in, encoded frames out, each with the time it was captured.
//!
//! ```text
//!             stdin                     ┌─ scale ─ encoder ─ NUT ─ pipe ─▶ reader thread, rung 0
//!  raw ─────────────────▶ ffmpeg: split ┼─ scale ─ encoder ─ NUT ─ pipe ─▶ reader thread, rung 1 ─▶ MediaEvent
//!   └── Stamp, per rung ────────────────┴──────────────────────────────▶ …
//! ```
//!
//! Frame n in is frame n out: the container's time is the frame's number, and the stamps wait in order.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use namecast_units::{Duration, Timestamp};

use super::codec;
use super::external::Origin;
use super::ffmpeg::{Process, pipe_url, words};
use super::ladder::Rung;
use super::{AudioConfig, IngestError, MediaFrame, Sink, StreamKind, VideoConfig};
use crate::clock;
use crate::nut::{NutFrame, NutReader};

/// Frames that may be inside an encoder before it counts as stuck; zero-latency encoders hold none.
const MAX_IN_FLIGHT: usize = 256;
/// Octets read from a pipe at once.
const READ_SIZE: usize = 1 << 16;

/// What follows a raw frame through the encoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    /// Place of the frame in playback order, counted from the start of the source.
    pub(super) position: u64,
    /// When the frame was captured.
    pub(super) captured_at: Timestamp,
    /// The container's time of the frame, in ticks of the output that it waits for.
    pub(super) number: u64,
}

/// One ffmpeg that encodes.
#[derive(Debug)]
pub(super) struct Encoder {
    process: Process,
    stdin: ChildStdin,
    stamps: Vec<SyncSender<Stamp>>,
    /// Frames that were submitted.
    count: u64,
}

impl Encoder {
    /// Starts an encoder for all rungs of a video.
    ///
    /// # Errors
    /// If ffmpeg cannot be started.
    pub(super) fn video(config: &VideoConfig, sink: &Sink) -> Result<Self, IngestError> {
        let rungs = config.ladder.rungs();
        let (process, pipes) = Process::start(&video_arguments(config), rungs.len())?;
        let outputs = pipes.into_iter().enumerate().map(|(rung, pipe)| Output {
            stream: StreamKind::Video,
            rung,
            ticks: config.frames_per_second(),
            slack: 0,
            sink: sink.clone(),
            pipe,
            origin: None,
        });
        Ok(Self::new(process, outputs.collect()))
    }

    /// Starts an encoder for sound, which is fed whole packets.
    ///
    /// # Errors
    /// If ffmpeg cannot be started.
    pub(super) fn audio(config: &AudioConfig, sink: &Sink) -> Result<Self, IngestError> {
        let (process, pipes) = Process::start(&audio_arguments(config), 1)?;
        let outputs = pipes.into_iter().map(|pipe| Output {
            stream: StreamKind::Audio,
            rung: 0,
            ticks: 0,
            slack: 0,
            sink: sink.clone(),
            pipe,
            origin: None,
        });
        let mut encoder = Self::new(process, outputs.collect());
        // An ffmpeg that ended at once shows when the first packet is submitted.
        let _ = encoder.stdin.write_all(&wav_header(config));
        Ok(encoder)
    }

    fn new<R: Read + Send + 'static>(mut process: Process, outputs: Vec<Output<R>>) -> Self {
        let stdin = process.stdin();
        let mut stamps = Vec::with_capacity(outputs.len());
        for output in outputs {
            let (sender, receiver) = sync_channel(MAX_IN_FLIGHT);
            stamps.push(sender);
            std::thread::spawn(move || output.run(&receiver));
        }
        Self {
            process,
            stdin,
            stamps,
            count: 0,
        }
    }

    /// Hands one raw frame over, and waits until the encoder has taken it.
    ///
    /// # Errors
    /// If the encoder has died or is stuck; what it said last is in the error.
    pub(super) fn submit(&mut self, raw: &[u8], stamp: Stamp) -> Result<(), IngestError> {
        let number = self.count;
        self.count += 1;
        let stamp = Stamp { number, ..stamp };
        for stamps in &self.stamps {
            match stamps.try_send(stamp) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => return Err(self.fault("it is stuck")),
                Err(TrySendError::Disconnected(_)) => return Err(self.fault("its output ended")),
            }
        }
        match self.stdin.write_all(raw).and_then(|()| self.stdin.flush()) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fault(&error.to_string())),
        }
    }

    /// Lets it encode what it has taken, and end. Its last frames may come a little later.
    ///
    /// # Errors
    /// If it failed; what it said last is in the error.
    pub(super) fn finish(self) -> Result<(), IngestError> {
        let Self {
            mut process, stdin, ..
        } = self;
        drop(stdin);
        match process.finish() {
            (true, _) => Ok(()),
            (false, said) => Err(IngestError::Encoder(said)),
        }
    }

    fn fault(&mut self, what: &str) -> IngestError {
        let said = self.process.end();
        IngestError::Encoder(match said.is_empty() {
            true => what.to_owned(),
            false => format!("{what}\n{said}"),
        })
    }
}

fn video_arguments(config: &VideoConfig) -> Vec<OsString> {
    let (source, rate, rungs) = (
        config.source_size(),
        config.frames_per_second(),
        config.ladder.rungs(),
    );
    let input = format!(
        "{} -probesize 32 -analyzeduration 0 -f rawvideo -pix_fmt yuv420p -video_size {source} \
         -framerate {rate} -i pipe:0 -filter_complex",
        codec::device(config.encoder())
    );
    let mut arguments: Vec<_> = words(&input).collect();
    let splits: String = (0..rungs.len()).map(|rung| format!("[s{rung}]")).collect();
    let upload = codec::upload_filter(config.encoder());
    let scale = |(rung, Rung { size, .. }): (usize, &Rung)| match *size == source {
        true => format!(";[s{rung}]null{upload}[v{rung}]"),
        false => format!(
            ";[s{rung}]scale={}:{}:flags=bilinear{upload}[v{rung}]",
            size.width, size.height
        ),
    };
    let scales: String = rungs.iter().enumerate().map(scale).collect();
    arguments.push(format!("[0:v]split={}{splits}{scales}", rungs.len()).into());
    for (index, rung) in rungs.iter().enumerate() {
        let output = format!(
            "-map [v{index}] {} -fps_mode passthrough -write_index 0 -flush_packets 1 -f nut",
            config.options(rung, config.key_interval)
        );
        arguments.extend(words(&output));
        arguments.push(pipe_url(index));
    }
    arguments
}

fn audio_arguments(config: &AudioConfig) -> Vec<OsString> {
    let line = format!(
        "-probesize 32 -analyzeduration 0 -f wav -ignore_length 1 -max_size {} -i pipe:0 \
         {} -write_index 0 -flush_packets 1 -f nut",
        config.packet_len(),
        config.options(),
    );
    words(&line).chain([pipe_url(0)]).collect()
}

/// A WAV header for a stream without end: with raw PCM, ffmpeg would wait for 1024 samples where a packet has 960.
fn wav_header(config: &AudioConfig) -> Vec<u8> {
    let channels = u16::try_from(config.channels).expect("one or two");
    let frame = channels * 2;
    let mut header = Vec::with_capacity(44);
    header.extend_from_slice(b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0");
    header.extend_from_slice(&channels.to_le_bytes());
    header.extend_from_slice(&AudioConfig::SAMPLE_RATE.to_le_bytes());
    header.extend_from_slice(&(AudioConfig::SAMPLE_RATE * u32::from(frame)).to_le_bytes());
    header.extend_from_slice(&frame.to_le_bytes());
    header.extend_from_slice(b"\x10\0data\xff\xff\xff\xff");
    header
}

/// Container's time of what is encoded anew: microseconds.
const MICROSECONDS: u32 = 1_000_000;
/// By how many of them encoders round it.
pub(super) const ROUNDED: u64 = 1_000;

/// Longest wait for a frame's stamp. Where times jump among reordered pictures, the encoder may be done before it is known.
const STAMP_WAIT: Duration = Duration::from_secs(1);

/// Reads one rung's encoded frames.
#[derive(Debug)]
pub(super) struct Output<R> {
    stream: StreamKind,
    rung: usize,
    /// Ticks of a second, by which the container's time becomes the frame's number; zero: frames are counted.
    ticks: u32,
    /// By how much numbers may differ.
    slack: u64,
    sink: Sink,
    pipe: R,
    /// The clock of the source, by which its pictures may come out of order; `None`: they do not.
    origin: Option<Arc<Origin>>,
}

impl<R: Read> Output<R> {
    /// The output of an encoder whose frames keep the times of its input, in microseconds, by the clock of `origin`.
    pub(super) fn timed(
        (stream, rung): (StreamKind, usize),
        sink: Sink,
        pipe: R,
        origin: Arc<Origin>,
    ) -> Self {
        Self {
            stream,
            rung,
            ticks: MICROSECONDS,
            slack: ROUNDED,
            sink,
            pipe,
            origin: Some(origin),
        }
    }

    /// Publishes each frame with its stamp, until the encoder or the stamps end.
    pub(super) fn run(self, stamps: &Receiver<Stamp>) {
        let matcher = StampMatcher {
            ticks: self.ticks,
            slack: self.slack,
        };
        self.run_by(|frame| matcher.stamp(frame, stamps));
    }

    /// Publishes each frame with what `stamp` says of it, until that is nothing.
    pub(super) fn run_by(mut self, mut stamp: impl FnMut(&NutFrame) -> Option<Stamp>) {
        let mut reader = NutReader::default();
        let mut octets = vec![0; READ_SIZE];
        loop {
            match self.pipe.read(&mut octets) {
                Ok(0) => return,
                Ok(count) => reader.push(octets.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            loop {
                match reader.frame() {
                    Ok(None) => break,
                    Ok(Some(frame)) => match stamp(&frame) {
                        Some(stamp) => self.emit(frame, stamp),
                        None => return,
                    },
                    // Leaving closes the stamps' channel, from which the next frame's submission learns of it.
                    Err(error) => {
                        tracing::warn!("encoder's output: {error}");
                        return;
                    }
                }
            }
        }
    }

    fn emit(&self, frame: NutFrame, stamp: Stamp) {
        let encoded_at = clock::wall();
        let (captured_at, composition_offset) = match &self.origin {
            Some(origin) => origin.timed(stamp.captured_at, stamp.number, encoded_at),
            None => (stamp.captured_at, Duration::ZERO),
        };
        self.sink.frame(MediaFrame {
            stream: self.stream,
            rung: self.rung,
            position: stamp.position,
            key: frame.key || self.stream == StreamKind::Audio,
            captured_at,
            composition_offset,
            encoded_at,
            payload: frame.payload,
        });
    }
}

/// Finds the stamp that belongs to an encoded frame.
#[derive(Debug)]
struct StampMatcher {
    ticks: u32,
    slack: u64,
}

impl StampMatcher {
    /// Passes over the stamps of frames that the encoder dropped. `None`: no stamp comes, the encoder made up a frame.
    fn stamp(&self, frame: &NutFrame, stamps: &Receiver<Stamp>) -> Option<Stamp> {
        let number = match self.ticks {
            0 => 0,
            rate => frame.time.ticks(rate),
        };
        loop {
            let stamp = stamps.recv_timeout(STAMP_WAIT).ok()?;
            if stamp.number.saturating_add(self.slack) >= number {
                return Some(stamp);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nut::MediaTime;
    use bytes::Bytes;

    fn frame(count: u64) -> NutFrame {
        NutFrame {
            stream: 0,
            time: MediaTime {
                count,
                unit_num: 1,
                unit_den: 61_440,
            },
            key: false,
            payload: Bytes::new(),
        }
    }

    /// At 30 frames a second a frame lasts 2048 units of 1/61440 s. The encoder drops frame 1, and makes up one after 3.
    #[test]
    fn frames_get_their_own_stamps_though_the_encoder_drops_some() {
        let (sender, stamps) = sync_channel(8);
        for position in 10..14 {
            let captured_at = Timestamp::from_micros(position);
            let stamp = Stamp {
                position,
                captured_at,
                number: position - 10,
            };
            sender.send(stamp).unwrap();
        }
        let matcher = StampMatcher {
            ticks: 30,
            slack: 0,
        };
        let position = |count| {
            let stamp = matcher.stamp(&frame(count), &stamps);
            stamp.map(|stamp| stamp.position)
        };
        assert_eq!([position(0), position(4_096)], [Some(10), Some(12)]);
        drop(sender);
        assert_eq!([position(6_144), position(8_192)], [Some(13), None]);
    }

    /// Sound has no frame numbers that could be relied on: packets are counted.
    #[test]
    fn sound_packets_are_counted() {
        let (sender, stamps) = sync_channel(8);
        for position in 0..2 {
            let captured_at = Timestamp::default();
            let stamp = Stamp {
                position,
                captured_at,
                number: position,
            };
            sender.send(stamp).unwrap();
        }
        drop(sender);
        let matcher = StampMatcher { ticks: 0, slack: 0 };
        for expected in [Some(0), Some(1), None] {
            let stamp = matcher.stamp(&frame(7), &stamps);
            assert_eq!(stamp.map(|stamp| stamp.position), expected);
        }
    }
}
