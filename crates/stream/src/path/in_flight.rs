//! Interests that are out, and what of them should be here.

use std::collections::BTreeMap;

use core::time::Duration;

use namecast_packet::{Name, Nonce};
use namecast_units::{ByteSize, Instant};

use super::measure::Path;
use super::names::Late;
use super::want::{Kind, Selectors, Token, Tokens, Want};

/// Data that was overtaken by so much in what should have been its order may be lost.
const OVERTAKEN: Duration = Duration::from_millis(6);
/// What a path without jitter may differ by.
const SLACK: f64 = 0.012;
/// Nothing waits longer in any queue.
const GONE: f64 = 1.5;
/// Interests leave so long before they must; what leaves within that counts as out.
const LEAVES_WITHIN: Duration = Duration::from_millis(55);

/// One Interest, or several for the same name.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub name: Name,
    pub selectors: Selectors,
    pub kind: Kind,
    pub nonce: Nonce,
    /// When the first Interest left, and the last.
    pub first_sent_at: Instant,
    pub sent_at: Instant,
    pub expires_at: Instant,
    pub available_at: Option<Instant>,
    /// When it would be here without queues.
    pub ideal: Instant,
    pub size: ByteSize,
    pub attempts: u32,
    /// It is taken for lost.
    pub is_lost: bool,
    /// An earlier one was.
    pub was_lost: bool,
    /// Nobody wants its Data any more, which comes all the same.
    pub is_withdrawn: bool,
    /// An equal Interest of another token is out in its place: it is no traffic of its own.
    pub rides: bool,
}

/// An Interest that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    pub nonce: Nonce,
    pub sent_at: Instant,
    pub expires_at: Instant,
}

impl Sent {
    /// Returns the Interest, if its Data may still be on the way.
    pub(super) fn out(&self, now: Instant) -> Option<Out> {
        (!self.is_lost && self.expires_at > now).then_some(Out {
            nonce: self.nonce,
            sent_at: self.sent_at,
            expires_at: self.expires_at,
        })
    }
}

