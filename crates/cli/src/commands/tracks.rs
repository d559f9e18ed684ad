//! `namecast tracks`: positions of people.

mod watch;

use std::net::SocketAddr;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use namecast::{Node, Options};
use namecast_apps::Now;
use namecast_apps::live::publisher::Publisher;
use namecast_apps::live::watcher::Speed;
use namecast_apps::tracks::{
    self, Crowd, Lines, MAX_DATAGRAM, MAX_PEOPLE, OpenPTrack, Stage, walking,
};
use namecast_command::report::{print_error, print_line, printable};
use namecast_command::{Stop, number, parse_address, parse_duration};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, Timestamp};
use tokio::io::{AsyncReadExt, Stdin, stdin};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};

use super::PastTime;
use crate::arguments::{Keys, Trusted};
use crate::connect::Connect;

/// Memory of each side for packets: watchers request them within seconds.
const CACHE: ByteSize = ByteSize::mebibytes(16);
/// Octets read from standard input at once.
const READ_SIZE: usize = 65_536;
/// Most people of a publisher; how many a tick has room for depends on their fields.
const LARGEST_CROWD: u64 = 3_500;
/// More people than a tick has room for.
const LARGEST_TICK: u64 = 20_000;

/// `namecast tracks`.
#[derive(Debug, Args)]
pub struct TracksCommand {
    /// Which side.
    #[command(subcommand)]
    pub action: TracksAction,
}

/// The sides of tracks.
#[derive(Debug, Subcommand)]
pub enum TracksAction {
    /// Publish positions: JSON lines from standard input, OpenPTrack's datagrams, or people who walk in circles.
    Publish(PublishTracks),
    /// Print the positions of everybody, tick by tick.
    Watch(WatchTracks),
    /// Print who is here, and since when.
    List(ListTracks),
}

/// Options of all sides.
#[derive(Debug, Args)]
pub struct TracksOptions {
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// The forwarder to use.
    #[command(flatten)]
    pub connect: Connect,
    /// Directory of keys.
    #[command(flatten)]
    pub keys: Keys,
}

/// `namecast tracks publish`.
#[derive(Debug, Args)]
#[command(after_help = r#"
Examples:
  namecast tracks publish /stage --generate 100             a hundred people who walk in circles
  namecast tracks publish /stage --openptrack 0.0.0.0:21234 people whom OpenPTrack follows
  ./positions | namecast tracks publish /stage              JSON, a line for each position

A line is {"id": "ann", "x": 1.5, "y": -2, "z": 1.7}, in metres. It may have "at", the time of measurement in microseconds since 1970, "clock", the name of the
clock of that time, and fields of your own. A person without a position for a second is left out."#)]
pub struct PublishTracks {
    /// Name of the tracks.
    pub name: Name,
    /// Options of all sides.
    #[command(flatten)]
    pub options: TracksOptions,
    /// Ticks a second: each has the newest position of everybody.
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = number::<u32>(1..=1_000))]
    pub rate: u32,
    /// Publish this number of people who walk in circles.
    #[arg(long, value_name = "NUMBER", conflicts_with = "openptrack", value_parser = number::<usize>(1..=LARGEST_CROWD))]
    pub generate: Option<usize>,
    /// Read OpenPTrack's datagrams from this UDP address.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub openptrack: Option<SocketAddr>,
    /// Most people at once; positions of others are refused.
    #[arg(long, value_name = "NUMBER", default_value_t = MAX_PEOPLE, value_parser = number::<usize>(1..=LARGEST_CROWD))]
    pub max_people: usize,
}

/// `namecast tracks watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast tracks watch /stage                     JSON, a line for each person and tick
  namecast tracks watch /stage --format csv        the same as CSV
  namecast tracks watch /stage --id ann --id bob   these alone are received
  namecast tracks watch /stage --rate 30           every second tick of 60 a second
  namecast tracks watch /stage /foyer              both, with ids such as /foyer/ann
  namecast tracks watch /stage --from -60s --speed 8   from an archive: the last minute, in 8 seconds

