//! A UDP socket with batched calls and segmentation offload where the kernel has them.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use namecast_forward::{Keep, PathMtuConfig};
use namecast_units::Duration;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use crate::link::{LinkCounters, LinkDrop, MAX_FRAME_SIZE};

/// What the kernel is asked to buffer of what was received, in octets; it may grant less.
const RECEIVE_BUFFER: usize = 4 * 1024 * 1024;
/// Octets of one receive buffer: the kernel may join datagrams up to the largest IP packet.
const RECEIVE_SIZE: usize = 65_536;
/// Buffers filled by one call: one where the system has no batched calls.
const RECEIVE_BUFFERS: usize = if BATCH_SIZE < 16 { BATCH_SIZE } else { 16 };
/// Most octets the kernel cuts into datagrams in one call: the largest UDP payload, less room for any header.
const MAX_JOINED: usize = 65_000;
/// Datagrams of others that are taken from a peer's new socket; more are lost.
const MAX_OTHERS: usize = 64;
/// Pause after an error that may repeat at once.
pub(crate) const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);

const _: () = assert!(MAX_FRAME_SIZE <= MAX_JOINED);

/// Between which addresses a peer's datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UdpPath {
    /// The peer.
    pub(crate) remote: SocketAddr,
    /// Address of this machine that the peer asks, which is where it expects answers from; `None`: the socket has one only.
    pub(crate) local: Option<IpAddr>,
}

impl From<SocketAddr> for UdpPath {
    fn from(remote: SocketAddr) -> Self {
        Self {
            remote,
            local: None,
        }
    }
}

impl UdpPath {
    /// Sizes of datagrams to the peer between which probes look for the path's; `None` for a peer on this machine, which takes any.
    pub(crate) fn mtu_discovery(self) -> Option<PathMtuConfig> {
        match self.remote {
            _ if self.remote.ip().to_canonical().is_loopback() => None,
            SocketAddr::V4(_) => Some(PathMtuConfig::UDP_V4),
            SocketAddr::V6(_) => Some(PathMtuConfig::UDP_V6),
        }
    }
}

/// What became of frames that were to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// How many of the first need not be sent again.
    pub(crate) frames: usize,
    /// Whether the one after them is larger than the link, or the path as far as the system knows it, takes.
    pub(crate) is_too_large: bool,
}

/// Whether the system says that a datagram was too large: this one, or one sent earlier of which a router said so.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MSGSIZE)
}

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct UdpLink {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Most frames that the kernel cuts from one call. Not as in `state`, which takes frames that are too large for a sign that the
    /// interface has no offload.
    max_segments: AtomicUsize,
    /// Octets of IP's and UDP's headers.
    headers: usize,
    /// Whether it receives at all addresses of this machine.
    is_wildcard: bool,
    /// Whether there is one peer only.
    is_connected: bool,
    /// Told when the peer's machine says that nobody listens there.
    refused: Notify,
}

