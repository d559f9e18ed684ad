//! How the event loop carries out commands and answers questions.

use namecast_forward::FaceInfo;

use super::command::{Command, ContentStoreDescription, FaceDescription, Query};
use super::event_loop::EventLoop;
use super::status::link_drops;
use super::{FaceStatus, ListenerStatus, NodeError, NodeStatus, RouteStatus};
use crate::link::LinkCounters;

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
                self.forwarder.remove_route(&prefix, face);
                self.routes.remove(&(prefix, face));
                let _ = reply.send(());
            }
            Command::SetStrategy {
                prefix,
                strategy,
                reply,
            } => {
                let set = self.forwarder.set_strategy(prefix.detached(), strategy);
                let _ = reply.send(set.map_err(NodeError::from));
            }
            Command::UnsetStrategy(prefix, reply) => {
                self.forwarder.unset_strategy(&prefix);
                let _ = reply.send(());
            }
            Command::Ask(query) => self.answer(query),
        }
    }

    fn answer(&self, query: Query) {
        // Whoever asked may have gone away; then nobody misses the answer.
        match query {
            Query::LinkState(face, reply) => {
                let _ = reply.send(self.faces.get(face).map(|entry| entry.state.clone()));
            }
            Query::Face(face, reply) => {
                let found = self.forwarder.faces().find(|info| info.id == face);
                let _ = reply.send(found.and_then(|info| self.describe(&info)));
            }
            Query::Faces(reply) => {
                let all = self.forwarder.faces();
                let _ = reply.send(all.filter_map(|info| self.describe(&info)).collect());
            }
            Query::FaceIds(reply) => {
                let _ = reply.send(self.faces.iter().map(|(face, _)| face).collect());
            }
            Query::Routes(reply) => {
                let _ = reply.send(self.routes.clone());
            }
            Query::Strategies(reply) => {
                let all = self.forwarder.strategies();
                let _ = reply.send(all.map(|(prefix, kind)| (prefix.clone(), kind)).collect());
            }
            Query::ContentStore(reply) => {
                let _ = reply.send(self.describe_content_store());
            }
            Query::Status(reply) => {
                let _ = reply.send(self.status());
            }
        }
    }

    fn describe(&self, info: &FaceInfo<'_>) -> Option<FaceDescription> {
        let entry = self.faces.get(info.id)?;
        let silence = self.clock.now().since(entry.last_heard);
        let idle_timeout = self.spawner.config.udp_idle_timeout;
        Some(FaceDescription {
            id: info.id,
            remote: entry.remote.clone(),
            local: entry.local.clone(),
            scope: info.config.scope,
            link_type: info.config.link_type,
            persistency: entry.persistency,
            expires_in: entry.origin.map(|_| idle_timeout.saturating_sub(silence)),
            mtu: info.config.mtu,
            reliability: info.config.reliability,
            local_fields: info.config.local_fields,
            incoming: info.counters.incoming,
            outgoing: info.counters.outgoing,
        })
    }

    fn describe_content_store(&self) -> ContentStoreDescription {
        let counters = self.forwarder.counters();
        ContentStoreDescription {
            capacity: self.forwarder.cache_capacity(),
            packets: self.forwarder.cached_packets(),
            hits: counters.content_store_hits,
            misses: counters.content_store_misses,
        }
    }

    fn status(&self) -> NodeStatus {
        let uptime = self.clock.now().since(self.started);
        let mut status = NodeStatus::new(uptime, &self.forwarder);
        let lost = LinkCounters::default();
        lost.add(&self.past_drops);
        for info in self.forwarder.faces() {
            let Some(entry) = self.faces.get(info.id) else {
                continue;
            };
            lost.add(&entry.counters);
            status.faces.push(FaceStatus::new(
                info.id.number(),
                info.config.scope,
                info.counters,
                entry,
            ));
        }
        for entry in self.listeners.values() {
            lost.add(&entry.counters);
            status.listeners.push(ListenerStatus::new(entry));
        }
        status.routes = self
            .routes
            .iter()
            .map(|((prefix, face), &cost)| RouteStatus {
                prefix: prefix.to_string(),
                face: face.number(),
                cost,
            })
            .collect();
        status.link_drops = link_drops(&lost);
        status
    }
}
