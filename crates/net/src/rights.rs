//! Right of members to register prefixes: a key that may sign `<prefix>/32=route` may register the prefix.
//!
//! ```text
//!  member ── rib/register, signed, with certificates ──▶ chains of the root ──▶ route to the member's face, for 30 s
//!  anchor ── schema and roster ──▶ Bulletin ───────────────┘
//! ```
//!
//! The roots and their anchors are configured. Schema and roster are read from the network as readers of a room read them, so the anchor registers
//! its root first, which takes its key alone.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use namecast_apps::trust::schema::Schema;
use namecast_apps::trust::{self, Anchor, ChainConfig, Chains, Moment, SharedChains};
use namecast_forward::FaceId;
use namecast_packet::tlv::{DATA, Reader};
use namecast_packet::{Certificate, Data, Interest, Name, PublicKey};
use namecast_units::{Duration, Instant, Timestamp};
use serde::Serialize;
use tokio::sync::Notify;

use crate::freshness::{Commands, Refusal, check_time};

/// A route by right ends this time after it was registered last: a revoked member cannot renew it. Members renew theirs every 10 s.
pub(crate) const ROUTE_LIFETIME: Duration = Duration::from_secs(30);
/// Certificates that a command may show, which is the longest chain that counts.
const MAX_CERTIFICATES: usize = 4;
/// Octets of a ticket, which may begin as a packet does; certificates are longer.
const MAX_TICKET_SIZE: usize = 32;
/// Certificates kept for each root.
const MAX_KEPT: usize = 1_024;
/// Commands of one face that are judged in a second: each costs signatures.
const MAX_OF_FACE: u32 = 64;
/// Faces whose commands are counted.
const MAX_FACES: usize = 1_024;
/// Keys whose commands are remembered against repetition: as many as a roster has members.
const MAX_KEYS: usize = 16_384;
/// Commands remembered of each key.
const MAX_COMMANDS: usize = 64;

/// A root whose members may register its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRoot {
    /// Name of the root.
    pub root: Name,
    /// Key that signs schema, roster and certificates.
    pub anchor: Anchor,
}

/// Roots whose members may register names at a node. Clones are the same rights.
#[derive(Clone, Default)]
pub struct Rights(Arc<Shared>);

#[derive(Default)]
struct Shared {
    roots: Vec<Followed>,
    state: Mutex<State>,
}

/// A root, and the rules in force there.
pub(crate) struct Followed {
    pub(crate) root: TrustRoot,
    pub(crate) chains: SharedChains,
    /// Notified once the rules can be read.
    pub(crate) look: Notify,
}

#[derive(Default)]
struct State {
    started_at: Timestamp,
    /// Commands of keys that were admitted, by the digest of the key.
    keys: BTreeMap<[u8; 32], Commands>,
    /// Commands of faces, and since when they are counted.
    faces: BTreeMap<FaceId, (Instant, u32)>,
    counters: RightCounters,
}

/// Counters of registrations by right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RightCounters {
    /// Commands admitted.
    pub admitted: u64,
    /// Commands refused, by reason; reasons that did not occur are left out.
    pub refused: BTreeMap<&'static str, u64>,
}

/// Reason to refuse a registration by right. The texts go to the member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RightRefusal {
    /// The parameters are no certificates.
    #[error("the command shows no readable certificates, or more than {MAX_CERTIFICATES}")]
    Malformed,
    /// The face sends too many such commands.
    #[error("too many registrations in a second: wait, and repeat the command")]
    TooOften,
    /// Too many keys were remembered in the last minutes.
    #[error(
        "this node remembers the registrations of too many keys: repeat the command in two minutes"
    )]
    TooManyKeys,
    /// No schema was read yet.
    #[error(
        "this node has not read the rules of {0} yet: is its host connected, and does `namecast trust serve {0}` run?"
    )]
    NoSchema(Name),
    /// The command is not signed by the key of the certificate.
    #[error("the command is not signed with the key of the certificate that it shows")]
    Signature,
    /// The certificates do not let the key register the prefix.
    #[error("registration by right: {0}")]
    Chain(#[from] trust::Refusal),
    /// It is too old, or was carried out before.
    #[error(transparent)]
    Command(#[from] Refusal),
}

impl RightRefusal {
    /// Returns the name of the reason, as [`RightCounters`] spells it.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooOften => "too_often",
            Self::TooManyKeys => "too_many_keys",
            Self::NoSchema(_) => "no_schema",
            Self::Signature => "signature",
            Self::Chain(refusal) => refusal.name(),
            Self::Command(Refusal::Repeated | Refusal::Old) => "repeated",
            Self::Command(_) => "time_or_nonce",
        }
    }
}

