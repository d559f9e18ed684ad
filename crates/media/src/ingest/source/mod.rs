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
use crate::devices::{NoDefaultDevice, System};

/// What to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The drawn test picture and tone.
    Test,
    /// A device, by its format and name in ffmpeg: a camera of `v4l2`, sound of `alsa` or `pulse`, a screen of `x11grab`, what `lavfi`
    /// draws; `avfoundation` on macOS, `dshow` on Windows.
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
    type Err = NoDefaultDevice;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let device = |(format, name)| Self::Device(format, name);
        Ok(match text {
            "test" => Self::Test,
            "camera" => device(System::HERE.camera()?),
            "microphone" => device(System::HERE.microphone()?),
            "-" => Self::StandardInput,
            _ if text.starts_with("/dev/video") => Self::Device("v4l2", text.to_owned()),
            _ if text.contains("://") => Self::Address(text.to_owned()),
            _ => System::named(text, System::HERE.formats())
                .map_or_else(|| Self::File(text.into()), device),
        })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test => f.write_str("the test picture"),
            Self::Device("v4l2", path) => write!(f, "camera {path}"),
            Self::Device(format, name) => write!(f, "{format}:{name}"),
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
        let camera = |path: &str| Input::Device("v4l2", path.to_owned());
        assert_eq!(input("camera"), camera("/dev/video0"));
        assert_eq!(input("/dev/video2"), camera("/dev/video2"));
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
