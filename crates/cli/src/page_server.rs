//! The web server of a node: the page, WebSocket faces, and the node's state.

mod about;
mod files;
mod glance;
mod viewers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{ConnectInfo, Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::accept::DefaultAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use namecast_net::Node;
use namecast_net::web::{self, Purpose, Refusal, Scheme, Visitor, WebRequest};
use namecast_net::websocket::WebDoor;
use namecast_net::webtransport::WebTransportListener;
use namecast_packet::Name;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use files::{file, inline_scripts};
use glance::Glances;
use viewers::Viewers;

use crate::hexadecimal::hex;
use crate::telemetry::Telemetry;
use crate::web_listener::{WebCounters, WebServer};

/// Ports tried after the one that was asked for.
const MORE_PORTS: u16 = 20;
/// What others than this machine get where the state of the node is.
const NOT_PUBLIC: &str = "Only this machine may read the state of the node: to let everybody, set public-status = true in \
    [web] of the configuration file.\n";
/// Streams that are listed.
const MAX_STREAMS: usize = 64;
/// Prefixes that are no streams of anybody.
const NO_STREAMS: [&str; 2] = ["/localhost", "/localhop"];

/// Where streams are as HLS.
const HLS: &str = "/hls";
/// The page of a player alone, for pages of other sites.
const EMBEDDED: &str = "/embed.html";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What the page is told about the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageConfig {
    /// Name to watch unless the page's address says otherwise.
    pub(crate) name: Option<String>,
    /// Digest of the key that must have signed it, in hexadecimal.
    pub(crate) key: Option<String>,
}

#[derive(Clone)]
struct Shared {
    node: Node,
    web: WebDoor,
    config: Arc<PageConfig>,
    webtransport: Option<Arc<WebTransportListener>>,
    telemetry: Telemetry,
    streams: Router,
    pushes: Router,
    /// Where other machines find the page, by https, and its port there.
    elsewhere: Arc<[String]>,
    secure_port: Option<u16>,
    viewers: Viewers,
    glances: Glances,
}

/// Everything a page server needs beside its socket.
#[derive(Clone)]
pub(crate) struct PageService {
    shared: Shared,
}

impl PageService {
    /// Serves `node`'s page to those whom `web` lets in.
    pub(crate) fn new(
        node: Node,
        web: WebDoor,
        config: PageConfig,
        webtransport: Option<WebTransportListener>,
        telemetry: Telemetry,
    ) -> Self {
        Self {
            shared: Shared {
                glances: Glances::new(node.clone(), &config),
                node,
                web,
                config: Arc::new(config),
                webtransport: webtransport.map(Arc::new),
                telemetry,
                streams: Router::new(),
                pushes: Router::new(),
                elsewhere: Arc::default(),
                secure_port: None,
                viewers: Viewers::default(),
            },
        }
    }

    /// Serves streams for players of other kinds, too, below `/hls`.
    #[must_use]
    pub(crate) fn with_streams(mut self, streams: Router) -> Self {
        self.shared.streams = streams;
        self
    }

    /// Tells pages where other machines find them by https: at `port` of these addresses.
    #[must_use]
    pub(crate) fn reached_at(mut self, port: u16, elsewhere: Vec<String>) -> Self {
        self.shared.elsewhere = elsewhere.into();
        self.shared.secure_port = Some(port);
        self
    }

    /// Takes what others push at the paths of `pushes`, from programs and from pages that may use the node.
    #[must_use]
    pub(crate) fn with_pushes(mut self, pushes: Router) -> Self {
        self.shared.pushes = pushes;
        self
    }

    /// Starts to serve on `listener`.
    ///
    /// # Errors
    /// If the socket has no address.
    pub(crate) fn start(&self, listener: TcpListener) -> std::io::Result<WebServer> {
        let counters = self.counters("http", &listener)?;
        let (config, router) = (self.shared.node.config(), self.router(Scheme::Http));
        WebServer::start(listener, DefaultAcceptor::new(), config, router, counters)
    }

