//! Headers of pictures.

use std::io::Cursor;

use bytes::{Buf, Bytes};
use h264_reader::nal::sps::SeqParameterSet;
use h264_reader::rbsp::{BitRead, BitReader, decode_nal};

use crate::found::FoundVideo;

/// Largest width and height that are accepted.
const MAX_SIDE: u32 = 16_384;

/// Most pictures that both H.264 and HEVC allow to be decoded before one that is shown earlier.
const MAX_REORDERED: u64 = 16;

/// Pictures as a header describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) profile: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Pictures that may be decoded before one that is shown earlier; `None` if the header does not say.
    pub(crate) reorder: Option<u64>,
}

impl Picture {
    /// The same for people, of a codec.
    pub(crate) fn found(&self, codec: &str) -> FoundVideo {
        FoundVideo {
            codec: codec.to_owned(),
            profile: self.profile.to_owned(),
            width: self.width,
            height: self.height,
        }
    }

    fn checked(self) -> Option<Self> {
        let is_size = |side: u32| (1..=MAX_SIDE).contains(&side);
        (is_size(self.width) && is_size(self.height)).then_some(self)
    }
}

type Bits<'a> = BitReader<Cursor<&'a [u8]>>;

fn bits(octets: &[u8]) -> Bits<'_> {
    BitReader::new(Cursor::new(octets))
}

/// Reads a sequence parameter set of H.264, from its first octet on (ITU-T H.264, section 7.3.2.1).
pub(crate) fn h264(unit: &[u8]) -> Option<Picture> {
    let payload = decode_nal(Some(unit).filter(|unit| !unit.is_empty())?).ok()?;
    let set = SeqParameterSet::from_bits(bits(&payload)).ok()?;
    let (width, height) = set.pixel_dimensions().ok()?;
    let profile = match (unit.get(1)?, unit.get(2)?) {
        (66, constraints) if constraints & 0x40 != 0 => "Constrained Baseline",
        (66, _) => "Baseline",
        (77, _) => "Main",
        (88, _) => "Extended",
        (100, _) => "High",
        (110, _) => "High 10",
        (122, _) => "High 4:2:2",
        (244, _) => "High 4:4:4",
        _ => "",
    };
    let limits = set.vui_parameters.as_ref();
    let limits = limits.and_then(|it| it.bitstream_restrictions.as_ref());
    let reorder = match profile {
        "Baseline" | "Constrained Baseline" => Some(0),
        _ => limits.map(|it| u64::from(it.max_num_reorder_frames).min(MAX_REORDERED)),
    };
    let picture = Picture {
        profile,
        width,
        height,
        reorder,
    };
    picture.checked()
}

/// Reads a sequence parameter set of HEVC, from its first octet on (ITU-T H.265, section 7.3.2.2).
pub(crate) fn hevc(unit: &[u8]) -> Option<Picture> {
    // `decode_nal` skips one octet of the header, which has two.
    let payload = decode_nal(unit.get(1..).filter(|unit| !unit.is_empty())?).ok()?;
    hevc_set(&mut bits(&payload))?.checked()
}

