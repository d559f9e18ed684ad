//! Another member: which publications of it are wanted, and whether it is here.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use namecast_packet::Name;
use namecast_stream::Seal;
use namecast_units::Instant;

use super::pace::Pace;
use super::publication::Status;
use super::sealing::Unsealing;

/// Publications of a member that are fetched and served: the newest ones.
pub(super) const HISTORY: u64 = 16;
/// Fetches of one member a second.
const MAX_FETCHES: usize = 4;
/// Time that an Interest for a publication waits. The next one follows then, later ones after up to eight times as long.
pub(super) const FETCH_WAIT: Duration = Duration::from_secs(1);
const MAX_DOUBLINGS: u32 = 3;
/// From one question whether a member is here to the next.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Time without an answer after which a member is gone.
const GONE_AFTER: Duration = Duration::from_secs(5);
/// Numbers that others may know of before the member's own answer, which caches keep for half a second, has them.
const MAX_LEAD: u64 = 8;

/// Whether a member is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// It has not answered yet, or not for 5 s, or it left.
    Away,
    Here,
}

/// A publication or key box that is fetched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    attempts: u32,
    /// When it may be requested again.
    pub(super) ask_at: Instant,
    /// A forged answer was received: caches are to be passed by.
    pub(super) was_forged: bool,
}

impl Wanted {
    /// Records that it is requested now.
    pub(super) fn ask(&mut self, now: Instant) {
        self.attempts = self.attempts.saturating_add(1);
        // 1, 1, 1, 1, 2, 4, 8, 8, …
        let pause = 1 << self.attempts.saturating_sub(4).min(MAX_DOUBLINGS);
        self.ask_at = now + FETCH_WAIT * pause;
    }

    pub(super) const fn was_asked(&self) -> bool {
        self.attempts > 0
    }
}

/// Data that are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    Publication { boot: u64, number: u64 },
    KeyBox { seal: Seal, segment: u64 },
}

/// An Interest for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) of: Fetched,
    pub(super) must_be_fresh: bool,
}

/// A change of presence or state, to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Here(Status),
    Gone { has_left: bool },
}

/// State of another member, as far as it is known.
#[derive(Debug)]
pub(super) struct Member {
    /// Its start whose publications are fetched.
    boot: u64,
    /// Number of the newest publication that is known.
    newest: u64,
    wanted: BTreeMap<u64, Wanted>,
    received: BTreeSet<u64>,
    /// Number of the publication that `status` is of.
    status_number: u64,
    status: Option<Status>,
    has_left: bool,
    presence: Presence,
    alive_at: Option<Instant>,
    probe_at: Instant,
    /// Time of its newest answer, on its own clock.
    version: u64,
    pace: Pace,
    /// What opens its publications, if they are to be sealed.
    pub(super) unsealing: Option<Unsealing>,
}

impl Member {
    pub(super) fn new(now: Instant, unsealing: Option<Unsealing>) -> Self {
        Self {
            unsealing,
            boot: 0,
            newest: 0,
            wanted: BTreeMap::new(),
            received: BTreeSet::new(),
            status_number: 0,
            status: None,
            has_left: false,
            presence: Presence::Away,
            alive_at: None,
            probe_at: now,
            version: 0,
            pace: Pace::new(MAX_FETCHES),
        }
    }

    /// Turns to another start of the member.
    fn turn_to(&mut self, boot: u64) {
        self.boot = boot;
        self.newest = 0;
        self.wanted.clear();
        self.received.clear();
        self.status_number = 0;
        self.version = 0;
    }

    /// Takes what somebody says is the newest publication: of a later start, or with a larger number.
    pub(super) fn on_claim(&mut self, boot: u64, number: u64) {
        if boot > self.boot {
            self.turn_to(boot);
        }
        if boot == self.boot && number > self.newest {
            self.want_up_to(number);
        }
    }

    fn want_up_to(&mut self, number: u64) {
        let first = number.saturating_sub(HISTORY - 1).max(1);
        for number in first.max(self.newest.saturating_add(1))..=number {
            self.wanted.insert(number, Wanted::default());
        }
        self.newest = number;
        self.wanted = self.wanted.split_off(&first);
        self.received = self.received.split_off(&first);
    }

