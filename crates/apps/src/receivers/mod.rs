//! Receivers of one flow and its sender: who has how much, and who sets the pace.
//!
//! ```text
//!  Reporting ── how many, how fast ──▶ Receivers, Pacing
//!     ▲    ◀── when next, acknowledge? ──┘     │ may the next one leave?
//!     └─────────────── segments ───────────────┘
//! ```

mod pacing;
mod reporting;
mod reports;

use bytes::Bytes;
use namecast_units::Instant;

pub(crate) use pacing::Pacing;
pub(crate) use reporting::Reporting;
pub use reports::{Heard, ReceiverId, Report};
pub(crate) use reports::{Receivers, acknowledged, reporter};

/// Takes a report at the sender. Returns the content of its answer.
pub(crate) fn on_report(
    now: Instant,
    (receivers, pacing): (&mut Receivers, Option<&mut Pacing>),
    (id, report): (ReceiverId, Report),
) -> Bytes {
    let pause = receivers.on_report(now, id, report);
    let present = receivers.present(now);
    let acknowledges = pacing.is_some_and(|pacing| {
        pacing.choose(now, id, present.map(|(id, heard)| (*id, *heard)));
        pacing.is_acknowledging(id)
    });
    reports::answer(pause, acknowledges)
}
