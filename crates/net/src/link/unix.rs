//! Unix stream sockets: elements one behind another, between processes of one machine.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use namecast_forward::Scope;
use tokio::net::{UnixListener, UnixStream};

use super::accept::Door;
use super::{LinkEnd, SessionEnd, next_number, stream};
use crate::FaceUri;
use crate::node::{ListenError, Listener, NewFace, Node};

/// Accepts connections at `path`.
pub(crate) async fn listen(node: &Node, path: &Path) -> Result<Listener<PathBuf>, ListenError> {
    let uri = FaceUri::Unix(path.to_owned());
    clear(path).await?;
    let listener = UnixListener::bind(path).map_err(ListenError::bind(uri.clone()))?;
    let file = SocketFile(path.to_owned());
    let door = Door::open(node, uri.clone()).await?;
    let stop = door.stop.clone();
    let local = uri.clone();
    let accepting = door.accept_all(
        async move || listener.accept().await,
        move |door, (connection, _), permit| {
            let (node, local) = (door.node().clone(), local.clone());
            node.spawn(async move {
                serve(&door, connection, local).await;
                drop(permit);
            });
        },
    );
    node.spawn(async move {
        accepting.await;
        drop(file);
    });
    Ok(Listener::new(path.to_owned(), uri, stop))
}

async fn serve(door: &Door, connection: UnixStream, local: FaceUri) {
    let remote = FaceUri::Accepted(next_number());
    let new = NewFace::on_demand(remote, Scope::Local, None).at(local);
    if let Some(mut link) = door.face(new).await {
        let end = run(connection, &mut link).await;
        door.leave(link, end).await;
    }
}

/// Connects to the socket at `path`.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}

/// Carries frames both ways until the connection or the face ends.
pub(super) async fn run(connection: UnixStream, link: &mut LinkEnd) -> SessionEnd {
    let (reader, writer) = connection.into_split();
    stream::run(reader, writer, link).await
}

/// Removes the socket file of a process that died. Anything else at `path` stays.
async fn clear(path: &Path) -> Result<(), ListenError> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(ListenError::bind(FaceUri::Unix(path.to_owned())))
        }
        _ => Err(ListenError::InUse(path.to_owned())),
    }
}

/// Removes the socket's file at the end.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it already, which is as well.
        let _ = std::fs::remove_file(&self.0);
    }
}
