//! Fetchers and servers of flows.

use std::collections::BTreeSet;

use namecast_apps::sequence::{Fetcher, FetcherConfig, Server, ServerConfig};
use namecast_packet::Name;
use namecast_stream::path::NumberedConfig;
use namecast_units::{ByteSize, Instant, Random};

use super::ScenarioError;
use super::flows::Flow;
use super::network::PacketSize;
use super::place::find;
use crate::network::{ApplicationId, Network};
use crate::topology::{NodeIndex, Topology, routes};

/// Adds flows to networks of one topology.
pub(super) struct Fetching<'t> {
    topology: &'t Topology,
    packet: PacketSize,
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
    pub(super) const fn new(topology: &'t Topology, packet: PacketSize) -> Self {
        Self {
            topology,
            packet,
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
        let prefix: Name = named(&flow.prefix)
            .parse()
            .map_err(|error| wrong(format!("'{}' is no name: {error}", flow.prefix)))?;
        self.serve(network, producer, &prefix)?;
        let mut config = self
            .config(flow, prefix, random.next_u64())
            .map_err(wrong)?;
        adjust(&mut config);
        let application = network.add_application(consumer, Fetcher::new(config));
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

    fn config(&self, flow: &Flow, prefix: Name, seed: u64) -> Result<FetcherConfig, String> {
        let requests = NumberedConfig {
            expected_size: ByteSize::bytes(u64::from(self.packet.payload)),
            control: flow.controller.get()?,
            lifetime: flow.lifetime,
            retransmit: flow.retransmit,
            reordering_tolerance: flow.reordering_tolerance,
            seed,
            ..NumberedConfig::default()
        };
        Ok(FetcherConfig::new(prefix, requests))
    }

    /// Lets a node answer for a prefix, unless it does already, with routes from everywhere.
    fn serve(
        &mut self,
        network: &mut Network,
        producer: NodeIndex,
        prefix: &Name,
    ) -> Result<(), ScenarioError> {
        let served = (producer, prefix.clone());
        if self.served.contains(&served) {
            return Ok(());
        }
        let server = Server::new(ServerConfig {
            prefix: prefix.clone(),
            content_size: self.packet.payload as usize,
            wire_size: Some(self.packet.wire as usize),
            ..ServerConfig::default()
        })
        .map_err(|error| ScenarioError::new("packet", error))?;
        let towards = routes::towards(self.topology, producer);
        network
            .add_producer(producer, prefix, server, &towards)
            .map_err(|error| ScenarioError::new("flows", error))?;
        self.served.insert(served);
        Ok(())
    }
}
