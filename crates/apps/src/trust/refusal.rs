//! Reasons to refuse a packet, and their counters.

/// Reason to refuse a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The packet names no key, or names it by a digest, which no certificate's name can be found by.
    #[error("the packet names no certificate")]
    NoCertificateNamed,
    /// The packet received in place of a certificate is none, or its key cannot be used.
    #[error("the packet received is not a certificate with a usable key")]
    NotACertificate,
    /// The schema does not let this key sign this name.
    #[error("the schema does not allow this key to sign this name")]
    NotAllowed,
    /// The check took too many steps.
    #[error("the name takes too many steps to check")]
    TooManySteps,
    /// The signature is not that of the named key.
    #[error("the signature is wrong")]
    WrongSignature,
    /// There are too many certificates up to the anchor, or they are in a circle.
    #[error("the chain of certificates is too long")]
    TooLong,
    /// A certificate of the chain is not valid within a day of now.
    #[error("a certificate of the chain is not valid now")]
    NotValidNow,
    /// A certificate of the chain was taken back.
    #[error("a certificate of the chain was revoked")]
    Revoked,
    /// The chain ends at a key that signs itself and is not the anchor.
    #[error("the chain of certificates ends at another anchor")]
    OtherAnchor,
    /// A certificate between the signer and the anchor is not known.
    #[error("a certificate between the signer and the anchor is missing")]
    MissingCertificate,
    /// Schema or roster are older than those in force.
    #[error("the version received is older than the version in force")]
    SetBack,
}

impl Refusal {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 11] = [
        Self::NoCertificateNamed,
        Self::NotACertificate,
        Self::NotAllowed,
        Self::TooManySteps,
        Self::WrongSignature,
        Self::TooLong,
        Self::NotValidNow,
        Self::Revoked,
        Self::OtherAnchor,
        Self::MissingCertificate,
        Self::SetBack,
    ];

    /// Returns the reason's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoCertificateNamed => "no_certificate_named",
            Self::NotACertificate => "not_a_certificate",
            Self::NotAllowed => "not_allowed",
            Self::TooManySteps => "too_many_steps",
            Self::WrongSignature => "wrong_signature",
            Self::TooLong => "chain_too_long",
            Self::NotValidNow => "not_valid_now",
            Self::Revoked => "revoked",
            Self::OtherAnchor => "other_anchor",
            Self::MissingCertificate => "missing_certificate",
            Self::SetBack => "set_back",
        }
    }
}

/// Packets judged, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets accepted.
    pub accepted: u64,
    /// Names allowed by a remembered permission, without a check of the schema.
    pub remembered: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Counters {
    /// Returns the number of packets refused for `reason`.
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    pub(super) const fn refuse(&mut self, reason: Refusal) {
        self.refused[reason as usize] += 1;
    }
}
