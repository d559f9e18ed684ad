//! Puzzles that strangers solve when too many set up calls: cheap to check, and as dear to solve as the load demands.
//!
//! A solution is a number such that a digest over it, the caller's ephemeral key and what the callee gave begins with so many zero
//! bits, as Tor's onion services ask for. It is of one set-up, and of a few seconds.

use hkdf::Hkdf;
use namecast_units::{Duration, Instant};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// In front of what is digested.
const LABEL: &[u8] = b"namecast puzzle, version 1:";
/// How long a seed is given out; it counts for as long again.
const EPOCH: Duration = Duration::from_secs(30);
/// The most zero bits that are asked for, or searched for: four million digests on average.
pub(super) const MAX_DIFFICULTY: u8 = 22;
/// Digests that a caller computes for one call at most: with the most difficult puzzle, one of 3000 searches is longer.
const MAX_STEPS: u64 = 1 << 25;
/// Digests between two looks at the time.
const SLICE: u64 = 1 << 13;

/// What is to be solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Puzzle {
    pub(super) seed: [u8; 16],
    /// Zero bits that the digest begins with.
    pub(super) difficulty: u8,
}

/// The seed of a puzzle, and the number that solves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solution {
    pub(super) seed: [u8; 16],
    pub(super) number: u64,
}

impl Solution {
    /// Zero bits that the digest begins with.
    fn difficulty(&self, ephemeral: &[u8; 32]) -> u8 {
        let digest = Sha256::new_with_prefix(LABEL)
            .chain_update(self.seed)
            .chain_update(ephemeral)
            .chain_update(self.number.to_be_bytes())
            .finalize();
        let zeros = digest.iter().take_while(|it| **it == 0).count();
        let rest = digest.get(zeros).map_or(0, |it| it.leading_zeros());
        u8::try_from(zeros * 8 + rest as usize).unwrap_or(u8::MAX)
    }
}

/// A caller's search, within a bound for all puzzles of one call.
#[derive(Debug)]
pub(super) struct Search {
    puzzle: Puzzle,
    ephemeral: [u8; 32],
    next: u64,
}

impl Search {
    /// Begins a search; `None` if the difficulty exceeds the bound for callees.
    pub(super) fn new(puzzle: Puzzle, ephemeral: [u8; 32]) -> Option<Self> {
        (puzzle.difficulty <= MAX_DIFFICULTY).then_some(Self {
            puzzle,
            ephemeral,
            next: 0,
        })
    }

    /// Tries some numbers, which are counted in `steps`.
    ///
    /// # Errors
    /// If too many were tried.
    pub(super) fn advance(&mut self, steps: &mut u64) -> Result<Option<Solution>, TooHard> {
        *steps += SLICE;
        for number in self.next..self.next + SLICE {
            let solution = Solution {
                seed: self.puzzle.seed,
                number,
            };
            if solution.difficulty(&self.ephemeral) >= self.puzzle.difficulty {
                return Ok(Some(solution));
            }
        }
        self.next += SLICE;
        if *steps >= MAX_STEPS {
            return Err(TooHard);
        }
        Ok(None)
    }
}

/// The puzzles of one call take more than a caller gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooHard;

/// What a stranger's set-up meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is answered.
    Admitted,
    /// It is not: too many others have solved puzzles.
    Full,
    /// It has to solve a puzzle.
    Asked(Puzzle),
}

/// Limits of a [`Gate`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Set-ups a second without a puzzle.
    pub(super) free: u32,
    /// Set-ups a second with a solved one.
    pub(super) solved: u32,
    /// Zero bits of the easiest puzzle.
    pub(super) min_difficulty: u8,
}

/// Lets strangers through: so many a second, then those that have solved a puzzle. The more they are, the harder it becomes.
#[derive(Debug)]
pub(super) struct Gate {
    secret: Zeroizing<[u8; 32]>,
    limits: Limits,
    second: u64,
    /// Of this second: set-ups without a puzzle, solutions, and solutions that were let through.
    free: u32,
    solutions: u32,
    solved: u32,
    /// Difficulty now, and in the second before, which still counts.
    difficulties: [u8; 2],
}

impl Gate {
    pub(super) fn new(secret: Zeroizing<[u8; 32]>, limits: Limits) -> Self {
        let limits = Limits {
            min_difficulty: limits.min_difficulty.min(MAX_DIFFICULTY),
            ..limits
        };
        Self {
            secret,
            limits,
            second: 0,
            free: 0,
            solutions: 0,
            solved: 0,
            difficulties: [limits.min_difficulty; 2],
        }
    }

