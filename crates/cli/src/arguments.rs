//! What may be typed after `namecast`.

mod announce;
mod key;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use namecast_command::{Logs, Run, parse_duration};
use namecast_media::ingest::codec::VideoCodec;
use namecast_media::ingest::ladder::Ladder;
use namecast_media::ingest::source::Input;
use namecast_net::FaceUri;
use namecast_packet::Name;
use namecast_units::{Bitrate, ByteSize, Duration, Timestamp};

pub use announce::Announce;
pub use key::{Key, KeyWhat, KnownKeysFile, Trusted};

/// Real-time streams by name: publish, watch and forward live video over Named Data Networking.
#[derive(Debug, Parser)]
#[command(
    name = "namecast",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  namecast demo                                 live test video, a node and the page, in one process
  namecast demo --input film.mp4 --loop         the same with a file
  namecast forwarder                            a node that others connect to, with the page
  namecast status                               faces, routes and counters of it, or of NFD or ndnd
  namecast route add /edu udp4://192.0.2.1      send it elsewhere what it cannot answer
  namecast publish /cam --input camera          publish through the forwarder on this machine
  namecast watch /cam --output - | ffplay -     watch it natively
  namecast archive /cam --keep 24h              keep a day of it, and serve it
  namecast watch /cam --from -60s               watch what was a minute ago"
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What is logged.
    #[command(flatten)]
    pub logs: Logs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Node, live video and page in one process: open the printed address.
    Demo(Demo),
    /// Publish live video and sound under a name.
    Publish(Publish),
    /// Watch what is published under a name.
    ///
    /// Exits with 3 where live was wanted and what came last was a recording.
    Watch(Watch),
    /// Keep everything that is published under a name, and serve it.
    Archive(Archive),
    /// Run a node that others connect to, and the page.
    Forwarder(Forwarder),
    /// Show the state of a running forwarder, whichever it is.
    Status(crate::manage::arguments::Status),
    /// Watch what a running forwarder does, face by face.
    Top(crate::manage::arguments::Top),
    /// Show which way Interests for a name would take through a forwarder: strategy, next hops, costs.
    Trace(crate::manage::arguments::Trace),
    /// Show, make, change and end a forwarder's faces.
    Face(crate::manage::arguments::Face),
    /// Show, add and remove a forwarder's routes.
    Route(crate::manage::arguments::Route),
    /// Show and choose how a forwarder forwards.
    Strategy(crate::manage::arguments::Strategy),
    /// Show, configure and erase a forwarder's content store.
    Cs(crate::manage::arguments::Cs),
    /// Print the certificate of a key, which is made if there is none; show and change which keys of streams are remembered.
    Key(Key),
    /// The laboratory's.
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(namecast_lab::Command),
}

/// `namecast demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Name to publish under.
    #[arg(long, default_value = "/demo")]
    pub name: Name,
    /// What to publish.
    #[command(flatten)]
    pub media: Media,
    /// The page.
    #[command(flatten)]
    pub page: PagePort,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// `namecast publish`.
#[derive(Debug, Args)]
pub struct Publish {
    /// Name to publish under, such as /cam. For / every Interest that nobody else has a longer route for comes here, which takes
    /// --whole-namespace.
    pub name: Name,
    /// Publish under / nevertheless.
    #[arg(long)]
    pub whole_namespace: bool,
    /// What to publish.
    #[command(flatten)]
    pub media: Media,
    /// Announce the name besides registering it, so that forwarders that learn routes find it.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Announce::Auto)]
    pub announce: Announce,
    /// The forwarder to publish through.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// `namecast watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Name that was published, such as /cam.
    pub name: Name,
    /// Write what is received: '-' is standard output. NAME.h264 (or .264) takes the bare video; '-' and NAME.nut take the NUT
    /// container with sound, which ffplay plays; anything else is made by ffmpeg without encoding again (.mkv, .mp4, .ts).
    #[arg(short, long, value_name = "FILE|-")]
    pub output: Option<PathBuf>,
    /// Time between the earliest moment a frame can be here and the moment it is shown.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    pub target: Duration,
    /// Bitrate to watch: auto is the highest that the network carries, as it changes; else highest, lowest, or one of the
    /// publisher's, such as 1M.
    #[arg(long, default_value = "auto")]
    pub rung: String,
    /// Begin in the past, which needs an archive: a time of day as in 2026-05-01T12:00:00Z, seconds since 1970, or a time
    /// before now, as -60s.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<PastTime>,
    /// Leave sound out.
    #[arg(long)]
    pub no_audio: bool,
    /// What bounds requests: live, arc, copa, cubic, rate:5M, window:50, …; a wrong name gets the list.
    #[arg(long, default_value = "live")]
    pub controller: String,
    /// Whose signature counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// The forwarder to ask.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
}

