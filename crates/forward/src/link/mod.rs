//! The link service: frames of a link to network packets and back (NDNLPv2).

mod fragmentation;
mod reassembly;

pub(crate) use fragmentation::fragment;
pub(crate) use reassembly::Reassembler;
pub use reassembly::ReassemblyConfig;
