//! Which rung of a stream is pulled, where that is left to the watcher, and what is requested to find out what the path carries:
//! segments of the next rung that exist, newest first.

use core::time::Duration;

use namecast_stream::catalogue::SampleRate;
use namecast_stream::consumer::synchroniser::State;
use namecast_stream::consumer::{Allowance, Consumer, Source};
use namecast_stream::ladder::challenge::{Challenge, Step};
use namecast_stream::ladder::{Ladder, LadderConfig};
use namecast_stream::path::{ClientId, Kind, PACKET, Want};
use namecast_stream::{Rung, RungNames, SampleClass, SegmentId, StreamInfo};
use namecast_units::{Bitrate, ByteSize, Instant};

/// How long after its time the key sample of the rung to change over to may come: as long as a full queue takes.
const SWITCH_TIMEOUT: Duration = Duration::from_millis(1_500);
/// What names, headers and digests add to each segment, and a signature to each sample, in octets.
const SEGMENT_OVERHEAD: u64 = 84;
const SAMPLE_OVERHEAD: u64 = 60;

/// A change under way, as the paper makes it.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// Rung to change over to, by bitrate.
    to: usize,
    /// When it was decided, and where the new rung begins once that is known.
    since: Instant,
    position: Option<u64>,
}

/// What is to be done about rungs, as the paper has it.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// Pull this one as well as the current one.
    Prepare(Rung),
    /// Pull the current one alone.
    Drop,
}

/// Who chooses.
#[derive(Clone, Debug)]
pub(super) enum Chooser {
    /// By the path.
    Live(Box<Ladder>),
    /// By trial.
    Paper(Box<Challenge>),
}

/// Chooses the rung of one video stream.
#[derive(Clone, Debug)]
pub(super) struct AutoRung {
    pub chooser: Chooser,
    /// Lowest bitrate first.
    pub rungs: Vec<Rung>,
    change: Option<Change>,
}

/// By bitrate, lowest first.
fn sorted(info: &StreamInfo) -> Vec<&Rung> {
    let mut rungs: Vec<_> = info.rungs.iter().collect();
    rungs.sort_by_key(|rung| rung.bitrate);
    rungs
}

/// The rung to join on: the lowest, whose frames come soonest on whatever path.
pub(super) fn first_rung(info: &StreamInfo) -> Option<&Rung> {
    sorted(info).first().copied()
}

/// What a rung takes on the wire: bitrate, and what each segment and sample adds.
pub(super) fn wire_rate(bitrate: Bitrate, rate: SampleRate, segment_size: u32) -> Bitrate {
    let period = rate.period().max(Duration::from_millis(1));
    let sample = (bitrate * period).as_bytes();
    let segments = sample.div_ceil(u64::from(segment_size.max(1))).max(1);
    let added = segments * SEGMENT_OVERHEAD + SAMPLE_OVERHEAD;
    let added = added as f64 * 8.0 / period.as_secs_f64();
    Bitrate::bps(bitrate.as_bps() + added as u64)
}

impl AutoRung {
    /// Chooses among the rungs of `info`, of which `current` is pulled by `consumer`, in addition to `sound`; `None` if there is no
    /// choice.
    pub(super) fn new(
        now: Instant,
        config: &LadderConfig,
        (info, current): (&StreamInfo, &str),
        consumer: &Consumer,
        sound: Bitrate,
    ) -> Option<Self> {
        let rungs = sorted(info);
        let current = rungs.iter().position(|rung| rung.name == current)?;
        let chooser = match config {
            LadderConfig::Live(config) => {
                let need = |rung: &&Rung| {
                    let own = wire_rate(rung.bitrate, rung.rate, info.segment_size);
                    Bitrate::bps(own.as_bps() + sound.as_bps())
                };
                let needs: Vec<_> = rungs.iter().map(need).collect();
                Chooser::Live(Box::new(Ladder::new(now, config.clone(), &needs, current)?))
            }
            LadderConfig::Paper(config) => {
                let source = consumer.source();
                let with_parity = rungs.iter().map(|rung| Source {
                    bitrate: rung.bitrate,
                    ..source.clone()
                });
                let needs: Vec<_> = with_parity.map(|it| it.bitrate_with_parity()).collect();
                Chooser::Paper(Box::new(Challenge::new(now, *config, &needs, current)?))
            }
        };
        Some(Self {
            chooser,
            rungs: rungs.into_iter().cloned().collect(),
            change: None,
        })
    }

    /// The ladder that goes by the path.
    pub(super) fn ladder(&self) -> Option<&Ladder> {
        match &self.chooser {
            Chooser::Live(ladder) => Some(ladder),
            Chooser::Paper(_) => None,
        }
    }

    /// The same, to be asked.
    pub(super) fn ladder_mut(&mut self) -> Option<&mut Ladder> {
        match &mut self.chooser {
            Chooser::Live(ladder) => Some(ladder),
            Chooser::Paper(_) => None,
        }
    }

    /// Takes what `consumer` noticed of the path.
    pub(super) fn listen(&mut self, now: Instant, consumer: &mut Consumer) {
        if let Chooser::Paper(challenge) = &mut self.chooser {
            while let Some(event) = consumer.poll_path_event() {
                challenge.on_event(now, &event);
            }
            challenge.handle_timeout(now);
        }
    }

