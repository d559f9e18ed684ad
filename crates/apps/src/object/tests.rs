//! Server and fetcher, joined by a path that delays, loses, reorders and forges, in virtual time.

use std::collections::BTreeMap;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::signature::{Ed25519Signer, HmacSigner, KeyPair};
use namecast_packet::{Certificate, Data, Interest, KeyLocator, LpPacket, Nonce, Packet, Validity};
use namecast_units::{Bitrate, ByteSize, Instant, Random, Timestamp};

use super::*;
use crate::discovery::{Pin, Refusal, Trust, Verdict};
use crate::face;

const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn signer(identity: &str, seed: u8) -> Ed25519Signer {
    let key = name(identity).builder().generic("KEY").generic("1");
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(key.finish()))
}

fn certificate(identity: &str, seed: u8) -> Certificate {
    let validity = Validity {
        not_before: Timestamp::from_micros(0),
        not_after: Timestamp::from_micros(u64::MAX / 2),
    };
    let pair = signer(identity, seed);
    Certificate::self_signed(&name(identity), b"1", 9, validity, &pair)
}

fn server_of(identity: &str, seed: u8, config: ServerConfig) -> Server {
    let signer = Box::new(signer(identity, seed));
    Server::new(config, signer, certificate(identity, seed)).unwrap()
}

/// Serves objects in segments of 4000 octets.
fn server() -> Server {
    let config = ServerConfig {
        segment_size: 4_000,
        ..ServerConfig::new(name("/demo/files"))
    };
    server_of("/demo", 7, config)
}

fn config() -> FetcherConfig {
    FetcherConfig {
        wall_at_zero: WALL,
        ..FetcherConfig::new(name("/demo/files/a"))
    }
}

fn content(size: usize, seed: u64) -> Bytes {
    let mut content = vec![0; size];
    Random::from_seed(seed).fill(&mut content);
    content.into()
}

/// The same octets, the last of which is another: the signature is wrong.
fn forged(wire: &Bytes) -> Bytes {
    let mut octets = wire.to_vec();
    *octets.last_mut().unwrap() ^= 1;
    octets.into()
}

fn is_segment(wire: &Bytes, number: u64) -> bool {
    Data::decode(wire.clone()).is_ok_and(|data| parts(data.name()).2 == Some(number))
}

type OnRequest = Box<dyn FnMut(&mut Server, Name)>;
type OnAnswer = Box<dyn FnMut(&mut Server, Bytes) -> Option<Bytes>>;

/// A server and a fetcher at both ends of a path.
struct Bench {
    server: Server,
    fetcher: Fetcher,
    now: Instant,
    /// Time in each direction; each packet takes up to `jitter` longer.
    delay: Duration,
    jitter: Duration,
    /// Rate of the direction to the fetcher.
    rate: Bitrate,
    loss: f64,
    /// What the server's owner does about an object that was requested.
    on_request: OnRequest,
    /// What becomes of a packet on its way to the fetcher.
    on_answer: OnAnswer,
    random: Random,
    /// Packets on their way, and whether to the server.
    on_way: BTreeMap<(Instant, u64), (bool, Bytes)>,
    count: u64,
    free_at: Instant,
    /// Most segments that waited for the budget.
    longest_table: usize,
    /// Longest time that a packet waited for the link.
    longest_queue: Duration,
    /// What the fetcher sent, and which face it wants avoided.
    interests: Vec<(Interest, Option<u64>)>,
    events: Vec<Event>,
}

impl Bench {
    fn new(server: Server, config: FetcherConfig) -> Self {
        Self {
            server,
            fetcher: Fetcher::new(config),
            now: at(0),
            delay: 10 * MS,
            jitter: Duration::ZERO,
            rate: Bitrate::mbps(50),
            loss: 0.0,
            on_request: Box::new(|server, name| server.refuse(&name)),
            on_answer: Box::new(|_, wire| Some(wire)),
            random: Random::from_seed(1),
            on_way: BTreeMap::new(),
            count: 0,
            free_at: at(0),
            longest_table: 0,
            longest_queue: Duration::ZERO,
            interests: Vec::new(),
            events: Vec::new(),
        }
    }

    fn send(&mut self, to_server: bool, wire: Bytes) {
        if self.random.chance(self.loss) {
            return;
        }
        let mut leaves = self.now;
        if !to_server {
            leaves = leaves.max(self.free_at) + ByteSize::of(&wire) / self.rate;
            self.free_at = leaves;
            self.longest_queue = self.longest_queue.max(leaves.since(self.now));
        }
        let jitter = self.random.unit() * self.jitter.as_secs_f64();
        let at = leaves + self.delay + Duration::from_secs_f64(jitter);
        self.count += 1;
        self.on_way.insert((at, self.count), (to_server, wire));
    }

