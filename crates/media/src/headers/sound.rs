//! Headers of sound.

use core::ops::RangeInclusive;

use crate::found::FoundAudio;

/// Sound as a header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sound {
    /// Samples per second and channel.
    pub(crate) sample_rate: u32,
    pub(crate) channels: u32,
}

impl Sound {
    /// The same for people, of a codec.
    pub(crate) fn found(self, codec: &str) -> FoundAudio {
        FoundAudio {
            codec: codec.to_owned(),
            sample_rate: self.sample_rate,
            channels: self.channels,
        }
    }

    fn checked(self) -> Option<Self> {
        let is_rate = RATES.contains(&self.sample_rate);
        (is_rate && (1..=32).contains(&self.channels)).then_some(self)
    }
}

/// Samples per second that are accepted.
const RATES: RangeInclusive<u32> = 1..=384_000;
/// Sampling frequencies by index: ISO/IEC 14496-3, table 1.18.
pub(crate) const AAC_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];
/// Channels by configuration: table 1.19.
const AAC_CHANNELS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 8];
const AC3_RATES: [u32; 3] = [48_000, 44_100, 32_000];
/// Channels without the one for bass, by `acmod`: ATSC A/52, table 5.8.
const AC3_CHANNELS: [u32; 8] = [2, 1, 2, 3, 3, 4, 4, 5];

/// Reads an AudioSpecificConfig (ISO/IEC 14496-3, section 1.6.2.1).
pub(crate) fn aac(config: &[u8]) -> Option<Sound> {
    let head = u16::from_be_bytes(*config.first_chunk()?);
    let index = usize::from(head >> 7 & 0x0f);
    // Index 15 precedes an explicit frequency of 24 bits.
    let (sample_rate, channels) = if index == 15 {
        let octets: [u8; 5] = config.get(..5)?.try_into().ok()?;
        let all = octets.iter().fold(0, |sum, it| sum << 8 | u64::from(*it));
        ((all >> 7 & 0xff_ffff) as u32, (all >> 3 & 0x0f) as usize)
    } else {
        (*AAC_RATES.get(index)?, usize::from(head >> 3 & 0x0f))
    };
    // Some configurations leave the channels to the frames.
    let channels = AAC_CHANNELS.get(channels).copied().unwrap_or(0);
    RATES.contains(&sample_rate).then_some(Sound {
        sample_rate,
        channels,
    })
}

/// Reads an identification header of Opus (RFC 7845, section 5.1). Decoders give 48 kHz whatever it says.
pub(crate) fn opus(head: &[u8]) -> Option<Sound> {
    let rest = head.strip_prefix(b"OpusHead")?;
    let sound = Sound {
        sample_rate: 48_000,
        channels: u32::from(*rest.get(1)?),
    };
    sound.checked()
}

/// The STREAMINFO block of a FLAC header (RFC 9639, section 8.2), and what it says.
pub(crate) fn flac(header: &[u8]) -> Option<(&[u8], Sound)> {
    let block = header.strip_prefix(b"fLaC").unwrap_or(header);
    let info = block.get(4..38)?;
    let octets: [u8; 4] = info.get(10..14)?.try_into().ok()?;
    let fields = u32::from_be_bytes(octets);
    let sound = Sound {
        sample_rate: fields >> 12,
        channels: (fields >> 9 & 7) + 1,
    };
    sound.checked().map(|sound| (info, sound))
}

/// Reads the header of a frame of AC-3 (ATSC A/52, section 5.3).
pub(crate) fn ac3(frame: &[u8]) -> Option<Sound> {
    let &[0x0b, 0x77, _, _, rate, stream, mode, ..] = frame else {
        return None;
    };
    // Above ten it is E-AC-3, whose header is another.
    if stream >> 3 > 10 {
        return None;
    }
    let acmod = mode >> 5;
    let mut skipped = 3;
    for has_field in [acmod & 1 == 1 && acmod != 1, acmod & 4 == 4, acmod == 2] {
        skipped += if has_field { 2 } else { 0 };
    }
    // At most nine bits before it, of which eight are in this octet.
    let bass = u16::from_be_bytes([mode, *frame.get(7).unwrap_or(&0)]) >> (15 - skipped) & 1;
    let sound = Sound {
        sample_rate: *AC3_RATES.get(usize::from(rate >> 6))?,
        channels: AC3_CHANNELS.get(usize::from(acmod))? + u32::from(bass),
    };
    sound.checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sound(sample_rate: u32, channels: u32) -> Option<Sound> {
        Some(Sound {
            sample_rate,
            channels,
        })
    }

    /// LC (2) at 44.1 kHz (4), two channels: 00010 0100 0010 000. At 48 kHz (3), one: 00010 0011 0001. Written out, 50 kHz (0xc350):
    /// 00010 1111 000000001100001101010000 0010.
    #[test]
    fn aac_is_read() {
        assert_eq!(aac(&[0x12, 0x10]), sound(44_100, 2));
        assert_eq!(aac(&[0x11, 0x88, 0x56]), sound(48_000, 1));
        let bits: u64 = 0b00010 << 35 | 0b1111 << 31 | 50_000 << 7 | 2 << 3;
        assert_eq!(aac(&bits.to_be_bytes()[3..]), sound(50_000, 2));
        assert_eq!(aac(&[0x17, 0x80]), None);
        assert_eq!(aac(&[0x12]), None);
    }

    /// AC-3 of 48 kHz, 3/2 with bass: 7, then two fields of two bits, then 1: 111 00 00 1. Stereo (2), a field, no bass: 010 00 0.
    #[test]
    fn the_others_are_read() {
        assert_eq!(opus(b"OpusHead\x01\x02\0\0"), sound(48_000, 2));
        assert_eq!(opus(b"OpusHead\x01"), None);
        let ac3_of = |mode| ac3(&[0x0b, 0x77, 0, 0, 0x1e, 0x40, mode, 0]);
        assert_eq!(ac3_of(0b1110_0001), sound(48_000, 6));
        assert_eq!(ac3_of(0b0100_0000), sound(48_000, 2));
        assert_eq!(ac3(&[0x0b, 0x77, 0, 0, 0x1e, 0x80, 0, 0]), None);
        let mut header = b"fLaC\x80\0\0\x22".to_vec();
        header.extend([0; 10]);
        // 44100 in 20 bits, two channels less one in three: 0x0ac44 << 12 | 1 << 9.
        header.extend((44_100_u32 << 12 | 1 << 9).to_be_bytes());
        header.extend([0; 20]);
        let (info, found) = flac(&header).unwrap();
        assert_eq!((info.len(), Some(found)), (34, sound(44_100, 2)));
        assert_eq!(flac(&header[..30]), None);
    }
}
