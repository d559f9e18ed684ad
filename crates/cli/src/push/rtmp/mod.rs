//! RTMP, as OBS, ffmpeg, GStreamer and hardware encoders push it: one port for all, which listens all the time.
//!
//! `rtmp://host/app/NAME?key=SECRET`: the application may be any one word; what follows it is the name. Codecs that only Enhanced
//! RTMP has are taken, too; a codec that is not is refused by name.

mod amf;
mod chunks;
#[cfg(test)]
mod hostile;
mod session;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use namecast_media::flv::{FlvError, Push};
use namecast_net::admission::{Entrance, Place};
use namecast_net::supervision::{ListenerState, keep_running};
use namecast_units::Duration;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::{Admitted, FIRST_FRAME, Gate, Pushed, Refusal, Seen};
pub use session::RtmpError;
use session::{Session, SessionEvent};

const PROTOCOL: &str = "RTMP";
/// First octet of TLS: a record of a handshake (RFC 8446, section 5.1). RTMP begins with its version, 3.
const TLS_HANDSHAKE: u8 = 22;
/// Connections at a time, those that have not said what they want included.
const MAX_CONNECTIONS: usize = 64;
/// How long somebody may take to say what they want.
const MAX_GREETING: Duration = Duration::from_secs(5);
/// Longest time from there to the first media.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Longest wait for a key frame after a change in mid-stream: longer than x264's default group of 250 frames.
const MAX_KEY_WAIT: Duration = Duration::from_secs(20);
/// How long somebody who was refused has to hear why.
const MAX_FAREWELL: Duration = Duration::from_secs(1);
/// Octets that wait for whoever publishes a stream; the pusher waits where there are more.
const BUFFERED: usize = 1 << 18;
/// Octets read from a connection at once.
const READ_SIZE: usize = 1 << 16;

/// Listens until it is dropped, which ends its connections, too.
#[derive(Debug)]
pub struct RtmpListener {
    address: SocketAddr,
    /// Aborted when it is dropped.
    _tasks: JoinSet<()>,
}

