//! NDNLPv2 link packets: what neighbours tell each other about the packet they hand over.

use bytes::Bytes;

use crate::error::{DecodeError, Problem};
use crate::extensions::Extensions;
use crate::tlv::{self, Element, Reader, Writer};

/// LpPacket.
pub const LP_PACKET: u32 = 100;
/// A network packet, or a piece of one.
pub const FRAGMENT: u32 = 80;
const SEQUENCE: u32 = 81;
const FRAGMENT_INDEX: u32 = 82;
/// FragCount.
pub const FRAGMENT_COUNT: u32 = 83;
/// PitToken.
pub const PIT_TOKEN: u32 = 98;
const NACK: u32 = 800;
const NACK_REASON: u32 = 801;
const INCOMING_FACE_ID: u32 = 812;
const NEXT_HOP_FACE_ID: u32 = 816;
const CACHE_POLICY: u32 = 820;
const CACHE_POLICY_TYPE: u32 = 821;
const CONGESTION_MARK: u32 = 832;
/// Ack.
pub const ACK: u32 = 836;
/// TxSequence.
pub const TX_SEQUENCE: u32 = 840;
const NON_DISCOVERY: u32 = 844;
const PREFIX_ANNOUNCEMENT: u32 = 848;
/// Ours, from the range that others skip.
const PIGGYBACKED_INTEREST: u32 = Extensions::PIGGYBACKED_INTEREST;
const AVOID_FACE_ID: u32 = Extensions::AVOID_FACE_ID;
/// CachePolicyType that keeps Data out of content stores.
const NO_CACHE: u64 = 1;
/// Longest PIT token, in octets.
const MAX_PIT_TOKEN: usize = 32;

/// Why an Interest came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NackReason {
    /// None was given.
    None,
    /// The link is congested.
    Congestion,
    /// The node has seen this Nonce before.
    Duplicate,
    /// The node knows no way to the name.
    NoRoute,
    /// A number this implementation does not know.
    Other(u64),
}

impl NackReason {
    /// Returns the assigned number.
    pub const fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Congestion => 50,
            Self::Duplicate => 100,
            Self::NoRoute => 150,
            Self::Other(number) => number,
        }
    }
}

impl From<u64> for NackReason {
    fn from(number: u64) -> Self {
        match number {
            0 => Self::None,
            50 => Self::Congestion,
            100 => Self::Duplicate,
            150 => Self::NoRoute,
            other => Self::Other(other),
        }
    }
}

/// A link-layer packet: header fields and a network packet, or a piece of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LpPacket {
    /// Number of this link packet, consecutive per link.
    pub sequence: Option<u64>,
    /// Which piece of the network packet this is.
    pub fragment_index: u64,
    /// Into how many pieces the network packet was cut; `None` is one.
    pub fragment_count: Option<u64>,
    /// Octets to return unchanged with the answer.
    pub pit_token: Option<Bytes>,
    /// Set if the fragment is an Interest that comes back.
    pub nack: Option<NackReason>,
    /// Face the packet came in on, for local applications.
    pub incoming_face: Option<u64>,
    /// Face to send the Interest to, from local applications.
    pub next_hop_face: Option<u64>,
    /// Whether the Data must stay out of content stores.
    pub no_cache: bool,
    /// Congestion on the path so far; 0 is none.
    pub congestion_mark: u64,
    /// Link packets that arrived, by their TxSequence.
    pub acks: Vec<u64>,
    /// Number of this transmission, for acknowledgement.
    pub tx_sequence: Option<u64>,
    /// Whether the Interest must not be flooded to find a route.
    pub non_discovery: bool,
    /// A Data packet that announces a prefix.
    pub prefix_announcement: Option<Bytes>,
    /// Face that gave a bad answer, for which others come first: from local applications, and ours alone.
    pub avoid_face: Option<u64>,
    /// An Interest that travels with the Data, as [`piggyback`](crate::piggyback) encodes it; ours alone.
    pub piggybacked_interest: Option<Bytes>,
    /// Fields outside of NDNLPv2, which others ignore.
    pub extensions: Extensions,
    /// The network packet, or the piece of it. None: the packet carries only header fields.
    pub fragment: Option<Bytes>,
}

/// Octets of a header that need no second allocation, extension fields apart.
const USUAL_HEADER: usize = 64;

