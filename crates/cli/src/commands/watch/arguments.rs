//! What may be typed after `namecast watch`.

use chrono::{DateTime, Local, NaiveDateTime, Utc};
use clap::Args;
use namecast_command::{Run, parse_duration};
use namecast_media::record::Destination;
use namecast_packet::Name;
use namecast_stream::Profile;
use namecast_stream::path::Control;
use namecast_stream::rate::RateControl;
use namecast_units::{Duration, Timestamp};

use crate::arguments::{Keys, Trusted};
use crate::connect::Connect;
use crate::rules::Rules;
use crate::telemetry::Observation;

/// `namecast watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast watch /cam --output - | ffplay -
  namecast watch /cam --output film.mkv --duration 10m
  namecast watch /cam --rung highest --json               what happens, as JSON; frames go nowhere
  namecast watch /cam --from -60s --output - | ffplay -   from an archive: what was a minute ago
  namecast watch /cam --from '2026-05-01 12:00' --output noon.mp4
  namecast watch /cam --key cam.cert                      signed by this key alone
  namecast watch /calls/fox/ann --schema /calls/fox --key DIGEST    of a room, sealed or not
  namecast watch /cam --profile rtsd --json               as NDN-RTC watched, to compare

With --output -, what happens goes to standard error or with --stats to a file, never as --json between the frames.

Exits with 1 where nothing came: for 15 seconds, or in all the time of --duration; or where the publisher has no such --rung, or
nothing is kept of --from. Exits with 3 where live was wanted and what came last was a recording.")]
pub struct Watch {
    /// Name that was published, such as /cam.
    pub name: Name,
    /// Write what is received, as it was encoded: to a file ending in .mp4, .mkv, .webm, .ts, .flv, .nut or .h264, to standard output
    /// as NUT ('-', which ffplay plays), as HLS into a directory (hls:DIR), or to a server (rtsp://, srt://, rtmp://).
    #[arg(short, long, value_name = "FILE|-|hls:DIR|URL")]
    pub output: Option<Destination>,
    /// How the stream is watched, in all parts: namecast, or rtsd, as in the paper on NDN-RTC: newest frames found by the gaps between
    /// arrivals, one retransmission, a target of twice the round trip and its jitter, bitrates found by trial.
    #[arg(long, default_value_t)]
    pub profile: Profile,
    /// Time between the earliest moment a frame can be here and the moment it is shown. Without: 100ms, or what the profile finds.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub target: Option<Duration>,
    /// Bitrate to watch: auto is the highest that the network carries, as it changes; else highest, lowest, or one of the
    /// publisher's, such as 1M. Without: highest for what is written, else auto.
    #[arg(long)]
    pub rung: Option<String>,
    /// Stream to watch where there are several of a kind: video-2, audio-2, or data streams, whose samples are printed as lines.
    /// Without: the first of each kind. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub stream: Vec<String>,
    /// Begin in the past, which needs an archive: a time before now, as -60s; '2026-05-01 12:00' of this machine's time zone,
    /// 2026-05-01T12:00:00Z, or seconds since 1970.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<PastTime>,
    /// Leave sound out.
    #[arg(long)]
    pub no_audio: bool,
    /// What bounds requests: live, arc, copa, cubic, rate:5M, window:50, …; a wrong name gets the list. Without: that of the profile,
    /// which is live, or for rtsd a window that no stream fills.
    #[arg(long, value_parser = parse_controller)]
    pub controller: Option<Control>,
    /// Whose signature counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// Which key may sign which name. With the name of a room, sealed streams are opened with the keys of this machine's members.
    #[command(flatten)]
    pub rules: Rules,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
    /// The forwarder to ask.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
}

/// A controller's name, or a bitrate alone, which is `rate:` with it.
fn parse_controller(text: &str) -> Result<Control, <Control as core::str::FromStr>::Err> {
    match text.parse() {
        Ok(rate) => Ok(Control::Rate(RateControl::Rate { rate })),
        Err(_) => text.parse(),
    }
}

/// A time in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastTime {
    /// That time.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl PastTime {
    /// The time, if it is `now`.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(span) => {
                let span = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
                Timestamp::from_micros(now.as_micros().saturating_sub(span))
            }
        }
    }
}

impl core::str::FromStr for PastTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(ago) = text.strip_prefix('-') {
            return parse_duration(ago)
                .map(Self::Ago)
                .map_err(|error| error.to_string());
        }
        let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
        let micros = match seconds {
            Some(span) => span
                .ok()
                .and_then(|span| u64::try_from(span.as_micros()).ok()),
            None => moment(text).and_then(|time| u64::try_from(time.timestamp_micros()).ok()),
        };
        let at = micros.map(|micros| Self::At(Timestamp::from_micros(micros)));
        at.ok_or_else(|| {
            format!(
                "'{text}' is no time: write -60s, '2026-05-01 12:00' of this machine's time zone, 2026-05-01T12:00:00Z, or seconds \
                 since 1970"
            )
        })
    }
}

/// A time with its time zone, or without one a time of this machine's; the earlier one where its clocks were put back.
fn moment(text: &str) -> Option<DateTime<Utc>> {
    let zoned = ["%Y-%m-%d %H:%M:%S%.f %#z", "%Y-%m-%d %H:%M %#z", "%+"];
    let zoned = zoned
        .iter()
        .find_map(|form| DateTime::parse_from_str(text, form).ok());
    let local = [
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M",
    ];
    let local = || {
        let time = local
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())?;
        Some(time.and_local_timezone(Local).earliest()?.to_utc())
    };
    zoned.map(|time| time.to_utc()).or_else(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_the_past() {
        let noon = Timestamp::from_micros(1_777_636_800_500_000);
        let at = Ok(PastTime::At(noon));
        assert_eq!("2026-05-01T12:00:00.5Z".parse(), at);
        assert_eq!("2026-05-01T14:00:00.5+02:00".parse(), at);
        assert_eq!("2026-05-01 14:00:00.5 +02:00".parse(), at);
        assert_eq!("1777636800.5".parse(), at);
        let ago: PastTime = "-60s".parse().unwrap();
        assert_eq!(ago, PastTime::Ago(Duration::from_secs(60)));
        let before = Timestamp::from_micros(1_777_636_740_500_000);
        assert_eq!(ago.resolve(noon), before);
        for wrong in ["", "noon", "2026-05-01", "1e300", "-1y"] {
            assert!(wrong.parse::<PastTime>().is_err(), "{wrong}");
        }
        // What people read can be written, to the second; without its time zone it is this machine's.
        let told = namecast_command::report::local(noon);
        let whole = Ok(PastTime::At(Timestamp::from_micros(1_777_636_800_000_000)));
        assert_eq!(told.parse(), whole);
        assert_eq!(told[..19].parse(), whole);
    }

    #[test]
    fn controllers_have_names_and_a_bitrate_is_one() {
        let rate = namecast_units::Bitrate::mbps(5);
        for text in ["5M", "rate:5M"] {
            let control = Control::Rate(RateControl::Rate { rate });
            assert_eq!(parse_controller(text).unwrap(), control);
        }
        assert_eq!(parse_controller("live").unwrap(), Control::Live);
        assert!(parse_controller("unlimited").is_err());
        let error = parse_controller("fast").unwrap_err().to_string();
        assert!(error.contains("'fast' is no controller: write one of arc, "));
    }
}
