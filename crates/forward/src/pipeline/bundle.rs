//! Bundles: Data and an Interest in one frame, on their way through the node.
//!
//! ```text
//!  bundle ─┬─ Data ─────▶ incoming Data ─────▶ all who wait ───────┬─▶ one frame, where the face takes it
//!          └─ Interest ─▶ incoming Interest ─▶ the face of one ────┘
//! ```
//!
//! Nothing but the FIB's look-up is left out for the Interest: scope, loops, HopLimit, content store, quotas and the strategy see it as
//! any other, and the strategy has one next hop to choose from. It rides on Data that somebody waited for, to a face that is a next
//! hop of its name; otherwise it is as if it had come by itself.

use bytes::Bytes;
use namecast_packet::{Data, Interest, LpPacket, piggyback};
use smallvec::SmallVec;

use super::{Forwarder, Transmit};
use crate::counters::{BundleCounters, DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::LinkFields;
use crate::link::frame_count;
use crate::name_hash::NameHashes;
use crate::table::{Face, NextHop};

/// A face that Data leave by to somebody who waits, and which of the packets that are ready to be sent that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) face: FaceId,
    pub(super) place: usize,
}

pub(super) type Seats = SmallVec<[Seat; 2]>;

/// What came with an Interest.
pub(super) struct Bundle<'a> {
    data: &'a Data,
    seats: Seats,
    /// Its value of the link header field.
    value: Bytes,
    /// Whether the Interest goes on other than as the value has it: with a Nonce, or another HopLimit.
    is_changed: bool,
    /// The frame, if there was nothing else in it.
    frame: Option<Bytes>,
    /// Hashes of the Interest's name, where they are known.
    pub(super) hashes: Option<NameHashes>,
}

/// The Data that an Interest rides on.
#[derive(Clone, Copy)]
pub(super) struct Ride<'a> {
    pub(super) hop: NextHop,
    place: usize,
    bundle: &'a Bundle<'a>,
}

/// Takes Data and the value of the field that came in front of it.
pub(super) fn incoming_bundle(
    forwarder: &mut Forwarder,
    id: FaceId,
    data: &Data,
    fields: &LinkFields,
    (value, frame): (Bytes, Option<Bytes>),
) -> Result<(), DropReason> {
    forwarder
        .tables
        .count_bundle(id, |count| count.received += 1);
    let mut seats = Seats::new();
    let expect = |forwarder: &mut Forwarder, has_interest| {
        if let Some(bundling) = &mut forwarder.bundling {
            bundling.has_interest = has_interest;
        }
    };
    expect(forwarder, true);
    let done = forwarder.incoming_data(id, data, fields, Some(&mut seats));
    expect(forwarder, false);
    let decoded = match &mut forwarder.bundling {
        Some(bundling) => bundling.interest(id, (&value, data), &forwarder.tables),
        None => piggyback::decode(&value, data).map(|interest| (interest, None)),
    };
    let (mut interest, hashes) = match decoded {
        Ok((interest, hashes)) if !is_for(&interest, data) => (interest, hashes),
        Ok(_) => {
            forwarder
                .tables
                .count_bundle(id, |count| count.refused_own_data += 1);
            return done;
        }
        Err(_) => {
            forwarder
                .tables
                .count_bundle(id, |count| count.refused_malformed += 1);
            return done;
        }
    };
    if !forwarder.tables.is_within_rate(forwarder.now, id) {
        forwarder.tables.count_drop(id, DropReason::InterestRate);
        return done;
    }
    forwarder.tables.count_packet(id, PacketKind::Interest)?;
    if seats.is_empty() {
        forwarder
            .tables
            .count_bundle(id, |count| count.plain_unsolicited += 1);
    }
    let bundle = Bundle {
        data,
        seats,
        value,
        is_changed: interest.nonce().is_none() || interest.hop_limit().is_some(),
        frame,
        hashes,
    };
    let fields = LinkFields::none();
    if let Err(reason) = forwarder.incoming_interest(id, &mut interest, &fields, Some(&bundle)) {
        forwarder.tables.count_drop(id, reason);
    }
    done
}

