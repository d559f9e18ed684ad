//! What controllers that keep a window have in common.

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

/// A window in Interests, between bounds; where its slow start ends, and when it was last made smaller.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    size: f64,
    least: f64,
    greatest: f64,
    /// ssthresh; infinite at first.
    slow_start_until: f64,
    decreased_at: Option<Instant>,
}

/// Largest window of any controller: a bound, far above what any path needs.
pub(super) const GREATEST_WINDOW: f64 = 1e6;

impl Window {
    /// A window of `size` Interests, never below `least`.
    pub(super) fn new(size: f64, least: f64) -> Self {
        // `max` first: a configuration may hold what is not a number.
        let least = least.max(1.0).clamp(1.0, GREATEST_WINDOW);
        Self {
            size: size.max(least).clamp(least, GREATEST_WINDOW),
            least,
            greatest: GREATEST_WINDOW,
            slow_start_until: f64::INFINITY,
            decreased_at: None,
        }
    }

    /// Returns the window in Interests, a fraction included.
    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    /// Returns the Interests that may be out.
    pub(super) fn allowed(&self) -> u32 {
        self.size as u32
    }

    /// Returns whether what was requested at `asked_at` left after the last decrease. Only that can tell of the window as it is
    /// now: a decrease is made once for all that was under way.
    pub(super) fn is_news(&self, asked_at: Instant) -> bool {
        self.decreased_at.is_none_or(|at| asked_at > at)
    }

    /// Returns when it was last made smaller.
    pub(super) const fn decreased_at(&self) -> Option<Instant> {
        self.decreased_at
    }

    /// Returns whether it is still below what was left of it at the last decrease, or there was none.
    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.slow_start_until
    }

    /// Makes it larger by `step`, or smaller if that is negative, without counting as a decrease.
    pub(super) fn grow(&mut self, step: f64) {
        self.size = self.bounded(self.size + step);
    }

    /// Sets it as the answer to congestion, which ends slow start.
    pub(super) fn decrease_to(&mut self, now: Instant, size: f64) {
        self.size = self.bounded(size);
        self.slow_start_until = self.size;
        self.decreased_at = Some(now);
    }

    /// Sets it to the least as the answer to a timeout, in slow start up to `until`.
    pub(super) fn start_anew(&mut self, now: Instant, until: f64) {
        self.size = self.least;
        self.slow_start_until = until;
        self.decreased_at = Some(now);
    }

    /// `size` within the bounds.
    pub(super) fn bounded(&self, size: f64) -> f64 {
        size.clamp(self.least, self.greatest)
    }
}

/// Spreads a window over its round trip, somewhat faster than it is used up, as Linux does (`tcp_pacing_ss_ratio`,
/// `tcp_pacing_ca_ratio`).
///
/// Without it, slow start sends in bursts of twice the link's rate, which overflow a short queue long before the window is
/// as large as the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// What one Interest brings, in octets: 0.9 of it and 0.1 of the newest.
    size: Option<f64>,
}

/// How many times faster than the window is used up, in slow start.
const SLOW_START_GAIN: f64 = 2.0;
/// The same after it.
const AVOIDANCE_GAIN: f64 = 1.2;

impl Pacing {
    pub(super) fn on_data(&mut self, size: ByteSize) {
        let size = size.as_bytes() as f64;
        self.size = Some(self.size.map_or(size, |mean| 0.9 * mean + 0.1 * size));
    }

    /// Returns what one Interest brings, once known.
    pub(super) fn packet_size(&self) -> Option<ByteSize> {
        self.size.map(|size| ByteSize::bytes(size.round() as u64))
    }

    /// Returns the rate at which `window` leaves, if size and round-trip time are known.
    pub(super) fn rate(&self, window: &Window, rtt: Option<Duration>) -> Option<Bitrate> {
        let gain = if window.in_slow_start() {
            SLOW_START_GAIN
        } else {
            AVOIDANCE_GAIN
        };
        let octets = self.size? * window.size() * gain;
        Some(Bitrate::bps((octets * 8.0 / rtt?.as_secs_f64()) as u64))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn it_stays_within_its_bounds() {
        let mut window = Window::new(0.5, 2.0);
        assert_eq!(window.allowed(), 2);
        window.grow(0.9);
        assert_eq!(window.allowed(), 2);
        window.grow(f64::INFINITY);
        assert_eq!(window.allowed(), 1_000_000);
        window.grow(f64::NEG_INFINITY);
        assert_eq!(window.allowed(), 2);
    }

    /// 10 of 1000 octets in 100 ms are 0.8 Mbit/s; twice, and 1.2 times that.
    #[test]
    fn a_window_is_spread_over_its_round_trip() {
        let mut pacing = Pacing::default();
        let mut window = Window::new(10.0, 1.0);
        let rtt = Some(Duration::from_millis(100));
        assert_eq!(pacing.rate(&window, rtt), None);
        pacing.on_data(ByteSize::bytes(1_000));
        assert_eq!(pacing.rate(&window, None), None);
        assert_eq!(pacing.rate(&window, rtt), Some(Bitrate::kbps(1_600)));
        window.decrease_to(Instant::ZERO, 10.0);
        assert_eq!(pacing.rate(&window, rtt), Some(Bitrate::kbps(960)));
        pacing.on_data(ByteSize::bytes(2_000));
        assert_eq!(pacing.packet_size(), Some(ByteSize::bytes(1_100)));
    }

    #[test]
    fn a_decrease_is_made_once_for_all_that_was_under_way() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut window = Window::new(8.0, 1.0);
        assert!(window.is_news(at(0)));
        window.decrease_to(at(10), 4.0);
        assert!(!window.is_news(at(10)) && window.is_news(at(11)));
    }

    /// Down to 6, which ends it; then from 2 up to 5.
    #[test]
    fn slow_start_ends_where_congestion_came() {
        let mut window = Window::new(8.0, 2.0);
        assert!(window.in_slow_start());
        window.decrease_to(Instant::ZERO, 6.0);
        assert!(!window.in_slow_start());
        window.start_anew(Instant::ZERO, 5.0);
        assert_eq!(window.allowed(), 2);
        window.grow(2.9);
        assert!(window.in_slow_start());
        window.grow(0.1);
        assert!(!window.in_slow_start());
    }
}
