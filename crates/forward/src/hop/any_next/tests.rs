//! Counters of a tree of nodes, with links that lose, repeat and overtake.

use namecast_units::Random;

use namecast_packet::any_next::MAX_PENDING;

use super::flow::{Copy, Flow};
use super::*;

const UPSTREAM: FaceId = FaceId::from_number(1);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn face(number: u64) -> FaceId {
    FaceId::from_number(256 + number)
}

fn wants(pending: u16, seen: u32) -> AnyNextRequest {
    AnyNextRequest {
        pending,
        seen,
        refresh: false,
    }
}

fn refreshes(pending: u16, seen: u32) -> AnyNextRequest {
    AnyNextRequest {
        refresh: true,
        ..wants(pending, seen)
    }
}

/// Two faces, of 3 and 5: upstream hears 3, then 5. Three Data later they have 0 and 2.
#[test]
fn upstream_hears_the_maximum_and_no_more() {
    let mut flow = Flow::new(UPSTREAM);
    let ask = |flow: &mut Flow, number, request| {
        flow.on_request(at(0), (face(number), None), &request);
        flow.request(at(0), request.refresh)
    };
    assert_eq!(ask(&mut flow, 1, wants(3, 0)), Some(refreshes(3, 0)));
    assert_eq!(ask(&mut flow, 2, wants(5, 0)), Some(wants(5, 0)));
    assert_eq!(ask(&mut flow, 1, wants(5, 0)), None);
    assert_eq!(ask(&mut flow, 1, wants(3, 0)), None);
    for number in 1..=3 {
        assert!(flow.on_data(at(1), number));
        let copies: Vec<Copy> = flow.copies(9).collect();
        let spare = 3 - number as u16;
        assert_eq!([copies[0].spare, copies[1].spare], [spare, spare + 2]);
        assert_eq!([copies[0].number, copies[1].number], [number; 2]);
        assert_eq!(flow.request(at(1), false), None);
    }
    assert!(flow.on_data(at(1), 4));
    let copies: Vec<Copy> = flow.copies(0).collect();
    assert_eq!(
        (copies.len(), copies[0].face, copies[0].spare),
        (1, face(2), 0)
    );
    // One seen of four sent: two of five pending are not answered yet.
    assert_eq!(ask(&mut flow, 2, wants(5, 2)), Some(wants(3, 4)));
    assert_eq!(flow.pending_of(face(2)), Some(3));
}

/// Three of four Data are lost on the link upstream: the one that comes has four of five requests there answered, and the three that
/// nobody got are requested again at once.
#[test]
fn data_lost_upstream_are_made_up_for_by_the_next() {
    let mut flow = Flow::new(UPSTREAM);
    flow.on_request(at(0), (face(1), None), &wants(5, 0));
    assert_eq!(flow.request(at(0), false), Some(refreshes(5, 0)));
    assert!(flow.on_data(at(1), 4));
    assert_eq!((flow.copies(9).count(), flow.pending_upstream()), (1, 1));
    assert_eq!(flow.request(at(1), false), Some(wants(4, 4)));
}

/// A face's counter takes the same room whatever its window, which is why 10 000 receivers cost a node no more than its faces do.
#[test]
fn a_counter_has_the_same_size_whatever_the_window() {
    let mut flow = Flow::new(UPSTREAM);
    for window in [1, MAX_PENDING] {
        flow.on_request(at(0), (face(1), None), &wants(window, 0));
        assert_eq!(flow.counters.len(), 1);
    }
    assert!(size_of::<super::flow::Counter>() <= 72);
}

/// A face that has lost count, and one that has seen what was never sent, begin anew; none has more than the most.
#[test]
fn counters_at_their_bounds_stay_within_them() {
    let mut flow = Flow::new(UPSTREAM);
    for (request, pending) in [
        (wants(u16::MAX, u32::MAX), MAX_PENDING),
        (wants(7, u32::MAX - 8_192), 0),
        (wants(7, u32::MAX - 8_193), 7),
        (wants(7, 12), 7),
        (refreshes(0, 5), 0),
        (wants(0, 0), 0),
    ] {
        flow.on_request(at(0), (face(1), None), &request);
        assert_eq!(flow.pending_of(face(1)), Some(pending), "{request:?}");
    }
    assert!(!flow.on_data(at(0), 0) && !flow.on_data(at(0), u32::MAX));
    assert!(flow.on_data(at(0), i32::MAX as u32));
    assert_eq!(flow.copies(0).count(), 0);
}

