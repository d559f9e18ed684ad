//! What a tab hands to the page, in one batch of octets.
//!
//! One call into JavaScript per wake-up, whatever happened; `web/src/worker/records.ts` reads it. For each record its
//! length (u32) and its kind (u8), then, all little-endian:
//!
//! | kind | fields |
//! |---|---|
//! | 1 transmit | face u32, the frame |
//! | 2 frame | watch u32, stream u8 (0 video, 1 audio, 2 data), flags u8 (1 key frame, 2 only to be decoded, 4 old when it was asked for), length of the rung's name u8 and the name, position f64, captured at f64 (ms since 1970, publisher's clock), due at f64 (ms, as all times of a tab), encode, publish, network, reassembly f32 (ms), the encoded frame |
//! | 3 discontinuity | watch u32, stream u8, 1 if playback is at another time from now on u8 |
//! | 4 event | JSON, with the number of its `watch`, `publication` or `room` |
//! | 5 fetched | watch u32, number of the object f64, time that it was waited for and time in which its Data flowed f32 (ms), the object |

use namecast_apps::live::watcher::{Event, Frame, Refusal, Seek, Unkept, Verdict};
use namecast_apps::object::Flow;
use namecast_forward::FaceId;
use namecast_stream::StreamKind;
use namecast_units::{Duration, Instant, Timestamp};
use serde::Serialize;

const TRANSMIT: u8 = 1;
const FRAME: u8 = 2;
const DISCONTINUITY: u8 = 3;
const EVENT: u8 = 4;
const FETCHED: u8 = 5;

const KEY: u8 = 1;
const DECODE_ONLY: u8 = 2;
const CATCHING_UP: u8 = 4;

/// Records that wait for the page.
#[derive(Debug, Default)]
pub struct Outbox {
    octets: Vec<u8>,
}

impl Outbox {
    /// Gives up everything gathered.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.octets)
    }

    /// Octets gathered.
    pub fn len(&self) -> usize {
        self.octets.len()
    }

    /// Whether nothing was gathered.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// A frame for a transport.
    pub(crate) fn transmit(&mut self, face: FaceId, frame: &[u8]) {
        // The page takes the number as 32 bits, and no tab lives for 2^32 transports.
        let face = u32::try_from(face.number()).unwrap_or(u32::MAX);
        self.record(TRANSMIT, |octets| {
            octets.extend(face.to_le_bytes());
            octets.extend(frame);
        });
    }

    /// An encoded frame for a decoder.
    pub(crate) fn frame(&mut self, watch: u32, frame: &Frame) {
        self.record(FRAME, |octets| {
            octets.extend(watch.to_le_bytes());
            // The catalogue bounds names of rungs to 64 octets.
            let rung = frame.rung.as_bytes();
            let length = u8::try_from(rung.len()).unwrap_or(u8::MAX);
            let flags = [
                (frame.key, KEY),
                (frame.decode_only, DECODE_ONLY),
                (frame.catching_up, CATCHING_UP),
            ];
            let flags = flags.iter().filter(|(is_set, _)| *is_set);
            let flags = flags.fold(0, |sum, (_, flag)| sum | flag);
            octets.extend([stream_number(frame.stream), flags, length]);
            octets.extend(&rung[..usize::from(length)]);
            let presented_at = unix_ms(frame.presented_at());
            for number in [frame.position as f64, presented_at, to_ms(frame.render_at)] {
                octets.extend(number.to_le_bytes());
            }
            let stages = &frame.stages;
            for stage in [
                stages.encode,
                stages.publish,
                stages.network,
                stages.reassembly,
            ] {
                octets.extend(span_to_ms(stage).to_le_bytes());
            }
            octets.extend(&frame.payload);
        });
    }

    /// The next frame of `stream` does not follow the last; after a jump, those before it must not be shown any more.
    pub(crate) fn discontinuity(&mut self, watch: u32, stream: StreamKind, is_jump: bool) {
        self.record(DISCONTINUITY, |octets| {
            octets.extend(watch.to_le_bytes());
            octets.extend([stream_number(stream), u8::from(is_jump)]);
        });
    }

    /// An object that the page requested.
    pub(crate) fn fetched(&mut self, watch: u32, number: u64, flow: Flow, content: &[u8]) {
        self.record(FETCHED, |octets| {
            octets.extend(watch.to_le_bytes());
            octets.extend((number as f64).to_le_bytes());
            for span in [flow.waited, flow.flowed] {
                octets.extend(span_to_ms(span).to_le_bytes());
            }
            octets.extend(content);
        });
    }

    /// Something rare.
    pub(crate) fn event(&mut self, source: Source, event: &TabEvent<'_>) {
        let told = Told { source, event };
        let json = serde_json::to_vec(&told).expect("an event holds only text and numbers");
        self.record(EVENT, |octets| octets.extend(json));
    }

    fn record(&mut self, kind: u8, fields: impl FnOnce(&mut Vec<u8>)) {
        let start = self.octets.len();
        self.octets.extend([0; 4]);
        self.octets.push(kind);
        fields(&mut self.octets);
        let length =
            u32::try_from(self.octets.len() - start - 4).expect("a batch fits memory of 4 GiB");
        self.octets[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// What an event is of, by the number that the page has of it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    Watch(u32),
    Publication(u32),
    /// The tab's room, of which there is one.
    Room(u32),
}

/// An event and its source.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    source: Source,
    #[serde(flatten)]
    event: &'a TabEvent<'a>,
}

