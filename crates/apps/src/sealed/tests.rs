use core::time::Duration;
use std::collections::BTreeSet;

use namecast_packet::Name;
use namecast_units::{Instant, Random};

use super::schedule::{SampleKey, nonce};
use super::sealer::SealerEvent;
use super::*;
use crate::trust::ExchangeSecret;

const ROOT: &str = "/calls/fox/ann";

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn secret(seed: u8) -> ExchangeSecret {
    ExchangeSecret::of_seed(&[seed; 32])
}

fn public(seeds: &[u8]) -> BTreeSet<[u8; 32]> {
    seeds.iter().map(|seed| secret(*seed).public()).collect()
}

fn sealer(seed: u8) -> Sealer {
    Sealer::new(SealerConfig::new(name(ROOT)), [seed; 32])
}

fn opener(seed: u8) -> Opener {
    Opener::new(name(ROOT), vec![secret(seed)], OpenerConfig::default())
}

fn sequence(rung: &str, class: &str) -> Name {
    name(&format!("{ROOT}/video/{rung}/{class}"))
}

/// Reports of a sealer so far.
#[derive(Default)]
struct Published {
    boxes: Vec<KeyBox>,
    changes: Vec<u64>,
}

impl Published {
    fn drain(&mut self, sealer: &mut Sealer) {
        while let Some(event) = sealer.poll_event() {
            match event {
                SealerEvent::Box(key_box) => self.boxes.push(key_box),
                SealerEvent::Changed(generation) => self.changes.push(generation),
                SealerEvent::BadKey(key) => panic!("{key:?}"),
            }
        }
    }

    /// Opens a sample, and fetches the box that this takes.
    fn open(
        &self,
        opener: &mut Opener,
        sequence: &Name,
        (number, sealed): (u64, &Sealed),
    ) -> Result<Vec<u8>, Unopened> {
        let once = |opener: &mut Opener| {
            let opened = opener.open(sequence, (number, &sealed.seal), &sealed.payload);
            opened.map(|payload| payload.to_vec())
        };
        let missing = match once(opener) {
            Err(Unopened::MissingBox(name)) => name,
            outcome => return outcome,
        };
        let mut boxes = self.boxes.iter().rev();
        let found = boxes.find(|it| box_name(&name(ROOT), &it.seal) == missing);
        let found = found.unwrap_or_else(|| panic!("no box {missing}"));
        for (number, packet) in found.packets.iter().enumerate() {
            let entries = decode_entries(packet).unwrap();
            if opener.take(&found.seal, &entries, (number, found.packets.len())) {
                break;
            }
        }
        once(opener)
    }
}

/// Ann and Bob read, Eve does not. Another number, another sequence and another octet open nothing.
#[test]
fn readers_open_what_is_sealed_for_them_and_nobody_else_does() {
    let mut sealer = sealer(1);
    let mut published = Published::default();
    sealer.set_readers(at(0), &public(&[1, 2]));
    published.drain(&mut sealer);
    assert_eq!(published.boxes.len(), 1);
    let mut readers = [opener(1), opener(2)];
    let mut eve = opener(9);
    for (rung, class, number) in [("1M", "key", 5), ("1M", "delta", 5), ("3M", "key", 5)] {
        let sequence = sequence(rung, class);
        let sealed = sealer.seal(at(1), &sequence, (number, b"picture"));
        let sealed = sealed.unwrap();
        assert_eq!(sealed.payload.len(), 7 + 16);
        assert!(16 + 2 + sealed.seal.encode().len() <= OVERHEAD);
        for reader in &mut readers {
            let opened = published.open(reader, &sequence, (number, &sealed));
            assert_eq!(opened, Ok(b"picture".to_vec()), "{sequence}");
        }
        let opened = published.open(&mut eve, &sequence, (number, &sealed));
        assert_eq!(opened, Err(Unopened::NotAReader));
        let mut reader = opener(1);
        let opened = published.open(&mut reader, &sequence, (number + 1, &sealed));
        assert_eq!(opened, Err(Unopened::Damaged));
        let other = self::sequence("2M", class);
        let opened = published.open(&mut reader, &other, (number, &sealed));
        assert_eq!(opened, Err(Unopened::Damaged));
        let mut octets = sealed.payload.to_vec();
        octets[3] ^= 1;
        let changed = Sealed {
            payload: octets.into(),
            ..sealed
        };
        let opened = published.open(&mut reader, &sequence, (number, &changed));
        assert_eq!(opened, Err(Unopened::Damaged));
    }
}

