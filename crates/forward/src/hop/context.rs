//! What a hop sees.

use core::any::Any;
use core::ops::Deref;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{ChunksHad, Data, HopLabel, Interest, Name, Nonce};
use namecast_units::{Instant, Random};

use super::actions::Faces;
use super::{Decision, StrategyChoices};
use crate::counters::FaceCounters;
use crate::face::FaceId;
use crate::fields::LinkFields;
use crate::link::LinkMeter;
use crate::name_hash::NameHashes;
use crate::table::pit::PendingInterest;
use crate::table::{EntryId, Face, NextHop, NextHops, Slot, Tables};

/// What happens at a node.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// Where the packet came from; [`FaceId::NONE`] where there is none.
    pub face: FaceId,
    /// Its name.
    pub name: &'a Name,
    /// What came in front of it, as far as the neighbour may say it.
    pub fields: &'a LinkFields,
    /// The Interest that arrived or came back.
    pub interest: Option<&'a Interest>,
    /// The Data that arrived, or that the content store has for the Interest.
    pub data: Option<&'a Data>,
    /// Why the Interest came back.
    pub nack: Option<NackReason>,
    /// The chunks of a flow that a neighbour has, which came without a packet.
    pub(crate) chunks_had: Option<&'a ChunksHad>,
    /// Whether the face that an Interest came from waits for an equal one already.
    pub is_retransmission: bool,
    /// The pending Interests that it is about: the one that waits, came back or expired, or those that the Data answer.
    pub entries: &'a [EntryId],
    pub(crate) hashes: &'a NameHashes,
    /// Of an Interest.
    pub(crate) next_hops: NextHops,
}

impl<'a> Event<'a> {
    /// About nothing but a name.
    #[inline(always)]
    pub(crate) fn about(
        name: &'a Name,
        hashes: &'a NameHashes,
        (face, fields): (FaceId, &'a LinkFields),
    ) -> Self {
        Self {
            face,
            name,
            fields,
            interest: None,
            data: None,
            nack: None,
            chunks_had: None,
            is_retransmission: false,
            entries: &[],
            hashes,
            next_hops: NextHops::new(),
        }
    }
}

/// What a hop sees: the [event](Event), what the node knows about it, and what the hop itself remembers.
#[derive(Debug)]
pub struct Context<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) tables: &'a mut Tables,
    pub(crate) choices: &'a StrategyChoices,
    pub(crate) random: &'a mut Random,
    /// What Interests carry, so that Data come back to this one of the node's forwarders.
    pub(crate) token: Option<&'a Bytes>,
    /// Whose states it gives.
    pub(crate) slot: Slot,
}

impl<'a> Deref for Context<'a> {
    type Target = Event<'a>;

    fn deref(&self) -> &Event<'a> {
        &self.event
    }
}

