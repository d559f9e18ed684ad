//! Somebody plays a recording of genuine packets.

use core::convert::Infallible;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use namecast_apps::live::watcher::{Event, Liveness};
use namecast_packet::{Data, Interest, LpPacket, Name, Packet};
use namecast_sim::live::{LivePublisher, LivePublisherConfig, Media, Signing};
use namecast_sim::{Application, HostClock, Now, Output};
use namecast_stream::StreamNames;
use namecast_units::Instant;

use crate::bad_input::stage::{Stage, viewer};
use crate::bad_input::studio::Changed;
use crate::live_world::{ms, root};

const DAY: i64 = 86_400 * 1_000_000;
/// How long a recording is.
const LENGTH: Duration = ms(30_000);

/// What left a publisher, and when.
type Recording = Vec<(Duration, Data)>;

/// What a viewer was sent in half a minute.
fn recording() -> Recording {
    let taken = Rc::new(RefCell::new(Vec::new()));
    let mut config = viewer();
    // Nonces of others, as those of a viewer who does not exist yet.
    config.watcher.seed = 77;
    let mut stage = Stage::of(0.0, config, [HostClock::default(); 2], Signing::Hmac);
    let tap = Rc::clone(&taken);
    let config = LivePublisherConfig {
        signing: Signing::Hmac,
        ..LivePublisherConfig::new(root(), vec![Media::video()])
    };
    let publisher = LivePublisher::new(config);
    stage.produce(Changed::new(publisher, move |now, data| {
        let at = now.monotonic.since(Instant::ZERO);
        tap.borrow_mut().push((at, data.clone()));
        vec![data.clone()]
    }));
    stage.run_until(LENGTH);
    drop(stage);
    Rc::try_unwrap(taken).unwrap().into_inner()
}

/// What a replayer asks the publisher, who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relayed {
    Nothing,
    Challenges,
    /// All that goes to metadata.
    Probes,
}

/// Plays a recording from its beginning, or answers for the publisher from some time on.
struct Replayer {
    publisher: LivePublisher,
    relayed: Relayed,
    /// When it begins; before it, the publisher answers.
    begins: Duration,
    recording: Recording,
    by_name: BTreeMap<Name, usize>,
    waiting: Vec<(Interest, Option<Bytes>)>,
    outputs: Vec<Bytes>,
}

