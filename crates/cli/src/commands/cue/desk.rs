//! `namecast cue desk`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use namecast_apps::cues::osc::OscError;
use namecast_apps::cues::{Action, CUES, Cue, CueId, Desk, Done, Outcome, Press, REFUSED};
use namecast_command::report::{print_error, print_line};
use namecast_command::{Stop, parse_address, parse_duration};
use namecast_units::{Duration, LogLimit};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::mpsc;

use super::ShowOptions;
use super::list::{Entry, List};
use super::log::Replay;
use super::osc::{self, DEFAULT_ADDRESS, Pressed};
use super::outlet::Outlet;
use super::show::{Heard, Show, What};

/// A leading desk that does not answer for this time is taken over by one with --auto: six questions.
const SILENT: Duration = Duration::from_millis(1_500);
/// Devices execute no cue that is later: so old ones are not repeated when a desk takes over.
const STALE: Duration = Duration::from_secs(2);
/// Line that starts a replay.
const REPLAY: &str = "replay";

/// `namecast cue desk`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cue desk /show --list show.toml       read commands from standard input
  echo 'go 12.5' | namecast cue desk /show --device light-1 --duration 5s
  namecast cue desk /show --list show.toml --desk backup --with main --auto    take over from the desk main when it ends
  namecast cue desk /show --list show.toml --osc    hear QLab's OSC, and 'namecast cue go 12.5', on 127.0.0.1:53000

Commands, one a line: 'go 12.5', 'standby 12.5', 'undo 12.5', 'stop'; 'go' or an empty line: the next cue of the list. 'take': take over from
the desk that leads, and repeat its cues of the last 2 s, which no device executes twice.
A list is a TOML file: devices = ['light-1'], and for each cue [[cue]] with number, text, targets and values. OSC: /go, /cue/12.5/start,
/cue/12.5/load, /cue/12.5/undo, /stop, /take, by UDP and TCP. Everybody who reaches the address can press GO, so leave it on this machine.")]
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
    /// Hear OSC on this address, by UDP and TCP; without one: 127.0.0.1:53000.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS, value_parser = parse_address)]
    pub osc: Option<SocketAddr>,
    /// Send the cues of this log again when the line 'replay' is read, with the same times between them.
    #[arg(long, value_name = "LOG", requires = "rehearsal")]
    pub replay: Option<PathBuf>,
}

/// A desk that runs.
struct Running {
    show: Show,
    /// This desk's name.
    name: String,
    outlet: Outlet,
    desk: Desk,
    list: List,
    /// Place of the list's next cue.
    next: usize,
    lead: Duration,
    is_json: bool,
    /// The desk that leads while none was heard to.
    first: Option<String>,
    replay: Replay,
    osc: OscCounters,
}

/// OSC packets that were refused, and lines about them.
#[derive(Default)]
struct OscCounters {
    presses: u64,
    refused: u64,
    lines: LogLimit<()>,
}

/// Runs until interrupted, or until its time is over.
pub(super) async fn run(arguments: DeskCommand) -> anyhow::Result<()> {
    let options = &arguments.options;
    let mut stop = Stop::new(options.duration)?;
    let list = List::with_devices(arguments.list.as_deref(), &arguments.device)?;
    let replay = match &arguments.replay {
        Some(path) => Replay::read(path)?,
        None => Replay::default(),
    };
    let (show, mut heard) = Show::join(options).await?;
    let outlet = show.publish_cues(&arguments.desk).await?;
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
        outlet,
        desk: Desk::new(&arguments.desk, leads, STALE).in_rehearsal(options.rehearsal),
        list,
        next: 0,
        lead: arguments.lead,
        is_json: options.json,
        first: arguments.with.first().cloned(),
        replay,
        osc: OscCounters::default(),
    };
    let (mut presses, osc) = match arguments.osc {
        Some(address) => {
            let (presses, address) = osc::listen(address).await?;
            (presses, Some(address))
        }
        // Nobody sends.
        None => (mpsc::channel(1).1, None),
    };
    let (name, desk) = (&options.show, &arguments.desk);
    running.say(
        || format!("Desk {desk} of {name}. Devices: namecast device {name} ID --desk {desk}"),
        || json!({ "show": name.to_string(), "desk": desk, "leads": leads, "osc": osc.map(|it| it.to_string()) }),
    )?;
    let mut lines = BufReader::new(stdin()).lines();
    let mut is_reading = true;
    loop {
        let replay_in = running.replay.next_in(running.show.now());
        tokio::select! {
            line = lines.next_line(), if is_reading => match line? {
                Some(line) => running.obey(&line).await?,
                None => is_reading = false,
            },
            Some(heard) = heard.recv() => running.hear(heard).await?,
            Some(pressed) = presses.recv() => running.hear_osc(pressed).await?,
            () = tokio::time::sleep(replay_in.unwrap_or_default()), if replay_in.is_some() => {
                running.send_replayed().await?;
            }
            () = stop.wait() => break,
        }
    }
    running.tell_osc()?;
    running.show.node.shutdown().await;
    Ok(())
}