impl UdpLink {
    /// A socket bound to `address`, which no other program has.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = unbound(address)?;
        socket.bind(&address.into())?;
        // From now on this program may bind further sockets to the same address, one for each peer; others may not.
        let _ = share_port(&socket);
        Self::new(socket, false)
    }

    /// A socket that exchanges datagrams with `remote` only.
    pub(crate) fn connect(remote: SocketAddr) -> io::Result<Self> {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = unbound(remote)?;
        socket.bind(&any.into())?;
        socket.connect(&remote.into())?;
        Self::new(socket, true)
    }

    /// A socket beside this one, with the same port, that exchanges datagrams by `path` only and has a buffer of its own. Until it is
    /// connected it receives what any peer sends, which is returned with it.
    pub(crate) fn beside(&self, path: UdpPath) -> io::Result<(Self, Vec<(UdpPath, Bytes)>)> {
        let socket = unbound(path.remote)?;
        share_port(&socket)?;
        let mut address = self.local_address()?;
        if let Some(local) = path.local {
            address.set_ip(local);
        }
        if let (SocketAddr::V6(own), SocketAddr::V6(remote)) = (&mut address, path.remote) {
            // Link-local addresses are those of one interface.
            own.set_scope_id(remote.scope_id());
        }
        socket.bind(&address.into())?;
        socket.connect(&path.remote.into())?;
        let socket = std::net::UdpSocket::from(socket);
        let mut others = Vec::new();
        let mut buffer = [0; MAX_FRAME_SIZE];
        // Bounded, as others may send without end.
        while others.len() < MAX_OTHERS
            && let Ok((size, from)) = socket.recv_from(&mut buffer)
        {
            let from = UdpPath {
                remote: from,
                ..path
            };
            others.push((from, Bytes::copy_from_slice(&buffer[..size])));
        }
        Ok((Self::new(socket.into(), true)?, others))
    }

    fn new(socket: Socket, is_connected: bool) -> io::Result<Self> {
        let socket = UdpSocket::from_std(socket.into())?;
        let state = UdpSocketState::new((&socket).into())?;
        let own = socket.local_addr()?;
        let is_wildcard = !is_connected && own.ip().is_unspecified();
        Ok(Self {
            max_segments: AtomicUsize::new(state.max_gso_segments()),
            headers: if own.is_ipv4() { 28 } else { 48 },
            socket,
            state,
            is_wildcard,
            is_connected,
            refused: Notify::new(),
        })
    }

    /// The address it is bound to.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether there is one peer only.
    pub(crate) const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Octets of the largest datagram to the only peer, by the interface and what routers said; `None` where the system does not tell.
    pub(crate) fn limit(&self) -> Option<usize> {
        let mtu = self.is_connected.then(|| self.system_mtu()).flatten()?;
        (mtu as usize).checked_sub(self.headers)
    }

    #[cfg(target_os = "linux")]
    fn system_mtu(&self) -> Option<u32> {
        use rustix::net::sockopt::{ip_mtu, ipv6_mtu};

        match self.headers {
            28 => ip_mtu(&self.socket),
            _ => ipv6_mtu(&self.socket),
        }
        .ok()
    }

    #[cfg(not(target_os = "linux"))]
    const fn system_mtu(&self) -> Option<u32> {
        None
    }

    /// Waits until there may be datagrams.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Waits until a frame was sent to where nobody listens.
    pub(crate) async fn refused(&self) -> io::Error {
        self.refused.notified().await;
        io::ErrorKind::ConnectionRefused.into()
    }

    /// Takes datagrams that are there, by path.
    pub(crate) fn try_receive(&self, counters: &LinkCounters) -> io::Result<Received> {
        BUFFERS.with_borrow_mut(|buffers| {
            let mut filled = None;
            let result = self.socket.try_io(Interest::READABLE, || {
                let count = buffers.fill(self)?;
                filled = Some(count);
                // If there was room for more, none is left: the next call would find nothing, so wait before it.
                match count < RECEIVE_BUFFERS {
                    true => Err(io::ErrorKind::WouldBlock.into()),
                    false => Ok(()),
                }
            });
            match (filled, result) {
                (Some(count), _) => Ok(Received {
                    batches: buffers.cut(count, self.is_wildcard, counters),
                    more: count == RECEIVE_BUFFERS,
                }),
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                (None, _) => Ok(Received::default()),
            }
        })
    }

    /// Sends frames by `path` as long as the kernel has room and the frames are not too large. One that cannot be sent for another reason
    /// is counted, and does not keep back those after it.
    pub(crate) fn try_send(
        &self,
        path: UdpPath,
        frames: &[Bytes],
        counters: &LinkCounters,
    ) -> Sent {
        let mut done = 0;
        let mut is_too_large = false;
        while let Some(rest) = frames.get(done..)
            && !rest.is_empty()
        {
            let count = joinable(rest, self.max_segments.load(Relaxed));
            let sent = match count {
                1 => self.try_send_again(path, &rest[0]).map(|()| 1),
                _ => self.try_send_run(path, &rest[..count]),
            };
            match sent {
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if self::is_too_large(&error) => {
                    is_too_large = true;
                    break;
                }
                Err(error) => {
                    if error.kind() == io::ErrorKind::ConnectionRefused {
                        self.refused.notify_one();
                    }
                    counters.dropped(LinkDrop::SendFailed, count as u64);
                    done += count;
                }
            }
        }
        Sent {
            frames: done,
            is_too_large,
        }
    }

    /// Waits until the kernel may have room.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    /// Returns whether the kernel may have room: not from when it had none until it says that it has again.
    pub(crate) fn may_have_room(&self) -> bool {
        self.socket.try_io(Interest::WRITABLE, || Ok(())).is_ok()
    }

    /// Sends a frame. An earlier one may have been too large, of which the system tells now: if this one is not, it is sent again once.
    fn try_send_again(&self, path: UdpPath, frame: &[u8]) -> io::Result<()> {
        match self.try_send_one(path, frame) {
            Err(error) if is_too_large(&error) && !self.exceeds_limit(frame) => {
                self.try_send_one(path, frame)
            }
            sent => sent,
        }
    }

    fn exceeds_limit(&self, frame: &[u8]) -> bool {
        self.limit().is_some_and(|limit| frame.len() > limit)
    }

    /// Sends a run of frames in one call, or only the first if the kernel refuses; says how many. Sent alone, a frame shows whether it was
    /// too large or the interface has no offload.
    fn try_send_run(&self, path: UdpPath, run: &[Bytes]) -> io::Result<usize> {
        const NO_OFFLOAD: &[Errno] = &[
            #[cfg(unix)]
            Errno::IO,
            Errno::INVAL,
        ];
        let error = match self.try_send_joined(path, run) {
            Ok(()) => return Ok(run.len()),
            Err(error) => error,
        };
        let is_refused = Errno::from_io_error(&error).is_some_and(|it| NO_OFFLOAD.contains(&it));
        let is_other = !is_refused && !is_too_large(&error);
        if is_other || is_too_large(&error) && self.exceeds_limit(&run[0]) {
            return Err(error);
        }
        self.try_send_again(path, &run[0])?;
        if is_refused {
            self.max_segments.store(1, Relaxed);
        }
        Ok(1)
    }

    fn try_send_one(&self, path: UdpPath, frame: &[u8]) -> io::Result<()> {
        match self.is_connected {
            // The kernel knows the way already.
            true => self.socket.try_send(frame).map(|_| ()),
            false => self.try_transmit(path, frame, None),
        }
    }

    fn try_send_joined(&self, path: UdpPath, run: &[Bytes]) -> io::Result<()> {
        let mut joined = Vec::with_capacity(run.iter().map(Bytes::len).sum());
        run.iter().for_each(|frame| joined.extend_from_slice(frame));
        self.try_transmit(path, &joined, Some(run[0].len()))
    }

    fn try_transmit(
        &self,
        path: UdpPath,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: path.remote,
            ecn: None,
            contents,
            segment_size,
            src_ip: path.local,
        };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        self.socket.try_io(Interest::WRITABLE, send)
    }
}

