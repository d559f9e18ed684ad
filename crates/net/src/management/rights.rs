//! Registration by right: `rib/register` and `rib/unregister`, signed by a member whose certificates are the ApplicationParameters.

use namecast_apps::management::{CHILD_INHERIT, ControlParameters, ORIGIN_CLIENT};
use namecast_apps::room::{Bulletin, BulletinConfig, Event};
use namecast_forward::FaceId;
use namecast_packet::{Component, Interest, Name};

use super::{MAX_PREFIX_COMPONENTS, Manager, PREFIX_COMPONENTS, Refused};
use crate::application::ApplicationFace;
use crate::drive::drive;
use crate::node::Node;
use crate::rights::{Followed, ROUTE_LIFETIME, Showing};
use crate::{Clock, key_store, log_limit};

/// Reads schema and roster of each root through `node`, until it stops.
pub(crate) fn follow(node: &Node) {
    let rights = node.config().management.rights.clone();
    rights.begin(node.clock().wall());
    for at in 0..rights.roots().len() {
        let (rights, host) = (rights.clone(), node.clone());
        node.spawn(async move {
            let (face, clock) = (host.application_face().await, host.clock());
            drop(host);
            if let Ok(face) = face {
                read(&rights.roots()[at], clock, face).await;
            }
        });
    }
}

/// Keeps the rules of a root up to date, and logs what is wrong with them.
async fn read(followed: &Followed, clock: Clock, face: ApplicationFace) {
    let root = &followed.root.root;
    let config = BulletinConfig {
        wall_at_zero: clock.wall_at_zero(),
        seed: u64::from_le_bytes(key_store::random()),
        ..BulletinConfig::new(Some(root.clone()), followed.root.anchor.clone())
    };
    let bulletin = Bulletin::new(config, followed.chains.clone());
    let (bulletin, mut events) = drive(clock, face, bulletin).spawn(|| {});
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = followed.look.notified() => {
                bulletin.try_call(|bulletin, now| bulletin.look(now.monotonic));
                continue;
            }
        };
        match event {
            None => return,
            Some(Event::Schema(version)) => tracing::info!(%root, version, "schema in force"),
            Some(Event::Roster(version, _)) => tracing::info!(%root, version, "roster in force"),
            // Its host may be away.
            Some(Event::Failed(part, why)) => tracing::debug!(%root, %part, %why, "not read"),
            Some(event) => {
                if let Some(left_out) = log_limit::admit("rules of a root") {
                    tracing::warn!(%root, "refused: {event:?}{left_out}");
                }
            }
        }
    }
}

impl Manager {
    /// Returns the prefix that a command is about, if it shows certificates for it and the node knows whom to judge them by.
    pub(super) fn shown_for(
        &self,
        command: &Interest,
        parameters: &ControlParameters,
    ) -> Option<Name> {
        let is_word = |at, word| command.name().get(at) == Some(Component::generic(word));
        let is_of_routes = is_word(PREFIX_COMPONENTS - 2, "rib")
            && (is_word(PREFIX_COMPONENTS - 1, "register")
                || is_word(PREFIX_COMPONENTS - 1, "unregister"));
        let prefix = parameters.name.as_ref().filter(|_| is_of_routes)?;
        let rights = &self.node.config().management.rights;
        let is_judged = Showing::is_in(command) && rights.has_root_of(prefix);
        is_judged.then(|| prefix.detached())
    }

    /// Makes or removes the route of a member to the face that the command came from.
    pub(super) async fn execute_by_right(
        &mut self,
        command: &Interest,
        prefix: Name,
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let text = format!("Route prefix cannot exceed {MAX_PREFIX_COMPONENTS} components");
            return Err(Refused::new(414, text));
        }
        if parameters
            .face
            .is_some_and(|it| it != 0 && it != from.number())
        {
            return Err(Refused::new(403, "a member may only speak for itself"));
        }
        let management = &self.node.config().management;
        let rights = management.rights.clone();
        let showing = Showing {
            command,
            prefix: &prefix,
            from,
            now: self.node.clock().now(),
            wall: self.node.clock().wall(),
            grace: management.time_grace,
        };
        if let Err(refusal) = rights.admit(&showing) {
            if let Some(left_out) = log_limit::admit(refusal.reason()) {
                tracing::warn!(%prefix, %from, "registration by right refused: {refusal}{left_out}");
            }
            return Err(Refused::new(403, refusal.to_string()));
        }
        // A fresh command of a member comes from its owner, who is no flood of made-up addresses.
        self.node.plane().end_strangeness(from);
        let route = ControlParameters {
            origin: Some(ORIGIN_CLIENT),
            cost: parameters.cost,
            flags: Some(CHILD_INHERIT),
            expiration: Some(
                parameters
                    .expiration
                    .unwrap_or(ROUTE_LIFETIME)
                    .min(ROUTE_LIFETIME),
            ),
            ..ControlParameters::default()
        };
        let verb = command.name().get(PREFIX_COMPONENTS - 1);
        if verb == Some(Component::generic("unregister")) {
            return self.unregister(prefix, from, &route).await;
        }
        let done = self.register(prefix.clone(), from, &route).await;
        if done.is_ok() {
            rights.on_registered(&prefix);
        }
        done
    }
}
