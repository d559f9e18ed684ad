//! The node of a browser tab.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_apps::live::watcher::{Watchers, WatchersConfig};
use namecast_apps::{Application, Now, Output};
use namecast_forward::{FaceConfig, FaceId, Node, RelayFeedback, Transmit};
use namecast_packet::Name;
use namecast_stream::path::Control;
use namecast_units::{ByteSize, Duration, Instant, Random, Timestamp};
use serde::Serialize;

use crate::echo::Echoes;
use crate::outbox::{Outbox, Source};
use crate::publication::Publication;
use crate::room::{Room, RoomConfig, RoomError};
use crate::transports::{
    self, FaceError, MAX_OUTBOX, MAX_ROUNDS, MAX_TRANSPORTS, Transport, Transports,
};
use crate::watching::{MAX_WATCHES, TabWatch};

/// Names that a tab publishes under.
pub(crate) const MAX_PUBLICATIONS: usize = 4;
/// A face for each transport, one for the watchers, one for the room, one for the objects of each watch, and those of each publication.
const MAX_FACES: usize =
    MAX_TRANSPORTS + 1 + 1 + MAX_WATCHES + Publication::FACES * MAX_PUBLICATIONS;
/// Watchers request nothing twice, and publishers keep what they publish.
const CONTENT_STORE: ByteSize = ByteSize::ZERO;
/// Smallest frame that a test's bit flip goes into: what is shorter is no segment of media.
const MIN_CORRUPTED: usize = 400;
/// Of those, one in so many is damaged, so that what is retransmitted comes through.
const CORRUPTED_SHARE: u64 = 3;

/// A forwarder with any number of watchers and publishers on it.
///
/// After each call the page takes what happened from [`drain`](Self::drain), and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so. Watchers join as soon as the first
/// transport is up. All watchers share [uplinks](namecast_stream::path::Uplinks).
#[derive(Debug)]
pub struct Tab {
    pub(crate) node: Node,
    pub(crate) watchers: Watchers,
    watchers_face: FaceId,
    pub(crate) watches: BTreeMap<u32, TabWatch>,
    pub(crate) publications: BTreeMap<u32, Publication>,
    /// The room that the tab is in.
    pub(crate) room: Option<Room>,
    /// Number of the next watch or publication.
    next_number: u32,
    pub(crate) transports: Transports,
    echoes: Echoes,
    wall_at_zero: Timestamp,
    pub(crate) random: Random,
    pub(crate) outbox: Outbox,
    pub(crate) counters: TabCounters,
    /// Total number of verification failures up to which frames are damaged.
    corrupt_until: u64,
    /// Long frames that came since.
    corruptible: u64,
    /// Whether a transport was up before; without one the watchers would ask nobody, and wait.
    pub(crate) had_link: bool,
}

/// What a tab counts besides its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TabCounters {
    /// Frames that arrived from transports.
    pub(crate) frames_in: u64,
    /// Octets of them.
    pub(crate) bytes_in: u64,
    /// Frames for transports.
    pub(crate) frames_out: u64,
    /// Octets of them.
    pub(crate) bytes_out: u64,
    /// Frames damaged on purpose.
    pub(crate) corrupted: u64,
    /// Media and packets lost because the page took nothing for too long.
    pub(crate) outbox_full: u64,
}

impl Tab {
    /// A tab without transports, which watches and publishes nothing yet. `wall_at_zero` is the wall clock at time zero; `seed` must
    /// be secret: an attacker who knows the Nonces could have them answered beforehand.
    pub fn new(wall_at_zero: Timestamp, seed: u32) -> Self {
        let mut node = transports::node(seed, MAX_FACES, CONTENT_STORE);
        // Without it what caches say of the path behind them would end here.
        node.forwarder.install(Box::new(RelayFeedback));
        let watchers_face = node
            .add_face(FaceConfig {
                local_fields: true,
                ..FaceConfig::application("watchers")
            })
            .expect("a forwarder without faces has room for one");
        let mut random = Random::from_seed(u64::from(seed));
        let control = Control::default();
        let seed = random.next_u64();
        Self {
            node,
            watchers: Watchers::new(WatchersConfig { seed, control }),
            watchers_face,
            watches: BTreeMap::new(),
            publications: BTreeMap::new(),
            room: None,
            next_number: 0,
            transports: Transports::default(),
            echoes: Echoes::new(Instant::ZERO, random.next_u64()),
            wall_at_zero,
            random,
            outbox: Outbox::default(),
            counters: TabCounters::default(),
            corrupt_until: 0,
            corruptible: 0,
            had_link: false,
        }
    }

