use std::collections::BTreeMap;

use namecast_packet::Nonce;
use namecast_packet::signature::NullSigner;
use namecast_units::Random;

use super::*;

const LIFETIME: Duration = Duration::from_secs(4);

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn data(uri: &str, content: &[u8]) -> Data {
    let builder = Data::builder(name(uri)).content(content.to_vec());
    builder.sign(&NullSigner)
}

/// Metadata that names `object`.
fn metadata(object: &str) -> Data {
    let mut writer = tlv::Writer::default();
    name(object).encode(&mut writer);
    data("/doc/32=metadata/v=9/seg=0", &writer.finish())
}

fn segments(object: &str, numbering: Numbering) -> Found {
    Found::Segments {
        name: name(object),
        numbering,
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The next Interest of a finder.
fn poll(finder: &mut Finder, now: Instant) -> Option<Interest> {
    let interest = finder.poll_interest(now)?;
    Some(interest.build(Nonce::from(1)))
}

fn finder() -> Finder {
    Finder::new(Instant::ZERO, name("/doc"), LIFETIME)
}

/// Returns the outcome of one packet at the deadline.
fn found(packet: &Data) -> Result<Found, NotFound> {
    let mut finder = finder();
    finder.handle_data(at(10), packet);
    finder.handle_timeout(at(4_000));
    finder.outcome().unwrap().clone()
}

#[test]
fn an_object_is_known_by_its_name_however_it_is_numbered() {
    let typed = Numbering::Typed;
    let same = |uri: &str, found: Found| (uri.to_owned(), Ok(found));
    let cases = [
        same("/doc/v=7/seg=3", segments("/doc/v=7", typed)),
        same("/doc/seg=0", segments("/doc", typed)),
        same(
            "/doc/%FD%07/%00%00",
            segments("/doc/%FD%07", Numbering::Markers),
        ),
        same("/doc/%00%01%00", segments("/doc", Numbering::Markers)),
        same("/doc", Found::Packet(data("/doc", b"x"))),
        same("/doc/v=7", Found::Packet(data("/doc/v=7", b"x"))),
    ];
    for (uri, expected) in cases {
        assert_eq!(found(&data(&uri, b"x")), expected, "{uri}");
    }
    for uri in [
        "/doc/KEY/1/self/v=3",
        "/doc/32=metadata/v=3/seg=0",
        "/doc/part/v=3/seg=0",
        "/doc/part",
        "/doc/%FD",
        "/doc/%00%01%02%03",
        "/other/v=3/seg=0",
    ] {
        assert_eq!(found(&data(uri, b"x")), Err(NotFound::Silence), "{uri}");
    }
    assert_eq!(
        found(&metadata("/doc/v=8")),
        Ok(segments("/doc/v=8", typed))
    );
    assert_eq!(found(&metadata("/other/v=8")), Err(NotFound::Silence));
    assert_eq!(found(&metadata("/doc/KEY")), Err(NotFound::Silence));
}

#[test]
fn segments_are_written_as_they_are_read() {
    for (numbering, number, uri) in [
        (Numbering::Typed, 300, "/doc/seg=300"),
        (Numbering::Markers, 5, "/doc/%00%05"),
        (Numbering::Markers, 300, "/doc/%00%01%2C"),
    ] {
        let segment = numbering.segment(&name("/doc"), number);
        assert_eq!(segment, name(uri));
        assert_eq!(Numbering::number(&name("/doc"), &segment), Some(number));
    }
    assert_eq!(Numbering::number(&name("/do"), &name("/doc/seg=1")), None);
}

/// A segment came after 300 ms: metadata is waited for until 600 ms. Its version counts, if it comes, or else the newest segment's.
#[test]
fn metadata_counts_more_than_a_segment_that_came_before() {
    for is_told in [true, false] {
        let mut finder = finder();
        finder.handle_data(at(300), &data("/doc/v=5/seg=0", b"x"));
        finder.handle_data(at(310), &data("/doc/v=6/seg=0", b"x"));
        finder.handle_data(at(320), &data("/doc/v=4/seg=0", b"x"));
        finder.handle_timeout(at(599));
        assert_eq!(finder.outcome(), None);
        let expected = match is_told {
            true => {
                finder.handle_data(at(599), &metadata("/doc/v=7"));
                "/doc/v=7"
            }
            false => "/doc/v=6",
        };
        finder.handle_timeout(at(600));
        let expected = Ok(segments(expected, Numbering::Typed));
        assert_eq!(finder.outcome(), Some(&expected));
    }
}

/// Asked at 0, 250 and 750 ms, then each second; without freshness from 2 s on.
#[test]
fn questions_are_repeated_until_the_time_is_over() {
    let mut finder = finder();
    let mut asked: BTreeMap<(Name, bool), Vec<u64>> = BTreeMap::new();
    for millis in (0..4_200).step_by(10) {
        finder.handle_timeout(at(millis));
        while let Some(interest) = poll(&mut finder, at(millis)) {
            assert!(interest.can_be_prefix());
            let left = Duration::from_millis(4_000 - millis);
            assert_eq!(interest.lifetime(), left);
            let key = (interest.name().clone(), interest.must_be_fresh());
            asked.entry(key).or_default().push(millis);
        }
    }
    let fresh = vec![0, 250, 750, 1_750, 2_750, 3_750];
    assert_eq!(asked[&(name("/doc/32=metadata"), true)], fresh);
    assert_eq!(asked[&(name("/doc"), true)], fresh);
    assert_eq!(asked[&(name("/doc"), false)], [2_000, 2_250, 2_750, 3_750]);
    assert_eq!(finder.outcome(), Some(&Err(NotFound::Silence)));
    assert_eq!(finder.poll_timeout(), None);
}

#[test]
fn refusals_end_it_once_all_questions_are_refused() {
    let mut finder = finder();
    let asked: Vec<_> = core::iter::from_fn(|| poll(&mut finder, at(0))).collect();
    finder.handle_nack(at(5), &asked[0], NackReason::Congestion);
    finder.handle_nack(at(5), &asked[1], NackReason::NoRoute);
    assert_eq!(finder.outcome(), None);
    finder.handle_nack(at(6), &asked[0], NackReason::NoRoute);
    let refused = Err(NotFound::Refused(NackReason::NoRoute));
    assert_eq!(finder.outcome(), Some(&refused));
}

/// Returns the first held packet that matches the Interest. The certificate stands first, as in a cache.
fn answer(interest: &Interest, held: &[Data]) -> Option<Data> {
    held.iter().find(|data| interest.matches(data)).cloned()
}

/// 9000 runs over paths that lose 0, 5 and 20 % in each direction, with round trips of 10 ms and 1.2 s, of a producer that runs, that
/// starts after a second, or that has left a key and old metadata in a cache: the finder returns the object or an error.
#[test]
fn nothing_but_the_object_is_found() {
    let mut random = Random::from_seed(43);
    let key = data("/doc/KEY/1/self/v=3", b"key");
    let object = data("/doc/v=7/seg=0", b"x");
    let mut failed: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for run in 0..9_000_u32 {
        let percent = [0, 5, 20][(run % 3) as usize];
        let round_trip = Duration::from_millis([10, 1_200][(run / 3 % 2) as usize]);
        let kind = run / 6 % 3;
        let mut finder = Finder::new(Instant::ZERO, name("/doc"), LIFETIME);
        let mut arriving: Vec<(Instant, Data)> = Vec::new();
        let mut now = Instant::ZERO;
        while finder.outcome().is_none() {
            while let Some(interest) = poll(&mut finder, now) {
                let is_there = match kind {
                    0 => true,
                    1 => now >= at(1_000),
                    _ => false,
                };
                let held = match is_there {
                    true if interest.name().len() > 1 => vec![metadata("/doc/v=7")],
                    true => vec![object.clone()],
                    false => vec![key.clone(), metadata("/doc/v=7")],
                };
                let loss = f64::from(percent) / 100.0;
                let [is_lost, is_lost_on_return] = [(); 2].map(|()| random.chance(loss));
                let data = answer(&interest, &held);
                let data = data.filter(|_| !is_lost && !is_lost_on_return);
                arriving.extend(data.map(|data| (now + round_trip, data)));
            }
            let due = arriving
                .iter()
                .map(|it| it.0)
                .chain(finder.poll_timeout())
                .min();
            now = due.unwrap();
            let (came, later) = arriving.into_iter().partition(|it| it.0 <= now);
            arriving = later;
            let came: Vec<(Instant, Data)> = came;
            came.iter()
                .for_each(|(_, data)| finder.handle_data(now, data));
            finder.handle_timeout(now);
        }
        match finder.outcome().unwrap() {
            Ok(found) => assert_eq!(*found, segments("/doc/v=7", Numbering::Typed)),
            Err(_) => *failed.entry((kind, percent)).or_default() += 1,
        }
    }
    assert_eq!(failed.get(&(0, 0)), None, "{failed:?}");
    assert!(
        failed.get(&(0, 20)).is_none_or(|count| *count <= 10),
        "{failed:?}"
    );
}
