//! The relay's thread.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use bytes::Bytes;
use namecast_net::Clock;
use namecast_netem::{Frame, Link, Output};
use namecast_packet::LpPacket;
use namecast_units::{Duration, Instant, Random};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::RelayConfig;
use super::report::{Drops, Errors, Flow, Report};
use super::socket::{Buffers, Port, Received};
use crate::priority::rise;

/// Longest wait: how soon a request is answered.
const TICK: Duration = Duration::from_millis(20);
/// How often idle clients are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// What the relay's thread is asked.
#[derive(Debug)]
pub(super) enum Request {
    Report(Sender<Report>),
    Stop,
}

/// A datagram on its way through a link.
#[derive(Clone, Debug)]
struct Datagram {
    client: u64,
    octets: Bytes,
    /// How long after its arrival it was handed to the link, beyond what the link could make up for.
    late: Duration,
}

impl Frame for Datagram {
    fn octets(&self) -> usize {
        self.octets.len()
    }

    fn flip_bit(&mut self, bit: usize) {
        self.octets.flip_bit(bit);
    }
}

/// One direction.
#[derive(Debug)]
struct Direction {
    link: Link<Datagram>,
    worked_until: Instant,
    received: u64,
    received_bytes: u64,
    send_failed: u64,
    unmarkable: u64,
    errors: Errors,
}

/// A client, and its socket towards the server.
#[derive(Debug)]
struct Client {
    address: SocketAddr,
    /// Address of this machine that it sends to.
    asked: Option<IpAddr>,
    port: Port,
    last_seen: Instant,
}

/// Everything that the thread has.
#[derive(Debug)]
pub(super) struct Engine {
    config: RelayConfig,
    clock: Clock,
    started: Instant,
    listen: Port,
    clients: BTreeMap<u64, Client>,
    by_address: BTreeMap<(SocketAddr, Option<IpAddr>), u64>,
    clients_so_far: u64,
    refused: u64,
    next_sweep: Instant,
    forward: Direction,
    backward: Direction,
    recent: Errors,
    realtime: bool,
    buffers: Buffers,
    /// Sockets with something to read: none is the one that clients send to.
    ready: Vec<Option<u64>>,
}

