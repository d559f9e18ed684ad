//! What a link can carry, moment by moment.

mod parse;
mod walk;

use core::fmt;

use namecast_units::{Bitrate, ByteSize, Duration, Instant};

pub use parse::{TraceError, TraceFormat};
pub(crate) use walk::Walk;

/// Octets that one delivery opportunity serves: a datagram that fills an Ethernet frame, as mahimahi counts.
pub const OPPORTUNITY: ByteSize = ByteSize::bytes(OPPORTUNITY_BYTES);

pub(crate) const OPPORTUNITY_BYTES: u64 = 1_500;

/// Most lines or entries of a schedule: at 100 Mbit/s, nine hours of opportunities, in 1 GiB of memory.
pub const MAX_ENTRIES: usize = 1 << 28;

/// Largest rate of a schedule, 1 Tbit/s: sums over a year of it do not overflow.
pub const MAX_RATE: Bitrate = Bitrate::mbps(1_000_000);

/// Longest period of a schedule: as many milliseconds as 32 bits count, 49 days.
pub const MAX_PERIOD: Duration = Duration::from_millis(u32::MAX as u64);

const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// What a link can carry at each moment, from its zero of time on, repeated without end.
///
/// Either *delivery opportunities*, as the emulator mahimahi records them, or *rates* that are constant piece by piece.
///
/// An opportunity serves up to [`OPPORTUNITY`] of frames that wait. A frame of which a part was served gets its rest from the
/// next one, and what is left of an opportunity serves the next frame. What finds nobody waiting is lost. A frame leaves
/// the queue at the opportunity that serves its first octet; one that comes at the very time of an opportunity can use it.
///
/// A frame that is serialised at changing rates takes as long as its bits need: a piece at rate zero stops it meanwhile.
#[derive(Clone, PartialEq, Eq)]
pub struct Schedule {
    kind: Kind,
    period: Duration,
    mean: Bitrate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Times of opportunities in milliseconds, in order; the last one is the period.
    Deliveries(Box<[u32]>),
    /// Pieces in order of time, the first at zero.
    Rates(Box<[Piece]>),
}

/// A constant rate from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Nanoseconds since the beginning of the period.
    pub(crate) from: u64,
    pub(crate) rate: Bitrate,
    /// Bits times 10⁹ that were possible before, since the beginning of the period.
    pub(crate) before: u128,
}

/// Why values are not a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ScheduleError {
    /// Which entry is wrong, from 0; `None`: all of them together.
    pub entry: Option<usize>,
    /// What is wrong, and what was expected.
    pub problem: &'static str,
}

impl ScheduleError {
    const fn at(entry: usize, problem: &'static str) -> Self {
        Self {
            entry: Some(entry),
            problem,
        }
    }

    const fn of_all(problem: &'static str) -> Self {
        Self {
            entry: None,
            problem,
        }
    }
}

