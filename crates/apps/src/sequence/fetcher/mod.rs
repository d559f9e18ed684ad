//! Fetches numbered Data as fast as a controller allows.

mod config;
mod figures;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::tlv::{self, Fields, Reader};
use namecast_packet::{
    Component, Data, DecodeError, Interest, InterestTemplate, LpPacket, Nonce, lp::NackReason,
};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::rate::{
    Arrival, Loss, Lost, Pacer, RateController, RoundTrip, RoundTripConfig, Target,
};
use namecast_units::{Bitrate, ByteSize, Instant, Random};

pub use config::FetcherConfig;
pub use figures::{Fetched, Figures, Sample};

use figures::{Sampler, State};
use table::{Answer, Answered, Table};

/// Fetches `/<prefix>/seq=<n>` for consecutive n, as fast as its controller allows.
///
/// A plain value: give it packets and the time, and take everything from [`poll_output`](Self::poll_output) after each
/// call. Nothing is asked for before [`start`](Self::start).
///
/// An Interest is lost once Data asked for later has come (a gap), or once its timer has run out; the controller hears of
/// each sign, and of the second for the same Interest as a repeated one. What is lost leaves the window. It is asked for
/// again, or else still counts if it comes late.
pub struct Fetcher {
    config: FetcherConfig,
    template: InterestTemplate,
    verifier: Option<SharedVerifier>,
    random: Random,
    /// There from the start on.
    controller: Option<Box<dyn RateController>>,
    /// What the controller allows.
    target: Target,
    pacer: Pacer,
    table: Table,
    /// Numbers to ask for again.
    again: VecDeque<u64>,
    /// The pipeline's own timer, where the controller has none.
    round_trip: RoundTrip,
    backed_off_at: Instant,
    /// Content that one packet brings, in octets: 0.9 of it and 0.1 of the newest.
    mean_size: f64,
    is_running: bool,
    outputs: VecDeque<Bytes>,
    fetched: VecDeque<Fetched>,
    sampler: Sampler,
    figures: Figures,
}

impl core::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fetcher")
            .field("prefix", &self.config.prefix)
            .field("controller", &self.controller)
            .field("figures", &self.figures())
            .finish_non_exhaustive()
    }
}

/// What a timeout is longer than the smoothed round-trip time, at least, where the controller has no timer.
const TIMER_GRANULARITY: Duration = Duration::from_millis(10);

/// What a Data packet says, as far as a fetcher looks.
struct Found {
    number: u64,
    size: ByteSize,
}

impl Fetcher {
    /// A fetcher that waits for [`start`](Self::start), and takes Data unverified.
    pub fn new(config: FetcherConfig) -> Self {
        let interest = Interest::builder(config.prefix.clone()).lifetime(config.lifetime);
        let interval = config.sample_interval.unwrap_or_default();
        Self {
            template: interest.template(Component::SEQUENCE),
            verifier: None,
            random: Random::from_seed(config.seed),
            controller: None,
            target: Target::default(),
            pacer: Pacer::new(config.burst),
            table: Table::new(config.first, config.max_in_flight),
            again: VecDeque::new(),
            round_trip: RoundTrip::new(RoundTripConfig::new(
                config.least_timeout,
                TIMER_GRANULARITY,
            )),
            backed_off_at: Instant::ZERO,
            mean_size: 0.0,
            is_running: false,
            outputs: VecDeque::new(),
            fetched: VecDeque::new(),
            sampler: Sampler::new(interval, config.most_samples),
            figures: Figures::default(),
            config,
        }
    }

