//! Codecs: which encoder of ffmpeg makes them, how it is told to hold nothing back, and how WebCodecs names the result.

use core::fmt;
use core::str::FromStr;

use super::ladder::{PictureSize, Rung};

/// A video codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VideoCodec {
    /// H.264, constrained baseline, as an Annex B stream.
    #[default]
    H264,
    /// VP8.
    Vp8,
    /// VP9, profile 0.
    Vp9,
    /// AV1, main profile.
    Av1,
}

/// What bounds an H.264 level: ITU-R H.264 Table A-1.
struct H264Level {
    /// The level, times ten.
    level: u32,
    macroblocks_per_second: u32,
    macroblocks: u32,
}

/// Levels in use, lowest first; lower ones than 3.0 save a decoder nothing.
const H264_LEVELS: [H264Level; 5] = [
    H264Level {
        level: 30,
        macroblocks_per_second: 40_500,
        macroblocks: 1_620,
    },
    H264Level {
        level: 31,
        macroblocks_per_second: 108_000,
        macroblocks: 3_600,
    },
    H264Level {
        level: 32,
        macroblocks_per_second: 216_000,
        macroblocks: 5_120,
    },
    H264Level {
        level: 40,
        macroblocks_per_second: 245_760,
        macroblocks: 8_192,
    },
    H264Level {
        level: 51,
        macroblocks_per_second: 983_040,
        macroblocks: 36_864,
    },
];
/// Luma samples a second, and how VP9 and AV1 write the level that allows them. From the VP9 bitstream specification,
/// Annex A, and the AV1 specification, A.3.
const LEVELS: [(u64, &str, &str); 5] = [
    (4_608_000, "20", "00"),
    (20_736_000, "30", "04"),
    (31_950_720, "31", "05"),
    (70_778_880, "40", "08"),
    (u64::MAX, "51", "13"),
];

impl VideoCodec {
    /// ffmpeg's name of the encoder.
    pub const fn encoder(self) -> &'static str {
        match self {
            Self::H264 => "libx264",
            Self::Vp8 => "libvpx",
            Self::Vp9 => "libvpx-vp9",
            Self::Av1 => "libaom-av1",
        }
    }

    /// The codec as the catalogue names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "h264",
            Self::Vp8 => "vp8",
            Self::Vp9 => "vp9",
            Self::Av1 => "av1",
        }
    }

    /// The codec as WebCodecs names it, with the level that `size` at `rate` frames a second needs.
    pub fn codec_string(self, size: PictureSize, rate: u32) -> String {
        let samples = u64::from(size.width) * u64::from(size.height) * u64::from(rate);
        let (_, vp9, av1) = LEVELS
            .iter()
            .find(|(most, ..)| samples <= *most)
            .expect("the last level has no limit");
        match self {
            // Profile 66 with constraint sets 0 and 1: constrained baseline.
            Self::H264 => format!("avc1.42C0{:02X}", h264_level(size, rate)),
            Self::Vp8 => "vp8".to_owned(),
            Self::Vp9 => format!("vp09.00.{vp9}.08"),
            Self::Av1 => format!("av01.0.{av1}M.08"),
        }
    }

    /// Options for one rung, so that each frame leaves the encoder before the next one enters.
    pub fn options(self, rung: &Rung, rate: u32, key_interval: u32) -> String {
        let bps = rung.bitrate.as_bps();
        // Half a second of buffer: large enough for a key frame of decent look, small enough to pass in time.
        let buffer = bps / 2;
        let common = format!(
            "-c:v {} -b:v {bps} -maxrate {bps} -bufsize {buffer} -g {key_interval} -keyint_min {key_interval}",
            self.encoder()
        );
        // Large pictures cost the time; small ones need every bit.
        let (threads, preset) = match rung.size.height {
            540.. => (2, "ultrafast"),
            _ => (1, "superfast"),
        };
        match self {
            Self::H264 => {
                let level = h264_level(rung.size, rate);
                format!(
                    "{common} -preset {preset} -tune zerolatency -profile:v baseline -level:v {}.{} -sc_threshold 0 \
                     -threads {threads} -bsf:v dump_extra=freq=keyframe",
                    level / 10,
                    level % 10
                )
            }
            Self::Vp8 | Self::Vp9 => format!(
                "{common} -deadline realtime -cpu-used 8 -lag-in-frames 0 -auto-alt-ref 0 -threads {threads}"
            ),
            Self::Av1 => format!(
                "{common} -usage realtime -cpu-used 8 -lag-in-frames 0 -row-mt 1 -threads {threads}"
            ),
        }
    }
}

