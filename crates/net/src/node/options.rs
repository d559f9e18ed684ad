//! What may be chosen of a face, when it is made and later.

use namecast_forward::{CongestionMarker, FaceConfig, LinkType, MIN_MTU, Scope};
use namecast_units::{ByteSize, Duration};

use super::Persistency;
use crate::FaceUri;

/// What is chosen of a face; none: it stays as it is, or as the node makes faces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaceOptions {
    /// What ends the face.
    pub persistency: Option<Persistency>,
    /// Whether the peer may see and choose faces; only for peers on this machine.
    pub local_fields: Option<bool>,
    /// Whether frames are acknowledged, and sent again if lost.
    pub reliability: Option<bool>,
    /// Longest frame, in octets; only where the link has a limit, which holds as well.
    pub mtu: Option<usize>,
    /// Whether packets are marked when the face's queue is long.
    pub congestion_marking: Option<bool>,
    /// Octets that may wait for the face without marks.
    pub congestion_threshold: Option<ByteSize>,
    /// How long more than these must wait until a packet is marked.
    pub congestion_interval: Option<Duration>,
    /// Time without a packet after which the peer is sent an empty link packet, as
    /// [`UdpConfig::keep_alive`](crate::UdpConfig::keep_alive) has it for all; zero: never. Only one peer over UDP.
    pub keep_alive: Option<Duration>,
}

/// What decides which options a face can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaceNature {
    pub(crate) scope: Scope,
    pub(crate) persistency: Persistency,
    /// Whether it shares a socket, and so ends by silence and not with a connection.
    pub(crate) is_from_datagram: bool,
    /// How many peers there can be: only one can acknowledge frames.
    pub(crate) link_type: LinkType,
    /// Whether it leads to one peer over UDP.
    pub(crate) is_udp_peer: bool,
    /// Longest frame that the link takes.
    pub(crate) link_mtu: Option<usize>,
}

impl FaceNature {
    /// Whether a face that leads to `remote` over a link of this type has one peer over UDP.
    pub(crate) const fn is_udp_peer(remote: &FaceUri, link_type: LinkType) -> bool {
        remote.is_udp() && matches!(link_type, LinkType::PointToPoint)
    }
}

impl FaceOptions {
    /// Those that such a face cannot have; nothing if it can have all.
    pub(crate) fn impossible_for(&self, face: &FaceNature) -> Option<Self> {
        let outlives_its_peer = face.persistency != Persistency::OnDemand;
        let is_kept = |persistency: &Persistency| match persistency {
            Persistency::OnDemand => outlives_its_peer && !face.is_from_datagram,
            Persistency::Persistent | Persistency::Permanent => {
                !outlives_its_peer && !face.is_from_datagram
            }
        };
        let takes_mtu = |mtu: &usize| face.link_mtu.is_some() && *mtu >= MIN_MTU;
        let impossible = Self {
            persistency: self.persistency.filter(is_kept),
            local_fields: self
                .local_fields
                .filter(|wanted| *wanted && face.scope != Scope::Local),
            reliability: self
                .reliability
                .filter(|wanted| *wanted && face.link_type != LinkType::PointToPoint),
            mtu: self.mtu.filter(|mtu| !takes_mtu(mtu)),
            keep_alive: self
                .keep_alive
                .filter(|interval| !interval.is_zero() && !face.is_udp_peer),
            ..Self::default()
        };
        (impossible != Self::default()).then_some(impossible)
    }

    /// What becomes of a face's forwarding side, if these are possible for it.
    pub(crate) fn apply(&self, config: &mut FaceConfig, link_mtu: Option<usize>) {
        config.local_fields = self.local_fields.unwrap_or(config.local_fields);
        config.reliability = self.reliability.unwrap_or(config.reliability);
        if let (Some(wanted), Some(limit)) = (self.mtu, link_mtu) {
            config.mtu = Some(wanted.min(limit));
        }
    }

