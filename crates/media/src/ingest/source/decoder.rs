//! Anything that ffmpeg reads as a source: decoded by one process, read ahead a little, given out in step with the clock.
//!
//! ```text
//!  file, camera, stream ─▶ ffmpeg ─┬─ raw video ─ reader thread ─ queue ─▶ Source, paced
//!                                  └─ raw sound ─ reader thread ─ queue ─▶ Source, paced by the same clock
//! ```

use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use namecast_units::{Duration, Timestamp};
use serde::Deserialize;

use super::super::ffmpeg::{Process, pipe_url, probe_program, words};
use super::super::{AudioConfig, IngestError, VideoConfig};
use super::{Input, Source};
use crate::clock;

/// Raw frames and packets read ahead, so that one track's wait does not starve the other.
const VIDEO_AHEAD: usize = 8;
const SOUND_AHEAD: usize = 64;
/// How much of standard input is looked at to see which tracks it has, in octets.
const PEEK: usize = 1 << 19;
/// A source that falls behind by more than this has a new beginning of time, rather than a growing delay.
const MAX_BEHIND: Duration = Duration::from_millis(100);

/// Which tracks an input has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// It has pictures.
    pub video: bool,
    /// It has sound.
    pub audio: bool,
}

#[derive(Deserialize)]
struct Probed {
    #[serde(default)]
    streams: Vec<ProbedStream>,
}

#[derive(Deserialize)]
struct ProbedStream {
    codec_type: Option<String>,
}

/// Looks at a file's or an address's tracks.
///
/// # Errors
/// If ffprobe is missing or cannot read the input.
pub fn probe_file(path: &Path) -> Result<Probe, IngestError> {
    probe(path.as_os_str().to_owned(), &[])
}

fn probe(input: OsString, start: &[u8]) -> Result<Probe, IngestError> {
    let mut child = Command::new(probe_program())
        .args(words(
            "-loglevel error -show_entries stream=codec_type -of json -i",
        ))
        .arg(&input)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(IngestError::NoFfmpeg)?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let start = start.to_vec();
    // ffprobe may have seen enough and hang up before it took everything.
    let feeder = thread::spawn(move || drop(stdin.write_all(&start)));
    let output = child.wait_with_output().map_err(IngestError::NoFfmpeg)?;
    let _ = feeder.join();
    let probed: Option<Probed> = serde_json::from_slice(&output.stdout).ok();
    let streams = probed.map(|probed| probed.streams).unwrap_or_default();
    if streams.is_empty() {
        let input = input.to_string_lossy().into_owned();
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(IngestError::Unreadable { input, said });
    }
    let has = |kind: &str| {
        let is_kind = |stream: &ProbedStream| stream.codec_type.as_deref() == Some(kind);
        streams.iter().any(is_kind)
    };
    Ok(Probe {
        video: has("video"),
        audio: has("audio"),
    })
}

/// What is known of an input before it is decoded.
struct Look {
    found: Probe,
    /// What was read of standard input.
    peeked: Vec<u8>,
    /// Whether it is played by our clock; a live input has its own.
    paced: bool,
}

impl Look {
    fn at(input: &Input) -> Result<Self, IngestError> {
        let (mut peeked, mut paced) = (Vec::new(), true);
        let found = match input {
            Input::File(path) if !path.exists() => {
                return Err(IngestError::NoFile(path.clone()));
            }
            Input::Camera(path) if !path.exists() => {
                return Err(IngestError::NoCamera(path.clone()));
            }
            Input::Camera(_) => {
                paced = false;
                Probe {
                    video: true,
                    audio: false,
                }
            }
            Input::StandardInput => {
                // A source that ends sooner is short, not broken.
                let _ = io::stdin()
                    .lock()
                    .take(PEEK as u64)
                    .read_to_end(&mut peeked);
                probe("pipe:0".into(), &peeked)?
            }
            Input::File(path) => probe_file(path)?,
            Input::Address(address) => {
                paced = false;
                probe(address.into(), &[])?
            }
            Input::Test => Probe {
                video: true,
                audio: true,
            },
        };
        Ok(Self {
            found,
            peeked,
            paced,
        })
    }
}

/// Makes the two tracks of a file play on one clock.
#[derive(Debug, Default)]
pub(in super::super) struct Playback {
    /// Wall-clock time of the input's beginning, in microseconds; zero: not begun.
    began: AtomicU64,
}

impl Playback {
    /// Waits until `offset` from the beginning is due; begins at the first call.
    pub(in super::super) fn wait(&self, offset: Duration) -> Timestamp {
        let now = clock::wall().as_micros();
        let offset = u64::try_from(offset.as_micros()).unwrap_or(u64::MAX);
        let fresh = now.saturating_sub(offset);
        let began =
            match self
                .began
                .compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => fresh,
                Err(began) => began,
            };
        let due = began.saturating_add(offset);
        match due.checked_sub(now) {
            Some(left) => {
                thread::sleep(Duration::from_micros(left.min(1_000_000)));
                Timestamp::from_micros(due)
            }
            None if Duration::from_micros(now - due) > MAX_BEHIND => {
                self.began.store(fresh, Ordering::Relaxed);
                Timestamp::from_micros(now)
            }
            None => Timestamp::from_micros(due),
        }
    }
}

/// One raw frame or packet, and when it was read.
type Piece = (Vec<u8>, Timestamp);

/// One track of a decoding ffmpeg.
#[derive(Debug)]
pub struct Decoder {
    /// Shared by both tracks; the last one ends the process.
    process: Arc<Mutex<Process>>,
    pieces: Receiver<Piece>,
    /// Buffers on their way back to the reader.
    used: SyncSender<Vec<u8>>,
    /// `None`: a live source, whose pieces are due when they come.
    playback: Option<Arc<Playback>>,
    period: Duration,
    count: u32,
    label: String,
}

