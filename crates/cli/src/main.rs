//! The command `namecast`.

use std::process::ExitCode;

use clap::Parser;
use namecast_cli::commands::{self, Arguments, NotLive};
use namecast_command::execute;

/// Exit status where live was wanted and a recording came.
const NOT_LIVE: u8 = 3;

fn main() -> ExitCode {
    let Arguments { command, logs } = Arguments::parse();
    execute(&logs, commands::run(command), |error| {
        match error.is::<NotLive>() {
            true => NOT_LIVE.into(),
            false => ExitCode::FAILURE,
        }
    })
}
