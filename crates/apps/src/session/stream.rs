//! One session: what is sent, what is received, and when each side hears of the other.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::{Data, Name};
use namecast_units::{Duration, Instant};

use super::config::{Flow, SessionConfig};
use super::keys::Cipher;
use super::message::Kind;
use super::receiver::{Received, Receiver, ReceiverCounters};
use super::sender::{Answer, Sender, SenderCounters};
use crate::face;

/// Messages that may go unacknowledged, whatever the delay.
const MAX_UNACKNOWLEDGED: u32 = 64;
/// Least time after a message before an empty packet follows it.
const MIN_PROBE: Duration = Duration::from_millis(5);
/// What Interests wait for an echo.
const ECHO_HOLD: Duration = Duration::from_millis(10);
/// What Interests wait for Data to leave with where there is more to be had, beyond half a round trip the first time; and the
/// share of a round trip that this may be. On a path so short that it were more none waits: what comes in one batch leaves together.
const HOLD_MARGIN: Duration = Duration::from_millis(1);
const HOLD_SHARE: u32 = 16;
/// Empty packets after which they come less and less often.
const PROMPT_PROBES: u32 = 3;
/// Longest time from one empty packet to the next while a message is not acknowledged.
const MAX_PROBE: Duration = Duration::from_secs(1);

/// What a session measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Packets of this side.
    pub sent: SenderCounters,
    /// Packets of the other.
    pub received: ReceiverCounters,
    /// Round-trip time of the path, without the time that Interests wait.
    pub rtt: Option<Duration>,
}

/// The keys and names of both directions.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) own: (Name, Cipher),
    pub(super) other: (Name, Cipher),
    pub(super) was_called: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    config: SessionConfig,
    sender: Sender,
    receiver: Receiver,
    was_called: bool,
    /// Whether anything may be sent: the other side has shown its keys.
    is_open: bool,
    /// Since when the other side's messages have not been acknowledged, and how many.
    owed: Option<(Instant, u32)>,
    /// When an empty packet was sent last because a message was not acknowledged, and how many were.
    probed: (Instant, u32),
    /// Interests for what is not due yet wait so long for the next Data.
    hold: Option<Instant>,
    /// Whether some have waited: Data and Interests leave at the same time since.
    is_in_step: bool,
    heard_at: Instant,
    is_full: bool,
    /// Packets are sealed with this once the other side has shown that it has it.
    agreed: Option<Cipher>,
    data: VecDeque<Bytes>,
    interests: VecDeque<Bytes>,
}

impl Session {
    pub(super) fn new(now: Instant, ends: Ends, config: &SessionConfig, seed: u64) -> Self {
        let (names, cipher) = ends.own;
        let sender = Sender::new(now, names, cipher, config.max_window);
        let (names, cipher) = ends.other;
        Self {
            sender,
            receiver: Receiver::new(now, names, cipher, config, seed),
            config: config.clone(),
            was_called: ends.was_called,
            is_open: false,
            owed: None,
            probed: (now, 0),
            hold: None,
            is_in_step: false,
            heard_at: now,
            is_full: false,
            agreed: None,
            data: VecDeque::new(),
            interests: VecDeque::new(),
        }
    }

    /// Both sides have shown their keys; `rtt` is what the set-up showed of the path.
    pub(super) fn open(&mut self, now: Instant, rtt: Option<Duration>) {
        self.is_open = true;
        self.heard_at = now;
        if let Some(rtt) = rtt {
            self.receiver.on_rtt(rtt);
        }
        self.pump(now);
    }

    /// Opens packets with `other`, too, and seals them with `own`: from now on, or once the other side uses the new keys.
    pub(super) fn renew(&mut self, own: Cipher, other: Cipher, is_other_ready: bool) {
        self.receiver.keyring().prepare(other);
        if is_other_ready {
            self.sender.renew(own);
        } else {
            self.agreed = Some(own);
        }
    }

    pub(super) fn stats(&self) -> SessionStats {
        SessionStats {
            sent: *self.sender.counters(),
            received: *self.receiver.counters(),
            rtt: self.receiver.rtt(),
        }
    }

