//! ns-3's way to name a class and its attributes in one field: `ns3::RedQueue,MinTh=5,MaxTh=15`.

use core::time::Duration;

use namecast_netem::{Loss, Queue};
use namecast_units::{ByteSize, parse_duration};

use crate::topology::TopologyError;
use crate::topology::text::Field;

/// What a point-to-point device of ns-3 has if nothing is said.
pub(super) const DEFAULT_QUEUE: Queue = Queue::DropTail { packets: 100 };
/// Most packets a queue may hold.
const MAX_PACKETS: usize = 100_000_000;

const QUEUES: &str =
    "packets, or ns3::DropTailQueue, ns3::RedQueue or ns3::CoDelQueue with attributes";
const LOSSES: &str = "a share from 0 to 1, or \
                      ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET,ErrorRate=<share>";

/// A class and its attributes.
struct Object<'a> {
    field: Field<'a>,
    class: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Object<'a> {
    fn read(field: &Field<'a>, expected: &str) -> Result<Self, TopologyError> {
        let mut parts = field.text.split(',');
        let class = parts.next().unwrap_or_default();
        let class = class
            .strip_prefix("ns3::")
            .ok_or_else(|| field.error(expected))?;
        let mut attributes = Vec::new();
        for part in parts {
            let pair = part.split_once('=');
            attributes.push(pair.ok_or_else(|| field.error("attributes as <name>=<value>"))?);
        }
        Ok(Self {
            field: *field,
            class: class.strip_suffix("<Packet>").unwrap_or(class),
            attributes,
        })
    }

    /// An error that names the attribute, for those that are not understood.
    fn unknown(&self, name: &str, known: &str) -> TopologyError {
        let class = self.class;
        self.field
            .error(format!("for ns3::{class} only {known}, not {name}"))
    }

    fn value<T>(
        &self,
        (name, text): (&str, &str),
        read: impl FnOnce(&str) -> Option<T>,
        expected: &str,
    ) -> Result<T, TopologyError> {
        read(text).ok_or_else(|| self.field.error(format!("{name}={expected}")))
    }
}

/// Reads the queue column.
pub(super) fn queue(field: &Field<'_>) -> Result<Queue, TopologyError> {
    if field.text.bytes().all(|octet| octet.is_ascii_digit()) {
        let packets = packets(field.text).ok_or_else(|| field.error(QUEUES))?;
        return Ok(Queue::DropTail { packets });
    }
    let object = Object::read(field, QUEUES)?;
    match object.class {
        "DropTailQueue" => drop_tail(&object),
        "RedQueue" => red(&object),
        "CoDelQueue" => codel(&object),
        _ => Err(field.error(QUEUES)),
    }
}

/// Reads the loss column. ns-3 counts errors by the byte unless told otherwise, so the unit must be there.
pub(super) fn loss(field: &Field<'_>) -> Result<Loss, TopologyError> {
    if let Ok(share) = field.finite(LOSSES) {
        return within(share).ok_or_else(|| field.error(LOSSES));
    }
    let object = Object::read(field, LOSSES)?;
    if object.class != "RateErrorModel" {
        return Err(field.error(LOSSES));
    }
    let (mut share, mut by_packet) = (None, false);
    for &(name, value) in &object.attributes {
        match (name, value) {
            ("ErrorUnit", "ERROR_UNIT_PACKET" | "EU_PKT") => by_packet = true,
            ("ErrorRate", value) => share = number(value),
            _ => return Err(field.error(LOSSES)),
        }
    }
    let share = share.filter(|_| by_packet).and_then(within);
    share.ok_or_else(|| field.error(LOSSES))
}

fn within(share: f64) -> Option<Loss> {
    let loss = if share > 0.0 {
        Loss::Random { share }
    } else {
        Loss::None
    };
    (0.0..=1.0).contains(&share).then_some(loss)
}

