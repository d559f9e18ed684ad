//! Any-next-packet delivery: the link header fields of \[SAID\].
//!
//! ```text
//!  864 before an Interest    flags │ pending │ seen       7 octets: 1, 2 and 4
//!  864 before Data           number                       4 octets
//!  868 before Data           spare requests               a number up to 65 535
//!  896 without a packet      hops left │ expiry │ numbers in a chunk │ name of the flow │ ranges of chunks
//!                            1           1        4                    an element         4 + 4 octets each
//! ```
//!
//! Counters are absolute, so that a lost packet leaves no error behind. Numbers count the Data of one flow on one link, modulo 2^32.

use bytes::Bytes;

use crate::name::Name;
use crate::tlv::{self, Reader, Writer};

/// In the flags: what was under way is lost. Others are sent as 0 and ignored.
const REFRESH: u8 = 1;
/// Octets of a request.
const REQUEST: usize = 7;
/// Most requests that a neighbour may have pending: K.
pub const MAX_PENDING: u16 = 4_096;
/// Data under way on one link at most; a neighbour that is further behind has lost count.
const MAX_UNDER_WAY: u32 = 2 * MAX_PENDING as u32;

/// A request for any next packets of a flow: value of [`ANY_NEXT`](crate::Extensions::ANY_NEXT) before an Interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnyNextRequest {
    /// Requests pending at the sender, those that Data under way will answer included.
    pub pending: u16,
    /// Newest number that the sender has seen on this link.
    pub seen: u32,
    /// Whether what was under way is lost.
    pub refresh: bool,
}

impl AnyNextRequest {
    /// Number of pending requests that stands, before a Nack, for: the flow is not delivered so here.
    pub const NOT_HERE: u16 = u16::MAX;
    /// The value of the field before such a Nack.
    pub const NOT_HERE_FIELD: [u8; REQUEST] = [0, 0xFF, 0xFF, 0, 0, 0, 0];

    /// Reads the value of the field; `None` if it is no request.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let &[flags, high, low, ref seen @ ..] = value else {
            return None;
        };
        Some(Self {
            pending: u16::from_be_bytes([high, low]),
            seen: decode_number(seen)?,
            refresh: flags & REFRESH != 0,
        })
    }

    /// Returns the value of the field.
    pub fn encode(self) -> [u8; REQUEST] {
        let [high, low] = self.pending.to_be_bytes();
        let [a, b, c, d] = self.seen.to_be_bytes();
        [u8::from(self.refresh), high, low, a, b, c, d]
    }
}

/// Pending requests of one neighbour for one flow, counted where the Data are sent.
///
/// ```text
/// on request (k, n, refresh):  pending = k,              sent = n   if refresh
///                              pending = k − (sent − n)             otherwise
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRequests {
    count: u16,
    sent: u32,
}

impl PendingRequests {
    /// Counts from the first request of a neighbour.
    pub fn new(request: &AnyNextRequest) -> Self {
        Self {
            count: request.pending.min(MAX_PENDING),
            sent: request.seen,
        }
    }

    /// Takes a later request.
    pub fn update(&mut self, request: &AnyNextRequest) {
        let under_way = self.sent.wrapping_sub(request.seen);
        if request.refresh || under_way > MAX_UNDER_WAY {
            // A neighbour that has seen a number that was never sent counts anew: one of the two was started again.
            *self = Self::new(request);
        } else {
            let wanted = request.pending.min(MAX_PENDING);
            self.count = u16::try_from(under_way).map_or(0, |it| wanted.saturating_sub(it));
        }
    }

    /// Returns the number of requests that no Data were sent for.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Forgets pending requests, which Data will not answer: a neighbour that still wants some requests again.
    pub const fn withdraw(&mut self) {
        self.count = 0;
    }

    /// Uses up a request. Returns the number on the link of the Data that answer it; `None` if no request is pending.
    pub fn answer(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        self.sent = self.sent.wrapping_add(1);
        Some(self.sent)
    }
}

/// Reads a link number: value of [`ANY_NEXT`](crate::Extensions::ANY_NEXT) before Data; `None` if it is none.
pub fn decode_number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

