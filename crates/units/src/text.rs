//! Quantities as people write them: `10 Mbit/s`, `64 KiB`, `1.5 ms`, `10m30s`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Bitrate, ByteSize};

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not {}", self.text, self.expected)
    }
}

impl core::error::Error for ParseQuantityError {}

/// Units and what they are multiples of.
type Units = [(&'static str, u64)];

const RATES: &Units = &[
    ("", 1),
    ("bit/s", 1),
    ("bps", 1),
    ("k", 1_000),
    ("kbit/s", 1_000),
    ("kbps", 1_000),
    ("m", 1_000_000),
    ("mbit/s", 1_000_000),
    ("mbps", 1_000_000),
    ("g", 1_000_000_000),
    ("gbit/s", 1_000_000_000),
    ("gbps", 1_000_000_000),
];

const SIZES: &Units = &[
    ("", 1),
    ("b", 1),
    ("k", 1_000),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("t", 1_000_000_000_000),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

const COUNTS: &Units = &[
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
];

const SPANS: &Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Returns a decimal number times a unit, exactly; digits below the unit's last place are refused rather than lost.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut power: u64 = 1;
    for digit in fraction.bytes() {
        power = power.checked_mul(10)?;
        let part = u64::from(digit - b'0').checked_mul(unit)?;
        if part % power != 0 {
            return None;
        }
        total = total.checked_add(part / power)?;
    }
    Some(total)
}

/// Splits `12.5 Mbit/s rest` into number, unit and what follows the unit.
fn take(text: &str) -> (&str, &str, &str) {
    let number = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, rest) = text.split_at(number.unwrap_or(text.len()));
    let rest = rest.trim_start();
    let unit = rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace());
    let (unit, rest) = rest.split_at(unit.unwrap_or(rest.len()));
    (number, unit, rest.trim_start())
}

fn quantity(text: &str, units: &Units, expected: &'static str) -> Result<u64, ParseQuantityError> {
    let (number, unit, rest) = take(text.trim());
    let unit = unit.to_lowercase();
    units
        .iter()
        .find(|(name, _)| *name == unit && rest.is_empty())
        .and_then(|&(_, unit)| scaled(number, unit))
        .ok_or_else(|| ParseQuantityError {
            text: text.to_owned(),
            expected,
        })
}

impl FromStr for Bitrate {
    type Err = ParseQuantityError;

    /// Reads `10 Mbit/s`, `10Mbps`, `1.5M`, `200k`, or bits per second without a unit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        quantity(text, RATES, "a rate: write 10 Mbit/s, 200k or 1.5M").map(Self::bps)
    }
}

impl FromStr for ByteSize {
    type Err = ParseQuantityError;

    /// Reads `64 KiB`, `1 MB` or `1M` (1 000 000), or bytes without a unit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        quantity(text, SIZES, "a size: write 20480, 64 KiB, 500k or 10G").map(Self::bytes)
    }
}

/// Reads a count: `500`, `20k`, `1.5M`.
///
/// # Errors
/// If the text is none, or not whole.
pub fn parse_count(text: &str) -> Result<u64, ParseQuantityError> {
    quantity(text, COUNTS, "a whole number: write 500, 20k or 1.5M")
}

/// Reads `100ms`, `1.5 s`, `2m`, or several of them, `10m30s`.
///
/// # Errors
/// If it is none of these; a number without a unit is only accepted if it is zero.
pub fn parse_duration(text: &str) -> Result<Duration, ParseQuantityError> {
    let error = || ParseQuantityError {
        text: text.to_owned(),
        expected: "a time: write 100ms, 5s, 2m or 10m30s",
    };
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut nanos: u64 = 0;
    loop {
        let (number, unit, after) = take(rest);
        let units = SPANS.iter().find(|(name, _)| *name == unit);
        let part = units.and_then(|&(_, unit)| scaled(number, unit));
        let total = part.and_then(|part| nanos.checked_add(part));
        nanos = total.ok_or_else(error)?;
        if after.is_empty() {
            return Ok(Duration::from_nanos(nanos));
        }
        rest = after;
    }
}

