//! What applications registered, told to a routing daemon on this machine, which spreads it: NFD's `readvertise_nlsr`.
//!
//! ```text
//!  Rib ─ prefix, cost ─▶ Readvertise ─ /localhost/nlsr/rib/register, unregister ─▶ daemon
//!      ─ its faces ────▶     ▲                                                      │
//!                            └────── 200, or no answer: again after a pause ◀───────┘
//! ```
//!
//! The daemon is there while a route leads to `/localhost/nlsr`. Whatever it knew goes with it: when it comes back, all is
//! said again. One command is under way at a time. Unlike NFD we also take what is registered with origin `app`, as most
//! applications do, and so leave out what the daemon registers for itself: routes to its own face.

use core::ops::RangeInclusive;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_forward::FaceId;
use namecast_packet::{Component, Name, tlv_fields};
use namecast_units::Instant;
use tokio::sync::Notify;

use super::{Client, ControlParameters, Manager};
use crate::log_limit;
use crate::node::{Node, Readvertises, ReadvertisingStatus};
use crate::transport::Backoff;
use crate::{ManagementConfig, ReadvertiseConfig};

/// Origins of routes that applications registered, by themselves or through a neighbour: NFD's `app` and `client`.
const ORIGINS: [u64; 2] = [0, 65];
/// First components of names that do not leave this machine, or this link.
const SCOPES: [&str; 2] = ["localhost", "localhop"];

/// TLV-TYPE numbers of [`ReadvertisingStatus`]: ours, from those for applications, and even, so that others skip them.
pub(super) const OWN_FIELDS: RangeInclusive<u32> = DAEMONS..=FAILED;
const DAEMONS: u32 = 240;
const PREFIXES: u32 = 242;
const TOLD: u32 = 244;
const REGISTERED: u32 = 246;
const UNREGISTERED: u32 = 248;
const FAILED: u32 = 250;

impl ReadvertisingStatus {
    const WHAT: &str = "ReadvertisingStatus";

    tlv_fields! { pub(super)
        DAEMONS => daemons,
        PREFIXES => prefixes,
        TOLD => told,
        REGISTERED => registered,
        UNREGISTERED => unregistered,
        FAILED => failed,
    }
}

/// One command to the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Command {
    prefix: Name,
    /// Cost to register it with; none: it is taken back.
    cost: Option<u64>,
}

/// One prefix that the daemon is to know, or to forget.
#[derive(Debug)]
struct Told {
    /// Cost to register it with; none: it is to be taken back.
    wanted: Option<u64>,
    /// Cost that the daemon has agreed to since it is there.
    agreed: Option<u64>,
    /// Whether the daemon may know the prefix, as it was sent a command since it is there.
    may_know: bool,
    /// When the next command is due; none while one is under way, or there is no daemon.
    due: Option<Instant>,
    /// Pauses after failures.
    backoff: Backoff,
}

/// What is to be said to the daemon, what was, and when the next command is due. No clock, no sockets.
#[derive(Debug)]
struct Readvertise {
    config: ReadvertiseConfig,
    /// Prefixes that are kept at most, those included that the daemon is still to forget.
    max_prefixes: usize,
    prefixes: BTreeMap<Name, Told>,
    due: BTreeSet<(Instant, Name)>,
    /// Faces that lead to the daemon.
    daemon: BTreeSet<FaceId>,
    under_way: Option<Command>,
    registered: u64,
    unregistered: u64,
    failed: u64,
}

impl Readvertise {
    fn new(config: ReadvertiseConfig, max_prefixes: usize) -> Self {
        Self {
            config,
            max_prefixes,
            prefixes: BTreeMap::new(),
            due: BTreeSet::new(),
            daemon: BTreeSet::new(),
            under_way: None,
            registered: 0,
            unregistered: 0,
            failed: 0,
        }
    }

