//! The page with its transports, for `demo` and `forwarder`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context;
use namecast_net::webtransport::{self, WebTransportListener};
use namecast_net::{Listener, Node};

use crate::arguments::PagePort;
use crate::page_server::{self, MoreStatus, PageConfig, PageServer, PageService};

/// A page that is being served.
pub(super) struct Page {
    server: PageServer,
    /// Remarks for people, such as a port that was taken.
    pub(super) remarks: Vec<String>,
    listens: bool,
}

impl Page {
    /// Serves the page, WebSocket and WebTransport of `node`.
    pub(super) async fn start(
        node: &Node,
        port: &PagePort,
        config: PageConfig,
        more: Option<MoreStatus>,
    ) -> anyhow::Result<Self> {
        let wanted = SocketAddr::new(interface(port.listen), port.port);
        let mut remarks = Vec::new();
        let listener = page_server::bind(wanted).await.with_context(|| {
            format!("cannot serve the page on {wanted}: choose a port with --port")
        })?;
        let address = listener.local_addr()?;
        if address.port() != port.port && port.port != 0 {
            remarks.push(format!(
                "port {} is taken, the page is on {}",
                port.port,
                address.port()
            ));
        }
        let webtransport = match webtransport(node, address).await {
            Ok(listener) => Some(listener),
            Err(error) => {
                remarks.push(format!("no WebTransport ({error}): pages use WebSocket"));
                None
            }
        };
        let server = PageService::new(node.clone(), config, webtransport, more).start(listener)?;
        Ok(Self {
            server,
            remarks,
            listens: port.listen,
        })
    }

    /// Where to open the page on this machine.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.server.address().port())
    }

    /// Where to open it on other machines, if that was asked for.
    pub(super) fn other_urls(&self) -> Vec<String> {
        if !self.listens {
            return Vec::new();
        }
        let port = self.server.address().port();
        let url = |address: IpAddr| format!("http://{}/", SocketAddr::new(address, port));
        network_addresses().into_iter().map(url).collect()
    }
}

/// WebTransport on the page's own port number, which is free for UDP more often than not, or on any.
async fn webtransport(
    node: &Node,
    page: SocketAddr,
) -> Result<WebTransportListener, namecast_net::ListenError> {
    match webtransport::listen(node, page).await {
        Ok(listener) => Ok(listener),
        Err(_) => webtransport::listen(node, SocketAddr::new(page.ip(), 0)).await,
    }
}

fn interface(listen: bool) -> IpAddr {
    match listen {
        true => Ipv4Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::LOCALHOST.into(),
    }
}

/// This machine's addresses on its networks.
fn network_addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces
        .into_iter()
        .map(|interface| interface.ip())
        .filter(|address| address.is_ipv4() && !address.is_loopback())
        .collect()
}

/// Listeners for other programs on this machine. One whose port is taken is left out, and said.
#[derive(Default)]
pub(super) struct Doors {
    sockets: Vec<Listener<SocketAddr>>,
    /// Remarks for people.
    pub(super) remarks: Vec<String>,
}

impl Doors {
    /// Receives UDP at `address`.
    pub(super) async fn udp(&mut self, node: &Node, address: SocketAddr) {
        let listener = node.listen_udp(address).await;
        self.keep(listener);
    }

    /// Accepts TCP at `address`.
    pub(super) async fn tcp(&mut self, node: &Node, address: SocketAddr) {
        let listener = node.listen_tcp(address).await;
        self.keep(listener);
    }

    fn keep(&mut self, listener: Result<Listener<SocketAddr>, namecast_net::ListenError>) {
        match listener {
            Ok(listener) => self.sockets.push(listener),
            Err(error) => self.remarks.push(error.to_string()),
        }
    }

    /// Addresses that others can connect to.
    pub(super) fn uris(&self) -> Vec<String> {
        let uri = |listener: &Listener<SocketAddr>| listener.uri().to_string();
        self.sockets.iter().map(uri).collect()
    }
}
