//! An object that is fetched over uplinks which others own and share.

use core::time::Duration;

use namecast_packet::Data;
use namecast_packet::lp::NackReason;
use namecast_stream::consumer::Delivery;
use namecast_stream::path::{self, ClientId, Clients, Nacked, Request, Token};
use namecast_units::Instant;

use super::config::{Event, FetcherConfig};
use super::fetch::{Fetch, Learned};

/// A fetch as a client: it knows no uplink, and whoever owns some passes requests, answers and events to and fro.
pub(crate) struct ObjectClient {
    clients: Clients,
    fetch: Fetch,
}

impl core::fmt::Debug for ObjectClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ObjectClient")
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}

impl ObjectClient {
    /// Requests the object of `config` at the first [`handle_timeout`](Self::handle_timeout). Its seed and its control count for nothing.
    pub(crate) fn new(config: FetcherConfig, mut clients: Clients) -> Self {
        Self {
            fetch: Fetch::new(config, clients.draw(), Learned::default()),
            clients,
        }
    }

    /// Numbers of what requests anything for it.
    pub(crate) const fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Whether `client` is one of these.
    pub(crate) const fn has(&self, client: ClientId) -> bool {
        self.clients.has(client)
    }

    /// Sets the round trip of the path, before each call.
    pub(crate) const fn set_round_trip(&mut self, round_trip: Duration) {
        self.fetch.round_trip = round_trip;
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.fetch.handle_timeout(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.fetch.poll_timeout()
    }

    /// Whether nothing more is requested.
    pub(crate) const fn is_over(&self) -> bool {
        self.fetch.is_over()
    }

    /// Takes Data that answers `token`. Returns whether it is of use.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        data: (&Data, Delivery),
    ) -> bool {
        self.fetch.handle_answer(now, token, data)
    }

    /// Takes an Interest that came back for `reason`.
    pub(crate) fn handle_nacked(&mut self, now: Instant, nacked: Nacked, reason: NackReason) {
        self.fetch.handle_nack(now, nacked, reason);
    }

    /// Takes what became of a request.
    pub(crate) fn handle_event(&mut self, now: Instant, event: &path::Event) {
        self.fetch.handle_event(now, event);
    }

    /// Returns its next request, until `None`.
    pub(crate) fn poll_request(&mut self) -> Option<Request> {
        self.fetch.poll_request()
    }

    /// Returns its next report, until `None`.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.fetch.poll_event()
    }
}
