//! One's own packets: made when an Interest waits for their number, kept until the other side has them.
//!
//! A message takes the lowest number that an Interest waits for, and says which numbers before it have no message: neither an Interest
//! that was lost nor an empty packet holds anything up.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use derive_more::AddAssign;
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Name};
use namecast_units::{Duration, Instant};

use super::keys::Cipher;
use super::message::{Kind, Message};

/// What a sender counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AddAssign)]
pub struct SenderCounters {
    /// Packets made.
    pub packets: u64,
    /// Of those, packets with a message.
    pub messages: u64,
    /// Packets sent again.
    pub repeated: u64,
    /// Interests for what the other side has already, or for numbers that are not used.
    pub stale: u64,
    /// Interests for numbers too far ahead, which are ignored.
    pub too_far: u64,
}

/// A message that waits for an Interest.
#[derive(Clone, Debug)]
struct Queued {
    kind: Kind,
    body: Bytes,
}

/// An Interest that waits for a message.
#[derive(Clone, Debug)]
struct Waiting {
    pit_token: Option<Bytes>,
    since: Instant,
    until: Instant,
}

/// A packet to be sent, with the token of the Interest that it answers.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) data: Bytes,
    pub(super) pit_token: Option<Bytes>,
}

#[derive(Debug)]
pub(super) struct Sender {
    names: Name,
    cipher: Cipher,
    max_window: u64,
    queue: VecDeque<Queued>,
    /// The lowest number that is not used.
    next: u64,
    /// The other side has all below.
    acknowledged: u64,
    kept: BTreeMap<u64, Bytes>,
    waiting: BTreeMap<u64, Waiting>,
    /// The number after that of the newest message: nobody needs those from here on that are made already.
    after_messages: u64,
    /// The newest message's number, and when it was sent.
    last_message: Option<(u64, Instant)>,
    sent_at: Instant,
    counters: SenderCounters,
}

impl Sender {
    pub(super) fn new(now: Instant, names: Name, cipher: Cipher, max_window: u64) -> Self {
        Self {
            names,
            cipher,
            max_window,
            queue: VecDeque::new(),
            next: 0,
            acknowledged: 0,
            kept: BTreeMap::new(),
            waiting: BTreeMap::new(),
            after_messages: 0,
            last_message: None,
            sent_at: now,
            counters: SenderCounters::default(),
        }
    }

    /// Seals all packets from the next one on with `cipher`.
    pub(super) fn renew(&mut self, cipher: Cipher) {
        self.cipher = cipher;
    }

