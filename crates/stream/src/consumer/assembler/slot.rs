//! One segment of a sample: what is there of it, and the Interest that is out for it.

use bytes::Bytes;
use namecast_packet::{Data, Nonce};
use namecast_units::{Duration, Instant};

use crate::path::DelaySample;
use crate::sample::Asked as Oldest;

/// An Interest for a segment that was sent and not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) struct Asked {
    /// When it was sent first.
    pub first_at: Instant,
    /// When it was sent last.
    pub last_at: Instant,
    /// How many Interests had left before it did.
    pub order: u64,
    /// Nonce of the first transmission, and of the last.
    pub nonces: [Nonce; 2],
    /// How often it was sent.
    pub attempts: u32,
    /// When it is to be sent again if nothing happens before.
    pub retry_at: Instant,
    /// The last transmission is taken for lost, which the rate controller knows.
    pub is_lost: bool,
    /// The path says that it is lost, and in no queue.
    pub is_gone: bool,
    /// It was sent twice before the segment existed, and not since.
    pub is_hedged: bool,
    /// It came back; until `retry_at` there is nothing to be had.
    pub is_nacked: bool,
}

impl Asked {
    /// Stands for an Interest by which nothing can be measured.
    pub(in crate::consumer) fn unmeasured(now: Instant) -> Self {
        Self {
            first_at: now,
            last_at: now,
            order: 0,
            nonces: [0.into(); 2],
            attempts: 0,
            retry_at: now,
            is_lost: false,
            is_gone: false,
            is_hedged: false,
            is_nacked: false,
        }
    }
}

/// What a lead tells of the Interests for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) struct LeadAnswer {
    /// It did not exist when it was requested.
    pub asked_ahead: bool,
    /// It was produced in answer to one of ours.
    pub is_ours: bool,
    /// To the first of ours.
    pub is_first: bool,
    /// It is certain which of ours it answers.
    pub is_clear: bool,
    /// For how long that waited at the producer, as far as it is known.
    pub waited: Option<Duration>,
    /// What that tells of the path's delay.
    pub delay: Option<DelaySample>,
}

impl Asked {
    /// Returns what it means that a lead came now which the producer made for the Interest `oldest`. `asked_ahead` if it did not exist
    /// when it was requested.
    pub(in crate::consumer) fn answered_by(
        &self,
        now: Instant,
        oldest: Option<Oldest>,
        asked_ahead: bool,
    ) -> LeadAnswer {
        let rtt = now.since(self.last_at);
        let since_first = now.since(self.first_at);
        let is_clear = self.attempts == 1 || self.is_hedged;
        let nonce = oldest.map(|oldest| oldest.nonce);
        let is_ours = self.attempts > 0 && nonce.is_some_and(|n| self.nonces.contains(&n));
        let is_first = is_ours && nonce == Some(self.nonces[0]);
        let waited = match oldest {
            Some(oldest) if is_first => Some((since_first, oldest.waited_for)),
            Some(oldest) if is_ours && self.is_hedged => Some((rtt, oldest.waited_for)),
            // Nobody waited when it was published, so our Interest came too late to wait.
            None if asked_ahead && self.attempts == 1 => Some((rtt, Duration::ZERO)),
            None if asked_ahead && self.attempts > 0 => Some((since_first, Duration::ZERO)),
            _ => None,
        };
        let delay = match waited {
            Some((rtt, waited)) if is_clear => Some(DelaySample::Own { rtt, waited }),
            Some((rtt, waited)) => Some(DelaySample::Ambiguous { rtt, waited }),
            None if self.attempts == 1 => Some(DelaySample::Plain { rtt }),
            None => None,
        };
        LeadAnswer {
            asked_ahead,
            is_ours,
            is_first,
            is_clear,
            waited: waited.map(|(_, waited)| waited),
            delay,
        }
    }
}

/// What is there of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    #[default]
    Missing,
    /// A packet that nothing vouches for yet.
    Unverified(Box<Data>),
    /// The segment's verified share of the payload, or parity.
    Here(Bytes),
}

/// One segment of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::consumer) struct Slot {
    pub(super) content: Content,
    /// The Interest that is out for it.
    pub asked: Option<Asked>,
    /// Whether an Interest for it is about to be sent.
    pub queued: bool,
    /// Whether caches gave a bad packet, so that only the producer may answer.
    pub must_be_fresh: bool,
    /// Face that answered last, as [`Delivery::face`](super::super::Delivery::face) tells.
    pub from_face: Option<u64>,
    /// Transmissions so far; stays when the Interest was answered with a bad packet.
    pub attempts: u32,
    /// Its first Interest left before the segment existed.
    pub is_early: bool,
    /// When that Interest is to be sent a second time, in case it was lost.
    pub hedge_at: Option<Instant>,
    /// It did not come when it should have.
    pub was_lost: bool,
    /// It was requested in repair of the sample.
    pub is_repair: bool,
}

impl Slot {
    pub(in crate::consumer) const fn is_missing(&self) -> bool {
        matches!(self.content, Content::Missing)
    }

    pub(in crate::consumer) const fn is_here(&self) -> bool {
        matches!(self.content, Content::Here(_))
    }

    /// Returns whether no more than the Interests that left before the segment existed has been sent for it.
    pub(in crate::consumer) const fn is_first(&self) -> bool {
        self.is_early && !self.is_repair
    }

    pub(super) const fn is_unverified(&self) -> bool {
        matches!(self.content, Content::Unverified(_))
    }

    /// Returns whether an Interest for it is out, or about to be sent.
    pub(in crate::consumer) const fn is_awaited(&self) -> bool {
        self.asked.is_some() || self.queued
    }

    pub(super) fn shard(&self) -> Option<Bytes> {
        match &self.content {
            Content::Here(shard) => Some(shard.clone()),
            _ => None,
        }
    }
}
