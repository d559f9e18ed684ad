//! What Namecast's programs have in common on the command line.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod program;
pub mod report;
pub mod source;
mod standard_error;
mod stop;

pub use arguments::{Run, number, parse_address, parse_duration};
pub use program::{LogFormat, Logs, execute};
pub use standard_error::lines_lost;
pub use stop::{HangUps, Stop};
