//! What may be typed after `namecast face`, `route`, `strategy`, `cs`, `status`, `top` and `trace`.

use core::str::FromStr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use namecast_net::{FaceUri, Persistency};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};

use namecast_command::{number, parse_duration};

use crate::connect::Connect;

/// Which forwarder is meant, and how it is asked.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// Which one.
    #[command(flatten)]
    pub connect: Connect,
    /// Sign commands with the key of this name, for a forwarder that takes them from certain keys only.
    #[arg(long, value_name = "NAME", global = true)]
    pub sign_as: Option<Name>,
    /// Directory of keys.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub keys: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// A face by its number, or by the address that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaceChoice {
    /// Its number.
    Number(u64),
    /// The peer's address.
    Uri(FaceUri),
}

impl FromStr for FaceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let uri = text.parse().map(Self::Uri);
        uri.map_err(|error| format!("{error}; or the number of a face, as in namecast face list"))
    }
}

/// `namecast face`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast face list
  namecast face create udp4://192.0.2.1:6363 --reliability
  namecast face create tcp://router.example             its address is looked up once, here
  namecast face show udp4://192.0.2.1:6363
  namecast face update 264 --congestion-threshold 30k --congestion-interval 20ms
  namecast face list --connect unix:///run/nfd/nfd.sock --json
  namecast face create ether://[02:00:00:00:00:01] --interface eth0
  namecast face destroy 264")]
pub struct Face {
    /// What to do.
    #[command(subcommand)]
    pub what: FaceWhat,
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

/// What to do with faces.
#[derive(Debug, Subcommand)]
pub enum FaceWhat {
    /// Show all faces.
    List,
    /// Show everything about one face.
    Show {
        /// Number or address.
        face: FaceChoice,
    },
    /// Connect the forwarder to another.
    Create {
        /// Where it leads: udp://HOST:PORT, tcp://HOST:PORT, wss://HOST/PATH, or an Ethernet address in brackets, see the examples.
        uri: FaceUri,
        /// Interface that an Ethernet address is on; the forwarder's file has to open it for such faces.
        #[arg(long, value_name = "NAME", value_parser = interface)]
        interface: Option<FaceUri>,
        /// How it shall be.
        #[command(flatten)]
        options: FaceArguments,
    },
    /// Change a face.
    Update {
        /// Number or address.
        face: FaceChoice,
        /// How it shall be.
        #[command(flatten)]
        options: FaceArguments,
    },
    /// End a face, and its routes.
    Destroy {
        /// Number or address.
        face: FaceChoice,
    },
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// How a face shall be.
#[derive(Clone, Copy, Debug, Args)]
pub struct FaceArguments {
    /// What ends it: the end of its connection or long silence (on-demand), or nothing but a command.
    #[arg(long, value_enum)]
    pub persistency: Option<PersistencyArgument>,
    /// Acknowledge frames and send lost ones again; both ends must do so.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub reliability: Option<Switch>,
    /// Let the peer see and choose faces; only for peers on the forwarder's machine.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub local_fields: Option<Switch>,
    /// Mark packets when the face's queue is long.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub congestion_marking: Option<Switch>,
    /// How much may wait for the face without marks, such as 64k.
    #[arg(long, value_name = "SIZE")]
    pub congestion_threshold: Option<ByteSize>,
    /// How long more than these must wait until a packet is marked.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub congestion_interval: Option<Duration>,
    /// Longest frame, such as 1400; UDP only.
    #[arg(long, value_name = "SIZE")]
    pub mtu: Option<ByteSize>,
}

/// What ends a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PersistencyArgument {
    /// The end of its connection, or long silence.
    OnDemand,
    /// A command, or with NFD trouble with its socket.
    Persistent,
    /// A command.
    Permanent,
}

impl From<PersistencyArgument> for Persistency {
    fn from(argument: PersistencyArgument) -> Self {
        match argument {
            PersistencyArgument::OnDemand => Self::OnDemand,
            PersistencyArgument::Persistent => Self::Persistent,
            PersistencyArgument::Permanent => Self::Permanent,
        }
    }
}

/// An interface as forwarders write it.
fn interface(name: &str) -> Result<FaceUri, namecast_net::ParseFaceUriError> {
    format!("dev://{name}").parse()
}

/// `namecast route`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast route list
  namecast route add /edu udp4://192.0.2.1:6363       the face is made if there is none
  namecast route add / 264 --cost 100 --expires 1h
  namecast route remove /edu 264")]
pub struct Route {
    /// What to do.
    #[command(subcommand)]
    pub what: RouteWhat,
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

/// What to do with routes.
#[derive(Debug, Subcommand)]
pub enum RouteWhat {
    /// Show all routes.
    List,
    /// Send Interests for a prefix to a face.
    Add {
        /// Names it is for.
        prefix: Name,
        /// Number or address; a face to the address is made if there is none.
        face: FaceChoice,
        /// Which of several is taken: the lowest.
        #[arg(long, default_value_t = 0, value_parser = number::<u64>(0..=u64::MAX))]
        cost: u64,
        /// Who the route is from: static, app, client, or a number.
        #[arg(long, default_value = "static")]
        origin: Origin,
        /// Leave longer prefixes that have routes of their own to those.
        #[arg(long)]
        no_inherit: bool,
        /// Let no routes of shorter prefixes apply.
        #[arg(long)]
        capture: bool,
        /// End the route after this time.
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires: Option<Duration>,
    },
    /// Take a route back.
    Remove {
        /// Names it is for.
        prefix: Name,
        /// Number or address.
        face: FaceChoice,
        /// Who the route is from: static, app, client, or a number.
        #[arg(long, default_value = "static")]
        origin: Origin,
    },
}

/// Who a route is from, in NFD's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub u64);

impl Origin {
    /// An operator.
    pub const STATIC: Self = Self(255);

