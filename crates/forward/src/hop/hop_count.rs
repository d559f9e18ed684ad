//! Hop count and source: how far Data came, and from what.

use namecast_packet::Extensions;
use namecast_packet::tlv::read_number;
use namecast_units::Instant;

use super::{Actions, Context, Hop};

/// Counts further than that are not told apart.
const MAX_HOPS: u64 = 255;
/// Sources that there are.
const KNOWN: [u64; 2] = [Extensions::FROM_PRODUCER, Extensions::FROM_CONTENT_STORE];

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
    let mut actions = Actions::default();
    let mut refused = 0;
    for (number, octets) in context.fields.extensions.iter() {
        let value = read_number(octets);
        let next = match (number, value) {
            (Extensions::HOP_COUNT, Some(count @ 0..=MAX_HOPS)) => Some((count + 1).min(MAX_HOPS)),
            (Extensions::SOURCE, Some(source)) => KNOWN.contains(&source).then_some(source),
            (Extensions::HOP_COUNT | Extensions::SOURCE, _) => None,
            _ => continue,
        };
        match next {
            Some(value) => actions = actions.set_number(number, value),
            None => refused += 1,
        }
    }
    context.tables.counters.feedback.refused += refused;
    actions
}
