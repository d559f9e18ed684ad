//! The relay between real sockets. Times are bounded from below only: a busy machine is never early.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use bytes::Bytes;
use namecast_lab::impair::{Relay, RelayConfig, RelayError, Report};
use namecast_netem as netem;
use namecast_packet::LpPacket;
use namecast_units::{Bitrate, Duration};

/// Longer than anything here takes on any machine.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long nothing must come to be taken for nothing: what is lost stays lost, so it may be short.
const SILENCE: Duration = Duration::from_millis(200);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    socket.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    socket
}

/// The relay in front of a new server, changed by `change`.
fn relay(change: impl FnOnce(&mut RelayConfig)) -> (Relay, UdpSocket) {
    let server = socket();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let to = server.local_addr().expect("it is bound");
    let mut config = RelayConfig::new(any, to);
    // Tests share their machine with others.
    config.realtime = false;
    change(&mut config);
    (Relay::start(config).expect("it makes sense"), server)
}

fn client(relay: &Relay) -> UdpSocket {
    let client = socket();
    client.connect(relay.address()).expect("loopback is there");
    client
}

fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut octets = vec![0; 65_536];
    let (length, from) = socket.recv_from(&mut octets).ok()?;
    octets.truncate(length);
    Some((octets, from))
}

/// Asks until the report is as it should be; a test hangs no longer than its timeout.
fn report_when(relay: &Relay, holds: impl Fn(&Report) -> bool) -> Report {
    let started = std::time::Instant::now();
    loop {
        let report = relay.report().expect("the thread runs");
        if holds(&report) {
            return report;
        }
        assert!(started.elapsed() < TIMEOUT, "{report:?}");
    }
}

/// Sizes from nothing to the largest datagram; order and octets stay.
#[test]
fn datagrams_pass_unchanged_both_ways() {
    let (relay, server) = relay(|config| {
        config.forward.delay = Duration::from_millis(5);
        config.backward.rate = Some(Bitrate::mbps(100).into());
    });
    let client = client(&relay);
    let sent: Vec<Vec<u8>> = [1, 100, 1_200, 0, 8_800, 65_507]
        .iter()
        .enumerate()
        .map(|(index, &length)| vec![u8::try_from(index).expect("six"); length])
        .collect();
    for octets in &sent {
        client.send(octets).expect("loopback takes it");
        let (arrived, from) = receive(&server).expect("it arrives");
        assert_eq!(&arrived, octets);
        server.send_to(&arrived, from).expect("loopback takes it");
        assert_eq!(&receive(&client).expect("it comes back").0, octets);
    }
    let report = relay.stop().expect("it ran until now");
    for flow in [&report.forward, &report.backward] {
        assert_eq!((flow.received, flow.delivered, flow.send_failed), (6, 6, 0));
        assert_eq!(flow.received_bytes, 75_608);
        assert_eq!(flow.dropped.total(), 0);
    }
    assert_eq!((report.clients, report.refused), (1, 0));
}

/// 30 ms there and 20 ms back: never less, whatever the machine does.
#[test]
fn nothing_arrives_early() {
    let (relay, server) = relay(|config| {
        config.forward.delay = Duration::from_millis(30);
        config.backward.delay = Duration::from_millis(20);
    });
    let client = client(&relay);
    for _ in 0..5 {
        let sent = std::time::Instant::now();
        client.send(b"ping").expect("loopback takes it");
        let (octets, from) = receive(&server).expect("it arrives");
        let there = sent.elapsed();
        server.send_to(&octets, from).expect("loopback takes it");
        receive(&client).expect("it comes back");
        assert!(there >= Duration::from_millis(30), "{there:?}");
        assert!(sent.elapsed() >= Duration::from_millis(50));
    }
}

#[test]
fn what_is_lost_does_not_arrive() {
    let (relay, server) = relay(|config| config.forward.loss = netem::Loss::Random { share: 1.0 });
    server.set_read_timeout(Some(SILENCE)).expect("not zero");
    let client = client(&relay);
    for _ in 0..50 {
        client.send(b"lost").expect("loopback takes it");
    }
    let report = report_when(&relay, |report| report.forward.received == 50);
    assert_eq!(
        (report.forward.dropped.loss, report.forward.delivered),
        (50, 0)
    );
    assert!(receive(&server).is_none());
}

/// 1250 octets at 10 kbit/s take a second. One is under way, two wait, the other 17 have no room: the relay need not be fast for
/// that, only the sender.
#[test]
fn a_full_queue_drops_and_counts() {
    let (relay, _server) = relay(|config| {
        config.forward.rate = Some(Bitrate::bps(100).into());
        config.forward.queue = netem::Queue::DropTail { packets: 2 };
    });
    let client = client(&relay);
    for _ in 0..20 {
        client.send(&[0; 1_250]).expect("loopback takes it");
    }
    let report = report_when(&relay, |report| report.forward.received == 20);
    assert_eq!(report.forward.dropped.queue_full, 17);
    assert_eq!(report.forward.queue_packets, 2);
}