impl LpPacket {
    /// A link packet that carries `packet` whole.
    pub fn carrying(packet: Bytes) -> Self {
        Self {
            fragment: Some(packet),
            ..Self::default()
        }
    }

    /// Returns the frame that carries `packet` whole, with these extension fields and no others; the packet itself if there are none.
    pub fn wrapped(packet: Bytes, extensions: &Extensions) -> Bytes {
        if extensions.is_empty() {
            return packet;
        }
        let fields = extensions.elements();
        let length = fields.len() + tlv::element_size(FRAGMENT, packet.len());
        let mut wire = Vec::with_capacity(tlv::element_size(LP_PACKET, length));
        push_header(&mut wire, LP_PACKET, length);
        wire.extend_from_slice(fields);
        push_header(&mut wire, FRAGMENT, packet.len());
        wire.extend_from_slice(&packet);
        wire.into()
    }

    /// Returns the frame that carries Data whole, and an Interest that travels with it as [`piggyback`](crate::piggyback) encodes it.
    pub fn bundle(data: &[u8], interest: &[u8]) -> Bytes {
        let length = tlv::element_size(PIGGYBACKED_INTEREST, interest.len())
            + tlv::element_size(FRAGMENT, data.len());
        let mut wire = Writer::with_capacity(tlv::element_size(LP_PACKET, length));
        wire.header(LP_PACKET, length)
            .element(PIGGYBACKED_INTEREST, interest)
            .element(FRAGMENT, data);
        wire.finish()
    }

    /// Returns the Interest and the Data of a frame with nothing else in it, as [`bundle`](Self::bundle) makes them; `None` for others, which are
    /// for [`decode`](Self::decode).
    pub fn split_bundle(frame: &Bytes) -> Option<(Bytes, Bytes)> {
        let whole = Reader::new(frame).only("LpPacket", LP_PACKET).ok()?;
        let mut reader = Reader::within(frame, whole.value);
        let interest = reader.element("LpPacket").ok()??;
        let data = reader.element("LpPacket").ok()??;
        let is_bundle = interest.element_type == PIGGYBACKED_INTEREST
            && data.element_type == FRAGMENT
            && reader.is_empty()
            && frame[data.value.clone()].first() == Some(&(tlv::DATA as u8));
        is_bundle.then(|| (frame.slice(interest.value), frame.slice(data.value)))
    }

    /// Returns the frame with a congestion mark, if it carries a packet that has none yet.
    pub fn marked(frame: Bytes) -> Bytes {
        match Self::decode(frame.clone()) {
            Ok(packet) if packet.congestion_mark == 0 && packet.fragment.is_some() => Self {
                congestion_mark: 1,
                ..packet
            }
            .encode(),
            _ => frame,
        }
    }

    /// Decodes what a link delivered: an LpPacket, or a bare Interest or Data.
    ///
    /// Unknown header fields of types 800 to 851 that are multiples of four are skipped, higher ones up to 959 are
    /// [extensions](Self::extensions); any other refuses the packet.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset.
    pub fn decode(wire: Bytes) -> Result<Self, DecodeError> {
        let reader = Reader::new(&wire);
        match reader.peek_type("packet")? {
            LP_PACKET => {}
            bare @ (tlv::INTEREST | tlv::DATA) => {
                reader.only("packet", bare)?;
                return Ok(Self::carrying(wire));
            }
            other => {
                return Err(DecodeError::new(
                    "packet",
                    0,
                    Problem::UnexpectedType(other),
                ));
            }
        }
        let whole = reader.only("LpPacket", LP_PACKET)?;
        let mut packet = Self::default();
        let (mut last, mut index_at) = (0, wire.len());
        let mut reader = Reader::within(&wire, whole.value);
        while let Some(field) = reader.element("LpPacket")? {
            let out_of_order = packet.fragment.is_some()
                || field.element_type != FRAGMENT && field.element_type < last
                || field.element_type == last && last != ACK;
            if out_of_order {
                return Err(field.error("LpPacket", Problem::Critical(field.element_type)));
            }
            packet.decode_field(&wire, &field)?;
            last = field.element_type;
            if last == FRAGMENT_INDEX {
                index_at = field.start;
            }
        }
        packet.check_fragmentation(&wire, index_at)?;
        packet.check_nack(&wire)?;
        Ok(packet)
    }