impl Running {
    /// Obeys a line. One that is no command, or that is refused, prints an error.
    async fn obey(&mut self, line: &str) -> anyhow::Result<()> {
        if line.trim() == REPLAY && !self.replay.is_empty() {
            self.replay.start(self.show.now());
            return Ok(());
        }
        let refused = match line.parse() {
            Ok(press) => self.press(&press).await?.err(),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = refused {
            print_error(problem);
        }
        Ok(())
    }

    /// Obeys OSC, and answers it. Anybody may send some, so one problem a second is printed.
    async fn hear_osc(&mut self, pressed: Result<Pressed, OscError>) -> anyhow::Result<()> {
        let problem = match pressed {
            Ok(pressed) => {
                self.osc.presses += 1;
                let refused = self.press(&pressed.press).await?.err();
                if let Some(answer) = pressed.answer {
                    // The sender may be gone.
                    let _ = answer.send(refused.clone());
                }
                refused
            }
            Err(error) => Some(error.to_string()),
        };
        let Some(problem) = problem else {
            return Ok(());
        };
        self.osc.refused += 1;
        let now = Duration::from_micros(self.show.now().as_micros());
        if let Some(others) = self.osc.lines.admit(now, ()) {
            let others = match others {
                0 => String::new(),
                others => format!(" ({others} others since the last line)"),
            };
            print_error(format_args!("OSC was refused: {problem}{others}"));
        }
        Ok(())
    }

    fn tell_osc(&self) -> anyhow::Result<()> {
        let OscCounters {
            presses, refused, ..
        } = self.osc;
        if presses + refused == 0 {
            return Ok(());
        }
        self.say(
            || format!("OSC: {presses} messages, {refused} refused"),
            || json!({ "osc_messages": presses, "osc_refused": refused }),
        )
    }

    /// Does what was pressed. Returns the problem if nothing was sent.
    async fn press(&mut self, press: &Press) -> anyhow::Result<Result<(), String>> {
        let (action, number) = match press {
            Press::Go(number) => (Action::Go, number.as_deref()),
            Press::Standby(number) => (Action::Standby, number.as_deref()),
            Press::Undo(number) => (Action::Undo, number.as_deref()),
            Press::Stop => (Action::Stop, None),
            Press::Take => {
                self.take_over().await?;
                return Ok(Ok(()));
            }
        };
        let place = match (action, number) {
            (Action::Stop, _) => None,
            (_, Some(number)) => self.list.find(number),
            (_, None) if self.next < self.list.cues.len() => Some(self.next),
            (_, None) => return Ok(Err("the list has no next cue: write its number".to_owned())),
        };
        let entry = match place {
            Some(place) => self.list.cues[place].clone(),
            None => Entry::unlisted(number.unwrap_or("stop")),
        };
        let lead = match action {
            // A stop does not wait.
            Action::Stop => Duration::ZERO,
            _ => self.lead,
        };
        let at = self.show.node.wall() + lead;
        let cue = entry.cue(action, CueId(namecast_net::random()), at);
        let sent = self.send(cue, &entry.text).await?;
        if let Some(place) = place.filter(|_| sent.is_ok()) {
            self.next = place + usize::from(action == Action::Go);
        }
        Ok(sent)
    }

    async fn send(&mut self, cue: Cue, text: &str) -> anyhow::Result<Result<(), String>> {
        let (id, number) = (cue.id, cue.number.clone());
        let Some(cue) = self.desk.send(cue) else {
            let refused = Done {
                id,
                number,
                leader: self.desk.leader().cloned(),
                ..Done::refusal(&self.follows())
            };
            self.outlet.send(REFUSED, refused.encode()).await?;
            return Ok(Err(self.follows()));
        };
        let octets = match cue.encode() {
            Ok(octets) => octets,
            Err(error) => return Ok(Err(error.to_string())),
        };
        self.outlet.send(CUES, octets).await?;
        let word = cue.action.word();
        self.say(
            || {
                format!("{word} {} {text}", cue.number)
                    .trim_end()
                    .to_owned()
            },
            || json!({ "sent": cue.number, "action": word, "id": cue.id.to_string() }),
        )?;
        Ok(Ok(()))
    }

    /// Sends the cues of a log that are due.
    async fn send_replayed(&mut self) -> anyhow::Result<()> {
        while let Some(logged) = self.replay.next_due(self.show.now()) {
            let cue = Cue {
                id: CueId(namecast_net::random()),
                at: self.show.node.wall() + self.lead,
                ..logged
            };
            if let Err(problem) = self.send(cue, "").await? {
                print_error(problem);
            }
        }
        Ok(())
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
            match cue.encode() {
                Ok(octets) => self.outlet.send(CUES, octets).await?,
                // A cue of another desk may be longer as this one writes it.
                Err(error) => {
                    print_error(format_args!("cue {} is not repeated: {error}", cue.number))
                }
            }
        }
        let (term, repeated) = (cues[0].term, cues.len() - 1);
        self.say(
            || format!("This desk leads, term {term}. Cues of the last 2 s that were repeated: {repeated}"),
            || json!({ "leads": true, "term": term, "repeated": repeated }),
        )
    }

