//! What bounds a forwarder, and the constants of its rules.

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Name, PublicKey};
use namecast_units::{ByteSize, Instant, Timestamp};
use smart_default::SmartDefault;

use crate::name_hash::HashKey;
use crate::shard::Shard;

/// Bounds and constants of a [`Forwarder`](crate::Forwarder). The defaults are those of a node on a desktop; where NFD has a
/// default of the same meaning, it is the same.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct Config {
    /// Seeds the Nonces that are added to Interests without one, and what strategies leave to chance. Who sees enough of these
    /// can find it out.
    pub seed: u64,
    /// Secret of the hashes of names. Drivers that face a network choose it at random, so that nobody can aim at one place of a
    /// table, or at one of several forwarders; in simulations it is fixed.
    #[default(HashKey::FIXED)]
    pub hash_key: HashKey,
    /// Maximum number of pending Interests whose names have the same hash, so that a look-up compares no more; further ones are
    /// refused. Those of one name, which differ in their selectors, are four. Cached Data have the bound of
    /// [`max_versions`](ContentStoreConfig::max_versions).
    #[default(8)]
    pub max_same_hash: usize,
    /// Which of the node's forwarders this is, if there are several. Then each keeps its part of the bounds below.
    #[default(Shard::ONLY)]
    pub shard: Shard,
    /// What pending Interests and cached Data are kept in.
    #[default(Keep::Copies)]
    pub keep: Keep,
    /// Maximum number of faces at a time.
    #[default(4_096)]
    pub max_faces: usize,
    /// Maximum number of name prefixes with routes, and of those with a strategy of their own.
    #[default(65_536)]
    pub max_prefixes: usize,
    /// Maximum number of pairs of a prefix and a next hop that strategies measure; further ones count as unmeasured.
    #[default(65_536)]
    pub max_measurements: usize,
    /// Maximum number of components of a packet's name; a name with more is dropped.
    #[default(128)]
    pub max_name_components: usize,
    /// Pending Interests.
    pub pit: PitConfig,
    /// Cached Data.
    pub content_store: ContentStoreConfig,
    /// Nonces of Interests that are no longer pending.
    pub dead_nonces: DeadNonceConfig,
    /// What self-learning takes in.
    pub learning: LearningConfig,
    /// Names of the regions this node produces in: an Interest whose ForwardingHint names a prefix of one is
    /// forwarded by its own name.
    pub producer_regions: Vec<Name>,
    /// Links to neighbours.
    pub link: LinkConfig,
}

/// Bounds and constants of the PIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct PitConfig {
    /// Maximum number of pending Interests. Beyond, the longest-waiting one of the face that has most of them gives way.
    #[default(65_536)]
    pub capacity: usize,
    /// Maximum memory for pending Interests, bookkeeping included. Beyond, the longest-waiting one of the face that has most of
    /// it gives way.
    #[default(ByteSize::mebibytes(64))]
    pub max_size: ByteSize,
    /// Maximum number of pending Interests of one face; further ones are refused. A quarter of the PIT, so that few faces cannot
    /// fill it.
    #[default(16_384)]
    pub face_capacity: usize,
    /// How many Interests a second a face may send. `None`: unlimited.
    pub face_interest_rate: Option<InterestRate>,
    /// Longest time that an Interest stays pending, whatever lifetime it states.
    #[default(Duration::from_secs(10 * 86_400))]
    pub max_lifetime: Duration,
    /// Longest time that an Interest from another host stays pending. Consumers of live streams send Interests up to 4 s ahead,
    /// which is also the lifetime of Interests that state none.
    #[default(Duration::from_secs(10))]
    pub max_nonlocal_lifetime: Duration,
    /// When strategies let a retransmitted Interest pass.
    pub suppression: Suppression,
}

/// Bounds and policies of the content store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct ContentStoreConfig {
    /// Maximum memory for cached Data, bookkeeping included. Zero switches the content store off.
    #[default(ByteSize::mebibytes(64))]
    pub capacity: ByteSize,
    /// Which cached Data give way to new ones.
    pub policy: CachePolicy,
    /// Maximum number of cached Data packets of one and the same name, which only their digests tell apart; of names with the
    /// same hash, too.
    #[default(8)]
    pub max_versions: usize,
    /// What is done with Data that no pending Interest explains.
    pub unsolicited: UnsolicitedData,
}

impl ContentStoreConfig {
    /// The defaults with another capacity.
    #[must_use]
    pub fn with_capacity(capacity: ByteSize) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }
}

/// Bounds of the list of dead Nonces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct DeadNonceConfig {
    /// How long a Nonce is remembered after its Interest left the PIT.
    #[default(Duration::from_secs(6))]
    pub lifetime: Duration,
    /// Maximum number of Nonces remembered; the oldest give way.
    #[default(1 << 18)]
    pub capacity: usize,
}

