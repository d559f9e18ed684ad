//! A packet socket on one interface (`packet(7)`).

use std::io;
use std::os::fd::AsRawFd;

use bytes::Bytes;
use nix::ifaddrs::getifaddrs;
use smart_default::SmartDefault;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::frame::{self, ETHERTYPE, HEADER_SIZE, MAX_PAYLOAD, Received, Unusable};
use crate::MacAddress;
use crate::interface::Interface;
use crate::link::{BATCH_FRAMES, LinkCounters, LinkDrop};
use crate::transport::udp::NDN_GROUP_V4;

/// What the kernel is asked to buffer each way, in octets; it may grant less.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;
/// Octets of one receive buffer: one more than any frame of use has, to tell those that are longer.
const RECEIVE_SIZE: usize = HEADER_SIZE + MAX_PAYLOAD + 1;
/// Hardware type of Ethernet, as in ARP (`ARPHRD_ETHER`).
const HARDWARE_ETHERNET: u16 = 1;
/// Payload of Ethernet where the system does not tell (IEEE 802.3).
const USUAL_MTU: usize = 1_500;

/// Sends and receives whole Ethernet frames.
#[derive(Debug)]
pub(super) struct EthernetSocket {
    /// A packet socket: tokio has no type for it, and does with one of UDP what is done here, plain `send` and `recv`.
    socket: UdpSocket,
    /// The interface's own address.
    pub(super) address: MacAddress,
    /// Longest payload of the interface, in octets.
    pub(super) mtu: usize,
    /// Is in the group as long as it lives.
    _membership: Option<Socket>,
}

impl EthernetSocket {
    /// A socket that hears what is for this interface, and NDN's group if `joins`.
    pub(super) fn open(interface: &Interface, joins: bool) -> io::Result<Self> {
        let unsuitable = |what: &str| {
            let message = format!("interface {} {what}", interface.name);
            io::Error::new(io::ErrorKind::InvalidInput, message)
        };
        let link = getifaddrs()?
            .filter(|entry| entry.interface_name == interface.name)
            .find_map(|entry| entry.address?.as_link_addr().copied());
        let link = link.filter(|link| link.hatype() == HARDWARE_ETHERNET && link.halen() == 6);
        let link = link.ok_or_else(|| unsuitable("is not Ethernet"))?;
        let octets = link.addr().ok_or_else(|| unsuitable("has no address"))?;
        let protocol = Protocol::from(i32::from(ETHERTYPE.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol)).map_err(explain)?;
        // More than the kernel grants is cut, so these fail only where sockets have no buffers.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.set_nonblocking(true)?;
        nix::sys::socket::bind(socket.as_raw_fd(), &link)?;
        let socket = socket.into();
        drain(&socket)?;
        let membership = if joins { Some(join(interface)?) } else { None };
        Ok(Self {
            socket: UdpSocket::from_std(socket)?,
            address: MacAddress(octets),
            mtu: interface.mtu().unwrap_or(USUAL_MTU).min(MAX_PAYLOAD),
            _membership: membership,
        })
    }

    /// Waits for frames, and takes some in. Those that are too long or malformed are counted.
    pub(super) async fn receive(
        &self,
        buffer: &mut ReceiveBuffer,
        counters: &LinkCounters,
    ) -> io::Result<()> {
        self.socket.readable().await?;
        for _ in 0..BATCH_FRAMES {
            match self.socket.try_recv(&mut buffer.octets) {
                Ok(RECEIVE_SIZE) => counters.dropped(LinkDrop::TooLarge, 1),
                Ok(length) => match frame::parse(&buffer.octets[..length]) {
                    Ok(frame) => buffer.frames.push(frame),
                    Err(Unusable::Malformed) => counters.dropped(LinkDrop::Framing, 1),
                    Err(Unusable::Foreign) => {}
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends link packets to `destination`, waiting while the kernel has no room; those that cannot be sent are counted.
    pub(super) async fn send(
        &self,
        destination: MacAddress,
        packets: &[Bytes],
        buffer: &mut Vec<u8>,
        counters: &LinkCounters,
    ) {
        for packet in packets {
            frame::build(buffer, destination, self.address, packet);
            if self.socket.send(buffer).await.is_err() {
                counters.dropped(LinkDrop::SendFailed, 1);
            }
        }
    }
}

/// Where frames are put.
#[derive(Debug, SmartDefault)]
pub(super) struct ReceiveBuffer {
    #[default(vec![0; RECEIVE_SIZE])]
    octets: Vec<u8>,
    /// What came in, for the caller to take.
    pub(super) frames: Vec<Received>,
}

/// Throws away what came from other interfaces before the socket was bound to this one.
fn drain(socket: &std::net::UdpSocket) -> io::Result<()> {
    let mut frame = [0; HEADER_SIZE];
    loop {
        match socket.recv(&mut frame) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                // An interface that is down comes up later.
                io::ErrorKind::WouldBlock | io::ErrorKind::NetworkDown => return Ok(()),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
}

/// Has the interface, and switches that watch IGMP, let NDN's group through.
///
/// The group's Ethernet address is the one that 224.0.23.170 has on Ethernet, so being in the one is being in the other.
fn join(interface: &Interface) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.join_multicast_v4_n(
        &NDN_GROUP_V4,
        &InterfaceIndexOrAddress::Index(interface.index),
    )?;
    Ok(socket)
}

/// Says what is missing where the system only says no.
fn explain(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let program = std::env::current_exe();
    let program = program.map_or("namecast".to_owned(), |path| path.display().to_string());
    let message = format!(
        "it needs the capability CAP_NET_RAW: as root, run `setcap cap_net_raw+ep {program}`, or start it as root"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_is_told_with_its_remedy() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let message = explain(refused).to_string();
        assert!(message.contains("setcap cap_net_raw+ep "), "{message}");
    }

    #[test]
    fn an_interface_that_is_not_ethernet_is_refused() {
        let loopback = Interface::find("lo").unwrap();
        let error = EthernetSocket::open(&loopback, true).unwrap_err();
        assert_eq!(error.to_string(), "interface lo is not Ethernet");
    }

    /// RFC 1112, section 6.4: the low 23 bits of the group behind 01:00:5e.
    #[test]
    fn the_groups_of_ip_and_ethernet_are_one() {
        let [_, b, c, d] = NDN_GROUP_V4.octets();
        let mapped = MacAddress([0x01, 0x00, 0x5E, b & 0x7F, c, d]);
        assert_eq!(mapped, MacAddress::NDN_MULTICAST);
    }
}
