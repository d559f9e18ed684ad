//! What controllers that keep a window have in common.

use namecast_units::Instant;

/// A window in Interests, between bounds, and when it was last made smaller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: f64,
    least: f64,
    greatest: f64,
    decreased_at: Option<Instant>,
}

/// Largest window of any controller: a bound, far above what any path needs.
pub(super) const GREATEST_WINDOW: f64 = 1e6;

impl Window {
    /// A window of `size` Interests, never below `least`.
    pub(super) fn new(size: f64, least: f64) -> Self {
        let least = least.max(1.0);
        Self {
            size: size.max(least),
            least,
            greatest: GREATEST_WINDOW,
            decreased_at: None,
        }
    }

    /// The window in Interests, a fraction included.
    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    /// Interests that may be out.
    pub(super) fn allowed(&self) -> u32 {
        self.size as u32
    }

    /// Whether what was asked for at `asked_at` left after the last decrease. Only that can tell of the window as it is
    /// now: a decrease is made once for all that was under way.
    pub(super) fn is_news(&self, asked_at: Instant) -> bool {
        self.decreased_at.is_none_or(|at| asked_at > at)
    }

    /// When it was last made smaller.
    pub(super) const fn decreased_at(&self) -> Option<Instant> {
        self.decreased_at
    }

    /// Makes it larger by `step`, or smaller if that is negative, without counting as a decrease.
    pub(super) fn grow(&mut self, step: f64) {
        self.set(self.size + step);
    }

    /// Sets it as the answer to congestion.
    pub(super) fn decrease_to(&mut self, now: Instant, size: f64) {
        self.set(size);
        self.decreased_at = Some(now);
    }

    fn set(&mut self, size: f64) {
        self.size = size.clamp(self.least, self.greatest);
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

    #[test]
    fn a_decrease_is_made_once_for_all_that_was_under_way() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut window = Window::new(8.0, 1.0);
        assert!(window.is_news(at(0)));
        window.decrease_to(at(10), 4.0);
        assert!(!window.is_news(at(10)) && window.is_news(at(11)));
    }
}
