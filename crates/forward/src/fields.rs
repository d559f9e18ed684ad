//! Link fields: what neighbours tell each other about one packet, and how far each of it goes.
//!
//! ```text
//!  field             from                  kept for        goes on with
//!  PIT token         any face              the entry       the answer: Data, cached Data, Nack
//!  congestion mark   any face              hops            Interest and Data, as a count; not with cached Data
//!  NonDiscovery      any face              the entry       the Interest, to other hosts
//!  announcement      any face              –               the Data, to other hosts that look for a route
//!  next hop, avoided local, trusted face   hops            –
//!  incoming face     the node itself       –               all but Nacks, to trusted local faces
//!  cache policy      any face              –               –
//!  extensions        who speaks them       hops            nothing, unless a hop sets them; who may speak them is asked
//!  bundled Interest  the same              –               Data, if a face takes bundles
//!  path label        the same              the entry       the same; with Data, only if the Interest had one
//! ```
//!
//! Everything about that stands here; the pipelines say which case it is.

use std::borrow::Cow;

use bytes::Bytes;
use namecast_packet::{Extensions, LpPacket, MAX_PACKET_SIZE};
use smallvec::SmallVec;

use crate::counters::{DropReason, PacketKind};
use crate::face::{FaceConfig, FaceId};
use crate::link::{LinkMeter, Offers, QUESTION, mtu_of};

/// The hop-by-hop fields of one packet: what a neighbour says about it, and what the next one is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFields {
    /// Octets that the neighbour wants back with the answer.
    pub pit_token: Option<Bytes>,
    /// Congestion on the path so far; 0 is none.
    pub congestion_mark: u64,
    /// Face that the packet came in on.
    pub incoming_face: Option<FaceId>,
    /// Face that an application wants the Interest to be sent to.
    pub next_hop_face: Option<FaceId>,
    /// Face that an application had a bad answer from: the last to try.
    pub avoid_face: Option<FaceId>,
    /// Whether nobody may look for a route for the Interest.
    pub non_discovery: bool,
    /// Whether the Data must stay out of content stores.
    pub no_cache: bool,
    /// A Data packet that announces a route to who made the Data.
    pub prefix_announcement: Option<Bytes>,
    /// Fields outside of NDNLPv2.
    pub extensions: Extensions,
}

/// What a neighbour hears of the extension fields of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeardExtensions {
    /// The fields themselves.
    pub(crate) fields: bool,
    /// Whether it is asked if it speaks them.
    pub(crate) question: bool,
    /// Offers of this node, which go with the question.
    pub(crate) offers: Offers,
}

/// No fields.
static NOTHING: LinkFields = LinkFields {
    pit_token: None,
    congestion_mark: 0,
    incoming_face: None,
    next_hop_face: None,
    avoid_face: None,
    non_discovery: false,
    no_cache: false,
    prefix_announcement: None,
    extensions: Extensions::NONE,
};

/// Fields to be sent; of most packets there are none, which then cost nothing to make and to move.
pub(crate) type Said = Cow<'static, LinkFields>;

impl From<LpPacket> for LinkFields {
    fn from(packet: LpPacket) -> Self {
        Self {
            pit_token: packet.pit_token,
            congestion_mark: packet.congestion_mark,
            incoming_face: packet.incoming_face.map(FaceId::from_number),
            next_hop_face: packet.next_hop_face.map(FaceId::from_number),
            avoid_face: packet.avoid_face.map(FaceId::from_number),
            non_discovery: packet.non_discovery,
            no_cache: packet.no_cache,
            prefix_announcement: packet.prefix_announcement,
            extensions: packet.extensions,
        }
    }
}

impl LinkFields {
    /// Returns the fields of a packet that a face may set; the others are as if they had not come.
    ///
    /// # Errors
    /// If one makes no sense with the kind of packet, or chooses a face and may not: NFD's rules.
    pub(crate) fn received(
        packet: LpPacket,
        kind: PacketKind,
        face: &FaceConfig,
        speaks_extensions: bool,
    ) -> Result<Self, DropReason> {
        let mut fields = Self::from(packet);
        let is_for_interests = fields.next_hop_face.is_some() || fields.non_discovery;
        let is_for_data = fields.no_cache || fields.prefix_announcement.is_some();
        let is_misplaced = match kind {
            PacketKind::Interest => is_for_data,
            PacketKind::Data => is_for_interests,
            PacketKind::Nack(_) => is_for_data || is_for_interests,
        };
        if is_misplaced {
            return Err(DropReason::MisplacedField);
        }
        let is_trusted = face.has_local_fields();
        if fields.next_hop_face.is_some() && !is_trusted {
            return Err(DropReason::LocalFieldsOff);
        }
        fields.incoming_face = None;
        fields.avoid_face = fields.avoid_face.filter(|_| is_trusted);
        if !speaks_extensions {
            fields.extensions = Extensions::NONE;
        }
        Ok(fields)
    }

