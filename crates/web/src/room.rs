//! The room that a tab is in.
//!
//! ```text
//!  link with a token ──▶ Joiner ── certificate ──▶ Bulletin ── schema and roster ──▶ watches begin, publications are sealed for members
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use namecast_apps::room::{
    Bulletin, BulletinConfig, Event, JoinEvent, Joined, Joiner, Link, WaitReason, join_name,
};
use namecast_apps::trust::schema::Schema;
use namecast_apps::trust::{Anchor, ChainConfig, Chains, ExchangeSecret, Roster, SharedChains};
use namecast_apps::{Application, Now, Output};
use namecast_forward::{AddFaceError, FaceConfig, FaceId, Node};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, Data, KeyLocator, Name, hex_decode};
use namecast_units::{Duration, Instant, Random, Timestamp};
use serde::Deserialize;

use crate::config::{ConfigError, Membership, parse_digest, parse_digits, parse_root};
use crate::outbox::{RoomState, TabEvent, hex};

/// From one look for schema and roster to the next, until both are here.
const RETRY: Duration = Duration::from_millis(500);
/// From one look for members whose certificates have ended to the next.
const READERS_INTERVAL: Duration = Duration::from_secs(1);

/// What the page says of the room that it enters, as JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomConfig {
    /// Root of the room, as a URI.
    pub root: String,
    /// Digest of the anchor's key, 64 hexadecimal digits.
    pub key: String,
    /// Secret of the tab's Ed25519 key, 64 hexadecimal digits. Its X25519 key follows from it.
    pub secret: String,
    /// Token of the link, 32 hexadecimal digits; none: the room is entered with the certificate alone, or as a stranger.
    #[serde(default)]
    pub token: Option<String>,
    /// Name shown to people.
    #[serde(default)]
    pub label: String,
    /// The certificate that the page keeps since it joined, in hexadecimal.
    #[serde(default)]
    pub certificate: Option<String>,
}

/// Why a tab cannot enter a room.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// What the page says makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The node has no room for another application.
    #[error("this tab has no room for another application: {0}")]
    Face(#[from] AddFaceError),
    /// The tab is in a room.
    #[error("this tab is in a room already")]
    Entered,
}

impl RoomConfig {
    /// Reads the page's JSON.
    ///
    /// # Errors
    /// What is malformed.
    pub fn decode(json: &str) -> Result<Self, ConfigError> {
        Ok(serde_json::from_str(json)?)
    }
}

/// A room: the tab's key there, and the rules in force.
#[derive(Debug)]
pub(crate) struct Room {
    root: Name,
    anchor: [u8; 32],
    seed: [u8; 32],
    chains: SharedChains,
    joiner: Option<Joiner>,
    bulletin: Option<Bulletin>,
    certificate: Option<Certificate>,
    has_schema: bool,
    roster: Option<Arc<Roster>>,
    /// Members who may open what is sealed, when they were looked for last, and the version of the roster.
    readers: (BTreeSet<[u8; 32]>, u64),
    readers_at: Instant,
    retry_at: Option<Instant>,
    random: Random,
    face: FaceId,
    outputs: VecDeque<Output<TabEvent<'static>>>,
}

impl Room {
    /// Enters the room that `config` says, on `node`. `seed` is not to be foreseen.
    pub(crate) fn enter(
        node: &mut Node,
        now: Now,
        config: &RoomConfig,
        seed: u64,
    ) -> Result<Self, RoomError> {
        let root = parse_root(&config.root)?;
        let anchor = parse_digest(&config.key)?;
        let own: [u8; 32] = parse_digits(&config.secret).ok_or(ConfigError::Secret)?;
        let token = config.token.as_deref();
        let token = token.map(|digits| parse_digits(digits).ok_or(ConfigError::Token));
        let token = token.transpose()?;
        let chains = Chains::new(
            Arc::new(Schema::nothing()),
            0,
            Anchor::Digest(anchor),
            ChainConfig::default(),
        );
        let face = node.add_face(FaceConfig::application("room"))?;
        let mut room = Self {
            anchor,
            seed: own,
            chains: SharedChains::new(chains),
            joiner: None,
            bulletin: None,
            certificate: None,
            has_schema: false,
            roster: None,
            readers: (BTreeSet::new(), 0),
            readers_at: Instant::ZERO,
            retry_at: None,
            random: Random::from_seed(seed),
            face,
            outputs: VecDeque::new(),
            root,
        };
        let kept = config.certificate.as_deref();
        room.certificate = kept.and_then(|kept| room.kept(kept, now.wall));
        match (token, &room.certificate) {
            (Some(token), None) => room.join(token, &config.label),
            _ => room.follow(now),
        }
        Ok(room)
    }

