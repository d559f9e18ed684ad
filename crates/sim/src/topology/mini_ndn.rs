//! Configurations of mini-ndn.
//!
//! ```text
//! [nodes]
//! a: _ network=/world router=/a.Router
//! [switches]
//! s1: _
//! [links]
//! a:s1 delay=10ms bw=10 loss=1 max_queue_size=100
//! ```
//!
//! `bw` is in Mbit/s, `loss` in percent, `max_queue_size` in packets. A switch is a node, too. What a line says besides
//! is for mini-ndn alone.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use namecast_netem::{self as netem, Loss, Queue};
use namecast_units::{Bitrate, parse_duration};

use super::check::is_name;
use super::rocketfuel::Source;
use super::text::{Field, Ignored, lines, quote};
use super::{Limits, NodeIndex, Topology, TopologyError, ordered};

/// Largest rate in Mbit/s: 1 Tbit/s.
const MAX_MBPS: f64 = 1e6;
const BITS_PER_MEGABIT: f64 = 1e6;

/// Which part of the file a line is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Nodes,
    Links,
    /// One that says nothing about the topology.
    Other,
}

/// Reads a configuration; `link` says what it does not say about links.
///
/// # Errors
/// The first thing that is wrong, with its line and column.
pub fn read_mini_ndn(
    source: Source<'_>,
    link: &netem::Config,
    limits: &Limits,
) -> Result<Topology, TopologyError> {
    let mut reader = Reader {
        link,
        topology: Topology::default(),
        nodes: BTreeMap::new(),
        pairs: BTreeSet::new(),
    };
    let mut section = Section::Before;
    let mut other = Ignored::default();
    for line in lines(source.text, source.file) {
        let fields = line.fields();
        let Some(first) = fields.first() else {
            continue;
        };
        if first.text.starts_with('[') {
            section = match first.text {
                "[nodes]" | "[switches]" => Section::Nodes,
                "[links]" => Section::Links,
                _ => {
                    other.add(line.number, first.text);
                    Section::Other
                }
            };
            continue;
        }
        match section {
            Section::Before => {
                return Err(line.error(quote(line.text.trim()), "a line '[nodes]'"));
            }
            Section::Nodes => reader.node(first)?,
            Section::Links => reader.link(&fields)?,
            Section::Other => {}
        }
        limits.check(reader.topology.nodes.len(), reader.topology.links.len())?;
    }
    let other = other.remark(source.file, "sections without nodes and links");
    reader.topology.remarks = other.into_iter().collect();
    Ok(reader.topology)
}

struct Reader<'a> {
    link: &'a netem::Config,
    topology: Topology,
    nodes: BTreeMap<&'a str, NodeIndex>,
    pairs: BTreeSet<(NodeIndex, NodeIndex)>,
}

impl<'a> Reader<'a> {
    fn node(&mut self, field: &Field<'a>) -> Result<(), TopologyError> {
        let name = field.text.strip_suffix(':').unwrap_or(field.text);
        if !is_name(name) || name.contains(':') {
            return Err(
                field.error("a node's name of at most 255 octets and a colon, such as 'a:'")
            );
        }
        if self.nodes.contains_key(name) {
            return Err(field.error("a name that no node above has"));
        }
        let node = self.topology.add_node(name);
        self.nodes.insert(name, node);
        Ok(())
    }

