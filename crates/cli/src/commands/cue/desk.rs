//! `namecast cue desk`.

use std::path::PathBuf;

use clap::Args;
use namecast::Publication;
use namecast_apps::cues::{Action, CUES, Cue, CueId, Desk, Done, Leader};
use namecast_command::report::{print_error, print_line};
use namecast_command::{Stop, parse_duration};
use namecast_units::Duration;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use super::ShowOptions;
use super::list::{Entry, List};
use super::show::{Heard, Show, What};

/// A leading desk that does not answer for this time is taken over by one with --auto: six questions.
const SILENT: Duration = Duration::from_millis(1_500);
/// Devices execute no cue that is later: so old ones are not repeated when a desk takes over.
const STALE: Duration = Duration::from_secs(2);

/// `namecast cue desk`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cue desk /show --list show.toml       read commands from standard input
  echo 'go 12.5' | namecast cue desk /show --device light-1 --duration 5s
  namecast cue desk /show --list show.toml --desk backup --with main --auto    take over from the desk main when it ends

Commands, one a line: 'go 12.5', 'standby 12.5', 'undo 12.5', 'stop'; 'go' or an empty line: the next cue of the list. 'take': take over from
the desk that leads, and repeat its cues of the last 2 s, which no device executes twice.
A list is a TOML file: devices = ['light-1'], and for each cue [[cue]] with number, text, targets and values.")]
pub struct DeskCommand {
    /// Options of both sides.
    #[command(flatten)]
    pub options: ShowOptions,
    /// The cue list.
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// A device whose reports are shown, besides those of the list. May be repeated.
    #[arg(long, value_name = "ID")]
    pub device: Vec<String>,
    /// Time from a command to its execution: all devices have the cue by then, and execute it together.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_duration)]
    pub lead: Duration,
    /// Name of this desk.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub desk: String,
    /// Another desk of the show, which is heard. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub with: Vec<String>,
    /// Follow the desk that leads, until 'take'.
    #[arg(long, requires = "with")]
    pub standby: bool,
    /// Follow the desk that leads, and take over when it does not answer for 1.5 s.
    #[arg(long, requires = "with")]
    pub auto: bool,
}

/// A desk that runs.
struct Running {
    show: Show,
    /// This desk's name.
    name: String,
    publication: Publication,
    desk: Desk,
    list: List,
    /// Place of the list's next cue.
    next: usize,
    lead: Duration,
    is_json: bool,
    /// The desk that leads while none was heard to.
    first: Option<String>,
}

/// Runs until interrupted, or until its time is over.
pub(super) async fn run(arguments: DeskCommand) -> anyhow::Result<()> {
    let options = &arguments.options;
    let mut stop = Stop::new(options.duration)?;
    let mut list = match &arguments.list {
        Some(path) => List::read(path)?,
        None => List::default(),
    };
    list.devices.extend(arguments.device.iter().cloned());
    list.devices.sort_unstable();
    list.devices.dedup();
    let (show, mut heard) = Show::join(options).await?;
    let publication = show.publish_cues(&arguments.desk).await?;
    for device in &list.devices {
        show.hear_device(device).await?;
    }
    let silence = arguments.auto.then_some(SILENT);
    for desk in &arguments.with {
        show.hear_desk(desk, silence).await?;
    }
    let leads = !arguments.standby && !arguments.auto;
    let mut running = Running {
        show,
        name: arguments.desk.clone(),
        publication,
        desk: Desk::new(&arguments.desk, leads, STALE),
        list,
        next: 0,
        lead: arguments.lead,
        is_json: options.json,
        first: arguments.with.first().cloned(),
    };
    let (name, desk) = (&options.show, &arguments.desk);
    running.say(
        || format!("Desk {desk} of {name}. Devices: namecast device {name} ID --desk {desk}"),
        || json!({ "show": name.to_string(), "desk": desk, "leads": leads }),
    )?;
    let mut lines = BufReader::new(stdin()).lines();
    let mut is_reading = true;
    loop {
        tokio::select! {
            line = lines.next_line(), if is_reading => match line? {
                Some(line) => running.obey(&line).await?,
                None => is_reading = false,
            },
            Some(heard) = heard.recv() => running.hear(heard).await?,
            () = stop.wait() => break,
        }
    }
    running.show.node.shutdown().await;
    Ok(())
}

impl Running {
    /// Obeys a command line. An unknown one prints an error.
    async fn obey(&mut self, line: &str) -> anyhow::Result<()> {
        let mut words = line.split_whitespace();
        let (word, number) = (words.next().unwrap_or("go"), words.next());
        let action = match word {
            "go" => Action::Go,
            "standby" => Action::Standby,
            "undo" => Action::Undo,
            "stop" => Action::Stop,
            "take" => return self.take_over().await,
            other => {
                print_error(format_args!(
                    "'{other}' is no command: write go, standby, undo or stop, and a cue's number, or take"
                ));
                return Ok(());
            }
        };
        let entry = match (action, number) {
            (Action::Stop, _) => Entry::unlisted("stop"),
            (_, Some(number)) => match self.list.find(number) {
                Some(place) => {
                    self.next = place + usize::from(action == Action::Go);
                    self.list.cues[place].clone()
                }
                None => Entry::unlisted(number),
            },
            (_, None) => match self.list.cues.get(self.next) {
                Some(entry) => {
                    self.next += usize::from(action == Action::Go);
                    entry.clone()
                }
                None => {
                    print_error("the list has no next cue: write its number");
                    return Ok(());
                }
            },
        };
        let lead = match action {
            // A stop does not wait.
            Action::Stop => Duration::ZERO,
            _ => self.lead,
        };
        let at = self.show.node.wall() + lead;
        let cue = entry.cue(action, CueId(namecast_net::random()), at);
        self.send(cue, &entry.text).await
    }

