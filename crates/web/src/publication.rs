//! What the page publishes under one name.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_apps::live::publisher::{FrameError, Publisher, PublisherConfig, SetupError};
use namecast_apps::registration::{
    Claim, Credential, GuardEvent, Member, NameGuard, Neighbour, Registrar, RegistrationEvent,
    RegistrationState, Rival, Wanted,
};
use namecast_apps::{Application, Now, Output};
use namecast_forward::{AddFaceError, AddRouteError, FaceConfig, FaceId, Node};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Name, Validity};
use namecast_stream::{ProducerConfig, StreamInfo};
use namecast_units::{Instant, Random, Timestamp};

use crate::config::{ConfigError, Sealing, Setup};
use crate::outbox::TabEvent;

/// Why the page cannot publish.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// What the page says makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The stream cannot be published.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The tab publishes under as many names as it may.
    #[error("this tab publishes under four names already")]
    Full,
    /// The node has no room for another application.
    #[error("this tab has no room for another publication: {0}")]
    Face(#[from] AddFaceError),
    /// The node has no room for another route.
    #[error("this tab has no room for another publication: {0}")]
    Route(#[from] AddRouteError),
    /// There is no such publication.
    #[error("this tab publishes nothing with number {0}")]
    Unknown(u32),
    /// The sample cannot be published.
    #[error(transparent)]
    Sample(#[from] FrameError),
}

impl Setup {
    /// The key that signs, under the name `locator`.
    fn signer(&self, locator: Name) -> Ed25519Signer {
        Ed25519Signer::from_seed(self.secret, KeyLocator::Name(locator))
    }

    /// What shows the node that the name may be registered.
    fn credential(&self) -> Credential {
        match (&self.sealing, &self.ticket) {
            (Some(Sealing { certificate, .. }), _) => {
                let signer = Box::new(self.signer(certificate.name().clone()));
                Credential::Member(Member::new(signer, [certificate.data()]))
            }
            (None, Some(ticket)) => Credential::Ticket(ticket.clone()),
            (None, None) => Credential::None,
        }
    }

    /// SHA-256 of the public key that signs.
    pub(crate) fn key_digest(&self) -> [u8; 32] {
        self.signer(self.name.clone()).public_key().digest()
    }
}

/// A publisher, the guard of its name and the registration of that, each on a face of its own.
#[derive(Debug)]
pub(crate) struct Publication {
    setup: Setup,
    publisher: Publisher,
    publisher_face: FaceId,
    guard: NameGuard,
    guard_face: FaceId,
    registrar: Registrar,
    registrar_face: FaceId,
    neighbour: Option<Neighbour>,
    /// Whether nobody else publishes the name, so that it may be registered.
    is_free: bool,
    /// Whether the page publishes it no more.
    is_ending: bool,
    /// Outputs of guard and registrar.
    outputs: VecDeque<(FaceId, Output<RegistrationEvent>)>,
}

impl Publication {
    /// Faces of a publication.
    pub(crate) const FACES: usize = 3;

    /// Publishes what `setup` says on `node`, from now on. `seed` is not to be foreseen.
    pub(crate) fn start(
        node: &mut Node,
        now: Now,
        setup: Setup,
        seed: u64,
    ) -> Result<Self, PublishError> {
        let (name, mut setup) = (setup.name.clone(), setup);
        let credential = setup.credential();
        let (publisher, claim) = publisher(now.wall, &mut setup)?;
        let publisher_face = node.add_face(FaceConfig::application("publisher"))?;
        node.forwarder.add_route(name.clone(), publisher_face, 0)?;
        let [guard_face, registrar_face] = ["guard", "registration"].map(|label| {
            node.add_face(FaceConfig {
                local_fields: true,
                ..FaceConfig::application(label)
            })
        });
        let wanted = Wanted {
            credential,
            ..Wanted::new(name.clone(), 0)
        };
        let mut random = Random::from_seed(seed);
        Ok(Self {
            guard: NameGuard::new(name, claim, random.next_u64()),
            guard_face: guard_face?,
            registrar: Registrar::new(Setup::registration(), wanted, random.next_u64()),
            registrar_face: registrar_face?,
            setup,
            publisher,
            publisher_face,
            neighbour: None,
            is_free: false,
            is_ending: false,
            outputs: VecDeque::new(),
        })
    }

    /// Publishes other streams under the name from now on. Watchers join them by the new catalogue.
    pub(crate) fn set_streams(
        &mut self,
        now: Now,
        streams: Vec<StreamInfo>,
    ) -> Result<(), SetupError> {
        self.setup.streams = streams;
        (self.publisher, _) = publisher(now.wall, &mut self.setup)?;
        Ok(())
    }

    /// Lets the holders of these X25519 keys open what is sealed, by the roster of this version.
    pub(crate) fn set_readers(&mut self, now: Now, readers: &(BTreeSet<[u8; 32]>, u64)) {
        if let Some(sealing) = &mut self.setup.sealing {
            sealing.readers.clone_from(readers);
            self.publisher.set_readers(now.monotonic, &readers.0);
            self.publisher.set_roster_version(Some(readers.1));
        }
    }

    /// Tells the neighbour that the name is published no more.
    pub(crate) fn end(&mut self, now: Now) {
        self.is_ending = true;
        self.registrar.cancel(now);
        self.settle(now);
    }

    /// Returns whether nothing is left to do after its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_ending
            && self.outputs.is_empty()
            && *self.registrar.state() == RegistrationState::Ended
    }

    /// Removes its faces and routes from `node`.
    pub(crate) fn leave(&self, now: Instant, node: &mut Node) {
        for face in [self.publisher_face, self.guard_face, self.registrar_face] {
            node.remove_face(now, face);
        }
    }

    /// What publishes it.
    pub(crate) const fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// SHA-256 of the public key that signs.
    pub(crate) fn key_digest(&self) -> [u8; 32] {
        self.setup.key_digest()
    }

    /// Registers the name with `neighbour` from now on, once nobody else publishes it there.
    pub(crate) fn set_neighbour(&mut self, now: Now, neighbour: Option<Neighbour>) {
        self.neighbour = neighbour;
        let face = neighbour.map(|it| it.face);
        self.guard.set_neighbour(now.monotonic, face);
        if self.is_free {
            self.registrar.set_neighbour(now, neighbour);
        }
        self.settle(now);
    }

    /// Whether `face` is one of its three.
    pub(crate) fn has_face(&self, face: FaceId) -> bool {
        [self.publisher_face, self.guard_face, self.registrar_face].contains(&face)
    }

    /// Takes a frame that the node sends on one of its faces.
    pub(crate) fn handle_frame(&mut self, now: Now, face: FaceId, frame: Bytes) {
        if face == self.publisher_face {
            Application::handle_frame(&mut self.publisher, now, frame);
        } else if face == self.guard_face {
            self.guard.handle_frame(now, frame);
        } else {
            self.registrar.handle_frame(now, frame);
        }
        self.settle(now);
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Now) {
        Application::handle_timeout(&mut self.publisher, now);
        self.guard.handle_timeout(now);
        self.registrar.handle_timeout(now);
        self.settle(now);
    }

    /// Lets guard and registrar hear of each other, and queues their outputs.
    fn settle(&mut self, now: Now) {
        loop {
            if let Some(output) = self.guard.poll_output() {
                match output {
                    Output::Send(frame) => {
                        (self.outputs).push_back((self.guard_face, Output::Send(frame)));
                    }
                    Output::Event(GuardEvent::Free) => {
                        self.is_free = true;
                        self.registrar.set_neighbour(now, self.neighbour);
                    }
                    Output::Event(GuardEvent::Taken(rival)) => self.give_up(now, &rival),
                }
            } else if let Some(output) = self.registrar.poll_output() {
                if let Output::Event(RegistrationEvent::State(RegistrationState::Registered)) =
                    output
                {
                    self.guard.on_registered(now.monotonic);
                }
                self.outputs.push_back((self.registrar_face, output));
            } else {
                return;
            }
        }
    }

    fn give_up(&mut self, now: Now, rival: &Rival) {
        self.is_free = false;
        self.registrar.cancel(now);
        let why = format!(
            "it is published already (key {}), so choose another name",
            rival.key_name
        );
        let refused = RegistrationEvent::State(RegistrationState::Refused(why));
        (self.outputs).push_back((self.guard_face, Output::Event(refused)));
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = [
            self.publisher.poll_timeout(),
            self.guard.poll_timeout(),
            self.registrar.poll_timeout(),
        ];
        due.into_iter().flatten().min()
    }

    /// The next output, with the face that it is for or from.
    pub(crate) fn poll_output(&mut self) -> Option<(FaceId, Output<RegistrationEvent>)> {
        if let Some(frame) = self.publisher.poll_output() {
            return Some((self.publisher_face, Output::Send(frame)));
        }
        self.outputs.pop_front()
    }

    /// What to report to the page about its registration, if anything.
    pub(crate) fn describe(&self, event: RegistrationEvent) -> Option<TabEvent<'static>> {
        // Nothing is announced.
        let RegistrationEvent::State(state) = event else {
            return None;
        };
        let (state, why) = match state {
            RegistrationState::Refused(why) => ("refused", Some(why)),
            RegistrationState::Registered => ("registered", None),
            RegistrationState::Unanswered => ("unanswered", None),
            RegistrationState::Pending | RegistrationState::Ended => return None,
        };
        let name = self.publisher.root().to_string();
        Some(TabEvent::Registration { name, state, why })
    }
}

