//! Which chunks of flows neighbours have, and who gets Interests for what is missing.
//!
//! ```text
//!  ChunksHad from f ──▶ bitmap of (flow, f) ──▶ every 500 ms at most: to g the union of all but g's own, one hop less unless g is on
//!                                               this machine, and for the seconds that are left
//!  Interest for seq=n ─▶ a face with the bit of n ÷ chunk size: the nearest, not who asks, once
//!                        then whatever the strategy says
//!  no answer, 4 of 8 ──▶ the face gets no such Interest for 10 s, doubling
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use namecast_packet::{ChunksHad, Name};
use namecast_units::{Duration, Instant};

use crate::face::FaceId;

/// Chunks of a flow that a bitmap has room for: 8 KiB. Those beyond are not remembered.
const MAX_CHUNKS: u32 = 65_536;
/// Flows of one face, and pairs of a flow and a face, that are remembered.
const MAX_FLOWS_OF_FACE: usize = 256;
const MAX_HOLDERS: usize = 4_096;
/// Pause between two announcements of a flow to one neighbour.
const PAUSE: Duration = Duration::from_millis(500);
/// Unanswered Interests, of the last eight, after which a face gets none; and for how long, at first and at most.
const MAX_UNANSWERED: u32 = 4;
const FIRST_REST: Duration = Duration::from_secs(10);
const MAX_REST: Duration = Duration::from_secs(640);

/// Chunks of all flows.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// By the TLV-VALUE of their names.
    flows: BTreeMap<Bytes, Holders>,
    /// Pairs of a flow and a face.
    count: usize,
    faces: BTreeMap<FaceId, Record>,
    /// No flow is due earlier.
    pass_at: Option<Instant>,
}

/// The neighbours that have chunks of one flow.
#[derive(Debug)]
struct Holders {
    flow: Name,
    all: Vec<Holder>,
    /// When the neighbours may hear the union anew, if that is due.
    pass_at: Option<Instant>,
    passed_at: Option<Instant>,
}

/// What one neighbour announced of one flow.
#[derive(Debug)]
struct Holder {
    face: FaceId,
    chunk_size: u32,
    hops_left: u8,
    until: Instant,
    bits: Vec<u64>,
}

/// What became of Interests to one face.
#[derive(Debug, Default)]
struct Record {
    flows: usize,
    /// The last eight: a one for each that was not answered.
    unanswered: u8,
    rest: Duration,
    rests_until: Instant,
}

impl Holder {
    fn has(&self, chunk: u64) -> bool {
        let word = self.bits.get((chunk / 64) as usize);
        word.is_some_and(|word| word & 1 << (chunk % 64) != 0)
    }

    fn set(&mut self, ranges: &[(u32, u32)]) {
        self.bits.clear();
        for &(first, last) in ranges {
            let last = last.min(MAX_CHUNKS - 1);
            if first > last {
                return;
            }
            self.bits.resize(last as usize / 64 + 1, 0);
            for chunk in first..=last {
                self.bits[chunk as usize / 64] |= 1 << (chunk % 64);
            }
        }
    }
}

/// The ranges of ones.
fn ranges(bits: &[u64]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let ones =
        (0..bits.len() as u32 * 64).filter(|it| bits[*it as usize / 64] & 1 << (it % 64) != 0);
    for chunk in ones {
        let is_full = ranges.len() == ChunksHad::MAX_RANGES;
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == chunk => *last = chunk,
            _ if is_full => return ranges,
            _ => ranges.push((chunk, chunk)),
        }
    }
    ranges
}

