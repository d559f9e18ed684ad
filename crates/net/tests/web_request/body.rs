//! Requests to a node's web server from anybody: nobody is taken for more than his address, the host that he calls and the page
//! that he comes from allow, and whatever octets arrive are answered or refused. Body of a fuzz target (see `fuzz/`), run here
//! on damaged requests.

use core::pin::pin;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::Extension;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use namecast_net::web::{
    self, ANY_ORIGIN, PageSource, Purpose, Refusal, Scheme, Visitor, WebConfig, WebRequest,
};
use namecast_net::websocket::WebDoor;
use namecast_net::{Node, NodeConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

const PAGES: &[PageSource] = &[(Scheme::Http, 8080), (Scheme::Https, 8443)];
/// What this node may be called.
const OWN_NAME: &str = "cam.example";
const ALLOWED: &str = "https://watch.example";
const PROXY: &str = "10.0.0.2";
/// Where requests come from.
const PEERS: [&str; 8] = [
    "127.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    PROXY,
    "::ffff:10.0.0.2",
    "198.51.100.7",
    "192.168.1.9",
    "2001:db8::5",
];
/// Hosts of requests and of pages.
const HOSTS: [&str; 16] = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    OWN_NAME,
    "CAM.example",
    "watch.example",
    "evil.example",
    "localhost.evil.example",
    "cam.example.",
    "192.168.1.5",
    "203.0.113.9",
    "[2001:db8::1]",
    "[::ffff:127.0.0.1]",
    "127.0.0.1.evil.example",
    "0.0.0.0",
    "user@localhost",
];
const PORTS: [&str; 8] = [
    "", ":8080", ":8443", ":443", ":80", ":", ":65536", ":8080:1",
];
/// Headers of composed requests, each with its values.
const LINES: [(&str, [&str; 4]); 9] = [
    ("x-forwarded-for", ["127.0.0.1", "198.51.100.7", "", "::1"]),
    (
        "x-forwarded-host",
        ["localhost", OWN_NAME, "evil.example", "127.0.0.1:8080"],
    ),
    ("x-forwarded-proto", ["https", "http", "HTTPS", "ws"]),
    ("forwarded", ["for=127.0.0.1", "host=localhost", "", "x"]),
    ("via", ["1.1 proxy", "x", "", "2"]),
    ("x-real-ip", ["127.0.0.1", "::1", "", "x"]),
    (
        "sec-fetch-site",
        ["same-origin", "none", "cross-site", "same-site"],
    ),
    (
        "origin",
        [
            "null",
            ALLOWED,
            "HTTPS://WATCH.EXAMPLE",
            "http://evil.example",
        ],
    ),
    ("upgrade", ["websocket", "h2c", "", "x"]),
];

/// The first octet says what the others are.
pub(crate) fn web_request(octets: &[u8]) {
    let Some((what, rest)) = octets.split_first() else {
        return;
    };
    match what % 3 {
        0 => composed(rest),
        1 => written(rest),
        _ => served(rest),
    }
}

/// A node and how a request came to it.
#[derive(Clone)]
struct Scene {
    config: WebConfig,
    peer: Option<IpAddr>,
    scheme: Scheme,
    purpose: Purpose,
    authority: Option<String>,
    headers: HeaderMap,
}

impl Scene {
    fn new([how, who]: [u8; 2]) -> Self {
        let is = |bit: u8| how & 1 << bit != 0;
        let mut config = WebConfig {
            websocket_local: is(2),
            ..WebConfig::default()
        };
        if is(0) {
            config.host_names.push(OWN_NAME.to_owned());
        }
        if is(1) {
            config
                .trusted_proxies
                .push(PROXY.parse().expect("an address"));
        }
        match how >> 6 {
            0 | 1 => {}
            2 => config.allow_origins.push(ALLOWED.to_owned()),
            _ => config.allow_origins.push(ANY_ORIGIN.to_owned()),
        }
        let peer = PEERS.get(usize::from(who) % (PEERS.len() + 1));
        Self {
            config,
            peer: peer.map(|peer| peer.parse().expect("an address")),
            scheme: if is(3) { Scheme::Https } else { Scheme::Http },
            purpose: if is(4) { Purpose::Read } else { Purpose::Face },
            authority: None,
            headers: HeaderMap::new(),
        }
    }

