//! A path with one narrow link, on which Data queues.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_apps::sequence::{Fetcher, FetcherConfig, Server, ServerConfig};
use namecast_packet::Name;
use namecast_stream::path::NumberedConfig;
use namecast_units::{Bitrate, ByteSize, Instant, Random};

/// Size of every Data packet, of which 1024 octets are content.
pub(crate) const WIRE: u64 = 1_074;

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(crate) fn prefix() -> Name {
    "/p/q".parse().expect("a valid name")
}

/// What a fetcher with the controller of this name requests.
pub(crate) fn config(controller: &str) -> NumberedConfig {
    NumberedConfig {
        control: controller.parse().expect("a controller's name"),
        ..NumberedConfig::default()
    }
}

/// Interests arrive at the link half a base RTT after they left, and Data comes half a base RTT after it has crossed.
pub(crate) struct Path {
    server: Server,
    pub(crate) rate: Bitrate,
    /// Octets that may wait for the link.
    pub(crate) queue: ByteSize,
    /// Probability that a Data packet is lost.
    pub(crate) loss: f64,
    /// Most by which a packet is late at random; the order is kept.
    pub(crate) jitter: Duration,
    flows: Vec<Flow>,
    random: Random,
    free_at: Instant,
    /// Interests and Data under way, by arrival and a number that keeps the order.
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    pub(crate) now: Instant,
    pub(crate) drops: u64,
    crossed: u64,
    waited: Duration,
}

struct Flow {
    fetcher: Fetcher,
    half_rtt: Duration,
    last_arrival: Instant,
    base: u64,
}

enum Event {
    Interest(usize, Bytes),
    Data(usize, Bytes),
}

/// What the link did over some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Share of the link's rate that was used.
    pub(crate) utilisation: f64,
    /// Mean time that packets waited, in milliseconds.
    pub(crate) queued: f64,
}

impl Path {
    /// 10 Mbit/s and room for 50 packets.
    pub(crate) fn new() -> Self {
        let server = Server::new(ServerConfig {
            prefix: prefix(),
            wire_size: Some(WIRE as usize),
            ..ServerConfig::default()
        });
        Self {
            server: server.expect("a size that can be had"),
            rate: Bitrate::mbps(10),
            queue: ByteSize::bytes(50 * WIRE),
            loss: 0.0,
            jitter: Duration::ZERO,
            flows: Vec::new(),
            random: Random::from_seed(3),
            free_at: Instant::ZERO,
            events: BTreeMap::new(),
            count: 0,
            now: Instant::ZERO,
            drops: 0,
            crossed: 0,
            waited: Duration::ZERO,
        }
    }

    /// A flow that starts now.
    pub(crate) fn add(&mut self, requests: NumberedConfig, base_rtt: Duration) {
        let mut fetcher = Fetcher::new(FetcherConfig::new(prefix(), requests));
        fetcher.start(self.now);
        self.flows.push(Flow {
            fetcher,
            half_rtt: base_rtt / 2,
            last_arrival: Instant::ZERO,
            base: 0,
        });
        self.send(self.flows.len() - 1);
    }

    pub(crate) fn fetcher(&self, flow: usize) -> &Fetcher {
        &self.flows[flow].fetcher
    }

    /// Changes the way of one flow.
    pub(crate) fn set_base_rtt(&mut self, flow: usize, base_rtt: Duration) {
        self.flows[flow].half_rtt = base_rtt / 2;
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn send(&mut self, flow: usize) {
        let at = self.now + self.flows[flow].half_rtt;
        while let Some(interest) = self.flows[flow].fetcher.poll_output() {
            self.schedule(at, Event::Interest(flow, interest));
        }
    }

    fn answer(&mut self, flow: usize, interest: Bytes) {
        self.server.handle_packet(self.now, interest);
        let Some(data) = self.server.poll_output() else {
            return;
        };
        let begin = self.free_at.max(self.now);
        let backlog = self.rate * begin.since(self.now);
        if backlog > self.queue || self.random.chance(self.loss) {
            self.drops += 1;
            return;
        }
        self.crossed += 1;
        self.waited += begin.since(self.now);
        self.free_at = begin + ByteSize::of(&data) / self.rate;
        let jitter = self.jitter.mul_f64(self.random.unit());
        let to = &mut self.flows[flow];
        to.last_arrival = to.last_arrival.max(self.free_at + to.half_rtt + jitter);
        let arrival = to.last_arrival;
        self.schedule(arrival, Event::Data(flow, data));
    }

    /// Runs until `until`.
    pub(crate) fn run(&mut self, until: Instant) {
        loop {
            let event = self.events.keys().next().map(|key| key.0);
            let timers = self.flows.iter().enumerate();
            let timer = timers
                .filter_map(|(flow, at)| Some((at.fetcher.poll_timeout()?, flow)))
                .min();
            let timer_at = timer.map(|timer| timer.0);
            let next = [event, timer_at].into_iter().flatten().min();
            let Some(next) = next.filter(|&next| next <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                let (_, event) = self.events.pop_first().expect("it was there");
                match event {
                    Event::Interest(flow, interest) => self.answer(flow, interest),
                    Event::Data(flow, data) => {
                        self.flows[flow].fetcher.handle_packet(self.now, data);
                        self.send(flow);
                    }
                }
            } else if let Some((_, flow)) = timer {
                self.flows[flow].fetcher.handle_timeout(self.now);
                self.send(flow);
            }
        }
    }

    /// Runs until `until` and measures the link meanwhile; [`shares`](Self::shares) are those of this time.
    pub(crate) fn measure(&mut self, until: Instant) -> Measured {
        let (begin, crossed, waited) = (self.now, self.crossed, self.waited);
        for flow in &mut self.flows {
            flow.base = flow.fetcher.figures().data;
        }
        self.run(until);
        let packets = (self.crossed - crossed) as f64;
        let could = self.rate.as_bps() as f64 * until.since(begin).as_secs_f64();
        Measured {
            utilisation: packets * WIRE as f64 * 8.0 / could,
            queued: (self.waited - waited).as_secs_f64() * 1e3 / packets.max(1.0),
        }
    }

    /// Packets that each flow got in the time measured last.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let flows = self.flows.iter();
        flows
            .map(|flow| (flow.fetcher.figures().data - flow.base) as f64)
            .collect()
    }
}
