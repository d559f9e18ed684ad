//! The writer.

use core::fmt::Write;
use core::time::Duration;

use namecast_netem::{self as netem, Loss, Queue};
use namecast_units::Bitrate;

use crate::topology::{Limits, Link, Topology, TopologyError};

/// Writes an annotated topology, which [`read`](super::read()) turns back into the same.
///
/// # Errors
/// If the format has no way to say something: links that differ by direction or have no rate, jitter, outages,
/// schedules, bursts of loss, damage, queues that ns-3 does not know; a position of exactly 0 0.
pub fn write(topology: &Topology) -> Result<String, TopologyError> {
    topology.check(&Limits::default())?;
    let mut text = String::from("router\n# node comment yPos xPos\n");
    for node in &topology.nodes {
        let (x, y) = node.position.unwrap_or_default();
        if node.position.is_some() && x.abs() <= 0.0 && y.abs() <= 0.0 {
            let field = format!("position of {}", node.name);
            return Err(TopologyError::value(field, "0, 0", "another, or none"));
        }
        put(&mut text, format_args!("{}\tNA\t{y}\t{x}\n", node.name));
    }
    text.push_str("\nlink\n# from to bandwidth metric delay queue loss\n");
    for link in &topology.links {
        write_link(&mut text, topology, link)?;
    }
    Ok(text)
}

fn write_link(text: &mut String, topology: &Topology, link: &Link) -> Result<(), TopologyError> {
    let name = |node: usize| &topology.nodes[node].name;
    let (from, to) = (name(link.ends.0), name(link.ends.1));
    let error = |found: &str, expected: &str| {
        TopologyError::value(format!("link {from} – {to}"), found, expected)
    };
    if link.forward != link.backward {
        return Err(error(
            "directions that differ",
            "one configuration for both",
        ));
    }
    let config = &link.forward;
    let plain = netem::Config {
        rate: config.rate.clone(),
        delay: config.delay,
        queue: config.queue,
        loss: config.loss,
        ..netem::Config::default()
    };
    if *config != plain {
        return Err(error(
            "more than that",
            "only rate, delay, queue and loss, as the format has no more",
        ));
    }
    let rate = config.rate.as_ref().and_then(netem::Rate::constant);
    let rate = rate.map(Bitrate::as_bps);
    let rate = rate.ok_or_else(|| error("no constant rate", "one"))?;
    let queue = queue(config.queue).ok_or_else(|| {
        error(
            "such a queue",
            "one that ns-3 knows: drop-tail, RED, CoDel that drops",
        )
    })?;
    let cost = link.cost;
    let delay = span(config.delay);
    put(
        text,
        format_args!("{from}\t{to}\t{rate}bps\t{cost}\t{delay}\t{queue}"),
    );
    match config.loss {
        Loss::None => {}
        Loss::Random { share } => put(
            text,
            format_args!("\tns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET,ErrorRate={share}"),
        ),
        Loss::GilbertElliott { .. } => return Err(error("bursts of loss", "random loss or none")),
    }
    text.push('\n');
    Ok(())
}

/// In the largest unit that says it exactly.
fn span(span: Duration) -> String {
    let nanos = span.as_nanos();
    match (nanos % 1_000_000, nanos % 1_000) {
        (0, _) => format!("{}ms", nanos / 1_000_000),
        (_, 0) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}

fn queue(queue: Queue) -> Option<String> {
    Some(match queue {
        Queue::DropTail { packets } => packets.to_string(),
        Queue::DropTailBytes { size } => {
            format!("ns3::DropTailQueue<Packet>,MaxSize={}B", size.as_bytes())
        }
        Queue::Red {
            packets,
            min,
            max,
            max_probability,
            weight,
            gentle,
        } => {
            let interval = 1.0 / max_probability;
            if !interval.is_finite() {
                return None;
            }
            format!(
                "ns3::RedQueue,MinTh={min},MaxTh={max},QueueLimit={packets},QW={weight},\
                 LInterm={interval},Gentle={gentle}"
            )
        }
        Queue::CoDel {
            packets,
            target,
            interval,
            mark: false,
        } => {
            let (target, interval) = (span(target), span(interval));
            format!("ns3::CoDelQueue,MaxPackets={packets},Target={target},Interval={interval}")
        }
        _ => return None,
    })
}

fn put(text: &mut String, line: core::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a String takes everything");
}
