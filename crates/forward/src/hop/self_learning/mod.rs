//! Self-learning, version 1 of NFD: routes are found by asking everybody, and made by announcements that come with the answer.
//!
//! ```text
//!  no route, looks for one ──▶ every neighbour          no route, must follow one ──▶ Nack NoRoute
//!  a route                 ──▶ its next hops, marked NonDiscovery, so that nobody after them asks everybody
//! ```
//!
//! The way is that of \[SELFLEARNING\] and of NFD. Differs from NFD: transmissions are held back as in multicast; next hops that
//! lead back to where the Interest came from are none; and an Interest that must follow a route does not end one that is
//! looking for it.

mod learned;
mod updates;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Name, PrefixAnnouncement};
use namecast_units::{Duration, Instant, Timestamp};

use super::{Actions, Context, Decision, Hop, StrategyChoices, merge_nacks};
use crate::config::LearningConfig;
use crate::face::FaceId;
use crate::name_hash::NameHashes;
use crate::table::pit::PendingInterest;
use crate::table::{EntryId, NextHop, Tables};
use learned::{Heard, Learned};
pub use updates::LearnedNews;

/// Cost of routes that were learned; NFD's.
pub const LEARNED_COST: u64 = 2_048;

/// Self-learning for all prefixes that have it, and what is made of announcements beside Data elsewhere.
#[derive(Debug, Default)]
pub(crate) struct SelfLearning {
    /// Only while some prefix has the strategy.
    heard: Option<Box<Learned>>,
    /// What the node's other forwarders are to know.
    news: Vec<LearnedNews>,
}

impl Hop for SelfLearning {
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if context.eligible().next().is_some() {
            return context
                .all_due(now, context.eligible(), Decision::Follow)
                .into();
        }
        if !context.fields.non_discovery {
            return context
                .all_due(now, context.neighbours(), Decision::Forward)
                .into();
        }
        let decision = match context.entry().has_pending_out_record(now) {
            true => Decision::Wait,
            false => Decision::Reject(NackReason::NoRoute),
        };
        decision.into()
    }

    /// A face that was not asked announces nothing. What was asked by a route needs no announcement for this node; for
    /// those who look for one there is that of the route, or what a local producer says by itself. Under other strategies
    /// an announcement is passed on unused, as by NFD.
    fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let mut announced = context.fields.prefix_announcement.as_ref();
        let mut passed_on = None;
        for &id in context.entries {
            let Some(sent) = context.tables.pit.get(id).out_record(context.face) else {
                continue;
            };
            let followed_route = sent.non_discovery;
            let learns = self.learns_for(context, id);
            if learns && followed_route {
                let named = (context.name, context.hashes);
                self.route_was_used(now, context.tables, named, context.face);
            }
            let is_local = context.tables.is_local(context.face);
            let own = match learns {
                true if followed_route && !is_local => None,
                _ => announced.take(),
            };
            if let Some(wire) = own
                && self.heard(now, context, wire, learns && !followed_route)
            {
                passed_on = Some(wire.clone());
            }
            if passed_on.is_none() && learns && followed_route {
                let heard = self.heard.as_ref();
                passed_on =
                    heard.and_then(|heard| heard.announcement(context.name, context.hashes));
            }
        }
        match passed_on {
            Some(wire) => Actions::default().announce(wire),
            None => Actions::default(),
        }
    }

    /// A neighbour who looks for a route gets the announcement with cached Data.
    fn on_cache_hit(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let (name, hashes) = (context.name, context.hashes);
        let heard = self.heard.as_ref();
        let heard = heard.filter(|_| context.choices.find(name, hashes).1.learns());
        let wire = heard.and_then(|heard| heard.announcement(name, hashes));
        match wire.filter(|_| !context.fields.non_discovery) {
            Some(wire) => Actions::default().announce(wire),
            None => Actions::default(),
        }
    }

    /// Of those who were all asked, each may refuse, and most do as they were asked twice; and NFD's nodes take NoRoute for
    /// the end of a route. So only where routes were followed downstreams hear of it.
    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let entry = context.entry();
        let refused = entry.out_record(context.face);
        let has_followed_route = refused.is_some_and(|record| record.non_discovery);
        let mut sent = entry.out_records.iter();
        let decision = match sent.all(|record| record.non_discovery) {
            true => merge_nacks(now, entry),
            false => Decision::Wait,
        };
        if has_followed_route && context.nack == Some(NackReason::NoRoute) {
            let named = (context.name, context.hashes);
            self.unlearn(context.tables, named, context.face);
        }
        decision.into()
    }

    /// After several in a row a learned route counts as broken.
    fn on_expiry(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let named = (context.name, context.hashes);
        let max_timeouts = context.tables.config.learning.max_timeouts;
        let sent = context.entry().out_records.iter();
        let sent = sent.filter(|record| record.non_discovery && record.nack.is_none());
        let faces: Vec<_> = sent.map(|record| record.face).collect();
        for face in faces {
            let heard = self.heard.as_mut();
            let route = heard.and_then(|heard| heard.route_mut(named.0, named.1, face));
            let is_broken = route.is_some_and(|route| {
                route.timeouts += 1;
                route.timeouts >= max_timeouts
            });
            if is_broken {
                self.unlearn(context.tables, named, face);
            }
        }
        Actions::default()
    }

    /// Ends the learned routes whose time has come.
    fn on_timeout(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        while let Some(heard) = &mut self.heard
            && let Some((prefix, ended)) = heard.pop_due(now)
        {
            if ended.is_route {
                context.tables.fib.remove(&prefix, ended.face);
            }
        }
        Actions::default()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.heard.as_ref()?.poll_timeout()
    }
}

