//! What a watcher is told when it starts.

use core::time::Duration;

use namecast_packet::Name;
use namecast_stream::consumer::{AdaptiveTarget, Source};
use namecast_stream::ladder::LadderConfig;
use namecast_stream::path::{Control, Weight};
use namecast_stream::{Catalogue, Profile, Rung, StreamInfo, StreamKind, StreamNames, consumer};
use namecast_units::{Instant, Timestamp};

use super::super::past::Speed;
use crate::discovery::Trust;
use crate::trust::ExchangeSecret;

/// How to watch one root. [`WatcherConfig::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct WatcherConfig {
    /// The name that was published, such as `/demo`.
    pub root: Name,
    /// Names of streams that go before others of their kind; of each kind the catalogue's first is pulled otherwise. All data
    /// streams that are named are pulled.
    pub streams: Vec<String>,
    /// Whether to pull the first video stream of the catalogue.
    pub video: bool,
    /// Whether to pull the first audio stream of the catalogue.
    pub audio: bool,
    /// Whether to pull data streams of the catalogue.
    pub data: bool,
    /// Most samples a second of data streams of which only the newest counts: of more, every k-th number is pulled and nothing else is requested.
    /// `None`: all are pulled.
    pub max_data_rate: Option<u32>,
    /// Which bitrate of the video.
    pub rung: RungChoice,
    /// How it is chosen if that is left to the watcher.
    pub ladder: LadderConfig,
    /// Playout target: time between the moment a sample could be here at the earliest, and the moment it is shown.
    pub target: Duration,
    /// The target goes by the path instead, as soon as that is known.
    pub adaptive_target: Option<AdaptiveTarget>,
    /// Frames are delivered this long before they are shown, so that a decoder has time; at most half the target, or all of it
    /// but 140 ms.
    pub decode_lead: Duration,
    /// The same for audio: its device takes sound ahead of the time at which it is heard.
    pub audio_lead: Duration,
    /// Wall clock at [`Instant::ZERO`](namecast_units::Instant::ZERO).
    pub wall_at_zero: Timestamp,
    /// Whose signature counts.
    pub trust: Trust,
    /// X25519 secrets of this reader, by which sealed samples are opened; empty: none are.
    pub reader: Vec<ExchangeSecret>,
    /// What of the past to play.
    pub past: PastConfig,
    /// Seed of the Nonces.
    pub seed: u64,
    /// What bounds all requests.
    pub control: Control,
    /// Weight of its pictures beside those of other watches over the same uplink.
    pub weight: Weight,
    /// Bounds and constants of each stream's consumer.
    pub consumer: consumer::Config,
}

impl WatcherConfig {
    /// Watches video and audio of `root` at the highest rung that the network carries, 100 ms behind what the network allows.
    pub fn new(root: Name) -> Self {
        Self::of(root, Profile::Namecast)
    }

    /// Watches as `profile` does.
    pub fn of(root: Name, profile: Profile) -> Self {
        Self {
            root,
            streams: Vec::new(),
            video: true,
            audio: true,
            data: false,
            max_data_rate: None,
            rung: RungChoice::Auto,
            ladder: profile.ladder(),
            target: Duration::from_millis(100),
            adaptive_target: profile.target(),
            decode_lead: profile.decode_lead(),
            audio_lead: profile.decode_lead(),
            wall_at_zero: Timestamp::default(),
            trust: Trust::FirstUse,
            reader: Vec::new(),
            past: PastConfig::default(),
            seed: 0,
            control: profile.control(),
            weight: Weight::ONE,
            consumer: profile.consumer(),
        }
    }
}

/// What of the past to play, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastConfig {
    /// Time of capture to begin with, by the publisher's clock; `None`: live.
    pub from: Option<Timestamp>,
    /// How fast the past is played.
    pub speed: Speed,
    /// Whether to find out since when the past is kept, for a front-end that offers to go there: one Interest in 10 s.
    pub asks_since: bool,
}

/// Part of a large target that is left for frames to arrive, whatever the decoder wants.
const MIN_WAIT: Duration = Duration::from_millis(140);

/// How late a sample may come that is recorded, and transmissions of one Interest in that time.
const RECORDED_LATE: Duration = Duration::from_secs(2);
const RECORDED_ATTEMPTS: u32 = 8;

