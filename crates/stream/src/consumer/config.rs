//! Bounds and constants of a consumer.

use core::time::Duration;

use smart_default::SmartDefault;

use crate::path::DelayConfig;

use super::repair::RecoveryConfig;
use super::synchroniser::SynchroniserConfig;

/// Bounds and constants of a consumer.
#[derive(Clone, Debug, SmartDefault)]
pub struct Config {
    /// Constants of the delay estimator.
    pub delay: DelayConfig,
    /// How it finds the newest samples, and how many it requests ahead.
    pub synchroniser: SynchroniserConfig,
    /// How it repairs what was lost.
    pub recovery: RecoveryConfig,
    /// Lifetime of an Interest that may have to wait for its sample. Producers cap it as well.
    #[default(Duration::from_secs(2)..=Duration::from_secs(4))]
    pub lifetime: core::ops::RangeInclusive<Duration>,
    /// Retransmission checkpoint before the deadline, in DRDs: γ = 1 leaves time for one more round trip (RTSD §3.4).
    #[default(1.0)]
    pub checkpoint: f64,
    /// How long after its time a missing frame still holds up the ones that need it.
    #[default(Duration::from_millis(100))]
    pub late_tolerance: Duration,
    /// The same where every sample stands alone: the next one is as good, so nothing waits.
    pub late_tolerance_standalone: Duration,
    /// Transmissions of one Interest, the first included.
    #[default(4)]
    pub max_attempts: u32,
    /// Samples that may be requested ahead of the newest one seen.
    #[default(64)]
    pub max_lead: u64,
    /// Samples in assembly and in the playout buffer together.
    #[default(512)]
    pub max_samples: usize,
    /// Octets of payload in assembly and in the playout buffer together.
    #[default(32 << 20)]
    pub max_buffered: usize,
    /// Interests outstanding.
    #[default(4_096)]
    pub max_outstanding: usize,
    /// Segments kept that arrived before the lead that vouches for them.
    #[default(1_024)]
    pub max_unverified: usize,
    /// Segments that one sample may have, data and parity each.
    #[default(480)]
    pub max_segments: u32,
    /// How far beyond what we know a sequence number may jump before the numbering is taken for another one.
    #[default(4_096)]
    pub max_jump: u64,
}

impl Config {
    /// Returns how long after its time a missing sample still holds up the ones that need it.
    pub(super) const fn tolerance(&self, is_standalone: bool) -> Duration {
        match is_standalone {
            true => self.late_tolerance_standalone,
            false => self.late_tolerance,
        }
    }
}