    /// Judges the set-up with `ephemeral`. Whatever has a solution that counts goes first to those.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        ephemeral: &[u8; 32],
        solution: Option<&Solution>,
    ) -> Verdict {
        self.advance(now);
        if solution.is_some_and(|it| self.is_solved(now, ephemeral, it)) {
            self.solutions += 1;
            if self.solved >= self.limits.solved {
                return Verdict::Full;
            }
            self.solved += 1;
            return Verdict::Admitted;
        }
        if solution.is_none() && self.free < self.limits.free {
            self.free += 1;
            return Verdict::Admitted;
        }
        Verdict::Asked(Puzzle {
            seed: self.seed(epoch(now)),
            difficulty: self.difficulties[0],
        })
    }

    /// Returns whether a puzzle of the last seconds is solved.
    pub(super) fn is_solved(&self, now: Instant, ephemeral: &[u8; 32], it: &Solution) -> bool {
        let least = self.difficulties.iter().min();
        let epoch = epoch(now);
        let is_current = it.seed == self.seed(epoch)
            || epoch
                .checked_sub(1)
                .is_some_and(|before| it.seed == self.seed(before));
        is_current && least.is_some_and(|least| it.difficulty(ephemeral) >= *least)
    }

    /// More solutions than are let through without a puzzle make the next ones harder by one bit, and each doubling beyond by one
    /// more; fewer than half make them easier.
    fn advance(&mut self, now: Instant) {
        let second = now.since(Instant::ZERO).as_secs();
        while self.second < second {
            let limit = self.limits.free.max(1);
            let [last, before] = self.difficulties;
            let next = if self.solutions > limit {
                // Solutions of the second before count, too: what is asked now may have had no effect yet.
                let doublings = (self.solutions / limit).ilog2().max(1) as u8;
                let enough = last.min(before).saturating_add(doublings);
                enough.max(last).min(MAX_DIFFICULTY)
            } else if self.solutions * 2 < limit {
                last.saturating_sub(1).max(self.limits.min_difficulty)
            } else {
                last
            };
            self.difficulties = [next, last];
            (self.free, self.solutions, self.solved) = (0, 0, 0);
            let is_settled = self.difficulties == [self.limits.min_difficulty; 2];
            self.second = if is_settled { second } else { self.second + 1 };
        }
    }

    fn seed(&self, epoch: u64) -> [u8; 16] {
        let mut seed = [0; 16];
        let info = [&b"namecast puzzle seed"[..], &epoch.to_be_bytes()];
        Hkdf::<Sha256>::new(None, &*self.secret)
            .expand_multi_info(&info, &mut seed)
            .expect("HKDF gives up to 8160 octets");
        seed
    }
}

