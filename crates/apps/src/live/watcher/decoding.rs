//! State of the decoder of one stream: selects pictures that it cannot decode, and pictures that were shown before.
//!
//! ```text
//!   decoding order       … B₅ P₈ │ I₁₂ B₉ B₁₀ B₁₁ P₁₆
//!   joined at I₁₂                  ▲   └─────────┴── leading pictures: they need P₈, so they are left out
//! ```

use core::time::Duration;

use namecast_stream::consumer::Shown;
use namecast_stream::{SampleHeader, StreamInfo};
use namecast_units::Timestamp;

/// Longest distance from a key frame to the last picture shown when a group is repeated. A longer one means that the clock was set back.
const LONGEST_GROUP: Duration = Duration::from_secs(30);

/// The decoder of one stream, as far as frames that were delivered tell of it.
#[derive(Debug, Default)]
pub(super) struct Decoding {
    /// The rung of the last frame.
    rung: String,
    /// The position that continues it; `None` where nothing does.
    next: Option<u64>,
    /// Decoding and presentation time of the key frame, in a group that does not continue the one before. Pictures that are
    /// decoded later and presented earlier depend on missing pictures.
    begins_at: Option<(Timestamp, Timestamp)>,
    /// Last picture shown before the change of rung; pictures up to it may be repeated.
    shown: Option<Shown>,
}

impl Decoding {
    /// Records that the decoder has nothing any more.
    pub(super) const fn reset(&mut self) {
        self.next = None;
    }

    /// Expects pictures covered by `shown` once more, to continue after them.
    pub(super) const fn repeat(&mut self, shown: Option<Shown>) {
        self.shown = shown;
    }

    /// Takes the next frame in decoding order. Returns whether it can be decoded.
    pub(super) fn takes(&mut self, rung: &str, is_key: bool, header: &SampleHeader) -> bool {
        let continues = self.rung == rung && self.next == Some(header.position);
        if self.rung != rung {
            rung.clone_into(&mut self.rung);
        }
        self.next = header.position.checked_add(1);
        if is_key {
            let begins_at = (header.captured_at, header.presented_at());
            self.begins_at = Some(begins_at).filter(|_| !continues);
            return true;
        }
        let is_leading = |(decoded_at, presented_at)| {
            header.captured_at >= decoded_at && header.presented_at() < presented_at
        };
        !self.begins_at.is_some_and(is_leading)
    }

    /// Returns whether the sample of `header` was shown at another rung, so that it is only decoded.
    pub(super) fn is_again(&mut self, header: &SampleHeader) -> bool {
        let Some(shown) = self.shown else {
            return false;
        };
        let presented_at = header.presented_at();
        let is_set_back = shown.presented_at.since(presented_at) > LONGEST_GROUP;
        let is_again = shown.covers(header) && !is_set_back;
        // All that is decoded from here on is presented later.
        let is_over = !is_again && header.captured_at > shown.presented_at;
        if is_over || is_set_back {
            self.shown = None;
        }
        is_again
    }
}

