//! What a watcher reports: its outputs in order, and which pictures of a stream its decoder can use.
//!
//! ```text
//!   decoding order       … B₅ P₈ │ I₁₂ B₉ B₁₀ B₁₁ P₁₆
//!   joined at I₁₂                  ▲   └─────────┴── leading pictures: they need P₈, so they are left out
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use core::fmt;
use core::time::Duration;

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::catalogue::{Catalogue, StreamKind};
use namecast_stream::consumer::Shown;
use namecast_stream::{SampleHeader, StreamInfo};
use namecast_units::{Instant, Timestamp};

use super::super::liveness::Liveness;
use super::catalogues::Catalogues;
use crate::discovery::Signer;
use crate::sealed::Unopened;

/// What a watcher reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// What is published, whenever that changes.
    Catalogue(Catalogue),
    /// Whose signature the stream carries, and whether it counts.
    Signer(Signer),
    /// One complete and verified sample, in decoding order.
    Frame(Frame),
    /// The next frame of `stream` does not follow the last: reset its decoder. It is a key frame.
    Discontinuity {
        /// Stream that has the gap.
        stream: StreamKind,
        /// Whether playback is at another time from now on: frames that were not shown yet must not be shown any more.
        is_jump: bool,
    },
    /// Something people may want to read.
    Event(Event),
}

impl Watched {
    /// Playback of `stream` goes on behind a gap.
    pub(super) const fn gap(stream: StreamKind) -> Self {
        Self::Discontinuity {
            stream,
            is_jump: false,
        }
    }
}

/// One stream of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Label {
    pub kind: StreamKind,
    pub name: Arc<str>,
}

impl Label {
    /// The label of `info`.
    pub(in crate::live) fn of(info: &StreamInfo) -> Self {
        Self {
            kind: info.kind,
            name: info.name.as_str().into(),
        }
    }
}

/// One complete sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Video or audio.
    pub stream: StreamKind,
    /// Name of the stream in the catalogue.
    pub name: Arc<str>,
    /// Name of the rung it was pulled from.
    pub rung: String,
    /// Decoding order; the same key frame of a closed group has the same position in every rung.
    pub position: u64,
    /// Whether it decodes by itself.
    pub key: bool,
    /// The encoded sample.
    pub payload: Bytes,
    /// Publisher's wall clock when it was captured; of a picture that is decoded before one shown earlier: the decoding time by
    /// that clock.
    pub captured_at: Timestamp,
    /// Presentation time minus decoding time; zero where pictures are shown in decoding order.
    pub composition_offset: Duration,
    /// When to show it. In the past for frames that are only needed to decode later ones.
    pub render_at: Instant,
    /// When it was complete.
    pub complete_at: Instant,
    /// Whether it was complete only after [`render_at`](Self::render_at).
    pub late: bool,
    /// Whether it is only needed to catch up with the live edge after a start, or is of the past.
    pub catching_up: bool,
    /// Whether it is only needed to decode the frames after it, and must not be shown.
    pub decode_only: bool,
    /// Where its time went until it was delivered.
    pub stages: Stages,
}

impl Frame {
    /// Returns the presentation time by the publisher's clock: frames are shown in this order.
    pub fn presented_at(&self) -> Timestamp {
        self.captured_at + self.composition_offset
    }
}

/// Where the time of one frame went, from capture to the moment it was complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Capture to the end of encoding, with the wait for pictures that are decoded before it.
    pub encode: Duration,
    /// End of encoding to publication.
    pub publish: Duration,
    /// Publication to the arrival of the lead segment; as good as the clocks agree (see `clock_offset_ms` of the stats).
    pub network: Duration,
    /// Arrival of the lead to the last segment that was needed.
    pub reassembly: Duration,
}

