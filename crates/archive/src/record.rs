//! One record of a chunk: packets that belong together, in the order they were signed.
//!
//! ```text
//!   "NCR1" │ length │ CRC-32 │ Data packets, one after another
//!     4        4        4        length octets
//! ```
//!
//! Numbers are little-endian. The first packet's name says what the record is: the lead of a sample, with its other
//! segments behind it, or an object, which stands alone.

use core::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use namecast_packet::tlv::Reader;
use namecast_packet::{Data, MAX_PACKET_SIZE, Name};
use namecast_stream::sample::{Lead, MAX_SEGMENTS, SampleHeader};
use namecast_stream::{RungNames, SegmentId};

/// How each record begins, so that the next one is found behind a damaged one.
const MAGIC: [u8; 4] = *b"NCR1";
/// Octets before the packets.
pub(crate) const HEADER: usize = 12;
/// Most octets of packets in a record: the largest sample.
pub(crate) const MAX_LENGTH: usize = MAX_SEGMENTS * MAX_PACKET_SIZE;

/// Why octets are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It does not begin as records do.
    #[error("no record begins here")]
    Magic,
    /// Its length is zero or larger than any sample.
    #[error("its length of {0} octets is out of bounds")]
    Length(usize),
    /// The octets end before it does.
    #[error("it is cut off")]
    CutOff,
    /// Its octets are not those that were written.
    #[error("its checksum is wrong")]
    Checksum,
    /// What it holds is not a sequence of Data packets.
    #[error("it does not hold Data packets")]
    Packets,
}

/// What a record is, by its first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A sample; the packets begin with its lead.
    Sample {
        /// Name of the rung.
        rung: Name,
        /// The lead's place in it.
        lead: SegmentId,
        /// What the lead says of the sample.
        header: Box<SampleHeader>,
    },
    /// A packet by itself: certificate, catalogue, metadata.
    Object(Name),
}

impl Subject {
    /// What a record of `packets` is; `None` without packets.
    pub(crate) fn of(packets: &[Data]) -> Option<Self> {
        let first = packets.first()?;
        Some(sample(first).unwrap_or_else(|| Self::Object(first.name().detached())))
    }
}

fn sample(lead: &Data) -> Option<Subject> {
    let (rung, id) = RungNames::of_segment(lead.name())?;
    let header = Lead::decode(lead).ok()?.header().clone();
    id.is_lead().then(|| Subject::Sample {
        rung,
        lead: id,
        header: Box::new(header),
    })
}

