//! How the event loop carries out commands and answers questions.

use namecast_forward::FaceId;

use super::command::{Command, FaceDescription, NextHops, Query};
use super::event_loop::EventLoop;
use super::events::FaceEventKind;
use super::face_table::FaceEntry;
use super::options::FaceNature;
use super::status::{MAX_SOURCES, link_drops};
use super::{
    FaceOptions, FaceStatus, ListenerStatus, NodeError, NodeStatus, Persistency, RouteStatus,
    SourceStatus,
};
use crate::link::{KeepAlive, LinkCounters};

impl EventLoop {
    pub(super) fn handle_command(&mut self, command: Command) {
        // Whoever asked may have gone away; then nobody misses the answer.
        match command {
            Command::AddFace(new, reply) => {
                let added = self.add_face(new);
                if let Err(Ok(unused)) = reply.send(added) {
                    self.remove_face(unused.face);
                }
            }
            Command::RemoveFace(face) => self.remove_face(face),
            Command::UpdateFace {
                face,
                options,
                reply,
            } => {
                let _ = reply.send(self.update_face(face, &options));
            }
            Command::LinkChanged { face, is_up: true } => self.tell(face, FaceEventKind::Up),
            Command::LinkChanged { face, is_up: false } => self.tell(face, FaceEventKind::Down),
            Command::DatagramFace {
                listener,
                path,
                is_proven,
                reply,
            } => {
                let _ = reply.send(self.datagram_face(listener, path, is_proven));
            }
            Command::EndIdlest {
                listener,
                source,
                reply,
            } => {
                let _ = reply.send(self.end_idlest_connection(listener, source));
            }
            Command::EndDenied => self.end_denied(),
            Command::AddListener(entry, reply) => {
                self.listeners.insert(entry.id, entry);
                let _ = reply.send(());
            }
            Command::RemoveListener(id) => self.remove_listener(id),
            Command::AddRoute {
                prefix,
                face,
                cost,
                reply,
            } => {
                let _ = reply.send(self.add_route(prefix, face, cost));
            }
            Command::RemoveRoute {
                prefix,
                face,
                reply,
            } => {
                self.plane
                    .change(|forwarder| forwarder.remove_route(&prefix, face));
                self.routes.remove(&(prefix, face));
                let _ = reply.send(());
            }
            Command::Ask(query) => self.answer(query),
        }
    }

    fn update_face(&mut self, face: FaceId, options: &FaceOptions) -> Result<(), NodeError> {
        let config = self.plane.face_config(face);
        let (Some(entry), Some(mut config)) = (self.faces.get_mut(face), config) else {
            return Err(NodeError::NoSuchFace(face));
        };
        let nature = FaceNature {
            scope: config.scope,
            persistency: entry.persistency,
            is_from_datagram: entry.origin.is_some(),
            link_type: config.link_type,
            is_udp_peer: FaceNature::is_udp_peer(&entry.remote, config.link_type),
            link_mtu: entry.link_mtu,
        };
        if let Some(impossible) = options.impossible_for(&nature) {
            return Err(NodeError::ImpossibleOptions(impossible));
        }
        options.apply(&mut config, nature.link_mtu);
        if let Some(interval) = options.keep_alive {
            let now = self.clock.now();
            entry.keep_alive = (!interval.is_zero()).then(|| KeepAlive::new(now, interval));
        }
        entry.persistency = options.persistency.unwrap_or(entry.persistency);
        if entry.persistency != Persistency::OnDemand {
            // Who commands that it stays knows the peer.
            entry.sender.set_stranger(None);
            self.plane.strangers().remove(face);
            self.sources.remove(face, entry);
        }
        (entry.sender).with_link(|link| options.apply_to_marks(link.marker_mut()));
        self.plane.reconfigure_face(face, &config)?;
        Ok(())
    }

    fn answer(&self, query: Query) {
        // Whoever asked may have gone away; then nobody misses the answer.
        match query {
            Query::LinkState(face, reply) => {
                let _ = reply.send(self.faces.get(face).map(|entry| entry.state.subscribe()));
            }
            Query::Face(face, reply) => {
                let _ = reply.send(self.describe(face));
            }
            Query::Faces(reply) => {
                let all = self.faces.iter();
                let _ = reply.send(all.filter_map(|(face, _)| self.describe(face)).collect());
            }
            Query::FaceIds(reply) => {
                let _ = reply.send(self.faces.iter().map(|(face, _)| face).collect());
            }
            Query::Routes(reply) => {
                let _ = reply.send(self.next_hops());
            }
            Query::FaceEvents(first, reply) => {
                let _ = reply.send(self.face_events.since(first));
            }
            Query::Ethernet(uri, reply) => {
                let mut all = self.listeners.values();
                let meant = all.find(|entry| entry.uri == uri);
                let _ = reply.send(meant.and_then(|entry| entry.ethernet.clone()));
            }
            Query::Status(reply) => {
                let _ = reply.send(self.status());
            }
        }
    }

    /// The cost of each next hop, learned ones included.
    fn next_hops(&self) -> NextHops {
        let mut hops = self.routes.clone();
        let learned = self.plane.learned_routes().into_iter();
        hops.extend(learned.map(|route| ((route.prefix, route.face), route.cost)));
        hops
    }

    /// What management needs to know about a face.
    pub(super) fn describe(&self, face: FaceId) -> Option<FaceDescription> {
        let entry = self.faces.get(face)?;
        let silence = self.clock.now().since(entry.last_heard);
        let idle_timeout = self.spawner.config.udp.idle_timeout;
        let (congestion_marking, congestion, mtu) =
            (entry.sender).with_link(|link| (link.marker().is_on, link.marker().rule, link.mtu()));
        let config = self.plane.face_config(face)?;
        let counters = self.plane.face_counters(face);
        Some(FaceDescription {
            id: face,
            remote: entry.remote.clone(),
            local: entry.local.clone(),
            visitor: entry.visitor,
            scope: config.scope,
            link_type: config.link_type,
            persistency: entry.persistency,
            expires_in: entry
                .ends_by_silence()
                .then(|| idle_timeout.saturating_sub(silence)),
            mtu,
            reliability: config.reliability,
            local_fields: config.local_fields,
            congestion_marking,
            congestion,
            incoming: counters.incoming,
            outgoing: counters.outgoing,
        })
    }

    fn status(&self) -> NodeStatus {
        let uptime = self.clock.now().since(self.started);
        let lost = LinkCounters::default();
        lost.add(&self.past_drops);
        let mut status = NodeStatus::new(uptime, &self.plane);
        for (face, entry) in self.faces.iter() {
            lost.add(&entry.losses());
            let counters = self.plane.face_counters(face);
            let bundles = self.plane.bundles(face);
            let counters = (&counters, &bundles);
            status.faces.push(FaceStatus::new(face, counters, entry));
        }
        for entry in self.listeners.values() {
            lost.add(&entry.counters);
            let is_its = |(_, face): &(FaceId, &FaceEntry)| face.listener == Some(entry.id);
            let open = self.faces.iter().filter(is_its).count();
            status.listeners.push(ListenerStatus::new(entry, open));
        }
        status.routes = self
            .next_hops()
            .into_iter()
            .map(|((prefix, face), cost)| RouteStatus {
                prefix: prefix.to_string(),
                face: face.number(),
                cost,
            })
            .collect();
        status.link_drops = link_drops(&lost);
        let sources = self.sources.sources().into_iter().take(MAX_SOURCES);
        status.sources = sources.map(SourceStatus::from).collect();
        status
    }
}
