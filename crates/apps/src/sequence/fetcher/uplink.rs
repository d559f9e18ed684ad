//! Source of a fetcher's Interests: numbers one by one, or requests for any next Data.

use bytes::Bytes;
use namecast_packet::{
    AnyNextRequest, Extensions, Interest, InterestTemplate, LpPacket, Name, Nonce,
};
use namecast_stream::path::{
    AnyNext, AnyNextOutput, NumberedAnswer, NumberedCounters, NumberedPaths, NumberedRequest,
    Received, SegmentProgress, Unanswered,
};
use namecast_units::{Bitrate, Instant};

use super::config::{Delivery, FetcherConfig};

/// Requests numbers, or whatever comes next of them.
#[derive(Debug)]
pub(super) enum Uplink {
    Numbered(Box<NumberedPaths>),
    AnyNext(Box<AnyNext>),
}

impl Uplink {
    pub(super) fn new(config: &FetcherConfig) -> Self {
        match config.delivery {
            Delivery::Numbered => Self::Numbered(Box::new(NumberedPaths::new(config.requests))),
            Delivery::AnyNext => Self::AnyNext(Box::new(AnyNext::new(config.requests))),
        }
    }

    pub(super) fn start(&mut self, now: Instant) {
        match self {
            Self::Numbered(paths) => paths.start(now),
            Self::AnyNext(receiver) => receiver.start(now),
        }
    }

    pub(super) fn stop(&mut self) {
        match self {
            Self::Numbered(paths) => paths.stop(),
            Self::AnyNext(receiver) => receiver.stop(),
        }
    }

    /// Takes Data, with their number on the link if they have one.
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        (number, link): (u64, Option<u32>),
        received: &Received,
    ) -> Result<NumberedAnswer, Unanswered> {
        match self {
            Self::Numbered(paths) => paths.handle_data(now, number, received),
            Self::AnyNext(receiver) => receiver.handle_data(now, (number, link), received),
        }
    }

    /// Takes an Interest that came back, of a number or, without one, of the flow. Returns whether it was waited for.
    pub(super) fn handle_nack(
        &mut self,
        now: Instant,
        (number, nonce): (Option<u64>, Option<Nonce>),
        is_congestion: bool,
    ) -> bool {
        match (self, number) {
            (Self::Numbered(paths), Some(number)) => {
                paths.handle_nack(now, number, nonce, is_congestion)
            }
            (Self::Numbered(_), None) => false,
            (Self::AnyNext(receiver), Some(number)) => {
                receiver.handle_nack(now, number, nonce, is_congestion)
            }
            (Self::AnyNext(receiver), None) => {
                receiver.handle_refusal(now);
                true
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Numbered(paths) => paths.handle_timeout(now),
            Self::AnyNext(receiver) => receiver.handle_timeout(now),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Numbered(paths) => paths.poll_timeout(),
            Self::AnyNext(receiver) => receiver.poll_timeout(),
        }
    }

    /// The next packet to send; `numbers` and `flow` make Interests.
    pub(super) fn poll_output(&mut self, numbers: &InterestTemplate, flow: &Flow) -> Option<Bytes> {
        let number = match self {
            Self::Numbered(paths) => paths.poll_request()?,
            Self::AnyNext(receiver) => match receiver.poll_output()? {
                AnyNextOutput::Number(request) => request,
                AnyNextOutput::AnyNext(request, nonce) => return Some(flow.frame(request, nonce)),
            },
        };
        let NumberedRequest {
            number,
            nonce,
            path,
        } = number;
        let interest = numbers.build(number, nonce).wire().clone();
        let Some(label) = path.label() else {
            return Some(interest);
        };
        let mut packet = LpPacket::carrying(interest);
        let octets = Bytes::copy_from_slice(label.as_octets());
        packet.extensions.set(Extensions::PATH_LABEL, octets);
        Some(packet.encode())
    }

    /// Whether numbers are requested one after the other.
    pub(super) const fn is_numbered(&self) -> bool {
        matches!(self, Self::Numbered(_))
    }

    /// The receiver of any next Data.
    pub(super) fn any_next(&mut self) -> Option<&mut AnyNext> {
        match self {
            Self::Numbered(_) => None,
            Self::AnyNext(receiver) => Some(receiver),
        }
    }

    pub(super) fn counters(&self) -> NumberedCounters {
        match self {
            Self::Numbered(paths) => paths.counters(),
            Self::AnyNext(receiver) => receiver.counters(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        match self {
            Self::Numbered(paths) => paths.in_flight(),
            Self::AnyNext(receiver) => receiver.in_flight(),
        }
    }

    pub(super) fn window(&self) -> Option<u32> {
        match self {
            Self::Numbered(paths) => paths.window(),
            Self::AnyNext(receiver) => Some(receiver.window()),
        }
    }

    pub(super) fn estimate(&self) -> Option<Bitrate> {
        match self {
            Self::Numbered(paths) => paths.estimate(),
            Self::AnyNext(_) => None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Numbered(paths) => paths.is_done(),
            Self::AnyNext(receiver) => receiver.is_done(),
        }
    }

    pub(super) fn paths(&self) -> usize {
        match self {
            Self::Numbered(paths) => paths.paths(),
            Self::AnyNext(_) => 1,
        }
    }

    pub(super) fn progress(&self) -> SegmentProgress {
        match self {
            Self::Numbered(paths) => paths.progress(),
            Self::AnyNext(_) => SegmentProgress {
                index: 0,
                missing: u64::MAX,
            },
        }
    }
}

/// Makes requests for any next Data of a flow.
#[derive(Debug)]
pub(super) struct Flow {
    name: Name,
    lifetime: core::time::Duration,
}

impl Flow {
    pub(super) fn new(config: &FetcherConfig) -> Self {
        Self {
            name: config.prefix.clone(),
            lifetime: config.requests.lifetime,
        }
    }

    fn frame(&self, request: AnyNextRequest, nonce: Nonce) -> Bytes {
        let interest = Interest::builder(self.name.clone()).lifetime(self.lifetime);
        let interest = interest.build(nonce).wire().clone();
        let mut fields = Extensions::default();
        fields.set(Extensions::ANY_NEXT, request.encode());
        LpPacket::wrapped(interest, &fields)
    }
}
