//! What one end of a link tells the other beside Support that it takes.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use bytes::Bytes;
use namecast_packet::{Extensions, LpPacket};

/// A set of extensions that a node takes from its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers(u8);

impl Offers {
    /// None of them.
    pub(crate) const NONE: Self = Self(0);
    /// Interests that travel with Data: a PiggybackedInterest beside Support.
    pub(crate) const BUNDLES: Self = Self(1);
    /// Requests for any next packets of a flow, which it counts: an AnyNext beside Support.
    pub(crate) const COUNTERS: Self = Self(2);

    /// Returns whether all of `others` are in the set.
    pub(crate) const fn contain(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the set with `others`.
    pub(crate) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns what a packet with Support offers. A field of an extension offers it, empty or not: who sends bundles takes them.
    pub(super) fn heard(packet: &LpPacket) -> Self {
        let mut offers = Self::NONE;
        if packet.piggybacked_interest.is_some() {
            offers = offers.with(Self::BUNDLES);
        }
        if packet.extensions.get(Extensions::ANY_NEXT).is_some() {
            offers = offers.with(Self::COUNTERS);
        }
        offers
    }

    /// Has a packet with Support say so, by empty fields where it has none of the extension.
    pub(crate) fn tell(self, packet: &mut LpPacket) {
        if self.contain(Self::BUNDLES) {
            packet.piggybacked_interest.get_or_insert_with(Bytes::new);
        }
        let extensions = &mut packet.extensions;
        if self.contain(Self::COUNTERS) && extensions.get(Extensions::ANY_NEXT).is_none() {
            extensions.set(Extensions::ANY_NEXT, []);
        }
    }
}

/// A set that grows and shrinks while others read it.
#[derive(Debug, Default)]
pub(super) struct SharedOffers(AtomicU8);

impl SharedOffers {
    pub(super) fn get(&self) -> Offers {
        Offers(self.0.load(Relaxed))
    }

    pub(super) fn set(&self, offers: Offers) {
        self.0.store(offers.0, Relaxed);
    }

    pub(super) fn add(&self, offers: Offers) {
        self.0.fetch_or(offers.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each set is heard as it was told, also beside fields of the extensions themselves.
    #[test]
    fn what_is_told_is_heard() {
        for offers in (0..4).map(Offers) {
            let mut packet = LpPacket::default();
            offers.tell(&mut packet);
            let heard = LpPacket::decode(packet.encode()).map(|packet| Offers::heard(&packet));
            assert_eq!(heard, Ok(offers));
        }
        let mut packet = LpPacket::default();
        packet.extensions.set(Extensions::ANY_NEXT, [1, 2, 3, 4]);
        Offers::COUNTERS.tell(&mut packet);
        let kept = packet.extensions.get(Extensions::ANY_NEXT);
        assert_eq!(kept, Some(&[1, 2, 3, 4][..]));
        assert_eq!(Offers::heard(&packet), Offers::COUNTERS);
    }
}