fn hevc_set(bits: &mut Bits<'_>) -> Option<Picture> {
    bits.skip(4, "sps_video_parameter_set_id").ok()?;
    let sub_layers: u32 = bits.read::<3, u32>("sps_max_sub_layers_minus1").ok()?;
    bits.skip(1, "sps_temporal_id_nesting_flag").ok()?;
    let profile = hevc_profile(bits, sub_layers)?;
    bits.read_ue("sps_seq_parameter_set_id").ok()?;
    let chroma = bits.read_ue("chroma_format_idc").ok()?;
    if chroma == 3 {
        bits.skip(1, "separate_colour_plane_flag").ok()?;
    }
    let mut width = bits.read_ue("pic_width_in_luma_samples").ok()?;
    let mut height = bits.read_ue("pic_height_in_luma_samples").ok()?;
    if bits.read_bit("conformance_window_flag").ok()? {
        let mut edge = |unit: u32| -> Option<u32> {
            let (before, after) = (bits.read_ue("offset").ok()?, bits.read_ue("offset").ok()?);
            before.checked_add(after)?.checked_mul(unit)
        };
        let (sub_width, sub_height) = match chroma {
            1 => (2, 2),
            2 => (2, 1),
            _ => (1, 1),
        };
        width = width.checked_sub(edge(sub_width)?)?;
        height = height.checked_sub(edge(sub_height)?)?;
    }
    bits.read_ue("bit_depth_luma_minus8").ok()?;
    bits.read_ue("bit_depth_chroma_minus8").ok()?;
    bits.read_ue("log2_max_pic_order_cnt_lsb_minus4").ok()?;
    let of_each = bits.read_bit("sps_sub_layer_ordering_info_present_flag");
    let sets = if of_each.ok()? { sub_layers + 1 } else { 1 };
    let mut reorder = 0;
    for _ in 0..sets {
        bits.read_ue("sps_max_dec_pic_buffering_minus1").ok()?;
        reorder = bits.read_ue("sps_max_num_reorder_pics").ok()?;
        bits.read_ue("sps_max_latency_increase_plus1").ok()?;
    }
    Some(Picture {
        profile,
        width,
        height,
        reorder: Some(u64::from(reorder).min(MAX_REORDERED)),
    })
}

/// Reads `profile_tier_level` (section 7.3.3).
fn hevc_profile(bits: &mut Bits<'_>, sub_layers: u32) -> Option<&'static str> {
    bits.skip(3, "general_profile_space, general_tier_flag")
        .ok()?;
    let profile: u8 = bits.read::<5, u8>("general_profile_idc").ok()?;
    // Compatibility, constraints, level.
    bits.skip(32 + 48 + 8, "profile_tier_level").ok()?;
    let mut present = Vec::new();
    for _ in 0..sub_layers {
        let of_profile = bits.read_bit("sub_layer_profile_present_flag").ok()?;
        let of_level = bits.read_bit("sub_layer_level_present_flag").ok()?;
        present.push((of_profile, of_level));
    }
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers), "reserved_zero_2bits")
            .ok()?;
    }
    for (of_profile, of_level) in present {
        let count = if of_profile { 88 } else { 0 } + if of_level { 8 } else { 0 };
        bits.skip(count, "sub_layer").ok()?;
    }
    Some(match profile {
        1 => "Main",
        2 => "Main 10",
        3 => "Main Still Picture",
        4 => "Range Extensions",
        _ => "",
    })
}

/// The sequence header among OBUs, as a whole OBU (AV1 Bitstream, sections 5.3 and 6.2).
pub(crate) fn av1_sequence_header(obus: &[u8]) -> Option<&[u8]> {
    let mut rest = obus;
    loop {
        let (kind, size) = obu(rest)?;
        let (whole, after) = rest.split_at_checked(size)?;
        if kind == 1 {
            return Some(whole);
        }
        rest = after;
    }
}

/// Kind and size of the first of some OBUs.
fn obu(octets: &[u8]) -> Option<(u8, usize)> {
    let header = *octets.first()?;
    let head = 1 + usize::from(header >> 2 & 1);
    let kind = header >> 3 & 0x0f;
    if header & 2 == 0 {
        return Some((kind, octets.len()));
    }
    let mut size = 0_usize;
    for (index, octet) in octets.get(head..)?.iter().take(4).enumerate() {
        size |= usize::from(octet & 0x7f) << (7 * index);
        if octet & 0x80 == 0 {
            return Some((kind, head + index + 1 + size));
        }
    }
    None
}

/// Reads the sequence header among OBUs. Returns the AV1CodecConfigurationRecord without OBUs, too (AV1 Codec ISO Media File Format
/// Binding, section 2.3).
pub(crate) fn av1(obus: &[u8]) -> Option<(Picture, [u8; 4])> {
    let whole = av1_sequence_header(obus)?;
    let header = *whole.first()?;
    let mut payload = whole.get(1 + usize::from(header >> 2 & 1)..)?;
    if header & 2 != 0 {
        while payload.has_remaining() && payload.get_u8() & 0x80 != 0 {}
    }
    av1_sequence(&mut bits(payload))
}

