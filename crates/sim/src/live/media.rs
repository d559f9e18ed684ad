//! Synthetic video and audio: frames of the sizes and at the times that an encoder would give.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_netem::standard_normal;
use namecast_stream::{InterFrameFec, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, Random};
use serde::{Deserialize, Serialize};

/// Sizes stay within so many deviations of their mean.
const MAX_DEVIATIONS: f64 = 3.0;

/// One stream that an encoder gives.
///
/// Every frame is a function of its position alone, so that two encoders with one seed give the same frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The stream's name component.
    pub name: String,
    /// Video or audio.
    pub kind: StreamKind,
    /// Frames per second.
    pub rate: SampleRate,
    /// Frames from one key frame to the next; 1: all stand alone.
    pub key_interval: u32,
    /// Size of a key frame in delta frames.
    pub key_factor: f64,
    /// Standard deviation of sizes, as a share of the mean of their class. All rungs vary alike.
    pub deviation: f64,
    /// How sizes are distributed.
    pub sizes: SizeShape,
    /// Bitrates, in the order of the catalogue.
    pub rungs: Vec<MediaRung>,
    /// How good their pictures are, in the same order: a list for each measure, such as `psnr`.
    pub quality: BTreeMap<String, Vec<f64>>,
    /// Octets of Content that segments aim at.
    pub segment_size: u32,
    /// Parity segments per hundred data segments.
    pub parity_percent: u32,
    /// Inter-frame FEC on offer in each rung.
    pub inter_frame: Option<InterFrameFec>,
    /// Largest composition offset that the catalogue states; frames have none.
    pub reorder_delay: Duration,
    /// Fixes sizes and payloads.
    pub seed: u64,
}

/// How the sizes of frames are distributed about the mean of their class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeShape {
    /// A bell curve, cut off at three deviations.
    #[default]
    Normal,
    /// Delta frames uniformly, up to √3 deviations from their mean; key frames have all the same size.
    UniformDeltas,
}

/// One bitrate of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRung {
    /// Name component.
    pub name: String,
    /// Mean rate of the frames' payload.
    pub bitrate: Bitrate,
}

impl Media {
    /// The video of \[RTSD\] §5: 30 frames a second, a key frame each second that is four times as large, 1000-octet
    /// segments, 20 % parity, sizes that vary by 20 %; one rung, 1 Mbit/s.
    pub fn video() -> Self {
        Self {
            name: "video".to_owned(),
            kind: StreamKind::Video,
            rate: SampleRate::new(30, 1),
            key_interval: 30,
            key_factor: 4.0,
            deviation: 0.2,
            sizes: SizeShape::Normal,
            rungs: vec![MediaRung::new("1M", Bitrate::mbps(1))],
            quality: BTreeMap::new(),
            segment_size: 1_000,
            parity_percent: 20,
            inter_frame: None,
            reorder_delay: Duration::ZERO,
            seed: 1,
        }
    }

    /// The audio of \[RTSD\] §5: 100 kbit/s in 50 packets a second.
    pub fn audio() -> Self {
        Self {
            name: "audio".to_owned(),
            kind: StreamKind::Audio,
            rate: SampleRate::new(50, 1),
            key_interval: 1,
            key_factor: 1.0,
            deviation: 0.0,
            sizes: SizeShape::Normal,
            rungs: vec![MediaRung::new("100k", Bitrate::kbps(100))],
            quality: BTreeMap::new(),
            segment_size: 1_000,
            parity_percent: 20,
            inter_frame: None,
            reorder_delay: Duration::ZERO,
            seed: 1,
        }
    }