With --from, playback goes on live once it has caught up.")]
pub struct WatchTracks {
    /// Names of tracks. Of several, ids begin with the name, and times without a clock say whose they are.
    #[arg(required = true)]
    pub names: Vec<Name>,
    /// Options of all sides.
    #[command(flatten)]
    pub options: TracksOptions,
    /// Form of the lines.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
    /// Take at most this number of ticks a second, and request no others.
    #[arg(long, value_name = "NUMBER", value_parser = number::<u32>(1..=1_000))]
    pub rate: Option<u32>,
    /// A person to watch; without it, everybody. May be repeated: up to 8 people are received apart from the others.
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub id: Vec<String>,
    /// Begin in the past, which needs an archive: a time before now, as -60s; '2026-05-01 12:00' of this machine's time zone,
    /// 2026-05-01T12:00:00Z, or seconds since 1970.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<PastTime>,
    /// Speed at which the past is played: 0.25 to 8 times the normal one.
    #[arg(long, value_name = "TIMES", requires = "from", value_parser = parse_speed)]
    pub speed: Option<Speed>,
    /// Most people in a tick; ticks with more are refused.
    #[arg(long, value_name = "NUMBER", default_value_t = MAX_PEOPLE, value_parser = number::<usize>(1..=LARGEST_TICK))]
    pub max_people: usize,
    /// Whose key counts.
    #[command(flatten)]
    pub trusted: Trusted,
}

/// `namecast tracks list`.
#[derive(Debug, Args)]
#[command(after_help = r#"
A line is {"id": "ann", "since": 1767225600000000}: microseconds since 1970 by the publisher's clock."#)]
pub struct ListTracks {
    /// Name of the tracks.
    pub name: Name,
    /// Options of all sides.
    #[command(flatten)]
    pub options: TracksOptions,
    /// Most people; a list of more is refused.
    #[arg(long, value_name = "NUMBER", default_value_t = MAX_PEOPLE, value_parser = number::<usize>(1..=LARGEST_TICK))]
    pub max_people: usize,
    /// Whose key counts.
    #[command(flatten)]
    pub trusted: Trusted,
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    let speed = text.parse().ok().and_then(Speed::new);
    speed.ok_or_else(|| "write a number from 0.25 to 8".to_owned())
}

fn parse_id(id: &str) -> Result<String, String> {
    let checked = tracks::check_id(id).map(|()| id.to_owned());
    checked.map_err(|error| format!("{error}; write it as `namecast tracks list` prints it"))
}

/// Forms of lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// A JSON object.
    Json,
    /// Fields, separated by commas (RFC 4180), after a line with their names.
    Csv,
}

/// Runs the command.
pub(super) async fn run(arguments: TracksCommand) -> anyhow::Result<()> {
    match arguments.action {
        TracksAction::Publish(arguments) => publish(arguments).await,
        TracksAction::Watch(arguments) => watch::watch(arguments).await,
        TracksAction::List(arguments) => watch::list(arguments).await,
    }
}

async fn connect(options: &TracksOptions) -> anyhow::Result<Node> {
    let node = Node::start(Options {
        keys: options.keys.keys.clone(),
        cache: CACHE,
    });
    let uplink = options.connect.keep(node.inner()).await?.face;
    node.attach(uplink).await?;
    Ok(node)
}

async fn publish(arguments: PublishTracks) -> anyhow::Result<()> {
    let options = &arguments.options;
    let mut stop = Stop::new(options.duration)?;
    let mut source = Source::open(&arguments).await?;
    let node = connect(options).await?;
    let (name, rate) = (&arguments.name, arguments.rate);
    let stream = tracks::stream(arguments.max_people, rate);
    let publication = node.publish(&name.to_string())?.stream(stream);
    let publication = publication.start().await?;
    print_line(format_args!(
        "{rate} ticks a second. Watch: namecast tracks watch {name}"
    ))?;
    let mut crowd = Crowd::new(arguments.max_people);
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let begin = |publisher: &mut Publisher, now: Now| Stage::new(publisher, now.wall);
    let stopped = "the node has stopped";
    let begun = publication.handle().call(begin).await;
    let mut stage = begun.context(stopped)??;
    loop {
        tokio::select! {
            read = source.read() => {
                let length = read?;
                source.record(length, node.wall(), &mut crowd);
                if length == 0 {
                    break;
                }
            }
            _ = ticks.tick() => {
                let now = node.wall();
                let people = match source {
                    Source::Generated(count) => walking(count, now),
                    _ => crowd.people(now),
                };
                let publish = move |publisher: &mut Publisher, now: Now| {
                    let published = stage.publish(publisher, now, &people);
                    published.map(|()| stage)
                };
                let published = publication.handle().call(publish).await;
                stage = published.context(stopped)??;
            }
            () = stop.wait() => break,
        }
    }
    node.shutdown().await;
    Ok(())
}

