//! One stream being pulled, and its change from one rung to another.

use core::time::Duration;

use namecast_packet::{Component, Name};
use namecast_stream::consumer::{
    self, Consumer, Counters, LineUp, Playout, ReadyKey, SharedVerifier, Shown, StartAt,
};
use namecast_stream::ladder::LadderConfig;
use namecast_stream::metadata::Latest;
use namecast_stream::path::ClientId;
use namecast_stream::{Catalogue, Reading, Rung, StreamInfo, StreamKind, StreamNames};
use namecast_units::{Bitrate, Instant};

use super::config::{RungChoice, WatcherConfig};
use super::events::Events;
use super::output::{Decoding, Label};
use super::rungs::{AutoRung, Decision, Probing, first_rung, wire_rate};
use super::sealed::Origin;

/// One stream being pulled.
#[derive(Debug)]
pub(super) struct Pulled {
    pub label: Label,
    pub info: StreamInfo,
    /// Of a data stream and of sound: its first sample. It is requested before it exists, as it may be the one that matters, and as
    /// the next metadata may come a second after it.
    pub first: Option<u64>,
    /// The rung that frames come from.
    pub rung: String,
    pub consumer: Consumer,
    /// Reads its samples instead of the consumer, which then stands still.
    pub events: Option<Events>,
    /// The rung that they will come from, until it has a key sample in time.
    pub upcoming: Option<Upcoming>,
    /// What the publisher said of all rungs, as of one group.
    pub numbering: Vec<Latest>,
    /// The group whose rung was chosen last, by the position of its key sample.
    pub chosen_for: Option<u64>,
    /// What is requested to find out what the path carries.
    pub probing: Option<Probing>,
    /// Consumers that are gone, whose requests are to be withdrawn.
    pub retired: Vec<ClientId>,
    /// Chooses the rung, if that is left to the watcher and there is a choice.
    pub auto: Option<AutoRung>,
    pub has_started: bool,
    pub had_frame: bool,
    /// Last frame delivered.
    pub shown: Option<Shown>,
    /// State of the decoder.
    pub decoding: Decoding,
    pub rendered: u64,
    pub decoder_errors: u64,
    /// Counters of consumers that are gone.
    pub past: Counters,
    pub past_published: u64,
}

/// A rung that is pulled as well as the one that is shown.
#[derive(Debug)]
pub(super) struct Upcoming {
    pub rung: String,
    pub consumer: Consumer,
    /// It begins with a group of which frames were shown, to go on where the other rung was left.
    pub catches_up: bool,
    /// When its key sample arrives, if groups are as long as the catalogue says.
    pub expected_at: Option<Instant>,
}

/// Sound that began no longer ago is pulled from its first sample on.
const BEGUN_LATELY: Duration = Duration::from_secs(2);
/// A member of which nothing arrives for this long is started again: it may be there now.
const MEMBER_RESTART: Duration = Duration::from_secs(1);
/// A group that has not begun so long after its time does not: the source's groups are longer than the catalogue says.
const OVERDUE: Duration = Duration::from_millis(500);

impl Upcoming {
    /// When it is clear that its group does not begin, unless something of it comes.
    fn overdue_at(&self) -> Option<Instant> {
        let has_come = self.consumer.schedule().last_arrival().is_some();
        self.expected_at
            .filter(|_| !has_come)
            .map(|at| at + OVERDUE)
    }
}

/// The rung that `choice` means.
pub(super) fn choose<'a>(info: &'a StreamInfo, choice: &RungChoice) -> Option<&'a Rung> {
    let highest = info.rungs.iter().max_by_key(|rung| rung.bitrate);
    match choice {
        RungChoice::Auto => first_rung(info),
        RungChoice::Highest => highest,
        RungChoice::Lowest => info.rungs.iter().min_by_key(|rung| rung.bitrate),
        RungChoice::Label(name) => info.rung(name).or(highest),
    }
}

