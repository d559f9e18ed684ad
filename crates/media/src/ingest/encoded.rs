//! A ladder that is encoded already: one file a rung, copied in step with the clock, so that no picture is encoded.
//!
//! ```text
//!  200k.mp4 ─▶ ffmpeg, copying ─ NUT ─┐
//!  1M.mp4 ──▶ ffmpeg, copying ─ NUT ──┼─ one thread, paced ─▶ MediaEvent: a frame of each rung at once
//!  3M.mp4 ──▶ ffmpeg, copying ─ NUT ──┘
//!     └─────▶ ffmpeg, Opus ─── NUT ──── one thread, paced ─▶ MediaEvent: sound, of the first file that has any
//! ```

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use namecast_stream::SampleRate;
use namecast_units::{Bitrate, Duration, Timestamp};
use serde::Deserialize;

use super::codec::VideoCodec;
use super::external::Playback;
use super::ffmpeg::{OutputReader, Process, pipe_url, words};
use super::ladder::{Ladder, PictureSize, Rung, label};
use super::source::{has_sound, probe};
use super::{AudioConfig, IngestError, MediaEvent, MediaFrame, Sink, StreamKind, VideoConfig};
use crate::clock;
use crate::nut::{NutFrame, NutReader};

/// How much of each file is looked at, in seconds: enough to know its rate and where its key frames are.
const LOOKED_AT: u32 = 30;
/// Octets read from a pipe at once.
const READ_SIZE: usize = 1 << 16;

/// Files that hold the rungs of one video, lowest bitrate first.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) video: VideoConfig,
    /// How sound is encoded, if a file has any and it is wanted.
    pub(super) audio: Option<AudioConfig>,
    files: Vec<PathBuf>,
    with_sound: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Probed {
    #[serde(default)]
    streams: Vec<ProbedStream>,
    #[serde(default)]
    packets: Vec<ProbedPacket>,
}

#[derive(Deserialize)]
struct ProbedStream {
    codec_name: String,
    profile: Option<String>,
    width: u32,
    height: u32,
    avg_frame_rate: String,
    #[serde(default)]
    has_b_frames: u32,
}

#[derive(Deserialize)]
struct ProbedPacket {
    size: String,
    flags: String,
}

/// What one file holds.
#[derive(Debug)]
struct Look {
    file: PathBuf,
    codec: VideoCodec,
    frame_rate: u32,
    key_interval: u32,
    rung: Rung,
}

fn unfit(file: &Path, why: impl Into<String>) -> IngestError {
    IngestError::NoRung {
        file: file.to_owned(),
        why: why.into(),
    }
}

