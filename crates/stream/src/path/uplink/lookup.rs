//! Data and Nacks find their clients by name, and wants find equal Interests that are out.

use namecast_packet::{Interest, Name};
use namecast_units::Instant;

use crate::feedback::Received;

use super::super::in_flight::{InFlight, Out};
use super::super::measure::Path;
use super::super::names::{Late, Names};
use super::super::objects::{Objects, Pending};
use super::super::queue::Queue;
use super::super::want::{Answer, Event, Nacked, Selectors, Token, Tokens, Want};
use super::Uplink;

impl Uplink {
    /// Takes Data `name`. What it answers is for [`poll_answer`](Self::poll_answer); what it shows of the path counts from the next
    /// call on.
    ///
    /// A want is answered once; an object again until it is [forgotten](Self::forget), as its client decides whether it is what was
    /// requested.
    pub fn handle_data(&mut self, now: Instant, name: &Name, received: &Received) {
        self.finish_arrival(now);
        let mut answers = core::mem::take(&mut self.answers);
        answers.clear();
        let exact = self.wanted.names.of(name);
        let exact = exact.filter(|token| self.wanted.has(*token, name));
        let tokens = self.wanted.objects.prefixes_of(name).chain(exact);
        answers.extend(tokens.map(|token| Answer {
            token,
            sent_at: None,
        }));
        for answer in &mut answers {
            answer.sent_at = self.answer(now, answer.token, name, received);
        }
        self.answers = answers;
    }

    /// Returns the next want or object that the last Data answers, until `None`.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Takes Data for `token`. Returns when the Interest left that was out for it.
    fn answer(
        &mut self,
        now: Instant,
        token: Token,
        name: &Name,
        received: &Received,
    ) -> Option<Instant> {
        if let Some(sent_at) = self.wanted.objects.on_answer(token) {
            return sent_at;
        }
        self.wanted.names.remove(name, token);
        self.wanted.queue.remove(token);
        self.wanted.late.remove(token);
        let entry = self.wanted.in_flight.remove(token)?;
        // One packet is measured once.
        if !entry.rides && self.arriving.is_none() {
            self.begin_arrival(now, token, &entry, received);
        }
        Some(entry.sent_at)
    }

    /// Takes an Interest that came back. Returns the wants and objects that it was for.
    pub fn handle_nack(&mut self, interest: &Interest) -> Vec<Nacked> {
        let (name, nonce) = (interest.name(), interest.nonce());
        let tokens = self.wanted.names.of(name);
        let tokens = tokens.filter(|token| self.wanted.has(*token, name));
        let is_latest = |token| {
            let entry = self.wanted.in_flight.get(token);
            entry.is_some_and(|entry| Some(entry.nonce) == nonce)
        };
        let nacked = tokens.map(|token| Nacked {
            token,
            is_latest: is_latest(token),
            attempts: self.wanted.objects.get(token).map_or(0, |it| it.attempts),
        });
        let nacked: Vec<_> = nacked.collect();
        for nacked in &nacked {
            self.wanted.objects.on_nack(nacked.token, nonce);
        }
        nacked
    }

    /// Lets an Interest that is `out` for another token stand for that of `want`.
    pub(super) fn ride(&mut self, now: Instant, want: Want, out: Out) {
        let token = want.token;
        self.wanted.add_name(&want.name, token);
        self.wanted
            .in_flight
            .insert(now, want, (out, true), &self.path);
        self.tell(
            token,
            Event::Sent {
                token,
                nonce: out.nonce,
                order: self.counters().interests,
            },
        );
    }
}

/// What clients want: waiting to leave, out, or late; objects; and by which names.
#[derive(Debug, Default)]
pub(in crate::path) struct Wanted {
    pub queue: Queue,
    pub in_flight: InFlight,
    pub objects: Objects,
    pub late: Late,
    pub names: Names,
}

