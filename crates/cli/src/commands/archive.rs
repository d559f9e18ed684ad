//! `namecast archive`: keeps everything that is published under a name, and serves it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use namecast_archive::Location;
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Run, Stop, parse_duration};
use namecast_net::{Node, NodeConfig};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, ParseQuantityError};
use serde_json::json;

use super::FIGURES_INTERVAL;
use super::uplink::Uplink;
use crate::archiving::{Archiving, ArchivingConfig, Sentence};
use crate::arguments::Trusted;
use crate::connect::Connect;
use crate::places;
use crate::rules::Rules;
use crate::telemetry::{Observation, Reporter, tables};

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
    /// Which key may sign which name.
    #[command(flatten)]
    pub rules: Rules,
    /// The forwarder to record and serve through.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
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

/// Reads a size that is not zero.
fn parse_size(text: &str) -> Result<ByteSize, String> {
    match text.parse() {
        Ok(ByteSize::ZERO) => {
            Err("an archive of nothing keeps nothing: write 500M or 10G".to_owned())
        }
        Ok(size) => Ok(size),
        Err(error) => Err(ParseQuantityError::to_string(&error)),
    }
}

/// What the node keeps: the archive has a memory of its own.
const CACHE: ByteSize = ByteSize::mebibytes(1);

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Archive) -> anyhow::Result<()> {
    let Archive {
        name,
        keep,
        trusted,
        rules,
        connect,
        run,
        observation,
    } = arguments;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = Reporter::start(&tables::ARCHIVE, &run, &observation).await?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let node = Node::start(NodeConfig::caching(CACHE));
    stats.observe(&node);
    let mut uplink = Uplink::new(&node, &connect).await?;
    node.add_route(name.clone(), uplink.face(), 0).await?;
    let (store, location) = location(&keep)?;
    let config = ArchivingConfig {
        root: name.clone(),
        location,
        keep: keep.keep,
        keep_size: keep.keep_size,
        room: rules.root(),
        upstream: Some(uplink.face()),
    };
    // Where host and publisher are gone, it serves their rules to itself.
    let mut archiving = Archiving::open(&node, config).await?;
    let trusted = (&name, &trusted);
    let (keys, _followed) = rules.key_check(&node, uplink.face(), trusted).await?;
    archiving.record(keys).await?;
    progress.say(&format!("Keeping {name} in {store}"));
    if run.json && !run.quiet {
        let object = json!({ "name": name.to_string(), "store": store });
        print_line(object)?;
    }
    let mut store_failures = 0;
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            sentence = archiving.next_sentence() => {
                tell(&sentence, &run, &mut progress, &mut stats)?;
            }
            _ = tick.tick() => {
                archiving.route_indexes().await?;
                let figures = archiving.figures();
                if figures.store_failures > store_failures {
                    store_failures = figures.store_failures;
                    stats.on_trouble("store", &format!("what came is not kept: {store} fails"));
                }
                stats.write(&figures, false)?;
                progress.show(&figures.line());
            }
            (_, text) = uplink.changed() => progress.say_once(&text),
            () = stop.wait() => break,
        }
    }
    progress.say("Stopping.");
    stats.write(&archiving.figures(), true)?;
    archiving.stop().await;
    node.shutdown().await;
    uplink.ensure_was_up()
}

/// Tells people and programs what has happened.
fn tell(
    sentence: &Sentence,
    run: &Run,
    progress: &mut ProgressLine,
    stats: &mut Reporter,
) -> anyhow::Result<()> {
    let text = sentence.text();
    match sentence {
        Sentence::Refusal(text) => {
            stats.on_trouble("refusal", text);
            match run.json {
                true => progress.say(text),
                false => progress.say_error(text),
            }
        }
        _ => progress.say(text),
    }
    match run.json && !run.quiet {
        true => print_line(json!({ "event": text })),
        false => Ok(()),
    }
}

/// Where to keep: as people write it, and as it is opened.
fn location(keep: &Keep) -> anyhow::Result<(String, Location)> {
    let spool = keep.spool.clone().map_or_else(default_directory, Ok)?;
    let store = match &keep.store {
        Some(store) => store.clone(),
        None => default_directory()?.display().to_string(),
    };
    let location = Location::parse(&store, &spool)?;
    Ok((store, location))
}

/// `$XDG_DATA_HOME/namecast/archive`, or below `~/.local/share`.
fn default_directory() -> anyhow::Result<PathBuf> {
    let data = places::data_directory().context("name a directory with --store")?;
    Ok(data.join("archive"))
}
