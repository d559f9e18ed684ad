//! One's own call, until it is answered.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_units::{Duration, Instant, Random};

use super::super::handshake::{self, Answered, Outgoing, Reply};
use super::super::identity::{self, Admission, Peer, Refused};
use super::super::names::{self, CallId};
use super::super::puzzle::{Search, TooHard};
use super::super::stream::{Ends, Session};
use super::call::{Call, Stage};
use super::renewal::Renewal;
use super::{Endpoint, NoCall, SETUP_LIFETIME};
use crate::Now;
use crate::discovery::Trust;

/// First and longest time from one transmission to the next.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const MAX_RETRY: Duration = Duration::from_secs(1);
/// After this time a call is set up anew.
const MAX_AGE: Duration = Duration::from_secs(4);

pub(super) struct Calling {
    pub(super) interest: Interest,
    pub(super) setup: Outgoing,
    pub(super) callee: Name,
    pub(super) trust: Trust,
    /// Whether the callee's static key may be taken for known: not after it was refused.
    pub(super) may_know: bool,
    /// Who answered, and does not count.
    pub(super) refused: Option<Box<Peer>>,
    /// The puzzle that the callee has set, and digests that all of this call's have taken.
    search: Option<Search>,
    steps: u64,
    is_too_hard: bool,
    nack: Option<NackReason>,
    sent_at: Option<Instant>,
    transmissions: u32,
    begun_at: Instant,
    until: Instant,
}

impl core::fmt::Debug for Calling {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Calling")
            .field("callee", &self.callee)
            .finish_non_exhaustive()
    }
}

impl Calling {
    pub(super) fn new(
        now: Instant,
        (interest, setup): (Interest, Outgoing),
        (callee, trust): (Name, Trust),
        until: Instant,
    ) -> Self {
        Self {
            interest,
            setup,
            callee,
            trust,
            may_know: true,
            refused: None,
            search: None,
            steps: 0,
            is_too_hard: false,
            nack: None,
            sent_at: None,
            transmissions: 0,
            begun_at: now,
            until,
        }
    }

    /// Whether the callee may have given up the call, and would take this Interest for a replayed one.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        self.search.is_none() && now.since(self.begun_at) >= MAX_AGE
    }

    /// Goes on with another Interest.
    pub(super) fn renew(&mut self, now: Instant, (interest, setup): (Interest, Outgoing)) {
        (self.interest, self.setup) = (interest, setup);
        (self.sent_at, self.transmissions, self.begun_at) = (None, 0, now);
    }

    pub(super) fn is_answer(&self, data: &Data) -> bool {
        self.interest.matches(data)
    }

    /// How long the answer that comes now took, if the Interest was sent once.
    pub(super) fn rtt(&self, now: Instant) -> Option<Duration> {
        let sent_at = self.sent_at?;
        (self.transmissions == 1).then(|| now.since(sent_at))
    }

    pub(super) fn on_nack(&mut self, interest: &Interest, reason: NackReason) {
        if interest.name() == self.interest.name() {
            self.nack = Some(reason);
        }
    }

    /// Returns the Interest if it is to be sent, again.
    ///
    /// # Errors
    /// If it has been sent for too long.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        random: &mut Random,
    ) -> Result<Option<Bytes>, NoCall> {
        if self.until <= now {
            return Err(match (self.refused.take(), self.nack) {
                (Some(peer), _) => NoCall::Untrusted(peer),
                (None, Some(NackReason::NoRoute)) => NoCall::NoRoute,
                (None, _) if self.is_too_hard => NoCall::Overloaded,
                (None, _) => NoCall::Unanswered,
            });
        }
        if self.search.is_some() || self.due() > now {
            return Ok(None);
        }
        self.sent_at = Some(now);
        self.transmissions += 1;
        let nonce = Nonce::draw(random);
        Ok(Some(self.interest.with_nonce(nonce).wire().clone()))
    }

    fn due(&self) -> Instant {
        let Some(sent_at) = self.sent_at else {
            return Instant::ZERO;
        };
        let doublings = self.transmissions.saturating_sub(1).min(10);
        sent_at + (FIRST_RETRY * 2_u32.pow(doublings)).min(MAX_RETRY)
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        // A search continues at every opportunity.
        let due = if self.search.is_some() {
            Instant::ZERO
        } else {
            self.due()
        };
        due.min(self.until)
    }
}

