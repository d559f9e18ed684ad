//! One of the two sequences of a rung, of samples that exist, pulled completely: each lead first, then the segments that it
//! names.

use std::collections::{BTreeMap, VecDeque};

use core::ops::RangeInclusive;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use namecast_packet::{Data, Verifier};
use namecast_stream::path::{Nacked, Request, Retry, Token};
use namecast_stream::{Lead, SampleClass, SegmentId, SegmentKind, fec};
use namecast_units::Instant;

/// Interests for a packet before its sample is given up: six take some eight seconds.
pub(crate) const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(2),
    max_interests: 6,
};

/// Bounds of what is pulled at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Samples pulled at a time.
    pub max_samples: usize,
    /// Samples further behind the newest one are not asked for.
    pub max_behind: u64,
}

/// Kind and number of a packet in its sample.
pub(crate) type Place = (SegmentKind, u64);
const LEAD: Place = (SegmentKind::Data, 0);

/// A sample on its way.
#[derive(Debug, Default)]
struct Pulled {
    lead: Option<Lead>,
    packets: BTreeMap<Place, Data>,
    /// Whether each is requested.
    missing: BTreeMap<Place, bool>,
}

/// Something that became of a sequence.
#[derive(Debug)]
pub(crate) enum News {
    /// Packets of the sample of this number, its lead first; whether they are all.
    Sample(u64, Vec<(Place, Data)>, bool),
    /// These samples could not be had.
    Gap(RangeInclusive<u64>),
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is kept.
    Kept,
    /// Nobody asked for it.
    Unwanted,
    /// It is not what was signed: the segment is fetched past all caches.
    Bad,
}

/// One sequence of a rung.
#[derive(Debug)]
pub(crate) struct Sequence {
    class: SampleClass,
    wants_parity: bool,
    /// First sample not begun; `None` until it is known where to start.
    next: Option<u64>,
    /// Newest sample that is published.
    newest: Option<u64>,
    samples: BTreeMap<u64, Pulled>,
    news: VecDeque<News>,
    gap: Option<RangeInclusive<u64>>,
}

impl Sequence {
    /// A sequence of which every packet is pulled.
    pub(crate) const fn new(class: SampleClass) -> Self {
        Self {
            class,
            wants_parity: true,
            next: None,
            newest: None,
            samples: BTreeMap::new(),
            news: VecDeque::new(),
            gap: None,
        }
    }

    /// A sequence of which only what the samples consist of is pulled.
    pub(crate) const fn without_parity(class: SampleClass) -> Self {
        let mut sequence = Self::new(class);
        sequence.wants_parity = false;
        sequence
    }

    /// Records that `newest` is published.
    pub(crate) fn on_published(&mut self, newest: Option<u64>) {
        self.newest = self.newest.max(newest);
    }

    /// Starts with sample `first`, unless it has started.
    pub(crate) fn start_at(&mut self, first: u64) {
        self.next.get_or_insert(first);
    }

    pub(crate) const fn has_started(&self) -> bool {
        self.next.is_some()
    }

    /// The newest sample that is published.
    pub(crate) const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Samples published and neither kept nor given up.
    pub(crate) fn backlog(&self) -> u64 {
        let behind = self.next.zip(self.newest);
        let unbegun = behind.map_or(0, |(next, newest)| (newest + 1).saturating_sub(next));
        unbegun + self.samples.len() as u64
    }

    /// Returns whether all that is begun is kept or given up.
    pub(crate) fn is_idle(&self) -> bool {
        self.samples.is_empty()
    }

    /// Begins samples that are published, up to `last` and as many as there is room for; far too old ones are passed over.
    pub(crate) fn begin(&mut self, config: &Limits, last: u64) {
        let (Some(next), Some(newest)) = (self.next, self.newest) else {
            return;
        };
        let oldest = newest.saturating_sub(config.max_behind);
        if next < oldest {
            self.note_gap(next..=oldest - 1);
        }
        let mut next = next.max(oldest);
        while next <= newest.min(last) && self.samples.len() < config.max_samples {
            self.begin_sample(next);
            next += 1;
        }
        self.next = Some(next);
    }

    /// Begins the first sample that is not known to be published, up to `last` and if there is room. Returns its number.
    pub(crate) fn begin_ahead(&mut self, config: &Limits, last: u64) -> Option<u64> {
        let next = self.next.filter(|next| *next <= last)?;
        let is_published = self.newest.is_some_and(|newest| next <= newest);
        if is_published || self.samples.len() >= config.max_samples {
            return None;
        }
        self.next = Some(next.checked_add(1)?);
        self.begin_sample(next);
        Some(next)
    }

    fn begin_sample(&mut self, number: u64) {
        let mut pulled = Pulled::default();
        pulled.missing.insert(LEAD, false);
        self.samples.insert(number, pulled);
    }

    /// Packets that were requested and are still missing.
    pub(crate) fn outstanding(&self) -> usize {
        let missing = self.samples.values().flat_map(|it| it.missing.values());
        missing.filter(|is_requested| **is_requested).count()
    }

    /// Packets to request now, at most `room`.
    pub(crate) fn ask(&mut self, room: usize) -> Vec<SegmentId> {
        let class = self.class;
        let missing = self.samples.iter_mut().flat_map(|(&sequence, pulled)| {
            let missing = pulled.missing.iter_mut();
            missing.map(move |(place, is_requested)| (sequence, place, is_requested))
        });
        let unrequested = missing.filter(|(.., is_requested)| !**is_requested);
        let asked = unrequested.take(room);
        let asked = asked.map(|(sequence, &(kind, index), is_requested)| {
            *is_requested = true;
            SegmentId {
                class,
                sequence,
                kind,
                index,
            }
        });
        asked.collect()
    }