    /// Returns what an Interest with these fields goes on with. `token` brings its answer back.
    #[inline]
    pub(crate) fn for_next_hop(&self, token: Option<&Bytes>, non_discovery: bool) -> Said {
        if token.is_none() && self.congestion_mark == 0 && !non_discovery {
            return Self::none();
        }
        Cow::Owned(Self {
            pit_token: token.cloned(),
            congestion_mark: self.congestion_mark,
            non_discovery,
            ..Self::default()
        })
    }

    /// Returns what Data with these fields goes on with to one who waits. `announcement` is what this node makes of the one that
    /// came.
    pub(crate) fn for_downstream(&self, kept: &KeptFields, announcement: Option<&Bytes>) -> Said {
        if kept.pit_token().is_empty() && self.congestion_mark == 0 && announcement.is_none() {
            return Self::none();
        }
        Cow::Owned(Self {
            pit_token: kept.token_to_send(),
            congestion_mark: self.congestion_mark,
            prefix_announcement: announcement.cloned(),
            ..Self::default()
        })
    }

    /// Returns what cached Data answers an Interest with that has these fields: the congestion of the past is over.
    pub(crate) fn for_answer_from_cache(&self, announcement: Option<&Bytes>) -> Said {
        if self.pit_token.is_none() && announcement.is_none() {
            return Self::none();
        }
        Cow::Owned(Self {
            pit_token: self.pit_token.clone(),
            prefix_announcement: announcement.cloned(),
            ..Self::default()
        })
    }

    /// Returns what an Interest comes back with that was refused and wanted `token` with its answer.
    pub(crate) fn for_nack(token: Option<Bytes>) -> Said {
        Cow::Owned(Self {
            pit_token: token,
            ..Self::default()
        })
    }

    /// No fields.
    #[inline]
    pub(crate) const fn none() -> Said {
        Cow::Borrowed(&NOTHING)
    }

    /// Returns a packet as it goes to a face, with what may be said to that, and the extension fields that hops have set.
    #[inline]
    pub(crate) fn frame(
        (said, hops): (Said, &Extensions),
        (kind, from): (PacketKind, FaceId),
        ((face, meter), heard): ((&FaceConfig, Option<&LinkMeter>), HeardExtensions),
        wire: Bytes,
    ) -> Bytes {
        let is_bare = matches!(said, Cow::Borrowed(_)) && !matches!(kind, PacketKind::Nack(_));
        if is_bare && !face.has_local_fields() && !heard.question {
            return match heard.fields {
                true => LpPacket::wrapped(wire, hops),
                false => wire,
            };
        }
        let mut fields = said.into_owned();
        if fields.extensions.is_empty() {
            fields.extensions = hops.clone();
        }
        fields.address(kind, from, (face, meter), wire.len());
        fields.address_extensions(heard);
        let mut packet = fields.into_packet(kind, Some(wire));
        if heard.question {
            heard.offers.tell(&mut packet);
        }
        packet.encode()
    }

    /// Leaves what may be said to a face, and adds what is the face's to know: where the packet came `from`.
    /// `octets` is how long the packet is.
    fn address(
        &mut self,
        kind: PacketKind,
        from: FaceId,
        (face, meter): (&FaceConfig, Option<&LinkMeter>),
        octets: usize,
    ) {
        let announcement = self.prefix_announcement.as_ref();
        let fits = |it: &Bytes| takes_announcement((face, meter), it.len(), octets);
        if announcement.is_some_and(|it| !fits(it)) {
            self.prefix_announcement = None;
        }
        // Applications look for no routes.
        self.non_discovery &= !face.is_local();
        if face.has_local_fields() && !matches!(kind, PacketKind::Nack(_)) {
            self.incoming_face = Some(from);
        }
    }

    fn address_extensions(&mut self, heard: HeardExtensions) {
        if !heard.fields {
            self.extensions = Extensions::NONE;
        }
        if heard.question {
            self.extensions.set_number(Extensions::SUPPORT, QUESTION);
        }
    }

    /// Returns the link packet that says this about a network packet.
    pub(crate) fn into_packet(self, kind: PacketKind, wire: Option<Bytes>) -> LpPacket {
        LpPacket {
            nack: match kind {
                PacketKind::Nack(reason) => Some(reason),
                PacketKind::Interest | PacketKind::Data => None,
            },
            pit_token: self.pit_token,
            congestion_mark: self.congestion_mark,
            incoming_face: self.incoming_face.map(FaceId::number),
            next_hop_face: self.next_hop_face.map(FaceId::number),
            avoid_face: self.avoid_face.map(FaceId::number),
            non_discovery: self.non_discovery,
            no_cache: self.no_cache,
            prefix_announcement: self.prefix_announcement,
            extensions: self.extensions,
            fragment: wire,
            ..LpPacket::default()
        }
    }
}

