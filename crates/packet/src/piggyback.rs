//! An Interest that travels with a Data packet, as the value of the link header field `PiggybackedInterest` (872). After \[PIGGYBACK\].
//!
//! ```text
//!  (nothing)                          the sender takes such Interests: beside Support
//!  0                                  the Interest within the Data, in its MetaInfo
//!  5 │ …                              an Interest, whole
//!  128 + flags │ Nonce │ HopLimit │ InterestLifetime │ name        the compact form
//!                 4        0 or 1      0 or 2, in ms
//! ```
//!
//! The name of the compact form is a series of runs: of components that the Data's name has as well, and of others.
//!
//! ```text
//!  0 │ start, 4 bits │ count − 1, 3 bits           so many components of the Data's name from `start` on
//!  1 │ length, 7 bits │ components                 octets of other components
//! ```

use core::time::Duration;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::copy::patched;
use crate::data::Data;
use crate::error::{DecodeError, Problem};
use crate::interest::{Interest, Nonce, Parts};
use crate::name::Name;
use crate::tlv::{self, Element, Writer};

/// The value that stands for the Interest within the Data.
pub const EMBEDDED: u8 = 0;

const FIELD: &str = "PiggybackedInterest";
/// First octet of an Interest.
const WHOLE: u8 = tlv::INTEREST as u8;
/// In the first octet: the compact form, and what it has.
const COMPACT: u8 = 0x80;
const CAN_BE_PREFIX: u8 = 1;
const MUST_BE_FRESH: u8 = 2;
const HOP_LIMIT: u8 = 4;
const LIFETIME: u8 = 8;
const KNOWN: u8 = COMPACT | CAN_BE_PREFIX | MUST_BE_FRESH | HOP_LIMIT | LIFETIME;
/// In the first octet of a run: others' components. The rest is their length.
const LITERAL: u8 = 0x80;
const MAX_LITERAL: usize = 0x7F;
/// Components of the Data's name that a run can begin with, and that it can have.
const MAX_START: usize = 16;
const MAX_COUNT: usize = 8;
/// Octets of a Nonce with type and length.
const NONCE_SIZE: usize = 6;
/// Longest name that the compact form may stand for, in octets of components: what is short to send is not long to keep.
const MAX_NAME: usize = 2_048;

/// Returns the value of the field for `interest` with Data of this name: the compact form, or the Interest whole if it has parts that
/// the compact form lacks.
pub fn encode(interest: &Interest, data: &Name) -> Bytes {
    match encode_compact(interest, data) {
        Some(value) => value,
        None => interest.wire().clone(),
    }
}

fn encode_compact(interest: &Interest, data: &Name) -> Option<Bytes> {
    let nonce = interest.nonce()?;
    let millis = match interest.lifetime() {
        Interest::DEFAULT_LIFETIME => None,
        other => Some(u16::try_from(other.as_millis()).ok()?),
    };
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = COMPACT
        | flag(interest.can_be_prefix(), CAN_BE_PREFIX)
        | flag(interest.must_be_fresh(), MUST_BE_FRESH)
        | flag(interest.hop_limit().is_some(), HOP_LIMIT)
        | flag(millis.is_some(), LIFETIME);
    let name = interest.name().value().len();
    let length = body_size(name, flags, millis);
    if interest.wire().len() != tlv::element_size(tlv::INTEREST, length) || name > MAX_NAME {
        return None;
    }
    let mut value = Writer::with_capacity(16 + name);
    value.raw(&[flags]).raw(&nonce.0);
    if let Some(hops) = interest.hop_limit() {
        value.raw(&[hops]);
    }
    if let Some(millis) = millis {
        value.raw(&millis.to_be_bytes());
    }
    encode_name(interest.name(), data, &mut value)?;
    Some(value.finish())
}

/// Octets of what is in an Interest that the compact form tells whole, in its shortest form.
fn body_size(name: usize, flags: u8, millis: Option<u16>) -> usize {
    let has = |flag| usize::from(flags & flag != 0);
    let lifetime = millis.map_or(0, |millis| 2 + tlv::number_size(millis.into()));
    let others = 2 * (has(CAN_BE_PREFIX) + has(MUST_BE_FRESH)) + 3 * has(HOP_LIMIT);
    tlv::element_size(tlv::NAME, name) + others + NONCE_SIZE + lifetime
}

