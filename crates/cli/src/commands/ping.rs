//! `namecast ping`: whether a name answers, and how fast, as ndnping does it; and what answers.

use anyhow::{bail, ensure};
use clap::Args;
use namecast_command::report::print_line;
use namecast_command::{Run, Stop, number, parse_duration};
use namecast_net::{Clock, Node, NodeConfig, RegistrationState, random};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Data, LpPacket, Name, Packet};
use namecast_units::{ByteSize, Duration, Histogram};
use serde::Serialize;
use serde_json::json;

use super::FIGURES_INTERVAL;
use super::publish::registration_problem;
use crate::asking::{Answer, Asker, Question};
use crate::connect::{Chosen, Connect};
use crate::telemetry::{Observation, Reporter, tables};

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
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
}

/// Pings, or answers, until interrupted.
pub(super) async fn run(arguments: Ping) -> anyhow::Result<()> {
    let mut stop = Stop::new(None)?;
    let mut stats = Reporter::start(&tables::PING, &Run::default(), &arguments.observation).await?;
    let node = Node::start(NodeConfig::caching(ByteSize::ZERO));
    stats.observe(&node);
    let outcome = match arguments.serve {
        true => serve(&node, &arguments, &mut stats, &mut stop).await,
        false => ping(&node, &arguments, &mut stats, &mut stop).await,
    };
    node.shutdown().await;
    outcome
}

async fn ping(
    node: &Node,
    arguments: &Ping,
    stats: &mut Reporter,
    stop: &mut Stop,
) -> anyhow::Result<()> {
    let Chosen { uri, face } = arguments.connect.reach(node).await?;
    node.add_route(Name::root(), face, 0).await?;
    let mut asker = Asker::new(node).await?;
    let name = &arguments.name;
    print_line(format_args!("PING {name} through {uri}"))?;
    let mut times = Times::default();
    let mut tick = tokio::time::interval(arguments.interval.max(Duration::from_millis(1)));
    let mut figures = tokio::time::interval(FIGURES_INTERVAL);
    // No cache has the answer to a number that nobody knew.
    let mut number = u64::from(u32::from_le_bytes(random()));
    'pinging: while arguments.count.is_none_or(|count| times.sent < count) {
        tokio::select! {
            _ = tick.tick() => {}
            _ = figures.tick() => {
                stats.write(&times, false)?;
                continue;
            }
            () = stop.wait() => break,
        }
        times.sent += 1;
        let mut asked = core::pin::pin!(once(&mut asker, arguments, number, node.clock()));
        let (answer, took) = loop {
            tokio::select! {
                answered = &mut asked => break answered?,
                _ = figures.tick() => stats.write(&times, false)?,
                () = stop.wait() => break 'pinging,
            }
        };
        times.record(&answer, took);
        print_line(match &answer {
            Answer::Data(_) => format!("answer from {name}: number {number}, {}", millis(took)),
            Answer::Nack(reason) => format!("{name}: number {number} came back, {reason:?}"),
            Answer::Silence => format!("{name}: no answer to number {number}"),
        })?;
        let is_silent = !matches!(answer, Answer::Data(_));
        stats.set_problem(
            "answer",
            is_silent.then(|| format!("{name} does not answer")),
        );
        number += 1;
    }
    print_line(times.summary())?;
    ensure!(
        times.answered > 0 || times.sent == 0,
        "{name} does not answer: is a server of pings there (namecast ping --serve)?"
    );
    Ok(())
}

/// Sends one Interest. Returns what became of it, and how long that took.
async fn once(
    asker: &mut Asker,
    arguments: &Ping,
    number: u64,
    clock: Clock,
) -> anyhow::Result<(Answer, Duration)> {
    let name = arguments.name.builder().generic(PING);
    let name = name.generic(&number.to_string()).finish();
    let sent_at = clock.now();
    let question = Question::exact(name, arguments.lifetime);
    let answer = asker.ask(&question).await?;
    Ok((answer, clock.now().since(sent_at)))
}

/// What became of Interests, and how long answers took.
#[derive(Debug, Default, Serialize)]
struct Times {
    sent: u64,
    answered: u64,
    nacked: u64,
    timed_out: u64,
    rtt: Histogram,
    #[serde(skip)]
    total: Duration,
    #[serde(skip)]
    extremes: Option<(Duration, Duration)>,
}

impl Times {
    /// Counts an answer.
    fn record(&mut self, answer: &Answer, took: Duration) {
        match answer {
            Answer::Data(_) => {
                self.answered += 1;
                self.rtt.record(took);
                self.total += took;
                let (min, max) = self.extremes.unwrap_or((took, took));
                self.extremes = Some((min.min(took), max.max(took)));
            }
            Answer::Nack(_) => self.nacked += 1,
            Answer::Silence => self.timed_out += 1,
        }
    }

    fn summary(&self) -> String {
        let &Self { sent, answered, .. } = self;
        let lost = 100 * (sent - answered) / sent.max(1);
        let mut text = format!("{sent} sent, {answered} answered, {lost} % lost");
        if let Some((min, max)) = self.extremes {
            let mean = self.total.as_nanos() / u128::from(answered.max(1));
            let mean = Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX));
            let [min, mean, max] = [min, mean, max].map(millis);
            text.push_str(&format!("; least {min}, mean {mean}, most {max}"));
        }
        text
    }
}

fn millis(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1_000.0)
}

/// Answers pings.
async fn serve(
    node: &Node,
    arguments: &Ping,
    stats: &mut Reporter,
    stop: &mut Stop,
) -> anyhow::Result<()> {
    let prefix = arguments.name.builder().generic(PING).finish();
    let Chosen { uri, face } = arguments.connect.keep(node).await?;
    let mut own = node.application_face().await?;
    node.add_route(prefix.clone(), own.id(), 0).await?;
    let mut registered = node.register_prefix(face, prefix.clone(), 0).states();
    let mut answered = 0_u64;
    let mut figures = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            _ = figures.tick() => stats.write(&json!({ "served": answered }), false)?,
            frame = own.recv() => {
                let Some(frame) = frame else { break };
                if let Some(answer) = answer(frame) {
                    own.send(answer).await?;
                    answered += 1;
                }
            }
            Ok(()) = registered.changed() => {
                let state = registered.borrow_and_update().clone();
                stats.set_problem("registration", registration_problem(&state, &prefix));
                match state {
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
        let pong = Data::builder(Name::root()).sign(&DigestSigner);
        for micros in [1_500, 500] {
            times.record(&Answer::Data(pong.clone()), Duration::from_micros(micros));
        }
        times.record(&Answer::Silence, Duration::from_secs(4));
        let expected =
            "4 sent, 2 answered, 50 % lost; least 0.500 ms, mean 1.000 ms, most 1.500 ms";
        assert_eq!(times.summary(), expected);
        assert_eq!((times.timed_out, times.nacked), (1, 0));
        assert_eq!(times.rtt.buckets().iter().sum::<u64>(), 2);
    }
}
