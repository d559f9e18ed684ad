//! `namecast forwarder`: a node that others connect to, with the page.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::Router;
use clap::Args;
use namecast_command::report::{ProgressLine, causes, print, print_line};
use namecast_command::{HangUps, Run, Stop, number};
use namecast_net::management::CHILD_INHERIT;
use namecast_net::{DEFAULT_PORT, FaceOptions, FaceUri, Node, NodeConfig, UdpConfig};
use namecast_packet::Name;
use namecast_units::{ByteSize, ParseQuantityError};
use serde_json::json;

use super::FIGURES_INTERVAL;
use super::page::{Invitations, Page};
use crate::arguments::PagePort;
use crate::forwarder_config::{self, Listeners, Running, Settings, StaticFace, StaticRoute};
use crate::page_server::PageConfig;
use crate::places;
use crate::telemetry::{Observation, Reporter, tables};
use crate::tls::TlsFiles;

/// `namecast forwarder`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast forwarder
  namecast forwarder --upstream udp4://192.0.2.1:6363
  namecast forwarder --print-config > namecast.toml
  namecast forwarder --config namecast.toml           kill -HUP reads it again
  namecast status                                     in another terminal")]
pub struct Forwarder {
    /// Listeners, faces, routes, strategies and bounds from this file, in TOML. Without it, and without the options that it stands for:
    /// namecast/forwarder.toml in the user's configuration directory, or /etc/namecast/forwarder.toml, if there is one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["udp", "udp_reliability", "tcp", "unix", "cache", "threads", "upstream"])]
    pub config: Option<PathBuf>,
    /// Print a configuration file that has the defaults and explains them, and stop.
    #[arg(long)]
    pub print_config: bool,
    /// Receive UDP here, instead of 127.0.0.1:6363; 'off' for not at all.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub udp: Option<Socket>,
    /// Acknowledge frames over UDP and send lost ones again, towards peers that do so too.
    #[arg(long)]
    pub udp_reliability: bool,
    /// Accept TCP here, instead of 127.0.0.1:6363; 'off' for not at all.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub tcp: Option<Socket>,
    /// Accept connections on a Unix socket at this path, instead of the one in the user's runtime directory; 'off' for
    /// not at all.
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Name that the page watches unless its address says otherwise.
    #[arg(long)]
    pub name: Option<Name>,
    /// Memory for Data that others may request again, such as 64M, which it is without this, or 1G; a number alone is MiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_cache)]
    pub cache: Option<ByteSize>,
    /// Threads that forward at a time; 1 without this.
    #[arg(long, value_name = "COUNT", value_parser = number::<u16>(1..=256))]
    pub threads: Option<u16>,
    /// Connect to another forwarder and send it the Interests that nobody here can answer; may be repeated.
    #[arg(long, value_name = "FACE-URI")]
    pub upstream: Vec<FaceUri>,
    /// The page.
    #[command(flatten)]
    pub page: PagePort,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
}

/// Reads a size, or a number of MiB.
fn parse_cache(text: &str) -> Result<ByteSize, ParseQuantityError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => format!("{text}MiB").parse(),
        false => text.parse(),
    }
}

/// A socket address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket(pub Option<SocketAddr>);

impl core::str::FromStr for Socket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| {
                format!("'{text}' is no address: write ADDRESS:PORT, as in 127.0.0.1:6363, or off")
            })
    }
}

/// What listens unless something else is said.
const LISTENER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);
/// What is kept unless something else is said.
const CACHE: ByteSize = ByteSize::mebibytes(64);

impl Forwarder {
    /// The configuration file: the one that is named, or one that lies where such files do if nothing that it could say is on the
    /// command line.
    fn file(&self, places: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
        let is_told = self.udp.is_some()
            || self.udp_reliability
            || self.tcp.is_some()
            || self.unix.is_some()
            || self.cache.is_some()
            || self.threads.is_some()
            || !self.upstream.is_empty();
        let found = || places.into_iter().find(|file| file.exists());
        self.config
            .clone()
            .or_else(|| if is_told { None } else { found() })
    }
}

/// Says what forwards where, by which file, and which pages there are.
fn introduce(progress: &mut ProgressLine, file: Option<&Path>, listeners: &Listeners, page: &Page) {
    if let Some(file) = file {
        progress.say(&format!("Configuration: {}", file.display()));
    }
    progress.say(&format!("Forwarding: {}", listeners.uris().join("  ")));
    for remark in listeners.remarks.iter().chain(&page.remarks) {
        progress.say(&format!("({remark})"));
    }
    for url in page.urls() {
        progress.say(&format!("Page: {url}"));
    }
    for line in page.live_lines() {
        progress.say(&line);
    }
}

