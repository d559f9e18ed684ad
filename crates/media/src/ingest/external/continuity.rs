//! Makes the times of an input go on evenly where the source's jump: at splices, after wraps, where one file follows another.

use namecast_units::{Duration, Timestamp};

use super::demuxer::Packet;

/// Decoding times that go back by more than this jump.
const MAX_BACK: u64 = 100_000;
/// Longest pause of a live source that is one although nothing waited for it, and of a file whose format allows times to jump.
const MAX_LIVE_GAP: u64 = 1_000_000;
const MAX_FILE_GAP: u64 = 10_000_000;
/// A jump by which a stream lands so near to where it should be has been made by another stream before.
const SAME_JUMP: u64 = 1_000_000;
/// Formats with one time for the whole file: a gap in it is meant.
const ONE_TIME: [&str; 6] = ["mov", "matroska", "avi", "nut", "ogg", "asf"];

/// Which pauses of an input are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gaps {
    /// Gaps during which no packet arrived.
    #[default]
    Live,
    /// Short ones.
    File,
    /// All.
    Meant,
}

impl Gaps {
    /// Returns which pauses of a file are meant, by ffmpeg's name of its format.
    pub(super) fn of_file(format: &str) -> Self {
        let mut names = format.split(',');
        match names.any(|name| ONE_TIME.contains(&name)) {
            true => Self::Meant,
            false => Self::File,
        }
    }
}

/// Where a stream is.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// Decoding time of its last packet, and how long that one lasts, in microseconds.
    last: u64,
    duration: u64,
    arrived_at: Timestamp,
    /// Added to the source's times.
    shift: i64,
}

/// Follows the times of all streams of an input.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    pub(super) gaps: Gaps,
    /// Stream of pictures in the order in which they are shown, to which ffmpeg gave presentation times as if they were reordered.
    pub(super) in_order: Option<usize>,
    tracks: Vec<Option<Track>>,
}

/// Formats that state decoding times only. For H.264, ffmpeg's option `genpts` takes the next packet's as presentation time,
/// whether or not pictures are reordered.
const WITHOUT_PRESENTATION: [&str; 2] = ["avi", "asf"];

/// Returns whether pictures that are decoded `decode_delay` pictures before they are shown have presentation times of their own in a
/// format of ffmpeg.
pub(super) fn states_presentation(format: &str, decode_delay: u64) -> bool {
    decode_delay > 0 || !WITHOUT_PRESENTATION.contains(&format)
}

impl Continuity {
    /// Puts a packet into its place. Decoding times of a stream never go back.
    pub(super) fn place(&mut self, packet: &mut Packet) {
        let known = self.tracks.get(packet.stream).copied().flatten();
        let mut others = self.tracks.iter().flatten().map(|track| track.shift);
        let shift = match known {
            None => others.next_back().unwrap_or(0),
            Some(track) if self.is_jump(&track, packet) => {
                let expected = track.last.saturating_add(track.duration);
                let lands_near =
                    |shift: &i64| moved(packet.dts, *shift).abs_diff(expected) <= SAME_JUMP;
                let needed = difference(expected, packet.dts);
                others.rfind(lands_near).unwrap_or(needed)
            }
            Some(track) => track.shift,
        };
        let dts = moved(packet.dts, shift);
        packet.pts = moved(packet.pts, shift);
        packet.dts = known.map_or(dts, |track| dts.max(track.last));
        self.present(packet);
        if self.tracks.len() <= packet.stream {
            self.tracks.resize(packet.stream + 1, None);
        }
        let track = Track {
            last: packet.dts,
            duration: packet.duration,
            arrived_at: packet.arrived_at,
            shift,
        };
        if let Some(place) = self.tracks.get_mut(packet.stream) {
            *place = Some(track);
        }
    }

    /// Makes the presentation time of a picture its decoding time, where both are one.
    pub(super) fn present(&self, packet: &mut Packet) {
        if self.in_order == Some(packet.stream) {
            packet.pts = packet.dts;
        }
    }

    fn is_jump(&self, track: &Track, packet: &Packet) -> bool {
        let at = moved(packet.dts, track.shift);
        if at.saturating_add(MAX_BACK) < track.last {
            return true;
        }
        let gap = at.saturating_sub(track.last.saturating_add(track.duration));
        let waited = packet.arrived_at.since(track.arrived_at);
        match self.gaps {
            Gaps::Live => Duration::from_micros(gap.saturating_sub(MAX_LIVE_GAP)) > waited * 2,
            Gaps::File => gap > MAX_FILE_GAP,
            Gaps::Meant => false,
        }
    }
}