/// What a link carries in either direction.
#[derive(Clone, Debug)]
enum Message {
    Request(AnyNextRequest),
    Data(u32),
}

/// A receiver that keeps `window` requests pending.
#[derive(Clone, Debug, Default)]
struct Receiver {
    window: u16,
    pending: u16,
    seen: u32,
    heard_at: Instant,
}

/// The provider is node 0, and node `n` > 0 hangs on node (n − 1) / 2; receivers hang on the leaves, two on each.
const NODES: usize = 7;
const LEAVES: core::ops::Range<usize> = 3..7;

struct Tree {
    now: Instant,
    random: Random,
    nodes: Vec<Flow>,
    /// By the number of their face at the leaf.
    receivers: BTreeMap<u64, Receiver>,
    next_face: u64,
    /// From whom, to whom: nodes by number, receivers by that of their face and 1000.
    links: Vec<(u64, u64, Message)>,
}

impl Tree {
    fn new(seed: u64) -> Self {
        let mut tree = Self {
            now: at(1_000),
            random: Random::from_seed(seed),
            nodes: vec![Flow::new(UPSTREAM); NODES],
            receivers: BTreeMap::new(),
            next_face: 1_000,
            links: Vec::new(),
        };
        (0..2 * LEAVES.len()).for_each(|_| tree.join());
        tree
    }

    fn join(&mut self) {
        let window = 1 + self.random.below(12) as u16;
        let receiver = Receiver {
            window,
            ..Receiver::default()
        };
        self.receivers.insert(self.next_face, receiver);
        self.next_face += 1;
    }

    fn leaf_of(receiver: u64) -> u64 {
        3 + receiver % 4
    }