    fn decode_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        let fixed = |name| field.array(name, wire).map(u64::from_be_bytes);
        match field.element_type {
            FRAGMENT if field.value.is_empty() => {
                return Err(field.error("Fragment", Problem::BadLength(0)));
            }
            FRAGMENT => self.fragment = Some(wire.slice(field.value.clone())),
            SEQUENCE => self.sequence = Some(fixed("Sequence")?),
            FRAGMENT_INDEX => self.fragment_index = field.number("FragIndex", wire)?,
            FRAGMENT_COUNT => self.fragment_count = Some(field.number("FragCount", wire)?),
            PIT_TOKEN => match field.value.len() {
                1..=MAX_PIT_TOKEN => self.pit_token = Some(wire.slice(field.value.clone())),
                length => return Err(field.error("PitToken", Problem::BadLength(length))),
            },
            NACK => self.nack = Some(decode_nack(wire, field)?),
            INCOMING_FACE_ID => self.incoming_face = Some(field.number("IncomingFaceId", wire)?),
            NEXT_HOP_FACE_ID => self.next_hop_face = Some(field.number("NextHopFaceId", wire)?),
            CACHE_POLICY => self.no_cache = decode_cache_policy(wire, field)? == NO_CACHE,
            CONGESTION_MARK => self.congestion_mark = field.number("CongestionMark", wire)?,
            ACK => self.acks.push(fixed("Ack")?),
            TX_SEQUENCE => self.tx_sequence = Some(fixed("TxSequence")?),
            NON_DISCOVERY => {
                field.flag("NonDiscovery")?;
                self.non_discovery = true;
            }
            PREFIX_ANNOUNCEMENT => self.prefix_announcement = Some(wire.slice(field.value.clone())),
            // Somebody else may use the number for something else, so nothing here is an error.
            PIGGYBACKED_INTEREST => {
                self.piggybacked_interest = Some(wire.slice(field.value.clone()));
            }
            AVOID_FACE_ID => self.avoid_face = tlv::read_number(&wire[field.value.clone()]),
            other if Extensions::has_number(other) => {
                self.extensions.push(&wire[field.whole()]);
            }
            other if is_skippable(other) => {}
            other => return Err(field.error("LpPacket", Problem::Critical(other))),
        }
        Ok(())
    }

    /// `index_at` is where FragIndex stands.
    fn check_fragmentation(&self, wire: &Bytes, index_at: usize) -> Result<(), DecodeError> {
        let count = self.fragment_count.unwrap_or(1);
        if self.fragment_index >= count {
            return Err(DecodeError::new(
                "FragIndex",
                index_at,
                Problem::ValueOutOfRange,
            ));
        }
        if count > 1 && self.sequence.is_none() {
            return Err(DecodeError::new("Sequence", wire.len(), Problem::Missing));
        }
        Ok(())
    }

    /// Only Interests come back: a Nack in front of Data is refused. What a later piece belongs to cannot be seen here.
    fn check_nack(&self, wire: &Bytes) -> Result<(), DecodeError> {
        let Some(fragment) = self.fragment.as_ref().filter(|_| self.fragment_index == 0) else {
            return Ok(());
        };
        let is_data = Reader::new(fragment).peek_type("Fragment") == Ok(tlv::DATA);
        if self.nack.is_some() && is_data {
            let at = wire.len() - fragment.len();
            return Err(DecodeError::new(
                "Nack",
                at,
                Problem::UnexpectedType(tlv::DATA),
            ));
        }
        Ok(())
    }

    /// Returns whether there are header fields besides the fragment; if not, the fragment may be sent bare.
    pub fn has_header(&self) -> bool {
        let is_piece =
            self.sequence.is_some() || self.fragment_index > 0 || self.fragment_count.is_some();
        let is_watched = self.tx_sequence.is_some() || !self.acks.is_empty();
        let names_face = self.incoming_face.is_some()
            || self.next_hop_face.is_some()
            || self.avoid_face.is_some();
        let says_more = self.pit_token.is_some()
            || self.nack.is_some()
            || self.no_cache
            || self.congestion_mark > 0
            || self.non_discovery
            || self.prefix_announcement.is_some()
            || self.piggybacked_interest.is_some()
            || !self.extensions.is_empty();
        is_piece || is_watched || names_face || says_more
    }

    /// Encodes the packet; bare if it has no header fields and carries a whole network packet.
    pub fn encode(&self) -> Bytes {
        match &self.fragment {
            Some(fragment) if !self.has_header() => fragment.clone(),
            _ => self.encode_whole(),
        }
    }

    /// Encodes the packet with its LpPacket wrapping, needed or not.
    pub fn encode_whole(&self) -> Bytes {
        let mut header = Writer::with_capacity(USUAL_HEADER + self.extensions.len());
        self.encode_header(&mut header);
        let length = match &self.fragment {
            Some(fragment) => header.len() + tlv::element_size(FRAGMENT, fragment.len()),
            None => header.len(),
        };
        let mut wire = Writer::with_capacity(tlv::element_size(LP_PACKET, length));
        wire.header(LP_PACKET, length).raw(header.as_slice());
        if let Some(fragment) = &self.fragment {
            wire.element(FRAGMENT, fragment);
        }
        wire.finish()
    }

    /// Appends the header fields, in ascending order of type.
    fn encode_header(&self, header: &mut Writer) {
        if let Some(sequence) = self.sequence {
            header.element(SEQUENCE, &sequence.to_be_bytes());
        }
        if self.fragment_index > 0 {
            header.number(FRAGMENT_INDEX, self.fragment_index);
        }
        if let Some(count) = self.fragment_count {
            header.number(FRAGMENT_COUNT, count);
        }
        if let Some(token) = &self.pit_token {
            header.element(PIT_TOKEN, token);
        }
        if let Some(reason) = self.nack {
            header.nested(NACK, |nack| {
                nack.number(NACK_REASON, reason.number());
            });
        }
        if let Some(face) = self.incoming_face {
            header.number(INCOMING_FACE_ID, face);
        }
        if let Some(face) = self.next_hop_face {
            header.number(NEXT_HOP_FACE_ID, face);
        }
        if self.no_cache {
            header.nested(CACHE_POLICY, |policy| {
                policy.number(CACHE_POLICY_TYPE, NO_CACHE);
            });
        }
        if self.congestion_mark > 0 {
            header.number(CONGESTION_MARK, self.congestion_mark);
        }
        for ack in &self.acks {
            header.element(ACK, &ack.to_be_bytes());
        }
        if let Some(sequence) = self.tx_sequence {
            header.element(TX_SEQUENCE, &sequence.to_be_bytes());
        }
        if self.non_discovery {
            header.element(NON_DISCOVERY, &[]);
        }
        if let Some(announcement) = &self.prefix_announcement {
            header.element(PREFIX_ANNOUNCEMENT, announcement);
        }
        // No other field has a number between these two.
        let (below, above) = self.extensions.split_at(PIGGYBACKED_INTEREST);
        header.raw(below);
        if let Some(interest) = &self.piggybacked_interest {
            header.element(PIGGYBACKED_INTEREST, interest);
        }
        if let Some(face) = self.avoid_face {
            header.number(AVOID_FACE_ID, face);
        }
        header.raw(above);
    }
}

