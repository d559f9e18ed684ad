//! GraphML, as the Internet Topology Zoo and graph tools write it.
//!
//! | element | attribute or key | meaning |
//! |---|---|---|
//! | `node` | `id` | what edges call it |
//! | | `label` | its name, blanks replaced by `-`; the id, if there is none or another node has it |
//! | | `Longitude`, `Latitude` | its position |
//! | `edge` | `source`, `target` | its ends |
//! | | `LinkSpeedRaw` | its rate in bit/s |
//! | | `weight` | its cost, a whole number |
//!
//! Other keys are not looked at.

use std::collections::BTreeMap;

use namecast_netem as netem;
use namecast_units::Bitrate;
use roxmltree::{Document, Node as Element};

use super::check::{MAX_NAME, is_name};
use super::rocketfuel::Source;
use super::text::{Ignored, quote};
use super::{Limits, Link, LinkService, Node, NodeIndex, Topology, TopologyError, ordered};

/// Largest cost, so that no path's overflows.
const MAX_COST: u64 = u32::MAX as u64;

/// Reads a graph; `link` says what it does not say about links. Of several edges between two nodes the first counts.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read_graphml(
    source: Source<'_>,
    link: &netem::Config,
    limits: &Limits,
) -> Result<Topology, TopologyError> {
    let document = Document::parse(source.text).map_err(|error| TopologyError::Syntax {
        file: source.file.to_owned(),
        line: usize::try_from(error.pos().row).unwrap_or(usize::MAX),
        column: None,
        found: format!("broken XML ({error})"),
        expected: "GraphML".to_owned(),
    })?;
    let root = document.root_element();
    let mut reader = Reader {
        file: source.file,
        document: &document,
        keys: keys(root),
        topology: Topology::default(),
        ids: BTreeMap::new(),
    };
    if root.tag_name().name() != "graphml" {
        return Err(reader.error(root, root.tag_name().name(), "the element 'graphml'"));
    }
    reader.nodes(root, limits)?;
    reader.edges(root, link, limits)?;
    Ok(reader.topology)
}

/// Names of keys by their ids.
fn keys<'a>(root: Element<'a, 'a>) -> BTreeMap<&'a str, &'a str> {
    let keys = elements(root, "key");
    keys.filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)))
        .collect()
}

fn elements<'a>(
    root: Element<'a, 'a>,
    name: &'static str,
) -> impl Iterator<Item = Element<'a, 'a>> {
    root.descendants()
        .filter(move |element| element.is_element() && element.tag_name().name() == name)
}

struct Reader<'a> {
    file: &'a str,
    document: &'a Document<'a>,
    keys: BTreeMap<&'a str, &'a str>,
    topology: Topology,
    ids: BTreeMap<&'a str, NodeIndex>,
}

impl<'a> Reader<'a> {
    fn line(&self, element: Element<'_, '_>) -> usize {
        let place = self.document.text_pos_at(element.range().start);
        usize::try_from(place.row).unwrap_or(usize::MAX)
    }

    fn error(&self, element: Element<'_, '_>, found: &str, expected: &str) -> TopologyError {
        TopologyError::Syntax {
            file: self.file.to_owned(),
            line: self.line(element),
            column: None,
            found: quote(found),
            expected: expected.to_owned(),
        }
    }