fn av1_sequence(bits: &mut Bits<'_>) -> Option<(Picture, [u8; 4])> {
    let profile: u8 = bits.read::<3, u8>("seq_profile").ok()?;
    bits.skip(1, "still_picture").ok()?;
    let (mut level, mut tier) = (0, false);
    let is_reduced = bits.read_bit("reduced_still_picture_header").ok()?;
    if is_reduced {
        level = bits.read::<5, u8>("seq_level_idx").ok()?;
    } else {
        let delay_length = av1_timing(bits)?;
        let has_display_delay = bits.read_bit("initial_display_delay_present_flag").ok()?;
        let points: u32 = bits.read::<5, u32>("operating_points_cnt_minus_1").ok()?;
        for point in 0..=points {
            bits.skip(12, "operating_point_idc").ok()?;
            let of_point: u8 = bits.read::<5, u8>("seq_level_idx").ok()?;
            let is_high = of_point > 7 && bits.read_bit("seq_tier").ok()?;
            if point == 0 {
                (level, tier) = (of_point, is_high);
            }
            if let Some(length) = delay_length
                && bits.read_bit("decoder_model_present").ok()?
            {
                bits.skip(2 * length + 1, "operating_parameters_info")
                    .ok()?;
            }
            if has_display_delay && bits.read_bit("initial_display_delay_present").ok()? {
                bits.skip(4, "initial_display_delay_minus_1").ok()?;
            }
        }
    }
    let width_bits = bits.read::<4, u32>("frame_width_bits_minus_1").ok()? + 1;
    let height_bits = bits.read::<4, u32>("frame_height_bits_minus_1").ok()? + 1;
    let width: u32 = bits.read_var(width_bits, "max_frame_width_minus_1").ok()?;
    let height: u32 = bits
        .read_var(height_bits, "max_frame_height_minus_1")
        .ok()?;
    let picture = Picture {
        profile: match profile {
            0 => "Main",
            1 => "High",
            2 => "Professional",
            _ => "",
        },
        width: width + 1,
        height: height + 1,
        reorder: Some(0),
    };
    let colours = av1_colours(bits, profile, is_reduced)?;
    let record = [0x81, profile << 5 | level, u8::from(tier) << 7 | colours, 0];
    picture.checked().map(|picture| (picture, record))
}

/// Reads `timing_info` and `decoder_model_info`. Returns the length of delays where there is a decoder model.
#[expect(clippy::option_option, reason = "the outer one is an early end")]
fn av1_timing(bits: &mut Bits<'_>) -> Option<Option<u32>> {
    if !bits.read_bit("timing_info_present_flag").ok()? {
        return Some(None);
    }
    bits.skip(64, "num_units_in_display_tick, time_scale")
        .ok()?;
    if bits.read_bit("equal_picture_interval").ok()? {
        // uvlc() is Exp-Golomb.
        bits.read_ue("num_ticks_per_picture_minus_1").ok()?;
    }
    if !bits.read_bit("decoder_model_info_present_flag").ok()? {
        return Some(None);
    }
    let length: u32 = bits.read::<5, u32>("buffer_delay_length_minus_1").ok()?;
    bits.skip(32 + 5 + 5, "decoder_model_info").ok()?;
    Some(Some(length + 1))
}

