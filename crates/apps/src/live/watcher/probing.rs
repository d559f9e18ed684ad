//! What is requested to find out what the path carries: segments of the next rung that exist, newest first.

use namecast_packet::Name;
use namecast_stream::path::{Client, Kind, PACKET, Token, Want};
use namecast_stream::{Rung, RungNames, SampleClass, SegmentId};
use namecast_units::{ByteSize, Duration, Instant};

/// Whoever requests it.
pub(super) const CLIENT: Client = Client::MAX;
/// Of a sample of average size, so many segments exist for sure.
const SURE_SHARE: u64 = 70;
/// Samples of one group that are old enough to be in no queue of ours.
const MAX_SAMPLES: u64 = 48;
/// Lifetime of Interests for what exists.
const LIFETIME: Duration = Duration::from_secs(1);

/// Segments of one rung, to be requested at a rate of their own.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    names: RungNames,
    segment_size: u32,
    per_sample: u64,
    /// The newest sample at the beginning, and what was requested since.
    newest: u64,
    count: u64,
    /// Bits that may be requested.
    credit: f64,
    credited_at: Instant,
}

impl Probing {
    /// Segments of `rung`, of which delta sample `newest` exists.
    pub(super) fn new(
        now: Instant,
        names: RungNames,
        rung: &Rung,
        segment_size: u32,
        newest: u64,
    ) -> Self {
        let sample = (rung.bitrate * rung.rate.period()).as_bytes();
        let segments = sample * SURE_SHARE / 100 / u64::from(segment_size.max(1));
        Self {
            names,
            segment_size,
            per_sample: segments.max(1),
            newest,
            count: 0,
            credit: 0.0,
            credited_at: now,
        }
    }

    /// The segment that `name` is of.
    pub(super) fn parse(&self, name: &Name) -> Option<Token> {
        let segment = self.names.parse(name)?;
        Some(Token {
            client: CLIENT,
            segment,
        })
    }

    /// What to request now at `rate` bits per second, up to `burst` at a time.
    pub(super) fn wants(&mut self, now: Instant, rate: f64, burst: u64) -> Vec<Want> {
        self.credit += rate * now.since(self.credited_at).as_secs_f64();
        self.credited_at = now;
        let mut wants = Vec::new();
        while self.credit > 0.0 {
            for _ in 0..burst {
                self.credit -= PACKET;
                wants.extend(self.next());
            }
        }
        wants
    }

    fn next(&mut self) -> Option<Want> {
        let sample = self.count / self.per_sample;
        let sequence = self
            .newest
            .checked_sub(1 + sample)
            .filter(|_| sample < MAX_SAMPLES)?;
        let mut segment = SegmentId::lead(SampleClass::Delta, sequence);
        segment.index = self.count % self.per_sample;
        self.count += 1;
        Some(Want {
            token: Token {
                client: CLIENT,
                segment,
            },
            name: self.names.segment(segment),
            lifetime: LIFETIME,
            must_be_fresh: false,
            can_be_prefix: false,
            avoid_face: None,
            kind: Kind::Probe,
            size: ByteSize::bytes(u64::from(self.segment_size) + 84),
            available_at: None,
            not_before: None,
            due: None,
            deadline: Some(
                Instant::ZERO
                    + Duration::from_nanos(self.credited_at.as_nanos())
                    + Duration::from_millis(100),
            ),
        })
    }
}
