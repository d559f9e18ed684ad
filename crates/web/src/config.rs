//! What the page says when it starts a tab.

use core::str::FromStr;
use std::collections::BTreeSet;

use bytes::Bytes;
use namecast_apps::live::watcher::{PastConfig, Pin, RungChoice, Trust, WatcherConfig};
use namecast_apps::registration::RegistrationConfig;
use namecast_apps::trust::{ExchangeSecret, SharedChains};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Certificate, Name, ParseNameError, Signer, hex_decode};
use namecast_stream::StreamInfo;
use namecast_stream::path::Control;
use namecast_units::{Duration, Timestamp};
use serde::Deserialize;

/// Playout targets that the page may choose: below, every hiccup is seen; above, it is no longer live.
const TARGET_MS: core::ops::RangeInclusive<f64> = 0.0..=10_000.0;

/// How long before its time a piece of sound is given to the page: the audio device takes it ahead by what it buffers,
/// which is rarely more than 50 ms, and decoding takes its time.
const AUDIO_LEAD: Duration = Duration::from_millis(120);

/// Interval between two registrations. Their answers show the page that its transport still carries frames while nobody watches: it
/// connects anew if nothing has arrived for six seconds after it has sent something.
const REFRESH: Duration = Duration::from_secs(4);

/// What the page says when it begins to watch a stream, as JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchConfig {
    /// Name of the stream, as a URI.
    pub root: String,
    /// Who must have signed it: the digest of a key in hexadecimal. None: whoever is remembered, else whoever is met first.
    #[serde(default)]
    pub key: Option<String>,
    /// The digest of the key that the page has remembered since an earlier first use; counts if there is no `key`.
    #[serde(default)]
    pub remembered: Option<String>,
    /// Whether the rules of the tab's room say who may have signed it, and its key opens what is sealed.
    #[serde(default)]
    pub in_room: bool,
    /// Rung to begin with; none: the highest.
    #[serde(default)]
    pub rung: Option<String>,
    /// Playout target, ms.
    pub target_ms: f64,
    /// Names of streams that go before others of their kind.
    #[serde(default)]
    pub streams: Vec<String>,
    /// Whether to ask for audio.
    pub audio: bool,
    /// What bounds requests for objects, by the name that commands take; none: what suits them.
    #[serde(default)]
    pub controller: Option<Control>,
}

/// What the page says when it publishes streams under a name, as JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicationConfig {
    /// Name to publish under, as a URI.
    pub name: String,
    /// Secret of its Ed25519 key, 64 hexadecimal digits: the page keeps it, so that watchers know the key again. What is sealed is signed with the key
    /// of the room's member instead.
    pub secret: String,
    /// What shows the node that the name may be registered: its token and the tab's own secret, 64 hexadecimal digits together.
    #[serde(default)]
    pub ticket: Option<String>,
    /// Random octets, 64 hexadecimal digits: what is published is sealed for the members of the tab's room, as its member. All keys follow from them,
    /// so they must be drawn anew each time.
    #[serde(default)]
    pub sealed: Option<String>,
    /// Title for people, 1 to 200 octets without control characters.
    #[serde(default)]
    pub title: Option<String>,
    /// Streams and their rungs, as the catalogue has them.
    #[serde(default)]
    pub streams: Vec<StreamInfo>,
    /// Streams of data.
    #[serde(default)]
    pub data: Vec<DataStream>,
}

/// A data stream that the page publishes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataStream {
    /// The stream's name.
    pub name: String,
    /// Most samples of a second; helps those who watch to request in time.
    pub samples_per_second: u32,
    /// Octets of a usual sample.
    pub sample_size: u32,
}

impl PublicationConfig {
    /// Reads the page's JSON.
    ///
    /// # Errors
    /// What is malformed.
    pub fn decode(json: &str) -> Result<Self, ConfigError> {
        Ok(serde_json::from_str(json)?)
    }

    /// What is published, by a member of a room if it is sealed.
    pub(crate) fn setup(&self, member: Option<Membership>) -> Result<Setup, ConfigError> {
        let member = member.filter(|_| self.sealed.is_some());
        let sealed = self.sealed.as_deref();
        let sealing = sealed.map(|digits| {
            let seed = parse_digits(digits).ok_or(ConfigError::Seed)?;
            let member = member.clone().ok_or(ConfigError::NoRoom)?;
            Ok::<_, ConfigError>(Sealing {
                certificate: member.certificate,
                seed,
                starts: 0,
                readers: member.readers,
            })
        });
        let ticket = self.ticket.as_deref();
        let ticket = ticket.map(|digits| parse_digits::<32>(digits).ok_or(ConfigError::Ticket));
        let ticket = ticket.transpose()?;
        let data = self.data.iter();
        let data = data.map(|it| StreamInfo::data(&it.name, it.samples_per_second, it.sample_size));
        Ok(Setup {
            name: parse_root(&self.name)?,
            secret: match &member {
                Some(member) => member.secret,
                None => parse_digits(&self.secret).ok_or(ConfigError::Secret)?,
            },
            streams: self.streams.iter().cloned().chain(data).collect(),
            ticket: ticket.map(|octets| Bytes::copy_from_slice(&octets)),
            title: self.title.clone(),
            sealing: sealing.transpose()?,
        })
    }
}