/// Returns the Data that an Interest from `ingress` may ride on: to the one who waited longest of those that are its next hops.
pub(super) fn ride<'a>(
    forwarder: &mut Forwarder,
    bundle: &'a Bundle<'a>,
    (interest, hashes): (&Interest, &NameHashes),
    ingress: FaceId,
) -> Option<Ride<'a>> {
    for seat in &bundle.seats {
        let tables = &forwarder.tables;
        if !tables.is_eligible(interest.name(), ingress, seat.face) {
            continue;
        }
        let bundling = forwarder.bundling.as_mut()?;
        let (hop, was_asked) = bundling.next_hop(tables, (interest, hashes), seat.face);
        if let Some(hop) = hop {
            forwarder
                .tables
                .count_bundle(ingress, |count| match was_asked {
                    true => count.looked_up += 1,
                    false => count.followed += 1,
                });
            return Some(Ride {
                hop,
                place: seat.place,
                bundle,
            });
        }
    }
    if !bundle.seats.is_empty() {
        forwarder
            .tables
            .count_bundle(ingress, |count| count.plain_route += 1);
    }
    None
}

/// Sends an Interest with the Data that it rides on; returns whether that was possible.
pub(super) fn send_on_board(
    forwarder: &mut Forwarder,
    ride: &Ride<'_>,
    interest: &Interest,
    has_fields: bool,
) -> bool {
    let to = ride.hop.face;
    let Some(face) = forwarder.tables.faces.get_mut(to) else {
        return false;
    };
    let Some(transmit) = forwarder.output.at_mut(ride.place) else {
        return false;
    };
    let bundle = ride.bundle;
    let is_embedded = *bundle.value == [piggyback::EMBEDDED];
    let split: fn(&mut BundleCounters) = if !face.takes_bundles() {
        |count| count.split_neighbour += 1
    } else if has_fields || is_embedded && bundle.is_changed {
        |count| count.split_fields += 1
    } else {
        let new_value =
            (bundle.is_changed).then(|| piggyback::encode(interest, bundle.data.name()));
        // The very octets, if the Data go on without fields.
        let is_bare = transmit.frame.as_ptr() == bundle.data.wire().as_ptr();
        let whole = bundle.frame.as_ref();
        let whole = whole.filter(|_| is_bare && !bundle.is_changed);
        let value = new_value.as_ref().unwrap_or(&bundle.value);
        match bundled(face, (&transmit.frame, whole), value) {
            Some(frame) => {
                let lengths = (transmit.frame.len(), frame.len());
                transmit.frame = frame;
                forwarder
                    .tables
                    .count_on_board(to, PacketKind::Interest, lengths);
                forwarder.tables.count_bundle(to, |count| count.sent += 1);
                return true;
            }
            None => |count| count.split_size += 1,
        }
    };
    forwarder.tables.count_bundle(to, split);
    false
}

/// Queues a packet, with one of the other kind that its application sends there as well, if there is one soon.
pub(super) fn push_or_join(
    forwarder: &mut Forwarder,
    (kind, from): (PacketKind, FaceId),
    transmit: Transmit,
) {
    let passage = (kind, from, transmit.face);
    let faces = &forwarder.tables.faces;
    // An application that takes bundles makes them itself.
    let is_plain = |face: &Face| face.is_local() && !face.takes_bundles();
    let may_join = faces.get(from).is_some_and(is_plain)
        && faces.get(transmit.face).is_some_and(Face::takes_bundles)
        && may_join(kind, &transmit.frame);
    let bundling = forwarder.bundling.as_mut();
    let Some(bundling) = bundling.filter(|it| may_join && !it.has_interest) else {
        return forwarder.output.push(transmit);
    };
    let until = bundling.hold_until(forwarder.now, passage, &mut forwarder.tables);
    // Of those that wait for no time, some have left.
    while let Some(held) = bundling.partner(forwarder.now, passage) {
        if let Some(other) = forwarder.output.take(held) {
            return join(forwarder, kind, other, transmit);
        }
    }
    match until {
        Some(until) => {
            let held = forwarder.output.push_delayed(until, transmit);
            bundling.hold(passage, held);
        }
        None => forwarder.output.push(transmit),
    }
}

