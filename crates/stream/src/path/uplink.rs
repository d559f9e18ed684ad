//! Everything that is requested over one path: sends what is most urgent within the budget, and knows what is out.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, InterestBuilder, Nonce};
use namecast_units::{Bitrate, Instant};
use smart_default::SmartDefault;

use crate::feedback::{Feedback, Received};
use crate::names::SampleClass;
use crate::rate::{Arrival, Loss, Lost, Pacer};

use super::budget::{Budget, Load};
use super::credit::Credit;
use super::in_flight::InFlight;
use super::measure::{Arrived, Path};
use super::nonces::Nonces;
use super::objects::{Object, Objects};
use super::queue::{Queue, Rank};
use super::want::{Answer, Client, Event, Group, Kind, Limit, Token, Want};

/// Queues are looked at so often while anything is out.
const TICK: Duration = Duration::from_millis(5);
/// Segments after the first few of a sample are requested so long before their Data could arrive at the earliest.
const EARLY: Duration = Duration::from_millis(2);
/// While more than the target waits, sound is requested so often: enough to notice that the path is back.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Bounds of an uplink.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct UplinkConfig {
    /// Seed of the Nonces.
    pub seed: u64,
    /// Playout target.
    #[default(Duration::from_millis(100))]
    pub target: Duration,
    /// Interests out at a time.
    #[default(4_096)]
    pub max_in_flight: usize,
    /// Wants that wait.
    #[default(8_192)]
    pub max_queued: usize,
    /// Interests for one segment.
    #[default(4)]
    pub max_attempts: u32,
    /// Repairs earned by each first Interest.
    #[default(0.5)]
    pub repair_share: f64,
    /// The same by each second.
    #[default(20.0)]
    pub repair_rate: f64,
    /// Repairs that may be saved up.
    #[default(100.0)]
    pub max_repairs: f64,
}

/// What an uplink counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UplinkCounters {
    /// Interests that left.
    pub interests: u64,
    /// Of those, for what was requested before.
    pub retransmissions: u64,
    /// Of those, to find out what the path carries.
    pub probes: u64,
    /// Packets taken for lost.
    pub lost: u64,
    /// Wants that were given up unsent.
    pub dropped: u64,
    /// Interests for objects, which count in none of the above.
    pub objects: u64,
    /// Of those, for what was requested before.
    pub object_retransmissions: u64,
}

/// A packet that has come and is being looked at.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    token: Token,
    arrived: Arrived,
    was_lost: bool,
    is_marked: bool,
    feedback: Feedback,
    rtt: Option<Duration>,
}

/// Sends Interests over one path, for all streams of a watcher.
///
/// A plain value: give it wants, Data and the time, and after each call take everything from
/// [`poll_event`](Self::poll_event).
#[derive(Debug)]
pub struct Uplink {
    config: UplinkConfig,
    path: Path,
    budget: Budget,
    credit: Credit,
    queue: Queue,
    in_flight: InFlight,
    objects: Objects,
    limits: BTreeMap<Client, (Limit, Pacer)>,
    nonces: Nonces,
    events: VecDeque<Event>,
    counters: UplinkCounters,
    arriving: Option<Arriving>,
    need: Bitrate,
    repairs: f64,
    repairs_at: Instant,
    sound_at: Option<Instant>,
    /// When anything else left last.
    paced_at: Option<Instant>,
    ticked_at: Option<Instant>,
    window: f64,
    settled_at: Instant,
}

impl Uplink {
    /// An uplink over a path of which nothing is known.
    pub fn new(config: UplinkConfig, budget: Budget) -> Self {
        Self {
            path: Path::new(config.target),
            budget,
            credit: Credit::default(),
            queue: Queue::default(),
            in_flight: InFlight::default(),
            objects: Objects::default(),
            limits: BTreeMap::new(),
            nonces: Nonces::from_seed(config.seed),
            events: VecDeque::new(),
            counters: UplinkCounters::default(),
            arriving: None,
            need: Bitrate::default(),
            repairs: config.max_repairs,
            repairs_at: Instant::ZERO,
            sound_at: None,
            paced_at: None,
            ticked_at: None,
            window: 0.0,
            settled_at: Instant::ZERO,
            config,
        }
    }

