//! A process without any descriptor left. It alone is in this file, as the bound is one of the whole process.
#![cfg(unix)]

#[path = "all/common/mod.rs"]
mod common;

use std::fs::File;
use std::io::{Read, Write};

use common::{interest, name, produce, start};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, SockAddr, Socket, Type};

const DESCRIPTORS: u64 = 256;
/// As many as are kept.
const CONNECTIONS: usize = 4;

/// Who has a socket already still comes in by the node's Unix socket, and is answered.
#[tokio::test(flavor = "multi_thread")]
async fn the_unix_socket_is_open_when_descriptors_have_run_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let node = start();
    produce(&node, "/here", 100).await;
    let _listener = node.listen_unix(&path).await.unwrap();
    let address = SockAddr::unix(&path).unwrap();
    let mut sockets =
        [(); CONNECTIONS].map(|()| Socket::new(Domain::UNIX, Type::STREAM, None).unwrap());
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, most).unwrap();
    let files: Vec<_> = core::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty());
    for (number, socket) in sockets.iter_mut().enumerate() {
        socket.connect(&address).unwrap();
        socket.set_read_timeout(Some(common::TIMEOUT)).unwrap();
        let wanted = interest(name(&format!("/here/{number}")), common::TIMEOUT);
        socket.write_all(&wanted).unwrap();
        let mut answer = [0; 100];
        let read = socket.read_exact(&mut answer);
        read.unwrap_or_else(|error| panic!("connection {number}: {error}"));
    }
}