    /// A transport is up: everything may be asked for there, and what is published is registered there.
    ///
    /// # Errors
    /// There are too many transports, or the MTU is too small.
    pub fn face_up(
        &mut self,
        now: Instant,
        transport: &Transport<'_>,
    ) -> Result<FaceId, FaceError> {
        let face = self.transports.add(&mut self.node, transport)?;
        if let Err(error) = self.node.forwarder.add_route(Name::root(), face, 10) {
            self.transports.remove(now, &mut self.node, face);
            return Err(error.into());
        }
        self.echoes.restart(now);
        self.register(now);
        if self.had_link {
            self.watchers.handle_link_change(now);
            for watch in self.watches.values_mut() {
                watch.files.handle_link_change(now);
            }
        }
        self.had_link = true;
        self.handle_timeout(now);
        Ok(face)
    }

    /// Enters the room that `config` says. Watches begin once its rules are here.
    ///
    /// # Errors
    /// If `config` makes no sense, or the tab is in a room.
    pub fn enter(&mut self, now: Instant, config: &RoomConfig) -> Result<(), RoomError> {
        if self.room.is_some() {
            return Err(RoomError::Entered);
        }
        let (both, seed) = (self.both(now), self.random.next_u64());
        self.room = Some(Room::enter(&mut self.node, both, config, seed)?);
        self.handle_timeout(now);
        Ok(())
    }

    /// Returns whether watches may request anything: a transport was up, and the room's rules are here if the tab is in one.
    fn may_watch(&self) -> bool {
        self.had_link && self.room.as_ref().is_none_or(Room::is_ready)
    }

    /// A transport is gone.
    pub fn face_down(&mut self, now: Instant, face: FaceId) {
        if self.transports.remove(now, &mut self.node, face) {
            self.register(now);
            self.turn(now);
        }
    }

    /// Has what is published registered at the newest transport.
    pub(crate) fn register(&mut self, now: Instant) {
        let (now, neighbour) = (self.both(now), self.transports.newest());
        for publication in self.publications.values_mut() {
            publication.set_neighbour(now, neighbour);
        }
    }

    /// Returns a number that no watch or publication had before.
    pub(crate) const fn draw_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// Both clocks.
    pub(crate) fn both(&self, now: Instant) -> Now {
        Now {
            monotonic: now,
            wall: self.wall_at_zero + now.since(Instant::ZERO),
        }
    }

    /// A transport delivered a frame.
    pub fn handle_frame(&mut self, now: Instant, face: FaceId, mut frame: Vec<u8>) {
        if !self.transports.contains(face) || self.echoes.handle_frame(now, &frame) {
            return;
        }
        self.counters.frames_in += 1;
        self.counters.bytes_in += frame.len() as u64;
        if frame.len() >= MIN_CORRUPTED && self.is_corrupting() {
            self.corruptible += 1;
            if self.corruptible.is_multiple_of(CORRUPTED_SHARE) {
                self.counters.corrupted += 1;
                let middle = frame.len() / 2;
                frame[middle] ^= 1;
            }
        }
        self.node.handle_frame(now, face, Bytes::from(frame));
        self.turn(now);
    }

