//! One face's link (NDNLPv2): from frames to packets, and back, with what waits to be sent.

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Extensions, LpPacket, MAX_PACKET_SIZE, lp, tlv};
use namecast_units::{ByteSize, Instant, Random};
use smallvec::{SmallVec, smallvec};

use super::neighbour::{self, ANSWER_PAUSE};
use super::offers::Offers;
use super::queue::SendQueue;
use super::{
    CongestionMarker, LinkCounters, LinkMeter, PathMtu, PathMtuConfig, Reassembler, Reliability,
    SendQueueConfig, cut, fragment, path_probe,
};
use crate::config::Config;
use crate::counters::DropReason;
use crate::face::{ExtensionFields, FaceConfig};

/// Most octets of link header fields that stay in memory with a packet. Usual ones are much shorter.
const MAX_KEPT_HEADER: ByteSize = ByteSize::bytes(64);

/// The frames of a packet: one, more often than not.
type Frames = SmallVec<[Bytes; 1]>;

/// This end of a link: fragments, acknowledgement where both ends have it, the send queue with its marks, and what all of
/// them count.
///
/// What the link delivered goes into [`handle_frame`](Self::handle_frame), whole packets for the neighbour into
/// [`enqueue`](Self::enqueue); frames come out of [`poll_frame`](Self::poll_frame) while the socket has room. After a frame,
/// and after [`handle_timeout`](Self::handle_timeout), there may be frames that nobody enqueued: Acks, and what the link lost.
///
/// A link knows neither tables nor names. Frames that [need nothing of it](Self::concerns) may pass it by while
/// [nothing waits](Self::is_empty), and are counted by the forwarder alone.
#[derive(Debug)]
pub struct Link {
    bounds: Arc<Config>,
    config: FaceConfig,
    random: Random,
    /// Sequence of the next fragment.
    next_sequence: u64,
    /// Boxed, as few links have it.
    reliability: Option<Box<Reliability>>,
    /// Where the path may take less than the face's MTU. Boxed, as few links have it.
    path: Option<Box<PathMtu>>,
    /// From the first fragment on.
    reassembler: Option<Box<Reassembler>>,
    queue: SendQueue,
    counters: LinkCounters,
    meter: Arc<LinkMeter>,
    /// When the neighbour may next be answered that this node speaks extension fields.
    answer_at: Instant,
}

impl Link {
    /// Returns a link on which nothing has passed yet, with the node's bounds. `seed` chooses the number of the first frame
    /// where they are acknowledged.
    pub fn new(
        bounds: Arc<Config>,
        config: &FaceConfig,
        queue: SendQueueConfig,
        seed: u64,
    ) -> Self {
        let mut link = Self {
            bounds,
            config: FaceConfig::default(),
            random: Random::from_seed(seed),
            next_sequence: 0,
            reliability: None,
            path: None,
            reassembler: None,
            queue: SendQueue::new(queue),
            counters: LinkCounters::default(),
            meter: Arc::default(),
            answer_at: Instant::ZERO,
        };
        link.reconfigure(config);
        link
    }

    /// Changes what the link is. What it waits for goes on, unless `config` takes it away: without link reliability, frames
    /// that were not acknowledged count as sent.
    pub fn reconfigure(&mut self, config: &FaceConfig) {
        match &self.reliability {
            Some(_) if config.reliability => {}
            _ => {
                let make = || Box::new(Reliability::new(self.bounds.link.reliability, config.mtu));
                self.reliability = config.reliability.then(make);
            }
        }
        self.config = config.clone();
        if let Some(path) = &mut self.path {
            path.set_ceiling(config.mtu.unwrap_or(MAX_PACKET_SIZE));
        }
        self.respect_wishes();
        self.spread_mtu();
    }

    /// Has the link find out by probes how large frames may be to reach the neighbour, up to the face's MTU, from now on; `None`: no
    /// more. Several peers on one link, and neighbours that take no extension fields, are sent no probes.
    pub fn discover_path_mtu(&mut self, config: Option<PathMtuConfig>) {
        let ceiling = self.config.mtu.unwrap_or(MAX_PACKET_SIZE);
        let config = config.filter(|_| self.config.has_one_peer());
        self.path = config.map(|config| Box::new(PathMtu::new(config, ceiling)));
        self.respect_wishes();
        self.spread_mtu();
    }

