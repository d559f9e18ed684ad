//! `namecast forwarder`: a node that others connect to, with the page.

use std::path::Path;

use namecast_net::management::CHILD_INHERIT;
use namecast_net::{FaceOptions, Node, NodeConfig};
use namecast_packet::Name;
use namecast_units::ByteSize;
use serde_json::json;

use super::FIGURES_INTERVAL;
use super::page::Page;
use crate::arguments::Forwarder;
use crate::forwarder_config::{self, Settings, StaticFace, StaticRoute};
use crate::page_server::PageConfig;
use namecast_command::Stop;
use namecast_command::report::{ProgressLine, StatsFile};

/// Cost of the way upstream: anything registered here is nearer.
const UPSTREAM_COST: u64 = 100;

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Forwarder) -> anyhow::Result<()> {
    if arguments.print_config {
        print!("{}", forwarder_config::DEFAULT);
        return Ok(());
    }
    let settings = settings(&arguments)?;
    let Forwarder {
        name, page, run, ..
    } = arguments;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = StatsFile::create(run.stats.as_deref())?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let (node, listeners) = settings.start().await?;
    let config = PageConfig {
        name: name.map(|name| name.to_string()),
        key: None,
    };
    let page = Page::start(&node, &page, config, None).await?;
    let uris = listeners.uris();
    if run.json && !run.quiet {
        let object = json!({ "faces": uris, "url": page.url(), "other_urls": page.other_urls() });
        println!("{object}");
    }
    progress.say(&format!("Forwarding: {}", uris.join("  ")));
    for remark in listeners.remarks.iter().chain(&page.remarks) {
        progress.say(&format!("({remark})"));
    }
    for url in core::iter::once(page.url()).chain(page.other_urls()) {
        progress.say(&format!("Page: {url}"));
    }
    watch(&node, &mut stop, &mut stats, &mut progress).await?;
    progress.say("Stopping.");
    stats.write(&node.status().await?, true)?;
    drop((page, listeners));
    node.shutdown().await;
    Ok(())
}

/// What the file says, or what the command line does.
fn settings(arguments: &Forwarder) -> anyhow::Result<Settings> {
    if let Some(path) = &arguments.config {
        return Ok(Settings::read(path)?);
    }
    let upstream = arguments.upstream.iter().cloned();
    let faces: Vec<_> = upstream
        .map(|uri| StaticFace {
            uri,
            interface: None,
            options: FaceOptions::default(),
        })
        .collect();
    let routes = faces.iter().map(|face| StaticRoute {
        prefix: Name::root(),
        face: face.uri.clone(),
        interface: None,
        cost: UPSTREAM_COST,
        flags: CHILD_INHERIT,
    });
    let unix = arguments.unix.clone().map(|path| match path {
        off if off == Path::new("off") => Vec::new(),
        path => vec![path],
    });
    Ok(Settings {
        node: NodeConfig {
            udp_reliability: arguments.udp_reliability,
            forwarders: arguments.threads.into(),
            ..NodeConfig::caching(ByteSize::mebibytes(arguments.cache))
        },
        udp: arguments.udp.0.into_iter().collect(),
        tcp: arguments.tcp.0.into_iter().collect(),
        unix,
        routes: routes.collect(),
        faces,
        ..Settings::default()
    })
}

/// Writes and shows figures until it is time to stop.
async fn watch(
    node: &Node,
    stop: &mut Stop,
    stats: &mut StatsFile,
    progress: &mut ProgressLine,
) -> anyhow::Result<()> {
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                let status = node.status().await?;
                stats.write(&status, false)?;
                progress.show(&format!(
                    "{} faces, {} Interests and {} Data in, {} answered from the cache",
                    status.faces.len(), status.incoming.interests, status.incoming.data, status.content_store_hits
                ));
            }
            () = stop.wait() => return Ok(()),
        }
    }
}
