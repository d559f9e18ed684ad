//! The hops for all names that there are, and what files call them.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use namecast_units::{Duration, parse_duration};

use super::{
    AnyNext, AnyNextConfig, Hop, HopCount, PathLabels, PathLabelsConfig, Piggyback,
    PiggybackConfig, RateEstimator, RateFeedback, RateFeedbackConfig,
};

/// A hop that sees the packets of all names, as configuration files and experiments choose it: by a word, and by parameters
/// that differ from the defaults, as in `rate-feedback/window~24`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NamedHop {
    /// Hop count and source of Data.
    HopCount,
    /// These and rate tags.
    RateFeedback(RateFeedbackConfig),
    /// Paths that consumers find and take.
    PathLabels(PathLabelsConfig),
    /// Data and an Interest in one packet.
    Piggyback(PiggybackConfig),
    /// Requests for any next packets.
    AnyNext(AnyNextConfig),
}

/// Why a text names no hop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HopNameError {
    /// The word is none that we know.
    #[error("write hop-count, rate-feedback, path-labels, piggyback or any-next")]
    Unknown,
    /// The hop has no such parameter.
    #[error("{0:?} is not a parameter of this hop: write {1}")]
    Parameter(String, &'static str),
    /// The value is not in its range.
    #[error("{0}: write {1}")]
    Value(&'static str, &'static str),
}

/// Packets over which rates are measured.
const WINDOW: RangeInclusive<usize> = RateFeedbackConfig::WINDOWS;
/// Longest that packets may wait for others to travel with: a packet of sound.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// Bounds of tables that files may state.
const BOUND: RangeInclusive<usize> = 1..=1 << 20;

impl NamedHop {
    /// Makes the hop of one forwarder.
    pub fn build(self) -> Box<dyn Hop> {
        match self {
            Self::HopCount => Box::new(HopCount),
            Self::RateFeedback(config) => Box::new(RateFeedback::new(config).unwrap_or_default()),
            Self::PathLabels(config) => Box::new(PathLabels::new(config)),
            Self::Piggyback(config) => Box::new(Piggyback::new(config)),
            Self::AnyNext(config) => Box::new(AnyNext::new(config)),
        }
    }

    fn set(&mut self, parameter: &str, value: &str) -> Result<(), HopNameError> {
        let unknown = |known| HopNameError::Parameter(parameter.to_owned(), known);
        match self {
            Self::HopCount => Err(unknown("the word alone")),
            Self::RateFeedback(config) => match parameter {
                "window" => number(&mut config.window, value, WINDOW, ("window", "3 to 1024")),
                "max-flows" => number(
                    &mut config.max_flows,
                    value,
                    BOUND,
                    ("max-flows", "a number from 1"),
                ),
                "weight" => {
                    let weight = value
                        .parse()
                        .ok()
                        .filter(|weight| *weight > 0.0 && *weight <= 1.0);
                    let range = "more than 0, and 1 at most";
                    config.weight = weight.ok_or(HopNameError::Value("weight", range))?;
                    Ok(())
                }
                "estimator" => {
                    config.estimator = match value {
                        "intervals" => RateEstimator::Intervals,
                        "packets" => RateEstimator::Packets,
                        _ => return Err(HopNameError::Value("estimator", "intervals or packets")),
                    };
                    Ok(())
                }
                _ => Err(unknown("window, weight, estimator or max-flows")),
            },
            Self::PathLabels(config) => set_labels(config, (parameter, value)),
            Self::Piggyback(config) => set_piggyback(config, (parameter, value)),
            Self::AnyNext(config) => set_any_next(config, (parameter, value)),
        }
    }
}

fn set_labels(
    config: &mut PathLabelsConfig,
    (parameter, value): (&str, &str),
) -> Result<(), HopNameError> {
    match parameter {
        "max-turns" => number(
            &mut config.max_turns,
            value,
            BOUND,
            ("max-turns", "a number from 1"),
        ),
        "discoveries" => {
            let mut per_second = 0;
            number(
                &mut per_second,
                value,
                BOUND,
                ("discoveries", "so many a second, from 1"),
            )?;
            config.discoveries.per_second = per_second as u32;
            config.discoveries.burst = 2 * per_second as u32;
            Ok(())
        }
        _ => Err(HopNameError::Parameter(
            parameter.to_owned(),
            "discoveries or max-turns",
        )),
    }
}

fn set_piggyback(
    config: &mut PiggybackConfig,
    (parameter, value): (&str, &str),
) -> Result<(), HopNameError> {
    let from_one = |parameter| (parameter, "a number from 1");
    match parameter {
        "wait" => {
            let wait = parse_duration(value).ok().filter(|wait| *wait <= MAX_WAIT);
            config.wait = wait.ok_or(HopNameError::Value("wait", "a time up to 20ms"))?;
            Ok(())
        }
        "max-waiting" => number(
            &mut config.max_waiting,
            value,
            BOUND,
            from_one("max-waiting"),
        ),
        "max-flows" => number(&mut config.max_flows, value, BOUND, from_one("max-flows")),
        _ => Err(HopNameError::Parameter(
            parameter.to_owned(),
            "wait, max-waiting or max-flows",
        )),
    }
}

