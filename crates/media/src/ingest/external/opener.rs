//! Arguments for the ffmpeg that opens an input and hands over its packets without decoding them.

use std::ffi::OsString;

use super::super::ffmpeg::{local, pipe_url, words};
use super::super::source::Input;
use super::super::{AudioConfig, IngestConfig};
use super::MAX_CHANNELS;
use super::captions::TrackCodec;
use super::joiner::TIME_OFFSET;

/// Attempt to open an input: the first, or the second after a failure that tells what the input needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Attempt {
    /// ffmpeg probes the input for up to one second.
    #[default]
    First,
    /// ffmpeg probes for up to ten seconds: the next key frame is far. Pictures without a presentation time, which NUT refuses, get
    /// their decoding time: a camera's first that has B-frames. This delays each picture until the next has come.
    LatePictures,
    /// ffmpeg probes half a second of the input, however large: sound is announced, and comes behind large pictures.
    LateSound,
    /// The ffmpeg that opens the input encodes the sound with this number of channels: the sound begins later than half a second, or
    /// NUT cannot carry it.
    EncodedSound(u32),
    /// The ffmpeg that opens the input decodes the pictures, which NUT cannot carry.
    DecodedPictures,
    /// Each packet of the pictures may hold two, as those of MPEG-4 in AVI do.
    PackedPictures,
}

impl Attempt {
    /// Returns the next attempt, after a failure with this message of ffmpeg.
    pub(super) fn after(self, said: &str) -> Option<Self> {
        let of_pictures = ["dimensions not set", "Negative pts not supported"];
        if said.contains("No codec tag defined for stream 0") {
            Some(Self::DecodedPictures)
        } else if said.contains("No codec tag defined for stream 1") {
            Some(Self::EncodedSound(MAX_CHANNELS))
        } else if said.contains("sample rate not set") {
            Some(match self {
                Self::First => Self::LateSound,
                _ => Self::EncodedSound(MAX_CHANNELS),
            })
        } else {
            let is_late = of_pictures.iter().any(|words| said.contains(words));
            is_late.then_some(Self::LatePictures)
        }
    }

    /// Returns whether another attempt may follow.
    pub(super) const fn is_early(self) -> bool {
        matches!(self, Self::First | Self::LateSound)
    }

    /// Enough to see the parameters of each track that an input announces, and no more.
    const fn options(self) -> &'static str {
        match self {
            Self::LatePictures => "-probesize 4000000 -analyzeduration 10000000",
            Self::LateSound => "-probesize 4000000 -analyzeduration 500000",
            _ => "-probesize 65536 -analyzeduration 1000000",
        }
    }
}

/// How an input is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) attempt: Attempt,
    /// Track of subtitles that is handed over, too: its number among the tracks of subtitles.
    pub(super) track: Option<(usize, TrackCodec)>,
}

/// Arguments of ffmpeg, and the pipes of its output.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) arguments: Vec<OsString>,
    /// Pipes that carry NUT, of which they are the first.
    pub(super) nuts: usize,
    /// Streams for which lines of times come in one more pipe; 0: there is none. Octets and lines of a track of subtitles come in the last two.
    pub(super) lined: usize,
}

impl Opening {
    /// Returns the arguments that open the input of `config` without buffering.
    pub(super) fn new(config: &IngestConfig, looped: bool, plan: Plan) -> Self {
        let attempt = plan.attempt;
        let (options, input) = input(config, looped, attempt);
        let mut opening = Self {
            arguments: words(&options).chain(["-i".into(), input]).collect(),
            nuts: 0,
            lined: 0,
        };
        // Pictures that ffmpeg draws or decodes cannot be copied, and need no times beside those of NUT.
        let is_drawn = matches!(&config.input, Input::Device(format, _) if *format == "lavfi")
            || attempt == Attempt::DecodedPictures;
        let copied = match attempt {
            _ if is_drawn => "-c:v rawvideo -pix_fmt yuv420p -c:a pcm_s16le",
            Attempt::PackedPictures => "-c copy -copyinkf -bsf:v mpeg4_unpack_bframes",
            Attempt::LatePictures => LATE_PICTURES,
            _ => "-c copy -copyinkf",
        };
        let mut tracks = "-map 0:V:0? -map 0:a:0?";
        if config.audio.is_none() {
            tracks = "-map 0:V:0?";
        }
        if let Attempt::EncodedSound(channels) = attempt {
            tracks = "-map 0:V:0?";
            opening.add(&format!("{tracks} {copied} {NUT}"));
            opening.add(&format!("{} {NUT}", encoded_sound(config, channels)));
            opening.nuts = 2;
        } else {
            opening.add(&format!("{tracks} {copied} {NUT}"));
            opening.nuts = 1;
        }
        if !is_drawn && attempt != Attempt::LatePictures {
            opening.add(&format!("{tracks} {copied} -f framecrc"));
            opening.lined = if tracks.contains("0:a") { 2 } else { 1 };
        }
        if let Some((number, _)) = plan.track {
            let track = format!("-map 0:s:{number} -c copy");
            opening.add(&format!("{track} -f data"));
            opening.add(&format!("{track} -f framecrc"));
        }
        opening
    }

    /// Adds an output with these options, into the next pipe.
    fn add(&mut self, options: &str) {
        let common =
            format!("-output_ts_offset {TIME_OFFSET} -max_interleave_delta 1 -flush_packets 1");
        let outputs = self.pipes();
        self.arguments.extend(words(&format!("{options} {common}")));
        self.arguments.push(pipe_url(outputs));
    }

