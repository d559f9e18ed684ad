//! The link service of one face (NDNLPv2): from frames to packets, and back.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::{ByteSize, Instant, Random};
use smallvec::{SmallVec, smallvec};

use super::{Reassembler, Reliability, ReliabilityCounters, cut, fragment};
use crate::config::Config;
use crate::counters::DropReason;
use crate::face::FaceConfig;

/// Most octets of link header fields that stay in memory with a packet. Usual ones are much shorter.
const MAX_KEPT_HEADER: ByteSize = ByteSize::bytes(64);

/// The frames of a packet: one, more often than not.
pub(crate) type Frames = SmallVec<[Bytes; 1]>;

/// What sending a packet depends on.
#[derive(Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) now: Instant,
    /// Octets of the link's largest frame.
    pub(crate) mtu: usize,
    /// Frames that there is room for.
    pub(crate) room: usize,
    pub(crate) bounds: &'a Config,
    pub(crate) random: &'a mut Random,
}

/// This end of a link: fragments, and acknowledgement where both ends have it.
///
/// It knows neither faces nor tables. The bounds are those of the node.
#[derive(Debug)]
pub(crate) struct Link {
    /// Sequence of the next fragment.
    next_sequence: u64,
    /// Boxed, as few links have it.
    reliability: Option<Box<Reliability>>,
    /// From the first fragment on.
    reassembler: Option<Box<Reassembler>>,
}

impl Link {
    /// A link on which nothing has passed yet.
    pub(crate) fn new(bounds: &Config, face: &FaceConfig) -> Self {
        let mut link = Self {
            next_sequence: 0,
            reliability: None,
            reassembler: None,
        };
        link.reconfigure(bounds, face);
        link
    }

    /// Is as `face` says from now on. What it waits for goes on, unless that takes it away: without link reliability, frames
    /// that were not acknowledged count as sent.
    pub(crate) fn reconfigure(&mut self, bounds: &Config, face: &FaceConfig) {
        match &mut self.reliability {
            Some(reliability) if face.reliability => reliability.set_mtu(face.mtu),
            _ => {
                let make = || Box::new(Reliability::new(bounds.reliability, face.mtu));
                self.reliability = face.reliability.then(make);
            }
        }
    }

    /// Takes a frame. Returns the packet that it carries or completes; counts the incomplete ones that gave way to it.
    ///
    /// # Errors
    /// Why the frame is of no use.
    pub(crate) fn handle_frame(
        &mut self,
        now: Instant,
        frame: Bytes,
        bounds: &Config,
        evicted: &mut u64,
    ) -> Result<Option<LpPacket>, DropReason> {
        let size = ByteSize::of(&frame);
        let mut packet = LpPacket::decode(frame).map_err(|_| DropReason::Malformed)?;
        if let Some(reliability) = &mut self.reliability
            && !reliability.handle_packet(now, &packet)
        {
            return Err(DropReason::DuplicateFragment);
        }
        if packet.fragment_count.unwrap_or(1) == 1 {
            packet.fragment = packet.fragment.map(|wire| without_frame(wire, size));
            return Ok(Some(packet));
        }
        packet.fragment = packet.fragment.map(|piece| bounds.keep.own(piece));
        let make = || Box::new(Reassembler::new(bounds.reassembly, bounds.max_fragments));
        let reassembler = self.reassembler.get_or_insert_with(make);
        reassembler.handle_fragment(now, packet, size, evicted)
    }

    /// The frames that carry a packet, if there is room for them.
    ///
    /// # Errors
    /// If there is not, or the packet cannot be cut so small.
    pub(crate) fn send(
        &mut self,
        packet: LpPacket,
        sending: Sending<'_>,
    ) -> Result<Frames, DropReason> {
        if self.reliability.is_some() {
            return self.send_reliably(packet, sending);
        }
        let bounds = sending.bounds;
        let whole = packet.encode();
        if whole.len() <= sending.mtu {
            return Ok(smallvec![whole]);
        }
        let first = self.next_sequence | bounds.shard.first_sequence();
        let frames = fragment(&packet, first, sending.mtu, bounds.max_fragments);
        let frames = frames.ok_or(DropReason::CannotFragment)?;
        sending.check(frames.len())?;
        self.next_sequence += frames.len() as u64;
        Ok(frames.into())
    }

