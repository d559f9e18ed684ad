//! An uplink at one end of a model link, and a publisher at the other.
//!
//! ```text
//!  Uplink ──Interests, one-way delay──▶ publisher: waits until the Data is published
//!      ▲                                        │
//!      └──one-way delay── rate ── drop-tail queue ◀┘
//! ```

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_packet::Name;
use namecast_units::{Bitrate, ByteSize, Instant};

use crate::feedback::Received;
use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::path::{Answer, Budget, ClientId, Event, Kind, Token, Uplink, UplinkConfig, Want};

/// What every packet of media takes: 8,640 bits.
pub(crate) const SIZE: ByteSize = ByteSize::bytes(1_080);
/// 25 samples a second.
pub(crate) const PERIOD: Duration = ms(40);
/// Samples are wanted so long before they are published.
const AHEAD: Duration = ms(200);
/// Segments of a sample that are requested without regard to how long those before take the link.
const AT_ONCE: u64 = 4;
/// What is later than that is not repaired, and not requested.
const LATE: Duration = ms(500);
/// Calls at one instant that are taken for a loop without end.
const MAX_REPEATED_CALLS: u32 = 100;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Segment number `index` of the delta sample `sequence`.
pub(crate) const fn token(client: u64, sequence: u64, index: u64) -> Token {
    ClientId(client).token(SegmentId {
        class: SampleClass::Delta,
        sequence,
        kind: SegmentKind::Data,
        index,
    })
}

/// The name that `token` is for.
pub(crate) fn name(token: Token) -> Name {
    let SegmentId {
        sequence, index, ..
    } = token.segment;
    let client = token.client.0;
    format!("/demo/{client}/{sequence}/{index}")
        .parse()
        .unwrap()
}

/// Takes Data for `token`. Returns the want that it answers.
pub(crate) fn answer(
    uplink: &mut Uplink,
    now: Instant,
    token: Token,
    received: &Received,
) -> Option<Answer> {
    uplink.handle_data(now, &name(token), received);
    let answer = uplink.poll_answer();
    assert_eq!(uplink.poll_answer(), None);
    answer
}

/// A want for a packet of media that exists.
pub(crate) fn want(token: Token, kind: Kind) -> Want {
    Want {
        token,
        name: name(token),
        lifetime: ms(4_000),
        must_be_fresh: false,
        avoid_face: None,
        kind,
        size: SIZE,
        available_at: None,
        not_before: None,
        due: None,
        deadline: None,
    }
}

/// A packet on its way to the uplink.
#[derive(Clone, Copy, Debug)]
struct Packet {
    token: Token,
    sent_at: Instant,
    /// For so long its Interest waited for it to be published.
    waited: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueued(Packet),
    Served,
    Arrived(Packet),
}

/// The link and what is on it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) rate: Bitrate,
    /// Time that an Interest takes.
    pub(crate) interest_delay: Duration,
    /// Time that Data takes, beside what it waits and is sent for.
    pub(crate) data_delay: Duration,
    /// Packets that may wait, the one that is being sent included.
    pub(crate) max_packets: usize,
    /// Packets that found no room.
    pub(crate) overflows: u64,
    queue: VecDeque<Packet>,
    steps: BTreeMap<(Instant, u64), Step>,
    count: u64,
}

impl Link {
    pub(crate) fn new(rate: Bitrate, delay: Duration, max_packets: usize) -> Self {
        Self {
            rate,
            interest_delay: delay,
            data_delay: delay,
            max_packets,
            overflows: 0,
            queue: VecDeque::new(),
            steps: BTreeMap::new(),
            count: 0,
        }
    }

    fn schedule(&mut self, at: Instant, step: Step) {
        self.count += 1;
        self.steps.insert((at, self.count), step);
    }

    /// Takes an Interest for what is published at `published_at`.
    fn request(&mut self, now: Instant, token: Token, published_at: Instant) {
        let asked_at = now + self.interest_delay;
        let packet = Packet {
            token,
            sent_at: now,
            waited: published_at.since(asked_at),
        };
        self.schedule(asked_at.max(published_at), Step::Enqueued(packet));
    }

