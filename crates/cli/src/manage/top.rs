//! `namecast top`: what a forwarder does at the moment.
//!
//! Forwarders tell what they have counted since they began. What they do in a second is the difference between two looks.

use std::io::{ErrorKind, IsTerminal, Write};

use namecast_command::report;
use namecast_net::Clock;
use namecast_net::management::{CsInfo, FaceStatus, GeneralStatus, StrategyChoice, StrategyCounts};
use namecast_units::{Duration, Instant};
use serde::Serialize;

use super::arguments::Top;
use super::connection::Forwarder;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Clears the terminal, and goes to its upper left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// What a forwarder has counted at one moment.
#[derive(Debug, Default)]
struct Look {
    at: Instant,
    general: GeneralStatus,
    faces: Vec<FaceStatus>,
    strategies: Vec<StrategyChoice>,
    cs: CsInfo,
}

/// What a forwarder did between two looks.
#[derive(Debug, Serialize)]
struct View {
    /// Program and version.
    version: String,
    /// How long the forwarder has run.
    uptime_seconds: f64,
    /// Time between the looks.
    seconds: f64,
    /// Pending Interests at the second look.
    pit_entries: u64,
    /// Cached Data packets at the second look.
    cs_entries: u64,
    /// Share of the Interests, between 0 and 1, that the cache answered; none if it was not asked.
    cache_hits: Option<f64>,
    /// All faces together; octets: of those that are there at the second look.
    per_second: Rates,
    /// The faces that are there at the second look, the busiest first.
    faces: Vec<FaceRates>,
    /// The strategies that are chosen at the second look, the busiest first; none where the forwarder does not count.
    strategies: Vec<StrategyRates>,
}

/// One face.
#[derive(Debug, Serialize)]
struct FaceRates {
    /// Its number.
    face: u64,
    /// The peer's address.
    uri: String,
    /// What it did.
    per_second: Rates,
}

/// One choice of a strategy.
#[derive(Debug, Serialize)]
struct StrategyRates {
    /// Names it is for.
    prefix: String,
    /// Name of the strategy.
    strategy: String,
    /// What became of their Interests.
    per_second: StrategyCounts<f64>,
}

/// Packets and octets a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Rates {
    in_interests: f64,
    in_data: f64,
    in_nacks: f64,
    in_octets: f64,
    out_interests: f64,
    out_data: f64,
    out_nacks: f64,
    out_octets: f64,
}

/// Shows it every second, or once.
pub(super) async fn run(forwarder: &mut Forwarder, top: &Top) -> anyhow::Result<()> {
    let clock = Clock::new();
    let mut before = look(forwarder, &clock).await?;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = look(forwarder, &clock).await?;
        let is_read = show(&View::between(&before, &now), top)?;
        if top.once || !is_read {
            return Ok(());
        }
        before = now;
    }
}

async fn look(forwarder: &mut Forwarder, clock: &Clock) -> anyhow::Result<Look> {
    let general = forwarder.client().status().await;
    let general = general.map_err(|error| forwarder.explain("status/general", error))?;
    let at = clock.now();
    let cs: Vec<CsInfo> = forwarder.list("cs/info").await?;
    Ok(Look {
        at,
        general,
        faces: forwarder.list("faces/list").await?,
        strategies: forwarder.list("strategy-choice/list").await?,
        cs: cs.into_iter().next().unwrap_or_default(),
    })
}