    fn request(&self) -> WebRequest<'_> {
        WebRequest {
            peer: self.peer,
            scheme: self.scheme,
            authority: self.authority.as_deref(),
            headers: &self.headers,
            purpose: self.purpose,
        }
    }

    fn judge(&self) -> Result<Visitor, Refusal> {
        self.config.judge(PAGES, &self.request())
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            self.headers.append(name, value);
        }
    }
}

fn pick<'a>(from: &[&'a str], number: u8) -> &'a str {
    from[usize::from(number) % from.len()]
}

/// Two octets for the node and the peer, two for the host, two for the page, and one for each further header.
fn composed(octets: &[u8]) {
    let Some((&[how, who, host, port, page, page_port], rest)) = octets.split_first_chunk() else {
        return;
    };
    let mut scene = Scene::new([how, who]);
    if host < 240 {
        scene.authority = Some(format!("{}{}", pick(&HOSTS, host), pick(&PORTS, port)));
    }
    if page < 224 {
        let scheme = if page_port & 8 == 0 { "http" } else { "https" };
        let origin = format!(
            "{scheme}://{}{}",
            pick(&HOSTS, page),
            pick(&PORTS, page_port)
        );
        scene.add("origin", origin.as_bytes());
    }
    for line in rest.iter().take(8) {
        let (name, values) = LINES[usize::from(line >> 2) % LINES.len()];
        scene.add(name, values[usize::from(line & 3)].as_bytes());
    }
    check(&scene);
}

/// Two octets for the node and the peer, then lines: the authority, and headers.
fn written(octets: &[u8]) {
    let Some((&first, rest)) = octets.split_first_chunk() else {
        return;
    };
    let mut scene = Scene::new(first);
    let mut lines = rest.split(|&octet| octet == b'\n');
    let authority = lines
        .next()
        .and_then(|line| core::str::from_utf8(line).ok());
    scene.authority = authority.map(str::to_owned);
    for line in lines.take(16) {
        let mut parts = line.splitn(2, |&octet| octet == b':');
        if let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            scene.add(&String::from_utf8_lossy(name), value);
        }
    }
    check(&scene);
}

