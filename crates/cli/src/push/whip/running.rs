//! A session while it lasts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use namecast_media::ingest::source::Container;
use namecast_media::whip::{Datagram, Ended, Output, Session};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::octets::{self, Reader, Writer};
use super::{Input, PROTOCOL, Shared};
use crate::push::{Admitted, Pushed, Refusal, Seen};

/// A session, and what it needs to go on.
pub(super) struct Running {
    pub(super) shared: Arc<Shared>,
    /// Secret part of its URL.
    pub(super) id: String,
    pub(super) session: Session,
    pub(super) inputs: mpsc::Receiver<Input>,
    /// Who sent the offer.
    pub(super) from: SocketAddr,
    pub(super) seen: Seen,
}

impl Running {
    /// Goes on until the pusher leaves, or nobody reads what it pushes.
    pub(super) async fn run(mut self, admitted: Admitted) {
        let (writer, reader) = octets::channel();
        let mut waiting = Some((admitted, reader));
        while self.pass_on(&writer, &mut waiting).await {
            tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(Input::Datagram { source, destination, payload }) => {
                        self.session.handle_datagram(Instant::now(), source, destination, &payload);
                    }
                    Some(Input::Delete) | None => self.session.close(Instant::now()),
                },
                () = sleep_until(self.session.poll_timeout().into()) => self.session.handle_timeout(Instant::now()),
                () = writer.closed() => self.session.close(Instant::now()),
            }
        }
    }

    /// Passes on what the session gives; hands the stream over with its first octets. Returns whether it goes on.
    async fn pass_on(&mut self, writer: &Writer, waiting: &mut Option<(Admitted, Reader)>) -> bool {
        self.seen.set(self.session.received());
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Datagram(Datagram {
                    source,
                    destination,
                    payload,
                }) => {
                    self.shared.send(source, destination, &payload);
                }
                Output::Media(octets) => {
                    if !writer.put(octets) {
                        self.session.close(Instant::now());
                    } else if let Some((admitted, reader)) = waiting.take() {
                        let pushed = Pushed {
                            admitted,
                            octets: Box::new(reader),
                            container: Container::Nut,
                            protocol: PROTOCOL,
                            from: self.from,
                            seen: Some(self.seen.clone()),
                        };
                        if !self.shared.gate.hand_over(pushed).await {
                            return false;
                        }
                    }
                }
            }
        }
        match self.session.ended() {
            None => true,
            Some(why) => {
                tracing::debug!(
                    "WHIP from {}: {why}; {:?}",
                    self.from,
                    self.session.counters()
                );
                if why == Ended::NoMedia {
                    let why = Refusal::Malformed(why.to_string());
                    self.shared.gate.refuse(PROTOCOL, self.from, why);
                }
                false
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.id);
    }
}
