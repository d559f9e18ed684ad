//! Routes from prefix announcements: how they come, are used and end. Called only while some strategy learns, or an
//! announcement came.

use bytes::Bytes;
use namecast_packet::{Data, Name, PrefixAnnouncement};
use namecast_units::{Duration, Instant, Timestamp};

use crate::face::{Face, FaceId};
use crate::forwarder::Forwarder;
use crate::strategy::StrategyKind;
use crate::table::pit::{EntryId, PendingInterest};
use crate::table::{Heard, NameHashes, NextHop};

/// Cost of routes that were learned; NFD's.
pub const LEARNED_COST: u64 = 2_048;

impl Forwarder {
    /// Data came from `face` and answers `entries`: learns from the announcement beside it, and gives the one to send
    /// on to those who look for a route.
    ///
    /// A face that was not asked announces nothing. What was asked by a route needs no announcement for this node; for
    /// those who look for one there is that of the route, or what a local producer says by itself. Under other strategies
    /// an announcement is passed on unused, as by NFD.
    #[cold]
    pub(super) fn learn_from_data(
        &mut self,
        face: FaceId,
        (data, hashes): (&Data, &NameHashes),
        announced: Option<&Bytes>,
        entries: &[EntryId],
    ) -> Option<Bytes> {
        let mut announced = announced;
        let mut passed_on = None;
        for &id in entries {
            let entry = self.pit.get(id);
            let Some(sent) = entry.out_record(face) else {
                continue;
            };
            let followed_route = sent.non_discovery;
            let learns = self.learns_for(entry, (data.name(), hashes));
            if learns && followed_route {
                self.route_was_used((data.name(), hashes), face);
            }
            let is_local = self.faces.get(face).is_some_and(Face::is_local);
            let own = match learns {
                true if followed_route && !is_local => None,
                _ => announced.take(),
            };
            if let Some(wire) = own
                && self.heard(face, data, wire, learns && !followed_route)
            {
                passed_on = Some(wire.clone());
            }
            if passed_on.is_none() && learns && followed_route {
                let learned = self.learned.as_ref();
                passed_on = learned.and_then(|learned| learned.announcement(data.name(), hashes));
            }
        }
        passed_on
    }

    /// The announcement to send with cached Data called `name` to a neighbour who looks for a route.
    #[cold]
    pub(super) fn announcement_for_cached(
        &self,
        name: &Name,
        hashes: &NameHashes,
    ) -> Option<Bytes> {
        let learned = self.learned.as_ref()?;
        let learns = self.strategies.find(name, hashes).1.learns();
        learns.then(|| learned.announcement(name, hashes))?
    }

    /// Takes an announcement of the application or neighbour behind `face`: those who look for a route get it with the Data.
    /// The route to the face itself is the caller's to make. Without a strategy that learns, nothing is remembered.
    ///
    /// False if its signer may not announce, by [`LearningConfig::keys`](crate::LearningConfig::keys), or not now.
    pub fn announce(
        &mut self,
        now: Instant,
        face: FaceId,
        announcement: &PrefixAnnouncement,
    ) -> bool {
        self.handle_timeout(now);
        let is_trusted = self.is_trusted(face, announcement);
        let has_face = self.faces.get(face).is_some();
        if !is_trusted
            || has_face && self.learned.is_some() && !self.remember(face, announcement, false)
        {
            self.counters.announcements_refused += 1;
        }
        is_trusted
    }

    /// Whether the strategy of an entry learns, which Data of this name and these hashes answered.
    fn learns_for(&self, entry: &PendingInterest, (name, hashes): (&Name, &NameHashes)) -> bool {
        if self.learned.is_none() {
            return false;
        }
        if entry.name == *name {
            return self.strategies.find(name, hashes).1.learns();
        }
        let max_components = self.config.max_name_components;
        let own = self.hasher.hashes(&entry.name, max_components);
        own.is_some_and(|own| self.strategies.find(&entry.name, &own).1.learns())
    }

    /// Takes in what `face` announced beside `data`; tells whether it may be passed on. With `makes_route` it becomes a
    /// route, without one it is remembered if it is an application's, for Data that come from the cache.
    fn heard(&mut self, face: FaceId, data: &Data, wire: &Bytes, makes_route: bool) -> bool {
        let wire = Bytes::copy_from_slice(wire);
        let announcement = Data::decode(wire).and_then(PrefixAnnouncement::decode);
        let is_taken = match announcement {
            Ok(announcement) if announcement.prefix().is_prefix_of(data.name()) => {
                self.learned.is_none()
                    || self.is_trusted(face, &announcement)
                        && self.remember(face, &announcement, makes_route)
            }
            _ => false,
        };
        self.counters.announcements_refused += u64::from(!is_taken);
        is_taken
    }