/// Bounds and constants of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct LinkConfig {
    /// Maximum number of fragments that a packet is cut into, or put together from.
    #[default(400)]
    pub max_fragments: usize,
    /// Bounds of each face's reassembly.
    pub reassembly: ReassemblyConfig,
    /// Link reliability of the faces that have it.
    pub reliability: ReliabilityConfig,
    /// Maximum number of frames per face that wait for [`poll_output`](crate::Forwarder::poll_output); further ones are dropped.
    #[default(16_384)]
    pub max_output_queue: usize,
}

impl Config {
    /// How long an Interest of some lifetime stays pending.
    pub(crate) fn lifetime_of(&self, stated: Duration, is_local: bool) -> Duration {
        let bound = if is_local {
            self.pit.max_lifetime
        } else {
            self.pit.max_lifetime.min(self.pit.max_nonlocal_lifetime)
        };
        stated.min(bound)
    }

    /// The configuration of one forwarder of several, which keeps its part of what bounds the tables of the node. Its
    /// choices differ from the others'.
    #[must_use]
    pub fn for_shard(&self, shard: Shard) -> Self {
        let count = u32::from(shard.count.max(1));
        let size = |size: ByteSize| ByteSize::bytes(size.as_bytes() / u64::from(count));
        Self {
            seed: self.seed.wrapping_add(u64::from(shard.index)),
            shard,
            max_measurements: shard.part_of(self.max_measurements),
            pit: PitConfig {
                capacity: shard.part_of(self.pit.capacity),
                max_size: size(self.pit.max_size),
                face_capacity: shard.part_of(self.pit.face_capacity),
                face_interest_rate: self.pit.face_interest_rate.map(|rate| InterestRate {
                    per_second: rate.per_second.div_ceil(count),
                    burst: rate.burst.div_ceil(count),
                }),
                ..self.pit
            },
            content_store: ContentStoreConfig {
                capacity: size(self.content_store.capacity),
                ..self.content_store
            },
            dead_nonces: DeadNonceConfig {
                capacity: shard.part_of(self.dead_nonces.capacity),
                ..self.dead_nonces
            },
            ..self.clone()
        }
    }
}

/// Bounds and constants of self-learning.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct LearningConfig {
    /// Most prefix announcements that are remembered, each with the face that it came from; further ones are refused.
    #[default(4_096)]
    pub max_routes: usize,
    /// How long a learned route stays without Data that came by it; no longer than the announcement says in any case.
    #[default(Duration::from_secs(10 * 60))]
    pub route_lifetime: Duration,
    /// After so many Interests in a row whose time ran out, a learned route counts as broken. Zero counts as one.
    ///
    /// Not in NFD, where it stays: but a link without connections, such as UDP, tells nobody that it broke.
    #[default(3)]
    pub max_timeouts: u32,
    /// Who may announce prefixes; none: anybody, as with NFD's trust anchor `any`.
    pub keys: Vec<PublicKey>,
    /// Wall-clock time at [`Instant::ZERO`]; none: announcements hold whatever validity period they state.
    pub epoch: Option<Timestamp>,
}

/// A bound on the Interests of a face: a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterestRate {
    /// Interests a second in the long run. Zero counts as one.
    pub per_second: u32,
    /// Interests that may come at once after a pause. Zero counts as one.
    pub burst: u32,
}

impl InterestRate {
    /// Whether an Interest may pass at `now`. `full_at` is when the bucket would be full again, and moves if it may.
    pub(crate) fn admit(self, now: Instant, full_at: &mut Instant) -> bool {
        let interval = Duration::from_secs(1) / self.per_second.max(1);
        let after = (*full_at).max(now) + interval;
        let may_pass = after.since(now) <= interval * self.burst.max(1);
        if may_pass {
            *full_at = after;
        }
        may_pass
    }
}

/// Which cached Data give way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// What was not used for longest.
    #[default]
    Lru,
    /// What was not used again soon, so that a scan does not sweep out what is requested again and again: S3-FIFO (Yang et
    /// al., SOSP 2023).
    S3Fifo,
}

/// Which Data that no pending Interest explains are cached: NFD's policies `drop-all`, `admit-local`, `admit-network` and
/// `admit-all`. They are sent to nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsolicitedData {
    /// None.
    #[default]
    DropAll,
    /// What applications on this host send.
    AdmitLocal,
    /// What other hosts send.
    AdmitNetwork,
    /// All.
    AdmitAll,
}

impl UnsolicitedData {
    /// Whether Data from a face of that scope are cached.
    pub(crate) const fn admits(self, is_local: bool) -> bool {
        match self {
            Self::DropAll => false,
            Self::AdmitLocal => is_local,
            Self::AdmitNetwork => !is_local,
            Self::AdmitAll => true,
        }
    }
}

/// Whether tables hold on to the frames that packets came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Copies. What a socket received may be a small piece of a large buffer, which a table must not keep alive.
    #[default]
    Copies,
    /// Copies of packets up to [`SMALL`](Self::SMALL), and the frames of larger ones, which take longer to copy: for drivers that
    /// cut small frames from one buffer and give large ones memory of their own.
    LargeFrames,
    /// The frames themselves, which costs no time: for drivers whose every frame has memory of its own, as in a simulator.
    /// With others, bounds in octets do not hold.
    Frames,
}

