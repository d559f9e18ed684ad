//! `namecast publish`: an input under a name, through a forwarder.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Run, Stop, parse_duration};
use namecast_net::{Announcing, Clock, Node, NodeConfig, RegistrationState};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use serde_json::{Value, json};

use super::claiming::{ClaimedName, Claiming};
use super::publishing::{Figures, Happened, Manner, Publishing};
use super::uplink::Uplink;
use super::{FIGURES_INTERVAL, key_store};
use crate::arguments::{Keys, Media};
use crate::connect::Connect;
use crate::readers::Readers;
use crate::rules::{Certified, Rules};
use crate::telemetry::{Observation, Reporter, tables};

/// `namecast publish`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast publish /cam --input camera
  namecast publish /film --input film.mp4 --loop --title 'The film'
  namecast publish /film --input film.mp4 --ladder 300k,2M@1280x720 --codec vp9
  namecast publish /tv --package hls --ladder 300k@426x240,1M@854x480,2500k@1280x720     for players that know HLS
  ffmpeg -re -i film.mp4 -c copy -f mpegts - | namecast publish /film --input -
  namecast publish /studio --input rtmp://:1935/key      what is pushed to rtmp://ADDRESS:1935/key, by OBS for example
  namecast publish /calls/fox/ann --schema /calls/fox --sealed    for members of the room /calls/fox alone
  namecast publish /cam --connect udp4://192.0.2.1:6363  through a forwarder elsewhere

Exits with 1 where the input failed, where no forwarder ever took the name, and where somebody else publishes it.")]
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
    /// Whether frames are packaged.
    #[command(flatten)]
    pub packaging: Packaging,
    /// Take the name from its current publisher, which reports that and exits.
    #[arg(long)]
    pub take_over: bool,
    /// Announce the name besides registering it, so that forwarders that learn routes find it.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Announce::Auto)]
    pub announce: Announce,
    /// The forwarder to publish through.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
    /// Rules to publish by.
    #[command(flatten)]
    pub rules: Rules,
    /// Seal pictures, sound and data, so that only members of the room of --schema can open them: whoever is certified from now on, too,
    /// and nobody whose key is revoked.
    #[arg(long, requires = "schema", conflicts_with = "package")]
    pub sealed: bool,
}

/// Whether frames are packaged, and how.
#[derive(Clone, Copy, Debug, Args)]
pub struct Packaging {
    /// Publish segments and playlists instead of frames, each a named object under NAME/hls, for players that know nothing else: with
    /// the latency of some segments. The page plays it. The ladder is 300k,1M,2500k unless --ladder says otherwise.
    #[arg(long, value_enum, value_name = "hls")]
    pub package: Option<Package>,
    /// Length of the segments of --package; each ends before the next key frame.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_segment, requires = "package")]
    pub segment: Duration,
}

impl Packaging {
    /// Chooses the ladder of what is packaged, unless `media` does. Returns the length of segments; `None`: nothing is packaged.
    pub(super) fn choose(self, media: &mut Media) -> Option<Duration> {
        let Package::Hls = self.package?;
        let ladder = &mut media.encoding.ladder;
        // Encoded files are a ladder already.
        if ladder.is_none() && media.encoded.is_empty() {
            *ladder = PACKAGED_LADDER.parse().ok();
        }
        Some(self.segment)
    }
}

/// What frames are packaged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Package {
    /// HTTP Live Streaming with fragmented MP4, without HTTP.
    Hls,
}

/// Whether forwarders that learn routes are told that this is the place to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Announce {
    /// Where the forwarder's strategy for the name is self-learning.
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}

impl Announce {
    /// The same for the node.
    pub const fn when(self) -> Option<Announcing> {
        match self {
            Self::Auto => Some(Announcing::WhereLearned),
            Self::Always => Some(Announcing::Always),
            Self::Never => None,
        }
    }
}

/// Ladder of what is packaged.
const PACKAGED_LADDER: &str = "300k,1M,2500k";
/// Lengths that segments may have.
const SEGMENTS: core::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(30);
/// How often it is said that an input gives nothing.
const SILENCE: Duration = Duration::from_secs(5);
/// Time for which the last frames of an input can be fetched after its end.
pub(super) const LINGER: Duration = Duration::from_secs(1);
/// What the node keeps: the publisher answers from a cache of its own.
const CACHE: ByteSize = ByteSize::mebibytes(1);
const TAKES_EVERYTHING: &str = "publishing under / takes every name of the forwarder: give a longer name such as /cam, or add --whole-namespace";

