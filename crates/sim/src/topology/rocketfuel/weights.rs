//! Weights and latencies: `<from> <to> <value>` a line, usually once for each direction.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_netem as netem;

use super::Source;
use crate::topology::check::is_name;
use crate::topology::text::{Field, Ignored, lines, quote};
use crate::topology::{Limits, Link, LinkService, NodeIndex, Topology, TopologyError, ordered};

/// Digits after the point that a value may have.
const DECIMALS: usize = 6;
/// 10 to the power of [`DECIMALS`].
const ONE: u64 = 1_000_000;
/// Largest weight or latency, so that no path's cost overflows.
const MAX_VALUE: u64 = 1_000_000_000;

/// Reads a file of weights, and one of latencies in milliseconds for the same links; `link` says all else about a link,
/// and its delay if there are no latencies. Nodes come in the order of the weights.
///
/// Weights may be fractions: costs are all of them times the smallest number that makes each of them whole, so multiples
/// of 0.5 are doubled. A link that is given in one direction only is the same in the other; latencies may differ by
/// direction, weights may not, as a link has one cost.
///
/// # Errors
/// The first thing that is wrong, with its line: also a link with a weight and no latency, or the other way round.
pub fn read_weights(
    weights: Source<'_>,
    latencies: Option<Source<'_>>,
    link: &netem::Config,
    limits: &Limits,
) -> Result<Topology, TopologyError> {
    let mut reader = Reader::default();
    reader.read_weights(weights, limits)?;
    let unit = reader
        .links
        .iter()
        .fold(ONE, |unit, known| gcd(unit, known.weight.value));
    let delays = latencies
        .map(|latencies| reader.read_latencies(weights, latencies))
        .transpose()?;
    let own = reader.own.remark(weights.file, "links of a node to itself");
    let mut topology = Topology {
        remarks: own.into_iter().collect(),
        ..Topology::default()
    };
    let mut names: Vec<_> = reader.names.into_iter().collect();
    names.sort_unstable_by_key(|&(_, node)| node);
    for (name, _) in names {
        topology.add_node(name);
    }
    for (at, known) in reader.links.iter().enumerate() {
        let (mut forward, mut backward) = (link.clone(), link.clone());
        if let Some(delays) = &delays {
            (forward.delay, backward.delay) = delays[at];
        }
        topology.links.push(Link {
            ends: known.ends,
            cost: known.weight.value / unit,
            forward,
            backward,
            service: LinkService::default(),
        });
    }
    Ok(topology)
}

/// A value in millionths, and the line that gave it.
#[derive(Clone, Copy)]
struct Given {
    value: u64,
    line: usize,
}

struct Known {
    ends: (NodeIndex, NodeIndex),
    weight: Given,
}

#[derive(Default)]
struct Reader {
    names: BTreeMap<String, NodeIndex>,
    links: Vec<Known>,
    /// Lower end first.
    pairs: BTreeMap<(NodeIndex, NodeIndex), usize>,
    /// Each direction that was given, and its line.
    directions: BTreeMap<(NodeIndex, NodeIndex), usize>,
    /// Links of a node to itself.
    own: Ignored,
}

impl Reader {
    fn read_weights(&mut self, source: Source<'_>, limits: &Limits) -> Result<(), TopologyError> {
        for line in lines(source.text, source.file) {
            let fields = line.fields();
            let Some([from, to, value]) = three(&fields, "from, to and weight")? else {
                continue;
            };
            let weight = Given {
                value: decimal(value, "a weight")?,
                line: line.number,
            };
            let ends = (self.node(from)?, self.node(to)?);
            if ends.0 == ends.1 {
                self.own.add(line.number, from.text);
                continue;
            }
            note(&mut self.directions, ends, from)?;
            if let Some(&known) = self.pairs.get(&ordered(ends)) {
                let known = self.links[known].weight;
                if known.value != weight.value {
                    let expected = format!(
                        "the weight that line {} has for the other direction",
                        known.line
                    );
                    return Err(value.error(expected));
                }
                continue;
            }
            self.pairs.insert(ordered(ends), self.links.len());
            self.links.push(Known { ends, weight });
            limits.check(self.names.len(), self.links.len())?;
        }
        Ok(())
    }

    fn node(&mut self, field: &Field<'_>) -> Result<NodeIndex, TopologyError> {
        if !is_name(field.text) {
            return Err(field.error("a name of at most 255 octets"));
        }
        let next = self.names.len();
        Ok(*self.names.entry(field.text.to_owned()).or_insert(next))
    }

