//! Owners of uplinks: they pass requests of watches to them, and answers and events back to the watches.
//!
//! ```text
//!  Watch, object ──Request──▶ Uplinks ──▶ Interests
//!    ▲                          │ ◀────── Data, Nacks
//!    └────── by its tokens ─────┘
//! ```

use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, LpPacket, Packet};
use namecast_stream::consumer::Delivery;
use namecast_stream::path::{ClientId, Clients, Control, Event, Uplink, UplinkConfig, Uplinks};
use namecast_units::{Bitrate, Instant};

use super::super::stats::Stats;
use super::steering::Sight;
use super::{Watch, Watched, WatcherConfig};
use crate::object::{self, Fetch, FetcherConfig, Learned};
use crate::{Application, Now, Output, face};

/// Watches one published root, over an uplink of its own. The methods for front-ends are [`Watch`]'s.
///
/// Give it what arrives ([`handle_packet`](Self::handle_packet)) and the time ([`handle_timeout`](Self::handle_timeout)
/// whenever [`poll_timeout`](Self::poll_timeout) says so), and after each call take everything from
/// [`poll_output`](Self::poll_output). The first call of `handle_timeout` starts the join. Early and repeated calls are
/// harmless.
#[derive(Debug)]
pub struct Watcher {
    watch: Watch,
    uplinks: Uplinks,
    packets: Packets,
    /// Arrival of the last packet after which nothing is settled yet: all that arrive together are settled once.
    unsettled_at: Option<Instant>,
}

impl Watcher {
    /// A watcher that will join at the first [`handle_timeout`](Self::handle_timeout).
    pub fn new(config: WatcherConfig) -> Self {
        let mut uplinks = uplinks(config.seed, config.target, config.control);
        let watch = Watch::new(config, uplinks.new_clients());
        Self {
            watch,
            uplinks,
            packets: Packets::default(),
            unsettled_at: None,
        }
    }

    fn all(&mut self) -> Shared<'_> {
        Shared {
            uplinks: &mut self.uplinks,
            watches: core::slice::from_mut(&mut self.watch),
            objects: &mut [],
            packets: &mut self.packets,
            unsettled_at: &mut self.unsettled_at,
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in an LpPacket. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, packet: Bytes) {
        self.all().handle_packet(now, packet);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.all().handle_timeout(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.unsettled_at,
            self.watch.poll_timeout(),
            self.uplinks.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns the next thing to do or to know, until `None`.
    pub fn poll_output(&mut self) -> Option<Output<Watched>> {
        self.all().take_changes();
        let packet = self.packets.pop().map(Output::Send);
        packet.or_else(|| self.watch.outbox.pop().map(Output::Event))
    }

    /// Records that the transport came back: everything that is pending is retransmitted at once.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.all().handle_link_change(now);
    }

    /// Sets by how much packets are handled after they arrive, as this machine is busy: neither a queue on the path nor loss. Zero
    /// by default.
    pub fn set_wake_delay(&mut self, delay: Duration) {
        self.uplinks.set_wake_delay(delay);
    }

    /// Figures for people.
    pub fn stats(&self, now: Instant) -> Stats {
        self.watch.stats(now, self.uplink())
    }

    /// Everything that is requested over the path, and what is known of it.
    pub fn uplink(&self) -> &Uplink {
        self.uplinks.of(&self.watch.clients)
    }
}

impl Deref for Watcher {
    type Target = Watch;

    fn deref(&self) -> &Watch {
        &self.watch
    }
}

impl DerefMut for Watcher {
    fn deref_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }
}

impl Application for Watcher {
    type Event = Watched;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        Self::poll_output(self)
    }
}

/// Number of a watch, drawn by its [`Watchers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(u64);

/// Number of an object that is fetched, drawn by its [`Watchers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId(u64);

/// An object that is fetched.
#[derive(Debug)]
struct Fetching {
    id: ObjectId,
    clients: Clients,
    fetch: Fetch,
}

