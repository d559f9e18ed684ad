//! The part of NFD's management that applications need to be reached: `rib/register` and `rib/unregister`.
//!
//! A client asks by a signed Interest `/localhost/nfd/rib/register/<ControlParameters>/…`, and the answer is a
//! ControlResponse. Only local faces can ask, as the forwarder keeps `/localhost` on the host; `/localhop`, which
//! neighbours can send, is served only by configuration.

mod authentication;
pub(crate) mod control;
mod rib;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Packet};
use namecast_units::Duration;

use crate::application::ApplicationFace;
use crate::node::{Node, NodeError};
use authentication::Authenticator;
use control::{CHILD_INHERIT, ControlParameters, ControlResponse};
use rib::{Change, Rib, Route};

/// Components before a command's parameters: scope, `nfd`, module, verb.
const PREFIX_COMPONENTS: usize = 4;
/// Longest prefix a route may have, in components, as in NFD.
const MAX_PREFIX_COMPONENTS: usize = 32;
/// FreshnessPeriod of responses, as in NFD.
const RESPONSE_FRESHNESS: Duration = Duration::from_secs(1);
/// How often routes to faces that are no more are forgotten.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Prefixes that management answers under.
pub(crate) fn prefixes(allow_localhop: bool) -> impl Iterator<Item = Name> {
    let all = [
        ("/localhost/nfd/rib", true),
        ("/localhop/nfd/rib", allow_localhop),
    ];
    all.into_iter()
        .filter(|(_, served)| *served)
        .map(|(prefix, _)| prefix.parse().expect("a constant name"))
}

/// Answers commands until the node stops.
pub(crate) async fn serve(node: Node, mut face: ApplicationFace) {
    let config = &node.config().management;
    let mut manager = Manager {
        authenticator: Authenticator::new(config.time_grace, config.max_nonces),
        rib: Rib::new(config.max_routes),
        node: node.clone(),
    };
    let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let expiry = manager.rib.poll_timeout();
        let timer = async {
            match expiry {
                Some(at) => tokio::time::sleep_until(node.clock().deadline(at)).await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            frame = face.recv() => {
                let Some(frame) = frame else { return };
                if let Some(answer) = manager.handle_frame(frame).await
                    && face.send(answer).await.is_err() {
                    return;
                }
            }
            () = timer => manager.expire().await,
            _ = sweep.tick() => manager.forget_ended_faces().await,
        }
    }
}

/// A refusal: status code and text.
type Refused = (u64, String);

struct Manager {
    node: Node,
    authenticator: Authenticator,
    rib: Rib,
}

impl Manager {
    /// The answer to a frame, if it is a command. NFD, too, is silent towards what is none.
    async fn handle_frame(&mut self, frame: Bytes) -> Option<Bytes> {
        let packet = LpPacket::decode(frame).ok()?;
        let from = FaceId::from_number(packet.incoming_face?);
        if packet.nack.is_some() {
            return None;
        }
        let Ok(Packet::Interest(command)) = Packet::decode(packet.fragment?) else {
            return None;
        };
        let response = self.handle_command(&command, from).await?;
        let data = Data::builder(command.name().clone())
            .freshness(RESPONSE_FRESHNESS)
            .content(response.encode())
            .sign(&DigestSigner);
        let answer = LpPacket {
            pit_token: packet.pit_token,
            ..LpPacket::carrying(data.wire().clone())
        };
        Some(answer.encode())
    }

    async fn handle_command(
        &mut self,
        command: &Interest,
        from: FaceId,
    ) -> Option<ControlResponse> {
        let name = command.name();
        let verb = name.get(PREFIX_COMPONENTS - 1)?;
        let parameters = name.get(PREFIX_COMPONENTS)?;
        let parameters =
            ControlParameters::decode(&Bytes::copy_from_slice(parameters.value)).ok()?;
        let now = self.node.clock().wall();
        let result = match self.authenticator.check(now, command, PREFIX_COMPONENTS) {
            Ok(()) => self.execute(name, verb, &parameters, from).await,
            Err(refusal) => Err((403, refusal.to_string())),
        };
        tracing::debug!(command = %name.prefix(PREFIX_COMPONENTS), %from, ?result, "management");
        Some(match result {
            Ok(parameters) => ControlResponse {
                code: 200,
                text: "OK".to_owned(),
                parameters,
            },
            Err((code, text)) => ControlResponse {
                code,
                text,
                parameters,
            },
        })
    }

    async fn execute(
        &mut self,
        name: &Name,
        verb: Component<'_>,
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        let is_localhop = name.get(0) == Some(Component::generic("localhop"));
        let face = match parameters.face {
            None | Some(0) => from,
            Some(other) if is_localhop && other != from.number() => {
                return Err((403, "a neighbour may only speak for itself".to_owned()));
            }
            Some(other) => FaceId::from_number(other),
        };
        let prefix = parameters
            .name
            .clone()
            .ok_or((400, "Name is missing".to_owned()))?;
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let text = format!("a prefix has at most {MAX_PREFIX_COMPONENTS} components");
            return Err((414, text));
        }
        match verb.value {
            b"register" => self.register(prefix, face, parameters).await,
            b"unregister" => self.unregister(prefix, face, parameters).await,
            _ => Err((501, "only register and unregister are supported".to_owned())),
        }
    }

    async fn register(
        &mut self,
        prefix: Name,
        face: FaceId,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        // Flags are told back, but not acted upon: a route serves names under its prefix that have no longer one.
        let done = ControlParameters {
            name: Some(prefix.clone()),
            face: Some(face.number()),
            origin: Some(parameters.origin.unwrap_or(0)),
            cost: Some(parameters.cost.unwrap_or(0)),
            flags: Some(parameters.flags.unwrap_or(CHILD_INHERIT)),
            expiration: parameters.expiration,
        };
        let now = self.node.clock().now();
        let route = Route {
            cost: parameters.cost.unwrap_or(0),
            expires: parameters.expiration.map(|period| now + period),
        };
        let origin = parameters.origin.unwrap_or(0);
        let change = self
            .rib
            .register(prefix.clone(), face, origin, route)
            .map_err(|_| (500, "the node takes no more routes".to_owned()))?;
        if let Err(error) = self.apply(change).await {
            self.rib.unregister(prefix, face, origin);
            let code = match error {
                NodeError::NoSuchFace(_) => 410,
                _ => 500,
            };
            return Err((code, error.to_string()));
        }
        Ok(done)
    }

    async fn unregister(
        &mut self,
        prefix: Name,
        face: FaceId,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        let origin = parameters.origin.unwrap_or(0);
        let done = ControlParameters {
            name: Some(prefix.clone()),
            face: Some(face.number()),
            origin: Some(origin),
            ..ControlParameters::default()
        };
        let change = self.rib.unregister(prefix, face, origin);
        self.apply(change)
            .await
            .map_err(|error| (500, error.to_string()))?;
        Ok(done)
    }

    async fn apply(&self, change: Change) -> Result<(), NodeError> {
        match change.cost {
            Some(cost) => self.node.add_route(change.prefix, change.face, cost).await,
            None => self.node.remove_route(change.prefix, change.face).await,
        }
    }

    async fn expire(&mut self) {
        for change in self.rib.handle_timeout(self.node.clock().now()) {
            // If the face is gone, so is the route.
            let _ = self.apply(change).await;
        }
    }

    async fn forget_ended_faces(&mut self) {
        if !self.rib.is_empty()
            && let Ok(living) = self.node.face_ids().await
        {
            self.rib.retain_faces(|face| living.contains(&face));
        }
    }
}