impl Encoded {
    /// Looks at the files, and checks that they are one video at several bitrates.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub(super) fn look(
        files: &[PathBuf],
        audio: Option<&AudioConfig>,
    ) -> Result<Self, IngestError> {
        let mut looks = files
            .iter()
            .map(|file| Look::at(file))
            .collect::<Result<Vec<_>, _>>()?;
        looks.sort_by_key(|look| look.rung.bitrate);
        let rungs = looks.iter().map(|look| look.rung.clone()).collect();
        let ladder = Ladder::of(rungs).map_err(|error| {
            unfit(
                files.first().map_or(Path::new(""), |it| it),
                error.to_string(),
            )
        })?;
        let first = looks.first().expect("a ladder has rungs");
        for look in &looks {
            let ours = (look.codec, look.frame_rate, look.key_interval);
            if ours != (first.codec, first.frame_rate, first.key_interval) {
                let of = |look: &Look| {
                    let Look {
                        codec,
                        frame_rate,
                        key_interval,
                        ..
                    } = look;
                    format!(
                        "{} at {frame_rate} frames a second, a key frame every {key_interval}",
                        codec.name()
                    )
                };
                let why = format!(
                    "it is {}; {} is {}",
                    of(look),
                    first.file.display(),
                    of(first)
                );
                return Err(unfit(&look.file, why));
            }
        }
        let mut with_sound = None;
        if audio.is_some() {
            for look in &looks {
                if with_sound.is_none() && has_sound(&look.file)? {
                    with_sound = Some(look.file.clone());
                }
            }
        }
        Ok(Self {
            video: VideoConfig {
                codec: first.codec,
                encoder: None,
                ladder,
                rate: SampleRate::new(first.frame_rate, 1),
                key_interval: first.key_interval,
                reorder_delay: Duration::ZERO,
                max_frame: 0,
            },
            audio: audio.filter(|_| with_sound.is_some()).cloned(),
            files: looks.into_iter().map(|look| look.file).collect(),
            with_sound,
        })
    }

    /// Starts to publish the files, from their beginning, on threads of its own.
    ///
    /// # Errors
    /// If ffmpeg cannot be started.
    pub(super) fn start(
        &self,
        looped: bool,
        sink: &Sink,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), IngestError> {
        let (playback, laps) = (Arc::<Playback>::default(), Arc::<Laps>::default());
        let track = |stream, period, early, inputs| Track {
            stream,
            period,
            early,
            inputs,
            playback: Arc::clone(&playback),
            laps: looped.then(|| Arc::clone(&laps)),
            sink: sink.clone(),
            stop: Arc::clone(stop),
        };
        let filters = match self.video.codec {
            VideoCodec::H264 => "-bsf:v h264_mp4toannexb,dump_extra=freq=keyframe",
            VideoCodec::Vp8 | VideoCodec::Vp9 | VideoCodec::Av1 => "",
        };
        let copied = format!("-map 0:v:0 -c copy {filters}");
        let pictures = self.files.iter();
        let pictures = pictures.map(|file| Input::open(file, looped, copied.clone()));
        let pictures = pictures.collect::<Result<_, _>>()?;
        let period = self.video.rate.period();
        let pictures = track(StreamKind::Video, period, Duration::ZERO, pictures);
        let sound = match (&self.with_sound, &self.audio) {
            (Some(file), Some(audio)) => {
                let input = Input::open(file, looped, sound_arguments(audio))?;
                let period = Duration::from_millis(AudioConfig::PACKET_MILLIS);
                let early = Duration::from_micros(AudioConfig::ENCODER_DELAY_MICROS);
                Some(track(StreamKind::Audio, period, early, vec![input]))
            }
            _ => None,
        };
        for track in [Some(pictures), sound].into_iter().flatten() {
            thread::spawn(move || track.run());
        }
        Ok(())
    }
}

impl Look {
    fn at(file: &Path) -> Result<Self, IngestError> {
        if !file.exists() {
            return Err(IngestError::NoFile(file.to_owned()));
        }
        let entries = format!(
            "-select_streams v:0 -read_intervals %+{LOOKED_AT} -show_entries \
             stream=codec_name,profile,width,height,avg_frame_rate,has_b_frames:packet=size,flags"
        );
        let Probed { streams, packets } = probe(file, &entries)?;
        let Some(stream) = streams.first() else {
            return Err(IngestError::NoPictures(file.display().to_string()));
        };
        let codec = codec(file, stream)?;
        let Some(frame_rate) = whole_rate(&stream.avg_frame_rate) else {
            let rate = &stream.avg_frame_rate;
            return Err(unfit(
                file,
                format!("it has {rate} frames a second, no whole number"),
            ));
        };
        let key_interval = key_interval(&packets)
            .ok_or_else(|| unfit(file, "its key frames are not equally far apart"))?;
        let octets: u64 = packets
            .iter()
            .filter_map(|it| it.size.parse::<u64>().ok())
            .sum();
        let frames = u64::try_from(packets.len()).unwrap_or(u64::MAX);
        let bitrate = two_digits(octets * 8 * u64::from(frame_rate) / frames.max(1));
        Ok(Self {
            file: file.to_owned(),
            codec,
            frame_rate,
            key_interval,
            rung: Rung {
                label: label(bitrate),
                bitrate,
                copied: None,
                size: PictureSize {
                    width: stream.width,
                    height: stream.height,
                },
            },
        })
    }
}

/// The codec, if what is in the file is what the catalogue will say of it.
fn codec(file: &Path, stream: &ProbedStream) -> Result<VideoCodec, IngestError> {
    let name = &stream.codec_name;
    let codec: VideoCodec = name.parse().map_err(|_| {
        unfit(
            file,
            format!("its codec is {name}, not h264, vp8, vp9 or av1"),
        )
    })?;
    let is_baseline = stream
        .profile
        .as_deref()
        .is_some_and(|profile| profile.ends_with("Baseline"));
    if stream.has_b_frames > 0 || (codec == VideoCodec::H264 && !is_baseline) {
        let profile = stream.profile.as_deref().unwrap_or("unknown");
        let why = format!(
            "its frames are not in the order in which they are shown, or its profile ({profile}) is not Baseline: \
             encode it with -c:v libx264 -profile:v baseline"
        );
        return Err(unfit(file, why));
    }
    Ok(codec)
}