/// A reader that comes at step 1 opens later samples and no earlier ones. Present readers need no other box.
#[test]
fn a_newcomer_opens_nothing_from_before() {
    let mut sealer = sealer(1);
    let mut published = Published::default();
    let sequence = sequence("1M", "key");
    sealer.set_readers(at(0), &public(&[1]));
    let before = sealer.seal(at(10), &sequence, (1, b"before")).unwrap();
    sealer.set_readers(at(20), &public(&[1, 2]));
    let after = sealer.seal(at(30), &sequence, (2, b"after")).unwrap();
    sealer.set_readers(at(40), &public(&[1, 2, 3]));
    let later = sealer.seal(at(50), &sequence, (3, b"later")).unwrap();
    published.drain(&mut sealer);
    let steps = [&before, &after, &later].map(|it| (it.seal.generation, it.seal.step));
    assert_eq!(steps, [(0, 0), (0, 1), (0, 2)]);

    let mut first = opener(1);
    let text = |text: &str| Ok(text.as_bytes().to_vec());
    assert_eq!(
        published.open(&mut first, &sequence, (1, &before)),
        text("before")
    );
    let none = Published::default();
    assert_eq!(none.open(&mut first, &sequence, (2, &after)), text("after"));
    assert_eq!(none.open(&mut first, &sequence, (3, &later)), text("later"));

    let mut second = opener(2);
    // Its first look is at the newest sample.
    let mut open = |number, sealed| published.open(&mut second, &sequence, (number, sealed));
    assert_eq!(open(3, &later), text("later"));
    assert_eq!(open(2, &after), text("after"));
    assert_eq!(open(1, &before), Err(Unopened::BeforeJoining));
    // Nor does it hurt to have been refused once.
    let mut third = opener(3);
    let mut open = |number, sealed| published.open(&mut third, &sequence, (number, sealed));
    assert_eq!(open(2, &after), Err(Unopened::NotAReader));
    assert_eq!(open(3, &later), text("later"));
    assert_eq!(open(2, &after), Err(Unopened::BeforeJoining));
}

/// Two leave within half a second: one change, 0.8 s after the first of them left. Those who stay lose no sample.
#[test]
fn leavers_are_shut_out_by_one_new_generation() {
    let mut sealer = sealer(1);
    let mut published = Published::default();
    let sequence = sequence("1M", "delta");
    sealer.set_readers(at(0), &public(&[1, 2, 3]));
    let (mut stays, mut leaves) = (opener(1), opener(2));
    let mut shut_out_at = None;
    for millis in (0..2_000).step_by(10) {
        match millis {
            1_000 => sealer.set_readers(at(millis), &public(&[1, 3])),
            1_400 => sealer.set_readers(at(millis), &public(&[1])),
            _ => {}
        }
        let number = millis + 1;
        let sealed = sealer.seal(at(millis), &sequence, (number, b"frame"));
        let sealed = sealed.unwrap();
        published.drain(&mut sealer);
        let opened = published.open(&mut stays, &sequence, (number, &sealed));
        assert_eq!(opened, Ok(b"frame".to_vec()), "{millis}");
        match published.open(&mut leaves, &sequence, (number, &sealed)) {
            Ok(_) => assert_eq!(shut_out_at, None, "{millis}"),
            Err(why) => {
                assert_eq!(why, Unopened::NotAReader);
                shut_out_at.get_or_insert(millis);
            }
        }
    }
    assert_eq!(shut_out_at, Some(1_800));
    assert_eq!(published.changes, [1]);
    assert_eq!(published.boxes.len(), 2);
    assert_eq!(sealer.poll_timeout(), None);
}

/// Somebody comes while a generation waits to be in force: there is a box for it in both.
#[test]
fn a_newcomer_during_a_change_reads_before_and_after_it() {
    let mut sealer = sealer(1);
    let mut published = Published::default();
    let sequence = sequence("1M", "key");
    sealer.set_readers(at(0), &public(&[1, 2]));
    sealer.seal(at(0), &sequence, (1, b"x")).unwrap();
    sealer.set_readers(at(0), &public(&[1]));
    sealer.handle_timeout(at(500));
    sealer.set_readers(at(600), &public(&[1, 3]));
    let mut readers = [opener(1), opener(3)];
    for (millis, generation) in [(700, 0), (799, 0), (800, 1), (900, 1)] {
        let sealed = sealer.seal(at(millis), &sequence, (millis, b"frame"));
        let sealed = sealed.unwrap();
        published.drain(&mut sealer);
        assert_eq!(sealed.seal.generation, generation);
        for reader in &mut readers {
            let opened = published.open(reader, &sequence, (millis, &sealed));
            assert_eq!(opened, Ok(b"frame".to_vec()), "{millis}");
        }
        let opened = opener(1).open(&sequence, (millis, &sealed.seal), &sealed.payload);
        assert!(matches!(opened, Err(Unopened::MissingBox(_))));
    }
}

