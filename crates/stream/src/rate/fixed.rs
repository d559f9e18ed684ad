//! Controllers that listen to nobody.

use namecast_units::{Bitrate, Instant};

use super::{Arrival, Loss, RateController, Target};

/// Sets no limit: a live stream never asks for more than its own bitrate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl RateController for Unlimited {
    fn on_data(&mut self, _now: Instant, _data: &Arrival) {}

    fn on_loss(&mut self, _now: Instant, _loss: Loss) {}

    fn target(&self) -> Target {
        Target::default()
    }

    fn name(&self) -> &'static str {
        "unlimited"
    }
}

/// Allows one rate, whatever happens.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    rate: Bitrate,
}

impl Fixed {
    /// A controller that allows `rate`.
    pub const fn new(rate: Bitrate) -> Self {
        Self { rate }
    }
}

impl RateController for Fixed {
    fn on_data(&mut self, _now: Instant, _data: &Arrival) {}

    fn on_loss(&mut self, _now: Instant, _loss: Loss) {}

    fn target(&self) -> Target {
        Target {
            rate: Some(self.rate),
            window: None,
        }
    }

    fn name(&self) -> &'static str {
        "fixed"
    }
}
