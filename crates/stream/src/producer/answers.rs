//! What a producer answers besides segments: objects that stay as they are, and answers that are true for a moment.

use std::collections::BTreeMap;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Data, DataBuilder, Interest, Name};
use namecast_units::{Instant, Timestamp};

/// Packets that stay as they are: catalogue and certificates.
#[derive(Debug, Default)]
pub(super) struct Objects(BTreeMap<Name, Data>);

impl Objects {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, data: Data) {
        self.0.insert(data.name().clone(), data);
    }

    /// Removes all packets whose name starts with `prefix`.
    pub(super) fn remove(&mut self, prefix: &Name) {
        self.0.retain(|name, _| !prefix.is_prefix_of(name));
    }

    /// Returns the packet that answers `interest`: under the exact name, or the first below it where that is enough.
    pub(super) fn find(&self, interest: &Interest) -> Option<&Data> {
        let (_, data) = self.0.range(interest.name()..).next()?;
        interest.matches(data).then_some(data)
    }
}

/// An answer that is made anew once it is no longer fresh, and delivered again until then: consumers cannot make the
/// producer sign faster than that.
#[derive(Debug, Default)]
pub(super) struct FreshAnswer {
    current: Option<(Data, Instant)>,
    version: u64,
}

impl FreshAnswer {
    /// Returns the answer last given, fresh or not.
    pub(super) fn current(&self) -> Option<&Data> {
        self.current.as_ref().map(|(data, _)| data)
    }

    /// Returns the answer, made by `make` if the last one is older than `period`. `make` is given a version: microseconds since
    /// 1970, or one more than the last where the clock stood or was set back.
    pub(super) fn get(
        &mut self,
        now: Instant,
        wall: Timestamp,
        period: Duration,
        make: impl FnOnce(u64) -> Data,
    ) -> Data {
        if let Some((data, made_at)) = &self.current
            && now.since(*made_at) < period
        {
            return data.clone();
        }
        self.version = wall.as_micros().max(self.version.saturating_add(1));
        let data = make(self.version);
        self.current = Some((data.clone(), now));
        data
    }
}

/// Returns a packet that caches call fresh for `freshness` only.
pub(super) fn momentary(name: Name, freshness: Duration, content: Bytes) -> DataBuilder {
    Data::builder(name).freshness(freshness).content(content)
}
