//! The file as it is written, and what it comes to.

mod links;

use core::fmt::Display;
use core::num::NonZeroU32;
use core::ops::{Range, RangeInclusive};
use core::str::FromStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use namecast_command::report::causes;
use namecast_command::source::{Problem, Problems, Sources};
use namecast_forward::{
    CachePolicy, InterestRate, MIN_MTU, NamedHop, StrategyKind, UnsolicitedData,
};
use namecast_net::management::{CAPTURE, CHILD_INHERIT};
use namecast_net::{
    CongestionLaw, CongestionMarking, ExtensionFields, FaceUri, Network, NodeConfig, UdpConfig,
    UnixAccess,
};
use namecast_packet::{Certificate, MAX_PACKET_SIZE, Name};
use namecast_units::{Bitrate, ByteSize, Duration};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::learning::Learning;
use super::management::{Management, Rib, Trust};
use super::web::Web;
use super::{Cache, INTERFACE_TIMEOUT, Settings, StaticRoute};
use crate::certificate_file;
use links::{Ethernet, Face, Known, Multicast};

/// What one process can take.
const MAX_BOUND: usize = 1 << 28;
/// More than there are processors in a machine that people have.
const MAX_THREADS: usize = 256;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    threads: Option<Spanned<usize>>,
    hops: Vec<Spanned<String>>,
    deny: Vec<Spanned<String>>,
    listen: Listen,
    udp: Udp,
    faces: Faces,
    content_store: ContentStore,
    tables: Tables,
    learning: Learning,
    management: Management,
    web: Web,
    rib: Rib,
    trust: Vec<Trust>,
    multicast: Vec<Multicast>,
    ethernet: Vec<Ethernet>,
    #[serde(rename = "face")]
    static_faces: Vec<Face>,
    #[serde(rename = "route")]
    routes: Vec<Route>,
    #[serde(rename = "strategy")]
    strategies: Vec<Spanned<Strategy>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Listen {
    udp: Option<Vec<Spanned<String>>>,
    tcp: Option<Vec<Spanned<String>>>,
    unix: Option<Vec<PathBuf>>,
    unix_mode: Option<Spanned<String>>,
    unix_group: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Udp {
    reliability: Option<bool>,
    mtu: Option<Spanned<usize>>,
    loopback_mtu: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    idle_timeout: Option<Duration>,
    #[serde(with = "namecast_units::optional_duration")]
    keep_alive: Option<Duration>,
    max_faces: Option<Spanned<usize>>,
    own_sockets: Option<Spanned<usize>>,
    loopback_is_local: Option<bool>,
    #[serde(with = "namecast_units::optional_duration")]
    stranger_timeout: Option<Duration>,
    #[serde(with = "namecast_units::optional_duration")]
    stranger_replace_after: Option<Duration>,
    strangers_per_prefix: Option<Spanned<usize>>,
    stranger_budget: Option<Bitrate>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Faces {
    congestion: Option<Congestion>,
    congestion_threshold: Option<ByteSize>,
    extension_fields: Option<Extensions>,
    #[serde(with = "namecast_units::optional_duration")]
    interface_timeout: Option<Duration>,
}

impl Faces {
    fn apply(self, node: &mut NodeConfig) {
        let marking = &mut node.congestion_marking;
        *marking = self.congestion.map_or(*marking, Into::into);
        if let (Some(marking), Some(threshold)) = (marking, self.congestion_threshold) {
            marking.threshold = threshold;
        }
        let extensions = self.extension_fields;
        node.extension_fields = extensions.map_or(node.extension_fields, Into::into);
    }
}

/// Whether neighbours hear link header fields outside of NDNLPv2.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Extensions {
    Off,
    Auto,
    On,
}

impl From<Extensions> for ExtensionFields {
    fn from(written: Extensions) -> Self {
        match written {
            Extensions::Off => Self::Off,
            Extensions::Auto => Self::Auto,
            Extensions::On => Self::On,
        }
    }
}

/// What packets are marked by.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Congestion {
    Nfd,
    NdnSim,
    CoDel,
    Pcon,
    Off,
}

