//! Type-length-value elements: the grammar everything on the wire is made of.
//!
//! NDN Packet Format v0.3, section "Type-Length-Value (TLV) Encoding". Decoding is strict about shortest form.

use core::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::{DecodeError, Problem};

/// Interest packet.
pub const INTEREST: u32 = 5;
/// Data packet.
pub const DATA: u32 = 6;
/// Name.
pub const NAME: u32 = 7;
/// Nonce of an Interest.
pub const NONCE: u32 = 10;
/// InterestLifetime in milliseconds.
pub const INTEREST_LIFETIME: u32 = 12;
/// MustBeFresh.
pub const MUST_BE_FRESH: u32 = 18;
/// MetaInfo.
pub const META_INFO: u32 = 20;
/// Content.
pub const CONTENT: u32 = 21;
/// SignatureInfo of Data.
pub const SIGNATURE_INFO: u32 = 22;
/// SignatureValue of Data.
pub const SIGNATURE_VALUE: u32 = 23;
/// ContentType.
pub const CONTENT_TYPE: u32 = 24;
/// FreshnessPeriod in milliseconds.
pub const FRESHNESS_PERIOD: u32 = 25;
/// FinalBlockId.
pub const FINAL_BLOCK_ID: u32 = 26;
/// SignatureType.
pub const SIGNATURE_TYPE: u32 = 27;
/// KeyLocator.
pub const KEY_LOCATOR: u32 = 28;
/// KeyDigest.
pub const KEY_DIGEST: u32 = 29;
/// ForwardingHint.
pub const FORWARDING_HINT: u32 = 30;
/// CanBePrefix.
pub const CAN_BE_PREFIX: u32 = 33;
/// HopLimit.
pub const HOP_LIMIT: u32 = 34;
/// ApplicationParameters.
pub const APPLICATION_PARAMETERS: u32 = 36;
/// SignatureNonce of a signed Interest.
pub const SIGNATURE_NONCE: u32 = 38;
/// SignatureTime of a signed Interest.
pub const SIGNATURE_TIME: u32 = 40;
/// SignatureSeqNum of a signed Interest.
pub const SIGNATURE_SEQ_NUM: u32 = 42;
/// InterestSignatureInfo.
pub const INTEREST_SIGNATURE_INFO: u32 = 44;
/// InterestSignatureValue.
pub const INTEREST_SIGNATURE_VALUE: u32 = 46;
/// An Interest within the MetaInfo: ours, of the types that the packet format leaves to applications there, and not critical.
pub const EMBEDDED_INTEREST: u32 = 246;

/// Returns whether an element that is not understood voids its packet: types up to 31, and odd ones.
///
/// Type 126, which the packet format reserves to be ignored, is thereby not critical either.
pub const fn is_critical(element_type: u32) -> bool {
    element_type <= 31 || element_type % 2 == 1
}

/// One element, by its place in the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// TLV-TYPE.
    pub element_type: u32,
    /// Offset of the element's first octet.
    pub start: usize,
    /// Where the TLV-VALUE is.
    pub value: Range<usize>,
}

impl Element {
    /// Returns the element whole, type and length included.
    pub fn whole(&self) -> Range<usize> {
        self.start..self.value.end
    }

    /// Reads the value as a NonNegativeInteger: 1, 2, 4 or 8 octets, shortest or not.
    ///
    /// # Errors
    /// [`Problem::BadLength`] for any other length.
    #[inline]
    pub fn number(&self, field: &'static str, octets: &[u8]) -> Result<u64, DecodeError> {
        read_number(&octets[self.value.clone()])
            .ok_or_else(|| self.error(field, Problem::BadLength(self.value.len())))
    }

    /// Returns the value, if it is exactly `N` octets long.
    ///
    /// # Errors
    /// [`Problem::BadLength`] for any other length.
    pub fn array<const N: usize>(
        &self,
        field: &'static str,
        octets: &[u8],
    ) -> Result<[u8; N], DecodeError> {
        octets[self.value.clone()]
            .try_into()
            .map_err(|_| self.error(field, Problem::BadLength(self.value.len())))
    }

