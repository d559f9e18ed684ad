//! Applications of hosts, of whatever type.

use std::any::Any;

use bytes::Bytes;
use namecast_apps::sequence::Fetched;
use namecast_apps::{Application, Now, Output};
use namecast_units::Instant;

/// An application whose type is known to those who ask for it.
pub(crate) trait Hosted: Any {
    /// Takes a frame from its face.
    fn handle_frame(&mut self, now: Now, frame: Bytes);

    /// Does what is due.
    fn handle_timeout(&mut self, now: Now);

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, on the host's monotonic clock.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns the next frame, or Data that it fetched, for traces. Nobody hears of other events.
    fn poll_output(&mut self) -> Option<Output<Fetched>>;
}

impl<A: Application<Event: 'static> + Any> Hosted for A {
    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        Application::handle_frame(self, now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Application::handle_timeout(self, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Application::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Fetched>> {
        loop {
            match Application::poll_output(self)? {
                Output::Send(frame) => return Some(Output::Send(frame)),
                Output::Event(event) => {
                    if let Some(fetched) = (&event as &dyn Any).downcast_ref() {
                        return Some(Output::Event(*fetched));
                    }
                }
            }
        }
    }
}
