//! Presentation times of MPEG-4 whose packets in AVI hold two pictures: AVI has one time for both, and ffmpeg guesses before it parts them.
//!
//! ```text
//!   packet in AVI      P4 b2 │ b3 │ (empty)       each has its own decoding time
//!   parted             P4      b2   b3
//!   decoded at         2       3    4
//!   presented at       5       3    4             P4 when the next picture that is no B-frame is decoded, b2 and b3 at once
//! ```

use std::collections::VecDeque;

use super::demuxer::Packet;

/// Most packets that wait for the next picture that is no B-frame.
const MAX_WAITING: usize = 256;
/// Start code of a picture (`vop_start_code`) and type of B-frames (`vop_coding_type`): ISO/IEC 14496-2, section 6.3.5.
const PICTURE: [u8; 4] = [0, 0, 1, 0xb6];
const B_FRAME: u8 = 0b10;

/// Gives the pictures of one stream their presentation times; packets of others keep their places among them.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    pictures: usize,
    /// A picture whose presentation time is not known yet, and what follows it.
    waiting: VecDeque<Packet>,
    ready: VecDeque<Packet>,
}

impl Unpacked {
    /// Times for the pictures of stream `pictures`.
    pub(super) fn new(pictures: usize) -> Self {
        Self {
            pictures,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, mut packet: Packet) {
        if packet.stream != self.pictures {
            return self.wait(packet);
        }
        if is_b_frame(&packet.payload) {
            packet.pts = packet.dts;
            return self.wait(packet);
        }
        self.release(packet.dts);
        // Without B-frames in the stream, pictures are presented when they are decoded.
        match packet.pts > packet.dts {
            true => self.waiting.push_back(packet),
            false => self.ready.push_back(packet),
        }
    }

    /// No other packet comes: the last picture follows those before it.
    pub(super) fn finish(&mut self) {
        let pictures = self.waiting.iter();
        let pictures = pictures.filter(|packet| packet.stream == self.pictures);
        let end = pictures
            .map(|packet| packet.dts.saturating_add(packet.duration))
            .max();
        self.release(end.unwrap_or_default());
    }

    /// Returns the next packet whose times are known.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.ready.pop_front()
    }

    fn wait(&mut self, packet: Packet) {
        match self.waiting.is_empty() {
            true => self.ready.push_back(packet),
            false => self.waiting.push_back(packet),
        }
        if self.waiting.len() > MAX_WAITING {
            // It keeps the time that ffmpeg guessed.
            self.ready.append(&mut self.waiting);
        }
    }

    /// The picture that waits is presented at `pts`.
    fn release(&mut self, pts: u64) {
        if let Some(first) = self.waiting.front_mut() {
            first.pts = pts.max(first.dts);
        }
        self.ready.append(&mut self.waiting);
    }
}

fn is_b_frame(payload: &[u8]) -> bool {
    let mut windows = payload.windows(PICTURE.len() + 1);
    let head = windows.find_map(|octets| octets.strip_prefix(&PICTURE)?.first());
    head.is_some_and(|head| head >> 6 == B_FRAME)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const P: u8 = 0b01;

    fn picture(coding_type: u8, dts: u64, pts: u64) -> Packet {
        Packet {
            dts,
            pts,
            duration: 1,
            payload: Bytes::copy_from_slice(&[0, 0, 1, 0xb6, coding_type << 6, 0]),
            ..Packet::default()
        }
    }

    fn sound(dts: u64) -> Packet {
        Packet {
            stream: 1,
            ..picture(P, dts, dts)
        }
    }

    /// Times that ffmpeg 5.1 gives I1 P4 b2 b3 P7 b5 b6 after it has parted them: P4 and b3 are a picture off.
    #[test]
    fn two_b_frames_in_a_row_keep_their_order() {
        let mut times = Unpacked::new(0);
        let packets = [
            picture(0, 0, 1),
            picture(P, 1, 3),
            sound(1),
            picture(B_FRAME, 2, 2),
            picture(B_FRAME, 3, 4),
            picture(P, 4, 6),
            picture(B_FRAME, 5, 5),
            picture(B_FRAME, 6, 7),
        ];
        packets.into_iter().for_each(|packet| times.push(packet));
        times.finish();
        let found = core::iter::from_fn(|| times.pop());
        let found: Vec<_> = found.map(|it| (it.stream, it.dts, it.pts)).collect();
        let expected = [
            (0, 0, 1),
            (0, 1, 4),
            (1, 1, 1),
            (0, 2, 2),
            (0, 3, 3),
            (0, 4, 7),
            (0, 5, 5),
            (0, 6, 6),
        ];
        assert_eq!(found, expected);
    }

    /// Pictures that are presented when they are decoded wait for nothing.
    #[test]
    fn without_b_frames_nothing_waits() {
        let mut times = Unpacked::new(0);
        for dts in 0..3 {
            times.push(picture(P, dts, dts));
            assert_eq!(times.pop().map(|it| it.pts), Some(dts));
            times.push(sound(dts));
            assert!(times.pop().is_some());
        }
    }
}