impl<'de> Deserialize<'de> for Bitrate {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Bitrate {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        sink.collect_str(&format_args!("{} bit/s", self.as_bps()))
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        sink.collect_str(&format_args!("{} B", self.as_bytes()))
    }
}

/// A [`Duration`] in a configuration file, as text: `#[serde(with = "namecast_units::duration")]`.
pub mod duration {
    use super::*;

    /// Reads what [`parse_duration`] reads.
    ///
    /// # Errors
    /// If the text is not a time.
    pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(source)?;
        parse_duration(&text).map_err(serde::de::Error::custom)
    }

    /// Writes whole nanoseconds.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn serialize<S: Serializer>(span: &Duration, sink: S) -> Result<S::Ok, S::Error> {
        sink.collect_str(&format_args!("{}ns", span.as_nanos()))
    }
}

/// A [`Duration`] that may be absent: `#[serde(default, with = "namecast_units::optional_duration")]`.
pub mod optional_duration {
    use super::*;

    /// Reads what [`parse_duration`] reads.
    ///
    /// # Errors
    /// If the text is not a time.
    pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Duration>, D::Error> {
        super::duration::deserialize(source).map(Some)
    }

    /// Writes whole nanoseconds, or nothing.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn serialize<S: Serializer>(span: &Option<Duration>, sink: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::duration::serialize(span, sink),
            None => sink.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_exactly() {
        let bps = |text: &str| text.parse::<Bitrate>().map(Bitrate::as_bps).ok();
        assert_eq!(bps("10 Mbit/s"), Some(10_000_000));
        assert_eq!(bps("1.5M"), Some(1_500_000));
        assert_eq!(bps("200k"), Some(200_000));
        assert_eq!(bps("1Gbps"), Some(1_000_000_000));
        assert_eq!(bps("0.0015 kbit/s"), None);
        for bad in [
            "",
            "M",
            "1..5M",
            "-3",
            "5 lightyears",
            "1M 2M",
            "99999999999G",
        ] {
            assert_eq!(bps(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_tell_thousands_from_powers_of_two() {
        let bytes = |text: &str| text.parse::<ByteSize>().map(ByteSize::as_bytes).ok();
        assert_eq!(bytes("20480"), Some(20_480));
        assert_eq!(bytes("128 KiB"), Some(131_072));
        assert_eq!(bytes("128 kB"), Some(128_000));
        assert_eq!(bytes("1.5 MiB"), Some(1_572_864));
        assert_eq!(bytes("500k"), Some(500_000));
        assert_eq!(bytes("2T"), Some(2_000_000_000_000));
        assert_eq!(bytes("3 packets"), None);
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(parse_count("64"), Ok(64));
        assert_eq!(parse_count("1.5M"), Ok(1_500_000));
        assert!(parse_count("1.5").is_err() && parse_count("1e9").is_err());
    }

    #[test]
    fn times_may_have_several_parts() {
        let nanos = |text: &str| parse_duration(text).map(|span| span.as_nanos()).ok();
        assert_eq!(nanos("8 ms"), Some(8_000_000));
        assert_eq!(nanos("0.05ms"), Some(50_000));
        assert_eq!(nanos("10m30s"), Some(630_000_000_000));
        assert_eq!(nanos("1h 2min 3s"), Some(3_723_000_000_000));
        assert_eq!(nanos("0"), Some(0));
        for bad in ["", "5", "ms", "1x", "s5", "1.5ns"] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_error_says_what_to_write() {
        let error = "fast".parse::<Bitrate>().unwrap_err().to_string();
        assert_eq!(error, "'fast' is not a rate: write 10 Mbit/s, 200k or 1.5M");
    }
}
