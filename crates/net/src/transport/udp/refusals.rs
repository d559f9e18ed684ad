//! Peers that were refused a face a moment ago.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use namecast_units::{Duration, Instant};

use crate::admission::Source;
use crate::link::LinkDrop;
use crate::node::FaceRefusal;

/// Shortest and longest time for which a refusal holds: a place may become free.
const HOLDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// A peer is challenged this often at most: its answer may be on the way.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(250);
/// Refusals that are kept: as many as an address has ports.
const MAX_REFUSALS: usize = 65_536;

/// Whom a refusal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Refused {
    /// Peers of a source that have not answered a challenge: each gets one.
    Unproven(Source),
    /// One peer. Others of its source may still get a face.
    Peer(SocketAddr),
    /// Another challenge for a peer.
    Challenge(SocketAddr),
}

/// Refusals, until when they hold, and their reasons, so that the datagrams of a flood do not wait for the event loop one by one.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Refused, (Instant, LinkDrop)>);

impl Refusals {
    /// Returns why `remote` is refused still, as it was itself.
    pub(super) fn of_peer(&self, now: Instant, remote: SocketAddr) -> Option<LinkDrop> {
        self.holding(now, Refused::Peer(remote))
    }

    /// Returns why unproven peers of the same source as `remote` are refused still.
    pub(super) fn of_source(&self, now: Instant, remote: SocketAddr) -> Option<LinkDrop> {
        self.holding(now, Refused::Unproven(Source::of(remote.ip())))
    }

    fn holding(&self, now: Instant, refused: Refused) -> Option<LinkDrop> {
        let (until, reason) = self.0.get(&refused)?;
        (now < *until).then_some(*reason)
    }

    /// Records that `remote` was refused.
    pub(super) fn record(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        is_proven: bool,
        FaceRefusal { reason, wait }: FaceRefusal,
    ) {
        // Addresses are denied one by one; room is short for all unproven peers of a source.
        let refused = match is_proven || reason == LinkDrop::Denied {
            true => Refused::Peer(remote),
            false => Refused::Unproven(Source::of(remote.ip())),
        };
        self.hold(refused, now + wait.clamp(HOLDS.0, HOLDS.1), reason);
    }

    /// Returns whether `remote` is to be challenged now, which is recorded.
    pub(super) fn challenges(&mut self, now: Instant, remote: SocketAddr) -> bool {
        let refused = Refused::Challenge(remote);
        let is_due = self.holding(now, refused).is_none();
        if is_due {
            let until = now + CHALLENGE_INTERVAL;
            self.hold(refused, until, LinkDrop::TooManyFaces);
        }
        is_due
    }

    fn hold(&mut self, refused: Refused, until: Instant, reason: LinkDrop) {
        if self.0.len() >= MAX_REFUSALS {
            self.0.clear();
        }
        self.0.insert(refused, (until, reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: LinkDrop = LinkDrop::TooManyFaces;

    fn full(milliseconds: u64) -> FaceRefusal {
        FaceRefusal {
            reason: FULL,
            wait: Duration::from_millis(milliseconds),
        }
    }

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
        refusals.record(at(1_000), peer(1, 1), false, full(0));
        assert_eq!(refusals.of_source(at(1_099), peer(2, 7)), Some(FULL));
        assert_eq!(refusals.of_source(at(1_100), peer(2, 7)), None);
        let elsewhere = SocketAddr::from(([198, 51, 100, 1], 1));
        assert_eq!(refusals.of_source(at(1_000), elsewhere), None);

        assert_eq!(refusals.of_peer(at(1_000), peer(1, 1)), None);
        refusals.record(at(1_000), peer(1, 1), true, full(0));
        assert_eq!(refusals.of_peer(at(1_099), peer(1, 1)), Some(FULL));
        assert_eq!(refusals.of_peer(at(1_099), peer(1, 2)), None);
        assert_eq!(refusals.of_peer(at(1_100), peer(1, 1)), None);
        for (wait, holds) in [(400, 400), (4_000, 1_000)] {
            refusals.record(at(2_000), peer(1, 1), true, full(wait));
            assert_eq!(refusals.of_peer(at(1_999 + holds), peer(1, 1)), Some(FULL));
            assert_eq!(refusals.of_peer(at(2_000 + holds), peer(1, 1)), None);
        }
    }

    #[test]
    fn a_denied_address_says_nothing_of_its_neighbours() {
        let mut refusals = Refusals::default();
        refusals.record(at(0), peer(1, 1), false, LinkDrop::Denied.into());
        let denied = Some(LinkDrop::Denied);
        assert_eq!(refusals.of_peer(at(1), peer(1, 1)), denied);
        assert_eq!(refusals.of_peer(at(1), peer(2, 1)), None);
        assert_eq!(refusals.of_source(at(1), peer(2, 1)), None);
    }

    /// A peer that goes on sending before its answer can be here is challenged four times a second; others are challenged all the
    /// same.
    #[test]
    fn a_peer_is_not_challenged_again_at_once() {
        let mut refusals = Refusals::default();
        let challenged = |time: &u64| refusals.challenges(at(*time), peer(1, 1));
        let times: Vec<_> = (0..1_000).filter(challenged).collect();
        assert_eq!(times, [0, 250, 500, 750]);
        assert!(refusals.challenges(at(999), peer(1, 2)));
        assert_eq!(refusals.of_peer(at(999), peer(1, 1)), None);
    }

    #[test]
    fn refusals_are_bounded() {
        let mut refusals = Refusals::default();
        for at_least in 0..=MAX_REFUSALS {
            let remote = peer((at_least >> 16) as u8, at_least as u16);
            refusals.record(at(0), remote, true, full(0));
        }
        assert_eq!(refusals.0.len(), 1);
    }
}