/// A step or an incident, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Joining begins, or begins again.
    AskingForMetadata,
    /// The catalogue is here.
    Catalogue {
        /// Its version.
        version: u64,
    },
    /// The signer's certificate is asked for.
    AskingForCertificate {
        /// Its name as the stream gives it.
        name: Name,
    },
    /// A stream is pulled from this sample on.
    StartingAt {
        /// Video or audio.
        stream: StreamKind,
        /// Rung.
        rung: String,
        /// Sequence number of the newest key sample.
        key_sequence: u64,
    },
    /// The first frame of a stream was delivered.
    FirstFrame {
        /// Video or audio.
        stream: StreamKind,
        /// Time since joining began.
        after: Duration,
    },
    /// Nothing arrives any more.
    Starved,
    /// Data arrives again.
    Recovered,
    /// The watcher joins again by itself.
    Rejoining(RejoinReason),
    /// Playback is to go on at this time of capture.
    Seeking {
        /// The time.
        to: Timestamp,
    },
    /// The first frame to show from the past is here.
    PlayingFrom {
        /// When it was captured.
        captured_at: Timestamp,
        /// Time since playback was to go there.
        after: Duration,
    },
    /// The time that was asked for cannot be played; what played before goes on.
    NothingKept {
        /// The time.
        to: Timestamp,
        /// Why.
        unkept: Unkept,
    },
    /// Playback goes on with what is published now.
    BackToLive,
    /// Whether what is shown is live has changed, or is known for the first time.
    Liveness(Liveness),
    /// From the next frame on, video comes from this rung.
    SwitchedRung {
        /// Rung.
        rung: String,
    },
    /// The catalogue has no stream of a kind that was asked for.
    NoSuchStream {
        /// Video or audio.
        stream: StreamKind,
    },
    /// The catalogue was refused.
    BadCatalogue(String),
    /// Sealed samples are not opened. It is reported once for each reason.
    Unopened(Unopened),
    /// Sealed samples are opened, after some were not.
    Opened,
    /// The publisher has had a newer roster for 20 s or more than this reader receives.
    RosterHeldBack {
        /// Version that this reader has.
        known: u64,
        /// Version that the publisher has.
        told: u64,
    },
}

/// Why there is nothing to play of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkept {
    /// Neither archive nor publisher answers.
    Unanswered,
    /// Who answers has nothing of it.
    NotThere {
        /// What it has begins here, if it has anything.
        since: Option<Timestamp>,
    },
}

/// Why a watcher joins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejoinReason {
    /// The publisher has another catalogue: it was started again.
    NewCatalogue,
    /// The publisher's sequences are not where they should be.
    OutOfLine,
    /// Playback has fallen too far behind the live edge.
    FarBehind,
}

