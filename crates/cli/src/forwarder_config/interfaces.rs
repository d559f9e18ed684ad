//! Faces that need a network interface, which may come later than the forwarder, and go and come back.

use std::sync::Arc;

use anyhow::Context;
use namecast_net::management::Client;
use namecast_net::{
    EthernetConfig, EthernetPort, FaceId, FaceUri, InterfaceWatch, ListenError, MacAddress, Node,
    UdpMulticast,
};
use namecast_units::Duration;
use tokio::task::JoinSet;

use super::Settings;

/// First and longest pause between looks for an interface that is not there.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// What interfaces carry, and will once they are there. Dropping it ends the Ethernet faces, and the looking.
#[derive(Debug, Default)]
#[must_use = "dropping it ends Ethernet faces"]
pub(super) struct Links {
    ethernet: Vec<FaceUri>,
    kept: JoinSet<()>,
}

impl Links {
    /// The interfaces that carry Ethernet faces from the start.
    pub(super) fn uris(&self) -> impl Iterator<Item = &FaceUri> {
        self.ethernet.iter()
    }
}

/// How one interface is used.
#[derive(Clone, Debug)]
enum Link {
    Group(UdpMulticast),
    Ethernet(EthernetConfig),
}

impl Link {
    fn interface(&self) -> &String {
        match self {
            Self::Group(wanted) => &wanted.interface,
            Self::Ethernet(wanted) => &wanted.interface,
        }
    }

    /// What its faces rely on.
    fn watch(&self) -> std::io::Result<InterfaceWatch> {
        let group = match self {
            Self::Group(wanted) => Some(wanted.group.ip()),
            Self::Ethernet(_) => None,
        };
        InterfaceWatch::new(self.interface(), group)
    }

    /// Where the face to everybody leads.
    const fn group(&self) -> FaceUri {
        match self {
            Self::Group(wanted) => FaceUri::Udp(wanted.group),
            Self::Ethernet(_) => FaceUri::Ethernet(MacAddress::NDN_MULTICAST),
        }
    }
}

/// The faces of one interface.
#[derive(Debug)]
struct Opened {
    /// None if it went while they were made.
    watch: Option<InterfaceWatch>,
    /// The face to a UDP group, which does not end by itself.
    group: Option<FaceId>,
    /// Ends its faces when it is dropped.
    port: Option<EthernetPort>,
}

impl Opened {
    /// Waits until the interface is gone, and tells why it counts as gone.
    async fn lost(&self) -> String {
        match &self.watch {
            Some(watch) => watch.lost().await,
            None => "it went while its faces were made".to_owned(),
        }
    }

    async fn close(self, node: &Node) {
        if let Some(face) = self.group {
            // If the node has stopped, or an operator was faster, the face is gone.
            let _ = node.remove_face(face).await;
        }
        drop(self.port);
    }
}

impl Settings {
    /// Makes the faces that need an interface, and the routes that lead to them. An interface that is not there is looked
    /// for from time to time, which `remarks` tell.
    ///
    /// # Errors
    /// If an interface cannot be used, or is not there and not to be waited for.
    pub(super) async fn open_links(
        &self,
        node: &Node,
        remarks: &mut Vec<String>,
    ) -> anyhow::Result<Links> {
        let groups = self.multicast.iter().cloned().map(Link::Group);
        let ethernet = self.ethernet.iter().cloned().map(Link::Ethernet);
        let mut links = Links::default();
        for link in groups.chain(ethernet) {
            let opened = match self.open(node, &link).await {
                Ok(opened) => {
                    let uri = opened.port.as_ref().map(|port| port.uri().clone());
                    links.ethernet.extend(uri);
                    Some(opened)
                }
                Err(error) if is_absent(&error) && !self.interface_timeout.is_zero() => {
                    let (group, timeout) = (link.group(), self.interface_timeout);
                    let remark = format!(
                        "{group} on {} has to wait, for {timeout:?} at most: {error:#}",
                        link.interface()
                    );
                    tracing::warn!("{remark}");
                    remarks.push(remark);
                    None
                }
                Err(error) => return Err(error),
            };
            let settings = Arc::new(self.clone());
            links.kept.spawn(settings.keep(node.clone(), link, opened));
        }
        Ok(links)
    }

    /// Makes the faces of one interface with their routes.
    async fn open(&self, node: &Node, link: &Link) -> anyhow::Result<Opened> {
        let watch = link.watch().ok();
        let (face, port) = match link {
            Link::Group(wanted) => (Some(node.join_udp_multicast(wanted).await?), None),
            Link::Ethernet(wanted) => {
                let port = node.open_ethernet(wanted).await?;
                (port.multicast(), Some(port))
            }
        };
        let mut client = Client::of_node(node).await?;
        let interface = Some(link.interface());
        if let Some(face) = face {
            self.route(&mut client, face, &link.group(), interface)
                .await?;
        }
        if let Some(port) = &port {
            for face in &self.faces {
                let FaceUri::Ethernet(peer) = face.uri else {
                    continue;
                };
                if face.interface.as_ref() == interface {
                    let made = port.connect(peer, &face.options).await;
                    let number = made.with_context(|| format!("the face to {}", face.uri))?;
                    self.route(&mut client, number, &face.uri, interface)
                        .await?;
                }
            }
        }
        Ok(Opened {
            watch,
            group: face.filter(|_| port.is_none()),
            port,
        })
    }

    /// Keeps what one interface carries, however often that goes and comes back.
    async fn keep(self: Arc<Self>, node: Node, link: Link, mut opened: Option<Opened>) {
        let (group, interface) = (link.group(), link.interface());
        loop {
            if opened.is_none() {
                opened = self.await_link(&node, &link).await;
            }
            let Some(present) = opened.take() else { return };
            let reason = present.lost().await;
            tracing::warn!(%group, interface, reason, "the interface is gone: its faces end, and are made anew once it is back");
            present.close(&node).await;
        }
    }

    /// Looks for an interface until it is there; nothing if there was no hope for too long.
    async fn await_link(&self, node: &Node, link: &Link) -> Option<Opened> {
        let clock = node.clock();
        let (group, interface) = (link.group(), link.interface());
        let until = clock.now() + self.interface_timeout;
        let (mut pause, longest) = PAUSES;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
            match self.open(node, link).await {
                Ok(opened) => {
                    tracing::info!(%group, interface, "the interface is there");
                    return Some(opened);
                }
                Err(error) if is_absent(&error) && clock.now() < until => {
                    tracing::debug!(%group, interface, %error, "the interface is still awaited");
                }
                Err(error) => {
                    tracing::error!(%group, interface, "given up: {error:#}");
                    return None;
                }
            }
        }
    }
}

/// Whether it fails for want of an interface, or of what the interface gets when it comes up.
fn is_absent(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<ListenError>();
    cause.is_some_and(ListenError::is_of_absent_interface)
}
