//! What hops want done.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Extensions};
use namecast_units::Duration;
use smallvec::SmallVec;

use crate::counters::{DropReason, StrategyCounters};
use crate::face::FaceId;
use crate::fields::{LinkFields, Said};

/// Faces to send to, in order.
pub(crate) type Faces = SmallVec<[FaceId; 4]>;

/// What becomes of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// What the next hop decides, and the strategy after the last. A strategy that decides nothing waits.
    #[default]
    Continue,
    /// It goes to these faces: an Interest for the first time, Data also to who did not ask.
    Forward(SmallVec<[FaceId; 4]>),
    /// The Interest goes to `best` for the first time, and with another Nonce to `probe`.
    Probe {
        /// Where the answer should come from.
        best: FaceId,
        /// Whose answer is measured.
        probe: FaceId,
    },
    /// The Interest goes to these faces along routes, and must not look for others.
    Follow(SmallVec<[FaceId; 4]>),
    /// The Interest is sent again, to these faces.
    Retransmit(SmallVec<[FaceId; 4]>),
    /// The Interest is held back: an equal one is on its way.
    Suppress,
    /// It stays pending, though there is nowhere to send it now; of a Nack, others may still answer.
    Wait,
    /// The Interest is given up, and returned to who sent it; a Nack goes to all who wait.
    Reject(NackReason),
    /// A Nack goes to one of those who wait.
    RejectTo(FaceId, NackReason),
    /// The Interest is answered with this, and so is whoever else waits for it.
    Answer(Box<Data>),
    /// It goes no further, which is counted.
    Drop(DropReason),
}

impl Decision {
    /// Counts what was decided on an Interest, equal to one that `was_sent` before or not.
    #[inline]
    pub(crate) fn count(&self, was_sent: bool, counters: &mut StrategyCounters) {
        counters.interests += 1;
        match self {
            Self::Forward(_) | Self::Probe { .. } | Self::Follow(_) | Self::Retransmit(_) => {
                counters.retransmissions += u64::from(was_sent);
            }
            Self::Suppress => counters.suppressed += 1,
            Self::Continue | Self::Wait | Self::Answer(_) | Self::RejectTo(..) => {}
            Self::Reject(_) | Self::Drop(_) => counters.rejected += 1,
        }
    }
}

/// A packet that a hop sends by itself.
#[derive(Clone, Debug)]
pub(crate) struct Originated {
    pub(crate) face: FaceId,
    /// An Interest or Data.
    pub(crate) wire: Bytes,
    pub(crate) fields: LinkFields,
    /// Why the Interest comes back, if it does.
    pub(crate) nack: Option<NackReason>,
}

/// A copy of the Data that a hop sends to one face.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) face: FaceId,
    pub(crate) fields: LinkFields,
}

/// What few hops want, apart, so that the others need not move it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    congestion_mark: Option<u64>,
    pub(crate) prefix_announcement: Option<Bytes>,
    extensions: Extensions,
    pub(crate) delay: Duration,
    originated: Vec<Originated>,
    pub(crate) copies: Vec<Copied>,
    /// A neighbour that is asked what it speaks.
    pub(crate) asks: Option<FaceId>,
    /// Whole frames without a packet.
    pub(crate) frames: Vec<(FaceId, Bytes)>,
    /// Whether the Data are not fresh, whatever they say.
    is_stale: bool,
}

impl Extras {
    /// The fields outside of NDNLPv2 that a packet goes on with.
    pub(crate) const fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The same but for the path label, for who has not asked for it; `None` if there is none.
    pub(crate) fn without_path(&self) -> Option<Self> {
        self.extensions.get(Extensions::PATH_LABEL)?;
        let mut extensions = self.extensions.clone();
        extensions.remove(Extensions::PATH_LABEL);
        Some(Self {
            congestion_mark: self.congestion_mark,
            prefix_announcement: self.prefix_announcement.clone(),
            extensions,
            delay: self.delay,
            ..Self::default()
        })
    }

    /// Whether packets are sent besides.
    pub(crate) const fn originates(&self) -> bool {
        !self.originated.is_empty() || self.asks.is_some() || !self.frames.is_empty()
    }

    /// Takes the packets that are sent besides. What else there is but the delay is not of them.
    pub(crate) fn take_originated(&mut self) -> Vec<Originated> {
        self.extensions = Extensions::NONE;
        core::mem::take(&mut self.originated)
    }
}

/// What a hop wants done: what becomes of the packet, with which fields it goes on, how much later, and what else is sent.
///
/// ```
/// # use namecast_forward::Actions;
/// # use namecast_packet::Extensions;
/// let actions = Actions::default().set_field(Extensions::HOP_COUNT, vec![1]);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Actions {
    pub(crate) decision: Decision,
    pub(crate) extras: Option<Box<Extras>>,
}

