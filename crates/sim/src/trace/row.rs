//! An event as a row of a table: what both forms of our trace write. `docs/trace-format.md` documents the columns.

use std::borrow::Cow;

use namecast_packet::lp::NackReason;

use super::{Event, EventKind, Frame, reason_name};

/// The columns in order.
pub(super) const COLUMNS: [&str; 13] = [
    "time_ns",
    "node",
    "face",
    "event",
    "packet",
    "name",
    "octets",
    "reason",
    "sequence",
    "delay_ns",
    "full_delay_ns",
    "transmissions",
    "congestion_mark",
];

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Text(Cow<'a, str>),
    /// The column has no meaning for this event.
    None,
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

/// The event's values in the order of [`COLUMNS`]; `names` are those of the topology's nodes.
pub(super) fn values<'a>(event: &Event<'_>, names: &'a [String]) -> [Value<'a>; 13] {
    let mut row = [const { Value::None }; 13];
    row[0] = event.at.as_nanos().into();
    row[1] = match names.get(event.node) {
        Some(name) => name.as_str().into(),
        None => event.node.to_string().into(),
    };
    row[2] = event.face.into();
    let (kind, frame, reason) = match event.kind {
        EventKind::Received(frame) => ("received", frame, None),
        EventKind::Sent(frame) => ("sent", frame, None),
        EventKind::Dropped(frame, reason) => ("dropped", frame, Some(reason)),
        EventKind::Fetched(fetched) => {
            let nanos =
                |span: core::time::Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            row[3] = "fetched".into();
            row[8] = fetched.sequence.into();
            row[9] = nanos(fetched.delay).into();
            row[10] = nanos(fetched.full_delay).into();
            row[11] = u64::from(fetched.transmissions).into();
            return row;
        }
    };
    let seen = Frame::read(frame);
    row[3] = kind.into();
    row[4] = seen.packet.name().into();
    if let Some(name) = seen.name() {
        row[5] = name.to_string().into();
    }
    row[6] = (frame.len() as u64).into();
    if let Some(reason) = reason {
        row[7] = reason_name(reason).into();
    } else if let Some(reason) = seen.nack {
        row[7] = nack_name(reason);
    }
    row[12] = seen.congestion_mark.into();
    row
}

fn nack_name(reason: NackReason) -> Value<'static> {
    match reason {
        NackReason::None => "none".into(),
        NackReason::Congestion => "congestion".into(),
        NackReason::Duplicate => "duplicate".into(),
        NackReason::NoRoute => "no_route".into(),
        NackReason::Other(number) => number.to_string().into(),
    }
}