/// Returns how far `stream` is shown with the sample of `header`. Rungs that differ in the order of decoding have no position in
/// common.
pub(super) fn shown_with(
    stream: &StreamInfo,
    before: Option<Shown>,
    header: &SampleHeader,
) -> Shown {
    let presented_at = header.presented_at();
    let delays = stream.rungs.iter().map(|rung| rung.reorder_delay());
    let most = delays.max().unwrap_or_default();
    let latest = before.map(|shown| shown.presented_at);
    // A distance longer than the reordering delay means that the clock was set back.
    let latest = latest.filter(|at| at.since(presented_at) <= most);
    Shown {
        position: most.is_zero().then_some(header.position),
        presented_at: latest.map_or(presented_at, |at| at.max(presented_at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    /// The picture at `position` in decoding order, number `picture` in the order of presentation: 40 ms each.
    fn header(position: u64, picture: u64) -> SampleHeader {
        let at = |number: u64| WALL + Duration::from_millis(number * 40);
        // A depth of two.
        let (decoded_at, presented_at) = (at(position), at(picture + 2));
        SampleHeader {
            captured_at: decoded_at,
            composition_offset: presented_at.since(decoded_at),
            encoded_after: Duration::ZERO,
            published_after: Duration::ZERO,
            position,
            other_sequence: 0,
            payload_size: 1,
            shard_size: None,
            parity_count: 0,
            asked: None,
        }
    }

    /// I₁₂ at position 10 is shown after B₁₀ and B₁₁ of positions 11 and 12; P₁₆ follows at 13, B₁₄ at 14.
    fn open_group(decoding: &mut Decoding, rung: &str) -> Vec<bool> {
        let pictures = [(10, 12), (11, 10), (12, 11), (13, 16), (14, 14)];
        let take = |(position, picture)| {
            let header = header(position, picture);
            decoding.takes(rung, position == 10, &header)
        };
        pictures.map(take).to_vec()
    }

    #[test]
    fn leading_pictures_are_decoded_only_behind_the_group_that_they_need() {
        let mut decoding = Decoding::default();
        let joined = [true, false, false, true, true];
        assert_eq!(open_group(&mut decoding, "copy"), joined);
        // A gap, another rung, a decoder that was lost.
        assert_eq!(open_group(&mut decoding, "copy"), joined);
        let before = header(9, 9);
        decoding.takes("300k", false, &before);
        assert_eq!(open_group(&mut decoding, "copy"), joined);
        decoding.takes("copy", false, &before);
        decoding.reset();
        assert_eq!(open_group(&mut decoding, "copy"), joined);
        decoding.takes("copy", false, &before);
        assert_eq!(open_group(&mut decoding, "copy"), [true; 5]);
    }

    /// The clock is set back after the first frame: what follows is no leading picture.
    #[test]
    fn a_clock_set_back_makes_no_leading_pictures() {
        let mut decoding = Decoding::default();
        assert!(decoding.takes("1M", true, &header(100, 100)));
        assert!(decoding.takes("1M", false, &header(101, 101)));
        let set_back = SampleHeader {
            position: 102,
            ..header(50, 50)
        };
        assert!(decoding.takes("1M", false, &set_back));
    }

    /// P₈ was shown, B₅ to B₇ were not: they are only decoded, since a picture after them was shown. P₉ ends it.
    #[test]
    fn what_was_shown_is_decoded_again_and_not_shown() {
        let mut decoding = Decoding::default();
        assert!(!decoding.is_again(&header(3, 3)));
        let shown = Shown {
            position: None,
            presented_at: header(5, 8).presented_at(),
        };
        decoding.repeat(Some(shown));
        let pictures = [(4, 4), (5, 8), (6, 12), (7, 6), (8, 9), (11, 8)];
        let again =
            pictures.map(|(position, picture)| decoding.is_again(&header(position, picture)));
        assert_eq!(again, [true, true, false, true, false, false]);
        // Half a minute back and more.
        let shown = Shown {
            position: None,
            presented_at: header(1_000, 1_000).presented_at(),
        };
        decoding.repeat(Some(shown));
        let again = [(900, 900), (200, 200), (201, 201)];
        let again = again.map(|(position, picture)| decoding.is_again(&header(position, picture)));
        assert_eq!(again, [true, false, false]);
    }

    #[test]
    fn the_latest_presentation_counts_and_a_clock_set_back_is_followed() {
        let mut stream = StreamInfo::data("video", 25, 1_000);
        let with = |stream: &StreamInfo, before, position, picture| {
            shown_with(stream, before, &header(position, picture))
        };
        let last = with(&stream, None, 5, 5);
        assert_eq!(last.position, Some(5));
        stream.rungs[0].reorder_delay = 80_000;
        let p8 = with(&stream, None, 5, 8);
        assert_eq!(p8.position, None);
        let b6 = with(&stream, Some(p8), 6, 6);
        assert_eq!(b6.presented_at, header(5, 8).presented_at());
        // 80 ms and no more.
        let set_back = with(&stream, Some(p8), 5, 5);
        assert_eq!(set_back.presented_at, header(5, 5).presented_at());
    }
}
