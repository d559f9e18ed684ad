//! The hops that a scenario names: the forwarder's and a program's own rules about packets, in every simulated node.

use namecast_forward::{HopNameError, NamedHop};
use serde::{Deserialize, Serialize, Serializer};

use super::{Scenario, ScenarioError};
use crate::hop::CustomHop;

/// A hop as a scenario writes it: a name as [`NamedHop`] reads it, or one for which [`Scenario::register_hop`] finds what it names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "String")]
pub struct HopChoice {
    pub(super) name: String,
    custom: Option<CustomHop>,
}

impl From<String> for HopChoice {
    fn from(name: String) -> Self {
        Self { name, custom: None }
    }
}

impl Serialize for HopChoice {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.name)
    }
}

impl Scenario {
    /// Lets the scenario name `custom` among its `hops`.
    pub fn register_hop(&mut self, custom: CustomHop) {
        let hops = match self {
            Self::Network(network) => &mut network.hops,
            Self::Stream(stream) => &mut stream.hops,
            Self::Exchange(exchange) => &mut exchange.hops,
            Self::Evolution(_) | Self::Parameters(_) | Self::Topology(_) => return,
        };
        for hop in hops.iter_mut().filter(|hop| hop.name == custom.name) {
            hop.custom = Some(custom.clone());
        }
    }
}

/// Returns what the names of a scenario's hops stand for.
///
/// # Errors
/// If one stands for nothing.
pub fn named_hops(hops: &[HopChoice]) -> Result<Vec<CustomHop>, ScenarioError> {
    let named = hops.iter().map(|hop| {
        if let Some(custom) = &hop.custom {
            return Ok(custom.clone());
        }
        let own = hop.name.parse::<NamedHop>();
        own.map(CustomHop::from).map_err(|error| {
            let name = &hop.name;
            let problem = match error {
                HopNameError::Unknown => format!(
                    "'{name}' is no hop: {error}, or register your own by namecast_lab::main().hop(…)"
                ),
                _ => format!("'{name}': {error}"),
            };
            ScenarioError::new("hops", problem)
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_forwarders_own_hop_or_a_programs() {
        let named = |name: &str| named_hops(&[HopChoice::from(name.to_owned())]);
        assert_eq!(
            named("rate-feedback/window~24").map(|hops| hops.len()),
            Ok(1)
        );
        let refused = |name: &str| named(name).unwrap_err().to_string();
        assert!(refused("rate-feedback/window~1").contains("write 3 to 1024"));
        assert!(refused("mine").contains("or register your own"));
        let mut mine = HopChoice::from("mine".to_owned());
        let build = || NamedHop::HopCount.build();
        mine.custom = Some(CustomHop::new("mine", build));
        assert_eq!(named_hops(&[mine]).map(|hops| hops.len()), Ok(1));
    }
}
