//! What a forwarder counts.

use core::{fmt, ops};

use derive_more::AddAssign;
use namecast_packet::lp::NackReason;
use namecast_units::{ByteSize, Histogram};

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Why a packet, or a piece of one, went no further.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DropReason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl DropReason {
            /// Every reason, in order of declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// A name for metrics and logs, in snake case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

drop_reasons! {
    /// The frame breaks NDNLPv2, or its packet the NDN packet format.
    Malformed = "malformed",
    /// The frame came in on, or was meant for, a face that is not there.
    UnknownFace = "unknown_face",
    /// The network packet is larger than NDN allows.
    PacketTooLarge = "packet_too_large",
    /// The name has more components than the configuration allows.
    NameTooLong = "name_too_long",
    /// A link header field came with a kind of packet that cannot carry it.
    MisplacedField = "misplaced_field",
    /// NextHopFaceId from a face that may not choose.
    LocalFieldsOff = "local_fields_off",
    /// Scope: `/localhost` crossed the host's border.
    Scope = "scope",
    /// HopLimit is used up.
    HopLimit = "hop_limit",
    /// The Interest was here before.
    Loop = "loop",
    /// The PIT was full: of the face that had most of it, the longest-waiting Interest gave way. Or it held as many names of one
    /// hash as it may.
    PitFull = "pit_full",
    /// The face has as many pending Interests as one face may have.
    FaceQuota = "face_quota",
    /// The face sends more Interests a second than it may.
    InterestRate = "interest_rate",
    /// No next hop for the Interest.
    NoRoute = "no_route",
    /// Data that nobody asked for.
    Unsolicited = "unsolicited",
    /// A Data packet's name holds an implicit digest, which only Interests may.
    DigestInDataName = "digest_in_data_name",
    /// A Nack that no Interest of ours explains, or on a face that carries none.
    UnexpectedNack = "unexpected_nack",
    /// The face's output queue is full.
    OutputQueueFull = "output_queue_full",
    /// The packet does not fit the face's MTU in the number of fragments allowed.
    CannotFragment = "cannot_fragment",
    /// A fragment contradicts earlier ones of its packet, or there are too many of them.
    BadFragment = "bad_fragment",
    /// A fragment arrived twice.
    DuplicateFragment = "duplicate_fragment",
    /// A packet's fragments did not all arrive in time.
    ReassemblyTimeout = "reassembly_timeout",
    /// A packet's fragments gave way to newer ones.
    ReassemblyFull = "reassembly_full",
    /// The peer did not acknowledge a fragment, however often it was sent.
    Unacknowledged = "unacknowledged",
    /// A request for any next packets of a flow was refused: [`AnyNextCounters`] says why.
    AnyNext = "any_next",
    /// A hop refused the packet, and gave no other reason.
    Hop = "hop",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many packets were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// Packets dropped for `reason`.
    pub const fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every reason with its count, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL
            .iter()
            .map(|&reason| (reason, self.get(reason)))
    }

    pub(crate) const fn add(&mut self, reason: DropReason) {
        self.add_many(reason, 1);
    }

    pub(crate) const fn add_many(&mut self, reason: DropReason, packets: u64) {
        self.0[reason as usize] += packets;
    }
}

impl ops::AddAssign for Drops {
    fn add_assign(&mut self, other: Self) {
        (self.0.iter_mut().zip(other.0)).for_each(|(sum, more)| *sum += more);
    }
}

/// Kinds of network packets, as link headers tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PacketKind {
    Interest,
    Data,
    /// An Interest that comes back.
    Nack(NackReason),
}

/// Packets that passed a face in one direction.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Interests.
    pub interests: u64,
    /// Data packets.
    pub data: u64,
    /// Nacks.
    pub nacks: u64,
    /// Frames, counting each fragment where the link's are added.
    pub frames: u64,
    /// Octets of all frames.
    pub octets: ByteSize,
}

impl Traffic {
    /// Counts one packet.
    pub(crate) const fn count(&mut self, kind: PacketKind) {
        match kind {
            PacketKind::Interest => self.interests += 1,
            PacketKind::Data => self.data += 1,
            PacketKind::Nack(_) => self.nacks += 1,
        }
    }
}

