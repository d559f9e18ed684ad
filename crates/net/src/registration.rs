//! Asking a neighbour to send Interests for a prefix here.
//!
//! One `rib/register` is not enough: the neighbour may restart, and forgets. So the command is repeated after every
//! reconnection, and from time to time. Where the neighbour learns routes, `rib/announce` follows it, so that the
//! neighbour's neighbours learn them too.

use namecast_forward::FaceId;
use namecast_packet::{Component, Name};
use namecast_units::Duration;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::link::Backoff;
use crate::management::{
    CHILD_INHERIT, Client, ClientError, ControlParameters, PREFIX_ANNOUNCEMENT, StrategyChoice,
};
use crate::node::{LinkState, Node};
use crate::{Announcer, FaceUri};

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

/// When a prefix is announced besides being registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announcing {
    /// If the neighbour's strategy for the prefix, or for a longer one, learns routes; a neighbour on another machine, whose
    /// strategies cannot be asked for, is told in any case.
    #[default]
    WhereLearned,
    /// In any case.
    Always,
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

/// What is asked of a neighbour.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) prefix: Name,
    pub(crate) cost: u64,
    /// What to announce, and when.
    pub(crate) announcement: Option<(Announcer, Announcing)>,
}

/// Registers a prefix with the peer of `face`, for as long as both live.
pub(crate) fn start(node: &Node, face: FaceId, wanted: Wanted) -> Registration {
    let (state, observed) = watch::channel(RegistrationState::Pending);
    let cancelled = node.stopping().child_token();
    let registration = Registration {
        state: observed,
        cancelled: cancelled.clone(),
    };
    let node_of_task = node.clone();
    node.spawn(async move {
        if let Some(mut registrar) = Registrar::new(node_of_task, face, wanted).await {
            let keeping = registrar.keep(&state);
            if cancelled.run_until_cancelled(keeping).await.is_none() {
                registrar.end().await;
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
    wanted: Wanted,
    client: Client,
    link: watch::Receiver<LinkState>,
    is_datagram: bool,
    /// Whether the neighbour took the announcement when it was last told, or why not.
    announced: Option<Result<(), ClientError>>,
}

impl Registrar {
    async fn new(node: Node, face: FaceId, wanted: Wanted) -> Option<Self> {
        let link = node.link_state(face).await.ok()?;
        let peer = node.describe(face).await.ok()?;
        Some(Self {
            client: Client::of_peer(&node, face).await.ok()?,
            node,
            face,
            wanted,
            link,
            is_datagram: matches!(peer.remote, FaceUri::Udp(_)),
            announced: None,
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
            let is_registered = new == RegistrationState::Registered;
            if new != *state.borrow() {
                tracing::info!(prefix = %self.wanted.prefix, face = %self.face, state = ?new, "registration");
                state.send_replace(new);
            }
            if is_registered {
                self.announce().await;
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
        match (self.is_datagram, &self.wanted.announcement) {
            (true, _) => config.datagram_refresh,
            (false, None) => config.refresh,
            (false, Some(_)) => config.refresh.min(config.announcement_refresh),
        }
    }

    /// Announces the prefix if that is wanted. A neighbour that does not take it is no worse off than without.
    async fn announce(&mut self) {
        let Some((announcer, when)) = &mut self.wanted.announcement else {
            return;
        };
        let prefix = &self.wanted.prefix;
        if *when == Announcing::WhereLearned && !learns(&mut self.client, prefix).await {
            self.announced = None;
            return;
        }
        let announcement = announcer.announcement(self.node.clock().wall());
        let outcome = self.client.announce(announcement).await.map(|_| ());
        if self.announced.as_ref() != Some(&outcome) {
            tracing::info!(%prefix, face = %self.face, ?outcome, "announcement");
        }
        self.announced = Some(outcome);
    }

    /// Takes everything back.
    async fn end(&mut self) {
        // A neighbour that does not answer notices when the face ends.
        let _ = self.command("rib/unregister").await;
        if let Some(Ok(())) = self.announced {
            let parameters = ControlParameters {
                name: Some(self.wanted.prefix.clone()),
                origin: Some(PREFIX_ANNOUNCEMENT),
                ..ControlParameters::default()
            };
            let _ = self.client.command("rib/unregister", &parameters).await;
        }
    }

    /// Sends one command and waits for its answer.
    async fn command(&mut self, verb: &str) -> Result<(), RegistrationState> {
        let is_register = verb == "rib/register";
        let expiration = self.is_datagram.then(|| self.refresh() * (REPETITIONS + 1));
        let parameters = ControlParameters {
            name: Some(self.wanted.prefix.clone()),
            face: None,
            origin: Some(ORIGIN_CLIENT),
            cost: is_register.then_some(self.wanted.cost),
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

/// Whether a forwarder learns routes for names under `prefix`, or may do so unseen.
async fn learns(client: &mut Client, prefix: &Name) -> bool {
    if !client.is_local() {
        return true;
    }
    let choices = client.list::<StrategyChoice>("strategy-choice/list").await;
    choices.is_ok_and(|choices| are_learning(&choices, prefix))
}

/// Whether the choice that holds for `prefix`, or one for a longer name, is self-learning, as NFD too calls it.
fn are_learning(choices: &[StrategyChoice], prefix: &Name) -> bool {
    let learns = |choice: &&StrategyChoice| {
        choice.strategy.get(3) == Some(Component::generic("self-learning"))
    };
    let shorter = choices
        .iter()
        .filter(|choice| choice.prefix.is_prefix_of(prefix));
    let own = shorter.max_by_key(|choice| choice.prefix.len());
    let mut longer = choices
        .iter()
        .filter(|choice| prefix.is_prefix_of(&choice.prefix));
    own.as_ref().is_some_and(learns) || longer.any(|choice| learns(&choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(prefix: &str, strategy: &str) -> StrategyChoice {
        StrategyChoice {
            prefix: prefix.parse().unwrap(),
            strategy: format!("/localhost/nfd/strategy/{strategy}")
                .parse()
                .unwrap(),
            counts: None,
        }
    }

    /// The longest choice above a prefix holds for it; below, any that learns is reason enough.
    #[test]
    fn a_prefix_is_announced_where_its_own_strategy_or_one_below_learns() {
        let choices = [
            choice("/", "best-route/v=5"),
            choice("/a", "self-learning/v=1"),
            choice("/a/b", "multicast/v=5"),
            choice("/c/d", "self-learning/v=2"),
        ];
        let learning = |prefix: &str| are_learning(&choices, &prefix.parse().unwrap());
        for (prefix, expected) in [
            ("/", true),
            ("/a", true),
            ("/a/x", true),
            ("/a/b", false),
            ("/a/b/x", false),
            ("/b", false),
            ("/c", true),
            ("/c/x", false),
            ("/c/d/x", true),
        ] {
            assert_eq!(learning(prefix), expected, "{prefix}");
        }
        assert!(!are_learning(&[], &"/a".parse().unwrap()));
    }
}