impl WatcherConfig {
    /// Waits for what comes late rather than pass over it: nobody looks at what is recorded while it comes.
    pub const fn prefer_completeness(&mut self) {
        self.consumer.late_tolerance = RECORDED_LATE;
        self.consumer.late_tolerance_standalone = RECORDED_LATE;
        self.consumer.max_attempts = RECORDED_ATTEMPTS;
    }

    /// Returns the kinds of streams to pull, the one that others follow first.
    pub(super) fn kinds(&self) -> impl Iterator<Item = StreamKind> + use<> {
        let video = self.video.then_some(StreamKind::Video);
        let audio = self.audio.then_some(StreamKind::Audio);
        let data = self.data.then_some(StreamKind::Data);
        [video, audio, data].into_iter().flatten()
    }

    /// Returns the streams of `catalogue`, which lists [`streams`](Self::streams) first, to pull.
    pub(super) fn wanted<'a>(
        &'a self,
        catalogue: &'a Catalogue,
    ) -> impl Iterator<Item = &'a StreamInfo> {
        self.kinds().flat_map(move |kind| {
            let of_kind = catalogue.streams.iter().filter(move |it| it.kind == kind);
            of_kind.enumerate().filter_map(move |(place, stream)| {
                let is_named = kind == StreamKind::Data && self.streams.contains(&stream.name);
                (place == 0 || is_named).then_some(stream)
            })
        })
    }

    /// Returns what to pull of `rung` of `info`.
    pub(super) fn source(&self, names: &StreamNames, info: &StreamInfo, rung: &Rung) -> Source {
        let source = Source::new(names, info, rung);
        match self.max_data_rate {
            Some(most) => source.at_most(most),
            None => source,
        }
    }

    /// Returns the bitrate of streams of `kind`.
    pub(super) fn choice(&self, kind: StreamKind) -> RungChoice {
        match kind {
            StreamKind::Video => self.rung.clone(),
            _ => RungChoice::Highest,
        }
    }

    /// Our wall clock now.
    pub(super) fn wall(&self, now: Instant) -> Timestamp {
        self.wall_at_zero + now.since(Instant::ZERO)
    }

    /// How long before it is shown a sample of a stream of this kind is delivered.
    pub(super) fn lead(&self, kind: StreamKind) -> Duration {
        match kind {
            StreamKind::Audio => self.audio_lead,
            // Nobody decodes it: it is delivered as soon as it is complete and in order.
            StreamKind::Data => self.target,
            // Half of a small target is left for the rung that playback changes over to: its frames are larger, so they
            // are complete later than those of the old rung, which would otherwise be delivered first for ever.
            StreamKind::Video | StreamKind::Other => {
                let most = self.target.saturating_sub(MIN_WAIT).max(self.target / 2);
                self.decode_lead.min(most)
            }
        }
    }
}

/// Which of a stream's bitrates to pull.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RungChoice {
    /// The highest that the network carries, and another one as soon as that changes.
    #[default]
    Auto,
    /// The one with the highest bitrate.
    Highest,
    /// The one with the lowest bitrate.
    Lowest,
    /// The one with this name; the highest if there is none.
    Label(String),
}

impl From<&str> for RungChoice {
    /// `auto`, `highest`, `lowest`, or a rung's name.
    fn from(name: &str) -> Self {
        match name {
            "auto" => Self::Auto,
            "highest" => Self::Highest,
            "lowest" => Self::Lowest,
            label => Self::Label(label.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 400 ms a decoder that wants 300 gets all but 140; of 100 and of 40 it gets half, and one that wants 40 gets them if it can.
    #[test]
    fn frames_have_time_to_arrive_whatever_the_decoder_wants() {
        let lead = |target, wanted| {
            let config = WatcherConfig {
                target: Duration::from_millis(target),
                decode_lead: Duration::from_millis(wanted),
                ..WatcherConfig::new(Name::root())
            };
            config.lead(StreamKind::Video).as_millis()
        };
        assert_eq!([lead(400, 300), lead(400, 200)], [260, 200]);
        assert_eq!([lead(100, 300), lead(100, 40)], [50, 40]);
        assert_eq!([lead(40, 300), lead(40, 40)], [20, 20]);
    }
}
