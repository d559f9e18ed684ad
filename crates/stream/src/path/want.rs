//! What consumers want, and what they hear of it.

use core::time::Duration;

use namecast_packet::{Interest, Name, Nonce};
use namecast_units::{Bitrate, ByteSize, Instant};

use crate::names::{SampleClass, SegmentId};

/// Whoever wants something: a consumer of one rung, or what fetches metadata, certificate and catalogue.
pub type Client = u32;

/// One segment of one client's, or another object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// Who wants it.
    pub client: Client,
    /// What it is.
    pub segment: SegmentId,
}

/// One sample of one client's: what is withdrawn and revised together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Who wants it.
    pub client: Client,
    /// Its class.
    pub class: SampleClass,
    /// Its number in that class.
    pub sequence: u64,
}

impl Token {
    /// Object `number` of `client` that is no segment. No rung has so many samples.
    pub const fn object(client: Client, number: u64) -> Self {
        let mut segment = SegmentId::lead(SampleClass::Key, u64::MAX);
        segment.index = number;
        Self { client, segment }
    }

    /// Returns the sample that it is of.
    pub const fn group(&self) -> Group {
        Group {
            client: self.client,
            class: self.segment.class,
            sequence: self.segment.sequence,
        }
    }
}

/// What is wanted, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sound: never paced.
    Sound,
    /// What was lost before.
    Repair,
    /// A segment of a key sample.
    Key,
    /// A segment of a delta sample.
    Delta,
    /// Requested ahead in case something is lost.
    Parity,
    /// Requested to find out what the path carries.
    Probe,
}

impl Kind {
    /// Returns whether it is paced and counts against the window.
    pub const fn is_paced(self) -> bool {
        !matches!(self, Self::Sound)
    }
}

/// A request for one Data packet.
#[derive(Clone, Debug)]
pub struct Want {
    /// Whose it is.
    pub token: Token,
    /// Name of the Data.
    pub name: Name,
    /// Lifetime of its Interest.
    pub lifetime: Duration,
    /// Whether caches may not answer with what they have had for long.
    pub must_be_fresh: bool,
    /// Whether a longer name may answer.
    pub can_be_prefix: bool,
    /// Face whose last answer was bad.
    pub avoid_face: Option<u64>,
    /// How urgent it is.
    pub kind: Kind,
    /// Size of the Data, as far as that can be known.
    pub size: ByteSize,
    /// When it could arrive at the earliest if nothing queued; `None`: it exists.
    pub available_at: Option<Instant>,
    /// Its Data should not arrive before that, as what is wanted before it takes the link so long.
    pub not_before: Option<Instant>,
    /// What comes later is late.
    pub due: Option<Instant>,
    /// From then on it is of no use.
    pub deadline: Option<Instant>,
}

/// Bounds one client's Data by a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Rate of Data.
    pub rate: Bitrate,
    /// What one Interest is taken to bring.
    pub packet_size: ByteSize,
}

/// Something an uplink wants done or known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An Interest to send.
    Interest {
        /// The Interest.
        interest: Interest,
        /// Face whose last answer was bad, as the node numbers them: better use another.
        avoid_face: Option<u64>,
    },
    /// A want has left.
    Sent {
        /// Whose it is.
        token: Token,
        /// Its Nonce.
        nonce: Nonce,
        /// How many Interests had left before it.
        order: u64,
    },
    /// It will not be sent any more: its deadline is over, or the budget for repair is, or an object did not come.
    Dropped(Token),
    /// It is taken for lost: Data requested later has come, and no queue explains it.
    Lost(Token),
    /// Every delay has grown by as much, and not by a queue of ours: the path is longer.
    PathGrew(Duration),
    /// It is not longer after all.
    PathShrank,
}

/// What was known of an Interest that is answered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whose it is.
    pub token: Token,
    /// How urgent it was.
    pub kind: Kind,
    /// When the Interest left, the last time.
    pub sent_at: Instant,
}
