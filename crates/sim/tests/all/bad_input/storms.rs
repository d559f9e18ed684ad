//! Whatever a publisher says, its watchers do not flood the network for it.

use core::convert::Infallible;
use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use namecast_packet::{Data, Interest, LpPacket, Name, Packet};
use namecast_sim::live::{LivePublisher, LivePublisherConfig, Media};
use namecast_sim::{Application, Now, Output};
use namecast_stream::catalogue::{MAX_BITRATE, MAX_CATALOGUE_SIZE};
use namecast_stream::{Catalogue, Metadata, SampleRate, StreamInfo, StreamNames};
use namecast_units::{Bitrate, Instant};

use crate::bad_input::stage::{LOSSES, Stage, viewer};
use crate::bad_input::studio::{right_key, wrong_key};
use crate::live_world::{ms, root};

/// Octets in each segment of a catalogue here.
const SEGMENT: usize = 1_000;

/// Gives what is answered instead of what the publisher has.
type Answer = Box<dyn FnMut(&Interest) -> Option<Data>>;

/// A publisher that somebody speaks for.
struct Spokesman {
    publisher: LivePublisher,
    /// Changes the metadata that the publisher gives.
    say: Box<dyn FnMut(Metadata) -> Metadata>,
    answer: Answer,
    outputs: Vec<Bytes>,
}

impl Spokesman {
    fn new(say: impl FnMut(Metadata) -> Metadata + 'static, answer: Answer) -> Self {
        let config = LivePublisherConfig::new(root(), vec![Media::video()]);
        Self {
            publisher: LivePublisher::new(config),
            say: Box::new(say),
            answer,
            outputs: Vec::new(),
        }
    }

    fn send(&mut self, data: &Data, link: LpPacket) {
        let fragment = Some(data.wire().clone());
        self.outputs.push(LpPacket { fragment, ..link }.encode());
    }

    fn changed(&mut self, data: &Data) -> Data {
        let is_metadata = StreamNames::new(root())
            .metadata()
            .is_prefix_of(data.name());
        let content = data.content().filter(|_| is_metadata);
        let Some(metadata) = content.and_then(|c| Metadata::decode(&c).ok()) else {
            return data.clone();
        };
        let builder = Data::builder(data.name().clone()).freshness(ms(10));
        builder
            .content((self.say)(metadata).encode())
            .sign(&right_key())
    }
}

impl Application for Spokesman {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let link = LpPacket::decode(frame.clone()).unwrap();
        let fragment = link.fragment.clone().unwrap();
        if let Ok(Packet::Interest(interest)) = Packet::decode(fragment)
            && let Some(data) = (self.answer)(&interest)
        {
            let pit_token = link.pit_token;
            let link = LpPacket {
                pit_token,
                ..LpPacket::default()
            };
            return self.send(&data, link);
        }
        self.publisher.handle_frame(now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.publisher.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.publisher.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        while let Some(Output::Send(frame)) = self.publisher.poll_output() {
            let link = LpPacket::decode(frame.clone()).unwrap();
            match link.fragment.clone().map(Packet::decode) {
                Some(Ok(Packet::Data(data))) if link.nack.is_none() => {
                    let data = self.changed(&data);
                    self.send(&data, link);
                }
                _ => self.outputs.insert(0, frame),
            }
        }
        self.outputs.pop().map(Output::Send)
    }
}

/// Interests that may leave before anything comes.
const AT_FIRST: f64 = 300.0;
/// Interests that a Data calls for, where what is asked for exists.
const HONEST: f64 = 1.5;
/// The same for a publisher that lies, or where packets are lost: an honest one has 1.4 here without loss, and 2.7 with it.
const LYING: f64 = 4.0;

/// Watches for 21 s. Asserts that in no ten seconds the watcher sent more Interests than so many for each Data that came, and
/// 20 a second, beside those that may leave before anything comes.
fn assert_no_storm(what: &str, per_data: f64, make: impl Fn() -> Spokesman) {
    for loss in LOSSES {
        let mut stage = Stage::new(loss, viewer());
        stage.produce(make());
        let mut counts = vec![[0, 0]];
        for second in 1..=21 {
            stage.run_until(ms(second * 1_000));
            counts.push(stage.packets());
        }
        for (from, to) in counts.iter().zip(&counts[10..]) {
            let (asked, came) = (to[0] - from[0], to[1] - from[1]);
            let most = came as f64 * per_data + AT_FIRST + 200.0;
            assert!(
                asked as f64 <= most,
                "{what}, loss {loss}: {asked} Interests, {came} Data"
            );
        }
    }
}

/// Metadata that names `catalogue`, which comes apart.
fn names_a_catalogue(metadata: Metadata) -> Metadata {
    Metadata {
        catalogue_name: "/demo/catalogue/v=77".parse().unwrap(),
        catalogue: None,
        ..metadata
    }
}

/// Answers for a catalogue of so many octets of nothing.
fn catalogue(size: usize, is_forged: bool) -> Answer {
    Box::new(move |interest| {
        let name = interest.name();
        let of: Name = "/demo/catalogue/v=77".parse().unwrap();
        if !of.is_prefix_of(name) {
            return None;
        }
        let last = (size / SEGMENT) as u64;
        let key = if is_forged { wrong_key() } else { right_key() };
        let builder = Data::builder(name.clone()).content(vec![b'{'; SEGMENT]);
        let last = Name::root().builder().segment(last).finish();
        Some(builder.final_block(last).sign(&key))
    })
}

