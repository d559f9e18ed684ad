//! What a node may be told.

use namecast_apps::registration::RegistrationConfig;
use namecast_forward::{CongestionMarking, ExtensionFields, Hop, RelayFeedback, Shard};
use namecast_packet::Certificate;
use namecast_units::{Bitrate, ByteSize, Duration};
use smart_default::SmartDefault;

use crate::Clock;
use crate::deny::DenyList;
use crate::hops::Hops;
use crate::rights::Rights;
use crate::tickets::Tickets;
use crate::web::WebConfig;

/// How a [`Node`](crate::Node) behaves, and every bound of its tables and queues.
#[derive(Clone, Debug, SmartDefault)]
pub struct NodeConfig {
    /// The forwarding plane. A seed of 0 stands for a random one.
    pub forwarder: namecast_forward::Config,
    /// Forwarders that share the work, so that as many threads can forward at a time, and share the bounds of the one above.
    /// With several, Interests carry PIT tokens.
    #[default(1)]
    pub forwarders: usize,
    /// Frames that wait for one link; more are dropped.
    #[default(2_048)]
    pub link_queue_frames: usize,
    /// Octets that wait for one link; more are dropped.
    #[default(ByteSize::mebibytes(4))]
    pub link_queue_size: ByteSize,
    /// Faces over UDP.
    pub udp: UdpConfig,
    /// Connections of one kind (TCP, Unix, WebSocket, WebTransport) that one listener serves at a time. Who may have a place when
    /// there is none left is said in [`admission`](crate::admission).
    #[default(512)]
    pub max_connections: usize,
    /// When packets on a link's queue are marked as having met congestion; none: never.
    #[default(Some(CongestionMarking::default()))]
    pub congestion_marking: Option<CongestionMarking>,
    /// Whether link header fields outside of NDNLPv2 go to neighbours, and are taken from them.
    pub extension_fields: ExtensionFields,
    /// Rules about packets of the program's own: see [`hop`](Self::hop) and [`strategy`](Self::strategy).
    pub hops: Hops,
    /// Silence after which a WebSocket, WebTransport or TCP peer counts as dead.
    #[default(Duration::from_secs(10))]
    pub dead_peer_timeout: Duration,
    /// Time that connecting to a peer may take.
    #[default(Duration::from_secs(5))]
    pub connect_timeout: Duration,
    /// First and longest pause between attempts to connect.
    #[default((Duration::from_millis(100), Duration::from_secs(1)))]
    pub reconnect_backoff: (Duration, Duration),
    /// Who may register prefixes, and how many.
    pub management: ManagementConfig,
    /// Who may come by the web server, WebSocket and WebTransport.
    pub web: WebConfig,
    /// Where nobody may come from.
    pub deny: DenyList,
    /// How this node registers its prefixes with others.
    pub registration: RegistrationConfig,
    /// Time that a graceful stop may take until everything is cut off.
    #[default(Duration::from_secs(2))]
    pub shutdown_timeout: Duration,
}

impl NodeConfig {
    /// The usual node, but with so much room for Data.
    pub fn caching(size: ByteSize) -> Self {
        Self {
            forwarder: namecast_forward::Config {
                content_store: namecast_forward::ContentStoreConfig::with_capacity(size),
                ..namecast_forward::Config::default()
            },
            ..Self::default()
        }
    }

    /// The node of one program, with so much room for Data: what neighbours say of the path of Data goes on to the program.
    pub fn of_program(size: ByteSize) -> Self {
        Self::caching(size).hop(|_| Box::new(RelayFeedback))
    }

    /// Has a hop see the packets of all names, after those that were added before. `build` makes one for each of the node's
    /// forwarders, which sees the packets of its share of names.
    #[must_use]
    pub fn hop(mut self, build: impl Fn(Shard) -> Box<dyn Hop> + Send + Sync + 'static) -> Self {
        self.hops.install(build);
        self
    }

    /// Lets a hop be chosen as the strategy of a prefix: `word` stands for it in names, as in `/localhost/nfd/strategy/mine`.
    /// `build` makes one for each of the node's forwarders.
    #[must_use]
    pub fn strategy(
        mut self,
        word: &'static str,
        build: impl Fn(Shard) -> Box<dyn Hop> + Send + Sync + 'static,
    ) -> Self {
        self.hops.add_strategy(word, build);
        self
    }
}

impl NodeConfig {
    /// How the forwarder learns routes: as told, and by `clock` for announcements that are valid for a time only.
    pub(crate) fn learning(&self, clock: Clock) -> namecast_forward::LearningConfig {
        namecast_forward::LearningConfig {
            epoch: Some(clock.wall_at_zero()),
            ..self.forwarder.learning.clone()
        }
    }
}