    fn parent_of(node: u64) -> u64 {
        match node {
            1_000.. => Self::leaf_of(node),
            _ => (node - 1) / 2,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn some_receiver(&mut self) -> u64 {
        let place = self.below(self.receivers.len());
        *self
            .receivers
            .keys()
            .nth(place)
            .expect("below their number")
    }

    /// One event out of all that may happen.
    fn step(&mut self) {
        self.now += Duration::from_micros(self.random.below(20_000));
        match self.random.below(100) {
            0..45 if !self.links.is_empty() => {
                let place = self.below(self.links.len().min(6));
                let (from, to, message) = self.links.remove(place);
                if self.random.chance(0.1) {
                    self.links.push((from, to, message.clone()));
                }
                self.deliver(from, to, &message);
            }
            45..50 if !self.links.is_empty() => {
                let place = self.below(self.links.len());
                self.links.remove(place);
            }
            50..70 => self.provide(),
            70..92 => {
                let number = self.some_receiver();
                self.ask(number);
            }
            92..94 => {
                let number = self.some_receiver();
                let window = 1 + self.random.below(12) as u16;
                self.receivers.entry(number).or_default().window = window;
            }
            94..96 => {
                let number = self.some_receiver();
                self.receivers.remove(&number);
                let leaf = &mut self.nodes[Self::leaf_of(number) as usize];
                leaf.counters.retain(|it| it.face != face(number));
                if leaf.counters.is_empty() {
                    // Nobody requests it any more, so the node forgets it.
                    *leaf = Flow::new(UPSTREAM);
                }
                self.join();
            }
            96 => {
                let place = self.below(NODES);
                self.nodes[place] = Flow::new(UPSTREAM);
            }
            _ => {}
        }
    }

    fn provide(&mut self) {
        let copies: Vec<Copy> = self.nodes[0].copies(u16::MAX).collect();
        self.send_copies(0, copies);
    }

    fn send_copies(&mut self, from: u64, copies: Vec<Copy>) {
        for copy in copies {
            let to = copy.face.number() - 256;
            self.links.push((from, to, Message::Data(copy.number)));
        }
    }

    /// A receiver with fewer pending than its window asks; one that heard nothing for the silence refreshes.
    fn ask(&mut self, number: u64) {
        let now = self.now;
        let receiver = self.receivers.entry(number).or_default();
        let is_silent = now.since(receiver.heard_at) >= Duration::from_millis(250);
        if !is_silent && receiver.pending >= receiver.window {
            return;
        }
        if is_silent {
            receiver.heard_at = now;
        }
        receiver.pending = receiver.window;
        let request = AnyNextRequest {
            pending: receiver.window,
            seen: receiver.seen,
            refresh: is_silent,
        };
        let leaf = Self::leaf_of(number);
        self.links.push((number, leaf, Message::Request(request)));
    }

    fn deliver(&mut self, from: u64, to: u64, message: &Message) {
        let now = self.now;
        if let Some(receiver) = self.receivers.get_mut(&to) {
            if let &Message::Data(number) = message {
                receiver.heard_at = now;
                let advance = number.wrapping_sub(receiver.seen);
                if (1..=i32::MAX as u32).contains(&advance) {
                    receiver.pending = receiver.pending.saturating_sub(advance as u16);
                    receiver.seen = number;
                }
            }
            return;
        }
        let Some(node) = self.nodes.get_mut(to as usize) else {
            return;
        };
        let mut copies = Vec::new();
        let mut refresh = false;
        match message {
            Message::Request(request) => {
                if from >= 1_000 && !self.receivers.contains_key(&from) {
                    return;
                }
                node.on_request(now, (face(from), None), request);
                refresh = request.refresh;
            }
            Message::Data(number) => {
                node.on_data(now, *number);
                copies = node.copies(u16::MAX).collect();
            }
        }
        if to > 0
            && let Some(up) = node.request(now, refresh)
        {
            let message = Message::Request(up);
            self.links.push((to, Self::parent_of(to), message));
        }
        self.send_copies(to, copies);
    }

    /// Nothing is under way, and nobody hears anything for the silence.
    fn fall_silent(&mut self) {
        self.links.clear();
        self.now += Duration::from_millis(250);
        let numbers: Vec<u64> = self.receivers.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.ask(number));
        while !self.links.is_empty() {
            let (from, to, message) = self.links.remove(0);
            self.deliver(from, to, &message);
        }
    }

    /// What is pending upstream is the maximum of what faces have pending, on both ends of each link.
    fn check(&self, seed: u64) {
        for (number, receiver) in &self.receivers {
            let leaf = &self.nodes[Self::leaf_of(*number) as usize];
            let pending = leaf.pending_of(face(*number));
            assert_eq!(pending, Some(receiver.window), "seed {seed}");
        }
        for number in 1..NODES as u64 {
            let node = &self.nodes[number as usize];
            if node.counters.is_empty() {
                // What its parent knows of it ends when it has been idle.
                continue;
            }
            let most = node.most_pending();
            assert_eq!(node.pending_upstream(), most, "seed {seed}, node {number}");
            let parent = &self.nodes[Self::parent_of(number) as usize];
            let there = parent.pending_of(face(number));
            assert_eq!(there, Some(most), "seed {seed}, node {number}");
        }
    }
}

/// After any events, and one silence later, nobody has lost or gained a request; and Data reach everybody again.
#[test]
fn one_silence_after_anything_pending_upstream_is_the_maximum_over_faces() {
    for seed in 0..2_000 {
        let mut tree = Tree::new(seed);
        for _ in 0..400 {
            tree.step();
        }
        tree.fall_silent();
        tree.check(seed);
        tree.provide();
        while !tree.links.is_empty() {
            let (from, to, message) = tree.links.remove(0);
            tree.deliver(from, to, &message);
        }
        let now = tree.now;
        let got = tree.receivers.values().filter(|it| it.heard_at == now);
        assert_eq!(got.count(), tree.receivers.len(), "seed {seed}");
    }
}