    /// Sends a small Interest that the neighbour returns. Returns how long what is sent now waits for what was sent before it, as
    /// those that came back show; `None` where none has.
    pub fn probe(&mut self, now: Instant) -> Option<Duration> {
        let neighbour = self.transports.newest()?;
        let frame = self.echoes.send(now);
        self.transmit(FaceId::from_number(neighbour.face), &frame);
        self.echoes.queueing(now)
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let both = self.both(now);
        self.node.handle_timeout(now);
        if self.had_link
            && let Some(room) = &mut self.room
        {
            room.handle_timeout(both);
        }
        self.renew_readers(both);
        if self.may_watch() {
            Application::handle_timeout(&mut self.watchers, both);
            for watch in self.watches.values_mut() {
                watch.files.handle_timeout(now);
            }
        }
        for publication in self.publications.values_mut() {
            publication.handle_timeout(both);
        }
        self.turn(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let files = self.watches.values().map(|it| it.files.poll_timeout());
        let watching = files.chain([Application::poll_timeout(&self.watchers)]);
        let watching = watching.filter(|_| self.may_watch());
        let room = self.room.as_ref().filter(|_| self.had_link);
        let publications = self.publications.values().map(Publication::poll_timeout);
        [self.node.poll_timeout()]
            .into_iter()
            .chain(watching)
            .chain(publications)
            .chain([room.and_then(Room::poll_timeout)])
            .flatten()
            .min()
    }

    /// What happened since the last call, as [`Outbox`] lays it out.
    pub fn drain(&mut self) -> Vec<u8> {
        for (number, watch) in &mut self.watches {
            watch.files.report_progress(*number, &mut self.outbox);
        }
        self.outbox.take()
    }

    /// Sets by how much packets are handled after they arrive, as this machine is busy.
    pub fn set_wake_delay(&mut self, delay: Duration) {
        self.watchers.set_wake_delay(delay);
    }

    /// Flips a bit in every third frame that is long enough to carry media, until `count` packets were found out: for tests.
    ///
    /// Frames cannot be counted instead: nobody looks at packets of samples that were passed over, and a page that slept for
    /// two seconds gets more than a hundred of those in a row.
    pub fn corrupt(&mut self, count: u32) {
        self.corrupt_until = self.verification_failures() + u64::from(count);
    }

    fn is_corrupting(&self) -> bool {
        self.corrupt_until > 0 && self.verification_failures() < self.corrupt_until
    }

    /// Carries packets between forwarder, applications and outbox until nothing moves.
    pub(crate) fn turn(&mut self, now: Instant) {
        for _ in 0..MAX_ROUNDS {
            if let Some(transmit) = self.node.poll_output() {
                self.handle_transmit(now, transmit);
            } else if let Some(output) = self.watchers.poll_output() {
                self.handle_watched(now, output);
            } else if !self.turn_room(now) && !self.turn_files(now) && !self.turn_publications(now)
            {
                break;
            }
        }
        for (number, watch) in &mut self.watches {
            watch.files.report(*number, &mut self.outbox);
        }
    }

    /// Takes what the room has for the network or for the page.
    fn turn_room(&mut self, now: Instant) -> bool {
        let Some(room) = &mut self.room else {
            return false;
        };
        let (face, output) = (room.face(), room.poll_output());
        match output {
            None => return false,
            Some(Output::Send(wire)) => self.node.handle_frame(now, face, wire),
            Some(Output::Event(event)) => self.outbox.event(Source::Room(0), &event),
        }
        let both = self.both(now);
        self.renew_readers(both);
        true
    }

    /// Lets the members of the room open what is published, and nobody else soon.
    fn renew_readers(&mut self, now: Now) {
        if let Some(room) = &mut self.room
            && room.renew_readers(now)
        {
            for publication in self.publications.values_mut() {
                publication.set_readers(now, room.readers());
            }
        }
    }

    fn turn_publications(&mut self, now: Instant) -> bool {
        let mut all = self.publications.iter_mut();
        let output = all.find_map(|(number, it)| Some((*number, it.poll_output()?)));
        let Some((number, (face, output))) = output else {
            return false;
        };
        match output {
            Output::Send(wire) => self.node.handle_frame(now, face, wire),
            Output::Event(event) => {
                if let Some(event) = self.publications[&number].describe(event) {
                    self.outbox.event(Source::Publication(number), &event);
                }
            }
        }
        if self.publications[&number].has_ended() {
            self.remove_publication(now, number);
        }
        true
    }

    fn handle_transmit(&mut self, now: Instant, transmit: Transmit) {
        let Transmit { face, frame } = transmit;
        let both = self.both(now);
        if face == self.watchers_face {
            self.watchers.handle_frame(both, frame);
        } else if let Some(room) = self.room.as_mut().filter(|it| it.face() == face) {
            let was_ready = room.is_ready();
            room.handle_frame(both, frame);
            if room.is_ready() && !was_ready {
                Application::handle_timeout(&mut self.watchers, both);
            }
        } else if let Some(watch) = self.watches.values_mut().find(|it| it.files_face == face) {
            watch.files.handle_frame(now, frame);
        } else if let Some(of) = self.publications.values_mut().find(|it| it.has_face(face)) {
            of.handle_frame(both, face, frame);
        } else {
            self.transmit(face, &frame);
        }
    }

    fn transmit(&mut self, face: FaceId, frame: &[u8]) {
        self.counters.frames_out += 1;
        self.counters.bytes_out += frame.len() as u64;
        if self.has_room(frame.len()) {
            self.outbox.transmit(face, frame);
        }
    }

    /// Takes a packet of watchers into the node.
    pub(crate) fn send_of_watchers(&mut self, now: Instant, wire: Bytes) {
        self.node.handle_frame(now, self.watchers_face, wire);
    }

    /// Returns whether the outbox has room for this number of octets.
    pub(crate) fn has_room(&mut self, octets: usize) -> bool {
        let fits = self.outbox.len() + octets <= MAX_OUTBOX;
        if !fits {
            self.counters.outbox_full += 1;
        }
        fits
    }
}

#[cfg(test)]
#[path = "tab_tests.rs"]
mod tests;
