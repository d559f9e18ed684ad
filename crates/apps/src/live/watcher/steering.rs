//! Steers one stream along its ladder: which group is of which rung, and what to do when frames are about to be late.
//!
//! ```text
//!   group at 60, 5M          key due        group at 120, 2.5M
//!  ──┬───────────────────────────┬──pick──┬────────────────────▶
//!    │        lag grows: react   │
//!    └── group at 60 again, 600k: key and what follows it, from caches; shown from where 5M was left
//! ```

use core::time::Duration;

use namecast_stream::consumer::{Consumer, StartAt};
use namecast_stream::ladder::{Neighbour, Reaction, View};
use namecast_stream::metadata::Latest;
use namecast_stream::path::{ClientId, PACKET, Path, Want, Weight};
use namecast_units::{Bitrate, Instant};

use super::rungs::Probing;
use super::stream::{ConsumerFactory, Pulled, Upcoming};

/// A rung is chosen so long before the Interests for its key sample leave.
const BEFORE_ASKING: Duration = Duration::from_millis(5);

/// Most pictures that are decoded after the key frame of an open group and shown before it: by so much its positions differ where
/// pictures are not reordered.
const MAX_LEADING: u64 = 8;

/// The uplink, as a ladder sees it.
#[derive(Clone, Copy)]
pub(super) struct Sight<'a> {
    pub path: &'a Path,
    /// Bits that are published, and not requested for want of room.
    pub backlog: f64,
    /// Weight of the watch beside others.
    pub weight: Weight,
    /// Pictures of others over the uplink.
    pub others: &'a [Neighbour],
    /// Rate of all sound, where others share the uplink.
    pub sound: Bitrate,
}

/// Inputs of steering.
pub(super) struct Wheel<'a> {
    pub factory: ConsumerFactory<'a>,
    pub sight: Sight<'a>,
    /// What requests packets to find out what the path carries.
    pub prober: ClientId,
}

/// Where the newest group begins and ends.
#[derive(Clone, Copy, Debug)]
struct Groups {
    /// Position of its key sample, and of the next one's.
    position: u64,
    next: u64,
    /// When they could be here at the earliest.
    arrives_at: Instant,
    next_arrives_at: Instant,
}

impl Pulled {
    /// Returns whether a ladder that goes by the path chooses the rung.
    pub(super) fn is_steered(&self) -> bool {
        self.auto
            .as_ref()
            .is_some_and(|auto| auto.ladder().is_some())
    }

    /// Returns whether nothing is requested until the next key sample.
    pub(super) fn is_blank(&self) -> bool {
        let ladder = self.auto.as_ref().and_then(|auto| auto.ladder());
        ladder.is_some_and(|ladder| ladder.is_blank())
    }

