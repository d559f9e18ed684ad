//! A node: a forwarder in this process, with applications on it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_apps::Application;
use namecast_net::{
    FaceId, FaceUri, Handle, Identity, KeyStore, LinkState, NodeConfig, Registration, WeakHandle,
    drive,
};
use namecast_packet::{Certificate, Name, Signer};
use namecast_units::{ByteSize, Timestamp};
use smart_default::SmartDefault;
use tokio::sync::mpsc;

use crate::consumers::Consumers;
use crate::error::Error;

/// How a node is set up.
///
/// The defaults are the keys of the user, and 16 MiB.
#[derive(Clone, Debug, SmartDefault)]
pub struct Options {
    /// Directory of the keys that sign what is published; `None`: that of this machine's user, as for the command `namecast`.
    pub keys: Option<PathBuf>,
    /// Memory for packets that passed, which others may request again.
    #[default(ByteSize::mebibytes(16))]
    pub cache: ByteSize,
}

/// A forwarder in this process, on which applications publish, watch, serve and fetch. Clones are one node.
#[derive(Clone)]
pub struct Node {
    inner: namecast_net::Node,
    keys: Option<PathBuf>,
    /// Faces to forwarders that what is published is registered with.
    uplinks: Arc<Mutex<Vec<FaceId>>>,
    /// The application for all that is watched and fetched, while anything is.
    consumers: Arc<tokio::sync::Mutex<Option<WeakHandle<Consumers>>>>,
    /// What others come to, until the node is gone.
    #[cfg(feature = "forwarder")]
    listeners: Arc<Mutex<Vec<Box<dyn core::any::Any + Send>>>>,
}

/// Starts a node that is connected to the forwarder at `address`, such as `udp://192.0.2.1:6363` or
/// `unix:///run/nfd/nfd.sock`. Must be called inside a tokio runtime.
///
/// Returns at once, whether the forwarder answers or not: the node connects as soon as it does, and again whenever the
/// connection was lost.
///
/// # Errors
/// If the address is none.
pub async fn connect(address: &str) -> Result<Node, Error> {
    let node = Node::start(Options::default());
    node.connect(address).await?;
    Ok(node)
}

impl core::fmt::Debug for Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

impl Node {
    /// Starts a node without connections. Must be called inside a tokio runtime.
    pub fn start(options: Options) -> Self {
        Self {
            inner: namecast_net::Node::start(NodeConfig::of_program(options.cache)),
            keys: options.keys,
            uplinks: Arc::default(),
            consumers: Arc::default(),
            #[cfg(feature = "forwarder")]
            listeners: Arc::default(),
        }
    }

    /// Connects to the forwarder at `address`, sends it all Interests that nothing here answers, and registers with it what
    /// is published from now on.
    ///
    /// # Errors
    /// If the address is none, or the node has stopped.
    pub async fn connect(&self, address: &str) -> Result<(), Error> {
        let face = self.inner.connect(address.parse::<FaceUri>()?).await?;
        self.attach(face).await
    }

    /// Does what [`connect`](Self::connect) does, with a face to a forwarder that there is already.
    ///
    /// # Errors
    /// If there is no such face, or the node has stopped.
    pub async fn attach(&self, face: FaceId) -> Result<(), Error> {
        self.inner.add_route(Name::root(), face, 10).await?;
        lock(&self.uplinks).push(face);
        Ok(())
    }

    /// Accepts other nodes at `address`: `udp://127.0.0.1:6363`, `tcp://…` or `unix:///path`. Port 0: a free one.
    ///
    /// Returns the address in use. It listens as long as there is a clone of the node.
    ///
    /// # Errors
    /// If the address is none to listen on, or is taken.
    #[cfg(feature = "forwarder")]
    pub async fn listen(&self, address: &str) -> Result<FaceUri, Error> {
        let (uri, listener): (_, Box<dyn core::any::Any + Send>) = match address.parse()? {
            FaceUri::Udp(address) => {
                let listener = self.inner.listen_udp(address).await?;
                (listener.uri().clone(), Box::new(listener))
            }
            FaceUri::Tcp(address) => {
                let listener = self.inner.listen_tcp(address).await?;
                (listener.uri().clone(), Box::new(listener))
            }
            FaceUri::Unix(path) => {
                let listener = self.inner.listen_unix(&path).await?;
                (listener.uri().clone(), Box::new(listener))
            }
            other => return Err(Error::NotListenable(other)),
        };
        lock(&self.listeners).push(listener);
        Ok(uri)
    }

