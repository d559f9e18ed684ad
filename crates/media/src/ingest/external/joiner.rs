//! Brings together what ffmpeg hands over of a packet in two pipes: its octets in NUT, and its times and marks in lines.

use std::collections::VecDeque;
use std::sync::mpsc::{SendError, SyncSender};

use super::demuxer::Packet;
use super::framecrc::PacketLine;

/// Packets of a stream that wait for their lines; beyond, they go on without.
const MAX_WAITING: usize = 128;
/// Lines that may be of packets which NUT left out.
const MAX_SKIPPED: usize = 8;
/// Added to all times by ffmpeg, as NUT has no negative ones, in seconds.
pub(super) const TIME_OFFSET: u64 = 100;
/// Most pictures that are decoded before one that is shown earlier.
const MAX_REORDERED: usize = 16;

/// What came of one stream.
#[derive(Debug, Default)]
struct Waiting {
    packets: VecDeque<Packet>,
    lines: VecDeque<PacketLine>,
    times: DecodingTimes,
}

/// Joins packets with their lines, and sends them on in the order in which they are complete.
#[derive(Debug)]
pub(super) struct Joiner {
    /// Streams that have lines.
    lined: usize,
    streams: Vec<Waiting>,
    sender: SyncSender<Packet>,
}

impl Joiner {
    /// Joins packets of the first `lined` streams with lines, and sends them and all others to `sender`.
    pub(super) fn new(lined: usize, sender: SyncSender<Packet>) -> Self {
        Self {
            lined,
            streams: Vec::new(),
            sender,
        }
    }

    /// Sets after how many packets of `stream` pictures are in the order in which they are shown.
    pub(super) fn set_depth(&mut self, stream: usize, depth: u64) {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        self.stream(stream).times.depth = depth.min(MAX_REORDERED);
    }

    fn stream(&mut self, stream: usize) -> &mut Waiting {
        if self.streams.len() <= stream {
            self.streams.resize_with(stream + 1, Waiting::default);
        }
        &mut self.streams[stream]
    }

    /// Takes a packet, whose decoding time is not known.
    ///
    /// # Errors
    /// If nobody takes packets any more.
    pub(super) fn on_packet(&mut self, packet: Packet) -> Result<(), SendError<Packet>> {
        let (stream, is_lined) = (packet.stream, packet.stream < self.lined);
        self.stream(stream).packets.push_back(packet);
        match is_lined {
            true => self.join(stream),
            false => self.flush(stream, 0),
        }
    }

    /// Takes a line.
    ///
    /// # Errors
    /// If nobody takes packets any more.
    pub(super) fn on_line(&mut self, line: PacketLine) -> Result<(), SendError<Packet>> {
        let lines = &mut self.stream(line.stream).lines;
        if lines.len() == MAX_WAITING {
            lines.pop_front();
        }
        lines.push_back(line);
        self.join(line.stream)
    }

    /// Sends what waits for lines that will not come.
    ///
    /// # Errors
    /// If nobody takes packets any more.
    pub(super) fn finish(&mut self) -> Result<(), SendError<Packet>> {
        (0..self.streams.len()).try_for_each(|stream| self.flush(stream, 0))
    }

    fn join(&mut self, stream: usize) -> Result<(), SendError<Packet>> {
        loop {
            let Waiting { packets, lines, .. } = self.stream(stream);
            let Some(size) = packets.front().map(|packet| packet.payload.len()) else {
                return Ok(());
            };
            let Some(skipped) = lines
                .iter()
                .take(MAX_SKIPPED)
                .position(|it| it.size == size)
            else {
                return self.flush(stream, MAX_WAITING);
            };
            let line = lines.drain(..=skipped).last();
            self.send(stream, line)?;
        }
    }

    /// Sends all but `keep` packets without lines.
    fn flush(&mut self, stream: usize, keep: usize) -> Result<(), SendError<Packet>> {
        while self.stream(stream).packets.len() > keep {
            self.send(stream, None)?;
        }
        Ok(())
    }

    /// Sends the first packet of a stream.
    fn send(&mut self, stream: usize, line: Option<PacketLine>) -> Result<(), SendError<Packet>> {
        let waiting = self.stream(stream);
        let Some(mut packet) = waiting.packets.pop_front() else {
            return Ok(());
        };
        let estimated = waiting.times.next(packet.pts, packet.duration);
        packet.dts = estimated;
        if let Some(line) = line {
            let stated = line.decoded_at.and_then(|it| u64::try_from(it).ok());
            packet.dts = stated.unwrap_or(estimated).min(packet.pts);
            packet.duration = line.duration;
            packet.is_cut = line.is_cut;
            packet.has_side_data = line.has_side_data;
        }
        self.sender.send(packet)
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
        first.saturating_sub(missing * duration).min(pts)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use bytes::Bytes;
    use namecast_units::Timestamp;

    use super::*;

    fn packet(stream: usize, pts: u64, size: usize) -> Packet {
        Packet {
            stream,
            dts: 0,
            pts,
            duration: 0,
            key: false,
            is_cut: false,
            has_side_data: false,
            payload: Bytes::from(vec![0; size]),
            arrived_at: Timestamp::default(),
        }
    }

    fn line(decoded_at: i64, size: usize) -> PacketLine {
        PacketLine {
            stream: 0,
            decoded_at: Some(decoded_at),
            duration: 40,
            size,
            key: false,
            is_cut: true,
            has_side_data: false,
        }
    }

    /// A line of a packet that NUT lacks is passed over; sound, which has none, does not wait; the last packet goes without.
    #[test]
    fn packets_get_the_lines_of_their_size() {
        let (sender, packets) = sync_channel(8);
        let mut joiner = Joiner::new(1, sender);
        joiner.on_packet(packet(0, 1_000, 10)).unwrap();
        joiner.on_packet(packet(1, 77, 5)).unwrap();
        assert_eq!(packets.try_recv().unwrap().dts, 77);
        assert!(packets.try_recv().is_err());
        joiner.on_line(line(880, 11)).unwrap();
        joiner.on_line(line(920, 10)).unwrap();
        let joined = packets.try_recv().unwrap();
        assert_eq!(
            (joined.dts, joined.duration, joined.is_cut),
            (920, 40, true)
        );
        joiner.on_line(line(960, 12)).unwrap();
        joiner.on_packet(packet(0, 1_040, 12)).unwrap();
        assert_eq!(packets.try_recv().unwrap().dts, 960);
        joiner.on_packet(packet(0, 1_080, 13)).unwrap();
        joiner.finish().unwrap();
        assert_eq!(packets.try_recv().unwrap().pts, 1_080);
        drop(packets);
        assert!(joiner.on_packet(packet(1, 0, 1)).is_err());
    }

    #[test]
    fn lines_that_never_come_are_not_waited_for() {
        let (sender, packets) = sync_channel(MAX_WAITING);
        let mut joiner = Joiner::new(1, sender);
        for number in 0..=MAX_WAITING {
            joiner.on_packet(packet(0, number as u64, 10)).unwrap();
        }
        assert_eq!(packets.try_iter().count(), 1);
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
