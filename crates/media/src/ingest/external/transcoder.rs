//! Encoders for what an input holds already encoded: one ffmpeg decodes it and makes the rungs.
//!
//! ```text
//!  Packet ─ NUT ─▶ ffmpeg: decode, split ┬─ scale ─ encoder ─ NUT ─▶ reader thread, rung 0 ─▶ MediaEvent
//!   └── Stamp, per rung ─────────────────┴──────────────────────────▶ …
//! ```

use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use namecast_stream::SampleRate;
use smart_default::SmartDefault;

use super::super::codec;
use super::super::description::Colours;
use super::super::encoder::{Output, ROUNDED, Stamp};
use super::super::ffmpeg::{Process, pipe_url, words};
use super::super::ladder::{PictureSize, Rung};
use super::super::{AudioConfig, IngestError, Sink, StreamKind, VideoConfig};
use super::clock::Origin;
use super::demuxer::Packet;
use super::turn::Turn;
use crate::nut::{NutFrame, NutStream, writer};

/// Packets that may wait for the encoders; what is beyond is left out, up to the next key frame.
const QUEUED: usize = 64;
/// Key interval of an encoder that makes no key frame by itself.
const NEVER: u32 = 100_000;
/// Frames that may be inside an encoder before those after them are left out.
const MAX_IN_FLIGHT: usize = 256;

/// Octets that an ffmpeg may take which decodes and encodes what strangers send: in 2160p with three rungs it takes 1 to 2 GB.
const MAX_MEMORY: u64 = 4 << 30;

/// Returns ffmpeg's input options. A decoder with `low_delay` would lose reordered frames. For live pictures, it decodes frames
/// one after the other instead, as each thread beside the first delays pictures by one frame.
fn input(stream: &NutStream, is_live: bool) -> String {
    let hurry = match (stream.decode_delay, is_live) {
        (0, _) => "-flags low_delay",
        (_, true) => "-thread_type slice",
        (_, false) => "",
    };
    format!("-probesize 32 -analyzeduration 0 {hurry} -copyts -f nut -i pipe:0")
}

/// One ffmpeg that decodes and encodes.
#[derive(Debug)]
pub(super) struct Transcoder {
    process: Process,
    packets: SyncSender<Packet>,
    stamps: Vec<SyncSender<Stamp>>,
    /// Set while packets are left out up to the next key frame.
    waits_for_key: bool,
}

impl Transcoder {
    /// Makes the rungs of `config` that are not copied, of the pictures of `stream`: one frame of each, or as many a second as
    /// `clock` counts.
    ///
    /// # Errors
    /// If ffmpeg cannot be started.
    pub(super) fn video(
        stream: &NutStream,
        config: &VideoConfig,
        preparation: &Preparation,
        sink: &Sink,
        (clock, origin): (Option<PictureClock>, &Arc<Origin>),
    ) -> Result<Self, IngestError> {
        let rungs = config.ladder.rungs().iter().enumerate();
        let rungs: Vec<_> = rungs.filter(|(_, rung)| !rung.is_copied()).collect();
        let rate = clock.as_ref().map(|clock| clock.rate);
        let arguments = video_arguments(stream, config, &rungs, (preparation, rate));
        let (process, pipes) = Process::start(&arguments, rungs.len())?;
        if preparation.is_confined {
            process.confine(MAX_MEMORY);
        }
        let mut stamps = Vec::new();
        for (pipe, (rung, _)) in pipes.into_iter().zip(rungs) {
            let origin = Arc::clone(origin);
            let output = Output::timed((StreamKind::Video, rung), sink.clone(), pipe, origin);
            if let Some(clock) = clock.clone() {
                thread::spawn(move || output.run_by(|frame| Some(clock.stamp(frame))));
                continue;
            }
            let (sender, receiver) = sync_channel(MAX_IN_FLIGHT);
            stamps.push(sender);
            thread::spawn(move || output.run(&receiver));
        }
        let header = writer::picture_header(stream, preparation.pixel_aspect, preparation.rate);
        Ok(Self::new(process, header, stamps))
    }

