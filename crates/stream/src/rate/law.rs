//! Controllers whose window follows a law: slow start, one decrease for all that was under way, timer and pacing, which are
//! the same whatever the law.

use core::fmt::Debug;
use core::time::Duration;

use namecast_units::Instant;

use super::window::{Pacing, Window};
use super::{Arrival, Estimates, Loss, Lost, RateController, RoundTrip, RoundTripConfig, Target};

/// How a window grows after slow start, and what congestion leaves of it.
pub trait Law: Debug + Send {
    /// The controller's name, for people.
    const NAME: &'static str;

    /// Grows `window` by what one Data is worth in congestion avoidance, with the smoothed round-trip time if it is known.
    fn avoid_congestion(&mut self, now: Instant, window: &mut Window, rtt: Option<Duration>);

    /// Returns what is left of `window` after congestion.
    fn on_congestion(&mut self, window: &Window) -> f64;

    /// The congestion just reported was a timeout: the window starts anew from the least, in slow start up to what was left.
    fn on_timeout(&mut self) {}
}

/// A controller whose window follows the law `L` after slow start (\[RFC5681\], \[RFC6298\]):
///
/// ```text
/// Data:                W ← W + 1 below ssthresh,  the law's growth above
/// gap, Nack or mark:   ssthresh ← W ← left        once per window
/// timeout:             ssthresh ← left, W ← least once per window
/// ```
///
/// | here             | meaning                                              |
/// |------------------|------------------------------------------------------|
/// | W                | window in Interests                                  |
/// | ssthresh         | where slow start ends; infinite at first             |
/// | left             | what the law leaves of W                             |
/// | least            | least window                                         |
///
/// All losses of one window lead to one decrease, as with selective acknowledgements: what was requested before the last
/// decrease counts no more. How far packets may overtake each other before that is a gap is the pipeline's choice.
#[derive(Clone, Copy, Debug)]
pub struct Controller<L> {
    pub(super) law: L,
    pub(super) window: Window,
    round_trip: RoundTrip,
    pacing: Pacing,
    /// Whether the window is spread over its round trip.
    paced: bool,
}

impl<L: Law> Controller<L> {
    /// A controller in slow start, whose timeout is at least `timeout_margin`, and as much longer than the smoothed round-trip
    /// time.
    pub(super) fn with_law(law: L, window: Window, paced: bool, timeout_margin: Duration) -> Self {
        let round_trip = RoundTripConfig::new(timeout_margin, timeout_margin);
        Self {
            law,
            window,
            round_trip: RoundTrip::new(round_trip),
            pacing: Pacing::default(),
            paced,
        }
    }

    fn on_congestion(&mut self, now: Instant, asked_at: Instant) {
        if self.window.is_news(asked_at) {
            let left = self.law.on_congestion(&self.window);
            self.window.decrease_to(now, left);
        }
    }

    fn on_timeout(&mut self, now: Instant, asked_at: Instant) {
        if self.window.is_news(asked_at) {
            self.round_trip.back_off();
            let left = self.law.on_congestion(&self.window);
            self.law.on_timeout();
            self.window.start_anew(now, left);
        }
    }
}