    /// Reads the certificate that the page keeps; `None` if it is another key's or has ended, so that the tab has to join again.
    fn kept(&self, digits: &str, wall: Timestamp) -> Option<Certificate> {
        let data = Data::decode(Bytes::from(hex_decode(digits)?)).ok()?;
        let certificate = Certificate::decode(data).ok()?;
        let key = self.signer(Name::root()).public_key();
        let is_own = certificate.public_key().is_ok_and(|it| it == key);
        let counts = is_own
            && certificate.is_valid_at(wall)
            && self.root.is_prefix_of(&certificate.identity());
        counts.then_some(certificate)
    }

    fn signer(&self, locator: Name) -> Ed25519Signer {
        Ed25519Signer::from_seed(self.seed, KeyLocator::Name(locator))
    }

    fn join(&mut self, token: [u8; 16], label: &str) {
        let signer = self.signer(join_name(&self.root));
        let link = Link {
            root: self.root.clone(),
            anchor: self.anchor,
            token,
        };
        let keys = (signer.public_key(), self.exchange_secret().public());
        let seed = self.random.next_u64();
        let label = label.to_owned();
        self.joiner = Some(Joiner::new(link, keys, label, &signer, seed));
    }

    /// Reads schema and roster from now on.
    fn follow(&mut self, now: Now) {
        if let Some(certificate) = &self.certificate {
            let data = certificate.data().clone();
            // It is the tab's own: if it were malformed, the room would have refused it.
            let _ = self.chains.with(|chains| chains.offer(data));
            let name = Some(certificate.identity().to_string());
            let certificate = Some(hex(certificate.data().wire()));
            self.report(RoomState::Joined, name, certificate);
        }
        let since = now.monotonic.since(Instant::ZERO).as_micros();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        let wall_at_zero = now.wall.as_micros().saturating_sub(since);
        let config = BulletinConfig {
            wall_at_zero: Timestamp::from_micros(wall_at_zero),
            seed: self.random.next_u64(),
            ..BulletinConfig::new(Some(self.root.clone()), Anchor::Digest(self.anchor))
        };
        self.bulletin = Some(Bulletin::new(config, self.chains.clone()));
    }

    fn report(&mut self, state: RoomState, why: Option<String>, certificate: Option<String>) {
        let event = TabEvent::Room {
            state,
            why,
            certificate,
        };
        self.outputs.push_back(Output::Event(event));
    }

    /// Returns whether streams of the room can be judged: schema and roster are in force.
    pub(crate) const fn is_ready(&self) -> bool {
        self.has_schema && self.roster.is_some()
    }

    /// Returns what the tab judges streams of the room by, and the secret that opens sealed ones.
    pub(crate) fn reading(&self) -> (SharedChains, ExchangeSecret) {
        (self.chains.clone(), self.exchange_secret())
    }

    /// Returns what the tab publishes as, once it has joined.
    pub(crate) fn membership(&self) -> Option<Membership> {
        Some(Membership {
            certificate: self.certificate.clone()?,
            secret: self.seed,
            readers: self.readers.clone(),
        })
    }

    fn exchange_secret(&self) -> ExchangeSecret {
        ExchangeSecret::of_seed(&self.seed)
    }

    /// Returns the X25519 keys of members who may open what is sealed, and the version of the roster.
    pub(crate) const fn readers(&self) -> &(BTreeSet<[u8; 32]>, u64) {
        &self.readers
    }

    /// Looks who may open what is sealed. Returns whether these are others than before.
    pub(crate) fn renew_readers(&mut self, now: Now) -> bool {
        let Some(roster) = &self.roster else {
            return false;
        };
        if now.monotonic < self.readers_at {
            return false;
        }
        self.readers_at = now.monotonic + READERS_INTERVAL;
        let version = self.chains.with(|chains| chains.roster_version());
        let renewed = (roster.readers(now.wall), version);
        let is_new = renewed != self.readers;
        self.readers = renewed;
        is_new
    }

