//! `namecast demo`: node, publisher, archive and page in one process.

use axum::Router;
use clap::Args;
use namecast_apps::live::watcher::Pin;
use namecast_archive::Location;
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Run, Stop};
use namecast_net::{Node, NodeConfig};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use serde_json::json;

use super::FIGURES_INTERVAL;
use super::page::{Doors, Invitations, Page, interface};
use super::publishing::{Happened, Manner, Publishing};
use crate::archiving::{Archiving, ArchivingConfig};
use crate::arguments::{Keys, Media, PagePort};
use crate::key_check::KeyCheck;
use crate::page_server::PageConfig;
use crate::telemetry::{Observation, Reporter, tables};

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
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// What the node keeps: half a minute of the highest rung, as nobody on this machine requests older Data.
const CACHE: ByteSize = ByteSize::mebibytes(16);

/// How far watchers can go back, and what that may take on disk.
const KEEP: Duration = Duration::from_secs(600);
const KEEP_SIZE: ByteSize = ByteSize::mebibytes(1_024);

/// Runs until interrupted, or the input or the time is over.
pub(super) async fn run(arguments: Demo) -> anyhow::Result<()> {
    let Demo {
        name,
        media,
        page,
        run,
        observation,
        keys,
    } = arguments;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = Reporter::start(&tables::DEMO, &run, &observation).await?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    progress.say(&format!("Opening {} …", media.input_text()));
    let invitations = Invitations::new(&page)?;
    let node = Node::start(invitations.configure(NodeConfig::caching(CACHE)));
    stats.observe(&node);
    let mut publishing = tokio::select! {
        started = Publishing::start(&node, &name, &media, &keys, Manner::plain(node.clock())) => started?,
        () = stop.wait() => return Ok(()),
    };
    // It goes with its directory when the demo ends.
    let kept = tempfile::tempdir()?;
    let mut archiving = start_archive(&node, &name, &publishing, &kept).await?;
    let doors = Doors::open(&node, interface(page.listen)).await;
    let config = PageConfig {
        name: Some(name.to_string()),
        key: Some(publishing.key_digest.clone()),
    };
    let extras = (stats.telemetry(), Router::new());
    let page = Page::start(&node, &page, config, &invitations, extras).await?;
    introduce(
        &mut progress,
        &run,
        &Introduction {
            name: name.to_string(),
            publishing: &publishing,
            doors: &doors,
            page: &page,
            input: media.input_text(),
        },
    )?;
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    let outcome = loop {
        tokio::select! {
            happened = publishing.next() => match happened {
                Happened::Frame => {}
                Happened::Trouble(text) => progress.say(&text),
                Happened::Over(outcome) => {
                    progress.say("End of input");
                    break outcome;
                }
            },
            // What it has to say is in the log; here it would only distract.
            _ = archiving.next_sentence() => {}
            _ = tick.tick() => {
                archiving.route_indexes().await?;
                let mut figures = publishing.figures().await;
                figures.archive = Some(archiving.figures());
                stats.set_problem("input", publishing.problem());
                stats.write(&figures, false)?;
                progress.show(&format!("  {}", figures.line()));
            }
            () = stop.wait() => break Ok(()),
        }
    };
    progress.say("Stopping.");
    stats.write(&publishing.figures().await, true)?;
    archiving.stop().await;
    drop((publishing, page, doors));
    node.shutdown().await;
    outcome
}

async fn start_archive(
    node: &Node,
    name: &Name,
    publishing: &Publishing,
    kept: &tempfile::TempDir,
) -> anyhow::Result<Archiving> {
    let config = ArchivingConfig {
        root: name.clone(),
        location: Location::Directory(kept.path().to_owned()),
        keep: Some(KEEP),
        keep_size: Some(KEEP_SIZE),
        room: None,
        upstream: None,
    };
    let mut archiving = Archiving::open(node, config).await?;
    let keys = KeyCheck::pinned(name.clone(), Pin::Digest(publishing.digest));
    archiving.record(keys).await?;
    Ok(archiving)
}

struct Introduction<'a> {
    name: String,
    publishing: &'a Publishing,
    doors: &'a Doors,
    page: &'a Page,
    input: String,
}

/// Says what there is, and where.
fn introduce(
    progress: &mut ProgressLine,
    run: &namecast_command::Run,
    about: &Introduction<'_>,
) -> anyhow::Result<()> {
    let Introduction {
        name,
        publishing,
        doors,
        page,
        input,
    } = about;
    let (key_name, digest) = (&publishing.key_name, &publishing.key_digest);
    if run.json && !run.quiet {
        let object = json!({
            "name": name, "input": input, "url": page.url(), "other_urls": page.other_urls(),
            "key_name": key_name.to_string(), "key_digest": digest, "faces": doors.uris(),
            "streams": publishing.streams_json(), "go_live": page.live_links_json(),
        });
        print_line(object)?;
    }
    progress.say("");
    progress.say(&format!("  publishing  {name}, from {input}"));
    progress.say(&format!("  streams     {}", publishing.describe()));
    progress.say(&format!("  signed by   {key_name}"));
    progress.say(&format!("              key digest {}…", &digest[..16]));
    progress.say(&format!("  node        {}", doors.uris().join("  ")));
    for remark in doors.remarks.iter().chain(&page.remarks) {
        progress.say(&format!("              ({remark})"));
    }
    progress.say(&format!(
        "  natively    namecast watch {name} --output - | ffplay -"
    ));
    progress.say("");
    progress.say(&format!("  Open        {}", page.url()));
    for url in page.other_urls() {
        progress.say(&format!("              {url}"));
    }
    for line in page.qr_code().iter().flat_map(|code| code.lines()) {
        progress.say(line);
    }
    for line in page.live_lines() {
        progress.say(&format!("  {line}"));
    }
    progress.say("");
    progress.say("  Ctrl-C ends it.");
    Ok(())
}