    /// What becomes of a face's congestion marks.
    pub(crate) fn apply_to_marks(&self, marker: &mut CongestionMarker) {
        marker.is_on = self.congestion_marking.unwrap_or(marker.is_on);
        let rule = &mut marker.rule;
        rule.threshold = self.congestion_threshold.unwrap_or(rule.threshold);
        rule.interval = self.congestion_interval.unwrap_or(rule.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: FaceNature = FaceNature {
        scope: Scope::NonLocal,
        persistency: Persistency::OnDemand,
        is_from_datagram: true,
        link_type: LinkType::PointToPoint,
        is_udp_peer: true,
        link_mtu: Some(1_400),
    };
    const ACCEPTED: FaceNature = FaceNature {
        scope: Scope::Local,
        persistency: Persistency::OnDemand,
        is_from_datagram: false,
        link_type: LinkType::PointToPoint,
        is_udp_peer: false,
        link_mtu: None,
    };
    const CONNECTED: FaceNature = FaceNature {
        persistency: Persistency::Persistent,
        ..ACCEPTED
    };

    fn living(persistency: Persistency) -> FaceOptions {
        FaceOptions {
            persistency: Some(persistency),
            ..FaceOptions::default()
        }
    }

    /// A face with a connection that was accepted ends with it, whatever is wished; one that the node connected by
    /// itself does not.
    #[test]
    fn what_ends_a_face_can_be_chosen_as_far_as_its_link_allows() {
        use Persistency::{OnDemand, Permanent, Persistent};
        for (face, possible) in [
            (DATAGRAM, &[OnDemand, Persistent, Permanent][..]),
            (ACCEPTED, &[OnDemand]),
            (CONNECTED, &[Persistent, Permanent]),
        ] {
            for persistency in [OnDemand, Persistent, Permanent] {
                let wanted = living(persistency);
                let expected = (!possible.contains(&persistency)).then_some(wanted);
                assert_eq!(wanted.impossible_for(&face), expected, "{face:?}");
            }
        }
    }

    /// Only what is impossible is told, so that a client sees what to leave out.
    #[test]
    fn impossible_options_are_told_apart_from_possible_ones() {
        let wanted = FaceOptions {
            persistency: Some(Persistency::Persistent),
            local_fields: Some(true),
            reliability: Some(true),
            mtu: Some(MIN_MTU - 1),
            congestion_marking: Some(true),
            congestion_threshold: Some(ByteSize::ZERO),
            congestion_interval: Some(Duration::ZERO),
            keep_alive: Some(Duration::from_secs(1)),
        };
        let impossible = FaceOptions {
            local_fields: Some(true),
            mtu: Some(MIN_MTU - 1),
            ..FaceOptions::default()
        };
        assert_eq!(wanted.impossible_for(&DATAGRAM), Some(impossible));
        let without = FaceOptions {
            local_fields: Some(false),
            mtu: Some(MIN_MTU),
            ..wanted
        };
        assert_eq!(without.impossible_for(&DATAGRAM), None);
        assert!(without.impossible_for(&ACCEPTED).is_some());
    }

    /// A connection shows by itself that its peer is gone; that nothing keeps it alive may be said of it.
    #[test]
    fn only_peers_over_udp_are_kept_alive() {
        let wanted = |seconds| FaceOptions {
            keep_alive: Some(Duration::from_secs(seconds)),
            ..FaceOptions::default()
        };
        assert_eq!(wanted(5).impossible_for(&DATAGRAM), None);
        assert_eq!(wanted(5).impossible_for(&CONNECTED), Some(wanted(5)));
        assert_eq!(wanted(0).impossible_for(&CONNECTED), None);
    }

    #[test]
    fn frames_to_many_peers_cannot_be_acknowledged() {
        let multicast = FaceNature {
            link_type: LinkType::MultiAccess,
            ..DATAGRAM
        };
        let wanted = |reliability| FaceOptions {
            reliability: Some(reliability),
            ..FaceOptions::default()
        };
        let impossible = wanted(true).impossible_for(&multicast);
        assert_eq!(impossible, Some(wanted(true)));
        assert_eq!(wanted(false).impossible_for(&multicast), None);
    }

    #[test]
    fn the_links_own_limit_holds_whatever_mtu_is_wanted() {
        let mut config = FaceConfig::default();
        let wanted = |mtu| FaceOptions {
            mtu: Some(mtu),
            ..FaceOptions::default()
        };
        wanted(9_000).apply(&mut config, Some(1_400));
        assert_eq!(config.mtu, Some(1_400));
        wanted(500).apply(&mut config, Some(1_400));
        assert_eq!(config.mtu, Some(500));
    }
}
