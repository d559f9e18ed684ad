//! Forgery, damage, silence, and links that break.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use namecast_apps::Output;
use namecast_apps::live::watcher::{Event, Refusal, Verdict, Watcher, WatcherConfig};
use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{
    Certificate, ContentType, Data, KeyLocator, LpPacket, Packet, lp::NackReason,
};
use namecast_stream::{Catalogue, Lead, Metadata, StreamKind};
use namecast_units::{Instant, Random};

use crate::world::{Show, WALL, World, at, key_digest, ms, signer};

fn data_in(packet: &Bytes) -> Option<Data> {
    match Packet::decode(packet.clone()) {
        Ok(Packet::Data(data)) => Some(data),
        _ => None,
    }
}

/// Flips one bit of the last octet of the Content.
fn damaged(data: &Data) -> Bytes {
    let mut wire = data.wire().to_vec();
    let content = data.content().unwrap();
    let at = wire
        .windows(content.len())
        .position(|w| w == content)
        .unwrap();
    wire[at + content.len() - 1] ^= 1;
    wire.into()
}

/// Every fortieth segment comes with a flipped bit, the first time it is sent.
#[test]
fn damaged_segments_never_come_out_and_are_asked_for_past_the_caches() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(1_000));
    let mut count = 0;
    world.tamper = Some(Box::new(move |_, packet| {
        count += 1;
        match data_in(&packet) {
            Some(data) if count % 40 == 0 && data.name().len() == 7 => Some(damaged(&data)),
            _ => Some(packet),
        }
    }));
    world.run_until(at(11_000));
    // Checks every octet.
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let share = world.share_in_time(peer, 40, 320);
    assert!(share > 0.995, "{share}");
    let stats = world.peers[peer].watcher.stats(world.now);
    let failures = stats.verification_failures;
    assert!((30..=80).contains(&failures), "{failures}");
    assert_eq!(stats.video.unwrap().verification_failures, failures);
    let again = world.peers[peer].fresh.iter();
    let again = again.filter(|name| name.len() == 7).count() as u64;
    assert!(again >= failures * 9 / 10, "{again} of {failures}");
}

/// A forger answers first: with leads of its own key and right digests for its own followers.
#[test]
fn forged_leads_never_come_out() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(1_000));
    let mut random = Random::from_seed(3);
    world.tamper = Some(Box::new(move |_, packet| {
        let Some(data) = data_in(&packet) else {
            return Some(packet);
        };
        let is_lead = data.name().len() == 7 && Lead::decode(&data).is_ok();
        if is_lead && random.chance(0.1) {
            let forged = Data::builder(data.name().clone())
                .content(data.content().unwrap())
                .sign(&signer(99));
            return Some(forged.wire().clone());
        }
        Some(packet)
    }));
    world.run_until(at(11_000));
    World::assert_decodable(&world.frames(peer, StreamKind::Video));
    let share = world.share_in_time(peer, 40, 320);
    assert!(share > 0.98, "{share}");
    let failures = world.peers[peer]
        .watcher
        .stats(world.now)
        .verification_failures;
    assert!((15..=60).contains(&failures), "{failures}");
}

/// The first metadata is forged, in the name of the right key: nothing of it is accepted once the key is here.
#[test]
fn forged_metadata_counts_for_nothing() {
    let mut world = World::new(Show::default());
    let mut is_first = true;
    world.tamper = Some(Box::new(move |_, packet| {
        let data = data_in(&packet).unwrap();
        let metadata = data.content().and_then(|c| Metadata::decode(&c).ok());
        let Some(metadata) = metadata.filter(|_| core::mem::take(&mut is_first)) else {
            return Some(packet);
        };
        let catalogue = Catalogue::decode(&metadata.catalogue.clone().unwrap()).unwrap();
        let lie = Catalogue {
            version: 1,
            starts: Default::default(),
            ..catalogue
        };
        let lie = Metadata {
            catalogue_name: "/demo/catalogue/v=1".parse().unwrap(),
            catalogue: Some(lie.encode().unwrap().into()),
            ..metadata
        };
        let key = KeyLocator::Name("/demo/KEY/k7".parse().unwrap());
        let forged = Data::builder(data.name().clone())
            .content(lie.encode())
            .sign(&Ed25519Signer::from_seed([99; 32], key));
        Some(forged.wire().clone())
    }));
    let peer = world.join(World::config());
    world.run_until(at(2_000));
    let told = |event: &Event| match event {
        Event::Catalogue { version } => Some(*version),
        _ => None,
    };
    let versions = world.peers[peer].events.iter().filter_map(|(_, e)| told(e));
    assert_eq!(versions.collect::<Vec<_>>(), [WALL.as_micros()]);
    let stats = world.peers[peer].watcher.stats(world.now);
    assert!(stats.verification_failures >= 1);
    assert!(world.peers[peer].frames.len() > 40);
}

