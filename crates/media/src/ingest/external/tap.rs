//! A pipe that may be read by one ffmpeg after another, each from its beginning.

use std::io::{self, Read, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use super::demuxer::READ_SIZE;

/// Octets of a pipe that are kept to begin anew, until it is known what it holds.
const MAX_KEPT: usize = 4 << 20;

/// Hands on what comes by a pipe to an ffmpeg, and from its beginning to the next one, as long as it is not known what it holds.
#[derive(Debug)]
pub(super) struct Tap(SyncSender<ChildStdin>);

impl Tap {
    pub(super) fn new(source: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel(1);
        thread::spawn(move || pour(source, &receiver));
        Self(sender)
    }

    /// Fills another ffmpeg from now on, once the one before has ended.
    pub(super) fn fill(&self, stdin: ChildStdin) {
        // A source that is over has nothing to give.
        let _ = self.0.try_send(stdin);
    }
}

/// Carries octets from `source` to the ffmpeg that is there, and all of them to the next if that one ends.
fn pour(mut source: impl Read, ffmpegs: &Receiver<ChildStdin>) {
    let Ok(mut stdin) = ffmpegs.recv() else {
        return;
    };
    let (mut chunk, mut kept) = (vec![0; READ_SIZE], Some(Vec::new()));
    loop {
        let count = match source.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        let read = chunk.get(..count).unwrap_or_default();
        if let Some(octets) = &mut kept {
            octets.extend_from_slice(read);
        }
        if count > 0 && stdin.write_all(read).is_ok() {
            let is_known = matches!(ffmpegs.try_recv(), Err(TryRecvError::Disconnected));
            kept = kept.filter(|kept| !is_known && kept.len() <= MAX_KEPT);
            continue;
        }
        drop(stdin);
        // The end of the source, or of the ffmpeg: the next one gets what there was.
        let (Some(octets), Ok(mut next)) = (&kept, ffmpegs.recv()) else {
            return;
        };
        if next.write_all(octets).is_err() || count == 0 {
            return;
        }
        stdin = next;
    }
}
