//! A day of faces that come and go.

use std::collections::BTreeSet;

use bytes::Bytes;
use namecast_forward::{
    Config, ContentStoreConfig, FaceConfig, FaceId, Forwarder, LearningConfig, LinkType, PitConfig,
    StrategyKind,
};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::NullSigner;
use namecast_packet::{LpPacket, Name, PrefixAnnouncement};
use namecast_units::{ByteSize, Duration, Instant, Random};

use crate::topology::{data, interest, millis, name};

const DAY: Duration = Duration::from_secs(86_400);
const MAX_FACES: usize = 12;
const ANNOUNCED_FOR: Duration = Duration::from_secs(60);
const PREFIXES: [&str; 4] = ["/", "/a", "/a/b", "/c"];

/// A node whose faces and routes change every few seconds while traffic goes on.
struct Churn {
    random: Random,
    node: Forwarder,
    now: Instant,
    faces: Vec<FaceId>,
    /// What was routed where and not taken back.
    routes: BTreeSet<(&'static str, FaceId)>,
    number: u32,
}

impl Churn {
    fn new(seed: u64) -> Self {
        let config = Config {
            seed,
            pit: PitConfig {
                capacity: 200,
                face_capacity: 60,
                ..PitConfig::default()
            },
            content_store: ContentStoreConfig::with_capacity(ByteSize::bytes(40_000)),
            max_measurements: 50,
            learning: LearningConfig {
                max_routes: 30,
                ..LearningConfig::default()
            },
            ..Config::default()
        };
        Self {
            random: Random::from_seed(seed),
            node: Forwarder::new(config),
            now: Instant::ZERO,
            faces: Vec::new(),
            routes: BTreeSet::new(),
            number: 0,
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).unwrap()
    }

    fn prefix(&mut self) -> &'static str {
        PREFIXES[self.pick(PREFIXES.len())]
    }

    /// A face up or down, a route more or less, another strategy.
    fn change(&mut self) {
        match self.random.below(5) {
            0 if self.faces.len() < MAX_FACES => {
                let config = match self.random.below(4) {
                    0 => FaceConfig::application(""),
                    1 => FaceConfig {
                        link_type: LinkType::MultiAccess,
                        ..FaceConfig::default()
                    },
                    _ => FaceConfig::default(),
                };
                self.faces.push(self.node.add_face(config).unwrap());
            }
            1 if self.faces.len() > 2 => {
                let place = self.pick(self.faces.len());
                let face = self.faces.remove(place);
                self.node.remove_face(self.now, face);
                self.routes.retain(|(_, to)| *to != face);
            }
            2 if !self.faces.is_empty() => {
                let (prefix, face) = (self.prefix(), self.pick(self.faces.len()));
                let (face, cost) = (self.faces[face], self.random.below(3));
                self.node.add_route(name(prefix), face, cost).unwrap();
                self.routes.insert((prefix, face));
            }
            3 => {
                if let Some((prefix, face)) = self.routes.pop_first() {
                    self.node.remove_route(&name(prefix), face);
                }
            }
            _ => {
                let kinds = ["best-route", "multicast", "asf", "random", "self-learning"];
                let kind = format!("/localhost/nfd/strategy/{}", kinds[self.pick(kinds.len())]);
                let kind: Name = kind.parse().unwrap();
                let prefix = name(self.prefix());
                let kind = StrategyKind::from_name(&kind).unwrap();
                self.node.set_strategy(prefix, kind).unwrap();
            }
        }
    }

    /// An Interest from some face, and perhaps Data for it from another.
    fn talk(&mut self) {
        if self.faces.len() < 2 {
            return;
        }
        let (from, to) = (self.pick(self.faces.len()), self.pick(self.faces.len()));
        self.number += 1;
        let uri = format!(
            "{}/{}",
            self.prefix().trim_end_matches('/'),
            self.number % 5_000
        );
        let asks = interest(&uri, self.number).wire().clone();
        let answer = match self.random.below(10) {
            0..6 => Some(self.announcing(&uri)),
            6 => {
                let mut refusal = LpPacket::carrying(asks.clone());
                refusal.nack = Some(NackReason::Congestion);
                Some(refusal.encode())
            }
            _ => None,
        };
        self.node.handle_frame(self.now, self.faces[from], asks);
        if let Some(answer) = answer {
            self.node.handle_frame(self.now, self.faces[to], answer);
        }
        while let Some(transmit) = self.node.poll_output() {
            assert!(
                self.faces.contains(&transmit.face),
                "a frame for a face that is gone"
            );
        }
    }

