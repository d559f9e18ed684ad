//! `namecast trace`: which way an Interest would take through a forwarder.

use namecast_command::report::{columns, print};
use namecast_net::management::{FaceStatus, FibEntry, StrategyChoice};
use namecast_packet::Name;
use serde::Serialize;

use super::arguments::Trace;
use super::connection::Forwarder;
use super::print_json;

/// Tells what the forwarder's tables say of a name.
pub(super) async fn run(forwarder: &mut Forwarder, trace: &Trace) -> anyhow::Result<()> {
    let choices: Vec<StrategyChoice> = forwarder.list("strategy-choice/list").await?;
    let entries: Vec<FibEntry> = forwarder.list("fib/list").await?;
    let faces: Vec<FaceStatus> = forwarder.list("faces/list").await?;
    let way = Way::of(&trace.name, &choices, &entries, &faces);
    match trace.target.json {
        true => print_json(&way)?,
        false => print(way.text())?,
    }
    Ok(())
}

/// What becomes of Interests for a name that no cached Data answers.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Way {
    name: String,
    /// The strategy, and the prefix that it was chosen for.
    strategy: Option<String>,
    strategy_prefix: Option<String>,
    /// The longest prefix that has next hops; none: Interests are refused.
    route_prefix: Option<String>,
    /// The cheapest first.
    next_hops: Vec<Hop>,
}

/// A face that an Interest may leave by.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Hop {
    face: u64,
    uri: String,
    cost: u64,
}

impl Way {
    fn of(
        name: &Name,
        choices: &[StrategyChoice],
        entries: &[FibEntry],
        faces: &[FaceStatus],
    ) -> Self {
        let choices = choices.iter().filter(|it| it.prefix.is_prefix_of(name));
        let choice = choices.max_by_key(|it| it.prefix.len());
        let entries = entries.iter().filter(|it| it.prefix.is_prefix_of(name));
        let entry = entries
            .filter(|it| !it.next_hops.is_empty())
            .max_by_key(|it| it.prefix.len());
        let uri = |number| {
            let face = faces.iter().find(|face| face.face == number);
            face.map_or_else(|| "–".to_owned(), |face| face.uri.clone())
        };
        let hops = entry.map_or(&[][..], |entry| &entry.next_hops);
        let mut next_hops: Vec<_> = hops
            .iter()
            .map(|hop| Hop {
                face: hop.face,
                uri: uri(hop.face),
                cost: hop.cost,
            })
            .collect();
        next_hops.sort_by_key(|hop| (hop.cost, hop.face));
        Self {
            name: name.to_string(),
            strategy: choice.map(|it| it.strategy.to_string()),
            strategy_prefix: choice.map(|it| it.prefix.to_string()),
            route_prefix: entry.map(|it| it.prefix.to_string()),
            next_hops,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("Interests for {}\n", self.name);
        if let (Some(strategy), Some(prefix)) = (&self.strategy, &self.strategy_prefix) {
            text += &format!("  by {strategy}, the strategy of {prefix}\n");
        }
        let Some(prefix) = &self.route_prefix else {
            let asks_all = self.strategy.as_ref();
            return match asks_all.is_some_and(|name| name.contains("/self-learning/")) {
                true => text + "  go to every neighbour, as no prefix has a next hop\n",
                false => {
                    text + "  go nowhere: no prefix has a next hop; namecast route add makes one\n"
                }
            };
        };
        text += &format!("  may go where {prefix} leads:\n");
        let rows = self.next_hops.iter().map(|hop| {
            let cost = format!("cost {}", hop.cost);
            [
                "   ".to_owned(),
                format!("face {}", hop.face),
                hop.uri.clone(),
                cost,
            ]
        });
        text + &columns(&rows.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use namecast_net::management::NextHopRecord;

    use super::*;

    fn entry(prefix: &str, hops: &[(u64, u64)]) -> FibEntry {
        let hops = hops
            .iter()
            .map(|&(face, cost)| NextHopRecord { face, cost });
        FibEntry {
            prefix: prefix.parse().unwrap(),
            next_hops: hops.collect(),
        }
    }

    /// The longest prefix with next hops decides, not the longest of all; and each table has its own longest.
    #[test]
    fn the_longest_prefixes_decide_and_the_cheapest_hop_is_first() {
        let choice = |prefix: &str, strategy: &str| StrategyChoice {
            prefix: prefix.parse().unwrap(),
            strategy: strategy.parse().unwrap(),
            counts: None,
        };
        let choices = [
            choice("/", "/best"),
            choice("/a/b", "/multi"),
            choice("/c", "/asf"),
        ];
        let entries = [
            entry("/", &[(9, 1)]),
            entry("/a", &[(260, 20), (258, 5), (300, 5)]),
            entry("/a/b", &[]),
        ];
        let face = FaceStatus {
            face: 258,
            uri: "udp4://192.0.2.1:6363".to_owned(),
            ..FaceStatus::default()
        };
        let way = Way::of(&"/a/b/c".parse().unwrap(), &choices, &entries, &[face]);
        let expected = "\
Interests for /a/b/c
  by /multi, the strategy of /a/b
  may go where /a leads:
     face 258  udp4://192.0.2.1:6363  cost 5
     face 300  –                      cost 5
     face 260  –                      cost 20
";
        assert_eq!(way.text(), expected);
        let nowhere = Way::of(&"/a".parse().unwrap(), &choices, &[], &[]);
        assert_eq!(nowhere.route_prefix, None);
        assert!(nowhere.text().contains("go nowhere"));
        let learning = choice("/", "/localhost/nfd/strategy/self-learning/v=1");
        let everywhere = Way::of(&"/a".parse().unwrap(), &[learning], &[], &[]);
        assert!(everywhere.text().contains("every neighbour"));
    }
}
