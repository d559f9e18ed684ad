//! Which synchroniser, and its constants.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// How a consumer finds the newest samples and decides how many to request ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynchroniserProfile {
    /// From what answers say of themselves: what is newest, who asked, how long that Interest waited.
    #[default]
    Namecast,
    /// From the gaps between arrivals, with the numbers that \[RTSD\] prints.
    Paper,
    /// The same with those of the code that \[RTSD\] measured: NDN-RTC 1.4.4.
    Code144,
}

/// When gaps between arrivals count as even: the three sets of constants that \[RTSD\] compares (§5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StabilityClass {
    /// θ₁ = 0.6, θ₂ = 0.5, N = 3, K = 4: quick, and easily wrong.
    Low,
    /// θ₁ = 0.3, θ₂ = 0.7, N = 10, K = 4: what NDN-RTC uses.
    #[default]
    Medium,
    /// θ₁ = 0.1, θ₂ = 0.95, N = 30, K = 4: slow and sure.
    High,
}

/// Which synchroniser, and what an experiment may vary of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SynchroniserConfig {
    /// How it works.
    pub profile: SynchroniserProfile,
    /// λ₀: samples requested ahead at the start; `None` is the profile's own choice. Namecast's knows better from the
    /// first round trip on, and keeps to it only until then.
    pub initial_lead: Option<u64>,
    /// When gaps between arrivals count as even. Namecast's looks at no gaps.
    pub stability: StabilityClass,
    /// Time that an adjustment is given to show its effect; `None` is the profile's own choice. Namecast's needs none.
    pub detection_period: Option<Duration>,
    /// How old the first answer about the newest samples is made to be, as if a cache had kept it for so long. For
    /// experiments: zero otherwise.
    pub staleness: Duration,
}

/// A text that names no profile, or no class of stability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no {what}: write one of {}", .names.join(", "))]
pub struct ParseSynchroniserError {
    /// What was written.
    pub name: String,
    /// What it should have been.
    pub what: &'static str,
    /// What could have been written.
    pub names: &'static [&'static str],
}

impl SynchroniserProfile {
    /// The names that can be written.
    pub const NAMES: [&'static str; 3] = ["namecast", "paper", "code-1.4.4"];

    /// Returns whether it goes by the gaps between arrivals, as \[RTSD\] does.
    pub const fn goes_by_gaps(self) -> bool {
        matches!(self, Self::Paper | Self::Code144)
    }
}

impl StabilityClass {
    /// The names that can be written.
    pub const NAMES: [&'static str; 3] = ["low", "medium", "high"];
}

impl FromStr for SynchroniserProfile {
    type Err = ParseSynchroniserError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "namecast" => Ok(Self::Namecast),
            "paper" => Ok(Self::Paper),
            "code-1.4.4" => Ok(Self::Code144),
            other => Err(ParseSynchroniserError {
                name: other.to_owned(),
                what: "synchroniser",
                names: &Self::NAMES,
            }),
        }
    }
}

impl FromStr for StabilityClass {
    type Err = ParseSynchroniserError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "low" => Ok(Self::Low),
            "medium" => Ok(Self::Medium),
            "high" => Ok(Self::High),
            other => Err(ParseSynchroniserError {
                name: other.to_owned(),
                what: "class of stability",
                names: &Self::NAMES,
            }),
        }
    }
}

impl fmt::Display for SynchroniserProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namecast => "namecast",
            Self::Paper => "paper",
            Self::Code144 => "code-1.4.4",
        })
    }
}

impl fmt::Display for StabilityClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

impl<'de> Deserialize<'de> for SynchroniserProfile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for StabilityClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_written_alike() {
        for name in SynchroniserProfile::NAMES {
            assert_eq!(
                name.parse::<SynchroniserProfile>().unwrap().to_string(),
                name
            );
        }
        for name in StabilityClass::NAMES {
            assert_eq!(name.parse::<StabilityClass>().unwrap().to_string(), name);
        }
        let error = "Medium".parse::<StabilityClass>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'Medium' is no class of stability: write one of low, medium, high"
        );
        assert!("code".parse::<SynchroniserProfile>().is_err());
    }
}