impl Chunks {
    /// Returns whether nobody has announced anything.
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Takes an announcement of a neighbour, which replaces the one before. Returns whether there is room for it.
    pub(super) fn on_announcement(&mut self, now: Instant, face: FaceId, had: &ChunksHad) -> bool {
        let known = self.flows.get(&had.flow.value()[..]);
        let is_known = known.is_some_and(|it| it.all.iter().any(|holder| holder.face == face));
        if !is_known {
            let record = self.faces.entry(face).or_default();
            if record.flows >= MAX_FLOWS_OF_FACE || self.count >= MAX_HOLDERS {
                return false;
            }
            record.flows += 1;
            self.count += 1;
        }
        let holders = match self.flows.entry(Bytes::copy_from_slice(had.flow.value())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Holders {
                flow: had.flow.detached(),
                all: Vec::new(),
                pass_at: None,
                passed_at: None,
            }),
        };
        let place = holders.all.iter().position(|it| it.face == face);
        let place = place.unwrap_or_else(|| {
            holders.all.push(Holder {
                face,
                chunk_size: 1,
                hops_left: 0,
                until: now,
                bits: Vec::new(),
            });
            holders.all.len() - 1
        });
        let holder = &mut holders.all[place];
        holder.chunk_size = had.chunk_size;
        holder.hops_left = had.hops_left;
        holder.until = now + Duration::from_secs(had.expiry.into());
        holder.set(&had.ranges);
        let next = holders.passed_at.map_or(now, |at| now.max(at + PAUSE));
        let due = *holders.pass_at.get_or_insert(next);
        self.pass_at = self.pass_at.map_or(Some(due), |at| Some(at.min(due)));
        true
    }

    /// Returns the nearest face that has number `number` of a flow, of those that `may_be_asked`.
    pub(super) fn holder(
        &self,
        now: Instant,
        (flow, number): (&[u8], u64),
        may_be_asked: impl Fn(FaceId) -> bool,
    ) -> Option<FaceId> {
        let holders = self.flows.get(flow)?;
        let rests = |face| (self.faces.get(&face)).is_some_and(|it| it.rests_until > now);
        let able = holders.all.iter().filter(|it| {
            let has = it.until > now && it.has(number / u64::from(it.chunk_size));
            has && !rests(it.face) && may_be_asked(it.face)
        });
        // Who has most hops left is nearest.
        let nearest = able.min_by_key(|it| (u8::MAX - it.hops_left, it.face));
        nearest.map(|it| it.face)
    }

    /// Returns whether a face has announced chunks of a flow.
    pub(super) fn has_announced(&self, flow: &[u8], face: FaceId) -> bool {
        let holders = self.flows.get(flow);
        holders.is_some_and(|it| it.all.iter().any(|holder| holder.face == face))
    }

    /// Records whether an Interest that went to a face was answered by it.
    pub(super) fn on_outcome(&mut self, now: Instant, face: FaceId, was_answered: bool) {
        let Some(record) = self.faces.get_mut(&face) else {
            return;
        };
        record.unanswered = record.unanswered << 1 | u8::from(!was_answered);
        if was_answered {
            record.rest = Duration::ZERO;
        } else if record.unanswered.count_ones() >= MAX_UNANSWERED && record.rests_until <= now {
            record.rest = (record.rest * 2).clamp(FIRST_REST, MAX_REST);
            record.rests_until = now + record.rest;
            record.unanswered = 0;
        }
    }

    /// Forgets a face.
    pub(super) fn remove_face(&mut self, face: FaceId) {
        self.remove(|holder| holder.face == face);
        self.faces.remove(&face);
    }

    /// Forgets what is outdated.
    pub(super) fn expire(&mut self, now: Instant) {
        self.remove(|holder| holder.until <= now);
    }

    fn remove(&mut self, is_gone: impl Fn(&Holder) -> bool) {
        let (faces, count) = (&mut self.faces, &mut self.count);
        self.flows.retain(|_, holders| {
            holders.all.retain(|holder| {
                let is_gone = is_gone(holder);
                if is_gone {
                    *count -= 1;
                    if let Some(record) = faces.get_mut(&holder.face) {
                        record.flows -= 1;
                    }
                }
                !is_gone
            });
            !holders.all.is_empty()
        });
        // A face that rests is remembered, or it would rest no more once it announces anew.
        self.faces
            .retain(|_, it| it.flows > 0 || !it.rest.is_zero());
    }

    /// Returns when [`due`](Self::due) has something to pass on.
    pub(super) const fn pass_at(&self) -> Option<Instant> {
        self.pass_at
    }

    /// Passes on the chunks of a flow once more, a pause later.
    pub(super) fn pass_again(&mut self, now: Instant, flow: &Bytes) {
        if let Some(holders) = self.flows.get_mut(flow) {
            let due = *holders.pass_at.get_or_insert(now + PAUSE);
            self.pass_at = self.pass_at.map_or(Some(due), |at| Some(at.min(due)));
        }
    }

    /// Returns the flows whose chunks are to be passed on now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Bytes> {
        if self.pass_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let due = self.flows.iter_mut().filter_map(|(flow, holders)| {
            holders.pass_at.take_if(|at| *at <= now)?;
            holders.passed_at = Some(now);
            Some(flow.clone())
        });
        let due = due.collect();
        self.pass_at = self.flows.values().filter_map(|it| it.pass_at).min();
        due
    }

    /// Returns what `face` hears of a flow: chunks that others have. A face of this machine is no hop.
    pub(super) fn union(
        &self,
        now: Instant,
        flow: &Bytes,
        (face, is_local): (FaceId, bool),
    ) -> Option<ChunksHad> {
        let holders = self.flows.get(flow)?;
        let seconds_left = |it: &Holder| it.until.since(now).as_secs();
        let others = holders.all.iter().filter(|it| {
            let counts = it.face != face && seconds_left(it) > 0;
            counts && (is_local || it.hops_left > 0)
        });
        let mut others = others.peekable();
        let first = others.peek()?;
        let mut had = ChunksHad {
            flow: holders.flow.clone(),
            chunk_size: first.chunk_size,
            hops_left: 0,
            expiry: 0,
            ranges: Vec::new(),
        };
        let mut bits: Vec<u64> = Vec::new();
        for other in others.filter(|it| it.chunk_size == had.chunk_size) {
            let hops_left = other.hops_left.saturating_sub(u8::from(!is_local));
            had.hops_left = had.hops_left.max(hops_left);
            let left = seconds_left(other).min(ChunksHad::MAX_EXPIRY.into());
            had.expiry = had.expiry.max(left as u8);
            bits.resize(bits.len().max(other.bits.len()), 0);
            for (sum, word) in bits.iter_mut().zip(&other.bits) {
                *sum |= word;
            }
        }
        had.ranges = ranges(&bits);
        Some(had)
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.flows.len(), self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FaceId = FaceId::from_number(1);
    const B: FaceId = FaceId::from_number(2);
    const C: FaceId = FaceId::from_number(3);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn had(hops_left: u8, ranges: &[(u32, u32)]) -> ChunksHad {
        ChunksHad {
            flow: "/f".parse().unwrap(),
            chunk_size: 100,
            hops_left,
            expiry: 20,
            ranges: ranges.to_vec(),
        }
    }

    fn flow() -> Bytes {
        had(0, &[]).flow.value().clone()
    }

    #[test]
    fn the_nearest_who_has_the_chunk_is_asked() {
        let mut chunks = Chunks::default();
        assert!(chunks.on_announcement(at(0), A, &had(0, &[(0, 9)])));
        assert!(chunks.on_announcement(at(0), B, &had(2, &[(2, 3), (70, 70)])));
        let flow = flow();
        let asked = |number, but: FaceId| chunks.holder(at(1), (&flow, number), |it| it != but);
        assert_eq!(
            [199, 200, 399, 400].map(|it| asked(it, C)),
            [A, B, B, A].map(Some)
        );
        assert_eq!(asked(250, B), Some(A));
        assert_eq!([1_000, 7_000].map(|it| asked(it, C)), [None, Some(B)]);
        assert_eq!(
            chunks.holder(at(20), (&flow, 0), |_| true),
            None,
            "outdated"
        );
        // The next announcement replaces the one before.
        chunks.on_announcement(at(2), B, &had(2, &[]));
        assert_eq!(chunks.holder(at(3), (&flow, 200), |_| true), Some(A));
        chunks.remove_face(A);
        assert_eq!(
            (chunks.size(), chunks.holder(at(3), (&flow, 0), |_| true)),
            ((1, 1), None)
        );
        chunks.expire(at(22));
        assert!(chunks.is_empty());
    }

    /// To each neighbour what others have, one hop less; nothing that it said itself.
    #[test]
    fn the_union_of_others_is_passed_on() {
        let mut chunks = Chunks::default();
        chunks.on_announcement(at(0), A, &had(2, &[(0, 3), (9, 9)]));
        chunks.on_announcement(at(0), B, &had(1, &[(2, 5)]));
        chunks.on_announcement(at(0), C, &had(0, &[(60, 70)]));
        assert_eq!(chunks.pass_at(), Some(at(0)));
        let flow = flow();
        assert_eq!(chunks.due(at(0)), vec![flow.clone()]);
        assert!(chunks.due(at(0)).is_empty());
        let to = |face, is_local| {
            let had = chunks.union(at(0), &flow, (face, is_local)).unwrap();
            (had.hops_left, had.ranges)
        };
        assert_eq!(to(C, false), (1, vec![(0, 5), (9, 9)]));
        assert_eq!(to(A, false), (0, vec![(2, 5)]));
        assert_eq!(to(B, true), (2, vec![(0, 3), (9, 9), (60, 70)]));
        // Whole seconds that are left: what goes round among nodes of one machine ends.
        let left = |at| Some(chunks.union(at, &flow, (C, true))?.expiry);
        let late = Instant::ZERO + Duration::from_millis(19_001);
        assert_eq!([at(0), at(19), late].map(left), [Some(20), Some(1), None]);
        // Twice a second at most.
        chunks.on_announcement(at(0), A, &had(2, &[(0, 4)]));
        assert_eq!(chunks.pass_at(), Some(at(0) + PAUSE));
    }

    #[test]
    fn who_does_not_answer_rests_longer_each_time() {
        let mut chunks = Chunks::default();
        chunks.on_announcement(
            at(0),
            A,
            &ChunksHad {
                expiry: 60,
                ..had(2, &[(0, 0)])
            },
        );
        let flow = flow();
        let asked = |chunks: &Chunks, at| chunks.holder(at, (&flow, 0), |_| true).is_some();
        for answered in [false, true, false, true, false] {
            chunks.on_outcome(at(1), A, answered);
        }
        assert!(asked(&chunks, at(1)), "three of five");
        chunks.on_outcome(at(1), A, false);
        assert!(!asked(&chunks, at(10)) && asked(&chunks, at(11)));
        for _ in 0..4 {
            chunks.on_outcome(at(11), A, false);
        }
        assert!(!asked(&chunks, at(30)) && asked(&chunks, at(31)));
        // It is remembered while it has announced nothing.
        chunks.expire(at(60));
        assert!(chunks.is_empty());
        chunks.on_announcement(
            at(60),
            A,
            &ChunksHad {
                expiry: 60,
                ..had(2, &[(0, 0)])
            },
        );
        for _ in 0..4 {
            chunks.on_outcome(at(60), A, false);
        }
        assert!(!asked(&chunks, at(99)) && asked(&chunks, at(100)));
        chunks.remove_face(A);
        assert!(chunks.faces.is_empty());
    }

    /// 2³² chunks, and flows without end, take no more room than is theirs.
    #[test]
    fn floods_are_bounded() {
        let mut chunks = Chunks::default();
        chunks.on_announcement(at(0), A, &had(2, &[(0, u32::MAX)]));
        assert_eq!(
            chunks.flows[&flow()].all[0].bits.len(),
            MAX_CHUNKS as usize / 64
        );
        assert_eq!(chunks.holder(at(0), (&flow(), u64::MAX), |_| true), None);
        let mut flows = 0;
        for face in 1..=20 {
            for number in 0..300 {
                let had = ChunksHad {
                    flow: format!("/f/{number}").parse().unwrap(),
                    ..had(2, &[(3, 3)])
                };
                flows +=
                    usize::from(chunks.on_announcement(at(0), FaceId::from_number(face), &had));
            }
        }
        assert_eq!(flows, MAX_HOLDERS - 1);
        assert_eq!(chunks.size().1, MAX_HOLDERS);
        assert!(
            chunks
                .faces
                .values()
                .all(|it| it.flows <= MAX_FLOWS_OF_FACE)
        );
        chunks.expire(at(20));
        assert_eq!((chunks.size(), chunks.faces.len()), ((0, 0), 0));
    }
}
