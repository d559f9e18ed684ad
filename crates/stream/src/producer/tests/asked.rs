//! Interests for segments: which are held, for how long, and when they are answered.

use super::*;

#[test]
fn an_early_interest_is_answered_the_moment_the_sample_exists() {
    let mut desk = Desk::signed(ProducerConfig::default(), Box::new(ed25519()));
    desk.ask(LEAD);
    let nonce = Nonce::from(desk.nonce);
    desk.advance(30);
    desk.ask(LEAD);
    assert!(desk.output().is_empty());
    assert_eq!(
        desk.producer.poll_timeout(),
        Some(Instant::ZERO + Duration::from_secs(1))
    );
    desk.advance(60);
    desk.publish(SampleClass::Key, FIRST, 100);
    // One Data for both, which names the one that waited longest.
    let [data] = &desk.output()[..] else {
        panic!("not one packet");
    };
    assert_eq!(data.name().to_string(), LEAD);
    assert_eq!(data.verify(&ed25519().public_key()), Ok(()));
    let lead = Lead::decode(data).unwrap();
    let waited_for = Duration::from_millis(90);
    assert_eq!(lead.header().asked, Some(Asked { waited_for, nonce }));
    let counters = desk.producer.counters();
    assert_eq!(
        (counters.answered_after_waiting, counters.data_sent),
        (2, 1)
    );
    assert_eq!(
        (desk.producer.pending(), desk.producer.poll_timeout()),
        (0, None)
    );
    desk.check_balance();
}

#[test]
fn a_published_segment_is_answered_at_once_fresh_or_not() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.publish(SampleClass::Key, FIRST, 2_500);
    assert!(desk.output().is_empty(), "nobody asked");
    let names = [
        LEAD,
        "/demo/video/1M/key/seq=1000/data/seg=2",
        "/demo/video/1M/key/seq=1000/parity/seg=0",
    ];
    for name in names {
        desk.ask(name);
    }
    let fresh = desk.interest(LEAD).must_be_fresh();
    desk.send(fresh);
    assert_eq!(desk.names(), [names[0], names[1], names[2], LEAD]);
    let counters = desk.producer.counters();
    assert_eq!((counters.answered_at_once, counters.data_sent), (4, 4));
    assert_eq!((counters.data_segments, counters.parity_segments), (3, 2));
}

#[test]
fn what_a_published_sample_turns_out_not_to_have_is_given_up() {
    let mut desk = Desk::new(ProducerConfig::default());
    for kind in ["data", "parity"] {
        for segment in 0..4 {
            desk.ask(&format!("/demo/video/1M/key/seq=1000/{kind}/seg={segment}"));
        }
    }
    desk.ask("/demo/video/1M/key/seq=1001/data/seg=0");
    desk.ask("/demo/video/1M/delta/seq=1000/data/seg=0");
    // Three data segments, two parity: of eight held, five are answered.
    desk.publish(SampleClass::Key, FIRST, 2_500);
    assert_eq!(desk.output().len(), 5);
    assert_eq!(desk.dropped(DropReason::NoSuchSegment), 3);
    assert_eq!(desk.producer.pending(), 2);
    desk.ask("/demo/video/1M/key/seq=1000/data/seg=3");
    desk.ask("/demo/video/1M/key/seq=1003/data/seg=480");
    assert_eq!(desk.dropped(DropReason::NoSuchSegment), 5);
    desk.check_balance();
}

/// A copy has the lead's Content under a name and with a signature of its own, and is signed once. It may be waited for.
#[test]
fn copies_of_a_lead_are_made_when_asked_for() {
    let mut desk = Desk::new(ProducerConfig::default());
    let copy = |index: u64| format!("/demo/video/1M/key/seq=1000/lead/seg={index}");
    desk.ask(&copy(1));
    desk.publish(SampleClass::Key, FIRST, 2_500);
    desk.ask(LEAD);
    desk.ask(&copy(1));
    desk.ask(&copy(3));
    let answers = desk.output();
    let contents: Vec<_> = answers.iter().map(|data| data.content()).collect();
    assert_eq!(contents, vec![contents[0].clone(); 4]);
    assert_eq!(answers[0], answers[2]);
    assert_ne!(answers[0].name(), answers[3].name());
    assert_eq!(desk.producer.counters().lead_copies, 2);
    let size = desk.producer.cache_size();
    desk.ask(&copy(2));
    assert!(desk.producer.cache_size() > size, "copies take memory");
    desk.ask(&copy(4));
    assert_eq!(desk.dropped(DropReason::NoSuchSegment), 1);
    desk.check_balance();
}

#[test]
fn an_interest_is_held_for_its_lifetime_but_no_longer_than_the_cap() {
    let config = ProducerConfig {
        max_lifetime: Duration::from_millis(1_500),
        ..ProducerConfig::default()
    };
    let mut desk = Desk::new(config);
    desk.ask(LEAD);
    let long = desk.interest(LEAD).lifetime(Duration::from_secs(60));
    desk.send(long);
    desk.advance(999);
    desk.producer.handle_timeout(desk.now);
    assert_eq!(desk.producer.pending(), 2);
    desk.advance(1);
    desk.producer.handle_timeout(desk.now);
    assert_eq!(
        (desk.producer.pending(), desk.dropped(DropReason::Expired)),
        (1, 1)
    );
    desk.advance(500);
    // A driver that is late with its timer still gets no answer for what has expired.
    desk.publish(SampleClass::Key, FIRST, 10);
    assert!(desk.output().is_empty());
    assert_eq!(desk.dropped(DropReason::Expired), 2);
    desk.check_balance();
}

