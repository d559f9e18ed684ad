//! Registration by a page that shows a ticket: `rib/register` whose ApplicationParameters are token and secret.

use bytes::Bytes;
use namecast_apps::management::{CHILD_INHERIT, ControlParameters, ORIGIN_CLIENT};
use namecast_forward::FaceId;
use namecast_packet::{Component, Interest};

use super::{Manager, PREFIX_COMPONENTS, Refused};
use crate::log_limit;

impl Manager {
    /// What a command shows as its ticket, if the node has issued any.
    pub(super) fn ticket_of(&self, command: &Interest) -> Option<Bytes> {
        if self.node.config().management.tickets.is_empty() {
            return None;
        }
        let is_word = |at, word| command.name().get(at) == Some(Component::generic(word));
        let is_register =
            is_word(PREFIX_COMPONENTS - 2, "rib") && is_word(PREFIX_COMPONENTS - 1, "register");
        let shown = command.parameters().filter(|_| is_register)?;
        (!shown.is_empty()).then(|| Bytes::copy_from_slice(&shown))
    }

    /// Makes the route of a ticket to the page that shows it, and takes back the one to the page's face before.
    pub(super) async fn register_by_ticket(
        &mut self,
        shown: &[u8],
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        let prefix = parameters.name.clone().ok_or_else(Refused::invalid)?;
        let described = self.node.describe(from).await.ok();
        let visitor = described.as_ref().and_then(|face| face.visitor);
        let now = self.node.clock().now();
        let tickets = &self.node.config().management.tickets;
        let former = match tickets.admit(shown, &prefix, (from, visitor), now) {
            Ok(former) => former,
            Err(refusal) => {
                if let Some(left_out) = log_limit::admit(refusal.reason()) {
                    let remote = described.map(|face| face.remote.to_string());
                    tracing::warn!(%prefix, %from, remote, "going live refused: {refusal}{left_out}");
                }
                return Err(Refused::new(403, refusal.to_string()));
            }
        };
        if let Some(former) = former {
            let changes = self.rib.unregister(&prefix, former, ORIGIN_CLIENT);
            // The face is mostly gone already.
            let _ = self.apply(changes).await;
        }
        let route = ControlParameters {
            origin: Some(ORIGIN_CLIENT),
            cost: parameters.cost,
            flags: Some(CHILD_INHERIT),
            expiration: parameters.expiration,
            ..ControlParameters::default()
        };
        self.register(prefix, from, &route).await
    }
}
