//! Who publishes what, who watches it, and what changes meanwhile.

use std::collections::BTreeMap;

use namecast_apps::live::WatcherConfig;
use namecast_apps::live::watcher::RungChoice;
use namecast_packet::Name;
use namecast_stream::consumer::{
    RecoveryProfile, StabilityClass, SynchroniserConfig, SynchroniserProfile,
};
use namecast_stream::ladder::{LadderConfig, LadderProfile, challenge};
use namecast_stream::path::Control;
use namecast_stream::rate::arc;
use namecast_stream::{InterFrameFec, Profile, SampleRate, StreamKind};
use namecast_units::{Bitrate, ByteSize, Duration};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::super::{choice::Choice, flows::Flow};
use super::written;
use crate::live::{Media, MediaRung, SizeShape};

/// How packets are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// With Ed25519, as on sockets.
    #[default]
    Ed25519,
    /// With HMACs, for runs of hours. Leads are 32 octets shorter.
    Hmac,
}

/// One publisher, or `count` of them: `{}` in a prefix or a node's name stands for their number, from 1 on. Those with one prefix
/// and `shared` give one and the same stream; copies have frames of other sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PublisherSpec {
    /// How many.
    #[default(1)]
    pub count: u32,
    /// Node it runs on.
    #[default("P".to_owned())]
    pub node: String,
    /// Name that it publishes under.
    #[default("/stream".to_owned())]
    pub prefix: String,
    /// When the first frame is captured.
    #[serde(with = "namecast_units::duration")]
    pub start: Duration,
    /// Up to how much later that is, drawn for each.
    #[serde(with = "namecast_units::duration")]
    pub start_spread: Duration,
    /// When it dies, if it does.
    #[serde(with = "namecast_units::optional_duration")]
    pub stop: Option<Duration>,
    /// Octets of headers that each packet of a frame has at least, but for the first, which is signed: packets are filled up, as with
    /// longer names or more signatures.
    pub headers: u32,
    /// Whether others publish the same stream.
    pub shared: bool,
    /// Node from which somebody calls the publisher's host when it starts: two people who speak all the time, once for all copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// What it publishes.
    #[default(vec![StreamSpec::default()])]
    pub streams: Vec<StreamSpec>,
}

impl PublisherSpec {
    /// Copy `number`, from 1 on.
    pub(super) fn copy(&self, number: u32) -> Self {
        Self {
            count: 1,
            node: Flow::named(&self.node, number),
            prefix: Flow::named(&self.prefix, number),
            ..self.clone()
        }
    }
}

/// One stream. What is not given is that of \[RTSD\] §5: see [`Media::video`] and [`Media::audio`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StreamSpec {
    /// Video or audio.
    #[default(StreamKind::Video)]
    pub kind: StreamKind,
    /// Frames per second.
    pub rate: Option<u32>,
    /// Frames from key to key.
    pub key_interval: Option<u32>,
    /// Size of a key frame in delta frames.
    pub key_factor: Option<f64>,
    /// Standard deviation of sizes, as a share of their mean.
    pub deviation: Option<f64>,
    /// How sizes are distributed: `normal` or `uniform-deltas`.
    pub sizes: SizeShape,
    /// Bitrates.
    pub rungs: Option<Vec<Bitrate>>,
    /// How good the rungs' pictures are, in the same order, as `namecast experiment quality` measures it: `{ psnr = [30.1, 35.2] }`.
    /// None if not given.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quality: BTreeMap<String, Vec<f64>>,
    /// Octets of Content that segments aim at.
    pub segment_size: Option<u32>,
    /// Parity segments per hundred data segments.
    pub parity: Option<u32>,
    /// Inter-frame FEC on offer: `{ samples = 4, parity = 2 }`. None if not given.
    #[serde(rename = "across")]
    pub inter_frame: Option<InterFrameFec>,
}

