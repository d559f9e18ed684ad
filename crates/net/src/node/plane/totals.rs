//! What a node's forwarders have and have seen, as if they were one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use namecast_forward::{
    BundleCounters, CacheOptions, Counters, Erased, FaceConfig, FaceCounters, FaceId, Forwarder,
    LearnedRoute, StrategyChoice,
};
use namecast_packet::Name;
use namecast_units::ByteSize;

use super::{Plane, link_counters};

impl Plane {
    /// How much all content stores together may hold, and what they do.
    pub(crate) fn cache_options(&self) -> CacheOptions {
        let options = self.look(|forwarder| forwarder.content_store().options());
        CacheOptions {
            capacity: ByteSize::bytes(options.capacity.as_bytes() * self.workers.len() as u64),
            ..options
        }
    }

    /// Changes how much all content stores together may hold, and what they do.
    pub(crate) fn set_cache_options(&self, options: CacheOptions) {
        let each = CacheOptions {
            capacity: ByteSize::bytes(options.capacity.as_bytes() / self.workers.len() as u64),
            ..options
        };
        self.change(|forwarder| forwarder.content_store_mut().set_options(each));
    }

    /// Removes at most `limit` cached Data packets whose names begin with `prefix`.
    pub(crate) fn erase_cached(&self, prefix: &Name, limit: usize) -> Erased {
        let mut all = Erased {
            count: 0,
            is_more_left: false,
        };
        for worker in &self.workers {
            let left = limit - all.count;
            let forwarder = &mut worker.lock().forwarder;
            let erased = forwarder.content_store_mut().erase(prefix, left);
            all.count += erased.count;
            all.is_more_left |= erased.is_more_left;
        }
        all
    }

    /// The routes that any forwarder has learned.
    pub(crate) fn learned_routes(&self) -> Vec<LearnedRoute> {
        let mut all = BTreeMap::new();
        for worker in &self.workers {
            for route in worker.lock().forwarder.learned_routes() {
                all.entry((route.prefix.clone(), route.face))
                    .or_insert(route);
            }
        }
        all.into_values().collect()
    }

    /// The strategy of each prefix that has one, with what all forwarders have seen of it.
    pub(crate) fn strategies(&self) -> Vec<StrategyChoice> {
        let mut choices = self.workers.iter().map(|worker| {
            let state = worker.lock();
            state.forwarder.strategies().collect::<Vec<_>>()
        });
        let mut sum = choices.next().unwrap_or_default();
        for more in choices {
            for (sum, more) in sum.iter_mut().zip(more) {
                sum.counters += more.counters;
            }
        }
        sum
    }

    /// Sum of a number over all forwarders.
    pub(crate) fn sum(&self, number: impl Fn(&Forwarder) -> usize) -> usize {
        let numbers = self.workers.iter().map(|it| number(&it.lock().forwarder));
        numbers.sum()
    }

    /// Faces that wait for Data under `prefix` at any forwarder.
    pub(crate) fn waiting_faces(&self, prefix: &Name) -> BTreeSet<FaceId> {
        let workers = self.workers.iter();
        let faces = workers.map(|worker| worker.lock().forwarder.waiting_faces(prefix));
        faces.flatten().collect()
    }

    /// What all forwarders and links together have seen.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for worker in &self.workers {
            sum += *worker.lock().forwarder.counters();
        }
        let past = self.past_links.lock();
        let past = *past.unwrap_or_else(PoisonError::into_inner);
        past.merge_into_node(&mut sum);
        if let Some(exits) = &*self.exits.load() {
            for sender in exits.senders() {
                link_counters(sender).merge_into_node(&mut sum);
            }
        }
        sum
    }

    /// What a face has seen in its link and all forwarders together; nothing if there is no such face.
    pub(crate) fn face_counters(&self, face: FaceId) -> FaceCounters {
        let mut sum = FaceCounters::default();
        for worker in &self.workers {
            if let Some(face) = worker.lock().forwarder.face(face) {
                sum += *face.counters;
            }
        }
        self.with_sender(face, |sender| {
            link_counters(sender).merge_into_face(&mut sum);
        });
        sum
    }

    /// What became of a face's bundles in all forwarders together; nothing if there is no such face.
    pub(crate) fn bundles(&self, face: FaceId) -> BundleCounters {
        let mut sum = BundleCounters::default();
        for worker in &self.workers {
            if let Some(face) = worker.lock().forwarder.face(face) {
                sum += face.bundles;
            }
        }
        sum
    }

    /// What a face is; none if there is no such face.
    pub(crate) fn face_config(&self, face: FaceId) -> Option<FaceConfig> {
        self.look(|forwarder| forwarder.face(face).map(|info| info.config.clone()))
    }
}