/// A command that shows certificates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Showing<'a> {
    pub(crate) command: &'a Interest,
    pub(crate) prefix: &'a Name,
    pub(crate) from: FaceId,
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
    /// How far the time of the signature may be from ours.
    pub(crate) grace: Duration,
}

impl Showing<'_> {
    /// Returns whether the parameters of `command` begin with a packet, as no ticket does.
    pub(crate) fn is_in(command: &Interest) -> bool {
        let shown = command.parameters().unwrap_or_default();
        let element = Reader::new(&shown).element("certificate");
        let is_packet = matches!(element, Ok(Some(element)) if element.element_type == DATA);
        is_packet && shown.len() > MAX_TICKET_SIZE
    }

    /// Reads the certificates.
    fn certificates(&self) -> Option<Vec<Data>> {
        let shown = self.command.parameters().unwrap_or_default();
        // Certificates are kept; the command need not be.
        let shown = Bytes::copy_from_slice(&shown);
        let mut reader = Reader::new(&shown);
        let mut certificates = Vec::new();
        while let Some(element) = reader.element("certificate").ok()? {
            if certificates.len() == MAX_CERTIFICATES {
                return None;
            }
            certificates.push(Data::decode(shown.slice(element.whole())).ok()?);
        }
        Some(certificates)
    }
}

impl Rights {
    /// Returns the rights of the members of these roots.
    pub fn new(roots: impl IntoIterator<Item = TrustRoot>) -> Self {
        let config = ChainConfig {
            max_length: MAX_CERTIFICATES,
            max_certificates: MAX_KEPT,
            ..ChainConfig::default()
        };
        let follow = |root: TrustRoot| {
            let schema = Arc::new(Schema::nothing());
            let chains = Chains::new(schema, 0, root.anchor.clone(), config);
            Followed {
                root,
                chains: SharedChains::new(chains),
                look: Notify::new(),
            }
        };
        Self(Arc::new(Shared {
            roots: roots.into_iter().map(follow).collect(),
            state: Mutex::default(),
        }))
    }

