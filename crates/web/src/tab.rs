//! The node of a browser tab.

use bytes::Bytes;
use namecast_apps::live::Watcher;
use namecast_apps::live::watcher::{Event, Liveness, Seek, Signer, Verdict, Watched};
use namecast_apps::registration::RegistrationEvent;
use namecast_apps::{Now, Output};
use namecast_forward::{FaceConfig, FaceId, Node, RelayFeedback, Transmit};
use namecast_packet::Name;
use namecast_stream::StreamKind;
use namecast_units::{ByteSize, Duration, Instant, Random, Timestamp};
use serde::Serialize;

use crate::config::{ConfigError, PublicationConfig, TabConfig, parse_target, rung_choice};
use crate::files::{FetchError, Files, FilesFigures};
use crate::outbox::{Outbox, TabEvent, hex};
use crate::publication::{Publication, PublishError};
use crate::transports::{
    self, FaceError, MAX_OUTBOX, MAX_ROUNDS, MAX_TRANSPORTS, Transport, Transports,
};

/// Streams that a tab publishes.
const MAX_PUBLICATIONS: usize = 4;
/// A face for each transport, the watcher and the files, and those of each publication.
const MAX_FACES: usize = MAX_TRANSPORTS + 2 + Publication::FACES * MAX_PUBLICATIONS;
/// The watcher requests nothing twice, except after a change of its mind.
const CONTENT_STORE: ByteSize = ByteSize::mebibytes(2);
/// Smallest frame that a test's bit flip goes into: what is shorter is no segment of media.
const MIN_CORRUPTED: usize = 400;
/// Of those, one in so many is damaged, so that what is retransmitted comes through.
const CORRUPTED_SHARE: u64 = 3;

/// A forwarder with a watcher on it, and whatever the page publishes.
///
/// After each call the page takes what happened from [`drain`](Self::drain), and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so. It joins as soon as the first
/// transport is up.
#[derive(Debug)]
pub struct Tab {
    node: Node,
    watcher: Watcher,
    watcher_face: FaceId,
    files: Files,
    files_face: FaceId,
    publications: Vec<Publication>,
    transports: Transports,
    wall_at_zero: Timestamp,
    random: Random,
    outbox: Outbox,
    counters: TabCounters,
    /// Frames are damaged until the watcher has found out so many in all.
    corrupt_until: u64,
    /// Long frames that came since.
    corruptible: u64,
    /// Whether a transport was up before; without one the watcher would ask nobody, and wait.
    had_link: bool,
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
    /// A tab without transports that watches what `config` says.
    ///
    /// # Errors
    /// A field of `config` without sense.
    pub fn new(config: &TabConfig) -> Result<Self, ConfigError> {
        let watcher_config = config.watcher()?;
        let root = watcher_config.root.clone();
        let watcher = Watcher::new(watcher_config);
        let mut node = transports::node(config.seed, MAX_FACES, CONTENT_STORE);
        // Without it what caches say of the path behind them would end here.
        node.forwarder.install(Box::new(RelayFeedback));
        let [watcher_face, files_face] = ["watcher", "files"].map(|description| {
            node.add_face(FaceConfig {
                local_fields: true,
                ..FaceConfig::application(description)
            })
            .expect("a forwarder without faces has room for two")
        });
        let mut random = Random::from_seed(u64::from(config.seed));
        Ok(Self {
            node,
            watcher,
            watcher_face,
            files: Files::new(
                root,
                config.wall_at_zero(),
                config.controller.unwrap_or_default(),
                random.next_u64(),
            ),
            files_face,
            publications: Vec::new(),
            transports: Transports::default(),
            wall_at_zero: config.wall_at_zero(),
            random,
            outbox: Outbox::default(),
            counters: TabCounters::default(),
            corrupt_until: 0,
            corruptible: 0,
            had_link: false,
        })
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
        self.register(now);
        if self.had_link {
            self.watcher.handle_link_change(now);
            self.files.handle_link_change(now);
        }
        self.had_link = true;
        self.handle_timeout(now);
        Ok(face)
    }

    /// A transport is gone.
    pub fn face_down(&mut self, now: Instant, face: FaceId) {
        if self.transports.remove(now, &mut self.node, face) {
            self.register(now);
            self.turn(now);
        }
    }

    /// Has what is published registered at the newest transport.
    fn register(&mut self, now: Instant) {
        let (now, neighbour) = (self.both(now), self.transports.newest());
        for publication in &mut self.publications {
            publication.set_neighbour(now, neighbour);
        }
    }

