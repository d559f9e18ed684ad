//! The program that somebody works with, in a terminal of its own.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use namecast_apps::session::{CallId, Endpoint, Full};
use namecast_net::Handle;
use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::{MAX_OCTETS, Said, octets_message};

/// What is said to who works here once the program has ended.
pub(super) const ENDED: &str = "the program has ended";
/// What is typed ahead of a program that does not read.
const MAX_TYPED: usize = 1_024;
/// Octets of what was printed last that who comes back sees again.
const MAX_RECENT: usize = 1 << 16;
/// What terminals are called, to programs.
const TERMINAL: &str = "xterm-256color";

/// A program in a terminal. Dropping it kills it.
pub(super) struct Shell {
    typed: mpsc::Sender<Said>,
    call: watch::Sender<CallId>,
    room: Arc<Notify>,
    tasks: [JoinHandle<()>; 2],
}

impl Shell {
    /// Starts `program`, or the user's shell.
    pub(super) fn start(
        call: CallId,
        endpoint: Handle<Endpoint>,
        program: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let (pty, pts) = pty_process::open().context("the system gives no terminal")?;
        let shell = crate::places::environment("SHELL").map(PathBuf::from);
        let program = program.map(Path::to_owned).or(shell);
        let program = program.unwrap_or_else(|| "/bin/sh".into());
        let command = pty_process::Command::new(&program)
            .env("TERM", TERMINAL)
            .kill_on_drop(true);
        let child = command.spawn(pts);
        let child = child.with_context(|| format!("cannot start {}", program.display()))?;
        let (output, input) = pty.into_split();
        let (typed, said) = mpsc::channel(MAX_TYPED);
        let room = Arc::new(Notify::new());
        let (call, calls) = watch::channel(call);
        let screen = Screen {
            endpoint,
            call: calls,
            room: Arc::clone(&room),
            recent: VecDeque::new(),
        };
        let showing = show((output, child), screen);
        Ok(Self {
            typed,
            call,
            room,
            tasks: [tokio::spawn(showing), tokio::spawn(type_all(input, said))],
        })
    }

    /// Passes on what was typed. Returns whether there was room for it.
    pub(super) fn take(&self, said: Said) -> bool {
        // A program that has ended reads nothing, and its session is about to end.
        !matches!(self.typed.try_send(said), Err(TrySendError::Full(_)))
    }

    /// Goes on in another call. Returns whether the program is still there.
    pub(super) fn move_to(&self, call: CallId) -> bool {
        self.call.send(call).is_ok()
    }

    /// Whether the program has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.call.is_closed()
    }

    /// There is room for output again.
    pub(super) fn wake(&self) {
        self.room.notify_one();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn type_all(mut input: OwnedWritePty, mut said: mpsc::Receiver<Said>) {
    while let Some(said) = said.recv().await {
        let done = match said {
            Said::Octets(octets) => input.write_all(&octets).await.is_ok(),
            Said::Size(rows, columns) => input.resize(Size::new(rows, columns)).is_ok(),
            Said::Resume => true,
        };
        if !done {
            return;
        }
    }
}

/// The way from a program to whoever works with it.
struct Screen {
    endpoint: Handle<Endpoint>,
    call: watch::Receiver<CallId>,
    room: Arc<Notify>,
    /// What was printed last.
    recent: VecDeque<u8>,
}

/// Sends what the program prints, until it ends. Whoever comes back sees the last of it again.
async fn show((mut output, mut child): (OwnedReadPty, Child), mut screen: Screen) {
    let mut block = vec![0; MAX_OCTETS];
    loop {
        tokio::select! {
            // Linux reports an error once the last program has closed the terminal.
            count = output.read(&mut block) => match count {
                Ok(count @ 1..) => screen.print(&block[..count]).await,
                _ => break,
            },
            Ok(()) = screen.call.changed() => screen.repeat().await,
        }
    }
    let _ = child.wait().await;
    let call = *screen.call.borrow();
    let close = move |it: &mut Endpoint, now| it.close(now, call, ENDED);
    screen.endpoint.call(close).await;
}

impl Screen {
    async fn print(&mut self, octets: &[u8]) {
        self.recent.extend(octets);
        let beyond = self.recent.len().saturating_sub(MAX_RECENT);
        self.recent.drain(..beyond);
        if !self.send(octets_message(octets)).await {
            self.wait().await;
        }
    }

    /// Waits until somebody comes back, and sends what was printed last.
    async fn wait(&mut self) {
        // If nobody does, the program is ended.
        while self.call.changed().await.is_ok() {
            if self.send_recent().await {
                return;
            }
        }
        core::future::pending().await
    }

    async fn repeat(&mut self) {
        if !self.send_recent().await {
            self.wait().await;
        }
    }

    async fn send_recent(&mut self) -> bool {
        let recent = self.recent.make_contiguous().to_vec();
        for octets in recent.chunks(MAX_OCTETS) {
            if !self.send(octets_message(octets)).await {
                return false;
            }
        }
        true
    }

    /// Sends a message as soon as there is room. Returns whether the session is still there.
    async fn send(&mut self, mut message: Bytes) -> bool {
        let call = *self.call.borrow_and_update();
        loop {
            let sent = self.endpoint.call(move |it, now| {
                let sent = it.send(now, call, message);
                (sent, it.stats(call).is_some())
            });
            match sent.await {
                Some((Ok(()), _)) => return true,
                Some((Err(Full(back)), true)) => message = back,
                Some((Err(_), false)) | None => return false,
            }
            tokio::select! {
                () = self.room.notified() => {}
                _ = self.call.changed() => {
                    self.call.mark_changed();
                    return false;
                }
            }
        }
    }
}
