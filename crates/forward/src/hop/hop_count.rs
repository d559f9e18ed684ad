//! Hop count and source: how far Data came, and from what.

use namecast_packet::Extensions;
use namecast_units::Instant;

use super::{Actions, Context, Hop};

/// Counts further than that are not told apart.
const MAX_HOPS: u64 = 255;

/// The hop that counts the nodes that Data pass, from the one that answered, and says whether that was a content store.
///
/// What comes from a neighbour that says neither goes on without them.
#[derive(Clone, Copy, Debug, Default)]
pub struct HopCount;

impl Hop for HopCount {
    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let is_local = context.tables.is_local(context.face);
        let answerer = if is_local {
            Answerer::Producer
        } else {
            Answerer::Neighbour
        };
        count_hops(context, answerer)
    }

    fn on_cache_hit(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        count_hops(context, Answerer::ContentStore)
    }
}

/// Where a node has Data from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answerer {
    /// An application on this host: whatever it says itself, it is the producer.
    Producer,
    ContentStore,
    /// Somebody else answered.
    Neighbour,
}

/// Sets hop count and source. Values that make no sense go no further.
pub(super) fn count_hops(context: &mut Context<'_>, answerer: Answerer) -> Actions {
    let source = match answerer {
        Answerer::Producer => Extensions::FROM_PRODUCER,
        Answerer::ContentStore => Extensions::FROM_CONTENT_STORE,
        Answerer::Neighbour => return count_on(context),
    };
    Actions::default()
        .set_number(Extensions::HOP_COUNT, 0)
        .set_number(Extensions::SOURCE, source)
}

fn count_on(context: &mut Context<'_>) -> Actions {
    let extensions = &context.fields.extensions;
    let mut actions = Actions::default();
    if extensions.is_empty() {
        return actions;
    }
    let count = extensions.number(Extensions::HOP_COUNT);
    let count = count.filter(|&count| count <= MAX_HOPS);
    let known = [Extensions::FROM_PRODUCER, Extensions::FROM_CONTENT_STORE];
    let source = extensions.number(Extensions::SOURCE);
    let source = source.filter(|source| known.contains(source));
    let is_refused =
        |number, value: Option<u64>| value.is_none() && extensions.get(number).is_some();
    let refused = u64::from(is_refused(Extensions::HOP_COUNT, count))
        + u64::from(is_refused(Extensions::SOURCE, source));
    if let Some(count) = count {
        actions = actions.set_number(Extensions::HOP_COUNT, (count + 1).min(MAX_HOPS));
    }
    if let Some(source) = source {
        actions = actions.set_number(Extensions::SOURCE, source);
    }
    context.tables.counters.feedback.refused += refused;
    actions
}
