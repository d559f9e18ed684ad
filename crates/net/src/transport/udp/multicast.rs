//! UDP multicast: one face to all forwarders that joined a group on one interface.
//!
//! As NFD's: no Nacks (the face is multi-access), never local, TTL 1, and this machine's own datagrams do not come back.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use namecast_forward::{FaceId, Scope};
use namecast_packet::MAX_PACKET_SIZE;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use crate::FaceUri;
use crate::interface::Interface;
use crate::link::{
    BATCH_FRAMES, LinkDrop, LinkReceiver, MAX_FRAME_SIZE, PAUSE_AFTER_ERROR, Senders,
};
use crate::log_limit;
use crate::node::{Intake, LinkEnd, ListenError, NewFace, Node};

/// How far datagrams go: over one link.
const HOPS: u32 = 1;
/// What the kernel is asked to buffer of what comes in, in octets; it may grant less.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;

/// NDN's group of IPv4.
pub(crate) const NDN_GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 170);

/// A face to a UDP multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpMulticast {
    /// The group and its port.
    pub group: SocketAddr,
    /// Name of the interface to join it on.
    pub interface: String,
    /// Longest datagram, in octets. The default is the longest packet, which IP cuts if it must: NFD does not put NDNLPv2
    /// fragments together on such a face.
    pub mtu: usize,
}

impl UdpMulticast {
    /// NDN's group of IPv4, as NFD's `face_system.udp.mcast_group`.
    pub const GROUP_V4: SocketAddr = SocketAddr::new(IpAddr::V4(NDN_GROUP_V4), Self::DEFAULT_PORT);
    /// NDN's group of IPv6, as NFD's `mcast_group_v6`.
    pub const GROUP_V6: SocketAddr = SocketAddr::new(
        IpAddr::V6(Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 0x1234)),
        Self::DEFAULT_PORT,
    );
    const DEFAULT_PORT: u16 = 56_363;

    /// NDN's group of IPv4 on `interface`.
    pub fn on(interface: impl Into<String>) -> Self {
        Self {
            group: Self::GROUP_V4,
            interface: interface.into(),
            mtu: MAX_PACKET_SIZE,
        }
    }
}

impl Node {
    /// Adds a face to all forwarders that joined a multicast group on one interface. It stays until it is removed.
    ///
    /// # Errors
    /// If the address is no group, the interface cannot be had, or the node takes no more faces.
    pub async fn join_udp_multicast(&self, wanted: &UdpMulticast) -> Result<FaceId, ListenError> {
        let error = || ListenError::bind(FaceUri::Udp(wanted.group));
        let sockets = Sockets::open(wanted).map_err(|source| error()(source))?;
        let local = FaceUri::Device(wanted.interface.clone());
        let new = NewFace::on_demand(
            FaceUri::Udp(wanted.group),
            Scope::NonLocal,
            Some(wanted.mtu),
        )
        .at(local)
        .multi_access();
        let link = self.add_face(new).await.map_err(ListenError::refused)?;
        let face = link.face;
        self.spawn(drive(sockets, link));
        Ok(face)
    }
}

/// One to receive with, which is bound to the group, and one to send with.
#[derive(Debug)]
struct Sockets {
    group: SocketAddr,
    /// Where `sender` sends from.
    own: SocketAddr,
    receiver: UdpSocket,
    sender: UdpSocket,
}

