//! Goes into the past, and back to live.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::{Data, Interest, Name};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::index::{self, TimeIndex};
use namecast_stream::metadata::Latest;
use namecast_stream::path::{ClientId, Nacked, Object, Request, Token};
use namecast_stream::{Rung, StreamKind, StreamNames};
use namecast_units::{Instant, Timestamp};

use super::super::past::{self, Player, Wanted};
use super::Watch;
use super::output::{Event, Label, Outbox, Watched};
use super::sealed::{Held, Origin};
use super::stream;
use super::streams::Streams;

/// Nearer to live than this, live is what is meant: there is nothing to read ahead.
const LIVE_EDGE: Duration = Duration::from_secs(1);
/// What plays from the past and has nothing more to play is at the live edge if it is so near.
const REACHED: Duration = Duration::from_secs(5);
/// A publisher that answered so lately is there.
const ALIVE: Duration = Duration::from_secs(5);
/// How often it is asked since when the past is kept. The names are the same for all who watch.
const SINCE_INTERVAL: Duration = Duration::from_secs(10);

/// Where to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// To what is published now.
    Live,
    /// To what was captured at this time, by the publisher's clock; it goes on at the speed of the configuration.
    To(Timestamp),
}

/// Where in time playback is, and where it goes.
pub(super) struct Travel {
    /// By which the uplink knows what asks since when the past is kept.
    client: ClientId,
    /// Verifier of recordings.
    verifier: Option<SharedVerifier>,
    /// What plays instead of the live streams.
    playing: Option<Player>,
    /// What will play as soon as its first sample is here. Until then, what plays goes on.
    upcoming: Option<Player>,
    /// A time to go to once the stream is joined.
    wanted: Option<Timestamp>,
    /// When the publisher itself answered last, and its clock then.
    heard: Option<(Instant, Timestamp)>,
    kept: Kept,
    requests: VecDeque<Request>,
}

/// Since when the past is kept.
#[derive(Debug, Default)]
struct Kept {
    since: Option<Timestamp>,
    /// Whether the question is out.
    is_asked: bool,
    next_at: Option<Instant>,
}

impl Travel {
    pub(super) fn new(from: Option<Timestamp>, client: ClientId) -> Self {
        Self {
            client,
            verifier: None,
            playing: None,
            upcoming: None,
            wanted: from,
            heard: None,
            kept: Kept::default(),
            requests: VecDeque::new(),
        }
    }

    pub(super) const fn is_past(&self) -> bool {
        self.playing.is_some()
    }

    /// Returns whether something else than live plays, or is about to.
    pub(super) const fn is_away(&self) -> bool {
        self.playing.is_some() || self.upcoming.is_some()
    }

    /// Returns the verifier of recordings, once it is known.
    pub(super) const fn verifier(&self) -> Option<&SharedVerifier> {
        self.verifier.as_ref()
    }

    /// Sets the verifier of recordings.
    pub(super) fn set_verifier(&mut self, verifier: SharedVerifier) {
        self.verifier = Some(verifier);
    }

    /// Returns whether live streams that did not start yet should not: the past is to be seen first.
    pub(super) const fn holds_start(&self) -> bool {
        self.wanted.is_some() || self.is_away()
    }

    /// When the publisher was heard last, and what its clock said.
    pub(super) const fn heard(&self) -> Option<(Instant, Timestamp)> {
        self.heard
    }

    /// The publisher answered, and said what time it was.
    pub(super) const fn on_heard(&mut self, now: Instant, served_at: Timestamp) {
        self.heard = Some((now, served_at));
    }

    /// Learns what is published by now.
    pub(super) fn on_latest(&mut self, latest: &[Latest]) {
        self.players().for_each(|player| player.on_latest(latest));
    }

    /// The transport came back.
    pub(super) fn handle_link_change(&mut self, now: Instant) {
        self.kept.next_at = self.kept.next_at.map(|at| at.min(now));
    }

    pub(super) const fn kept_since(&self) -> Option<Timestamp> {
        self.kept.since
    }

    /// Returns the publisher's clock now, as far as it is known; else ours, `wall`.
    fn publisher_now(&self, now: Instant, wall: Timestamp) -> Timestamp {
        self.heard
            .map_or(wall, |(at, served_at)| served_at + now.since(at))
    }

