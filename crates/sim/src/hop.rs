//! Hops of one's own: rules about packets that every node asks.

use core::fmt;

use namecast_forward::Hop;

/// A hop that a program adds to the nodes of a network, and to those that scenarios may name.
#[derive(Clone, Copy)]
pub struct CustomHop {
    /// What scenarios call it.
    pub name: &'static str,
    /// Makes one for a node.
    pub build: fn() -> Box<dyn Hop>,
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
