//! Repair of a flow that ends.

use namecast_packet::{AnyNextRequest, ChunksHad, Name, Nonce};
use namecast_stream::path::NumberedConfig;

use super::super::*;
use super::*;

const SIZE: usize = 1_000;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn prefix() -> Name {
    "/p".parse().unwrap()
}

/// Twenty numbers in chunks of five, which are played at ten a second.
fn fetcher(repair: Repair) -> Fetcher {
    let requests = NumberedConfig {
        control: "window:64".parse().unwrap(),
        count: (repair != Repair::Coded).then_some(20),
        ..NumberedConfig::default()
    };
    let mut config = FetcherConfig::new(prefix(), requests);
    config.delivery = Delivery::AnyNext;
    config.server.content_size = SIZE;
    config.ending = Some(Ending {
        count: 20,
        repair,
        chunk_size: 5,
        playout: Bitrate::kbps(80),
    });
    let mut fetcher = Fetcher::new(config);
    fetcher.start(at(0));
    fetcher
}

/// Data of a number that came by a face, with its number on the link if it answers a request for any next.
fn data(number: u64, link: Option<u32>, face: u64) -> Bytes {
    let name = prefix().builder().sequence(number).finish();
    let data = Data::builder(name).content(vec![0; SIZE]);
    let data = data.sign(&namecast_packet::signature::NullSigner);
    let mut packet = LpPacket::carrying(data.wire().clone());
    packet.incoming_face = Some(face);
    if let Some(link) = link {
        packet
            .extensions
            .set(Extensions::ANY_NEXT, link.to_be_bytes());
    }
    packet.encode()
}

fn neighbours_have(fetcher: &mut Fetcher, now: Instant, ranges: &[(u32, u32)]) {
    let had = ChunksHad {
        flow: prefix(),
        chunk_size: 5,
        hops_left: 1,
        expiry: 60,
        ranges: ranges.to_vec(),
    };
    let mut packet = LpPacket::default();
    packet.extensions.set(Extensions::CHUNKS_HAD, had.encode());
    fetcher.handle_packet(now, packet.encode());
}

/// What leaves: numbers that are requested, with the face to avoid, and chunks that are announced.
#[derive(Debug, Default)]
struct Left {
    requests: Vec<(u64, Option<u64>)>,
    announced: Vec<Vec<(u32, u32)>>,
    served: Vec<u64>,
}

fn left(fetcher: &mut Fetcher) -> Left {
    let mut left = Left::default();
    while let Some(frame) = fetcher.poll_output() {
        let packet = LpPacket::decode(frame).unwrap();
        let extensions = &packet.extensions;
        if let Some(value) = extensions.get(Extensions::CHUNKS_HAD) {
            let had = ChunksHad::decode(&Bytes::copy_from_slice(value)).unwrap();
            left.announced.push(had.ranges);
            continue;
        }
        let request = extensions.get(Extensions::ANY_NEXT);
        if request.and_then(AnyNextRequest::decode).is_some() {
            continue;
        }
        let wire = packet.fragment.unwrap();
        let number = |name: &Name| name.last().and_then(|it| it.number_of(Component::SEQUENCE));
        if let Ok(interest) = Interest::decode(wire.clone()) {
            let number = number(interest.name()).unwrap();
            left.requests.push((number, packet.avoid_face));
        } else {
            let data = Data::decode(wire).unwrap();
            left.served.push(number(data.name()).unwrap());
        }
    }
    left
}

/// Any next Data of these numbers, one after the other.
fn receive(fetcher: &mut Fetcher, now: Instant, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let link = u32::try_from(number).unwrap() + 1;
        fetcher.handle_packet(now, data(number, Some(link), 7));
    }
}

