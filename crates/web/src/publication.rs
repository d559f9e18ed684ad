//! What the page publishes under one name.

use bytes::Bytes;
use namecast_apps::live::publisher::{FrameError, Publisher, PublisherConfig, SetupError};
use namecast_apps::registration::{
    Neighbour, Registrar, RegistrationEvent, RegistrationState, Wanted,
};
use namecast_apps::{Application, Now, Output};
use namecast_forward::{AddFaceError, AddRouteError, FaceConfig, FaceId, Node};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Name, Validity};
use namecast_stream::ProducerConfig;
use namecast_units::{Instant, Timestamp};

use crate::config::{ConfigError, Setup};
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
    /// The tab publishes as many streams as it may.
    #[error("this tab publishes four streams already")]
    Full,
    /// The node has no room for another application.
    #[error("this tab has no room for another publication: {0}")]
    Face(#[from] AddFaceError),
    /// The node has no room for another route.
    #[error("this tab has no room for another publication: {0}")]
    Route(#[from] AddRouteError),
    /// There is no such publication.
    #[error("this tab publishes nothing with number {0}")]
    Unknown(usize),
    /// The sample cannot be published.
    #[error(transparent)]
    Sample(#[from] FrameError),
}

impl Setup {
    /// The key that signs, under the name `locator`.
    fn signer(&self, locator: Name) -> Ed25519Signer {
        Ed25519Signer::from_seed(self.secret, KeyLocator::Name(locator))
    }

    /// SHA-256 of the public key that signs.
    pub(crate) fn key_digest(&self) -> [u8; 32] {
        self.signer(self.name.clone()).public_key().digest()
    }
}

/// A publisher and the registration of its name, each on a face of its own.
#[derive(Debug)]
pub(crate) struct Publication {
    publisher: Publisher,
    publisher_face: FaceId,
    registrar: Registrar,
    registrar_face: FaceId,
}

impl Publication {
    /// Publishes what `setup` says on `node`, from now on. `seed` is not to be foreseen.
    pub(crate) fn start(
        node: &mut Node,
        now: Now,
        setup: Setup,
        seed: u64,
    ) -> Result<Self, PublishError> {
        let (name, ticket) = (setup.name.clone(), setup.ticket.clone());
        let registration = setup.registration.clone();
        let publisher = publisher(now.wall, setup)?;
        let publisher_face = node.add_face(FaceConfig::application("publisher"))?;
        node.forwarder.add_route(name.clone(), publisher_face, 0)?;
        let registrar_face = node.add_face(FaceConfig {
            local_fields: true,
            ..FaceConfig::application("registration")
        })?;
        let wanted = Wanted {
            prefix: name,
            cost: 0,
            captures: false,
            announcement: None,
            ticket,
        };
        Ok(Self {
            registrar: Registrar::new(registration, wanted, seed),
            publisher,
            publisher_face,
            registrar_face,
        })
    }

    /// Publishes a sample of the only stream, captured now.
    pub(crate) fn send(&mut self, now: Now, payload: Vec<u8>) -> Result<(), FrameError> {
        let stream = self.publisher.catalogue().streams[0].name.clone();
        (self.publisher).publish_sample(now, &stream, payload)
    }

    /// What publishes it.
    pub(crate) const fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// Registers the name with `neighbour` from now on.
    pub(crate) fn set_neighbour(&mut self, now: Now, neighbour: Option<Neighbour>) {
        self.registrar.set_neighbour(now, neighbour);
    }

    /// Whether `face` is one of its two.
    pub(crate) fn has_face(&self, face: FaceId) -> bool {
        face == self.publisher_face || face == self.registrar_face
    }

    /// Takes a frame that the node sends on one of its faces.
    pub(crate) fn handle_frame(&mut self, now: Now, face: FaceId, frame: Bytes) {
        if face == self.publisher_face {
            Application::handle_frame(&mut self.publisher, now, frame);
        } else {
            self.registrar.handle_frame(now, frame);
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Now) {
        Application::handle_timeout(&mut self.publisher, now);
        self.registrar.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = [self.publisher.poll_timeout(), self.registrar.poll_timeout()];
        due.into_iter().flatten().min()
    }

    /// The next output, with the face that it is for or from.
    pub(crate) fn poll_output(&mut self) -> Option<(FaceId, Output<RegistrationEvent>)> {
        if let Some(frame) = self.publisher.poll_output() {
            return Some((self.publisher_face, Output::Send(frame)));
        }
        let output = self.registrar.poll_output()?;
        Some((self.registrar_face, output))
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

/// A publisher with a certificate that its key signs, named by the key's digest.
fn publisher(wall: Timestamp, setup: Setup) -> Result<Publisher, SetupError> {
    let name = &setup.name;
    let key_id = &setup.key_digest()[..8];
    let validity = Validity::of_own_key(wall);
    let version = wall.as_micros() / 1_000;
    let own = setup.signer(name.clone());
    let certificate = Certificate::self_signed(name, key_id, version, validity, &own);
    let signer = Box::new(setup.signer(certificate.key_name()));
    let config = PublisherConfig {
        root: setup.name,
        streams: setup.streams,
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    Publisher::new(config, wall, signer, &certificate)
}
