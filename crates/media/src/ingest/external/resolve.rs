//! From what an input holds and what people wish to the rungs that are published.

use core::cmp::Ordering;

use bytes::Bytes;
use namecast_stream::SampleRate;
use namecast_units::{Bitrate, Duration};

use super::super::codec::VideoCodec;
use super::super::description::Picture;
use super::super::encoded::two_digits;
use super::super::ladder::{COPY, Ladder, LadderWish, PictureSize, Rung};
use super::super::{IngestError, VideoConfig, Wish};
use super::demuxer::Packet;
use super::form::{self, Form};
use super::h264::AnnexB;
use super::transcoder::Preparation;
use super::turn::Turn;
use crate::annex_b::{self, IDR, is_of};
use crate::nut::{NutClass, NutStream};

/// A copy above this rate gets a low rung beside it, for those whose network carries less.
const MIN_COPY_WITH_LOW: Bitrate = Bitrate::kbps(600);
const LOW: Bitrate = Bitrate::kbps(300);
/// x264's default distance between key frames, in pictures.
const X264_GROUP: u32 = 250;
/// Assumed time between key frames where it is unknown: the common setting, in seconds.
const USUAL_GROUP: u32 = 2;
/// Frame rates that are meant where one within half a percent is measured.
const USUAL_RATES: [(u32, u32); 9] = [
    (24_000, 1_001),
    (24, 1),
    (25, 1),
    (30_000, 1_001),
    (30, 1),
    (50, 1),
    (60_000, 1_001),
    (60, 1),
    (15, 1),
];
const MAX_RATE: f64 = 240.0;
/// Pixel formats that every player decodes.
const PLAIN: [&str; 3] = ["yuv420p", "yuvj420p", ""];
/// Longest reordering of a valid video: sixteen pictures at 2 frames a second.
const MAX_REORDER_DELAY: Duration = Duration::from_secs(8);
/// Packets that say each how they are encrypted are so.
const ENCRYPTED: usize = 3;

/// What is known of an input's pictures.
#[derive(Debug)]
pub(super) struct Pictures<'a> {
    pub(super) stream: &'a NutStream,
    /// Their first packets, in the order in which they came.
    pub(super) first: Vec<&'a Packet>,
    /// As the container describes them.
    pub(super) described: Picture,
    pub(super) turn: Turn,
}

/// How pictures are published.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) video: VideoConfig,
    /// What brings copied frames into form; none: nothing is copied.
    pub(super) copied: Option<Form>,
    /// Why the input is not passed through, for people.
    pub(super) note: Option<String>,
}

