//! Has a name sent here that nobody else publishes, and finds out when somebody else does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Error, anyhow};
use namecast_net::{
    Announcer, Announcing, Claim, Credential, FaceId, GuardEvent, Handle, NameGuard, Node,
    Registration, RegistrationState, Rival, Wanted,
};
use namecast_packet::Name;
use tokio::sync::{mpsc, watch};

use super::publishing::Manner;
use crate::arguments::Keys;
use crate::rules::credential;

/// Claim to the name of a publisher.
#[derive(Debug)]
pub(super) struct Claiming {
    name: Name,
    keys: Keys,
    announcing: Option<Announcing>,
    manner: Manner,
    registered: RegisteredNames,
}

impl Claiming {
    /// Claims `name` for what is published in this manner, and announces it then, if at all.
    pub(super) fn new(
        name: &Name,
        keys: &Keys,
        announcing: Option<Announcing>,
        manner: Manner,
    ) -> Self {
        Self {
            name: name.clone(),
            keys: keys.clone(),
            announcing,
            manner,
            registered: RegisteredNames::default(),
        }
    }

    /// Shares registrations with other publishers of this program.
    pub(super) fn among(self, registered: RegisteredNames) -> Self {
        Self { registered, ..self }
    }
}

/// Registered names. They stay registered while their publishers come and go.
#[derive(Clone, Debug, Default)]
pub(super) struct RegisteredNames(Arc<Mutex<BTreeMap<Name, Registration>>>);

impl RegisteredNames {
    fn get(&self, name: &Name, register: impl FnOnce() -> Registration) -> Registration {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.entry(name.clone()).or_insert_with(register).clone()
    }

    fn cancel(&self, name: &Name) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(name).iter().for_each(Registration::cancel);
    }
}

/// A name that is registered once it is free, and published from then on.
pub(super) struct ClaimedName {
    node: Node,
    uplink: FaceId,
    claiming: Claiming,
    guard: Handle<NameGuard>,
    events: mpsc::Receiver<GuardEvent>,
    is_free: bool,
    states: Option<watch::Receiver<RegistrationState>>,
    was_registered: bool,
}

impl ClaimedName {
    /// Begins to ask at the forwarder at the other end of `uplink`.
    pub(super) async fn begin(
        node: &Node,
        uplink: FaceId,
        claiming: Claiming,
    ) -> anyhow::Result<Self> {
        let identity = claiming.manner.identity(&claiming.keys, &claiming.name)?;
        let signer = identity.signer;
        let locator = signer.info().key_locator;
        let Manner {
            started_at,
            takes_over,
            ..
        } = claiming.manner;
        let claim = Claim::new(started_at, locator.as_ref(), takes_over);
        let guarded = node.guard_name(uplink, claiming.name.clone(), claim).await;
        let (guard, events) = guarded?;
        Ok(Self {
            node: node.clone(),
            uplink,
            claiming,
            guard,
            events,
            is_free: false,
            states: None,
            was_registered: false,
        })
    }

    /// Waits until somebody else turns out to publish the name, and says who.
    pub(super) async fn taken(&mut self) -> Error {
        loop {
            match self.events.recv().await {
                Some(GuardEvent::Free) => self.is_free = true,
                Some(GuardEvent::Taken(rival)) => return self.refusal(&rival),
                None => core::future::pending().await,
            }
        }
    }

    /// Waits until the registration stands otherwise than before; registers the name as soon as it is free.
    ///
    /// # Errors
    /// If somebody else publishes it.
    pub(super) async fn changed(&mut self) -> anyhow::Result<RegistrationState> {
        loop {
            if self.is_free && self.states.is_none() {
                self.register()?;
            }
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(GuardEvent::Free) => self.is_free = true,
                    Some(GuardEvent::Taken(rival)) => return Err(self.refusal(&rival)),
                    None => core::future::pending().await,
                },
                state = next(&mut self.states) => {
                    if state == RegistrationState::Registered {
                        self.was_registered = true;
                        self.guard.try_call(|guard, now| guard.on_registered(now.monotonic));
                    }
                    return Ok(state);
                }
            }
        }
    }

    fn register(&mut self) -> anyhow::Result<()> {
        let Claiming {
            name,
            keys,
            announcing,
            registered,
            manner,
        } = &self.claiming;
        let (node, uplink) = (&self.node, self.uplink);
        let announcement = match announcing {
            None => None,
            Some(when) => {
                let signer = manner.identity(keys, name)?.signer;
                Some((Announcer::new(name.clone(), signer), *when))
            }
        };
        let wanted = Wanted {
            announcement,
            credential: match manner.is_certified {
                true => credential(manner.identity(keys, name)?),
                false => Credential::None,
            },
            ..Wanted::new(name.clone(), 0)
        };
        let registration = registered.get(name, || node.register(uplink, wanted));
        let mut states = registration.states();
        states.mark_changed();
        self.states = Some(states);
        Ok(())
    }

    /// Returns whether the forwarder ever sent Interests for the name here.
    pub(super) const fn was_registered(&self) -> bool {
        self.was_registered
    }

    /// Takes the registration back.
    pub(super) fn cancel(&self) {
        self.claiming.registered.cancel(&self.claiming.name);
    }

    fn refusal(&self, rival: &Rival) -> Error {
        let name = &self.claiming.name;
        let mut key = rival.key_name.to_string();
        if rival.is_same_key {
            key.push_str(", the key that is used here");
        }
        match rival.took_over {
            true => {
                anyhow!("{name} was taken over by another publisher (key {key}), so this one ends")
            }
            false => anyhow!(
                "{name} is published already (key {key}): end that publisher, give another name, or add --take-over to publish in its place"
            ),
        }
    }
}

/// Waits for another state; for ever where there is no registration.
async fn next(states: &mut Option<watch::Receiver<RegistrationState>>) -> RegistrationState {
    if let Some(states) = states
        && states.changed().await.is_ok()
    {
        return states.borrow_and_update().clone();
    }
    core::future::pending().await
}