/// `namecast archive`.
#[derive(Debug, Args)]
pub struct Archive {
    /// Name that is published, such as /cam.
    pub name: Name,
    /// What to keep, and where.
    #[command(flatten)]
    pub keep: Keep,
    /// Whose signature counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// The forwarder to record and serve through.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
}

/// What an archive keeps, and where.
#[derive(Clone, Debug, Args)]
pub struct Keep {
    /// Directory, or a bucket such as s3://bucket/prefix, with credentials in the environment. Several archives may share
    /// it. Without it: namecast/archive in the user's data directory.
    #[arg(long, value_name = "DIRECTORY|URL")]
    pub store: Option<String>,
    /// Directory for what is not in the bucket yet.
    #[arg(long, value_name = "DIRECTORY")]
    pub spool: Option<PathBuf>,
    /// Delete what is older.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub keep: Option<Duration>,
    /// Delete the oldest beyond this size: 500M or 10G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub keep_size: Option<ByteSize>,
}

/// `namecast forwarder`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast forwarder
  namecast forwarder --upstream udp4://192.0.2.1:6363
  namecast forwarder --print-config > namecast.toml
  namecast forwarder --config namecast.toml
  namecast status                                     in another terminal")]
pub struct Forwarder {
    /// Listeners, faces, routes, strategies and bounds from this file, in TOML.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["udp", "udp_reliability", "tcp", "unix", "cache", "threads", "upstream"])]
    pub config: Option<PathBuf>,
    /// Print a configuration file that has the defaults and explains them, and stop.
    #[arg(long)]
    pub print_config: bool,
    /// Receive UDP here; 'off' for not at all.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6363")]
    pub udp: Socket,
    /// Acknowledge frames over UDP and send lost ones again, towards peers that do so too.
    #[arg(long)]
    pub udp_reliability: bool,
    /// Accept TCP here; 'off' for not at all.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6363")]
    pub tcp: Socket,
    /// Accept connections on a Unix socket at this path, instead of the one in the user's runtime directory; 'off' for
    /// not at all.
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Name that the page watches unless its address says otherwise.
    #[arg(long)]
    pub name: Option<Name>,
    /// Memory for Data that others may ask for again, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub cache: u64,
    /// Threads that forward at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Connect to another forwarder and send it the Interests that nobody here can answer; may be repeated.
    #[arg(long, value_name = "FACE-URI")]
    pub upstream: Vec<FaceUri>,
    /// The page.
    #[command(flatten)]
    pub page: PagePort,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
}