/// The same of what is recorded, which is not steered: one in the middle, the lower of two.
pub(super) fn choose_recorded<'a>(info: &'a StreamInfo, choice: &RungChoice) -> Option<&'a Rung> {
    if *choice != RungChoice::Auto {
        return choose(info, choice);
    }
    let mut rungs: Vec<&Rung> = info.rungs.iter().collect();
    rungs.sort_by_key(|rung| rung.bitrate);
    rungs.get(rungs.len().checked_sub(1)? / 2).copied()
}

/// Makes consumers with what all of them share.
#[derive(Clone, Copy)]
pub(super) struct ConsumerFactory<'a> {
    pub config: &'a WatcherConfig,
    pub names: &'a StreamNames,
    pub verifier: Option<&'a SharedVerifier>,
    pub playout: Playout,
    /// What sound takes on the wire.
    pub sound: Bitrate,
    /// By which the uplink knows the consumer that it makes.
    pub client: ClientId,
}

impl ConsumerFactory<'_> {
    pub(super) fn consumer(&self, now: Instant, info: &StreamInfo, rung: &Rung) -> Consumer {
        let source = self.config.source(self.names, info, rung);
        let mut consumer = Consumer::new(&self.config.consumer, source, self.client);
        consumer.enable_path_events(matches!(self.config.ladder, LadderConfig::Paper(_)));
        consumer.set_playout(now, self.playout, self.config.lead(info.kind));
        if let Some(verifier) = self.verifier {
            consumer.set_verifier(now, verifier.clone());
        }
        consumer
    }

    /// Begins to pull `rung` of `info`; nothing is asked for before the stream is started.
    pub(super) fn pull(&self, now: Instant, info: &StreamInfo, rung: &Rung) -> Pulled {
        let consumer = self.consumer(now, info, rung);
        let is_auto = info.kind == StreamKind::Video && self.config.rung == RungChoice::Auto;
        let auto = is_auto.then(|| {
            AutoRung::new(
                now,
                &self.config.ladder,
                (info, &rung.name),
                &consumer,
                self.sound,
            )
        });
        Pulled {
            label: Label::of(info),
            info: info.clone(),
            first: None,
            rung: rung.name.clone(),
            events: (info.kind == StreamKind::Data && info.reading == Reading::Events)
                .then(|| Events::new(consumer.source().names.clone(), self.client)),
            consumer,
            upcoming: None,
            numbering: Vec::new(),
            chosen_for: None,
            probing: None,
            retired: Vec::new(),
            auto: auto.flatten(),
            has_started: false,
            had_frame: false,
            shown: None,
            decoding: Decoding::default(),
            rendered: 0,
            decoder_errors: 0,
            past: Counters::default(),
            past_published: 0,
        }
    }

    /// Begins to pull another rung as well as the one that is shown.
    pub(super) fn prepare(&self, now: Instant, pulled: &mut Pulled, rung: &Rung) {
        pulled.drop_upcoming(now);
        if rung.name != pulled.rung {
            let mut consumer = self.consumer(now, &pulled.info, rung);
            consumer.set_held(now, true);
            consumer.set_shown(pulled.shown);
            pulled.upcoming = Some(Upcoming {
                rung: rung.name.clone(),
                consumer,
                catches_up: false,
                expected_at: None,
            });
        }
        pulled.keep_trial(now);
    }
}

impl Pulled {
    /// Returns its kind.
    pub(super) const fn kind(&self) -> StreamKind {
        self.label.kind
    }

    /// Returns whether it pulls `info`, or what an earlier publisher had in its place.
    pub(super) fn is_of(&self, info: &StreamInfo) -> bool {
        let is_named = self.info.name == info.name || info.kind != StreamKind::Data;
        self.kind() == info.kind && is_named
    }

    /// Returns whether the stream goes on as it is from one catalogue to the next.
    pub(super) fn lasts(&self, before: &Catalogue, after: &Catalogue) -> bool {
        let name = &self.info.name;
        after.stream(name) == Some(&self.info) && before.start(name) == after.start(name)
    }

    /// Returns the name, and the frame delivered last.
    pub(super) fn left(&self) -> Option<(&str, Shown)> {
        Some((&self.info.name, self.shown?))
    }

    /// The consumers, the one that is shown first.
    pub(super) fn consumers(&mut self) -> impl Iterator<Item = &mut Consumer> {
        let upcoming = self.upcoming.as_mut().map(|it| &mut it.consumer);
        core::iter::once(&mut self.consumer).chain(upcoming)
    }

