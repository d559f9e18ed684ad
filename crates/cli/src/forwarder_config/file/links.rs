//! Faces: to one peer, and those that need an interface, UDP multicast and Ethernet.

use core::ops::Range;
use std::net::SocketAddr;

use namecast_net::{
    EthernetConfig, FaceOptions, FaceUri, MacAddress, NodeConfig, Persistency, UdpMulticast,
};
use namecast_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::Reading;
use crate::forwarder_config::StaticFace;

/// A face to all that joined a group on one interface.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Multicast {
    interface: Spanned<String>,
    group: Option<Spanned<String>>,
    mtu: Option<Spanned<usize>>,
}

/// An interface that carries frames without IP.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Ethernet {
    interface: Spanned<String>,
    multicast: Option<bool>,
    max_faces: Option<Spanned<usize>>,
    mtu: Option<Spanned<usize>>,
}

/// A face to one peer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Face {
    pub(super) uri: Spanned<String>,
    interface: Option<Spanned<String>>,
    persistency: Option<Keeping>,
    reliability: Option<bool>,
    local_fields: Option<Spanned<bool>>,
    mtu: Option<Spanned<usize>>,
    #[serde(default, with = "namecast_units::optional_duration")]
    keep_alive: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Keeping {
    Persistent,
    Permanent,
}

/// Faces that routes can lead to, each with its interface, if it has one.
#[derive(Debug, Default)]
pub(super) struct Known(Vec<(FaceUri, Option<String>)>);

impl Known {
    pub(super) fn add(&mut self, uri: FaceUri, interface: Option<String>) {
        self.0.push((uri, interface));
    }

    pub(super) fn contains(&self, uri: &FaceUri, interface: Option<&String>) -> bool {
        let mut all = self.0.iter();
        all.any(|(known, on)| known == uri && on.as_ref() == interface)
    }

    /// The interface of the face that is meant.
    ///
    /// # Errors
    /// What was expected, if none is or several are.
    pub(super) fn interface_of(
        &self,
        uri: &FaceUri,
        interface: Option<&String>,
    ) -> Result<Option<String>, &'static str> {
        let is_meant = |on: &Option<String>| interface.is_none() || on.as_ref() == interface;
        let mut meant = self
            .0
            .iter()
            .filter(|(known, on)| known == uri && is_meant(on));
        match (meant.next(), meant.next()) {
            (None, _) => Err("expected the uri of a face of this file"),
            (Some((_, on)), None) => Ok(on.clone()),
            (Some(_), Some(_)) => {
                Err("expected an interface as well: there are several such faces")
            }
        }
    }
}

