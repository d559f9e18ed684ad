//! How the event loop carries out commands and answers questions.

use namecast_forward::{CacheOptions, FaceId};

use super::command::{CacheUpdate, Command, ContentStoreDescription, FaceDescription, Query};
use super::event_loop::EventLoop;
use super::events::FaceEventKind;
use super::options::FaceNature;
use super::status::link_drops;
use super::{FaceOptions, FaceStatus, ListenerStatus, NodeError, NodeStatus, RouteStatus};
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
            Command::UpdateFace {
                face,
                options,
                reply,
            } => {
                let _ = reply.send(self.update_face(face, &options));
            }
            Command::LinkChanged { face, is_up: true } => self.tell(face, FaceEventKind::Up),
            Command::LinkChanged { face, is_up: false } => self.tell(face, FaceEventKind::Down),
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
            Command::UpdateCache(update, reply) => {
                let _ = reply.send(self.update_cache(update));
            }
            Command::EraseCached {
                prefix,
                limit,
                reply,
            } => {
                let _ = reply.send(self.forwarder.erase_cached(&prefix, limit));
            }
            Command::Ask(query) => self.answer(query),
        }
    }

    fn update_face(&mut self, face: FaceId, options: &FaceOptions) -> Result<(), NodeError> {
        let info = self.forwarder.face(face);
        let (Some(entry), Some(info)) = (self.faces.get_mut(face), info) else {
            return Err(NodeError::NoSuchFace(face));
        };
        let nature = FaceNature {
            scope: info.config.scope,
            persistency: entry.persistency,
            is_from_datagram: entry.origin.is_some(),
            link_mtu: entry.link_mtu,
        };
        if let Some(impossible) = options.impossible_for(&nature) {
            return Err(NodeError::ImpossibleOptions(impossible));
        }
        let mut config = info.config.clone();
        options.apply(&mut config, nature.link_mtu);
        entry.persistency = options.persistency.unwrap_or(entry.persistency);
        options.apply_to_marks(&mut entry.marker);
        self.forwarder.reconfigure_face(face, config)?;
        Ok(())
    }

    fn update_cache(&mut self, update: CacheUpdate) -> CacheOptions {
        let now = self.forwarder.cache_options();
        let options = CacheOptions {
            capacity: update.capacity.unwrap_or(now.capacity),
            admits: update.admits.unwrap_or(now.admits),
            serves: update.serves.unwrap_or(now.serves),
        };
        self.forwarder.set_cache_options(options);
        options
    }

    fn answer(&self, query: Query) {
        // Whoever asked may have gone away; then nobody misses the answer.
        match query {
            Query::LinkState(face, reply) => {
                let _ = reply.send(self.faces.get(face).map(|entry| entry.state.clone()));
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
                let _ = reply.send(self.routes.clone());
            }
            Query::Strategies(reply) => {
                let all = self.forwarder.strategies();
                let _ = reply.send(all.map(|(prefix, kind)| (prefix.clone(), kind)).collect());
            }
            Query::ContentStore(reply) => {
                let _ = reply.send(self.describe_content_store());
            }
            Query::FaceEvents(first, reply) => {
                let _ = reply.send(self.face_events.since(first));
            }
            Query::Status(reply) => {
                let _ = reply.send(self.status());
            }
        }
    }

    /// What management needs to know about a face.
    pub(super) fn describe(&self, face: FaceId) -> Option<FaceDescription> {
        let entry = self.faces.get(face)?;
        let info = self.forwarder.face(face)?;
        let silence = self.clock.now().since(entry.last_heard);
        let idle_timeout = self.spawner.config.udp_idle_timeout;
        Some(FaceDescription {
            id: face,
            remote: entry.remote.clone(),
            local: entry.local.clone(),
            scope: info.config.scope,
            link_type: info.config.link_type,
            persistency: entry.persistency,
            expires_in: entry
                .ends_by_silence()
                .then(|| idle_timeout.saturating_sub(silence)),
            mtu: info.config.mtu,
            reliability: info.config.reliability,
            local_fields: info.config.local_fields,
            congestion_marking: entry.marker.is_on,
            congestion: entry.marker.rule,
            incoming: info.counters.incoming,
            outgoing: info.counters.outgoing,
        })
    }

    fn describe_content_store(&self) -> ContentStoreDescription {
        let counters = self.forwarder.counters();
        ContentStoreDescription {
            options: self.forwarder.cache_options(),
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
