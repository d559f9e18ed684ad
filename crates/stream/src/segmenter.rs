//! Cuts one encoded sample into signed Data packets: `docs/stream-format.md`, section "Sample, lead segment, segments".
//!
//! The lead is made last, since it holds the digests of all others.

use std::collections::BTreeMap;

use bytes::Bytes;

use namecast_packet::signature::{NullSigner, SignatureInfo};
use namecast_packet::{Data, Digests, MAX_PACKET_SIZE, PacketDigest, Signer, tlv};
use namecast_units::{ByteSize, Duration, Timestamp};
use smart_default::SmartDefault;

use crate::catalogue::SEGMENT_SIZES;
use crate::fec;
use crate::names::{RungNames, SampleClass, SegmentId, SegmentKind};
use crate::sample::{
    Asked, MAX_COMPOSITION_OFFSET, MAX_LEAD_CONTENT, MAX_SEGMENTS, SampleHeader, encode_lead,
};
use crate::seal::Seal;

/// One encoded sample to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Key or delta.
    pub class: SampleClass,
    /// Number of the sample in its class.
    pub sequence: u64,
    /// Of a delta sample: the key sample it depends on. Of a key sample: the delta sample that follows it.
    pub other_sequence: u64,
    /// Decoding order within the rung; the same key frame of a closed group has the same position in every rung.
    pub position: u64,
    /// Wall clock at capture; of a picture that is decoded before one shown earlier: the decoding time by that clock.
    pub captured_at: Timestamp,
    /// Presentation time minus decoding time, at most [`MAX_COMPOSITION_OFFSET`].
    pub composition_offset: Duration,
    /// Wall clock at the end of encoding.
    pub encoded_at: Timestamp,
    /// The encoded sample.
    pub payload: Bytes,
    /// Key that the payload is sealed with; `None`: it is not sealed.
    pub seal: Option<Seal>,
}

/// What becomes known when a sample is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Wall clock at publication.
    pub published_at: Timestamp,
    /// The Interest for the lead that waited longest, if one did.
    pub asked: Option<Asked>,
}

/// The packets of one sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Data segments, the lead first.
    pub data: Vec<Data>,
    /// Parity segments.
    pub parity: Vec<Data>,
    /// Copies of the lead by their numbers, as far as somebody requested them.
    pub copies: BTreeMap<u64, Data>,
    /// Inter-frame FEC of the group that ends with this sample, by its numbers, likewise.
    pub inter_frame: BTreeMap<u64, Data>,
}

impl Segments {
    /// Returns the segment that `kind` and `index` mean.
    pub fn get(&self, kind: SegmentKind, index: u64) -> Option<&Data> {
        let segments = match kind {
            SegmentKind::Data => &self.data,
            SegmentKind::Parity => &self.parity,
            SegmentKind::LeadCopy => return self.copies.get(&index),
            SegmentKind::InterFrame => return self.inter_frame.get(&index),
        };
        segments.get(usize::try_from(index).ok()?)
    }

    /// Adds what was made on request. Gives what was there under that name; `data` itself if it is of another kind.
    pub fn insert(&mut self, id: &SegmentId, data: Data) -> Option<Data> {
        match id.kind {
            SegmentKind::LeadCopy => self.copies.insert(id.index, data),
            SegmentKind::InterFrame => self.inter_frame.insert(id.index, data),
            SegmentKind::Data | SegmentKind::Parity => Some(data),
        }
    }

    /// Returns all packets: lead, other data, parity, copies of the lead, inter-frame FEC.
    pub fn iter(&self) -> impl Iterator<Item = &Data> {
        let segments = self.data.iter().chain(&self.parity);
        let asked_for = self.copies.values().chain(self.inter_frame.values());
        segments.chain(asked_for)
    }

    /// Returns the octets of all packets on the wire.
    pub fn wire_size(&self) -> ByteSize {
        self.iter().map(|data| ByteSize::of(data.wire())).sum()
    }

    /// Returns the octets of the parity packets on the wire.
    pub fn parity_size(&self) -> ByteSize {
        let parity = self.parity.iter();
        parity.map(|data| ByteSize::of(data.wire())).sum()
    }
}

/// How to cut samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct SegmenterConfig {
    /// Octets of Content that segments aim at: at 1000, a packet fits a datagram of 1200.
    #[default(1_000)]
    pub segment_size: usize,
    /// Parity segments per hundred data segments, rounded up.
    ///
    /// None is sent unless it is requested, so that much of it costs little: what it takes to make it, and 16 octets of
    /// each in the lead. 60 is what the bounds of loss are held with.
    ///
    /// A sample of one segment has none: only the lead could vouch for it, and who has the lead has the sample.
    #[default(60)]
    pub parity_percent: usize,
}

