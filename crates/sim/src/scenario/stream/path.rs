//! What the laboratory knows of a path, and no watcher can.

use core::time::Duration;

use namecast_netem as netem;
use namecast_units::Instant;

use crate::topology::{NodeIndex, Topology, routes};

/// Delay of the path from a publisher to a watcher, without queues and serialisation, from each time on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseDelay {
    /// In order of time; zero before the first.
    steps: Vec<(Duration, Duration)>,
}

impl BaseDelay {
    /// The delay of the path that Data takes from `producer` to `consumer`. Jitter is not part of it.
    pub fn new(topology: &Topology, producer: NodeIndex, consumer: NodeIndex) -> Self {
        let directions = directions(topology, producer, consumer);
        let changes = directions.iter().flat_map(|config| &config.schedule);
        let mut times: Vec<Duration> = changes.map(|step| step.at).collect();
        times.push(Duration::ZERO);
        times.sort_unstable();
        times.dedup();
        let delay_at = |at: Duration| {
            let delays = directions.iter().map(|config| delay_at(config, at));
            (at, delays.sum())
        };
        Self {
            steps: times.into_iter().map(delay_at).collect(),
        }
    }

    /// The delay at that moment.
    pub(super) fn at(&self, at: Instant) -> Duration {
        let at = at.since(Instant::ZERO);
        let before = self.steps.iter().take_while(|(from, _)| *from <= at);
        before.last().map_or(Duration::ZERO, |(_, delay)| *delay)
    }
}

/// The directions that Data takes.
fn directions(
    topology: &Topology,
    producer: NodeIndex,
    consumer: NodeIndex,
) -> Vec<&netem::Config> {
    let towards = routes::towards(topology, producer);
    let mut directions = Vec::new();
    let mut at = consumer;
    while let Some(link) = towards[at] {
        let link = &topology.links[link];
        let is_first = link.ends.0 == at;
        let (back, next) = match is_first {
            true => (&link.backward, link.ends.1),
            false => (&link.forward, link.ends.0),
        };
        directions.push(back);
        at = next;
    }
    directions
}

fn delay_at(config: &netem::Config, at: Duration) -> Duration {
    let steps = config.schedule.iter();
    let until = steps.filter(|step| step.at <= at && step.delay.is_some());
    let last = until.max_by_key(|step| step.at);
    last.and_then(|step| step.delay).unwrap_or(config.delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// P –5 ms– R –20 ms, 70 ms from 40 s on– C; Interests take 1 ms.
    #[test]
    fn delays_of_the_direction_of_data_add_up() {
        let mut topology = Topology::default();
        let nodes = ["P", "R", "C"].map(|name| topology.add_node(name));
        let with = |delay| netem::Config {
            delay,
            ..netem::Config::default()
        };
        topology.connect(nodes[0], nodes[1], &with(ms(5)));
        let second = topology.connect(nodes[1], nodes[2], &with(ms(20)));
        topology.links[second].backward = with(ms(1));
        topology.links[second].forward.schedule = vec![netem::Step {
            at: ms(40_000),
            rate: None,
            delay: Some(ms(70)),
        }];
        let base = BaseDelay::new(&topology, nodes[0], nodes[2]);
        let at = |millis| base.at(Instant::ZERO + ms(millis));
        assert_eq!((at(0), at(39_999), at(40_000)), (ms(25), ms(25), ms(75)));
        let back = BaseDelay::new(&topology, nodes[2], nodes[0]);
        assert_eq!(back.at(Instant::ZERO), ms(6));
    }
}