    fn respect_wishes(&mut self) {
        if let Some(path) = &mut self.path
            && self.config.extension_fields == ExtensionFields::Off
        {
            path.trust_system();
        }
    }

    /// Takes the operating system's limit for datagrams to the neighbour, in octets, if it knows one.
    pub fn set_system_limit(&mut self, now: Instant, limit: Option<usize>) {
        if let Some(path) = &mut self.path {
            path.set_system_limit(now, limit);
            self.spread_mtu();
        }
    }

    /// A router reported that a datagram was too large for the path, after which the operating system's limit is `limit`, if it has
    /// one.
    pub fn on_path_report(&mut self, now: Instant, limit: Option<usize>) {
        if let Some(path) = &mut self.path {
            path.on_report(now, limit);
            self.spread_mtu();
        }
    }

    /// The operating system refused a datagram of `octets` as too large; `limit` is what it takes, if it says so.
    pub fn on_too_large(&mut self, now: Instant, octets: usize, limit: Option<usize>) {
        if let Some(path) = &mut self.path {
            path.on_too_large(now, octets, limit);
            self.spread_mtu();
        }
    }

    /// Returns the largest frame that the link makes, in octets: the face's MTU, or less if the path takes less.
    pub fn mtu(&self) -> Option<usize> {
        let path = self.path.as_ref().map(|path| path.mtu());
        path.into_iter().chain(self.config.mtu).min()
    }

    /// Returns octets of the longest packet that may pass the link by: it is a frame as it is, and the link need not see it.
    pub fn longest_whole(&self) -> usize {
        let unwatched = self.path.as_ref().map_or(usize::MAX, |it| it.unwatched());
        match self.config.reliability {
            true => 0,
            false => self.mtu().unwrap_or(usize::MAX).min(unwatched),
        }
    }

    /// Tells those who need it what the MTU is.
    fn spread_mtu(&mut self) {
        let mtu = self.mtu();
        if let Some(reliability) = &mut self.reliability {
            reliability.set_mtu(mtu);
        }
        let path = self.path.as_ref().map(|path| path.mtu());
        self.meter.set_path_mtu(path);
    }

    /// Returns whether a received frame is for the link: a piece of a packet, or one that says something about frames. Others
    /// carry a whole packet, for a forwarder.
    pub fn concerns(frame: &[u8]) -> bool {
        const LP_PACKET: u8 = lp::LP_PACKET as u8;
        frame.first() == Some(&LP_PACKET) && says_of_frames(frame).unwrap_or(false)
    }

    /// Takes a frame that the link delivered. Returns the packet that it carries or completes; what it is dropped for is
    /// counted.
    pub fn handle_frame(&mut self, now: Instant, frame: Bytes) -> Option<LpPacket> {
        self.counters.received.add(&frame);
        let opened = self.open(now, frame);
        self.serve(now);
        opened.unwrap_or_else(|reason| {
            self.counters.drops.add(reason);
            None
        })
    }

    fn open(&mut self, now: Instant, frame: Bytes) -> Result<Option<LpPacket>, DropReason> {
        let size = ByteSize::of(&frame);
        let mut packet = LpPacket::decode(frame).map_err(|_| DropReason::Malformed)?;
        if let Some(reliability) = &mut self.reliability
            && !reliability.handle_packet(now, &packet)
        {
            return Err(DropReason::DuplicateFragment);
        }
        if let Some(said) = packet.extensions.number(Extensions::SUPPORT) {
            packet.extensions.remove(Extensions::SUPPORT);
            let takes = Offers::heard(&packet);
            if packet.extensions.get(Extensions::ANY_NEXT) == Some(&[]) {
                packet.extensions.remove(Extensions::ANY_NEXT);
            }
            self.hear_support(now, said, takes);
        }
        if packet.fragment.is_none() && self.hear_probe(now, &packet.extensions) {
            return Ok(None);
        }
        if packet.fragment_count.unwrap_or(1) == 1 {
            without_frame(&mut packet, size);
            return Ok(Some(packet));
        }
        packet.fragment = packet.fragment.map(|piece| self.bounds.keep.own(piece));
        let interest = packet.piggybacked_interest.take();
        packet.piggybacked_interest = interest.map(|value| self.bounds.keep.own(value));
        let bounds = &self.bounds.link;
        let make = || Box::new(Reassembler::new(bounds.reassembly, bounds.max_fragments));
        let reassembler = self.reassembler.get_or_insert_with(make);
        let mut evicted = 0;
        let opened = reassembler.handle_fragment(now, packet, size, &mut evicted);
        (self.counters.drops).add_many(DropReason::ReassemblyFull, evicted);
        opened
    }

