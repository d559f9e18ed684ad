//! Hops of a driver's own: what they see, what they remember, and what becomes of what they want.

use std::sync::{Arc, Mutex};

use namecast_forward::{
    Actions, Context, Decision, DropReason, ExtensionFields, FaceConfig, FaceId, Hop, LinkFields,
    SendQueueConfig,
};
use namecast_packet::{Data, Extensions, Interest, LpPacket};
use namecast_units::{Duration, Instant};

use crate::topology::{End, Net, data, fresh_data, interest, millis, name};

/// A neighbour that speaks our link fields.
fn speaking() -> FaceConfig {
    FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    }
}

/// One node with a consumer and a producer that both speak.
fn node() -> (Net, End, End) {
    let mut net = Net::new(1);
    let (consumer, producer) = (net.face(0, speaking()), net.face(0, speaking()));
    net.route(0, "/", producer.1, 0);
    (net, consumer, producer)
}

/// Does each thing once, by the last component of the name.
#[derive(Debug)]
struct Toy {
    probe_at: Option<(Instant, FaceId)>,
}

impl Hop for Toy {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        match context.name.to_string().as_str() {
            "/refused" => Actions::drop(DropReason::Hop),
            "/known" => Actions::answer(data("/known")),
            "/slow" => Actions::default().delay(millis(30)),
            "/elsewhere" => Actions::forward_to([FaceId::from_number(258)]),
            _ => Actions::default().set_field(Extensions::PATH_LABEL, vec![7]),
        }
    }

    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let hops = context.fields.extensions.number(Extensions::HOP_COUNT);
        let hops = u8::try_from(hops.unwrap_or(0) + 1).expect("few nodes");
        Actions::default()
            .set_field(Extensions::HOP_COUNT, vec![hops])
            .set_congestion_mark(4)
    }

    fn on_timeout(&mut self, _now: Instant, _context: &mut Context<'_>) -> Actions {
        let (_, face) = self.probe_at.take().expect("a time was named");
        let wire = interest("/probe", 9).wire().clone();
        Actions::default().originate(face, wire, LinkFields::default())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.probe_at.map(|(at, _)| at)
    }
}

#[test]
fn a_hop_drops_answers_and_steers_interests() {
    let (mut net, consumer, producer) = node();
    let other = net.face(0, FaceConfig::default());
    assert_eq!(other.1, FaceId::from_number(258));
    net.nodes[0]
        .forwarder
        .install(Box::new(Toy { probe_at: None }));

    net.ask(consumer, &interest("/refused", 1));
    let drops = net.nodes[0].counters().drops;
    assert_eq!((drops.get(DropReason::Hop), drops.total()), (1, 1));
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);

    net.ask(consumer, &interest("/known", 2));
    assert_eq!(net.data(consumer), [data("/known")]);
    assert_eq!(net.nodes[0].counters().satisfied, 1);
    assert_eq!(net.nodes[0].forwarder.content_store().packets(), 0);

    net.ask(consumer, &interest("/elsewhere", 3));
    assert_eq!(net.interests(other), [interest("/elsewhere", 3)]);
    assert!(net.seen(producer).is_empty());
}

/// A field that a hop sets goes to those who speak it; of what came, nothing goes on by itself, not even a hop's count that is
/// not renewed.
#[test]
fn fields_go_to_neighbours_that_speak_them() {
    let (mut net, consumer, producer) = node();
    let plain = net.face(0, FaceConfig::default());
    let with_count = |wire: &bytes::Bytes, count: u8| {
        let mut packet = LpPacket::carrying(wire.clone());
        packet.extensions.set(Extensions::HOP_COUNT, vec![count]);
        packet.encode()
    };
    // Without hops the fields end here.
    net.send(consumer, with_count(interest("/plain", 1).wire(), 3));
    assert_eq!(net.seen(producer)[0].header, LpPacket::default());

    net.nodes[0]
        .forwarder
        .install(Box::new(Toy { probe_at: None }));
    net.ask(consumer, &interest("/a", 2));
    net.ask(plain, &interest("/a", 3));
    let label = |seen: &LpPacket| {
        let label = seen.extensions.get(Extensions::PATH_LABEL);
        label.map(<[u8]>::to_vec)
    };
    let asked = net.seen(producer);
    assert_eq!(label(&asked[0].header).as_deref(), Some(&[7][..]));
    net.send(producer, with_count(data("/a").wire(), 4));
    let count = |header: &LpPacket| {
        let count = header.extensions.number(Extensions::HOP_COUNT);
        (count, header.congestion_mark)
    };
    assert_eq!(count(&net.seen(consumer)[0].header), (Some(5), 4));
    assert_eq!(count(&net.seen(plain)[0].header), (None, 4));

    // What a stranger says is not heard.
    net.route(0, "/b", plain.1, 0);
    net.ask(consumer, &interest("/b", 4));
    net.send(plain, with_count(data("/b").wire(), 200));
    assert_eq!(count(&net.seen(consumer)[0].header), (Some(1), 4));
}

