//! All uplinks of one node: one for each bottleneck that its owners' Data passes.
//!
//! ```text
//!  owner 0 ─┐             ┌─ near bottleneck ── Data of 0 and 1 is delayed alike
//!  owner 1 ─┼─▶ uplink 0 ─┘
//!  owner 2 ───▶ uplink 1 ──── far bottleneck ── all Data of 2 waited while none of 0 did: it has an uplink of its own
//! ```

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_packet::{Interest, Name};
use namecast_units::{Bitrate, Instant, Random};

use crate::feedback::Received;

use super::bottleneck::are_alike;
use super::budget::Control;
use super::uplink::{Uplink, UplinkConfig};
use super::want::{Answer, Clients, Event, Nacked, Request, Token};

/// Interval between two looks for bottlenecks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks in a row at which an owner stands apart before it gets an uplink of its own.
const TIMES_APART: u32 = 3;
/// Time after a split without merges. It doubles with each split, five times at most.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const MAX_DOUBLINGS: u32 = 5;

/// One bottleneck.
#[derive(Debug)]
struct Lane {
    uplink: Uplink,
    /// The owner whose Data stood apart, and how many times in a row.
    apart: Option<(u32, u32)>,
}

impl Lane {
    fn new(uplink: Uplink) -> Self {
        Self {
            uplink,
            apart: None,
        }
    }

    /// Notes whether Data of one owner waits in another queue.
    fn look(&mut self, now: Instant) {
        self.apart = self.uplink.owner_apart(now).map(|owner| {
            let before = self.apart.filter(|(other, _)| *other == owner);
            (owner, before.map_or(0, |(_, times)| times) + 1)
        });
    }

    /// Returns the owner that needs an uplink of its own.
    fn splits_off(&self) -> Option<u32> {
        let (owner, times) = self.apart?;
        (times >= TIMES_APART).then_some(owner)
    }
}

/// Uplinks of any number of owners, such as watches. Those whose Data passes one bottleneck share an uplink.
///
/// All begin on one: on most nodes the last mile is the bottleneck of all. An owner whose Data is all delayed, while another's is not,
/// gets one of its own, and uplinks whose delays rise and fall together become one (RFC 8382, RFC 8699).
///
/// Driven as an [`Uplink`].
#[derive(Debug)]
pub struct Uplinks {
    config: UplinkConfig,
    control: Control,
    random: Random,
    /// The first one stays, also where nobody uses it.
    lanes: Vec<Lane>,
    /// The place of each owner that has not ended.
    places: BTreeMap<u32, usize>,
    next_owner: u32,
    looked_at: Instant,
    merges_at: Instant,
    /// How often one became two.
    splits: u32,
}

impl Uplinks {
    /// One uplink, over a path of which nothing is known.
    pub fn new(config: UplinkConfig, control: Control) -> Self {
        let uplink = Uplink::new(config, control.build(Instant::ZERO, Bitrate::default()));
        Self {
            random: Random::from_seed(!config.seed),
            lanes: vec![Lane::new(uplink)],
            places: BTreeMap::new(),
            next_owner: 0,
            looked_at: Instant::ZERO,
            merges_at: Instant::ZERO,
            splits: 0,
            config,
            control,
        }
    }

    /// Returns numbers for the clients of a new owner.
    pub fn new_clients(&mut self) -> Clients {
        let owner = self.next_owner;
        self.next_owner += 1;
        self.places.insert(owner, 0);
        Clients::of(owner)
    }

    /// Requests nothing more of an owner that has ended.
    pub fn end(&mut self, clients: &Clients) {
        let place = self.place(clients);
        self.lanes[place].uplink.withdraw(&clients.tokens());
        self.places.remove(&clients.owner());
        if place > 0 && !self.places.values().any(|it| *it == place) {
            self.remove(place);
        }
    }

    /// The number of uplinks.
    pub const fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Returns the place of the uplink of an owner, below [`count`](Self::count).
    pub fn place(&self, clients: &Clients) -> usize {
        self.place_of(clients.owner())
    }

    fn place_of(&self, owner: u32) -> usize {
        self.places.get(&owner).copied().unwrap_or(0)
    }

    /// Returns the uplink of an owner.
    pub fn of(&self, clients: &Clients) -> &Uplink {
        &self.lanes[self.place(clients)].uplink
    }

    /// Returns the uplink at `place`, to be changed.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn at_mut(&mut self, place: usize) -> &mut Uplink {
        &mut self.lanes[place].uplink
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Uplink> {
        self.lanes.iter_mut().map(|lane| &mut lane.uplink)
    }