impl Endpoint {
    /// Writes a set-up, with the callee's static key where that `may_know` and is known.
    pub(super) fn set_up(&mut self, callee: &Name, may_know: bool) -> (Interest, Outgoing) {
        let known = self.known.key_of(callee).filter(|_| may_know);
        let prologue = || identity::prologue(callee, &self.own.root);
        let seed = self.secrets.draw();
        let outgoing = Outgoing::new(&self.own, prologue(), known, seed.clone())
            .or_else(|_| Outgoing::new(&self.own, prologue(), None, seed))
            .expect("without the other's key there is no weak one");
        let nonce = Nonce::draw(&mut self.random);
        let interest = outgoing.interest(&self.own, callee, None, (SETUP_LIFETIME, nonce));
        (interest, outgoing)
    }

    /// Takes what answers one's own call.
    pub(super) fn handle_answer(&mut self, now: Now, data: &Data) {
        let Some(mut calling) = self.calling.take() else {
            return;
        };
        let id = handshake::call_id(&calling.interest);
        match self.read_answer(now, &mut calling, data) {
            Ok(Some(answered)) => {
                if let Some(id) = id {
                    self.connect(now, id, (&calling, answered));
                }
                return;
            }
            Ok(None) => {}
            // Anybody may have answered: the right answer may come yet.
            Err(refused) => {
                self.counters.refused.add(refused.refusal);
                calling.refused = refused.peer.or(calling.refused);
            }
        }
        self.calling = Some(calling);
    }

    /// Reads what the callee says; `None` if the call is set up anew.
    fn read_answer(
        &mut self,
        now: Now,
        calling: &mut Calling,
        data: &Data,
    ) -> Result<Option<Answered>, Refused> {
        let admission = Admission {
            own_root: &self.own.root,
            trust: &calling.trust,
            authorised: None,
            wall: now.wall,
        };
        match handshake::read_reply(data)? {
            Reply::Message(pattern, message) => {
                let message = (pattern, &message[..]);
                let setup = &calling.setup;
                let read = setup.read_answer(&self.own, &calling.callee, message, &admission);
                read.map(Some)
            }
            Reply::Puzzle(puzzle) => {
                if calling.search.is_none() && !calling.is_too_hard {
                    calling.search = Search::new(puzzle, calling.setup.ephemeral());
                    calling.is_too_hard = calling.search.is_none();
                }
                Ok(None)
            }
            Reply::OtherStatic => {
                if calling.setup.is_known() {
                    calling.may_know = false;
                    let setup = self.set_up(&calling.callee, false);
                    calling.renew(now.monotonic, setup);
                }
                Ok(None)
            }
        }
    }

    /// Works on the puzzle that the callee has set; the same set-up is sent with the solution.
    pub(super) fn search(&mut self, now: Instant, calling: &mut Calling) {
        let Some(search) = &mut calling.search else {
            return;
        };
        match search.advance(&mut calling.steps) {
            Ok(None) => {}
            Ok(Some(solution)) => {
                calling.search = None;
                let send = (SETUP_LIFETIME, Nonce::draw(&mut self.random));
                let setup = &calling.setup;
                calling.interest =
                    setup.interest(&self.own, &calling.callee, Some(&solution), send);
                (calling.sent_at, calling.transmissions, calling.begun_at) = (None, 0, now);
            }
            Err(TooHard) => {
                calling.search = None;
                calling.is_too_hard = true;
            }
        }
    }

    /// Opens the session of one's own call.
    fn connect(&mut self, now: Now, id: CallId, (calling, answered): (&Calling, Answered)) {
        let packets = names::packets(&self.own.root, id);
        let confirmation = answered.confirm(names::confirmation(&packets));
        let Answered { peer, keys, .. } = answered;
        let renewal = Renewal::new(now.monotonic, keys.hash, false);
        let ends = Ends {
            own: (packets, keys.from_caller),
            other: (names::packets(&peer.root, id), keys.from_callee),
            was_called: false,
        };
        let seed = self.random.next_u64();
        let mut session = Session::new(now.monotonic, ends, &self.config.session, seed);
        session.open(now.monotonic, calling.rtt(now.monotonic));
        let call = Call {
            peer: peer.clone(),
            stage: Stage::Open {
                confirmation: Some(confirmation),
            },
            renewal,
            session,
        };
        self.calls.insert(id, call);
        self.establish(id, peer, false);
    }
}
