//! Plays from the past at normal speed, slower or faster: samples exist, so they are asked for completely and in time, a bounded while ahead.
//!
//! ```text
//!  index t=… ──▶ key sample ≤ t ──▶ all up to the sample at t ──▶ its time is now ──▶ the others follow in their rhythm
//! ```
//!
//! The first sample shown is the last one presented at or before the time; those presented before it are only decoded. A sample
//! that is late makes the clock wait; one that cannot be had is passed over at the next key sample.

mod speed;
mod track;

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::{Data, Interest, Name, Verifier};
use namecast_stream::consumer::Sample;
use namecast_stream::index::{self, TimeIndex};
use namecast_stream::metadata::Latest;
use namecast_stream::path::{ClientId, Nacked, Object, Request, Retry, Token};
use namecast_stream::{Rung, RungNames, SampleClass, SampleHeader, StreamKind};
use namecast_units::{Instant, Timestamp};

use super::watcher::{Label, Unkept};
use crate::samples::{self, Taken};
use speed::Anchor;
pub use speed::Speed;
use track::{Track, Whole};

/// Samples pulled ahead of the one that is played.
const READ_AHEAD: Duration = Duration::from_secs(2);
/// Of an index.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(2),
    max_interests: 4,
};
/// Interests out at a time.
const MAX_OUTSTANDING: usize = 256;
/// From the moment at which the first sample is here until it is shown: time to decode what comes before it.
const FIRST_LEAD: Duration = Duration::from_millis(60);
/// Nothing to play for so long: what follows may be behind a gap.
const STARVATION: Duration = Duration::from_millis(500);

/// A stream to play.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Whoever requests it.
    pub client: ClientId,
    pub label: Label,
    /// `/<root>/<stream>`.
    pub stream: Name,
    pub names: RungNames,
    pub rung: Rung,
}

/// Something a player wants done.
#[derive(Debug)]
pub(super) enum Output {
    Sample {
        label: Label,
        sample: Box<Sample>,
        /// It comes before the first one to show.
        decode_only: bool,
        /// Name of its rung.
        rung: Name,
    },
    Discontinuity(Label),
    /// Playback begins with the sample captured at this time.
    Playing(Timestamp),
    /// There is nothing to play.
    Nothing(Unkept),
}

/// Interval between requests while answers contain nothing of a stream.
const LATER: Duration = Duration::from_secs(1);
/// Most key samples of other rungs at which the index is requested until the rung to play has one.
const MAX_BEGIN_ATTEMPTS: u32 = 16;
/// Time for an archive to take the index over from a publisher that has restarted.
const TAKE_OVER: Duration = Duration::from_secs(5);

/// What is asked of the time index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Where to begin.
    Begin,
    /// What follows the sample that was played last.
    GoOn,
}

/// A request for an index.
#[derive(Clone, Debug)]
struct Inquiry {
    question: Question,
    name: Name,
    /// When it is to be sent, until it is.
    ask_at: Option<Instant>,
}

/// One stream, before and while it is played.
#[derive(Debug)]
struct Part {
    wanted: Wanted,
    request: Option<Inquiry>,
    /// Requests for the index at a later time than the one to play from.
    begin_attempts: u32,
    track: Option<Track>,
    /// The sample delivered last: capture and when it was to be shown.
    last: Option<(Timestamp, Instant)>,
}

/// Plays from the past.
#[derive(Debug)]
pub(super) struct Player {
    from: Timestamp,
    started_at: Instant,
    /// Whether the time was kept by the last answer before it was asked for.
    was_kept: bool,
    parts: Vec<Part>,
    anchor: Option<Anchor>,
    speed: Speed,
    /// The presentation time of the first sample to show.
    shows_from: Timestamp,
    /// Where archived samples are found.
    delegation: Option<Name>,
    outputs: VecDeque<Output>,
    requests: VecDeque<Request>,
}

