//! Choosing a controller: by name on a command line, or with parameters in a file.

use core::fmt;
use core::str::FromStr;

use namecast_units::{Bitrate, Instant, ParseQuantityError};
use serde::de::{self, DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::arc::{self, Profile};
use super::fixed::{FixedRate, FixedWindow, Unlimited};
use super::{
    RateController, aimd_gap, aimd_icp, aimd_ndnsim, bic, copa, cubic, dpccp, pcon, rfcc, said,
};

/// Which controller a consumer uses.
///
/// As text: `arc`, `arc-literal`, `window:50`, `rate:5M`, or one of the other names that
/// [`NAMES`](Self::NAMES) lists. In a file, with parameters:
///
/// ```toml
/// controller = "cubic"
/// controller = { kind = "arc", profile = "literal", min-rtt-window = "10s" }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RateControl {
    /// Everything is requested as soon as it is wanted: the stream's own bitrate is the limit.
    #[default]
    Unlimited,
    /// At most this rate.
    Rate {
        /// The rate.
        rate: Bitrate,
    },
    /// At most so many Interests at a time.
    Window {
        /// Interests.
        window: u32,
    },
    /// Consumer-driven Adaptive Rate Control \[ARC\].
    Arc(arc::Config),
    /// Interest Control Protocol \[ICP\]: AIMD by a timer within the range of round-trip times.
    AimdIcp(aimd_icp::Config),
    /// AIMD by gaps, as TCP does it.
    AimdGap(aimd_gap::Config),
    /// AIMD by a retransmission timer, as ndnSIM does it.
    AimdNdnsim(aimd_ndnsim::Config),
    /// CUBIC \[RFC9438\].
    Cubic(cubic::Config),
    /// Binary Increase Congestion control \[BIC\].
    Bic(bic::Config),
    /// Copa \[COPA\]: full links with short queues at any delay.
    Copa(copa::Config),
    /// Rate feedback congestion control \[RFCC\].
    Rfcc(rfcc::Config),
    /// DPCCP as far as it can be reconstructed.
    Dpccp(dpccp::Config),
    /// The consumer of \[PCON\].
    Pcon(pcon::Config),
    /// The window of a receiver of any next packets \[SAID\].
    Said(said::Config),
    /// One that is not of this crate: no text names it.
    Custom(CustomControl),
}

/// A controller that is not of this crate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CustomControl {
    /// Its name. Two controllers of one name are the same.
    pub name: &'static str,
    /// Makes it; the time starts its periods.
    #[serde(skip)]
    pub build: fn(Instant) -> Box<dyn RateController>,
}

impl PartialEq for CustomControl {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl RateControl {
    /// What a controller can be called.
    pub const NAMES: &'static [&'static str] = &[
        "arc",
        "arc-literal",
        "arc-source-rule",
        "aimd-icp",
        "aimd-gap",
        "aimd-ndnsim",
        "cubic",
        "bic",
        "copa",
        "rfcc",
        "rfcc-swapped",
        "rfcc-delay",
        "dpccp",
        "pcon",
        "pcon-aimd",
        "pcon-bic",
        "pcon-cubic",
        "said",
        "said-ours",
        "window:50",
        "rate:5M",
        "unlimited",
    ];

    /// Makes the controller; `now` starts its periods.
    pub fn build(self, now: Instant) -> Box<dyn RateController> {
        match self {
            Self::Unlimited => Box::new(Unlimited),
            Self::Rate { rate } => Box::new(FixedRate::new(rate)),
            Self::Window { window } => Box::new(FixedWindow::new(window)),
            Self::Arc(config) => Box::new(arc::Controller::new(now, config)),
            Self::AimdIcp(config) => Box::new(aimd_icp::Controller::new(config)),
            Self::AimdGap(config) => Box::new(aimd_gap::Controller::new(config)),
            Self::AimdNdnsim(config) => Box::new(aimd_ndnsim::Controller::new(config)),
            Self::Cubic(config) => Box::new(cubic::Controller::new(config)),
            Self::Bic(config) => Box::new(bic::Controller::new(config)),
            Self::Copa(config) => Box::new(copa::Controller::new(config)),
            Self::Rfcc(config) => Box::new(rfcc::Controller::new(now, config)),
            Self::Dpccp(config) => Box::new(dpccp::Controller::new(now, config)),
            Self::Pcon(config) => Box::new(pcon::Controller::new(config)),
            Self::Said(config) => Box::new(said::Controller::new(config)),
            Self::Custom(custom) => (custom.build)(now),
        }
    }

