//! `namecast call`: who is in a room, and what they write.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::Args;
use namecast_apps::group::{Event, Group, GroupConfig, RoomGate, Sealing, Status, Unpublished};
use namecast_apps::room::Link;
use namecast_command::report::{ProgressLine, print_line, printable};
use namecast_command::{Stop, parse_duration};
use namecast_net::{FaceId, Handle, Identity, KeyStore, Node, NodeConfig, Wanted, drive, random};
use namecast_packet::{Certificate, Name};
use namecast_units::{ByteSize, Duration};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use super::key_store;
use super::publish::describe_registration;
use super::trust::{JoinRoom, become_member};
use super::uplink::Uplink;
use crate::arguments::Keys;
use crate::connect::Connect;
use crate::rules::{Certified, Followed, Rules, credential, issuer};

/// Others fetch the publication that says so, after somebody left.
const LEAVE_TIME: Duration = Duration::from_secs(1);
/// From one try to publish a message to the next: four a second are possible.
const RETRY: Duration = Duration::from_millis(250);

/// `namecast call`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast call '#room=/calls/fox&key=…&t=…' --name Ann   join the room by its link, and call
  namecast call /calls/fox/ann                            call as a member who joined before

A line of standard input is a message to all; /hand raises or lowers the hand, and /leave ends the call. The end of the input does not.
Messages and states are sealed for the members of the room. The host runs `namecast trust serve` while newcomers join, and need not run later.")]
pub struct Call {
    /// The link to a room, …#room=…&key=…&t=…, or the name of a member whose certificate is installed here.
    #[arg(value_name = "LINK|NAME")]
    pub room: String,
    /// Name shown to people. Without it: the last part of the member's name.
    #[arg(long, default_value = "")]
    pub name: String,
    /// Leave after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// How long the host is waited for, who may have to say yes.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub wait: Duration,
    /// Print one JSON object for each event.
    #[arg(long)]
    pub json: bool,
    /// Print events and errors only.
    #[arg(short, long)]
    pub quiet: bool,
    /// The forwarder that leads to the others.
    #[command(flatten)]
    pub connect: Connect,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Calls until somebody says /leave, or the command is interrupted.
pub(super) async fn run(arguments: Call) -> anyhow::Result<()> {
    let mut stop = Stop::new(arguments.duration)?;
    let member = member(&arguments).await?;
    let mut progress = ProgressLine::new(!arguments.quiet);
    let store = key_store(arguments.keys.keys.clone())?;
    let node = Node::start(NodeConfig::of_program(ByteSize::mebibytes(1)));
    let mut uplink = Uplink::new(&node, &arguments.connect).await?;
    node.add_route(Name::root(), uplink.face(), 0).await?;
    let entered = enter(&node, uplink.face(), (&store, &member)).await?;
    let (root, identity, mut followed) = entered;

    let config = GroupConfig {
        status: status(&arguments.name, &member),
        sealing: Some(sealing(&store, &member)?),
        seed: u64::from_le_bytes(random()),
        group: root.clone(),
        member: member.clone(),
    };
    let face = node.application_face().await?;
    let prefixes = Group::prefixes(&config);
    for prefix in &prefixes {
        node.add_route(prefix.clone(), face.id(), 0).await?;
        // State vectors go both ways.
        node.add_route(prefix.clone(), uplink.face(), 0).await?;
    }
    let registered = prefixes.map(|prefix| {
        let shown = store.certified(&member)?.context("it was there")?;
        let wanted = Wanted {
            credential: credential(shown),
            ..Wanted::new(prefix, 0)
        };
        anyhow::Ok(node.register(uplink.face(), wanted).states())
    });
    let [vectors, own] = registered;
    let (mut vectors, mut own) = (vectors?, own?);
    let group = Group::new(config, gate(&followed), identity.signer);
    let (handle, mut events) = drive(node.clock(), face, group).spawn(|| {});
    progress.say(&format!(
        "You are {member} in {root}. Lines are messages; /hand, /leave"
    ));

    let (mut view, mut typed) = (View::new(arguments.json), Typed::default());
    let mut lines = BufReader::new(stdin()).lines();
    loop {
        tokio::select! {
            Some(event) = events.recv() => view.show(&event)?,
            line = lines.next_line(), if typed.takes_more() => typed.take(line?),
            () = tokio::time::sleep(RETRY), if typed.waits => {}
            Ok(()) = followed.rosters.changed() => {
                let gate = gate(&followed);
                handle.try_call(move |group, _| group.set_gate(gate));
            }
            Ok(()) = vectors.changed() => {
                let state = vectors.borrow_and_update().clone();
                describe_registration(&state, &format!("{root}/v=3")).inspect(|it| progress.say(it));
            }
            Ok(()) = own.changed() => {
                let state = own.borrow_and_update().clone();
                describe_registration(&state, &member.to_string()).inspect(|it| progress.say(it));
            }
            (_, text) = uplink.changed() => progress.say_once(&text),
            () = stop.wait() => break,
        }
        if typed.publish(&handle, &mut progress).await? {
            break;
        }
    }
    handle.call(Group::leave).await;
    tokio::time::sleep(LEAVE_TIME).await;
    node.shutdown().await;
    uplink.ensure_was_up()
}

/// Follows the room of a member. Returns its root, the member's key, and what the rules are followed by.
async fn enter(
    node: &Node,
    uplink: FaceId,
    (store, member): (&KeyStore, &Name),
) -> anyhow::Result<(Name, Identity, Followed)> {
    let identity = store.certified(member)?.with_context(|| {
        format!("no certificate for {member} is installed here: call with the link to the room")
    })?;
    let certificate = Certificate::decode(identity.certificate)?;
    let root = issuer(node, &certificate).await?.identity().detached();
    let rules = Rules {
        schema: Some(root.to_string()),
    };
    let publisher = rules.publisher(node, uplink, (store, member)).await?;
    let Certified { identity, followed } = publisher.context("the rules were given")?;
    let followed = followed.context("the rules have a root")?;
    Ok((root, identity, followed))
}

/// Returns the member's name; by a link, it joins first.
async fn member(arguments: &Call) -> anyhow::Result<Name> {
    if !arguments.room.contains('#') {
        let name = arguments.room.parse();
        return name.with_context(|| format!("'{}' is neither a link nor a name", arguments.room));
    }
    let link: Link = arguments.room.parse()?;
    let welcome = become_member(JoinRoom {
        link,
        name: arguments.name.clone(),
        wait: arguments.wait,
        connect: arguments.connect.clone(),
        keys: arguments.keys.clone(),
    });
    Ok(welcome.await?.certificate.identity().detached())
}

/// Returns what the member shows at first: there is no sound here.
fn status(label: &str, member: &Name) -> Status {
    let label = match label {
        "" => short(member),
        label => label.to_owned(),
    };
    Status {
        label,
        has_hand_up: false,
        is_muted: true,
    }
}

/// Returns new keys for what the member publishes, and its own to read.
fn sealing(store: &KeyStore, member: &Name) -> anyhow::Result<Sealing> {
    Ok(Sealing {
        seed: random(),
        own: vec![store.exchange_secret(member)?],
    })
}

fn gate(followed: &Followed) -> Box<RoomGate> {
    let roster = (**followed.rosters.borrow()).clone();
    Box::new(RoomGate::new(followed.chains.clone(), roster))
}

/// Returns the part of a member's name that the host gave.
fn short(member: &Name) -> String {
    let last = member.last();
    last.map_or_else(String::new, |it| it.to_string())
}

/// Prints who is here, and what they write.
struct View {
    prints_json: bool,
    here: BTreeMap<Name, Status>,
}

impl View {
    const fn new(prints_json: bool) -> Self {
        Self {
            prints_json,
            here: BTreeMap::new(),
        }
    }