impl Player {
    /// Plays `wanted` from `from` on; the first stream is the one that others follow. `kept_since`: as far as it is known.
    pub(super) fn new(
        now: Instant,
        (from, speed): (Timestamp, Speed),
        kept_since: Option<Timestamp>,
        wanted: Vec<Wanted>,
    ) -> Self {
        let parts = wanted.into_iter().map(|wanted| Part {
            request: Some(Inquiry::new(
                now,
                Question::Begin,
                &wanted.stream,
                wanted.decodes_by(from),
            )),
            wanted,
            begin_attempts: 0,
            track: None,
            last: None,
        });
        Self {
            from,
            started_at: now,
            was_kept: kept_since.is_some_and(|since| since <= from),
            parts: parts.collect(),
            anchor: None,
            speed,
            shows_from: from,
            delegation: None,
            outputs: VecDeque::new(),
            requests: VecDeque::new(),
        }
    }

    /// The time that it plays from.
    pub(super) const fn goal(&self) -> Timestamp {
        self.from
    }

    /// Requests nothing more, once what is left to request is polled.
    pub(super) fn leave(&mut self) {
        let tokens = self.parts.iter().map(|part| part.wanted.client.tokens());
        self.requests.extend(tokens.map(Request::Withdraw));
    }

    /// Returns the next thing to request or to withdraw, until `None`.
    pub(super) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Returns whether `token` is one of its own.
    pub(super) fn has_requested(&self, token: Token) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.wanted.client == token.client)
    }

    /// Where archived samples are found, if that is known.
    pub(super) const fn delegation(&self) -> Option<&Name> {
        self.delegation.as_ref()
    }

    pub(super) const fn started_at(&self) -> Instant {
        self.started_at
    }

    /// Publisher's clock at publication of what is shown now.
    pub(super) fn playing(&self, now: Instant) -> Option<Timestamp> {
        self.anchor.map(|anchor| anchor.playing(now))
    }

    /// Returns whether all that exists was played.
    pub(super) fn is_dry(&self, now: Instant) -> bool {
        self.parts.first().is_some_and(|part| part.is_dry(now))
    }

    /// Takes the Data that answers `token`. Returns whether it is of use, or `Err` if it is not what was signed.
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        (data, verifier): (&Data, &dyn Verifier),
    ) -> Result<bool, ()> {
        let Some(at) = self.place(token) else {
            return Ok(false);
        };
        let part = &mut self.parts[at];
        if token == part.index() {
            self.on_index(now, at, data);
            return Ok(true);
        }
        let Some(track) = &mut part.track else {
            return Ok(false);
        };
        let taken = track.on_data(token.segment, data, verifier);
        self.requests.extend(taken.requests(now, token));
        match taken {
            Taken::Bad => Err(()),
            taken => Ok(taken == Taken::Kept),
        }
    }

    /// Takes an Interest that came back.
    pub(super) fn handle_nack(&mut self, now: Instant, nacked: Nacked) {
        let is_index = |part: &Part| part.index() == nacked.token;
        let request = match self.parts.iter().any(is_index) {
            true => Request::Hasten(nacked.token, now + RETRY.first_wait / 2),
            false => samples::on_nack(now, nacked),
        };
        self.requests.push_back(request);
    }

    /// Does without what did not come.
    pub(super) fn on_dropped(&mut self, token: Token) {
        let Some(at) = self.place(token) else {
            return;
        };
        let part = &mut self.parts[at];
        if token == part.index() {
            let request = part.request.take();
            let begins = request.is_some_and(|request| request.question == Question::Begin);
            if at == 0 && begins {
                self.outputs.push_back(Output::Nothing(Unkept::Unanswered));
            }
        } else if let Some(track) = &mut part.track {
            track.give_up(token.segment);
            self.requests.push_back(Request::Withdraw(token.sample()));
        }
    }

    fn place(&self, token: Token) -> Option<usize> {
        let mut parts = self.parts.iter();
        parts.position(|part| part.wanted.client == token.client)
    }

    fn on_index(&mut self, now: Instant, at: usize, data: &Data) {
        let index = data.content().and_then(|c| TimeIndex::decode(&c).ok());
        let part = &mut self.parts[at];
        let Some((index, request)) = index.zip(part.request.take()) else {
            return;
        };
        self.requests.push_back(Request::Forget(part.index()));
        let Some(rung) = index.rung(part.wanted.names.prefix()) else {
            if at == 0 {
                // A publisher that has just restarted knows of nothing before.
                let takes_over = self.was_kept && now.since(self.started_at) < TAKE_OVER;
                if takes_over && request.question == Question::Begin {
                    let ask_at = Some(now + LATER);
                    part.request = Some(Inquiry { ask_at, ..request });
                    return;
                }
                if let Some(later) = part.begins_later(self.from, &index, &request) {
                    part.begin_attempts += 1;
                    let stream = &part.wanted.stream;
                    part.request = Some(Inquiry::new(now, Question::Begin, stream, later));
                    self.ask_index(now);
                    return;
                }
                let since = index.since;
                self.outputs
                    .push_back(Output::Nothing(Unkept::NotThere { since }));
            } else {
                // The stream that others follow may begin before this one.
                let begin = index.since.unwrap_or(self.from);
                let stream = &part.wanted.stream;
                let mut again = Inquiry::new(now, Question::Begin, stream, begin);
                again.ask_at = Some(match again.name == request.name {
                    true => now + LATER,
                    false => now,
                });
                part.request = Some(again);
                self.ask_index(now);
            }
            return;
        };
        match (request.question, &mut part.track) {
            (Question::GoOn, Some(track)) => {
                if track.go_on(rung) {
                    let tokens = part.wanted.client.tokens();
                    self.requests.push_back(Request::Withdraw(tokens));
                    self.outputs
                        .push_back(Output::Discontinuity(part.wanted.label.clone()));
                }
            }
            _ => {
                let Wanted {
                    label,
                    names,
                    rung: source,
                    ..
                } = &part.wanted;
                let read_ahead = self.speed.played_in(READ_AHEAD).max(READ_AHEAD);
                let track = Track::new(label.clone(), names.clone(), source, rung, read_ahead);
                part.track = Some(track);
            }
        }
        self.delegation = index.delegation.map(|name| name.detached());
        self.advance(now);
    }

    /// Learns what is published by now.
    pub(super) fn on_latest(&mut self, latest: &[Latest]) {
        for track in self.parts.iter_mut().filter_map(|part| part.track.as_mut()) {
            track.on_latest(latest);
        }
    }

    /// Does what is due, after whatever happened.
    pub(super) fn advance(&mut self, now: Instant) {
        self.ask_index(now);
        for part in &mut self.parts {
            if let Some(track) = &mut part.track {
                track.sort(now);
            }
        }
        self.set_clock(now);
        self.ask_samples();
        self.go_on(now);
    }

    fn ask_index(&mut self, now: Instant) {
        for part in &mut self.parts {
            let token = part.index();
            let Some(request) = &mut part.request else {
                continue;
            };
            if request.ask_at.take_if(|at| *at <= now).is_some() {
                let interest = Interest::builder(request.name.clone()).must_be_fresh();
                let index = Object::new(token, interest, Some(RETRY));
                self.requests.push_back(Request::Object(index));
            }
        }
    }

    fn ask_samples(&mut self) {
        for at in 0..self.parts.len() {
            let out: usize = self.parts.iter().map(Part::outstanding).sum();
            let Part { wanted, track, .. } = &mut self.parts[at];
            let Some(track) = track else {
                continue;
            };
            for segment in track.ask(MAX_OUTSTANDING.saturating_sub(out)) {
                let interest = Interest::builder(track.names.segment(segment));
                let token = wanted.client.token(segment);
                let mut object = Object::new(token, interest, Some(samples::RETRY));
                // Young samples are the publisher's, old ones the archive's: the other one is asked in turn.
                object.delegation.clone_from(&self.delegation);
                self.requests.push_back(Request::Object(object));
            }
        }
    }

    /// Starts the clock once the first sample to show is here; makes it wait for one that is late.
    fn set_clock(&mut self, now: Instant) {
        let Some(part) = self.parts.first() else {
            return;
        };
        let Some(track) = &part.track else {
            return;
        };
        let anchor_at = |published_at, shown_at| {
            Some(Anchor {
                published_at,
                shown_at,
                speed: self.speed,
            })
        };
        let Some(anchor) = self.anchor else {
            let queue = track.queue();
            let in_time = queue
                .iter()
                .filter(|w| w.header.presented_at() <= self.from);
            let shown = in_time.max_by_key(|w| (w.header.presented_at(), w.sequence));
            // Not before a later sample shows that none is missing between, or everything that exists is here.
            let is_settled =
                queue.iter().any(|w| w.header.captured_at > self.from) || track.is_idle();
            let first = shown.or_else(|| queue.front());
            if let Some(first) = first.filter(|_| is_settled) {
                let header = &first.header;
                let first = plays_at(header);
                self.shows_from = header.presented_at();
                // Sound may begin before the pictures.
                let tracks = self.parts.iter().filter_map(|part| part.track.as_ref());
                let heard = tracks.filter_map(|track| track.heard_from(self.from));
                let heard = heard.filter(|at| *at + READ_AHEAD >= first);
                let from = heard.chain([first]).min().unwrap_or(first);
                self.anchor = anchor_at(from, now + FIRST_LEAD);
                self.outputs.push_back(Output::Playing(self.shows_from));
                let others = self.parts.iter_mut().filter_map(|part| part.track.as_mut());
                others.for_each(|track| track.drop_before(from));
            }
            return;
        };
        let next = track.queue().front().filter(|_| part.last.is_some());
        if let Some(next) = next {
            let due_at = anchor.render_at(next.header.published_at());
            let was_in_time = next.complete_at <= due_at;
            let most = self.speed.time_of(READ_AHEAD * 2).max(READ_AHEAD * 2);
            if !was_in_time && !next.is_reset && due_at < now {
                let shown_at = anchor.shown_at + now.since(due_at);
                self.anchor = anchor_at(anchor.published_at, shown_at);
            } else if due_at > now + most || (next.is_reset && due_at < now) {
                // Behind a gap playback goes on at once.
                self.anchor = anchor_at(next.header.published_at(), now + FIRST_LEAD);
                self.shows_from = next.header.presented_at();
            }
        }
    }

    /// Asks what follows when there is nothing to play for a while.
    fn go_on(&mut self, now: Instant) {
        for part in &mut self.parts {
            let Some((captured_at, _)) = part.last else {
                continue;
            };
            if part.is_dry(now) && part.request.is_none() {
                let stream = &part.wanted.stream;
                let mut request = Inquiry::new(now, Question::GoOn, stream, captured_at);
                // Another answer than last time may take a while.
                request.ask_at = Some(now + STARVATION);
                part.request = Some(request);
            }
        }
    }

    /// When [`advance`](Self::advance) and [`hand_out`](Self::hand_out) have something to do.
    pub(super) fn poll_timeout(&self, lead: impl Fn(StreamKind) -> Duration) -> Option<Instant> {
        let times = self.parts.iter().flat_map(|part| {
            let request = part.request.as_ref().and_then(|request| request.ask_at);
            let track = part.track.as_ref();
            let next = track.and_then(|track| track.queue().front());
            let hand_out = next.zip(self.anchor).map(|(next, anchor)| {
                let shown_at = anchor.render_at(next.header.published_at());
                shown_at.saturating_sub(lead(part.wanted.label.kind))
            });
            let dry = part
                .last
                .filter(|_| part.request.is_none() && next.is_none());
            [request, hand_out, dry.map(|(_, at)| at + STARVATION)]
        });
        times.flatten().min()
    }

    /// Hands out samples whose time has come.
    pub(super) fn hand_out(&mut self, now: Instant, lead: impl Fn(StreamKind) -> Duration) {
        let Some(anchor) = self.anchor else {
            return;
        };
        for part in &mut self.parts {
            let Some(track) = &mut part.track else {
                continue;
            };
            let lead = lead(track.label.kind);
            let is_due = |whole: &Whole| {
                let at = anchor.render_at(whole.header.published_at());
                at.saturating_sub(lead) <= now
            };
            while track.queue().front().is_some_and(is_due) {
                let Some(whole) = track.pop() else {
                    break;
                };
                if whole.is_reset {
                    self.outputs
                        .push_back(Output::Discontinuity(track.label.clone()));
                }
                let published_at = whole.header.published_at();
                // Pictures presented before the requested time are decoded but not shown.
                let decode_only =
                    !track.is_standalone() && whole.header.presented_at() < self.shows_from;
                let at = match decode_only {
                    true => self.started_at,
                    false => anchor.render_at(published_at + whole.header.composition_offset),
                };
                part.last = Some((whole.header.captured_at, at));
                let sample = Sample {
                    key: whole.class == SampleClass::Key,
                    sequence: track.names.in_rung(whole.class, whole.sequence),
                    payload: whole.payload,
                    lead_at: whole.complete_at,
                    complete_at: whole.complete_at,
                    render_at: at,
                    late: decode_only,
                    // It says nothing of the network.
                    catching_up: true,
                    header: whole.header,
                };
                self.outputs.push_back(Output::Sample {
                    label: track.label.clone(),
                    sample: Box::new(sample),
                    decode_only,
                    rung: track.names.prefix().clone(),
                });
            }
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

impl Wanted {
    /// The decoding time of the last key sample that is presented by `time`.
    fn decodes_by(&self, time: Timestamp) -> Timestamp {
        Timestamp::from_micros(time.as_micros().saturating_sub(self.rung.reorder_delay))
    }
}

impl Part {
    /// What is requested of the time index.
    const fn index(&self) -> Token {
        self.wanted.client.object(0)
    }

    /// Returns the Interests that are out.
    fn outstanding(&self) -> usize {
        let is_out = |request: &Inquiry| request.ask_at.is_none();
        let index = self.request.as_ref().is_some_and(is_out);
        usize::from(index) + self.track.as_ref().map_or(0, Track::outstanding)
    }

    /// Returns a later time for a request for the index than that of `request`, whose answer `index` has nothing of the rung: the
    /// oldest key sample of the stream, if it is no later than `from`, else the next one of a rung that begins earlier. `None`: there
    /// is nothing to play from `from` on.
    fn begins_later(
        &self,
        from: Timestamp,
        index: &TimeIndex,
        request: &Inquiry,
    ) -> Option<Timestamp> {
        let (_, requested) = index::parse(&request.name)?;
        let is_begin = request.question == Question::Begin;
        let is_bounded = is_begin && self.begin_attempts < MAX_BEGIN_ATTEMPTS;
        let oldest = index.since.filter(|since| is_bounded && *since <= from)?;
        let next_keys = index.rungs.iter().filter_map(|rung| rung.next_key);
        // Presented together, key samples of rungs have decoding times that differ by no more than this.
        let delay = Duration::from_micros(self.wanted.rung.reorder_delay);
        let next_keys = next_keys.map(|key| key.captured_at + delay);
        let later = |time: &Timestamp| *time > requested;
        [oldest].into_iter().chain(next_keys).filter(later).min()
    }

    fn is_dry(&self, now: Instant) -> bool {
        let is_empty = self.track.as_ref().is_some_and(|t| t.queue().is_empty());
        is_empty && self.last.is_some_and(|(_, at)| now.since(at) >= STARVATION)
    }
}

impl Inquiry {
    fn new(now: Instant, question: Question, stream: &Name, time: Timestamp) -> Self {
        Self {
            question,
            name: index::name(stream, time),
            ask_at: Some(now),
        }
    }
}

/// Returns when a sample is shown, by the clock of publication times.
fn plays_at(header: &SampleHeader) -> Timestamp {
    header.published_at() + header.composition_offset
}
