//! `ndn::AppDelayTracer`: how long applications waited for Data.

use core::time::Duration;
use std::io::{self, Write};

use super::number::General;
use super::table::{Table, node_name};
use crate::trace::{Event, EventKind, Sink};

const HEADER: &str = "Time\tNode\tAppId\tSeqNo\tType\tDelayS\tDelayUS\tRetxCount\tHopCount";

/// Two rows for each Data that an application got: `LastDelay` since its last Interest, with a `RetxCount` that is always
/// 1, and `FullDelay` since its first, with the number of Interests.
///
/// `AppId` is the application's face. `HopCount` is 0, as in ndnSIM for Data without a hop-count tag.
#[derive(Debug)]
pub struct AppDelayTable<W: Write> {
    table: Table<W>,
    names: Vec<String>,
}

impl<W: Write> AppDelayTable<W> {
    /// Writes to `output`, which it buffers; `names` are those of the nodes, by index.
    pub fn new(output: W, names: Vec<String>) -> Self {
        Self {
            table: Table::new(output, HEADER),
            names,
        }
    }

    /// Writes what is left, and gives the output back.
    ///
    /// # Errors
    /// The first error there was; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.table.finish()
    }
}

impl<W: Write> Sink for AppDelayTable<W> {
    fn record(&mut self, event: &Event<'_>) {
        let EventKind::Fetched(fetched) = &event.kind else {
            return;
        };
        let at = General(event.at.since(namecast_units::Instant::ZERO).as_secs_f64());
        let node = node_name(&self.names, event.node);
        for (kind, delay, count) in [
            ("LastDelay", fetched.delay, 1),
            ("FullDelay", fetched.full_delay, fetched.transmissions),
        ] {
            let seconds = General(delay.as_secs_f64());
            let micros = General(micros(delay));
            self.table.row(&[
                &at,
                &node,
                &event.face,
                &fetched.sequence,
                &kind,
                &seconds,
                &micros,
                &count,
                &0,
            ]);
        }
    }
}

fn micros(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e3
}