impl From<Congestion> for Option<CongestionMarking> {
    fn from(written: Congestion) -> Self {
        let law = match written {
            Congestion::Off => return None,
            Congestion::Nfd => CongestionLaw::Nfd,
            Congestion::NdnSim => CongestionLaw::NdnSim,
            Congestion::CoDel => CongestionLaw::CoDel,
            Congestion::Pcon => CongestionLaw::Pcon,
        };
        Some(CongestionMarking {
            law,
            ..CongestionMarking::default()
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct ContentStore {
    capacity: Option<ByteSize>,
    policy: Option<Policy>,
    admit: Option<bool>,
    serve: Option<bool>,
    unsolicited: Option<Unsolicited>,
    versions: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Policy {
    Lru,
    S3Fifo,
}

impl From<Policy> for CachePolicy {
    fn from(written: Policy) -> Self {
        match written {
            Policy::Lru => Self::Lru,
            Policy::S3Fifo => Self::S3Fifo,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unsolicited {
    DropAll,
    AdmitLocal,
    AdmitNetwork,
    AdmitAll,
}

impl From<Unsolicited> for UnsolicitedData {
    fn from(written: Unsolicited) -> Self {
        match written {
            Unsolicited::DropAll => Self::DropAll,
            Unsolicited::AdmitLocal => Self::AdmitLocal,
            Unsolicited::AdmitNetwork => Self::AdmitNetwork,
            Unsolicited::AdmitAll => Self::AdmitAll,
        }
    }
}

/// How many Interests one face may send.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaceRate {
    per_second: NonZeroU32,
    burst: NonZeroU32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Tables {
    faces: Option<Spanned<usize>>,
    connections: Option<Spanned<usize>>,
    prefixes: Option<Spanned<usize>>,
    routes: Option<Spanned<usize>>,
    inherited_next_hops: Option<Spanned<usize>>,
    measurements: Option<Spanned<usize>>,
    pending_interests: Option<Spanned<usize>>,
    pending_memory: Option<ByteSize>,
    face_pending_interests: Option<Spanned<usize>>,
    face_interest_rate: Option<FaceRate>,
    #[serde(deserialize_with = "lifetime")]
    max_lifetime: Option<Duration>,
    #[serde(deserialize_with = "lifetime")]
    max_nonlocal_lifetime: Option<Duration>,
    same_hash: Option<Spanned<usize>>,
    dead_nonces: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    dead_nonce_lifetime: Option<Duration>,
    name_components: Option<Spanned<usize>>,
    queue_frames: Option<Spanned<usize>>,
    queue_memory: Option<ByteSize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Route {
    prefix: Spanned<String>,
    face: Spanned<String>,
    interface: Option<Spanned<String>>,
    #[serde(default)]
    cost: u64,
    #[serde(default = "yes")]
    inherit: bool,
    #[serde(default)]
    capture: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Strategy {
    prefix: Spanned<String>,
    name: Spanned<String>,
}

const fn yes() -> bool {
    true
}

/// Reads how long Interests may wait: with no time at all, none would ever be answered.
fn lifetime<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Duration>, D::Error> {
    let lifetime = namecast_units::duration::deserialize(source)?;
    match lifetime.is_zero() {
        true => Err(D::Error::custom("expected more than 0, such as 10s")),
        false => Ok(Some(lifetime)),
    }
}

/// Reads the text of the file at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Settings, Problems> {
    let name = path.display().to_string();
    let mut sources = Sources::default();
    sources.add(&name, text);
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        Problems(vec![sources.problem(place, error.message().trim_end())])
    })?;
    let mut reading = Reading {
        sources,
        directory: path.parent().unwrap_or(Path::new("")),
        problems: Vec::new(),
    };
    let settings = reading.settings(file);
    match reading.problems.is_empty() {
        true => Ok(settings),
        false => Err(Problems(reading.problems)),
    }
}

/// A file while it is read.
pub(super) struct Reading<'a> {
    sources: Sources<'a>,
    /// Where the file is.
    directory: &'a Path,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    pub(super) fn object(&mut self, place: Range<usize>, message: impl Into<String>) {
        self.problems.push(self.sources.problem(place, message));
    }

    /// Reads a value that is written as text; the error says what was `expected`, unless the type's own does.
    fn parse<T: FromStr<Err: Display>>(
        &mut self,
        written: &Spanned<String>,
        expected: &str,
    ) -> Option<T> {
        let text = written.get_ref();
        let value = text.parse();
        value
            .map_err(|error| self.object(written.span(), format!("'{text}': {error}{expected}")))
            .ok()
    }

    fn uri(&mut self, written: &Spanned<String>) -> Option<FaceUri> {
        self.parse(written, "")
    }

    fn addresses(&mut self, written: Option<Vec<Spanned<String>>>) -> Vec<SocketAddr> {
        let Some(written) = written else {
            return vec![([127, 0, 0, 1], namecast_net::DEFAULT_PORT).into()];
        };
        let expected = ": expected ADDRESS:PORT, as in 127.0.0.1:6363";
        let addresses = written.iter().map(|text| self.parse(text, expected));
        addresses.flatten().collect()
    }

    /// Reads the permission bits of a file.
    fn mode(&mut self, written: &Spanned<String>) -> Option<u32> {
        let text = written.get_ref();
        let mode = u32::from_str_radix(text, 8).ok();
        let mode = mode.filter(|mode| *mode <= 0o777);
        if mode.is_none() {
            let message = format!("'{text}': expected octal permissions, as in \"0666\"");
            self.object(written.span(), message);
        }
        mode
    }

    /// Sets a bound, which has to be at least so much.
    pub(super) fn set(&mut self, bound: &mut usize, written: Option<Spanned<usize>>, least: usize) {
        self.set_within(bound, written, least..=MAX_BOUND);
    }

    fn set_within(
        &mut self,
        number: &mut usize,
        written: Option<Spanned<usize>>,
        range: RangeInclusive<usize>,
    ) {
        let Some(written) = written else { return };
        let wanted = *written.get_ref();
        match range.contains(&wanted) {
            true => *number = wanted,
            false => self.object(
                written.span(),
                format!("{wanted}: expected {} to {}", range.start(), range.end()),
            ),
        }
    }

    fn settings(&mut self, file: File) -> Settings {
        let mut node = NodeConfig::default();
        self.set_within(&mut node.forwarders, file.threads, 1..=MAX_THREADS);
        node = self.hops(node, &file.hops);
        let deny = file.deny.iter();
        let deny: Vec<Network> = deny.filter_map(|it| self.parse(it, "")).collect();
        node.deny.set(deny.clone());
        self.udp(&mut node.udp, file.udp);
        let interface_timeout = file.faces.interface_timeout.unwrap_or(INTERFACE_TIMEOUT);
        file.faces.apply(&mut node);
        self.tables(&mut node, file.tables);
        self.learning(&mut node.forwarder.learning, file.learning);
        self.management(&mut node.management, file.management);
        file.rib.apply(&mut node.management);
        self.rights(&mut node.management, file.trust);
        let tls = self.tls(&file.web);
        self.web(&mut node.web, file.web);
        let store = file.content_store;
        let config = &mut node.forwarder.content_store;
        config.policy = store.policy.map_or(config.policy, CachePolicy::from);
        let unsolicited = store.unsolicited.map(UnsolicitedData::from);
        config.unsolicited = unsolicited.unwrap_or(config.unsolicited);
        config.capacity = store.capacity.unwrap_or(config.capacity);
        self.set(&mut config.max_versions, store.versions, 1);
        let mut known = Known::default();
        let multicast = file.multicast.into_iter();
        let multicast: Vec<_> = multicast.filter_map(|face| self.multicast(face)).collect();
        let ethernet = file.ethernet.into_iter();
        let ethernet: Vec<_> = ethernet.map(|port| self.ethernet(port)).collect();
        self.know_links(&mut known, &multicast, &ethernet);
        let multicast = multicast.into_iter().map(|(_, face)| face).collect();
        let ethernet: Vec<_> = ethernet.into_iter().map(|(_, port)| port).collect();
        let mut faces = Vec::new();
        for written in file.static_faces {
            let place = written.uri.span();
            if let Some(face) = self.face(&node, &ethernet, written) {
                self.know(&mut known, place, &face);
                faces.push(face);
            }
        }
        let routes = file.routes.into_iter();
        let routes = routes
            .filter_map(|route| self.route(&known, route))
            .collect();
        let strategies = self.strategies(file.strategies);
        let unix_access = UnixAccess {
            mode: file.listen.unix_mode.and_then(|mode| self.mode(&mode)),
            group: file.listen.unix_group,
        };
        Settings {
            node,
            cache: Cache {
                admits: store.admit.unwrap_or(true),
                serves: store.serve.unwrap_or(true),
            },
            udp: self.addresses(file.listen.udp),
            tcp: self.addresses(file.listen.tcp),
            unix: file.listen.unix,
            unix_access,
            multicast,
            ethernet,
            interface_timeout,
            faces,
            routes,
            strategies,
            tls,
            deny,
        }
    }

    fn hops(&mut self, mut node: NodeConfig, hops: &[Spanned<String>]) -> NodeConfig {
        for written in hops {
            if let Some(hop) = self.parse::<NamedHop>(written, "") {
                node = node.hop(move |_| hop.build());
            }
        }
        node
    }

    fn udp(&mut self, config: &mut UdpConfig, udp: Udp) {
        config.reliability = udp.reliability.unwrap_or(config.reliability);
        config.loopback_is_local = udp.loopback_is_local.unwrap_or(config.loopback_is_local);
        config.idle_timeout = udp.idle_timeout.unwrap_or(config.idle_timeout);
        config.keep_alive = udp.keep_alive;
        let octets = MIN_MTU..=MAX_PACKET_SIZE;
        self.set_within(&mut config.mtu, udp.mtu, octets.clone());
        self.set_within(&mut config.loopback_mtu, udp.loopback_mtu, octets);
        self.set(&mut config.max_faces, udp.max_faces, 0);
        self.set(&mut config.peer_sockets, udp.own_sockets, 0);
        let strangers = &mut config.strangers;
        strangers.idle_timeout = udp.stranger_timeout.unwrap_or(strangers.idle_timeout);
        let replace_after = udp.stranger_replace_after;
        strangers.replace_after = replace_after.unwrap_or(strangers.replace_after);
        strangers.budget = udp.stranger_budget.unwrap_or(strangers.budget);
        self.set(&mut strangers.max_per_prefix, udp.strangers_per_prefix, 0);
    }

    fn tables(&mut self, node: &mut NodeConfig, tables: Tables) {
        let plane = &mut node.forwarder;
        self.set(&mut plane.max_faces, tables.faces, 1);
        self.set(&mut plane.max_prefixes, tables.prefixes, 1);
        self.set(&mut plane.max_measurements, tables.measurements, 0);
        self.set(&mut plane.max_same_hash, tables.same_hash, 4);
        self.set(&mut plane.dead_nonces.capacity, tables.dead_nonces, 0);
        self.set(&mut plane.max_name_components, tables.name_components, 1);
        let pit = &mut plane.pit;
        self.set(&mut pit.capacity, tables.pending_interests, 1);
        let of_face = tables.face_pending_interests;
        self.set(&mut pit.face_capacity, of_face, 1);
        pit.face_interest_rate = tables.face_interest_rate.map(|rate| InterestRate {
            per_second: rate.per_second.get(),
            burst: rate.burst.get(),
        });
        pit.max_size = tables.pending_memory.unwrap_or(pit.max_size);
        pit.max_lifetime = tables.max_lifetime.unwrap_or(pit.max_lifetime);
        let lifetime = tables.max_nonlocal_lifetime;
        pit.max_nonlocal_lifetime = lifetime.unwrap_or(pit.max_nonlocal_lifetime);
        let lifetime = tables.dead_nonce_lifetime;
        plane.dead_nonces.lifetime = lifetime.unwrap_or(plane.dead_nonces.lifetime);
        self.set(&mut node.max_connections, tables.connections, 1);
        self.set(&mut node.management.max_routes, tables.routes, 0);
        let inherited = tables.inherited_next_hops;
        self.set(&mut node.management.max_inherited, inherited, 0);
        self.set(&mut node.link_queue_frames, tables.queue_frames, 1);
        node.link_queue_size = tables.queue_memory.unwrap_or(node.link_queue_size);
    }

    /// A file that this one names.
    pub(super) fn beside(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }

    pub(super) fn certificate(&self, path: &Path) -> Result<Certificate, String> {
        let certificate = certificate_file::read(&self.beside(path));
        certificate.map_err(|error| causes(&error))
    }

    fn mtu(&mut self, written: Option<Spanned<usize>>) -> Option<usize> {
        let written = written?;
        let mtu = *written.get_ref();
        if (MIN_MTU..=MAX_PACKET_SIZE).contains(&mtu) {
            return Some(mtu);
        }
        let message = format!("{mtu}: expected {MIN_MTU} to {MAX_PACKET_SIZE} octets");
        self.object(written.span(), message);
        None
    }

    fn route(&mut self, known: &Known, route: Route) -> Option<StaticRoute> {
        let prefix = self.prefix(&route.prefix)?;
        let face = self.uri(&route.face)?;
        let interface = route.interface.map(Spanned::into_inner);
        let interface = known
            .interface_of(&face, interface.as_ref())
            .map_err(|expected| self.object(route.face.span(), format!("{face}: {expected}")))
            .ok()?;
        let inherit = if route.inherit { CHILD_INHERIT } else { 0 };
        let capture = if route.capture { CAPTURE } else { 0 };
        Some(StaticRoute {
            prefix,
            face,
            interface,
            cost: route.cost,
            flags: inherit | capture,
        })
    }

    /// Reads the strategies, of which a prefix has one.
    fn strategies(&mut self, written: Vec<Spanned<Strategy>>) -> Vec<(Name, StrategyKind)> {
        let mut strategies: Vec<(Name, StrategyKind)> = Vec::new();
        for strategy in written {
            let place = strategy.span();
            let Some((prefix, kind)) = self.strategy(strategy.into_inner()) else {
                continue;
            };
            match strategies.iter().any(|(known, _)| *known == prefix) {
                true => self.object(place, format!("{prefix} has a strategy already: keep one")),
                false => strategies.push((prefix, kind)),
            }
        }
        strategies
    }

    fn strategy(&mut self, strategy: Strategy) -> Option<(Name, StrategyKind)> {
        let prefix = self.prefix(&strategy.prefix)?;
        let (place, text) = (strategy.name.span(), strategy.name.into_inner());
        let uri = match text.starts_with('/') {
            true => text.clone(),
            false => format!("/localhost/nfd/strategy/{text}"),
        };
        let found = match uri.parse::<Name>() {
            Ok(name) => StrategyKind::from_name(&name).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match found {
            Ok(kind) => Some((prefix, kind)),
            Err(error) => {
                let known = "best-route, multicast, asf, self-learning, random, weighted, pcon or a whole name";
                self.object(place, format!("'{text}': {error}: expected {known}"));
                None
            }
        }
    }

    pub(super) fn prefix(&mut self, written: &Spanned<String>) -> Option<Name> {
        let prefix: Name = self.parse(written, ": expected a name, as in /edu/video")?;
        let place = written.span();
        if prefix.len() <= namecast_net::management::MAX_PREFIX_COMPONENTS {
            return Some(prefix);
        }
        let limit = namecast_net::management::MAX_PREFIX_COMPONENTS;
        self.object(place, format!("expected at most {limit} components"));
        None
    }
}