    /// Data that announce some prefix of their name.
    fn announcing(&mut self, uri: &str) -> Bytes {
        let prefix = name(uri).prefix(self.pick(3));
        let announcement = PrefixAnnouncement::sign(&prefix, 1, ANNOUNCED_FOR, None, &NullSigner);
        let mut packet = LpPacket::carrying(data(uri).wire().clone());
        packet.prefix_announcement = Some(announcement.data().wire().clone());
        packet.encode()
    }

    fn check(&self) {
        let node = &self.node;
        assert!(
            node.faces()
                .map(|face| face.id)
                .eq(self.faces.iter().copied())
        );
        let routes = self.routes.iter().map(|(prefix, _)| name(prefix));
        let learned = node.learned_routes().map(|route| route.prefix);
        let prefixes: BTreeSet<_> = routes.chain(learned).collect();
        assert!(node.learned_routes().count() <= 30);
        assert_eq!(node.routed_prefixes(), prefixes.len());
        assert!(node.pending_interests() <= 200);
        assert!(node.content_store().size() <= ByteSize::bytes(40_000));
        assert!(node.measured().1 <= 50);
    }
}

/// A face is up for about a minute. At rest nothing is pending, each face may have as many pending Interests as it always might,
/// and once the faces are gone nothing is left of them.
#[test]
fn a_day_of_churn_leaves_nothing_behind() {
    let mut churn = Churn::new(5);
    let (mut changes, mut highest) = (0, 0);
    while churn.now < Instant::ZERO + DAY {
        churn.now += millis(churn.random.below(400));
        churn.node.handle_timeout(churn.now);
        if churn.random.chance(0.06) {
            churn.change();
            changes += 1;
            churn.check();
        }
        // Mostly one at a time, at times more than the bounds allow.
        let packets = if churn.random.chance(0.002) { 400 } else { 1 };
        (0..packets).for_each(|_| churn.talk());
        highest = highest.max(churn.node.pending_interests());
    }
    assert!(changes > 20_000 && highest == 200, "{changes} {highest}");
    churn.now += ANNOUNCED_FOR;
    churn.node.handle_timeout(churn.now);
    churn.check();
    assert_eq!(
        (churn.node.pending_interests(), churn.node.poll_timeout()),
        (0, None)
    );
    let counters = *churn.node.counters();
    assert!(
        counters.satisfied > 10_000 && counters.expired > 1_000 && counters.routes_learned > 1_000,
        "{counters:?}"
    );
    at_rest_each_face_has_its_whole_quota(&mut churn);
    for face in core::mem::take(&mut churn.faces) {
        churn.node.remove_face(churn.now, face);
    }
    churn.routes.clear();
    churn.check();
    assert_eq!(
        (churn.node.pending_interests(), churn.node.measured().1),
        (0, 0)
    );
}

/// Of 61 names asked for by a face, 60 are pending: no record of it was forgotten or counted twice.
fn at_rest_each_face_has_its_whole_quota(churn: &mut Churn) {
    let sink = churn.node.add_face(FaceConfig::application("")).unwrap();
    churn.node.add_route(name("/rest"), sink, 0).unwrap();
    for (place, &face) in churn.faces.iter().enumerate() {
        for number in 0..61 {
            let uri = format!("/rest/{place}/{number}");
            let asks = interest(&uri, number).wire().clone();
            churn.node.handle_frame(churn.now, face, asks);
        }
        assert_eq!(churn.node.pending_interests(), 60);
        churn.now += Duration::from_secs(60);
        churn.node.handle_timeout(churn.now);
        assert_eq!(churn.node.pending_interests(), 0);
    }
    churn.node.remove_face(churn.now, sink);
}