/// Chunks of a flow that a neighbour, or one behind it, has: value of [`CHUNKS_HAD`](crate::Extensions::CHUNKS_HAD) without a packet.
///
/// Each announcement names all chunks, and replaces the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunksHad {
    /// Name of the flow, version included.
    pub flow: Name,
    /// Numbers in a chunk, at least 1: number *n* is in chunk *n* ÷ this.
    pub chunk_size: u32,
    /// How many nodes further it may be told, at most [`MAX_HOPS`](Self::MAX_HOPS).
    pub hops_left: u8,
    /// Seconds for which it counts, from 1 to [`MAX_EXPIRY`](Self::MAX_EXPIRY).
    pub expiry: u8,
    /// First and last chunk of each range, in ascending order and apart.
    pub ranges: Vec<(u32, u32)>,
}

impl ChunksHad {
    /// Most nodes that pass an announcement on.
    pub const MAX_HOPS: u8 = 2;
    /// Longest time that an announcement counts, in seconds.
    pub const MAX_EXPIRY: u8 = 60;
    /// Most ranges of an announcement, so that it fits a datagram.
    pub const MAX_RANGES: usize = 128;

    /// Reads the value of the field; `None` if it breaks the format or one of the bounds.
    pub fn decode(value: &Bytes) -> Option<Self> {
        let &[hops_left, expiry, a, b, c, d, ..] = &value[..] else {
            return None;
        };
        let mut reader = Reader::within(value, 6..value.len());
        let name = reader.element("ChunksHad").ok()??;
        let ranges = &value[name.value.end..];
        let had = Self {
            flow: Name::from_element(value, &name).ok()?,
            chunk_size: u32::from_be_bytes([a, b, c, d]),
            hops_left,
            expiry,
            ranges: ranges.chunks_exact(8).filter_map(read_range).collect(),
        };
        let is_whole = name.element_type == tlv::NAME && ranges.len() == 8 * had.ranges.len();
        (is_whole && had.is_sound()).then_some(had)
    }

    /// Returns the components of the flow's name in a value of the field, of which nothing else is checked.
    pub fn flow_in(value: &[u8]) -> Option<&[u8]> {
        let mut reader = Reader::within(value, value.len().min(6)..value.len());
        let name = reader.element("ChunksHad").ok()??;
        (name.element_type == tlv::NAME).then(|| &value[name.value])
    }

    /// Returns the value of the field.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.raw(&[self.hops_left, self.expiry]);
        writer.raw(&self.chunk_size.to_be_bytes());
        self.flow.encode(&mut writer);
        for (first, last) in &self.ranges {
            writer.raw(&first.to_be_bytes()).raw(&last.to_be_bytes());
        }
        writer.finish()
    }

    fn is_sound(&self) -> bool {
        let is_apart = |pair: &[(u32, u32)]| pair[0].1 < pair[1].0;
        !self.flow.is_empty()
            && self.chunk_size > 0
            && self.hops_left <= Self::MAX_HOPS
            && (1..=Self::MAX_EXPIRY).contains(&self.expiry)
            && self.ranges.len() <= Self::MAX_RANGES
            && self.ranges.windows(2).all(is_apart)
    }
}