/// Frames a second, of ffprobe's `30/1`.
fn whole_rate(text: &str) -> Option<u32> {
    let (count, seconds) = text.split_once('/')?;
    let (count, seconds) = (count.parse::<u32>().ok()?, seconds.parse::<u32>().ok()?);
    let rate = count.checked_div(seconds)?;
    (rate > 0 && rate * seconds == count).then_some(rate)
}

/// Frames from one key frame to the next, if it is always as many and the first frame is one.
fn key_interval(packets: &[ProbedPacket]) -> Option<u32> {
    let is_key = |packet: &ProbedPacket| packet.flags.starts_with('K');
    let keys = packets.iter().enumerate().filter(|(_, it)| is_key(it));
    let keys: Vec<_> = keys.map(|(at, _)| at).collect();
    let interval = keys.get(1).copied().unwrap_or(packets.len());
    let is_regular = keys
        .iter()
        .enumerate()
        .all(|(count, &at)| at == count * interval);
    let is_whole = packets.len() <= keys.len() * interval;
    (!keys.is_empty() && is_regular && is_whole).then(|| u32::try_from(interval).ok())?
}

/// As people name a rung: 213456 bit/s are 210k.
pub(super) fn two_digits(bps: u64) -> Bitrate {
    let mut unit = 1;
    while bps / unit >= 100 {
        unit *= 10;
    }
    Bitrate::bps((bps + unit / 2) / unit * unit)
}

fn sound_arguments(audio: &AudioConfig) -> String {
    format!(
        "-map 0:a:0 -ac {} -ar {} {}",
        audio.channels,
        AudioConfig::SAMPLE_RATE,
        audio.options()
    )
}

/// One file behind an ffmpeg, read as far ahead as the pipe holds.
#[derive(Debug)]
struct Input {
    file: PathBuf,
    output: String,
    reading: Reading,
    /// Of files that start again: the next time through, begun ahead, so that there is no pause.
    next: Option<Reading>,
}

/// One time through a file.
#[derive(Debug)]
struct Reading {
    process: Process,
    pipe: OutputReader,
    reader: NutReader,
    has_begun: bool,
}

impl Input {
    fn open(file: &Path, looped: bool, output: String) -> Result<Self, IngestError> {
        let open = || Reading::open(file, &output);
        Ok(Self {
            reading: open()?,
            next: looped.then(open).transpose()?,
            file: file.to_owned(),
            output,
        })
    }

    /// Goes to the beginning. ffmpeg 5.1 cannot: its filters of copied packets do not survive the end of a file.
    fn rewind(&mut self) -> Result<(), IngestError> {
        let opened = Reading::open(&self.file, &self.output)?;
        self.reading = self
            .next
            .replace(opened)
            .expect("what starts again has its next time");
        Ok(())
    }

    /// Waits for the next frame; `None` at the end.
    fn next(&mut self, octets: &mut [u8]) -> Result<Option<NutFrame>, IngestError> {
        let reading = &mut self.reading;
        loop {
            let frame = reading.reader.frame();
            if let Some(frame) = frame.map_err(|error| unfit(&self.file, error.to_string()))? {
                reading.has_begun = true;
                return Ok(Some(frame));
            }
            match reading.pipe.read(octets) {
                Ok(0) => break,
                Ok(count) => reading.reader.push(octets.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(IngestError::Pipe(error)),
            }
        }
        let (is_well, said) = reading.process.finish();
        if is_well && reading.has_begun {
            return Ok(None);
        }
        let input = self.file.display().to_string();
        Err(IngestError::Unreadable { input, said })
    }
}

impl Reading {
    fn open(file: &Path, output: &str) -> Result<Self, IngestError> {
        let mut arguments: Vec<OsString> = vec!["-i".into(), file.into()];
        arguments.extend(words(output));
        arguments.extend(words("-write_index 0 -f nut"));
        arguments.push(pipe_url(0));
        let (process, pipes) = Process::start(&arguments, 1)?;
        Ok(Self {
            process,
            pipe: pipes.into_iter().next().expect("one pipe was wanted"),
            reader: NutReader::default(),
            has_begun: false,
        })
    }
}

/// How often the pictures have started again, and when they last did: sound, which is never quite as long, starts with them.
#[derive(Debug, Default)]
struct Laps(Mutex<(u64, Duration)>);

impl Laps {
    fn begin(&self, at: Duration) {
        let mut lap = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *lap = (lap.0 + 1, at);
    }