    /// The same where each frame is numbered, and kept until it is acknowledged.
    fn send_reliably(
        &mut self,
        mut packet: LpPacket,
        sending: Sending<'_>,
    ) -> Result<Frames, DropReason> {
        let (now, bounds) = (sending.now, sending.bounds);
        packet.fragment = packet.fragment.map(|wire| bounds.keep.own(wire));
        let Some(reliability) = &mut self.reliability else {
            return Ok(Frames::new());
        };
        let mtu = Reliability::room(sending.mtu);
        let first = match self.next_sequence {
            // The peer must not take the first ones for repetitions from this node's last life.
            0 => sending.random.next_u64().wrapping_add(now.as_nanos()),
            next => next,
        };
        packet.sequence = Some(first);
        let pieces = if packet.encode_whole().len() <= mtu {
            vec![packet]
        } else {
            packet.sequence = None;
            let pieces = cut(&packet, first, mtu, bounds.max_fragments);
            pieces.ok_or(DropReason::CannotFragment)?
        };
        sending.check(pieces.len())?;
        self.next_sequence = first.wrapping_add(pieces.len() as u64);
        let pieces = pieces.into_iter();
        Ok(pieces.map(|piece| reliability.send(now, piece)).collect())
    }

    /// Whether it may ever want to send by itself, or be called in time.
    pub(crate) const fn has_state(&self) -> bool {
        self.reliability.is_some() || self.reassembler.is_some()
    }

    /// The next frame that it sends by itself: one that the link lost, or Acks.
    pub(crate) fn poll_frame(&mut self, now: Instant) -> Option<Bytes> {
        self.reliability.as_mut()?.poll_output(now)
    }

    /// Packets that it has given up since the last call, as nothing of them was acknowledged.
    pub(crate) fn take_given_up(&mut self) -> u64 {
        let reliability = self.reliability.as_mut();
        reliability.map_or(0, |reliability| reliability.take_given_up())
    }

    /// What its reliability has done, if it has any.
    pub(crate) fn reliability_counters(&self) -> Option<ReliabilityCounters> {
        self.reliability.as_ref().map(|it| it.counters())
    }

    /// Finds out what the link lost, and gives up packets whose missing fragments did not come in time. Returns how many.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> u64 {
        if let Some(reliability) = &mut self.reliability {
            reliability.handle_timeout(now);
        }
        let reassembler = self.reassembler.as_mut();
        reassembler.map_or(0, |reassembler| reassembler.handle_timeout(now))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and then [`poll_frame`](Self::poll_frame) next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let reliability = self.reliability.as_ref().and_then(|it| it.poll_timeout());
        let reassembly = self.reassembler.as_ref().and_then(|it| it.poll_timeout());
        reassembly.into_iter().chain(reliability).min()
    }
}

impl Sending<'_> {
    /// All of a packet's frames are sent, or none, as a packet that lacks a fragment is of no use.
    const fn check(&self, frames: usize) -> Result<(), DropReason> {
        match frames > self.room {
            true => Err(DropReason::OutputQueueFull),
            false => Ok(()),
        }
    }
}