    /// Returns whether the publisher answered lately.
    fn is_alive(&self, now: Instant) -> bool {
        self.heard.is_some_and(|(at, _)| now.since(at) < ALIVE)
    }

    /// Returns when there is something to do, if nothing arrives. `asks_since`: it is to be found out since when the past is kept.
    pub(super) fn poll_timeout(
        &self,
        asks_since: bool,
        lead: impl Fn(StreamKind) -> Duration,
    ) -> Option<Instant> {
        let players = self.playing.iter().chain(&self.upcoming);
        let ask = asks_since.then(|| self.kept.next_at.unwrap_or(Instant::ZERO));
        players
            .filter_map(|player| player.poll_timeout(&lead))
            .chain(ask)
            .min()
    }

    /// Takes the Data that answers `token`. Returns whether it is of use, or `Err` if it is not what was signed; `None` if it is
    /// none of playback from the past.
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        data: &Data,
    ) -> Option<Result<bool, ()>> {
        if token.client == self.client {
            let index = data.content().and_then(|c| TimeIndex::decode(&c).ok());
            self.end_question(token, index.and_then(|index| index.since));
            return Some(Ok(true));
        }
        let verifier = self.verifier.clone();
        let player = self.player(token)?;
        Some(verifier.map_or(Ok(false), |verifier| {
            player.handle_answer(now, token, (data, &*verifier))
        }))
    }

    /// Takes an Interest that came back. Returns whether it was one of playback from the past.
    pub(super) fn on_nack(&mut self, now: Instant, nacked: Nacked) -> bool {
        if nacked.token.client == self.client {
            self.end_question(nacked.token, None);
            return true;
        }
        let player = self.player(nacked.token);
        player
            .map(|player| player.handle_nack(now, nacked))
            .is_some()
    }

    /// The question since when the past is kept, by its name.
    fn question(&self, name: Name) -> Object {
        let interest = Interest::builder(name).must_be_fresh();
        Object::new(self.client.object(0), interest, None)
    }

    /// Learns since when the past is kept.
    fn end_question(&mut self, token: Token, since: Option<Timestamp>) {
        self.kept.is_asked = false;
        self.kept.since = since;
        self.requests.push_back(Request::Forget(token));
    }

    /// Does without what did not come. Returns whether playback from the past requested it.
    pub(super) fn on_dropped(&mut self, token: Token) -> bool {
        let player = self.player(token);
        player.map(|player| player.on_dropped(token)).is_some()
    }

    fn player(&mut self, token: Token) -> Option<&mut Player> {
        self.players().find(|player| player.has_requested(token))
    }

    /// Requests nothing more of what `player` plays. Returns whether there is one.
    fn leave(&mut self, player: Option<Player>) -> bool {
        let Some(mut player) = player else {
            return false;
        };
        player.leave();
        let left = core::iter::from_fn(|| player.poll_request());
        self.requests.extend(left);
        true
    }

    /// Returns the next thing to request or to withdraw, until `None`.
    pub(super) fn poll_request(&mut self) -> Option<Request> {
        let own = self.requests.pop_front();
        own.or_else(|| self.players().find_map(Player::poll_request))
    }

    /// Begins again where playback is: with another rung, or a decoder that failed.
    pub(super) fn seek_again(&mut self, now: Instant) {
        if let Some(playing) = &self.playing {
            let goal = self.upcoming.as_ref().map(Player::goal);
            let goal = goal.or(playing.playing(now));
            self.wanted = self.wanted.or(goal);
        }
    }

    fn players(&mut self) -> impl Iterator<Item = &mut Player> {
        self.playing.iter_mut().chain(&mut self.upcoming)
    }
}

impl Watch {
    /// Goes to another time. The first frame shown is the one captured at the time or last before it; a time in the
    /// future is live. May be called at any time; before the stream is joined it is done then.
    ///
    /// What plays goes on until the first frame from the other time is here, or for good if nothing is kept of it.
    pub fn seek(&mut self, now: Instant, to: Seek) {
        match to {
            Seek::To(time) => self.travel.wanted = Some(time),
            Seek::Live => {
                self.travel.wanted = None;
                self.go_live(now);
            }
        }
        self.changed_at = Some(now);
    }

