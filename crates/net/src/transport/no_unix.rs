//! Stands for Unix sockets on systems without them.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use super::UnixAccess;
use crate::FaceUri;
use crate::node::{LinkEnd, ListenError, Listener, Node, SessionEnd};

/// A connection that cannot be.
pub(super) type UnixStream = Infallible;

fn unsupported() -> io::Error {
    let message = "this system has no Unix sockets: use tcp://";
    io::Error::new(io::ErrorKind::Unsupported, message)
}

pub(crate) async fn listen(
    _: &Node,
    path: &Path,
    _: &UnixAccess,
) -> Result<Listener<PathBuf>, ListenError> {
    Err(ListenError::bind(FaceUri::Unix(path.to_owned()))(
        unsupported(),
    ))
}

pub(super) async fn connect(_: &Path) -> io::Result<UnixStream> {
    Err(unsupported())
}

pub(super) async fn run(connection: UnixStream, _: &mut LinkEnd) -> SessionEnd {
    match connection {}
}
