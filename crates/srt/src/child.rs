//! The listener's process: orders on standard input, reports on standard output, a thread for each connection.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::frames::{self, Closed, Failure, Frames, Listen, MAX_OCTETS, Order, Report};
use crate::library::{Handshake, Library, LoadError, Number, Socket, end_process};
use crate::reject;

/// Longest wait for the parent's answer on a handshake: all connections of the port wait meanwhile.
const MAX_ASKING: Duration = Duration::from_millis(500);
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
            Ok(count) => frames.received.extend_from_slice(&octets[..count]),
        }
    }
}

struct Listener {
    library: &'static Library,
    socket: Socket,
    listen: Listen,
    connections: Mutex<BTreeMap<i32, Arc<Credit>>>,
    /// The parent's last answer, and for which handshake.
    answer: Mutex<Option<(i32, Result<(), i32>)>>,
    answered: Condvar,
}

impl Listener {
    fn start(listen: Listen) -> Result<Arc<Self>, Refused> {
        let library = Library::load()?;
        let socket = library.socket().map_err(Refused::internal)?;
        configure(library, socket, &listen).map_err(Refused::internal)?;
        let refused = |error: io::Error| Refused {
            cause: Failure::Bind,
            text: error.to_string(),
        };
        let address = library.bind(socket, listen.address).map_err(refused)?;
        let listener = Arc::new(Self {
            library,
            socket,
            listen,
            connections: Mutex::default(),
            answer: Mutex::default(),
            answered: Condvar::new(),
        });
        let asking = Arc::clone(&listener);
        let hook = move |handshake: &Handshake| asking.decide(handshake);
        library.listen(socket, Box::new(hook)).map_err(refused)?;
        send(&Report::Listening { address }.frame());
        let accepting = Arc::clone(&listener);
        thread::spawn(move || accepting.accept());
        Ok(listener)
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
        *lock(&self.answer) = Some((id, answer));
        self.answered.notify_all();
    }

    /// Asks the parent about a handshake.
    fn decide(&self, handshake: &Handshake) -> Result<(), i32> {
        if lock(&self.connections).len() >= self.listen.max_connections {
            return Err(reject::OVERLOAD);
        }
        let id = handshake.socket.0;
        let asked = Report::Asked {
            id,
            peer: handshake.peer,
            stream_id: handshake.stream_id.clone(),
        };
        send(&asked.frame());
        let is_open = |answer: &mut Option<(i32, _)>| answer.is_none_or(|(of, _)| of != id);
        let answer = lock(&self.answer);
        let waited = self
            .answered
            .wait_timeout_while(answer, MAX_ASKING, is_open);
        let (mut answer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match answer.take() {
            Some((of, answer)) if of == id => answer,
            _ => Err(reject::OVERLOAD),
        }
    }

    fn accept(self: &Arc<Self>) {
        loop {
            match self.library.accept(self.socket) {
                Ok((socket, peer)) => {
                    if let Err(error) = self.open(socket, peer) {
                        eprintln!("namecast srt-listener: connection from {peer}: {error}");
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
                Ok(count) => send(&frames::octets(socket.0, &packet[..count])),
                Err(error) => return Closed::Ended(error.to_string()),
            }
        }
    }
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
    /// `None` once the connection is closed.
    packets: Mutex<CreditState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CreditState {
    packets: u32,
    is_closed: bool,
}

impl Credit {
    fn add(&self, packets: u32) {
        let mut state = lock(&self.packets);
        state.packets = state.packets.saturating_add(packets);
        self.changed.notify_all();
    }

    fn close(&self) {
        lock(&self.packets).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for room for one packet; false if there is none for `max_stall`.
    fn take(&self, max_stall: Duration) -> bool {
        let has_none = |state: &mut CreditState| state.packets == 0 && !state.is_closed;
        let state = lock(&self.packets);
        let waited = self.changed.wait_timeout_while(state, max_stall, has_none);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        // Of a closed connection, libsrt says why it is.
        state.packets = state.packets.saturating_sub(1);
        !waited.timed_out()
    }
}

/// Writes a whole frame. Who cannot is without a parent.
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