/// Appends the runs of a name; `None` if one of its components is too long for them.
fn encode_name(name: &Name, data: &Name, value: &mut Writer) -> Option<()> {
    let theirs: SmallVec<[&[u8]; MAX_START]> = data.elements().take(MAX_START).collect();
    let ours: SmallVec<[&[u8]; MAX_START]> = name.elements().collect();
    let mut others = SmallVec::<[u8; 128]>::new();
    let mut rest = &ours[..];
    while let Some(&first) = rest.first() {
        let (start, count) = longest_run(rest, &theirs);
        if count == 0 {
            if others.len() + first.len() > MAX_LITERAL {
                write_others(&mut others, value);
            }
            if first.len() > MAX_LITERAL {
                return None;
            }
            others.extend_from_slice(first);
            rest = &rest[1..];
            continue;
        }
        write_others(&mut others, value);
        value.raw(&[(start << 3 | (count - 1)) as u8]);
        rest = &rest[count..];
    }
    write_others(&mut others, value);
    Some(())
}

fn write_others(others: &mut SmallVec<[u8; 128]>, value: &mut Writer) {
    if !others.is_empty() {
        value.raw(&[LITERAL | others.len() as u8]).raw(others);
        others.clear();
    }
}

/// Returns where in `theirs` most of the first components of `ours` stand, and how many.
fn longest_run(ours: &[&[u8]], theirs: &[&[u8]]) -> (usize, usize) {
    let mut best = (0, 0);
    for start in 0..theirs.len() {
        let pairs = ours.iter().zip(&theirs[start..]).take(MAX_COUNT);
        let count = pairs.take_while(|(ours, theirs)| ours == theirs).count();
        if count > best.1 {
            best = (start, count);
        }
    }
    best
}

/// Returns the Interest that a value of the field stands for, in front of `data`.
///
/// # Errors
/// The first violation of the format, with offsets that count from the value's first octet.
pub fn decode(value: &Bytes, data: &Data) -> Result<Interest, DecodeError> {
    match value.first() {
        None => Err(DecodeError::new(FIELD, 0, Problem::Missing)),
        Some(&EMBEDDED) if value.len() == 1 => data
            .embedded_interest()
            .ok_or(DecodeError::new(FIELD, 0, Problem::Missing))
            .and_then(|value| match value.first() {
                // Nothing is embedded in what is embedded.
                None | Some(&EMBEDDED) => Err(DecodeError::new(FIELD, 0, Problem::Malformed)),
                _ => decode(&value, data),
            }),
        Some(&WHOLE) => Interest::decode(value.clone()),
        Some(&flags) if flags & COMPACT != 0 && flags & !KNOWN == 0 => {
            decode_compact(flags, value, data.name())
        }
        Some(&other) => Err(DecodeError::new(
            FIELD,
            0,
            Problem::UnexpectedType(other.into()),
        )),
    }
}

/// An Interest of a flow in the compact form, from which the next of the flow is made: one that differs in the octets of its last component
/// and in the Nonce, in front of Data that differ in their last component, which may be the Interest's as well.
#[derive(Clone, Debug)]
pub struct Flow {
    value: Box<[u8]>,
    /// The Data's name but its last component.
    data: Box<[u8]>,
    interest: Interest,
    /// Where octets of the last component and of the Nonce are in the Interest, and how many the former are.
    number_at: usize,
    nonce_at: usize,
    width: usize,
    /// Type and length of the last component, if it is the Data's.
    copied: Option<[u8; 2]>,
}

/// Where the Nonce is in the compact form.
const NONCE_AT: core::ops::Range<usize> = 1..5;