    /// Why the video is of the rung that it is of, in words; `None` where that is not left to the watcher.
    pub(super) fn picture(
        &self,
        now: Instant,
        path: &Path,
        is_holding: bool,
    ) -> Option<&'static str> {
        let auto = self.auto.as_ref()?;
        let ladder = auto.ladder()?;
        Some(if ladder.is_blank() {
            "nothing fits until the next key frame"
        } else if self.upcoming.as_ref().is_some_and(|it| it.catches_up) {
            "catching up on a lower bitrate"
        } else if !path.is_flowing(now) {
            "nothing arrives"
        } else if is_holding {
            "waiting for a queue to empty"
        } else if ladder.current() + 1 == auto.rungs.len() {
            "the highest bitrate there is"
        } else if path.is_contended(now) {
            "others use most of the link"
        } else {
            "the highest bitrate that fits"
        })
    }

    /// Keeps what the publisher says of all rungs, as of the newest group of the one that is pulled. Another rung may have begun a
    /// later group, or not that one yet, as its encoder takes less or more time.
    pub(super) fn learn_numbering(&mut self, latest: &[Latest]) {
        let source = self.consumer.source();
        let names = source.names.prefix().parent();
        let pulled = Self::latest_of(&self.consumer, latest);
        let Some(position) = pulled.and_then(|latest| latest.key_position) else {
            return;
        };
        let of_stream = latest.iter().filter(|it| it.rung.parent() == names);
        let reorders = self.info.rungs.iter().any(|rung| rung.reorder_delay > 0);
        let max_apart = if reorders { MAX_LEADING } else { 0 };
        let group = (position, source.key_interval);
        let moved: Option<Vec<_>> = of_stream
            .map(|latest| at_group(latest, group, max_apart))
            .collect();
        if let Some(moved) = moved {
            self.numbering = moved;
        }
    }

    /// The consumer that requests the newest samples.
    fn newest_consumer(&self) -> &Consumer {
        let upcoming = self.upcoming.as_ref().map(|it| &it.consumer);
        upcoming.unwrap_or(&self.consumer)
    }

    fn groups(&self, now: Instant) -> Option<Groups> {
        let consumer = self.newest_consumer();
        let known = consumer
            .schedule()
            .handover()
            .newest_group()
            .or_else(|| self.consumer.schedule().handover().newest_group())?;
        let interval = u64::from(consumer.source().key_interval.max(1));
        // A group that has not been heard of, as its key sample is late, begins all the same.
        let mut position = self.chosen_for.unwrap_or(0).max(known.position);
        let mut next = position.checked_add(interval)?;
        let clock = |position| {
            let own = consumer.schedule().timeline().arrives_at(now, position);
            own.or_else(|| {
                self.consumer
                    .schedule()
                    .timeline()
                    .arrives_at(now, position)
            })
        };
        let mut next_arrives_at = clock(next)?;
        if next_arrives_at + consumer.schedule().key_period() < now {
            // Several groups have passed unseen.
            let passed = now.since(next_arrives_at).as_nanos()
                / consumer.schedule().key_period().as_nanos().max(1);
            position = position.checked_add(interval.checked_mul(u64::try_from(passed).ok()?)?)?;
            next = position.checked_add(interval)?;
            next_arrives_at = clock(next)?;
        }
        Some(Groups {
            position,
            next,
            arrives_at: clock(position)?,
            next_arrives_at,
        })
    }

    /// Does what the ladder wants. Returns what to request to find out what the path carries.
    pub(super) fn steer(&mut self, now: Instant, wheel: &Wheel<'_>) -> Vec<Want> {
        if !self.is_steered() || !self.had_frame {
            return Vec::new();
        }
        let Some(groups) = self.groups(now) else {
            return Vec::new();
        };
        let path = wheel.sight.path;
        let half = path.round_trip(now) / 2;
        let view = View {
            path,
            backlog: wheel.sight.backlog,
            weight: wheel.sight.weight,
            others: wheel.sight.others,
            sound: wheel.sight.sound,
            base_growth: self.consumer.schedule().timeline().base_growth(now),
            until_key: groups.next_arrives_at.since(now + half),
            since_key: (now + half).since(groups.arrives_at),
        };
        let leaves_before = self.newest_consumer().leaves_before(now) + BEFORE_ASKING;
        let is_due = now + leaves_before >= groups.next_arrives_at;
        let Some(ladder) = self.auto.as_mut().and_then(|auto| auto.ladder_mut()) else {
            return Vec::new();
        };
        if is_due {
            let was_blank = ladder.is_blank();
            let rung = ladder.pick(now, &view);
            self.chosen_for = Some(groups.next);
            self.begin_group(now, wheel, &groups, (rung, was_blank));
            return Vec::new();
        }
        match ladder.react(now, &view) {
            Some(Reaction::CatchUp(rung)) => self.catch_up(now, wheel, &groups, rung),
            Some(Reaction::Blank) => {
                self.drop_upcoming(now);
                self.consumer.set_ask_before(now, Some(0));
            }
            None => return self.probe(now, wheel, &view),
        }
        Vec::new()
    }

    /// Changes over to `rung` with the next group, if enough is known of the stream's groups. Returns whether it is.
    pub(super) fn change_at_next_key(
        &mut self,
        now: Instant,
        factory: &ConsumerFactory<'_>,
        rung: &str,
    ) -> bool {
        self.drop_upcoming(now);
        if rung == self.rung {
            return true;
        }
        let Some(groups) = self.groups(now).filter(|_| self.had_frame) else {
            return false;
        };
        let begun = self.start_rung(now, factory, (rung, groups.position), StartAt::NextKey);
        if begun.is_some() {
            self.consumer.set_ask_before(now, Some(groups.next));
        }
        begun.is_some()
    }

    fn rung_name(&self, rung: usize) -> Option<String> {
        Some(self.auto.as_ref()?.rungs.get(rung)?.name.clone())
    }

    /// Requests the next group, of rung number `rung`.
    fn begin_group(
        &mut self,
        now: Instant,
        wheel: &Wheel<'_>,
        groups: &Groups,
        (rung, was_blank): (usize, bool),
    ) {
        let Some(name) = self.rung_name(rung) else {
            return;
        };
        let pulled = self.upcoming.as_ref().map_or(&self.rung, |it| &it.rung);
        if *pulled == name && !was_blank {
            return;
        }
        if let Some(upcoming) = &self.upcoming {
            // It cannot wait any longer.
            match upcoming.consumer.ready_key(now, None) {
                Some(key) => {
                    self.switch(now, key);
                }
                None => self.drop_upcoming(now),
            }
        }
        let begun = self.start_rung(
            now,
            &wheel.factory,
            (&name, groups.position),
            StartAt::NextKey,
        );
        match begun {
            Some(_) if was_blank => {}
            Some(_) => self.consumer.set_ask_before(now, Some(groups.next)),
            None => self.stay(now),
        }
    }

    /// Requests the newest group anew, of rung number `rung`, and nothing more of the one before.
    fn catch_up(&mut self, now: Instant, wheel: &Wheel<'_>, groups: &Groups, rung: usize) {
        let Some(name) = self.rung_name(rung) else {
            return;
        };
        self.drop_upcoming(now);
        let begun = self.start_rung(
            now,
            &wheel.factory,
            (&name, groups.position),
            StartAt::NewestKey,
        );
        match begun {
            Some(_) => {
                self.consumer.set_ask_before(now, Some(0));
                self.chosen_for = Some(groups.position);
            }
            None => self.stay(now),
        }
    }

    /// The rung that was chosen cannot be had: what is pulled is pulled on, also where nothing was for a while.
    pub(super) fn stay(&mut self, now: Instant) {
        self.consumer.set_ask_before(now, None);
        let name = self.rung.clone();
        if let Some(auto) = &mut self.auto
            && let Some(rung) = auto.rungs.iter().position(|rung| rung.name == name)
            && let Some(ladder) = auto.ladder_mut()
        {
            ladder.set_current(rung);
        }
    }

    fn start_rung(
        &mut self,
        now: Instant,
        factory: &ConsumerFactory<'_>,
        (name, position): (&str, u64),
        at: StartAt,
    ) -> Option<u64> {
        let rung = self.info.rung(name)?.clone();
        let mut consumer = factory.consumer(now, &self.info, &rung);
        let latest = self.latest_at(&consumer, position)?;
        consumer.set_held(now, true);
        let begun = consumer.start_group(now, &latest, &self.consumer, at)?;
        let catches_up = at == StartAt::NewestKey;
        let timeline = self.consumer.schedule().timeline();
        let expected_at = timeline.arrives_at(now, begun).filter(|_| !catches_up);
        self.upcoming = Some(Upcoming {
            rung: rung.name,
            consumer,
            catches_up,
            expected_at,
        });
        Some(begun)
    }

    /// What the publisher would say of `consumer`'s rung if the newest group were the one at `position`: all rungs have the same
    /// groups.
    fn latest_at(&self, consumer: &Consumer, position: u64) -> Option<Latest> {
        let of = |consumer: &Consumer| Self::latest_of(consumer, &self.numbering).cloned();
        let pulled = self.newest_consumer();
        let pulled = if pulled.schedule().handover().newest_group().is_some() {
            pulled
        } else {
            &self.consumer
        };
        let (known, own, other) = (
            pulled.schedule().handover().newest_group()?,
            of(consumer)?,
            of(pulled)?,
        );
        let interval = u64::from(pulled.source().key_interval.max(1));
        let groups = position.checked_sub(known.position)? / interval;
        let moved = |number: u64, own: u64, other: u64| number.checked_add(own)?.checked_sub(other);
        let key = known.key_sequence.checked_add(groups)?;
        let next = known.next_delta.checked_add(groups * (interval - 1))?;
        let newest = pulled
            .schedule()
            .newest_delta()?
            .max(next.saturating_sub(1));
        let (own_next, other_next) = (own.next_delta?, other.next_delta?);
        Some(Latest {
            key_sequence: Some(moved(key, own.key_sequence?, other.key_sequence?)?),
            delta_sequence: Some(moved(newest, own_next, other_next)?),
            key_position: Some(moved(position, own.key_position?, other.key_position?)?),
            next_delta: Some(moved(next, own_next, other_next)?),
            ..own
        })
    }

    fn probe(&mut self, now: Instant, wheel: &Wheel<'_>, view: &View<'_>) -> Vec<Want> {
        let auto = self.auto.as_mut();
        let Some(probe) = auto.and_then(|auto| auto.ladder_mut()?.probe(now, view)) else {
            return Vec::new();
        };
        if probe.since == now {
            self.probing = self.begin_probing(now, wheel, probe.rung);
        }
        let carried = view.path.carried();
        let burst = match view.path.jitter() > 0.003 {
            true => 4,
            false => ((carried * 0.02 / PACKET) as u64).clamp(1, 4),
        };
        let rate = probe.rate.as_bps() as f64;
        let probing = self.probing.as_mut();
        probing.map_or_else(Vec::new, |probing| {
            probing.wants(now, wheel.prober, rate, burst)
        })
    }

    fn begin_probing(&self, now: Instant, wheel: &Wheel<'_>, rung: usize) -> Option<Probing> {
        let rung = self.auto.as_ref()?.rungs.get(rung)?;
        let of = |name: &namecast_packet::Name| {
            self.numbering.iter().find(|latest| latest.rung == *name)
        };
        let pulled = self.newest_consumer();
        let names = wheel.factory.names.rung(&self.info.name, &rung.name);
        let own = of(names.prefix())?.next_delta?;
        let other = of(pulled.source().names.prefix())?.next_delta?;
        let newest = pulled
            .schedule()
            .newest_delta()?
            .checked_add(own)?
            .checked_sub(other)?;
        Some(Probing::new(
            now,
            names,
            rung,
            self.info.segment_size,
            newest,
        ))
    }
}

/// Returns what the publisher would say of a rung if its newest group were the one at `position`, or up to `max_apart` from it;
/// `None` if it has no such group.
fn at_group(
    latest: &Latest,
    (position, key_interval): (u64, u32),
    max_apart: u64,
) -> Option<Latest> {
    let interval = u64::from(key_interval.max(1));
    let own = latest.key_position?;
    let apart = position.abs_diff(own);
    let groups = apart.saturating_add(interval / 2) / interval;
    if apart.abs_diff(groups.checked_mul(interval)?) > max_apart.min(interval / 4) {
        return None;
    }
    let moved = |number: u64, each: u64| {
        let by = groups.checked_mul(each)?;
        if own < position {
            number.checked_add(by)
        } else {
            number.checked_sub(by)
        }
    };
    Some(Latest {
        key_sequence: Some(moved(latest.key_sequence?, 1)?),
        key_position: Some(moved(own, interval)?),
        next_delta: Some(moved(latest.next_delta?, interval - 1)?),
        ..latest.clone()
    })
}
