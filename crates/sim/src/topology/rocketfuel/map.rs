//! Router-level maps, `.cch`:
//!
//! ```text
//! uid @loc [+] [bb] (num_neigh) [&ext] -> <nuid> … {-euid} … =name[!] rn
//! -euid =externaladdress rn
//! ```

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use namecast_netem::{self as netem, Queue};
use namecast_units::{Bitrate, ByteSize, Random};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::Source;
use crate::topology::text::{Field, Ignored, lines, quote};
use crate::topology::{Limits, Link, LinkService, NodeIndex, Topology, TopologyError, ordered};

/// What a map does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MapOptions {
    /// Fixes rates and delays.
    pub seed: u64,
    /// Routers farther from a named gateway or backbone router are left out: `rn` of the file. 0: only those themselves.
    pub radius: u8,
    /// Whether addresses outside of the provider become nodes, if their radius allows.
    pub externals: bool,
    /// Whether only the largest set of routers that reach each other is kept.
    #[default(true)]
    pub largest_component: bool,
    /// Links between two backbone routers.
    #[default(LinkRange::new((40, 100), (5, 10)))]
    pub backbone: LinkRange,
    /// Links of a gateway to a gateway or backbone router.
    #[default(LinkRange::new((10, 20), (5, 10)))]
    pub gateway: LinkRange,
    /// Links of all that is farther out.
    #[default(LinkRange::new((1, 3), (10, 70)))]
    pub leaf: LinkRange,
    /// Queues hold what the link sends in this time, counted in packets of 1100 bytes.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(250))]
    pub queue_time: Duration,
    /// The cost of a link is this rate by its rate, at least 1.
    #[default(Bitrate::mbps(100))]
    pub reference_rate: Bitrate,
}

/// Bounds of a link's rate and delay; each value between is equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkRange {
    /// Lowest rate.
    pub min_rate: Bitrate,
    /// Highest rate.
    pub max_rate: Bitrate,
    /// Shortest delay.
    #[serde(with = "namecast_units::duration")]
    pub min_delay: Duration,
    /// Longest delay.
    #[serde(with = "namecast_units::duration")]
    pub max_delay: Duration,
}

impl LinkRange {
    const fn new(rates: (u64, u64), delays: (u64, u64)) -> Self {
        Self {
            min_rate: Bitrate::mbps(rates.0),
            max_rate: Bitrate::mbps(rates.1),
            min_delay: Duration::from_millis(delays.0),
            max_delay: Duration::from_millis(delays.1),
        }
    }

    fn check(&self, field: &str) -> Result<(), TopologyError> {
        let expected = "at least min, and rates above 0";
        if self.min_rate == Bitrate::ZERO || self.max_rate < self.min_rate {
            let field = format!("{field}: max-rate");
            return Err(TopologyError::value(field, self.max_rate, expected));
        }
        if self.max_delay < self.min_delay {
            let (field, found) = (
                format!("{field}: max-delay"),
                format!("{:?}", self.max_delay),
            );
            return Err(TopologyError::value(field, found, expected));
        }
        Ok(())
    }
}

/// Size of the packets that queues are counted in; ndnSIM's.
const PACKET: ByteSize = ByteSize::bytes(1_100);
/// Most packets of a queue.
const MAX_QUEUE: usize = 100_000_000;

/// What a node is, in ndnSIM's words: its name starts with this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Connects to other cities.
    Backbone,
    /// Connects customers.
    Gateway,
    /// Farther out.
    Leaf,
    /// Outside of the provider.
    External,
}

/// One line of the map.
struct Row<'a> {
    uid: Field<'a>,
    class: Class,
    radius: u8,
    /// Brackets removed.
    neighbours: Vec<Field<'a>>,
}

