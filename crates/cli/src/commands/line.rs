//! What `exchange`, `talk` and `remote` have in common: an endpoint of sessions on a node of its own, behind a forwarder.

use clap::Args;
use namecast_apps::live::watcher::Trust;
use namecast_apps::session::{
    CallId, Endpoint, EndpointConfig, Event, SessionConfig, SessionStats,
};
use namecast_command::Run;
use namecast_forward::{NamedHop, PiggybackConfig};
use namecast_net::{
    FaceId, Handle, Node, NodeConfig, Registration, RegistrationState, drive, random,
};
use namecast_packet::{Certificate, Name};
use namecast_units::{ByteSize, Duration};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::key_store;
use super::uplink::Uplink;
use crate::arguments::{Keys, Trusted};
use crate::connect::Connect;
use crate::telemetry::Observation;

/// What the node keeps: enough for packets that were lost on the last hop.
const CACHE: ByteSize = ByteSize::mebibytes(1);

/// Longest time that a goodbye takes: a call that is over answers for so long.
const MAX_GOODBYE: Duration = Duration::from_secs(4);

/// Longest time that a call waits for the forwarder.
const MAX_REGISTRATION: Duration = Duration::from_secs(2);

/// What all commands with a line take.
#[derive(Clone, Debug, Args)]
pub struct LineOptions {
    /// Send Data and the next Interest apart, also where the forwarder takes both in one packet.
    #[arg(long)]
    pub no_bundle: bool,
    /// The forwarder to use.
    #[command(flatten)]
    pub connect: Connect,
    /// Whose key counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// How long it runs, and what it reports.
    #[command(flatten)]
    pub run: Run,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// An endpoint, and the forwarder that it is reached through.
pub(super) struct Line {
    pub(super) node: Node,
    pub(super) uplink: Uplink,
    pub(super) endpoint: Handle<Endpoint>,
    pub(super) events: mpsc::Receiver<Event>,
    root: Name,
    registration: Registration,
    /// What was measured last.
    last: SessionStats,
}

/// What happened on a line.
pub(super) enum Happened {
    /// The endpoint reports something.
    Event(Event),
    /// What people should know of the forwarder.
    Text(String),
}

fn node_config(bundles: bool) -> NodeConfig {
    let config = NodeConfig::caching(CACHE);
    match bundles {
        false => config,
        true => config.hop(|_| {
            NamedHop::Piggyback(PiggybackConfig {
                // Sessions give both at once.
                wait: Duration::ZERO,
                ..PiggybackConfig::default()
            })
            .build()
        }),
    }
}

/// What all packets of `application` are under, of who is called `name`.
pub(super) fn root(name: &Name, application: &str) -> Name {
    name.builder().generic(application).finish()
}

impl Line {
    /// Opens a line for `application` of `name`, whose key signs.
    pub(super) async fn open(
        (name, application): (&Name, &str),
        config: EndpointConfig,
        options: &LineOptions,
    ) -> anyhow::Result<Self> {
        let bundles = !options.no_bundle;
        let key = key_store(options.keys.keys.clone())?.identity(name)?;
        let certificate = Certificate::decode(key.certificate)?;
        let root = root(name, application);
        let config = EndpointConfig {
            root: root.clone(),
            session: SessionConfig {
                bundles,
                ..config.session
            },
            secret: random(),
            seed: u64::from_le_bytes(random()),
            ..config
        };
        let endpoint = Endpoint::new(config, &*key.signer, &certificate);
        let node = Node::start(node_config(bundles));
        let uplink = Uplink::new(&node, &options.connect).await?;
        let face: FaceId = uplink.face();
        node.add_route(Name::root(), face, 0).await?;
        let own = node.application_face().await?;
        node.add_route(root.clone(), own.id(), 0).await?;
        let registration = node.register_prefix(face, root.clone(), 0);
        let (endpoint, events) = drive(node.clock(), own, endpoint).spawn(|| {});
        Ok(Self {
            node,
            uplink,
            endpoint,
            events,
            root,
            registration,
            last: SessionStats::default(),
        })
    }