/// Returns the record of `packets`.
///
/// # Errors
/// [`RecordError::Length`] if they are none, or more than a record holds.
pub(crate) fn encode(packets: &[Data]) -> Result<Bytes, RecordError> {
    let length: usize = packets.iter().map(|data| data.wire().len()).sum();
    if !(1..=MAX_LENGTH).contains(&length) {
        return Err(RecordError::Length(length));
    }
    let mut record = BytesMut::with_capacity(HEADER + length);
    record.put_slice(&MAGIC);
    record.put_u32_le(u32::try_from(length).map_err(|_| RecordError::Length(length))?);
    record.put_u32_le(0);
    packets
        .iter()
        .for_each(|data| record.put_slice(data.wire()));
    let checksum = crc32fast::hash(&record[HEADER..]);
    record[8..HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok(record.freeze())
}

/// Returns the packets of the record that `octets` begin with, and its length with header.
///
/// # Errors
/// Why they do not begin with one.
pub(crate) fn decode(octets: &Bytes) -> Result<(Vec<Data>, usize), RecordError> {
    let Header { length, checksum } = Header::decode(octets)?;
    let body = octets.slice(HEADER..HEADER + length);
    if crc32fast::hash(&body) != checksum {
        return Err(RecordError::Checksum);
    }
    Ok((packets(&body)?, HEADER + length))
}

/// What a record says of its body, which is there.
struct Header {
    length: usize,
    checksum: u32,
}

impl Header {
    /// The header that `octets` begin with.
    fn decode(octets: &[u8]) -> Result<Self, RecordError> {
        let mut header = octets.get(..HEADER).ok_or(RecordError::CutOff)?;
        if header.copy_to_bytes(MAGIC.len())[..] != MAGIC {
            return Err(RecordError::Magic);
        }
        let (length, checksum) = (header.get_u32_le() as usize, header.get_u32_le());
        if !(1..=MAX_LENGTH).contains(&length) {
            return Err(RecordError::Length(length));
        }
        if octets.len() - HEADER < length {
            return Err(RecordError::CutOff);
        }
        Ok(Self { length, checksum })
    }
}

fn packets(body: &Bytes) -> Result<Vec<Data>, RecordError> {
    let mut packets = Vec::new();
    let mut reader = Reader::new(body);
    while let Some(element) = reader.element("packet").map_err(|_| RecordError::Packets)? {
        let data = Data::decode(body.slice(element.whole()));
        packets.push(data.map_err(|_| RecordError::Packets)?);
    }
    Ok(packets)
}

/// What a scan finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// A record.
    Record {
        /// Where it begins.
        offset: usize,
        /// Octets of it, with header.
        length: usize,
        /// What it holds.
        packets: Vec<Data>,
    },
    /// Octets between records, or before the first, that are none.
    Damaged {
        /// Where they begin.
        offset: usize,
        /// Their number.
        length: usize,
        /// What is wrong with the first of them.
        error: RecordError,
    },
    /// Octets after the last record: what a crash left unfinished.
    Torn {
        /// Where they begin.
        offset: usize,
        /// Their number.
        length: usize,
    },
}

/// Goes through the records in `octets`, past damaged ones, in linear time whatever they hold.
///
/// Where a checksum is right, the next record begins behind its body, even if that does not hold packets: it may hold
/// the beginnings of many records that share most of it.
pub(crate) fn scan(octets: &Bytes) -> impl Iterator<Item = Scanned> + '_ {
    let checksums = Checksums::new(octets);
    let mut at = 0;
    core::iter::from_fn(move || {
        if at == octets.len() {
            return None;
        }
        let offset = at;
        let (error, next) = match checksums.body(octets, at) {
            Ok(body) => {
                at = body.end;
                let length = at - offset;
                match packets(&octets.slice(body)) {
                    Ok(packets) => {
                        return Some(Scanned::Record {
                            offset,
                            length,
                            packets,
                        });
                    }
                    Err(error) => (error, Some(at)),
                }
            }
            Err(error) => (error, next_record(octets, at + 1, &checksums)),
        };
        at = next.unwrap_or(octets.len());
        let length = at - offset;
        Some(match next {
            Some(_) => Scanned::Damaged {
                offset,
                length,
                error,
            },
            None => Scanned::Torn { offset, length },
        })
    })
}

/// Returns where the next record with a right checksum begins, at `from` or later.
fn next_record(octets: &[u8], from: usize, checksums: &Checksums) -> Option<usize> {
    (from..octets.len().saturating_sub(HEADER)).find(|&at| checksums.body(octets, at).is_ok())
}

/// Checksums of any range at the same small cost. Packets may hold the beginnings of records by the thousand, each of
/// which would otherwise be read to its end.
struct Checksums {
    /// Of the first n · [`STEP`](Self::STEP) octets.
    upto: Vec<u32>,
}

impl Checksums {
    /// Octets between checksums that are kept: 4 octets in memory for each, and at most this many are read for one range.
    const STEP: usize = 1_024;

