//! The all-knowing bound over traces and models: `cargo run -p namecast-sim --example oracle -- lte drive.trace`.
//!
//! For each, and each delay from capture to display, the share of frames that can be in time and their mean bitrate.

use std::env;
use std::error::Error;

use namecast_netem::{Model, ModelKind, Schedule};
use namecast_sim::scenario::{OracleConfig, oracle};
use namecast_units::Duration;

const TARGETS: [u64; 3] = [250, 500, 800];

fn main() -> Result<(), Box<dyn Error>> {
    println!("in time / Mbit/s at {TARGETS:?} ms");
    for name in env::args().skip(1) {
        let model = ModelKind::ALL.into_iter().find(|kind| kind.name() == name);
        let schedules = if let Some(kind) = model {
            let drawn = |seed| Model {
                kind,
                seed,
                mean: None,
            };
            (1..=3).map(|seed| drawn(seed).schedule()).collect()
        } else {
            vec![Schedule::parse(&std::fs::read_to_string(&name)?, None)?]
        };
        for schedule in schedules {
            print!("{name}, mean {}:", schedule.mean());
            for target in TARGETS.map(Duration::from_millis) {
                let config = OracleConfig {
                    target,
                    ..OracleConfig::default()
                };
                let bound = oracle(&schedule, &config);
                let megabits = bound.bitrate.as_bps() as f64 / 1e6;
                print!("  {:.3}/{megabits:.2}", bound.in_time_share);
            }
            println!();
        }
    }
    Ok(())
}
