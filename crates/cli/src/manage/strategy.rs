//! `namecast strategy`.

use anyhow::Context;
use namecast_net::management::{ControlParameters, StrategyChoice};
use namecast_packet::Name;

use super::arguments::{StrategyWhat, Target};
use super::connection::Forwarder;
use super::print_json;
use crate::report::columns;

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
                false => print!("{}", table(&choices)),
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
                "the strategy is not in force; with Namecast, best-route, multicast, asf, random and weighted could be",
            )?;
            let choice = StrategyChoice {
                prefix: done.name.unwrap_or_default(),
                strategy: done.strategy.unwrap_or_default(),
            };
            match target.json {
                true => print_json(&choice)?,
                false => println!("{} has {}", choice.prefix, choice.strategy),
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
                false => println!("{prefix} has the strategy of the next shorter prefix"),
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

/// All choices, a line each.
pub(super) fn table(choices: &[StrategyChoice]) -> String {
    let head = ["PREFIX", "STRATEGY"].map(str::to_owned);
    let rows = choices
        .iter()
        .map(|choice| [choice.prefix.to_string(), choice.strategy.to_string()]);
    let rows: Vec<_> = core::iter::once(head).chain(rows).collect();
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_a_name_of_nfds() {
        let word = name("asf/v=5").unwrap();
        assert_eq!(word.to_string(), "/localhost/nfd/strategy/asf/v=5");
        assert_eq!(name("/mine").unwrap().to_string(), "/mine");
    }
}
