//! Fetchers and servers of flows.

use std::collections::BTreeSet;

use namecast_apps::sequence::{
    Fetcher, FetcherConfig, Provider, ProviderConfig, Repair, Server, ServerConfig,
};
use namecast_forward::FaceConfig;
use namecast_packet::Name;
use namecast_units::{Instant, Random};

use super::ScenarioError;
use super::flows::Flow;
use super::forwarding::Routes;
use super::network::PacketSize;
use super::place::find;
use crate::network::{ApplicationId, Network};
use crate::topology::{NodeIndex, Topology, routes};

/// Adds flows to networks of one topology.
pub(super) struct Fetching<'t> {
    topology: &'t Topology,
    packet: PacketSize,
    routes: Routes,
    /// Who answers for which prefix.
    served: BTreeSet<(NodeIndex, Name)>,
}

/// A flow in the network.
pub(super) struct Fetched {
    pub(super) application: ApplicationId,
    pub(super) consumer: NodeIndex,
    pub(super) producer: NodeIndex,
}

impl<'t> Fetching<'t> {
    /// Flows of packets of that size.
    pub(super) const fn new(topology: &'t Topology, packet: PacketSize, routes: Routes) -> Self {
        Self {
            topology,
            packet,
            routes,
            served: BTreeSet::new(),
        }
    }

    /// The topology.
    pub(super) const fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// Adds copy `number` of a flow; `adjust` changes what its fetcher is told.
    ///
    /// # Errors
    /// If a name or a node is wrong.
    pub(super) fn add(
        &mut self,
        network: &mut Network,
        (flow, number): (&Flow, u32),
        random: &mut Random,
        adjust: impl FnOnce(&mut FetcherConfig),
    ) -> Result<Fetched, ScenarioError> {
        let wrong = |problem: String| ScenarioError::new("flows", problem);
        let named = |text: &str| Flow::named(text, number);
        let consumer = find(self.topology, &named(&flow.consumer)).map_err(wrong)?;
        let producer = find(self.topology, &named(&flow.producer)).map_err(wrong)?;
        let config = flow.fetcher(number, self.packet, random.next_u64());
        let mut config = config.map_err(wrong)?;
        self.serve(network, producer, (&config.prefix, flow))?;
        adjust(&mut config);
        let face = FaceConfig {
            // Who chooses among neighbours and the provider knows them by their faces.
            local_fields: config
                .ending
                .is_some_and(|it| it.repair == Repair::FromPeers),
            ..FaceConfig::application("application")
        };
        let application = network.add_application_on(consumer, face, Fetcher::new(config));
        let start = Instant::ZERO + flow.start + flow.start_spread.mul_f64(random.unit());
        network.schedule(start, move |network| {
            network.with_application(application, |fetcher: &mut Fetcher, now| {
                fetcher.start(now.monotonic);
            });
        });
        if let Some(stop) = flow.stop {
            network.schedule(Instant::ZERO + stop, move |network| {
                network.with_application(application, |fetcher: &mut Fetcher, now| {
                    fetcher.stop(now.monotonic);
                });
            });
        }
        Ok(Fetched {
            application,
            consumer,
            producer,
        })
    }

    /// Lets a node answer for a prefix, unless it does already, with routes from everywhere.
    fn serve(
        &mut self,
        network: &mut Network,
        producer: NodeIndex,
        (prefix, flow): (&Name, &Flow),
    ) -> Result<(), ScenarioError> {
        let served = (producer, prefix.clone());
        if self.served.contains(&served) {
            return Ok(());
        }
        let server = ServerConfig {
            end: flow.last_number(),
            ..self.packet.server(prefix.clone())
        };
        let wrong_size = |error| ScenarioError::new("packet", error);
        let wrong = |error| ScenarioError::new("flows", error);
        let towards = match self.routes {
            Routes::Shortest => routes::towards(self.topology, producer),
            Routes::All => Vec::new(),
        };
        let added = match flow.provider_rate {
            Some(rate) => {
                let provider = Provider::new(ProviderConfig {
                    server,
                    rate,
                    quantile: flow.provider_quantile,
                    start: Instant::ZERO + flow.provider_start,
                });
                let provider = provider.map_err(wrong_size)?;
                network.add_producer(producer, prefix, provider, &towards)
            }
            None => {
                let server = Server::new(server).map_err(wrong_size)?;
                network.add_producer(producer, prefix, server, &towards)
            }
        };
        added.map_err(wrong)?;
        if self.routes == Routes::All {
            let hops = routes::all_next_hops(self.topology, producer);
            for (node, hops) in hops.into_iter().enumerate() {
                for hop in hops {
                    let face = network.face_of(node, hop.link);
                    let face = face.expect("a next hop's link starts at its node");
                    network
                        .add_route(node, prefix.clone(), face, hop.cost)
                        .map_err(wrong)?;
                }
            }
        }
        self.served.insert(served);
        Ok(())
    }
}
