//! What may go wrong, for whoever called.

use namecast_packet::Name;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name is none.
    #[error("'{0}' is no name: write it as /first/second")]
    Name(String),
    /// An address is none that a node can use.
    #[error(transparent)]
    Address(#[from] namecast_net::ParseFaceUriError),
    /// The node refused.
    #[error(transparent)]
    Node(#[from] namecast_net::NodeError),
    /// The node cannot listen there.
    #[error(transparent)]
    Listen(#[from] namecast_net::ListenError),
    /// An address of a kind that nobody can listen on.
    #[error("a node cannot listen on {0}: write udp://, tcp:// or unix://")]
    NotListenable(namecast_net::FaceUri),
    /// There is no key to sign with.
    #[error(transparent)]
    Key(#[from] namecast_net::KeyStoreError),
    /// The key's certificate is damaged.
    #[error("the certificate of {0} is damaged: {1}")]
    Certificate(Name, String),
    /// No certificate was installed for a name, nor for a prefix of it.
    #[error("no certificate for {0} is installed: `namecast trust request {0}` writes a request")]
    NotCertified(Name),
    /// What is to be published is not valid.
    #[error(transparent)]
    Setup(#[from] namecast_apps::live::SetupError),
    /// A frame was not published.
    #[error(transparent)]
    Frame(#[from] namecast_apps::live::FrameError),
    /// A stream or rung is not one of those that are published.
    #[error("{stream}/{rung} is not published here")]
    NoSuchStream {
        /// Name of the stream.
        stream: String,
        /// Name of the rung.
        rung: String,
    },
    /// An object was not fetched.
    #[error(transparent)]
    Fetch(namecast_apps::object::Failure),
    /// An object cannot be served.
    #[error(transparent)]
    Serve(namecast_apps::object::ServerError),
    /// The node, or what ran on it, has ended.
    #[error("it has ended: the node was stopped")]
    Ended,
}
