//! Names against a naive twin: a vector of pairs, compared component by component.

use core::cmp::Ordering;

use namecast_packet::tlv::Writer;
use namecast_packet::{Component, Name};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use crate::config;
use crate::generate::{Pair, name_of, pairs};

/// Canonical order as the specification words it.
fn naive_order(left: &[Pair], right: &[Pair]) -> Ordering {
    for ((kind, value), (other_kind, other)) in left.iter().zip(right) {
        let by_type = kind.cmp(other_kind);
        let by_length = value.len().cmp(&other.len());
        let unequal = by_type.then(by_length).then_with(|| value.cmp(other));
        if unequal.is_ne() {
            return unequal;
        }
    }
    left.len().cmp(&right.len())
}

fn pairs_of(name: &Name) -> Vec<Pair> {
    let pair = |component: Component<'_>| (component.kind, component.value.to_vec());
    name.components().map(pair).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn order_is_the_naive_one(left in pairs(), right in pairs()) {
        let order = name_of(&left).cmp(&name_of(&right));
        prop_assert_eq!(order, naive_order(&left, &right));
    }

    /// Of two names that share a beginning, as unrelated ones seldom do.
    #[test]
    fn order_and_prefixes_hold_for_relatives(
        base in pairs(), left in pairs(), right in pairs(), cut in any::<usize>(),
    ) {
        let left = [base.clone(), left].concat();
        let right = [base, right].concat();
        let (a, b) = (name_of(&left), name_of(&right));
        prop_assert_eq!(a.cmp(&b), naive_order(&left, &right));
        prop_assert_eq!(a.is_prefix_of(&b), right.starts_with(&left));

        let cut = cut % (left.len() + 2);
        let head = &left[..cut.min(left.len())];
        prop_assert_eq!(pairs_of(&a.prefix(cut)), head);
        prop_assert!(a.prefix(cut).is_prefix_of(&a));
    }

    #[test]
    fn components_are_those_put_in(pairs in pairs(), index in 0..6_usize) {
        let name = name_of(&pairs);
        prop_assert_eq!(pairs_of(&name), &pairs[..]);
        prop_assert_eq!(name.len(), pairs.len());
        prop_assert_eq!(name.is_empty(), pairs.is_empty());
        let pair = |c: Component<'_>| (c.kind, c.value.to_vec());
        prop_assert_eq!(name.get(index).map(pair), pairs.get(index).cloned());
        prop_assert_eq!(name.last().map(pair), pairs.last().cloned());
        let parent = &pairs[..pairs.len().saturating_sub(1)];
        prop_assert_eq!(pairs_of(&name.parent()), parent);
        let prefixes: Vec<_> = name.prefixes().map(|prefix| pairs_of(&prefix)).collect();
        let naive: Vec<_> = (0..=pairs.len()).map(|count| pairs[..count].to_vec()).collect();
        prop_assert_eq!(prefixes, naive);
    }

    #[test]
    fn names_survive_wire_and_uri(pairs in pairs()) {
        let name = name_of(&pairs);
        let mut writer = Writer::default();
        name.encode(&mut writer);
        prop_assert_eq!(writer.len(), name.encoded_size());
        prop_assert_eq!(Name::decode(&writer.finish()), Ok(name.clone()));
        prop_assert_eq!(name.to_string().parse(), Ok(name));
    }
}
