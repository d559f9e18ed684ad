//! A laboratory whose experiments may say `controller = "mine"`: faster with each packet, half as fast after a loss.

use namecast_lab::rate::{Arrival, Lost, RateController, Target};
use namecast_lab::units::{Bitrate, Instant};

#[derive(Debug)]
struct Mine(u64);

impl RateController for Mine {
    fn on_data(&mut self, _now: Instant, _data: &Arrival) {
        self.0 += 2_000;
    }
    fn on_loss(&mut self, _now: Instant, _lost: &Lost) {
        self.0 = (self.0 / 2).max(100_000);
    }
    fn target(&self) -> Target {
        Target {
            rate: Some(Bitrate::bps(self.0)),
            ..Target::default()
        }
    }
    fn name(&self) -> &'static str {
        "mine"
    }
}

fn main() -> std::process::ExitCode {
    let lab = namecast_lab::main();
    lab.controller("mine", |_| Box::new(Mine(1_000_000))).run()
}