    pub(super) const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    pub(super) fn push(&mut self, kind: Kind, body: Bytes) {
        self.queue.push_back(Queued { kind, body });
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Drops the application's oldest messages until no more than `count` wait: who speaks does not wait for who hears nothing.
    pub(super) fn keep_newest(&mut self, count: usize) {
        while self.queue.len() > count
            && let Some(oldest) = (self.queue.iter()).position(|it| it.kind == Kind::Message)
        {
            self.queue.remove(oldest);
        }
    }

    /// Whether the other side has everything.
    pub(super) fn is_done(&self) -> bool {
        let is_acknowledged = |(number, _): (u64, Instant)| number < self.acknowledged;
        self.queue.is_empty() && self.last_message.is_none_or(is_acknowledged)
    }

    /// Takes an Interest for `number`. Returns the packet, if it was made before.
    pub(super) fn handle_interest(
        &mut self,
        now: Instant,
        number: u64,
        (pit_token, lifetime): (Option<Bytes>, Duration),
    ) -> Option<Answer> {
        if number < self.next {
            let Some(data) = self.kept.get(&number) else {
                self.counters.stale += 1;
                return None;
            };
            self.counters.repeated += 1;
            let data = data.clone();
            return Some(Answer { data, pit_token });
        }
        if number - self.next >= self.max_window {
            self.counters.too_far += 1;
            return None;
        }
        let since = self.waiting.get(&number).map_or(now, |it| it.since);
        let waiting = Waiting {
            pit_token,
            since,
            until: now + lifetime,
        };
        self.waiting.insert(number, waiting);
        None
    }

    /// The other side has all numbers below `next`.
    pub(super) fn handle_acknowledgement(&mut self, next: u64) {
        if next > self.acknowledged && next <= self.next {
            self.acknowledged = next;
            self.kept = self.kept.split_off(&next);
        }
    }

    /// Makes the next packet, if there is a message and an Interest for it. Lower Interests may have been overtaken by up to
    /// `margin`.
    pub(super) fn make_next(
        &mut self,
        now: Instant,
        (received, margin): (u64, Duration),
    ) -> Option<Answer> {
        if self.skip_at(margin).is_none_or(|at| at > now) {
            return None;
        }
        let (number, waiting) = self.take_waiting(now)?;
        let Queued { kind, body } = self.queue.pop_front()?;
        self.last_message = Some((number, now));
        self.counters.messages += 1;
        Some(self.make(now, (number, waiting), (kind, received, &body)))
    }

    /// When the next message can be sent: once an Interest waits for the next number, or for a higher one for long enough that the
    /// next one's is lost.
    pub(super) fn skip_at(&self, margin: Duration) -> Option<Instant> {
        let (&number, waiting) = self.waiting.range(self.next..).next()?;
        let is_next = number == self.next;
        let at = if is_next {
            Instant::ZERO
        } else {
            waiting.since + margin
        };
        (!self.queue.is_empty() && number < self.window_end()).then_some(at)
    }

    /// Numbers from here on are not used before the other side has more.
    const fn window_end(&self) -> u64 {
        self.acknowledged.saturating_add(self.max_window)
    }

    /// Makes an empty packet, if an Interest waits.
    pub(super) fn make_empty(&mut self, now: Instant, received: u64) -> Option<Answer> {
        let waiting = self.take_waiting(now)?;
        Some(self.make(now, waiting, (Kind::Nothing, received, &[])))
    }

    /// Takes the lowest number that an Interest waits for, within the window that the other side has not acknowledged.
    fn take_waiting(&mut self, now: Instant) -> Option<(u64, Waiting)> {
        let end = self.window_end();
        while let Some(first) = self.waiting.first_entry() {
            let (number, until) = (*first.key(), first.get().until);
            if number >= self.next && until > now {
                return (number < end).then(|| first.remove_entry());
            }
            first.remove();
        }
        None
    }

    fn make(
        &mut self,
        now: Instant,
        (number, waiting): (u64, Waiting),
        (kind, next, body): (Kind, u64, &[u8]),
    ) -> Answer {
        let message = Message {
            kind,
            more: !self.queue.is_empty(),
            next,
            skipped: number - self.after_messages,
            held: now.since(waiting.since),
            body,
        };
        let name = self.names.builder().sequence(number).finish();
        let sealed = (self.cipher).seal(number, name.value(), &message.encode());
        let data = Data::builder(name).content(sealed).sign(&NullSigner);
        let data = data.wire().clone();
        self.next = number + 1;
        if kind != Kind::Nothing {
            self.after_messages = self.next;
        }
        self.kept.insert(number, data.clone());
        self.sent_at = now;
        self.counters.packets += 1;
        Answer {
            data,
            pit_token: waiting.pit_token,
        }
    }

    /// Whether an Interest waits that can be answered at `at`.
    pub(super) fn has_waiting(&self, at: Instant) -> bool {
        let window = self.next..self.window_end().max(self.next);
        self.waiting.range(window).any(|(_, it)| it.until > at)
    }

    /// When the newest packet was made.
    pub(super) const fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// When the newest message was sent, unless the other side has it.
    pub(super) fn unacknowledged_since(&self) -> Option<Instant> {
        let (number, at) = self.last_message?;
        (number >= self.acknowledged).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 is empty, nobody requests 1, and 2 is a message: both before it hold nothing up. 3 is a message behind it.
    #[test]
    fn a_message_says_which_numbers_before_it_have_none() {
        let cipher = Cipher::new(&[7; 32]);
        let names: Name = "/a/call".parse().unwrap();
        let now = Instant::ZERO;
        let mut sender = Sender::new(now, names, cipher.clone(), 16);
        for number in [0, 2, 3] {
            let asked = (None, Duration::from_secs(1));
            assert!(sender.handle_interest(now, number, asked).is_none());
        }
        let skipped = |answer: Option<Answer>, number: u64| {
            let data = Data::decode(answer.unwrap().data).unwrap();
            let name = data.name().value();
            let opened = cipher.open(number, name, &data.content().unwrap());
            Message::decode(&opened.unwrap()).unwrap().skipped
        };
        assert_eq!(skipped(sender.make_empty(now, 0), 0), 0);
        for body in ["a", "b"] {
            sender.push(Kind::Message, Bytes::from(body));
        }
        assert!(
            sender
                .make_next(now, (0, Duration::from_millis(1)))
                .is_none()
        );
        let made = sender.make_next(now, (0, Duration::ZERO));
        assert_eq!(skipped(made, 2), 2);
        let made = sender.make_next(now, (0, Duration::ZERO));
        assert_eq!(skipped(made, 3), 0);
    }
}