    /// Returns the path.
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what bounds requests.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns what it counted.
    pub const fn counters(&self) -> &UplinkCounters {
        &self.counters
    }

    /// Sets the playout target, of which queues may not take much.
    pub const fn set_target(&mut self, target: Duration) {
        self.path.set_target(target);
    }

    /// Sets what all that is played takes on the wire.
    pub const fn set_need(&mut self, need: Bitrate) {
        self.need = need;
    }

    /// Bounds the Data of `client` by a rate of its own; `None` ends that.
    pub fn set_limit(&mut self, client: Client, limit: Option<Limit>) {
        match limit {
            Some(limit) => {
                let pacer = self
                    .limits
                    .remove(&client)
                    .map_or_else(Pacer::default, |(_, pacer)| pacer);
                self.limits.insert(client, (limit, pacer));
            }
            None => {
                self.limits.remove(&client);
            }
        }
    }

    /// Requests something as soon as the budget allows, or again if it was requested before.
    pub fn want(&mut self, now: Instant, mut want: Want) {
        if self.limits.contains_key(&want.token.client) {
            want.kind = Kind::Probe;
        }
        if self.queue.len() >= self.config.max_queued && self.queue.remove(want.token).is_none() {
            self.drop_want(want.token);
            return;
        }
        let is_first = self.path.last_arrival().is_none();
        self.budget.on_size(want.size, is_first);
        self.queue.insert(now, want);
    }

    /// Requests an object at once. Returns the Nonce.
    pub fn want_object(&mut self, now: Instant, object: Object) -> Nonce {
        let token = object.token;
        let is_again = self.objects.insert(object);
        let interest = self.objects.next(now, token);
        self.send_object(interest.expect("the first always leaves"), is_again)
    }

    fn send_object(&mut self, interest: InterestBuilder, is_again: bool) -> Nonce {
        let nonce = self.nonces.draw();
        self.counters.objects += 1;
        self.counters.object_retransmissions += u64::from(is_again);
        self.events.push_back(Event::Interest {
            interest: interest.build(nonce),
            avoid_face: None,
        });
        nonce
    }

    /// Objects of `client` that did not come yet.
    pub fn objects_out(&self, client: Client) -> usize {
        self.objects.count(client)
    }

    /// Returns the Interests that left for an object that did not come yet.
    pub fn attempts(&self, token: Token) -> u32 {
        self.objects.attempts(token)
    }

    /// Requests an object again at `at`, if that is sooner than it would be.
    pub fn hasten(&mut self, token: Token, at: Instant) {
        self.objects.hasten(token, at);
    }

    /// The transport came back: all objects are requested again at once.
    pub fn restart_objects(&mut self, now: Instant) {
        self.objects.restart(now);
    }

    /// Returns whether an Interest for `token` is out.
    pub fn is_out(&self, token: Token) -> bool {
        self.in_flight.get(token).is_some()
    }

    /// Returns whether `nonce` is of the Interest for `token` that left last, and is out.
    pub fn is_latest(&self, token: Token, nonce: Option<Nonce>) -> bool {
        let entry = self.in_flight.get(token);
        entry.is_some_and(|entry| Some(entry.nonce) == nonce)
    }

    /// Forgets a want of what turned out not to exist, or an object that came.
    pub fn forget(&mut self, token: Token) {
        self.objects.remove(token);
        self.queue.remove(token);
        self.in_flight.remove(token);
    }

    /// Requests `token` no more. If its Interest is out, its Data comes all the same, and tells of the path.
    pub fn withdraw_one(&mut self, token: Token) {
        self.queue.remove(token);
        self.in_flight.withdraw(token);
    }

    /// The same for everything of one sample.
    pub fn withdraw(&mut self, group: Group) {
        self.objects.remove_group(group);
        self.queue.remove_group(group);
        self.in_flight.withdraw_group(group);
    }

    /// The same for everything of one client.
    pub fn withdraw_client(&mut self, client: Client) {
        self.objects.remove_client(client);
        self.queue.remove_client(client);
        self.in_flight.withdraw_client(client);
        self.limits.remove(&client);
    }

