//! Set-ups of others: which are answered, and within which bounds.

use bytes::Bytes;
use namecast_packet::{Data, Interest, Name};
use namecast_units::{Duration, Instant};

use super::super::handshake::{self, Introduced, Knock};
use super::super::identity::{Admission, Peer, Refused};
use super::super::keys::SessionKeys;
use super::super::message::Kind;
use super::super::names::{self, CallId};
use super::super::noise::{KEY, Pattern};
use super::super::puzzle::Verdict;
use super::super::refusal::Refusal;
use super::super::stream::{Ends, Session};
use super::call::{Call, HalfOpen, Stage};
use super::renewal::Renewal;
use super::{Endpoint, Event};
use crate::{Now, face};

/// From one stranger that is reported to the next.
const REFUSED_INTERVAL: Duration = Duration::from_secs(1);
/// How long whoever is not admitted is answered that it is not.
const REFUSED_LINGER: Duration = Duration::from_secs(1);
/// Reason sent to a caller whose key is not admitted.
const NOT_ADMITTED: &str = "this key is not admitted here";

/// A set-up that is refused, and what its caller hears of it.
struct Declined {
    refused: Refused,
    answer: Option<Bytes>,
}

impl<R: Into<Refused>> From<R> for Declined {
    fn from(refused: R) -> Self {
        Self {
            refused: refused.into(),
            answer: None,
        }
    }
}

impl Endpoint {
    /// Takes a set-up, and answers it if its caller counts.
    pub(super) fn handle_call(&mut self, now: Now, interest: &Interest, pit_token: Option<Bytes>) {
        let answer = match self.consider(now, interest) {
            Ok(answer) => answer,
            Err(declined) => {
                self.refuse(now.monotonic, declined.refused);
                let Some(answer) = declined.answer else {
                    return;
                };
                answer
            }
        };
        self.frames.push_back(face::answer(answer, pit_token));
    }

    /// Counts a refusal, and reports a peer that is not trusted.
    pub(super) fn refuse(&mut self, now: Instant, refused: Refused) {
        self.counters.refused.add(refused.refusal);
        if let Some(peer) = refused.peer
            && self
                .refused_at
                .is_none_or(|at| now.since(at) >= REFUSED_INTERVAL)
        {
            self.refused_at = Some(now);
            self.events.push_back(Event::Refused(peer));
        }
    }

    /// Opens a call by half. What costs least is checked first.
    fn consider(&mut self, now: Now, interest: &Interest) -> Result<Bytes, Declined> {
        let knock = handshake::read_call(&self.own.root, interest)?;
        let id = handshake::call_id(interest).ok_or(Refusal::Malformed)?;
        if let Some(half_open) = self.half_open.get(&id)
            && half_open.answer.name() == interest.name()
        {
            // The answer was lost: the same again.
            return Ok(half_open.answer.wire().clone());
        }
        self.check_novelty(id, &knock)?;
        let limits = self.config.limits;
        let is_paid = knock.incoming.pattern == Pattern::Ik
            && !(self.decrypted).take(now.monotonic, limits.max_decrypted);
        if is_paid {
            self.check_stranger(now.monotonic, &knock, interest)?;
        }
        let static_key = match knock.incoming.peek(&self.own) {
            Err(Refusal::OtherStatic) => {
                return Err(Declined {
                    refused: Refusal::OtherStatic.into(),
                    answer: Some(handshake::other_static_packet(interest.name().clone())),
                });
            }
            peeked => peeked?,
        };
        let max = (limits.max_known_setups_per_key, limits.max_known_setups);
        let known = static_key
            .filter(|it| self.known.contains(it))
            .filter(|it| self.known_setups.take_of(now.monotonic, *it, max));
        if known.is_none() && !is_paid {
            self.check_stranger(now.monotonic, &knock, interest)?;
        }
        Ok(self.open_by_half(now, id, knock, (interest.name().clone(), known))?)
    }

    /// Lets a stranger through, or has it solve a puzzle.
    fn check_stranger(
        &mut self,
        now: Instant,
        knock: &Knock,
        interest: &Interest,
    ) -> Result<(), Declined> {
        let ephemeral = knock.incoming.ephemeral();
        match self.gate.judge(now, &ephemeral, knock.solution.as_ref()) {
            Verdict::Admitted => {
                self.counters.solved += u64::from(knock.solution.is_some());
                Ok(())
            }
            Verdict::Full => Err(Refusal::Crowded.into()),
            Verdict::Asked(puzzle) => Err(Declined {
                refused: Refusal::Unsolved.into(),
                answer: Some(handshake::puzzle_packet(interest.name().clone(), puzzle)),
            }),
        }
    }

