//! The live streams that are pulled, all in step, and what is left of those that are gone.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_stream::StreamKind;
use namecast_stream::consumer::{Consumer, Playout};
use namecast_stream::ladder::{Ladder, Neighbour};
use namecast_stream::path::{ClientId, Request, Weight};
use namecast_units::{Bitrate, Instant};

use super::config::WatcherConfig;
use super::events::Events;
use super::stream::Pulled;

/// Nothing has arrived for this long, and for [`STARVATION_PERIODS`]: the streams are starved. A frame or two late are none of it.
const STARVATION: Duration = Duration::from_millis(500);
/// The same in samples of the stream that has most of them a second.
const STARVATION_PERIODS: u32 = 3;
/// Ladders decide this often at most.
const STEERING: Duration = Duration::from_millis(5);

/// Live streams of one publisher.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pulled: Vec<Pulled>,
    requests: VecDeque<Request>,
    steered_at: Instant,
    is_starved: bool,
    /// The playout target where it goes by the path.
    target: Option<Duration>,
}

impl Streams {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Pulled> + Clone {
        self.pulled.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pulled> {
        self.pulled.iter_mut()
    }

    /// Returns all consumers, those of rungs that are not shown yet included.
    pub(super) fn consumers(&mut self) -> impl Iterator<Item = &mut Consumer> {
        self.pulled.iter_mut().flat_map(Pulled::consumers)
    }

    pub(super) fn len(&self) -> usize {
        self.pulled.len()
    }

    /// Returns the stream of `kind`.
    pub(super) fn get(&self, kind: StreamKind) -> Option<&Pulled> {
        self.pulled.iter().find(|pulled| pulled.kind() == kind)
    }

    /// Returns the stream of `kind`, to be changed.
    pub(super) fn get_mut(&mut self, kind: StreamKind) -> Option<&mut Pulled> {
        self.pulled.iter_mut().find(|pulled| pulled.kind() == kind)
    }

    /// Returns the place of the stream of `kind`.
    pub(super) fn place(&self, kind: StreamKind) -> Option<usize> {
        self.pulled.iter().position(|pulled| pulled.kind() == kind)
    }

    /// Returns the stream at `place`.
    pub(super) fn at(&mut self, place: usize) -> &mut Pulled {
        &mut self.pulled[place]
    }

    /// Takes the stream at `place` out, until it is [put back](Self::put_back).
    pub(super) fn take_out(&mut self, place: usize) -> Pulled {
        self.pulled.remove(place)
    }

    /// Puts a stream back to its `place`.
    pub(super) fn put_back(&mut self, place: usize, pulled: Pulled) {
        self.pulled.insert(place, pulled);
    }

    /// Adds a stream; video goes before the others, which follow it.
    pub(super) fn push(&mut self, pulled: Pulled) {
        let place = if pulled.kind() == StreamKind::Video {
            0
        } else {
            self.pulled.len()
        };
        self.pulled.insert(place, pulled);
    }

    /// Pulls no stream any more. Returns those that were pulled.
    pub(super) fn end(&mut self) -> Vec<Pulled> {
        self.end_if(|_| true)
    }

    /// Stops pulling the streams that `ends` returns true for. Returns them.
    pub(super) fn end_if(&mut self, ends: impl Fn(&Pulled) -> bool) -> Vec<Pulled> {
        let all = core::mem::take(&mut self.pulled);
        let (ended, kept): (Vec<_>, _) = all.into_iter().partition(ends);
        self.pulled = kept;
        let clients = ended.iter().flat_map(Pulled::clients);
        let tokens = clients.map(ClientId::tokens);
        self.requests.extend(tokens.map(Request::Withdraw));
        ended
    }

    /// Returns the next thing that a reader of events requests, or the next thing to withdraw, until `None`. What is out comes all the same, and shows something of the path.
    pub(super) fn poll_request(&mut self) -> Option<Request> {
        let request = self.events().find_map(Events::poll_request);
        request.or_else(|| self.requests.pop_front())
    }

    /// Returns the readers of events.
    pub(super) fn events(&mut self) -> impl Iterator<Item = &mut Events> {
        let pulled = self.pulled.iter_mut();
        pulled.filter_map(|pulled| pulled.events.as_mut())
    }

    /// Returns the reader of events that the uplink knows as `client`.
    pub(super) fn events_of(&mut self, client: ClientId) -> Option<&mut Events> {
        let mut pulled = self.pulled.iter_mut();
        let own = pulled.find(|pulled| pulled.consumer.client() == client)?;
        own.events.as_mut()
    }

    /// Returns what sound takes on the wire.
    pub(super) fn sound_need(&self) -> Bitrate {
        let sound = self.get(StreamKind::Audio);
        sound.map_or(Bitrate::default(), Pulled::need)
    }

    /// Returns what all streams take on the wire.
    pub(super) fn need(&self) -> Bitrate {
        let needs = self.pulled.iter().map(|pulled| pulled.need().as_bps());
        Bitrate::bps(needs.sum())
    }

