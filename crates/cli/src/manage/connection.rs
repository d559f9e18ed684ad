//! The way to the forwarder that is asked.

use std::path::Path;

use anyhow::{Context, bail};
use namecast_net::management::{Client, ClientError, ControlParameters, FaceStatus, Item};
use namecast_net::{
    DEFAULT_PORT, FaceUri, KeyStore, LinkState, ManagementConfig, Node, NodeConfig,
    RegistrationConfig,
};
use namecast_units::{ByteSize, Duration};

use super::arguments::{FaceChoice, Target};
use crate::places;

/// Time an answer may take.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Where NFD and ndnd listen.
const OTHERS: [&str; 2] = ["/run/nfd/nfd.sock", "/run/nfd.sock"];

/// A forwarder that answers.
pub(super) struct Forwarder {
    node: Node,
    client: Client,
    uri: FaceUri,
}

impl Forwarder {
    /// Connects to the forwarder that is meant.
    ///
    /// # Errors
    /// If there is none, with what to do.
    pub(super) async fn connect(target: &Target) -> anyhow::Result<Self> {
        let node = Node::start(NodeConfig {
            management: ManagementConfig {
                enabled: false,
                ..ManagementConfig::default()
            },
            registration: RegistrationConfig {
                timeout: TIMEOUT,
                ..RegistrationConfig::default()
            },
            // A list from before a command is not what the one after it needs.
            ..NodeConfig::caching(ByteSize::ZERO)
        });
        let (uri, face) = match &target.forwarder {
            Some(uri) => match reach(&node, uri).await? {
                Ok(face) => (uri.clone(), face),
                Err(reason) => bail!("no forwarder at {uri}: {reason}"),
            },
            None => discover(&node).await?,
        };
        let mut client = Client::of_peer(&node, face).await?;
        if let Some(name) = &target.sign_as {
            let keys = match &target.keys {
                Some(directory) => KeyStore::open(directory.clone())?,
                None => KeyStore::open_default()?,
            };
            client = client.signing_with(keys.identity(name)?.signer);
        }
        Ok(Self { node, client, uri })
    }

    /// Has a command carried out.
    pub(super) async fn command(
        &mut self,
        verb: &str,
        parameters: &ControlParameters,
    ) -> anyhow::Result<ControlParameters> {
        let done = self.client.command(verb, parameters).await;
        done.map_err(|error| self.explain(error))
            .with_context(|| format!("{verb} failed"))
    }

    /// The entries of a dataset.
    pub(super) async fn list<T: Item>(&mut self, dataset: &str) -> anyhow::Result<Vec<T>> {
        let listed = self.client.list(dataset).await;
        listed.map_err(|error| self.explain(error))
    }

    /// The client itself, for those who know what to do without an answer.
    pub(super) const fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The face that is meant, as the forwarder describes it.
    pub(super) async fn face(&mut self, choice: &FaceChoice) -> anyhow::Result<Option<FaceStatus>> {
        let faces: Vec<FaceStatus> = self.list("faces/list").await?;
        let is_meant = |face: &FaceStatus| match choice {
            FaceChoice::Number(number) => face.face == *number,
            FaceChoice::Uri(uri) => face.uri == uri.to_string(),
        };
        Ok(faces.into_iter().find(is_meant))
    }

    /// The same, where there has to be one.
    pub(super) async fn known_face(&mut self, choice: &FaceChoice) -> anyhow::Result<FaceStatus> {
        let face = self.face(choice).await?;
        face.with_context(|| {
            let meant = match choice {
                FaceChoice::Number(number) => format!("no face {number}"),
                FaceChoice::Uri(uri) => format!("no face to {uri}"),
            };
            format!("{meant}: namecast face list shows all")
        })
    }

    pub(super) async fn close(self) {
        self.node.shutdown().await;
    }

    /// The same error, with what to do.
    pub(super) fn explain(&self, error: ClientError) -> anyhow::Error {
        let uri = &self.uri;
        let advice = match &error {
            ClientError::Refused { code: 403, .. } => {
                ": the forwarder takes this from certain keys only; name one with --sign-as"
            }
            ClientError::Refused { code: 501, .. } => ": this forwarder cannot do so",
            ClientError::Refused {
                code: 404 | 410, ..
            } => "; namecast face list shows the faces that there are",
            ClientError::Unanswered(_) if !uri.is_loopback() => {
                ": forwarders answer applications on their own machine only; run this command there"
            }
            ClientError::Unanswered(_) => {
                ": is it an NDN forwarder with management, and is it alive?"
            }
            _ => "",
        };
        anyhow::anyhow!("{uri}: {error}{advice}")
    }
}

/// Makes a face to `uri`, and waits until it is up; else tells why it is not, and leaves no face.
async fn reach(node: &Node, uri: &FaceUri) -> anyhow::Result<Result<namecast_net::FaceId, String>> {
    let face = node.connect(uri.clone()).await?;
    let mut state = node.link_state(face).await?;
    let settled = |state: &LinkState| !matches!(state, LinkState::Connecting);
    let settled = state.wait_for(settled).await?.clone();
    if let LinkState::Down(reason) = settled {
        node.remove_face(face).await?;
        return Ok(Err(reason));
    }
    Ok(Ok(face))
}

/// Finds a forwarder on this machine.
async fn discover(node: &Node) -> anyhow::Result<(FaceUri, namecast_net::FaceId)> {
    let own = places::forwarder_socket().ok();
    let sockets = own.iter().map(AsRef::as_ref).chain(OTHERS.map(Path::new));
    let mut tried = Vec::new();
    let tcp = FaceUri::Tcp(([127, 0, 0, 1], DEFAULT_PORT).into());
    for uri in sockets
        .map(|path| FaceUri::Unix(path.to_owned()))
        .chain([tcp])
    {
        if let Ok(face) = reach(node, &uri).await? {
            return Ok((uri, face));
        }
        tried.push(uri.to_string());
    }
    bail!(
        "no forwarder on this machine (tried {}): start one with namecast forwarder, or name one with --forwarder",
        tried.join(", ")
    );
}
