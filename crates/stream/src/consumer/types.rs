//! What goes into a consumer and what comes out.

use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Data, Verifier};
use namecast_units::{Bitrate, ByteSize, Instant, Timestamp};

use crate::catalogue::{Reading, Rung, SampleRate, StreamInfo, StreamKind};
use crate::inter_frame::InterFrameFec;
use crate::metadata::Latest;
use crate::names::{RungNames, SampleClass, StreamNames};
use crate::path::{Feedback, Received, Request};
use crate::sample::SampleHeader;

use super::assembler::{SegmentCounts, SegmentEstimators};

/// A verifier that several consumers share.
pub type SharedVerifier = Arc<dyn Verifier + Send + Sync>;

/// The rung to pull, as the catalogue describes it.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is.
    pub kind: StreamKind,
    /// Names in the rung.
    pub names: RungNames,
    /// Samples per second.
    pub rate: SampleRate,
    /// Samples from one key sample to the next; 1: all are key samples.
    pub key_interval: u32,
    /// Bitrate of the encoded samples.
    pub bitrate: Bitrate,
    /// Octets of Content that segments aim at.
    pub segment_size: u32,
    /// Parity segments per hundred data segments.
    pub parity_percent: u32,
    /// Inter-frame FEC on offer.
    pub inter_frame: Option<InterFrameFec>,
    /// Largest composition offset.
    pub reorder_delay: Duration,
    /// A sample that is not complete holds up none after it.
    pub is_newest: bool,
    /// Samples of the rung from one that is pulled to the next; all figures above are those of the samples that are pulled.
    pub every: u32,
}

/// How much larger than the average sample key samples are taken to be before one was seen.
const KEY_FACTOR: u64 = 4;

impl Source {
    /// Rung `rung` of `stream`, published under the root of `names`.
    pub fn new(names: &StreamNames, stream: &StreamInfo, rung: &Rung) -> Self {
        Self {
            kind: stream.kind,
            names: names.rung(&stream.name, &rung.name),
            rate: rung.rate,
            key_interval: rung.key_interval,
            bitrate: rung.bitrate,
            segment_size: stream.segment_size,
            parity_percent: stream.parity_percent,
            inter_frame: rung.inter_frame,
            reorder_delay: rung.reorder_delay(),
            is_newest: stream.reading == Reading::Newest && rung.key_interval <= 1,
            every: 1,
        }
    }

    /// Leaves out samples of which only the newest counts, so that at most `samples` a second are pulled: every k-th number is. Others are pulled
    /// as they are.
    #[must_use]
    pub fn at_most(self, samples: u32) -> Self {
        let SampleRate { num, den } = self.rate;
        let most = u64::from(samples.max(1)) * u64::from(den.max(1));
        let every = u64::from(num).div_ceil(most);
        let every = u32::try_from(every).unwrap_or(u32::MAX);
        if !self.is_newest || every <= 1 {
            return self;
        }
        Self {
            names: self.names.every(every),
            rate: SampleRate::new(num, den.saturating_mul(every)),
            bitrate: Bitrate::bps((self.bitrate.as_bps() / u64::from(every)).max(1)),
            every,
            ..self
        }
    }

    /// Returns the time between samples of the rung, those included that are not pulled.
    pub(super) fn rung_period(&self) -> Duration {
        self.rate.period() / self.every
    }

    /// Returns `latest` in the numbers of the samples that are pulled.
    pub(super) fn numbered(&self, latest: &Latest) -> Latest {
        Latest {
            key_sequence: latest
                .key_sequence
                .map(|it| self.names.numbered(SampleClass::Key, it)),
            ..latest.clone()
        }
    }

    /// Bitrate of samples and parity.
    pub fn bitrate_with_parity(&self) -> Bitrate {
        let percent = u64::from(self.parity_percent) + 100;
        Bitrate::bps(self.bitrate.as_bps().saturating_mul(percent) / 100)
    }

    /// Returns whether all samples are key samples.
    pub const fn is_standalone(&self) -> bool {
        self.key_interval <= 1
    }

    /// Returns what `latest` said `age` earlier, as far as the catalogue tells: with key samples at even intervals.
    pub(super) fn aged(&self, latest: &Latest, age: Duration) -> Latest {
        let period = self.rate.period().as_nanos().max(1);
        let samples = u64::try_from(age.as_nanos() / period).unwrap_or(u64::MAX);
        let interval = u64::from(self.key_interval.max(1));
        let keys = samples / interval;
        let back = |number: Option<u64>, by| number.map(|n: u64| n.saturating_sub(by));
        Latest {
            key_sequence: back(latest.key_sequence, keys),
            delta_sequence: back(latest.delta_sequence, samples - keys),
            key_position: back(latest.key_position, keys * interval),
            next_delta: latest.next_delta.filter(|_| samples == 0),
            ..latest.clone()
        }
    }

