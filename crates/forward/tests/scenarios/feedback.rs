//! Rate feedback and hop counts: what Data say of where they come from.

use namecast_forward::{
    DropReason, ExtensionFields, FaceConfig, FeedbackCounters, HopCount, RateFeedback,
    RelayFeedback, Scope,
};
use namecast_packet::{Data, Extensions, LpPacket};

use crate::topology::{End, Net, Seen, data, interest, millis, name};

/// A neighbour that speaks extension fields.
pub(crate) fn speaking() -> FaceConfig {
    FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    }
}

/// Nodes in a row with rate feedback, whose links speak; a producer on the last.
struct Row {
    net: Net,
    producer: End,
    number: u32,
}

impl Row {
    fn new(count: usize) -> Self {
        let mut net = Net::new(count);
        for node in 0..count {
            let hop = Box::new(RateFeedback::default());
            net.nodes[node].forwarder.install(hop);
        }
        for node in 1..count {
            let (near, _) = net.link_with(node - 1, node, speaking());
            net.route(node - 1, "/p", near, 0);
        }
        let producer = net.app(count - 1);
        net.route(count - 1, "/p", producer.1, 0);
        Self {
            net,
            producer,
            number: 0,
        }
    }

    /// What a consumer gets for one Interest, which the producer answers if it comes to it.
    fn fetch(&mut self, consumer: End, number: u32) -> Seen {
        self.number += 1;
        let uri = format!("/p/{number}");
        self.net.ask(consumer, &interest(&uri, self.number));
        if !self.net.interests(self.producer).is_empty() {
            self.net.answer(self.producer, &packet(number));
        }
        let [seen] = <[Seen; 1]>::try_from(self.net.seen(consumer)).expect("one answer");
        seen
    }

    /// Has a consumer fetch so many new packets, one each millisecond.
    fn stream(&mut self, consumer: End, numbers: core::ops::Range<u32>) {
        for number in numbers {
            self.net.now += millis(1);
            self.fetch(consumer, number);
        }
    }

    fn counters(&self, node: usize) -> FeedbackCounters {
        self.net.nodes[node].counters().feedback
    }
}

fn packet(number: u32) -> Data {
    data(&format!("/p/{number}"))
}

/// Rate tag, hop count and source that Data came with.
fn told(seen: &Seen) -> [Option<u64>; 3] {
    let extensions = &seen.header.extensions;
    [
        Extensions::RATE_TAG,
        Extensions::HOP_COUNT,
        Extensions::SOURCE,
    ]
    .map(|number| extensions.number(number))
}

/// 48 packets of as many octets, one each millisecond, are 8000 times as many bit/s. The producer's Data have passed one node
/// more, and say no rate.
#[test]
fn cached_data_say_how_fast_they_came() {
    let mut row = Row::new(2);
    let (first, second) = (row.net.app(0), row.net.app(0));
    row.stream(first, 100..147);
    assert_eq!(told(&row.fetch(second, 100)), [None, Some(0), Some(2)]);
    row.net.now += millis(1);
    assert_eq!(told(&row.fetch(first, 147)), [None, Some(1), Some(1)]);
    let octets = packet(100).wire().len() as u64;
    let rate = Some(octets * 8_000);
    assert_eq!(told(&row.fetch(second, 100)), [rate, Some(0), Some(2)]);
    assert_eq!(row.counters(0).rate_tags_set, 1);
}

/// The second of three nodes answers, from what it got from the third: the first counts one hop more and leaves the rest.
#[test]
fn tags_go_on_as_they_are_and_hops_are_counted() {
    let mut row = Row::new(3);
    let (far, near) = (row.net.app(0), row.net.app(1));
    row.stream(near, 100..148);
    let rate = Some(packet(100).wire().len() as u64 * 8_000);
    assert_eq!(told(&row.fetch(far, 120)), [rate, Some(1), Some(2)]);
    assert_eq!(told(&row.fetch(far, 300)), [None, Some(2), Some(1)]);
}

