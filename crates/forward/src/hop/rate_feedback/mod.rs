//! Rate feedback: Data from a content store say how fast such Data come to it, and all Data how far and from what they came.
//!
//! The consumer that a cache serves faster than the path behind it could sees nothing of that path until the cache has no more;
//! by then it has requested too much. So the node that answers says what it knows: the rule of \[RFCC\].

mod flow;

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use namecast_packet::{Extensions, PathLabel};
use namecast_units::{Bitrate, ByteSize, Duration, Instant};
use smart_default::SmartDefault;

use self::flow::Flow;
use super::hop_count::{Answerer, count_hops};
use super::{Actions, Context, Hop};

/// Constants and bounds of [`RateFeedback`]. The defaults are those of \[RFCC\], but for the estimator.
#[derive(Clone, Copy, Debug, PartialEq, SmartDefault)]
pub struct RateFeedbackConfig {
    /// Packets over which a flow's rate is measured, 3 to 1024: N.
    #[default(48)]
    pub window: usize,
    /// Weight of the newest measurement, above 0 and up to 1: α.
    #[default(0.75)]
    pub weight: f64,
    /// What is divided by the time.
    pub estimator: RateEstimator,
    /// Maximum number of flows of one neighbour that are measured; each takes about 23 octets for each packet of the window. Those
    /// that had no Data for ten seconds give way.
    #[default(64)]
    pub max_flows: usize,
}

impl RateFeedbackConfig {
    /// Least and most packets over which rates are measured: two intervals have a deviation, and nobody needs more.
    pub const WINDOWS: RangeInclusive<usize> = 3..=1_024;
}

/// What a rate is the quotient of, over the time from the first to the last Data of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateEstimator {
    /// All Data but the first, since as many intervals lie between them.
    #[default]
    Intervals,
    /// All Data, as \[RFCC\] prints it: too much by one part in N − 1.
    Packets,
}

/// Why there is no rate feedback with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RateFeedbackError {
    /// Too few packets to see whether they come steadily, or more than anybody needs.
    #[error("a window of {0} packets: write 3 to 1024")]
    Window(usize),
    /// The weight is none.
    #[error("a weight of {0}: write more than 0, and 1 at most")]
    Weight(f64),
}

/// Longest time without Data that a flow keeps a place which another could have.
const IDLE: Duration = Duration::from_secs(10);
/// Pause between looks for such flows.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// The hop that measures flows and tags Data. It sets hop count and source, too.
///
/// A flow is what comes from one neighbour for one prefix with routes, the longest of each name: the path behind a node differs by
/// where a route leads, and nobody can make flows by making up names. Applications on this host are no neighbours.
#[derive(Debug, Default)]
pub struct RateFeedback {
    config: RateFeedbackConfig,
}

/// The flows of one neighbour, by the hash of their prefix.
#[derive(Debug, Default)]
struct Flows {
    by_prefix: BTreeMap<u64, Flow>,
    /// When flows that are idle may be looked for.
    sweep_at: Instant,
}

impl RateFeedback {
    /// Rate feedback with these constants.
    ///
    /// # Errors
    /// If one is out of its range.
    pub fn new(config: RateFeedbackConfig) -> Result<Self, RateFeedbackError> {
        if !RateFeedbackConfig::WINDOWS.contains(&config.window) {
            return Err(RateFeedbackError::Window(config.window));
        }
        if !(config.weight > 0.0 && config.weight <= 1.0) {
            return Err(RateFeedbackError::Weight(config.weight));
        }
        Ok(Self { config })
    }

    /// Records Data from a neighbour, if they were requested from it.
    fn measure(&self, now: Instant, context: &mut Context<'_>) {
        let Some(data) = context.data else { return };
        let records = context.entries.iter();
        let mut records =
            records.filter_map(|&id| context.tables.pit.get(id).out_record(context.face));
        let Some(asked_at) = records.next().map(|record| record.sent_at) else {
            return;
        };
        let size = ByteSize::of(data.wire());
        let prefix = prefix_of(context);
        let Some(flows) = context.face_state::<Flows>(context.face) else {
            return;
        };
        match flows.get(now, prefix, &self.config) {
            Some(flow) => flow.on_data(now, asked_at, size, &self.config),
            None => context.tables.counters.feedback.flows_refused += 1,
        }
    }