impl SegmenterConfig {
    /// Returns the same with the smallest segment size, doubled as often as needed, that carries samples of `payload` octets;
    /// `None` if none does.
    pub fn carrying(self, payload: usize) -> Option<Self> {
        let most = *SEGMENT_SIZES.end() as usize;
        let sizes = core::iter::successors(Some(self.segment_size), |&size| {
            (size < most).then(|| (size * 2).min(most))
        });
        let configs = sizes.map(|segment_size| Self {
            segment_size,
            ..self
        });
        configs.into_iter().find(|it| payload <= it.max_payload())
    }

    /// Returns the octets of the largest sample that fits whatever its lead holds beside digests.
    fn max_payload(&self) -> usize {
        (self.max_data() - 1) * (self.segment_size / 2 * 2)
    }

    const fn parity_count(&self, data: usize) -> usize {
        (data * self.parity_percent).div_ceil(100)
    }

    /// Most data segments that leave room for their parity.
    fn max_data(&self) -> usize {
        let fits = |data: &usize| data + self.parity_count(*data) <= MAX_SEGMENTS;
        (2..=MAX_SEGMENTS).rev().find(fits).unwrap_or(1)
    }
}

/// Why a sample was not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The sample needs more segments than its lead has room to list.
    #[error(
        "sample of {payload} octets is larger than the {largest} that segments of {segment_size} can carry; \
         choose larger segments"
    )]
    TooLarge {
        /// Octets of the sample.
        payload: usize,
        /// Octets of the largest sample that this segment size can carry.
        largest: usize,
        /// Octets that segments aim at.
        segment_size: usize,
    },
    /// The presentation time is too long after the decoding time.
    #[error("composition offset of {0:?} is larger than {MAX_COMPOSITION_OFFSET:?}")]
    CompositionOffset(Duration),
    /// A packet became larger than NDN allows: names or signature are too long.
    #[error(
        "packet of {0} octets is larger than {MAX_PACKET_SIZE}; choose shorter names or smaller segments"
    )]
    PacketTooLarge(usize),
}

/// Cuts the samples of one rung.
#[derive(Clone, Debug)]
pub struct Segmenter {
    names: RungNames,
    /// Largest ShardSize: even, so that parity, which is padded to pairs of octets, is no larger than a segment.
    largest_shard: usize,
    config: SegmenterConfig,
    /// Octets beside its Content that each packet but a lead has at least.
    headers: usize,
}

/// Leaves packets unsigned, with so many octets in the place of a signature.
struct Filler(usize);

impl Signer for Filler {
    fn info(&self) -> SignatureInfo {
        NullSigner.info()
    }

    fn sign(&self, _portion: &[u8]) -> Bytes {
        vec![0; self.0].into()
    }
}

/// How many segments a sample has, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    data: usize,
    parity: usize,
    /// Share of each data segment but the lead; `None` if the lead holds all.
    shard_size: Option<usize>,
}

impl Segmenter {
    /// A segmenter for the rung that `names` are of. Values of `config` outside their bounds are brought inside:
    /// [`SEGMENT_SIZES`], and at most as many parity as data segments.
    pub fn new(names: RungNames, config: SegmenterConfig) -> Self {
        let sizes = (
            *SEGMENT_SIZES.start() as usize,
            *SEGMENT_SIZES.end() as usize,
        );
        let config = SegmenterConfig {
            segment_size: config.segment_size.clamp(sizes.0, sizes.1),
            parity_percent: config.parity_percent.min(100),
        };
        Self {
            names,
            largest_shard: config.segment_size / 2 * 2,
            config,
            headers: 0,
        }
    }

    /// Fills packets up, in the place of a signature, until each has so many octets beside its Content: as large as those of a format with
    /// longer names, or a signature in each packet. Leads, which have one, stay as they are.
    #[must_use]
    pub const fn with_headers(mut self, octets: usize) -> Self {
        self.headers = octets;
        self
    }

    /// Returns the names of the rung.
    pub const fn names(&self) -> &RungNames {
        &self.names
    }

    /// Returns how samples are cut.
    pub const fn config(&self) -> &SegmenterConfig {
        &self.config
    }

