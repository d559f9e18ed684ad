//! Routes as commands made them, before they are boiled down to next hops.
//!
//! One prefix and face may have several routes, of different origin and cost; the forwarder gets the lowest cost. A prefix
//! that has routes also gets the next hops of shorter prefixes whose routes say so (child inheritance), unless one of its
//! own says that it captures, as in NFD. Inherited next hops come after those of a route that precedes, whatever they cost.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use namecast_apps::management::numbers::{COST, EXPIRATION_PERIOD, FACE_ID, FLAGS, ORIGIN};
use namecast_apps::management::{
    CAPTURE, CHILD_INHERIT, ControlParameters, Item, PRECEDE, PREFIX_ANNOUNCEMENT, millis,
};
use namecast_forward::FaceId;
use namecast_packet::tlv::{self, Element, Reader, Writer};
use namecast_packet::{Component, DecodeError, Name, tlv_fields};
use namecast_units::{Duration, Instant};
use serde::Serialize;

use super::{MAX_PREFIX_COMPONENTS, Manager, Refused};
use crate::node::NodeError;

/// The longest time of ndn-cxx, which NLSR sends where it means no end.
const FOREVER: Duration = Duration::from_millis(i64::MAX as u64);

/// Routes of one prefix, by face and origin.
type Routes = BTreeMap<(FaceId, u64), Route>;

/// All routes, and the next hops that they come to.
#[derive(Debug)]
pub(crate) struct Rib {
    routes: BTreeMap<Name, Routes>,
    count: usize,
    max_routes: usize,
    /// Cost of each next hop that the forwarder was told of, inherited ones included.
    installed: BTreeMap<(Name, FaceId), u64>,
    max_installed: usize,
    /// Prefixes whose own routes may have changed since somebody asked.
    touched: BTreeSet<Name>,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Which of several to take: the lowest.
    pub(crate) cost: u64,
    /// [`CHILD_INHERIT`], [`CAPTURE`] and [`PRECEDE`].
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
    /// A table of at most `max_routes` routes, from which at most `max_installed` next hops may follow.
    pub(crate) const fn new(max_routes: usize, max_installed: usize) -> Self {
        Self {
            routes: BTreeMap::new(),
            count: 0,
            max_routes,
            installed: BTreeMap::new(),
            max_installed,
            touched: BTreeSet::new(),
        }
    }

    /// Adds or renews a route.
    ///
    /// # Errors
    /// If there is no room for a new one, or for the next hops that longer prefixes would inherit.
    pub(crate) fn register(
        &mut self,
        prefix: &Name,
        face: FaceId,
        origin: u64,
        route: Route,
    ) -> Result<Vec<Change>, RibFull> {
        let key = (face, origin);
        let known = self.routes.get(prefix);
        let is_new = !known.is_some_and(|routes| routes.contains_key(&key));
        if is_new && self.count >= self.max_routes {
            return Err(RibFull);
        }
        self.count += usize::from(is_new);
        // The name may be part of a received packet, whose memory the table should not hold on to.
        let kept = prefix.detached();
        self.touched.insert(kept.clone());
        let before = self.routes.entry(kept).or_default().insert(key, route);
        let changes = self.changes_below(prefix);
        if self.installed.len() <= self.max_installed {
            return Ok(changes);
        }
        // Nobody was told of the changes, so nobody need be told that they are taken back.
        match before {
            Some(before) => {
                self.routes
                    .entry(prefix.clone())
                    .or_default()
                    .insert(key, before);
                self.changes_below(prefix);
            }
            None => drop(self.unregister(prefix, face, origin)),
        }
        Err(RibFull)
    }

    /// Takes a route back; no effect if there is none.
    pub(crate) fn unregister(&mut self, prefix: &Name, face: FaceId, origin: u64) -> Vec<Change> {
        if let Some(routes) = self.routes.get_mut(prefix) {
            self.count -= usize::from(routes.remove(&(face, origin)).is_some());
            if routes.is_empty() {
                self.routes.remove(prefix);
            }
            self.touched.insert(prefix.detached());
        }
        self.changes_below(prefix)
    }

