//! Datagrams in and out, with the time at which the kernel received them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use namecast_units::Duration;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

/// What the kernel is asked to buffer each way, in octets; it may grant less.
const SOCKET_BUFFER: usize = 8 << 20;
/// Octets of one receive buffer: the kernel may join datagrams up to the largest IP packet.
const RECEIVE_SIZE: usize = 65_536;
/// Buffers filled by one call: one where the system has no batched calls.
const RECEIVE_BUFFERS: usize = if BATCH_SIZE < 16 { BATCH_SIZE } else { 16 };

/// A datagram as it came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    /// Address of this machine that it was sent to, where the system tells.
    pub(crate) to: Option<IpAddr>,
    pub(crate) octets: Bytes,
    /// When the kernel took it, since 1970; none if the system does not say.
    pub(crate) at: Option<Duration>,
}

/// A UDP socket that never blocks.
#[derive(Debug)]
pub(crate) struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Port {
    /// A socket bound to `address`.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        // More than the kernel grants is cut, so these fail only where sockets have no buffers.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self {
            socket: socket.into(),
            state,
        })
    }

    /// A socket that exchanges datagrams with `remote` only.
    pub(crate) fn connect(remote: SocketAddr) -> io::Result<Self> {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let port = Self::bind(any)?;
        port.socket.connect(remote)?;
        Ok(port)
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends to whom it is connected to.
    pub(crate) fn send(&self, octets: &[u8]) -> io::Result<()> {
        self.twice(|socket| socket.send(octets))
    }

    pub(crate) fn send_to(&self, octets: &[u8], to: SocketAddr) -> io::Result<()> {
        self.twice(|socket| socket.send_to(octets, to))
    }

    /// What an earlier datagram met with, such as nobody listening, is told to the next, which is then not sent.
    fn twice(&self, send: impl Fn(&UdpSocket) -> io::Result<usize>) -> io::Result<()> {
        match send(&self.socket) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => send(&self.socket),
            result => result,
        }
        .map(|_| ())
    }

    /// Appends what is there to `received`, a bounded number. Nothing there, or an error of an earlier datagram, adds nothing.
    pub(crate) fn receive(&self, buffers: &mut Buffers, received: &mut Vec<Received>) {
        self.visit(buffers, |meta, octets| {
            received.push(Received {
                from: meta.addr,
                to: meta.dst_ip,
                octets: Bytes::copy_from_slice(octets),
                at: meta.timestamp,
            });
        });
    }

    /// Shows what is there to `take`, a bounded number, without copying it.
    pub(crate) fn visit(&self, buffers: &mut Buffers, mut take: impl FnMut(&RecvMeta, &[u8])) {
        let mut chunks = buffers.octets.chunks_mut(RECEIVE_SIZE);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] = core::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().expect("there is a chunk for each buffer"))
        });
        let socket = (&self.socket).into();
        let Ok(filled) = self.state.recv(socket, &mut slices, &mut buffers.meta) else {
            return;
        };
        let buffers = buffers.octets.chunks(RECEIVE_SIZE).zip(&buffers.meta);
        for (octets, meta) in buffers.take(filled) {
            let whole = &octets[..meta.len.min(octets.len())];
            match whole.is_empty() {
                true => take(meta, &[]),
                false => (whole.chunks(meta.stride.max(1))).for_each(|octets| take(meta, octets)),
            }
        }
    }

    /// Sends to `to` from one of the addresses of this machine.
    pub(crate) fn send_from(
        &self,
        octets: &[u8],
        from: Option<IpAddr>,
        to: SocketAddr,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: octets,
            segment_size: None,
            src_ip: from,
        };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.state.try_send((&self.socket).into(), &transmit)
            }
            result => result,
        }
    }

    /// Sends `octets` as datagrams of `size` octets each, the last perhaps shorter: segmentation offload.
    pub(crate) fn send_joined(&self, octets: &[u8], size: usize, to: SocketAddr) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: octets,
            segment_size: Some(size),
            src_ip: None,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// Datagrams that one such call may make.
    pub(crate) fn max_joined(&self) -> usize {
        self.state.max_gso_segments()
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Where the kernel puts datagrams.
#[derive(Debug)]
pub(crate) struct Buffers {
    octets: Vec<u8>,
    meta: [RecvMeta; RECEIVE_BUFFERS],
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            octets: vec![0; RECEIVE_BUFFERS * RECEIVE_SIZE],
            meta: [RecvMeta::default(); RECEIVE_BUFFERS],
        }
    }
}