    /// Returns the names and values of its parameters that are numbers: times in milliseconds, sizes in octets, rates in bits a second.
    pub fn parameters(&self) -> Vec<(String, f64)> {
        let Ok(Value::Object(table)) = serde_json::to_value(self) else {
            return Vec::new();
        };
        let number = |value: Value| match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => quantity(&text),
            _ => None,
        };
        table
            .into_iter()
            .filter_map(|(name, value)| Some((name, number(value)?)))
            .collect()
    }

    /// The same control for a stream that needs `rate` from the start, and would otherwise join slowly.
    ///
    /// ARC then starts with that rate, as its authors' code does.
    #[must_use]
    pub fn starting_at(self, rate: Bitrate) -> Self {
        match self {
            Self::Arc(config) => {
                let packets = rate.as_bps() as f64 / config.reference_size.as_bits().max(1) as f64;
                Self::Arc(arc::Config {
                    initial_rate: config.initial_rate.max(packets),
                    ..config
                })
            }
            other => other,
        }
    }
}

/// A text that names no controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseRateControlError {
    /// There is no such name.
    #[error("'{name}' is no controller: write one of {}", RateControl::NAMES.join(", "))]
    Unknown {
        /// What was written.
        name: String,
    },
    /// What follows `rate:` is no rate.
    #[error(transparent)]
    Rate(#[from] ParseQuantityError),
    /// What follows `window:` is no number of Interests.
    #[error("'{0}' is no window: write a number of Interests from 1, such as window:50")]
    Window(String),
}

impl FromStr for RateControl {
    type Err = ParseRateControlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some(("rate", rate)) => Self::Rate {
                rate: rate.parse::<Bitrate>()?,
            },
            Some(("window", window)) => {
                let count = window.parse().ok().filter(|&count| count > 0);
                Self::Window {
                    window: count
                        .ok_or_else(|| ParseRateControlError::Window(window.to_owned()))?,
                }
            }
            _ => match text {
                "unlimited" => Self::Unlimited,
                "arc" => Self::Arc(arc::Config::resolved()),
                "arc-literal" => Self::Arc(arc::Config::literal()),
                "arc-source-rule" => Self::Arc(arc::Config::with_source_rule()),
                "aimd-icp" => Self::AimdIcp(aimd_icp::Config::default()),
                "aimd-gap" => Self::AimdGap(aimd_gap::Config::default()),
                "aimd-ndnsim" => Self::AimdNdnsim(aimd_ndnsim::Config::default()),
                "cubic" => Self::Cubic(cubic::Config::default()),
                "bic" => Self::Bic(bic::Config::default()),
                "copa" => Self::Copa(copa::Config::default()),
                "rfcc" => Self::Rfcc(rfcc::Config::printed()),
                "rfcc-swapped" => Self::Rfcc(rfcc::Config::swapped()),
                "rfcc-delay" => Self::Rfcc(rfcc::Config::by_delay()),
                "dpccp" => Self::Dpccp(dpccp::Config::default()),
                "pcon" => Self::Pcon(pcon::Config::published()),
                "pcon-aimd" => Self::Pcon(pcon::Config::ndnsim(pcon::Mode::Aimd)),
                "pcon-bic" => Self::Pcon(pcon::Config::ndnsim(pcon::Mode::Bic)),
                "pcon-cubic" => Self::Pcon(pcon::Config::ndnsim(pcon::Mode::Cubic)),
                "said" => Self::Said(said::Config::printed()),
                "said-ours" => Self::Said(said::Config::ours()),
                other => {
                    let name = other.to_owned();
                    return Err(ParseRateControlError::Unknown { name });
                }
            },
        })
    }
}

