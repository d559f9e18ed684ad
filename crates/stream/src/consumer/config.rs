//! Bounds and constants of a consumer.

use core::time::Duration;

use crate::path::DelayConfig;

use super::repair::RecoveryConfig;
use super::synchroniser::SynchroniserConfig;

/// Bounds and constants of a consumer.
#[derive(Clone, Debug)]
pub struct Config {
    /// Constants of the delay estimator.
    pub delay: DelayConfig,
    /// How it finds the newest samples, and how many it asks for ahead.
    pub synchroniser: SynchroniserConfig,
    /// How it repairs what was lost.
    pub recovery: RecoveryConfig,
    /// Lifetime of an Interest that may have to wait for its sample. Producers cap it as well.
    pub lifetime: core::ops::RangeInclusive<Duration>,
    /// Retransmission checkpoint before the deadline, in DRDs: γ = 1 leaves time for one more round trip (RTSD §3.4).
    pub checkpoint: f64,
    /// How long after its time a missing frame still holds up the ones that need it.
    pub late_tolerance: Duration,
    /// The same where every sample stands alone: the next one is as good, so nothing waits.
    pub late_tolerance_standalone: Duration,
    /// Transmissions of one Interest, the first included.
    pub most_attempts: u32,
    /// Samples that may be asked for ahead of the newest one seen.
    pub most_lead: u64,
    /// Samples in assembly and in the playout buffer together.
    pub most_samples: usize,
    /// Octets of payload in assembly and in the playout buffer together.
    pub most_buffered: usize,
    /// Interests outstanding.
    pub most_outstanding: usize,
    /// Segments kept that arrived before the lead that vouches for them.
    pub most_strays: usize,
    /// Segments that one sample may have, data and parity each.
    pub most_segments: u32,
    /// How far beyond what we know a sequence number may jump before the numbering is taken for another one.
    pub most_jump: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            delay: DelayConfig::default(),
            recovery: RecoveryConfig::default(),
            synchroniser: SynchroniserConfig::default(),
            lifetime: Duration::from_secs(2)..=Duration::from_secs(4),
            checkpoint: 1.0,
            late_tolerance: Duration::from_millis(100),
            late_tolerance_standalone: Duration::ZERO,
            most_attempts: 4,
            most_lead: 64,
            most_samples: 512,
            most_buffered: 32 << 20,
            most_outstanding: 4_096,
            most_strays: 1_024,
            most_segments: 480,
            most_jump: 4_096,
        }
    }
}
