//! What a fetcher is told, and what it reports.

use core::time::Duration;

use bytes::Bytes;
use derive_more::AddAssign;
use namecast_packet::Name;
use namecast_packet::lp::NackReason;
use namecast_stream::path::Control;
use namecast_units::{ByteSize, Timestamp};

use crate::discovery::{Signer, Trust};

/// Which object to fetch, and how.
#[derive(Clone, Debug)]
pub struct FetcherConfig {
    /// Name of the object, without a version.
    pub name: Name,
    /// Whose signature counts.
    pub trust: Trust,
    /// Wall clock at [`Instant::ZERO`](namecast_units::Instant::ZERO).
    pub wall_at_zero: Timestamp,
    /// Seed of the Nonces.
    pub seed: u64,
    /// What bounds requests.
    pub control: Control,
    /// A larger object is not fetched.
    pub max_size: ByteSize,
    /// Segments that are requested at a time, most of which wait for the budget.
    pub max_wanted: usize,
    /// Interests for one packet, after which the object is given up.
    pub max_attempts: u32,
}

impl FetcherConfig {
    /// Fetches `name` if it has no more than 64 MiB, and trusts the first key that is found.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            trust: Trust::FirstUse,
            wall_at_zero: Timestamp::default(),
            seed: 0,
            control: Control::Live,
            max_size: ByteSize::mebibytes(64),
            max_wanted: 1_024,
            max_attempts: 10,
        }
    }
}

/// What a fetcher reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Segments arrived.
    Progress {
        /// Segments that were verified.
        received: u64,
        /// Segments of the object.
        total: u64,
        /// Content of those that were verified, in octets.
        octets: u64,
    },
    /// The object is complete. Nothing follows.
    Fetched(Fetched),
    /// The object cannot be fetched. Nothing follows.
    Failed(Failure),
}

/// An object whose every segment was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its name, with the version.
    pub name: Name,
    /// Its content.
    pub content: Bytes,
    /// Who signed it.
    pub signer: Signer,
    /// What its Data shows of the path.
    pub flow: Flow,
}

/// How long an object took, apart from the time before it existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// From the first Interest until the first segment left whoever had it: it did not exist, or answers were lost.
    pub waited: Duration,
    /// In which Data flowed: from then on until the last segment came. Its content in this time is the throughput. What caches answered
    /// counts as if it had come by the path behind them, at the rate that they say, or that objects before this one had there: what caches
    /// do not have will come no faster.
    pub flowed: Duration,
}

/// Why an object could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Repeated Interests were not answered.
    #[error("no answer: check the name, and that its publisher is running")]
    Unanswered,
    /// Interests came back.
    #[error("the object does not exist, or there is no route to it: check the name")]
    Refused(NackReason),
    /// Segments are not signed with the signer's key.
    #[error("what was received is not signed with the key of its signer")]
    BadSignature,
    /// The signature names no key of a prefix of the object's name.
    #[error("signed by somebody whose name is no prefix of the object's")]
    ForeignSigner,
    /// The signer is not one of those that count.
    #[error("signed by {}, {}", .0.key_name, .0.verdict)]
    NotAccepted(Signer),
    /// The object is larger than what is fetched.
    #[error("larger than {} bytes, or in too small segments: raise max_size", .0.as_bytes())]
    TooLarge(ByteSize),
    /// The segments contradict each other, or do not say which one is the last.
    #[error("its segments do not say with one voice which one is the last")]
    Malformed,
}

/// What a fetcher counted of what arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AddAssign)]
pub struct FetcherCounters {
    /// Packets whose signature is wrong.
    pub verification_failures: u64,
    /// Packets that break the format.
    pub malformed: u64,
    /// Packets that were not requested, or came twice.
    pub unexpected: u64,
    /// Interests that came back.
    pub nacked: u64,
}
