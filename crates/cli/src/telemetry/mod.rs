//! What a running command reports of itself to programs: its figures in a file and for Prometheus, and whether all is well.

mod metrics;
pub(crate) mod tables;
#[cfg(feature = "lab")]
mod trace;

use std::collections::BTreeMap;
use std::net::SocketAddr;
#[cfg(feature = "lab")]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::accept::DefaultAcceptor;
use clap::Args;
use namecast_command::report::{StatsFile, print_error, print_line};
use namecast_command::{Run, parse_address};
use namecast_forward::Drops;
use namecast_net::NodeConfig;
use namecast_net::supervision::ListenerState;
use namecast_net::web::{self, Purpose, Scheme, WebConfig, WebRequest};
use namecast_net::{Clock, LinkDrop, LinkState, ListenerStatus, Node, NodeStatus};
#[cfg(feature = "lab")]
use namecast_units::ByteSize;
use namecast_units::{Duration, Instant};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::web_listener::{WebCounters, WebServer};
use tables::Command;
#[cfg(feature = "lab")]
use trace::{TraceConfig, TraceCounts, TraceFile};

/// A command writes figures every second; one that has not for this time does not work any more.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// How long something that happened once counts as wrong.
const TROUBLE: Duration = Duration::from_secs(10);

/// Who asks how a running command does.
#[derive(Clone, Copy, Debug, Args)]
pub struct Metrics {
    /// Serve figures for Prometheus at /metrics, and at /health whether all is well, on this address; with port 0 on any, which is
    /// printed. Others than this machine reach it only if the address is one of a network.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub metrics: Option<SocketAddr>,
}

/// Who looks at a running command with a node.
#[derive(Clone, Debug, Args)]
pub struct Observation {
    /// Who asks how it does.
    #[command(flatten)]
    pub metrics: Metrics,
    /// Write every packet that comes and leaves to this file, in Parquet, as docs/trace-format.md explains. Packets that are not in it
    /// are counted.
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FILE.parquet")]
    pub trace: Option<PathBuf>,
    /// The size at which the file of --trace ends, such as 100M.
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "trace")]
    pub trace_size: ByteSize,
}

/// Takes the figures of a running command, for all who read them.
pub(crate) struct Reporter {
    file: StatsFile,
    telemetry: Telemetry,
    /// Finished when this is dropped.
    #[cfg(feature = "lab")]
    trace: Option<TraceFile>,
    _server: Option<WebServer>,
}

impl Reporter {
    /// Makes the files and listens, as far as that is wanted.
    ///
    /// # Errors
    /// If one of them cannot be.
    pub(crate) async fn start(
        command: &'static Command,
        run: &Run,
        observation: &Observation,
    ) -> anyhow::Result<Self> {
        #[cfg_attr(not(feature = "lab"), expect(unused_mut, reason = "nothing is traced"))]
        let mut reporter = Self::start_without_node(command, run, observation.metrics).await?;
        #[cfg(feature = "lab")]
        if let Some(path) = &observation.trace {
            let config = TraceConfig {
                max_size: observation.trace_size,
                ..TraceConfig::default()
            };
            reporter.trace = Some(TraceFile::create(path, config)?);
        }
        Ok(reporter)
    }

