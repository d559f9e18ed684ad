//! How a rung is chosen.

use core::fmt;
use core::str::FromStr;

use super::{Config, challenge};

/// How a rung is chosen, and the constants of that.
#[derive(Clone, Debug, PartialEq)]
pub enum LadderConfig {
    /// By [`Ladder`](super::Ladder): by the path.
    Live(Config),
    /// By [`Challenge`](super::Challenge), as \[RTSD\] has it: a higher rung is fetched beside the current one.
    Paper(challenge::Config),
}

impl Default for LadderConfig {
    fn default() -> Self {
        Self::Live(Config::default())
    }
}

/// How a rung is chosen, without constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LadderProfile {
    /// [`LadderConfig::Live`].
    #[default]
    Namecast,
    /// [`LadderConfig::Paper`].
    Paper,
}

impl LadderProfile {
    const NAMES: [(Self, &'static str); 2] = [(Self::Namecast, "namecast"), (Self::Paper, "paper")];
}

/// A text that names no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no ladder profile: write namecast or paper")]
pub struct ParseLadderError(pub String);

impl FromStr for LadderProfile {
    type Err = ParseLadderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::NAMES.into_iter().find(|(_, name)| *name == text);
        let (profile, _) = found.ok_or_else(|| ParseLadderError(text.to_owned()))?;
        Ok(profile)
    }
}

impl fmt::Display for LadderProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.into_iter().find(|(profile, _)| profile == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_profiles_are_read_back() {
        for (profile, name) in LadderProfile::NAMES {
            assert_eq!(name.parse(), Ok(profile));
            assert_eq!(profile.to_string(), name);
        }
        let error = "ours".parse::<LadderProfile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'ours' is no ladder profile: write namecast or paper"
        );
    }
}
