//! The frame around a command: logs, threads, and how it ends.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::report::{OutputClosed, causes, print_error, printable_lines};
use crate::standard_error;

/// What a program logs, and how.
#[derive(Clone, Debug, Args)]
pub struct Logs {
    /// Say more about what happens inside; twice: everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// How that is written to standard error.
    #[arg(long, value_enum, global = true, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

impl Logs {
    /// Starts to write logs; colours are for terminals.
    fn start(&self) {
        let level = match self.verbose {
            0 => "error",
            1 => "info",
            _ => "debug",
        };
        let filter =
            EnvFilter::try_from_env("NAMECAST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
        let logs = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(standard_error::writer);
        match self.log_format {
            LogFormat::Text => logs.init(),
            LogFormat::Json => logs.json().init(),
        }
    }
}

/// Runs `command` to its end, which `failure` turns into an exit status if it is an error. The error is printed. That nobody
/// reads what is printed is none.
pub fn execute(
    logs: &Logs,
    command: impl Future<Output = anyhow::Result<()>>,
    failure: impl FnOnce(&anyhow::Error) -> ExitCode,
) -> ExitCode {
    let _written = standard_error::start();
    logs.start();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(format_args!(
                "namecast: the system gives no threads: {error}"
            ));
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(command);
    // A thread that waits for standard input, or for a slow reader, must not hold the end up.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            let text = causes(&error);
            print_error(format_args!("namecast: {}", printable_lines(&text)));
            failure(&error)
        }
    }
}
