//! `namecast impair`: an emulated link between real programs.

use namecast_command::Stop;
use namecast_command::report::{ProgressLine, print_line};
use namecast_units::Duration;
use serde_json::json;

use super::arguments::Impair;
use super::{Flow, Quantiles, Relay, Report};

/// How often figures are written and shown.
const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until interrupted, or the time is over, and has a report taken every second; the last one is final.
///
/// # Errors
/// What is wrong with the arguments, or why a report was not taken.
pub async fn run(
    arguments: Impair,
    mut take: impl FnMut(&Report, bool) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let run = &arguments.run;
    let mut stop = Stop::new(run.duration)?;
    let config = arguments.relay()?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let (to, seed) = (config.to, config.seed);
    let relay = Relay::start(config)?;
    if run.json && !run.quiet {
        print_line(json!({ "listen": relay.address(), "to": to, "seed": seed }))?;
    }
    progress.say(&format!(
        "Relaying {} to {to}, seed {seed}.",
        relay.address()
    ));
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    // The first tick comes at once, and there is nothing to say yet.
    tick.tick().await;
    let mut is_told = false;
    loop {
        tokio::select! {
            _ = tick.tick() => {
                let Some(report) = relay.report() else { break };
                if !report.realtime && !is_told {
                    progress.say("(The system does not permit real-time priority: other programs will delay this one.)");
                    is_told = true;
                }
                take(&report, false)?;
                if run.json && !run.quiet {
                    print_line(serde_json::to_string(&report)?)?;
                }
                progress.show(&line(&report));
            }
            () = stop.wait() => break,
        }
    }
    let Some(report) = relay.stop() else {
        anyhow::bail!("the relay ended by itself: this is a defect of ours");
    };
    take(&report, true)?;
    if run.json && !run.quiet {
        print_line(serde_json::to_string(&report)?)?;
    }
    for text in summary(&report) {
        progress.say(&text);
    }
    Ok(())
}

/// One line for now.
fn line(report: &Report) -> String {
    format!(
        "{:>4.0} s  {}  |  {}  |  error {}{}",
        report.seconds,
        flow("forward", &report.forward),
        flow("backward", &report.backward),
        quantiles(&report.recent_error_ms),
        if report.recent_error_ms.is_disturbed() {
            "  DISTURBED"
        } else {
            ""
        },
    )
}

fn flow(name: &str, flow: &Flow) -> String {
    format!(
        "{name} {} sent, {} dropped, {} queued",
        flow.delivered,
        flow.dropped.total(),
        flow.queue_packets
    )
}

fn quantiles(error: &Quantiles) -> String {
    let Quantiles { p50, p99, max } = error;
    format!("{p50:.2} ms, 99 % {p99:.2}, at most {max:.2}")
}

/// The whole run.
fn summary(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, flow) in [
        ("forward ", &report.forward),
        ("backward", &report.backward),
    ] {
        let dropped = &flow.dropped;
        lines.push(format!(
            "{name}  {} in, {} out ({:.3} Mbit/s), {} marked, mean wait {:.2} ms",
            flow.received,
            flow.delivered,
            flow.delivered_bytes as f64 * 8e-6 / report.seconds.max(1e-9),
            flow.marked,
            flow.queue_ms_mean,
        ));
        lines.push(format!(
            "          dropped: {} queue full, {} by the discipline, {} at random, {} in outages; delay error {}",
            dropped.queue_full + dropped.in_flight_full,
            dropped.active_queue,
            dropped.loss,
            dropped.down,
            quantiles(&flow.error_ms),
        ));
    }
    let verdict = match report.disturbed {
        true => {
            "disturbed: more than one frame in a hundred was over 1 ms late; do not trust this run"
        }
        false => "undisturbed",
    };
    lines.push(format!(
        "delay error of both: {}: {verdict}",
        quantiles(&report.error_ms)
    ));
    lines
}
