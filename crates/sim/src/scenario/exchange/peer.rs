//! One side of an exchange.

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_apps::{Application, Now, Output};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce, Packet,
};
use namecast_units::{Duration, Instant};

/// Octets of a signature: those of an HMAC.
const SIGNATURE: usize = 32;
/// Later packets that come before one counts as lost.
const REORDERING: u32 = 3;
/// Longest wait before an Interest is repeated that nothing is known of.
const FIRST_TIMEOUT: Duration = Duration::from_millis(500);
/// What it is longer than waits are at least: forwarders pass repeated Interests on after so long.
const MIN_MARGIN: Duration = Duration::from_millis(10);

/// What a side is.
#[derive(Clone, Debug)]
pub(super) struct PeerConfig {
    pub(super) own: Name,
    pub(super) other: Name,
    pub(super) is_first: bool,
    pub(super) is_bundled: bool,
    pub(super) count: u64,
    pub(super) window: u64,
    pub(super) payload: usize,
    pub(super) interval: Duration,
    pub(super) other_interval: Duration,
}

/// An Interest that waits for Data.
#[derive(Clone, Copy, Debug)]
struct Pending {
    wanted_at: Instant,
    sent_at: Instant,
    /// Packets that were requested later and came.
    passed: u32,
    transmissions: u32,
}

/// A side: sends its packets to the other, and requests the other's.
///
/// It answers at once, and requests the next packet when one came. With bundles, where packets are made at intervals, the next Interest
/// leaves with its next packet, and one more is outstanding for that.
#[derive(Debug)]
pub(super) struct Peer {
    config: PeerConfig,
    data: DataTemplate,
    interests: InterestTemplate,
    started_at: Option<Instant>,
    /// Number of the next Interest.
    next: u64,
    pending: BTreeMap<u64, Pending>,
    /// When the Interests were wanted that leave with packets to come.
    parked: VecDeque<Instant>,
    /// Packets that the other requested and that are to be made.
    requested: BTreeSet<u64>,
    /// Packets that were made.
    made: u64,
    /// Smoothed wait, and its deviation.
    wait: Option<(Duration, Duration)>,
    output: VecDeque<Bytes>,
    finished_at: Option<Instant>,
    pub(super) waits: Vec<Duration>,
    pub(super) ages: Vec<Duration>,
    pub(super) retransmissions: u64,
}

impl Peer {
    pub(super) fn new(config: PeerConfig) -> Self {
        let data = Data::builder(Name::root()).content(vec![0; config.payload]);
        let interests = Interest::builder(config.other.clone());
        Self {
            data: data.template(NullSigner.info(), SIGNATURE),
            interests: interests.template(Component::SEQUENCE),
            started_at: None,
            next: 0,
            pending: BTreeMap::new(),
            parked: VecDeque::new(),
            requested: BTreeSet::new(),
            made: 0,
            wait: None,
            output: VecDeque::new(),
            finished_at: None,
            waits: Vec::new(),
            ages: Vec::new(),
            retransmissions: 0,
            config,
        }
    }

    /// Returns when it had everything.
    pub(super) const fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    const fn is_paced(&self) -> bool {
        !self.config.interval.is_zero()
    }

