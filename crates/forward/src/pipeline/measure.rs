//! What becomes of Interests, for strategies that learn from it. Called only while there are any.

use namecast_packet::Name;
use smallvec::SmallVec;

use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::strategy::{AsfConfig, StrategyKind};
use crate::table::pit::EntryId;
use crate::table::{Exchange, NameHashes};

impl Forwarder {
    /// An Interest went to `face`.
    #[cold]
    pub(super) fn measure_sent(&mut self, face: FaceId, name: &Name, hashes: &NameHashes) {
        let Some((sent, asf)) = self.exchange(face, name, hashes) else {
            return;
        };
        if let Some(measurements) = &mut self.measurements {
            measurements.on_sent(&sent, &asf, &mut self.random);
        }
    }

    /// A probe went out with an Interest for `name`.
    #[cold]
    pub(super) fn measure_probe(&mut self, face: FaceId, name: &Name, hashes: &NameHashes) {
        let Some((sent, asf)) = self.exchange(face, name, hashes) else {
            return;
        };
        if let Some(measurements) = &mut self.measurements {
            measurements.on_probe(sent.namespace, self.now + asf.probing_interval);
        }
    }

    /// Data called `name` came from `face`, and answers `entries`, if any.
    ///
    /// Where another face was faster there is no entry any more, and yet the answer to a probe must count: NFD keeps the
    /// entry for 50 ms more, here the measurements know what they wait for.
    #[cold]
    pub(super) fn measure_data(
        &mut self,
        face: FaceId,
        (name, hashes): (&Name, &NameHashes),
        entries: &[EntryId],
    ) {
        let answered = entries.iter().map(|&id| {
            let entry = self.pit.get(id);
            let sent_at = entry.out_record(face).map(|record| record.sent_at);
            (entry.name.clone(), sent_at)
        });
        let mut answered: SmallVec<[_; 2]> = answered.collect();
        if answered.is_empty() {
            answered.push((name.clone(), None));
        }
        for (asked, sent_at) in answered {
            let shorter;
            let hashes = if asked == *name {
                hashes
            } else {
                let max_components = self.config.max_name_components;
                let Some(own) = self.hasher.hashes(&asked, max_components) else {
                    continue;
                };
                shorter = own;
                &shorter
            };
            let exchange = self.exchange(face, &asked, hashes);
            if let (Some((answer, asf)), Some(measurements)) = (exchange, &mut self.measurements) {
                measurements.on_data(&answer, sent_at, &asf);
            }
        }
    }

    /// A Nack came from `face`.
    #[cold]
    pub(super) fn measure_nack(&mut self, face: FaceId, name: &Name, hashes: &NameHashes) {
        let exchange = self.exchange(face, name, hashes);
        if let (Some((answer, _)), Some(measurements)) = (exchange, &mut self.measurements) {
            measurements.on_nack(&answer);
        }
    }

    /// What passes between this node and a face for an Interest called `name`, if its strategy measures.
    fn exchange(
        &self,
        face: FaceId,
        name: &Name,
        hashes: &NameHashes,
    ) -> Option<(Exchange, AsfConfig)> {
        let (namespace, asf) = self.measured_namespace(name, hashes)?;
        let exchange = Exchange {
            now: self.now,
            namespace,
            face,
            name: hashes.whole(),
        };
        Some((exchange, asf))
    }

    /// The namespace that an Interest called `name` is measured with, if its strategy measures: NFD's, which is the prefix
    /// with routes, or the one that the strategy is chosen for, whichever is longer.
    pub(super) fn measured_namespace(
        &self,
        name: &Name,
        hashes: &NameHashes,
    ) -> Option<(u64, AsfConfig)> {
        let (depth, StrategyKind::Asf(asf)) = self.strategies.chosen(name, hashes)? else {
            return None;
        };
        let depth = depth.max(self.fib.depth(name, hashes));
        Some((hashes.hash(depth), *asf))
    }
}
