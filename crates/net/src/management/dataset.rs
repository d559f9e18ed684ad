//! Status datasets: lists that are published as versioned, segmented objects.
//!
//! NFD Management, "Status Dataset": an Interest with CanBePrefix is answered by the first segment of a new version; the
//! others are asked for by name. Versions are kept for a while, so that all segments a client gets are of one list.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use namecast_apps::management::MAX_DATASET_SIZE;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Component, Data, MAX_PACKET_SIZE, Name};
use namecast_units::Timestamp;

use super::RESPONSE_FRESHNESS;
use crate::log_limit;

/// Content of a segment, in octets, as in NFD.
const SEGMENT_SIZE: usize = 8_000;
/// What a segment takes besides name and content: its headers, its own and the final segment number, its signature.
const SEGMENT_OVERHEAD: usize = 150;
/// Versions that are kept.
const MAX_DATASETS: usize = 16;
/// Octets of all versions that are kept; the newest is kept in any case.
const MAX_KEPT_SIZE: usize = 2 * MAX_DATASET_SIZE;

const _: () = assert!(SEGMENT_SIZE + SEGMENT_OVERHEAD < MAX_PACKET_SIZE);

/// The datasets that were asked for lately.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    kept: VecDeque<Dataset>,
    last_version: u64,
}

#[derive(Debug)]
struct Dataset {
    /// With its version.
    name: Name,
    content: Bytes,
    segment_size: usize,
}

impl Publisher {
    /// Makes a new version of the dataset `prefix` and gives its first segment; nothing if the name leaves no room.
    pub(super) fn publish(
        &mut self,
        now: Timestamp,
        prefix: &Name,
        items: impl IntoIterator<Item = Bytes>,
    ) -> Option<Data> {
        let millis = now.as_micros() / 1_000;
        self.last_version = millis.max(self.last_version + 1);
        let name = prefix.builder().version(self.last_version).finish();
        // FinalBlockId is in the packet besides the name.
        let room = MAX_PACKET_SIZE.checked_sub(name.encoded_size() + SEGMENT_OVERHEAD)?;
        let dataset = Dataset {
            name: name.detached(),
            content: concatenate(prefix, items),
            segment_size: room.min(SEGMENT_SIZE),
        };
        let first = dataset.segment(0);
        self.kept.push_back(dataset);
        while self.kept.len() > 1
            && (self.kept.len() > MAX_DATASETS || self.kept_size() > MAX_KEPT_SIZE)
        {
            self.kept.pop_front();
        }
        first
    }

    /// The segment of exactly this name, if it is of a version that is kept.
    pub(super) fn segment(&self, name: &Name) -> Option<Data> {
        let number = name.last()?.number_of(Component::SEGMENT)?;
        let version = name.parent();
        let dataset = self.kept.iter().find(|dataset| dataset.name == version)?;
        dataset.segment(usize::try_from(number).ok()?)
    }

    fn kept_size(&self) -> usize {
        self.kept.iter().map(|dataset| dataset.content.len()).sum()
    }
}

impl Dataset {
    fn segment(&self, number: usize) -> Option<Data> {
        if self.segment_size == 0 {
            return None;
        }
        // An empty list, too, has a segment.
        let last = self.content.len().saturating_sub(1) / self.segment_size;
        if number > last {
            return None;
        }
        let start = number * self.segment_size;
        let end = self.content.len().min(start + self.segment_size);
        let segment = |number: usize| number as u64;
        let name = self.name.builder().segment(segment(number)).finish();
        let data = Data::builder(name)
            .freshness(RESPONSE_FRESHNESS)
            .final_block(Name::root().builder().segment(segment(last)).finish())
            .content(self.content.slice(start..end));
        Some(data.sign(&DigestSigner))
    }
}

/// Entries one behind another, as many as there may be.
fn concatenate(prefix: &Name, items: impl IntoIterator<Item = Bytes>) -> Bytes {
    let mut content = BytesMut::new();
    for item in items {
        if content.len() + item.len() > MAX_DATASET_SIZE {
            if let Some(left_out) = log_limit::admit("list") {
                tracing::warn!(dataset = %prefix, "the list is too long and was cut{left_out}");
            }
            break;
        }
        content.extend_from_slice(&item);
    }
    content.freeze()
}

