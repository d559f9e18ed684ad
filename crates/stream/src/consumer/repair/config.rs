//! How a consumer repairs what was lost.

use smart_default::SmartDefault;

use crate::choice::choices;
use crate::sample::MAX_LEAD_COPIES;

use super::Repair;
use super::namecast::Namecast;
use super::rtsd::Rtsd;

/// How what was lost is found out and requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryProfile {
    /// By the stream's clock, in rounds that ask for as much as makes it unlikely that a sample comes too late. Parity is
    /// requested only as loss and the time left warrant it, and Interests are hedged while any are lost.
    #[default]
    Namecast,
    /// As \[RTSD\] has it (§3.4): all parity is requested ahead; what it does not make up for is retransmitted once, γ·DRD before its
    /// time. As long as playback has not begun, nothing is.
    Paper,
    /// The same, and what later samples have overtaken is retransmitted, or what a timer runs out for, up to
    /// [`max_attempts`](crate::consumer::Config::max_attempts) times.
    Timers,
}

impl RecoveryProfile {
    pub(in crate::consumer) fn repair(self) -> &'static dyn Repair {
        match self {
            Self::Namecast => &Namecast,
            Self::Paper => &Rtsd { has_timers: false },
            Self::Timers => &Rtsd { has_timers: true },
        }
    }
}

choices!(
    RecoveryProfile,
    "recovery profile",
    Namecast = "namecast",
    Paper = "paper",
    Timers = "timers"
);

/// How a consumer repairs what was lost. All but the profile are for [`RecoveryProfile::Namecast`].
#[derive(Clone, Copy, Debug, PartialEq, SmartDefault)]
pub struct RecoveryConfig {
    /// How it works.
    pub profile: RecoveryProfile,
    /// Probability with which a sample that lost something may come too late after its last round, if losses are as measured: 1e-3 is the
    /// bound of frames in time at 5 % loss. Measured: half of it costs 3 % of Data at 10 % loss, double loses 0.6 % of frames in bursts.
    #[default(1e-3)]
    pub miss: f64,
    /// Segments that one round requests beyond those that are missing, at most. Measured: one in place of three loses 0.4 to 0.8 % of
    /// frames where time is short and in bursts, six gain nothing.
    #[default(3)]
    pub max_extra: usize,
    /// Copies of a lead that may be requested, at most [`MAX_LEAD_COPIES`]; zero where the producer makes none.
    #[default(MAX_LEAD_COPIES - 1)]
    pub lead_copies: usize,
    /// Whether inter-frame FEC is made use of, where the producer makes any.
    #[default(true)]
    pub inter_frame: bool,
    /// Share of segments lost from which on Interests are sent twice. Measured: half and double change no run at 2 % loss or more.
    #[default(0.005)]
    pub hedge_from: f64,
}