/// A host without its port, in one spelling; `None` if it is no host.
fn host(authority: &str) -> Option<String> {
    let (host, is_bracketed) = match authority.strip_prefix('[') {
        Some(rest) => (rest.split(']').next()?, true),
        None => (authority.split(':').next()?, false),
    };
    if is_bracketed {
        let address: Ipv6Addr = host.parse().ok()?;
        return Some(address.to_canonical().to_string());
    }
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

fn port(authority: &str, is_https: bool) -> Option<u16> {
    let end = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[end..].split_once(':') {
        None | Some((_, "")) => Some(if is_https { 443 } else { 80 }),
        Some((_, port)) => port.parse().ok(),
    }
}

/// What is known of a request by looking at it differently.
struct View {
    is_here: bool,
    is_by_proxy: bool,
    is_forwarded: bool,
    /// The host that it is for, and whether by TLS.
    target: Option<(String, String, bool)>,
    origins: Vec<String>,
}

impl View {
    fn new(scene: &Scene) -> Self {
        let peer = scene.peer.map(|peer| peer.to_canonical());
        let is_by_proxy = peer.is_some_and(|peer| scene.config.trusted_proxies.contains(&peer));
        let text = |name: &str| {
            let value = scene.headers.get(name).filter(|_| is_by_proxy);
            value
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let authority = text("x-forwarded-host").or_else(|| scene.authority.clone());
        let is_https = match text("x-forwarded-proto").as_deref() {
            Some("https") => true,
            Some("http") => false,
            _ => scene.scheme == Scheme::Https,
        };
        let target = authority.and_then(|authority| Some((host(&authority)?, authority, is_https)));
        let origins = scene.headers.get_all("origin").iter();
        let is_proxys = |name: &HeaderName| {
            let name = name.as_str();
            ["via", "forwarded", "x-real-ip"].contains(&name) || name.starts_with("x-forwarded-")
        };
        Self {
            is_here: peer.is_some_and(|peer| peer.is_loopback()),
            is_by_proxy,
            is_forwarded: scene.headers.keys().any(is_proxys),
            target,
            origins: origins
                .map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned())
                .collect(),
        }
    }

    fn is_own_host(&self, config: &WebConfig) -> bool {
        self.target.as_ref().is_some_and(|(host, _, _)| {
            host == "localhost"
                || host.parse::<IpAddr>().is_ok()
                || config.host_names.contains(host)
        })
    }

    /// Whether a request may count as one of the node's own page.
    fn may_be_own(&self, scene: &Scene) -> bool {
        let Some((target, authority, is_https)) = &self.target else {
            return false;
        };
        let origin = match &self.origins[..] {
            [] => {
                let site = scene.headers.get("sec-fetch-site");
                return match scene.purpose {
                    Purpose::Read => site.is_none_or(|it| it == "none" || it == "same-origin"),
                    Purpose::Face => self.is_here && scene.config.websocket_local,
                };
            }
            [origin] => origin,
            _ => return false,
        };
        let (is_page_https, page) = match (
            origin.strip_prefix("https://"),
            origin.strip_prefix("http://"),
        ) {
            (Some(page), _) => (true, page),
            (_, Some(page)) => (false, page),
            _ => return false,
        };
        let (Some(page_host), Some(page_port)) = (host(page), port(page, is_page_https)) else {
            return false;
        };
        let scheme = if is_page_https {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let is_just_there =
            is_page_https == *is_https && Some(page_port) == port(authority, *is_https);
        let is_beside = PAGES.contains(&(scheme, page_port));
        let is_by_name = scene.config.host_names.contains(&page_host)
            && scheme == Scheme::Https
            && page_port == 443;
        let is_same_host =
            page_host == *target || is_loopback(&page_host) && is_loopback(target) && is_beside;
        is_same_host && (is_just_there || is_beside || is_by_name)
    }

    fn may_be_allowed(&self, config: &WebConfig) -> bool {
        let [origin] = &self.origins[..] else {
            return self.origins.is_empty();
        };
        let is_any = config
            .allow_origins
            .iter()
            .any(|allowed| allowed == ANY_ORIGIN);
        let is_private = |host: &str| {
            is_loopback(host) || host.starts_with("192.168.") || host.starts_with("10.")
        };
        let target = self.target.as_ref();
        let is_at_home = target.is_none_or(|(host, _, _)| is_private(host));
        config
            .allow_origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin))
            || is_any && !is_at_home
    }
}

/// Nobody is taken for more than he may be, nor with less said of him than before.
fn check(scene: &Scene) {
    let judged = scene.judge();
    let view = View::new(scene);
    match &judged {
        Ok(visitor) => {
            assert!(
                view.is_own_host(&scene.config),
                "a foreign host is never served"
            );
            assert!(view.origins.len() < 2, "nobody comes from two pages");
            if *visitor >= Visitor::OwnPage {
                assert!(view.may_be_own(scene), "a foreign page is never own");
                assert!(view.is_by_proxy || !view.is_forwarded);
            } else {
                let is_demoted = view.is_forwarded && view.may_be_own(scene);
                assert!(is_demoted || view.may_be_allowed(&scene.config));
            }
            if *visitor == Visitor::Local {
                assert!(view.is_here && !view.is_by_proxy && !view.is_forwarded);
            }
        }
        Err(Refusal::ForeignHost(_)) => assert!(!view.is_own_host(&scene.config)),
        Err(Refusal::ForeignOrigin(_)) => assert!(!view.origins.is_empty()),
        Err(Refusal::NoHost) => {}
    }
    if let Some(reader) = scene.config.reader(&scene.request()) {
        assert_eq!(view.origins, [reader]);
        assert!(view.may_be_allowed(&scene.config) && judged.is_ok());
    }
    let passed_on = with(scene, |scene| scene.add("via", b"1.1 proxy"));
    assert!(view.is_by_proxy || passed_on < Ok(Visitor::OwnPage).into());
    let from_afar = with(scene, |scene| scene.peer = "198.51.100.7".parse().ok());
    assert!(from_afar < Ok(Visitor::Local).into());
    let without_leave = with(scene, |scene| scene.config.allow_origins.clear());
    assert!(
        without_leave <= judged.into(),
        "leave for others never costs"
    );
}