#[test]
fn a_refused_catalogue_is_not_asked_for_again_and_again() {
    for size in [
        10,
        10 * SEGMENT,
        MAX_CATALOGUE_SIZE - SEGMENT,
        2 * MAX_CATALOGUE_SIZE,
    ] {
        for is_forged in [false, true] {
            let what = format!("catalogue of {size}, forged: {is_forged}");
            assert_no_storm(&what, HONEST, || {
                Spokesman::new(names_a_catalogue, catalogue(size, is_forged))
            });
        }
    }
    assert_no_storm("catalogue in metadata", HONEST, || {
        let say = |metadata| Metadata {
            catalogue: Some("{".into()),
            ..names_a_catalogue(metadata)
        };
        Spokesman::new(say, Box::new(|_| None))
    });
}

/// The publisher knows nothing of it and refuses, or nobody answers.
#[test]
fn a_catalogue_that_does_not_exist_is_not_asked_for_again_and_again() {
    assert_no_storm("no catalogue", HONEST, || {
        Spokesman::new(names_a_catalogue, Box::new(|_| None))
    });
    let version = Rc::new(Cell::new(0_u64));
    assert_no_storm("another each time", HONEST, || {
        let version = Rc::clone(&version);
        let say = move |metadata| {
            version.set(version.get() + 1);
            Metadata {
                catalogue_name: StreamNames::new(root()).catalogue(version.get()),
                ..names_a_catalogue(metadata)
            }
        };
        Spokesman::new(say, Box::new(|_| None))
    });
}

/// A catalogue that the publisher of 1 Mbit/s in 30 frames a second does not keep to.
fn lying(change: impl Fn(&mut StreamInfo) + Clone + 'static) -> Spokesman {
    let say = move |metadata: Metadata| {
        let said = Catalogue::decode(metadata.catalogue.as_ref().unwrap()).unwrap();
        let mut catalogue = said;
        change(&mut catalogue.streams[0]);
        let catalogue = catalogue.encode().unwrap();
        Metadata {
            catalogue: Some(catalogue.into()),
            ..metadata
        }
    };
    Spokesman::new(say, Box::new(|_| None))
}

#[test]
fn a_lying_bitrate_is_no_storm() {
    assert_no_storm("honest", LYING, || lying(|_| {}));
    for bitrate in [0, 1, 1_000, 100_000_000, MAX_BITRATE.as_bps()] {
        assert_no_storm(&format!("{bitrate} bit/s"), LYING, || {
            lying(move |stream| stream.rungs[0].bitrate = Bitrate::bps(bitrate))
        });
    }
}

#[test]
fn a_lying_period_is_no_storm() {
    let hour = 3_600;
    for (num, den) in [(1_000, 1), (1, 1), (1, 60), (1, hour), (hour, hour)] {
        assert_no_storm(&format!("{num} frames in {den} s"), LYING, || {
            lying(move |stream| stream.rungs[0].rate = SampleRate::new(num, den))
        });
    }
    for interval in [1, 2, 100_000] {
        assert_no_storm(&format!("a key sample in {interval}"), LYING, || {
            lying(move |stream| stream.rungs[0].key_interval = interval)
        });
    }
}

#[test]
fn lying_segments_are_no_storm() {
    for (size, parity) in [(256, 0), (256, 100), (8_000, 0), (8_000, 100)] {
        assert_no_storm(
            &format!("segments of {size}, {parity} % parity"),
            LYING,
            || {
                lying(move |stream| {
                    stream.segment_size = size;
                    stream.parity_percent = parity;
                })
            },
        );
    }
}

/// What is listed is not published: the publisher refuses each Interest for it.
#[test]
fn a_rung_that_does_not_exist_is_no_storm() {
    for count in [1, 6_u64] {
        assert_no_storm(&format!("{count} rungs that do not exist"), HONEST, || {
            lying(move |stream| {
                let rung = stream.rungs[0].clone();
                let named = |number: u64| namecast_stream::Rung {
                    name: format!("x{number}"),
                    bitrate: Bitrate::kbps(100 << number),
                    ..rung.clone()
                };
                stream.rungs = (0..count).map(named).collect();
            })
        });
    }
}

/// What is said instead of a number.
type Lie = fn(u64) -> u64;

/// Newest samples far ahead of those published, far behind, or wherever.
#[test]
fn lying_newest_samples_are_no_storm() {
    let lies: [(&str, Lie); 4] = [
        ("far ahead", |sequence| sequence + 1_000_000),
        ("a little ahead", |sequence| sequence + 200),
        ("at the beginning", |_| 0),
        ("at the end", |_| u64::MAX),
    ];
    for (what, lie) in lies {
        assert_no_storm(what, LYING, || {
            let say = move |mut metadata: Metadata| {
                for latest in &mut metadata.latest {
                    latest.key_sequence = latest.key_sequence.map(lie);
                    latest.delta_sequence = latest.delta_sequence.map(lie);
                    latest.next_delta = latest.next_delta.map(lie);
                }
                metadata
            };
            Spokesman::new(say, Box::new(|_| None))
        });
    }
}

/// The publisher's clock runs at ten times its speed, stands still, or jumps to and fro.
#[test]
fn a_lying_clock_is_no_storm() {
    let lies: [(&str, Lie); 3] = [
        ("ten times as fast", |micros| micros * 10),
        ("standing", |_| 1_800_000_000_000_000),
        ("to and fro", |micros| micros + micros % 7 * 1_000_000),
    ];
    for (what, lie) in lies {
        assert_no_storm(what, LYING, || {
            let say = move |mut metadata: Metadata| {
                for latest in &mut metadata.latest {
                    let served = lie(latest.served_at.as_micros());
                    latest.served_at = namecast_units::Timestamp::from_micros(served);
                }
                metadata
            };
            Spokesman::new(say, Box::new(|_| None))
        });
    }
}