/// Cost of the way upstream: anything registered here is nearer.
const UPSTREAM_COST: u64 = 100;

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Forwarder) -> anyhow::Result<()> {
    if arguments.print_config {
        print(forwarder_config::DEFAULT)?;
        return Ok(());
    }
    let file = arguments.file(places::configuration("forwarder.toml"));
    let running = file.clone().map(Running::read).transpose()?;
    let invitations = Invitations::new(&arguments.page)?;
    let mut settings = match &running {
        Some(running) => running.settings().clone(),
        None => settings(&arguments),
    };
    settings.node = invitations.configure(settings.node);
    let Forwarder {
        name,
        page: mut page_port,
        run,
        observation,
        ..
    } = arguments;
    let is_file_s = page_port.tls == TlsFiles::default();
    if is_file_s {
        page_port.tls = settings.tls.clone();
    }
    let mut stop = Stop::new(run.duration)?;
    let mut stats = Reporter::start(&tables::FORWARDER, &run, &observation).await?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let (node, listeners) = settings.start().await?;
    stats.observe(&node);
    let config = PageConfig {
        name: name.map(|name| name.to_string()),
        key: None,
    };
    let extras = (stats.telemetry(), Router::new());
    let page = Page::start(&node, &page_port, config, &invitations, extras).await?;
    let uris = listeners.uris();
    if run.json && !run.quiet {
        let object = json!({
            "faces": uris, "url": page.url(), "other_urls": page.other_urls(), "go_live": page.live_links_json(), "config": file,
        });
        print_line(object)?;
    }
    introduce(&mut progress, file.as_deref(), &listeners, &page);
    let reload = Reload::of(running, page_port.tls, is_file_s)?;
    if reload.hangups.is_some() {
        stop.leave_hang_ups();
    }
    let mut watching = Watching {
        node: &node,
        page: &page,
        reload,
        prints_json: run.json && !run.quiet,
    };
    watching.watch(&mut stop, &mut stats, &mut progress).await?;
    progress.say("Stopping.");
    stats.write(&node.status().await?, true)?;
    drop((page, listeners));
    node.shutdown().await;
    Ok(())
}

fn listener(socket: Option<Socket>) -> Vec<SocketAddr> {
    let Socket(address) = socket.unwrap_or(Socket(Some(LISTENER)));
    address.into_iter().collect()
}

/// What the command line says.
fn settings(arguments: &Forwarder) -> Settings {
    let upstream = arguments.upstream.iter().cloned();
    let faces: Vec<_> = upstream
        .map(|uri| StaticFace {
            uri,
            interface: None,
            options: FaceOptions::default(),
        })
        .collect();
    let routes = faces.iter().map(|face| StaticRoute {
        prefix: Name::root(),
        face: face.uri.clone(),
        interface: None,
        cost: UPSTREAM_COST,
        flags: CHILD_INHERIT,
    });
    let unix = arguments.unix.clone().map(|path| match path {
        off if off == Path::new("off") => Vec::new(),
        path => vec![path],
    });
    Settings {
        node: NodeConfig {
            udp: UdpConfig {
                reliability: arguments.udp_reliability,
                ..UdpConfig::default()
            },
            forwarders: arguments.threads.unwrap_or(1).into(),
            ..NodeConfig::caching(arguments.cache.unwrap_or(CACHE))
        },
        udp: listener(arguments.udp),
        tcp: listener(arguments.tcp),
        unix,
        routes: routes.collect(),
        faces,
        ..Settings::default()
    }
}

/// A forwarder that runs.
struct Watching<'a> {
    node: &'a Node,
    page: &'a Page,
    reload: Reload,
    prints_json: bool,
}

impl Watching<'_> {
    /// Writes and shows figures, and reads files again when that is wanted, until it is time to stop.
    async fn watch(
        &mut self,
        stop: &mut Stop,
        stats: &mut Reporter,
        progress: &mut ProgressLine,
    ) -> anyhow::Result<()> {
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    let status = self.node.status().await?;
                    stats.write(&status, false)?;
                    progress.show(&format!(
                        "{} faces, {} Interests and {} Data in, {} answered from the cache",
                        status.faces.len(), status.incoming.interests, status.incoming.data, status.content_store_hits
                    ));
                }
                () = self.reload.wanted() => self.reload(progress).await,
                () = stop.wait() => return Ok(()),
            }
        }
    }

    async fn reload(&mut self, progress: &mut ProgressLine) {
        let object = match self.reload.carry_out(self.node, self.page).await {
            Ok(done) => {
                progress.say(&format!("Reloaded: {}", done.join("; ")));
                json!({ "reloaded": done })
            }
            Err(error) => {
                progress.say_error(&format!("Not reloaded: {}", causes(&error)));
                json!({ "not_reloaded": causes(&error) })
            }
        };
        if self.prints_json {
            // A forwarder goes on for those who do not read what it prints.
            let _ = print_line(object);
        }
    }
}

/// What SIGHUP changes. Where nothing could change, it ends the forwarder as it ends any program.
struct Reload {
    running: Option<Running>,
    tls: TlsFiles,
    /// The certificate is the one that the file names.
    is_file_s: bool,
    hangups: Option<HangUps>,
}

impl Reload {
    /// From now on, hang-ups are heard, if there is anything to read again.
    fn of(running: Option<Running>, tls: TlsFiles, is_file_s: bool) -> anyhow::Result<Self> {
        let is_there = running.is_some() || tls != TlsFiles::default();
        let hangups = is_there.then(HangUps::new);
        Ok(Self {
            running,
            tls,
            is_file_s,
            hangups: hangups.transpose()?,
        })
    }

    /// Waits for a hang-up.
    async fn wanted(&mut self) {
        match &mut self.hangups {
            Some(hangups) => hangups.next().await,
            None => core::future::pending().await,
        }
    }

    /// Reads the files again. Returns what changed.
    ///
    /// # Errors
    /// If one is not right: what was read from it before stays.
    async fn carry_out(&mut self, node: &Node, page: &Page) -> anyhow::Result<Vec<String>> {
        if !self.is_file_s {
            self.tls.read()?;
        }
        let mut done = match &mut self.running {
            Some(running) => running.reload(node).await?,
            None => Vec::new(),
        };
        if let (Some(running), true) = (&self.running, self.is_file_s) {
            self.tls = running.settings().tls.clone();
        }
        if let Some(text) = page.reload(&self.tls)? {
            done.push(text);
        }
        if done.is_empty() {
            done.push("nothing changed".to_owned());
        }
        Ok(done)
    }
}