/// Gives whether anybody reads it still.
fn show(view: &View, top: &Top) -> anyhow::Result<bool> {
    let mut output = std::io::stdout().lock();
    let text = match top.target.json {
        true => format!("{}\n", serde_json::to_string(view)?),
        false => view.describe(top.faces, top.strategies),
    };
    let is_redrawn = !top.target.json && !top.once && output.is_terminal();
    let clear = if is_redrawn { CLEAR } else { "" };
    let written = write!(output, "{clear}{text}").and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

impl View {
    fn between(before: &Look, now: &Look) -> Self {
        let seconds = now.at.since(before.at).as_secs_f64();
        let faces = now.faces.iter().map(|face| {
            let is_same = |other: &&FaceStatus| other.face == face.face && other.uri == face.uri;
            let earlier = before.faces.iter().find(is_same).cloned();
            FaceRates {
                face: face.face,
                uri: face.uri.clone(),
                per_second: Rates::of_face(&earlier.unwrap_or_default(), face, seconds),
            }
        });
        let mut faces: Vec<_> = faces.collect();
        faces.sort_by(|one, other| {
            let [one, other] = [one, other].map(|face| face.per_second.octets());
            other.total_cmp(&one)
        });
        let hits = gained(before.cs.hits, now.cs.hits);
        let asked = hits + gained(before.cs.misses, now.cs.misses);
        let general = &now.general;
        let uptime = general.current_millis.saturating_sub(general.start_millis);
        Self {
            version: general.version.clone(),
            uptime_seconds: Duration::from_millis(uptime).as_secs_f64(),
            seconds,
            pit_entries: general.pit_entries,
            cs_entries: general.cs_entries,
            cache_hits: (asked > 0).then(|| hits as f64 / asked as f64),
            per_second: Rates {
                in_octets: faces.iter().map(|face| face.per_second.in_octets).sum(),
                out_octets: faces.iter().map(|face| face.per_second.out_octets).sum(),
                ..Rates::of_node(&before.general, general, seconds)
            },
            faces,
            strategies: strategies(&before.strategies, &now.strategies, seconds),
        }
    }

    /// The node, and at most so many of its faces and strategies.
    fn describe(&self, max_faces: usize, max_strategies: usize) -> String {
        let head = [
            "FACE",
            "INTERESTS IN",
            "DATA IN",
            "NACKS IN",
            "OCTETS IN",
            "INTERESTS OUT",
            "DATA OUT",
            "NACKS OUT",
            "OCTETS OUT",
            "REMOTE",
        ];
        let faces = self.faces.iter().take(max_faces);
        let faces = faces.map(|face| face.per_second.row(&face.face.to_string(), &face.uri));
        let rows = core::iter::once(self.per_second.row("all", "")).chain(faces);
        let hits = match self.cache_hits {
            Some(share) => format!("answered {:.1} % of Interests", share * 100.0),
            None => "was not asked".to_owned(),
        };
        let left_out = left_out("faces", self.faces.len(), max_faces);
        let strategies = self.describe_strategies(max_strategies);
        format!(
            "{}, up {:.0} s; a second, over the last {:.1} s:\n\
             {} Interests pending; the cache has {} Data and {hits}\n\n{}{left_out}{strategies}",
            report::printable(&self.version),
            self.uptime_seconds,
            self.seconds,
            self.pit_entries,
            self.cs_entries,
            report::table(head, rows),
        )
    }

    /// At most so many strategies below an empty line; nothing where none are told.
    fn describe_strategies(&self, most: usize) -> String {
        if self.strategies.is_empty() {
            return String::new();
        }
        let head = [
            "PREFIX",
            "INTERESTS",
            "AGAIN",
            "HELD",
            "REFUSED",
            "SATISFIED",
            "TIMEOUTS",
            "NACKS",
            "STRATEGY",
        ];
        let shown = self.strategies.iter().take(most);
        let table = report::table(head, shown.map(StrategyRates::row));
        let left_out = left_out("strategies", self.strategies.len(), most);
        format!("\n{table}{left_out}")
    }
}

/// A line that tells of those that are not shown.
fn left_out(what: &str, all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        number => format!("{number} more {what}, with less traffic\n"),
    }
}

/// What each strategy did that is chosen now, and whose forwarder counts, the busiest first.
fn strategies(
    before: &[StrategyChoice],
    now: &[StrategyChoice],
    seconds: f64,
) -> Vec<StrategyRates> {
    let rates = now.iter().filter_map(|choice| {
        let is_same = |other: &&StrategyChoice| {
            (&other.prefix, &other.strategy) == (&choice.prefix, &choice.strategy)
        };
        let earlier = before.iter().find(is_same);
        let earlier = earlier.and_then(|earlier| earlier.counts);
        Some(StrategyRates {
            prefix: choice.prefix.to_string(),
            strategy: choice.strategy.to_string(),
            per_second: decided(earlier.unwrap_or_default(), choice.counts?, seconds),
        })
    });
    let mut rates: Vec<_> = rates.collect();
    rates.sort_by(|one, other| {
        let [one, other] = [one, other].map(|choice| choice.per_second.interests);
        other.total_cmp(&one)
    });
    rates
}

impl StrategyRates {
    fn row(&self) -> [String; 9] {
        let rates = self.per_second;
        let number = |rate: f64| format!("{rate:.0}");
        [
            self.prefix.clone(),
            number(rates.interests),
            number(rates.retransmissions),
            number(rates.suppressed),
            number(rates.rejected),
            number(rates.satisfied),
            number(rates.timeouts),
            number(rates.nacks),
            self.strategy.clone(),
        ]
    }
}

/// What a strategy decided in a second.
fn decided(before: StrategyCounts, now: StrategyCounts, seconds: f64) -> StrategyCounts<f64> {
    let mut rates = StrategyCounts::default();
    let counts = before.in_order().into_iter().zip(now.in_order());
    for (rate, (before, now)) in rates.in_order_mut().into_iter().zip(counts) {
        *rate = gained(before, now) as f64 / seconds;
    }
    rates
}

