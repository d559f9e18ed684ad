//! The command `namecast`.

use std::process::ExitCode;

use clap::Parser;
use namecast_cli::commands::{self, Arguments, NotLive, WrongUse};
use namecast_command::execute;

/// Exit status where live was wanted and a recording came.
const NOT_LIVE: u8 = 3;
/// Exit status where the arguments contradict each other, as clap has it.
const WRONG_USE: u8 = 2;

fn main() -> ExitCode {
    let Arguments { command, logs } = Arguments::parse();
    execute(&logs, commands::run(command), |error| {
        if error.is::<NotLive>() {
            NOT_LIVE.into()
        } else if error.is::<WrongUse>() {
            WRONG_USE.into()
        } else {
            ExitCode::FAILURE
        }
    })
}
