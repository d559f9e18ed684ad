//! Changes rungs by itself: up while the way carries more, down before a queue eats the playout target.

use core::time::Duration;

use namecast_stream::consumer::synchroniser::State;
use namecast_stream::consumer::{Allowance, Consumer, Source, WireUse};
use namecast_stream::ladder::challenge::{Challenge, Step};
use namecast_stream::ladder::{Ladder, LadderConfig};
use namecast_stream::{Rung, StreamInfo};
use namecast_units::{Bitrate, Instant};

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

/// What is to be done about rungs.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// Pull this one beside the current one.
    Prepare(Rung),
    /// Pull the current one alone.
    Drop,
}

/// Chooses the rung of one video stream.
#[derive(Clone, Debug)]
pub(super) struct AutoRung {
    chooser: Chooser,
    /// Lowest bitrate first.
    rungs: Vec<Rung>,
    change: Option<Change>,
}

/// Who chooses.
#[derive(Clone, Debug)]
enum Chooser {
    Namecast(Box<Measuring>),
    Paper(Box<Challenge>),
}

/// A ladder, and what it has to be told of the wire.
#[derive(Clone, Debug)]
struct Measuring {
    ladder: Ladder,
    /// Octets on the wire per octet of payload, and what the consumer had counted when that was measured.
    wire_share: f64,
    measured: WireUse,
}

/// By bitrate, lowest first.
fn sorted(info: &StreamInfo) -> Vec<&Rung> {
    let mut rungs: Vec<_> = info.rungs.iter().collect();
    rungs.sort_by_key(|rung| rung.bitrate);
    rungs
}

/// The rung to join on: one in the middle, the lower of two. Frames of more than a few segments tell what the way carries;
/// the lowest rung's do so only once in a key period. \[RTSD\] begins with the lowest (§5.2.3).
pub(super) fn first_rung<'a>(info: &'a StreamInfo, config: &LadderConfig) -> Option<&'a Rung> {
    let rungs = sorted(info);
    match config {
        LadderConfig::Namecast(_) => rungs.get(rungs.len().checked_sub(1)? / 2).copied(),
        LadderConfig::Paper(_) => rungs.first().copied(),
    }
}

impl Measuring {
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
}

impl Chooser {
    /// One for `rungs`, of which number `current` is pulled by `consumer`; `None` if there is no choice.
    fn new(
        now: Instant,
        config: &LadderConfig,
        rungs: &[&Rung],
        current: usize,
        consumer: &Consumer,
    ) -> Option<Self> {
        let bitrates = rungs.iter().map(|rung| rung.bitrate);
        Some(match config {
            LadderConfig::Namecast(config) => {
                let (config, bitrates) = (config.clone(), bitrates.collect::<Vec<_>>());
                let period = consumer.key_period();
                Self::Namecast(Box::new(Measuring {
                    ladder: Ladder::new(now, config, &bitrates, current, period)?,
                    wire_share: FIRST_WIRE_SHARE,
                    measured: consumer.wire_use(),
                }))
            }
            LadderConfig::Paper(config) => {
                let source = consumer.source();
                let with_parity = bitrates.map(|bitrate| Source {
                    bitrate,
                    ..source.clone()
                });
                let needs: Vec<_> = with_parity.map(|it| it.bitrate_with_parity()).collect();
                Self::Paper(Box::new(Challenge::new(now, *config, &needs, current)?))
            }
        })
    }

    fn current(&self) -> usize {
        match self {
            Self::Namecast(measuring) => measuring.ladder.current(),
            Self::Paper(challenge) => challenge.current(),
        }
    }
}

impl AutoRung {
    /// Chooses among the rungs of `info`, of which `current` is pulled by `consumer`; `None` if there is no choice.
    pub(super) fn new(
        now: Instant,
        config: &LadderConfig,
        info: &StreamInfo,
        current: &str,
        consumer: &Consumer,
    ) -> Option<Self> {
        let rungs = sorted(info);
        let current = rungs.iter().position(|rung| rung.name == current)?;
        Some(Self {
            chooser: Chooser::new(now, config, &rungs, current, consumer)?,
            rungs: rungs.into_iter().cloned().collect(),
            change: None,
        })
    }