impl SelfLearning {
    /// Whether some prefix has the strategy.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.heard.is_some()
    }

    /// Starts with the first prefix that has the strategy, and forgets all with the last.
    pub(crate) fn reconsider(&mut self, tables: &mut Tables, started: usize, ended: usize) {
        let choices = self.heard.as_ref().map_or(0, |heard| heard.choices);
        let choices = choices + started - ended;
        if choices > 0 {
            let (hasher, capacity) = (tables.hasher, tables.config.learning.max_routes);
            let make = || Box::new(Learned::new(hasher, capacity));
            self.heard.get_or_insert_with(make).choices = choices;
        } else if let Some(heard) = self.heard.take() {
            for (prefix, heard) in heard.iter().filter(|(_, heard)| heard.is_route) {
                tables.fib.remove(prefix, heard.face);
            }
        }
    }

    /// The routes that were learned, in no order that means anything: prefix, face and end of each.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (&Name, FaceId, Instant)> {
        let all = self.heard.iter().flat_map(|heard| heard.iter());
        let routes = all.filter(|(_, heard)| heard.is_route);
        routes.map(|(prefix, heard)| (prefix, heard.face, heard.expiry))
    }

    /// A route was added by others: it stays when its announcement ends.
    pub(crate) fn on_route_added(&mut self, prefix: &Name, face: FaceId) {
        let heard = self.heard.as_mut();
        if let Some(heard) = heard.and_then(|heard| heard.get_mut(prefix, face)) {
            heard.is_route = false;
        }
    }

    /// A route was taken back, and with it what announced it.
    pub(crate) fn on_route_removed(&mut self, prefix: &Name, face: FaceId) {
        if let Some(heard) = &mut self.heard {
            heard.remove(prefix, face);
        }
    }

    /// Forgets what a face announced.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        if let Some(heard) = &mut self.heard {
            heard.remove_face(face);
        }
    }

    /// Whether the strategy of an entry learns, which Data of this name and these hashes answered.
    fn learns_for(&self, context: &Context<'_>, id: EntryId) -> bool {
        let learns = |name: &Name, hashes: &NameHashes, choices: &StrategyChoices| {
            choices.find(name, hashes).1.learns()
        };
        let entry: &PendingInterest = context.tables.pit.get(id);
        if !self.is_on() {
            return false;
        }
        if entry.name == *context.name {
            return learns(context.name, context.hashes, context.choices);
        }
        let own = context.tables.hashes(&entry.name);
        own.is_some_and(|own| learns(&entry.name, &own, context.choices))
    }

    /// Takes in what was announced beside `data`; tells whether it may be passed on. With `makes_route` it becomes a
    /// route, without one it is remembered if it is an application's, for Data that come from the cache.
    fn heard(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wire: &Bytes,
        makes_route: bool,
    ) -> bool {
        let (face, name) = (context.face, context.name);
        let tables = &mut *context.tables;
        let wire = Bytes::copy_from_slice(wire);
        let announcement = Data::decode(wire).and_then(PrefixAnnouncement::decode);
        let is_taken = match announcement {
            Ok(announcement) if announcement.prefix().is_prefix_of(name) => {
                !self.is_on()
                    || self.is_trusted(now, tables, face, &announcement)
                        && self.remember(now, tables, (face, &announcement), makes_route)
            }
            _ => false,
        };
        tables.counters.announcements_refused += u64::from(!is_taken);
        is_taken
    }

    /// Whether the configuration lets its signer announce this now. What is there already was checked when it came.
    fn is_trusted(
        &mut self,
        now: Instant,
        tables: &mut Tables,
        face: FaceId,
        announcement: &PrefixAnnouncement,
    ) -> bool {
        let config = &tables.config.learning;
        if wall(config, now).is_some_and(|time| !announcement.is_valid_at(time)) {
            tables.counters.announcements_out_of_period += 1;
            return false;
        }
        let data = announcement.data();
        let known = self.heard.as_mut();
        let known = known.and_then(|known| known.get_mut(announcement.prefix(), face));
        let mut keys = config.keys.iter();
        keys.len() == 0
            || known.is_some_and(|known| known.wire == *data.wire())
            || keys.any(|key| data.verify(key).is_ok())
    }

    /// Remembers an announcement, if it has not ended and there is room.
    fn remember(
        &mut self,
        now: Instant,
        tables: &mut Tables,
        (face, announcement): (FaceId, &PrefixAnnouncement),
        makes_route: bool,
    ) -> bool {
        let config = &tables.config.learning;
        let until = now + announced_for(config, now, announcement);
        let prefix = &announcement.prefix().detached();
        let expiry = match makes_route {
            true => until.min(now + config.route_lifetime),
            false => until,
        };
        let heard = Heard::new(face, announcement.data().wire().clone(), until, expiry);
        if expiry <= now {
            return false;
        }
        let Some(is_new_route) = self.keep(tables, prefix, heard, makes_route) else {
            return false;
        };
        tables.counters.routes_learned += u64::from(is_new_route);
        self.broadcast(tables, prefix, face);
        true
    }

    /// Keeps an announcement, as a route if `makes_route`, and tells whether that is a new one; none if there is no room.
    fn keep(
        &mut self,
        tables: &mut Tables,
        prefix: &Name,
        heard: Heard,
        makes_route: bool,
    ) -> Option<bool> {
        let face = heard.face;
        let learned = self.heard.as_mut()?;
        learned.insert(prefix, heard).ok()?;
        if !makes_route || tables.fib.contains(prefix, face) {
            return Some(false);
        }
        let hop = NextHop {
            face,
            cost: LEARNED_COST,
        };
        if tables.fib.add(prefix, hop).is_err() {
            learned.remove(prefix, face);
            return None;
        }
        if let Some(heard) = learned.get_mut(prefix, face) {
            heard.is_route = true;
        }
        Some(true)
    }

    /// A next hop knows no route: neither does this node by it.
    fn unlearn(&mut self, tables: &mut Tables, (name, hashes): (&Name, &NameHashes), face: FaceId) {
        let heard = self.heard.as_mut();
        if let Some(prefix) = heard.and_then(|heard| heard.remove_route(name, hashes, face)) {
            tables.fib.remove(&prefix, face);
            self.broadcast(tables, &prefix, face);
        }
    }
}

