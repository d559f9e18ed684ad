//! The set-ups: one per line of the table.

use std::fmt::Write as _;
use std::path::Path;

/// A set-up: a stream scenario, and which of its windows to report.
pub(crate) struct Setup {
    /// What it is called, with the letter of its group first.
    pub(crate) name: String,
    /// The scenario as an experiment's file would hold it.
    pub(crate) toml: String,
    /// Windows whose shares in time are reported, in order.
    pub(crate) windows: Vec<&'static str>,
}

/// The video ladder.
const LADDER: &str = r#"["150 kbit/s", "300 kbit/s", "600 kbit/s", "1200 kbit/s", "2500 kbit/s", "5 Mbit/s", "8 Mbit/s"]"#;
/// The same up to 2.5 Mbit/s.
const LOW_LADDER: &str =
    r#"["150 kbit/s", "300 kbit/s", "600 kbit/s", "1200 kbit/s", "2500 kbit/s"]"#;

/// What differs between set-ups.
#[derive(Clone)]
struct Base {
    /// Rate of the bottleneck, as written after `rate = `; empty: unlimited.
    rate: String,
    queue: u32,
    /// Each way, ms.
    delay: f64,
    loss: f64,
    /// Largest addition to the delay, ms.
    jitter: f64,
    /// Times at which the bottleneck is down.
    outages: String,
    target: u32,
    duration: u32,
    from: f64,
    ladder: &'static str,
    goal: &'static str,
    watchers: u32,
    /// Whether all watch one stream.
    same: bool,
    stagger: f64,
    cache: &'static str,
    /// Cache at the watchers' side of the bottleneck.
    edge_cache: &'static str,
    changes: String,
    flow: &'static str,
    windows: Vec<(&'static str, f64, f64)>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            rate: String::new(),
            queue: 100,
            delay: 25.0,
            loss: 0.0,
            jitter: 0.0,
            outages: String::new(),
            target: 250,
            duration: 100,
            from: 10.0,
            ladder: LADDER,
            goal: "",
            watchers: 1,
            same: false,
            stagger: 3.0,
            cache: "64 MiB",
            edge_cache: "0 B",
            changes: String::new(),
            flow: "",
            windows: Vec::new(),
        }
    }
}

fn mbps(rate: f64) -> String {
    format!("\"{} kbit/s\"", (rate * 1e3).round())
}

fn rate_change(at: f64, rate: f64) -> String {
    format!(
        "[[changes]]\nat = \"{} ms\"\nlink = \"R>E\"\nrate = {}\n",
        at * 1e3,
        mbps(rate)
    )
}

impl Base {
    fn rated(rate: f64) -> Self {
        Self {
            rate: mbps(rate),
            ..Self::default()
        }
    }

    fn link(&self) -> String {
        let mut link = format!(
            "delay = \"{} us\", queue = {{ kind = \"drop-tail\", packets = {} }}",
            (self.delay * 1e3).round(),
            self.queue
        );
        if !self.rate.is_empty() {
            let _ = write!(link, ", rate = {}", self.rate);
        }
        if self.loss > 0.0 {
            let _ = write!(
                link,
                ", loss = {{ kind = \"random\", share = {} }}",
                self.loss
            );
        }
        if self.jitter > 0.0 {
            let jitter = self.jitter;
            let _ = write!(
                link,
                ", jitter = {{ spread = \"{jitter} ms\", shape = \"uniform\", reorder = true }}"
            );
        }
        if !self.outages.is_empty() {
            let _ = write!(link, ", outages = [{}]", self.outages);
        }
        link
    }

    /// What is not about streams.
    fn head(&self) -> String {
        let count = self.watchers;
        let hosts: String = (1..=count)
            .map(|n| format!(", {{ name = \"C{n}\" }}"))
            .collect();
        let access: String = (1..=count)
            .map(|n| format!("  {{ ends = [\"E\", \"C{n}\"] }},\n"))
            .collect();
        // Of several watchers, from 7 s after the last one has joined.
        let last = 2.0 + f64::from(count - 1) * self.stagger;
        let from = if count > 1 { last + 8.0 } else { self.from };
        format!(
            r#"kind = "stream"
duration = "{duration} s"
measure = {{ from = "{from} s" }}
cache = "0 B"
caches = {{ R = "{cache}", E = "{edge}" }}
signature = "hmac"
links = ["R>E"]
[topology]
kind = "explicit"
node = [{{ name = "P" }}, {{ name = "R" }}, {{ name = "E" }}{hosts}]
link = [
  {{ ends = ["P", "R"] }},
  {{ ends = ["R", "E"], config = {{ {link} }}, back = {{ delay = "{delay} us" }} }},
{access}]
"#,
            duration = self.duration,
            cache = self.cache,
            edge = self.edge_cache,
            link = self.link(),
            delay = (self.delay * 1e3).round(),
        )
    }