    /// The same for a command that has no node.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) async fn start_without_node(
        command: &'static Command,
        run: &Run,
        metrics: Metrics,
    ) -> anyhow::Result<Self> {
        let telemetry = Telemetry(Arc::new(Shared {
            command,
            state: Mutex::default(),
        }));
        let server = match metrics.metrics {
            Some(address) => Some(telemetry.serve(address, run).await?),
            None => None,
        };
        Ok(Self {
            file: StatsFile::create(run.stats.as_deref())?,
            telemetry,
            #[cfg(feature = "lab")]
            trace: None,
            _server: server,
        })
    }

    /// Reports on `node`, too.
    pub(crate) fn observe(&mut self, node: &Node) {
        let mut state = self.telemetry.0.lock();
        state.node = Some(node.clone());
        #[cfg(feature = "lab")]
        if let Some(trace) = &mut self.trace {
            state.trace = Some(trace.counts());
            trace.start(node);
        }
    }

    /// Takes the figures of this second; the last ones of a run are marked in the file. One that cannot be written any more is
    /// left as it is, for what runs is worth more.
    ///
    /// # Errors
    /// If the figures are none.
    pub(crate) fn write(&mut self, figures: &impl Serialize, is_final: bool) -> anyhow::Result<()> {
        if let Err(error) = self.file.write(figures, is_final) {
            print_error(format_args!(
                "namecast: no more statistics are written, all else goes on: {error:#}"
            ));
            self.file = StatsFile::create(None)?;
        }
        let figures = serde_json::to_value(figures)?;
        let mut state = self.telemetry.0.lock();
        (state.figures, state.written_at) = (figures, Some(Clock::new().now()));
        Ok(())
    }

    /// Carries out `work`, during which the command has no new figures and is well all the same.
    pub(crate) async fn touch_while<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = core::pin::pin!(work);
        let mut tick = tokio::time::interval(MAX_SILENCE / 10);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = tick.tick() => self.telemetry.0.lock().written_at = Some(Clock::new().now()),
            }
        }
    }

    /// From now on, `what` is as `problem` says; `None`: well.
    pub(crate) fn set_problem(&self, what: &'static str, problem: Option<String>) {
        let mut state = self.telemetry.0.lock();
        match problem {
            Some(text) => state.problems.insert(what, Problem { text, until: None }),
            None => state.problems.remove(what),
        };
    }

    /// Something went wrong with `what`, which counts for a while.
    pub(crate) fn on_trouble(&self, what: &'static str, text: &str) {
        let until = Some(Clock::new().now() + TROUBLE);
        let text = text.to_owned();
        let problem = Problem { text, until };
        self.telemetry.0.lock().problems.insert(what, problem);
    }

    /// The same figures for the web server of the page.
    pub(crate) fn telemetry(&self) -> Telemetry {
        self.telemetry.clone()
    }
}

/// What was reported last.
#[derive(Clone)]
pub(crate) struct Telemetry(Arc<Shared>);

struct Shared {
    command: &'static Command,
    state: Mutex<Reported>,
}

#[derive(Default)]
struct Reported {
    node: Option<Node>,
    figures: Value,
    written_at: Option<Instant>,
    #[cfg(feature = "lab")]
    trace: Option<Arc<TraceCounts>>,
    /// Web servers, by their addresses.
    web: Vec<(String, Arc<WebCounters>)>,
    listeners: Vec<Arc<ListenerState>>,
    problems: BTreeMap<&'static str, Problem>,
}