impl Schedule {
    /// Opportunities at these times in milliseconds. The last time is the period, after which all is repeated: with times 0
    /// and 10, opportunities are at 0, twice at 10, twice at 20 ms and so on.
    ///
    /// # Errors
    /// If there are none or more than [`MAX_ENTRIES`], a time is before the one ahead of it, or the last one is zero.
    pub fn from_deliveries(times: Vec<u32>) -> Result<Self, ScheduleError> {
        check_count(times.len())?;
        if let Some(entry) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            let problem = "expected a time that is not before the one above";
            return Err(ScheduleError::at(entry + 1, problem));
        }
        let last = times[times.len() - 1];
        if last == 0 {
            let problem = "expected a time above zero at the end: it is the period";
            return Err(ScheduleError::at(times.len() - 1, problem));
        }
        let period = Duration::from_millis(u64::from(last));
        let octets = OPPORTUNITY_BYTES.saturating_mul(times.len() as u64);
        Ok(Self {
            mean: ByteSize::bytes(octets) / period,
            kind: Kind::Deliveries(times.into_boxed_slice()),
            period,
        })
    }

    /// Rates from these times on. The last time is the period, after which all is repeated, and the rate given there is not
    /// used; a single rate holds for ever.
    ///
    /// # Errors
    /// If there are none or more than [`MAX_ENTRIES`], the first time is not zero, a time is not after the one ahead of it or
    /// beyond [`MAX_PERIOD`], a rate is above [`MAX_RATE`], or all rates are zero.
    pub fn from_rates(rates: &[(Duration, Bitrate)]) -> Result<Self, ScheduleError> {
        check_count(rates.len())?;
        if rates[0].0 != Duration::ZERO {
            return Err(ScheduleError::at(0, "expected time 0 first"));
        }
        let mut pieces: Vec<Piece> = Vec::with_capacity(rates.len());
        let mut before = 0;
        for (entry, &(at, rate)) in rates.iter().enumerate() {
            if at > MAX_PERIOD {
                return Err(ScheduleError::at(entry, "expected a time within 49 days"));
            }
            if rate > MAX_RATE {
                return Err(ScheduleError::at(entry, "expected at most 1 Tbit/s"));
            }
            let from = u64::try_from(at.as_nanos()).expect("49 days fit");
            if let Some(last) = pieces.last() {
                if from <= last.from {
                    let problem = "expected a time after the one above";
                    return Err(ScheduleError::at(entry, problem));
                }
                before += u128::from(last.rate.as_bps()) * u128::from(from - last.from);
            }
            pieces.push(Piece { from, rate, before });
        }
        if let [only] = pieces[..] {
            // The rate after the end is the one before it, so any period will do.
            let from = u64::try_from(MAX_PERIOD.as_nanos()).expect("49 days fit");
            before = u128::from(only.rate.as_bps()) * u128::from(from);
            pieces.push(Piece {
                from,
                before,
                ..only
            });
        }
        let end = pieces.pop().expect("there are two at least");
        if before == 0 {
            return Err(ScheduleError::of_all("expected some rate above zero"));
        }
        let mean = before / u128::from(end.from);
        Ok(Self {
            kind: Kind::Rates(pieces.into_boxed_slice()),
            period: Duration::from_nanos(end.from),
            mean: Bitrate::bps(u64::try_from(mean).unwrap_or(u64::MAX)),
        })
    }

    /// Returns the mean rate over a period: of all opportunities, whether or not somebody uses them.
    pub const fn mean(&self) -> Bitrate {
        self.mean
    }

    /// After this it is repeated.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Data that a link that always has frames waiting delivers from its zero of time until `at`, opportunities at `at`
    /// excluded; whole octets.
    pub fn capacity_until(&self, at: Instant) -> ByteSize {
        let period = nanos(self.period);
        let (cycles, rest) = (at.as_nanos() / period, at.as_nanos() % period);
        let octets = match &self.kind {
            Kind::Deliveries(times) => {
                let passed = times.partition_point(|&time| millis(time) < rest) as u64;
                // The last opportunity of a period is at the first instant of the next.
                let last = times.partition_point(|&time| millis(time) < period) as u64;
                let total = times.len() as u64;
                let late = match cycles > 0 && rest == 0 {
                    true => total - last,
                    false => 0,
                };
                let count = cycles.saturating_mul(total).saturating_add(passed) - late;
                u128::from(count) * u128::from(OPPORTUNITY_BYTES)
            }
            Kind::Rates(pieces) => {
                let whole = self.bits_of_period(pieces) * u128::from(cycles);
                let place = pieces.partition_point(|piece| piece.from <= rest) - 1;
                let piece = &pieces[place];
                let part = u128::from(piece.rate.as_bps()) * u128::from(rest - piece.from);
                (whole + piece.before + part) / (8 * NANOS_PER_SECOND)
            }
        };
        ByteSize::bytes(u64::try_from(octets).unwrap_or(u64::MAX))
    }

    /// Times of opportunities in milliseconds, the last one being the period; `None` if the schedule is one of rates.
    pub fn deliveries(&self) -> Option<&[u32]> {
        match &self.kind {
            Kind::Deliveries(times) => Some(times),
            Kind::Rates(_) => None,
        }
    }

    /// Bits times 10⁹ of all pieces.
    fn bits_of_period(&self, pieces: &[Piece]) -> u128 {
        let last = &pieces[pieces.len() - 1];
        let span = nanos(self.period) - last.from;
        last.before + u128::from(last.rate.as_bps()) * u128::from(span)
    }
}

impl fmt::Debug for Schedule {
    /// In short, as there may be millions of entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, entries) = match &self.kind {
            Kind::Deliveries(times) => ("deliveries", times.len()),
            Kind::Rates(pieces) => ("rates", pieces.len()),
        };
        let (mean, period) = (self.mean, self.period);
        write!(f, "Schedule({entries} {kind} in {period:?}, {mean})")
    }
}

fn check_count(entries: usize) -> Result<(), ScheduleError> {
    match entries {
        0 => Err(ScheduleError::of_all("expected an entry at least")),
        1..=MAX_ENTRIES => Ok(()),
        _ => Err(ScheduleError::of_all("expected at most 268435456 entries")),
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

const fn millis(time: u32) -> u64 {
    time as u64 * NANOS_PER_MILLI
}
