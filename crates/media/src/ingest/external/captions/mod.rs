//! Captions of an input as plain text: what is shown, and since when.
//!
//! ```text
//!  track of subtitles ─ Cue ───────────────────────▶ ┐
//!                                                    ├─ Captions ─▶ Shown
//!  pictures ─ user_data ─ CEA-608 ─ ClosedCaptions ─▶ ┘
//! ```

mod closed;
#[cfg(any(test, feature = "hostile"))]
pub(super) mod hostile;
mod track;
mod user_data;

use super::super::CAPTIONS_PER_SECOND;
use super::demuxer::Packet;
use closed::ClosedCaptions;
#[cfg(test)]
use track::Cue;
pub(super) use track::{Track, TrackCodec};

/// Least time between two changes, in microseconds.
const MIN_GAP: u64 = 1_000_000 / CAPTIONS_PER_SECOND as u64;

/// Text on the screen, with a line feed between rows; empty: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Presentation time of the change, by the source's clock, in microseconds.
    pub(super) since: u64,
    pub(super) text: String,
}

/// Follows the captions of an input.
#[derive(Debug)]
pub(super) struct Captions {
    source: Source,
    shown: Option<Shown>,
}

#[derive(Debug)]
enum Source {
    Track(Track),
    Closed(Box<ClosedCaptions>),
}

/// Returns whether a picture has room for closed captions.
pub(super) fn has_closed(packet: &Packet) -> bool {
    user_data::closed_captions(&packet.payload).is_some()
}

impl Captions {
    /// Follows the captions of `track`, or those within pictures if there is none.
    pub(super) fn new(track: Option<Track>) -> Self {
        Self {
            source: track.map_or_else(|| Source::Closed(Box::default()), Source::Track),
            shown: None,
        }
    }

    /// Takes a picture, in decoding order.
    pub(super) fn on_picture(&mut self, packet: &Packet) {
        if let Source::Closed(closed) = &mut self.source {
            let pairs = user_data::closed_captions(&packet.payload);
            closed.push(packet.pts, pairs.unwrap_or_default());
        }
    }

    /// Returns what is shown at `now`, a decoding time of the source in microseconds, if it has changed since the last call.
    pub(super) fn at(&mut self, now: u64) -> Option<&Shown> {
        let shown = match &mut self.source {
            Source::Track(track) => track.at(now),
            Source::Closed(closed) => closed.at(now).clone(),
        };
        let (text, changed_at) = match &self.shown {
            Some(shown) => (shown.text.as_str(), Some(shown.since)),
            None => ("", None),
        };
        let is_early = changed_at.is_some_and(|at| now.saturating_sub(at) < MIN_GAP);
        if shown.text == text || is_early {
            return None;
        }
        Some(self.shown.insert(shown))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Three changes within 60 ms: the first and the last are published, at least 100 ms apart.
    #[test]
    fn changes_are_at_least_a_tenth_of_a_second_apart() {
        let (cues, track) = sync_channel(8);
        for (begin, text) in [(0, "a"), (20_000, "b"), (60_000, "c")] {
            let cue = Cue {
                begin,
                end: 1_000_000,
                text: text.to_owned(),
            };
            cues.send(cue).unwrap();
        }
        let mut captions = Captions::new(Some(Track::new(track)));
        let mut published = Vec::new();
        for now in (0..1_200_000).step_by(20_000) {
            published.extend(captions.at(now).map(|it| (now, it.text.clone())));
        }
        let expected = [
            (0, "a".to_owned()),
            (100_000, "a\nb\nc".to_owned()),
            (1_000_000, String::new()),
        ];
        assert_eq!(published, expected);
    }
}