    fn link(&mut self, fields: &[Field<'a>]) -> Result<(), TopologyError> {
        let field = &fields[0];
        let expected = "two nodes of [nodes] or [switches], such as a:b";
        let names = field.text.split_once(':');
        let place = |name: &str| self.nodes.get(name).copied();
        let ends = names.and_then(|(from, to)| Some((place(from)?, place(to)?)));
        let ends = ends.ok_or_else(|| field.error(expected))?;
        if ends.0 == ends.1 {
            return Err(field.error("two different nodes"));
        }
        if !self.pairs.insert(ordered(ends)) {
            return Err(field.error("two nodes that no line above links"));
        }
        let mut config = self.link.clone();
        for option in &fields[1..] {
            apply(&mut config, option)?;
        }
        self.topology.connect(ends.0, ends.1, &config);
        Ok(())
    }
}

fn apply(config: &mut netem::Config, option: &Field<'_>) -> Result<(), TopologyError> {
    let Some((key, value)) = option.text.split_once('=') else {
        return Ok(());
    };
    let number = |range: core::ops::RangeInclusive<f64>, expected: &str| {
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| option.error(expected))
    };
    match key {
        "bw" => {
            let megabits = number(1e-6..=MAX_MBPS, "a rate in Mbit/s, such as bw=10")?;
            let bits = (megabits * BITS_PER_MEGABIT).round() as u64;
            config.rate = Some(Bitrate::bps(bits).into());
        }
        "delay" => config.delay = delay(value, option)?,
        "loss" => {
            let percent = number(0.0..=100.0, "a loss in percent, such as loss=1")?;
            config.loss = Loss::Random {
                share: percent / 100.0,
            };
        }
        "max_queue_size" => {
            let expected = "a number of packets above zero, such as max_queue_size=100";
            let packets = value.parse().ok().filter(|packets| *packets > 0);
            let packets = packets.ok_or_else(|| option.error(expected))?;
            config.queue = Queue::DropTail { packets };
        }
        _ => {}
    }
    Ok(())
}

fn delay(value: &str, option: &Field<'_>) -> Result<Duration, TopologyError> {
    parse_duration(value).map_err(|_| option.error("a delay such as delay=10ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
[nodes]
a: _ cache=0 network=/world router=/a.Router
b: _
[switches]
s1: _
[faces]
a:b 10
[links]
a:s1 delay=10ms bw=2.5 loss=10 max_queue_size=7
b:s1
";

    fn read(text: &str) -> Result<Topology, String> {
        let source = Source { text, file: "m" };
        let link = netem::Config {
            delay: Duration::from_millis(3),
            ..netem::Config::default()
        };
        let topology = read_mini_ndn(source, &link, &Limits::default());
        topology.map_err(|error| error.to_string())
    }

    #[test]
    fn nodes_switches_and_links_are_read() {
        let topology = read(FILE).unwrap();
        topology.check(&Limits::default()).unwrap();
        let names: Vec<_> = topology.nodes.iter().map(|node| &node.name[..]).collect();
        assert_eq!(names, ["a", "b", "s1"]);
        let ends: Vec<_> = topology.links.iter().map(|link| link.ends).collect();
        assert_eq!(ends, [(0, 2), (1, 2)]);
        let expected = netem::Config {
            rate: Some(Bitrate::bps(2_500_000).into()),
            delay: Duration::from_millis(10),
            loss: Loss::Random { share: 0.1 },
            queue: Queue::DropTail { packets: 7 },
            ..netem::Config::default()
        };
        assert_eq!(topology.links[0].forward, expected);
        assert_eq!(topology.links[0].backward, expected);
        assert_eq!(topology.links[1].forward.delay, Duration::from_millis(3));
        assert_eq!(
            topology.remarks,
            ["m:6: ignored sections without nodes and links: '[faces]', 1 in total"]
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (from, to, message) in [
            (
                "[nodes]\n",
                "",
                "m:1: found 'a: _ cache=0 network=/world router=/a.Ro…', expected a line '[nodes]'",
            ),
            (
                "b: _",
                "a: _",
                "m:3:1: found 'a:', expected a name that no node above has",
            ),
            (
                "b:s1",
                "b:c",
                "m:10:1: found 'b:c', expected two nodes of [nodes] or [switches], such as a:b",
            ),
            (
                "b:s1",
                "b:b",
                "m:10:1: found 'b:b', expected two different nodes",
            ),
            (
                "b:s1",
                "s1:a",
                "m:10:1: found 's1:a', expected two nodes that no line above links",
            ),
            (
                "bw=2.5",
                "bw=-1",
                "m:9:17: found 'bw=-1', expected a rate in Mbit/s, such as bw=10",
            ),
            (
                "loss=10",
                "loss=101",
                "m:9:24: found 'loss=101', expected a loss in percent, such as loss=1",
            ),
            (
                "delay=10ms",
                "delay=soon",
                "m:9:6: found 'delay=soon', expected a delay such as delay=10ms",
            ),
        ] {
            assert!(FILE.contains(from));
            assert_eq!(read(&FILE.replacen(from, to, 1)).unwrap_err(), message);
        }
    }
}
