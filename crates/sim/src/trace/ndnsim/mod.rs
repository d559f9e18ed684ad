//! ndnSIM's tables, for the scripts that read them: text, fields separated by tabs, one header row.
//!
//! | here | in ndnSIM | rows |
//! |---|---|---|
//! | [`AppDelayTable`] | `ndn::AppDelayTracer` | two for each Data that an application got |
//! | [`RateTable`] | `ndn::L3RateTracer` | ten for each face and two for the node, once a period |
//! | [`CacheTable`] | `ndn::CsTracer` | two for each node, once a period |
//! | [`DropTable`] | `L2RateTracer` | one for each node, once a period |
//!
//! What is written once a period is a [`Sampler`](super::Sampler): [`Network::run_sampled`](crate::Network::run_sampled) runs a network and
//! shows it the counters in time. Rates and drops need events too: sizes come from these.
//!
//! Names of columns, their order, the smoothing of rates (0.8 of the newest period, 0.2 of all before) and the form of
//! numbers (six significant digits) are ndnSIM 2.8's, and so is the default period of half a second. Blanks, quotes and
//! `#` in texts become `_`, as R's `read.table` would split or cut there.

mod app_delay;
mod cache;
mod drops;
mod number;
mod rate;
mod table;

use core::time::Duration;

pub use app_delay::AppDelayTable;
pub use cache::CacheTable;
pub use drops::DropTable;
pub use rate::RateTable;

/// ndnSIM's averaging period where none is given.
pub const DEFAULT_PERIOD: Duration = Duration::from_millis(500);

/// Weight of the newest period in a smoothed rate.
const ALPHA: f64 = 0.8;

/// A count as floating point: above 2⁵³, more than any run counts, the last digits are lost.
const fn float(count: u64) -> f64 {
    count as f64
}

/// A count's change since it was last seen, and the rate that is smoothed from it: `s ← α·x/T + (1 − α)·s`.
#[derive(Clone, Copy, Debug, Default)]
struct Smoothed {
    rate: f64,
}

impl Smoothed {
    /// The smoothed rate after a period of `seconds` with `amount` in it.
    fn update(&mut self, amount: f64, seconds: f64) -> f64 {
        self.rate = ALPHA * (amount / seconds) + (1.0 - ALPHA) * self.rate;
        self.rate
    }
}
