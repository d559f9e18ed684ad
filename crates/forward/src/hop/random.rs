//! Random: any next hop, so that load is shared. With equal shares as NFD's, version 1, or with shares by cost.

use namecast_units::Instant;
use smallvec::SmallVec;

use super::{Actions, Context, Hop, merge_nacks, one_at_a_time};
use crate::face::FaceId;
use crate::table::NextHop;

#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// In proportion to what a next hop of some cost is chosen.
    weight: fn(cost: u64) -> u64,
}

pub(super) const UNIFORM: Shares = Shares { weight: |_| 1 };
pub(super) const WEIGHTED: Shares = Shares {
    weight: inverse_cost,
};

/// The share of a next hop that costs nothing; divisible finely enough for costs that people choose.
const UNIT: u64 = 1 << 32;

/// 1 / (1 + cost), in parts of [`UNIT`]; one part at least.
fn inverse_cost(cost: u64) -> u64 {
    (UNIT / cost.saturating_add(1)).max(1)
}

impl Hop for Shares {
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        one_at_a_time(now, context, |context, _| self.draw(context)).into()
    }

    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        merge_nacks(now, context.entry()).into()
    }
}

impl Shares {
    fn draw(self, context: &mut Context<'_>) -> Option<FaceId> {
        let hops = context.eligible_hops();
        let weigh = |hop: NextHop| (hop.face, (self.weight)(hop.cost));
        let mut hops: SmallVec<[_; 4]> = hops.map(weigh).collect();
        if let [.., _, (last, _)] = hops[..]
            && Some(last) == context.fields.avoid_face
        {
            hops.pop();
        }
        // Faces are fewer than 2³², so the sum stays below 2⁶⁴.
        let total = hops.iter().map(|(_, weight)| weight).sum();
        let mut left = context.random.below(total);
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