    fn drain(&mut self) {
        while let Some(wire) = self.fetcher.poll_output() {
            let Ok(Some((Packet::Interest(interest), link))) = face::open(wire.clone()) else {
                panic!("not an Interest");
            };
            self.interests.push((interest, link.avoid_face));
            self.send(true, wire);
        }
        while let Some(Requested(name)) = self.server.poll_event() {
            (self.on_request)(&mut self.server, name);
        }
        while let Some(wire) = self.server.poll_output() {
            if let Some(wire) = (self.on_answer)(&mut self.server, wire) {
                self.send(false, wire);
            }
        }
        let waiting = self.fetcher.uplink().sizes().1;
        self.longest_table = self.longest_table.max(waiting);
        let fetcher = &mut self.fetcher;
        self.events
            .extend(core::iter::from_fn(|| fetcher.poll_event()));
    }

    /// Goes on to the next thing that is due.
    fn step(&mut self) {
        let arrival = self.on_way.keys().next().map(|(at, _)| *at);
        let timeouts = [self.fetcher.poll_timeout(), self.server.poll_timeout()];
        let next = timeouts.into_iter().flatten().chain(arrival).min();
        self.now = next.expect("neither ended nor waiting").max(self.now);
        self.fetcher.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        while let Some(entry) = self.on_way.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                (true, wire) => self.server.handle_packet(self.now, wire),
                (false, wire) => self.fetcher.handle_packet(self.now, wire),
            }
        }
        self.drain();
    }

    /// Runs until the fetcher ends, or for ten minutes.
    fn run(&mut self) -> Result<Fetched, Failure> {
        while self.now < at(600_000) {
            self.step();
            match self.events.last() {
                Some(Event::Fetched(fetched)) => return Ok(fetched.clone()),
                Some(Event::Failed(why)) => return Err(why.clone()),
                _ => {}
            }
        }
        panic!("neither fetched nor failed: {:?}", self.fetcher);
    }

    /// Interests for this name.
    fn asked(&self, name: &Name) -> usize {
        let names = self.interests.iter().map(|(interest, _)| interest.name());
        names.filter(|asked| *asked == name).count()
    }
}

/// A bench whose object has `size` octets.
fn bench(size: usize) -> (Bench, Bytes) {
    let mut server = server();
    let content = content(size, 5);
    server
        .put(name("/demo/files/a"), content.clone(), WALL)
        .unwrap();
    (Bench::new(server, config()), content)
}

fn versioned() -> Name {
    name("/demo/files/a")
        .builder()
        .version(WALL.as_micros())
        .finish()
}

/// A datagram of 1400 octets carries 1374 octets of a packet, and one of 1172 carries 1146 (link headers: 26). A segment with names of up to
/// 60 octets and link fields of 16 takes three or four of them, and the last is no small rest.
#[test]
fn segments_fill_the_datagrams_that_they_are_cut_to() {
    for length in [1, 60] {
        let prefix = name("/").builder().generic(&"x".repeat(length)).finish();
        let identity = prefix.to_string();
        let mut server = server_of(&identity, 7, ServerConfig::new(prefix.clone()));
        let object = prefix.builder().generic("file").finish();
        let version = server.put(object, content(40_000, 1), WALL).unwrap();
        let segment = version.builder().segment(1).finish();
        server.handle_packet(at(0), interest(&segment.to_string()).wire().clone());
        let octets = server.poll_output().unwrap().len() + 16;
        assert!(
            (2 * 1_374 + 1_000..=3 * 1_374).contains(&octets),
            "{octets}"
        );
        assert!((3 * 1_146 + 400..=4 * 1_146).contains(&octets), "{octets}");
    }
}

/// Segments of 4000 octets: the last has the rest, and an object without content has one segment without content. Two round
/// trips of 20 ms for version and certificate, and one for the other segments if there are any.
#[test]
fn objects_of_any_size_come_whole() {
    let sizes = [(0, 1), (1, 1), (4_000, 1), (4_001, 2), (40_000, 10)];
    for (size, segments) in sizes {
        let (mut bench, content) = bench(size);
        let fetched = bench.run().unwrap();
        assert_eq!(fetched.content, content, "{size}");
        assert_eq!(fetched.name, versioned());
        assert_eq!(fetched.signer.key_name, name("/demo/KEY/1"));
        assert_eq!(fetched.signer.verdict, Verdict::FirstUse);
        assert_eq!(bench.interests.len(), segments + 1, "{size}");
        let trips = if segments == 1 { 2 } else { 3 };
        let took = bench.now.since(at(0));
        assert!(
            took >= 20 * MS * trips && took < 20 * MS * trips + 10 * MS,
            "{size}: {took:?}"
        );
        assert_eq!(bench.fetcher.poll_timeout(), None);
    }
}

/// 1 MB in 250 segments of 4.2 kB is 8.4 Mbit: 0.84 s at 10 Mbit/s, after two round trips. Other rates and delays come close
/// to that as well, and queues stay short.
#[test]
fn a_large_object_fills_the_path_without_a_long_queue() {
    for (mbps, delay, most) in [
        (10, 10, 1_200),
        (2, 40, 5_500),
        (100, 40, 600),
        (200, 100, 1_000),
    ] {
        let (mut bench, content) = bench(1_000_000);
        bench.rate = Bitrate::mbps(mbps);
        bench.delay = delay * MS;
        assert_eq!(bench.run().unwrap().content, content);
        let took = bench.now.since(at(0));
        assert!(took < most * MS, "{mbps} Mbit/s, {delay} ms: {took:?}");
        assert!(bench.longest_queue < 250 * MS, "{:?}", bench.longest_queue);
        assert!(
            (251..260).contains(&bench.interests.len()),
            "{}",
            bench.interests.len()
        );
        let progress = bench.events.iter().filter_map(|event| match event {
            Event::Progress {
                received,
                total: 250,
                ..
            } => Some(*received),
            _ => None,
        });
        let progress: Vec<_> = progress.collect();
        assert!(progress.is_sorted() && progress.len() > 100);
        assert_eq!(progress.last(), Some(&250));
    }
}

