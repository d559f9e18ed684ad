//! Whoever lies to a watcher, of bitrates, periods or numbers, must not make it flood others: requests that go in vain are
//! bounded, whatever is accepted to exist.

use namecast_units::Instant;
use smart_default::SmartDefault;

use crate::sample::MAX_SEGMENTS;

use super::uplink::UplinkConfig;

/// Interests that each Data pays for: where samples are small, as much as that is requested of them that turns out not to exist.
const PER_DATA: f64 = 3.0;
/// Interests a second while nothing comes.
const PER_SECOND: f64 = 20.0;
/// Interests before anything came: windows of a path that is not known yet, and samples that do not exist yet.
const AT_FIRST: f64 = 300.0;
/// Interests that may be saved up: a lead may claim the most segments there are, twice, before what exists has to wait.
const MAX_SAVED: f64 = 2.0 * MAX_SEGMENTS as f64;

/// How many Interests may go in vain.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct Credit {
    #[default(AT_FIRST)]
    saved: f64,
    earned_at: Instant,
}

impl Credit {
    /// Returns whether an Interest may leave.
    pub(super) const fn allows(&self) -> bool {
        self.saved >= 1.0
    }

    /// Data came that was requested.
    pub(super) fn on_data(&mut self) {
        self.saved = (self.saved + PER_DATA).min(MAX_SAVED);
    }

    /// An Interest leaves.
    pub(super) const fn on_sent(&mut self) {
        self.saved -= 1.0;
    }

    /// Time passes.
    pub(super) fn on_tick(&mut self, now: Instant) {
        let seconds = now.since(self.earned_at).as_secs_f64();
        self.earned_at = now;
        self.saved = (self.saved + PER_SECOND * seconds).min(MAX_SAVED);
    }
}

/// How many repairs may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repairs {
    saved: f64,
    earned_at: Instant,
}

impl Repairs {
    pub(super) const fn new(config: &UplinkConfig) -> Self {
        Self {
            saved: config.max_repairs,
            earned_at: Instant::ZERO,
        }
    }

    /// Returns whether a repair may leave.
    pub(super) const fn allow(&self) -> bool {
        self.saved >= 1.0
    }

    /// A first Interest leaves.
    pub(super) const fn on_first(&mut self, config: &UplinkConfig) {
        self.saved = (self.saved + config.repair_share).min(config.max_repairs);
    }

    /// A repair leaves.
    pub(super) const fn on_repair(&mut self) {
        self.saved -= 1.0;
    }

    /// Time passes.
    pub(super) fn on_tick(&mut self, now: Instant, config: &UplinkConfig) {
        let earned = config.repair_rate * now.since(self.earned_at).as_secs_f64();
        self.saved = (self.saved + earned).min(config.max_repairs);
        self.earned_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    /// Returns the Interests that leave at once.
    fn spend(credit: &mut Credit) -> u32 {
        let mut spent = 0;
        while credit.allows() {
            credit.on_sent();
            spent += 1;
        }
        spent
    }

    /// Nothing comes for 10 s: 300 at first, then one in 50 ms.
    #[test]
    fn what_is_never_answered_is_bounded() {
        let mut credit = Credit::default();
        let mut total = spend(&mut credit);
        assert_eq!(total, 300);
        for millis in (5..=10_000).step_by(5) {
            credit.on_tick(Instant::ZERO + Duration::from_millis(millis));
            total += spend(&mut credit);
        }
        assert!((499..=500).contains(&total), "{total}");
    }

    /// A thousand Data a second pay for 3020 Interests; whoever requests fewer saves up to 1024.
    #[test]
    fn what_comes_pays_for_three_times_as_much() {
        let mut credit = Credit::default();
        let second = |credit: &mut Credit, number: u64, asks: &mut dyn FnMut(&mut Credit)| {
            for millis in 1..=1_000 {
                let at = Duration::from_millis(1_000 * number + millis);
                credit.on_tick(Instant::ZERO + at);
                credit.on_data();
                asks(credit);
            }
        };
        second(&mut credit, 0, &mut Credit::on_sent);
        assert_eq!(spend(&mut credit), MAX_SEGMENTS as u32 * 2 - 1);
        let mut spent = 0;
        second(&mut credit, 1, &mut |credit| spent += spend(credit));
        assert!((3_018..=3_021).contains(&spent), "{spent}");
        credit.on_tick(Instant::ZERO + Duration::from_secs(3_600));
        assert_eq!(spend(&mut credit), MAX_SEGMENTS as u32 * 2);
    }
}
