//! Commands about faces: `faces/create`, `faces/update`, `faces/destroy`.

use namecast_forward::{FaceId, MIN_MTU};
use namecast_units::{ByteSize, Duration};

use super::faces::{flags, local_uri};
use super::{CONGESTION_MARKING, LOCAL_FIELDS, LP_RELIABILITY};
use super::{ControlParameters, Manager, Refused};
use crate::node::{FaceDescription, NodeError};
use crate::{FaceOptions, FaceUri, Persistency};

impl Manager {
    pub(super) async fn execute_faces(
        &self,
        verb: &[u8],
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        match verb {
            b"create" => self.create_face(parameters).await,
            b"update" => self.update_face(parameters, from).await,
            b"destroy" => {
                let face = parameters.face.ok_or_else(Refused::invalid)?;
                self.check_not_own(FaceId::from_number(face))?;
                let removed = self.node.remove_face(FaceId::from_number(face)).await;
                removed.map_err(Refused::internal)?;
                Ok(ControlParameters {
                    face: Some(face),
                    ..ControlParameters::default()
                })
            }
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }

    async fn create_face(
        &self,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        let (remote, options) = creatable(parameters)?;
        let interface = match remote {
            FaceUri::Ethernet(_) => Some(interface(parameters)?),
            _ => None,
        };
        let faces = self.node.faces().await.map_err(Refused::internal)?;
        let is_it = |face: &&FaceDescription| match &interface {
            // One that the peer's frames made gives way to one that stays.
            Some(_) => face.local == interface && face.persistency != Persistency::OnDemand,
            None => true,
        };
        let mut existing = faces.iter().filter(|face| face.remote == remote);
        if let Some(existing) = existing.find(is_it) {
            return Err(Refused {
                instead: Some(Box::new(properties(existing))),
                ..Refused::new(409, "Face with remote URI already exists")
            });
        }
        let created = match (&remote, &interface) {
            (FaceUri::Ethernet(peer), Some(FaceUri::Device(name))) => {
                self.node.connect_ethernet(name, *peer, &options).await
            }
            _ => self.node.connect_with(remote, &options).await,
        };
        let id = created.map_err(|error| match error {
            NodeError::NoEthernet(_) => {
                let text = format!("No channels available to connect: {error}");
                Refused::new(504, text)
            }
            NodeError::ImpossibleOptions(impossible) if impossible.local_fields.is_some() => {
                let text = "Local fields can only be enabled on faces with local scope";
                Refused::new(406, text)
            }
            other => Refused::internal(other),
        })?;
        let face = self.node.describe(id).await.map_err(Refused::internal)?;
        Ok(properties(&face))
    }

    async fn update_face(
        &self,
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        let face = match parameters.face {
            None | Some(0) => from,
            Some(other) => FaceId::from_number(other),
        };
        self.check_not_own(face)?;
        let options = options(parameters)?;
        let updated = self.node.update_face(face, options).await;
        updated.map_err(|error| match error {
            NodeError::ImpossibleOptions(options) => Refused {
                instead: Some(Box::new(named(&options))),
                ..Refused::new(409, "Invalid properties specified")
            },
            NodeError::NoSuchFace(_) => Refused::new(404, "Specified face does not exist"),
            other => Refused::internal(other),
        })?;
        let face = self.node.describe(face).await.map_err(Refused::internal)?;
        Ok(ControlParameters {
            uri: None,
            local_uri: None,
            ..properties(&face)
        })
    }

    fn check_not_own(&self, face: FaceId) -> Result<(), Refused> {
        match face == self.own_face {
            true => Err(Refused::new(406, "Management is asked by this face")),
            false => Ok(()),
        }
    }
}

/// Where the new face shall lead and how, if the node can make it as it is wanted.
fn creatable(parameters: &ControlParameters) -> Result<(FaceUri, FaceOptions), Refused> {
    let uri = parameters.uri.as_ref().ok_or_else(Refused::invalid)?;
    let options = options(parameters)?;
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
    let transport = match scheme {
        None => return Err(Refused::new(400, "Malformed command")),
        Some("udp" | "udp4" | "udp6") => "UDP",
        Some("tcp" | "tcp4" | "tcp6") => "TCP",
        Some("unix") => "Unix",
        Some("ws" | "wss") => "WebSocket",
        Some("ether") => "Ethernet",
        Some(_) => return Err(Refused::new(406, "Unsupported protocol")),
    };
    let remote: FaceUri = uri
        .parse()
        .map_err(|_| Refused::new(400, "Malformed command"))?;
    // As with NFD, whoever commands looks hosts up. A zone may be a number.
    let is_canonical = remote.to_string() == *uri || is_numbered(&remote, uri);
    if !is_canonical || matches!(remote, FaceUri::Host(_)) {
        return Err(Refused::new(400, "Non-canonical remote URI"));
    }
    if let Some(obstacle) = remote.obstacle() {
        return Err(Refused::new(406, format!("{uri}: {obstacle}")));
    }
    if let FaceUri::Udp(address) = remote
        && address.ip().is_multicast()
    {
        return Err(Refused::new(406, "Cannot create multicast UDP faces"));
    }
    if let FaceUri::Ethernet(address) = remote
        && address.is_group()
    {
        let text = "Cannot create multicast Ethernet faces";
        return Err(Refused::new(406, text));
    }
    if parameters.local_uri.is_some() && transport != "Ethernet" {
        let text = format!("Unicast {transport} faces cannot be created with a LocalUri");
        return Err(Refused::new(406, text));
    }
    if options.persistency == Some(Persistency::OnDemand) {
        let text = format!("Outgoing {transport} faces do not support on-demand persistency");
        return Err(Refused::new(406, text));
    }
    if parameters.mtu.is_some() && !matches!(transport, "UDP" | "Ethernet") {
        let text = format!("{transport} faces do not support MTU overrides");
        return Err(Refused::new(406, text));
    }
    if options.mtu.is_some_and(|mtu| mtu < MIN_MTU) {
        let text = format!("The MTU must be at least {MIN_MTU}");
        return Err(Refused::new(406, text));
    }
    Ok((remote, options))
}

/// Whether `uri` has the zone of `remote` as a number, and the rest as it is written.
fn is_numbered(remote: &FaceUri, uri: &str) -> bool {
    match remote {
        FaceUri::Udp(address) => uri == format!("udp6://{address}"),
        FaceUri::Tcp(address) => uri == format!("tcp6://{address}"),
        _ => false,
    }
}

/// The interface that a face to an Ethernet address is wanted on.
fn interface(parameters: &ControlParameters) -> Result<FaceUri, Refused> {
    let needed = || {
        let text = "Creation of unicast Ethernet faces requires a LocalUri with dev:// scheme";
        Refused::new(406, text)
    };
    let uri = parameters.local_uri.as_ref().ok_or_else(needed)?;
    let parsed = uri.parse();
    match parsed.map_err(|_| Refused::new(400, "Malformed command"))? {
        FaceUri::Device(name) => Ok(FaceUri::Device(name)),
        _ => Err(needed()),
    }
}

/// What a command chooses of a face.
fn options(parameters: &ControlParameters) -> Result<FaceOptions, Refused> {
    if parameters.flags.is_some() != parameters.mask.is_some() {
        return Err(Refused::invalid());
    }
    let chosen = |number: u64| Persistency::from_number(number).ok_or_else(Refused::invalid);
    let mtu = |mtu| usize::try_from(mtu).unwrap_or(usize::MAX);
    Ok(FaceOptions {
        persistency: parameters.persistency.map(chosen).transpose()?,
        local_fields: parameters.flag(LOCAL_FIELDS),
        reliability: parameters.flag(LP_RELIABILITY),
        mtu: parameters.mtu.map(mtu),
        congestion_marking: parameters.flag(CONGESTION_MARKING),
        congestion_threshold: parameters.default_congestion_threshold.map(ByteSize::bytes),
        congestion_interval: parameters
            .base_congestion_marking_interval
            .map(Duration::from_nanos),
        // NFD's commands have nothing for it.
        keep_alive: None,
    })
}

/// Impossible options, as a command names them.
fn named(options: &FaceOptions) -> ControlParameters {
    let bits = [
        (LOCAL_FIELDS, options.local_fields),
        (LP_RELIABILITY, options.reliability),
    ];
    let sum = |wanted: fn(Option<bool>) -> bool| {
        let chosen = bits.iter().filter(|(_, option)| wanted(*option));
        chosen.map(|(bit, _)| bit).sum()
    };
    let mask: u64 = sum(|option| option.is_some());
    ControlParameters {
        persistency: options.persistency.map(Persistency::number),
        flags: (mask != 0).then(|| sum(|option| option == Some(true))),
        mask: (mask != 0).then_some(mask),
        mtu: options.mtu.map(|mtu| mtu as u64),
        ..ControlParameters::default()
    }
}

/// A face, as the response to a command tells it. The MTU and when packets are marked, which are optional, are left to
/// `faces/list`: python-ndn takes them for errors where ndn-cxx puts them, behind the flags. ndn-cxx refuses a response with a mask.
fn properties(face: &FaceDescription) -> ControlParameters {
    ControlParameters {
        face: Some(face.id.number()),
        uri: Some(face.remote.to_string()),
        local_uri: Some(local_uri(face)),
        flags: Some(flags(face)),
        persistency: Some(face.persistency.number()),
        ..ControlParameters::default()
    }
}