    /// When a packet of the other side is made, or one of its own.
    fn made_at(&self, number: u64, interval: Duration) -> Instant {
        let start = self.started_at.unwrap_or_default();
        start + interval.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// From when on Data can be expected that were requested then: not before they are made.
    fn there_at(&self, number: u64, sent_at: Instant) -> Instant {
        sent_at.max(self.made_at(number, self.config.other_interval))
    }

    /// Sends Interests until the window is full.
    fn fill_window(&mut self, now: Instant) {
        let is_parking = self.config.is_bundled && self.is_paced();
        let window = self.config.window + u64::from(is_parking);
        let outstanding = |peer: &Self| (peer.pending.len() + peer.parked.len()) as u64;
        while outstanding(self) < window
            && self.next + (self.parked.len() as u64) < self.config.count
        {
            let may_park = is_parking && self.parked.is_empty() && !self.pending.is_empty();
            match may_park && self.made < self.config.count {
                true => self.parked.push_back(now),
                false => self.request(now, now),
            }
        }
    }

    fn request(&mut self, now: Instant, wanted_at: Instant) {
        let number = self.next;
        self.next += 1;
        let pending = Pending {
            wanted_at,
            sent_at: now,
            passed: 0,
            transmissions: 1,
        };
        self.pending.insert(number, pending);
        self.send_interest(number, 1);
    }

    fn send_interest(&mut self, number: u64, transmission: u32) {
        let side = u64::from(self.config.is_first) << 31;
        let nonce = (number << 4 ^ u64::from(transmission) ^ side) as u32;
        let interest = self.interests.build(number, Nonce::from(nonce));
        self.output.push_back(interest.wire().clone());
    }

    /// Answers a request; the Interest that has waited longest goes with that.
    fn send_data(&mut self, now: Instant, number: u64) {
        let name = self.config.own.builder().sequence(number).finish();
        self.output.push_back(self.data.build(name).wire().clone());
        if let Some(wanted_at) = self.parked.pop_front() {
            self.request(now, wanted_at);
        }
    }

    fn handle_interest(&mut self, now: Instant, number: u64) {
        if number >= self.config.count {
            return;
        }
        match !self.is_paced() || number < self.made {
            true => self.send_data(now, number),
            false => drop(self.requested.insert(number)),
        }
    }

    fn handle_data(&mut self, now: Instant, number: u64) {
        let Some(came) = self.pending.remove(&number) else {
            return;
        };
        self.waits.push(now.since(came.wanted_at));
        if !self.config.other_interval.is_zero() {
            let made_at = self.made_at(number, self.config.other_interval);
            self.ages.push(now.since(made_at));
        }
        if came.transmissions == 1 {
            let there_at = self.there_at(number, came.sent_at);
            self.measure(now.since(there_at));
        }
        let mut lost = Vec::new();
        for (&earlier, pending) in self.pending.range_mut(..number) {
            pending.passed += u32::from(pending.sent_at < came.sent_at);
            if pending.passed == REORDERING {
                lost.push(earlier);
            }
        }
        for number in lost {
            self.repeat(now, number);
        }
        if self.waits.len() as u64 == self.config.count {
            self.finished_at = Some(now);
        }
    }

    /// As RFC 6298 smooths round-trip times.
    fn measure(&mut self, wait: Duration) {
        self.wait = Some(match self.wait {
            None => (wait, wait / 2),
            Some((mean, deviation)) => {
                let error = wait.abs_diff(mean);
                ((mean * 7 + wait) / 8, (deviation * 3 + error) / 4)
            }
        });
    }

    fn timeout(&self) -> Duration {
        let known = self.wait;
        known.map_or(FIRST_TIMEOUT, |(mean, deviation)| {
            mean + (deviation * 4).max(MIN_MARGIN)
        })
    }

    fn repeat(&mut self, now: Instant, number: u64) {
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.sent_at = now;
            pending.passed = 0;
            pending.transmissions += 1;
            let transmission = pending.transmissions;
            self.retransmissions += 1;
            self.send_interest(number, transmission);
        }
    }

    /// Makes the packets whose time has come.
    fn make(&mut self, now: Instant) {
        while self.is_paced()
            && self.made < self.config.count
            && self.made_at(self.made, self.config.interval) <= now
        {
            let number = self.made;
            self.made += 1;
            if self.requested.remove(&number) {
                self.send_data(now, number);
            }
        }
    }
}

impl Application for Peer {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let now = now.monotonic;
        let packet = LpPacket::decode(frame).ok();
        let Some(LpPacket {
            fragment: Some(wire),
            nack: None,
            ..
        }) = packet
        else {
            return;
        };
        let number = |name: &Name| name.last()?.number_of(Component::SEQUENCE);
        match Packet::decode(wire) {
            Ok(Packet::Interest(interest)) => {
                if let Some(number) = number(interest.name()) {
                    self.handle_interest(now, number);
                }
            }
            Ok(Packet::Data(data)) => {
                if let Some(number) = number(data.name()) {
                    self.handle_data(now, number);
                }
            }
            Err(_) => {}
        }
        // The second one begins when it is asked, unless packets come by the clock.
        self.fill_window(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let now = now.monotonic;
        if self.started_at.is_none() {
            self.started_at = Some(now);
            if self.config.is_first || self.is_paced() {
                self.fill_window(now);
            }
        }
        self.make(now);
        let timeout = self.timeout();
        let late = self.pending.iter();
        let late: Vec<_> = late
            .filter(|&(&number, pending)| self.there_at(number, pending.sent_at) + timeout <= now)
            .map(|(&number, _)| number)
            .collect();
        for number in late {
            self.repeat(now, number);
        }
        if self.made == self.config.count {
            while let Some(wanted_at) = self.parked.pop_front() {
                self.request(now, wanted_at);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.started_at.is_none() {
            return Some(Instant::ZERO);
        }
        let timeout = self.timeout();
        let pending = self.pending.iter();
        let oldest = pending.map(|(&number, pending)| self.there_at(number, pending.sent_at));
        let next = (self.is_paced() && self.made < self.config.count)
            .then(|| self.made_at(self.made, self.config.interval));
        oldest.map(|at| at + timeout).chain(next).min()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        self.output.pop_front().map(Output::Send)
    }
}
