//! Keys that pushers have to show: from the command line, from a file that can be read again, or made here.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use namecast_command::HangUps;
use namecast_command::report::causes;
use serde_json::json;

use super::{Serve, Told};
use crate::push::Gate;
use crate::push::keys::{self, PushKeys};

/// Where the keys come from.
pub(super) struct KeyRing {
    origin: Origin,
    /// Others on the network can push.
    is_public: bool,
    /// Heard if there is a file to read again.
    pub(super) hang_ups: Option<HangUps>,
}

enum Origin {
    /// Everybody may push.
    None,
    Argument(String),
    File(PathBuf),
    Made(String),
}

impl KeyRing {
    /// Where others on the network can push, there is always a key.
    ///
    /// # Errors
    /// If the system does not report signals.
    pub(super) fn of(arguments: &Serve) -> anyhow::Result<Self> {
        let is_public = is_public(arguments);
        let origin = match (&arguments.push_key_file, &arguments.push_key) {
            (Some(path), _) => Origin::File(path.clone()),
            (None, Some(key)) => Origin::Argument(key.clone()),
            (None, None) if is_public => Origin::Made(keys::make()),
            (None, None) => Origin::None,
        };
        let hang_ups = matches!(origin, Origin::File(_)).then(HangUps::new);
        Ok(Self {
            origin,
            is_public,
            hang_ups: hang_ups.transpose()?,
        })
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// If the file cannot be read, or a key is not one.
    pub(super) fn read(&self) -> anyhow::Result<PushKeys> {
        let (text, place) = match &self.origin {
            Origin::None => return Ok(PushKeys::default()),
            Origin::Argument(key) | Origin::Made(key) => (key.clone(), "--key".to_owned()),
            Origin::File(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                (text, path.display().to_string())
            }
        };
        PushKeys::parse(&text, self.is_public).context(place)
    }

    /// Waits until the keys are to be read again.
    pub(super) async fn hang_up(&mut self) {
        match &mut self.hang_ups {
            Some(hang_ups) => hang_ups.next().await,
            None => core::future::pending().await,
        }
    }

    /// Reads the keys again. If that fails, those before stay.
    pub(super) fn read_again(&self, gate: &Gate) -> Told {
        match self.read() {
            Ok(keys) => {
                let ended = gate.set_keys(keys);
                Told {
                    reason: ("keys", String::new()),
                    sentence: format!("Keys read again; {ended} streams end."),
                    object: json!({ "event": "keys", "ended": ended }),
                }
            }
            Err(error) => {
                let why = causes(&error);
                Told {
                    reason: ("keys", String::new()),
                    sentence: format!("Keys not read again: {why}"),
                    object: json!({ "event": "keys", "error": why }),
                }
            }
        }
    }

    /// The key that was made here.
    pub(super) fn made(&self) -> Option<&str> {
        match &self.origin {
            Origin::Made(key) => Some(key),
            _ => None,
        }
    }

    /// What an address to push to ends with.
    pub(super) fn suffix(&self) -> String {
        match &self.origin {
            Origin::None => String::new(),
            Origin::Made(key) => format!("?key={key}"),
            Origin::Argument(_) | Origin::File(_) => "?key=…".to_owned(),
        }
    }
}

/// Whether others on the network can push.
fn is_public(arguments: &Serve) -> bool {
    #[cfg(feature = "srt")]
    let addresses = [arguments.rtmp.0, arguments.srt.address()];
    #[cfg(not(feature = "srt"))]
    let addresses = [arguments.rtmp.0];
    let is_far = |address: &SocketAddr| !address.ip().is_loopback();
    arguments.page.listen || addresses.iter().flatten().any(is_far)
}
