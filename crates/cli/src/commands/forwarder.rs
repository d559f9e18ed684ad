//! `namecast forwarder`: a node that others connect to, with the page.

use namecast_net::{Node, NodeConfig};
use namecast_packet::Name;
use namecast_units::ByteSize;
use serde_json::json;

use super::page::Page;
use super::{FIGURES_INTERVAL, Stop};
use crate::arguments::Forwarder;
use crate::page_server::PageConfig;
use crate::report::{ProgressLine, StatsFile};

/// Cost of the way upstream: anything registered here is nearer.
const UPSTREAM_COST: u64 = 100;

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Forwarder) -> anyhow::Result<()> {
    let Forwarder {
        cache,
        udp,
        udp_reliability,
        tcp,
        unix,
        name,
        upstream,
        page,
        run,
    } = arguments;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = StatsFile::create(run.stats.as_deref())?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let node = Node::start(NodeConfig {
        udp_reliability,
        ..NodeConfig::caching(ByteSize::mebibytes(cache))
    });
    let mut sockets = Vec::new();
    // An address that was asked for and cannot be had is an error here: others rely on it.
    if let Some(address) = udp.0 {
        sockets.push(node.listen_udp(address).await?);
    }
    if let Some(address) = tcp.0 {
        sockets.push(node.listen_tcp(address).await?);
    }
    let unix = match &unix {
        Some(path) => Some(node.listen_unix(path).await?),
        None => None,
    };
    for remote in &upstream {
        let face = node.connect(remote.clone()).await?;
        node.add_route(Name::root(), face, UPSTREAM_COST).await?;
    }
    let config = PageConfig {
        name: name.map(|name| name.to_string()),
        key: None,
    };
    let page = Page::start(&node, &page, config, None).await?;
    let mut uris: Vec<_> = sockets
        .iter()
        .map(|socket| socket.uri().to_string())
        .collect();
    uris.extend(unix.as_ref().map(|unix| unix.uri().to_string()));
    if run.json && !run.quiet {
        let object = json!({ "faces": uris, "url": page.url(), "other_urls": page.other_urls() });
        println!("{object}");
    }
    progress.say(&format!("Forwarding: {}", uris.join("  ")));
    for remark in &page.remarks {
        progress.say(&format!("({remark})"));
    }
    for url in core::iter::once(page.url()).chain(page.other_urls()) {
        progress.say(&format!("Page: {url}"));
    }
    watch(&node, &mut stop, &mut stats, &mut progress).await?;
    progress.say("Stopping.");
    stats.write(&node.status().await?, true)?;
    drop((page, sockets, unix));
    node.shutdown().await;
    Ok(())
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