/// What is published, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: Name,
    /// Of the key that signs.
    pub(crate) secret: [u8; 32],
    pub(crate) streams: Vec<StreamInfo>,
    /// What shows the neighbour that the name may be registered.
    pub(crate) ticket: Option<Bytes>,
    pub(crate) title: Option<String>,
    /// How a member of a room publishes.
    pub(crate) sealing: Option<Sealing>,
}

/// Membership of a room: what a member signs with, and who else may open what it seals.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) certificate: Certificate,
    /// Of the member's key.
    pub(crate) secret: [u8; 32],
    /// X25519 keys of the readers, and the version of the roster that has them.
    pub(crate) readers: (BTreeSet<[u8; 32]>, u64),
}

/// What a member publishes as, and for whom it is sealed.
#[derive(Clone, Debug)]
pub(crate) struct Sealing {
    pub(crate) certificate: Certificate,
    /// From which all keys follow; for each start another one.
    pub(crate) seed: [u8; 32],
    pub(crate) starts: u64,
    /// X25519 keys of the readers, and the version of the roster that has them.
    pub(crate) readers: (BTreeSet<[u8; 32]>, u64),
}

impl Sealing {
    /// Returns the seed of the next start.
    pub(crate) fn next_seed(&mut self) -> [u8; 32] {
        self.starts += 1;
        let drawn = [&self.seed[..], &self.starts.to_be_bytes()].concat();
        let digest = DigestSigner.sign(&drawn);
        (*digest).try_into().expect("SHA-256 has 32 octets")
    }
}

impl Setup {
    /// How often the name is registered.
    pub(crate) fn registration() -> RegistrationConfig {
        RegistrationConfig {
            refresh: REFRESH,
            ..RegistrationConfig::default()
        }
    }
}

/// What the page says of a frame that it encoded, as JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveFrame {
    /// Name of its stream.
    pub stream: String,
    /// Name of its rung.
    pub rung: String,
    /// Playback order; the same frame has the same position in every rung.
    pub position: u64,
    /// Whether it decodes by itself.
    pub key: bool,
    /// When it was captured, ms, as all times of a tab.
    pub captured_at: f64,
}

impl LiveFrame {
    /// Reads the page's JSON.
    ///
    /// # Errors
    /// What is malformed.
    pub fn decode(json: &str) -> Result<Self, ConfigError> {
        Ok(serde_json::from_str(json)?)
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no JSON, or a field is missing, unknown or of another type.
    #[error("the page's settings are malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The root is no name.
    #[error("'{name}' is no name: {why}")]
    Root {
        /// What was given.
        name: String,
        /// What is wrong with it.
        why: ParseNameError,
    },
    /// The key is no digest.
    #[error(
        "'{0}' is not the digest of a key, 64 hexadecimal digits as the publisher prints them; the name of a key pins nothing"
    )]
    Key(String),
    /// The secret of a key is none.
    #[error("the secret of a key is 64 hexadecimal digits")]
    Secret,
    /// A ticket is none.
    #[error("the link has no valid token: open it as it was printed")]
    Ticket,
    /// The token of a room is none.
    #[error("the link has no valid token: write all of it, as it was printed")]
    Token,
    /// The seed of a sealed stream is none.
    #[error("a sealed stream takes 64 hexadecimal digits of random octets")]
    Seed,
    /// The tab is in no room, or not a member yet.
    #[error("the tab is no member of a room, which a sealed stream needs")]
    NoRoom,
    /// The target is no sensible number.
    #[error("a target of {0} ms is not between 0 and 10 000 ms")]
    Target(f64),
}

impl WatchConfig {
    /// Reads the page's JSON.
    ///
    /// # Errors
    /// What is malformed.
    pub fn decode(json: &str) -> Result<Self, ConfigError> {
        Ok(serde_json::from_str(json)?)
    }

