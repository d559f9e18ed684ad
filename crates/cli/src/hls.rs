//! Plain HLS from the node, for players without WebCodecs: `/hls/NAME/index.m3u8` of the web server.
//!
//! ```text
//!  first request ─▶ Session: watcher ─ verified frames ─▶ Recorder ─▶ directory ─▶ responses
//!                      └ ends once nobody has requested anything for a while
//! ```
//!
//! A name has a place among those that are played once it has answered: names that nobody has take no place from others.

use core::pin::Pin as Pinned;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use namecast::drive;
use namecast_apps::live::watcher::{Pin, RungChoice, Verdict, Watched};
use namecast_apps::live::{Player, Watcher, WatcherConfig};
use namecast_media::hls::PLAYLIST;
use namecast_media::record::{Destination, Recorder};
use namecast_media::streams::CAPTIONS;
use namecast_net::Node;
use namecast_net::admission::{Entrance, Place};
use namecast_net::supervision::ListenerState;
use namecast_packet::Name;
use namecast_units::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::arguments::{KnownKeysFile, Trusted};
use crate::key_check::KeyCheck;
use crate::known_keys::parse_digest;
use crate::page_server::PageConfig;

/// Names that are played at a time.
const MAX_PLAYED: usize = 8;
/// Names that are waited for at a time.
const MAX_AWAITED: usize = 64;
/// How long a session lasts without a request. Players ask for the playlist once a second.
const IDLE: Duration = Duration::from_secs(30);
/// Time after a request during which a player counts as playing: players request long segments this seldom.
const PLAYS: Duration = Duration::from_secs(12);
/// How long the first segments may take.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);
const PLAYLIST_TYPE: &str = "application/vnd.apple.mpegurl";
const SILENCE: &str = "no picture came in time; namecast watch NAME says more";

/// What is played, for all who request it.
#[derive(Clone)]
pub(crate) struct HlsServer {
    node: Node,
    /// A name with the only key that counts for it.
    own: Option<(Name, Pin)>,
    sessions: Arc<Mutex<BTreeMap<Name, Session>>>,
    /// Places of names that have not answered yet, and of those that are played. Each counts as its first viewer's.
    awaited: Entrance,
    played: Entrance,
    /// Restarts of the tasks that play streams.
    state: Arc<ListenerState>,
}

/// Why nothing comes, as far as known.
#[derive(Clone, Debug)]
enum Trouble {
    /// Whoever signed it does not count. The right one may come yet.
    Refused(String),
    /// It is over.
    Failed(String),
    /// No place is free, or another stream took this one's.
    Full,
}

type SharedTrouble = Arc<Mutex<Option<Trouble>>>;

/// One name that is played. Dropping it ends it.
struct Session {
    directory: TempDir,
    requested_at: Instant,
    trouble: SharedTrouble,
    task: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why there is nothing to respond with.
#[derive(Debug, thiserror::Error)]
enum HlsError {
    #[error("write /hls/NAME/index.m3u8, with the name of a stream, as in /hls/demo/index.m3u8")]
    NoName,
    #[error("there is no such segment; players begin with {PLAYLIST}")]
    NoFile,
    #[error("too many other streams are played already: try again later")]
    Full,
    #[error("nothing can be played of {0}: {1}")]
    Nothing(Name, String),
    #[error("the node cannot play {0}: {1}")]
    Broken(Name, String),
}

impl HlsError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NoName | Self::NoFile | Self::Nothing(..) => StatusCode::NOT_FOUND,
            Self::Full => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(..) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for HlsError {
    fn into_response(self) -> Response {
        (self.status(), format!("{self}\n")).into_response()
    }
}

impl HlsServer {
    /// Plays what `node` can watch. Of the name that `page` shows only what its key signed counts, if it has one.
    pub(crate) fn new(node: Node, page: &PageConfig) -> Self {
        let name = page.name.as_ref().and_then(|name| name.parse().ok());
        let digest = page.key.as_deref().and_then(parse_digest);
        let own = name.zip(digest.map(Pin::Digest));
        Self {
            node,
            own,
            sessions: Arc::default(),
            awaited: Entrance::new(MAX_AWAITED),
            played: Entrance::new(MAX_PLAYED),
            state: ListenerState::new("hls"),
        }
    }

    /// Returns the state that counts restarts of the tasks that play streams.
    pub(crate) const fn state(&self) -> &Arc<ListenerState> {
        &self.state
    }