impl Reading<'_> {
    pub(super) fn face(
        &mut self,
        node: &NodeConfig,
        ethernet: &[EthernetConfig],
        face: Face,
    ) -> Option<StaticFace> {
        let place = face.uri.span();
        let uri = self.uri(&face.uri)?;
        let problem = match &uri {
            uri if uri.obstacle().is_some() => uri.obstacle(),
            FaceUri::Udp(address) if address.ip().is_multicast() => {
                Some("expected one peer's address: [[multicast]] makes a face to a group")
            }
            FaceUri::Udp(_)
            | FaceUri::Tcp(_)
            | FaceUri::Host(_)
            | FaceUri::Unix(_)
            | FaceUri::WebSocket { .. }
            | FaceUri::Ethernet(_) => None,
            _ => Some(
                "expected an address to connect to: udp://, tcp://, unix://, ws://, wss:// or ether://",
            ),
        };
        if let Some(problem) = problem {
            self.object(place, format!("{uri}: {problem}"));
            return None;
        }
        let interface = self.interface_of_face(&uri, &place, face.interface, ethernet);
        let is_udp = uri.is_udp();
        if let Some(mtu) = &face.mtu
            && !(is_udp || matches!(uri, FaceUri::Ethernet(_)))
        {
            let message = "expected no mtu, as only UDP and Ethernet faces have one";
            self.object(mtu.span(), message);
        }
        if face.keep_alive.is_some() && !is_udp {
            let message = format!("{uri}: expected no keep-alive, as only UDP faces have one");
            self.object(place, message);
        }
        let is_local = uri.is_loopback() && (!is_udp || node.udp.loopback_is_local);
        if let Some(local_fields) = &face.local_fields
            && *local_fields.get_ref()
            && !is_local
        {
            let message = "expected false, as the peer is not on this machine";
            self.object(local_fields.span(), message);
        }
        let options = FaceOptions {
            persistency: face.persistency.map(|keeping| match keeping {
                Keeping::Persistent => Persistency::Persistent,
                Keeping::Permanent => Persistency::Permanent,
            }),
            local_fields: face.local_fields.map(Spanned::into_inner),
            reliability: face.reliability,
            mtu: self.mtu(face.mtu),
            keep_alive: face.keep_alive,
            ..FaceOptions::default()
        };
        Some(StaticFace {
            uri,
            interface,
            options,
        })
    }

    /// Notes a face, of which there can be one to each address.
    pub(super) fn know(&mut self, known: &mut Known, place: Range<usize>, face: &StaticFace) {
        if known.contains(&face.uri, face.interface.as_ref()) {
            let message = format!("{}: expected one face to each address", face.uri);
            self.object(place, message);
        }
        known.add(face.uri.clone(), face.interface.clone());
    }

    pub(super) fn multicast(&mut self, written: Multicast) -> Option<(Range<usize>, UdpMulticast)> {
        let mut face = UdpMulticast::on(written.interface.get_ref().clone());
        self.interface(&written.interface);
        let place = written.group.as_ref().unwrap_or(&written.interface).span();
        if let Some(group) = written.group {
            let expected = ": expected GROUP:PORT, as in 224.0.23.170:56363";
            face.group = self.parse::<SocketAddr>(&group, expected)?;
            if !face.group.ip().is_multicast() || face.group.port() == 0 {
                let message = format!("{}{expected} or [ff02::1234]:56363", face.group);
                self.object(group.span(), message);
            }
        }
        face.mtu = self.mtu(written.mtu).unwrap_or(face.mtu);
        Some((place, face))
    }

    pub(super) fn ethernet(&mut self, written: Ethernet) -> (Range<usize>, EthernetConfig) {
        let mut config = EthernetConfig::on(written.interface.get_ref().clone());
        self.interface(&written.interface);
        config.multicast = written.multicast.unwrap_or(config.multicast);
        self.set(&mut config.max_peers, written.max_faces, 0);
        config.mtu = self.mtu(written.mtu);
        (written.interface.span(), config)
    }

    /// The name may be that of an interface; whether there is one shows when it is opened.
    fn interface(&mut self, written: &Spanned<String>) {
        let name = written.get_ref();
        if name.is_empty() || name.contains(['/', ' ']) {
            let message = format!("'{name}': expected the name of an interface, as in eth0");
            self.object(written.span(), message);
        }
    }

    /// An Ethernet address needs an interface of this file, and only that does.
    fn interface_of_face(
        &mut self,
        uri: &FaceUri,
        place: &Range<usize>,
        interface: Option<Spanned<String>>,
        ethernet: &[EthernetConfig],
    ) -> Option<String> {
        match (uri, interface) {
            (FaceUri::Ethernet(peer), _) if peer.is_group() => {
                let expected = "expected one peer's address: [[ethernet]] makes a face to all";
                self.object(place.clone(), format!("{uri}: {expected}"));
                None
            }
            (FaceUri::Ethernet(_), Some(name)) => {
                let is_open = |config: &EthernetConfig| config.interface == *name.get_ref();
                if !ethernet.iter().any(is_open) {
                    let message = "expected the interface of an [[ethernet]] of this file";
                    self.object(name.span(), message);
                }
                Some(name.into_inner())
            }
            (FaceUri::Ethernet(_), None) => {
                let message = format!("{uri}: expected an interface as well");
                self.object(place.clone(), message);
                None
            }
            (_, Some(name)) => {
                let message = "expected no interface, as only Ethernet addresses need one";
                self.object(name.span(), message);
                None
            }
            (_, None) => None,
        }
    }

    /// Notes the faces that interfaces have, each of which there can be once.
    pub(super) fn know_links(
        &mut self,
        known: &mut Known,
        multicast: &[(Range<usize>, UdpMulticast)],
        ethernet: &[(Range<usize>, EthernetConfig)],
    ) {
        let groups = multicast
            .iter()
            .map(|(place, face)| (place, FaceUri::Udp(face.group), &face.interface));
        let ports = ethernet.iter().map(|(place, config)| {
            let group = FaceUri::Ethernet(MacAddress::NDN_MULTICAST);
            (place, group, &config.interface)
        });
        for (place, uri, interface) in groups.chain(ports) {
            if known.contains(&uri, Some(interface)) {
                let message = format!("{uri} on {interface}: expected one such face");
                self.object(place.clone(), message);
            }
            known.add(uri, Some(interface.clone()));
        }
    }
}
