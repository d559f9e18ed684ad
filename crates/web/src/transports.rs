//! What every tab has: a node, and transports that lead to others.

use namecast_apps::management::Addressee;
use namecast_apps::registration::Neighbour;
use namecast_forward::{
    AddFaceError, AddRouteError, Config, ContentStoreConfig, FaceConfig, FaceId, Node, PitConfig,
    Scope,
};
use namecast_units::{ByteSize, Instant};

/// Transports at a time: one that is used and one that takes over, with some margin.
pub(crate) const MAX_TRANSPORTS: usize = 7;
/// Packets that may pass between forwarder and applications in one call, so that no mistake of theirs can hang the page.
pub(crate) const MAX_ROUNDS: usize = 100_000;
/// Octets that may wait for the page: ten seconds of the highest default rung. Beyond it, frames are lost and counted.
pub(crate) const MAX_OUTBOX: usize = 4 << 20;
/// Pending Interests: a second of video at 3 Mbit/s is 400, and the neighbour aggregates those of all who watch.
const PIT_CAPACITY: usize = 8_192;

/// Why a transport was not taken.
#[derive(Debug, thiserror::Error)]
pub enum FaceError {
    /// The forwarder refused the face.
    #[error("the node takes no further transport: {0}")]
    Add(#[from] AddFaceError),
    /// The forwarder refused the route to it.
    #[error("the node takes no route to the transport: {0}")]
    Route(#[from] AddRouteError),
}

/// A transport that is up.
#[derive(Clone, Copy, Debug)]
pub struct Transport<'a> {
    /// What it is, for people.
    pub description: &'a str,
    /// The largest frame it carries; none: any.
    pub mtu: Option<usize>,
    /// Whether the node at its other end is on this machine and takes commands from this page.
    pub is_local: bool,
}

impl<'a> Transport<'a> {
    /// As the page describes it: `mtu` is 0 where any frame fits.
    pub(crate) fn new(description: &'a str, mtu: u32, is_local: bool) -> Self {
        Self {
            description,
            mtu: (mtu > 0).then_some(mtu as usize),
            is_local,
        }
    }
}

/// A node with room for so many faces. `seed` is not to be foreseen.
pub(crate) fn node(seed: u32, max_faces: usize, content_store: ByteSize) -> Node {
    Node::new(Config {
        seed: u64::from(seed),
        max_faces,
        pit: PitConfig {
            capacity: PIT_CAPACITY,
            ..PitConfig::default()
        },
        content_store: ContentStoreConfig::with_capacity(content_store),
        ..Config::default()
    })
}

/// The transports that are up, the newest last: where names are registered.
#[derive(Debug, Default)]
pub(crate) struct Transports(Vec<Neighbour>);

impl Transports {
    /// Gives `node` a face for a transport.
    pub(crate) fn add(
        &mut self,
        node: &mut Node,
        transport: &Transport<'_>,
    ) -> Result<FaceId, AddFaceError> {
        let (scope, addressee) = match transport.is_local {
            true => (Scope::Local, Addressee::LOCAL),
            false => (Scope::NonLocal, Addressee::NEIGHBOUR),
        };
        let face = node.add_face(FaceConfig {
            scope,
            mtu: transport.mtu,
            description: transport.description.to_owned(),
            ..FaceConfig::default()
        })?;
        self.0.push(Neighbour {
            face: face.number(),
            addressee,
            is_datagram: false,
        });
        Ok(face)
    }

    /// Takes the face of a transport from `node`. Returns whether it was one.
    pub(crate) fn remove(&mut self, now: Instant, node: &mut Node, face: FaceId) -> bool {
        let is_there = self.contains(face);
        if is_there {
            self.0.retain(|it| it.face != face.number());
            node.remove_face(now, face);
        }
        is_there
    }

    /// Whether `face` is that of a transport.
    pub(crate) fn contains(&self, face: FaceId) -> bool {
        self.0.iter().any(|it| it.face == face.number())
    }

    /// Where names are registered.
    pub(crate) fn newest(&self) -> Option<Neighbour> {
        self.0.last().copied()
    }
}
