//! Cameras, microphones and speakers as ffmpeg names them on each operating system.
//!
//! Those of macOS and Windows follow ffmpeg's documentation and have not been tried on a machine.

/// A device: ffmpeg's format, and the device's name in it.
pub(crate) type Device = (&'static str, String);

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

/// A device that has to be named, as the system has no name for the usual one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDefaultDevice {
    /// A camera or a microphone.
    #[error(
        "name the {0}: dshow:{1}=NAME; `ffmpeg -list_devices true -f dshow -i dummy` lists the names"
    )]
    Input(&'static str, &'static str),
    /// A speaker.
    #[error("ffmpeg plays no sound on Windows: write --output FILE or --output none")]
    Speaker,
}

impl System {
    /// The system that this program runs on.
    pub(crate) const HERE: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };

    /// Formats of devices that are named as `pulse:default`.
    pub(crate) const fn formats(self) -> &'static [&'static str] {
        match self {
            Self::Linux => &["alsa", "pulse", "x11grab", "v4l2", "lavfi"],
            Self::MacOs => &["avfoundation", "lavfi"],
            Self::Windows => &["dshow", "gdigrab", "lavfi"],
        }
    }

    /// Formats of devices that play sound.
    pub(crate) const fn speaker_formats(self) -> &'static [&'static str] {
        match self {
            Self::Linux => &["alsa", "pulse"],
            Self::MacOs => &["audiotoolbox"],
            Self::Windows => &[],
        }
    }

    /// Returns the device in `text`, such as `pulse:default`, if its format is one of `formats`.
    pub(crate) fn named(text: &str, formats: &'static [&'static str]) -> Option<Device> {
        let (format, name) = text.split_once(':')?;
        let format = formats.iter().find(|known| **known == format)?;
        Some((format, name.to_owned()))
    }

    /// Returns the usual camera.
    ///
    /// # Errors
    /// If it has to be named.
    pub(crate) fn camera(self) -> Result<Device, NoDefaultDevice> {
        let (format, name) = match self {
            Self::Linux => ("v4l2", "/dev/video0"),
            Self::MacOs => ("avfoundation", "default:none"),
            Self::Windows => return Err(NoDefaultDevice::Input("camera", "video")),
        };
        Ok((format, name.to_owned()))
    }

    /// Returns the usual microphone.
    ///
    /// # Errors
    /// If it has to be named.
    pub(crate) fn microphone(self) -> Result<Device, NoDefaultDevice> {
        let (format, name) = match self {
            Self::Linux => ("alsa", "default"),
            Self::MacOs => ("avfoundation", "none:default"),
            Self::Windows => return Err(NoDefaultDevice::Input("microphone", "audio")),
        };
        Ok((format, name.to_owned()))
    }

    /// Returns the usual speaker.
    ///
    /// # Errors
    /// If ffmpeg cannot play.
    pub(crate) fn speaker(self) -> Result<Device, NoDefaultDevice> {
        let (format, name) = match self {
            Self::Linux => ("alsa", "default"),
            Self::MacOs => ("audiotoolbox", "default"),
            Self::Windows => return Err(NoDefaultDevice::Speaker),
        };
        Ok((format, name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_devices() {
        let device = |format, name: &str| Ok((format, name.to_owned()));
        assert_eq!(System::Linux.camera(), device("v4l2", "/dev/video0"));
        let camera = System::MacOs.camera();
        assert_eq!(camera, device("avfoundation", "default:none"));
        let microphone = System::MacOs.microphone();
        assert_eq!(microphone, device("avfoundation", "none:default"));
        let named = |system: System, text| System::named(text, system.formats());
        assert_eq!(
            named(System::Windows, "dshow:video=Integrated Camera"),
            Some(("dshow", "video=Integrated Camera".to_owned()))
        );
        assert_eq!(named(System::Windows, "alsa:default"), None);
        assert_eq!(named(System::MacOs, "C:\\film.mp4"), None);
    }

    #[test]
    fn what_has_no_usual_device_says_how_to_name_one() {
        let said = System::Windows.camera().unwrap_err().to_string();
        assert!(
            said.starts_with("name the camera: dshow:video=NAME"),
            "{said}"
        );
        let said = System::Windows.speaker().unwrap_err().to_string();
        assert!(said.contains("--output none"), "{said}");
    }
}