/// Appends a type of one octet, and a length.
fn push_header(wire: &mut Vec<u8>, element_type: u32, length: usize) {
    let [.., a, b, c, d] = (length as u64).to_be_bytes();
    let octet = element_type as u8;
    match length {
        0..=252 => wire.extend_from_slice(&[octet, d]),
        253..=0xFFFF => wire.extend_from_slice(&[octet, 253, c, d]),
        _ => wire.extend_from_slice(&[octet, 254, a, b, c, d]),
    }
}

/// Decodes the reason of a Nack; one without a reason, as NDNts sends it, is for `None`.
fn decode_nack(wire: &Bytes, nack: &Element) -> Result<NackReason, DecodeError> {
    let mut reason = NackReason::None;
    let reader = Reader::within(wire, nack.value.clone());
    let mut fields = tlv::Fields::new(reader, "Nack", &[NACK_REASON]);
    while let Some(field) = fields.field()? {
        reason = field.number("NackReason", wire)?.into();
    }
    Ok(reason)
}

fn decode_cache_policy(wire: &Bytes, policy: &Element) -> Result<u64, DecodeError> {
    let mut number = None;
    let reader = Reader::within(wire, policy.value.clone());
    let mut fields = tlv::Fields::new(reader, "CachePolicy", &[CACHE_POLICY_TYPE]);
    while let Some(field) = fields.field()? {
        number = Some(field.number("CachePolicyType", wire)?);
    }
    number.ok_or(policy.error("CachePolicyType", Problem::Missing))
}