/// Lets sockets of this program have one port. Windows gives all datagrams to one of them, so there they must not.
#[cfg(unix)]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}
#[cfg(not(unix))]
fn share_port(_: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A socket without address that never waits, with the buffer that bursts need.
fn unbound(like: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(like), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if like.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // More than the kernel grants is cut, so this fails only where sockets have no buffers. What is sent has the usual one: what
    // waits there waits before any mark, and the node has a queue of its own.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    Ok(socket)
}

/// How many frames at the start of `frames` the kernel can send in one call: equal ones, of which the last may be
/// shorter.
fn joinable(frames: &[Bytes], max_segments: usize) -> usize {
    let size = frames[0].len();
    let mut total = size;
    let mut count = 1;
    for frame in frames.iter().take(max_segments).skip(1) {
        total += frame.len();
        if frame.is_empty() || frame.len() > size || total > MAX_JOINED {
            break;
        }
        count += 1;
        if frame.len() < size {
            break;
        }
    }
    count
}

/// What one call received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Frames by path.
    pub(crate) batches: Vec<(UdpPath, Vec<Bytes>)>,
    /// Whether there may be more.
    pub(crate) more: bool,
}

thread_local! {
    /// One set for each thread, as they are large and used only between two lines of code.
    static BUFFERS: RefCell<ReceiveBuffers> = RefCell::default();
}

/// Where the kernel puts datagrams.
#[derive(Debug)]
struct ReceiveBuffers {
    octets: Vec<u8>,
    meta: [RecvMeta; RECEIVE_BUFFERS],
    /// Where small frames go. Once none of them is left, their memory is used again.
    small: BytesMut,
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        Self {
            octets: vec![0; RECEIVE_BUFFERS * RECEIVE_SIZE],
            meta: [RecvMeta::default(); RECEIVE_BUFFERS],
            small: BytesMut::with_capacity(RECEIVE_SIZE),
        }
    }
}

