//! Datagrams in and out without waiting, with the system calls that forwarder and relay may use alike.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use crate::impair::{self, Buffers};

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

/// A UDP socket on the loopback interface, with what it needs to receive and to join.
#[derive(Debug)]
pub(super) struct Port {
    socket: impair::Port,
    buffers: Buffers,
    joined: Vec<u8>,
}

impl Port {
    /// A socket with a port that was free.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            socket: impair::Port::bind((Ipv4Addr::LOCALHOST, 0).into())?,
            buffers: Buffers::default(),
            joined: Vec::new(),
        })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// Shows what is there to `take`, each datagram with its sender.
    pub(super) fn receive(&mut self, mut take: impl FnMut(SocketAddr, &[u8])) {
        let show = |meta: &quinn_udp::RecvMeta, datagram: &[u8]| take(meta.addr, datagram);
        self.socket.visit(&mut self.buffers, show);
    }

    /// Sends `datagrams`; what the kernel has no room for is lost, as on a wire.
    pub(super) fn send(&mut self, to: SocketAddr, datagrams: &[impl AsRef<[u8]>], how: Sending) {
        let mut rest = datagrams;
        while let Some(first) = rest.first().map(AsRef::as_ref) {
            let count = match how {
                Sending::OneByOne => 1,
                Sending::Joined => self.joinable(rest),
            };
            let (run, later) = rest.split_at(count);
            let _ = match count {
                1 => self.socket.send_to(first, to),
                _ => {
                    self.joined.clear();
                    run.iter()
                        .for_each(|datagram| self.joined.extend_from_slice(datagram.as_ref()));
                    self.socket.send_joined(&self.joined, first.len(), to)
                }
            };
            rest = later;
        }
    }

    /// How many at the start are equally long, the last one perhaps shorter, and so can be sent with one call.
    fn joinable(&self, datagrams: &[impl AsRef<[u8]>]) -> usize {
        let length = |place: usize| datagrams.get(place).map(|it| it.as_ref().len());
        let size = length(0).unwrap_or_default();
        let most = (MAX_JOINED / size.max(1)).clamp(1, self.socket.max_joined());
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