    async fn send(&mut self, cue: Cue, text: &str) -> anyhow::Result<()> {
        let Some(cue) = self.desk.send(cue) else {
            print_error(self.follows());
            return Ok(());
        };
        let octets = match cue.encode() {
            Ok(octets) => octets,
            Err(error) => {
                print_error(error);
                return Ok(());
            }
        };
        self.publication.send(CUES, octets).await?;
        let word = cue.action.word();
        self.say(
            || {
                format!("{word} {} {text}", cue.number)
                    .trim_end()
                    .to_owned()
            },
            || json!({ "sent": cue.number, "action": word, "id": cue.id.to_string() }),
        )
    }

    /// Advice where this desk does not lead.
    fn follows(&self) -> String {
        let leader = self.desk.leader().map_or("another desk", |it| &it.desk);
        format!("nothing was sent, as {leader} leads: write take to take over")
    }

    /// Leads from now on, and repeats what devices may have missed.
    async fn take_over(&mut self) -> anyhow::Result<()> {
        let now = self.show.node.wall();
        let cues = self.desk.take_over(now, CueId(namecast_net::random()));
        for cue in &cues {
            self.publication.send(CUES, cue.encode()?).await?;
        }
        let (term, repeated) = (cues[0].term, cues.len() - 1);
        self.say(
            || format!("This desk leads, term {term}. Cues of the last 2 s that were repeated: {repeated}"),
            || json!({ "leads": true, "term": term, "repeated": repeated }),
        )
    }

    async fn hear(&mut self, heard: Heard) -> anyhow::Result<()> {
        let Heard { from, what } = heard;
        match what {
            What::Text(text) if !self.is_json => print_error(text),
            What::Text(_) => {}
            What::Lost(error) => print_error(format_args!("{from} is not heard: {error:#}")),
            What::Silence => {
                let leader = self.desk.leader().map(|leader| &leader.desk);
                let is_leader = leader.or(self.first.as_ref()) == Some(&from);
                if is_leader && !self.desk.leads() {
                    self.take_over().await?;
                }
            }
            What::Message(message, clock) => {
                if let Ok(done) = Done::decode(&message) {
                    return self.report(&from, &done);
                }
                match Cue::decode(&message) {
                    Ok(cue) => return self.follow(&from, clock.to_ours(cue)),
                    Err(error) => print_error(format_args!("{from} sends no cue: {error}")),
                }
            }
        }
        Ok(())
    }

    /// Takes a cue of another desk.
    fn follow(&mut self, desk: &str, cue: Cue) -> anyhow::Result<()> {
        let number = cue.number.clone();
        let is_go = cue.action == Action::Go;
        let led = self.desk.leads();
        if self.desk.handle_cue(desk, cue) {
            if let Some(place) = self.list.find(&number).filter(|_| is_go) {
                self.next = place + 1;
            }
            self.tell_superseded(led)?;
        }
        Ok(())
    }

    fn tell_superseded(&self, led: bool) -> anyhow::Result<()> {
        let Some(leader) = self.desk.leader().filter(|_| led && !self.desk.leads()) else {
            return Ok(());
        };
        self.say(
            || {
                let (desk, term) = (&leader.desk, leader.term);
                format!("This desk follows: {desk} leads since term {term}. 'take' takes over")
            },
            || json!({ "leads": false, "leader": leader.desk, "term": leader.term }),
        )
    }

    /// Prints the report of a device. By what a device says, no other desk leads: it may lie.
    fn report(&mut self, device: &str, done: &Done) -> anyhow::Result<()> {
        if let Some(own) = done.leader.as_ref().filter(|it| it.desk == self.name) {
            self.desk.hear(&own.desk, own.term);
        }
        let late = done.late_us as f64 / 1e3;
        let (number, word) = (&done.number, done.outcome.word());
        let leader = done.leader.as_ref();
        self.say(
            || match leader {
                Some(Leader { desk, term }) => {
                    format!("  {number} {word} by {device}, which obeys desk {desk}, term {term}: 'take' takes over")
                }
                None => format!("  {number} {word} by {device}, {late:.1} ms after its time"),
            },
            || {
                json!({
                    "device": device, "number": number, "outcome": word, "late_ms": late, "id": done.id.to_string(),
                    "leader": leader.map(|it| &it.desk),
                })
            },
        )
    }

    fn say(
        &self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> serde_json::Value,
    ) -> anyhow::Result<()> {
        match self.is_json {
            true => print_line(value()),
            false => print_line(text()),
        }
    }
}
