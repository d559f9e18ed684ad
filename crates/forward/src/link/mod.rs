//! Links: frames of a link to network packets and back (NDNLPv2).

mod counters;
mod fragmentation;
mod marking;
mod meter;
mod neighbour;
mod offers;
mod path_mtu;
mod path_probe;
mod queue;
mod reassembly;
mod reliability;
mod service;

pub use counters::{FrameCount, LinkCounters};
use fragmentation::cut;
pub use fragmentation::fragment;
pub(crate) use fragmentation::frame_count;
use marking::SojournMarker;
pub use marking::{CongestionLaw, CongestionMarker, CongestionMarking};
pub use meter::LinkMeter;
pub(crate) use meter::mtu_of;
pub(crate) use neighbour::{QUESTION, question};
pub(crate) use offers::Offers;
use path_mtu::PathMtu;
pub use path_mtu::PathMtuConfig;
pub use queue::SendQueueConfig;
use reassembly::Reassembler;
use reliability::Reliability;
pub(crate) use reliability::RttEstimator;
pub use service::Link;
pub(crate) use service::without_frame;
