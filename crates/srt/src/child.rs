//! The listener's process: orders on standard input, reports on standard output, a thread for each connection.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use namecast_units::LogLimit;

use crate::frames::{self, Closed, Failure, Frames, Listen, MAX_OCTETS, Order, Report};
use crate::library::{Handshake, Library, LoadError, Number, Socket, end_process};
use crate::reject;

/// Longest wait for the parent's answer on a handshake: all connections of the port wait meanwhile.
const MAX_ASKING: Duration = Duration::from_millis(500);
/// How often a listener for all addresses looks for new ones.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Octets of orders read at once.
const READ_SIZE: usize = 4_096;
/// Stack of a connection's thread in octets.
const STACK: usize = 256 * 1024;

/// Runs the listener of the parent that this process talks to by its standard input and output, until the parent ends it or ends.
pub fn run() -> ! {
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        shown(panic);
        // Without one of its threads the listener does not do its work: the parent starts another.
        end_process(101);
    }));
    match obey(io::stdin().lock()) {
        Ok(()) => end_process(0),
        Err(Refused { cause, text }) => {
            send(&Report::Failed { cause, text }.frame());
            end_process(1)
        }
    }
}

/// Why the listener ends.
struct Refused {
    cause: Failure,
    text: String,
}

impl Refused {
    fn internal(error: impl ToString) -> Self {
        Self {
            cause: Failure::Internal,
            text: error.to_string(),
        }
    }
}

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Self {
        Self {
            cause: Failure::NoLibrary,
            text: error.to_string(),
        }
    }
}

/// Obeys orders until there are no more.
fn obey(mut from: impl Read) -> Result<(), Refused> {
    let (mut frames, mut octets) = (Frames::default(), [0; READ_SIZE]);
    let mut listener: Option<Arc<Listener>> = None;
    loop {
        while let Some(order) = frames.order().map_err(Refused::internal)? {
            match (&listener, order) {
                (None, Order::Listen(listen)) => listener = Some(Listener::start(listen)?),
                (Some(listener), order) => listener.obey(order),
                (None, _) => return Err(Refused::internal("the first order must be to listen")),
            }
        }
        match from.read(&mut octets) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => {
                let read = octets.get(..count).unwrap_or_default();
                frames.received.extend_from_slice(read);
            }
        }
    }
}

struct Listener {
    library: &'static Library,
    listen: Listen,
    connections: Mutex<BTreeMap<i32, Arc<Credit>>>,
    /// Handshakes that wait for the parent's answer.
    asked: Mutex<BTreeMap<i32, Option<Result<(), i32>>>>,
    answered: Condvar,
}

impl Listener {
    fn start(listen: Listen) -> Result<Arc<Self>, Refused> {
        let library = Library::load()?;
        let listener = Arc::new(Self {
            library,
            listen,
            connections: Mutex::default(),
            asked: Mutex::default(),
            answered: Condvar::new(),
        });
        let asking = Arc::clone(&listener);
        library.decide_by(Box::new(move |handshake| asking.decide(handshake)));
        let mut address = listener.listen.address;
        let mut bound = BTreeSet::new();
        let mut refused = None;
        for ip in addresses(address.ip()) {
            match listener.bind(ip, address.port()) {
                Ok(at) => {
                    address.set_port(at.port());
                    bound.insert(ip);
                }
                // An address that is still being checked is bound later.
                Err(error) => {
                    eprintln!("namecast srt-listener: {}: {error}", ip.at(address.port()));
                    refused = Some(error.to_string());
                }
            }
        }
        if let Some(text) = refused.filter(|_| bound.is_empty()) {
            return Err(Refused {
                cause: Failure::Bind,
                text,
            });
        }
        send(&Report::Listening { address }.frame());
        if address.ip().is_unspecified() {
            let listener = Arc::clone(&listener);
            thread::spawn(move || listener.follow(bound, address));
        }
        Ok(listener)
    }

    /// Listens at one address of this machine. Answers leave from there, which those of a socket for all addresses might not.
    fn bind(self: &Arc<Self>, ip: Local, port: u16) -> io::Result<SocketAddr> {
        let socket = self.library.socket()?;
        let bound = configure(self.library, socket, &self.listen)
            .and_then(|()| self.library.bind(socket, ip.at(port)))
            .and_then(|address| self.library.listen(socket).map(|()| address));
        if bound.is_err() {
            self.library.close(socket);
        }
        let accepting = Arc::clone(self);
        let address = bound?;
        thread::spawn(move || accepting.accept(socket));
        Ok(address)
    }

