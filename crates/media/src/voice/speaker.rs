//! Packets of Opus as sound.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::str::FromStr;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use bytes::Bytes;

use super::{Frame, PACKET};
use crate::devices::{NoDefaultDevice, System};
use crate::ingest::IngestError;
use crate::ingest::ffmpeg::{Process, local, words};
use crate::nut::writer::{file_header, opus_head, put_frame};
use crate::nut::{NutClass, NutStream};

/// Packets that wait for the speaker; those beyond are dropped.
const MAX_WAITING: usize = 25;
const SAMPLE_RATE: u32 = 48_000;
/// A packet of Opus of one frame of 20 ms and no octets in it: whoever decodes it conceals a loss. RFC 6716, section 3.1: hybrid
/// wideband configurations, of which only the length counts here.
const LOST: u8 = 0x78;
/// Bits of the first octet that say how a packet is coded; the others, how many frames it has.
const CODING: u8 = 0xfc;

/// Where sound goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Nowhere.
    Nowhere,
    /// A device, by its format and name in ffmpeg.
    Device(&'static str, String),
    /// A file, whose ending says in which format.
    File(PathBuf),
}

impl FromStr for Sink {
    type Err = NoDefaultDevice;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let device = |(format, name)| Self::Device(format, name);
        Ok(match text {
            "none" => Self::Nowhere,
            "speaker" => device(System::HERE.speaker()?),
            _ => System::named(text, System::HERE.speaker_formats())
                .map_or_else(|| Self::File(text.into()), device),
        })
    }
}

/// Something that plays.
#[derive(Debug)]
pub struct Speaker {
    frames: Option<SyncSender<Vec<u8>>>,
    process: Option<Process>,
    writer: Option<JoinHandle<()>>,
    played: u64,
    /// How the newest packet is coded: what is lost is concealed as if it were so.
    coding: u8,
    dropped: u64,
    /// What ffmpeg complained of before it was to end.
    failure: Option<String>,
}

impl Speaker {
    /// Opens `sink`.
    ///
    /// # Errors
    /// If there is no ffmpeg.
    pub fn open(sink: &Sink) -> Result<Self, IngestError> {
        let mut speaker = Self {
            frames: None,
            process: None,
            writer: None,
            played: 0,
            coding: LOST,
            dropped: 0,
            failure: None,
        };
        let target: Vec<OsString> = match sink {
            Sink::Nowhere => return Ok(speaker),
            Sink::Device(format, name) => {
                let options = format!("-f {format}");
                words(&options).chain([name.into()]).collect()
            }
            Sink::File(path) => {
                vec!["-y".into(), local(path)]
            }
        };
        let decoding = "-probesize 32 -analyzeduration 0 -fflags nobuffer -f nut -c:a libopus -i pipe:0 -flush_packets 1";
        let arguments: Vec<_> = words(decoding).chain(target).collect();
        let (mut process, _) = Process::start(&arguments, 0)?;
        let stdin = process.stdin();
        let (frames, waiting) = sync_channel::<Vec<u8>>(MAX_WAITING);
        speaker.writer = Some(thread::spawn(move || write(stdin, waiting)));
        speaker.frames = Some(frames);
        speaker.process = Some(process);
        Ok(speaker)
    }

    /// Plays a frame, behind those before it.
    pub fn play(&mut self, frame: &Frame) {
        let lost = [self.coding];
        let payload: &[u8] = match frame {
            Frame::Packet(_, payload) => payload,
            Frame::Concealed => &lost,
        };
        let micros = self.played * PACKET.as_micros() as u64;
        self.played += 1;
        if let Some(first) = payload.first() {
            self.coding = first & CODING;
        }
        let mut octets = Vec::with_capacity(payload.len() + 64);
        put_frame(&mut octets, 0, micros, true, payload);
        if let Some(frames) = &self.frames
            && let Err(TrySendError::Full(_)) = frames.try_send(octets)
        {
            self.dropped += 1;
        }
    }

    /// Frames that the device did not take in time.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns what ffmpeg complained of, once, if it ended while there was more to play.
    pub fn failure(&mut self) -> Option<String> {
        let mut process = self.process.take_if(Process::has_ended)?;
        self.frames = None;
        let (_, said) = process.finish();
        self.failure = Some(said.clone());
        Some(said)
    }

    /// Plays what is left, and ends.
    ///
    /// # Errors
    /// What ffmpeg complained of, if it failed.
    pub fn close(mut self) -> Result<(), String> {
        drop(self.frames.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        match self.process.take().map(|mut process| process.finish()) {
            Some((false, said)) => Err(said),
            _ => self.failure.map_or(Ok(()), Err),
        }
    }
}

fn write(mut stdin: ChildStdin, frames: std::sync::mpsc::Receiver<Vec<u8>>) {
    let stream = NutStream {
        class: NutClass::Audio(SAMPLE_RATE, 1),
        codec: Bytes::from_static(b"Opus"),
        parameters: opus_head(1, SAMPLE_RATE).into(),
        decode_delay: 0,
    };
    let header = file_header(&[stream]);
    let all = core::iter::once(header).chain(frames);
    for octets in all {
        if stdin
            .write_all(&octets)
            .and_then(|()| stdin.flush())
            .is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Microphone;
    use super::*;
    use crate::ingest::source::Input;
    use namecast_units::Bitrate;

    #[test]
    fn sinks_are_told_apart() {
        let sink = |text: &str| text.parse::<Sink>().unwrap();
        assert_eq!(sink("none"), Sink::Nowhere);
        assert_eq!(sink("speaker"), Sink::Device("alsa", "default".to_owned()));
        assert_eq!(sink("pulse:a:b"), Sink::Device("pulse", "a:b".to_owned()));
        assert_eq!(sink("out.wav"), Sink::File("out.wav".into()));
    }

    /// A file that cannot be written is reported while the call goes on, once, and again at its end.
    #[test]
    fn a_speaker_that_ends_too_early_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let sink = Sink::File(directory.path().join("missing").join("out.wav"));
        let mut speaker = Speaker::open(&sink).unwrap();
        let said = loop {
            speaker.play(&Frame::Concealed);
            match speaker.failure() {
                Some(said) => break said,
                None => std::thread::yield_now(),
            }
        };
        assert!(said.contains("out.wav"), "{said}");
        assert_eq!(speaker.failure(), None);
        assert_eq!(speaker.close(), Err(said));
    }

    /// Half a second of tone, of which a tenth is lost: as long as it was, and the second frame that is lost is still heard.
    #[tokio::test]
    async fn what_is_lost_is_concealed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.wav");
        let mut microphone = Microphone::start(&Input::Test, Bitrate::kbps(32)).unwrap();
        let mut speaker = Speaker::open(&Sink::File(path.clone())).unwrap();
        for number in 0..25 {
            let spoken = microphone.next().await.unwrap();
            speaker.play(&match number {
                10..15 => Frame::Concealed,
                _ => Frame::Packet(number, spoken.payload),
            });
        }
        speaker.close().unwrap();
        let octets = std::fs::read(&path).unwrap();
        let data = octets.windows(4).position(|it| it == b"data").unwrap() + 8;
        let samples: Vec<i16> = (octets[data..].chunks_exact(2))
            .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        assert!(
            (22_900..=24_000).contains(&samples.len()),
            "{}",
            samples.len()
        );
        let loudest = |from: usize| {
            samples[from * 960..][..960]
                .iter()
                .map(|it| it.unsigned_abs())
                .max()
        };
        assert!(loudest(5) > Some(1_000), "{:?}", loudest(5));
        assert!(loudest(11) > Some(200), "{:?}", loudest(11));
    }
}
