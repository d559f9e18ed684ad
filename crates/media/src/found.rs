//! Description of pictures and sound for people: codec, profile, size, sample rate, channels.

use core::fmt;

use serde::Serialize;

/// Pictures of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundVideo {
    /// Name of the codec, as `H.264`.
    pub codec: String,
    /// Name of its profile, as `High`; empty if unknown.
    pub profile: String,
    /// Width in pixels; 0 if unknown.
    pub width: u32,
    /// Height in pixels; 0 if unknown.
    pub height: u32,
}

impl FoundVideo {
    /// Pictures of `codec`, of which nothing else is known.
    pub(crate) fn of(codec: &str) -> Self {
        Self {
            codec: codec.to_owned(),
            profile: String::new(),
            width: 0,
            height: 0,
        }
    }
}

impl fmt::Display for FoundVideo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.codec)?;
        if !self.profile.is_empty() {
            write!(f, " {}", self.profile)?;
        }
        if self.width > 0 && self.height > 0 {
            write!(f, " {}x{}", self.width, self.height)?;
        }
        Ok(())
    }
}

/// Sound of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundAudio {
    /// Name of the codec, as `AAC`.
    pub codec: String,
    /// Samples per second and channel; 0 if unknown.
    pub sample_rate: u32,
    /// Number of channels; 0 if unknown.
    pub channels: u32,
}

impl fmt::Display for FoundAudio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.codec)?;
        if self.sample_rate > 0 {
            write!(f, " {} kHz", f64::from(self.sample_rate) / 1e3)?;
        }
        match self.channels {
            0 => Ok(()),
            1 => f.write_str(" mono"),
            2 => f.write_str(" stereo"),
            6 => f.write_str(" 5.1"),
            8 => f.write_str(" 7.1"),
            channels => write!(f, " {channels} channels"),
        }
    }
}

/// Media of a push received so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Description of the pictures.
    pub video: Option<FoundVideo>,
    /// Description of the sound.
    pub audio: Option<FoundAudio>,
    /// Number of pictures.
    pub pictures: u64,
    /// Number of key frames.
    pub key_frames: u64,
    /// Number of packets of sound.
    pub sounds: u64,
    /// Number of packets that are cut off or not understood.
    pub malformed: u64,
    /// Change in mid-stream that restarts the stream.
    pub changed: Option<String>,
}

impl Received {
    /// Why nothing may be seen of it yet, for people, and what to do.
    pub const fn obstacle(&self) -> &'static str {
        match (self.pictures, self.key_frames, self.sounds) {
            _ if self.malformed > 0 && self.malformed >= self.key_frames => {
                "its packets cannot be read: codec headers are missing or damaged; stop the encoder and start it again"
            }
            (0, _, 0) => {
                "no picture and no sound has arrived: is the encoder running, and are its tracks not muted?"
            }
            (0, _, _) => "only sound has arrived, no picture",
            (_, 0, _) => {
                "no key frame has arrived: set the encoder's key frame interval to 2 s or less"
            }
            _ => {
                "pictures have arrived, but none could be published yet: the machine or the pusher's network is slow"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_what_is_known() {
        let mut video = FoundVideo::of("H.264");
        assert_eq!(video.to_string(), "H.264");
        video.profile = "High".to_owned();
        (video.width, video.height) = (1_920, 1_080);
        assert_eq!(video.to_string(), "H.264 High 1920x1080");
        for (sample_rate, channels, text) in [
            (48_000, 2, "AAC 48 kHz stereo"),
            (44_100, 1, "AAC 44.1 kHz mono"),
            (0, 6, "AAC 5.1"),
            (0, 0, "AAC"),
        ] {
            let audio = FoundAudio {
                codec: "AAC".to_owned(),
                sample_rate,
                channels,
            };
            assert_eq!(audio.to_string(), text);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let received = |pictures, key_frames, sounds| Received {
            pictures,
            key_frames,
            sounds,
            ..Received::default()
        };
        for (received, named) in [
            (received(0, 0, 0), "no picture and no sound"),
            (received(0, 0, 9), "only sound"),
            (received(9, 0, 9), "no key frame"),
            (received(9, 1, 0), "could be published"),
        ] {
            assert!(received.obstacle().contains(named), "{received:?}");
        }
        let mut damaged = received(9, 1, 9);
        damaged.malformed = 9;
        assert!(damaged.obstacle().contains("headers are missing"));
    }
}
