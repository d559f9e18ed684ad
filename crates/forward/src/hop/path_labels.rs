//! Path labels: consumers learn the paths that their Data take, and choose among them. After \[RFC9531\].
//!
//! ```text
//!            ◀── Data: B,D ──  ◀── Data: D ──   ◀── Data: – ──
//!  consumer                  A                B               producer's node
//!            Interest: B,D ──▶  Interest: D ──▶  Interest: – ──▶
//! ```
//!
//! A node puts its label of the face in front that Data came from, and takes the first label of an Interest off, which chooses one
//! of the next hops that the name has anyway. Labels lead to neighbours only, and mean nothing to anybody else.

use std::collections::BTreeMap;

use namecast_packet::{Extensions, PathLabel};
use namecast_units::Instant;
use smart_default::SmartDefault;

use super::{Actions, Context, Decision, Faces, Hop, one_at_a_time};
use crate::config::InterestRate;
use crate::face::FaceId;

/// Bounds of [`PathLabels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct PathLabelsConfig {
    /// How many Interests that ask for a path a neighbour or application may have sent past the content store; others are
    /// answered from there, and find a path that ends here.
    #[default(InterestRate { per_second: 20, burst: 40 })]
    pub discoveries: InterestRate,
    /// Pairs of a prefix and a face for which it is remembered which next hop was discovered last; beyond, all are forgotten.
    #[default(1_024)]
    pub max_turns: usize,
}

/// The hop that reads and writes path labels.
#[derive(Debug, Default)]
pub struct PathLabels {
    config: PathLabelsConfig,
    /// How many paths were asked for, by prefix and who asked.
    turns: BTreeMap<(u64, FaceId), usize>,
}

/// When a face may have a full burst of Interests sent past the content store again.
#[derive(Clone, Copy, Debug, Default)]
struct Discoveries {
    full_at: Instant,
}

impl PathLabels {
    /// Path labels with these bounds.
    pub const fn new(config: PathLabelsConfig) -> Self {
        Self {
            config,
            turns: BTreeMap::new(),
        }
    }

    /// Returns the path that an Interest asks for; `None` if it asks for none, or nobody can read it.
    fn asked(context: &mut Context<'_>) -> Option<PathLabel> {
        let octets = context.fields.extensions.get(Extensions::PATH_LABEL)?;
        let path = PathLabel::decode(octets);
        context.tables.counters.feedback.labels_refused += u64::from(path.is_none());
        path
    }

    /// Returns the next hop of an Interest whose turn it is to be discovered.
    fn next_turn(&mut self, context: &Context<'_>, hops: &[FaceId]) -> Option<FaceId> {
        let depth = context.tables.fib.depth(context.name, context.hashes);
        let flow = (context.hashes.hash(depth), context.face);
        if self.turns.len() >= self.config.max_turns && !self.turns.contains_key(&flow) {
            self.turns.clear();
        }
        let turn = self.turns.entry(flow).or_default();
        let place = turn.checked_rem(hops.len())?;
        *turn = turn.wrapping_add(1);
        hops.get(place).copied()
    }
}

impl Hop for PathLabels {
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let Some(path) = Self::asked(context) else {
            return Actions::default();
        };
        let hops = neighbours(context, context.eligible());
        let chosen = match path.first() {
            Some(label) => {
                let chosen = hops
                    .iter()
                    .copied()
                    .find(|&face| context.label_of(face) == label);
                let feedback = &mut context.tables.counters.feedback;
                feedback.labels_refused += u64::from(chosen.is_none());
                chosen
            }
            None if path.is_discovery() => {
                context.tables.counters.feedback.discoveries += 1;
                self.next_turn(context, &hops)
            }
            None => None,
        };
        // What the strategy chooses, Data tell as well.
        let Some(face) = chosen else {
            let rest = if path.is_discovery() {
                PathLabel::DISCOVERY
            } else {
                PathLabel::EMPTY
            };
            return Actions::default().set_field(Extensions::PATH_LABEL, rest.as_octets());
        };
        let decision = send_to(face, now, context);
        let feedback = &mut context.tables.counters.feedback;
        match decision {
            Decision::Suppress => feedback.labels_aggregated += 1,
            _ => feedback.labels_followed += u64::from(path.first().is_some()),
        }
        Actions::from(decision).set_field(Extensions::PATH_LABEL, path.after_first().as_octets())
    }

    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let records = context
            .entries
            .iter()
            .flat_map(|&id| &context.tables.pit.get(id).in_records);
        let is_asked = records
            .map(|record| &record.fields)
            .any(|kept| kept.asks_for_path());
        if !is_asked {
            return Actions::default();
        }
        let path = match context.tables.is_local(context.face) {
            true => Some(PathLabel::EMPTY),
            // Of a neighbour that says nothing only this is known: the path goes there.
            false => {
                let said = Self::asked(context).unwrap_or(PathLabel::EMPTY);
                said.found().behind(context.label_of(context.face))
            }
        };
        match path {
            Some(path) => Actions::default().set_field(Extensions::PATH_LABEL, path.as_octets()),
            None => {
                context.tables.counters.feedback.labels_refused += 1;
                Actions::default()
            }
        }
    }

    /// The path that such Data would come by is what the consumer asked about, and it is the consumer's own word; so its Interests
    /// go on by it when the content store has no more.
    fn on_cache_hit(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let Some(path) = Self::asked(context) else {
            return Actions::default();
        };
        let hops = neighbours(context, next_hops(context).into_iter());
        let rest = match path.first() {
            Some(label) if hops.iter().any(|&face| context.label_of(face) == label) => path.found(),
            Some(_) => {
                context.tables.counters.feedback.labels_refused += 1;
                PathLabel::EMPTY
            }
            None if path.is_discovery() && !hops.is_empty() => {
                if self.may_discover(now, context) {
                    // Not what a content store has is asked for, but where it would come from.
                    return Decision::Wait.into();
                }
                context.tables.counters.feedback.discoveries_refused += 1;
                PathLabel::EMPTY
            }
            None => PathLabel::EMPTY,
        };
        Actions::default().set_field(Extensions::PATH_LABEL, rest.as_octets())
    }
}

impl PathLabels {
    fn may_discover(&self, now: Instant, context: &mut Context<'_>) -> bool {
        let discoveries = self.config.discoveries;
        let face = context.face_state::<Discoveries>(context.face);
        face.is_some_and(|face| discoveries.admit(now, &mut face.full_at))
    }
}

/// Sends an Interest to a next hop that was chosen for it. While another's equal one is on its way it waits for those Data, by
/// whichever path they come, as a link carries nothing twice; their label tells. A retransmission goes on.
fn send_to(face: FaceId, now: Instant, context: &mut Context<'_>) -> Decision {
    let is_pending = context.is_awaited(now);
    if is_pending && !context.is_retransmission {
        return Decision::Suppress;
    }
    one_at_a_time(now, context, |_, _| Some(face))
}

/// Those of some faces that lead to other hosts.
fn neighbours(context: &Context<'_>, faces: impl Iterator<Item = FaceId>) -> Faces {
    faces
        .filter(|&face| !context.tables.is_local(face))
        .collect()
}

/// The next hops that an Interest could take if the content store did not answer it.
fn next_hops(context: &Context<'_>) -> Faces {
    let hops = context
        .interest
        .map(|interest| context.tables.next_hops(interest, context.hashes));
    let faces = hops.into_iter().flatten().map(|hop| hop.face);
    faces.filter(|&face| context.is_eligible(face)).collect()
}