    /// The delays of each link, forward and backward.
    fn read_latencies(
        &self,
        weights: Source<'_>,
        source: Source<'_>,
    ) -> Result<Vec<(Duration, Duration)>, TopologyError> {
        let mut found = vec![(None, None); self.links.len()];
        let mut directions = BTreeMap::new();
        for line in lines(source.text, source.file) {
            let fields = line.fields();
            let Some([from, to, value]) = three(&fields, "from, to and latency")? else {
                continue;
            };
            let end = |field: &Field<'_>| {
                let expected = format!("a node of {}", weights.file);
                let known = self.names.get(field.text).copied();
                known.ok_or_else(|| field.error(expected))
            };
            let ends = (end(from)?, end(to)?);
            if ends.0 == ends.1 {
                continue;
            }
            note(&mut directions, ends, from)?;
            let link = self.pairs.get(&ordered(ends));
            let expected = || format!("a node that {} links to the first", weights.file);
            let &link = link.ok_or_else(|| to.error(expected()))?;
            // Millionths of a millisecond are nanoseconds.
            let delay = Duration::from_nanos(decimal(value, "a latency in milliseconds")?);
            if ends == self.links[link].ends {
                found[link].0 = Some(delay);
            } else {
                found[link].1 = Some(delay);
            }
        }
        let both = |(link, delays): (&Known, (Option<Duration>, Option<Duration>))| match delays {
            (Some(forward), Some(backward)) => Ok((forward, backward)),
            (Some(both), None) | (None, Some(both)) => Ok((both, both)),
            (None, None) => Err(TopologyError::Syntax {
                file: weights.file.to_owned(),
                line: link.weight.line,
                column: None,
                found: "a link".to_owned(),
                expected: format!("a latency for it in {}", source.file),
            }),
        };
        self.links.iter().zip(found).map(both).collect()
    }
}

/// The three fields of a line, or none of an empty one.
fn three<'a, 'b>(
    fields: &'b [Field<'a>],
    expected: &str,
) -> Result<Option<&'b [Field<'a>; 3]>, TopologyError> {
    match fields {
        [] => Ok(None),
        [first, ..] => fields.try_into().map(Some).map_err(|_| {
            let line = first.line;
            line.error(quote(line.text.trim()), expected)
        }),
    }
}

/// Notes that a direction was given; twice is once too often.
fn note(
    directions: &mut BTreeMap<(NodeIndex, NodeIndex), usize>,
    ends: (NodeIndex, NodeIndex),
    from: &Field<'_>,
) -> Result<(), TopologyError> {
    match directions.insert(ends, from.line.number) {
        None => Ok(()),
        Some(line) => Err(from.error(format!("another link: line {line} has this one"))),
    }
}