    fn show(&mut self, event: &Event) -> anyhow::Result<()> {
        if self.prints_json {
            return print_line(as_json(event));
        }
        for line in self.lines(event) {
            print_line(printable(&line))?;
        }
        Ok(())
    }

    /// Returns what people read. Names are those that the host gave: a member calls itself as it likes.
    fn lines(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Here { member, status } => {
                let known = self.here.insert(member.clone(), status.clone());
                let who = short(member);
                let Some(known) = known else {
                    return vec![format!("{who} is here: {}", status.label)];
                };
                let mut lines = Vec::new();
                if known.label != status.label {
                    lines.push(format!("{who} is now called {}", status.label));
                }
                if known.has_hand_up != status.has_hand_up {
                    let verb = if status.has_hand_up {
                        "raises"
                    } else {
                        "lowers"
                    };
                    lines.push(format!("{who} {verb} a hand"));
                }
                if known.is_muted != status.is_muted {
                    let sound = if status.is_muted { "off" } else { "on" };
                    lines.push(format!("{who} turns sound {sound}"));
                }
                lines
            }
            Event::Gone { member, has_left } => {
                self.here.remove(member);
                let who = short(member);
                vec![match has_left {
                    true => format!("{who} has left"),
                    false => format!("{who} does not answer any more"),
                }]
            }
            Event::Message { member, text, .. } => vec![format!("{}: {text}", short(member))],
        }
    }
}