    /// Takes a packet; the copy of a lead stands for the lead. Returns the lead if it is one that counts.
    pub(crate) fn on_data(
        &mut self,
        id: SegmentId,
        data: &Data,
        verifier: &dyn Verifier,
    ) -> (Taken, Option<Lead>) {
        let is_lead = id.is_lead() || id.kind == SegmentKind::LeadCopy;
        let place = match is_lead {
            true => LEAD,
            false => (id.kind, id.index),
        };
        let Some(pulled) = self.samples.get_mut(&id.sequence) else {
            return (Taken::Unwanted, None);
        };
        if !pulled.missing.contains_key(&place) {
            return (Taken::Unwanted, None);
        }
        let lead = is_lead.then(|| Lead::decode(data).ok()).flatten();
        let lead = lead.filter(|_| data.verify(verifier).is_ok());
        let vouched = pulled.lead.as_ref();
        let vouched = vouched.is_some_and(|lead| lead.vouches_for(id.kind, id.index, data));
        if lead.is_none() && !vouched {
            return (Taken::Bad, None);
        }
        pulled.missing.remove(&place);
        pulled.packets.insert(place, data.clone());
        if let Some(lead) = &lead {
            let data = (1..lead.data_count() as u64).map(|n| (SegmentKind::Data, n));
            let parity = if self.wants_parity {
                lead.parity_count()
            } else {
                0
            };
            let parity = (0..parity as u64).map(|n| (SegmentKind::Parity, n));
            let missing = data.chain(parity);
            pulled.missing = missing.map(|place| (place, false)).collect();
            pulled.lead = Some(lead.clone());
        }
        if pulled.missing.is_empty() {
            self.finish(id.sequence, true);
        }
        (Taken::Kept, lead)
    }

    fn finish(&mut self, sequence: u64, whole: bool) {
        let Some(pulled) = self.samples.remove(&sequence) else {
            return;
        };
        self.flush_gap();
        let packets = pulled.packets.into_iter().collect();
        self.news.push_back(News::Sample(sequence, packets, whole));
    }

    /// Leaves a sample as it is. What came of it is kept if its lead did.
    pub(crate) fn give_up(&mut self, sequence: u64) {
        let Some(pulled) = self.samples.get(&sequence) else {
            return;
        };
        if pulled.lead.is_some() {
            self.finish(sequence, false);
        } else {
            self.samples.remove(&sequence);
            self.note_gap(sequence..=sequence);
        }
    }

    fn note_gap(&mut self, range: RangeInclusive<u64>) {
        match &mut self.gap {
            Some(gap) if gap.end() + 1 == *range.start() => *gap = *gap.start()..=*range.end(),
            _ => {
                self.flush_gap();
                self.gap = Some(range);
            }
        }
    }

    /// Reports a gap that may still grow.
    pub(crate) fn flush_gap(&mut self) {
        self.news.extend(self.gap.take().map(News::Gap));
    }

    /// Ends: what is complete enough is kept, the rest is a gap.
    pub(crate) fn end(&mut self) {
        let begun: Vec<_> = self.samples.keys().copied().collect();
        begun
            .into_iter()
            .for_each(|sequence| self.give_up(sequence));
        if let (Some(next), Some(newest)) = (self.next, self.newest)
            && next <= newest
        {
            self.note_gap(next..=newest);
        }
        self.flush_gap();
    }

    /// What became of it, in order.
    pub(crate) fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }
}

impl Taken {
    /// Ends the request for a packet that is kept, and goes past caches for one that is bad.
    pub(crate) fn requests(self, now: Instant, token: Token) -> impl Iterator<Item = Request> {
        let requests = match self {
            Self::Kept => [Some(Request::Forget(token)), None],
            Self::Bad => [
                Some(Request::Reject(token)),
                Some(Request::Hasten(token, now)),
            ],
            Self::Unwanted => [None, None],
        };
        requests.into_iter().flatten()
    }
}

/// Returns the payload of a sample from its packets, with parity where segments are missing; `None` if it is not whole.
pub(crate) fn assemble(lead: &Lead, packets: &[(Place, Data)]) -> Option<Bytes> {
    let mut data = vec![None; lead.data_count()];
    let mut parity = vec![None; lead.parity_count()];
    data[0] = Some(lead.share().clone());
    for ((kind, index), packet) in &packets[1..] {
        let shards = match kind {
            SegmentKind::Data => &mut data,
            SegmentKind::Parity => &mut parity,
            SegmentKind::LeadCopy | SegmentKind::InterFrame => continue,
        };
        *shards.get_mut(usize::try_from(*index).ok()?)? = packet.content();
    }
    let shards = match data.iter().any(Option::is_none) {
        true => fec::recover(&data, &parity, lead.shard_size()).ok()?,
        false => data.into_iter().flatten().collect(),
    };
    let mut payload = BytesMut::with_capacity(lead.header().payload_size);
    shards
        .iter()
        .for_each(|shard| payload.extend_from_slice(shard));
    Some(payload.freeze())
}

/// Nobody on the way has a packet: it is requested again, the first time at once.
pub(crate) fn on_nack(now: Instant, nacked: Nacked) -> Request {
    let wait = match nacked.attempts > 1 {
        true => RETRY.first_wait,
        false => Duration::ZERO,
    };
    Request::Hasten(nacked.token, now + wait)
}