    /// The same fetcher, which drops Data that `verifier` does not accept.
    #[must_use]
    pub fn verifying(mut self, verifier: SharedVerifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Starts, or goes on after [`stop`](Self::stop).
    pub fn start(&mut self, now: Instant) {
        if self.controller.is_none() {
            self.controller = Some(self.config.control.build(now));
            self.sampler.start(now);
        }
        self.is_running = true;
        self.settle(now);
    }

    /// Asks for nothing more, neither new nor again. What is under way still counts.
    pub fn stop(&mut self, now: Instant) {
        self.sample(now);
        self.is_running = false;
    }

    /// Takes a packet from the face: Data, or what the link says about one.
    pub fn handle_packet(&mut self, now: Instant, wire: Bytes) {
        self.sample(now);
        if wire.first().copied().map(u32::from) == Some(tlv::DATA) {
            self.on_wire(now, wire, false);
        } else if let Ok(packet) = LpPacket::decode(wire) {
            match (packet.nack, packet.fragment) {
                (Some(reason), Some(interest)) => self.on_nack(now, interest, reason),
                (None, Some(data)) => self.on_wire(now, data, packet.congestion_mark > 0),
                (_, None) => {}
            }
        } else {
            self.figures.malformed += 1;
        }
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sample(now);
        if let Some(controller) = &mut self.controller {
            let is_due = controller.poll_timeout().is_some_and(|at| at <= now);
            if is_due {
                controller.handle_timeout(now);
            }
        }
        self.on_timers(now);
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let controller = self.controller.as_ref()?;
        let send =
            (self.is_running && self.may_send()).then(|| self.pacer.next_send(self.target.rate));
        let timer = self.table.timeout_at(self.timeout());
        let room = self.table.room_at(self.memory());
        [send, timer, room, controller.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next packet to send, until `None`.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    /// The next number that came, if the configuration wants them kept.
    pub fn poll_fetched(&mut self) -> Option<Fetched> {
        self.fetched.pop_front()
    }

    /// What it counted.
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What each interval since the start brought.
    pub fn samples(&self) -> &[Sample] {
        self.sampler.samples()
    }

    /// The bandwidth of content that the controller takes to be its own: what it estimates, or its window in each smoothed
    /// round-trip time, or the rate it allows.
    pub fn estimate(&self) -> Option<Bitrate> {
        let estimated = self.controller.as_ref()?.estimates().bandwidth;
        let windowed = || {
            let window = u64::from(self.target.window?);
            let content = ByteSize::bytes(self.packet_size().as_bytes().saturating_mul(window));
            Some(content / self.round_trip.smoothed()?)
        };
        estimated.or_else(windowed).or(self.target.rate)
    }

    /// The controller, from the start on.
    pub fn controller(&self) -> Option<&dyn RateController> {
        self.controller.as_deref()
    }

    /// Whether every number has come, or been given up, and nothing is under way.
    pub fn is_done(&self) -> bool {
        !self.has_next() && self.again.is_empty() && self.table.in_flight() == 0
    }

    /// What one Interest is taken to bring.
    fn packet_size(&self) -> ByteSize {
        self.target.packet_size.unwrap_or(match self.mean_size {
            size if size > 0.0 => ByteSize::bytes(size.round() as u64),
            _ => self.config.expected_size,
        })
    }

    fn timeout(&self) -> Duration {
        self.target
            .timeout
            .unwrap_or_else(|| self.round_trip.timeout())
    }

    /// How long what was lost is remembered: until it comes, if it is asked for again.
    fn memory(&self) -> Option<Duration> {
        (!self.config.retransmit).then_some(self.config.lifetime)
    }

    /// Closes the intervals of the samples before anything changes.
    fn sample(&mut self, now: Instant) {
        if self.sampler.is_due(now) {
            let state = State {
                estimate: self.estimate(),
                window: self.target.window,
                in_flight: self.table.in_flight(),
            };
            self.sampler.advance(now, &state);
        }
    }

    fn on_wire(&mut self, now: Instant, wire: Bytes, congestion_marked: bool) {
        let found = match &self.verifier {
            None => self.read(&wire),
            Some(verifier) => match Data::decode(wire) {
                Ok(data) if data.verify(&**verifier).is_err() => {
                    self.figures.unverified += 1;
                    return;
                }
                Ok(data) => self.read(data.wire()),
                Err(error) => Err(error),
            },
        };
        match found {
            Ok(Some(found)) => self.on_data(now, &found, congestion_marked),
            Ok(None) => self.figures.unasked += 1,
            Err(_) => self.figures.malformed += 1,
        }
    }

    /// Number and size of a Data packet, whose structure is checked but not kept. `None`: it has another name.
    fn read(&self, wire: &[u8]) -> Result<Option<Found>, DecodeError> {
        const ORDER: [u32; 4] = [
            tlv::META_INFO,
            tlv::CONTENT,
            tlv::SIGNATURE_INFO,
            tlv::SIGNATURE_VALUE,
        ];
        let missing = || DecodeError::new("Data", wire.len(), namecast_packet::Problem::Missing);
        let whole = Reader::new(wire).only("Data", tlv::DATA)?;
        let mut reader = Reader::within(wire, whole.value);
        let name = reader
            .element("Name")?
            .filter(|name| name.element_type == tlv::NAME);
        let name = name.ok_or_else(missing)?;
        let mut size = ByteSize::ZERO;
        let mut last = 0;
        let mut fields = Fields::new(reader, "Data", &ORDER);
        while let Some(field) = fields.field()? {
            if field.element_type == tlv::CONTENT {
                size = ByteSize::of(&wire[field.value.clone()]);
            }
            last = field.element_type;
        }
        if last != tlv::SIGNATURE_VALUE {
            return Err(missing());
        }
        let number = super::number_in(&self.config.prefix, &wire[name.value]);
        Ok(number.map(|number| Found { number, size }))
    }

    fn on_data(&mut self, now: Instant, found: &Found, congestion_marked: bool) {
        let answered = match self.table.answer(found.number) {
            Answer::Answers(answered) => answered,
            Answer::Duplicate => {
                self.figures.duplicates += 1;
                return;
            }
            Answer::Unasked => {
                self.figures.unasked += 1;
                return;
            }
        };
        if answered.transmissions == 1 && !self.target.ignores_gaps {
            // Which transmission was answered is known only if there was but one.
            self.on_overtaking(now, answered.transmission);
        }
        let size = found.size.as_bytes() as f64;
        self.mean_size = match self.mean_size {
            mean if mean > 0.0 => 0.9 * mean + 0.1 * size,
            _ => size,
        };
        let delay = now.since(answered.asked_at);
        let rtt = (answered.transmissions == 1).then_some(delay);
        if let Some(rtt) = rtt {
            self.round_trip.on_sample(rtt);
            self.figures.on_rtt(rtt);
        }
        self.figures.data += 1;
        self.figures.content += found.size;
        self.figures.late += u64::from(answered.was_lost);
        self.figures.congestion_marks += u64::from(congestion_marked);
        self.sampler.on_data(found.size, rtt);
        self.keep_fetched(now, found, &answered);
        let arrival = Arrival {
            asked_at: answered.asked_at,
            rtt,
            size: found.size,
            was_lost: answered.was_lost,
            // There is always more to ask for.
            is_limiting: true,
            congestion_marked,
            offered_rate: None,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_data(now, &arrival);
        }
    }

    fn keep_fetched(&mut self, now: Instant, found: &Found, answered: &Answered) {
        if self.config.most_fetched == 0 {
            return;
        }
        if self.fetched.len() >= self.config.most_fetched {
            self.fetched.pop_front();
        }
        self.fetched.push_back(Fetched {
            sequence: found.number,
            delay: now.since(answered.asked_at),
            full_delay: now.since(answered.first_asked_at),
            transmissions: answered.transmissions,
            size: found.size,
        });
    }

    /// Finds what was asked for before `transmission` and did not come.
    fn on_overtaking(&mut self, now: Instant, transmission: u64) {
        let tolerance = u64::from(self.config.reordering_tolerance);
        let before = transmission.saturating_sub(tolerance);
        while let Some(lost) = self.table.next_overtaken(before) {
            self.figures.gaps += u64::from(!lost.repeated);
            self.on_lost(now, &lost, Loss::Gap);
        }
    }

    fn on_timers(&mut self, now: Instant) {
        // The timeout of this moment, for all: what is reported may change it.
        let timeout = self.timeout();
        while let Some(lost) = self.table.next_timed_out(now, timeout) {
            self.figures.timeouts += u64::from(!lost.repeated);
            if lost.asked_at >= self.backed_off_at {
                self.backed_off_at = now;
                self.round_trip.back_off();
            }
            self.on_lost(now, &lost, Loss::Timeout);
        }
    }

    fn on_lost(&mut self, now: Instant, lost: &table::Lost, kind: Loss) {
        if self.config.retransmit && lost.leaves {
            self.again.push_back(lost.number);
        }
        self.report(now, lost, kind);
    }

    fn report(&mut self, now: Instant, lost: &table::Lost, kind: Loss) {
        let lost = Lost {
            asked_at: lost.asked_at,
            kind,
            repeated: lost.repeated,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_loss(now, &lost);
        }
    }

    /// Takes an Interest that came back. It is asked for again by its timer only: a node that refuses at once would
    /// otherwise be asked without end.
    fn on_nack(&mut self, now: Instant, interest: Bytes, reason: NackReason) {
        let Ok(interest) = Interest::decode(interest) else {
            self.figures.malformed += 1;
            return;
        };
        let number = super::number_in(&self.config.prefix, interest.name().value());
        let nonce = interest
            .nonce()
            .map_or(0, |nonce| u32::from_be_bytes(nonce.0));
        let Some(lost) = number.and_then(|number| self.table.nack(number, nonce)) else {
            self.figures.unasked += 1;
            return;
        };
        self.figures.nacks += 1;
        if reason == NackReason::Congestion {
            self.report(now, &lost, Loss::Nack);
        }
    }

    /// After every event: hears what the controller allows now, and sends.
    fn settle(&mut self, now: Instant) {
        if let Some(controller) = &self.controller {
            self.target = controller.target();
        }
        self.table.tidy(now, self.memory());
        while self.is_running && self.may_send() && self.pacer.next_send(self.target.rate) <= now {
            self.send(now);
        }
        self.figures.in_flight = self.table.in_flight() as u64;
    }

    /// Whether there is something to ask for, and room for it.
    fn may_send(&self) -> bool {
        let window = self.target.window;
        window.is_none_or(|window| self.table.in_flight() < window as usize)
            && self.table.has_room()
            && (self.has_next() || !self.again.is_empty())
    }

    /// Whether there are numbers that were never asked for.
    fn has_next(&self) -> bool {
        let end = match self.config.count {
            Some(count) => self.config.first.saturating_add(count),
            None => u64::MAX,
        };
        self.table.next_number() < end
    }

    /// Sends the next Interest: what is to be asked for again comes first.
    fn send(&mut self, now: Instant) {
        let nonce = self.random.next_u64() as u32;
        let lost = self.again.pop_front();
        let number = match lost {
            Some(number) if !self.table.is_missing(number) => return,
            Some(number) => {
                self.table.send_again(now, number, nonce);
                self.figures.retransmissions += 1;
                number
            }
            None if self.has_next() => {
                let number = self.table.next_number();
                self.table.send_next(now, nonce);
                number
            }
            None => return,
        };
        self.figures.interests += 1;
        self.pacer
            .on_sent(now, self.packet_size(), self.target.rate);
        let interest = self.template.build(number, Nonce::from(nonce));
        self.outputs.push_back(interest.wire().clone());
    }
}