    /// Returns the face of its packets.
    pub(crate) const fn face(&self) -> FaceId {
        self.face
    }

    fn on_join(&mut self, now: Now, event: JoinEvent) {
        match event {
            JoinEvent::Waiting(reason) => {
                let state = match reason {
                    WaitReason::HostAway => RoomState::Away,
                    WaitReason::Undecided => RoomState::Undecided,
                    WaitReason::Crowded => RoomState::Crowded,
                };
                self.report(state, None, None);
            }
            JoinEvent::Failed(failure) => {
                self.report(RoomState::Failed, Some(failure.to_string()), None);
            }
            JoinEvent::Joined(joined) => {
                let Joined { welcome, anchor } = *joined;
                self.chains.with(|chains| {
                    // Nothing older than the host knew is accepted.
                    let nothing = Arc::new(Schema::nothing());
                    let _ = chains.set_schema(welcome.schema_version, nothing);
                    let _ = chains.set_revoked(welcome.roster_version, [].into());
                    let _ = chains.offer(anchor.data().clone());
                });
                self.certificate = Some(welcome.certificate);
                self.joiner = None;
                self.follow(now);
            }
        }
    }

    fn on_event(&mut self, now: Now, event: Event) {
        let was_ready = self.is_ready();
        match event {
            Event::Schema(_) => self.has_schema = true,
            Event::Roster(_, roster) => {
                self.roster = Some(roster);
                self.readers_at = Instant::ZERO;
            }
            Event::Failed(..) if !was_ready => {
                self.retry_at = Some(now.monotonic + RETRY);
                self.report(RoomState::Unserved, None, None);
            }
            Event::Failed(..) => {}
            Event::SetBack(part, set_back) => self.step(format!(
                "The {part} received is older than the one in force ({set_back})"
            )),
            Event::Malformed(part, why) => {
                self.step(format!("The {part} received is malformed: {why}"));
            }
        }
        if !was_ready && self.is_ready() {
            self.report(RoomState::Ready, None, None);
        }
    }

    fn step(&mut self, text: String) {
        let event = TabEvent::Step { text };
        self.outputs.push_back(Output::Event(event));
    }

    /// Takes what both applications have to say.
    fn settle(&mut self, now: Now) {
        loop {
            if let Some(output) = self.joiner.as_mut().and_then(Joiner::poll_output) {
                match output {
                    Output::Send(packet) => self.outputs.push_back(Output::Send(packet)),
                    Output::Event(event) => self.on_join(now, event),
                }
            } else if let Some(output) = self.bulletin.as_mut().and_then(Bulletin::poll_output) {
                match output {
                    Output::Send(packet) => self.outputs.push_back(Output::Send(packet)),
                    Output::Event(event) => self.on_event(now, event),
                }
            } else {
                return;
            }
        }
    }

    /// Takes a frame that the node sends on its face.
    pub(crate) fn handle_frame(&mut self, now: Now, frame: Bytes) {
        if let Some(joiner) = &mut self.joiner {
            joiner.handle_frame(now, frame.clone());
        }
        if let Some(bulletin) = &mut self.bulletin {
            bulletin.handle_frame(now, frame);
        }
        self.settle(now);
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Now) {
        if let Some(joiner) = &mut self.joiner {
            joiner.handle_timeout(now);
        }
        if let Some(bulletin) = &mut self.bulletin {
            if self.retry_at.take_if(|at| *at <= now.monotonic).is_some() {
                bulletin.look(now.monotonic);
            }
            bulletin.handle_timeout(now);
        }
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let joiner = self.joiner.as_ref().and_then(Joiner::poll_timeout);
        let bulletin = self.bulletin.as_ref().and_then(Bulletin::poll_timeout);
        let readers = self.roster.as_ref().map(|_| self.readers_at);
        let all = [joiner, bulletin, readers, self.retry_at];
        all.into_iter().flatten().min()
    }

    /// Returns the next packet or event, until `None`.
    pub(crate) fn poll_output(&mut self) -> Option<Output<TabEvent<'static>>> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
