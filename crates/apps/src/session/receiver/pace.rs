//! How many Interests may be out, and how fast, where a controller decides.

use namecast_stream::rate::{Arrival, Lost, Pacer, RateController};
use namecast_units::{ByteSize, Instant};

use super::super::config::Flow;

/// What an Interest is taken to bring before anything has come.
const EXPECTED_SIZE: ByteSize = ByteSize::bytes(1_000);

/// A controller, and the pacer that keeps to its rate. Without a controller nothing is held back.
pub(super) struct Pace {
    controller: Option<Box<dyn RateController>>,
    pacer: Pacer,
    /// What one Interest is taken to bring: as much as the newest packet.
    size: ByteSize,
}

impl Pace {
    pub(super) fn new(now: Instant, flow: Flow) -> Self {
        let controller = match flow {
            Flow::Steady { .. } => None,
            Flow::Elastic { control, .. } => Some(control.build(now)),
        };
        Self {
            controller,
            pacer: Pacer::default(),
            size: EXPECTED_SIZE,
        }
    }

    pub(super) fn on_data(&mut self, now: Instant, arrival: &Arrival) {
        self.size = arrival.size;
        if let Some(controller) = &mut self.controller {
            controller.on_data(now, arrival);
        }
    }

    pub(super) fn on_loss(&mut self, now: Instant, lost: &Lost) {
        if let Some(controller) = &mut self.controller {
            controller.on_loss(now, lost);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(controller) = &mut self.controller
            && controller.poll_timeout().is_some_and(|at| at <= now)
        {
            controller.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.controller.as_ref()?.poll_timeout()
    }

    /// Records an Interest.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if let Some(controller) = &self.controller {
            self.pacer.on_sent(now, self.size, controller.target().rate);
        }
    }

    /// When the next Interest may be sent; zero: at once.
    pub(super) fn next_send(&self) -> Instant {
        let rate = self.controller.as_ref().and_then(|it| it.target().rate);
        self.pacer.next_send(rate)
    }

    /// Interests that may be out.
    pub(super) fn window(&self) -> usize {
        let window = self.controller.as_ref().and_then(|it| it.target().window);
        window.map_or(usize::MAX, |window| window as usize)
    }
}
