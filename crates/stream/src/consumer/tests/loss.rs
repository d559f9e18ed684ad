//! What is lost, damaged or refused is retransmitted, and no more than that.

use super::*;

/// One of three data segments is lost; parity makes up for it, and nothing is retransmitted.
#[test]
fn parity_comes_before_retransmission() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    let segments = desk.cut((SampleClass::Delta, 100), 5, 2_500, stamp(60));
    assert_eq!((segments.data.len(), segments.parity.len()), (3, 1));
    desk.asks();
    desk.give(at(90), &segments.data[0]);
    desk.give(at(90), &segments.data[2]);
    desk.give(at(90), &segments.parity[0]);
    desk.consumer.handle_timeout(at(239));
    let again = desk.asks().into_iter().filter(|ask| ask.id.sequence == 100);
    assert_eq!(again.count(), 0);
    let counters = desk.consumer.counters();
    assert_eq!(
        (counters.recovered_parity, counters.recovered_retransmission),
        (1, 0)
    );
    desk.consumer.handle_timeout(at(240));
    desk.asks();
    let payload = &desk.samples[1].payload;
    assert!(payload.iter().enumerate().all(|(at, o)| *o == at as u8));
    assert_eq!(payload.len(), 2_500);
}

/// Two of three data segments are lost and one parity segment came: one more is needed, so one is retransmitted: when
/// sample 101 has overtaken, and 9 ms have passed for reordering (DRD, now ⅞·63.75 + ⅛·130 = 72 ms, by 8).
#[test]
fn overtaken_segments_are_asked_for_again_only_as_far_as_needed() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    let segments = desk.cut((SampleClass::Delta, 100), 5, 2_500, stamp(60));
    desk.give(at(90), &segments.data[0]);
    desk.give(at(90), &segments.parity[0]);
    let next = desk.cut((SampleClass::Delta, 101), 5, 900, stamp(100));
    desk.give(at(130), &next.data[0]);
    desk.asks();
    let mut again = Vec::new();
    for now in [136, 142, 148].map(at) {
        desk.consumer.handle_timeout(now);
        let ids = ids(&desk.asks());
        again.extend(ids.into_iter().filter(|(_, sequence, ..)| *sequence == 100));
        assert!(now >= at(139) || again.is_empty(), "{now}");
    }
    assert_eq!(again, [segment(D, 1)]);
    desk.give(at(195), &segments.data[1]);
    assert_eq!(desk.consumer.counters().recovered_parity, 1);
}

/// The lead is lost: its followers tell, and only it is retransmitted.
#[test]
fn a_lead_that_its_followers_overtake_is_asked_for_again() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    desk.asks();
    let segments = desk.cut((SampleClass::Delta, 100), 5, 2_500, stamp(60));
    desk.give(at(90), &segments.data[1]);
    desk.give(at(90), &segments.data[2]);
    assert_eq!(desk.consumer.sizes().unverified, 2);
    let again = |desk: &mut Desk| {
        let asks = ids(&desk.asks()).into_iter();
        asks.filter(|(_, sequence, ..)| *sequence == 100)
            .collect::<Vec<_>>()
    };
    desk.consumer.handle_timeout(at(97));
    assert!(
        again(&mut desk).is_empty(),
        "within DRD / 8 it may be reordering"
    );
    desk.consumer.handle_timeout(at(98));
    assert_eq!(again(&mut desk), [segment(D, 0)]);
    desk.give(at(158), &segments.data[0]);
    assert_eq!(desk.consumer.sizes().unverified, 0);
    assert_eq!(desk.consumer.counters().recovered_retransmission, 1);
}

