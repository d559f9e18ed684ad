//! When a command ends.

use namecast_net::Clock;
use namecast_units::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Says when to stop: at an interrupt, or when the time is over.
#[derive(Debug)]
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on, interrupts end the command gracefully.
    ///
    /// # Errors
    /// The system does not report interrupts.
    pub fn new(duration: Option<Duration>) -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            deadline: duration.map(|duration| Clock::new().now() + duration),
        })
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
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = over => {}
        }
    }
}