#[cfg(test)]
mod tests {
    use namecast_apps::management::SegmentReader;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_999);

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn item(size: usize) -> Bytes {
        Bytes::from(vec![7; size])
    }

    /// 20 000 octets are 8000 + 8000 + 4000: segments 0, 1 and 2. The version is in milliseconds.
    #[test]
    fn a_list_is_cut_into_segments_of_8000_octets_that_know_the_last() {
        let mut publisher = Publisher::default();
        let items = [item(9_999), item(10_001)];
        let first = publisher.publish(NOW, &name("/a/list"), items).unwrap();
        let version = name("/a/list/v=1700000000000");
        assert_eq!(first.name(), &name("/a/list/v=1700000000000/seg=0"));
        let lengths = [8_000, 8_000, 4_000];
        for (number, length) in lengths.into_iter().enumerate() {
            let asked = version.builder().segment(number as u64).finish();
            let data = publisher.segment(&asked).unwrap();
            assert_eq!(data.name(), &asked);
            assert_eq!(data.content().unwrap().len(), length);
            assert_eq!(data.final_block(), Some(&name("/seg=2")));
        }
        assert!(
            publisher
                .segment(&name("/a/list/v=1700000000000/seg=3"))
                .is_none()
        );
        assert!(
            publisher
                .segment(&name("/a/list/v=1700000000001/seg=0"))
                .is_none()
        );
        assert!(
            publisher
                .segment(&name("/b/list/v=1700000000000/seg=0"))
                .is_none()
        );
        assert!(publisher.segment(&version).is_none());
    }

    /// What is published is read back whole, in as many steps as it has segments.
    #[test]
    fn a_reader_asks_for_segment_after_segment() {
        let mut publisher = Publisher::default();
        let first = publisher.publish(NOW, &name("/a/list"), [item(20_000)]);
        let (mut reader, mut next, mut count) = (SegmentReader::default(), first, 0);
        while let Some(data) = next {
            count += 1;
            let wanted = reader.add(&data).unwrap();
            next = wanted.and_then(|name| publisher.segment(&name));
        }
        assert_eq!((count, reader.finish()), (3, item(20_000)));
    }

    #[test]
    fn versions_grow_even_within_a_millisecond_and_an_empty_list_has_a_segment() {
        let mut publisher = Publisher::default();
        let mut publish = || publisher.publish(NOW, &name("/a"), []).unwrap();
        assert_eq!(publish().name(), &name("/a/v=1700000000000/seg=0"));
        let second = publish();
        assert_eq!(second.name(), &name("/a/v=1700000000001/seg=0"));
        assert_eq!(second.content().unwrap_or_default(), Bytes::new());
        assert_eq!(second.final_block(), Some(&name("/seg=0")));
    }

    #[test]
    fn only_so_many_versions_and_octets_are_kept() {
        let mut publisher = Publisher::default();
        let mut names = Vec::new();
        for _ in 0..=MAX_DATASETS {
            let first = publisher.publish(NOW, &name("/a"), [item(10)]).unwrap();
            names.push(first.name().clone());
        }
        assert!(publisher.segment(&names[0]).is_none());
        assert!(publisher.segment(&names[1]).is_some());
        let huge = || std::iter::repeat_n(item(1 << 20), 9);
        for _ in 0..3 {
            let first = publisher.publish(NOW, &name("/b"), huge()).unwrap();
            names.push(first.name().clone());
        }
        // Two of 8 MiB are as much as there may be; the ninth MiB of each was left out.
        assert_eq!(publisher.kept.len(), 2);
        assert_eq!(publisher.kept_size(), MAX_KEPT_SIZE);
        assert_eq!(publisher.kept[1].content.len(), MAX_DATASET_SIZE);
    }

    #[test]
    fn a_name_takes_room_from_the_content_and_one_too_long_gets_no_answer() {
        let long = |octets: usize| name(&format!("/{}", "a".repeat(octets)));
        let mut publisher = Publisher::default();
        let first = publisher.publish(NOW, &long(2_000), [item(8_000)]).unwrap();
        assert!(first.content().unwrap().len() < 6_700);
        assert!((8_700..=MAX_PACKET_SIZE).contains(&first.wire().len()));
        assert!(
            publisher
                .publish(NOW, &long(8_780), [item(8_000)])
                .is_none()
        );
    }
}
