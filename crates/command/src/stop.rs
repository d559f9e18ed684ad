//! When a command ends.

use namecast_net::Clock;
use namecast_units::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Says when to stop: when it is interrupted, terminated or its terminal hangs up, or when the time is over.
#[derive(Debug)]
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored, as `nohup` has it.
    hang_up: Option<Signal>,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on, these signals end the command gracefully.
    ///
    /// # Errors
    /// The system does not report signals.
    pub fn new(duration: Option<Duration>) -> anyhow::Result<Self> {
        let hang_up = SignalKind::hangup();
        let is_ignored = is_ignored(hang_up.as_raw_value());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: (!is_ignored).then(|| signal(hang_up)).transpose()?,
            deadline: duration.map(|duration| Clock::new().now() + duration),
        })
    }

    /// Leaves hang-ups to somebody else, who has something to do at one.
    pub fn leave_hang_ups(&mut self) {
        self.hang_up = None;
    }

    /// Waits until it is time to stop. May be called again and again.
    pub async fn wait(&mut self) {
        let left = self.deadline.map(|at| at.since(Clock::new().now()));
        let over = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => core::future::pending().await,
            }
        };
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = hang_up => {}
            _ = self.terminate.recv() => {}
            () = over => {}
        }
    }
}

/// Whether the process was started with a signal ignored, where the system tells.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}
