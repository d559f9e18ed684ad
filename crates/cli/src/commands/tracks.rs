//! `namecast tracks`: positions of people.

use std::net::SocketAddr;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use namecast::{Node, Options, Watched};
use namecast_apps::tracks::{
    self, Crowd, Lines, MAX_DATAGRAM, MAX_PEOPLE, OpenPTrack, Person, Sample, TRACKS, Ticks,
    csv_header, walking,
};
use namecast_command::report::{print, print_error, print_line, printable};
use namecast_command::{Stop, number, parse_address, parse_duration};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, Timestamp};
use tokio::io::{AsyncReadExt, Stdin, stdin};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};

use crate::arguments::{Keys, Trusted};
use crate::connect::Connect;
use crate::key_check::KeyCheck;

/// Memory of each side for packets: watchers request them within seconds.
const CACHE: ByteSize = ByteSize::mebibytes(16);
/// Octets read from standard input at once.
const READ_SIZE: usize = 65_536;
/// Most people that a tick has room for, whatever other fields each has.
const LARGEST_CROWD: u64 = 3_500;

/// `namecast tracks`.
#[derive(Debug, Args)]
pub struct TracksCommand {
    /// Which side.
    #[command(subcommand)]
    pub action: TracksAction,
}

/// The two sides of tracks.
#[derive(Debug, Subcommand)]
pub enum TracksAction {
    /// Publish positions: JSON lines from standard input, OpenPTrack's datagrams, or people who walk in circles.
    Publish(PublishTracks),
    /// Print the positions of everybody, tick by tick.
    Watch(WatchTracks),
}

/// Options of both sides.
#[derive(Debug, Args)]
pub struct TracksOptions {
    /// Name of the tracks.
    pub name: Name,
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
    /// Options of both sides.
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
  namecast tracks watch /stage --id ann --id bob   only these
  namecast tracks watch /stage --rate 30           every second tick of 60 a second")]
pub struct WatchTracks {
    /// Options of both sides.
    #[command(flatten)]
    pub options: TracksOptions,
    /// Form of the lines.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
    /// Take at most this number of ticks a second, and request no others.
    #[arg(long, value_name = "NUMBER", value_parser = number::<u32>(1..=1_000))]
    pub rate: Option<u32>,
    /// A person to print; without it, everybody. May be repeated.
    #[arg(long, value_name = "ID")]
    pub id: Vec<String>,
    /// Whose key counts.
    #[command(flatten)]
    pub trusted: Trusted,
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
        TracksAction::Watch(arguments) => watch(arguments).await,
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
    let (name, rate) = (&options.name, arguments.rate);
    let stream = tracks::stream(arguments.max_people, rate);
    let publication = node.publish(&name.to_string())?.stream(stream);
    let publication = publication.start().await?;
    print_line(format_args!(
        "{rate} ticks a second. Watch: namecast tracks watch {name}"
    ))?;
    let mut crowd = Crowd::new(arguments.max_people);
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = 0;
    loop {
        tokio::select! {
            read = source.read() => {
                let length = read?;
                for problem in source.record(length, node.wall(), &mut crowd) {
                    print_error(printable(&problem));
                }
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
                last = tick_number(now, rate).max(last + 1);
                for sample in tracks::encode(last, &people)? {
                    publication.send(TRACKS, sample).await?;
                }
            }
            () = stop.wait() => break,
        }
    }
    node.shutdown().await;
    Ok(())
}

/// Returns the number of the tick at `now`. It grows over restarts.
fn tick_number(now: Timestamp, rate: u32) -> u64 {
    let [second, micros] = [now.as_micros() / 1_000_000, now.as_micros() % 1_000_000];
    second * u64::from(rate) + micros * u64::from(rate) / 1_000_000
}

/// Where positions come from.
enum Source {
    Lines(Stdin, Box<Lines>, Vec<u8>),
    OpenPTrack(Cameras),
    Generated(usize),
}

/// OpenPTrack's datagrams. Anybody may send some, so one problem a second is printed.
struct Cameras {
    socket: UdpSocket,
    reader: OpenPTrack,
    buffer: Vec<u8>,
    printed_at: Option<Timestamp>,
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
                    printed_at: None,
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

    /// Records what was read, or the end of the input. Returns the problems.
    fn record(&mut self, length: usize, now: Timestamp, crowd: &mut Crowd) -> Vec<String> {
        let mut problems = Vec::new();
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
                    problems.extend(put.err());
                }
            }
            Self::OpenPTrack(cameras) => problems.extend(cameras.record(length, now, crowd)),
            Self::Generated(_) => {}
        }
        problems
    }
}

impl Cameras {
    /// Records a datagram: the crowd is that of the newest frame, as old as it is. Returns a problem that is to be printed.
    fn record(&mut self, length: usize, now: Timestamp, crowd: &mut Crowd) -> Option<String> {
        let errors = self.reader.handle_datagram(now, &self.buffer[..length]);
        let mut problem = errors.first().map(ToString::to_string);
        crowd.clear();
        for person in self.reader.people() {
            let put = crowd.put(self.reader.arrived(), person.clone());
            problem = problem.or(put.err().map(|error| error.to_string()));
        }
        let may_print = |at| now.since(at) >= Duration::from_secs(1);
        let problem = problem.filter(|_| self.printed_at.is_none_or(may_print))?;
        self.printed_at = Some(now);
        Some(problem)
    }
}

async fn watch(arguments: WatchTracks) -> anyhow::Result<()> {
    let options = &arguments.options;
    let mut stop = Stop::new(options.duration)?;
    let mut keys = KeyCheck::new(options.name.clone(), &arguments.trusted)?;
    let node = connect(options).await?;
    let watch = node.watch(&options.name.to_string())?.data().stream(TRACKS);
    let watch = match arguments.rate {
        Some(most) => watch.at_most(most),
        None => watch,
    };
    let mut watching = watch.trust(keys.trust()).start().await?;
    if matches!(arguments.format, Format::Csv) {
        print_line(csv_header())?;
    }
    let mut ticks = Ticks::default();
    loop {
        let watched = tokio::select! {
            watched = watching.next() => watched.context("the node has stopped")?,
            () = stop.wait() => break,
        };
        let frame = match watched {
            Watched::Signer(signer) => {
                print_error(keys.on_signer(&signer));
                continue;
            }
            Watched::Frame(frame) => frame,
            _ => continue,
        };
        if let Some(text) = keys.on_verified()? {
            print_error(text);
        }
        match Sample::decode(&frame.payload) {
            Ok(sample) => {
                if let Some((tick, people)) = ticks.handle_sample(sample) {
                    print(arguments.lines(tick, &people))?;
                }
            }
            Err(error) => print_error(printable(&error.to_string())),
        }
    }
    node.shutdown().await;
    Ok(())
}

impl WatchTracks {
    fn lines(&self, tick: u64, people: &[Person]) -> String {
        let is_wanted = |person: &&Person| self.id.is_empty() || self.id.contains(&person.id);
        let lines = people.iter().filter(is_wanted);
        let lines = lines.map(|person| match self.format {
            Format::Json => person.to_json(tick) + "\n",
            Format::Csv => person.to_csv(tick) + "\n",
        });
        lines.collect()
    }
}
