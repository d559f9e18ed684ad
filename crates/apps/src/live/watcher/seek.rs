//! Goes into the past, and back to live.

use core::time::Duration;

use namecast_packet::{Data, Interest};
use namecast_units::{Instant, Timestamp};

use super::Watcher;
use super::output::{Event, Output};
use super::past::{self, Player, Wanted};
use super::pull;

/// Nearer to live than this, live is what is meant: there is nothing to read ahead.
const LIVE_EDGE: Duration = Duration::from_secs(1);
/// What plays from the past and has nothing more to play is at the live edge if it is so near.
const REACHED: Duration = Duration::from_secs(5);
/// A publisher that answered so lately is there.
const ALIVE: Duration = Duration::from_secs(5);

/// Where to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// To what is published now.
    Live,
    /// To what was captured at this time, by the publisher's clock; it goes on at normal speed.
    To(Timestamp),
}

impl Watcher {
    /// Goes to another time. The first frame shown is the one captured at the time or last before it; a time in the
    /// future is live. May be called at any time; before the stream is joined it is done then.
    pub fn seek(&mut self, now: Instant, to: Seek) {
        match to {
            Seek::To(time) => self.wanted = Some(time),
            Seek::Live => {
                self.wanted = None;
                self.go_live(now);
            }
        }
        self.settle(now);
    }

    /// How far playback is behind what is published now; `None` while it is live.
    pub fn behind(&self, now: Instant) -> Option<Duration> {
        let playing = self.past.as_ref()?.playing(now)?;
        Some(self.publisher_now(now).since(playing))
    }

    /// The publisher's clock now, as far as it is known; else ours.
    fn publisher_now(&self, now: Instant) -> Timestamp {
        let heard = self.heard.map(|(at, served_at)| served_at + now.since(at));
        heard.unwrap_or_else(|| self.wall(now))
    }

    /// Begins to play from the past if that is wanted and possible by now.
    fn begin_past(&mut self, now: Instant) {
        if !self.is_announced || self.verifier.is_none() {
            return;
        }
        let Some(time) = self.wanted.take() else {
            return;
        };
        if self.publisher_now(now).since(time) < LIVE_EDGE {
            self.go_live(now);
            return;
        }
        let wanted = self.wanted_streams();
        let had_past = self.past.replace(Player::new(now, time, wanted)).is_some();
        if !had_past {
            self.rest(now);
        }
        self.reset();
        self.event(Event::Seeking { to: time });
    }

    /// The streams to play, the one that leads first.
    fn wanted_streams(&self) -> Vec<Wanted> {
        let Some((_, catalogue)) = &self.catalogue else {
            return Vec::new();
        };
        let streams = self.config.wanted().filter_map(|(kind, choice)| {
            let info = catalogue.streams.iter().find(|s| s.kind == kind)?;
            let rung = pull::choose(info, &choice)?;
            let root = self.names.root().builder();
            Some(Wanted {
                kind,
                stream: root.generic(&info.name).finish(),
                names: self.names.rung(&info.name, &rung.name),
                rung: rung.clone(),
            })
        });
        streams.collect()
    }

    /// Stops pulling what is live.
    fn rest(&mut self, now: Instant) {
        for pulled in core::mem::take(&mut self.streams) {
            let seed = self.random.next_u64();
            let choice = self.config.wanted().find(|(kind, _)| *kind == pulled.kind);
            let rung = choice.and_then(|(_, choice)| pull::choose(&pulled.info, &choice));
            let Some(rung) = rung else {
                continue;
            };
            let mut resting = self.workshop(now).pull(now, &pulled.info, rung, seed);
            resting.inherit(pulled);
            self.streams.push(resting);
        }
        self.is_starved = false;
    }

    /// What is handed out next does not follow what was.
    fn reset(&mut self) {
        let shown = self.streams.iter().filter(|pulled| pulled.had_frame);
        let kinds: Vec<_> = shown.map(|pulled| pulled.kind).collect();
        for stream in kinds {
            self.push(Output::Discontinuity { stream });
        }
    }

    fn go_live(&mut self, now: Instant) {
        if self.past.take().is_some() {
            self.reset();
            self.event(Event::BackToLive);
            self.probe(now);
        }
    }

    /// Begins again where playback is: with another rung, or a decoder that failed.
    pub(super) fn seek_again(&mut self, now: Instant) {
        if let Some(past) = &self.past {
            self.wanted = self.wanted.or_else(|| past.playing(now));
        }
    }

    /// Takes Data that playback from the past asked for. Tells whether it did.
    pub(super) fn on_past_data(&mut self, now: Instant, data: &Data) -> bool {
        let (Some(past), Some(verifier)) = (&mut self.past, &self.verifier) else {
            return false;
        };
        match past.handle_data(now, data, &**verifier) {
            Ok(taken) => taken,
            Err(()) => {
                self.counters.verification_failures += 1;
                true
            }
        }
    }

    /// Does what playback from the past wants.
    pub(super) fn run_past(&mut self, now: Instant) {
        self.begin_past(now);
        let Some(mut past) = self.past.take() else {
            return;
        };
        past.advance(now);
        past.hand_out(now, |kind| self.config.lead(kind));
        let (started_at, mut is_over) = (past.started_at(), false);
        while let Some(output) = past.poll_output() {
            match output {
                past::Output::Interest(interest) => {
                    let nonce = self.nonce();
                    self.send(interest.build(nonce));
                }
                past::Output::Sample(kind, sample) => {
                    let at = self.streams.iter().position(|pulled| pulled.kind == kind);
                    if let Some(at) = at {
                        self.hand_out(now, at, sample);
                    }
                }
                past::Output::Discontinuity(stream) => self.push(Output::Discontinuity { stream }),
                past::Output::Playing(captured_at) => self.event(Event::PlayingFrom {
                    captured_at,
                    after: now.since(started_at),
                }),
                past::Output::Nothing => {
                    self.event(Event::NothingKept);
                    is_over = true;
                }
            }
        }
        let is_at_the_edge = past.is_dry(now)
            && self.is_alive(now)
            && past
                .playing(now)
                .is_some_and(|playing| self.publisher_now(now).since(playing) < REACHED);
        self.past = Some(past);
        if is_over || is_at_the_edge {
            self.go_live(now);
        }
    }

    fn is_alive(&self, now: Instant) -> bool {
        self.heard.is_some_and(|(at, _)| now.since(at) < ALIVE)
    }

    pub(super) fn past_timeout(&self) -> Option<Instant> {
        self.past
            .as_ref()?
            .poll_timeout(|kind| self.config.lead(kind))
    }

    /// Whether an Interest that came back was one of playback from the past.
    pub(super) fn on_past_nack(&mut self, now: Instant, interest: &Interest) -> bool {
        let past = self.past.as_mut();
        past.is_some_and(|past| past.handle_nack(now, interest.name()))
    }
}
