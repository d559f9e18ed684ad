//! What a watcher measures about itself: the object that `--stats` writes and the page's panel shows.

use namecast_units::Histogram;
use serde::Serialize;

/// All figures of one watcher. Counters run from its start; times are in milliseconds, rates in bits per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Time since the watcher was made, ms.
    pub time_ms: f64,
    /// The name that is watched.
    pub name: String,
    /// Whether frames are coming: `joining`, `playing`, `starved`.
    pub state: &'static str,
    /// Whether what is shown is live: `live`, `recorded`, or `unconfirmed` where the publisher itself does not answer.
    pub liveness: &'static str,
    /// Where it is recorded: when the frame shown last was captured, in milliseconds since 1970 by the publisher's clock.
    pub recorded_from_ms: Option<f64>,
    /// Time that playback is behind what is published, while it plays from the past, ms.
    pub behind_ms: Option<f64>,
    /// Earliest time of capture that can be gone back to, ms since 1970 by the publisher's clock; of watchers that ask for it.
    pub kept_since_ms: Option<f64>,
    /// Counters of video, if it is pulled.
    pub video: Option<StreamStats>,
    /// Counters of audio, if it is pulled.
    pub audio: Option<StreamStats>,
    /// From the first Interest to the first complete key sample delivered, ms.
    pub join_ms: Option<f64>,
    /// Times that the watcher joined again by itself.
    pub rejoins: u64,
    /// From capture to display over the last frames, ms, and where it went.
    pub latency: Latency,
    /// Newest time from Interest to Data for Data that existed already, smoothed, ms.
    pub rtt_ms: Option<f64>,
    /// Least such time of the last 10 s, ms.
    pub rtt_min_ms: Option<f64>,
    /// Interests that left, all kinds.
    pub interests_sent: u64,
    /// Of those, sent again.
    pub interests_retransmitted: u64,
    /// Interests whose timer ran out.
    pub interests_timed_out: u64,
    /// Interests that came back with a Nack.
    pub interests_nacked: u64,
    /// Interests asked for and not yet answered.
    pub interests_pending: u64,
    /// Share of samples that were not produced in answer to an Interest of ours: they came from a cache, from the
    /// producer's own store, or were asked for by somebody else first. Their lead carries another Nonce than ours.
    pub cache_hit_share: f64,
    /// Payload of complete samples over the last second, bit/s.
    pub goodput_bps: u64,
    /// Octets of Data received over the last second, everything counted, bit/s.
    pub throughput_bps: u64,
    /// The rate controller in use.
    pub controller: &'static str,
    /// The most that it allows, bit/s, which may be far above what the stream needs and is used (`throughput_bps`); absent if it
    /// sets no limit.
    pub controller_rate_bps: Option<u64>,
    /// What the path is like.
    pub path: PathStats,
    /// Rung of the video that is requested. Frames of another that were requested before may still be shown.
    pub rung: Option<String>,
    /// Why the video is of that rung, in words; absent where that is not left to the watcher.
    pub picture: Option<&'static str>,
    /// Playout target with the reordering of the video, ms.
    pub target_ms: f64,
    /// Time that pictures take to be put into the order in which they are shown, ms: 0 without B-frames.
    pub reorder_ms: f64,
    /// Who signs.
    pub signer: Option<SignerStats>,
    /// Publisher's clock less ours, ms; from a metadata answer to our own Interest, half its round trip uncertain.
    pub clock_offset_ms: Option<f64>,
    /// The round trip that the offset was measured with, ms.
    pub clock_offset_rtt_ms: Option<f64>,
    /// Sealed samples, opened and not.
    pub sealed: SealedStats,
    /// Time since anything that the publisher signed arrived, ms.
    pub silent_ms: Option<f64>,
    /// Versions of the roster that the publisher has and that did not arrive here within 20 s.
    pub rosters_held_back: u64,
    /// Packets whose signature or digest was wrong, of all kinds; none of them had any effect.
    pub verification_failures: u64,
    /// Packets dropped because they are malformed, or nobody had asked for them.
    pub packets_unexpected: u64,
}

