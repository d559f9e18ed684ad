//! Routes as commands made them, before they are boiled down to next hops.
//!
//! One prefix and face may have several routes, of different origin and cost; the forwarder gets the lowest cost.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_packet::tlv::{self, Element, Reader, Writer};
use namecast_packet::{DecodeError, Name};
use namecast_units::Instant;
use serde::Serialize;

use super::control::{CHILD_INHERIT, ControlParameters, encode_numbers, millis};
use super::dataset::Item;
use super::numbers::{COST, EXPIRATION_PERIOD, FACE_ID, FLAGS, ORIGIN};
use super::{MAX_PREFIX_COMPONENTS, Manager, Refused};
use crate::node::NodeError;

/// Routes by prefix and face, then by origin.
#[derive(Debug)]
pub(crate) struct Rib {
    routes: BTreeMap<(Name, FaceId), BTreeMap<u64, Route>>,
    count: usize,
    max_routes: usize,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Which of several to take: the lowest.
    pub(crate) cost: u64,
    /// What the client asked for; told back, and not acted upon.
    pub(crate) flags: u64,
    /// When it ends.
    pub(crate) expires: Option<Instant>,
}

/// What the forwarder has to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Prefix.
    pub(crate) prefix: Name,
    /// Next hop.
    pub(crate) face: FaceId,
    /// Its cost; none: the next hop is gone.
    pub(crate) cost: Option<u64>,
}

/// There are as many routes as the node allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RibFull;

impl Rib {
    /// A table of at most `max_routes` routes.
    pub(crate) const fn new(max_routes: usize) -> Self {
        Self {
            routes: BTreeMap::new(),
            count: 0,
            max_routes,
        }
    }

    /// Adds or renews a route.
    ///
    /// # Errors
    /// If there is no room for a new one.
    pub(crate) fn register(
        &mut self,
        prefix: Name,
        face: FaceId,
        origin: u64,
        route: Route,
    ) -> Result<Change, RibFull> {
        let key = (prefix.detached(), face);
        let is_new = !self
            .routes
            .get(&key)
            .is_some_and(|routes| routes.contains_key(&origin));
        if is_new && self.count >= self.max_routes {
            return Err(RibFull);
        }
        self.count += usize::from(is_new);
        self.routes.entry(key).or_default().insert(origin, route);
        Ok(self.change(prefix, face))
    }

    /// Takes a route back; no effect if there is none.
    pub(crate) fn unregister(&mut self, prefix: Name, face: FaceId, origin: u64) -> Change {
        let key = (prefix, face);
        if let Some(routes) = self.routes.get_mut(&key) {
            self.count -= usize::from(routes.remove(&origin).is_some());
            if routes.is_empty() {
                self.routes.remove(&key);
            }
        }
        self.change(key.0, face)
    }

    /// Ends the routes whose time has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<Change> {
        let expired = |route: &Route| route.expires.is_some_and(|at| at <= now);
        let ended: Vec<_> = self
            .routes
            .iter()
            .flat_map(|((prefix, face), routes)| {
                routes
                    .iter()
                    .filter(|(_, route)| expired(route))
                    .map(|(&origin, _)| (prefix.clone(), *face, origin))
            })
            .collect();
        ended
            .into_iter()
            .map(|(prefix, face, origin)| self.unregister(prefix, face, origin))
            .collect()
    }

    /// When the next route ends.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let routes = self.routes.values().flat_map(BTreeMap::values);
        routes.filter_map(|route| route.expires).min()
    }

    /// Forgets the routes to faces that are no more; the forwarder has done so already.
    pub(crate) fn retain_faces(&mut self, lives: impl Fn(FaceId) -> bool) {
        self.routes.retain(|(_, face), _| lives(*face));
        self.count = self.routes.values().map(BTreeMap::len).sum();
    }

    /// Whether there are no routes.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// All routes at the time `now`, by prefix.
    pub(crate) fn entries(&self, now: Instant) -> Vec<RibEntry> {
        let mut entries: Vec<RibEntry> = Vec::new();
        for ((prefix, face), routes) in &self.routes {
            if entries.last().is_none_or(|last| last.prefix != *prefix) {
                entries.push(RibEntry {
                    prefix: prefix.clone(),
                    routes: Vec::new(),
                });
            }
            let entry = entries.last_mut().expect("there is one by now");
            let routes = routes.iter().map(|(&origin, route)| RibRoute {
                face: face.number(),
                origin,
                cost: route.cost,
                flags: route.flags,
                expiration_millis: route.expires.map(|at| millis(at.since(now))),
            });
            entry.routes.extend(routes);
        }
        entries
    }

    fn change(&self, prefix: Name, face: FaceId) -> Change {
        let routes = self.routes.get(&(prefix.clone(), face));
        let cost = routes.and_then(|routes| routes.values().map(|route| route.cost).min());
        Change { prefix, face, cost }
    }
}

