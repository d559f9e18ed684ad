//! Arguments of several commands.

use core::ops::RangeInclusive;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use namecast_units::{Duration, ParseQuantityError, parse_count};

/// How long a command runs, and what it tells.
#[derive(Clone, Debug, Default, Args)]
pub struct Run {
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Write one JSON object a second to this file, and a final one with "final": true.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Print what happens as JSON, one object a line.
    #[arg(long)]
    pub json: bool,
    /// Print errors only.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Reads `100ms`, `5s`, `10m30s` or plain seconds.
///
/// # Errors
/// What was expected.
pub fn parse_duration(text: &str) -> Result<Duration, ParseQuantityError> {
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    match !text.is_empty() && text.bytes().all(is_number) {
        true => namecast_units::parse_duration(&format!("{text}s")),
        false => namecast_units::parse_duration(text),
    }
}

/// Reads whole numbers of a range, which may be large: `500`, `20k`, `1.5M`.
pub fn number<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = parse_count(text).map_err(|error| error.to_string())?;
        let fitting = range.contains(&number).then(|| T::try_from(number).ok());
        fitting.flatten().ok_or_else(|| {
            let (least, most) = range.clone().into_inner();
            format!("{number} does not fit: write a number from {least} to {most}")
        })
    }
}

/// Reads an address with a port.
///
/// # Errors
/// What was expected.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let advice = |_| format!("'{text}' is no address: write ADDRESS:PORT, as in 127.0.0.1:6363");
    text.parse().map_err(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_range() {
        let port = number::<u16>(0..=65_535);
        assert_eq!(port("1.5k"), Ok(1_500));
        assert!(port("66k").unwrap_err().ends_with("from 0 to 65535"));
        for wrong in ["-1", "abc", "1e99", "", "1.5"] {
            assert!(port(wrong).unwrap_err().contains("write 500"), "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("10m30s"), Ok(Duration::from_secs(630)));
        assert!(parse_duration("-1s").is_err() && parse_duration("1y").is_err());
        assert!(parse_duration("1m 3").is_err() && parse_duration("").is_err());
    }
}