/// What the table looks like now. Sizes in bits, times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    /// Should be here.
    pub queued: f64,
    /// The oldest of that is so late.
    pub overdue: f64,
    /// So many of it.
    pub late_count: usize,
    /// Fills the window.
    pub window: f64,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    entries: BTreeMap<Token, Sent>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, token: Token) -> Option<&Sent> {
        self.entries.get(&token)
    }

    /// Removes and returns the Interests that are out for `tokens`.
    pub(super) fn take(&mut self, tokens: &Tokens) -> Vec<(Token, Sent)> {
        let taken = self.entries.extract_if(tokens.clone(), |_, _| true);
        taken.collect()
    }

    /// Records that the Interest of `want` left at `out`, now or, for another token, before.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        want: Want,
        (out, rides): (Out, bool),
        path: &Path,
    ) {
        let before = self.entries.get(&want.token);
        let attempts = before.map_or(0, |before| before.attempts) + 1;
        let first_sent_at = before.map_or(out.sent_at, |before| before.first_sent_at);
        let was_lost = before.is_some_and(|before| before.is_lost || before.was_lost);
        self.entries.insert(
            want.token,
            Sent {
                selectors: want.selectors(),
                name: want.name,
                kind: want.kind,
                nonce: out.nonce,
                first_sent_at,
                sent_at: out.sent_at,
                expires_at: out.expires_at,
                available_at: want.available_at,
                ideal: path.ideal(now, out.sent_at, want.available_at),
                size: want.size,
                attempts,
                is_lost: false,
                was_lost,
                is_withdrawn: false,
                rides,
            },
        );
    }

    /// Returns when the Interest left that Data answers which comes now: too soon for the last one, it is an earlier one's.
    pub(super) fn answered(entry: &Sent, now: Instant, path: &Path) -> Instant {
        match now.since(entry.sent_at) < path.round_trip(now) {
            true => entry.first_sent_at,
            false => entry.sent_at,
        }
    }

    /// Returns whether Data that comes now shows that an earlier Interest for it was in vain, which nobody has noticed: it was overdue
    /// when it was requested again.
    /// `answered_at`: when the Interest left that it answers.
    pub(super) fn shows_loss(
        entry: &Sent,
        answered_at: Instant,
        now: Instant,
        path: &Path,
    ) -> bool {
        let first_ideal = path.ideal(now, entry.first_sent_at, entry.available_at);
        entry.attempts > 1
            && !entry.was_lost
            && first_ideal < entry.sent_at
            && answered_at == entry.sent_at
    }

    /// Adds an Interest that left over another path.
    pub(super) fn put(&mut self, now: Instant, token: Token, mut sent: Sent, path: &Path) {
        sent.ideal = path.ideal(now, sent.sent_at, sent.available_at);
        self.entries.insert(token, sent);
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Sent> {
        self.entries.remove(&token)
    }

    /// Records that nobody wants `tokens` any more.
    pub(super) fn withdraw(&mut self, tokens: &Tokens) {
        for (_, entry) in self.entries.range_mut(tokens.clone()) {
            entry.is_withdrawn = true;
        }
    }

    /// Sets when `tokens` could be here.
    pub(super) fn revise(
        &mut self,
        tokens: &Tokens,
        available_at: Instant,
        now: Instant,
        path: &Path,
    ) {
        for (_, entry) in self.entries.range_mut(tokens.clone()) {
            entry.available_at = Some(available_at);
            entry.ideal = path.ideal(now, entry.sent_at, Some(available_at));
        }
    }

    /// Every delay is longer by `shift`.
    pub(super) fn shift(&mut self, shift: Duration) {
        for entry in self.entries.values_mut() {
            entry.ideal += shift;
            entry.available_at = entry.available_at.map(|at| at + shift);
        }
    }

    pub(super) fn survey(&self, now: Instant, path: &Path) -> Survey {
        let since = path.overtaken_before();
        let until = now + path.round_trip(now) + LEAVES_WITHIN;
        let handled = path.wake_delay();
        let mut survey = Survey::default();
        let mut oldest: Option<Instant> = None;
        let live = self
            .entries
            .values()
            .filter(|entry| !entry.is_lost && !entry.rides && entry.ideal >= since);
        for entry in live {
            let bits = entry.size.as_bits() as f64;
            if entry.ideal + handled <= now {
                survey.queued += bits;
                survey.late_count += 1;
                oldest = Some(oldest.map_or(entry.ideal, |before| before.min(entry.ideal)));
            }
            if entry.kind.is_paced() && entry.ideal <= until {
                survey.window += bits;
            }
        }
        survey.overdue = oldest.map_or(0.0, |at| now.since(at + handled).as_secs_f64());
        survey
    }

    /// Returns what is lost by now and was not before. What has expired is forgotten, and so is what was withdrawn and does not come;
    /// `late` keeps the names of what nobody withdrew.
    pub(super) fn scan(&mut self, now: Instant, path: &Path, late: &mut Late) -> Vec<Token> {
        let queue = path.queue_max(now, Duration::from_millis(100));
        let tolerance = queue + SLACK + path.jitter();
        let flows = path.is_flowing_now(now);
        let newest = path.newest_ideal();
        let mut lost = Vec::new();
        self.entries.retain(|token, entry| {
            if !entry.is_lost {
                let late = now.since(entry.ideal + path.wake_delay()).as_secs_f64();
                let overtaken = flows && entry.ideal + OVERTAKEN < newest && late > tolerance;
                if overtaken || late > GONE || entry.expires_at <= now {
                    entry.is_lost = true;
                    if !entry.is_withdrawn {
                        lost.push(*token);
                    }
                }
            }
            let stays = entry.expires_at > now && !(entry.is_withdrawn && entry.is_lost);
            if !stays && !entry.is_withdrawn {
                late.insert(*token, core::mem::take(&mut entry.name));
            }
            stays
        });
        lost
    }

    /// Returns when the first of what is not lost should be here.
    pub(super) fn next_ideal(&self) -> Option<Instant> {
        let live = self.entries.values().filter(|entry| !entry.is_lost);
        live.map(|entry| entry.ideal).min()
    }
}
