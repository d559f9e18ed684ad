//! Arguments of several commands.

use core::str::FromStr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use namecast_command::number;
use namecast_media::ingest::Limits;
use namecast_media::ingest::codec::{VideoCodec, made_by};
use namecast_media::ingest::ladder::{LadderWish, PictureSize};
use namecast_media::ingest::source::Input;
use namecast_packet::Name;
use namecast_stream::catalogue::{MAX_TITLE, is_title};
use namecast_units::Bitrate;

use crate::tls::TlsFiles;

/// How samples of a data stream are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Reading {
    /// In order, late ones left out.
    #[default]
    Complete,
    /// Each once and in order, however late: events, which have no rhythm.
    Events,
    /// Each as soon as it is there, unless a later one was: positions and other states.
    Newest,
}

/// What to publish, and how.
#[derive(Clone, Debug, Args)]
pub struct Media {
    /// 'test' for a drawn picture with a clock and a tone, 'camera' or /dev/videoN, 'microphone' or a device as pulse:default,
    /// alsa:hw:1 or x11grab::0, a file or an address that ffmpeg reads, an address without a host to wait for a pusher
    /// (rtmp://:1935/key, srt://:9000), or '-' for standard input. May be repeated: pictures and sound of the second are video-2
    /// and audio-2, unless it is the first to have any. Without it: test, unless there is --data.
    #[arg(short, long, value_name = "test|camera|FILE|-")]
    pub input: Vec<Input>,
    /// Publish lines as samples of a data stream with this name: of standard input (NAME=-) or of a file or pipe. May be
    /// repeated.
    #[arg(long, value_name = "NAME=FILE|-")]
    pub data: Vec<DataInput>,
    /// How lines of --data are read.
    #[arg(long, requires = "data", value_enum, default_value_t)]
    pub reading: Reading,
    /// Title of the stream for people, which players show beside the name: up to 200 octets.
    #[arg(long, value_name = "TEXT", value_parser = parse_title)]
    pub title: Option<String>,
    /// Start files again at their end.
    #[arg(long = "loop")]
    pub looped: bool,
    /// Bounds of inputs that strangers send.
    #[arg(skip)]
    pub limits: Option<Limits>,
    /// Files that hold the rungs of one video, encoded already: they are copied, and no picture is encoded. As many frames a
    /// second and between key frames in all, none that refers to a later one.
    #[arg(long, value_delimiter = ',', value_name = "FILE,FILE,…", conflicts_with_all = ["input", "ladder", "codec", "encoder", "fps", "gop", "size", "channels"])]
    pub encoded: Vec<PathBuf>,
    /// How.
    #[command(flatten)]
    pub encoding: Encoding,
}

impl Media {
    /// What is published besides data, and lies in no encoded files.
    pub fn inputs(&self) -> Vec<Input> {
        let is_named = !self.data.is_empty() || !self.encoded.is_empty() || !self.input.is_empty();
        match is_named {
            true => self.input.clone(),
            false => vec![Input::Test],
        }
    }

    /// The inputs, for people.
    pub fn input_text(&self) -> String {
        let inputs = self.inputs().into_iter().map(|input| input.to_string());
        let files = self.encoded.iter().map(|file| file.display().to_string());
        let data = self.data.iter().map(|data| match data.path.as_deref() {
            Some(path) => path.display().to_string(),
            None => Input::StandardInput.to_string(),
        });
        let all: Vec<_> = inputs.chain(files).chain(data).collect();
        all.join(", ")
    }

    /// Checks that no two inputs want the same pipe.
    ///
    /// # Errors
    /// What to write instead.
    pub fn check(&self) -> anyhow::Result<()> {
        let inputs = self
            .input
            .iter()
            .filter(|input| **input == Input::StandardInput);
        let data = self.data.iter().filter(|data| data.path.is_none());
        let count = inputs.count() + data.count();
        anyhow::ensure!(
            count <= 1,
            "standard input can be read once: name a file or a pipe (mkfifo) for the others"
        );
        Ok(())
    }
}

/// Lines that are samples of a data stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataInput {
    /// Name of the stream.
    pub name: String,
    /// The file; `None`: standard input.
    pub path: Option<PathBuf>,
}

impl FromStr for DataInput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=');
        match parts.filter(|(name, path)| !name.is_empty() && !path.is_empty()) {
            Some((name, path)) => Ok(Self {
                name: name.to_owned(),
                path: (path != "-").then(|| path.into()),
            }),
            None => Err(format!(
                "'{text}' is not a name and a file: write gps=- for standard input, or gps=FILE"
            )),
        }
    }
}

