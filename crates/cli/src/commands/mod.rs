//! One file per command.

mod archive;
mod call;
mod claiming;
mod cue;
mod demo;
mod disk;
mod exchange;
mod forwarder;
mod generate;
#[cfg(feature = "lab")]
mod impair;
mod key;
mod line;
mod packaging;
mod page;
mod peek;
mod ping;
mod publish;
mod publishing;
mod put;
mod receive;
#[cfg(unix)]
mod remote;
mod send;
mod serve;
mod sources;
mod status;
mod talk;
mod ticket;
mod tracks;
mod trust;
mod uplink;
mod watch;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use namecast_command::Logs;
use namecast_net::{KeyStore, KeyStoreError};
use namecast_units::Duration;

pub use watch::{NotLive, PastTime};

use crate::manage::{self, Managed};
use archive::Archive;
use call::Call;
use cue::{CueCommand, DeviceCommand};
use demo::Demo;
use exchange::ExchangeFiles;
use forwarder::Forwarder;
use generate::Generate;
use key::Key;
use peek::Peek;
use ping::Ping;
use publish::Publish;
use put::Put;
use receive::Receive;
#[cfg(unix)]
use remote::Remote;
use send::Send;
use serve::Serve;
use talk::Talk;
use tracks::TracksCommand;
use trust::Trust;
use watch::Watch;

/// How often figures are written and shown.
const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

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
  namecast publish /tv --package hls            the same as HLS, for players that know nothing else
  namecast serve                                publish what OBS or ffmpeg pushes, with a node and the page
  namecast watch /cam --output - | ffplay -     watch it natively
  namecast archive /cam --keep 24h              keep a day of it, and serve it
  namecast watch /cam --from -60s               watch what was a minute ago
  namecast send film.mkv /alice/film            send a file to whoever runs: namecast receive /alice/film
  namecast exchange /alice /bob photo.jpg       give Bob a file, and take his
  namecast talk /alice /bob                     call Bob, who waits with namecast talk /bob
  namecast cue desk /show                       send cues to devices that run: namecast device /show light-1
  namecast tracks publish /stage --generate 100 publish where people are; namecast tracks watch /stage
  namecast remote /me /host                     a terminal on a machine that knows one's key"
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
    /// Publish whatever others push here, from OBS, ffmpeg or an encoder; with a node and the page.
    Serve(Serve),
    /// Watch what is published under a name.
    Watch(Watch),
    /// Keep everything that is published under a name, and serve it.
    Archive(Archive),
    /// Exchange files with somebody: one each way, at once.
    Exchange(ExchangeFiles),
    /// Send files to any number of receivers, as fast as each can receive, until interrupted.
    Send(Send),
    /// Receive what `namecast send` sends.
    Receive(Receive),
    /// Call somebody, or wait for a call.
    Talk(Talk),
    /// Call with the members of a room: who is here, and what they write.
    Call(Call),
    /// Run the desk of a show: cues that devices execute together.
    Cue(CueCommand),
    /// Execute the cues of a show, each once and at its time.
    Device(DeviceCommand),
    /// Publish and watch where people are.
    Tracks(TracksCommand),
    /// Work on another machine, or let others work on this one: a terminal.
    #[cfg(unix)]
    Remote(Remote),
    /// Run a node that others connect to, and the page.
    Forwarder(Forwarder),
    /// Fetch one packet, or an object in segments, to standard output.
    Peek(Peek),
    /// Serve a file or standard input as an object, until interrupted.
    Put(Put),
    /// Ask whether a name answers, and how fast; or answer.
    Ping(Ping),
    /// Show the live streams that a forwarder knows the way to.
    List(manage::arguments::List),
    /// Show the state of a running forwarder, whichever it is.
    Status(manage::arguments::Status),
    /// Watch what a running forwarder does, face by face.
    Top(manage::arguments::Top),
    /// Show which way Interests for a name would take through a forwarder: strategy, next hops, costs.
    Trace(manage::arguments::Trace),
    /// Show, make, change and end a forwarder's faces.
    Face(manage::arguments::Face),
    /// Show, add and remove a forwarder's routes.
    Route(manage::arguments::Route),
    /// Show and choose how a forwarder forwards.
    Strategy(manage::arguments::Strategy),
    /// Show, configure and erase a forwarder's content store.
    Cs(manage::arguments::Cs),
    /// Print the certificate of a key, which is made if there is none; show and change which keys of streams are remembered.
    Key(Key),
    /// Say which key may sign which name: schemas, certificates for members, revocations.
    Trust(Trust),
    /// Write completions for shells and manual pages below a directory, such as ~/.local/share.
    Generate(Generate),
    /// Take SRT pushes for the `serve` that started this process.
    #[cfg(feature = "srt")]
    #[command(name = crate::push::srt::COMMAND, hide = true)]
    SrtListener,
    /// Relay UDP through an emulated link: rate, delay, jitter, loss, queue.
    #[cfg(feature = "lab")]
    Impair(Box<impair::Impair>),
    /// The laboratory's.
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(namecast_lab::Study),
}

