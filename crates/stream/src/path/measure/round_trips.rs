//! Round trips without queues.

use core::time::Duration;

use namecast_units::{Instant, WindowedMinimum};
use smart_default::SmartDefault;

use super::{History, STILL};

/// Round trip before anything was measured.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(50);
/// Round trips that are longer for so long, and as many as that, without a queue, are of a longer path.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
const MANY_ENOUGH: u32 = 10;

/// The least round trips of the last ten seconds: to the producer, and to whoever answers.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct RoundTrips {
    #[default(new_window())]
    to_producer: WindowedMinimum<Duration>,
    #[default(new_window())]
    to_answerer: WindowedMinimum<Duration>,
    /// All to the producer are longer than the least: since when, how many, and the least of those.
    longer: Option<(Instant, u32, Duration)>,
    /// By how much the path was found to be longer last, and its round trip before.
    grown: Option<(Duration, Duration)>,
}

impl RoundTrips {
    /// Returns the round trip: to the producer if its Data shows it, else to whoever answers.
    pub(super) fn least(&self, now: Instant) -> Duration {
        let known = self.to_producer.minimum(now);
        let known = known.or_else(|| self.to_answerer.minimum(now));
        known.unwrap_or(FIRST_ROUND_TRIP)
    }

    /// Records a round trip to whoever answered.
    pub(super) fn on_answer(&mut self, now: Instant, rtt: Duration) {
        self.to_answerer.push(now, rtt);
    }

    /// Records a round trip to the producer. Returns whether the path was taken for longer by mistake.
    pub(super) fn on_producer(&mut self, now: Instant, rtt: Duration, history: &History) -> bool {
        let least = self.to_producer.minimum(now).unwrap_or(rtt);
        if rtt <= least + Duration::from_secs_f64(STILL) {
            self.longer = None;
        } else {
            let (since, count, before) = self.longer.unwrap_or((now, 0, rtt));
            let longer = (since, count + 1, before.min(rtt));
            self.longer = Some(longer);
            let excess = longer.2.saturating_sub(least).as_secs_f64();
            if now.since(since) > LONG_ENOUGH
                && longer.1 >= MANY_ENOUGH
                && history.queue_mean(now, LONG_ENOUGH) < 0.5 * excess
            {
                // No queue explains it.
                self.to_producer = new_window();
                self.longer = None;
            }
        }
        self.to_producer.push(now, rtt);
        // Nothing but this would show it: what is requested later comes later.
        let is_back = |(shift, before): &(Duration, Duration)| rtt < *before + *shift / 4;
        self.grown.take_if(|grown| is_back(grown)).is_some()
    }

    /// The path was found to be longer by `shift`.
    pub(super) fn raise(&mut self, now: Instant, shift: Duration) {
        self.grown = Some((shift, self.least(now)));
        self.to_producer.raise(shift);
        self.to_answerer.raise(shift);
    }
}

fn new_window() -> WindowedMinimum<Duration> {
    WindowedMinimum::new(Duration::from_secs(1), 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_producer_counts_before_whoever_answers() {
        let mut round_trips = RoundTrips::default();
        assert_eq!(round_trips.least(at(0)), FIRST_ROUND_TRIP);
        round_trips.on_answer(at(1), ms(20));
        assert_eq!(round_trips.least(at(1)), ms(20));
        round_trips.on_producer(at(2), ms(70), &History::default());
        assert_eq!(round_trips.least(at(2)), ms(70));
    }

    /// Every 100 ms one of 100 ms instead of 50: the eleventh is more than a second after the first, and the old least of a
    /// window of ten seconds is forgotten. With a queue of 30 ms, more than half of the excess, it stays.
    #[test]
    fn round_trips_that_are_longer_without_a_queue_are_of_a_longer_path() {
        for (queue, expected) in [(0.0, ms(100)), (0.02, ms(100)), (0.03, ms(50))] {
            let (mut round_trips, mut history) = (RoundTrips::default(), History::default());
            round_trips.on_producer(at(0), ms(50), &history);
            for millis in (100..=1_200).step_by(100) {
                assert_eq!(round_trips.least(at(millis)), ms(50), "{millis}");
                history.on_arrival(at(millis), 8_000.0, queue);
                round_trips.on_producer(at(millis), ms(100), &history);
            }
            assert_eq!(round_trips.least(at(1_200)), expected, "{queue}");
        }
    }

    /// From 50 to 150 ms: one of 75 shows that the path never became longer, one of 76 does not.
    #[test]
    fn a_round_trip_as_before_shows_that_the_path_is_not_longer() {
        let history = History::default();
        let mut round_trips = RoundTrips::default();
        round_trips.on_producer(at(0), ms(50), &history);
        round_trips.raise(at(0), ms(100));
        assert_eq!(round_trips.least(at(0)), ms(150));
        assert!(!round_trips.on_producer(at(1), ms(75), &history));
        assert!(round_trips.on_producer(at(2), ms(74), &history));
        assert!(!round_trips.on_producer(at(3), ms(74), &history), "once");
    }
}
