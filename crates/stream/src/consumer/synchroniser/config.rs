//! Which synchroniser, and its constants.

use core::time::Duration;

use crate::choice::choices;

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

impl SynchroniserProfile {
    /// Returns whether it goes by the gaps between arrivals, as \[RTSD\] does.
    pub const fn goes_by_gaps(self) -> bool {
        matches!(self, Self::Paper | Self::Code144)
    }
}

choices!(
    SynchroniserProfile,
    "synchroniser",
    Namecast = "namecast",
    Paper = "paper",
    Code144 = "code-1.4.4"
);

choices!(
    StabilityClass,
    "class of stability",
    Low = "low",
    Medium = "medium",
    High = "high"
);
