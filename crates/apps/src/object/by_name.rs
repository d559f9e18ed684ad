//! Segments by exact name: those that are missing, each once, as fast as the path allows.
//!
//! ```text
//!  NumberedPaths: 0, 1, 2, …      the i-th Interest
//!                 │  │  │
//!                 7  9  10        the i-th segment that was missing when it left
//! ```

use std::collections::BTreeMap;

use namecast_packet::Nonce;
use namecast_packet::lp::NackReason;
use namecast_stream::path::{NumberedConfig, NumberedPaths, NumberedRequest, Received};
use namecast_stream::rate::RateControl;
use namecast_units::{ByteSize, Duration, Instant};

/// Segments that are under way at a time.
const MAX_IN_FLIGHT: usize = 1_024;
/// Time's worth of the allowed rate that may leave at once.
const BURST: Duration = Duration::from_millis(5);
/// After so long without Data the path may be another: requests begin anew, slowly.
const SILENCE: Duration = Duration::from_secs(2);

/// Requests missing segments by name.
#[derive(Debug)]
pub(super) struct ByName {
    paths: NumberedPaths,
    size: ByteSize,
    seed: u64,
    /// What numbers stand for that are out, and numbers of segments that are out.
    segments: BTreeMap<u64, u64>,
    numbers: BTreeMap<u64, (u64, Nonce)>,
    /// Segments before this one were chosen, or are here.
    next: u64,
    heard_at: Instant,
}

impl ByName {
    /// Begins to request up to `count` segments, without end if that is `None`, which are taken to have `size`.
    pub(super) fn new(now: Instant, count: Option<u64>, (size, seed): (ByteSize, u64)) -> Self {
        let mut paths = NumberedPaths::new(NumberedConfig {
            count,
            control: RateControl::Cubic(Default::default()),
            retransmit: true,
            max_in_flight: MAX_IN_FLIGHT,
            burst: BURST,
            expected_size: size,
            seed,
            ..NumberedConfig::default()
        });
        paths.start(now);
        Self {
            paths,
            size,
            seed,
            segments: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: 0,
            heard_at: now,
        }
    }

    /// Takes Data of `segment`. Returns whether it was requested.
    pub(super) fn handle_data(&mut self, now: Instant, segment: u64, received: &Received) -> bool {
        self.heard_at = now;
        let Some((number, _)) = self.numbers.remove(&segment) else {
            return false;
        };
        self.segments.remove(&number);
        self.paths.handle_data(now, number, received).is_ok()
    }

    /// Takes the Interest for `segment` that came back. Returns whether it was waited for.
    pub(super) fn handle_nack(
        &mut self,
        now: Instant,
        (segment, nonce): (u64, Option<Nonce>),
        reason: NackReason,
    ) -> bool {
        let is_congestion = reason == NackReason::Congestion;
        let number = self.numbers.get(&segment).copied();
        number.is_some_and(|(number, _)| self.paths.handle_nack(now, number, nonce, is_congestion))
    }

    /// Takes an answer for `segment` that is of no use: it is requested again at once.
    pub(super) fn handle_forgery(&mut self, now: Instant, segment: u64) {
        if let Some((number, nonce)) = self.numbers.get(&segment).copied() {
            self.paths.handle_nack(now, number, Some(nonce), false);
        }
    }

    /// Does what is due. `missing`: segments that are needed yet, as far as that is known.
    pub(super) fn handle_timeout(&mut self, now: Instant, missing: Option<u64>) {
        if now.since(self.heard_at) >= SILENCE {
            *self = Self::new(now, missing, (self.size, self.seed.wrapping_add(1)));
        }
        self.paths.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let silence = self.heard_at + SILENCE;
        self.paths.poll_timeout().into_iter().chain([silence]).min()
    }

    /// Returns the next segment to request, until `None`. `choose` returns the first one from a number on that is needed.
    pub(super) fn poll_request(
        &mut self,
        mut choose: impl FnMut(u64) -> Option<u64>,
    ) -> Option<(u64, Nonce)> {
        while let Some(NumberedRequest { number, nonce, .. }) = self.paths.poll_request() {
            if let Some(&segment) = self.segments.get(&number) {
                self.numbers.insert(segment, (number, nonce));
                return Some((segment, nonce));
            }
            // Where nothing is to be chosen now, the number is retransmitted as if it were lost.
            if let Some(segment) = choose(self.next) {
                self.next = segment + 1;
                self.segments.insert(number, segment);
                self.numbers.insert(segment, (number, nonce));
                return Some((segment, nonce));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: ByteSize = ByteSize::bytes(4_000);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Odd numbers are missing.
    fn odd(from: u64) -> Option<u64> {
        let next = from | 1;
        (next < 2_001).then_some(next)
    }

    fn requests(by_name: &mut ByName) -> Vec<u64> {
        core::iter::from_fn(|| by_name.poll_request(odd))
            .map(|(segment, _)| segment)
            .collect()
    }

    #[test]
    fn each_missing_segment_is_requested_once_and_again_if_it_is_lost() {
        let mut by_name = ByName::new(at(0), Some(1_000), (SIZE, 1));
        let mut here = Vec::new();
        let mut out = requests(&mut by_name);
        assert_eq!(out[..2], [1, 3]);
        let received = Received::new(SIZE, false);
        let mut lost = None;
        for step in 1..200_000 {
            let now = at(step);
            for segment in core::mem::take(&mut out) {
                // One is lost once.
                if segment == 101 && lost.is_none() {
                    lost = Some(step);
                } else if by_name.handle_data(now, segment, &received) {
                    here.push(segment);
                }
            }
            by_name.handle_timeout(now, Some(1_000 - here.len() as u64));
            out.extend(requests(&mut by_name));
            if here.len() == 1_000 {
                break;
            }
        }
        here.sort_unstable();
        assert_eq!(here, (0..1_000).map(|it| 2 * it + 1).collect::<Vec<_>>());
        assert!(lost.is_some());
        assert!(by_name.numbers.is_empty() && by_name.segments.is_empty());
    }

    /// After two seconds of silence it begins anew with what is missing.
    #[test]
    fn silence_makes_it_begin_anew() {
        let mut by_name = ByName::new(at(0), Some(10), (SIZE, 1));
        assert_eq!(requests(&mut by_name)[0], 1);
        by_name.handle_timeout(at(1_999), Some(10));
        requests(&mut by_name);
        by_name.handle_timeout(at(2_000), Some(10));
        assert_eq!(requests(&mut by_name)[0], 1);
        assert!(!by_name.handle_data(at(2_001), 2, &Received::new(SIZE, false)));
    }
}