fn drop_tail(object: &Object<'_>) -> Result<Queue, TopologyError> {
    let mut queue = DEFAULT_QUEUE;
    for &attribute in &object.attributes {
        queue = match attribute {
            ("MaxPackets", _) => Queue::DropTail {
                packets: object.value(attribute, packets, "<packets>")?,
            },
            ("MaxBytes", _) => Queue::DropTailBytes {
                size: object.value(attribute, bytes, "<bytes>")?,
            },
            ("MaxSize", _) => object.value(attribute, max_size, "<packets>p or <bytes>B")?,
            // The older way to say what the other attributes count; they say so themselves.
            ("Mode", "QUEUE_MODE_PACKETS" | "QUEUE_MODE_BYTES") => queue,
            (name, _) => return Err(object.unknown(name, "MaxPackets, MaxBytes, MaxSize and Mode")),
        };
    }
    Ok(queue)
}

/// ns-3's defaults: thresholds 5 and 15, 25 packets, weight 0.002, probability 1/50, gentle.
fn red(object: &Object<'_>) -> Result<Queue, TopologyError> {
    let (mut min, mut max, mut packets_held) = (5.0, 15.0, 25);
    let (mut weight, mut interval, mut gentle) = (0.002, 50.0, true);
    for &attribute in &object.attributes {
        let some_number = || object.value(attribute, number, "<number>");
        match attribute {
            ("MinTh", _) => min = some_number()?,
            ("MaxTh", _) => max = some_number()?,
            ("QueueLimit" | "MaxPackets", _) => {
                packets_held = object.value(attribute, packets, "<packets>")?;
            }
            ("QW", _) => weight = some_number()?,
            ("LInterm", _) => interval = some_number()?,
            ("Gentle", _) => gentle = object.value(attribute, boolean, "true or false")?,
            ("MeanPktSize", _) => {
                some_number()?;
            }
            ("Mode", "QUEUE_MODE_PACKETS") => {}
            (name, _) => {
                let known = "MinTh, MaxTh, QueueLimit, QW, LInterm, Gentle, MeanPktSize and \
                             Mode=QUEUE_MODE_PACKETS";
                return Err(object.unknown(name, known));
            }
        }
    }
    let sound = min < max && weight > 0.0 && weight <= 1.0 && interval >= 1.0;
    if !sound {
        let expected = "MinTh < MaxTh, 0 < QW ≤ 1 and LInterm ≥ 1";
        return Err(object.field.error(expected));
    }
    Ok(Queue::Red {
        packets: packets_held,
        min,
        max,
        max_probability: 1.0 / interval,
        weight,
        gentle,
    })
}

/// ns-3's defaults, which are those of \[RFC8289\].
fn codel(object: &Object<'_>) -> Result<Queue, TopologyError> {
    let mut packets_held = 1_000;
    let mut target = Duration::from_millis(5);
    let mut interval = Duration::from_millis(100);
    for &attribute in &object.attributes {
        let positive = |text: &str| parse_duration(text).ok().filter(|span| !span.is_zero());
        let span = || object.value(attribute, positive, "<time above zero>");
        match attribute {
            ("MaxPackets", _) => packets_held = object.value(attribute, packets, "<packets>")?,
            ("Target", _) => target = span()?,
            ("Interval", _) => interval = span()?,
            ("Mode", "QUEUE_MODE_PACKETS") => {}
            (name, _) => {
                let known = "MaxPackets, Target, Interval and Mode=QUEUE_MODE_PACKETS";
                return Err(object.unknown(name, known));
            }
        }
    }
    Ok(Queue::CoDel {
        packets: packets_held,
        target,
        interval,
        mark: false,
    })
}

fn packets(text: &str) -> Option<usize> {
    let packets = text.parse().ok()?;
    (1..=MAX_PACKETS).contains(&packets).then_some(packets)
}

fn bytes(text: &str) -> Option<ByteSize> {
    text.parse().ok().filter(|&n| n > 0).map(ByteSize::bytes)
}

fn max_size(text: &str) -> Option<Queue> {
    if let Some(count) = text.strip_suffix('p') {
        return packets(count).map(|packets| Queue::DropTail { packets });
    }
    let size = text.strip_suffix('B').and_then(bytes)?;
    Some(Queue::DropTailBytes { size })
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
