//! Peers that were refused a face a moment ago.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use namecast_units::{Duration, Instant};

use crate::admission::Source;
use crate::link::LinkDrop;

/// Time for which a refusal holds.
const HOLDS: Duration = Duration::from_millis(100);
/// Refusals that are kept: as many as an address has ports.
const MAX_REFUSALS: usize = 65_536;

/// Whom a refusal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Refused {
    /// Peers of a source that have not answered a challenge: each gets one.
    Unproven(Source),
    /// One peer. Others of its source may still get a face.
    Peer(SocketAddr),
}

/// Recent refusals and their reasons, so that the datagrams of a flood do not wait for the event loop one by one.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Refused, (Instant, LinkDrop)>);

impl Refusals {
    /// Returns why `remote`, or an unproven peer of the same source, was refused less than 100 ms ago.
    pub(super) fn holding(
        &self,
        now: Instant,
        remote: SocketAddr,
        is_proven: bool,
    ) -> Option<LinkDrop> {
        let of_source = (!is_proven).then(|| Refused::Unproven(Source::of(remote.ip())));
        let keys = [Some(Refused::Peer(remote)), of_source];
        let mut refusals = keys.iter().flatten().filter_map(|key| self.0.get(key));
        let (_, reason) = refusals.find(|(at, _)| now.since(*at) < HOLDS)?;
        Some(*reason)
    }

    /// Records that `remote` was refused for `reason`.
    pub(super) fn record(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        is_proven: bool,
        reason: LinkDrop,
    ) {
        if self.0.len() >= MAX_REFUSALS {
            self.0.clear();
        }
        // Addresses are denied one by one; room is short for all unproven peers of a source.
        let refused = match is_proven || reason == LinkDrop::Denied {
            true => Refused::Peer(remote),
            false => Refused::Unproven(Source::of(remote.ip())),
        };
        self.0.insert(refused, (now, reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: LinkDrop = LinkDrop::TooManyFaces;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn peer(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], port))
    }

    /// Until 100 ms are over, an unproven peer is refused like its neighbours, and a proven one is not.
    #[test]
    fn a_refusal_holds_for_a_moment() {
        let mut refusals = Refusals::default();
        refusals.record(at(1_000), peer(1, 1), false, FULL);
        assert_eq!(refusals.holding(at(1_099), peer(2, 7), false), Some(FULL));
        assert_eq!(refusals.holding(at(1_100), peer(2, 7), false), None);
        let elsewhere = SocketAddr::from(([198, 51, 100, 1], 1));
        assert_eq!(refusals.holding(at(1_000), elsewhere, false), None);

        assert_eq!(refusals.holding(at(1_000), peer(1, 1), true), None);
        refusals.record(at(1_000), peer(1, 1), true, FULL);
        assert_eq!(refusals.holding(at(1_099), peer(1, 1), true), Some(FULL));
        assert_eq!(refusals.holding(at(1_099), peer(1, 2), true), None);
        assert_eq!(refusals.holding(at(1_100), peer(1, 1), true), None);
    }

    #[test]
    fn a_denied_address_says_nothing_of_its_neighbours() {
        let mut refusals = Refusals::default();
        refusals.record(at(0), peer(1, 1), false, LinkDrop::Denied);
        let holding = |remote| refusals.holding(at(1), remote, false);
        assert_eq!(holding(peer(1, 1)), Some(LinkDrop::Denied));
        assert_eq!(holding(peer(2, 1)), None);
    }

    #[test]
    fn refusals_are_bounded() {
        let mut refusals = Refusals::default();
        for at_least in 0..=MAX_REFUSALS {
            let remote = peer((at_least >> 16) as u8, at_least as u16);
            refusals.record(at(0), remote, true, FULL);
        }
        assert_eq!(refusals.0.len(), 1);
    }
}