#[test]
fn a_hop_delays_packets_and_sends_its_own() {
    let (mut net, consumer, producer) = node();
    let probe_at = Some((Instant::ZERO + millis(100), producer.1));
    net.nodes[0].forwarder.install(Box::new(Toy { probe_at }));
    net.ask(consumer, &interest("/slow", 1));
    net.run_for(millis(29));
    assert!(net.seen(producer).is_empty());
    net.run_for(millis(1));
    assert_eq!(net.interests(producer), [interest("/slow", 1)]);
    net.run_for(millis(69));
    assert!(net.seen(producer).is_empty());
    net.run_for(millis(1));
    assert_eq!(net.interests(producer), [interest("/probe", 9)]);
    // Nobody else waits for the answer.
    net.answer(producer, &data("/probe"));
    assert!(net.seen(consumer).is_empty());
}

/// A face that goes takes with it what waits to be sent on it.
#[test]
fn what_is_delayed_ends_with_its_face() {
    let (mut net, consumer, producer) = node();
    net.nodes[0]
        .forwarder
        .install(Box::new(Toy { probe_at: None }));
    net.ask(consumer, &interest("/slow", 1));
    net.nodes[0].remove_face(Instant::ZERO, producer.1);
    net.run_for(millis(100));
    assert!(net.seen(producer).is_empty());
}

/// What a hop wrote down: the event, and how often it heard of this face and of this Interest.
type Notes = Arc<Mutex<Vec<(&'static str, u32, u32)>>>;

/// Counts for each face, and for each pending Interest.
#[derive(Debug)]
struct Counting(Notes);

impl Counting {
    fn note(&self, event: &'static str, context: &mut Context<'_>) -> Actions {
        let face: &mut u32 = match context.face_state(context.face) {
            Some(count) => count,
            None => &mut 0,
        };
        *face += 1;
        let face = *face;
        let mut last = 0;
        for &entry in context.entries {
            let count: &mut u32 = context.entry_state(entry);
            *count += 1;
            last = *count;
        }
        self.0.lock().unwrap().push((event, face, last));
        Actions::default()
    }
}

impl Hop for Counting {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = self.note("interest", context);
        let cheapest = context.eligible_hops().next();
        Actions::forward_to(cheapest.map(|hop| hop.face))
    }

    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        self.note("data", context)
    }

    fn on_cache_hit(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = self.note("hit", context);
        match context.name.to_string().as_str() {
            "/p/renewed" => Decision::Wait.into(),
            _ => Actions::default(),
        }
    }

    fn on_nack(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = self.note("nack", context);
        let reason = context.nack.expect("it is one");
        Decision::Reject(reason).into()
    }

    fn on_expiry(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        self.note("expiry", context)
    }
}

