//! NFD's management protocol: commands, and datasets that tell the node's state.
//!
//! ```text
//!  /localhost/nfd/<module>/<verb>/<ControlParameters>   signed ──▶ authentication ─▶ module ─▶ ControlResponse
//!  /localhost/nfd/<module>/<dataset>            CanBePrefix ──▶ module ─▶ dataset: versioned segments
//!  /localhost/nfd/faces/events/<number>                     ──▶ events ─▶ notification, once there is one
//! ```
//!
//! Only local faces can ask, as the forwarder keeps `/localhost` on the host. Of `/localhop`, which neighbours can send,
//! only the commands of `rib` are served, and those only by configuration. One file per module of NFD; this one
//! dispatches.

mod announce;
mod authentication;
mod client;
mod content_store;
mod dataset;
mod events;
mod face_commands;
mod faces;
mod fib;
mod readvertise;
mod rib;
mod rights;
mod status;
mod strategy_choice;
mod tickets;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{
    Component, ContentType, Data, Interest, LpPacket, MAX_PACKET_SIZE, Name, Packet,
};
use namecast_units::Duration;
use tokio::sync::watch;

pub use authentication::Authenticator;
pub(crate) use client::addressee;
pub use client::{Client, ClientError};
pub use content_store::{ADMIT, CsInfo, SERVE};
pub use events::FaceEventNotification;
pub use faces::{
    CONGESTION_MARKING, ChannelStatus, FaceQueryFilter, FaceStatus, LOCAL_FIELDS, LP_RELIABILITY,
};
pub use fib::{FibEntry, NextHopRecord};
pub(crate) use readvertise::Readvertising;
pub use rib::{RibEntry, RibRoute};
pub(crate) use rights::follow as follow_rights;
pub use status::GeneralStatus;

pub use crate::freshness::Refusal;
pub use crate::node::{ReadvertisingStatus, StrategyChoice, StrategyCounts};

pub use namecast_apps::management::{
    CAPTURE, CHILD_INHERIT, ControlParameters, ControlResponse, Item, PRECEDE, SegmentReader,
    decode_items,
};

use crate::FaceUri;
use crate::application::ApplicationFace;
use crate::node::{Node, NodeError};
use dataset::Publisher;
use events::Subscription;
use rib::Rib;

/// Components before a command's parameters: scope, `nfd`, module, verb.
const PREFIX_COMPONENTS: usize = 4;
/// Longest prefix a route may have, in components, as in NFD.
pub const MAX_PREFIX_COMPONENTS: usize = 32;
/// Answer to neighbours' commands where tickets and rights alone are accepted.
const CLOSED: &str = "neighbours may not register names here: its operator has to set localhop = true in [management], to name the \
    root of your room in [[trust]], or to give a link to go live";
/// FreshnessPeriod of responses, as in NFD.
const RESPONSE_FRESHNESS: Duration = Duration::from_secs(1);

/// Prefixes that management answers under.
pub(crate) fn prefixes(allow_localhop: bool) -> impl Iterator<Item = Name> {
    let all = [
        ("/localhost/nfd", true),
        ("/localhop/nfd/rib", allow_localhop),
    ];
    all.into_iter()
        .filter(|(_, served)| *served)
        .map(|(prefix, _)| prefix.parse().expect("a constant name"))
}

/// Answers commands until the node stops.
pub(crate) async fn serve(
    node: Node,
    mut face: ApplicationFace,
    events: watch::Receiver<u64>,
    readvertising: Option<Arc<Readvertising>>,
) {
    let config = &node.config().management;
    let mut manager = Manager {
        authenticator: Authenticator::new(config, node.clock().wall()),
        rib: Rib::new(config.max_routes, config.max_inherited),
        publisher: Publisher::default(),
        events: Subscription::new(events),
        node: node.clone(),
        own_face: face.id(),
        readvertising,
    };
    loop {
        let timer = node.clock().sleep_until(manager.rib.poll_timeout());
        tokio::select! {
            frame = face.recv() => {
                let Some(frame) = frame else { return };
                if let Some(answer) = manager.handle_frame(frame).await
                    && face.send(answer).await.is_err() {
                    return;
                }
            }
            () = manager.events.changed() => {
                manager.forget_ended_faces().await;
                for notification in manager.take_notifications().await {
                    if face.send(notification).await.is_err() {
                        return;
                    }
                }
            }
            () = timer => manager.expire().await,
        }
        manager.readvertise();
    }
}

