//! The largest datagram that reaches a neighbour: path MTU discovery by probes (RFC 8899).
//!
//! ```text
//!                       large packet, answers unknown                 5 questions without an answer
//!            ┌────────────────────────────────▶ Asking ──────────────────────────────┐
//!            │                                    │ answer                            ▼
//!  Watching ─┤   large packet, search due         ▼                    foreign: the system's limit
//!     ▲      ├──────────────────────────────▶ Searching ── raises the MTU ──┐         │
//!     │      │   large packet                                               │         │
//!     │      └──────────────────────────────▶ Confirming ── lowers the MTU ─┤         │
//!     └──────────────── 1 s ──────────────────────────────── Resting ◀──────┴─────────┘
//! ```
//!
//! A probe is a link packet without a fragment, padded to the size in question. The neighbour repeats eight random octets of it, so an
//! answer proves that a datagram of that size arrived. Nothing is sent unless large packets leave.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_units::{Instant, Random};

use super::path_probe::{self, MIN_PADDED, NONCE, SMALL};

/// Sizes that path MTU discovery keeps to, in octets of UDP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtuConfig {
    /// MTU before anything is known: RFC 8899, section 5.1.2, BASE_PLPMTU.
    pub start: usize,
    /// MTU below which nothing lowers it: MIN_PLPMTU.
    pub floor: usize,
}

impl PathMtuConfig {
    /// UDP over IPv4. Linux believes no ICMP message that names an MTU below 552 octets, of which headers take 28.
    pub const UDP_V4: Self = Self {
        start: 1_200,
        floor: 524,
    };
    /// UDP over IPv6, whose links carry 1280 octets (RFC 8200, section 5), of which headers take 48.
    pub const UDP_V6: Self = Self {
        start: 1_232,
        floor: 1_232,
    };
}

/// Probes of one size after which it counts as too large: MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// Questions without an answer after which the neighbour answers no probes.
const MAX_QUESTIONS: u32 = 5;
/// Time for an answer until the round trip is known: PROBE_TIMER. Afterwards, twice the round trip within these bounds.
const MIN_WAIT: Duration = Duration::from_millis(300);
const MAX_WAIT: Duration = Duration::from_secs(3);
/// Pause between two confirmations: CONFIRMATION_TIMER.
const CONFIRM_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two searches: PMTU_RAISE_TIMER, shorter than RFC 8899's 600 s as streams notice each fragment.
const SEARCH_PAUSE: Duration = Duration::from_secs(30);
/// Pause between a black hole and the next search, which doubles with each until [`SEARCH_PAUSE`].
const FIRST_SEARCH_PAUSE: Duration = Duration::from_secs(1);
/// Confirmations of one MTU in a row after which earlier black holes are forgotten: more than there are between two searches.
const FORGIVING: u32 = 60;
/// Pause between two questions to a neighbour that answers no probes.
const FOREIGN_PAUSE: Duration = Duration::from_secs(60);
/// A search ends when it knows the MTU to this many octets.
const STEP: usize = 16;
/// Probes whose answers are recognised.
const MAX_OUTSTANDING: usize = 16;

const _: () = assert!(MIN_PADDED <= PathMtuConfig::UDP_V4.floor);

/// Path MTU discovery for one neighbour.
#[derive(Debug)]
pub(super) struct PathMtu {
    config: PathMtuConfig,
    ceiling: usize,
    mtu: usize,
    /// Largest datagram by what the operating system knows of the interface and the path.
    system_limit: Option<usize>,
    answers: Answers,
    phase: Phase,
    /// When to look for a larger MTU next.
    search_at: Instant,
    /// Pause after the next black hole.
    search_pause: Duration,
    confirmations: u32,
    round_trip: Option<Duration>,
    outstanding: VecDeque<Probe>,
    output: VecDeque<Bytes>,
}

