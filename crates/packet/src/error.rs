//! Why a packet was refused.

/// A packet that breaks the format: which field, where, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at octet {offset}: {problem}")]
pub struct DecodeError {
    /// Field that is wrong, as the specification names it.
    pub field: &'static str,
    /// Octets from the start of the packet to the offending element.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

impl DecodeError {
    /// An error in `field`, `offset` octets into the packet.
    pub const fn new(field: &'static str, offset: usize, problem: Problem) -> Self {
        Self {
            field,
            offset,
            problem,
        }
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The element needs more octets than there are.
    #[error("truncated")]
    Truncated,
    /// A TLV-TYPE or TLV-LENGTH takes more octets than it needs.
    #[error("number is not in its shortest form")]
    NotShortest,
    /// A TLV-TYPE of 0 or above 2³² − 1, or a component type of 0 or above 65535.
    #[error("type {0} is out of range")]
    TypeOutOfRange(u64),
    /// Another element was required here.
    #[error("unexpected type {0}")]
    UnexpectedType(u32),
    /// An element that must be understood is unknown, repeated or out of order.
    #[error("critical element of type {0} is unknown, repeated or out of order")]
    Critical(u32),
    /// A required element is absent.
    #[error("missing")]
    Missing,
    /// The value's length is not one that the field can have.
    #[error("length {0} is not allowed")]
    BadLength(usize),
    /// A number is larger than this implementation takes.
    #[error("value is out of range")]
    ValueOutOfRange,
    /// Octets follow the packet.
    #[error("{0} octets follow the packet")]
    Trailing(usize),
    /// ParametersSha256Digest and ApplicationParameters do not belong together.
    #[error("parameters digest is missing, repeated or wrong")]
    ParametersDigest,
    /// The value is not what the field's text format requests.
    #[error("malformed value")]
    Malformed,
}
