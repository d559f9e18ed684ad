//! Path labels: paths are found, taken, and told truthfully.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use namecast_forward::{
    Actions, Context, FaceConfig, FaceId, FeedbackCounters, Hop, InterestRate, PathLabels,
    PathLabelsConfig, RateFeedback,
};
use namecast_packet::{Extensions, Interest, LpPacket, PathLabel};
use namecast_units::Instant;

use crate::feedback::speaking;
use crate::topology::{End, Net, Seen, data, interest, millis};

/// A diamond: from A by B or C to D, where the producer is. By B is cheaper.
struct Diamond {
    net: Net,
    producer: End,
    /// Of A.
    to_b: FaceId,
    to_c: FaceId,
    number: u32,
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;

impl Diamond {
    fn new() -> Self {
        let mut net = Net::new(4);
        for node in &mut net.nodes {
            node.forwarder.install(Box::new(RateFeedback::default()));
            node.forwarder.install(Box::new(PathLabels::default()));
        }
        let (to_b, _) = net.link_with(A, B, speaking());
        let (to_c, _) = net.link_with(A, C, speaking());
        let (b_to_d, _) = net.link_with(B, D, speaking());
        let (c_to_d, _) = net.link_with(C, D, speaking());
        let producer = net.app(D);
        for (node, face, cost) in [
            (A, to_b, 0),
            (A, to_c, 10),
            (B, b_to_d, 0),
            (C, c_to_d, 0),
            (D, producer.1, 0),
        ] {
            net.route(node, "/p", face, cost);
        }
        Self {
            net,
            producer,
            to_b,
            to_c,
            number: 0,
        }
    }

    fn ask(&mut self, consumer: End, uri: &str, path: Option<PathLabel>) {
        self.number += 1;
        let wire = labelled(&interest(uri, self.number), path);
        self.net.send(consumer, wire);
    }

    /// What a consumer gets by this path, from the producer if nobody else answers.
    fn fetch(&mut self, consumer: End, uri: &str, path: Option<PathLabel>) -> Seen {
        self.ask(consumer, uri, path);
        if !self.net.interests(self.producer).is_empty() {
            self.net.answer(self.producer, &data(uri));
        }
        let [seen] = <[Seen; 1]>::try_from(self.net.seen(consumer)).expect("one answer");
        seen
    }

    /// The paths by B and by C.
    fn discover(&mut self, consumer: End) -> [PathLabel; 2] {
        ["/p/d1", "/p/d2"].map(|uri| {
            let seen = self.fetch(consumer, uri, Some(PathLabel::DISCOVERY));
            label(&seen).expect("a path")
        })
    }

    /// Interests that A sent to B and to C.
    fn sent(&self) -> (u64, u64) {
        let sent = |face| self.net.nodes[A].face_counters(face).unwrap().outgoing;
        (sent(self.to_b).interests, sent(self.to_c).interests)
    }