impl Context<'_> {
    /// Returns what the hop remembers of a face; a default where it remembers nothing. It ends with the face. `None` if there is
    /// no such face.
    pub fn face_state<T: Any + Send + Default>(&mut self, face: FaceId) -> Option<&mut T> {
        let face = self.tables.faces.get_mut(face)?;
        Some(face.states.get(self.slot))
    }

    /// Returns what the hop remembers of one of [`entries`](Event::entries); a default where it remembers nothing. It ends with
    /// the entry.
    pub fn entry_state<T: Any + Send + Default>(&mut self, entry: EntryId) -> &mut T {
        self.tables.pit.get_mut(entry).states.get(self.slot)
    }

    /// Returns the faces that wait for one of [`entries`](Event::entries), with the fields that their Interests came with.
    pub fn downstreams(&self, entry: EntryId) -> impl Iterator<Item = (FaceId, LinkFields)> {
        let records = self.tables.pit.get(entry).in_records.iter();
        records.map(|record| (record.face, record.fields.unpack()))
    }

    /// Returns the faces that one of [`entries`](Event::entries) was sent to, and when it was last.
    pub fn upstreams(&self, entry: EntryId) -> impl Iterator<Item = (FaceId, Instant)> {
        let records = self.tables.pit.get(entry).out_records.iter();
        records.map(|record| (record.face, record.sent_at))
    }

    /// Returns what the forwarder has seen of a face. Of several forwarders of a node each has seen its part.
    pub fn counters(&self, face: FaceId) -> Option<&FaceCounters> {
        self.tables.faces.get(face).map(|face| &face.counters)
    }

    /// Returns what the link of a face measures, if it has one: of all forwarders of the node together.
    pub fn meter(&self, face: FaceId) -> Option<&LinkMeter> {
        self.tables.faces.get(face)?.meter.as_deref()
    }

    /// Returns what this node calls a face in path labels: of 24 bits, and for who does not know the node's secret without meaning.
    pub fn label_of(&self, face: FaceId) -> HopLabel {
        let hash = self
            .tables
            .hasher
            .transmission(face.number(), Nonce(*b"path"));
        let [first, second, third, ..] = hash.to_le_bytes();
        [first, second, third]
    }

    /// Returns what packets that the hop originates carry as PIT token, so that what they bring comes back to this one of the node's
    /// forwarders; `None` where it is the only one.
    pub fn token(&self) -> Option<Bytes> {
        self.token.cloned()
    }

    /// Returns whether a neighbour counts requests for any next packets; `None` as long as that is unknown.
    pub fn keeps_counters(&self, face: FaceId) -> Option<bool> {
        let face = self.tables.faces.get(face);
        face.map_or(Some(false), Face::keeps_counters)
    }

    /// Returns numbers that look random, from the node's seed.
    pub const fn random(&mut self) -> &mut Random {
        self.random
    }

    /// The entry that an Interest is about.
    pub(crate) fn entry(&self) -> &PendingInterest {
        self.tables.pit.get(self.entries[0])
    }

    /// Returns the next hops that the Interest may take at all: cheapest first, but the one to avoid last.
    pub fn eligible_hops(&self) -> impl Iterator<Item = NextHop> + '_ {
        let avoid = self.fields.avoid_face;
        let hops = || self.next_hops.iter().copied();
        let is_avoided = move |hop: &NextHop| Some(hop.face) == avoid;
        let preferred = hops().filter(move |hop| !is_avoided(hop));
        let avoided = hops().filter(is_avoided);
        preferred
            .chain(avoided)
            .filter(|hop| self.is_eligible(hop.face))
    }

    /// Their faces.
    pub(crate) fn eligible(&self) -> impl Iterator<Item = FaceId> + '_ {
        self.eligible_hops().map(|hop| hop.face)
    }

    /// All other hosts that the Interest may go to, routes or not.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = FaceId> + '_ {
        let others = self
            .tables
            .faces
            .iter()
            .filter(|(_, face)| !face.is_local());
        others.map(|(id, _)| id).filter(|&id| self.is_eligible(id))
    }

    /// Returns whether the Interest may go to a face: not back to where it came from, unless the link is ad hoc, and not out of
    /// its scope.
    pub fn is_eligible(&self, egress: FaceId) -> bool {
        self.tables.is_eligible(self.name, self.face, egress)
    }

    /// Whether the Interest's HopLimit lets it go to a face.
    pub(crate) fn may_reach(&self, egress: FaceId) -> bool {
        let hop_limit = self.interest.and_then(Interest::hop_limit);
        hop_limit != Some(0) || self.tables.is_local(egress)
    }

    /// Whether an upstream may still answer, and for about as long as the downstream waits.
    pub(crate) fn is_awaited(&self, now: Instant) -> bool {
        let mut records = self.entry().out_records.iter();
        records.any(|record| record.nack.is_none() && record.lasts(now, self.expiry()))
    }

    /// When the downstream that asks waits no longer.
    fn expiry(&self) -> Instant {
        let entry = self.entry();
        let record = entry.in_record(self.face);
        record.map_or(entry.expiry, |record| record.expiry)
    }

    /// Whether no transmission to the face is still within its lifetime.
    pub(crate) fn is_unused(&self, now: Instant, face: FaceId) -> bool {
        let record = self.entry().out_record(face);
        record.is_none_or(|record| record.expiry <= now)
    }

    /// The eligible face whose latest transmission is the oldest.
    pub(crate) fn used_longest_ago(&self) -> Option<FaceId> {
        let entry = self.entry();
        let sent_at = |face: &FaceId| entry.out_record(*face).map(|record| record.sent_at);
        self.eligible().min_by_key(sent_at)
    }

    /// Whether it is too early for another transmission to the face, where each has a back-off of its own.
    pub(crate) fn is_held_back(&self, now: Instant, face: FaceId) -> bool {
        let record = self.entry().out_record(face);
        let expiry = self.expiry();
        record.is_some_and(|record| {
            record.lasts(now, expiry) && now.since(record.sent_at) < record.suppression
        })
    }

    /// Does `send` with those of `faces` whose back-off is over.
    pub(crate) fn all_due(
        &self,
        now: Instant,
        faces: impl Iterator<Item = FaceId>,
        send: fn(Faces) -> Decision,
    ) -> Decision {
        let (held, due): (Faces, Faces) = faces.partition(|&face| self.is_held_back(now, face));
        match (due.is_empty(), held.is_empty()) {
            (false, _) => send(due),
            (true, false) => Decision::Suppress,
            (true, true) => Decision::Wait,
        }
    }
}