    /// Returns the watcher's configuration. `wall_at_zero` is the wall clock at time zero; `seed` is of its challenges; `room`: what the tab's room
    /// judges by, and opens with.
    ///
    /// # Errors
    /// The first field without sense.
    pub(crate) fn watcher(
        &self,
        wall_at_zero: Timestamp,
        seed: u64,
        room: Option<(SharedChains, ExchangeSecret)>,
    ) -> Result<WatcherConfig, ConfigError> {
        let root = parse_root(&self.root)?;
        let room = room.filter(|_| self.in_room);
        let trust = match (&self.key, &self.remembered) {
            _ if let Some((chains, _)) = &room => Trust::Schema(chains.clone()),
            (Some(key), _) => Trust::Pinned(Pin::Digest(parse_digest(key)?)),
            (None, Some(key)) => Trust::Remembered(parse_digest(key)?),
            (None, None) => Trust::FirstUse,
        };
        Ok(WatcherConfig {
            streams: self.streams.clone(),
            audio: self.audio,
            rung: rung_choice(self.rung.as_deref()),
            target: parse_target(self.target_ms)?,
            audio_lead: AUDIO_LEAD,
            wall_at_zero,
            trust,
            reader: room.map(|(_, secret)| secret).into_iter().collect(),
            seed,
            past: PastConfig {
                asks_since: true,
                ..PastConfig::default()
            },
            data: true,
            ..WatcherConfig::new(root)
        })
    }
}

/// The choice that a rung's name stands for.
pub(crate) fn rung_choice(name: Option<&str>) -> RungChoice {
    match name {
        None | Some("") => RungChoice::Auto,
        Some(name) => RungChoice::from(name),
    }
}

/// A playout target in milliseconds.
pub(crate) fn parse_target(milliseconds: f64) -> Result<Duration, ConfigError> {
    if TARGET_MS.contains(&milliseconds) {
        Ok(Duration::from_secs_f64(milliseconds / 1e3))
    } else {
        Err(ConfigError::Target(milliseconds))
    }
}

pub(crate) fn parse_root(uri: &str) -> Result<Name, ConfigError> {
    Name::from_str(uri).map_err(|why| ConfigError::Root {
        name: uri.to_owned(),
        why,
    })
}

pub(crate) fn parse_digest(key: &str) -> Result<[u8; 32], ConfigError> {
    parse_digits(key).ok_or_else(|| ConfigError::Key(key.to_owned()))
}

/// The octets of so many hexadecimal digits.
pub(crate) fn parse_digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    hex_decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"root":"/demo","key":null,"rung":"1M","target_ms":150,"audio":true}"#;
    const WALL: Timestamp = Timestamp::from_micros(1_000_000_000_000_000);

    #[test]
    fn every_field_reaches_the_watcher() {
        let config = WatchConfig::decode(WHOLE)
            .unwrap()
            .watcher(WALL, 7, None)
            .unwrap();
        assert_eq!(config.root, Name::from_str("/demo").unwrap());
        assert_eq!(config.rung, RungChoice::Label("1M".to_owned()));
        assert_eq!(config.target, Duration::from_millis(150));
        assert_eq!(config.wall_at_zero, WALL);
        assert_eq!((config.seed, config.audio), (7, true));
        assert_eq!(config.trust, Trust::FirstUse);
    }

    /// 0x01, 0xab, then zeros.
    #[test]
    fn a_digest_is_read_from_its_digits() {
        let key = format!("01aB{}", "0".repeat(60));
        let mut digest = [0; 32];
        (digest[0], digest[1]) = (0x01, 0xab);
        assert_eq!(parse_digest(&key).unwrap(), digest);
        assert!(parse_digest(&key[1..]).is_err());
        assert!(parse_digest(&key.replace("aB", "xy")).is_err());
        assert!(parse_digest("/demo/KEY/1").is_err(), "a name pins nothing");
    }

    /// What is pinned counts more than what is remembered.
    #[test]
    fn a_remembered_key_is_trusted_unless_one_is_pinned() {
        let (one, two) = ("01".repeat(32), "02".repeat(32));
        let trust = |key: &str, remembered: &str| {
            let fields = format!(r#""key":{key},"remembered":{remembered}"#);
            let json = WHOLE.replace(r#""key":null"#, &fields);
            let config =
                WatchConfig::decode(&json).and_then(|config| config.watcher(WALL, 7, None));
            config.map(|config| config.trust)
        };
        let quoted = |key: &str| format!("\"{key}\"");
        let remembered = trust("null", &quoted(&two)).unwrap();
        assert_eq!(remembered, Trust::Remembered([2; 32]));
        let pinned = trust(&quoted(&one), &quoted(&two)).unwrap();
        assert_eq!(pinned, Trust::Pinned(Pin::Digest([1; 32])));
        assert!(trust("null", &quoted("2")).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |from: &str, to: &str| {
            let json = WHOLE.replace(from, to);
            assert_ne!(json, WHOLE);
            WatchConfig::decode(&json)
                .and_then(|config| config.watcher(WALL, 7, None))
                .unwrap_err()
                .to_string()
        };
        assert!(refused("150", "-1").contains("-1"));
        assert!(refused("150", "1e9").contains("1000000000"));
        assert!(refused("\"/demo\"", "\"/a=%\"").contains("/a=%"));
        assert!(refused("null", "\"abc\"").contains("abc"));
        assert!(refused("audio", "odio").contains("malformed"));
        assert!(refused("{", "").contains("malformed"));
    }
}