    /// Returns the counters; `None` if no root is configured.
    pub fn counters(&self) -> Option<RightCounters> {
        (!self.is_empty()).then(|| self.lock().counters.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.roots.is_empty()
    }

    /// Returns whether `prefix` is under one of the roots.
    pub(crate) fn has_root_of(&self, prefix: &Name) -> bool {
        self.root_of(prefix).is_some()
    }

    /// Returns the longest root that `prefix` is under.
    fn root_of(&self, prefix: &Name) -> Option<&Followed> {
        let roots = self.0.roots.iter();
        let roots = roots.filter(|it| it.root.root.is_prefix_of(prefix));
        roots.max_by_key(|it| it.root.root.len())
    }

    /// Admits a command, or refuses it.
    pub(crate) fn admit(&self, showing: &Showing<'_>) -> Result<(), RightRefusal> {
        let admitted = self.try_admit(showing);
        let counters = &mut self.lock().counters;
        match &admitted {
            Ok(()) => counters.admitted += 1,
            Err(refusal) => *counters.refused.entry(refusal.reason()).or_default() += 1,
        }
        admitted
    }

    fn try_admit(&self, showing: &Showing<'_>) -> Result<(), RightRefusal> {
        self.lock().count(showing)?;
        let Showing {
            command,
            prefix,
            wall,
            grace,
            ..
        } = *showing;
        let followed = self.root_of(prefix).ok_or(RightRefusal::Malformed)?;
        let info = command.signature_info().ok_or(RightRefusal::Signature)?;
        let time = check_time(wall, info.time, grace)?;
        let nonce = info.nonce.as_ref().ok_or(Refusal::NoNonce)?;
        let certificates = showing.certificates().ok_or(RightRefusal::Malformed)?;
        let own = certificates.first().cloned();
        let own = own.and_then(|own| Certificate::decode(own).ok());
        let own = own.ok_or(RightRefusal::Malformed)?;
        let key = own.public_key().map_err(|_| RightRefusal::Malformed)?;
        let is_named = |locator| own.matches(locator);
        if !info.key_locator.as_ref().is_some_and(is_named) || command.verify(&key).is_err() {
            return Err(RightRefusal::Signature);
        }
        followed.judge(prefix, &certificates, &key, wall)?;
        let mut state = self.lock();
        let commands = state.commands(key.digest(), wall, grace)?;
        Ok(commands.remember(time, nonce, MAX_COMMANDS)?)
    }

    /// Reads the rules once their host can be reached: the anchor has registered its root.
    pub(crate) fn on_registered(&self, prefix: &Name) {
        let Some(followed) = self.root_of(prefix) else {
            return;
        };
        let has_rules = followed.chains.with(|it| it.schema_version() > 0);
        if !has_rules {
            followed.look.notify_one();
        }
    }

    /// Refuses commands from before this start of the node.
    pub(crate) fn begin(&self, started_at: Timestamp) {
        self.lock().started_at = started_at;
    }

    /// Returns the roots, whose rules are to be kept up to date.
    pub(crate) fn roots(&self) -> &[Followed] {
        &self.0.roots
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roots: Vec<_> = self.0.roots.iter().map(|it| &it.root.root).collect();
        f.debug_struct("Rights")
            .field("roots", &roots)
            .finish_non_exhaustive()
    }
}

impl Followed {
    /// Judges whether `key`, which the first of `certificates` is of, may register `prefix`.
    fn judge(
        &self,
        prefix: &Name,
        certificates: &[Data],
        key: &PublicKey,
        wall: Timestamp,
    ) -> Result<(), RightRefusal> {
        // Nobody can read the rules before the host is reachable.
        if *prefix == self.root.root && self.is_anchor(key) {
            return Ok(());
        }
        let route = prefix.builder().keyword("route").finish();
        self.chains.with(|chains| {
            if chains.schema_version() == 0 {
                return Err(RightRefusal::NoSchema(self.root.root.clone()));
            }
            chains.judge_shown(&route, certificates, Moment::Live(wall))?;
            Ok(())
        })
    }

    fn is_anchor(&self, key: &PublicKey) -> bool {
        match &self.root.anchor {
            Anchor::Digest(digest) => *digest == key.digest(),
            Anchor::Certificate(anchor) => anchor.public_key().is_ok_and(|it| it == *key),
        }
    }
}

impl State {
    /// Counts a command of a face.
    fn count(&mut self, showing: &Showing<'_>) -> Result<(), RightRefusal> {
        let is_recent = |since: &Instant| showing.now.since(*since) < Duration::from_secs(1);
        if self.faces.len() >= MAX_FACES && !self.faces.contains_key(&showing.from) {
            self.faces.retain(|_, (since, _)| is_recent(since));
            if self.faces.len() >= MAX_FACES {
                return Err(RightRefusal::TooOften);
            }
        }
        let counted = self.faces.entry(showing.from).or_insert((showing.now, 0));
        if !is_recent(&counted.0) {
            *counted = (showing.now, 0);
        }
        counted.1 += 1;
        match counted.1 > MAX_OF_FACE {
            true => Err(RightRefusal::TooOften),
            false => Ok(()),
        }
    }

    /// Returns the commands of a key. Those of keys whose newest one is refused for its age are forgotten where there is no room.
    fn commands(
        &mut self,
        digest: [u8; 32],
        wall: Timestamp,
        grace: Duration,
    ) -> Result<&mut Commands, RightRefusal> {
        if self.keys.len() >= MAX_KEYS && !self.keys.contains_key(&digest) {
            self.keys
                .retain(|_, commands| wall.since(commands.newest()) <= grace);
            if self.keys.len() >= MAX_KEYS {
                return Err(RightRefusal::TooManyKeys);
            }
        }
        let since = Commands::since(self.started_at);
        Ok(self.keys.entry(digest).or_insert(since))
    }
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
