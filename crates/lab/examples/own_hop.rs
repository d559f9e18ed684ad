//! A laboratory whose experiments may say `hops = ["mine"]`: every node drops one Data packet in ten.

use namecast_lab::forward::{Actions, Context, DropReason, Hop};
use namecast_lab::units::Instant;

#[derive(Debug)]
struct Mine(u64);

impl Hop for Mine {
    fn on_data(&mut self, _now: Instant, _context: &mut Context<'_>) -> Actions {
        self.0 += 1;
        match self.0.is_multiple_of(10) {
            true => Actions::drop(DropReason::Hop),
            false => Actions::default(),
        }
    }
}

fn main() -> std::process::ExitCode {
    namecast_lab::main().hop("mine", || Box::new(Mine(0))).run()
}
