//! Datagrams in and out without waiting, with the system calls that forwarder and relay may use alike.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

/// What the kernel is asked to buffer each way, in octets; it may grant less.
const SOCKET_BUFFER: usize = 8 << 20;
/// Octets of one receive buffer: the kernel may join datagrams up to the largest IP packet.
const RECEIVE_SIZE: usize = 65_536;
/// Buffers filled by one call.
const RECEIVE_BUFFERS: usize = 16;
/// Most octets that the kernel cuts into datagrams in one call.
const MAX_JOINED: usize = 65_000;

/// How datagrams that are there together are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// One call each.
    OneByOne,
    /// Equal ones with one call, which the kernel cuts into datagrams: segmentation offload.
    Joined,
}

/// A UDP socket on the loopback interface.
#[derive(Debug)]
pub(super) struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    octets: Vec<u8>,
    meta: [RecvMeta; RECEIVE_BUFFERS],
    joined: Vec<u8>,
}

impl Port {
    /// A socket with a port that was free.
    pub(super) fn new() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            socket: socket.into(),
            octets: vec![0; RECEIVE_BUFFERS * RECEIVE_SIZE],
            meta: [RecvMeta::default(); RECEIVE_BUFFERS],
            joined: Vec::new(),
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Shows what is there to `take`, each datagram with its sender; says how many there were, zero if none wait.
    pub(super) fn receive(&mut self, mut take: impl FnMut(SocketAddr, &[u8])) -> usize {
        let mut chunks = self.octets.chunks_mut(RECEIVE_SIZE);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] = core::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().expect("there is a chunk for each buffer"))
        });
        let socket = (&self.socket).into();
        let Ok(filled) = self.state.recv(socket, &mut slices, &mut self.meta) else {
            return 0;
        };
        let mut count = 0;
        let buffers = self.octets.chunks(RECEIVE_SIZE).zip(&self.meta);
        for (octets, meta) in buffers.take(filled) {
            for datagram in octets[..meta.len].chunks(meta.stride.max(1)) {
                take(meta.addr, datagram);
                count += 1;
            }
        }
        count
    }

    /// Sends `datagrams`; what the kernel has no room for is lost, as on a wire.
    pub(super) fn send(&mut self, to: SocketAddr, datagrams: &[impl AsRef<[u8]>], how: Sending) {
        let mut rest = datagrams;
        while let Some(first) = rest.first().map(AsRef::as_ref) {
            let count = match how {
                Sending::OneByOne => 1,
                Sending::Joined => self.joinable(rest),
            };
            let contents = match count {
                1 => first,
                _ => {
                    self.joined.clear();
                    let run = rest[..count].iter();
                    run.for_each(|datagram| self.joined.extend_from_slice(datagram.as_ref()));
                    &self.joined
                }
            };
            let transmit = Transmit {
                destination: to,
                ecn: None,
                contents,
                segment_size: (count > 1).then_some(first.len()),
                src_ip: None,
            };
            let _ = self.state.try_send((&self.socket).into(), &transmit);
            rest = &rest[count..];
        }
    }

    /// How many at the start are equally long, the last one perhaps shorter, and so can be sent with one call.
    fn joinable(&self, datagrams: &[impl AsRef<[u8]>]) -> usize {
        let length = |place: usize| datagrams.get(place).map(|it| it.as_ref().len());
        let size = length(0).unwrap_or_default();
        let most = (MAX_JOINED / size.max(1)).clamp(1, self.state.max_gso_segments());
        let mut count = 1;
        while count < most
            && length(count - 1) == Some(size)
            && length(count).is_some_and(|next| next <= size && next > 0)
        {
            count += 1;
        }
        count
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