/// 100 changes of readers, some at once, some during another: who stays opens all, and whoever is out opens nothing that was sealed 0.8 s after, or, where
/// another change was under way, 0.8 s after that.
#[test]
fn a_hundred_changes_of_readers_cost_those_who_stay_nothing() {
    for seed in 0..5 {
        let mut random = Random::from_seed(seed);
        let mut sealer = sealer(1);
        let mut published = Published::default();
        let sequence = sequence("1M", "delta");
        let mut openers: Vec<_> = (0..6).map(opener).collect();
        // Reader 0 stays; since when each of the others is in or out.
        let mut is_in = [true; 6];
        let mut since = [0; 6];
        sealer.set_readers(at(0), &public(&[0, 1, 2, 3, 4, 5]));
        let mut changes = 0;
        let mut change_at = 0;
        let mut millis = 0;
        while changes < 100 || millis < change_at + 2_000 {
            if millis >= change_at && changes < 100 {
                let who = 1 + random.below(5) as usize;
                is_in[who] = !is_in[who];
                since[who] = millis;
                let readers: Vec<_> = (0..6).filter(|it| is_in[usize::from(*it)]).collect();
                sealer.set_readers(at(millis), &public(&readers));
                changes += 1;
                change_at = millis + random.below(1_500);
            }
            let number = millis + 1;
            let sealed = sealer.seal(at(millis), &sequence, (number, b"frame"));
            let sealed = sealed.unwrap();
            published.drain(&mut sealer);
            for (who, opener) in openers.iter_mut().enumerate() {
                let opened = published.open(opener, &sequence, (number, &sealed));
                let is_settled = millis >= since[who] + 1_500;
                match is_in[who] {
                    true => assert!(opened.is_ok(), "seed {seed}, {who} at {millis}: {opened:?}"),
                    false if is_settled => {
                        assert!(opened.is_err(), "seed {seed}, {who} at {millis}")
                    }
                    false => {}
                }
            }
            millis += 20;
        }
        assert!(published.changes.len() > 10, "{:?}", published.changes);
    }
}

#[test]
fn numbers_that_do_not_grow_are_refused() {
    let mut sealer = sealer(1);
    let sequence = sequence("1M", "key");
    let mut seal = |number| {
        let sealed = sealer.seal(at(0), &sequence, (number, b"x"));
        sealed.map(|_| ())
    };
    assert_eq!(seal(7), Ok(()));
    for number in [7, 6, 0] {
        let refused = Unsealed::Repeated { number, last: 7 };
        assert_eq!(seal(number), Err(refused));
    }
    assert_eq!(seal(8), Ok(()));
    assert_eq!(seal(u64::MAX), Ok(()));
    assert!(seal(u64::MAX).is_err());
}

#[test]
fn sequences_keep_to_their_bound() {
    let config = SealerConfig {
        max_sequences: 2,
        ..SealerConfig::new(name(ROOT))
    };
    let mut sealer = Sealer::new(config, [1; 32]);
    for (number, rung, is_sealed) in [
        (1, "1M", true),
        (1, "2M", true),
        (1, "3M", false),
        (2, "1M", true),
    ] {
        let sealed = sealer.seal(at(0), &sequence(rung, "key"), (number, b"x"));
        assert_eq!(sealed.is_ok(), is_sealed, "{rung}: {sealed:?}");
    }
}

/// The key and the nonce that a sample was sealed with.
fn pair(sealer: &Sealer, sequence: &Name, number: u64) -> (SampleKey, Vec<u8>) {
    (sealer.key_of(sequence), nonce(number).to_vec())
}

/// Restarts with clocks set back and tabs that were duplicated, both with numbers that were used; streams with equal rung names; rungs that end and begin
/// again; readers who come and go: no key meets a nonce twice.
#[test]
fn no_key_and_nonce_are_used_twice() {
    for seed in 0..20 {
        let mut random = Random::from_seed(seed);
        let mut used = BTreeSet::new();
        for start in 0..6_u8 {
            let mut sealer = sealer(start);
            let mut millis = 0;
            let mut number = 1_000 + random.below(50);
            for _ in 0..200 {
                millis += random.below(100);
                match random.below(10) {
                    0 => {
                        let count = random.below(5);
                        let readers: Vec<_> = (0..count).map(|_| random.below(6) as u8).collect();
                        sealer.set_readers(at(millis), &public(&readers));
                    }
                    // Ended and added again: its numbers begin anew.
                    1 => number -= random.below(30),
                    _ => {}
                }
                number += random.below(2);
                let stream = ["video", "video-2"][random.below(2) as usize];
                let rung = ["1M", "3M"][random.below(2) as usize];
                let class = ["key", "delta"][random.below(2) as usize];
                let sequence = name(&format!("{ROOT}/{stream}/{rung}/{class}"));
                let sealed = sealer.seal(at(millis), &sequence, (number, b"frame"));
                if sealed.is_ok() {
                    let pair = pair(&sealer, &sequence, number);
                    let is_new = used.insert(pair);
                    assert!(is_new, "seed {seed}, start {start}, {sequence} {number}");
                }
            }
        }
        assert!(used.len() > 300, "{}", used.len());
    }
}

