//! `namecast cue check`: whether each device is ready, before the show.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_apps::cues::{
    self, ACKS, Action, CUES, Cue, CueId, DeskClock, Done, Outcome, device_root,
};
use namecast_apps::live::watcher::Signer;
use namecast_command::parse_duration;
use namecast_command::report::{columns, local, print, print_line};
use namecast_net::Node;
use namecast_packet::{Certificate, Name};
use namecast_stream::{StreamInfo, StreamNames};
use namecast_units::{Duration, Timestamp};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::ShowOptions;
use super::list::{Entry, List};
use super::show::{Heard, Show, What};
use crate::asking::{Answer, Asker, Question};

/// From one question to the devices to the next: those that join in between hear the next one.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Interests that measure the loss, and from one to the next. Answers are fresh for less.
const PROBES: u32 = 20;
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// An answer that takes longer is lost.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Another desk of this name would have answered by then.
const DESK_TIMEOUT: Duration = Duration::from_millis(600);
/// Share of Interests that may be lost.
const MAX_LOSS: f64 = 0.1;
/// Largest error of a device's knowledge of the desk's clock.
const MAX_CLOCK_ERROR: Duration = Duration::from_millis(50);
/// Largest difference between the clocks of the machines. Cues are in time whatever it is; certificates and logs are not.
const MAX_OFFSET: Duration = Duration::from_secs(60);
/// A key that ends within this time may end in the show.
const MIN_VALIDITY: Duration = Duration::from_secs(86_400);

/// `namecast cue check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cue check /show --list show.toml
  namecast cue check /show --device light-1 --device sound --json

It asks as the desk main, or as that of --desk, so run it before that desk, where the desk's key is. A device is ready if it answers, loses at
most 10 % of packets, knows the desk's clock to 50 ms, has a clock within a minute of this machine's, and a key that is valid for a day.")]
pub struct CheckCommand {
    /// Options of desks and devices.
    #[command(flatten)]
    pub options: ShowOptions,
    /// The cue list, whose devices are checked.
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// A device to check, besides those of the list. May be repeated.
    #[arg(long, value_name = "ID")]
    pub device: Vec<String>,
    /// The desk that the devices hear.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub desk: String,
    /// Time for all devices to answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub wait: Duration,
}

/// What is known of a device.
#[derive(Debug, Default)]
struct Found {
    signer: Option<Signer>,
    refused: Option<String>,
    ready: Option<Done>,
    loss: Option<f64>,
    valid_until: Option<Timestamp>,
}

/// Checks the devices, prints a line for each, and ends with an error if one is not ready.
pub(super) async fn run(arguments: CheckCommand) -> anyhow::Result<()> {
    let options = &arguments.options;
    let list = List::with_devices(arguments.list.as_deref(), &arguments.device)?;
    ensure!(
        !list.devices.is_empty(),
        "no device to check: name them with --device, or as devices = ['light-1'] in the list"
    );
    let (show, heard) = Show::join(options).await?;
    refuse_second_desk(&show, &options.show, &arguments.desk).await?;
    let mut found = ask_all(&show, heard, &arguments, &list.devices).await?;
    measure_all(&show, &options.show, &mut found).await?;
    let now = show.node.wall();
    let mut not_ready = 0;
    let mut rows =
        vec![["device", "state", "clock", "error", "loss", "key until", ""].map(str::to_owned)];
    for (device, found) in &found {
        let problems = found.problems(now, options.rehearsal);
        not_ready += u32::from(!problems.is_empty());
        match options.json {
            true => print_line(found.json(device, &problems))?,
            false => rows.push(found.row(device, &problems)),
        }
    }
    if !options.json {
        print(coloured(&columns(&rows), std::io::stdout().is_terminal()))?;
    }
    show.node.shutdown().await;
    match not_ready {
        0 => Ok(()),
        some => bail!("not ready: {some} of {} devices", found.len()),
    }
}

/// Two desks of one name would speak at once.
async fn refuse_second_desk(show: &Show, name: &Name, desk: &str) -> anyhow::Result<()> {
    let metadata = StreamNames::new(cues::desk_root(name, desk)).metadata();
    let mut asker = Asker::new(show.node.inner()).await?;
    let question = Question::newest(metadata, DESK_TIMEOUT);
    if let Answer::Data(_) = asker.ask(&question).await? {
        bail!(
            "the desk {desk} runs: end it for the check, or check by a desk that devices hear, too: --desk NAME"
        );
    }
    Ok(())
}