    /// Runs an application of your own: Interests for names under `prefix` go to it, if one is given.
    ///
    /// Returns a handle on it, and its events. It ends with its last handle.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn run<A>(
        &self,
        prefix: Option<&Name>,
        application: A,
    ) -> Result<(Handle<A>, mpsc::Receiver<A::Event>), Error>
    where
        A: Application<Event: Send> + Send + 'static,
    {
        let face = self.inner.application_face_with_local_fields().await?;
        let mut registrations = Vec::new();
        if let Some(prefix) = prefix {
            self.inner.add_route(prefix.clone(), face.id(), 0).await?;
            let register = |uplink: &FaceId| self.inner.register_prefix(*uplink, prefix.clone(), 0);
            registrations.extend(lock(&self.uplinks).iter().map(register));
        }
        let driven = drive(self.inner.clock(), face, application);
        Ok(driven.spawn(move || registrations.iter().for_each(Registration::cancel)))
    }

    /// Returns a handle on the application for all that is watched and fetched, which ends with its last handle.
    pub(crate) async fn consumers(&self) -> Result<Handle<Consumers>, Error> {
        let mut consumers = self.consumers.lock().await;
        if let Some(running) = consumers.as_ref().and_then(WeakHandle::upgrade) {
            return Ok(running);
        }
        let seed = u64::from_le_bytes(namecast_net::random());
        let (handle, mut events) = self.run(None, Consumers::new(seed)).await?;
        // It reports nothing, and runs as long as somebody would listen.
        tokio::spawn(async move { events.recv().await });
        let weak = handle.downgrade();
        *consumers = Some(weak.clone());
        self.on_return_of_uplinks(move || {
            let running = weak.upgrade();
            running.is_some_and(|running| running.try_call(Consumers::handle_link_change))
        })
        .await?;
        Ok(handle)
    }

    /// Has `on_return` called whenever the connection to a forwarder comes back, as long as it returns true.
    pub(crate) async fn on_return_of_uplinks(
        &self,
        on_return: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Result<(), Error> {
        let uplinks = lock(&self.uplinks).clone();
        for uplink in uplinks {
            let mut state = self.inner.link_state(uplink).await?;
            state.mark_unchanged();
            let on_return = on_return.clone();
            tokio::spawn(async move {
                while state.changed().await.is_ok() {
                    let is_up = matches!(*state.borrow_and_update(), LinkState::Up);
                    if is_up && !on_return() {
                        return;
                    }
                }
            });
        }
        Ok(())
    }

    /// Wall-clock time now, as it goes into packets.
    pub fn wall(&self) -> Timestamp {
        self.inner.clock().wall()
    }

    /// Stops the node: what is queued goes out, then connections close.
    pub async fn shutdown(&self) {
        self.inner.shutdown().await;
    }

    /// The node as operators see it: faces, routes, management.
    pub const fn inner(&self) -> &namecast_net::Node {
        &self.inner
    }

    /// The key of `identity`, made when it is first asked for, and its certificate.
    pub(crate) fn identity(
        &self,
        identity: &Name,
    ) -> Result<(Box<dyn Signer + Send>, Certificate), Error> {
        read(identity, self.key_store()?.identity(identity)?)
    }

    /// Returns the key that a certificate was installed for, of `name` or else of its longest prefix.
    pub(crate) fn certified(
        &self,
        name: &Name,
    ) -> Result<(Box<dyn Signer + Send>, Certificate), Error> {
        let certified = self.key_store()?.certified(name)?;
        read(
            name,
            certified.ok_or_else(|| Error::NotCertified(name.clone()))?,
        )
    }

    fn key_store(&self) -> Result<KeyStore, Error> {
        Ok(match &self.keys {
            Some(directory) => KeyStore::open(directory)?,
            None => KeyStore::open_default()?,
        })
    }
}

fn read(name: &Name, key: Identity) -> Result<(Box<dyn Signer + Send>, Certificate), Error> {
    let certificate = Certificate::decode(key.certificate)
        .map_err(|error| Error::Certificate(name.clone(), error.to_string()))?;
    Ok((key.signer, certificate))
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a name as people write it.
pub(crate) fn parse_name(name: &str) -> Result<Name, Error> {
    name.parse().map_err(|_| Error::Name(name.to_owned()))
}
