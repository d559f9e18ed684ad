//! What happened in a network, event by event.
//!
//! ```text
//!  Event ─▶ Sink ─┬─▶ CsvTrace, ParquetTrace      every event
//!                 ├─▶ Fingerprint                 one number for all events
//!                 ├─▶ ndnsim::AppDelayTable, …    ndnSIM's tables; with Sampler for what is periodic
//!                 └─▶ Tee, Rc<RefCell<…>>         several sinks; a sink that is read afterwards
//! ```

mod csv;
mod fingerprint;
mod frame;
pub mod ndnsim;
mod parquet;
mod row;
mod snapshot;

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use namecast_netem::{self as netem, DropReason};
use namecast_units::Instant;

use crate::topology::{LinkIndex, NodeIndex};
use namecast_apps::sequence::Fetched;

pub use csv::CsvTrace;
pub use fingerprint::Fingerprint;
pub use frame::{Frame, PacketKind};
pub use parquet::{ParquetConfig, ParquetTrace};
pub use snapshot::{FaceSnapshot, Sampler, Snapshot};

/// One event. `packet` is the frame as it was on the link: bare Interest or Data, or LpPacket.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// When it happened, in the network's true time.
    pub at: Instant,
    /// The node it happened at.
    pub node: NodeIndex,
    /// The face it concerns.
    pub face: u64,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened to a frame.
#[derive(Clone, Debug)]
pub enum EventKind<'a> {
    /// The node's forwarder was handed a frame, from a link or an application.
    Received(&'a Bytes),
    /// The node's forwarder gave a frame to a link or an application.
    Sent(&'a Bytes),
    /// The link lost a frame that the node had sent, or the node was down when one came.
    Dropped(&'a Bytes, DropReason),
    /// An application got Data that it had asked for.
    Fetched(Fetched),
}

/// Takes events as they happen.
pub trait Sink {
    /// One event; times never decrease.
    fn record(&mut self, event: &Event<'_>);
}

/// Takes what leaves links.
pub trait LinkSink {
    /// One frame that was delivered or dropped by `link`, in the direction from its second end if `from_second`.
    fn record(&mut self, link: LinkIndex, from_second: bool, output: &netem::Output);
}

impl<S: LinkSink + ?Sized> LinkSink for Rc<RefCell<S>> {
    fn record(&mut self, link: LinkIndex, from_second: bool, output: &netem::Output) {
        self.borrow_mut().record(link, from_second, output);
    }
}

/// Nothing is written down.
impl Sink for () {
    fn record(&mut self, _event: &Event<'_>) {}
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn record(&mut self, event: &Event<'_>) {
        (**self).record(event);
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn record(&mut self, event: &Event<'_>) {
        (**self).record(event);
    }
}

/// A sink that its maker keeps a handle of, to finish it when the network has given back its own.
impl<S: Sink + ?Sized> Sink for Rc<RefCell<S>> {
    fn record(&mut self, event: &Event<'_>) {
        self.borrow_mut().record(event);
    }
}

/// Hands every event to all of them, in order.
impl<S: Sink> Sink for Vec<S> {
    fn record(&mut self, event: &Event<'_>) {
        for sink in self {
            sink.record(event);
        }
    }
}

/// Hands every event to the one and then to the other.
#[derive(Clone, Debug, Default)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Tee<A, B> {
    fn record(&mut self, event: &Event<'_>) {
        self.0.record(event);
        self.1.record(event);
    }
}

/// The name of a reason, in snake case.
const fn reason_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue_full",
        DropReason::ActiveQueue => "active_queue",
        DropReason::Loss => "loss",
        DropReason::Down => "down",
        DropReason::InFlightFull => "in_flight_full",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(u32);

    impl Sink for Count {
        fn record(&mut self, _event: &Event<'_>) {
            self.0 += 1;
        }
    }

    #[test]
    fn every_sink_gets_every_event() {
        let shared = Rc::new(RefCell::new(Count::default()));
        let handle: Box<dyn Sink> = Box::new(Rc::clone(&shared));
        let mut last = Count::default();
        let mut tee = Tee(vec![handle], Tee(&mut last, ()));
        let frame = Bytes::new();
        for nanos in 0..3 {
            tee.record(&Event {
                at: Instant::from_nanos(nanos),
                node: 0,
                face: 256,
                kind: EventKind::Sent(&frame),
            });
        }
        drop(tee);
        assert_eq!((shared.borrow().0, last.0), (3, 3));
    }
}
