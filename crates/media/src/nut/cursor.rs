//! NUT's numbers.

use super::{MAX_HEADER, NutError};

/// Number that 64 bits hold takes at most ten octets of seven bits.
const MAX_VARLEN: usize = 10;
/// Packets longer than this carry a checksum behind their length.
const CHECKED_ABOVE: u64 = 4_096;
/// Reads NUT's numbers from octets that may end early.
pub(super) struct Cursor<'a> {
    octets: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    pub(super) fn left(&self) -> usize {
        self.octets.len().saturating_sub(self.at)
    }

    pub(super) fn octet(&mut self) -> Option<u8> {
        let octet = *self.octets.get(self.at)?;
        self.at += 1;
        Some(octet)
    }

    pub(super) fn skip(&mut self, count: usize) -> bool {
        let there = self.left() >= count;
        self.at += count;
        there
    }

    /// A number in groups of seven bits, `None` if it is not whole.
    pub(super) fn number(&mut self) -> Result<Option<u64>, NutError> {
        let mut number = 0_u64;
        for _ in 0..MAX_VARLEN {
            let Some(octet) = self.octet() else {
                return Ok(None);
            };
            if number >> 57 != 0 {
                return Err(NutError::OutOfRange("number"));
            }
            number = number << 7 | u64::from(octet & 0x7f);
            if octet & 0x80 == 0 {
                return Ok(Some(number));
            }
        }
        Err(NutError::OutOfRange("number"))
    }

    pub(super) fn required(&mut self, field: &'static str) -> Result<u64, NutError> {
        self.number()?.ok_or(NutError::OutOfRange(field))
    }

    pub(super) fn signed(&mut self, field: &'static str) -> Result<i64, NutError> {
        let number = self.required(field)?.saturating_add(1);
        let half = i64::try_from(number >> 1).map_err(|_| NutError::OutOfRange(field))?;
        Ok(if number & 1 == 1 { -half } else { half })
    }

    /// Octets that their count precedes.
    pub(super) fn octets(&mut self, field: &'static str) -> Result<&'a [u8], NutError> {
        let length = usize::try_from(self.required(field)?);
        let length = length.map_err(|_| NutError::OutOfRange(field))?;
        let from = self.at;
        if !(length <= MAX_HEADER && self.skip(length)) {
            return Err(NutError::OutOfRange(field));
        }
        let octets = self.octets.get(from..self.at);
        octets.ok_or(NutError::OutOfRange(field))
    }

    /// Start code and length of a header packet, `None` if they are not whole.
    pub(super) fn packet_start(&mut self) -> Result<Option<(u64, usize)>, NutError> {
        let Some(start) = self.octets.first_chunk() else {
            return Ok(None);
        };
        let start = u64::from_be_bytes(*start);
        self.at = 8;
        let Some(length) = self.number()? else {
            return Ok(None);
        };
        if length > CHECKED_ABOVE && !self.skip(4) {
            return Ok(None);
        }
        match usize::try_from(length) {
            Ok(length) if length <= MAX_HEADER => Ok(Some((start, length))),
            _ => Err(NutError::OutOfRange("packet length")),
        }
    }
}