    /// Refuses what came before, comes from this endpoint, or finds no room.
    fn check_novelty(&self, id: CallId, knock: &Knock) -> Result<(), Refusal> {
        let ephemeral = knock.incoming.ephemeral();
        let is_own = self.calling.as_ref();
        if is_own.is_some_and(|it| it.setup.ephemeral() == ephemeral) {
            return Err(Refusal::Reflected);
        }
        let is_there = self.calls.contains_key(&id) || self.half_open.contains_key(&id);
        if is_there || self.remembered.iter().any(|it| it.contains(&ephemeral)) {
            return Err(Refusal::Replayed);
        }
        let meant = self.config.caller.as_ref();
        if meant.is_some_and(|it| *it != knock.caller) {
            return Err(Refusal::OtherCaller);
        }
        if self.taken() >= self.config.max_calls {
            return Err(Refusal::Crowded);
        }
        Ok(())
    }

    /// Forgets the oldest half-open call of a known peer if it has too many, or of a stranger if there are too many.
    fn make_room(&mut self, known: Option<&[u8; KEY]>) -> Result<(), Refusal> {
        let of_peer = |it: &HalfOpen| it.peer.as_ref().map(|it| it.0.static_key);
        let half_open = self.half_open.iter();
        let own = half_open.filter(|(_, it)| known.is_some() && of_peer(it).as_ref() == known);
        let (count, oldest) = (own.clone().count(), own.min_by_key(|(_, it)| it.until));
        if count >= self.config.limits.max_half_open_per_key {
            return self.evict(oldest.map(|(&id, _)| id));
        }
        if self.half_open.len() < self.config.limits.max_half_open {
            return Ok(());
        }
        let strangers = self.half_open.iter().filter(|(_, it)| !it.is_known);
        let oldest = strangers.min_by_key(|(_, it)| it.until).map(|(&id, _)| id);
        self.evict(oldest)
    }

    fn evict(&mut self, id: Option<CallId>) -> Result<(), Refusal> {
        let id = id.ok_or(Refusal::Crowded)?;
        self.half_open.remove(&id);
        self.counters.evicted += 1;
        Ok(())
    }

    fn open_by_half(
        &mut self,
        now: Now,
        id: CallId,
        knock: Knock,
        (name, known): (Name, Option<[u8; KEY]>),
    ) -> Result<Bytes, Refused> {
        let Knock {
            caller, incoming, ..
        } = knock;
        let ephemeral = incoming.ephemeral();
        let seed = self.secrets.draw();
        let answer = incoming.answer(&self.own, &seed)?;
        let packet = handshake::answer_packet(name, incoming.pattern, &answer.message);
        let peer = match incoming.pattern {
            Pattern::Xx => None,
            Pattern::Ik => {
                let introduced = answer.introduced(&self.own)?;
                let peer = self.admit(now, &caller, &introduced)?;
                Some((peer, introduced.keys))
            }
        };
        // Only now is it the known peer's, if it claims to be: nobody else displaces its half-open calls.
        self.make_room(known.as_ref())?;
        let wire = packet.wire().clone();
        let half_open = HalfOpen {
            confirmation: names::confirmation(&names::packets(&caller, id)),
            caller,
            incoming,
            seed,
            answer: packet,
            peer,
            is_known: known.is_some(),
            requested: (now.monotonic, 0),
            is_expected: false,
            until: now.monotonic + self.config.setup_timeout,
            early: Vec::new(),
        };
        self.half_open.insert(id, half_open);
        self.remembered[usize::from(known.is_some())].insert(ephemeral);
        self.counters.answered += 1;
        Ok(wire)
    }

    /// Judges who calls.
    fn admit(&self, now: Now, caller: &Name, said: &Introduced) -> Result<Peer, Refused> {
        let admission = Admission {
            own_root: &self.own.root,
            trust: &self.config.trust,
            authorised: self.config.authorised.as_deref(),
            wall: now.wall,
        };
        admission.judge(caller, said.static_key, &said.payload)
    }