/// Configuration of the uplinks that several watches share.
#[derive(Clone, Copy, Debug)]
pub struct WatchersConfig {
    /// Seed of the Nonces.
    pub seed: u64,
    /// Bound of all requests.
    pub control: Control,
}

/// Watches any number of published roots, and fetches any number of objects. Requests over one bottleneck have one bound: sound of any
/// goes before pictures of all, and objects have what these leave.
///
/// Driven as a [`Watcher`].
#[derive(Debug)]
pub struct Watchers {
    uplinks: Uplinks,
    packets: Packets,
    /// Arrival of the last packet after which nothing is settled yet: all that arrive together are settled once.
    unsettled_at: Option<Instant>,
    watches: Vec<Watch>,
    /// Numbers of the watches, in their order.
    ids: Vec<WatchId>,
    objects: Vec<Fetching>,
    next_id: u64,
}

impl Watchers {
    /// Watches nothing yet.
    pub fn new(config: WatchersConfig) -> Self {
        let target = UplinkConfig::default().target;
        Self {
            uplinks: uplinks(config.seed, target, config.control),
            packets: Packets::default(),
            unsettled_at: None,
            watches: Vec::new(),
            ids: Vec::new(),
            objects: Vec::new(),
            next_id: 0,
        }
    }

    /// Watches one more root, from the next [`handle_timeout`](Self::handle_timeout) on. The seed of `config` is for its challenges
    /// alone, and its control counts for nothing.
    pub fn add(&mut self, config: WatcherConfig) -> WatchId {
        let id = WatchId(self.next_id);
        self.next_id += 1;
        self.watches
            .push(Watch::new(config, self.uplinks.new_clients()));
        self.ids.push(id);
        id
    }

    /// Fetches an object, from the next [`handle_timeout`](Self::handle_timeout) on. Seed and control of `config` count for nothing.
    pub fn fetch(&mut self, config: FetcherConfig) -> ObjectId {
        let id = ObjectId(self.next_id);
        self.next_id += 1;
        let mut clients = self.uplinks.new_clients();
        let fetch = Fetch::new(config, clients.draw(), Learned::default());
        self.objects.push(Fetching { id, clients, fetch });
        id
    }

    /// Returns the next report on an object, until `None`, after [`poll_packet`](Self::poll_packet) had nothing more.
    pub fn poll_object(&mut self, id: ObjectId) -> Option<object::Event> {
        let mut objects = self.objects.iter_mut();
        objects.find(|it| it.id == id)?.fetch.poll_event()
    }

    /// Returns whether nothing more is requested of an object: its last report waits.
    pub fn has_object_ended(&self, id: ObjectId) -> bool {
        let mut objects = self.objects.iter();
        objects.any(|it| it.id == id && it.fetch.is_over())
    }

    /// Requests nothing more of an object, and forgets it.
    pub fn forget_object(&mut self, id: ObjectId) {
        for gone in self.objects.extract_if(.., |it| it.id == id) {
            self.uplinks.end(&gone.clients);
        }
    }

    /// Ends a watch. Data of its Interests that are out arrives all the same, and is measured.
    pub fn remove(&mut self, id: WatchId) {
        if let Some(at) = self.place(id) {
            let watch = self.watches.remove(at);
            self.ids.remove(at);
            self.uplinks.end(&watch.clients);
        }
    }

    fn place(&self, id: WatchId) -> Option<usize> {
        self.ids.iter().position(|own| *own == id)
    }

    /// Returns a watch.
    pub fn get(&self, id: WatchId) -> Option<&Watch> {
        self.watches.get(self.place(id)?)
    }

    /// Returns a watch, to be changed.
    pub fn get_mut(&mut self, id: WatchId) -> Option<&mut Watch> {
        let at = self.place(id)?;
        self.watches.get_mut(at)
    }

