//! What is spoken, as packets of Opus.

use std::ffi::OsString;
use std::io::Read;
use std::process::Stdio;
use std::thread;

use bytes::Bytes;
use namecast_units::{Bitrate, Timestamp};
use tokio::sync::mpsc;

use super::PACKET;
use crate::clock;
use crate::ingest::IngestError;
use crate::ingest::ffmpeg::{Process, check, local, pipe_url, words};
use crate::ingest::source::Input;
use crate::nut::NutReader;

/// Packets that wait; those beyond are dropped, as nobody wants to hear the past.
const MAX_WAITING: usize = 8;
const READ_SIZE: usize = 1 << 14;
const SAMPLE_RATE: u32 = 48_000;
/// Samples in one packet.
const FRAME: u32 = SAMPLE_RATE / 1_000 * PACKET.as_millis() as u32;
/// How the tone sounds that is spoken for tests.
const TONE: &str = "sine=frequency=330:beep_factor=3:sample_rate=48000";

/// 20 ms of what is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// When the first of it was spoken.
    pub at: Timestamp,
    /// Opus.
    pub payload: Bytes,
}

/// A microphone, or a file in its place, that is being listened to. Dropping it ends that.
#[derive(Debug)]
pub struct Microphone {
    process: Process,
    packets: mpsc::Receiver<Spoken>,
}

impl Microphone {
    /// Listens to `input`, coded with so many bits a second.
    ///
    /// # Errors
    /// If there is no ffmpeg or it has no Opus, or `input` is nothing to listen to.
    pub fn start(input: &Input, bitrate: Bitrate) -> Result<Self, IngestError> {
        check(&["libopus"])?;
        let mut arguments = source(input)?;
        // Demuxers read several packets at once, 43 ms of WAV, which would come in bursts.
        let mut frames = format!("asetnsamples=n={FRAME}");
        if matches!(input, Input::Test | Input::File(_) | Input::StandardInput) {
            frames.push_str(",arealtime");
        }
        let coding = format!(
            "-map 0:a:0 -af aresample={SAMPLE_RATE},{frames} -ac 1 -c:a libopus -application voip -frame_duration {} -b:a {} \
             -write_index 0 -flush_packets 1 -f nut",
            PACKET.as_millis(),
            bitrate.as_bps(),
        );
        arguments.extend(words(&coding));
        arguments.push(pipe_url(0));
        let stdin = match input {
            Input::StandardInput => Stdio::inherit(),
            _ => Stdio::null(),
        };
        let (process, mut pipes) = Process::start_with(&arguments, 1, stdin)?;
        let (sender, packets) = mpsc::channel(MAX_WAITING);
        let pipe = pipes.pop().expect("one was made");
        thread::spawn(move || listen(pipe, &sender));
        Ok(Self { process, packets })
    }

    /// Waits for the next packet; `None` at the end.
    pub async fn next(&mut self) -> Option<Spoken> {
        self.packets.recv().await
    }

    /// The last that ffmpeg complained of.
    pub fn complaint(&self) -> Option<String> {
        self.process.last_said()
    }
}

/// ffmpeg's arguments for what is listened to.
fn source(input: &Input) -> Result<Vec<OsString>, IngestError> {
    let with = |options: &str, name: OsString| {
        let input = ["-i".into(), name];
        words(options).chain(input).collect()
    };
    Ok(match input {
        Input::Test => with("-f lavfi", TONE.into()),
        Input::Device("v4l2", _) => return Err(IngestError::NoSound(input.to_string())),
        Input::Device(format, name) => with(&format!("-fflags nobuffer -f {format}"), name.into()),
        Input::File(path) => with("", local(path)),
        Input::Address(address) => with("-fflags nobuffer", address.into()),
        Input::StandardInput => with("", "pipe:0".into()),
        Input::Pipe(_) => return Err(IngestError::NoSound(input.to_string())),
    })
}

fn listen(mut pipe: impl Read, sender: &mpsc::Sender<Spoken>) {
    let mut reader = NutReader::default();
    let mut block = vec![0; READ_SIZE];
    loop {
        match pipe.read(&mut block) {
            Ok(0) | Err(_) => return,
            Ok(count) => reader.push(block.get(..count).unwrap_or_default()),
        }
        while let Ok(Some(frame)) = reader.frame() {
            let now = clock::wall();
            let micros = now.as_micros().saturating_sub(PACKET.as_micros() as u64);
            let spoken = Spoken {
                at: Timestamp::from_micros(micros),
                payload: frame.payload,
            };
            if let Err(mpsc::error::TrySendError::Closed(_)) = sender.try_send(spoken) {
                return;
            }
        }
    }
}