/// What a node learns of prefixes that others announce, for its driver.
#[derive(Debug)]
pub struct Learning<'a> {
    now: Instant,
    hop: &'a mut SelfLearning,
    tables: &'a mut Tables,
}

impl<'a> Learning<'a> {
    pub(crate) const fn new(
        now: Instant,
        hop: &'a mut SelfLearning,
        tables: &'a mut Tables,
    ) -> Self {
        Self { now, hop, tables }
    }

    /// Takes an announcement of the application or neighbour behind `face`: those who look for a route get it with the Data.
    /// The route to the face itself is the caller's to make. Without a strategy that learns, nothing is remembered.
    ///
    /// False if its signer may not announce, by [`LearningConfig::keys`](crate::LearningConfig::keys), or not now.
    pub fn announce(&mut self, face: FaceId, announcement: &PrefixAnnouncement) -> bool {
        let (now, tables) = (self.now, &mut *self.tables);
        let is_trusted = self.hop.is_trusted(now, tables, face, announcement);
        let has_face = tables.faces.get(face).is_some();
        let is_refused = !is_trusted
            || has_face
                && self.hop.is_on()
                && !self.hop.remember(now, tables, (face, announcement), false);
        tables.counters.announcements_refused += u64::from(is_refused);
        is_trusted
    }

    /// Returns how long an announcement may be relied on from now on: as it says, and within its period, as with NFD.
    pub fn announced_for(&self, announcement: &PrefixAnnouncement) -> Duration {
        announced_for(&self.tables.config.learning, self.now, announcement)
    }

    /// Takes over what another forwarder of the node has learned. The same again changes nothing.
    pub fn adopt(&mut self, news: &LearnedNews) {
        self.hop.adopt(self.now, self.tables, news);
    }
}

/// Wall-clock time, if the driver told what it was at the start.
fn wall(config: &LearningConfig, now: Instant) -> Option<Timestamp> {
    config.epoch.map(|epoch| epoch + now.since(Instant::ZERO))
}

/// How long an announcement may be relied on from now on: as it says, and within its period, as with NFD.
fn announced_for(
    config: &LearningConfig,
    now: Instant,
    announcement: &PrefixAnnouncement,
) -> Duration {
    let left = wall(config, now).and_then(|time| announcement.left_at(time));
    let expiration = announcement.expiration();
    left.map_or(expiration, |left| left.min(expiration))
}