    /// Sets when the sample of `group` could be here at the earliest: its lead has told.
    pub fn revise(&mut self, now: Instant, group: Group, available_at: Instant) {
        self.queue.revise(group, available_at);
        self.in_flight.revise(group, available_at, now, &self.path);
        if let Some(arriving) = &mut self.arriving
            && arriving.token.group() == group
        {
            arriving.arrived.available_at = Some(available_at);
        }
    }

    /// Records a round trip to the producer, as verified Data shows it.
    pub fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        if self.path.on_round_trip(now, rtt) {
            self.events.push_back(Event::PathShrank);
        }
        if let Some(arriving) = &mut self.arriving {
            arriving.rtt = Some(rtt);
        }
    }

    /// Takes Data for `token`. Returns what it answers; `None` if nothing was out for it. What it shows of the path
    /// counts from the next call on.
    pub fn handle_data(
        &mut self,
        now: Instant,
        token: Token,
        received: &Received,
    ) -> Option<Answer> {
        self.finish_arrival(now);
        self.queue.remove(token);
        let entry = self.in_flight.remove(token)?;
        let sent_at = InFlight::answered(&entry, now, &self.path);
        if InFlight::shows_loss(&entry, sent_at, now, &self.path) {
            self.counters.lost += 1;
            self.path.on_loss(now);
        }
        self.arriving = Some(Arriving {
            token,
            arrived: Arrived {
                sent_at,
                once: entry.attempts == 1,
                available_at: entry.available_at,
                size: received.size,
            },
            was_lost: entry.is_lost,
            is_marked: received.congestion_marked,
            feedback: received.feedback,
            // Of what may not have existed yet, the owner knows how long it waited.
            rtt: (entry.attempts == 1 && entry.available_at.is_none())
                .then(|| now.since(entry.sent_at)),
        });
        Some(Answer {
            token,
            kind: entry.kind,
            sent_at: entry.sent_at,
        })
    }

    fn finish_arrival(&mut self, now: Instant) {
        let Some(arriving) = self.arriving.take() else {
            return;
        };
        self.credit.on_data();
        let arrived = arriving.arrived;
        let was_measured = self.path.is_measured();
        self.path.on_mark(arriving.is_marked);
        self.path.on_feedback(now, &arriving.feedback);
        self.path.on_arrival(now, &arrived);
        if !was_measured && self.path.is_measured() {
            // The first samples wait for this: no tick is to pass before it counts.
            self.ticked_at = None;
        }
        let arrival = Arrival {
            asked_at: arrived.sent_at,
            rtt: arriving.rtt,
            size: arrived.size,
            was_lost: arriving.was_lost || !arrived.once,
            is_limiting: self.budget.is_limiting(now, self.in_flight.len()),
            congestion_marked: arriving.is_marked,
            feedback: arriving.feedback,
        };
        self.budget.on_data(now, &arrival);
    }

    /// The Data that came for `token` is not what was requested: it says nothing of the path, and no cache may answer for an
    /// object again.
    pub fn reject(&mut self, token: Token) {
        self.objects.reject(token);
        self.arriving.take_if(|arriving| arriving.token == token);
    }

    /// Takes an Interest that came back, if it is the one that left last. Without a reason, as publishers refuse what they do not
    /// have, it counts as not answered.
    pub fn handle_nack(
        &mut self,
        now: Instant,
        token: Token,
        nonce: Option<Nonce>,
        reason: NackReason,
    ) {
        if reason == NackReason::None || !self.is_latest(token, nonce) {
            return;
        }
        if let Some(entry) = self.in_flight.remove(token)
            && reason == NackReason::Congestion
        {
            self.report(now, entry.sent_at, Loss::Nack);
        }
    }

    /// The transport came back: what is out is lost, and may be requested anew.
    pub fn handle_link_change(&mut self) {
        self.in_flight = InFlight::default();
    }

    /// Does what is due, and sends what may be sent.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settled_at = now;
        self.finish_arrival(now);
        if self.ticked_at.is_none_or(|at| now.since(at) >= TICK) {
            self.ticked_at = Some(now);
            self.tick(now);
        }
        for token in self.objects.due(now) {
            match self.objects.next(now, token) {
                Some(interest) => {
                    self.send_object(interest, true);
                }
                None => {
                    self.objects.remove(token);
                    self.events.push_back(Event::Dropped(token));
                }
            }
        }
        self.pump(now);
    }

    fn tick(&mut self, now: Instant) {
        for token in self.queue.expire(now) {
            self.drop_want(token);
        }
        let survey = self.in_flight.survey(now, &self.path);
        self.path.on_tick(now, &survey);
        for token in self.in_flight.scan(now, &self.path) {
            self.counters.lost += 1;
            self.path.on_loss(now);
            let sent_at = self.in_flight.get(token).map_or(now, |entry| entry.sent_at);
            self.report(now, sent_at, Loss::Gap);
            self.events.push_back(Event::Lost(token));
        }
        if let Some(shift) = self.path.rebase(now, self.need) {
            self.in_flight.shift(shift);
            self.events.push_back(Event::PathGrew(shift));
        }
        let load = Load {
            is_waiting: self.queue.has_paced(),
            need: self.need,
        };
        self.budget.on_tick(now, &self.path, &load);
        self.path.on_caution(now, self.budget.is_cautious());
        self.credit.on_tick(now);
        let earned = self.config.repair_rate * now.since(self.repairs_at).as_secs_f64();
        self.repairs = (self.repairs + earned).min(self.config.max_repairs);
        self.repairs_at = now;
    }

    fn report(&mut self, now: Instant, asked_at: Instant, kind: Loss) {
        let lost = Lost {
            asked_at,
            kind,
            repeated: false,
        };
        self.budget.on_loss(now, &self.path, &lost);
    }

    /// Sends the most urgent wants while the budget lasts.
    fn pump(&mut self, now: Instant) {
        if self.queue.is_empty() {
            return;
        }
        while self.may_send_more()
            && self.may_send_sound(now)
            && let Some(want) = self.queue.peek(Rank::Sound)
        {
            let token = want.token;
            self.send(now, token);
        }
        if self.budget.is_holding() {
            self.pump_while_held(now);
        }
        self.window = self.in_flight.survey(now, &self.path).window;
        while self.may_send_more()
            && self.budget.allows(now, self.window, self.in_flight.len())
            && let Some(token) = self.next_paced(now)
        {
            self.send(now, token);
        }
    }

    fn may_send_more(&self) -> bool {
        self.in_flight.len() < self.config.max_in_flight && self.credit.allows()
    }

    /// While requests are held back, one leaves now and then, enough to notice that the path is back; and the first of each key
    /// sample, as what is out may be of samples that are never published.
    fn pump_while_held(&mut self, now: Instant) {
        let last = self.sound_at.into_iter().chain(self.paced_at).max();
        let is_due = last.is_none_or(|at| now.since(at) >= HEARTBEAT);
        if is_due && let Some(token) = self.next_paced(now) {
            self.send(now, token);
        }
        if let Some(token) = self.next_key(now) {
            self.send(now, token);
        }
    }

    /// Returns the first of a key sample that may leave.
    fn next_key(&self, now: Instant) -> Option<Token> {
        let is_key = |want: &&Want| {
            let segment = want.token.segment;
            segment.class == SampleClass::Key && segment.is_lead()
        };
        let repairs = self.queue.of(Rank::Repair);
        let lead = repairs.chain(self.queue.of(Rank::Media)).find(is_key)?;
        (self.leaves_at(now, lead) <= now).then_some(lead.token)
    }

    fn may_send_sound(&self, now: Instant) -> bool {
        let is_late = self.path.queue_now() > self.path.target().as_secs_f64();
        !is_late || self.sound_at.is_none_or(|at| now.since(at) >= HEARTBEAT)
    }

    fn next_paced(&self, now: Instant) -> Option<Token> {
        if self.repairs >= 1.0
            && let Some(want) = self.next_repair(now)
        {
            return Some(want.token);
        }
        if let Some(want) = self.queue.peek(Rank::Media) {
            return (self.leaves_at(now, want) <= now).then_some(want.token);
        }
        let want = self.queue.peek(Rank::Spare)?;
        let free_at = self
            .limits
            .get(&want.token.client)
            .map(|(limit, pacer)| pacer.next_send(Some(limit.rate)));
        free_at.is_none_or(|at| at <= now).then_some(want.token)
    }

    /// Returns the repair that is next: what can still be in time goes before what is late, which may be much of a sample.
    fn next_repair(&self, now: Instant) -> Option<&Want> {
        let is_late = |want: &&Want| want.due.is_some_and(|due| due <= now);
        let mut repairs = self.queue.of(Rank::Repair);
        repairs
            .find(|want| !is_late(want))
            .or_else(|| self.queue.peek(Rank::Repair))
    }

    fn leaves_at(&self, now: Instant, want: &Want) -> Instant {
        want.not_before.map_or(Instant::ZERO, |at| {
            at.saturating_sub(self.path.round_trip(now) + EARLY)
        })
    }

    fn send(&mut self, now: Instant, token: Token) {
        let Some(want) = self.queue.remove(token) else {
            return;
        };
        let before = self.in_flight.get(token);
        let attempts = before.map_or(0, |entry| entry.attempts);
        // One name is answered once: a second Interest for it brings nothing unless the first was lost.
        let is_duplicate = before.is_some_and(|entry| !entry.is_lost && !entry.is_withdrawn);
        if attempts >= self.config.max_attempts {
            self.drop_want(token);
            return;
        }
        let nonce = self.nonces.draw();
        let order = self.counters.interests;
        self.counters.interests += 1;
        self.counters.retransmissions += u64::from(attempts > 0);
        self.counters.probes += u64::from(want.kind == Kind::Probe);
        match want.kind {
            Kind::Sound => self.sound_at = Some(now),
            Kind::Repair if is_duplicate => {}
            Kind::Repair => self.repairs -= 1.0,
            Kind::Key | Kind::Delta => {
                let saved = self.repairs + self.config.repair_share;
                self.repairs = saved.min(self.config.max_repairs);
            }
            Kind::Parity | Kind::Probe => {}
        }
        if want.kind.is_paced() {
            self.paced_at = Some(now);
        }
        if !is_duplicate {
            self.credit.on_sent();
        }
        if want.kind.is_paced() && !is_duplicate {
            self.budget.on_sent(now, want.size);
            self.window += want.size.as_bits() as f64;
        }
        if let Some((limit, pacer)) = self.limits.get_mut(&token.client) {
            pacer.on_sent(now, limit.packet_size, Some(limit.rate));
        }
        self.in_flight.insert(now, &want, nonce, &self.path);
        self.events.push_back(Event::Sent {
            token,
            nonce,
            order,
        });
        self.events.push_back(Event::Interest {
            interest: interest(&want, nonce),
            avoid_face: want.avoid_face,
        });
    }

    fn drop_want(&mut self, token: Token) {
        self.counters.dropped += 1;
        self.events.push_back(Event::Dropped(token));
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let now = self.settled_at;
        let tick = self.ticked_at.map_or(now, |at| at + TICK);
        let arrival = self.arriving.map(|_| now);
        let late = self.in_flight.next_ideal().map(|at| tick.max(at));
        let queued = self.next_send(now, tick);
        // Controllers are looked at with each tick.
        let budget = self.budget.poll_timeout().map(|at| at.max(tick));
        let all = [arrival, late, queued, budget, self.objects.poll_timeout()];
        all.into_iter().flatten().min()
    }

    fn next_send(&self, now: Instant, tick: Instant) -> Option<Instant> {
        if self.queue.is_empty() {
            return None;
        }
        let media = self
            .queue
            .peek(Rank::Media)
            .filter(|_| self.queue.peek(Rank::Repair).is_none());
        let own = media
            .map(|want| self.leaves_at(now, want))
            .filter(|at| *at > now);
        let budget = self.budget.next_send().filter(|at| *at > now);
        Some(
            own.into_iter()
                .chain(budget)
                .max()
                .map_or(tick, |at| at.min(tick)),
        )
    }

    /// Returns the next thing to do or to know, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bits that are published, and not requested for want of room.
    pub fn backlog(&self, now: Instant) -> f64 {
        self.queue.backlog(now)
    }

    /// Returns the Interests out, and wants that wait.
    pub fn sizes(&self) -> (usize, usize) {
        (self.in_flight.len(), self.queue.len())
    }
}

fn interest(want: &Want, nonce: Nonce) -> Interest {
    let mut builder = Interest::builder(want.name.clone()).lifetime(want.lifetime);
    if want.must_be_fresh {
        builder = builder.must_be_fresh();
    }
    if want.can_be_prefix {
        builder = builder.can_be_prefix();
    }
    builder.build(nonce)
}
