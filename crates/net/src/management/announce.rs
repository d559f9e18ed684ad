//! `rib/announce`: a route made from a prefix announcement, which nodes that learn routes pass on.
//!
//! Unlike other commands it has its parameters, the announcement, as ApplicationParameters and not in its name.

use bytes::Bytes;
use namecast_apps::management::PREFIX_ANNOUNCEMENT;
use namecast_forward::{FaceId, LEARNED_COST};
use namecast_packet::{Component, Data, Interest, PrefixAnnouncement};

use super::{CHILD_INHERIT, ControlParameters, MAX_PREFIX_COMPONENTS, Manager, Refused};

/// The announcement of a command `rib/announce`; none if it is another, or malformed.
pub(super) fn announced_by(command: &Interest) -> Option<PrefixAnnouncement> {
    let name = command.name();
    let is_it = name.get(2) == Some(Component::generic("rib"))
        && name.get(3) == Some(Component::generic("announce"));
    let octets = command.parameters().filter(|_| is_it)?;
    let data = Data::decode(Bytes::copy_from_slice(&octets)).ok()?;
    PrefixAnnouncement::decode(data).ok()
}

/// What the route is to be, with NFD's origin and cost.
pub(super) fn parameters(announcement: &PrefixAnnouncement) -> ControlParameters {
    ControlParameters {
        name: Some(announcement.prefix().clone()),
        origin: Some(PREFIX_ANNOUNCEMENT),
        cost: Some(LEARNED_COST),
        flags: Some(CHILD_INHERIT),
        expiration: Some(announcement.expiration()),
        ..ControlParameters::default()
    }
}

impl Manager {
    /// Makes the route of an announcement to the face that it came from.
    pub(super) async fn announce(
        &mut self,
        announcement: PrefixAnnouncement,
        from: FaceId,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        let prefix = announcement.prefix().detached();
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let text = format!("Route prefix cannot exceed {MAX_PREFIX_COMPONENTS} components");
            return Err(Refused::new(414, text));
        }
        match self.node.announce(from, &announcement) {
            Ok(Some(left)) => {
                let parameters = ControlParameters {
                    expiration: Some(left),
                    ..parameters.clone()
                };
                self.register(prefix, from, &parameters).await
            }
            Ok(None) => {
                let is_valid = announcement.is_valid_at(self.node.clock().wall());
                let text = match is_valid {
                    true => "the announcement's signer may not announce",
                    false => "the announcement is not valid now",
                };
                Err(Refused::new(403, text))
            }
            Err(error) => Err(Refused::internal(error)),
        }
    }
}
