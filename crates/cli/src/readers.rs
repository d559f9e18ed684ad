//! Readers of a sealed stream: members of the room's roster.

use std::collections::BTreeSet;
use std::sync::Arc;

use namecast_apps::trust::Roster;
use namecast_net::Clock;
use namecast_packet::Name;
use namecast_units::Duration;
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
        let readers = self.rosters.borrow_and_update().readers(self.clock.wall());
        let version = self.followed.chains.with(|it| it.roster_version());
        let renewed = (readers, version);
        let is_new = renewed != self.current;
        self.current.clone_from(&renewed);
        is_new.then_some(renewed)
    }
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
