//! Faces, as the tables know them.

use core::mem::offset_of;
use std::sync::Arc;

use namecast_units::Instant;

use super::ShareId;
use super::face_bundles::FaceBundles;
use super::states::States;
use crate::counters::{BundleCounters, FaceCounters};
use crate::face::{ExtensionFields, FaceConfig, FaceId, LinkType};
use crate::fields::HeardExtensions;
use crate::link::{LinkMeter, Offers, mtu_of};

/// A face, as its tables know it. Its link is its driver's.
///
/// A simulated node is mostly out of the processor's caches when a packet comes to it, so what each packet touches lies in
/// the first three lines of a cache: who it is, what came in and was satisfied, what went out. The rest is not fetched.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Face {
    pub(crate) config: FaceConfig,
    /// Packets of this face in the output queue.
    pub(crate) queued: u32,
    /// Where the PIT counts what it waits for.
    pub(crate) share: ShareId,
    pub(crate) counters: FaceCounters,
    /// When it may send a full burst of Interests again.
    pub(crate) interests_full_at: Instant,
    /// What hops remember of it.
    pub(crate) states: States,
    /// What its link measures and knows, if it has one, or is to know.
    pub(crate) meter: Option<Arc<LinkMeter>>,
    /// Only where there were bundles, or could have been.
    bundles: Option<Box<FaceBundles>>,
}

/// A line of the processors' caches.
const LINE: usize = 64;

// An odd number of lines, so that the first ones of many faces do not contend for a few places of the cache.
const _: () = assert!(cfg!(not(target_pointer_width = "64")) || size_of::<Face>() == 7 * LINE);
const _: () = assert!(offset_of!(Face, counters) <= LINE);
const _: () = assert!(offset_of!(FaceCounters, expired_in) < LINE);
const _: () = assert!(offset_of!(FaceCounters, expired_out) < 2 * LINE);

impl Face {
    pub(crate) fn new(config: FaceConfig, share: ShareId) -> Self {
        Self {
            config,
            counters: FaceCounters::default(),
            queued: 0,
            share,
            interests_full_at: Instant::ZERO,
            states: States::default(),
            meter: None,
            bundles: None,
        }
    }

    pub(crate) fn bundles(&mut self) -> &mut FaceBundles {
        self.bundles.get_or_insert_default()
    }

    /// What became of bundles.
    pub(crate) fn bundle_counters(&self) -> BundleCounters {
        let bundles = self.bundles.as_ref();
        bundles.map_or_else(BundleCounters::default, |bundles| bundles.counters)
    }

    /// Has the neighbour hear that this node takes these.
    pub(crate) fn offer(&mut self, offers: Offers) {
        if offers != Offers::NONE {
            self.meter.get_or_insert_default().neighbour.offer(offers);
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.config.is_local()
    }

    /// Whether it is an application of this process.
    pub(crate) fn is_application(&self) -> bool {
        self.is_local() && self.config.extension_fields == ExtensionFields::On
    }

    pub(crate) fn is_point_to_point(&self) -> bool {
        self.config.has_one_peer()
    }

    /// Whether the neighbour is known to speak extension fields.
    pub(crate) fn speaks_extensions(&self) -> bool {
        match self.config.extension_fields {
            ExtensionFields::Off => false,
            ExtensionFields::On => true,
            ExtensionFields::Auto => {
                let meter = self.meter.as_deref();
                meter.is_some_and(|meter| meter.speaks_extensions() == Some(true))
            }
        }
    }

    /// Whether the neighbour is known to take bundles. Applications of this process take packets one by one.
    pub(crate) fn takes_bundles(&self) -> bool {
        match self.config.extension_fields {
            ExtensionFields::Off => false,
            ExtensionFields::On => !self.is_local() && self.is_point_to_point(),
            ExtensionFields::Auto => {
                let meter = self.meter.as_deref();
                meter.is_some_and(|meter| meter.neighbour.takes().contain(Offers::BUNDLES))
            }
        }
    }

    /// Whether the neighbour counts requests for any next packets; `None` as long as that is unknown. Applications of this process
    /// are taken to.
    pub(crate) fn keeps_counters(&self) -> Option<bool> {
        match self.config.extension_fields {
            ExtensionFields::Off => Some(false),
            ExtensionFields::On => Some(self.is_point_to_point()),
            ExtensionFields::Auto => {
                let neighbour = self.meter.as_deref().map(|meter| &meter.neighbour);
                let Some(neighbour) = neighbour.filter(|_| self.is_point_to_point()) else {
                    return (!self.is_point_to_point()).then_some(false);
                };
                match neighbour.speaks() {
                    Some(true) => Some(neighbour.takes().contain(Offers::COUNTERS)),
                    None if !neighbour.keeps_silent() => None,
                    None | Some(false) => Some(false),
                }
            }
        }
    }

    /// What becomes of the extension fields of a packet that leaves now.
    #[cold]
    pub(crate) fn hears_extensions(&mut self, now: Instant) -> HeardExtensions {
        let may_ask = self.config.extension_fields == ExtensionFields::Auto;
        let may_ask = may_ask && self.is_point_to_point();
        HeardExtensions {
            question: may_ask && self.meter.get_or_insert_default().neighbour.ask(now),
            offers: (self.meter.as_ref()).map_or(Offers::NONE, |it| it.neighbour.offers()),
            fields: self.speaks_extensions(),
        }
    }

    /// Octets of the largest frame that reaches the neighbour.
    pub(crate) fn mtu(&self) -> usize {
        mtu_of(&self.config, self.meter.as_deref())
    }

    pub(crate) fn is_ad_hoc(&self) -> bool {
        self.config.link_type == LinkType::AdHoc
    }
}

/// All faces, by number.
///
/// Numbers only grow, so a new face comes last, and until a face is removed each stands where its number says.
#[derive(Debug, Default)]
pub(crate) struct FaceTable {
    /// In the same order as `numbers`.
    faces: Vec<Face>,
    /// Number of the first face.
    first: u64,
    /// Whether numbers are missing between the first and the last. If not, nobody needs to look at them.
    has_gaps: bool,
    numbers: Vec<FaceId>,
}

impl FaceTable {
    pub(crate) fn len(&self) -> usize {
        self.faces.len()
    }

    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<&Face> {
        self.place(id).map(|place| &self.faces[place])
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: FaceId) -> Option<&mut Face> {
        self.place(id).map(|place| &mut self.faces[place])
    }