/// 1 027 who come one by one: the last of them need a new generation.
#[test]
fn steps_end_in_a_new_generation() {
    let mut sealer = sealer(2);
    let mut readers = BTreeSet::new();
    let mut boxes = 0;
    for reader in 0..u64::from(MAX_STEPS) + 3 {
        let mut key = [9; 32];
        key[..8].copy_from_slice(&reader.to_le_bytes());
        readers.insert(key);
        sealer.set_readers(at(0), &readers);
        while let Some(event) = sealer.poll_event() {
            boxes += u32::from(matches!(event, SealerEvent::Box(_)));
        }
        if reader == 0 {
            let sequence = sequence("1M", "key");
            sealer.seal(at(0), &sequence, (1, b"x")).unwrap();
        }
    }
    assert!((1_000..=u32::from(MAX_STEPS)).contains(&boxes), "{boxes}");
}

/// A key of small order gives HPKE nothing to agree on; others are not kept from reading by it.
#[test]
fn a_key_of_small_order_is_refused_and_reported() {
    let mut sealer = sealer(1);
    let mut readers = public(&[1]);
    readers.insert([0; 32]);
    sealer.set_readers(at(0), &readers);
    let events: Vec<_> = core::iter::from_fn(|| sealer.poll_event()).collect();
    assert!(events.contains(&SealerEvent::BadKey([0; 32])), "{events:?}");
    let Some(SealerEvent::Box(key_box)) = events.last() else {
        panic!("{events:?}");
    };
    let entries = decode_entries(&key_box.packets[0]).unwrap();
    assert_eq!(entries.len(), 1);
}

/// 65 readers take two packets; a reader who is in the second needs both, one who is in neither knows after the second.
#[test]
fn boxes_of_many_readers_take_several_packets() {
    let mut sealer = sealer(1);
    let seeds: Vec<u8> = (1..=65).collect();
    sealer.set_readers(at(0), &public(&seeds));
    let mut published = Published::default();
    published.drain(&mut sealer);
    let [key_box] = &published.boxes[..] else {
        panic!("one box");
    };
    let packets = &key_box.packets;
    let lengths = packets.iter().map(|it| decode_entries(it).unwrap().len());
    assert_eq!(lengths.collect::<Vec<_>>(), [64, 1]);
    assert!(packets[0].len() <= 8_000, "{}", packets[0].len());
    let sequence = sequence("1M", "key");
    let sealed = sealer.seal(at(1), &sequence, (1, b"frame")).unwrap();
    for seed in seeds {
        let opened = published.open(&mut opener(seed), &sequence, (1, &sealed));
        assert_eq!(opened, Ok(b"frame".to_vec()), "{seed}");
    }
    let opened = published.open(&mut opener(99), &sequence, (1, &sealed));
    assert_eq!(opened, Err(Unopened::NotAReader));
    let too_many = [&packets[0][..], &packets[1][..]].concat();
    assert!(decode_entries(&too_many.into()).is_err());
}

/// Of 10⁴ readers, 1 024 get the key, in 16 packets.
#[test]
fn a_box_for_ten_thousand_readers_keeps_to_its_bound() {
    let readers: BTreeSet<_> = (1..=10_000_u32)
        .map(|it| {
            let mut seed = [7; 32];
            seed[..4].copy_from_slice(&it.to_be_bytes());
            seed
        })
        .collect();
    let mut sealer = sealer(1);
    sealer.set_readers(at(0), &readers);
    let mut published = Published::default();
    published.drain(&mut sealer);
    let [key_box] = &published.boxes[..] else {
        panic!("one box");
    };
    let entries = key_box.packets.iter().map(|it| decode_entries(it).unwrap());
    assert_eq!(key_box.packets.len(), 16);
    assert_eq!(entries.map(|it| it.len()).sum::<usize>(), 1_024);
}

