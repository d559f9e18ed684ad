//! Times and marks of packets, which ffmpeg writes as lines of text in its format `framecrc`: what NUT has no room for.
//!
//! ```text
//! #tb 0: 1/12800
//! 0,    1278976,    1280000,      512,     4586, 0x92dc8c18, F=0x5, S=1,       10
//! stream   DTS        PTS      duration    octets             flags  side data
//! ```

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use super::super::ffmpeg::OutputReader;

/// Longest line that is read, in octets.
const MAX_LINE: usize = 4_096;
/// Most streams.
const MAX_STREAMS: usize = 16;
/// The flags of ffmpeg's packets: it decodes by itself, and it is decoded but not shown.
const KEY: u32 = 1;
const DISCARDED: u32 = 4;
/// Value of an unknown time.
const NO_TIME: i64 = i64::MIN;
/// Size of a palette, which some codecs send along with each packet, and least size of parameters, in octets.
const PALETTE: u32 = 1_024;
const MIN_PARAMETERS: u32 = 16;

/// Line about one packet. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketLine {
    pub(super) stream: usize,
    /// When it is decoded.
    pub(super) decoded_at: Option<i64>,
    /// Duration; 0: unknown.
    pub(super) duration: u64,
    /// Octets.
    pub(super) size: usize,
    pub(super) key: bool,
    /// An edit list cuts it away: it only serves to decode what follows.
    pub(super) is_cut: bool,
    /// Something goes along with it: new parameters, or how it is encrypted.
    pub(super) has_side_data: bool,
}

/// Hands the lines of `pipe` to `take`, until they end or it returns false.
pub(super) fn read(pipe: OutputReader, mut take: impl FnMut(PacketLine) -> bool) {
    let (mut pipe, mut lines, mut line) = (BufReader::new(pipe), Lines::default(), Vec::new());
    loop {
        line.clear();
        match (&mut pipe)
            .take(MAX_LINE as u64)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let text = String::from_utf8_lossy(&line);
        let packet = lines.read(text.trim_end());
        if packet.is_some_and(|packet| !take(packet)) {
            return;
        }
    }
}

/// Parser of lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Numerator and denominator of the unit of times, in seconds.
    units: BTreeMap<usize, (i64, i64)>,
}

impl Lines {
    /// Returns what a line says; `None` if it is of no packet.
    pub(super) fn read(&mut self, line: &str) -> Option<PacketLine> {
        if let Some(rest) = line.strip_prefix("#tb ") {
            self.read_unit(rest);
            return None;
        }
        let mut parts = line.split(',').map(str::trim);
        let mut number = || parts.next()?.parse::<i64>().ok();
        let stream = usize::try_from(number()?).ok()?;
        let unit = *self.units.get(&stream)?;
        let (decoded_at, _presented_at) = (number()?, number()?);
        let (duration, size) = (number()?, usize::try_from(number()?).ok()?);
        let (mut flags, mut has_side_data) = (KEY, false);
        // The checksum stands before them.
        let mut parts = parts.skip(1);
        while let Some(part) = parts.next() {
            if let Some(hexadecimal) = part.strip_prefix("F=0x") {
                flags = u32::from_str_radix(hexadecimal, 16).ok()?;
            } else if part.starts_with("S=") {
                // Sizes; newer versions name each, and add its checksum.
                let mut sizes = parts.by_ref().filter_map(|part| part.parse::<u32>().ok());
                has_side_data = sizes.any(|size| size >= MIN_PARAMETERS && size != PALETTE);
            }
        }
        Some(PacketLine {
            stream,
            decoded_at: micros(decoded_at, unit),
            duration: micros(duration, unit)
                .and_then(|it| it.try_into().ok())
                .unwrap_or(0),
            size,
            key: flags & KEY != 0,
            is_cut: flags & DISCARDED != 0,
            has_side_data,
        })
    }

    /// Reads `0: 1/12800`.
    fn read_unit(&mut self, text: &str) {
        let unit = || {
            let (stream, unit) = text.split_once(": ")?;
            let (num, den) = unit.trim().split_once('/')?;
            let unit: (i64, i64) = (num.parse().ok()?, den.parse().ok()?);
            let stream = stream.parse().ok()?;
            (unit.0 > 0 && unit.1 > 0 && stream < MAX_STREAMS).then_some((stream, unit))
        };
        self.units.extend(unit());
    }
}

/// Returns a count of units in microseconds, to the nearest.
fn micros(count: i64, (num, den): (i64, i64)) -> Option<i64> {
    let scaled = i128::from(count) * i128::from(num) * 1_000_000;
    let den = i128::from(den);
    let nearest = (scaled + den / 2).div_euclid(den);
    i64::try_from(nearest).ok().filter(|_| count != NO_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1278976 of 12800 a second are 99.92 s, 512 are 40 ms; 4408976 of 44100 are 99.976780 s.
    #[test]
    fn lines_of_both_versions_are_understood() {
        let mut lines = Lines::default();
        assert_eq!(lines.read("#tb 0: 1/12800"), None);
        assert_eq!(lines.read("#tb 1: 1/44100"), None);
        assert_eq!(lines.read("#dimensions 0: 320x180"), None);
        let first = lines.read("0,    1278976,    1280000,      512,     4586, 0x92dc8c18");
        let expected = PacketLine {
            stream: 0,
            decoded_at: Some(99_920_000),
            duration: 40_000,
            size: 4_586,
            key: true,
            is_cut: false,
            has_side_data: false,
        };
        assert_eq!(first, Some(expected));
        let sound =
            "1,    4408976,    4408976,     1024,      258, 0x2c5b786a, F=0x5, S=1,       10";
        let sound = lines.read(sound).unwrap();
        assert!(sound.key && sound.is_cut && !sound.has_side_data);
        assert_eq!(sound.decoded_at, Some(99_976_780));
        let named =
            "0, -1024, 0, 512, 4586, 0xf845cd9e, F=0x0, S=1, Encryption info, 72, 0x4d960fdd";
        let named = lines.read(named).unwrap();
        assert!(!named.key && named.has_side_data);
        assert_eq!(named.decoded_at, Some(-80_000));
        let palette = "0, 0, 0, 512, 9, 0xf845cd9e, S=1, Palette, 1024, 0x4d960fdd";
        assert!(!lines.read(palette).unwrap().has_side_data);
    }

    #[test]
    fn what_is_no_packet_is_passed_over() {
        let mut lines = Lines::default();
        lines.read("#tb 0: 1/0");
        lines.read("#tb 99: 1/25");
        for line in [
            "",
            "0",
            "0, 1, 2, 3, 4, 0x0",
            "x, 1, 2, 3, 4, 0x0",
            "#tb",
            "#tb 0: 1",
        ] {
            assert_eq!(lines.read(line), None, "{line}");
        }
        lines.read("#tb 0: 1/25");
        let line = "0, -9223372036854775808, 0, -1, 4, 0x0";
        let packet = lines.read(line).unwrap();
        assert_eq!((packet.decoded_at, packet.duration), (None, 0));
        assert_eq!(lines.read("0, 1, 2, 3, -4, 0x0"), None);
        let far = lines.read("0, 9223372036854775807, 0, 1, 4, 0x0").unwrap();
        assert_eq!(far.decoded_at, None);
    }
}
