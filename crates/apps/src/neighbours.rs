//! Chunks of a flow: those that neighbours have are requested there, and those that are whole here are announced.
//!
//! ```text
//!  ChunksHad of neighbours ─▶ a missing number in one of their chunks ─▶ Interest, within a window of its own ─┬─ Data
//!                                                                                                            ├─ silence, Nack: not of them again
//!  numbers that came ─▶ whole chunks ─▶ ChunksHad, every 500 ms at most                                      └─ forgery, 4 of 8: rest
//! ```
//!
//! After \[SAID\]. The node sends an Interest for a number to a neighbour that has announced its chunk: its hop `any-next`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use namecast_packet::{ChunksHad, Extensions, LpPacket, Name};
use namecast_stream::path::RepairWindow;
use namecast_units::{Duration, Instant};

/// Least pause between two announcements, and the one after which the same are announced again.
const ANNOUNCE: Duration = Duration::from_millis(500);
const REPEAT: Duration = Duration::from_secs(20);
/// Seconds for which an announcement counts.
const EXPIRY: u8 = 60;
/// Forgeries, of the last eight answers, after which nothing is requested of neighbours; and for how long, at first and at most.
const MAX_FORGED: u32 = 4;
const FIRST_REST: Duration = Duration::from_secs(10);
const MAX_REST: Duration = Duration::from_secs(640);

/// Numbers of one flow that neighbours have, and that they may have from here.
#[derive(Debug)]
pub(crate) struct Neighbours {
    flow: Name,
    chunk_size: u32,
    /// Numbers of the flow.
    count: u64,
    window: RepairWindow,
    /// Chunks that neighbours have, and until when that counts.
    available: Vec<(u32, u32)>,
    available_until: Instant,
    /// Numbers that a neighbour did not answer.
    unanswered: BTreeSet<u64>,
    /// The last eight answers: a one for each forgery.
    forged: u8,
    rest: Duration,
    rests_until: Instant,
    /// First and last of each range of whole chunks.
    whole: BTreeMap<u32, u32>,
    announced_at: Option<Instant>,
    /// Whether chunks became whole since the last announcement.
    has_news: bool,
}

impl Neighbours {
    /// Neighbours of a flow of `count` numbers.
    pub(crate) fn new(flow: Name, count: u64, chunk_size: u32) -> Self {
        Self {
            flow,
            chunk_size: chunk_size.max(1),
            count,
            window: RepairWindow::default(),
            available: Vec::new(),
            available_until: Instant::ZERO,
            unanswered: BTreeSet::new(),
            forged: 0,
            rest: Duration::ZERO,
            rests_until: Instant::ZERO,
            whole: BTreeMap::new(),
            announced_at: None,
            has_news: false,
        }
    }

    /// Takes the chunks that neighbours have.
    pub(crate) fn on_announcement(&mut self, now: Instant, value: &[u8]) {
        let had = ChunksHad::decode(&Bytes::copy_from_slice(value));
        let had = had.filter(|it| it.flow == self.flow && it.chunk_size == self.chunk_size);
        if let Some(had) = had {
            self.available = had.ranges;
            self.available_until = now + Duration::from_secs(had.expiry.into());
        }
    }

    /// Takes Data of a number, whoever sent them. Returns whether they were requested of neighbours.
    pub(crate) fn on_data(&mut self, now: Instant, number: u64, is_marked: bool) -> bool {
        self.unanswered.remove(&number);
        self.window.on_data(now, number, is_marked)
    }

    /// Takes whether Data that were requested by name, wherever, were forged.
    pub(crate) fn on_answer(&mut self, now: Instant, is_forged: bool) {
        self.forged = self.forged << 1 | u8::from(is_forged);
        if self.forged.count_ones() >= MAX_FORGED {
            self.forged = 0;
            self.rest = (self.rest * 2).clamp(FIRST_REST, MAX_REST);
            self.rests_until = now + self.rest;
        }
    }

    /// Returns whether nothing is to be requested of neighbours, as some forge.
    pub(crate) fn are_resting(&self, now: Instant) -> bool {
        self.rests_until > now
    }

    /// Takes an Interest that came back. Returns whether it was for neighbours.
    pub(crate) fn on_nack(&mut self, now: Instant, number: u64) -> bool {
        let was_out = self.window.on_nack(now, number);
        if was_out {
            self.unanswered.insert(number);
        }
        was_out
    }

