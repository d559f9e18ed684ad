//! `namecast ping`: whether a name answers, and how fast, as ndnping does it; and what answers.

use anyhow::{bail, ensure};
use clap::Args;
use namecast_command::report::print_line;
use namecast_command::{Stop, number, parse_duration};
use namecast_net::{Clock, Node, NodeConfig, RegistrationState, random};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Data, LpPacket, Name, Packet};
use namecast_units::{ByteSize, Duration};

use crate::asking::{Answer, Asker, Question};
use crate::connect::{Chosen, Connect};

/// The component behind the name, by which a server is found.
const PING: &str = "ping";
/// How long caches may take an answer for a new one: as ndnpingserver has it.
const FRESHNESS: Duration = Duration::from_secs(1);

/// `namecast ping`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast ping /here --serve                                  in one terminal; or ndnpingserver, or ndnd pingserver
  namecast ping /here --count 5                                in another

Exits with 1 where nothing was answered.")]
pub struct Ping {
    /// Name to be pinged: Interests are for /NAME/ping/NUMBER.
    pub name: Name,
    /// Answer pings of this name, until interrupted.
    #[arg(long, conflicts_with_all = ["count", "interval", "lifetime"])]
    pub serve: bool,
    /// Stop after so many.
    #[arg(short, long, value_parser = number::<u64>(0..=u64::MAX))]
    pub count: Option<u64>,
    /// Time from one to the next.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub interval: Duration,
    /// How long an answer is waited for.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_duration)]
    pub lifetime: Duration,
    /// The forwarder to ask, or to serve through.
    #[command(flatten)]
    pub connect: Connect,
}

/// Pings, or answers, until interrupted.
pub(super) async fn run(arguments: Ping) -> anyhow::Result<()> {
    let mut stop = Stop::new(None)?;
    let node = Node::start(NodeConfig::caching(ByteSize::ZERO));
    let outcome = match arguments.serve {
        true => serve(&node, &arguments, &mut stop).await,
        false => ping(&node, &arguments, &mut stop).await,
    };
    node.shutdown().await;
    outcome
}

async fn ping(node: &Node, arguments: &Ping, stop: &mut Stop) -> anyhow::Result<()> {
    let Chosen { uri, face } = arguments.connect.reach(node).await?;
    node.add_route(Name::root(), face, 0).await?;
    let mut asker = Asker::new(node).await?;
    print_line(format_args!("PING {} through {uri}", arguments.name))?;
    let mut times = Times::default();
    let mut tick = tokio::time::interval(arguments.interval.max(Duration::from_millis(1)));
    // No cache has the answer to a number that nobody knew.
    let mut number = u64::from(u32::from_le_bytes(random()));
    let clock = node.clock();
    while arguments.count.is_none_or(|count| times.sent < count) {
        tokio::select! {
            _ = tick.tick() => {}
            () = stop.wait() => break,
        }
        let text = tokio::select! {
            text = once(&mut asker, arguments, number, (clock, &mut times)) => text?,
            () = stop.wait() => break,
        };
        print_line(text)?;
        number += 1;
    }
    print_line(times.summary())?;
    ensure!(
        times.answered() > 0 || times.sent == 0,
        "{} does not answer: is a server of pings there (namecast ping --serve)?",
        arguments.name
    );
    Ok(())
}

/// Sends one Interest. Returns what became of it.
async fn once(
    asker: &mut Asker,
    arguments: &Ping,
    number: u64,
    (clock, times): (Clock, &mut Times),
) -> anyhow::Result<String> {
    let name = arguments.name.builder().generic(PING);
    let name = name.generic(&number.to_string()).finish();
    times.sent += 1;
    let sent_at = clock.now();
    let answer = asker
        .ask(&Question::exact(name, arguments.lifetime))
        .await?;
    let name = &arguments.name;
    Ok(match answer {
        Answer::Data(_) => {
            let took = clock.now().since(sent_at);
            times.took.push(took);
            format!("answer from {name}: number {number}, {}", millis(took))
        }
        Answer::Nack(reason) => format!("{name}: number {number} came back, {reason:?}"),
        Answer::Silence => format!("{name}: no answer to number {number}"),
    })
}

/// How long answers took.
#[derive(Debug, Default)]
struct Times {
    sent: u64,
    took: Vec<Duration>,
}

impl Times {
    fn answered(&self) -> u64 {
        self.took.len() as u64
    }

    fn summary(&self) -> String {
        let (sent, answered) = (self.sent, self.answered());
        let lost = 100 * (sent - answered) / sent.max(1);
        let mut text = format!("{sent} sent, {answered} answered, {lost} % lost");
        if let (Some(min), Some(max)) = (self.took.iter().min(), self.took.iter().max()) {
            let total: Duration = self.took.iter().sum();
            let mean = total / u32::try_from(answered).unwrap_or(u32::MAX);
            let [min, mean, max] = [*min, mean, *max].map(millis);
            text.push_str(&format!("; least {min}, mean {mean}, most {max}"));
        }
        text
    }
}

fn millis(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1_000.0)
}

/// Answers pings.
async fn serve(node: &Node, arguments: &Ping, stop: &mut Stop) -> anyhow::Result<()> {
    let prefix = arguments.name.builder().generic(PING).finish();
    let Chosen { uri, face } = arguments.connect.keep(node).await?;
    let mut own = node.application_face().await?;
    node.add_route(prefix.clone(), own.id(), 0).await?;
    let registration = node.register_prefix(face, prefix.clone(), 0);
    let mut registered = registration.states();
    let mut answered = 0_u64;
    loop {
        tokio::select! {
            frame = own.recv() => {
                let Some(frame) = frame else { break };
                if let Some(answer) = answer(frame) {
                    own.send(answer).await?;
                    answered += 1;
                }
            }
            Ok(()) = registered.changed() => {
                match &*registered.borrow_and_update() {
                    RegistrationState::Registered => {
                        print_line(format_args!("answering {prefix} through {uri}"))?;
                    }
                    RegistrationState::Refused(why) => bail!("{uri} refuses {prefix}: {why}"),
                    _ => {}
                }
            }
            () = stop.wait() => break,
        }
    }
    print_line(format_args!("{answered} answered"))?;
    registration.cancel();
    Ok(())
}

/// The answer to an Interest.
fn answer(frame: bytes::Bytes) -> Option<bytes::Bytes> {
    let link = LpPacket::decode(frame).ok()?;
    let Packet::Interest(interest) = Packet::decode(link.fragment?).ok()? else {
        return None;
    };
    if link.nack.is_some() {
        return None;
    }
    let data = Data::builder(interest.name().clone())
        .freshness(FRESHNESS)
        .content("pong")
        .sign(&DigestSigner);
    let answer = LpPacket {
        pit_token: link.pit_token,
        ..LpPacket::carrying(data.wire().clone())
    };
    Some(answer.encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_what_was_lost() {
        let mut times = Times {
            sent: 4,
            ..Times::default()
        };
        assert_eq!(times.summary(), "4 sent, 0 answered, 100 % lost");
        times.took = vec![Duration::from_micros(1_500), Duration::from_micros(500)];
        let expected =
            "4 sent, 2 answered, 50 % lost; least 0.500 ms, mean 1.000 ms, most 1.500 ms";
        assert_eq!(times.summary(), expected);
    }
}