/// A publisher and its claim to the name: of a member under its certificate, else under one that its key signs, named by the key's digest.
fn publisher(wall: Timestamp, setup: &mut Setup) -> Result<(Publisher, Claim), SetupError> {
    let name = &setup.name;
    let (certificate, locator) = match &setup.sealing {
        Some(sealing) => {
            let certificate = sealing.certificate.clone();
            let locator = certificate.name().clone();
            (certificate, locator)
        }
        None => {
            let key_id = &setup.key_digest()[..8];
            let validity = Validity::of_own_key(wall);
            let version = wall.as_micros() / 1_000;
            let own = setup.signer(name.clone());
            let certificate = Certificate::self_signed(name, key_id, version, validity, &own);
            let locator = certificate.key_name();
            (certificate, locator)
        }
    };
    let claim = Claim::new(wall, Some(&KeyLocator::Name(locator.clone())), false);
    let signer = Box::new(setup.signer(locator));
    let config = PublisherConfig {
        root: name.clone(),
        streams: setup.streams.clone(),
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    let publisher = Publisher::new(config, wall, signer, &certificate)?;
    let mut publisher = publisher.with_title(setup.title.clone())?;
    if let Some(sealing) = &mut setup.sealing {
        let (readers, version) = &sealing.readers.clone();
        publisher = publisher.sealed(sealing.next_seed(), readers)?;
        publisher.set_roster_version(Some(*version));
    }
    Ok((publisher, claim))
}
