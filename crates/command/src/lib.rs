//! What Namecast's programs have in common on the command line.

mod arguments;
mod program;
pub mod report;
pub mod source;
mod stop;

pub use arguments::{Run, parse_duration};
pub use program::{LogFormat, Logs, execute};
pub use stop::Stop;