/// Asks until all devices have answered and know the desk's clock, or the time is over.
async fn ask_all(
    show: &Show,
    mut heard: tokio::sync::mpsc::Receiver<Heard>,
    arguments: &CheckCommand,
    devices: &[String],
) -> anyhow::Result<BTreeMap<String, Found>> {
    let mut outlet = show.publish_cues(&arguments.desk).await?;
    let mut found = BTreeMap::new();
    for device in devices {
        show.hear_device(device).await?;
        found.insert(device.clone(), Found::default());
    }
    let mut ask = interval(ASK_EVERY);
    let over = sleep(arguments.wait);
    tokio::pin!(over);
    while found
        .values()
        .any(|device: &Found| device.clock().is_none())
    {
        tokio::select! {
            _ = ask.tick() => {
                let id = CueId(namecast_net::random());
                let cue = Entry::unlisted("check").cue(Action::Check, id, show.node.wall());
                let cue = Cue { rehearsal: arguments.options.rehearsal, ..cue };
                outlet.send(CUES, cue.encode()?).await?;
            }
            Some(Heard { from, what, .. }) = heard.recv() => {
                if let Some(device) = found.get_mut(&from) {
                    device.hear(what);
                }
            }
            () = &mut over => break,
        }
    }
    Ok(found)
}

/// Measures losses and reads certificates, of all devices at once.
async fn measure_all(
    show: &Show,
    name: &Name,
    found: &mut BTreeMap<String, Found>,
) -> anyhow::Result<()> {
    let mut measuring = JoinSet::new();
    for (device, known) in &*found {
        let Some(signer) = known.signer.clone() else {
            continue;
        };
        let (node, device) = (show.node.inner().clone(), device.clone());
        let root = device_root(name, &device);
        measuring.spawn(async move {
            let loss = loss(&node, root).await?;
            let until = valid_until(&node, &signer).await?;
            anyhow::Ok((device, loss, until))
        });
    }
    while let Some(measured) = measuring.join_next().await {
        let (device, loss, until) = measured??;
        let known = found.get_mut(&device).context("a device that was asked")?;
        known.loss = Some(loss);
        known.valid_until = until;
    }
    Ok(())
}

/// Share of Interests without an answer.
async fn loss(node: &Node, root: Name) -> anyhow::Result<f64> {
    let names = StreamNames::new(root).rung(ACKS, StreamInfo::ONLY_RUNG);
    let mut asker = Asker::new(node).await?;
    let mut lost = 0;
    let mut probe = interval(PROBE_EVERY);
    for _ in 0..PROBES {
        probe.tick().await;
        let question = Question::newest(names.latest(), PROBE_TIMEOUT);
        lost += u32::from(!matches!(asker.ask(&question).await?, Answer::Data(_)));
    }
    Ok(f64::from(lost) / f64::from(PROBES))
}

/// Returns when the key of `signer` ends; `None` if nobody has its certificate.
async fn valid_until(node: &Node, signer: &Signer) -> anyhow::Result<Option<Timestamp>> {
    let mut asker = Asker::new(node).await?;
    let question = Question {
        can_be_prefix: true,
        ..Question::exact(signer.key_name.clone(), 2 * PROBE_TIMEOUT)
    };
    let Answer::Data(data) = asker.ask(&question).await? else {
        return Ok(None);
    };
    let certificate = Certificate::decode(data).ok();
    Ok(certificate.and_then(|certificate| {
        let key = certificate.public_key().ok()?;
        (key.digest() == signer.key_digest).then(|| certificate.validity().not_after)
    }))
}

impl Found {
    fn hear(&mut self, what: What) {
        match what {
            What::Signer(signer, _) => self.signer = Some(*signer),
            What::Refused(why) => self.refused = Some(why),
            What::Lost(error) => self.refused = Some(format!("{error:#}")),
            What::Message(message, _) => {
                let done = Done::decode(&message).ok();
                let ready = done.filter(|done| done.outcome == Outcome::Ready);
                self.ready = ready.or(self.ready.take());
            }
            What::Text(_) | What::Silence => {}
        }
    }

    fn clock(&self) -> Option<DeskClock> {
        self.ready.as_ref()?.clock
    }