impl From<Decision> for Actions {
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            extras: None,
        }
    }
}

impl Actions {
    /// Sends the packet to these faces.
    pub fn forward_to(faces: impl IntoIterator<Item = FaceId>) -> Self {
        Decision::Forward(faces.into_iter().collect()).into()
    }

    /// Answers the Interest.
    pub fn answer(data: Data) -> Self {
        Decision::Answer(Box::new(data)).into()
    }

    /// Drops the packet, and counts why.
    pub fn drop(reason: DropReason) -> Self {
        Decision::Drop(reason).into()
    }

    /// Adds a link field outside of NDNLPv2 to what the packet goes on with, to those neighbours that speak it.
    ///
    /// # Panics
    /// If `number` [is no extension field's](Extensions::has_number).
    pub fn set_field(mut self, number: u32, octets: impl AsRef<[u8]>) -> Self {
        self.extras().extensions.set(number, octets);
        self
    }

    /// Adds a field that is a number, as [`set_field`](Self::set_field) does.
    ///
    /// # Panics
    /// If `number` [is no extension field's](Extensions::has_number).
    pub fn set_number(mut self, number: u32, value: u64) -> Self {
        self.extras().extensions.set_number(number, value);
        self
    }

    /// Says how congested the path is, whatever was said before.
    pub fn set_congestion_mark(mut self, mark: u64) -> Self {
        self.extras().congestion_mark = Some(mark);
        self
    }

    /// Announces a route with Data, to those who look for one.
    pub(crate) fn announce(mut self, announcement: Bytes) -> Self {
        self.extras().prefix_announcement = Some(announcement);
        self
    }

    /// Sends so much later what is sent now.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.extras().delay = delay;
        self
    }

    /// Sends an Interest or Data besides, as its wire has it. What comes back for it is shown to hops, and to nobody else.
    pub fn originate(mut self, face: FaceId, wire: Bytes, fields: LinkFields) -> Self {
        self.extras().originated.push(Originated {
            face,
            wire,
            fields,
            nack: None,
        });
        self
    }

    /// Sends an Interest back besides.
    pub(crate) fn refuse(
        mut self,
        face: FaceId,
        (wire, reason): (Bytes, NackReason),
        fields: LinkFields,
    ) -> Self {
        self.extras().originated.push(Originated {
            face,
            wire,
            fields,
            nack: Some(reason),
        });
        self
    }

    /// Sends the Data to a face with a PIT token and extension fields of its own, whether an Interest waits or not.
    pub fn copy_to(mut self, face: FaceId, fields: LinkFields) -> Self {
        self.extras().copies.push(Copied { face, fields });
        self
    }

    /// Asks a neighbour in a frame of its own what it speaks, unless that was done a moment ago.
    pub(crate) fn ask(mut self, face: FaceId) -> Self {
        self.extras().asks = Some(face);
        self
    }

    /// Has the content store take the Data for stale.
    pub(crate) fn stale(mut self) -> Self {
        self.extras().is_stale = true;
        self
    }

    /// Returns how long the content store takes Data for fresh.
    pub(crate) fn freshness(&self, data: &Data) -> Duration {
        let is_stale = self.extras.as_ref().is_some_and(|it| it.is_stale);
        if is_stale {
            Duration::ZERO
        } else {
            data.freshness()
        }
    }

    /// Sends a whole frame that carries no packet.
    pub(crate) fn frame(mut self, face: FaceId, frame: Bytes) -> Self {
        self.extras().frames.push((face, frame));
        self
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Adds what the next hop wants, which decides.
    pub(crate) fn and(mut self, next: Self) -> Self {
        if self.extras.is_none() {
            return next;
        }
        if let Some(more) = next.extras {
            let extras = self.extras();
            extras.congestion_mark = more.congestion_mark.or(extras.congestion_mark);
            extras.prefix_announcement = more
                .prefix_announcement
                .or(extras.prefix_announcement.take());
            for (number, octets) in more.extensions.iter() {
                extras.extensions.set(number, octets);
            }
            extras.delay += more.delay;
            extras.originated.extend(more.originated);
            extras.copies.extend(more.copies);
            extras.asks = more.asks.or(extras.asks);
            extras.frames.extend(more.frames);
            extras.is_stale |= more.is_stale;
        }
        Self {
            decision: next.decision,
            ..self
        }
    }

    /// Sets the field of NDNLPv2 that hops may set. Those outside of it a packet gets when it leaves.
    #[inline]
    pub(crate) fn apply(extras: Option<&Extras>, said: &mut Said) {
        if let Some(mark) = extras.and_then(|extras| extras.congestion_mark) {
            said.to_mut().congestion_mark = mark;
        }
    }
}
