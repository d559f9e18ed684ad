//! `namecast strategy`.

use anyhow::Context;
use namecast_command::report::{self, print, print_line};
use namecast_net::management::{ControlParameters, StrategyChoice};
use namecast_packet::Name;

use super::arguments::{StrategyWhat, Target};
use super::connection::Forwarder;
use super::print_json;

/// Does what is asked for.
pub(super) async fn run(
    forwarder: &mut Forwarder,
    what: StrategyWhat,
    target: &Target,
) -> anyhow::Result<()> {
    match what {
        StrategyWhat::List => {
            let choices: Vec<StrategyChoice> = forwarder.list("strategy-choice/list").await?;
            match target.json {
                true => print_json(&choices)?,
                false => print(table(&choices))?,
            }
        }
        StrategyWhat::Set { prefix, strategy } => {
            let parameters = ControlParameters {
                name: Some(prefix),
                strategy: Some(name(&strategy)?),
                ..ControlParameters::default()
            };
            let done = forwarder.command("strategy-choice/set", &parameters);
            let done = done.await.context(
                "the strategy is not in force; with Namecast, best-route, multicast, asf, self-learning, random, weighted and pcon could be",
            )?;
            let choice = StrategyChoice {
                prefix: done.name.unwrap_or_default(),
                strategy: done.strategy.unwrap_or_default(),
                counts: None,
            };
            match target.json {
                true => print_json(&choice)?,
                false => print_line(format_args!("{} has {}", choice.prefix, choice.strategy))?,
            }
        }
        StrategyWhat::Unset { prefix } => {
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                ..ControlParameters::default()
            };
            forwarder
                .command("strategy-choice/unset", &parameters)
                .await?;
            match target.json {
                true => print_json(&serde_json::json!({ "prefix": prefix.to_string() }))?,
                false => print_line(format_args!(
                    "{prefix} has the strategy of the next shorter prefix"
                ))?,
            }
        }
    }
    Ok(())
}

/// The name that a word stands for, or the name itself.
fn name(strategy: &str) -> anyhow::Result<Name> {
    let uri = match strategy.starts_with('/') {
        true => strategy.to_owned(),
        false => format!("/localhost/nfd/strategy/{strategy}"),
    };
    let name = uri.parse();
    name.with_context(|| {
        format!("'{strategy}' is no strategy: write best-route, multicast or a name")
    })
}

/// All choices, a line each, with what became of their Interests if the forwarder tells.
pub(super) fn table(choices: &[StrategyChoice]) -> String {
    let names = |choice: &StrategyChoice| [choice.prefix.to_string(), choice.strategy.to_string()];
    if choices.iter().all(|choice| choice.counts.is_none()) {
        return report::table(["PREFIX", "STRATEGY"], choices.iter().map(names));
    }
    let head = [
        "PREFIX",
        "STRATEGY",
        "INTERESTS",
        "AGAIN",
        "HELD",
        "REFUSED",
        "SATISFIED",
        "TIMEOUTS",
        "NACKS",
    ];
    let row = |choice: &StrategyChoice| {
        let counts = choice.counts.unwrap_or_default();
        let [prefix, strategy] = names(choice);
        [
            prefix,
            strategy,
            counts.interests.to_string(),
            counts.retransmissions.to_string(),
            counts.suppressed.to_string(),
            counts.rejected.to_string(),
            counts.satisfied.to_string(),
            counts.timeouts.to_string(),
            counts.nacks.to_string(),
        ]
    };
    report::table(head, choices.iter().map(row))
}

#[cfg(test)]
mod tests {
    use namecast_net::management::StrategyCounts;

    use super::*;

    #[test]
    fn counters_are_shown_where_the_forwarder_tells_them() {
        let choice = |counts| StrategyChoice {
            prefix: "/a".parse().unwrap(),
            strategy: "/s".parse().unwrap(),
            counts,
        };
        assert_eq!(table(&[choice(None)]), "PREFIX  STRATEGY\n/a      /s\n");
        let counts = StrategyCounts {
            interests: 12,
            retransmissions: 3,
            suppressed: 4,
            rejected: 5,
            satisfied: 6,
            timeouts: 7,
            nacks: 8,
        };
        let text = table(&[choice(Some(counts))]);
        let cells = text.lines().map(|line| line.split_whitespace().collect());
        let cells: Vec<Vec<_>> = cells.collect();
        assert_eq!(
            cells[0][2..],
            [
                "INTERESTS",
                "AGAIN",
                "HELD",
                "REFUSED",
                "SATISFIED",
                "TIMEOUTS",
                "NACKS"
            ]
        );
        assert_eq!(cells[1], ["/a", "/s", "12", "3", "4", "5", "6", "7", "8"]);
    }

    #[test]
    fn a_word_stands_for_a_name_of_nfds() {
        let word = name("asf/v=5").unwrap();
        assert_eq!(word.to_string(), "/localhost/nfd/strategy/asf/v=5");
        assert_eq!(name("/mine").unwrap().to_string(), "/mine");
    }
}
