//! When a command ends.

#[cfg_attr(windows, path = "stop/windows.rs")]
#[cfg_attr(not(windows), path = "stop/unix.rs")]
mod signals;

use namecast_net::Clock;
use namecast_units::{Duration, Instant};

pub use signals::HangUps;
use signals::Signals;

/// Says when to stop: when it is interrupted, terminated or its terminal hangs up, or when the time is over.
#[derive(Debug)]
pub struct Stop {
    signals: Signals,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on, these signals end the command gracefully.
    ///
    /// # Errors
    /// The system does not report signals.
    pub fn new(duration: Option<Duration>) -> anyhow::Result<Self> {
        Ok(Self {
            signals: Signals::new()?,
            deadline: duration.map(|duration| Clock::new().now() + duration),
        })
    }

    /// Leaves hang-ups to somebody else, who has something to do at one.
    pub fn leave_hang_ups(&mut self) {
        self.signals.leave_hang_ups();
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
        tokio::select! {
            () = self.signals.next() => {}
            () = over => {}
        }
    }
}
