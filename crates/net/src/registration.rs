//! Asking a neighbour to send Interests for a prefix here.
//!
//! One `rib/register` is not enough: the neighbour may restart, and forgets. So the command is repeated after every
//! reconnection, and from time to time.

use bytes::Bytes;
use namecast_forward::{FaceId, Scope};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Component, Interest, LpPacket, Name, Nonce, Packet, Signer};
use namecast_units::Duration;
use serde::Serialize;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use crate::application::ApplicationFace;
use crate::link::Backoff;
use crate::management::{CHILD_INHERIT, ControlParameters, ControlResponse};
use crate::node::{LinkState, NewFace, Node};
use crate::{Clock, FaceUri, key_store};

/// Route origin of a client's registration, in NFD's list.
const ORIGIN_CLIENT: u64 = 65;
/// How often a datagram route is repeated during its lifetime: two repetitions may be lost.
const REPETITIONS: u32 = 3;

/// How a registration stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistrationState {
    /// The neighbour has not been asked yet.
    Pending,
    /// The neighbour sends Interests here.
    Registered,
    /// The neighbour does not answer; it is asked again.
    Unanswered,
    /// The neighbour refused, for the reason it gave; it is asked again.
    Refused(String),
    /// The face is gone, or the registration was taken back.
    Ended,
}

/// A prefix that a neighbour is asked to send Interests for. Dropping this changes nothing.
#[derive(Clone, Debug)]
pub struct Registration {
    state: watch::Receiver<RegistrationState>,
    cancelled: CancellationToken,
}

impl Registration {
    /// How it stands now.
    pub fn state(&self) -> RegistrationState {
        self.state.borrow().clone()
    }

    /// How it stands, and every change of that.
    pub fn states(&self) -> watch::Receiver<RegistrationState> {
        self.state.clone()
    }

    /// Waits until the neighbour has agreed. False if the registration ended before.
    pub async fn registered(&self) -> bool {
        let mut state = self.state.clone();
        let settled = |state: &RegistrationState| {
            matches!(
                state,
                RegistrationState::Registered | RegistrationState::Ended
            )
        };
        let settled = state.wait_for(settled).await;
        settled.is_ok_and(|state| *state == RegistrationState::Registered)
    }

    /// Takes the registration back: the neighbour is told once, and not asked again.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }
}

/// Registers `prefix` with the peer of `face`, for as long as both live.
pub(crate) fn start(node: &Node, face: FaceId, prefix: Name, cost: u64) -> Registration {
    let (state, observed) = watch::channel(RegistrationState::Pending);
    let cancelled = node.stopping().child_token();
    let registration = Registration {
        state: observed,
        cancelled: cancelled.clone(),
    };
    let node_of_task = node.clone();
    node.spawn(async move {
        if let Some(mut registrar) = Registrar::new(node_of_task, face, prefix, cost).await {
            let keeping = registrar.keep(&state);
            if cancelled.run_until_cancelled(keeping).await.is_none() {
                registrar.command("unregister").await.ok();
            }
        }
        state.send_replace(RegistrationState::Ended);
    });
    registration
}

/// Asks one neighbour for one prefix.
struct Registrar {
    node: Node,
    face: FaceId,
    prefix: Name,
    cost: u64,
    application: ApplicationFace,
    link: watch::Receiver<LinkState>,
    is_local: bool,
    is_datagram: bool,
}

impl Registrar {
    async fn new(node: Node, face: FaceId, prefix: Name, cost: u64) -> Option<Self> {
        let link = node.link_state(face).await.ok()?;
        let peer = node.describe(face).await.ok()?;
        let new = NewFace::application("registration").with_local_fields();
        Some(Self {
            application: node.internal_face(new).await.ok()?,
            node,
            face,
            prefix,
            cost,
            link,
            is_local: peer.scope == Scope::Local,
            is_datagram: matches!(peer.remote, FaceUri::Udp(_)),
        })
    }