impl fmt::Display for RateControl {
    /// Returns the name without parameters, but those of `rate` and `window`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate { rate } => return write!(f, "rate:{}", rate.as_bps()),
            Self::Window { window } => return write!(f, "window:{window}"),
            Self::Unlimited => "unlimited",
            Self::Arc(config) if *config == arc::Config::literal() => "arc-literal",
            Self::Arc(config) if *config == arc::Config::with_source_rule() => "arc-source-rule",
            Self::Arc(_) => "arc",
            Self::AimdIcp(_) => "aimd-icp",
            Self::AimdGap(_) => "aimd-gap",
            Self::AimdNdnsim(_) => "aimd-ndnsim",
            Self::Cubic(_) => "cubic",
            Self::Bic(_) => "bic",
            Self::Copa(_) => "copa",
            Self::Rfcc(config) if *config == rfcc::Config::swapped() => "rfcc-swapped",
            Self::Rfcc(config) if *config == rfcc::Config::by_delay() => "rfcc-delay",
            Self::Rfcc(_) => "rfcc",
            Self::Dpccp(_) => "dpccp",
            Self::Pcon(config) => match (config.every_mark, config.mode) {
                (true, pcon::Mode::Bic) => "pcon",
                (_, pcon::Mode::Aimd) => "pcon-aimd",
                (_, pcon::Mode::Bic) => "pcon-bic",
                (_, pcon::Mode::Cubic) => "pcon-cubic",
            },
            Self::Said(config) if *config == said::Config::ours() => "said-ours",
            Self::Said(_) => "said",
            Self::Custom(custom) => custom.name,
        })
    }
}

impl<'de> Deserialize<'de> for RateControl {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(ControlVisitor)
    }
}

struct ControlVisitor;

impl<'de> Visitor<'de> for ControlVisitor {
    type Value = RateControl;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a controller's name, or a table with its kind and parameters")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RateControl, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RateControl, A::Error> {
        let map = Map::deserialize(MapAccessDeserializer::new(map))?;
        from_table(map).map_err(de::Error::custom)
    }
}

/// Reads `kind` and, for what it does not mention, takes the values that go with the kind.
fn from_table(mut map: Map<String, Value>) -> Result<RateControl, serde_json::Error> {
    let kind = match map.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(de::Error::custom("kind is a controller's name in quotes")),
        None => return Err(de::Error::missing_field("kind")),
    };
    match kind.as_str() {
        "rate" => {
            let [rate] = only(map, ["rate"])?;
            return Ok(RateControl::Rate {
                rate: serde_json::from_value(rate)?,
            });
        }
        "window" => {
            let [window] = only(map, ["window"])?;
            return Ok(RateControl::Window {
                window: serde_json::from_value(window)?,
            });
        }
        _ => {}
    }
    let base: RateControl = kind.parse().map_err(de::Error::custom)?;
    Ok(match base {
        RateControl::Arc(base) => {
            let base = match map.remove("profile") {
                Some(profile) => arc::Config::of(serde_json::from_value::<Profile>(profile)?),
                None => base,
            };
            RateControl::Arc(overlay(&base, map)?)
        }
        RateControl::AimdIcp(base) => RateControl::AimdIcp(overlay(&base, map)?),
        RateControl::AimdGap(base) => RateControl::AimdGap(overlay(&base, map)?),
        RateControl::AimdNdnsim(base) => RateControl::AimdNdnsim(overlay(&base, map)?),
        RateControl::Cubic(base) => RateControl::Cubic(overlay(&base, map)?),
        RateControl::Bic(base) => RateControl::Bic(overlay(&base, map)?),
        RateControl::Copa(base) => RateControl::Copa(overlay(&base, map)?),
        RateControl::Rfcc(base) => RateControl::Rfcc(overlay(&base, map)?),
        RateControl::Dpccp(base) => RateControl::Dpccp(overlay(&base, map)?),
        RateControl::Pcon(base) => RateControl::Pcon(overlay(&base, map)?),
        RateControl::Said(base) => RateControl::Said(overlay(&base, map)?),
        RateControl::Unlimited => {
            let [] = only(map, [])?;
            base
        }
        RateControl::Rate { .. } | RateControl::Window { .. } | RateControl::Custom(_) => {
            let message = "a kind is a name alone: write rate and window as parameters";
            return Err(de::Error::custom(message));
        }
    })
}