    /// Records the cost at which applications registered `prefix`, or that none does any more.
    fn want(&mut self, now: Instant, prefix: &Name, cost: Option<u64>) {
        let has_room = self.prefixes.len() < self.max_prefixes;
        let Some(entry) = self.prefixes.get_mut(prefix) else {
            // There are no more than routes, unless a daemon does not take back what ended.
            if cost.is_some() && has_room {
                let entry = Told {
                    wanted: cost,
                    agreed: None,
                    may_know: false,
                    due: None,
                    backoff: Backoff::new(self.config.backoff),
                };
                self.prefixes.insert(prefix.clone(), entry);
                self.schedule(prefix, now);
            } else if cost.is_some() {
                if let Some(left_out) = log_limit::admit("too many prefixes") {
                    tracing::warn!(%prefix, "not told to the routing daemon: there are too many prefixes{left_out}");
                }
                self.failed += 1;
            }
            return;
        };
        if entry.wanted == cost {
            return;
        }
        entry.wanted = cost;
        entry.backoff.reset();
        if cost.is_none() && !entry.may_know {
            self.forget(prefix);
        } else if !self.is_under_way(prefix) {
            self.schedule(prefix, now);
        }
    }

    /// Records the faces that lead to the daemon. One that is new is a daemon that knows nothing yet.
    fn set_daemon(&mut self, now: Instant, faces: BTreeSet<FaceId>) {
        let is_new = !faces.is_subset(&self.daemon);
        let is_gone = faces.is_empty();
        self.daemon = faces;
        if !is_new && !is_gone {
            return;
        }
        self.due.clear();
        self.under_way = None;
        // A daemon that went has nothing to take back.
        self.prefixes.retain(|_, entry| entry.wanted.is_some());
        for (prefix, entry) in &mut self.prefixes {
            entry.agreed = None;
            entry.may_know = false;
            entry.backoff.reset();
            entry.due = is_new.then_some(now);
            self.due.extend(entry.due.map(|due| (due, prefix.clone())));
        }
    }

    /// The command to send now, if one is due. The next comes once this one is answered.
    fn next(&mut self, now: Instant) -> Option<Command> {
        if self.under_way.is_some() {
            return None;
        }
        let (due, prefix) = self.due.first()?.clone();
        if due > now {
            return None;
        }
        self.due.pop_first();
        let entry = self
            .prefixes
            .get_mut(&prefix)
            .expect("what is due is known");
        entry.due = None;
        entry.may_know = true;
        let cost = entry.wanted;
        self.under_way = Some(Command { prefix, cost });
        self.under_way.clone()
    }

    /// Records what became of the command: whether the daemon has carried it out.
    fn answered(&mut self, now: Instant, command: &Command, is_done: bool) {
        if self.under_way.as_ref() != Some(command) {
            // It went to a daemon that is gone.
            return;
        }
        self.under_way = None;
        let Command { prefix, cost } = command;
        match (is_done, cost) {
            (true, Some(_)) => self.registered += 1,
            (true, None) => self.unregistered += 1,
            (false, _) => self.failed += 1,
        }
        let entry = self.prefixes.get_mut(prefix).expect("one under way stays");
        if is_done {
            entry.agreed = *cost;
            entry.backoff.reset();
            match (entry.wanted == *cost, cost) {
                (true, None) => self.forget(prefix),
                (true, Some(_)) => self.schedule(prefix, now + self.config.refresh),
                (false, _) => self.schedule(prefix, now),
            }
        } else {
            let pause = entry.backoff.next();
            self.schedule(prefix, now + pause);
        }
    }

    /// When [`Self::next`] has a command, if ever.
    fn poll_timeout(&self) -> Option<Instant> {
        let first = self.due.first().filter(|_| self.under_way.is_none());
        first.map(|(due, _)| *due)
    }

    fn status(&self) -> ReadvertisingStatus {
        let wanted = |entry: &&Told| entry.wanted.is_some();
        let agreed = |entry: &&Told| wanted(entry) && entry.agreed == entry.wanted;
        ReadvertisingStatus {
            daemons: u64::from(!self.daemon.is_empty()),
            prefixes: self.prefixes.values().filter(wanted).count() as u64,
            told: self.prefixes.values().filter(agreed).count() as u64,
            registered: self.registered,
            unregistered: self.unregistered,
            failed: self.failed,
        }
    }

    fn is_under_way(&self, prefix: &Name) -> bool {
        let command = self.under_way.as_ref();
        command.is_some_and(|command| command.prefix == *prefix)
    }

    fn schedule(&mut self, prefix: &Name, at: Instant) {
        if self.daemon.is_empty() {
            return;
        }
        if let Some(entry) = self.prefixes.get_mut(prefix) {
            if let Some(before) = entry.due.replace(at) {
                self.due.remove(&(before, prefix.clone()));
            }
            self.due.insert((at, prefix.clone()));
        }
    }