    /// Whether the other side has all messages.
    pub(super) fn is_done(&self) -> bool {
        self.sender.is_done()
    }

    /// When the session is over, unless something comes.
    pub(super) fn silent_at(&self) -> Instant {
        self.heard_at + self.config.max_silence
    }

    /// Messages that may be sent at once.
    pub(super) fn room(&self) -> usize {
        self.config.max_queued.saturating_sub(self.sender.queued())
    }

    /// Sends a message.
    ///
    /// # Errors
    /// With the message, if there is no room. Where the flow is steady the oldest one makes room.
    pub(super) fn send(&mut self, now: Instant, kind: Kind, body: Bytes) -> Result<(), Bytes> {
        let is_steady = matches!(self.config.flow, Flow::Steady { .. });
        if !is_steady && kind == Kind::Message && self.room() == 0 {
            self.is_full = true;
            return Err(body);
        }
        self.sender.push(kind, body);
        if is_steady {
            self.sender.keep_newest(self.config.max_queued);
        }
        self.probed.1 = 0;
        self.pump(now);
        Ok(())
    }

    pub(super) const fn wake_when_room(&mut self) {
        self.is_full = true;
    }

    /// Whether there is room again after there was none; once.
    pub(super) fn take_room(&mut self) -> bool {
        let has_room = self.is_full && self.room() > self.config.max_queued / 2;
        self.is_full &= !has_room;
        has_room
    }

    pub(super) fn handle_interest(
        &mut self,
        now: Instant,
        number: u64,
        interest: (Option<Bytes>, Duration),
    ) {
        if let Some(answer) = self.sender.handle_interest(now, number, interest) {
            self.answer(answer);
        }
        self.pump(now);
    }

    pub(super) fn handle_data(&mut self, now: Instant, number: u64, data: &Data, is_marked: bool) {
        let heard = self.receiver.handle_data(now, number, data, is_marked);
        if let Some((next, has_message)) = heard {
            self.heard_at = now;
            if self.receiver.keyring().is_settled()
                && let Some(own) = self.agreed.take()
            {
                self.sender.renew(own);
            }
            self.sender.handle_acknowledgement(next);
            if has_message {
                let (since, count) = self.owed.unwrap_or((now, 0));
                self.owed = Some((since, count + 1));
            }
            let hold = self.hold_until(now);
            self.hold = hold.map(|until| self.hold.unwrap_or(until).min(until));
        }
        self.pump(now);
    }

    /// Has the other side hear at once of what came.
    pub(super) fn acknowledge(&mut self, now: Instant) {
        self.owed = Some((now.saturating_sub(self.acknowledgement_delay()), 1));
        self.pump(now);
    }

    /// Until when the next Interests wait for Data to leave with.
    ///
    /// Where the flow is steady they are ahead by as much. Where messages are few, those that wait suffice until the echo is sent.
    /// Else whoever was called lets the first ones wait until the caller requests something, half a round trip at most: from then on
    /// both send Data and Interests at the same time, and none waits for longer than a millisecond. On short paths none waits.
    fn hold_until(&self, now: Instant) -> Option<Instant> {
        let wait = match self.config.flow {
            Flow::Steady { interval, .. } => interval,
            Flow::Elastic {
                standing,
                is_interactive: true,
                ..
            } if !self.receiver.other_has_more() => {
                let is_enough = self.receiver.waiting() * 2 >= standing as usize;
                is_enough.then_some(ECHO_HOLD)?
            }
            Flow::Elastic { .. } if self.was_called && self.sender.queued() > 0 => {
                let rtt = self.receiver.rtt().unwrap_or_default();
                if rtt < HOLD_MARGIN * HOLD_SHARE {
                    return None;
                }
                let phase = if self.is_in_step {
                    Duration::ZERO
                } else {
                    rtt / 2
                };
                HOLD_MARGIN + phase
            }
            Flow::Elastic { .. } => return None,
        };
        self.config.bundles.then(|| now + wait)
    }

