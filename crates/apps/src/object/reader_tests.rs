use std::collections::{BTreeMap, BTreeSet};

use namecast_packet::signature::{DigestSigner, NullSigner};
use namecast_packet::{LpPacket, Signer};
use namecast_units::Timestamp;

use super::*;

const DELAY: Duration = Duration::from_millis(10);

fn at(now: Instant) -> Now {
    Now {
        monotonic: now,
        wall: Timestamp::from_micros(0),
    }
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn data(name: Name, last: Option<u64>, content: &[u8]) -> Data {
    let signer: &dyn Signer = &DigestSigner;
    let data = Data::builder(name).content(content.to_vec());
    let data = match last {
        Some(last) => data.final_block(Numbering::Typed.segment(&Name::root(), last)),
        None => data,
    };
    data.sign(signer)
}

/// A reader and whoever answers at the other end of a path of 10 ms.
struct Bench {
    reader: Reader,
    now: Instant,
    random: Random,
    /// Share of Data that are lost.
    loss: f64,
    on_way: BTreeMap<(Instant, u64), Bytes>,
    count: u64,
    /// Numbers of the packets that were reported, and what followed.
    read: Vec<Name>,
    asked: Vec<Name>,
    end: Option<Result<(), Unreadable>>,
}

impl Bench {
    fn new(uri: &str) -> Self {
        Self {
            reader: Reader::new(ReaderConfig {
                name: name(uri),
                timeout: Duration::from_secs(4),
                seed: 1,
            }),
            now: Instant::ZERO,
            random: Random::from_seed(7),
            loss: 0.0,
            on_way: BTreeMap::new(),
            count: 0,
            read: Vec::new(),
            asked: Vec::new(),
            end: None,
        }
    }

    /// Runs until it is over.
    fn run(
        &mut self,
        mut answer: impl FnMut(&Interest) -> Option<Bytes>,
    ) -> Result<(), Unreadable> {
        loop {
            while let Some(output) = self.reader.poll_output() {
                match output {
                    Output::Event(ReaderEvent::Packet(data, _)) => {
                        self.read.push(data.name().clone());
                        if self.read.len() == 1 {
                            self.reader.begin(self.now);
                        }
                    }
                    Output::Event(ReaderEvent::Complete) => self.end = Some(Ok(())),
                    Output::Event(ReaderEvent::Failed(why)) => self.end = Some(Err(why)),
                    Output::Send(frame) => {
                        let interest = Interest::decode(frame).unwrap();
                        self.asked.push(interest.name().clone());
                        let answered = answer(&interest).filter(|_| !self.random.chance(self.loss));
                        if let Some(frame) = answered {
                            self.count += 1;
                            let key = (self.now + DELAY, self.count);
                            self.on_way.insert(key, frame);
                        }
                    }
                }
            }
            if let Some(end) = &self.end {
                assert_eq!(self.reader.poll_timeout(), None);
                return end.clone();
            }
            let arrival = self.on_way.keys().next().map(|(due, _)| *due);
            let due = [arrival, self.reader.poll_timeout()];
            self.now = due.into_iter().flatten().min().unwrap().max(self.now);
            assert!(self.now < Instant::ZERO + Duration::from_secs(600));
            match self
                .on_way
                .first_entry()
                .filter(|it| it.key().0 <= self.now)
            {
                Some(arrived) => {
                    let frame = arrived.remove();
                    self.reader.handle_frame(at(self.now), frame);
                }
                None => self.reader.handle_timeout(at(self.now)),
            }
        }
    }
}

/// Segments 0 to `last` of `/a/v=3`, which all tell the last one.
fn typed(last: u64) -> impl FnMut(&Interest) -> Option<Bytes> {
    move |interest| {
        let object = name("/a/v=3");
        let number = Numbering::number(&object, interest.name());
        let number = number.or_else(|| interest.can_be_prefix().then_some(0));
        let number = number.filter(|it| *it <= last && name("/a").is_prefix_of(interest.name()))?;
        let segment = data(Numbering::Typed.segment(&object, number), Some(last), b"x");
        interest.matches(&segment).then(|| segment.wire().clone())
    }
}

#[test]
fn segments_come_in_order_in_spite_of_loss() {
    for (loss, version) in [(0.0, ""), (0.1, ""), (0.1, "/v=3")] {
        let mut bench = Bench::new(&format!("/a{version}"));
        bench.loss = loss;
        assert_eq!(bench.run(typed(2_999)), Ok(()));
        let expected = (0..3_000).map(|it| Numbering::Typed.segment(&name("/a/v=3"), it));
        assert!(bench.read == expected.collect::<Vec<_>>(), "{loss}");
        let beyond = Numbering::Typed.segment(&name("/a/v=3"), 3_000);
        assert!(!bench.asked.contains(&beyond));
    }
}

/// Names of revision 1, without a version, and the last segment alone says that it is the last.
#[test]
fn other_numberings_and_late_ends_are_read() {
    let mut bench = Bench::new("/a");
    let object = name("/a");
    let end = bench.run(|interest| {
        let number = Numbering::number(&object, interest.name());
        let number = number.or_else(|| interest.can_be_prefix().then_some(0));
        let number = number.filter(|it| *it <= 40)?;
        let segment = Numbering::Markers.segment(&object, number);
        let is_last = number == 40;
        let data = Data::builder(segment.clone()).content(b"x".to_vec());
        let last = Numbering::Markers.segment(&Name::root(), 40);
        let data = if is_last {
            data.final_block(last)
        } else {
            data
        };
        let data = data.sign(&NullSigner);
        interest.matches(&data).then(|| data.wire().clone())
    });
    assert_eq!((end, bench.read.len()), (Ok(()), 41));
    assert_eq!(bench.read[40], Numbering::Markers.segment(&object, 40));
}

#[test]
fn a_packet_without_segments_is_all() {
    let mut bench = Bench::new("/a");
    let end = bench.run(|interest| {
        let packet = data(name("/a"), None, b"x");
        interest.matches(&packet).then(|| packet.wire().clone())
    });
    assert_eq!((end, bench.read.len()), (Ok(()), 1));
}

/// A segment is lost for good: those behind it are kept up to a bound, and it ends 4 s after the last that was of use.
#[test]
fn a_gap_ends_it_with_a_bound_on_what_is_kept() {
    let mut bench = Bench::new("/a/v=3");
    let mut segments = typed(100_000);
    let missing = Numbering::Typed.segment(&name("/a/v=3"), 50);
    let end = bench.run(|interest| match *interest.name() == missing {
        true => None,
        false => segments(interest),
    });
    assert_eq!(end, Err(Unreadable::Stopped(name("/a/v=3"), 50)));
    assert_eq!(bench.read.len(), 50);
    let asked: BTreeSet<_> = bench.asked.iter().collect();
    assert!(asked.len() as u64 <= 50 + MAX_KEPT, "{}", asked.len());
}

#[test]
fn segments_must_agree_on_the_last_one() {
    let mut bench = Bench::new("/a/v=3");
    let end = bench.run(|interest| {
        let number = Numbering::number(&name("/a/v=3"), interest.name())?;
        let last = if number == 2 { 7 } else { 9 };
        let segment = data(interest.name().clone(), Some(last), b"x");
        Some(segment.wire().clone())
    });
    assert_eq!(end, Err(Unreadable::Contradiction(name("/a/v=3"), 9, 7)));
}

#[test]
fn silence_and_refusals_are_told_apart() {
    let not_found = |why| Err(Unreadable::NotFound(why));
    for uri in ["/a", "/a/v=3"] {
        let mut bench = Bench::new(uri);
        assert_eq!(bench.run(|_| None), not_found(NotFound::Silence));
        assert_eq!(bench.now, Instant::ZERO + Duration::from_secs(4), "{uri}");
        let mut bench = Bench::new(uri);
        let refused = bench.run(|interest| {
            let packet = LpPacket {
                nack: Some(NackReason::NoRoute),
                ..LpPacket::carrying(interest.wire().clone())
            };
            Some(packet.encode())
        });
        assert_eq!(refused, not_found(NotFound::Refused(NackReason::NoRoute)));
    }
}