/// Of packets in both directions: at a loss of 20 %, 64 of 100 Interests are answered. Lost segments may be in a cache.
#[test]
fn what_is_lost_or_overtaken_is_requested_again() {
    let cases = [
        (0.0, 30, 700),
        (0.02, 0, 500),
        (0.1, 0, 1_500),
        (0.1, 30, 2_500),
        (0.2, 5, 4_000),
    ];
    for (seed, (loss, jitter, most)) in (1..).zip(cases) {
        let (mut bench, content) = bench(1_000_000);
        bench.loss = loss;
        bench.jitter = jitter * MS;
        bench.random = Random::from_seed(seed);
        assert_eq!(bench.run().unwrap().content, content, "seed {seed}");
        assert!(bench.now < at(most), "seed {seed}: {}", bench.now);
        let expected = 251.0 / ((1.0 - loss) * (1.0 - loss));
        let sent = bench.interests.len();
        assert!((sent as f64) < 1.3 * expected, "seed {seed}: {sent}");
        let discovery = name("/demo/files/a");
        let fresh = bench.interests.iter().filter(|it| it.0.must_be_fresh());
        assert!(fresh.into_iter().all(|it| *it.0.name() == discovery));
    }
}

/// Of 250 segments, the last is lost: nothing comes after it. Two round trips of 20 ms and 100 ms later it is requested again.
#[test]
fn a_lost_tail_is_noticed_soon() {
    let (mut bench, _) = bench(1_000_000);
    let mut lost_at = 1;
    bench.on_answer = Box::new(move |_, wire| {
        let is_lost = is_segment(&wire, 249) && lost_at > 0;
        lost_at -= u32::from(is_lost);
        Some(wire).filter(|_| !is_lost)
    });
    bench.run().unwrap();
    let undisturbed = {
        let (mut bench, _) = self::bench(1_000_000);
        bench.run().unwrap();
        bench.now
    };
    let later = bench.now.since(undisturbed);
    assert!(later > 100 * MS && later < 200 * MS, "{later:?}");
}

/// The first three answers for segment `number` are forged, and come from face 9.
#[test]
fn forged_segments_are_requested_past_all_caches() {
    for number in [0, 3] {
        let (mut bench, content) = bench(40_000);
        let mut count = 0;
        bench.on_answer = Box::new(move |_, wire| {
            count += u32::from(is_segment(&wire, number));
            if !is_segment(&wire, number) || count > 3 {
                return Some(wire);
            }
            let packet = LpPacket {
                incoming_face: Some(9),
                ..LpPacket::carrying(forged(&wire))
            };
            Some(packet.encode())
        });
        assert_eq!(bench.run().unwrap().content, content, "{number}");
        assert_eq!(bench.fetcher.counters().verification_failures, 3);
        let (asked, fresh, avoided) = match number {
            0 => (name("/demo/files/a"), [true; 4], [None; 4]),
            _ => (
                versioned().builder().segment(number).finish(),
                [false, true, true, true],
                [None, Some(9), Some(9), Some(9)],
            ),
        };
        let sent = bench.interests.iter().filter(|it| *it.0.name() == asked);
        let sent: Vec<_> = sent.map(|(it, face)| (it.must_be_fresh(), *face)).collect();
        assert_eq!(sent, fresh.into_iter().zip(avoided).collect::<Vec<_>>());
    }
}

#[test]
fn a_segment_that_is_always_forged_ends_it() {
    for (number, interests) in [(0, 4), (3, 10)] {
        let (mut bench, _) = bench(40_000);
        bench.on_answer = Box::new(move |_, wire| {
            let is_forged = is_segment(&wire, number);
            Some(if is_forged { forged(&wire) } else { wire })
        });
        assert_eq!(bench.run(), Err(Failure::BadSignature));
        assert_eq!(bench.fetcher.counters().verification_failures, interests);
        assert_eq!(bench.fetcher.poll_timeout(), None);
    }
}

/// Of the same name, but another key's; a certificate that is none; and then the right one.
#[test]
fn forged_certificates_do_not_keep_the_right_one_out() {
    let (mut bench, content) = bench(40_000);
    let foreign = certificate("/demo", 8).data().wire().clone();
    let mut count = 0;
    bench.on_answer = Box::new(move |_, wire| {
        let is_certificate =
            Data::decode(wire.clone()).is_ok_and(|data| Certificate::decode(data).is_ok());
        count += u32::from(is_certificate);
        Some(match count {
            1 if is_certificate => foreign.clone(),
            2 if is_certificate => {
                let name = name("/demo/KEY/1/self/v=9");
                Data::builder(name).sign(&signer("/demo", 8)).wire().clone()
            }
            _ => wire,
        })
    });
    assert_eq!(bench.run().unwrap().content, content);
    let sent = bench.interests.iter().map(|(interest, _)| interest);
    let sent = sent.filter(|interest| *interest.name() == name("/demo/KEY/1"));
    let fresh: Vec<_> = sent.map(Interest::must_be_fresh).collect();
    assert_eq!(fresh, [false, true, true]);
    // Six round trips: none waited for a timer.
    assert!(bench.now < at(200), "{}", bench.now);
}

