//! Stands for the packet socket on systems that have none, or another.

use std::io;

use bytes::Bytes;

use super::frame::Received;
use crate::MacAddress;
use crate::interface::Interface;
use crate::link::LinkCounters;

/// There is none.
#[derive(Debug)]
pub(super) struct EthernetSocket {
    pub(super) address: MacAddress,
    pub(super) mtu: usize,
}

/// Where frames would be put.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    pub(super) frames: Vec<Received>,
}

impl EthernetSocket {
    pub(super) fn open(_: &Interface, _: bool) -> io::Result<Self> {
        let message = "Ethernet faces are there on Linux only";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    pub(super) async fn receive(&self, _: &mut ReceiveBuffer, _: &LinkCounters) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) async fn send(&self, _: MacAddress, _: &[Bytes], _: &mut Vec<u8>, _: &LinkCounters) {
    }
}