    async fn hear(&mut self, heard: Heard) -> anyhow::Result<()> {
        let Heard {
            from,
            is_desk,
            what,
        } = heard;
        match what {
            What::Text(text) | What::Signer(_, text) if !self.is_json => print_error(text),
            What::Text(_) | What::Signer(..) => {}
            What::Refused(why) => {
                print_error(format_args!("{from}: {why}"));
                let refused = Done::refusal(&format!("{from}: {why}"));
                self.outlet.send(REFUSED, refused.encode()).await?;
            }
            What::Lost(error) => print_error(format_args!("{from} is not heard: {error:#}")),
            What::Silence => {
                let leader = self.desk.leader().map(|leader| &leader.desk);
                let is_leader = leader.or(self.first.as_ref()) == Some(&from);
                if is_leader && !self.desk.leads() {
                    self.take_over().await?;
                }
            }
            What::Message(message, clock) if is_desk => match Cue::decode(&message) {
                Ok(cue) => return self.follow(&from, clock.to_ours(cue)),
                Err(error) => print_error(format_args!("desk {from} sends no cue: {error}")),
            },
            What::Message(message, _) => match Done::decode(&message) {
                Ok(done) => return self.report(&from, &done),
                Err(error) => print_error(format_args!("device {from} sends no report: {error}")),
            },
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
        let is_superseded = done.outcome == Outcome::Superseded;
        let leader = done.leader.as_ref().filter(|_| is_superseded);
        self.say(
            || match (leader, &done.why) {
                (Some(leader), _) => {
                    let (desk, term) = (&leader.desk, leader.term);
                    format!("  {number} {word} by {device}, which obeys desk {desk}, term {term}: 'take' takes over")
                }
                (None, Some(why)) => format!("  {number} {word} by {device}: {why}"),
                (None, None) => format!("  {number} {word} by {device}, {late:.1} ms after its time"),
            },
            || {
                json!({
                    "device": device, "number": number, "outcome": word, "late_ms": late, "id": done.id.to_string(),
                    "leader": leader.map(|it| &it.desk), "why": done.why,
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
