//! Forwarders that share the work of one node.

use core::time::Duration;

use bytes::Bytes;
use namecast_forward::{
    Config, FaceConfig, FaceId, Forwarder, LearningConfig, Shard, StrategyKind,
};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::NullSigner;
use namecast_packet::{LpPacket, PrefixAnnouncement};
use namecast_units::Instant;

use crate::topology::{data, interest, name};

/// Three forwarders keep together what one would: each a third of 65 536, rounded up.
#[test]
fn bounds_are_shared() {
    let part = Config::default().for_shard(Shard { index: 2, count: 3 });
    assert_eq!(part.pit.capacity, 21_846);
    assert_eq!(part.content_store.capacity.as_bytes(), (64 << 20) / 3);
    assert_eq!(Config::default().for_shard(Shard::ONLY), Config::default());
}

const MINUTE: Duration = Duration::from_secs(60);

/// So many forwarders of one node, which learn and tell each other. Faces: a consumer and two neighbours.
struct Learning {
    all: Vec<Forwarder>,
    consumer: FaceId,
    neighbours: [FaceId; 2],
    now: Instant,
}

impl Learning {
    fn new(count: u16, config: LearningConfig) -> Self {
        let config = Config {
            learning: config,
            ..Config::default()
        };
        let add = |forwarder: &mut Forwarder, config| forwarder.add_face(config).unwrap();
        let mut faces = Vec::new();
        let start = |index| {
            let mut forwarder = Forwarder::new(config.for_shard(Shard { index, count }));
            let strategy = StrategyKind::SelfLearning;
            forwarder.set_strategy(name("/"), strategy).unwrap();
            let consumer = add(&mut forwarder, FaceConfig::application("consumer"));
            let links = [(), ()].map(|()| add(&mut forwarder, FaceConfig::default()));
            faces.push((consumer, links));
            forwarder
        };
        let all = (0..count).map(start).collect();
        let (consumer, neighbours) = faces[0];
        Self {
            all,
            consumer,
            neighbours,
            now: Instant::ZERO,
        }
    }

    /// Hands one forwarder a frame, and the others what it learned; gives what it sends to either neighbour.
    fn hand(&mut self, index: usize, face: FaceId, frame: Bytes) -> [Vec<LpPacket>; 2] {
        let forwarder = &mut self.all[index];
        forwarder.handle_frame(self.now, face, frame);
        let outputs: Vec<_> = core::iter::from_fn(|| forwarder.poll_output()).collect();
        let news = forwarder.take_news();
        assert!(news.len() <= 1 && forwarder.take_news().is_empty());
        for forwarder in &mut self.all {
            for news in &news {
                forwarder.learning(self.now).adopt(news);
                // The same again changes nothing, nor is it passed on.
                forwarder.learning(self.now).adopt(news);
            }
            assert!(forwarder.take_news().is_empty());
        }
        self.neighbours.map(|neighbour| {
            let to_it = outputs.iter().filter(|output| output.face == neighbour);
            to_it
                .map(|output| LpPacket::decode(output.frame.clone()).unwrap())
                .collect()
        })
    }

    /// Asks one forwarder, and tells how many Interests each neighbour gets.
    fn ask(&mut self, index: usize, uri: &str) -> [usize; 2] {
        let consumer = self.consumer;
        let asked = self.hand(index, consumer, interest(uri, 1).wire().clone());
        asked.map(|packets| packets.len())
    }

    /// The first neighbour answers what one forwarder asked, and announces `/p` for an hour.
    fn answer(&mut self, index: usize, uri: &str, announces: bool) {
        let announcement = PrefixAnnouncement::sign(&name("/p"), 1, 60 * MINUTE, None, &NullSigner);
        let packet = LpPacket {
            prefix_announcement: announces.then(|| announcement.data().wire().clone()),
            ..LpPacket::carrying(data(uri).wire().clone())
        };
        let first = self.neighbours[0];
        self.hand(index, first, packet.encode());
    }

