//! A server and a downloader at both ends of a link, in virtual time.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::{Extensions, Interest, LpPacket, Packet};
use namecast_units::{Bitrate, ByteSize, Instant};

use super::super::*;
use super::{MS, WALL, at, certificate, content, name, server};
use crate::face;

const RATE: Bitrate = Bitrate::mbps(20);

struct Bench {
    server: Server,
    downloader: Downloader,
    now: Instant,
    /// Packets to the server, and to the downloader, with the time at which they come.
    requests: VecDeque<(Instant, Bytes)>,
    answers: VecDeque<(Instant, Bytes)>,
    free_at: Instant,
    interests: Vec<Interest>,
    reports: Vec<Downloaded>,
    rate: Bitrate,
    /// What nodes say with all Data: who answered, and the rate of the path behind a cache.
    source: Option<u64>,
    tag: Option<Bitrate>,
}

impl Bench {
    fn new() -> Self {
        let fetcher = FetcherConfig {
            wall_at_zero: WALL,
            ..FetcherConfig::new(Name::root())
        };
        let config = DownloaderConfig {
            fetcher,
            max_objects: 2,
        };
        Self {
            server: server(),
            downloader: Downloader::new(config),
            now: at(0),
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            free_at: at(0),
            interests: Vec::new(),
            reports: Vec::new(),
            rate: RATE,
            source: None,
            tag: None,
        }
    }

    fn put(&mut self, object: &str, size: usize) -> Bytes {
        let content = content(size, 1);
        self.server
            .put(name(object), content.clone(), WALL)
            .unwrap();
        content
    }

    fn fetch(&mut self, number: u64, object: &str) {
        self.downloader
            .fetch(self.now, number, name(object))
            .unwrap();
    }

    /// Runs until `time`, 10 ms in each direction.
    fn run_until(&mut self, time: Instant) {
        while self.now < time {
            self.now += MS / 4;
            let now = self.now;
            self.downloader.handle_timeout(now);
            while let Some(wire) = self.downloader.poll_output() {
                if let Ok(Some((Packet::Interest(interest), _))) = face::open(wire.clone()) {
                    self.interests.push(interest);
                }
                self.requests.push_back((now + 10 * MS, wire));
            }
            while let Some((_, wire)) = self.requests.pop_front_if(|(at, _)| *at <= now) {
                self.server.handle_packet(now, wire);
            }
            while let Some(wire) = self.server.poll_output() {
                self.free_at = self.free_at.max(now) + ByteSize::of(&wire) / self.rate;
                self.answers.push_back((self.free_at + 10 * MS, wire));
            }
            while let Some((_, wire)) = self.answers.pop_front_if(|(at, _)| *at <= now) {
                let wire = self.label(wire);
                self.downloader.handle_packet(now, wire);
            }
            let reports = core::iter::from_fn(|| self.downloader.poll_event());
            self.reports
                .extend(reports.filter(|it| !matches!(it.1, Event::Progress { .. })));
        }
    }

    /// Data with what nodes say of it.
    fn label(&self, wire: Bytes) -> Bytes {
        let mut packet = LpPacket::decode(wire).unwrap();
        let tag = self.tag.map(Bitrate::as_bps);
        for (number, value) in [
            (Extensions::SOURCE, self.source),
            (Extensions::RATE_TAG, tag),
        ] {
            if let Some(value) = value {
                packet.extensions.set_number(number, value);
            }
        }
        packet.encode()
    }

    fn fetched(&self, number: u64) -> &Fetched {
        let mut reports = self.reports.iter().filter(|it| it.0 == number);
        match reports.next() {
            Some(Downloaded(_, Event::Fetched(fetched))) => fetched,
            other => panic!("{number} is not fetched: {other:?}"),
        }
    }

    fn certificates(&self) -> usize {
        let key = certificate("/demo", 7).name().prefix(2);
        let names = self.interests.iter().map(Interest::name);
        names.filter(|it| key.is_prefix_of(it)).count()
    }
}

#[test]
fn objects_come_at_the_same_time_and_the_next_knows_the_signer() {
    let mut bench = Bench::new();
    let contents = ["/demo/files/a", "/demo/files/b"].map(|object| bench.put(object, 50_000));
    bench.fetch(1, "/demo/files/a");
    bench.fetch(2, "/demo/files/b");
    let full = bench.downloader.fetch(bench.now, 3, name("/demo/files/b"));
    assert_eq!(full, Err(TooMany(2)));
    bench.run_until(at(1_000));
    assert_eq!(bench.fetched(1).content, contents[0]);
    assert_eq!(bench.fetched(2).content, contents[1]);
    let certificates = bench.certificates();
    bench.fetch(3, "/demo/files/a");
    bench.run_until(at(2_000));
    assert_eq!(bench.fetched(3).content, contents[0]);
    assert_eq!(bench.certificates(), certificates);
    assert_eq!(bench.downloader.counters(), FetcherCounters::default());
}

