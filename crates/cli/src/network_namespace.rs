//! Network namespaces: two forwarders on one file system, as in containers, may be of different networks.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tokio::net::UnixStream;

/// Number of the network namespace of this process; none where the system has no such thing.
pub(crate) fn own() -> Option<u64> {
    number_of("self")
}

/// Whether the process that listens on the Unix socket at `path` is known to be in another network namespace.
pub(crate) async fn is_elsewhere(path: &Path) -> bool {
    let Ok(connection) = UnixStream::connect(path).await else {
        return false;
    };
    let peer = connection.peer_cred().ok().and_then(|peer| peer.pid());
    match (own(), peer) {
        // Linux shows a process of another container as 0.
        (Some(_), Some(0)) => true,
        (Some(own), Some(peer)) => number_of(&peer.to_string()).is_some_and(|its| its != own),
        _ => false,
    }
}

fn number_of(process: &str) -> Option<u64> {
    let namespace = std::fs::metadata(format!("/proc/{process}/ns/net"));
    namespace.ok().map(|namespace| namespace.ino())
}

#[cfg(test)]
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