    /// How far playback is behind what is published now; `None` while it is live.
    pub fn behind(&self, now: Instant) -> Option<Duration> {
        let playing = self.travel.playing.as_ref()?.playing(now)?;
        Some(
            self.travel
                .publisher_now(now, self.config.wall(now))
                .since(playing),
        )
    }

    /// Returns whether it is known what there is, and who signs it.
    pub(super) const fn has_joined(&self) -> bool {
        self.catalogues.is_announced() && self.authority.verifier().is_some()
    }

    /// Begins to fetch what is wanted from the past if that is possible by now.
    fn begin_past(&mut self, now: Instant) {
        if !self.has_joined() {
            return;
        }
        let Some(time) = self.travel.wanted.take() else {
            return;
        };
        if self
            .travel
            .publisher_now(now, self.config.wall(now))
            .since(time)
            < LIVE_EDGE
        {
            self.go_live(now);
            return;
        }
        let wanted = self.wanted_streams();
        let before = self.travel.upcoming.take();
        self.travel.leave(before);
        let from = (time, self.config.past.speed);
        self.travel.upcoming = Some(Player::new(now, from, self.travel.kept.since, wanted));
        self.outbox.event(Event::Seeking { to: time });
    }

    /// The streams to play, the one that leads first.
    fn wanted_streams(&mut self) -> Vec<Wanted> {
        let Some(catalogue) = self.catalogues.current() else {
            return Vec::new();
        };
        let clients = &mut self.clients;
        let streams = self.config.wanted(catalogue).filter_map(|info| {
            let rung = stream::choose_recorded(info, &self.config.choice(info.kind))?;
            let source = self.config.source(&self.names, info, rung);
            Some(Wanted {
                client: clients.draw(),
                label: Label::of(info),
                stream: stream_name(&self.names, &info.name),
                names: source.names,
                rung: Rung {
                    rate: source.rate,
                    ..rung.clone()
                },
            })
        });
        streams.collect()
    }

    /// Stops pulling what is live.
    fn rest(&mut self, now: Instant) {
        for pulled in self.streams.end() {
            let client = self.clients.draw();
            let choice = self.config.choice(pulled.kind());
            let Some(rung) = stream::choose(&pulled.info, &choice) else {
                continue;
            };
            let mut resting = self.factory(now, client).pull(now, &pulled.info, rung);
            // Whoever goes back wants to see it again.
            resting.inherit(pulled);
            self.streams.push(resting);
        }
        self.streams.forget_starvation();
    }

    fn go_live(&mut self, now: Instant) {
        let (upcoming, playing) = (self.travel.upcoming.take(), self.travel.playing.take());
        let [was_going, was_past] = [upcoming, playing].map(|player| self.travel.leave(player));
        if was_past {
            self.unsealing.forget_held();
            jump(&self.streams, &mut self.outbox);
        }
        if was_past || was_going {
            self.outbox.event(Event::BackToLive);
            self.probe(now);
        }
    }

    /// Does what playback from the past wants.
    pub(super) fn run_past(&mut self, now: Instant) {
        self.begin_past(now);
        self.ask_since(now);
        self.run_upcoming(now);
        self.run_playing(now);
        self.gather();
    }

    /// Prepares what is to be played, and changes over to it once its first sample is here.
    fn run_upcoming(&mut self, now: Instant) {
        let Some(mut player) = self.travel.upcoming.take() else {
            return;
        };
        player.advance(now);
        while let Some(output) = player.poll_output() {
            match output {
                past::Output::Playing(captured_at) => {
                    let after = now.since(player.started_at());
                    self.rest(now);
                    self.unsealing.forget_held();
                    jump(&self.streams, &mut self.outbox);
                    self.outbox.event(Event::PlayingFrom { captured_at, after });
                    let before = self.travel.playing.replace(player);
                    self.travel.leave(before);
                    return;
                }
                past::Output::Nothing(unkept) => {
                    let to = player.goal();
                    self.travel.leave(Some(player));
                    self.outbox.event(Event::NothingKept { to, unkept });
                    if !self.travel.is_past() {
                        // Live may have waited for this.
                        self.probe(now);
                    }
                    return;
                }
                output => self.on_past_output(now, output, player.delegation()),
            }
        }
        self.travel.upcoming = Some(player);
    }