impl RtmpListener {
    /// Listens at `address`, and admits through `gate`. With `tls` it accepts RTMPS, too, on the same port. What becomes of the listener
    /// is in `state`.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        gate: Gate,
        state: Arc<ListenerState>,
    ) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind(address).await?);
        let address = listener.local_addr()?;
        let tls = tls.map(|config| {
            // The page's protocols are none of an encoder's.
            let mut config = ServerConfig::clone(&config);
            config.alpn_protocols.clear();
            TlsAcceptor::from(Arc::new(config))
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_running(state, move |state| {
            let (listener, tls, gate) = (Arc::clone(&listener), tls.clone(), gate.clone());
            async move {
                state.set_up();
                accept(&listener, tls, gate).await
            }
        }));
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: &TcpListener, tls: Option<TlsAcceptor>, gate: Gate) -> ! {
    let entrance = Entrance::new(MAX_CONNECTIONS);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Fails for want of descriptors, or if the peer has left: neither ends the listener.
                let Ok((stream, from)) = accepted else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let Some(place) = entrance.admit(from.ip()) else {
                    gate.refuse(PROTOCOL, from, FULL);
                    continue;
                };
                let (gate, tls) = (gate.clone(), tls.clone());
                connections.spawn(async move {
                    let given_away = place.gives_way();
                    let attended = tokio::select! {
                        attended = open(stream, tls, from, &gate, place) => attended,
                        () = given_away => Err(FULL),
                    };
                    if let Err(why) = attended {
                        gate.refuse(PROTOCOL, from, why);
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Why a connection has no place.
const FULL: Refusal = Refusal::Connections(MAX_CONNECTIONS);

/// Serves one connection to its end, within TLS if it begins so and there is a certificate.
async fn open(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    from: SocketAddr,
    gate: &Gate,
    place: Place,
) -> Result<(), Refusal> {
    let Some(tls) = tls else {
        return attend(stream, from, gate, place).await;
    };
    let mut first = [0];
    let begun = timeout(MAX_GREETING, stream.peek(&mut first)).await;
    if !matches!(begun, Ok(Ok(1))) || first != [TLS_HANDSHAKE] {
        return attend(stream, from, gate, place).await;
    }
    let malformed = |why: String| Refusal::Malformed(format!("no TLS: {why}"));
    match timeout(MAX_GREETING, tls.accept(stream)).await {
        Ok(Ok(stream)) => attend(stream, from, gate, place).await,
        Ok(Err(error)) => Err(malformed(error.to_string())),
        Err(_) => Err(malformed("the handshake took too long".to_owned())),
    }
}

/// Serves one connection to its end.
async fn attend(
    stream: impl Transport,
    from: SocketAddr,
    gate: &Gate,
    place: Place,
) -> Result<(), Refusal> {
    let mut connection = Connection {
        stream,
        place,
        session: Session::new(),
        octets: vec![0; READ_SIZE],
    };
    let admitted = match timeout(MAX_GREETING, connection.greet(gate, from.ip())).await {
        Ok(Ok(Some(admitted))) => admitted,
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(why)) => {
            // They hear why, unless they have left or do not listen.
            let _ = timeout(MAX_FAREWELL, connection.refuse(&why)).await;
            return Err(why);
        }
        Err(_) => {
            let seconds = MAX_GREETING.as_secs();
            let why = format!("no 'publish' came within {seconds} s");
            return Err(Refusal::Malformed(why));
        }
    };
    let carried = connection.carry(admitted, from, gate).await;
    if let Err(why) = &carried {
        let _ = timeout(MAX_FAREWELL, connection.refuse(why)).await;
    }
    carried
}

/// What a connection goes over.
trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Transport for S {}

struct Connection<S> {
    stream: S,
    place: Place,
    session: Session,
    octets: Vec<u8>,
}

impl<S: Transport> Connection<S> {
    /// Goes on until somebody was admitted; `None` if they left without a word.
    async fn greet(&mut self, gate: &Gate, from: IpAddr) -> Result<Option<Admitted>, Refusal> {
        loop {
            if !self.receive().await? {
                return Ok(None);
            }
            while let Some(event) = self.session.next_event() {
                if let SessionEvent::Publish {
                    application,
                    stream,
                } = event
                {
                    let (path, key) = wanted(&application, &stream);
                    let admitted = gate.admit(&path, key, from).await?;
                    self.session.accept();
                    self.send().await;
                    return Ok(Some(admitted));
                }
            }
        }
    }

    async fn refuse(&mut self, why: &Refusal) {
        self.session.refuse(&why.to_string());
        self.send().await;
        // To close with octets unread would take back what was sent.
        let _ = self.stream.shutdown().await;
        while matches!(self.stream.read(&mut self.octets).await, Ok(count) if count > 0) {}
    }

    /// Carries what is pushed until the pusher leaves or nobody reads it any more. What changes in mid-stream and no container can
    /// hold is handed over as a stream of its own, under the same name.
    async fn carry(
        &mut self,
        admitted: Admitted,
        from: SocketAddr,
        gate: &Gate,
    ) -> Result<(), Refusal> {
        let mut push = Push::limited(*gate.limits());
        let mut max_silence = MAX_SILENCE;
        loop {
            let stream = Stream {
                push: &mut push,
                admitted: &admitted,
                from,
                gate,
                max_silence,
            };
            let Some(next) = self.carry_one(stream).await? else {
                return Ok(());
            };
            push = next;
            max_silence = MAX_KEY_WAIT;
        }
    }

    /// Returns the push that follows, if any.
    async fn carry_one(&mut self, stream: Stream<'_>) -> Result<Option<Push>, Refusal> {
        let Stream { push, gate, .. } = stream;
        let name = stream.admitted.name();
        let (ours, theirs) = tokio::io::duplex(BUFFERED);
        let (mut unread, mut to): (ReadHalf<_>, WriteHalf<_>) = tokio::io::split(ours);
        let mut waiting = Some(theirs);
        let seen = Seen::default();
        let mut watch = Watch::new(stream.max_silence);
        loop {
            let step = self.take_events(push)?;
            let mut received = push.received().clone();
            if let Step::Changed(why, _) = &step {
                received.changed = Some(why.clone());
            }
            seen.set(&received);
            for sentence in push.take_notes() {
                gate.note(name, sentence);
            }
            if let Some(container) = push.container()
                && let Some(octets) = waiting.take()
            {
                let pushed = Pushed {
                    admitted: stream.admitted.clone(),
                    octets: Box::new(octets),
                    container,
                    protocol: PROTOCOL,
                    from: stream.from,
                    seen: Some(seen.clone()),
                };
                if !gate.hand_over(pushed).await {
                    return Ok(None);
                }
            }
            match step {
                Step::Over => return Ok(None),
                Step::Changed(_, next) if waiting.is_some() => return Ok(Some(*next)),
                Step::GoesOn | Step::Changed(..) => {}
            }
            // Until somebody reads, octets stay in the push, which bounds them.
            if waiting.is_none() && to.write_all(&push.take_octets()).await.is_err() {
                return Ok(None);
            }
            if let Step::Changed(_, next) = step {
                stream.admitted.count_change();
                // Ends it, and waits until it is published no more.
                let _ = to.shutdown().await;
                let _ = timeout(MAX_SILENCE, unread.read_u8()).await;
                return Ok(Some(*next));
            }
            tokio::select! {
                received = self.receive() => if !received? {
                    return Ok(None);
                },
                // Nothing is ever sent this way: it ends when the other end is dropped.
                _ = unread.read_u8() => return Ok(None),
                () = sleep_until(watch.next()), if waiting.is_some() => {
                    let obstacle = push.received().obstacle().to_owned();
                    if watch.is_over() {
                        return Err(Refusal::Malformed(obstacle));
                    }
                    gate.note(name, obstacle);
                    stream.admitted.set_silent(true);
                }
            }
        }
    }

    /// Has everything that came become octets of a container.
    fn take_events(&mut self, push: &mut Push) -> Result<Step, Refusal> {
        let refused = |error: FlvError| match error {
            FlvError::Exceeded(exceeded) => exceeded.into(),
            error => Refusal::Codec(error.to_string()),
        };
        while let Some(event) = self.session.next_event() {
            match event {
                SessionEvent::Metadata { video, audio } => push.announce(video, audio),
                SessionEvent::Media {
                    kind,
                    time,
                    payload,
                } => match push.take(kind, time, &payload) {
                    Ok(()) => {}
                    Err(FlvError::Changed(why)) => {
                        let mut next = push.successor(kind);
                        next.take(kind, time, &payload).map_err(refused)?;
                        return Ok(Step::Changed(why, Box::new(next)));
                    }
                    Err(error) => return Err(refused(error)),
                },
                SessionEvent::Publish { .. } | SessionEvent::Over => return Ok(Step::Over),
            }
        }
        Ok(Step::GoesOn)
    }

    /// Receives once, and answers. Returns false if the peer has left.
    async fn receive(&mut self) -> Result<bool, Refusal> {
        let count = self.stream.read(&mut self.octets).await.unwrap_or(0);
        self.place.touch();
        let received = self.session.receive(&self.octets[..count]);
        received.map_err(|error| Refusal::Malformed(error.to_string()))?;
        self.send().await;
        Ok(count > 0)
    }

    async fn send(&mut self) {
        let output = self.session.take_output();
        // Of a connection that broke the next read tells.
        let _ = self.stream.write_all(&output).await;
    }
}

/// One stream of a connection.
struct Stream<'a> {
    push: &'a mut Push,
    admitted: &'a Admitted,
    from: SocketAddr,
    gate: &'a Gate,
    /// Longest wait for its first frame.
    max_silence: Duration,
}

/// Next step of a stream after a message.
enum Step {
    GoesOn,
    Over,
    /// Why it ends, and what follows it.
    Changed(String, Box<Push>),
}

/// Watches over somebody who has pushed nothing yet that could be read.
struct Watch {
    since: Instant,
    max_silence: Duration,
    has_said: bool,
}

impl Watch {
    fn new(max_silence: Duration) -> Self {
        Self {
            since: Instant::now(),
            max_silence,
            has_said: false,
        }
    }

    /// When something is to be done.
    fn next(&self) -> Instant {
        self.since
            + if self.has_said {
                self.max_silence
            } else {
                FIRST_FRAME
            }
    }

    /// Returns whether it is over; else something is to be said, once.
    const fn is_over(&mut self) -> bool {
        core::mem::replace(&mut self.has_said, true)
    }
}

/// The name and the key that somebody shows: the application is any word, as `app` in `rtmp://host/app/NAME?key=SECRET`; further
/// ones belong to the name. Some encoders append the key to the server's address.
fn wanted<'a>(application: &'a str, stream: &'a str) -> (String, Option<&'a str>) {
    let (application, server_query) = application.split_once('?').unwrap_or((application, ""));
    let (stream, query) = stream.split_once('?').unwrap_or((stream, ""));
    let more = application.trim_matches('/').split_once('/');
    let path = match more {
        Some((_, more)) => format!("{more}/{stream}"),
        None => stream.to_owned(),
    };
    let mut fields = query.split('&').chain(server_query.split('&'));
    (path, fields.find_map(|field| field.strip_prefix("key=")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::keys::PushKeys;
    use namecast_net::supervision::until_restarted;

    #[tokio::test]
    async fn a_listener_whose_task_panicked_accepts_again() {
        let (gate, _) = Gate::new("/".parse().unwrap(), PushKeys::default());
        let state = ListenerState::new("rtmp");
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = RtmpListener::bind(address, None, gate.clone(), Arc::clone(&state));
        let listener = listener.await.unwrap();
        for restarts in 0..=2 {
            until_restarted(&state, restarts).await;
            let mut stream = TcpStream::connect(listener.address()).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            while gate.counters().malformed <= restarts {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            state.inject_fault();
        }
    }

    /// As OBS, ffmpeg and GStreamer part an address.
    #[test]
    fn names_and_keys_are_found_where_encoders_put_them() {
        for (application, stream, path, key) in [
            ("app", "cam?key=s", "cam", Some("s")),
            ("live", "cam", "cam", None),
            ("app/studio", "cam?user=x&key=s", "studio/cam", Some("s")),
            ("app?key=s", "cam", "cam", Some("s")),
            ("app/", "studio/cam", "studio/cam", None),
            ("", "cam?key=", "cam", Some("")),
        ] {
            assert_eq!(wanted(application, stream), (path.to_owned(), key));
        }
    }
}