impl Wanted {
    /// Forgets all of `token`.
    pub(super) fn forget(&mut self, token: Token) {
        self.objects.remove(token);
        self.queue.remove(token);
        self.in_flight.remove(token);
        self.late.remove(token);
    }

    /// Requests `tokens` no more.
    pub(super) fn withdraw(&mut self, tokens: &Tokens) {
        self.objects.take(tokens);
        self.queue.take(tokens);
        self.queue.forget_weights(tokens);
        self.in_flight.withdraw(tokens);
        self.late.take(tokens);
    }

    /// Takes all of `tokens` from `other`, whose Interests left over another path than this.
    pub(super) fn take_from(
        &mut self,
        now: Instant,
        other: &mut Self,
        tokens: &Tokens,
        path: &Path,
    ) {
        self.queue.take_weights(&mut other.queue, tokens);
        for want in other.queue.take(tokens) {
            self.add_name(&want.name, want.token);
            self.queue.insert(now, want);
        }
        for (token, sent) in other.in_flight.take(tokens) {
            self.add_name(&sent.name, token);
            self.in_flight.put(now, token, sent, path);
        }
        for pending in other.objects.take(tokens) {
            if let Some(name) = pending.name() {
                self.add_name(name, pending.token());
            }
            self.objects.put(pending);
        }
        for (token, name) in other.late.take(tokens) {
            self.add_name(&name, token);
            self.late.insert(token, name);
        }
    }

    /// Records that `token` wants `name`.
    pub(super) fn add_name(&mut self, name: &Name, token: Token) {
        let Self {
            names,
            queue,
            in_flight,
            objects,
            late,
        } = self;
        let live = queue.len() + in_flight.len() + objects.len() + late.len();
        names.purge(live, |token| {
            queue.get(token).is_some()
                || in_flight.get(token).is_some()
                || objects.get(token).is_some()
                || late.get(token).is_some()
        });
        names.insert(name, token);
    }

    /// Returns whether `token` wants `name`.
    fn has(&self, token: Token, name: &Name) -> bool {
        let in_flight = self.in_flight.get(token).map(|entry| &entry.name);
        in_flight == Some(name)
            || self.queue.get(token).is_some_and(|want| want.name == *name)
            || self.objects.get(token).and_then(Pending::name) == Some(name)
            || self.late.get(token) == Some(name)
    }

    /// Returns an Interest of another token that `want` need not repeat. One that is to go another way stands for itself, and so
    /// does one that is sent again though its Data may be on the way.
    pub(super) fn equal_out(&self, now: Instant, want: &Want) -> Option<Out> {
        let own = self.in_flight.get(want.token);
        let is_again = own.is_some_and(|entry| !entry.is_lost && !entry.is_withdrawn);
        if is_again || want.avoid_face.is_some() {
            return None;
        }
        self.out_for_others(now, want.token, &want.name, &want.selectors())
    }

    /// Returns an Interest for `name` that is out, of another token than this.
    pub(super) fn out_for_others(
        &self,
        now: Instant,
        token: Token,
        name: &Name,
        selectors: &Selectors,
    ) -> Option<Out> {
        let others = self.names.of(name).filter(|other| *other != token);
        others
            .filter(|other| self.has(*other, name))
            .find_map(|other| {
                let entry = self.in_flight.get(other);
                let entry =
                    entry.filter(|entry| entry.name == *name && entry.selectors == *selectors);
                let out = entry.and_then(|entry| entry.out(now));
                out.or_else(|| self.objects.get(other)?.out(now, selectors))
            })
    }

    /// Returns the tokens whose wants wait for an Interest like that of `want`, which leaves now.
    pub(super) fn equal_queued(&self, want: &Want) -> Vec<Token> {
        let is_equal = |other: &Want| {
            other.name == want.name
                && other.selectors() == want.selectors()
                && other.avoid_face.is_none()
        };
        let others = self.names.of(&want.name);
        let others = others.filter(|other| *other != want.token);
        let equal = others.filter(|other| self.queue.get(*other).is_some_and(is_equal));
        equal.collect()
    }
}