    /// Returns the rate behind this node on the path of an Interest: by the next hop that its label names, or else by the one that
    /// Data came from last.
    fn rate(&self, context: &mut Context<'_>) -> Option<Bitrate> {
        let label = context.fields.extensions.get(Extensions::PATH_LABEL);
        let label = label.and_then(|octets| PathLabel::decode(octets)?.first());
        let prefix = prefix_of(context);
        let interest = context.interest?;
        let hops = context.tables.next_hops(interest, context.hashes);
        let hops: super::Faces = hops.iter().map(|hop| hop.face).collect();
        let mut newest: Option<(Instant, Bitrate)> = None;
        for face in hops {
            if label.is_some_and(|label| context.label_of(face) != label) {
                continue;
            }
            let flows = context.face_state::<Flows>(face);
            let flow = flows.and_then(|flows| flows.by_prefix.get(&prefix));
            let known = flow.and_then(|flow| Some((flow.last_data(), flow.capacity()?)));
            newest = newest.max(known);
        }
        newest.map(|(_, rate)| rate)
    }
}

impl Hop for RateFeedback {
    fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if context.tables.is_local(context.face) {
            return count_hops(context, Answerer::Producer);
        }
        self.measure(now, context);
        let actions = count_hops(context, Answerer::Neighbour);
        match tag_of(context) {
            Some(tag) => actions.set_number(Extensions::RATE_TAG, tag),
            None => actions,
        }
    }

    fn on_cache_hit(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let actions = count_hops(context, Answerer::ContentStore);
        let rate = self.rate(context).map_or(0, Bitrate::as_bps);
        if rate == 0 {
            return actions;
        }
        context.tables.counters.feedback.rate_tags_set += 1;
        actions.set_number(Extensions::RATE_TAG, rate)
    }
}

impl Flows {
    /// The flow of a prefix, made where there is none; `None` if there are too many.
    fn get(&mut self, now: Instant, prefix: u64, config: &RateFeedbackConfig) -> Option<&mut Flow> {
        let is_full = self.by_prefix.len() >= config.max_flows;
        if is_full && !self.by_prefix.contains_key(&prefix) {
            if now >= self.sweep_at {
                self.sweep_at = now + SWEEP_PAUSE;
                self.by_prefix
                    .retain(|_, flow| now.since(flow.last_data()) < IDLE);
            }
            if self.by_prefix.len() >= config.max_flows {
                return None;
            }
        }
        let make = || Flow::new(config);
        Some(self.by_prefix.entry(prefix).or_insert_with(make))
    }
}

/// Stands for the longest prefix of a packet's name that has routes.
fn prefix_of(context: &Context<'_>) -> u64 {
    let depth = context.tables.fib.depth(context.name, context.hashes);
    context.hashes.hash(depth)
}

/// The tag that Data came with, if it says anything. It goes on as it is: it is its reader's to believe it or not.
pub(super) fn tag_of(context: &mut Context<'_>) -> Option<u64> {
    let extensions = &context.fields.extensions;
    extensions.get(Extensions::RATE_TAG)?;
    let tag = extensions
        .number(Extensions::RATE_TAG)
        .filter(|&rate| rate > 0);
    context.tables.counters.feedback.refused += u64::from(tag.is_none());
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_out_of_their_range_are_refused() {
        let with_window = |window| {
            let config = RateFeedbackConfig {
                window,
                ..RateFeedbackConfig::default()
            };
            RateFeedback::new(config).map(|_| ())
        };
        assert_eq!(with_window(0), Err(RateFeedbackError::Window(0)));
        assert_eq!([2, 1_025].map(|n| with_window(n).is_err()), [true; 2]);
        assert_eq!([3, 1_024].map(with_window), [Ok(()); 2]);
        for weight in [0.0, -1.0, 1.1, f64::NAN] {
            let config = RateFeedbackConfig {
                weight,
                ..RateFeedbackConfig::default()
            };
            assert!(RateFeedback::new(config).is_err(), "{weight}");
        }
    }

    /// Two places: the third prefix has none until one of the others was silent for ten seconds.
    #[test]
    fn idle_flows_give_way_and_others_do_not() {
        let config = RateFeedbackConfig {
            max_flows: 2,
            ..RateFeedbackConfig::default()
        };
        let mut flows = Flows::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut use_flow = |seconds, prefix| {
            let flow = flows.get(at(seconds), prefix, &config);
            flow.map(|flow| flow.on_data(at(seconds), at(seconds), ByteSize::bytes(1), &config))
        };
        assert!(use_flow(0, 1).is_some() && use_flow(5, 2).is_some());
        assert!(use_flow(9, 3).is_none() && use_flow(9, 1).is_some());
        assert!(use_flow(14, 3).is_none() && use_flow(15, 3).is_some());
        assert!(use_flow(15, 2).is_none());
    }
}