    /// Figures of a watch for people. Those of requests, loss and capacity are of the uplink.
    pub fn stats(&self, now: Instant, id: WatchId) -> Option<Stats> {
        Some(self.get(id)?.stats(now, self.uplink(id)?))
    }

    /// Everything that is requested over the path of a watch, which others may share, and what is known of it.
    pub fn uplink(&self, id: WatchId) -> Option<&Uplink> {
        Some(self.uplinks.of(&self.get(id)?.clients))
    }

    fn all(&mut self) -> Shared<'_> {
        Shared {
            uplinks: &mut self.uplinks,
            watches: &mut self.watches,
            objects: &mut self.objects,
            packets: &mut self.packets,
            unsettled_at: &mut self.unsettled_at,
        }
    }

    /// Records that the transport came back: everything that is pending is retransmitted at once.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.all().handle_link_change(now);
    }

    /// Sets by how much packets are handled after they arrive, as this machine is busy: neither a queue on the path nor loss. Zero
    /// by default.
    pub fn set_wake_delay(&mut self, delay: Duration) {
        self.uplinks.set_wake_delay(delay);
    }

    /// Returns the next packet to send, until `None`.
    pub fn poll_packet(&mut self) -> Option<Bytes> {
        self.all().take_changes();
        self.packets.pop()
    }

    /// Returns the next thing to know of a watch, until `None`, after [`poll_packet`](Self::poll_packet) had nothing more. Reports
    /// that nobody takes wait, up to a number.
    pub fn poll_watched(&mut self, id: WatchId) -> Option<Watched> {
        self.get_mut(id)?.outbox.pop()
    }
}

impl Application for Watchers {
    type Event = (WatchId, Watched);

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.all().handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.all().handle_timeout(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let watches = self.watches.iter().filter_map(Watch::poll_timeout);
        let objects = self.objects.iter();
        let objects = objects.filter_map(|it| it.fetch.poll_timeout());
        let all = watches.chain(objects).chain(self.uplinks.poll_timeout());
        all.chain(self.unsettled_at).min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        if let Some(packet) = self.poll_packet() {
            return Some(Output::Send(packet));
        }
        let mut watches = self.ids.iter().zip(&mut self.watches);
        watches.find_map(|(id, watch)| Some(Output::Event((*id, watch.outbox.pop()?))))
    }
}

fn uplinks(seed: u64, target: Duration, control: Control) -> Uplinks {
    let bounds = UplinkConfig {
        seed,
        target,
        ..UplinkConfig::default()
    };
    Uplinks::new(bounds, control)
}

/// Packets to send that nobody took yet.
#[derive(Debug, Default)]
struct Packets(VecDeque<Bytes>);

impl Packets {
    /// So many may wait.
    const MAX: usize = 4_096;

    fn push(&mut self, packet: Bytes) {
        if self.0.len() >= Self::MAX {
            // Nobody sends them. Interests are retransmitted in time.
            self.0.pop_front();
        }
        self.0.push_back(packet);
    }

    fn pop(&mut self) -> Option<Bytes> {
        self.0.pop_front()
    }
}

/// Watches and objects, with the uplinks that they share.
struct Shared<'a> {
    uplinks: &'a mut Uplinks,
    watches: &'a mut [Watch],
    objects: &'a mut [Fetching],
    packets: &'a mut Packets,
    unsettled_at: &'a mut Option<Instant>,
}