/// Faces over UDP, and what others may make of them.
#[derive(Clone, Debug, SmartDefault)]
pub struct UdpConfig {
    /// Faces that datagrams from unknown addresses may make, over all UDP listeners.
    #[default(1_024)]
    pub max_faces: usize,
    /// How many of them get a socket of their own at most, and with it a buffer of the system's that no other peer can fill;
    /// the others share the listener's. Each costs a little time for every datagram that comes in on the same port.
    #[default(64)]
    pub peer_sockets: usize,
    /// Silence after which a face that was made by a datagram ends. As long as NFD's.
    #[default(Duration::from_secs(600))]
    pub idle_timeout: Duration,
    /// What UDP peers may cost that have not shown that they receive what is sent to their address.
    pub strangers: StrangersConfig,
    /// Whether UDP peers on this machine count as local, and may register prefixes. NFD says no, ndnd yes.
    #[default(true)]
    pub loopback_is_local: bool,
    /// Largest UDP payload towards peers on this machine, which have no link to respect.
    #[default(namecast_packet::MAX_PACKET_SIZE)]
    pub loopback_mtu: usize,
    /// Largest UDP payload towards other machines.
    #[default(1_400)]
    pub mtu: usize,
    /// Whether frames over UDP are acknowledged and sent again if lost: NDNLPv2 reliability. Peers that do not do so are
    /// not disturbed.
    pub reliability: bool,
    /// Time without a packet after which a UDP peer is sent an empty link packet, so that it, and a NAT on the way, know that
    /// this node is there. A peer that does the same and is silent for three such times counts as down. None: never.
    pub keep_alive: Option<Duration>,
}

/// The bounds of strangers.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct StrangersConfig {
    /// Silence after which a stranger's face ends.
    #[default(Duration::from_secs(5))]
    pub idle_timeout: Duration,
    /// Silence after which another stranger may have his place if places run short.
    #[default(Duration::from_secs(1))]
    pub replace_after: Duration,
    /// Strangers with a face for each prefix of source addresses: /24 of IPv4, /56 of IPv6, which is what one site mostly has
    /// (RFC 6177).
    #[default(64)]
    pub max_per_prefix: usize,
    /// What all strangers together may be sent beyond three times the octets that came from each; shared evenly by prefix.
    #[default(Bitrate::mbps(10))]
    pub budget: Bitrate,
}

/// Who may command this node.
#[derive(Clone, Debug, SmartDefault)]
pub struct ManagementConfig {
    /// Whether commands are served at all.
    #[default(true)]
    pub enabled: bool,
    /// Whether commands under `/localhop`, which other machines can send, are served.
    pub allow_localhop: bool,
    /// Who may command; if nobody is named, anybody on this machine. Applications of this process always may.
    pub keys: Vec<Certificate>,
    /// Modules, such as `rib`, that anybody on this machine may command nevertheless.
    #[default(vec!["rib".to_owned()])]
    pub open_modules: Vec<String>,
    /// Names that pages of this node may publish by a link, whoever else may command.
    pub tickets: Tickets,
    /// Roots whose members may register names, also from other machines.
    pub rights: Rights,
    /// Routes that commands may make.
    #[default(4_096)]
    pub max_routes: usize,
    /// Next hops that may come of them, with those that longer prefixes inherit from shorter ones.
    #[default(16_384)]
    pub max_inherited: usize,
    /// How far the time in a command's signature may be from this node's (NFD: 120 s).
    #[default(Duration::from_secs(120))]
    pub time_grace: Duration,
    /// Commands of each key, and of those signed with a digest, that are remembered to refuse replays (NFD: 1000).
    #[default(1_000)]
    pub max_nonces: usize,
    /// How a routing daemon on this machine is told what applications register; none: it is not, as with NFD.
    pub readvertise: Option<ReadvertiseConfig>,
}

/// How a routing daemon is told of prefixes.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct ReadvertiseConfig {
    /// Pause after which it is told again what it has agreed to (NFD: an hour).
    #[default(Duration::from_secs(300))]
    pub refresh: Duration,
    /// First and longest pause after a command that it did not carry out; each is twice as long as the one before (NFD: 50 s
    /// and an hour).
    #[default((Duration::from_secs(1), Duration::from_secs(64)))]
    pub backoff: (Duration, Duration),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a forwarder that restarts may take to have its applications' prefixes again.
    const RETURN: Duration = Duration::from_secs(2);

    /// Over a connection, the longest pause is followed by connecting and a command, which take no time to speak of on
    /// one machine. Over UDP, a command that was lost because the forwarder was not there yet is found so after its
    /// timeout, and repeated after a pause; where none was under way, the next repetition is due.
    #[test]
    fn prefixes_come_back_within_two_seconds_of_a_restart() {
        let config = NodeConfig::default();
        let registration = &config.registration;
        assert!(config.reconnect_backoff.1 < RETURN);
        assert!(registration.timeout + registration.backoff.1 < RETURN);
        assert!(registration.datagram_refresh < RETURN);
    }
}
