//! Asking a neighbour to send Interests for a prefix here.
//!
//! One `rib/register` is not enough: the neighbour may restart, and forgets. So the command is repeated after every
//! reconnection, and from time to time.

use namecast_forward::FaceId;
use namecast_packet::Name;
use namecast_units::Duration;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::FaceUri;
use crate::link::Backoff;
use crate::management::{CHILD_INHERIT, Client, ClientError, ControlParameters};
use crate::node::{LinkState, Node};

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
                registrar.command("rib/unregister").await.ok();
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
    client: Client,
    link: watch::Receiver<LinkState>,
    is_datagram: bool,
}

impl Registrar {
    async fn new(node: Node, face: FaceId, prefix: Name, cost: u64) -> Option<Self> {
        let link = node.link_state(face).await.ok()?;
        let peer = node.describe(face).await.ok()?;
        Some(Self {
            client: Client::of_peer(&node, face).await.ok()?,
            node,
            face,
            prefix,
            cost,
            link,
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
            let outcome = self.command("rib/register").await;
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
        let is_register = verb == "rib/register";
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
        let done = self.client.command(verb, &parameters).await;
        done.map(|_| ()).map_err(|error| match error {
            ClientError::Unanswered(_) => RegistrationState::Unanswered,
            ClientError::Node(_) => RegistrationState::Ended,
            ClientError::Refused { code, text, .. } => {
                RegistrationState::Refused(format!("{code} {text}"))
            }
            other => RegistrationState::Refused(other.to_string()),
        })
    }
}