/// Runs what was asked for.
///
/// # Errors
/// What went wrong, with what to do next.
pub async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Publish(arguments) => publish::run(arguments).await,
        Command::Serve(arguments) => serve::run(arguments).await,
        Command::Watch(arguments) => watch::run(arguments).await,
        Command::Archive(arguments) => archive::run(arguments).await,
        Command::Exchange(arguments) => exchange::run(arguments).await,
        Command::Send(arguments) => send::run(arguments).await,
        Command::Receive(arguments) => receive::run(arguments).await,
        Command::Call(arguments) => call::run(arguments).await,
        Command::Talk(arguments) => talk::run(arguments).await,
        Command::Cue(arguments) => cue::run(arguments).await,
        Command::Device(arguments) => cue::run_device(arguments).await,
        Command::Tracks(arguments) => tracks::run(arguments).await,
        #[cfg(unix)]
        Command::Remote(arguments) => remote::run(arguments).await,
        Command::Forwarder(arguments) => forwarder::run(arguments).await,
        Command::Status(arguments) => match arguments.port {
            Some(port) => status::run(port, arguments.target.json).await,
            None => manage::run(Managed::Status(arguments.target)).await,
        },
        Command::Peek(arguments) => peek::run(arguments).await,
        Command::Put(arguments) => put::run(arguments).await,
        Command::Ping(arguments) => ping::run(arguments).await,
        Command::List(arguments) => manage::run(Managed::List(arguments)).await,
        Command::Top(arguments) => manage::run(Managed::Top(arguments)).await,
        Command::Trace(arguments) => manage::run(Managed::Trace(arguments)).await,
        Command::Face(arguments) => manage::run(Managed::Face(arguments)).await,
        Command::Route(arguments) => manage::run(Managed::Route(arguments)).await,
        Command::Strategy(arguments) => manage::run(Managed::Strategy(arguments)).await,
        Command::Cs(arguments) => manage::run(Managed::Cs(arguments)).await,
        Command::Key(arguments) => key::run(arguments),
        Command::Trust(arguments) => trust::run(arguments).await,
        Command::Generate(arguments) => generate::run(&arguments),
        #[cfg(feature = "srt")]
        Command::SrtListener => namecast_srt::run(),
        #[cfg(feature = "lab")]
        Command::Impair(arguments) => impair::run(*arguments).await,
        #[cfg(feature = "lab")]
        Command::Lab(study) => {
            let study = namecast_lab::Command::Study(study);
            namecast_lab::main().carry_out(study).await
        }
    }
}

/// What was written contradicts itself: exit status 2, as for all that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub &'static str);

fn key_store(directory: Option<PathBuf>) -> Result<KeyStore, KeyStoreError> {
    match directory {
        Some(directory) => KeyStore::open(directory),
        None => KeyStore::open_default(),
    }
}

#[cfg(test)]
mod tests;
