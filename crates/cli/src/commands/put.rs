//! `namecast put`: a file or standard input as an object, until interrupted: what `send` does, for who wants no more than that.

use std::path::PathBuf;

use clap::Args;
use namecast_apps::object::transfer::Policy;
use namecast_command::{Run, parse_duration};
use namecast_packet::Name;
use namecast_units::Duration;

use super::send::{self, Sending, Surroundings, Through};
use crate::telemetry::tables;

/// `namecast put`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast put /files/report.pdf report.pdf
  date | namecast put /clock
  namecast peek /files/report.pdf --object > copy.pdf          or: namecast receive, ndnd cat, ndncatchunks")]
pub struct Put {
    /// Name of the object, to which its version is added.
    pub name: Name,
    /// What it holds; without it, or as '-': standard input to its end.
    pub file: Option<PathBuf>,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print the name with its version, and errors, only.
    #[arg(short, long)]
    pub quiet: bool,
    /// Where it serves, and under which key.
    #[command(flatten)]
    pub through: Through,
}

/// Serves it until interrupted.
pub(super) async fn run(arguments: Put) -> anyhow::Result<()> {
    let sending = Sending {
        files: vec![arguments.file.unwrap_or_else(|| "-".into())],
        name: arguments.name,
        policy: Policy::AsAsked,
        until: None,
        is_private: false,
        is_coded: true,
    };
    let run = Run {
        duration: arguments.duration,
        quiet: arguments.quiet,
        ..Run::default()
    };
    let surroundings = Surroundings {
        command: &tables::PUT,
        run,
        through: arguments.through,
    };
    send::serve(sending, surroundings).await
}
