//! Where things of this user are kept.

use std::path::PathBuf;

use anyhow::Context;
pub(crate) use namecast_net::{environment, home};

use crate::network_namespace;

/// Returns this program's data directory.
pub(crate) fn data_directory() -> anyhow::Result<PathBuf> {
    namecast_net::data_directory().context("neither XDG_DATA_HOME nor HOME is set")
}

/// Where a configuration file may lie, the user's own first: `$XDG_CONFIG_HOME/namecast`, or below `~/.config`, and
/// `/etc/namecast`.
pub(crate) fn configuration(file: &str) -> impl Iterator<Item = PathBuf> {
    let own = environment("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| home().map(|home| home.join(".config")));
    let places = own.into_iter().chain([PathBuf::from("/etc")]);
    places.map(move |place| place.join("namecast").join(file))
}

/// Where a forwarder of this user listens, unless it is told otherwise: `$XDG_RUNTIME_DIR/namecast/forwarder.sock`, or in
/// the data directory.
pub(crate) fn forwarder_socket() -> anyhow::Result<PathBuf> {
    let directory = match environment("XDG_RUNTIME_DIR") {
        Some(runtime) => PathBuf::from(runtime).join("namecast"),
        None => data_directory()?,
    };
    Ok(directory.join("forwarder.sock"))
}

/// The same for a forwarder in a network namespace of its own, while one in another namespace has that place.
pub(crate) fn forwarder_socket_of_network() -> Option<PathBuf> {
    let number = network_namespace::own()?;
    let usual = forwarder_socket().ok()?;
    Some(usual.with_file_name(format!("forwarder-net{number}.sock")))
}
