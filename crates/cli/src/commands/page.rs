//! The page with its transports, for `demo` and `forwarder`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum_server::tls_rustls::RustlsConfig;
use namecast_net::tickets::{Tickets, TicketsFull, Token};
use namecast_net::web::{PageSource, Scheme};
use namecast_net::websocket::WebDoor;
use namecast_net::webtransport::{self, WebTransportListener};
use namecast_net::{DEFAULT_PORT, Listener, Node, NodeConfig};
use namecast_packet::Name;
use serde_json::{Value, json};

use crate::arguments::PagePort;
use crate::hexadecimal::hex;
use crate::hls::HlsServer;
use crate::page_server::{self, PageConfig, PageService};
use crate::telemetry::Telemetry;
use crate::tls::{self, TlsFiles};
use crate::web_listener::WebServer;

/// Distance from the port of the page to that of its encrypted form: 8080 and 8443.
const SECURE_PORT_OFFSET: u16 = 363;

/// Names that pages may publish, with the token of each.
#[derive(Default)]
pub(super) struct Invitations {
    tickets: Tickets,
    tokens: Vec<(Name, Token)>,
}

impl Invitations {
    /// For the names of `--allow-publish`.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn new(port: &PagePort) -> anyhow::Result<Self> {
        let tickets = Tickets::default();
        let token = |name: &Name| -> Result<_, TicketsFull> {
            Ok((name.clone(), tickets.issue(name.clone())?))
        };
        let tokens: Result<_, _> = port.allow_publish.iter().map(token).collect();
        Ok(Self {
            tokens: tokens.context("--allow-publish is there too often")?,
            tickets,
        })
    }

    /// Has a node take them.
    pub(super) fn configure(&self, mut config: NodeConfig) -> NodeConfig {
        config.management.tickets = self.tickets.clone();
        config
    }
}

/// A page that is being served.
pub(super) struct Page {
    server: WebServer,
    /// Where each name may be published, by the paths of the links.
    links: Vec<(Name, String)>,
    /// The page for other machines.
    secure: Option<(WebServer, RustlsConfig)>,
    /// Remarks for people, such as a port that was taken.
    pub(super) remarks: Vec<String>,
}

impl Page {
    /// Serves the page, WebSocket and WebTransport of `node`: to this machine, and if it is asked for, to others, where
    /// browsers insist on encryption.
    pub(super) async fn start(
        node: &Node,
        port: &PagePort,
        config: PageConfig,
        invitations: &Invitations,
        extras: (Telemetry, Router),
    ) -> anyhow::Result<Self> {
        let (telemetry, pushes) = extras;
        let mut remarks = Vec::new();
        let listener = bind(Ipv4Addr::LOCALHOST.into(), port.port, &mut remarks).await?;
        let address = SocketAddr::new(interface(port.listen), listener.local_addr()?.port());
        let certificate = port.tls.read()?;
        let secure = match port.listen || certificate.is_some() {
            true => {
                let secure = address.port().saturating_add(SECURE_PORT_OFFSET);
                Some(bind(interface(port.listen), secure, &mut remarks).await?)
            }
            false => None,
        };
        let mut pages = vec![(Scheme::Http, address.port())];
        if let Some(secure) = &secure {
            pages.push((Scheme::Https, secure.local_addr()?.port()));
        }
        let webtransport = match webtransport(node, address, &pages).await {
            Ok(listener) => Some(listener),
            Err(error) => {
                remarks.push(format!("no WebTransport ({error}): pages use WebSocket"));
                None
            }
        };
        let web = WebDoor::open(node, &pages);
        let streams = HlsServer::new(node.clone(), &config);
        telemetry.observe_listener(streams.state());
        let service = PageService::new(node.clone(), web, config, webtransport, telemetry);
        let service = service.with_streams(streams.router()).with_pushes(pushes);
        let reached = secure.as_ref().and_then(|it| it.local_addr().ok());
        let reached = reached.filter(|address| !address.ip().is_loopback());
        let service = match reached.map(|address| address.port()) {
            Some(port) => service.reached_at(port, urls_at(port)),
            None => service,
        };
        // What is after the # stays in the browser: no server, log or next page sees it.
        let link = |(name, token): &(Name, Token)| {
            let path = format!("live.html?name={name}#{}", hex(token));
            (name.clone(), path)
        };
        let secure = match secure {
            Some(listener) => {
                let config = certificate.map_or_else(|| self_signed(&mut remarks), Ok)?;
                let config = RustlsConfig::from_config(config);
                let server = service.start_secure(listener, config.clone())?;
                Some((server, config))
            }
            None => None,
        };
        Ok(Self {
            server: service.start(listener)?,
            links: invitations.tokens.iter().map(link).collect(),
            secure,
            remarks,
        })
    }