    /// What serves it: `/NAME/index.m3u8`.
    pub(crate) fn router(self) -> Router {
        // A name's percent-encoding is that of its URI, so the path is taken as it was written.
        let respond = async |State(server): State<Self>, request: Request| {
            let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
            let peer = peer.map(|ConnectInfo(peer)| peer.ip());
            let web = &server.node.config().web;
            let address = web.address(peer, request.headers());
            server.respond(request.uri().path(), address).await
        };
        Router::new().fallback(get(respond)).with_state(self)
    }

    /// Responds to whom comes from `address`.
    async fn respond(&self, path: &str, address: Option<IpAddr>) -> Response {
        let found = async {
            let (name, file) = parse(path).ok_or(HlsError::NoName)?;
            match file == PLAYLIST {
                true => self.playlist(&name, address).await,
                false => self.segment(&name, file).await,
            }
        };
        found.await.unwrap_or_else(HlsError::into_response)
    }

    /// The playlist, once it is there.
    async fn playlist(&self, name: &Name, address: Option<IpAddr>) -> Result<Response, HlsError> {
        let broken = |error: anyhow::Error| HlsError::Broken(name.clone(), format!("{error:#}"));
        let begun = Instant::now();
        self.start(name, address)?.map_err(broken)?;
        loop {
            // Who waits hears why a session ended.
            let Some((path, trouble)) = self.find(name, PLAYLIST) else {
                return Err(HlsError::Nothing(name.clone(), SILENCE.to_owned()));
            };
            match tokio::fs::read(&path).await {
                Ok(text) => return Ok(response(PLAYLIST_TYPE, "no-cache", text)),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(broken(error.into()));
                }
                Err(_) => {}
            }
            let why = match trouble {
                Some(Trouble::Full) => return Err(HlsError::Full),
                Some(Trouble::Failed(why)) => why,
                _ if begun.elapsed() < BEGIN_TIMEOUT => {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                Some(Trouble::Refused(why)) => why,
                None => SILENCE.to_owned(),
            };
            return Err(HlsError::Nothing(name.clone(), why));
        }
    }

    async fn segment(&self, name: &Name, file: &str) -> Result<Response, HlsError> {
        let (path, _) = self.find(name, file).ok_or(HlsError::NoFile)?;
        match tokio::fs::read(&path).await {
            Ok(octets) => {
                let (kind, keep) = match path.extension().and_then(|it| it.to_str()) {
                    Some("m3u8") => (PLAYLIST_TYPE, "no-cache"),
                    Some("vtt") => ("text/vtt", "max-age=60"),
                    _ => ("video/mp4", "max-age=60"),
                };
                Ok(response(kind, keep, octets))
            }
            Err(_) => Err(HlsError::NoFile),
        }
    }

    /// Where a file of a session is, and what that session has to say. The session goes on.
    fn find(&self, name: &Name, file: &str) -> Option<(PathBuf, Option<Trouble>)> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(name)?;
        session.requested_at = Instant::now();
        let trouble = lock(&session.trouble).clone();
        Some((session.directory.path().join(file), trouble))
    }

    /// Begins to play `name` for a viewer at `address`, unless that is played already.
    fn start(&self, name: &Name, address: Option<IpAddr>) -> Result<anyhow::Result<()>, HlsError> {
        let mut sessions = self.lock();
        if sessions.contains_key(name) {
            return Ok(Ok(()));
        }
        let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let place = self.awaited.admit(address).ok_or(HlsError::Full)?;
        Ok(self.session(name, address, place).map(|session| {
            sessions.insert(name.clone(), session);
        }))
    }

