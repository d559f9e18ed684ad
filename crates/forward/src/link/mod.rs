//! The link service: frames of a link to network packets and back (NDNLPv2).

mod fragmentation;
mod marking;
mod reassembly;
mod reliability;
mod service;

use fragmentation::cut;
pub use fragmentation::fragment;
pub use marking::{CongestionLaw, CongestionMarker, CongestionMarking, SojournMarker};
use reassembly::Reassembler;
pub use reassembly::ReassemblyConfig;
use reliability::Reliability;
pub(crate) use reliability::RttEstimator;
pub use reliability::{ReliabilityConfig, ReliabilityCounters};
pub(crate) use service::{Link, Sending};
