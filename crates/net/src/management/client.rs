//! A client of a forwarder's management: of this node's own, of a neighbour's, of NFD's or ndnd's.

use core::ops::Range;

use bytes::Bytes;
use namecast_apps::management::{
    Addressee, ControlParameters, ControlResponse, DatasetError, Item, SegmentReader, decode_items,
    sign_command,
};
use namecast_forward::{FaceId, Scope};
use namecast_packet::signature::{DigestSigner, SignatureType};
use namecast_packet::{
    Component, Data, DecodeError, Interest, InterestBuilder, LpPacket, Name, Nonce, Packet, Signer,
};
use namecast_units::{Duration, Timestamp};
use tokio::sync::Mutex;

use super::{GeneralStatus, Refusal};
use crate::application::ApplicationFace;
use crate::node::{NewFace, Node, NodeError};
use crate::{Clock, key_store};

/// How often a dataset from before is refused before it is taken all the same, and the pause after each time. NFD's content store
/// keeps one for a second.
const MAX_STALE_ANSWERS: usize = 15;
const STALE_PAUSE: Duration = Duration::from_millis(100);

/// How often a command is signed again that came later than another of the same key, and the longest pause before the first time;
/// it doubles with each.
const MAX_AGAIN: u32 = 6;
const AGAIN_PAUSE: Duration = Duration::from_millis(10);

/// Asks one forwarder, one thing after another.
pub struct Client {
    application: ApplicationFace,
    /// The face that leads to the forwarder; none for the node itself.
    next_hop: Option<FaceId>,
    addressee: Addressee,
    signer: Box<dyn Signer + Send>,
    /// Time an answer may take.
    timeout: Duration,
    /// Since when nothing was changed by this client: what datasets tell is not to be older.
    unchanged_since: Timestamp,
}

/// Why a forwarder did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It did not answer in time.
    #[error("no answer within {0:?}")]
    Unanswered(Duration),
    /// It refused.
    #[error("refused: {text} ({code})")]
    Refused {
        /// As in HTTP, by custom.
        code: u64,
        /// The same for people.
        text: String,
        /// What the forwarder says of it: the face that is there already, or what is wrong with the command.
        parameters: Box<ControlParameters>,
    },
    /// It knows nobody who would answer.
    #[error("there is no management ({0})")]
    Nacked(String),
    /// The answer is not what it should be.
    #[error("the answer cannot be read: {0}")]
    Malformed(#[from] DecodeError),
    /// The list has more octets than this client takes.
    #[error("the list is too long")]
    TooLong,
    /// The node of this client has stopped, or has no room for it.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl From<ControlResponse> for ClientError {
    fn from(refused: ControlResponse) -> Self {
        Self::Refused {
            code: refused.code,
            text: refused.text,
            parameters: Box::new(refused.parameters),
        }
    }
}

