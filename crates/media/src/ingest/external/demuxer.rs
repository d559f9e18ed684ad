//! An input as its packets: one ffmpeg opens it, once, and hands over what is inside without decoding it.
//!
//! ```text
//!  file, pipe, address ─▶ ffmpeg, copying ─ NUT ─ reader thread ─ Packet, with the time it came ─▶
//!                         a pipe that is NUT ──▶
//! ```

use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use namecast_units::{Duration, Timestamp};

use super::super::ffmpeg::{Process, pipe_url, words};
use super::super::source::{Container, Input};
use super::super::{AudioConfig, IngestConfig, IngestError, Wish};
use super::{MAX_CHANNELS, Reading, sound};
use crate::clock;
use crate::nut::{NutClass, NutError, NutReader, NutStream};

/// Packets read ahead: a second of pictures and sound.
const AHEAD: usize = 96;
/// Octets read from the pipe at once.
const READ_SIZE: usize = 1 << 16;
/// How long a live input is listened to before it is known, once its first packet is here.
const LISTEN: Duration = Duration::from_millis(500);
/// Of a live input, nothing for so long is said.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// Octets of a pipe that are kept to begin anew, until it is known what it holds.
const MAX_KEPT: usize = 4 << 20;
/// Pictures that are listened to at least, and at most.
const MIN_PICTURES: usize = 2;
const MAX_PICTURES: usize = 16;

/// Pictures or sound of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Which stream of the input it is of.
    pub(super) stream: usize,
    /// When it is shown, by the source's clock, in microseconds.
    pub(super) media: u64,
    /// Whether it decodes by itself.
    pub(super) key: bool,
    pub(super) payload: Bytes,
    pub(super) arrived_at: Timestamp,
}

/// An input that is open.
#[derive(Debug)]
pub(super) struct Demuxer {
    reading: Arc<Reading>,
    packets: Receiver<Packet>,
    headers: Receiver<Vec<NutStream>>,
    label: String,
    /// Lines of ffmpeg that are known.
    heard: u64,
}

/// What an input turned out to be.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) demuxer: Demuxer,
    pub(super) streams: Vec<NutStream>,
    /// The first packets.
    pub(super) first: Vec<Packet>,
    pub(super) depth: Depth,
}

impl Opened {
    /// Number and description of the first stream of pictures, or of sound.
    pub(super) fn stream(&self, is_video: bool) -> Option<(usize, &NutStream)> {
        let is_it = |stream: &&NutStream| match stream.class {
            NutClass::Audio(..) => !is_video,
            NutClass::Video(..) => is_video,
            NutClass::Other => false,
        };
        let streams = self.streams.iter().enumerate();
        streams.clone().find(|(_, stream)| is_it(stream))
    }

    /// How its sound is published: as it is where players take it and nothing else is wished, else encoded as `wanted`.
    pub(super) fn sound(&self, wanted: &AudioConfig, wish: &Wish) -> Option<AudioConfig> {
        let (number, stream) = self.stream(false)?;
        let is_copied = !wish.encodes_sound && self.depth != Depth::LateSound;
        let copied = sound::copied(number, stream, &self.first)
            .filter(|copied| is_copied && wish.channels.is_none_or(|it| it == copied.channels));
        let channels = stream.channels().clamp(1, MAX_CHANNELS);
        Some(copied.unwrap_or(AudioConfig {
            channels: wish.channels.unwrap_or(channels),
            ..wanted.clone()
        }))
    }

    /// Whether sound was announced that nobody could decode yet.
    fn lacks_sound(&self) -> bool {
        let is_vague = |(number, stream): (usize, &NutStream)| {
            let has_come = self.first.iter().any(|packet| packet.stream == number);
            sound::is_aac(stream) && stream.parameters.is_empty() && !has_come
        };
        self.stream(false).is_some_and(is_vague)
    }
}

/// How far an input is looked into before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Up to a second: what most inputs need.
    Usual,
    /// Up to ten: of an input that is joined long before its next key frame.
    LatePictures,
    /// Sound is announced and comes later: the ffmpeg that opens the input encodes it whenever it comes.
    LateSound,
}