    /// Sets by how much packets are handled after they arrive, as this machine is busy.
    pub fn set_wake_delay(&mut self, delay: Duration) {
        self.all().for_each(|uplink| uplink.set_wake_delay(delay));
    }

    /// Does what a client wants.
    pub fn carry_out(&mut self, now: Instant, request: Request) {
        let client = request.client();
        let place = self.place_of(client.owner());
        self.lanes[place].uplink.carry_out(now, request);
    }

    /// Takes Data `name`. What it answers is for [`poll_answer`](Self::poll_answer).
    pub fn handle_data(&mut self, now: Instant, name: &Name, received: &Received) {
        self.all()
            .for_each(|uplink| uplink.handle_data(now, name, received));
    }

    /// Returns the next want or object that the last Data answers, until `None`.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.all().find_map(Uplink::poll_answer)
    }

    /// Takes an Interest that came back. Returns the wants and objects that it was for.
    pub fn handle_nack(&mut self, interest: &Interest) -> Vec<Nacked> {
        self.all()
            .flat_map(|uplink| uplink.handle_nack(interest))
            .collect()
    }

    /// The transport came back: what is out is lost, and objects are requested again at once.
    pub fn handle_link_change(&mut self, now: Instant) {
        for uplink in self.all() {
            uplink.handle_link_change();
            uplink.restart_objects(now);
        }
    }

    /// Does what is due, and sends what may be sent.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.all().for_each(|uplink| uplink.handle_timeout(now));
        if self.places.len() > 1 && now.since(self.looked_at) >= LOOK {
            self.looked_at = now;
            self.look(now);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = self
            .lanes
            .iter()
            .filter_map(|lane| lane.uplink.poll_timeout());
        all.min()
    }

    /// Returns the next thing to do or to know, until `None`, and the place of the uplink that it is of.
    pub fn poll_event(&mut self) -> Option<(usize, Event)> {
        let mut all = self.lanes.iter_mut().enumerate();
        all.find_map(|(place, lane)| Some((place, lane.uplink.poll_event()?)))
    }

    /// Looks whether all Data of an uplink passes one bottleneck, and that of no other.
    fn look(&mut self, now: Instant) {
        for lane in &mut self.lanes {
            lane.look(now);
        }
        let mut apart = self.lanes.iter().filter_map(Lane::splits_off);
        // Data of an owner that has ended still comes.
        if let Some(owner) = apart.find(|owner| self.places.contains_key(owner)) {
            self.split(now, owner);
        } else if now >= self.merges_at {
            self.merge(now);
        }
    }

    /// Gives `owner` an uplink of its own.
    fn split(&mut self, now: Instant, owner: u32) {
        let place = self.place_of(owner);
        let config = UplinkConfig {
            seed: self.random.next_u64(),
            ..self.config
        };
        let budget = self.control.build(now, Bitrate::default());
        let mut uplink = Uplink::new(config, budget);
        let lane = &mut self.lanes[place];
        lane.apart = None;
        let tokens = Clients::tokens_of(owner);
        lane.uplink.move_to(now, &mut uplink, &tokens);
        self.places.insert(owner, self.lanes.len());
        self.lanes.push(Lane::new(uplink));
        self.merges_at = now + FIRST_PAUSE * (1 << self.splits.min(MAX_DOUBLINGS));
        self.splits += 1;
    }

    /// Makes the first two uplinks one that have one bottleneck.
    fn merge(&mut self, now: Instant) {
        let places = 0..self.lanes.len();
        let pairs = places.flat_map(|gone| (0..gone).map(move |kept| (kept, gone)));
        let path = |place: usize| self.lanes[place].uplink.path();
        let mut pairs = pairs.filter(|(a, b)| are_alike(&path(*a).common_delays(path(*b))));
        if let Some((kept, gone)) = pairs.next() {
            let (before, after) = self.lanes.split_at_mut(gone);
            after[0]
                .uplink
                .move_to(now, &mut before[kept].uplink, &(Token::FIRST..=Token::LAST));
            for place in self.places.values_mut().filter(|place| **place == gone) {
                *place = kept;
            }
            self.remove(gone);
        }
    }

    /// Removes the uplink at `place`, which nobody uses.
    fn remove(&mut self, place: usize) {
        self.lanes.remove(place);
        for at in self.places.values_mut().filter(|at| **at > place) {
            *at -= 1;
        }
    }
}