    /// Plays from the past.
    fn run_playing(&mut self, now: Instant) {
        let Some(mut player) = self.travel.playing.take() else {
            return;
        };
        player.advance(now);
        player.hand_out(now, |kind| self.config.lead(kind));
        let mut is_over = None;
        while let Some(output) = player.poll_output() {
            match output {
                past::Output::Nothing(unkept) => is_over = Some(unkept),
                output => self.on_past_output(now, output, player.delegation()),
            }
        }
        let playing = player.playing(now);
        let is_near = |playing| {
            self.travel
                .publisher_now(now, self.config.wall(now))
                .since(playing)
                < REACHED
        };
        let is_at_the_edge =
            player.is_dry(now) && self.travel.is_alive(now) && playing.is_some_and(is_near);
        self.travel.playing = Some(player);
        if is_over.is_some() || is_at_the_edge {
            self.go_live(now);
        }
        if let Some((unkept, to)) = is_over.zip(playing) {
            self.outbox.event(Event::NothingKept { to, unkept });
        }
    }

    /// Takes what a player gives out, which found the past at `delegation`.
    fn on_past_output(&mut self, now: Instant, output: past::Output, delegation: Option<&Name>) {
        match output {
            past::Output::Sample {
                label,
                sample,
                decode_only,
                rung,
            } => {
                let origin = Origin {
                    rung,
                    is_past: true,
                    delegation: delegation.cloned(),
                };
                self.take(now, Held::sample(label, (*sample, decode_only), origin));
            }
            past::Output::Discontinuity(stream) => self.take(now, Held::Gap(stream)),
            past::Output::Playing(_) | past::Output::Nothing(_) => {}
        }
    }

    /// Asks since when the past is kept, if the front-end wants to know.
    fn ask_since(&mut self, now: Instant) {
        let is_due = self.travel.kept.next_at.is_none_or(|at| at <= now);
        if !self.config.past.asks_since || !self.has_joined() || !is_due {
            return;
        }
        self.travel.kept.next_at = Some(now + SINCE_INTERVAL);
        let video = self.catalogues.current().and_then(|catalogue| {
            let stream = self.config.wanted(catalogue).next()?;
            let is_video = stream.kind == StreamKind::Video || !self.config.video;
            is_video.then(|| stream_name(&self.names, &stream.name))
        });
        let Some(stream) = video else {
            return;
        };
        if self.travel.kept.is_asked {
            // Nobody answered for a whole interval.
            self.travel.kept.since = None;
        }
        let interval = SINCE_INTERVAL.as_micros() as u64;
        let micros = self
            .travel
            .publisher_now(now, self.config.wall(now))
            .as_micros();
        let name = index::name(&stream, Timestamp::from_micros(micros - micros % interval));
        self.travel.kept.is_asked = true;
        let question = self.travel.question(name);
        self.travel.requests.push_back(Request::Object(question));
    }
}

fn stream_name(names: &StreamNames, stream: &str) -> Name {
    names.root().builder().generic(stream).finish()
}

/// Reports a jump in time to each stream that showed a frame.
fn jump(streams: &Streams, outbox: &mut Outbox) {
    for shown in streams.iter().filter(|pulled| pulled.had_frame) {
        outbox.push(Watched::Discontinuity {
            stream: shown.kind(),
            is_jump: true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::uplink;
    use crate::live::WatcherConfig;

    /// Whether the stream is live, and since when its past is kept, are two questions: asked together, each leaves once.
    #[test]
    fn a_challenge_displaces_no_question_about_the_past() {
        let mut uplink = uplink();
        let config = WatcherConfig::new("/demo".parse().unwrap());
        let mut watch = Watch::new(config, uplink.new_clients());
        let now = Instant::ZERO + Duration::from_secs(5);
        watch.proof.begin(Instant::ZERO);
        let question = watch
            .travel
            .question("/demo/video/index/t=1".parse().unwrap());
        watch.requests.push_back(Request::Object(question));
        watch.prove(now);
        while let Some(request) = watch.poll_request() {
            uplink.carry_out(now, request);
        }
        let counters = uplink.counters();
        assert_eq!((counters.objects, counters.object_retransmissions), (2, 0));
    }
}
