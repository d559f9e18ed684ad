//! The signals that end a command on Unix systems.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored, as `nohup` has it.
    hang_up: Option<HangUps>,
}

/// SIGHUP: the terminal closed, or a daemon is asked to reload its configuration.
#[derive(Debug)]
pub struct HangUps(Signal);

impl HangUps {
    /// Handles SIGHUP from now on, so that it does not end the process.
    ///
    /// # Errors
    /// The system does not report signals.
    pub fn new() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let is_ignored = is_ignored(SignalKind::hangup().as_raw_value());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: (!is_ignored).then(HangUps::new).transpose()?,
        })
    }

    pub(super) fn leave_hang_ups(&mut self) {
        self.hang_up = None;
    }

    pub(super) async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.next().await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = hang_up => {}
            _ = self.terminate.recv() => {}
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