impl Sockets {
    fn open(wanted: &UdpMulticast) -> io::Result<Self> {
        if !wanted.group.ip().is_multicast() {
            let message = "it is not a multicast group";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let interface = Interface::find(&wanted.interface)?;
        let source = interface.source_for(wanted.group.ip())?;
        let group = interface.scoped(wanted.group);
        let sender = sending(source, &interface)?;
        Ok(Self {
            group,
            own: sender.local_addr()?,
            receiver: joined(group, &interface)?,
            sender,
        })
    }

    async fn receive(&self, intake: &Intake) {
        let senders = Senders::new();
        // One octet more than any frame of use has, to tell those that are longer.
        let mut buffer = vec![0; MAX_FRAME_SIZE + 1];
        loop {
            let mut frames = Vec::new();
            let filled = self.fill(&mut buffer, |remote, datagram| {
                if datagram.len() > MAX_FRAME_SIZE {
                    intake.dropped(LinkDrop::TooLarge);
                    return;
                }
                let sender = remote.to_string();
                let frame = Bytes::copy_from_slice(datagram);
                frames.push(senders.move_apart(sender.as_bytes(), frame));
            });
            if let Err(error) = filled.await {
                if let Some(left_out) = log_limit::admit("multicast") {
                    let group = &self.group;
                    tracing::warn!(%error, %group, "cannot receive from a multicast group{left_out}");
                }
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
            if !frames.is_empty() && intake.deliver(frames).is_err() {
                return;
            }
        }
    }

    /// Waits for datagrams of others, and hands over some.
    async fn fill(
        &self,
        buffer: &mut [u8],
        mut take: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<()> {
        self.receiver.readable().await?;
        for _ in 0..BATCH_FRAMES {
            match self.receiver.try_recv_from(buffer) {
                // The loopback interface brings its own back whatever is asked of it.
                Ok((_, remote)) if is_same(remote, self.own) => {}
                Ok((length, remote)) => take(remote, &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn send(&self, queue: &mut LinkReceiver, intake: &Intake) {
        let mut batch = Vec::with_capacity(BATCH_FRAMES);
        while queue.recv_many(&mut batch, BATCH_FRAMES).await {
            for frame in batch.drain(..) {
                // An interface that is down comes back: the frame counts as lost, no more.
                if self.sender.send_to(&frame, self.group).await.is_err() {
                    intake.dropped(LinkDrop::SendFailed);
                }
            }
        }
    }
}

/// Carries frames both ways until the face ends.
async fn drive(sockets: Sockets, mut link: LinkEnd) {
    let (intake, queue) = link.split();
    tokio::select! {
        () = sockets.receive(&intake) => {}
        () = sockets.send(queue, &intake) => {}
    }
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Whether two addresses are one, on whichever interface.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip(), one.port()) == (other.ip(), other.port())
}

/// Has a socket send from or receive at `address`.
fn bound(socket: Socket, address: SocketAddr) -> io::Result<UdpSocket> {
    // More than the kernel grants is cut, so this fails only where sockets have no buffers.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}

/// A socket that hears what is sent to `group` on one interface, and nothing else.
fn joined(group: SocketAddr, interface: &Interface) -> io::Result<UdpSocket> {
    let socket = socket(group)?;
    socket.set_reuse_address(true)?;
    match group.ip() {
        IpAddr::V4(ip) => {
            // Without this, it would hear what others joined on other interfaces.
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v4(false)?;
            let index = InterfaceIndexOrAddress::Index(interface.index);
            socket.join_multicast_v4_n(&ip, &index)?;
        }
        IpAddr::V6(ip) => {
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v6(false)?;
            socket.join_multicast_v6(&ip, interface.index)?;
        }
    }
    bound(socket, group)
}

/// A socket that sends from `source` to groups on one interface.
fn sending(source: SocketAddr, interface: &Interface) -> io::Result<UdpSocket> {
    let socket = socket(source)?;
    match source.ip() {
        IpAddr::V4(ip) => {
            socket.set_multicast_if_v4(&ip)?;
            socket.set_multicast_ttl_v4(HOPS)?;
            socket.set_multicast_loop_v4(false)?;
        }
        IpAddr::V6(_) => {
            socket.set_multicast_if_v6(interface.index)?;
            socket.set_multicast_hops_v6(HOPS)?;
            socket.set_multicast_loop_v6(false)?;
        }
    }
    bound(socket, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_no_group_is_refused() {
        let wanted = UdpMulticast {
            group: "192.0.2.1:56363".parse().unwrap(),
            ..UdpMulticast::on("lo")
        };
        let error = Sockets::open(&wanted).unwrap_err().to_string();
        assert_eq!(error, "it is not a multicast group");
    }

    #[test]
    fn the_groups_are_nfds() {
        assert_eq!(UdpMulticast::GROUP_V4.to_string(), "224.0.23.170:56363");
        assert_eq!(UdpMulticast::GROUP_V6.to_string(), "[ff02::1234]:56363");
    }
}
