//! How neighbours find out that they speak extension fields, and what others can do with the question.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use namecast_forward::{
    Actions, Context, ExtensionFields, FaceConfig, FaceId, Hop, Link, LinkType, Node,
};
use namecast_packet::{Extensions, LpPacket};
use namecast_units::{Duration, Instant};

use crate::topology::{Net, data, interest, millis};

/// Writes down the label and the count that packets come with, and sets both.
#[derive(Debug)]
struct Labels(Arc<Mutex<Vec<Option<u64>>>>);

impl Labels {
    fn on_packet(&self, context: &Context<'_>, number: u32) -> Actions {
        let heard = context.fields.extensions.number(number);
        self.0.lock().unwrap().push(heard);
        Actions::default().set_field(number, vec![7])
    }
}

impl Hop for Labels {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        self.on_packet(context, Extensions::PATH_LABEL)
    }

    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        self.on_packet(context, Extensions::HOP_COUNT)
    }
}

/// Has a node set fields. Returns what it hears.
fn label(node: &mut Node) -> Arc<Mutex<Vec<Option<u64>>>> {
    let heard = Arc::default();
    node.forwarder.install(Box::new(Labels(Arc::clone(&heard))));
    heard
}

/// A frame that asks, or answers.
fn support(value: u64) -> Bytes {
    let mut packet = LpPacket::default();
    packet.extensions.set_number(Extensions::SUPPORT, value);
    packet.encode()
}

const QUESTION: u64 = 1;
const ANSWER: u64 = 2;

/// A node that sets fields and has one neighbour, who is played by the test.
struct Alone {
    net: Net,
    consumer: (usize, FaceId),
    neighbour: (usize, FaceId),
    nonce: u32,
}

impl Alone {
    fn new(config: FaceConfig) -> Self {
        let mut net = Net::new(1);
        label(&mut net.nodes[0]);
        let (consumer, neighbour) = (net.app(0), net.face(0, config));
        net.route(0, "/", neighbour.1, 0);
        Self {
            net,
            consumer,
            neighbour,
            nonce: 0,
        }
    }

    /// Has an Interest sent to the neighbour. Returns the numbers of the extension fields that it goes with.
    fn fields(&mut self) -> Vec<u32> {
        self.nonce += 1;
        let uri = format!("/{}", self.nonce);
        self.net.ask(self.consumer, &interest(&uri, self.nonce));
        let seen = self.net.seen(self.neighbour);
        let extensions = seen[0].header.extensions.iter();
        extensions.map(|(number, _)| number).collect()
    }

    /// The node's frames after the neighbour sent one.
    fn frames_after(&mut self, frame: Bytes) -> Vec<Bytes> {
        let node = &mut self.net.nodes[0];
        node.handle_frame(self.net.now, self.neighbour.1, frame);
        core::iter::from_fn(|| node.poll_output())
            .map(|transmit| transmit.frame)
            .collect()
    }

    fn speaks(&self) -> Option<bool> {
        let link = self.net.nodes[0].link(self.neighbour.1);
        link.and_then(|link| link.meter().speaks_extensions())
    }
}

/// The first packet asks; the answer, and what goes back, is there before the second. The neighbour need not ask: it was.
#[test]
fn nodes_that_set_fields_find_out_that_their_neighbours_hear_them() {
    let mut net = Net::new(2);
    let (near, far) = net.link(0, 1);
    let (consumer, producer) = (net.app(0), net.app(1));
    net.route(0, "/", near, 0);
    net.route(1, "/", producer.1, 0);
    let [at_consumer, at_producer] = [0, 1].map(|node| label(&mut net.nodes[node]));
    for uri in ["/1", "/2"] {
        net.ask(consumer, &interest(uri, 1));
        net.answer(producer, &data(uri));
    }
    assert_eq!(*at_producer.lock().unwrap(), [None, None, Some(7), None]);
    assert_eq!(*at_consumer.lock().unwrap(), [None, Some(7), None, Some(7)]);
    let speaks = |node: usize, face| {
        let link = net.nodes[node].link(face);
        link.and_then(|link| link.meter().speaks_extensions())
    };
    assert_eq!(speaks(0, near), Some(true));
    assert_eq!(speaks(1, far), Some(true));
    // Two Interests; and two Data, and the answer.
    assert_eq!(net.nodes[0].counters().outgoing.frames, 2 + 2);
    assert_eq!(net.nodes[1].counters().outgoing.frames, 2 + 2 + 1);
}