/// Sealed samples, opened and not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SealedStats {
    /// Sealed samples that were opened.
    pub opened: u64,
    /// Packets of key boxes received.
    pub boxes: u64,
    /// Samples not opened: the publisher has no key for this reader.
    pub not_a_reader: u64,
    /// Samples not opened: they were sealed before this reader came.
    pub before_joining: u64,
    /// Samples not opened: their key box did not come.
    pub box_missing: u64,
    /// Samples not opened: they were changed, or sealed with another key.
    pub damaged: u64,
    /// Samples opened and dropped, as those that they need were not opened.
    pub undecodable: u64,
}

/// The path that everything is requested over, as arrivals show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathStats {
    /// Time that packets queue now, ms.
    pub queueing_ms: f64,
    /// What the link carries, bit/s.
    pub capacity_bps: u64,
    /// Rate that nodes on the path offer, bit/s; absent where none does.
    pub offered_bps: Option<u64>,
    /// Share of packets lost in the last 3 s, between 0 and 1.
    pub loss: f64,
    /// By how much neighbouring packets' delays differ, ms.
    pub jitter_ms: f64,
    /// Share of time for which others kept the link busy, between 0 and 1; a lower bound.
    pub cross: f64,
    /// Whether requests are held back until a queue is gone.
    pub holding: bool,
    /// Interests that only find out what the path carries.
    pub probes: u64,
}

/// Counters of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StreamStats {
    /// Samples the publisher is known to have published since we started, whether they came or not.
    pub published: u64,
    /// Complete samples.
    pub received: u64,
    /// Frames that the front-end reported as shown.
    pub rendered: u64,
    /// Frames complete only after they were due; the ones fast-forwarded over while joining do not count.
    pub late: u64,
    /// Samples given up, or passed over because one that they need was.
    pub lost: u64,
    /// Times that playback skipped to a later key sample.
    pub skips: u64,
    /// Samples completed with parity.
    pub recovered_fec: u64,
    /// Samples completed by sending Interests again.
    pub recovered_retransmission: u64,
    /// Samples whose lead came as a copy.
    pub recovered_copy: u64,
    /// Samples whose lead was rebuilt from inter-frame FEC.
    pub recovered_inter_frame: u64,
    /// Share of segments lost lately, between 0 and 1.
    pub loss: f64,
    /// Octets of parity received.
    pub parity_bytes: u64,
    /// Octets received that were asked for in repair, parity included.
    pub repair_bytes: u64,
    /// Segments that came when their sample was complete already.
    pub segments_surplus: u64,
    /// Interests sent a second time ahead, in case the first was lost.
    pub interests_hedged: u64,
    /// Segments of data asked for that were lost or late enough to be retransmitted.
    pub segments_retransmitted: u64,
    /// Packets whose signature or digest was wrong; none of them went further.
    pub verification_failures: u64,
    /// Frames that the decoder refused.
    pub decoder_errors: u64,
    /// Time's worth of complete frames ahead of the one due now, ms.
    pub buffer_ms: f64,
    /// Samples of which segments are outstanding.
    pub samples_in_assembly: u64,
    /// Samples asked for ahead of the newest one seen: λ.
    pub interest_lead: u64,
}

/// Glass-to-glass latency, as far as it is known here.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median, ms.
    pub p50_ms: f64,
    /// 95th percentile, ms.
    pub p95_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// Mean time in each stage, ms; they add up to the mean latency.
    pub stages: StageShares,
    /// Frames that the figures are taken from.
    pub frames: u64,
    /// The same of all frames since the start.
    pub histogram: Histogram,
}

/// Mean time in each stage, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageShares {
    /// Exposure to capture stamp: 0, as the stamp is all that a stream carries.
    pub capture: f64,
    /// Capture stamp to the end of encoding.
    pub encode: f64,
    /// End of encoding to publication.
    pub publish: f64,
    /// Publication to arrival of the lead segment, corrected by the clock offset.
    pub network: f64,
    /// Arrival of the lead to the last segment needed.
    pub reassembly: f64,
    /// Complete to shown, less decoding.
    pub buffer: f64,
    /// Decoding, as the front-end reported it.
    pub decode: f64,
}

/// Who signs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SignerStats {
    /// Name of the key.
    pub key_name: String,
    /// SHA-256 digest of the public key in hexadecimal.
    pub key_digest: String,
    /// The verdict, for people.
    pub verdict: String,
    /// Whether its signatures count.
    pub trusted: bool,
}