/// A member that comes and leaves 10⁴ times in a second makes five generations at most, of 1 024 steps each; who stays opens what is sealed.
#[test]
fn ten_thousand_changes_in_a_second_keep_to_their_bound() {
    let mut sealer = sealer(1);
    let [both, alone] = [public(&[1, 2]), public(&[1])];
    let mut boxes = 0;
    let mut opener = opener(1);
    let sequence = sequence("1M", "key");
    for change in 0..10_000 {
        let now = Instant::ZERO + Duration::from_micros(100 * change);
        let readers = if change % 2 == 0 { &both } else { &alone };
        sealer.set_readers(now, readers);
        sealer.handle_timeout(now);
        let mut published = Published::default();
        published.drain(&mut sealer);
        boxes += published.boxes.len();
        for key_box in &published.boxes {
            let entries = decode_entries(&key_box.packets[0]).unwrap();
            assert!(opener.take(&key_box.seal, &entries, (0, 1)));
        }
        let sealed = sealer.seal(now, &sequence, (change, b"x")).unwrap();
        assert!(sealed.seal.generation <= 4, "{:?}", sealed.seal);
        let opened = opener.open(&sequence, (change, &sealed.seal), &sealed.payload);
        assert!(opened.is_ok(), "{change}: {opened:?}");
    }
    assert!(boxes <= 5 * 1_024, "{boxes}");
}

/// A box of another generation, start or root, under this one's name: its entries open nothing.
#[test]
fn entries_are_bound_to_the_name_of_their_box() {
    let mut sealer = sealer(1);
    sealer.set_readers(at(0), &public(&[1]));
    let mut published = Published::default();
    published.drain(&mut sealer);
    let key_box = &published.boxes[0];
    let entries = decode_entries(&key_box.packets[0]).unwrap();
    let right = key_box.seal;
    let sealed = sealer.seal(at(0), &sequence("1M", "key"), (1, b"x"));
    let sealed = sealed.unwrap();
    let of_generation = Seal {
        generation: 1,
        ..right
    };
    let of_start = Seal {
        start: [0; 4],
        ..right
    };
    for (wrong, root) in [
        (of_generation, ROOT),
        (of_start, ROOT),
        (right, "/calls/fox/bob"),
    ] {
        let mut opener = Opener::new(name(root), vec![secret(1)], OpenerConfig::default());
        assert!(opener.take(&wrong, &entries, (0, 1)));
        let seal = Seal {
            start: wrong.start,
            generation: wrong.generation,
            step: 0,
        };
        let sequence = name(&format!("{root}/video/1M/key"));
        let opened = opener.open(&sequence, (1, &seal), &sealed.payload);
        assert_eq!(opened, Err(Unopened::NotAReader), "{wrong:?}");
    }
}

/// Generations up to 2⁶⁴ − 1 and back: bounded, and the right one is opened again once its box is fetched again.
#[test]
fn floods_of_generations_keep_to_the_bound() {
    let mut sealer = sealer(1);
    sealer.set_readers(at(0), &public(&[1]));
    let mut published = Published::default();
    published.drain(&mut sealer);
    let sequence = sequence("1M", "key");
    let sealed = sealer.seal(at(0), &sequence, (1, b"x")).unwrap();
    let mut opener = opener(1);
    let opened = published.open(&mut opener, &sequence, (1, &sealed));
    assert!(opened.is_ok());
    for generation in (0..10_000).chain([u64::MAX, u64::MAX - 1, 3]) {
        let seal = Seal {
            start: [1; 4],
            generation,
            step: MAX_STEPS - 1,
        };
        let opened = opener.open(&sequence, (1, &seal), b"");
        assert!(matches!(opened, Err(Unopened::MissingBox(_))), "{opened:?}");
        assert!(opener.take(&seal, &[], (0, 1)));
        assert!(opener.generation_count() <= 16);
    }
    let opened = published.open(&mut opener, &sequence, (1, &sealed));
    assert!(opened.is_ok());
}

#[test]
fn seals_are_read_as_written() {
    for generation in [0, 255, 256, 65_536, u64::from(u32::MAX), u64::MAX] {
        let seal = Seal {
            start: [1, 2, 3, 4],
            generation,
            step: MAX_STEPS - 1,
        };
        assert_eq!(Seal::decode(&seal.encode()), Some(seal));
    }
    for wrong in [
        &[][..],
        &[1, 2, 3, 4, 0, 0],
        &[1, 2, 3, 4, 4, 0, 0],
        &[1, 2, 3, 4, 0, 0, 0, 0],
        &[1, 2, 3, 4, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(Seal::decode(wrong), None, "{wrong:?}");
    }
}