/// What a signer's key is to what the page remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Memory {
    /// It is met for the first time: to be remembered once something is here that it signed.
    New,
    /// It is the remembered one.
    Known,
    /// Another one is remembered.
    Changed,
    /// It has nothing to do with what is remembered: pinned, or refused for another reason.
    None,
}

impl From<&Verdict> for Memory {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::FirstUse => Self::New,
            Verdict::Remembered => Self::Known,
            Verdict::Refused(Refusal::ChangedKey) => Self::Changed,
            Verdict::Pinned | Verdict::Certified | Verdict::CertifiedThen | Verdict::Refused(_) => {
                Self::None
            }
        }
    }
}

/// How a tab stands in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoomState {
    /// It waits to join: nobody serves the room.
    Away,
    /// It waits to join: the host may have to say yes.
    Undecided,
    /// It waits to join: too many do.
    Crowded,
    /// It cannot join.
    Failed,
    /// It is a member.
    Joined,
    /// It waits for schema and roster.
    Unserved,
    /// Schema and roster are in force.
    Ready,
}

/// Something rare, as the page reads it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum TabEvent<'a> {
    /// A sentence for people.
    Step { text: String },
    /// What is published.
    Catalogue {
        catalogue: &'a namecast_stream::Catalogue,
    },
    /// Who signs it.
    Signer {
        name: String,
        digest: String,
        verdict: String,
        trusted: bool,
        memory: Memory,
    },
    /// Whether those who want what this tab publishes are sent here: registered, refused (and why), unanswered.
    Registration {
        name: String,
        state: &'static str,
        why: Option<String>,
    },
    /// How the tab stands in its room. `why`: the reason of a failure, or the name of the member who has joined; `certificate`: of that member, to be
    /// kept.
    Room {
        state: RoomState,
        why: Option<String>,
        certificate: Option<String>,
    },
    /// Sealed samples are not opened, for this reason; or they are.
    Sealed { why: Option<&'static str> },
    /// So much of an object is here, in octets; `share` of all of it.
    Fetching {
        number: u64,
        octets: u64,
        share: f64,
    },
    /// An object cannot be fetched.
    Unfetched { number: u64, why: String },
    /// A time of the past is being fetched. Times are the publisher's clock, ms since 1970.
    Seeking { to: f64 },
    /// It plays, from the frame captured at this time on.
    Playing { captured_at: f64 },
    /// What is published now plays.
    Live,
    /// The time cannot be played, so nothing changes.
    Nothing {
        to: f64,
        /// What is kept begins here.
        since: Option<f64>,
        /// Whether anybody said so.
        answered: bool,
    },
}

impl TabEvent<'_> {
    /// What an event means for where in time playback is, if anything.
    pub(crate) fn of_travel(event: &Event) -> Option<Self> {
        Some(match event {
            Event::Seeking { to } => Self::Seeking { to: unix_ms(*to) },
            Event::PlayingFrom { captured_at, .. } => Self::Playing {
                captured_at: unix_ms(*captured_at),
            },
            Event::BackToLive => Self::Live,
            Event::NothingKept { to, unkept } => {
                let (since, answered) = match unkept {
                    Unkept::Unanswered => (None, false),
                    Unkept::NotThere { since } => (since.map(unix_ms), true),
                };
                let to = unix_ms(*to);
                Self::Nothing {
                    to,
                    since,
                    answered,
                }
            }
            _ => return None,
        })
    }
}

