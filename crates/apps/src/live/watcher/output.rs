//! What a watcher hands out.

use core::fmt;
use core::time::Duration;

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::catalogue::{Catalogue, StreamKind};
use namecast_units::{Instant, Timestamp};

use super::liveness::Liveness;
use crate::discovery::Signer;

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

/// One complete sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Video or audio.
    pub stream: StreamKind,
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
