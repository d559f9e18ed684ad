//! SRT, as OBS, ffmpeg and hardware encoders push it: one port for all, told apart by stream id.
//!
//! ```text
//!  pushers ─▶ namecast srt-listener (libsrt) ─ reports ─▶ Running ─ Gate: key, name ─▶ attend ─▶ Gate::hand_over
//!                                            ◀─ orders ──
//! ```
//!
//! `srt://host:9000?streamid=NAME?key=SECRET`, as RTMP has it, or in the form of SRT's guidelines `#!::r=NAME,key=SECRET`. The listener
//! is a process of its own, which is started again when it ends: see [`namecast_srt`].

mod probe;

use core::pin::pin;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use namecast_media::ingest::source::Container;
use namecast_net::admission::{Entrance, Place};
use namecast_net::supervision::{ListenerState, keep_running};
use namecast_srt::{Closed, Failure, FrameError, Frames, Listen, Order, Report, reject};
use namecast_units::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Gate, Pushed, Refusal};

const PROTOCOL: &str = "SRT";
/// Hidden command that runs the listener.
pub const COMMAND: &str = "srt-listener";
/// Places for accepted handshakes and connections, shared by source.
const MAX_CONNECTIONS: usize = 64;
/// Why a connection has no place.
const FULL: Refusal = Refusal::Connections(MAX_CONNECTIONS);
/// Connections of the process, including those that have given way and are being closed.
const MAX_OF_PROCESS: usize = 2 * MAX_CONNECTIONS;
/// How long lost packets are waited for, where the pusher does not ask for more: twenty times what a network at home takes.
const LATENCY: Duration = Duration::from_millis(60);
/// A pusher that does not answer for so long is gone.
const MAX_IDLE: Duration = Duration::from_secs(5);
/// A connection that nobody reads for so long is closed.
const MAX_STALL: Duration = Duration::from_secs(5);
/// Longest time from the start of the process until it listens.
const MAX_START: Duration = Duration::from_secs(5);
/// Longest time from the end of its output to the end of the process.
const MAX_END: Duration = Duration::from_millis(100);
/// Octets that wait for whoever publishes a stream.
const BUFFERED: usize = 1 << 18;
/// Packets of a connection that wait here; in octets at most about 750 000.
const MAX_WAITING: u32 = 512;
/// Longest time from the acceptance of a handshake until the connection is open: libsrt compares passphrases meanwhile, and closes a
/// connection without a word if they differ.
const MAX_OPENING: Duration = Duration::from_secs(1);
/// Packets after which credit is granted again.
const GRANT: u32 = MAX_WAITING / 4;
/// Orders that wait for the listener to read them.
const MAX_ORDERS: usize = 256;
/// Octets read from the listener at once.
const READ_SIZE: usize = 1 << 16;
/// Starts the stream ids of SRT's guidelines.
const GUIDELINES: &str = "#!::";
/// Shortest and longest passphrase in characters: `SRTO_PASSPHRASE` of libsrt.
pub const PASSPHRASE: core::ops::RangeInclusive<usize> = 10..=79;

/// Reason why SRT is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum SrtError {
    /// libsrt is not on this machine.
    #[error("{0}")]
    NoLibrary(String),
    /// The address is not available.
    #[error("{0}")]
    Bind(String),
    /// The process of the listener does not start, or ends at once.
    #[error("the process of the SRT listener failed: {0}")]
    Process(String),
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct SrtListener {
    address: SocketAddr,
    /// Aborted when it is dropped.
    _tasks: JoinSet<()>,
}