    /// Cuts `sample`, adds parity, and signs the lead with `signer`.
    ///
    /// # Errors
    /// If the sample is too large, or names or signature make a packet too large.
    pub fn segment(
        &self,
        sample: &Sample,
        stamp: Stamp,
        signer: &dyn Signer,
    ) -> Result<Segments, SegmentError> {
        let payload = &sample.payload;
        if sample.composition_offset > MAX_COMPOSITION_OFFSET {
            return Err(SegmentError::CompositionOffset(sample.composition_offset));
        }
        let mut header = SampleHeader {
            captured_at: sample.captured_at,
            composition_offset: sample.composition_offset,
            encoded_after: sample.encoded_at.since(sample.captured_at),
            published_after: stamp.published_at.since(sample.captured_at),
            position: sample.position,
            other_sequence: sample.other_sequence,
            payload_size: payload.len(),
            shard_size: None,
            parity_count: 0,
            asked: stamp.asked,
            seal: sample.seal,
        };
        let layout = self.layout(&header)?;
        header.shard_size = layout.shard_size;
        header.parity_count = layout.parity;

        let shard_size = layout.shard_size.unwrap_or(payload.len());
        let share = payload.len() - (layout.data - 1) * shard_size;
        let shards = (1..layout.data).map(|n| {
            let start = share + (n - 1) * shard_size;
            payload.slice(start..start + shard_size)
        });
        let shards: Vec<_> = core::iter::once(payload.slice(..share))
            .chain(shards)
            .collect();
        let parity = match layout.parity {
            0 => Vec::new(),
            count => fec::parity(&shards, shard_size, count)
                .expect("shards are of the layout's size, and fewer than a sample's bound"),
        };

        let follower = |kind, (index, content): (usize, &Bytes)| {
            let name = self.names.segment(SegmentId {
                kind,
                index: index as u64,
                ..SegmentId::lead(sample.class, sample.sequence)
            });
            let unsigned = || Data::builder(name.clone()).content(content.clone());
            let data = unsigned().sign(&NullSigner);
            let headers = data.wire().len() - content.len();
            match self.headers.checked_sub(headers) {
                None | Some(0) => data,
                Some(missing) => unsigned().sign(&Filler(missing)),
            }
        };
        let data = shards.iter().enumerate().skip(1);
        let mut data: Vec<_> = data.map(|s| follower(SegmentKind::Data, s)).collect();
        let parity = parity.iter().enumerate();
        let parity: Vec<_> = parity.map(|s| follower(SegmentKind::Parity, s)).collect();

        let digests = Digests::from_packets(data.iter().chain(&parity));
        let name = self
            .names
            .segment(SegmentId::lead(sample.class, sample.sequence));
        let content = encode_lead(&header, &digests, &shards[0]);
        data.insert(0, Data::builder(name).content(content).sign(signer));
        let segments = Segments {
            data,
            parity,
            copies: BTreeMap::new(),
            inter_frame: BTreeMap::new(),
        };
        let largest = segments.iter().map(|data| data.wire().len()).max();
        match largest {
            Some(size) if size > MAX_PACKET_SIZE => Err(SegmentError::PacketTooLarge(size)),
            _ => Ok(segments),
        }
    }

    /// Returns the copy of `lead` that `id` names: the same Content under another name, so with a signature of its own.
    pub fn copy(&self, id: SegmentId, lead: &Data, signer: &dyn Signer) -> Data {
        let content = lead.content().unwrap_or_default();
        let name = self.names.segment(id);
        Data::builder(name).content(content).sign(signer)
    }

    /// Returns the fewest segments that hold the sample, then the smallest shards, so that parity is small too.
    fn layout(&self, header: &SampleHeader) -> Result<Layout, SegmentError> {
        let payload = header.payload_size;
        let alone = header.encoded_size() + digests_size(0) + payload;
        if alone <= self.config.segment_size {
            return Ok(Layout {
                data: 1,
                parity: 0,
                shard_size: None,
            });
        }
        let header_size = self.largest_header(header);
        let fewest = payload.div_ceil(self.largest_shard).max(2);
        (fewest..=self.config.max_data())
            .find_map(|data| {
                let room = self.lead_room(header_size, data);
                // The lead takes what its room allows, the others share the rest; nobody's share exceeds a shard.
                let least = payload.saturating_sub(room).div_ceil(data - 1);
                let shard = least.max(payload.div_ceil(data));
                let fits = shard <= self.largest_shard && shard * (data - 1) <= payload;
                fits.then_some(Layout {
                    data,
                    parity: self.config.parity_count(data),
                    shard_size: Some(shard),
                })
            })
            .ok_or_else(|| SegmentError::TooLarge {
                payload,
                largest: self.largest_payload(header_size),
                segment_size: self.config.segment_size,
            })
    }

    /// Returns the octets of `header` once the layout has been entered, at most.
    fn largest_header(&self, header: &SampleHeader) -> usize {
        let full = SampleHeader {
            shard_size: Some(self.largest_shard),
            parity_count: MAX_SEGMENTS,
            ..header.clone()
        };
        full.encoded_size()
    }

    /// Returns the octets of payload that a lead has room for, in a sample of `data` data segments.
    ///
    /// Where the digests alone fill a segment, the lead grows beyond it, so it may as well carry a whole shard.
    fn lead_room(&self, header_size: usize, data: usize) -> usize {
        let head = header_size + digests_size(data - 1 + self.config.parity_count(data));
        match self.config.segment_size.checked_sub(head) {
            Some(room) => room,
            None => (MAX_LEAD_CONTENT - head).min(self.largest_shard),
        }
    }

    fn largest_payload(&self, header_size: usize) -> usize {
        let most = self.config.max_data();
        (most - 1) * self.largest_shard + self.lead_room(header_size, most)
    }
}

/// Returns the octets of the Digests element for `count` digests.
const fn digests_size(count: usize) -> usize {
    tlv::element_size(Digests::ELEMENT, count * PacketDigest::SIZE)
}

#[cfg(test)]
mod tests;
