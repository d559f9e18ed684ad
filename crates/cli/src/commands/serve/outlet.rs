//! Where streams are published: on a node in this process, with the page, or through another forwarder.

use namecast_net::{FaceId, Node, NodeConfig};
use namecast_packet::Name;
use namecast_units::ByteSize;
use serde_json::{Value, json};

use super::super::claiming::RegisteredNames;
use super::super::page::{Doors, Invitations, Page, interface};
use super::super::uplink::Uplink;
use super::Serve;
use crate::connect::Connect;
use crate::page_server::PageConfig;
use crate::push::Gate;
#[cfg(feature = "whip")]
use crate::push::whip::Whip;
use crate::telemetry::Reporter;

/// What the node keeps for many who watch: half a minute of the highest rung of one stream.
const CACHE: ByteSize = ByteSize::mebibytes(16);

/// A node with its page, and how others get at it.
pub(super) struct Outlet {
    node: Node,
    page: Page,
    #[cfg(feature = "whip")]
    whip: Whip,
    reach: Reach,
}

enum Reach {
    /// Others connect to this node.
    Here(Doors),
    /// They connect to the forwarder that this node is connected to.
    Through(Uplink, RegisteredNames),
}

impl Reach {
    async fn open(node: &Node, arguments: &Serve) -> anyhow::Result<Self> {
        if let Some(remote) = &arguments.connect {
            let connect = Connect {
                connect: Some(remote.clone()),
            };
            let uplink = Uplink::new(node, &connect).await?;
            return Ok(Self::Through(uplink, RegisteredNames::default()));
        }
        let interface = interface(arguments.page.listen);
        Ok(Self::Here(Doors::open(node, interface).await))
    }
}

impl Outlet {
    /// Starts the node, its page, and the connection if there is to be one.
    pub(super) async fn open(
        arguments: &Serve,
        gate: &Gate,
        stats: &mut Reporter,
    ) -> anyhow::Result<Self> {
        let mut config = NodeConfig::caching(CACHE);
        config.web.allow_origins.clone_from(&arguments.allow_origin);
        let invitations = Invitations::new(&arguments.page)?;
        let node = Node::start(invitations.configure(config));
        stats.observe(&node);
        let reach = Reach::open(&node, arguments).await?;
        let config = PageConfig {
            name: None,
            key: None,
        };
        #[cfg(feature = "whip")]
        let whip = super::whip::listen(gate, arguments).await?;
        #[cfg(feature = "whip")]
        stats.telemetry().observe_listener(whip.state());
        #[cfg(feature = "whip")]
        let pushes = whip.router();
        #[cfg(not(feature = "whip"))]
        let (pushes, _) = (axum::Router::new(), gate);
        let extras = (stats.telemetry(), pushes);
        let page = Page::start(&node, &arguments.page, config, &invitations, extras).await?;
        Ok(Self {
            node,
            page,
            #[cfg(feature = "whip")]
            whip,
            reach,
        })
    }

    /// Where a stream is published, and watched.
    pub(super) fn place(&self, name: &Name) -> Place {
        let node = self.node.clone();
        let uplink = match &self.reach {
            Reach::Here(_) => None,
            Reach::Through(uplink, registered) => Some((uplink.face(), registered.clone())),
        };
        let pages = self.page.urls();
        let urls = pages.map(|page| format!("{page}?name={name}")).collect();
        Place { node, uplink, urls }
    }

    /// How the connection to the forwarder stands, for people, when that changes; nothing where there is none.
    pub(super) async fn link_changed(&mut self) -> Option<String> {
        let Reach::Through(uplink, _) = &mut self.reach else {
            return None;
        };
        Some(uplink.changed().await.1)
    }

    /// What there is, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Reach::Here(doors) = &self.reach {
            lines.push(format!("Node: {}", doors.uris().join("  ")));
            lines.extend(doors.remarks.iter().map(|remark| format!("({remark})")));
        }
        let page = &self.page;
        lines.extend(page.remarks.iter().map(|remark| format!("({remark})")));
        lines.extend(page.urls().map(|url| format!("Page: {url}")));
        lines.extend(page.live_lines());
        #[cfg(feature = "whip")]
        lines.extend(super::whip::lines(page, &self.whip));
        lines
    }

    /// The same for programs.
    pub(super) fn object(&self) -> Value {
        let (url, other_urls) = (self.page.url(), self.page.other_urls());
        let mut object =
            json!({ "url": url, "other_urls": other_urls, "go_live": self.page.live_links_json() });
        match &self.reach {
            Reach::Here(doors) => object["faces"] = json!(doors.uris()),
            Reach::Through(uplink, _) => object["connect"] = json!(uplink.remote()),
        }
        object
    }

    /// Sends what is queued, and ends.
    ///
    /// # Errors
    /// If the forwarder was never there.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.node.shutdown().await;
        match self.reach {
            Reach::Here(_) => Ok(()),
            Reach::Through(uplink, _) => uplink.ensure_was_up(),
        }
    }
}

/// Where a stream is published.
pub(super) struct Place {
    pub(super) node: Node,
    /// Face of the forwarder that the stream is published through, and names that are registered there.
    pub(super) uplink: Option<(FaceId, RegisteredNames)>,
    /// Where the page shows it.
    pub(super) urls: Vec<String>,
}