/// Queues two packets to one face, in one frame if possible: `first`, which waited, and `second`, which is of this kind.
fn join(forwarder: &mut Forwarder, kind: PacketKind, first: Transmit, second: Transmit) {
    let to = first.face;
    let (data, interest) = match kind {
        PacketKind::Data => (&second.frame, &first.frame),
        _ => (&first.frame, &second.frame),
    };
    let Some(face) = forwarder.tables.faces.get_mut(to) else {
        return;
    };
    let value = value_of(data, interest);
    let joined = value.and_then(|value| bundled(face, (data, None), &value));
    let Some(frame) = joined else {
        forwarder
            .tables
            .count_bundle(to, |count| count.split_size += 1);
        forwarder.output.push(first);
        return forwarder.output.push(second);
    };
    // Both were counted as they were.
    forwarder.tables.count_joined(to, (data, interest), &frame);
    forwarder.tables.count_bundle(to, |count| {
        count.sent += 1;
        count.joined += 1;
    });
    forwarder.output.push(Transmit { face: to, frame });
}

/// First octets of packets without a link header.
const BARE_INTEREST: u8 = namecast_packet::tlv::INTEREST as u8;
const BARE_DATA: u8 = namecast_packet::tlv::DATA as u8;

/// Whether a packet may travel with another: Data, and an Interest without fields of its own.
fn may_join(kind: PacketKind, frame: &[u8]) -> bool {
    match kind {
        PacketKind::Interest => frame.first() == Some(&BARE_INTEREST),
        PacketKind::Data => true,
        PacketKind::Nack(_) => false,
    }
}

/// Whether Data answer an Interest; of most, the names alone tell that they do not.
fn is_for(interest: &Interest, data: &Data) -> bool {
    let (asked, answered) = (interest.name(), data.name());
    (asked.is_prefix_of(answered) || answered.is_prefix_of(asked)) && interest.matches(data)
}

/// The value of the field for an Interest with Data; `None` if the Interest is for these very Data.
fn value_of(data: &Bytes, interest: &Bytes) -> Option<Bytes> {
    let data = LpPacket::decode(data.clone()).ok()?.fragment?;
    let data = Data::decode(data).ok()?;
    let interest = Interest::decode(interest.clone()).ok()?;
    (!is_for(&interest, &data)).then(|| piggyback::encode(&interest, data.name()))
}

/// The link packet that carries Data, which `frame` does, and an Interest with it, which `whole` is already if it is there; `None` if it
/// takes more frames than `frame`.
fn bundled(face: &Face, (frame, whole): (&Bytes, Option<&Bytes>), value: &[u8]) -> Option<Bytes> {
    let (joint, body) = match (frame.first(), whole) {
        (_, Some(whole)) => (whole.clone(), frame.len()),
        (Some(&BARE_DATA), _) => (LpPacket::bundle(frame, value), frame.len()),
        _ => {
            let mut packet = LpPacket::decode(frame.clone()).ok()?;
            let body = packet.fragment.as_ref()?.len();
            packet.piggybacked_interest = Some(Bytes::copy_from_slice(value));
            (packet.encode(), body)
        }
    };
    let count = |whole: &Bytes| frame_count((&face.config, face.mtu()), whole.len(), body);
    (count(&joint)? <= count(frame)?).then_some(joint)
}
