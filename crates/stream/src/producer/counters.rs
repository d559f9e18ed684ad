//! What a producer counts.

/// Why an Interest was not answered, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// Its lifetime ended before the sample existed.
    Expired,
    /// The table of held Interests is full, in all or for this name.
    TableFull,
    /// An Interest with this Nonce is already held.
    Duplicate,
    /// Nothing is published under this name.
    UnknownName,
    /// The sample lies further ahead than Interests are held.
    TooFarAhead,
    /// The sample was published, but is no longer in the cache.
    TooOld,
    /// The sample has no such segment.
    NoSuchSegment,
    /// The sample was left out: a later one was published.
    Skipped,
    /// The driver did not fetch answers, and too many are waiting.
    OutputFull,
    /// Inter-frame FEC, one of which has too large a lead.
    LeadTooLarge,
    /// Metadata for one consumer alone was made too often in this second.
    TooManyChallenges,
}

impl DropReason {
    /// All reasons, in the order of [`ProducerCounters::dropped`].
    pub const ALL: [Self; 11] = [
        Self::Expired,
        Self::TableFull,
        Self::Duplicate,
        Self::UnknownName,
        Self::TooFarAhead,
        Self::TooOld,
        Self::NoSuchSegment,
        Self::Skipped,
        Self::OutputFull,
        Self::LeadTooLarge,
        Self::TooManyChallenges,
    ];

    /// Returns the reason as statistics spell it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::TableFull => "table-full",
            Self::Duplicate => "duplicate",
            Self::UnknownName => "unknown-name",
            Self::TooFarAhead => "too-far-ahead",
            Self::TooOld => "too-old",
            Self::NoSuchSegment => "no-such-segment",
            Self::Skipped => "skipped",
            Self::OutputFull => "output-full",
            Self::LeadTooLarge => "lead-too-large",
            Self::TooManyChallenges => "too-many-challenges",
        }
    }
}

/// Counts since the producer was made.
///
/// Each Interest is counted once when it comes and once when it ends:
/// `interests = answered_at_once + answered_after_waiting + Σ dropped + held now`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerCounters {
    /// Samples published.
    pub samples: u64,
    /// Data segments made, leads included.
    pub data_segments: u64,
    /// Parity segments made.
    pub parity_segments: u64,
    /// Copies of leads made, each because somebody requested it.
    pub lead_copies: u64,
    /// Shards of inter-frame FEC made, each because somebody requested it.
    pub inter_frame_shards: u64,
    /// Octets of published samples.
    pub payload: u64,
    /// Octets of their packets.
    pub wire: u64,
    /// Of those, octets of parity segments.
    pub parity_wire: u64,
    /// Interests that came.
    pub interests: u64,
    /// Interests answered when they came.
    pub answered_at_once: u64,
    /// Interests answered when their sample was published.
    pub answered_after_waiting: u64,
    /// Data packets delivered: one can answer several Interests.
    pub data_sent: u64,
    /// Interests not answered, by reason.
    pub dropped: [u64; DropReason::ALL.len()],
}

impl ProducerCounters {
    /// Returns the Interests dropped for `reason`.
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    pub(super) const fn drop(&mut self, reason: DropReason, interests: usize) {
        self.dropped[reason as usize] += interests as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_place() {
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        let words = DropReason::ALL.map(DropReason::word);
        assert!(
            words
                .iter()
                .enumerate()
                .all(|(n, word)| !words[..n].contains(word))
        );
    }
}