    /// Publishes a data stream. Returns its number, for [`send`](Self::send).
    ///
    /// # Errors
    /// If `config` makes no sense, or the tab publishes four streams already.
    pub fn publish(
        &mut self,
        now: Instant,
        config: &PublicationConfig,
    ) -> Result<usize, PublishError> {
        if self.publications.len() == MAX_PUBLICATIONS {
            return Err(PublishError::Full);
        }
        let both = self.both(now);
        let seed = self.random.next_u64();
        let publication = Publication::start(&mut self.node, both, config.setup()?, seed)?;
        self.publications.push(publication);
        self.register(now);
        self.turn(now);
        Ok(self.publications.len() - 1)
    }

    /// Publishes a sample of the data stream `number`, captured now.
    ///
    /// # Errors
    /// If there is no such stream, or the sample is too large.
    pub fn send(
        &mut self,
        now: Instant,
        number: usize,
        sample: Vec<u8>,
    ) -> Result<(), PublishError> {
        let both = self.both(now);
        let publication = self.publications.get_mut(number);
        let publication = publication.ok_or(PublishError::Unknown(number))?;
        publication.send(both, sample)?;
        self.turn(now);
        Ok(())
    }

    /// Fetches the object named by `uri`, which must be under the stream's name and signed by its signer; it is known as
    /// `number` from now on.
    ///
    /// # Errors
    /// If it is no such name, too many objects are being fetched, or the signer is not known yet.
    pub fn fetch(&mut self, now: Instant, number: u64, uri: &str) -> Result<(), FetchError> {
        self.files.fetch(now, number, uri)?;
        self.turn(now);
        Ok(())
    }

    /// Fetches object `number` no more.
    pub fn give_up(&mut self, number: u64) {
        self.files.give_up(number);
    }

    /// Both clocks.
    fn both(&self, now: Instant) -> Now {
        transports::both(self.wall_at_zero, now)
    }

