//! The test picture and tone as sources, paced by the wall clock.

use std::thread;

use namecast_units::{Duration, Timestamp};

use super::super::ladder::PictureSize;
use super::super::picture::TestPicture;
use super::super::{AudioConfig, IngestError, tone};
use super::Source;
use crate::clock;

const MICROS: u64 = 1_000_000;
/// Frames are at least this part of a period apart.
const MIN_SPACING: u64 = 4;
/// Sound packets that are made up for after a stall; a longer one leaves a gap.
const MAX_CATCH_UP: u64 = 10;

/// Microseconds of wall-clock time at which tick `number` of `rate` per second lies, rounded up so that the tick is over.
const fn tick_time(number: u64, rate: u64) -> u64 {
    (number * MICROS).div_ceil(rate)
}

fn sleep_until(micros: u64) -> Timestamp {
    loop {
        let now = clock::wall();
        match micros.checked_sub(now.as_micros()) {
            // A wall clock that was set back must not stop the picture: no wait is longer than a second.
            Some(left) if left > 0 && left < MICROS => {
                thread::sleep(Duration::from_micros(left));
            }
            _ => return now,
        }
    }
}

/// Draws a frame at each whole fraction of the wall clock's second, so that one of them is on the full second.
#[derive(Debug)]
pub struct DrawnVideo {
    picture: TestPicture,
    rate: u64,
    number: u64,
    last_tick: u64,
    /// When the last frame was drawn, in microseconds.
    last_at: u64,
}

impl DrawnVideo {
    /// Draws `rate` frames a second.
    pub fn new(size: PictureSize, rate: u32) -> Self {
        Self {
            picture: TestPicture::new(size),
            rate: u64::from(rate),
            number: 0,
            last_tick: 0,
            last_at: 0,
        }
    }
}

impl Source for DrawnVideo {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Timestamp>, IngestError> {
        // The tick that was due last. Where we missed just that one, it is drawn now; where more, they are gone: live is
        // live.
        let current = clock::wall().as_micros() * self.rate / MICROS;
        let tick = match self.last_tick + 1 {
            next if next == current => next,
            _ => current + 1,
        };
        // Frames that were drawn late push the next one on, as two in one moment would be one too many.
        let spacing = MICROS / self.rate / MIN_SPACING;
        let at = sleep_until(tick_time(tick, self.rate).max(self.last_at + spacing));
        self.last_tick = tick;
        self.last_at = at.as_micros();
        self.picture.draw(buffer, at, self.number);
        self.number += 1;
        Ok(Some(at))
    }
}

/// Makes a packet of the test tone as each packet's time of the wall clock is over.
#[derive(Debug)]
pub struct DrawnSound {
    samples: Vec<i16>,
    channels: usize,
    next_tick: u64,
}

impl DrawnSound {
    /// Starts with the packet that is being played now; all channels sound alike.
    pub fn new(channels: u32) -> Self {
        Self {
            samples: vec![0; AudioConfig::SAMPLES_PER_PACKET],
            channels: channels as usize,
            next_tick: 0,
        }
    }
}

impl Source for DrawnSound {
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Timestamp>, IngestError> {
        let rate = u64::from(AudioConfig::PACKETS_PER_SECOND);
        let current = clock::wall().as_micros() * rate / MICROS;
        if !(self.next_tick..=self.next_tick + MAX_CATCH_UP).contains(&current)
            && self.next_tick != current + 1
        {
            self.next_tick = current;
        }
        let tick = self.next_tick;
        self.next_tick += 1;
        // A recording is complete once its last sample was heard.
        sleep_until(tick_time(tick + 1, rate));
        let from = Timestamp::from_micros(tick_time(tick, rate));
        tone::fill(&mut self.samples, from, AudioConfig::SAMPLE_RATE);
        buffer.clear();
        for sample in &self.samples {
            for _ in 0..self.channels {
                buffer.extend_from_slice(&sample.to_le_bytes());
            }
        }
        Ok(Some(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::burned_clock::Reading;
    use crate::ingest::picture::is_flash;

    const SMALL: PictureSize = PictureSize {
        width: 320,
        height: 180,
    };

    /// Times on a loaded machine prove nothing, but each frame's clock must be the time it claims, and in order.
    #[test]
    fn drawn_frames_show_the_time_they_claim() {
        let mut source = DrawnVideo::new(SMALL, 30);
        let mut frame = Vec::new();
        let mut last = Timestamp::default();
        for number in 0..4 {
            let at = source.next(&mut frame).unwrap().unwrap();
            let reading = Reading::read(&frame, SMALL).unwrap();
            assert_eq!(reading.millis, at.as_micros() / 1_000);
            assert_eq!(reading.number, number);
            assert!(at > last);
            last = at;
        }
    }

    /// 20 ms at 48 kHz in one channel are 960 samples of two octets.
    #[test]
    fn sound_packets_follow_each_other_and_beep_with_the_flash() {
        let mut source = DrawnSound::new(1);
        let mut packet = Vec::new();
        let mut last: Option<Timestamp> = None;
        for _ in 0..60 {
            let from = source.next(&mut packet).unwrap().unwrap();
            assert_eq!(packet.len(), 1_920);
            assert_eq!(from.as_micros() % 20_000, 0);
            assert!(last.is_none_or(|last| from > last));
            let loud = packet.iter().any(|&octet| octet != 0);
            assert_eq!(loud, is_flash(from));
            last = Some(from);
        }
    }
}