/// 1.25 MB take half a second at 20 Mbit/s; headers, signatures and finding that rate are the rest. The three seconds before it existed are no part.
#[test]
fn what_is_requested_before_it_exists_flows_as_fast_as_what_does() {
    let mut bench = Bench::new();
    bench.put("/demo/files/seq=6", 500_000);
    bench.fetch(6, "/demo/files/seq=6");
    bench.run_until(at(1_000));
    bench.fetch(7, "/demo/files/seq=7");
    bench.run_until(at(4_000));
    assert_eq!(bench.reports.len(), 1);
    bench.put("/demo/files/seq=7", 1_250_000);
    bench.run_until(at(5_500));
    let flow = bench.fetched(7).flow;
    let waited = flow.waited.as_millis();
    assert!((2_950..=3_000).contains(&waited), "waited {waited} ms");
    let flowed = flow.flowed.as_millis();
    assert!((500..=700).contains(&flowed), "flowed for {flowed} ms");
}

/// 1.25 MB and their headers take more than 2.5 s at 4 Mbit/s, half of what the path behind the cache carries, since somebody else has
/// fetched them by that; the cache gives them at 20 Mbit/s. One with a far faster path behind it changes nothing.
#[test]
fn what_a_cache_has_counts_at_half_the_rate_of_the_path_behind_it() {
    let flowed = |tag| {
        let mut bench = Bench::new();
        bench.source = Some(Extensions::FROM_CONTENT_STORE);
        bench.tag = tag;
        bench.put("/demo/files/a", 1_250_000);
        bench.fetch(1, "/demo/files/a");
        bench.run_until(at(3_000));
        bench.fetched(1).flow.flowed.as_millis()
    };
    let slow = flowed(Some(Bitrate::mbps(8)));
    assert!((2_500..=2_900).contains(&slow), "{slow} ms");
    let fast = flowed(Some(Bitrate::mbps(100)));
    assert!((500..=700).contains(&fast), "{fast} ms");
    assert_eq!(flowed(None), fast);
}

/// 6 Mbit/s were left of the path; what a cache has counts so, although the path carries 8, and at 5 when it carries no more.
#[test]
fn what_a_cache_has_counts_at_what_others_left_of_the_path() {
    let mut bench = Bench::new();
    bench.rate = Bitrate::mbps(6);
    bench.source = Some(Extensions::FROM_PRODUCER);
    bench.put("/demo/files/a", 1_000_000);
    bench.fetch(1, "/demo/files/a");
    bench.run_until(at(2_000));
    bench.rate = Bitrate::mbps(80);
    bench.source = Some(Extensions::FROM_CONTENT_STORE);
    for (number, object, tag) in [(2, "/demo/files/b", 8), (3, "/demo/files/c", 5)] {
        bench.tag = Some(Bitrate::mbps(tag));
        bench.put(object, 1_000_000);
        bench.fetch(number, object);
        bench.run_until(at(2_000 * number));
    }
    let [first, second, third] =
        [1, 2, 3].map(|number| bench.fetched(number).flow.flowed.as_millis());
    assert!(second.abs_diff(first) <= 1, "{second} ms after {first} ms");
    assert!((1_600..=1_800).contains(&third), "{third} ms");
}

/// A megabyte takes a second at 8 Mbit/s, and so it counts when a cache has the next one that does not know yet how fast such Data
/// come to it. Of a small object most of the time is a round trip.
#[test]
fn what_a_silent_cache_has_counts_at_the_rate_of_what_came_before() {
    let mut bench = Bench::new();
    bench.rate = Bitrate::mbps(8);
    bench.source = Some(Extensions::FROM_PRODUCER);
    for (number, object, size) in [(1, "/demo/files/a", 1_000_000), (2, "/demo/files/b", 800)] {
        bench.put(object, size);
        bench.fetch(number, object);
        bench.run_until(at(2_000 * number));
    }
    bench.rate = Bitrate::mbps(80);
    bench.source = Some(Extensions::FROM_CONTENT_STORE);
    bench.put("/demo/files/c", 1_000_000);
    bench.fetch(3, "/demo/files/c");
    bench.run_until(at(6_000));
    let [first, last] = [1, 3].map(|number| bench.fetched(number).flow.flowed.as_millis());
    assert!((1_000..=1_300).contains(&first), "{first} ms");
    assert!(last.abs_diff(first) <= 1, "{last} ms after {first} ms");
}

#[test]
fn what_is_given_up_is_requested_no_more() {
    let mut bench = Bench::new();
    bench.put("/demo/files/a", 1_000_000);
    bench.fetch(1, "/demo/files/a");
    bench.run_until(at(100));
    bench.downloader.give_up(1);
    let sent = bench.interests.len();
    bench.run_until(at(2_000));
    assert_eq!((bench.interests.len(), bench.reports.len()), (sent, 0));
    assert_eq!(bench.downloader.poll_timeout(), None);
}