    /// The neighbour speaks extension fields, and may ask whether this node does.
    fn hear_support(&mut self, now: Instant, said: u64, takes: Offers) {
        let is_off = self.config.extension_fields == ExtensionFields::Off;
        let is_known = [neighbour::QUESTION, neighbour::ANSWER].contains(&said);
        if is_off || !self.config.has_one_peer() || !is_known {
            return;
        }
        self.meter.neighbour.hear(now, takes);
        let is_to_answer = said == neighbour::QUESTION && now >= self.answer_at;
        let answer = neighbour::answer(self.meter.neighbour.offers());
        if is_to_answer && self.check_room(1, answer.len()).is_ok() {
            self.answer_at = now + ANSWER_PAUSE;
            self.push_own(now, answer);
            self.update_meter();
        }
    }

    /// Takes a probe of the path or an answer to one; says whether the fields are one.
    fn hear_probe(&mut self, now: Instant, fields: &Extensions) -> bool {
        let (probe, nonce) = (
            fields.get(Extensions::PATH_PROBE),
            fields.get(Extensions::PATH_ANSWER),
        );
        let is_off = self.config.extension_fields == ExtensionFields::Off;
        if !is_off && self.config.has_one_peer() {
            // An answer is never longer than its probe.
            if let Some(answer) = probe.and_then(path_probe::answer) {
                self.push_own(now, answer);
            }
            if let (Some(path), Some(nonce)) = (&mut self.path, nonce) {
                path.handle_answer(now, nonce);
                self.spread_mtu();
            }
        }
        probe.or(nonce).is_some()
    }

    /// Queues a frame of the link's own, if there is room.
    fn push_own(&mut self, now: Instant, frame: Bytes) {
        match self.check_room(1, frame.len()) {
            Ok(()) => {
                self.counters.sent.add(&frame);
                self.queue.push(now, frame);
            }
            Err(reason) => self.drop(reason),
        }
    }

    /// Returns whether a frame only asks how much the path takes, so that nothing is lost if it does not leave.
    pub fn is_probe(frame: &Bytes) -> bool {
        let packet = LpPacket::decode(frame.clone());
        packet.is_ok_and(|it| {
            it.fragment.is_none() && it.extensions.get(Extensions::PATH_PROBE).is_some()
        })
    }

    /// Forgets what the neighbour speaks: the connection is new, and the neighbour may be.
    pub fn forget_neighbour(&mut self) {
        self.meter.neighbour.forget();
        self.answer_at = Instant::ZERO;
    }

    /// Queues a whole link packet for the neighbour, in as many frames as the link wants: all of them or none, as a packet
    /// that lacks a fragment is of no use. What finds no room is dropped and counted.
    pub fn enqueue(&mut self, now: Instant, packet: Bytes) {
        match self.frames_of(now, packet) {
            Ok(frames) => frames.into_iter().for_each(|it| self.queue.push(now, it)),
            Err(reason) => self.drop(reason),
        }
        self.update_meter();
    }

    /// Queues a frame of the driver's own as it is, such as one that keeps the link alive. What finds no room is dropped and
    /// counted.
    pub fn enqueue_frame(&mut self, now: Instant, frame: Bytes) {
        match self.check_room(1, frame.len()) {
            Ok(()) => self.queue.push(now, frame),
            Err(reason) => self.drop(reason),
        }
        self.update_meter();
    }