    /// Returns how many pipes ffmpeg answers in.
    pub(super) fn pipes(&self) -> usize {
        let urls = (0..).map(pipe_url);
        let is_used = |url: &OsString| self.arguments.contains(url);
        urls.take_while(is_used).count()
    }
}

const NUT: &str = "-write_index 0 -f nut";

/// Decoding times are counted, as ffmpeg would move presentation times by those it guesses for a camera; they follow from the others.
const LATE_PICTURES: &str = "-c copy -copyinkf \
    -bsf:v setts=pts=if(eq(PTS\\,NOPTS)\\,min(DTS\\,NEXT_PTS-DURATION)\\,PTS):dts=N";

/// Options for sound that the ffmpeg which opens the input encodes.
fn encoded_sound(config: &IngestConfig, channels: u32) -> String {
    let audio = config.audio.clone().unwrap_or_default();
    format!(
        "-map 0:a:0 -af aresample=async=1000 -ac {channels} -ar {} {}",
        AudioConfig::SAMPLE_RATE,
        audio.options()
    )
}

/// Options of the input, and its name.
fn input(config: &IngestConfig, looped: bool, attempt: Attempt) -> (String, OsString) {
    let live = attempt.options();
    let (options, input): (_, OsString) = match &config.input {
        Input::File(path) => {
            let looped = if looped { "-stream_loop -1" } else { "" };
            // AVI and ASF leave presentation times out.
            (format!("-fflags +genpts {looped}"), local(path))
        }
        Input::Address(address) => {
            let options = listening(address).or(pulling(address));
            let options = options.unwrap_or_default();
            (format!("{live} -fflags +genpts {options}"), address.into())
        }
        Input::Device(format, name) => (device(format, name, config), name.into()),
        Input::Pipe(pipe) => {
            let demuxer = pipe.container().demuxer();
            let options = format!("{live} -fflags +genpts -protocol_whitelist pipe -f {demuxer}");
            (options, "pipe:0".into())
        }
        Input::StandardInput | Input::Test => (format!("{live} -fflags +genpts"), "pipe:0".into()),
    };
    (options, input)
}

/// Options for a device: pictures in the size and as often as they are wished, or as it gives them.
fn device(format: &str, name: &str, config: &IngestConfig) -> String {
    let mut options = format!("-fflags nobuffer -f {format}");
    let (rate, size) = (config.wish.rate, config.wish.size);
    let usual_rate = Some(config.video.frames_per_second());
    let (rate, size) = match format {
        // Alone among devices it draws as fast as it can.
        "lavfi" => return format!("-re {options}"),
        "v4l2" => (
            rate.or(usual_rate),
            size.or(Some(config.video.source_size())),
        ),
        "x11grab" | "gdigrab" => (rate.or(usual_rate), size),
        // Most cameras refuse ffmpeg's default of 29.97 frames a second, and all refuse a size that they lack.
        "avfoundation" if !name.starts_with("none") => (rate.or(usual_rate), size),
        "dshow" if name.contains("video=") => (rate, size),
        _ => return options,
    };
    if let Some(rate) = rate {
        options.push_str(&format!(" -framerate {rate}"));
    }
    if let Some(size) = size {
        options.push_str(&format!(" -video_size {size}"));
    }
    options
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

/// Returns whether an address is of something that is fetched in pieces, and may have an end.
pub(super) fn is_fetched(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("http" | "https" | "ftp" | "sftp" | "file"))
}

/// Options to fetch from a camera: TCP where the camera offers it, as UDP overflows its receive buffer, and a timeout in
/// microseconds.
pub(super) fn pulling(address: &str) -> Option<&'static str> {
    let options = "-rtsp_flags prefer_tcp -timeout 5000000";
    address.starts_with("rtsp://").then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sound whose parameters come late is probed for longer before it is encoded.
    #[test]
    fn late_sound_is_probed_for_before_it_is_encoded() {
        let said = "[nut @ 0x5] sample rate not set";
        let second = Attempt::First.after(said);
        assert_eq!(second, Some(Attempt::LateSound));
        assert!(Attempt::LateSound.is_early());
        let third = Attempt::LateSound.after(said);
        assert_eq!(third, Some(Attempt::EncodedSound(MAX_CHANNELS)));
        assert_eq!(Attempt::First.after("Broken pipe"), None);
    }

    #[test]
    fn devices_are_asked_for_what_they_can_give() {
        let mut config = IngestConfig::default();
        let options = |config: &_, format, name| device(format, name, config);
        for (format, name, usual) in [
            ("v4l2", "/dev/video0", " -framerate 30 -video_size 1280x720"),
            ("x11grab", ":0", " -framerate 30"),
            ("avfoundation", "default:none", " -framerate 30"),
            ("avfoundation", "none:default", ""),
            ("dshow", "video=Camera", ""),
            ("dshow", "audio=Microphone", ""),
            ("gdigrab", "desktop", " -framerate 30"),
            ("alsa", "default", ""),
        ] {
            let expected = format!("-fflags nobuffer -f {format}{usual}");
            assert_eq!(options(&config, format, name), expected);
        }
        config.wish.rate = Some(15);
        let camera = options(&config, "dshow", "video=Camera:audio=Microphone");
        assert_eq!(camera, "-fflags nobuffer -f dshow -framerate 15");
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
