//! What a watcher records for people, and the figures that they see: how long the join took, rates, latency, and what went wrong.

use core::time::Duration;

use namecast_stream::StreamKind;
use namecast_stream::consumer::{Sample, Sizes};
use namecast_stream::path::Uplink;
use namecast_units::{Bitrate, Instant, Timestamp};

use super::super::liveness::Liveness;
use super::super::measure::{Frames, RateMeter, millis};
use super::super::stats::{PathStats, SignerStats, Stats, StreamStats};
use super::Watch;
use super::output::Stages;
use super::stream::Pulled;
use crate::discovery::{Signer, Verdict};

/// What a watcher counts, its consumers apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnCounters {
    pub nacked: u64,
    /// Metadata or certificates that did not verify.
    pub verification_failures: u64,
    pub malformed: u64,
    pub unexpected: u64,
    /// Times that playback began again.
    pub rejoins: u64,
}

/// Records of one watcher.
#[derive(Debug, Default)]
pub(super) struct Meters {
    /// When the first Interest left.
    started_at: Option<Instant>,
    /// From then to the first frame.
    joined_after: Option<Duration>,
    /// When anything that the publisher signed arrived last: metadata, an event, or the number of the newest one.
    heard_at: Option<Instant>,
    wire: RateMeter,
    payload: RateMeter,
    frames: Frames,
    counters: OwnCounters,
}

impl Meters {
    /// Records that an Interest leaves. Returns whether it is the first one.
    pub(super) const fn start(&mut self, now: Instant) -> bool {
        let is_first = self.started_at.is_none();
        if is_first {
            self.started_at = Some(now);
        }
        is_first
    }

    /// Records a packet of `bytes`.
    pub(super) fn on_data(&mut self, now: Instant, bytes: u64) {
        self.wire.add(now, bytes);
    }

    /// Records that something arrived that the publisher signed.
    pub(super) const fn on_heard(&mut self, now: Instant) {
        self.heard_at = Some(now);
    }

    /// Records a sample that is delivered.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        stream: StreamKind,
        sample: &Sample,
        stages: Stages,
    ) {
        self.payload.add(now, sample.payload.len() as u64);
        self.frames.on_handed_out(stream, sample, stages);
    }

    /// Records the first frame of a stream. Returns the time since the first Interest.
    pub(super) fn on_first_frame(&mut self, now: Instant) -> Duration {
        let after = now.since(self.started_at.unwrap_or(now));
        self.joined_after.get_or_insert(after);
        after
    }

    /// Returns the time from the first Interest to the first frame, once that is over.
    pub(super) const fn joined_after(&self) -> Option<Duration> {
        self.joined_after
    }

    /// Returns the bits of packets in a second.
    pub(super) fn throughput(&self, now: Instant) -> u64 {
        self.wire.bits_per_second(now)
    }

    /// Returns the bits of samples in a second.
    pub(super) fn goodput(&self, now: Instant) -> u64 {
        self.payload.bits_per_second(now)
    }

    /// Returns the frames between delivery and display.
    pub(super) const fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Returns the frames between delivery and display, to report what became of them.
    pub(super) const fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Returns what was counted.
    pub(super) const fn counters(&self) -> &OwnCounters {
        &self.counters
    }

    /// Returns what is counted, to count on.
    pub(super) const fn counters_mut(&mut self) -> &mut OwnCounters {
        &mut self.counters
    }
}

/// Sizes of all tables of a watcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Tables of all consumers together.
    pub consumers: Sizes,
    /// Outputs not polled yet.
    pub outputs: usize,
    /// Frames that were delivered and not reported as shown.
    pub frames: usize,
}

impl Watch {
    /// Packets so far whose signature or digest was wrong, of all kinds.
    pub fn verification_failures(&self) -> u64 {
        let of_streams = self.streams.iter().map(Pulled::counters);
        let of_streams: u64 = of_streams.map(|c| c.drop_verification).sum();
        self.meters.counters().verification_failures + of_streams
    }