impl Rates {
    fn of_face(before: &FaceStatus, now: &FaceStatus, seconds: f64) -> Self {
        let rate = |before, now| gained(before, now) as f64 / seconds;
        Self {
            in_interests: rate(before.in_interests, now.in_interests),
            in_data: rate(before.in_data, now.in_data),
            in_nacks: rate(before.in_nacks, now.in_nacks),
            in_octets: rate(before.in_octets, now.in_octets),
            out_interests: rate(before.out_interests, now.out_interests),
            out_data: rate(before.out_data, now.out_data),
            out_nacks: rate(before.out_nacks, now.out_nacks),
            out_octets: rate(before.out_octets, now.out_octets),
        }
    }

    /// Without octets, which `status/general` does not tell.
    fn of_node(before: &GeneralStatus, now: &GeneralStatus, seconds: f64) -> Self {
        let rate = |before, now| gained(before, now) as f64 / seconds;
        Self {
            in_interests: rate(before.in_interests, now.in_interests),
            in_data: rate(before.in_data, now.in_data),
            in_nacks: rate(before.in_nacks, now.in_nacks),
            out_interests: rate(before.out_interests, now.out_interests),
            out_data: rate(before.out_data, now.out_data),
            out_nacks: rate(before.out_nacks, now.out_nacks),
            ..Self::default()
        }
    }

    fn octets(&self) -> f64 {
        self.in_octets + self.out_octets
    }

    fn row(&self, face: &str, remote: &str) -> [String; 10] {
        let number = |rate: f64| format!("{rate:.0}");
        [
            face.to_owned(),
            number(self.in_interests),
            number(self.in_data),
            number(self.in_nacks),
            number(self.in_octets),
            number(self.out_interests),
            number(self.out_data),
            number(self.out_nacks),
            number(self.out_octets),
            remote.to_owned(),
        ]
    }
}