    /// Ends the routes whose time has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<Change> {
        let expired = |route: &Route| route.expires.is_some_and(|at| at <= now);
        let mut ended = Vec::new();
        for (prefix, routes) in &self.routes {
            let of_prefix = routes.iter().filter(|(_, route)| expired(route));
            ended.extend(of_prefix.map(|(&key, _)| (prefix.clone(), key)));
        }
        ended
            .into_iter()
            .flat_map(|(prefix, (face, origin))| self.unregister(&prefix, face, origin))
            .collect()
    }

    /// When the next route ends.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let routes = self.routes.values().flat_map(BTreeMap::values);
        routes.filter_map(|route| route.expires).min()
    }

    /// Forgets the routes to faces that are no more. The forwarder has forgotten these next hops already; others may come
    /// of it where a route captured.
    pub(crate) fn retain_faces(&mut self, lives: impl Fn(FaceId) -> bool) -> Vec<Change> {
        self.installed.retain(|(_, face), _| lives(*face));
        let touched = &mut self.touched;
        self.routes.retain(|prefix, routes| {
            let before = routes.len();
            routes.retain(|(face, _), _| lives(*face));
            if routes.len() != before {
                touched.insert(prefix.clone());
            }
            !routes.is_empty()
        });
        let count = self.routes.values().map(BTreeMap::len).sum();
        match core::mem::replace(&mut self.count, count) == count {
            true => Vec::new(),
            false => self.changes_below(&Name::root()),
        }
    }

    /// Whether there are no routes.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The prefixes whose own routes may have changed since this was last asked.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<Name> {
        core::mem::take(&mut self.touched)
    }

    /// The prefixes that have routes.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &Name> {
        self.routes.keys()
    }

    /// The routes of exactly this prefix, by face and origin.
    pub(crate) fn routes_of(
        &self,
        prefix: &Name,
    ) -> impl Iterator<Item = (&(FaceId, u64), &Route)> {
        self.routes.get(prefix).into_iter().flatten()
    }

    /// The faces to which routes of exactly these prefixes lead.
    pub(crate) fn faces_of(&self, prefixes: &[Name]) -> BTreeSet<FaceId> {
        let routes = prefixes.iter().flat_map(|prefix| self.routes_of(prefix));
        routes.map(|(&(face, _), _)| face).collect()
    }

    /// All routes at the time `now`, by prefix.
    pub(crate) fn entries(&self, now: Instant) -> Vec<RibEntry> {
        let entry = |(prefix, routes): (&Name, &Routes)| RibEntry {
            prefix: prefix.clone(),
            routes: routes
                .iter()
                .map(|(&(face, origin), route)| RibRoute {
                    face: face.number(),
                    origin,
                    cost: route.cost,
                    flags: route.flags,
                    expiration_millis: route.expires.map(|at| millis(at.since(now))),
                })
                .collect(),
        };
        self.routes.iter().map(entry).collect()
    }

    /// What has changed for `prefix` and longer ones since the forwarder was last told, which then counts as told.
    fn changes_below(&mut self, prefix: &Name) -> Vec<Change> {
        let start = (prefix.detached(), FaceId::from_number(0));
        let installed = self.installed.range(start..);
        let before: BTreeMap<_, _> = installed
            .take_while(|((name, _), _)| prefix.is_prefix_of(name))
            .map(|(key, cost)| (key.clone(), *cost))
            .collect();
        let names = self.routes.range(prefix.detached()..);
        let names = names
            .map(|(name, _)| name)
            .take_while(|name| prefix.is_prefix_of(name));
        let mut after = BTreeMap::new();
        for name in names {
            let hops = self.next_hops(name).into_iter();
            after.extend(hops.map(|(face, cost)| ((name.clone(), face), cost)));
        }
        let gone = before.keys().filter(|key| !after.contains_key(*key));
        let gone = gone.map(|key| (key.clone(), None));
        let new = after
            .iter()
            .filter(|(key, cost)| before.get(*key) != Some(*cost));
        let new = new.map(|(key, cost)| (key.clone(), Some(*cost)));
        let changes: Vec<_> = new.chain(gone).collect();
        for (key, cost) in &changes {
            match cost {
                Some(cost) => self.installed.insert(key.clone(), *cost),
                None => self.installed.remove(key),
            };
        }
        let change = |((prefix, face), cost)| Change { prefix, face, cost };
        changes.into_iter().map(change).collect()
    }

    /// The next hops of a prefix that has routes: its own, and for other faces those that the nearest shorter prefix hands
    /// down.
    fn next_hops(&self, prefix: &Name) -> BTreeMap<FaceId, u64> {
        let mut hops = BTreeMap::new();
        let mut shorter = prefix.clone();
        // Least cost of the next hops of shorter prefixes.
        let mut least = 0;
        loop {
            let is_own = shorter.len() == prefix.len();
            let routes = self.routes.get(&shorter).into_iter().flatten();
            let mut captures = false;
            let mut handed: BTreeMap<FaceId, u64> = BTreeMap::new();
            let mut next_least = least;
            for (&(face, _), route) in routes {
                captures |= route.flags & CAPTURE != 0;
                if is_own || route.flags & CHILD_INHERIT != 0 {
                    let route_cost = route.cost.max(least);
                    let cost = handed.entry(face).or_insert(route_cost);
                    *cost = route_cost.min(*cost);
                    if route.flags & PRECEDE != 0 {
                        next_least = next_least.max(route_cost.saturating_add(1));
                    }
                }
            }
            for (face, cost) in handed {
                hops.entry(face).or_insert(cost);
            }
            least = next_least;
            if captures || shorter.is_empty() {
                return hops;
            }
            shorter = shorter.parent();
        }
    }
}