/// A time as the page has it: milliseconds since 1970.
fn unix_ms(time: Timestamp) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// Number of a stream towards the page.
pub(crate) const fn stream_number(stream: StreamKind) -> u8 {
    match stream {
        StreamKind::Video => 0,
        StreamKind::Audio => 1,
        StreamKind::Data | StreamKind::Other => 2,
    }
}

/// Octets in hexadecimal.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A face, by the number that the page has of it.
pub(crate) fn face_id(face: u32) -> FaceId {
    FaceId::from_number(u64::from(face))
}

/// A point in time as the page counts: milliseconds.
pub(crate) fn to_ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

/// A point in time from the page; nonsense is the beginning.
pub(crate) fn from_ms(ms: f64) -> Instant {
    // `as` saturates, and takes NaN to zero.
    Instant::from_nanos((ms * 1e6) as u64)
}

/// Where the page wants to go: a time in milliseconds since 1970, rounded to microseconds, so that the time of a frame
/// finds that frame; what is no finite number is live.
pub(crate) fn seek_to(ms: f64) -> Seek {
    match ms.is_finite() {
        true => Seek::To(Timestamp::from_micros((ms * 1e3).round() as u64)),
        false => Seek::Live,
    }
}

fn span_to_ms(span: Duration) -> f32 {
    span.as_secs_f32() * 1e3
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use namecast_apps::live::watcher::Stages;

    use super::*;

    /// Length 1 + 4 + 2, kind 1, face 258 = 0x0102.
    #[test]
    fn a_transmit_record_is_laid_out_as_described() {
        let mut outbox = Outbox::default();
        outbox.transmit(face_id(258), &[0xaa, 0xbb]);
        outbox.discontinuity(5, StreamKind::Audio, true);
        let transmit = [7, 0, 0, 0, 1, 2, 1, 0, 0, 0xaa, 0xbb];
        let discontinuity = [7, 0, 0, 0, 3, 5, 0, 0, 0, 1, 1];
        assert_eq!(outbox.take(), [transmit, discontinuity].concat());
        assert!(outbox.is_empty());
    }

    /// 1 + 4 + 3 + 2 + 3 · 8 + 4 · 4 + 1 = 51 octets after the length.
    #[test]
    fn a_frame_record_is_laid_out_as_described() {
        let mut outbox = Outbox::default();
        let frame = Frame {
            stream: StreamKind::Video,
            name: "video".into(),
            rung: "1M".to_owned(),
            position: 3,
            key: true,
            payload: Bytes::from_static(&[9]),
            captured_at: Timestamp::from_micros(1_500),
            composition_offset: Duration::from_millis(80),
            render_at: Instant::from_nanos(2_500_000),
            complete_at: Instant::from_nanos(2_000_000),
            late: false,
            catching_up: true,
            decode_only: true,
            stages: Stages {
                encode: Duration::from_millis(4),
                ..Stages::default()
            },
        };
        outbox.frame(258, &frame);
        let octets = outbox.take();
        let f64_at = |at: usize| f64::from_le_bytes(octets[at..at + 8].try_into().unwrap());
        assert_eq!(octets[..9], [51, 0, 0, 0, 2, 2, 1, 0, 0]);
        assert_eq!(octets[9..14], [0, 7, 2, b'1', b'M']);
        let numbers = [f64_at(14), f64_at(22), f64_at(30)];
        assert_eq!(
            numbers.map(f64::to_bits),
            [3.0, 81.5, 2.5].map(f64::to_bits)
        );
        assert_eq!(octets[38..42], 4.0_f32.to_le_bytes());
        assert_eq!(octets[54..], [9]);
    }

    /// Microseconds since 1970 have 51 bits, and so fit the 53 of a number.
    #[test]
    fn the_time_of_a_frame_is_sought_to_the_microsecond() {
        for micros in (1_790_000_000_000_001..).step_by(333_333).take(1_000) {
            let time = Timestamp::from_micros(micros);
            assert_eq!(seek_to(unix_ms(time)), Seek::To(time));
        }
        for live in [f64::INFINITY, f64::NAN] {
            assert_eq!(seek_to(live), Seek::Live);
        }
    }

    #[test]
    fn times_go_there_and_back() {
        assert_eq!(from_ms(1.5), Instant::from_nanos(1_500_000));
        assert_eq!(from_ms(f64::NAN), Instant::ZERO);
        assert_eq!(from_ms(-3.0), Instant::ZERO);
        assert_eq!(to_ms(from_ms(1_234.5)).to_bits(), 1_234.5_f64.to_bits());
    }
}