impl Replayer {
    fn new(recording: Recording, relayed: Relayed, begins: Duration) -> Self {
        let config = LivePublisherConfig {
            signing: Signing::Hmac,
            ..LivePublisherConfig::new(root(), vec![Media::video()])
        };
        let names = recording.iter().map(|(_, data)| data.name().clone());
        Self {
            publisher: LivePublisher::new(config),
            relayed,
            begins,
            by_name: names.zip(0..).collect(),
            recording,
            waiting: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn answer(&self, elapsed: Duration, interest: &Interest) -> Option<&Data> {
        let metadata = StreamNames::new(root()).metadata();
        if *interest.name() == metadata {
            let is_due = |(at, data): &&(Duration, Data)| {
                *at <= elapsed && metadata.is_prefix_of(data.name())
            };
            return self
                .recording
                .iter()
                .rev()
                .find(is_due)
                .map(|(_, data)| data);
        }
        let data = |at: &usize| &self.recording[*at];
        let exact = self.by_name.get(interest.name()).map(data);
        let longer = || self.by_name.range(interest.name()..).next();
        let found = exact.or_else(|| longer().map(|(_, at)| data(at)));
        let (at, data) = found?;
        (*at <= elapsed && interest.matches(data)).then_some(data)
    }

    /// Answers what can be answered by now.
    fn replay(&mut self, now: Now) {
        let elapsed = now.monotonic.since(Instant::ZERO + self.begins);
        for (interest, pit_token) in std::mem::take(&mut self.waiting) {
            let answer = self.answer(elapsed, &interest).cloned();
            match answer {
                Some(data) => {
                    let link = LpPacket {
                        pit_token,
                        ..LpPacket::carrying(data.wire().clone())
                    };
                    self.outputs.push(link.encode());
                }
                None => self.waiting.push((interest, pit_token)),
            }
        }
        if self.waiting.len() > 1_000 {
            self.waiting.drain(..500);
        }
    }

    fn is_relayed(&self, now: Now, name: &Name) -> bool {
        let names = StreamNames::new(root());
        now.monotonic < Instant::ZERO + self.begins
            || match self.relayed {
                Relayed::Nothing => false,
                Relayed::Challenges => names.is_challenge(name),
                Relayed::Probes => names.metadata().is_prefix_of(name),
            }
    }
}

impl Application for Replayer {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let link = LpPacket::decode(frame.clone()).unwrap();
        let Ok(Packet::Interest(interest)) = Packet::decode(link.fragment.unwrap()) else {
            return;
        };
        if self.is_relayed(now, interest.name()) {
            return self.publisher.handle_frame(now, frame);
        }
        self.waiting.push((interest, link.pit_token));
        self.replay(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.publisher.handle_timeout(now);
        self.replay(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.publisher.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let replayed = || self.outputs.pop().map(Output::Send);
        self.publisher.poll_output().or_else(replayed)
    }
}

/// What a viewer says of a replay, second by second from the second one on.
fn said(relayed: Relayed, begins: Duration, clocks: [HostClock; 2]) -> (Stage, Vec<&'static str>) {
    let mut stage = Stage::quick(0.0, clocks);
    stage.produce(Replayer::new(recording(), relayed, begins));
    let mut said = Vec::new();
    for second in 1..=25 {
        stage.run_until(ms(second * 1_000));
        said.push(stage.stats().liveness);
    }
    (stage, said.split_off(1))
}

fn clock(ahead: i64) -> HostClock {
    HostClock {
        wall_offset_micros: ahead,
        ..HostClock::default()
    }
}

/// A day later, nobody but the recording answers. The picture runs, and it is said what it is.
#[test]
fn a_recording_is_never_called_live() {
    let (stage, said) = said(Relayed::Nothing, ms(0), [clock(DAY); 2]);
    assert!(stage.shown(ms(5_000)..ms(20_000)).len() > 400);
    assert!(said.iter().all(|it| *it == "recorded"), "{said:?}");
    let told = stage.events(|event| matches!(event, Event::Liveness(Liveness::Recorded(_))));
    assert!(matches!(told[..], [at] if at < ms(1_000)), "{told:?}");
}

/// Half a minute later, or on a machine whose clock says so, it cannot be told from live, and is not called live.
#[test]
fn a_recording_of_a_moment_ago_cannot_be_confirmed() {
    let (stage, said) = said(Relayed::Nothing, ms(0), [clock(30_000_000); 2]);
    assert!(stage.shown(ms(5_000)..ms(20_000)).len() > 400);
    assert!(said.iter().all(|it| *it == "unconfirmed"), "{said:?}");
    assert_eq!(
        stage
            .events(|event| matches!(event, Event::Liveness(_)))
            .len(),
        1
    );
}

/// The publisher is there and answers challenges, or all probes, that the replayer passes on. It says what is newest, and the
/// viewer requests that, which is not in the recording.
#[test]
fn a_recording_behind_a_relayed_probe_is_never_called_live() {
    for relayed in [Relayed::Challenges, Relayed::Probes] {
        // A clock that is wrong by a day takes the recording for new.
        for ours in [clock(DAY), clock(0)] {
            let (stage, said) = said(relayed, ms(0), [clock(DAY), ours]);
            assert!(!said.contains(&"live"), "{relayed:?}: {said:?}");
            assert_eq!(stage.shown(ms(3_000)..ms(20_000)).len(), 0);
        }
    }
}

/// Somebody cuts the viewer off in mid-stream, and passes on nothing, or only challenges.
#[test]
fn a_viewer_that_is_cut_off_stops_saying_live_within_15_s() {
    let (stage, said) = said(Relayed::Nothing, ms(8_000), [clock(DAY); 2]);
    let live = said.iter().filter(|it| **it == "live").count();
    assert!((7..=7 + 15).contains(&live), "{said:?}");
    assert_eq!(stage.starved().len(), 1);
    assert_eq!(said[said.len() - 1], "unconfirmed");
}