impl SrtListener {
    /// Listens at `address`, encrypted if there is a `passphrase`, and admits through `gate`. What becomes of the listener is in `state`.
    ///
    /// # Errors
    /// If libsrt or the address is not available.
    pub async fn bind(
        address: SocketAddr,
        passphrase: Option<String>,
        gate: Gate,
        state: Arc<ListenerState>,
    ) -> Result<Self, SrtError> {
        let millis = |time: Duration| time.as_millis() as u32;
        let mut listen = Listen {
            address,
            latency_ms: millis(LATENCY),
            max_idle_ms: millis(MAX_IDLE),
            max_stall_ms: millis(MAX_STALL),
            max_connections: MAX_OF_PROCESS,
            passphrase,
        };
        let first = Running::start(&listen).await?;
        let address = first.address;
        // A restart takes the same port.
        listen.address = address;
        let mut first = Some(first);
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_running(state, move |state| {
            let (first, listen, gate) = (first.take(), listen.clone(), gate.clone());
            async move {
                let running = match first {
                    Some(first) => Ok(first),
                    None => Running::start(&listen).await,
                };
                match running {
                    Ok(running) => {
                        state.set_up();
                        running.serve(&gate).await
                    }
                    Err(error) => error.to_string(),
                }
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

/// A listener process. Dropping this value kills it; it also ends when its standard input closes.
struct Running {
    child: Child,
    orders: ChildStdin,
    reports: Reports,
    address: SocketAddr,
}

impl Running {
    async fn start(listen: &Listen) -> Result<Self, SrtError> {
        let failed = |error: std::io::Error| SrtError::Process(error.to_string());
        let mut child = command().map_err(failed)?.spawn().map_err(failed)?;
        let mut orders = child.stdin.take().expect("standard input is piped");
        let reports = child.stdout.take().expect("standard output is piped");
        let mut reports = Reports::new(reports);
        let order = Order::Listen(listen.clone()).frame();
        orders.write_all(&order).await.map_err(failed)?;
        match timeout(MAX_START, reports.next()).await {
            Ok(Ok(Report::Listening { address })) => Ok(Self {
                child,
                orders,
                reports,
                address,
            }),
            Ok(Ok(Report::Failed { cause, text })) => Err(match cause {
                Failure::NoLibrary => SrtError::NoLibrary(text),
                Failure::Bind => SrtError::Bind(text),
                Failure::Internal => SrtError::Process(text),
            }),
            Ok(Ok(_)) => Err(SrtError::Process("it did not listen first".to_owned())),
            Ok(Err(why)) => Err(SrtError::Process(why)),
            Err(_) => Err(SrtError::Process("it does not answer".to_owned())),
        }
    }

    /// Serves its connections until it ends; returns why it did.
    async fn serve(mut self, gate: &Gate) -> String {
        let (orders, waiting) = mpsc::channel(MAX_ORDERS);
        let mut connections = Connections::new(gate.clone(), orders);
        connections.tasks.spawn(write(self.orders, waiting));
        let mut silent = pin!(probe::until_silent(self.address));
        loop {
            let due = connections.next_due();
            tokio::select! {
                report = self.reports.next() => match report {
                    Ok(Report::Failed { text, .. }) => break text,
                    Ok(report) => connections.handle(report).await,
                    Err(why) => {
                        let ended = timeout(MAX_END, self.child.wait()).await;
                        let Ok(Ok(status)) = ended else { break why };
                        break format!("its process ended, {status}");
                    }
                },
                Some(_) = connections.tasks.join_next() => {}
                () = sleep_until(due) => connections.give_up_openings(Instant::now()),
                () = &mut silent => {
                    // It frees the port before the next one starts.
                    let _ = timeout(MAX_END, self.child.kill()).await;
                    break "its process hung".to_owned();
                }
            }
        }
    }
}

/// This program, whatever lies under its name since it was started.
fn command() -> std::io::Result<Command> {
    let program = match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe()?,
    };
    let mut command = Command::new(program);
    command
        .arg0("namecast")
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // An interrupt typed at the terminal is for us: it ends with us.
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Writes orders until there are none or the listener is gone.
async fn write(mut to: ChildStdin, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        if to.write_all(&order.frame()).await.is_err() {
            return;
        }
    }
}

/// Reports as they arrive.
struct Reports {
    from: ChildStdout,
    frames: Frames,
}

impl Reports {
    fn new(from: ChildStdout) -> Self {
        Self {
            from,
            frames: Frames::default(),
        }
    }

    /// Waits for the next report. Nothing is lost where this is dropped.
    async fn next(&mut self) -> Result<Report, String> {
        loop {
            let broken = |error: FrameError| format!("its process breaks the framing: {error}");
            if let Some(report) = self.frames.report().map_err(broken)? {
                return Ok(report);
            }
            self.frames.received.reserve(READ_SIZE);
            match self.from.read_buf(&mut self.frames.received).await {
                Ok(0) => return Err("its process ended".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Connections of one process.
struct Connections {
    gate: Gate,
    orders: mpsc::Sender<Order>,
    places: Entrance,
    open: BTreeMap<i32, Open>,
    /// Accepted handshakes, the oldest first.
    openings: VecDeque<Opening>,
    tasks: JoinSet<()>,
}

/// An accepted handshake that is no connection yet.
struct Opening {
    since: Instant,
    id: i32,
    peer: SocketAddr,
    place: Place,
}

struct Open {
    peer: SocketAddr,
    packets: mpsc::Sender<Bytes>,
}

impl Connections {
    fn new(gate: Gate, orders: mpsc::Sender<Order>) -> Self {
        Self {
            gate,
            orders,
            places: Entrance::new(MAX_CONNECTIONS),
            open: BTreeMap::new(),
            openings: VecDeque::new(),
            tasks: JoinSet::new(),
        }
    }

    /// When an accepted handshake is given up; an hour hence if there is none.
    fn next_due(&self) -> Instant {
        let first = self.openings.front();
        first.map_or_else(
            || Instant::now() + Duration::from_secs(3_600),
            |opening| opening.since + MAX_OPENING,
        )
    }

    /// Counts handshakes of which no connection has become.
    fn give_up_openings(&mut self, now: Instant) {
        while let Some(opening) = self
            .openings
            .pop_front_if(|opening| opening.since + MAX_OPENING <= now)
        {
            self.gate
                .refuse(PROTOCOL, opening.peer, Refusal::Passphrase);
        }
    }

    async fn handle(&mut self, report: Report) {
        match report {
            Report::Asked {
                id,
                peer,
                stream_id,
            } => {
                let order = self.answer(id, peer, &stream_id);
                self.order(order).await;
            }
            Report::Opened {
                id,
                peer,
                stream_id,
                latency_ms,
            } => {
                tracing::debug!("SRT from {peer}: connected, latency {latency_ms} ms");
                self.attend(id, peer, stream_id).await;
            }
            Report::Octets { id, payload } => {
                let Some(open) = self.open.get(&id) else {
                    return;
                };
                if let Err(mpsc::error::TrySendError::Full(_)) = open.packets.try_send(payload) {
                    self.break_off(id, "sent packets beyond its credit");
                    self.order(Order::Close { id }).await;
                }
            }
            Report::Closed { id, why } => match why {
                Closed::Stalled => self.break_off(id, "nobody read it for 5 s"),
                Closed::Ended(why) => {
                    if let Some(open) = self.open.remove(&id) {
                        tracing::debug!("SRT from {}: ended: {why}", open.peer);
                    }
                }
            },
            Report::Listening { .. } | Report::Failed { .. } => {}
        }
    }

    fn answer(&mut self, id: i32, peer: SocketAddr, stream_id: &str) -> Order {
        match self.judge(peer, stream_id) {
            Ok(place) => {
                let since = Instant::now();
                self.openings.push_back(Opening {
                    since,
                    id,
                    peer,
                    place,
                });
                Order::Accept { id }
            }
            Err(why) => {
                let code = code(&why);
                self.gate.refuse(PROTOCOL, peer, why);
                Order::Reject { id, code }
            }
        }
    }

    /// Decides on a handshake at once, as all connections wait for it. Whether a name that is taken becomes free shows once it is open.
    ///
    /// Who has a key may need a place for which an idle connection, or one of a source with more of them, gives way.
    fn judge(&self, peer: SocketAddr, stream_id: &str) -> Result<Place, Refusal> {
        let (path, key) = wanted(stream_id);
        self.gate.check(path, key, peer.ip())?;
        self.places.admit(peer.ip()).ok_or(FULL)
    }

    /// Starts the task of a connection.
    async fn attend(&mut self, id: i32, peer: SocketAddr, stream_id: String) {
        let at = self.openings.iter().position(|opening| opening.id == id);
        let opening = at.and_then(|at| self.openings.remove(at));
        // None where its handshake was given up meanwhile.
        let place = opening.map(|opening| opening.place);
        let Some(place) = place.or_else(|| self.places.admit(peer.ip())) else {
            self.gate.refuse(PROTOCOL, peer, FULL);
            return self.order(Order::Close { id }).await;
        };
        let (packets, waiting) = mpsc::channel(MAX_WAITING as usize);
        self.open.insert(id, Open { peer, packets });
        let connection = Connection {
            id,
            peer,
            stream_id,
            packets: waiting,
            orders: self.orders.clone(),
        };
        let attended = connection.attend(self.gate.clone(), place);
        self.tasks.spawn(attended);
    }

    fn break_off(&mut self, id: i32, why: &str) {
        if let Some(open) = self.open.remove(&id) {
            let why = Refusal::Malformed(why.to_owned());
            self.gate.refuse(PROTOCOL, open.peer, why);
        }
    }

    async fn order(&self, order: Order) {
        // Of a listener that is gone, its reports say so.
        let _ = self.orders.send(order).await;
    }
}

/// A connection from its handshake to its end.
struct Connection {
    id: i32,
    peer: SocketAddr,
    stream_id: String,
    packets: mpsc::Receiver<Bytes>,
    orders: mpsc::Sender<Order>,
}

impl Connection {
    /// Carries it to its end, or until its place is another's.
    async fn attend(mut self, gate: Gate, place: Place) {
        let gives_way = place.gives_way();
        tokio::select! {
            biased;
            () = gives_way => gate.refuse(PROTOCOL, self.peer, FULL),
            () = self.serve(&gate, &place) => {}
        }
        let id = self.id;
        // A listener that is gone has closed it.
        let _ = self.orders.send(Order::Close { id }).await;
    }

    async fn serve(&mut self, gate: &Gate, place: &Place) {
        let stream_id = self.stream_id.clone();
        let (path, key) = wanted(&stream_id);
        match gate.admit(path, key, self.peer.ip()).await {
            Ok(admitted) => {
                let (ours, theirs) = tokio::io::duplex(BUFFERED);
                let pushed = Pushed {
                    admitted,
                    octets: Box::new(theirs),
                    container: Container::MpegTs,
                    protocol: PROTOCOL,
                    from: self.peer,
                    seen: None,
                };
                if gate.hand_over(pushed).await {
                    self.carry(ours, place).await;
                }
            }
            Err(why) => gate.refuse(PROTOCOL, self.peer, why),
        }
    }

    /// Carries packets until the pusher leaves or nobody reads them any more.
    async fn carry(&mut self, to: tokio::io::DuplexStream, place: &Place) {
        let (mut unread, mut to) = tokio::io::split(to);
        let mut room = MAX_WAITING;
        loop {
            if room >= GRANT {
                let (id, packets) = (self.id, core::mem::take(&mut room));
                if self
                    .orders
                    .send(Order::Credit { id, packets })
                    .await
                    .is_err()
                {
                    return;
                }
            }
            tokio::select! {
                packet = self.packets.recv() => {
                    let Some(packet) = packet else { return };
                    room += 1;
                    place.touch();
                    if to.write_all(&packet).await.is_err() {
                        return;
                    }
                }
                // Nothing is ever sent this way: it ends when the other end is dropped.
                _ = unread.read_u8() => return,
            }
        }
    }
}

/// The name and the key in a stream id.
fn wanted(id: &str) -> (&str, Option<&str>) {
    let Some(fields) = id.strip_prefix(GUIDELINES) else {
        let (path, query) = id.split_once('?').unwrap_or((id, ""));
        return (path, field(query.split('&'), "key="));
    };
    let path = field(fields.split(','), "r=");
    (path.unwrap_or_default(), field(fields.split(','), "key="))
}

fn field<'a>(mut fields: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    fields.find_map(|field| field.strip_prefix(name))
}

/// The nearest of SRT's codes: it has no sentences.
const fn code(why: &Refusal) -> i32 {
    match why {
        Refusal::Key | Refusal::OtherNames | Refusal::Passphrase => reject::UNAUTHORIZED,
        Refusal::Name | Refusal::Codec(_) | Refusal::Exceeded(_) | Refusal::Malformed(_) => {
            reject::BAD_REQUEST
        }
        Refusal::Taken(_) => reject::CONFLICT,
        Refusal::Full | Refusal::Connections(_) | Refusal::Names | Refusal::Paused(_) => {
            reject::OVERLOAD
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::keys::PushKeys;

    #[test]
    fn stream_ids_have_a_name_and_a_key() {
        for (id, path, key) in [
            ("studio/cam?key=s", "studio/cam", Some("s")),
            ("cam", "cam", None),
            ("#!::r=cam,m=publish,key=s", "cam", Some("s")),
            ("#!::u=x", "", None),
            ("", "", None),
        ] {
            assert_eq!(wanted(id), (path, key));
        }
    }

    fn connections(key: Option<&str>) -> (Connections, mpsc::Receiver<Order>, Gate) {
        let keys = key.map(|key| PushKeys::parse(key, false).unwrap());
        let (gate, _) = Gate::new("/".parse().unwrap(), keys.unwrap_or_default());
        let (orders, heard) = mpsc::channel(MAX_ORDERS);
        let connections = Connections::new(gate.clone(), orders);
        (connections, heard, gate)
    }

    fn peer() -> SocketAddr {
        "127.0.0.1:9".parse().unwrap()
    }

    #[tokio::test]
    async fn handshakes_are_judged_by_their_stream_id() {
        let (mut connections, mut orders, gate) = connections(Some("s"));
        for (id, stream_id, order) in [
            (1, "cam?key=s", Order::Accept { id: 1 }),
            (2, "#!::r=cam,key=s", Order::Accept { id: 2 }),
            (3, "c@m?key=s", Order::Reject { id: 3, code: 1_400 }),
            (4, "cam?key=x", Order::Reject { id: 4, code: 1_401 }),
            (5, "cam?key=s", Order::Reject { id: 5, code: 1_402 }),
        ] {
            let stream_id = stream_id.to_owned();
            let asked = Report::Asked {
                id,
                peer: peer(),
                stream_id,
            };
            connections.handle(asked).await;
            assert_eq!(orders.recv().await, Some(order));
        }
        let counters = gate.counters();
        assert_eq!((counters.refused_key, counters.refused_name), (1, 1));
        assert_eq!(counters.admitted, 0);
        // Of the two that were accepted, one is open in time; the other's passphrase is wrong.
        let opened = Report::Opened {
            id: 1,
            peer: peer(),
            stream_id: "cam?key=s".to_owned(),
            latency_ms: 60,
        };
        connections.handle(opened).await;
        connections.give_up_openings(Instant::now());
        assert_eq!(gate.counters().refused_passphrase, 0);
        connections.give_up_openings(connections.next_due());
        assert_eq!(gate.counters().refused_passphrase, 1);
        assert!(connections.openings.is_empty());
    }

    /// Where all places are one source's, one of its pushers gives way to another source's; one more of its own is refused.
    #[tokio::test]
    async fn one_source_keeps_no_pusher_out() {
        let (mut connections, mut orders, gate) = connections(None);
        let [hostile, other] = ["198.51.100.7:9", "203.0.113.9:9"].map(|it| it.parse().unwrap());
        let asked = |id: i32, peer| Report::Asked {
            id,
            peer,
            stream_id: format!("cam{id}"),
        };
        let last = MAX_CONNECTIONS as i32;
        for id in 0..last {
            connections.handle(asked(id, hostile)).await;
            assert_eq!(orders.recv().await, Some(Order::Accept { id }));
        }
        connections.handle(asked(last, hostile)).await;
        let refused = Order::Reject {
            id: last,
            code: reject::OVERLOAD,
        };
        assert_eq!(orders.recv().await, Some(refused));
        connections.handle(asked(last + 1, other)).await;
        let accepted = Order::Accept { id: last + 1 };
        assert_eq!(orders.recv().await, Some(accepted));
        // The first of the source, which has no place any more, is closed once it is open.
        let opened = Report::Opened {
            id: 0,
            peer: hostile,
            stream_id: "cam0".to_owned(),
            latency_ms: 60,
        };
        connections.handle(opened).await;
        assert_eq!(orders.recv().await, Some(Order::Close { id: 0 }));
        let counts: Vec<_> = connections.places.sources();
        let counts: Vec<_> = counts.into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [MAX_CONNECTIONS - 1, 1]);
        assert_eq!(gate.counters().refused_full, 2);
    }

    /// Nobody reads the first connection: it is closed, and the second one is not held up.
    #[tokio::test]
    async fn a_connection_that_nobody_reads_ends_alone() {
        let (mut connections, mut orders, gate) = connections(None);
        let mut heard = Vec::new();
        for id in [1, 2] {
            let (packets, waiting) = mpsc::channel(MAX_WAITING as usize);
            let open = Open {
                peer: peer(),
                packets,
            };
            connections.open.insert(id, open);
            heard.push(waiting);
        }
        let packet = |id| Report::Octets {
            id,
            payload: Bytes::from_static(b"media"),
        };
        for _ in 0..=MAX_WAITING {
            connections.handle(packet(1)).await;
        }
        assert_eq!(orders.recv().await, Some(Order::Close { id: 1 }));
        assert_eq!(gate.counters().malformed, 1);
        // A late packet belongs to no connection.
        connections.handle(packet(1)).await;
        connections.handle(packet(2)).await;
        assert_eq!(heard[1].recv().await.as_deref(), Some(&b"media"[..]));
        let stalled = Report::Closed {
            id: 2,
            why: Closed::Stalled,
        };
        connections.handle(stalled).await;
        assert_eq!(gate.counters().malformed, 2);
        assert_eq!(heard[1].recv().await, None);
    }
}
