//! From settings to a running forwarder.

use std::path::{Path, PathBuf};

use anyhow::Context;
use namecast_command::report::causes;
use namecast_net::management::{ADMIT, Client, ControlParameters, SERVE};
use namecast_net::{
    FaceId, FaceUri, ListenError, Listener, Node, UnixAccess, make_private_directory,
};

use super::interfaces::Links;
use super::{Settings, StaticRoute};
use crate::manage::arguments::Origin;
use crate::{network_namespace, places};

/// What a forwarder listens on; it stops when this is dropped.
#[must_use = "dropping the listeners stops them"]
#[derive(Debug, Default)]
pub struct Listeners {
    sockets: Vec<Listener<std::net::SocketAddr>>,
    unix: Vec<Listener<PathBuf>>,
    links: Links,
    /// Remarks for people, such as a socket that was taken.
    pub remarks: Vec<String>,
}

impl Listeners {
    /// All addresses, TCP and UDP first, then the interfaces that carry Ethernet faces.
    pub fn uris(&self) -> Vec<String> {
        let sockets = self.sockets.iter().map(|socket| socket.uri().to_string());
        let unix = self.unix.iter().map(|unix| unix.uri().to_string());
        let ethernet = self.links.uris().map(ToString::to_string);
        sockets.chain(unix).chain(ethernet).collect()
    }
}

impl Settings {
    /// Starts the node with its faces, routes and strategies, and listens. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If an address that was asked for cannot be had, or the node refuses something.
    pub async fn start(&self) -> anyhow::Result<(Node, Listeners)> {
        let node = Node::start(self.node.clone());
        let mut client = Client::of_node(&node).await?;
        self.configure_cache(&mut client).await?;
        for (prefix, strategy) in &self.strategies {
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                strategy: Some(strategy.name()),
                ..ControlParameters::default()
            };
            let set = client.command("strategy-choice/set", &parameters).await;
            set.with_context(|| format!("the strategy of {prefix}"))?;
        }
        let mut listeners = Listeners::default();
        listeners.links = self.open_links(&node, &mut listeners.remarks).await?;
        self.connect(&node, &mut client).await?;
        // Applications that find the node find it as it is meant to be.
        self.listen(&node, &mut listeners).await?;
        Ok((node, listeners))
    }

    pub(super) async fn configure_cache(&self, client: &mut Client) -> anyhow::Result<()> {
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        let parameters = ControlParameters {
            flags: Some(flag(ADMIT, self.cache.admits) | flag(SERVE, self.cache.serves)),
            mask: Some(ADMIT | SERVE),
            ..ControlParameters::default()
        };
        client.command("cs/config", &parameters).await?;
        Ok(())
    }

    /// Makes the faces that need no interface, and the routes that lead to them.
    async fn connect(&self, node: &Node, client: &mut Client) -> anyhow::Result<()> {
        for face in self.faces.iter().filter(|face| face.interface.is_none()) {
            let made = node.connect_with(face.uri.clone(), &face.options).await;
            let number = made.with_context(|| format!("the face to {}", face.uri))?;
            self.route(client, number, &face.uri, None).await?;
        }
        Ok(())
    }

    /// Makes the routes that lead to a face.
    pub(super) async fn route(
        &self,
        client: &mut Client,
        face: FaceId,
        uri: &FaceUri,
        interface: Option<&String>,
    ) -> anyhow::Result<()> {
        let is_of_face =
            |route: &&StaticRoute| route.face == *uri && route.interface.as_ref() == interface;
        for route in self.routes.iter().filter(is_of_face) {
            let parameters = ControlParameters {
                name: Some(route.prefix.clone()),
                face: Some(face.number()),
                origin: Some(Origin::STATIC.0),
                cost: Some(route.cost),
                flags: Some(route.flags),
                ..ControlParameters::default()
            };
            let added = client.command("rib/register", &parameters).await;
            added.with_context(|| format!("the route of {} to {uri}", route.prefix))?;
        }
        Ok(())
    }

    async fn listen(&self, node: &Node, listeners: &mut Listeners) -> anyhow::Result<()> {
        // An address that was asked for and cannot be had is an error: others rely on it.
        for address in &self.udp {
            listeners.sockets.push(node.listen_udp(*address).await?);
        }
        for address in &self.tcp {
            listeners.sockets.push(node.listen_tcp(*address).await?);
        }
        match &self.unix {
            Some(paths) => {
                for path in paths {
                    let listener = node.listen_unix_as(path, &self.unix_access).await?;
                    listeners.unix.push(listener);
                }
            }
            None if !cfg!(unix) => {}
            None => match listen_usual(node, &self.unix_access).await {
                Ok(listener) => listeners.unix.push(listener),
                Err(error) => listeners
                    .remarks
                    .push(format!("no Unix socket: {}", causes(&error))),
            },
        }
        Ok(())
    }
}

/// Listens where the other commands of this user look first.
///
/// A forwarder in another network namespace may have that place: then the socket's name has the number of this namespace.
async fn listen_usual(node: &Node, access: &UnixAccess) -> anyhow::Result<Listener<PathBuf>> {
    let mut path = places::forwarder_socket()?;
    // For its owner only, as who can connect can command.
    let directory = path.parent().unwrap_or(Path::new("/"));
    let made = make_private_directory(directory);
    made.with_context(|| format!("cannot make {}", directory.display()))?;
    if network_namespace::is_elsewhere(&path).await
        && let Some(own) = places::forwarder_socket_of_network()
    {
        path = own;
    }
    match node.listen_unix_as(&path, access).await {
        Err(ListenError::InUse(path)) => anyhow::bail!(
            "another forwarder listens on {}; name a socket with --unix",
            path.display()
        ),
        other => Ok(other?),
    }
}
