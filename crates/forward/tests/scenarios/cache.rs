//! The content store in the pipeline.

use core::time::Duration;

use namecast_forward::{CachePolicy, Config, ContentStoreConfig, DropReason, UnsolicitedData};
use namecast_packet::{Interest, LpPacket, Nonce};
use namecast_units::ByteSize;

use crate::topology::{End, Net, data, fresh_data, interest, millis, name};

fn cached(data: &namecast_packet::Data) -> (Net, End, End) {
    let mut net = Net::new(1);
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    net.ask(
        consumer,
        &Interest::builder(data.name().clone()).build(Nonce::from(1)),
    );
    net.answer(producer, data);
    assert_eq!(
        (net.data(consumer).len(), net.interests(producer).len()),
        (1, 1)
    );
    (net, consumer, producer)
}

fn fresh(uri: &str, nonce: u32) -> Interest {
    Interest::builder(name(uri))
        .must_be_fresh()
        .can_be_prefix()
        .build(Nonce::from(nonce))
}

#[test]
fn fresh_data_is_fresh_up_to_and_including_its_last_instant() {
    for (after, hits) in [(100_000_000, 1), (100_000_001, 0)] {
        let (mut net, consumer, _) = cached(&fresh_data("/p/1", millis(100)));
        net.run_for(Duration::from_nanos(after));
        net.ask(consumer, &fresh("/p", 2));
        assert_eq!(net.nodes[0].counters().content_store_hits, hits);
        // Stale Data still answers who does not mind.
        net.ask(consumer, &interest("/p/1", 3));
        assert_eq!(net.nodes[0].counters().content_store_hits, hits + 1);
    }
}

/// Streams rely on it: asking with MustBeFresh goes past every cache to the producer.
#[test]
fn data_without_freshness_never_answers_must_be_fresh() {
    let (mut net, consumer, producer) = cached(&data("/p/1"));
    net.ask(consumer, &fresh("/p/1", 2));
    assert_eq!(net.interests(producer), [fresh("/p/1", 2)]);
    assert_eq!(net.seen(consumer), []);
}

#[test]
fn a_copy_that_arrives_again_is_fresh_again() {
    let (mut net, consumer, producer) = cached(&fresh_data("/p/1", millis(10)));
    net.run_for(millis(50));
    net.ask(consumer, &fresh("/p", 2));
    assert_eq!(net.interests(producer).len(), 1);
    net.answer(producer, &fresh_data("/p/1", millis(10)));
    assert_eq!(net.data(consumer).len(), 1);
    net.run_for(millis(10));
    net.ask(consumer, &fresh("/p", 3));
    assert_eq!(net.data(consumer).len(), 1);
    assert_eq!(net.nodes[0].forwarder.content_store().packets(), 1);
}

#[test]
fn what_must_not_be_cached_is_delivered_and_forgotten() {
    let mut net = Net::new(1);
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    net.ask(consumer, &interest("/p", 1));
    let mut packet = LpPacket::carrying(data("/p").wire().clone());
    packet.no_cache = true;
    net.send(producer, packet.encode());
    let seen = net.seen(consumer);
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].header.no_cache, "the policy is for one hop");
    assert_eq!(net.nodes[0].forwarder.content_store().packets(), 0);
}

#[test]
fn unsolicited_data_is_dropped_and_not_cached() {
    let mut net = Net::new(1);
    let (consumer, producer) = (net.app(0), net.app(0));
    net.answer(producer, &data("/p"));
    net.ask(consumer, &interest("/p", 1));
    assert_eq!(net.nacks(consumer).len(), 1);
    assert_eq!(
        net.nodes[0].counters().drops.get(DropReason::Unsolicited),
        1
    );
    assert_eq!(
        net.nodes[0]
            .face_counters(producer.1)
            .unwrap()
            .drops
            .get(DropReason::Unsolicited),
        1
    );
    assert_eq!(net.nodes[0].forwarder.content_store().packets(), 0);
}

/// NoCache holds whoever asked, also where the policy takes unsolicited Data in.
#[test]
fn unsolicited_data_that_must_not_be_cached_is_dropped_under_any_policy() {
    let mut net = Net::with(Config {
        content_store: ContentStoreConfig {
            unsolicited: UnsolicitedData::AdmitAll,
            ..ContentStoreConfig::default()
        },
        ..Config::default()
    });
    let producer = net.app(0);
    for (uri, no_cache) in [("/p/1", false), ("/p/2", true)] {
        let mut packet = LpPacket::carrying(data(uri).wire().clone());
        packet.no_cache = no_cache;
        net.send(producer, packet.encode());
    }
    let counters = net.nodes[0].counters();
    assert_eq!(net.nodes[0].forwarder.content_store().packets(), 1);
    assert_eq!(counters.unsolicited_cached, 1);
    assert_eq!(counters.drops.get(DropReason::Unsolicited), 1);
}

#[test]
fn a_store_without_room_caches_nothing() {
    let mut net = Net::with(Config {
        content_store: ContentStoreConfig::with_capacity(ByteSize::ZERO),
        ..Config::default()
    });
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    net.ask(consumer, &interest("/p", 1));
    net.answer(producer, &data("/p"));
    assert_eq!(net.data(consumer).len(), 1);
    assert_eq!(
        net.nodes[0].forwarder.content_store().size(),
        ByteSize::ZERO
    );
}

/// A store of a hundred packets or so. In each of 100 rounds, 20 popular names are asked for three times, and then 200 others
/// that nobody requests again: by LRU none of the 20 is left when they come again, by S3-FIFO all of them are.
#[test]
fn a_scan_sweeps_out_what_is_popular_by_lru_and_not_by_s3_fifo() {
    let hits = |policy| {
        let mut net = Net::with(Config {
            content_store: ContentStoreConfig {
                capacity: ByteSize::bytes(100 * 200),
                policy,
                ..ContentStoreConfig::default()
            },
            ..Config::default()
        });
        let (consumer, producer) = (net.app(0), net.app(0));
        net.route(0, "/", producer.1, 0);
        let mut fetch = |name: String, nonce| {
            net.ask(consumer, &interest(&name, nonce));
            net.answer(producer, &data(&name));
        };
        for round in 0..100 {
            for number in (0..20).chain(0..20).chain(0..20) {
                fetch(format!("/popular/{number}"), round * 1_000 + number);
            }
            (0..200).for_each(|number| fetch(format!("/once/{round}/{number}"), number));
        }
        net.nodes[0].counters().content_store_hits
    };
    // The second and third of each hit in any case.
    let again = 100 * 2 * 20;
    assert_eq!(hits(CachePolicy::Lru), again);
    assert_eq!(hits(CachePolicy::S3Fifo), again + 99 * 20);
}