    /// A transport delivered a frame.
    pub fn handle_frame(&mut self, now: Instant, face: FaceId, mut frame: Vec<u8>) {
        if !self.transports.contains(face) {
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

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        if self.had_link {
            self.watcher.handle_timeout(now);
            self.files.handle_timeout(now);
        }
        let both = self.both(now);
        for publication in &mut self.publications {
            publication.handle_timeout(both);
        }
        self.turn(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = [self.watcher.poll_timeout(), self.files.poll_timeout()];
        let own = own.into_iter().filter(|_| self.had_link);
        let publications = self.publications.iter().map(Publication::poll_timeout);
        [self.node.poll_timeout()]
            .into_iter()
            .chain(own)
            .chain(publications)
            .flatten()
            .min()
    }

    /// What happened since the last call, as [`Outbox`] lays it out.
    pub fn drain(&mut self) -> Vec<u8> {
        self.files.report_progress(&mut self.outbox);
        self.outbox.take()
    }

    /// Moves the playout target.
    ///
    /// # Errors
    /// The target is negative, above ten seconds, or no number.
    pub fn set_target(&mut self, now: Instant, milliseconds: f64) -> Result<(), ConfigError> {
        self.watcher.set_target(now, parse_target(milliseconds)?);
        self.turn(now);
        Ok(())
    }

    /// Sets by how much packets are handled after they arrive, as this machine is busy.
    pub fn set_wake_delay(&mut self, delay: Duration) {
        self.watcher.set_wake_delay(delay);
    }

    /// Chooses another rung: its name, `highest` or `lowest`.
    pub fn set_rung(&mut self, now: Instant, name: &str) {
        self.watcher.set_rung(now, rung_choice(Some(name)));
        self.turn(now);
    }

    /// Chooses whether video and audio are requested.
    pub fn set_wanted(&mut self, now: Instant, video: bool, audio: bool) {
        self.watcher.set_wanted(now, video, audio);
        self.turn(now);
    }

    /// Goes to what was captured at a time, by the publisher's clock, or to live.
    pub fn seek(&mut self, now: Instant, to: Seek) {
        self.watcher.seek(now, to);
        self.turn(now);
    }

    /// The page decoded a frame.
    pub fn decoded(&mut self, now: Instant, stream: StreamKind, position: u64, took: Duration) {
        self.watcher.handle_decoded(now, stream, position, took);
    }

    /// The page showed a frame.
    pub fn rendered(&mut self, now: Instant, stream: StreamKind, position: u64) {
        self.watcher.handle_rendered(now, stream, position);
    }

    /// The page's decoder failed, or skipped: what it gets next must stand alone.
    pub fn decoder_error(&mut self, now: Instant, stream: StreamKind) {
        self.watcher.handle_decoder_error(now, stream);
        self.turn(now);
    }

    /// Flips a bit in every third frame that is long enough to carry media, until `count` packets were found out: for tests.
    ///
    /// Frames cannot be counted instead: nobody looks at packets of samples that were passed over, and a page that slept for
    /// two seconds gets more than a hundred of those in a row.
    pub fn corrupt(&mut self, count: u32) {
        self.corrupt_until = self.watcher.verification_failures() + u64::from(count);
    }

    fn is_corrupting(&self) -> bool {
        self.corrupt_until > 0 && self.watcher.verification_failures() < self.corrupt_until
    }

    /// All figures, as JSON: the watcher's, with the tab's own under `tab`.
    pub fn stats(&self, now: Instant) -> String {
        #[derive(Serialize)]
        struct All {
            #[serde(flatten)]
            watcher: namecast_apps::live::Stats,
            tab: TabCounters,
            files: Option<FilesFigures>,
        }
        let all = All {
            watcher: self.watcher.stats(now),
            tab: self.counters,
            files: self.files.figures(now),
        };
        serde_json::to_string(&all).expect("figures hold only text and numbers")
    }

    /// Carries packets between forwarder, applications and outbox until nothing moves.
    fn turn(&mut self, now: Instant) {
        for _ in 0..MAX_ROUNDS {
            let mut publications = self.publications.iter_mut();
            if let Some(transmit) = self.node.poll_output() {
                self.handle_transmit(now, transmit);
            } else if let Some(output) = self.watcher.poll_output() {
                self.handle_output(now, output);
            } else if let Some(wire) = self.files.poll_output() {
                self.node.handle_frame(now, self.files_face, wire);
            } else if let Some((face, output)) = publications.find_map(Publication::poll_output) {
                self.handle_publication(now, face, output);
            } else {
                self.files.report(&mut self.outbox);
                return;
            }
        }
    }

    fn handle_transmit(&mut self, now: Instant, transmit: Transmit) {
        let Transmit { face, frame } = transmit;
        if face == self.watcher_face {
            self.watcher.handle_packet(now, frame);
            return;
        }
        if face == self.files_face {
            self.files.handle_frame(now, frame);
            return;
        }
        let both = self.both(now);
        let is_of = |it: &&mut Publication| it.has_face(face);
        if let Some(publication) = self.publications.iter_mut().find(is_of) {
            publication.handle_frame(both, face, frame);
            return;
        }
        self.counters.frames_out += 1;
        self.counters.bytes_out += frame.len() as u64;
        if self.has_room(frame.len()) {
            self.outbox.transmit(face, &frame);
        }
    }

    fn handle_output(&mut self, now: Instant, output: Output<Watched>) {
        match output {
            Output::Send(wire) => self.node.handle_frame(now, self.watcher_face, wire),
            Output::Event(Watched::Frame(frame)) => {
                if self.has_room(frame.payload.len()) {
                    self.outbox.frame(&frame);
                }
            }
            Output::Event(Watched::Discontinuity { stream, is_jump }) => {
                self.outbox.discontinuity(stream, is_jump);
            }
            Output::Event(Watched::Catalogue(catalogue)) => {
                self.files.handle_catalogue(&catalogue);
                self.outbox.event(&TabEvent::Catalogue {
                    catalogue: &catalogue,
                })
            }
            Output::Event(Watched::Signer(signer)) => {
                self.files.handle_signer(&signer);
                self.outbox.event(&signer_event(&signer));
            }
            // Playlists say when segments were made: the catalogue of a package has no samples by which its publisher could confirm that.
            Output::Event(Watched::Event(Event::Liveness(Liveness::Unconfirmed)))
                if self.files.is_package() => {}
            Output::Event(Watched::Event(event)) => {
                if !event.is_detail() {
                    let text = event.to_string();
                    self.outbox.event(&TabEvent::Step { text });
                }
                if let Some(event) = TabEvent::of_travel(&event) {
                    self.outbox.event(&event);
                }
            }
        }
    }

    fn handle_publication(
        &mut self,
        now: Instant,
        face: FaceId,
        output: Output<RegistrationEvent>,
    ) {
        match output {
            Output::Send(wire) => self.node.handle_frame(now, face, wire),
            Output::Event(event) => {
                let mut publications = self.publications.iter();
                let publication = publications.find(|it| it.has_face(face));
                if let Some(event) = publication.and_then(|it| it.describe(event)) {
                    self.outbox.event(&event);
                }
            }
        }
    }

    fn has_room(&mut self, octets: usize) -> bool {
        let fits = self.outbox.len() + octets <= MAX_OUTBOX;
        if !fits {
            self.counters.outbox_full += 1;
        }
        fits
    }
}

fn signer_event(signer: &Signer) -> TabEvent<'static> {
    TabEvent::Signer {
        name: signer.key_name.to_string(),
        digest: hex(&signer.key_digest),
        verdict: signer.verdict.to_string(),
        trusted: !matches!(signer.verdict, Verdict::Refused(_)),
        memory: (&signer.verdict).into(),
    }
}

#[cfg(test)]
#[path = "tab_tests.rs"]
mod tests;