    fn forget(&mut self, prefix: &Name) {
        let due = self.prefixes.remove(prefix).and_then(|entry| entry.due);
        if let Some(due) = due {
            self.due.remove(&(due, prefix.clone()));
        }
    }
}

/// What management and the task that speaks to the daemon share.
#[derive(Debug)]
pub(crate) struct Readvertising {
    state: Mutex<Readvertise>,
    /// Tells the task that something may be due.
    changed: Notify,
}

impl Readvertises for Readvertising {
    fn status(&self) -> ReadvertisingStatus {
        self.lock().status()
    }
}

impl Readvertising {
    /// As the configuration says; none if nothing is to be told.
    pub(crate) fn new(config: &ManagementConfig) -> Option<Arc<Self>> {
        let readvertise = config.readvertise.clone()?;
        // As many again may be on their way out.
        let most = config.max_routes.saturating_mul(2);
        config.enabled.then(|| {
            Arc::new(Self {
                state: Mutex::new(Readvertise::new(readvertise, most)),
                changed: Notify::new(),
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, Readvertise> {
        // What a panic left behind is still a table that can be worked with.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Speaks to the daemon until the node stops.
    pub(crate) async fn run(self: Arc<Self>, node: Node) {
        let stopping = node.stopping().clone();
        stopping.run_until_cancelled(self.speak(node)).await;
    }

    async fn speak(&self, node: Node) {
        let clock = node.clock();
        let Ok(mut client) = Client::of_routing_daemon(&node).await else {
            tracing::error!("no room for a face to the routing daemon, which is told nothing");
            return;
        };
        loop {
            let (command, due) = {
                let mut state = self.lock();
                (state.next(clock.now()), state.poll_timeout())
            };
            let Some(command) = command else {
                tokio::select! {
                    () = clock.sleep_until(due) => {}
                    () = self.changed.notified() => {}
                }
                continue;
            };
            let verb = match command.cost {
                Some(_) => "rib/register",
                None => "rib/unregister",
            };
            let parameters = ControlParameters {
                name: Some(command.prefix.clone()),
                cost: command.cost,
                // Without flags, NLSR keeps the prefix in a file, for longer than the application lives.
                flags: command.cost.map(|_| 0),
                ..ControlParameters::default()
            };
            let outcome = client.command(verb, &parameters).await.map(|_| ());
            tracing::debug!(prefix = %command.prefix, verb, ?outcome, "routing daemon");
            self.lock().answered(clock.now(), &command, outcome.is_ok());
        }
    }
}

impl Manager {
    /// Passes on what has changed in the table of routes since it was last asked.
    pub(super) fn readvertise(&mut self) {
        let touched = self.rib.take_touched();
        let Some(readvertising) = &self.readvertising else {
            return;
        };
        if touched.is_empty() {
            return;
        }
        let now = self.node.clock().now();
        let mut state = readvertising.lock();
        let daemon = self.rib.faces_of(&daemon_prefixes());
        if daemon != state.daemon {
            let is_there = !daemon.is_empty();
            tracing::info!(is_there, faces = ?daemon, "routing daemon");
            state.set_daemon(now, daemon);
            // A route that leads to it is its own, and was another's before.
            for prefix in self.rib.prefixes() {
                let cost = self.registered_cost(prefix, &state.daemon);
                state.want(now, prefix, cost);
            }
        }
        for prefix in &touched {
            let cost = self.registered_cost(prefix, &state.daemon);
            state.want(now, prefix, cost);
        }
        drop(state);
        readvertising.changed.notify_one();
    }

    /// Lowest cost at which applications registered a prefix that may leave this machine.
    fn registered_cost(&self, prefix: &Name, daemon: &BTreeSet<FaceId>) -> Option<u64> {
        let scope = prefix.get(0);
        if SCOPES
            .map(|word| Some(Component::generic(word)))
            .contains(&scope)
        {
            return None;
        }
        let routes = self.rib.routes_of(prefix);
        let of_applications =
            routes.filter(|((face, origin), _)| ORIGINS.contains(origin) && !daemon.contains(face));
        of_applications.map(|(_, route)| route.cost).min()
    }
}

/// Prefixes by which the daemon is found: it registers one of them.
fn daemon_prefixes() -> [Name; 2] {
    ["/localhost", "/localhost/nlsr"].map(|prefix| prefix.parse().expect("a constant name"))
}

#[cfg(test)]
#[path = "readvertise_tests.rs"]
mod tests;