    fn get(&self) -> (u64, Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pictures of all rungs, or sound, each at its time.
struct Track {
    stream: StreamKind,
    period: Duration,
    /// How much earlier than its place says a packet begins.
    early: Duration,
    inputs: Vec<Input>,
    playback: Arc<Playback>,
    /// Of files that start again.
    laps: Option<Arc<Laps>>,
    sink: Sink,
    stop: Arc<AtomicBool>,
}

impl Track {
    fn run(mut self) {
        let error = self.play().err();
        let stream = self.stream;
        self.sink.tell(MediaEvent::Ended { stream, error });
    }

    fn play(&mut self) -> Result<(), IngestError> {
        let mut octets = vec![0; READ_SIZE];
        let (mut lap, mut began, mut in_lap) = (0, Duration::ZERO, 0_u32);
        let mut position = 0;
        while !self.stop.load(Ordering::Relaxed) {
            if let Some((number, at)) = self.laps.as_ref().map(|laps| laps.get())
                && number != lap
            {
                (lap, began, in_lap) = (number, at, 0);
                self.inputs.iter_mut().try_for_each(Input::rewind)?;
            }
            let inputs = self.inputs.iter_mut();
            let frames = inputs.map(|input| input.next(&mut octets));
            let frames: Option<Vec<_>> = frames.collect::<Result<_, _>>()?;
            match (frames, &self.laps) {
                (Some(frames), _) => {
                    let due = self.playback.wait(began + self.period * in_lap, &self.stop);
                    self.publish(frames, position, due)?;
                    (in_lap, position) = (in_lap + 1, position + 1);
                }
                (None, None) => return Ok(()),
                (None, Some(laps)) if self.stream == StreamKind::Video => {
                    laps.begin(began + self.period * in_lap);
                }
                (None, Some(_)) => thread::sleep(self.period),
            }
        }
        Ok(())
    }

    fn publish(
        &self,
        frames: Vec<NutFrame>,
        position: u64,
        due: Timestamp,
    ) -> Result<(), IngestError> {
        let mut pairs = frames.iter().zip(&self.inputs);
        if let Some((first, other)) = pairs.next()
            && let Some((_, input)) = pairs.find(|(frame, _)| frame.key != first.key)
        {
            let other = other.file.display();
            let why =
                format!("only one of its frame {position} and that of {other} is a key frame");
            return Err(unfit(&input.file, why));
        }
        self.sink.counters.captured.fetch_add(1, Ordering::Relaxed);
        let early = u64::try_from(self.early.as_micros()).unwrap_or(0);
        let captured_at = Timestamp::from_micros(due.as_micros().saturating_sub(early));
        for (rung, frame) in frames.into_iter().enumerate() {
            self.sink.frame(MediaFrame {
                stream: self.stream,
                rung,
                position,
                key: frame.key || self.stream == StreamKind::Audio,
                captured_at,
                composition_offset: Duration::ZERO,
                encoded_at: clock::wall(),
                payload: frame.payload,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_become_labels_of_two_digits() {
        for (bps, expected) in [
            (213_456, "210k"),
            (2_951_000, "3M"),
            (996_000, "1M"),
            (1_049_000, "1M"),
            (64, "64"),
        ] {
            assert_eq!(label(two_digits(bps)), expected, "{bps}");
        }
    }

    #[test]
    fn rates_of_frames_are_whole() {
        let rates = ["30/1", "50/2", "30000/1001", "0/0", "0/1", "30"].map(whole_rate);
        assert_eq!(rates, [Some(30), Some(25), None, None, None, None]);
    }

    #[test]
    fn key_frames_are_equally_far_apart() {
        let interval = |keys: &str| {
            let packet = |key| ProbedPacket {
                size: "1".to_owned(),
                flags: (if key == 'K' { "K__" } else { "___" }).to_owned(),
            };
            key_interval(&keys.chars().map(packet).collect::<Vec<_>>())
        };
        let found = ["K..K..K.", "K...", "KKK", "K..K.K", ".K.K", "K..K....", ""].map(interval);
        assert_eq!(found, [Some(3), Some(4), Some(1), None, None, None, None]);
    }
}