impl StreamSpec {
    /// The stream, with sizes from `seed`.
    pub fn media(&self, seed: u64) -> Media {
        let defaults = match self.kind {
            StreamKind::Audio => Media::audio(),
            StreamKind::Video | StreamKind::Data | StreamKind::Other => Media::video(),
        };
        let rungs = self.rungs.as_ref().map(|rungs| {
            let rung = |rate: &Bitrate| MediaRung::new(&label(*rate), *rate);
            rungs.iter().map(rung).collect()
        });
        Media {
            rate: self
                .rate
                .map_or(defaults.rate, |rate| SampleRate::new(rate, 1)),
            key_interval: self.key_interval.unwrap_or(defaults.key_interval),
            key_factor: self.key_factor.unwrap_or(defaults.key_factor),
            deviation: self.deviation.unwrap_or(defaults.deviation),
            sizes: self.sizes,
            rungs: rungs.unwrap_or(defaults.rungs),
            quality: self.quality.clone(),
            segment_size: self.segment_size.unwrap_or(defaults.segment_size),
            parity_percent: self.parity.unwrap_or(defaults.parity_percent),
            inter_frame: self.inter_frame,
            seed,
            ..defaults
        }
    }

    /// # Errors
    /// The field at fault and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let media = self.media(0);
        let wrong = |field, expected: &str| Err((field, expected.to_owned()));
        if matches!(self.kind, StreamKind::Data | StreamKind::Other) {
            return wrong("kind", "expected 'video' or 'audio'");
        }
        if !(1..=1_000).contains(&media.rate.num) {
            return wrong("rate", "expected 1 to 1000");
        }
        if media.key_interval == 0 {
            return wrong("key-interval", "expected at least 1");
        }
        if !(0.1..=100.0).contains(&media.key_factor) {
            return wrong("key-factor", "expected 0.1 to 100");
        }
        // Sizes are cut off at three deviations, and must stay positive.
        if !(0.0..=0.33).contains(&media.deviation) {
            return wrong("deviation", "expected 0 to 0.33");
        }
        if !media.inter_frame.is_none_or(InterFrameFec::is_valid) {
            return wrong("across", "expected 1 to 8 shards for 2 to 32 samples");
        }
        let info = media.info();
        let catalogue = namecast_stream::Catalogue {
            version: 0,
            starts: Default::default(),
            title: None,
            signer: String::new(),
            streams: vec![info],
        };
        if media.rungs.is_empty() {
            return wrong("rungs", "expected at least one bitrate");
        }
        for (measure, figures) in &media.quality {
            if measure.is_empty() || measure.contains([' ', '/', '*']) {
                let problem = "expected names of measures without spaces, '/' and '*'";
                return wrong("quality", problem);
            }
            let (found, rungs) = (figures.len(), media.rungs.len());
            if found != rungs || figures.iter().any(|figure| !figure.is_finite()) {
                let problem = format!("expected {rungs} numbers, one for each rung, not {found}");
                return Err(("quality", format!("{measure}: {problem}")));
            }
        }
        let valid = catalogue.validate();
        valid.map_err(|error| ("rungs", error.to_string()))
    }
}

/// How people call a bitrate: `200k`, `1M`, `1500k`.
fn label(rate: Bitrate) -> String {
    match rate.as_bps() {
        bps if bps % 1_000_000 == 0 => format!("{}M", bps / 1_000_000),
        bps if bps % 1_000 == 0 => format!("{}k", bps / 1_000),
        bps => bps.to_string(),
    }
}

/// One watcher, or `count` of them: `{}` in a prefix or a node's name stands for their number, from 1 on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WatcherSpec {
    /// How many; a sweep may say none.
    #[default(1)]
    pub count: u32,
    /// Node it runs on.
    #[default("C".to_owned())]
    pub node: String,
    /// Name that it watches.
    #[default("/stream".to_owned())]
    pub prefix: String,
    /// When it joins.
    #[serde(with = "namecast_units::duration")]
    pub start: Duration,
    /// Up to how much later it joins, drawn for each.
    #[serde(with = "namecast_units::duration")]
    pub start_spread: Duration,
    /// How much later each copy joins than the one before.
    #[serde(with = "namecast_units::duration")]
    pub stagger: Duration,
    /// When it leaves, if before the end.
    #[serde(with = "namecast_units::optional_duration")]
    pub stop: Option<Duration>,
    /// How it works, in all its parts: `namecast` or `rtsd`. What is given of `target`, `ladder`, `controller`, `synchroniser`, `recovery` and
    /// `max-attempts` goes before it.
    #[serde(with = "written")]
    pub profile: Profile,
    /// Whether it pulls audio, too.
    pub audio: bool,
    /// Whether it pulls video.
    #[default(true)]
    pub video: bool,
    /// From the earliest moment at which a frame could be here to the moment it is shown. Else that of the profile: 100 ms, or what
    /// the path is like; metrics that need to know it are then left out.
    #[serde(with = "namecast_units::optional_duration")]
    pub target: Option<Duration>,
    /// Bitrate of the video: `auto` (the highest that the network carries), `highest`, `lowest` or a rung's name, such as `1M`.
    #[default("auto".to_owned())]
    pub rung: String,
    /// How `auto` chooses.
    pub ladder: LadderSpec,
    /// The rung that it is to reach, for the metrics `goal-…`.
    pub goal: Option<String>,
    /// What decides how fast Data is asked for.
    pub controller: Option<Choice<Control>>,
    /// How it finds the newest frames and decides how many to ask for ahead.
    pub synchroniser: SynchroniserSpec,
    /// How it repairs what was lost.
    pub recovery: RecoverySpec,
    /// Transmissions of one Interest, the first included.
    pub max_attempts: Option<u32>,
    /// Whether it shares an uplink with others of its node that do, as the watchers of one program. Their Interests are counted together.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub shared_uplink: bool,
    /// Size of an object that it fetches over its uplink while it watches; whoever publishes the stream serves it. None: it fetches nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ByteSize>,
}

