//! The terminal that one sits at: every key goes to the other machine as it is.

use std::io::{IsTerminal, Read};
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::MAX_OCTETS;

/// Ctrl-], which leaves.
const LEAVE: u8 = 0x1d;
/// Size where there is no terminal.
const DEFAULT_SIZE: (u16, u16) = (24, 80);
/// Blocks that are typed ahead.
const MAX_WAITING: usize = 64;

/// What is done at the terminal.
pub(super) enum Key {
    Octets(Vec<u8>),
    /// Rows and columns.
    Size((u16, u16)),
    Leave,
}

/// Standard input, without its own meaning of keys as long as this is there.
pub(super) struct Terminal {
    before: Option<Termios>,
    resized: Signal,
    typed: mpsc::Receiver<Vec<u8>>,
    is_at_end: bool,
}

impl Terminal {
    pub(super) fn open() -> anyhow::Result<Self> {
        let stdin = std::io::stdin();
        let before = match stdin.is_terminal() {
            true => {
                let before = tcgetattr(&stdin)?;
                let mut raw = before.clone();
                raw.make_raw();
                tcsetattr(&stdin, OptionalActions::Now, &raw)?;
                Some(before)
            }
            false => None,
        };
        let (sender, typed) = mpsc::channel(MAX_WAITING);
        thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            let mut block = vec![0; MAX_OCTETS];
            while let Ok(count @ 1..) = stdin.read(&mut block) {
                if sender.blocking_send(block[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            before,
            resized: signal(SignalKind::window_change())?,
            typed,
            is_at_end: false,
        })
    }

    /// Rows and columns.
    pub(super) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_row > 0 => (size.ws_row, size.ws_col),
            _ => DEFAULT_SIZE,
        }
    }

    /// Waits for what is done next.
    pub(super) async fn next(&mut self) -> Key {
        loop {
            tokio::select! {
                typed = self.typed.recv(), if !self.is_at_end => match typed {
                    Some(octets) if self.before.is_some() && octets.contains(&LEAVE) => return Key::Leave,
                    Some(octets) => return Key::Octets(octets),
                    None => self.is_at_end = true,
                },
                _ = self.resized.recv() => return Key::Size(self.size()),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // There is nothing to be done if the terminal is gone.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