impl Manager {
    pub(super) async fn execute_rib(
        &mut self,
        verb: &[u8],
        parameters: &ControlParameters,
        from: FaceId,
        is_localhop: bool,
    ) -> Result<ControlParameters, Refused> {
        let face = match parameters.face {
            None | Some(0) => from,
            Some(other) if is_localhop && other != from.number() => {
                return Err(Refused::new(403, "a neighbour may only speak for itself"));
            }
            Some(other) => FaceId::from_number(other),
        };
        let prefix = parameters.name.clone().ok_or_else(Refused::invalid)?;
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let text = format!("Route prefix cannot exceed {MAX_PREFIX_COMPONENTS} components");
            return Err(Refused::new(414, text));
        }
        match verb {
            b"register" => self.register(prefix, face, parameters).await,
            b"unregister" => self.unregister(prefix, face, parameters).await,
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }

    async fn register(
        &mut self,
        prefix: Name,
        face: FaceId,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        // Flags are told back, but not acted upon: a route serves names under its prefix that have no longer one.
        let done = ControlParameters {
            name: Some(prefix.clone()),
            face: Some(face.number()),
            origin: Some(parameters.origin.unwrap_or(0)),
            cost: Some(parameters.cost.unwrap_or(0)),
            flags: Some(parameters.flags.unwrap_or(CHILD_INHERIT)),
            expiration: parameters.expiration,
            ..ControlParameters::default()
        };
        let now = self.node.clock().now();
        let route = Route {
            cost: parameters.cost.unwrap_or(0),
            flags: parameters.flags.unwrap_or(CHILD_INHERIT),
            expires: parameters.expiration.map(|period| now + period),
        };
        let origin = parameters.origin.unwrap_or(0);
        let change = self
            .rib
            .register(prefix.clone(), face, origin, route)
            .map_err(|_| Refused::new(500, "the node takes no more routes"))?;
        if let Err(error) = self.apply(change).await {
            self.rib.unregister(prefix, face, origin);
            return Err(match error {
                NodeError::NoSuchFace(_) => Refused::new(410, "Face not found"),
                _ => Refused::new(500, error.to_string()),
            });
        }
        Ok(done)
    }

    async fn unregister(
        &mut self,
        prefix: Name,
        face: FaceId,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        let origin = parameters.origin.unwrap_or(0);
        let done = ControlParameters {
            name: Some(prefix.clone()),
            face: Some(face.number()),
            origin: Some(origin),
            ..ControlParameters::default()
        };
        let change = self.rib.unregister(prefix, face, origin);
        self.apply(change)
            .await
            .map_err(|error| Refused::new(500, error.to_string()))?;
        Ok(done)
    }

    async fn apply(&self, change: Change) -> Result<(), NodeError> {
        match change.cost {
            Some(cost) => self.node.add_route(change.prefix, change.face, cost).await,
            None => self.node.remove_route(change.prefix, change.face).await,
        }
    }

    pub(super) async fn expire(&mut self) {
        for change in self.rib.handle_timeout(self.node.clock().now()) {
            // If the face is gone, so is the route.
            let _ = self.apply(change).await;
        }
    }

    pub(super) async fn forget_ended_faces(&mut self) {
        if !self.rib.is_empty()
            && let Ok(living) = self.node.face_ids().await
        {
            self.rib.retain_faces(|face| living.contains(&face));
        }
    }
}

