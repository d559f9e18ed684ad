//! The configuration file of `namecast forwarder`, in TOML.
//!
//! It is refused whole if anything in it is wrong, with the place and what was expected. Nothing that it says is kept
//! anywhere else, so a forwarder that was killed comes back as the file has it.

mod apply;
mod file;
mod interfaces;
mod learning;
mod management;
mod reload;
mod web;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use namecast_forward::StrategyKind;
use namecast_net::{
    EthernetConfig, FaceOptions, FaceUri, Network, NodeConfig, UdpMulticast, UnixAccess,
};
use namecast_packet::Name;
use namecast_units::Duration;

use namecast_command::source::{Problem, Problems};

use crate::tls::TlsFiles;

pub(crate) use apply::Listeners;
pub use reload::Running;

/// The defaults as a file, each setting with what it means.
pub const DEFAULT: &str = include_str!("default.toml");
/// How long interfaces are waited for unless the file says otherwise.
const INTERFACE_TIMEOUT: Duration = Duration::from_secs(600);
/// Octets that a file may have.
const MAX_FILE: u64 = 1 << 20;

/// What a forwarder is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node with its bounds.
    pub node: NodeConfig,
    /// What the content store does.
    pub cache: Cache,
    /// Addresses at which UDP is received.
    pub udp: Vec<SocketAddr>,
    /// Addresses at which TCP connections are accepted.
    pub tcp: Vec<SocketAddr>,
    /// Paths of Unix sockets; none: the usual one, if it is free.
    pub unix: Option<Vec<PathBuf>>,
    /// Permissions of these sockets.
    pub unix_access: UnixAccess,
    /// Faces to multicast groups.
    pub multicast: Vec<UdpMulticast>,
    /// Interfaces that carry Ethernet faces.
    pub ethernet: Vec<EthernetConfig>,
    /// How long interfaces are waited for that are not there at the start.
    pub interface_timeout: Duration,
    /// Faces that are made at the start.
    pub faces: Vec<StaticFace>,
    /// Routes that are made at the start.
    pub routes: Vec<StaticRoute>,
    /// Strategies that are chosen at the start.
    pub strategies: Vec<(Name, StrategyKind)>,
    /// Certificate of the web server.
    pub tls: TlsFiles,
    /// Where nobody may come from.
    pub deny: Vec<Network>,
}

/// What the content store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Takes Data in.
    pub admits: bool,
    /// Answers Interests.
    pub serves: bool,
}

/// A face that is made at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFace {
    /// Where it leads.
    pub uri: FaceUri,
    /// The interface, for an Ethernet address: one of those that carry Ethernet faces.
    pub interface: Option<String>,
    /// How it is.
    pub options: FaceOptions,
}

/// A route that is made at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// Names it is for.
    pub prefix: Name,
    /// Where it leads: the address of one of the faces.
    pub face: FaceUri,
    /// The interface of that face, if it has one.
    pub interface: Option<String>,
    /// Which of several is taken: the lowest.
    pub cost: u64,
    /// As in NFD.
    pub flags: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::parse(Path::new("default.toml"), DEFAULT).expect("the documented defaults are right")
    }
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it, and where.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        Self::parse(path, &text_of(path)?)
    }

    /// Reads the text of the file at `path`; other files that it names are looked for beside it.
    ///
    /// # Errors
    /// All that is wrong with it, and where.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Problems> {
        file::parse(path, text)
    }
}

/// Reads a file that is no longer than a configuration may be.
fn text_of(path: &Path) -> Result<String, Problems> {
    let whole = |message: String| {
        let problem = Problem {
            path: path.display().to_string(),
            line: 0,
            column: 0,
            message,
        };
        Problems(vec![problem])
    };
    let size = std::fs::metadata(path).map_err(|error| whole(error.to_string()))?;
    if size.len() > MAX_FILE {
        return Err(whole(format!("expected at most {MAX_FILE} octets")));
    }
    std::fs::read_to_string(path).map_err(|error| whole(error.to_string()))
}

#[cfg(test)]
mod tests;