    /// Checks that the element is a flag: present, without a value.
    ///
    /// # Errors
    /// [`Problem::BadLength`] if it has one.
    pub fn flag(&self, field: &'static str) -> Result<(), DecodeError> {
        match self.value.len() {
            0 => Ok(()),
            len => Err(self.error(field, Problem::BadLength(len))),
        }
    }

    /// Returns an error about this element.
    pub const fn error(&self, field: &'static str, problem: Problem) -> DecodeError {
        DecodeError::new(field, self.start, problem)
    }
}

/// Returns a NonNegativeInteger of 1, 2, 4 or 8 octets; `None` for any other length.
#[inline]
pub fn read_number(octets: &[u8]) -> Option<u64> {
    match *octets {
        [octet] => Some(u64::from(octet)),
        [a, b] => Some(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_be_bytes([a, b, c, d]))),
        _ => octets.try_into().map(u64::from_be_bytes).ok(),
    }
}

/// Returns the first element of `octets`, whole, and what follows it, if its type and its length take an octet each: nearly all
/// components of names do.
#[inline(always)]
pub fn split_short(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    match *octets {
        [1..=252, length @ 0..=252, ..] => octets.split_at_checked(2 + usize::from(length)),
        _ => None,
    }
}

/// Walks over elements that stand one behind another.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Where in the packet `rest` begins.
    position: usize,
}

impl<'a> Reader<'a> {
    /// Reads all of `octets`.
    #[inline]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self {
            rest: octets,
            position: 0,
        }
    }

    /// Reads the elements inside `range` of the packet `octets`; offsets count from the packet's start.
    #[inline]
    pub fn within(octets: &'a [u8], range: Range<usize>) -> Self {
        Self {
            position: range.start,
            rest: &octets[range],
        }
    }

    /// Offset of the next element.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns whether all elements have been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// TLV-TYPE of the next element of `field`, without moving on.
    ///
    /// # Errors
    /// If there is none, or it is malformed.
    #[inline]
    pub fn peek_type(&self, field: &'static str) -> Result<u32, DecodeError> {
        match *self.rest {
            [first @ 1..=252, ..] => Ok(u32::from(first)),
            _ => self.clone().type_number(field),
        }
    }

    /// The next element of `field`, or `None` at the end.
    ///
    /// # Errors
    /// If the element is malformed or reaches over the end.
    // A call would pass the element, and room for an error, through memory: that takes longer than reading it.
    // The page is to be small, and decodes few packets.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn element(&mut self, field: &'static str) -> Result<Option<Element>, DecodeError> {
        // Nearly all elements have a type of one octet, and a length of one or three; fields of link headers have types of three.
        let (element_type, header, length) = match *self.rest {
            [element_type @ 1..=252, length @ 0..=252, ..] => {
                (element_type.into(), 2, length.into())
            }
            [element_type @ 1..=252, 253, high @ 1..=255, low, ..] => (
                element_type.into(),
                4,
                usize::from(high) << 8 | usize::from(low),
            ),
            [253, high @ 1..=255, low, length @ 0..=252, ..] => {
                (u16::from_be_bytes([high, low]), 4, length.into())
            }
            [] => return Ok(None),
            _ => return self.long_element(field),
        };
        let Some(rest) = self.rest.get(header + length..) else {
            return self.long_element(field);
        };
        let start = self.position;
        let value = start + header..start + header + length;
        self.rest = rest;
        self.position = value.end;
        Ok(Some(Element {
            element_type: u32::from(element_type),
            start,
            value,
        }))
    }

    /// Returns the next element, of which there is at least an octet, whatever its size.
    #[cold]
    #[inline(never)]
    fn long_element(&mut self, field: &'static str) -> Result<Option<Element>, DecodeError> {
        let start = self.position;
        let element_type = self.type_number(field)?;
        let length = self.variable_number(field)?;
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length <= self.rest.len())
            .ok_or(DecodeError::new(field, start, Problem::Truncated))?;
        let value = self.position..self.position + length;
        self.skip(length);
        Ok(Some(Element {
            element_type,
            start,
            value,
        }))
    }

    fn skip(&mut self, octets: usize) {
        self.rest = &self.rest[octets..];
        self.position += octets;
    }

    /// Returns the one element of type `element_type` that fills the input whole.
    ///
    /// # Errors
    /// If it is another type, malformed, or followed by more octets.
    #[inline]
    pub fn only(mut self, field: &'static str, element_type: u32) -> Result<Element, DecodeError> {
        let element =
            self.element(field)?
                .ok_or(DecodeError::new(field, self.position, Problem::Missing))?;
        if element.element_type != element_type {
            return Err(element.error(field, Problem::UnexpectedType(element.element_type)));
        }
        match self.rest.len() {
            0 => Ok(element),
            more => Err(DecodeError::new(
                field,
                self.position,
                Problem::Trailing(more),
            )),
        }
    }

    fn type_number(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let start = self.position;
        let number = self.variable_number(field)?;
        u32::try_from(number)
            .ok()
            .filter(|&number| number != 0)
            .ok_or(DecodeError::new(
                field,
                start,
                Problem::TypeOutOfRange(number),
            ))
    }

    fn variable_number(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let start = self.position;
        let error = |problem| DecodeError::new(field, start, problem);
        let (&first, rest) = self.rest.split_first().ok_or(error(Problem::Truncated))?;
        let (width, least) = match first {
            0..=252 => (0, 0),
            253 => (2, 253),
            254 => (4, 0x1_0000),
            255 => (8, 0x1_0000_0000),
        };
        let number = match width {
            0 => u64::from(first),
            _ => rest
                .get(..width)
                .and_then(read_number)
                .ok_or(error(Problem::Truncated))?,
        };
        if number < least {
            return Err(error(Problem::NotShortest));
        }
        self.skip(1 + width);
        Ok(number)
    }
}

