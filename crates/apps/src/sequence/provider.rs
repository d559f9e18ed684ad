//! Provides a flow of numbered Data to whoever requests any next of them.

use std::collections::VecDeque;

use core::convert::Infallible;

use bytes::Bytes;
use namecast_packet::any_next::PendingRequests;
use namecast_packet::signature::NullSigner;
use namecast_packet::{AnyNextRequest, Data, Extensions, Interest, LpPacket, Name};
use namecast_units::{Bitrate, ByteSize, Instant};

use super::server::{Server, ServerConfig, ServerError};
use crate::receivers::{self, Pacing, ReceiverId, Receivers, Report, reporter};
use crate::{Application, Now, Output, face};

/// Configuration of a [`Provider`].
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Name and packets of the flow.
    pub server: ServerConfig,
    /// Rate of whole frames at which Data leave at most.
    pub rate: Bitrate,
    /// The receiver of those that report whose pace counts: 0, the slowest; `None`: that of who requests most.
    pub quantile: Option<f64>,
    /// When the first Data may leave.
    pub start: Instant,
}

/// Sends `/<prefix>/seq=<n>` for one n after the other while requests for any next Data are pending, paced; and answers Interests for
/// numbers at once, as a [`Server`] does. With a [quantile](ProviderConfig::quantile) the pace is that of one receiver, which
/// acknowledges what comes \[PGMCC\].
///
/// Its own node is its only neighbour, which counts the requests of all.
#[derive(Debug)]
pub struct Provider {
    server: Server,
    prefix: Name,
    rate: Bitrate,
    end: u64,
    next: u64,
    /// Those of its node, from the first on.
    requests: Option<PendingRequests>,
    token: Option<Bytes>,
    /// When the next Data may leave.
    next_at: Instant,
    receivers: Receivers,
    pacing: Option<Pacing>,
    outputs: VecDeque<Bytes>,
}

impl Provider {
    /// A provider that has sent nothing.
    ///
    /// # Errors
    /// If packets cannot have the size that they should have.
    pub fn new(config: ProviderConfig) -> Result<Self, ServerError> {
        Ok(Self {
            prefix: config.server.prefix.clone(),
            end: config.server.end.unwrap_or(u64::MAX),
            server: Server::new(config.server)?,
            rate: config.rate,
            next: 0,
            requests: None,
            token: None,
            next_at: config.start,
            receivers: Receivers::default(),
            pacing: config.quantile.map(Pacing::new),
            outputs: VecDeque::new(),
        })
    }

    /// Returns how many Data were sent as any next ones.
    pub const fn provided(&self) -> u64 {
        self.next
    }

    /// Takes a request, a report or an acknowledgement. Returns whether the packet is one of the flow's.
    fn on_packet(&mut self, now: Instant, packet: &LpPacket) -> bool {
        let interest = packet.fragment.clone().map(Interest::decode);
        let Some(Ok(interest)) = interest.filter(|_| packet.nack.is_none()) else {
            return false;
        };
        let value = packet.extensions.get(Extensions::ANY_NEXT);
        let request = value.and_then(AnyNextRequest::decode);
        if let Some(request) = request.filter(|_| *interest.name() == self.prefix) {
            self.on_request(&request);
            self.token = packet.pit_token.as_deref().map(Bytes::copy_from_slice);
        } else if let Some(id) = reporter(&self.prefix, interest.name()) {
            self.on_report(now, (id, &interest), packet.pit_token.clone());
        } else if let Some((id, numbers)) = receivers::acknowledged(&self.prefix, &interest) {
            if let Some(pacing) = &mut self.pacing {
                pacing.on_acknowledged(now, id, &numbers);
            }
        } else {
            return false;
        }
        true
    }

    fn on_request(&mut self, request: &AnyNextRequest) {
        match &mut self.requests {
            Some(requests) => requests.update(request),
            None => self.requests = Some(PendingRequests::new(request)),
        }
    }

    fn on_report(
        &mut self,
        now: Instant,
        (id, interest): (ReceiverId, &Interest),
        token: Option<Bytes>,
    ) {
        let report = interest.parameters().and_then(|it| Report::decode(&it));
        let Some(report) = report else {
            return;
        };
        let sender = (&mut self.receivers, self.pacing.as_mut());
        let answer = receivers::on_report(now, sender, (id, report));
        let data = Data::builder(interest.name().clone())
            .content(answer)
            .sign(&NullSigner);
        self.outputs
            .push_back(face::answer(data.wire().clone(), token));
    }

    fn may_send(&self) -> bool {
        self.pacing.as_ref().is_none_or(Pacing::may_send)
    }

    fn pending(&self) -> u16 {
        let requests = self.requests.as_ref();
        requests.map_or(0, PendingRequests::count)
    }