/// The first certificate does not verify with its own key: it is refused, and fetched past the caches.
#[test]
fn a_damaged_certificate_is_not_trusted() {
    let mut world = World::new(Show::default());
    let mut is_first = true;
    world.tamper = Some(Box::new(move |_, packet| {
        let is_certificate = data_in(&packet).is_some_and(|d| d.content_type() == ContentType::Key);
        if is_certificate && core::mem::take(&mut is_first) {
            let mut wire = packet.to_vec();
            *wire.last_mut().unwrap() ^= 1;
            return Some(wire.into());
        }
        Some(packet)
    }));
    let peer = world.join(World::config());
    world.run_until(at(4_000));
    let verdicts: Vec<_> = world.peers[peer]
        .signers
        .iter()
        .map(|s| &s.verdict)
        .collect();
    let expected = [
        &Verdict::Refused(Refusal::BadCertificate),
        &Verdict::FirstUse,
    ];
    assert_eq!(verdicts, expected);
    let certificates = world.peers[peer].fresh.iter();
    assert!(
        certificates
            .filter(|name| name.to_string() == "/demo/KEY/k7")
            .count()
            == 1
    );
    assert!(world.peers[peer].frames.len() > 30);
}

/// The first certificate is the forger's own, under the name of the right key. It is not kept as the first that was seen,
/// which would shut the right one out: the next one is requested past the caches, and plays.
#[test]
fn a_forged_certificate_does_not_shut_the_right_one_out() {
    let mut world = World::new(Show::default());
    let mut is_first = true;
    world.tamper = Some(Box::new(move |_, packet| {
        let data = data_in(&packet).filter(|data| data.content_type() == ContentType::Key);
        let Some(data) = data.filter(|_| core::mem::take(&mut is_first)) else {
            return Some(packet);
        };
        let right = Certificate::decode(data).unwrap();
        let locator = KeyLocator::Name(right.key_name());
        let forger = Ed25519Signer::from_seed([99; 32], locator);
        let (identity, validity) = (right.identity(), right.validity());
        let forged = Certificate::self_signed(&identity, b"k7", 1, validity, &forger);
        Some(forged.data().wire().clone())
    }));
    let peer = world.join(World::config());
    world.run_until(at(4_000));
    let peer = &world.peers[peer];
    let signers: Vec<_> = peer
        .signers
        .iter()
        .map(|signer| (signer.key_digest == key_digest(7), signer.verdict.clone()))
        .collect();
    let expected = [
        (false, Verdict::FirstUse),
        (false, Verdict::Refused(Refusal::NotSigner)),
        (true, Verdict::FirstUse),
    ];
    assert_eq!(signers, expected);
    assert!(peer.frames.len() > 30);
}

/// With a forger who always wins, nothing is shown, nothing grows, and the network is not flooded.
#[test]
fn a_forger_who_always_wins_shows_nothing() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(2_000));
    let before = world.peers[peer].frames.len();
    world.tamper = Some(Box::new(|_, packet| {
        let data = data_in(&packet)?;
        Some(damaged(&data))
    }));
    let interests = world.peers[peer].interests;
    world.run_until(at(12_000));
    assert!(world.peers[peer].frames.len() <= before + 4);
    let sent = world.peers[peer].interests - interests;
    assert!(sent < 3_000, "{sent}");
    let sizes = world.peers[peer].watcher.table_sizes();
    assert!(sizes.consumers.samples < 100, "{sizes:?}");
    world.tamper = None;
    world.run_until(at(15_000));
    let last = world.peers[peer].frames.last().unwrap();
    assert!(last.0 > at(14_900) && !last.1.late, "plays again");
}

