//! Set-ups of others: which are answered, and within which bounds.

use bytes::Bytes;
use namecast_packet::Interest;
use namecast_units::{Duration, Instant};

use super::super::handshake::{self, Admission, Invitation, Refused};
use super::super::names::{self, CallId};
use super::super::stream::{Ends, Session};
use super::call::{Call, HalfOpen, Stage};
use super::{Endpoint, Event};
use crate::{Now, face};

/// From one stranger that is reported to the next.
const REFUSED_INTERVAL: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Takes a set-up, and answers it if its caller counts.
    pub(super) fn handle_call(&mut self, now: Now, interest: Interest, pit_token: Option<Bytes>) {
        let Some(id) = handshake::call_id(&interest) else {
            self.counters.unknown += 1;
            return;
        };
        if let Some(call) = self.calls.get(&id)
            && let Stage::HalfOpen(half_open) = &call.stage
            && half_open.answer.name() == interest.name()
        {
            // The answer was lost: the same again.
            let answer = half_open.answer.wire().clone();
            self.frames.push_back(face::answer(answer, pit_token));
            return;
        }
        if self.calls.contains_key(&id) || self.remembered.contains(&id) {
            self.counters.replayed += 1;
            return;
        }
        if self.calls.len() >= self.config.max_calls
            || self.half_open(None) >= self.config.max_half_open
        {
            self.counters.crowded += 1;
            return;
        }
        match self.admit(now, id, interest) {
            Ok(answer) => self.frames.push_back(face::answer(answer, pit_token)),
            Err(Some(Refused::Malformed)) => self.counters.malformed += 1,
            Err(Some(Refused::Forged)) => self.counters.forged += 1,
            Err(Some(Refused::Untrusted(peer))) => {
                self.counters.strangers += 1;
                if self
                    .refused_at
                    .is_none_or(|at| now.monotonic.since(at) >= REFUSED_INTERVAL)
                {
                    self.refused_at = Some(now.monotonic);
                    self.events.push_back(Event::Refused(peer));
                }
            }
            Err(None) => self.counters.crowded += 1,
        }
    }

    /// Opens a call by half. Returns the answer, or why not; without a reason if there are too many, of its key or in this second.
    fn admit(
        &mut self,
        now: Now,
        id: CallId,
        interest: Interest,
    ) -> Result<Bytes, Option<Refused>> {
        let invitation = Invitation::read(&self.own.root, interest)?;
        if !self.may_check(now.monotonic) {
            return Err(None);
        }
        let admission = Admission {
            trust: &self.config.trust,
            root: self.config.caller.as_ref(),
            authorised: self.config.authorised.as_deref(),
            wall: now.wall,
        };
        let (peer, key) = invitation.check(&admission)?;
        if self.half_open(Some(peer.signer.key_digest)) >= self.config.max_half_open_per_key {
            return Err(None);
        }
        let secret = self.secrets.draw();
        let (answer, keys) = invitation.answer(&self.own, &secret)?;
        let packets = names::packets(&peer.root, id);
        let half_open = HalfOpen {
            answer: answer.clone(),
            confirmation: names::confirmation(&packets),
            keys,
            requested: (now.monotonic, 0),
            until: now.monotonic + self.config.setup_timeout,
        };
        let ends = Ends {
            own: (
                names::packets(&self.own.root, id),
                half_open.keys.from_callee.clone(),
            ),
            other: (packets, half_open.keys.from_caller.clone()),
            was_called: true,
        };
        let session = Session::new(
            now.monotonic,
            ends,
            &self.config.session,
            self.random.next_u64(),
        );
        let call = Call {
            peer,
            key,
            stage: Stage::HalfOpen(Box::new(half_open)),
            session,
        };
        self.calls.insert(id, call);
        self.remember(id);
        self.counters.answered += 1;
        Ok(answer.wire().clone())
    }

    fn remember(&mut self, id: CallId) {
        if self.remembered.len() >= self.config.max_remembered {
            self.remembered.pop_front();
        }
        self.remembered.push_back(id);
    }

    /// Half-open calls, of one key or of all.
    fn half_open(&self, key: Option<[u8; 32]>) -> usize {
        let calls = self.calls.values();
        let calls = calls.filter(|call| matches!(call.stage, Stage::HalfOpen(_)));
        calls
            .filter(|call| key.is_none_or(|key| call.peer.signer.key_digest == key))
            .count()
    }

    /// Whether one more signature may be checked in this second.
    fn may_check(&mut self, now: Instant) -> bool {
        let second = now.since(Instant::ZERO).as_secs();
        let (last, count) = self.checks;
        let count = if last == second { count + 1 } else { 1 };
        self.checks = (second, count);
        count <= self.config.max_checks
    }
}
