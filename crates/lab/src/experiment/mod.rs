//! `namecast experiment`: figures and tables of papers, from files that say what to run.
//!
//! ```text
//!  library ─▶ file ─▶ plan ─▶ run ─▶ store ─▶ measured ─▶ summary, figure ─▶ chart ─▶ output
//!   (IDs)    (TOML)  (points)  │   (.runs)                                             │
//!                          laboratory                                       report ◀───┘
//! ```
//!
//! `docs/experiments.md` explains the files. The runner does not know what a scenario is; a [`Laboratory`] does.

pub mod arguments;
mod chart;
mod claim;
pub(crate) mod command;
mod compare;
mod figure;
mod file;
mod key;
mod laboratory;
mod library;
mod listing;
mod measured;
mod output;
mod plan;
mod progress;
mod quality;
mod replay;
pub mod report;
mod run;
mod runs;
mod simulator;
mod sockets;
mod statistics;
mod store;
mod summary;
mod trace;
mod tree;

pub use claim::{ClaimResult, Found, Verdict};
pub use compare::{Comparison, Judged, Test, ValueChange, VerdictChange};
pub use file::FileLimits;
pub use laboratory::{Laboratory, Outcome, Refusal, Series};
pub use library::{Library, LibraryError};
pub use listing::{Listed, table};
pub use namecast_command::source::{Problem, Problems};
pub use output::{Timing, failures};
pub use plan::Experiment;
pub use progress::Progress;
pub use replay::{Kept, Replay};
pub use run::{Finished, RunConfig, RunError, program_digest, run, run_seed};
pub use simulator::Simulator;
pub use statistics::Statistics;
pub use store::StoreLimits;
pub use summary::{CheckResult, FigureEntry, Summary};
pub use trace::TracedRun;
pub use tree::Scale;