/// What one face's link reliability has done.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReliabilityCounters {
    /// Fragments that the peer acknowledged.
    pub acknowledged: u64,
    /// Frames sent again.
    pub retransmitted: u64,
    /// Frames sent to carry nothing but Acks.
    pub ack_frames: u64,
    /// Packets that were sent once and are no longer watched: the peer does not answer, or too many wait.
    pub unwatched: u64,
}

/// What one face has seen.
///
/// In an order in which what each packet counts lies together.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaceCounters {
    /// Received and decoded; packets that are dropped later count.
    pub incoming: Traffic,
    /// Interests from this face that Data satisfied while they were pending: ndnSIM's InSatisfiedInterests.
    ///
    /// Like the other three of its kind it counts records of pending Interests: several transmissions of one Interest count
    /// once, and what the content store answered does not count.
    pub satisfied_in: u64,
    /// Interests that were sent to this face and that Data satisfied, whichever face that came from:
    /// ndnSIM's OutSatisfiedInterests.
    pub satisfied_out: u64,
    /// Interests from this face whose time ran out: ndnSIM's InTimedOutInterests. What a Nack ended does not count.
    pub expired_in: u64,
    /// Handed to the output queue.
    pub outgoing: Traffic,
    /// Interests that were sent to this face and whose time ran out: ndnSIM's OutTimedOutInterests.
    pub expired_out: u64,
    /// Frames from the peer with neither packet nor acknowledgement, which only say that it is there.
    pub keep_alives: u64,
    /// Dropped on the way in or out.
    pub drops: Drops,
    /// Link reliability, if the face has it and the link's counters are added.
    pub reliability: ReliabilityCounters,
}

/// What the whole node has seen. It outlives its faces: removing one takes nothing away here.
///
/// In an order in which what each packet counts lies together.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Received on all faces.
    pub incoming: Traffic,
    /// Sent on all faces.
    pub outgoing: Traffic,
    /// Interests that the content store answered.
    pub content_store_hits: u64,
    /// Interests that it was asked about in vain.
    pub content_store_misses: u64,
    /// Pending Interests that Data satisfied.
    pub satisfied: u64,
    /// Pending Interests that expired or were refused.
    pub unsatisfied: u64,
    /// Pending Interests whose time ran out; part of the unsatisfied ones.
    pub expired: u64,
    /// Interests held back because an equal one is on its way.
    pub aggregated: u64,
    /// Data that nobody asked for and that were cached all the same.
    pub unsolicited_cached: u64,
    /// Routes made from prefix announcements; renewals do not count.
    pub routes_learned: u64,
    /// Prefix announcements that nothing was made of: malformed, expired, not signed by whom the configuration trusts, for
    /// another prefix than that of their Data, or one too many.
    pub announcements_refused: u64,
    /// Of these, those that came outside of the period in which they say that they are valid.
    pub announcements_out_of_period: u64,
    /// Rate feedback and path labels.
    pub feedback: FeedbackCounters,
    /// Bundles.
    pub bundles: BundleCounters,
    /// Requests for any next packets.
    pub any_next: AnyNextCounters,
    /// Dropped anywhere.
    pub drops: Drops,
    /// Data retrieval delay: from the time a pending Interest was sent, first or again, to its Data, where it was sent to one face.
    pub retrieval: Histogram,
}

/// What hops have made of the link header fields that tell consumers about paths.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackCounters {
    /// Data from the content store that were sent with a rate.
    pub rate_tags_set: u64,
    /// Rates, hop counts and sources of neighbours that make no sense, and went no further.
    pub refused: u64,
    /// Data that were not measured, since the neighbour had as many flows as it may.
    pub flows_refused: u64,
    /// Interests that were sent to the next hop that their label names.
    pub labels_followed: u64,
    /// Labels that were none, too long, or named no next hop of their Interest, which the strategy then chose.
    pub labels_refused: u64,
    /// Interests with labels that waited for another's Data.
    pub labels_aggregated: u64,
    /// Interests that were sent to one next hop after the other, to find paths.
    pub discoveries: u64,
    /// Interests that were to find a path and were answered from the content store, since too many came.
    pub discoveries_refused: u64,
}

