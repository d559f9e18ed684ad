//! Arguments of several commands.

use std::path::PathBuf;

use clap::Args;
use namecast_units::{Duration, ParseQuantityError};

/// How long a command runs, and what it tells.
#[derive(Clone, Debug, Args)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("10m30s"), Ok(Duration::from_secs(630)));
        assert!(parse_duration("-1s").is_err() && parse_duration("1y").is_err());
        assert!(parse_duration("1m 3").is_err() && parse_duration("").is_err());
    }
}