impl From<DatasetError> for ClientError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Refused(refused) => (*refused).into(),
            DatasetError::Malformed(error) => error.into(),
            DatasetError::TooLong => Self::TooLong,
        }
    }
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("next_hop", &self.next_hop)
            .field("addressee", &self.addressee)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the routing daemon that applications of this machine find by `node`: commands of `rib`, as NLSR takes them.
    pub(crate) async fn of_routing_daemon(node: &Node) -> Result<Self, NodeError> {
        Self::new(node, None, Addressee::ROUTING_DAEMON).await
    }

    /// A client of `node` itself.
    ///
    /// # Errors
    /// If the node has stopped or has too many faces.
    pub async fn of_node(node: &Node) -> Result<Self, NodeError> {
        Self::new(node, None, Addressee::LOCAL).await
    }

    /// A client of the peer of `face`.
    ///
    /// # Errors
    /// If there is no such face, or the node has too many.
    pub async fn of_peer(node: &Node, face: FaceId) -> Result<Self, NodeError> {
        let addressee = addressee(node.describe(face).await?.scope);
        Self::new(node, Some(face), addressee).await
    }

    async fn new(
        node: &Node,
        next_hop: Option<FaceId>,
        addressee: Addressee,
    ) -> Result<Self, NodeError> {
        let new = NewFace::application("management client").with_local_fields();
        Ok(Self {
            application: node.internal_face(new).await?,
            next_hop,
            addressee,
            signer: Box::new(DigestSigner),
            timeout: node.config().registration.timeout,
            unchanged_since: Clock::new().wall(),
        })
    }

    /// Signs commands with a key, for a forwarder that insists on one.
    #[must_use]
    pub fn signing_with(mut self, signer: Box<dyn Signer + Send>) -> Self {
        self.signer = signer;
        self
    }

    /// Has a command such as `rib/register` be carried out, and tells with what parameters it was. One that is refused because
    /// another process signed a later one with the same key is signed again, a few times.
    ///
    /// # Errors
    /// If it was not, as far as this client knows.
    pub async fn command(
        &mut self,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, ClientError> {
        let done = self.signed_until_accepted(verb, parameters).await?;
        // The answer to a command with a long name leaves it out.
        let name = done.name.or_else(|| parameters.name.clone());
        Ok(ControlParameters { name, ..done })
    }

    async fn signed_until_accepted(
        &mut self,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, ClientError> {
        let mut pause = AGAIN_PAUSE;
        for _ in 0..MAX_AGAIN {
            let done = self
                .carry_out(self.addressee.command(verb, parameters))
                .await;
            if !self.may_be_signed_again(&done) {
                return done;
            }
            // Others that were refused with this one do not come with it again.
            let share = u32::from(u16::from_be_bytes(key_store::random()));
            tokio::time::sleep(pause * share / (1 << 16)).await;
            pause *= 2;
        }
        self.carry_out(self.addressee.command(verb, parameters))
            .await
    }

    fn may_be_signed_again<T>(&self, done: &Result<T, ClientError>) -> bool {
        let has_key = self.signer.info().signature_type != SignatureType::DigestSha256;
        let is_of_time = matches!(done, Err(ClientError::Refused { code: 403, text, .. }) if Refusal::is_of_time(text));
        has_key && is_of_time
    }

    async fn carry_out(
        &mut self,
        command: InterestBuilder,
    ) -> Result<ControlParameters, ClientError> {
        let command = {
            // NFD wants the times of commands to grow, also between commands of different clients: so they are made
            // and sent one after another.
            static LAST_TIME: Mutex<Duration> = Mutex::const_new(Duration::ZERO);
            let mut time = LAST_TIME.lock().await;
            let wall = Duration::from_micros(Clock::new().wall().as_micros());
            *time = wall.max(*time + Duration::from_millis(1));
            let nonces = (random_nonce(), key_store::random());
            let command = sign_command(command, &*self.signer, *time, self.timeout, nonces);
            self.send(&command).await?;
            command
        };
        let data = self.answer(&command).await?;
        self.unchanged_since = Clock::new().wall();
        let response = ControlResponse::decode(&data.content().unwrap_or_default())?;
        match response.code {
            // NLSR has several ways to agree.
            ..400 => Ok(response.parameters),
            _ => Err(response.into()),
        }
    }

    /// The entries of a dataset such as `faces/list`.
    ///
    /// # Errors
    /// If it did not come whole.
    pub async fn list<T: Item>(&mut self, dataset: &str) -> Result<Vec<T>, ClientError> {
        let content = self.dataset(dataset).await?;
        Ok(decode_items(&content)?)
    }

    /// The forwarder as a whole.
    ///
    /// # Errors
    /// If its status did not come.
    pub async fn status(&mut self) -> Result<GeneralStatus, ClientError> {
        let content = self.dataset("status/general").await?;
        Ok(GeneralStatus::decode(&content)?)
    }

    /// The content of a dataset's segments, one behind another.
    async fn dataset(&mut self, dataset: &str) -> Result<Bytes, ClientError> {
        // The clock may have been set back.
        self.unchanged_since = self.unchanged_since.min(Clock::new().wall());
        let mut data = self.first_segment(dataset).await?;
        // A forwarder's content store may have it from before the last command, or from before this client.
        for _ in 0..MAX_STALE_ANSWERS {
            if !self.addressee.is_local() || !is_from_before(self.unchanged_since, data.name()) {
                break;
            }
            tokio::time::sleep(STALE_PAUSE).await;
            data = self.first_segment(dataset).await?;
        }
        let mut segments = SegmentReader::default();
        while let Some(next) = segments.add(&data)? {
            data = self
                .exchange(Interest::builder(next).build(random_nonce()))
                .await?;
        }
        Ok(segments.finish())
    }

    async fn first_segment(&mut self, dataset: &str) -> Result<Data, ClientError> {
        let question = self.addressee.question(dataset);
        self.exchange(question.build(random_nonce())).await
    }

    async fn exchange(&mut self, interest: Interest) -> Result<Data, ClientError> {
        self.send(&interest).await?;
        self.answer(&interest).await
    }

    async fn send(&mut self, interest: &Interest) -> Result<(), ClientError> {
        let packet = LpPacket {
            next_hop_face: self.next_hop.map(FaceId::number),
            ..LpPacket::carrying(interest.wire().clone())
        };
        // Answers to earlier questions that came too late.
        while self.application.try_recv().is_some() {}
        let sent = self.application.send(packet.encode()).await;
        sent.map_err(|_| NodeError::Stopped.into())
    }

    /// Waits for the Data that answers `interest`.
    async fn answer(&mut self, interest: &Interest) -> Result<Data, ClientError> {
        let timeout = self.timeout;
        let answer = tokio::time::timeout(timeout, self.receive(interest)).await;
        answer.map_err(|_| ClientError::Unanswered(timeout))?
    }

    async fn receive(&mut self, interest: &Interest) -> Result<Data, ClientError> {
        loop {
            let frame = self.application.recv().await.ok_or(NodeError::Stopped)?;
            let Ok(packet) = LpPacket::decode(frame) else {
                continue;
            };
            let Some(fragment) = packet.fragment else {
                continue;
            };
            match Packet::decode(fragment) {
                Ok(Packet::Interest(nacked)) if nacked.name() == interest.name() => {
                    let reason = packet.nack.map(|reason| format!("Nack {reason:?}"));
                    return Err(ClientError::Nacked(reason.unwrap_or_default()));
                }
                Ok(Packet::Data(data)) if interest.matches(&data) => return Ok(data),
                _ => {}
            }
        }
    }
}

/// Whether the version in the name of a dataset's segment is a time before this one, both by the clock of this machine.
///
/// Versions are Unix time, in milliseconds (NFD) or microseconds (ndnd); of others nothing is known.
fn is_from_before(time: Timestamp, segment: &Name) -> bool {
    /// From 2001 to 2286.
    const MILLIS: Range<u64> = 1_000_000_000_000..10_000_000_000_000;
    let version = segment
        .parent()
        .last()
        .and_then(|component| component.number_of(Component::VERSION));
    let micros = time.as_micros();
    match version {
        Some(version) if MILLIS.contains(&version) => version < micros / 1_000,
        Some(version) if MILLIS.contains(&(version / 1_000)) => version < micros,
        _ => false,
    }
}

/// Who is at the other end of a face of this scope.
pub(crate) const fn addressee(scope: Scope) -> Addressee {
    match scope {
        Scope::Local => Addressee::LOCAL,
        Scope::NonLocal => Addressee::NEIGHBOUR,
    }
}

fn random_nonce() -> Nonce {
    Nonce(key_store::random())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command ended at 1.7 thousand million seconds and 123 456 µs.
    #[test]
    fn lists_from_before_are_known_by_their_versions() {
        let time = Timestamp::from_micros(1_700_000_000_123_456);
        let list = |version| {
            let list = "/localhost/nfd/faces/list".parse::<Name>().unwrap();
            list.builder().version(version).segment(0).finish()
        };
        for (version, is_before) in [
            (1_700_000_000_122, true),
            // The same millisecond.
            (1_700_000_000_123, false),
            (1_700_000_000_123_455, true),
            (1_700_000_000_123_456, false),
            // A count, not a time.
            (7, false),
        ] {
            assert_eq!(is_from_before(time, &list(version)), is_before, "{version}");
        }
        assert!(!is_from_before(time, &Name::root()));
    }
}