    /// Sends Data that are requested and due.
    fn provide(&mut self, now: Instant) {
        while self.next < self.end && self.next_at <= now && self.pending() > 0 && self.may_send() {
            let Some(data) = self.server.data(self.next) else {
                return;
            };
            let requests = self.requests.as_mut();
            let Some(number) = requests.and_then(PendingRequests::answer) else {
                return;
            };
            if let Some(pacing) = &mut self.pacing {
                pacing.on_sent(now, self.next);
            }
            self.next += 1;
            let spare = self.pending().into();
            let mut packet = LpPacket {
                pit_token: self.token.clone(),
                ..LpPacket::carrying(data)
            };
            let fields = &mut packet.extensions;
            fields.set(Extensions::ANY_NEXT, number.to_be_bytes());
            fields.set_number(Extensions::MIN_PENDING_REQUESTS, spare);
            let frame = packet.encode();
            self.next_at = self.next_at.max(now) + ByteSize::of(&frame) / self.rate;
            self.outputs.push_back(frame);
        }
    }
}

impl Application for Provider {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let packet = LpPacket::decode(frame.clone());
        if !packet.is_ok_and(|packet| self.on_packet(now.monotonic, &packet)) {
            self.server.handle_packet(now.monotonic, frame);
        }
        self.provide(now.monotonic);
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some(pacing) = &mut self.pacing {
            pacing.handle_timeout(now.monotonic);
        }
        self.provide(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let is_due = self.pending() > 0 && self.next < self.end && self.may_send();
        let pacing = self.pacing.as_ref().and_then(Pacing::poll_timeout);
        pacing
            .into_iter()
            .chain(is_due.then_some(self.next_at))
            .min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let frame = self.outputs.pop_front();
        let frame = frame.or_else(|| self.server.poll_output());
        frame.map(Output::Send)
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::{Data, Nonce, any_next};
    use namecast_units::{Duration, Timestamp};

    use super::*;

    fn at(millis: u64) -> Now {
        Now {
            monotonic: Instant::ZERO + Duration::from_millis(millis),
            wall: Timestamp::from_micros(0),
        }
    }

    fn request(pending: u16, seen: u32) -> Bytes {
        let interest = Interest::builder("/p".parse().unwrap()).build(Nonce([1; 4]));
        let mut packet = LpPacket::carrying(interest.wire().clone());
        packet.pit_token = Some(Bytes::from_static(b"token"));
        let request = AnyNextRequest {
            pending,
            seen,
            refresh: false,
        };
        packet
            .extensions
            .set(Extensions::ANY_NEXT, request.encode());
        packet.encode()
    }

    /// Names, numbers on the link and requests to spare of what was sent.
    fn sent(provider: &mut Provider) -> Vec<(String, Option<u32>, Option<u64>)> {
        let mut all = Vec::new();
        while let Some(Output::Send(frame)) = provider.poll_output() {
            let packet = LpPacket::decode(frame).unwrap();
            let number = packet.extensions.get(Extensions::ANY_NEXT);
            let spare = packet.extensions.number(Extensions::MIN_PENDING_REQUESTS);
            let data = Data::decode(packet.fragment.unwrap()).unwrap();
            let number = number.and_then(any_next::decode_number);
            all.push((data.name().to_string(), number, spare));
        }
        all
    }

    /// 1000 octets and a header at 100 kbit/s: one packet in a little more than 80 ms.
    #[test]
    fn data_leave_while_requests_are_pending_and_at_the_rate() {
        let mut provider = Provider::new(ProviderConfig {
            server: ServerConfig {
                prefix: "/p".parse().unwrap(),
                content_size: 900,
                wire_size: Some(1_000),
                end: Some(4),
                ..ServerConfig::default()
            },
            rate: Bitrate::kbps(100),
            quantile: None,
            start: Instant::ZERO,
        })
        .unwrap();
        assert_eq!(provider.poll_timeout(), None);
        provider.handle_frame(at(0), request(2, 40));
        let first = ("/p/seq=0".to_owned(), Some(41), Some(1));
        assert_eq!(sent(&mut provider), [first]);
        provider.handle_timeout(at(80));
        assert_eq!(sent(&mut provider), []);
        provider.handle_timeout(at(85));
        let second = ("/p/seq=1".to_owned(), Some(42), Some(0));
        assert_eq!(sent(&mut provider), [second]);
        assert_eq!(provider.poll_timeout(), None);
        // One of the two is under way still; and the flow ends.
        provider.handle_frame(at(500), request(5, 41));
        assert_eq!(sent(&mut provider)[0].2, Some(3));
        provider.handle_timeout(at(900));
        assert_eq!(
            (sent(&mut provider).len(), provider.poll_timeout()),
            (1, None)
        );
        let exact = Interest::builder("/p/seq=3".parse().unwrap()).build(Nonce([2; 4]));
        provider.handle_frame(at(901), exact.wire().clone());
        assert_eq!(sent(&mut provider), [("/p/seq=3".to_owned(), None, None)]);
    }
}