    /// Starts to serve on `listener` over TLS, as `config` is at the time of each connection. Pages from elsewhere than the
    /// machine itself may use decoders and WebTransport only so.
    ///
    /// # Errors
    /// If the socket has no address.
    pub(crate) fn start_secure(
        &self,
        listener: TcpListener,
        config: RustlsConfig,
    ) -> std::io::Result<WebServer> {
        let counters = self.counters("https", &listener)?;
        let (limits, router) = (self.shared.node.config(), self.router(Scheme::Https));
        let acceptor = RustlsAcceptor::new(config).handshake_timeout(limits.web.header_timeout);
        WebServer::start(listener, acceptor, limits, router, counters)
    }

    /// Counters of a server on `listener`, which are among the metrics.
    fn counters(&self, scheme: &str, listener: &TcpListener) -> std::io::Result<Arc<WebCounters>> {
        let name = if scheme == "https" {
            "page_tls"
        } else {
            "page"
        };
        let counters = WebCounters::new(name);
        let uri = format!("{scheme}://{}", listener.local_addr()?);
        self.shared.telemetry.observe_web(uri, &counters);
        Ok(counters)
    }

    /// All routes of a server that is reached by `scheme`.
    pub(crate) fn router(&self, scheme: Scheme) -> Router {
        let shared = &self.shared;
        Router::new()
            .route(
                "/",
                get(move |State(shared): State<Shared>, request: Request| async move {
                    about::index(&shared, scheme, request).await
                }),
            )
            .route("/about.json", get(about::about_json))
            .route("/thumbnail.jpg", get(about::thumbnail))
            .route("/node.json", get(node_json))
            .route("/streams.json", get(streams_json))
            .route("/viewers.json", get(viewers_json))
            .route("/status.json", get(status_json))
            .route("/metrics", get(metrics))
            .route("/health", get(health))
            .nest_service(HLS, shared.streams.clone())
            .route(
                "/{*path}",
                get(|Path(path): Path<String>, headers: HeaderMap| async move {
                    file(&path, &headers)
                }),
            )
            .layer(middleware::from_fn_with_state(
                (shared.clone(), scheme),
                admit,
            ))
            .with_state(shared.clone())
            .nest("/ws", shared.web.router(scheme))
            // As routers of the NDN testbed have it.
            .nest("/ws/", shared.web.router(scheme))
            .merge(shared.pushes.clone().layer(middleware::from_fn_with_state(
                (shared.clone(), scheme),
                admit_pusher,
            )))
            .layer(middleware::from_fn_with_state(
                Arc::new(shared.policies()),
                isolate,
            ))
    }
}

/// Content-Security-Policy of the page that others embed, and of all others.
struct Policies {
    embedded: HeaderValue,
    others: HeaderValue,
}

impl Shared {
    /// Returns the policies: sources that pages may load, and sites that may embed them.
    fn policies(&self) -> Policies {
        let mut ancestors = self.web.config().frame_ancestors.join(" ");
        if ancestors.is_empty() {
            ancestors.push_str("'none'");
        }
        let scripts = inline_scripts();
        Policies {
            embedded: policy(&scripts, "*"),
            others: policy(&scripts, &ancestors),
        }
    }