    /// Figures for people.
    pub(super) fn stats(&self, now: Instant, uplink: &Uplink) -> Stats {
        let counters: Vec<_> = self.streams.iter().map(Pulled::counters).collect();
        let sum = |count: fn(&namecast_stream::consumer::Counters) -> u64| -> u64 {
            counters.iter().map(count).sum()
        };
        let own = self.meters.counters();
        let requested = uplink.counters();
        let again = requested.object_retransmissions;
        let leads = sum(|c| c.leads);
        let video = self.streams.get(StreamKind::Video);
        let main = video.or_else(|| self.streams.iter().next());
        let delay = main.map(|pulled| &pulled.consumer.schedule().path().delay);
        let budget = uplink.budget();
        let pending = self.table_sizes().consumers.outstanding;
        let (wall, target) = (self.config.wall(now), self.streams.target(&self.config));
        let reorder_delay = video.map_or(Duration::ZERO, Pulled::reorder_delay);
        let liveness = self.proof.liveness(now, wall, target);
        let joined_after = self.meters.joined_after();
        Stats {
            time_ms: millis(now.since(Instant::ZERO)),
            name: self.names.root().to_string(),
            state: match joined_after {
                None => "joining",
                Some(_) if self.streams.is_starved() => "starved",
                Some(_) => "playing",
            },
            liveness: liveness.word(),
            recorded_from_ms: match liveness {
                Liveness::Recorded(at) => Some(unix_millis(at)),
                Liveness::Live | Liveness::Unconfirmed => None,
            },
            behind_ms: self.behind(now).map(millis),
            kept_since_ms: self.travel.kept_since().map(unix_millis),
            video: video.map(|pulled| stream_stats(now, pulled)),
            audio: self
                .streams
                .get(StreamKind::Audio)
                .map(|pulled| stream_stats(now, pulled)),
            join_ms: joined_after.map(millis),
            rejoins: own.rejoins,
            latency: self.meters.frames().latency(),
            rtt_ms: delay.map(|delay| millis(delay.estimate(now))),
            rtt_min_ms: delay.and_then(|delay| delay.least(now)).map(millis),
            interests_sent: requested.objects + sum(|c| c.interests_sent),
            interests_retransmitted: again + sum(|c| c.interests_retransmitted),
            interests_timed_out: again + sum(|c| c.interests_timed_out),
            interests_nacked: own.nacked + sum(|c| c.interests_nacked),
            interests_pending: pending as u64,
            cache_hit_share: sum(|c| c.leads_for_others) as f64 / leads.max(1) as f64,
            goodput_bps: self.meters.goodput(now),
            throughput_bps: self.meters.throughput(now),
            controller: budget.name(),
            controller_rate_bps: budget.rate().map(Bitrate::as_bps),
            path: path_stats(now, uplink),
            rung: video.map(|pulled| pulled.rung.clone()),
            picture: video
                .and_then(|pulled| pulled.picture(now, uplink.path(), budget.is_holding())),
            target_ms: millis(target + reorder_delay),
            reorder_ms: millis(reorder_delay),
            signer: self.authority.signer().map(signer_stats),
            clock_offset_ms: self.clock.micros().map(|micros| micros as f64 / 1e3),
            clock_offset_rtt_ms: self.clock.rtt().map(millis),
            sealed: *self.unsealing.stats(),
            silent_ms: self.meters.heard_at.map(|at| millis(now.since(at))),
            rosters_held_back: self.roster.held_back,
            verification_failures: self.verification_failures(),
            packets_unexpected: own.unexpected
                + own.malformed
                + sum(|c| c.drop_unwanted + c.drop_malformed + c.drop_no_room),
        }
    }

    /// Sizes of all tables, to see that they are bounded.
    pub fn table_sizes(&self) -> TableSizes {
        let mut total = Sizes::default();
        let consumers = self.streams.iter().flat_map(Pulled::all_sizes);
        for sizes in consumers {
            total.samples += sizes.samples;
            total.complete += sizes.complete;
            total.buffered += sizes.buffered;
            total.outstanding += sizes.outstanding;
            total.queued += sizes.queued;
            total.unverified += sizes.unverified;
        }
        TableSizes {
            consumers: total,
            outputs: self.outbox.len(),
            frames: self.meters.frames().len(),
        }
    }
}

fn path_stats(now: Instant, uplink: &Uplink) -> PathStats {
    let path = uplink.path();
    PathStats {
        queueing_ms: path.queue_now() * 1e3,
        capacity_bps: path.carried() as u64,
        offered_bps: path.offered(now).map(Bitrate::as_bps),
        loss: path.loss(now, Duration::from_secs(3)),
        jitter_ms: path.jitter() * 1e3,
        cross: path.cross(now),
        holding: uplink.budget().is_holding(),
        probes: uplink.counters().probes,
    }
}

fn unix_millis(time: Timestamp) -> f64 {
    time.as_micros() as f64 / 1e3
}

fn stream_stats(now: Instant, pulled: &Pulled) -> StreamStats {
    let counters = pulled.counters();
    let sizes = pulled.consumer.sizes();
    StreamStats {
        published: pulled.past_published + pulled.consumer.schedule().published(),
        received: counters.complete,
        rendered: pulled.rendered,
        late: counters.late,
        lost: counters.lost,
        skips: counters.skips,
        recovered_fec: counters.recovered_parity,
        recovered_retransmission: counters.recovered_retransmission,
        recovered_copy: counters.recovered_copy,
        recovered_inter_frame: counters.recovered_inter_frame,
        loss: pulled.consumer.loss(),
        parity_bytes: counters.parity_bytes,
        repair_bytes: counters.repair_bytes,
        segments_surplus: counters.drop_surplus,
        interests_hedged: counters.interests_hedged,
        segments_retransmitted: counters.interests_retransmitted,
        verification_failures: counters.drop_verification,
        decoder_errors: pulled.decoder_errors,
        buffer_ms: millis(pulled.consumer.buffered_time(now)),
        samples_in_assembly: (sizes.samples - sizes.complete) as u64,
        interest_lead: pulled.consumer.interest_lead(now),
    }
}

fn signer_stats(signer: &Signer) -> SignerStats {
    let digest = signer.key_digest.iter();
    SignerStats {
        key_name: signer.key_name.to_string(),
        key_digest: digest.map(|octet| format!("{octet:02x}")).collect(),
        verdict: signer.verdict.to_string(),
        trusted: !matches!(signer.verdict, Verdict::Refused(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_join_takes_from_the_first_interest_to_the_first_frame() {
        let mut meters = Meters::default();
        assert!(meters.start(at(100)) && !meters.start(at(200)));
        assert_eq!(meters.joined_after(), None);
        let video = meters.on_first_frame(at(350));
        let audio = meters.on_first_frame(at(400));
        assert_eq!([video, audio].map(|it| it.as_millis()), [250, 300]);
        assert_eq!(meters.joined_after(), Some(video));
    }

    /// 1000 bytes within the last second are 8 kbit/s.
    #[test]
    fn rates_are_of_the_last_second() {
        let mut meters = Meters::default();
        meters.on_data(at(50), 1_000);
        assert_eq!(meters.throughput(at(950)), 8_000);
        assert_eq!(meters.throughput(at(1_150)), 0);
        assert_eq!(meters.goodput(at(950)), 0);
    }
}