    /// Estimators that start from what bitrate and segment size say, no answer above `most`.
    pub(super) fn estimators(&self, most: u32) -> SegmentEstimators {
        let mean = (self.bitrate * self.rate.period()).as_bytes();
        let count = |octets: u64| {
            let data = octets.div_ceil(u64::from(self.segment_size.max(1))).max(1);
            let data = u32::try_from(data).unwrap_or(most).min(most);
            let parity = match data {
                1 => 0,
                _ => data.saturating_mul(self.parity_percent).div_ceil(100),
            };
            SegmentCounts { data, parity }
        };
        let key = if self.is_standalone() { 1 } else { KEY_FACTOR };
        let [key, delta] = [mean.saturating_mul(key), mean];
        let size = |octets: u64| octets as f64 / f64::from(count(octets).data);
        SegmentEstimators::new(count(key), count(delta), [size(key), size(delta)], most)
    }
}

/// Where to start in a stream that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// With the newest key sample, catching up on the samples after it.
    NewestKey,
    /// With the key sample after it, which does not exist yet.
    NextKey,
    /// With this key sample, catching up on those after it, where every sample is a key sample: the publisher has just begun.
    Key(u64),
}

/// Last sample shown of a stream, by this consumer or one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Position of the last sample; `None` if the numbering is another one now, or rungs differ in the order of decoding.
    pub position: Option<u64>,
    /// The latest [presentation time](SampleHeader::presented_at) of any sample.
    pub presented_at: Timestamp,
}

/// A key sample that is complete, and when it leaves as the first of its rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyKey {
    /// Its position.
    pub position: u64,
    /// Its presentation time by the publisher's clock.
    pub presented_at: Timestamp,
    /// Largest composition offset of its rung.
    pub reorder_delay: Duration,
    /// When it leaves: only then are all pictures before it gone, which another rung may show in another order.
    pub leaves_at: Instant,
}

/// One position may have been captured by several publishers, whose clocks differ by no more than this.
const CAPTURED_ELSEWHERE: Duration = Duration::from_secs(1);

impl Shown {
    /// Returns whether the key sample of `header`, of any rung, is this one, or comes before it.
    pub fn reaches(&self, header: &SampleHeader) -> bool {
        match self.position {
            Some(position) => header.position <= position,
            None => header.presented_at() <= self.presented_at,
        }
    }

    /// Returns whether the sample of `header` is this one, or came before it.
    ///
    /// A sample presented later at a lower position is from another publisher of the same media, or, if it is presented much later,
    /// from another numbering.
    pub fn covers(&self, header: &SampleHeader) -> bool {
        let presented_at = header.presented_at();
        let is_lower = self.position.is_some_and(|at| header.position <= at);
        let is_near = presented_at <= self.presented_at + CAPTURED_ELSEWHERE;
        presented_at <= self.presented_at || (is_lower && is_near)
    }
}

/// How what a publisher says of its newest samples fits what a consumer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUp {
    /// It does; so much playing time was published and never requested.
    Missed(Duration),
    /// It does not: the publisher counts otherwise now.
    OutOfLine,
}

/// Something a consumer wants done.
#[derive(Clone, Debug)]
pub enum Output {
    /// Something that is wanted of the path.
    Request(Request),
    /// The next sample, in decoding order.
    Sample(Sample),
    /// The next sample, a key sample, does not follow the last one.
    Discontinuity,
}

/// What the link says of a packet that it delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// A node on the path saw its queue build up.
    pub congestion_marked: bool,
    /// Number of the node's face that the packet came in on, if the node tells.
    pub face: Option<u64>,
    /// What nodes on the path say, its rate in whole packets.
    pub feedback: Feedback,
}

impl Delivery {
    /// What is known of `data`, which was delivered so, before anybody looks into it.
    pub fn received(&self, data: &Data) -> Received {
        Received {
            size: ByteSize::of(data.wire()),
            congestion_marked: self.congestion_marked,
            feedback: self.feedback,
        }
    }
}

/// A complete and verified sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whether it decodes by itself.
    pub key: bool,
    /// Number of the sample in its class.
    pub sequence: u64,
    /// The encoded sample.
    pub payload: Bytes,
    /// What its lead says.
    pub header: SampleHeader,
    /// When the lead arrived.
    pub lead_at: Instant,
    /// When it was complete.
    pub complete_at: Instant,
    /// When to show it.
    pub render_at: Instant,
    /// Whether it was complete only after its time.
    pub late: bool,
    /// Whether it is only needed to catch up with the live edge after a start.
    pub catching_up: bool,
}

/// Sizes of a consumer's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Samples requested and not delivered.
    pub samples: usize,
    /// Of those, complete ones.
    pub complete: usize,
    /// Octets of payload in them.
    pub buffered: usize,
    /// Interests outstanding.
    pub outstanding: usize,
    /// Interests about to be sent.
    pub queued: usize,
    /// Segments kept that nothing vouches for yet.
    pub unverified: usize,
}
