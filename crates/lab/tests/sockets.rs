//! Scenarios over real sockets, and how the runner treats what takes real time. Nothing here depends on how busy the machine is.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use namecast_lab::experiment::{
    Experiment, Laboratory, Library, Outcome, Progress, Refusal, RunConfig, Simulator, StoreLimits,
    run,
};
use namecast_sim::scenario::Scenario;
use serde::Deserialize;

fn simulator() -> Simulator {
    Simulator::default()
}

/// One flow at 2 Mbit/s over a dumbbell, two windows.
fn scenario(medium: &str) -> Scenario {
    let file = format!(
        r#"
        kind = "network"
        medium = "{medium}"
        duration = "2 s"
        measure = {{ from = "500 ms" }}
        windows = {{ late = {{ from = "1 s", until = "1500 ms" }} }}
        bottleneck = "R1>R2"
        [topology]
        kind = "dumbbell"
        [[flows]]
        controller = "rate:2M"
        "#
    );
    toml::from_str(&file).unwrap()
}

/// Two seconds of real time, or six on a machine that is busy.
#[test]
fn a_flow_over_sockets_delivers_and_is_measured_as_in_the_simulator() {
    let here = Path::new(".");
    let sockets = scenario("sockets");
    simulator().validate(&sockets, here).unwrap();
    assert!(simulator().takes_real_time(&sockets));
    let real = simulator().run(&sockets, here, 7).unwrap().metrics;

    let simulated = scenario("simulator");
    assert!(!simulator().takes_real_time(&simulated));
    let simulated = simulator().run(&simulated, here, 7).unwrap().metrics;
    let own = ["relay-error-p99", "ends-error-p99", "trials", "disturbed"];
    let expected: BTreeSet<&str> = simulated.keys().map(String::as_str).chain(own).collect();
    assert_eq!(
        real.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        expected
    );

    assert!(real.values().all(|value| value.is_finite()), "{real:?}");
    for metric in [
        "utilisation",
        "goodput",
        "goodput-1",
        "goodput-late",
        "interests",
    ] {
        assert!(real[metric] > 0.0, "{metric}: {real:?}");
    }
    assert!((1.0..=3.0).contains(&real["trials"]) && real["disturbed"] <= 1.0);
    // Nothing is ever early: 20 ms of delay and 0.89 ms of serialisation, a little less for an Interest below 40 octets.
    assert!(real["rtt"] > 20.87, "{real:?}");
}

/// A publisher of the least video and sound, a router and a watcher with a generous target; what leaves each of two links is told.
fn stream(medium: &str) -> Scenario {
    let file = format!(
        r#"
        kind = "stream"
        medium = "{medium}"
        duration = "3 s"
        measure = {{ from = "500 ms" }}
        cache = "16 MiB"
        links = ["P>R", "C>R"]
        publishers = [{{ streams = [{{ kind = "video", rungs = ["200 kbit/s"] }}, {{ kind = "audio" }}] }}]
        watchers = [{{ target = "500 ms", audio = true }}]
        [topology]
        kind = "explicit"
        node = [{{ name = "P" }}, {{ name = "R" }}, {{ name = "C" }}]
        link = [
          {{ ends = ["P", "R"], config = {{ delay = "5 ms" }} }},
          {{ ends = ["R", "C"], config = {{ delay = "5 ms" }} }},
        ]
        "#
    );
    toml::from_str(&file).unwrap()
}

/// Three seconds of real time, or nine on a machine that is busy.
#[test]
fn a_stream_over_sockets_arrives_and_is_measured_as_in_the_simulator() {
    let here = Path::new(".");
    let sockets = stream("sockets");
    simulator().validate(&sockets, here).unwrap();
    assert!(simulator().takes_real_time(&sockets));
    let real = simulator().run(&sockets, here, 7).unwrap().metrics;
    let simulated = simulator()
        .run(&stream("simulator"), here, 7)
        .unwrap()
        .metrics;

    let own = "relay-error-p99 ends-error-p99 ends-error-max trials disturbed";
    let only_simulated = [
        "chasing",
        "adjusting",
        "back-off",
        "response",
        "response-max",
        "pit",
        "cached",
        "producer-held",
        "producer-cached",
        "watcher-samples",
        "watcher-outstanding",
        "watcher-buffered",
        "events",
        // Of each packet on a link, and what it was needed for.
        "interest-ratio",
        "interest-load",
        "interests-peak",
        "interest-peak-load",
        "interests-per-segment",
    ];
    let simulated = simulated
        .keys()
        .map(String::as_str)
        .filter(|name| !name.contains("-own-"))
        .filter(|name| !only_simulated.contains(&name.strip_suffix("-1").unwrap_or(name)));
    let expected: BTreeSet<&str> = simulated.chain(own.split(' ')).collect();
    assert_eq!(
        real.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        expected
    );
    // Nobody hands out a frame that does not verify.
    for metric in [
        "frames",
        "payload-rate",
        "data-rate",
        "interests",
        "producer-data",
        "producer-rate",
        "link-1-frames",
        "link-2-frames",
    ] {
        assert!(real[metric] > 0.0, "{metric}: {real:?}");
    }
    // Nothing is ever early: two round trips of 20 ms to join; 10 ms and the target to show.
    assert!(real["join"] >= 40.0 && real["latency"] >= 509.0, "{real:?}");
    assert!((1.0..=3.0).contains(&real["trials"]) && real["disturbed"] <= 1.0);
}