impl Flow {
    /// Returns the flow of an Interest that was decoded from a value, in front of these Data; `None` if other components of its name are
    /// the Data's last one, or it says more than most.
    pub fn new(value: &[u8], data: &Data, interest: &Interest) -> Option<Self> {
        let flags = *value.first()?;
        if flags & (COMPACT | HOP_LIMIT | LIFETIME) != COMPACT {
            return None;
        }
        let depth = data.name().len();
        // By what the name is, and not by how runs are cut, which may be in the middle of a component.
        let last = interest.name().elements().last()?;
        // Its type and its length take an octet each.
        let &[kind, width, ..] = tlv::split_short(last)?.0 else {
            return None;
        };
        let mut rest = &value[NONCE_AT.end..];
        let is_copied = loop {
            let (&first, after) = rest.split_first()?;
            if first & LITERAL != 0 {
                let (others, after) = take(after, usize::from(first & !LITERAL))?;
                if after.is_empty() {
                    if !others.ends_with(last) {
                        return None;
                    }
                    break false;
                }
                rest = after;
            } else {
                let end = usize::from(first >> 3) + usize::from(first & 7) + 1;
                if after.is_empty() && end == depth && data.name().elements().last() == Some(last) {
                    break true;
                } else if end >= depth {
                    return None;
                }
                rest = after;
            }
        };
        let copied = is_copied.then_some([kind, width]);
        let width = usize::from(width);
        let name = interest.name().value();
        let name_at = name.as_ptr() as usize - interest.wire().as_ptr() as usize;
        let number_at = name_at + name.len() - width;
        let flag_size = |flag| if flags & flag == 0 { 0 } else { 2 };
        let nonce_at = number_at + width + flag_size(CAN_BE_PREFIX) + flag_size(MUST_BE_FRESH) + 2;
        Some(Self {
            value: value.into(),
            data: data.name().parent().value()[..].into(),
            interest: interest.clone(),
            number_at,
            nonce_at,
            width,
            copied,
        })
    }

    /// Returns the Interest that a value stands for in front of `data`, if it is of this flow: what [`decode`] returns.
    pub fn decode(&self, value: &[u8], data: &Data) -> Option<Interest> {
        let (last, rest) = tlv::split_short(data.name().value().strip_prefix(&self.data[..])?)?;
        let told = if self.copied.is_some() { 0 } else { self.width };
        let fixed = NONCE_AT.end..value.len().checked_sub(told)?;
        let is_of_flow = value.len() == self.value.len()
            && value[0] == self.value[0]
            && value.get(fixed.clone())? == &self.value[fixed.clone()]
            && self.copied.is_none_or(|header| last.starts_with(&header))
            && rest.is_empty();
        if !is_of_flow {
            return None;
        }
        let nonce = &value[NONCE_AT];
        let number = match self.copied {
            Some(_) => &last[2..],
            None => &value[fixed.end..],
        };
        Some(self.interest.patched(
            (self.number_at, number),
            (self.nonce_at, nonce.try_into().ok()?),
        ))
    }
}

/// Octets of an Interest while it is put together, which mostly are on the stack.
type Buffer = SmallVec<[u8; 256]>;

/// Room for types and lengths of Interest and Name, in front of what is in them.
const MAX_HEADERS: usize = 8;

fn decode_compact(flags: u8, value: &[u8], data: &Name) -> Result<Interest, DecodeError> {
    let has = |flag| flags & flag != 0;
    let truncated = || DecodeError::new(FIELD, value.len(), Problem::Truncated);
    let rest = &value[1..];
    let (nonce, rest) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
    let (hops, rest) = take(rest, if has(HOP_LIMIT) { 1 } else { 0 }).ok_or_else(truncated)?;
    let (millis, rest) = take(rest, if has(LIFETIME) { 2 } else { 0 }).ok_or_else(truncated)?;
    let mut buffer = Buffer::from_slice(&[0; MAX_HEADERS]);
    decode_name(rest, value.len() - rest.len(), data, &mut buffer)?;
    let name = buffer.len() - MAX_HEADERS;
    let at = value.len() - rest.len();
    let error = |problem| DecodeError::new(FIELD, at, problem);
    if name == 0 {
        return Err(error(Problem::BadLength(0)));
    }
    let element = Element {
        element_type: tlv::NAME,
        start: 0,
        value: MAX_HEADERS..buffer.len(),
    };
    let digests = Name::check(&buffer, &element).map_err(|inner| error(inner.problem))?;
    if digests > 0 {
        // Only Interests with parameters have them, which stand whole.
        return Err(error(Problem::ParametersDigest));
    }
    if has(CAN_BE_PREFIX) {
        buffer.extend_from_slice(&[tlv::CAN_BE_PREFIX as u8, 0]);
    }
    if has(MUST_BE_FRESH) {
        buffer.extend_from_slice(&[tlv::MUST_BE_FRESH as u8, 0]);
    }
    let &[a, b, c, d] = nonce;
    buffer.extend_from_slice(&[tlv::NONCE as u8, 4, a, b, c, d]);
    match *millis {
        [0, low] => buffer.extend_from_slice(&[tlv::INTEREST_LIFETIME as u8, 1, low]),
        [high, low] => buffer.extend_from_slice(&[tlv::INTEREST_LIFETIME as u8, 2, high, low]),
        _ => {}
    }
    if let &[hops] = hops {
        buffer.extend_from_slice(&[tlv::HOP_LIMIT as u8, 1, hops]);
    }
    let start = put_header(&mut buffer, MAX_HEADERS, tlv::NAME as u8, name);
    let length = buffer.len() - start;
    let start = put_header(&mut buffer, start, WHOLE, length);
    let wire = patched(&buffer[start..], |_| {});
    let name_at = MAX_HEADERS - start;
    let millis = <[u8; 2]>::try_from(millis).ok();
    Ok(Interest::from_parts(
        wire,
        name_at..name_at + name,
        Parts {
            can_be_prefix: has(CAN_BE_PREFIX),
            must_be_fresh: has(MUST_BE_FRESH),
            nonce: Nonce(*nonce),
            lifetime: millis.map(|millis| Duration::from_millis(u16::from_be_bytes(millis).into())),
            hop_limit: hops.first().copied(),
        },
    ))
}

