use core::time::Duration;

use namecast_units::Random;

use super::*;

fn waiter(arrived: u64, expires: u64, nonce: u32) -> Waiter {
    Waiter {
        arrived_at: Instant::from_nanos(arrived),
        expires_at: Instant::from_nanos(expires),
        nonce: nonce.into(),
        pit_token: None,
        due_at: Instant::ZERO,
        face: None,
    }
}

/// One that came in on `face` for what is due at `due` nanoseconds.
fn of_face(face: u64, due: u64, nonce: u32) -> Waiter {
    Waiter {
        due_at: Instant::from_nanos(due),
        face: Some(face),
        ..waiter(0, 1_000, nonce)
    }
}

/// Of ten places a face has four. What it requests then replaces what is due later of its own, and nothing of others.
#[test]
fn a_face_has_its_share_and_keeps_what_is_due_first() {
    let mut table = PendingTable::new(10, 8);
    for due in [50, 40, 30, 20] {
        assert_eq!(table.insert(due, of_face(1, due, 1)), Held::Yes);
    }
    assert_eq!(table.insert(90, of_face(2, 90, 1)), Held::Yes);
    assert_eq!(table.insert(60, of_face(1, 60, 1)), Held::Full);
    assert_eq!(table.insert(10, of_face(1, 10, 1)), Held::InsteadOfAnother);
    assert!(table.oldest(&50).is_none() && table.oldest(&90).is_some());
    assert_eq!(table.len(), 5);
}

/// A full table of three faces: what is due last of all gives way, whoever requests it.
#[test]
fn a_full_table_keeps_what_is_due_first() {
    let mut table = PendingTable::new(10, 8);
    for face in 1..=3 {
        for number in 0..4 {
            let due = 10 * number + face;
            table.insert(due, of_face(face, due, 1));
        }
    }
    assert_eq!(table.len(), 10);
    assert_eq!(table.insert(5, of_face(4, 5, 1)), Held::InsteadOfAnother);
    assert!(table.oldest(&32).is_none(), "the last of faces 1 and 2");
    assert_eq!(table.insert(99, of_face(4, 99, 1)), Held::Full);
    assert_eq!(table.len(), 10);
    while table.expire(Instant::from_nanos(1_000)) > 0 {}
    assert!(table.is_empty() && table.by_face.is_empty());
}

#[test]
fn both_bounds_hold_and_room_comes_back() {
    let mut table = PendingTable::new(3, 2);
    assert_eq!(table.insert(1, waiter(0, 10, 1)), Held::Yes);
    assert_eq!(table.insert(1, waiter(1, 10, 2)), Held::Yes);
    assert_eq!(table.insert(1, waiter(2, 10, 3)), Held::Full);
    assert_eq!(table.insert(2, waiter(2, 10, 3)), Held::Yes);
    assert_eq!(table.insert(3, waiter(2, 10, 3)), Held::Full);
    // A duplicate says so even when there is no room.
    assert_eq!(table.insert(1, waiter(9, 99, 2)), Held::Duplicate);
    assert_eq!(table.len(), 3);
    assert_eq!(table.take(&1).len(), 2);
    assert_eq!(table.insert(3, waiter(2, 10, 3)), Held::Yes);
}

#[test]
fn a_lifetime_ends_at_its_moment_not_before() {
    let mut table = PendingTable::new(8, 8);
    table.insert(1, waiter(0, 10, 1));
    table.insert(1, waiter(5, 15, 2));
    assert_eq!(table.next_expiry(), Some(Instant::from_nanos(10)));
    assert_eq!(table.expire(Instant::from_nanos(9)), 0);
    assert_eq!(table.expire(Instant::from_nanos(10)), 1);
    let oldest = table.oldest(&1).unwrap();
    assert_eq!(oldest.arrived_at, Instant::from_nanos(5));
    assert_eq!(table.expire(Instant::from_nanos(15)), 1);
    assert!(table.is_empty() && table.waiters.is_empty());
    assert_eq!(table.next_expiry(), None);
}

/// One that waits until 5 ns and one with the same Nonce until 15 ns, in either order.
#[test]
fn a_repetition_that_waits_longer_is_waited_for() {
    for expiries in [[5, 15], [15, 5]] {
        let mut table = PendingTable::new(8, 8);
        for (expiry, held) in expiries.into_iter().zip([Held::Yes, Held::Duplicate]) {
            assert_eq!(table.insert(1, waiter(0, expiry, 1)), held);
        }
        assert_eq!(table.expire(Instant::from_nanos(14)), 0);
        assert_eq!(table.take(&1).len(), 1);
        assert!(table.is_empty());
    }
}

/// The same table as one list in order of arrival.
#[derive(Default)]
struct Naive(Vec<(u8, Waiter)>);

impl Naive {
    fn insert(&mut self, key: u8, waiter: Waiter) -> Held {
        let mut known = self.0.iter_mut();
        if let Some((_, known)) = known.find(|(k, w)| *k == key && w.nonce == waiter.nonce) {
            known.expires_at = known.expires_at.max(waiter.expires_at);
            return Held::Duplicate;
        }
        let same = self.0.iter().filter(|(k, _)| *k == key);
        if self.0.len() >= 20 || same.count() >= 4 {
            return Held::Full;
        }
        self.0.push((key, waiter));
        Held::Yes
    }

    fn remove(&mut self, gone: impl Fn(&u8, &Waiter) -> bool) -> Vec<Waiter> {
        let (gone, kept) = core::mem::take(&mut self.0)
            .into_iter()
            .partition(|(key, waiter)| gone(key, waiter));
        self.0 = kept;
        gone.into_iter()
            .map(|(_, waiter): (u8, Waiter)| waiter)
            .collect()
    }
}

#[test]
fn the_table_does_what_a_plain_list_does() {
    for seed in 0..50 {
        let mut random = Random::from_seed(seed);
        let (mut table, mut naive) = (PendingTable::new(20, 4), Naive::default());
        let mut now = Instant::ZERO;
        for _ in 0..500 {
            now += Duration::from_nanos(random.below(5));
            let key = random.below(8) as u8;
            match random.below(10) {
                0..=5 => {
                    let lifetime = Duration::from_nanos(random.below(60));
                    let nonce = (random.below(6) as u32).into();
                    let waiter = Waiter {
                        arrived_at: now,
                        expires_at: now + lifetime,
                        nonce,
                        pit_token: None,
                        due_at: now,
                        face: None,
                    };
                    let twin = naive.insert(key, waiter.clone());
                    assert_eq!(table.insert(key, waiter), twin, "seed {seed}");
                }
                6 => assert_eq!(table.take(&key), naive.remove(|k, _| *k == key)),
                7 => {
                    let end = key + random.below(4) as u8;
                    let twin = naive.remove(|k, _| (key..end).contains(k)).len();
                    assert_eq!(table.remove(key..end), twin, "seed {seed}");
                }
                _ => {
                    let twin = naive.remove(|_, waiter| waiter.expires_at <= now).len();
                    assert_eq!(table.expire(now), twin, "seed {seed}");
                }
            }
            let oldest = naive.0.iter().find(|(k, _)| *k == key).map(|(_, w)| w);
            assert_eq!(table.oldest(&key), oldest);
            assert_eq!(table.len(), naive.0.len());
            let next = naive.0.iter().map(|(_, waiter)| waiter.expires_at).min();
            assert_eq!(table.next_expiry(), next, "seed {seed}");
        }
    }
}