/// Longest wait for what comes at once if the code is right.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Remembers in which order runs began, and finds that some in real time were beside each other.
///
/// Simulated runs go on until each of the disturbed ones was tried once, so that those have company.
#[derive(Debug, Default)]
struct Watchful {
    order: Mutex<Vec<String>>,
    has_begun: Condvar,
    in_real_time: AtomicUsize,
    side_by_side: AtomicBool,
    /// Simulated runs that give way to what takes real time.
    giving_way: AtomicUsize,
}

#[cfg(target_os = "linux")]
fn gives_way() -> bool {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy,
    };
    thread_schedule_policy()
        == Ok(ThreadSchedulePolicy::Normal(
            NormalThreadSchedulePolicy::Idle,
        ))
}

/// Elsewhere there is no way to.
#[cfg(not(target_os = "linux"))]
fn gives_way() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: String,
    real: bool,
    disturbed: f64,
}

impl Laboratory for Watchful {
    type Scenario = Job;

    fn validate(&self, _: &Job, _: &Path) -> Result<(), Refusal> {
        Ok(())
    }

    fn takes_real_time(&self, job: &Job) -> bool {
        job.real
    }

    fn run(&self, job: &Job, _: &Path, _: u64) -> Result<Outcome, Refusal> {
        let mut order = self.order.lock().unwrap();
        order.push(job.name.clone());
        self.has_begun.notify_all();
        if job.real {
            drop(order);
            let others = self.in_real_time.fetch_add(1, Ordering::SeqCst);
            self.side_by_side.fetch_or(others > 0, Ordering::SeqCst);
            // Whoever would run beside this has time to begin.
            (0..100).for_each(|_| std::thread::yield_now());
            self.in_real_time.fetch_sub(1, Ordering::SeqCst);
        } else {
            (self.giving_way).fetch_add(usize::from(gives_way()), Ordering::SeqCst);
            let is_early = |order: &mut Vec<String>| {
                order.iter().filter(|name| *name == "disturbed").count() < 4
            };
            let waited = self.has_begun.wait_timeout_while(order, TIMEOUT, is_early);
            assert!(!waited.unwrap().1.timed_out(), "real time never began");
        }
        let metrics = [
            ("x".to_owned(), 1.0),
            ("disturbed".to_owned(), job.disturbed),
        ];
        Ok(Outcome {
            metrics: metrics.into(),
            series: Vec::new(),
        })
    }
}

const FILE: &str = r#"title = "Jobs"
item = "Fig. 1"
paper = "ARC"
about = "Jobs."
seeds = 4
[scenario]
name = "real"
real = true
disturbed = 0.0
[[sweep]]
name = "job"
[sweep.values]
"real" = { name = "real" }
"disturbed" = { name = "disturbed", disturbed = 1.0 }
"first" = { name = "simulated", real = false }
"second" = { name = "simulated", real = false }
"#;

#[test]
fn real_time_goes_one_by_one_beside_the_rest_and_again_alone_if_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = folder.path().join("experiments");
    fs::create_dir_all(experiments.join("a")).unwrap();
    fs::write(experiments.join("a/jobs.toml"), FILE).unwrap();
    let library = Library::open(&experiments).unwrap();
    let experiment = [Experiment::read(&library, "a/jobs").unwrap()];
    let config = RunConfig {
        out: folder.path().join("out"),
        seed: 1,
        runs: None,
        threads: Some(4),
        quick: false,
        fresh: false,
        program: "test".to_owned(),
        limits: StoreLimits::default(),
    };
    let go = |laboratory: &Watchful| {
        let stop = AtomicBool::new(false);
        let mut finished = run(
            laboratory,
            &experiment,
            &config,
            &stop,
            &Progress::new(true),
        )
        .unwrap();
        finished.remove(0).result.unwrap()
    };
    let laboratory = Watchful::default();
    let summary = go(&laboratory);
    assert_eq!(summary.metrics["disturbed/disturbed"], Some(1.0));
    assert!(!laboratory.side_by_side.into_inner());
    assert_eq!(laboratory.giving_way.into_inner(), 4);
    let order = laboratory.order.into_inner().unwrap();
    let (simulated, real): (Vec<&str>, Vec<&str>) = order
        .iter()
        .map(String::as_str)
        .partition(|name| *name == "simulated");
    // 'first' and 'second' are the same runs.
    assert_eq!(simulated.len(), 4);
    assert_eq!(
        real,
        [["real"; 4], ["disturbed"; 4], ["disturbed"; 4]].concat()
    );
    assert_eq!(order[12..], ["disturbed"; 4].map(str::to_owned));

    let again = Watchful::default();
    assert_eq!(go(&again), summary);
    assert_eq!(again.order.into_inner().unwrap(), ["disturbed"; 4]);
}
