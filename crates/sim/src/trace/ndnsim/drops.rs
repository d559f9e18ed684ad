//! `L2RateTracer`: what queues dropped.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write};

use namecast_netem::DropReason;

use super::number::General;
use super::table::{Table, field};
use super::{Smoothed, float};
use crate::topology::NodeIndex;
use crate::trace::{Event, EventKind, Sampler, Sink, Snapshot};

const HEADER: &str = "Time\tNode\tInterface\tType\tPackets\tKilobytes\tPacketsRaw\tKilobytesRaw";

/// Frames that each node's queues dropped, all links together, in each period. Random loss is not among them, as in
/// ndnSIM. There the smoothed columns are cut to whole numbers; here they are not.
#[derive(Debug)]
pub struct DropTable<W: Write> {
    table: Table<W>,
    period: Duration,
    nodes: BTreeMap<NodeIndex, Node>,
}

#[derive(Debug, Default)]
struct Node {
    frames: u64,
    octets: u64,
    frame_rate: Smoothed,
    byte_rate: Smoothed,
}

impl<W: Write> DropTable<W> {
    /// Writes to `output`, which it buffers, once every `period`.
    pub fn new(output: W, period: Duration) -> Self {
        Self {
            table: Table::new(output, HEADER),
            period,
            nodes: BTreeMap::new(),
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

impl<W: Write> Sink for DropTable<W> {
    fn record(&mut self, event: &Event<'_>) {
        let EventKind::Dropped(frame, reason) = event.kind else {
            return;
        };
        if matches!(reason, DropReason::QueueFull | DropReason::ActiveQueue) {
            let node = self.nodes.entry(event.node).or_default();
            node.frames += 1;
            node.octets += frame.len() as u64;
        }
    }
}

impl<W: Write> Sampler for DropTable<W> {
    fn period(&self) -> Duration {
        self.period
    }

    fn sample(&mut self, snapshot: &Snapshot<'_>) {
        let seconds = self.period.as_secs_f64();
        let node = self.nodes.entry(snapshot.node).or_default();
        let (frames, kilobytes) = (float(node.frames), float(node.octets) / 1024.0);
        (node.frames, node.octets) = (0, 0);
        let frame_rate = General(node.frame_rate.update(frames, seconds));
        let byte_rate = General(node.byte_rate.update(kilobytes, seconds));
        self.table.row(&[
            &General(snapshot.seconds()),
            &field(snapshot.name),
            &"combined",
            &"Drop",
            &frame_rate,
            &byte_rate,
            &General(frames),
            &General(kilobytes),
        ]);
    }
}