/// What to publish, and how it is encoded and cut.
#[derive(Clone, Debug, Args)]
pub struct Media {
    /// 'test' for a drawn picture with a clock and a tone, 'camera' or /dev/videoN, a file or an address that ffmpeg reads, or
    /// '-' for standard input.
    #[arg(short, long, default_value = "test", value_name = "test|camera|FILE|-")]
    pub input: Input,
    /// Start files again at their end.
    #[arg(long = "loop")]
    pub looped: bool,
    /// Files that hold the rungs of one video, encoded already: they are copied, and no picture is encoded. As many frames a
    /// second and between key frames in all, none that refers to a later one.
    #[arg(long, value_delimiter = ',', value_name = "FILE,FILE,…", conflicts_with_all = ["input", "ladder", "codec"])]
    pub encoded: Vec<PathBuf>,
    /// Bitrates of the video; 1M@640x360 chooses the picture's size too.
    #[arg(long, default_value = "200k,1M,3M")]
    pub ladder: Ladder,
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
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(256..=8_000))]
    pub segment_size: u32,
    /// Parity segments on offer, as a share of the data segments; none is sent unless it is asked for.
    #[arg(long, default_value = "60%", value_name = "PERCENT", value_parser = parse_percent)]
    pub fec: u32,
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

/// Which forwarder to use.
#[derive(Clone, Debug, Args)]
pub struct Connect {
    /// The forwarder to connect to: udp4://, tcp4://, unix:// or ws://.
    #[arg(long, default_value = "tcp4://127.0.0.1:6363", value_name = "FACE-URI")]
    pub connect: FaceUri,
}

/// Where the page is served.
#[derive(Clone, Debug, Args)]
pub struct PagePort {
    /// Port of the page; if it is taken, the next free one.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Let other devices on the network open the page and connect: listen on all addresses.
    #[arg(long)]
    pub listen: bool,
}

/// Where keys are.
#[derive(Clone, Debug, Args)]
pub struct Keys {
    /// Directory of keys; made on first use.
    #[arg(long, value_name = "DIRECTORY")]
    pub keys: Option<PathBuf>,
}

/// A time in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastTime {
    /// That time.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl PastTime {
    /// The time, if it is `now`.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(span) => {
                let span = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
                Timestamp::from_micros(now.as_micros().saturating_sub(span))
            }
        }
    }
}

impl core::str::FromStr for PastTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(ago) = text.strip_prefix('-') {
            return parse_duration(ago)
                .map(Self::Ago)
                .map_err(|error| error.to_string());
        }
        let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
        let micros = match seconds {
            Some(span) => span
                .ok()
                .and_then(|span| u64::try_from(span.as_micros()).ok()),
            None => chrono::DateTime::parse_from_rfc3339(text)
                .ok()
                .and_then(|time| u64::try_from(time.timestamp_micros()).ok()),
        };
        let at = micros.map(|micros| Self::At(Timestamp::from_micros(micros)));
        at.ok_or_else(|| {
            format!("'{text}' is no time: write 2026-05-01T12:00:00Z, -60s, or seconds since 1970")
        })
    }
}

/// A socket address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket(pub Option<SocketAddr>);

impl core::str::FromStr for Socket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| {
                format!("'{text}' is neither ADDRESS:PORT, as in 127.0.0.1:6363, nor 'off'")
            })
    }
}