fn set_any_next(
    config: &mut AnyNextConfig,
    (parameter, value): (&str, &str),
) -> Result<(), HopNameError> {
    const FLOWS: &str = "max-flows-of-face";
    const COUNTERS: &str = "max-counters";
    let expected = "a number from 1";
    match parameter {
        FLOWS => number(
            &mut config.max_flows_of_face,
            value,
            BOUND,
            (FLOWS, expected),
        ),
        COUNTERS => number(&mut config.max_counters, value, BOUND, (COUNTERS, expected)),
        _ => Err(HopNameError::Parameter(
            parameter.to_owned(),
            "max-flows-of-face or max-counters",
        )),
    }
}

fn number(
    to: &mut usize,
    value: &str,
    range: RangeInclusive<usize>,
    (parameter, expected): (&'static str, &'static str),
) -> Result<(), HopNameError> {
    let value = value.parse().ok().filter(|value| range.contains(value));
    *to = value.ok_or(HopNameError::Value(parameter, expected))?;
    Ok(())
}

impl FromStr for NamedHop {
    type Err = HopNameError;

    fn from_str(text: &str) -> Result<Self, HopNameError> {
        let mut parts = text.split('/');
        let mut hop = match parts.next() {
            Some("hop-count") => Self::HopCount,
            Some("rate-feedback") => Self::RateFeedback(RateFeedbackConfig::default()),
            Some("path-labels") => Self::PathLabels(PathLabelsConfig::default()),
            Some("piggyback") => Self::Piggyback(PiggybackConfig::default()),
            Some("any-next") => Self::AnyNext(AnyNextConfig::default()),
            _ => return Err(HopNameError::Unknown),
        };
        for part in parts {
            let (parameter, value) = part.split_once('~').unwrap_or((part, ""));
            hop.set(parameter, value)?;
        }
        Ok(hop)
    }
}

impl fmt::Display for NamedHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HopCount => "hop-count",
            Self::RateFeedback(_) => "rate-feedback",
            Self::PathLabels(_) => "path-labels",
            Self::Piggyback(_) => "piggyback",
            Self::AnyNext(_) => "any-next",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_parameters_name_hops() {
        let parse = |text: &str| text.parse::<NamedHop>();
        assert_eq!(parse("hop-count"), Ok(NamedHop::HopCount));
        let printed = RateFeedbackConfig {
            window: 24,
            weight: 0.5,
            estimator: RateEstimator::Packets,
            max_flows: 9,
        };
        let text = "rate-feedback/window~24/weight~0.5/estimator~packets/max-flows~9";
        assert_eq!(parse(text), Ok(NamedHop::RateFeedback(printed)));
        let Ok(NamedHop::PathLabels(labels)) = parse("path-labels/discoveries~5/max-turns~7")
        else {
            panic!("not understood");
        };
        assert_eq!((labels.discoveries.burst, labels.max_turns), (10, 7));
        let bundles = PiggybackConfig {
            wait: Duration::from_millis(2),
            max_waiting: 9,
            max_flows: 8,
        };
        let text = "piggyback/wait~2ms/max-waiting~9/max-flows~8";
        assert_eq!(parse(text), Ok(NamedHop::Piggyback(bundles)));
        let any_next = AnyNextConfig {
            max_flows_of_face: 7,
            max_counters: 9,
        };
        let text = "any-next/max-flows-of-face~7/max-counters~9";
        assert_eq!(parse(text), Ok(NamedHop::AnyNext(any_next)));
    }

    #[test]
    fn other_texts_are_refused_and_say_what_to_write() {
        for (text, expected) in [
            (
                "mine",
                "write hop-count, rate-feedback, path-labels, piggyback or any-next",
            ),
            (
                "",
                "write hop-count, rate-feedback, path-labels, piggyback or any-next",
            ),
            ("rate-feedback/window~0", "window: write 3 to 1024"),
            ("rate-feedback/window", "window: write 3 to 1024"),
            (
                "rate-feedback/weight~NaN",
                "weight: write more than 0, and 1 at most",
            ),
            (
                "rate-feedback/estimator~x",
                "estimator: write intervals or packets",
            ),
            (
                "hop-count/n~1",
                "\"n\" is not a parameter of this hop: write the word alone",
            ),
            ("piggyback/wait~1", "wait: write a time up to 20ms"),
            ("piggyback/wait~1s", "wait: write a time up to 20ms"),
            (
                "path-labels/discoveries~0",
                "discoveries: write so many a second, from 1",
            ),
        ] {
            let error = text.parse::<NamedHop>().unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }
}