    /// Returns the pictures of these, as others that share the uplink see them.
    pub(super) fn neighbour(&self, weight: Weight) -> Neighbour {
        let ladders = self
            .pulled
            .iter()
            .filter_map(|pulled| pulled.auto.as_ref()?.ladder());
        let ladder = ladders.last();
        let pictures = || Bitrate::bps(self.need().as_bps() - self.sound_need().as_bps());
        Neighbour {
            weight,
            need: ladder.map_or_else(pictures, Ladder::need),
            next: ladder.and_then(Ladder::next_need),
        }
    }

    /// Returns the playout clock of all streams: the longest path of any of them.
    pub(super) fn playout(&self, now: Instant, config: &WatcherConfig) -> Playout {
        let bases = self.pulled.iter();
        let bases = bases.filter_map(|it| it.consumer.schedule().timeline().base(now));
        Playout {
            wall_at_zero: config.wall_at_zero,
            base: bases.max(),
            target: self.target(config),
        }
    }

    /// Returns the playout target.
    pub(super) fn target(&self, config: &WatcherConfig) -> Duration {
        self.target.unwrap_or(config.target)
    }

    /// Lets the playout target follow the longest path, where it goes by that.
    fn adapt_target(&mut self, now: Instant, config: &WatcherConfig) {
        self.target = config.adaptive_target.and_then(|adaptive| {
            let paths = self.pulled.iter().map(|it| it.consumer.schedule().path());
            let targets = paths.map(|path| adaptive.over(now, &path.delay));
            targets.max()
        });
    }

    /// Gives all streams the same clock.
    pub(super) fn share_playout(&mut self, now: Instant, config: &WatcherConfig) {
        self.adapt_target(now, config);
        let playout = self.playout(now, config);
        for pulled in &mut self.pulled {
            let lead = config.lead(pulled.kind());
            for consumer in pulled.consumers() {
                consumer.set_playout(now, playout, lead);
            }
        }
    }

    fn last_arrival(&self) -> Option<Instant> {
        let arrivals = self.pulled.iter();
        let arrivals = arrivals.filter_map(|it| it.consumer.schedule().last_arrival());
        arrivals.max()
    }

    /// Returns after what time without arrivals the streams are starved.
    fn starvation(&self) -> Duration {
        let rates = self.pulled.iter().map(|it| it.consumer.source().rate);
        let period = rates.map(|rate| rate.period()).min().unwrap_or_default();
        STARVATION.max(period * STARVATION_PERIODS)
    }

    /// Returns whether nothing arrives.
    pub(super) const fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Returns whether there is nothing to find out at the moment, with the newest catalogue announced or not, while playback is
    /// away from them or not.
    pub(super) fn are_steady(&self, is_announced: bool, is_away: bool) -> bool {
        is_announced && !self.is_starved && (is_away || self.have_started())
    }

    /// Looks whether anything arrives. Returns whether nothing does, if that is news.
    pub(super) fn check_starvation(&mut self, now: Instant) -> Option<bool> {
        let last = self.last_arrival();
        let is_starved = last.is_some_and(|last| now.since(last) >= self.starvation());
        let before = core::mem::replace(&mut self.is_starved, is_starved);
        (before != is_starved).then_some(is_starved)
    }

    /// Nothing is expected to arrive.
    pub(super) const fn forget_starvation(&mut self) {
        self.is_starved = false;
    }

    /// Returns whether all that is pulled has started.
    pub(super) fn have_started(&self) -> bool {
        self.pulled.iter().all(|pulled| {
            let upcoming = pulled.upcoming.as_ref().filter(|_| !pulled.is_steered());
            pulled.has_started
                && upcoming.is_none_or(|it| it.consumer.schedule().last_arrival().is_some())
        })
    }

    /// Returns whether ladders may decide again.
    pub(super) fn may_steer(&mut self, now: Instant) -> bool {
        let may_steer = now.since(self.steered_at) >= STEERING;
        if may_steer {
            self.steered_at = now;
        }
        may_steer
    }

    /// Returns when there is something to do, if nothing arrives.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let last = self.last_arrival().filter(|_| !self.is_starved);
        let starves_at = last.map(|last| last + self.starvation());
        let streams = self.pulled.iter().flat_map(Pulled::poll_timeouts);
        streams.chain(starves_at).min()
    }

    /// Returns whether a round trip that the consumer `client` has shown counts: small packets are sooner through a slow link.
    pub(super) fn counts_round_trips(&self, client: ClientId) -> bool {
        let sound = self
            .get(StreamKind::Audio)
            .filter(|_| self.pulled.len() > 1);
        sound.is_none_or(|it| it.consumer.client() != client)
    }

    /// Returns the consumer that the uplink knows as `client`.
    pub(super) fn consumer(&mut self, client: ClientId) -> Option<&mut Consumer> {
        self.consumers().find(|it| it.client() == client)
    }
}