impl Engine {
    pub(super) fn new(config: RelayConfig) -> io::Result<Self> {
        let clock = Clock::new();
        let mut seeds = Random::from_seed(config.seed);
        let mut direction = |config| Direction {
            link: Link::carrying(config, seeds.next_u64()),
            worked_until: Instant::ZERO,
            received: 0,
            received_bytes: 0,
            send_failed: 0,
            unmarkable: 0,
            errors: Errors::new(),
        };
        Ok(Self {
            listen: Port::bind(config.listen)?,
            clients: BTreeMap::new(),
            by_address: BTreeMap::new(),
            clients_so_far: 0,
            refused: 0,
            next_sweep: Instant::ZERO,
            forward: direction(config.forward.clone()),
            backward: direction(config.backward.clone()),
            recent: Errors::new(),
            realtime: false,
            buffers: Buffers::default(),
            ready: Vec::new(),
            started: clock.now(),
            clock,
            config,
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listen.address()
    }

    /// Relays until it is told to stop.
    pub(super) fn run(mut self, requests: &Receiver<Request>) -> Report {
        self.realtime = self.config.realtime && rise();
        loop {
            match requests.try_recv() {
                // Whoever asked may have gone.
                Ok(Request::Report(answer)) => drop(answer.send(self.report())),
                Ok(Request::Stop) | Err(TryRecvError::Disconnected) => return self.report(),
                Err(TryRecvError::Empty) => {}
            }
            self.receive();
            self.work();
            self.sweep();
            self.wait();
        }
    }

    /// Time since the relay's start, which is the links' zero.
    fn now(&self) -> Instant {
        Instant::ZERO + self.clock.now().since(self.started)
    }

    /// Takes what has come and hands it to the links, in the order and with the times of its arrival.
    fn receive(&mut self) {
        let mut received = Vec::new();
        let mut arrivals = Vec::new();
        for source in core::mem::take(&mut self.ready) {
            match source {
                None => self.listen.receive(&mut self.buffers, &mut received),
                Some(client) => {
                    if let Some(client) = self.clients.get(&client) {
                        client.port.receive(&mut self.buffers, &mut received);
                    }
                }
            }
            arrivals.extend(received.drain(..).map(|datagram| (source, datagram)));
        }
        let (now, wall) = (self.now(), self.clock.wall());
        let wall = Duration::from_micros(wall.as_micros());
        let age = |at: Option<Duration>| wall.saturating_sub(at.unwrap_or(wall));
        arrivals.sort_by_key(|(_, datagram)| core::cmp::Reverse(age(datagram.at)));
        for (source, datagram) in arrivals {
            let arrived = now.saturating_sub(age(datagram.at));
            self.hand_over(source, datagram, arrived);
        }
    }

    /// Hands one datagram to its link.
    fn hand_over(&mut self, source: Option<u64>, datagram: Received, arrived: Instant) {
        let Some(client) = source.or_else(|| self.client_at(datagram.from, datagram.to)) else {
            self.refused += 1;
            return;
        };
        if let Some(client) = self.clients.get_mut(&client) {
            client.last_seen = arrived;
        }
        let direction = match source {
            None => &mut self.forward,
            Some(_) => &mut self.backward,
        };
        direction.received += 1;
        direction.received_bytes += datagram.octets.len() as u64;
        let datagram = Datagram {
            client,
            octets: datagram.octets,
            late: direction.worked_until.since(arrived),
        };
        direction.worked_until = direction.worked_until.max(arrived);
        direction.link.handle_frame(arrived, datagram);
    }

    /// The client at `address` that sends to the address `asked`, a new one if there is room for it.
    fn client_at(&mut self, address: SocketAddr, asked: Option<IpAddr>) -> Option<u64> {
        if let Some(&client) = self.by_address.get(&(address, asked)) {
            return Some(client);
        }
        if self.clients.len() >= self.config.max_clients {
            return None;
        }
        let port = Port::connect(self.config.to).ok()?;
        self.clients_so_far += 1;
        let client = Client {
            address,
            asked,
            port,
            last_seen: Instant::ZERO,
        };
        self.by_address
            .insert((address, asked), self.clients_so_far);
        self.clients.insert(self.clients_so_far, client);
        Some(self.clients_so_far)
    }

    /// Sends what is due.
    fn work(&mut self) {
        let now = self.now();
        for is_forward in [true, false] {
            let direction = self.direction(is_forward);
            direction.worked_until = now;
            direction.link.handle_timeout(now);
            while let Some(output) = self.direction(is_forward).link.poll_output() {
                if let Output::Delivered {
                    at,
                    frame,
                    congestion_marked,
                    ..
                } = output
                {
                    self.send(is_forward, &frame, congestion_marked);
                    let error = self.now().since(at) + frame.late;
                    self.direction(is_forward).errors.record(error);
                    self.recent.record(error);
                }
            }
        }
    }

    const fn direction(&mut self, is_forward: bool) -> &mut Direction {
        match is_forward {
            true => &mut self.forward,
            false => &mut self.backward,
        }
    }

    fn send(&mut self, is_forward: bool, datagram: &Datagram, is_marked: bool) {
        let with_mark = is_marked.then(|| marked(&datagram.octets)).flatten();
        if is_marked && with_mark.is_none() {
            self.direction(is_forward).unmarkable += 1;
        }
        let octets = with_mark.as_ref().unwrap_or(&datagram.octets);
        let sent = match self.clients.get(&datagram.client) {
            Some(client) if is_forward => client.port.send(octets).is_ok(),
            Some(client) => {
                let sent = (self.listen).send_from(octets, client.asked, client.address);
                sent.is_ok()
            }
            None => false,
        };
        if !sent {
            self.direction(is_forward).send_failed += 1;
        }
    }

    /// Forgets clients that were quiet for too long.
    fn sweep(&mut self) {
        let now = self.now();
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP;
        let idle_timeout = self.config.idle_timeout;
        self.clients
            .retain(|_, client| now.since(client.last_seen) < idle_timeout);
        let clients = &self.clients;
        self.by_address
            .retain(|_, client| clients.contains_key(client));
    }

    /// Waits until something comes or is due.
    fn wait(&mut self) {
        let links = [&self.forward.link, &self.backward.link];
        let due = links.into_iter().filter_map(Link::poll_timeout).min();
        let now = self.now();
        let wait = due.map_or(TICK, |due| due.since(now).min(TICK));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: wait.subsec_nanos().into(),
        };
        let ports = core::iter::once((None, &self.listen));
        let clients = self.clients.iter();
        let ports: Vec<_> = ports
            .chain(clients.map(|(&number, client)| (Some(number), &client.port)))
            .collect();
        let mut polled: Vec<_> = ports
            .iter()
            .map(|(_, port)| PollFd::new(port, PollFlags::IN))
            .collect();
        // An interrupted wait is a short one.
        if poll(&mut polled, Some(&timeout)).is_ok() {
            let is_ready = |polled: &PollFd<'_>| !polled.revents().is_empty();
            let ready = ports
                .iter()
                .zip(&polled)
                .filter(|(_, polled)| is_ready(polled));
            self.ready.extend(ready.map(|((source, _), _)| *source));
        }
    }

    fn report(&mut self) -> Report {
        let mut errors = self.forward.errors.clone();
        errors.add(&self.backward.errors);
        let error_ms = errors.quantiles();
        let recent_error_ms = self.recent.quantiles();
        self.recent.clear();
        Report {
            seconds: self.now().since(Instant::ZERO).as_secs_f64(),
            realtime: self.realtime,
            clients: self.clients.len(),
            refused: self.refused,
            disturbed: error_ms.is_disturbed(),
            error_ms,
            recent_error_ms,
            forward: self.forward.flow(),
            backward: self.backward.flow(),
        }
    }
}

impl Direction {
    fn flow(&self) -> Flow {
        let counters = self.link.counters();
        let originals = counters.delivered - counters.duplicated;
        Flow {
            received: self.received,
            received_bytes: self.received_bytes,
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_size.as_bytes(),
            dropped: Drops::from(counters),
            send_failed: self.send_failed,
            marked: counters.marked,
            unmarkable: self.unmarkable,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            queue_ms_mean: counters.queued_nanos as f64 / 1e6 / originals.max(1) as f64,
            queue_packets: self.link.queue_length(),
            error_ms: self.errors.quantiles(),
        }
    }
}

/// The link packet with a congestion mark; none if it is none.
fn marked(octets: &Bytes) -> Option<Bytes> {
    let mut packet = LpPacket::decode(octets.clone()).ok()?;
    packet.congestion_mark = packet.congestion_mark.max(1);
    Some(packet.encode())
}