impl Shared<'_> {
    fn handle_packet(&mut self, now: Instant, packet: Bytes) {
        match face::open(packet) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                self.handle_data(now, &data, face::delivery(&link));
            }
            Ok(Some((
                Packet::Interest(interest),
                LpPacket {
                    nack: Some(reason), ..
                },
            ))) => {
                self.handle_nack(now, &interest, reason);
            }
            Ok(_) => self.count(|watch| watch.meters.counters_mut().unexpected += 1),
            Err(_) => self.count(|watch| watch.meters.counters_mut().malformed += 1),
        }
        *self.unsettled_at = Some(now);
    }

    /// Counts packets that no watch requested, with the first.
    fn count(&mut self, count: impl FnOnce(&mut Watch)) {
        self.watches.first_mut().map(count);
    }

    /// Returns the object that `client` requests, unless it is forgotten. It knows the round trip of its path as of now.
    fn object_of(&mut self, now: Instant, client: ClientId) -> Option<&mut Fetch> {
        let mut objects = self.objects.iter_mut();
        let Fetching { clients, fetch, .. } = objects.find(|it| it.clients.has(client))?;
        fetch.round_trip = self.uplinks.of(clients).path().round_trip(now);
        Some(fetch)
    }

    /// Returns the watch that drew the number of `client`, unless it has ended.
    fn of(&mut self, client: ClientId) -> Option<&mut Watch> {
        self.watches
            .iter_mut()
            .find(|watch| watch.clients.has(client))
    }

    fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) {
        let size = data.wire().len() as u64;
        let received = delivery.received(data);
        self.uplinks.handle_data(now, data.name(), &received);
        let (mut is_of_use, mut is_counted) = (false, false);
        while let Some(answer) = self.uplinks.poll_answer() {
            let client = answer.token.client;
            if let Some(object) = self.object_of(now, client) {
                is_of_use |= object.handle_answer(now, answer.token, (data, delivery));
                is_counted = true;
                continue;
            }
            let Some(watch) = self.of(client) else {
                continue;
            };
            if !is_counted {
                watch.meters.on_data(now, size);
                is_counted = true;
            }
            is_of_use |= watch.handle_answer(now, answer.token, (data, delivery));
        }
        self.count(|watch| {
            if !is_counted {
                watch.meters.on_data(now, size);
            }
            watch.meters.counters_mut().unexpected += u64::from(!is_of_use);
        });
    }

    fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        let all = self.uplinks.handle_nack(interest);
        if all.is_empty() {
            let name = interest.name();
            let mut watches = self.watches.iter_mut();
            match watches.find(|watch| watch.names.root().is_prefix_of(name)) {
                Some(watch) => watch.count_nack(interest),
                None => self.count(|watch| watch.count_nack(interest)),
            }
        }
        for nacked in all {
            let client = nacked.token.client;
            if let Some(object) = self.object_of(now, client) {
                object.handle_nack(now, nacked, reason);
            } else if let Some(watch) = self.of(client) {
                watch.handle_nacked(now, nacked, (interest, reason));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for watch in &mut *self.watches {
            watch.handle_timeout(now);
        }
        for Fetching { clients, fetch, .. } in &mut *self.objects {
            fetch.round_trip = self.uplinks.of(clients).path().round_trip(now);
            fetch.handle_timeout(now);
        }
        self.settle(now);
    }

    fn handle_link_change(&mut self, now: Instant) {
        for watch in &mut *self.watches {
            watch.handle_link_change(now);
        }
        self.carry_out(now);
        self.uplinks.handle_link_change(now);
        self.settle(now);
    }

    /// Lets packets that came, and changes that a front-end made, take effect.
    fn take_changes(&mut self) {
        let changed = self.watches.iter().filter_map(|watch| watch.changed_at);
        if let Some(now) = changed.chain(*self.unsettled_at).max() {
            self.settle(now);
        }
    }

    /// After all that happened at once.
    fn settle(&mut self, now: Instant) {
        *self.unsettled_at = None;
        for watch in &mut *self.watches {
            watch.settle(now);
        }
        self.carry_out(now);
        self.run_uplinks(now);
        self.steer(now);
    }

    /// Carries out the requests of watches and objects.
    fn carry_out(&mut self, now: Instant) {
        for watch in &mut *self.watches {
            while let Some(request) = watch.poll_request() {
                self.uplinks.carry_out(now, request);
            }
        }
        for object in &mut *self.objects {
            while let Some(request) = object.fetch.poll_request() {
                self.uplinks.carry_out(now, request);
            }
        }
    }

    /// Sends Interests that may leave, and passes events to watches.
    fn run_uplinks(&mut self, now: Instant) {
        for place in 0..self.uplinks.count() {
            self.set_terms(place);
        }
        self.uplinks.handle_timeout(now);
        let mut changed = false;
        while let Some((place, event)) = self.uplinks.poll_event() {
            changed |= matches!(event, Event::PathGrew(_) | Event::PathShrank);
            self.handle_event(now, place, event);
            self.carry_out(now);
        }
        for watch in &mut *self.watches {
            let outlook = self.uplinks.of(&watch.clients).path().outlook(now);
            if changed {
                watch.streams.share_playout(now, &watch.config);
            }
            for consumer in watch.streams.consumers() {
                consumer.schedule_mut().set_outlook(outlook);
            }
        }
    }

    /// Tells the uplink at `place` of the least playout target of all that is played over it, and of their need.
    fn set_terms(&mut self, place: usize) {
        let watches = self.watches.iter();
        let watches = watches.filter(|watch| self.uplinks.place(&watch.clients) == place);
        let targets = watches.clone();
        let targets = targets.map(|watch| watch.streams.target(&watch.config));
        let least = targets.min();
        let needs = watches.map(|watch| watch.streams.need().as_bps());
        let need = Bitrate::bps(needs.sum());
        let uplink = self.uplinks.at_mut(place);
        if let Some(least) = least {
            uplink.set_target(least);
        }
        uplink.set_need(need);
    }

    fn handle_event(&mut self, now: Instant, place: usize, event: Event) {
        match event {
            Event::Interest {
                interest,
                avoid_face,
            } => {
                let packet = face::request(&interest, avoid_face);
                self.packets.push(packet);
            }
            Event::Sent { token, .. } | Event::Dropped(token) | Event::Lost(token) => {
                if let Some(object) = self.object_of(now, token.client) {
                    object.handle_event(now, &event);
                } else if let Some(watch) = self.of(token.client) {
                    watch.handle_event(now, &event);
                }
            }
            Event::PathGrew(_) | Event::PathShrank => {
                for watch in &mut *self.watches {
                    if self.uplinks.place(&watch.clients) == place {
                        watch.handle_event(now, &event);
                    }
                }
            }
        }
    }

    /// Lets ladders decide.
    fn steer(&mut self, now: Instant) {
        let mut steered = false;
        for at in 0..self.watches.len() {
            if !self.watches[at].streams.may_steer(now) {
                continue;
            }
            let uplink = self.uplinks.of(&self.watches[at].clients);
            let others = self.sharing(at);
            let others = others.map(|watch| watch.streams.neighbour(watch.config.weight));
            let others: Vec<_> = others.collect();
            let weight = self.watches[at].config.weight;
            let sight = Sight {
                path: uplink.path(),
                backlog: uplink.backlog(now, weight),
                weight,
                others: &others,
                sound: match others.is_empty() {
                    true => Bitrate::default(),
                    false => self.sound(at),
                },
            };
            steered |= self.watches[at].steer(now, &sight);
        }
        if steered {
            self.carry_out(now);
            self.run_uplinks(now);
        }
    }

    /// Returns the watches that share the uplink of the one at `at`.
    fn sharing(&self, at: usize) -> impl Iterator<Item = &Watch> {
        let place = self.uplinks.place(&self.watches[at].clients);
        let others = self.watches.iter().enumerate();
        let others = others.filter(move |(other, _)| *other != at);
        others
            .map(|(_, watch)| watch)
            .filter(move |watch| self.uplinks.place(&watch.clients) == place)
    }

    /// Returns the rate on the wire of all sound over the uplink of the watch at `at`.
    fn sound(&self, at: usize) -> Bitrate {
        let all = self.sharing(at).chain([&self.watches[at]]);
        let needs = all.map(|watch| watch.streams.sound_need().as_bps());
        Bitrate::bps(needs.sum())
    }
}