/// Walks over the fields of one structure in the order its definition gives.
///
/// Unknown, repeated or misplaced elements are refused where critical and skipped where not.
#[derive(Debug)]
pub struct Fields<'a> {
    reader: Reader<'a>,
    structure: &'static str,
    order: &'static [u32],
    /// How many types of `order` can no longer come.
    passed: usize,
    repeatable: Option<u32>,
}

impl<'a> Fields<'a> {
    /// Reads fields of `structure`, whose known types are `order`, from `reader`.
    pub const fn new(reader: Reader<'a>, structure: &'static str, order: &'static [u32]) -> Self {
        Self {
            reader,
            structure,
            order,
            passed: 0,
            repeatable: None,
        }
    }

    /// Lets fields of type `element_type` come more than once in a row.
    pub const fn repeating(mut self, element_type: u32) -> Self {
        self.repeatable = Some(element_type);
        self
    }

    /// The next field that is known and in its place, or `None` at the end.
    ///
    /// # Errors
    /// On a malformed element, or a critical one that is unknown or out of place.
    // As for `Reader::element`.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn field(&mut self) -> Result<Option<Element>, DecodeError> {
        while let Some(element) = self.reader.element(self.structure)? {
            let known = self.order[self.passed..]
                .iter()
                .position(|&known| known == element.element_type);
            if let Some(index) = known {
                let again = self.repeatable == Some(element.element_type);
                self.passed += index + usize::from(!again);
                return Ok(Some(element));
            }
            if is_critical(element.element_type) {
                let problem = Problem::Critical(element.element_type);
                return Err(element.error(self.structure, problem));
            }
        }
        Ok(None)
    }
}

/// Returns the octets that a number takes as TLV-TYPE or TLV-LENGTH.
#[inline]
pub const fn variable_number_size(number: u64) -> usize {
    match number {
        0..=252 => 1,
        253..=0xFFFF => 3,
        0x1_0000..=0xFFFF_FFFF => 5,
        _ => 9,
    }
}

/// Returns the octets of an element whose value has `length` octets.
#[inline]
pub const fn element_size(element_type: u32, length: usize) -> usize {
    variable_number_size(element_type as u64) + variable_number_size(length as u64) + length
}

