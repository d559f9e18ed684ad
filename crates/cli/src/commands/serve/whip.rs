//! WHIP beside the page of `serve`.

use core::iter::once;
use std::net::{IpAddr, Ipv4Addr};

use anyhow::Context;

use super::super::page::{Page, network_addresses};
use super::Serve;
use crate::push::Gate;
use crate::push::whip::Whip;

/// Listens where the page does: on this machine, and if that was asked for, on its addresses for others.
pub(super) async fn listen(gate: &Gate, arguments: &Serve) -> anyhow::Result<Whip> {
    let others = match arguments.page.listen {
        true => network_addresses(),
        false => Vec::new(),
    };
    let addresses: Vec<IpAddr> = once(Ipv4Addr::LOCALHOST.into()).chain(others).collect();
    let listening = Whip::listen(gate.clone(), &addresses, arguments.whip_port).await;
    listening.context("cannot listen for WHIP on any UDP port")
}

/// Where to push, for people.
pub(super) fn lines(page: &Page, whip: &Whip) -> Vec<String> {
    let port = whip.udp_port();
    let line = |url: String| format!("WHIP: {url}whip/NAME (media by UDP port {port})");
    page.urls().map(line).collect()
}
