//! Calls beside streams: who calls whom, and how soon each hears the other.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_packet::Name;
use namecast_units::Instant;

use super::run::Run;
use super::spec::PublisherSpec;
use crate::live::LiveTalkerConfig;

/// Longest delay from mouth to ear that conversations do not suffer from (ITU-T G.114).
const IN_TIME: Duration = Duration::from_millis(150);

/// Both sides of each call, with their nodes: the caller, then the callee.
pub(super) fn all(publishers: &[PublisherSpec]) -> Vec<(String, LiveTalkerConfig)> {
    let mut sides = Vec::new();
    for (number, publisher) in publishers.iter().enumerate() {
        let Some(caller) = &publisher.caller else {
            continue;
        };
        let [own, other] = ["caller", "callee"].map(|side| {
            let root = Name::root().builder().generic("talk").generic(side);
            root.generic(&number.to_string()).finish()
        });
        let side = |root: &Name, peer: Option<&Name>| LiveTalkerConfig {
            root: root.clone(),
            peer: peer.cloned(),
            start: publisher.start,
            seed: (2 * number) as u8 + u8::from(peer.is_none()),
        };
        sides.push((caller.clone(), side(&own, Some(&other))));
        sides.push((publisher.copy(1).node, side(&other, None)));
    }
    sides
}

/// Metrics of calls.
pub(super) fn add(run: &Run<'_>, metrics: &mut BTreeMap<String, f64>) {
    let talkers = run.talkers();
    if talkers.is_empty() {
        return;
    }
    for (suffix, from, until) in run.scenario.all_windows() {
        let until = until.min(run.scenario.duration.saturating_sub(IN_TIME));
        let window = Instant::ZERO + from..Instant::ZERO + until;
        let spoken = talkers.iter().flat_map(|talker| talker.spoken());
        let spoken = spoken.filter(|at| window.contains(at)).count();
        let heard = talkers.iter().flat_map(|talker| talker.heard());
        let heard = heard.filter(|heard| window.contains(&heard.spoken_at));
        let mut delays: Vec<Duration> = heard.map(|heard| heard.delay).collect();
        delays.sort_unstable();
        let in_time = delays.partition_point(|delay| *delay <= IN_TIME);
        let millis = |delay: Duration| delay.as_secs_f64() * 1e3;
        let late = delays.get(delays.len() * 99 / 100).copied();
        let mean = delays.iter().copied().map(millis).sum::<f64>() / delays.len() as f64;
        let mut metric = |name: &str, value: f64| metrics.insert(format!("{name}{suffix}"), value);
        metric("talk-in-time-share", in_time as f64 / spoken as f64);
        metric("talk-delay", mean);
        metric("talk-delay-p99", late.map_or(f64::NAN, millis));
    }
}