/// Reads from after the size to the colours: depth and subsampling, as the record has them.
fn av1_colours(bits: &mut Bits<'_>, profile: u8, is_reduced: bool) -> Option<u8> {
    if !is_reduced && bits.read_bit("frame_id_numbers_present_flag").ok()? {
        bits.skip(7, "delta_frame_id_length_minus_2").ok()?;
    }
    bits.skip(3, "use_128x128_superblock to enable_intra_edge_filter")
        .ok()?;
    if !is_reduced {
        bits.skip(4, "enable_interintra_compound to enable_dual_filter")
            .ok()?;
        if bits.read_bit("enable_order_hint").ok()? {
            bits.skip(2, "enable_jnt_comp, enable_ref_frame_mvs").ok()?;
            av1_tools(bits)?;
            bits.skip(3, "order_hint_bits_minus_1").ok()?;
        } else {
            av1_tools(bits)?;
        }
    }
    bits.skip(3, "enable_superres, enable_cdef, enable_restoration")
        .ok()?;
    let high = bits.read_bit("high_bitdepth").ok()?;
    let twelve = profile == 2 && high && bits.read_bit("twelve_bit").ok()?;
    let mono = profile != 1 && bits.read_bit("mono_chrome").ok()?;
    let subsampling = match profile {
        0 => 0b1100,
        1 => 0,
        _ => 0b1000,
    };
    Some(u8::from(high) << 6 | u8::from(twelve) << 5 | u8::from(mono) << 4 | subsampling)
}

/// Reads `seq_force_screen_content_tools` and `seq_force_integer_mv`.
fn av1_tools(bits: &mut Bits<'_>) -> Option<()> {
    let forces = if bits.read_bit("seq_choose_screen_content_tools").ok()? {
        true
    } else {
        bits.read_bit("seq_force_screen_content_tools").ok()?
    };
    if forces && !bits.read_bit("seq_choose_integer_mv").ok()? {
        bits.skip(1, "seq_force_integer_mv").ok()?;
    }
    Some(())
}

/// Reads the header of a key frame of VP9 (VP9 Bitstream, section 6.2).
pub(crate) fn vp9(frame: &[u8]) -> Option<Picture> {
    let mut bits = bits(frame);
    if bits.read::<2, u8>("frame_marker").ok()? != 2 {
        return None;
    }
    let low: u8 = bits.read::<1, u8>("profile_low_bit").ok()?;
    let profile = bits.read::<1, u8>("profile_high_bit").ok()? << 1 | low;
    if profile == 3 {
        bits.skip(1, "reserved_zero").ok()?;
    }
    let shows_other = bits.read_bit("show_existing_frame").ok()?;
    let is_inter = bits.read_bit("frame_type").ok()?;
    if shows_other || is_inter {
        return None;
    }
    bits.skip(2, "show_frame, error_resilient_mode").ok()?;
    if bits.read::<24, u32>("frame_sync_code").ok()? != 0x49_83_42 {
        return None;
    }
    if profile >= 2 {
        bits.skip(1, "ten_or_twelve_bit").ok()?;
    }
    let is_rgb = bits.read::<3, u8>("color_space").ok()? == 7;
    match (is_rgb, profile % 2) {
        (false, 1) => bits.skip(4, "color_range, subsampling").ok()?,
        (true, 1) | (false, _) => bits.skip(1, "color_range").ok()?,
        (true, _) => return None,
    }
    let picture = Picture {
        profile: match profile {
            0 => "profile 0",
            1 => "profile 1",
            2 => "profile 2",
            _ => "profile 3",
        },
        width: bits.read::<16, u32>("frame_width_minus_1").ok()? + 1,
        height: bits.read::<16, u32>("frame_height_minus_1").ok()? + 1,
        reorder: Some(0),
    };
    picture.checked()
}

#[cfg(any(feature = "whip", feature = "hostile", test))]
/// Reads the header of a key frame of VP8 (RFC 6386, section 9.1).
pub(crate) fn vp8(frame: &[u8]) -> Option<Picture> {
    let &[first, _, _, 0x9d, 0x01, 0x2a, a, b, c, d, ..] = frame else {
        return None;
    };
    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    let picture = Picture {
        profile: "",
        width: side(a, b),
        height: side(c, d),
        reorder: Some(0),
    };
    picture.checked().filter(|_| first & 1 == 0)
}

