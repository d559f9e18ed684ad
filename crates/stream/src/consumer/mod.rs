//! Pulls one rung of a stream.

mod config;
mod drd;
mod segments;
mod window;

pub use config::Config;
pub use drd::{Config as DelayConfig, DelayEstimator};
pub use segments::{SegmentCounts, SegmentEstimators};
pub use window::WindowedMinimum;