impl ReceiveBuffers {
    fn fill(&mut self, link: &UdpLink) -> io::Result<usize> {
        let mut chunks = self.octets.chunks_mut(RECEIVE_SIZE);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] = core::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().expect("there is a chunk for each buffer"))
        });
        link.state
            .recv((&link.socket).into(), &mut slices, &mut self.meta)
    }

    /// Cuts the first `filled` buffers into frames: small ones in common memory, large ones in memory of their own, as
    /// [`Keep::LargeFrames`] says. What one sender sent in a row stays together; where it was sent matters to a socket that receives
    /// at all addresses (`is_wildcard`).
    fn cut(
        &mut self,
        filled: usize,
        is_wildcard: bool,
        counters: &LinkCounters,
    ) -> Vec<(UdpPath, Vec<Bytes>)> {
        let mut batches: Vec<(UdpPath, Vec<Bytes>)> = Vec::new();
        let buffers = self.octets.chunks(RECEIVE_SIZE).zip(&self.meta);
        for (octets, meta) in buffers.take(filled) {
            let path = UdpPath {
                remote: meta.addr,
                local: meta.dst_ip.filter(|_| is_wildcard),
            };
            for datagram in octets[..meta.len.min(octets.len())].chunks(meta.stride.max(1)) {
                if datagram.len() > MAX_FRAME_SIZE {
                    counters.dropped(LinkDrop::TooLarge, 1);
                    continue;
                }
                let frame = match datagram.len() > Keep::SMALL {
                    true => Bytes::copy_from_slice(datagram),
                    false => {
                        self.small.extend_from_slice(datagram);
                        self.small.split().freeze()
                    }
                };
                match batches.last_mut() {
                    Some((sender, frames)) if *sender == path => frames.push(frame),
                    _ => batches.push((path, vec![frame])),
                }
            }
        }
        batches
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "../../tests/all/common/namespace.rs"]
#[expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]
mod namespace;

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lengths: &[usize]) -> Vec<Bytes> {
        lengths
            .iter()
            .map(|&length| Bytes::from(vec![0; length]))
            .collect()
    }

    #[test]
    fn equal_frames_are_joined_and_a_shorter_one_ends_the_run() {
        assert_eq!(joinable(&frames(&[9]), 64), 1);
        assert_eq!(joinable(&frames(&[9, 9, 9]), 64), 3);
        assert_eq!(joinable(&frames(&[9, 9, 5, 5]), 64), 3);
        assert_eq!(joinable(&frames(&[9, 10]), 64), 1);
    }

    /// 7 · 8800 = 61 600 octets fit into 65 000, 8 · 8800 = 70 400 do not.
    #[test]
    fn a_run_is_bounded_in_segments_and_octets() {
        assert_eq!(joinable(&frames(&[9; 10]), 4), 4);
        assert_eq!(joinable(&frames(&[9; 10]), 1), 1);
        assert_eq!(joinable(&frames(&[8_800; 10]), 64), 7);
    }

    /// On loopback an answer takes no time: one that does not come by then never does.
    const MAX_WAIT: Duration = Duration::from_secs(5);

    /// A peer that is connected to one of this machine's addresses takes answers from that address alone: from the listener of all of
    /// them, and from a socket for this peer.
    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn answers_leave_from_where_the_peer_asked() {
        let listener = UdpLink::bind("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = listener.local_address().unwrap().port();
        let counters = LinkCounters::default();
        for asked in ["127.0.0.1", "127.0.0.2"] {
            let peer = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
            peer.connect((asked, port)).await.unwrap();
            peer.send(b"asks").await.unwrap();
            let path = loop {
                listener.readable().await.unwrap();
                let received = listener.try_receive(&counters).unwrap();
                if let Some(&(path, _)) = received.batches.first() {
                    break path;
                }
            };
            assert_eq!(path.local, Some(asked.parse().unwrap()));
            let (own, _) = listener.beside(path).unwrap();
            let frames = [Bytes::from_static(b"answers")];
            let mut buffer = [0; 16];
            for link in [&listener, &own] {
                assert_eq!(link.try_send(path, &frames, &counters).frames, 1);
                let answer = tokio::time::timeout(MAX_WAIT, peer.recv(&mut buffer));
                assert_eq!(answer.await.unwrap().unwrap(), frames[0].len());
            }
        }
    }

    #[test]
    fn joined_datagrams_are_cut_at_the_stride() {
        let mut buffers = ReceiveBuffers::default();
        let counters = LinkCounters::default();
        buffers.octets[..10].copy_from_slice(b"aaaabbbbcc");
        buffers.meta[0].len = 10;
        buffers.meta[0].stride = 4;
        buffers.meta[1].len = MAX_FRAME_SIZE + 1;
        buffers.meta[1].stride = MAX_FRAME_SIZE + 1;
        // One more of the first sender, and one of another.
        for (place, port) in [(2, 0), (3, 9)] {
            buffers.octets[place * RECEIVE_SIZE..][..2].copy_from_slice(b"dd");
            (buffers.meta[place].len, buffers.meta[place].stride) = (2, 2);
            buffers.meta[place].addr.set_port(port);
        }
        buffers.meta[0].addr.set_port(0);
        let batches = buffers.cut(4, false, &counters);
        assert_eq!(batches.len(), 2);
        assert_eq!(batches[0].1, ["aaaa", "bbbb", "cc", "dd"]);
        assert_eq!(batches[1].1, ["dd"]);
        assert_eq!(counters.drops(LinkDrop::TooLarge), 1);
    }

    /// An interface that takes any datagram up to its MTU, which falls from 1500 to 1280: 28 octets are headers. What is too large is
    /// refused and not lost, alone or in a run, and runs still leave in one call.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn datagrams_that_are_too_large_are_refused_and_offload_stays() {
        const TEST: &str =
            "link::udp::tests::datagrams_that_are_too_large_are_refused_and_offload_stays";
        const SET_UP: &str = "ip link add near0 mtu 1500 type veth peer name far0 mtu 1500 && \
            ip addr add 192.0.2.1/24 dev near0 && ip link set near0 up && ip link set far0 up && \
            ip link set lo up && ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev near0";
        if !namespace::is_inside(TEST, SET_UP) {
            return;
        }
        let peer = SocketAddr::from(([192, 0, 2, 2], 6_363));
        let link = UdpLink::connect(peer).unwrap();
        let counters = LinkCounters::default();
        link.writable().await.unwrap();
        let send = |length| link.try_send(peer.into(), &frames(&[length; 20]), &counters);
        let all = Sent {
            frames: 20,
            is_too_large: false,
        };
        let none = Sent {
            frames: 0,
            is_too_large: true,
        };
        let segments = link.max_segments.load(Relaxed);
        assert_eq!((link.limit(), send(1_400)), (Some(1_472), all));
        let command = std::process::Command::new("ip")
            .args(["link", "set", "near0", "mtu", "1280"])
            .status();
        assert!(command.unwrap().success());
        assert_eq!((link.limit(), send(1_400)), (Some(1_252), none));
        assert_eq!(send(1_253), none);
        let one = link.try_send(peer.into(), &frames(&[1_400]), &counters);
        assert_eq!(one, none);
        assert_eq!(send(1_252), all);

        // A router's message about an earlier datagram refuses those that are larger than it says, and no others.
        for (mtu, limit) in [(1_240, 1_212), (68, 524)] {
            report(link.local_address().unwrap(), peer, mtu);
            assert_eq!((send(limit + 1), link.limit()), (none, Some(limit)));
            report(link.local_address().unwrap(), peer, mtu);
            assert_eq!(send(limit), all);
            report(link.local_address().unwrap(), peer, mtu);
            let one = link.try_send(peer.into(), &frames(&[limit]), &counters);
            assert_eq!((one.frames, one.is_too_large), (1, false));
        }
        // What routers say does not keep probes from leaving.
        assert_eq!(send(1_252), all);
        assert_eq!(link.max_segments.load(Relaxed), segments);
        assert_eq!(counters.drops(LinkDrop::SendFailed), 0);
    }

    /// Lets the system hear, as from a router, that a datagram from `own` to `peer` exceeds an MTU: ICMP type 3, code 4 (RFC 1191, section
    /// 4) with the datagram's headers.
    #[cfg(target_os = "linux")]
    fn report(own: SocketAddr, peer: SocketAddr, mtu: u16) {
        let (SocketAddr::V4(own), SocketAddr::V4(peer)) = (own, peer) else {
            panic!("IPv4 only");
        };
        let mut message = vec![3, 4, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        message.extend([0x45, 0, 5, 0x78, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        message.extend(own.ip().octets());
        message.extend(peer.ip().octets());
        message.extend(own.port().to_be_bytes());
        message.extend(peer.port().to_be_bytes());
        message.extend([5, 0x64, 0, 0]);
        let words = message.chunks(2);
        let sum: u32 = words
            .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]))
            .sum();
        let folded = (sum & 0xFFFF) + (sum >> 16);
        let checksum = !((folded & 0xFFFF) + (folded >> 16)) as u16;
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        let to = SocketAddr::from((*own.ip(), 0));
        socket.send_to(&message, &to.into()).unwrap();
    }
}