/// Prepends the sequence header to a key frame that lacks it. A header without a size would take the frame for its own end, and is left
/// out.
pub(crate) fn av1_whole(frame: &Bytes, header: &[u8]) -> Bytes {
    let has_size = header.first().is_some_and(|head| head & 2 != 0);
    match av1_sequence_header(frame) {
        None if has_size => [header, frame].concat().into(),
        _ => frame.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::nut::NutReader;

    /// The first frame that ffmpeg encodes of 320×180 pixels.
    fn encoded(options: &str) -> Bytes {
        let line = format!(
            "-loglevel error -f lavfi -i testsrc2=size=320x180:rate=25 -frames:v 1 -pix_fmt yuv420p {options} -write_index 0 -f nut -"
        );
        let output = Command::new("ffmpeg").args(line.split(' ')).output();
        let output = output.expect("ffmpeg is there");
        let mut reader = NutReader::default();
        reader.push(&output.stdout);
        let frame = reader.frame().expect("it is NUT");
        frame.expect("there is a frame").payload
    }

    fn units(frame: &[u8]) -> Vec<&[u8]> {
        crate::annex_b::units(frame).collect()
    }

    fn is_right(picture: Option<Picture>, profile: &str, reorder: Option<u64>) {
        let picture = picture.unwrap();
        assert_eq!((picture.width, picture.height), (320, 180));
        assert_eq!((picture.profile, picture.reorder), (profile, reorder));
    }

    #[test]
    fn headers_tell_size_profile_and_order() {
        let h264_frame = encoded("-c:v libx264 -bf 3 -bsf:v dump_extra");
        let set = units(&h264_frame).into_iter().find(|it| it[0] & 31 == 7);
        is_right(h264(set.unwrap()), "High", Some(2));
        let hevc_frame =
            encoded("-c:v libx265 -x265-params log-level=none:bframes=0 -bsf:v dump_extra");
        let set = units(&hevc_frame)
            .into_iter()
            .find(|it| it[0] >> 1 & 63 == 33);
        is_right(hevc(set.unwrap()), "Main", Some(0));
        let av1_frame = encoded("-c:v libsvtav1 -preset 12");
        let (picture, record) = av1(&av1_frame).unwrap();
        is_right(Some(picture), "Main", Some(0));
        assert_eq!((record[0], record[2] & 0x7f), (0x81, 0x0c));
        let vp9_frame = encoded("-c:v libvpx-vp9 -deadline realtime -cpu-used 8");
        is_right(vp9(&vp9_frame), "profile 0", Some(0));
        let vp8_frame = encoded("-c:v libvpx -deadline realtime");
        is_right(vp8(&vp8_frame), "", Some(0));
        // Cut off or changed anywhere: something or nothing, but no panic.
        for frame in [h264_frame, hevc_frame, av1_frame, vp9_frame, vp8_frame] {
            damaged(&frame);
        }
    }

    /// A temporal delimiter is no header; a header without a size would take the frame for its own.
    #[test]
    fn headers_without_a_size_are_not_put_before_frames() {
        let frame = Bytes::from_static(b"\x12\0");
        assert_eq!(av1_whole(&frame, b"\x08\x01"), frame);
        assert_eq!(
            av1_whole(&frame, b"\x0a\x01\x07"),
            &b"\x0a\x01\x07\x12\0"[..]
        );
    }

    fn damaged(frame: &[u8]) {
        let read = |octets: &[u8]| {
            for unit in units(octets) {
                let _ = (h264(unit), hevc(unit));
            }
            let _ = (
                h264(octets),
                hevc(octets),
                av1(octets),
                vp9(octets),
                vp8(octets),
            );
        };
        let frame = &frame[..frame.len().min(200)];
        for at in 0..frame.len() {
            read(&frame[..at]);
            for value in [0, 1, 0x7f, 0xff, !frame[at]] {
                let mut changed = frame.to_vec();
                changed[at] = value;
                read(&changed);
            }
        }
    }
}