    /// Registers again and again until the face ends.
    async fn keep(&mut self, state: &watch::Sender<RegistrationState>) {
        let config = self.node.config().registration.clone();
        let mut backoff = Backoff::new(config.backoff);
        loop {
            if self
                .link
                .wait_for(|link| *link == LinkState::Up)
                .await
                .is_err()
            {
                return;
            }
            self.link.mark_unchanged();
            let outcome = self.command("register").await;
            let pause = match outcome {
                Ok(()) => {
                    backoff.reset();
                    self.refresh()
                }
                Err(_) => backoff.next(),
            };
            let new = outcome.err().unwrap_or(RegistrationState::Registered);
            if new != *state.borrow() {
                tracing::info!(prefix = %self.prefix, face = %self.face, state = ?new, "registration");
                state.send_replace(new);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                changed = self.link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    backoff.reset();
                }
            }
        }
    }

    fn refresh(&self) -> Duration {
        let config = &self.node.config().registration;
        match self.is_datagram {
            true => config.datagram_refresh,
            false => config.refresh,
        }
    }

    /// Sends one command and waits for its answer.
    async fn command(&mut self, verb: &str) -> Result<(), RegistrationState> {
        let timeout = self.node.config().registration.timeout;
        let command = {
            // NFD wants the times of commands to grow, also between commands of different registrations: so they are
            // made and sent one after another.
            static LAST_TIME: Mutex<Duration> = Mutex::const_new(Duration::ZERO);
            let mut time = LAST_TIME.lock().await;
            let wall = Duration::from_micros(Clock::new().wall().as_micros());
            *time = wall.max(*time + Duration::from_millis(1));
            let command = self.interest(verb, *time, timeout);
            let packet = LpPacket {
                next_hop_face: Some(self.face.number()),
                ..LpPacket::carrying(command.wire().clone())
            };
            // Answers to earlier commands that came too late.
            while self.application.try_recv().is_some() {}
            let sent = self.application.send(packet.encode()).await;
            sent.map_err(|_| RegistrationState::Ended)?;
            command
        };
        let answer = tokio::time::timeout(timeout, self.answer(&command)).await;
        let response = answer.map_err(|_| RegistrationState::Unanswered)??;
        match response.code {
            200 => Ok(()),
            code => Err(RegistrationState::Refused(format!(
                "{code} {}",
                response.text
            ))),
        }
    }

    fn interest(&self, verb: &str, time: Duration, lifetime: Duration) -> Interest {
        let is_register = verb == "register";
        let expiration = self.is_datagram.then(|| self.refresh() * (REPETITIONS + 1));
        let parameters = ControlParameters {
            name: Some(self.prefix.clone()),
            face: None,
            origin: Some(ORIGIN_CLIENT),
            cost: is_register.then_some(self.cost),
            flags: is_register.then_some(CHILD_INHERIT),
            expiration: expiration.filter(|_| is_register),
            ..ControlParameters::default()
        };
        let scope = if self.is_local {
            "localhost"
        } else {
            "localhop"
        };
        let parameters = parameters.encode();
        let name = ["nfd", "rib", verb]
            .into_iter()
            .fold(Name::root().builder().generic(scope), |name, word| {
                name.generic(word)
            })
            .component(Component {
                kind: Component::GENERIC,
                value: &parameters,
            })
            .finish();
        let mut info = DigestSigner.info();
        info.nonce = Some(Bytes::copy_from_slice(&key_store::random::<8>()));
        info.time = Some(time);
        Interest::builder(name)
            .must_be_fresh()
            .lifetime(lifetime)
            .sign(Nonce(key_store::random()), &DigestSigner, &info)
    }

    async fn answer(&mut self, command: &Interest) -> Result<ControlResponse, RegistrationState> {
        loop {
            let frame = self.application.recv().await;
            let frame = frame.ok_or(RegistrationState::Ended)?;
            let Ok(packet) = LpPacket::decode(frame) else {
                continue;
            };
            let Some(fragment) = packet.fragment else {
                continue;
            };
            match Packet::decode(fragment) {
                Ok(Packet::Interest(nacked)) if nacked.name() == command.name() => {
                    let reason = packet
                        .nack
                        .map_or(String::new(), |nack| format!("{nack:?}"));
                    return Err(RegistrationState::Refused(format!("Nack {reason}")));
                }
                Ok(Packet::Data(data)) if data.name() == command.name() => {
                    let content = data.content().unwrap_or_default();
                    return ControlResponse::decode(&content)
                        .map_err(|error| RegistrationState::Refused(error.to_string()));
                }
                _ => {}
            }
        }
    }
}