    /// Returns why it is not ready; empty: it is.
    fn problems(&self, now: Timestamp, rehearsal: bool) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.refused.clone());
        let Some(ready) = &self.ready else {
            problems.push(match self.signer {
                Some(_) => {
                    "answers, and does not hear this desk: start it with --desk and its name"
                        .to_owned()
                }
                None => "does not answer: is it on, and its name right?".to_owned(),
            });
            return problems;
        };
        if ready.rehearsal != rehearsal {
            problems.push(match ready.rehearsal {
                true => "in rehearsal: start it without --rehearsal".to_owned(),
                false => "not in rehearsal: start it with --rehearsal".to_owned(),
            });
        }
        match self.clock() {
            None => problems.push("does not know the desk's clock yet".to_owned()),
            Some(clock) => {
                let offset = Duration::from_micros(clock.offset_us.unsigned_abs());
                if Duration::from_micros(clock.error_us) > MAX_CLOCK_ERROR {
                    problems
                        .push("knows the desk's clock too roughly: its path is slow".to_owned());
                }
                if offset > MAX_OFFSET {
                    problems.push(format!("its clock is {} s off: set it", offset.as_secs()));
                }
            }
        }
        if let Some(loss) = self.loss.filter(|loss| *loss > MAX_LOSS) {
            problems.push(format!("{:.0} % of packets are lost", loss * 100.0));
        }
        match self.valid_until {
            None => problems.push("nobody has the certificate of its key".to_owned()),
            Some(until) if until < now + MIN_VALIDITY => {
                problems.push(format!("its key ends {}: certify it again", local(until)));
            }
            Some(_) => {}
        }
        problems
    }

    fn row(&self, device: &str, problems: &[String]) -> [String; 7] {
        let state = if problems.is_empty() {
            "ready"
        } else {
            "NOT READY"
        };
        let clock = self.clock();
        let millis = |micros: f64| format!("{:.1} ms", micros / 1e3);
        let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        [
            device.to_owned(),
            state.to_owned(),
            text(clock.map(|clock| millis(clock.offset_us as f64))),
            text(clock.map(|clock| millis(clock.error_us as f64))),
            text(self.loss.map(|loss| format!("{:.0} %", loss * 100.0))),
            text(self.valid_until.map(local)),
            problems.join("; "),
        ]
    }

    fn json(&self, device: &str, problems: &[String]) -> serde_json::Value {
        let clock = self.clock();
        json!({
            "device": device, "ready": problems.is_empty(), "problems": problems,
            "offset_ms": clock.map(|clock| clock.offset_us as f64 / 1e3),
            "error_ms": clock.map(|clock| clock.error_us as f64 / 1e3),
            "loss": self.loss,
            "key": self.signer.as_ref().map(|signer| signer.key_name.to_string()),
            "key_until": self.valid_until.map(Timestamp::as_micros),
        })
    }
}

/// Marks lines of devices that are not ready red.
fn coloured(table: &str, is_terminal: bool) -> String {
    let lines = table
        .lines()
        .map(|line| match line.contains("NOT READY") && is_terminal {
            true => format!("\u{1b}[31m{line}\u{1b}[0m\n"),
            false => format!("{line}\n"),
        });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
    const DAY: Duration = Duration::from_secs(86_400);

    fn ready() -> Found {
        let clock = DeskClock {
            offset_us: -59_000_000,
            error_us: 50_000,
        };
        Found {
            ready: Some(Done {
                outcome: Outcome::Ready,
                clock: Some(clock),
                ..Done::refusal("")
            }),
            loss: Some(0.1),
            valid_until: Some(NOW + DAY),
            ..Found::default()
        }
    }

    /// Each bound, and a step beyond it.
    #[test]
    fn a_device_that_is_not_ready_is_named_with_its_problem() {
        assert_eq!(ready().problems(NOW, false), [""; 0]);
        let problem = |change: fn(&mut Found)| {
            let mut found = ready();
            change(&mut found);
            let problems = found.problems(NOW, false);
            assert_eq!(problems.len(), 1, "{problems:?}");
            problems[0].clone()
        };
        let clock = |found: &mut Found, offset_us, error_us| {
            let clock = DeskClock {
                offset_us,
                error_us,
            };
            found.ready.as_mut().unwrap().clock = Some(clock);
        };
        assert!(problem(|it| it.ready = None).starts_with("does not answer"));
        assert!(problem(|it| it.loss = Some(0.15)).starts_with("15 % of packets"));
        assert!(
            problem(|it| it.valid_until = Some(NOW + (DAY - Duration::from_secs(1))))
                .starts_with("its key ends")
        );
        assert!(problem(|it| it.valid_until = None).starts_with("nobody has"));
        assert!(problem(|it| it.ready.as_mut().unwrap().clock = None).starts_with("does not know"));
        assert!(
            problem(|it| it.ready.as_mut().unwrap().rehearsal = true).starts_with("in rehearsal")
        );
        let mut off = ready();
        clock(&mut off, -61_000_000, 0);
        assert_eq!(off.problems(NOW, false), ["its clock is 61 s off: set it"]);
        clock(&mut off, 0, 50_001);
        assert!(off.problems(NOW, false)[0].starts_with("knows the desk's clock too roughly"));
        assert_eq!(ready().problems(NOW, true).len(), 1);
    }

    #[test]
    fn the_line_of_a_device_that_is_not_ready_is_red() {
        let table = "a  ready\nb  NOT READY  lost\n";
        assert_eq!(coloured(table, false), table);
        assert_eq!(
            coloured(table, true),
            "a  ready\n\u{1b}[31mb  NOT READY  lost\u{1b}[0m\n"
        );
    }
}
