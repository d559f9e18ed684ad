//! Sender and receiver on one link, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::signature::{Ed25519Signer, NullSigner};
use namecast_packet::{
    Certificate, ChunksHad, Component, Data, Extensions, Interest, KeyLocator, LpPacket, Name,
    Nonce, Packet, Signer, Validity,
};
use namecast_units::{Bitrate, ByteSize, Duration, Instant, Random, Timestamp};

use super::contents::tests::contents;
use super::*;
use crate::discovery::Trust;
use crate::{Application, Now, Output, face, step};

/// One way, each.
const DELAY: Duration = Duration::from_millis(5);
/// Longest queue of a link with a rate.
const QUEUE: Duration = Duration::from_millis(150);
/// Steps of time.
const TICK: Duration = Duration::from_millis(1);

/// Content and parity in memory.
#[derive(Clone, Default)]
struct Memory {
    segments: BTreeMap<u64, Vec<u8>>,
    size: usize,
    is_broken: bool,
}

impl Shards for Memory {
    fn read(&mut self, number: u64, from: usize, octets: &mut [u8]) -> io::Result<()> {
        let mut segment = self.segments.get(&number).cloned().unwrap_or_default();
        segment.resize(self.size, 0);
        octets.copy_from_slice(&segment[from..from + octets.len()]);
        Ok(())
    }

    fn write(&mut self, number: u64, from: usize, octets: &[u8]) -> io::Result<()> {
        let segment = self.segments.entry(number).or_default();
        segment.resize(self.size, 0);
        segment[from..from + octets.len()].copy_from_slice(octets);
        Ok(())
    }
}

impl Source for std::sync::Arc<std::sync::Mutex<Memory>> {
    fn read(&mut self, number: u64) -> Result<Bytes, SourceError> {
        let memory = self.lock().unwrap();
        match memory.is_broken {
            true => Err(SourceError("the file a has changed".to_owned())),
            false => Ok(memory.segments[&number].clone().into()),
        }
    }
}

/// Segments that a receiver has kept: content and signature.
#[derive(Clone, Default)]
struct Kept(std::sync::Arc<std::sync::Mutex<BTreeMap<u64, (Bytes, Bytes)>>>);

impl KeptSegments for Kept {
    fn read(&mut self, number: u64) -> Option<(Bytes, Bytes)> {
        self.0.lock().unwrap().get(&number).cloned()
    }
}

/// What to try.
struct Case {
    size: u64,
    coding: Option<Coding>,
    key: Option<ContentKey>,
    any_next: bool,
    /// Share of frames to the receiver that are lost.
    loss: f64,
    /// Rate of the link to the receiver, whose queue holds 150 ms.
    rate: Option<Bitrate>,
    policy: Policy,
    here: Vec<u64>,
}

impl Case {
    fn new(size: u64) -> Self {
        Self {
            size,
            coding: None,
            key: None,
            any_next: true,
            loss: 0.0,
            rate: None,
            policy: Policy::AsAsked,
            here: Vec::new(),
        }
    }
}

struct Pair {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    memory: std::sync::Arc<std::sync::Mutex<Memory>>,
    contents: Contents,
    loss: f64,
    rate: Option<Bitrate>,
    /// When the link to the receiver has sent what waits.
    free_at: Instant,
    random: Random,
    to_sender: VecDeque<(Instant, Bytes)>,
    to_receiver: VecDeque<(Instant, Bytes)>,
    received: BTreeMap<u64, Bytes>,
    kept: Kept,
    /// Chunks that the receiver has announced last.
    announced: Vec<(u32, u32)>,
    events: Vec<ReceiverEvent>,
    here: Vec<u64>,
}

fn now(at: Instant) -> Now {
    Now {
        monotonic: at,
        wall: Timestamp::from_micros(1_700_000_000_000_000) + at.since(Instant::ZERO),
    }
}

/// A key of `identity`, and its certificate.
fn key_of(identity: &Name) -> (Box<dyn Signer + Send>, Certificate) {
    let key = identity.builder().generic("KEY").generic("1").finish();
    let signer = Ed25519Signer::from_seed([7; 32], KeyLocator::Name(key));
    let validity = Validity {
        not_before: Timestamp::from_micros(0),
        not_after: Timestamp::from_micros(u64::MAX / 2),
    };
    let certificate = Certificate::self_signed(identity, b"1", 9, validity, &signer);
    (Box::new(signer), certificate)
}

