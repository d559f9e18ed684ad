//! Keys that pushers show, and what wrong ones cost.

use namecast_net::admission::Source;
use namecast_units::{Duration, Pauses};
use sha2::{Digest, Sha256};

/// Fewest characters of a key where others can guess it: 96 bits in an alphabet of 64.
const MIN_LEN: usize = 16;
/// Fewest different characters of such a key.
const MIN_DIFFERENT: usize = 6;
/// Octets of a key that is made here: 96 bits.
const MADE: usize = 12;
/// First and longest pause after a wrong key.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Time without a wrong key after which a source's are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Sources whose wrong keys are remembered; of more, the one longest ago is forgotten.
const MAX_SOURCES: usize = 4_096;

/// Why there are no keys to go by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// A file has no key.
    #[error("no key: write one on a line, with the names that it is for, or without for all, as in: {example} /studio/*", example = make())]
    None,
    /// Not a key.
    #[error(
        "line {0}: the key has to stand in an address: choose one of letters, digits and - _ . ~"
    )]
    Unspeakable(usize),
    /// Easily guessed.
    #[error(
        "line {0}: others on the network could guess the key: take one of at least {MIN_LEN} characters, such as {example}",
        example = make()
    )]
    Weak(usize),
    /// Not a name.
    #[error("line {0}: '{1}' is no name: write /cam, or /studio/* for all names below /studio")]
    Name(usize, String),
}

/// Keys with the names that each may push under. None: everybody may push under every name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushKeys(Vec<PushKey>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct PushKey {
    /// Digest of the key, so that how long a comparison takes says nothing.
    digest: [u8; 32],
    /// None: all.
    names: Vec<Pattern>,
}

/// Names that a key is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    One(String),
    /// All below this one, which ends with a slash.
    Below(String),
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let path = text.strip_prefix('/')?;
        let (path, is_below) = match path.strip_suffix('*') {
            Some(above) if above.is_empty() || above.ends_with('/') => (above, true),
            _ => (path, false),
        };
        let is_good = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.~/".contains(&octet);
        if !path.bytes().all(is_good) || path.is_empty() && !is_below {
            return None;
        }
        Some(match is_below {
            true => Self::Below(path.to_owned()),
            false => Self::One(path.to_owned()),
        })
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::One(one) => one == path,
            Self::Below(above) => path.len() > above.len() && path.starts_with(above),
        }
    }
}

impl PushKeys {
    /// Reads keys: one on each line, and after it the names that it is for, or none for all. What follows a # is not read.
    ///
    /// With `must_be_strong` keys that are easily guessed are refused.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str, must_be_strong: bool) -> Result<Self, KeysError> {
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(key) = words.next() else { continue };
            let number = at + 1;
            let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.~".contains(&octet);
            if !key.bytes().all(is_plain) {
                return Err(KeysError::Unspeakable(number));
            }
            if must_be_strong && is_weak(key) {
                return Err(KeysError::Weak(number));
            }
            let pattern = |text: &str| {
                Pattern::parse(text).ok_or_else(|| KeysError::Name(number, text.to_owned()))
            };
            let names = words.map(pattern).collect::<Result<_, _>>()?;
            keys.push(PushKey {
                digest: digest(key),
                names,
            });
        }
        match keys.is_empty() {
            true => Err(KeysError::None),
            false => Ok(Self(keys)),
        }
    }

    /// Returns whether everybody may push.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns what a pusher with `key` may do: nothing if the key is none of these, else whether it is for the name `path`.
    pub(super) fn check(&self, shown: Option<[u8; 32]>, path: &str) -> Verdict {
        if self.0.is_empty() {
            return Verdict::Right;
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let of_key = |key: &&PushKey| Some(key.digest) == shown;
        let mut known = self.0.iter().filter(of_key).peekable();
        if known.peek().is_none() {
            return Verdict::Wrong;
        }
        let is_for = |key: &PushKey| {
            key.names.is_empty() || key.names.iter().any(|pattern| pattern.matches(path))
        };
        match known.any(is_for) {
            true => Verdict::Right,
            false => Verdict::OfOtherNames,
        }
    }
}

/// What becomes of a key that is shown for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    Wrong,
    OfOtherNames,
}

/// Makes a key of 96 bits.
pub fn make() -> String {
    use base64::Engine as _;
    let octets: [u8; MADE] = namecast_net::random();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(octets)
}

pub(super) fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

fn is_weak(key: &str) -> bool {
    let different: std::collections::BTreeSet<u8> = key.bytes().collect();
    key.len() < MIN_LEN || different.len() < MIN_DIFFERENT
}

/// Returns pauses after wrong keys, of which none came yet.
pub(super) const fn pauses() -> Pauses<Source> {
    Pauses::new(PAUSES.0, PAUSES.1, FORGOTTEN, MAX_SOURCES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_for_its_names() {
        let text = "# ours\nall-names-for-me\n\nstudio-key-0123456 /studio/* /cam # theirs\n";
        let keys = PushKeys::parse(text, true).unwrap();
        for (key, path, expected) in [
            ("all-names-for-me", "anything", Verdict::Right),
            ("studio-key-0123456", "studio/a", Verdict::Right),
            ("studio-key-0123456", "/studio/a/b", Verdict::Right),
            ("studio-key-0123456", "cam", Verdict::Right),
            ("studio-key-0123456", "studio", Verdict::OfOtherNames),
            ("studio-key-0123456", "studio/", Verdict::OfOtherNames),
            ("studio-key-0123456", "cam2", Verdict::OfOtherNames),
            ("theirs", "cam", Verdict::Wrong),
        ] {
            assert_eq!(
                keys.check(Some(digest(key)), path),
                expected,
                "{key} {path}"
            );
        }
        assert_eq!(keys.check(None, "cam"), Verdict::Wrong);
        assert_eq!(PushKeys::default().check(None, "cam"), Verdict::Right);
    }

    #[test]
    fn what_is_wrong_with_keys_is_told_by_line() {
        assert_eq!(PushKeys::parse("# none\n\n", true), Err(KeysError::None));
        assert_eq!(PushKeys::parse("\na b\n", true), Err(KeysError::Weak(2)));
        assert!(PushKeys::parse("short", false).is_ok());
        assert_eq!(
            PushKeys::parse(&"ab".repeat(20), true),
            Err(KeysError::Weak(1))
        );
        assert_eq!(
            PushKeys::parse("k?y", false),
            Err(KeysError::Unspeakable(1))
        );
        for wrong in ["studio", "/", "/studio*", "/st udio/*", "/a/*/b"] {
            let text = format!("key {wrong}");
            let parsed = PushKeys::parse(&text, false);
            assert!(matches!(parsed, Err(KeysError::Name(1, _))), "{wrong}");
        }
        for _ in 0..100 {
            let made = make();
            assert!(PushKeys::parse(&made, true).is_ok(), "{made}");
        }
    }
}
