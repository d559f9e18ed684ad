//! Brings together what ffmpeg hands over of a packet in two pipes: its octets in NUT, and its times and marks in lines.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Receiver;

use namecast_units::Duration;

use super::demuxer::Packet;
use super::framecrc::PacketLine;

/// Longest wait of a packet for its line, which ffmpeg writes at once.
const LINE_WAIT: Duration = Duration::from_millis(100);
/// Packets in a row without a line after which no other waits.
const MAX_WITHOUT: u32 = 8;
/// Lines of a stream that wait for packets; older ones are of packets which NUT left out.
const MAX_WAITING: usize = 4_096;
/// Lines skipped at most to find the line of a packet.
const MAX_SKIPPED: usize = 8;
/// Added to all times by ffmpeg, as NUT has no negative ones, in seconds.
pub(super) const TIME_OFFSET: u64 = 100;
/// Most pictures that are decoded before one that is shown earlier.
const MAX_REORDERED: usize = 16;

/// State of one stream.
#[derive(Debug, Default)]
struct Stream {
    lines: VecDeque<PacketLine>,
    times: DecodingTimes,
    /// Packets without a line since the last one that had one.
    without: u32,
}

/// Joins packets with their lines.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    lines: Option<Receiver<PacketLine>>,
    /// Streams that have lines.
    lined: usize,
    streams: BTreeMap<usize, Stream>,
}

impl Joiner {
    /// Joins packets of the first `lined` streams with `lines`; those of others have none.
    pub(super) fn new(lines: Receiver<PacketLine>, lined: usize) -> Self {
        Self {
            lines: Some(lines),
            lined,
            streams: BTreeMap::new(),
        }
    }

    /// Sets after how many packets of `stream` pictures are in the order in which they are shown.
    pub(super) fn set_depth(&mut self, stream: usize, depth: u64) {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        self.stream(stream).times.depth = depth.min(MAX_REORDERED);
    }

    fn stream(&mut self, stream: usize) -> &mut Stream {
        self.streams.entry(stream).or_default()
    }

    /// Completes a packet, of which the decoding time is not known, by its line.
    pub(super) fn join(&mut self, packet: &mut Packet) {
        let line = self.line_of(packet);
        let times = &mut self.stream(packet.stream).times;
        packet.dts = times.next(packet.pts, packet.duration);
        if let Some(line) = line {
            let stated = line.decoded_at.and_then(|it| u64::try_from(it).ok());
            packet.dts = stated.unwrap_or(packet.dts).min(packet.pts);
            packet.duration = line.duration;
            packet.is_cut = line.is_cut;
            packet.has_side_data = line.has_side_data;
        }
    }

    /// Waits for the line of a packet, but not for ever: ffmpeg may wait until its next packet is taken.
    fn line_of(&mut self, packet: &Packet) -> Option<PacketLine> {
        let (number, size) = (packet.stream, packet.payload.len());
        if number >= self.lined {
            return None;
        }
        loop {
            let stream = self.stream(number);
            let mut lines = stream.lines.iter().take(MAX_SKIPPED);
            if let Some(skipped) = lines.position(|line| line.size == size) {
                stream.without = 0;
                return stream.lines.drain(..=skipped).next_back();
            }
            if stream.lines.len() >= MAX_SKIPPED || stream.without > MAX_WITHOUT {
                return None;
            }
            let Some(Ok(line)) = self.lines.as_ref().map(|it| it.recv_timeout(LINE_WAIT)) else {
                self.stream(number).without += 1;
                return None;
            };
            let lines = &mut self.stream(line.stream).lines;
            if lines.len() == MAX_WAITING {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }
}

/// Finds decoding times where only presentation times are known: pictures that come in decoding order are decoded at the times, in
/// order, of those presented so many pictures before.
#[derive(Debug, Default)]
struct DecodingTimes {
    depth: usize,
    /// The newest presentation times, in order.
    newest: VecDeque<u64>,
}

impl DecodingTimes {
    fn next(&mut self, pts: u64, duration: u64) -> u64 {
        let at = self.newest.partition_point(|&known| known <= pts);
        self.newest.insert(at, pts);
        if self.newest.len() > self.depth + 1 {
            self.newest.pop_front();
        }
        let missing = (self.depth + 1 - self.newest.len()) as u64;
        let first = self.newest.front().copied().unwrap_or(pts);
        first
            .saturating_sub(missing.saturating_mul(duration))
            .min(pts)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use bytes::Bytes;

    use super::*;

    fn packet(stream: usize, pts: u64, size: usize) -> Packet {
        Packet {
            stream,
            pts,
            payload: Bytes::from(vec![0; size]),
            ..Packet::default()
        }
    }

    fn line(stream: usize, decoded_at: i64, size: usize) -> PacketLine {
        PacketLine {
            stream,
            decoded_at: Some(decoded_at),
            duration: 40,
            size,
            key: false,
            is_cut: true,
            has_side_data: false,
        }
    }

    /// Decoding time of a packet that was joined.
    fn joined(joiner: &mut Joiner, mut packet: Packet) -> u64 {
        joiner.join(&mut packet);
        packet.dts
    }

    /// Lines of streams come in another order than packets; one is of a packet that NUT lacks; the last packet has none.
    #[test]
    fn packets_get_the_lines_of_their_size() {
        let (sender, lines) = sync_channel(8);
        let mut joiner = Joiner::new(lines, 2);
        for line in [
            line(1, 500, 5),
            line(0, 880, 11),
            line(0, 920, 10),
            line(0, 960, 12),
        ] {
            sender.send(line).unwrap();
        }
        drop(sender);
        assert_eq!(joined(&mut joiner, packet(2, 77, 5)), 77);
        let mut first = packet(0, 1_000, 10);
        joiner.join(&mut first);
        assert_eq!((first.dts, first.duration, first.is_cut), (920, 40, true));
        assert_eq!(joined(&mut joiner, packet(1, 510, 5)), 500);
        assert_eq!(joined(&mut joiner, packet(0, 1_040, 12)), 960);
        assert_eq!(joined(&mut joiner, packet(0, 1_080, 13)), 1_080);
    }

    #[test]
    fn packets_whose_sizes_no_line_has_go_without() {
        let (sender, lines) = sync_channel(2 * MAX_SKIPPED);
        let mut joiner = Joiner::new(lines, 1);
        for number in 0..MAX_SKIPPED as i64 {
            sender.send(line(0, number, 99)).unwrap();
        }
        assert_eq!(joined(&mut joiner, packet(0, 5, 10)), 5);
        assert_eq!(joined(&mut joiner, packet(0, 6, 99)), 0);
        assert_eq!(joined(&mut Joiner::default(), packet(0, 9, 1)), 9);
    }

    /// I0 P4 B2 b1 b3, then P8 B6 b5 b7: two pictures are held back.
    #[test]
    fn decoding_times_follow_from_presentation_times() {
        let mut times = DecodingTimes {
            depth: 2,
            ..DecodingTimes::default()
        };
        let order = [10, 14, 12, 11, 13, 18, 16, 15, 17];
        let decoded = order.map(|pts| times.next(pts, 1));
        assert_eq!(decoded, [8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert!(order.iter().zip(decoded).all(|(&pts, dts)| dts <= pts));
        let mut times = DecodingTimes::default();
        assert_eq!([5, 6, 7].map(|pts| times.next(pts, 1)), [5, 6, 7]);
    }
}
