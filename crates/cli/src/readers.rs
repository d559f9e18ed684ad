//! Readers of a sealed stream: members of the room's roster.

use std::collections::BTreeSet;
use std::sync::Arc;

use namecast_apps::trust::Roster;
use namecast_net::Clock;
use namecast_packet::Name;
use namecast_units::{Duration, Timestamp};
use tokio::sync::watch;

use crate::rules::Followed;

/// From one look for certificates that ended to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// The roster that a publisher knows, and the members who may open what it seals now.
pub(crate) struct Readers {
    rosters: watch::Receiver<Arc<Roster>>,
    clock: Clock,
    current: (BTreeSet<[u8; 32]>, u64),
    followed: Followed,
}

impl Readers {
    /// Follows the roster of `followed`. The first call of [`changed`](Self::changed) returns its readers.
    pub(crate) fn new(followed: Followed, clock: Clock) -> Self {
        let mut rosters = followed.rosters.clone();
        rosters.mark_changed();
        Self {
            rosters,
            clock,
            current: (BTreeSet::new(), 0),
            followed,
        }
    }

    /// Waits until there is another roster. Returns the X25519 keys of its readers, and its version.
    pub(crate) async fn changed(&mut self) -> (BTreeSet<[u8; 32]>, u64) {
        loop {
            // Certificates end without a new roster.
            let changed = tokio::time::timeout(INTERVAL, self.rosters.changed());
            if let Ok(Err(_)) = changed.await {
                // Nothing follows the roster any more.
                core::future::pending::<()>().await;
            }
            if let Some(renewed) = self.renewed() {
                return renewed;
            }
        }
    }

    /// Returns readers and version if they are others than before, as certificates end.
    fn renewed(&mut self) -> Option<(BTreeSet<[u8; 32]>, u64)> {
        let readers = readers(&self.rosters.borrow_and_update(), self.clock.wall());
        let version = self.followed.chains.with(|it| it.roster_version());
        let renewed = (readers, version);
        let is_new = renewed != self.current;
        self.current.clone_from(&renewed);
        is_new.then_some(renewed)
    }
}

/// X25519 keys of the members whose certificates are valid, and not revoked, at `now`.
fn readers(roster: &Roster, now: Timestamp) -> BTreeSet<[u8; 32]> {
    let revoked = roster.revoked();
    let members = roster.members.iter();
    let valid = members.filter(|it| it.until > now && !revoked.contains_key(&it.key_digest));
    valid.filter_map(|it| it.exchange_key).collect()
}

/// Message for those who have no key for `name`; `is_member`: a certificate of a member is installed here.
pub(crate) fn advice(name: &Name, root: Option<&Name>, is_member: bool) -> String {
    match root {
        Some(root) if is_member => format!(
            "{name} is sealed for the members of {root}, and its publisher has no key for the certificate installed here: it was revoked, has ended, or is not in the roster yet. Ask who holds the anchor"
        ),
        Some(root) => format!(
            "{name} is sealed for the members of {root}, and no certificate of a member is installed here: send `namecast trust request {root}/YOUR-ID` to who holds the anchor, and install the answer with `namecast trust install FILE`"
        ),
        None => format!(
            "{name} is sealed for the members of a room: members watch it with --schema ROOM --key ANCHOR"
        ),
    }
}

#[cfg(test)]
mod tests {
    use namecast_apps::trust::{Member, Revocation};

    use super::*;

    #[test]
    fn readers_are_members_with_a_valid_certificate_and_a_key() {
        let at = Timestamp::from_micros;
        let member = |id: u8, until: u64, exchange_key| Member {
            certificate: format!("/calls/fox/m{id}/KEY/1/fox/v=1").parse().unwrap(),
            key_digest: [id; 32],
            until: at(until),
            role: "member".to_owned(),
            exchange_key,
            label: String::new(),
        };
        let roster = Roster {
            members: vec![
                member(1, 100, Some([1; 32])),
                member(2, 50, Some([2; 32])),
                member(3, 100, None),
                member(4, 100, Some([4; 32])),
            ],
            revocations: vec![Revocation {
                key_digest: [4; 32],
                since: at(1),
                certificate: Name::root(),
            }],
        };
        assert_eq!(readers(&roster, at(49)), [[1; 32], [2; 32]].into());
        assert_eq!(readers(&roster, at(50)), [[1; 32]].into());
    }
}
