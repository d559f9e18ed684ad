//! Registration by right: `rib/register` and `rib/unregister`, signed by a member whose certificates are the ApplicationParameters.

use namecast_apps::management::{CHILD_INHERIT, ControlParameters, ORIGIN_CLIENT};
use namecast_forward::FaceId;
use namecast_packet::{Component, Interest, Name};

use super::{MAX_PREFIX_COMPONENTS, Manager, PREFIX_COMPONENTS, Refused};
use crate::log_limit;
use crate::rights::{ROUTE_LIFETIME, Showing};

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
