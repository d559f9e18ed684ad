//! Where raw pictures and sound come from, each with the time it was captured.

mod drawn;
mod pipe;
mod probe;

pub use drawn::{DrawnSound, DrawnVideo};
pub use pipe::{Container, Pipe};
pub(super) use probe::{display_matrix, has_sound, probe};

use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;

use namecast_units::Timestamp;

use super::IngestError;

/// Camera that is used if none is named.
const DEFAULT_CAMERA: &str = "/dev/video0";
/// Formats of devices that are named as `pulse:default`.
const DEVICES: [&str; 4] = ["alsa", "pulse", "x11grab", "lavfi"];

/// What to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The drawn test picture and tone.
    Test,
    /// A V4L2 camera.
    Camera(PathBuf),
    /// Another device, by its format and name in ffmpeg: sound of `alsa` or `pulse`, a screen of `x11grab`, what `lavfi` draws.
    Device(&'static str, String),
    /// A file that ffmpeg reads.
    File(PathBuf),
    /// A stream that ffmpeg reads, by its address: `rtsp://…`, `http://…`.
    Address(String),
    /// A stream that ffmpeg reads, on standard input.
    StandardInput,
    /// A stream that this program writes into a pipe.
    Pipe(Pipe),
}

impl FromStr for Input {
    type Err = core::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "test" => Self::Test,
            "camera" => Self::Camera(DEFAULT_CAMERA.into()),
            "microphone" => Self::Device("alsa", "default".to_owned()),
            "-" => Self::StandardInput,
            _ if text.starts_with("/dev/video") => Self::Camera(text.into()),
            _ if text.contains("://") => Self::Address(text.to_owned()),
            _ => {
                let device = text.split_once(':').and_then(|(format, name)| {
                    let format = DEVICES.into_iter().find(|known| *known == format)?;
                    Some(Self::Device(format, name.to_owned()))
                });
                device.unwrap_or_else(|| Self::File(text.into()))
            }
        })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test => f.write_str("the test picture"),
            Self::Device(format, name) => write!(f, "{format}:{name}"),
            Self::Camera(path) => write!(f, "camera {}", path.display()),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Address(address) => f.write_str(address),
            Self::StandardInput => f.write_str("standard input"),
            Self::Pipe(pipe) => pipe.fmt(f),
        }
    }
}

/// Gives raw frames or sound packets when they are due.
pub trait Source: Send {
    /// Waits for the next one and puts it into `buffer`, whose old content is thrown away. Gives the time of capture (of the
    /// first sample, for sound), or `None` at the end.
    ///
    /// # Errors
    /// If the source broke.
    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Timestamp>, IngestError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_apart() {
        let input = |text: &str| text.parse::<Input>().unwrap();
        assert_eq!(input("test"), Input::Test);
        assert_eq!(input("camera"), Input::Camera("/dev/video0".into()));
        assert_eq!(input("/dev/video2"), Input::Camera("/dev/video2".into()));
        assert_eq!(input("-"), Input::StandardInput);
        assert_eq!(
            input("rtsp://door/cam"),
            Input::Address("rtsp://door/cam".into())
        );
        assert_eq!(
            input("pulse:default"),
            Input::Device("pulse", "default".to_owned())
        );
        assert_eq!(input("a:b.mp4"), Input::File("a:b.mp4".into()));
        assert_eq!(input("./test"), Input::File("./test".into()));
    }
}