const NO_ROSTER: &str = "--sealed needs a roster, which names the readers: write --schema with the room's root, such as /calls/fox, not with a file";

const NEVER_REGISTERED: &str = "nobody could watch: the forwarder never accepted the name; namecast status shows whether it is alive";

/// Runs until interrupted, or the input or the time is over.
pub(super) async fn run(arguments: Publish) -> anyhow::Result<()> {
    let Publish {
        name,
        whole_namespace,
        mut media,
        packaging,
        take_over,
        announce,
        connect,
        run,
        observation,
        keys,
        rules,
        sealed,
    } = arguments;
    anyhow::ensure!(!name.is_empty() || whole_namespace, TAKES_EVERYTHING);
    let mut stop = Stop::new(run.duration)?;
    let mut stats = Reporter::start(&tables::PUBLISH, &run, &observation).await?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let input = media.input_text();
    progress.say(&format!("Opening {input} …"));
    let node = Node::start(NodeConfig::caching(CACHE));
    stats.observe(&node);
    let mut uplink = Uplink::new(&node, &connect).await?;
    let certified = certified(&rules, &node, &uplink, (&keys, &name)).await?;
    let manner = Manner {
        is_certified: certified.is_some(),
        is_sealed: sealed,
        package: packaging.choose(&mut media),
        started_at: node.clock().wall(),
        takes_over: take_over,
    };
    let claiming = Claiming::new(&name, &keys, announce.when(), manner);
    let mut readers = readers(certified, sealed, node.clock())?;
    let mut claimed = ClaimedName::begin(&node, uplink.face(), claiming).await?;
    let opening = Publishing::start(&node, &name, &media, &keys, manner);
    let mut publishing = tokio::select! {
        publishing = wait(opening, (&input, &mut uplink), &mut progress, &mut stop) => publishing?,
        taken = claimed.taken() => return Err(taken),
    };
    introduce(&mut progress, &run, &publishing, &name, &input)?;
    let (mut has_told, mut tick) = (false, tokio::time::interval(FIGURES_INTERVAL));
    let outcome = loop {
        tokio::select! {
            happened = publishing.next() => match happened {
                Happened::Frame => {}
                Happened::Trouble(text) => progress.say(&text),
                Happened::Over(outcome) => {
                    linger(&mut stop, &mut progress).await;
                    break outcome;
                }
            },
            _ = tick.tick() => show(&mut publishing, &mut stats, &mut progress, &mut has_told).await?,
            renewed = changed(&mut readers) => publishing.follow(renewed).await,
            (_, text) = uplink.changed() => progress.say_once(&text),
            state = claimed.changed() => match state {
                Ok(state) => tell_registration(&state, &name, &stats, &mut progress),
                Err(taken) => break Err(taken),
            },
            () = stop.wait() => break Ok(()),
        }
    };
    progress.say("Stopping.");
    stats.write(&publishing.figures().await, true)?;
    drop(publishing);
    node.shutdown().await;
    outcome.and_then(|()| uplink.ensure_was_up())?;
    anyhow::ensure!(claimed.was_registered(), NEVER_REGISTERED);
    Ok(())
}

/// Returns the key that publishes `name` by the rules, if there are rules.
async fn certified(
    rules: &Rules,
    node: &Node,
    uplink: &Uplink,
    (keys, name): (&Keys, &Name),
) -> anyhow::Result<Option<Certified>> {
    let store = key_store(keys.keys.clone())?;
    rules.publisher(node, uplink.face(), (&store, name)).await
}

/// Follows the roster, if there is one, which sealing takes.
fn readers(
    certified: Option<Certified>,
    is_sealed: bool,
    clock: Clock,
) -> anyhow::Result<Option<Readers>> {
    let followed = certified.and_then(|it| it.followed);
    anyhow::ensure!(!is_sealed || followed.is_some(), NO_ROSTER);
    Ok(followed.map(|followed| Readers::new(followed, clock)))
}

/// Waits until there is another roster, if there is one.
async fn changed(readers: &mut Option<Readers>) -> (BTreeSet<[u8; 32]>, u64) {
    match readers {
        Some(readers) => readers.changed().await,
        None => core::future::pending().await,
    }
}

