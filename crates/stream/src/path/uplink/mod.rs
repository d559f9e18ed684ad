//! Everything that is requested over one path: sends what is most urgent within the budget, and knows what is out.

mod lookup;
mod reports;
mod sending;

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::{InterestBuilder, Nonce};
use namecast_units::{Bitrate, Instant, Random};
use smart_default::SmartDefault;

use crate::feedback::{Feedback, Received};
use crate::rate::{Arrival, Loss, Lost, Pacer};

use super::bottleneck::Delays;
use super::budget::{Budget, Load};
use super::credit::{Credit, Repairs};
use super::in_flight::{InFlight, Sent};
use super::measure::{Arrived, Path};
use super::objects::{Object, Pending};
use super::queue::Rank;
use super::want::{
    Answer, ClientId, Clients, Event, Kind, Limit, Nacked, Request, Selectors, Token, Tokens, Want,
    Weight,
};
use lookup::Wanted;
use reports::Reports;

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
    /// Wants of one client that wait, its objects that did not come, and what it has not heard of yet.
    #[default(8_192)]
    pub max_queued: usize,
    /// Interests for one segment of a stream.
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
    pub(super) wanted: Wanted,
    /// What Data that came last answers.
    answers: VecDeque<Answer>,
    next_owner: u32,
    limits: BTreeMap<ClientId, (Limit, Pacer)>,
    random: Random,
    reports: Reports,
    counters: UplinkCounters,
    arriving: Option<Arriving>,
    delays: Delays,
    need: Bitrate,
    repairs: Repairs,
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
            wanted: Wanted::default(),
            answers: VecDeque::new(),
            next_owner: 0,
            limits: BTreeMap::new(),
            random: Random::from_seed(config.seed),
            reports: Reports::default(),
            counters: UplinkCounters::default(),
            arriving: None,
            delays: Delays::default(),
            need: Bitrate::default(),
            repairs: Repairs::new(&config),
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

    /// Sets by how much packets are handled after they arrive, as this machine is busy.
    pub const fn set_wake_delay(&mut self, delay: Duration) {
        self.path.set_wake_delay(delay);
    }

    /// Sets what all that is played takes on the wire.
    pub const fn set_need(&mut self, need: Bitrate) {
        self.need = need;
    }

    /// Bounds the Data of `client` by a rate of its own; `None` ends that.
    pub fn set_limit(&mut self, client: ClientId, limit: Option<Limit>) {
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

    /// Returns the number of a client that is its own owner.
    pub const fn new_client(&mut self) -> ClientId {
        self.new_clients().draw()
    }

    /// Returns numbers for the clients of a new owner.
    pub const fn new_clients(&mut self) -> Clients {
        self.next_owner += 1;
        Clients::of(self.next_owner - 1)
    }

    /// Does what a client wants.
    pub fn carry_out(&mut self, now: Instant, request: Request) {
        match request {
            Request::Want(want) => self.want(now, want),
            Request::Object(object) => self.want_object(now, object),
            Request::Forget(token) => self.forget(token),
            Request::Reject(token) => self.reject(token),
            Request::Hasten(token, at) => self.wanted.objects.hasten(token, at),
            Request::TakeBack(nacked, reason) => self.take_back(now, nacked, reason),
            Request::Withdraw(tokens) => self.withdraw(&tokens),
            Request::Revise(tokens, available_at) => self.revise(now, &tokens, available_at),
            Request::GiveUp(tokens) => self.give_up(&tokens),
            Request::RoundTrip(_, rtt) => self.on_round_trip(now, rtt),
            Request::Limit(client, limit) => self.set_limit(client, limit),
            Request::Weigh(client, weight) => self.wanted.queue.weigh(client.owner(), weight),
        }
    }

    /// Requests something as soon as the budget allows, or again if it was requested before.
    pub fn want(&mut self, now: Instant, mut want: Want) {
        let token = want.token;
        if self.limits.contains_key(&token.client) {
            want.kind = Kind::Probe;
        }
        if let Some(out) = self.wanted.equal_out(now, &want) {
            self.wanted.queue.remove(token);
            self.ride(now, want, out);
            return;
        }
        let is_full = self.wanted.queue.count_of(token.client) >= self.config.max_queued;
        if is_full && self.wanted.queue.remove(token).is_none() {
            self.drop_want(token);
            return;
        }
        let is_first = self.path.last_arrival().is_none();
        self.budget.on_size(want.size, is_first);
        self.wanted.add_name(&want.name, token);
        self.wanted.queue.insert(now, want);
    }

    /// Requests an object at once, unless an equal Interest is out, or the client has too many already.
    pub fn want_object(&mut self, now: Instant, object: Object) {
        let token = object.token;
        let is_full = self.wanted.objects.count(token.client) >= self.config.max_queued;
        if is_full && self.wanted.objects.get(token).is_none() {
            self.drop_want(token);
            return;
        }
        let is_again = self.wanted.objects.insert(object);
        let interest = self.wanted.objects.next(now, token);
        let interest = interest.expect("the first always leaves");
        self.send_object(now, token, interest, is_again);
    }

    fn send_object(
        &mut self,
        now: Instant,
        token: Token,
        interest: InterestBuilder,
        is_again: bool,
    ) {
        let nonce = Nonce::draw(&mut self.random);
        let interest = interest.build(nonce);
        let selectors = Selectors::of(&interest);
        self.wanted.add_name(interest.name(), token);
        let out = self
            .wanted
            .out_for_others(now, token, interest.name(), &selectors);
        // One that was out when this was requested last was waited for long enough.
        let before = self.wanted.objects.get(token).and_then(Pending::sent_at);
        if let Some(out) = out.filter(|out| before.is_none_or(|before| before < out.sent_at)) {
            let interest = interest.with_nonce(out.nonce);
            self.wanted
                .objects
                .on_sent(token, (interest, out.sent_at), true);
            return self.tell_sent(token, out.nonce);
        }
        self.counters.objects += 1;
        self.counters.object_retransmissions += u64::from(is_again);
        self.wanted
            .objects
            .on_sent(token, (interest.clone(), now), false);
        self.tell_sent(token, nonce);
        self.reports.push(Event::Interest {
            interest,
            avoid_face: None,
        });
    }

    fn tell_sent(&mut self, token: Token, nonce: Nonce) {
        let order = self.counters.interests;
        self.tell(
            token,
            Event::Sent {
                token,
                nonce,
                order,
            },
        );
    }

    /// Objects of `client` that did not come yet.
    pub fn objects_out(&self, client: ClientId) -> usize {
        self.wanted.objects.count(client)
    }

    /// The transport came back: all objects are requested again at once.
    pub fn restart_objects(&mut self, now: Instant) {
        self.wanted.objects.restart(now);
    }

    /// Forgets a want of what turned out not to exist, or an object that came.
    pub fn forget(&mut self, token: Token) {
        self.wanted.forget(token);
    }

    /// Requests `tokens` no more. What is out comes all the same, and tells of the path.
    pub fn withdraw(&mut self, tokens: &Tokens) {
        self.wanted.withdraw(tokens);
        let is_whole = |client: ClientId| {
            let all = client.tokens();
            tokens.contains(all.start()) && tokens.contains(all.end())
        };
        self.limits.retain(|client, _| !is_whole(*client));
    }

    /// Sets when `tokens` could be here at the earliest.
    pub fn revise(&mut self, now: Instant, tokens: &Tokens, available_at: Instant) {
        self.wanted.queue.revise(tokens, available_at);
        self.wanted
            .in_flight
            .revise(tokens, available_at, now, &self.path);
        if let Some(arriving) = &mut self.arriving
            && tokens.contains(&arriving.token)
        {
            arriving.arrived.available_at = Some(available_at);
        }
    }

    /// Records a round trip to the producer, as verified Data shows it.
    pub fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        if self.path.on_round_trip(now, rtt) {
            self.reports.push(Event::PathShrank);
        }
        if let Some(arriving) = &mut self.arriving {
            arriving.rtt = Some(rtt);
        }
    }

    /// Takes what came for the Interest of `entry`, which was out for `token`. What it shows of the path counts from the next
    /// call on.
    fn begin_arrival(&mut self, now: Instant, token: Token, entry: &Sent, received: &Received) {
        let sent_at = InFlight::answered(entry, now, &self.path);
        if InFlight::shows_loss(entry, sent_at, now, &self.path) {
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
        let delay = self.path.on_arrival(now, &arrived);
        // Data that was not wanted ahead may have a longer way than others, and no queue on it.
        if arrived.available_at.is_some() {
            let owner = arriving.token.client.owner();
            self.delays.on_arrival(now, owner, delay);
        }
        if !was_measured && self.path.is_measured() {
            // The first samples wait for this: no tick is to pass before it counts.
            self.ticked_at = None;
        }
        let arrival = Arrival {
            asked_at: arrived.sent_at,
            rtt: arriving.rtt,
            size: arrived.size,
            was_lost: arriving.was_lost || !arrived.once,
            is_limiting: self.budget.is_limiting(now, self.wanted.in_flight.len()),
            congestion_marked: arriving.is_marked,
            feedback: arriving.feedback,
        };
        self.budget.on_data(now, &arrival);
    }

    /// The Data that came for `token` is not what was requested: it says nothing of the path, and no cache may answer for an
    /// object again.
    pub fn reject(&mut self, token: Token) {
        self.wanted.objects.reject(token);
        self.arriving.take_if(|arriving| arriving.token == token);
    }

    /// Expects no Data any more for an Interest that came back, if it is the one that left last for `token`. Without a reason, as
    /// publishers refuse what they do not have, it counts as not answered.
    pub fn take_back(&mut self, now: Instant, nacked: Nacked, reason: NackReason) {
        if reason == NackReason::None || !nacked.is_latest {
            return;
        }
        let Some(entry) = self.wanted.in_flight.remove(nacked.token) else {
            return;
        };
        if reason == NackReason::Congestion && !entry.rides {
            self.report(now, entry.sent_at, Loss::Nack);
        }
        if !entry.is_withdrawn {
            self.wanted.late.insert(nacked.token, entry.name);
        }
    }

    /// The transport came back: what is out is lost, and may be requested anew.
    pub fn handle_link_change(&mut self) {
        self.give_up(&(Token::FIRST..=Token::LAST));
    }

    fn give_up(&mut self, tokens: &Tokens) {
        for (token, entry) in self.wanted.in_flight.take(tokens) {
            if !entry.is_withdrawn {
                self.wanted.late.insert(token, entry.name);
            }
        }
    }

    /// Does what is due, and sends what may be sent.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settled_at = now;
        self.finish_arrival(now);
        if self.ticked_at.is_none_or(|at| now.since(at) >= TICK) {
            self.ticked_at = Some(now);
            self.tick(now);
        }
        for token in self.wanted.objects.due(now) {
            match self.wanted.objects.next(now, token) {
                Some(interest) => {
                    self.send_object(now, token, interest, true);
                }
                None => {
                    self.wanted.objects.remove(token);
                    self.tell(token, Event::Dropped(token));
                }
            }
        }
        self.pump(now);
    }

    fn tick(&mut self, now: Instant) {
        for token in self.wanted.queue.expire(now) {
            self.drop_want(token);
        }
        let survey = self.wanted.in_flight.survey(now, &self.path);
        self.path.on_tick(now, &survey);
        for token in self
            .wanted
            .in_flight
            .scan(now, &self.path, &mut self.wanted.late)
        {
            let entry = self.wanted.in_flight.get(token);
            let sent_at = entry.map_or(now, |entry| entry.sent_at);
            if !entry.is_some_and(|entry| entry.rides) {
                self.counters.lost += 1;
                self.path.on_loss(now);
                self.report(now, sent_at, Loss::Gap);
            }
            self.tell(token, Event::Lost(token));
        }
        if let Some(shift) = self.path.rebase(now, self.need) {
            self.wanted.in_flight.shift(shift);
            self.reports.push(Event::PathGrew(shift));
        }
        let load = Load {
            is_waiting: self.wanted.queue.has_paced(),
            need: self.need,
        };
        self.budget.on_tick(now, &self.path, &load);
        self.path.on_caution(now, self.budget.is_cautious());
        self.credit.on_tick(now);
        self.repairs.on_tick(now, &self.config);
    }

    fn report(&mut self, now: Instant, asked_at: Instant, kind: Loss) {
        let lost = Lost {
            asked_at,
            kind,
            repeated: false,
        };
        self.budget.on_loss(now, &self.path, &lost);
    }

    fn drop_want(&mut self, token: Token) {
        self.counters.dropped += 1;
        self.tell(token, Event::Dropped(token));
    }

    /// Reports `event` to the client of `token`.
    fn tell(&mut self, token: Token, event: Event) {
        let max_untaken = 2 * self.config.max_queued;
        self.reports.tell(token.client, event, max_untaken);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let now = self.settled_at;
        let tick = self.ticked_at.map_or(now, |at| at + TICK);
        let arrival = self.arriving.map(|_| now);
        let late = self.wanted.in_flight.next_ideal().map(|at| tick.max(at));
        let queued = self.next_send(now, tick);
        // Controllers are looked at with each tick.
        let budget = self.budget.poll_timeout().map(|at| at.max(tick));
        let all = [
            arrival,
            late,
            queued,
            budget,
            self.wanted.objects.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    fn next_send(&self, now: Instant, tick: Instant) -> Option<Instant> {
        if self.wanted.queue.is_empty() {
            return None;
        }
        let leaves_at_once = [Rank::Repair, Rank::ObjectRepair, Rank::Object]
            .into_iter()
            .any(|rank| self.wanted.queue.peek(rank).is_some());
        let media = self.wanted.queue.heads(Rank::Media);
        let media = media.filter(|_| !leaves_at_once);
        let own = media
            .map(|want| self.leaves_at(now, want))
            .min()
            .filter(|at| *at > now);
        let budget = self.budget.next_send().filter(|at| *at > now);
        Some(
            own.into_iter()
                .chain(budget)
                .max()
                .map_or(tick, |at| at.min(tick)),
        )
    }

    /// Returns the owner whose Data waits while the Data of another owner does not: it passes another bottleneck.
    pub(super) fn owner_apart(&self, now: Instant) -> Option<u32> {
        self.delays.apart(now)
    }

    /// Lets `other` request everything of `tokens` from now on, what is out included.
    pub(super) fn move_to(&mut self, now: Instant, other: &mut Self, tokens: &Tokens) {
        self.finish_arrival(now);
        other
            .wanted
            .take_from(now, &mut self.wanted, tokens, &other.path);
        let clients = tokens.start().client..=tokens.end().client;
        other
            .limits
            .extend(self.limits.extract_if(clients, |_, _| true));
    }

    /// Returns the next thing to do or to know, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.reports.pop()
    }

    /// Bits that are published, and not requested for want of room, of owners of `weight` and of heavier ones.
    pub fn backlog(&self, now: Instant, weight: Weight) -> f64 {
        self.wanted.queue.backlog(now, weight)
    }

    /// Returns the Interests out, and wants that wait.
    pub fn sizes(&self) -> (usize, usize) {
        (self.wanted.in_flight.len(), self.wanted.queue.len())
    }
}