fn as_json(event: &Event) -> serde_json::Value {
    match event {
        Event::Here { member, status } => json!({
            "event": "here",
            "member": member.to_string(),
            "label": status.label,
            "hand_up": status.has_hand_up,
            "muted": status.is_muted,
        }),
        Event::Gone { member, has_left } => json!({
            "event": "gone",
            "member": member.to_string(),
            "left": has_left,
        }),
        Event::Message {
            member,
            number: (start, number),
            text,
        } => json!({
            "event": "message",
            "member": member.to_string(),
            "start": start,
            "number": number,
            "text": text,
        }),
    }
}

/// What is typed.
#[derive(Default)]
struct Typed {
    line: Option<String>,
    /// Whether the line has to wait, as others fetch four publications a second.
    waits: bool,
    has_ended: bool,
}

impl Typed {
    const fn takes_more(&self) -> bool {
        self.line.is_none() && !self.has_ended
    }

    fn take(&mut self, line: Option<String>) {
        self.has_ended = line.is_none();
        self.line = line.filter(|it| !it.trim().is_empty());
    }

    /// Publishes the line, if there is one. Returns whether it ends the call.
    async fn publish(
        &mut self,
        group: &Handle<Group>,
        progress: &mut ProgressLine,
    ) -> anyhow::Result<bool> {
        let Some(line) = self.line.take() else {
            return Ok(false);
        };
        let text = line.clone();
        let published = group.call(move |group, now| match text.trim() {
            "/leave" => Ok(true),
            "/hand" => {
                group.raise_or_lower_hand();
                Ok(false)
            }
            text => group.send(now, text).map(|()| false),
        });
        let published = published.await.context("the node has stopped")?;
        self.waits = published == Err(Unpublished::TooOften);
        match published {
            Ok(ends) => return Ok(ends),
            Err(Unpublished::TooOften) => self.line = Some(line),
            Err(why) => progress.say_error(&why.to_string()),
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(label: &str, has_hand_up: bool) -> Event {
        Event::Here {
            member: "/calls/fox/eve".parse().unwrap(),
            status: Status {
                label: label.to_owned(),
                has_hand_up,
                is_muted: true,
            },
        }
    }

    /// Eve who calls herself Ann is shown as eve.
    #[test]
    fn people_read_names_that_the_host_gave() {
        let mut view = View::new(false);
        assert_eq!(view.lines(&here("Ann", false)), ["eve is here: Ann"]);
        assert_eq!(view.lines(&here("Ann", true)), ["eve raises a hand"]);
        let renamed = view.lines(&here("Bob", false));
        assert_eq!(renamed, ["eve is now called Bob", "eve lowers a hand"]);
        let message = Event::Message {
            member: "/calls/fox/eve".parse().unwrap(),
            number: (1, 2),
            text: "I am Ann".to_owned(),
        };
        assert_eq!(view.lines(&message), ["eve: I am Ann"]);
        let gone = Event::Gone {
            member: "/calls/fox/eve".parse().unwrap(),
            has_left: false,
        };
        assert_eq!(view.lines(&gone), ["eve does not answer any more"]);
        assert!(view.here.is_empty());
    }
}