fn moved(time: u64, shift: i64) -> u64 {
    time.saturating_add_signed(shift)
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 40_000;

    /// A packet of stream `stream` that is decoded at `dts` milliseconds and came at `arrived`.
    fn packet(stream: usize, dts: u64, arrived: u64) -> Packet {
        Packet {
            stream,
            dts: dts * 1_000,
            pts: dts * 1_000 + FRAME,
            duration: FRAME,
            key: true,
            arrived_at: Timestamp::from_micros(arrived * 1_000),
            ..Packet::default()
        }
    }

    /// Decoding times in milliseconds after packets of these streams and times, all of which come at once.
    fn placed(gaps: Gaps, packets: &[(usize, u64)]) -> Vec<u64> {
        let mut continuity = Continuity {
            gaps,
            ..Continuity::default()
        };
        let place = |&(stream, dts): &(usize, u64)| {
            let mut packet = packet(stream, dts, 0);
            continuity.place(&mut packet);
            packet.dts / 1_000
        };
        packets.iter().map(place).collect()
    }

    /// Pictures jump back by a minute first; the sound, 10 ms off, keeps its distance to them.
    #[test]
    fn streams_jump_together() {
        let packets = [
            (0, 90_000),
            (1, 90_010),
            (0, 30_000),
            (1, 30_010),
            (0, 30_040),
        ];
        assert_eq!(
            placed(Gaps::Live, &packets),
            [90_000, 90_010, 90_040, 90_050, 90_080]
        );
        let late_sound = [
            (0, 90_000),
            (1, 90_010),
            (0, 30_000),
            (1, 90_050),
            (1, 30_050),
        ];
        assert_eq!(
            placed(Gaps::Meant, &late_sound),
            [90_000, 90_010, 90_040, 90_050, 90_090]
        );
    }

    /// Two seconds are a gap in a file, and a jump where they came at once.
    #[test]
    fn gaps_are_kept_where_they_are_meant() {
        let packets = [(0, 1_000), (0, 3_040), (0, 33_080)];
        assert_eq!(placed(Gaps::Meant, &packets), [1_000, 3_040, 33_080]);
        assert_eq!(placed(Gaps::File, &packets), [1_000, 3_040, 3_080]);
        assert_eq!(placed(Gaps::Live, &packets), [1_000, 1_040, 1_080]);
        assert_eq!(Gaps::of_file("matroska,webm"), Gaps::Meant);
        assert_eq!(Gaps::of_file("mpegts"), Gaps::File);
    }

    #[test]
    fn a_live_pause_during_which_nothing_came_is_one() {
        let mut continuity = Continuity::default();
        let mut at = |dts, arrived| {
            let mut packet = packet(0, dts, arrived);
            continuity.place(&mut packet);
            assert_eq!(packet.pts - packet.dts, FRAME);
            packet.dts / 1_000
        };
        assert_eq!(at(1_000, 0), 1_000);
        assert_eq!(at(6_000, 5_000), 6_000);
        assert_eq!(at(61_000, 6_000), 6_040);
    }

    /// H.264 in AVI is presented when it is decoded, if no picture is decoded before one that is shown earlier; sound keeps its times.
    #[test]
    fn presentation_times_that_were_made_up_are_dropped() {
        assert!(!states_presentation("avi", 0) && !states_presentation("asf", 0));
        assert!(states_presentation("avi", 1) && states_presentation("mov,mp4", 0));
        let mut continuity = Continuity {
            in_order: Some(0),
            ..Continuity::default()
        };
        for (stream, offset) in [(0, 0), (1, FRAME)] {
            let mut packet = packet(stream, 1_000, 0);
            continuity.place(&mut packet);
            assert_eq!(packet.pts - packet.dts, offset);
        }
    }

    /// Decoding times that are a little out of order are put straight; a new stream takes over the shift of the others.
    #[test]
    fn decoding_times_never_go_back() {
        let packets = [(0, 1_000), (0, 980), (0, 1_020), (0, 10), (1, 20)];
        assert_eq!(
            placed(Gaps::File, &packets),
            [1_000, 1_000, 1_020, 1_060, 1_070]
        );
    }
}
