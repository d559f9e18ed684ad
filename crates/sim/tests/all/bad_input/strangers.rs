//! Other consumers of the names that a watcher awaits.

use core::convert::Infallible;
use core::time::Duration;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use namecast_packet::{Interest, LpPacket, Nonce, Packet};
use namecast_sim::live::{Media, Signing};
use namecast_sim::topology::{NodeIndex, Topology};
use namecast_sim::trace::{Event, EventKind, Sink};
use namecast_sim::{Application, Network, NodeConfig, Now, Output};
use namecast_stream::StreamKind;
use namecast_units::{Instant, Random};

use crate::bad_input::stage::viewer;
use crate::live_world::{LiveWorld, link, ms};

/// Sends the Interests that it is given.
#[derive(Default)]
struct Stranger(VecDeque<Bytes>);

impl Application for Stranger {
    type Event = Infallible;

    fn handle_frame(&mut self, _now: Now, _frame: Bytes) {}

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.0.pop_front().map(Output::Send)
    }
}

/// Hears the Interests of one face.
struct Ear {
    node: NodeIndex,
    face: u64,
    heard: Rc<RefCell<Vec<Interest>>>,
}

impl Sink for Ear {
    fn record(&mut self, event: &Event<'_>) {
        let EventKind::Received(frame) = event.kind else {
            return;
        };
        if (event.node, event.face) != (self.node, self.face) {
            return;
        }
        let fragment = LpPacket::decode(frame.clone()).unwrap().fragment;
        if let Some(Ok(Packet::Interest(interest))) = fragment.map(Packet::decode) {
            self.heard.borrow_mut().push(interest);
        }
    }
}

/// Nonces of a stranger's Interests.
#[derive(Clone, Copy, Debug)]
enum Nonces {
    /// The watcher's.
    Equal,
    /// One for all.
    Constant,
    Random,
}

/// P – R – C, with 25 ms from each to the next. The stranger is at C, or at S, whose link to R takes `delay`: it gets each Interest as the
/// watcher sends it, and requests the same name within 1 ms. Returns the frames shown of 900.
fn shown_beside_a_stranger(host: &str, delay: Duration, nonces: Nonces) -> usize {
    let mut topology = Topology::default();
    let [p, r, c, s] = ["P", "R", "C", "S"].map(|name| topology.add_node(name));
    topology.connect(p, r, &link(ms(25)));
    topology.connect(r, c, &link(ms(25)));
    topology.connect(r, s, &link(delay));
    let mut world = LiveWorld {
        network: Network::new(&topology, 1, |_| NodeConfig::default()),
        topology,
        signing: Signing::Hmac,
    };
    world.publish("P", vec![Media::video()]);
    let watcher = world.watch("C", viewer());
    let at = world.node(host);
    let stranger = world.network.add_application(at, Stranger::default());
    let heard = Rc::new(RefCell::new(Vec::new()));
    world.network.set_sink(Box::new(Ear {
        node: c,
        face: world.network.application_face(watcher).number(),
        heard: Rc::clone(&heard),
    }));
    let mut random = Random::from_seed(5);
    let mut requested = 0;
    for now in 1..=33_000 {
        world.run_until(ms(now));
        for interest in heard.take() {
            let nonce = match nonces {
                Nonces::Equal => interest.nonce().unwrap(),
                Nonces::Constant => Nonce::from(7),
                Nonces::Random => Nonce::from(random.next_u64() as u32),
            };
            let builder = Interest::builder(interest.name().clone()).lifetime(ms(1));
            let builder = match interest.can_be_prefix() {
                true => builder.can_be_prefix(),
                false => builder,
            };
            let builder = match interest.must_be_fresh() {
                true => builder.must_be_fresh(),
                false => builder,
            };
            let wire = builder.build(nonce).wire().clone();
            requested += 1;
            let send = |stranger: &mut Stranger, _| stranger.0.push_back(wire);
            world.network.with_application(stranger, send).unwrap();
        }
    }
    assert!(requested > 900, "{requested}");
    let span = ms(2_000)..ms(32_000);
    world.rendered(watcher, StreamKind::Video, span).len()
}

/// Interests of 1 ms for each name that the watcher awaits, from its own node and from a neighbour of its router: 99 of 100 frames are shown.
/// Other Nonces may reach the router before the watcher's Interest does. Equal ones come after it: to be first, a stranger would have to
/// hear a Nonce and overtake it, and forwarders then cannot tell the watcher's Interest from a loop.
#[test]
fn short_interests_for_the_same_names_take_no_frames() {
    let after = [("C", 25), ("S", 25)];
    let before = [("S", 10), ("S", 0)];
    let anywhere = [after, before].concat();
    for (nonces, places) in [
        (Nonces::Constant, &anywhere[..]),
        (Nonces::Random, &anywhere),
        (Nonces::Equal, &after),
    ] {
        for &(host, delay) in places {
            let shown = shown_beside_a_stranger(host, ms(delay), nonces);
            assert!(shown >= 891, "{nonces:?}, {host} {delay}: {shown}");
        }
    }
}