impl Pictures<'_> {
    /// Finds the rungs; those that are encoded are by `encoder`, if one is named.
    ///
    /// # Errors
    /// If what people wish cannot be made of this input.
    pub(super) fn resolve(
        &self,
        input: &str,
        wish: &Wish,
        encoder: Option<&str>,
    ) -> Result<Resolved, IngestError> {
        let not_copied = |why| IngestError::NotCopied {
            input: input.to_owned(),
            why,
        };
        let ladder = &wish.ladder;
        if ladder.copies && (wish.rate.is_some() || wish.key_interval.is_some()) {
            let why =
                "the rungs beside it keep its frames and key frames: leave --fps and --gop out";
            return Err(not_copied(why.to_owned()));
        }
        let rate = self.rate();
        let by_default = ladder.rungs.is_empty() && !wish.encodes_pictures();
        let (copied, note) = match self.form(rate, wish) {
            Ok(form) if ladder.copies || by_default => (Some(form), None),
            Err(why) if ladder.copies => return Err(not_copied(why)),
            Err(why) if by_default => (None, Some(why)),
            _ => (None, None),
        };
        let size = wish.size.unwrap_or(self.size());
        let rungs = match &copied {
            Some((_, codec_string)) => self.beside_copy(codec_string, ladder, size, rate),
            None => ladder.fit(size),
        };
        let codec = match copied {
            Some(_) => form::codec(self.stream),
            None => wish.codec,
        };
        let encoded_rate = match wish.rate {
            Some(rate) => SampleRate::new(rate, 1),
            None => rate,
        };
        let per_second = encoded_rate.num.div_ceil(encoded_rate.den);
        let key_interval = match copied {
            // None was seen to end: they are as long as x264 makes them, or longer.
            Some(_) => self
                .group()
                .unwrap_or(X264_GROUP.max(self.first.len() as u32)),
            None => wish.key_interval.unwrap_or(per_second),
        };
        let is_copied = copied.is_some();
        Ok(Resolved {
            video: VideoConfig {
                codec: codec.unwrap_or_default(),
                encoder: encoder.map(str::to_owned),
                ladder: Ladder::of(rungs).map_err(|error| not_copied(error.to_string()))?,
                rate: encoded_rate,
                key_interval,
                reorder_delay: self.reorder_delay(),
                max_frame: if is_copied { self.max_frame() } else { 0 },
            },
            copied: copied.map(|(form, _)| form),
            note,
        })
    }

    /// The copy, and the rungs that are encoded: those of `ladder`, or a low one if it says nothing.
    fn beside_copy(
        &self,
        codec_string: &str,
        ladder: &LadderWish,
        size: PictureSize,
        rate: SampleRate,
    ) -> Vec<Rung> {
        let mut bitrate = self.bitrate(rate);
        let mut rungs: Vec<Rung> = ladder.rungs.iter().map(|rung| rung.fit(size)).collect();
        if *ladder == LadderWish::default() && bitrate >= MIN_COPY_WITH_LOW {
            rungs.push(LadderWish::rung(LOW).fit(size));
        }
        while rungs.iter().any(|rung| rung.bitrate == bitrate) {
            bitrate = Bitrate::bps(bitrate.as_bps() + 1);
        }
        rungs.push(Rung {
            label: COPY.to_owned(),
            bitrate,
            size: self.coded_size(),
            copied: Some(codec_string.to_owned()),
        });
        rungs
    }

    /// Their size as it is encoded.
    fn coded_size(&self) -> PictureSize {
        let (width, height) = match self.stream.class {
            NutClass::Video(width, height) => (width, height),
            NutClass::Audio(..) | NutClass::Other => (0, 0),
        };
        PictureSize { width, height }
    }

    /// Their size as they are shown, with square pixels: no row or column is lost.
    fn size(&self) -> PictureSize {
        let PictureSize { width, height } = self.coded_size();
        let (across, down) = self.pixel_aspect();
        let scaled = |length: u32, by: u32, of: u32| {
            let exact = u64::from(length) * u64::from(by) / u64::from(of.max(1));
            u32::try_from(exact.div_ceil(2) * 2).unwrap_or(length)
        };
        let (width, height) = match across.cmp(&down) {
            Ordering::Greater => (scaled(width, across, down), height),
            Ordering::Less => (width, scaled(height, down, across)),
            Ordering::Equal => (width, height),
        };
        match self.turn.swaps_sides() {
            false => PictureSize { width, height },
            true => PictureSize {
                width: height,
                height: width,
            },
        }
    }

    /// Width of a pixel over its height.
    fn pixel_aspect(&self) -> (u32, u32) {
        self.described.pixel_aspect.unwrap_or((1, 1))
    }

    /// Returns whether nobody could decode them.
    pub(super) fn are_encrypted(&self) -> bool {
        self.first.len() >= ENCRYPTED && self.first.iter().all(|packet| packet.has_side_data)
    }

    /// Returns the filters to apply after decoding.
    pub(super) fn preparation(&self) -> Preparation {
        let has_cuts = self.first.iter().any(|packet| packet.is_cut);
        let shown = self.first.iter().filter(|packet| !packet.is_cut);
        Preparation {
            rate: self.rate(),
            turn: self.turn,
            is_interlaced: self.described.is_interlaced,
            pixel_aspect: self.pixel_aspect(),
            colours: self.described.colours.clone(),
            is_live: false,
            is_confined: false,
            begins_at: shown.map(|packet| packet.pts).min().filter(|_| has_cuts),
        }
    }

    /// Returns the conversion of encoded frames, with the codec string of WebCodecs; or the reason to transcode.
    fn form(&self, rate: SampleRate, wish: &Wish) -> Result<(Form, String), String> {
        let Wish {
            codec,
            refuses_b_frames,
            ..
        } = *wish;
        let found = form::codec(self.stream);
        if found.is_none() || codec.is_some_and(|codec| found != Some(codec)) {
            let found = String::from_utf8_lossy(&self.stream.codec).into_owned();
            let found = found.trim_end_matches('\0');
            let wanted = match codec {
                Some(codec) => format!("only {codec} is wanted"),
                None => "encode it with -c:v libx264 (ffmpeg) to avoid this".to_owned(),
            };
            return Err(format!("not every player decodes {found}: {wanted}"));
        }
        let is_ordered = self.first.is_sorted_by_key(|packet| packet.pts);
        if refuses_b_frames && (self.stream.decode_delay > 0 || !is_ordered) {
            return Err("it has B-frames and --no-b-frames was given".to_owned());
        }
        if self.turn != Turn::default() {
            return Err("its pictures have to be turned".to_owned());
        }
        if self.described.is_interlaced {
            return Err("it is interlaced, and players do not separate the fields".to_owned());
        }
        if self.described.colours.is_high_dynamic_range() {
            return Err("it has a high dynamic range, which not every screen shows".to_owned());
        }
        if !PLAIN.contains(&&*self.described.pixel_format) {
            let format = &self.described.pixel_format;
            return Err(format!(
                "not every player decodes its pixel format {format}: encode it with -pix_fmt yuv420p (ffmpeg)"
            ));
        }
        let key = self.first.iter().find(|packet| packet.key);
        let key = key.map_or_else(Bytes::new, |packet| packet.payload.clone());
        let per_second = rate.num.div_ceil(rate.den);
        let form = form::form(self.stream, &key, self.size(), per_second);
        if form.is_some() && self.stream.decode_delay > 0 && !self.begins_with_idr(&key) {
            return Err(
                "its key frames are no IDR pictures, which browsers cannot begin with".to_owned(),
            );
        }
        let form = form.ok_or_else(|| {
            "players do not take its profile, or it does not state it: encode it with -pix_fmt yuv420p (ffmpeg)".to_owned()
        })?;
        let (across, down) = self.pixel_aspect();
        let stated = form.0.pixel_aspect(&key).unwrap_or((1, 1));
        match u64::from(across) * u64::from(stated.1) == u64::from(down) * u64::from(stated.0) {
            true => Ok(form),
            false => Err("only its container states the shape of its pixels".to_owned()),
        }
    }

    /// Whether decoders can begin with its first key frame without having to know what came before: in H.264 an IDR picture.
    fn begins_with_idr(&self, key: &Bytes) -> bool {
        let form = form::codec(self.stream).filter(|codec| *codec == VideoCodec::H264);
        let form = form.and_then(|_| AnnexB::new(&self.stream.parameters));
        let units = form.and_then(|form| form.convert(key, true));
        units.is_none_or(|it| annex_b::units(&it).any(|unit| is_of(unit, IDR)))
    }

    /// Frames a second, by the times of the first ones.
    fn rate(&self) -> SampleRate {
        let mut times: Vec<u64> = self.first.iter().map(|packet| packet.pts).collect();
        times.sort_unstable();
        times.dedup();
        let next = times.iter().skip(1);
        let mut gaps: Vec<u64> = next.zip(&times).map(|(next, at)| next - at).collect();
        gaps.sort_unstable();
        // The mean of the gaps around the median: single ones are rounded to what the container counts in.
        let median = gaps.get(gaps.len() / 2).copied().unwrap_or(33_333);
        let usual = gaps
            .iter()
            .filter(|&&gap| gap.abs_diff(median) <= median / 4);
        let (sum, count) = usual.fold((0, 0), |(sum, count), gap| (sum + gap, count + 1));
        let measured = match sum {
            0 => 1e6 / median.max(1) as f64,
            sum => 1e6 * f64::from(count) / sum as f64,
        };
        let near = |&(num, den): &(u32, u32)| {
            let rate = f64::from(num) / f64::from(den);
            (measured - rate).abs() / rate
        };
        let usual = USUAL_RATES
            .iter()
            .min_by(|a, b| near(a).total_cmp(&near(b)));
        match usual.filter(|rate| near(rate) < 0.005) {
            Some(&(num, den)) => SampleRate::new(num, den),
            None => SampleRate::new((measured.clamp(0.1, MAX_RATE) * 100.0).round() as u32, 100),
        }
    }

    /// Their rate in bits, by the first ones: a key frame each two seconds, and others between.
    fn bitrate(&self, rate: SampleRate) -> Bitrate {
        let mean = |key| {
            let sizes = self.first.iter().filter(|it| it.key == key);
            let sizes = sizes.map(|it| it.payload.len() as u64);
            let (sum, count) = sizes.fold((0, 0), |(sum, count), size| (sum + size, count + 1));
            sum / u64::max(count, 1)
        };
        let group = u64::from(rate.num * USUAL_GROUP / rate.den).max(1);
        let in_group = mean(true) + (group - 1) * mean(false);
        let per_second = in_group * 8 / u64::from(USUAL_GROUP);
        two_digits(per_second).clamp(Bitrate::kbps(50), Bitrate::mbps(50))
    }

    /// Octets of the largest frame to expect: twice what was seen.
    fn max_frame(&self) -> usize {
        let sizes = self.first.iter().map(|packet| packet.payload.len());
        sizes.max().unwrap_or(0) * 2
    }

    /// Returns the longest wait of a picture for pictures that are decoded before it and shown after it.
    fn reorder_delay(&self) -> Duration {
        let (mut latest, mut delay) = (0, 0);
        for packet in &self.first {
            latest = latest.max(packet.pts);
            delay = delay.max(latest - packet.pts);
        }
        Duration::from_micros(delay).min(MAX_REORDER_DELAY)
    }

    /// Frames from one key frame to the next, if two were seen.
    fn group(&self) -> Option<u32> {
        let mut keys = self.first.iter().enumerate().filter(|(_, it)| it.key);
        let ((first, _), (second, _)) = (keys.next()?, keys.next()?);
        u32::try_from(second - first).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(codec: &'static [u8], decode_delay: u64) -> NutStream {
        NutStream {
            class: NutClass::Video(360, 640),
            codec: Bytes::from_static(codec),
            parameters: Bytes::from_static(&[0, 0, 0, 1, 0x67, 0x64, 0, 0x1f]),
            decode_delay,
        }
    }

    fn packets(period: u64, octets: usize) -> Vec<Packet> {
        let packet = |number| Packet {
            // As FLV counts: in milliseconds.
            dts: number * period / 1_000 * 1_000,
            pts: number * period / 1_000 * 1_000,
            key: number % 60 == 0,
            payload: vec![1; octets].into(),
            ..Packet::default()
        };
        (0..16).map(packet).collect()
    }

    fn resolve(
        stream: &NutStream,
        packets: &[Packet],
        ladder: &str,
    ) -> Result<Resolved, IngestError> {
        let pictures = Pictures {
            stream,
            first: packets.iter().collect(),
            described: Picture::default(),
            turn: Turn::default(),
        };
        let ladder = match ladder {
            "" => LadderWish::default(),
            ladder => ladder.parse().unwrap(),
        };
        let wish = Wish {
            ladder,
            ..Wish::default()
        };
        pictures.resolve("x", &wish, None)
    }

    fn rungs(resolved: &Resolved) -> Vec<(String, u64, PictureSize)> {
        let rungs = resolved.video.ladder.rungs().iter();
        rungs
            .map(|rung| (rung.label.clone(), rung.bitrate.as_bps(), rung.size))
            .collect()
    }

    /// 2500 octets 60 times a second are 1.2 Mbit/s. 300 kbit/s carry 352×198 pixels, here upright.
    #[test]
    fn an_upright_stream_is_passed_through_with_a_low_rung() {
        let resolved = resolve(&stream(b"H264", 0), &packets(16_667, 2_500), "").unwrap();
        assert_eq!(resolved.video.rate, SampleRate::new(60, 1));
        let rungs = rungs(&resolved);
        assert_eq!(
            rungs[1],
            (
                "copy".to_owned(),
                1_200_000,
                PictureSize {
                    width: 360,
                    height: 640
                }
            )
        );
        assert_eq!((rungs[0].0.as_str(), rungs.len()), ("300k", 2));
        let upright = PictureSize {
            width: 198,
            height: 352,
        };
        assert_eq!(rungs[0].2, upright);
        assert_eq!(
            resolved.video.ladder.rungs()[1].copied.as_deref(),
            Some("avc1.64001F")
        );
        assert_eq!(resolved.video.key_interval, 250);
        assert!(resolved.copied.is_some() && resolved.note.is_none());
        let alone = resolve(&stream(b"H264", 0), &packets(16_667, 2_500), "copy").unwrap();
        assert_eq!(alone.video.ladder.rungs().len(), 1);
    }

    #[test]
    fn what_cannot_be_passed_through_says_why() {
        for (codec, why) in [(&b"HEVC"[..], "libx264"), (b"VP80", "libx264")] {
            let stream = stream(codec, 0);
            let packets = packets(33_333, 900);
            let resolved = resolve(&stream, &packets, "").unwrap();
            assert!(resolved.copied.is_none());
            assert!(resolved.note.unwrap().contains(why));
            let labels: Vec<_> = resolved
                .video
                .ladder
                .rungs()
                .iter()
                .map(|it| it.label.clone())
                .collect();
            // 640×360 needs no third.
            assert_eq!(labels, ["200k", "1M"]);
            let refused = resolve(&stream, &packets, "copy,1M")
                .unwrap_err()
                .to_string();
            assert!(refused.contains(why), "{refused}");
            assert!(resolve(&stream, &packets, "1M").unwrap().note.is_none());
        }
    }

    /// As containers round them: FLV to milliseconds.
    #[test]
    fn rates_are_the_usual_ones_where_they_are_near() {
        for (period, expected) in [
            (40_000, (25, 1)),
            (33_367, (30_000, 1_001)),
            (33_333, (30, 1)),
            (100_000, (1_000, 100)),
        ] {
            let mut packets = packets(period, 10);
            // What FLV rounds is off by up to 3 % a frame; over sixteen it is not.
            packets[3].pts += 1;
            let rate = resolve(&stream(b"H264", 0), &packets, "")
                .unwrap()
                .video
                .rate;
            let near = |(num, den): (u32, u32)| f64::from(num) / f64::from(den);
            let error = near((rate.num, rate.den)) / near(expected) - 1.0;
            assert!(error.abs() < 0.005, "{period}: {rate:?}");
        }
    }
}