/// Whether the neighbour answers probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Unknown,
    Yes,
    No { ask_at: Instant },
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Until a large packet leaves.
    Watching,
    Resting {
        until: Instant,
    },
    Asking {
        left: u32,
        due: Instant,
    },
    Confirming(Round),
    Searching {
        round: Round,
        /// Smallest size known to be too large; above the ceiling while none is.
        too_large: usize,
        /// MTU at the start of the search.
        before: usize,
    },
}

/// Probes of one size.
#[derive(Clone, Copy, Debug)]
struct Round {
    size: usize,
    sent: u32,
    due: Instant,
    /// Largest smaller probe that was answered since the round began.
    smaller: usize,
}

impl Round {
    const fn new(size: usize, due: Instant) -> Self {
        Self {
            size,
            sent: 0,
            due,
            smaller: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: [u8; NONCE],
    size: usize,
    sent_at: Instant,
}

impl PathMtu {
    /// Starts discovery for frames of at most `ceiling` octets.
    pub(super) fn new(config: PathMtuConfig, ceiling: usize) -> Self {
        let mut path = Self {
            config,
            ceiling,
            mtu: config.start,
            system_limit: None,
            answers: Answers::Unknown,
            phase: Phase::Watching,
            search_at: Instant::ZERO,
            search_pause: FIRST_SEARCH_PAUSE,
            confirmations: 0,
            round_trip: None,
            outstanding: VecDeque::new(),
            output: VecDeque::new(),
        };
        path.set_ceiling(ceiling);
        path
    }

    /// Bounds the MTU from now on.
    pub(super) fn set_ceiling(&mut self, ceiling: usize) {
        self.ceiling = ceiling;
        self.mtu = self.mtu.max(self.floor()).min(ceiling);
        self.search_at = Instant::ZERO;
    }

    /// Sends no probes: the MTU is what the operating system says.
    pub(super) fn trust_system(&mut self) {
        self.answers = Answers::No {
            ask_at: Instant::from_nanos(u64::MAX),
        };
        self.phase = Phase::Watching;
        self.follow_system();
    }

    /// Returns the largest frame that reaches the neighbour, as far as is known.
    pub(super) const fn mtu(&self) -> usize {
        self.mtu
    }

    fn floor(&self) -> usize {
        self.config.floor.min(self.ceiling)
    }

    /// Returns octets of the longest packet that needs not be reported by [`on_packet`](Self::on_packet).
    pub(super) fn unwatched(&self) -> usize {
        match self.phase {
            Phase::Watching if self.floor() < self.ceiling => self.floor(),
            _ => usize::MAX,
        }
    }

    /// Records a packet of `octets` that leaves; a large one starts a confirmation or a search.
    pub(super) fn on_packet(&mut self, now: Instant, octets: usize) {
        if octets <= self.unwatched() {
            return;
        }
        self.phase = match self.answers {
            Answers::Unknown => Phase::Asking {
                left: MAX_QUESTIONS,
                due: now,
            },
            Answers::No { ask_at } if now >= ask_at => Phase::Asking { left: 1, due: now },
            // The system's limit is looked at when the pause ends.
            Answers::No { .. } => Phase::Resting {
                until: now + CONFIRM_PAUSE,
            },
            Answers::Yes if now >= self.search_at && self.mtu < self.ceiling => Phase::Searching {
                round: Round::new(self.first_candidate(), now),
                too_large: self.ceiling + 1,
                before: self.mtu,
            },
            Answers::Yes => Phase::Confirming(Round::new(self.mtu, now)),
        };
    }

    /// Takes the operating system's limit. A lower one than before holds until a search proves it wrong.
    pub(super) fn set_system_limit(&mut self, now: Instant, limit: Option<usize>) {
        let before = core::mem::replace(&mut self.system_limit, limit);
        if before == limit {
            return;
        }
        if let Answers::No { .. } = self.answers {
            return self.follow_system();
        }
        if let (Phase::Searching { round, .. }, Some(limit)) = (self.phase, limit)
            && limit < round.size
        {
            // A router said so of the probe.
            self.refuse(now, round.size);
        }
        match limit {
            Some(limit) if limit < self.mtu => self.lower(now, limit, SEARCH_PAUSE),
            Some(limit) if before.is_some_and(|before| before < limit) => self.search_at = now,
            _ => {}
        }
    }

    /// A router reported that a datagram was too large for the path, after which the operating system's limit is `limit`.
    pub(super) fn on_report(&mut self, now: Instant, limit: Option<usize>) {
        self.set_system_limit(now, limit);
        if let Some(limit) = limit.filter(|&limit| limit < self.mtu) {
            self.lower(now, limit, SEARCH_PAUSE);
        }
    }

    /// The operating system refused a datagram of `octets` as too large; `limit` is what it takes, if it says so.
    pub(super) fn on_too_large(&mut self, now: Instant, octets: usize, limit: Option<usize>) {
        self.set_system_limit(now, limit);
        if octets > self.mtu {
            return self.refuse(now, octets);
        }
        let to = match limit {
            Some(limit) if limit < octets => limit,
            _ if octets > self.config.start => self.config.start,
            _ => self.config.floor,
        };
        self.lower(now, to, SEARCH_PAUSE);
    }

    /// A probe of `octets` did not leave.
    fn refuse(&mut self, now: Instant, octets: usize) {
        if let Phase::Searching { round, .. } = &mut self.phase
            && round.size == octets
        {
            round.sent = MAX_PROBES;
            round.due = now;
        }
    }

    fn lower(&mut self, now: Instant, to: usize, pause: Duration) {
        self.mtu = to.max(self.floor()).min(self.mtu);
        self.search_at = now + pause;
        // Answers to probes from before say nothing of the path now.
        self.outstanding.clear();
        if self.answers == Answers::Yes {
            self.rest(now);
        }
    }

    /// A foreign neighbour's MTU is what the operating system says.
    fn follow_system(&mut self) {
        let limit = self.system_limit.unwrap_or(self.config.start);
        self.mtu = limit.max(self.floor()).min(self.ceiling);
    }

    fn rest(&mut self, now: Instant) {
        self.phase = Phase::Resting {
            until: now + CONFIRM_PAUSE,
        };
    }

    /// Takes an answer to a probe. One that repeats no probe's octets is ignored.
    pub(super) fn handle_answer(&mut self, now: Instant, nonce: &[u8]) {
        let mut outstanding = self.outstanding.iter();
        let Some(place) = outstanding.position(|probe| probe.nonce == nonce) else {
            return;
        };
        let Some(Probe { size, sent_at, .. }) = self.outstanding.remove(place) else {
            return;
        };
        self.round_trip = Some(now.since(sent_at));
        if self.answers != Answers::Yes {
            self.answers = Answers::Yes;
            self.search_at = now;
            self.phase = Phase::Watching;
            // Large packets leave: that is why the neighbour was asked.
            self.on_packet(now, usize::MAX);
        }
        let is_larger = size > self.mtu;
        if is_larger && size <= self.ceiling {
            self.mtu = size;
            self.confirmations = 0;
        }
        match &mut self.phase {
            Phase::Confirming(round) if round.size == size => self.confirm(now),
            Phase::Confirming(round) => round.smaller = round.smaller.max(size),
            Phase::Searching { .. } if is_larger => self.search_on(now),
            _ => {}
        }
    }

    fn confirm(&mut self, now: Instant) {
        self.confirmations += 1;
        if self.confirmations >= FORGIVING {
            self.search_pause = FIRST_SEARCH_PAUSE;
        }
        self.rest(now);
    }

    /// Sends what is due. Early calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant, random: &mut Random) {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        match self.phase {
            Phase::Watching => {}
            Phase::Resting { .. } => self.phase = Phase::Watching,
            Phase::Asking { left: 0, .. } => {
                self.answers = Answers::No {
                    ask_at: now + FOREIGN_PAUSE,
                };
                self.follow_system();
                self.rest(now);
            }
            Phase::Asking { left, .. } => {
                self.probe(now, SMALL, random);
                let due = now + self.wait();
                self.phase = Phase::Asking {
                    left: left - 1,
                    due,
                };
            }
            Phase::Confirming(round) => self.continue_confirming(now, round, random),
            Phase::Searching {
                round,
                before,
                too_large,
            } => {
                if round.sent < MAX_PROBES {
                    self.probe(now, round.size, random);
                    self.phase = Phase::Searching {
                        round: self.after_probe(now, round),
                        too_large,
                        before,
                    };
                } else {
                    self.phase = Phase::Searching {
                        round,
                        too_large: round.size.min(too_large),
                        before,
                    };
                    self.search_on(now);
                }
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Watching => None,
            Phase::Resting { until: due }
            | Phase::Asking { due, .. }
            | Phase::Confirming(Round { due, .. })
            | Phase::Searching {
                round: Round { due, .. },
                ..
            } => Some(due),
        }
    }

    /// Returns the next probe to send.
    pub(super) fn poll_output(&mut self) -> Option<Bytes> {
        self.output.pop_front()
    }

    /// From the second probe on, smaller ones go with it: what they find is no black hole but an outage.
    fn continue_confirming(&mut self, now: Instant, round: Round, random: &mut Random) {
        if self.mtu <= self.floor() {
            return self.rest(now);
        }
        if round.sent < MAX_PROBES {
            self.probe(now, round.size, random);
            if round.sent > 0 {
                self.probe(now, SMALL, random);
                if round.size > self.config.start {
                    self.probe(now, self.config.start, random);
                }
            }
            self.phase = Phase::Confirming(self.after_probe(now, round));
            return;
        }
        self.confirmations = 0;
        if round.smaller == 0 {
            return self.rest(now);
        }
        let pause = self.search_pause;
        self.search_pause = (pause * 2).min(SEARCH_PAUSE);
        self.lower(now, round.smaller, pause);
    }

    fn after_probe(&self, now: Instant, round: Round) -> Round {
        Round {
            sent: round.sent + 1,
            due: now + self.wait(),
            ..round
        }
    }

    fn first_candidate(&self) -> usize {
        let hint = self.system_limit.filter(|&limit| limit > self.mtu);
        hint.map_or(self.ceiling, |limit| limit.min(self.ceiling))
    }

    /// Tries the next size, or ends the search: the one the system names, the ceiling, one a little larger than the MTU, and then halfway
    /// between what passes and what does not.
    fn search_on(&mut self, now: Instant) {
        let Phase::Searching {
            too_large, before, ..
        } = self.phase
        else {
            return;
        };
        let mtu = self.mtu;
        let hint = (self.system_limit).filter(|limit| (mtu + 1..too_large).contains(limit));
        let is_explained = mtu > before && self.system_limit == Some(mtu);
        let size = match hint {
            _ if is_explained || mtu >= self.ceiling || too_large - mtu <= STEP => None,
            Some(hint) => Some(hint.min(self.ceiling)),
            None if too_large > self.ceiling => Some(self.ceiling),
            None if mtu == before => Some(mtu + STEP),
            None => Some(usize::midpoint(mtu, too_large)),
        };
        // A size that failed is not tried again, nor one beyond it.
        match size.filter(|&size| size < too_large) {
            Some(size) => {
                self.phase = Phase::Searching {
                    round: Round::new(size, now),
                    too_large,
                    before,
                };
            }
            None => {
                self.search_at = now + SEARCH_PAUSE;
                self.rest(now);
            }
        }
    }

    fn wait(&self) -> Duration {
        let round_trip = self.round_trip.unwrap_or(Duration::ZERO);
        (round_trip * 2).clamp(MIN_WAIT, MAX_WAIT)
    }

    fn probe(&mut self, now: Instant, size: usize, random: &mut Random) {
        let nonce = random.next_u64().to_be_bytes();
        self.outstanding.push_back(Probe {
            nonce,
            size,
            sent_at: now,
        });
        if self.outstanding.len() > MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.output.push_back(path_probe::probe(nonce, size));
    }
}

#[cfg(test)]
#[path = "path_mtu_tests.rs"]
mod tests;