    /// Takes the member's own answer: what its newest publication is, made at `version` of its clock. Returns whether it is new.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        (boot, number): (u64, u64),
        version: u64,
    ) -> bool {
        if boot == self.boot && version <= self.version {
            return false;
        }
        if boot != self.boot {
            self.turn_to(boot);
        }
        self.version = version;
        if number > self.newest {
            self.want_up_to(number);
        } else if number.saturating_add(MAX_LEAD) < self.newest {
            // Somebody claimed what there is not.
            self.wanted.clear();
            self.newest = 0;
            self.want_up_to(number);
            self.wanted
                .retain(|number, _| !self.received.contains(number));
        }
        self.on_alive(now);
        true
    }

    /// Takes a sign of life.
    pub(super) fn on_alive(&mut self, now: Instant) {
        if !self.is_alive(now) {
            // Publications that could not be fetched meanwhile can be fetched now.
            self.wanted.values_mut().for_each(|it| it.ask_at = now);
            self.unsealing.iter_mut().for_each(|it| it.on_alive(now));
        }
        self.alive_at = Some(now);
        self.probe_at = self.probe_at.max(now + PROBE_INTERVAL);
    }

    fn is_alive(&self, now: Instant) -> bool {
        self.alive_at.is_some_and(|at| now < at + GONE_AFTER)
    }

    /// Returns whether this publication is waited for.
    pub(super) fn awaits(&self, boot: u64, number: u64) -> bool {
        let wanted = self.wanted.get(&number);
        boot == self.boot && wanted.is_some_and(Wanted::was_asked)
    }

    pub(super) fn on_forged(&mut self, number: u64) {
        if let Some(wanted) = self.wanted.get_mut(&number) {
            wanted.was_forged = true;
        }
    }

    /// Records that a publication that was waited for has come.
    pub(super) fn on_received(&mut self, number: u64) {
        self.wanted.remove(&number);
        self.received.insert(number);
    }

    /// Takes the state in a publication. Returns what has changed.
    pub(super) fn on_state(
        &mut self,
        (boot, number): (u64, u64),
        (status, has_left): (Status, bool),
    ) -> Option<Change> {
        if boot != self.boot || number <= self.status_number {
            return None;
        }
        self.status_number = number;
        let has_changed = self.status.as_ref() != Some(&status);
        self.status = Some(status);
        self.has_left = has_left;
        match self.presence {
            Presence::Here if has_left => self.go(),
            Presence::Here if has_changed => self.status.clone().map(Change::Here),
            _ => None,
        }
    }

    fn go(&mut self) -> Option<Change> {
        self.presence = Presence::Away;
        let has_left = self.has_left;
        Some(Change::Gone { has_left })
    }

    /// Returns a change that is due.
    pub(super) fn poll_change(&mut self, now: Instant) -> Option<Change> {
        let is_alive = self.is_alive(now);
        match self.presence {
            Presence::Here if !is_alive => self.go(),
            Presence::Away if is_alive && !self.has_left && self.status_number > 0 => {
                self.presence = Presence::Here;
                self.status.clone().map(Change::Here)
            }
            _ => None,
        }
    }

    /// Returns whether the member may be here: it has not left, or has published since.
    const fn is_probed(&self) -> bool {
        !self.has_left || self.newest > self.status_number
    }

    /// Returns whether the member is to be asked now whether it is here.
    pub(super) fn poll_probe(&mut self, now: Instant) -> bool {
        let is_due = self.is_probed() && self.probe_at <= now;
        if is_due {
            self.probe_at = now + PROBE_INTERVAL;
        }
        is_due
    }

    /// Returns the next Data to request: a key box that publications wait for, then publications, the newest first.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<Request> {
        if self.pace.earliest(now) > now {
            return None;
        }
        let key_box = self.unsealing.as_mut().and_then(|it| it.poll_request(now));
        if let Some((seal, segment, must_be_fresh)) = key_box {
            self.pace.take(now);
            let of = Fetched::KeyBox { seal, segment };
            return Some(Request { of, must_be_fresh });
        }
        let due = self.wanted.iter_mut().rev();
        let (number, wanted) = due.into_iter().find(|(_, it)| it.ask_at <= now)?;
        self.pace.take(now);
        wanted.ask(now);
        let (boot, number) = (self.boot, *number);
        Some(Request {
            of: Fetched::Publication { boot, number },
            must_be_fresh: wanted.was_forged,
        })
    }

    /// Returns when something is due next, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let probe = self.is_probed().then_some(self.probe_at);
        let key_box = self.unsealing.as_ref().and_then(Unsealing::ask_at);
        let asks = self.wanted.values().map(|it| it.ask_at).chain(key_box);
        let fetch = asks.min().map(|at| self.pace.earliest(at));
        let is_here = self.presence == Presence::Here;
        let gone = self.alive_at.filter(|_| is_here).map(|at| at + GONE_AFTER);
        [probe, fetch, gone].into_iter().flatten().min()
    }

    pub(super) const fn is_here(&self) -> bool {
        matches!(self.presence, Presence::Here)
    }
}

/// Returns the prefix of publications and answers of `member` in `group`.
pub(super) fn prefix(group: &Name, member: &Name) -> Name {
    member.builder().name(group).finish()
}