/// A program's own node is a neighbour of the host's, over a face of this host's: it takes what that says, and counts itself.
#[test]
fn a_programs_node_has_what_the_node_on_its_host_says() {
    let mut net = Net::new(3);
    net.nodes[0].forwarder.install(Box::new(RelayFeedback));
    for node in 1..3 {
        let hop = Box::new(RateFeedback::default());
        net.nodes[node].forwarder.install(hop);
    }
    let local = FaceConfig {
        scope: Scope::Local,
        ..speaking()
    };
    for (node, config) in [(1, local), (2, speaking())] {
        let (near, _) = net.link_with(node - 1, node, config);
        net.route(node - 1, "/p", near, 0);
    }
    let (producer, program, other) = (net.app(2), net.app(0), net.app(1));
    net.route(2, "/p", producer.1, 0);
    let mut row = Row {
        net,
        producer,
        number: 0,
    };
    row.stream(other, 100..148);
    let rate = Some(packet(100).wire().len() as u64 * 8_000);
    assert_eq!(told(&row.fetch(program, 120)), [rate, Some(1), Some(2)]);
    assert_eq!(told(&row.fetch(program, 300)), [None, Some(2), Some(1)]);
}

/// The cache of the producer's own node has no path behind it.
#[test]
fn what_applications_here_send_is_no_flow() {
    let mut row = Row::new(1);
    let consumer = row.net.app(0);
    row.stream(consumer, 100..200);
    assert_eq!(told(&row.fetch(consumer, 120)), [None, Some(0), Some(2)]);
}

/// What was known of a neighbour is gone with it.
#[test]
fn flows_end_with_their_face() {
    let mut row = Row::new(2);
    let consumer = row.net.app(0);
    row.stream(consumer, 100..148);
    assert!(told(&row.fetch(consumer, 100))[0].is_some());
    let old = namecast_forward::FaceId::from_number(256);
    let node = &mut row.net.nodes[0];
    node.remove_face(row.net.now, old);
    let (near, _) = row.net.link_with(0, 1, speaking());
    row.net.route(0, "/p", near, 0);
    assert_eq!(told(&row.fetch(consumer, 100))[0], None);
}

/// Two who wait for one packet are told the same.
#[test]
fn all_who_wait_are_told_the_same() {
    let mut row = Row::new(2);
    let consumers = [row.net.app(0), row.net.app(0)];
    for (nonce, consumer) in (1..).zip(consumers) {
        row.net.ask(consumer, &interest("/p/900", nonce));
    }
    row.net.answer(row.producer, &packet(900));
    for consumer in consumers {
        let seen = row.net.seen(consumer);
        assert_eq!(told(&seen[0]), [None, Some(1), Some(1)]);
    }
}

/// One node whose neighbour the test plays.
struct Alone {
    net: Net,
    consumer: End,
    neighbour: End,
}

impl Alone {
    fn new() -> Self {
        let mut net = Net::new(1);
        net.nodes[0]
            .forwarder
            .install(Box::new(RateFeedback::default()));
        let (consumer, neighbour) = (net.app(0), net.face(0, speaking()));
        net.route(0, "/", neighbour.1, 0);
        Self {
            net,
            consumer,
            neighbour,
        }
    }

    /// What the consumer is told when the neighbour says these fields.
    fn hear(&mut self, uri: &str, fields: &[(u32, &[u8])]) -> [Option<u64>; 3] {
        self.net.now += millis(1);
        let nonce = self.net.now.as_nanos() as u32;
        self.net.ask(self.consumer, &interest(uri, nonce));
        if !self.net.interests(self.neighbour).is_empty() {
            let mut packet = LpPacket::carrying(data(uri).wire().clone());
            for &(number, octets) in fields {
                packet.extensions.set(number, octets);
            }
            self.net.send(self.neighbour, packet.encode());
        }
        told(&self.net.seen(self.consumer)[0])
    }
}