    /// Takes what shows the caller's keys: only now does it ring.
    pub(super) fn handle_confirmation(&mut self, now: Now, id: CallId, data: &Data) {
        let Some(half_open) = self.half_open.get_mut(&id) else {
            self.counters.unknown += 1;
            return;
        };
        if data.name() != &half_open.confirmation || !half_open.is_expected {
            self.counters.unknown += 1;
            return;
        }
        half_open.is_expected = false;
        let half_open = &self.half_open[&id];
        let (peer, keys) = match self.read_confirmation(now, half_open, data) {
            Ok(shown) => shown,
            // Anybody may have sent it: the right one may come yet.
            Err(refused) => {
                self.refuse(now.monotonic, refused);
                return;
            }
        };
        match peer {
            Ok(peer) => self.open(now, id, (peer, keys)),
            Err(refused) => self.turn_away(now, id, (refused, keys)),
        }
    }

    /// Reads what shows the caller's keys. Returns who calls, or why it is not admitted although it has the keys.
    fn read_confirmation(
        &self,
        now: Now,
        half_open: &HalfOpen,
        data: &Data,
    ) -> Result<(Result<Peer, Refused>, SessionKeys), Refused> {
        let (third, proof) = handshake::read_confirmation(data)?;
        let introduced = match (&half_open.peer, third) {
            (Some(_), None) => None,
            (None, Some(third)) => {
                let (incoming, seed) = (&half_open.incoming, &half_open.seed);
                Some(incoming.read_third(&self.own, seed, &third)?)
            }
            _ => return Err(Refusal::Malformed.into()),
        };
        let known = half_open.peer.as_ref();
        let keys = match (&introduced, known) {
            (Some(introduced), _) => &introduced.keys,
            (None, Some((_, keys))) => keys,
            (None, None) => return Err(Refusal::Malformed.into()),
        };
        let is_shown = keys.check_proof(data.name().value(), &proof);
        is_shown.map_err(|_| Refusal::Changed)?;
        let keys = keys.clone();
        let peer = match (introduced, known) {
            (Some(introduced), _) => self.admit(now, &half_open.caller, &introduced),
            (None, Some((peer, _))) => Ok(peer.clone()),
            (None, None) => return Err(Refusal::Malformed.into()),
        };
        Ok((peer, keys))
    }

    fn open(&mut self, now: Now, id: CallId, (peer, keys): (Peer, SessionKeys)) {
        if self.taken() >= self.config.max_calls {
            self.half_open.remove(&id);
            self.counters.refused.add(Refusal::Crowded);
            return;
        }
        let Some(session) = self.start_session(now, id, &keys) else {
            return;
        };
        let call = Call {
            peer: peer.clone(),
            stage: Stage::Open { confirmation: None },
            renewal: Renewal::new(now.monotonic, keys.hash, true),
            session,
        };
        self.calls.insert(id, call);
        self.establish(id, peer, true);
    }

    /// Tells a caller that has its keys, and is not admitted, that it is not.
    fn turn_away(&mut self, now: Now, id: CallId, (refused, keys): (Refused, SessionKeys)) {
        let peer = refused.peer.clone();
        self.refuse(now.monotonic, refused);
        let Some(mut session) = self.start_session(now, id, &keys) else {
            return;
        };
        let refusing = self.calls.len() - self.taken();
        let Some(peer) = peer.filter(|_| refusing < self.config.limits.max_half_open) else {
            return;
        };
        // Only messages need room.
        let _ = session.send(now.monotonic, Kind::Close, NOT_ADMITTED.into());
        let call = Call {
            peer: *peer,
            stage: Stage::Refusing {
                until: now.monotonic + REFUSED_LINGER,
            },
            renewal: Renewal::new(now.monotonic, keys.hash, true),
            session,
        };
        self.calls.insert(id, call);
    }

    /// Makes a session of a half-open call.
    fn start_session(&mut self, now: Now, id: CallId, keys: &SessionKeys) -> Option<Session> {
        let half_open = self.half_open.remove(&id)?;
        let ends = Ends {
            own: (names::packets(&self.own.root, id), keys.from_callee.clone()),
            other: (
                names::packets(&half_open.caller, id),
                keys.from_caller.clone(),
            ),
            was_called: true,
        };
        let seed = self.random.next_u64();
        let mut session = Session::new(now.monotonic, ends, &self.config.session, seed);
        for early in half_open.early {
            session.handle_interest(now.monotonic, early.number, early.asked);
        }
        let (sent_at, transmissions) = half_open.requested;
        let rtt = (transmissions == 1).then(|| now.monotonic.since(sent_at));
        session.open(now.monotonic, rtt);
        Some(session)
    }

    /// Calls of peers that are admitted.
    fn taken(&self) -> usize {
        let calls = self.calls.values();
        calls
            .filter(|it| !matches!(it.stage, Stage::Refusing { .. }))
            .count()
    }
}