    fn streams(&self) -> String {
        let count = self.watchers;
        let (publishers, prefix) = match self.same {
            true => (1, "/s"),
            false => (count, "/s{}"),
        };
        let goal = match self.goal {
            "" => String::new(),
            goal => format!("goal = \"{goal}\"\n"),
        };
        format!(
            r#"[[publishers]]
count = {publishers}
node = "P"
prefix = "{prefix}"
start-spread = "2 s"
streams = [
  {{ kind = "video", rate = 30, key-interval = 60, key-factor = 4.5, deviation = 0.1155, sizes = "uniform-deltas", rungs = {ladder}, segment-size = 1000 }},
  {{ kind = "audio", rate = 50, rungs = ["64 kbit/s"] }},
]
[[watchers]]
count = {count}
node = "C{{}}"
prefix = "{prefix}"
start = "2 s"
start-spread = "1 s"
stagger = "{stagger} s"
audio = true
target = "{target} ms"
{goal}"#,
            ladder = self.ladder,
            stagger = self.stagger,
            target = self.target,
        )
    }

    fn toml(&self) -> String {
        let mut text = self.head() + &self.streams();
        for (name, from, until) in &self.windows {
            let _ = write!(
                text,
                "[windows.{name}]\nfrom = \"{} ms\"\nuntil = \"{} ms\"\n",
                from * 1e3,
                until * 1e3
            );
        }
        text += &self.changes;
        if !self.flow.is_empty() {
            let _ = write!(
                text,
                "[[flows]]\nconsumer = \"C1\"\nproducer = \"P\"\nprefix = \"/bulk\"\ncontroller = \"{}\"\nretransmit = true\nreordering-tolerance = 3\n",
                self.flow
            );
        }
        text
    }

    fn named(self, name: impl Into<String>) -> Setup {
        Setup {
            name: name.into(),
            toml: self.toml(),
            windows: self.windows.iter().map(|(name, _, _)| *name).collect(),
        }
    }
}

/// All set-ups; those over traces if there is a directory of them.
pub(crate) fn all(traces: Option<&Path>) -> Vec<Setup> {
    let mut setups = Vec::new();
    steps(&mut setups);
    shared(&mut setups);
    bulk(&mut setups);
    constant(&mut setups);
    trouble(&mut setups);
    delays(&mut setups);
    models(&mut setups);
    if let Some(traces) = traces {
        cellular(&mut setups, traces);
    }
    setups
}

fn steps(setups: &mut Vec<Setup>) {
    for rtt in [50.0, 200.0] {
        for (high, low) in [(6.0, 1.0), (4.0, 2.0), (10.0, 0.5)] {
            for queue in [50, 500] {
                let base = Base {
                    queue,
                    delay: rtt / 2.0,
                    changes: rate_change(40.0, low) + &rate_change(60.0, high),
                    windows: vec![
                        ("high", 10.0, 40.0),
                        ("low", 40.0, 60.0),
                        ("again", 60.0, 98.5),
                    ],
                    ..Base::rated(high)
                };
                setups.push(base.named(format!("a steps {high}-{low}-{high} rtt{rtt} q{queue}")));
            }
        }
    }
}

fn shared(setups: &mut Vec<Setup>) {
    let base = |rate: f64, watchers: u32, queue: u32| Base {
        watchers,
        queue,
        duration: 120,
        ..Base::rated(rate)
    };
    for queue in [50, 500] {
        setups.push(base(4.0, 2, queue).named(format!("b 2 on 4M q{queue}")));
        setups.push(base(10.0, 2, queue).named(format!("b 2 on 10M q{queue}")));
        setups.push(base(10.0, 4, queue).named(format!("b 4 on 10M q{queue}")));
        for cache in ["64 MiB", "0 B"] {
            let many = Base {
                stagger: 2.0,
                duration: 90,
                cache,
                ..base(10.0, 16, queue)
            };
            let word = if cache == "0 B" { "no " } else { "" };
            setups.push(many.named(format!("b 16 on 10M q{queue} {word}cache")));
        }
        for watchers in [2, 4] {
            let same = Base {
                same: true,
                edge_cache: "64 MiB",
                ..base(10.0, watchers, queue)
            };
            setups.push(same.named(format!("b {watchers} same on 10M q{queue}")));
        }
    }
}