    pub(super) fn poll_message(&mut self) -> Option<Received> {
        self.receiver.poll_message()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
        self.pump(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if !self.is_open {
            return None;
        }
        let empty = [self.owed_at(), self.probe_at(), Some(self.keep_alive_at())];
        let empty = empty.into_iter().flatten().min();
        let empty = empty.filter(|at| self.sender.queued() == 0 && self.sender.has_waiting(*at));
        let skip = self.sender.skip_at(self.receiver.margin());
        let receiver = self.receiver.poll_timeout();
        // As long as Interests are held the rate does not matter.
        let request = self.hold.or_else(|| self.receiver.next_request());
        [empty, request, skip, receiver].into_iter().flatten().min()
    }

    /// Data and Interests in turn, so that a link can send them as one.
    pub(super) fn poll_frame(&mut self) -> Option<Bytes> {
        match self.interests.len() > self.data.len() {
            true => self.interests.pop_front(),
            false => self.data.pop_front(),
        }
    }

    fn answer(&mut self, answer: Answer) {
        let frame = face::answer(answer.data, answer.pit_token);
        self.data.push_back(frame);
    }

    /// Sends what can be sent, Data first.
    fn pump(&mut self, now: Instant) {
        if !self.is_open {
            return;
        }
        let mut has_sent = false;
        let margin = self.receiver.margin();
        while let Some(answer) = self.sender.make_next(now, (self.receiver.next(), margin)) {
            self.answer(answer);
            has_sent = true;
        }
        if !has_sent && self.sender.queued() == 0 {
            has_sent = self.send_empty(now);
        }
        if has_sent {
            self.owed = None;
        }
        while let Some(interest) = self.receiver.repeat_next(now) {
            self.interests.push_back(interest);
        }
        if has_sent || self.hold.is_none_or(|until| until <= now) {
            self.is_in_step |= self.hold.take().is_some();
            while let Some(interest) = self.receiver.request_next(now) {
                self.interests.push_back(interest);
            }
        }
        if has_sent && self.config.bundles && self.is_interactive() && self.interests.is_empty() {
            self.interests.extend(self.receiver.refresh_next(now));
        }
    }

    /// Sends an empty packet if one is due.
    fn send_empty(&mut self, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let is_probe = is_due(self.probe_at());
        if !is_probe && !is_due(self.owed_at()) && self.keep_alive_at() > now {
            return false;
        }
        let Some(answer) = self.sender.make_empty(now, self.receiver.next()) else {
            return false;
        };
        if is_probe {
            self.probed = (now, self.probed.1 + 1);
        }
        self.answer(answer);
        true
    }

    fn owed_at(&self) -> Option<Instant> {
        let (since, count) = self.owed?;
        Some(match count >= MAX_UNACKNOWLEDGED {
            true => since,
            false => since + self.acknowledgement_delay(),
        })
    }

    /// When an empty packet is to show the other side that it misses a message.
    fn probe_at(&self) -> Option<Instant> {
        let since = self.sender.unacknowledged_since()?;
        let (probed_at, probes) = self.probed;
        let rtt = self.receiver.rtt().unwrap_or(Duration::from_millis(250));
        let is_first = probes == 0 && self.is_interactive();
        if is_first {
            return Some(since + (rtt / 4).max(MIN_PROBE));
        }
        let wait = rtt * 5 / 4 + self.acknowledgement_delay() * 2;
        let doublings = probes.saturating_sub(PROMPT_PROBES).min(10);
        let wait = wait.saturating_mul(1 << doublings).min(MAX_PROBE);
        Some(since.max(probed_at) + wait)
    }

    const fn is_interactive(&self) -> bool {
        matches!(
            self.config.flow,
            Flow::Elastic {
                is_interactive: true,
                ..
            }
        )
    }

    fn acknowledgement_delay(&self) -> Duration {
        let delay = self.config.acknowledgement_delay;
        match self.is_interactive() {
            true => delay.min(MIN_PROBE),
            false => delay,
        }
    }

    fn keep_alive_at(&self) -> Instant {
        self.sender.sent_at() + self.config.keep_alive
    }
}