    const NAMES: [(&'static str, u64); 7] = [
        ("app", 0),
        ("autoreg", 64),
        ("client", 65),
        ("autoconf", 66),
        ("nlsr", 128),
        ("prefixann", 129),
        ("static", 255),
    ];
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        let number = named.map(|(_, number)| *number).or(text.parse().ok());
        let names = || Self::NAMES.map(|(name, _)| name).join(", ");
        number
            .map(Self)
            .ok_or_else(|| format!("'{text}' is no origin: write {} or a number", names()))
    }
}

impl core::fmt::Display for Origin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let named = Self::NAMES.iter().find(|(_, number)| *number == self.0);
        match named {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// `namecast strategy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast strategy list
  namecast strategy set /conference multicast
  namecast strategy set / /localhost/nfd/strategy/asf/v=5/probing-interval~30000
  namecast strategy unset /conference")]
pub struct Strategy {
    /// What to do.
    #[command(subcommand)]
    pub what: StrategyWhat,
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

/// What to do with strategies.
#[derive(Debug, Subcommand)]
pub enum StrategyWhat {
    /// Show which prefix has which.
    List,
    /// Choose how Interests for a prefix are forwarded.
    Set {
        /// Names it is for.
        prefix: Name,
        /// A word such as best-route, multicast, asf, self-learning, random, weighted or pcon, or a whole name with version and parameters.
        strategy: String,
    },
    /// Take the choice back, so that the next shorter prefix decides.
    Unset {
        /// Names it was for.
        prefix: Name,
    },
}

/// `namecast cs`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cs info
  namecast cs config --capacity 100k
  namecast cs config --admit off
  namecast cs erase /demo")]
pub struct Cs {
    /// What to do.
    #[command(subcommand)]
    pub what: CsWhat,
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

/// What to do with the content store.
#[derive(Debug, Subcommand)]
pub enum CsWhat {
    /// Show how much is in it, and how often it answered.
    Info,
    /// Change what it holds and does.
    Config {
        /// Data packets that it may hold, such as 100k; a Namecast forwarder reckons 8 KiB for each.
        #[arg(long, value_name = "PACKETS", value_parser = number::<u64>(0..=u64::MAX))]
        capacity: Option<u64>,
        /// Whether Data is taken in.
        #[arg(long, value_enum)]
        admit: Option<Switch>,
        /// Whether Interests are answered.
        #[arg(long, value_enum)]
        serve: Option<Switch>,
    },
    /// Remove Data whose names begin with a prefix.
    Erase {
        /// The prefix; / is everything.
        prefix: Name,
        /// Most packets that are removed.
        #[arg(long, value_parser = number::<u64>(1..=u64::MAX))]
        count: Option<u64>,
    },
}

/// `namecast list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast list
  namecast list --json | jq -r '.[].name'

All prefixes that the forwarder has routes of are asked whether they are a live stream.")]
pub struct List {
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

/// `namecast status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast status
  namecast status --json | jq .general.pit_entries
  namecast status --connect tcp4://127.0.0.1:6363
  namecast status --port 8080                         what the node's own web server tells: drops by reason, the publisher")]
pub struct Status {
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
    /// Ask the web server of a Namecast node on this machine instead, which knows more than management does.
    #[arg(long, conflicts_with = "connect", value_parser = number::<u16>(0..=65_535))]
    pub port: Option<u16>,
}

/// `namecast top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast top
  namecast top --once
  namecast top --json | jq .per_second.in_data        one object a second
  namecast top --json | jq '.strategies[] | [.prefix, .per_second.timeouts]'
  namecast top --connect unix:///run/nfd/nfd.sock

The figures contain what it takes to ask for them: four Interests and Data a second.")]
pub struct Top {
    /// Show one second, and end.
    #[arg(long)]
    pub once: bool,
    /// Most faces that are shown, the busiest; JSON has all.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = number::<usize>(0..=u64::MAX))]
    pub faces: usize,
    /// Most strategies that are shown, the busiest; JSON has all. NFD and ndnd do not count by strategy.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = number::<usize>(0..=u64::MAX))]
    pub strategies: usize,
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

/// `namecast trace`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast trace /demo/video/1M
  namecast trace /demo --connect unix:///run/nfd/nfd.sock --json

Where something is cached under the name, the cache answers first.")]
pub struct Trace {
    /// The name.
    pub name: Name,
    /// The forwarder.
    #[command(flatten)]
    pub target: Target,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_numbers_or_addresses() {
        assert_eq!("264".parse(), Ok(FaceChoice::Number(264)));
        let uri: FaceUri = "udp4://192.0.2.1:6363".parse().unwrap();
        assert_eq!("udp4://192.0.2.1:6363".parse(), Ok(FaceChoice::Uri(uri)));
        let refused = "192.0.2.1".parse::<FaceChoice>().unwrap_err();
        assert!(
            refused.contains("udp://") && refused.contains("face list"),
            "{refused}"
        );
    }

    #[test]
    fn origins_have_names() {
        for (text, number) in [("static", 255), ("client", 65), ("app", 0), ("7", 7)] {
            assert_eq!(text.parse(), Ok(Origin(number)));
            assert_eq!(Origin(number).to_string(), text);
        }
        assert!("me".parse::<Origin>().unwrap_err().contains("static"));
    }
}
