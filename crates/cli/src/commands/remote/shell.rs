//! The program that somebody works with, in a terminal of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use namecast_apps::session::{CallId, Endpoint};
use namecast_net::Handle;
use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::{MAX_OCTETS, Said, octets_message};

/// What is said to who works here once the program has ended.
pub(super) const ENDED: &str = "the program has ended";
/// What is typed ahead of a program that does not read.
const MAX_TYPED: usize = 1_024;
/// What terminals are called, to programs.
const TERMINAL: &str = "xterm-256color";

/// A program in a terminal. Dropping it kills it.
pub(super) struct Shell {
    typed: mpsc::Sender<Said>,
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
        let shell = crate::places::set("SHELL").map(PathBuf::from);
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
        let showing = show((output, child), call, endpoint, Arc::clone(&room));
        Ok(Self {
            typed,
            room,
            tasks: [tokio::spawn(showing), tokio::spawn(type_all(input, said))],
        })
    }

    /// Passes on what was typed. Returns whether there was room for it.
    pub(super) fn take(&self, said: Said) -> bool {
        // A program that has ended reads nothing, and its session is about to end.
        !matches!(self.typed.try_send(said), Err(TrySendError::Full(_)))
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
        };
        if !done {
            return;
        }
    }
}

/// Sends what the program prints, until it ends.
async fn show(
    (mut output, mut child): (OwnedReadPty, Child),
    call: CallId,
    endpoint: Handle<Endpoint>,
    room: Arc<Notify>,
) {
    let mut block = vec![0; MAX_OCTETS];
    // Linux reports an error once the last program has closed the terminal.
    while let Ok(count @ 1..) = output.read(&mut block).await {
        if !send(&endpoint, call, octets_message(&block[..count]), &room).await {
            return;
        }
    }
    let _ = child.wait().await;
    endpoint
        .call(move |it, now| it.close(now, call, ENDED))
        .await;
}

/// Sends a message as soon as there is room. Returns whether the session is still there.
async fn send(endpoint: &Handle<Endpoint>, call: CallId, message: Bytes, room: &Notify) -> bool {
    loop {
        let message = message.clone();
        let sent = endpoint.call(move |it, now| {
            (
                it.send(now, call, message).is_ok(),
                it.stats(call).is_some(),
            )
        });
        match sent.await {
            Some((true, _)) => return true,
            Some((false, true)) => room.notified().await,
            Some((false, false)) | None => return false,
        }
    }
}
