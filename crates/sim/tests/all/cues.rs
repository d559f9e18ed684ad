//! Cues for 32 devices over links that lose packets: each device executes each once, and all at the same moment.

use std::time::Duration;

use namecast_apps::cues::{Action, Cue, CueId, Device, DeviceConfig, Outcome, Output};
use namecast_units::{Instant, Timestamp};

use crate::events::{FIRST, Stage, desk, stage};
use crate::live_world::ms;

const DEVICES: usize = 32;
const CUES: u64 = 1_000;
/// From one cue to the next.
const EVERY: Duration = ms(250);
/// From a GO to its execution.
const LEAD: Duration = ms(300);

fn wall(at: Instant) -> Timestamp {
    Timestamp::from_micros(1_760_000_000_000_000) + at.since(Instant::ZERO)
}

fn cue(number: u64, lead: Duration) -> Cue {
    let sent = Instant::ZERO + FIRST + EVERY * u32::try_from(number).unwrap();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    Cue {
        id: CueId(id),
        number: number.to_string(),
        action: Action::Go,
        term: 0,
        at: wall(sent + lead),
        targets: Vec::new(),
        values: Default::default(),
        rehearsal: false,
    }
}

/// Times of execution after those of the cues, in microseconds: of each device, by number.
fn executed(stage: &Stage, lead: Duration) -> Vec<Vec<i64>> {
    let execute = |heard: &[(u64, Instant)]| {
        let mut device = Device::new(DeviceConfig::default());
        for &(number, at) in heard {
            while let Some(due) = device.poll_timeout().filter(|due| *due <= wall(at)) {
                device.handle_timeout(due);
            }
            device.handle_cue(wall(at), "main", cue(number, lead));
        }
        while let Some(due) = device.poll_timeout() {
            device.handle_timeout(due);
        }
        let mut late = Vec::new();
        while let Some(output) = device.poll_output() {
            if let Output::Report(done) = output {
                assert_eq!(done.outcome, Outcome::Executed, "{done:?}");
                assert_eq!(done.number, late.len().to_string());
                late.push(done.late_us);
            }
        }
        assert_eq!(late.len() as u64, CUES);
        late
    };
    stage
        .readers()
        .map(|reader| execute(&reader.heard))
        .collect()
}

/// Returns the value that this share of `sorted` is at most.
fn share(sorted: &[i64], share: f64) -> i64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// 5 % of packets are lost each way, with no delay and at a round trip of 50 ms. Each cue is executed once by all, 99.9 % of them at their time, and
/// all devices execute a cue within 5 ms. Without a lead, 99 % are executed within 60 ms beyond the delay.
#[test]
fn all_devices_execute_a_cue_together() {
    for (delay, seed) in [(ms(0), 1), (ms(25), 2)] {
        let mut stage = stage(seed, DEVICES, (0.05, delay), desk(EVERY, 200, CUES));
        stage.network.run_until(Instant::ZERO + ms(260_000));
        let late = executed(&stage, LEAD);
        let mut all: Vec<_> = late.concat();
        all.sort_unstable();
        let in_time = all.iter().filter(|late| **late <= 1_000).count();
        let in_time = in_time as f64 / all.len() as f64;
        let spread = |number: usize| {
            let of = late.iter().map(|late| late[number]);
            of.clone().max().unwrap() - of.min().unwrap()
        };
        let mut spreads: Vec<_> = (0..CUES as usize).map(spread).collect();
        spreads.sort_unstable();
        let (median, most) = (share(&spreads, 0.5), share(&spreads, 0.99));
        let mut alone: Vec<_> = executed(&stage, Duration::ZERO).concat();
        alone.sort_unstable();
        let alone = share(&alone, 0.99);
        let beyond = alone - delay.as_micros() as i64;
        println!(
            "delay {delay:?}: in time {in_time}, spread {median} and {most} µs, without lead 99 % {alone} µs"
        );
        assert!(in_time >= 0.999, "{delay:?}: {in_time}");
        assert!(
            median <= 5_000 && most <= 5_000,
            "{delay:?}: {median} {most}"
        );
        assert!(beyond <= 60_000, "{delay:?}: {alone}");
    }
}