/// Shows and writes figures.
async fn show(
    publishing: &mut Publishing,
    stats: &mut Reporter,
    progress: &mut ProgressLine,
    has_told: &mut bool,
) -> anyhow::Result<()> {
    let figures = publishing.figures().await;
    stats.set_problem("input", publishing.problem());
    stats.write(&figures, false)?;
    *has_told |= tell_refusal(&figures, *has_told, progress);
    progress.show(&figures.line());
    Ok(())
}

/// Lets whoever watches fetch the last frames.
async fn linger(stop: &mut Stop, progress: &mut ProgressLine) {
    progress.say("End of input");
    tokio::select! {
        () = tokio::time::sleep(LINGER) => {}
        () = stop.wait() => {}
    }
}

/// Says why frames are left out, unless that was said. Returns whether it was said now.
fn tell_refusal(figures: &Figures, has_told: bool, progress: &mut ProgressLine) -> bool {
    let refusal = figures.last_refusal.as_ref().filter(|_| !has_told);
    if let Some(refusal) = refusal {
        progress.say(&format!("Frames are left out: {refusal}"));
    }
    refusal.is_some()
}

/// A length of segments.
fn parse_segment(text: &str) -> Result<Duration, String> {
    let segment = parse_duration(text).map_err(|error| error.to_string())?;
    match SEGMENTS.contains(&segment) {
        true => Ok(segment),
        false => Err(format!("no segments of {text} are made: write 1s to 30s")),
    }
}

/// Waits until the inputs are open, and says now and then that they are not.
async fn wait(
    opening: impl Future<Output = anyhow::Result<Publishing>>,
    (input, uplink): (&str, &mut Uplink),
    progress: &mut ProgressLine,
    stop: &mut Stop,
) -> anyhow::Result<Publishing> {
    let mut opening = core::pin::pin!(opening);
    loop {
        tokio::select! {
            started = &mut opening => return started,
            () = tokio::time::sleep(SILENCE) => {
                progress.say(&format!("Nothing has come from {input} yet; waiting for it"));
            }
            (_, text) = uplink.changed() => progress.say_once(&text),
            () = stop.wait() => {
                uplink.ensure_was_up()?;
                anyhow::bail!("nothing came from {input}: check that something sends to it");
            }
        }
    }
}

/// Tells what is published, and who signs it.
fn introduce(
    progress: &mut ProgressLine,
    run: &Run,
    publishing: &Publishing,
    name: &Name,
    input: &str,
) -> anyhow::Result<()> {
    if run.json && !run.quiet {
        print_line(about(publishing, name))?;
    }
    let streams = publishing.describe();
    progress.say(&format!("Publishing {name}, from {input}: {streams}"));
    progress.say(&format!("Signed by {}", publishing.key_name));
    progress.say(&format!("Key digest {}", publishing.key_digest));
    Ok(())
}

/// Tells how the registration stands, people and programs.
fn tell_registration(
    state: &RegistrationState,
    name: &Name,
    stats: &Reporter,
    progress: &mut ProgressLine,
) {
    let Some(text) = describe_registration(state, &name.to_string()) else {
        return;
    };
    progress.say(&text);
    stats.set_problem("registration", registration_problem(state, name));
}

/// What is published, for programs.
fn about(publishing: &Publishing, name: &Name) -> Value {
    json!({
        "name": name.to_string(),
        "key_name": publishing.key_name.to_string(),
        "key_digest": publishing.key_digest,
        "streams": publishing.streams_json(),
    })
}

/// What keeps Interests for `name` from coming here, if anything does.
pub(super) fn registration_problem(state: &RegistrationState, name: &Name) -> Option<String> {
    match state {
        RegistrationState::Registered => None,
        state => describe_registration(state, &name.to_string()),
    }
}

/// How a registration stands, for people.
pub(super) fn describe_registration(state: &RegistrationState, name: &str) -> Option<String> {
    match state {
        RegistrationState::Registered => {
            Some(format!("The forwarder sends Interests for {name} here"))
        }
        RegistrationState::Refused(why) => Some(format!("The forwarder refuses {name}: {why}")),
        RegistrationState::Unanswered => {
            Some("The forwarder does not answer to the registration".to_owned())
        }
        RegistrationState::Pending | RegistrationState::Ended => None,
    }
}
