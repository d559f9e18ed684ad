//! Any next packet: requests for whatever comes next of a flow, counted for each face.
//!
//! ```text
//!  requests:  C1 ── 5 pending ──▶ ┐
//!                                 ├ node: the most, 9 ──▶ upstream
//!             C2 ── 9 pending ──▶ ┘
//!  Data:      C1 ◀── a copy ── ┐
//!                              ├ each face with a request left ◀── upstream
//!             C2 ◀── a copy ── ┘
//! ```
//!
//! After \[SAID\], whose counters go up and down by one with each packet. Here they are absolute, so that a lost packet leaves no error
//! behind: `docs/wire.md`. The slow receive a part of what the fast do, at the same time, and nothing is sent twice over a link.

mod chunks;
mod flow;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{
    AnyNextRequest, ChunksHad, Component, Extensions, Interest, LpPacket, Name, Nonce, any_next,
};
use namecast_units::{Duration, Instant};
use smart_default::SmartDefault;

use self::chunks::Chunks;
use self::flow::Flow;
use super::{Actions, Context, Decision, Hop};
use crate::counters::{AnyNextCounters, DropReason};
use crate::face::FaceId;
use crate::fields::LinkFields;
use crate::table::is_localhost;

/// Time without a request after which a face has left a flow.
const IDLE: Duration = Duration::from_secs(2);
/// Pause between looks for such faces.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// Octets of the longest name of a flow.
const MAX_NAME: usize = 1_024;
/// How long a request upstream counts there as an Interest, which no node keeps.
const LIFETIME: Duration = Duration::from_secs(2);

/// Bounds of [`AnyNext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct AnyNextConfig {
    /// Most flows of one face; each takes some 200 octets and its name.
    #[default(1_024)]
    pub max_flows_of_face: usize,
    /// Most pairs of a flow and a face.
    #[default(65_536)]
    pub max_counters: usize,
}

/// The hop that counts requests for any next packets, after \[SAID\].
///
/// Install it after others that set fields of Data: it decides about the Data of its flows.
#[derive(Debug, Default)]
pub struct AnyNext {
    config: AnyNextConfig,
    /// By the TLV-VALUE of their names.
    flows: BTreeMap<Bytes, Flow>,
    /// Flows that each face has requests for.
    of_face: BTreeMap<FaceId, usize>,
    /// Sum of the latter.
    counters: usize,
    sweep_at: Option<Instant>,
    chunks: Chunks,
}

/// Why a request goes no further.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Malformed,
    Unoffered,
    Flows,
    Route,
    Foreign,
}

