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

pub(crate) use pacing::Pacing;
pub(crate) use reporting::Reporting;
pub use reports::{Heard, ReceiverId, Report};
pub(crate) use reports::{Receivers, acknowledged, answer, reporter};
