//! The reader.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_netem as netem;
use namecast_units::{Bitrate, parse_duration};

use super::attributes;
use crate::topology::check::is_name;
use crate::topology::text::{Field, Ignored, Line, end_error, lines, quote};
use crate::topology::{
    Limits, Link, LinkIndex, LinkService, Node, NodeIndex, Topology, TopologyError, ordered,
};

/// Largest metric, so that no path's cost overflows.
const MAX_METRIC: u64 = u32::MAX as u64;

/// Where in the file we are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Routers,
    Links,
}

/// Reads an annotated topology; errors call it `file`.
///
/// # Errors
/// The first thing that is wrong, with its line and column.
pub fn read(text: &str, file: &str, limits: &Limits) -> Result<Topology, TopologyError> {
    let mut reader = Reader::default();
    let mut section = Section::Before;
    for line in lines(text, file) {
        let fields = line.fields();
        let Some(first) = fields.first() else {
            continue;
        };
        let keyword = if fields.len() == 1 { first.text } else { "" };
        section = match (section, keyword) {
            (Section::Before, "router") => Section::Routers,
            (Section::Before, _) => {
                return Err(line.error(quote(line.text.trim()), "a line 'router'"));
            }
            (Section::Routers, "link") => Section::Links,
            (Section::Routers, _) => {
                reader.router(&fields)?;
                Section::Routers
            }
            (Section::Links, _) => {
                reader.link(line, &fields)?;
                Section::Links
            }
        };
        limits.check(reader.topology.nodes.len(), reader.topology.links.len())?;
    }
    match section {
        Section::Before => Err(end_error(text, file, "a line 'router'")),
        Section::Routers => Err(end_error(text, file, "a line 'link'")),
        Section::Links => {
            let own = reader.own.remark(file, "links of a node to itself");
            reader.topology.remarks = own.into_iter().collect();
            Ok(reader.topology)
        }
    }
}

#[derive(Default)]
struct Reader {
    topology: Topology,
    /// Each router and the line that named it.
    routers: BTreeMap<String, (NodeIndex, usize)>,
    /// Each link and the line that gave it.
    pairs: BTreeMap<(NodeIndex, NodeIndex), (LinkIndex, usize)>,
    /// Links of a node to itself.
    own: Ignored,
}

impl Reader {
    fn router(&mut self, fields: &[Field<'_>]) -> Result<(), TopologyError> {
        if let Some(extra) = fields.get(5) {
            return Err(extra.error("at most name, comment, y, x and partition"));
        }
        let name = &fields[0];
        if !is_name(name.text) {
            return Err(name.error("a name of at most 255 octets"));
        }
        let known = (self.topology.nodes.len(), name.line.number);
        if let Some((_, line)) = self.routers.insert(name.text.to_owned(), known) {
            return Err(name.error(format!("another name: it is taken by line {line}")));
        }
        let position = match (fields.get(2), fields.get(3)) {
            (Some(y), Some(x)) => {
                let y = y.finite("a finite number: the position's y")?;
                let x = x.finite("a finite number: the position's x")?;
                Some((x, y)).filter(|_| x.abs() > 0.0 || y.abs() > 0.0)
            }
            (Some(y), None) => {
                return Err(y.line.error(quote(y.line.text.trim()), "an x after the y"));
            }
            (None, _) => None,
        };
        if let Some(partition) = fields.get(4) {
            partition.parse::<u32>("a partition: a whole number")?;
        }
        self.topology.nodes.push(Node {
            name: name.text.to_owned(),
            position,
        });
        Ok(())
    }

    fn link(&mut self, line: Line<'_>, fields: &[Field<'_>]) -> Result<(), TopologyError> {
        if fields.len() < 4 {
            let expected = "from, to, bandwidth and metric";
            return Err(line.error(quote(line.text.trim()), expected));
        }
        if let Some(extra) = fields.get(7) {
            return Err(extra.error("at most from, to, bandwidth, metric, delay, queue and loss"));
        }
        let ends = (self.end(&fields[0])?, self.end(&fields[1])?);
        if ends.0 == ends.1 {
            self.own.add(line.number, fields[0].text);
            return Ok(());
        }
        let cost = fields[3].parse("a metric: a whole number")?;
        if cost > MAX_METRIC {
            return Err(fields[3].error(format!("a metric of at most {MAX_METRIC}")));
        }
        let both = netem::Config {
            rate: Some(rate(&fields[2])?.into()),
            delay: fields.get(4).map_or(Ok(Duration::ZERO), delay)?,
            queue: fields
                .get(5)
                .map_or(Ok(attributes::DEFAULT_QUEUE), attributes::queue)?,
            loss: fields
                .get(6)
                .map_or(Ok(netem::Loss::None), attributes::loss)?,
            ..netem::Config::default()
        };
        let link = Link {
            ends,
            cost,
            forward: both.clone(),
            backward: both,
            service: LinkService::default(),
        };
        let Some(&(known, first)) = self.pairs.get(&ordered(ends)) else {
            let place = (self.topology.links.len(), line.number);
            self.pairs.insert(ordered(ends), place);
            self.topology.links.push(link);
            return Ok(());
        };
        let known = &self.topology.links[known];
        if (known.cost, &known.forward) == (link.cost, &link.forward) {
            return Ok(());
        }
        Err(line.error(
            "a link that differs",
            format!("what line {first} says about the same two nodes"),
        ))
    }

    fn end(&self, field: &Field<'_>) -> Result<NodeIndex, TopologyError> {
        let known = self.routers.get(field.text);
        known
            .map(|&(node, _)| node)
            .ok_or_else(|| field.error("the name of a router above"))
    }
}

/// ns-3 tells `b` for bits from `B` for bytes, so case counts here.
fn rate(field: &Field<'_>) -> Result<Bitrate, TopologyError> {
    let error = || field.error("a bandwidth in bits per second above zero, such as 10Mbps");
    let text = field.text.replace("b/s", "bps");
    if text.contains('B') || text.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(error());
    }
    let rate: Bitrate = text.parse().map_err(|_| error())?;
    if rate == Bitrate::ZERO {
        return Err(error());
    }
    Ok(rate)
}

fn delay(field: &Field<'_>) -> Result<Duration, TopologyError> {
    parse_duration(field.text).map_err(|_| field.error("a delay such as 10ms"))
}
