//! Arguments of several commands.

use std::path::PathBuf;

use clap::Args;
use namecast_command::number;
use namecast_media::ingest::codec::VideoCodec;
use namecast_media::ingest::ladder::LadderWish;
use namecast_media::ingest::source::Input;
use namecast_units::Bitrate;

use crate::tls::TlsFiles;

/// What to publish, and how.
#[derive(Clone, Debug, Args)]
pub struct Media {
    /// 'test' for a drawn picture with a clock and a tone, 'camera' or /dev/videoN, a file or an address that ffmpeg reads, an
    /// address without a host to wait for a pusher (rtmp://:1935/key, srt://:9000), or '-' for standard input.
    #[arg(short, long, default_value = "test", value_name = "test|camera|FILE|-")]
    pub input: Input,
    /// Start files again at their end.
    #[arg(long = "loop")]
    pub looped: bool,
    /// Files that hold the rungs of one video, encoded already: they are copied, and no picture is encoded. As many frames a
    /// second and between key frames in all, none that refers to a later one.
    #[arg(long, value_delimiter = ',', value_name = "FILE,FILE,…", conflicts_with_all = ["input", "ladder", "codec"])]
    pub encoded: Vec<PathBuf>,
    /// How.
    #[command(flatten)]
    pub encoding: Encoding,
}

impl Media {
    /// The input, for people.
    pub fn input_text(&self) -> String {
        if self.encoded.is_empty() {
            return self.input.to_string();
        }
        let files: Vec<_> = self
            .encoded
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        files.join(", ")
    }
}

/// How pictures and sound are encoded and cut.
#[derive(Clone, Debug, Args)]
pub struct Encoding {
    /// Bitrates of the video; 1M@640x360 chooses the picture's size too, copy passes the input through as it is. Without: copy and
    /// 300k where the input is H.264 without B-frames, else 200k,1M,3M.
    #[arg(long, value_name = "copy,1M,…")]
    pub ladder: Option<LadderWish>,
    /// Video codec: h264, vp8, vp9 or av1.
    #[arg(long, default_value = "h264")]
    pub codec: VideoCodec,
    /// Leave sound out.
    #[arg(long)]
    pub no_audio: bool,
    /// Bitrate of the sound.
    #[arg(long, default_value = "64k")]
    pub audio_bitrate: Bitrate,
    /// Octets of payload that segments aim at.
    #[arg(long, default_value_t = 1_000, value_parser = number::<u32>(256..=8_000))]
    pub segment_size: u32,
    /// Parity segments on offer, as a share of the data segments; none is sent unless it is asked for.
    #[arg(long, default_value = "60%", value_name = "PERCENT", value_parser = parse_percent)]
    pub fec: u32,
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
}
