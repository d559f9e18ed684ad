//! Publishers of a run.

use namecast_forward::FaceId;
use namecast_packet::Name;
use namecast_units::{Duration, Random};
use std::collections::BTreeMap;

use super::StreamScenario;
use super::spec::PublisherSpec;
use crate::live::Media;
use crate::topology::NodeIndex;

/// Next hops for one name, each with its least cost.
pub(super) type NextHops = BTreeMap<(Name, NodeIndex, FaceId), u64>;

/// One publisher, as drawn for a run.
pub(super) struct Published {
    pub(super) spec: PublisherSpec,
    /// When its first frame is captured.
    pub(super) start: Duration,
    /// Fixes the sizes of its frames.
    seed: u64,
}

impl Published {
    /// All publishers of a scenario, in the order in which it lists them. Those of the same place among copies have frames of the
    /// same sizes.
    pub(super) fn all(scenario: &StreamScenario, seed: u64) -> Vec<Self> {
        let publishers = scenario.all_publishers().into_iter();
        let draw = |(place, (spec, number)): (usize, (PublisherSpec, u32))| {
            let mixed = |number: u64| seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut random = Random::from_seed(!mixed(place as u64));
            Self {
                start: spec.start + spec.start_spread.mul_f64(random.unit()),
                seed: mixed(u64::from(number - 1)),
                spec,
            }
        };
        publishers.enumerate().map(draw).collect()
    }

    /// Its streams.
    pub(super) fn media(&self) -> Vec<Media> {
        let streams = self.spec.streams.iter();
        streams.map(|stream| stream.media(self.seed)).collect()
    }
}
