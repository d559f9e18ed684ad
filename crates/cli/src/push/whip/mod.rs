//! WHIP (RFC 9725): browsers and OBS push by WebRTC, to `http://HOST:PORT/whip/NAME`.
//!
//! ```text
//!  POST offer ─▶ requests ─ Gate: key, name ─▶ Session ─▶ answer, with the addresses of the UDP sockets
//!  UDP sockets ─▶ Routes: which session? ─▶ its task ─ first frame ─▶ Gate::hand_over
//! ```
//!
//! One UDP port serves all sessions. Each session has a task of its own, so that one that breaks breaks alone.

mod octets;
mod requests;
mod running;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use bytes::Bytes;
use namecast_media::whip::{Credentials, user_fragment};
use namecast_net::supervision::{ListenerState, keep_running, panicked};
use namecast_units::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Gate;

/// How people see the protocol named.
const PROTOCOL: &str = "WHIP";
/// UDP port unless another is asked for: what MediaMTX has, so that firewalls that let it through let this through.
pub const DEFAULT_UDP_PORT: u16 = 8_189;
/// Addresses of this machine that pushers are told.
const MAX_ADDRESSES: usize = 16;
/// Addresses of a pusher that datagrams of a session are taken from, beside those that name it.
const MAX_SOURCES: usize = 16;
/// Datagrams of a session that wait for it: more than a key frame has.
const MAX_WAITING: usize = 1_024;
/// Largest datagram that is read.
const MAX_DATAGRAM: usize = 2_048;
/// Pause after a socket failed, which on some systems it does where a pusher has closed its own.
const PAUSE: Duration = Duration::from_millis(10);

/// A listener for pushers by WHIP. Dropping it closes its sockets once its sessions have ended.
pub struct Whip {
    shared: Arc<Shared>,
    state: Arc<ListenerState>,
    _reading: JoinSet<()>,
}

struct Shared {
    gate: Gate,
    sockets: Vec<(SocketAddr, UdpSocket)>,
    routes: Mutex<Routes>,
}

/// Which session a datagram is for, and a request.
#[derive(Default)]
struct Routes {
    /// By the secret part of their URLs.
    sessions: BTreeMap<String, Route>,
    /// Secret parts by user fragment.
    fragments: BTreeMap<String, String>,
    /// Secret parts by the address from which a datagram came that named the session.
    sources: BTreeMap<SocketAddr, String>,
}

struct Route {
    inputs: mpsc::Sender<Input>,
    user_fragment: String,
}

/// What comes for a session.
enum Input {
    Datagram {
        source: SocketAddr,
        destination: SocketAddr,
        payload: Bytes,
    },
    /// The pusher asked for its end.
    Delete,
}

impl Whip {
    /// Listens at `addresses` of this machine, on UDP port `port` or, if that is taken, on any.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn listen(gate: Gate, addresses: &[IpAddr], port: u16) -> io::Result<Self> {
        let sockets = match bind(addresses, port).await {
            Err(_) if port != 0 => bind(addresses, 0).await,
            bound => bound,
        };
        let shared = Arc::new(Shared {
            gate,
            sockets: sockets?,
            routes: Mutex::default(),
        });
        let state = ListenerState::new("whip");
        let mut reading = JoinSet::new();
        let all = Arc::clone(&shared);
        reading.spawn(keep_running(Arc::clone(&state), move |state| {
            read_all(Arc::clone(&all), state)
        }));
        Ok(Self {
            shared,
            state,
            _reading: reading,
        })
    }

    /// Whether its sockets are read.
    pub fn state(&self) -> &Arc<ListenerState> {
        &self.state
    }

    /// UDP port that pushers reach.
    pub fn udp_port(&self) -> u16 {
        self.shared
            .sockets
            .first()
            .map_or(0, |(address, _)| address.port())
    }

    /// Paths of a web server: `/whip/NAME` and those of sessions.
    pub fn router(&self) -> Router {
        requests::router(Arc::clone(&self.shared))
    }
}

/// One socket an address, all of one port, as an answer has to say from which address it is sent.
async fn bind(addresses: &[IpAddr], port: u16) -> io::Result<Vec<(SocketAddr, UdpSocket)>> {
    let mut sockets: Vec<(SocketAddr, UdpSocket)> = Vec::new();
    for &address in addresses.iter().take(MAX_ADDRESSES) {
        let port = sockets.first().map_or(port, |(first, _)| first.port());
        let socket = UdpSocket::bind((address, port)).await?;
        sockets.push((socket.local_addr()?, socket));
    }
    Ok(sockets)
}

/// Reads all sockets until reading one of them fails.
async fn read_all(shared: Arc<Shared>, state: Arc<ListenerState>) -> String {
    let mut reading = JoinSet::new();
    for index in 0..shared.sockets.len() {
        reading.spawn(read(Arc::clone(&shared), index));
    }
    state.set_up();
    match reading.join_next().await {
        Some(Err(error)) => panicked(error),
        Some(Ok(())) | None => "it has no socket".to_owned(),
    }
}