/// Reads a router-level map. Routers are named `bb-<uid>`, `gw-<uid>`, `leaf-<uid>` and `ext-<euid>`.
///
/// A router counts as backbone if the map says so; ndnSIM's reader guesses it from degrees. Rates and delays are not in the
/// map: they are drawn. The number of neighbours may be larger than those listed, as in trimmed maps. A neighbour without a line
/// of its own, or a router's own uid, is ignored with a remark.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read_map(
    source: Source<'_>,
    options: &MapOptions,
    limits: &Limits,
) -> Result<Topology, TopologyError> {
    for (field, range) in [
        ("backbone", &options.backbone),
        ("gateway", &options.gateway),
        ("leaf", &options.leaf),
    ] {
        range.check(field)?;
    }
    let mut rows = Vec::new();
    for line in lines(source.text, source.file) {
        let fields = line.fields();
        if !fields.is_empty() {
            rows.push(
                Parser {
                    fields: &fields,
                    at: 0,
                }
                .row()?,
            );
            limits.check(rows.len(), 0)?;
        }
    }
    let topology = Builder::new(options).build(&rows, source.file, limits)?;
    if options.largest_component {
        return Ok(topology.restricted_to(&topology.largest_component()));
    }
    Ok(topology)
}

struct Parser<'a, 'b> {
    fields: &'b [Field<'a>],
    at: usize,
}

impl<'a> Parser<'a, '_> {
    /// The next field if it is between `open` and `close`, and what is between.
    fn between(&mut self, open: &str, close: &str) -> Option<Field<'a>> {
        let field = self.fields.get(self.at)?;
        let inner = field.text.strip_prefix(open)?.strip_suffix(close)?;
        self.at += 1;
        Some(Field {
            text: inner,
            ..*field
        })
    }

    fn is_next(&mut self, word: &str) -> bool {
        let found = self
            .fields
            .get(self.at)
            .is_some_and(|field| field.text == word);
        self.at += usize::from(found);
        found
    }

    fn error(&self, expected: &str) -> TopologyError {
        match self.fields.get(self.at) {
            Some(field) => field.error(expected),
            None => {
                let line = self.fields[0].line;
                line.error(quote(line.text.trim()), format!("{expected} at its end"))
            }
        }
    }

    fn row(mut self) -> Result<Row<'a>, TopologyError> {
        let uid = self.fields[0];
        uid.parse::<i64>("a uid: a whole number")?;
        self.at = 1;
        let is_external = uid.text.starts_with('-');
        let mut row = Row {
            uid,
            class: if is_external {
                Class::External
            } else {
                Class::Gateway
            },
            radius: 0,
            neighbours: Vec::new(),
        };
        if !is_external {
            self.links(&mut row)?;
        }
        if self.between("=", "").is_none() {
            return Err(self.error("=<name>"));
        }
        let expected = "the radius, such as r0";
        let radius = self.between("r", "").ok_or_else(|| self.error(expected))?;
        row.radius = radius.parse(expected)?;
        if self.at < self.fields.len() {
            return Err(self.error("the end of the line"));
        }
        if row.class == Class::Gateway && row.radius > 0 {
            row.class = Class::Leaf;
        }
        Ok(row)
    }

    /// From the location to the last neighbour.
    fn links(&mut self, row: &mut Row<'a>) -> Result<(), TopologyError> {
        if self.between("@", "").is_none() {
            return Err(self.error("the location, such as @Palo+Alto,+CA"));
        }
        self.is_next("+");
        if self.is_next("bb") {
            row.class = Class::Backbone;
        }
        let expected = "the number of neighbours, such as (4)";
        let count = self.between("(", ")").ok_or_else(|| self.error(expected))?;
        let most: usize = count.parse(expected)?;
        if let Some(externals) = self.between("&", "") {
            externals.parse::<u32>("the number of external links, such as &27")?;
        }
        if !self.is_next("->") {
            return Err(self.error("'->'"));
        }
        while let Some(neighbour) = self.between("<", ">") {
            neighbour.parse::<u64>("a uid: a whole number")?;
            row.neighbours.push(neighbour);
        }
        if row.neighbours.len() > most {
            let expected = format!("at least the {} neighbours listed", row.neighbours.len());
            return Err(count.error(expected));
        }
        while let Some(external) = self.between("{", "}") {
            if !external.text.starts_with('-') {
                return Err(external.error("a negative uid"));
            }
            external.parse::<i64>("a negative uid")?;
            row.neighbours.push(external);
        }
        Ok(())
    }
}