    fn feedback(&self, node: usize) -> FeedbackCounters {
        self.net.nodes[node].counters().feedback
    }
}

fn labelled(interest: &Interest, path: Option<PathLabel>) -> bytes::Bytes {
    let mut packet = LpPacket::carrying(interest.wire().clone());
    if let Some(path) = path {
        packet
            .extensions
            .set(Extensions::PATH_LABEL, path.as_octets());
    }
    packet.encode()
}

fn label(seen: &Seen) -> Option<PathLabel> {
    PathLabel::decode(seen.header.extensions.get(Extensions::PATH_LABEL)?)
}

/// Two Interests that look for a path find the two; each is taken when it is sent back, and comes back with the Data.
#[test]
fn paths_are_found_in_turn_and_taken() {
    let mut net = Diamond::new();
    let consumer = net.net.app(A);
    let [by_b, by_c] = net.discover(consumer);
    assert_eq!((by_b.hops(), by_c.hops(), net.sent()), (2, 2, (1, 1)));
    assert_ne!(by_b.first(), by_c.first());
    for (uri, path, sent) in [
        ("/p/1", by_c, (1, 2)),
        ("/p/2", by_c, (1, 3)),
        ("/p/3", by_b, (2, 3)),
    ] {
        let seen = net.fetch(consumer, uri, Some(path));
        assert_eq!((label(&seen), net.sent()), (Some(path), sent));
        let count = seen.header.extensions.number(Extensions::HOP_COUNT);
        assert_eq!(count, Some(2));
    }
    let (at_a, at_b) = (net.feedback(A), net.feedback(B));
    assert_eq!((at_a.labels_followed, at_a.discoveries), (3, 2));
    assert_eq!((at_b.labels_followed, at_b.discoveries), (1, 1));
}

/// Without a label the strategy chooses, and Data say nothing of their path.
#[test]
fn who_does_not_ask_is_not_told() {
    let mut net = Diamond::new();
    let consumers = [net.net.app(A), net.net.app(A)];
    net.ask(consumers[0], "/p/1", None);
    net.ask(consumers[1], "/p/1", Some(PathLabel::DISCOVERY));
    net.net.answer(net.producer, &data("/p/1"));
    let [quiet, asking] = consumers.map(|consumer| net.net.seen(consumer));
    assert_eq!(label(&quiet[0]), None);
    // It waited for the Data that came by B, which A's neighbour was not asked about: only the first hop is known.
    assert_eq!(label(&asking[0]).map(|path| path.hops()), Some(1));
    assert_eq!(net.sent(), (1, 0));
}

/// Two consumers want one packet by two paths: it crosses one link only, and the label tells the second by which.
#[test]
fn an_equal_interest_on_another_path_is_waited_for_and_told() {
    let mut net = Diamond::new();
    let consumers = [net.net.app(A), net.net.app(A)];
    let [by_b, by_c] = net.discover(consumers[0]);
    net.ask(consumers[0], "/p/1", Some(by_b));
    net.net.now += millis(50);
    net.ask(consumers[1], "/p/1", Some(by_c));
    assert_eq!((net.sent(), net.feedback(A).labels_aggregated), ((2, 1), 1));
    net.net.answer(net.producer, &data("/p/1"));
    for consumer in consumers {
        assert_eq!(label(&net.net.seen(consumer)[0]), Some(by_b));
    }
}

/// What was lost on one path is requested again on the other, once the node lets a retransmission pass.
#[test]
fn a_retransmission_takes_its_own_path() {
    let mut net = Diamond::new();
    let consumer = net.net.app(A);
    let [by_b, by_c] = net.discover(consumer);
    net.net.cut((A, net.to_b));
    net.ask(consumer, "/p/1", Some(by_b));
    net.net.now += millis(5);
    net.ask(consumer, "/p/1", Some(by_c));
    assert_eq!(net.sent(), (2, 1));
    net.net.now += millis(6);
    let seen = net.fetch(consumer, "/p/1", Some(by_c));
    assert_eq!((label(&seen), net.sent()), (Some(by_c), (2, 2)));
}

/// The strategy decides instead, the Data tell which path that was, and it is counted.
#[test]
fn a_label_that_leads_nowhere_is_refused() {
    let mut net = Diamond::new();
    let consumer = net.net.app(A);
    let [by_b, by_c] = net.discover(consumer);
    let strange = PathLabel::EMPTY.behind([1, 2, 3]);
    let seen = net.fetch(consumer, "/p/1", strange);
    assert_eq!(label(&seen), Some(by_b));
    net.net.nodes[A].remove_face(net.net.now, net.to_c);
    let seen = net.fetch(consumer, "/p/2", Some(by_c));
    assert_eq!(label(&seen), Some(by_b));
    assert_eq!(net.feedback(A).labels_refused, 2);
    // Its rest leads nowhere from B either, and is not even tried.
    assert_eq!(net.feedback(B).labels_refused, 0);

    for (number, octets) in [&[][..], &[0, 1], &[0; 40], &[0; 2_000]]
        .into_iter()
        .enumerate()
    {
        let mut packet =
            LpPacket::carrying(interest(&format!("/p/bad{number}"), 77).wire().clone());
        packet.extensions.set(Extensions::PATH_LABEL, octets);
        net.net.send(consumer, packet.encode());
        assert_eq!(net.net.interests(net.producer).len(), 1);
    }
    assert_eq!(net.feedback(A).labels_refused, 6);
}

/// Gives away what a node calls a face.
#[derive(Debug)]
struct Spy(FaceId, Arc<Mutex<Option<PathLabel>>>);

impl Hop for Spy {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let label = PathLabel::EMPTY.behind(context.label_of(self.0));
        *self.1.lock().unwrap() = label;
        Actions::default()
    }
}

/// Not even who knows the label of an application's face, or of one that is no next hop, gets an Interest there.
#[test]
fn labels_lead_to_next_hops_on_other_hosts_only() {
    let mut net = Diamond::new();
    let consumer = net.net.app(A);
    let application = net.net.app(A);
    net.net.route(A, "/p", application.1, 99);
    let other = net.net.face(A, speaking());
    for victim in [application, other] {
        let known = Arc::default();
        let spy = Spy(victim.1, Arc::clone(&known));
        net.net.nodes[A].forwarder.install(Box::new(spy));
        let name = format!("/p/{}", victim.1);
        net.fetch(consumer, &name, None);
        let path = known.lock().unwrap().take();
        assert!(path.is_some());
        let refused = net.feedback(A).labels_refused;
        net.fetch(consumer, &format!("{name}/again"), path);
        assert_eq!(net.feedback(A).labels_refused, refused + 1);
        assert!(net.net.seen(victim).is_empty());
    }
}