/// A rate is for its reader to accept; what is no rate, count or source ends here, and each is counted.
#[test]
fn values_that_make_no_sense_go_no_further() {
    let mut alone = Alone::new();
    let high = (1_u64 << 63).to_be_bytes();
    let (tag, count, source) = (
        Extensions::RATE_TAG,
        Extensions::HOP_COUNT,
        Extensions::SOURCE,
    );
    for (number, (fields, heard, refused)) in [
        (vec![(tag, &high[..])], [Some(1 << 63), None, None], 0),
        (vec![(tag, &[0][..])], [None; 3], 1),
        (vec![(tag, &[1, 2, 3][..])], [None; 3], 2),
        (vec![(tag, &[][..])], [None; 3], 3),
        (vec![(count, &[254][..])], [None, Some(255), None], 3),
        (vec![(count, &[255][..])], [None, Some(255), None], 3),
        (vec![(count, &[1, 0][..])], [None; 3], 4),
        (vec![(source, &[2][..])], [None, None, Some(2)], 4),
        (vec![(source, &[7][..]), (count, &[9; 9][..])], [None; 3], 6),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("/{number}");
        assert_eq!(alone.hear(&uri, &fields), heard, "{fields:?}");
        let counters = alone.net.nodes[0].counters();
        assert_eq!(counters.feedback.refused, refused, "{fields:?}");
    }
    let drops = alone.net.nodes[0].counters().drops;
    assert_eq!((drops.get(DropReason::Malformed), drops.total()), (0, 0));
}

/// Tags that go up and down, for one prefix or another, are said of nothing but the Data that they came with: not of the same
/// Data out of the content store, and not of others.
#[test]
fn a_neighbours_tag_is_forgotten_with_its_data() {
    let mut alone = Alone::new();
    let fields: [&[u8]; 2] = [&[1], &[255; 8]];
    for number in 0..200 {
        let octets = fields[number % 2];
        let heard = alone.hear(&format!("/a/{number}"), &[(Extensions::RATE_TAG, octets)]);
        assert_eq!(heard[0], Some([1, u64::MAX][number % 2]));
    }
    let octets = data("/a/150").wire().len() as u64;
    let cached = alone.hear("/a/150", &[]);
    assert_eq!(cached[1..], [Some(0), Some(2)]);
    let rate = cached[0].expect("measured");
    assert!(rate.abs_diff(octets * 8_000) < octets * 100, "{rate}");
    assert_eq!(alone.hear("/b/1", &[]), [None; 3]);
}

/// 200 nodes count, and the count says so.
#[test]
fn two_hundred_hops_are_counted() {
    let mut row = Row::new(201);
    let consumer = row.net.app(0);
    assert_eq!(told(&row.fetch(consumer, 100)), [None, Some(200), Some(1)]);
}

/// Data of which nobody knows who answered are counted from nowhere, and neighbours that do not speak hear nothing.
#[test]
fn a_neighbour_that_does_not_speak_ends_the_count() {
    let mut net = Net::new(3);
    for node in &mut net.nodes {
        node.forwarder.install(Box::new(HopCount));
    }
    let mute = FaceConfig {
        extension_fields: ExtensionFields::Off,
        ..FaceConfig::default()
    };
    let (first, _) = net.link_with(0, 1, speaking());
    let (second, mute_end) = net.link_with(1, 2, mute);
    let producer = net.app(2);
    for (node, face) in [(0, first), (1, second), (2, producer.1)] {
        net.route(node, "/", face, 0);
    }
    let consumer = net.app(0);
    net.ask(consumer, &interest("/a", 1));
    net.answer(producer, &data("/a"));
    let seen = net.seen(consumer);
    assert!(seen[0].header.extensions.is_empty());
    let sent = net.nodes[2].face_counters(mute_end).unwrap().outgoing;
    assert_eq!(sent.octets.as_bytes() as usize, data("/a").wire().len());
    assert_eq!(name("/a"), *data("/a").name());
}
