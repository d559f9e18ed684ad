//! Nodes and links by the names that files call them.

use namecast_netem as netem;

use crate::topology::{NodeIndex, Topology};

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) link: usize,
    pub(super) from_second: bool,
}

impl Direction {
    /// Reads `A>B`.
    pub(super) fn parse(text: &str, topology: &Topology) -> Result<Self, String> {
        let expected = || {
            format!(
                "'{text}' is no direction of a link: write R1>R2, with names of connected nodes"
            )
        };
        let (from, to) = text.split_once('>').ok_or_else(expected)?;
        let from = find(topology, from.trim())?;
        let to = find(topology, to.trim())?;
        let mut links = topology.links.iter().enumerate();
        links
            .find_map(|(link, candidate)| {
                let from_second = candidate.ends == (to, from);
                (candidate.ends == (from, to) || from_second).then_some(Self { link, from_second })
            })
            .ok_or_else(expected)
    }

    /// What the direction is like.
    pub(super) fn config(self, topology: &Topology) -> &netem::Config {
        let link = &topology.links[self.link];
        if self.from_second {
            &link.backward
        } else {
            &link.forward
        }
    }

    /// The same, to change it.
    pub(super) fn config_mut(self, topology: &mut Topology) -> &mut netem::Config {
        let link = &mut topology.links[self.link];
        if self.from_second {
            &mut link.backward
        } else {
            &mut link.forward
        }
    }
}

/// Reads `A>B` as one direction, and `A-B` as both. Names may have hyphens.
pub(super) fn directions(text: &str, topology: &Topology) -> Result<Vec<Direction>, String> {
    if text.contains('>') {
        return Direction::parse(text, topology).map(|direction| vec![direction]);
    }
    let both = text.match_indices('-').find_map(|(at, _)| {
        let (from, to) = (&text[..at], &text[at + 1..]);
        Direction::parse(&format!("{from}>{to}"), topology).ok()
    });
    let first = both.ok_or_else(|| {
        format!("'{text}' is no link: write R1-R2, or R1>R2 for one direction, with names of connected nodes")
    })?;
    let second = Direction {
        from_second: !first.from_second,
        ..first
    };
    Ok(vec![first, second])
}

/// Lets a link, written `R1-R2`, or one direction of it, `R1>R2`, change.
///
/// # Errors
/// If there is no such link; what was expected.
pub fn change_link(topology: &mut Topology, text: &str, step: netem::Step) -> Result<(), String> {
    for direction in directions(text, topology)? {
        direction.config_mut(topology).schedule.push(step);
    }
    Ok(())
}

/// Checks that the rate of these can be changed.
pub(super) fn check_constant(directions: &[Direction], topology: &Topology) -> Result<(), String> {
    let mut rates = directions.iter().map(|it| &it.config(topology).rate);
    match rates.all(|rate| rate.as_ref().is_none_or(|rate| rate.constant().is_some())) {
        true => Ok(()),
        false => Err(
            "the link's rate is a trace or model, and changes by itself: expected no 'rate'"
                .to_owned(),
        ),
    }
}

/// The node of that name.
pub(super) fn find(topology: &Topology, name: &str) -> Result<NodeIndex, String> {
    topology.node(name).ok_or_else(|| {
        let names = topology.nodes.iter().take(8);
        let names: Vec<_> = names.map(|node| &*node.name).collect();
        let (count, names) = (topology.nodes.len(), names.join(", "));
        format!("there is no node '{name}' among the {count}, such as {names}")
    })
}