/// Without anything that sets fields, nobody is asked, and no face needs a link.
#[test]
fn nodes_without_fields_ask_nobody() {
    let mut net = Net::new(2);
    let (near, far) = net.link(0, 1);
    let (consumer, producer) = (net.app(0), net.app(1));
    net.route(0, "/", near, 0);
    net.route(1, "/", producer.1, 0);
    net.ask(consumer, &interest("/1", 1));
    net.answer(producer, &data("/1"));
    assert_eq!(net.data(consumer).len(), 1);
    assert_eq!(net.nodes[0].counters().outgoing.frames, 2);
    assert!(net.nodes[0].link(near).is_none() && net.nodes[1].link(far).is_none());
}

/// The first answer is lost. The question is repeated with the first packet after a second.
#[test]
fn a_question_whose_answer_is_lost_is_repeated() {
    let mut alone = Alone::new(FaceConfig::default());
    assert_eq!(alone.fields(), [Extensions::SUPPORT]);
    alone.net.now += millis(999);
    assert_eq!(alone.fields(), []);
    alone.net.now += millis(1);
    assert_eq!(alone.fields(), [Extensions::SUPPORT]);
    assert!(alone.frames_after(support(ANSWER)).is_empty());
    assert_eq!(alone.fields(), [Extensions::PATH_LABEL]);
    assert_eq!(alone.speaks(), Some(true));
    // It is asked now and then whether that is still so, and forgets it if it was started anew.
    alone.net.now += Duration::from_secs(10);
    let both = [Extensions::PATH_LABEL, Extensions::SUPPORT];
    assert_eq!(alone.fields(), both);
}

/// In an hour with a packet each second, at 0, 1, 3, 7, 15, 31 and 63 s, and then every 64 s: 7 + ⌊(3600 − 1 − 63) / 64⌋ = 62.
#[test]
fn a_neighbour_that_never_answers_gets_no_fields_and_few_questions() {
    let mut alone = Alone::new(FaceConfig::default());
    let mut questions = 0;
    for _ in 0..3_600 {
        let fields = alone.fields();
        assert!(fields.iter().all(|&number| number == Extensions::SUPPORT));
        questions += fields.len();
        alone.net.now += Duration::from_secs(1);
    }
    assert_eq!(questions, 62);
}

/// A thousand questions within 100 ms get one answer, which is shorter than each; a thousand answers that nobody asked for get
/// none.
#[test]
fn a_neighbour_that_floods_gets_little_for_it() {
    let mut alone = Alone::new(FaceConfig::default());
    let mut answers = Vec::new();
    for _ in 0..1_000 {
        answers.extend(alone.frames_after(support(QUESTION)));
        assert!(alone.frames_after(support(ANSWER)).is_empty());
        alone.net.now += Duration::from_micros(100);
    }
    assert_eq!(answers, [support(ANSWER)]);
    for value in [0, 3, u64::MAX] {
        alone.net.now += millis(500);
        assert!(alone.frames_after(support(value)).is_empty());
    }
    assert_eq!(alone.frames_after(support(QUESTION)), [support(ANSWER)]);
    assert_eq!(alone.net.nodes[0].counters().drops.total(), 0);
}

/// A piece of a packet that asks is answered before the packet is whole, and the packet is as if it had not asked.
#[test]
fn a_question_may_come_with_a_fragment() {
    let mut alone = Alone::new(FaceConfig::default());
    let piece = LpPacket {
        sequence: Some(1),
        fragment_count: Some(2),
        ..LpPacket::carrying(Bytes::from_static(&[6]))
    };
    let mut asking = piece.clone();
    asking.extensions.set_number(Extensions::SUPPORT, QUESTION);
    let wire = asking.encode();
    assert!(Link::concerns(&wire));
    assert_eq!(alone.frames_after(wire), [support(ANSWER)]);
    assert_eq!(alone.fields(), [Extensions::PATH_LABEL]);
}

/// Of several peers some may not speak; and where it is off, the neighbour hears nothing of all this.
#[test]
fn links_with_several_peers_and_those_that_are_off_neither_ask_nor_answer() {
    let off = FaceConfig {
        extension_fields: ExtensionFields::Off,
        ..FaceConfig::default()
    };
    let of_type = |link_type| FaceConfig {
        link_type,
        ..FaceConfig::default()
    };
    let shared = [LinkType::MultiAccess, LinkType::AdHoc].map(of_type);
    for config in shared.into_iter().chain([off]) {
        let mut alone = Alone::new(config);
        assert_eq!(alone.fields(), []);
        assert!(alone.frames_after(support(QUESTION)).is_empty());
        assert_eq!(alone.fields(), []);
    }
}

/// Where it is on, the fields go at once, without a question; the neighbour may ask all the same.
#[test]
fn a_neighbour_that_is_known_to_speak_is_not_asked() {
    let mut alone = Alone::new(FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    });
    assert_eq!(alone.fields(), [Extensions::PATH_LABEL]);
    assert_eq!(alone.frames_after(support(QUESTION)), [support(ANSWER)]);
}
