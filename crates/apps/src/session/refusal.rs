//! Why a set-up is refused, and how often each happened.

use core::fmt;
use core::ops::{AddAssign, Index};

/// Why a packet of a set-up is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refusal {
    /// It breaks the packet format.
    Malformed,
    /// It is shorter than its handshake message.
    Cut,
    /// It was answered before.
    Replayed,
    /// It carries a key of this endpoint's own.
    Reflected,
    /// It carries an X25519 key of small order, such as all zeros.
    WeakKey,
    /// It is not sealed with the keys of this set-up: changed on the path, or recorded from another set-up.
    Changed,
    /// It is sealed for another static key than this endpoint's, as before a restart.
    OtherStatic,
    /// The certificate's key has not signed the static key.
    OtherCertificate,
    /// The certificate's key is not trusted, or not authorised.
    Untrusted,
    /// It comes from another root than the one whose calls are accepted.
    OtherCaller,
    /// Too many calls, or set-ups of one key.
    Crowded,
    /// Too many set-ups of strangers; a puzzle was sent.
    Unsolved,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::Malformed,
        Self::Cut,
        Self::Replayed,
        Self::Reflected,
        Self::WeakKey,
        Self::Changed,
        Self::OtherStatic,
        Self::OtherCertificate,
        Self::Untrusted,
        Self::OtherCaller,
        Self::Crowded,
        Self::Unsolved,
    ];

    /// Name of the reason in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Cut => "cut",
            Self::Replayed => "replayed",
            Self::Reflected => "reflected",
            Self::WeakKey => "weak_key",
            Self::Changed => "changed",
            Self::OtherStatic => "other_static_key",
            Self::OtherCertificate => "other_certificate",
            Self::Untrusted => "untrusted",
            Self::OtherCaller => "other_caller",
            Self::Crowded => "crowded",
            Self::Unsolved => "unsolved",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets of set-ups that were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounters([u64; Refusal::ALL.len()]);

impl RefusalCounters {
    pub(super) const fn add(&mut self, refusal: Refusal) {
        self.0[refusal as usize] += 1;
    }

    /// Returns each reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.0)
    }
}

impl Index<Refusal> for RefusalCounters {
    type Output = u64;

    fn index(&self, refusal: Refusal) -> &u64 {
        &self.0[refusal as usize]
    }
}

impl AddAssign for RefusalCounters {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count_and_name() {
        let mut counters = RefusalCounters::default();
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, place);
            counters.add(refusal);
        }
        counters.add(Refusal::Cut);
        counters += counters;
        let twice: Vec<_> = counters.iter().filter(|(_, count)| *count == 4).collect();
        assert_eq!(twice, [(Refusal::Cut, 4)]);
        let mut names = Refusal::ALL.map(Refusal::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Refusal::ALL.len());
    }
}
