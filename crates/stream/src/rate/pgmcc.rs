//! The window of a sender whose Data one of its receivers, the ACKer, acknowledges \[PGMCC\].
//!
//! ```text
//!  sent             T − 1
//!  N acknowledged   W < 4: T + 2, W + 1 each; from then on T + 1 + 1/W, W + 1/W each      T ≤ W
//!  lost             T − W/2, W/2: once until something that was sent later is acknowledged
//!  silence          T = W = 1
//! ```
//!
//! T is tokens, of which each packet takes one. T is below zero after a loss: with zero instead, 40 % too much would leave.

use core::time::Duration;
use std::collections::VecDeque;

use namecast_units::Instant;

use super::{RoundTrip, RoundTripConfig};

/// Window up to which it grows by one for each acknowledgement.
const SLOW_START: f64 = 4.0;
/// Packets sent later that are acknowledged before one counts as lost.
const OVERTAKEN: u32 = 3;
/// Packets that are remembered, and so the largest window.
const MAX_OUT: usize = 4_096;
/// Least timeout, and least time beyond a round trip.
const MIN_TIMEOUT: Duration = Duration::from_millis(200);

/// Window and tokens.
///
/// A plain value: tell it what is sent and acknowledged, and send while [`may_send`](Self::may_send).
#[derive(Clone, Debug)]
pub struct Window {
    window: f64,
    tokens: f64,
    /// Packets in flight, the oldest first.
    out: VecDeque<Sent>,
    /// Packets sent so far.
    count: u64,
    /// The packet from which on acknowledgements count again after a loss.
    frozen_until: Option<u64>,
    round_trip: RoundTrip,
    heard_at: Instant,
    timeouts: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    order: u64,
    at: Instant,
    is_acknowledged: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            window: 1.0,
            tokens: 1.0,
            out: VecDeque::new(),
            count: 0,
            frozen_until: None,
            round_trip: RoundTrip::new(RoundTripConfig::new(MIN_TIMEOUT, MIN_TIMEOUT)),
            heard_at: Instant::ZERO,
            timeouts: 0,
        }
    }
}

impl Window {
    /// Returns whether a packet may leave.
    pub fn may_send(&self) -> bool {
        self.tokens >= 1.0
    }

    /// Packets that may be out.
    pub const fn size(&self) -> f64 {
        self.window
    }

    /// Timeouts since the last acknowledgement: after two, another receiver should acknowledge.
    pub const fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Another receiver acknowledges from now on: what is out counts no more.
    pub fn hand_over(&mut self) {
        self.out.clear();
        self.frozen_until = None;
        self.timeouts = 0;
        self.tokens = self.tokens.max(1.0);
    }

    /// Takes a packet that leaves.
    pub fn on_sent(&mut self, now: Instant, number: u64) {
        if self.out.is_empty() {
            self.heard_at = now;
        }
        if self.out.len() >= MAX_OUT {
            self.out.pop_front();
        }
        self.out.push_back(Sent {
            number,
            order: self.count,
            at: now,
            is_acknowledged: false,
        });
        self.count += 1;
        self.tokens -= 1.0;
    }

    /// Takes numbers that came, the newest first: those from before in case their acknowledgement was lost. Others are ignored.
    pub fn on_acknowledged(&mut self, now: Instant, numbers: &[u64]) {
        let mut fresh = 0_u32;
        for (index, number) in numbers.iter().enumerate() {
            let of_it = |it: &&mut Sent| it.number == *number && !it.is_acknowledged;
            let Some(sent) = self.out.iter_mut().rev().find(of_it) else {
                continue;
            };
            sent.is_acknowledged = true;
            fresh += 1;
            if index == 0 {
                self.round_trip.on_sample(now.since(sent.at));
            }
            if self.frozen_until.is_some_and(|order| sent.order >= order) {
                self.frozen_until = None;
            }
        }
        if fresh == 0 {
            return;
        }
        self.heard_at = now;
        self.timeouts = 0;
        match self.take_lost() && self.frozen_until.is_none() {
            true => self.cut(),
            false => self.grow(fresh.into()),
        }
        while self.out.front().is_some_and(|sent| sent.is_acknowledged) {
            self.out.pop_front();
        }
    }

    /// Forgets what others have overtaken. Returns whether any counts as a loss, not one from before the last cut.
    fn take_lost(&mut self) -> bool {
        let mut later = 0;
        let mut first_lost = 0;
        for (index, sent) in self.out.iter().enumerate().rev() {
            later += u32::from(sent.is_acknowledged);
            if later >= OVERTAKEN {
                first_lost = index;
                break;
            }
        }
        let lost = self.out.drain(..first_lost);
        lost.filter(|sent| !sent.is_acknowledged).count() > 0
    }

    fn cut(&mut self) {
        self.tokens -= self.window / 2.0;
        self.window = (self.window / 2.0).max(1.0);
        self.frozen_until = Some(self.count);
    }

    fn grow(&mut self, acknowledged: f64) {
        if self.frozen_until.is_some() {
            self.tokens = (self.tokens + acknowledged).min(self.window);
            return;
        }
        let quick = acknowledged.min((SLOW_START - self.window).max(0.0));
        self.window += quick;
        let slow = acknowledged - quick;
        let added = slow / self.window;
        self.tokens += 2.0 * quick + slow + added;
        self.window = (self.window + added).min(MAX_OUT as f64);
        self.tokens = self.tokens.min(self.window);
    }