    fn drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::OutputQueueFull => self.counters.queue_full += 1,
            _ => self.counters.drops.add(reason),
        }
    }

    /// The frames that carry a packet, if there is room for them.
    fn frames_of(&mut self, now: Instant, packet: Bytes) -> Result<Frames, DropReason> {
        if let Some(path) = &mut self.path {
            path.on_packet(now, packet.len());
        }
        let octets = packet.len();
        // The forwarder, which does not know the path, has counted it as one frame.
        let is_counted = self.config.takes_whole(octets);
        if is_counted && octets <= self.mtu().unwrap_or(usize::MAX) {
            self.check_room(1, octets)?;
            // What waits must not keep the buffer that a small frame was cut from.
            return Ok(smallvec![self.bounds.keep.own(packet)]);
        }
        let packet = LpPacket::decode(packet).map_err(|_| DropReason::Malformed)?;
        let frames = match self.reliability {
            Some(_) => self.number(now, packet)?,
            None => self.cut(&packet)?,
        };
        for frame in &frames {
            self.counters.sent.add(frame);
        }
        if is_counted {
            self.counters.sent.frames -= 1;
            self.counters.sent.octets -= ByteSize::bytes(octets as u64);
        }
        Ok(frames)
    }

    fn cut(&mut self, packet: &LpPacket) -> Result<Frames, DropReason> {
        let (mtu, most) = (
            self.mtu().unwrap_or(usize::MAX),
            self.bounds.link.max_fragments,
        );
        let frames = fragment(packet, self.next_sequence, mtu, most);
        let frames = frames.ok_or(DropReason::CannotFragment)?;
        self.check_room(frames.len(), frames.iter().map(Bytes::len).sum())?;
        self.next_sequence += frames.len() as u64;
        Ok(frames.into())
    }

    /// Each frame is numbered, and kept until it is acknowledged.
    fn number(&mut self, now: Instant, mut packet: LpPacket) -> Result<Frames, DropReason> {
        let bounds = Arc::clone(&self.bounds);
        packet.fragment = packet.fragment.map(|wire| bounds.keep.own(wire));
        let mtu = Reliability::room(self.mtu().unwrap_or(usize::MAX));
        let first = match self.next_sequence {
            // The peer must not take the first ones for repetitions from this node's last life.
            0 => self.random.next_u64().wrapping_add(now.as_nanos()),
            next => next,
        };
        packet.sequence = Some(first);
        let length = packet.encode_whole().len();
        let pieces = if length <= mtu {
            vec![packet]
        } else {
            packet.sequence = None;
            let pieces = cut(&packet, first, mtu, bounds.link.max_fragments);
            pieces.ok_or(DropReason::CannotFragment)?
        };
        self.check_room(pieces.len(), length)?;
        self.next_sequence = first.wrapping_add(pieces.len() as u64);
        let reliability = self.reliability.as_mut();
        let reliability = reliability.expect("only reliable links number their frames");
        let pieces = pieces.into_iter();
        Ok(pieces.map(|piece| reliability.send(now, piece)).collect())
    }

    fn check_room(&self, frames: usize, octets: usize) -> Result<(), DropReason> {
        match self.queue.has_room(frames, ByteSize::bytes(octets as u64)) {
            true => Ok(()),
            false => Err(DropReason::OutputQueueFull),
        }
    }

    /// Queues the link's own frames: path probes, retransmissions and Acks. Counts frames given up.
    fn serve(&mut self, now: Instant) {
        while let Some(probe) = self.path.as_mut().and_then(|path| path.poll_output()) {
            self.push_own(now, probe);
        }
        let Some(reliability) = &mut self.reliability else {
            return self.update_meter();
        };
        while let Some(frame) = reliability.poll_output(now) {
            if self.queue.has_room(1, ByteSize::of(&frame)) {
                self.counters.sent.add(&frame);
                self.queue.push(now, frame);
            } else {
                self.counters.queue_full += 1;
            }
        }
        let given_up = reliability.take_given_up();
        (self.counters.drops).add_many(DropReason::Unacknowledged, given_up);
        self.update_meter();
    }

    /// Returns the next frame to send, if there is one and it has no more than `room` octets.
    pub fn poll_frame(&mut self, now: Instant, room: ByteSize) -> Option<Bytes> {
        let frame = self.queue.pop(now, room);
        self.update_meter();
        frame
    }

    /// Takes back frames that came out last and that the socket had no room for after all.
    pub fn put_back(&mut self, now: Instant, frames: impl DoubleEndedIterator<Item = Bytes>) {
        self.queue.put_back(now, frames);
        self.update_meter();
    }

    /// Finds out what the link lost, and gives up packets whose missing fragments did not come in time. Early calls do
    /// nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(reliability) = &mut self.reliability {
            reliability.handle_timeout(now);
        }
        if let Some(reassembler) = &mut self.reassembler {
            let expired = reassembler.handle_timeout(now);
            (self.counters.drops).add_many(DropReason::ReassemblyTimeout, expired);
        }
        if let Some(path) = &mut self.path {
            path.handle_timeout(now, &mut self.random);
            self.spread_mtu();
        }
        self.serve(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let reliability = self.reliability.as_ref().and_then(|it| it.poll_timeout());
        let reassembly = self.reassembler.as_ref().and_then(|it| it.poll_timeout());
        let path = self.path.as_ref().and_then(|it| it.poll_timeout());
        let all = [reliability, reassembly, path];
        all.into_iter().flatten().min()
    }

    /// Returns where others can read what the link has sent, how long its queue is, and what the neighbour speaks.
    pub fn meter(&self) -> Arc<LinkMeter> {
        Arc::clone(&self.meter)
    }

    /// Has others read that from `meter` instead.
    pub fn set_meter(&mut self, meter: Arc<LinkMeter>) {
        self.meter = meter;
        self.spread_mtu();
        self.update_meter();
    }

    fn update_meter(&self) {
        let (queue, sent) = (&self.queue, self.counters.sent);
        self.meter.set(sent, queue.size(), queue.waits_since());
    }

    /// Returns whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the octets that wait.
    pub const fn queued(&self) -> ByteSize {
        self.queue.size()
    }

    /// Returns for how long the next frame has waited.
    pub fn delay(&self, now: Instant) -> Duration {
        self.queue.delay(now)
    }

    /// Records that frames passed by while nothing waited: a queue that was long before counts for no mark.
    pub const fn rest(&mut self) {
        self.queue.marker_mut().rest();
    }

    /// Returns when frames are marked.
    pub const fn marker(&self) -> &CongestionMarker {
        self.queue.marker()
    }

    /// Returns when frames are marked, to be changed.
    pub const fn marker_mut(&mut self) -> &mut CongestionMarker {
        self.queue.marker_mut()
    }

    /// Returns what the link is.
    pub const fn config(&self) -> &FaceConfig {
        &self.config
    }

    /// Returns what the link has done.
    pub fn counters(&self) -> LinkCounters {
        let reliability = self.reliability.as_ref().map(|it| it.counters());
        LinkCounters {
            marked: self.queue.marked(),
            reliability: reliability.unwrap_or_default(),
            ..self.counters
        }
    }
}

/// Whether a link packet is a piece of a network packet, says something about frames, or carries nothing; `None` if it breaks
/// the format.
fn says_of_frames(frame: &[u8]) -> Option<bool> {
    let mut reader = tlv::Reader::new(frame);
    let whole = reader.element("frame").ok()??;
    let (mut is_for_link, mut carries) = (false, false);
    let mut fields = tlv::Reader::within(frame, whole.value);
    while let Some(field) = fields.element("link header").ok()? {
        match field.element_type {
            lp::FRAGMENT => carries = true,
            lp::FRAGMENT_COUNT => is_for_link |= frame[field.value] != [1],
            lp::TX_SEQUENCE | lp::ACK | Extensions::SUPPORT => is_for_link = true,
            _ => {}
        }
    }
    Some(is_for_link || !carries)
}

/// Gives the wire of a packet memory of its own if it is a part of a frame of `size` octets that is mostly something else: tables
/// would keep all of it and count the packet only.
pub(crate) fn without_frame(packet: &mut LpPacket, size: ByteSize) {
    if let Some(wire) = &mut packet.fragment
        && size - ByteSize::of(wire) > MAX_KEPT_HEADER
    {
        *wire = Bytes::copy_from_slice(wire);
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
