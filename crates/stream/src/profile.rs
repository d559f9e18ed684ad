//! Whole consumers by one word: what each of their parts is.

use core::time::Duration;

use crate::choice::choices;
use crate::consumer::{self, AdaptiveTarget, RecoveryProfile, SynchroniserProfile};
use crate::ladder::{LadderConfig, challenge};
use crate::path::Control;
use crate::rate::RateControl;

/// How a consumer works, in all its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Ours.
    #[default]
    Namecast,
    /// That of \[RTSD\], as the paper prints it.
    ///
    /// | part | \[RTSD\] | here |
    /// |---|---|---|
    /// | newest samples, samples in flight | §4.1.3: by the gaps between arrivals | [`SynchroniserProfile::Paper`] |
    /// | repair | §3.4, §4.1.4: parity, then one retransmission at the checkpoint, γ = 1 | [`RecoveryProfile::Paper`] |
    /// | buffer | §3.4: α·jitter + β·DRD, α = 1, β = 2 | [`AdaptiveTarget`], at least 150 ms |
    /// | a frame that is late | is not waited for | `late_tolerance` |
    /// | decoding | takes no time of its own | [`decode_lead`](Self::decode_lead) |
    /// | bitrate | §4.1.5: Challenge | [`LadderConfig::Paper`] |
    /// | rate control of what is shown | none | a window that no stream fills |
    Rtsd,
}

choices!(Profile, "profile", Namecast = "namecast", Rtsd = "rtsd");

/// Interests in flight where nothing bounds them: more than a stream ever has.
const UNBOUNDED: u32 = 1_000;

/// Least target: that of NDN-RTC 3.0.2. The paper names none; without delay, its own would hold less than one frame.
const MIN_TARGET: Duration = Duration::from_millis(150);

impl Profile {
    /// Returns how one rung is pulled.
    pub fn consumer(self) -> consumer::Config {
        let mut config = consumer::Config::default();
        if self == Self::Rtsd {
            config.synchroniser.profile = SynchroniserProfile::Paper;
            config.recovery.profile = RecoveryProfile::Paper;
            config.checkpoint = 1.0;
            config.max_attempts = 2;
            config.late_tolerance = Duration::ZERO;
        }
        config
    }

    /// Returns how a rung is chosen.
    pub fn ladder(self) -> LadderConfig {
        match self {
            Self::Namecast => LadderConfig::default(),
            Self::Rtsd => LadderConfig::Paper(challenge::Config::default()),
        }
    }

    /// Returns what bounds requests.
    pub const fn control(self) -> Control {
        match self {
            Self::Namecast => Control::Live,
            Self::Rtsd => Control::Rate(RateControl::Window { window: UNBOUNDED }),
        }
    }

    /// Returns how long before they are shown frames are delivered, so that a decoder has time.
    pub const fn decode_lead(self) -> Duration {
        match self {
            Self::Namecast => Duration::from_millis(40),
            Self::Rtsd => Duration::ZERO,
        }
    }

    /// Returns by what the playout target goes; `None`: it is one that was given.
    pub const fn target(self) -> Option<AdaptiveTarget> {
        match self {
            Self::Namecast => None,
            Self::Rtsd => Some(AdaptiveTarget {
                jitter: 1.0,
                delay: 2.0,
                min: MIN_TARGET,
            }),
        }
    }
}