    /// When the frame at `position` is captured, after the first one.
    pub fn captured_after(&self, position: u64) -> Duration {
        let nanos = u128::from(position) * u128::from(self.rate.den) * 1_000_000_000;
        let nanos = nanos / u128::from(self.rate.num.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Position of the first frame that is captured `after` the first one, or later.
    pub fn position_after(&self, after: Duration) -> u64 {
        let frames = after.as_nanos() * u128::from(self.rate.num);
        let frames = frames.div_ceil(u128::from(self.rate.den.max(1)) * 1_000_000_000);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Whether the frame at `position` decodes by itself.
    pub const fn is_key(&self, position: u64) -> bool {
        position.is_multiple_of(self.key_interval as u64)
    }

    /// Octets of the frame at `position`.
    ///
    /// Delta frames have, with n frames from key to key that are k times as large, mean
    ///
    /// ```text
    /// d = bitrate / 8 · T · n / (n − 1 + k)
    /// ```
    pub fn size(&self, rung: &MediaRung, position: u64) -> usize {
        let frames = f64::from(self.key_interval.max(1));
        let mean = rung.bitrate.as_bps() as f64 / 8.0 * f64::from(self.rate.den)
            / f64::from(self.rate.num.max(1));
        let delta = mean * frames / (frames - 1.0 + self.key_factor);
        let factor = if self.is_key(position) {
            self.key_factor
        } else {
            1.0
        };
        let draw = match self.sizes {
            SizeShape::Normal => normal(self.seed, position),
            SizeShape::UniformDeltas if self.is_key(position) => 0.0,
            SizeShape::UniformDeltas => uniform(self.seed, position),
        };
        let varied = 1.0 + self.deviation * draw;
        let size = libm::round(delta * factor * varied);
        size.max(1.0) as usize
    }

    /// The frame at `position`.
    pub fn payload(&self, rung: &MediaRung, position: u64) -> Bytes {
        let mut octets = vec![0; self.size(rung, position)];
        let mut random = Random::from_seed(mixed(self.seed, position));
        random.fill(&mut octets);
        octets.into()
    }

    /// The stream's part of a catalogue.
    pub fn info(&self) -> StreamInfo {
        let rung = |rung: &MediaRung| Rung {
            name: rung.name.clone(),
            bitrate: rung.bitrate,
            width: None,
            height: None,
            rate: self.rate,
            key_interval: self.key_interval,
            reorder_delay: u64::try_from(self.reorder_delay.as_micros()).unwrap_or(u64::MAX),
            codec_string: "synthetic".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: self.inter_frame,
            description: None,
        };
        StreamInfo {
            name: self.name.clone(),
            kind: self.kind,
            codec: "synthetic".to_owned(),
            rungs: self.rungs.iter().map(rung).collect(),
            segment_size: self.segment_size,
            parity_percent: self.parity_percent,
            reading: Reading::default(),
        }
    }
}

impl MediaRung {
    /// A rung of that name and rate.
    pub fn new(name: &str, bitrate: Bitrate) -> Self {
        Self {
            name: name.to_owned(),
            bitrate,
        }
    }
}

fn mixed(seed: u64, position: u64) -> u64 {
    seed ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A draw from the normal distribution, cut off at [`MAX_DEVIATIONS`].
fn normal(seed: u64, position: u64) -> f64 {
    let draw = standard_normal(&mut Random::from_seed(mixed(seed, position)));
    draw.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
}

/// A draw from the uniform distribution of mean 0 and deviation 1.
fn uniform(seed: u64, position: u64) -> f64 {
    let unit = Random::from_seed(mixed(seed, position)).unit();
    (2.0 * unit - 1.0) * libm::sqrt(3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 Mbit/s at 30 a second are 4166.7 octets a frame; with a key frame of four in thirty a delta frame has
    /// 4166.7 · 30 / 33 = 3787.9.
    #[test]
    fn sizes_are_as_worked_by_hand() {
        let media = Media {
            deviation: 0.0,
            ..Media::video()
        };
        let rung = &media.rungs[0];
        assert_eq!(media.size(rung, 0), 15_152);
        assert_eq!(media.size(rung, 1), 3_788);
        assert_eq!(media.size(rung, 30), 15_152);
        let audio = Media::audio();
        assert_eq!(audio.size(&audio.rungs[0], 7), 250);
    }

    /// Over ten minutes the mean is that of the rung within 1 %, and sizes deviate by a fifth.
    #[test]
    fn sizes_vary_about_their_mean() {
        let media = Media::video();
        let sizes: Vec<f64> = (0..18_000)
            .map(|position| media.size(&media.rungs[0], position) as f64)
            .collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((mean / 4_166.7 - 1.0).abs() < 0.01, "{mean}");
        let deltas = sizes.iter().enumerate().filter(|(n, _)| n % 30 != 0);
        let squares = deltas.map(|(_, size)| (size / 3_787.9 - 1.0) * (size / 3_787.9 - 1.0));
        let deviation = libm::sqrt(squares.sum::<f64>() / (18_000.0 * 29.0 / 30.0));
        assert!((0.19..=0.21).contains(&deviation), "{deviation}");
    }

    #[test]
    fn frames_depend_on_seed_and_position_alone() {
        let (media, other) = (
            Media::video(),
            Media {
                seed: 2,
                ..Media::video()
            },
        );
        let rung = &media.rungs[0];
        assert_eq!(media.payload(rung, 77), Media::video().payload(rung, 77));
        assert_ne!(media.payload(rung, 77), media.payload(rung, 78));
        assert_ne!(media.payload(rung, 77), other.payload(rung, 77));
    }

    /// At 30 000/1001 a second the 30th frame comes after 1.001 s; the inverse rounds up.
    #[test]
    fn times_and_positions_are_inverse() {
        let media = Media {
            rate: SampleRate::new(30_000, 1_001),
            ..Media::video()
        };
        assert_eq!(media.captured_after(30), Duration::from_millis(1_001));
        assert_eq!(media.position_after(Duration::from_millis(1_001)), 30);
        assert_eq!(
            media.position_after(Duration::from_nanos(1_001_000_001)),
            31
        );
        assert_eq!(media.position_after(Duration::ZERO), 0);
    }
}
