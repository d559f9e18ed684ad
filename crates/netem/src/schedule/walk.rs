//! Frames as they are served by a schedule.

use std::sync::Arc;

use namecast_units::{ByteSize, Duration, Instant};

use super::{Kind, NANOS_PER_SECOND, OPPORTUNITY_BYTES, Piece, Schedule, millis, nanos};

/// A place in a schedule, which moves on with the frames that are served. Asking costs a few steps of a search that begins
/// where the last frame was, however long the schedule is.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    schedule: Arc<Schedule>,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// When the period that the place is in began, in nanoseconds.
    base: u64,
    /// The opportunity or piece.
    index: usize,
    /// Octets that the opportunity has left.
    left: u64,
}

impl Walk {
    pub(crate) const fn new(schedule: Arc<Schedule>) -> Self {
        let place = Place {
            base: 0,
            index: 0,
            left: OPPORTUNITY_BYTES,
        };
        Self { schedule, place }
    }

    /// Returns when a frame can leave the queue that is the first one from `at` on.
    pub(crate) fn start(&self, at: Instant) -> Instant {
        match &self.schedule.kind {
            Kind::Deliveries(times) => {
                let place = self.opportunity(times, at);
                Instant::from_nanos(time_of(times, place))
            }
            Kind::Rates(_) => at,
        }
    }

    /// Serves a frame that is the first one from `at` on. When its last octet is served.
    pub(crate) fn serve(&mut self, at: Instant, octets: u64) -> Instant {
        let (place, end) = self.served(at, octets);
        self.place = place;
        end
    }

    /// Returns the same, without doing it.
    pub(crate) fn end(&self, at: Instant, octets: u64) -> Instant {
        self.served(at, octets).1
    }

    /// Returns the time that `octets` take on average.
    pub(crate) fn mean_time(&self, octets: u64) -> Duration {
        ByteSize::bytes(octets) / self.schedule.mean
    }

    /// What was being served will not be: what it had used is free again, from `at` on.
    pub(crate) const fn rewind(&mut self) {
        self.place = Place {
            base: 0,
            index: 0,
            left: OPPORTUNITY_BYTES,
        };
    }

    fn served(&self, at: Instant, octets: u64) -> (Place, Instant) {
        match &self.schedule.kind {
            Kind::Deliveries(times) => {
                let mut place = self.opportunity(times, at);
                if octets > place.left {
                    // The last one that is needed is partly used: by 1 to all of its octets.
                    let beyond = octets - place.left;
                    let count = beyond.div_ceil(OPPORTUNITY_BYTES);
                    place = self.after(times.len(), place, count);
                    place.left = count * OPPORTUNITY_BYTES - beyond;
                } else {
                    place.left -= octets;
                }
                (place, Instant::from_nanos(time_of(times, place)))
            }
            Kind::Rates(pieces) => self.at_rates(pieces, at, octets),
        }
    }

    /// Returns the first opportunity that is not before `at` and has octets left.
    fn opportunity(&self, times: &[u32], at: Instant) -> Place {
        let at = at.as_nanos();
        let mut place = self.place;
        if place.left == 0 {
            place = self.after(times.len(), place, 1);
        }
        if time_of(times, place) >= at {
            return place;
        }
        let period = nanos(self.schedule.period);
        // The last opportunity of a period is at its end, which so belongs to the period before.
        let cycles = (at - place.base - 1) / period;
        if cycles > 0 {
            place.base += cycles * period;
            place.index = 0;
        }
        let wanted = at - place.base;
        place.index += leap(&times[place.index..], |time| millis(time) < wanted);
        place.left = OPPORTUNITY_BYTES;
        place
    }

    /// Returns the whole opportunity that is `count` after that of `place`.
    fn after(&self, total: usize, place: Place, count: u64) -> Place {
        let index = place.index as u64 + count;
        let total = total as u64;
        let (cycles, index) = match index < total {
            true => (0, index),
            false => (index / total, index % total),
        };
        let span = cycles.saturating_mul(nanos(self.schedule.period));
        Place {
            base: place.base.saturating_add(span),
            index: usize::try_from(index).expect("it is below the number of entries"),
            left: OPPORTUNITY_BYTES,
        }
    }

    /// Bits are counted times 10⁹, so that a rate times nanoseconds is exact.
    fn at_rates(&self, pieces: &[Piece], at: Instant, octets: u64) -> (Place, Instant) {
        let period = nanos(self.schedule.period);
        let at = at.as_nanos();
        let cycles = at.saturating_sub(self.place.base) / period;
        let mut place = Place {
            base: self.place.base + cycles * period,
            ..self.place
        };
        let wanted = at.saturating_sub(place.base);
        if cycles > 0 || pieces[place.index].from > wanted {
            place.index = 0;
        }
        place.index += leap(&pieces[place.index..], |piece| piece.from <= wanted) - 1;
        let piece = &pieces[place.index];
        let passed =
            piece.before + u128::from(piece.rate.as_bps()) * u128::from(wanted - piece.from);
        let bits = u128::from(octets) * 8 * NANOS_PER_SECOND;
        if bits == 0 {
            return (place, Instant::from_nanos(at));
        }
        // Where the sum of bits since the beginning of the period ends, which may be some periods later.
        let total = self.schedule.bits_of_period(pieces);
        let sum = passed + bits;
        let (later, sum) = match sum <= total {
            true => (0, sum),
            // At the end of a period rather than at the beginning of the next, before which the rate may be zero.
            false => ((sum - 1) / total, (sum - 1) % total + 1),
        };
        if later > 0 {
            let later = u64::try_from(later).unwrap_or(u64::MAX);
            place.base = place.base.saturating_add(later.saturating_mul(period));
            place.index = 0;
        }
        // The last piece before which fewer bits were possible.
        place.index += leap(&pieces[place.index..], |piece| piece.before < sum) - 1;
        let piece = &pieces[place.index];
        let within = (sum - piece.before) / u128::from(piece.rate.as_bps().max(1));
        let within = u64::try_from(within).unwrap_or(u64::MAX);
        let end = (place.base.saturating_add(piece.from)).saturating_add(within);
        (place, Instant::from_nanos(end.max(at)))
    }
}

fn time_of(times: &[u32], place: Place) -> u64 {
    place.base.saturating_add(millis(times[place.index]))
}

/// Returns how many entries at the beginning are so, of a list in which none is so after one that is not. It costs as many steps as
/// the result has binary digits, twice.
fn leap<T: Copy>(entries: &[T], is_before: impl Fn(T) -> bool) -> usize {
    let mut reach = 1;
    while reach <= entries.len() && is_before(entries[reach - 1]) {
        reach *= 2;
    }
    let known = reach / 2;
    let end = reach.min(entries.len());
    known + entries[known..end].partition_point(|&entry| is_before(entry))
}