    fn new(octets: &[u8]) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        let mut upto = vec![0];
        for step in octets.chunks_exact(Self::STEP) {
            hasher.update(step);
            upto.push(hasher.clone().finalize());
        }
        Self { upto }
    }

    /// Returns where the packets are of the record at `at`, checked against its checksum.
    fn body(&self, octets: &[u8], at: usize) -> Result<Range<usize>, RecordError> {
        let Header { length, checksum } = Header::decode(&octets[at..])?;
        let (begin, end) = (at + HEADER, at + HEADER + length);
        match self.of(octets, begin, end) == checksum {
            true => Ok(begin..end),
            false => Err(RecordError::Checksum),
        }
    }

    /// Returns the checksum of the first `end` octets.
    fn before(&self, octets: &[u8], end: usize) -> u32 {
        let step = end / Self::STEP;
        let mut hasher = crc32fast::Hasher::new_with_initial(self.upto[step]);
        hasher.update(&octets[step * Self::STEP..end]);
        hasher.finalize()
    }

    /// Returns the checksum of the octets from `begin` to `end`: CRC(AB) = CRC(A) shifted by the length of B, XOR CRC(B).
    fn of(&self, octets: &[u8], begin: usize, end: usize) -> u32 {
        let mut shifted = crc32fast::Hasher::new_with_initial(self.before(octets, begin));
        let length = (end - begin) as u64;
        shifted.combine(&crc32fast::Hasher::new_with_initial_len(0, length));
        shifted.finalize() ^ self.before(octets, end)
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;

    use super::*;

    fn object(name: &str, size: usize) -> Data {
        let name = name.parse().unwrap();
        Data::builder(name).content(vec![7; size]).sign(&NullSigner)
    }

    fn records() -> (Vec<Vec<Data>>, Bytes) {
        let records: Vec<_> = (0..5)
            .map(|n| {
                vec![
                    object(&format!("/a/{n}"), 40),
                    object(&format!("/b/{n}"), n),
                ]
            })
            .collect();
        let mut octets = BytesMut::new();
        records
            .iter()
            .for_each(|packets| octets.put_slice(&encode(packets).unwrap()));
        (records, octets.freeze())
    }

    fn intact(octets: &Bytes) -> Vec<Vec<Data>> {
        let packets = |scanned| match scanned {
            Scanned::Record { packets, .. } => Some(packets),
            _ => None,
        };
        scan(octets).filter_map(packets).collect()
    }

    #[test]
    fn records_read_back() {
        let (records, octets) = records();
        assert_eq!(intact(&octets), records);
        assert_eq!(octets[..4], *b"NCR1");
        let length = u32::from_le_bytes(octets[4..8].try_into().unwrap()) as usize;
        let wire: usize = records[0].iter().map(|data| data.wire().len()).sum();
        assert_eq!(length, wire);
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        assert_eq!(encode(&[]), Err(RecordError::Length(0)));
        let packet = object("/a", 8_000);
        let many = vec![packet.clone(); MAX_LENGTH / packet.wire().len() + 1];
        assert!(matches!(encode(&many), Err(RecordError::Length(_))));
    }

    /// Whatever octet of the third record is changed, the four others are found, and the damage is told.
    #[test]
    fn a_damaged_record_is_told_and_passed_over() {
        let (records, octets) = records();
        let size = |n: usize| encode(&records[n]).unwrap().len();
        let (begin, length) = (size(0) + size(1), size(2));
        for at in begin..begin + length {
            let mut damaged = octets.to_vec();
            damaged[at] ^= 0x55;
            let damaged = Bytes::from(damaged);
            let mut others = records.clone();
            others.remove(2);
            assert_eq!(intact(&damaged), others, "octet {at}");
            let told = scan(&damaged).find_map(|scanned| match scanned {
                Scanned::Damaged { offset, length, .. } => Some((offset, length)),
                _ => None,
            });
            assert_eq!(told, Some((begin, length)), "octet {at}");
        }
    }

    #[test]
    fn a_cut_leaves_whole_records_and_a_torn_tail() {
        let (records, octets) = records();
        let mut ends = vec![0];
        for packets in &records {
            ends.push(ends[ends.len() - 1] + encode(packets).unwrap().len());
        }
        for cut in 0..octets.len() {
            let whole = ends.iter().filter(|&&end| end > 0 && end <= cut).count();
            let cut_off = octets.slice(..cut);
            assert_eq!(intact(&cut_off), records[..whole]);
            let torn = scan(&cut_off).find_map(|scanned| match scanned {
                Scanned::Torn { offset, length } => Some((offset, length)),
                _ => None,
            });
            let end = ends[whole];
            assert_eq!(torn, (cut > end).then_some((end, cut - end)));
        }
    }

    #[test]
    fn checksums_of_ranges_are_those_of_the_bytes() {
        let mut random = namecast_units::Random::from_seed(4);
        let mut octets = vec![0; 5_000];
        random.fill(&mut octets);
        let checksums = Checksums::new(&octets);
        for _ in 0..1_000 {
            let [a, b] = [(); 2].map(|()| usize::try_from(random.below(5_001)).unwrap());
            let (begin, end) = (a.min(b), a.max(b));
            let expected = crc32fast::hash(&octets[begin..end]);
            assert_eq!(checksums.of(&octets, begin, end), expected);
        }
    }

    /// A damaged chunk of 8 MiB, full of what looks like the beginning of a large record: 600 000 of them, each of which
    /// claims all that follows. Reading each to its end would be 2.5 · 10^12 octets, hours in a test; it ends.
    #[test]
    fn what_only_looks_like_records_costs_no_more_than_its_length() {
        let mut octets = BytesMut::new();
        while octets.len() < 8 << 20 {
            octets.put_slice(&MAGIC);
            let left = (8 << 20) + HEADER - octets.len() - 8;
            octets.put_u32_le(u32::try_from(left.min(MAX_LENGTH) - HEADER.min(left / 2)).unwrap());
            octets.put_u32_le(7);
        }
        let whole = encode(&[object("/a", 40)]).unwrap();
        octets.put_slice(&whole);
        let octets = octets.freeze();
        let records = intact(&octets);
        assert_eq!(records, [vec![object("/a", 40)]]);
    }

    /// 4 MiB of records, each of which holds all that follow, with right checksums: 350 000 of them, which would be 7 · 10^11
    /// octets if each were read to its end. As the first one is whole, it is one damaged record.
    #[test]
    fn records_within_records_cost_no_more_than_their_length() {
        let mut checksum = crc32fast::Hasher::new();
        let mut reversed: Vec<u8> = Vec::new();
        while reversed.len() < MAX_LENGTH.min(4 << 20) {
            let mut header = BytesMut::from(&MAGIC[..]);
            header.put_u32_le(u32::try_from(reversed.len().max(1)).unwrap());
            header.put_u32_le(checksum.clone().finalize());
            let mut longer = crc32fast::Hasher::new();
            longer.update(&header);
            longer.combine(&checksum);
            checksum = longer;
            reversed.extend(header.iter().rev());
        }
        let mut octets = BytesMut::from(&b"damage"[..]);
        octets.extend(reversed.iter().rev());
        let whole = encode(&[object("/a", 40)]).unwrap();
        octets.put_slice(&whole);
        let octets = octets.freeze();
        assert_eq!(intact(&octets), [vec![object("/a", 40)]]);
        let damaged = scan(&octets).filter_map(|scanned| match scanned {
            Scanned::Damaged { length, error, .. } => Some((length, error)),
            _ => None,
        });
        let expected = [
            (6, RecordError::Magic),
            (reversed.len(), RecordError::Packets),
        ];
        assert_eq!(damaged.collect::<Vec<_>>(), expected);
    }

    /// 8 MiB of whole records, with the beginning of a long one between each two: 160 000, each of which claims 4 MB.
    #[test]
    fn records_between_lies_about_length_cost_no_more_than_their_length() {
        let whole = encode(&[object("/a", 1)]).unwrap();
        let mut lie = BytesMut::from(&MAGIC[..]);
        lie.put_u32_le(u32::try_from(MAX_LENGTH).unwrap());
        lie.put_u32_le(7);
        let piece = [&whole[..], &lie[..]].concat();
        let count = (8 << 20) / piece.len();
        let octets = Bytes::from(piece.repeat(count));
        assert_eq!(intact(&octets).len(), count);
    }
}