    /// Takes what `consumer` noticed of the way, and tells it how fast to ask.
    pub(super) fn listen(&mut self, now: Instant, consumer: &mut Consumer) {
        match &mut self.chooser {
            Chooser::Namecast(measuring) => {
                let ladder = &mut measuring.ladder;
                let mut heard = false;
                while let Some(sign) = consumer.poll_sign() {
                    ladder.on_sign(now, sign);
                    heard = true;
                }
                if heard {
                    consumer.set_pace(ladder.pace(now));
                }
            }
            Chooser::Paper(challenge) => {
                while let Some(sign) = consumer.poll_sign() {
                    challenge.on_sign(now, &sign);
                }
                challenge.handle_timeout(now);
            }
        }
    }

    /// What is to be done now. `consumer` pulls the current rung.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        consumer: &Consumer,
        target: Duration,
    ) -> Option<Decision> {
        if self.change.is_some() {
            return None;
        }
        let to = match &mut self.chooser {
            Chooser::Namecast(measuring) => {
                measuring.ladder.set_target(target);
                measuring.measure(consumer);
                measuring.ladder.decide(now, measuring.wire_share)?
            }
            Chooser::Paper(challenge) => {
                let is_fetching = consumer.synchroniser().state() == State::Fetching;
                match challenge.decide(now, is_fetching)? {
                    Step::Try(rung) => return Some(Decision::Prepare(self.rungs[rung].clone())),
                    Step::Abort => return Some(Decision::Drop),
                    Step::Move(to) => to,
                }
            }
        };
        self.change = Some(Change {
            to,
            since: now,
            position: None,
        });
        Some(Decision::Prepare(self.rungs[to].clone()))
    }

    /// Whether a rung is pulled beside the current one only to see whether it could be.
    pub(super) fn is_trying(&self) -> bool {
        match &self.chooser {
            Chooser::Namecast(_) => false,
            Chooser::Paper(challenge) => challenge.is_challenging(),
        }
    }

    /// How fast such a rung may be asked for.
    pub(super) fn allowance(&self) -> Option<Allowance> {
        match &self.chooser {
            Chooser::Paper(challenge) if challenge.is_challenging() => Some(challenge.allowance()),
            _ => None,
        }
    }

    /// What the way carries, if that is known: for the wire by trains, for payload by ARC.
    pub(super) fn bandwidth(&self, now: Instant) -> Option<Bitrate> {
        match &self.chooser {
            Chooser::Namecast(measuring) => measuring.ladder.capacity(now),
            Chooser::Paper(challenge) => Some(challenge.estimate()),
        }
    }

    /// When [`decide`](Self::decide) may have something new by itself.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.chooser {
            Chooser::Namecast(_) => None,
            Chooser::Paper(challenge) => challenge.poll_timeout(),
        }
    }

    /// Whether the change under way, if any, can wait for the key sample after the next one.
    pub(super) fn can_wait(&self) -> bool {
        self.change
            .is_some_and(|change| change.to > self.chooser.current())
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
        let change = self.change.take();
        match &mut self.chooser {
            Chooser::Namecast(measuring) => {
                measuring.measured = WireUse::default();
                if let Some(change) = change {
                    measuring.ladder.on_moved(now, change.to);
                }
            }
            Chooser::Paper(challenge) => {
                if let Some(change) = change {
                    challenge.on_moved(change.to);
                }
            }
        }
    }

    /// Takes note that the new rung did not come.
    pub(super) fn on_stayed(&mut self, now: Instant) {
        let change = self.change.take();
        match &mut self.chooser {
            Chooser::Namecast(measuring) => {
                if let Some(change) = change {
                    measuring.ladder.on_stayed(now, change.to);
                }
            }
            Chooser::Paper(challenge) => challenge.on_stayed(now),
        }
    }
}
