//! A flow of numbered Data between two forwarders, and what the kernel's queue between them says.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;
use namecast::{Handle, Node, Timer, drive};
use namecast_apps::sequence::{Fetcher, FetcherConfig, Figures, Server, ServerConfig};
use namecast_packet::Name;
use namecast_sim::topology::{NodeIndex, Topology, routes};
use namecast_sim::{ApplicationId, Network, NodeConfig};
use namecast_stream::path::NumberedConfig;
use namecast_stream::rate::RateControl;
use namecast_units::{Bitrate, Duration, Instant};
use serde::Deserialize;

/// Octets of content in a Data packet, and of all of it.
const CONTENT: usize = 1_024;
pub(super) const DATA: usize = 1_074;
/// What the kernel counts of a frame besides it: headers of Ethernet, IPv4 and UDP.
pub(super) const HEADERS: u64 = 14 + 20 + 8;

/// Time's worth of the allowed rate that may leave at once over sockets, where wakes are late.
const BURST: Duration = Duration::from_millis(1);

/// Two forwarders, and the kernel's queue between them.
#[derive(Clone, Debug, Args)]
pub struct KernelLink {
    /// Forwarder that the Data comes from.
    #[arg(long, value_name = "URI")]
    pub producer: String,
    /// Forwarder that it is asked for at, which has a route to the other for the name of the case, such as /marks.
    #[arg(long, value_name = "URI")]
    pub consumer: String,
    /// Interface of the producer's forwarder, with tbf as its queue.
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// Rate of that queue.
    #[arg(long, value_name = "RATE", default_value = "10M")]
    pub rate: Bitrate,
}

pub(super) fn flow(prefix: Name, control: RateControl, seed: u64) -> FetcherConfig {
    let requests = NumberedConfig {
        control,
        retransmit: true,
        seed,
        ..NumberedConfig::default()
    };
    FetcherConfig {
        sample_interval: None,
        ..FetcherConfig::new(prefix, requests)
    }
}

fn server(prefix: Name) -> anyhow::Result<Server> {
    let server = Server::new(ServerConfig {
        prefix,
        content_size: CONTENT,
        wire_size: Some(DATA),
        ..ServerConfig::default()
    });
    server.context("a packet of that size")
}

/// A flow between two forwarders.
pub(super) struct Running {
    fetcher: Handle<Fetcher>,
    _server: Handle<Server>,
}

const ENDED: &str = "the fetcher ended early";

impl Running {
    /// Serves at the producer, waits for `pause`, in which routes are registered, and starts to fetch at the consumer.
    pub(super) async fn start(
        (producer, consumer): (&Node, &Node),
        mut flow: FetcherConfig,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        let prefix = flow.prefix.clone();
        let (server, _) = producer.run(Some(&prefix), server(prefix.clone())?).await?;
        let face = consumer.inner().application_face().await?;
        flow.requests.burst = BURST;
        let fetcher = drive(consumer.inner().clock(), face, Fetcher::new(flow));
        let (fetcher, _) = fetcher.timed_by(Timer::fine()?).spawn(|| {});
        tokio::time::sleep(pause).await;
        let start = fetcher.call(|fetcher, now| fetcher.start(now.monotonic));
        start.await.context(ENDED)?;
        Ok(Self {
            fetcher,
            _server: server,
        })
    }

    /// Returns what was fetched so far.
    ///
    /// # Errors
    /// If that is nothing.
    pub(super) async fn figures(&self) -> anyhow::Result<Figures> {
        let figures = self.fetcher.call(|fetcher, _| fetcher.figures());
        let figures = figures.await.context(ENDED)?;
        ensure!(
            figures.data > 0,
            "no Data came: is there a route between the forwarders for what is fetched?"
        );
        Ok(figures)
    }
}

/// The same flow in virtual time.
pub(super) struct Simulated {
    pub(super) network: Network,
    fetcher: ApplicationId,
}

impl Simulated {
    /// Starts to fetch at the consumer what the producer serves.
    pub(super) fn start(
        topology: &Topology,
        (producer, consumer): (NodeIndex, NodeIndex),
        seed: u64,
        flow: FetcherConfig,
    ) -> anyhow::Result<Self> {
        let towards = routes::towards(topology, producer);
        let mut network = Network::new(topology, seed, |_| NodeConfig::default());
        let prefix = flow.prefix.clone();
        network.add_producer(producer, &prefix, server(prefix.clone())?, &towards)?;
        let fetcher = network.add_application(consumer, Fetcher::new(flow));
        network.with_application(fetcher, |fetcher: &mut Fetcher, now| {
            fetcher.start(now.monotonic);
        });
        Ok(Self { network, fetcher })
    }

    /// Lets time pass. Returns what was fetched by then.
    pub(super) fn figures_at(&mut self, time: Duration) -> Figures {
        self.network.run_until(Instant::ZERO + time);
        let fetcher: Option<&Fetcher> = self.network.application(self.fetcher);
        fetcher.map(Fetcher::figures).unwrap_or_default()
    }
}

/// The middle one of some values; of an even number the upper of both.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// What the kernel says of its queue.
#[derive(Debug, Deserialize)]
pub(super) struct KernelQueue {
    kind: String,
    /// Octets and frames that wait, headers included.
    pub(super) backlog: u64,
    pub(super) qlen: u64,
    /// Octets that left it, headers included, and frames that it dropped.
    pub(super) bytes: u64,
    pub(super) drops: u64,
}

impl KernelQueue {
    /// Reads the token bucket filter of an interface.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn read(device: &str) -> anyhow::Result<Self> {
        let mut command = Command::new("tc");
        let command = command.args(["-s", "-j", "qdisc", "show", "dev", device]);
        let printed = command.output().context("cannot run tc")?.stdout;
        let queues: Vec<Self> = serde_json::from_slice(&printed).context("what tc printed")?;
        let queue = queues.into_iter().find(|queue| queue.kind == "tbf");
        queue.with_context(|| format!("{device} has no tbf: tc qdisc add dev {device} root tbf …"))
    }
}