    fn routes(&self) -> Vec<usize> {
        let routes = self.all.iter().map(|it| it.learned_routes().count());
        routes.collect()
    }
}

/// The route that the first of three learned serves the others as well, and counts once.
#[test]
fn what_one_forwarder_learns_all_know() {
    let mut node = Learning::new(3, LearningConfig::default());
    assert_eq!(node.ask(0, "/p/0"), [1, 1]);
    node.answer(0, "/p/0", true);
    assert_eq!(node.routes(), [1, 1, 1]);
    let ends: Vec<_> = node
        .all
        .iter()
        .flat_map(Forwarder::learned_routes)
        .collect();
    assert!(ends.iter().all(|route| *route == ends[0]), "{ends:?}");
    for index in 0..3 {
        assert_eq!(node.ask(index, &format!("/p/1/{index}")), [1, 0]);
    }
    let learned = node.all.iter().map(|it| it.counters().routes_learned);
    assert_eq!(learned.collect::<Vec<_>>(), [1, 0, 0]);
    // A face that one of them has lost already gets no route by old news.
    let mut late = Learning::new(2, LearningConfig::default());
    let gone = late.neighbours[0];
    late.all[1].remove_face(Instant::ZERO, gone);
    late.ask(0, "/p/0");
    late.answer(0, "/p/0", true);
    assert_eq!(late.routes(), [1, 0]);
}

/// A lifetime of eight minutes: use by the first forwarder alone keeps the route in both for an hour, when its announcement
/// ends; unused, it ends within one lifetime and an eighth of it.
#[test]
fn a_route_that_one_forwarder_uses_stays_in_all() {
    let config = LearningConfig {
        route_lifetime: 8 * MINUTE,
        ..LearningConfig::default()
    };
    let mut node = Learning::new(2, config);
    node.ask(0, "/p/0");
    node.answer(0, "/p/0", true);
    for minute in 1..60 {
        node.now = Instant::ZERO + minute * MINUTE;
        let uri = format!("/p/{minute}");
        assert_eq!(node.ask(0, &uri), [1, 0], "{minute}");
        node.answer(0, &uri, false);
        let now = node.now;
        node.all[1].handle_timeout(now);
        assert_eq!(node.routes(), [1, 1], "{minute}");
        if minute == 30 {
            assert_eq!(node.ask(1, "/p/x"), [1, 0]);
            node.answer(1, "/p/x", false);
        }
    }
    node.now = Instant::ZERO + 60 * MINUTE;
    let now = node.now;
    node.all.iter_mut().for_each(|it| it.handle_timeout(now));
    assert_eq!(node.routes(), [0, 0]);
}

/// By one forwarder's Nack.
#[test]
fn a_route_that_one_forwarder_gives_up_is_given_up_by_all() {
    let mut node = Learning::new(2, LearningConfig::default());
    node.ask(0, "/p/0");
    node.answer(0, "/p/0", true);
    assert_eq!(node.ask(1, "/p/1"), [1, 0]);
    let nack = LpPacket {
        nack: Some(NackReason::NoRoute),
        ..LpPacket::carrying(interest("/p/1", 1).wire().clone())
    };
    let first = node.neighbours[0];
    node.hand(1, first, nack.encode());
    assert_eq!(node.routes(), [0, 0]);
    assert_eq!(node.ask(0, "/p/2"), [1, 1]);
}

/// The only one of its node has nobody to tell, and keeps nothing for him.
#[test]
fn one_forwarder_alone_has_no_news() {
    let mut node = Learning::new(1, LearningConfig::default());
    node.ask(0, "/p/0");
    let announcement = PrefixAnnouncement::sign(&name("/p"), 1, MINUTE, None, &NullSigner);
    let (now, face) = (node.now, node.neighbours[0]);
    assert!(node.all[0].learning(now).announce(face, &announcement));
    assert!(node.all[0].take_news().is_empty());
}