/// Why a command or a question was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    code: u64,
    text: String,
    /// What to tell back instead of what was asked for.
    instead: Option<Box<ControlParameters>>,
}

impl Refused {
    fn new(code: u64, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            instead: None,
        }
    }

    /// The node could not.
    fn internal(error: NodeError) -> Self {
        Self::new(500, error.to_string())
    }

    /// A field that the command needs is missing, or makes no sense.
    fn invalid() -> Self {
        Self::new(400, "failed in validating parameters")
    }
}

struct Manager {
    node: Node,
    /// By which it is asked.
    own_face: FaceId,
    authenticator: Authenticator,
    rib: Rib,
    publisher: Publisher,
    events: Subscription,
    /// What a routing daemon is told, if it is.
    readvertising: Option<Arc<Readvertising>>,
}

impl Manager {
    /// The answer to a frame, if it is a command or requests a dataset. NFD, too, is silent towards what is neither.
    async fn handle_frame(&mut self, frame: Bytes) -> Option<Bytes> {
        let packet = LpPacket::decode(frame).ok()?;
        let from = FaceId::from_number(packet.incoming_face?);
        if packet.nack.is_some() {
            return None;
        }
        let Ok(Packet::Interest(interest)) = Packet::decode(packet.fragment?) else {
            return None;
        };
        let data = if events::is_about(interest.name()) {
            self.handle_event_question(&interest).await?
        } else {
            match self.handle_question(&interest).await {
                Some(data) => data,
                None => self.handle_command(&interest, from).await?,
            }
        };
        let answer = LpPacket {
            pit_token: packet.pit_token,
            // The content store would answer the next question with a state that is past.
            no_cache: true,
            ..LpPacket::carrying(data.wire().clone())
        };
        Some(answer.encode())
    }

    /// The first segment of a dataset, or one that was asked for by its name.
    async fn handle_question(&mut self, question: &Interest) -> Option<Data> {
        let name = question.name();
        if let Some(segment) = self.publisher.segment(name) {
            return Some(segment);
        }
        if !question.can_be_prefix() || name.get(0) != Some(Component::generic("localhost")) {
            return None;
        }
        match self.items(name).await? {
            Ok(items) => self
                .publisher
                .publish(self.node.clock().wall(), name, items),
            Err(refused) => {
                let response = refused.with(ControlParameters::default());
                Some(respond(name, ContentType::Nack, &response))
            }
        }
    }

    /// The entries of the dataset of this name; nothing if there is none.
    async fn items(&self, name: &Name) -> Option<Result<Vec<Bytes>, Refused>> {
        let module = name.get(PREFIX_COMPONENTS - 2)?.value;
        let dataset = name.get(PREFIX_COMPONENTS - 1)?.value;
        let filter = name.get(PREFIX_COMPONENTS);
        // Some clients sign their questions, which adds a component.
        let is_plain =
            filter.is_none_or(|component| component.kind == Component::PARAMETERS_DIGEST);
        let node = &self.node;
        let items = match (module, dataset) {
            (b"faces", b"query") => {
                let filter = Bytes::copy_from_slice(filter?.value);
                let Ok(filter) = FaceQueryFilter::decode(&filter) else {
                    return Some(Err(Refused::new(400, "Malformed filter")));
                };
                encode(faces::list(node, &filter).await?)
            }
            _ if !is_plain => return None,
            (b"faces", b"list") => encode(faces::list(node, &FaceQueryFilter::default()).await?),
            (b"faces", b"channels") => encode(faces::channels(node).await?),
            (b"fib", b"list") => encode(fib::entries(node.routes().await.ok()?)),
            (b"rib", b"list") => encode(self.rib_entries()?),
            (b"strategy-choice", b"list") => encode(node.strategies().ok()?),
            (b"cs", b"info") => encode([CsInfo::from(node.content_store().ok()?)]),
            (b"status", b"general") => {
                let status = node.status().await.ok()?;
                vec![GeneralStatus::new(node.clock().wall(), &status).encode()]
            }
            _ => return None,
        };
        Some(Ok(items))
    }