/// Refuses routes by which somebody else would be asked what management is.
pub(super) fn check_not_management(prefix: &Name) -> Result<(), Refused> {
    let is_below = |scope| {
        let scope = Name::root().child(Component::generic(scope));
        scope.child(Component::generic("nfd")).is_prefix_of(prefix)
    };
    match is_below("localhost") || is_below("localhop") {
        true => Err(Refused::new(403, "management answers under this prefix")),
        false => Ok(()),
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

    pub(super) async fn register(
        &mut self,
        prefix: Name,
        face: FaceId,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        check_not_management(&prefix)?;
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
            expires: (parameters.expiration)
                .filter(|period| *period < FOREVER)
                .map(|period| now + period),
        };
        let origin = parameters.origin.unwrap_or(0);
        let changes = self
            .rib
            .register(&prefix, face, origin, route)
            .map_err(|_| Refused::new(500, "the node takes no more routes"))?;
        if let Err(error) = self.apply(changes).await {
            let undone = self.rib.unregister(&prefix, face, origin);
            // What could not be done need not be undone.
            let _ = self.apply(undone).await;
            return Err(match error {
                NodeError::NoSuchFace(_) => Refused::new(410, "Face not found"),
                _ => Refused::new(500, error.to_string()),
            });
        }
        Ok(done)
    }

    pub(super) async fn unregister(
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
        let changes = self.rib.unregister(&prefix, face, origin);
        self.apply(changes)
            .await
            .map_err(|error| Refused::new(500, error.to_string()))?;
        Ok(done)
    }

    /// Tells the forwarder, to the end; gives the first error.
    pub(super) async fn apply(&self, changes: Vec<Change>) -> Result<(), NodeError> {
        let mut result = Ok(());
        for Change { prefix, face, cost } in changes {
            let told = match cost {
                Some(cost) => self.node.add_route(prefix, face, cost).await,
                None => self.node.remove_route(prefix, face).await,
            };
            result = result.and(told);
        }
        result
    }

    /// All routes: those of commands, and those that the forwarder learned from prefix announcements.
    pub(super) fn rib_entries(&self) -> Option<Vec<RibEntry>> {
        let now = self.node.clock().now();
        let mut entries = self.rib.entries(now);
        for learned in self.node.learned_routes().ok()? {
            let route = RibRoute {
                face: learned.face.number(),
                origin: PREFIX_ANNOUNCEMENT,
                cost: learned.cost,
                flags: 0,
                expiration_millis: Some(millis(learned.expires.since(now))),
            };
            match entries.binary_search_by(|entry| entry.prefix.cmp(&learned.prefix)) {
                Ok(at) => entries[at].routes.push(route),
                Err(at) => entries.insert(
                    at,
                    RibEntry {
                        prefix: learned.prefix,
                        routes: vec![route],
                    },
                ),
            }
        }
        Some(entries)
    }

    pub(super) async fn expire(&mut self) {
        let changes = self.rib.handle_timeout(self.node.clock().now());
        // If a face is gone, so are its next hops.
        let _ = self.apply(changes).await;
    }

    pub(super) async fn forget_ended_faces(&mut self) {
        if !self.rib.is_empty()
            && let Ok(living) = self.node.face_ids().await
        {
            let changes = self.rib.retain_faces(|face| living.contains(&face));
            let _ = self.apply(changes).await;
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

    tlv_fields! {
        FACE_ID => face,
        ORIGIN => origin,
        COST => cost,
        FLAGS => flags,
        EXPIRATION_PERIOD => expiration_millis,
    }
}

#[cfg(test)]
#[path = "rib_tests.rs"]
mod tests;