impl Event {
    /// Returns whether it is a step that is of interest to developers only, for a log.
    pub const fn is_detail(&self) -> bool {
        matches!(
            self,
            Self::AskingForMetadata
                | Self::Catalogue { .. }
                | Self::AskingForCertificate { .. }
                | Self::StartingAt { .. }
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AskingForMetadata => f.write_str("asking for metadata"),
            Self::Catalogue { version } => write!(f, "catalogue v={version}"),
            Self::AskingForCertificate { name } => write!(f, "asking for certificate {name}"),
            Self::StartingAt {
                stream,
                rung,
                key_sequence,
            } => write!(
                f,
                "newest {} key sample in {rung}: {key_sequence}",
                kind(*stream)
            ),
            Self::FirstFrame { stream, after } => write!(
                f,
                "first {} frame after {:.0} ms",
                kind(*stream),
                after.as_secs_f64() * 1e3
            ),
            Self::Starved => f.write_str("nothing arrives, waiting for the publisher"),
            Self::Recovered => f.write_str("data arrives again"),
            Self::Rejoining(reason) => write!(f, "joining again: {reason}"),
            Self::Seeking { to } => write!(f, "going to {}", seconds(*to)),
            Self::PlayingFrom { captured_at, after } => write!(
                f,
                "playing from {}, after {:.0} ms",
                seconds(*captured_at),
                after.as_secs_f64() * 1e3
            ),
            Self::NothingKept { to, unkept } => {
                write!(f, "nothing of {} is to be had: {unkept}", seconds(*to))
            }
            Self::BackToLive => f.write_str("back to live"),
            Self::Liveness(Liveness::Live) => f.write_str("live: the publisher answers"),
            Self::Liveness(Liveness::Recorded(at)) => {
                write!(f, "not live: recorded from {}", seconds(*at))
            }
            Self::Liveness(Liveness::Unconfirmed) => {
                f.write_str("whether it is live cannot be confirmed: the publisher does not answer")
            }
            Self::SwitchedRung { rung } => write!(f, "switched to {rung}"),
            Self::NoSuchStream { stream } => write!(f, "nothing published as {}", kind(*stream)),
            Self::BadCatalogue(why) => write!(f, "catalogue refused: {why}"),
            Self::Unopened(why) => write!(f, "the stream is sealed: {why}"),
            Self::RosterHeldBack { known, told } => write!(
                f,
                "the publisher has version {told} of the roster, and only version {known} arrives here: a cache or relay holds newer ones back"
            ),
            Self::Opened => f.write_str("sealed samples can be opened now"),
        }
    }
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("nobody answers for the past"),
            Self::NotThere { since: None } => f.write_str("nothing is kept"),
            Self::NotThere { since: Some(since) } => {
                write!(f, "what is kept begins at {}", seconds(*since))
            }
        }
    }
}

impl fmt::Display for RejoinReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NewCatalogue => "the publisher was started again",
            Self::OutOfLine => "the publisher's numbering has changed",
            Self::FarBehind => "too far behind",
        })
    }
}

/// Seconds since 1970.
fn seconds(time: Timestamp) -> String {
    let micros = time.as_micros();
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A stream's kind as people call it.
pub(super) const fn kind(stream: StreamKind) -> &'static str {
    match stream {
        StreamKind::Video => "video",
        StreamKind::Audio => "audio",
        StreamKind::Data => "data",
        StreamKind::Other => "other",
    }
}

/// Outputs in order, up to a number.
#[derive(Debug)]
pub(super) struct Outbox {
    outputs: VecDeque<Watched>,
    max_outputs: usize,
}

impl Outbox {
    pub(super) const fn new(max_outputs: usize) -> Self {
        Self {
            outputs: VecDeque::new(),
            max_outputs,
        }
    }

    /// Reports a step or an incident.
    pub(super) fn event(&mut self, event: Event) {
        self.push(Watched::Event(event));
    }

    /// Reports `watched`.
    pub(super) fn push(&mut self, watched: Watched) {
        if self.outputs.len() >= self.max_outputs {
            // Nobody listens. Frames can be skipped.
            self.outputs.pop_front();
        }
        self.outputs.push_back(watched);
    }

    /// Reports the catalogue, once, now that it is verified.
    pub(super) fn announce(&mut self, catalogues: &mut Catalogues) {
        if let Some(catalogue) = catalogues.announce() {
            let version = catalogue.version;
            self.event(Event::Catalogue { version });
            self.push(Watched::Catalogue(catalogue));
        }
    }

    /// Returns the oldest report, until `None`.
    pub(super) fn pop(&mut self) -> Option<Watched> {
        self.outputs.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.outputs.len()
    }
}

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
mod outbox_tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_for_others() {
        let mut outbox = Outbox::new(2);
        outbox.event(Event::AskingForMetadata);
        outbox.event(Event::Starved);
        outbox.event(Event::Recovered);
        assert_eq!(outbox.len(), 2);
        let events: Vec<_> = core::iter::from_fn(|| outbox.pop()).collect();
        let expected = [Event::Starved, Event::Recovered].map(Watched::Event);
        assert_eq!(events, expected);
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
            seal: None,
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