struct Problem {
    text: String,
    /// `None`: until it is said to be well.
    until: Option<Instant>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Telemetry {
    /// Figures of the command itself, if it has other ones than its node.
    pub(crate) fn figures(&self) -> Option<Value> {
        let has_own = !self.0.command.tables.is_empty();
        has_own.then(|| self.0.lock().figures.clone())
    }

    /// Reports on connections to a web server at `uri`, too.
    pub(crate) fn observe_web(&self, uri: String, counters: &Arc<WebCounters>) {
        self.observe_listener(counters.listening());
        self.0.lock().web.push((uri, Arc::clone(counters)));
    }

    /// Reports on a listener that is started again when it ends, too.
    pub(crate) fn observe_listener(&self, state: &Arc<ListenerState>) {
        self.0.lock().listeners.push(Arc::clone(state));
    }

    /// All figures, as Prometheus reads them.
    pub(crate) async fn metrics(&self) -> Response {
        let node = self.node_status().await;
        let problems = self.problems(&node, Clock::new().now());
        let of_node = node.as_ref().and_then(|status| status.as_ref().ok());
        let of_node = of_node.map_or(&[][..], |status| &status.listeners);
        let of_node: Vec<_> = of_node.iter().filter_map(supervised).collect();
        let figures = {
            let state = self.0.lock();
            let web = state
                .web
                .iter()
                .map(|(uri, counters)| counters.figures(uri));
            let web: Vec<_> = web.collect();
            let listeners = state.listeners.iter();
            let listeners = listeners
                .map(|it| listener_figures(it.name(), it.problem().is_none(), it.restarts()));
            let listeners: Vec<_> = listeners.chain(of_node).collect();
            #[cfg(feature = "lab")]
            let trace = state.trace.as_ref().map(|counts| counts.figures());
            #[cfg(not(feature = "lab"))]
            let trace = Value::Null;
            json!({
                "health": { "ok": problems.is_empty() },
                "node": node.and_then(Result::ok).map(with_all_reasons),
                "own": state.figures,
                "web": { "servers": web },
                "supervised": { "listeners": listeners },
                "trace": trace,
            })
        };
        match metrics::openmetrics(self.0.command, figures) {
            Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        }
    }

    /// `ok`, or a line for everything that is wrong and status 503.
    pub(crate) async fn health(&self) -> Response {
        let problems = self.problems(&self.node_status().await, Clock::new().now());
        let caching = [(header::CACHE_CONTROL, "no-store")];
        if problems.is_empty() {
            return (caching, "ok\n").into_response();
        }
        let text = problems.join("\n") + "\n";
        (StatusCode::SERVICE_UNAVAILABLE, caching, text).into_response()
    }

    /// `None`: there is no node yet.
    async fn node_status(&self) -> Option<Result<NodeStatus, String>> {
        let node = self.0.lock().node.clone()?;
        Some(node.status().await.map_err(|error| error.to_string()))
    }

    fn problems(&self, node: &Option<Result<NodeStatus, String>>, now: Instant) -> Vec<String> {
        let mut problems = Vec::new();
        match node {
            Some(Ok(status)) => {
                let listeners = status.listeners.iter();
                problems.extend(listeners.filter_map(|listener| listener.problem.clone()));
                for face in &status.faces {
                    let remote = &face.remote;
                    match &face.state {
                        LinkState::Up => {}
                        LinkState::Connecting => problems.push(format!("connecting to {remote}")),
                        LinkState::Down(why) => {
                            problems.push(format!("no connection to {remote}: {why}"));
                        }
                    }
                }
            }
            Some(Err(error)) => problems.push(error.clone()),
            None => {}
        }
        let state = self.0.lock();
        match state.written_at.map(|at| now.since(at)) {
            None => problems.push("starting".to_owned()),
            Some(silence) if silence > MAX_SILENCE => {
                problems.push(format!("no figures for {} s", silence.as_secs()));
            }
            Some(_) => {}
        }
        let listeners = state.listeners.iter();
        problems.extend(listeners.filter_map(|listener| listener.problem()));
        let current = |problem: &&Problem| problem.until.is_none_or(|until| now < until);
        let current = state.problems.values().filter(current);
        problems.extend(current.map(|problem| problem.text.clone()));
        problems
    }

    async fn serve(&self, address: SocketAddr, run: &Run) -> anyhow::Result<WebServer> {
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!(
                "cannot serve metrics on {address}: choose another address and port with --metrics"
            )
        })?;
        let address = listener.local_addr()?;
        let counters = WebCounters::new("metrics");
        let router = self.router();
        let router = match address.ip().is_loopback() {
            true => router.layer(middleware::from_fn_with_state(Arc::clone(&counters), admit)),
            false => router,
        };
        let url = format!("http://{address}/metrics");
        match run {
            Run { quiet: true, .. } => {}
            Run { json: true, .. } => print_line(json!({ "metrics": url }))?,
            _ => print_error(format_args!("Metrics: {url}")),
        }
        self.observe_web(format!("http://{address}"), &counters);
        let config = NodeConfig::default();
        let server = WebServer::start(listener, DefaultAcceptor::new(), &config, router, counters);
        Ok(server?)
    }

    fn router(&self) -> Router {
        Router::new()
            .route(
                "/metrics",
                get(|State(it): State<Self>| async move { it.metrics().await }),
            )
            .route(
                "/health",
                get(|State(it): State<Self>| async move { it.health().await }),
            )
            .with_state(self.clone())
    }
}

/// Reasons for drops that did not occur count zero: of a series that begins with 1, Prometheus sees no increase.
fn with_all_reasons(mut status: NodeStatus) -> NodeStatus {
    for (reason, _) in Drops::default().iter() {
        status.drops.entry(reason.name()).or_default();
    }
    for reason in LinkDrop::ALL {
        status.link_drops.entry(reason.name()).or_default();
    }
    for listener in &mut status.listeners {
        let refused = listener.drops.entry(LinkDrop::TooManyFaces.name());
        refused.or_default();
    }
    status
}