/// From A's content store both paths can be asked about, each with the rate at which Data came by it; a label of nothing ends
/// there.
#[test]
fn cached_data_answer_for_the_path_that_they_were_asked_by() {
    let mut net = Diamond::new();
    let consumers = [net.net.app(A), net.net.app(A)];
    let [by_b, by_c] = net.discover(consumers[0]);
    for number in 0..96 {
        net.net.now += millis(1);
        // Three of four by B, which is thus three times as fast.
        let path = if number % 4 == 0 { by_c } else { by_b };
        net.fetch(consumers[0], &format!("/p/{number:02}x"), Some(path));
    }
    for number in 0..200 {
        net.net.now += millis(1);
        let path = if number % 4 == 0 { by_c } else { by_b };
        net.fetch(consumers[0], &format!("/p/{number:03}y"), Some(path));
    }
    let sent = net.sent();
    let mut rate = |path: PathLabel| {
        let seen = net.fetch(consumers[1], "/p/005y", Some(path));
        assert_eq!(label(&seen), Some(path));
        let extensions = seen.header.extensions;
        assert_eq!(extensions.number(Extensions::SOURCE), Some(2));
        extensions.number(Extensions::RATE_TAG).expect("measured") as f64
    };
    let ratio = rate(by_b) / rate(by_c);
    assert!((2.8..3.2).contains(&ratio), "{ratio}");
    let seen = net.fetch(consumers[1], "/p/005y", PathLabel::EMPTY.behind([9; 3]));
    assert_eq!(label(&seen), Some(PathLabel::EMPTY));
    assert_eq!((net.sent(), net.feedback(A).labels_refused), (sent, 1));
}

/// Interests that look for paths pass content stores, but not many of a face at once.
#[test]
fn discovery_passes_the_content_store_so_often_and_no_more() {
    let mut net = Diamond::new();
    let consumer = net.net.app(A);
    net.fetch(consumer, "/p/1", None);
    let paths: BTreeSet<_> = (0..4)
        .map(|_| label(&net.fetch(consumer, "/p/1", Some(PathLabel::DISCOVERY))))
        .collect();
    assert_eq!(paths.len(), 2);
    assert_eq!(net.sent(), (3, 2));
    for _ in 4..50 {
        net.fetch(consumer, "/p/1", Some(PathLabel::DISCOVERY));
    }
    let feedback = net.feedback(A);
    assert_eq!(
        (feedback.discoveries, feedback.discoveries_refused),
        (40, 10)
    );
    let seen = net.fetch(consumer, "/p/1", Some(PathLabel::DISCOVERY));
    assert_eq!(label(&seen), Some(PathLabel::EMPTY));
}

/// Of ten nodes the path from the first to the last is nine hops long; of eleven it is too long, and nobody is told a part.
#[test]
fn a_path_of_more_than_nine_hops_is_not_told() {
    for (count, hops) in [(10, Some(9)), (11, None)] {
        let mut net = Net::new(count);
        for node in &mut net.nodes {
            node.forwarder
                .install(Box::new(PathLabels::new(PathLabelsConfig {
                    discoveries: InterestRate {
                        per_second: 1,
                        burst: 1,
                    },
                    ..PathLabelsConfig::default()
                })));
        }
        for node in 1..count {
            let (near, _) = net.link_with(node - 1, node, speaking());
            net.route(node - 1, "/", near, 0);
        }
        let (consumer, producer) = (net.app(0), net.app(count - 1));
        net.route(count - 1, "/", producer.1, 0);
        net.send(
            consumer,
            labelled(&interest("/a", 1), Some(PathLabel::DISCOVERY)),
        );
        net.answer(producer, &data("/a"));
        let seen = net.seen(consumer);
        assert_eq!(label(&seen[0]).map(|path| path.hops()), hops);
        let refused = net.nodes[0].counters().feedback.labels_refused;
        assert_eq!(refused, u64::from(hops.is_none()));
    }
}

/// A neighbour that knows nothing of labels is steered to, and what lies behind it is its own affair.
#[test]
fn a_mute_neighbour_is_the_end_of_what_is_known() {
    let mut net = Net::new(2);
    net.nodes[0]
        .forwarder
        .install(Box::new(PathLabels::default()));
    let (near, far) = net.link_with(0, 1, FaceConfig::default());
    let (consumer, producer) = (net.app(0), net.app(1));
    net.route(0, "/", near, 0);
    net.route(1, "/", producer.1, 0);
    for (uri, path) in [("/1", PathLabel::DISCOVERY), ("/2", PathLabel::DISCOVERY)] {
        net.send(consumer, labelled(&interest(uri, 1), Some(path)));
        net.answer(producer, &data(uri));
        let found = label(&net.seen(consumer)[0]).expect("the first hop");
        assert_eq!(found.hops(), 1);
    }
    let heard = net.nodes[1].face_counters(far).unwrap().incoming;
    assert_eq!(heard.interests, 2);
}