    async fn handle_command(&mut self, command: &Interest, from: FaceId) -> Option<Data> {
        let name = command.name();
        let announcement = announce::announced_by(command);
        let parameters = match &announcement {
            Some(announcement) => announce::parameters(announcement),
            None => {
                let parameters = Bytes::copy_from_slice(name.get(PREFIX_COMPONENTS)?.value);
                ControlParameters::decode(&parameters).ok()?
            }
        };
        if let Some(prefix) = self.shown_for(command, &parameters) {
            let result = self.execute_by_right(command, prefix, &parameters, from);
            let result = result.await;
            return Some(answer(name, parameters, result));
        }
        let now = self.node.clock().wall();
        let ticket = self.ticket_of(command);
        let needs_key = ticket.is_none() && self.needs_key(name, from).await;
        let parameters = self.without_capture(parameters, command, from).await;
        let checked = self
            .authenticator
            .check(now, command, PREFIX_COMPONENTS, needs_key);
        if needs_key && checked.is_ok() {
            // A fresh command of a key comes from its owner, who is no flood of made-up addresses.
            self.node.plane().end_strangeness(from);
        }
        let result = match (checked, ticket, announcement) {
            (Err(refusal), _, _) => Err(Refused::new(403, refusal.to_string())),
            (Ok(()), Some(ticket), _) => self.register_by_ticket(&ticket, &parameters, from).await,
            _ if self.is_closed_to(name) => Err(Refused::new(403, CLOSED)),
            (Ok(()), None, Some(it)) => self.announce(it, from, &parameters).await,
            (Ok(()), None, None) => self.execute(name, &parameters, from).await,
        };
        tracing::debug!(command = %name.prefix(PREFIX_COMPONENTS), %from, ?result, "management");
        Some(answer(name, parameters, result))
    }

    /// Replaces the flag by which a route would hide those of shorter prefixes, unless an operator's key or an application of
    /// this process wants it: such a route precedes them, and they stay for when it does not answer. Some clients set the flag
    /// for whatever they register, so that it is no reason to refuse them.
    async fn without_capture(
        &self,
        parameters: ControlParameters,
        command: &Interest,
        from: FaceId,
    ) -> ControlParameters {
        let flags = parameters.flags.unwrap_or(0);
        let is_route = command.name().get(PREFIX_COMPONENTS - 2) == Some(Component::generic("rib"));
        if !is_route || flags & CAPTURE == 0 || self.is_internal(from).await {
            return parameters;
        }
        let now = self.node.clock().wall();
        if self.authenticator.is_of_key(now, command) {
            return parameters;
        }
        ControlParameters {
            flags: Some(flags & !CAPTURE | PRECEDE),
            ..parameters
        }
    }

    /// Whether a command is one of neighbours, who may do nothing here but show tickets.
    fn is_closed_to(&self, command: &Name) -> bool {
        let is_localhop = command.get(0) == Some(Component::generic("localhop"));
        is_localhop && !self.node.config().management.allow_localhop
    }