impl Depth {
    /// How to try again what failed with these words of ffmpeg.
    fn after(said: &str) -> Option<Self> {
        if said.contains("sample rate not set") {
            Some(Self::LateSound)
        } else if said.contains("dimensions not set") {
            Some(Self::LatePictures)
        } else {
            None
        }
    }

    /// Enough to see the parameters of each track that an input announces, and no more.
    const fn options(self) -> &'static str {
        match self {
            Self::Usual | Self::LateSound => "-probesize 65536 -analyzeduration 1000000",
            Self::LatePictures => "-probesize 4000000 -analyzeduration 10000000",
        }
    }
}

impl Demuxer {
    /// Opens the input of `config`, and waits until it is known what it holds. Files begin again at their end if `looped`.
    ///
    /// # Errors
    /// If it cannot be opened or holds neither pictures nor sound, or ffmpeg is missing.
    pub(super) fn open(
        config: &IngestConfig,
        looped: bool,
        reading: &Arc<Reading>,
    ) -> Result<Opened, IngestError> {
        let tap = match &config.input {
            Input::StandardInput => Some(Tap::new(io::stdin())),
            // As ffmpeg would hand it over.
            Input::Pipe(pipe) if pipe.container() == Container::Nut => {
                let pipes = pipe.take().into_iter().collect();
                return Self::read_from(pipes, config, reading).listen(Depth::Usual);
            }
            Input::Pipe(pipe) => pipe.take().map(Tap::new),
            _ => None,
        };
        let open = |depth| Self::open_by(config, looped, reading, (depth, tap.as_ref()));
        let opened = open(Depth::Usual);
        let depth = match &opened {
            Ok(opened) => opened.lacks_sound().then_some(Depth::LateSound),
            Err(IngestError::Unreadable { said, .. }) => Depth::after(said),
            Err(_) => None,
        };
        let listens = matches!(&config.input, Input::Address(it) if listening(it).is_some());
        let Some(depth) = depth.filter(|_| !listens && !reading.has_ended()) else {
            return opened;
        };
        drop((opened, reading.take()));
        open(depth)
    }