/// What was counted between two looks. A counter that went back began anew, as the forwarder or the face did.
const fn gained(before: u64, now: u64) -> u64 {
    match now.checked_sub(before) {
        Some(gained) => gained,
        None => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(number: u64, uri: &str, octets: u64) -> FaceStatus {
        FaceStatus {
            face: number,
            uri: uri.to_owned(),
            in_octets: octets,
            ..FaceStatus::default()
        }
    }

    /// Counts in the order in which they are shown.
    fn choice(prefix: &str, strategy: &str, counts: Option<[u64; 7]>) -> StrategyChoice {
        let counts = counts.map(|counts| {
            let mut made = StrategyCounts::default();
            for (count, number) in made.in_order_mut().into_iter().zip(counts) {
                *count = number;
            }
            made
        });
        StrategyChoice {
            prefix: prefix.parse().unwrap(),
            strategy: strategy.parse().unwrap(),
            counts,
        }
    }

    /// Two seconds, in which a face of 1 000 octets more, one that is new with 600, one that began anew with 200, and
    /// another with the number of one that is gone.
    fn looks() -> [Look; 2] {
        let before = Look {
            at: Instant::ZERO + Duration::from_secs(10),
            general: GeneralStatus {
                in_interests: 100,
                out_data: 7,
                out_nacks: 1,
                ..GeneralStatus::default()
            },
            faces: vec![
                face(1, "udp4://192.0.2.1:1", 5_000),
                face(3, "udp4://192.0.2.3:3", 9_000),
                face(4, "udp4://192.0.2.4:4", 10),
            ],
            strategies: vec![
                choice("/", "/s/a", Some([100, 9, 8, 7, 60, 5, 4])),
                choice("/a", "/s/b", Some([2, 0, 0, 0, 0, 0, 0])),
                choice("/b", "/s/b", Some([50, 0, 0, 0, 0, 0, 0])),
            ],
            cs: CsInfo {
                hits: 10,
                misses: 90,
                ..CsInfo::default()
            },
        };
        let now = Look {
            at: before.at + Duration::from_secs(2),
            general: GeneralStatus {
                version: "namecast-0".to_owned(),
                start_millis: 1_000,
                current_millis: 13_400,
                pit_entries: 5,
                cs_entries: 6,
                in_interests: 130,
                out_data: 12,
                out_nacks: 1,
                ..GeneralStatus::default()
            },
            faces: vec![
                face(3, "udp4://192.0.2.3:3", 200),
                face(2, "udp4://192.0.2.2:2", 600),
                FaceStatus {
                    out_interests: 8,
                    out_octets: 40,
                    ..face(1, "udp4://192.0.2.1:1", 6_000)
                },
                face(4, "udp4://192.0.2.5:5", 30),
            ],
            strategies: vec![
                choice("/a", "/s/a", Some([6, 0, 0, 0, 6, 0, 0])),
                choice("/b", "/s/b", Some([4, 0, 0, 0, 2, 0, 0])),
                choice("/c", "/s/c", None),
                choice("/", "/s/a", Some([120, 11, 12, 13, 68, 15, 16])),
            ],
            cs: CsInfo {
                hits: 16,
                misses: 114,
                ..CsInfo::default()
            },
        };
        [before, now]
    }

    /// 30 Interests and 5 Data in two seconds; 6 of 30 looks into the cache had a result.
    #[test]
    fn rates_are_differences_by_the_time_between_two_looks() {
        let [before, now] = looks();
        let view = View::between(&before, &now);
        assert_eq!((view.seconds, view.uptime_seconds), (2.0, 12.4));
        assert_eq!((view.pit_entries, view.cs_entries), (5, 6));
        assert_eq!(view.cache_hits, Some(0.2));
        let expected = Rates {
            in_interests: 15.0,
            out_data: 2.5,
            in_octets: 500.0 + 300.0 + 100.0 + 15.0,
            out_octets: 20.0,
            ..Rates::default()
        };
        assert_eq!(view.per_second, expected);
        let faces = view.faces.iter();
        let octets: Vec<_> = faces
            .map(|face| (face.face, face.per_second.in_octets))
            .collect();
        assert_eq!(octets, [(1, 500.0), (2, 300.0), (3, 100.0), (4, 15.0)]);
        let busiest = Rates {
            in_octets: 500.0,
            out_interests: 4.0,
            out_octets: 20.0,
            ..Rates::default()
        };
        assert_eq!(view.faces[0].per_second, busiest);
    }

    /// Between the looks /a got another strategy and /b the same again, so both count from zero; who does not count is left out.
    #[test]
    fn strategies_have_rates_as_faces_have() {
        let [before, now] = looks();
        let view = View::between(&before, &now);
        let rates = view.strategies.iter();
        let rates: Vec<_> = rates
            .map(|one| (one.prefix.as_str(), one.per_second))
            .collect();
        let busiest = StrategyCounts {
            interests: 10.0,
            retransmissions: 1.0,
            suppressed: 2.0,
            rejected: 3.0,
            satisfied: 4.0,
            timeouts: 5.0,
            nacks: 6.0,
        };
        let of = |interests, satisfied| StrategyCounts {
            interests,
            satisfied,
            ..StrategyCounts::default()
        };
        let expected = [("/", busiest), ("/a", of(3.0, 3.0)), ("/b", of(2.0, 1.0))];
        assert_eq!(rates, expected);
        let text = view.describe(4, 1);
        let lines: Vec<_> = text.lines().collect();
        let cells = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines[9], "");
        let head = ["PREFIX", "INTERESTS", "AGAIN", "HELD", "REFUSED"];
        assert_eq!(cells(lines[10])[..5], head);
        let first = ["/", "10", "1", "2", "3", "4", "5", "6", "/s/a"];
        assert_eq!(cells(lines[11]), first);
        assert_eq!(lines[12..], ["2 more strategies, with less traffic"]);
    }

    /// NFD and ndnd tell the choices without counts.
    #[test]
    fn a_forwarder_that_counts_nothing_for_strategies_has_no_table_of_them() {
        let [before, mut now] = looks();
        now.strategies.retain(|choice| choice.counts.is_none());
        let view = View::between(&before, &now);
        assert!(view.strategies.is_empty());
        assert!(!view.describe(9, 9).contains("STRATEGY"));
    }

    #[test]
    fn a_cache_that_was_not_asked_has_no_share_of_hits() {
        let [_, now] = looks();
        assert_eq!(View::between(&now, &now).cache_hits, None);
    }

    #[test]
    fn the_busiest_faces_are_shown() {
        let [before, now] = looks();
        let text = View::between(&before, &now).describe(2, 0);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "namecast-0, up 12 s; a second, over the last 2.0 s:"
        );
        let expected = "5 Interests pending; the cache has 6 Data and answered 20.0 % of Interests";
        assert_eq!(lines[1], expected);
        let cells = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert!(
            lines[3].starts_with("FACE  INTERESTS IN  DATA IN"),
            "{text}"
        );
        let all = ["all", "15", "0", "0", "915", "0", "2", "0", "20"];
        assert_eq!(cells(lines[4]), all);
        let first = ["1", "0", "0", "0", "500", "4", "0", "0", "20"];
        assert_eq!(cells(lines[5])[..9], first);
        assert!(lines[6].starts_with("2 ") && lines[6].ends_with("udp4://192.0.2.2:2"));
        assert_eq!(lines[7], "2 more faces, with less traffic");
    }
}