fn octet(at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

impl Pair {
    fn new(case: Case) -> Self {
        let mut contents = contents(&[("a/b", case.size / 3), ("a/c", case.size - case.size / 3)]);
        contents.coding = case.coding;
        let mut memory = Memory {
            size: contents.segment_size as usize,
            ..Memory::default()
        };
        for number in 0..contents.segments() {
            let (offset, length) = contents.span(number);
            let octets = (offset..offset + length as u64).map(octet).collect();
            memory.segments.insert(number, octets);
        }
        let memory = std::sync::Arc::new(std::sync::Mutex::new(memory));
        let name: Name = "/files/a".parse().unwrap();
        let (signer, certificate) = key_of(&name);
        let config = SenderConfig {
            name: name.clone(),
            contents: contents.clone(),
            policy: case.policy,
            key: case.key.clone(),
        };
        let at = Instant::ZERO + Duration::from_secs(1);
        let sender = Sender::new(
            config,
            (signer, certificate),
            Box::new(memory.clone()),
            now(at),
        );
        let receiver = Receiver::new(ReceiverConfig {
            name,
            trust: Trust::FirstUse,
            wall_at_zero: now(Instant::ZERO).wall,
            key: case.key,
            any_next: case.any_next,
            id: [7; 8],
            seed: 3,
        });
        Self {
            now: at,
            sender: sender.unwrap(),
            receiver,
            memory,
            contents,
            loss: case.loss,
            rate: case.rate,
            free_at: at,
            random: Random::from_seed(9),
            to_sender: VecDeque::new(),
            to_receiver: VecDeque::new(),
            received: BTreeMap::new(),
            kept: Kept::default(),
            announced: Vec::new(),
            events: Vec::new(),
            here: case.here,
        }
    }

    /// Runs for one tick.
    fn tick(&mut self) {
        self.now += TICK;
        let due = |queue: &mut VecDeque<(Instant, Bytes)>, now: Instant| {
            let count = queue.iter().take_while(|(at, _)| *at <= now).count();
            queue
                .drain(..count)
                .map(|(at, frame)| (self::now(at), frame))
                .collect::<Vec<_>>()
        };
        let frames = due(&mut self.to_sender, self.now);
        let mut events = Vec::new();
        let mut sent = Vec::new();
        step(
            &mut self.sender,
            now(self.now),
            frames,
            |output| match output {
                Output::Send(frame) => sent.push(frame),
                Output::Event(event) => events.push(event),
            },
        );
        for frame in sent {
            self.transmit(frame);
        }
        if events.contains(&SenderEvent::NeedsParity) {
            self.make_parity();
        }
        let frames = due(&mut self.to_receiver, self.now);
        let mut begun = false;
        step(
            &mut self.receiver,
            now(self.now),
            frames,
            |output| match output {
                Output::Send(frame) => match chunks(&frame) {
                    Some(had) => self.announced = had.ranges,
                    None => self.to_sender.push_back((self.now + DELAY, frame)),
                },
                Output::Event(ReceiverEvent::Segment(number, content, signature)) => {
                    let kept = (content.clone(), signature);
                    self.kept.0.lock().unwrap().insert(number, kept);
                    assert!(
                        self.received.insert(number, content).is_none(),
                        "{number} twice"
                    );
                }
                Output::Event(event) => {
                    begun |= matches!(event, ReceiverEvent::Contents(..));
                    self.events.push(event);
                }
            },
        );
        if begun {
            let mut here = SegmentSet::new(self.contents.total());
            self.here.iter().for_each(|it| assert!(here.insert(*it)));
            let kept = Box::new(self.kept.clone());
            self.receiver.begin(self.now, here, kept);
        }
    }

    /// Gives the receiver a frame, and returns all that leaves it then.
    fn tell(&mut self, frame: Bytes) -> Vec<LpPacket> {
        self.receiver.handle_frame(now(self.now), frame);
        let mut sent = Vec::new();
        while let Some(output) = self.receiver.poll_output() {
            if let Output::Send(frame) = output {
                sent.push(LpPacket::decode(frame).unwrap());
            }
        }
        sent
    }

    /// Tells the receiver that neighbours have chunks.
    fn announce(&mut self, ranges: &[(u32, u32)]) {
        let had = ChunksHad {
            flow: "/files/a/v=7".parse().unwrap(),
            chunk_size: 100,
            hops_left: 0,
            expiry: 60,
            ranges: ranges.to_vec(),
        };
        let mut packet = LpPacket::default();
        packet.extensions.set(Extensions::CHUNKS_HAD, had.encode());
        self.to_receiver.push_front((self.now, packet.encode()));
    }

    /// Puts a frame on the link to the receiver, unless it is lost or finds no room.
    fn transmit(&mut self, frame: Bytes) {
        let waiting = self.free_at.since(self.now);
        if self.random.chance(self.loss) || waiting > QUEUE {
            return;
        }
        if let Some(rate) = self.rate {
            self.free_at = self.free_at.max(self.now) + ByteSize::of(&frame) / rate;
        }
        let at = self.free_at.max(self.now) + DELAY;
        self.to_receiver.push_back((at, frame));
    }

    fn make_parity(&mut self) {
        let coding = self.contents.coding.unwrap();
        let segments = self.contents.segments();
        let mut memory = self.memory.lock().unwrap();
        for index in 0..coding.blocks(segments) {
            let block = coding.block(segments, index);
            let size = memory.size;
            coding.encode(block, size, &mut *memory).unwrap();
        }
        // The last segment is shorter than the shard.
        self.sender.add_parity();
    }

    /// Runs until an event, at most a minute.
    fn until(&mut self, is_it: impl Fn(&ReceiverEvent) -> bool) -> ReceiverEvent {
        for _ in 0..60_000 {
            self.tick();
            if let Some(at) = self.events.iter().position(&is_it) {
                return self.events.swap_remove(at);
            }
        }
        panic!(
            "{:?} {:?}",
            self.receiver.counters(),
            self.sender.counters()
        );
    }

    /// Receives all, decodes it, and checks it.
    fn finish(&mut self) {
        self.until(|event| *event == ReceiverEvent::Enough);
        self.finish_after_enough();
    }

    /// Decodes what came, checks it, and reports.
    fn finish_after_enough(&mut self) {
        let (contents, segments) = (&self.contents, self.contents.segments());
        let mut here = SegmentSet::new(contents.total());
        let mut memory = Memory {
            size: contents.segment_size as usize,
            ..Memory::default()
        };
        for number in &self.here {
            let (offset, length) = contents.span(*number);
            let octets = (offset..offset + length as u64).map(octet).collect();
            memory.segments.insert(*number, octets);
            here.insert(*number);
        }
        for (number, content) in &self.received {
            memory.segments.insert(*number, content.to_vec());
            here.insert(*number);
        }
        if let Some(coding) = contents.coding {
            for index in 0..coding.blocks(segments) {
                let block = coding.block(segments, index);
                coding
                    .decode(block, memory.size, (&here, &mut memory))
                    .unwrap();
            }
        }
        for number in 0..segments {
            let (offset, length) = contents.span(number);
            let expected: Vec<u8> = (offset..offset + length as u64).map(octet).collect();
            assert!(
                memory.segments[&number][..length] == expected,
                "segment {number}"
            );
        }
        self.receiver.finish(self.now);
        self.until(|event| *event == ReceiverEvent::Reported);
        assert_eq!(self.sender.complete(), 1);
    }
}

/// The chunks that a frame without a packet announces.
fn chunks(frame: &Bytes) -> Option<ChunksHad> {
    let packet = LpPacket::decode(frame.clone()).ok()?;
    let value = packet.extensions.get(Extensions::CHUNKS_HAD)?;
    ChunksHad::decode(&Bytes::copy_from_slice(value))
}

fn segment(number: u64) -> Interest {
    let name: Name = format!("/files/a/v=7/seg={number}").parse().unwrap();
    Interest::builder(name).build(Nonce([1; 4]))
}

/// Each segment leaves once, none by name, and no parity is made.
#[test]
fn any_next_segments_make_the_object() {
    let mut case = Case::new(1_000_000);
    case.coding = Some(Coding::of(265, 3));
    let mut pair = Pair::new(case);
    pair.finish();
    // No request is left over, for which parity would be made.
    (0..1_000).for_each(|_| pair.tick());
    let counters = *pair.sender.counters();
    assert_eq!((counters.provided, counters.parity), (265, 0));
    assert_eq!(pair.receiver.counters().duplicates, 0);
}

/// A fifth of the Data is lost, and the receiver requests the missing segments by name.
#[test]
fn lost_segments_are_repaired_by_name() {
    for loss in [0.01, 0.2] {
        let mut case = Case::new(1_000_000);
        case.loss = loss;
        let mut pair = Pair::new(case);
        pair.finish();
        assert!(pair.sender.counters().answered > 0);
    }
}

/// Where a fifth is lost, parity makes up for it, by any next segments alone; a hundredth is requested by name.
#[test]
fn parity_is_made_only_where_much_is_missing() {
    for (loss, needs_parity) in [(0.01, false), (0.2, true)] {
        let mut case = Case::new(1_000_000);
        case.coding = Some(Coding::of(265, 3));
        case.loss = loss;
        let mut pair = Pair::new(case);
        pair.finish();
        let counters = *pair.sender.counters();
        assert_eq!(counters.parity > 0, needs_parity, "{counters:?}");
        assert!(counters.provided < 400, "{counters:?}");
    }
}

#[test]
fn segments_are_requested_by_name_where_nothing_else_is_wanted() {
    let mut case = Case::new(500_000);
    case.any_next = false;
    case.coding = Some(Coding {
        block: 50,
        parity: 150,
    });
    let mut pair = Pair::new(case);
    pair.finish();
    assert_eq!(pair.sender.counters().provided, 0);
}

/// Of 133 segments 100 are here, among them parity: 33 are requested, by name, each once.
#[test]
fn a_resumed_receiver_requests_what_it_lacks() {
    let mut case = Case::new(500_000);
    case.here = (20..120).collect();
    let mut pair = Pair::new(case);
    pair.finish();
    assert_eq!(
        (pair.sender.counters().provided, pair.received.len()),
        (0, 33)
    );
}

#[test]
fn an_empty_object_comes_through() {
    Pair::new(Case::new(0)).finish();
}

/// Without the ticket, nothing of table and content shows.
#[test]
fn a_private_object_needs_its_key() {
    let key = ContentKey::new([5; 32]);
    let mut case = Case::new(100_000);
    case.key = Some(key.clone());
    case.coding = Some(Coding::of(27, 3));
    case.loss = 0.3;
    let mut pair = Pair::new(case);
    let mut stranger = Pair::new(Case::new(100_000));
    core::mem::swap(&mut stranger.receiver, &mut pair.receiver);
    let failed = |event: &ReceiverEvent| matches!(event, ReceiverEvent::Failed(_));
    assert_eq!(pair.until(failed), ReceiverEvent::Failed(Refused::Sealed));
    assert_eq!(
        stranger.until(failed),
        ReceiverEvent::Failed(Refused::NotSealed)
    );
    let mut case = Case::new(100_000);
    case.key = Some(key);
    case.coding = Some(Coding::of(27, 3));
    case.loss = 0.3;
    Pair::new(case).finish();
}

/// The sender ends when a file changes under it; the receiver hears that the version is gone.
#[test]
fn a_file_that_changes_ends_both() {
    let mut pair = Pair::new(Case::new(10_000_000));
    pair.until(|event| matches!(event, ReceiverEvent::Contents(..)));
    (0..20).for_each(|_| pair.tick());
    assert!(pair.received.len() < 1_000);
    pair.memory.lock().unwrap().is_broken = true;
    let gone = ReceiverEvent::Failed(Refused::Gone);
    assert_eq!(pair.until(|event| *event == gone), gone);
}

/// The version follows from the content, not from the time: another sender of the same content goes on.
#[test]
fn a_sender_that_is_started_again_goes_on() {
    let mut pair = Pair::new(Case::new(1_000_000));
    while pair.received.len() < 100 {
        pair.tick();
    }
    let again = Pair::new(Case::new(1_000_000));
    pair.sender = again.sender;
    pair.to_receiver.clear();
    pair.finish();
}

/// What tools of others request: the newest segment by prefix, the name with the version, segments, and nothing behind the end.
#[test]
fn other_tools_find_the_object() {
    let mut pair = Pair::new(Case::new(10_000));
    let at = now(pair.now);
    let mut ask = |name: &str, is_prefix: bool| {
        let interest = Interest::builder(name.parse().unwrap()).must_be_fresh();
        let interest = match is_prefix {
            true => interest.can_be_prefix(),
            false => interest,
        };
        let frame = interest.build(Nonce([1; 4])).wire().clone();
        pair.sender.handle_frame(at, frame);
        let Some(Output::Send(frame)) = pair.sender.poll_output() else {
            panic!("no answer for {name}");
        };
        let link = LpPacket::decode(frame).unwrap();
        match (Packet::decode(link.fragment.unwrap()).unwrap(), link.nack) {
            (Packet::Data(data), None) => Some(data),
            _ => None,
        }
    };
    let first = ask("/files/a", true).unwrap();
    assert_eq!(first.name().to_string(), "/files/a/v=7/seg=0");
    let last = first.final_block().unwrap().last().unwrap();
    assert_eq!(last.number_of(Component::SEGMENT), Some(2));
    let metadata: Data = ask("/files/a/32=metadata", true).unwrap();
    let named = Name::decode(&metadata.content().unwrap()).unwrap();
    assert_eq!(named.to_string(), "/files/a/v=7");
    assert_eq!(
        ask("/files/a/v=7/seg=1", false)
            .unwrap()
            .content()
            .unwrap()
            .len(),
        3_776
    );
    assert!(ask("/files/a/KEY", true).is_some());
    for nothing in ["/files/a/v=7/seg=3", "/files/a/v=8/seg=0", "/files/a/b"] {
        assert!(ask(nothing, false).is_none(), "{nothing}");
    }
}

/// Requests for any next of other names, fields and reports that break the format, and packets that are none.
#[test]
fn bad_input_is_counted() {
    let mut pair = Pair::new(Case::new(10_000));
    let at = now(pair.now);
    let mut random = Random::from_seed(4);
    for length in 0..200 {
        let mut frame = vec![0; length];
        random.fill(&mut frame);
        pair.sender.handle_frame(at, frame.clone().into());
        let name: Name = "/files/a/v=7".parse().unwrap();
        let interest = Interest::builder(name)
            .parameters(frame.clone())
            .build(Nonce([1; 4]));
        let mut fields = Extensions::default();
        fields.set(Extensions::ANY_NEXT, frame);
        let wrapped = LpPacket::wrapped(interest.wire().clone(), &fields);
        pair.sender.handle_frame(at, wrapped.clone());
        pair.receiver.handle_frame(at, wrapped);
        while pair.sender.poll_output().is_some() {}
    }
    assert!(pair.sender.counters().malformed >= 200);
    pair.finish();
}

/// 1000 segments of 3776 octets over a link of 8 Mbit/s without marks, which takes 4 s with headers. Before the first report nobody
/// acknowledges, so the sender sends as asked.
#[test]
fn a_sender_keeps_the_pace_of_the_slowest_receiver() {
    let [as_asked, slowest] = [Policy::AsAsked, Policy::Quantile(0.0)].map(|policy| {
        let mut pair = Pair::new(Case {
            rate: Some(Bitrate::mbps(8)),
            policy,
            coding: Some(Coding::of(1_000, 1)),
            ..Case::new(3_776_000)
        });
        let begun = pair.now;
        pair.until(|event| *event == ReceiverEvent::Enough);
        (pair.now.since(begun), pair.sender.counters().provided)
    });
    assert!(as_asked.1 > 2_000, "most of it is lost: {as_asked:?}");
    assert!(slowest.1 < 1_050, "{slowest:?}");
    assert!(slowest.0 < Duration::from_millis(4_400), "{slowest:?}");
}

/// Whole chunks are announced, and neighbours get each segment octet for octet as the sender signed it, also a sealed one, and after the
/// receiver has reported that all is here. What is kept and was changed since is refused.
#[test]
fn neighbours_get_what_the_sender_signed() {
    for key in [None, Some(ContentKey::new([5; 32]))] {
        let mut case = Case::new(1_000_000);
        case.key = key;
        let mut pair = Pair::new(case);
        while pair.received.len() < 150 {
            pair.tick();
        }
        assert_eq!(pair.announced, [(0, 0)]);
        let nack = pair.tell(segment(264).wire().clone()).remove(0);
        assert_eq!(nack.nack, Some(NackReason::NoRoute), "it has not come");
        pair.finish();
        (0..600).for_each(|_| pair.tick());
        assert_eq!(pair.announced, [(0, 2)], "the last chunk is shorter");
        for number in [0, 7, 264] {
            let interest = segment(number).wire().clone();
            let answer = pair.tell(interest.clone()).remove(0);
            pair.sender.handle_frame(now(pair.now), interest);
            let Some(Output::Send(signed)) = pair.sender.poll_output() else {
                panic!("no answer of the sender");
            };
            assert_eq!(answer, LpPacket::decode(signed).unwrap(), "{number}");
        }
        assert_eq!(pair.receiver.counters().served, 3);
        pair.kept.0.lock().unwrap().get_mut(&7).unwrap().0 = vec![0; 3_776].into();
        let nack = pair.tell(segment(7).wire().clone()).remove(0);
        assert_eq!(nack.nack, Some(NackReason::NoRoute));
    }
}

/// A fifth of the Data is lost. Of neighbours, which have all, the receiver gets what passed it, at once, and the rest at the end: of
/// parity no more than a window leaves. Here the sender answers for neighbours.
#[test]
fn what_neighbours_have_is_requested_there_and_not_as_parity() {
    let mut case = Case::new(1_000_000);
    case.coding = Some(Coding::of(265, 3));
    case.loss = 0.2;
    let mut pair = Pair::new(case);
    while pair.received.len() < 20 {
        pair.tick();
    }
    assert_eq!(pair.sender.counters().answered, 0);
    pair.announce(&[(0, 2)]);
    pair.until(|event| *event == ReceiverEvent::Enough);
    let (sender, receiver) = (*pair.sender.counters(), pair.receiver.counters());
    assert!(sender.parity < 64, "{sender:?}");
    // Their window begins with two, and each loss halves it.
    assert!(receiver.from_neighbours >= 5, "{receiver:?}");
    assert!(sender.answered < 90, "{sender:?}");
    pair.finish_after_enough();
}

/// A neighbour that sends back what it has announced does not tell a receiver that the version is gone.
#[test]
fn a_refusal_of_a_neighbour_ends_nothing() {
    let mut case = Case::new(1_000_000);
    case.loss = 0.2;
    let mut pair = Pair::new(case);
    while pair.received.len() < 50 {
        pair.tick();
    }
    pair.announce(&[(0, 2)]);
    pair.tick();
    let asked: Vec<_> = (pair.to_sender.iter())
        .filter_map(|(_, frame)| Interest::decode(frame.clone()).ok())
        .filter(|it| it.name().to_string().contains("/seg="))
        .collect();
    assert_eq!(asked.len(), 2, "the window at the start");
    pair.to_sender.clear();
    for interest in asked {
        let nack = face::refusal(&interest, None, NackReason::None);
        pair.tell(nack);
    }
    pair.finish();
}

/// Takes the Interests for segments that are on their way to the sender.
fn asked_for(pair: &mut Pair) -> Vec<Interest> {
    (pair.to_sender.drain(..))
        .filter_map(|(_, frame)| Interest::decode(frame).ok())
        .filter(|it| it.name().to_string().contains("/seg="))
        .collect()
}

/// A forgery is requested again past caches and neighbours; after four of them, so is all.
#[test]
fn forgeries_are_passed_by() {
    let mut case = Case::new(1_000_000);
    case.any_next = false;
    let mut pair = Pair::new(case);
    pair.until(|event| matches!(event, ReceiverEvent::Contents(..)));
    let mut asked = asked_for(&mut pair);
    while asked.len() < 5 {
        pair.tick();
        asked.extend(asked_for(&mut pair));
    }
    for (number, interest) in asked.iter().enumerate().take(5) {
        assert!(!interest.must_be_fresh());
        let forged = Data::builder(interest.name().clone()).freshness(Duration::from_secs(9));
        let forged = forged.content(vec![0; 3_776]).sign(&NullSigner);
        pair.to_receiver
            .push_front((pair.now, forged.wire().clone()));
        let mut again = Vec::new();
        while again
            .iter()
            .all(|it: &Interest| it.name() != interest.name())
        {
            pair.tick();
            again.extend(asked_for(&mut pair));
        }
        let same = again.iter().find(|it| it.name() == interest.name());
        assert!(same.is_some_and(Interest::must_be_fresh), "{number}");
        assert!(number < 3 || again.iter().all(Interest::must_be_fresh));
    }
    assert_eq!(pair.receiver.counters().forged, 5);
}