    /// Begins anew after silence. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.round_trip.back_off();
        self.window = 1.0;
        self.tokens = 1.0;
        self.out.clear();
        self.frozen_until = None;
        self.timeouts += 1;
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // The oldest is never acknowledged: those in front are removed at once.
        (!self.out.is_empty()).then(|| self.heard_at + self.round_trip.timeout())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    /// 1, 2, 3, 4 by one each, then by 1/W: 4.25 after one more.
    #[test]
    fn it_grows_by_one_up_to_four_and_by_one_a_window_then() {
        let mut window = Window::default();
        let mut sizes = Vec::new();
        for number in 0..5 {
            assert!(window.may_send(), "{number}");
            window.on_sent(at(number * 10), number);
            window.on_acknowledged(at(number * 10 + 5), &[number]);
            sizes.push(window.size());
        }
        let expected = [2.0, 3.0, 4.0, 4.25, 4.25 + 1.0 / 4.25];
        assert!(
            sizes.iter().zip(expected).all(|(a, b)| near(*a, b)),
            "{sizes:?}"
        );
    }

    /// W = 4, T = 4, then four are sent and the first of them is overtaken by three.
    #[test]
    fn a_loss_halves_it_once_until_later_packets_are_acknowledged() {
        let mut window = Window::default();
        for number in 0..3 {
            window.on_sent(at(0), number);
            window.on_acknowledged(at(1), &[number]);
        }
        assert!(near(window.size(), 4.0) && near(window.tokens, 4.0));
        for number in 3..7 {
            window.on_sent(at(2), number);
        }
        assert!(!window.may_send());
        // Number 3 is lost. 4 and 5: T = 2 (1 + 1/W), W = 4.25, then 4.25 + 1/4.25.
        window.on_acknowledged(at(3), &[4]);
        window.on_acknowledged(at(3), &[5]);
        let size = 4.25 + 1.0 / 4.25;
        assert!(near(window.size(), size) && near(window.tokens, size - 4.0 + 2.0));
        window.on_acknowledged(at(3), &[6]);
        assert!(near(window.size(), size / 2.0));
        assert!(near(window.tokens, size - 2.0 - size / 2.0));
        // Packets that leave after the cut end the pause in growth.
        let tokens = window.tokens;
        window.on_sent(at(4), 7);
        window.on_sent(at(4), 8);
        assert!(near(window.tokens, tokens - 2.0));
        window.on_acknowledged(at(5), &[8, 7]);
        assert!(window.size() > size / 2.0);
    }

    #[test]
    fn a_lost_acknowledgement_is_made_up_for_by_the_next() {
        let mut window = Window::default();
        window.on_sent(at(0), 9);
        window.on_acknowledged(at(1), &[9]);
        window.on_sent(at(2), 4);
        window.on_sent(at(2), 6);
        window.on_acknowledged(at(3), &[6, 4, 9]);
        assert!(
            near(window.size(), 4.0),
            "grown by three: {}",
            window.size()
        );
        window.on_acknowledged(at(3), &[6, 4, 9, 77]);
        assert!(near(window.size(), 4.0), "each counts once");
    }

    /// 1 s before anything was measured, then 2 s.
    #[test]
    fn silence_begins_anew_and_doubles_the_wait() {
        let mut window = Window::default();
        assert_eq!(window.poll_timeout(), None);
        window.on_sent(at(100), 1);
        assert_eq!(window.poll_timeout(), Some(at(1_100)));
        window.handle_timeout(at(1_099));
        assert_eq!((window.timeouts(), window.may_send()), (0, false));
        window.handle_timeout(at(1_100));
        assert_eq!((window.timeouts(), window.may_send()), (1, true));
        window.on_sent(at(1_200), 2);
        assert_eq!(window.poll_timeout(), Some(at(3_200)));
        window.on_acknowledged(at(1_300), &[2]);
        assert_eq!((window.timeouts(), window.poll_timeout()), (0, None));
    }

    /// A link of 100 packets a second with 20 places, 40 ms each way: its rate is reached and kept.
    #[test]
    fn it_fills_a_link() {
        let mut window = Window::default();
        let (mut number, mut free_at) = (0, at(0));
        let mut arriving: VecDeque<(Instant, u64)> = VecDeque::new();
        let mut came = 0;
        for millis in 0..60_000 {
            let now = at(millis);
            window.handle_timeout(now);
            while arriving.front().is_some_and(|(due, _)| *due <= now) {
                let (_, acknowledged) = arriving.pop_front().unwrap();
                came += u32::from(millis >= 20_000);
                window.on_acknowledged(now, &[acknowledged]);
            }
            while window.may_send() {
                window.on_sent(now, number);
                if free_at.since(now) < Duration::from_millis(200) {
                    free_at = free_at.max(now) + Duration::from_millis(10);
                    arriving.push_back((free_at + Duration::from_millis(80), number));
                }
                number += 1;
            }
        }
        assert!((3_800..=4_000).contains(&came), "{came} of 4000");
    }
}