fn epoch(now: Instant) -> u64 {
    now.since(Instant::ZERO).as_secs() / EPOCH.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        free: 2,
        solved: 10,
        min_difficulty: 6,
    };

    fn gate() -> Gate {
        Gate::new(Zeroizing::new([1; 32]), LIMITS)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A puzzle that `ephemeral` is asked now.
    fn asked(gate: &mut Gate, now: Instant, ephemeral: [u8; 32]) -> Puzzle {
        for _ in 0..=LIMITS.free {
            if let Verdict::Asked(puzzle) = gate.judge(now, &ephemeral, None) {
                return puzzle;
            }
        }
        panic!("no puzzle");
    }

    fn solved(puzzle: Puzzle, ephemeral: [u8; 32]) -> Solution {
        let mut search = Search::new(puzzle, ephemeral).unwrap();
        loop {
            if let Some(solution) = search.advance(&mut 0).unwrap() {
                return solution;
            }
        }
    }

    #[test]
    fn who_is_too_many_solves_a_puzzle() {
        let mut gate = gate();
        let free = [(); 3].map(|()| gate.judge(at(0), &[7; 32], None));
        assert_eq!(free[..2], [Verdict::Admitted; 2]);
        let Verdict::Asked(puzzle) = free[2] else {
            panic!("{free:?}");
        };
        assert_eq!(puzzle.difficulty, 6);
        let solution = solved(puzzle, [7; 32]);
        assert!(solution.difficulty(&[7; 32]) >= 6);
        let verdict = gate.judge(at(10), &[7; 32], Some(&solution));
        assert_eq!(verdict, Verdict::Admitted);
        // The next second has two places again, which are not for those who have solved nothing.
        let wrong = Solution {
            seed: [0; 16],
            ..solution
        };
        let verdict = gate.judge(at(1_000), &[7; 32], Some(&wrong));
        assert!(matches!(verdict, Verdict::Asked(_)));
        assert_eq!(gate.judge(at(1_000), &[7; 32], None), Verdict::Admitted);
    }

    /// A solution is of one ephemeral key, and is forgotten after one to two epochs.
    #[test]
    fn a_solution_is_of_one_set_up_and_time() {
        let mut gate = gate();
        let mut others = 0;
        for key in 0..64 {
            let puzzle = asked(&mut gate, at(0), [key; 32]);
            let solution = solved(puzzle, [key; 32]);
            assert!(gate.is_solved(at(59_999), &[key; 32], &solution));
            assert!(!gate.is_solved(at(60_000), &[key; 32], &solution));
            others += u32::from(gate.is_solved(at(0), &[key + 1; 32], &solution));
        }
        assert!(others < 8, "one in 64 by chance: {others}");
    }

    /// Eight times as many solutions as places without: three bits more. It takes as many seconds without any to become easy again.
    #[test]
    fn difficulty_follows_load() {
        let mut gate = gate();
        let mut full = 0;
        for number in 0..16_u8 {
            let puzzle = asked(&mut gate, at(0), [number; 32]);
            let solution = solved(puzzle, [number; 32]);
            let verdict = gate.judge(at(0), &[number; 32], Some(&solution));
            full += u32::from(verdict == Verdict::Full);
        }
        assert_eq!(full, 6);
        let difficulty = |gate: &mut Gate, time| asked(gate, at(time), [99; 32]).difficulty;
        assert_eq!(difficulty(&mut gate, 1_000), 9);
        // What was asked before counts for a second more.
        assert_eq!(gate.difficulties, [9, 6]);
        assert_eq!(difficulty(&mut gate, 3_000), 7);
        assert_eq!(difficulty(&mut gate, 4_000), 6);
        assert_eq!(difficulty(&mut gate, 1_000_000_000), 6);
    }

    /// Attackers who compute 30 000 digests a second, and honest callers with a fresh set-up each: within three seconds so few of the
    /// attackers' solutions count that a caller who solves the puzzle of now is admitted.
    #[test]
    fn attackers_that_solve_price_themselves_out() {
        let limits = Limits {
            free: 2,
            solved: 10,
            min_difficulty: 4,
        };
        let mut gate = Gate::new(Zeroizing::new([1; 32]), limits);
        let mut admitted = Vec::new();
        for second in 0..6_u64 {
            let mut digests = 30_000_u64;
            let mut number = 0_u64;
            let mut key = [second as u8; 32];
            while digests > 0 {
                // Spread over the second, all before the honest caller.
                let now = at(second * 1_000 + 900);
                number += 1;
                key[..8].copy_from_slice(&number.to_be_bytes());
                let puzzle = Puzzle {
                    seed: gate.seed(epoch(now)),
                    difficulty: gate.difficulties.iter().copied().min().unwrap_or(0),
                };
                let solution = solved(puzzle, key);
                digests = digests.saturating_sub(solution.number + 1);
                gate.judge(now, &key, Some(&solution));
            }
            let (now, key) = (at(second * 1_000 + 950), [200 + second as u8; 32]);
            gate.judge(now, &key, None);
            let puzzle = Puzzle {
                seed: gate.seed(epoch(now)),
                difficulty: gate.difficulties[0],
            };
            let solution = solved(puzzle, key);
            admitted.push(gate.judge(now, &key, Some(&solution)) == Verdict::Admitted);
        }
        assert!(
            !admitted[0] && admitted[3] && admitted[4] && admitted[5],
            "{admitted:?}"
        );
    }

    #[test]
    fn a_search_has_an_end() {
        let puzzle = |difficulty| Puzzle {
            seed: [0; 16],
            difficulty,
        };
        assert!(Search::new(puzzle(MAX_DIFFICULTY + 1), [0; 32]).is_none());
        let mut search = Search::new(puzzle(MAX_DIFFICULTY), [0; 32]).unwrap();
        let mut steps = MAX_STEPS - SLICE;
        assert_eq!(search.advance(&mut steps), Err(TooHard));
    }
}
