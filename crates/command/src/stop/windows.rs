//! The console events that end a command on Windows.

use std::io;

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

#[derive(Debug)]
pub(super) struct Signals {
    interrupt: CtrlC,
    stop: CtrlBreak,
    closed: CtrlClose,
}

/// SIGHUP, which Windows does not have.
#[derive(Debug)]
pub struct HangUps(());

impl HangUps {
    /// Nothing changes.
    ///
    /// # Errors
    /// None.
    pub const fn new() -> io::Result<Self> {
        Ok(Self(()))
    }

    /// Waits for ever.
    pub async fn next(&mut self) {
        core::future::pending().await
    }
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            stop: ctrl_break()?,
            closed: ctrl_close()?,
        })
    }

    /// There are none.
    #[allow(clippy::unused_self, reason = "Unix has them")]
    pub(super) const fn leave_hang_ups(&mut self) {}

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.stop.recv() => {}
            _ = self.closed.recv() => {}
        }
    }
}