/// Each client has an address of its own towards the server, and gets its own answers.
#[test]
fn clients_are_kept_apart() {
    let (relay, server) = relay(|_| {});
    let clients = [client(&relay), client(&relay)];
    let mut addresses = BTreeMap::new();
    for (index, client) in clients.iter().enumerate() {
        client
            .send(&[u8::try_from(index).expect("two")])
            .expect("loopback takes it");
        let (octets, from) = receive(&server).expect("it arrives");
        addresses.insert(octets[0], from);
    }
    assert_ne!(addresses[&0], addresses[&1]);
    for (index, from) in addresses.iter().rev() {
        server
            .send_to(&[10 + index], from)
            .expect("loopback takes it");
    }
    for (index, client) in clients.iter().enumerate() {
        let (octets, _) = receive(client).expect("it comes back");
        assert_eq!(usize::from(octets[0]), 10 + index);
    }
    assert_eq!(relay.report().expect("it runs").clients, 2);
}

#[test]
fn clients_are_bounded_and_forgotten() {
    let (relay, server) = relay(|config| {
        config.max_clients = 1;
        config.idle_timeout = Duration::from_millis(50);
    });
    let (first, second) = (client(&relay), client(&relay));
    first.send(b"1").expect("loopback takes it");
    receive(&server).expect("it arrives");
    // Whether the first is forgotten by now depends on the machine; that it is at some time does not.
    report_when(&relay, |report| report.clients == 0);
    second.send(b"2").expect("loopback takes it");
    assert_eq!(receive(&server).expect("there is room again").0, b"2");
}

#[test]
fn a_client_too_many_is_refused() {
    let (relay, server) = relay(|config| config.max_clients = 1);
    let (first, second) = (client(&relay), client(&relay));
    first.send(b"1").expect("loopback takes it");
    receive(&server).expect("it arrives");
    second.send(b"2").expect("loopback takes it");
    let report = report_when(&relay, |report| report.refused == 1);
    assert_eq!((report.clients, report.forward.received), (1, 1));
}

/// A packet of NDN gets a congestion mark; what is none passes as it was. The first finds the link idle and is not marked.
#[test]
fn marks_are_written_into_link_headers() {
    let (relay, server) = relay(|config| {
        config.forward.rate = Some(Bitrate::kbps(100).into());
        config.forward.queue = netem::Queue::ramp(100);
    });
    let client = client(&relay);
    // An Interest /8=A with a nonce, bare.
    let interest = [5, 11, 7, 3, 8, 1, b'A', 10, 4, 1, 2, 3, 4];
    let strange = vec![0xFF; 1_000];
    for octets in [&strange[..], &interest, &strange] {
        client.send(octets).expect("loopback takes it");
    }
    assert_eq!(receive(&server).expect("it arrives").0, strange);
    let (octets, _) = receive(&server).expect("it arrives");
    let packet = LpPacket::decode(Bytes::from(octets)).expect("it is a link packet");
    assert_eq!(packet.congestion_mark, 1);
    assert_eq!(packet.fragment.as_deref(), Some(&interest[..]));
    assert_eq!(receive(&server).expect("it arrives").0, strange);
    let report = report_when(&relay, |report| report.forward.delivered == 3);
    assert_eq!((report.forward.marked, report.forward.unmarkable), (2, 1));
}

/// Nobody listens at the other end, which the system tells: the relay goes on, and passes what comes once somebody does.
#[test]
fn a_server_may_come_late() {
    let (relay, server) = relay(|_| {});
    let address = server.local_addr().expect("it is bound");
    drop(server);
    let client = client(&relay);
    for _ in 0..10 {
        client.send(b"early").expect("loopback takes it");
    }
    report_when(&relay, |report| report.forward.received == 10);
    let server = UdpSocket::bind(address).expect("it was free a moment ago");
    server.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    client.send(b"late").expect("loopback takes it");
    assert_eq!(receive(&server).expect("it arrives").0, b"late");
}

#[test]
fn a_link_that_makes_no_sense_is_refused() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = RelayConfig::new(any, any);
    config.backward.corrupt = 2.0;
    let Err(error @ RelayError::Config { .. }) = Relay::start(config) else {
        panic!("a share of 2");
    };
    assert_eq!(
        error.to_string(),
        "backward.corrupt: expected a share between 0 and 1"
    );
}
