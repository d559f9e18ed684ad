//! What others send over the link.

use namecast_units::Instant;

/// Queueing that is shorter than this may be anything, in seconds.
const MIN_OTHERS: f64 = 0.002;

/// The link's work as Lindley's recursion has it: what queueing is not explained by our own packet before it is others'
/// work. A lower bound. Times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CrossTraffic {
    before: Option<Work>,
}

/// The packet before.
#[derive(Clone, Copy, Debug)]
struct Work {
    ideal: Instant,
    queue: f64,
    service: f64,
}

impl CrossTraffic {
    /// Records a packet of ours that would have arrived at `ideal` without a queue, queued for `queue`, and takes the link
    /// `service`. Returns for how long others kept the link busy since the one before it.
    pub(super) fn on_arrival(&mut self, ideal: Instant, queue: f64, service: f64) -> Option<f64> {
        let latest = self.before.map_or(ideal, |before| before.ideal.max(ideal));
        let work = Work {
            ideal: latest,
            queue,
            service,
        };
        let before = self.before.replace(work).filter(|it| ideal > it.ideal)?;
        let apart = ideal.since(before.ideal).as_secs_f64();
        let own = (before.queue + before.service - apart).max(0.0);
        let others = queue - own;
        (others > MIN_OTHERS).then(|| others.min(apart))
    }

    /// Forgets the packet before: what it queued for was no queue.
    pub(super) const fn restart(&mut self) {
        self.before = None;
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// After a packet that queued for 10 ms and takes 8, one 12 ms later finds 6 ms of our own work. What it waits longer is
    /// others', but no more than the 12 ms between the two.
    #[test]
    fn what_our_own_packets_do_not_explain_is_others() {
        for (queue, others) in [
            (0.006, None),
            (0.0079, None),
            (0.011, Some(0.005)),
            (0.030, Some(0.012)),
        ] {
            let mut cross = CrossTraffic::default();
            assert_eq!(cross.on_arrival(at(0), 0.010, 0.008), None);
            let found = cross.on_arrival(at(12), queue, 0.008);
            let is_near = |(one, other): (f64, f64)| (one - other).abs() < 1e-9;
            assert_eq!(found.is_some(), others.is_some(), "{queue}");
            assert!(found.zip(others).is_none_or(is_near), "{found:?}");
        }
    }

    #[test]
    fn an_overtaken_packet_shows_nothing() {
        let mut cross = CrossTraffic::default();
        cross.on_arrival(at(12), 0.0, 0.008);
        assert_eq!(cross.on_arrival(at(4), 0.050, 0.008), None);
        cross.restart();
        assert_eq!(cross.on_arrival(at(40), 0.050, 0.008), None);
    }
}
