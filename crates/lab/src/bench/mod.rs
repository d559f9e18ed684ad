//! What things cost and how fast they are, as ratios to a raw limit taken in the same run.

mod dumbbell;
mod flow;
#[cfg(target_os = "linux")]
mod forwarder;
mod marks;
mod measure;
mod sim;
mod speech;
mod stream;

use clap::{Args, Subcommand};

use dumbbell::BenchDumbbell;
#[cfg(target_os = "linux")]
use forwarder::BenchForwarder;
#[cfg(target_os = "linux")]
use forwarder::memory::BenchMemory;
#[cfg(target_os = "linux")]
use forwarder::sessions::BenchExchange;
use marks::BenchMarks;
use sim::BenchSim;
use speech::BenchSpeech;
use stream::BenchStream;

/// `namecast bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// What to measure.
    #[command(subcommand)]
    pub what: BenchWhat,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchWhat {
    /// Streams over loopback sockets: join time, delay, overhead, processor time, memory.
    Stream(BenchStream),
    /// The forwarder over UDP: processor time for a Data packet, beside a program that copies datagrams.
    #[cfg(target_os = "linux")]
    Forwarder(BenchForwarder),
    /// Two-way sessions over UDP, with bundles and without: processor time, round trip, transfer time.
    #[cfg(target_os = "linux")]
    Exchange(BenchExchange),
    /// A voice call over a path with delay and loss: how much of what is spoken is heard.
    Speech(BenchSpeech),
    /// Resident memory of a forwarder whose tables are full, beside the bounds that it was told.
    #[cfg(target_os = "linux")]
    Memory(BenchMemory),
    /// Congestion marks of two forwarders with a slow link between them, beside the simulator's: see interop/run.sh marks.
    Marks(BenchMarks),
    /// Flows of two forwarders with a slow link between them, beside the simulator's: see interop/run.sh dumbbell.
    Dumbbell(BenchDumbbell),
    /// The simulator: packet-hops per processor second, memory per node.
    Sim(BenchSim),
}

/// Measures what was asked for.
///
/// # Errors
/// What went wrong, with what to do next.
pub(crate) async fn run(arguments: Bench) -> anyhow::Result<()> {
    match arguments.what {
        BenchWhat::Stream(arguments) => stream::run(&arguments).await,
        #[cfg(target_os = "linux")]
        BenchWhat::Forwarder(arguments) => forwarder::run(&arguments),
        #[cfg(target_os = "linux")]
        BenchWhat::Exchange(arguments) => forwarder::sessions::run(&arguments),
        BenchWhat::Speech(arguments) => speech::run(&arguments),
        #[cfg(target_os = "linux")]
        BenchWhat::Memory(arguments) => forwarder::memory::run(&arguments),
        BenchWhat::Marks(arguments) => marks::run(&arguments).await,
        BenchWhat::Dumbbell(arguments) => dumbbell::run(&arguments).await,
        BenchWhat::Sim(arguments) => sim::run(&arguments),
    }
}