impl AnyNext {
    /// Returns the hop with these bounds.
    pub fn new(config: AnyNextConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Returns how many flows there are, and how many pairs of a flow and a face.
    pub fn size(&self) -> (usize, usize) {
        (self.flows.len(), self.counters)
    }

    fn on_request(&mut self, now: Instant, context: &mut Context<'_>, value: &[u8]) -> Actions {
        match self.take_request(now, context, value) {
            Ok(actions) => actions,
            Err(refusal) => refuse(context, refusal),
        }
    }

    fn take_request(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        value: &[u8],
    ) -> Result<Actions, Refusal> {
        let request = AnyNextRequest::decode(value).filter(|_| is_plain(context));
        let request = request.ok_or(Refusal::Malformed)?;
        if context.keeps_counters(context.face) != Some(true) {
            return Err(Refusal::Unoffered);
        }
        let upstream = context.eligible_hops().next().ok_or(Refusal::Route)?.face;
        match context.keeps_counters(upstream) {
            Some(true) => {}
            Some(false) => return Err(Refusal::Foreign),
            // The downstream requests again before long.
            None => return Ok(Actions::from(Decision::Wait).ask(upstream)),
        }
        let flow = self.enter(context.name, (context.face, upstream))?;
        if flow.upstream != upstream {
            flow.move_to(upstream);
        }
        let token = context.fields.pit_token.as_ref();
        flow.on_request(now, (context.face, token), &request);
        let up = flow.request(now, request.refresh);
        self.sweep_at.get_or_insert(now + SWEEP_PAUSE);
        count(context).requests += 1;
        let actions = Actions::from(Decision::Wait);
        Ok(match up {
            Some(up) => send_up(actions, context, (context.name.clone(), upstream), up),
            None => actions,
        })
    }

    /// Returns the flow of a name, in which `face` has a place; both are made where they were not.
    fn enter(
        &mut self,
        name: &Name,
        (face, upstream): (FaceId, FaceId),
    ) -> Result<&mut Flow, Refusal> {
        let value = name.value();
        let known = self.flows.get(&value[..]);
        let has_place = known.is_some_and(|flow| flow.counters.iter().any(|it| it.face == face));
        if !has_place {
            let of_face = self.of_face.entry(face).or_default();
            let is_full = *of_face >= self.config.max_flows_of_face
                || self.counters >= self.config.max_counters;
            if is_full {
                return Err(Refusal::Flows);
            }
            *of_face += 1;
            self.counters += 1;
        }
        let key = match known {
            Some(_) => value.clone(),
            None => Bytes::copy_from_slice(value),
        };
        let flow = match self.flows.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Flow::new(upstream)),
        };
        Ok(flow)
    }

    /// Takes Data of a flow that answer requests.
    fn on_flow_data(&mut self, now: Instant, context: &mut Context<'_>, number: u32) -> Actions {
        let flow_name = flow_of(context.name);
        let flow = self.flows.get_mut(flow_name);
        let Some(flow) = flow.filter(|flow| flow.upstream == context.face) else {
            return Actions::default();
        };
        let spare = context
            .fields
            .extensions
            .number(Extensions::MIN_PENDING_REQUESTS);
        let spare = spare.map_or(u16::MAX, |spare| spare.try_into().unwrap_or(u16::MAX));
        let is_new = flow.on_data(now, number);
        let mut actions = Actions::from(Decision::Forward(super::Faces::new()));
        let mut copies = 0;
        for copy in flow.copies(spare) {
            let mut fields = LinkFields {
                pit_token: copy.token,
                ..LinkFields::default()
            };
            let number = copy.number.to_be_bytes();
            fields.extensions.set(Extensions::ANY_NEXT, number);
            fields
                .extensions
                .set_number(Extensions::MIN_PENDING_REQUESTS, copy.spare.into());
            actions = actions.copy_to(copy.face, fields);
            copies += 1;
        }
        let up = flow.request(now, false);
        let counters = count(context);
        counters.data += 1;
        counters.copies += copies;
        counters.late += u64::from(!is_new);
        match up {
            Some(up) => {
                let name = context.name.parent();
                send_up(actions, context, (name, context.face), up)
            }
            None => actions,
        }
    }

    /// Takes an Interest that came back from where requests of its flow were sent: all who have some hear that it is not to be had so.
    fn on_refusal(&mut self, context: &mut Context<'_>) -> Actions {
        let value = &context.name.value()[..];
        let flow = self.flows.get(value);
        if flow.is_none_or(|flow| flow.upstream != context.face) {
            return Actions::default();
        }
        let Some(flow) = self.flows.remove(value) else {
            return Actions::default();
        };
        let reason = context.nack.unwrap_or(NackReason::NoRoute);
        let mut actions = Actions::from(Decision::Wait);
        for counter in flow.counters {
            self.leave(counter.face);
            let nonce = Nonce::draw(context.random);
            let wire = request_packet(context.name.clone(), nonce);
            let fields = not_here(counter.token);
            actions = actions.refuse(counter.face, (wire, reason), fields);
        }
        actions
    }

    /// Takes the chunks of a flow that a neighbour has.
    fn on_announcement(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        had: &ChunksHad,
    ) -> Actions {
        let is_offered = context.keeps_counters(context.face) == Some(true);
        let is_new = is_offered && self.chunks.on_announcement(now, context.face, had);
        self.sweep_at.get_or_insert(now + SWEEP_PAUSE);
        let counters = count(context);
        match is_new {
            true => counters.announcements += 1,
            false => counters.refused_announcements += 1,
        }
        Decision::Wait.into()
    }

    /// Tells neighbours which chunks others have. Those that have not said whether they count requests are asked.
    fn pass_on(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let mut actions = Actions::default();
        for flow in self.chunks.due(now) {
            let of_flow = self.flows.get(&flow);
            let has_counter =
                |face| of_flow.is_some_and(|it| it.counters.iter().any(|it| it.face == face));
            let mut is_unknown = false;
            for (face, state) in context.tables.faces.iter() {
                let is_part = has_counter(face) || self.chunks.has_announced(&flow, face);
                let keeps_counters = state.keeps_counters();
                if keeps_counters.is_none() {
                    is_unknown = true;
                    actions = actions.ask(face);
                }
                if keeps_counters != Some(true) || state.is_application() && !is_part {
                    continue;
                }
                if let Some(had) = self.chunks.union(now, &flow, (face, state.is_local())) {
                    let mut packet = LpPacket::default();
                    packet.extensions.set(Extensions::CHUNKS_HAD, had.encode());
                    actions = actions.frame(face, packet.encode());
                }
            }
            if is_unknown {
                self.chunks.pass_again(now, &flow);
            }
        }
        actions
    }

    /// Returns the neighbour that gets an Interest for one number of a flow first: it has announced the chunk. An Interest that must be
    /// fresh goes to the provider: no neighbour made the Data.
    fn holder(&self, now: Instant, context: &Context<'_>) -> Option<FaceId> {
        let number = number_of(context.name)?;
        let must_be_fresh = context.interest.is_some_and(Interest::must_be_fresh);
        if must_be_fresh || !context.entry().out_records.is_empty() {
            return None;
        }
        let flow = flow_of(context.name);
        self.chunks.holder(now, (flow, number), |face| {
            let is_other = face != context.face && Some(face) != context.fields.avoid_face;
            is_other && context.is_eligible(face)
        })
    }

    /// Records which faces have answered Interests for numbers.
    fn record_outcomes(&mut self, now: Instant, context: &Context<'_>) {
        if self.chunks.is_empty() || number_of(context.name).is_none() {
            return;
        }
        let flow = flow_of(context.name);
        for entry in context.entries {
            for record in &context.tables.pit.get(*entry).out_records {
                let face = record.face;
                // What was refused was recorded then.
                if record.nack.is_none() && self.chunks.has_announced(flow, face) {
                    let was_answered = context.data.is_some() && face == context.face;
                    self.chunks.on_outcome(now, face, was_answered);
                }
            }
        }
    }

    /// Returns whether a neighbour gets Interests as it has announced a chunk of their flow.
    fn is_holder(&self, name: &Name, face: FaceId) -> bool {
        !self.chunks.is_empty()
            && number_of(name).is_some()
            && self.chunks.has_announced(flow_of(name), face)
    }

    /// Records that a face has one flow less.
    fn leave(&mut self, face: FaceId) {
        self.counters = self.counters.saturating_sub(1);
        if let Some(flows) = self.of_face.get_mut(&face) {
            *flows -= 1;
            if *flows == 0 {
                self.of_face.remove(&face);
            }
        }
    }

    /// Takes those faces out of flows of which `is_gone` holds, and flows that nobody requests any more.
    fn remove(&mut self, is_gone: impl Fn(&flow::Counter) -> bool) {
        let mut left = Vec::new();
        self.flows.retain(|_, flow| {
            let gone = flow.counters.iter().filter(|it| is_gone(it));
            left.extend(gone.map(|it| it.face));
            flow.counters.retain(|it| !is_gone(it));
            !flow.counters.is_empty()
        });
        left.into_iter().for_each(|face| self.leave(face));
    }
}