/// Nothing overtakes and no timer has run out: the checkpoint, one DRD before the deadline, requests what is missing.
/// The lead took 90 ms and nobody had waited for it: DRD is ⅞·60 + ⅛·90 = 63.75 ms.
#[test]
fn the_checkpoint_asks_for_what_is_missing() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(30));
    let asks = desk.asks();
    assert!(asks.is_empty());
    let segments = desk.cut((SampleClass::Delta, 100), 5, 2_500, stamp(60));
    // Base 30 ms, target 150 ms: shown at 240 ms, checkpoint 63.75 ms before.
    desk.give(at(90), &segments.data[0]);
    desk.asks();
    let mut again = Vec::new();
    while let Some(now) = desk.consumer.poll_timeout().filter(|now| *now <= at(185)) {
        desk.consumer.handle_timeout(now);
        let ids = ids(&desk.asks());
        let of_100 = ids.into_iter().filter(|(_, sequence, ..)| *sequence == 100);
        again.extend(of_100.map(|id| (now, id)));
    }
    let (first, _) = again[0];
    assert_eq!(first.as_nanos(), 176_250_000, "{again:?}");
    let ids: Vec<_> = again.into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, [segment(D, 1), segment(D, 2)]);
}

#[test]
fn a_damaged_follower_is_asked_for_past_the_caches() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    let segments = desk.cut((SampleClass::Delta, 100), 5, 2_500, stamp(60));
    let forged = Data::builder(segments.data[1].name().clone())
        .content(segments.data[1].content().unwrap().slice(1..))
        .sign(&namecast_packet::signature::NullSigner);
    desk.give(at(90), &segments.data[0]);
    desk.asks();
    desk.give(at(90), &forged);
    let asks = desk.asks();
    assert_eq!(ids(&asks), [segment(D, 1)]);
    assert!(asks[0].must_be_fresh && asks[0].avoid_face == Some(FACE));
    // One that came before the lead is found out when the lead comes.
    let next = desk.cut((SampleClass::Delta, 101), 5, 2_500, stamp(100));
    let forged = Data::builder(next.data[2].name().clone())
        .content("x")
        .sign(&namecast_packet::signature::NullSigner);
    desk.give(at(130), &forged);
    desk.give(at(131), &next.data[0]);
    let fresh: Vec<_> = desk
        .asks()
        .into_iter()
        .filter(|ask| ask.must_be_fresh && ask.avoid_face == Some(FACE))
        .collect();
    assert_eq!(ids(&fresh), [(SampleClass::Delta, 101, D, 2)]);
    assert_eq!(desk.consumer.counters().drop_verification, 2);
}

/// A Nack sends the Interest again after a while, a Nack for a duplicate Nonce at once, one for an older Nonce not at all.
#[test]
fn nacks_are_answered_by_their_reason() {
    let mut desk = Desk::started(Config::default());
    let asks = desk.asks();
    let nack = |desk: &mut Desk, ask: &Ask, nonce, reason| {
        let interest = Interest::builder(names().segment(ask.id)).build(nonce);
        assert!(desk.consumer.handle_nack(at(10), &interest, reason));
    };
    nack(&mut desk, &asks[0], 7.into(), NackReason::NoRoute);
    assert_eq!(desk.consumer.counters().interests_nacked, 0);
    nack(&mut desk, &asks[0], asks[0].nonce, NackReason::Duplicate);
    nack(&mut desk, &asks[1], asks[1].nonce, NackReason::NoRoute);
    assert_eq!(desk.consumer.counters().interests_nacked, 2);
    desk.consumer.handle_timeout(at(12));
    let again = desk.asks();
    assert_eq!(ids(&again), ids(&asks[..1]));
    assert_ne!(again[0].nonce, asks[0].nonce);
    desk.consumer.handle_timeout(at(109));
    assert!(!desk.asks().iter().any(|ask| ask.id == asks[1].id));
}

#[test]
fn a_link_that_comes_back_is_asked_for_everything_at_once() {
    let mut desk = Desk::started(Config::default());
    let first = desk.asks();
    desk.consumer.handle_link_change(at(20));
    let again = desk.asks();
    assert_eq!(ids(&again).len(), first.len());
    assert!(again.iter().zip(&first).all(|(a, b)| a.nonce != b.nonce));
    assert_eq!(desk.consumer.sizes().outstanding, first.len());
}
