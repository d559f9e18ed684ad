//! Changes rungs by itself: up while the way carries more, down before a queue eats the playout target.

use core::time::Duration;

use namecast_stream::consumer::{Consumer, WireUse};
use namecast_stream::ladder::{Config, Ladder};
use namecast_stream::{Rung, StreamInfo};
use namecast_units::Instant;

/// How long after its time the key sample of the rung to change over to may come.
const PATIENCE: Duration = Duration::from_millis(500);

/// What headers make of a stream before that is known.
const FIRST_WIRE_SHARE: f64 = 1.1;
/// Samples that it is measured by: fewer vary too much, and what went wrong once must not count for long.
const MEASURED_SAMPLES: u64 = 30;

/// A change under way.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// Rung to change over to, by bitrate.
    to: usize,
    /// When it was decided, and where the new rung begins once that is known.
    since: Instant,
    position: Option<u64>,
}

/// Chooses the rung of one video stream.
#[derive(Clone, Debug)]
pub(super) struct AutoRung {
    ladder: Ladder,
    /// Lowest bitrate first.
    rungs: Vec<Rung>,
    /// Octets on the wire per octet of payload, and what the consumer had counted when that was measured.
    wire_share: f64,
    measured: WireUse,
    change: Option<Change>,
}

/// By bitrate, lowest first.
fn sorted(info: &StreamInfo) -> Vec<&Rung> {
    let mut rungs: Vec<_> = info.rungs.iter().collect();
    rungs.sort_by_key(|rung| rung.bitrate);
    rungs
}

/// The rung to join on: one in the middle, the lower of two. Frames of more than a few segments tell what the way carries;
/// the lowest rung's do so only once in a key period.
pub(super) fn first_rung(info: &StreamInfo) -> Option<&Rung> {
    let rungs = sorted(info);
    rungs.get(rungs.len().checked_sub(1)? / 2).copied()
}

impl AutoRung {
    /// Chooses among the rungs of `info`, of which `current` is pulled by `consumer`; `None` if there is no choice.
    pub(super) fn new(
        now: Instant,
        info: &StreamInfo,
        current: &str,
        consumer: &Consumer,
    ) -> Option<Self> {
        let rungs = sorted(info);
        let current = rungs.iter().position(|rung| rung.name == current)?;
        let bitrates: Vec<_> = rungs.iter().map(|rung| rung.bitrate).collect();
        let config = Config::default();
        let ladder = Ladder::new(now, config, &bitrates, current, consumer.key_period())?;
        Some(Self {
            ladder,
            rungs: rungs.into_iter().cloned().collect(),
            wire_share: FIRST_WIRE_SHARE,
            measured: consumer.wire_use(),
            change: None,
        })
    }

    /// Takes what `consumer` noticed of the way, and tells it how fast to ask.
    pub(super) fn listen(&mut self, now: Instant, consumer: &mut Consumer) {
        let mut heard = false;
        while let Some(sign) = consumer.poll_sign() {
            self.ladder.on_sign(now, sign);
            heard = true;
        }
        if heard {
            consumer.set_pace(self.ladder.pace(now));
        }
    }

    /// The rung to change over to, if that is to begin now. `consumer` pulls the current one.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        consumer: &Consumer,
        target: Duration,
    ) -> Option<Rung> {
        if self.change.is_some() {
            return None;
        }
        self.ladder.set_target(target);
        self.measure(consumer);
        let to = self.ladder.decide(now, self.wire_share)?;
        self.change = Some(Change {
            to,
            since: now,
            position: None,
        });
        Some(self.rungs[to].clone())
    }

    fn measure(&mut self, consumer: &Consumer) {
        let samples = consumer.counters().complete;
        if samples < self.measured.samples {
            // Another consumer, which counts from its own start.
            self.measured = WireUse::default();
        }
        if samples >= self.measured.samples + MEASURED_SAMPLES {
            let used = consumer.wire_use();
            let octets = used.octets.saturating_sub(self.measured.octets) as f64;
            let payload = used.payload.saturating_sub(self.measured.payload);
            self.wire_share = octets / payload.max(1) as f64;
            self.measured = used;
        }
    }

    /// Whether the change under way, if any, can wait for the key sample after the next one.
    pub(super) fn can_wait(&self) -> bool {
        self.change
            .is_some_and(|change| change.to > self.ladder.current())
    }

    /// Takes note that the new rung begins at `position`.
    pub(super) const fn on_started(&mut self, position: u64) {
        if let Some(change) = &mut self.change {
            change.position = Some(position);
        }
    }

    /// When the change under way is given up: the new rung's key sample should have been shown, or the publisher should have
    /// told of one, long before.
    pub(super) fn gives_up_at(&self, now: Instant, consumer: &Consumer) -> Option<Instant> {
        let change = self.change.as_ref()?;
        let shown_at = change
            .position
            .and_then(|position| consumer.shown_at(now, position));
        let latest = change.since + consumer.key_period().saturating_mul(2);
        Some(shown_at.unwrap_or(latest) + PATIENCE)
    }

    /// Takes note that the new rung is shown.
    pub(super) fn on_moved(&mut self, now: Instant) {
        self.measured = WireUse::default();
        if let Some(change) = self.change.take() {
            self.ladder.on_moved(now, change.to);
        }
    }

    /// Takes note that the new rung did not come.
    pub(super) fn on_stayed(&mut self, now: Instant) {
        if let Some(change) = self.change.take() {
            self.ladder.on_stayed(now, change.to);
        }
    }
}