impl Keep {
    /// Octets of the largest small packet: nearly all that fit a datagram of an ordinary link.
    pub const SMALL: usize = 1_500;

    /// Whether packets of so many octets are copied.
    pub(crate) const fn copies(self, octets: usize) -> bool {
        match self {
            Self::Copies => true,
            Self::LargeFrames => octets <= Self::SMALL,
            Self::Frames => false,
        }
    }

    /// A packet, or a piece of one, as it is kept where it waits for something.
    pub fn own(self, octets: Bytes) -> Bytes {
        match self.copies(octets.len()) {
            true => Bytes::copy_from_slice(&octets),
            false => octets,
        }
    }
}

/// Exponential back-off between transmissions of one pending Interest.
///
/// NFD's `RetxSuppressionExponential`, with its constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Suppression {
    /// Least time between the first transmission and the next.
    #[default(Duration::from_millis(10))]
    pub initial: Duration,
    /// Bound of the growing interval.
    #[default(Duration::from_millis(250))]
    pub max: Duration,
    /// By what each transmission multiplies the interval.
    #[default(2)]
    pub multiplier: u32,
}

impl Suppression {
    /// The interval that follows `interval`.
    pub(crate) fn next(&self, interval: Duration) -> Duration {
        interval.saturating_mul(self.multiplier).min(self.max)
    }
}

/// Bounds of one face's reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct ReassemblyConfig {
    /// How long an incomplete packet waits for its next fragment. NFD's 500 ms.
    #[default(Duration::from_millis(500))]
    pub timeout: Duration,
    /// Most incomplete packets; the one that waited longest gives way.
    #[default(64)]
    pub max_packets: usize,
    /// Most octets of frames that incomplete packets hold; those that waited longest give way.
    #[default(ByteSize::mebibytes(1))]
    pub max_octets: ByteSize,
}

/// Constants and bounds of link reliability, the same for every face that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct ReliabilityConfig {
    /// How often a fragment is sent again before its packet is given up. NFD's 3 loses one packet of seven fragments in
    /// 1400 where a tenth of all frames is lost.
    #[default(7)]
    pub max_retransmissions: u32,
    /// Acks for later transmissions after which one is lost. NFD's 3.
    #[default(3)]
    pub loss_threshold: u32,
    /// How long an Ack waits for a frame to travel on before it is sent alone. NFD's 5 ms.
    #[default(Duration::from_millis(5))]
    pub ack_delay: Duration,
    /// Octets of a fragment for each time that its Ack is said again, once a copy has come, which shows that Acks are lost. It
    /// has 12 itself: that of a full frame is said six times for 5 % in all, that of most Interests once.
    #[default(256)]
    pub octets_for_ack: usize,
    /// Most Acks of one frame that are said again, the newest ones.
    #[default(16)]
    pub max_acks_again: usize,
    /// Time without Ack after which a transmission is lost, before a round trip was measured.
    #[default(Duration::from_millis(250))]
    pub initial_rto: Duration,
    /// Least such time. NFD's 200 ms would be several round trips of most links.
    #[default(Duration::from_millis(10))]
    pub min_rto: Duration,
    /// Bound of its growth when nothing is acknowledged. A round trip that is longer by itself counts nevertheless.
    #[default(Duration::from_secs(1))]
    pub max_rto: Duration,
    /// Most transmissions since the oldest one that waits for its Ack, and most Sequences remembered to know duplicates by.
    #[default(4_096)]
    pub max_frames: usize,
    /// Most octets of fragments that wait for their Acks.
    #[default(ByteSize::mebibytes(4))]
    pub max_octets: ByteSize,
}

impl ReliabilityConfig {
    /// Longest time over which copies of one fragment may arrive.
    pub(crate) fn lifetime(&self) -> Duration {
        self.max_rto
            .saturating_mul(self.max_retransmissions.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 a second, 3 at once: at 0 s three pass and a fourth does not; 100 ms later one more does, and after a long
    /// pause three again.
    #[test]
    fn a_token_bucket_lets_bursts_and_then_its_rate_pass() {
        let rate = InterestRate {
            per_second: 10,
            burst: 3,
        };
        let mut full_at = Instant::ZERO;
        let mut passed = |millis: u64| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            (0..5).filter(|_| rate.admit(now, &mut full_at)).count()
        };
        assert_eq!(
            [passed(0), passed(99), passed(100), passed(150)],
            [3, 0, 1, 0]
        );
        assert_eq!([passed(10_000), passed(10_200)], [3, 2]);
    }

    #[test]
    fn policies_for_unsolicited_data_go_by_where_they_come_from() {
        use UnsolicitedData::{AdmitAll, AdmitLocal, AdmitNetwork, DropAll};
        let admits = |policy: UnsolicitedData| [policy.admits(true), policy.admits(false)];
        let all = [DropAll, AdmitLocal, AdmitNetwork, AdmitAll].map(admits);
        assert_eq!(all, [[false; 2], [true, false], [false, true], [true; 2]]);
    }
}
