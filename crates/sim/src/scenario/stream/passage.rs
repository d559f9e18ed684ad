//! What passed the links that a scenario tells about: whose it was, and how long it waited.

use std::cell::RefCell;
use std::rc::Rc;

use namecast_netem::{self as netem, DropReason};
use namecast_packet::Name;
use namecast_units::{Duration, Instant};

use crate::topology::LinkIndex;
use crate::trace::{Frame, LinkSink, PacketKind};

/// Resolution and range of waits.
const STEP: Duration = Duration::from_micros(250);
const STEPS: usize = 40_000;
/// Parts of which it is told whether the queue was long, and how long that is.
const PART: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_millis(100);

/// Data of streams that passed one link within a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// Number of packets by wait, in multiples of [`STEP`].
    waits: Vec<u32>,
    packets: u64,
    wait_sum: Duration,
    octets: u64,
    /// Octets of all frames, of streams or not.
    bytes_of_all: u64,
    /// By the queue.
    dropped: u64,
    /// The last part with a packet, its packets, and the sum of their waits.
    part: (u64, u32, Duration),
    /// Parts in which packets waited long on average.
    long_parts: u64,
}

/// Sees all frames that leave the links told about.
#[derive(Debug)]
pub(super) struct Passage {
    links: Vec<(LinkIndex, bool)>,
    windows: Vec<(Instant, Instant)>,
    /// Names of streams, if something else may pass, too.
    prefixes: Option<Vec<Name>>,
    /// By link, then by window.
    passed: Vec<Vec<Passed>>,
}

/// What the network and the run share.
pub(super) type Shared = Rc<RefCell<Passage>>;

impl Passage {
    pub(super) fn new(
        links: Vec<(LinkIndex, bool)>,
        windows: &[(String, Duration, Duration)],
        prefixes: Option<Vec<Name>>,
    ) -> Self {
        let bounds = windows.iter();
        let bounds = bounds.map(|(_, from, until)| (Instant::ZERO + *from, Instant::ZERO + *until));
        Self {
            passed: vec![vec![Passed::default(); windows.len()]; links.len()],
            windows: bounds.collect(),
            links,
            prefixes,
        }
    }

    /// Returns what passed link `link`, of those told about, in window `window`.
    pub(super) fn passed(&self, link: usize, window: usize) -> &Passed {
        &self.passed[link][window]
    }

    fn is_of_stream(&self, frame: &bytes::Bytes) -> bool {
        let frame = Frame::read(frame);
        if frame.packet != PacketKind::Data {
            return false;
        }
        let Some(prefixes) = &self.prefixes else {
            return true;
        };
        let name = frame.name();
        name.is_some_and(|name| prefixes.iter().any(|prefix| prefix.is_prefix_of(&name)))
    }
}

impl LinkSink for Passage {
    fn record(&mut self, link: LinkIndex, from_second: bool, output: &netem::Output) {
        let mut links = self.links.iter();
        let Some(link) = links.position(|known| *known == (link, from_second)) else {
            return;
        };
        let (netem::Output::Delivered { at, frame, .. } | netem::Output::Dropped { at, frame, .. }) =
            output;
        let is_own = self.is_of_stream(frame);
        for (window, (from, until)) in self.windows.iter().enumerate() {
            if !(*from..*until).contains(at) {
                continue;
            }
            let passed = &mut self.passed[link][window];
            match output {
                netem::Output::Delivered { queued_for, .. } => {
                    passed.bytes_of_all += frame.len() as u64;
                    if is_own {
                        passed.octets += frame.len() as u64;
                        passed.deliver(*at, *queued_for);
                    }
                }
                netem::Output::Dropped { reason, .. } => {
                    let by_queue =
                        matches!(reason, DropReason::QueueFull | DropReason::ActiveQueue);
                    passed.dropped += u64::from(is_own && by_queue);
                }
            }
        }
    }
}

impl Passed {
    fn deliver(&mut self, at: Instant, wait: Duration) {
        if self.waits.is_empty() {
            self.waits.resize(STEPS, 0);
        }
        let step = (wait.as_nanos() / STEP.as_nanos()) as usize;
        self.waits[step.min(STEPS - 1)] += 1;
        self.packets += 1;
        self.wait_sum += wait;
        let part = (at.since(Instant::ZERO).as_nanos() / PART.as_nanos()) as u64;
        if part != self.part.0 {
            self.long_parts += u64::from(self.is_long());
            self.part = (part, 0, Duration::ZERO);
        }
        self.part.1 += 1;
        self.part.2 += wait;
    }

    fn is_long(&self) -> bool {
        let (_, packets, waits) = self.part;
        waits > LONG * packets
    }

    /// Metrics, by name.
    pub(super) fn values(&self) -> [(&'static str, f64); 6] {
        let count = self.packets.max(1) as f64;
        let long = self.long_parts + u64::from(self.is_long());
        [
            ("own-queue-delay", millis(self.wait_sum) / count),
            ("own-queue-delay-p95", millis(self.quantile(0.95))),
            ("own-queue-long", long as f64 * PART.as_secs_f64()),
            (
                "own-rate-share",
                self.octets as f64 / self.bytes_of_all.max(1) as f64,
            ),
            ("own-dropped", self.dropped as f64),
            ("own-frames", self.packets as f64),
        ]
    }

    fn quantile(&self, share: f64) -> Duration {
        let mut left = (self.packets as f64 * share) as u64;
        let step = self.waits.iter().position(|&packets| {
            let is_here = u64::from(packets) > left;
            left = left.saturating_sub(u64::from(packets));
            is_here
        });
        STEP * step.unwrap_or(0) as u32
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Twenty packets, 50 ms apart, of which the last two waited 200 ms, the others 10 ms: one part of 100 ms is long.
    #[test]
    fn waits_are_counted_as_worked_by_hand() {
        let mut passed = Passed::default();
        for number in 0..20 {
            let wait = if number < 18 { ms(10) } else { ms(200) };
            passed.deliver(Instant::ZERO + ms(50) * number, wait);
        }
        let values = passed.values();
        let value = |name: &str| values.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!((value("own-queue-delay") - 29.0).abs() < 1e-9);
        assert!((value("own-queue-delay-p95") - 200.0).abs() < 1e-9);
        assert!((value("own-queue-long") - 0.1).abs() < 1e-9);
        assert_eq!(passed.quantile(0.5), ms(10));
    }
}