#[test]
fn a_silent_publisher_is_waited_for() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(3_000));
    world.silent = true;
    world.run_until(at(8_000));
    let interests = world.peers[peer].interests;
    let before = world.peers[peer].frames.len();
    world.run_until(at(8_500));
    assert!(
        world.peers[peer].interests - interests < 60,
        "no storm while waiting"
    );
    world.silent = false;
    world.run_until(at(10_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let first = frames[before].0;
    assert!(first < at(8_500 + 200), "{first}");
    let live = frames
        .iter()
        .filter(|(t, f)| *t > at(8_700) && *t <= f.render_at);
    assert!(live.count() >= 35);
    let events: Vec<_> = world.peers[peer].events.iter().map(|(_, e)| e).collect();
    assert!(events.contains(&&Event::Starved) && events.contains(&&Event::Recovered));
}

/// Nothing passes for five seconds; then playback is live again, and what was missed is not played.
#[test]
fn a_cut_of_five_seconds_ends_at_the_live_edge() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(3_000));
    world.cut = true;
    world.run_until(at(8_000));
    let before = world.peers[peer].frames.len();
    world.cut = false;
    let now = world.now;
    world.peers[peer].watcher.handle_link_change(now);
    world.run_until(at(10_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let live = frames[before..].iter().find(|(t, f)| *t <= f.render_at);
    let live = live.expect("live again").0;
    assert!(live < at(8_400), "{live}");
    // Missed: about 150 frames. Played late: at most what catching up from a key frame needs.
    let late = frames[before..].iter().filter(|(t, f)| *t > f.render_at);
    assert!(late.count() <= 45);
    assert!(!world.peers[peer].resets.is_empty());
}

/// Nobody calls the watcher for a minute. When somebody does, it is live within a second.
#[test]
fn after_a_minute_asleep_playback_is_live_within_a_second() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(3_000));
    world.peers[peer].asleep = true;
    world.run_until(at(63_000));
    world.peers[peer].asleep = false;
    let before = world.peers[peer].frames.len();
    world.run_until(at(64_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let live = frames[before..].iter().find(|(t, f)| *t <= f.render_at);
    assert!(live.expect("live again").0 < at(63_500));
    assert!(frames.len() - before <= 75, "{}", frames.len() - before);
    let sizes = world.peers[peer].watcher.table_sizes();
    assert!(sizes.consumers.samples < 30, "{sizes:?}");
}

/// One frame is lost for good: playback waits for the tolerance and goes on at the next key frame.
#[test]
fn a_frame_that_never_comes_is_skipped_to_the_next_key_frame() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    let victim = |data: &Data| Lead::decode(data).is_ok_and(|l| l.header().position == 70);
    world.tamper = Some(Box::new(move |_, packet| {
        let lost = data_in(&packet).is_some_and(|d| d.name().len() == 7 && victim(&d));
        (!lost).then_some(packet)
    }));
    world.run_until(at(6_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let positions: Vec<_> = frames.iter().map(|(_, f)| f.position).collect();
    assert!(positions.contains(&69) && positions.contains(&90));
    assert!(positions.iter().all(|p| !(70..90).contains(p)));
    let key = frames.iter().find(|(_, f)| f.position == 90).unwrap();
    assert!(key.0 <= key.1.render_at);
    let video = world.peers[peer].watcher.stats(world.now).video.unwrap();
    assert_eq!((video.lost, video.skips), (20, 1));
    assert_eq!(world.peers[peer].resets.len(), 1);
}

#[test]
fn after_a_decoder_error_the_next_frame_is_a_key_frame() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(3_500));
    let before = world.peers[peer].frames.len();
    let now = world.now;
    world.peers[peer]
        .watcher
        .handle_decoder_error(now, StreamKind::Video);
    world.run_until(at(6_000));
    let frames = &world.peers[peer].frames;
    assert!(frames[before].1.key);
    assert_eq!(frames[before].1.position, 120);
    assert!(frames[before].0 <= frames[before].1.render_at);
    let resets: Vec<_> = world.peers[peer].resets.iter().map(|(_, s)| *s).collect();
    assert_eq!(resets, [StreamKind::Video]);
    let stats = world.peers[peer].watcher.stats(world.now);
    assert_eq!(stats.video.unwrap().decoder_errors, 1);
}