fn bulk(setups: &mut Vec<Setup>) {
    for flow in ["cubic", "copa", "arc"] {
        let base = Base {
            flow,
            windows: vec![("after", 15.0, 98.5)],
            ..Base::rated(10.0)
        };
        setups.push(base.named(format!("c vs {flow} 10M q100")));
    }
}

fn constant(setups: &mut Vec<Setup>) {
    // The highest rung whose wire rate, with the sound's, is at most 0.93 of the link.
    let rungs = [
        (0.5, "300k"),
        (1.0, "600k"),
        (2.0, "1200k"),
        (3.0, "1200k"),
        (4.0, "2500k"),
        (6.0, "5M"),
        (8.0, "5M"),
        (10.0, "8M"),
        (15.0, "8M"),
        (20.0, "8M"),
    ];
    for (rate, goal) in rungs {
        let base = Base {
            goal,
            duration: 60,
            ..Base::rated(rate)
        };
        setups.push(base.named(format!("e const {rate}M")));
    }
    let top = Base {
        ladder: LOW_LADDER,
        goal: "2500k",
        queue: 500,
        duration: 60,
        ..Base::rated(100.0)
    };
    setups.push(top.named("e top 2.5M on 100M"));
}

fn trouble(setups: &mut Vec<Setup>) {
    for loss in [0.02, 0.05] {
        for queue in [50, 500] {
            let base = Base {
                loss,
                queue,
                ..Base::rated(6.0)
            };
            setups.push(base.named(format!("d loss {}% 6M q{queue}", loss * 100.0)));
        }
    }
    for rtt in [40.0, 100.0, 200.0] {
        for rate in [Some(6.0), None] {
            let base = Base {
                rate: rate.map(mbps).unwrap_or_default(),
                delay: rtt / 2.0,
                loss: 0.02,
                jitter: 20.0,
                ..Base::default()
            };
            let at = if rate.is_some() { "6M" } else { "unlimited" };
            setups.push(base.named(format!("f jitter+loss {at} rtt{rtt}")));
        }
    }
}

fn delays(setups: &mut Vec<Setup>) {
    // The change is of both directions, half of it each.
    let jump = |from: f64, to: f64| {
        let change = format!("[[changes]]\nat = \"40 s\"\nlink = \"R-E\"\ndelay = \"{to} ms\"\n");
        Base {
            delay: from,
            changes: change,
            windows: vec![("before", 10.0, 40.0), ("after", 40.0, 98.5)],
            ..Base::rated(6.0)
        }
    };
    setups.push(jump(25.0, 75.0).named("g rtt 50 to 150"));
    setups.push(jump(75.0, 25.0).named("g rtt 150 to 50"));
    for length in [0.2, 1.0, 5.0] {
        let end = 40.0 + length;
        let base = Base {
            windows: vec![
                ("before", 10.0, 40.0),
                ("after", 40.0, 98.5),
                ("later", end + 1.0, 98.5),
            ],
            ..Base::rated(6.0)
        };
        let dropped = Base {
            outages: format!("{{ from = \"40 s\", until = \"{} ms\" }}", end * 1e3),
            ..base.clone()
        };
        setups.push(dropped.named(format!("g outage {length}s dropped")));
        let held = Base {
            changes: rate_change(40.0, 0.1) + &rate_change(end, 6.0),
            queue: 500,
            ..base
        };
        setups.push(held.named(format!("g outage {length}s held")));
    }
}

fn models(setups: &mut Vec<Setup>) {
    for model in ["lte", "umts", "evdo", "wifi", "satellite"] {
        for (target, queue) in [(250, 1000), (250, 100), (500, 1000), (800, 1000)] {
            let base = Base {
                rate: format!("{{ model = \"{model}\", seed = 1 }}"),
                queue,
                target,
                duration: 126,
                ..Base::default()
            };
            setups.push(base.named(format!("i {model} model {target}ms q{queue}")));
        }
    }
}

fn cellular(setups: &mut Vec<Setup>, traces: &Path) {
    for trace in ["lte-a", "umts-a"] {
        let path = traces.join(format!("{trace}.trace"));
        for target in [250, 500, 800] {
            for queue in [1000, 100] {
                let base = Base {
                    rate: format!("{{ trace = \"{}\" }}", path.display()),
                    queue,
                    target,
                    duration: 126,
                    ..Base::default()
                };
                setups.push(base.named(format!("h {trace} {target}ms q{queue}")));
            }
        }
    }
}
