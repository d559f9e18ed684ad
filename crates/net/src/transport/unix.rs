//! Unix stream sockets: elements one behind another, between processes of one machine.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_forward::Scope;
use nix::unistd::Group;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;
pub(super) use tokio::net::UnixStream;
use tokio::net::unix::SocketAddr;

use super::accept::Door;
use super::{UnixAccess, stream};
use crate::FaceUri;
use crate::link::next_number;
use crate::node::{LinkEnd, ListenError, Listener, NewFace, Node, SessionEnd};

/// Descriptors that are kept for connections at one path.
const RESERVED: usize = 4;
/// `EMFILE` and `ENFILE` of Unix systems: this process, or all together, have as many open files as they may.
const NO_DESCRIPTORS: [i32; 2] = [24, 23];

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

impl UnixAccess {
    fn apply(&self, path: &Path) -> io::Result<()> {
        if let Some(name) = &self.group {
            let group = Group::from_name(name)?;
            let absent = || io::Error::other(format!("no group {name}: create it with groupadd"));
            let group = group.ok_or_else(absent)?;
            let owned = std::os::unix::fs::chown(path, None, Some(group.gid.as_raw()));
            let told = |error| format!("group {name}: {error}; the forwarder has to be a member");
            owned.map_err(|error| io::Error::new(error.kind(), told(error)))?;
        }
        match self.mode {
            Some(mode) => std::fs::set_permissions(path, PermissionsExt::from_mode(mode)),
            None => Ok(()),
        }
    }
}

/// Binds a socket to `path`. Nobody can connect before its file has the permissions of `access`.
fn bind(path: &Path, access: &UnixAccess) -> io::Result<(UnixListener, SocketFile)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile(path.to_owned());
    access.apply(path)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok((UnixListener::from_std(socket.into())?, file))
}

/// Accepts connections at `path` from those whom `access` lets in.
pub(crate) async fn listen(
    node: &Node,
    path: &Path,
    access: &UnixAccess,
) -> Result<Listener<PathBuf>, ListenError> {
    let uri = FaceUri::Unix(path.to_owned());
    clear(path).await?;
    let (listener, file) = bind(path, access).map_err(ListenError::bind(uri.clone()))?;
    let door = Door::open(node, uri.clone()).await?;
    let (state, stop) = (Arc::clone(&door.state), door.stop.clone());
    let local = uri.clone();
    let reserve = Arc::new(Reserve::default());
    reserve.fill();
    let kept = Arc::clone(&reserve);
    let accepting = door.accept_all(
        async move || kept.accept(&listener).await,
        |_| None,
        move |door, (connection, _), place| {
            let (node, local) = (door.node().clone(), local.clone());
            let reserve = Arc::clone(&reserve);
            node.spawn(async move {
                serve(&door, connection, local).await;
                reserve.fill();
                drop(place);
            });
        },
    );
    node.spawn(async move {
        accepting.await;
        drop(file);
    });
    Ok(Listener::new(path.to_owned(), uri, state, stop))
}

/// Descriptors for when others have taken all that there are, as an operator comes by this socket to end them.
#[derive(Debug, Default)]
struct Reserve(Mutex<Vec<File>>);

impl Reserve {
    async fn accept(&self, listener: &UnixListener) -> io::Result<(UnixStream, SocketAddr)> {
        self.fill();
        loop {
            match listener.accept().await {
                Err(error) if is_for_want_of_descriptors(&error) && self.give_one() => {}
                accepted => return accepted,
            }
        }
    }

    /// Takes back what was given.
    fn fill(&self) {
        let mut files = self.files();
        while files.len() < RESERVED
            && let Ok(file) = File::open("/dev/null")
        {
            files.push(file);
        }
    }

    fn give_one(&self) -> bool {
        self.files().pop().is_some()
    }

    fn files(&self) -> MutexGuard<'_, Vec<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_for_want_of_descriptors(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code.is_some_and(|code| NO_DESCRIPTORS.contains(&code))
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