/// A number that is not negative, in millionths, exactly.
fn decimal(field: &Field<'_>, what: &str) -> Result<u64, TopologyError> {
    let error = || {
        field.error(format!(
            "{what}: a number from 0 to {MAX_VALUE} with at most {DECIMALS} digits after the point"
        ))
    };
    let (whole, fraction) = field.text.split_once('.').unwrap_or((field.text, "0"));
    let is_number =
        |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > DECIMALS {
        return Err(error());
    }
    let whole: u64 = whole.parse().map_err(|_| error())?;
    let fraction: u64 = format!("{fraction:0<DECIMALS$}")
        .parse()
        .map_err(|_| error())?;
    if whole > MAX_VALUE {
        return Err(error());
    }
    Ok(whole * ONE + fraction)
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use namecast_units::Bitrate;

    use super::*;

    #[test]
    fn links_of_a_node_to_itself_are_ignored_with_a_remark() {
        let [weights, latencies] = [("a a 1\na b 2\n", "w"), ("a a 1\na b 5\n", "l")]
            .map(|(text, file)| Source { text, file });
        let config = netem::Config::default();
        let limits = Limits::default();
        let topology = read_weights(weights, Some(latencies), &config, &limits).unwrap();
        assert_eq!(topology.links.len(), 1);
        assert_eq!(
            topology.remarks,
            ["w:1: ignored links of a node to itself: 'a', 1 in total"]
        );
    }

    const WEIGHTS: &str = "San+Jose,+CA471 Oak+Brook,+IL301 14.5\n\
                           Oak+Brook,+IL301 San+Jose,+CA471 14.5\n\
                           Oak+Brook,+IL301 Atlanta,+GA127 3\n\n# one direction only\n\
                           Atlanta,+GA127 San+Jose,+CA471 0.5\n";
    const LATENCIES: &str = "Oak+Brook,+IL301 San+Jose,+CA471 17\n\
                             San+Jose,+CA471 Oak+Brook,+IL301 16\n\
                             Atlanta,+GA127 Oak+Brook,+IL301 1.25\n\
                             San+Jose,+CA471 Atlanta,+GA127 44\n";

    fn read(weights: &str, latencies: Option<&str>) -> Result<Topology, String> {
        let link = netem::Config {
            rate: Some(Bitrate::mbps(1_000).into()),
            delay: Duration::from_millis(5),
            ..netem::Config::default()
        };
        let weights = Source {
            text: weights,
            file: "w",
        };
        let latencies = latencies.map(|text| Source { text, file: "l" });
        read_weights(weights, latencies, &link, &Limits::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn weights_are_scaled_to_whole_costs_and_latencies_joined() {
        let topology = read(WEIGHTS, Some(LATENCIES)).unwrap();
        topology.check(&Limits::default()).unwrap();
        let names: Vec<_> = topology
            .nodes
            .iter()
            .map(|node| node.name.as_str())
            .collect();
        assert_eq!(
            names,
            ["San+Jose,+CA471", "Oak+Brook,+IL301", "Atlanta,+GA127"]
        );
        let links: Vec<_> = topology
            .links
            .iter()
            .map(|link| {
                (
                    link.ends,
                    link.cost,
                    link.forward.delay.as_micros(),
                    link.backward.delay.as_micros(),
                )
            })
            .collect();
        // 14.5, 3 and 0.5 times two.
        assert_eq!(
            links,
            [
                ((0, 1), 29, 16_000, 17_000),
                ((1, 2), 6, 1_250, 1_250),
                ((2, 0), 1, 44_000, 44_000)
            ]
        );
        assert_eq!(
            topology.links[2].backward.rate,
            Some(Bitrate::mbps(1_000).into())
        );
    }

    #[test]
    fn whole_weights_stay_and_any_fraction_becomes_whole() {
        let costs = |text: &str| -> Vec<u64> {
            read(text, None)
                .unwrap()
                .links
                .iter()
                .map(|link| link.cost)
                .collect()
        };
        assert_eq!(costs("a b 4\nb c 8"), [4, 8]);
        assert_eq!(costs("a b 0.75\nb c 1.5\nc d 0"), [3, 6, 0]);
        assert_eq!(
            costs("a b 0.000001\nb c 1000000000"),
            [1, 1_000_000_000_000_000]
        );
        let delay = read("a b 1", None).unwrap().links[0].backward.delay;
        assert_eq!(delay, Duration::from_millis(5));
    }

    #[test]
    fn wrong_files_are_refused_with_their_place() {
        let value = "a number from 0 to 1000000000 with at most 6 digits after the point";
        for (weights, message) in [
            (
                "a b",
                "w:1: found 'a b', expected from, to and weight".to_owned(),
            ),
            (
                "a b 1 2",
                "w:1: found 'a b 1 2', expected from, to and weight".to_owned(),
            ),
            (
                "a b -1",
                format!("w:1:5: found '-1', expected a weight: {value}"),
            ),
            (
                "a b nan",
                format!("w:1:5: found 'nan', expected a weight: {value}"),
            ),
            (
                "a b 1.",
                format!("w:1:5: found '1.', expected a weight: {value}"),
            ),
            (
                "a b 1000000001",
                format!("w:1:5: found '1000000001', expected a weight: {value}"),
            ),
            (
                "a b 0.1234567",
                format!("w:1:5: found '0.1234567', expected a weight: {value}"),
            ),
            (
                "a b 1\na b 1",
                "w:2:1: found 'a', expected another link: line 1 has this one".to_owned(),
            ),
            (
                "a b 1\nb a 2",
                "w:2:5: found '2', expected the weight that line 1 has for the other direction"
                    .to_owned(),
            ),
        ] {
            assert_eq!(read(weights, None).unwrap_err(), message);
        }
        for (latencies, message) in [
            ("a b 1", "w:2: found a link, expected a latency for it in l"),
            ("a b 1\nb d 1", "l:2:3: found 'd', expected a node of w"),
            (
                "a c 1",
                "l:1:3: found 'c', expected a node that w links to the first",
            ),
            (
                "a b 1\na b 1",
                "l:2:1: found 'a', expected another link: line 1 has this one",
            ),
        ] {
            assert_eq!(read("a b 1\nb c 1", Some(latencies)).unwrap_err(), message);
        }
    }

    #[test]
    fn there_is_a_bound_on_what_is_read() {
        let limits = Limits {
            nodes: 2,
            ..Limits::default()
        };
        let weights = Source {
            text: "a b 1\nb c 1",
            file: "w",
        };
        read_weights(weights, None, &netem::Config::default(), &limits).unwrap_err();
    }
}