    fn attribute(
        &self,
        element: Element<'a, 'a>,
        name: &str,
        expected: &str,
    ) -> Result<&'a str, TopologyError> {
        let value = element.attribute(name);
        value.ok_or_else(|| self.error(element, element.tag_name().name(), expected))
    }

    /// What an element says of the key of this name.
    fn value(&self, element: Element<'a, 'a>, name: &str) -> Option<&'a str> {
        let is_it = |data: &Element<'a, 'a>| {
            let key = data.attribute("key");
            data.tag_name().name() == "data"
                && key.and_then(|key| self.keys.get(key)) == Some(&name)
        };
        let text = element.children().find(is_it)?.text()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The same as a number that is finite and not negative, or for a position any finite one.
    fn number(
        &self,
        element: Element<'a, 'a>,
        name: &str,
        least: f64,
    ) -> Result<Option<f64>, TopologyError> {
        let Some(text) = self.value(element, name) else {
            return Ok(None);
        };
        let number = text.parse().ok();
        let number = number.filter(|number: &f64| number.is_finite() && *number >= least);
        let expected = format!("a number of at least {least}: {name}");
        number
            .map(Some)
            .ok_or_else(|| self.error(element, text, &expected))
    }

    fn nodes(&mut self, root: Element<'a, 'a>, limits: &Limits) -> Result<(), TopologyError> {
        let mut names = BTreeMap::new();
        for node in elements(root, "node") {
            let id = self.attribute(node, "id", "an id")?;
            let name = self.name(node, id, &names)?;
            let place = self.topology.nodes.len();
            names.insert(name.clone(), place);
            if self.ids.insert(id, place).is_some() {
                return Err(self.error(node, id, "an id that no node above has"));
            }
            let x = self.number(node, "Longitude", -180.0)?;
            let y = self.number(node, "Latitude", -90.0)?;
            self.topology.nodes.push(Node {
                name,
                position: x.zip(y),
            });
            limits.check(self.topology.nodes.len(), 0)?;
        }
        Ok(())
    }

    /// The label, or where that will not do the id.
    fn name(
        &self,
        node: Element<'a, 'a>,
        id: &str,
        taken: &BTreeMap<String, NodeIndex>,
    ) -> Result<String, TopologyError> {
        let label = self.value(node, "label").unwrap_or(id);
        let words: Vec<_> = label.split_whitespace().collect();
        let name = words.join("-");
        let candidates = [name.clone(), format!("{name}-{id}"), id.to_owned()];
        let mut usable = candidates
            .into_iter()
            .filter(|name| is_name(name) && !taken.contains_key(name));
        let expected = format!("a label or id of 1 to {MAX_NAME} octets that no node above has");
        usable
            .next()
            .ok_or_else(|| self.error(node, label, &expected))
    }

    fn edges(
        &mut self,
        root: Element<'a, 'a>,
        link: &netem::Config,
        limits: &Limits,
    ) -> Result<(), TopologyError> {
        let mut pairs = BTreeMap::new();
        let (mut own, mut parallel) = (Ignored::default(), Ignored::default());
        for edge in elements(root, "edge") {
            let ends = (self.end(edge, "source")?, self.end(edge, "target")?);
            let name = &self.topology.nodes[ends.0].name;
            if ends.0 == ends.1 {
                own.add(self.line(edge), name);
                continue;
            }
            if pairs.insert(ordered(ends), ()).is_some() {
                parallel.add(self.line(edge), name);
                continue;
            }
            let (config, cost) = (self.config(edge, link)?, self.cost(edge)?);
            self.topology.links.push(Link {
                ends,
                cost,
                forward: config.clone(),
                backward: config,
                service: LinkService::default(),
            });
            limits.check(0, self.topology.links.len())?;
        }
        let own = own.remark(self.file, "edges of a node to itself");
        let parallel = parallel.remark(self.file, "further edges between two nodes");
        self.topology.remarks = own.into_iter().chain(parallel).collect();
        Ok(())
    }

    fn end(&self, edge: Element<'a, 'a>, side: &str) -> Result<NodeIndex, TopologyError> {
        let id = self.attribute(edge, side, "a source and a target")?;
        let known = self.ids.get(id).copied();
        known.ok_or_else(|| self.error(edge, id, "the id of a node"))
    }

    fn config(
        &self,
        edge: Element<'a, 'a>,
        link: &netem::Config,
    ) -> Result<netem::Config, TopologyError> {
        let mut config = link.clone();
        if let Some(bits) = self.number(edge, "LinkSpeedRaw", 1.0)? {
            config.rate = Some(Bitrate::bps(bits.round() as u64).into());
        }
        Ok(config)
    }

    fn cost(&self, edge: Element<'a, 'a>) -> Result<u64, TopologyError> {
        let Some(text) = self.value(edge, "weight") else {
            return Ok(1);
        };
        let number = text.parse().ok().filter(|cost| *cost <= MAX_COST);
        let expected = format!("a whole number of at most {MAX_COST}: weight");
        number.ok_or_else(|| self.error(edge, text, &expected))
    }
}

#[cfg(test)]
mod tests {
    use namecast_netem::Rate;

    use super::*;

    const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="weight" attr.type="int" for="edge" id="w" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">40.71</data><data key="d32">-74.0</data><data key="d33">New York</data></node>
    <node id="1"><data key="d33">New York</data></node>
    <node id="n2" />
    <edge source="0" target="1"><data key="d35">10000000000.0</data><data key="w">7</data></edge>
    <edge source="1" target="0" />
    <edge source="n2" target="n2" />
    <edge source="1" target="n2" />
  </graph>
</graphml>
"#;

    fn read(text: &str) -> Result<Topology, String> {
        let source = Source { text, file: "z" };
        let link = netem::Config {
            rate: Some(Bitrate::mbps(3).into()),
            ..netem::Config::default()
        };
        let topology = read_graphml(source, &link, &Limits::default());
        topology.map_err(|error| error.to_string())
    }

    #[test]
    fn a_map_of_the_topology_zoo_is_read() {
        let topology = read(ZOO).unwrap();
        topology.check(&Limits::default()).unwrap();
        let names: Vec<_> = topology.nodes.iter().map(|node| &node.name[..]).collect();
        assert_eq!(names, ["New-York", "New-York-1", "n2"]);
        assert_eq!(topology.nodes[0].position, Some((-74.0, 40.71)));
        assert_eq!(topology.nodes[1].position, None);
        let links: Vec<_> = topology
            .links
            .iter()
            .map(|link| {
                let rate = link.backward.rate.as_ref().and_then(Rate::constant);
                (link.ends, link.cost, rate.unwrap().as_bps())
            })
            .collect();
        assert_eq!(links, [((0, 1), 7, 10_000_000_000), ((1, 2), 1, 3_000_000)]);
        assert_eq!(
            topology.remarks,
            [
                "z:14: ignored edges of a node to itself: 'n2', 1 in total",
                "z:13: ignored further edges between two nodes: 'New-York-1', 1 in total",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, message) in [
            (
                "target=\"1\"",
                "target=\"9\"",
                "z:12: found '9', expected the id of a node",
            ),
            (
                "id=\"1\"",
                "id=\"0\"",
                "z:10: found '0', expected an id that no node above has",
            ),
            (
                "40.71",
                "north",
                "z:9: found 'north', expected a number of at least -90: Latitude",
            ),
            (
                "10000000000.0",
                "0",
                "z:12: found '0', expected a number of at least 1: LinkSpeedRaw",
            ),
            (
                "<graph ",
                "<graf ",
                "z:16: found broken XML (expected 'graf' tag, not 'graph' at 16:3), expected GraphML",
            ),
        ] {
            assert!(ZOO.contains(from));
            assert_eq!(read(&ZOO.replace(from, to)).unwrap_err(), message);
        }
        assert_eq!(
            read("<gexf/>").unwrap_err(),
            "z:1: found 'gexf', expected the element 'graphml'"
        );
    }
}