/// 2, 3 and 11 are missing; 3 is in the chunk that a neighbour has, and so is 2. Two at a time, then the third is too new.
#[test]
fn what_neighbours_have_is_requested_at_once() {
    let mut fetcher = fetcher(Repair::FromPeers);
    receive(&mut fetcher, at(100), [0, 1, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(left(&mut fetcher).requests, []);
    neighbours_have(&mut fetcher, at(110), &[(0, 0), (2, 2)]);
    assert_eq!(left(&mut fetcher).requests, [(2, None), (3, None)]);
    fetcher.handle_packet(at(150), data(2, None, 9));
    fetcher.handle_packet(at(150), data(3, None, 9));
    // Two numbers after 11 it is missing for sure.
    receive(&mut fetcher, at(200), [12, 13]);
    assert_eq!(left(&mut fetcher).requests, []);
    receive(&mut fetcher, at(210), [14]);
    assert_eq!(left(&mut fetcher).requests, [(11, None)]);
    // The timeout is over: the next is for the own path, and avoids who did not answer.
    fetcher.handle_timeout(at(3_000));
    assert_eq!(left(&mut fetcher).requests.first(), Some(&(11, Some(9))));
    let ended = fetcher.ended().unwrap();
    assert_eq!((ended.repaired, ended.from_peers), (2, 2));
}

/// Without neighbours: from the provider, inline at once, else once the last number has come.
#[test]
fn the_provider_is_asked_inline_or_at_the_end() {
    for (repair, early) in [(Repair::Inline, vec![3]), (Repair::AtEnd, vec![])] {
        let mut fetcher = fetcher(repair);
        receive(&mut fetcher, at(100), (0..10).filter(|it| *it != 3));
        let requests = left(&mut fetcher).requests;
        assert_eq!(
            requests,
            early.iter().map(|it| (*it, None)).collect::<Vec<_>>()
        );
        receive(&mut fetcher, at(200), 10..20);
        let mut late = left(&mut fetcher).requests;
        late.extend(requests);
        assert_eq!(late, [(3, None)]);
        assert_eq!(fetcher.ended().unwrap().completed_after, None);
        fetcher.handle_packet(at(250), data(3, None, 7));
        let after = fetcher.ended().unwrap().completed_after;
        assert_eq!(after, Some(Duration::from_millis(250)));
    }
}

/// Ten packets are the first second, which is here after 1.5 s; number 15 comes 900 ms after its time, 1.5 s.
#[test]
fn stalls_are_the_first_second_and_what_comes_late() {
    let mut fetcher = fetcher(Repair::AtEnd);
    receive(&mut fetcher, at(500), 0..5);
    receive(&mut fetcher, at(1_500), 5..15);
    assert_eq!(
        fetcher.ended().unwrap().stalled,
        Duration::from_millis(1_500)
    );
    receive(&mut fetcher, at(2_400), 15..20);
    assert_eq!(
        fetcher.ended().unwrap().stalled,
        Duration::from_millis(1_500)
    );
    let mut late = self::fetcher(Repair::AtEnd);
    receive(&mut late, at(500), 0..15);
    receive(&mut late, at(2_400), 15..20);
    assert_eq!(late.ended().unwrap().stalled, Duration::from_millis(900));
    assert_eq!(
        late.ended().unwrap().completed_after,
        Some(Duration::from_millis(2_400))
    );
}

/// Any twenty are enough, whatever their numbers.
#[test]
fn coded_flows_end_with_enough() {
    let mut fetcher = fetcher(Repair::Coded);
    receive(&mut fetcher, at(100), (0..38).step_by(2));
    assert_eq!(fetcher.ended().unwrap().completed_after, None);
    receive(&mut fetcher, at(200), [101]);
    let after = fetcher.ended().unwrap().completed_after;
    assert_eq!(after, Some(Duration::from_millis(200)));
    assert_eq!(left(&mut fetcher).requests, []);
}

/// Whole chunks are announced, and what they hold is given to neighbours; what has not come is not.
#[test]
fn whole_chunks_are_announced_and_served() {
    let mut fetcher = fetcher(Repair::FromPeers);
    receive(&mut fetcher, at(100), (0..13).filter(|it| *it != 7));
    assert_eq!(left(&mut fetcher).announced, [vec![(0, 0)]]);
    // The second chunk is whole as well. Its announcement follows half a second after the first one.
    receive(&mut fetcher, at(200), [7]);
    assert_eq!(left(&mut fetcher).announced, Vec::<Vec<_>>::new());
    assert!(fetcher.poll_timeout().is_some_and(|due| due <= at(600)));
    fetcher.handle_timeout(at(600));
    assert_eq!(left(&mut fetcher).announced, [vec![(0, 1)]]);
    fetcher.handle_timeout(at(1_050));
    assert_eq!(left(&mut fetcher).announced, Vec::<Vec<_>>::new());
    for number in [3, 13, 8, 19] {
        let name = prefix().builder().sequence(number).finish();
        let interest = Interest::builder(name).build(Nonce([1; 4]));
        fetcher.handle_packet(at(1_100), interest.wire().clone());
    }
    assert_eq!(left(&mut fetcher).served, [3, 8]);
    assert_eq!(fetcher.figures().served, 2);
}