impl Hop for AnyNext {
    fn on_arrival(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if let Some(had) = context.chunks_had {
            return self.on_announcement(now, context, had);
        }
        if context.nack.is_some() {
            return self.on_refusal(context);
        }
        match context.fields.extensions.get(Extensions::ANY_NEXT) {
            Some(value) => self.on_request(now, context, value),
            None => Actions::default(),
        }
    }

    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if self.chunks.is_empty() {
            return Actions::default();
        }
        match self.holder(now, context) {
            Some(face) => {
                count(context).to_holders += 1;
                Actions::forward_to([face])
            }
            None => Actions::default(),
        }
    }

    fn on_expiry(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        self.record_outcomes(now, context);
        Actions::default()
    }

    fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        self.record_outcomes(now, context);
        let value = context.fields.extensions.get(Extensions::ANY_NEXT);
        match value.and_then(any_next::decode_number) {
            Some(number) => self.on_flow_data(now, context, number),
            // A forgery must not stay fresh for as long as it says.
            None if self.is_holder(context.name, context.face) => Actions::default().stale(),
            // Other repairs, which use up no requests either.
            None => Actions::default(),
        }
    }

    /// Sends an Interest that a neighbour refused along the route, unless it went there already.
    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if !self.is_holder(context.name, context.face) {
            return Actions::default();
        }
        self.chunks.on_outcome(now, context.face, false);
        let entry = context.entry();
        let hops = context.tables.fib.next_hops(context.name, context.hashes);
        let next = hops.iter().map(|hop| hop.face).find(|face| {
            let is_unused = entry.out_record(*face).is_none() && entry.in_record(*face).is_none();
            is_unused && context.is_eligible(*face)
        });
        next.map_or_else(Actions::default, |face| Actions::forward_to([face]))
    }

    fn on_face_removed(&mut self, face: FaceId) {
        self.chunks.remove_face(face);
        self.remove(|counter| counter.face == face);
        let lost = self.flows.values_mut().filter(|it| it.upstream == face);
        lost.for_each(|flow| flow.move_to(FaceId::NONE));
    }

    fn on_timeout(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if self.sweep_at.is_some_and(|at| at <= now) {
            self.remove(|counter| now.since(counter.heard_at) >= IDLE);
            self.chunks.expire(now);
            let is_used = self.counters > 0 || !self.chunks.is_empty();
            self.sweep_at = is_used.then(|| now + SWEEP_PAUSE);
        }
        self.pass_on(now, context)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let pass_at = self.chunks.pass_at();
        self.sweep_at.into_iter().chain(pass_at).min()
    }

    fn sees_arrivals(&self) -> bool {
        true
    }

    fn counts_requests(&self) -> bool {
        true
    }
}