/// Who a request is taken for, those that are refused below all others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing(Option<Visitor>);

impl From<Result<Visitor, Refusal>> for Standing {
    fn from(judged: Result<Visitor, Refusal>) -> Self {
        Self(judged.ok())
    }
}

fn with(scene: &Scene, change: impl FnOnce(&mut Scene)) -> Standing {
    let mut scene = scene.clone();
    change(&mut scene);
    scene.judge().into()
}

/// A node's WebSocket server, and who is let in.
struct Server {
    runtime: tokio::runtime::Runtime,
    connections: mpsc::Sender<DuplexStream>,
}

/// Connections without a network.
struct Pipes(mpsc::Receiver<DuplexStream>);

impl axum::serve::Listener for Pipes {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(connection) => (connection, ()),
            None => core::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn config() -> WebConfig {
    WebConfig {
        host_names: vec![OWN_NAME.to_owned()],
        allow_origins: vec![ALLOWED.to_owned()],
        ..WebConfig::default()
    }
}

impl Server {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (connections, incoming) = mpsc::channel(1);
        runtime.block_on(async {
            let node = Node::start(NodeConfig {
                web: config(),
                ..NodeConfig::default()
            });
            let peer = SocketAddr::from(([127, 0, 0, 1], 40_000));
            let router = WebDoor::open(&node, PAGES)
                .router(Scheme::Http)
                .layer(middleware::from_fn(watch))
                .layer(Extension(ConnectInfo(peer)));
            tokio::spawn(async move {
                // As long as the node.
                let _node = node;
                axum::serve(Pipes(incoming), router).await
            });
        });
        Self {
            runtime,
            connections,
        }
    }

    /// What is answered to `octets`, after which the client says nothing more.
    fn answer(&self, octets: &[u8]) -> Vec<u8> {
        let answer = async {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            self.connections.send(server).await.expect("it serves");
            // It may hang up before everything is written.
            if client.write_all(octets).await.is_ok() {
                client.shutdown().await.ok();
            }
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.ok();
            answer
        };
        self.runtime.block_on(async {
            let answer = tokio::time::timeout(Duration::from_secs(5), pin!(answer)).await;
            answer.expect("the server comes to an end with whoever says nothing more")
        })
    }
}

/// Whoever is to be refused gets no connection.
async fn watch(request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let authority = web::authority(request.uri(), &headers).map(str::to_owned);
    let is_get = request.method() == Method::GET;
    let scene = Scene {
        config: config(),
        peer: Some(IpAddr::from([127, 0, 0, 1])),
        scheme: Scheme::Http,
        purpose: Purpose::Face,
        authority,
        headers,
    };
    check(&scene);
    let response = next.run(request).await;
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        assert!(is_get && scene.judge().is_ok());
        assert_eq!(scene.headers.get_all("host").iter().count(), 1);
    } else {
        assert!(
            status.is_client_error() || status.is_server_error(),
            "{status}"
        );
    }
    response
}

/// A client that writes `octets` to a node's WebSocket server.
fn served(octets: &[u8]) {
    thread_local! {
        static SERVER: Server = Server::start();
    }
    let answer = SERVER.with(|server| server.answer(octets));
    let is_http1 = answer.is_empty() || answer.starts_with(b"HTTP/1.");
    // A SETTINGS frame (RFC 9113 section 3.4): the server speaks HTTP/2 where another crate enables it.
    let is_http2 = octets.starts_with(b"PRI * HTTP/2.0") && answer.get(3) == Some(&4);
    assert!(is_http1 || is_http2, "{}", answer.escape_ascii());
}