    /// Who sends a request for `purpose`, and the page's origin if it may read the answer.
    ///
    /// # Errors
    /// If it is refused.
    fn judge(
        &self,
        request: &Request,
        scheme: Scheme,
        purpose: Purpose,
    ) -> Result<(Visitor, Option<HeaderValue>), Refusal> {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let request = WebRequest {
            peer: peer.map(|ConnectInfo(peer)| peer.ip()),
            scheme,
            authority: web::authority(request.uri(), request.headers()),
            headers: request.headers(),
            purpose,
        };
        let visitor = self.web.judge(&request)?;
        let reader = self.web.config().reader(&request);
        let reader = reader.and_then(|origin| HeaderValue::from_str(origin).ok());
        Ok((visitor, reader))
    }
}

/// Lets in who may read from this node, and lets allowed pages of other sites read what it tells them of itself.
async fn admit(
    State((shared, scheme)): State<(Shared, Scheme)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (visitor, reader) = match shared.judge(&request, scheme, Purpose::Read) {
        Ok(judged) => judged,
        Err(refusal) => return (refusal.status(), format!("{refusal}\n")).into_response(),
    };
    let path = request.uri().path();
    let is_for_pages = ["/node.json", "/thumbnail.jpg"].contains(&path) || path.starts_with(HLS);
    request.extensions_mut().insert(visitor);
    let mut response = next.run(request).await;
    if is_for_pages {
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = reader {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
        }
    }
    response
}

/// Lets in who may push: programs, pages of this node and pages that are allowed, whose browsers ask before (Fetch, CORS protocol).
async fn admit_pusher(
    State((shared, scheme)): State<(Shared, Scheme)>,
    request: Request,
    next: Next,
) -> Response {
    let (_, reader) = match shared.judge(&request, scheme, Purpose::Face) {
        Ok(judged) => judged,
        Err(refusal) => return (refusal.status(), format!("{refusal}\n")).into_response(),
    };
    let mut response = match *request.method() {
        Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = reader {
        let mut allow = |name, value| headers.insert(name, value);
        allow(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let fixed = HeaderValue::from_static;
        allow(header::ACCESS_CONTROL_ALLOW_METHODS, fixed("POST, DELETE"));
        allow(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            fixed("authorization, content-type"),
        );
        allow(header::ACCESS_CONTROL_EXPOSE_HEADERS, fixed("location"));
    }
    response
}

/// Binds the port, or the next free one after it.
///
/// # Errors
/// The first refusal, if no port near it is free.
pub(crate) async fn bind(mut address: SocketAddr) -> std::io::Result<TcpListener> {
    let first = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    for port in (address.port()..=u16::MAX).skip(1).take(MORE_PORTS.into()) {
        address.set_port(port);
        if let Ok(listener) = TcpListener::bind(address).await {
            return Ok(listener);
        }
    }
    Err(first)
}

/// Returns a Content-Security-Policy with these inline scripts and these sites that may embed the page.
fn policy(scripts: &str, ancestors: &str) -> HeaderValue {
    // The player's controls have styles in their shadow trees.
    let policy = format!(
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{scripts}; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; \
         connect-src 'self' wss: https:; img-src 'self' data: blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; \
         form-action 'none'; frame-ancestors {ancestors}"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("frame-ancestors 'none'"))
}

/// Lets the page share memory with its workers and time things exactly: both need cross-origin isolation. The page of a player alone
/// may be embedded anywhere: nothing in it acts for a person.
async fn isolate(State(policies): State<Arc<Policies>>, request: Request, next: Next) -> Response {
    let is_embedded = request.uri().path() == EMBEDDED;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut set = |name, value: &'static str| {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    };
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    set(
        HeaderName::from_static("cross-origin-embedder-policy"),
        "require-corp",
    );
    let readers = if is_embedded {
        "cross-origin"
    } else {
        "same-origin"
    };
    set(RESOURCE_POLICY, readers);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // A link may hold a key.
    set(header::REFERRER_POLICY, "no-referrer");
    let policy = match is_embedded {
        true => &policies.embedded,
        false => &policies.others,
    };
    headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    response
}

fn json_response(value: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, value.to_string()).into_response()
}

async fn node_json(
    State(shared): State<Shared>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let mut node = json!({ "ws": "/ws", "local": visitor == Visitor::Local });
    if visitor == Visitor::Local {
        node["elsewhere"] = json!(&*shared.elsewhere);
    }
    if let Some(port) = shared.secure_port {
        node["https"] = json!(port);
    }
    if let Some(name) = &shared.config.name {
        node["name"] = json!(name);
    }
    if let Some(key) = &shared.config.key {
        node["key"] = json!(key);
    }
    if let Some(listener) = &shared.webtransport {
        node["webtransport"] = json!({
            "port": listener.address().port(),
            "certificate_hash": hex(&listener.certificate_hash()),
        });
    }
    json_response(&node)
}

/// The streams that a page can offer: the node's own, and for those who may read its state, prefixes that somebody registered.
async fn streams_json(
    State(shared): State<Shared>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let mut streams = Vec::new();
    if let Some(name) = &shared.config.name {
        streams.push(json!({ "name": name, "key": shared.config.key }));
    }
    if may_read_status(&shared, visitor)
        && let Ok(status) = shared.node.status().await
    {
        let own = shared.config.name.as_deref();
        let prefixes = status.routes.into_iter().map(|route| route.prefix);
        let others = stream_names(prefixes.collect(), own);
        streams.extend(others.into_iter().map(|name| json!({ "name": name })));
    }
    json_response(&json!({ "streams": streams }))
}

/// Query of `/viewers.json`.
#[derive(serde::Deserialize)]
struct Counted {
    name: String,
}

/// The least number of viewers that a stream has through this node.
async fn viewers_json(
    State(shared): State<Shared>,
    Query(counted): Query<Counted>,
) -> Result<Response, (StatusCode, &'static str)> {
    let name = counted.name.parse();
    let name = name.map_err(|_| (StatusCode::BAD_REQUEST, "name: no name of a stream\n"))?;
    let look = |name: &Name| shared.node.waiting_faces(name).len();
    let viewers = shared.viewers.count(Instant::now(), name, look);
    let viewers = viewers.ok_or((
        StatusCode::TOO_MANY_REQUESTS,
        "Too many names were counted in this second: try again in a second.\n",
    ))?;
    Ok(json_response(&json!({ "viewers": viewers })))
}

/// Names that may be streams, of prefixes that are registered: those that are below no other, and not `own`.
fn stream_names(mut prefixes: Vec<String>, own: Option<&str>) -> Vec<String> {
    prefixes.sort();
    let mut names: Vec<String> = Vec::new();
    let is_below = |prefix: &str, name: &str| {
        let rest = prefix.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for prefix in prefixes {
        let mut known = own.into_iter().chain(names.iter().map(String::as_str));
        let is_known = known.any(|name| is_below(&prefix, name));
        let is_ours = NO_STREAMS.iter().any(|root| is_below(&prefix, root));
        if prefix != "/" && !is_known && !is_ours && names.len() < MAX_STREAMS {
            names.push(prefix);
        }
    }
    names
}

async fn status_json(
    State(shared): State<Shared>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    if !may_read_status(&shared, visitor) {
        return (StatusCode::FORBIDDEN, NOT_PUBLIC).into_response();
    }
    let Ok(status) = shared.node.status().await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "The node has stopped.\n").into_response();
    };
    let mut status = json!({ "node": status });
    if let Some(figures) = shared.telemetry.figures() {
        status["publisher"] = figures;
    }
    json_response(&status)
}

fn may_read_status(shared: &Shared, visitor: Visitor) -> bool {
    visitor == Visitor::Local || shared.web.config().public_status
}

async fn metrics(State(shared): State<Shared>, Extension(visitor): Extension<Visitor>) -> Response {
    if !may_read_status(&shared, visitor) {
        return (StatusCode::FORBIDDEN, NOT_PUBLIC).into_response();
    }
    shared.telemetry.metrics().await
}

async fn health(State(shared): State<Shared>, Extension(visitor): Extension<Visitor>) -> Response {
    if !may_read_status(&shared, visitor) {
        return (StatusCode::FORBIDDEN, NOT_PUBLIC).into_response();
    }
    shared.telemetry.health().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams register their root, archives and objects what is below; the node's own names are nobody's streams.
    #[test]
    fn streams_are_prefixes_below_no_other() {
        let prefixes = [
            "/cam/video",
            "/",
            "/cam",
            "/localhost/nfd",
            "/camera",
            "/demo/32=x",
        ];
        let prefixes = prefixes.map(str::to_owned).to_vec();
        assert_eq!(stream_names(prefixes, Some("/demo")), ["/cam", "/camera"]);
        let many = (0..=MAX_STREAMS).map(|number| format!("/{number}"));
        assert_eq!(stream_names(many.collect(), None).len(), MAX_STREAMS);
    }
}