    /// Listens at addresses that the machine gets later, too.
    fn follow(self: &Arc<Self>, mut bound: BTreeSet<Local>, address: SocketAddr) {
        loop {
            thread::sleep(LOOK_INTERVAL);
            for ip in addresses(address.ip()) {
                if !bound.contains(&ip) && self.bind(ip, address.port()).is_ok() {
                    bound.insert(ip);
                }
            }
        }
    }

    fn obey(&self, order: Order) {
        let credit = |id: i32| lock(&self.connections).get(&id).cloned();
        match order {
            Order::Listen(_) => {}
            Order::Accept { id } => self.take_answer(id, Ok(())),
            Order::Reject { id, code } => self.take_answer(id, Err(code)),
            Order::Credit { id, packets } => {
                if let Some(credit) = credit(id) {
                    credit.add(packets);
                }
            }
            Order::Close { id } => {
                if let Some(credit) = credit(id) {
                    credit.close();
                    self.library.close(Socket(id));
                }
            }
        }
    }

    fn take_answer(&self, id: i32, answer: Result<(), i32>) {
        if let Some(waiting) = lock(&self.asked).get_mut(&id) {
            *waiting = Some(answer);
            self.answered.notify_all();
        }
    }

    /// Asks the parent about a handshake.
    fn decide(&self, handshake: &Handshake) -> Result<(), i32> {
        if lock(&self.connections).len() >= self.listen.max_connections {
            return Err(reject::OVERLOAD);
        }
        let id = handshake.socket.0;
        let question = Report::Asked {
            id,
            peer: handshake.peer,
            stream_id: handshake.stream_id.clone(),
        };
        lock(&self.asked).insert(id, None);
        send(&question.frame());
        let is_open = |asked: &mut BTreeMap<i32, Option<_>>| matches!(asked.get(&id), Some(None));
        let asked = lock(&self.asked);
        let waited = self.answered.wait_timeout_while(asked, MAX_ASKING, is_open);
        let (mut asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        asked.remove(&id).flatten().unwrap_or(Err(reject::OVERLOAD))
    }

    fn accept(self: &Arc<Self>, listening: Socket) {
        let (begun, mut limit) = (Instant::now(), LogLimit::new());
        loop {
            match self.library.accept(listening) {
                Ok((socket, peer)) => {
                    if let Err(error) = self.open(socket, peer) {
                        if let Some(left_out) = limit.admit(begun.elapsed(), "connection") {
                            eprintln!(
                                "namecast srt-listener: connection from {peer}: {error} ({left_out} more left out)"
                            );
                        }
                        lock(&self.connections).remove(&socket.0);
                        self.library.close(socket);
                    }
                }
                Err(error) => {
                    eprintln!("namecast srt-listener: {error}");
                    end_process(1);
                }
            }
        }
    }

    fn open(self: &Arc<Self>, socket: Socket, peer: SocketAddr) -> io::Result<()> {
        let id = socket.0;
        let stream_id = self.library.stream_id(socket)?;
        let latency_ms = self.library.get(socket, Number::ReceiverLatency)?;
        let credit = Arc::<Credit>::default();
        lock(&self.connections).insert(id, Arc::clone(&credit));
        let opened = Report::Opened {
            id,
            peer,
            stream_id,
            latency_ms: latency_ms.try_into().unwrap_or_default(),
        };
        let listener = Arc::clone(self);
        let carrying = move || {
            send(&opened.frame());
            let why = listener.carry(socket, &credit);
            listener.library.close(socket);
            lock(&listener.connections).remove(&id);
            send(&Report::Closed { id, why }.frame());
        };
        let thread = thread::Builder::new().stack_size(STACK);
        thread.spawn(carrying).map(drop)
    }

    /// Reports packets as far as there is credit.
    fn carry(&self, socket: Socket, credit: &Credit) -> Closed {
        let max_stall = Duration::from_millis(self.listen.max_stall_ms.into());
        let mut packet = [0; MAX_OCTETS];
        loop {
            if !credit.take(max_stall) {
                return Closed::Stalled;
            }
            match self.library.receive(socket, &mut packet) {
                Ok(0) => return Closed::Ended("the pusher left".to_owned()),
                Ok(count) => {
                    let received = packet.get(..count).unwrap_or_default();
                    send(&frames::octets(socket.0, received));
                }
                Err(error) => return Closed::Ended(error.to_string()),
            }
        }
    }
}

/// An address of this machine, with the interface that a link-local one is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Local(IpAddr, u32);

impl Local {
    fn at(self, port: u16) -> SocketAddr {
        match self.0 {
            IpAddr::V4(ip) => (ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.1).into(),
        }
    }
}

/// The addresses that `ip` stands for: of this machine, for `0.0.0.0` those of IPv4 and for `::` all; otherwise itself.
fn addresses(ip: IpAddr) -> Vec<Local> {
    let alone = vec![Local(ip, 0)];
    if !ip.is_unspecified() {
        return alone;
    }
    let found = if_addrs::get_if_addrs().unwrap_or_default();
    let meant = found.iter().filter(|it| ip.is_ipv6() || it.ip().is_ipv4());
    let found: BTreeSet<Local> = meant.map(local).collect();
    match found.is_empty() {
        true => alone,
        false => found.into_iter().collect(),
    }
}

fn local(interface: &if_addrs::Interface) -> Local {
    let scope = match interface.ip() {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => interface.index.unwrap_or_default(),
        _ => 0,
    };
    Local(interface.ip(), scope)
}

fn configure(library: &Library, socket: Socket, listen: &Listen) -> io::Result<()> {
    let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    library.set(socket, Number::ReceiverLatency, number(listen.latency_ms))?;
    library.set(socket, Number::PeerIdle, number(listen.max_idle_ms))?;
    if listen.address.is_ipv6() && listen.address.ip().is_unspecified() {
        library.set(socket, Number::Ipv6Only, 0)?;
    }
    match &listen.passphrase {
        Some(passphrase) => library.set_passphrase(socket, passphrase),
        None => Ok(()),
    }
}

/// Packets of a connection that the parent has room for.
#[derive(Debug, Default)]
struct Credit {
    state: Mutex<CreditState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CreditState {
    packets: u32,
    is_closed: bool,
}

impl Credit {
    fn add(&self, packets: u32) {
        let mut state = lock(&self.state);
        state.packets = state.packets.saturating_add(packets);
        self.changed.notify_all();
    }

    fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for room for one packet; false if there is none for `max_stall`.
    fn take(&self, max_stall: Duration) -> bool {
        let has_none = |state: &mut CreditState| state.packets == 0 && !state.is_closed;
        let state = lock(&self.state);
        let waited = self.changed.wait_timeout_while(state, max_stall, has_none);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        // Of a closed connection, libsrt says why it is.
        state.packets = state.packets.saturating_sub(1);
        !waited.timed_out()
    }
}

/// Writes a whole frame. Ends the process if the parent has closed the pipe.
fn send(frame: &[u8]) {
    let mut stdout = io::stdout().lock();
    if stdout
        .write_all(frame)
        .and_then(|()| stdout.flush())
        .is_err()
    {
        end_process(1);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_AT_ALL: Duration = Duration::ZERO;

    #[test]
    fn credit_is_spent_packet_by_packet() {
        let credit = Credit::default();
        assert!(!credit.take(NOT_AT_ALL));
        credit.add(2);
        assert!(credit.take(NOT_AT_ALL) && credit.take(NOT_AT_ALL));
        assert!(!credit.take(NOT_AT_ALL));
        credit.close();
        assert!(credit.take(Duration::MAX));
    }

    #[test]
    fn all_addresses_are_those_of_the_machine() {
        let of = |ip: &str| addresses(ip.parse().unwrap());
        let here = |ip: &str| Local(ip.parse().unwrap(), 0);
        assert_eq!(of("192.0.2.1"), [here("192.0.2.1")]);
        let all = of("0.0.0.0");
        assert!(all.contains(&here("127.0.0.1")));
        assert!(
            all.iter()
                .all(|Local(ip, _)| ip.is_ipv4() && !ip.is_unspecified())
        );
        assert!(of("::").contains(&here("127.0.0.1")));
        let link_local = Local("fe80::1".parse().unwrap(), 3);
        assert_eq!(link_local.at(9_000).to_string(), "[fe80::1%3]:9000");
    }

    #[test]
    fn the_first_order_is_to_listen() {
        let refused = obey(&Order::Close { id: 1 }.frame()[..]);
        let Err(Refused { cause, text }) = refused else {
            panic!("it has no listener to obey");
        };
        assert_eq!(cause, Failure::Internal);
        assert!(text.contains("listen"), "{text}");
        assert!(obey(&[][..]).is_ok());
    }
}