/// Counters of requests for any next packets.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnyNextCounters {
    /// Requests counted.
    pub requests: u64,
    /// Requests sent upstream.
    pub sent: u64,
    /// Data that came for such requests.
    pub data: u64,
    /// Copies of them that were sent.
    pub copies: u64,
    /// Data whose number came late or twice, so that nothing was counted.
    pub late: u64,
    /// Requests refused, as they break the format or have what such a request cannot have.
    pub refused_malformed: u64,
    /// Requests refused, as the neighbour did not say that it counts requests.
    pub refused_unoffered: u64,
    /// Requests refused, as face or node had as many flows as it may.
    pub refused_flows: u64,
    /// Requests refused, as no next hop leads to the flow.
    pub refused_route: u64,
    /// Requests refused, as the next hop counts none.
    pub refused_foreign: u64,
    /// Announcements of chunks that neighbours have.
    pub announcements: u64,
    /// Announcements refused, as the neighbour did not say that it counts requests, or there is no room.
    pub refused_announcements: u64,
    /// Interests that were sent to a neighbour as it announced the chunk.
    pub to_holders: u64,
}

impl AnyNextCounters {
    /// Every count with its name for metrics, in snake case; zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("requests", self.requests),
            ("sent", self.sent),
            ("data", self.data),
            ("copies", self.copies),
            ("late", self.late),
            ("refused_malformed", self.refused_malformed),
            ("refused_unoffered", self.refused_unoffered),
            ("refused_flows", self.refused_flows),
            ("refused_route", self.refused_route),
            ("refused_foreign", self.refused_foreign),
            ("announcements", self.announcements),
            ("refused_announcements", self.refused_announcements),
            ("to_holders", self.to_holders),
        ]
        .into_iter()
    }
}

/// What became of bundles: Data and an Interest in one packet.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounters {
    /// Data that came with an Interest.
    pub received: u64,
    /// Bundles that were sent.
    pub sent: u64,
    /// Of these, made of two packets of an application.
    pub joined: u64,
    /// Interests that were sent where the Data went, as others of their flow before: without a look-up in the FIB.
    pub followed: u64,
    /// Interests that were sent where the Data went, as the FIB had it.
    pub looked_up: u64,
    /// Sent apart, as the face takes no bundles.
    pub split_neighbour: u64,
    /// Sent apart, as together they would have taken more frames than the Data.
    pub split_size: u64,
    /// Sent apart, as the Interest had a field of its own, or was signed with the Data and had to be changed.
    pub split_fields: u64,
    /// Interests that were treated as others, since nobody had requested the Data that they came with.
    pub plain_unsolicited: u64,
    /// Interests that were treated as others, since nobody who had requested the Data is a next hop of their name.
    pub plain_route: u64,
    /// Interests that were refused, as they break the format.
    pub refused_malformed: u64,
    /// Interests that were refused, as they came from a neighbour with which nothing was agreed, or to a node without bundles.
    pub refused_unannounced: u64,
    /// Interests that were refused, as they came in front of something other than Data.
    pub refused_misplaced: u64,
    /// Interests that were refused, as they were for the very Data that they came with.
    pub refused_own_data: u64,
}

impl BundleCounters {
    /// Every count with its name for metrics, in snake case; zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("received", self.received),
            ("sent", self.sent),
            ("joined", self.joined),
            ("followed", self.followed),
            ("looked_up", self.looked_up),
            ("split_neighbour", self.split_neighbour),
            ("split_size", self.split_size),
            ("split_fields", self.split_fields),
            ("plain_unsolicited", self.plain_unsolicited),
            ("plain_route", self.plain_route),
            ("refused_malformed", self.refused_malformed),
            ("refused_unannounced", self.refused_unannounced),
            ("refused_misplaced", self.refused_misplaced),
            ("refused_own_data", self.refused_own_data),
        ]
        .into_iter()
    }
}

/// What became of the Interests that one choice of a strategy decided on.
///
/// Interests that the content store answered, and those whose sender chose the face itself, reach no strategy.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrategyCounters {
    /// Interests that it was asked about, retransmissions included.
    pub interests: u64,
    /// Of these, sent although the same had been sent before and was still pending.
    pub retransmissions: u64,
    /// Of these, held back since the same was on its way.
    pub suppressed: u64,
    /// Of these, refused since no next hop would do.
    pub rejected: u64,
    /// Pending Interests that Data satisfied; those of several faces for one name count once.
    pub satisfied: u64,
    /// Pending Interests whose time ran out.
    pub timeouts: u64,
    /// Nacks from next hops.
    pub nacks: u64,
}