impl Decoder {
    /// Starts to decode `input` into pictures and, if it has any, sound.
    ///
    /// # Errors
    /// If the input cannot be opened, has no pictures, or ffmpeg is missing.
    pub fn start(
        input: &Input,
        looped: bool,
        video: &VideoConfig,
        audio: Option<&AudioConfig>,
    ) -> Result<(Self, Option<Self>), IngestError> {
        let Look {
            found,
            peeked,
            paced,
        } = Look::at(input)?;
        if !found.video {
            return Err(IngestError::NoPictures(input.to_string()));
        }
        let audio = audio.filter(|_| found.audio);
        let arguments = decoder_arguments(input, looped, video, audio);
        let (mut process, pipes) = Process::start(&arguments, 1 + usize::from(audio.is_some()))?;
        let stdin = process.stdin();
        if *input == Input::StandardInput {
            thread::spawn(move || feed(stdin, &peeked));
        }
        let process = Arc::new(Mutex::new(process));
        let playback = paced.then(Arc::<Playback>::default);
        let mut pipes = pipes.into_iter();
        let track = |pipe, size, ahead, period| {
            let (pieces, used) = read_ahead(pipe, size, ahead);
            Self {
                process: Arc::clone(&process),
                pieces,
                used,
                playback: playback.clone(),
                period,
                count: 0,
                label: input.to_string(),
            }
        };
        let pictures = pipes.next().map(|pipe| {
            let period = Duration::from_secs(1) / video.frame_rate;
            track(pipe, video.source_size().i420_len(), VIDEO_AHEAD, period)
        });
        let sound = pipes.next().zip(audio).map(|(pipe, audio)| {
            let period = Duration::from_millis(AudioConfig::PACKET_MILLIS);
            track(pipe, audio.packet_len(), SOUND_AHEAD, period)
        });
        Ok((pictures.expect("the first pipe is the pictures'"), sound))
    }

    /// How the process ended: an error if it said why, else just the end.
    fn ending(&self) -> Result<Option<Timestamp>, IngestError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let said = process.end();
        if self.count > 0 || said.is_empty() {
            return Ok(None);
        }
        let input = self.label.clone();
        Err(IngestError::Unreadable { input, said })
    }
}

impl Source for Decoder {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Timestamp>, IngestError> {
        let Ok((mut piece, read_at)) = self.pieces.recv() else {
            return self.ending();
        };
        core::mem::swap(buffer, &mut piece);
        // The reader makes a new buffer if it finds none.
        let _ = self.used.try_send(piece);
        let at = match &self.playback {
            Some(playback) => playback.wait(self.period * self.count),
            None => read_at,
        };
        self.count += 1;
        Ok(Some(at))
    }
}

fn decoder_arguments(
    input: &Input,
    looped: bool,
    video: &VideoConfig,
    audio: Option<&AudioConfig>,
) -> Vec<OsString> {
    let (size, rate) = (video.source_size(), video.frame_rate);
    let mut arguments: Vec<OsString> = match input {
        Input::Camera(path) => {
            let camera =
                format!("-fflags nobuffer -f v4l2 -framerate {rate} -video_size {size} -i");
            words(&camera).chain([path.into()]).collect()
        }
        Input::File(path) => {
            let looped = if looped { "-stream_loop -1 -i" } else { "-i" };
            words(looped).chain([path.into()]).collect()
        }
        Input::Address(address) => words("-fflags nobuffer -i")
            .chain([address.into()])
            .collect(),
        Input::StandardInput | Input::Test => words("-i pipe:0").collect(),
    };
    // Bars fill what the input's shape leaves of ours.
    let fit = format!(
        "-map 0:v:0 -an -vf fps={rate}:start_time=0,\
         scale={w}:{h}:force_original_aspect_ratio=decrease:force_divisible_by=2,\
         pad={w}:{h}:(ow-iw)/2:(oh-ih)/2,format=yuv420p -f rawvideo",
        w = size.width,
        h = size.height
    );
    arguments.extend(words(&fit));
    arguments.push(pipe_url(0));
    if let Some(audio) = audio {
        let sound = format!(
            "-map 0:a:0 -vn -af aresample=async=1:first_pts=0 -ac {} -ar {} -f s16le",
            audio.channels,
            AudioConfig::SAMPLE_RATE
        );
        arguments.extend(words(&sound));
        arguments.push(pipe_url(1));
    }
    arguments
}

/// Passes standard input on, after what was looked at already.
fn feed(mut stdin: ChildStdin, peeked: &[u8]) {
    // The decoder hanging up is seen where its output ends.
    if stdin.write_all(peeked).is_ok() {
        let _ = io::copy(&mut io::stdin().lock(), &mut stdin);
    }
}

/// Reads pieces of `size` octets from `pipe` on a thread of its own, at most `ahead` of what was taken.
fn read_ahead(
    mut pipe: PipeReader,
    size: usize,
    ahead: usize,
) -> (Receiver<Piece>, SyncSender<Vec<u8>>) {
    let (sender, pieces) = sync_channel(ahead);
    let (used, returned) = sync_channel::<Vec<u8>>(ahead);
    thread::spawn(move || {
        loop {
            let mut piece = returned.try_recv().unwrap_or_default();
            piece.resize(size, 0);
            if pipe.read_exact(&mut piece).is_err() {
                return;
            }
            let piece = (piece, clock::wall());
            if sender.send(piece).is_err() {
                return;
            }
        }
    });
    (pieces, used)
}
