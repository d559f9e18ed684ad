//! The way to the forwarder that is asked.

use anyhow::Context;
use namecast_net::management::{Client, ClientError, ControlParameters, FaceStatus, Item, Refusal};
use namecast_net::{
    FaceId, FaceUri, KeyStore, ManagementConfig, Node, NodeConfig, RegistrationConfig,
};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};

use super::arguments::{FaceChoice, Target};
use crate::asking::Asker;
use crate::connect::Chosen;

/// Time an answer may take.
const TIMEOUT: Duration = Duration::from_secs(4);

/// A forwarder that answers.
pub(super) struct Forwarder {
    node: Node,
    client: Client,
    uri: FaceUri,
    face: FaceId,
    /// Whose key signs commands.
    sign_as: Option<Name>,
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
        let Chosen { uri, face } = target.connect.reach(&node).await?;
        let mut client = Client::of_peer(&node, face).await?;
        if let Some(name) = &target.sign_as {
            let keys = match &target.keys {
                Some(directory) => KeyStore::open(directory.clone())?,
                None => KeyStore::open_default()?,
            };
            client = client.signing_with(keys.identity(name)?.signer);
        }
        Ok(Self {
            node,
            client,
            uri,
            face,
            sign_as: target.sign_as.clone(),
        })
    }

    /// Has a command carried out.
    pub(super) async fn command(
        &mut self,
        verb: &str,
        parameters: &ControlParameters,
    ) -> anyhow::Result<ControlParameters> {
        let done = self.client.command(verb, parameters).await;
        done.map_err(|error| self.explain(verb, error))
            .with_context(|| format!("{verb} failed"))
    }

    /// The entries of a dataset.
    pub(super) async fn list<T: Item>(&mut self, dataset: &str) -> anyhow::Result<Vec<T>> {
        let listed = self.client.list(dataset).await;
        listed.map_err(|error| self.explain(dataset, error))
    }

    /// The client itself, for those who know what to do without an answer.
    pub(super) const fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The face that is meant, as the forwarder describes it.
    pub(super) async fn face(&mut self, choice: &FaceChoice) -> anyhow::Result<Option<FaceStatus>> {
        let mut faces: Vec<FaceStatus> = self.list("faces/list").await?;
        let uri = match choice {
            FaceChoice::Number(number) => {
                return Ok(faces.into_iter().find(|face| face.face == *number));
            }
            FaceChoice::Uri(uri) => uri,
        };
        let leading_to = |uri: &FaceUri| {
            let uri = uri.to_string();
            faces.iter().position(|face| face.uri == uri)
        };
        // Our forwarder's own faces may be known by the host's name.
        let found = match leading_to(uri) {
            Some(at) => Some(at),
            None => leading_to(&canonical(uri).await?),
        };
        Ok(found.map(|at| faces.swap_remove(at)))
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

    /// Where it was found.
    pub(super) const fn uri(&self) -> &FaceUri {
        &self.uri
    }

    /// Something that asks it for packets.
    pub(super) async fn asker(&self) -> anyhow::Result<Asker> {
        self.node.add_route(Name::root(), self.face, 0).await?;
        Asker::new(&self.node).await
    }

    pub(super) async fn close(self) {
        self.node.shutdown().await;
    }

    /// Adds advice to an error of a command or dataset, such as `faces/create`.
    pub(super) fn explain(&self, verb: &str, error: ClientError) -> anyhow::Error {
        let uri = &self.uri;
        let advice = match &error {
            ClientError::Refused {
                code: 403, text, ..
            } => self.advice_on_keys(verb, text),
            ClientError::Refused { code: 501, .. } => ": this forwarder cannot do so".to_owned(),
            ClientError::Refused {
                code: 404 | 410, ..
            } if !verb.starts_with("strategy-choice/") => {
                "; namecast face list shows the faces that there are".to_owned()
            }
            ClientError::Unanswered(_) if !uri.is_loopback() => {
                ": forwarders answer applications on their own machine only; run this command there"
                    .to_owned()
            }
            ClientError::Unanswered(_) => {
                ": is it an NDN forwarder with management, and is it alive?".to_owned()
            }
            _ => String::new(),
        };
        anyhow::anyhow!("{uri}: {error}{advice}")
    }

    /// Returns advice on a command that the forwarder refused because of its key, or because it had none.
    fn advice_on_keys(&self, verb: &str, text: &str) -> String {
        // The latter is all that NFD says.
        let is_of_key = text == Refusal::Key.to_string() || text == "authorization rejected";
        match &self.sign_as {
            _ if !is_of_key => String::new(),
            Some(name) => {
                format!("; it has to be told the certificate that 'namecast key {name}' prints")
            }
            None if verb == "faces/create" && !matches!(self.uri, FaceUri::Unix(_)) => {
                "; connect to its Unix socket for this, or sign with one of its keys: --sign-as NAME"
                    .to_owned()
            }
            None => "; sign with one of its keys: --sign-as NAME".to_owned(),
        }
    }
}

/// The address that a forwarder is told: as with nfdc, a host is looked up here.
///
/// # Errors
/// If the host has no address.
pub(super) async fn canonical(uri: &FaceUri) -> anyhow::Result<FaceUri> {
    let FaceUri::Host(host) = uri else {
        return Ok(uri.clone());
    };
    // There is at least one, or it is an error.
    let address = host.resolve().await?[0];
    Ok(match host.is_udp {
        true => FaceUri::Udp(address),
        false => FaceUri::Tcp(address),
    })
}