/// Reads `500M`, `10G`, `2T`, in powers of 1000, or bytes without a unit.
fn parse_size(text: &str) -> Result<ByteSize, String> {
    const UNITS: [(char, u64); 4] = [
        ('K', 1_000),
        ('M', 1_000_000),
        ('G', 1_000_000_000),
        ('T', 1_000_000_000_000),
    ];
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(*unit));
    let number = unit.map_or(text, |_| &text[..text.len() - 1]);
    let factor = unit.map_or(1, |(_, factor)| *factor);
    let size = number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor));
    let size = size.filter(|&size| size > 0).map(ByteSize::bytes);
    size.ok_or_else(|| format!("'{text}' is not a size: write 500M or 10G"))
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
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Command, String> {
        let parsed = Arguments::try_parse_from(line.split_whitespace());
        parsed
            .map(|parsed| parsed.command)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let Ok(Command::Demo(demo)) = parse("namecast demo") else {
            panic!("demo needs no arguments");
        };
        assert_eq!(demo.name.to_string(), "/demo");
        assert_eq!(demo.media.input, Input::Test);
        assert_eq!(demo.media.ladder.to_string(), "200k,1M,3M");
        let cutting = namecast_stream::SegmenterConfig::default();
        let given = (demo.media.segment_size as usize, demo.media.fec as usize);
        assert_eq!(given, (cutting.segment_size, cutting.parity_percent));
        assert_eq!((demo.page.port, demo.page.listen), (8_080, false));
        assert_eq!(demo.run.duration, None);
    }

    #[test]
    fn the_documented_options_are_understood() {
        let line = "namecast publish /cam --input film.mp4 --loop --ladder 500k,2M --segment-size 1200 --fec 50% \
                    --connect udp4://10.0.0.1:6363 --stats s.json --duration 90s";
        let Ok(Command::Publish(publish)) = parse(line) else {
            panic!("documented");
        };
        assert_eq!(publish.media.input, Input::File("film.mp4".into()));
        assert_eq!((publish.media.segment_size, publish.media.fec), (1_200, 50));
        assert_eq!(publish.connect.connect.to_string(), "udp4://10.0.0.1:6363");
        assert_eq!(publish.run.duration, Some(Duration::from_secs(90)));
        let Ok(Command::Watch(watch)) =
            parse("namecast watch /cam --output - --target 250ms --rung 1M")
        else {
            panic!("documented");
        };
        assert_eq!(watch.target, Duration::from_millis(250));
        let Ok(Command::Forwarder(forwarder)) = parse("namecast forwarder --udp off --unix /tmp/n")
        else {
            panic!("documented");
        };
        assert_eq!(forwarder.udp, Socket(None));
        assert_eq!(forwarder.tcp.0.map(|tcp| tcp.port()), Some(6_363));
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        let refused = |line: &str| parse(line).unwrap_err();
        assert!(refused("namecast demo --fec 200%").contains("write 0% to 100%"));
        assert!(refused("namecast demo --ladder fast").contains("write 200k, 1M"));
        assert!(refused("namecast demo --codec mpeg2").contains("h264, vp8, vp9, av1"));
        assert!(refused("namecast demo --duration soon").contains("write 100ms, 5s"));
        assert!(refused("namecast watch /x --connect 1.2.3.4").contains("udp4://"));
        assert!(refused("namecast demo --segment-size 9000").contains("8000"));
    }

    #[test]
    fn times_in_the_past() {
        let noon = Timestamp::from_micros(1_777_636_800_500_000);
        let at = Ok(PastTime::At(noon));
        assert_eq!("2026-05-01T12:00:00.5Z".parse(), at);
        assert_eq!("2026-05-01T14:00:00.5+02:00".parse(), at);
        assert_eq!("1777636800.5".parse(), at);
        let ago: PastTime = "-60s".parse().unwrap();
        assert_eq!(ago, PastTime::Ago(Duration::from_secs(60)));
        let before = Timestamp::from_micros(1_777_636_740_500_000);
        assert_eq!(ago.resolve(noon), before);
        for wrong in ["", "noon", "2026-05-01", "1e300", "-1y"] {
            assert!(wrong.parse::<PastTime>().is_err(), "{wrong}");
        }
        let Ok(Command::Watch(watch)) = parse("namecast watch /x --from -1m30s") else {
            panic!("documented");
        };
        assert_eq!(watch.from, Some(PastTime::Ago(Duration::from_secs(90))));
    }

    #[test]
    fn archives_keep_by_age_and_size() {
        let Ok(Command::Archive(archive)) =
            parse("namecast archive /x --store s3://b/p --keep 24h --keep-size 10G")
        else {
            panic!("documented");
        };
        assert_eq!(archive.keep.keep, Some(Duration::from_secs(86_400)));
        assert_eq!(
            archive.keep.keep_size,
            Some(ByteSize::bytes(10_000_000_000))
        );
        assert!(parse("namecast archive /x --keep-size 0").is_err());
        assert!(parse("namecast archive /x --keep-size 5X").is_err());
    }

    #[test]
    fn shares() {
        assert_eq!(parse_percent("0"), Ok(0));
        assert!(parse_percent("101%").is_err());
    }
}
