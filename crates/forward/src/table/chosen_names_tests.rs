//! Names that somebody chose who knows the source: they cost what any names do.

use core::time::Duration;

use namecast_packet::signature::NullSigner;
use namecast_packet::{Component, Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Instant, Random};

use super::{ContentStore, NameHasher, Pit};
use crate::config::{ContentStoreConfig, Keep};
use crate::name_hash::HashKey;
use crate::shard::{Destination, Dispatcher};

const COUNT: u64 = 64_000;
/// Most that they may cost, in percent of what ordinary names do.
const MAX_PERCENT: usize = 130;

/// What the previous hash made zero of under any seed, as all of its last octets were known.
const ZEROING: [u8; 8] = [0xc9, 0xac, 0x47, 0xc2, 0xd6, 0x26, 0x76, 0xc0];
/// 2⁶¹ − 1: pieces that differ by a multiple of it would be the same.
const PRIME: u64 = (1 << 61) - 1;

type Make = fn(u64) -> Vec<u8>;

/// Components by number, each kind chosen against one property of a hash.
const KINDS: [(&str, Make); 6] = [
    ("end in what makes zero", |number| {
        let mut value = number.to_le_bytes().to_vec();
        value.extend(ZEROING);
        value
    }),
    ("differ in high bits only", |number| {
        (number << 40).to_le_bytes().to_vec()
    }),
    ("are mostly zeros", |number| {
        let mut value = vec![0; 60];
        value[..3].copy_from_slice(&number.to_le_bytes()[..3]);
        value
    }),
    ("are multiples of the modulus", |number| {
        number.wrapping_mul(PRIME).to_le_bytes().to_vec()
    }),
    ("cancel in two pieces", |number| {
        let mut value = number.to_le_bytes().to_vec();
        value.extend(number.wrapping_neg().to_le_bytes());
        value
    }),
    ("are zeros, ever more", |number| {
        vec![0; number as usize % 1_000]
    }),
];

fn name(make: Make, number: u64) -> Name {
    let value = make(number);
    // The last kind has a thousand components only, and counts on below them.
    let name = Name::root().child(Component {
        kind: Component::GENERIC,
        value: &value,
    });
    match value.iter().any(|&octet| octet > 0) {
        true => name,
        false => name.child(Component::generic(&number.to_string())),
    }
}

fn names(make: Make) -> impl Iterator<Item = Name> {
    (0..COUNT).map(move |number| name(make, number))
}

fn ordinary() -> Vec<Name> {
    let names = (0..COUNT).map(|number| {
        format!("/demo/video/1M/delta/seq={number}")
            .parse()
            .unwrap()
    });
    names.collect()
}

/// Comparisons of a look-up of each of `names` in a table of all of them.
fn comparisons_in_pit(hasher: NameHasher, names: &[Name]) -> usize {
    let mut pit = Pit::new(usize::MAX, ByteSize::bytes(u64::MAX >> 1));
    let hashes = |name: &Name| hasher.hashes(name, 16).unwrap();
    for name in names {
        let interest = Interest::builder(name.clone()).build(Nonce([0; 4]));
        pit.insert(&interest, name.clone(), &hashes(name), Duration::ZERO);
    }
    names
        .iter()
        .map(|name| pit.candidates(hashes(name).whole()))
        .sum()
}

fn comparisons_in_store(hasher: NameHasher, names: &[Name]) -> usize {
    let mut store = ContentStore::new(
        Keep::Frames,
        ContentStoreConfig::with_capacity(ByteSize::mebibytes(512)),
    );
    let hashes = |name: &Name| hasher.hashes(name, 16).unwrap();
    for name in names {
        let data = Data::builder(name.clone()).sign(&NullSigner);
        store.insert(Instant::ZERO, &data, &hashes(name));
    }
    assert_eq!(store.packets(), names.len());
    names
        .iter()
        .map(|name| store.candidates(hashes(name).whole()))
        .sum()
}

/// Of the busiest of eight forwarders.
fn interests_of_a_shard(key: HashKey, names: &[Name]) -> usize {
    let dispatcher = Dispatcher::new(key, 8);
    let mut counts = [0; 8];
    for name in names {
        let interest = Interest::builder(name.clone()).build(Nonce([0; 4]));
        match dispatcher.destination(interest.wire()) {
            Destination::One(index) => counts[index] += 1,
            other => panic!("{other:?}"),
        }
    }
    counts.into_iter().max().unwrap()
}

#[test]
fn chosen_names_cost_what_ordinary_ones_do_in_table_store_and_shards() {
    let ordinary = ordinary();
    let mut random = Random::from_seed(17);
    let mut keys = vec![HashKey::FIXED];
    keys.extend((0..2).map(|_| HashKey::from_words([(); 3].map(|()| random.next_u64()))));
    for key in keys {
        let hasher = NameHasher::new(key);
        let costs = |names: &[Name]| {
            [
                comparisons_in_pit(hasher, names),
                comparisons_in_store(hasher, names),
                interests_of_a_shard(key, names),
            ]
        };
        let usual = costs(&ordinary);
        for (kind, make) in KINDS {
            let names: Vec<_> = names(make).collect();
            let chosen = costs(&names);
            let dear = chosen
                .iter()
                .zip(usual)
                .any(|(&cost, usual)| cost * 100 > usual * MAX_PERCENT);
            assert!(!dear, "{kind}: {chosen:?}, ordinary {usual:?}");
        }
    }
}
