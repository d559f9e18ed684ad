//! NFD's management protocol, as its clients speak it: commands with their responses, and status datasets.

mod control;
mod dataset;
#[expect(missing_docs, reason = "names of ndn-cxx say it all")]
pub mod numbers;

pub use control::{CAPTURE, CHILD_INHERIT, ControlParameters, ControlResponse, PRECEDE, millis};
pub use dataset::{DatasetError, Item, MAX_DATASET_SIZE, SegmentReader, decode_items};

use bytes::Bytes;
use namecast_packet::{
    Component, Interest, InterestBuilder, Name, Nonce, PrefixAnnouncement, Signer,
};
use namecast_units::Duration;

/// Route origin of a client's registration, in NFD's list.
pub const ORIGIN_CLIENT: u64 = 65;
/// Route origin of a prefix announcement, in NFD's list.
pub const PREFIX_ANNOUNCEMENT: u64 = 129;

/// Whom commands and questions are for: what their names start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressee {
    scope: &'static str,
    service: &'static str,
}

impl Addressee {
    /// The forwarder of this machine.
    pub const LOCAL: Self = Self {
        scope: "localhost",
        service: "nfd",
    };
    /// The forwarder at the other end of a link. Only commands of `rib` are served there.
    pub const NEIGHBOUR: Self = Self {
        scope: "localhop",
        service: "nfd",
    };
    /// The routing daemon of this machine, which takes commands of `rib` as NLSR does.
    pub const ROUTING_DAEMON: Self = Self {
        scope: "localhost",
        service: "nlsr",
    };

    /// Whether it is on this machine, and so answers questions about everything.
    pub fn is_local(self) -> bool {
        self.scope == Self::LOCAL.scope
    }

    /// A command such as `rib/register`, to be signed.
    pub fn command(self, verb: &str, parameters: &ControlParameters) -> InterestBuilder {
        Interest::builder(self.name(verb).child(Component {
            kind: Component::GENERIC,
            value: &parameters.encode(),
        }))
    }

    /// The command `rib/announce`, to be signed: a route of an announcement, to where the command comes from.
    pub fn announce(self, announcement: &PrefixAnnouncement) -> InterestBuilder {
        let octets = announcement.data().wire().clone();
        Interest::builder(self.name("rib/announce")).parameters(octets)
    }

    /// A question for the newest version of a dataset such as `faces/list`.
    pub fn question(self, dataset: &str) -> InterestBuilder {
        Interest::builder(self.name(dataset))
            .can_be_prefix()
            .must_be_fresh()
    }

    fn name(self, words: &str) -> Name {
        let start = Name::root()
            .builder()
            .generic(self.scope)
            .generic(self.service);
        let name = words
            .split('/')
            .fold(start, |name, word| name.generic(word));
        name.finish()
    }
}

/// Signs a command that may be answered within `timeout`, with the random octets of `nonces` for itself and for its signature.
/// `time`, the wall clock, has to be later than that of the signer's last command.
pub fn sign_command(
    command: InterestBuilder,
    signer: &dyn Signer,
    time: Duration,
    timeout: Duration,
    nonces: (Nonce, [u8; 8]),
) -> Interest {
    let mut info = signer.info();
    info.nonce = Some(Bytes::copy_from_slice(&nonces.1));
    info.time = Some(time);
    command
        .must_be_fresh()
        .lifetime(timeout)
        .sign(nonces.0, signer, &info)
}
