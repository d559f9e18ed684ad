//! Objects: byte strings with a name, served and fetched.

use bytes::Bytes;
use namecast_apps::object::{
    Failure, Fetched, FetcherConfig, Requested, Server, ServerConfig, ServerError,
};
use namecast_net::Handle;
use namecast_packet::Name;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::node::{Node, parse_name};

impl Node {
    /// Fetches the newest version of the object `name`, verified, if it has no more than 64 MiB: as fast as the path allows, and as what
    /// the node watches leaves.
    ///
    /// # Errors
    /// If nobody has it, or what arrives is not signed by a key of a prefix of its name.
    pub async fn fetch(&self, name: &str) -> Result<Fetched, Error> {
        self.fetch_as(FetcherConfig::new(parse_name(name)?)).await
    }

    /// Fetches an object as `config` says; clock, seed and controller are the node's.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub async fn fetch_as(&self, mut config: FetcherConfig) -> Result<Fetched, Error> {
        config.wall_at_zero = self.inner().clock().wall_at_zero();
        let consumers = self.consumers().await?;
        let fetching = consumers.call(move |consumers, _| consumers.fetch(config));
        let fetched = fetching.await.ok_or(Error::Ended)?.await;
        Ok(fetched.map_err(|_| Error::Ended)??)
    }

    /// Serves objects under `prefix`, signed with its key, which is made when it is first used.
    ///
    /// # Errors
    /// If it is no name, there is no key, or the node has stopped.
    pub async fn serve(&self, prefix: &str) -> Result<Serving, Error> {
        let prefix = parse_name(prefix)?;
        let (signer, certificate) = self.identity(&prefix)?;
        let server = Server::new(ServerConfig::new(prefix.clone()), signer, certificate)?;
        let (handle, requests) = self.run(Some(&prefix), server).await?;
        Ok(Serving { handle, requests })
    }
}

/// What serves objects. It ends when this is dropped.
#[derive(Debug)]
pub struct Serving {
    handle: Handle<Server>,
    requests: mpsc::Receiver<Requested>,
}

impl Serving {
    /// Publishes `content` as the newest version of the object `name`, and returns the name with its version.
    ///
    /// # Errors
    /// If the name is not under the prefix, there is no room, or the node has stopped.
    pub async fn put(&self, name: &Name, content: impl Into<Bytes>) -> Result<Name, Error> {
        let (name, content) = (name.clone(), content.into());
        let put = self
            .handle
            .call(move |server, now| server.put(name, content, now.wall));
        Ok(put.await.ok_or(Error::Ended)??)
    }

    /// Waits until an object is requested that does not exist: put it, or refuse it. `None` once the node has stopped.
    pub async fn requested(&mut self) -> Option<Name> {
        self.requests.recv().await.map(|Requested(name)| name)
    }

    /// Refuses whoever requested `name`.
    pub fn refuse(&self, name: &Name) {
        let name = name.clone();
        self.handle.try_call(move |server, _| server.refuse(&name));
    }

    /// The server, to call it or to read what it has counted.
    pub const fn handle(&self) -> &Handle<Server> {
        &self.handle
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Fetch(failure)
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self::Serve(error)
    }
}
