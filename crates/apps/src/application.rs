//! What runs on a face: an application is a value that takes frames and the time, and gives frames and events.
//!
//! ```text
//!             frames, the time                       Output::Send
//!  its face ──────────────────▶ impl Application ──┬──────────────▶ its face
//!                                                  └──────────────▶ whoever runs it
//!                                                    Output::Event
//! ```
//!
//! Simulator, browser tab and sockets differ in where frames come from and what waits until
//! [`poll_timeout`](Application::poll_timeout); between two waits each takes one [`step`].

use bytes::Bytes;
use namecast_units::{Instant, Timestamp};

/// Both clocks of the host that an application runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock: deadlines are on it.
    pub monotonic: Instant,
    /// The wall clock: it goes into packets.
    pub wall: Timestamp,
}

/// What an application gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<E> {
    /// A frame to send on its face, as it is: a bare Interest or Data, or an LpPacket.
    Send(Bytes),
    /// News for whoever runs it.
    Event(E),
}

/// A program with a face, as a value without clock, socket or task. Early and repeated calls are harmless.
pub trait Application {
    /// What it reports besides frames; [`Infallible`](core::convert::Infallible) if that is nothing.
    type Event;

    /// Takes a frame from its face: a bare Interest or Data, or an LpPacket.
    fn handle_frame(&mut self, now: Now, frame: Bytes);

    /// Does what is due. The first call starts it.
    fn handle_timeout(&mut self, now: Now);

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, on the monotonic clock; `None`: after frames only.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns the next frame or event, until `None`.
    fn poll_output(&mut self) -> Option<Output<Self::Event>>;
}

/// Gives `frames`, each with the time at which it came, to an application, lets it do what is due, and passes everything that
/// it gives to `take`.
///
/// Returns when it is due next.
pub fn step<A: Application>(
    application: &mut A,
    now: Now,
    frames: impl IntoIterator<Item = (Now, Bytes)>,
    mut take: impl FnMut(Output<A::Event>),
) -> Option<Instant> {
    for (came_at, frame) in frames {
        application.handle_frame(came_at, frame);
    }
    application.handle_timeout(now);
    while let Some(output) = application.poll_output() {
        take(output);
    }
    application.poll_timeout()
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Returns what it takes, each frame with the time, and ticks every 10 ms.
    #[derive(Default)]
    struct Echo {
        frames: Vec<Bytes>,
        ticks: u32,
        reported: u32,
    }

    impl Application for Echo {
        type Event = u32;

        fn handle_frame(&mut self, _now: Now, frame: Bytes) {
            self.frames.push(frame);
        }

        fn handle_timeout(&mut self, now: Now) {
            let due = now.monotonic.since(Instant::ZERO).as_millis() / 10;
            self.ticks = u32::try_from(due).unwrap();
        }

        fn poll_timeout(&self) -> Option<Instant> {
            Some(Instant::ZERO + Duration::from_millis(10) * (self.ticks + 1))
        }

        fn poll_output(&mut self) -> Option<Output<u32>> {
            if let Some(frame) = self.frames.pop() {
                return Some(Output::Send(frame));
            }
            (self.reported < self.ticks).then(|| {
                self.reported += 1;
                Output::Event(self.reported)
            })
        }
    }

    /// At 25 ms with two frames: both are returned, two ticks have passed, the third is due at 30 ms.
    #[test]
    fn a_step_hands_over_does_what_is_due_and_drains() {
        let mut echo = Echo::default();
        let now = Now {
            monotonic: Instant::ZERO + Duration::from_millis(25),
            wall: Timestamp::from_micros(1),
        };
        let frames = [(now, Bytes::from("a")), (now, Bytes::from("b"))];
        let mut given = Vec::new();
        let due = step(&mut echo, now, frames, |output| given.push(output));
        let expected = [
            Output::Send("b".into()),
            Output::Send("a".into()),
            Output::Event(1),
            Output::Event(2),
        ];
        assert_eq!(given, expected);
        assert_eq!(due, Some(Instant::ZERO + Duration::from_millis(30)));
        assert_eq!(echo.poll_output(), None);
    }
}
