//! Routes as commands made them, before they are boiled down to next hops.
//!
//! One prefix and face may have several routes, of different origin and cost; the forwarder gets the lowest cost.

use std::collections::BTreeMap;

use namecast_forward::FaceId;
use namecast_packet::Name;
use namecast_units::Instant;

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

    fn change(&self, prefix: Name, face: FaceId) -> Change {
        let routes = self.routes.get(&(prefix.clone(), face));
        let cost = routes.and_then(|routes| routes.values().map(|route| route.cost).min());
        Change { prefix, face, cost }
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
