//! Registrations of this node's prefixes with its neighbours: each a [`Registrar`] on a face of its own.

use namecast_apps::registration::{
    Announcer, Announcing, Claim, GuardEvent, NameGuard, Neighbour, Registrar, RegistrationEvent,
    RegistrationState, Wanted,
};
use namecast_forward::FaceId;
use namecast_packet::Name;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::drive::{Handle, drive};
use crate::key_store;
use crate::log_limit;
use crate::management::addressee;
use crate::node::{LinkState, NewFace, Node, NodeError};

/// A prefix that a neighbour is asked to send Interests for. Dropping this changes nothing.
#[derive(Clone, Debug)]
pub struct Registration {
    state: watch::Receiver<RegistrationState>,
    cost: watch::Sender<u64>,
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

    /// Asks the neighbour for another cost from now on.
    pub fn set_cost(&self, cost: u64) {
        let replace = |before: &mut u64| core::mem::replace(before, cost) != cost;
        self.cost.send_if_modified(replace);
    }

    /// Takes the registration back: the neighbour is told once, and not asked again.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }
}

impl Node {
    /// Registers what is wanted with the peer of `face`, for as long as both live.
    pub fn register(&self, face: FaceId, wanted: Wanted) -> Registration {
        start(self, face, wanted)
    }

    /// Asks the peer of `face` to send Interests under `prefix` here, and goes on asking: after every reconnection, and
    /// from time to time in case the peer forgot. Of several that ask, those with the lowest `cost` come first.
    pub fn register_prefix(&self, face: FaceId, prefix: Name, cost: u64) -> Registration {
        start(self, face, Wanted::new(prefix, cost))
    }

    /// The same for the prefix that `announcer` announces, by which nodes that learn routes find the way here.
    pub fn register_and_announce(
        &self,
        face: FaceId,
        cost: u64,
        announcer: Announcer,
        when: Announcing,
    ) -> Registration {
        let prefix = announcer.prefix().clone();
        let wanted = Wanted {
            announcement: Some((announcer, when)),
            ..Wanted::new(prefix, cost)
        };
        start(self, face, wanted)
    }
}

impl Node {
    /// Finds out through the peer of `face` whether somebody else publishes `root`, and goes on asking until the handle is
    /// dropped.
    ///
    /// # Errors
    /// If there is no such face, or the node has stopped.
    pub async fn guard_name(
        &self,
        face: FaceId,
        root: Name,
        claim: Claim,
    ) -> Result<(Handle<NameGuard>, mpsc::Receiver<GuardEvent>), NodeError> {
        let mut link = self.link_state(face).await?;
        link.mark_changed();
        let seed = u64::from_le_bytes(key_store::random());
        let guard = NameGuard::new(root, claim, seed);
        let own_face = self.application_face_with_local_fields().await?;
        let (handle, events) = drive(self.clock(), own_face, guard).spawn(|| {});
        let guard = handle.downgrade();
        self.spawn(async move {
            while link.changed().await.is_ok() {
                let is_up = *link.borrow_and_update() == LinkState::Up;
                let neighbour = is_up.then_some(face.number());
                let Some(guard) = guard.upgrade() else {
                    return;
                };
                guard.try_call(move |it, now| it.set_neighbour(now.monotonic, neighbour));
            }
        });
        Ok((handle, events))
    }
}

/// Registers with the peer of `face` what is wanted, for as long as both live.
fn start(node: &Node, face: FaceId, wanted: Wanted) -> Registration {
    let (state, observed) = watch::channel(RegistrationState::Pending);
    let (cost, costs) = watch::channel(wanted.cost);
    let (cancelled, running_until) = node.spawner().registration_token();
    let registration = Registration {
        state: observed,
        cost,
        cancelled: cancelled.clone(),
    };
    let host = node.clone();
    node.spawn(async move {
        if let Ok(mut running) = Running::start(&host, face, wanted, costs).await {
            running.run(&state, &cancelled).await;
        }
        state.send_replace(RegistrationState::Ended);
        drop(running_until);
    });
    registration
}

/// A registrar that runs.
struct Running {
    prefix: Name,
    neighbour: Neighbour,
    link: watch::Receiver<LinkState>,
    /// Ends once nobody can ask for another cost.
    costs: Option<watch::Receiver<u64>>,
    registrar: Handle<Registrar>,
    events: mpsc::Receiver<RegistrationEvent>,
}

impl Running {
    async fn start(
        node: &Node,
        face: FaceId,
        wanted: Wanted,
        costs: watch::Receiver<u64>,
    ) -> Result<Self, NodeError> {
        let mut link = node.link_state(face).await?;
        link.mark_changed();
        let peer = node.describe(face).await?;
        let prefix = wanted.prefix.clone();
        let neighbour = Neighbour {
            face: face.number(),
            addressee: addressee(peer.scope),
            is_datagram: peer.remote.is_udp(),
        };
        let seed = u64::from_le_bytes(key_store::random());
        let registrar = Registrar::new(node.config().registration.clone(), wanted, seed);
        let new = NewFace::application("registration").with_local_fields();
        let own_face = node.internal_face(new).await?;
        let (registrar, events) = drive(node.clock(), own_face, registrar).spawn(|| {});
        Ok(Self {
            prefix,
            neighbour,
            link,
            costs: Some(costs),
            registrar,
            events,
        })
    }

    /// Tells the registrar how the link stands, and others what it reports, until it ends.
    async fn run(
        &mut self,
        state: &watch::Sender<RegistrationState>,
        cancelled: &CancellationToken,
    ) {
        let mut is_cancelled = false;
        while *state.borrow() != RegistrationState::Ended {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.report(event, state),
                    None => return,
                },
                changed = self.link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let is_up = *self.link.borrow_and_update() == LinkState::Up;
                    let neighbour = is_up.then_some(self.neighbour);
                    self.registrar.try_call(move |it, now| it.set_neighbour(now, neighbour));
                }
                cost = changed(&mut self.costs) => {
                    self.registrar.try_call(move |it, now| it.set_cost(now, cost));
                }
                () = cancelled.cancelled(), if !is_cancelled => {
                    is_cancelled = self.registrar.try_call(Registrar::cancel);
                }
            }
        }
    }

    fn report(&self, event: RegistrationEvent, state: &watch::Sender<RegistrationState>) {
        let (prefix, face) = (&self.prefix, self.neighbour.face);
        match event {
            RegistrationEvent::State(new) => {
                if let Some(left_out) = log_limit::admit(limited_as(&new)) {
                    tracing::info!(%prefix, %face, state = ?new, "registration{left_out}");
                }
                state.send_replace(new);
            }
            RegistrationEvent::Announced(outcome) => {
                if let Some(left_out) = log_limit::admit("announcement") {
                    tracing::info!(%prefix, %face, ?outcome, "announcement{left_out}");
                }
            }
        }
    }
}

/// Returns the key that limits log lines of `state`: registrations that succeed must not suppress the line of a refusal.
const fn limited_as(state: &RegistrationState) -> &'static str {
    match state {
        RegistrationState::Pending => "registration pending",
        RegistrationState::Registered => "registered",
        RegistrationState::Unanswered => "registration unanswered",
        RegistrationState::Refused(_) => "registration refused",
        RegistrationState::Ended => "registration ended",
    }
}

/// Waits for another cost; for ever once nobody can ask for one.
async fn changed(costs: &mut Option<watch::Receiver<u64>>) -> u64 {
    if let Some(receiver) = costs {
        if receiver.changed().await.is_ok() {
            return *receiver.borrow_and_update();
        }
        *costs = None;
    }
    core::future::pending().await
}
