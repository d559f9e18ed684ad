//! How fast a consumer may request Data. One file per algorithm.
//!
//! ```text
//!            Arrival, Lost                    Target: rate and window
//!  pipeline ───────────────▶ RateController ───────────────────────────▶ Pacer ──▶ Interests
//!     ▲                                                                                │
//!     └──────────────────────── Data, Nacks, silence ◀─────────────────────────────────┘
//! ```
//!
//! Rates are of octets as [`Arrival::size`] counts them. The fetcher of numbered objects counts *content*, so that ARC's
//! 8·χ·pps is the payload's bandwidth; the consumer of live streams counts whole packets.
//!
//! Controllers know no sequence numbers: where an algorithm asks whether a packet comes after a recovery point, its
//! [`asked_at`](Arrival::asked_at) is compared with the time of the last decrease.

pub mod aimd_gap;
pub mod aimd_icp;
pub mod aimd_ndnsim;
pub mod arc;
mod backlog;
pub mod bic;
mod control;
pub mod copa;
pub mod cubic;
pub mod dpccp;
mod fixed;
mod law;
mod pacer;
pub mod pcon;
pub mod pgmcc;
mod recovery;
pub mod rfcc;
mod round_trip;
pub mod said;
mod sources;
mod usage;
mod window;

use core::fmt::Debug;
use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use crate::feedback::Feedback;

pub use control::{CustomControl, ParseRateControlError, RateControl};
pub use fixed::{FixedRate, FixedWindow, Unlimited};
pub use pacer::Pacer;
pub use round_trip::{RoundTrip, RoundTripConfig};
pub use usage::Usage;

/// What a controller learns from one Data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the Interest left, the last time if it left more than once.
    pub asked_at: Instant,
    /// Time from Interest to Data, less the time the Interest waited for the Data to exist; `None` if the Interest was
    /// sent more than once, or how long it waited is unknown.
    pub rtt: Option<Duration>,
    /// Size of the packet, counted as the pipeline's rates are: its content, or the whole of it.
    pub size: ByteSize,
    /// It was reported as [`Lost`] before: it is late, or an answer to a repeated Interest.
    pub was_lost: bool,
    /// The controller's target is what holds the consumer back. If not, the application requests less by itself, and that
    /// all goes well says nothing of a higher rate.
    pub is_limiting: bool,
    /// A node on the path saw its queue build up.
    pub congestion_marked: bool,
    /// What nodes on the path say of it. The rate is counted as `size` is.
    pub feedback: Feedback,
}

/// An Interest whose Data will not come by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When the Interest left, the last time if it left more than once.
    pub asked_at: Instant,
    /// The sign of it.
    pub kind: Loss,
    /// The same transmission was reported before, by another sign. Only what insists on one kind of sign counts it.
    pub repeated: bool,
}

/// How a consumer learned that a Data packet will not come by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Data requested later has come.
    Gap,
    /// The Interest's retransmission timer ran out.
    Timeout,
    /// The Interest came back because of congestion.
    Nack,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// It arrived; its size is that of its content.
    Data(Arrival),
    /// It was lost.
    Lost(Lost),
}

/// What a controller allows from now on. `None` is no limit, or the pipeline's own choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Rate at which Data may be requested.
    pub rate: Option<Bitrate>,
    /// Interests that may be out. In a live stream, those that wait for a sample to exist count as well.
    pub window: Option<u32>,
    /// Time after which an unanswered Interest counts as lost, if the algorithm has a timer of its own. Live streams keep
    /// theirs: their Interests wait for samples to exist.
    pub timeout: Option<Duration>,
    /// What one Interest is taken to bring, where the algorithm has an estimate of its own: Interests are this much, at
    /// `rate`, apart.
    pub packet_size: Option<ByteSize>,
    /// Interests that were overtaken are still waited for: only their timer gives them up. Live streams, which repair
    /// what is missing before it is due, do as they must.
    pub ignores_gaps: bool,
}

/// What a controller has found out about the path, for plots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimates {
    /// Bandwidth it takes to be its own.
    pub bandwidth: Option<Bitrate>,
    /// Mean or smoothed round-trip time.
    pub average_rtt: Option<Duration>,
    /// Round-trip time without queues.
    pub min_rtt: Option<Duration>,
}

/// Decides how fast a consumer may request Data.
///
/// The pipeline reports what happened; the controller answers [`target`](Self::target).
/// It owns no clock or randomness: the same reports give the same rate.
pub trait RateController: Debug + Send {
    /// One requested Data packet arrived.
    fn on_data(&mut self, now: Instant, data: &Arrival);

    /// An Interest was given up, sent again, or came back.
    fn on_loss(&mut self, now: Instant, lost: &Lost);

    /// Returns what is allowed from now on.
    fn target(&self) -> Target;

    /// Returns the controller's name, for people.
    fn name(&self) -> &'static str;

    /// Does what is due by `now`. Early and repeated calls do nothing.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns what it takes the path to be like.
    fn estimates(&self) -> Estimates {
        Estimates::default()
    }
}

/// Reports for controllers under test.
#[cfg(test)]
pub(crate) mod reports {
    use super::*;

    /// Returns the moment `micros` microseconds after zero.
    pub(crate) fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// 1024 octets requested at `asked_at`, here `now`.
    pub(crate) fn arrival(now: Instant, asked_at: Instant) -> Arrival {
        Arrival {
            asked_at,
            rtt: Some(now.since(asked_at)),
            size: ByteSize::bytes(1_024),
            was_lost: false,
            is_limiting: true,
            congestion_marked: false,
            feedback: Feedback::default(),
        }
    }

    /// Returns the loss, by the sign `kind`, of what was requested at `asked_at`.
    pub(crate) const fn lost(asked_at: Instant, kind: Loss) -> Lost {
        Lost {
            asked_at,
            kind,
            repeated: false,
        }
    }
}