    /// Makes Opus packets of the sound of `stream`.
    ///
    /// # Errors
    /// If ffmpeg cannot be started.
    pub(super) fn audio(
        stream: &NutStream,
        config: &AudioConfig,
        (clock, is_confined): (SoundClock, bool),
        sink: &Sink,
    ) -> Result<Self, IngestError> {
        let (process, pipes) = Process::start(&audio_arguments(stream, config), 1)?;
        if is_confined {
            process.confine(MAX_MEMORY);
        }
        for pipe in pipes {
            let clock = clock.clone();
            let origin = Arc::clone(&clock.origin);
            let output = Output::timed((StreamKind::Audio, 0), sink.clone(), pipe, origin);
            thread::spawn(move || output.run_by(|packet| Some(clock.stamp(packet))));
        }
        let header = writer::file_header(core::slice::from_ref(stream));
        Ok(Self::new(process, header, Vec::new()))
    }

    fn new(mut process: Process, header: Vec<u8>, stamps: Vec<SyncSender<Stamp>>) -> Self {
        let mut stdin = process.stdin();
        let (packets, queue) = sync_channel::<Packet>(QUEUED);
        thread::spawn(move || {
            // An ffmpeg that ended shows where the next packet is handed over.
            let mut written = stdin.write_all(&header);
            let mut octets = Vec::new();
            while written.is_ok()
                && let Ok(packet) = queue.recv()
            {
                octets.clear();
                writer::put_frame(&mut octets, 0, packet.pts, packet.key, &packet.payload);
                written = stdin.write_all(&octets);
            }
        });
        Self {
            process,
            packets,
            stamps,
            waits_for_key: false,
        }
    }

    /// Says what belongs to the next frame in the order in which they are shown, before the packet is handed over with which a
    /// decoder gives it.
    pub(super) fn stamp(&self, stamp: Stamp) {
        for stamps in &self.stamps {
            // Of an encoder that holds back so many, or has ended, the next packet says so.
            let _ = stamps.try_send(stamp);
        }
    }

    /// Hands over a packet, without waiting. Returns false if it was left out because the encoders do not keep up.
    ///
    /// # Errors
    /// If ffmpeg has ended; what it said last is in the error.
    pub(super) fn submit(&mut self, packet: Packet) -> Result<bool, IngestError> {
        self.waits_for_key &= !packet.key;
        if self.waits_for_key {
            return Ok(false);
        }
        match self.packets.try_send(packet) {
            Ok(()) => Ok(true),
            Err(TrySendError::Full(_)) => {
                self.waits_for_key = true;
                Ok(false)
            }
            Err(TrySendError::Disconnected(_)) => Err(IngestError::Encoder(self.process.end())),
        }
    }

    /// Lets it encode what it has taken, and end. Returns what it said last if it failed.
    pub(super) fn finish(self) -> Option<String> {
        let Self {
            mut process,
            packets,
            ..
        } = self;
        drop(packets);
        let (has_succeeded, said) = process.finish();
        (!has_succeeded).then_some(said)
    }
}

/// When packets of sound were heard, which are cut anew, and their numbers.
#[derive(Clone, Debug)]
pub(super) struct SoundClock {
    pub(super) origin: Arc<Origin>,
    /// Packets so far, by all encoders of this sound.
    pub(super) count: Arc<AtomicU64>,
}

impl SoundClock {
    fn stamp(&self, packet: &NutFrame) -> Stamp {
        let media = packet.time.ticks(1_000_000);
        Stamp {
            position: self.count.fetch_add(1, Ordering::Relaxed),
            captured_at: self.origin.at(media),
            number: media,
        }
    }
}