    /// Adds a face whose number is above all others.
    pub(crate) fn push(&mut self, id: FaceId, face: Face) {
        debug_assert!(self.numbers.last().is_none_or(|&last| last < id));
        self.numbers.push(id);
        self.faces.push(face);
        self.look_for_gaps();
    }

    pub(crate) fn remove(&mut self, id: FaceId) -> Option<Face> {
        let place = self.place(id)?;
        self.numbers.remove(place);
        let removed = self.faces.remove(place);
        self.look_for_gaps();
        Some(removed)
    }

    fn look_for_gaps(&mut self) {
        let (first, last) = (self.numbers.first(), self.numbers.last());
        self.first = first.map_or(0, |first| first.number());
        let spanned = last.map_or(0, |last| last.number() - self.first + 1);
        self.has_gaps = spanned != self.numbers.len() as u64;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FaceId, &Face)> {
        self.numbers.iter().copied().zip(&self.faces)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Face> {
        self.faces.iter_mut()
    }

    #[inline]
    fn place(&self, id: FaceId) -> Option<usize> {
        // Faces that were removed leave gaps, so a face stands here or further to the front.
        let latest = usize::try_from(id.number().checked_sub(self.first)?).ok()?;
        if !self.has_gaps {
            return (latest < self.faces.len()).then_some(latest);
        }
        if self.numbers.get(latest) == Some(&id) {
            return Some(latest);
        }
        self.numbers.binary_search(&id).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use namecast_units::Random;

    use super::*;

    fn face(mtu: usize) -> Face {
        let config = FaceConfig {
            mtu: Some(mtu),
            ..FaceConfig::default()
        };
        Face::new(config, ShareId::from_place(mtu))
    }

    /// Against a map: faces that come and go are found by number, and by no other.
    #[test]
    fn the_table_finds_what_a_plain_map_finds() {
        let mut random = Random::from_seed(4);
        let (mut table, mut map) = (FaceTable::default(), BTreeMap::new());
        for number in 256..1_000 {
            let id = FaceId::from_number(number);
            table.push(id, face(number as usize));
            map.insert(id, number as usize);
            let leaving = FaceId::from_number(250 + random.below(number - 240));
            if random.chance(0.8) {
                let removed = table.remove(leaving).and_then(|face| face.config.mtu);
                assert_eq!(removed, map.remove(&leaving));
            }
            for _ in 0..20 {
                let id = FaceId::from_number(random.below(number + 20));
                let found = table.get(id).and_then(|face| face.config.mtu);
                assert_eq!(found, map.get(&id).copied());
            }
            let order = table.iter().map(|(id, _)| id);
            assert!(order.eq(map.keys().copied()) && table.len() == map.len());
        }
        assert!((100..500).contains(&map.len()), "{}", map.len());
    }
}
