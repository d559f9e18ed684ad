//! The file as it is written, and what it comes to.

use core::fmt::Display;
use core::num::NonZeroU32;
use core::ops::Range;
use core::str::FromStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use namecast_forward::{CachePolicy, InterestRate, MIN_MTU, StrategyKind, UnsolicitedData};
use namecast_net::management::{CAPTURE, CHILD_INHERIT};
use namecast_net::{FaceOptions, FaceUri, ManagementConfig, NodeConfig, Persistency};
use namecast_packet::{Certificate, MAX_PACKET_SIZE, Name};
use namecast_units::{ByteSize, Duration};
use serde::Deserialize;
use toml::Spanned;

use super::{Cache, Settings, StaticFace, StaticRoute};
use crate::certificate_file;
use crate::source::{Problem, Problems, Sources};

/// Modules of management that can be open to anybody.
const MODULES: [&str; 5] = ["faces", "fib", "rib", "cs", "strategy-choice"];
/// What one process can take.
const MAX_BOUND: usize = 1 << 28;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    listen: Listen,
    udp: Udp,
    content_store: ContentStore,
    tables: Tables,
    management: Management,
    #[serde(rename = "face")]
    faces: Vec<Face>,
    #[serde(rename = "route")]
    routes: Vec<Route>,
    #[serde(rename = "strategy")]
    strategies: Vec<Strategy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Listen {
    udp: Option<Vec<Spanned<String>>>,
    tcp: Option<Vec<Spanned<String>>>,
    unix: Option<Vec<PathBuf>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Udp {
    reliability: Option<bool>,
    mtu: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    idle_timeout: Option<Duration>,
    max_faces: Option<Spanned<usize>>,
    loopback_is_local: Option<bool>,
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
    measurements: Option<Spanned<usize>>,
    pending_interests: Option<Spanned<usize>>,
    pending_memory: Option<ByteSize>,
    face_pending_interests: Option<Spanned<usize>>,
    face_interest_rate: Option<FaceRate>,
    #[serde(with = "namecast_units::optional_duration")]
    max_lifetime: Option<Duration>,
    dead_nonces: Option<Spanned<usize>>,
    #[serde(with = "namecast_units::optional_duration")]
    dead_nonce_lifetime: Option<Duration>,
    name_components: Option<Spanned<usize>>,
    queue_frames: Option<Spanned<usize>>,
    queue_memory: Option<ByteSize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Management {
    localhop: Option<bool>,
    keys: Vec<Spanned<PathBuf>>,
    open: Option<Vec<Spanned<String>>>,
    #[serde(with = "namecast_units::optional_duration")]
    time_grace: Option<Duration>,
    nonces: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Face {
    uri: Spanned<String>,
    persistency: Option<Keeping>,
    reliability: Option<bool>,
    local_fields: Option<Spanned<bool>>,
    mtu: Option<Spanned<usize>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Keeping {
    Persistent,
    Permanent,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Route {
    prefix: Spanned<String>,
    face: Spanned<String>,
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
struct Reading<'a> {
    sources: Sources<'a>,
    /// Where the file is.
    directory: &'a Path,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn object(&mut self, place: Range<usize>, message: impl Into<String>) {
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

    /// Sets a bound, which has to be in `range`.
    fn set(&mut self, bound: &mut usize, written: Option<Spanned<usize>>, least: usize) {
        let Some(written) = written else { return };
        let number = *written.get_ref();
        match (least..=MAX_BOUND).contains(&number) {
            true => *bound = number,
            false => self.object(
                written.span(),
                format!("{number}: expected {least} to {MAX_BOUND}"),
            ),
        }
    }

    fn settings(&mut self, file: File) -> Settings {
        let mut node = NodeConfig::default();
        self.udp(&mut node, file.udp);
        self.tables(&mut node, file.tables);
        self.management(&mut node.management, file.management);
        let store = file.content_store;
        node.forwarder.content_store_policy = store
            .policy
            .map_or(node.forwarder.content_store_policy, CachePolicy::from);
        node.forwarder.unsolicited = store
            .unsolicited
            .map_or(node.forwarder.unsolicited, UnsolicitedData::from);
        node.forwarder.content_store = store.capacity.unwrap_or(node.forwarder.content_store);
        self.set(
            &mut node.forwarder.content_store_versions,
            store.versions,
            1,
        );
        let faces: Vec<_> = file
            .faces
            .into_iter()
            .filter_map(|face| self.face(&node, face))
            .collect();
        self.distinct(&faces);
        let routes = file
            .routes
            .into_iter()
            .filter_map(|route| self.route(&faces, route));
        let routes = routes.collect();
        let strategies = file.strategies.into_iter();
        let strategies = strategies
            .filter_map(|strategy| self.strategy(strategy))
            .collect();
        Settings {
            node,
            cache: Cache {
                admits: store.admit.unwrap_or(true),
                serves: store.serve.unwrap_or(true),
            },
            udp: self.addresses(file.listen.udp),
            tcp: self.addresses(file.listen.tcp),
            unix: file.listen.unix,
            faces: faces.into_iter().map(|(_, face)| face).collect(),
            routes,
            strategies,
        }
    }

    fn udp(&mut self, node: &mut NodeConfig, udp: Udp) {
        node.udp_reliability = udp.reliability.unwrap_or(node.udp_reliability);
        node.udp_loopback_is_local = udp.loopback_is_local.unwrap_or(node.udp_loopback_is_local);
        node.udp_idle_timeout = udp.idle_timeout.unwrap_or(node.udp_idle_timeout);
        if let Some(mtu) = self.mtu(udp.mtu) {
            node.udp_mtu = mtu;
        }
        self.set(&mut node.max_on_demand_faces, udp.max_faces, 0);
    }

    fn tables(&mut self, node: &mut NodeConfig, tables: Tables) {
        let plane = &mut node.forwarder;
        self.set(&mut plane.max_faces, tables.faces, 1);
        self.set(&mut plane.max_prefixes, tables.prefixes, 1);
        self.set(&mut plane.max_measurements, tables.measurements, 0);
        self.set(&mut plane.pit_capacity, tables.pending_interests, 1);
        self.set(&mut plane.dead_nonce_capacity, tables.dead_nonces, 0);
        self.set(&mut plane.max_name_components, tables.name_components, 1);
        let of_face = tables.face_pending_interests;
        self.set(&mut plane.face_pit_capacity, of_face, 1);
        plane.face_interest_rate = tables.face_interest_rate.map(|rate| InterestRate {
            per_second: rate.per_second.get(),
            burst: rate.burst.get(),
        });
        plane.pit_octets = tables.pending_memory.unwrap_or(plane.pit_octets);
        plane.max_lifetime = tables.max_lifetime.unwrap_or(plane.max_lifetime);
        let lifetime = tables.dead_nonce_lifetime;
        plane.dead_nonce_lifetime = lifetime.unwrap_or(plane.dead_nonce_lifetime);
        self.set(&mut node.max_connections, tables.connections, 1);
        self.set(&mut node.management.max_routes, tables.routes, 0);
        self.set(&mut node.link_queue_frames, tables.queue_frames, 1);
        node.link_queue_size = tables.queue_memory.unwrap_or(node.link_queue_size);
    }

    fn management(&mut self, config: &mut ManagementConfig, management: Management) {
        config.allow_localhop = management.localhop.unwrap_or(config.allow_localhop);
        config.time_grace = management.time_grace.unwrap_or(config.time_grace);
        self.set(&mut config.max_nonces, management.nonces, 1);
        for path in management.keys {
            match self.certificate(path.get_ref()) {
                Ok(certificate) => config.keys.push(certificate),
                Err(message) => self.object(path.span(), message),
            }
        }
        if let Some(open) = management.open {
            for module in &open {
                if !MODULES.contains(&module.get_ref().as_str()) {
                    let known = MODULES.join("', '");
                    let message = format!("'{}': expected '{known}'", module.get_ref());
                    self.object(module.span(), message);
                }
            }
            config.open_modules = open.into_iter().map(Spanned::into_inner).collect();
        }
    }

    fn certificate(&self, path: &Path) -> Result<Certificate, String> {
        let certificate = certificate_file::read(&self.directory.join(path));
        certificate.map_err(|error| format!("{error:#}"))
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

    fn face(&mut self, node: &NodeConfig, face: Face) -> Option<(Range<usize>, StaticFace)> {
        let place = face.uri.span();
        let uri = self.uri(&face.uri)?;
        let problem = match &uri {
            FaceUri::Udp(address) if address.ip().is_multicast() => {
                Some("multicast faces are not supported: expected one peer's address")
            }
            FaceUri::Udp(_) | FaceUri::Tcp(_) | FaceUri::Unix(_) | FaceUri::WebSocket { .. } => {
                None
            }
            _ => Some("expected an address to connect to: udp4://, tcp4://, unix:// or ws://"),
        };
        if let Some(problem) = problem {
            self.object(place, format!("{uri}: {problem}"));
            return None;
        }
        let is_udp = matches!(uri, FaceUri::Udp(_));
        if let Some(mtu) = &face.mtu
            && !is_udp
        {
            self.object(mtu.span(), "expected no mtu, as only UDP faces have one");
        }
        let is_local = uri.is_loopback() && (!is_udp || node.udp_loopback_is_local);
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
            ..FaceOptions::default()
        };
        Some((place, StaticFace { uri, options }))
    }

    fn distinct(&mut self, faces: &[(Range<usize>, StaticFace)]) {
        for (at, (place, face)) in faces.iter().enumerate() {
            if faces[..at].iter().any(|(_, other)| other.uri == face.uri) {
                let message = format!("{}: expected one face to each address", face.uri);
                self.object(place.clone(), message);
            }
        }
    }

    fn route(&mut self, faces: &[(Range<usize>, StaticFace)], route: Route) -> Option<StaticRoute> {
        let prefix = self.prefix(&route.prefix)?;
        let place = route.face.span();
        let face = self.uri(&route.face)?;
        if !faces.iter().any(|(_, known)| known.uri == face) {
            let message = format!("{face}: expected the uri of a [[face]] of this file");
            self.object(place, message);
            return None;
        }
        let inherit = if route.inherit { CHILD_INHERIT } else { 0 };
        let capture = if route.capture { CAPTURE } else { 0 };
        Some(StaticRoute {
            prefix,
            face,
            cost: route.cost,
            flags: inherit | capture,
        })
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
                let known = "best-route, multicast, asf, random, weighted or a whole name";
                self.object(place, format!("'{text}': {error}: expected {known}"));
                None
            }
        }
    }

    fn prefix(&mut self, written: &Spanned<String>) -> Option<Name> {
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
