//! A UDP socket with batched calls and segmentation offload where the kernel has them.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use namecast_units::Duration;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::link::{LinkCounters, LinkDrop, MAX_FRAME_SIZE};

/// What the kernel is asked to buffer each way, in octets; it may grant less.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;
/// Octets of one receive buffer: the kernel may join datagrams up to the largest IP packet.
const RECEIVE_SIZE: usize = 65_536;
/// Buffers filled by one call.
const RECEIVE_BUFFERS: usize = 16;
/// Most octets the kernel cuts into datagrams in one call: the largest UDP payload, less room for any header.
const MAX_JOINED: usize = 65_000;
/// Pause after an error that may repeat at once.
pub(super) const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);

const _: () = assert!(RECEIVE_BUFFERS <= quinn_udp::BATCH_SIZE);
const _: () = assert!(MAX_FRAME_SIZE <= MAX_JOINED);

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct UdpLink {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl UdpLink {
    /// A socket bound to `address`.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        // More than the kernel grants is cut, so these fail only where sockets have no buffers.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket.into())?;
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    /// A socket that exchanges datagrams with `remote` only.
    pub(crate) async fn connect(remote: SocketAddr) -> io::Result<Self> {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let link = Self::bind(any)?;
        link.socket.connect(remote).await?;
        Ok(link)
    }

    /// The address it is bound to.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits for datagrams and puts them into `buffers`.
    pub(super) async fn receive(
        &self,
        buffers: &mut ReceiveBuffers,
        counters: &LinkCounters,
    ) -> io::Result<()> {
        let filled = self
            .socket
            .async_io(Interest::READABLE, || buffers.fill(self))
            .await?;
        buffers.cut(filled, counters);
        Ok(())
    }

    /// Sends `frames` to `remote`, waiting while the kernel has no room. A frame that cannot be sent is counted, and
    /// does not keep back those after it.
    ///
    /// # Errors
    /// The last one that occurred.
    pub(super) async fn send(
        &self,
        remote: SocketAddr,
        frames: &[Bytes],
        buffer: &mut SendBuffer,
        counters: &LinkCounters,
    ) -> io::Result<()> {
        let mut result = Ok(());
        let mut rest = frames;
        while !rest.is_empty() {
            let count = joinable(rest, self.state.max_gso_segments());
            let (run, later) = rest.split_at(count);
            let joined = count > 1 && self.send_joined(remote, run, buffer).await.is_ok();
            if !joined {
                for frame in run {
                    if let Err(error) = self.send_one(remote, frame, None).await {
                        counters.dropped(LinkDrop::SendFailed, 1);
                        result = Err(error);
                    }
                }
            }
            rest = later;
        }
        result
    }

    async fn send_joined(
        &self,
        remote: SocketAddr,
        run: &[Bytes],
        buffer: &mut SendBuffer,
    ) -> io::Result<()> {
        buffer.0.clear();
        run.iter()
            .for_each(|frame| buffer.0.extend_from_slice(frame));
        self.send_one(remote, &buffer.0, Some(run[0].len())).await
    }

    async fn send_one(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size,
            src_ip: None,
        };
        self.socket
            .async_io(Interest::WRITABLE, || {
                self.state.try_send((&self.socket).into(), &transmit)
            })
            .await
    }
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

/// Where frames are put one behind another for one call.
#[derive(Debug, Default)]
pub(super) struct SendBuffer(Vec<u8>);

/// Where the kernel puts datagrams.
#[derive(Debug)]
pub(super) struct ReceiveBuffers {
    octets: Vec<u8>,
    meta: [RecvMeta; RECEIVE_BUFFERS],
    /// Frames by sender, for the caller to take.
    pub(super) received: Vec<(SocketAddr, Vec<Bytes>)>,
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        Self {
            octets: vec![0; RECEIVE_BUFFERS * RECEIVE_SIZE],
            meta: [RecvMeta::default(); RECEIVE_BUFFERS],
            received: Vec::new(),
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

    /// Cuts the first `filled` buffers into frames, each in an allocation of its own, so that a cached packet does not
    /// keep 64 kB alive.
    fn cut(&mut self, filled: usize, counters: &LinkCounters) {
        let buffers = self.octets.chunks(RECEIVE_SIZE).zip(&self.meta);
        for (octets, meta) in buffers.take(filled) {
            let datagrams = octets[..meta.len.min(octets.len())].chunks(meta.stride.max(1));
            let mut frames = Vec::with_capacity(datagrams.len());
            for datagram in datagrams {
                match datagram.len() <= MAX_FRAME_SIZE {
                    true => frames.push(Bytes::copy_from_slice(datagram)),
                    false => counters.dropped(LinkDrop::TooLarge, 1),
                }
            }
            if !frames.is_empty() {
                self.received.push((meta.addr, frames));
            }
        }
    }
}

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

    #[test]
    fn joined_datagrams_are_cut_at_the_stride() {
        let mut buffers = ReceiveBuffers::default();
        let counters = LinkCounters::default();
        buffers.octets[..10].copy_from_slice(b"aaaabbbbcc");
        buffers.meta[0].len = 10;
        buffers.meta[0].stride = 4;
        buffers.meta[1].len = MAX_FRAME_SIZE + 1;
        buffers.meta[1].stride = MAX_FRAME_SIZE + 1;
        buffers.cut(2, &counters);
        assert_eq!(buffers.received.len(), 1);
        assert_eq!(buffers.received[0].1, ["aaaa", "bbbb", "cc"]);
        assert_eq!(counters.drops(LinkDrop::TooLarge), 1);
    }
}
