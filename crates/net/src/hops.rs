//! Rules about packets that a program gives its node: hops, of which each forwarder has its own.

use core::fmt;
use std::sync::Arc;

use namecast_forward::{Forwarder, Hop, Shard, StrategyKind};

/// Makes a hop for one of a node's forwarders.
type Build = Arc<dyn Fn(Shard) -> Box<dyn Hop> + Send + Sync>;

/// The hops that a program adds to a node.
#[derive(Clone, Default)]
pub struct Hops {
    /// For all names, in the order in which they are asked.
    installed: Vec<Build>,
    /// Strategies, with their words in names.
    strategies: Vec<(&'static str, Build)>,
}

impl Hops {
    pub(crate) fn install(
        &mut self,
        build: impl Fn(Shard) -> Box<dyn Hop> + Send + Sync + 'static,
    ) {
        self.installed.push(Arc::new(build));
    }

    pub(crate) fn add_strategy(
        &mut self,
        word: &'static str,
        build: impl Fn(Shard) -> Box<dyn Hop> + Send + Sync + 'static,
    ) {
        self.strategies.push((word, Arc::new(build)));
    }

    /// Gives a forwarder its hops. Returns the strategies among them, which are the same for all forwarders of a node.
    pub(crate) fn add_to(&self, forwarder: &mut Forwarder, shard: Shard) -> Vec<StrategyKind> {
        for build in &self.installed {
            forwarder.install(build(shard));
        }
        let strategies = self.strategies.iter();
        strategies
            .map(|(word, build)| forwarder.add_strategy(word, build(shard)))
            .collect()
    }
}

impl fmt::Debug for Hops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.strategies.iter().map(|(word, _)| word);
        f.debug_struct("Hops")
            .field("installed", &self.installed.len())
            .field("strategies", &words.collect::<Vec<_>>())
            .finish()
    }
}
