//! Network namespaces: two forwarders on one file system, as in containers, may be of different networks.

use std::path::Path;

/// Number of the network namespace of this process; none where the system has no such thing.
pub(crate) fn own() -> Option<u64> {
    number_of("self")
}

/// Whether the process that listens on the Unix socket at `path` is known to be in another network namespace.
pub(crate) async fn is_elsewhere(path: &Path) -> bool {
    match (own(), listener(path).await) {
        // Linux shows a process of another container as 0.
        (Some(_), Some(0)) => true,
        (Some(own), Some(peer)) => number_of(&peer.to_string()).is_some_and(|its| its != own),
        _ => false,
    }
}

/// Number of the process that listens on a Unix socket.
#[cfg(unix)]
async fn listener(path: &Path) -> Option<i32> {
    let connection = tokio::net::UnixStream::connect(path).await.ok()?;
    connection.peer_cred().ok()?.pid()
}
#[cfg(not(unix))]
async fn listener(_: &Path) -> Option<i32> {
    None
}

#[cfg(target_os = "linux")]
fn number_of(process: &str) -> Option<u64> {
    let namespace = std::fs::metadata(format!("/proc/{process}/ns/net")).ok()?;
    Some(std::os::linux::fs::MetadataExt::st_ino(&namespace))
}
#[cfg(not(target_os = "linux"))]
const fn number_of(_: &str) -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_of_this_process_is_here_and_an_absent_one_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        assert!(!is_elsewhere(&path).await);
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(!is_elsewhere(&path).await);
    }
}
