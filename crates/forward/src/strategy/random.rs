//! Random: any next hop, so that load is shared. With equal shares as NFD's, version 1, or with shares by cost.

use namecast_units::Random;
use smallvec::SmallVec;

use super::{Decision, InterestContext, Strategy, one_at_a_time};
use crate::face::FaceId;

pub(super) struct Shares {
    /// In proportion to what a next hop of some cost is chosen.
    weight: fn(cost: u64) -> u64,
}

pub(super) static UNIFORM: Shares = Shares { weight: |_| 1 };
pub(super) static WEIGHTED: Shares = Shares {
    weight: inverse_cost,
};

/// The share of a next hop that costs nothing; divisible finely enough for costs that people choose.
const UNIT: u64 = 1 << 32;

/// 1 / (1 + cost), in parts of [`UNIT`]; one part at least.
fn inverse_cost(cost: u64) -> u64 {
    (UNIT / cost.saturating_add(1)).max(1)
}

impl Strategy for Shares {
    fn after_interest(&self, context: &InterestContext<'_>, random: &mut Random) -> Decision {
        one_at_a_time(context, |_| self.draw(context, random))
    }
}

impl Shares {
    fn draw(&self, context: &InterestContext<'_>, random: &mut Random) -> Option<FaceId> {
        let hops = context.eligible_hops();
        let weigh = |hop: super::NextHop| (hop.face, (self.weight)(hop.cost));
        let mut hops: SmallVec<[_; 4]> = hops.map(weigh).collect();
        if let [.., _, (last, _)] = hops[..]
            && Some(last) == context.avoid
        {
            hops.pop();
        }
        // Faces are fewer than 2³², so the sum stays below 2⁶⁴.
        let total = hops.iter().map(|(_, weight)| weight).sum();
        let mut left = random.below(total);
        hops.into_iter().find_map(|(face, weight)| {
            let is_it = left < weight;
            left = left.saturating_sub(weight);
            is_it.then_some(face)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fall_with_cost_and_never_to_nothing() {
        let shares = [0, 1, 3, 9, UNIT - 1, UNIT, u64::MAX].map(inverse_cost);
        assert_eq!(shares, [UNIT, UNIT / 2, UNIT / 4, 429_496_729, 1, 1, 1]);
    }
}
