//! What consumers want, and what they hear of it.

use core::ops::RangeInclusive;
use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Name, Nonce};
use namecast_units::{Bitrate, ByteSize, Instant};

use crate::names::{SampleClass, SegmentId, SegmentKind};

use super::objects::Object;

/// Number of a client, drawn from [`Clients`]: a consumer of one rung, or what fetches certificates, catalogues, objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(pub(crate) u64);

/// Numbers for the clients of one owner, such as a watcher, which its uplink gave it.
#[derive(Debug)]
pub struct Clients {
    /// The owner's number in the high half.
    next: u64,
}

impl Clients {
    /// Those of owner number `owner`.
    pub(super) const fn of(owner: u32) -> Self {
        let next = (owner as u64) << u32::BITS;
        Self { next }
    }

    /// Draws the number of a new client.
    pub const fn draw(&mut self) -> ClientId {
        self.next += 1;
        ClientId(self.next - 1)
    }

    /// Returns whether `client` is one of these.
    pub const fn has(&self, client: ClientId) -> bool {
        client.owner() == self.owner()
    }

    /// All tokens of all of these.
    pub const fn tokens(&self) -> Tokens {
        Self::tokens_of(self.owner())
    }

    /// The number of their owner.
    pub(super) const fn owner(&self) -> u32 {
        ClientId(self.next).owner()
    }

    /// All tokens of owner number `owner`.
    pub(super) const fn tokens_of(owner: u32) -> Tokens {
        let first = (owner as u64) << u32::BITS;
        let (first, last) = (ClientId(first), ClientId(first | u32::MAX as u64));
        *first.tokens().start()..=*last.tokens().end()
    }
}

impl ClientId {
    /// The number of its owner.
    pub(super) const fn owner(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    /// Segment `segment` of this client's.
    pub const fn token(self, segment: SegmentId) -> Token {
        Token {
            client: self,
            segment,
        }
    }

    /// Object `number` of this client's that is no segment. No rung has so many samples.
    pub const fn object(self, number: u64) -> Token {
        let mut segment = SegmentId::lead(SampleClass::Key, u64::MAX);
        segment.index = number;
        self.token(segment)
    }

    /// All tokens of this client's.
    pub const fn tokens(self) -> Tokens {
        let first = self.sample(SampleClass::Key, 0);
        let last = self.sample(SampleClass::Delta, u64::MAX);
        *first.start()..=*last.end()
    }

    /// All tokens of this client's sample `sequence`.
    pub const fn sample(self, class: SampleClass, sequence: u64) -> Tokens {
        let first = SegmentId::lead(class, sequence);
        let last = SegmentId {
            kind: SegmentKind::InterFrame,
            index: u64::MAX,
            ..first
        };
        self.token(first)..=self.token(last)
    }
}

/// What is withdrawn and revised together: one token, a sample's, or a client's.
pub type Tokens = RangeInclusive<Token>;

/// One segment of one client's, or another object. The client is the uplink's number, so tokens of two clients never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// Who wants it.
    pub client: ClientId,
    /// What it is to the client.
    pub segment: SegmentId,
}

impl Token {
    /// The least token of any.
    pub(super) const FIRST: Self = *ClientId(0).tokens().start();
    /// The greatest.
    pub(super) const LAST: Self = *ClientId(u64::MAX).tokens().end();

    /// Returns the tokens of the sample that it is of.
    pub const fn sample(&self) -> Tokens {
        self.client
            .sample(self.segment.class, self.segment.sequence)
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
    /// A segment of an object that was lost before.
    ObjectRepair,
    /// A segment of an object: takes what live media leave.
    Object,
    /// Requested to find out what the path carries.
    Probe,
}

impl Kind {
    /// Returns whether it is of an object, whose client bounds its Interests itself.
    pub const fn is_object(self) -> bool {
        matches!(self, Self::ObjectRepair | Self::Object)
    }

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

/// Weight of an owner beside others that share an uplink: how much of the room its pictures take, and whose leave first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u8);

impl Weight {
    /// That of an owner of which nothing else is known.
    pub const ONE: Self = Self(1);