/// A range of eight octets, unless it ends before it begins.
fn read_range(octets: &[u8]) -> Option<(u32, u32)> {
    let (first, last) = octets.split_at_checked(4)?;
    let (first, last) = (decode_number(first)?, decode_number(last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extensions, LpPacket};

    /// Of 5 requests, two are answered by 8 and 9. The neighbour has seen 8 when it wants 6: one of them is under way. It has seen 10,
    /// which was never sent, when it wants 3.
    #[test]
    fn pending_requests_leave_out_data_under_way() {
        let wants = |pending, seen| AnyNextRequest {
            pending,
            seen,
            refresh: false,
        };
        let mut requests = PendingRequests::new(&wants(5, 7));
        assert_eq!([(); 2].map(|()| requests.answer()), [Some(8), Some(9)]);
        assert_eq!(requests.count(), 3);
        requests.update(&wants(6, 8));
        assert_eq!(requests.count(), 5);
        requests.update(&wants(3, 10));
        assert_eq!((requests.count(), requests.answer()), (3, Some(11)));
        requests.update(&AnyNextRequest {
            refresh: true,
            ..wants(u16::MAX, 2)
        });
        assert_eq!(
            (requests.count(), requests.answer()),
            (MAX_PENDING, Some(3))
        );
        requests.update(&wants(1, 2));
        assert_eq!((requests.count(), requests.answer()), (0, None));
    }

    /// Frames, octet by octet as `docs/wire.md` has them.
    #[test]
    fn frames_are_as_documented() {
        let request = AnyNextRequest {
            pending: 0x0102,
            seen: 0x0304_0506,
            refresh: true,
        };
        let mut extensions = Extensions::default();
        extensions.set(Extensions::ANY_NEXT, request.encode());
        let frame = LpPacket::wrapped(Bytes::from_static(&[5, 1, 0]), &extensions);
        let wire = [100, 16, 253, 3, 96, 7, 1, 1, 2, 3, 4, 5, 6, 80, 3, 5, 1, 0];
        assert_eq!(frame[..], wire);

        let mut extensions = Extensions::default();
        extensions.set(Extensions::ANY_NEXT, 258_u32.to_be_bytes());
        extensions.set_number(Extensions::MIN_PENDING_REQUESTS, 300);
        let frame = LpPacket::wrapped(Bytes::from_static(&[6, 1, 0]), &extensions);
        let wire = [
            100, 19, 253, 3, 96, 4, 0, 0, 1, 2, 253, 3, 100, 2, 1, 44, 80, 3, 6, 1, 0,
        ];
        assert_eq!(frame[..], wire);
    }

    #[test]
    fn requests_and_numbers_of_other_lengths_are_none() {
        for seen in [0, 1, u32::MAX] {
            for pending in [0, 1, u16::MAX] {
                for refresh in [false, true] {
                    let request = AnyNextRequest {
                        pending,
                        seen,
                        refresh,
                    };
                    assert_eq!(AnyNextRequest::decode(&request.encode()), Some(request));
                }
            }
        }
        for length in (0..20).filter(|&length| length != REQUEST) {
            assert_eq!(AnyNextRequest::decode(&vec![1; length]), None, "{length}");
        }
        for length in (0..20).filter(|&length| length != 4) {
            assert_eq!(decode_number(&vec![1; length]), None, "{length}");
        }
        // Flags of later versions are none of ours.
        let later = AnyNextRequest::decode(&[0xFE, 0, 1, 0, 0, 0, 2]).map(|it| it.refresh);
        assert_eq!(later, Some(false));
    }

    fn had() -> ChunksHad {
        ChunksHad {
            flow: "/f/v=1".parse().unwrap(),
            chunk_size: 100,
            hops_left: 2,
            expiry: 60,
            ranges: vec![(0, 0), (2, 5), (u32::MAX, u32::MAX)],
        }
    }

    #[test]
    fn announcements_come_back_as_they_were_made() {
        let wire = [
            2, 60, 0, 0, 0, 100, 7, 6, 8, 1, b'f', 54, 1, 1, 0, 0, 0, 2, 0, 0, 0, 5,
        ];
        let one = ChunksHad {
            ranges: vec![(2, 5)],
            ..had()
        };
        assert_eq!(one.encode()[..], wire);
        for ranges in [vec![], had().ranges] {
            let had = ChunksHad { ranges, ..had() };
            assert_eq!(ChunksHad::decode(&had.encode()), Some(had));
        }
    }

    #[test]
    fn announcements_out_of_bounds_are_none() {
        let refused: [fn(&mut ChunksHad); 9] = [
            |had| had.flow = Name::root(),
            |had| had.chunk_size = 0,
            |had| had.hops_left = 3,
            |had| had.expiry = 0,
            |had| had.expiry = 61,
            |had| had.ranges = vec![(5, 4)],
            |had| had.ranges = vec![(0, 5), (5, 6)],
            |had| had.ranges = vec![(7, 8), (0, 5)],
            |had| had.ranges = (0..129).map(|chunk| (2 * chunk, 2 * chunk)).collect(),
        ];
        for (place, change) in refused.into_iter().enumerate() {
            let mut had = had();
            change(&mut had);
            assert_eq!(ChunksHad::decode(&had.encode()), None, "{place}");
        }
        let whole = had().encode();
        for length in 0..whole.len() {
            let cut = whole.slice(..length);
            let is_shorter_list = length >= 14 && (length - 14).is_multiple_of(8);
            assert_eq!(
                ChunksHad::decode(&cut).is_some(),
                is_shorter_list,
                "{length}"
            );
        }
    }
}
