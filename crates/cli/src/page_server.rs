//! The web server of a node: the page, WebSocket faces, and the node's state.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use namecast_net::webtransport::WebTransportListener;
use namecast_net::{Node, websocket};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::metrics;

/// Ports tried after the one that was asked for.
const MORE_PORTS: u16 = 20;
/// What is served where the page was not built.
const NO_PAGE: &str =
    "The page is not part of this binary: run `cargo xtask web`, then build again.\n";

/// The built page: part of the binary, but read from disk in debug builds.
#[derive(rust_embed::RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Page;

/// What the page is told about the node.
#[derive(Clone, Debug, Default)]
pub struct PageConfig {
    /// Name to watch unless the page's address says otherwise.
    pub name: Option<String>,
    /// Digest of the key that must have signed it, in hexadecimal.
    pub key: Option<String>,
}

/// Adds what a command knows to the node's state.
pub type MoreStatus = Arc<dyn Fn() -> Value + Send + Sync>;

#[derive(Clone)]
struct Shared {
    node: Node,
    config: Arc<PageConfig>,
    webtransport: Option<Arc<WebTransportListener>>,
    more: Option<MoreStatus>,
}

/// A running web server. Dropping it stops it.
#[derive(Debug)]
#[must_use = "dropping the server stops it"]
pub struct PageServer {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl PageServer {
    /// The address it is bound to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Everything a page server needs beside its socket.
#[derive(Clone)]
pub struct PageService {
    shared: Shared,
}

impl PageService {
    /// Serves `node`'s page.
    pub fn new(
        node: Node,
        config: PageConfig,
        webtransport: Option<WebTransportListener>,
        more: Option<MoreStatus>,
    ) -> Self {
        Self {
            shared: Shared {
                node,
                config: Arc::new(config),
                webtransport: webtransport.map(Arc::new),
                more,
            },
        }
    }

    /// Starts to serve on `listener`.
    ///
    /// # Errors
    /// If the socket has no address.
    pub fn start(&self, listener: TcpListener) -> std::io::Result<PageServer> {
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let service = self
            .router()
            .into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move {
            // Connections that are open end with the process: a page's WebSocket would never end by itself.
            tokio::select! {
                result = axum::serve(listener, service).into_future() => {
                    if let Err(error) = result {
                        tracing::error!("web server: {error}");
                    }
                }
                _ = stopped => {}
            }
        });
        Ok(PageServer {
            address,
            _stop: stop,
        })
    }

    /// Starts to serve on `listener` over TLS, with a certificate made for the occasion. Pages from elsewhere than the
    /// machine itself may use decoders and WebTransport only so.
    ///
    /// # Errors
    /// If no certificate can be made or the socket has no address.
    pub fn start_secure(
        &self,
        listener: TcpListener,
        names: Vec<String>,
    ) -> anyhow::Result<PageServer> {
        let address = listener.local_addr()?;
        let certified = rcgen::generate_simple_self_signed(names)?;
        let key =
            rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())?;
        // WebSocket needs HTTP/1.1.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = axum_server::tls_rustls::RustlsConfig::from_config(Arc::new(config));
        let service = self
            .router()
            .into_make_service_with_connect_info::<SocketAddr>();
        let server = axum_server::from_tcp_rustls(listener.into_std()?, config)?;
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            tokio::select! {
                result = server.serve(service) => {
                    if let Err(error) = result {
                        tracing::error!("web server: {error}");
                    }
                }
                _ = stopped => {}
            }
        });
        Ok(PageServer {
            address,
            _stop: stop,
        })
    }

    /// All routes.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/", get(|| async { file("index.html") }))
            .route("/node.json", get(node_json))
            .route("/status.json", get(status_json))
            .route("/metrics", get(metrics))
            .route(
                "/{*path}",
                get(|Path(path): Path<String>| async move { file(&path) }),
            )
            .with_state(self.shared.clone())
            .nest("/ws", websocket::router(&self.shared.node))
            .layer(axum::middleware::map_response(isolate))
    }
}

/// Binds the port, or the next free one after it.
///
/// # Errors
/// The first refusal, if no port near it is free.
pub async fn bind(mut address: SocketAddr) -> std::io::Result<TcpListener> {
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

/// Lets the page share memory with its workers and time things exactly: both need cross-origin isolation.
async fn isolate(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: &'static str| {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    };
    set("cross-origin-opener-policy", "same-origin");
    set("cross-origin-embedder-policy", "require-corp");
    set("cross-origin-resource-policy", "same-origin");
    set("x-content-type-options", "nosniff");
    response
}

/// One file of the page. Names under `assets/` carry a digest of their content, so they may be kept for ever.
fn file(path: &str) -> Response {
    let Some(file) = Page::get(path) else {
        let text = if path == "index.html" {
            NO_PAGE
        } else {
            "There is no such file.\n"
        };
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let keep = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [
        (header::CONTENT_TYPE, file.metadata.mimetype().to_owned()),
        (header::CACHE_CONTROL, keep.to_owned()),
    ];
    (headers, file.data).into_response()
}

fn json_response(value: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, value.to_string()).into_response()
}

async fn node_json(State(shared): State<Shared>) -> Response {
    let mut node = json!({ "ws": "/ws" });
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

async fn status_json(State(shared): State<Shared>) -> Response {
    let Ok(status) = shared.node.status().await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "The node has stopped.\n").into_response();
    };
    let mut status = json!({ "node": status });
    if let Some(more) = &shared.more {
        status["publisher"] = more();
    }
    json_response(&status)
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let status = shared.node.status().await.ok();
    match status.and_then(|status| metrics::openmetrics(status).ok()) {
        Some(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "The node has stopped.\n").into_response(),
    }
}

/// Octets in hexadecimal.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