/// Where positions come from.
enum Source {
    Lines(Stdin, Box<Lines>, Vec<u8>),
    OpenPTrack(Cameras),
    Generated(usize),
}

/// OpenPTrack's datagrams.
struct Cameras {
    socket: UdpSocket,
    reader: OpenPTrack,
    buffer: Vec<u8>,
    problems: Problems,
}

impl Source {
    async fn open(arguments: &PublishTracks) -> anyhow::Result<Self> {
        match (arguments.generate, arguments.openptrack) {
            (Some(count), _) => Ok(Self::Generated(count)),
            (None, Some(address)) => {
                let socket = UdpSocket::bind(address).await;
                let socket = socket.with_context(|| format!("cannot listen on {address}"))?;
                Ok(Self::OpenPTrack(Cameras {
                    socket,
                    reader: OpenPTrack::new(arguments.max_people),
                    buffer: vec![0; MAX_DATAGRAM],
                    problems: Problems::default(),
                }))
            }
            (None, None) => Ok(Self::Lines(stdin(), Box::default(), vec![0; READ_SIZE])),
        }
    }

    /// Waits for input. Returns its length; 0: the input has ended.
    async fn read(&mut self) -> anyhow::Result<usize> {
        match self {
            Self::Lines(input, _, buffer) => Ok(input.read(buffer).await?),
            // An empty datagram is not the end.
            Self::OpenPTrack(cameras) => loop {
                match cameras.socket.recv(&mut cameras.buffer).await? {
                    0 => {}
                    length => return Ok(length),
                }
            },
            Self::Generated(_) => std::future::pending().await,
        }
    }

    /// Records what was read, or the end of the input. Prints the problems.
    fn record(&mut self, length: usize, now: Timestamp, crowd: &mut Crowd) {
        match self {
            Self::Lines(_, lines, buffer) => {
                let read = match length {
                    0 => lines.finish(now).into_iter().collect(),
                    _ => lines.read(&buffer[..length], now),
                };
                for person in read {
                    let put = match person {
                        Ok(person) => crowd.put(now, person).map_err(|error| error.to_string()),
                        Err(error) => Err(error.to_string()),
                    };
                    if let Err(problem) = put {
                        print_error(printable(&problem));
                    }
                }
            }
            Self::OpenPTrack(cameras) => cameras.record(length, now, crowd),
            Self::Generated(_) => {}
        }
    }
}

impl Cameras {
    /// Records a datagram: the crowd is that of the newest frame, as old as it is.
    fn record(&mut self, length: usize, now: Timestamp, crowd: &mut Crowd) {
        let errors = self.reader.handle_datagram(now, &self.buffer[..length]);
        let mut problem = errors.first().map(ToString::to_string);
        crowd.clear();
        for person in self.reader.people() {
            let put = crowd.put(self.reader.arrived(), person.clone());
            problem = problem.or(put.err().map(|error| error.to_string()));
        }
        if let Some(problem) = problem {
            self.problems.print(now, &problem);
        }
    }
}

/// Prints one problem a second, as others may cause any number.
#[derive(Default)]
struct Problems {
    printed_at: Option<Timestamp>,
}

impl Problems {
    fn print(&mut self, now: Timestamp, problem: &str) {
        let may_print = |at| now.since(at) >= Duration::from_secs(1);
        if self.printed_at.is_none_or(may_print) {
            self.printed_at = Some(now);
            print_error(printable(problem));
        }
    }
}
