//! What may be typed after `namecast watch`.

use std::path::PathBuf;

use clap::Args;
use namecast_command::{Run, parse_duration};
use namecast_packet::Name;
use namecast_units::{Duration, Timestamp};

use crate::arguments::Trusted;
use crate::connect::Connect;

/// `namecast watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Name that was published, such as /cam.
    pub name: Name,
    /// Write what is received: '-' is standard output. NAME.h264 (or .264) takes the bare video; '-' and NAME.nut take the NUT
    /// container with sound, which ffplay plays; anything else is made by ffmpeg without encoding again (.mkv, .mp4, .ts).
    #[arg(short, long, value_name = "FILE|-")]
    pub output: Option<PathBuf>,
    /// Time between the earliest moment a frame can be here and the moment it is shown.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    pub target: Duration,
    /// Bitrate to watch: auto is the highest that the network carries, as it changes; else highest, lowest, or one of the
    /// publisher's, such as 1M.
    #[arg(long, default_value = "auto")]
    pub rung: String,
    /// Begin in the past, which needs an archive: a time of day as in 2026-05-01T12:00:00Z, seconds since 1970, or a time
    /// before now, as -60s.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<PastTime>,
    /// Leave sound out.
    #[arg(long)]
    pub no_audio: bool,
    /// What bounds requests: live, arc, copa, cubic, rate:5M, window:50, …; a wrong name gets the list.
    #[arg(long, default_value = "live")]
    pub controller: String,
    /// Whose signature counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// The forwarder to ask.
    #[command(flatten)]
    pub connect: Connect,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
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
            None => chrono::DateTime::parse_from_rfc3339(text)
                .ok()
                .and_then(|time| u64::try_from(time.timestamp_micros()).ok()),
        };
        let at = micros.map(|micros| Self::At(Timestamp::from_micros(micros)));
        at.ok_or_else(|| {
            format!("'{text}' is no time: write 2026-05-01T12:00:00Z, -60s, or seconds since 1970")
        })
    }
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
        assert_eq!("1777636800.5".parse(), at);
        let ago: PastTime = "-60s".parse().unwrap();
        assert_eq!(ago, PastTime::Ago(Duration::from_secs(60)));
        let before = Timestamp::from_micros(1_777_636_740_500_000);
        assert_eq!(ago.resolve(noon), before);
        for wrong in ["", "noon", "2026-05-01", "1e300", "-1y"] {
            assert!(wrong.parse::<PastTime>().is_err(), "{wrong}");
        }
    }
}
