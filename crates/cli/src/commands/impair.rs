//! `namecast impair`: the laboratory's relay, for those who look at it as at other commands.

use clap::Args;
use namecast_lab::impair::{self, Report, arguments};

use crate::telemetry::{Metrics, Reporter, tables};

/// `namecast impair`.
#[derive(Debug, Args)]
#[group(skip)]
pub struct Impair {
    /// The relay.
    #[command(flatten)]
    pub relay: arguments::Impair,
    /// Who asks how it does.
    #[command(flatten)]
    pub metrics: Metrics,
}

const DISTURBED: &str =
    "frames leave more than 1 ms later than the link wants: other programs delay the relay";

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Impair) -> anyhow::Result<()> {
    let Impair { relay, metrics } = arguments;
    let mut stats = Reporter::start_without_node(&tables::IMPAIR, &relay.run, metrics).await?;
    let take = |report: &Report, is_final| {
        let is_disturbed = report.recent_error_ms.is_disturbed();
        stats.set_problem("link", is_disturbed.then(|| DISTURBED.to_owned()));
        stats.write(report, is_final)
    };
    impair::run(relay, take).await
}
