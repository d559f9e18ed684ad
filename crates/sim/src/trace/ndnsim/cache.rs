//! `ndn::CsTracer`: hits and misses of content stores.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write};

use super::float;
use super::number::General;
use super::table::{Table, field};
use crate::topology::NodeIndex;
use crate::trace::{Event, Sampler, Sink, Snapshot};

/// The tab at the end is ndnSIM's.
const HEADER: &str = "Time\tNode\tType\tPackets\t";

/// Hits and misses of each node's content store in each period. ndnSIM 2.8 itself writes only zeros here.
#[derive(Debug)]
pub struct CacheTable<W: Write> {
    table: Table<W>,
    period: Duration,
    /// Hits and misses of each node when it was last seen.
    before: BTreeMap<NodeIndex, [u64; 2]>,
}

impl<W: Write> CacheTable<W> {
    /// Writes to `output`, which it buffers, once every `period`.
    pub fn new(output: W, period: Duration) -> Self {
        Self {
            table: Table::new(output, HEADER),
            period,
            before: BTreeMap::new(),
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

impl<W: Write> Sink for CacheTable<W> {
    fn record(&mut self, _event: &Event<'_>) {}
}

impl<W: Write> Sampler for CacheTable<W> {
    fn period(&self) -> Duration {
        self.period
    }

    fn sample(&mut self, snapshot: &Snapshot<'_>) {
        let counters = snapshot.counters;
        let now = [counters.content_store_hits, counters.content_store_misses];
        let before = self.before.insert(snapshot.node, now).unwrap_or_default();
        let at = General(snapshot.seconds());
        let node = field(snapshot.name);
        for (at_column, kind) in ["CacheHits", "CacheMisses"].iter().enumerate() {
            let packets = now[at_column].saturating_sub(before[at_column]);
            let packets = General(float(packets));
            self.table.row(&[&at, &node, kind, &packets]);
        }
    }
}