/// The key that is trusted is not the one that signs; or it is, by its digest or its certificate.
#[test]
fn only_the_key_that_is_trusted_counts() {
    let digest = |seed| signer("/demo", seed).public_key().digest();
    let pinned = |seed| Trust::Pinned(Pin::Certificate(Box::new(certificate("/demo", seed))));
    let cases = [
        (Trust::Remembered(digest(7)), Ok(Verdict::Remembered)),
        (Trust::Remembered(digest(8)), Err(Refusal::ChangedKey)),
        (Trust::Pinned(Pin::Digest(digest(7))), Ok(Verdict::Pinned)),
        (
            Trust::Pinned(Pin::Digest(digest(8))),
            Err(Refusal::OtherKey),
        ),
        (pinned(7), Ok(Verdict::Pinned)),
        (pinned(8), Err(Refusal::OtherKey)),
    ];
    for (trust, expected) in cases {
        let (mut bench, _) = bench(40_000);
        bench.fetcher = Fetcher::new(FetcherConfig { trust, ..config() });
        match (bench.run(), expected) {
            (Ok(fetched), Ok(verdict)) => assert_eq!(fetched.signer.verdict, verdict),
            (Err(Failure::NotAccepted(signer)), Err(why)) => {
                assert_eq!(signer.verdict, Verdict::Refused(why));
                assert_eq!(
                    bench.interests.len(),
                    8,
                    "nothing but first segment and certificate"
                );
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_signer_must_belong_to_a_prefix_of_the_name() {
    for (identity, accepted) in [
        ("/demo/files", true),
        ("/demo/files/a/b", false),
        ("/mallory", false),
    ] {
        let config_of_server = ServerConfig::new(name("/demo/files"));
        let mut server = server_of(identity, 7, config_of_server);
        server
            .put(name("/demo/files/a"), content(10, 1), WALL)
            .unwrap();
        let mut bench = Bench::new(server, config());
        match bench.run() {
            Ok(_) => assert!(accepted, "{identity}"),
            Err(why) => assert_eq!(
                (accepted, why),
                (false, Failure::ForeignSigner),
                "{identity}"
            ),
        }
    }
}

#[test]
fn a_signature_may_name_the_certificate() {
    let locator = KeyLocator::Name(certificate("/demo", 7).name().clone());
    let signer = Box::new(Ed25519Signer::from_seed([7; 32], locator));
    let config_of_server = ServerConfig::new(name("/demo/files"));
    let mut server = Server::new(config_of_server, signer, certificate("/demo", 7)).unwrap();
    server
        .put(name("/demo/files/a"), content(10, 1), WALL)
        .unwrap();
    let fetched = Bench::new(server, config()).run().unwrap();
    assert_eq!(fetched.signer.key_name, name("/demo/KEY/1"));
}

#[test]
fn a_shared_secret_signs_instead_of_the_key() {
    let secret = [9; 32];
    for (told, accepted) in [(secret, true), ([8; 32], false)] {
        let key = KeyLocator::Name(name("/demo/KEY/1"));
        let hmac = Box::new(HmacSigner::new(&secret, key));
        let config_of_server = ServerConfig::new(name("/demo/files"));
        let mut server = Server::new(config_of_server, hmac, certificate("/demo", 7)).unwrap();
        server
            .put(name("/demo/files/a"), content(9_000, 1), WALL)
            .unwrap();
        let trust = Trust::Secret(told);
        let mut bench = Bench::new(server, FetcherConfig { trust, ..config() });
        match bench.run() {
            Ok(fetched) => assert!(accepted && fetched.content == content(9_000, 1)),
            Err(why) => assert_eq!((accepted, why), (false, Failure::BadSignature)),
        }
    }
}

/// While version 1 is fetched, one more is put, or two: then the server has no more of the first, and the third comes.
#[test]
fn a_version_that_changes_does_not_mix() {
    for puts in [1, 2] {
        let (mut bench, first) = bench(400_000);
        bench.rate = Bitrate::mbps(10);
        let mut count = 0;
        bench.on_answer = Box::new(move |server, wire| {
            count += 1;
            if (40..40 + puts).contains(&count) {
                let content = content(30_000, count);
                server.put(name("/demo/files/a"), content, WALL).unwrap();
            }
            Some(wire)
        });
        let fetched = bench.run().unwrap();
        let (version, expected) = match puts {
            1 => (WALL.as_micros(), first),
            _ => (WALL.as_micros() + 2, content(30_000, 41)),
        };
        assert_eq!(
            fetched.name,
            name("/demo/files/a").builder().version(version).finish()
        );
        assert_eq!(fetched.content, expected, "{puts}");
    }
}

/// A cache may know the newest version by any of its segments.
#[test]
fn any_segment_shows_the_version() {
    for (number, last, expected) in [(3, 9, Ok(())), (3, 2, Err(Failure::Malformed))] {
        let (mut bench, content) = bench(40_000);
        let part = content.slice(12_000..16_000);
        let middle = Data::builder(versioned().builder().segment(number).finish())
            .final_block(Name::root().builder().segment(last).finish())
            .content(part)
            .sign(&signer("/demo", 7));
        let mut is_first = true;
        bench.on_answer = Box::new(move |_, wire| {
            if core::mem::take(&mut is_first) {
                return Some(middle.wire().clone());
            }
            let is_data = (0..10).any(|number| is_segment(&wire, number));
            Some(if is_data {
                lie(&wire, Some(last))
            } else {
                wire
            })
        });
        let ended = bench
            .run()
            .map(|fetched| assert_eq!(fetched.content, content));
        assert_eq!(ended, expected);
        assert_eq!(
            bench.asked(&versioned().builder().segment(number).finish()),
            0
        );
    }
}

/// Signed with the right key all the same: another object, and another version.
#[test]
fn data_that_was_not_requested_changes_nothing() {
    let (mut bench, content) = bench(40_000);
    let foreign = [
        ("/demo/files/b/v=5/seg=0", 0),
        ("/demo/files/a/v=5/seg=3", 9),
        ("/demo/files/a/seg=3", 9),
    ];
    let foreign = foreign.map(|(uri, last)| {
        let data = Data::builder(name(uri)).content(vec![0; 4_000]);
        let data = data.final_block(Name::root().builder().segment(last).finish());
        data.sign(&signer("/demo", 7)).wire().clone()
    });
    bench.fetcher.handle_timeout(at(0));
    bench.fetcher.handle_packet(at(0), foreign[0].clone());
    let mut count = 0;
    bench.on_answer = Box::new(move |_, wire| {
        count += 1;
        Some(if (4..7).contains(&count) {
            foreign[count - 4].clone()
        } else {
            wire
        })
    });
    assert_eq!(bench.run().unwrap().content, content);
    assert!(bench.fetcher.counters().unexpected >= 4);
}

fn nack(interest: &Interest, nonce: Option<Nonce>, reason: NackReason) -> Bytes {
    let interest = nonce.map_or_else(|| interest.clone(), |nonce| interest.with_nonce(nonce));
    face::refusal(&interest, None, reason)
}

/// Nodes without a route may find one, and congestion passes; what is refused with another Nonce is not ours any more.
#[test]
fn only_the_last_refusal_of_a_publisher_is_final() {
    let (mut bench, _) = bench(10);
    let asked = interest("/demo/files/a");
    bench.on_answer = Box::new(move |_, _| Some(nack(&asked, None, NackReason::NoRoute)));
    assert_eq!(bench.run(), Err(Failure::Refused(NackReason::NoRoute)));
    assert_eq!((bench.now, bench.interests.len()), (at(8_750), 10));

    // Interests for the object, and for its last segment after the Nack for that.
    let other = Some(Nonce::from(9));
    let cases = [
        (None, NackReason::None, (2, 1)),
        (None, NackReason::Congestion, (1, 1)),
        (other, NackReason::None, (1, 0)),
        (other, NackReason::Congestion, (1, 0)),
    ];
    for (nonce, reason, expected) in cases {
        let (mut bench, content) = self::bench(40_000);
        let is_last = |(interest, _): &(Interest, _)| parts(interest.name()).2 == Some(9);
        while !bench.interests.last().is_some_and(is_last) {
            bench.step();
        }
        let (last, _) = bench.interests.pop().unwrap();
        let nack = nack(&last, nonce, reason);
        bench.fetcher.handle_packet(bench.now, nack);
        assert_eq!(bench.run().unwrap().content, content);
        let sent = (
            bench.asked(&name("/demo/files/a")),
            bench.asked(last.name()),
        );
        assert_eq!(sent, expected, "{nonce:?} {reason:?}");
    }
}

/// Progress is reported as it is when somebody looks.
#[test]
fn events_that_nobody_polls_take_no_memory() {
    let (bench, _) = bench(40_000);
    let (mut server, mut fetcher) = (bench.server, bench.fetcher);
    for millis in 0..100 {
        fetcher.handle_timeout(at(millis));
        while let Some(wire) = fetcher.poll_output() {
            server.handle_packet(at(millis), wire);
        }
        while let Some(wire) = server.poll_output() {
            fetcher.handle_packet(at(millis), wire);
        }
    }
    let events: Vec<_> = core::iter::from_fn(|| fetcher.poll_event()).collect();
    let whole = Event::Progress {
        received: 10,
        total: 10,
        octets: 40_000,
    };
    assert_eq!((events.len(), &events[0]), (2, &whole));
}

/// Signs the content of `wire` again with another FinalBlockId.
fn lie(wire: &Bytes, last: Option<u64>) -> Bytes {
    let data = Data::decode(wire.clone()).unwrap();
    let lie = Data::builder(data.name().clone()).content(data.content().unwrap());
    let lie = match last {
        Some(last) => lie.final_block(Name::root().builder().segment(last).finish()),
        None => lie,
    };
    lie.sign(&signer("/demo", 7)).wire().clone()
}

/// An object of 10 segments whose signer announces others. 64 MiB in segments of 500 octets on average are 134218.
#[test]
fn a_lying_final_block_costs_little() {
    let too_large = Failure::TooLarge(ByteSize::mebibytes(64));
    let cases = [
        (0..1, Some(u64::MAX), too_large.clone(), 2),
        (0..1, Some(134_218), too_large, 2),
        // Each start requests what the budget allows at first, and ends with the first Nack.
        (
            0..10,
            Some(134_217),
            Failure::Refused(NackReason::None),
            500,
        ),
        (0..1, Some(5), Failure::Malformed, 20),
        (0..1, None, Failure::Malformed, 2),
        (4..5, Some(4), Failure::Malformed, 20),
    ];
    for (numbers, last, expected, interests) in cases {
        let (mut bench, _) = bench(40_000);
        bench.on_answer = Box::new(move |_, wire| {
            Some(
                match numbers.clone().any(|number| is_segment(&wire, number)) {
                    true => lie(&wire, last),
                    false => wire,
                },
            )
        });
        assert_eq!(bench.run(), Err(expected), "{last:?}");
        let sent = bench.interests.len();
        assert!(sent <= interests, "{last:?}: {sent}");
        assert!(bench.longest_table <= 1_024, "{}", bench.longest_table);
    }
}

#[test]
fn an_object_larger_than_wanted_is_not_fetched() {
    for (max_size, fits) in [(40_000, true), (39_999, false)] {
        let (mut bench, _) = bench(40_000);
        let max_size = ByteSize::bytes(max_size);
        bench.fetcher = Fetcher::new(FetcherConfig {
            max_size,
            ..config()
        });
        let ended = bench.run();
        assert_eq!(ended.is_ok(), fits);
        assert!(fits || ended == Err(Failure::TooLarge(max_size)));
    }
}

/// 250 ms, 500 ms and eight times a second.
#[test]
fn what_is_never_answered_is_given_up() {
    let (mut bench, _) = bench(10);
    bench.on_answer = Box::new(|_, _| None);
    assert_eq!(bench.run(), Err(Failure::Unanswered));
    assert_eq!((bench.now, bench.interests.len()), (at(8_750), 10));

    // No Interest can have this name.
    let mut nameless = Fetcher::new(FetcherConfig::new(Name::root()));
    nameless.handle_timeout(at(0));
    let failed = Event::Failed(Failure::Unanswered);
    assert_eq!(
        (nameless.poll_event(), nameless.poll_timeout()),
        (Some(failed), None)
    );

    // One segment: each time nothing has come for long.
    let (mut bench, _) = self::bench(40_000);
    bench.on_answer = Box::new(|_, wire| Some(wire).filter(|wire| !is_segment(wire, 4)));
    assert_eq!(bench.run(), Err(Failure::Unanswered));
    assert_eq!(bench.asked(&versioned().builder().segment(4).finish()), 10);
    assert_eq!(bench.interests.len(), 20);
    assert!(bench.now < at(25_000), "{}", bench.now);
}

#[test]
fn what_does_not_exist_is_refused_at_once() {
    let mut bench = Bench::new(server(), config());
    assert_eq!(bench.run(), Err(Failure::Refused(NackReason::None)));
    assert_eq!(
        (bench.interests.len(), bench.fetcher.counters().nacked),
        (1, 1)
    );
    assert!(bench.now < at(21));
}

#[test]
fn an_object_is_made_on_request() {
    let mut bench = Bench::new(server(), config());
    bench.on_request = Box::new(|server, name| {
        server.put(name, content(9_000, 1), WALL).unwrap();
    });
    assert_eq!(bench.run().unwrap().content, content(9_000, 1));
}

fn interest(uri: &str) -> Interest {
    let interest = Interest::builder(name(uri)).can_be_prefix().must_be_fresh();
    interest.build(Nonce::from(1))
}

/// What the server answers to `interest` at once.
fn ask(server: &mut Server, now: Instant, interest: &Interest) -> Option<Packet> {
    server.handle_packet(now, interest.wire().clone());
    let (packet, link) = face::open(server.poll_output()?).unwrap().unwrap();
    assert_eq!(link.nack.is_some(), matches!(packet, Packet::Interest(_)));
    assert_eq!(server.poll_output(), None);
    Some(packet)
}

/// The name of the Data that answers `uri` at once; `None`: it is refused.
fn answer(server: &mut Server, uri: &str) -> Option<String> {
    match ask(server, at(0), &interest(uri)).expect("an answer") {
        Packet::Data(data) => Some(data.name().to_string()),
        Packet::Interest(_) => None,
    }
}

#[test]
fn names_are_answered_by_what_they_name() {
    let mut server = server();
    let file = name("/demo/files/a");
    // The clock stands still, and each version is a later one.
    for size in [9_000, 5_000, 3_000] {
        server
            .put(file.clone(), content(size, 1), Timestamp::from_micros(5))
            .unwrap();
    }
    let versions = [
        ("/demo/files/a", Some("/demo/files/a/v=7/seg=0")),
        ("/demo/files/a/v=7", Some("/demo/files/a/v=7/seg=0")),
        ("/demo/files/a/v=7/seg=0", Some("/demo/files/a/v=7/seg=0")),
        ("/demo/files/a/v=7/seg=1", None),
        ("/demo/files/a/v=6", Some("/demo/files/a/v=6/seg=0")),
        ("/demo/files/a/v=6/seg=1", Some("/demo/files/a/v=6/seg=1")),
        ("/demo/files/a/v=5", None),
        ("/demo/files/a/v=8", None),
        ("/demo/files/a/seg=0", None),
        ("/demo/files/b/v=5", None),
        ("/demo/other", None),
        ("/demo", None),
        ("/demo/KEY/1", Some("/demo/KEY/1/self/v=9")),
        ("/demo/KEY/1/self/v=9", Some("/demo/KEY/1/self/v=9")),
        ("/demo/KEY/2", None),
        (
            "/demo/files/a/32=metadata",
            Some("/demo/files/a/32=metadata/v=7/seg=0"),
        ),
        ("/demo/files/b/32=metadata", None),
    ];
    for (asked, expected) in versions {
        assert_eq!(answer(&mut server, asked).as_deref(), expected, "{asked}");
    }
    let Some(Packet::Data(metadata)) =
        ask(&mut server, at(0), &interest("/demo/files/a/32=metadata"))
    else {
        panic!("no metadata");
    };
    let named = Name::decode(&metadata.content().unwrap());
    assert_eq!(named, Ok(file.builder().version(7).finish()));
    let exact = Interest::builder(file.clone()).build(Nonce::from(1));
    let refused = ask(&mut server, at(0), &exact);
    assert!(matches!(refused, Some(Packet::Interest(_))));
    let unknown = Interest::builder(name("/demo/files/c")).build(Nonce::from(1));
    let refused = ask(&mut server, at(0), &unknown);
    assert!(
        matches!(refused, Some(Packet::Interest(_))),
        "no object could answer that"
    );
    assert_eq!(server.size(), ByteSize::bytes(8_000));
    assert!(server.remove(&file) && !server.remove(&file));
    assert_eq!((server.size(), server.poll_event()), (ByteSize::ZERO, None));
}

/// Only what is newest for a moment is fresh at all: a segment that was forged can be requested past all caches.
#[test]
fn only_first_segments_are_fresh() {
    let mut server = server();
    let versioned = server
        .put(name("/demo/files/a"), content(9_000, 1), WALL)
        .unwrap();
    for (number, millis) in [(0, 1_000), (1, 0), (2, 0)] {
        let segment = versioned.builder().segment(number).finish();
        let interest = Interest::builder(segment).build(Nonce::from(1));
        let Some(Packet::Data(data)) = ask(&mut server, at(0), &interest) else {
            panic!("no answer");
        };
        assert_eq!(data.freshness(), Duration::from_millis(millis));
        assert_eq!(data.verify(&signer("/demo", 7).public_key()), Ok(()));
        assert_eq!(
            data.final_block(),
            Some(&Name::root().builder().segment(2).finish())
        );
    }
}

#[test]
fn interests_wait_for_an_object_as_long_as_they_live() {
    let mut server = server();
    let file = name("/demo/files/b");
    let asked = |token: &'static [u8], lifetime| {
        let interest = Interest::builder(file.clone())
            .can_be_prefix()
            .lifetime(lifetime);
        let packet = LpPacket {
            pit_token: Some(token.into()),
            ..LpPacket::carrying(interest.build(Nonce::from(2)).wire().clone())
        };
        packet.encode()
    };
    server.handle_packet(at(0), asked(b"1", 1_000 * MS));
    server.handle_packet(at(500), asked(b"1", 1_000 * MS));
    server.handle_packet(at(500), asked(b"2", 60_000 * MS));
    assert_eq!((server.pending(), server.poll_output()), (2, None));
    assert_eq!(server.poll_event(), Some(Requested(file.clone())));
    assert_eq!(server.poll_event(), None);
    assert_eq!(server.poll_timeout(), Some(at(1_500)));
    server.handle_timeout(at(1_499));
    assert_eq!(server.pending(), 2);
    server.handle_timeout(at(1_500));
    // The other Interest's lifetime is cut to ten seconds.
    assert_eq!(
        (server.pending(), server.poll_timeout()),
        (1, Some(at(10_500)))
    );
    server.put(file.clone(), Bytes::new(), WALL).unwrap();
    let answer = LpPacket::decode(server.poll_output().unwrap()).unwrap();
    assert_eq!(answer.pit_token, Some(Bytes::from_static(b"2")));
    assert_eq!(
        (
            server.poll_output(),
            server.pending(),
            server.poll_timeout()
        ),
        (None, 0, None)
    );

    // Nobody heard of one whose Interests have expired.
    server.remove(&file);
    server.handle_packet(at(20_000), asked(b"3", 100 * MS));
    server.handle_timeout(at(20_100));
    assert_eq!((server.poll_event(), server.counters().expired), (None, 2));
}

#[test]
fn tables_are_bounded_and_strangers_fill_none_for_long() {
    let config = ServerConfig {
        max_objects: 2,
        max_size: ByteSize::bytes(10_000),
        max_pending: 3,
        max_output: 2,
        ..ServerConfig::new(name("/demo/files"))
    };
    let mut server = server_of("/demo", 7, config);
    let file = |number: u32| name(&format!("/demo/files/{number}"));
    for number in 0..5 {
        server.handle_packet(at(0), interest(&file(number).to_string()).wire().clone());
    }
    assert_eq!((server.pending(), server.counters().overflow), (3, 2));
    let requested: Vec<_> = core::iter::from_fn(|| server.poll_event()).collect();
    assert_eq!(requested, [0, 1, 2].map(|number| Requested(file(number))));
    // Each makes room for the next, and all for one that is to stay.
    for number in 0..3 {
        server.put(file(number), content(4_000, 1), WALL).unwrap();
    }
    assert_eq!(
        (server.size(), server.counters().overflow),
        (ByteSize::bytes(8_000), 3)
    );
    server.put(file(7), content(9_000, 1), WALL).unwrap();
    assert_eq!(server.size(), ByteSize::bytes(9_000));
    let full = |number| Err(ServerError::Full(file(number)));
    assert_eq!(server.put(file(8), content(1_001, 1), WALL), full(8));
    assert_eq!(server.put(file(7), content(1_001, 1), WALL), full(7));
    server.put(file(8), content(1_000, 1), WALL).unwrap();
    assert_eq!(server.put(file(9), Bytes::new(), WALL), full(9));
    assert!(server.remove(&file(7)) && server.remove(&file(8)));
    assert_eq!(server.size(), ByteSize::ZERO);
    // The version that goes makes room for the one that comes.
    for _ in 0..3 {
        server.put(file(1), content(5_000, 1), WALL).unwrap();
    }
    assert!(server.remove(&file(1)));
    // An object that no event told of stays, though somebody requested it; and none makes room for itself.
    for (number, is_told) in [(5, false), (6, true)] {
        server.handle_packet(at(0), interest(&file(number).to_string()).wire().clone());
        if is_told {
            assert_eq!(server.poll_event(), Some(Requested(file(number))));
        }
        server.put(file(number), content(4_000, 1), WALL).unwrap();
    }
    assert_eq!(server.put(file(6), content(4_000, 1), WALL), full(6));
    server.put(file(7), content(6_000, 1), WALL).unwrap();
    assert_eq!(server.put(file(8), Bytes::new(), WALL), full(8));
    assert!(server.remove(&file(5)) && server.remove(&file(7)) && !server.remove(&file(6)));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let mut server = server();
    let prefix = name("/demo/files");
    for uri in [
        "/demo/other/a",
        "/",
        "/demo/files/a/v=5",
        "/demo/files/seg=1",
        "/demo/files/a/32=metadata",
    ] {
        let refused = server.put(name(uri), Bytes::new(), WALL);
        assert_eq!(refused, Err(ServerError::Name(name(uri), prefix.clone())));
    }
    let mut own = server_of("/demo/files", 7, ServerConfig::new(prefix.clone()));
    let key = name("/demo/files/KEY/1");
    let refused = own.put(key.clone(), Bytes::new(), WALL);
    assert_eq!(refused, Err(ServerError::Name(key, prefix.clone())));
    let long = prefix.builder().generic(&"x".repeat(5_000)).finish();
    let refused = server.put(long, content(4_000, 1), WALL);
    assert!(matches!(refused, Err(ServerError::LongName(_))));
    assert_eq!(server.size(), ByteSize::ZERO);
    let setup = |segment_size, identity| {
        let config = ServerConfig {
            segment_size,
            ..ServerConfig::new(prefix.clone())
        };
        let signer = Box::new(signer("/demo", 7));
        Server::new(config, signer, certificate(identity, 7)).map(|_| ())
    };
    assert_eq!(setup(8_000, "/demo"), Ok(()));
    for size in [0, 8_001] {
        assert_eq!(setup(size, "/demo"), Err(ServerError::SegmentSize(size)));
    }
    let other = certificate("/other", 7).name().clone();
    assert_eq!(setup(4_000, "/other"), Err(ServerError::Certificate(other)));
}

/// Any octet of valid packets changed, on the way to server and fetcher, which end as they may.
#[test]
fn garbage_is_survived() {
    for seed in 0..30 {
        let (mut bench, content) = bench(40_000);
        bench.random = Random::from_seed(seed);
        bench.loss = 0.05;
        let mut random = Random::from_seed(seed);
        bench.on_answer = Box::new(move |server, wire| {
            let mut octets = wire.to_vec();
            let place = usize::try_from(random.below(octets.len() as u64)).unwrap();
            octets[place.min(60)] = random.next_u64() as u8;
            server.handle_packet(at(0), octets.clone().into());
            let is_damaged = random.chance(0.3);
            Some(if is_damaged { octets.into() } else { wire })
        });
        if let Ok(fetched) = bench.run() {
            assert_eq!(fetched.content, content, "seed {seed}");
        }
    }
}

#[path = "downloader_tests.rs"]
mod downloader;
