//! New keys for a session that lasts: a handshake within it, which the caller begins.

use bytes::Bytes;
use namecast_units::{Duration, Instant};

use super::super::config::SessionConfig;
use super::super::handshake::{Incoming, Outgoing};
use super::super::identity;
use super::super::message::Kind;
use super::super::names::CallId;
use super::super::noise::{KEY, Pattern};
use super::super::refusal::Refusal;
use super::call::Stage;
use super::{End, Endpoint, LINGER};
use crate::Now;

/// From one transmission of the caller's message to the next, where the session has given up one.
const RETRY: Duration = Duration::from_secs(5);
/// How long old keys may be used beyond their time.
const LIMIT: Duration = Duration::from_secs(600);
/// Least time from one renewal that a callee answers to the next.
const MIN_INTERVAL: Duration = Duration::from_secs(60);
/// Reason that closes a session whose keys were not renewed.
const UNRENEWED: &str = "the keys could not be renewed";

/// Where a session's keys come from, and how its next ones are coming along.
pub(super) struct Renewal {
    was_called: bool,
    since: Instant,
    /// Hash of the handshake that the keys are of.
    hash: [u8; 32],
    /// The caller's message, and when it was sent last.
    begun: Option<(Outgoing, Instant)>,
    /// The ephemeral key of the callee's last answer, and the answer.
    answered: Option<([u8; KEY], Bytes)>,
}

impl core::fmt::Debug for Renewal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Renewal")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

impl Renewal {
    pub(super) const fn new(now: Instant, hash: [u8; 32], was_called: bool) -> Self {
        Self {
            was_called,
            since: now,
            hash,
            begun: None,
            answered: None,
        }
    }

    /// When there is something to do.
    pub(super) fn due(&self, config: &SessionConfig) -> Instant {
        let end = self.end(config);
        match &self.begun {
            _ if self.was_called => end,
            Some((_, sent_at)) => (*sent_at + RETRY).min(end),
            None => self.since + config.renew_after,
        }
    }

    /// Returns when the keys are too old and the session ends.
    fn end(&self, config: &SessionConfig) -> Instant {
        self.since + config.renew_after + LIMIT
    }

    fn renew(&mut self, now: Instant, hash: [u8; 32]) {
        (self.since, self.hash, self.begun) = (now, hash, None);
    }
}

impl Endpoint {
    /// Begins, repeats or gives up what is due.
    pub(super) fn renew_due(&mut self, now: Now) {
        let config = &self.config.session;
        let is_due = |renewal: &Renewal| renewal.due(config) <= now.monotonic;
        let calls = self.calls.iter();
        let open = calls.filter(|(_, it)| matches!(it.stage, Stage::Open { .. }));
        let due = open.filter(|(_, it)| is_due(&it.renewal));
        let due: Vec<CallId> = due.map(|(&id, _)| id).collect();
        for id in due {
            self.begin_renewal(now, id);
        }
    }

    fn begin_renewal(&mut self, now: Now, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if call.renewal.end(&self.config.session) <= now.monotonic {
            // Only messages need room.
            let _ = (call.session).send(now.monotonic, Kind::Close, UNRENEWED.into());
            call.stage = Stage::Closing {
                until: now.monotonic + LINGER,
                end: Some(End::Unrenewed),
            };
            return;
        }
        if call.renewal.begun.is_none() {
            let prologue = identity::renewal_prologue(&call.renewal.hash);
            let seed = self.secrets.draw();
            let Ok(setup) = Outgoing::renewal(&self.own, prologue, call.peer.static_key, seed)
            else {
                return;
            };
            call.renewal.begun = Some((setup, now.monotonic));
        }
        if let Some((setup, sent_at)) = &mut call.renewal.begun {
            *sent_at = now.monotonic;
            let message = Bytes::copy_from_slice(setup.message());
            let _ = (call.session).send(now.monotonic, Kind::SetUp, message);
        }
    }

    /// Takes a handshake message that came within a session.
    pub(super) fn handle_renewal(&mut self, now: Now, id: CallId, message: &Bytes) {
        let was_called = self.calls.get(&id).map(|it| it.renewal.was_called);
        let done = match was_called {
            Some(true) => self.answer_renewal(now, id, message),
            Some(false) => self.finish_renewal(now, id, message),
            None => Ok(()),
        };
        if let Err(refusal) = done {
            self.counters.refused.add(refusal);
        }
    }

    /// The callee's part: its packets are under the new keys once the caller's are.
    fn answer_renewal(&mut self, now: Now, id: CallId, message: &Bytes) -> Result<(), Refusal> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(());
        };
        let prologue = identity::renewal_prologue(&call.renewal.hash);
        let incoming = Incoming::new(Pattern::Ik, prologue, message.clone())?;
        let ephemeral = incoming.ephemeral();
        let answered = call.renewal.answered.as_ref();
        let answer = match answered.filter(|it| it.0 == ephemeral) {
            // The answer was lost.
            Some((_, answer)) => answer.clone(),
            None if now.monotonic.since(call.renewal.since) < MIN_INTERVAL => {
                return Err(Refusal::Crowded);
            }
            None => {
                let answer = incoming.answer_renewal(&self.own, &self.secrets.draw())?;
                let message = Bytes::copy_from_slice(&answer.message);
                let introduced = answer.introduced(&self.own)?;
                if introduced.static_key != call.peer.static_key {
                    return Err(Refusal::OtherStatic);
                }
                let keys = introduced.keys;
                (call.session).renew(keys.from_callee, keys.from_caller, false);
                call.renewal.renew(now.monotonic, keys.hash);
                call.renewal.answered = Some((ephemeral, message.clone()));
                self.counters.renewed += 1;
                message
            }
        };
        let _ = (call.session).send(now.monotonic, Kind::SetUp, answer);
        Ok(())
    }

    /// The caller's part: its packets are under the new keys from now on.
    fn finish_renewal(&mut self, now: Now, id: CallId, message: &[u8]) -> Result<(), Refusal> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(());
        };
        let Some((setup, _)) = &call.renewal.begun else {
            // The answer came twice.
            return Ok(());
        };
        let keys = setup.read_renewal(&self.own, message)?;
        (call.session).renew(keys.from_caller, keys.from_callee, true);
        call.renewal.renew(now.monotonic, keys.hash);
        self.counters.renewed += 1;
        Ok(())
    }
}