    /// Returns where samples of the consumer `client` are from.
    pub(super) fn origin(&mut self, client: ClientId) -> Origin {
        let own = self.consumer.source().names.prefix().clone();
        let mut consumers = self.consumers();
        let from = consumers.find(|consumer| consumer.client() == client);
        Origin {
            rung: from.map_or(own, |it| it.source().names.prefix().clone()),
            is_past: false,
            delegation: None,
        }
    }

    /// Takes over what the pull of the same stream from an earlier publisher counted.
    pub(super) fn inherit(&mut self, before: Self) {
        if let Some(events) = self.events.as_mut().filter(|_| before.events.is_some()) {
            events.follow();
        }
        self.past = before.counters();
        self.past_published = before.past_published + before.consumer.schedule().published();
        self.had_frame = before.had_frame;
        self.rendered = before.rendered;
        self.decoder_errors = before.decoder_errors;
    }

    /// Returns the next thing that one of the consumers wants done.
    pub(super) fn poll_output(&mut self) -> Option<(ClientId, consumer::Output)> {
        let event = self.events.as_mut().and_then(Events::poll_output);
        if let Some(event) = event {
            return Some((self.consumer.client(), event));
        }
        let mut consumers = self.consumers();
        consumers.find_map(|consumer| Some((consumer.client(), consumer.poll_output()?)))
    }

    /// Returns whether the next rung is only tried.
    fn is_trying(&self) -> bool {
        self.auto.as_ref().is_some_and(AutoRung::is_trying)
    }

    /// When one of the consumers, or the change of rungs, has something to do.
    pub(super) fn poll_timeouts(&self) -> impl Iterator<Item = Instant> {
        let upcoming = self.upcoming.as_ref();
        let upcoming = upcoming.and_then(|it| it.consumer.poll_timeout());
        let decides_at = self.auto.as_ref().and_then(AutoRung::poll_timeout);
        let overdue_at = self.upcoming.as_ref().and_then(Upcoming::overdue_at);
        let own = [self.switch_at(), self.gives_up_at(), decides_at, overdue_at];
        let events = self.events.as_ref().and_then(Events::poll_timeout);
        let consumers = [self.consumer.poll_timeout(), upcoming, events];
        consumers.into_iter().chain(own).flatten()
    }

    /// Sizes of the consumers' tables.
    pub(super) fn all_sizes(&self) -> impl Iterator<Item = consumer::Sizes> {
        let upcoming = self.upcoming.as_ref().map(|it| &it.consumer);
        core::iter::once(&self.consumer)
            .chain(upcoming)
            .map(Consumer::sizes)
    }

