//! `ndn::L3RateTracer`: packets and kilobytes over each face.

use core::fmt::Display;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write};

use namecast_forward::FaceCounters;

use super::number::General;
use super::table::{Table, field};
use super::{Smoothed, float};
use crate::topology::NodeIndex;
use crate::trace::{Event, EventKind, Frame, PacketKind, Sampler, Sink, Snapshot};

const HEADER: &str =
    "Time\tNode\tFaceId\tFaceDescr\tType\tPackets\tKilobytes\tPacketRaw\tKilobytesRaw";

/// What is counted at a face, in ndnSIM's order.
const FACE_TYPES: [&str; 10] = [
    "InInterests",
    "OutInterests",
    "InData",
    "OutData",
    "InNacks",
    "OutNacks",
    "InSatisfiedInterests",
    "InTimedOutInterests",
    "OutSatisfiedInterests",
    "OutTimedOutInterests",
];

/// What is counted at a node; ndnSIM writes no size for these.
const NODE_TYPES: [&str; 2] = ["SatisfiedInterests", "TimedOutInterests"];

/// Packets and kilobytes over each face in each period, and Interests that the node saw answered or not.
///
/// As in ndnSIM a face has rows from the first period with a packet on, and sizes are those of network packets, without
/// link headers. Counts come from the forwarder, sizes from events, so a packet that was cut into fragments adds its first
/// one's size. Interests that came back as Nacks are neither satisfied nor timed out.
#[derive(Debug)]
pub struct RateTable<W: Write> {
    table: Table<W>,
    period: Duration,
    nodes: BTreeMap<NodeIndex, Node>,
}

#[derive(Debug, Default)]
struct Node {
    faces: BTreeMap<u64, Rows<10>>,
    total: Rows<2>,
}

/// One row for each type.
#[derive(Debug)]
struct Rows<const N: usize> {
    /// Counts when last seen.
    before: [u64; N],
    /// Octets since last seen.
    octets: [u64; N],
    packet_rates: [Smoothed; N],
    byte_rates: [Smoothed; N],
}

impl<const N: usize> Default for Rows<N> {
    fn default() -> Self {
        Self {
            before: [0; N],
            octets: [0; N],
            packet_rates: [Smoothed::default(); N],
            byte_rates: [Smoothed::default(); N],
        }
    }
}

impl<W: Write> RateTable<W> {
    /// Writes to `output`, which it buffers, once every `period`.
    pub fn new(output: W, period: Duration) -> Self {
        Self {
            table: Table::new(output, HEADER),
            period,
            nodes: BTreeMap::new(),
        }
    }

    /// Writes what is left, and gives the output back.
    ///
    /// # Errors
    /// The first error there was; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.table.finish()
    }
}

impl<W: Write> Sink for RateTable<W> {
    fn record(&mut self, event: &Event<'_>) {
        let (frame, is_out) = match event.kind {
            EventKind::Received(frame) => (frame, false),
            EventKind::Sent(frame) => (frame, true),
            EventKind::Dropped(..) | EventKind::Fetched(_) => return,
        };
        let frame = Frame::read(frame);
        let kind = match frame.packet {
            PacketKind::Interest => 0,
            PacketKind::Data => 2,
            PacketKind::Nack => 4,
            PacketKind::Other => return,
        };
        let node = self.nodes.entry(event.node).or_default();
        let rows = node.faces.entry(event.face).or_default();
        let size = frame.fragment.map_or(0, |packet| packet.len());
        rows.octets[kind + usize::from(is_out)] += size as u64;
    }
}

impl<W: Write> Sampler for RateTable<W> {
    fn period(&self) -> Duration {
        self.period
    }

    fn sample(&mut self, snapshot: &Snapshot<'_>) {
        let node = self.nodes.entry(snapshot.node).or_default();
        let seconds = self.period.as_secs_f64();
        let (at, name) = (General(snapshot.seconds()), field(snapshot.name));
        for face in &snapshot.faces {
            let counts = counts(&face.counters);
            if counts.iter().all(|&count| count == 0) {
                continue;
            }
            let rows = node.faces.entry(face.id).or_default();
            let description = field(face.description);
            let start: [&dyn Display; 4] = [&at, &name, &face.id, &description];
            rows.write(&mut self.table, start, (&FACE_TYPES, counts), seconds);
        }
        let counts = [snapshot.counters.satisfied, snapshot.counters.expired];
        if counts.iter().any(|&count| count > 0) {
            let start: [&dyn Display; 4] = [&at, &name, &-1, &"all"];
            node.total
                .write(&mut self.table, start, (&NODE_TYPES, counts), seconds);
        }
    }
}

impl<const N: usize> Rows<N> {
    fn write<W: Write>(
        &mut self,
        table: &mut Table<W>,
        [at, node, face, description]: [&dyn Display; 4],
        (types, counts): (&[&str; N], [u64; N]),
        seconds: f64,
    ) {
        for row in 0..N {
            let packets = float(counts[row].saturating_sub(self.before[row]));
            let kilobytes = float(self.octets[row]) / 1024.0;
            let packet_rate = General(self.packet_rates[row].update(packets, seconds));
            let byte_rate = General(self.byte_rates[row].update(kilobytes, seconds));
            table.row(&[
                at,
                node,
                face,
                description,
                &types[row],
                &packet_rate,
                &byte_rate,
                &General(packets),
                &General(kilobytes),
            ]);
        }
        self.before = counts;
        self.octets = [0; N];
    }
}

/// In the order of [`FACE_TYPES`].
const fn counts(face: &FaceCounters) -> [u64; 10] {
    let (incoming, outgoing) = (&face.incoming, &face.outgoing);
    [
        incoming.interests,
        outgoing.interests,
        incoming.data,
        outgoing.data,
        incoming.nacks,
        outgoing.nacks,
        face.satisfied_in,
        face.expired_in,
        face.satisfied_out,
        face.expired_out,
    ]
}