/// Octets that a frame may have beside an announcement and what it carries: LpPacket, PitToken, CongestionMark, the numbers of
/// fragments and transmissions, and types and lengths.
const ANNOUNCEMENT_OVERHEAD: usize = 120;

/// Whether an announcement goes with Data to a face: to other hosts, if both fit the largest frame that peers read, and
/// the announcement a fragment, as Data must not get lost for what only helps to find more.
fn takes_announcement(
    (face, meter): (&FaceConfig, Option<&LinkMeter>),
    announcement: usize,
    data: usize,
) -> bool {
    let size = announcement + ANNOUNCEMENT_OVERHEAD;
    !face.is_local() && size <= mtu_of(face, meter) && size + data <= MAX_PACKET_SIZE
}

/// The fields of an Interest that its record in the PIT keeps, packed: absent ones take no octet.
///
/// ```text
///  NonDiscovery, with a path, length of the PIT token │ PIT token │ what else there is, as a link packet
/// ```
#[derive(Debug, Default)]
pub(crate) struct KeptFields(SmallVec<[u8; 16]>);

impl Clone for KeptFields {
    #[inline]
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

/// Most octets that a record keeps of fields other than token and NonDiscovery. Beyond, extension fields are forgotten.
const MAX_KEPT: usize = 256;
/// In the first octet: NonDiscovery, and that there is a path label. The rest is the length of the token, which has 32 octets at most.
const NON_DISCOVERY: u8 = 0x80;
const ASKS_FOR_PATH: u8 = 0x40;

impl KeptFields {
    pub(crate) fn new(fields: &LinkFields) -> Self {
        let token = fields.pit_token.as_deref().unwrap_or_default();
        let has_more = fields.congestion_mark > 0
            || fields.next_hop_face.is_some()
            || fields.avoid_face.is_some()
            || !fields.extensions.is_empty();
        let mut octets = SmallVec::new();
        if !token.is_empty() || fields.non_discovery || has_more {
            let asks_for_path = fields.extensions.get(Extensions::PATH_LABEL).is_some();
            let flag = |is_set, flag| if is_set { flag } else { 0 };
            let flags =
                flag(fields.non_discovery, NON_DISCOVERY) | flag(asks_for_path, ASKS_FOR_PATH);
            octets.push(flags | token.len() as u8);
            octets.extend_from_slice(token);
        }
        if has_more {
            octets.extend_from_slice(&others(fields));
        }
        Self(octets)
    }

    /// The octets that the downstream wants back; empty if it wants none.
    pub(crate) fn pit_token(&self) -> &[u8] {
        match *self.0 {
            [first, ref rest @ ..] => {
                &rest[..usize::from(first & !(NON_DISCOVERY | ASKS_FOR_PATH))]
            }
            [] => &[],
        }
    }

    /// The same, to be sent.
    pub(crate) fn token_to_send(&self) -> Option<Bytes> {
        let token = self.pit_token();
        (!token.is_empty()).then(|| Bytes::copy_from_slice(token))
    }

    pub(crate) fn non_discovery(&self) -> bool {
        self.has(NON_DISCOVERY)
    }

    /// Whether the downstream is to hear which way Data came.
    pub(crate) fn asks_for_path(&self) -> bool {
        self.has(ASKS_FOR_PATH)
    }

    fn has(&self, flag: u8) -> bool {
        self.0.first().is_some_and(|first| first & flag != 0)
    }

    /// All fields that were kept.
    pub(crate) fn unpack(&self) -> LinkFields {
        let others = self.0.get(1 + self.pit_token().len()..).unwrap_or_default();
        let packet = match others {
            [] => LpPacket::default(),
            _ => LpPacket::decode(Bytes::copy_from_slice(others)).expect("as it was packed"),
        };
        LinkFields {
            pit_token: self.token_to_send(),
            non_discovery: self.non_discovery(),
            ..packet.into()
        }
    }

    /// Octets that do not fit into the record itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity()
        } else {
            0
        }
    }
}