/// Each way becomes 200 ms longer, RTT 50 → 450 ms, more than target and timeouts. The clock moves, and λ grows with it:
/// most frames are in time again a second and three quarters later, and all after three (the first gap returns once a round
/// trip, smaller each time).
#[test]
fn a_longer_path_moves_the_clock() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(5_000));
    world.delay = ms(225);
    world.run_until(at(10_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let in_time = |from: u64, to: u64| {
        let frames = frames
            .iter()
            .filter(|(t, _)| (at(from)..at(to)).contains(t));
        let (all, in_time) = frames.fold((0, 0), |(all, good), (t, f)| {
            (all + 1, good + usize::from(*t <= f.render_at))
        });
        assert!(all as u64 >= (to - from) * 30 / 1_000 - 2, "{all}");
        in_time as f64 / all as f64
    };
    let (soon, later) = (in_time(6_750, 8_000), in_time(8_100, 10_000));
    assert!(soon > 0.7, "{soon}");
    assert!(later > 0.999, "{later}");
    let stats = world.peers[peer].watcher.stats(world.now);
    let rtt = stats.rtt_ms.unwrap();
    assert!((445.0..=455.0).contains(&rtt), "{rtt}");
    // By how much Interests were late meanwhile is remembered for ten seconds; then ⌈455 / 33.3⌉ are enough.
    let lead = stats.video.unwrap().interest_lead;
    assert!((14..=30).contains(&lead), "{lead}");
    world.run_until(at(18_000));
    let stats = world.peers[peer].watcher.stats(world.now);
    assert_eq!(stats.video.unwrap().interest_lead, 14);
}

#[test]
fn the_publishers_clock_may_jump() {
    for skew in [3_600_000_000, -3_600_000_000] {
        let mut world = World::new(Show::default());
        let peer = world.join(World::config());
        world.run_until(at(5_000));
        world.skew = skew;
        world.run_until(at(10_000));
        let frames = world.frames(peer, StreamKind::Video);
        World::assert_decodable(&frames);
        let live = frames
            .iter()
            .filter(|(t, f)| *t > at(7_000) && *t <= f.render_at && f.render_at < at(10_500));
        assert!(live.clone().count() >= 85, "{skew}: {}", live.count());
    }
}

#[test]
fn nacks_are_counted_and_asked_again() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(2_000));
    let name = "/demo/video/1M/delta/seq=0/data/seg=0".parse().unwrap();
    let unasked = namecast_packet::Interest::builder(name).build(crate::world::nonce());
    let nack = LpPacket {
        nack: Some(NackReason::NoRoute),
        ..LpPacket::carrying(unasked.wire().clone())
    };
    world.inject(peer, nack.encode());
    world.run_until(at(3_000));
    assert_eq!(
        world.peers[peer].watcher.stats(world.now).interests_nacked,
        0
    );
}

/// Whatever arrives: no panic, nothing kept, playback goes on.
#[test]
fn garbage_harms_nothing() {
    let mut world = World::new(Show::default());
    let peer = world.join(WatcherConfig {
        target: ms(150),
        ..World::config()
    });
    let mut random = Random::from_seed(5);
    world.tamper = Some(Box::new(move |now, packet| {
        if now < at(1_000) || !random.chance(0.05) {
            return Some(packet);
        }
        let mut octets = packet.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(octets.len() as u64) as usize;
            octets[at] = random.next_u64() as u8;
        }
        if random.chance(0.2) {
            octets.truncate(random.below(octets.len() as u64) as usize);
        }
        Some(octets.into())
    }));
    world.run_until(at(12_000));
    World::assert_decodable(&world.frames(peer, StreamKind::Video));
    let share = world.share_in_time(peer, 40, 340);
    assert!(share > 0.97, "{share}");
    let now = Instant::ZERO;
    let mut random = Random::from_seed(6);
    for _ in 0..2_000 {
        let mut octets = vec![0; random.below(60) as usize];
        random.fill(&mut octets);
        world.peers[peer].watcher.handle_packet(now, octets.into());
    }
}

