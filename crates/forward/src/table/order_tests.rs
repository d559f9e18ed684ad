use std::collections::BTreeSet;

use namecast_units::Random;

use super::*;

/// Places with a name of letters each, or none.
#[derive(Debug, Default)]
struct Places(Vec<Option<(Vec<u8>, u64, Instant)>>);

impl Places {
    fn get(&self, place: usize) -> &(Vec<u8>, u64, Instant) {
        self.0[place].as_ref().unwrap()
    }

    fn free(&mut self) -> usize {
        let free = self.0.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        })
    }
}

impl Named for Places {
    fn name(&self, place: usize) -> &[u8] {
        &self.get(place).0
    }

    fn hash(&self, place: usize) -> u64 {
        self.get(place).1
    }

    fn stale_from(&self, place: usize) -> Instant {
        self.get(place).2
    }
}

/// Some hash of a name, the same each time.
fn hash(name: &[u8]) -> u64 {
    let mut number = 7;
    for &octet in name {
        number = Random::from_seed(number ^ u64::from(octet)).below(u64::MAX);
    }
    number
}

fn random_name(random: &mut Random, letters: u64) -> Vec<u8> {
    let length = 1 + random.below(letters);
    let letter = |random: &mut Random| b'a' + u8::try_from(random.below(3)).unwrap();
    (0..length).map(|_| letter(random)).collect()
}

/// All places in order; checks that the tree is a heap, and that each node knows how long anything below it is fresh.
fn checked(order: &Order, places: &Places) -> Vec<usize> {
    fn visit(order: &Order, places: &Places, link: Link, all: &mut Vec<usize>) -> Instant {
        let Some(node) = order.at(link) else {
            return Instant::ZERO;
        };
        if let Some((above, _)) = link {
            assert!(priority(places, above) >= priority(places, node));
        }
        let before = visit(order, places, Some((node, BEFORE)), all);
        all.push(node);
        let after = visit(order, places, Some((node, AFTER)), all);
        let latest = before.max(after).max(places.stale_from(node));
        assert_eq!(order.nodes[node].stale_from, latest);
        latest
    }
    let mut all = Vec::new();
    visit(order, places, None, &mut all);
    all
}

/// Against a sorted set that is searched from end to end: the same order, and the same answers at every time.
#[test]
fn the_tree_answers_as_a_sorted_set_does() {
    for seed in 0..30 {
        let mut random = Random::from_seed(seed);
        let (mut order, mut places) = (Order::default(), Places::default());
        let mut twin = BTreeSet::new();
        let most = usize::try_from(1 + random.below(150)).unwrap();
        let letters = 1 + random.below(5);
        let mut found = [0; 3];
        for step in 0..3_000 {
            let now = Instant::from_nanos(step / 10);
            let stale_from = match random.chance(0.3) {
                true => Instant::ZERO,
                false => now + core::time::Duration::from_nanos(random.below(40)),
            };
            let picked = random.below(most as u64) as usize;
            let there = twin.iter().nth(picked).map(|&(_, place)| place);
            match there {
                Some(place) if random.chance(0.6) => {
                    order.remove(&places, place);
                    twin.remove(&(places.get(place).0.clone(), place));
                    places.0[place] = None;
                }
                Some(place) => {
                    places.0[place].as_mut().unwrap().2 = stale_from;
                    order.update(&places, place);
                }
                None => {
                    let (name, place) = (random_name(&mut random, letters), places.free());
                    places.0[place] = Some((name.clone(), hash(&name), stale_from));
                    order.add(&places, place);
                    twin.insert((name, place));
                }
            }
            let prefix = random_name(&mut random, letters);
            let mut below = twin.iter().filter(|(name, _)| name.starts_with(&prefix));
            let first = below.clone().next().map(|&(_, place)| place);
            let fresh = below.find(|&&(_, place)| now < places.stale_from(place));
            let fresh = fresh.map(|&(_, place)| place);
            assert_eq!(order.first(&places, &prefix), first, "seed {seed}");
            let answer = order.first_fresh(&places, &prefix, now);
            assert_eq!(answer, fresh, "seed {seed}");
            found[usize::from(first.is_some()) + usize::from(fresh.is_some())] += 1;
            if step % 50 == 0 {
                let all: Vec<_> = twin.iter().map(|&(_, place)| place).collect();
                assert_eq!(checked(&order, &places), all, "seed {seed}");
            }
        }
        assert!(
            found.iter().sum::<u32>() == 3_000 && found[2] > 100,
            "{found:?}"
        );
    }
}

/// Counts how often names are looked at.
struct Counting<'a>(&'a Places, core::cell::Cell<usize>);

impl Named for Counting<'_> {
    fn name(&self, place: usize) -> &[u8] {
        self.1.set(self.1.get() + 1);
        self.0.name(place)
    }

    fn hash(&self, place: usize) -> u64 {
        self.0.hash(place)
    }

    fn stale_from(&self, place: usize) -> Instant {
        self.0.stale_from(place)
    }
}

/// Ten thousand names, in order, backwards or all the same: a random tree of these is 2 · ln n = 18 deep in the middle, and
/// the path to no place is longer than 60. Walking over what is stale takes no longer.
#[test]
fn no_order_of_names_makes_the_tree_deep() {
    let number = |n: u32| n.to_be_bytes().to_vec();
    let orders: [fn(u32) -> u32; 3] = [|n| n, |n| 10_000 - n, |_| 1];
    for name in orders {
        let (mut order, mut places) = (Order::default(), Places::default());
        for n in 0..10_000 {
            let name = number(name(n));
            places
                .0
                .push(Some((name.clone(), hash(&name), Instant::ZERO)));
            order.add(&places, n as usize);
        }
        let depths = (0..10_000).map(|place| order.path(&places, place).0.len());
        let (deepest, sum) = depths.fold((0, 0), |(most, sum), it| (most.max(it), sum + it));
        assert!((18..60).contains(&deepest), "{deepest}");
        assert!((11..25).contains(&(sum / 10_000)), "{sum}");
        // Only the last one is fresh.
        let last = *checked(&order, &places).last().unwrap();
        places.0[last].as_mut().unwrap().2 = Instant::from_nanos(5);
        order.update(&places, last);
        let counting = Counting(&places, core::cell::Cell::new(0));
        let at = |now| order.first_fresh(&counting, &[], Instant::from_nanos(now));
        assert_eq!((at(4), at(5)), (Some(last), None));
        let looks = counting.1.get();
        assert!((1..200).contains(&looks), "{looks}");
    }
}
