//! Simple traffic: what ndnSIM's users know as ConsumerCbr, ConsumerZipfMandelbrot and Producer.

use core::convert::Infallible;
use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_apps::sequence::Fetched;
use namecast_apps::{Application, Now, Output};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce, Packet,
};
use namecast_units::{ByteSize, Instant, Random};

/// Largest catalogue of a Zipf–Mandelbrot workload: its table has this many numbers.
pub const MAX_CATALOGUE: usize = 10_000_000;

/// Interests whose delay a requester can tell, at most.
const MAX_WAITING: usize = 4_096;

/// Time between two Interests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Always the mean.
    #[default]
    Even,
    /// Uniform between zero and twice the mean.
    Uniform,
    /// Exponential: a Poisson process.
    Exponential,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Choice {
    /// One number after another.
    #[default]
    Sequence,
    /// Numbers below `count`, the k-th of them with probability ∝ 1/(k + q)^s for k = 1, 2, …
    ZipfMandelbrot {
        /// How many numbers there are, at most [`MAX_CATALOGUE`].
        count: usize,
        /// Flattens the head.
        q: f64,
        /// Steepness.
        s: f64,
    },
}

/// How a [`Requester`] asks.
#[derive(Clone, Debug)]
pub struct RequesterConfig {
    /// What the numbers follow.
    pub prefix: Name,
    /// Mean time between two Interests.
    pub interval: Duration,
    /// How the times between Interests are distributed.
    pub spacing: Spacing,
    /// Which numbers are asked for.
    pub choice: Choice,
    /// How long Interests stay pending.
    pub lifetime: Duration,
    /// When the first Interest leaves, on the host's clock.
    pub start: Duration,
    /// Fixes nonces and all else that is random.
    pub seed: u64,
}

/// Requests numbered Data at a steady pace and counts what comes. It retransmits nothing.
#[derive(Debug)]
#[repr(C)]
pub struct Requester {
    // First what each packet touches, as there may be thousands of requesters.
    next_at: Instant,
    next: u64,
    template: InterestTemplate,
    random: Random,
    sent: u64,
    /// Sums of probabilities up to each number, of a Zipf–Mandelbrot choice.
    cumulative: Vec<f64>,
    output: Option<Bytes>,
    /// When the numbers that have not come were asked for, the last [`MAX_WAITING`] of them.
    waiting: VecDeque<(u64, Instant)>,
    received: u64,
    received_size: ByteSize,
    fetched: VecDeque<Fetched>,
    config: RequesterConfig,
    nacks: u64,
}

impl Requester {
    /// A requester that starts when its configuration says.
    pub fn new(config: RequesterConfig) -> Self {
        let cumulative = match config.choice {
            Choice::Sequence => Vec::new(),
            Choice::ZipfMandelbrot { count, q, s } => {
                let mut sum = 0.0;
                let ranks = 1..=count.min(MAX_CATALOGUE);
                let sums = ranks.map(|rank| {
                    sum += 1.0 / libm::pow(rank as f64 + q, s);
                    sum
                });
                sums.collect()
            }
        };
        let template = Interest::builder(config.prefix.clone())
            .lifetime(config.lifetime)
            .template(Component::SEQUENCE);
        Self {
            template,
            random: Random::from_seed(config.seed),
            next_at: Instant::ZERO + config.start,
            cumulative,
            next: 0,
            output: None,
            waiting: VecDeque::new(),
            fetched: VecDeque::new(),
            sent: 0,
            received: 0,
            received_size: ByteSize::ZERO,
            nacks: 0,
            config,
        }
    }

    /// Interests sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Data packets received.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Octets of Data packets received.
    pub const fn received_size(&self) -> ByteSize {
        self.received_size
    }

    /// Interests that came back.
    pub const fn nacks(&self) -> u64 {
        self.nacks
    }

    /// Remembers how long Data took, for traces.
    fn tell(&mut self, now: Instant, data: &Data) {
        let number = data
            .name()
            .last()
            .and_then(|last| last.number_of(Component::SEQUENCE));
        let place = self
            .waiting
            .iter()
            .position(|(waiting, _)| Some(*waiting) == number);
        let Some((sequence, asked_at)) = place.and_then(|place| self.waiting.remove(place)) else {
            return;
        };
        if self.fetched.len() >= MAX_WAITING {
            self.fetched.pop_front();
        }
        let delay = now.since(asked_at);
        self.fetched.push_back(Fetched {
            sequence,
            delay,
            full_delay: delay,
            transmissions: 1,
            size: ByteSize::of(&data.content().unwrap_or_default()),
        });
    }

    fn choose(&mut self) -> u64 {
        let Some(&total) = self.cumulative.last() else {
            self.next += 1;
            return self.next - 1;
        };
        let draw = self.random.unit() * total;
        self.cumulative.partition_point(|&sum| sum <= draw) as u64
    }

    fn draw_interval(&mut self) -> Duration {
        let factor = match self.config.spacing {
            Spacing::Even => return self.config.interval,
            Spacing::Uniform => 2.0 * self.random.unit(),
            Spacing::Exponential => -libm::log(1.0 - self.random.unit()),
        };
        self.config.interval.mul_f64(factor)
    }
}

impl Application for Requester {
    type Event = Fetched;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let Ok(header) = LpPacket::decode(frame) else {
            return;
        };
        if header.nack.is_some() {
            self.nacks += 1;
        } else if let Some(wire) = header.fragment
            && let Ok(Packet::Data(data)) = Packet::decode(wire)
        {
            self.received += 1;
            self.received_size += ByteSize::of(data.wire());
            self.tell(now.monotonic, &data);
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if now.monotonic < self.next_at {
            return;
        }
        let number = self.choose();
        let mut nonce = [0; 4];
        self.random.fill(&mut nonce);
        let interest = self.template.build(number, Nonce(nonce));
        self.output = Some(interest.wire().clone());
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((number, now.monotonic));
        self.sent += 1;
        let interval = self.draw_interval();
        self.next_at += interval;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_at)
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let frame = self.output.take().map(Output::Send);
        frame.or_else(|| self.fetched.pop_front().map(Output::Event))
    }
}

/// Answers every Interest with Data of one size.
#[derive(Debug)]
pub struct Responder {
    template: DataTemplate,
    output: VecDeque<Bytes>,
    answered: u64,
}

impl Responder {
    /// A producer of `payload` octets a packet.
    pub fn new(payload: usize, freshness: Duration) -> Self {
        let template = Data::builder(Name::root())
            .freshness(freshness)
            .content(vec![0; payload])
            .template(NullSigner.info(), 0);
        Self {
            template,
            output: VecDeque::new(),
            answered: 0,
        }
    }

    /// Interests answered.
    pub const fn answered(&self) -> u64 {
        self.answered
    }
}

impl Application for Responder {
    type Event = Infallible;

    fn handle_frame(&mut self, _now: Now, frame: Bytes) {
        let wire = LpPacket::decode(frame).ok().and_then(|lp| lp.fragment);
        let Some(Ok(Packet::Interest(interest))) = wire.map(Packet::decode) else {
            return;
        };
        let data = self.template.build(interest.name().clone());
        self.answered += 1;
        self.output.push_back(data.wire().clone());
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.output.pop_front().map(Output::Send)
    }
}
