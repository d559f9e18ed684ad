//! The link service: frames of a link to network packets and back (NDNLPv2).

mod fragmentation;
mod marking;
mod reassembly;
mod reliability;

pub(crate) use fragmentation::cut;
pub use fragmentation::fragment;
pub use marking::{CongestionLaw, CongestionMarker, CongestionMarking, SojournMarker};
pub(crate) use reassembly::Reassembler;
pub use reassembly::ReassemblyConfig;
pub(crate) use reliability::{Reliability, RttEstimator};
pub use reliability::{ReliabilityConfig, ReliabilityCounters};