/// Returns a time, size or rate as the configurations write them, in milliseconds, octets or bits a second.
fn quantity(text: &str) -> Option<f64> {
    let (number, unit) = match text.split_once(' ') {
        Some(parts) => parts,
        None => (text.strip_suffix("ns")?, "ns"),
    };
    let scale = match unit {
        "ns" => 1e-6,
        "B" | "bit/s" => 1.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// Returns the values of `names`, each of which must be in `map`, and nothing else.
fn only<const N: usize>(
    mut map: Map<String, Value>,
    names: [&'static str; N],
) -> Result<[Value; N], serde_json::Error> {
    let mut values = [const { Value::Null }; N];
    for (value, name) in values.iter_mut().zip(names) {
        *value = map
            .remove(name)
            .ok_or_else(|| <serde_json::Error as de::Error>::missing_field(name))?;
    }
    match map.keys().next() {
        None => Ok(values),
        Some(other) => Err(de::Error::custom(format!("unknown parameter `{other}`"))),
    }
}

/// `base` with the values that `map` gives; refuses what `base` does not have.
fn overlay<T: Serialize + DeserializeOwned>(
    base: &T,
    map: Map<String, Value>,
) -> Result<T, serde_json::Error> {
    let mut whole: Map<String, Value> = serde_json::from_value(serde_json::to_value(base)?)?;
    if let Some(unknown) = map.keys().find(|name| !whole.contains_key(*name)) {
        let names: Vec<_> = whole.keys().map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        let message = format!("unknown field `{unknown}`, expected one of {names}");
        return Err(de::Error::custom(message));
    }
    whole.extend(map);
    serde_json::from_value(Value::Object(whole))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::arc::{Config, MinRttConfig, MinRttWindow, StartWhile};
    use super::super::{Loss, reports};
    use super::*;

    fn read(table: &str) -> Result<RateControl, String> {
        serde_json::from_str(table).map_err(|error| error.to_string())
    }

    #[test]
    fn the_configuration_chooses_the_controller() {
        let unlimited = RateControl::default().build(Instant::ZERO);
        assert_eq!(unlimited.target(), super::super::Target::default());
        assert_eq!(unlimited.name(), "unlimited");

        let rate = Bitrate::mbps(2);
        let mut fixed = RateControl::Rate { rate }.build(Instant::ZERO);
        fixed.on_loss(Instant::ZERO, &reports::lost(Instant::ZERO, Loss::Timeout));
        assert_eq!(fixed.target().rate, Some(rate));
        assert_eq!((fixed.target().window, fixed.name()), (None, "rate"));

        let window = RateControl::Window { window: 7 }.build(Instant::ZERO);
        assert_eq!(window.target().window, Some(7));
        assert_eq!((window.target().rate, window.name()), (None, "window"));
    }

    #[test]
    fn every_name_names_a_controller_and_reads_back() {
        for name in RateControl::NAMES {
            let control: RateControl = name.parse().unwrap();
            assert_eq!(control.to_string().parse(), Ok(control), "{name}");
            assert_eq!(read(&format!("\"{name}\"")), Ok(control));
            let table = serde_json::to_string(&control).unwrap();
            assert_eq!(read(&table), Ok(control), "{table}");
            assert!(name.starts_with(control.build(Instant::ZERO).name()));
        }
    }

    #[test]
    fn what_names_no_controller_gets_the_list() {
        let error = |text: &str| text.parse::<RateControl>().unwrap_err().to_string();
        assert!(error("fast").contains("'fast' is no controller"));
        assert!(error("fast").contains("arc-literal, "));
        assert!(error("window:0").contains("'0' is no window"));
        assert!(error("rate:x").contains("'x' is not a rate"));
        assert!(error("arc:5").contains("'arc:5'"));
    }

    #[test]
    fn a_table_changes_what_it_names() {
        let control = read(
            r#"{"kind": "arc", "profile": "literal", "min-rtt-window": "10s", "alpha": 30, "start-while": "both"}"#,
        );
        let expected = Config {
            min_rtt: MinRttConfig {
                window: MinRttWindow::Last(Duration::from_secs(10)),
                ..Config::literal().min_rtt
            },
            alpha: 30.0,
            start_while: StartWhile::Both,
            ..Config::literal()
        };
        assert_eq!(control, Ok(RateControl::Arc(expected)));
        let plain = read(r#"{"kind": "arc", "packet-size": "1000 B"}"#);
        let Ok(RateControl::Arc(config)) = plain else {
            panic!("{plain:?}");
        };
        assert_eq!(config.hold_when_empty, Config::resolved().hold_when_empty);
    }

    #[test]
    fn a_table_with_an_error_is_refused_with_what_was_expected() {
        let refused = [
            (r#"{"alpha": 3}"#, "missing field `kind`"),
            (r#"{"kind": 3}"#, "kind is a controller's name"),
            (r#"{"kind": "fast"}"#, "write one of arc"),
            (
                r#"{"kind": "arc", "alhpa": 3}"#,
                "unknown field `alhpa`, expected one of",
            ),
            (
                r#"{"kind": "arc", "min-rtt-window": "never"}"#,
                "or forever",
            ),
            (
                r#"{"kind": "arc", "profile": "best"}"#,
                "expected one of `literal`, `resolved`, `source-rule`",
            ),
            (r#"{"kind": "cubic", "alpha": 3}"#, "unknown field `alpha`"),
            (
                r#"{"kind": "unlimited", "alpha": 3}"#,
                "unknown parameter `alpha`",
            ),
            (r#"{"kind": "rate"}"#, "missing field `rate`"),
            (
                r#"{"kind": "window:5"}"#,
                "write rate and window as parameters",
            ),
            (r#"{"kind": "window", "window": -5}"#, "expected u32"),
            ("5", "expected a controller's name"),
        ];
        for (table, expected) in refused {
            let error = read(table).unwrap_err();
            assert!(error.contains(expected), "{table}: {error}");
        }
    }

    /// Table 2 of the paper, as far as it is numbers.
    #[test]
    fn parameters_are_numbers_with_names() {
        let literal = RateControl::Arc(Config::literal());
        let parameters = literal.parameters();
        let of = |name: &str| {
            let found = parameters.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| *value)
        };
        let table = [
            ("period", 10.0),
            ("jitter-offset", 10.0),
            ("alpha", 20.0),
            ("beta", 0.5),
            ("gamma", 0.5),
            ("delta", 20.0),
            ("reference-size", 1_024.0),
            ("packet-size", 1_024.0),
        ];
        for (name, value) in table {
            assert!(
                of(name).is_some_and(|found| (found - value).abs() < 1e-9),
                "{name}"
            );
        }
        assert_eq!((of("kind"), of("start-while")), (None, None));
        assert_eq!(RateControl::Unlimited.parameters(), []);
        let rate: RateControl = "rate:5M".parse().unwrap();
        assert_eq!(rate.parameters(), [("rate".to_owned(), 5e6)]);
    }

    /// 3 Mbit/s are 366.2 packets of 1024 octets a second.
    #[test]
    fn a_stream_starts_arc_with_its_own_bitrate() {
        let start = |bps| {
            let control: RateControl = "arc".parse().unwrap();
            control.starting_at(Bitrate::bps(bps)).build(Instant::ZERO)
        };
        let rate = |bps| start(bps).target().rate.unwrap().as_bps();
        assert!((2_999_999..=3_000_000).contains(&rate(3_000_000)));
        assert_eq!(rate(100_000), 819_200);
    }

    /// Whatever a file says, controllers are made and run.
    #[test]
    fn absurd_parameters_do_no_harm() {
        let tables = [
            r#"{"kind": "aimd-ndnsim", "initial-window": 1e9}"#,
            r#"{"kind": "cubic", "initial-window": -5.0, "min-window": 1e9}"#,
            r#"{"kind": "bic", "min-increment": 1e9, "greatest-increment": 0.0}"#,
            r#"{"kind": "copa", "queued": -5.0, "min-queued": 0.0, "min-rtt-window": "0s"}"#,
            r#"{"kind": "copa", "queued": 1e300, "min-queued": 2e300}"#,
        ];
        for table in tables {
            let mut controller = read(table).unwrap().build(Instant::ZERO);
            for step in 1..100 {
                let now = reports::at(step * 1_000);
                controller.on_data(now, &reports::arrival(now, reports::at(step * 900)));
                controller.on_loss(now, &reports::lost(reports::at(step * 950), Loss::Gap));
            }
            let window = controller.target().window.unwrap();
            assert!((1..=1_000_000).contains(&window), "{table}: {window}");
        }
    }
}
