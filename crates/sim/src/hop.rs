//! Hops: rules about packets that every node asks.

use core::fmt;
use std::sync::Arc;

use namecast_forward::{Hop, NamedHop};

/// A hop of the nodes of a network: one that a program adds, and that scenarios may name, or one of the forwarder's own.
#[derive(Clone)]
pub struct CustomHop {
    /// What scenarios call it.
    pub name: String,
    /// Makes one for a node.
    pub build: Arc<dyn Fn() -> Box<dyn Hop> + Send + Sync>,
}

impl CustomHop {
    /// A hop called `name`, of which `build` makes one for each node.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn() -> Box<dyn Hop> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            build: Arc::new(build),
        }
    }
}

impl From<NamedHop> for CustomHop {
    fn from(hop: NamedHop) -> Self {
        Self::new(format!("{hop:?}"), move || hop.build())
    }
}

impl fmt::Debug for CustomHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomHop").field(&self.name).finish()
    }
}

impl PartialEq for CustomHop {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