/// Returns whether a header field that is not known may be ignored: NDNLPv2, and all known implementations.
const fn is_skippable(field_type: u32) -> bool {
    800 <= field_type && field_type < 960 && field_type.is_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a link packet with these header octets, without Fragment.
    fn decode(header: &[u8]) -> Result<LpPacket, DecodeError> {
        let mut wire = Writer::default();
        wire.element(LP_PACKET, header);
        LpPacket::decode(wire.finish())
    }

    fn problem(header: &[u8]) -> Problem {
        decode(header).unwrap_err().problem
    }

    #[test]
    fn only_acks_may_be_repeated() {
        let mark = [0xFD, 0x03, 0x40, 1, 1];
        assert_eq!(decode(&mark).map(|packet| packet.congestion_mark), Ok(1));
        assert_eq!(problem(&mark.repeat(2)), Problem::Critical(CONGESTION_MARK));
        let unknown = [0xFD, 0x03, 0x24, 0];
        assert_eq!(decode(&unknown), Ok(LpPacket::default()));
        assert_eq!(problem(&unknown.repeat(2)), Problem::Critical(804));
        let extension = [0xFD, 0x03, 0xBC, 0];
        assert_eq!(problem(&extension.repeat(2)), Problem::Critical(956));
        let ack = [0xFD, 0x03, 0x44, 8, 0, 0, 0, 0, 0, 0, 0, 7];
        assert_eq!(
            decode(&ack.repeat(3)).map(|packet| packet.acks),
            Ok(vec![7; 3])
        );
    }

    #[test]
    fn fields_inside_headers_are_checked_to_the_last() {
        let reason = [0xFD, 0x03, 0x21, 1, 50];
        let nack = |inside: &[u8]| {
            let length = u8::try_from(inside.len()).unwrap();
            decode(&[&[0xFD, 0x03, 0x20, length], inside].concat())
        };
        let reason_of = |packet: LpPacket| packet.nack;
        assert_eq!(
            nack(&reason).map(reason_of),
            Ok(Some(NackReason::Congestion))
        );
        let refused = nack(&[&reason[..], &[127, 0]].concat()).unwrap_err();
        assert_eq!(refused.problem, Problem::Critical(127));

        let policy = |kind| [0xFD, 0x03, 0x34, 5, 0xFD, 0x03, 0x35, 1, kind];
        assert_eq!(decode(&policy(1)).map(|packet| packet.no_cache), Ok(true));
        assert_eq!(decode(&policy(2)).map(|packet| packet.no_cache), Ok(false));
        assert_eq!(problem(&[0xFD, 0x03, 0x34, 0]), Problem::Missing);
    }

    #[test]
    fn a_piece_lies_within_its_packet() {
        assert_eq!(problem(&[0x53, 1, 0]), Problem::ValueOutOfRange);
        assert_eq!(problem(&[0x52, 1, 1]), Problem::ValueOutOfRange);
        assert_eq!(
            decode(&[0x53, 1, 1]).map(|packet| packet.fragment_count),
            Ok(Some(1))
        );
    }

    #[test]
    fn packets_travel_bare_unless_there_is_more_to_say() {
        let network = Bytes::from_static(&[6, 1, 0]);
        let mut packet = LpPacket::carrying(network.clone());
        assert_eq!(packet.encode(), network);
        assert_eq!(LpPacket::decode(network), Ok(packet.clone()));
        assert_eq!(packet.encode_whole(), [100, 5, 80, 3, 6, 1, 0][..]);
        packet.congestion_mark = 1;
        assert_eq!(packet.encode(), packet.encode_whole());
        assert_eq!(LpPacket::default().encode(), [100, 0][..]);
    }

    #[test]
    fn a_mark_leaves_the_rest_of_a_frame_as_it_is() {
        let bare = Bytes::from_static(&[6, 2, 7, 0]);
        let fragment = LpPacket {
            sequence: Some(5),
            fragment_count: Some(3),
            ..LpPacket::carrying(bare.clone())
        };
        for packet in [LpPacket::carrying(bare), fragment] {
            let with_mark = LpPacket {
                congestion_mark: 1,
                ..packet.clone()
            };
            let once = LpPacket::marked(packet.encode());
            assert_eq!(LpPacket::decode(once.clone()), Ok(with_mark));
            assert_eq!(LpPacket::marked(once.clone()), once);
        }
        let keep_alive = Bytes::from_static(&[100, 0]);
        assert_eq!(LpPacket::marked(keep_alive.clone()), keep_alive);
    }
}