impl<L: Law> RateController for Controller<L> {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        self.pacing.on_data(data.size);
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
        }
        if data.congestion_marked {
            self.on_congestion(now, data.asked_at);
        } else if data.is_limiting && self.window.is_news(data.asked_at) {
            if self.window.in_slow_start() {
                self.window.grow(1.0);
            } else {
                let rtt = self.round_trip.smoothed();
                self.law.avoid_congestion(now, &mut self.window, rtt);
            }
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        match lost.kind {
            Loss::Gap | Loss::Nack => self.on_congestion(now, lost.asked_at),
            // The gap before it was answered already.
            Loss::Timeout if lost.repeated => {}
            Loss::Timeout => self.on_timeout(now, lost.asked_at),
        }
    }

    fn target(&self) -> Target {
        let rate = self.pacing.rate(&self.window, self.round_trip.smoothed());
        Target {
            rate: rate.filter(|_| self.paced),
            window: Some(self.window.allowed()),
            timeout: Some(self.round_trip.timeout()),
            packet_size: self.pacing.packet_size(),
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        L::NAME
    }

    fn estimates(&self) -> Estimates {
        self.round_trip.estimates()
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::{Bitrate, ByteSize};

    use super::*;
    use crate::rate::reports::{arrival, at, lost};

    /// Grows by a quarter for each Data, and leaves three quarters.
    #[derive(Debug)]
    struct Quarters {
        timeouts: u32,
    }

    impl Law for Quarters {
        const NAME: &'static str = "quarters";

        fn avoid_congestion(&mut self, _now: Instant, window: &mut Window, rtt: Option<Duration>) {
            assert_eq!(rtt, Some(Duration::from_millis(20)));
            window.grow(0.25);
        }

        fn on_congestion(&mut self, window: &Window) -> f64 {
            0.75 * window.size()
        }

        fn on_timeout(&mut self) {
            self.timeouts += 1;
        }
    }

    fn controller(paced: bool) -> Controller<Quarters> {
        let law = Quarters { timeouts: 0 };
        let window = Window::new(16.0, 4.0);
        Controller::with_law(law, window, paced, Duration::from_millis(100))
    }

    fn assert_window(controller: &Controller<Quarters>, expected: f64) {
        let size = controller.window.size();
        assert!((size - expected).abs() < 1e-9, "{size}, not {expected}");
    }

    /// 16, 17 in slow start, 12.75 after congestion, 13 with the law.
    #[test]
    fn each_sign_of_congestion_counts_once_for_all_that_was_under_way() {
        let marked = |asked_at| Arrival {
            congestion_marked: true,
            ..arrival(at(20_000), asked_at)
        };
        let signs: [fn(&mut Controller<Quarters>, &Arrival); 3] = [
            |controller, _| controller.on_loss(at(20_000), &lost(at(0), Loss::Gap)),
            |controller, _| controller.on_loss(at(20_000), &lost(at(0), Loss::Nack)),
            |controller, marked| controller.on_data(at(20_000), marked),
        ];
        for sign in signs {
            let mut controller = controller(true);
            controller.on_data(at(20_000), &arrival(at(20_000), at(0)));
            assert_window(&controller, 17.0);
            for _ in 0..3 {
                sign(&mut controller, &marked(at(0)));
            }
            assert_window(&controller, 12.75);
            // What was requested up to the decrease is no news, good or bad.
            controller.on_data(at(40_000), &arrival(at(40_000), at(20_000)));
            assert_window(&controller, 12.75);
            controller.on_data(at(40_001), &arrival(at(40_001), at(20_001)));
            assert_window(&controller, 13.0);
        }
    }

    /// 16, of which 12 would be left: from 4 up to 12 by one, then by a quarter.
    #[test]
    fn a_timeout_starts_anew_from_the_least_window() {
        let mut controller = controller(true);
        let repeated = Lost {
            repeated: true,
            ..lost(at(0), Loss::Timeout)
        };
        controller.on_loss(at(1_000_000), &repeated);
        assert_window(&controller, 16.0);
        for _ in 0..3 {
            controller.on_loss(at(1_000_000), &lost(at(0), Loss::Timeout));
        }
        assert_window(&controller, 4.0);
        assert_eq!(controller.law.timeouts, 1);
        assert_eq!(controller.target().timeout, Some(Duration::from_secs(2)));
        for _ in 0..9 {
            controller.on_data(at(1_020_001), &arrival(at(1_020_001), at(1_000_001)));
        }
        assert_window(&controller, 12.25);
        // 20 ms, and the margin.
        let timeout = controller.target().timeout;
        assert_eq!(timeout, Some(Duration::from_millis(120)));
    }

    /// 17 of 1024 octets in 20 ms are 6.963 Mbit/s: twice that in slow start.
    #[test]
    fn the_window_is_paced_if_it_is_to_be() {
        for (paced, expected) in [(true, Some(Bitrate::bps(13_926_400))), (false, None)] {
            let mut controller = controller(paced);
            controller.on_data(at(20_000), &arrival(at(20_000), at(0)));
            let target = controller.target();
            assert_eq!(target.rate, expected);
            assert_eq!(target.packet_size, Some(ByteSize::bytes(1_024)));
            assert_eq!((target.window, target.ignores_gaps), (Some(17), false));
        }
    }

    #[test]
    fn a_window_that_is_not_used_up_does_not_grow() {
        let mut controller = controller(true);
        let unused = Arrival {
            is_limiting: false,
            ..arrival(at(20_000), at(0))
        };
        controller.on_data(at(20_000), &unused);
        assert_window(&controller, 16.0);
        let estimates = controller.estimates();
        assert_eq!(estimates.average_rtt, Some(Duration::from_millis(20)));
    }
}