/// Fields other than token and NonDiscovery, encoded.
fn others(fields: &LinkFields) -> Bytes {
    let with = |extensions: &Extensions| {
        let fields = LinkFields {
            congestion_mark: fields.congestion_mark,
            next_hop_face: fields.next_hop_face,
            avoid_face: fields.avoid_face,
            extensions: extensions.clone(),
            ..LinkFields::default()
        };
        fields.into_packet(PacketKind::Interest, None).encode()
    };
    let whole = with(&fields.extensions);
    match whole.len() <= MAX_KEPT {
        true => whole,
        false => with(&Extensions::default()),
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::lp::NackReason;

    use super::*;
    use crate::face::Scope;

    fn full() -> LinkFields {
        let mut extensions = Extensions::default();
        extensions.set_number(Extensions::HOP_COUNT, 3);
        LinkFields {
            pit_token: Some(Bytes::from_static(&[7; 32])),
            congestion_mark: 2,
            next_hop_face: Some(FaceId::from_number(300)),
            avoid_face: Some(FaceId::from_number(301)),
            non_discovery: true,
            extensions,
            ..LinkFields::default()
        }
    }

    fn trusted() -> FaceConfig {
        FaceConfig {
            local_fields: true,
            ..FaceConfig::application("")
        }
    }

    #[test]
    fn a_record_keeps_what_there_is_and_no_octet_more() {
        let only = |change: fn(&mut LinkFields)| {
            let mut fields = LinkFields::default();
            change(&mut fields);
            let kept = KeptFields::new(&fields);
            assert_eq!(kept.unpack(), fields);
            kept.0.len()
        };
        assert_eq!(only(|_| {}), 0);
        assert_eq!(only(|fields| fields.non_discovery = true), 1);
        assert_eq!(
            only(|fields| fields.pit_token = Some(Bytes::from_static(&[9; 6]))),
            7
        );
        // One octet of flags, two of LpPacket, and type (3), length and value of CongestionMark.
        assert_eq!(only(|fields| fields.congestion_mark = 1), 8);
        let kept = KeptFields::new(&full());
        assert_eq!(kept.unpack(), full());
        assert_eq!((kept.pit_token().len(), kept.non_discovery()), (32, true));
    }

    #[test]
    fn a_record_forgets_extensions_that_are_long() {
        let mut fields = full();
        fields
            .extensions
            .set(Extensions::PATH_LABEL, vec![1; MAX_KEPT]);
        let kept = KeptFields::new(&fields);
        assert!(kept.heap_bytes() < 2 * MAX_KEPT);
        fields.extensions = Extensions::default();
        assert_eq!(kept.unpack(), fields);
    }

    /// Each neighbour by what it may say, and to whom it is said.
    #[test]
    fn faces_say_and_hear_what_they_may() {
        let packet = || full().into_packet(PacketKind::Interest, None);
        let received = |kind, face: &FaceConfig| LinkFields::received(packet(), kind, face, true);
        assert_eq!(received(PacketKind::Interest, &trusted()), Ok(full()));
        assert_eq!(
            received(PacketKind::Data, &trusted()),
            Err(DropReason::MisplacedField)
        );
        let stranger = FaceConfig::default();
        assert_eq!(
            received(PacketKind::Interest, &stranger),
            Err(DropReason::LocalFieldsOff)
        );
        let packet = LinkFields {
            next_hop_face: None,
            ..full()
        }
        .into_packet(PacketKind::Interest, None);
        let heard =
            LinkFields::received(packet, PacketKind::Interest, &stranger, false).expect("allowed");
        assert!(heard.extensions.is_empty() && heard.avoid_face.is_none() && heard.non_discovery);

        let from = FaceId::from_number(256);
        let told = |face: &FaceConfig, kind| {
            let mut fields = full();
            fields.address(kind, from, (face, None), 100);
            (fields.incoming_face, fields.non_discovery)
        };
        assert_eq!(told(&trusted(), PacketKind::Data), (Some(from), false));
        assert_eq!(
            told(&trusted(), PacketKind::Nack(NackReason::None)),
            (None, false)
        );
        assert_eq!(told(&stranger, PacketKind::Data), (None, true));
        let remote = FaceConfig {
            scope: Scope::NonLocal,
            ..trusted()
        };
        assert_eq!(told(&remote, PacketKind::Data), (None, true));

        let heard = |fields, question| {
            let mut said = full();
            said.address_extensions(HeardExtensions {
                fields,
                question,
                offers: Offers::NONE,
            });
            let numbers = said.extensions.iter().map(|(number, _)| number);
            numbers.collect::<Vec<_>>()
        };
        let (count, support) = (Extensions::HOP_COUNT, Extensions::SUPPORT);
        assert_eq!(heard(false, false), []);
        assert_eq!(heard(false, true), [support]);
        assert_eq!(heard(true, false), [count]);
        assert_eq!(heard(true, true), [count, support]);
    }

    #[test]
    fn cached_data_brings_no_congestion_of_the_past() {
        let asked = full();
        let answer = asked.for_answer_from_cache(None);
        assert_eq!(
            (answer.congestion_mark, answer.pit_token.clone()),
            (0, asked.pit_token.clone())
        );
        let passed = asked.for_downstream(&KeptFields::default(), None);
        assert_eq!(
            (passed.congestion_mark, passed.pit_token.clone()),
            (2, None)
        );
        let sent = asked.for_next_hop(None, true);
        assert_eq!(
            (sent.congestion_mark, sent.next_hop_face, sent.avoid_face),
            (2, None, None)
        );
    }
}