/// Returns the octets of the shortest NonNegativeInteger.
#[inline]
pub const fn number_size(number: u64) -> usize {
    match number {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// Appends elements to a buffer, shortest form always.
#[derive(Debug, Default)]
pub struct Writer(BytesMut);

impl Writer {
    /// A writer with room for `capacity` octets.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(BytesMut::with_capacity(capacity))
    }

    /// Returns the octets written so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the octets written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Writes TLV-TYPE and TLV-LENGTH; `length` octets of value must follow.
    pub fn header(&mut self, element_type: u32, length: usize) -> &mut Self {
        self.variable_number(u64::from(element_type));
        self.variable_number(length as u64);
        self
    }

    /// Writes octets as they are.
    pub fn raw(&mut self, octets: &[u8]) -> &mut Self {
        self.0.put_slice(octets);
        self
    }

    /// Writes a whole element.
    pub fn element(&mut self, element_type: u32, value: &[u8]) -> &mut Self {
        self.header(element_type, value.len()).raw(value)
    }

    /// Writes an element whose value is the shortest NonNegativeInteger.
    pub fn number(&mut self, element_type: u32, number: u64) -> &mut Self {
        let octets = number.to_be_bytes();
        self.element(element_type, &octets[8 - number_size(number)..])
    }

    /// Writes an element whose value `write` writes.
    pub fn nested(&mut self, element_type: u32, write: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        write(&mut inner);
        self.element(element_type, &inner.0)
    }

    /// Returns the octets written.
    pub fn finish(self) -> Bytes {
        self.0.freeze()
    }

    fn variable_number(&mut self, number: u64) {
        match variable_number_size(number) {
            1 => self.0.put_u8(number as u8),
            3 => {
                self.0.put_u8(253);
                self.0.put_u16(number as u16);
            }
            5 => {
                self.0.put_u8(254);
                self.0.put_u32(number as u32);
            }
            _ => {
                self.0.put_u8(255);
                self.0.put_u64(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_number(octets: &[u8]) -> Result<u64, DecodeError> {
        let mut reader = Reader::new(octets);
        reader.variable_number("number")
    }

    #[test]
    fn numbers_are_read_in_their_shortest_form_only() {
        assert_eq!(only_number(&[252]), Ok(252));
        assert_eq!(only_number(&[253, 0, 253]), Ok(253));
        assert_eq!(only_number(&[254, 0, 1, 0, 0]), Ok(65_536));
        assert_eq!(only_number(&[255, 0, 0, 0, 1, 0, 0, 0, 0]), Ok(1 << 32));
        let refused = |octets: &[u8]| only_number(octets).unwrap_err().problem;
        assert_eq!(refused(&[253, 0, 252]), Problem::NotShortest);
        assert_eq!(refused(&[254, 0, 0, 255, 255]), Problem::NotShortest);
        assert_eq!(
            refused(&[255, 0, 0, 0, 0, 255, 255, 255, 255]),
            Problem::NotShortest
        );
        assert_eq!(refused(&[253, 1]), Problem::Truncated);
        assert_eq!(refused(&[]), Problem::Truncated);
    }

    #[test]
    fn a_length_that_reaches_over_the_end_names_the_element() {
        let octets = [8, 1, 0xAA, 8, 9, 0xBB];
        let mut reader = Reader::new(&octets);
        assert!(reader.element("component").unwrap().is_some());
        let error = reader.element("component").unwrap_err();
        assert_eq!(error, DecodeError::new("component", 3, Problem::Truncated));
    }

    #[test]
    fn only_even_types_above_31_may_be_skipped() {
        assert!(is_critical(30) && is_critical(31) && is_critical(33) && is_critical(253));
        assert!(!is_critical(32) && !is_critical(126) && !is_critical(240));
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::default();
        writer.number(12, 4_000).element(800, &[7; 300]);
        let octets = writer.finish();
        assert_eq!(&octets[..4], [12, 2, 0x0F, 0xA0]);
        let mut reader = Reader::new(&octets);
        let number = reader.element("a").unwrap().unwrap();
        assert_eq!(number.number("a", &octets), Ok(4_000));
        let long = reader.element("b").unwrap().unwrap();
        assert_eq!((long.element_type, long.value.len()), (800, 300));
        assert_eq!(long.whole().len(), element_size(800, 300));
        assert!(reader.is_empty());
    }
}