/// As the strategy of `/p`: states of faces stay, those of an Interest end with it, and names elsewhere are not its own.
#[test]
fn a_strategy_remembers_faces_and_interests() {
    let (mut net, consumer, producer) = node();
    let notes = Notes::default();
    let forwarder = &mut net.nodes[0].forwarder;
    let kind = forwarder.add_strategy("counting", Box::new(Counting(Arc::clone(&notes))));
    forwarder.set_strategy(name("/p"), kind).unwrap();
    assert_eq!(kind.name(), name("/localhost/nfd/strategy/counting/v=1"));
    let seen = || core::mem::take(&mut *notes.lock().unwrap());

    net.ask(consumer, &interest("/p/1", 1));
    net.ask(consumer, &interest("/p/1", 2));
    assert_eq!(net.interests(producer).len(), 2);
    net.answer(producer, &data("/p/1"));
    assert_eq!(net.data(consumer), [data("/p/1")]);
    assert_eq!(
        seen(),
        [("interest", 1, 1), ("interest", 2, 2), ("data", 1, 3)]
    );

    net.ask(consumer, &interest("/p/2", 3));
    net.nack(
        producer,
        &interest("/p/2", 3),
        namecast_packet::lp::NackReason::NoRoute,
    );
    assert_eq!(net.nacks(consumer).len(), 1);
    assert_eq!(seen(), [("interest", 3, 1), ("nack", 2, 2)]);

    let short = Interest::builder(name("/p/3"))
        .lifetime(millis(50))
        .build(4.into());
    net.ask(consumer, &short);
    net.run_for(millis(50));
    assert_eq!(seen(), [("interest", 4, 1), ("expiry", 1, 2)]);

    net.seen(producer);
    net.ask(consumer, &interest("/q", 5));
    net.answer(producer, &data("/q"));
    assert_eq!(net.data(consumer), [data("/q")]);
    assert_eq!(seen(), []);
}

/// It answers from the cache, or as if there was nothing.
#[test]
fn a_strategy_decides_about_what_is_cached() {
    let (mut net, consumer, producer) = node();
    let notes = Notes::default();
    let forwarder = &mut net.nodes[0].forwarder;
    let kind = forwarder.add_strategy("counting", Box::new(Counting(Arc::clone(&notes))));
    forwarder.set_strategy(name("/p"), kind).unwrap();
    for uri in ["/p/kept", "/p/renewed"] {
        let sent: Data = fresh_data(uri, Duration::from_secs(1));
        net.ask(consumer, &interest(uri, 1));
        net.answer(producer, &sent);
    }
    net.seen(consumer);
    net.seen(producer);
    net.ask(consumer, &interest("/p/kept", 7));
    assert_eq!((net.seen(consumer).len(), net.seen(producer).len()), (1, 0));
    net.ask(consumer, &interest("/p/renewed", 8));
    assert_eq!((net.seen(consumer).len(), net.seen(producer).len()), (0, 1));
    let hits = notes
        .lock()
        .unwrap()
        .iter()
        .filter(|note| note.0 == "hit")
        .count();
    assert_eq!(hits, 2);
}

/// Writes down what the link of every face has queued, and for how long, whenever Data come.
#[derive(Debug)]
struct Reading(FaceId, Arc<Mutex<Vec<(u64, Duration, u64)>>>);

impl Hop for Reading {
    fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if let Some(meter) = context.meter(self.0) {
            let delay = meter.queueing_delay(now);
            let seen = context.counters(self.0).expect("it is there").outgoing.data;
            let reading = (meter.queued().as_bytes(), delay, seen);
            self.1.lock().unwrap().push(reading);
        }
        Actions::default()
    }
}

/// Two Data packets of the same size, 5 ms apart, to a link that takes none: the first has waited for 5 ms when the second comes.
#[test]
fn a_hop_reads_the_queue_of_a_link() {
    let (mut net, consumer, producer) = node();
    let readings = Arc::default();
    let hop = Reading(consumer.1, Arc::clone(&readings));
    net.nodes[0].forwarder.install(Box::new(hop));
    net.nodes[0].set_send_queue(consumer.1, SendQueueConfig::default());
    for uri in ["/1", "/2", "/3"] {
        net.ask(consumer, &interest(uri, 1));
        net.answer(producer, &data(uri));
        net.now += millis(5);
    }
    let octets = data("/1").wire().len() as u64;
    let expected = [
        (0, Duration::ZERO, 0),
        (octets, millis(5), 1),
        (2 * octets, millis(10), 2),
    ];
    assert_eq!(*readings.lock().unwrap(), expected);
    let now = net.now;
    let room = namecast_units::ByteSize::bytes(10_000);
    while net.nodes[0].poll_frame(now, consumer.1, room).is_some() {}
    net.ask(consumer, &interest("/4", 1));
    net.answer(producer, &data("/4"));
    assert_eq!(
        readings.lock().unwrap().last(),
        Some(&(0, Duration::ZERO, 3))
    );
}
