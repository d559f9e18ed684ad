//! What things cost and how fast they are, as ratios to a raw limit taken in the same run.

pub(crate) mod forwarder;
mod measure;
pub(crate) mod sim;
pub(crate) mod stream;