    fn open_by(
        config: &IngestConfig,
        looped: bool,
        reading: &Arc<Reading>,
        (depth, tap): (Depth, Option<&Tap>),
    ) -> Result<Opened, IngestError> {
        let arguments = arguments(config, looped, depth);
        let stdin = match tap {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let outputs = if depth == Depth::LateSound { 2 } else { 1 };
        let (mut process, pipes) = Process::start_with(&arguments, outputs, stdin)?;
        if let Some(tap) = tap {
            tap.fill(process.stdin());
        }
        let reader = Self::read_from(pipes, config, reading);
        reading.hold(process);
        reader.listen(depth)
    }

    /// Begins to read NUT from each of `pipes`, one thread for each. What is inside is said by the first alone: others may be
    /// quicker, and what they hold is known.
    fn read_from(pipes: Vec<PipeReader>, config: &IngestConfig, reading: &Arc<Reading>) -> Self {
        let (header_sender, headers) = sync_channel(1);
        let mut header_sender = Some(header_sender);
        let (sender, packets) = sync_channel(AHEAD);
        for (first_stream, pipe) in pipes.into_iter().enumerate() {
            let (headers, packets) = (header_sender.take(), sender.clone());
            thread::spawn(move || read(pipe, first_stream, headers, &packets));
        }
        Self {
            reading: Arc::clone(reading),
            packets,
            headers,
            label: config.input.to_string(),
            heard: 0,
        }
    }

    fn listen(mut self, depth: Depth) -> Result<Opened, IngestError> {
        let Ok(mut streams) = self.headers.recv() else {
            return Err(self.unreadable());
        };
        if depth == Depth::LateSound {
            streams.truncate(1);
            streams.push(encoded_sound());
        }
        let is_video = |packet: &Packet| {
            let class = streams.get(packet.stream).map(|stream| stream.class);
            matches!(class, Some(NutClass::Video(..)))
        };
        let mut first: Vec<Packet> = Vec::new();
        let mut until = None;
        let has_video = (streams.iter()).any(|it| matches!(it.class, NutClass::Video(..)));
        loop {
            let pictures = first.iter().filter(|it| is_video(it)).count();
            let left = until.map_or(LISTEN, |until: Instant| {
                until.saturating_duration_since(Instant::now())
            });
            let has_enough = pictures >= MIN_PICTURES || !has_video;
            if pictures >= MAX_PICTURES || first.len() == AHEAD || has_enough && left.is_zero() {
                break;
            }
            let wait = if has_enough || until.is_none() {
                left
            } else {
                LISTEN
            };
            match self.packets.recv_timeout(wait) {
                Ok(packet) => {
                    until.get_or_insert_with(|| Instant::now() + LISTEN);
                    first.push(packet);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if first.is_empty() {
            return Err(self.unreadable());
        }
        // What it says of the way in, people need not hear: the input was understood.
        self.heard = self.reading.lines_said();
        Ok(Opened {
            demuxer: self,
            streams,
            first,
            depth,
        })
    }

    /// The next packet.
    ///
    /// # Errors
    /// [`Timeout`](RecvTimeoutError::Timeout) if none came in [`SILENCE`], [`Disconnected`](RecvTimeoutError::Disconnected) at
    /// the end.
    pub(super) fn next(&mut self) -> Result<Packet, RecvTimeoutError> {
        self.packets.recv_timeout(SILENCE)
    }

    /// How many lines ffmpeg has complained in since the last call, and the last of them.
    pub(super) fn complaint(&mut self) -> Option<(u64, String)> {
        let before = core::mem::replace(&mut self.heard, self.reading.lines_said());
        let lines = self.heard.saturating_sub(before);
        let last = (lines > 0).then(|| self.reading.last_said())?;
        Some((lines, last?))
    }

    /// Ends ffmpeg, which waits for what does not come.
    pub(super) fn cut(&self) {
        drop(self.reading.take());
    }

    /// Waits until ffmpeg has ended.
    ///
    /// # Errors
    /// If it failed; what it said last is in the error.
    pub(super) fn end(self) -> Result<(), IngestError> {
        let process = self.reading.take();
        match process.map(|mut process| process.finish()) {
            Some((false, said)) => Err(IngestError::Broken(said)),
            _ => Ok(()),
        }
    }

    /// Why there is nothing.
    fn unreadable(&mut self) -> IngestError {
        let process = self.reading.take();
        let said = process.map(|mut process| process.end()).unwrap_or_default();
        let said = match said.is_empty() {
            true => "there is nothing in it".to_owned(),
            false => said,
        };
        let input = self.label.clone();
        IngestError::Unreadable { input, said }
    }
}

/// Sound that the ffmpeg which opens the input encodes.
fn encoded_sound() -> NutStream {
    NutStream {
        class: NutClass::Audio(AudioConfig::SAMPLE_RATE, MAX_CHANNELS),
        codec: Bytes::from_static(b"Opus"),
        parameters: Bytes::new(),
        decode_delay: 0,
    }
}

/// How ffmpeg is told to open an input, and to hold nothing back.
fn arguments(config: &IngestConfig, looped: bool, depth: Depth) -> Vec<OsString> {
    // Times that jump are bridged, in containers in which they may.
    let live = format!("{} -dts_delta_threshold 1", depth.options());
    let (options, input): (_, OsString) = match &config.input {
        Input::File(path) => {
            let looped = if looped { "-stream_loop -1" } else { "" };
            (looped.to_owned(), path.into())
        }
        Input::Address(address) => {
            let options = listening(address).or(pulling(address));
            (
                format!("{live} {}", options.unwrap_or_default()),
                address.into(),
            )
        }
        Input::Camera(path) => (device("v4l2", config), path.into()),
        Input::Device(format, name) => (device(format, config), name.into()),
        Input::Pipe(pipe) => {
            let demuxer = pipe.container().demuxer();
            let options = format!("{live} -protocol_whitelist pipe -f {demuxer}");
            (options, "pipe:0".into())
        }
        Input::StandardInput | Input::Test => (live, "pipe:0".into()),
    };
    let mut arguments: Vec<_> = words(&options).chain(["-i".into(), input]).collect();
    // What ffmpeg draws itself has no form in which it could be copied.
    let copied = match &config.input {
        Input::Device(format, _) if *format == "lavfi" => {
            "-c:v rawvideo -pix_fmt yuv420p -c:a pcm_s16le"
        }
        _ => "-c copy",
    };
    let nut = "-write_index 0 -flush_packets 1 -f nut";
    if depth == Depth::LateSound {
        let audio = config.audio.clone().unwrap_or_default();
        arguments.extend(words(&format!("-map 0:v:0 {copied} {nut}")));
        arguments.push(pipe_url(0));
        let channels = config.wish.channels.unwrap_or(MAX_CHANNELS);
        let sound = format!(
            "-map 0:a:0 -af aresample=async=1000 -ac {channels} -ar {} {} {nut}",
            AudioConfig::SAMPLE_RATE,
            audio.options()
        );
        arguments.extend(words(&sound));
        arguments.push(pipe_url(1));
    } else {
        let tracks = match config.audio {
            Some(_) => "-map 0:v:0? -map 0:a:0?",
            None => "-map 0:v:0?",
        };
        let output = format!("{tracks} {copied} -max_interleave_delta 1 {nut}");
        arguments.extend(words(&output));
        arguments.push(pipe_url(0));
    }
    arguments
}

/// Options for a device: pictures in the size and as often as they are wished, or as it gives them.
fn device(format: &str, config: &IngestConfig) -> String {
    let mut options = format!("-fflags nobuffer -f {format}");
    if format == "lavfi" {
        // Alone among devices it draws as fast as it can.
        options.insert_str(0, "-re ");
    }
    if matches!(format, "v4l2" | "x11grab") {
        let (rate, size) = (config.wish.rate, config.wish.size);
        let rate = rate.unwrap_or(config.video.frames_per_second());
        options.push_str(&format!(" -framerate {rate}"));
        let usual = (format == "v4l2").then(|| config.video.source_size());
        if let Some(size) = size.or(usual) {
            options.push_str(&format!(" -video_size {size}"));
        }
    }
    options
}

/// Hands on what comes by a pipe to an ffmpeg, and from its beginning to the next one, as long as it is not known what it holds.
#[derive(Debug)]
struct Tap(SyncSender<ChildStdin>);

impl Tap {
    fn new(source: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel(1);
        thread::spawn(move || pour(source, &receiver));
        Self(sender)
    }

    /// Fills another ffmpeg from now on, once the one before has ended.
    fn fill(&self, stdin: ChildStdin) {
        // A source that is over has nothing to give.
        let _ = self.0.try_send(stdin);
    }
}

/// Carries octets from `source` to the ffmpeg that is there, and all of them to the next if that one ends.
fn pour(mut source: impl Read, ffmpegs: &Receiver<ChildStdin>) {
    let Ok(mut stdin) = ffmpegs.recv() else {
        return;
    };
    let (mut chunk, mut kept) = (vec![0; READ_SIZE], Some(Vec::new()));
    loop {
        let count = match source.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        if let Some(octets) = &mut kept {
            octets.extend_from_slice(&chunk[..count]);
        }
        if count > 0 && stdin.write_all(&chunk[..count]).is_ok() {
            let is_known = matches!(ffmpegs.try_recv(), Err(TryRecvError::Disconnected));
            kept = kept.filter(|kept| !is_known && kept.len() <= MAX_KEPT);
            continue;
        }
        drop(stdin);
        // The end of the source, or of the ffmpeg: the next one gets what there was.
        let (Some(octets), Ok(mut next)) = (&kept, ffmpegs.recv()) else {
            return;
        };
        if next.write_all(octets).is_err() || count == 0 {
            return;
        }
        stdin = next;
    }
}

/// Options for an address without a host, such as `rtmp://:1935/key`: it is listened on.
pub(super) fn listening(address: &str) -> Option<&'static str> {
    let (scheme, rest) = address.split_once("://")?;
    match scheme {
        "rtmp" | "rtmps" if rest.starts_with(':') => Some("-listen 1"),
        "srt" if rest.starts_with(':') => Some("-mode listener"),
        _ => None,
    }
}

/// How ffmpeg is told to fetch from a camera: by TCP, as UDP loses what does not fit its buffers, and without waiting for ever for
/// one that is gone. In microseconds.
pub(super) fn pulling(address: &str) -> Option<&'static str> {
    let options = "-rtsp_transport tcp -timeout 5000000";
    address.starts_with("rtsp://").then_some(options)
}

/// Reads what ffmpeg hands over, until it or whoever takes the packets ends.
fn read(
    mut pipe: PipeReader,
    first_stream: usize,
    mut headers: Option<SyncSender<Vec<NutStream>>>,
    packets: &SyncSender<Packet>,
) {
    let mut reader = NutReader::default();
    let mut octets = vec![0; READ_SIZE];
    loop {
        match pipe.read(&mut octets) {
            Ok(0) => return,
            Ok(count) => reader.push(&octets[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let arrived_at = clock::wall();
        loop {
            let frame = match reader.frame() {
                Ok(frame) => frame,
                Err(error) => return complain(error),
            };
            if reader.is_known()
                && let Some(headers) = headers.take()
            {
                // There is room for it.
                let _ = headers.try_send(reader.streams().to_vec());
            }
            let Some(frame) = frame else { break };
            let packet = Packet {
                stream: first_stream + frame.stream,
                media: frame.time.ticks(1_000_000),
                key: frame.key,
                payload: frame.payload,
                arrived_at,
            };
            if packets.send(packet).is_err() {
                return;
            }
        }
    }
}

fn complain(error: NutError) {
    tracing::warn!("what ffmpeg hands over: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nut::writer::{file_header, put_frame};

    /// Sound that is encoded comes by its own pipe, here before any picture.
    #[test]
    fn pictures_are_pictures_also_where_sound_comes_first() {
        let (pictures_end, mut pictures) = io::pipe().unwrap();
        let (sound_end, mut sound) = io::pipe().unwrap();
        let (config, reading) = (IngestConfig::default(), Arc::default());
        let demuxer = Demuxer::read_from(vec![pictures_end, sound_end], &config, &reading);

        let mut octets = file_header(&[encoded_sound()]);
        put_frame(&mut octets, 0, 0, true, b"sound");
        sound.write_all(&octets).unwrap();
        assert_eq!(demuxer.packets.recv().unwrap().stream, 1);
        let mut octets = file_header(&[NutStream {
            class: NutClass::Video(320, 180),
            codec: Bytes::from_static(b"H264"),
            parameters: Bytes::new(),
            decode_delay: 0,
        }]);
        for number in 0..MAX_PICTURES as u64 {
            put_frame(&mut octets, 0, number * 40_000, number == 0, b"picture");
        }
        pictures.write_all(&octets).unwrap();

        let opened = demuxer.listen(Depth::LateSound).unwrap();
        assert_eq!(opened.first.len(), MAX_PICTURES);
        let (number, stream) = opened.stream(true).unwrap();
        assert_eq!((number, stream.class), (0, NutClass::Video(320, 180)));
        assert_eq!(opened.stream(false), Some((1, &encoded_sound())));
    }

    #[test]
    fn addresses_without_a_host_are_listened_on() {
        assert_eq!(listening("rtmp://:1935/key"), Some("-listen 1"));
        assert_eq!(listening("srt://:9000"), Some("-mode listener"));
        assert_eq!(listening("rtmp://server/app"), None);
        assert_eq!(listening("rtsp://:8554/x"), None);
        assert!(pulling("rtsp://camera/x").is_some() && pulling("rtmp://server/app").is_none());
    }
}