/// Puts a type and a length below 65 536 in front of what begins at `end`; returns where they begin.
fn put_header(buffer: &mut Buffer, end: usize, element_type: u8, length: usize) -> usize {
    let [.., high, low] = length.to_be_bytes();
    let long = [element_type, 253, high, low];
    let short = [element_type, low];
    let header = if length <= 252 { &short[..] } else { &long[..] };
    let start = end - header.len();
    buffer[start..end].copy_from_slice(header);
    start
}

fn take(octets: &[u8], count: usize) -> Option<(&[u8], &[u8])> {
    octets.split_at_checked(count)
}

/// Appends the octets of the components that runs stand for; `at` is where these are in the value.
fn decode_name(runs: &[u8], at: usize, data: &Name, name: &mut Buffer) -> Result<(), DecodeError> {
    // Where each of their components ends, as far as there are any.
    let mut ends = [0; MAX_START + MAX_COUNT + 1];
    let mut known = 1;
    for component in data.elements().take(MAX_START + MAX_COUNT) {
        ends[known] = ends[known - 1] + component.len();
        known += 1;
    }
    let ends = &ends[..known];
    let mut rest = runs;
    while let Some((&first, after)) = rest.split_first() {
        let error = |problem| DecodeError::new(FIELD, at + runs.len() - rest.len(), problem);
        if first & LITERAL != 0 {
            let length = usize::from(first & !LITERAL);
            let (others, after) = take(after, length)
                .filter(|(others, _)| !others.is_empty())
                .ok_or(error(Problem::Truncated))?;
            name.extend_from_slice(others);
            rest = after;
        } else {
            let (start, count) = (usize::from(first >> 3), usize::from(first & 7) + 1);
            let (Some(&from), Some(&to)) = (ends.get(start), ends.get(start + count)) else {
                return Err(error(Problem::ValueOutOfRange));
            };
            name.extend_from_slice(&data.value()[from..to]);
            rest = after;
        }
        if name.len() > MAX_HEADERS + MAX_NAME {
            return Err(error(Problem::ValueOutOfRange));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;
    use crate::signature::NullSigner;

    fn name(uri: &str) -> Name {
        uri.parse().expect("a name")
    }

    fn data(uri: &str) -> Data {
        Data::builder(name(uri)).content("x").sign(&NullSigner)
    }

    fn interest(uri: &str) -> Interest {
        Interest::builder(name(uri)).build(Nonce([1, 2, 3, 4]))
    }

    /// Flags and Nonce, `bob` as component 2, `call` as 1, `alice` as 0, `s` and `voice` as 3 and 4, and 3 octets of sequence number.
    #[test]
    fn a_name_is_told_by_the_name_of_the_data() {
        let data = data("/alice/call/bob/s/voice/seq=5");
        let interest = interest("/bob/call/alice/s/voice/seq=7");
        let value = encode(&interest, data.name());
        let expected = [
            0x80,
            1,
            2,
            3,
            4,
            2 << 3,
            1 << 3,
            0,
            3 << 3 | 1,
            0x83,
            58,
            1,
            7,
        ];
        assert_eq!(value, expected[..]);
        assert_eq!(decode(&value, &data), Ok(interest));
    }

    /// 50 packets a second of 80 octets of Opus with a MAC of 32, over IPv4 and UDP (28 octets): names of the paper, which have least in
    /// common, and of a session that both sides have in their names.
    #[test]
    fn a_voice_call_sends_an_eighth_less() {
        for (ours, theirs, bound) in [
            (
                "/com/abc/alice/voice/call/bob/seq=500",
                "/edu/xyz/bob/voice/call/alice/seq=502",
                0.16,
            ),
            (
                "/alice/call/bob/8J2k1/voice/seq=500",
                "/bob/call/alice/8J2k1/voice/seq=502",
                0.19,
            ),
        ] {
            let data = Data::builder(name(ours)).content(vec![0; 80]);
            let data = data.sign(&crate::signature::HmacSigner::new(
                &[7; 32],
                crate::KeyLocator::Name(name("/k")),
            ));
            let asked = Interest::builder(name(theirs)).lifetime(Duration::from_secs(1));
            let asked = asked.build(Nonce([9; 4]));
            let plain = data.wire().len() + asked.wire().len() + 2 * 28;
            let bundle = crate::LpPacket {
                piggybacked_interest: Some(encode(&asked, data.name())),
                ..crate::LpPacket::carrying(data.wire().clone())
            };
            let saved = 1.0 - (bundle.encode().len() + 28) as f64 / plain as f64;
            assert!((bound..bound + 0.01).contains(&saved), "{ours}: {saved}");
        }
    }

    /// Interests of each shape with Data of each shape, some with parts in common, come back as they were, and none longer.
    #[test]
    fn interests_come_back_as_they_were() {
        let mut random = Random::from_seed(1);
        let words = ["a", "bb", "seq=7", "v=300", "32=x", "cccccccccccccccccccc"];
        let mut forms = [0; 2];
        for _ in 0..5_000 {
            let mut uri = || {
                let count = 1 + random.below(24);
                let word = |_| words[random.below(words.len() as u64) as usize];
                (0..count)
                    .map(word)
                    .fold(String::new(), |uri, word| uri + "/" + word)
            };
            let (data, asked) = (data(&uri()), name(&uri()));
            let mut asked = Interest::builder(asked);
            if random.chance(0.5) {
                asked = asked.can_be_prefix();
            }
            if random.chance(0.5) {
                asked = asked.must_be_fresh();
            }
            if random.chance(0.5) {
                asked = asked.lifetime(Duration::from_millis(random.below(80_000)));
            }
            if random.chance(0.5) {
                asked = asked.hop_limit(random.below(256) as u8);
            }
            if random.chance(0.1) {
                asked = asked.forwarding_hint(name("/hint"));
            }
            let asked = asked.build(Nonce([7; 4]));
            let value = encode(&asked, data.name());
            assert!(value.len() <= asked.wire().len());
            forms[usize::from(value[0] & COMPACT != 0)] += 1;
            assert_eq!(decode(&value, &data).as_ref(), Ok(&asked));
            assert_eq!(Interest::decode(asked.wire().clone()), Ok(asked));
        }
        assert!(forms.iter().all(|&count| count > 500), "{forms:?}");
    }

    /// Each Interest of two flows as it is decoded by itself, also where numbers become longer, the Data's last component is the Interest's, or
    /// another flow comes in between; most from the one before.
    #[test]
    fn interests_of_a_flow_are_made_from_the_one_before() {
        for (ours, theirs, made_at_least) in [
            ("/alice/call/bob", "/bob/call/alice", 590),
            ("/a", "/b", 590),
            ("/a/seq=7", "/a/seq=8/x", 590),
            ("/a/b", "/a/seq=3/seq=4", 500),
        ] {
            for behind in [0, 2] {
                let (mut flow, mut made) = (None::<Flow>, 0);
                for number in 0..600_u64 {
                    let data = data(&format!("{ours}/seq={}", number + behind));
                    let asked = Interest::builder(name(&format!("{theirs}/seq={number}")));
                    let asked = asked.must_be_fresh().build(Nonce::from(number as u32 * 77));
                    let value = encode(&asked, data.name());
                    let next = flow.as_ref().and_then(|flow| flow.decode(&value, &data));
                    made += usize::from(next.is_some());
                    let next = next.unwrap_or_else(|| decode(&value, &data).expect("valid"));
                    assert_eq!(next, asked, "{ours} {theirs} {number}");
                    flow = Flow::new(&value, &data, &next).or(flow);
                    let other = super::tests::data("/other/seq=1");
                    assert!(
                        flow.as_ref()
                            .is_none_or(|flow| flow.decode(&value, &other).is_none())
                    );
                }
                assert!(made >= made_at_least, "{ours} {theirs}: {made}");
            }
        }
    }

    /// Runs that are cut in the middle of a component: what looks like the last one is none, and its length would change.
    #[test]
    fn a_flow_does_not_take_octets_for_a_component() {
        let data = data("/a/b");
        let value = |length| {
            let runs = [LITERAL | 2, 8, 1, LITERAL | 5, 9, 3, length, 98, 99];
            Bytes::from([&[COMPACT, 1, 2, 3, 4][..], &runs].concat())
        };
        let interest = decode(&value(2), &data).expect("/%09 and a component of type 3");
        assert_eq!(interest.name().len(), 2);
        assert!(decode(&value(3), &data).is_err());
        let flow = Flow::new(&value(2), &data, &interest);
        let made = flow.and_then(|flow| flow.decode(&value(3), &data));
        assert_eq!(made, None);
    }

    #[test]
    fn an_interest_within_data_is_covered_by_their_signature_and_found() {
        let asked = interest("/bob/call/seq=7");
        let plain = Data::builder(name("/alice/call/seq=5"));
        let with = plain
            .clone()
            .embed(encode(&asked, &name("/alice/call/seq=5")));
        let with = with.sign(&NullSigner);
        assert_eq!(decode(&Bytes::from_static(&[EMBEDDED]), &with), Ok(asked));
        let portion = with.signed_portion();
        assert!(portion.len() > plain.clone().sign(&NullSigner).signed_portion().len());
        let decoded = Data::decode(with.wire().clone()).expect("others ignore the element");
        assert_eq!(decoded.embedded_interest(), with.embedded_interest());
        let plain = plain.freshness(Duration::from_secs(1)).sign(&NullSigner);
        assert_eq!(plain.embedded_interest(), None);
    }

    #[test]
    fn other_values_are_errors() {
        let data = data("/a/b");
        let problem = |value: &[u8]| {
            decode(&Bytes::copy_from_slice(value), &data).map_err(|error| error.problem)
        };
        assert_eq!(problem(&[]), Err(Problem::Missing));
        assert_eq!(problem(&[EMBEDDED]), Err(Problem::Missing));
        assert_eq!(problem(&[100, 2, 80, 0]), Err(Problem::UnexpectedType(100)));
        assert_eq!(
            problem(&[0x90, 1, 2, 3, 4, 0]),
            Err(Problem::UnexpectedType(0x90))
        );
        assert_eq!(problem(&[0x80, 1, 2, 3]), Err(Problem::Truncated));
        assert_eq!(problem(&[0x8C, 1, 2, 3, 4, 9, 9]), Err(Problem::Truncated));
        let compact = |runs: &[u8]| problem(&[&[0x80, 1, 2, 3, 4], runs].concat());
        assert!(compact(&[1]).is_ok());
        assert_eq!(compact(&[2]), Err(Problem::ValueOutOfRange));
        assert_eq!(compact(&[1 << 3 | 1]), Err(Problem::ValueOutOfRange));
        assert_eq!(compact(&[0x80]), Err(Problem::Truncated));
        assert_eq!(compact(&[0x83, 8, 1]), Err(Problem::Truncated));
        assert_eq!(compact(&[0x82, 8, 1]), Err(Problem::Truncated));
        // The empty name, a name with a digest of parameters that are not there, and one that ends in the middle of a component.
        assert_eq!(compact(&[]), Err(Problem::BadLength(0)));
        let digest = [&[LITERAL | 34, 2, 32][..], &[7; 32]].concat();
        assert_eq!(compact(&digest), Err(Problem::ParametersDigest));
        assert_eq!(compact(&[LITERAL | 2, 8, 5]), Err(Problem::Truncated));
    }

    /// Sixteen components of 200 octets, many times over, would make a long Interest of a short field.
    #[test]
    fn a_short_field_makes_no_long_interest() {
        let long = format!("/{}", "x".repeat(200)).repeat(16);
        let data = data(&long);
        let value = [&[0x80, 1, 2, 3, 4][..], &[7].repeat(100)].concat();
        let error = decode(&value.into(), &data).map_err(|error| error.problem);
        assert_eq!(error, Err(Problem::ValueOutOfRange));
    }
}