/// Whether a request for any next packets has nothing that such a request cannot have.
fn is_plain(context: &Context<'_>) -> bool {
    let Some(interest) = context.interest else {
        return false;
    };
    let has_more = interest.can_be_prefix()
        || interest.must_be_fresh()
        || !interest.forwarding_hint().is_empty()
        || interest.parameters().is_some();
    let length = context.name.value().len();
    !has_more && !is_localhost(context.name) && (1..=MAX_NAME).contains(&length)
}

/// Counts why a request goes no further, and sends it back.
fn refuse(context: &mut Context<'_>, refusal: Refusal) -> Actions {
    let counters = count(context);
    let counter = match refusal {
        Refusal::Malformed => &mut counters.refused_malformed,
        Refusal::Unoffered => &mut counters.refused_unoffered,
        Refusal::Flows => &mut counters.refused_flows,
        Refusal::Route => &mut counters.refused_route,
        Refusal::Foreign => &mut counters.refused_foreign,
    };
    *counter += 1;
    let actions = Actions::drop(DropReason::AnyNext);
    let has_nacks =
        (context.tables.faces.get(context.face)).is_some_and(|it| it.is_point_to_point());
    match context.interest {
        Some(interest) if has_nacks => {
            let fields = not_here(context.fields.pit_token.clone());
            let back = (interest.wire().clone(), NackReason::NoRoute);
            actions.refuse(context.face, back, fields)
        }
        _ => actions,
    }
}

/// The fields of an Interest that comes back, as the flow cannot be had so here.
fn not_here(token: Option<Bytes>) -> LinkFields {
    let mut fields = LinkFields {
        pit_token: token,
        ..LinkFields::default()
    };
    let value = AnyNextRequest::NOT_HERE_FIELD;
    fields.extensions.set(Extensions::ANY_NEXT, value);
    fields
}

/// Adds a request that goes upstream.
fn send_up(
    actions: Actions,
    context: &mut Context<'_>,
    (flow, upstream): (Name, FaceId),
    request: AnyNextRequest,
) -> Actions {
    count(context).sent += 1;
    let nonce = Nonce::draw(context.random);
    let mut fields = LinkFields {
        pit_token: context.token(),
        ..LinkFields::default()
    };
    fields
        .extensions
        .set(Extensions::ANY_NEXT, request.encode());
    actions.originate(upstream, request_packet(flow, nonce), fields)
}

fn request_packet(flow: Name, nonce: Nonce) -> Bytes {
    let interest = Interest::builder(flow).lifetime(LIFETIME).build(nonce);
    interest.wire().clone()
}

/// The name of the flow of Data: all but the last component, as it stands in theirs.
fn flow_of(data: &Name) -> &[u8] {
    let value = &data.value()[..];
    let last = data.elements().last().map_or(0, <[u8]>::len);
    &value[..value.len() - last]
}

/// The number of Data, if their name ends in one.
fn number_of(data: &Name) -> Option<u64> {
    let last = data.last()?;
    let sequence = last.number_of(Component::SEQUENCE);
    sequence.or_else(|| last.number_of(Component::SEGMENT))
}

const fn count<'a>(context: &'a mut Context<'_>) -> &'a mut AnyNextCounters {
    &mut context.tables.counters.any_next
}

#[cfg(test)]
mod tests;