    /// The greatest.
    pub(super) const MAX: Self = Self(u8::MAX);

    /// A weight of `parts`, 1 at least.
    pub fn new(parts: u8) -> Self {
        Self(parts.max(1))
    }

    /// Its parts.
    pub const fn parts(self) -> u8 {
        self.0
    }

    /// The next lower one.
    pub(super) const fn below(self) -> Option<Self> {
        match self.0 {
            0 | 1 => None,
            parts => Some(Self(parts - 1)),
        }
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

/// Something a client wants of its uplink, which it does not know: whoever has both passes it on.
#[derive(Clone, Debug)]
pub enum Request {
    /// Something to request as soon as the budget allows, or again if it was requested before.
    Want(Want),
    /// An object to request at once.
    Object(Object),
    /// What was wanted does not exist, or the object came.
    Forget(Token),
    /// The Data that came for it is not what was requested.
    Reject(Token),
    /// An object to request again at this time, if that is sooner than it would be.
    Hasten(Token, Instant),
    /// Its Interest came back.
    TakeBack(Nacked, NackReason),
    /// What is wanted for these is of no use any more. If an Interest is out, its Data comes all the same, and tells of the path.
    Withdraw(Tokens),
    /// When these could be here at the earliest is known now: their sample's lead has told.
    Revise(Tokens, Instant),
    /// Interests that are out for these are lost: the one that was to answer is gone. Clients may want the same again.
    GiveUp(Tokens),
    /// Verified Data of the client's has shown the round trip to the producer.
    RoundTrip(ClientId, Duration),
    /// The client's Data is bounded by a rate of its own; `None` ends that.
    Limit(ClientId, Option<Limit>),
    /// Everything that the client's owner wants from now on has this weight.
    Weigh(ClientId, Weight),
}

impl Request {
    /// Whose it is: one of its owner's clients.
    pub(super) const fn client(&self) -> ClientId {
        match self {
            Self::Want(want) => want.token.client,
            Self::Object(object) => object.token.client,
            Self::Forget(token) | Self::Reject(token) | Self::Hasten(token, _) => token.client,
            Self::TakeBack(nacked, _) => nacked.token.client,
            Self::Withdraw(tokens) | Self::Revise(tokens, _) | Self::GiveUp(tokens) => {
                tokens.start().client
            }
            Self::RoundTrip(client, _) | Self::Limit(client, _) | Self::Weigh(client, _) => *client,
        }
    }
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
    /// A want, or an object, has left.
    Sent {
        /// Whose it is.
        token: Token,
        /// Its Nonce.
        nonce: Nonce,
        /// How many Interests for wants had left before it.
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

/// A want, or an object, that Data answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whose it is.
    pub token: Token,
    /// When the Interest left, the last time; `None`: it is not out any more, or did not leave.
    pub sent_at: Option<Instant>,
}

/// A want, or an object, whose Interest came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nacked {
    /// Whose it is.
    pub token: Token,
    /// Whether no later Interest is out for it.
    pub is_latest: bool,
    /// Interests that left for it, if it is an object.
    pub attempts: u32,
}

/// What must be equal besides the name for one Interest to stand for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selectors {
    pub can_be_prefix: bool,
    pub must_be_fresh: bool,
    pub forwarding_hint: Vec<Name>,
}

impl Selectors {
    /// Those of `interest`.
    pub(super) fn of(interest: &Interest) -> Self {
        Self {
            can_be_prefix: interest.can_be_prefix(),
            must_be_fresh: interest.must_be_fresh(),
            forwarding_hint: interest.forwarding_hint().to_vec(),
        }
    }
}

impl Want {
    /// Returns those of its Interest.
    pub(super) const fn selectors(&self) -> Selectors {
        Selectors {
            can_be_prefix: false,
            must_be_fresh: self.must_be_fresh,
            forwarding_hint: Vec::new(),
        }
    }
}
