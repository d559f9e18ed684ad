//! `namecast archive`: keeps everything that is published under a name, and serves it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use namecast_archive::Location;
use namecast_command::report::{ProgressLine, StatsFile};
use namecast_command::{Run, Stop, parse_duration};
use namecast_net::{LinkState, Node, NodeConfig};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use serde_json::json;

use super::FIGURES_INTERVAL;
use super::publish::describe_link;
use crate::archiving::{Archiving, ArchivingConfig, Sentence};
use crate::arguments::Trusted;
use crate::connect::{Chosen, Connect};
use crate::key_check::KeyCheck;
use crate::places;

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

/// What the node keeps: the archive has a memory of its own.
const CACHE: ByteSize = ByteSize::mebibytes(1);

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Archive) -> anyhow::Result<()> {
    let Archive {
        name,
        keep,
        trusted,
        connect,
        run,
    } = arguments;
    let keys = KeyCheck::new(name.clone(), &trusted)?;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = StatsFile::create(run.stats.as_deref())?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let node = Node::start(NodeConfig::caching(CACHE));
    let Chosen { uri, face } = connect.keep(&node).await?;
    node.add_route(name.clone(), face, 0).await?;
    let mut link = node.link_state(face).await?;
    let (store, location) = location(&keep)?;
    let config = ArchivingConfig {
        root: name.clone(),
        location,
        keep: keep.keep,
        keep_size: keep.keep_size,
        keys,
        upstream: Some(face),
    };
    let mut archiving = Archiving::start(&node, config).await?;
    progress.say(&format!("Keeping {name} in {store}"));
    if run.json && !run.quiet {
        let object = json!({ "name": name.to_string(), "store": store });
        println!("{object}");
    }
    let remote = uri.to_string();
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            sentence = archiving.next_sentence() => {
                let text = sentence.text();
                match &sentence {
                    Sentence::Refusal(text) if !run.json => progress.say_error(text),
                    _ => progress.say(text),
                }
                if run.json && !run.quiet {
                    println!("{}", json!({ "event": text }));
                }
            }
            _ = tick.tick() => {
                archiving.route_streams().await?;
                let figures = archiving.figures();
                stats.write(&figures, false)?;
                progress.show(&figures.line());
            }
            Ok(()) = link.changed() => {
                let state: LinkState = link.borrow_and_update().clone();
                progress.say_once(&describe_link(&state, &remote));
            }
            () = stop.wait() => break,
        }
    }
    progress.say("Stopping.");
    stats.write(&archiving.figures(), true)?;
    archiving.stop().await;
    node.shutdown().await;
    Ok(())
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