/// A metadata answer is held up until the stream is starved, and tells of a key frame before the one that is playing: playback
/// begins again, but with nothing that was shown, which the world sees to.
#[test]
fn metadata_from_the_past_shows_nothing_twice() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(5_500));
    let held = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&held);
    world.tamper = Some(Box::new(move |_, packet| {
        let metadata = |data: &Data| data.name().to_string().contains("metadata");
        if data_in(&packet).is_some_and(|data| metadata(&data)) {
            keep.borrow_mut().get_or_insert(packet);
            return None;
        }
        Some(packet)
    }));
    world.run_until(at(7_300));
    world.silent = true;
    world.run_until(at(8_200));
    let packet = held
        .borrow_mut()
        .take()
        .expect("probed once in two seconds");
    let metadata = data_in(&packet).and_then(|data| data.content());
    let metadata = Metadata::decode(&metadata.unwrap()).unwrap();
    assert_eq!(metadata.latest[0].key_position, Some(180));
    let shown = world.peers[peer].frames.last().unwrap().1.position;
    assert!((215..225).contains(&shown), "{shown}");
    world.tamper = None;
    world.inject(peer, packet);
    world.silent = false;
    world.run_until(at(11_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let rejoined = |(_, event): &(Instant, Event)| matches!(event, Event::Rejoining(_));
    assert!(world.peers[peer].events.iter().any(rejoined));
    let last = frames.last().unwrap();
    assert!(last.0 > at(10_900) && !last.1.late, "plays again");
}

/// The publisher is started again, and while the new run plays, an answer of the old one comes again.
#[test]
fn an_old_run_that_is_heard_of_again_shows_nothing_twice() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(5_400));
    let old = world.publisher.take();
    world.run_until(at(6_000));
    world.start_publisher(7);
    world.run_until(at(9_300));
    // Two publishers of one name, of which now the one and now the other is heard.
    let new = core::mem::replace(&mut world.publisher, old);
    world.run_until(at(9_900));
    world.publisher = new;
    world.run_until(at(14_000));
    let rejoined = |(_, event): &&(Instant, Event)| matches!(event, Event::Rejoining(_));
    let rejoins = world.peers[peer].events.iter().filter(rejoined).count();
    assert!(rejoins >= 1, "{rejoins}");
    let last = world.peers[peer].frames.last().unwrap();
    assert!(last.0 > at(13_900) && !last.1.late, "plays again");
}

/// Times in ms at which a watcher that nobody answers requests metadata within `span` ms, its transport coming back
/// `often` times a millisecond.
fn probes_into_silence(span: u64, often: u64) -> Vec<u64> {
    let mut watcher = Watcher::new(World::config());
    let mut sent = Vec::new();
    for now in 0..span {
        watcher.handle_timeout(at(now));
        for _ in 0..often {
            watcher.handle_link_change(at(now));
        }
        while let Some(output) = watcher.poll_output() {
            sent.extend(matches!(output, Output::Send(_)).then_some(now));
        }
    }
    sent
}

/// Nothing but metadata is asked for until it is here: at once, every 250 ms for 8 times, then half as often after each
/// 8 that stay without an answer, down to once in 2 s.
#[test]
fn a_watcher_that_nobody_answers_asks_less_and_less_often() {
    let sent = probes_into_silence(60_000, 0);
    let waits: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(sent[0], 0);
    assert_eq!(waits[..8], [250; 8]);
    assert_eq!(waits[8..16], [500; 8]);
    assert_eq!(waits[16..24], [1_000; 8]);
    assert!(waits[24..].iter().all(|wait| *wait == 2_000), "{waits:?}");
    assert!((45..=50).contains(&sent.len()), "{}", sent.len());
}

/// A transport that comes and goes, and whatever else wants to know at once, never makes two of less than 100 ms.
#[test]
fn metadata_is_asked_for_at_most_once_in_100_ms() {
    let sent = probes_into_silence(10_000, 50);
    let shortest = sent.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert_eq!(shortest, Some(100));
    assert_eq!(sent.len(), 100);
}