/// Keeps pages of other sites from reading what is for this machine, under whatever name they reach it.
async fn admit(State(counters): State<Arc<WebCounters>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let judged = WebConfig::default().judge(
        &[],
        &WebRequest {
            peer: peer.map(|ConnectInfo(peer)| peer.ip()),
            scheme: Scheme::Http,
            authority: web::authority(request.uri(), request.headers()),
            headers: request.headers(),
            purpose: Purpose::Read,
        },
    );
    match judged {
        Ok(_) => next.run(request).await,
        Err(refusal) => {
            counters.refused_foreign();
            (refusal.status(), format!("{refusal}\n")).into_response()
        }
    }
}

/// Figures of a node's listener; `None`: it has no task of its own.
fn supervised(listener: &ListenerStatus) -> Option<Value> {
    let is_up = listener.problem.is_none();
    let restarts = listener.restarts?;
    Some(listener_figures(&listener.uri, is_up, restarts))
}

fn listener_figures(name: &str, is_up: bool, restarts: u64) -> Value {
    json!({ "listener": name, "up": is_up, "restarts": restarts })
}

#[cfg(test)]
mod tests {
    use namecast_net::supervision::until_restarted;

    use super::*;

    fn telemetry() -> Telemetry {
        let shared = Shared {
            command: &tables::SERVE,
            state: Mutex::default(),
        };
        shared.lock().written_at = Some(Clock::new().now());
        Telemetry(Arc::new(shared))
    }

    async fn metrics(telemetry: &Telemetry) -> String {
        let metrics = telemetry.metrics().await.into_body();
        let body = axum::body::to_bytes(metrics, 1 << 20).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// A node's listeners count as the command's own.
    #[tokio::test]
    async fn health_is_unavailable_while_a_listener_of_the_node_is_down() {
        let telemetry = telemetry();
        let node = Node::start(NodeConfig::default());
        telemetry.0.lock().node = Some(node.clone());
        let address = "127.0.0.1:0".parse().unwrap();
        let udp = node.listen_udp(address).await.unwrap();
        let tcp = node.listen_tcp(address).await.unwrap();
        for restarts in 1..=20 {
            telemetry.0.lock().written_at = Some(Clock::new().now());
            for (state, uri) in [(udp.state(), udp.uri()), (tcp.state(), tcp.uri())] {
                assert_eq!(telemetry.health().await.status(), StatusCode::OK);
                state.inject_fault();
                while state.problem().is_none() {
                    tokio::task::yield_now().await;
                }
                let health = telemetry.health().await;
                assert_eq!(health.status(), StatusCode::SERVICE_UNAVAILABLE);
                let body = axum::body::to_bytes(health.into_body(), 1_024).await;
                let problem = format!("the {uri} listener is down: panicked: fault injected\n");
                assert_eq!(body.unwrap(), problem);
                until_restarted(state, restarts).await;
            }
        }
        let text = metrics(&telemetry).await;
        for uri in [udp.uri(), tcp.uri()] {
            let line = format!("namecast_listener_restarts_total{{listener=\"{uri}\"}} 20\n");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[tokio::test]
    async fn health_is_unavailable_while_a_listener_is_down() {
        let telemetry = telemetry();
        let state = ListenerState::new("srt");
        telemetry.observe_listener(&state);
        assert_eq!(telemetry.health().await.status(), StatusCode::OK);
        state.set_down("killed");
        let health = telemetry.health().await;
        assert_eq!(health.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = axum::body::to_bytes(health.into_body(), 1_024).await;
        assert_eq!(body.unwrap(), "the srt listener is down: killed\n");
        state.set_up();
        assert_eq!(telemetry.health().await.status(), StatusCode::OK);
        let text = metrics(&telemetry).await;
        for line in [
            "namecast_listener_restarts_total{listener=\"srt\"} 1\n",
            "namecast_listener_up{listener=\"srt\"} 1.0\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
