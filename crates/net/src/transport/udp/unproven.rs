//! Frames of UDP peers that have not answered their challenge yet.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::link::UdpPath;

/// Peers whose frames are kept. In a flood of 20 000 datagrams a second that is 50 ms.
const MAX_PEERS: usize = 1_024;
/// Octets kept of one peer; frames beyond are dropped.
const MAX_OCTETS: usize = 4_096;

/// Frames of challenged peers, so that a newcomer need not send them again. When there are too many peers, the one challenged first
/// makes room.
#[derive(Debug, Default)]
pub(super) struct Unproven {
    peers: BTreeMap<UdpPath, Kept>,
    /// Peers in the order in which they came.
    order: BTreeMap<u64, UdpPath>,
    next: u64,
}

/// What is kept of one peer.
#[derive(Debug)]
struct Kept {
    /// Its place in the order.
    place: u64,
    frames: Vec<Bytes>,
}

impl Unproven {
    /// Keeps frames of a challenged peer, behind those that it sent before. What was the same octets before is kept once.
    pub(super) fn keep(&mut self, path: UdpPath, frames: &[Bytes]) {
        if !self.peers.contains_key(&path) {
            self.come(path);
        }
        let Some(Kept { frames: kept, .. }) = self.peers.get_mut(&path) else {
            return;
        };
        let mut octets: usize = kept.iter().map(Bytes::len).sum();
        for frame in frames {
            octets += frame.len();
            if octets > MAX_OCTETS {
                return;
            }
            if !kept.contains(frame) {
                // A slice would hold on to the whole buffer that many peers' datagrams were received in.
                kept.push(Bytes::copy_from_slice(frame));
            }
        }
    }

    fn come(&mut self, path: UdpPath) {
        if self.peers.len() >= MAX_PEERS
            && let Some((_, first)) = self.order.pop_first()
        {
            self.peers.remove(&first);
        }
        let (place, frames) = (self.next, Vec::new());
        self.next += 1;
        self.order.insert(place, path);
        self.peers.insert(path, Kept { place, frames });
    }

    /// Returns the kept frames of a peer that has a face now.
    pub(super) fn take(&mut self, path: UdpPath) -> Vec<Bytes> {
        let Some(kept) = self.peers.remove(&path) else {
            return Vec::new();
        };
        self.order.remove(&kept.place);
        kept.frames
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn peer(port: u16) -> UdpPath {
        SocketAddr::from(([192, 0, 2, 1], port)).into()
    }

    /// What a newcomer sends before its answer to the challenge arrives is kept in order, and repetitions once.
    #[test]
    fn what_a_peer_sent_is_kept_in_order() {
        let mut unproven = Unproven::default();
        let [first, second] = ["first", "second"].map(|it| Bytes::from_static(it.as_bytes()));
        unproven.keep(peer(1), core::slice::from_ref(&first));
        unproven.keep(peer(1), &[first.clone(), second.clone()]);
        assert!(unproven.take(peer(2)).is_empty());
        assert_eq!(unproven.take(peer(1)), [first, second]);
        assert!(unproven.take(peer(1)).is_empty());
    }

    #[test]
    fn peers_and_octets_are_bounded() {
        let mut unproven = Unproven::default();
        let frame = Bytes::from(vec![0; 2_000]);
        for port in 1..=MAX_PEERS as u16 + 2 {
            let frames = [0, 1, 2].map(|octet| Bytes::from(vec![octet; 2_000]));
            unproven.keep(peer(port), &frames);
            assert!(unproven.order.len() <= MAX_PEERS);
        }
        assert!(unproven.take(peer(2)).is_empty());
        assert_eq!(unproven.take(peer(3)).len(), 2);
        // One that was taken and comes again is the last to make room.
        unproven.take(peer(4));
        unproven.keep(peer(4), core::slice::from_ref(&frame));
        for port in 0..MAX_PEERS as u16 - 1 {
            unproven.keep(peer(10_000 + port), core::slice::from_ref(&frame));
        }
        assert_eq!(unproven.peers.len(), MAX_PEERS);
        assert_eq!(unproven.take(peer(4)), [frame]);
        assert_eq!(unproven.order.len(), unproven.peers.len());
    }
}