    fn session(&self, name: &Name, address: IpAddr, place: Place) -> anyhow::Result<Session> {
        let directory = tempfile::Builder::new().prefix("namecast-hls-").tempdir()?;
        let own = self.own.as_ref().filter(|(own, _)| own == name);
        // A key that is seen first counts for this session: strangers must not make this node remember keys.
        let keys = match own {
            Some((_, pin)) => KeyCheck::pinned(name.clone(), pin.clone()),
            None => {
                let known = KnownKeysFile { known_keys: None };
                KeyCheck::new(name.clone(), &Trusted { key: None, known })?
            }
        };
        let trouble = Arc::new(Mutex::new(None));
        let mut playing = Playing {
            server: self.clone(),
            name: name.clone(),
            keys,
            directory: directory.path().to_owned(),
            has_begun: false,
            trouble: Arc::clone(&trouble),
            address,
            place,
        };
        let task = tokio::spawn(async move {
            let _leaving = Leaving {
                server: playing.server.clone(),
                name: playing.name.clone(),
            };
            let name = playing.name.clone();
            let trouble = Arc::clone(&playing.trouble);
            let state = Arc::clone(&playing.server.state);
            let ended = loop {
                if let Some(ended) = state.serve(playing.run()).await {
                    break ended;
                }
            };
            if let Err(error) = ended {
                tracing::debug!("HLS of {name}: {error:#}");
                let is_full = matches!(error.downcast_ref(), Some(HlsError::Full));
                *lock(&trouble) = Some(match is_full {
                    true => Trouble::Full,
                    false => Trouble::Failed(format!("{error:#}")),
                });
                // Long enough for whoever waits to hear of it.
                tokio::time::sleep(POLL * 4).await;
            }
        });
        Ok(Session {
            directory,
            requested_at: Instant::now(),
            trouble,
            task,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Session>> {
        lock(&self.sessions)
    }
}

/// Removes a session when its task ends: the next request begins another one.
struct Leaving {
    server: HlsServer,
    name: Name,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let session = self.server.lock().remove(&self.name);
        drop(session);
    }
}

/// A session's own part.
struct Playing {
    server: HlsServer,
    name: Name,
    keys: KeyCheck,
    directory: PathBuf,
    /// Whether a frame came, so that it has a place among those that are played.
    has_begun: bool,
    trouble: SharedTrouble,
    /// Where its first viewer came from.
    address: IpAddr,
    /// Place among names that wait, then among those that are played.
    place: Place,
}

impl Playing {
    /// Watches, and writes what comes, until nobody wants it any more. Whatever an earlier run wrote is removed.
    async fn run(&mut self) -> anyhow::Result<()> {
        clear(&self.directory)?;
        let mut recorder = Recorder::new(Destination::hls(self.directory.clone()), true);
        let node = self.server.node.clone();
        let mut config = WatcherConfig::new(self.name.clone());
        config.trust = self.keys.trust();
        config.rung = RungChoice::Highest;
        (config.data, config.streams) = (true, vec![CAPTIONS.to_owned()]);
        config.wall_at_zero = node.clock().wall_at_zero();
        // Whoever could foresee Nonces and challenges could have them answered beforehand.
        config.seed = u64::from_le_bytes(namecast_net::random());
        let application = node.application_face_with_local_fields().await?;
        let player = Player::new(Watcher::new(config));
        let (_player, mut heard) = drive(node.clock(), application, player).spawn(|| {});
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        let begun = Instant::now();
        let mut gives_way = self.gives_way();
        loop {
            tokio::select! {
                watched = heard.recv() => match watched {
                    Some(watched) => {
                        let is_frame = self.hear(watched, &mut recorder)?;
                        if is_frame && !self.has_begun {
                            self.has_begun = true;
                            let place = self.server.played.admit(self.address);
                            self.place = place.ok_or(HlsError::Full)?;
                            gives_way = self.gives_way();
                        }
                    }
                    None if node.status().await.is_err() => return Ok(()),
                    None => panic!("the watcher of {} has ended", self.name),
                },
                () = &mut gives_way => return Err(HlsError::Full.into()),
                _ = tick.tick() => {
                    let unrequested = self.unrequested();
                    if unrequested < PLAYS {
                        self.place.touch();
                    }
                    let is_wanted = self.has_begun || begun.elapsed() < BEGIN_TIMEOUT;
                    if unrequested >= IDLE || !is_wanted {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn gives_way(&self) -> Pinned<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.place.gives_way())
    }

    /// Returns for how long nobody has requested anything.
    fn unrequested(&self) -> Duration {
        let sessions = self.server.lock();
        let session = sessions.get(&self.name);
        session.map_or(Duration::MAX, |session| session.requested_at.elapsed())
    }

    /// Returns whether it was a frame.
    fn hear(&mut self, watched: Watched, recorder: &mut Recorder) -> anyhow::Result<bool> {
        match watched {
            Watched::Frame(frame) => {
                recorder.write(&frame)?;
                anyhow::ensure!(recorder.is_open(), "ffmpeg has ended");
                return Ok(true);
            }
            Watched::Catalogue(catalogue) => recorder.open(&catalogue)?,
            Watched::Signer(signer) => {
                let text = self.keys.on_signer(&signer);
                let refused = matches!(signer.verdict, Verdict::Refused(_));
                *lock(&self.trouble) = refused.then_some(Trouble::Refused(text));
            }
            Watched::Event(_) | Watched::Discontinuity { .. } => {}
        }
        Ok(false)
    }
}

/// Removes the files in `directory`.
fn clear(directory: &Path) -> io::Result<()> {
    for file in std::fs::read_dir(directory)? {
        std::fs::remove_file(file?.path())?;
    }
    Ok(())
}

/// Name and file of `NAME/FILE`; file names are those that a recorder makes.
fn parse(path: &str) -> Option<(Name, &str)> {
    let (name, file) = path.trim_start_matches('/').rsplit_once('/')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let (stem, kind) = file.split_once('.')?;
    let is_file = !stem.is_empty() && stem.bytes().all(is_plain);
    let is_kind = matches!(kind, "m3u8" | "m4s" | "mp4" | "vtt");
    let name: Name = format!("/{name}").parse().ok()?;
    (is_file && is_kind && name != Name::root()).then_some((name, file))
}

fn response(kind: &'static str, keep: &'static str, body: Vec<u8>) -> Response {
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)];
    (headers, body).into_response()
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_net::NodeConfig;
    use namecast_net::supervision::until_restarted;
    use tokio::time::timeout;

    /// More names that nobody has than are played at a time keep nobody out, and where all places to wait are one source's, its
    /// oldest gives way to another's name.
    #[tokio::test]
    async fn names_that_nobody_has_keep_nobody_out() {
        let node = Node::start(NodeConfig::default());
        let page = PageConfig {
            name: None,
            key: None,
        };
        let server = HlsServer::new(node, &page);
        let [hostile, other] = ["198.51.100.7", "203.0.113.9"].map(|it| it.parse().ok());
        let name = |text: String| -> Name { text.parse().unwrap() };
        for number in 0..MAX_AWAITED {
            let begun = server.start(&name(format!("/nobody/{number}")), hostile);
            begun.unwrap().unwrap();
        }
        let error = server.start(&name("/nobody/more".to_owned()), hostile);
        assert!(matches!(error, Err(HlsError::Full)));
        server
            .start(&name("/film".to_owned()), other)
            .unwrap()
            .unwrap();
        let sources = server.awaited.sources();
        let counts: Vec<_> = sources.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [MAX_AWAITED - 1, 1]);
        assert!(server.played.sources().is_empty());
    }

    /// A stream whose task panics is requested again, keeps its place, and fails no waiting request.
    #[tokio::test]
    async fn a_name_is_played_on_after_a_panic() {
        let node = Node::start(NodeConfig::default());
        let page = PageConfig {
            name: None,
            key: None,
        };
        let server = HlsServer::new(node.clone(), &page);
        let name: Name = "/film".parse().unwrap();
        let mut publisher = node.application_face().await.unwrap();
        let added = node.add_route(name.clone(), publisher.id(), 0).await;
        added.unwrap();
        server.start(&name, None).unwrap().unwrap();
        publisher.recv().await.unwrap();
        for restarts in 1..=20 {
            while timeout(Duration::ZERO, publisher.recv()).await.is_ok() {}
            server.state().inject_peer_fault();
            until_restarted(server.state(), restarts).await;
            publisher.recv().await.unwrap();
            assert_eq!(server.state().restarts(), restarts);
            assert!(server.find(&name, PLAYLIST).is_some());
            assert_eq!(server.awaited.taken(), 1);
        }
    }

    #[test]
    fn only_what_a_recorder_makes_is_a_file() {
        let parsed = |path| parse(path).map(|(name, file)| (name.to_string(), file));
        let found = |name: &str, file| Some((name.to_owned(), file));
        assert_eq!(parsed("demo/index.m3u8"), found("/demo", "index.m3u8"));
        assert_eq!(parsed("a/b/12.m4s"), found("/a/b", "12.m4s"));
        assert_eq!(parsed("a/init-1.mp4"), found("/a", "init-1.mp4"));
        assert_eq!(parsed("a/12.vtt"), found("/a", "12.vtt"));
        for wrong in [
            "index.m3u8",
            "/index.m3u8",
            "a/",
            "a/..",
            "a/.mp4",
            "a/x.sh",
            "a/%2e.mp4",
            "a/b.m4s.tmp",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