/// The routes of one prefix, as `rib/list` tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RibEntry {
    /// Names they are for.
    #[serde(serialize_with = "super::serialize_text")]
    pub prefix: Name,
    /// The routes.
    pub routes: Vec<RibRoute>,
}

/// One route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RibRoute {
    /// The face it leads to.
    pub face: u64,
    /// Who made it.
    pub origin: u64,
    /// Which of several is taken: the lowest.
    pub cost: u64,
    /// 1: also for longer prefixes that have routes, 2: instead of shorter ones.
    pub flags: u64,
    /// When it ends, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_millis: Option<u64>,
}

impl Item for RibEntry {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "RibEntry";

    fn encode_fields(&self, writer: &mut Writer) {
        self.prefix.encode(writer);
        for route in &self.routes {
            route.encode_to(writer);
        }
    }

    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        match field.element_type {
            tlv::NAME => self.prefix = Name::from_element(wire, field)?,
            RibRoute::TYPE => {
                let route = Reader::within(wire, field.value.clone());
                self.routes.push(RibRoute::decode_fields(wire, route)?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Item for RibRoute {
    const TYPE: u32 = 129;
    const WHAT: &'static str = "Route";

    fn encode_fields(&self, writer: &mut Writer) {
        let numbers = [
            (FACE_ID, Some(self.face)),
            (ORIGIN, Some(self.origin)),
            (COST, Some(self.cost)),
            (FLAGS, Some(self.flags)),
            (EXPIRATION_PERIOD, self.expiration_millis),
        ];
        encode_numbers(writer, numbers);
    }

    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        let number = || field.number(Self::WHAT, wire);
        match field.element_type {
            FACE_ID => self.face = number()?,
            ORIGIN => self.origin = number()?,
            COST => self.cost = number()?,
            FLAGS => self.flags = number()?,
            EXPIRATION_PERIOD => self.expiration_millis = Some(number()?),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_units::Duration;

    const FACE: FaceId = FaceId::from_number(300);

    fn name() -> Name {
        "/a".parse().unwrap()
    }

    fn route(cost: u64) -> Route {
        Route {
            cost,
            flags: 1,
            expires: None,
        }
    }

    #[test]
    fn the_cheapest_origin_counts_and_the_last_to_go_ends_the_next_hop() {
        let mut rib = Rib::new(10);
        let cost = |change: Change| change.cost;
        assert_eq!(
            rib.register(name(), FACE, 0, route(7)).map(cost),
            Ok(Some(7))
        );
        assert_eq!(
            rib.register(name(), FACE, 255, route(3)).map(cost),
            Ok(Some(3))
        );
        assert_eq!(
            rib.register(name(), FACE, 0, route(5)).map(cost),
            Ok(Some(3))
        );
        assert_eq!(cost(rib.unregister(name(), FACE, 255)), Some(5));
        assert_eq!(cost(rib.unregister(name(), FACE, 255)), Some(5));
        assert_eq!(cost(rib.unregister(name(), FACE, 0)), None);
        assert!(rib.is_empty());
    }

    #[test]
    fn a_route_ends_at_its_time_and_not_before() {
        let at = Instant::ZERO + Duration::from_secs(9);
        let mut rib = Rib::new(10);
        rib.register(name(), FACE, 0, route(7)).unwrap();
        let short = Route {
            cost: 1,
            flags: 1,
            expires: Some(at),
        };
        rib.register(name(), FACE, 1, short).unwrap();
        assert_eq!(rib.poll_timeout(), Some(at));
        let before = at.saturating_sub(Duration::from_nanos(1));
        assert_eq!(rib.handle_timeout(before), []);
        let changes = rib.handle_timeout(at);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].cost, Some(7));
        assert_eq!(rib.poll_timeout(), None);
    }

    #[test]
    fn a_full_table_takes_renewals_only() {
        let mut rib = Rib::new(1);
        rib.register(name(), FACE, 0, route(7)).unwrap();
        assert_eq!(rib.register(name(), FACE, 1, route(7)), Err(RibFull));
        assert!(rib.register(name(), FACE, 0, route(8)).is_ok());
        rib.retain_faces(|face| face != FACE);
        assert!(rib.register(name(), FACE, 1, route(7)).is_ok());
    }
}