    /// What `latest` says of `consumer`'s rung.
    pub(super) fn latest_of<'a>(consumer: &Consumer, latest: &'a [Latest]) -> Option<&'a Latest> {
        let rung: &Name = consumer.source().names.prefix();
        let own = latest.iter().find(|latest| latest.rung == *rung);
        // Numbers of a member are those of its family, whose rung is a keyword.
        let is_family = |latest: &&Latest| {
            let last = latest.rung.last();
            last.is_some_and(|last| last.kind == Component::KEYWORD)
                && latest.rung.parent() == rung.parent()
        };
        own.or_else(|| latest.iter().find(is_family))
    }

    /// Returns whether it pulls a member of a family: its samples are published on request.
    fn is_member(&self) -> bool {
        self.info.name.contains('/')
    }

    /// Returns whether nothing of a member has arrived for a while.
    fn is_silent(&self, now: Instant) -> bool {
        let last = self.consumer.schedule().last_arrival();
        last.is_none_or(|last| now.since(last) >= MEMBER_RESTART)
    }

    /// Returns where it starts.
    fn start_at(&self) -> StartAt {
        match self.is_member() {
            true => StartAt::NextKey,
            false => StartAt::NewestKey,
        }
    }

    /// Starts what has not started, and compares what has. Returns the key sample that playback newly starts with.
    pub(super) fn line_up(
        &mut self,
        now: Instant,
        latest: &[Latest],
        starved: bool,
    ) -> Option<LinedUp> {
        self.learn_numbering(latest);
        if self
            .auto
            .as_ref()
            .is_none_or(|auto| auto.ladder().is_none())
        {
            self.start_upcoming(now, latest);
        }
        let own = Self::latest_of(&self.consumer, latest)?;
        if let Some(events) = &mut self.events {
            let next = events.line_up(now, own, self.first)?;
            self.has_started = true;
            return Some(LinedUp::Started(next));
        }
        let before_first = self.before_first(own);
        let (own, at) = match (&before_first, self.begun_lately(own)) {
            (Some(before), _) => (before, StartAt::NextKey),
            (None, Some(first)) => (own, StartAt::Key(first)),
            (None, None) => (own, self.start_at()),
        };
        if !self.has_started {
            let key = self.consumer.start(now, own, at)?;
            self.has_started = true;
            return Some(LinedUp::Started(key));
        }
        if self.is_steered() && self.upcoming.is_some() || self.is_blank() {
            return None;
        }
        if self.is_member() {
            // Metadata speaks of the family: of a member that is not there, nothing is published.
            let out_of_line = LinedUp::Known(LineUp::OutOfLine);
            return self.is_silent(now).then_some(out_of_line);
        }
        Some(LinedUp::Known(self.consumer.line_up(now, own, starved)))
    }

    /// The first sample of sound, if the publisher began so lately that all of it is pulled: pictures begin with their first key frame,
    /// which is as old.
    fn begun_lately(&self, latest: &Latest) -> Option<u64> {
        let first = self.first.filter(|_| self.kind() == StreamKind::Audio)?;
        let published = latest.key_sequence?.checked_sub(first)?;
        let period = self.consumer.source().rate.period();
        let is_late = period.as_nanos() * u128::from(published) > BEGUN_LATELY.as_nanos();
        (!is_late).then_some(first)
    }

    /// Returns the state before the first sample, if the stream has none yet: joining then starts with the first.
    fn before_first(&self, latest: &Latest) -> Option<Latest> {
        let first = self.first.filter(|_| latest.key_sequence.is_none())?;
        Some(Latest {
            key_sequence: Some(first.checked_sub(1)?),
            ..latest.clone()
        })
    }

    fn start_upcoming(&mut self, now: Instant, latest: &[Latest]) {
        let shown = self.consumer.position();
        let can_wait = self.auto.as_ref().map(AutoRung::can_wait);
        let allowance = self.auto.as_ref().and_then(AutoRung::allowance);
        let Some(Upcoming {
            consumer: upcoming, ..
        }) = &mut self.upcoming
        else {
            return;
        };
        let Some(own) = Self::latest_of(upcoming, latest) else {
            return;
        };
        if upcoming.schedule().last_arrival().is_some() {
            return;
        }
        if let Some(allowance) = allowance {
            upcoming.start_trial(now, own, &self.consumer, allowance);
            return;
        }
        if let Some((auto, can_wait)) = self.auto.as_mut().zip(can_wait) {
            if let Some(position) = upcoming.start_after(now, own, &self.consumer, can_wait) {
                auto.on_started(position);
                // Both are never paid for at once.
                self.consumer.set_ask_before(now, Some(position));
            }
            return;
        }
        // The newest key sample serves if it was not shown yet, else its successor.
        let at = match own.key_position.zip(shown) {
            Some((key, shown)) if key <= shown => StartAt::NextKey,
            _ => StartAt::NewestKey,
        };
        upcoming.start(now, own, at);
    }

    /// Starts again at the newest key sample, or after it if it was shown. Until `fresh_until` no cache may answer.
    pub(super) fn restart(
        &mut self,
        now: Instant,
        latest: &[Latest],
        fresh_until: Option<Instant>,
    ) -> Option<u64> {
        let own = Self::latest_of(&self.consumer, latest)?;
        self.begin_after(self.shown, fresh_until);
        self.repeat_shown();
        self.past_published += self.consumer.schedule().published();
        if let Some(auto) = &mut self.auto {
            auto.on_stayed(now);
            self.drop_upcoming(now);
        }
        if let Some(Upcoming { consumer, .. }) = &mut self.upcoming
            && let Some(latest) = Self::latest_of(consumer, latest)
        {
            consumer.start(now, latest, StartAt::NewestKey);
        }
        self.chosen_for = None;
        self.consumer.set_stop_before(None);
        self.consumer.start(now, own, self.start_at())
    }

    /// Keeps consumers from handing out what was shown, and until `fresh_until` from what caches hold; `None` changes
    /// nothing.
    pub(super) fn begin_after(&mut self, shown: Option<Shown>, fresh_until: Option<Instant>) {
        for consumer in self.consumers() {
            if shown.is_some() {
                consumer.set_shown(shown);
            }
            if fresh_until.is_some() {
                consumer
                    .schedule_mut()
                    .handover_mut()
                    .set_fresh_until(fresh_until);
            }
        }
    }

    /// Has the rung that is shown deliver what is due before a key frame of the upcoming one: where timers are late, both are due at
    /// once. Returns whether a rung is upcoming.
    pub(super) fn deliver_before_switch(&mut self, now: Instant) -> bool {
        let shown = self.delivered();
        let is_trying = self.is_trying();
        let Some(upcoming) = self.upcoming.as_ref().filter(|_| !is_trying) else {
            return false;
        };
        if !upcoming.catches_up
            && let Some(key) = upcoming.consumer.ready_key(now, shown)
            && key.leaves_at <= now
        {
            self.consumer.set_stop_before(Some(key));
            self.consumer.handle_timeout(now);
        }
        true
    }

    /// Changes over to the upcoming rung if the time has come. Returns its name if so.
    pub(super) fn switch_if_due(&mut self, now: Instant) -> Option<String> {
        if self.is_trying() {
            return None;
        }
        let overdue_at = self.upcoming.as_ref().and_then(Upcoming::overdue_at);
        if overdue_at.is_some_and(|at| at <= now) {
            self.drop_upcoming(now);
            self.stay(now);
            return None;
        }
        let shown = self.delivered();
        let Upcoming {
            consumer: upcoming,
            catches_up,
            ..
        } = self.upcoming.as_mut()?;
        if *catches_up {
            // What the old rung has ready is shown first; the new one only has to overtake that.
            let key = upcoming.ready_key(now, None)?;
            if self.consumer.has_ready() {
                return None;
            }
            return self.switch(now, key);
        }
        if let Some(shown) = shown {
            upcoming.pass_over(now, shown);
        }
        let key = upcoming.ready_key(now, shown)?;
        // From here on the new rung has the frames, the old one must not hand them out as well.
        self.consumer.set_stop_before(Some(key));
        if key.leaves_at > now {
            return None;
        }
        self.switch(now, key)
    }

    /// Shows the upcoming rung from `key` on.
    pub(super) fn switch(&mut self, now: Instant, key: ReadyKey) -> Option<String> {
        let Upcoming {
            rung, mut consumer, ..
        } = self.upcoming.take()?;
        consumer.begin_at(now, key.position);
        consumer.set_held(now, false);
        self.retire_consumer();
        self.consumer = consumer;
        self.rung = rung;
        self.repeat_shown();
        if let Some(auto) = &mut self.auto {
            auto.on_moved();
        }
        Some(self.rung.clone())
    }

    /// When [`switch_if_due`](Self::switch_if_due) would change over.
    fn switch_at(&self) -> Option<Instant> {
        let upcoming = self.upcoming.as_ref().filter(|_| !self.is_trying())?;
        if upcoming.catches_up {
            // Looked at whenever anything arrives or is delivered.
            return None;
        }
        let shown = self.delivered();
        let key = upcoming.consumer.ready_key(Instant::ZERO, shown)?;
        Some(key.leaves_at)
    }

    /// Returns the last frame delivered by the rung on screen, for comparison with other rungs.
    fn delivered(&self) -> Option<Shown> {
        let delivered = self.consumer.delivered()?;
        let reorders = self.info.rungs.iter().any(|rung| rung.reorder_delay > 0);
        Some(Shown {
            position: delivered.position.filter(|_| !reorders),
            ..delivered
        })
    }

    /// The largest composition offset of the rung that is shown.
    pub(super) fn reorder_delay(&self) -> Duration {
        self.consumer.source().reorder_delay
    }

    /// A rung that is steered may show a group again from its beginning: what was shown of it is only decoded.
    fn repeat_shown(&mut self) {
        let shown = self.shown.filter(|_| self.is_steered());
        self.decoding.repeat(shown);
    }

    /// Lets the rung choose itself from here on.
    pub(super) fn choose_by_itself(&mut self, now: Instant, ladder: &LadderConfig, sound: Bitrate) {
        if self.auto.is_none() {
            // The ladder would not know of a change that was asked for by hand.
            self.drop_upcoming(now);
            let current = (&self.info, &*self.rung);
            self.auto = AutoRung::new(now, ladder, current, &self.consumer, sound);
        }
    }

    /// Records what the way carries. Returns the rung to prepare, if another one is better.
    pub(super) fn watch_rung(&mut self, now: Instant) -> Option<Rung> {
        let auto = self.auto.as_mut()?;
        auto.listen(now, &mut self.consumer);
        if let Some(upcoming) = &mut self.upcoming {
            auto.listen(now, &mut upcoming.consumer);
        }
        let gives_up_at = auto.gives_up_at(now, &self.consumer);
        if gives_up_at.is_some_and(|at| at <= now) {
            auto.on_stayed(now);
            self.drop_upcoming(now);
            return None;
        }
        let is_playing = self.had_frame && (self.upcoming.is_none() || auto.is_trying());
        let auto = self.auto.as_mut().filter(|_| is_playing)?;
        let decision = auto.decide(now, &self.consumer);
        if let Some(Decision::Drop) = decision {
            self.drop_upcoming(now);
        }
        self.keep_trial(now);
        match decision? {
            Decision::Prepare(rung) => Some(rung),
            Decision::Drop => None,
        }
    }

    /// Keeps a rung that is only tried to what is left for it, and to what is newest.
    fn keep_trial(&mut self, now: Instant) {
        let allowance = self.auto.as_ref().and_then(AutoRung::allowance);
        self.consumer
            .schedule_mut()
            .set_challenging(now, allowance.is_some());
        let shown = self.consumer.position();
        if let Some(upcoming) = self.upcoming.as_mut().filter(|_| allowance.is_some()) {
            upcoming.consumer.set_allowance(now, allowance);
            if let Some(shown) = shown {
                upcoming.consumer.forget_up_to(shown);
            }
        }
    }

    /// When the change under way is given up.
    fn gives_up_at(&self) -> Option<Instant> {
        // With a base, `now` does not matter.
        let auto = self.auto.as_ref()?;
        auto.gives_up_at(Instant::ZERO, &self.consumer)
    }

    pub(super) fn drop_upcoming(&mut self, now: Instant) {
        self.consumer.set_stop_before(None);
        self.consumer.set_ask_before(now, None);
        if let Some(Upcoming { consumer, .. }) = self.upcoming.take() {
            self.past += consumer.counters();
            self.retired.push(consumer.client());
        }
    }

    fn retire_consumer(&mut self) {
        self.retired.push(self.consumer.client());
        self.past += self.consumer.counters();
        self.past_published += self.consumer.schedule().published();
    }

    /// Counters of this consumer and all before it.
    pub(super) fn counters(&self) -> Counters {
        let mut sum = self.past;
        sum += self.consumer.counters();
        if let Some(upcoming) = &self.upcoming {
            sum += upcoming.consumer.counters();
        }
        sum
    }

    /// By which the uplink knows its consumers, those that are gone included.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        let upcoming = self.upcoming.as_ref().map(|it| it.consumer.client());
        let retired = self.retired.iter().copied();
        retired.chain([self.consumer.client()]).chain(upcoming)
    }

    /// What the rung that is pulled takes on the wire.
    pub(super) fn need(&self) -> Bitrate {
        let source = self.consumer.source();
        wire_rate(source.bitrate, source.rate, source.segment_size)
    }
}

/// What became of a comparison with the publisher's newest samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinedUp {
    /// Playback starts with this key sample.
    Started(u64),
    /// The stream was running.
    Known(LineUp),
}