    /// What the paper's way is to be now. `consumer` pulls the current rung.
    pub(super) fn decide(&mut self, now: Instant, consumer: &Consumer) -> Option<Decision> {
        let Chooser::Paper(challenge) = &mut self.chooser else {
            return None;
        };
        if self.change.is_some() {
            return None;
        }
        let is_fetching = consumer.schedule().synchroniser().state() == State::Fetching;
        let to = match challenge.decide(now, is_fetching)? {
            Step::Try(rung) => return Some(Decision::Prepare(self.rungs[rung].clone())),
            Step::Abort => return Some(Decision::Drop),
            Step::Move(to) => to,
        };
        self.change = Some(Change {
            to,
            since: now,
            position: None,
        });
        Some(Decision::Prepare(self.rungs[to].clone()))
    }

    /// Returns whether a rung is pulled as well as the current one only to see whether it could be.
    pub(super) fn is_trying(&self) -> bool {
        match &self.chooser {
            Chooser::Live(_) => false,
            Chooser::Paper(challenge) => challenge.is_challenging(),
        }
    }

    /// How fast such a rung may be requested.
    pub(super) fn allowance(&self) -> Option<Allowance> {
        match &self.chooser {
            Chooser::Paper(challenge) if challenge.is_challenging() => Some(challenge.allowance()),
            _ => None,
        }
    }

    /// What the path carries, as the paper estimates it.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        match &self.chooser {
            Chooser::Live(_) => None,
            Chooser::Paper(challenge) => Some(challenge.estimate()),
        }
    }

    /// When [`decide`](Self::decide) may have something new by itself.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.chooser {
            Chooser::Live(_) => None,
            Chooser::Paper(challenge) => challenge.poll_timeout(),
        }
    }

    /// Returns whether the change under way, if any, can wait for the key sample after the next one.
    pub(super) fn can_wait(&self) -> bool {
        let current = match &self.chooser {
            Chooser::Live(ladder) => ladder.current(),
            Chooser::Paper(challenge) => challenge.current(),
        };
        self.change.is_some_and(|change| change.to > current)
    }

    /// Records that the new rung begins at `position`.
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
            .and_then(|position| consumer.schedule().timeline().shown_at(now, position));
        let latest = change.since + consumer.schedule().key_period().saturating_mul(2);
        Some(shown_at.unwrap_or(latest) + SWITCH_TIMEOUT)
    }

    /// Records that rung `name` is shown.
    pub(super) fn on_moved(&mut self) {
        let change = self.change.take();
        if let (Chooser::Paper(challenge), Some(change)) = (&mut self.chooser, change) {
            challenge.on_moved(change.to);
        }
    }

    /// Records that the new rung did not come.
    pub(super) fn on_stayed(&mut self, now: Instant) {
        self.change = None;
        if let Chooser::Paper(challenge) = &mut self.chooser {
            challenge.on_stayed(now);
        }
    }
}

/// Of a sample of average size, so many segments exist for sure.
const SURE_SHARE: u64 = 70;
/// Samples of one group that are old enough to be in no queue of ours.
const MAX_SAMPLES: u64 = 48;
/// Lifetime of Interests for what exists.
const LIFETIME: Duration = Duration::from_secs(1);

/// Segments of one rung, to be requested at a rate of their own.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    names: RungNames,
    segment_size: u32,
    per_sample: u64,
    /// The newest sample at the beginning, and what was requested since.
    newest: u64,
    count: u64,
    /// Bits that may be requested.
    credit: f64,
    credited_at: Instant,
}

impl Probing {
    /// Segments of `rung`, of which delta sample `newest` exists.
    pub(super) fn new(
        now: Instant,
        names: RungNames,
        rung: &Rung,
        segment_size: u32,
        newest: u64,
    ) -> Self {
        let sample = (rung.bitrate * rung.rate.period()).as_bytes();
        let segments = sample * SURE_SHARE / 100 / u64::from(segment_size.max(1));
        Self {
            names,
            segment_size,
            per_sample: segments.max(1),
            newest,
            count: 0,
            credit: 0.0,
            credited_at: now,
        }
    }

    /// What to request now at `rate` bits per second, up to `burst` at a time.
    pub(super) fn wants(
        &mut self,
        now: Instant,
        client: ClientId,
        rate: f64,
        burst: u64,
    ) -> Vec<Want> {
        self.credit += rate * now.since(self.credited_at).as_secs_f64();
        self.credited_at = now;
        let mut wants = Vec::new();
        while self.credit > 0.0 {
            for _ in 0..burst {
                self.credit -= PACKET;
                wants.extend(self.next(client));
            }
        }
        wants
    }

    fn next(&mut self, client: ClientId) -> Option<Want> {
        let sample = self.count / self.per_sample;
        let sequence = self
            .newest
            .checked_sub(1 + sample)
            .filter(|_| sample < MAX_SAMPLES)?;
        let mut segment = SegmentId::lead(SampleClass::Delta, sequence);
        segment.index = self.count % self.per_sample;
        self.count += 1;
        Some(Want {
            token: client.token(segment),
            name: self.names.segment(segment),
            lifetime: LIFETIME,
            must_be_fresh: false,
            avoid_face: None,
            kind: Kind::Probe,
            size: ByteSize::bytes(u64::from(self.segment_size) + 84),
            available_at: None,
            not_before: None,
            due: None,
            deadline: Some(
                Instant::ZERO
                    + Duration::from_nanos(self.credited_at.as_nanos())
                    + Duration::from_millis(100),
            ),
        })
    }
}
