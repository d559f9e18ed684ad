//! A relay for UDP datagrams with an emulated link in each direction, in real time.
//!
//! ```text
//!  clients ─▶ listening socket ─▶ link "forward"  ─▶ one socket per client ─▶ server
//!          ◀─                  ◀─ link "backward" ◀─                       ◀─
//! ```
//!
//! All clients share the two links, as on a real bottleneck. One thread does everything, with real-time priority where the
//! system permits, and measures how late it was: a run on a busy machine is known as such.

pub mod arguments;
mod command;
mod engine;
mod file;
mod report;
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "benchmarks of the forwarder, which run on Linux, use more"
    )
)]
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use namecast_netem as netem;
use namecast_units::Duration;

pub use command::run;
use engine::{Engine, Request};
pub use file::{FileError, read as read_file, read_trace};
pub use report::{Drops, Flow, Quantiles, Report};

pub(crate) use report::Errors;
#[cfg(target_os = "linux")]
pub(crate) use socket::{Buffers, Port};

/// Delay error that at most one frame in a hundred may have before a run counts as disturbed.
pub const DISTURBED_ABOVE: Duration = Duration::from_millis(1);

/// What a relay does.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Where clients send to; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The server behind the link.
    pub to: SocketAddr,
    /// The link from clients to the server. Its zero of time is the start of the relay.
    pub forward: netem::Config,
    /// The link back.
    pub backward: netem::Config,
    /// Fixes all randomness; each direction has its own.
    pub seed: u64,
    /// Most clients at a time; datagrams of others are refused and counted.
    pub max_clients: usize,
    /// A client from which and for which nothing came for so long is forgotten.
    pub idle_timeout: Duration,
    /// Ask for real-time priority.
    pub realtime: bool,
}

impl RelayConfig {
    /// A relay with perfect links.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            forward: netem::Config::default(),
            backward: netem::Config::default(),
            seed: 1,
            max_clients: 64,
            idle_timeout: Duration::from_secs(60),
            realtime: true,
        }
    }
}

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// A link makes no sense.
    #[error("{direction}.{error}")]
    Config {
        /// `forward` or `backward`.
        direction: &'static str,
        /// What is wrong with it.
        error: netem::ConfigError,
    },
    /// The socket for clients.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The thread.
    #[error("the system gives no thread: {0}")]
    Thread(io::Error),
}

/// A running relay. It stops when it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    requests: Sender<Request>,
    thread: Option<JoinHandle<Report>>,
}

impl Relay {
    /// Starts a relay.
    ///
    /// # Errors
    /// If a link makes no sense, or the system gives no socket or thread.
    pub fn start(config: RelayConfig) -> Result<Self, RelayError> {
        for (direction, link) in [("forward", &config.forward), ("backward", &config.backward)] {
            link.validate()
                .map_err(|error| RelayError::Config { direction, error })?;
        }
        let listen = config.listen;
        let refused = |error| RelayError::Listen {
            address: listen,
            error,
        };
        let engine = Engine::new(config).map_err(refused)?;
        let address = engine.address().map_err(refused)?;
        let (requests, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("impair".to_owned())
            .spawn(move || engine.run(&inbox))
            .map_err(RelayError::Thread)?;
        Ok(Self {
            address,
            requests,
            thread: Some(thread),
        })
    }

    /// Where clients send to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happened so far. Blocks for at most some ten milliseconds. None if the thread has ended, which is our bug.
    pub fn report(&self) -> Option<Report> {
        let (answer, report): (_, Receiver<Report>) = mpsc::channel();
        self.requests.send(Request::Report(answer)).ok()?;
        report.recv().ok()
    }

    /// Stops it, which loses what is under way, and says what happened. None if the thread had ended before.
    pub fn stop(mut self) -> Option<Report> {
        self.end()
    }

    fn end(&mut self) -> Option<Report> {
        let thread = self.thread.take()?;
        // A thread that has ended needs no telling.
        let _ = self.requests.send(Request::Stop);
        thread.join().ok()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Nobody is left who wants the report.
        self.end();
    }
}