async fn read(shared: Arc<Shared>, index: usize) {
    let Some((destination, socket)) = shared.sockets.get(index) else {
        return;
    };
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let Ok((length, source)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let datagram = &buffer[..length];
        if let Some(inputs) = shared.lock().find(source, datagram) {
            // What a session has no room for is lost, as on any link.
            let _ = inputs.try_send(Input::Datagram {
                source,
                destination: *destination,
                payload: Bytes::copy_from_slice(datagram),
            });
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(address, _)| *address).collect()
    }

    /// Sends without waiting: what has no room is lost, as on any link.
    fn send(&self, source: SocketAddr, destination: SocketAddr, payload: &[u8]) {
        let socket = self.sockets.iter().find(|(address, _)| *address == source);
        if let Some((_, socket)) = socket {
            let _ = socket.try_send_to(payload, destination);
        }
    }
}

impl Routes {
    fn add(&mut self, id: &str, credentials: &Credentials) -> mpsc::Receiver<Input> {
        let (inputs, heard) = mpsc::channel(MAX_WAITING);
        let user_fragment = credentials.user_fragment.clone();
        self.fragments.insert(user_fragment.clone(), id.to_owned());
        let route = Route {
            inputs,
            user_fragment,
        };
        self.sessions.insert(id.to_owned(), route);
        heard
    }

    fn remove(&mut self, id: &str) {
        if let Some(route) = self.sessions.remove(id) {
            self.fragments.remove(&route.user_fragment);
            self.sources.retain(|_, session| session != id);
        }
    }

    /// The session that a datagram is for: what names it says from where those come that do not.
    fn find(&mut self, source: SocketAddr, datagram: &[u8]) -> Option<mpsc::Sender<Input>> {
        let named = user_fragment(datagram).and_then(|it| self.fragments.get(&it).cloned());
        if let Some(id) = &named
            && self.sources.get(&source) != Some(id)
            && self.sources.values().filter(|it| *it == id).count() < MAX_SOURCES
        {
            self.sources.insert(source, id.clone());
        }
        let id = named.as_ref().or_else(|| self.sources.get(&source))?;
        self.sessions.get(id).map(|route| route.inputs.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::keys::PushKeys;
    use namecast_net::supervision::until_restarted;

    fn binding(user_fragment: &str) -> Vec<u8> {
        let name = format!("{user_fragment}:theirs");
        // Type, length, cookie, transaction; USERNAME, padded to four octets, PRIORITY and MESSAGE-INTEGRITY (RFC 8489, sections 5
        // and 14; RFC 8445, section 7.1).
        let padded = name.len().next_multiple_of(4);
        let length = 4 + padded + 8 + 24;
        let mut octets = vec![0, 1, 0, length as u8, 0x21, 0x12, 0xa4, 0x42];
        octets.extend([7; 12]);
        octets.extend([0, 6, 0, name.len() as u8]);
        octets.extend(name.as_bytes());
        octets.resize(20 + 4 + padded, 0);
        octets.extend([0, 0x24, 0, 4, 1, 2, 3, 4, 0, 8, 0, 20]);
        octets.resize(20 + length, 9);
        octets
    }

    #[tokio::test]
    async fn sockets_are_read_again_after_a_panic() {
        let (gate, _) = Gate::new("/".parse().unwrap(), PushKeys::default());
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        let whip = Whip::listen(gate, &[address], 0).await.unwrap();
        let credentials = Credentials {
            user_fragment: "abcd".to_owned(),
            password: String::new(),
        };
        let mut inputs = whip.shared.lock().add("1", &credentials);
        let pusher = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        pusher.connect((address, whip.udp_port())).await.unwrap();
        for restarts in 0..=2 {
            until_restarted(whip.state(), restarts).await;
            pusher.send(&binding("abcd")).await.unwrap();
            assert!(matches!(inputs.recv().await, Some(Input::Datagram { .. })));
            whip.state().inject_fault();
        }
    }

    #[test]
    fn datagrams_find_their_session() {
        let mut routes = Routes::default();
        let credentials = |fragment: &str| Credentials {
            user_fragment: fragment.to_owned(),
            password: String::new(),
        };
        let mut first = routes.add("1", &credentials("abcd"));
        let _second = routes.add("2", &credentials("efgh"));
        let source = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert!(routes.find(source(1), b"\x80media").is_none());
        assert!(routes.find(source(1), &binding("none")).is_none());
        let inputs = routes.find(source(1), &binding("abcd")).unwrap();
        inputs.try_send(Input::Delete).unwrap();
        assert!(first.try_recv().is_ok());
        assert!(
            routes
                .find(source(1), b"\x80media")
                .unwrap()
                .same_channel(&inputs)
        );
        assert!(routes.find(source(2), b"\x80media").is_none());
        // However many addresses somebody pretends to have, and by whichever name.
        (10..99).for_each(|port| drop(routes.find(source(port), &binding("efgh"))));
        assert_eq!(routes.sources.len(), 1 + MAX_SOURCES);
        routes.remove("2");
        assert_eq!(routes.sources.len(), 1);
        routes.remove("1");
        assert!(routes.find(source(1), &binding("abcd")).is_none());
        assert!(routes.fragments.is_empty() && routes.sources.is_empty());
    }
}