    /// Serves new connections with the certificate that the files hold now. Returns what was done, if anything.
    ///
    /// # Errors
    /// If a file is not right: the certificate before it stays.
    pub(super) fn reload(&self, files: &TlsFiles) -> anyhow::Result<Option<String>> {
        let Some(certificate) = files.read()? else {
            return Ok(None);
        };
        let Some((_, config)) = &self.secure else {
            return Ok(Some("restart the forwarder for TLS".to_owned()));
        };
        config.reload_from_config(certificate);
        Ok(Some("certificate of the page read".to_owned()))
    }

    /// Where to open the page on this machine.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.server.address().port())
    }

    /// Where to open it on other machines, if that was asked for.
    pub(super) fn other_urls(&self) -> Vec<String> {
        let Some((secure, _)) = &self.secure else {
            return Vec::new();
        };
        let port = secure.address().port();
        if secure.address().ip().is_loopback() {
            return vec![format!("https://localhost:{port}/")];
        }
        urls_at(port)
    }

    /// All of these, this machine's first.
    pub(super) fn urls(&self) -> impl Iterator<Item = String> {
        core::iter::once(self.url()).chain(self.other_urls())
    }

    /// The links of `--allow-publish`, by name: at each address of the page.
    pub(super) fn live_links(&self) -> impl Iterator<Item = (&Name, Vec<String>)> {
        let urls: Vec<_> = self.urls().collect();
        self.links.iter().map(move |(name, path)| {
            let links = urls.iter().map(|url| format!("{url}{path}"));
            (name, links.collect())
        })
    }

    /// The same, for programs.
    pub(super) fn live_links_json(&self) -> Value {
        let link =
            |(name, urls): (&Name, Vec<String>)| json!({ "name": name.to_string(), "urls": urls });
        self.live_links().map(link).collect()
    }

    /// The same, for people.
    pub(super) fn live_lines(&self) -> Vec<String> {
        let line = |(name, urls): (&Name, Vec<String>)| {
            let urls = urls.join("  or  ");
            format!("Go live as {name}, once: {urls}")
        };
        self.live_links().map(line).collect()
    }

    /// The first of the other addresses for a telephone's camera.
    pub(super) fn qr_code(&self) -> Option<String> {
        let url = self.other_urls().into_iter().next()?;
        let code = qrcode::QrCode::new(url).ok()?;
        Some(code.render::<qrcode::render::unicode::Dense1x2>().build())
    }
}

/// The page at each of this machine's addresses, for other machines.
fn urls_at(port: u16) -> Vec<String> {
    let url = |address: IpAddr| format!("https://{}/", SocketAddr::new(address, port));
    network_addresses().into_iter().map(url).collect()
}

/// A certificate of this node's own.
fn self_signed(remarks: &mut Vec<String>) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let names = network_addresses().into_iter().map(|ip| ip.to_string());
    let names = names.chain(["localhost".to_owned()]).collect();
    let remark = "browsers on other devices warn of the certificate, which is this node's own";
    remarks.push(remark.to_owned());
    tls::self_signed(names)
}

async fn bind(
    interface: IpAddr,
    port: u16,
    remarks: &mut Vec<String>,
) -> anyhow::Result<tokio::net::TcpListener> {
    let wanted = SocketAddr::new(interface, port);
    let listener = page_server::bind(wanted)
        .await
        .with_context(|| format!("cannot serve the page on {wanted}: choose a port with --port"))?;
    let found = listener.local_addr()?.port();
    if found != port && port != 0 {
        remarks.push(format!("port {port} is taken, the page is on {found}"));
    }
    Ok(listener)
}

/// WebTransport on the page's own port number, which is free for UDP more often than not, or on any.
async fn webtransport(
    node: &Node,
    page: SocketAddr,
    pages: &[PageSource],
) -> Result<WebTransportListener, namecast_net::ListenError> {
    match webtransport::listen(node, page, pages).await {
        Ok(listener) => Ok(listener),
        Err(_) => webtransport::listen(node, SocketAddr::new(page.ip(), 0), pages).await,
    }
}

/// All interfaces, or this machine alone.
pub(super) fn interface(listen: bool) -> IpAddr {
    match listen {
        true => Ipv4Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::LOCALHOST.into(),
    }
}

/// This machine's addresses on its networks.
pub(super) fn network_addresses() -> Vec<IpAddr> {
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
    /// Receives UDP and accepts TCP on `interface`.
    pub(super) async fn open(node: &Node, interface: IpAddr) -> Self {
        let address = SocketAddr::new(interface, DEFAULT_PORT);
        let mut doors = Self::default();
        doors.keep(node.listen_udp(address).await);
        doors.keep(node.listen_tcp(address).await);
        doors
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