    fn serve(&mut self, now: Instant) {
        let bits = SIZE.as_bits() as f64;
        let time = Duration::from_secs_f64(bits / self.rate.as_bps() as f64);
        self.schedule(now + time, Step::Served);
    }

    /// Does one step. Returns a packet that has arrived.
    fn step(&mut self, now: Instant, step: Step) -> Option<Packet> {
        match step {
            Step::Enqueued(_) if self.queue.len() >= self.max_packets => self.overflows += 1,
            Step::Enqueued(packet) => {
                self.queue.push_back(packet);
                if self.queue.len() == 1 {
                    self.serve(now);
                }
            }
            Step::Served => {
                let packet = self.queue.pop_front().expect("it was being sent");
                self.schedule(now + self.data_delay, Step::Arrived(packet));
                if !self.queue.is_empty() {
                    self.serve(now);
                }
            }
            Step::Arrived(packet) => return Some(packet),
        }
        None
    }

    fn next_step(&self) -> Option<Instant> {
        self.steps.first_key_value().map(|((at, _), _)| *at)
    }
}

/// An uplink, its link, and a consumer that repairs what is lost.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) uplink: Uplink,
    pub(crate) link: Link,
    pub(crate) now: Instant,
    /// When Interests left, and for what.
    pub(crate) sent: Vec<(Instant, Token)>,
    /// When Data came, and for what.
    pub(crate) came: Vec<(Instant, Token)>,
    /// All other events.
    pub(crate) events: Vec<(Instant, Event)>,
    /// Times after which the machine handles what has come, over and over; empty: at once.
    pub(crate) wake_periods: Vec<Duration>,
    /// From publication to arrival without queues, as the consumer knows it.
    base: Duration,
    /// The same before the path was reported to be longer.
    base_before: Option<Duration>,
    wants: BTreeMap<Token, (Want, Instant)>,
    samples: u64,
    next_sample_at: Instant,
    /// Bits of media that did not fill a packet.
    rest: f64,
    /// When `handle_timeout` was called last, and how often at that instant.
    calls: (Instant, u32),
}

impl Bench {
    /// A bench with the budget for live media.
    pub(crate) fn new(link: Link) -> Self {
        let budget = Budget::live(crate::path::LiveConfig::default());
        Self::with(link, UplinkConfig::default(), budget)
    }

    pub(crate) fn with(link: Link, config: UplinkConfig, budget: Budget) -> Self {
        Self {
            uplink: Uplink::new(config, budget),
            base: link.data_delay + Duration::from_secs_f64(8_640.0 / link.rate.as_bps() as f64),
            base_before: None,
            link,
            now: Instant::ZERO,
            sent: Vec::new(),
            came: Vec::new(),
            events: Vec::new(),
            wake_periods: Vec::new(),
            wants: BTreeMap::new(),
            samples: 0,
            next_sample_at: Instant::ZERO,
            rest: 0.0,
            calls: (Instant::ZERO, 0),
        }
    }

    /// Wants something that is published at `published_at`.
    pub(crate) fn want(&mut self, want: Want, published_at: Instant) {
        self.wants.insert(want.token, (want.clone(), published_at));
        self.uplink.want(self.now, want);
    }

    /// Plays media of `rate` for `span`, in samples of which each is published at once.
    pub(crate) fn play(&mut self, rate: Bitrate, span: Duration) {
        self.uplink.set_need(rate);
        let until = self.now + span;
        while self.now < until {
            if self.next_sample_at <= self.now {
                self.next_sample_at = self.now + PERIOD;
                self.want_sample(rate);
            }
            match self.wake_periods.first() {
                None => self.run_until(self.next_sample_at.min(until)),
                Some(_) => self.sleep(),
            }
        }
    }