/// When pictures were captured of which an encoder makes so many a second, and their positions.
#[derive(Clone, Debug)]
pub(super) struct PictureClock {
    rate: u32,
    origin: Arc<Origin>,
    /// Position of the encoder's first frame.
    base: u64,
    /// Time of that frame.
    first: Arc<OnceLock<u64>>,
    /// Position after those of all frames so far.
    next: Arc<AtomicU64>,
}

impl PictureClock {
    /// The clock of an encoder that begins now.
    pub(super) fn new(rate: u32, origin: &Arc<Origin>, next: &Arc<AtomicU64>) -> Self {
        Self {
            rate,
            origin: Arc::clone(origin),
            base: next.load(Ordering::Relaxed),
            first: Arc::default(),
            next: Arc::clone(next),
        }
    }

    fn stamp(&self, frame: &NutFrame) -> Stamp {
        let media = frame.time.ticks(1_000_000);
        let since = media.saturating_sub(*self.first.get_or_init(|| media));
        let position = self.base + (since * u64::from(self.rate) + 500_000) / 1_000_000;
        self.next.fetch_max(position + 1, Ordering::Relaxed);
        Stamp {
            position,
            captured_at: self.origin.at(media),
            number: media,
        }
    }
}

/// Filters to apply after decoding, and properties that decoders need.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct Preparation {
    /// Frames a second.
    #[default(SampleRate::new(30, 1))]
    pub(super) rate: SampleRate,
    pub(super) turn: Turn,
    /// Two fields of different times make a frame.
    pub(super) is_interlaced: bool,
    /// Width of a pixel over its height.
    #[default((1, 1))]
    pub(super) pixel_aspect: (u32, u32),
    pub(super) colours: Colours,
    /// Whether somebody waits for them.
    pub(super) is_live: bool,
    /// Whether strangers send them.
    pub(super) is_confined: bool,
    /// Presentation time of the first picture that is shown, in microseconds, if an edit list cuts others away before it.
    pub(super) begins_at: Option<u64>,
}

impl Preparation {
    /// Options of the decoder: colours as the container states them, where the pictures do not.
    fn options(&self) -> String {
        let colours = &self.colours;
        let known = |name: &Option<String>, names: &[&str]| {
            name.clone().filter(|name| names.contains(&name.as_str()))
        };
        let options = [
            ("-color_range", known(&colours.range, &["tv", "pc"])),
            ("-colorspace", known(&colours.space, &SPACES)),
            ("-color_primaries", known(&colours.primaries, &PRIMARIES)),
            ("-color_trc", known(&colours.transfer, &TRANSFERS)),
        ];
        let options = options.into_iter();
        let options = options.filter_map(|(option, value)| Some(format!("{option} {} ", value?)));
        options.collect()
    }

    /// Filters before pictures are scaled for each rung; they are resampled to `rate` frames a second, if one is given.
    fn filters(&self, rate: Option<u32>) -> String {
        let begins_at = self.begins_at.map(|micros| {
            // Times are rounded on the way.
            format!(
                "trim=start={:.6}",
                micros.saturating_sub(ROUNDED) as f64 / 1e6
            )
        });
        let deinterlaced = self.is_interlaced.then(|| DEINTERLACE.to_owned());
        let turned = self.turn.filters().into_iter().map(str::to_owned);
        let resampled = rate.map(|rate| format!("fps={rate}"));
        let filters = begins_at.into_iter().chain(deinterlaced).chain(turned);
        let filters: Vec<_> = filters.chain(resampled).collect();
        match filters.is_empty() {
            true => "null".to_owned(),
            false => filters.join(","),
        }
    }

    /// Filters that make pictures of one size with square pixels, eight bits deep and of standard dynamic range.
    fn scaled(&self, size: PictureSize) -> String {
        let (width, height) = (size.width, size.height);
        let scale = format!("scale={width}:{height}:flags=bilinear");
        match self.colours.is_high_dynamic_range() {
            true => format!("{scale},{},setsar=1,format=yuv420p", self.tone_mapped()),
            false => format!("{scale}:out_range=tv,setsar=1,format=yuv420p"),
        }
    }