    /// Whether the configuration lets its signer announce this now. What is there already was checked when it came.
    fn is_trusted(&mut self, face: FaceId, announcement: &PrefixAnnouncement) -> bool {
        if (self.wall()).is_some_and(|time| !announcement.is_valid_at(time)) {
            self.counters.announcements_out_of_period += 1;
            return false;
        }
        let config = &self.config.learning;
        let data = announcement.data();
        let known = self.learned.as_mut();
        let known = known.and_then(|known| known.get_mut(announcement.prefix(), face));
        let mut keys = config.keys.iter();
        keys.len() == 0
            || known.is_some_and(|known| known.wire == *data.wire())
            || keys.any(|key| data.verify(key).is_ok())
    }

    /// Wall-clock time, if the driver told what it was at the start.
    fn wall(&self) -> Option<Timestamp> {
        let epoch = self.config.learning.epoch;
        epoch.map(|epoch| epoch + self.now.since(Instant::ZERO))
    }

    /// How long an announcement may be relied on from now on: as it says, and within its period, as with NFD.
    pub fn announced_for(&self, announcement: &PrefixAnnouncement) -> Duration {
        let left = self.wall().and_then(|time| announcement.left_at(time));
        let expiration = announcement.expiration();
        left.map_or(expiration, |left| left.min(expiration))
    }

    /// Remembers an announcement, if it has not ended and there is room.
    fn remember(
        &mut self,
        face: FaceId,
        announcement: &PrefixAnnouncement,
        makes_route: bool,
    ) -> bool {
        let until = self.now + self.announced_for(announcement);
        let prefix = &announcement.prefix().detached();
        let expiry = match makes_route {
            true => until.min(self.now + self.config.learning.route_lifetime),
            false => until,
        };
        let heard = Heard::new(face, announcement.data().wire().clone(), until, expiry);
        if expiry <= self.now {
            return false;
        }
        let Some(is_new_route) = self.keep(prefix, heard, makes_route) else {
            return false;
        };
        self.counters.routes_learned += u64::from(is_new_route);
        self.tell_others(prefix, face);
        true
    }

    /// Keeps an announcement, as a route if `makes_route`, and tells whether that is a new one; none if there is no room.
    pub(super) fn keep(&mut self, prefix: &Name, heard: Heard, makes_route: bool) -> Option<bool> {
        let face = heard.face;
        let learned = self.learned.as_mut()?;
        learned.insert(prefix, heard).ok()?;
        if !makes_route || self.fib.contains(prefix, face) {
            return Some(false);
        }
        let hop = NextHop {
            face,
            cost: LEARNED_COST,
        };
        if self.fib.add(prefix, hop).is_err() {
            learned.remove(prefix, face);
            return None;
        }
        if let Some(heard) = learned.get_mut(prefix, face) {
            heard.is_route = true;
        }
        Some(true)
    }

    /// A next hop said that it knows no route: neither does this node by it.
    #[cold]
    pub(super) fn unlearn(&mut self, name: &Name, hashes: &NameHashes, face: FaceId) {
        let learned = self.learned.as_mut();
        if let Some(prefix) = learned.and_then(|learned| learned.remove_route(name, hashes, face)) {
            self.fib.remove(&prefix, face);
            self.tell_others(&prefix, face);
        }
    }

    /// The time of an Interest ran out that followed routes. After several in a row a learned one counts as broken.
    #[cold]
    pub(super) fn routes_timed_out(&mut self, entry: &PendingInterest) {
        let max_components = self.config.max_name_components;
        let Some(hashes) = self.hasher.hashes(&entry.name, max_components) else {
            return;
        };
        let sent = entry.out_records.iter();
        for record in sent.filter(|record| record.non_discovery && record.nack.is_none()) {
            let learned = self.learned.as_mut();
            let route =
                learned.and_then(|learned| learned.route_mut(&entry.name, &hashes, record.face));
            let is_broken = route.is_some_and(|route| {
                route.timeouts += 1;
                route.timeouts >= self.config.learning.max_timeouts
            });
            if is_broken {
                self.unlearn(&entry.name, &hashes, record.face);
            }
        }
    }

    /// Ends the learned routes whose time has come.
    pub(crate) fn expire_learned(&mut self) {
        while let Some(learned) = &mut self.learned
            && let Some((prefix, heard)) = learned.pop_due(self.now)
        {
            if heard.is_route {
                self.fib.remove(&prefix, heard.face);
            }
        }
    }

    /// Starts to learn with the first prefix whose strategy does, and forgets all with the last.
    pub(crate) fn reconsider_learning(
        &mut self,
        before: Option<StrategyKind>,
        after: Option<StrategyKind>,
    ) {
        let learns = |kind: Option<StrategyKind>| usize::from(kind.is_some_and(|k| k.learns()));
        let choices = self.learned.as_ref().map_or(0, |learned| learned.choices);
        let choices = choices + learns(after) - learns(before);
        if choices > 0 {
            let capacity = self.config.learning.max_routes;
            let hasher = self.hasher;
            let make = || Box::new(crate::table::Learned::new(hasher, capacity));
            self.learned.get_or_insert_with(make).choices = choices;
        } else if let Some(learned) = self.learned.take() {
            for (prefix, heard) in learned.iter().filter(|(_, heard)| heard.is_route) {
                self.fib.remove(prefix, heard.face);
            }
        }
    }
}