    /// Handles what comes within the next wake period at its end.
    fn sleep(&mut self) {
        self.settle();
        let wakes_at = self.now + self.wake_periods[0];
        self.wake_periods.rotate_left(1);
        let mut waiting = Vec::new();
        while let Some(at) = self.link.next_step().filter(|at| *at <= wakes_at) {
            let (_, step) = self.link.steps.pop_first().expect("it was looked at");
            waiting.extend(self.link.step(at, step));
        }
        self.now = wakes_at;
        for packet in waiting {
            self.on_packet(packet);
        }
    }

    fn want_sample(&mut self, rate: Bitrate) {
        let published_at = self.now + AHEAD;
        let available_at = published_at + self.base;
        self.rest += rate.as_bps() as f64 * PERIOD.as_secs_f64();
        let packets = (self.rest / SIZE.as_bits() as f64) as u64;
        self.rest -= (packets * SIZE.as_bits()) as f64;
        self.samples += 1;
        for index in 0..packets {
            let token = token(1, self.samples, index);
            let media = Want {
                available_at: Some(available_at),
                not_before: (index >= AT_ONCE).then_some(available_at),
                due: Some(available_at + self.uplink.path().target()),
                deadline: Some(available_at + LATE),
                ..want(token, Kind::Delta)
            };
            self.want(media, published_at);
        }
    }

    /// Does all that is due until `until`.
    pub(crate) fn run_until(&mut self, until: Instant) {
        self.settle();
        loop {
            let timeout = self.uplink.poll_timeout();
            let next = timeout.into_iter().chain(self.link.next_step()).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if self.link.next_step().is_some_and(|at| at <= self.now) {
                let (_, step) = self.link.steps.pop_first().expect("it was looked at");
                if let Some(packet) = self.link.step(self.now, step) {
                    self.on_packet(packet);
                }
            }
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    fn on_packet(&mut self, packet: Packet) {
        let token = packet.token;
        let Some((want, published_at)) = self.wants.remove(&token) else {
            return;
        };
        self.came.push((self.now, token));
        let received = Received::new(want.size, false);
        let answer = answer(&mut self.uplink, self.now, token, &received);
        // The consumer has verified a lead.
        if token.segment.is_lead() && answer.is_some_and(|it| it.sent_at == Some(packet.sent_at)) {
            let rtt = self.now.since(packet.sent_at + packet.waited);
            self.uplink.on_round_trip(self.now, rtt);
            self.base = self.base.min(self.now.since(published_at));
            let available_at = published_at + self.base;
            self.uplink.revise(self.now, &token.sample(), available_at);
        }
    }

    fn settle(&mut self) {
        self.calls = match self.calls {
            (at, count) if at == self.now => (at, count + 1),
            _ => (self.now, 1),
        };
        let (at, count) = self.calls;
        assert!(count <= MAX_REPEATED_CALLS, "no progress at {at}");
        self.uplink.handle_timeout(self.now);
        while let Some(event) = self.uplink.poll_event() {
            match event {
                Event::Sent { token, .. } => self.on_sent(token),
                Event::Interest { .. } => continue,
                Event::Lost(token) => self.repair(token),
                Event::PathGrew(shift) => {
                    self.base_before = Some(self.base);
                    self.base += shift;
                }
                Event::Dropped(token) => drop(self.wants.remove(&token)),
                Event::PathShrank => {
                    self.base = self.base_before.take().unwrap_or(self.base).min(self.base);
                }
            }
            if !matches!(event, Event::Sent { .. }) {
                self.events.push((self.now, event));
            }
        }
    }

    fn on_sent(&mut self, token: Token) {
        self.sent.push((self.now, token));
        let published_at = self.wants.get(&token).map_or(self.now, |(_, at)| *at);
        self.link.request(self.now, token, published_at);
    }

    fn repair(&mut self, token: Token) {
        let is_late = |want: &Want| want.available_at.is_some_and(|at| at + LATE <= self.now);
        let Some((want, _)) = self.wants.get(&token).filter(|(want, _)| !is_late(want)) else {
            return;
        };
        let repair = Want {
            kind: Kind::Repair,
            not_before: None,
            ..want.clone()
        };
        self.uplink.want(self.now, repair);
    }
}
