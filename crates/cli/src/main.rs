//! The command `namecast`.

use std::process::ExitCode;

use clap::Parser;
use namecast_cli::arguments::{Arguments, LogFormat};
use namecast_cli::commands::NotLive;
use namecast_cli::{commands, printable_lines};
use tracing_subscriber::EnvFilter;

/// Exit status where live was wanted and a recording came.
const NOT_LIVE: u8 = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let level = match arguments.verbose {
        0 => "error",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("NAMECAST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match arguments.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("namecast: the system gives no threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(commands::run(arguments.command));
    // A thread that waits for standard input, or for a slow reader, must not hold the end up.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let status = match error.is::<NotLive>() {
                true => NOT_LIVE.into(),
                false => ExitCode::FAILURE,
            };
            let error = format!("{error:#}");
            eprintln!("namecast: {}", printable_lines(&error));
            status
        }
    }
}
