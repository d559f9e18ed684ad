//! Real-time streams by name: live video, sound and data of any application over Named Data Networking.
//!
//! A consumer requests the next piece of a stream *before it exists*, by name. Whoever is nearest and has it answers: the
//! producer, a router's cache, an archive. Every piece is signed and verified.
//!
//! ```no_run
//! # async fn example() -> Result<(), namecast::Error> {
//! let node = namecast::connect("udp://127.0.0.1:6363").await?;
//! let thermometer = node.publish("/kitchen/thermometer")?.data("celsius", 1, 8).start().await?;
//! thermometer.send("celsius", "21.5").await?;
//!
//! let mut readings = node.watch("/kitchen/thermometer")?.data().start().await?;
//! while let Some(reading) = readings.next_frame().await {
//!     println!("{:?}", reading.payload);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`Node`] is a forwarder in this process; what publishes or watches is an application on it. Applications of your own are
//! values of [`Application`], which [`Node::run`] runs in real time, and the simulator in virtual time.

mod consumers;
mod error;
mod node;
mod object;
#[cfg(feature = "publish")]
mod publish;
#[cfg(feature = "watch")]
mod watch;

pub use error::Error;
pub use node::{Node, Options, connect};
pub use object::Serving;
#[cfg(feature = "publish")]
pub use publish::{Publication, Publish, VideoRung};
#[cfg(feature = "watch")]
pub use watch::{Watch, Watching};

pub use namecast_apps::live::EncodedFrame;
#[cfg(feature = "watch")]
pub use namecast_apps::live::watcher::{
    Event, Frame, Pin, RungChoice, Seek, Signer, Trust, Verdict, Watched,
};
#[cfg(feature = "watch")]
pub use namecast_apps::live::{Stats, WatcherConfig};
pub use namecast_apps::object::{Failure, Fetched, FetcherConfig};
pub use namecast_apps::trust::ExchangeSecret;
pub use namecast_apps::{Application, Now, Output};
pub use namecast_net::{Driven, FaceId, Handle, Timer, drive};
pub use namecast_packet::Name;
#[cfg(feature = "watch")]
pub use namecast_stream::path::Weight;
pub use namecast_units::{Bitrate, ByteSize, Duration, Instant, Timestamp};