/// The packet in memory of its own, if it is a part of a frame that is mostly something else: tables would keep all of it
/// and count the packet only.
fn without_frame(wire: Bytes, frame: ByteSize) -> Bytes {
    match frame - ByteSize::of(&wire) > MAX_KEPT_HEADER {
        true => Bytes::copy_from_slice(&wire),
        false => wire,
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Both ends of a link whose frames have at most 400 octets.
    struct Ends {
        bounds: Config,
        random: Random,
        near: Link,
        far: Link,
    }

    impl Ends {
        fn new(reliability: bool) -> Self {
            let bounds = Config::default();
            let face = FaceConfig {
                mtu: Some(400),
                reliability,
                ..FaceConfig::default()
            };
            Self {
                near: Link::new(&bounds, &face),
                far: Link::new(&bounds, &face),
                random: Random::from_seed(1),
                bounds,
            }
        }

        fn send(&mut self, octets: usize, room: usize) -> Result<Frames, DropReason> {
            let packet = LpPacket {
                congestion_mark: 1,
                ..LpPacket::carrying(vec![7; octets].into())
            };
            let sending = Sending {
                now: Instant::ZERO,
                mtu: 400,
                room,
                bounds: &self.bounds,
                random: &mut self.random,
            };
            self.near.send(packet, sending)
        }

        fn receive(&mut self, frames: impl IntoIterator<Item = Bytes>) -> Vec<usize> {
            let mut evicted = 0;
            let opened = frames.into_iter().filter_map(|frame| {
                let now = Instant::ZERO;
                let opened = (self.far).handle_frame(now, frame, &self.bounds, &mut evicted);
                opened.unwrap()
            });
            let packets = opened.collect::<Vec<_>>();
            assert_eq!(evicted, 0);
            let length = |packet: LpPacket| packet.fragment.unwrap().len();
            packets.into_iter().map(length).collect()
        }
    }

    /// 1000 octets take three frames of 400, of which each has room for 374.
    #[test]
    fn a_packet_crosses_in_pieces_and_comes_whole() {
        for reliability in [false, true] {
            let mut ends = Ends::new(reliability);
            let frames = ends.send(1_000, 10).unwrap();
            assert_eq!(frames.len(), 3);
            assert!(frames.iter().all(|frame| frame.len() <= 400));
            assert_eq!(ends.receive(frames), [1_000]);
            let small = ends.send(100, 10).unwrap();
            assert_eq!(ends.receive(small), [100]);
            assert_eq!(ends.far.poll_timeout().is_some(), reliability);
        }
    }

    #[test]
    fn what_finds_no_room_is_not_sent_and_leaves_nothing() {
        for reliability in [false, true] {
            let mut ends = Ends::new(reliability);
            assert_eq!(ends.send(1_000, 2), Err(DropReason::OutputQueueFull));
            assert_eq!(ends.near.next_sequence, 0);
            assert_eq!(ends.near.poll_timeout(), None);
            let frames = ends.send(1_000, 3).unwrap();
            assert_eq!(ends.receive(frames), [1_000]);
        }
    }

    /// The peer has acknowledged something before, or it would be taken for one that does not. Then a frame is lost, and sent again
    /// by itself.
    #[test]
    fn what_the_link_lost_is_sent_again_where_both_ends_acknowledge() {
        let mut ends = Ends::new(true);
        let first = ends.send(100, 10).unwrap();
        assert_eq!(ends.receive(first), [100]);
        let later = Instant::ZERO + Duration::from_millis(10);
        let ack = ends.far.poll_frame(later).unwrap();
        let acknowledged = ends.near.handle_frame(later, ack, &ends.bounds, &mut 0);
        assert_eq!(acknowledged.unwrap().unwrap().fragment, None);
        let lost = ends.send(200, 10).unwrap();
        let due = ends.near.poll_timeout().unwrap();
        assert_eq!(
            ends.near
                .poll_frame(due.saturating_sub(Duration::from_nanos(1))),
            None
        );
        assert_eq!(ends.near.handle_timeout(due), 0);
        let again = ends.near.poll_frame(due).unwrap();
        assert_ne!(again, lost[0], "it has a number of its own");
        assert_eq!(ends.receive([again]), [200]);
        assert_eq!(ends.near.reliability_counters().unwrap().retransmitted, 1);
    }
}
