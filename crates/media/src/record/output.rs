//! What one file of a recording is written to.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::Context;
use namecast_units::Duration;

use super::destination::{Cut, Destination, Place, Wrapping};
use crate::ingest::ffmpeg::{Process, local, words};

/// How long a server may take what is left, and how long a busy machine may write it.
const SERVER_GRACE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// A stream that is silent for a second holds the other one up no longer. What is written is on disk at once.
const MUXER: &str = "-max_interleave_delta 1000000 -flush_packets 1";
/// Bitrate of sound that has to be encoded.
const SOUND_BITRATE: &str = "128k";

/// The ffmpeg that wraps, if any, to be ended when it does not end by itself.
#[derive(Debug, Default)]
pub(super) struct Wrapper {
    process: Mutex<Option<Process>>,
    has_ended: AtomicBool,
}

impl Wrapper {
    fn start(&self, arguments: &[OsString]) -> anyhow::Result<ChildStdin> {
        let (mut process, _) = Process::start(arguments, 0)?;
        let stdin = process.stdin();
        let mut held = self.lock();
        *held = Some(process).filter(|_| !self.has_ended.load(Ordering::Relaxed));
        Ok(stdin)
    }

    /// Waits until it has ended by itself, but not for ever; its success and the last it said.
    fn finish(&self, grace: Duration) -> (bool, String) {
        let deadline = Instant::now() + grace;
        loop {
            let mut held = self.lock();
            let Some(process) = held.as_mut() else {
                return (
                    false,
                    "it was ended, as it did not take what was left".to_owned(),
                );
            };
            if process.has_ended() {
                return process.finish();
            }
            if Instant::now() > deadline {
                *held = None;
            }
            drop(held);
            thread::sleep(POLL);
        }
    }

    /// Ends it, and those that come.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One file, pipe or connection.
#[derive(Debug)]
pub(super) enum Output {
    Standard(io::Stdout),
    File(File),
    Ffmpeg(ChildStdin),
}

impl Output {
    /// Opens what `destination` names, as the recording's `part`, with sound encoded in `sound` if it cannot stay as it is.
    ///
    /// # Errors
    /// If it cannot be written to, or there is no ffmpeg.
    pub(super) fn open(
        destination: &Destination,
        part: usize,
        sound: Option<&str>,
        wrapper: &Wrapper,
    ) -> anyhow::Result<Self> {
        if let Place::Directory(path) = &destination.place {
            std::fs::create_dir_all(path).with_context(|| cannot_write(destination))?;
        }
        if let Wrapping::Ffmpeg(container) = destination.container.wrapping {
            let mut arguments: Vec<_> = words("-y -f nut -i pipe:0 -map 0 -c copy").collect();
            if let Some(codec) = sound {
                arguments.extend(words("-c:a").chain([encoder(codec).into()]));
                arguments.extend(words("-b:a").chain([SOUND_BITRATE.into()]));
            }
            arguments.extend(words(MUXER).chain(words(container)));
            arguments.extend(target(destination, part));
            return wrapper.start(&arguments).map(Self::Ffmpeg);
        }
        Ok(match &destination.place {
            Place::File(path) => {
                let file = File::create(path).with_context(|| cannot_write(destination))?;
                Self::File(file)
            }
            _ => Self::Standard(io::stdout()),
        })
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        let writer: &mut dyn Write = match self {
            Self::Standard(stdout) => stdout,
            Self::File(file) => file,
            Self::Ffmpeg(stdin) => stdin,
        };
        writer.write_all(octets)?;
        writer.flush()
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// If that, or anything before, failed.
    pub(super) fn close(self, destination: &Destination, wrapper: &Wrapper) -> anyhow::Result<()> {
        if let Self::Ffmpeg(stdin) = self {
            drop(stdin);
            let (success, said) = wrapper.finish(grace(&destination.place));
            anyhow::ensure!(success, "ffmpeg could not write to {destination}: {said}");
        }
        Ok(())
    }
}

/// How long what is left may take.
pub(super) const fn grace(place: &Place) -> Duration {
    match place {
        Place::File(_) | Place::Directory(_) => GRACE,
        Place::Server(_) | Place::Standard => SERVER_GRACE,
    }
}

fn cannot_write(destination: &Destination) -> String {
    format!("cannot write to {destination}: name another place with --output")
}

/// ffmpeg's name of the encoder.
fn encoder(codec: &str) -> &str {
    match codec {
        "opus" => "libopus",
        codec => codec,
    }
}

/// The last arguments: where to.
fn target(destination: &Destination, part: usize) -> Vec<OsString> {
    match &destination.place {
        Place::Directory(path) => {
            let segments = path.to_string_lossy().replace('%', "%%");
            let mut arguments = destination.cut.map_or_else(Vec::new, cutting);
            arguments.push("-hls_fmp4_init_filename".into());
            // The header before may still be in use.
            arguments.push(format!("init-{part}.mp4").into());
            arguments.push("-hls_segment_filename".into());
            let segment = destination.cut.map_or("%d.m4s", |_| "seq=%d");
            arguments.push(Path::new(&segments).join(segment).into());
            arguments.push(local(&path.join(destination.playlist)));
            arguments
        }
        Place::File(path) => vec![local(path)],
        Place::Server(address) => vec![address.into()],
        Place::Standard => vec!["pipe:1".into()],
    }
}

/// What takes the place of how HLS is cut otherwise.
fn cutting(cut: Cut) -> Vec<OsString> {
    let Cut {
        duration,
        first,
        listed,
    } = cut;
    let seconds = duration.as_secs_f64();
    let line = format!(
        "-hls_time {seconds} -hls_list_size {listed} -hls_start_number_source generic -start_number {first} \
         -hls_flags delete_segments+independent_segments+program_date_time+temp_file"
    );
    words(&line).collect()
}