    /// Records what neighbours have not answered in time. Early and repeated calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let lost = self.window.take_lost(now);
        self.unanswered.extend(lost);
    }

    /// Announces the chunk of a number that is here, if it is whole now. `first_missing` returns the first number from one on and before
    /// another that is missing.
    pub(crate) fn on_number(
        &mut self,
        number: u64,
        first_missing: impl Fn(u64, u64) -> Option<u64>,
    ) {
        let size = u64::from(self.chunk_size);
        let Ok(chunk) = u32::try_from(number / size) else {
            return;
        };
        let first = u64::from(chunk) * size;
        let last = (first + size).min(self.count);
        if number < self.count && first_missing(first, last).is_none() {
            self.has_news |= self.add(chunk);
        }
    }

    /// Adds a whole chunk. Returns whether it is new.
    fn add(&mut self, chunk: u32) -> bool {
        let before = self.whole.range(..=chunk).next_back();
        let before = before.map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| chunk <= last) {
            return false;
        }
        let next = chunk.checked_add(1);
        let after = next.and_then(|next| self.whole.remove(&next));
        let first = match before {
            Some((first, last)) if last + 1 == chunk => first,
            _ => chunk,
        };
        self.whole.insert(first, after.unwrap_or(chunk));
        true
    }

    /// Returns whether a number is requested of neighbours.
    pub(crate) fn is_out(&self, number: u64) -> bool {
        self.window.is_out(number)
    }

    /// Returns the first number from `from` on that a neighbour did not answer.
    pub(crate) fn next_unanswered(&self, from: u64) -> Option<u64> {
        self.unanswered.range(from..).next().copied()
    }

    /// Returns whether neighbours have all numbers that are missing before the end.
    pub(crate) fn have_all(
        &self,
        now: Instant,
        first_missing: impl Fn(u64) -> Option<u64>,
    ) -> bool {
        let mut from = 0;
        while let Some(number) = first_missing(from) {
            if !self.may_be_asked(now) || self.in_chunks(number) != Some(number) {
                return false;
            }
            // Chunk by chunk: within one they have all.
            let size = u64::from(self.chunk_size);
            from = (number / size + 1) * size;
        }
        true
    }

    fn may_be_asked(&self, now: Instant) -> bool {
        self.available_until > now && !self.are_resting(now)
    }

    /// Returns the next number from `from` on to request of neighbours, until `None`; `from` moves on. `first_missing` returns the first
    /// missing number from one on, and numbers that are out elsewhere are left alone.
    pub(crate) fn poll_request(
        &mut self,
        now: Instant,
        from: &mut u64,
        first_missing: impl Fn(u64) -> Option<u64>,
        is_out_elsewhere: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        while self.may_be_asked(now) && self.window.has_room() {
            let number = first_missing(*from).and_then(|it| self.in_chunks(it))?;
            *from = number;
            if first_missing(number) == Some(number) {
                *from += 1;
                let is_free = !self.is_out(number) && !is_out_elsewhere(number);
                if is_free && !self.unanswered.contains(&number) {
                    self.window.on_sent(now, number);
                    return Some(number);
                }
            }
        }
        None
    }

    /// Returns the first number from `number` on in a chunk that neighbours have.
    fn in_chunks(&self, number: u64) -> Option<u64> {
        let size = u64::from(self.chunk_size);
        let chunk = number / size;
        let mut ranges = self.available.iter();
        let &(range, _) = ranges.find(|(_, last)| chunk <= u64::from(*last))?;
        Some(number.max(u64::from(range) * size))
    }

    /// Returns a frame that tells the node which chunks are whole, if one is due.
    pub(crate) fn poll_announcement(&mut self, now: Instant) -> Option<Bytes> {
        self.announce_at().filter(|at| *at <= now)?;
        self.announced_at = Some(now);
        self.has_news = false;
        let ranges = self.whole.iter().map(|(first, last)| (*first, *last));
        let had = ChunksHad {
            flow: self.flow.clone(),
            chunk_size: self.chunk_size,
            hops_left: ChunksHad::MAX_HOPS,
            expiry: EXPIRY,
            ranges: ranges.take(ChunksHad::MAX_RANGES).collect(),
        };
        let mut packet = LpPacket::default();
        packet.extensions.set(Extensions::CHUNKS_HAD, had.encode());
        Some(packet.encode())
    }

    fn announce_at(&self) -> Option<Instant> {
        match (self.has_news, self.announced_at) {
            (true, None) => Some(Instant::ZERO),
            (true, Some(at)) => Some(at + ANNOUNCE),
            (false, at) => at.map(|at| at + REPEAT),
        }
    }

    /// Returns when something is due next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let announce = self.announce_at();
        self.window.poll_timeout().into_iter().chain(announce).min()
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn flow() -> Name {
        "/f".parse().unwrap()
    }

    fn had(chunk_size: u32, ranges: &[(u32, u32)]) -> Bytes {
        let had = ChunksHad {
            flow: flow(),
            chunk_size,
            hops_left: 1,
            expiry: 60,
            ranges: ranges.to_vec(),
        };
        had.encode()
    }

    fn announced(neighbours: &mut Neighbours, now: Instant) -> Option<Vec<(u32, u32)>> {
        let frame = neighbours.poll_announcement(now)?;
        let packet = LpPacket::decode(frame).unwrap();
        let value = packet.extensions.get(Extensions::CHUNKS_HAD).unwrap();
        Some(
            ChunksHad::decode(&Bytes::copy_from_slice(value))
                .unwrap()
                .ranges,
        )
    }

    /// Numbers in any order, some twice: the ranges are those of chunks without a missing number, the last of which is shorter.
    #[test]
    fn whole_chunks_are_what_a_look_at_all_numbers_finds() {
        for seed in 0..100 {
            let mut random = Random::from_seed(seed);
            let (count, size) = (1 + random.below(200), 1 + random.below(9));
            let mut here = vec![false; count as usize];
            let mut neighbours = Neighbours::new(flow(), count, size as u32);
            for step in 0..2 * count {
                let number = random.below(count);
                here[number as usize] = true;
                let missing = |from: u64, end: u64| (from..end).find(|it| !here[*it as usize]);
                neighbours.on_number(number, missing);
                let mut expected: Vec<(u32, u32)> = Vec::new();
                for (chunk, numbers) in (0..).zip(here.chunks(size as usize)) {
                    match expected.last_mut() {
                        _ if numbers.contains(&false) => {}
                        Some((_, last)) if *last + 1 == chunk => *last = chunk,
                        _ => expected.push((chunk, chunk)),
                    }
                }
                let found: Vec<_> = neighbours.whole.clone().into_iter().collect();
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn news_are_announced_twice_a_second_and_the_rest_every_twenty() {
        let mut neighbours = Neighbours::new(flow(), 25, 10);
        let all = |_: u64, _: u64| None;
        assert_eq!(announced(&mut neighbours, at(1)), None);
        neighbours.on_number(24, all);
        assert_eq!(announced(&mut neighbours, at(1)), Some(vec![(2, 2)]));
        neighbours.on_number(3, all);
        neighbours.on_number(4, all);
        let due = at(1) + ANNOUNCE;
        assert_eq!(neighbours.poll_timeout(), Some(due));
        assert_eq!(announced(&mut neighbours, at(1)), None);
        assert_eq!(announced(&mut neighbours, due), Some(vec![(0, 0), (2, 2)]));
        assert_eq!(neighbours.poll_timeout(), Some(due + REPEAT));
        neighbours.on_number(u64::MAX, all);
        neighbours.on_number(25, all);
        assert_eq!(announced(&mut neighbours, at(20)), None);
    }

    /// Announcements without end cost one look at the missing numbers each.
    #[test]
    fn only_what_is_missing_and_theirs_is_requested() {
        let mut neighbours = Neighbours::new(flow(), 1_000_000, 10);
        neighbours.on_announcement(at(1), &had(10, &[(1, 1), (3, u32::MAX)]));
        // Odd numbers are missing. 2 at a time; 11 is out elsewhere.
        let missing = |from: u64| Some(from | 1).filter(|it| *it < 1_000_000);
        let mut from = 0;
        let mut next = |neighbours: &mut Neighbours, now| {
            neighbours.poll_request(now, &mut from, missing, |it| it == 11)
        };
        assert_eq!(next(&mut neighbours, at(61)), None, "it is outdated");
        assert_eq!(next(&mut neighbours, at(2)), Some(13));
        assert_eq!(next(&mut neighbours, at(2)), Some(15));
        assert_eq!(next(&mut neighbours, at(2)), None, "no room");
        assert!(neighbours.on_data(at(2), 13, false) && neighbours.on_data(at(2), 15, false));
        let more: Vec<_> = core::iter::from_fn(|| next(&mut neighbours, at(2))).collect();
        assert_eq!(more, [17, 19, 31, 33]);
        let have_all = |it: &Neighbours, first| {
            it.have_all(at(2), |from| Some(from.max(first)).filter(|it| *it < 200))
        };
        assert!(have_all(&neighbours, 30) && !have_all(&neighbours, 29));
        // Another size of chunks is not comparable.
        neighbours.on_announcement(at(2), &had(20, &[(0, 0)]));
        assert!(have_all(&neighbours, 30));
    }

    /// Numbers that neighbours did not answer are not requested of them again. After four forgeries nothing is, longer each time.
    #[test]
    fn neighbours_that_forge_rest() {
        let mut neighbours = Neighbours::new(flow(), 1_000, 10);
        neighbours.on_announcement(at(0), &had(10, &[(0, 99)]));
        let missing = |from: u64| Some(from).filter(|it| *it < 1_000);
        let next = |neighbours: &mut Neighbours, now| {
            neighbours.poll_request(now, &mut 0, missing, |_| false)
        };
        for (start, rest) in [(1, 10), (11, 20)] {
            for _ in 0..4 {
                let number = next(&mut neighbours, at(start)).unwrap();
                neighbours.on_answer(at(start), true);
                neighbours.on_answer(at(start), false);
                assert!(neighbours.on_nack(at(start), number));
                assert!(!neighbours.on_nack(at(start), number), "once each");
            }
            assert_eq!(next(&mut neighbours, at(start + rest - 1)), None);
            assert!(!neighbours.have_all(at(start + rest - 1), missing));
        }
        assert_eq!(next(&mut neighbours, at(31)), Some(8));
        assert_eq!(neighbours.next_unanswered(5), Some(5));
        neighbours.handle_timeout(at(40));
        assert_eq!(neighbours.next_unanswered(8), Some(8));
        assert!(!neighbours.on_data(at(40), 8, false), "it is out no more");
        assert_eq!(neighbours.next_unanswered(8), None);
    }
}