#[test]
fn interests_are_held_up_to_the_horizon() {
    let config = ProducerConfig {
        max_ahead: 3,
        ..ProducerConfig::default()
    };
    let mut desk = Desk::new(config);
    let name = |sequence: u64| format!("/demo/video/1M/delta/seq={sequence}/data/seg=0");
    desk.ask(&name(FIRST + 2));
    desk.ask(&name(FIRST + 3));
    desk.ask(&name(u64::MAX));
    assert_eq!(
        (
            desk.producer.pending(),
            desk.dropped(DropReason::TooFarAhead)
        ),
        (1, 2)
    );
    desk.publish(SampleClass::Delta, FIRST, 10);
    desk.ask(&name(FIRST + 3));
    assert_eq!(
        (
            desk.producer.pending(),
            desk.dropped(DropReason::TooFarAhead)
        ),
        (2, 2)
    );
    // Samples from before the publisher started.
    desk.ask(&name(FIRST - 1));
    assert_eq!(desk.dropped(DropReason::TooOld), 1);
    // A sample that is left out takes its Interests along.
    desk.publish(SampleClass::Delta, FIRST + 3, 10);
    assert_eq!(desk.names(), [name(FIRST + 3)]);
    assert_eq!(desk.dropped(DropReason::Skipped), 1);
    desk.ask(&name(FIRST + 2));
    assert_eq!(desk.dropped(DropReason::TooOld), 2);
    desk.check_balance();
}

#[test]
fn the_table_is_bounded_in_all_and_per_segment() {
    let config = ProducerConfig {
        max_pending: 5,
        max_pending_per_segment: 3,
        ..ProducerConfig::default()
    };
    let mut desk = Desk::new(config);
    (0..4).for_each(|_| desk.ask(LEAD));
    assert_eq!(
        (desk.producer.pending(), desk.dropped(DropReason::TableFull)),
        (3, 1)
    );
    for segment in 1..5 {
        desk.ask(&format!("/demo/video/1M/key/seq=1000/data/seg={segment}"));
    }
    assert_eq!(
        (desk.producer.pending(), desk.dropped(DropReason::TableFull)),
        (5, 3)
    );
    desk.check_balance();
}

#[test]
fn an_interest_that_comes_twice_is_held_once() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.ask(LEAD);
    desk.nonce -= 1;
    desk.ask(LEAD);
    assert_eq!(
        (desk.producer.pending(), desk.dropped(DropReason::Duplicate)),
        (1, 1)
    );
    desk.check_balance();
}

fn with(pit_token: Option<Bytes>) -> Arrival {
    Arrival {
        pit_token,
        face: None,
    }
}

/// One face requests what is far ahead, up to its 2/5 of 20 places. Another's Interests for what is next are held and answered all
/// the same; and what is due in more than 2 s is refused while more than a quarter is taken.
#[test]
fn who_requests_far_ahead_takes_no_pictures_from_others() {
    let config = ProducerConfig {
        max_pending: 20,
        ..ProducerConfig::default()
    };
    let mut desk = Desk::new(config);
    let ask = |desk: &mut Desk, face, sequence: u64| {
        let name = format!("/demo/video/1M/delta/seq={sequence}/data/seg=0");
        desk.nonce += 1;
        let interest = Interest::builder(name.parse().unwrap()).build(desk.nonce.into());
        let arrival = Arrival {
            pit_token: None,
            face: Some(face),
        };
        let taken = desk
            .producer
            .handle_interest(desk.now, WALL, &interest, arrival);
        taken.is_ok()
    };
    let refused = (0..100).rev().filter(|at| !ask(&mut desk, 1, FIRST + at));
    assert_eq!(refused.count(), 94 - 61, "later than 2 s, after the sixth");
    assert_eq!(desk.producer.pending(), 8);
    for sequence in FIRST..FIRST + 5 {
        assert!(ask(&mut desk, 2, sequence));
    }
    assert_eq!(desk.producer.pending(), 13);
    assert!(!ask(&mut desk, 2, FIRST + 61));
    assert!(ask(&mut desk, 2, FIRST + 60));
}

#[test]
fn each_pit_token_gets_its_own_answer() {
    let mut desk = Desk::new(ProducerConfig::default());
    for (nonce, token) in [
        (1, Some("a")),
        (2, Some("b")),
        (3, None),
        (4, Some("a")),
        (5, None),
    ] {
        let interest = Interest::builder(LEAD.parse().unwrap()).build(nonce.into());
        let token = token.map(|token| Bytes::from_static(token.as_bytes()));
        desk.producer
            .handle_interest(desk.now, WALL, &interest, with(token))
            .unwrap();
    }
    desk.publish(SampleClass::Key, FIRST, 10);
    let replies: Vec<_> = core::iter::from_fn(|| desk.producer.poll_output()).collect();
    let tokens: Vec<_> = replies
        .iter()
        .map(|reply| reply.pit_token.as_deref())
        .collect();
    assert_eq!(tokens, [Some(&b"a"[..]), Some(b"b"), None]);
    let interest = Interest::builder(LEAD.parse().unwrap()).build(Nonce::from(6));
    let token = Some(Bytes::from_static(b"c"));
    desk.producer
        .handle_interest(desk.now, WALL, &interest, with(token.clone()))
        .unwrap();
    assert_eq!(desk.producer.poll_output().unwrap().pit_token, token);
}