/// How a watcher chooses the bitrate by itself: [`LadderConfig`] as a file writes it. All but the profile are for `paper`; what
/// is not given is that of [`challenge::Config`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LadderSpec {
    /// How it works: `namecast` or `paper`.
    #[serde(with = "written::optional", skip_serializing_if = "Option::is_none")]
    pub profile: Option<LadderProfile>,
    /// Time from one Challenge to the next.
    #[serde(with = "namecast_units::optional_duration")]
    pub period: Option<Duration>,
    /// Share by which the estimate must exceed what a higher rung needs.
    pub hysteresis: Option<f64>,
    /// Whether congestion ends a Challenge.
    pub aborts: Option<bool>,
    /// Readings of ARC: `literal` or `resolved`.
    pub arc: Option<arc::Profile>,
}

impl LadderSpec {
    /// # Errors
    /// The field at fault and what is wrong with it.
    pub(super) fn check(&self, profile: Profile) -> Result<(), (&'static str, String)> {
        let is_share = |share: f64| (0.0..=10.0).contains(&share);
        if !self.hysteresis.is_none_or(is_share) {
            return Err(("hysteresis", "expected 0 to 10".to_owned()));
        }
        let others = self.period.is_some() || self.hysteresis.is_some();
        let others = others || self.aborts.is_some() || self.arc.is_some();
        match self.config(profile) {
            LadderConfig::Live(_) if others => {
                Err(("profile", "expected 'paper' with what is given".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn config(&self, profile: Profile) -> LadderConfig {
        let defaults = match (self.profile, profile.ladder()) {
            (Some(LadderProfile::Namecast), _) => return LadderConfig::default(),
            (Some(LadderProfile::Paper), LadderConfig::Live(_)) => challenge::Config::default(),
            (None, live @ LadderConfig::Live(_)) => return live,
            (_, LadderConfig::Paper(config)) => config,
        };
        LadderConfig::Paper(challenge::Config {
            period: self.period.unwrap_or(defaults.period),
            hysteresis: self.hysteresis.unwrap_or(defaults.hysteresis),
            aborts: self.aborts.unwrap_or(defaults.aborts),
            arc: self.arc.map_or(defaults.arc, arc::Config::of),
        })
    }
}

/// How a watcher repairs what was lost: [`RecoveryConfig`](namecast_stream::consumer::RecoveryConfig) as a file writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecoverySpec {
    /// How it works: `namecast`, `paper` or `timers`.
    #[serde(with = "written::optional", skip_serializing_if = "Option::is_none")]
    pub profile: Option<RecoveryProfile>,
    /// Copies of a lead that may be asked for.
    pub lead_copies: Option<usize>,
    /// Whether inter-frame FEC is made use of.
    #[serde(rename = "across")]
    pub inter_frame: Option<bool>,
}

/// How a watcher synchronises: [`SynchroniserConfig`] as a file writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SynchroniserSpec {
    /// How it works: `namecast`, `paper` or `code-1.4.4`.
    #[serde(with = "written::optional", skip_serializing_if = "Option::is_none")]
    pub profile: Option<SynchroniserProfile>,
    /// λ₀: samples asked for ahead at the start.
    pub initial_lead: Option<u64>,
    /// When gaps between arrivals count as even: `low`, `medium` or `high`.
    #[serde(with = "written")]
    pub stability: StabilityClass,
    /// Time that an adjustment is given to show its effect.
    #[serde(with = "namecast_units::optional_duration")]
    pub detection_period: Option<Duration>,
    /// How old the first answer about the newest samples is.
    #[serde(with = "namecast_units::duration")]
    pub staleness: Duration,
}

impl WatcherSpec {
    /// From the earliest moment at which a frame could be here to the moment it is shown; `None` if the watcher lets that go by the path.
    pub fn target(&self) -> Option<Duration> {
        let own = Duration::from_millis(100);
        let of_profile = self.profile.target().is_none().then_some(own);
        self.target.or(of_profile)
    }

    /// Name of the node of copy `number`.
    pub fn node(&self, number: u32) -> String {
        Flow::named(&self.node, number)
    }

    /// Name that copy `number` watches.
    pub fn prefix(&self, number: u32) -> String {
        Flow::named(&self.prefix, number)
    }

    /// The stream that metrics are of.
    pub const fn main_kind(&self) -> StreamKind {
        if self.video {
            StreamKind::Video
        } else {
            StreamKind::Audio
        }
    }

    /// Returns what a watcher of `root` is told.
    ///
    /// # Errors
    /// Nothing has the controller's name.
    pub fn config(&self, root: Name, seed: u64) -> Result<WatcherConfig, String> {
        let defaults = WatcherConfig::of(root, self.profile);
        let mut consumer = defaults.consumer.clone();
        consumer.max_attempts = self.max_attempts.unwrap_or(consumer.max_attempts);
        consumer.recovery.profile = self.recovery.profile.unwrap_or(consumer.recovery.profile);
        if let Some(copies) = self.recovery.lead_copies {
            consumer.recovery.lead_copies = copies;
        }
        if let Some(inter_frame) = self.recovery.inter_frame {
            consumer.recovery.inter_frame = inter_frame;
        }
        consumer.synchroniser = SynchroniserConfig {
            profile: (self.synchroniser.profile).unwrap_or(consumer.synchroniser.profile),
            initial_lead: self.synchroniser.initial_lead,
            stability: self.synchroniser.stability,
            detection_period: self.synchroniser.detection_period,
            staleness: self.synchroniser.staleness,
        };
        Ok(WatcherConfig {
            video: self.video,
            audio: self.audio,
            rung: RungChoice::from(&*self.rung),
            ladder: self.ladder.config(self.profile),
            target: self.target.unwrap_or(defaults.target),
            adaptive_target: defaults.adaptive_target.filter(|_| self.target.is_none()),
            control: match &self.controller {
                Some(controller) => controller.get()?,
                None => defaults.control,
            },
            seed,
            consumer,
            ..defaults
        })
    }
}

/// A change under way: of a link (both directions unless it says which), of a node, of a publisher, or of a watcher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StreamChange {
    /// When.
    #[serde(with = "namecast_units::duration")]
    pub at: Duration,
    /// Up to how much later, drawn for each run.
    #[serde(with = "namecast_units::duration")]
    pub spread: Duration,
    /// The link, as `R1-R2` for both directions or `R1>R2` for one.
    pub link: Option<String>,
    /// The node: it forgets its tables when it fails.
    pub node: Option<String>,
    /// The publisher's place in the list, from 1: it dies, or starts anew.
    pub publisher: Option<usize>,
    /// The watcher's place among all, copies included, from 1.
    pub watcher: Option<usize>,
    /// The watcher's weight from then on.
    pub weight: Option<u8>,
    /// A link's rate from then on.
    pub rate: Option<Bitrate>,
    /// A link's delay from then on.
    #[serde(with = "namecast_units::optional_duration")]
    pub delay: Option<Duration>,
    /// Whether it is up from then on.
    pub up: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_named_as_people_do() {
        let names = [200_000, 1_000_000, 1_500_000, 999].map(|bps| label(Bitrate::bps(bps)));
        assert_eq!(names, ["200k", "1M", "1500k", "999"]);
    }

    #[test]
    fn a_profile_is_a_whole_consumer_and_what_is_given_goes_before_it() {
        let read = |text: &str| {
            let spec = toml::from_str::<WatcherSpec>(text).unwrap();
            let config = spec.config("/stream".parse().unwrap(), 1).unwrap();
            (spec.target(), config)
        };
        let (target, rtsd) = read("profile = 'rtsd'");
        assert_eq!(target, None);
        assert_eq!(rtsd.adaptive_target, Profile::Rtsd.target());
        assert_eq!(rtsd.ladder, Profile::Rtsd.ladder());
        assert_eq!(rtsd.control, Profile::Rtsd.control());
        let profiles = |config: &WatcherConfig| {
            let consumer = &config.consumer;
            (consumer.synchroniser.profile, consumer.recovery.profile)
        };
        let paper = (SynchroniserProfile::Paper, RecoveryProfile::Paper);
        assert_eq!((profiles(&rtsd), rtsd.consumer.max_attempts), (paper, 2));
        let (target, mixed) = read(
            "profile = 'rtsd'\ntarget = '250 ms'\ncontroller = 'live'\nmax-attempts = 1\nladder = { aborts = false }\n\
             synchroniser = { profile = 'namecast' }",
        );
        assert_eq!(target, Some(Duration::from_millis(250)));
        assert_eq!(
            (mixed.target, mixed.adaptive_target),
            (target.unwrap(), None)
        );
        assert_eq!(mixed.control, Control::Live);
        let namecast = (SynchroniserProfile::Namecast, RecoveryProfile::Paper);
        assert_eq!(
            (profiles(&mixed), mixed.consumer.max_attempts),
            (namecast, 1)
        );
        assert!(matches!(mixed.ladder, LadderConfig::Paper(ladder) if !ladder.aborts));
        // Without one, ours.
        let (target, ours) = read("");
        assert_eq!(
            (target, ours.adaptive_target),
            (Some(Duration::from_millis(100)), None)
        );
        assert_eq!(profiles(&ours), Default::default());
        assert!(toml::from_str::<WatcherSpec>("profile = 'paper'").is_err());
    }

    #[test]
    fn a_ladder_is_what_is_written_and_else_the_papers() {
        let read = |text: &str| toml::from_str::<LadderSpec>(text).unwrap();
        assert_eq!(read("").config(Profile::Namecast), LadderConfig::default());
        let defaults = challenge::Config::default();
        let paper = read("profile = 'paper'");
        assert_eq!(
            paper.config(Profile::Namecast),
            LadderConfig::Paper(defaults)
        );
        assert_eq!(paper.check(Profile::Namecast), Ok(()));
        let text =
            "profile = 'paper'\nperiod = '3 s'\nhysteresis = 0.0\naborts = false\narc = 'literal'";
        let expected = challenge::Config {
            period: Duration::from_secs(3),
            hysteresis: 0.0,
            aborts: false,
            arc: arc::Config::literal(),
        };
        assert_eq!(
            read(text).config(Profile::Namecast),
            LadderConfig::Paper(expected)
        );
        let field = |text| read(text).check(Profile::Namecast).unwrap_err().0;
        assert_eq!(field("profile = 'paper'\nhysteresis = -0.1"), "hysteresis");
        assert_eq!(field("profile = 'paper'\nhysteresis = nan"), "hysteresis");
        assert_eq!(field("aborts = true"), "profile");
        assert!(toml::from_str::<LadderSpec>("profile = 'ours'").is_err());
    }

    #[test]
    fn streams_out_of_bounds_are_refused_with_their_field() {
        let field = |spec: StreamSpec| spec.check().unwrap_err().0;
        assert_eq!(StreamSpec::default().check(), Ok(()));
        let with = |change: fn(&mut StreamSpec)| {
            let mut spec = StreamSpec::default();
            change(&mut spec);
            field(spec)
        };
        assert_eq!(with(|s| s.kind = StreamKind::Other), "kind");
        assert_eq!(with(|s| s.rate = Some(0)), "rate");
        assert_eq!(with(|s| s.key_interval = Some(0)), "key-interval");
        assert_eq!(with(|s| s.key_factor = Some(f64::NAN)), "key-factor");
        assert_eq!(with(|s| s.deviation = Some(0.5)), "deviation");
        assert_eq!(with(|s| s.rungs = Some(Vec::new())), "rungs");
        let (samples, parity) = (1, 1);
        let inter_frame = Some(InterFrameFec { samples, parity });
        assert_eq!(
            field(StreamSpec {
                inter_frame,
                ..StreamSpec::default()
            }),
            "across"
        );
        assert_eq!(with(|s| s.segment_size = Some(9_000)), "rungs");
    }
}
