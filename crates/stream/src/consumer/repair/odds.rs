//! How likely it is that enough of several packets come through.

/// Loss as a chain of two states: a packet is lost with probability `share`, one right after a lost packet with
/// `persistence`. Independent loss has both alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Losses {
    /// Share of packets lost, below 1.
    pub share: f64,
    /// Share of packets lost among those right after a lost one.
    pub persistence: f64,
}

impl Losses {
    /// The same where an Interest must come through as well as its Data.
    pub(super) fn of_round_trip(self) -> Self {
        let both = |loss: f64| 1.0 - (1.0 - loss) * (1.0 - loss);
        let share = both(self.share);
        Self {
            share,
            // A round trip fails again if the direction that failed does, or else the other one.
            persistence: self.persistence.max(share),
        }
    }

    /// Returns the probability that fewer than `needed` of `sent` packets, one right after the other, come through.
    pub(super) fn fewer(self, sent: usize, needed: usize) -> f64 {
        if needed == 0 {
            return 0.0;
        }
        if sent < needed {
            return 1.0;
        }
        // Lost after one that came: the chain must lose `share` in the long run.
        let share = self.share.clamp(0.0, 0.99);
        let begins = (share * (1.0 - self.persistence) / (1.0 - share)).clamp(0.0, 1.0);
        // came[n], lost[n]: n came so far, and the last one came or was lost. From `needed` on they are not followed.
        let mut came = vec![0.0; needed];
        let mut lost = vec![0.0; needed];
        if needed > 1 {
            came[1] = 1.0 - share;
        }
        lost[0] = share;
        for _ in 1..sent {
            for n in (0..needed).rev() {
                let before = n.checked_sub(1).map_or(0.0, |before| {
                    came[before] * (1.0 - begins) + lost[before] * (1.0 - self.persistence)
                });
                lost[n] = came[n] * begins + lost[n] * self.persistence;
                came[n] = before;
            }
        }
        came.iter().chain(&lost).sum()
    }

    /// Returns the share of `needed` packets that do not come although `more` packets of parity follow them: any `needed` of all would
    /// give them back.
    pub(super) fn left(self, needed: usize, more: usize) -> f64 {
        let sent = needed + more;
        let exactly = |came: usize| self.fewer(sent, came + 1) - self.fewer(sent, came);
        let missing = |came: usize| (sent - came) as f64 / sent.max(1) as f64;
        (0..needed).map(|came| exactly(came) * missing(came)).sum()
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn close(is: f64, expected: f64) {
        assert!((is - expected).abs() < 1e-9, "{is} is not {expected}");
    }

    /// One in ten lost: both of two 1/100; at least one of two 1 − 0.81; more than one of three 3·0.9·0.01 + 0.001.
    #[test]
    fn independent_losses_are_binomial() {
        let losses = Losses {
            share: 0.1,
            persistence: 0.1,
        };
        close(losses.fewer(2, 1), 0.01);
        close(losses.fewer(2, 2), 0.19);
        close(losses.fewer(3, 2), 0.028);
        close(losses.fewer(3, 4), 1.0);
        close(losses.fewer(0, 0), 0.0);
        close(losses.of_round_trip().share, 0.19);
    }

    /// One in ten lost, four and one of parity. Of five, two are lost 10·0.01·0.729 = 0.0729, three 0.0081, four 0.00045, all
    /// 0.00001: (2·0.0729 + 3·0.0081 + 4·0.00045 + 5·0.00001) / 5 = 0.03439. Without parity all that is lost is left.
    #[test]
    fn parity_leaves_what_it_cannot_make_up_for() {
        let losses = Losses {
            share: 0.1,
            persistence: 0.1,
        };
        close(losses.left(4, 1), 0.034_39);
        close(losses.left(4, 0), 0.1);
    }

    /// A burst that has begun goes on with 4 in 5: all of three 0.05·0.8².
    #[test]
    fn bursts_take_several() {
        let losses = Losses {
            share: 0.05,
            persistence: 0.8,
        };
        close(losses.fewer(3, 1), 0.05 * 0.64);
    }

    /// Against 200 000 draws of the chain; σ ≤ √(0.25 / 200 000) = 0.0011.
    #[test]
    fn the_chain_is_the_one_that_is_drawn() {
        let losses = Losses {
            share: 0.2,
            persistence: 0.6,
        };
        let mut random = Random::from_seed(4);
        let mut fewer = 0;
        for _ in 0..200_000 {
            let mut lost = random.chance(0.2);
            let mut came = u32::from(!lost);
            for _ in 1..6 {
                lost = random.chance(if lost { 0.6 } else { 0.1 });
                came += u32::from(!lost);
            }
            fewer += u32::from(came < 4);
        }
        let share = f64::from(fewer) / 200_000.0;
        let told = losses.fewer(6, 4);
        assert!((share - told).abs() < 0.005, "{share} {told}");
    }
}
