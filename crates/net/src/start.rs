//! How a node starts: with its management, and what that tells a routing daemon.

use std::sync::Arc;

use crate::NodeConfig;
use crate::application::ApplicationFace;
use crate::management::{self, Readvertising};
use crate::node::Node;

impl Node {
    /// Starts a node. Must be called inside a tokio runtime.
    pub fn start(config: NodeConfig) -> Self {
        let commands = &config.management;
        let prefixes = match commands.enabled {
            true => {
                let has_guests = !commands.tickets.is_empty() || !commands.rights.is_empty();
                management::prefixes(commands.allow_localhop || has_guests).collect()
            }
            false => Vec::new(),
        };
        let readvertising = Readvertising::new(commands);
        Self::run(config, prefixes, |node, link, events| {
            let face = ApplicationFace::new(link, node.commands());
            node.spawn(management::serve(
                node.clone(),
                face,
                events,
                readvertising.clone(),
            ));
            management::follow_rights(node);
            if let Some(readvertising) = readvertising {
                node.set_readvertising(Arc::clone(&readvertising) as _);
                node.spawn(readvertising.run(node.clone()));
            }
        })
    }
}