    /// Filters from a high dynamic range to BT.709, with the white of ITU-R BT.2408 as white.
    fn tone_mapped(&self) -> String {
        let colours = &self.colours;
        let name = |name: &Option<String>, names: &[&'static str], usual: &'static str| {
            let known = names.iter().find(|it| Some(**it) == name.as_deref());
            known.copied().unwrap_or(usual)
        };
        let transfer = name(&colours.transfer, &TRANSFERS, "smpte2084");
        let primaries = name(&colours.primaries, &PRIMARIES, "bt2020");
        let space = name(&colours.space, &SPACES, "bt2020nc");
        let range = name(&colours.range, &["tv", "pc"], "tv");
        format!(
            "zscale=tin={transfer}:pin={primaries}:min={space}:rin={range}:t=linear:npl=203,format=gbrpf32le,zscale=p=bt709,\
             tonemap=hable:desat=0,zscale=t=bt709:m=bt709:r=tv"
        )
    }
}

/// One frame of each two fields, so that times stay; pictures that are progressive pass.
const DEINTERLACE: &str = "bwdif=mode=send_frame:deint=interlaced";
/// Colours by names that ffmpeg both prints and takes.
const SPACES: [&str; 7] = [
    "bt709",
    "fcc",
    "bt470bg",
    "smpte170m",
    "smpte240m",
    "bt2020nc",
    "bt2020c",
];
const PRIMARIES: [&str; 7] = [
    "bt709",
    "bt470m",
    "bt470bg",
    "smpte170m",
    "smpte240m",
    "film",
    "bt2020",
];
const TRANSFERS: [&str; 6] = [
    "bt709",
    "smpte170m",
    "smpte240m",
    "linear",
    "smpte2084",
    "arib-std-b67",
];

fn video_arguments(
    stream: &NutStream,
    config: &VideoConfig,
    rungs: &[(usize, &Rung)],
    (preparation, rate): (&Preparation, Option<u32>),
) -> Vec<OsString> {
    let device = codec::device(config.encoder());
    let upload = codec::upload_filter(config.encoder());
    let options = preparation.options();
    let mut arguments: Vec<_> = words(device)
        .chain(words(&options))
        .chain(words(&input(stream, preparation.is_live)))
        .collect();
    let splits: String = (0..rungs.len())
        .map(|index| format!("[s{index}]"))
        .collect();
    let scale = |(index, (_, rung)): (usize, &(usize, &Rung))| {
        let scaled = preparation.scaled(rung.size);
        format!(";[s{index}]{scaled}{upload}[v{index}]")
    };
    let scales: String = rungs.iter().enumerate().map(scale).collect();
    let filters = preparation.filters(rate);
    arguments.push("-filter_complex".into());
    arguments.push(format!("[0:v]{filters},split={}{splits}{scales}", rungs.len()).into());
    // Frames that were copied and frames that were encoded are key frames together, and no others are.
    let (keys, key_interval) = match config.ladder.rungs().iter().any(Rung::is_copied) {
        true => ("-force_key_frames source", NEVER),
        false => ("", config.key_interval),
    };
    for (index, (_, rung)) in rungs.iter().enumerate() {
        let options = config.options(rung, key_interval);
        let output = format!(
            "-map [v{index}] {options} {keys} -fps_mode passthrough -enc_time_base 1:90000 -write_index 0 -flush_packets 1 -f nut"
        );
        arguments.extend(words(&output));
        arguments.push(pipe_url(index));
    }
    arguments
}

fn audio_arguments(stream: &NutStream, config: &AudioConfig) -> Vec<OsString> {
    let line = format!(
        "{} -map 0:a:0 -af aresample=async=1000 -ac {} -ar {} {} \
         -write_index 0 -flush_packets 1 -f nut",
        input(stream, true),
        config.channels,
        AudioConfig::SAMPLE_RATE,
        config.options(),
    );
    words(&line).chain([pipe_url(0)]).collect()
}