    /// Waits for what happens next.
    ///
    /// # Errors
    /// If the forwarder refuses the name, or the node has stopped.
    pub(super) async fn next(&mut self) -> anyhow::Result<Happened> {
        let mut registered = self.registration.states();
        tokio::select! {
            event = self.events.recv() => match event {
                Some(event) => Ok(Happened::Event(event)),
                None => anyhow::bail!("the node has stopped"),
            },
            (_, text) = self.uplink.changed() => Ok(Happened::Text(text)),
            Ok(refused) = registered.wait_for(|it| matches!(it, RegistrationState::Refused(_))) => {
                let RegistrationState::Refused(why) = &*refused else {
                    return Ok(Happened::Text(String::new()));
                };
                anyhow::bail!("{} refuses {}: {why}", self.uplink.remote(), self.root)
            }
        }
    }

    /// The node that calls go through.
    pub(super) const fn node(&self) -> &Node {
        &self.node
    }

    /// Calls `callee`, whose key has to be in `trust`, once the forwarder sends Interests here: the callee first requests the caller's
    /// proof.
    pub(super) async fn dial(&self, callee: Name, trust: Trust) -> anyhow::Result<()> {
        // A forwarder that does not answer, or refuses, is reported by `next`.
        let _ = tokio::time::timeout(MAX_REGISTRATION, self.registration.registered()).await;
        self.call(|it, now| it.call(now, callee, trust)).await
    }

    /// Calls the endpoint, which runs as long as the node.
    pub(super) async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Endpoint, namecast_apps::Now) -> R + Send + 'static,
    ) -> anyhow::Result<R> {
        let called = self.endpoint.call(call).await;
        called.ok_or_else(|| anyhow::anyhow!("the node has stopped"))
    }

    /// Ends a call, and tells the other side why.
    pub(super) async fn hang_up(
        &self,
        call: CallId,
        why: impl AsRef<str> + Send + 'static,
    ) -> anyhow::Result<()> {
        self.call(move |it, now| it.close(now, call, why.as_ref()))
            .await
    }

    /// Ends a call, and waits until the other side knows, or nobody answers for that any more.
    pub(super) async fn hang_up_and_wait(
        &mut self,
        call: CallId,
        why: &'static str,
    ) -> anyhow::Result<()> {
        self.hang_up(call, why).await?;
        let ended = async {
            loop {
                if let Happened::Event(Event::Ended(ended, _)) = self.next().await?
                    && ended == call
                {
                    return Ok(());
                }
            }
        };
        let ended = tokio::time::timeout(MAX_GOODBYE, ended).await;
        ended.unwrap_or(Ok(()))
    }

    /// What was measured in `call`, or in the last one, for programs.
    pub(super) async fn figures(&mut self, call: Option<CallId>) -> anyhow::Result<Value> {
        if let Some(call) = call
            && let Some(stats) = self.call(move |it, _| it.stats(call)).await?
        {
            self.last = stats;
        }
        let counters = self.call(|it, _| *it.counters()).await?;
        let mut figures = describe(&self.last);
        let refused = counters.refused.iter();
        let refused = refused.map(|(reason, count)| (reason.name(), count));
        let unconfirmed = [("unconfirmed", counters.unconfirmed)];
        figures["setups_refused"] = (refused.chain(unconfirmed))
            .map(|(reason, count)| (reason.to_owned(), Value::from(count)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        Ok(figures)
    }

    /// Ends the line.
    ///
    /// # Errors
    /// If the forwarder was never there.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.node.shutdown().await;
        self.uplink.ensure_was_up()
    }
}

fn describe(stats: &SessionStats) -> Value {
    let (sent, received) = (&stats.sent, &stats.received);
    json!({
        "rtt_ms": stats.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        "packets_sent": sent.packets,
        "packets_repeated": sent.repeated,
        "packets_received": received.packets,
        "interests_sent": received.interests,
        "interests_retransmitted": received.retransmissions,
        "packets_replayed": received.replayed,
        "packets_forged": received.forged,
        "packets_given_up": received.given_up,
    })
}