struct Builder<'o> {
    options: &'o MapOptions,
    random: Random,
    topology: Topology,
    classes: Vec<Class>,
    pairs: BTreeSet<(NodeIndex, NodeIndex)>,
    /// Routers that list themselves.
    own: Ignored,
    /// Neighbours that have no line.
    absent: Ignored,
}

impl<'o> Builder<'o> {
    fn new(options: &'o MapOptions) -> Self {
        Self {
            options,
            random: Random::from_seed(options.seed),
            topology: Topology::default(),
            classes: Vec::new(),
            pairs: BTreeSet::new(),
            own: Ignored::default(),
            absent: Ignored::default(),
        }
    }

    fn build(
        mut self,
        rows: &[Row<'_>],
        file: &str,
        limits: &Limits,
    ) -> Result<Topology, TopologyError> {
        // A uid that is in the file but left out stands for nothing.
        let mut places: BTreeMap<&str, (Option<NodeIndex>, usize)> = BTreeMap::new();
        for row in rows {
            let node = self.is_wanted(row).then(|| self.node(row));
            let place = (node, row.uid.line.number);
            if let Some((_, line)) = places.insert(row.uid.text, place) {
                return Err(row
                    .uid
                    .error(format!("another uid: line {line} has this one")));
            }
        }
        for row in rows {
            for neighbour in &row.neighbours {
                let line = neighbour.line.number;
                if neighbour.text == row.uid.text {
                    self.own.add(line, neighbour.text);
                    continue;
                }
                let Some(&(to, _)) = places.get(neighbour.text) else {
                    self.absent.add(line, neighbour.text);
                    continue;
                };
                if let (Some(from), Some(to)) = (places[row.uid.text].0, to) {
                    self.link((from, to));
                    limits.check(0, self.topology.links.len())?;
                }
            }
        }
        let own = self.own.remark(file, "routers that list themselves");
        let absent = "neighbours without a line of their own";
        let absent = self.absent.remark(file, absent);
        self.topology.remarks = own.into_iter().chain(absent).collect();
        Ok(self.topology)
    }

    fn is_wanted(&self, row: &Row<'_>) -> bool {
        row.radius <= self.options.radius
            && (row.class != Class::External || self.options.externals)
    }

    fn node(&mut self, row: &Row<'_>) -> NodeIndex {
        let class = match row.class {
            Class::Backbone => "bb",
            Class::Gateway => "gw",
            Class::Leaf => "leaf",
            Class::External => "ext",
        };
        self.classes.push(row.class);
        let uid = row.uid.text.trim_start_matches('-');
        self.topology.add_node(format!("{class}-{uid}"))
    }

    /// A link, unless the other end has listed it already.
    fn link(&mut self, ends: (NodeIndex, NodeIndex)) {
        if !self.pairs.insert(ordered(ends)) {
            return;
        }
        let range = match (self.classes[ends.0], self.classes[ends.1]) {
            (Class::Leaf | Class::External, _) | (_, Class::Leaf | Class::External) => {
                self.options.leaf
            }
            (Class::Backbone, Class::Backbone) => self.options.backbone,
            _ => self.options.gateway,
        };
        let (min, max) = (range.min_rate.as_bps(), range.max_rate.as_bps());
        let rate = Bitrate::bps(min + self.random.below((max - min).saturating_add(1)));
        let spread = (range.max_delay - range.min_delay).as_micros();
        let spread = u64::try_from(spread).unwrap_or(u64::MAX - 1);
        let added = Duration::from_micros(self.random.below(spread.saturating_add(1)));
        let queued = (rate * self.options.queue_time).as_bytes();
        let packets = queued.div_ceil(PACKET.as_bytes());
        let packets = usize::try_from(packets)
            .unwrap_or(MAX_QUEUE)
            .clamp(1, MAX_QUEUE);
        let config = netem::Config {
            rate: Some(rate.into()),
            delay: range.min_delay + added,
            queue: Queue::DropTail { packets },
            ..netem::Config::default()
        };
        let cost = self.options.reference_rate.as_bps() / rate.as_bps();
        self.topology.links.push(Link {
            ends,
            cost: cost.max(1),
            forward: config.clone(),
            backward: config,
            service: LinkService::default(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cities, a gateway, a customer of it, an address outside, and a pair on its own.
    const MAP: &str = "\
1 @Palo+Alto,+CA + bb\t(3) &27 -> <2> <3>  =ibr01.paix01.example.net r0
2 @? bb\t(1) -> <1>  =bbr02.example.net! r0
3 @Waltham,+MA + \t(3) &1 -> <1> <4> {-1} =gw.example.net r0
4 @T (1) -> <3> =customer.example.com r1
-1 =192.0.2.7 r1

10 @Berlin (1) -> <11> =a.example.net r0
11 @Berlin (1) -> <10> =b.example.net r0
";

    fn read(map: &str, options: &MapOptions) -> Result<Topology, String> {
        let source = Source {
            text: map,
            file: "m.cch",
        };
        let topology =
            read_map(source, options, &Limits::default()).map_err(|error| error.to_string())?;
        topology.check(&Limits::default()).unwrap();
        Ok(topology)
    }

    fn shape(topology: &Topology) -> (Vec<&str>, Vec<(usize, usize)>) {
        let names = topology.nodes.iter().map(|node| node.name.as_str());
        (
            names.collect(),
            topology.links.iter().map(|link| link.ends).collect(),
        )
    }

    #[test]
    fn maps_are_read_to_the_radius_asked_for() {
        let core = read(MAP, &MapOptions::default()).unwrap();
        assert_eq!(
            shape(&core),
            (vec!["bb-1", "bb-2", "gw-3"], vec![(0, 1), (0, 2)])
        );
        let all = MapOptions {
            radius: 5,
            externals: true,
            largest_component: false,
            ..MapOptions::default()
        };
        let all = read(MAP, &all).unwrap();
        let names = vec!["bb-1", "bb-2", "gw-3", "leaf-4", "ext-1", "gw-10", "gw-11"];
        assert_eq!(
            shape(&all),
            (names, vec![(0, 1), (0, 2), (2, 3), (2, 4), (5, 6)])
        );
    }

    #[test]
    fn rates_and_delays_are_drawn_by_class_within_their_ranges() {
        let options = |seed| MapOptions {
            seed,
            radius: 1,
            ..MapOptions::default()
        };
        let mut backbone_rates = Vec::new();
        for seed in 0..200 {
            let topology = read(MAP, &options(seed)).unwrap();
            let expected = [
                ((40, 100), (5, 10)),
                ((10, 20), (5, 10)),
                ((1, 3), (10, 70)),
            ];
            assert_eq!(topology.links.len(), 3);
            for (link, (rates, delays)) in topology.links.iter().zip(expected) {
                let rate = link
                    .forward
                    .rate
                    .as_ref()
                    .and_then(netem::Rate::constant)
                    .unwrap();
                assert!((Bitrate::mbps(rates.0)..=Bitrate::mbps(rates.1)).contains(&rate));
                let delays = Duration::from_millis(delays.0)..=Duration::from_millis(delays.1);
                assert!(delays.contains(&link.forward.delay));
                assert_eq!(link.forward, link.backward);
                assert_eq!(link.cost, (100_000_000 / rate.as_bps()).max(1));
            }
            backbone_rates.push(
                topology.links[0]
                    .forward
                    .rate
                    .as_ref()
                    .and_then(netem::Rate::constant)
                    .unwrap(),
            );
        }
        // Uniform over 60 Mbit/s: of 200 draws the extremes lie within a tenth of both ends, all but surely.
        assert!(*backbone_rates.iter().min().unwrap() < Bitrate::mbps(46));
        assert!(*backbone_rates.iter().max().unwrap() > Bitrate::mbps(94));
        assert_eq!(read(MAP, &options(1)), read(MAP, &options(1)));
        assert_ne!(read(MAP, &options(1)), read(MAP, &options(2)));
    }

    /// 61 328 158 bit/s · 0.25 s / 8 / 1100 = 1742.3: ndnSIM's converted map has 1743 for this rate.
    #[test]
    fn queues_are_as_long_as_ndnsims() {
        let rate = Bitrate::bps(61_328_158);
        let delay = Duration::from_millis(1);
        let range = LinkRange {
            min_rate: rate,
            max_rate: rate,
            min_delay: delay,
            max_delay: delay,
        };
        let options = MapOptions {
            backbone: range,
            ..MapOptions::default()
        };
        let link = &read(MAP, &options).unwrap().links[0];
        assert_eq!(link.forward.queue, Queue::DropTail { packets: 1_743 });
        assert_eq!(
            (link.forward.rate.clone(), link.forward.delay),
            (Some(rate.into()), delay)
        );
    }

    #[test]
    fn wrong_lines_are_refused_with_their_place() {
        for (map, message) in [
            (
                "x @a (0) -> =n r0",
                "m.cch:1:1: found 'x', expected a uid: a whole number",
            ),
            (
                "1 a (0) -> =n r0",
                "m.cch:1:3: found 'a', expected the location, such as @Palo+Alto,+CA",
            ),
            (
                "1 @a -> =n r0",
                "m.cch:1:6: found '->', expected the number of neighbours, such as (4)",
            ),
            (
                "1 @a (x) -> =n r0",
                "m.cch:1:6: found 'x', expected the number of neighbours, such as (4)",
            ),
            ("1 @a (0) =n r0", "m.cch:1:10: found '=n', expected '->'"),
            (
                "1 @a (0) &x -> =n r0",
                "m.cch:1:10: found 'x', expected the number of external links, such as &27",
            ),
            (
                "1 @a (1) -> <-2> =n r0",
                "m.cch:1:13: found '-2', expected a uid: a whole number",
            ),
            (
                "1 @a (0) -> <2> =n r0",
                "m.cch:1:6: found '0', expected at least the 1 neighbours listed",
            ),
            (
                "1 @a (1) -> {2} =n r0",
                "m.cch:1:13: found '2', expected a negative uid",
            ),
            ("1 @a (0) -> r0", "m.cch:1:13: found 'r0', expected =<name>"),
            (
                "1 @a (0) ->",
                "m.cch:1: found '1 @a (0) ->', expected =<name> at its end",
            ),
            (
                "1 @a (0) -> =n 0",
                "m.cch:1:16: found '0', expected the radius, such as r0",
            ),
            (
                "1 @a (0) -> =n r0 x",
                "m.cch:1:19: found 'x', expected the end of the line",
            ),
            ("-1 @a =n r0", "m.cch:1:4: found '@a', expected =<name>"),
            (
                "1 @a (0) -> =n r0\n1 @a (0) -> =n r0",
                "m.cch:2:1: found '1', expected another uid: line 1 has this one",
            ),
        ] {
            assert_eq!(read(map, &MapOptions::default()).unwrap_err(), message);
        }
    }

    /// As measured maps have them: the links that make sense stay.
    #[test]
    fn own_and_absent_neighbours_are_ignored_with_a_remark() {
        let map = "1 @a + bb (4) -> <2> <1> <9> =a r0\n2 @b + bb (3) -> <1> <2> {-7} =b r0\n";
        let topology = read(map, &MapOptions::default()).unwrap();
        assert_eq!(shape(&topology), (vec!["bb-1", "bb-2"], vec![(0, 1)]));
        assert_eq!(
            topology.remarks,
            [
                "m.cch:1: ignored routers that list themselves: '1', 2 in total",
                "m.cch:1: ignored neighbours without a line of their own: '9', 2 in total",
            ]
        );
        assert_eq!(
            read(MAP, &MapOptions::default()).unwrap().remarks.len(),
            0,
            "nothing is ignored"
        );
    }

    #[test]
    fn ranges_must_not_be_upside_down() {
        let mut options = MapOptions::default();
        options.leaf.max_delay = Duration::ZERO;
        let error = read(MAP, &options).unwrap_err();
        assert!(error.starts_with("leaf: max-delay: found 0ns"), "{error}");
        options = MapOptions::default();
        options.gateway.min_rate = Bitrate::ZERO;
        read(MAP, &options).unwrap_err();
    }

    #[test]
    fn damaged_maps_never_panic() {
        let options = MapOptions {
            radius: 9,
            externals: true,
            ..MapOptions::default()
        };
        for at in 0..MAP.len() {
            for octet in ["", "\n", "<", ">", "-", "é"] {
                let damaged = format!("{}{octet}{}", &MAP[..at], &MAP[at + 1..]);
                let _ = read(&damaged, &options);
            }
        }
    }
}