/// How pictures and sound are encoded and cut.
#[derive(Clone, Debug, Args)]
pub struct Encoding {
    /// Bitrates of the video; 1M@640x360 chooses the picture's size too, copy passes the input through as it is. Without: copy and
    /// 300k where the input is H.264, AV1 or VP9 that every player decodes, else 200k,1M,3M.
    #[arg(long, value_name = "copy,1M,…")]
    pub ladder: Option<LadderWish>,
    /// Video codec of what is encoded: h264, vp8, vp9 or av1. Without: that of the input where it is passed through, else h264.
    #[arg(long)]
    pub codec: Option<VideoCodec>,
    /// Encoder of ffmpeg for the video, such as h264_nvenc, h264_vaapi or libsvtav1.
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<EncoderName>,
    /// Frames a second of the encoded video; the input's without it. Nothing is passed through then, nor with --gop or --size.
    #[arg(long, value_parser = number::<u32>(1..=240))]
    pub fps: Option<u32>,
    /// Encode an input that has B-frames, instead of passing it through with the delay of their reordering.
    #[arg(long)]
    pub no_b_frames: bool,
    /// Frames from one key frame to the next; a second of them without it.
    #[arg(long, value_name = "FRAMES", value_parser = number::<u32>(1..=10_000))]
    pub gop: Option<u32>,
    /// Largest picture, as 1280x720; rungs whose bitrate suits a smaller one have that, in the same shape.
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub size: Option<PictureSize>,
    /// Leave sound out.
    #[arg(long)]
    pub no_audio: bool,
    /// Channels of the sound, 1 or 2. Without: those of the input, up to 2.
    #[arg(long, value_parser = number::<u32>(1..=2))]
    pub channels: Option<u32>,
    /// Bitrate of the sound: it is encoded then, with Opus. Without: Opus and AAC are passed through, else 64k.
    #[arg(long, value_name = "BITRATE")]
    pub audio_bitrate: Option<Bitrate>,
    /// Octets of payload that segments aim at.
    #[arg(long, default_value_t = 1_000, value_parser = number::<u32>(256..=8_000))]
    pub segment_size: u32,
    /// Parity segments on offer, as a share of the data segments; none is sent unless it is asked for.
    #[arg(long, default_value = "60%", value_name = "PERCENT", value_parser = parse_percent)]
    pub fec: u32,
}

/// One of ffmpeg's encoders, and the codec that it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncoderName {
    /// ffmpeg's name.
    pub name: String,
    /// What it makes.
    pub codec: VideoCodec,
}

impl FromStr for EncoderName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_word = |octet: u8| octet.is_ascii_alphanumeric() || b"_-".contains(&octet);
        let codec = made_by(text).filter(|_| text.bytes().all(is_word));
        let codec = codec.ok_or_else(|| {
            format!("'{text}' makes none of h264, vp8, vp9, av1: write an encoder of ffmpeg that does, such as h264_nvenc")
        })?;
        let name = text.to_owned();
        Ok(Self { name, codec })
    }
}

/// Where the page is served.
#[derive(Clone, Debug, Args)]
pub struct PagePort {
    /// Port of the page; if it is taken, the next free one.
    #[arg(long, default_value_t = 8080, value_parser = number::<u16>(0..=65_535))]
    pub port: u16,
    /// Let other devices on the network open the page and connect: listen on all addresses.
    #[arg(long)]
    pub listen: bool,
    /// Print a link whose first visitor may publish camera, screen or microphone under this name from the browser; the link works
    /// once. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub allow_publish: Vec<Name>,
    /// Its certificate.
    #[command(flatten)]
    pub tls: TlsFiles,
}

/// Where keys are.
#[derive(Clone, Debug, Args)]
pub struct Keys {
    /// Directory of keys; made on first use.
    #[arg(long, value_name = "DIRECTORY")]
    pub keys: Option<PathBuf>,
}

/// Whose signature counts.
#[derive(Clone, Debug, Args)]
pub struct Trusted {
    /// Accept only this key, or what it certified: the digest that the publisher prints, 64 hexadecimal digits, or a certificate
    /// file. Without it, the key that is met first is remembered, and another one refused from then on; see namecast key --help.
    #[arg(long, value_name = "DIGEST|CERTIFICATE-FILE")]
    pub key: Option<String>,
    /// Where keys are remembered.
    #[command(flatten)]
    pub known: KnownKeysFile,
}

/// Where keys of streams are remembered.
#[derive(Clone, Debug, Args)]
pub struct KnownKeysFile {
    /// File of remembered keys, a line each; without it: namecast/known_keys in the user's data directory.
    #[arg(long, value_name = "FILE")]
    pub known_keys: Option<PathBuf>,
}

fn parse_title(text: &str) -> Result<String, String> {
    match is_title(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("write one line of 1 to {MAX_TITLE} octets")),
    }
}

/// Reads `20%` or `20`.
fn parse_percent(text: &str) -> Result<u32, String> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent @ 0..=100) => Ok(percent),
        _ => Err(format!("'{text}' is not a share: write 0% to 100%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(parse_percent("0"), Ok(0));
        assert!(parse_percent("101%").is_err());
    }

    #[test]
    fn encoders_and_data_are_understood_or_say_what_to_write() {
        let encoder: EncoderName = "libsvtav1".parse().unwrap();
        assert_eq!(encoder.codec, VideoCodec::Av1);
        for wrong in ["hevc_nvenc", "x264 -y /etc/passwd", ""] {
            let said = wrong.parse::<EncoderName>().unwrap_err();
            assert!(said.contains("such as h264_nvenc"), "{said}");
        }
        let data: DataInput = "gps=-".parse().unwrap();
        assert_eq!((data.name.as_str(), data.path), ("gps", None));
        for wrong in ["gps", "=x", "gps="] {
            assert!(wrong.parse::<DataInput>().unwrap_err().contains("gps=-"));
        }
    }
}
