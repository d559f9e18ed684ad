//! Controllers that listen to nobody.

use namecast_units::{Bitrate, Instant};

use super::{Arrival, Lost, RateController, Target};

/// Sets no limit: a live stream never requests more than its own bitrate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl RateController for Unlimited {
    fn on_data(&mut self, _now: Instant, _data: &Arrival) {}

    fn on_loss(&mut self, _now: Instant, _lost: &Lost) {}

    fn target(&self) -> Target {
        Target::default()
    }

    fn name(&self) -> &'static str {
        "unlimited"
    }
}

/// Allows one rate, whatever happens.
#[derive(Clone, Copy, Debug)]
pub struct FixedRate {
    rate: Bitrate,
}

impl FixedRate {
    /// A controller that allows `rate`.
    pub const fn new(rate: Bitrate) -> Self {
        Self { rate }
    }
}

impl RateController for FixedRate {
    fn on_data(&mut self, _now: Instant, _data: &Arrival) {}

    fn on_loss(&mut self, _now: Instant, _lost: &Lost) {}

    fn target(&self) -> Target {
        Target {
            rate: Some(self.rate),
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "rate"
    }
}

/// Allows so many Interests at a time, whatever happens.
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow {
    window: u32,
}

impl FixedWindow {
    /// A controller that allows `window` Interests, at least one.
    pub fn new(window: u32) -> Self {
        Self {
            window: window.max(1),
        }
    }
}

impl RateController for FixedWindow {
    fn on_data(&mut self, _now: Instant, _data: &Arrival) {}

    fn on_loss(&mut self, _now: Instant, _lost: &Lost) {}

    fn target(&self) -> Target {
        Target {
            window: Some(self.window),
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "window"
    }
}
