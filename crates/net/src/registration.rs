//! Registrations of this node's prefixes with its neighbours: each a [`Registrar`] on a face of its own.

use namecast_apps::registration::{
    Announcer, Announcing, Neighbour, Registrar, RegistrationEvent, RegistrationState, Wanted,
};
use namecast_forward::FaceId;
use namecast_packet::Name;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::drive::{Handle, drive};
use crate::key_store;
use crate::management::addressee;
use crate::node::{LinkState, NewFace, Node, NodeError};

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

impl Node {
    /// Asks the peer of `face` to send Interests under `prefix` here, and goes on asking: after every reconnection, and
    /// from time to time in case the peer forgot. Of several that ask, those with the lowest `cost` come first.
    pub fn register_prefix(&self, face: FaceId, prefix: Name, cost: u64) -> Registration {
        start(self, face, (prefix, cost), None)
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
        start(self, face, (prefix, cost), Some((announcer, when)))
    }
}

/// Registers `prefix` with the peer of `face`, for as long as both live, and announces it if that is wanted.
fn start(
    node: &Node,
    face: FaceId,
    (prefix, cost): (Name, u64),
    announcement: Option<(Announcer, Announcing)>,
) -> Registration {
    let (state, observed) = watch::channel(RegistrationState::Pending);
    let cancelled = node.stopping().child_token();
    let registration = Registration {
        state: observed,
        cancelled: cancelled.clone(),
    };
    let host = node.clone();
    node.spawn(async move {
        if let Ok(mut running) = Running::start(&host, face, (prefix, cost), announcement).await {
            running.run(&state, &cancelled).await;
        }
        state.send_replace(RegistrationState::Ended);
    });
    registration
}

/// A registrar that runs.
struct Running {
    prefix: Name,
    neighbour: Neighbour,
    link: watch::Receiver<LinkState>,
    registrar: Handle<Registrar>,
    events: mpsc::Receiver<RegistrationEvent>,
}

impl Running {
    async fn start(
        node: &Node,
        face: FaceId,
        (prefix, cost): (Name, u64),
        announcement: Option<(Announcer, Announcing)>,
    ) -> Result<Self, NodeError> {
        let mut link = node.link_state(face).await?;
        link.mark_changed();
        let peer = node.describe(face).await?;
        let wanted = Wanted {
            prefix: prefix.clone(),
            cost,
            announcement,
            ticket: None,
        };
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
                tracing::info!(%prefix, %face, state = ?new, "registration");
                state.send_replace(new);
            }
            RegistrationEvent::Announced(outcome) => {
                tracing::info!(%prefix, %face, ?outcome, "announcement");
            }
        }
    }
}
