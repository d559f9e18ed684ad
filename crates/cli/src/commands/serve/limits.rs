//! Options that bound what a push may cost.

use clap::Args;
use namecast_command::number;
use namecast_media::ingest::Limits;
use namecast_media::ingest::ladder::PictureSize;
use namecast_units::Bitrate;

/// Bounds of each push. One that exceeds them ends, and the message says which.
#[derive(Clone, Copy, Debug, Args)]
pub struct PushLimits {
    /// Largest picture that may be pushed, lying or upright.
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "3840x2160")]
    pub max_picture: PictureSize,
    /// Most pictures per second that may be pushed.
    #[arg(long, value_name = "FPS", default_value_t = 120, value_parser = number::<u32>(1..=1_000))]
    pub max_fps: u32,
    /// Highest bitrate that may be pushed, all tracks together; for some seconds it may be higher.
    #[arg(long, value_name = "BITRATE", default_value = "50M")]
    pub max_bitrate: Bitrate,
}

impl PushLimits {
    pub(super) const fn limits(self) -> Limits {
        Limits {
            picture: self.max_picture,
            frame_rate: self.max_fps,
            bitrate: self.max_bitrate,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        limits: PushLimits,
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let limits = |words: &[&str]| {
            let words = ["x"].into_iter().chain(words.iter().copied());
            Command::parse_from(words).limits.limits()
        };
        assert_eq!(limits(&[]), Limits::default());
        let low = limits(&[
            "--max-picture",
            "640x360",
            "--max-fps",
            "30",
            "--max-bitrate",
            "2M",
        ]);
        assert_eq!((low.picture.width, low.frame_rate), (640, 30));
        assert_eq!(low.bitrate, Bitrate::mbps(2));
    }
}