    /// Whether a face leads to an application of this process, which could as well command the node itself.
    async fn is_internal(&self, face: FaceId) -> bool {
        let described = self.node.describe(face).await;
        described.is_ok_and(|face| matches!(face.remote, FaceUri::Internal(_)))
    }

    /// Whether a command from this face has to be signed with one of the configured keys.
    async fn needs_key(&self, command: &Name, from: FaceId) -> bool {
        let config = &self.node.config().management;
        let is_word = |at, word| command.get(at) == Some(Component::generic(word));
        if is_word(PREFIX_COMPONENTS - 2, "faces") && is_word(PREFIX_COMPONENTS - 1, "create") {
            // Pages of a browser, and whoever else reaches a port of this machine, must not have it connect elsewhere.
            let asking = self.node.describe(from).await;
            let is_trusted = |remote| matches!(remote, FaceUri::Accepted(_) | FaceUri::Internal(_));
            if !asking.is_ok_and(|face| is_trusted(face.remote)) {
                return true;
            }
        }
        if config.keys.is_empty() {
            return false;
        }
        let is_localhop = command.get(0) == Some(Component::generic("localhop"));
        let module = command.get(PREFIX_COMPONENTS - 2);
        let is_open = |open: &String| module == Some(Component::generic(open));
        if !is_localhop && config.open_modules.iter().any(is_open) {
            return false;
        }
        !self.is_internal(from).await
    }

    async fn execute(
        &mut self,
        name: &Name,
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        let word = |index| {
            name.get(index)
                .map_or(&b""[..], |component| component.value)
        };
        let is_localhop = word(0) == b"localhop";
        match (word(PREFIX_COMPONENTS - 2), word(PREFIX_COMPONENTS - 1)) {
            (b"rib", verb) => self.execute_rib(verb, parameters, from, is_localhop).await,
            // What follows is for the host itself, whatever a neighbour may do with routes.
            _ if is_localhop => Err(Refused::new(501, "Unsupported command")),
            (b"faces", verb) => self.execute_faces(verb, parameters, from).await,
            (b"cs", verb) => self.execute_content_store(verb, parameters).await,
            (b"fib", verb) => self.execute_fib(verb, parameters, from).await,
            (b"strategy-choice", verb) => self.execute_strategy_choice(verb, parameters).await,
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }
}

impl Refused {
    fn with(self, parameters: ControlParameters) -> ControlResponse {
        ControlResponse {
            code: self.code,
            text: self.text,
            parameters: self.instead.map_or(parameters, |instead| *instead),
        }
    }
}

/// Answers the command `name` with these parameters.
fn answer(
    name: &Name,
    parameters: ControlParameters,
    result: Result<ControlParameters, Refused>,
) -> Data {
    let response = match result {
        Ok(parameters) => ControlResponse {
            code: 200,
            text: "OK".to_owned(),
            parameters,
        },
        Err(refused) => refused.with(parameters),
    };
    respond(name, ContentType::Blob, &response)
}

/// Signs an answer. The name of a command has its parameters: where both do not fit into a packet, names are left out of the
/// answer.
fn respond(name: &Name, content_type: ContentType, response: &ControlResponse) -> Data {
    let sign = |response: &ControlResponse| {
        Data::builder(name.clone())
            .content_type(content_type)
            .freshness(RESPONSE_FRESHNESS)
            .content(response.encode())
            .sign(&DigestSigner)
    };
    let data = sign(response);
    match data.wire().len() <= MAX_PACKET_SIZE {
        true => data,
        false => sign(&ControlResponse {
            parameters: ControlParameters {
                name: None,
                strategy: None,
                uri: None,
                ..response.parameters.clone()
            },
            ..response.clone()
        }),
    }
}

fn encode<T: Item>(items: impl IntoIterator<Item = T>) -> Vec<Bytes> {
    items.into_iter().map(|item| item.encode()).collect()
}

/// Serializes a value as its text.
fn serialize_text<T: core::fmt::Display, S: serde::Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