/// The codec that an encoder of ffmpeg makes, by its name: `h264_nvenc`, `libsvtav1`, …
pub fn made_by(encoder: &str) -> Option<VideoCodec> {
    let parts = [
        ("264", VideoCodec::H264),
        ("av1", VideoCodec::Av1),
        ("vp9", VideoCodec::Vp9),
        ("vp8", VideoCodec::Vp8),
        ("libvpx", VideoCodec::Vp8),
    ];
    let mut found = parts.into_iter().filter(|(part, _)| encoder.contains(part));
    found.next().map(|(_, codec)| codec)
}

/// Options of an encoder that people name, such as that of a graphics card.
pub(super) fn options_of(
    encoder: &str,
    codec: VideoCodec,
    rung: &Rung,
    key_interval: u32,
) -> String {
    let bps = rung.bitrate.as_bps();
    let maker = encoder.rsplit('_').next().unwrap_or_default();
    // No frame is held back, and those that are asked for are key frames.
    let hurry = match maker {
        "nvenc" => "-preset p2 -tune ull -zerolatency 1 -delay 0 -forced-idr 1 -rc cbr",
        "qsv" => "-preset veryfast -async_depth 1 -look_ahead 0 -forced_idr 1",
        "vaapi" => "-async_depth 1",
        "libx264" => "-preset superfast -tune zerolatency -sc_threshold 0",
        "libvpx" | "libvpx-vp9" => "-deadline realtime -cpu-used 8 -lag-in-frames 0",
        "libaom-av1" => "-usage realtime -cpu-used 8 -lag-in-frames 0",
        "libsvtav1" => "-preset 11 -svtav1-params pred-struct=1:rc=2",
        _ => "",
    };
    // SVT-AV1 knows no bound beside its own.
    let bound = match maker {
        "libsvtav1" => String::new(),
        _ => format!("-maxrate {bps} -bufsize {}", bps / 2),
    };
    let form = match codec {
        VideoCodec::H264 => "-bsf:v dump_extra=freq=keyframe",
        VideoCodec::Vp8 | VideoCodec::Vp9 | VideoCodec::Av1 => "",
    };
    format!("-c:v {encoder} -b:v {bps} {bound} -g {key_interval} -bf 0 {hurry} {form}")
}

/// What hands pictures over to an encoder, behind other filters.
pub(super) fn upload_filter(encoder: &str) -> &'static str {
    match encoder.rsplit('_').next() {
        Some("vaapi") => ",format=nv12,hwupload",
        Some("qsv") => ",format=nv12",
        _ => "",
    }
}

/// Options before the input for an encoder that needs a device.
pub(super) fn device(encoder: &str) -> &'static str {
    match encoder.rsplit('_').next() {
        Some("vaapi") => "-vaapi_device /dev/dri/renderD128",
        _ => "",
    }
}

/// The lowest level that allows the picture; the highest if none does.
fn h264_level(size: PictureSize, rate: u32) -> u32 {
    let macroblocks = size.width.div_ceil(16) * size.height.div_ceil(16);
    H264_LEVELS
        .iter()
        .find(|level| {
            macroblocks <= level.macroblocks && macroblocks * rate <= level.macroblocks_per_second
        })
        .map_or(51, |level| level.level)
}

impl fmt::Display for VideoCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for VideoCodec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::H264, Self::Vp8, Self::Vp9, Self::Av1]
            .into_iter()
            .find(|codec| codec.name() == text)
            .ok_or_else(|| format!("'{text}' is no codec: write h264, vp8, vp9 or av1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1280×720 has 80·45 = 3600 macroblocks, 108 000 a second at 30 fps: just level 3.1. One frame a second more is 3.2.
    #[test]
    fn levels_are_the_lowest_that_suffice() {
        let size = |width, height| PictureSize { width, height };
        assert_eq!(
            VideoCodec::H264.codec_string(size(320, 180), 30),
            "avc1.42C01E"
        );
        assert_eq!(
            VideoCodec::H264.codec_string(size(1_280, 720), 30),
            "avc1.42C01F"
        );
        assert_eq!(
            VideoCodec::H264.codec_string(size(1_280, 720), 31),
            "avc1.42C020"
        );
        assert_eq!(
            VideoCodec::H264.codec_string(size(1_920, 1_080), 30),
            "avc1.42C028"
        );
        assert_eq!(
            VideoCodec::Vp9.codec_string(size(1_280, 720), 30),
            "vp09.00.31.08"
        );
        assert_eq!(
            VideoCodec::Av1.codec_string(size(640, 360), 30),
            "av01.0.04M.08"
        );
    }
}
