//! Body of the fuzz target of captions.

use super::closed::{COLUMNS, ClosedCaptions, ROWS};
use super::track::TrackCodec;
use super::user_data::closed_captions;

/// Captions of a kind: pictures with user data, each behind its length, or the packet of a track. Text is bounded, and has no empty rows.
pub(in super::super) fn captions(kind: u8, mut octets: &[u8]) {
    let codec = match kind {
        0 => None,
        1 => Some(TrackCodec::TimedText),
        2 => Some(TrackCodec::SubStation),
        _ => Some(TrackCodec::Text),
    };
    if let Some(codec) = codec {
        let text = codec.text(octets);
        // Each damaged octet becomes a character of three.
        assert!(text.len() <= 3 * octets.len());
        assert!(text.lines().all(|row| !row.trim().is_empty()));
        return;
    }
    let (mut captions, mut time) = (ClosedCaptions::default(), 0);
    while let [length, rest @ ..] = octets {
        let (picture, after) = rest.split_at(usize::from(*length).min(rest.len()));
        octets = after;
        if let Some(pairs) = closed_captions(picture) {
            assert!(pairs.len() <= picture.len() / 3 + 1);
            captions.push(time, pairs);
        }
        let shown = captions.at(time);
        assert!(shown.since <= time);
        assert!(shown.text.lines().count() <= ROWS);
        let mut rows = shown.text.lines();
        assert!(rows.all(|row| (1..=COLUMNS).contains(&row.chars().count())));
        time += 1;
    }
}
